//! [`UnpackedConvolution`] of images of quantized values.
#![allow(unsafe_code)]

use crate::convolution::Shape;
use crate::disjoint::DisjointOutput;
use crate::of_images::{ImageKernel, Images};
use crate::parts::{TASKS_BY_THREAD, even_tasks, for_each_slice, for_each_task};
use crate::quantization::Activations;
use crate::requantize::Requantization;
use crate::team::{Pace, part};
use crate::vector::{Isa, Kernel, Simd};
use crate::{Image, LINE_BYTES, Line, Preparation, Team, TooLarge};

/// A convolution whose weights and biases are known only when it is run: the weights less their zero
/// point are written to scratch memory first, as numbers of 16 bits.
#[derive(Debug)]
pub struct UnpackedConvolution {
    shape: Shape,
    isa: Isa,
    is_depthwise: bool,
    weights: Activations,
    activations: Activations,
    requantization: Requantization,
    tasks: usize,
}

/// Operations that are worth a task of their own.
const OPERATIONS_PER_TASK: u64 = 200_000;

/// Values of scratch memory that no one minds.
const SMALL_SCRATCH: usize = 1 << 18;

impl UnpackedConvolution {
    /// Cuts the work. `weights` are what the filter will be; `is_depthwise` is its layout.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If the shape is not valid, or not depthwise where it is said to be; if a number is out of its
    /// type's range.
    pub fn prepare(
        shape: &Shape,
        is_depthwise: bool,
        weights: Activations,
        activations: Activations,
        requantization: Requantization,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        shape.check();
        weights.check();
        activations.check();
        requantization.check(shape.output_channels, activations.signedness);
        assert!(
            !is_depthwise || shape.groups == shape.input_channels.max(1),
            "groups of a depthwise convolution"
        );
        let worth = usize::try_from(shape.operations() / OPERATIONS_PER_TASK);
        let tasks = even_tasks(worth.unwrap_or(usize::MAX), preparation.threads(), TASKS_BY_THREAD);
        // Each has a window of its own, of all of which there should not be much more than weights.
        let window = shape.taps().saturating_mul(shape.input_channels).max(shape.output_channels);
        let affordable = SMALL_SCRATCH.max(shape.filter_values().saturating_mul(4));
        let tasks = tasks.min(affordable / window.max(1));
        let prepared = Self {
            shape: *shape,
            isa: Isa::of(preparation.set()),
            is_depthwise,
            weights,
            activations,
            requantization,
            tasks: tasks.clamp(1, (shape.batch * shape.output[0]).max(1)),
        };
        // A filter's values are few enough that a task's lines, which are no more, can be counted.
        let [weights, of_pixel] = prepared.lines();
        let of_pixels = of_pixel.checked_mul(prepared.tasks).and_then(|it| it.checked_add(weights));
        preparation.check_scratch::<Line>(&[of_pixels.unwrap_or(usize::MAX)])?;
        Ok(prepared)
    }

    /// Lines of scratch memory for the weights, and for what each task keeps of a pixel: the sums of
    /// all channels if it is depthwise, and otherwise the window.
    fn lines(&self) -> [usize; 2] {
        let shape = &self.shape;
        let of_pixel = match self.is_depthwise {
            true => shape.output_channels * size_of::<i32>(),
            false => shape.taps() * shape.input_channels * size_of::<i16>(),
        };
        let weights = shape.filter_values() * size_of::<i16>();
        [weights.div_ceil(LINE_BYTES), of_pixel.div_ceil(LINE_BYTES)]
    }

