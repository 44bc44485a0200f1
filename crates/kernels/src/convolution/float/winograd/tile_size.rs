//! [`TileSize`]: the tiles into which Winograd's convolutions cut an image.

/// Of the tiles into which Winograd's convolutions by 3x3 filters cut an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum TileSize {
    /// F(2x2, 3x3).
    Two,
    /// F(4x4, 3x3): fewer products, of a filter more than twice as large.
    Four,
}

impl TileSize {
    pub(in super::super) const ALL: [Self; 2] = [Self::Four, Self::Two];

    /// Rows and columns of an output tile.
    pub(in super::super) fn output(self) -> usize {
        match self {
            Self::Two => 2,
            Self::Four => 4,
        }
    }

    /// Rows and columns of an input tile: those that an output tile sees.
    pub(in super::super) fn input(self) -> usize {
        self.output() + 2
    }

    /// Values of an input tile, and products of a tile and a pair of channels.
    pub(in super::super) fn points(self) -> usize {
        self.input() * self.input()
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
