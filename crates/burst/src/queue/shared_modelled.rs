//! [`Shared`] under `loom`: a queue's counters, ring and event flag, not in shared memory, because
//! loom follows only what it made itself.

use super::descriptor::Layout;
use super::error::QueueError;
use super::sync::{AtomicU64, EventWord, RingWord};
use std::os::fd::OwnedFd;

#[derive(Debug)]
pub(super) struct Shared {
    read_counter: AtomicU64,
    write_counter: AtomicU64,
    ring: Box<[RingWord]>,
    event_flag: Option<EventWord>,
}

impl Shared {
    pub(super) fn new(_files: &[OwnedFd], layout: &Layout) -> Result<Self, QueueError> {
        let words = usize::try_from(layout.ring.bytes / 8).unwrap_or(0);
        Ok(Self {
            read_counter: AtomicU64::new(0),
            write_counter: AtomicU64::new(0),
            ring: (0..words).map(|_| RingWord::default()).collect(),
            event_flag: layout.event_flag.map(|_| EventWord::default()),
        })
    }

    pub(super) fn read_counter(&self) -> &AtomicU64 {
        &self.read_counter
    }

    pub(super) fn write_counter(&self) -> &AtomicU64 {
        &self.write_counter
    }

    pub(super) fn event_flag(&self) -> Option<&EventWord> {
        self.event_flag.as_ref()
    }

    pub(super) fn ring(&self) -> &[RingWord] {
        &self.ring
    }
}