    /// As [`ImageKernel::run`], of a filter and a bias that are none of the other inputs. The filter is `[output_channels,
    /// filter[0], filter[1], input_channels / groups]`, or of a depthwise convolution `[1, filter[0], filter[1],
    /// output_channels]`.
    ///
    /// # Panics
    /// As of [`ImageKernel::run`].
    pub fn run_with(
        &self,
        team: &mut Team,
        images: Images<'_, u8>,
        (filter, bias): (&[u8], &[i32]),
        scratch: &mut [Line],
    ) {
        let Images { input, output, .. } = images;
        let shape = &self.shape;
        input.check("input", shape.input_pixels(), shape.input_channels);
        assert_eq!(filter.len(), shape.filter_values(), "weights");
        assert_eq!(bias.len(), shape.output_channels, "biases");
        let channels = shape.output_channels;
        let needed = output.check("output", shape.output_pixels(), channels);
        if needed == 0 {
            return;
        }
        let [weight_lines, pixel_lines] = self.lines();
        let (weights, of_pixels) = scratch.split_at_mut(weight_lines);
        let weights = &mut bytemuck::cast_slice_mut::<_, i16>(weights)[..filter.len()];
        for_each_slice(team, weights, 16 << 10, |start, to| {
            let from = &filter[start..start + to.len()];
            self.isa.run(Centring { of: self.weights, from, to });
        });
        let weights = &*weights;
        let (output, step) = (DisjointOutput::new(output.values), output.pixel_stride);
        for_each_task(team, self.tasks, (of_pixels, pixel_lines), |task, of_pixel, stop| {
            let mut pace = Pace::new(stop);
            for line in part(shape.batch * shape.output[0], self.tasks, task) {
                for x in 0..shape.output[1] {
                    if pace.is_over(shape.filter_values()) {
                        return;
                    }
                    let start = (line * shape.output[1] + x) * step;
                    // SAFETY: the pixels of different tasks are different.
                    let to = unsafe { output.slice(start, channels) };
                    let pixel = Pixel { convolution: self, input, at: [line, x], weights, bias };
                    if self.is_depthwise {
                        let sums = &mut bytemuck::cast_slice_mut(of_pixel)[..channels];
                        self.isa.run(Depthwise { pixel, sums, to, pace: &mut pace });
                    } else {
                        let values = shape.taps() * shape.input_channels;
                        let window = &mut bytemuck::cast_slice_mut(of_pixel)[..values];
                        self.isa.run(Full { pixel, window, to, pace: &mut pace });
                    }
                }
            }
        });
    }
}

/// Inputs: the image, the filter and the bias.
impl ImageKernel for UnpackedConvolution {
    type Element = u8;

    fn name(&self) -> String {
        let operation = self.shape.name(self.is_depthwise);
        format!("{operation} direct with packing {}", self.activations.signedness.name())
    }

    fn run(&self, team: &mut Team, images: Images<'_, u8>, scratch: &mut [Line]) {
        let filter = (images.others.of(1), images.others.of(2));
        self.run_with(team, images, filter, scratch);
    }

    fn scratch_bytes(&self) -> usize {
        let [weights, of_pixel] = self.lines();
        (weights + self.tasks * of_pixel) * LINE_BYTES
    }

    fn arithmetic(&self) -> u64 {
        self.shape.operations()
    }
}

/// Takes the zero point from numbers.
struct Centring<'a> {
    of: Activations,
    from: &'a [u8],
    to: &'a mut [i16],
}

impl Kernel for Centring<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for (to, from) in self.to.iter_mut().zip(self.from) {
            *to = self.of.signedness.centred(self.of.zero_point, *from);
        }
    }
}

/// An output pixel, in a line of all images.
#[derive(Clone, Copy)]
struct Pixel<'a> {
    convolution: &'a UnpackedConvolution,
    input: Image<'a, u8>,
    at: [usize; 2],
    weights: &'a [i16],
    bias: &'a [i32],
}

