//! Moving elements without computing: everything that a loop nest over strides can say.
//!
//! | operation | made with |
//! |---|---|
//! | TRANSPOSE | [`StridedCopy::transpose`] |
//! | SLICE, STRIDED_SLICE, SPLIT | [`StridedCopy::slice`] |
//! | CONCATENATION, the inside of PAD | [`StridedCopy::piece`], one for each input |
//! | SPACE_TO_DEPTH, DEPTH_TO_SPACE, SPACE_TO_BATCH, BATCH_TO_SPACE, CHANNEL_SHUFFLE, TILE, broadcasting | [`StridedCopy::prepare`] |
//! | MIRROR_PAD | [`StridedCopy::mirror_pad`] |
//! | GATHER, EMBEDDING_LOOKUP | [`Gather`] |
//! | GATHER_ND | [`GatherNd`] |
//! | HASHTABLE_LOOKUP | [`HashtableLookup`] |
//!
//! [`Copies`] puts an output together of several of them.
//!
//! Elements are plain numbers of any size; what the numbers are does not matter.

#![allow(unsafe_code)]

mod gather;
mod gather_nd;
mod hashtable;
mod layout;
mod pieces;
mod squares;
#[cfg(test)]
mod tests;
mod update;

use crate::disjoint::DisjointOutput;
use crate::prepared::for_sizes;
use crate::sharing::{Cut, ELEMENTS_OF_COPY, TASKS_BY_THREAD, for_each_part};
use crate::team::{BLOCK, Team};
use bytemuck::NoUninit;
#[cfg(test)]
pub(crate) use gather::gather;
pub use gather::{Elements, Gather};
pub use gather_nd::GatherNd;
pub use hashtable::HashtableLookup;
pub use pieces::Copies;
use squares::copy_squares;
use std::mem::MaybeUninit;
pub use update::UpdateSlice;

/// One axis of the loop nest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    /// How many elements.
    pub length: usize,
    /// From one to the next in the input, in elements; 0 repeats, negative goes backwards.
    pub input_stride: isize,
    /// From one to the next in the output, in elements.
    pub output_stride: usize,
}

/// A prepared copy: of every element at `input_start` plus indexes times input strides to
/// `output_start` plus indexes times output strides.
#[derive(Debug, Clone)]
pub struct StridedCopy {
    /// Outer axes, then the one or two that `inner` works on.
    axes: Vec<Axis>,
    inner: Inner,
    input_start: usize,
    output_start: usize,
    /// Elements that input and output must have.
    needed: [usize; 2],
    /// Indexes of the outer axes.
    outer: usize,
}

/// How the innermost axes are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inner {
    /// Nothing is to be copied.
    Nothing,
    /// Two axes: any one, and one whose elements follow each other on both sides.
    Runs,
    /// Two axes: one contiguous in the input, and then one contiguous in the output.
    Squares,
    /// One axis of any strides.
    Elements,
}

impl Inner {
    /// How many of the last axes it takes.
    fn axes(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Elements => 1,
            Self::Runs | Self::Squares => 2,
        }
    }
}

impl StridedCopy {
    /// Axes that a copy may have, of those that do not go on where the next one ends.
    pub const MOST_AXES: usize = 16;

