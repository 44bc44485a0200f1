//! [`RecodedPairs`]: two 8-bit tensors that are brought to one quantization and then combined.

use super::TableMap;
use crate::InstructionSet;
use crate::broadcast::{BLOCK, Operand, Walk};
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::team::Team;
use crate::vector::{Byte, Isa, Kernel, Simd};
use std::marker::PhantomData;

/// What two stored numbers become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The greater one: MAXIMUM.
    Greater,
    /// The lesser one: MINIMUM.
    Lesser,
}

/// Prepared MAXIMUM or MINIMUM of `u8` or `i8` tensors that broadcast. Each may be looked up in a table
/// first, which brings it to the output's quantization.
#[derive(Debug, Clone)]
pub struct RecodedPairs<T> {
    isa: Isa,
    walk: Walk,
    tables: [Option<TableMap>; 2],
    choice: Choice,
    stored: PhantomData<T>,
}

impl<T: Byte> RecodedPairs<T> {
    /// For tensors of two shapes.
    ///
    /// # Panics
    /// If the shapes do not broadcast.
    pub fn prepare(
        set: InstructionSet,
        shapes: [&[usize]; 2],
        tables: [Option<TableMap>; 2],
        choice: Choice,
    ) -> Self {
        Self { isa: Isa::of(set), walk: Walk::new(&shapes), tables, choice, stored: PhantomData }
    }

    /// Of all elements.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for.
    pub fn run(&self, team: &mut Team, a: &[T], b: &[T], output: &mut [T]) {
        self.walk.run(team, &[a, b], output, &|operands, output| {
            let mut blocks = [[T::zeroed(); BLOCK]; 2];
            let [room_of_a, room_of_b] = &mut blocks;
            let [table_of_a, table_of_b] = &self.tables;
            let a = recoded(table_of_a.as_ref(), operands[0], room_of_a);
            let b = recoded(table_of_b.as_ref(), operands[1], room_of_b);
            self.isa.run(Block { choice: self.choice, a, b, output });
        });
    }
}

impl<T: Byte> PreparedKernel for RecodedPairs<T> {
    fn name(&self) -> String {
        let function = match self.choice {
            Choice::Greater => "max",
            Choice::Lesser => "min",
        };
        format!("elementwise {function} {}", T::NAME)
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        self.run(team, inputs.of(0), inputs.of(1), bytemuck::cast_slice_mut(output));
        Ok(())
    }
}

/// An operand after its table.
fn recoded<'a, T: Byte>(
    table: Option<&TableMap>,
    operand: Operand<'a, T>,
    room: &'a mut [T; BLOCK],
) -> Operand<'a, T> {
    match (table, operand) {
        (None, operand) => operand,
        (Some(table), Operand::Elements(elements)) => {
            let room = &mut room[..elements.len()];
            table.map(bytemuck::cast_slice(elements), bytemuck::cast_slice_mut(room));
            Operand::Elements(room)
        }
        (Some(table), Operand::Same(element)) => {
            Operand::Same(bytemuck::cast(table.at(bytemuck::cast(element))))
        }
    }
}

struct Block<'a, T> {
    choice: Choice,
    a: Operand<'a, T>,
    b: Operand<'a, T>,
    output: &'a mut [T],
}

impl<T: Byte> Kernel for Block<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { choice, a, b, output } = self;
        let (elements, other) = match (a, b) {
            (Operand::Elements(elements), other) | (other, Operand::Elements(elements)) => {
                (elements, other)
            }
            (Operand::Same(a), Operand::Same(b)) => {
                output.fill(match choice {
                    Choice::Greater => a.max(b),
                    Choice::Lesser => a.min(b),
                });
                return;
            }
        };
        match (choice, other) {
            (Choice::Greater, Operand::Elements(other)) => {
                for (output, (a, b)) in output.iter_mut().zip(elements.iter().zip(other)) {
                    *output = *a.max(b);
                }
            }
            (Choice::Lesser, Operand::Elements(other)) => {
                for (output, (a, b)) in output.iter_mut().zip(elements.iter().zip(other)) {
                    *output = *a.min(b);
                }
            }
            (Choice::Greater, Operand::Same(other)) => {
                for (output, a) in output.iter_mut().zip(elements) {
                    *output = (*a).max(other);
                }
            }
            (Choice::Lesser, Operand::Same(other)) => {
                for (output, a) in output.iter_mut().zip(elements) {
                    *output = (*a).min(other);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Table;
    use super::*;

    #[test]
    fn tables_come_before_the_choice() {
        let mut random = fastrand::Rng::with_seed(8);
        let tables: [Table; 2] = [(); 2].map(|()| Table(std::array::from_fn(|_| random.u8(..))));
        let shapes: [[&[usize]; 2]; 4] =
            [[&[3, 999], &[3, 999]], [&[3, 999], &[3, 1]], [&[1], &[3, 999]], [&[1], &[1, 1]]];
        for set in InstructionSet::available() {
            for (shapes, uses) in
                shapes.into_iter().flat_map(|it| (0..4).map(move |uses| (it, uses)))
            {
                let [a, b] = shapes.map(|shape| {
                    let count = shape.iter().product();
                    (0..count).map(|_| random.u8(..)).collect::<Vec<u8>>()
                });
                let used = [0, 1].map(|side| (uses >> side & 1 == 1).then_some(tables[side]));
                let through = |side: usize, element: u8| match used[side] {
                    Some(table) => table.0[usize::from(element)],
                    None => element,
                };
                for choice in [Choice::Greater, Choice::Lesser] {
                    let maps = used.map(|it| it.map(|table| TableMap::prepare(set, table)));
                    let pairs = RecodedPairs::prepare(set, shapes, maps.clone(), choice);
                    let mut unsigned = vec![0_u8; pairs.walk.elements()];
                    pairs.run(&mut Team::new(2), &a, &b, &mut unsigned);
                    let mut signed = vec![0_i8; unsigned.len()];
                    let (of_a, of_b) = (bytemuck::cast_slice(&a), bytemuck::cast_slice(&b));
                    let pairs = RecodedPairs::<i8>::prepare(set, shapes, maps, choice);
                    pairs.run(&mut Team::alone(), of_a, of_b, &mut signed);
                    for (index, (unsigned, signed)) in unsigned.into_iter().zip(signed).enumerate()
                    {
                        let of_b = if shapes[1] == [3, 1] { index / 999 } else { index };
                        let x = through(0, a[index.min(a.len() - 1)]);
                        let y = through(1, b[of_b.min(b.len() - 1)]);
                        let (i, j) = (x.cast_signed(), y.cast_signed());
                        let expected = match choice {
                            Choice::Greater => (x.max(y), i.max(j)),
                            Choice::Lesser => (x.min(y), i.min(j)),
                        };
                        assert_eq!((unsigned, signed), expected, "{set} {shapes:?}");
                    }
                }
            }
        }
    }
}
