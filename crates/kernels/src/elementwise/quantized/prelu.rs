//! [`QuantizedPrelu`]: PRELU of quantized tensors.

use super::product::Exact;
use super::sum::{clamped, for_each_vector};
use super::{Table, TableMap};
use crate::InstructionSet;
use crate::broadcast::{BLOCK, Operand, Walk};
use crate::multiplier::Multiplier;
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::quantization::Quantization;
use crate::team::Team;
use crate::vector::{Byte, Isa, Kernel, Simd, load_bytes_partial, store_bytes_partial};

/// Prepared PRELU of `u8` or `i8` tensors that broadcast: `x` where it is 0 or more, otherwise `alpha * x`,
/// each requantized by a factor of its own.
#[derive(Debug, Clone)]
pub struct QuantizedPrelu<T> {
    isa: Isa,
    walk: Walk,
    /// What becomes of elements that are 0 or more.
    above: TableMap,
    /// What becomes of the others.
    below: Exact,
    stored: std::marker::PhantomData<T>,
}

impl<T: Byte> QuantizedPrelu<T> {
    /// Of a tensor and its factors, of these shapes.
    ///
    /// # Panics
    /// If the shapes do not broadcast.
    pub fn prepare(
        set: InstructionSet,
        shapes: [&[usize]; 2],
        [input, alpha]: [Quantization; 2],
        output: Quantization,
    ) -> Self {
        // The quotient of the scales is one of floats.
        let factor = Multiplier::from_real(f64::from(input.scale / output.scale));
        let mut table = Table([0; 256]);
        for stored in T::RANGE.0..=T::RANGE.1 {
            let scaled = factor.apply(stored.wrapping_sub(input.zero_point));
            let result = T::nearest(scaled.saturating_add(output.zero_point));
            table.0[usize::from(bytemuck::cast::<T, u8>(T::nearest(stored)))] =
                bytemuck::cast(result);
        }
        Self {
            isa: Isa::of(set),
            walk: Walk::new(&shapes),
            above: TableMap::prepare(set, table),
            below: Exact::new::<T>([input, alpha], output, T::RANGE),
            stored: std::marker::PhantomData,
        }
    }

    /// Of all elements.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for.
    pub fn run(&self, team: &mut Team, input: &[T], alpha: &[T], output: &mut [T]) {
        self.walk.run(team, &[input, alpha], output, &|operands, output| {
            let mut room = [T::zeroed(); BLOCK];
            let above = match operands[0] {
                Operand::Elements(input) => {
                    let above = &mut room[..input.len()];
                    self.above.map(bytemuck::cast_slice(input), bytemuck::cast_slice_mut(above));
                    Operand::Elements(&*above)
                }
                Operand::Same(x) => Operand::Same(bytemuck::cast(self.above.at(bytemuck::cast(x)))),
            };
            let [x, alpha] = [operands[0], operands[1]];
            self.isa.run(Part { below: self.below, x, alpha, above, output });
        });
    }
}

impl<T: Byte> PreparedKernel for QuantizedPrelu<T> {
    fn name(&self) -> String {
        format!("prelu {}", T::NAME)
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        self.run(team, inputs.of(0), inputs.of(1), bytemuck::cast_slice_mut(output));
        Ok(())
    }
}

struct Part<'a, T> {
    below: Exact,
    x: Operand<'a, T>,
    alpha: Operand<'a, T>,
    above: Operand<'a, T>,
    output: &'a mut [T],
}

impl<T: Byte> Part<'_, T> {
    fn scalar(&self, x: T, alpha: T, above: T) -> T {
        if x.wide() >= self.below.zero_points[0] { above } else { self.below.scalar(x, alpha) }
    }
}

/// The operands of products.
struct Block<'a, T> {
    a: Operand<'a, T>,
    b: Operand<'a, T>,
    output: &'a mut [T],
}

impl<T: Byte> Kernel for Part<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        if !self.below.fits_vectors {
            for index in 0..self.output.len() {
                let (x, alpha) = (self.x.at(index), self.alpha.at(index));
                self.output[index] = self.scalar(x, alpha, self.above.at(index));
            }
            return;
        }
        let Self { below, x, alpha, above, output } = self;
        let products = Block { a: x, b: alpha, output: &mut *output };
        for_each_vector!(simd, products, below.range, |x, alpha| below.vector(simd, x, alpha));
        // It is in range, or products would not be vectors.
        let zero = T::nearest(below.zero_points[0]);
        match (x, above) {
            (Operand::Elements(x), Operand::Elements(above)) => {
                for (output, (x, above)) in output.iter_mut().zip(x.iter().zip(above)) {
                    *output = if *x >= zero { *above } else { *output };
                }
            }
            (Operand::Same(x), Operand::Same(above)) if x >= zero => {
                output.fill(above);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check<T: Byte>(inputs: [Quantization; 2], output: Quantization) {
        let all: Vec<T> = (T::RANGE.0..=T::RANGE.1).map(T::nearest).collect();
        let expected = |x: T, alpha: T| {
            let [of_x, of_alpha] = inputs;
            let (x, alpha) = (x.wide() - of_x.zero_point, alpha.wide() - of_alpha.zero_point);
            let product = f64::from(of_x.scale * of_alpha.scale) / f64::from(output.scale);
            let scaled = if x >= 0 {
                Multiplier::from_real(f64::from(of_x.scale / output.scale)).apply(x)
            } else {
                Multiplier::from_real(product).apply(x * alpha)
            };
            T::nearest(scaled.saturating_add(output.zero_point))
        };
        for set in InstructionSet::available() {
            // Every pair; the input is repeated, the factor is, none is.
            for shapes in [[&[256, 1][..], &[256][..]], [&[256][..], &[256, 1][..]]] {
                let prelu = QuantizedPrelu::<T>::prepare(set, shapes, inputs, output);
                let mut found = vec![T::zeroed(); 256 * 256];
                prelu.run(&mut Team::new(2), &all, &all, &mut found);
                for (index, found) in found.into_iter().enumerate() {
                    let pair = [index / 256, index % 256];
                    let [x, alpha] = if shapes[0].len() == 2 { pair } else { [pair[1], pair[0]] };
                    assert_eq!(found, expected(all[x], all[alpha]), "{set}");
                }
            }
            let prelu = QuantizedPrelu::<T>::prepare(set, [&[77], &[77]], inputs, output);
            let mut found = [T::zeroed(); 77];
            prelu.run(&mut Team::alone(), &all[90..167], &all[179..], &mut found);
            for (index, found) in found.into_iter().enumerate() {
                assert_eq!(found, expected(all[90 + index], all[179 + index]), "{set}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        #[test]
        fn all_pairs_of_operands(
            scales in proptest::array::uniform3(0.001..1.0_f32),
            zeros in proptest::array::uniform3(0..256),
        ) {
            let of = |index: usize, offset| {
                Quantization { scale: scales[index], zero_point: zeros[index] - offset }
            };
            check::<u8>([of(0, 0), of(1, 0)], of(2, 0));
            check::<i8>([of(0, 128), of(1, 128)], of(2, 128));
        }
    }
}
