//! [`Recoded`]: two 8-bit tensors that are brought to one quantization and then combined.

use super::TableMap;
use super::table::recoded;
use crate::broadcast::BLOCK;
use crate::elementwise::pairs::{Broadcast, PairFunction, each_pair};
use crate::team::Team;
use crate::vector::Byte;
use std::marker::PhantomData;

/// What two stored numbers become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The greater one: MAXIMUM.
    Greater,
    /// The lesser one: MINIMUM.
    Lesser,
}

/// MAXIMUM or MINIMUM of `u8` or `i8` tensors, each of which may be looked up in a table first, which brings it
/// to the output's quantization.
#[derive(Debug, Clone)]
pub struct Recoded<T> {
    tables: [Option<TableMap>; 2],
    choice: Choice,
    stored: PhantomData<T>,
}

impl<T: Byte> Recoded<T> {
    /// With the tables of both inputs.
    pub fn new(tables: [Option<TableMap>; 2], choice: Choice) -> Self {
        Self { tables, choice, stored: PhantomData }
    }
}

impl<T: Byte> PairFunction for Recoded<T> {
    type Input = T;
    type Output = T;

    fn name(&self) -> String {
        let function = match self.choice {
            Choice::Greater => "max",
            Choice::Lesser => "min",
        };
        format!("elementwise {function} {}", T::NAME)
    }

    fn run(&self, pairs: &Broadcast, team: &mut Team, inputs: [&[T]; 2], output: &mut [T]) {
        pairs.by_block(team, inputs, output, |isa, [a, b], output| {
            let mut blocks = [[T::zeroed(); BLOCK]; 2];
            let [room_of_a, room_of_b] = &mut blocks;
            let [table_of_a, table_of_b] = self.tables.each_ref().map(Option::as_ref);
            let a = recoded(table_of_a, a, room_of_a);
            let b = recoded(table_of_b, b, room_of_b);
            match self.choice {
                Choice::Greater => each_pair(isa, [a, b], output, &T::max),
                Choice::Lesser => each_pair(isa, [a, b], output, &T::min),
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::Table;
    use super::*;
    use crate::InstructionSet;
    use crate::elementwise::Pairs;

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
                    let pairs = Pairs::prepare(set, shapes, Recoded::new(maps.clone(), choice));
                    let mut unsigned = vec![0_u8; a.len().max(b.len())];
                    pairs.run(&mut Team::new(2), &a, &b, &mut unsigned);
                    let mut signed = vec![0_i8; unsigned.len()];
                    let (of_a, of_b) = (bytemuck::cast_slice(&a), bytemuck::cast_slice(&b));
                    let pairs = Pairs::prepare(set, shapes, Recoded::<i8>::new(maps, choice));
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
