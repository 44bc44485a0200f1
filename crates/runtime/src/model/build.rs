//! [`ModelBuilder`]

use super::assemble::{assemble, prefixes};
use super::order::run_order;
use super::{DEEPEST, Inner, Model, Own, VALUE_ALIGNMENT};
use crate::bytes::ReadBytes;
use crate::devices::Devices;
use crate::error::{Error, Result, ResultCode};
use crate::memory::Memory;
use crate::operand::{OperandDescription, byte_size, is_fully_specified, is_tensor};
use nnhal_hal::{
    ChannelQuant, DataLocation, ExtraParams, HalVersion, Operand, OperandLifeTime, OperandType,
    Operation, OperationType,
};
use nnhal_ops::{ArgumentSource, Call, Fault, Shape, Signature, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A model that is being built. Operands and operations may come in any order, except that an
/// operation's operands must be there before it. After [`ModelBuilder::finish`] nothing can be
/// changed: every method answers `BAD_STATE`.
pub struct ModelBuilder {
    devices: Devices,
    own: Own,
    /// Large values by operand, which are placed when the model is finished.
    large: BTreeMap<u32, Arc<dyn ReadBytes>>,
    relaxed: bool,
    state: State,
}

enum State {
    Building,
    /// It could not be finished, and never will be.
    Invalid,
    Finished(Model),
}

impl ModelBuilder {
    /// A model without anything, whose types of extensions are those of these devices.
    pub fn new(devices: &Devices) -> Self {
        Self {
            devices: devices.clone(),
            own: Own::default(),
            large: BTreeMap::new(),
            relaxed: false,
            state: State::Building,
        }
    }

    /// The devices that it is built for.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// Appends an operand and returns its index.
    ///
    /// # Errors
    /// `BAD_DATA` for a description that is wrong in itself; `BAD_STATE`.
    pub fn add_operand(&mut self, description: &OperandDescription) -> Result<u32> {
        self.expect_building()?;
        let operand = description.to_operand(&self.devices)?;
        let index = u32::try_from(self.own.graph.operands.len())
            .map_err(|_| Error::bad_data("there are too many operands"))?;
        self.own.graph.operands.push(operand);
        Ok(index)
    }

    /// Gives an operand a constant value, which is copied.
    ///
    /// # Errors
    /// `BAD_DATA` if there is no such operand, its dimensions are not all known, or it takes
    /// another number of bytes; `BAD_STATE`.
    pub fn set_operand_value(&mut self, index: u32, bytes: &[u8]) -> Result<()> {
        let length = self.expect_constant(index, bytes.len())?;
        self.forget_value(index);
        let values = &mut self.own.values;
        let offset = values.len().next_multiple_of(VALUE_ALIGNMENT);
        let end = offset.checked_add(bytes.len());
        let offset = match (u32::try_from(offset), end.map(u32::try_from)) {
            (Ok(offset), Some(Ok(_))) => offset,
            _ => return Err(Error::bad_data("the constants take more than 2^32 bytes")),
        };
        let no_memory = |_| {
            let reason = format!("there is no memory for a constant of {length} bytes");
            Error::new(ResultCode::OutOfMemory, reason)
        };
        values.try_reserve(VALUE_ALIGNMENT + bytes.len()).map_err(no_memory)?;
        values.resize(offset as usize, 0);
        values.extend_from_slice(bytes);
        let operand = &mut self.own.graph.operands[index as usize];
        operand.lifetime = OperandLifeTime::ConstantCopy;
        operand.location = DataLocation { pool_index: 0, offset, length };
        Ok(())
    }

    /// Gives an operand a constant value that stays with the caller until the model is finished. It
    /// is copied once, then.
    ///
    /// # Errors
    /// As [`ModelBuilder::set_operand_value`].
    pub fn set_operand_value_shared(
        &mut self,
        index: u32,
        bytes: Arc<dyn ReadBytes>,
    ) -> Result<()> {
        let length = self.expect_constant(index, bytes.size())?;
        self.forget_value(index);
        self.large.insert(index, bytes);
        let operand = &mut self.own.graph.operands[index as usize];
        operand.lifetime = OperandLifeTime::ConstantReference;
        operand.location = DataLocation { length, ..DataLocation::default() };
        Ok(())
    }

    /// Leaves an operand out: operations go without the argument.
    ///
    /// # Errors
    /// `BAD_DATA` if there is no such operand; `BAD_STATE`.
    pub fn omit_operand_value(&mut self, index: u32) -> Result<()> {
        self.expect_building()?;
        self.operand(index)?;
        self.forget_value(index);
        let operand = &mut self.own.graph.operands[index as usize];
        operand.lifetime = OperandLifeTime::NoValue;
        operand.location = DataLocation::default();
        Ok(())
    }

    /// Gives an operand a constant value that is in memory.
    ///
    /// # Errors
    /// `BAD_DATA` as [`ModelBuilder::set_operand_value`], or if the range is not within the memory,
    /// or the memory is a device's; `BAD_STATE`.
    pub fn set_operand_value_from_memory(
        &mut self,
        index: u32,
        memory: &Memory,
        offset: usize,
        length: usize,
    ) -> Result<()> {
        let needed = self.expect_constant(index, length)?;
        let shared = memory.expect_constant(offset, length)?;
        let offset = u32::try_from(offset)
            .map_err(|_| Error::bad_data(format!("offset {offset} needs more than 32 bits")))?;
        self.forget_value(index);
        let pools = &mut self.own.pools;
        let pool = pools.iter().position(|pool| pool.is_same(shared)).unwrap_or_else(|| {
            pools.push(shared.clone());
            pools.len() - 1
        });
        let operand = &mut self.own.graph.operands[index as usize];
        operand.lifetime = OperandLifeTime::ConstantReference;
        let pool_index = u32::try_from(pool).unwrap_or(u32::MAX);
        operand.location = DataLocation { pool_index, offset, length: needed };
        Ok(())
    }

    /// Makes an operand stand for another model, which an IF or WHILE runs.
    ///
    /// # Errors
    /// `BAD_DATA` if there is no such operand, or the model is built for other devices; `BAD_STATE`.
    pub fn set_operand_value_from_model(&mut self, index: u32, value: &Model) -> Result<()> {
        self.expect_building()?;
        self.operand(index)?;
        if !value.devices().is_same(&self.devices) {
            return Err(Error::bad_data("the model is built for other devices"));
        }
        self.forget_value(index);
        let reference = u32::try_from(self.own.references.len()).unwrap_or(u32::MAX);
        self.own.references.push(value.clone());
        let operand = &mut self.own.graph.operands[index as usize];
        operand.lifetime = OperandLifeTime::Subgraph;
        operand.location = DataLocation { offset: reference, ..DataLocation::default() };
        Ok(())
    }

    /// Gives an operand of type `TENSOR_QUANT8_SYMM_PER_CHANNEL` its scales.
    ///
    /// # Errors
    /// `BAD_DATA` if there is no such operand, it is of another type, or scales and dimensions do
    /// not go together; `BAD_STATE`.
    pub fn set_operand_channel_quant(
        &mut self,
        index: u32,
        channel_dim: u32,
        scales: &[f32],
    ) -> Result<()> {
        self.expect_building()?;
        let operand = self.operand(index)?;
        if operand.operand_type != OperandType::TensorQuant8SymmPerChannel {
            let found = operand.operand_type;
            return Err(Error::bad_data(format!(
                "operand {index} of type {found} has no channels"
            )));
        }
        let quant = ChannelQuant { scales: scales.into(), channel_dim };
        nnhal_ops::validate::check_channel_quant(operand, &quant)
            .map_err(|error| Error::bad_data(format!("operand {index}: {error}")))?;
        self.own.graph.operands[index as usize].extra_params = ExtraParams::ChannelQuant(quant);
        Ok(())
    }

    /// Gives an operand of an extension's type bytes that only the extension understands, or takes
    /// them away.
    ///
    /// # Errors
    /// `BAD_DATA` if there is no such operand or it is of another type; `BAD_STATE`.
    pub fn set_operand_extension_data(&mut self, index: u32, data: Option<&[u8]>) -> Result<()> {
        self.expect_building()?;
        let found = self.operand(index)?.operand_type;
        if !matches!(found, OperandType::Extension(_)) {
            return Err(Error::bad_data(format!(
                "operand {index} of type {found} has no such data"
            )));
        }
        self.own.graph.operands[index as usize].extra_params = match data {
            Some(bytes) => ExtraParams::Extension(bytes.into()),
            None => ExtraParams::None,
        };
        Ok(())
    }

    /// Appends an operation. Its operands must be there; their values need not be.
    ///
    /// # Errors
    /// `BAD_DATA` if the number is no operation, an operand is not there, types and ranks do not fit
    /// the operation's definition, or an IF or WHILE does not fit the models that it runs, which must be
    /// set before;
    /// `BAD_STATE`. What else the definition forbids fails when it is computed, as Android does it.
    pub fn add_operation(&mut self, code: i32, inputs: &[u32], outputs: &[u32]) -> Result<()> {
        self.expect_building()?;
        let operation_type = OperationType::from_code(code.cast_unsigned())
            .map_err(|error| Error::bad_data(error.to_string()))?;
        if let OperationType::Extension(extension) = operation_type
            && !self.devices.extensions().knows(extension)
        {
            let prefix = extension.prefix();
            return Err(Error::bad_data(format!("prefix {prefix:#06x} stands for no extension")));
        }
        self.expect_indexes("input", inputs)
            .and_then(|()| self.expect_indexes("output", outputs))
            .map_err(|error| error.within(operation_type))?;
        let operation =
            Operation { operation_type, inputs: inputs.to_vec(), outputs: outputs.to_vec() };
        self.expect_definition(&operation).map_err(|fault| {
            let count = self.own.graph.operations.len();
            Error::bad_data(format!("operation {count}: {fault}"))
        })?;
        self.expect_compatible(&operation).map_err(|error| {
            let count = self.own.graph.operations.len();
            error.within(format!("operation {count}: {operation_type}"))
        })?;
        self.own.graph.operations.push(operation);
        Ok(())
    }

    /// Says which operands an execution gives and gets.
    ///
    /// # Errors
    /// `BAD_DATA` if one is not there, has a value, or was named before; `BAD_STATE`. As Android does it,
    /// one that has a value is named all the same, so that the model cannot be finished until this succeeds.
    pub fn identify_inputs_and_outputs(&mut self, inputs: &[u32], outputs: &[u32]) -> Result<()> {
        self.expect_building()?;
        self.expect_indexes("input", inputs)?;
        self.expect_indexes("output", outputs)?;
        let graph = &mut self.own.graph;
        for (list, named, lifetime, name) in [
            (inputs, &mut graph.inputs, OperandLifeTime::SubgraphInput, "input"),
            (outputs, &mut graph.outputs, OperandLifeTime::SubgraphOutput, "output"),
        ] {
            named.resize(list.len(), 0);
            for (index, place) in list.iter().zip(named) {
                *place = *index;
                let operand = &mut graph.operands[*index as usize];
                if operand.lifetime != OperandLifeTime::TemporaryVariable {
                    let found = operand.lifetime;
                    return Err(Error::bad_data(format!(
                        "operand {index} cannot be an {name} of the model: it is a {found}"
                    )));
                }
                operand.lifetime = lifetime;
            }
        }
        Ok(())
    }

    /// Says whether float32 may be computed with the range and precision of float16.
    ///
    /// # Errors
    /// `BAD_STATE`
    pub fn relax_computation_float32_to_float16(&mut self, allow: bool) -> Result<()> {
        self.expect_building()?;
        self.relaxed = allow;
        Ok(())
    }

    /// Checks the model as a whole and finishes it. One that is not valid stays so.
    ///
    /// # Errors
    /// `BAD_DATA`: the first rule that the model breaks; `BAD_STATE` the second time;
    /// `OUT_OF_MEMORY`.
    pub fn finish(&mut self) -> Result<Model> {
        match self.state {
            State::Building => {}
            State::Finished(_) => return Err(Error::bad_state("the model is finished already")),
            State::Invalid => return Err(Error::bad_state("the model is not valid")),
        }
        self.place_large_values()?;
        match self.check() {
            Ok(model) => {
                self.state = State::Finished(model.clone());
                Ok(model)
            }
            Err(error) => {
                self.state = State::Invalid;
                Err(error)
            }
        }
    }

    /// The finished model.
    ///
    /// # Errors
    /// `BAD_STATE` if it is not finished, or not valid.
    pub fn model(&self) -> Result<&Model> {
        match &self.state {
            State::Finished(model) => Ok(model),
            State::Building => Err(Error::bad_state("the model is not finished")),
            State::Invalid => Err(Error::bad_state("the model is not valid")),
        }
    }

    /// Demands that the model is still being built, which comes before every other demand.
    ///
    /// # Errors
    /// `BAD_STATE` after [`ModelBuilder::finish`].
    pub fn expect_building(&self) -> Result<()> {
        match self.state {
            State::Building => Ok(()),
            State::Finished(_) => Err(Error::bad_state("the model is finished")),
            State::Invalid => Err(Error::bad_state("the model is not valid")),
        }
    }

    fn operand(&self, index: u32) -> Result<&Operand> {
        let operands = &self.own.graph.operands;
        operands
            .get(index as usize)
            .ok_or_else(|| Error::bad_data(format!("operand {index} of {}", operands.len())))
    }

    fn expect_indexes(&self, name: &str, indexes: &[u32]) -> Result<()> {
        for (position, index) in indexes.iter().enumerate() {
            self.operand(*index).map_err(|error| error.within(format!("{name} {position}")))?;
        }
        Ok(())
    }

    /// Checks that an operand can have a constant value of `length` bytes, and returns that number.
    fn expect_constant(&self, index: u32, length: usize) -> Result<u32> {
        self.expect_building()?;
        let operand = self.operand(index)?;
        let Operand { operand_type, dimensions, .. } = operand;
        if is_tensor(&self.devices, *operand_type) && !is_fully_specified(dimensions) {
            return Err(Error::bad_data(format!(
                "operand {index} has dimensions {dimensions:?}, but a constant's are all known"
            )));
        }
        let found = u32::try_from(length)
            .map_err(|_| Error::bad_data(format!("a value of {length} bytes is too long")))?;
        let needed = byte_size(&self.devices, *operand_type, dimensions);
        if *operand_type == OperandType::Oem || needed == Some(found) {
            return Ok(found);
        }
        Err(Error::bad_data(format!(
            "operand {index} ({operand_type} {dimensions:?}) has {} bytes, not {found}",
            needed.unwrap_or(0)
        )))
    }

    /// Checks an operation's operands by its definition, as far as types and ranks say.
    fn expect_definition(&self, operation: &Operation) -> Result<(), Fault> {
        let Some(signature) = Signature::of(operation.operation_type) else { return Ok(()) };
        let source = |index: &u32| {
            let operand = &self.own.graph.operands[*index as usize];
            let value = match operand.lifetime {
                OperandLifeTime::NoValue => Value::Omitted,
                _ => Value::NotKnown,
            };
            ArgumentSource { operand, shape: Shape::declared(operand), value }
        };
        let (inputs, outputs) = (&operation.inputs, &operation.outputs);
        let call = Call::new(
            operation.operation_type,
            inputs.iter().map(source),
            outputs.iter().map(source),
        );
        // What is left out although it is needed is found out about when it is computed.
        signature.since_by_types(&call)?;
        match nnhal_ops::operations::validate(&call) {
            Err(Fault::Invalid(error)) if nnhal_ops::validate::refused_at_once(&error) => {
                Err(error.into())
            }
            // Values and scales may still come, and are nothing that a model is refused for.
            _ => Ok(()),
        }
    }

    /// Checks an IF or WHILE against the models that it is to run.
    fn expect_compatible(&self, operation: &Operation) -> Result<()> {
        let operands = &self.own.graph.operands;
        let of = |index: &u32| {
            let operand = &operands[*index as usize];
            let is_set = operand.lifetime == OperandLifeTime::Subgraph;
            is_set.then(|| &self.own.references[operand.location.offset as usize].own().graph)
        };
        nnhal_ops::validate::check_control_flow(operands, operation, of)
            .map_err(|error| Error::bad_data(error.to_string()))
    }

    /// What an operand had before does not matter once it gets something else.
    fn forget_value(&mut self, index: u32) {
        self.large.remove(&index);
    }

    /// Copies the large values into shared memory, where all devices read them.
    fn place_large_values(&mut self) -> Result<()> {
        if self.large.is_empty() {
            return Ok(());
        }
        let mut places = Vec::with_capacity(self.large.len());
        let mut end = 0_u64;
        for (index, value) in &self.large {
            let offset = end.next_multiple_of(64);
            end = offset + value.size() as u64;
            places.push((*index, offset));
        }
        if u32::try_from(end).is_err() {
            return Err(Error::bad_data(format!("the constants take {end} bytes, more than 2^32")));
        }
        let out_of_memory = |error: nnhal_hal::memory::MemoryError| {
            Error::new(ResultCode::OutOfMemory, error.to_string())
        };
        let pool = crate::memory::allocate(end)?;
        let view = pool.view().map_err(out_of_memory)?;
        let pool_index = u32::try_from(self.own.pools.len()).unwrap_or(u32::MAX);
        for ((index, offset), value) in places.into_iter().zip(self.large.values()) {
            let location = &mut self.own.graph.operands[index as usize].location;
            let mut written = Ok(());
            value.lend(&mut |bytes| {
                let bytes = bytes.get(..location.length as usize).unwrap_or(bytes);
                written = view.write(offset, bytes);
            });
            written.map_err(out_of_memory)?;
            location.pool_index = pool_index;
            location.offset = u32::try_from(offset).unwrap_or(u32::MAX);
        }
        self.own.pools.push(pool);
        self.large.clear();
        Ok(())
    }

    fn check(&mut self) -> Result<Model> {
        let depth = 1 + self.own.references.iter().map(Model::depth).max().unwrap_or(0);
        if depth > DEEPEST {
            return Err(Error::bad_data(format!("models are nested more than {DEEPEST} deep")));
        }
        let graph = &mut self.own.graph;
        let used = prefixes(std::iter::once(&*graph));
        self.devices.extensions().expect_offered(&used)?;
        let order = run_order(&graph.operands, &graph.operations).ok_or_else(|| {
            Error::bad_data("operations wait for each other, or for an operand that none writes")
        })?;
        graph.operations = order.iter().map(|index| graph.operations[*index].clone()).collect();
        let invalid = |error: nnhal_ops::ValidationError| {
            Error::new(nnhal_hal::Error::from(error.clone()).status().into(), error.to_string())
        };
        let validate = |model: &nnhal_hal::Model| {
            nnhal_ops::validate::check_for_application(model, HalVersion::LATEST)
        };
        let model = assemble(&self.own, self.relaxed, &self.devices);
        let mut checked = validate(&model).map_err(invalid)?;
        let simpler = nnhal_ops::simplify::without_defaults(&model);
        if simpler.main != model.main || simpler.referenced != model.referenced {
            checked = validate(&simpler).map_err(invalid)?;
        }
        checked.expect_bounded_pass().map_err(|error| Error::bad_data(error.to_string()))?;
        let own = std::mem::take(&mut self.own);
        let controlled = |operation: &Operation| {
            let operands =
                operation.inputs.iter().map(|input| &own.graph.operands[*input as usize]);
            let models = operands.filter(|it| it.lifetime == OperandLifeTime::Subgraph);
            models.map(|it| own.references[it.location.offset as usize].clone()).collect()
        };
        let controlled = own.graph.operations.iter().map(controlled).collect();
        let devices = self.devices.clone();
        Ok(Model(Arc::new(Inner { devices, own, checked, added_as: order, controlled, depth })))
    }
}

impl fmt::Debug for ModelBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Building => "building",
            State::Invalid => "invalid",
            State::Finished(_) => "finished",
        };
        formatter
            .debug_struct("ModelBuilder")
            .field("state", &state)
            .field("operands", &self.own.graph.operands.len())
            .field("operations", &self.own.graph.operations.len())
            .finish_non_exhaustive()
    }
}
