//! [`Weights`]: constants that are looked at once, to be packed.

use super::Constant;
use crate::lock::lock;
use bytemuck::Pod;
use nnhal_kernels::Lines;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Mutex;

/// Memory to read weights into, used again for the next ones: pages that are there already are
/// written several times as fast as new ones.
#[derive(Debug)]
pub(crate) struct Scratch {
    idle: Mutex<Vec<Lines>>,
    /// Bytes that are taken at once, so that memory does not have to be taken anew when it grows.
    at_once: usize,
}

/// Weights of type `T`, which has 8 or 32 bits.
#[derive(Debug)]
pub(crate) struct Weights<'a, T>(Memory<'a>, PhantomData<T>);

#[derive(Debug)]
enum Memory<'a> {
    There(&'a [u8]),
    Read(Buffer<'a>),
}

/// Memory that goes back to where it came from.
#[derive(Debug)]
struct Buffer<'a> {
    /// This many bytes or more.
    memory: Lines,
    bytes: usize,
    home: &'a Scratch,
}

impl Scratch {
    /// For weights that mostly have no more than this many bytes.
    pub(crate) fn new(at_once: usize) -> Self {
        Self { idle: Mutex::default(), at_once }
    }

    /// For a constant, of which these are the bytes; `None` if the system does not give so much.
    fn take(&self, constant: &Constant<'_>, bytes: usize) -> Option<Buffer<'_>> {
        let idle = lock(&self.idle).pop();
        let memory = match idle.filter(|memory| memory.bytes() >= bytes) {
            Some(memory) => memory,
            None => {
                let wanted = bytes.max(self.at_once);
                let denied = |_| constant.fail_for_memory(wanted);
                Lines::try_with_bytes(wanted).map_err(denied).ok()?
            }
        };
        Some(Buffer { memory, bytes, home: self })
    }
}

impl Buffer<'_> {
    fn floats_mut(&mut self) -> &mut [f32] {
        &mut self.memory.elements_mut()[..self.bytes / size_of::<f32>()]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory.elements_mut()[..self.bytes]
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        lock(&self.home.idle).push(memory);
    }
}

impl<'a> Weights<'a, u8> {
    /// The bytes of a constant; `None` if there is no memory for them.
    pub(super) fn bytes(constant: &'a Constant<'_>, scratch: &'a Scratch) -> Option<Self> {
        let memory = match constant.at_hand() {
            Some(bytes) => Memory::There(bytes),
            None => {
                let mut buffer = scratch.take(constant, constant.length())?;
                constant.read_to(buffer.bytes_mut());
                Memory::Read(buffer)
            }
        };
        Some(Self(memory, PhantomData))
    }
}

impl<'a> Weights<'a, f32> {
    /// The elements of a constant that holds floats, of 16 bits or of 32; `None` if there is no memory for
    /// them.
    pub(super) fn floats(
        constant: &'a Constant<'_>,
        is_float16: bool,
        scratch: &'a Scratch,
    ) -> Option<Self> {
        let at_hand = constant.at_hand().filter(|_| !is_float16 && cfg!(target_endian = "little"));
        let aligned = at_hand.filter(|bytes| bytemuck::try_cast_slice::<u8, f32>(bytes).is_ok());
        if let Some(bytes) = aligned {
            return Some(Self(Memory::There(bytes), PhantomData));
        }
        let growth = if is_float16 { 2 } else { 1 };
        let mut buffer = scratch.take(constant, growth * constant.length())?;
        if is_float16 {
            constant.widen_to(&constant.bytes_once()?, buffer.floats_mut());
        } else {
            constant.read_to(buffer.bytes_mut());
            if cfg!(target_endian = "big") {
                for float in buffer.floats_mut() {
                    *float = f32::from_le_bytes(float.to_ne_bytes());
                }
            }
        }
        Some(Self(Memory::Read(buffer), PhantomData))
    }
}

impl<T> Weights<'_, T> {
    /// None at all.
    pub(super) const NONE: Self = Self(Memory::There(&[]), PhantomData);
}

impl<T: Pod> Deref for Weights<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            // No bytes may be anywhere.
            Memory::There([]) => &[],
            Memory::There(bytes) => bytemuck::cast_slice(bytes),
            Memory::Read(buffer) => {
                bytemuck::cast_slice(&buffer.memory.elements::<u8>()[..buffer.bytes])
            }
        }
    }
}
