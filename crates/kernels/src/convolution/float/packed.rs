//! [`Convolution`]: weights that are known when it is prepared.

use super::narrow::Narrow;
use super::taps::{Access, Taps};
use super::winograd::Winograd;
use crate::convolution::Shape;
use crate::gemm::float::few_columns::{self, FewColumns};
use crate::gemm::float::{
    Arguments, Blocking, Epilogue, PackedProduct, Panels, PlainRows, RowsPlan,
};
use crate::image::values_needed;
use crate::{Image, ImageMut, InstructionSet, Line, Preparation, Team, TooLarge};

/// A convolution with its filter packed and its work cut into tasks.
#[derive(Debug)]
pub struct Convolution {
    shape: Shape,
    set: InstructionSet,
    pub(super) method: Method,
}

#[derive(Debug)]
pub(super) enum Method {
    /// A row of the product is an input pixel.
    Pixels(PackedProduct),
    /// A row of the product is what an output pixel sees.
    Taps { product: PackedProduct, access: Access, zeros: Vec<f32> },
    /// Few output channels: a row of the product is what an output pixel sees, or without `access` an input pixel.
    FewOutputs { product: FewColumns, access: Option<Access>, zeros: Vec<f32> },
    /// A tile of pixels of an image of few channels, row by row of it.
    Narrow(Narrow),
    /// Transforms around products of fewer values.
    Winograd(Winograd),
}

impl Convolution {
    /// Packs the filter, `[output_channels, filter height, filter width, input channels of a group]`,
    /// and the bias, one for each output channel, and cuts the work. The input's pixels will be
    /// `input_pixel_stride` values from one to the next.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If the shape is not [valid](Shape::is_valid) or the filter or the bias is not as large as it
    /// says.
    pub fn prepare(
        shape: &Shape,
        input_pixel_stride: usize,
        filter: &[f32],
        bias: &[f32],
        epilogue: Epilogue,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        shape.check();
        preparation.check_count(filter.len(), shape.filter_values(), "values of the filter");
        assert_eq!(bias.len(), shape.output_channels, "values of the bias");
        let set = preparation.set();
        if preparation.allows_winograd() && Winograd::suits(shape, set) {
            let winograd = Winograd::new(shape, filter, bias, epilogue, preparation)?;
            return Ok(Self { shape: *shape, set, method: Method::Winograd(winograd) });
        }
        if let Some(method) =
            Self::of_few_outputs(shape, input_pixel_stride, [filter, bias], epilogue, preparation)?
        {
            return Ok(Self { shape: *shape, set, method });
        }
        let contiguous = input_pixel_stride == shape.input_channels;
        let is_narrow = !shape.is_matrix_product() && Narrow::suits(shape, contiguous);
        let depth = shape.taps() * shape.group_input_channels();
        let columns = [shape.groups, shape.group_output_channels()];
        if is_narrow {
            let (blocking, bias) = (Blocking::of(set), |n: usize| bias[n]);
            let panels = Panels::pack_columns(preparation, blocking, depth, columns, bias, filter)?;
            let narrow = Narrow::new(shape, panels, epilogue, preparation)?;
            return Ok(Self { shape: *shape, set, method: Method::Narrow(narrow) });
        }
        let blocking = Blocking::for_columns(set, shape.group_output_channels());
        let product = |scratch_values, preparation: &mut Preparation| {
            let rows = Self::rows(shape, input_pixel_stride, scratch_values);
            let rows = (rows, shape.output[0] * shape.output[1]);
            let sizes = (depth, columns);
            PackedProduct::new(rows, blocking, sizes, [filter, bias], epilogue, preparation)
        };
        let method = if shape.is_matrix_product() {
            Method::Pixels(product(0, preparation)?)
        } else {
            let access = Access::of(shape, contiguous);
            Method::Taps {
                product: product(access.scratch_values(shape, blocking.rows)?, preparation)?,
                access,
                zeros: preparation.filled(0.0, Taps::zeros_needed(shape, access)?, "zeros")?,
            }
        };
        Ok(Self { shape: *shape, set, method })
    }

