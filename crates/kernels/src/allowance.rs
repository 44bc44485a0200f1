//! [`MemoryLimit`]: how much memory may be taken, and [`TooLarge`]: that something wanted more.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts bytes that are about to be allocated, against a limit.
pub trait MemoryLimit: fmt::Debug + Send + Sync {
    /// How many bytes are left.
    fn left(&self) -> usize;

    /// Counts bytes.
    ///
    /// # Errors
    /// If there are not that many left: how many there are. Then none are counted.
    fn take(&self, bytes: usize) -> Result<(), usize>;
}

/// A number of bytes.
impl MemoryLimit for AtomicUsize {
    fn left(&self) -> usize {
        self.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> Result<(), usize> {
        let less = |left: usize| left.checked_sub(bytes);
        self.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).map(|_| ())
    }
}

/// What a kernel would take is more than it may, or than there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge {
    /// What the memory is wanted for.
    pub what: &'static str,
    /// How many bytes; none if they are more than can be addressed.
    pub wanted: Option<usize>,
    /// How many may be taken; none if no one forbids more, but the system does not give that many.
    pub left: Option<usize>,
}

impl TooLarge {
    pub(crate) fn new(what: &'static str, wanted: usize, left: usize) -> Self {
        Self { what, wanted: Some(wanted), left: Some(left) }
    }

    pub(crate) fn beyond_addresses(what: &'static str) -> Self {
        Self { what, wanted: None, left: None }
    }

    pub(crate) fn no_memory(what: &'static str, wanted: usize) -> Self {
        Self { what, wanted: Some(wanted), left: None }
    }
}

/// An empty vector with room for `count` values.
///
/// # Errors
/// If the system does not give so much memory.
pub(crate) fn room_for<T>(count: usize, what: &'static str) -> Result<Vec<T>, TooLarge> {
    let mut values = Vec::new();
    let wanted = count.checked_mul(size_of::<T>()).ok_or(TooLarge::beyond_addresses(what))?;
    values.try_reserve_exact(count).map_err(|_| TooLarge::no_memory(what, wanted))?;
    Ok(values)
}

impl fmt::Display for TooLarge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = self.what;
        match (self.wanted, self.left) {
            (Some(wanted), Some(left)) => {
                write!(formatter, "{wanted} bytes of {what} are wanted, and {left} may be taken")
            }
            (Some(wanted), None) => {
                write!(formatter, "{wanted} bytes of {what} are wanted, which the system denies")
            }
            (None, _) => write!(formatter, "more {what} than can be addressed"),
        }
    }
}

impl std::error::Error for TooLarge {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_that_does_not_exist_is_refused() {
        let what = "weights";
        assert_eq!(room_for::<u64>(usize::MAX, what), Err(TooLarge::beyond_addresses(what)));
        let bytes = isize::MAX.unsigned_abs();
        assert_eq!(room_for::<u8>(bytes, what), Err(TooLarge::no_memory(what, bytes)));
        assert!(room_for::<u8>(7, what).is_ok_and(|values| values.capacity() >= 7));
    }

    #[test]
    fn what_is_refused_is_not_taken() {
        let limit = AtomicUsize::new(10);
        limit.take(7).unwrap();
        let refusal = TooLarge::new("tables", 4, limit.take(4).unwrap_err());
        assert_eq!(refusal.to_string(), "4 bytes of tables are wanted, and 3 may be taken");
        limit.take(3).unwrap();
        let refusal = TooLarge::beyond_addresses("tables");
        assert_eq!(refusal.to_string(), "more tables than can be addressed");
    }
}