impl<'a> Pixel<'a> {
    /// What it sees: taps that are in the image, and the input pixel's channels of each.
    #[inline(always)]
    fn taps(self) -> impl Iterator<Item = (usize, &'a [u8])> + Clone {
        let shape = &self.convolution.shape;
        let [line, x] = self.at;
        let (image, y) = (line / shape.output[0], line % shape.output[0]);
        let [top, left] = [(0, y), (1, x)].map(|(axis, at)| at * shape.stride[axis]);
        let columns = shape.seen_taps(1, x);
        shape.seen_taps(0, y).flat_map(move |i| {
            let input_y = top + i * shape.dilation[0] - shape.padding_before[0];
            columns.clone().map(move |j| {
                let input_x = left + j * shape.dilation[1] - shape.padding_before[1];
                let start = shape.input_pixel([image, input_y, input_x]) * self.input.pixel_stride;
                let values = &self.input.values[start..start + shape.input_channels];
                (i * shape.filter[1] + j, values)
            })
        })
    }

    #[inline(always)]
    fn output(&self, sum: i32, channel: usize) -> u8 {
        let UnpackedConvolution { requantization, activations, .. } = self.convolution;
        activations.signedness.byte(requantization.apply(sum, channel))
    }
}

/// All channels of a pixel, each a sum over the channels of its group.
struct Full<'a, 'p> {
    pixel: Pixel<'a>,
    /// What a pixel sees less the zero point, group by group as the weights of a channel are stored.
    window: &'a mut [i16],
    to: &'a mut [u8],
    pace: &'a mut Pace<'p>,
}

impl Kernel for Full<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Pixel { convolution, weights, bias, .. } = self.pixel;
        let UnpackedConvolution { shape, activations, .. } = convolution;
        let depth = shape.group_input_channels();
        let seen = shape.taps() * depth;
        for block in self.pace.blocks(self.window.len(), 1) {
            self.window[block].fill(0);
        }
        for (tap, values) in self.pixel.taps() {
            if self.pace.is_over(1) {
                return;
            }
            for (group, values) in values.chunks_exact(depth.max(1)).enumerate() {
                let to = &mut self.window[group * seen + tap * depth..][..depth];
                for block in self.pace.blocks(depth, 1) {
                    for (to, value) in to[block.clone()].iter_mut().zip(&values[block]) {
                        *to = activations.signedness.centred(activations.zero_point, *value);
                    }
                }
            }
        }
        for (channel, to) in self.to.iter_mut().enumerate() {
            if self.pace.is_over(1) {
                return;
            }
            let first = channel / shape.group_output_channels() * seen;
            let window = &self.window[first..first + seen];
            let weights = &weights[channel * seen..][..seen];
            let mut sum = 0_i32;
            for block in self.pace.blocks(seen, 1) {
                let products = window[block.clone()].iter().zip(&weights[block]);
                let of_block = products.fold(0_i32, |sum, (value, weight)| {
                    sum.wrapping_add(i32::from(*value) * i32::from(*weight))
                });
                sum = sum.wrapping_add(of_block);
            }
            *to = self.pixel.output(bias[channel].wrapping_add(sum), channel);
        }
    }
}

/// All channels of a pixel, each a sum over the taps of one channel.
struct Depthwise<'a, 'p> {
    pixel: Pixel<'a>,
    sums: &'a mut [i32],
    to: &'a mut [u8],
    pace: &'a mut Pace<'p>,
}

