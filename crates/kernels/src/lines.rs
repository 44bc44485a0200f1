//! [`Lines`]: memory that begins on a cache line.

use crate::TooLarge;
use bytemuck::{Pod, Zeroable};
use bytes::Bytes;
#[cfg(target_os = "linux")]
use memmap2::Advice;
use memmap2::{MmapMut, MmapOptions};

/// Bytes of a cache line and of the widest vector.
pub const LINE_BYTES: usize = 64;

/// As much memory as a cache line, aligned as one.
#[derive(Debug, Clone, Copy, Zeroable, Pod)]
#[repr(C, align(64))]
pub struct Line([u8; LINE_BYTES]);

/// Memory for elements of any plain type, zero at first, that begins on a cache line.
#[derive(Debug)]
pub struct Lines(Memory);

#[derive(Debug)]
enum Memory {
    Heap(Vec<Line>),
    Mapped { pages: MmapMut, bytes: usize },
}

/// From this many bytes on, memory is mapped by itself: it is zero without being written.
const MAPPED_BYTES: usize = 128 << 10;

/// Bytes of the pages that the system may have for large memory: they are there four times as soon as
/// small ones, and cost fewer misses of the TLB.
const HUGE_PAGE_BYTES: usize = 2 << 20;

impl Default for Lines {
    fn default() -> Self {
        Self(Memory::Heap(Vec::new()))
    }
}

impl Lines {
    /// Room for at least this many bytes.
    ///
    /// # Errors
    /// If the system does not give so much.
    pub fn try_with_bytes(bytes: usize) -> Result<Self, TooLarge> {
        const WHAT: &str = "memory";
        let bytes = bytes.checked_next_multiple_of(LINE_BYTES);
        let bytes = bytes.filter(|bytes| isize::try_from(*bytes).is_ok());
        let bytes = bytes.ok_or(TooLarge::beyond_addresses(WHAT))?;
        if let Some(pages) = mapped(bytes) {
            return Ok(Self(Memory::Mapped { pages, bytes }));
        }
        let lines = bytemuck::try_zeroed_vec(bytes / LINE_BYTES);
        Ok(Self(Memory::Heap(lines.map_err(|()| TooLarge::no_memory(WHAT, bytes))?)))
    }

    /// Room for at least this many bytes, which are known to be few.
    ///
    /// # Panics
    /// If the system does not give so much.
    pub fn with_bytes(bytes: usize) -> Self {
        Self::try_with_bytes(bytes).unwrap_or_else(|refusal| panic!("{refusal}"))
    }

    /// Room for at least this many elements, which are known to be few.
    ///
    /// # Panics
    /// If the system does not give so much.
    pub fn with_elements<T: Pod>(elements: usize) -> Self {
        Self::with_bytes(elements.saturating_mul(size_of::<T>()))
    }

    /// A copy of elements.
    pub fn from_elements<T: Pod>(elements: &[T]) -> Self {
        let mut lines = Self::with_elements::<T>(elements.len());
        lines.elements_mut()[..elements.len()].copy_from_slice(elements);
        lines
    }

    /// How many bytes there are, a multiple of [`LINE_BYTES`].
    pub fn bytes(&self) -> usize {
        size_of_val(self.lines())
    }

    /// All of it.
    pub fn lines(&self) -> &[Line] {
        match &self.0 {
            Memory::Heap(lines) => lines,
            Memory::Mapped { pages, bytes } => bytemuck::cast_slice(&pages[..*bytes]),
        }
    }

    /// All of it, to write.
    pub fn lines_mut(&mut self) -> &mut [Line] {
        match &mut self.0 {
            Memory::Heap(lines) => lines,
            Memory::Mapped { pages, bytes } => bytemuck::cast_slice_mut(&mut pages[..*bytes]),
        }
    }

    /// All of it as elements of a type whose size divides that of a line.
    pub fn elements<T: Pod>(&self) -> &[T] {
        bytemuck::cast_slice(self.lines())
    }

    /// All of it as elements of a type whose size divides that of a line, to write.
    pub fn elements_mut<T: Pod>(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(self.lines_mut())
    }
}

/// Zeros in pages of their own, at least this many; `None` if they are too few, or the system gives none.
fn mapped(bytes: usize) -> Option<MmapMut> {
    // Miri knows no advice.
    if bytes < MAPPED_BYTES || cfg!(miri) {
        return None;
    }
    // As many whole huge pages as are wanted, and another one if at least half of it is.
    let huge = (bytes / HUGE_PAGE_BYTES + bytes / (HUGE_PAGE_BYTES / 2) % 2) * HUGE_PAGE_BYTES;
    if huge == 0 {
        // All pages at once take less than one after the other, when they are written for the first time.
        return MmapOptions::new().len(bytes).populate().map_anon().ok();
    }
    // The system lets memory begin at a huge page if it is a number of them.
    let pages = MmapMut::map_anon(bytes.checked_next_multiple_of(HUGE_PAGE_BYTES)?).ok()?;
    // Without, it is only slower.
    #[cfg(target_os = "linux")]
    let _ = pages.advise_range(Advice::HugePage, 0, huge);
    Some(pages)
}

/// All of it.
impl AsRef<[u8]> for Lines {
    fn as_ref(&self) -> &[u8] {
        self.elements()
    }
}

/// Packed weights that were saved, see [`Preparation::restore`](crate::Preparation::restore): whole lines, that begin on one.
#[derive(Debug)]
pub struct SavedWeights(pub(crate) Bytes);

impl SavedWeights {
    /// Takes bytes as they are if they begin on a cache line, as memory that was mapped does, and a
    /// copy of them otherwise. What is behind the last whole line is left away.
    pub fn new(bytes: Bytes) -> Self {
        let whole = bytes.slice(..bytes.len() / LINE_BYTES * LINE_BYTES);
        Self(match bytemuck::try_cast_slice::<u8, Line>(&whole) {
            Ok(_) => whole,
            Err(_) => Bytes::from_owner(Lines::from_elements(&whole)),
        })
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

    #[test]
    fn memory_that_the_system_does_not_have_is_an_error() {
        for bytes in [1_usize << 62, isize::MAX.unsigned_abs(), usize::MAX - 3] {
            let refusal = Lines::try_with_bytes(bytes).unwrap_err();
            assert_eq!(refusal.left, None, "{refusal}");
        }
    }

    #[test]
    fn much_memory_is_like_little() {
        for bytes in [MAPPED_BYTES, HUGE_PAGE_BYTES / 2, HUGE_PAGE_BYTES, 5 << 20] {
            let mut lines = Lines::with_bytes(bytes + 1);
            assert_eq!(lines.bytes(), bytes + LINE_BYTES);
            assert!(lines.elements::<u64>().iter().all(|element| *element == 0));
            *lines.elements_mut::<u8>().last_mut().unwrap() = 7;
            assert_eq!(lines.elements::<u8>()[bytes..].iter().max(), Some(&7));
        }
    }

    #[test]
    fn saved_bytes_are_the_same_wherever_they_begin() {
        let bytes: Vec<u8> = (0..200).collect();
        for start in [0, 1, 64] {
            let saved = SavedWeights::new(Bytes::from(bytes.clone()).slice(start..));
            let whole = (200 - start) / LINE_BYTES * LINE_BYTES;
            assert_eq!(saved.0, bytes[start..][..whole]);
            assert_eq!(saved.0.as_ptr().align_offset(LINE_BYTES), 0);
        }
    }
}
