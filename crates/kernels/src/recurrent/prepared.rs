//! Recurrent layers as prepared kernels.

use super::integer::{Lstm8, Lstm16, Step};
use super::layer::{Layer, MOST_STATES, Outputs, States, run, run_both, scratch_elements};
use super::sequences::Steps;
use super::{Svdf, SvdfShape};
use crate::prepared::{Inputs, Operands, PreparedKernel, WrongValue, multiply_adds};
use crate::team::Team;

/// What comes out of a layer of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// All steps, and perhaps the states.
    Sequence {
        /// Whether the states are outputs.
        gives_states: bool,
    },
    /// Of an LSTM something that does not matter; the states, the step.
    SingleStep,
}

/// A layer of one direction. Inputs: the sequences, and the states before the first step.
#[derive(Debug)]
pub struct OneDirection<L> {
    /// The layer.
    pub layer: L,
    /// Elements of all states.
    pub states: usize,
    /// What comes out.
    pub form: Form,
}

/// What two layers read of the sequences and of the auxiliary input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auxiliary {
    /// There is none.
    None,
    /// The second layer reads it in the place of the sequences.
    Parallel,
    /// Both read it beside the sequences.
    Cross,
}

/// A layer forward and one backward over the same sequences. Inputs: the sequences, the auxiliary input, and
/// the states before the first step, of the forward layer and then of the other one.
#[derive(Debug)]
pub struct BothDirections<L> {
    /// Forward and backward.
    pub layers: [L; 2],
    /// What they read.
    pub auxiliary: Auxiliary,
    /// Whether they write one output, beside each other in each row, and not one each.
    pub is_merged: bool,
    /// Elements of all states.
    pub states: usize,
    /// Whether the states are outputs.
    pub gives_states: bool,
}

impl<L> BothDirections<L> {
    fn steps<'run>(&self, inputs: Inputs<'run>) -> [Steps<'run>; 2] {
        let input = inputs.of(0);
        match self.auxiliary {
            Auxiliary::None => [Steps::of(input); 2],
            Auxiliary::Parallel => [Steps::of(input), Steps::of(inputs.of(1))],
            Auxiliary::Cross => [Steps { input, auxiliary: inputs.of(1) }; 2],
        }
    }

    fn outputs<'run>(&self, written: &mut impl Iterator<Item = &'run mut [f32]>) -> Outputs<'run> {
        let mut next = || written.next().unwrap_or_default();
        if self.is_merged { Outputs::Merged(next()) } else { Outputs::Separate([next(), next()]) }
    }
}

/// What is written: outputs and then the scratch memory.
fn split_floats<'run>(
    operands: Operands<'run>,
) -> (Inputs<'run>, impl Iterator<Item = &'run mut [f32]>) {
    let (inputs, written) = operands.split_all();
    (inputs, written.map(bytemuck::cast_slice_mut))
}

