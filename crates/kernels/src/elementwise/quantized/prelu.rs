//! [`QuantizedPrelu`]: PRELU of quantized tensors.

use super::sum::{clamped, for_each_vector};
use super::table::recoded;
use super::{QuantizedProduct, Table, TableMap};
use crate::InstructionSet;
use crate::broadcast::{BLOCK, Operand};
use crate::elementwise::pairs::{Broadcast, PairFunction};
use crate::multiplier::Multiplier;
use crate::quantization::Quantization;
use crate::team::Team;
use crate::vector::{Byte, Kernel, Simd, load_bytes_partial, store_bytes_partial};

/// PRELU of `u8` or `i8` tensors: `x` where it is 0 or more, otherwise `alpha * x`, each requantized by a factor
/// of its own.
#[derive(Debug, Clone)]
pub struct QuantizedPrelu<T> {
    /// What becomes of elements that are 0 or more.
    above: TableMap,
    /// What becomes of the others.
    below: QuantizedProduct<T>,
}

impl<T: Byte> QuantizedPrelu<T> {
    /// Of a tensor and its factors.
    pub fn new(
        set: InstructionSet,
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
            above: TableMap::prepare(set, table),
            below: QuantizedProduct::new([input, alpha], output, T::RANGE),
        }
    }
}

impl<T: Byte> PairFunction for QuantizedPrelu<T> {
    type Input = T;
    type Output = T;

    fn name(&self) -> String {
        format!("prelu {}", T::NAME)
    }

    fn run(&self, pairs: &Broadcast, team: &mut Team, inputs: [&[T]; 2], output: &mut [T]) {
        pairs.by_block(team, inputs, output, |isa, [x, alpha], output| {
            let mut room = [T::zeroed(); BLOCK];
            let above = recoded(Some(&self.above), x, &mut room);
            isa.run(Part { below: self.below, x, alpha, above, output });
        });
    }
}

struct Part<'a, T> {
    below: QuantizedProduct<T>,
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
