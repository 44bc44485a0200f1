//! [`MqDescriptor`]: what is sent to the other side so that it can open a queue, and the check of
//! one that came from a stranger.

use super::error::QueueError;
use std::ops::Range;
use std::os::fd::OwnedFd;

/// The most data that a queue may hold here. Android's own client makes queues of 1024. A reader
/// copies out as much as the counters say, so the limit bounds what a stranger can make us allocate
/// (contract: SEC-3).
pub const MAXIMUM_CAPACITY: usize = 1 << 18;

/// `MQDescriptor`: the descriptors of a queue's memory, and the places of the parts in it.
#[derive(Debug)]
pub struct MqDescriptor {
    /// The descriptors of its handle.
    pub files: Vec<OwnedFd>,
    /// The parts: read counter, write counter, ring, and, if there is one, the event flag.
    pub grantors: Vec<Grantor>,
    /// Bytes of a datum.
    pub quantum: u32,
    /// 1: a synchronized queue, the only kind that is known here.
    pub flags: u32,
}

impl MqDescriptor {
    /// The flags of a synchronized queue: one reader, and nothing is overwritten that it has not
    /// read.
    pub const SYNCHRONIZED: u32 = 1;
}

/// `GrantorDescriptor`: a part of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Grantor {
    /// Means nothing; 0.
    pub flags: u32,
    /// Which of the descriptors it is in.
    pub file: u32,
    /// Its first byte there.
    pub offset: u32,
    /// How many bytes it has.
    pub extent: u64,
}

/// A part of a queue that was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) file: usize,
    /// A multiple of 8.
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

impl Part {
    /// The bytes it takes; offset and size are below 2^32 and 2^33.
    pub(super) fn range(self) -> Range<u64> {
        self.offset..self.offset + self.bytes
    }
}

/// The places of a queue's parts: aligned, of the right size, disjoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) read_counter: Part,
    pub(super) write_counter: Part,
    pub(super) ring: Part,
    pub(super) event_flag: Option<Part>,
}

/// Names of the parts, in the order of grantors.
const NAMES: [&str; 4] = ["read counter", "write counter", "ring", "event flag"];
const COUNTER_BYTES: u64 = 8;
const EVENT_FLAG_BYTES: u64 = 4;

impl Layout {
    /// The layout of a new queue: one part after the other in one file.
    pub(super) fn of_new(ring_bytes: u64) -> Self {
        let part = |offset, bytes| Part { file: 0, offset, bytes };
        let ring = part(2 * COUNTER_BYTES, ring_bytes);
        let after_ring = ring.range().end.next_multiple_of(8);
        Self {
            read_counter: part(0, COUNTER_BYTES),
            write_counter: part(COUNTER_BYTES, COUNTER_BYTES),
            ring,
            event_flag: Some(part(after_ring, EVENT_FLAG_BYTES)),
        }
    }

    /// Checks the places that a stranger gives for the parts, in `files` descriptors, with data of
    /// `quantum` bytes. Whether the files are that long is not checked here.
    pub(super) fn check(
        grantors: &[Grantor],
        files: usize,
        quantum: usize,
    ) -> Result<Self, QueueError> {
        let (parts, event_flag) = match grantors {
            [parts @ .., event_flag] if parts.len() == 3 => (parts, Some(event_flag)),
            parts => (parts, None),
        };
        let [read_counter, write_counter, ring] = parts else {
            return Err(QueueError::Grantors { found: grantors.len() });
        };
        let most = MAXIMUM_CAPACITY;
        let whole = ring.extent.is_multiple_of(quantum as u64);
        if !whole || ring.extent == 0 || ring.extent > (most * quantum) as u64 {
            return Err(QueueError::Capacity { bytes: ring.extent, quantum, most });
        }
        let part = |index: usize, grantor: &Grantor, expected| {
            check_part(NAMES[index], grantor, files, expected)
        };
        let layout = Self {
            read_counter: part(0, read_counter, COUNTER_BYTES)?,
            write_counter: part(1, write_counter, COUNTER_BYTES)?,
            ring: part(2, ring, ring.extent)?,
            event_flag: event_flag.map(|flag| part(3, flag, EVENT_FLAG_BYTES)).transpose()?,
        };
        layout.check_disjoint()?;
        Ok(layout)
    }

