//! [`QuantizedSoftmax`].

use crate::parts::{ELEMENTS_OF_TASK, for_each_slice_along};
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::team::{Pace, Team};
use crate::vector::Byte;
use std::marker::PhantomData;
use std::ops::Range;

/// Prepared SOFTMAX of `u8` or `i8` tensors; the output has scale 1/256 and the type's least number
/// as zero point.
#[derive(Debug, Clone)]
pub struct QuantizedSoftmax<T> {
    sizes: [usize; 3],
    /// The exponentials of this many steps below the greatest element.
    powers: Box<[f32; 256]>,
    stored: PhantomData<T>,
}

impl<T: Byte> PreparedKernel for QuantizedSoftmax<T> {
    fn name(&self) -> String {
        format!("softmax {}", T::NAME)
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        self.run(team, inputs.of(0), bytemuck::cast_slice_mut(output));
        Ok(())
    }
}

impl<T: Byte> QuantizedSoftmax<T> {
    /// Of a tensor `[outer, length, inner]` of some scale, along its second axis. The result is the
    /// nearest stored number, or a step beside it where halves are concerned.
    #[allow(clippy::cast_possible_truncation)] // Rounded once.
    pub fn prepare(sizes: [usize; 3], scale: f32, beta: f32) -> Self {
        let step = f64::from(scale) * f64::from(beta);
        let mut powers = Box::new([0.0; 256]);
        for (steps, power) in (0_u8..=255).zip(powers.iter_mut()) {
            *power = (-step * f64::from(steps)).exp() as f32;
        }
        Self { sizes, powers, stored: PhantomData }
    }

    /// Computes the output.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for.
    pub fn run(&self, team: &mut Team, input: &[T], output: &mut [T]) {
        let work =
            |input: &[T], output: &mut [T], pace: &mut Pace<'_>| self.slice(input, output, pace);
        for_each_slice_along(team, self.sizes, ELEMENTS_OF_TASK, (input, output), work);
    }

    /// One slice, whose elements have the inner size as their stride.
    #[allow(clippy::cast_possible_truncation)] // 256 at most.
    fn slice(&self, input: &[T], output: &mut [T], pace: &mut Pace<'_>) {
        let [_, length, inner] = self.sizes;
        let elements = |of: Range<usize>| {
            input[of.start * inner..].iter().step_by(inner).take(of.len()).map(|it| it.wide())
        };
        let mut greatest = T::RANGE.0;
        for block in pace.blocks(length, 1) {
            greatest = elements(block).fold(greatest, i32::max);
        }
        // Differences of bytes are from 0 to 255.
        let steps_below = |element: i32| usize::from((greatest - element).to_le_bytes()[0]);
        let power = |element: i32| self.powers[steps_below(element)];
        // Four sums, so that additions need not wait for each other.
        let mut sums = [0.0_f32; 4];
        for block in pace.blocks(length, 1) {
            for (index, element) in elements(block).enumerate() {
                sums[index % 4] += power(element);
            }
        }
        let factor = 256.0 / ((sums[0] + sums[1]) + (sums[2] + sums[3]));
        for block in pace.blocks(length, 1) {
            let outputs = output[block.start * inner..].iter_mut().step_by(inner);
            for (element, output) in elements(block).zip(outputs) {
                let steps = (power(element) * factor + 0.5) as i32;
                *output = T::nearest(steps + T::RANGE.0);
            }
        }
    }
}
