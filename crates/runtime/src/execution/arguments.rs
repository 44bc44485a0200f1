//! [`Arguments`]: the inputs and outputs of an execution, as the client sets them.

use crate::bytes::{ReadBytes, WriteBytes};
use crate::compilation::Compilation;
use crate::error::{Error, Result};
use crate::memory::{Direction, Memory};
use crate::operand::{OperandDescription, byte_size, is_fully_specified, is_tensor};
use nnhal_hal::{Operand, OperandType, OutputShape};
use std::sync::Arc;

/// All arguments of an execution. `B` is how bytes of the caller are reached.
#[derive(Clone)]
pub(super) struct Arguments {
    pub(super) inputs: Vec<Argument<dyn ReadBytes>>,
    pub(super) outputs: Vec<Argument<dyn WriteBytes>>,
    padding: bool,
    any_set: bool,
}

/// One argument.
pub(super) enum Argument<B: ?Sized> {
    /// Not set yet.
    Unset,
    /// Left out.
    Omitted,
    /// Bytes of the caller.
    Bytes {
        bytes: Arc<B>,
        /// Without padding.
        length: u32,
        /// As far as they are known; 0 and empty where not.
        dimensions: Vec<u32>,
    },
    /// A part of memory. Length 0: the whole buffer of a device.
    Memory {
        memory: Memory,
        offset: u32,
        /// Without padding.
        length: u32,
        /// As far as they are known; 0 and empty where not.
        dimensions: Vec<u32>,
    },
}

impl<B: ?Sized> Clone for Argument<B> {
    fn clone(&self) -> Self {
        match self {
            Self::Unset => Self::Unset,
            Self::Omitted => Self::Omitted,
            Self::Bytes { bytes, length, dimensions } => Self::Bytes {
                bytes: Arc::clone(bytes),
                length: *length,
                dimensions: dimensions.clone(),
            },
            Self::Memory { memory, offset, length, dimensions } => Self::Memory {
                memory: memory.clone(),
                offset: *offset,
                length: *length,
                dimensions: dimensions.clone(),
            },
        }
    }
}

/// A part of memory that an argument is to be in.
pub(super) struct Part<'a> {
    pub(super) memory: &'a Memory,
    pub(super) offset: usize,
    pub(super) length: usize,
}

impl Arguments {
    pub(super) fn new(inputs: usize, outputs: usize) -> Self {
        Self {
            inputs: vec![Argument::Unset; inputs],
            outputs: vec![Argument::Unset; outputs],
            padding: false,
            any_set: false,
        }
    }

    pub(super) fn enable_padding(&mut self, enable: bool) -> Result<()> {
        if self.any_set {
            return Err(Error::bad_state("an argument is given already"));
        }
        self.padding = enable;
        Ok(())
    }

    /// Demands that every argument is given.
    pub(super) fn expect_all(&self) -> Result<()> {
        let is_unset = |position: Option<usize>, name| match position {
            None => Ok(()),
            Some(index) => Err(Error::bad_data(format!("{name} {index} is not given"))),
        };
        is_unset(self.inputs.iter().position(|it| matches!(it, Argument::Unset)), "input")?;
        is_unset(self.outputs.iter().position(|it| matches!(it, Argument::Unset)), "output")
    }

    /// Demands that memory which is used as input holds values of the dimensions that it is used
    /// with. May change from execution to execution.
    pub(super) fn expect_values(&self) -> Result<()> {
        for (index, input) in self.inputs.iter().enumerate() {
            if let Argument::Memory { memory, dimensions, .. } = input {
                memory
                    .expect_value(dimensions)
                    .map_err(|error| error.within(format!("input {index}")))?;
            }
        }
        Ok(())
    }

    /// Demands that the dimensions of all outputs are known, which fenced executions need.
    pub(super) fn expect_known_outputs(&self, compilation: &Compilation) -> Result<()> {
        let devices = compilation.model().devices();
        for (index, operand) in compilation.model().outputs().enumerate() {
            let Some(Argument::Bytes { dimensions, .. } | Argument::Memory { dimensions, .. }) =
                self.outputs.get(index)
            else {
                continue;
            };
            if is_tensor(devices, operand.operand_type) && !is_fully_specified(dimensions) {
                return Err(Error::bad_data(format!(
                    "output {index} has dimensions {dimensions:?}, but behind dependencies all must \
                     be known"
                )));
            }
        }
        Ok(())
    }