    /// The method for few output channels, if it suits.
    fn of_few_outputs(
        shape: &Shape,
        input_pixel_stride: usize,
        values: [&[f32]; 2],
        epilogue: Epilogue,
        preparation: &mut Preparation,
    ) -> Result<Option<Method>, TooLarge> {
        let contiguous = input_pixel_stride == shape.input_channels;
        let access = (!shape.is_matrix_product()).then(|| Access::of(shape, contiguous));
        let [segments, segment_depth] =
            access.map_or([1, shape.input_channels], |access| access.segments(shape));
        let sizes = few_columns::Sizes { columns: shape.output_channels, segments, segment_depth };
        if shape.groups != 1
            || access == Some(Access::Copies)
            || !FewColumns::suits(preparation.set(), sizes)
        {
            return Ok(None);
        }
        let scratch_values = match access {
            Some(access) => access.scratch_values(shape, sizes.block())?,
            None => 0,
        };
        let zeros = match access {
            Some(access) => preparation.filled(0.0, Taps::zeros_needed(shape, access)?, "zeros")?,
            None => Vec::new(),
        };
        let rows = Self::rows(shape, input_pixel_stride, scratch_values);
        let product = FewColumns::new(rows, sizes, epilogue, values, preparation)?;
        Ok(Some(Method::FewOutputs { product, access, zeros }))
    }

    /// The rows of the product.
    fn rows(shape: &Shape, input_pixel_stride: usize, scratch_values: usize) -> RowsPlan {
        RowsPlan {
            count: shape.output_pixels(),
            line: shape.output_pixels(),
            bytes: values_needed(shape.input_pixels(), shape.input_channels, input_pixel_stride)
                .saturating_mul(size_of::<f32>()),
            scratch_values,
        }
    }

    /// The sizes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Algorithm, type and instruction set, for profiles.
    pub fn kernel(&self) -> String {
        let algorithm = match &self.method {
            Method::Pixels(product) => product.name(),
            Method::Taps { product, access, .. } => {
                let (before, behind) = match access {
                    Access::Pixels => ("indirect ", ""),
                    Access::Spans => ("indirect ", " by rows"),
                    Access::Copies => ("im2col ", ""),
                };
                return format!("{before}{}{behind} f32 {}", product.name(), self.set);
            }
            Method::FewOutputs { .. } => "dot products",
            Method::Winograd(_) => "winograd",
            Method::Narrow(_) => "direct",
        };
        format!("{algorithm} f32 {}", self.set)
    }

    /// Bytes of scratch memory that [`Self::run`] needs.
    pub fn scratch_bytes(&self) -> usize {
        match &self.method {
            Method::Pixels(product) | Method::Taps { product, .. } => product.scratch_bytes(),
            Method::FewOutputs { product, .. } => product.scratch_bytes(),
            Method::Narrow(narrow) => narrow.scratch_bytes(&self.shape),
            Method::Winograd(winograd) => winograd.scratch_bytes(),
        }
    }

    /// Computes the output. The residual operand, of the output's shape, is added before the
    /// epilogue.
    ///
    /// # Panics
    /// If the input, the residual operand, the output or the scratch memory is smaller than the
    /// shape says, or the input's pixels are not at the stride that was prepared for.
    pub fn run(
        &self,
        team: &mut Team,
        input: Image<'_, f32>,
        residual: Option<Image<'_, f32>>,
        output: ImageMut<'_, f32>,
        scratch: &mut [Line],
    ) {
        let shape = &self.shape;
        match &self.method {
            Method::Pixels(product) => {
                let sizes = [shape.input_pixels(), shape.groups, shape.group_input_channels()];
                let rows = PlainRows::new(input.values, sizes, input.pixel_stride);
                product.run(team, Arguments { rows: &rows, residual, output, scratch });
            }
            Method::Taps { product, access, zeros } => {
                let rows = Taps::new(shape, *access, input.values, input.pixel_stride, zeros);
                product.run(team, Arguments { rows: &rows, residual, output, scratch });
            }
            Method::FewOutputs { product, access: None, .. } => {
                let sizes = [shape.input_pixels(), 1, shape.input_channels];
                let rows = PlainRows::new(input.values, sizes, input.pixel_stride);
                product.run(team, Arguments { rows: &rows, residual, output, scratch });
            }
            Method::FewOutputs { product, access: Some(access), zeros } => {
                let rows = Taps::new(shape, *access, input.values, input.pixel_stride, zeros);
                product.run(team, Arguments { rows: &rows, residual, output, scratch });
            }
            Method::Narrow(narrow) => narrow.run(shape, team, input, residual, output, scratch),
            Method::Winograd(winograd) => {
                winograd.run(shape, team, input, residual, output, scratch);
            }
        }
    }
}
