//! Requests, and the roles of buffers.

use super::model::{location_from_wire, location_to_wire};
use super::{
    ConversionError, Result, all_signed, all_unsigned, memory_from_wire, memory_to_wire, signed,
    unsigned,
};
use crate::interface::nn;
use nn::BufferRole::BufferRole as WireRole;
use nn::Request::Request as Wire;
use nn::RequestArgument::RequestArgument as WireArgument;
use nn::RequestMemoryPool::RequestMemoryPool as WirePool;
use nnhal_hal::{BufferRole, Memory, Request, RequestArgument, RequestMemoryPool};

fn argument_from_wire(argument: &WireArgument) -> Result<RequestArgument> {
    Ok(RequestArgument {
        has_no_value: argument.hasNoValue,
        location: location_from_wire(&argument.location)?,
        dimensions: all_unsigned("a dimension", &argument.dimensions)?,
    })
}

fn argument_to_wire(argument: &RequestArgument) -> Result<WireArgument> {
    Ok(WireArgument {
        hasNoValue: argument.has_no_value,
        location: location_to_wire(&argument.location)?,
        dimensions: all_signed("a dimension", &argument.dimensions)?,
    })
}

/// Padding belongs to the region that an argument may use, so it has to be in the pool. What is left out, or in a managed buffer,
/// has none (`RequestArgument.aidl`).
fn expect_padding(arguments: &[WireArgument], pools: &[RequestMemoryPool]) -> Result<()> {
    for (argument, WireArgument { location, hasNoValue, .. }) in arguments.iter().enumerate() {
        let pool = usize::try_from(location.poolIndex).ok().and_then(|index| pools.get(index));
        let is_managed = matches!(pool, Some(RequestMemoryPool::Token(_)));
        if (*hasNoValue || is_managed) && location.padding != 0 {
            return Err(ConversionError::Unpadded(location.padding));
        }
        let (Some(RequestMemoryPool::Memory(memory)), 1..) = (pool, location.padding) else {
            continue;
        };
        let end = location.offset.saturating_add(location.length).saturating_add(location.padding);
        let size = memory.size();
        if u64::try_from(end).is_ok_and(|end| end > size) {
            return Err(ConversionError::Padding { argument, end, size });
        }
    }
    Ok(())
}

/// A request from the wire, with descriptors of its own. `pool` makes a [`Memory`] of a pool of that
/// index, or gives one that it has already.
///
/// # Errors
/// Numbers that are negative or too large, and pools that cannot be used.
pub fn request_from_wire(
    request: &Wire,
    mut pool: impl FnMut(usize, &nn::Memory::Memory) -> Result<Memory>,
) -> Result<Request> {
    let pools = request.pools.iter().enumerate();
    let pools: Vec<RequestMemoryPool> = pools
        .map(|(index, found)| {
            Ok(match found {
                WirePool::Pool(memory) => {
                    let memory = pool(index, memory).map_err(|error| ConversionError::Pool {
                        pool: index,
                        error: Box::new(error),
                    })?;
                    RequestMemoryPool::Memory(memory)
                }
                WirePool::Token(token) => RequestMemoryPool::Token(unsigned("a token", *token)?),
            })
        })
        .collect::<Result<_>>()?;
    expect_padding(&request.inputs, &pools)?;
    expect_padding(&request.outputs, &pools)?;
    Ok(Request {
        inputs: request.inputs.iter().map(argument_from_wire).collect::<Result<_>>()?,
        outputs: request.outputs.iter().map(argument_from_wire).collect::<Result<_>>()?,
        pools,
    })
}

/// As [`request_from_wire`], with memory of its own for each pool.
pub(crate) fn request_alone(request: &Wire) -> Result<Request> {
    request_from_wire(request, |_, memory| memory_from_wire(memory))
}

/// A request for the wire, with descriptors of its own.
///
/// # Errors
/// What the interface cannot express: numbers above 31 bits.
pub fn request_to_wire(request: &Request) -> Result<Wire> {
    let pool = |pool: &RequestMemoryPool| {
        Ok(match pool {
            RequestMemoryPool::Memory(memory) => WirePool::Pool(memory_to_wire(memory)?),
            RequestMemoryPool::Token(token) => WirePool::Token(signed("a token", *token)?),
        })
    };
    Ok(Wire {
        inputs: request.inputs.iter().map(argument_to_wire).collect::<Result<_>>()?,
        outputs: request.outputs.iter().map(argument_to_wire).collect::<Result<_>>()?,
        pools: request.pools.iter().map(pool).collect::<Result<_>>()?,
    })
}

/// Roles from the wire.
///
/// # Errors
/// Negative indexes.
pub fn roles_from_wire(roles: &[WireRole]) -> Result<Vec<BufferRole>> {
    let role = |role: &WireRole| {
        Ok(BufferRole {
            model_index: unsigned("the index of a prepared model", role.modelIndex)?,
            io_index: unsigned("the index of an input or output", role.ioIndex)?,
            frequency: role.probability,
        })
    };
    roles.iter().map(role).collect()
}

/// Roles for the wire.
///
/// # Errors
/// Indexes above 31 bits.
pub fn roles_to_wire(roles: &[BufferRole]) -> Result<Vec<WireRole>> {
    let role = |role: &BufferRole| {
        Ok(WireRole {
            modelIndex: signed("the index of a prepared model", role.model_index)?,
            ioIndex: signed("the index of an input or output", role.io_index)?,
            probability: role.frequency,
        })
    };
    roles.iter().map(role).collect()
}
