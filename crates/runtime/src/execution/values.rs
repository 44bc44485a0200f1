//! Moving values from one memory to another.

use crate::error::{Error, Result};
use crate::memory::{allocate, copy_of, memory_error};
use crate::operand::byte_size;
use crate::partition::plan::{Plan, Slot};
use crate::partition::value::{Place, Pool, Value};
use nnhal_hal::OutputShape;

/// New memory of `capacity` bytes; a value without elements gets a byte, as requests demand.
pub(super) fn new_place(capacity: u32) -> Result<Place> {
    let length = capacity.max(1);
    let memory = allocate(u64::from(length))?;
    Ok(Place { pool: Pool::Shared(memory), offset: 0, length })
}

pub(super) fn shape_of(value: &Value) -> OutputShape {
    let dimensions = match value {
        Value::Omitted => Vec::new(),
        Value::At { dimensions, .. } => dimensions.clone(),
    };
    OutputShape { dimensions, is_sufficient: true }
}

/// What a condition says.
pub(super) fn truth(condition: &Value) -> Result<bool> {
    let Value::At { place: Place { pool: Pool::Shared(memory), offset, .. }, .. } = condition
    else {
        return Err(Error::failed("a condition is left out"));
    };
    let mut byte = [0];
    let view = memory.view().map_err(memory_error)?;
    view.read(u64::from(*offset), &mut byte).map_err(memory_error)?;
    Ok(byte != [0])
}

/// The value in memory that all devices can reach: itself, or a copy of what a buffer holds.
pub(super) fn in_shared_memory(plan: &Plan, slot: &Slot, value: &Value) -> Result<Value> {
    let Value::At { place: Place { pool: Pool::Buffer(buffer), .. }, dimensions } = value else {
        return Ok(value.clone());
    };
    let size = byte_size(plan.model.devices(), slot.operand.operand_type, dimensions);
    let size = size.ok_or_else(|| Error::failed("a buffer's value is of unknown size"))?;
    let place = new_place(size)?;
    if let Pool::Shared(memory) = &place.pool {
        buffer.copy_to(memory)?;
    }
    Ok(Value::At { place, dimensions: dimensions.clone() })
}

/// The bytes of a value in shared memory.
fn bytes_of(value: &Value) -> Result<Vec<u8>> {
    let Value::At { place, dimensions } = value else { return Ok(Vec::new()) };
    let Pool::Shared(memory) = &place.pool else {
        return Err(Error::failed("a value is in a device's buffer"));
    };
    if dimensions.contains(&0) {
        return Ok(Vec::new());
    }
    let view = memory.view().map_err(memory_error)?;
    view.read_to_vec(u64::from(place.offset), u64::from(place.length)).map_err(memory_error)
}

/// The value in memory of its own.
pub(super) fn copy_out(value: &Value) -> Result<Value> {
    let Value::At { dimensions, .. } = value else { return Ok(Value::Omitted) };
    let bytes = bytes_of(value)?;
    let mut place = new_place(u32::try_from(bytes.len()).unwrap_or(u32::MAX))?;
    if let Pool::Shared(memory) = &place.pool {
        memory.view().and_then(|view| view.write(0, &bytes)).map_err(memory_error)?;
    }
    place.length = u32::try_from(bytes.len().max(1)).unwrap_or(u32::MAX);
    Ok(Value::At { place, dimensions: dimensions.clone() })
}

/// Copies a value to a place, if there is room enough.
pub(super) fn copy_into(value: &Value, place: &Place) -> Result<bool> {
    let bytes = bytes_of(value)?;
    match &place.pool {
        Pool::Shared(memory) => {
            if bytes.len() as u64 > u64::from(place.length) {
                return Ok(false);
            }
            let view = memory.view().map_err(memory_error)?;
            view.write(u64::from(place.offset), &bytes).map_err(memory_error)?;
        }
        Pool::Buffer(buffer) => {
            let Value::At { dimensions, .. } = value else { return Ok(true) };
            let memory = copy_of(&bytes)?;
            buffer.copy_from(&memory, dimensions)?;
        }
    }
    Ok(true)
}
