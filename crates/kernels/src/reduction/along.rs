//! Normalizations along any axis, and of whole images, as prepared kernels.

use super::{RowNormalization, instance_normalization, local_response_normalization};
use crate::Multiplier;
use crate::movement::StridedCopy;
use crate::prepared::{OneInput, Operands, PreparedKernel, WrongValue};
use crate::sharing::{ELEMENTS_OF_TASK, for_each_slice_along};
use crate::team::{Pace, Team};
use crate::vector::Byte;
use std::marker::PhantomData;

/// Layer normalization. Inputs: the rows, and a factor and an offset for each column, as far as there are
/// any.
#[derive(Debug, Clone)]
pub struct LayerNormalization {
    /// Of the rows.
    pub rows: RowNormalization,
    /// Whether there are factors.
    pub has_scale: bool,
    /// Whether there are offsets.
    pub has_offset: bool,
}

impl PreparedKernel for LayerNormalization {
    fn name(&self) -> String {
        "layer normalization f32".to_owned()
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        let scale = self.has_scale.then(|| inputs.of(1));
        let offset = self.has_offset.then(|| inputs.of(1 + usize::from(self.has_scale)));
        let output = bytemuck::cast_slice_mut(output);
        self.rows.run(team, inputs.of(0), scale, offset, output);
        Ok(())
    }
}

/// INSTANCE_NORMALIZATION: see [`instance_normalization`].
#[derive(Debug, Clone, Copy)]
pub struct InstanceNormalization {
    /// Batch, pixels and channels.
    pub sizes: [usize; 3],
    /// Gamma, beta and epsilon.
    pub numbers: [f32; 3],
}

impl PreparedKernel for InstanceNormalization {
    fn name(&self) -> String {
        "instance normalization f32".to_owned()
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        let output = bytemuck::cast_slice_mut(output);
        instance_normalization(team, self.sizes, self.numbers, inputs.of(0), output);
        Ok(())
    }
}

/// What is done with rows of floats.
#[derive(Debug, Clone)]
pub enum OfRows {
    /// L2_NORMALIZATION.
    L2(RowNormalization),
    /// LOCAL_RESPONSE_NORMALIZATION: see [`local_response_normalization`].
    LocalResponse {
        /// Of a row.
        length: usize,
        /// How far elements are added up.
        radius: usize,
        /// Bias, alpha and beta.
        numbers: [f32; 3],
    },
}

/// A prepared normalization along any axis: of rows, to which slices along other axes than the last are
/// brought.
#[derive(Debug)]
pub struct AlongAxis {
    kernel: OfRows,
    /// To rows and back.
    turns: Option<[StridedCopy; 2]>,
    elements: usize,
}

impl AlongAxis {
    /// Of a tensor with these lengths before the axis, along it and behind it.
    pub fn prepare([outer, length, inner]: [usize; 3], kernel: OfRows) -> Self {
        let turned = |lengths: [usize; 3]| StridedCopy::transpose(&lengths, &[0, 2, 1]);
        let turns =
            (inner > 1).then(|| [turned([outer, length, inner]), turned([outer, inner, length])]);
        Self { kernel, turns, elements: outer * length * inner }
    }

    fn of_rows(&self, team: &mut Team, input: &[f32], output: &mut [f32]) {
        match &self.kernel {
            OfRows::L2(kernel) => kernel.run(team, input, None, None, output),
            OfRows::LocalResponse { length, radius, numbers } => {
                local_response_normalization(team, *length, *radius, *numbers, input, output);
            }
        }
    }
}

