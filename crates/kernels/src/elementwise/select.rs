//! [`Select`]: each element from one of two tensors.

use super::quantized::{TableMap, recoded};
use crate::InstructionSet;
use crate::broadcast::{BLOCK, Operand, Walk};
use crate::prepared::{Operands, PreparedKernel, WrongValue, for_sizes};
use crate::team::Team;
use crate::vector::{Isa, Kernel, Simd};
use bytemuck::Pod;

/// Prepared SELECT of elements of 1, 2, 4 or 8 bytes. Its inputs are conditions, of which all that are not 0 are
/// true, and what is chosen where they are true and where they are not; they broadcast.
#[derive(Debug, Clone)]
pub struct Select {
    isa: Isa,
    walk: Walk,
    element_size: usize,
    tables: [Option<TableMap>; 2],
}

impl Select {
    /// For tensors of three shapes, aligned at their last axes, and elements of this many bytes. Those of 1 byte may be looked
    /// up in a table first, which brings them to the output's quantization.
    ///
    /// # Panics
    /// If the shapes do not broadcast to a common one, elements have another size, or such of more than 1 byte have a
    /// table.
    pub fn prepare(
        set: InstructionSet,
        shapes: [&[usize]; 3],
        element_size: usize,
        tables: [Option<TableMap>; 2],
    ) -> Self {
        assert!(matches!(element_size, 1 | 2 | 4 | 8), "elements of {element_size} bytes");
        assert!(element_size == 1 || tables.iter().all(Option::is_none), "a table of bytes");
        Self { isa: Isa::of(set), walk: Walk::new(&shapes), element_size, tables }
    }

    fn choose<T: Bits>(
        &self,
        team: &mut Team,
        conditions: &[u8],
        choices: [&[T]; 2],
        output: &mut [T],
    ) {
        self.walk.run_chosen(team, conditions, &choices, output, &|conditions, choices, output| {
            let [then, other] = [choices[0], choices[1]];
            self.isa.run(Block { conditions, then, other, output });
        });
    }

    /// Of bytes after their tables.
    fn choose_recoded(
        &self,
        team: &mut Team,
        conditions: &[u8],
        choices: [&[u8]; 2],
        output: &mut [u8],
    ) {
        self.walk.run_chosen(team, conditions, &choices, output, &|conditions, choices, output| {
            let [mut of_then, mut of_other] = [[0; BLOCK]; 2];
            let then = recoded(self.tables[0].as_ref(), choices[0], &mut of_then);
            let other = recoded(self.tables[1].as_ref(), choices[1], &mut of_other);
            self.isa.run(Block { conditions, then, other, output });
        });
    }
}

struct Block<'a, T> {
    conditions: Operand<'a, u8>,
    then: Operand<'a, T>,
    other: Operand<'a, T>,
    output: &'a mut [T],
}

/// An integer as large as an element.
trait Bits: Pod + Send + Sync {
    /// One of two, by arithmetic: of a condition the compiler makes a choice between two addresses, and gathers what is there.
    fn chosen(condition: bool, then: Self, other: Self) -> Self;
}

macro_rules! bits {
    ($($T:ty),*) => {
        $(impl Bits for $T {
            #[inline(always)]
            fn chosen(condition: bool, then: Self, other: Self) -> Self {
                let mask = <$T>::from(condition).wrapping_neg();
                then & mask | other & !mask
            }
        })*
    };
}
bits!(u8, u16, u32, u64);

impl<T: Bits> Kernel for Block<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { conditions, then, other, output } = self;
        /// Elements by conditions; each operand one or many of them.
        macro_rules! chosen {
            ($conditions:expr, $then:expr, $other:expr) => {
                for ((output, condition), (then, other)) in
                    output.iter_mut().zip($conditions).zip($then.zip($other))
                {
                    *output = T::chosen(*condition != 0, *then, *other);
                }
            };
        }
        match (conditions, then, other) {
            (Operand::Same(condition), then, other) => {
                match if condition != 0 { then } else { other } {
                    Operand::Elements(chosen) => output.copy_from_slice(chosen),
                    Operand::Same(chosen) => output.fill(chosen),
                }
            }
            (Operand::Elements(conditions), Operand::Elements(a), Operand::Elements(b)) => {
                chosen!(conditions, a.iter(), b);
            }
            (Operand::Elements(conditions), Operand::Elements(a), Operand::Same(b)) => {
                chosen!(conditions, a.iter(), std::iter::repeat(&b));
            }
            (Operand::Elements(conditions), Operand::Same(a), Operand::Elements(b)) => {
                chosen!(conditions, std::iter::repeat(&a), b);
            }
            (Operand::Elements(conditions), Operand::Same(a), Operand::Same(b)) => {
                chosen!(conditions, std::iter::repeat(&a), std::iter::repeat(&b));
            }
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
        if self.tables.iter().any(Option::is_some) {
            self.choose_recoded(team, conditions, [inputs.of(1), inputs.of(2)], output);
        } else {
            for_sizes!(self.element_size, T => {
                let output = bytemuck::cast_slice_mut(output);
                self.choose::<T>(team, conditions, [inputs.of(1), inputs.of(2)], output);
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elementwise::quantized::Table;
    use crate::lines::Lines;
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
                    let kernel = Select::prepare(set, [&[count]; 3], 1, tables);
                    assert_eq!(outputs(&kernel, &inputs, [count]), [expected], "{set} {count}");
                }
                let wide = |of: &[u8], size: usize| -> Vec<u8> {
                    of.iter().flat_map(|it| std::iter::repeat_n(*it, size)).collect()
                };
                for size in [2, 4, 8] {
                    // Aligned, as vectors of bytes need not be.
                    let aligned = [&then, &other].map(|it| {
                        let mut lines = Lines::with_bytes(size * count);
                        lines.elements_mut()[..size * count].copy_from_slice(&wide(it, size));
                        lines
                    });
                    let [then, other] = aligned.each_ref().map(|it| &it.elements()[..size * count]);
                    let kernel = Select::prepare(set, [&[count]; 3], size, [None, None]);
                    let [found] = outputs(&kernel, &[&conditions, then, other], [size * count]);
                    assert_eq!(found, wide(&chosen(&|both| both), size), "{set} {count} {size}");
                }
            }
        }
    }

    #[test]
    fn conditions_and_choices_broadcast() {
        let conditions = [0, 1, 2];
        let (then, other) = ([10_u8, 20], [1_u8, 2, 3, 4, 5, 6]);
        for set in InstructionSet::available() {
            for (shapes, inputs, expected) in [
                (
                    [&[3, 1][..], &[2], &[3, 2]],
                    [&conditions[..], &then, &other],
                    vec![1, 2, 10, 20, 10, 20],
                ),
                (
                    [&[1, 3], &[2, 1], &[]],
                    [&conditions, &then, &other[..1]],
                    vec![1, 10, 10, 1, 20, 20],
                ),
                ([&[], &[2], &[1]], [&conditions[1..2], &then, &other[..1]], vec![10, 20]),
                ([&[1], &[], &[3, 2]], [&conditions[..1], &then[..1], &other], other.to_vec()),
                ([&[3], &[], &[]], [&conditions, &then[..1], &other[..1]], vec![1, 10, 10]),
            ] {
                let kernel = Select::prepare(set, shapes, 1, [None, None]);
                let [found] = outputs(&kernel, &inputs, [expected.len()]);
                assert_eq!(found, expected, "{set} {shapes:?}");
            }
        }
    }
}
