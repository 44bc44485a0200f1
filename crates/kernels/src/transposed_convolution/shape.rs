//! [`Shape`], and the [`Phase`]s that it is cut into.

use crate::TooLarge;
use crate::allowance::room_for;
use crate::convolution;
use crate::image::Placement;
use crate::prepared::multiply_adds;
use crate::team::Pace;
use bytemuck::Zeroable;
use bytemuck::allocation::try_zeroed_vec;
use std::ops::Deref;

/// The sizes of a transposed convolution of images `[batch, height, width, channels]`, as those of the convolution with the
/// same operands, whose dilation and groups are 1; pairs are height, width.
///
/// Input pixel `(y, x)` reaches the output pixels
/// `(y * stride[0] + i - padding_before[0], x * stride[1] + j - padding_before[1])` for `i`, `j` below
/// `filter`, as far as there are such: so `padding_before` is what is cut off before the first ones of the output. What no input
/// pixel reaches is the bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape(pub convolution::Shape);

impl Deref for Shape {
    type Target = convolution::Shape;

    fn deref(&self) -> &convolution::Shape {
        &self.0
    }
}

/// Taps of zeros that may be put in front of a phase's filter, where so much is cut off that its first output pixel begins behind the
/// first input pixel.
const MOST_ADDED: usize = 4;

/// Multiplications that take as long as finding a tap.
const WORK_OF_TAP: usize = 4;

/// More phases are left to others.
const MOST_PHASES: usize = 4096;

/// The output pixels at some places between the steps of the stride: an ordinary convolution by the
/// taps that reach them.
#[derive(Debug, Clone)]
pub(crate) struct Phase {
    /// Of the convolution. It has the output channels of all the columns that are computed together.
    pub(crate) shape: convolution::Shape,
    pub(crate) placement: Placement,
    along: [AlongAxis; 2],
}

/// A phase along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AlongAxis {
    /// The first output position.
    first: usize,
    /// How many positions from there on belong together, as if they were channels.
    joined: usize,
    /// How many times they are repeated, at distances of a stride.
    count: usize,
    /// The filter's tap that is the last one of the phase, to the first of the joined positions. The
    /// one before it is a stride farther.
    last_tap: usize,
    /// Taps, those that are zero included.
    taps: usize,
    padding: usize,
}

impl AlongAxis {
    /// All phases of an axis, those joined that can be if that is wanted.
    fn all(shape: &Shape, axis: usize, joins: bool) -> Option<Vec<Self>> {
        let [taps, stride, before, output] = [
            shape.filter[axis],
            shape.stride[axis],
            shape.padding_before[axis],
            shape.output[axis],
        ];
        let mut all: Vec<Self> = Vec::new();
        for first in 0..stride.min(output) {
            let (last_tap, seen) = ((first + before) % stride, (first + before) / stride);
            let reaching = taps.saturating_sub(last_tap).div_ceil(stride);
            // The input positions that a pixel sees end at its own, `seen` from the first one on.
            let added = if reaching > 0 { (seen + 1).saturating_sub(reaching) } else { 0 };
            if added > MOST_ADDED {
                return None;
            }
            let taps = reaching + added;
            let phase = Self {
                first,
                joined: 1,
                count: (output - first).div_ceil(stride),
                last_tap,
                taps,
                padding: taps.saturating_sub(seen + 1),
            };
            match all.last_mut().filter(|_| joins) {
                Some(previous) if previous.continues_with(&phase) => previous.joined += 1,
                _ => all.push(phase),
            }
        }
        Some(all)
    }

    fn continues_with(&self, next: &Self) -> bool {
        let same = (self.count, self.taps, self.padding);
        same == (next.count, next.taps, next.padding)
            && self.last_tap + self.joined == next.last_tap
    }

    /// The filter's tap that is this one of the phase, to one of the joined positions; none if it is
    /// beyond the filter.
    fn tap(&self, shape: &Shape, axis: usize, tap: usize, joined: usize) -> Option<usize> {
        let tap = (self.taps - 1 - tap) * shape.stride[axis] + self.last_tap + joined;
        Some(tap).filter(|tap| *tap < shape.filter[axis])
    }
}

impl Shape {
    /// The operation and the filter, for names of kernels.
    pub(crate) fn name(&self) -> String {
        let [height, width] = self.filter;
        format!("transposed conv2d {height}x{width}")
    }

    /// Whether the sizes can be computed: strides are not zero, no number of values is beyond memory,
    /// and not much more is cut off in front than the filter is large.
    pub fn is_valid(&self) -> bool {
        self.phases(None).is_some()
    }

