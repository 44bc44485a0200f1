//! Blocks of an image: rectangles of elements that are side by side in one tensor and one behind the
//! other, along its batch or its channels, in another.
//!
//! With blocks of `rows` by `columns`, what is at a row and column of its block in the wide tensor
//! has, in the stacked one, index `(row * columns + column) * length + index` on the stacking axis,
//! where `index` and `length` are those of that axis in the wide tensor.

use crate::call::{Argument, Output};
use crate::error::Fault;
use crate::rules::layout::Layout;
use crate::rules::movement;

/// The axis along which a tensor stacks what another has side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stacking {
    /// SPACE_TO_BATCH_ND
    Batch,
    /// SPACE_TO_DEPTH
    Channels,
}

/// How an image is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Blocks {
    /// Rows and columns of a block; above 0.
    pub size: [u32; 2],
    /// Where the elements of a block go.
    pub stacking: Stacking,
    /// The order of axes of both tensors.
    pub layout: Layout,
}

/// Axes in the order batch, height, width, channels.
const HEIGHT: usize = 1;
const WIDTH: usize = 2;

impl Blocks {
    /// The lengths of the wide tensor of a stacked one, both in the order batch, height, width,
    /// channels, as far as they are known.
    ///
    /// # Errors
    /// The stacking axis cannot be divided by the elements of a block, or a length leaves 32 bits;
    /// the errors are about `size`, the argument.
    pub fn widened(
        &self,
        size: &Argument<'_>,
        stacked: [Option<u32>; 4],
    ) -> Result<[Option<u32>; 4], Fault> {
        let mut lengths = stacked;
        for (axis, by) in [(HEIGHT, self.size[0]), (WIDTH, self.size[1])] {
            lengths[axis] = self.multiplied(size, lengths[axis], by.into())?;
        }
        let axis = self.stacking_axis();
        lengths[axis] = self.divided(size, lengths[axis], self.area())?;
        Ok(lengths)
    }

    /// The reverse of [`Blocks::widened`].
    ///
    /// # Errors
    /// Height or width cannot be divided by those of a block, or a length leaves 32 bits.
    pub fn stacked(
        &self,
        size: &Argument<'_>,
        wide: [Option<u32>; 4],
    ) -> Result<[Option<u32>; 4], Fault> {
        let mut lengths = wide;
        for (axis, by) in [(HEIGHT, self.size[0]), (WIDTH, self.size[1])] {
            lengths[axis] = self.divided(size, lengths[axis], by.into())?;
        }
        let axis = self.stacking_axis();
        lengths[axis] = self.multiplied(size, lengths[axis], self.area())?;
        Ok(lengths)
    }

    /// The wide tensor made of a stacked one; `lengths` are those of `source`, in its layout.
    ///
    /// # Errors
    /// As [`movement::copied`].
    pub fn widen(
        &self,
        (source, lengths): (&[u8], [usize; 4]),
        output: &Argument<'_>,
        dimensions: Vec<u32>,
    ) -> Result<Output, Fault> {
        let strides = movement::strides(&lengths);
        let stride = self.layout.to_nhwc([0, 1, 2, 3].map(|axis: usize| strides[axis]));
        let [rows, columns] = self.size.map(|length| length as usize);
        let stacking = self.stacking_axis();
        let layers = self.layout.to_nhwc(lengths)[stacking];
        // From one element of a block to the next, in the stacked tensor; as the strides, of a tensor without elements it is
        // any number.
        let column_step = (layers / rows / columns).saturating_mul(stride[stacking]);
        let axes = self.layout.from_nhwc([0, 1, 2, 3]);
        movement::moved(source, output, dimensions, |axis, index| match axes[axis] {
            HEIGHT => index / rows * stride[HEIGHT] + index % rows * columns * column_step,
            WIDTH => index / columns * stride[WIDTH] + index % columns * column_step,
            other => index * stride[other],
        })
    }

    /// The stacked tensor made of a wide one; `lengths` are those of `source`, in its layout.
    ///
    /// # Errors
    /// As [`movement::copied`].
    pub fn stack(
        &self,
        (source, lengths): (&[u8], [usize; 4]),
        output: &Argument<'_>,
        dimensions: Vec<u32>,
    ) -> Result<Output, Fault> {
        let strides = movement::strides(&lengths);
        let stride = self.layout.to_nhwc([0, 1, 2, 3].map(|axis: usize| strides[axis]));
        let [rows, columns] = self.size.map(|length| length as usize);
        let stacking = self.stacking_axis();
        let length = self.layout.to_nhwc(lengths)[stacking];
        let axes = self.layout.from_nhwc([0, 1, 2, 3]);
        movement::moved(source, output, dimensions, |axis, index| match axes[axis] {
            HEIGHT => index * rows * stride[HEIGHT],
            WIDTH => index * columns * stride[WIDTH],
            other if other == stacking => {
                let (place, index) = (index / length, index % length);
                let (row, column) = (place / columns, place % columns);
                row * stride[HEIGHT] + column * stride[WIDTH] + index * stride[other]
            }
            other => index * stride[other],
        })
    }

    fn stacking_axis(&self) -> usize {
        match self.stacking {
            Stacking::Batch => 0,
            Stacking::Channels => 3,
        }
    }

    /// Elements of a block. Sizes are read as `INT32`, but any two 32-bit numbers fit.
    fn area(&self) -> u64 {
        u64::from(self.size[0]) * u64::from(self.size[1])
    }

    fn divided(
        &self,
        size: &Argument<'_>,
        length: Option<u32>,
        by: u64,
    ) -> Result<Option<u32>, Fault> {
        let Some(length) = length else { return Ok(None) };
        if by == 0 || !u64::from(length).is_multiple_of(by) {
            let expected = format!("blocks that divide a length of {length} into parts of {by}");
            return Err(size.wrong("value", self.shown(), expected));
        }
        Ok(u32::try_from(u64::from(length) / by).ok())
    }

    fn multiplied(
        &self,
        size: &Argument<'_>,
        length: Option<u32>,
        by: u64,
    ) -> Result<Option<u32>, Fault> {
        let Some(length) = length else { return Ok(None) };
        let product = u64::from(length).checked_mul(by).and_then(|it| u32::try_from(it).ok());
        product.map(Some).ok_or_else(|| {
            let expected = format!("blocks that make less than 2^32 of a length of {length}");
            size.wrong("value", self.shown(), expected)
        })
    }

    fn shown(&self) -> String {
        format!("{} by {}", self.size[0], self.size[1])
    }
}
