//! [`Reader`] and [`Writer`]: the two ends of a queue.
//!
//! Each end keeps the counter that it alone advances for itself, and only publishes it. The other
//! side's counter is read once for each operation and checked against the ring before it is used,
//! so that no value of either counter makes an end touch anything outside of the ring, or read what
//! it has not been notified of.

use super::any::Armed;
use super::error::QueueError;
use super::event_flag::{self, Interrupt, NOT_EMPTY, NOT_FULL};
use super::shared::Shared;
use super::spin::Spin;
use super::sync::{Ordering, RingWord};
use super::{Datum, MessageQueue};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What both ends have.
#[derive(Debug)]
struct End {
    shared: Arc<Shared>,
    /// Bytes that this end has read, or written, ever.
    position: u64,
    interrupt: Interrupt,
    spin: Spin,
}

impl End {
    /// Waits until `attempt` gives something, and tells it.
    fn wait<T>(
        &mut self,
        timeout: Option<Duration>,
        is_ready: impl Fn(&Self) -> bool,
        mut attempt: impl FnMut(&mut Self) -> Result<Option<T>, QueueError>,
    ) -> Result<T, QueueError> {
        if let Some(done) = attempt(self)? {
            return Ok(done);
        }
        let begin = Instant::now();
        // A time that the clock cannot tell never comes.
        let deadline = timeout.and_then(|timeout| begin.checked_add(timeout));
        // Who does not wait does not look again and again either.
        if timeout != Some(Duration::ZERO) {
            self.spin.look(|| is_ready(self) || self.interrupt.is_thrown());
        }
        loop {
            if let Some(done) = attempt(self)? {
                self.spin.learn(begin.elapsed());
                return Ok(done);
            }
            self.interrupt.sleep(deadline)?;
        }
    }

    /// Wakes the other end. Without an event flag it does not wait.
    fn wake(&self, bit: std::num::NonZeroU32) -> Result<(), QueueError> {
        self.shared.event_flag().map_or(Ok(()), |flag| event_flag::wake(flag, bit))
    }
}

fn ring_bytes(ring: &[RingWord]) -> u64 {
    ring.len() as u64 * 8
}

/// The word of the ring that a counter stands at; counters only grow, the ring goes round.
fn word_at(ring: &[RingWord], position: u64) -> usize {
    // Less than the number of words.
    usize::try_from(position % ring_bytes(ring) / 8).unwrap_or(0)
}

/// The end that takes data out. There must be one at most.
#[derive(Debug)]
pub struct Reader<D> {
    end: End,
    datum: PhantomData<fn() -> D>,
}

impl<D: Datum> Reader<D> {
    pub(super) fn new(queue: MessageQueue<D>) -> Self {
        let shared = queue.into_shared();
        let position = shared.read_counter().load(Ordering::Acquire);
        let interrupt = Interrupt::new(Arc::clone(&shared), NOT_EMPTY);
        let end = End { shared, position, interrupt, spin: Spin::new() };
        Self { end, datum: PhantomData }
    }

    /// Ends the waiting of this reader.
    pub fn interrupt(&self) -> Interrupt {
        self.end.interrupt.clone()
    }

    /// Prepares to sleep in [`wait_any`](super::any::wait_any), after [`Self::read`] found nothing: the
    /// value that the word of the event flag has now; none if there is something to read by now, or
    /// the reader was interrupted.
    pub(crate) fn arm(&self) -> Option<u32> {
        let flag = self.end.shared.event_flag()?;
        let value = event_flag::arm(flag, NOT_EMPTY);
        value.filter(|_| !self.end.interrupt.is_thrown())
    }

    /// What [`Self::arm`] found, to sleep on.
    pub(crate) fn armed(&self, value: u32) -> Option<Armed<'_>> {
        Some(Armed::new(self.end.shared.event_flag()?, value))
    }

    /// Takes everything out that is there: into `packet`, in the place of what it held. Whether
    /// there was anything.
    ///
    /// # Errors
    /// [`QueueError::Counters`]. If the writer's counter can be a counter all the same, what it says
    /// was written is passed over, and the queue can be used on.
    pub fn try_read(&mut self, packet: &mut Vec<D>) -> Result<bool, QueueError> {
        Ok(Self::attempt(&mut self.end, packet)?.is_some())
    }

    /// As [`Reader::try_read`], but waits until there is something: a packet, because packets are
    /// written as a whole.
    ///
    /// # Errors
    /// [`QueueError::Counters`], [`QueueError::TimedOut`], [`QueueError::Interrupted`],
    /// [`QueueError::NoEventFlag`], [`QueueError::System`]
    pub fn read(
        &mut self,
        packet: &mut Vec<D>,
        timeout: Option<Duration>,
    ) -> Result<(), QueueError> {
        let is_ready =
            |end: &End| end.shared.write_counter().load(Ordering::Relaxed) != end.position;
        self.end.wait(timeout, is_ready, |end| Self::attempt(end, packet))
    }

    fn attempt(end: &mut End, packet: &mut Vec<D>) -> Result<Option<()>, QueueError> {
        let (ring, quantum) = (end.shared.ring(), D::WORDS as u64 * 8);
        packet.clear();
        let written = end.shared.write_counter().load(Ordering::Acquire);
        let available = written.wrapping_sub(end.position);
        if available == 0 {
            return Ok(None);
        }
        if available > ring_bytes(ring) || !available.is_multiple_of(quantum) {
            let (read, bytes) = (end.position, ring_bytes(ring));
            let passed_over = written.is_multiple_of(quantum);
            if passed_over {
                end.publish_read(written);
            }
            return Err(QueueError::Counters { read, written, bytes, passed_over });
        }
        // Not more than the ring has.
        packet.reserve(usize::try_from(available / quantum).unwrap_or(0));
        let mut word = word_at(ring, end.position);
        for _ in 0..available / quantum {
            let mut datum = D::default();
            for copy in datum.words_mut() {
                *copy = ring[word].load(Ordering::Relaxed);
                word = if word + 1 == ring.len() { 0 } else { word + 1 };
            }
            packet.push(datum);
        }
        end.publish_read(written);
        end.wake(NOT_FULL)?;
        Ok(Some(()))
    }
}

