//! Products of 8-bit rows with a packed 8-bit matrix, to 8-bit outputs.
//!
//! A row of the left side is in memory as a number of *runs* of the same length, each anywhere: the
//! taps of a convolution's window, or the one row of a plain matrix. A table holds the addresses. The
//! right side is packed once ([`Matrix`]) into blocks of 64, 32 or 16 output channels.

#[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod block;
#[cfg(target_arch = "x86_64")]
mod bytes;
#[cfg(target_arch = "aarch64")]
pub(crate) mod dot;
mod grid;
mod matrix;
#[cfg(target_arch = "aarch64")]
mod neon;
mod problem;
#[cfg(target_arch = "aarch64")]
mod sdot;
#[cfg(target_arch = "aarch64")]
mod smmla;
mod tiles;
mod variant;

pub(crate) use block::Block;
#[cfg(target_arch = "x86_64")]
pub(crate) use bytes::{ByteMatrix, ByteOutputs, SumsOfRows};
pub(crate) use grid::Grid;
pub(crate) use matrix::{Matrix, Source, WORD_PIECE};
pub(crate) use variant::Variant;

use crate::requantize::ChannelLanes;

/// Inputs and weights that are multiplied and added in one step.
const DEPTH: usize = 4;

/// Rows of one tile, at most.
pub(crate) const TILE_ROWS: usize = 8;

/// What one call of a tile's kernel reads and writes: `rows` rows times one block of channels.
#[derive(Clone, Copy)]
pub(crate) struct Tile<'a> {
    /// Address of the first row's first run; the next row's is the next, and the next run's are
    /// `table_step` farther on.
    pub table: *const *const u8,
    /// From one run to the next, in addresses.
    pub table_step: usize,
    /// How many rows, from 1 to [`Matrix::tile_rows`], or of several tiles.
    pub rows: usize,
    /// What each row's sums get in addition; nothing if there are no weights with a zero point.
    pub row_terms: Option<&'a [i32]>,
    /// The block's packed weights, of [`Matrix::block_weights`] or packed at run time: on a line, and
    /// for each step of a run and each vector [`Variant::bytes_per_vector`].
    pub weights: *const u8,
    /// The constants of the block's channels, as many as it has vectors.
    pub lanes: &'a [ChannelLanes],
    /// Where the first row's output begins.
    pub output: *mut u8,
    /// From one row's output to the next, in bytes.
    pub output_step: usize,
}

impl<'a> Tile<'a> {
    /// The rows cut into tiles of at most this number: first the larger ones, then those with a row less, each with
    /// how many there are.
    fn parts(&self, most: usize) -> impl Iterator<Item = (Tile<'a>, usize)> {
        let tiles = self.rows.div_ceil(most);
        let (rows, longer) = (self.rows / tiles.max(1), self.rows % tiles.max(1));
        let parts = [(0, longer, rows + 1), (longer * (rows + 1), tiles - longer, rows)];
        let all = *self;
        parts.into_iter().filter(|(_, tiles, _)| *tiles > 0).map(move |(first, tiles, rows)| {
            let row_terms = all.row_terms.map(|terms| &terms[first..first + tiles * rows]);
            let tile = Tile {
                table: all.table.wrapping_add(first),
                rows,
                row_terms,
                output: all.output.wrapping_add(first * all.output_step),
                ..all
            };
            (tile, tiles)
        })
    }
}

/// Weights that are fetched into the second cache ahead of time: evenly, since more at once than memory gives would keep
/// back what is read meanwhile.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// The next line.
    next: *const u8,
    /// What is still to be fetched, in bytes; tiles of AMX ask for it, others fetch in all their steps.
    #[cfg_attr(any(not(target_arch = "x86_64"), nnhal_only_avx2), allow(dead_code))]
    left: usize,
    /// From what one step of a tile fetches to what the next one does, in bytes; no more than a line.
    step_bytes: usize,
}
