//! The innermost part of a matrix product: one tile of the output, held in registers. Offsets are
//! multiplied without a check of overflow, for they are those of memory that is promised to be there.
#![allow(unsafe_code)]

use super::Epilogue;
use super::tile::{FIRST_CACHE, LINE, SECOND_CACHE, TO_WRITE, Target, Tile, finish, prefetch};
use crate::InstructionSet;
use crate::team::Stop;
use crate::unrolled::unrolled;
use crate::vector::pointers::load;
use crate::vector::{Isa, Kernel, Simd};
use std::ops::Range;

/// How large a tile may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blocking {
    /// Rows of the output.
    pub(crate) rows: usize,
    /// Vectors of output columns.
    pub(crate) vectors: usize,
    /// Columns of a vector.
    pub(crate) lanes: usize,
}

impl Blocking {
    /// The most rows of all instruction sets.
    pub(crate) const MOST_ROWS: usize = 14;

    /// As many rows and vectors as fill the registers with sums, leaving those for the vectors of a panel's row and one for
    /// the value that multiplies it. Of the vectors that this processor will really use, if it does
    /// not have the instruction set.
    pub(crate) fn of(set: InstructionSet) -> Self {
        let isa = Isa::of(set);
        let [rows, vectors] = largest_tile(isa.registers());
        Self { rows, vectors, lanes: isa.lanes() }
    }

    /// The one that leaves the fewest registers empty for this many columns: a panel of one vector, which an odd number of
    /// them ends with, has too few sums for an instruction set that has few registers.
    pub(crate) fn for_columns(set: InstructionSet, columns: usize) -> Self {
        let blocking = Self::of(set);
        let registers = Isa::of(set).registers();
        let [rows, vectors] = match columns.div_ceil(blocking.lanes) {
            1 => [12, 1],
            3 | 5 | 9 => [4, 3],
            _ => return blocking,
        };
        match has_tile(registers, rows, vectors) && registers < 32 {
            true => Self { rows, vectors, ..blocking },
            false => blocking,
        }
    }

    /// Columns of a panel.
    pub(crate) fn columns(self) -> usize {
        self.vectors * self.lanes
    }

    /// The panels that some columns are cut into: which columns, and the width of a row in whole vectors.
    pub(crate) fn panels(
        self,
        columns: Range<usize>,
    ) -> impl Iterator<Item = (Range<usize>, usize)> + Clone {
        columns.clone().step_by(self.columns()).map(move |first| {
            let columns = first..columns.end.min(first + self.columns());
            let padded = columns.len().next_multiple_of(self.lanes);
            (columns, padded)
        })
    }
}

/// A product of more than twice this depth is summed in parts of about this depth, which are added in
/// the output: rounding errors grow with the length of a sum. A multiple of four.
const PART_DEPTH: usize = 1024;

/// After this many parts it is asked whether to go on.
const PARTS_BETWEEN: usize = 16;

/// The biases of parts after the first, for the widest panel.
static ZEROS: [f32; 32] = [0.0; 32];

macro_rules! for_rows {
    ($body:block) => {
        unrolled! { ROW < ROWS, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 => $body }
    };
}

macro_rules! for_vectors {
    ($body:block) => {
        unrolled! { VECTOR < VECTORS, 0 1 2 => $body }
    };
}

struct Microkernel<'a, const ROWS: usize, const VECTORS: usize> {
    tile: &'a Tile<'a>,
    /// Instead of the panel's.
    biases: *const f32,
}