    /// Says to memory that outputs are in what it holds now. `None`: nothing.
    pub(super) fn settle_memories(&self, shapes: Option<&[OutputShape]>) -> Result<()> {
        for (index, output) in self.outputs.iter().enumerate() {
            let Argument::Memory { memory, .. } = output else { continue };
            let shape = shapes.and_then(|shapes| shapes.get(index));
            memory.settle(shape.map(|shape| &*shape.dimensions))?;
        }
        Ok(())
    }
}

pub(super) fn set_input(
    arguments: &mut Arguments,
    compilation: &Compilation,
    index: u32,
    description: Option<&OperandDescription>,
    bytes: Option<Arc<dyn ReadBytes>>,
) -> Result<()> {
    let bytes = bytes.map(|bytes| (bytes.size(), bytes));
    let is_omitted = bytes.is_none();
    Place::of_input(compilation, index)?
        .set_bytes(arguments, description, bytes, is_omitted)
        .map_err(|error| error.within(format!("input {index}")))
}

pub(super) fn set_output(
    arguments: &mut Arguments,
    compilation: &Compilation,
    index: u32,
    description: Option<&OperandDescription>,
    bytes: Option<Arc<dyn WriteBytes>>,
) -> Result<()> {
    let bytes = bytes.map(|bytes| (bytes.size(), bytes));
    Place::of_output(compilation, index)?
        .set_bytes(arguments, description, bytes, true)
        .map_err(|error| error.within(format!("output {index}")))
}

pub(super) fn set_input_from_memory(
    arguments: &mut Arguments,
    compilation: &Compilation,
    index: u32,
    description: Option<&OperandDescription>,
    part: &Part<'_>,
) -> Result<()> {
    Place::of_input(compilation, index)?
        .set_memory(arguments, description, part, Direction::Input)
        .map_err(|error| error.within(format!("input {index}")))
}

pub(super) fn set_output_from_memory(
    arguments: &mut Arguments,
    compilation: &Compilation,
    index: u32,
    description: Option<&OperandDescription>,
    part: &Part<'_>,
) -> Result<()> {
    Place::of_output(compilation, index)?
        .set_memory(arguments, description, part, Direction::Output)
        .map_err(|error| error.within(format!("output {index}")))
}

/// Where an argument is set.
struct Place<'a, B: ?Sized> {
    compilation: &'a Compilation,
    operand: &'a Operand,
    index: u32,
    /// Inputs or outputs.
    side: fn(&mut Arguments) -> &mut Vec<Argument<B>>,
}

impl<'a> Place<'a, dyn ReadBytes> {
    fn of_input(compilation: &'a Compilation, index: u32) -> Result<Self> {
        let operand = compilation.model().input(index)?;
        Ok(Self { compilation, operand, index, side: |arguments| &mut arguments.inputs })
    }
}

impl<'a> Place<'a, dyn WriteBytes> {
    fn of_output(compilation: &'a Compilation, index: u32) -> Result<Self> {
        let operand = compilation.model().output(index)?;
        Ok(Self { compilation, operand, index, side: |arguments| &mut arguments.outputs })
    }
}

