//! [`Packing`]: how the weights of a block are packed, and [`Order`]: in which order taps are multiplied.

use crate::convolution::Shape;
use crate::quantization::Signedness;
use crate::requantize::LANES;

/// How the weights of a step are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code)] // No architecture has kernels for all.
pub(super) enum Layout {
    /// By sum: the bytes of four taps. Behind all steps those of second parts.
    Bytes,
    /// By vector of sums: 16-bit numbers, by sum those of the even two of four taps, then those of the
    /// odd two.
    Pairs,
    /// For filters of 3x3, by sums of 16 bits: as [`put_parts`] enters them.
    Nibbles,
    /// By tap, of which a step has two: 16-bit numbers.
    Taps,
}

/// How weights are packed for the vectors of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packing {
    pub(super) layout: Layout,
    /// Channels of a block, at most.
    pub(super) lanes: usize,
}

impl Packing {
    /// How many pixels of a block share the lanes if it has this many channels.
    pub(super) fn pixels(self, channels: usize) -> usize {
        if self.lanes > LANES && channels <= self.lanes / 2 { 2 } else { 1 }
    }

    /// Taps that are packed, and mostly multiplied, together.
    pub(super) fn taps(self) -> usize {
        match self.layout {
            Layout::Bytes | Layout::Pairs => 4,
            Layout::Taps | Layout::Nibbles => 2,
        }
    }

    /// Whether weights are bytes, or sums of two.
    pub(super) fn takes_bytes(self) -> bool {
        self.layout == Layout::Bytes
    }

    /// Bytes of the weights of a step, without second parts.
    pub(super) fn step_bytes(self) -> usize {
        let bytes = match self.layout {
            Layout::Bytes | Layout::Taps | Layout::Nibbles => 4,
            Layout::Pairs => 8,
        };
        self.lanes * bytes
    }

    /// Enters the weight of a tap, which is number `place` of a step, into a block's weights at the sum
    /// that it is for.
    pub(super) fn put(
        self,
        block: &mut [u8],
        [step, place]: [usize; 2],
        steps: usize,
        sum: usize,
        weight: i32,
    ) {
        let first = step * self.step_bytes();
        #[allow(clippy::cast_possible_truncation)] // 9 bits.
        let bytes = (weight as i16).to_le_bytes();
        match self.layout {
            Layout::Bytes => {
                let part = weight.clamp(-128, 127);
                let parts = [(first, part), (first + steps * self.step_bytes(), weight - part)];
                for (first, part) in parts {
                    // Nothing is left in a second part that there is not.
                    if part != 0 {
                        block[first + sum * 4 + place] = Signedness::Signed.byte(part);
                    }
                }
            }
            Layout::Nibbles => put_parts(block, [step, place], sum, weight),
            Layout::Pairs => {
                let sums = self.lanes / 4;
                let vector = first + sum / sums * sums * 8;
                let at = vector + (place % 2 * sums + sum % sums) * 4 + place / 2 * 2;
                block[at..][..2].copy_from_slice(&bytes);
            }
            Layout::Taps => {
                let at = first + (place * self.lanes + sum) * 2;
                block[at..][..2].copy_from_slice(&bytes);
            }
        }
    }

    /// Which of a block's sums a lane has: interleaving bytes of four taps takes four channels of each
    /// 128 bits in turn.
    pub(super) fn sum_of_lane(self, lane: usize) -> usize {
        lane % 16 / 4 * (self.lanes / 4) + lane / 16 * 4 + lane % 4
    }

    /// In which order taps are multiplied.
    pub(super) fn order(self, shape: &Shape) -> Order {
        match (self.layout, shape.filter, shape.stride[1], shape.dilation[1]) {
            (Layout::Nibbles, ..) => Order::Pairs3,
            (Layout::Bytes | Layout::Pairs, [3, 3], 1 | 2, 1) => Order::Columns3,
            (Layout::Bytes | Layout::Pairs, [5, 5], 1 | 2, 1) => Order::Columns5,
            _ => Order::Rows,
        }
    }
}

/// Which taps are multiplied together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The next ones of a row, going on in the next row.
    Rows,
    /// The three of a column of a 3x3 filter, which neighbouring output pixels share.
    Columns3,
    /// Two of a 3x3 filter, the upper two of a column, or lower ones: see [`place_in_pairs`].
    Pairs3,
    /// The upper four of a column of a 5x5 filter; then the first four of the last row; then the last
    /// tap as part of the four input pixels that the next output pixel sees first, where it is the
    /// last of them, or the first if the stride is 2.
    Columns5,
}

impl Order {
    /// The step that a tap belongs to, and its place among those that are multiplied together.
    pub(super) fn place(self, tap: usize, shape: &Shape, together: usize) -> [usize; 2] {
        let (i, j) = (tap / shape.filter[1], tap % shape.filter[1]);
        match self {
            Self::Rows => [tap / together, tap % together],
            Self::Columns3 => [j, i],
            Self::Pairs3 => place_in_pairs(i, j),
            Self::Columns5 if i < 4 => [j, i],
            Self::Columns5 if j < 4 => [5, j],
            Self::Columns5 => [6, if shape.stride[1] == 1 { 3 } else { 0 }],
        }
    }
}

/// Pairs of taps that are multiplied together: the upper two of three columns, the lower ones of the first two,
/// and that of the last, whose partner has a weight of zero.
pub(super) const LOWER_PAIR: usize = 3;
pub(super) const LOWER_LAST: usize = 4;

/// The pair that a tap belongs to, and its place there.
fn place_in_pairs(row: usize, column: usize) -> [usize; 2] {
    match (row, column) {
        (0 | 1, _) => [column, row],
        (_, 0 | 1) => [LOWER_PAIR, column],
        _ => [LOWER_LAST, 0],
    }
}

/// Bytes of the weights of a pair: of the lower and the upper half of what interleaving gives, two parts.
pub(super) const PAIR_BYTES: usize = 2 * 2 * 32;

/// Enters the weight of a tap, which is number `place` of a pair, into a block's weights at the sum that it is for:
/// its lower part, from -8 to 7, and a 16th of the rest.
fn put_parts(block: &mut [u8], [pair, place]: [usize; 2], sum: usize, weight: i32) {
    // As [`Packing::sum_of_lane`]: four sums of each half of a vector in turn.
    let (quarter, upper, index) = (sum / 8, sum % 8 / 4, sum % 4);
    let (half, channel) = (quarter / 2, quarter % 2 * 4 + index);
    let low = (weight + 8).rem_euclid(16) - 8;
    for (part, value) in [low, (weight - low) / 16].into_iter().enumerate() {
        let at = pair * PAIR_BYTES + (half * 2 + part) * 32 + upper * 16 + channel * 2 + place;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // From -8 to 8.
        let byte = value as i8 as u8;
        block[at] = byte;
    }
}
