//! [`Grid`]: rows at equal distances, for kernels that multiply tiles of memory.

use crate::requantize::ChannelLanes;

/// Rows at equal distances, as the windows of an image's pixels are, times one block of channels. Of rows side by side
/// some are wanted, and then some are not: where a line of an image ends, what is read reaches into the next one.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // Made everywhere, read by tiles of AMX.
pub(crate) struct Grid<'a> {
    /// Where the first wanted row begins.
    pub inputs: *const u8,
    /// Whether inputs are multiplied as signed numbers.
    pub are_inputs_signed: bool,
    /// From a row to the next one, in bytes.
    pub row_step: usize,
    /// From a row's beginning to each of its runs, in bytes.
    pub runs: &'a [usize],
    /// Bytes of a run that are multiplied: what a row of a tile has, or a multiple.
    pub run_bytes: usize,
    /// Rows that can be read before the first wanted one.
    pub readable_before: usize,
    /// Rows that can be read from there on, wanted or not: together at least as many as a tile has.
    pub readable: usize,
    /// Rows of a line that are wanted, its first ones.
    pub wanted: usize,
    /// From the first row of a line to that of the next one, in rows.
    pub line: usize,
    pub lines: usize,
    /// What each wanted row's sums get in addition.
    pub row_terms: Option<&'a [i32]>,
    /// The block's packed weights, on a line.
    pub weights: *const u8,
    /// The constants of the block's channels, as many as it has vectors.
    pub lanes: &'a [ChannelLanes],
    /// Where the first wanted row's output begins.
    pub output: *mut u8,
    /// From one wanted row's output to that of the next one, in bytes.
    pub output_step: usize,
}