/// The states of layers, which begin as the inputs from `first` on: those outputs, or parts of the scratch memory
/// where there are none. Also what is left of the scratch memory.
fn states<'run, L: Layer, const LAYERS: usize>(
    inputs: Inputs<'_>,
    first: usize,
    outputs: [[Option<&'run mut [f32]>; MOST_STATES]; LAYERS],
    mut scratch: &'run mut [f32],
) -> ([States<'run>; LAYERS], &'run mut [f32]) {
    let mut before = (first..).map(|input| inputs.of(input));
    let states = outputs.map(|mut outputs| {
        let mut states: States<'_> = Default::default();
        for (state, output) in states.iter_mut().zip(&mut outputs).take(L::STATES) {
            let before: &[f32] = before.next().unwrap_or_default();
            *state = output.take().unwrap_or_else(|| {
                let (state, rest) = std::mem::take(&mut scratch).split_at_mut(before.len());
                scratch = rest;
                state
            });
            state.copy_from_slice(before);
        }
        states
    });
    (states, scratch)
}

/// Bytes of this many floats.
fn bytes(floats: usize) -> usize {
    floats * size_of::<f32>()
}

impl<L: Layer> PreparedKernel for OneDirection<L> {
    fn name(&self) -> String {
        format!("{} f32", L::NAME)
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, mut written) = split_floats(operands);
        let mut next = || written.next().unwrap_or_default();
        let mut given = [const { None }; MOST_STATES];
        let output = match self.form {
            Form::Sequence { gives_states } => {
                let output = next();
                if gives_states {
                    given[..L::STATES].fill_with(|| Some(next()));
                }
                output
            }
            Form::SingleStep => {
                if L::HAS_SCRATCH_OUTPUT {
                    next().fill(0.0);
                }
                given[..L::STATES].fill_with(|| Some(next()));
                next()
            }
        };
        let ([states], scratch) = states::<L, 1>(inputs, 1, [given], next());
        run(&self.layer, team, Steps::of(inputs.of(0)), states, output, scratch);
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        bytes(scratch_elements(&self.layer) + self.states)
    }

    fn arithmetic(&self) -> u64 {
        self.layer.operations()
    }
}

impl<L: Layer> PreparedKernel for BothDirections<L> {
    fn name(&self) -> String {
        format!("bidirectional {} f32", L::NAME)
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, mut written) = split_floats(operands);
        let outputs = self.outputs(&mut written);
        let mut given = [const { [const { None }; MOST_STATES] }; 2];
        if self.gives_states {
            for given in &mut given {
                given[..L::STATES].fill_with(|| Some(written.next().unwrap_or_default()));
            }
        }
        let scratch = written.next().unwrap_or_default();
        let (states, scratch) = states::<L, 2>(inputs, 2, given, scratch);
        run_both(self.layers.each_ref(), team, self.steps(inputs), states, outputs, scratch);
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        bytes(self.layers.iter().map(scratch_elements).sum::<usize>() + self.states)
    }

    fn arithmetic(&self) -> u64 {
        self.layers.iter().map(L::operations).sum()
    }
}

/// Inputs: the step and the state before it. Outputs: the state behind it, and what comes out.
impl PreparedKernel for Svdf {
    fn name(&self) -> String {
        "svdf f32".to_owned()
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [state, output], scratch) = operands.split();
        let [state, output, scratch] = [state, output, scratch].map(bytemuck::cast_slice_mut);
        self.run(team, inputs.of(0), inputs.of(1), state, output, scratch);
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        bytes(self.scratch_elements())
    }

    fn arithmetic(&self) -> u64 {
        let SvdfShape { batch, units, rank, memory, .. } = self.shape;
        multiply_adds(&[batch, units, rank, memory]).saturating_add(self.features.arithmetic())
    }
}

/// Inputs: the step, the cell state and the output before it. Outputs: cell state and output.
impl PreparedKernel for Lstm16 {
    fn name(&self) -> String {
        "lstm i16".to_owned()
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [cell, output], scratch) = operands.split();
        let step = Step {
            input: inputs.of(0),
            output_before: inputs.of(2),
            cell_before: inputs.of(1),
            cell: bytemuck::cast_slice_mut(cell),
            output,
        };
        self.run(team, step, bytemuck::cast_slice_mut(scratch));
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.scratch_elements() * size_of::<i32>()
    }

    fn arithmetic(&self) -> u64 {
        multiply_adds(&[self.shape.batch, self.weights()])
    }

    fn is_8_bit(&self) -> bool {
        true
    }
}

/// Inputs: the step, the output and the cell state before it. Outputs: output state, cell state and output.
impl PreparedKernel for Lstm8 {
    fn name(&self) -> String {
        "lstm i8".to_owned()
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [state, cell, output], scratch) = operands.split();
        let step = Step {
            input: inputs.of(0),
            output_before: inputs.of(1),
            cell_before: inputs.of(2),
            cell: bytemuck::cast_slice_mut(cell),
            output: bytemuck::cast_slice_mut(state),
        };
        self.run(team, step, bytemuck::cast_slice_mut(scratch));
        output.copy_from_slice(state);
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.scratch_elements() * size_of::<i32>()
    }

    fn arithmetic(&self) -> u64 {
        multiply_adds(&[self.shape.batch, self.weights()])
    }

    fn is_8_bit(&self) -> bool {
        true
    }
}
