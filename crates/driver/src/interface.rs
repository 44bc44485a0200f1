//! [`Interface`]: what the requests of a prepared model must fit, and the one place where they are
//! checked, [`Interface::bind`] (contract: section 9).

use crate::bindings::{Bindings, BoundInput, BoundOutput, Region};
use hal::memory::{MemoryError, MemoryKind, MemoryView};
use hal::{
    DataLocation, ErrorStatus, HalVersion, Memory, Operand, OperandType, Request, RequestArgument,
    RequestMemoryPool,
};
use ops::{Shape, ValidModel};
use std::fmt;

/// The arguments of a prepared model.
#[derive(Debug, Clone, PartialEq)]
pub struct Interface {
    version: HalVersion,
    inputs: Vec<Operand>,
    outputs: Vec<Operand>,
}

/// What a request is checked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsedFor {
    /// An execution whose caller gets output shapes: dimensions of outputs may be unknown from 1.2
    /// (contract: REQ-8), and buffers may turn out too short.
    Execution,
    /// An execution behind fences: outputs must be known, and fit (contract: REQ-8, FENCE-2).
    FencedExecution,
}

/// Which argument of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The input with this index.
    Input(usize),
    /// The output with this index.
    Output(usize),
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(index) => write!(formatter, "input {index}"),
            Self::Output(index) => write!(formatter, "output {index}"),
        }
    }
}

/// Why a request is refused.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Too few or too many inputs or outputs (contract: REQ-1).
    #[error("the request has {found} {what}, the model {expected}")]
    Count {
        /// `inputs` or `outputs`.
        what: &'static str,
        /// As many as the request has.
        found: usize,
        /// As many as the model has.
        expected: usize,
    },
    /// An argument without value that says where its value lies (contract: REQ-2).
    #[error("{subject} is left out, but has {found}")]
    LeftOutWith {
        /// The argument.
        subject: Subject,
        /// What it has.
        found: &'static str,
    },
    /// An argument in a pool that does not exist (contract: REQ-3).
    #[error("{subject} is in pool {found}, but there are {pools}")]
    NoSuchPool {
        /// The argument.
        subject: Subject,
        /// The pool it names.
        found: u32,
        /// How many there are.
        pools: usize,
    },
    /// An argument that reaches beyond its pool (contract: REQ-3).
    #[error("{subject} ends at byte {end} of a pool of {size}")]
    OutsidePool {
        /// The argument.
        subject: Subject,
        /// The byte behind its last.
        end: u64,
        /// How long the pool is.
        size: u64,
    },
    /// An argument with a value of no bytes (contract: REQ-4).
    #[error("{subject} has length 0")]
    NoBytes {
        /// The argument.
        subject: Subject,
    },
    /// A token that stands for no buffer (contract: REQ-10, DBUF-1).
    #[error("pool {pool} is token {token}, which stands for no buffer")]
    UnknownToken {
        /// The pool.
        pool: usize,
        /// The token.
        token: u32,
    },
    /// Memory of a kind that the version does not know (contract: REQ-10).
    #[error("pool {pool} is {kind}, which the model's version {version} does not know")]
    PoolKind {
        /// The pool.
        pool: usize,
        /// Its kind.
        kind: MemoryKind,
        /// The version of the interface that the model was prepared through.
        version: HalVersion,
    },
    /// Dimensions of a scalar, or that contradict the model's (contract: REQ-6).
    #[error("{subject} has dimensions {found:?}, the model says {expected}")]
    Dimensions {
        /// The argument.
        subject: Subject,
        /// The request's dimensions.
        found: Vec<u32>,
        /// The model's; of a scalar `[]`.
        expected: Shape,
    },
    /// Dimensions that neither model nor request say, where they must (contract: REQ-7, REQ-8).
    #[error("{subject} has shape {found}, which must be known")]
    UnknownDimensions {
        /// The argument.
        subject: Subject,
        /// What model and request say together.
        found: Shape,
    },
    /// An input whose length is not that of its type and shape (contract: REQ-9), or an output
    /// behind fences that is too short (contract: FENCE-2).
    #[error("{subject} ({operand_type} {shape}) has {found} bytes, expected {expected}")]
    Length {
        /// The argument.
        subject: Subject,
        /// Its type.
        operand_type: OperandType,
        /// Its shape.
        shape: Shape,
        /// Its length in the request.
        found: u64,
        /// What it should be; of an output at least.
        expected: u64,
    },
    /// A shape of more bytes than a location can say.
    #[error("{subject} ({operand_type} {shape}) exceeds 2^32 - 1 bytes")]
    TooLarge {
        /// The argument.
        subject: Subject,
        /// Its type.
        operand_type: OperandType,
        /// Its shape.
        shape: Shape,
    },
    /// An output in memory that was passed for reading only (contract: REQ-12).
    #[error("{subject} is in pool {pool}, which is read-only")]
    ReadOnly {
        /// The output.
        subject: Subject,
        /// The pool.
        pool: u32,
    },
    /// Memory that cannot be used.
    #[error("pool {pool}")]
    Memory {
        /// The pool.
        pool: usize,
        /// Why not.
        #[source]
        error: MemoryError,
    },
}

