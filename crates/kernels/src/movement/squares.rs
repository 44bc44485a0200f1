//! Transpositions, square by square: vectors of 16 bytes, which every processor of x86-64 and of ARM's 64 bits has.
#![allow(unsafe_code)]

use super::Axis;
use bytemuck::NoUninit;
use vectors::{Vector, interleave};

/// Bytes of a square's side: a cache line is read and written as a whole.
const SIDE_BYTES: usize = 64;

/// Elements of a square's side.
pub(super) const fn side<T>() -> usize {
    SIDE_BYTES.div_ceil(size_of::<T>())
}

#[cfg(target_arch = "x86_64")]
mod vectors {
    use std::arch::x86_64::*;

    pub(super) type Vector = __m128i;

    /// The elements of this many bytes of two vectors in turn.
    #[inline(always)]
    pub(super) fn interleave<const SIZE: usize>(a: Vector, b: Vector) -> [Vector; 2] {
        // SAFETY: all processors of this architecture have SSE2.
        unsafe {
            match SIZE {
                1 => [_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b)],
                2 => [_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b)],
                4 => [_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)],
                _ => [_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b)],
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod vectors {
    /// Bytes of a vector.
    const BYTES: usize = 16;

    pub(super) type Vector = [u8; BYTES];

    /// The elements of this many bytes of two vectors in turn. Compilers make one instruction of each.
    #[inline(always)]
    pub(super) fn interleave<const SIZE: usize>(a: Vector, b: Vector) -> [Vector; 2] {
        [0, BYTES / 2].map(|first| {
            std::array::from_fn(|at| {
                let from = if (at / SIZE).is_multiple_of(2) { &a } else { &b };
                from[first + at / (2 * SIZE) * SIZE + at % SIZE]
            })
        })
    }
}

/// A transposition: `rows` are contiguous in the input, `columns` in the output.
///
/// # Safety
/// The elements of both axes may be read and written there.
#[inline(always)]
pub(super) unsafe fn copy_squares<T: NoUninit>(
    from: *const T,
    to: *mut T,
    rows: Axis,
    columns: Axis,
) {
    let side = side::<T>();
    let strides = (columns.input_stride, rows.output_stride);
    if [columns.length, rows.output_stride] == [3, 3] {
        // SAFETY: as the caller promises.
        unsafe {
            match size_of::<T>() {
                1 => return triples::<T, 1, 2, 4>(from, to, rows.length, strides.0),
                2 => return triples::<T, 2, 4, 8>(from, to, rows.length, strides.0),
                4 => return triples::<T, 4, 8, 16>(from, to, rows.length, strides.0),
                _ => {}
            }
        }
    }
    let each = |first_row: usize, first_column: usize| {
        let from = from.wrapping_offset(first_column.cast_signed() * strides.0);
        let from = from.wrapping_add(first_row);
        let to = to.wrapping_add(first_row * strides.1 + first_column);
        let counts = [side.min(rows.length - first_row), side.min(columns.length - first_column)];
        // SAFETY: as the caller promises.
        unsafe {
            match size_of::<T>() {
                1 => square::<T, 1, 16>(from, to, counts, strides),
                2 => square::<T, 2, 8>(from, to, counts, strides),
                4 => square::<T, 4, 4>(from, to, counts, strides),
                _ => square::<T, 8, 2>(from, to, counts, strides),
            }
        }
    };
    in_order(strides, [rows.length, columns.length], side, each);
}

/// Elements of three columns in turn, as where the planes of a picture become its pixels: those of a row and one more are written
/// together, and the next row is written over that one. Elements of `SIZE` bytes; `PAIR` and `FOUR` are twice and four times that.
///
/// # Safety
/// As [`copy_squares`], of three columns and rows that follow each other.
#[inline(always)]
unsafe fn triples<T: NoUninit, const SIZE: usize, const PAIR: usize, const FOUR: usize>(
    from: *const T,
    to: *mut T,
    rows: usize,
    input_stride: isize,
) {
    let count = size_of::<Vector>() / SIZE;
    let column = |column: isize| from.wrapping_offset(column * input_stride);
    let mut row = 0;
    // Behind the last of these is another row.
    while row + count < rows {
        let [a, b, c] = [0, 1, 2].map(|it| {
            // SAFETY: as the caller promises; vectors are read wherever they are.
            unsafe { column(it).wrapping_add(row).cast::<Vector>().read_unaligned() }
        });
        let (first, second) = (interleave::<SIZE>(a, b), interleave::<SIZE>(c, c));
        for half in [0, 1] {
            let fours = interleave::<PAIR>(first[half], second[half]);
            let fours = std::ptr::from_ref(&fours).cast::<[u8; FOUR]>();
            for index in 0..count / 2 {
                let to = to.wrapping_add(3 * (row + half * (count / 2) + index));
                // SAFETY: two vectors are half as many fours as a vector has elements; as above.
                unsafe { to.cast::<[u8; FOUR]>().write_unaligned(*fours.wrapping_add(index)) };
            }
        }
        row += count;
    }
    for row in row..rows {
        for index in [0, 1, 2] {
            let (from, to) = (column(index).wrapping_add(row), to.wrapping_add(3 * row));
            // SAFETY: as above.
            unsafe { to.wrapping_offset(index).write(from.read()) };
        }
    }
}

