//! The arguments of an LSTM cell: where they stand in an operation's list, which optional ones go
//! together, and what their shapes must be. The list is always in the same order; what differs is
//! where its parts begin.
//!
//! | part | arguments | shape |
//! |---|---|---|
//! | weights 0 to 3 | from the input to each gate | `[units, input]` |
//! | weights 4 to 7 | from the state before to each gate | `[units, output]` |
//! | weights 8 to 10 | peepholes: from the cell to input gate, forget gate, output gate | `[units]` |
//! | weights 11 to 14 | biases of the gates | `[units]` |
//! | weights 15, 16 | projection, its bias | `[output, units]`, `[output]` |
//! | states 0, 1 | output state, cell state | `[batch, output]`, `[batch, units]` |
//! | layer norm 0 to 3 | weights of each gate | `[units]` |
//! | auxiliary 0 to 3 | from the auxiliary input to each gate | `[units, auxiliary]` |
//!
//! The gates are always input, forget, cell, output. Optional:
//!
//! - everything of the input gate, together: without it, input and forget gate are coupled;
//! - the peepholes, together;
//! - the projection, without which output and units are the same length, and with it the bias;
//! - the layer norm weights, together; the auxiliary weights, together.

use crate::call::Call;
use crate::error::Fault;
use crate::rules::recurrence::{Extent, Extents, expect_together, is_given};

/// A gate of the cell, by its place among the four.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// How much of the candidate enters the cell.
    Input,
    /// How much of the cell stays.
    Forget,
    /// The candidate for the cell.
    Cell,
    /// How much of the cell comes out.
    Output,
}

/// The gates in the order of the arguments.
pub const GATES: [Gate; 4] = [Gate::Input, Gate::Forget, Gate::Cell, Gate::Output];

/// Positions of an LSTM cell's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LstmArguments {
    /// The first of 17 weights and biases.
    pub weights: usize,
    /// The output state, followed by the cell state.
    pub states: usize,
    /// The first of 4 layer norm weights. The list may end before it.
    pub layer_norm: usize,
    /// The first of 4 auxiliary weights, if the operation has them.
    pub auxiliary: Option<usize>,
}

impl LstmArguments {
    /// Position of the weights from the input to a gate.
    pub fn input_weights(self, gate: Gate) -> usize {
        self.weights + gate as usize
    }

    /// Position of the weights from the output state to a gate.
    pub fn recurrent_weights(self, gate: Gate) -> usize {
        self.weights + 4 + gate as usize
    }

    /// Position of the weights from the cell state to a gate; the candidate has none.
    pub fn peephole(self, gate: Gate) -> Option<usize> {
        match gate {
            Gate::Input => Some(self.weights + 8),
            Gate::Forget => Some(self.weights + 9),
            Gate::Cell => None,
            Gate::Output => Some(self.weights + 10),
        }
    }

    /// Position of a gate's bias.
    pub fn bias(self, gate: Gate) -> usize {
        self.weights + 11 + gate as usize
    }

    /// Position of the projection's weights.
    pub fn projection(self) -> usize {
        self.weights + 15
    }

    /// Position of the projection's bias.
    pub fn projection_bias(self) -> usize {
        self.weights + 16
    }

    /// Position of the output state of the step before.
    pub fn output_state(self) -> usize {
        self.states
    }

    /// Position of the cell state of the step before.
    pub fn cell_state(self) -> usize {
        self.states + 1
    }

    /// Position of a gate's layer norm weights.
    pub fn layer_norm(self, gate: Gate) -> usize {
        self.layer_norm + gate as usize
    }

    /// Position of the weights from the auxiliary input to a gate.
    pub fn auxiliary_weights(self, gate: Gate) -> Option<usize> {
        self.auxiliary.map(|first| first + gate as usize)
    }

    /// Whether there is no input gate of its own, as far as that is known: what enters the cell is
    /// what leaves it.
    pub fn is_coupled(self, call: &Call<'_>) -> Option<bool> {
        is_given(call, self.input_weights(Gate::Input)).map(|given| !given)
    }

    /// Checks which optional arguments have values. What is not known passes.
    ///
    /// # Errors
    /// Some are left out that go with others.
    pub fn validate(self, call: &Call<'_>) -> Result<(), Fault> {
        let of_input_gate = [
            self.input_weights(Gate::Input),
            self.recurrent_weights(Gate::Input),
            self.bias(Gate::Input),
        ];
        let has_input_gate = expect_together(call, &of_input_gate)?;
        let groups = [
            GATES.map(|gate| self.peephole(gate)),
            GATES.map(|gate| Some(self.layer_norm(gate))),
            GATES.map(|gate| self.auxiliary_weights(gate)),
        ];
        for [of_input_gate, others @ ..] in groups {
            let others: Vec<usize> = others.into_iter().flatten().collect();
            let group = expect_together(call, &others)?;
            if let (Some(of_input_gate), Some(other)) = (of_input_gate, others.first()) {
                expect_as_group(call, of_input_gate, (*other, group), has_input_gate)?;
            }
        }
        let projection_bias = is_given(call, self.projection_bias());
        if projection_bias == Some(true) && is_given(call, self.projection()) == Some(false) {
            let projection = call.input(self.projection());
            let expected = format!("a value, as input {} has one", self.projection_bias());
            return Err(projection.wrong("value", "left out", expected));
        }
        Ok(())
    }

