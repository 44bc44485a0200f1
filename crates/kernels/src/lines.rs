//! [`Lines`]: memory that begins on a cache line.

use bytemuck::{Pod, Zeroable};

/// Bytes of a cache line and of the widest vector.
pub const LINE_BYTES: usize = 64;

/// As much memory as a cache line, aligned as one.
#[derive(Debug, Clone, Copy, Zeroable, Pod)]
#[repr(C, align(64))]
pub struct Line([u8; LINE_BYTES]);

/// Memory for elements of any plain type, zero at first, that begins on a cache line.
#[derive(Debug, Clone, Default)]
pub struct Lines(Vec<Line>);

impl Lines {
    /// Room for at least so many bytes.
    pub fn with_bytes(bytes: usize) -> Self {
        // Pages that the system gives are zero already; most are first touched when they are used.
        Self(bytemuck::zeroed_vec(bytes.div_ceil(LINE_BYTES)))
    }

    /// Room for at least so many elements.
    pub fn with_elements<T: Pod>(elements: usize) -> Self {
        Self::with_bytes(elements * size_of::<T>())
    }

    /// A copy of elements.
    pub fn from_elements<T: Pod>(elements: &[T]) -> Self {
        let mut lines = Self::with_elements::<T>(elements.len());
        lines.elements_mut()[..elements.len()].copy_from_slice(elements);
        lines
    }

    /// How many bytes there are, a multiple of [`LINE_BYTES`].
    pub fn bytes(&self) -> usize {
        self.0.len() * LINE_BYTES
    }

    /// All of it, to write.
    pub fn lines_mut(&mut self) -> &mut [Line] {
        &mut self.0
    }

    /// All of it as elements of a type whose size divides that of a line.
    pub fn elements<T: Pod>(&self) -> &[T] {
        bytemuck::cast_slice(&self.0)
    }

    /// All of it as elements of a type whose size divides that of a line, to write.
    pub fn elements_mut<T: Pod>(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_begin_on_a_line_and_are_zero() {
        let mut lines = Lines::with_elements::<f32>(17);
        assert_eq!(lines.bytes(), 128);
        assert_eq!(lines.elements::<f32>(), [0.0; 32]);
        assert_eq!(lines.elements::<u8>().as_ptr().align_offset(LINE_BYTES), 0);
        lines.elements_mut::<u16>()[1] = 0x3F80;
        assert_eq!(lines.elements::<f32>()[0].to_bits(), 0x3F80_0000);
        assert_eq!(Lines::from_elements(&[1_i32, 2, 3]).elements::<i32>()[..4], [1, 2, 3, 0]);
    }
}
