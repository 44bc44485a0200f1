//! Regions of interest: parts of an image, each brought to one size by pooling a feature map.
//!
//! ROI_ALIGN and ROI_POOLING have the inputs in common that this file reads.

use crate::call::{Argument, Call};
use crate::error::Fault;
use crate::rules::bounding_box::{self, BoundingBox};
use crate::rules::layout::Layout;
use crate::shape::Shape;
use nnhal_hal::OperandType;

/// Input 0: the feature map.
const FEATURE_MAP: usize = 0;
/// Input 1: the regions.
const REGIONS: usize = 1;
/// Input 2: for each region, which of the batch it is a part of.
const BATCH_INDEXES: usize = 2;

/// How regions are brought to one size. Pairs are in the order height, width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RegionGrid {
    /// How many bins a region is divided into; above 0.
    pub bins: [u32; 2],
    /// The image's size divided by the feature map's; above 0.
    pub strides: [f32; 2],
    /// Of feature map and output.
    pub layout: Layout,
}

/// One region, in cells of the feature map. Pairs are in the order height, width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Region {
    /// Which of the batch; the batch has this many.
    pub batch: usize,
    /// Upper and left edge, 0 or more.
    pub start: [f64; 2],
    /// Lower and right edge: not before the start, and but for rounding not behind the map's end.
    pub end: [f64; 2],
    /// Height and width.
    pub extent: [f64; 2],
}

/// Ranks and the quantization of the regions.
///
/// # Errors
/// One is another than the definition asks for.
pub fn validate(call: &Call<'_>) -> Result<(), Fault> {
    call.input(FEATURE_MAP).expect_rank(4)?;
    call.input(REGIONS).expect_rank(2)?;
    call.input(BATCH_INDEXES).expect_rank(1)?;
    bounding_box::expect_quantization(call.input(REGIONS))
}

/// A stride: the value of a `FLOAT32` or `FLOAT16` above 0.
fn stride(argument: &Argument<'_>) -> Result<f32, Fault> {
    let value = argument.f32()?;
    if value > 0.0 { Ok(value) } else { Err(argument.wrong("value", value, "above 0")) }
}

impl RegionGrid {
    /// Reads output height and width (inputs 3 and 4), height and width stride (5 and 6), and the
    /// layout's flag.
    ///
    /// # Errors
    /// [`Fault::NotKnown`], or a value is not above 0.
    pub fn decode(call: &Call<'_>, layout: usize) -> Result<Self, Fault> {
        Ok(Self {
            bins: [call.input(3).positive()?, call.input(4).positive()?],
            strides: [stride(call.input(5))?, stride(call.input(6))?],
            layout: Layout::from_flag(call.input(layout).bool()?),
        })
    }

    /// The output: a feature map of its own for each region.
    ///
    /// # Errors
    /// Lengths do not go together, or the feature map has a length of 0 that is not the batch's.
    pub fn output_shape(&self, call: &Call<'_>) -> Result<Shape, Fault> {
        let (regions, batch_indexes) = (call.input(REGIONS), call.input(BATCH_INDEXES));
        let [_, _, _, depth] = self.layout.image_lengths(call.input(FEATURE_MAP))?;
        let [count, _] = regions.known_lengths_of()?;
        regions.expect_length(1, Some(4))?;
        batch_indexes.expect_length(0, count)?;
        let count = count.or(batch_indexes.shape.length(0));
        let [height, width] = self.bins.map(Some);
        Ok(Shape::new(self.layout.from_nhwc([count, height, width, depth])))
    }

    /// The regions in cells of the feature map.
    ///
    /// # Errors
    /// A region is not within the image, its corners are not in order, or there is no such batch
    /// index; [`Fault::NotKnown`].
    pub fn regions(&self, call: &Call<'_>) -> Result<Vec<Region>, Fault> {
        let (input, regions, indexes) =
            (call.input(FEATURE_MAP), call.input(REGIONS), call.input(BATCH_INDEXES));
        let [batch, height, width, _] = self.layout.to_nhwc(input.lengths_of()?);
        let boxes = bounding_box::read(regions)?;
        let mut found = call.room(boxes.len())?;
        for (bounding_box, index) in boxes.into_iter().zip(indexes.i32s()?) {
            let index = usize::try_from(index)
                .ok()
                .filter(|index| *index < batch)
                .ok_or_else(|| indexes.wrong("value", index, format!("0 to {batch}, exclusive")))?;
            call.work(1)?;
            let region = self.region(index, bounding_box);
            if !region.is_within([height, width], rounding(regions)) {
                let found = format!("{:?}", bounding_box.to_array());
                let [down, across] = self.strides;
                let expected = format!(
                    "a region of an image that {height} by {width} cells of {down} by {across} make"
                );
                return Err(regions.wrong("value", found, expected));
            }
            found.push(region);
        }
        Ok(found)
    }

    fn region(&self, batch: usize, BoundingBox { x1, y1, x2, y2 }: BoundingBox) -> Region {
        let strides = self.strides.map(f64::from);
        let in_cells = |[y, x]: [f32; 2]| [f64::from(y) / strides[0], f64::from(x) / strides[1]];
        // Not the difference of start and end: one division is rounded once.
        let [height, width] = [f64::from(y2) - f64::from(y1), f64::from(x2) - f64::from(x1)];
        Region {
            batch,
            start: in_cells([y1, x1]),
            end: in_cells([y2, x2]),
            extent: [height / strides[0], width / strides[1]],
        }
    }
}

impl Region {
    fn is_within(&self, lengths: [usize; 2], rounding: f64) -> bool {
        // Lengths are below 2^32.
        #[allow(clippy::cast_precision_loss)]
        let limits = lengths.map(|length| length as f64 * (1.0 + rounding));
        self.start.iter().all(|start| *start >= 0.0)
            && self.end.iter().zip(limits).all(|(end, limit)| *end <= limit)
    }
}

/// By how much, relative to it, a position may be wrong that comes from a coordinate and a stride
/// which both were rounded to the type of the regions: a region that ends with the image must not
/// be refused for the rounding of the stride.
fn rounding(regions: &Argument<'_>) -> f64 {
    match regions.operand_type {
        OperandType::TensorFloat16 => 2.0 * f64::from(half::f16::EPSILON.to_f32()),
        _ => 2.0 * f64::from(f32::EPSILON),
    }
}
