//! [`UnpackedConvolution`] of float32 images.

use crate::convolution::Shape;
use crate::convolution::float::taps::{Access, Taps};
use crate::depthwise::float::{Direct, Wide};
use crate::gemm::float::{Arguments, Blocking, Epilogue, Gemm, Panels, Unpacked};
use crate::image_kernel::{ImageKernel, Images};
use crate::vector::Isa;
use crate::{InstructionSet, LINE_BYTES, Line, Preparation, Team, TooLarge};

/// A convolution whose filter and bias are known only when it is run: all threads pack them into
/// scratch memory first.
#[derive(Debug)]
pub struct UnpackedConvolution {
    shape: Shape,
    set: InstructionSet,
    is_depthwise: bool,
    method: Method,
}

#[derive(Debug)]
enum Method {
    Product { gemm: Gemm, access: Access, zeros: Vec<f32> },
    Depthwise(Direct),
    Wide(Wide),
}

impl UnpackedConvolution {
    /// Cuts the work. The input's pixels have a stride of `input_pixel_stride` values; `is_depthwise` is
    /// the layout of the filter.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If the shape is not [valid](Shape::is_valid), or not depthwise where it is said to be.
    pub fn prepare(
        shape: &Shape,
        input_pixel_stride: usize,
        is_depthwise: bool,
        epilogue: Epilogue,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        shape.check();
        assert!(
            !is_depthwise || shape.groups == shape.input_channels.max(1),
            "groups of a depthwise convolution"
        );
        let (set, threads) = (preparation.set(), preparation.threads());
        let stride = input_pixel_stride;
        let method = if is_depthwise && Direct::suits(shape, preparation.set()) {
            let columns = [1, shape.output_channels];
            let panels = Panels::at_run_time(Direct::blocking(set), shape.taps(), columns)?;
            Method::Depthwise(Direct::new(shape, stride, panels, epilogue, preparation)?)
        } else if is_depthwise && Wide::suits(shape) {
            Method::Wide(Wide::new(shape, stride, epilogue, preparation))
        } else {
            let blocking = Blocking::of(set);
            let depth = shape.taps() * shape.group_input_channels();
            let columns = [shape.groups, shape.group_output_channels()];
            let access = Access::of(shape, stride == shape.input_channels);
            let rows = access.plan(shape, stride, blocking.rows)?;
            let panels = Panels::at_run_time(blocking, depth, columns)?;
            let gemm = Gemm::new(set, threads, rows, panels, epilogue);
            Method::Product { gemm, access, zeros: access.zeros(shape, preparation)? }
        };
        let prepared = Self { shape: *shape, set, is_depthwise, method };
        let scratch = prepared.checked_scratch_bytes().unwrap_or(usize::MAX);
        preparation.check_scratch::<u8>(&[scratch])?;
        Ok(prepared)
    }

    /// Algorithm, type and instruction set, for profiles.
    pub fn kernel(&self) -> String {
        let algorithm = match &self.method {
            Method::Product { access: Access::Plain, .. } => "gemm",
            Method::Product { .. } => "indirect gemm",
            Method::Depthwise(_) => "direct",
            Method::Wide(_) => return Wide::kernel(self.set),
        };
        format!("{algorithm} with packing f32 {}", self.set)
    }

    /// What is packed before the convolution.
    fn panels(&self) -> Option<&Panels> {
        match &self.method {
            Method::Product { gemm, .. } => Some(gemm.panels()),
            Method::Depthwise(direct) => Some(direct.panels()),
            Method::Wide(_) => None,
        }
    }

    /// Lines of scratch memory for the panels.
    fn panel_lines(&self) -> usize {
        self.panels().map_or(0, |it| (it.count_values() * size_of::<f32>()).div_ceil(LINE_BYTES))
    }

    fn checked_scratch_bytes(&self) -> Option<usize> {
        let of_product = match &self.method {
            Method::Product { gemm, .. } => gemm.checked_scratch_bytes()?,
            Method::Depthwise(_) | Method::Wide(_) => 0,
        };
        (self.panel_lines() * LINE_BYTES).checked_add(of_product)
    }
}