impl End {
    fn publish_read(&mut self, position: u64) {
        self.position = position;
        self.shared.read_counter().store(position, Ordering::Release);
    }
}

/// The end that puts data in. There must be one at most.
#[derive(Debug)]
pub struct Writer<D> {
    end: End,
    datum: PhantomData<fn(D)>,
}

impl<D: Datum> Writer<D> {
    pub(super) fn new(queue: MessageQueue<D>) -> Self {
        let shared = queue.into_shared();
        let position = shared.write_counter().load(Ordering::Acquire);
        let interrupt = Interrupt::new(Arc::clone(&shared), NOT_FULL);
        let end = End { shared, position, interrupt, spin: Spin::new() };
        Self { end, datum: PhantomData }
    }

    /// Ends the waiting of this writer.
    pub fn interrupt(&self) -> Interrupt {
        self.end.interrupt.clone()
    }

    /// The most data that a packet can have.
    pub fn capacity(&self) -> usize {
        self.end.shared.ring().len() / D::WORDS
    }

    /// Puts a packet in as a whole, if there is room. Whether there was.
    ///
    /// # Errors
    /// [`QueueError::TooLong`] if there never is; [`QueueError::Counters`].
    pub fn try_write(&mut self, packet: &[D]) -> Result<bool, QueueError> {
        self.check_length(packet)?;
        Ok(Self::attempt(&mut self.end, packet)?.is_some())
    }

    /// As [`Writer::try_write`], but waits until there is room.
    ///
    /// # Errors
    /// [`QueueError::TooLong`], [`QueueError::Counters`], [`QueueError::TimedOut`],
    /// [`QueueError::Interrupted`], [`QueueError::NoEventFlag`], [`QueueError::System`]
    pub fn write(&mut self, packet: &[D], timeout: Option<Duration>) -> Result<(), QueueError> {
        self.check_length(packet)?;
        let needed = size_of_packet::<D>(packet);
        let is_ready =
            |end: &End| end.used().saturating_add(needed) <= ring_bytes(end.shared.ring());
        self.end.wait(timeout, is_ready, |end| Self::attempt(end, packet))
    }

    fn check_length(&self, packet: &[D]) -> Result<(), QueueError> {
        let (length, capacity) = (packet.len(), self.capacity());
        if length > capacity { Err(QueueError::TooLong { length, capacity }) } else { Ok(()) }
    }

    fn attempt(end: &mut End, packet: &[D]) -> Result<Option<()>, QueueError> {
        let (ring, quantum) = (end.shared.ring(), D::WORDS as u64 * 8);
        let (used, needed) = (end.used(), size_of_packet::<D>(packet));
        if used > ring_bytes(ring) || !used.is_multiple_of(quantum) {
            return Err(QueueError::Counters {
                read: end.position.wrapping_sub(used),
                written: end.position,
                bytes: ring_bytes(ring),
                passed_over: false,
            });
        }
        if used + needed > ring_bytes(ring) {
            return Ok(None);
        }
        let mut word = word_at(ring, end.position);
        for original in packet.iter().flat_map(Datum::words) {
            ring[word].store(*original, Ordering::Relaxed);
            word = if word + 1 == ring.len() { 0 } else { word + 1 };
        }
        end.position = end.position.wrapping_add(needed);
        end.shared.write_counter().store(end.position, Ordering::Release);
        end.wake(NOT_EMPTY)?;
        Ok(Some(()))
    }
}

impl End {
    /// Bytes of the ring that this writer's reader has not read, if its counter can be believed.
    fn used(&self) -> u64 {
        self.position.wrapping_sub(self.shared.read_counter().load(Ordering::Acquire))
    }
}

/// Bytes of a packet that fits the ring.
fn size_of_packet<D: Datum>(packet: &[D]) -> u64 {
    packet.len() as u64 * D::WORDS as u64 * 8
}
