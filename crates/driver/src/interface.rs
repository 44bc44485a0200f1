//! [`Interface`]: what the requests of a prepared model must fit, and the one place where they are
//! checked, [`Interface::bind`] (contract: sections 9 and 14).

mod error;
mod pools;

pub use error::{RequestError, Subject};

use crate::bindings::{Bindings, BoundInput, BoundOutput};
use crate::buffers::tokens::KeptBuffers;
use crate::buffers::{Direction, Role};
use crate::extension_types::ExtensionTypes;
use crate::owner::Owner;
use nnhal_hal::{
    DataLocation, HalVersion, Operand, OperandType, Request, RequestArgument, RequestMemoryPool,
};
use nnhal_ops::{Shape, ValidModel};
use pools::{Pool, Pools, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many prepared models there have been.
static PREPARED_MODELS: AtomicU64 = AtomicU64::new(0);

/// The arguments of a prepared model.
#[derive(Debug, Clone)]
pub struct Interface {
    number: u64,
    version: HalVersion,
    inputs: Vec<Operand>,
    outputs: Vec<Operand>,
    /// By input and by output, what the model says of the shape: that of an argument for which the request says nothing.
    declared: [Vec<Arc<Shape>>; 2],
    extension_types: ExtensionTypes,
    owner: Owner,
}

/// What a request is checked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsedFor {
    /// An execution whose caller gets output shapes: dimensions of outputs may be unknown from 1.2
    /// (contract: REQ-8), and buffers may turn out too short.
    Execution,
    /// An execution behind fences: outputs must be known, and fit (contract: REQ-8, FENCE-2).
    FencedExecution,
    /// The same while it waits for its fences: buffers that it reads may be written before it runs,
    /// so what they hold now does not count, and is not bound.
    WaitingExecution,
    /// Executions in whichever way, later: what buffers hold now does not count either.
    KeptRequest,
    /// An execution in the process of the one who asks: lengths of 0 in the dimensions that a request gives of an input are those
    /// of axes without elements, which requests to devices cannot express.
    InProcess,
}

impl UsedFor {
    fn is_fenced(self) -> bool {
        matches!(self, Self::FencedExecution | Self::WaitingExecution)
    }

    fn read(self) -> Read {
        match self {
            Self::WaitingExecution => Read::AfterFences,
            Self::KeptRequest => Read::Whenever,
            Self::Execution | Self::FencedExecution | Self::InProcess => Read::Now,
        }
    }
}

impl Interface {
    /// The arguments of a model's main subgraph, for one prepared model: buffers that the driver
    /// manages are allocated for it and its clones only.
    pub fn of(model: &ValidModel) -> Self {
        let main = model.main();
        let operands = |indexes: &[u32]| {
            indexes.iter().map(|index| main.operands[*index as usize].clone()).collect()
        };
        Self::new(model.version(), operands(&main.inputs), operands(&main.outputs))
    }

    /// The same from the operands of the arguments, which have been validated.
    pub(crate) fn new(version: HalVersion, inputs: Vec<Operand>, outputs: Vec<Operand>) -> Self {
        let number = PREPARED_MODELS.fetch_add(1, Ordering::Relaxed);
        let (extension_types, owner) = (ExtensionTypes::default(), Owner::none());
        let declared = Default::default();
        Self { number, version, inputs, outputs, declared, extension_types, owner }
            .with_declared_shapes()
    }

    /// The same with what the device says of extensions' types: requests must keep to that
    /// (contract: EXT-5). Without, arguments of such types pass whatever their sizes.
    #[must_use]
    pub fn with_extension_types(self, extension_types: ExtensionTypes) -> Self {
        Self { extension_types, ..self }.with_declared_shapes()
    }

    fn with_declared_shapes(mut self) -> Self {
        let declared = |operands: &[Operand]| {
            operands.iter().map(|operand| Arc::new(self.declared_shape(operand))).collect()
        };
        self.declared = [declared(&self.inputs), declared(&self.outputs)];
        self
    }

    /// The same for a prepared model of this owner, whose tokens requests may name.
    pub(crate) fn with_owner(self, owner: Owner) -> Self {
        Self { owner, ..self }
    }

    /// Names the prepared model; never used again (contract: ALLOC-9).
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The version of the interface that the model was prepared through.
    pub fn version(&self) -> HalVersion {
        self.version
    }

    /// The operands that a request gives, by position.
    pub fn inputs(&self) -> &[Operand] {
        &self.inputs
    }