impl<const ROWS: usize, const VECTORS: usize> Kernel for Microkernel<'_, ROWS, VECTORS> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        // Nothing asks for larger tiles, and what is never run need not be compiled.
        if const { !has_tile(S::REGISTERS, ROWS, VECTORS) } {
            unreachable!("no such tile");
        }
        let Self { tile, biases: first } = self;
        // A copy, which no store to the output can be thought to change.
        let epilogue = *tile.epilogue;
        let (mut offset, mut left) = (tile.offset, tile.target);
        for _ in 0..tile.tiles {
            let (mut panel, mut biases, mut target) = (tile.panel, first, left);
            for _ in 0..tile.panels {
                for_rows!({
                    let row = target.output.wrapping_add(target.output_stride.wrapping_mul(ROW));
                    prefetch::<TO_WRITE>(row);
                    if const { VECTORS * S::LANES > LINE } {
                        prefetch::<TO_WRITE>(row.wrapping_add(LINE));
                    }
                });
                // SAFETY: `run_part` was promised that the panels, the biases and the segments are there.
                unsafe {
                    let mut sums = [[simd.splat(0.0); VECTORS]; ROWS];
                    for_vectors!({
                        let bias = load(simd, biases.add(VECTOR * S::LANES));
                        for_rows!({ sums[ROW][VECTOR] = bias });
                    });
                    panel = panel.add(VECTORS * S::LANES);
                    for segment in tile.segments.chunks_exact(ROWS) {
                        let strided = match const { ROWS >= LEAST_STRIDED_ROWS } {
                            true => StridedRows::new::<ROWS>(segment, tile.segment_depth, offset),
                            false => None,
                        };
                        panel = match strided {
                            Some(rows) => multiply(simd, rows, tile, panel, &mut sums),
                            None => {
                                let mut rows = [std::ptr::null::<f32>(); ROWS];
                                for_rows!({ rows[ROW] = segment[ROW].wrapping_add(offset) });
                                multiply(simd, EachRow { rows, depth: 0 }, tile, panel, &mut sums)
                            }
                        };
                    }
                    finish(simd, &target, &epilogue, sums);
                }
                // The next panel is right behind this one, and begins with its own biases.
                biases = panel;
                target = target.at_column(VECTORS * S::LANES);
            }
            offset = offset.wrapping_add(tile.tile_distance);
            left = left.at_row(ROWS);
        }
    }
}

/// Where the values of a tile's rows are, at some depth.
trait Addresses: Copy {
    /// The address of a row's value, this much deeper.
    fn at<const ROW: usize>(&self, depth: usize) -> *const f32;

    /// Goes this much deeper.
    fn advance(&mut self, depth: usize);
}

/// Rows anywhere.
#[derive(Clone, Copy)]
struct EachRow<const ROWS: usize> {
    rows: [*const f32; ROWS],
    depth: usize,
}

impl<const ROWS: usize> Addresses for EachRow<ROWS> {
    #[inline(always)]
    fn at<const ROW: usize>(&self, depth: usize) -> *const f32 {
        self.rows[ROW].wrapping_add(self.depth.wrapping_add(depth))
    }

    #[inline(always)]
    fn advance(&mut self, depth: usize) {
        self.depth = self.depth.wrapping_add(depth);
    }
}

/// From this number of rows on it is worth finding out whether they are [strided](StridedRows): the addresses of fewer stay in
/// registers.
const LEAST_STRIDED_ROWS: usize = 8;

/// In segments of less depth finding out takes longer than it saves.
const LEAST_STRIDED_DEPTH: usize = 16;

/// Rows with the same stride from each to the next, as those of one line of an image have. An instruction can add one, two, four or
/// eight times a register to an address, so that the odd multiples of the stride are enough for all rows: they fit in
/// registers, where the addresses of fourteen rows do not. Loading these from the stack, for each value of the
/// depth, would take as long as the multiplications.
#[derive(Clone, Copy)]
struct StridedRows {
    /// Numbers, since rows may be of different memory: those that padding sees are somewhere else, which may be just a stride away.
    first: usize,
    /// The stride in bytes times 1, 3, 5 and so on.
    odd_multiples: [usize; Blocking::MOST_ROWS / 2],
}

impl StridedRows {
    /// If these are such rows.
    #[inline(always)]
    fn new<const ROWS: usize>(segment: &[*const f32], depth: usize, offset: usize) -> Option<Self> {
        if depth < LEAST_STRIDED_DEPTH {
            return None;
        }
        let first = segment[0].expose_provenance();
        let mut before = segment[1].expose_provenance();
        let stride = before.wrapping_sub(first);
        let mut is_strided = true;
        for row in &segment[2..ROWS] {
            let row = row.expose_provenance();
            is_strided &= row.wrapping_sub(before) == stride;
            before = row;
        }
        if !is_strided {
            return None;
        }
        // What the compiler knows to be multiples, it would multiply in each step, or keep the sums with the first address.
        let odd_multiples = std::array::from_fn(|index| stride.wrapping_mul(2 * index + 1));
        let odd_multiples = std::hint::black_box(odd_multiples);
        let offset = offset.wrapping_mul(size_of::<f32>());
        Some(Self { first: first.wrapping_add(offset), odd_multiples })
    }
}

impl Addresses for StridedRows {
    #[inline(always)]
    fn at<const ROW: usize>(&self, depth: usize) -> *const f32 {
        let distance = match ROW {
            0 => 0,
            _ => {
                let doublings = ROW.trailing_zeros();
                self.odd_multiples[(ROW >> doublings) / 2] << doublings
            }
        };
        let row = self.first.wrapping_add(distance);
        std::ptr::with_exposed_provenance(row.wrapping_add(depth.wrapping_mul(size_of::<f32>())))
    }

