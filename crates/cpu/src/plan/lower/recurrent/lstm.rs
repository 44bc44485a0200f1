//! LSTMs of floats.

use super::{Arguments, Cell};
use crate::graph::Weights as Constants;
use crate::why::Why;
use nnhal_kernels::Preparation;
use nnhal_kernels::recurrent::{Gate, Lstm, Sequences, Settings, Shape, Weights};
use nnhal_ops::operations::bidirectional_sequence_lstm::{AUXILIARY_INPUT, BACKWARD, FORWARD};
use nnhal_ops::rules::lstm_arguments::{self, GATES, LstmArguments};
use nnhal_ops::rules::lstm_cell;
use std::borrow::Cow;

/// The weights of a gate.
struct Owned<'a> {
    input: Constants<'a, f32>,
    auxiliary: Option<Constants<'a, f32>>,
    recurrent: Constants<'a, f32>,
    peephole: Option<Cow<'a, [f32]>>,
    layer_norm: Option<Cow<'a, [f32]>>,
    bias: Cow<'a, [f32]>,
}

impl Owned<'_> {
    fn borrowed(&self) -> Gate<'_> {
        Gate {
            input: &self.input,
            auxiliary: self.auxiliary.as_deref(),
            recurrent: &self.recurrent,
            peephole: self.peephole.as_deref(),
            layer_norm: self.layer_norm.as_deref(),
            bias: &self.bias,
        }
    }
}

impl Cell for LstmArguments {
    type Settings = lstm_cell::Settings;
    type Layer = Lstm;

    const DIRECTIONS: [Self; 2] = [FORWARD, BACKWARD];
    const AUXILIARY_INPUT: usize = AUXILIARY_INPUT;

    fn auxiliary(self) -> Option<usize> {
        self.auxiliary_weights(lstm_arguments::Gate::Forget)
    }

    fn states(self) -> Vec<usize> {
        vec![self.output_state(), self.cell_state()]
    }

    fn prepare(
        self,
        arguments: Arguments<'_>,
        sequences: Sequences,
        settings: lstm_cell::Settings,
        preparation: &mut Preparation,
    ) -> Result<Lstm, Why> {
        let weights = |position: usize| arguments.weights(position, preparation);
        let gate = |gate: lstm_arguments::Gate| -> Result<Option<Owned<'_>>, Why> {
            let Some(input) = weights(self.input_weights(gate))? else { return Ok(None) };
            let (recurrent, bias) = (self.recurrent_weights(gate), self.bias(gate));
            Ok(Some(Owned {
                input,
                auxiliary: self.auxiliary_weights(gate).map_or(Ok(None), weights)?,
                recurrent: arguments.wanted(recurrent, weights(recurrent)?)?,
                peephole: self.peephole(gate).map_or(Ok(None), |it| arguments.vector(it))?,
                layer_norm: arguments.vector(self.layer_norm(gate))?,
                bias: arguments.wanted(bias, arguments.vector(bias)?)?,
            }))
        };
        let wanted =
            |name: lstm_arguments::Gate| arguments.wanted(self.input_weights(name), gate(name)?);
        let [of_input, of_forget, of_cell, of_output] = GATES;
        let input = gate(of_input)?;
        let (forget, cell, output) = (wanted(of_forget)?, wanted(of_cell)?, wanted(of_output)?);
        let projection = weights(self.projection())?;
        let projection_bias = arguments.vector(self.projection_bias())?;
        let all = Weights {
            input: input.as_ref().map(Owned::borrowed),
            forget: forget.borrowed(),
            cell: cell.borrowed(),
            output: output.borrowed(),
            projection: projection.as_deref().map(|it| (it, projection_bias.as_deref())),
        };
        let shape = Shape {
            sequences,
            input: arguments.length(self.input_weights(lstm_arguments::Gate::Forget), 1)?,
            auxiliary: self.auxiliary().map_or(0, |it| arguments.length(it, 1).unwrap_or(0)),
            units: arguments.length(self.cell_state(), 1)?,
            output: arguments.length(self.output_state(), 1)?,
        };
        let settings = Settings {
            activation: super::activation(settings.activation),
            cell_clip: settings.cell_clip,
            projection_clip: settings.projection_clip,
        };
        Ok(Lstm::prepare(shape, &all, settings, preparation)?)
    }
}