    /// A copy along axes.
    ///
    /// # Panics
    /// If an element is before the start of the input or beyond any memory, or if it is not plain
    /// that no output element is written twice: every output stride must be as large as what the
    /// axes of smaller strides reach.
    pub fn prepare(axes: &[Axis], input_start: usize, output_start: usize) -> Self {
        let nothing = Self {
            axes: Vec::new(),
            inner: Inner::Nothing,
            input_start: 0,
            output_start: 0,
            needed: [0, 0],
            outer: 0,
        };
        if axes.iter().any(|axis| axis.length == 0) {
            return nothing;
        }
        let needed = reached(axes, input_start, output_start);
        let mut axes: Vec<Axis> = axes.iter().copied().filter(|axis| axis.length > 1).collect();
        axes.sort_by_key(|axis| axis.output_stride);
        let mut reach = 1_usize;
        for axis in &axes {
            assert!(axis.output_stride >= reach, "an output element would be written twice");
            reach += (axis.length - 1) * axis.output_stride;
        }
        // From the innermost axis outwards: axes that go on where the one before ends are one.
        let mut merged: Vec<Axis> = Vec::new();
        for axis in axes {
            match merged.last_mut() {
                Some(last) if goes_on(last, &axis) => last.length *= axis.length,
                _ => merged.push(axis),
            }
        }
        merged.reverse();
        let mut axes = merged;
        let contiguous_input = axes.iter().position(|axis| axis.input_stride == 1);
        let inner = match (axes.last(), contiguous_input) {
            (None, _) => {
                axes = vec![Axis { length: 1, input_stride: 1, output_stride: 1 }; 2];
                Inner::Runs
            }
            (Some(last), _) if last.input_stride == 1 && last.output_stride == 1 => {
                match axes.len() {
                    1 => axes.insert(0, Axis { length: 1, input_stride: 0, output_stride: 0 }),
                    2 => {}
                    count => {
                        // Many short runs at a time, as of a row of blocks; but few enough that cache lines of which they are
                        // parts are still there when the others come.
                        let [outer, runs] = [axes[count - 3].length, axes[count - 2].length];
                        if (runs + 1..=MOST_RUNS).contains(&outer) && last.length < SHORT_RUN {
                            axes.swap(count - 3, count - 2);
                        }
                    }
                }
                Inner::Runs
            }
            (Some(last), Some(contiguous)) if last.output_stride == 1 => {
                let axis = axes.remove(contiguous);
                axes.insert(axes.len() - 1, axis);
                Inner::Squares
            }
            _ => Inner::Elements,
        };
        let of_inner = inner.axes();
        let outer = axes[..axes.len() - of_inner].iter().map(|axis| axis.length).product();
        Self { axes, inner, input_start, output_start, needed, outer }
    }

    /// How many elements the input must have at least.
    pub fn input_elements(&self) -> usize {
        self.needed[0]
    }

    /// Copies. Output elements that the axes do not reach are left as they are.
    ///
    /// # Panics
    /// If a slice is smaller than what was prepared for.
    pub fn run<T: NoUninit + Send + Sync>(&self, team: &mut Team, input: &[T], output: &mut [T]) {
        assert!(input.len() >= self.needed[0], "an input smaller than prepared for");
        assert!(output.len() >= self.needed[1], "an output smaller than prepared for");
        if self.inner == Inner::Nothing {
            return;
        }
        let of_inner = self.inner.axes();
        let (outer, inner) = self.axes.split_at(self.axes.len() - of_inner);
        let output = DisjointOutput::new(output);
        let blocks = Blocks::of(inner, squares::side::<T>(), self.outer);
        let cut = Cut { each: blocks.elements(), least: ELEMENTS_OF_COPY, multiple: 1 };
        let by_place = blocks.count();
        for_each_part(team, self.outer * by_place, cut, |part, _| {
            let first = part.start / by_place;
            let mut places = Places::new(outer, first, self.input_start, self.output_start);
            let mut number = part.start % by_place;
            for _ in part {
                let (block, [input_offset, output_offset]) = blocks.block(number);
                // SAFETY: all places that the axes reach are within the slices, which `run` has compared
                // with what `reached` has found, without a product that wraps; and the output's are all
                // different, as `prepare` has seen to.
                unsafe {
                    let from = input.as_ptr().wrapping_offset(places.input + input_offset);
                    let to = output.pointer(places.output + output_offset.cast_unsigned());
                    match block[..of_inner] {
                        [axis] => copy_elements(from, to, axis),
                        [runs, run] if self.inner == Inner::Runs => {
                            copy_runs(from, to, runs, run.length);
                        }
                        [rows, columns] => copy_squares(from, to, rows, columns),
                        _ => {}
                    }
                }
                number += 1;
                if number == by_place {
                    number = 0;
                    places.advance();
                }
            }
        });
    }
}

impl StridedCopy {
    /// The same of bytes, of elements that have 1, 2, 4 or 8 of them.
    ///
    /// # Panics
    /// As [`Self::run`], and if a slice is not aligned for its elements.
    pub(crate) fn run_bytes(
        &self,
        team: &mut Team,
        element_size: usize,
        input: &[u8],
        output: &mut [u8],
    ) {
        for_sizes!(element_size, T => {
            self.run::<T>(team, bytemuck::cast_slice(input), bytemuck::cast_slice_mut(output));
        });
    }
}

/// The rows of a matrix as columns: element `[row, column]` of the input becomes `[column, row]` of the output.
///
/// # Panics
/// If a slice has not `rows * columns` elements.
#[inline(always)]
pub(crate) fn transpose<T: NoUninit>(input: &[T], [rows, columns]: [usize; 2], output: &mut [T]) {
    let count = rows.checked_mul(columns);
    assert_eq!(Some(input.len()), count, "an input of another size");
    assert_eq!(Some(output.len()), count, "an output of another size");
    let along = Axis { length: columns, input_stride: 1, output_stride: rows };
    let across = Axis { length: rows, input_stride: columns.cast_signed(), output_stride: 1 };
    // SAFETY: all places of the matrix are within both slices.
    unsafe { copy_squares(input.as_ptr(), output.as_mut_ptr(), along, across) };
}

