//! [`Select`]: each element from one of two tensors.

use super::quantized::{TableMap, recoded};
use crate::InstructionSet;
use crate::broadcast::BLOCK;
use crate::parts::{ELEMENTS_OF_MAP, for_each_slice};
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::team::Team;
use crate::vector::{Isa, Kernel, Simd};
use bytemuck::Pod;

/// Prepared SELECT of elements of 1 or 4 bytes. Its inputs are conditions, of which all that are not 0 are
/// true, and what is chosen where they are true and where they are not.
#[derive(Debug, Clone)]
pub struct Select {
    isa: Isa,
    element_size: usize,
    tables: [Option<TableMap>; 2],
}

impl Select {
    /// Of elements of this many bytes. Those of 1 byte may be looked up in a table first, which brings
    /// them to the output's quantization.
    ///
    /// # Panics
    /// If elements have neither 1 nor 4 bytes, or those of 4 bytes have a table.
    pub fn prepare(
        set: InstructionSet,
        element_size: usize,
        tables: [Option<TableMap>; 2],
    ) -> Self {
        assert!(matches!(element_size, 1 | 4), "elements of {element_size} bytes");
        assert!(element_size == 1 || tables.iter().all(Option::is_none), "a table of bytes");
        Self { isa: Isa::of(set), element_size, tables }
    }

    fn choose<T: Pod + Send + Sync>(
        &self,
        team: &mut Team,
        conditions: &[u8],
        [then, other]: [&[T]; 2],
        output: &mut [T],
    ) {
        let sizes = [conditions.len(), then.len(), other.len()];
        assert_eq!(sizes, [output.len(); 3], "inputs of other sizes");
        for_each_slice(team, output, ELEMENTS_OF_MAP, |start, output| {
            let mut buffers = [[T::zeroed(); BLOCK]; 2];
            for (block, output) in output.chunks_mut(BLOCK).enumerate() {
                let part = start + block * BLOCK..start + block * BLOCK + output.len();
                let [room_of_then, room_of_other] = &mut buffers;
                let [of_then, of_other] = &self.tables;
                self.isa.run(Block {
                    then: recoded(of_then.as_ref(), &then[part.clone()], room_of_then),
                    other: recoded(of_other.as_ref(), &other[part.clone()], room_of_other),
                    conditions: &conditions[part],
                    output,
                });
            }
        });
    }
}

struct Block<'a, T> {
    conditions: &'a [u8],
    then: &'a [T],
    other: &'a [T],
    output: &'a mut [T],
}

impl<T: Copy> Kernel for Block<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let both = self.then.iter().zip(self.other);
        let all = self.output.iter_mut().zip(self.conditions).zip(both);
        for ((output, condition), (then, other)) in all {
            *output = if *condition != 0 { *then } else { *other };
        }
    }
}

impl PreparedKernel for Select {
    fn name(&self) -> String {
        "select".to_owned()
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        let conditions = inputs.of(0);
        if self.element_size == 1 {
            self.choose::<u8>(team, conditions, [inputs.of(1), inputs.of(2)], output);
        } else {
            let output = bytemuck::cast_slice_mut(output);
            self.choose::<u32>(team, conditions, [inputs.of(1), inputs.of(2)], output);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elementwise::quantized::Table;
    use crate::prepared::tests::outputs;

    #[test]
    fn elements_are_chosen_and_bytes_looked_up() {
        for count in [0, 1, 15, 16, 17, 100, 3 * BLOCK + 5] {
            let number = |index: usize| u8::try_from(index % 251).unwrap_or(0);
            let conditions: Vec<u8> = (0..count).map(|it| number(it * 7) % 3).collect();
            let then: Vec<u8> = (0..count).map(number).collect();
            let other: Vec<u8> = (0..count).map(|it| number(it + 100)).collect();
            let chosen = |of: &dyn Fn([u8; 2]) -> [u8; 2]| -> Vec<u8> {
                let both = then.iter().zip(&other).map(|(a, b)| of([*a, *b]));
                let chosen = both.zip(&conditions).map(|([a, b], it)| if *it != 0 { a } else { b });
                chosen.collect()
            };
            for set in InstructionSet::available() {
                let table = TableMap::prepare(set, Table::of_u8(|it| it ^ 77));
                let (none, one) = ([None, None], [None, Some(table.clone())]);
                let both = [Some(table.clone()), Some(table)];
                let inputs: [&[u8]; 3] = [&conditions, &then, &other];
                for (tables, expected) in [
                    (none, chosen(&|both| both)),
                    (one, chosen(&|[a, b]| [a, b ^ 77])),
                    (both, chosen(&|both| both.map(|it| it ^ 77))),
                ] {
                    let kernel = Select::prepare(set, 1, tables);
                    assert_eq!(outputs(&kernel, &inputs, [count]), [expected], "{set} {count}");
                }
                let wide = |of: &[u8]| -> Vec<u32> {
                    of.iter().map(|it| u32::from(*it) * 0x0101_0001).collect()
                };
                let (then, other) = (wide(&then), wide(&other));
                let inputs =
                    [&conditions, bytemuck::cast_slice(&then), bytemuck::cast_slice(&other)];
                let [found] = outputs(&Select::prepare(set, 4, [None, None]), &inputs, [4 * count]);
                let expected = wide(&chosen(&|both| both));
                assert_eq!(found, bytemuck::cast_slice::<u32, u8>(&expected), "{set} {count}");
            }
        }
    }
}
