//! [`Lstm`]: a long short-term memory over sequences.
//!
//! ```text
//! i  = sigmoid(n(Wi x + Ai a + Ri h + Pi * c) + bi)        input gate; 1 - f if it is coupled
//! f  = sigmoid(n(Wf x + Af a + Rf h + Pf * c) + bf)        forget gate
//! c' = clip(f * c + i * g(n(Wc x + Ac a + Rc h) + bc))     cell
//! o  = sigmoid(n(Wo x + Ao a + Ro h + Po * c') + bo)       output gate
//! h' = o * g(c'), or clip(Wp (o * g(c')) + bp) with a projection
//! ```
//!
//! `a` is an auxiliary input and `n` layer normalization with an epsilon of 1e-8; they, the peepholes
//! P and the projection are left out where there are no weights for them.

mod layer;
mod step;

use super::Activation;
use super::contribution::Contribution;
use super::layer::scratch_elements;
use super::packed::Packed;
use super::sequences::Sequences;
use crate::vector::Isa;
use crate::{Preparation, TooLarge};

/// Gates in the order of a panel: input, forget, cell, output.
const GATES: usize = 4;

/// Vectors of a panel.
const VECTORS: usize = 8;

/// Vectors of units in a panel, which holds all gates of them.
const UNIT_VECTORS: usize = VECTORS / GATES;

/// The sizes of an LSTM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The steps.
    pub sequences: Sequences,
    /// Elements of an input.
    pub input: usize,
    /// Elements of an auxiliary input.
    pub auxiliary: usize,
    /// Elements of the cell.
    pub units: usize,
    /// Elements of the output; as many as units if there is no projection.
    pub output: usize,
}

/// What a cell does besides its weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Of the candidate and of what comes out of the cell.
    pub activation: Activation,
    /// The cell stays within so much of 0; 0 means no limit.
    pub cell_clip: f32,
    /// The projected output stays within so much of 0; 0 means no limit.
    pub projection_clip: f32,
}

/// The weights of a gate.
#[derive(Debug, Clone, Copy)]
pub struct Gate<'a> {
    /// `[units, input]`
    pub input: &'a [f32],
    /// `[units, auxiliary]`; for all gates or for none.
    pub auxiliary: Option<&'a [f32]>,
    /// `[units, output]`
    pub recurrent: &'a [f32],
    /// `[units]`; not used for the cell.
    pub peephole: Option<&'a [f32]>,
    /// `[units]`; for all gates or for none.
    pub layer_norm: Option<&'a [f32]>,
    /// `[units]`
    pub bias: &'a [f32],
}

/// All weights.
#[derive(Debug, Clone, Copy)]
pub struct Weights<'a> {
    /// The input gate; `None` couples it to the forget gate.
    pub input: Option<Gate<'a>>,
    /// The forget gate.
    pub forget: Gate<'a>,
    /// What goes into the cell.
    pub cell: Gate<'a>,
    /// The output gate.
    pub output: Gate<'a>,
    /// `[output, units]`, and a bias `[output]`.
    pub projection: Option<(&'a [f32], Option<&'a [f32]>)>,
}

/// A prepared LSTM.
#[derive(Debug)]
pub struct Lstm {
    isa: Isa,
    shape: Shape,
    settings: Settings,
    /// Of the inputs to the gates, with the biases unless they come after a normalization; none of an
    /// input gate that is coupled.
    contributions: [Option<Contribution>; GATES],
    recurrent: Packed,
    projection: Option<Packed>,
    /// By gate; none of those without.
    peephole: [Option<Vec<f32>>; GATES],
    /// Weights and biases by gate.
    layer_norm: Option<[[Vec<f32>; 2]; GATES]>,
    projection_bias: Vec<f32>,
}

impl Lstm {
    /// Packs the weights.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If weights have not the sizes that the shape says, or the output has not as many elements as
    /// the cell though there is no projection.
    pub fn prepare(
        shape: Shape,
        weights: &Weights<'_>,
        settings: Settings,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let Shape { sequences, input, auxiliary, units, output } = shape;
        let gates = [weights.input, Some(weights.forget), Some(weights.cell), Some(weights.output)];
        let size = |a: usize, b: usize| a.checked_mul(b).expect("weights beyond memory");
        for gate in gates.into_iter().flatten() {
            preparation.check_count(gate.recurrent.len(), size(units, output), "recurrent weights");
            for vector in [gate.peephole, gate.layer_norm, Some(gate.bias)].into_iter().flatten() {
                assert_eq!(vector.len(), units, "not a weight for each unit");
            }
        }
        match weights.projection {
            None => assert_eq!(units, output, "without a projection the output is the cell's"),
            Some((weights, bias)) => {
                preparation.check_count(weights.len(), size(output, units), "projection weights");
                assert!(bias.is_none_or(|bias| bias.len() == output), "a bias of another size");
            }
        }
        let has_layer_norm = gates.iter().flatten().any(|gate| gate.layer_norm.is_some());
        let none = preparation.filled(0.0, units, "a bias")?;
        let mut contributions = [const { None }; GATES];
        for (gate, contribution) in gates.iter().zip(&mut contributions) {
            let Some(gate) = gate else { continue };
            let bias = if has_layer_norm { &none } else { gate.bias };
            let auxiliary = gate.auxiliary.map(|weights| (weights, auxiliary));
            let input = (gate.input, input);
            let rows = sequences.rows();
            let prepared = Contribution::prepare(rows, bias, input, auxiliary, preparation)?;
            *contribution = Some(prepared);
        }
        let recurrent = gates.map(|gate| Some(gate?.recurrent));
        let recurrent = Packed::new(preparation, VECTORS, &recurrent, [units, output])?;
        let projection = match weights.projection {
            Some((weights, _)) => {
                Some(Packed::new(preparation, VECTORS, &[Some(weights)], [output, units])?)
            }
            None => None,
        };
        let projection_bias = match weights.projection {
            Some((_, Some(bias))) => preparation.copied(bias, "a bias")?,
            _ => preparation.filled(0.0, output, "a bias")?,
        };
        const OF_UNITS: &str = "weights of units";
        let mut layer_norm = [const { [const { Vec::new() }; 2] }; GATES];
        let mut peephole = [const { None }; GATES];
        for (index, gate) in gates.iter().enumerate() {
            if has_layer_norm {
                let weights = gate.and_then(|it| it.layer_norm).unwrap_or(&none);
                let bias = gate.map_or(&none[..], |it| it.bias);
                layer_norm[index] =
                    [preparation.copied(weights, OF_UNITS)?, preparation.copied(bias, OF_UNITS)?];
            }
            if let Some(weights) = gate.and_then(|it| it.peephole) {
                peephole[index] = Some(preparation.copied(weights, OF_UNITS)?);
            }
        }
        let prepared = Self {
            isa: Isa::of(preparation.set()),
            shape,
            settings,
            contributions,
            recurrent,
            projection,
            peephole,
            layer_norm: has_layer_norm.then_some(layer_norm),
            projection_bias,
        };
        preparation.check_scratch::<f32>(&[scratch_elements(&prepared)])?;
        Ok(prepared)
    }

    /// Weights that are read in each step.
    fn step_weights(&self) -> usize {
        self.recurrent.products() + self.projection.as_ref().map_or(0, Packed::products)
    }

    /// What the inputs contribute to each gate.
    fn by_gate(&self) -> usize {
        self.shape.sequences.rows().saturating_mul(self.shape.units)
    }
}