    /// The parts with their names.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&'static str, Part)> {
        let parts = [self.read_counter, self.write_counter, self.ring];
        NAMES.into_iter().zip(parts.into_iter().chain(self.event_flag))
    }

    /// Refuses parts that share bytes of one file.
    fn check_disjoint(&self) -> Result<(), QueueError> {
        for (index, (second, part)) in self.parts().enumerate() {
            for (first, other) in self.parts().take(index) {
                let (here, there) = (part.range(), other.range());
                if part.file == other.file && here.start < there.end && there.start < here.end {
                    return Err(QueueError::Overlap { first, second });
                }
            }
        }
        Ok(())
    }

    /// The parts as they are written for the other side.
    pub(super) fn grantors(&self) -> Vec<Grantor> {
        self.parts()
            .map(|(_, part)| Grantor {
                flags: 0,
                // Both came from 32 bits, or are those of a new queue, which is small.
                file: u32::try_from(part.file).unwrap_or(u32::MAX),
                offset: u32::try_from(part.offset).unwrap_or(u32::MAX),
                extent: part.bytes,
            })
            .collect()
    }
}

fn check_part(
    part: &'static str,
    grantor: &Grantor,
    files: usize,
    expected: u64,
) -> Result<Part, QueueError> {
    let Grantor { file: index, offset, extent, .. } = *grantor;
    if extent != expected {
        return Err(QueueError::Extent { part, found: extent, expected });
    }
    if !offset.is_multiple_of(8) {
        return Err(QueueError::Alignment { part, offset });
    }
    match usize::try_from(index) {
        Ok(file) if file < files => Ok(Part { file, offset: u64::from(offset), bytes: extent }),
        _ => Err(QueueError::File { part, index, count: files }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUANTUM: usize = 24;

    fn grantors() -> Vec<Grantor> {
        Layout::of_new(1024 * 24).grantors()
    }

    fn changed(change: impl FnOnce(&mut Vec<Grantor>)) -> Result<Layout, QueueError> {
        let mut grantors = grantors();
        change(&mut grantors);
        Layout::check(&grantors, 1, QUANTUM)
    }

    /// The numbers that libfmq gives for a queue of 1024 requests.
    #[test]
    fn a_new_queue_has_the_layout_of_libfmq() {
        let found: Vec<_> = grantors().iter().map(|part| (part.offset, part.extent)).collect();
        assert_eq!(found, [(0, 8), (8, 8), (16, 24576), (24592, 4)]);
        assert_eq!(Layout::check(&grantors(), 1, QUANTUM), Ok(Layout::of_new(24576)));
    }

    #[test]
    fn the_order_in_memory_is_free() {
        let moved = changed(|parts| {
            parts[3].offset = 0;
            parts[0].offset = 8;
            parts[1].offset = 24592;
        });
        assert!(moved.is_ok(), "{moved:?}");
        assert_eq!(changed(|parts| parts.truncate(3)).unwrap().event_flag, None);
    }

    #[test]
    fn burst_1_parts_that_make_no_queue_are_refused() {
        let refused = |expected: QueueError, change: fn(&mut Vec<Grantor>)| {
            assert_eq!(changed(change), Err(expected));
        };
        let overlap = |first, second| QueueError::Overlap { first, second };
        let capacity =
            |bytes| QueueError::Capacity { bytes, quantum: QUANTUM, most: MAXIMUM_CAPACITY };
        refused(QueueError::Grantors { found: 0 }, Vec::clear);
        refused(QueueError::Grantors { found: 2 }, |parts| parts.truncate(2));
        refused(QueueError::Grantors { found: 5 }, |parts| parts.push(parts[3]));
        refused(capacity(0), |parts| parts[2].extent = 0);
        refused(capacity(25), |parts| parts[2].extent = 25);
        refused(capacity(u64::MAX - 15), |parts| parts[2].extent = u64::MAX - 15);
        let extent = |part, found, expected| QueueError::Extent { part, found, expected };
        refused(extent("read counter", 4, 8), |parts| parts[0].extent = 4);
        refused(extent("write counter", u64::MAX, 8), |parts| parts[1].extent = u64::MAX);
        refused(extent("event flag", 8, 4), |parts| parts[3].extent = 8);
        let alignment = |part, offset| QueueError::Alignment { part, offset };
        refused(alignment("write counter", 12), |parts| parts[1].offset = 12);
        refused(alignment("ring", u32::MAX), |parts| parts[2].offset = u32::MAX);
        let file = |part, index| QueueError::File { part, index, count: 1 };
        refused(file("ring", 1), |parts| parts[2].file = 1);
        refused(file("event flag", u32::MAX), |parts| parts[3].file = u32::MAX);
        refused(overlap("read counter", "write counter"), |parts| parts[1].offset = 0);
        refused(overlap("write counter", "ring"), |parts| parts[2].offset = 8);
        refused(overlap("ring", "event flag"), |parts| parts[3].offset = 24584);
        refused(overlap("read counter", "event flag"), |parts| parts[3].offset = 0);
    }

    #[test]
    fn parts_in_different_files_do_not_overlap() {
        let mut grantors = grantors();
        grantors[1].offset = 0;
        grantors[1].file = 1;
        assert!(Layout::check(&grantors, 2, QUANTUM).is_ok());
    }
}
