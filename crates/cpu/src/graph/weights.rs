//! [`Weights`]: constants that are looked at once, to be packed.

use super::Constant;
use super::constant::widen_to;
use bytemuck::Pod;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

/// Memory to read weights into, used again for the next ones: pages that are there already are
/// written several times as fast as new ones.
#[derive(Debug, Default)]
pub(crate) struct Scratch(Mutex<Vec<Vec<f32>>>);

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
    /// As many bytes or more.
    memory: Vec<f32>,
    bytes: usize,
    home: &'a Scratch,
}

impl Scratch {
    fn take(&self, bytes: usize) -> Buffer<'_> {
        let memory = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut memory = memory.unwrap_or_default();
        let floats = bytes.div_ceil(size_of::<f32>());
        if memory.len() < floats {
            // Nothing of it is worth to be copied when it grows.
            memory = vec![0.0; floats];
        }
        Buffer { memory, bytes, home: self }
    }
}

impl Buffer<'_> {
    fn floats_mut(&mut self) -> &mut [f32] {
        &mut self.memory[..self.bytes / size_of::<f32>()]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.memory)[..self.bytes]
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        self.home.0.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
    }
}

impl<'a> Weights<'a, u8> {
    /// The bytes of a constant.
    pub(super) fn bytes(constant: &'a Constant<'_>, scratch: &'a Scratch) -> Self {
        let memory = match constant.at_hand() {
            Some(bytes) => Memory::There(bytes),
            None => {
                let mut buffer = scratch.take(constant.length());
                constant.read_to(buffer.bytes_mut());
                Memory::Read(buffer)
            }
        };
        Self(memory, PhantomData)
    }
}

impl<'a> Weights<'a, f32> {
    /// The elements of a constant that holds floats, of 16 bits or of 32.
    pub(super) fn floats(
        constant: &'a Constant<'_>,
        is_float16: bool,
        scratch: &'a Scratch,
    ) -> Self {
        let at_hand = constant.at_hand().filter(|_| !is_float16 && cfg!(target_endian = "little"));
        let aligned = at_hand.filter(|bytes| bytemuck::try_cast_slice::<u8, f32>(bytes).is_ok());
        if let Some(bytes) = aligned {
            return Self(Memory::There(bytes), PhantomData);
        }
        let growth = if is_float16 { 2 } else { 1 };
        let mut buffer = scratch.take(growth * constant.length());
        if is_float16 {
            let halves = Weights::bytes(constant, scratch);
            widen_to(&halves, buffer.floats_mut());
        } else if let Some(halves) = constant.halves() {
            widen_to(halves, buffer.floats_mut());
        } else {
            constant.read_to(buffer.bytes_mut());
            for float in buffer.floats_mut() {
                *float = f32::from_le_bytes(float.to_ne_bytes());
            }
        }
        Self(Memory::Read(buffer), PhantomData)
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
            // Nothing may lie anywhere.
            Memory::There([]) => &[],
            Memory::There(bytes) => bytemuck::cast_slice(bytes),
            Memory::Read(Buffer { memory, bytes, .. }) => {
                bytemuck::cast_slice(&bytemuck::cast_slice::<f32, u8>(memory)[..*bytes])
            }
        }
    }
}