    /// Checks the shapes of all arguments but the input, and learns lengths from them. Optional
    /// ones count when they are known to be given. Says which extent the output has.
    ///
    /// # Errors
    /// [`Fault::Invalid`]
    pub fn learn_shapes(self, call: &Call<'_>, known: &mut Extents) -> Result<Extent, Fault> {
        let output = match is_given(call, self.projection()) {
            Some(false) => Extent::Units,
            _ => Extent::Output,
        };
        for gate in GATES {
            let is_optional = gate == Gate::Input;
            let matrices = [
                (Some(self.input_weights(gate)), [Extent::Units, Extent::Input], is_optional),
                (Some(self.recurrent_weights(gate)), [Extent::Units, output], is_optional),
                (self.auxiliary_weights(gate), [Extent::Units, Extent::Auxiliary], true),
            ];
            for (index, extents, is_optional) in matrices {
                learn(call, known, index, extents, is_optional)?;
            }
            let vectors = [
                (self.peephole(gate), true),
                (Some(self.bias(gate)), is_optional),
                (Some(self.layer_norm(gate)), true),
            ];
            for (index, is_optional) in vectors {
                learn(call, known, index, [Extent::Units], is_optional)?;
            }
        }
        learn(call, known, Some(self.projection()), [Extent::Output, Extent::Units], true)?;
        learn(call, known, Some(self.projection_bias()), [Extent::Output], true)?;
        known.learn(call.input(self.output_state()), [Extent::Batch, output])?;
        known.learn(call.input(self.cell_state()), [Extent::Batch, Extent::Units])?;
        Ok(output)
    }
}

/// Demands of an argument of the input gate that it has a value if its group has and there is an
/// input gate, and none otherwise.
fn expect_as_group(
    call: &Call<'_>,
    index: usize,
    (other, group): (usize, Option<bool>),
    has_input_gate: Option<bool>,
) -> Result<(), Fault> {
    let (what, expected) = match (is_given(call, index), group, has_input_gate) {
        (Some(false), Some(true), Some(true)) => {
            ("left out", format!("a value, as input {other} has one"))
        }
        (Some(true), Some(false), _) => ("given", format!("none, as input {other} has none")),
        (Some(true), _, Some(false)) => ("given", "none, as there is no input gate".to_owned()),
        _ => return Ok(()),
    };
    Err(call.input(index).wrong("value", what, expected))
}

fn learn<const N: usize>(
    call: &Call<'_>,
    known: &mut Extents,
    index: Option<usize>,
    extents: [Extent; N],
    is_optional: bool,
) -> Result<(), Fault> {
    match index {
        Some(index) if !is_optional || is_given(call, index) == Some(true) => {
            known.learn(call.input(index), extents)
        }
        _ => Ok(()),
    }
}

/// Calls with an LSTM cell, for the tests of operations.
#[cfg(test)]
pub(crate) mod testing {
    use crate::operations::testing::{Example, tensor};
    use nnhal_hal::OperandType;

    /// Positions of optional weights among the 17.
    pub const INPUT_GATE: [usize; 3] = [0, 4, 11];
    pub const PEEPHOLES: [usize; 3] = [8, 9, 10];
    pub const PROJECTION: usize = 15;
    pub const PROJECTION_BIAS: usize = 16;

    /// A cell to be.
    #[derive(Debug, Clone, Copy)]
    pub struct Plan<'a> {
        /// The types of matrices, of biases, and of what is by element.
        pub types: [OperandType; 3],
        /// Lengths of input, units and output.
        pub sizes: [u32; 3],
        /// Which optional weights there are.
        pub given: &'a [usize],
    }

    impl Plan<'_> {
        /// Adds the 17 weights and biases.
        pub fn weights(self, mut example: Example, mut numbers: impl FnMut() -> f64) -> Example {
            let [matrix, bias, vector] = self.types;
            let [input, units, output] = self.sizes;
            let optional = [INPUT_GATE.as_slice(), &PEEPHOLES, &[PROJECTION, PROJECTION_BIAS]];
            for index in 0..17 {
                let spec = match index {
                    0..4 => tensor(matrix, [units, input]),
                    4..8 => tensor(matrix, [units, output]),
                    8..11 => tensor(vector, [units]),
                    11..15 => tensor(bias, [units]),
                    15 => tensor(matrix, [output, units]),
                    _ => tensor(bias, [output]),
                };
                let is_optional = optional.iter().any(|group| group.contains(&index));
                example = if is_optional && !self.given.contains(&index) {
                    example.omitted(spec)
                } else {
                    let count = spec.dimensions.iter().product();
                    let elements: Vec<f64> = (0..count).map(|_| numbers()).collect();
                    example.input(spec, &elements)
                };
            }
            example
        }

        /// Adds 4 layer norm weights, given or not.
        pub fn layer_norm(self, example: Example, given: [bool; 4], value: f64) -> Example {
            let spec = || tensor(self.types[2], [self.sizes[1]]);
            given.into_iter().fold(example, |example, is_given| {
                if is_given {
                    example.input(spec(), &vec![value; self.sizes[1] as usize])
                } else {
                    example.omitted(spec())
                }
            })
        }
    }
}
