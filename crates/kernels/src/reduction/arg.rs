//! [`ArgReduction`]: where the greatest or least element of each slice stands.

use crate::preparation::product;
use crate::prepared::{ElementType, Operands, PreparedKernel, WrongValue, for_integers};
use crate::sharing::{Cut, for_each_rows};
use crate::team::{Pace, Team};

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
pub fn arg_extreme<T: Copy + PartialOrd + Sync>(
    team: &mut Team,
    which: ArgExtreme,
    [outer, length, inner]: [usize; 3],
    input: &[T],
    output: &mut [i32],
) {
    assert_eq!(Some(input.len()), product(&[outer, length, inner]), "an input of another size");
    assert_eq!(Some(output.len()), product(&[outer, inner]), "an output of another size");
    let cut = Cut { each: length * inner, least: 8192, multiple: 1 };
    for_each_rows(team, (output, inner), cut, |part, output, mut pace| {
        for (index, output) in part.zip(output.chunks_exact_mut(inner)) {
            let input = &input[index * length * inner..(index + 1) * length * inner];
            let (true, [output]) = (inner == 1, &mut *output) else {
                for (column, output) in output.iter_mut().enumerate() {
                    *output =
                        of_column(which, input.get(column..).unwrap_or(&[]), inner, &mut pace);
                }
                continue;
            };
            *output = match which {
                ArgExtreme::Max => of_row::<T, true>(input, &mut pace),
                ArgExtreme::Min => of_row::<T, false>(input, &mut pace),
            };
            if pace.is_over(1) {
                return;
            }
        }
    });
}

/// The place of the extreme of every `step`th element.
fn of_column<T: Copy + PartialOrd>(
    which: ArgExtreme,
    elements: &[T],
    step: usize,
    pace: &mut Pace<'_>,
) -> i32 {
    let mut best: Option<(usize, T)> = None;
    for block in pace.blocks(elements.len().div_ceil(step), 1) {
        let elements = elements[block.start * step..].iter().step_by(step);
        for (place, element) in block.zip(elements) {
            let is_better = best.is_none_or(|(_, best)| match which {
                ArgExtreme::Max => *element > best,
                ArgExtreme::Min => *element < best,
            });
            if is_better {
                best = Some((place, *element));
            }
        }
    }
    best.map_or(0, |(place, _)| i32::try_from(place).unwrap_or(i32::MAX))
}

/// Elements that are compared side by side.
const LANES: usize = 16;

/// The place of the greatest element, or the least.
fn of_row<T: Copy + PartialOrd, const IS_MAX: bool>(elements: &[T], pace: &mut Pace<'_>) -> i32 {
    let Some(first) = elements.first() else { return 0 };
    // No comparison is true of a NaN: one that is first stays, others are passed over.
    let is_better = |element: T, best: T| if IS_MAX { element > best } else { element < best };
    let better = |element: T, best: T| if is_better(element, best) { element } else { best };
    let (mut best, mut place) = (*first, 0);
    for block in pace.blocks(elements.len(), 1) {
        let (lanes, rest) = elements[block.clone()].as_chunks::<LANES>();
        let mut all = [best; LANES];
        for elements in lanes {
            for (all, element) in all.iter_mut().zip(elements) {
                *all = better(*element, *all);
            }
        }
        let of_block = rest.iter().chain(&all).fold(best, |best, it| better(*it, best));
        if is_better(of_block, best) {
            let found = elements[block.clone()].iter().position(|it| *it == of_block);
            (best, place) = (of_block, block.start + found.unwrap_or(0));
        }
    }
    i32::try_from(place).unwrap_or(i32::MAX)
}

/// Prepared ARGMAX or ARGMIN along an axis.
#[derive(Debug, Clone, Copy)]
pub struct ArgReduction {
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
        let (Self { which, sizes, .. }, output) = (*self, bytemuck::cast_slice_mut(output));
        for_integers!(
            self.elements,
            T => arg_extreme::<T>(team, which, sizes, inputs.of(0), output),
            ElementType::F32 => arg_extreme::<f32>(team, which, sizes, inputs.of(0), output),
            ElementType::F64 => arg_extreme::<f64>(team, which, sizes, inputs.of(0), output),
            ElementType::Bool => arg_extreme::<u8>(team, which, sizes, inputs.of(0), output),
        );
        Ok(())
    }
}
