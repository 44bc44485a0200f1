//! [`zeros`]: memory that is no one else's.

use super::MemoryError;
use memmap2::MmapMut;

/// Zero bytes that begin on a page.
pub type Zeros = MmapMut;

/// `length` zero bytes. Pages that no one touches take no memory.
///
/// # Errors
/// [`MemoryError::NoRoom`].
pub fn zeros(length: u64) -> Result<Zeros, MemoryError> {
    let no_room = || MemoryError::NoRoom { length };
    let count = usize::try_from(length).map_err(|_| no_room())?;
    MmapMut::map_anon(count).map_err(|_| no_room())
}

/// Bytes of the pages that the system may have for large memory.
const HUGE_PAGE_BYTES: u64 = 2 << 20;

/// At least `length` zero bytes, in huge pages where the system has them: what is read into those is
/// there in half the time. For large copies of files and pools.
///
/// # Errors
/// [`MemoryError::NoRoom`].
pub fn zeros_in_huge_pages(length: u64) -> Result<Zeros, MemoryError> {
    if length < HUGE_PAGE_BYTES / 2 {
        return zeros(length);
    }
    // The system lets memory begin at a huge page if it is a number of them.
    let whole = length.checked_next_multiple_of(HUGE_PAGE_BYTES);
    let zeros = zeros(whole.ok_or(MemoryError::NoRoom { length })?)?;
    // What is left over becomes a huge page if at least half of it is wanted. Without, it is only
    // slower.
    #[cfg(target_os = "linux")]
    {
        let huge = (length + HUGE_PAGE_BYTES / 2) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
        let huge = usize::try_from(huge).unwrap_or(zeros.len());
        let _ = zeros.advise_range(memmap2::Advice::HugePage, 0, huge.min(zeros.len()));
    }
    Ok(zeros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_zeros_as_are_wanted() {
        assert_eq!(zeros(5000).unwrap().len(), 5000);
        for make in [zeros, zeros_in_huge_pages] {
            for length in [0, 1, 5000, (1 << 20) - 1, 1 << 20, 3 << 20] {
                let zeros = make(length).unwrap();
                assert!(zeros.len() as u64 >= length);
                assert!(zeros.iter().all(|byte| *byte == 0));
            }
            assert!(matches!(make(u64::MAX), Err(MemoryError::NoRoom { length: u64::MAX })));
        }
    }
}
