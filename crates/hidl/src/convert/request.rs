//! Requests, and the times that come with them.

use super::memory::pools_to_canonical;
use super::{ConversionError, Convert, all_from_canonical, all_to_canonical};
use crate::{v1_0, v1_3};
use nnhal_hal::{Deadline, HalVersion, Model, Obstacle, Request, RequestMemoryPool};
use std::time::Duration;

impl Convert for v1_0::RequestArgument {
    type Canonical = nnhal_hal::RequestArgument;

    fn to_canonical(&self) -> Result<nnhal_hal::RequestArgument, ConversionError> {
        Ok(nnhal_hal::RequestArgument {
            has_no_value: self.has_no_value,
            location: self.location.to_canonical()?,
            dimensions: self.dimensions.clone(),
        })
    }

    fn from_canonical(argument: &nnhal_hal::RequestArgument) -> Result<Self, ConversionError> {
        Ok(Self {
            has_no_value: argument.has_no_value,
            location: Convert::from_canonical(&argument.location)?,
            dimensions: argument.dimensions.clone(),
        })
    }
}

/// The request of 1.0 to 1.2, with the kinds of memory that 1.2 has. For an older method ask
/// [`Request::obstacles_in`] about them.
impl Convert for v1_0::Request {
    type Canonical = Request;

    fn to_canonical(&self) -> Result<Request, ConversionError> {
        let pools = pools_to_canonical(&self.pools)?;
        Ok(Request {
            inputs: all_to_canonical(&self.inputs)?,
            outputs: all_to_canonical(&self.outputs)?,
            pools: pools.into_iter().map(RequestMemoryPool::Memory).collect(),
        })
    }

    fn from_canonical(request: &Request) -> Result<Self, ConversionError> {
        let pools = request.pools.iter().enumerate().map(|(pool, memory)| match memory {
            RequestMemoryPool::Memory(memory) => Convert::from_canonical(memory),
            RequestMemoryPool::Token(_) => Err(ConversionError::Inexpressible {
                version: HalVersion::V1_2,
                obstacles: vec![Obstacle::Token { pool }],
            }),
        });
        Ok(Self {
            inputs: all_from_canonical(&request.inputs)?,
            outputs: all_from_canonical(&request.outputs)?,
            pools: pools.collect::<Result<_, _>>()?,
        })
    }
}

impl Convert for v1_3::MemoryPool {
    type Canonical = RequestMemoryPool;

    fn to_canonical(&self) -> Result<RequestMemoryPool, ConversionError> {
        match self {
            Self::HidlMemory(memory) => Ok(RequestMemoryPool::Memory(memory.to_canonical()?)),
            Self::Token(token) => Ok(RequestMemoryPool::Token(*token)),
            Self::Unknown { tag } => {
                Err(ConversionError::UnknownTag { union: "Request::MemoryPool", found: *tag })
            }
        }
    }

    fn from_canonical(pool: &RequestMemoryPool) -> Result<Self, ConversionError> {
        Ok(match pool {
            RequestMemoryPool::Memory(memory) => Self::HidlMemory(Convert::from_canonical(memory)?),
            RequestMemoryPool::Token(token) => Self::Token(*token),
        })
    }
}

impl Convert for v1_3::Request {
    type Canonical = Request;

    fn to_canonical(&self) -> Result<Request, ConversionError> {
        let pools = self.pools.iter().enumerate();
        Ok(Request {
            inputs: all_to_canonical(&self.inputs)?,
            outputs: all_to_canonical(&self.outputs)?,
            pools: pools
                .map(|(index, pool)| pool.to_canonical().map_err(|error| error.of_pool(index)))
                .collect::<Result<_, _>>()?,
        })
    }

    fn from_canonical(request: &Request) -> Result<Self, ConversionError> {
        Ok(Self {
            inputs: all_from_canonical(&request.inputs)?,
            outputs: all_from_canonical(&request.outputs)?,
            pools: all_from_canonical(&request.pools)?,
        })
    }
}

/// Refuses a request with anything that the version does not have, whatever the model.
pub(crate) fn expect_expressible(
    request: &Request,
    version: HalVersion,
) -> Result<(), ConversionError> {
    let any_model = Model::default();
    ConversionError::expect_none(version, request.obstacles_in(version, &any_model))
}

impl Convert for v1_3::OptionalTimePoint {
    type Canonical = Option<Deadline>;

    fn to_canonical(&self) -> Result<Option<Deadline>, ConversionError> {
        match *self {
            Self::None => Ok(None),
            Self::NanosecondsSinceEpoch(nanoseconds) => {
                Ok(Some(Deadline::from_nanoseconds_since_epoch(nanoseconds)))
            }
            Self::Unknown { tag } => {
                Err(ConversionError::UnknownTag { union: "OptionalTimePoint", found: tag })
            }
        }
    }

    fn from_canonical(deadline: &Option<Deadline>) -> Result<Self, ConversionError> {
        Ok(deadline.map_or(Self::None, |deadline| {
            Self::NanosecondsSinceEpoch(deadline.nanoseconds_since_epoch())
        }))
    }
}

/// A duration of more nanoseconds than 64 bits can count is [`u64::MAX`] of them: 584 years.
impl Convert for v1_3::OptionalTimeoutDuration {
    type Canonical = Option<Duration>;

    fn to_canonical(&self) -> Result<Option<Duration>, ConversionError> {
        match *self {
            Self::None => Ok(None),
            Self::Nanoseconds(nanoseconds) => Ok(Some(Duration::from_nanos(nanoseconds))),
            Self::Unknown { tag } => {
                Err(ConversionError::UnknownTag { union: "OptionalTimeoutDuration", found: tag })
            }
        }
    }

    fn from_canonical(duration: &Option<Duration>) -> Result<Self, ConversionError> {
        Ok(duration.map_or(Self::None, |duration| {
            Self::Nanoseconds(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
        }))
    }
}

impl Convert for v1_3::BufferRole {
    type Canonical = nnhal_hal::BufferRole;

    fn to_canonical(&self) -> Result<nnhal_hal::BufferRole, ConversionError> {
        let Self { model_index, io_index, frequency } = *self;
        Ok(nnhal_hal::BufferRole { model_index, io_index, frequency })
    }

    fn from_canonical(role: &nnhal_hal::BufferRole) -> Result<Self, ConversionError> {
        let nnhal_hal::BufferRole { model_index, io_index, frequency } = *role;
        Ok(Self { model_index, io_index, frequency })
    }
}
