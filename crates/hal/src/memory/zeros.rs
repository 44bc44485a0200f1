//! [`zeros`]: memory that is nobody else's.

use super::MemoryError;
use memmap2::MmapMut;

/// So many zero bytes, in huge pages where the system has them: what is read into those is there in
/// half the time. They begin on a page. For large copies of files and pools.
///
/// # Errors
/// [`MemoryError::NoRoom`].
pub fn zeros(length: u64) -> Result<MmapMut, MemoryError> {
    let no_room = || MemoryError::NoRoom { length };
    let count = usize::try_from(length).map_err(|_| no_room())?;
    let mapped = MmapMut::map_anon(count).map_err(|_| no_room())?;
    // Without, it is only slower.
    #[cfg(target_os = "linux")]
    let _ = mapped.advise(memmap2::Advice::HugePage);
    Ok(mapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_zeros_as_are_wanted() {
        for length in [0, 1, 5000, 3 << 20] {
            let zeros = zeros(length).unwrap();
            assert_eq!(zeros.len() as u64, length);
            assert!(zeros.iter().all(|byte| *byte == 0));
        }
        assert!(matches!(zeros(u64::MAX), Err(MemoryError::NoRoom { length: u64::MAX })));
    }
}
