//! [`Contribution`]: what the inputs of all steps contribute to a gate.

use super::sequences::Steps;
use crate::fully_connected::{Epilogue, FullyConnected, Sizes, Storage};
use crate::{Preparation, PreparedKernel, Team, TooLarge};

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
        if self.auxiliary.is_some() { self.elements() } else { 0 }
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
        let mut residual = None;
        if let Some(auxiliary) = &self.auxiliary {
            check(auxiliary, steps.auxiliary);
            let sums = &mut scratch[..self.elements()];
            auxiliary.run(team, steps.auxiliary, None, sums, &mut []);
            residual = Some(&*sums);
        }
        check(&self.input, steps.input);
        self.input.run(team, steps.input, residual, to, &mut []);
    }
}
