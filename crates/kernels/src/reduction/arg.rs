//! [`ArgReduction`]: where the greatest or least element of each slice stands.

use crate::InstructionSet;
use crate::movement::transpose;
use crate::preparation::product;
use crate::prepared::{ElementType, Operands, PreparedKernel, WrongValue, for_integers};
use crate::sharing::{Cut, for_each_rows};
use crate::short_rows::{MOST, ROWS, is_short};
use crate::team::{Pace, Team};
use crate::vector::{Isa, Kernel, Simd};
use bytemuck::NoUninit;

/// Which element is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgExtreme {
    /// ARGMAX
    Max,
    /// ARGMIN
    Min,
}

/// ARGMAX or ARGMIN of `[outer, length, inner]` along its second axis: the first one of equals, as
/// comparisons say; 0 if there is nothing.
///
/// # Panics
/// If the slices are not of these sizes.
pub fn arg_extreme<T: Compared>(
    set: InstructionSet,
    team: &mut Team,
    which: ArgExtreme,
    sizes: [usize; 3],
    input: &[T],
    output: &mut [i32],
) {
    let [outer, length, inner] = sizes;
    assert_eq!(Some(input.len()), product(&sizes), "an input of another size");
    assert_eq!(Some(output.len()), product(&[outer, inner]), "an output of another size");
    let (isa, cut) =
        (Isa::of(set), Cut { each: length.saturating_mul(inner), least: 8192, multiple: 1 });
    for_each_rows(team, (output, inner), cut, |part, output, pace| {
        let image = length * inner;
        let input = &input[part.start * image..part.end * image];
        match which {
            ArgExtreme::Max => isa.run(Part::<T, true> { length, inner, input, output, pace }),
            ArgExtreme::Min => isa.run(Part::<T, false> { length, inner, input, output, pace }),
        }
    });
}

/// Elements that can be compared.
pub trait Compared: Copy + PartialOrd + Default + NoUninit + Sync {
    /// A number as large as an element: vectors of both have the same number of lanes.
    type Place: Copy + PartialEq + From<u8> + Into<u64>;
}

macro_rules! compared {
    ($($Element:ty, $Place:ty);+) => {
        $(impl Compared for $Element {
            type Place = $Place;
        })+
    };
}

compared!(i8, u8; u8, u8; i16, u16; u16, u16; i32, u32; u32, u32; f32, u32; i64, u64; u64, u64; f64, u64);

/// Some slices along the axis.
struct Part<'a, T, const IS_MAX: bool> {
    length: usize,
    inner: usize,
    input: &'a [T],
    output: &'a mut [i32],
    pace: Pace<'a>,
}

impl<T: Compared, const IS_MAX: bool> Kernel for Part<'_, T, IS_MAX> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { length, inner, input, output, mut pace } = self;
        if length == 0 || inner == 0 {
            return output.fill(0);
        }
        if inner != 1 {
            let images = input.chunks_exact(length * inner);
            for (input, output) in images.zip(output.chunks_exact_mut(inner)) {
                of_columns::<T, IS_MAX>(input, inner, output, &mut pace);
            }
            return;
        }
        let mut rows = input;
        let mut output = output;
        if is_short(simd, length) && output.len() >= ROWS {
            let mut columns = [T::default(); ROWS * MOST];
            let columns = &mut columns[..ROWS * length];
            let whole = output.len() - output.len() % ROWS;
            let (first, rest) = output.split_at_mut(whole);
            for (input, output) in
                rows.chunks_exact(ROWS * length).zip(first.as_chunks_mut::<ROWS>().0)
            {
                transpose(input, [ROWS, length], columns);
                some_columns::<T, IS_MAX, ROWS>(columns, ROWS, output, &mut pace);
            }
            (rows, output) = (&rows[whole * length..], rest);
        }
        for (row, output) in rows.chunks_exact(length).zip(output) {
            *output = of_row::<T, IS_MAX>(row, &mut pace);
            if pace.is_over(1) {
                return;
            }
        }
    }
}

/// The places of the extremes of all columns of a matrix whose rows have this many elements.
#[inline(always)]
fn of_columns<T: Compared, const IS_MAX: bool>(
    input: &[T],
    stride: usize,
    output: &mut [i32],
    pace: &mut Pace<'_>,
) {
    const FEW: usize = 8;
    let (many, rest) = output.as_chunks_mut::<ROWS>();
    let mut first = 0;
    for output in many {
        some_columns::<T, IS_MAX, ROWS>(&input[first..], stride, output, pace);
        first += ROWS;
    }
    let (few, rest) = rest.as_chunks_mut::<FEW>();
    for output in few {
        some_columns::<T, IS_MAX, FEW>(&input[first..], stride, output, pace);
        first += FEW;
    }
    for output in rest {
        some_columns::<T, IS_MAX, 1>(&input[first..], stride, std::array::from_mut(output), pace);
        first += 1;
    }
}

/// Rows whose places fit in the smallest of [`Compared::Place`], together with [`NO_PLACE`].
const ROWS_OF_PLACES: usize = 255;
const NO_PLACE: u8 = 255;

