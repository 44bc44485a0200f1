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

/// When what a buffer holds is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// At once.
    Now,
    /// When the fences of an execution have signalled.
    AfterFences,
    /// By executions of a request that is kept.
    Whenever,
}

/// The pools of a request, and what has been bound of them.
pub(super) struct Pools<'a> {
    pools: &'a [RequestMemoryPool],
    /// What the pools that are tokens stand for, by their indexes.
    named: Vec<(usize, Arc<ManagedBuffer>)>,
    /// The memory that outputs are in and that has to be flushed, each once.
    written: Vec<MemoryView>,
    buffers: Vec<Arc<ManagedBuffer>>,
    /// Whether a buffer that a kept request reads holds nothing yet. If that is still so when the request is executed, it is said
    /// before any contradiction between shapes (contract: DBUF-8).
    awaits_value: bool,
}

/// The place of an argument.
#[derive(Debug)]
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
        // Requests of tokens are few: for all others nothing is allocated here.
        let mut named = Vec::new();
        for (index, pool) in pools.iter().enumerate() {
            match pool {
                RequestMemoryPool::Memory(memory) if memory.kind().since() > version => {
                    let kind = memory.kind();
                    return Err(RequestError::PoolKind { pool: index, kind, version });
                }
                RequestMemoryPool::Memory(_) => {}
                RequestMemoryPool::Token(token) => match kept.find(*token, owner) {
                    Some(buffer) => named.push((index, buffer)),
                    None => return Err(RequestError::UnknownToken { pool: index, token: *token }),
                },
            }
        }
        Ok(Self { pools, named, written: Vec::new(), buffers: Vec::new(), awaits_value: false })
    }

    /// The pool that an argument names (contract: REQ-3).
    pub(super) fn of(
        &self,
        subject: Subject,
        argument: &RequestArgument,
    ) -> Result<Pool<'a>, RequestError> {
        let found = argument.location.pool_index;
        let index = found as usize;
        let pool = match self.pools.get(index) {
            Some(RequestMemoryPool::Memory(memory)) => Some(Pool::Memory(memory)),
            Some(RequestMemoryPool::Token(_)) => {
                let named = self.named.binary_search_by_key(&index, |(index, _)| *index);
                named.ok().map(|at| Pool::Buffer(Arc::clone(&self.named[at].1)))
            }
            None => None,
        };
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
        let view = region.view();
        if !view.is_writable() {
            return Err(RequestError::ReadOnly { subject, pool: location.pool_index });
        }
        // Behind what is mapped there is no file.
        if !view.is_mapped() && !self.written.iter().any(|written| written.is_same(view)) {
            self.written.push(view.clone());
        }
        Ok(region)
    }

    /// The value that a buffer holds, with its dimensions; `None` for an execution that still waits: what the buffer holds now, if
    /// anything, is not what will be read. `shape` is what model and request say (contract: DBUF-2 to DBUF-4).
    pub(super) fn read_buffer(
        &mut self,
        subject: Subject,
        argument: &RequestArgument,
        buffer: Arc<ManagedBuffer>,
        role: Role,
        shape: &Shape,
        read: Read,
    ) -> Result<Option<(Shape, Region)>, RequestError> {
        expect_whole_and_role(subject, argument, &buffer, role)?;
        self.buffers.push(Arc::clone(&buffer));
        if read != Read::Now {
            self.awaits_value |= read == Read::Whenever && buffer.content().is_none();
            // No value will ever contradict the dimensions that it was allocated with.
            let expected = buffer.shape().clone();
            return match shape.merge(&expected) {
                Some(_) => Ok(None),
                None if self.awaits_value => Ok(None),
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
        match combined {
            Some(combined) => Ok(combined),
            None if self.awaits_value => Ok(expected),
            None => Err(RequestError::BufferShape { subject, found: shape.clone(), expected }),
        }
    }

    /// The memory that outputs are in and that has to be flushed.
    pub(super) fn into_written(self) -> Vec<MemoryView> {
        self.written
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
