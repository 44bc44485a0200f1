//! [`Problem`]: what kernels have to know of a matrix beside its packed weights.

use super::DEPTH;
use super::block::Block;
use crate::quantization::Signedness;
use crate::requantize::{ChannelLanes, Requantization};

/// What is added to all sums that are requantized in integers, which on x86 are unsigned.
pub(super) const SUM_OFFSET: i32 = if cfg!(target_arch = "x86_64") { i32::MIN } else { 0 };

/// Where kernels find the inputs of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inputs {
    /// In its runs, as they are stored.
    Stored,
    /// In its runs, where signed ones were made unsigned.
    Unsigned,
    /// One behind the other, where [`Matrix::copy_rows`] has brought them.
    Copied,
}

/// What is the same for all tiles.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Common {
    /// Runs of a row.
    pub runs: usize,
    /// Bytes of a run.
    pub run_bytes: usize,
    /// Whether inputs and outputs are signed.
    pub is_signed: bool,
    /// The least and the greatest output.
    pub limits: (i32, i32),
}

impl Common {
    /// Of this number of runs, of this many bytes each.
    pub(super) fn new(
        [runs, run_bytes]: [usize; 2],
        signedness: Signedness,
        requantization: &Requantization,
    ) -> Self {
        let limits = (requantization.min, requantization.max);
        Self { runs, run_bytes, is_signed: signedness == Signedness::Signed, limits }
    }

    /// Of unsigned inputs whose sums are the outputs.
    pub(super) fn of_sums([runs, run_bytes]: [usize; 2]) -> Self {
        Self { runs, run_bytes, is_signed: false, limits: (0, 0) }
    }
}

/// What kernels have to know of a matrix beside its packed weights.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) common: Common,
    pub(super) inputs: Inputs,
    /// By block and vector.
    pub(super) lanes: Vec<ChannelLanes>,
    pub(super) requantization: Requantization,
}

impl Problem {
    /// Bytes of a row whose runs are copied one behind the other, each filled up to a whole step.
    pub(super) fn row_bytes(&self) -> usize {
        // Less than the packed weights have.
        self.common.runs * self.common.run_bytes.next_multiple_of(DEPTH)
    }

    /// The constants of a block's channels.
    pub(super) fn block_lanes(&self, block: &Block) -> &[ChannelLanes] {
        &self.lanes[block.lanes..][..block.vectors]
    }

    /// The stored output that stands for 0. In the constants of x86's integers it is included.
    pub(super) fn zero_point(&self) -> i32 {
        self.requantization.zero_point
    }

    /// The output of one sum, by the definition.
    pub(super) fn output(&self, block: &Block, index: usize, sum: i32) -> u8 {
        let sum = sum.wrapping_sub(block.form.sum_offset(SUM_OFFSET));
        let output = self.requantization.apply(sum, block.channel + index);
        self.signedness().byte(output)
    }

    fn signedness(&self) -> Signedness {
        if self.common.is_signed { Signedness::Signed } else { Signedness::Unsigned }
    }
}