impl RequestError {
    /// `INVALID_ARGUMENT`, except for memory that cannot be mapped for no fault of the client's.
    pub fn status(&self) -> ErrorStatus {
        match self {
            Self::Memory { error, .. } => error.status(),
            _ => ErrorStatus::InvalidArgument,
        }
    }
}

impl From<RequestError> for hal::Error {
    fn from(error: RequestError) -> Self {
        Self::new(error.status(), error)
    }
}

impl Interface {
    /// The arguments of a model's main subgraph.
    pub fn of(model: &ValidModel) -> Self {
        let main = model.main();
        let operands = |indexes: &[u32]| {
            indexes.iter().map(|index| main.operands[*index as usize].clone()).collect()
        };
        Self {
            version: model.version(),
            inputs: operands(&main.inputs),
            outputs: operands(&main.outputs),
        }
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

    /// Checks a request against the model and opens its memory.
    ///
    /// # Errors
    /// [`RequestError`], see there.
    pub fn bind(&self, request: &Request, used_for: UsedFor) -> Result<Bindings, RequestError> {
        expect_count("inputs", request.inputs.len(), self.inputs.len())?;
        expect_count("outputs", request.outputs.len(), self.outputs.len())?;
        let mut pools = Pools::new(&request.pools, self.version)?;
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for (index, (argument, operand)) in request.inputs.iter().zip(&self.inputs).enumerate() {
            inputs.push(self.bind_input(Subject::Input(index), argument, operand, &mut pools)?);
        }
        let mut outputs = Vec::with_capacity(self.outputs.len());
        for (index, (argument, operand)) in request.outputs.iter().zip(&self.outputs).enumerate() {
            outputs.push(self.bind_output(index, argument, operand, &mut pools, used_for)?);
        }
        Ok(Bindings::new(inputs, outputs, pools.written()))
    }

    fn bind_input(
        &self,
        subject: Subject,
        argument: &RequestArgument,
        operand: &Operand,
        pools: &mut Pools<'_>,
    ) -> Result<BoundInput, RequestError> {
        let operand_type = operand.operand_type;
        let shape = combined_shape(subject, argument, operand)?;
        if argument.has_no_value {
            return Ok(BoundInput::omitted(operand_type, shape));
        }
        expect_known(subject, operand_type, &shape)?;
        let region = pools.region(subject, argument)?;
        if let Some(expected) = byte_size(subject, operand_type, &shape)?
            && expected != region.length()
        {
            let found = region.length();
            return Err(RequestError::Length { subject, operand_type, shape, found, expected });
        }
        Ok(BoundInput::new(operand_type, shape, region))
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
        let shape = combined_shape(subject, argument, operand)?;
        if argument.has_no_value {
            return Ok(BoundOutput::omitted(index, operand_type, shape));
        }
        if self.version < HalVersion::V1_2 || used_for == UsedFor::FencedExecution {
            expect_known(subject, operand_type, &shape)?;
        }
        let region = pools.writable_region(subject, argument)?;
        let expected = byte_size(subject, operand_type, &shape)?;
        if let (UsedFor::FencedExecution, Some(expected)) = (used_for, expected)
            && region.length() < expected
        {
            let found = region.length();
            return Err(RequestError::Length { subject, operand_type, shape, found, expected });
        }
        Ok(BoundOutput::new(index, operand_type, shape, region))
    }
}

fn expect_count(what: &'static str, found: usize, expected: usize) -> Result<(), RequestError> {
    if found == expected {
        return Ok(());
    }
    Err(RequestError::Count { what, found, expected })
}

/// What model and request say together (contract: REQ-2, REQ-6).
fn combined_shape(
    subject: Subject,
    argument: &RequestArgument,
    operand: &Operand,
) -> Result<Shape, RequestError> {
    let found = &argument.dimensions;
    if argument.has_no_value {
        let with = |found| RequestError::LeftOutWith { subject, found };
        if argument.location != DataLocation::default() {
            return Err(with("a location"));
        }
        if !found.is_empty() {
            return Err(with("dimensions"));
        }
    }
    let contradiction =
        |expected| Err(RequestError::Dimensions { subject, found: found.clone(), expected });
    if operand.operand_type.is_scalar() {
        let scalar = Shape::known([]);
        return if found.is_empty() { Ok(scalar) } else { contradiction(scalar) };
    }
    let of_model = Shape::of_model(&operand.dimensions);
    // What the model says must be repeated where the request says anything: a 0 there is no "as
    // the model", it contradicts.
    let repeats_model = operand
        .dimensions
        .iter()
        .zip(found)
        .all(|(model, request)| *model == 0 || model == request);
    match of_model.merge(&Shape::of_model(found)) {
        Some(shape) if repeats_model => Ok(shape),
        _ => contradiction(of_model),
    }
}

/// Demands that every dimension is known. An extension's type without dimensions may be a scalar.
fn expect_known(
    subject: Subject,
    operand_type: OperandType,
    shape: &Shape,
) -> Result<(), RequestError> {
    let may_be_scalar = operand_type.is_tensor().is_none() && shape.rank().is_none();
    if shape.to_known().is_some() || may_be_scalar {
        return Ok(());
    }
    Err(RequestError::UnknownDimensions { subject, found: shape.clone() })
}

/// Bytes of a value; `None` where the type or the shape does not say.
fn byte_size(
    subject: Subject,
    operand_type: OperandType,
    shape: &Shape,
) -> Result<Option<u64>, RequestError> {
    let (Some(element @ 1..), Some(lengths)) = (operand_type.element_size(), shape.to_known())
    else {
        return Ok(None);
    };
    lengths
        .iter()
        .try_fold(u64::from(element), |size, length| size.checked_mul(u64::from(*length)))
        .filter(|size| u32::try_from(*size).is_ok())
        .map(Some)
        .ok_or_else(|| RequestError::TooLarge { subject, operand_type, shape: shape.clone() })
}

/// The pools of a request.
struct Pools<'a> {
    memories: Vec<&'a Memory>,
    written: Vec<bool>,
}