    /// The operands that a request gets, by position.
    pub fn outputs(&self) -> &[Operand] {
        &self.outputs
    }

    /// The buffers that a request names.
    pub(crate) fn keep_buffers(&self, request: &Request) -> KeptBuffers {
        KeptBuffers::of(request, &self.owner)
    }

    /// Checks a request against the model and opens its memory.
    ///
    /// # Errors
    /// [`RequestError`], see there.
    pub fn bind(&self, request: &Request, used_for: UsedFor) -> Result<Bindings, RequestError> {
        self.bind_kept(request, used_for, &KeptBuffers::default())
    }

    /// The same for a request that was launched before, with the buffers that it named then.
    pub(crate) fn bind_kept(
        &self,
        request: &Request,
        used_for: UsedFor,
        kept: &KeptBuffers,
    ) -> Result<Bindings, RequestError> {
        expect_count("inputs", request.inputs.len(), self.inputs.len())?;
        expect_count("outputs", request.outputs.len(), self.outputs.len())?;
        let mut pools = Pools::new(&request.pools, self.version, &self.owner, kept)?;
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for (index, (argument, operand)) in request.inputs.iter().zip(&self.inputs).enumerate() {
            inputs.push(self.bind_input(index, argument, operand, &mut pools, used_for)?);
        }
        let mut outputs = Vec::with_capacity(self.outputs.len());
        for (index, (argument, operand)) in request.outputs.iter().zip(&self.outputs).enumerate() {
            outputs.push(self.bind_output(index, argument, operand, &mut pools, used_for)?);
        }
        Ok(Bindings::new(inputs, outputs, pools.into_written()))
    }

    /// Forgets what the buffers that a request writes hold.
    pub(crate) fn discard_outputs(&self, request: &Request, kept: &KeptBuffers) {
        for (index, argument) in request.outputs.iter().enumerate() {
            let role = Role { model: self.number, direction: Direction::Output, index };
            if !argument.has_no_value
                && let Some(RequestMemoryPool::Token(token)) =
                    request.pools.get(argument.location.pool_index as usize)
                && let Some(buffer) = kept.find(*token, &self.owner)
                && buffer.has_role(role)
            {
                buffer.uninitialize();
            }
        }
    }

    fn bind_input(
        &self,
        index: usize,
        argument: &RequestArgument,
        operand: &Operand,
        pools: &mut Pools<'_>,
        used_for: UsedFor,
    ) -> Result<BoundInput, RequestError> {
        let subject = Subject::Input(index);
        let operand_type = operand.operand_type;
        let mut shape = self.combined_shape(subject, argument, operand)?;
        if argument.has_no_value {
            return Ok(BoundInput::omitted(operand_type, shape));
        }
        let found = &argument.dimensions;
        if used_for == UsedFor::InProcess && !found.is_empty() {
            shape = Arc::new(Shape::known(found.iter().copied()));
        }
        self.expect_known(subject, operand_type, &shape)?;
        match pools.of(subject, argument)? {
            Pool::Memory(memory) => {
                let mut region = Pools::region(subject, argument.location, memory)?;
                let expected = self.byte_size(subject, operand_type, &shape)?;
                if expected == Some(0) {
                    region = region.first(0);
                }
                if let Some(expected) = expected
                    && expected != region.length()
                {
                    let found = region.length();
                    return Err(RequestError::Length {
                        subject,
                        operand_type,
                        shape: Shape::clone(&shape),
                        found,
                        expected,
                    });
                }
                Ok(BoundInput::new(operand_type, shape, region))
            }
            Pool::Buffer(buffer) => {
                let role = Role { model: self.number, direction: Direction::Input, index };
                let value =
                    pools.read_buffer(subject, argument, buffer, role, &shape, used_for.read())?;
                Ok(match value {
                    Some((shape, region)) => BoundInput::new(operand_type, Arc::new(shape), region),
                    None => BoundInput::omitted(operand_type, shape),
                })
            }
        }
    }