/// The innermost axes, cut into blocks of about [`BLOCK`] elements: tasks are made of whole ones. Mostly
/// there is one.
struct Blocks {
    /// The last two axes; if there is but one, the second one is of a single element.
    axes: [Axis; 2],
    /// How long a block is along them.
    lengths: [usize; 2],
    /// How many there are along them.
    counts: [usize; 2],
}

impl Blocks {
    /// Of whole squares with this side, if there are two axes; several, where threads could share them and there are few `outer`
    /// indexes to share.
    fn of(inner: &[Axis], side: usize, outer: usize) -> Self {
        let single = Axis { length: 1, input_stride: 0, output_stride: 0 };
        let axes = match *inner {
            [rows, columns] => [rows, columns],
            [axis] => [axis, single],
            _ => [single; 2],
        };
        let columns = axes[1].length.min(BLOCK / side);
        let shared = axes[0].length.saturating_mul(columns) / ELEMENTS_OF_COPY;
        let shared = if outer < TASKS_BY_THREAD { shared.clamp(1, TASKS_BY_THREAD) } else { 1 };
        let rows = axes[0].length.div_ceil(shared).min(BLOCK / columns).next_multiple_of(side);
        let rows = rows.min(axes[0].length);
        let lengths = [rows, columns];
        let counts = [0, 1].map(|axis: usize| axes[axis].length.div_ceil(lengths[axis]));
        Self { axes, lengths, counts }
    }

    /// How many there are.
    fn count(&self) -> usize {
        self.counts[0] * self.counts[1]
    }

    /// Elements of a block, but for the last ones of the axes.
    fn elements(&self) -> usize {
        self.lengths[0] * self.lengths[1]
    }

    /// The axes of a block, and how far behind the first element of input and output it begins.
    #[inline(always)]
    fn block(&self, number: usize) -> ([Axis; 2], [isize; 2]) {
        let mut offsets = [0; 2];
        let numbers = [number / self.counts[1], number % self.counts[1]];
        let axes = [0, 1].map(|at: usize| {
            let (axis, first) = (self.axes[at], numbers[at] * self.lengths[at]);
            offsets[0] += first.cast_signed() * axis.input_stride;
            offsets[1] += (first * axis.output_stride).cast_signed();
            Axis { length: (axis.length - first).min(self.lengths[at]), ..axis }
        });
        (axes, offsets)
    }
}

/// Whether `outer` goes on where `inner` ends.
fn goes_on(inner: &Axis, outer: &Axis) -> bool {
    let ends =
        |stride: isize| isize::try_from(inner.length).ok().and_then(|it| it.checked_mul(stride));
    ends(inner.input_stride) == Some(outer.input_stride)
        && inner.output_stride.checked_mul(inner.length) == Some(outer.output_stride)
}

/// How many elements input and output must have, for axes that are not empty.
///
/// # Panics
/// If an element is before the input's first one, or beyond any memory.
fn reached(axes: &[Axis], input_start: usize, output_start: usize) -> [usize; 2] {
    let too_far = "elements beyond memory";
    let start = i128::try_from(input_start).expect(too_far);
    let (mut least, mut greatest) = (start, start);
    let mut of_output = i128::try_from(output_start).expect(too_far);
    for axis in axes {
        let steps = i128::try_from(axis.length - 1).expect(too_far);
        let add = |to: i128, stride: i128| {
            steps.checked_mul(stride).and_then(|distance| to.checked_add(distance)).expect(too_far)
        };
        let stride = i128::try_from(axis.input_stride).expect(too_far);
        (least, greatest) = (add(least, stride.min(0)), add(greatest, stride.max(0)));
        of_output = add(of_output, i128::try_from(axis.output_stride).expect(too_far));
    }
    assert!(least >= 0, "an element before the input");
    let size = |last: i128| {
        let size = last.checked_add(1).and_then(|size| usize::try_from(size).ok());
        size.filter(|it| isize::try_from(*it).is_ok()).expect(too_far)
    };
    [size(greatest), size(of_output)]
}

/// The places of the outer axes' indexes, one after the other.
struct Places<'a> {
    axes: &'a [Axis],
    index: [usize; StridedCopy::MOST_AXES],
    input: isize,
    output: usize,
}

