//! [`Convolution3d`].

use super::{Convolution, Layer};
use crate::convolution::Shape;
use crate::image_kernel::{ImageKernel, Images};
use crate::preparation::product;
use crate::sharing::{Cut, ELEMENTS_OF_COPY, for_each_rows};
use crate::{Image, LINE_BYTES, Line, Preparation, Team, TooLarge};

/// The sizes of a convolution of volumes `[batch, depth, height, width, channels]` along their depth, as of a
/// [`Shape`] along the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    /// How many volumes.
    pub batch: usize,
    /// Of the input.
    pub input: usize,
    /// Of the output.
    pub output: usize,
    /// Of the filter.
    pub filter: usize,
    /// From one output plane to the next, in input planes; at least 1.
    pub stride: usize,
    /// From one filter plane to the next, in input planes; at least 1.
    pub dilation: usize,
    /// Planes in front of the input that count as zero.
    pub padding_before: usize,
}

/// A convolution of volumes of float32. The planes that an output plane sees are copied side by side, as channels of one
/// image, of which it is a convolution of images.
#[derive(Debug)]
pub struct Convolution3d {
    depth: Depth,
    /// Of the images that are made.
    shape: Shape,
    convolution: Convolution,
}

impl Depth {
    /// The shape of the convolution of images, from that of a plane.
    fn of_images(&self, plane: &Shape) -> Shape {
        Shape {
            batch: self.batch.saturating_mul(self.output),
            input_channels: plane.input_channels.saturating_mul(self.filter),
            ..*plane
        }
    }

    /// Whether there is a kernel for convolutions that are this along planes of this shape, whose batch is 1: none for
    /// what copies far more than it reads and writes, sees mostly padding, or is beyond memory.
    pub fn suits(&self, plane: &Shape) -> bool {
        let shape = self.of_images(plane);
        let input = product(&[self.batch, self.input, plane.input_pixels(), plane.input_channels]);
        let Some(input) = input.filter(|_| shape.is_valid()) else { return false };
        let [copied, output] = [
            shape.input_pixels() * shape.input_channels,
            shape.output_pixels() * shape.output_channels,
        ];
        !shape.is_mostly_padding() && Shape::is_small_beside(copied, input.saturating_add(output))
    }

    /// The plane of the input that an output plane sees through a plane of the filter, or none if it is padding.
    fn position(&self, output: usize, tap: usize) -> Option<usize> {
        let position =
            output.checked_mul(self.stride)?.checked_add(tap.checked_mul(self.dilation)?)?;
        position.checked_sub(self.padding_before).filter(|at| *at < self.input)
    }
}

impl Convolution3d {
    /// Packs the filter, `[depth, height, width, input channels, output channels]`, and the bias, and cuts the work.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If the depth does not [suit](Depth::suits) the planes, or the filter or the bias is not as large as they say.
    pub fn prepare(
        depth: Depth,
        plane: &Shape,
        layer: Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        assert!(depth.suits(plane), "not the sizes of a convolution of volumes");
        let shape = depth.of_images(plane);
        layer.check(shape.filter_values(), shape.output_channels, preparation);
        let [taps, channels, results] = [shape.taps(), plane.input_channels, shape.output_channels];
        let mut filter = preparation.zeros(shape.filter_values(), "a filter")?;
        let mut pace = preparation.pace();
        for (index, values) in layer.filter.chunks_exact(results.max(1)).enumerate() {
            if pace.is_over(results) {
                break;
            }
            let (pixel, channel) = (index / channels, index % channels);
            let (plane, tap) = (pixel / taps, pixel % taps);
            let place = (tap * depth.filter + plane) * channels + channel;
            for (filter, value) in filter.chunks_exact_mut(taps * shape.input_channels).zip(values)
            {
                filter[place] = *value;
            }
        }
        let layer = Layer { filter: &filter, ..layer };
        let convolution = Convolution::prepare(&shape, shape.input_channels, layer, preparation)?;
        let prepared = Self { depth, shape, convolution };
        preparation.check_scratch::<u8>(&[prepared.scratch_bytes()])?;
        Ok(prepared)
    }

    /// Values of the images that are made.
    fn copied(&self) -> usize {
        self.shape.input_pixels() * self.shape.input_channels
    }

    /// Makes the images.
    fn copy(&self, team: &mut Team, input: Image<'_, f32>, images: &mut [f32]) {
        let Self { depth, shape, .. } = self;
        let pixels = shape.input[0] * shape.input[1];
        let (stacked, channels) =
            (shape.input_channels, shape.input_channels / depth.filter.max(1));
        let cut = Cut { each: pixels * stacked, least: ELEMENTS_OF_COPY, multiple: 1 };
        for_each_rows(team, (images, pixels * stacked), cut, |part, images, mut pace| {
            for (index, image) in part.zip(images.chunks_exact_mut(pixels * stacked)) {
                let (batch, output) = (index / depth.output, index % depth.output);
                for tap in 0..depth.filter {
                    let from = depth.position(output, tap);
                    let from = from.map(|at| (batch * depth.input + at) * pixels);
                    for block in pace.blocks(pixels, channels) {
                        for pixel in block {
                            let to = &mut image[pixel * stacked + tap * channels..][..channels];
                            match from {
                                None => to.fill(0.0),
                                Some(first) => {
                                    let from = (first + pixel) * input.pixel_stride;
                                    for (to, from) in to.iter_mut().zip(&input.values[from..]) {
                                        *to = *from;
                                    }
                                }
                            }
                        }
                    }
                }
            }
        });
    }
}

