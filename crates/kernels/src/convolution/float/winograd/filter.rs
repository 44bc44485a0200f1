//! The transform of a filter, in which one multiplies instead of sliding along an image.

use super::transform::Transforms;
use crate::vector::{Kernel, Simd};
use std::marker::PhantomData;

/// Transforms the filters of some output channels, `G g G'`: from `[outputs, 3, 3, inputs]` to `[points, outputs, inputs]`,
/// in double precision and then rounded.
pub(super) struct Filter<'a, A, const INPUT: usize, const OUTPUT: usize> {
    pub(super) weights: &'a [f32],
    pub(super) inputs: usize,
    pub(super) to: &'a mut [f32],
    pub(super) transforms: PhantomData<A>,
}

/// Input channels that are transformed side by side.
const LANES: usize = 8;

impl<A: Transforms<INPUT, OUTPUT>, const INPUT: usize, const OUTPUT: usize> Kernel
    for Filter<'_, A, INPUT, OUTPUT>
{
    type Output = ();

    #[inline(always)]
    #[allow(clippy::needless_range_loop)] // Of more than one array; and closures would not have the instructions.
    fn run<S: Simd>(self, _: S) {
        let Self { weights, inputs, to, .. } = self;
        let rows = A::filter();
        let outputs = weights.len() / (9 * inputs);
        for (output, weights) in weights.chunks_exact(9 * inputs).enumerate() {
            for input in (0..inputs).step_by(LANES) {
                let lanes = LANES.min(inputs - input);
                let mut taps = [[[0.0; LANES]; 3]; 3];
                for (tap, to) in taps.as_flattened_mut().iter_mut().enumerate() {
                    let from = &weights[tap * inputs + input..][..lanes];
                    for (to, from) in to.iter_mut().zip(from) {
                        *to = f64::from(*from);
                    }
                }
                for (i, row) in rows.iter().enumerate() {
                    let mut sums = [[0.0; LANES]; 3];
                    for column in 0..3 {
                        for lane in 0..LANES {
                            let [a, b, c] = [
                                taps[0][column][lane],
                                taps[1][column][lane],
                                taps[2][column][lane],
                            ];
                            sums[column][lane] = row[0] * a + row[1] * b + row[2] * c;
                        }
                    }
                    for (j, row) in rows.iter().enumerate() {
                        let mut values = [0.0; LANES];
                        for lane in 0..LANES {
                            let [a, b, c] = [sums[0][lane], sums[1][lane], sums[2][lane]];
                            #[allow(clippy::cast_possible_truncation)] // Rounded once.
                            let value = (row[0] * a + row[1] * b + row[2] * c) as f32;
                            values[lane] = value;
                        }
                        let at = ((i * INPUT + j) * outputs + output) * inputs + input;
                        to[at..at + lanes].copy_from_slice(&values[..lanes]);
                    }
                }
            }
        }
    }
}