impl PreparedKernel for AlongAxis {
    fn name(&self) -> String {
        match &self.kernel {
            OfRows::L2(_) => "l2 normalization f32".to_owned(),
            OfRows::LocalResponse { .. } => "local response normalization f32".to_owned(),
        }
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], scratch) = operands.split();
        let output = bytemuck::cast_slice_mut(output);
        let Some([to_rows, back]) = &self.turns else {
            self.of_rows(team, inputs.of(0), output);
            return Ok(());
        };
        let scratch = bytemuck::cast_slice_mut(scratch);
        let (rows, results) = scratch.split_at_mut(self.elements);
        to_rows.run(team, inputs.of(0), rows);
        let results = &mut results[..self.elements];
        self.of_rows(team, rows, results);
        back.run(team, results, output);
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.turns.as_ref().map_or(0, |_| 2 * self.elements * size_of::<f32>())
    }
}

/// Prepared L2_NORMALIZATION of `u8` or `i8`, whose output is in steps of 1/128, in integers.
#[derive(Debug, Clone, Copy)]
pub struct QuantizedL2<T> {
    sizes: [usize; 3],
    zero_points: [i32; 2],
    stored: PhantomData<T>,
}

impl<T: Byte> QuantizedL2<T> {
    /// Of a tensor with these lengths before the axis, along it and behind it; the zero points are those of
    /// input and output.
    pub fn prepare(sizes: [usize; 3], zero_points: [i32; 2]) -> Self {
        Self { sizes, zero_points, stored: PhantomData }
    }

    /// One slice, whose elements have the inner size as their stride.
    fn slice(&self, input: &[T], output: &mut [T], pace: &mut Pace<'_>) {
        let [_, length, inner] = self.sizes;
        let [zero_of_input, zero_of_output] = self.zero_points;
        let mut squares = 0;
        for block in pace.blocks(length, OF_ELEMENT) {
            let elements = input[block.start * inner..].iter().step_by(inner).take(block.len());
            squares += elements.map(|it| i64::from(it.wide() - zero_of_input).pow(2)).sum::<i64>();
        }
        let factor = Multiplier::inverse_square_root(squares);
        for block in pace.blocks(length, OF_ELEMENT) {
            let elements = input[block.start * inner..].iter().step_by(inner).take(block.len());
            let outputs = output[block.start * inner..].iter_mut().step_by(inner);
            for (element, output) in elements.zip(outputs) {
                let steps = factor.apply((element.wide() - zero_of_input) * 128);
                *output = T::nearest(steps.saturating_add(zero_of_output));
            }
        }
    }
}

/// Multiplications that take about as long as an element.
const OF_ELEMENT: usize = 4;

impl<T: Byte> OneInput for QuantizedL2<T> {
    type Input = T;
    type Output = T;

    fn name(&self) -> String {
        format!("l2 normalization {}", T::NAME)
    }

    fn run(&self, team: &mut Team, input: &[T], output: &mut [T]) {
        let work =
            |input: &[T], output: &mut [T], pace: &mut Pace<'_>| self.slice(input, output, pace);
        for_each_slice_along(team, self.sizes, ELEMENTS_OF_TASK, (input, output), work);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_slices_have_the_length_of_128_steps() {
        // 3 and 4 are 0.6 and 0.8 of their length, 76.8 and 102.4 steps.
        let (input, mut output) = ([13_u8, 10, 14, 11], [0; 4]);
        QuantizedL2::prepare([1, 2, 2], [10, 128]).run(&mut Team::new(2), &input, &mut output);
        assert_eq!(output, [205, 128, 230, 255]);
        let (input, mut output) = ([-3_i8, 4], [0; 2]);
        QuantizedL2::prepare([1, 2, 1], [0, 0]).run(&mut Team::alone(), &input, &mut output);
        assert_eq!(output, [-77, 102]);
    }

    #[test]
    fn a_long_slice_asks_whether_to_go_on() {
        let length = 1 << 22;
        let (input, mut output) = (vec![3_u8; length], vec![0; length]);
        let questions = std::sync::atomic::AtomicUsize::new(0);
        let ask = || questions.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 3;
        Team::alone().until(&ask, |team| {
            QuantizedL2::prepare([1, length, 1], [0, 0]).run(team, &input, &mut output);
            assert!(team.is_stopped());
        });
    }
}
