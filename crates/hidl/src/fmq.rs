//! [`MQDescriptor`]: a fast message queue as HIDL passes it. What the queues are is in [`nnhal_burst`].

use crate::handle::Handle;
use nnhal_burst::MqDescriptor;
use nnhal_burst::queue::Grantor;
use std::io;

/// A part of a queue: a counter, the ring, the event flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GrantorDescriptor {
    /// Means nothing.
    pub flags: u32,
    /// Which descriptor of the handle it is in.
    pub fd_index: u32,
    /// Its first byte there.
    pub offset: u32,
    /// How many bytes it has.
    pub extent: u64,
}

/// A fast message queue. Nothing in it has been checked. Cloning shares the handle.
#[derive(Debug, Clone, Default)]
pub struct MQDescriptor {
    /// The parts: read counter, write counter, ring, event flag.
    pub grantors: Vec<GrantorDescriptor>,
    /// The memory they are in.
    pub handle: Handle,
    /// Bytes of a datum.
    pub quantum: u32,
    /// The kind of queue.
    pub flags: u32,
}

impl MQDescriptor {
    /// The queue with descriptors of its own: what is passed is lent for the call.
    ///
    /// # Errors
    /// The system has no descriptor left, or one of them is none.
    pub fn to_burst(&self) -> io::Result<MqDescriptor> {
        let grantor = |part: &GrantorDescriptor| Grantor {
            flags: part.flags,
            file: part.fd_index,
            offset: part.offset,
            extent: part.extent,
        };
        Ok(MqDescriptor {
            files: self.handle.duplicate_fds()?,
            grantors: self.grantors.iter().map(grantor).collect(),
            quantum: self.quantum,
            flags: self.flags,
        })
    }
}

impl From<MqDescriptor> for MQDescriptor {
    fn from(descriptor: MqDescriptor) -> Self {
        let MqDescriptor { files, grantors, quantum, flags } = descriptor;
        let part = |part: &Grantor| GrantorDescriptor {
            flags: part.flags,
            fd_index: part.file,
            offset: part.offset,
            extent: part.extent,
        };
        Self {
            grantors: grantors.iter().map(part).collect(),
            handle: Handle::new(files, Vec::new()),
            quantum,
            flags,
        }
    }
}