impl<'a> Pools<'a> {
    /// Checks every pool, used or not (contract: REQ-10).
    fn new(pools: &'a [RequestMemoryPool], version: HalVersion) -> Result<Self, RequestError> {
        let mut memories = Vec::with_capacity(pools.len());
        for (index, pool) in pools.iter().enumerate() {
            match pool {
                RequestMemoryPool::Memory(memory) if memory.kind().since() > version => {
                    let kind = memory.kind();
                    return Err(RequestError::PoolKind { pool: index, kind, version });
                }
                RequestMemoryPool::Memory(memory) => memories.push(memory),
                // No buffer has been allocated, so no token stands for one.
                RequestMemoryPool::Token(token) => {
                    return Err(RequestError::UnknownToken { pool: index, token: *token });
                }
            }
        }
        let written = vec![false; memories.len()];
        Ok(Self { memories, written })
    }

    /// The part of a pool that an argument names (contract: REQ-3, REQ-4).
    fn region(&self, subject: Subject, argument: &RequestArgument) -> Result<Region, RequestError> {
        let location = argument.location;
        let index = location.pool_index as usize;
        let Some(memory) = self.memories.get(index) else {
            let pools = self.memories.len();
            return Err(RequestError::NoSuchPool { subject, found: location.pool_index, pools });
        };
        if location.length == 0 {
            return Err(RequestError::NoBytes { subject });
        }
        let (end, size) = (location.end(), memory.size());
        if end > size {
            return Err(RequestError::OutsidePool { subject, end, size });
        }
        let view = memory.view().map_err(|error| RequestError::Memory { pool: index, error })?;
        Ok(Region::new(view, u64::from(location.offset), u64::from(location.length)))
    }

    /// The same for an output (contract: REQ-12).
    fn writable_region(
        &mut self,
        subject: Subject,
        argument: &RequestArgument,
    ) -> Result<Region, RequestError> {
        let region = self.region(subject, argument)?;
        let pool = argument.location.pool_index;
        if !region.view().is_writable() {
            return Err(RequestError::ReadOnly { subject, pool });
        }
        self.written[pool as usize] = true;
        Ok(region)
    }

    /// Views of the memory that outputs lie in.
    fn written(&self) -> Vec<MemoryView> {
        let written = self.memories.iter().zip(&self.written).filter(|(_, written)| **written);
        written.filter_map(|(memory, _)| memory.view().ok()).collect()
    }
}

#[cfg(test)]
mod tests;
