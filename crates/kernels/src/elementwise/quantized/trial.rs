//! Ways to compute all pairs of 8-bit operands, of which there are only 65,536: they can be tried.

use crate::broadcast::Operand;
use crate::vector::Byte;

/// How outputs are computed, with numbers of some kind where it is done in floats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Variant<F> {
    /// One by one; for scales that no real model has.
    Scalar,
    /// In vectors of integers.
    Integers,
    /// In vectors of floats, which was found to give the same for all operands.
    Floats(F),
}

/// Computes a block.
type Run<'a, V, T> = dyn Fn(V, [Operand<'_, T>; 2], &mut [T]) + 'a;

/// In floats with the first of some numbers that give for all operands what integers give, or in integers.
pub(super) fn floats_that_agree<T: Byte, F: Copy>(
    numbers: impl IntoIterator<Item = F>,
    run: impl Fn(Variant<F>, [Operand<'_, T>; 2], &mut [T]),
) -> Variant<F> {
    let run: &Run<'_, Variant<F>, T> = &run;
    let all: Vec<T> = (T::RANGE.0..=T::RANGE.1).map(T::nearest).collect();
    let operands = |x: &T| [Operand::Same(*x), Operand::Elements(&all[..])];
    let mut expected = vec![T::zeroed(); all.len() * all.len()];
    for (x, expected) in all.iter().zip(expected.chunks_exact_mut(all.len())) {
        run(Variant::Integers, operands(x), expected);
    }
    let mut found = vec![T::zeroed(); all.len()];
    let mut variants = numbers.into_iter().map(Variant::Floats);
    let agrees = |variant: &Variant<F>| {
        all.iter().zip(expected.chunks_exact(all.len())).all(|(x, expected)| {
            run(*variant, operands(x), &mut found);
            found == expected
        })
    };
    variants.find(agrees).unwrap_or(Variant::Integers)
}