    /// # Panics
    /// If the sizes are not [valid](Self::is_valid), or output pixels would overlap.
    pub(crate) fn checked_phases(&self, output_pixel_stride: usize) -> Vec<Phase> {
        // Phases write at the same time, each its own pixels.
        assert!(
            output_pixel_stride >= self.output_channels,
            "pixels of {} channels cannot have a stride of {output_pixel_stride} values",
            self.output_channels
        );
        let phases = self.phases(Some(output_pixel_stride));
        phases.unwrap_or_else(|| panic!("not the shape of a transposed convolution: {self:?}"))
    }

    /// The phases, for an output whose pixels have this stride.
    fn phases(&self, output_pixel_stride: Option<usize>) -> Option<Vec<Phase>> {
        if !self.0.is_valid() || self.dilation != [1, 1] || self.groups != 1 {
            return None;
        }
        let pixel = output_pixel_stride.unwrap_or(self.output_channels);
        let is_contiguous = pixel == self.output_channels;
        // Whether columns are joined depends on the output's pixels, what is valid does not.
        let [down, across] = [0, 1].map(|axis: usize| self.stride[axis].min(self.output[axis]));
        if down.checked_mul(across).is_none_or(|phases| phases > MOST_PHASES) {
            return None;
        }
        let (rows, columns) =
            (AlongAxis::all(self, 0, false)?, AlongAxis::all(self, 1, is_contiguous)?);
        let row = self.output[1].checked_mul(pixel)?;
        let image = self.output[0].checked_mul(row)?;
        self.batch.checked_mul(image).filter(|all| isize::try_from(*all).is_ok())?;
        let mut phases = Vec::with_capacity(rows.len() * columns.len());
        for down in &rows {
            for across in &columns {
                let along = [*down, *across];
                let shape = convolution::Shape {
                    output: along.map(|it| it.count),
                    output_channels: across.joined * self.output_channels,
                    filter: along.map(|it| it.taps),
                    stride: [1, 1],
                    padding_before: along.map(|it| it.padding),
                    ..self.0
                };
                let placement = Placement {
                    size: shape.output,
                    first: down.first * row + across.first * pixel,
                    pixel_stride: self.stride[1].checked_mul(pixel)?,
                    row_stride: self.stride[0].checked_mul(row)?,
                    image_stride: image,
                };
                phases.push(Phase { shape, placement, along });
            }
        }
        phases.iter().all(|phase| phase.shape.is_valid()).then_some(phases)
    }

    /// Multiplications and additions, those counted whose results are cut off.
    pub fn operations(&self) -> u64 {
        multiply_adds(&[self.input_pixels(), self.filter_values()])
    }
}

impl Phase {
    /// How many output channels of the whole there are for each of its own.
    pub(crate) fn joined(&self) -> usize {
        self.along[1].joined
    }

    /// The filter of the phase, out of that of all, as far as it is wanted. Taps that are not there are
    /// `zero`. If preparing has been stopped meanwhile, some of the others are as well.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(crate) fn filter<T: Copy + Zeroable>(
        &self,
        whole: &Shape,
        filter: &[T],
        zero: T,
        pace: &mut Pace<'_>,
    ) -> Result<Vec<T>, TooLarge> {
        let depth = whole.input_channels;
        let mut values = room_for(self.shape.filter_values(), "weights")?;
        let [down, across] = &self.along;
        for joined in 0..across.joined {
            for channel in 0..whole.output_channels {
                for i in 0..down.taps {
                    let row = down.tap(whole, 0, i, 0);
                    for j in 0..across.taps {
                        if pace.is_over(depth + WORK_OF_TAP) {
                            // Not filled up, which would take as long again: the system gives zeros.
                            drop(values);
                            let zeros = try_zeroed_vec(self.shape.filter_values());
                            return zeros.map_err(|()| TooLarge::beyond_addresses("weights"));
                        }
                        let tap = row.zip(across.tap(whole, 1, j, joined));
                        let Some((row, column)) = tap else {
                            values.extend(std::iter::repeat_n(zero, depth));
                            continue;
                        };
                        let tap = (channel * whole.filter[0] + row) * whole.filter[1] + column;
                        values.extend_from_slice(&filter[tap * depth..][..depth]);
                    }
                }
            }
        }
        Ok(values)
    }
}

