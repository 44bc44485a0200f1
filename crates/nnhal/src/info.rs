//! [`TensorInfo`]: what a model says of its inputs, outputs and other tensors.

use crate::data_type::DataType;
use crate::tensor::Quantization;
use nnhal_hal::Operand;
pub use nnhal_tflite::{BlockQuantization, SparseDimension, Sparsity, TensorQuantization};
use std::ops::Range;

/// A tensor of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorInfo {
    /// The tensor's name.
    pub name: String,
    /// The name that a signature gives it, if one does.
    pub signature_name: Option<String>,
    /// Its index among the tensors of the file; of a model that was built, among its operands.
    pub index: usize,
    /// The element type.
    pub data_type: DataType,
    /// The length of each axis, `None` where it is open; none for a scalar.
    pub shape: Vec<Option<usize>>,
    /// The shape of the example that every file has: 1, mostly, where a length is open.
    pub example_shape: Vec<usize>,
    /// The shape that the file itself gives it, whatever follows from the shapes of inputs; often of ones where only a run shows
    /// it.
    pub declared_shape: Vec<usize>,
    /// Whether even the number of axes is open; then `shape` is empty.
    pub is_rank_open: bool,
    /// Which lengths the file itself says are open, if it does: also those that the import has chosen,
    /// see [`Model::has_example_shapes`](crate::Model::has_example_shapes).
    pub shape_signature: Option<Vec<Option<usize>>>,
    /// What stored integers stand for; several scales if they are by index of an axis.
    pub quantization: Option<TensorQuantization>,
    /// The scales of a constant that has one for each block of elements.
    pub blocks: Option<BlockQuantization>,
    /// Whether it keeps its value from one run to the next.
    pub is_variable: bool,
    /// How a sparse constant is stored.
    pub sparsity: Option<Sparsity>,
    /// Of a constant: where its stored bytes are in the file.
    pub stored: Option<Range<usize>>,
}

impl TensorInfo {
    pub(crate) fn of_file(description: &nnhal_tflite::TensorDescription) -> Self {
        let shape = description.shape.iter();
        Self {
            name: description.name.clone(),
            signature_name: description.signature_name.clone(),
            index: description.index,
            data_type: DataType::from_tflite_code(description.type_code),
            shape: shape.map(|length| length.map(|length| length as usize)).collect(),
            example_shape: description.example_shape.iter().map(|it| *it as usize).collect(),
            declared_shape: description.declared_shape.iter().map(|it| *it as usize).collect(),
            is_rank_open: false,
            shape_signature: description.shape_signature.as_ref().map(|lengths| {
                lengths.iter().map(|length| length.map(|length| length as usize)).collect()
            }),
            quantization: description.quantization.clone(),
            blocks: description.blocks.clone(),
            is_variable: description.is_variable,
            sparsity: description.sparsity.clone(),
            stored: description.stored.clone(),
        }
    }

    /// Of a model that was built. `None` for types of extensions.
    pub(crate) fn of_operand(name: String, index: u32, operand: &Operand) -> Option<Self> {
        let lengths = operand.dimensions.iter();
        let is_quantized = operand.operand_type.quantized_range().is_some() && operand.scale > 0.0;
        Some(Self {
            name,
            signature_name: None,
            index: index as usize,
            data_type: DataType::of_operand(operand.operand_type)?,
            shape: lengths.clone().map(|it| (*it != 0).then_some(*it as usize)).collect(),
            example_shape: lengths.clone().map(|it| (*it).max(1) as usize).collect(),
            declared_shape: lengths.map(|it| *it as usize).collect(),
            is_rank_open: operand.dimensions.is_empty() && !operand.operand_type.is_scalar(),
            shape_signature: None,
            quantization: is_quantized.then(|| TensorQuantization {
                scales: vec![operand.scale],
                zero_points: vec![operand.zero_point.into()],
                axis: 0,
            }),
            blocks: None,
            is_variable: false,
            sparsity: None,
            stored: None,
        })
    }

    /// The one scale and zero point, if it is quantized with one.
    pub fn quantization(&self) -> Option<Quantization> {
        let quantization = self.quantization.as_ref()?;
        let [scale] = *quantization.scales else { return None };
        let zero_point = quantization.zero_points.first().copied().unwrap_or(0);
        Some(Quantization { scale, zero_point: i32::try_from(zero_point).ok()? })
    }

    /// The shape, if it is known.
    pub fn known_shape(&self) -> Option<Vec<usize>> {
        if self.is_rank_open { None } else { self.shape.iter().copied().collect() }
    }

    /// The lengths for which a model is prepared where this is an input of the given shape: with a length of 0 the model is not run
    /// (see [`Runner`](crate::Runner)), so that 1 does, but where the file itself says 0.
    pub fn prepared_lengths(&self, shape: &[usize]) -> Vec<usize> {
        let least = |axis| if self.shape.get(axis) == Some(&Some(0)) { 0 } else { 1 };
        shape.iter().enumerate().map(|(axis, length)| (*length).max(least(axis))).collect()
    }

    /// Whether it has this name, its own or that of a signature.
    pub fn is_named(&self, name: &str) -> bool {
        self.name == name || self.signature_name.as_deref() == Some(name)
    }

    /// The name, and in parentheses its own where a signature gives it another one.
    pub fn shown_name(&self) -> String {
        match &self.signature_name {
            Some(name) if *name != self.name => format!("{name} ({})", self.name),
            _ => self.name.clone(),
        }
    }
}

/// A named set of inputs and outputs. Names are the signature's own; numbers are positions among
/// [`Model::inputs`](crate::Model::inputs) and [`Model::outputs`](crate::Model::outputs).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Its name: `serving_default`.
    pub name: String,
    /// By input.
    pub inputs: Vec<(String, usize)>,
    /// By output.
    pub outputs: Vec<(String, usize)>,
}