impl<B: ?Sized> Place<'_, B> {
    /// The place, which must be free. From here on it is decided whether there is padding, also if what is set does not fit.
    fn claim<'s>(&self, arguments: &'s mut Arguments) -> Result<&'s mut Argument<B>> {
        // One that is given already has decided it.
        arguments.any_set = true;
        match (self.side)(arguments).get_mut(self.index as usize) {
            Some(slot @ Argument::Unset) => Ok(slot),
            Some(_) => Err(Error::bad_state("it is given already")),
            None => Err(Error::bad_data("there is no such argument")),
        }
    }

    fn set_bytes(
        &self,
        arguments: &mut Arguments,
        description: Option<&OperandDescription>,
        bytes: Option<(usize, Arc<B>)>,
        may_be_unknown: bool,
    ) -> Result<()> {
        let Self { compilation, operand, .. } = *self;
        let dimensions = dimensions(compilation, operand, description, may_be_unknown)?;
        let padding = arguments.padding;
        let slot = self.claim(arguments)?;
        *slot = match bytes {
            None => Argument::Omitted,
            Some((0, _)) => return Err(Error::bad_data("there are no bytes")),
            Some((size, bytes)) => {
                let length = length_of(padding, compilation, operand, &dimensions, size)?;
                Argument::Bytes { bytes, length, dimensions }
            }
        };
        Ok(())
    }

    fn set_memory(
        &self,
        arguments: &mut Arguments,
        description: Option<&OperandDescription>,
        part: &Part<'_>,
        direction: Direction,
    ) -> Result<()> {
        let Self { compilation, operand, index, .. } = *self;
        let may_be_unknown = direction == Direction::Output;
        let dimensions = dimensions(compilation, operand, description, may_be_unknown)?;
        let asked = description.map(|description| &*description.dimensions);
        let role = compilation.role(direction, index);
        let size = part.memory.expect_argument(role, asked, part.offset, part.length)?;
        let offset = u32::try_from(part.offset).map_err(|_| {
            Error::bad_data(format!("offset {} needs more than 32 bits", part.offset))
        })?;
        let padding = arguments.padding;
        let slot = self.claim(arguments)?;
        let length = match size {
            None => 0,
            Some(size) => length_of(padding, compilation, operand, &dimensions, size)?,
        };
        *slot = Argument::Memory { memory: part.memory.clone(), offset, length, dimensions };
        Ok(())
    }
}

/// The dimensions that model and execution know together.
fn dimensions(
    compilation: &Compilation,
    operand: &Operand,
    description: Option<&OperandDescription>,
    may_be_unknown: bool,
) -> Result<Vec<u32>> {
    let devices = compilation.model().devices();
    let of_model = &operand.dimensions;
    let is_tensor = is_tensor(devices, operand.operand_type);
    let Some(description) = description else {
        if may_be_unknown || !is_tensor || is_fully_specified(of_model) {
            return Ok(of_model.clone());
        }
        return Err(Error::bad_data(format!(
            "the model leaves dimensions {of_model:?} open, and so does the execution"
        )));
    };
    description.to_operand(devices)?;
    let asked = &description.dimensions;
    if !is_tensor && !asked.is_empty() {
        return Err(Error::bad_data(format!("a scalar is given dimensions {asked:?}")));
    }
    let agrees = of_model.is_empty()
        || (of_model.len() == asked.len()
            && of_model.iter().zip(asked).all(|(model, asked)| *model == 0 || model == asked));
    if !agrees {
        return Err(Error::bad_data(format!(
            "dimensions {asked:?} do not agree with the model's, {of_model:?}"
        )));
    }
    if is_tensor && !may_be_unknown && !is_fully_specified(asked) {
        return Err(Error::bad_data(format!("dimensions {asked:?} are not all known")));
    }
    Ok(asked.clone())
}

/// Bytes of the value, given the bytes that there are.
fn length_of(
    padding: bool,
    compilation: &Compilation,
    operand: &Operand,
    dimensions: &[u32],
    found: usize,
) -> Result<u32> {
    let found = u32::try_from(found)
        .map_err(|_| Error::bad_data(format!("{found} bytes are more than 32 bits can count")))?;
    let devices = compilation.model().devices();
    let needed = match operand.operand_type {
        OperandType::Oem => None,
        operand_type => byte_size(devices, operand_type, dimensions),
    };
    let Some(needed) = needed else { return Ok(found) };
    let operand_type = operand.operand_type;
    if found < needed {
        return Err(Error::bad_data(format!(
            "{operand_type} {dimensions:?} takes {needed} bytes, but there are {found}"
        )));
    }
    if found > needed && !padding {
        return Err(Error::bad_data(format!(
            "{operand_type} {dimensions:?} takes {needed} bytes, but there are {found}, and padding \
             is not enabled"
        )));
    }
    Ok(needed)
}