impl<'a> Places<'a> {
    fn new(axes: &'a [Axis], mut first: usize, input: usize, output: usize) -> Self {
        assert!(axes.len() <= StridedCopy::MOST_AXES, "too many axes");
        let index = [0; StridedCopy::MOST_AXES];
        let mut places = Self { axes, index, input: input.cast_signed(), output };
        for (number, axis) in axes.iter().enumerate().rev() {
            let index = first % axis.length;
            first /= axis.length;
            places.index[number] = index;
            places.input += index.cast_signed() * axis.input_stride;
            places.output += index * axis.output_stride;
        }
        places
    }

    #[inline(always)]
    fn advance(&mut self) {
        for (axis, index) in self.axes.iter().zip(&mut self.index).rev() {
            *index += 1;
            self.input += axis.input_stride;
            self.output += axis.output_stride;
            if *index < axis.length {
                return;
            }
            self.input -= index.cast_signed() * axis.input_stride;
            self.output -= *index * axis.output_stride;
            *index = 0;
        }
    }
}

/// Runs with fewer elements are copied many at a time.
const SHORT_RUN: usize = 256;

/// The most runs for which another axis is moved outwards.
const MOST_RUNS: usize = 1024;

/// Bytes from which on a run is left to the system's function, which takes some nanoseconds to find out what to do.
const LONG_RUN: usize = 1024;

/// Copies runs of this many elements.
///
/// # Safety
/// The elements of all runs may be read and written there.
#[inline(always)]
unsafe fn copy_runs<T: Copy>(from: *const T, to: *mut T, runs: Axis, length: usize) {
    let bytes = length * size_of::<T>();
    for run in 0..runs.length {
        let from = from.wrapping_offset(run.cast_signed() * runs.input_stride);
        let to = to.wrapping_add(run * runs.output_stride);
        // SAFETY: as the caller promises.
        unsafe {
            match bytes {
                LONG_RUN.. => std::ptr::copy_nonoverlapping(from, to, length),
                16.. => copy_short::<16>(from.cast(), to.cast(), bytes),
                8.. => copy_short::<8>(from.cast(), to.cast(), bytes),
                4.. => copy_short::<4>(from.cast(), to.cast(), bytes),
                _ => (0..bytes).for_each(|at| {
                    copy_bytes::<1>(
                        from.cast::<MaybeUninit<[u8; 1]>>().wrapping_add(at),
                        to.cast::<MaybeUninit<[u8; 1]>>().wrapping_add(at),
                    );
                }),
            }
        }
    }
}

/// Copies this many bytes, `COUNT` at a time; the last ones of them may be some that were copied before.
///
/// # Safety
/// They may be read and written there, and are no fewer than `COUNT`.
#[inline(always)]
unsafe fn copy_short<const COUNT: usize>(
    from: *const MaybeUninit<u8>,
    to: *mut MaybeUninit<u8>,
    bytes: usize,
) {
    let copy = |at: usize| {
        // SAFETY: as the caller promises.
        unsafe { copy_bytes::<COUNT>(from.wrapping_add(at).cast(), to.wrapping_add(at).cast()) };
    };
    let last = bytes.wrapping_sub(COUNT);
    let mut at = 0;
    while at < last {
        copy(at);
        at = at.wrapping_add(COUNT);
    }
    copy(last);
}

/// Copies bytes without a look at them: those between the fields of an element may never have been
/// written.
///
/// # Safety
/// They may be read and written there.
#[inline(always)]
unsafe fn copy_bytes<const COUNT: usize>(
    from: *const MaybeUninit<[u8; COUNT]>,
    to: *mut MaybeUninit<[u8; COUNT]>,
) {
    // SAFETY: as the caller promises; bytes have no alignment.
    unsafe { to.write(from.read()) };
}

/// # Safety
/// The elements of the axis may be read and written there.
#[inline(always)]
unsafe fn copy_elements<T: Copy>(mut from: *const T, mut to: *mut T, axis: Axis) {
    if axis.input_stride == 0 && axis.output_stride == 1 {
        // SAFETY: as the caller promises; the loop becomes vector instructions.
        let element = unsafe { from.read() };
        for index in 0..axis.length {
            // SAFETY: as above.
            unsafe { to.wrapping_add(index).write(element) };
        }
        return;
    }
    for _ in 0..axis.length {
        // SAFETY: as the caller promises; the last steps beyond are not used.
        unsafe { to.write(from.read()) };
        from = from.wrapping_offset(axis.input_stride);
        to = to.wrapping_add(axis.output_stride);
    }
}
