//! [`Gather`]: rows chosen by number.
#![allow(unsafe_code)]

use crate::InstructionSet;
use crate::disjoint::DisjointOutput;
use crate::elementwise::f16_to_f32;
use crate::preparation::product;
use crate::prepared::{Operands, PreparedKernel, WrongValue, for_sizes};
use crate::sharing::{Cut, ELEMENTS_OF_COPY, for_each_part, for_each_rows};
use crate::team::{BLOCK, Team};

/// Prepared GATHER or EMBEDDING_LOOKUP. Inputs: the table and the numbers of its rows.
#[derive(Debug, Clone, Copy)]
pub struct Gather {
    /// Elements before the rows' axis, rows, and elements of a row.
    pub sizes: [usize; 3],
    /// What elements are.
    pub elements: Elements,
}

/// Elements that are gathered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elements {
    /// Of this many bytes, 1, 2, 4 or 8, as they are.
    Plain {
        /// Bytes of an element.
        size: usize,
    },
    /// Floats of 16 bits, that become floats of 32 bits.
    Halves {
        /// How many are chosen.
        chosen: usize,
        /// With which instructions they are widened.
        set: InstructionSet,
    },
}

impl PreparedKernel for Gather {
    fn name(&self) -> String {
        "gather".to_owned()
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], scratch) = operands.split();
        let (sizes, numbers) = (self.sizes, inputs.of(1));
        match self.elements {
            Elements::Halves { chosen, set } => {
                let halves = &mut bytemuck::cast_slice_mut(scratch)[..chosen];
                gather::<u16>(team, sizes, inputs.of(0), numbers, halves)
                    .map(|()| f16_to_f32(set, team, halves, bytemuck::cast_slice_mut(output)))
            }
            Elements::Plain { size } => for_sizes!(size, T => {
                let output = bytemuck::cast_slice_mut(output);
                gather::<T>(team, sizes, inputs.of(0), numbers, output)
            }),
        }
    }

    fn scratch_bytes(&self) -> usize {
        match self.elements {
            Elements::Plain { .. } => 0,
            Elements::Halves { chosen, .. } => chosen * size_of::<u16>(),
        }
    }
}

/// GATHER and EMBEDDING_LOOKUP: of `[outer, rows, inner]` the rows of these numbers, as
/// `[outer, numbers, inner]`.
///
/// # Errors
/// A number is negative or not below `rows`; nothing is written then.
///
/// # Panics
/// If input or output are not of these sizes.
pub(crate) fn gather<T: Copy + Send + Sync>(
    team: &mut Team,
    [outer, rows, inner]: [usize; 3],
    input: &[T],
    numbers: &[i32],
    output: &mut [T],
) -> Result<(), WrongValue> {
    assert_eq!(Some(input.len()), product(&[outer, rows, inner]), "an input of another size");
    let written = product(&[outer, numbers.len(), inner]);
    assert_eq!(Some(output.len()), written, "an output of another size");
    let row = |number: i32| usize::try_from(number).ok().filter(|row| *row < rows);
    if let Some(number) = numbers.iter().find(|number| row(**number).is_none()) {
        let (found, expected) = (number.to_string(), format!("0 or more, below {rows}"));
        return Err(WrongValue { input: 1, what: "value", found, expected });
    }
    if output.is_empty() {
        return Ok(());
    }
    match inner {
        1 => gather_short::<T, 1>(team, rows, input, numbers, output),
        2 => gather_short::<T, 2>(team, rows, input, numbers, output),
        4 => gather_short::<T, 4>(team, rows, input, numbers, output),
        8 => gather_short::<T, 8>(team, rows, input, numbers, output),
        _ => copy_rows(team, (input, inner), output, |place| {
            let row = usize::try_from(numbers[place % numbers.len()]).unwrap_or(0);
            Some((place / numbers.len() * rows + row) * inner)
        }),
    }
    Ok(())
}

/// Fills an output of rows of `inner` elements with those that begin at `start` of each row's number. A row that has
/// no start is left as it is.
pub(super) fn copy_rows<T: Copy + Send + Sync>(
    team: &mut Team,
    (input, inner): (&[T], usize),
    output: &mut [T],
    start: impl Fn(usize) -> Option<usize> + Sync,
) {
    let output_rows = output.len() / inner;
    let output = DisjointOutput::new(output);
    let blocks = inner.div_ceil(BLOCK);
    let cut = Cut { each: inner.min(BLOCK), least: ELEMENTS_OF_COPY, multiple: 1 };
    for_each_part(team, output_rows * blocks, cut, |part, _| {
        for piece in part {
            let (place, first) = (piece / blocks, piece % blocks * BLOCK);
            let Some(start) = start(place) else { continue };
            let count = (inner - first).min(BLOCK);
            // SAFETY: every block of every place has its own elements, and every part its own blocks.
            let output = unsafe { output.slice(place * inner + first, count) };
            output.copy_from_slice(&input[start + first..][..count]);
        }
    });
}

/// [`gather`] of rows of so few elements that calls and divisions for each would take longer than copying them. The
/// numbers are those of rows.
fn gather_short<T: Copy + Send + Sync, const N: usize>(
    team: &mut Team,
    rows: usize,
    input: &[T],
    numbers: &[i32],
    output: &mut [T],
) {
    let (input, _) = input.as_chunks::<N>();
    let cut = Cut { each: N, least: ELEMENTS_OF_COPY, multiple: 1 };
    for_each_rows(team, (output, N), cut, |part, output, _| {
        let (mut first, mut at) = (part.start / numbers.len() * rows, part.start % numbers.len());
        for output in output.as_chunks_mut::<N>().0 {
            *output = input[first + usize::try_from(numbers[at]).unwrap_or(0)];
            at += 1;
            if at == numbers.len() {
                (first, at) = (first + rows, 0);
            }
        }
    });
}
