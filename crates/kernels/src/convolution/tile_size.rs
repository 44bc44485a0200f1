//! [`Tiles`]: into which Winograd's convolutions by 3x3 filters cut images.

use super::Shape;
use crate::Image;

/// Of the tiles into which Winograd's convolutions by 3x3 filters cut an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TileSize {
    /// F(2x2, 3x3).
    Two,
    /// F(4x4, 3x3): fewer products, of a filter more than twice as large.
    Four,
}

impl TileSize {
    pub(super) const ALL: [Self; 2] = [Self::Four, Self::Two];

    /// Rows and columns of an output tile.
    pub(super) fn output(self) -> usize {
        match self {
            Self::Two => 2,
            Self::Four => 4,
        }
    }

    /// Rows and columns of an input tile: those that an output tile sees.
    pub(super) fn input(self) -> usize {
        self.output() + 2
    }

    /// Values of an input tile, and products of a tile and a pair of channels.
    pub(super) fn points(self) -> usize {
        self.input() * self.input()
    }
}

/// The tiles of all images.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tiles {
    pub(super) size: TileSize,
    /// In a column and in a row of an image.
    grid: [usize; 2],
    pub(super) count: usize,
}

impl Tiles {
    pub(super) fn new(size: TileSize, shape: &Shape) -> Self {
        let grid = shape.output.map(|pixels| pixels.div_ceil(size.output()));
        let count = grid.iter().fold(shape.batch, |count, tiles| count.saturating_mul(*tiles));
        Self { size, grid, count }
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
        [line / height, line % height * self.size.output(), x * self.size.output()]
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
        for (row, pixels) in to.chunks_exact_mut(self.size.input()).enumerate() {
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

/// Calls a function with the transforms of a size, which are called `Two` and `Four`.
macro_rules! with_transforms {
    ($size:expr, $transforms:ident => $value:expr) => {
        match $size {
            TileSize::Two => {
                let $transforms = Two;
                $value
            }
            TileSize::Four => {
                let $transforms = Four;
                $value
            }
        }
    };
}
pub(super) use with_transforms;
