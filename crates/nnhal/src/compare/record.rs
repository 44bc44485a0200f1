//! [`Recorder`]: every result of a run.

use super::tolerance::Kind;
use crate::data_type::DataType;
use crate::model::Model;
use nnhal_driver::{ObservedOutput, Observer, OperationPlace, Round};
use nnhal_hal::model::SubgraphName;
use std::sync::{Mutex, PoisonError};

/// Names one value of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) place: OperationPlace,
    pub(crate) output: usize,
    pub(crate) rounds: Vec<Round>,
}

/// A result.
#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) key: Key,
    /// Within the subgraph.
    pub(crate) operand: u32,
    pub(crate) data_type: Option<DataType>,
    pub(crate) is_quantized: bool,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
}

impl Value {
    pub(crate) fn kind(&self, has_half: bool) -> Kind {
        Kind::of(self.data_type.unwrap_or(DataType::Uint8), has_half, self.is_quantized)
    }

    /// The tensor of the file, if it is one.
    pub(crate) fn name(&self, model: &Model) -> String {
        let is_it = |info: &&crate::TensorInfo| model.operand(info.index) == Some(self.operand);
        let is_main = self.key.place.subgraph == SubgraphName::Main;
        let tensor = model.tensors().iter().filter(|_| is_main).find(is_it);
        tensor.map_or_else(String::new, |info| info.name.clone())
    }
}

/// Keeps every result, in the order in which they come.
#[derive(Default)]
pub(crate) struct Recorder(Mutex<Vec<Value>>);

impl Recorder {
    pub(crate) fn into_values(self) -> Vec<Value> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Recorder {
    fn output(&self, output: &ObservedOutput<'_>) {
        let value = Value {
            key: Key { place: output.place, output: output.output, rounds: output.rounds.to_vec() },
            operand: output.operand,
            data_type: DataType::of_operand(output.operand_type),
            is_quantized: output.operand_type.quantized_range().is_some(),
            shape: output.dimensions.iter().map(|length| *length as usize).collect(),
            bytes: output.bytes.to_vec(),
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(value);
    }
}