impl Kernel for Depthwise<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Pixel { convolution, weights, bias, .. } = self.pixel;
        let UnpackedConvolution { shape, activations, .. } = convolution;
        let (channels, multiplier) = (shape.output_channels, shape.group_output_channels());
        self.sums.copy_from_slice(bias);
        for (tap, values) in self.pixel.taps() {
            if self.pace.is_over(1) {
                return;
            }
            let weights = &weights[tap * channels..][..channels];
            let add = |sum: &mut i32, value: u8, weight: i16| {
                let value =
                    i32::from(activations.signedness.centred(activations.zero_point, value));
                *sum = sum.wrapping_add(value * i32::from(weight));
            };
            for block in self.pace.blocks(values.len(), multiplier) {
                let of_block = block.start * multiplier..block.end * multiplier;
                let (sums, weights) = (&mut self.sums[of_block.clone()], &weights[of_block]);
                let values = &values[block];
                if multiplier == 1 {
                    for ((sum, value), weight) in sums.iter_mut().zip(values).zip(weights) {
                        add(sum, *value, *weight);
                    }
                    continue;
                }
                let of_channels = sums.chunks_mut(multiplier).zip(weights.chunks(multiplier));
                for ((sums, weights), value) in of_channels.zip(values) {
                    for (sum, weight) in sums.iter_mut().zip(weights) {
                        add(sum, *value, *weight);
                    }
                }
            }
        }
        for (channel, (sum, to)) in self.sums.iter().zip(self.to).enumerate() {
            *to = self.pixel.output(*sum, channel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convolution::float::tests::{any_shape, depthwise, turned};
    use crate::convolution::quantized::{Convolution, Layer};
    use crate::quantization::{Signedness, Weights};
    use crate::{ImageMut, InstructionSet, Lines, Multiplier};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 150 }))]

        #[test]
        fn weights_may_come_with_the_image(
            shape in any_shape(), multiplier in 0_usize..3, gaps in [0_usize..2, 0_usize..2],
            threads in 1_usize..4, is_signed: [bool; 2], zero_points: [u8; 3], seed: u64,
        ) {
            // With a multiplier it is depthwise.
            let shape = depthwise(shape, multiplier);
            let signed = is_signed.map(|it| if it { Signedness::Signed } else { Signedness::Unsigned });
            let [activations, of_weights] = [0, 1].map(|index: usize| Activations {
                signedness: signed[index],
                zero_point: signed[index].value(zero_points[index]),
            });
            let mut random = fastrand::Rng::with_seed(seed);
            let mut bytes = |count: usize| -> Vec<u8> { (0..count).map(|_| random.u8(..)).collect() };
            let strides = [shape.input_channels + gaps[0], shape.output_channels + gaps[1]];
            let values = bytes(shape.input_pixels() * strides[0]);
            let by_channel = bytes(shape.filter_values());
            let weights = match multiplier {
                0 => by_channel.clone(),
                _ => turned(&by_channel, [shape.output_channels, shape.taps()]),
            };
            let bias: Vec<i32> = (0..shape.output_channels).map(|_| random.i32(-999..999)).collect();
            let requantization = Requantization {
                multipliers: vec![Multiplier { mantissa: random.i32(1 << 30..), exponent: -8 }],
                ..Requantization::by(1.0, signed[0].value(zero_points[2]), signed[0])
            };
            let input = Image { values: &values, pixel_stride: strides[0] };
            let blank = || vec![77; shape.output_pixels() * strides[1]];
            let mut expected = blank();
            let mut preparation = Preparation::new(InstructionSet::Portable, 1);
            let layer = Layer {
                weights: Weights {
                    values: &by_channel,
                    signedness: of_weights.signedness,
                    zero_point: of_weights.zero_point,
                },
                bias: &bias,
                activations,
                requantization: requantization.clone(),
            };
            let packed = Convolution::prepare(&shape, layer, &mut preparation).unwrap();
            drop(preparation);
            let output = ImageMut { values: &mut expected, pixel_stride: strides[1] };
            packed.run(&mut Team::alone(), Images::new(input, output), &mut []);
            for set in InstructionSet::available() {
                let kernel = UnpackedConvolution::prepare(
                    &shape, multiplier > 0, of_weights, activations, requantization.clone(),
                    &mut Preparation::new(set, threads),
                ).unwrap();
                let mut found = blank();
                let mut scratch = Lines::with_bytes(kernel.scratch_bytes());
                let output = ImageMut { values: &mut found, pixel_stride: strides[1] };
                let mut team = Team::new(threads);
                let images = Images::new(input, output);
                kernel.run_with(&mut team, images, (&weights, &bias), scratch.lines_mut());
                prop_assert_eq!(&found, &expected, "{}", set);
            }
        }
    }
}
