//! [`zeros`]: memory that is nobody else's.

use super::MemoryError;
use memmap2::MmapMut;

/// Zero bytes that begin on a page.
pub type Zeros = MmapMut;

/// So many zero bytes. Pages that nobody touches take no memory.
///
/// # Errors
/// [`MemoryError::NoRoom`].
pub fn zeros(length: u64) -> Result<Zeros, MemoryError> {
    let no_room = || MemoryError::NoRoom { length };
    let count = usize::try_from(length).map_err(|_| no_room())?;
    MmapMut::map_anon(count).map_err(|_| no_room())
}

/// The same, in huge pages where the system has them: what is read into those is there in half the
/// time. For large copies of files and pools.
///
/// # Errors
/// [`MemoryError::NoRoom`].
pub fn zeros_in_huge_pages(length: u64) -> Result<Zeros, MemoryError> {
    let zeros = zeros(length)?;
    // Without, it is only slower.
    #[cfg(target_os = "linux")]
    let _ = zeros.advise(memmap2::Advice::HugePage);
    Ok(zeros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_zeros_as_are_wanted() {
        for make in [zeros, zeros_in_huge_pages] {
            for length in [0, 1, 5000, 3 << 20] {
                let zeros = make(length).unwrap();
                assert_eq!(zeros.len() as u64, length);
                assert!(zeros.iter().all(|byte| *byte == 0));
            }
            assert!(matches!(make(u64::MAX), Err(MemoryError::NoRoom { length: u64::MAX })));
        }
    }
}
