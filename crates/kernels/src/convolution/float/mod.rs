//! [`Convolution`] of float32 images.

mod conv3d;
mod narrow;
mod pass;
mod short_rows;
pub(crate) mod taps;
#[cfg(test)]
pub(crate) mod tests;
mod winograd;

use crate::convolution::Shape;
pub use crate::gemm::float::Layer;
use crate::gemm::float::{Arguments, Blocking, FewColumns, PackedProduct, few_columns};
use crate::image_kernel::{ImageKernel, Images};
use crate::{InstructionSet, Line, Preparation, Team, TooLarge};
pub use conv3d::{Convolution3d, Depth};
use narrow::Narrow;
pub(crate) use pass::Pass;
use short_rows::ShortRows;
use taps::{Access, Taps};
use winograd::Winograd;

/// A convolution with its filter packed and its work cut into tasks.
#[derive(Debug)]
pub struct Convolution {
    shape: Shape,
    set: InstructionSet,
    method: Method,
}

#[derive(Debug)]
enum Method {
    /// A row of the product is what an output pixel sees.
    Product { product: PackedProduct, access: Access, zeros: Vec<f32> },
    /// A tile of pixels of an image of few channels, row by row of it.
    Narrow(Narrow),
    /// Pixels of a few values each, several in a vector.
    Short(ShortRows),
    /// Transforms around products of fewer values.
    Winograd(Winograd),
}

impl Method {
    /// The fastest one.
    fn new(
        shape: &Shape,
        input_pixel_stride: usize,
        layer: Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let set = preparation.set();
        if preparation.allows_winograd()
            && let Some(winograd) = Winograd::new(shape, layer, preparation)?
        {
            return Ok(Self::Winograd(winograd));
        }
        let is_contiguous = input_pixel_stride == shape.input_channels;
        let access = Access::of(shape, is_contiguous);
        let [segments, segment_depth] = access.segments(shape);
        let sizes = few_columns::Sizes { columns: shape.output_channels, segments, segment_depth };
        let is_few = shape.groups == 1 && access != Access::Copies && FewColumns::suits(set, sizes);
        if !is_few && is_contiguous && ShortRows::suits(shape, set) {
            return ShortRows::new(shape, layer, preparation).map(Self::Short);
        }
        let depth = shape.taps() * shape.group_input_channels();
        let columns = [shape.groups, shape.group_output_channels()];
        if !is_few && access != Access::Plain && Narrow::suits(shape, set, is_contiguous) {
            return Narrow::new(shape, layer, preparation).map(Self::Narrow);
        }
        let product = if is_few {
            let rows = access.plan(shape, input_pixel_stride, sizes.block())?;
            let product = FewColumns::new(rows, sizes, layer, preparation)?;
            PackedProduct::FewColumns(product)
        } else {
            let blocking = Blocking::for_columns(set, shape.group_output_channels());
            let rows = access.plan(shape, input_pixel_stride, blocking.rows)?;
            let (rows, sizes) = ((rows, shape.output[0] * shape.output[1]), (depth, columns));
            PackedProduct::new(rows, blocking, sizes, layer, preparation)?
        };
        Ok(Self::Product { product, access, zeros: access.zeros(shape, preparation)? })
    }
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
        layer: Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        shape.check();
        layer.check(shape.filter_values(), shape.output_channels, preparation);
        let method = Method::new(shape, input_pixel_stride, layer, preparation)?;
        Ok(Self { shape: *shape, set: preparation.set(), method })
    }

    /// Algorithm, type and instruction set, for profiles.
    pub fn kernel(&self) -> String {
        let algorithm = match &self.method {
            Method::Product { product, access, .. } => {
                let (before, behind) = match access {
                    Access::Plain => ("", ""),
                    Access::Pixels => ("indirect ", ""),
                    Access::Spans => ("indirect ", " by rows"),
                    Access::Copies => ("im2col ", ""),
                };
                return format!("{before}{}{behind} f32 {}", product.name(), self.set);
            }
            Method::Winograd(_) => "winograd",
            Method::Narrow(_) | Method::Short(_) => "direct",
        };
        format!("{algorithm} f32 {}", self.set)
    }
}

/// Inputs: the image, and the residual operand if there is one.
impl ImageKernel for Convolution {
    type Element = f32;
    const RESIDUAL: Option<usize> = Some(1);

    fn name(&self) -> String {
        format!("{} {}", self.shape.name(false), self.kernel())
    }

    fn run(&self, team: &mut Team, images: Images<'_, f32>, scratch: &mut [Line]) {
        let shape = &self.shape;
        match &self.method {
            Method::Product { product, access, zeros } => {
                let Images { input, residual, output, .. } = images;
                let rows = Taps::new(shape, *access, input, zeros);
                product.run(team, Arguments { rows: &rows, residual, output, scratch });
            }
            Method::Narrow(narrow) => narrow.run(team, images, scratch),
            Method::Short(short) => short.run(team, images),
            Method::Winograd(winograd) => winograd.run(team, images, scratch),
        }
    }

    fn scratch_bytes(&self) -> usize {
        match &self.method {
            Method::Product { product, .. } => product.scratch_bytes(),
            Method::Narrow(narrow) => narrow.scratch_bytes(),
            Method::Short(_) => 0,
            Method::Winograd(winograd) => winograd.scratch_bytes(),
        }
    }

    fn arithmetic(&self) -> u64 {
        self.shape.operations()
    }
}
