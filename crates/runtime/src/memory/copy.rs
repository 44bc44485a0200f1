//! Copying memory into memory.

use super::{Backing, Memory, memory_error};
use crate::error::{Error, Result};
use crate::operand::combine_dimensions;
use nnhal_hal::Memory as SharedMemory;
use std::sync::Arc;

/// Bytes that go through this process at a time.
const PORTION: u64 = 1 << 16;

/// See [`Memory::copy`].
pub(super) fn copy(source: &Memory, destination: &Memory) -> Result<()> {
    if Arc::ptr_eq(&source.0, &destination.0) {
        return Ok(());
    }
    let copied = value_of(source).and_then(|dimensions| {
        expect_alike(source, destination, &dimensions)?;
        copy_bytes(source, destination, &dimensions)?;
        Ok(dimensions)
    });
    match copied {
        Ok(dimensions) => destination.settle(Some(&dimensions)),
        Err(error) => {
            // Whatever it held, it holds no longer.
            destination.settle(None)?;
            Err(error)
        }
    }
}

/// The dimensions of the value that the source holds; none for plain memory.
fn value_of(source: &Memory) -> Result<Vec<u32>> {
    let Some(opaque) = &source.0.opaque else { return Ok(Vec::new()) };
    let content = opaque.lock();
    if !content.initialized {
        return Err(Error::bad_data("the source holds no value"));
    }
    Ok(content.dimensions.clone())
}

/// What is known of both must agree.
fn expect_alike(source: &Memory, destination: &Memory, dimensions: &[u32]) -> Result<()> {
    let Some(into) = &destination.0.opaque else { return Ok(()) };
    if let Some(from) = &source.0.opaque
        && from.operand != into.operand
    {
        return Err(Error::bad_data("the memories are made for operands of different types"));
    }
    if combine_dimensions(dimensions, &into.dimensions).is_none() {
        return Err(Error::bad_data(format!(
            "the value has dimensions {dimensions:?}, the destination {:?}",
            into.dimensions
        )));
    }
    Ok(())
}

fn copy_bytes(source: &Memory, destination: &Memory, dimensions: &[u32]) -> Result<()> {
    let kind = source.0.opaque.as_ref().map(|opaque| &opaque.operand);
    match (&source.0.backing, &destination.0.backing) {
        (Backing::Shared(source), Backing::Shared(destination)) => copy_shared(source, destination),
        (Backing::Shared(source), Backing::Buffer(destination)) => {
            Ok(destination.copy_from(source, dimensions)?)
        }
        (Backing::Buffer(source), Backing::Shared(destination)) => Ok(source.copy_to(destination)?),
        (Backing::Buffer(source), Backing::Buffer(destination)) => {
            // Each device knows only its own buffers.
            let size = kind.and_then(|kind| kind.byte_size(dimensions));
            let size = size.ok_or_else(|| Error::failed("a buffer's value is of unknown size"))?;
            let between = super::allocate(u64::from(size))?;
            source.copy_to(&between)?;
            Ok(destination.copy_from(&between, dimensions)?)
        }
    }
}

/// Copies all bytes; both must have the same number.
fn copy_shared(source: &SharedMemory, destination: &SharedMemory) -> Result<()> {
    if source.size() != destination.size() {
        return Err(Error::bad_data(format!(
            "{} bytes do not fit into {} bytes exactly",
            source.size(),
            destination.size()
        )));
    }
    let from = source.view().map_err(memory_error)?;
    let to = destination.view().map_err(memory_error)?;
    let mut bytes = Vec::new();
    let mut at = 0;
    while at < source.size() {
        let count = PORTION.min(source.size() - at);
        bytes.resize(usize::try_from(count).unwrap_or(0), 0);
        from.read(at, &mut bytes).map_err(memory_error)?;
        to.write(at, &bytes).map_err(memory_error)?;
        at += count;
    }
    Ok(())
}
