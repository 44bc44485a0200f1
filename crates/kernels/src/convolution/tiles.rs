//! [`Tiles`]: into which Winograd's convolutions by 3x3 filters cut images.

use super::Shape;
use crate::Image;

/// The tiles of all images.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tiles {
    /// Rows and columns of an output tile.
    output: usize,
    /// In a column and in a row of an image.
    grid: [usize; 2],
    pub(super) count: usize,
}

impl Tiles {
    /// Of this many output rows and columns; those of an input tile are two more, which overlap.
    pub(super) fn new(output: usize, shape: &Shape) -> Self {
        let grid = shape.output.map(|pixels| pixels.div_ceil(output));
        let count = grid.iter().fold(shape.batch, |count, tiles| count.saturating_mul(*tiles));
        Self { output, grid, count }
    }

    /// Whether tiles can be cut from such images.
    pub(super) fn suit(shape: &Shape) -> bool {
        shape.filter == [3, 3]
            && shape.stride == [1, 1]
            && shape.dilation == [1, 1]
            && shape.groups == 1
            && shape.output_pixels() > 0
    }

    /// The image and the first output row and column of a tile.
    fn place(&self, tile: usize) -> [usize; 3] {
        let [height, width] = self.grid;
        let (line, x) = (tile / width, tile % width);
        [line / height, line % height * self.output, x * self.output]
    }

    /// The first output pixel of a tile, and how many rows and columns of the image there are from there.
    pub(super) fn output(&self, shape: &Shape, tile: usize) -> (usize, [usize; 2]) {
        let [n, y, x] = self.place(tile);
        let [height, width] = shape.output;
        ((n * height + y) * width + x, [height - y, width - x])
    }

    /// Writes where the pixels of an input tile are, by row and column: slices of as many channels as `padding` has, which is
    /// that of the pixels outside of the image.
    pub(super) fn locate<T>(
        &self,
        shape: &Shape,
        tile: usize,
        (input, padding): (Image<'_, T>, &[T]),
        to: &mut [*const T],
    ) {
        let [n, y, x] = self.place(tile);
        let [height, width] = shape.input;
        for (row, pixels) in to.chunks_exact_mut(self.output + 2).enumerate() {
            // Of the output pixel this number of rows and columns on, the first tap.
            let line = shape.input_position(0, y + row, 0).map(|y| (n * height + y) * width);
            for (column, pixel) in pixels.iter_mut().enumerate() {
                let place = line.zip(shape.input_position(1, x + column, 0));
                *pixel = place.map_or(padding.as_ptr(), |(line, x)| {
                    input.values[(line + x) * input.pixel_stride..][..padding.len()].as_ptr()
                });
            }
        }
    }
}
