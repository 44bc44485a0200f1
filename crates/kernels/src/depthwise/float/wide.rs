//! [`Wide`]: depthwise convolutions by filters of very many taps, read in place.
#![allow(unsafe_code)]

use super::MOST_TAPS;
use crate::convolution::Shape;
use crate::convolution::float::Pass;
use crate::gemm::float::Epilogue;
use crate::sharing::even_tasks;
use crate::team::{Pace, Team, part};
use crate::vector::{Isa, Kernel, Simd};
use crate::{Image, Images, InstructionSet, Preparation};

/// The taps of a pixel that see the input, one after the other, each for some vectors of channels.
#[derive(Debug)]
pub(crate) struct Wide {
    shape: Shape,
    /// Of the input.
    pixel_stride: usize,
    isa: Isa,
    epilogue: Epilogue,
    tasks: usize,
}

/// Vectors whose sums are computed together.
const VECTORS: usize = 4;

/// A task should take some microseconds at least.
const LEAST_PRODUCTS: usize = 100_000;

impl Wide {
    /// Whether it has more taps than [`Direct`](super::Direct) takes.
    pub(crate) fn suits(shape: &Shape) -> bool {
        shape.taps() > MOST_TAPS
    }

    /// How it is done, for people.
    pub(crate) fn kernel(set: InstructionSet) -> String {
        format!("tap by tap f32 {set}")
    }

    pub(crate) fn new(
        shape: &Shape,
        pixel_stride: usize,
        epilogue: Epilogue,
        preparation: &Preparation,
    ) -> Self {
        let products = shape.output_pixels().saturating_mul(shape.filter_values());
        let lines = shape.batch * shape.output[0];
        let tasks = even_tasks(products / LEAST_PRODUCTS, preparation.threads(), 4).min(lines);
        Self { shape: *shape, pixel_stride, isa: Isa::of(preparation.set()), epilogue, tasks }
    }

    /// # Panics
    /// If there are not as many weights and biases as the shape says, an image is smaller, or the stride of the input's
    /// pixels is another than was prepared for.
    pub(crate) fn run(&self, team: &mut Team, filter: [&[f32]; 2], images: Images<'_, f32>) {
        let shape = &self.shape;
        let Some(pass) = Pass::new(shape, self.pixel_stride, images) else { return };
        let Pass { input, residual, .. } = pass;
        assert_eq!(filter[0].len(), shape.filter_values(), "values of the weights");
        assert_eq!(filter[1].len(), shape.output_channels, "values of the bias");
        let lines = shape.batch * shape.output[0];
        team.run_long(self.tasks, &|task, stop| {
            let mut pace = Pace::new(stop);
            for line in part(lines, self.tasks, task) {
                for x in 0..shape.output[1] {
                    if pace.is_over(shape.filter_values()) {
                        return;
                    }
                    let pixel = line * shape.output[1] + x;
                    let start = pixel * pass.output_stride;
                    // SAFETY: each pixel is computed once, and `Pass::new` has seen that they do not overlap.
                    let to = unsafe { pass.output.slice(start, shape.output_channels) };
                    let residual = residual.map(|residual| {
                        &residual.values[pixel * residual.pixel_stride..][..to.len()]
                    });
                    let at = [line, x];
                    let epilogue = &self.epilogue;
                    let pace = &mut pace;
                    let isa = self.isa;
                    isa.run(Pixel { shape, filter, input, residual, at, to, epilogue, pace });
                }
            }
        });
    }
}

/// Taps from which on it is asked among them whether to go on.
const MANY_TAPS: usize = 1024;

/// An output pixel, in a line of all images.
struct Pixel<'a, 'p> {
    shape: &'a Shape,
    filter: [&'a [f32]; 2],
    input: Image<'a, f32>,
    residual: Option<&'a [f32]>,
    at: [usize; 2],
    to: &'a mut [f32],
    epilogue: &'a Epilogue,
    pace: &'a mut Pace<'p>,
}

impl Kernel for Pixel<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let mut channel = 0;
        let multiplier = self.shape.group_output_channels();
        if multiplier == 1 {
            let work = self.shape.taps().saturating_mul(VECTORS * S::LANES);
            while self.to.len() - channel >= VECTORS * S::LANES && !self.pace.is_over(work) {
                self.channels::<S, VECTORS, false>(simd, channel, VECTORS * S::LANES);
                channel += VECTORS * S::LANES;
            }
        }
        let work = self.shape.taps().saturating_mul(S::LANES);
        while channel < self.to.len() && !self.pace.is_over(work) {
            // Those that see the same channel of the input, if one is seen by several.
            let end = match multiplier {
                1 => self.to.len(),
                _ => (channel / multiplier + 1) * multiplier,
            };
            let count = (end - channel).min(S::LANES);
            if multiplier == 1 {
                self.channels::<S, 1, false>(simd, channel, count);
            } else {
                self.channels::<S, 1, true>(simd, channel, count);
            }
            channel += count;
        }
    }
}

impl Pixel<'_, '_> {
    /// The `count` channels from `channel` on, which are as many as `N` vectors have, or fewer than
    /// one. If they are `SHARED` all see the same channel of the input.
    #[inline(always)]
    fn channels<S: Simd, const N: usize, const SHARED: bool>(
        &mut self,
        simd: S,
        channel: usize,
        count: usize,
    ) {
        let shape = self.shape;
        let [weights, bias] = self.filter;
        let load = |from: &[f32], vector: usize| {
            if N > 1 || count == S::LANES {
                simd.load(&from[vector * S::LANES..])
            } else {
                simd.load_partial(from, 0.0)
            }
        };
        let mut sums = [simd.splat(0.0); N];
        for (vector, sum) in sums.iter_mut().enumerate() {
            *sum = load(&bias[channel..channel + count], vector);
        }
        let [line, x] = self.at;
        let (image, y) = (line / shape.output[0], line % shape.output[0]);
        let [top, left] = [(0, y), (1, x)].map(|(axis, at)| at * shape.stride[axis]);
        let columns = shape.seen_taps(1, x);
        let is_large = columns.len().saturating_mul(shape.filter[0]) >= MANY_TAPS;
        for i in shape.seen_taps(0, y) {
            let input_y = top + i * shape.dilation[0] - shape.padding_before[0];
            for j in columns.clone() {
                if is_large && self.pace.is_over(N * S::LANES) {
                    return;
                }
                let input_x = left + j * shape.dilation[1] - shape.padding_before[1];
                let pixel = shape.input_pixel([image, input_y, input_x]);
                let start = pixel * self.input.pixel_stride;
                let seen = if SHARED { channel / shape.group_output_channels() } else { channel };
                let seen = &self.input.values[start + seen..];
                let tap = i * shape.filter[1] + j;
                let weights = &weights[tap * shape.output_channels + channel..][..count];
                for (vector, sum) in sums.iter_mut().enumerate() {
                    let value =
                        if SHARED { simd.splat(seen[0]) } else { load(&seen[..count], vector) };
                    *sum = simd.fma(value, load(weights, vector), *sum);
                }
            }
        }
        let to = &mut self.to[channel..channel + count];
        for (vector, sum) in sums.iter().enumerate() {
            let mut value = *sum;
            if let Some(residual) = self.residual {
                value = simd.add(value, load(&residual[channel..channel + count], vector));
            }
            value = self.epilogue.apply(simd, value);
            if N > 1 || count == S::LANES {
                simd.store(value, &mut to[vector * S::LANES..]);
            } else {
                simd.store_partial(value, to);
            }
        }
    }
}