/// Inputs: the image, the filter, `[output_channels, filter height, filter width, input channels of a group]` or depthwise `[1, filter
/// height, filter width, output_channels]`, the bias, and the residual operand if there is one.
impl ImageKernel for UnpackedConvolution {
    type Element = f32;
    const RESIDUAL: Option<usize> = Some(3);

    fn name(&self) -> String {
        format!("{} {}", self.shape.name(self.is_depthwise), self.kernel())
    }

    fn run(&self, team: &mut Team, images: Images<'_, f32>, scratch: &mut [Line]) {
        let [weights, bias] = [images.others.of(1), images.others.of(2)];
        let (panels, scratch) = scratch.split_at_mut(self.panel_lines());
        let panels: &mut [f32] = bytemuck::cast_slice_mut(panels);
        // A depthwise filter is stored by rows, of which those of all groups have the same taps.
        let columns = Unpacked { weights, are_rows: self.is_depthwise, bias };
        if let Some(of_columns) = self.panels() {
            of_columns.fill(Isa::of(self.set), team, columns, panels);
        }
        match &self.method {
            Method::Product { gemm, access, zeros } => {
                let Images { input, residual, output, .. } = images;
                let rows = Taps::new(&self.shape, *access, input, zeros);
                let arguments = Arguments { rows: &rows, residual, output, scratch };
                gemm.run_with(team, panels, arguments);
            }
            Method::Depthwise(direct) => direct.run(team, panels, images),
            Method::Wide(wide) => wide.run(team, [weights, bias], images),
        }
    }

    fn scratch_bytes(&self) -> usize {
        self.checked_scratch_bytes().expect("checked when it was prepared")
    }

    fn arithmetic(&self) -> u64 {
        self.shape.operations()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convolution::float::tests::{
        any_shape, compare, defined, depthwise, numbers, turned,
    };
    use crate::{Image, ImageMut, Inputs, Lines};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 150 }))]

        #[test]
        fn a_filter_may_come_with_the_image(
            shape in any_shape(), multiplier in 0_usize..3, gaps in [0_usize..2, 0_usize..2],
            (with_residual, is_large) in any::<(bool, bool)>(), threads in 1_usize..4, seed: u64,
        ) {
            // With a multiplier it is depthwise, also with filters of very many taps.
            let many = usize::from(multiplier > 0 && is_large) * 8;
            let shape = Shape { filter: shape.filter.map(|taps| taps + many), ..shape };
            let shape = depthwise(shape, multiplier);
            let stride = shape.input_channels + gaps[0];
            let output_stride = shape.output_channels + gaps[1];
            let values = numbers(seed, shape.input_pixels() * stride);
            let input = Image { values: &values, pixel_stride: stride };
            let by_channel = numbers(seed ^ 1, shape.filter_values());
            let weights = match multiplier {
                0 => by_channel.clone(),
                _ => turned(&by_channel, [shape.output_channels, shape.taps()]),
            };
            let bias = numbers(seed ^ 2, shape.output_channels);
            let residual = numbers(seed ^ 3, shape.output_pixels() * output_stride);
            let expected = defined(&shape, input, &by_channel, &bias);
            for set in InstructionSet::available() {
                let kernel = UnpackedConvolution::prepare(
                    &shape, stride, multiplier > 0, Epilogue::NONE,
                    &mut Preparation::new(set, threads),
                ).unwrap();
                let mut output = vec![-77.0; shape.output_pixels() * output_stride];
                let mut scratch = Lines::with_bytes(kernel.scratch_bytes());
                let others: &[&[u8]] =
                    &[&[], bytemuck::cast_slice(&weights), bytemuck::cast_slice(&bias)];
                let images = Images {
                    residual: with_residual
                        .then_some(Image { values: &residual, pixel_stride: output_stride }),
                    others: Inputs::new(&others),
                    ..Images::new(input, ImageMut { values: &mut output, pixel_stride: output_stride })
                };
                kernel.run(&mut Team::new(threads), images, scratch.lines_mut());
                let channels = shape.output_channels;
                compare(&output, [output_stride, channels], 0.0, &kernel.kernel(), |pixel, channel| {
                    let added = f64::from(residual[pixel * output_stride + channel]);
                    expected[pixel * channels + channel].0 + if with_residual { added } else { 0.0 }
                });
            }
        }
    }
}