    #[inline(always)]
    fn advance(&mut self, depth: usize) {
        self.first = self.first.wrapping_add(depth.wrapping_mul(size_of::<f32>()));
    }
}

/// Adds the products of a segment, and gives what is behind the part of the panel that they are of. (A function, not a closure:
/// closures are not always inlined, and without it they do not have the vector instructions.)
///
/// # Safety
/// All rows have the values of a segment, and the panel has a row of `VECTORS` vectors for each.
#[inline(always)]
unsafe fn multiply<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    mut rows: impl Addresses,
    tile: &Tile<'_>,
    mut panel: *const f32,
    sums: &mut [[S::F; VECTORS]; ROWS],
) -> *const f32 {
    let [of_even, of_odd] = tile.ahead;
    macro_rules! steps {
        ($($depth:literal, $ahead:expr;)*) => {$(
            prefetch::<SECOND_CACHE>(panel.wrapping_add($ahead));
            // SAFETY: as the caller promises.
            unsafe { step(simd, &rows, $depth, panel, sums) };
            panel = panel.wrapping_add(VECTORS * S::LANES);
        )*};
    }
    for _ in 0..tile.segment_depth / 4 {
        steps! { 0, of_even; 1, of_odd; 2, of_even; 3, of_odd; }
        rows.advance(4);
    }
    for _ in 0..tile.segment_depth % 4 {
        steps! { 0, of_even; }
        rows.advance(1);
    }
    panel
}

/// Adds the products of one value of the depth.
///
/// # Safety
/// All rows have a value at `depth`, and the panel has a row of `VECTORS` vectors.
#[inline(always)]
unsafe fn step<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    rows: &impl Addresses,
    depth: usize,
    panel: *const f32,
    sums: &mut [[S::F; VECTORS]; ROWS],
) {
    for_vectors!({
        if const { (VECTOR * S::LANES).is_multiple_of(LINE) } {
            prefetch::<FIRST_CACHE>(panel.wrapping_add(AHEAD + VECTOR * S::LANES));
        }
    });
    // SAFETY: as the caller promises.
    unsafe {
        let mut weights = [simd.splat(0.0); VECTORS];
        for_vectors!({ weights[VECTOR] = load(simd, panel.add(VECTOR * S::LANES)) });
        for_rows!({
            let value = simd.splat(*rows.at::<ROW>(depth));
            for_vectors!({
                sums[ROW][VECTOR] = simd.fma(value, weights[VECTOR], sums[ROW][VECTOR]);
            });
        });
    }
}

/// This many values of the panels before they are needed, they are fetched: processors that fetch
/// ahead by themselves stop at the ends of pages, which take longer to come than to be used up.
const AHEAD: usize = 1024;

/// Rows and vectors of the largest tile whose sums fit in this many registers.
pub(crate) const fn largest_tile(registers: usize) -> [usize; 2] {
    match registers {
        32.. => [14, 2],
        16.. => [6, 2],
        _ => [4, 2],
    }
}

/// Whether there are tiles of this number of rows and vectors: the largest ones, and such as are of another form and fill the
/// registers too.
const fn has_tile(registers: usize, rows: usize, vectors: usize) -> bool {
    let [most_rows, most_vectors] = largest_tile(registers);
    let is_of_another_form = match vectors {
        1 => rows <= 12,
        3 => rows <= 4,
        _ => false,
    };
    // NEON's tiles also hold a vector of values of each row, of which 12 would not fit beside the sums.
    let has_others = registers >= 16 && registers < 32 && !cfg!(target_arch = "aarch64");
    rows <= most_rows && vectors <= most_vectors || has_others && is_of_another_form
}

