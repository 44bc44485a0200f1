//! Basic recurrent layers of floats.

use super::{Arguments, Cell};
use crate::why::Why;
use nnhal_kernels::Preparation;
use nnhal_kernels::recurrent::{Rnn, RnnShape, RnnWeights, Sequences};
use nnhal_ops::operations::bidirectional_sequence_rnn::{AUXILIARY_INPUT, BACKWARD, FORWARD};
use nnhal_ops::rules::cell_activation::Activation;
use nnhal_ops::rules::rnn_cell::RnnArguments;

impl Cell for RnnArguments {
    type Settings = Activation;
    type Layer = Rnn;

    const DIRECTIONS: [Self; 2] = [FORWARD, BACKWARD];
    const AUXILIARY_INPUT: usize = AUXILIARY_INPUT;

    fn auxiliary(self) -> Option<usize> {
        self.auxiliary
    }

    fn states(self) -> Vec<usize> {
        vec![self.state()]
    }

    fn prepare(
        self,
        arguments: Arguments<'_>,
        sequences: Sequences,
        activation: Activation,
        preparation: &mut Preparation,
    ) -> Result<Rnn, Why> {
        let weights = |position: usize| arguments.weights(position, preparation);
        let wanted = |position: usize| arguments.wanted(position, weights(position)?);
        let (input, recurrent) = (wanted(self.weights)?, wanted(self.weights + 1)?);
        let auxiliary = self.auxiliary.map_or(Ok(None), weights)?;
        let bias = arguments.wanted(self.weights + 2, arguments.vector(self.weights + 2)?)?;
        let all = RnnWeights {
            input: &input,
            auxiliary: auxiliary.as_deref(),
            recurrent: &recurrent,
            bias: &bias,
        };
        let shape = RnnShape {
            sequences,
            input: arguments.length(self.weights, 1)?,
            auxiliary: self.auxiliary.map_or(0, |it| arguments.length(it, 1).unwrap_or(0)),
            units: arguments.length(self.weights, 0)?,
        };
        Ok(Rnn::prepare(shape, &all, super::activation(activation), preparation)?)
    }
}