/// Calls with the first row and the first column of each square. Lines that are far from each other share few sets of a cache: they
/// are read, or written, one after the other as far as they go.
#[inline(always)]
fn in_order(
    (input_stride, output_stride): (isize, usize),
    [rows, columns]: [usize; 2],
    side: usize,
    mut each: impl FnMut(usize, usize),
) {
    if input_stride.unsigned_abs() >= output_stride {
        for column in (0..columns).step_by(side) {
            (0..rows).step_by(side).for_each(|row| each(row, column));
        }
    } else {
        for row in (0..rows).step_by(side) {
            (0..columns).step_by(side).for_each(|column| each(row, column));
        }
    }
}

/// A square, or what there is of it. `COUNT` elements of `SIZE` bytes are a vector.
///
/// # Safety
/// As [`copy_squares`]. A vector is `COUNT` elements of `T`, if those have `SIZE` bytes.
#[inline(always)]
unsafe fn square<T: NoUninit, const SIZE: usize, const COUNT: usize>(
    from: *const T,
    to: *mut T,
    [rows, columns]: [usize; 2],
    (input_stride, output_stride): (isize, usize),
) {
    let [whole_rows, whole_columns] = if size_of::<T>() == SIZE {
        [rows, columns].map(|count| count - count % COUNT)
    } else {
        [0, 0]
    };
    let place = |row: usize, column: usize| {
        let from = from.wrapping_offset(column.cast_signed() * input_stride).wrapping_add(row);
        (from, to.wrapping_add(row * output_stride + column))
    };
    let each = |row: usize, column: usize| {
        let (from, to) = place(row, column);
        let mut vectors: [Vector; COUNT] = std::array::from_fn(|column| {
            let from = from.wrapping_offset(column.cast_signed() * input_stride);
            // SAFETY: as the caller promises; vectors are read wherever they are.
            unsafe { from.cast::<Vector>().read_unaligned() }
        });
        // Each round brings elements of columns that are twice as near together.
        let mut together = 1;
        while together < COUNT {
            let before = vectors;
            for pair in 0..COUNT / 2 {
                let [first, second] = interleave::<SIZE>(before[pair], before[pair + COUNT / 2]);
                vectors[2 * pair] = first;
                vectors[2 * pair + 1] = second;
            }
            together *= 2;
        }
        for (row, vector) in vectors.into_iter().enumerate() {
            let to = to.wrapping_add(row * output_stride);
            // SAFETY: as above.
            unsafe { to.cast::<Vector>().write_unaligned(vector) };
        }
    };
    in_order((input_stride, output_stride), [whole_rows, whole_columns], COUNT, each);
    // Two columns without a gap, as where channels of two groups are shuffled: elements in turn.
    let mut done = 0;
    let is_in_turn = [columns, output_stride] == [2, 2] && whole_columns == 0;
    if is_in_turn && size_of::<T>() == SIZE {
        for row in (0..whole_rows).step_by(COUNT) {
            let ((first, to), (second, _)) = (place(row, 0), place(row, 1));
            // SAFETY: as above; the elements of these rows are two vectors, one behind the other.
            unsafe {
                let [first, second] =
                    [first, second].map(|it| it.cast::<Vector>().read_unaligned());
                let to = to.cast::<Vector>();
                for (at, vector) in interleave::<SIZE>(first, second).into_iter().enumerate() {
                    to.wrapping_add(at).write_unaligned(vector);
                }
            }
        }
        done = whole_rows;
    }
    for row in done..rows {
        let first = if row < whole_rows { whole_columns } else { 0 };
        for column in first..columns {
            let (from, to) = place(row, column);
            // SAFETY: as the caller promises.
            unsafe { to.write(from.read()) };
        }
    }
}
