//! [`gather`]: rows chosen by number.
#![allow(unsafe_code)]

use crate::disjoint::DisjointOutput;
use crate::parts::{Cut, for_each_part};
use crate::team::{BLOCK, Team};

/// A number that no row has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoSuchRow {
    /// Which of the numbers, from 0.
    pub position: usize,
    /// The number itself.
    pub number: i32,
}

/// GATHER and EMBEDDING_LOOKUP: of `[outer, rows, inner]` the rows of these numbers, as
/// `[outer, numbers, inner]`.
///
/// # Errors
/// A number is negative or not below `rows`; nothing is written then.
///
/// # Panics
/// If input or output are not of these sizes.
pub fn gather<T: Copy + Send + Sync>(
    team: &mut Team,
    [outer, rows, inner]: [usize; 3],
    input: &[T],
    numbers: &[i32],
    output: &mut [T],
) -> Result<(), NoSuchRow> {
    let size = |rows: usize| outer.checked_mul(rows).and_then(|it| it.checked_mul(inner));
    assert_eq!(Some(input.len()), size(rows), "an input of another size");
    assert_eq!(Some(output.len()), size(numbers.len()), "an output of another size");
    let row = |number: i32| usize::try_from(number).ok().filter(|row| *row < rows);
    if let Some(position) = numbers.iter().position(|number| row(*number).is_none()) {
        return Err(NoSuchRow { position, number: numbers[position] });
    }
    if output.is_empty() {
        return Ok(());
    }
    let output = DisjointOutput::new(output);
    let blocks = inner.div_ceil(BLOCK);
    let cut = Cut { each: inner.min(BLOCK), least: super::ELEMENTS_OF_TASK, multiple: 1 };
    for_each_part(team, outer * numbers.len() * blocks, cut, |part, _| {
        for piece in part {
            let (place, first) = (piece / blocks, piece % blocks * BLOCK);
            let count = (inner - first).min(BLOCK);
            let row = row(numbers[place % numbers.len()]).unwrap_or(0);
            let start = (place / numbers.len() * rows + row) * inner + first;
            // SAFETY: every block of every place has its own elements, and every part its own blocks.
            let output = unsafe { output.slice(place * inner + first, count) };
            output.copy_from_slice(&input[start..start + count]);
        }
    });
    Ok(())
}
