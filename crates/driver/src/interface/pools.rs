//! [`Pools`]: the memory that a request's arguments are in (contract: REQ-3 to REQ-5, section 14).

use super::error::{RequestError, Subject};
use crate::bindings::Region;
use crate::buffers::tokens::KeptBuffers;
use crate::buffers::{ManagedBuffer, Role};
use crate::owner::Owner;
use nnhal_hal::memory::MemoryView;
use nnhal_hal::{DataLocation, HalVersion, Memory, RequestArgument, RequestMemoryPool};
use nnhal_ops::Shape;
use std::sync::Arc;

/// The pools of a request, and what has been bound of them.
pub(super) struct Pools<'a> {
    pools: Vec<Pool<'a>>,
    /// For each pool whether an output is in it.
    written: Vec<bool>,
    buffers: Vec<Arc<ManagedBuffer>>,
}

/// The place of an argument.
#[derive(Debug, Clone)]
pub(super) enum Pool<'a> {
    /// In shared memory.
    Memory(&'a Memory),
    /// In a buffer that the driver manages.
    Buffer(Arc<ManagedBuffer>),
}

impl<'a> Pools<'a> {
    /// Checks every pool, used or not (contract: REQ-10, DBUF-1).
    pub(super) fn new(
        pools: &'a [RequestMemoryPool],
        version: HalVersion,
        owner: &Owner,
        kept: &KeptBuffers,
    ) -> Result<Self, RequestError> {
        let check = |(index, pool): (usize, &'a RequestMemoryPool)| match pool {
            RequestMemoryPool::Memory(memory) if memory.kind().since() > version => {
                Err(RequestError::PoolKind { pool: index, kind: memory.kind(), version })
            }
            RequestMemoryPool::Memory(memory) => Ok(Pool::Memory(memory)),
            RequestMemoryPool::Token(token) => kept
                .find(*token, owner)
                .map(Pool::Buffer)
                .ok_or(RequestError::UnknownToken { pool: index, token: *token }),
        };
        let pools = pools.iter().enumerate().map(check).collect::<Result<Vec<_>, _>>()?;
        let written = vec![false; pools.len()];
        Ok(Self { pools, written, buffers: Vec::new() })
    }

    /// The pool that an argument names (contract: REQ-3).
    pub(super) fn of(
        &self,
        subject: Subject,
        argument: &RequestArgument,
    ) -> Result<Pool<'a>, RequestError> {
        let found = argument.location.pool_index;
        let pool = self.pools.get(found as usize).cloned();
        pool.ok_or(RequestError::NoSuchPool { subject, found, pools: self.pools.len() })
    }

    /// The part of shared memory that an argument names (contract: REQ-3, REQ-4).
    pub(super) fn region(
        subject: Subject,
        location: DataLocation,
        memory: &Memory,
    ) -> Result<Region, RequestError> {
        if location.length == 0 {
            return Err(RequestError::NoBytes { subject });
        }
        let (end, size) = (location.end(), memory.size());
        if end > size {
            return Err(RequestError::OutsidePool { subject, end, size });
        }
        let pool = location.pool_index as usize;
        let view = memory.view().map_err(|error| RequestError::Memory { pool, error })?;
        Ok(Region::new(view, u64::from(location.offset), u64::from(location.length)))
    }

    /// The same for an output (contract: REQ-12).
    pub(super) fn writable_region(
        &mut self,
        subject: Subject,
        location: DataLocation,
        memory: &Memory,
    ) -> Result<Region, RequestError> {
        let region = Self::region(subject, location, memory)?;
        let pool = location.pool_index;
        if !region.view().is_writable() {
            return Err(RequestError::ReadOnly { subject, pool });
        }
        self.written[pool as usize] = true;
        Ok(region)
    }

    /// The value that a buffer holds, with its dimensions; `None` for an execution that still waits
    /// (`may_wait`): what the buffer holds now, if anything, is not what will be read. `shape` is
    /// what model and request say (contract: DBUF-2 to DBUF-4).
    pub(super) fn read_buffer(
        &mut self,
        subject: Subject,
        argument: &RequestArgument,
        buffer: Arc<ManagedBuffer>,
        role: Role,
        shape: &Shape,
        may_wait: bool,
    ) -> Result<Option<(Shape, Region)>, RequestError> {
        expect_whole_and_role(subject, argument, &buffer, role)?;
        self.buffers.push(Arc::clone(&buffer));
        if may_wait {
            // No value will ever contradict the dimensions that it was allocated with.
            let expected = buffer.shape().clone();
            return match shape.merge(&expected) {
                Some(_) => Ok(None),
                None => Err(RequestError::BufferShape { subject, found: shape.clone(), expected }),
            };
        }
        let value = buffer.content().and_then(|content| {
            let size = buffer.byte_size(&content.dimensions)?;
            Some((content, size))
        });
        let token = buffer.token();
        let (content, size) = value.ok_or(RequestError::Uninitialized { subject, token })?;
        let expected = Shape::known(content.dimensions.iter().copied());
        if shape.merge(&expected).is_none() {
            return Err(RequestError::BufferShape { subject, found: shape.clone(), expected });
        }
        let pool = argument.location.pool_index as usize;
        let view =
            content.storage.memory.view().map_err(|error| RequestError::Memory { pool, error })?;
        Ok(Some((expected, Region::new(view, 0, size))))
    }

    /// Checks a buffer that is to be written, and returns what is known of its value's shape
    /// (contract: DBUF-2, DBUF-5, DBUF-6).
    pub(super) fn write_buffer(
        &mut self,
        subject: Subject,
        argument: &RequestArgument,
        buffer: &Arc<ManagedBuffer>,
        role: Role,
        shape: &Shape,
    ) -> Result<Shape, RequestError> {
        if self.buffers.iter().any(|used| Arc::ptr_eq(used, buffer)) {
            return Err(RequestError::Shared { subject, token: buffer.token() });
        }
        expect_whole_and_role(subject, argument, buffer, role)?;
        let expected = buffer.shape().clone();
        let combined = shape.merge(&expected);
        self.buffers.push(Arc::clone(buffer));
        combined.ok_or(RequestError::BufferShape { subject, found: shape.clone(), expected })
    }

    /// Views of the memory that outputs are in.
    pub(super) fn written(&self) -> Vec<MemoryView> {
        let written = self.pools.iter().zip(&self.written).filter(|(_, written)| **written);
        let views = written.filter_map(|(pool, _)| match pool {
            Pool::Memory(memory) => memory.view().ok(),
            Pool::Buffer(_) => None,
        });
        views.collect()
    }
}

/// A buffer is used as a whole (contract: REQ-5), and as what it was allocated for (DBUF-2).
fn expect_whole_and_role(
    subject: Subject,
    argument: &RequestArgument,
    buffer: &ManagedBuffer,
    role: Role,
) -> Result<(), RequestError> {
    let DataLocation { offset, length, .. } = argument.location;
    if (offset, length) != (0, 0) {
        return Err(RequestError::PartOfBuffer { subject, offset, length });
    }
    if !buffer.has_role(role) {
        return Err(RequestError::NoSuchRole { subject, token: buffer.token() });
    }
    Ok(())
}
