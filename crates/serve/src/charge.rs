//! [`Charge`]: what requests that are in progress, and their answers, take of the memory for them.

use crate::error::{Error, Result};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a request has taken of the memory for requests; shared by whoever gives it back.
pub(crate) type SharedCharge = Arc<Mutex<Charge>>;

/// Bytes of requests that are in progress and of their answers, and how many there may be.
#[derive(Debug)]
pub(crate) struct Receiving {
    limit: usize,
    used: AtomicUsize,
}

/// Bytes that one request or answer has taken; given back when dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    from: Arc<Receiving>,
    bytes: usize,
}

impl Receiving {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0) })
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

impl Charge {
    pub(crate) fn new(from: Arc<Receiving>) -> Self {
        Self { from, bytes: 0 }
    }

    /// Takes more bytes.
    ///
    /// # Errors
    /// [`Error::NoMemory`]
    pub(crate) fn take(&mut self, bytes: usize) -> Result<()> {
        let Receiving { limit, used } = &*self.from;
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| sum <= limit);
        let taken = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        taken.map_err(|_| Error::NoMemory { limit: *limit })?;
        self.bytes += bytes;
        Ok(())
    }

    /// Takes more bytes, whether there is room for them or not: of what is there already, and is little.
    fn add(&mut self, bytes: usize) {
        self.from.used.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
    }

    /// Gives some of what it has taken back.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.from.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Part of what it has taken, to be given back by itself.
    pub(crate) fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { from: Arc::clone(&self.from), bytes }
    }

    /// Has taken this many bytes, whatever it had before. Up to `few` are always there: errors are answered and the server's health
    /// is reported also when there is no room.
    ///
    /// # Errors
    /// [`Error::NoMemory`]
    pub(crate) fn settle(&mut self, bytes: usize, few: usize) -> Result<()> {
        match bytes.checked_sub(self.bytes) {
            None => self.give_back(self.bytes - bytes),
            Some(more) if bytes <= few => self.add(more),
            Some(more) => self.take(more)?,
        }
        Ok(())
    }

    /// Bytes of what is there already.
    pub(crate) fn of(from: &Arc<Receiving>, bytes: usize) -> Self {
        let mut charge = Self::new(Arc::clone(from));
        charge.add(bytes);
        charge
    }

    /// To be shared.
    pub(crate) fn shared(self) -> SharedCharge {
        Arc::new(Mutex::new(self))
    }
}

/// Takes more bytes of a charge that is shared.
///
/// # Errors
/// [`Error::NoMemory`]
pub(crate) fn take(charge: &SharedCharge, bytes: usize) -> Result<()> {
    charge.lock().unwrap_or_else(PoisonError::into_inner).take(bytes)
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.from.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
