//! The basic recurrent cell: `h' = activation(W x + A a + R h + b)`, with the input `x`, the
//! auxiliary input `a` where it has weights, and the output `h` of the step before, which is the
//! state.
//!
//! Everything is computed in double precision, and so is the state between two steps of the same
//! operation.
//!
//! Source: `types.hal` 1.3, RNN and BIDIRECTIONAL_SEQUENCE_RNN.

use crate::call::Call;
use crate::error::Fault;
use crate::rules::cell_activation::Activation;
use crate::rules::recurrence::{
    Direction, Extent, Extents, Inputs, Rows, Sequences, add_products, is_given, to_f64, write_row,
};

/// Positions of a cell's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RnnArguments {
    /// The weights, `[units, input]`; behind them the recurrent weights, `[units, units]`, the bias,
    /// `[units]`, and the state before, `[batch, units]`.
    pub weights: usize,
    /// The auxiliary weights, `[units, auxiliary]`, if the operation has them; optional.
    pub auxiliary: Option<usize>,
}

impl RnnArguments {
    /// Position of the state before the first step.
    pub fn state(self) -> usize {
        self.weights + 3
    }

    /// Checks the shapes of all arguments but the input, and learns lengths from them. Auxiliary
    /// weights count when they are known to be given.
    ///
    /// # Errors
    /// [`Fault::Invalid`]
    pub fn learn_shapes(self, call: &Call<'_>, known: &mut Extents) -> Result<(), Fault> {
        known.learn(call.input(self.weights), [Extent::Units, Extent::Input])?;
        known.learn(call.input(self.weights + 1), [Extent::Units, Extent::Units])?;
        known.learn(call.input(self.weights + 2), [Extent::Units])?;
        known.learn(call.input(self.state()), [Extent::Batch, Extent::Units])?;
        match self.auxiliary {
            Some(index) if is_given(call, index) == Some(true) => {
                known.learn(call.input(index), [Extent::Units, Extent::Auxiliary])
            }
            _ => Ok(()),
        }
    }

    /// Runs the cell over all sequences of a batch, and writes the outputs of all steps. Returns the
    /// states after the last step, rounded. The auxiliary input is `None` if it has no weights.
    ///
    /// # Errors
    /// [`Fault::NotKnown`], or an argument that is needed is left out.
    pub fn run(
        self,
        call: &Call<'_>,
        activation: Activation,
        inputs: Inputs<'_, '_>,
        (sequences, direction): (Sequences, Direction),
        mut outputs: Rows<'_>,
    ) -> Result<Vec<f32>, Fault> {
        let rows = (sequences.batch * sequences.time).max(1);
        let mut sources = Vec::new();
        let auxiliary_weights = self.auxiliary.and_then(|index| call.optional(index));
        sources.push((inputs.input.f32s()?, call.input(self.weights).f32s()?));
        if let (Some(steps), Some(weights)) = (inputs.auxiliary, auxiliary_weights) {
            sources.push((steps.f32s()?, weights.f32s()?));
        }
        let recurrent = call.input(self.weights + 1).f32s()?;
        let bias = to_f64(call, &call.input(self.weights + 2).f32s()?)?;
        call.reserve::<f64>(3 * bias.len())?;
        let mut states = call.input(self.state()).f32s()?;
        for (sequence, kept) in states.chunks_exact_mut(bias.len().max(1)).enumerate() {
            let mut state = to_f64(call, kept)?;
            for row in sequences.rows(sequence, direction) {
                let mut sums = bias.clone();
                for (steps, weights) in &sources {
                    let size = steps.len() / rows;
                    let step = &steps[row * size..(row + 1) * size];
                    add_products(call, &mut sums, weights, step.iter().copied().map(f64::from))?;
                }
                add_products(call, &mut sums, &recurrent, state.iter().copied())?;
                state = sums.into_iter().map(|sum| activation.apply(sum)).collect();
                outputs.write(row, &state);
            }
            write_row(kept, &state);
        }
        Ok(states)
    }
}
