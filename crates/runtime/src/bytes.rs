//! Bytes of the caller: what is read when an execution begins and what is written when it ends.
//!
//! The runtime never keeps a slice of them. It borrows one for a moment, to copy, each time the
//! trait is asked, and never asks two at once; so a C library can implement the traits over plain
//! pointers.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that the runtime reads: an input, or a large value of a model.
pub trait ReadBytes: Send + Sync {
    /// Number of bytes.
    fn size(&self) -> usize;

    /// Lends all bytes for the time of the call.
    fn lend(&self, read: &mut dyn FnMut(&[u8]));
}

/// Bytes that the runtime writes: an output.
pub trait WriteBytes: Send + Sync {
    /// Number of bytes.
    fn size(&self) -> usize;

    /// Lends all bytes for the time of the call.
    fn lend(&self, write: &mut dyn FnMut(&mut [u8]));
}

impl ReadBytes for Vec<u8> {
    fn size(&self) -> usize {
        self.len()
    }

    fn lend(&self, read: &mut dyn FnMut(&[u8])) {
        read(self);
    }
}

/// Bytes for an output, to be read after the execution. Clones are the same bytes.
#[derive(Clone, Default)]
pub struct OutputBuffer(Arc<Mutex<Vec<u8>>>);

impl OutputBuffer {
    /// With `size` bytes, all 0.
    pub fn new(size: usize) -> Self {
        Self(Arc::new(Mutex::new(vec![0; size])))
    }

    /// A copy of the bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        self.lock().clone()
    }

    /// The bytes as float32 numbers, less what is left over.
    pub fn to_f32(&self) -> Vec<f32> {
        self.lock().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WriteBytes for OutputBuffer {
    fn size(&self) -> usize {
        self.lock().len()
    }

    fn lend(&self, write: &mut dyn FnMut(&mut [u8])) {
        write(&mut self.lock());
    }
}

impl fmt::Debug for OutputBuffer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OutputBuffer({} bytes)", self.size())
    }
}