/// Computes a tile. A stop is to be given if the depth is not limited: once it is due, some or all of the output may be left as
/// it is.
///
/// # Safety
/// Each segment is a multiple of `rows` addresses, where at `offset`, and each multiple of `tile_distance` behind it, one for each of the
/// `tiles`, there are `segment_depth` values; each
/// panel has `vectors * lanes` values for the biases and for each value of the depth; the output has
/// `panels * columns` values in each of its `tiles * rows` rows that no one else touches meanwhile, and the residual,
/// if there is one, has the same number; `columns` is at most `vectors * lanes` and more than
/// `(vectors - 1) * lanes`, and with more than one panel `vectors * lanes`.
pub(crate) unsafe fn run_tile(
    isa: Isa,
    rows: usize,
    vectors: usize,
    tile: &Tile<'_>,
    stop: Option<&Stop>,
) {
    debug_assert!(tile.panels == 1 || tile.target.columns == vectors * isa.lanes());
    if tile.segments.len().wrapping_mul(tile.segment_depth) <= rows.wrapping_mul(2 * PART_DEPTH) {
        // SAFETY: as the caller promises; a panel begins with its biases.
        unsafe { run_part(isa, rows, vectors, tile, tile.panel) };
        return;
    }
    let segments = tile.segments.len() / rows;
    let width = vectors * isa.lanes();
    if tile.panels * tile.tiles > 1 {
        for tile in tile.singles(rows, width * (1 + segments * tile.segment_depth)) {
            // SAFETY: as the caller promises: one of the panels and of the tiles, and their columns and rows.
            unsafe { run_tile(isa, rows, vectors, &tile, stop) };
        }
        return;
    }
    assert!(width <= ZEROS.len(), "a panel of {width} columns");
    // What further parts are added to is what is there already.
    let target = tile.target;
    let residual = Some(target.output.cast_const());
    let added_to = Target { residual, residual_stride: target.output_stride, ..target };
    // Some segments together, or a segment in pieces.
    let together = (PART_DEPTH / tile.segment_depth).max(1);
    let mut row = 0_usize;
    let mut parts = 0;
    for (index, of_part) in tile.segments.chunks(together * rows).enumerate() {
        let is_last = (index + 1) * together >= segments;
        let mut start = 0;
        while start < tile.segment_depth {
            if parts % PARTS_BETWEEN == PARTS_BETWEEN - 1 && stop.is_some_and(Stop::is_due) {
                return;
            }
            let depth = if together > 1 { tile.segment_depth } else { PART_DEPTH };
            let depth = depth.min(tile.segment_depth - start);
            let is_last = is_last && start + depth == tile.segment_depth;
            let part = Tile {
                segments: of_part,
                offset: tile.offset + start,
                segment_depth: depth,
                panel: tile.panel.wrapping_add(row.wrapping_mul(width)),
                epilogue: if is_last { tile.epilogue } else { &Epilogue::NONE },
                target: if parts == 0 { target } else { added_to },
                ..*tile
            };
            let biases = if parts == 0 { tile.panel } else { ZEROS.as_ptr() };
            // SAFETY: as the caller promises: the rows of the panel and the values of the segments are
            // among its own; there are as many zeros as the panel has columns, as was just seen; the output was written by the first part, by this thread, and each vector
            // of it is read before it is written.
            unsafe { run_part(isa, rows, vectors, &part, biases) };
            row += of_part.len() / rows * depth;
            parts += 1;
            start += depth;
        }
    }
}

/// The whole of the tiles' depth at once.
///
/// # Safety
/// As [`run_tile`], with `vectors * lanes` biases at `biases`; the first panel's first row is not read. The
/// residual may be the output.
unsafe fn run_part(isa: Isa, rows: usize, vectors: usize, tile: &Tile<'_>, biases: *const f32) {
    #[cfg(target_arch = "aarch64")]
    if let Isa::Neon(simd) = isa {
        let values = vectors * isa.lanes() * (1 + tile.segments.len() / rows * tile.segment_depth);
        for single in tile.singles(rows, values) {
            // A panel begins with its own biases.
            let biases = if single.panel == tile.panel { biases } else { single.panel };
            // SAFETY: as the caller promises: one of the panels and of the tiles.
            unsafe { super::neon::run_part(simd, rows, vectors, &single, biases) };
        }
        return;
    }
    macro_rules! choose {
        ($(($rows:literal, $vectors:literal))*) => {
            match (rows, vectors) {
                $(($rows, $vectors) => isa.run(Microkernel::<$rows, $vectors> { tile, biases }),)*
                _ => unreachable!("no tile of {rows} rows and {vectors} vectors"),
            }
        };
    }
    choose! {
        (1, 1) (2, 1) (3, 1) (4, 1) (5, 1) (6, 1) (7, 1)
        (8, 1) (9, 1) (10, 1) (11, 1) (12, 1) (13, 1) (14, 1)
        (1, 2) (2, 2) (3, 2) (4, 2) (5, 2) (6, 2) (7, 2)
        (8, 2) (9, 2) (10, 2) (11, 2) (12, 2) (13, 2) (14, 2)
        (1, 3) (2, 3) (3, 3) (4, 3)
    }
}