/// The same of the first columns. The extremes are kept in an array that is handed on by value, so that no memory is compared
/// to see whether it overlaps.
#[inline(always)]
fn some_columns<T: Compared, const IS_MAX: bool, const COLUMNS: usize>(
    input: &[T],
    stride: usize,
    output: &mut [i32; COLUMNS],
    pace: &mut Pace<'_>,
) {
    let Some(first) = input.first_chunk::<COLUMNS>() else { return };
    let mut best = *first;
    *output = [0; COLUMNS];
    let mut start = 0_i32;
    for block in input.chunks(stride * ROWS_OF_PLACES) {
        if pace.is_over(COLUMNS * ROWS_OF_PLACES) {
            return;
        }
        let mut places = [T::Place::from(NO_PLACE); COLUMNS];
        for (place, row) in (0..NO_PLACE).zip(block.chunks(stride)) {
            let Some(row) = row.first_chunk::<COLUMNS>() else { break };
            let place = T::Place::from(place);
            for column in 0..COLUMNS {
                let is_better = is_better::<T, IS_MAX>(row[column], best[column]);
                best[column] = if is_better { row[column] } else { best[column] };
                places[column] = if is_better { place } else { places[column] };
            }
        }
        for (output, place) in output.iter_mut().zip(places) {
            if place != T::Place::from(NO_PLACE) {
                let place: u64 = place.into();
                *output = start.saturating_add(i32::try_from(place).unwrap_or(i32::MAX));
            }
        }
        start = start.saturating_add(i32::from(NO_PLACE));
    }
}

/// Elements that are compared side by side.
const LANES: usize = 16;

/// No comparison is true of a NaN, so that one that is first stays, and others are passed over.
#[inline(always)]
fn is_better<T: PartialOrd, const IS_MAX: bool>(element: T, best: T) -> bool {
    if IS_MAX { element > best } else { element < best }
}

/// The element, or the best before.
#[inline(always)]
fn better<T: Copy + PartialOrd, const IS_MAX: bool>(element: T, best: T) -> T {
    if is_better::<T, IS_MAX>(element, best) { element } else { best }
}

/// The place of the greatest element, or the least. No closures, which would be compiled without the instruction set.
#[inline(always)]
fn of_row<T: Copy + PartialOrd, const IS_MAX: bool>(elements: &[T], pace: &mut Pace<'_>) -> i32 {
    let Some(first) = elements.first() else { return 0 };
    let (mut best, mut place) = (*first, 0);
    for block in pace.blocks(elements.len(), 1) {
        let (lanes, rest) = elements[block.clone()].as_chunks::<LANES>();
        let before = best;
        if !lanes.is_empty() {
            let mut all = [best; LANES];
            for elements in lanes {
                for (all, element) in all.iter_mut().zip(elements) {
                    *all = better::<T, IS_MAX>(*element, *all);
                }
            }
            let mut half = LANES / 2;
            while half > 0 {
                for lane in 0..half {
                    all[lane] = better::<T, IS_MAX>(all[lane + half], all[lane]);
                }
                half /= 2;
            }
            best = all[0];
        }
        for element in rest {
            best = better::<T, IS_MAX>(*element, best);
        }
        if is_better::<T, IS_MAX>(best, before) {
            place = block.start + place_of(best, &elements[block]);
        }
    }
    i32::try_from(place).unwrap_or(i32::MAX)
}

/// Where the first element is that equals one of them.
#[inline(always)]
fn place_of<T: Copy + PartialEq>(wanted: T, elements: &[T]) -> usize {
    let (lanes, rest) = elements.as_chunks::<LANES>();
    let mut from = LANES * lanes.len();
    for (number, elements) in lanes.iter().enumerate() {
        let mut is_there = false;
        for element in elements {
            is_there |= *element == wanted;
        }
        if is_there {
            from = LANES * number;
            break;
        }
    }
    let rest = if from < LANES * lanes.len() { &elements[from..from + LANES] } else { rest };
    let mut place = from;
    for element in rest {
        if *element == wanted {
            break;
        }
        place += 1;
    }
    place
}

/// Prepared ARGMAX or ARGMIN along an axis.
#[derive(Debug, Clone, Copy)]
pub struct ArgReduction {
    /// With which instructions it is computed.
    pub set: InstructionSet,
    /// Which element is looked for.
    pub which: ArgExtreme,
    /// Elements before the axis, along it and behind it.
    pub sizes: [usize; 3],
    /// What is compared.
    pub elements: ElementType,
}

impl PreparedKernel for ArgReduction {
    fn name(&self) -> String {
        let operation = match self.which {
            ArgExtreme::Max => "argmax",
            ArgExtreme::Min => "argmin",
        };
        format!("{operation} {}", self.elements.name())
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        let (Self { set, which, sizes, .. }, output) = (*self, bytemuck::cast_slice_mut(output));
        for_integers!(
            self.elements,
            T => arg_extreme::<T>(set, team, which, sizes, inputs.of(0), output),
            ElementType::F32 => arg_extreme::<f32>(set, team, which, sizes, inputs.of(0), output),
            ElementType::F64 => arg_extreme::<f64>(set, team, which, sizes, inputs.of(0), output),
            ElementType::Bool => arg_extreme::<u8>(set, team, which, sizes, inputs.of(0), output),
        );
        Ok(())
    }
}