/// Inputs: the volumes.
impl ImageKernel for Convolution3d {
    type Element = f32;

    fn name(&self) -> String {
        let [height, width] = self.shape.filter;
        format!("conv3d {}x{height}x{width} {}", self.depth.filter, self.convolution.kernel())
    }

    fn run(&self, team: &mut Team, images: Images<'_, f32>, scratch: &mut [Line]) {
        let Images { input, output, .. } = images;
        let channels = self.shape.input_channels / self.depth.filter.max(1);
        let planes = self.depth.batch * self.depth.input;
        input.check("input", planes * self.shape.input[0] * self.shape.input[1], channels);
        let lines = (self.copied() * size_of::<f32>()).div_ceil(LINE_BYTES);
        let (copies, scratch) = scratch.split_at_mut(lines);
        let copies = &mut bytemuck::cast_slice_mut(copies)[..self.copied()];
        self.copy(team, input, copies);
        let input = Image::contiguous(copies, self.shape.input_channels);
        self.convolution.run(team, Images::new(input, output), scratch);
    }

    fn scratch_bytes(&self) -> usize {
        let copied = (self.copied() * size_of::<f32>()).next_multiple_of(LINE_BYTES);
        copied.saturating_add(self.convolution.scratch_bytes())
    }

    fn arithmetic(&self) -> u64 {
        self.convolution.arithmetic()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convolution::float::tests::numbers;
    use crate::{Epilogue, ImageMut, InstructionSet, Lines};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn volumes_by_the_definition(
            batch in 0_usize..3, sizes in prop::array::uniform3(1_usize..6), filter in prop::array::uniform3(1_usize..4),
            stride in prop::array::uniform3(1_usize..3), dilation in prop::array::uniform3(1_usize..3),
            padding in prop::array::uniform3(0_usize..3), channels in [1_usize..4, 1_usize..6], gaps in [0_usize..2, 0_usize..2],
            seed: u64,
        ) {
            // Behind as much padding as in front.
            let output: [usize; 3] = std::array::from_fn(|axis| {
                let covered = (filter[axis] - 1) * dilation[axis] + 1;
                (sizes[axis] + 2 * padding[axis]).checked_sub(covered).map_or(0, |it| it / stride[axis] + 1)
            });
            let [inputs, results] = channels;
            let depth = Depth {
                batch, input: sizes[0], output: output[0], filter: filter[0], stride: stride[0], dilation: dilation[0],
                padding_before: padding[0],
            };
            let plane = Shape {
                batch: 1, input: [sizes[1], sizes[2]], input_channels: inputs, output: [output[1], output[2]],
                output_channels: results, filter: [filter[1], filter[2]], stride: [stride[1], stride[2]],
                dilation: [dilation[1], dilation[2]], padding_before: [padding[1], padding[2]], groups: 1,
            };
            prop_assume!(depth.suits(&plane));
            let strides = [inputs + gaps[0], results + gaps[1]];
            let values = numbers(seed, batch * sizes.iter().product::<usize>() * strides[0]);
            let weights = numbers(seed ^ 1, filter.iter().product::<usize>() * inputs * results);
            let bias = numbers(seed ^ 2, results);
            let places = batch * output.iter().product::<usize>();
            let mut expected = vec![7.0; places * strides[1]];
            for place in 0..places {
                let at = [place / output[2] / output[1] % output[0], place / output[2] % output[1], place % output[2]];
                let volume = place / output.iter().product::<usize>();
                for result in 0..results {
                    let mut sum = f64::from(bias[result]);
                    for tap in 0..filter.iter().product() {
                        let of_tap = [tap / filter[2] / filter[1], tap / filter[2] % filter[1], tap % filter[2]];
                        let seen: [usize; 3] = std::array::from_fn(|axis| {
                            (at[axis] * stride[axis] + of_tap[axis] * dilation[axis]).wrapping_sub(padding[axis])
                        });
                        if seen.iter().zip(&sizes).all(|(seen, size)| seen < size) {
                            let pixel = ((volume * sizes[0] + seen[0]) * sizes[1] + seen[1]) * sizes[2] + seen[2];
                            for channel in 0..inputs {
                                let weight = weights[(tap * inputs + channel) * results + result];
                                sum += f64::from(values[pixel * strides[0] + channel]) * f64::from(weight);
                            }
                        }
                    }
                    #[allow(clippy::cast_possible_truncation)]
                    let sum = sum as f32;
                    expected[place * strides[1] + result] = sum.max(-0.5);
                }
            }
            for set in InstructionSet::available() {
                for threads in [1, 2] {
                    let epilogue = Epilogue { min: -0.5, ..Epilogue::NONE };
                    let layer = Layer { filter: &weights, bias: &bias, epilogue };
                    let mut preparation = Preparation::new(set, threads);
                    let kernel = Convolution3d::prepare(depth, &plane, layer, &mut preparation).unwrap();
                    drop(preparation);
                    let mut found = vec![7.0; places * strides[1]];
                    let mut scratch = Lines::with_bytes(kernel.scratch_bytes());
                    let input = Image { values: &values, pixel_stride: strides[0] };
                    let output = ImageMut { values: &mut found, pixel_stride: strides[1] };
                    kernel.run(&mut Team::new(threads), Images::new(input, output), scratch.lines_mut());
                    for (found, expected) in found.iter().zip(&expected) {
                        prop_assert!((found - expected).abs() < 1e-4, "{}: {} not {}", set, found, expected);
                    }
                }
            }
        }
    }
}