/// The tasks of several phases, of which these are the numbers, so that those for about the same part
/// of the image follow each other.
pub(crate) fn tasks_by_place(counts: impl Iterator<Item = usize>) -> Vec<(usize, usize)> {
    let each = counts.enumerate().flat_map(|(phase, count)| {
        (0..count).map(move |task| (2 * task + 1, count, (phase, task)))
    });
    let mut tasks: Vec<_> = each.collect();
    tasks.sort_by(|(at, count, _), (other, of, _)| (at * of).cmp(&(other * count)));
    tasks.into_iter().map(|(_, _, task)| task).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::WORK_BETWEEN;
    use crate::{InstructionSet, Preparation};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn square(input: usize, output: usize, filter: usize, stride: usize, before: usize) -> Shape {
        Shape(convolution::Shape {
            output: [output; 2],
            stride: [stride; 2],
            padding_before: [before; 2],
            ..convolution::Shape::same([input; 2], [3, 5], [filter; 2], 1)
        })
    }

    /// Taps across of each phase of the first row of phases, and how many columns it joins.
    fn across(shape: &Shape, pixel_stride: usize) -> Vec<(usize, usize)> {
        let phases = shape.checked_phases(pixel_stride);
        let first = phases.iter().filter(|phase| phase.along[0].first == 0);
        first.map(|phase| (phase.shape.filter[1], phase.joined())).collect()
    }

    #[test]
    fn what_is_valid_is_so_whatever_is_between_pixels() {
        assert!(!square(1, 65, 65, 65, 0).is_valid());
        let most = square(1, 64, 64, 64, 0);
        assert!(most.is_valid());
        assert_eq!(most.checked_phases(6).len(), MOST_PHASES);
    }

    #[test]
    fn phases_have_no_more_taps_than_reach_them() {
        assert_eq!(across(&square(4, 8, 2, 2, 0), 5), [(1, 2)]);
        assert_eq!(across(&square(4, 8, 2, 2, 0), 6), [(1, 1), (1, 1)]);
        assert_eq!(across(&square(4, 8, 3, 2, 0), 5), [(2, 1), (1, 1)]);
        assert_eq!(across(&square(4, 8, 4, 2, 1), 5), [(2, 1), (2, 1)]);
        assert_eq!(across(&square(4, 32, 16, 8, 4), 5), [(2, 4), (2, 4)]);
        // The last pixel has no right half.
        assert_eq!(across(&square(4, 7, 2, 2, 0), 5), [(1, 1), (1, 1)]);
        // Nothing reaches every second column.
        assert_eq!(across(&square(4, 7, 1, 2, 0), 5), [(1, 1), (0, 1)]);
        // What is cut off was all that a tap reached.
        assert_eq!(across(&square(4, 5, 3, 2, 2), 5), [(2, 1), (2, 1)]);
    }

    #[test]
    fn what_cannot_be_computed_is_not_valid() {
        assert!(square(4, 8, 2, 2, 0).is_valid());
        assert!(!square(4, 8, 2, 0, 0).is_valid());
        assert!(!square(1000, 8, 2, 2, 1990).is_valid());
        assert!(!square(1 << 20, 1 << 30, 2, 2, 0).is_valid());
        assert!(square(1, 1 << 13, 1, 1 << 20, 0).phases(None).is_none());
    }

    #[test]
    fn a_filter_of_millions_of_taps_is_not_gone_through_once_preparing_has_stopped() {
        let taps = 1 << 22;
        let shape = Shape(convolution::Shape {
            output: [1, taps],
            stride: [1, 2],
            padding_before: [0, 0],
            ..convolution::Shape::same([1, 1], [1, 1], [1, taps], 1)
        });
        let values = vec![7_u8; taps];
        let filter = |is_over: bool| {
            let questions = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&questions);
            let preparation =
                Preparation::new(InstructionSet::Portable, 1).until(Arc::new(move || {
                    counted.fetch_add(1, Ordering::Relaxed);
                    is_over
                }));
            let phases = shape.checked_phases(1);
            let filter = phases[0].filter(&shape, &values, 3, &mut preparation.pace()).unwrap();
            (filter, questions.load(Ordering::Relaxed))
        };

        let (found, questions) = filter(false);
        assert!(found.iter().all(|value| *value == 7));
        assert!(questions >= taps / 2 * WORK_OF_TAP / WORK_BETWEEN, "{questions} questions");

        let (given_up, questions) = filter(true);
        assert_eq!((given_up.len(), questions), (found.len(), 1));
        assert!(given_up.iter().all(|value| *value == 0), "went on");
    }
}
