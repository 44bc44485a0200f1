//! [`Contribution`]: what the inputs of all steps contribute to a gate.

use super::sequences::Steps;
use crate::fully_connected::{FullyConnected, Sizes, Storage};
use crate::{Epilogue, Preparation, PreparedKernel, Team, TooLarge};

/// Weights from the inputs to the units of a gate.
#[derive(Debug)]
pub(super) struct Contribution {
    input: FullyConnected,
    auxiliary: Option<FullyConnected>,
}

impl Contribution {
    /// Packs weights `[units, inputs]`, given with the number of inputs, for this many rows.
    ///
    /// # Errors
    /// If they are more than may be taken.
    pub(super) fn prepare(
        rows: usize,
        bias: &[f32],
        input: (&[f32], usize),
        auxiliary: Option<(&[f32], usize)>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let none = match auxiliary {
            Some(_) => preparation.filled(0.0, bias.len(), "a bias")?,
            None => Vec::new(),
        };
        let mut layer = |(weights, inputs): (&[f32], usize), bias: &[f32]| {
            let sizes = Sizes { rows, inputs, units: bias.len() };
            let (storage, epilogue) = (Storage::Full, Epilogue::NONE);
            FullyConnected::prepare(sizes, weights, bias, storage, epilogue, preparation)
        };
        let input = layer(input, bias)?;
        let auxiliary = auxiliary.map(|weights| layer(weights, &none));
        Ok(Self { input, auxiliary: auxiliary.transpose()? })
    }

    /// How many numbers it makes.
    pub(super) fn elements(&self) -> usize {
        let Sizes { rows, units, .. } = self.input.sizes();
        rows.saturating_mul(units)
    }

    /// How many floats of scratch a run wants.
    pub(super) fn scratch_elements(&self) -> usize {
        let (input, auxiliary) = (self.input.scratch_elements(), self.auxiliary.as_ref());
        auxiliary.map_or(input, |auxiliary| {
            let of_layers = input.max(auxiliary.scratch_elements());
            self.elements().saturating_add(of_layers)
        })
    }

    /// Multiplications and additions.
    pub(super) fn operations(&self) -> u64 {
        self.input.arithmetic() + self.auxiliary.as_ref().map_or(0, FullyConnected::arithmetic)
    }

    /// # Panics
    /// If a slice has not the size that was prepared for, or there is too little scratch.
    pub(super) fn run(
        &self,
        team: &mut Team,
        steps: Steps<'_>,
        to: &mut [f32],
        scratch: &mut [f32],
    ) {
        let check = |layer: &FullyConnected, steps: &[f32]| {
            let Sizes { rows, inputs, .. } = layer.sizes();
            assert_eq!(Some(steps.len()), rows.checked_mul(inputs), "inputs of another size");
        };
        let (mut residual, mut scratch) = (None, scratch);
        if let Some(auxiliary) = &self.auxiliary {
            check(auxiliary, steps.auxiliary);
            let (sums, rest) = scratch.split_at_mut(self.elements());
            auxiliary.run_within(team, steps.auxiliary, None, sums, rest);
            (residual, scratch) = (Some(&*sums), rest);
        }
        check(&self.input, steps.input);
        self.input.run_within(team, steps.input, residual, to, scratch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InstructionSet;

    /// As many products as instruction sets compute in their own ways, of which some want scratch memory.
    #[test]
    fn contributions_of_many_steps_are_sums_of_products() {
        let (rows, units) = (if cfg!(miri) { 3 } else { 70 }, if cfg!(miri) { 20 } else { 500 });
        let number = |index: usize| (index % 17) as f32 - 8.0;
        let numbers = |count: usize| (0..count).map(number).collect::<Vec<f32>>();
        let sizes = [if cfg!(miri) { 5 } else { 256 }, if cfg!(miri) { 4 } else { 300 }];
        let [inputs, weights] = [rows, units].map(|times| sizes.map(|size| numbers(times * size)));
        let bias = numbers(units);
        for (set, has_auxiliary) in
            InstructionSet::available().flat_map(|set| [(set, false), (set, true)])
        {
            let mut preparation = Preparation::new(set, 2);
            let auxiliary = has_auxiliary.then_some((&*weights[1], sizes[1]));
            let input = (&*weights[0], sizes[0]);
            let contribution =
                Contribution::prepare(rows, &bias, input, auxiliary, &mut preparation).unwrap();
            drop(preparation);
            let mut scratch = vec![0.5; contribution.scratch_elements()];
            let mut found = vec![0.5; contribution.elements()];
            let auxiliary = if has_auxiliary { &*inputs[1] } else { &[] };
            let steps = Steps { input: &inputs[0], auxiliary };
            contribution.run(&mut Team::new(2), steps, &mut found, &mut scratch);
            for (index, found) in found.into_iter().enumerate() {
                let (row, unit) = (index / units, index % units);
                let sum = |of: usize| -> f32 {
                    let [inputs, weights] = [(row, &inputs[of]), (unit, &weights[of])]
                        .map(|(at, values)| &values[at * sizes[of]..][..sizes[of]]);
                    inputs.iter().zip(weights).map(|(a, b)| a * b).sum()
                };
                let expected = bias[unit] + sum(0) + if has_auxiliary { sum(1) } else { 0.0 };
                // Of integers below 2^24: exact.
                assert_eq!(found, expected, "{set}, {index}");
            }
        }
    }
}
