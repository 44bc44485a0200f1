//! [`QuantizedPrelu`]: PRELU of quantized tensors.

use super::product::Block;
use super::table::recoded;
use super::{QuantizedProduct, Table, TableMap};
use crate::InstructionSet;
use crate::broadcast::{BLOCK, Operand};
use crate::elementwise::pairs::{Broadcast, PairFunction};
use crate::multiplier::Multiplier;
use crate::quantization::Quantization;
use crate::team::Team;
use crate::vector::{Byte, Kernel, Simd};

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
            below: QuantizedProduct::new(set, [input, alpha], output, T::RANGE),
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
            isa.run(Block { product: self.below, a: x, b: alpha, output: &mut *output });
            isa.run(Above { zero_point: self.below.zero_points[0], x, above, output });
        });
    }
}

/// Replaces outputs by others where elements are 0 or more.
struct Above<'a, T> {
    zero_point: i32,
    x: Operand<'a, T>,
    above: Operand<'a, T>,
    output: &'a mut [T],
}

impl<T: Byte> Kernel for Above<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { zero_point, x, above, output } = self;
        // Elements are compared with the nearest number that they may be.
        if zero_point > T::RANGE.1 {
            return;
        }
        let zero = T::nearest(zero_point);
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