    fn bind_output(
        &self,
        index: usize,
        argument: &RequestArgument,
        operand: &Operand,
        pools: &mut Pools<'_>,
        used_for: UsedFor,
    ) -> Result<BoundOutput, RequestError> {
        let subject = Subject::Output(index);
        let operand_type = operand.operand_type;
        let shape = self.combined_shape(subject, argument, operand)?;
        if argument.has_no_value {
            return Ok(BoundOutput::omitted(index, operand_type, shape));
        }
        let fenced = used_for.is_fenced();
        if self.version < HalVersion::V1_2 || fenced {
            self.expect_known(subject, operand_type, &shape)?;
        }
        match pools.of(subject, argument)? {
            Pool::Memory(memory) => {
                let region = pools.writable_region(subject, argument.location, memory)?;
                let expected = self.byte_size(subject, operand_type, &shape)?;
                if let (true, Some(expected)) = (fenced, expected)
                    && region.length() < expected
                {
                    let found = region.length();
                    return Err(RequestError::Length {
                        subject,
                        operand_type,
                        shape: Shape::clone(&shape),
                        found,
                        expected,
                    });
                }
                let element_size = self.extension_types.element_size(operand_type);
                Ok(BoundOutput::new(index, operand_type, element_size, shape, region))
            }
            Pool::Buffer(buffer) => {
                let role = Role { model: self.number, direction: Direction::Output, index };
                let shape = pools.write_buffer(subject, argument, &buffer, role, &shape)?;
                Ok(BoundOutput::in_buffer(index, operand_type, Arc::new(shape), buffer))
            }
        }
    }

    /// What the model says of an argument's shape.
    fn declared_shape(&self, operand: &Operand) -> Shape {
        if self.extension_types.is_tensor(operand.operand_type) == Some(false) {
            return Shape::known([]);
        }
        Shape::of_model(&operand.dimensions)
    }

    /// What model and request say together (contract: REQ-2, REQ-6).
    fn combined_shape(
        &self,
        subject: Subject,
        argument: &RequestArgument,
        operand: &Operand,
    ) -> Result<Arc<Shape>, RequestError> {
        let found = &argument.dimensions;
        let declared = match subject {
            Subject::Input(index) => &self.declared[0][index],
            Subject::Output(index) => &self.declared[1][index],
        };
        if argument.has_no_value {
            let with = |found| RequestError::LeftOutWith { subject, found };
            if argument.location != DataLocation::default() {
                return Err(with("a location"));
            }
            if !found.is_empty() {
                return Err(with("dimensions"));
            }
        }
        if found.is_empty() {
            return Ok(Arc::clone(declared));
        }
        let contradiction = || {
            let expected = Shape::clone(declared);
            Err(RequestError::Dimensions { subject, found: found.clone(), expected })
        };
        if self.extension_types.is_tensor(operand.operand_type) == Some(false) {
            return contradiction();
        }
        // What the model says must be repeated where the request says anything: a 0 there is no "as
        // the model", it contradicts.
        let repeats_model = operand
            .dimensions
            .iter()
            .zip(found)
            .all(|(model, request)| *model == 0 || model == request);
        match declared.merge(&Shape::of_model(found)) {
            Some(shape) if repeats_model => Ok(Arc::new(shape)),
            _ => contradiction(),
        }
    }

    /// Demands that every dimension is known. A type without dimensions may be a scalar if it is of
    /// an extension that the device does not have.
    fn expect_known(
        &self,
        subject: Subject,
        operand_type: OperandType,
        shape: &Shape,
    ) -> Result<(), RequestError> {
        let may_be_scalar =
            self.extension_types.is_tensor(operand_type).is_none() && shape.rank().is_none();
        if known_lengths(shape).is_some() || may_be_scalar {
            return Ok(());
        }
        Err(RequestError::UnknownDimensions { subject, found: shape.clone() })
    }

    /// Bytes of a value; `None` where the type or the shape does not say.
    fn byte_size(
        &self,
        subject: Subject,
        operand_type: OperandType,
        shape: &Shape,
    ) -> Result<Option<u64>, RequestError> {
        let element = self.extension_types.element_size(operand_type);
        let (Some(element @ 1..), Some(mut lengths)) = (element, known_lengths(shape)) else {
            return Ok(None);
        };
        lengths
            .try_fold(u64::from(element), |size, length| size.checked_mul(u64::from(length)))
            .filter(|size| u32::try_from(*size).is_ok())
            .map(Some)
            .ok_or_else(|| RequestError::TooLarge { subject, operand_type, shape: shape.clone() })
    }
}

/// All lengths, if all are known.
fn known_lengths(shape: &Shape) -> Option<impl Iterator<Item = u32>> {
    let lengths = shape.lengths()?;
    lengths.iter().all(Option::is_some).then(|| lengths.iter().copied().flatten())
}

fn expect_count(what: &'static str, found: usize, expected: usize) -> Result<(), RequestError> {
    if found == expected {
        return Ok(());
    }
    Err(RequestError::Count { what, found, expected })
}

#[cfg(test)]
mod tests;
