//! [`Allowance`]: how much memory may be taken, and [`TooLarge`]: that something wanted more.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many bytes may still be taken, by all who have a clone of it.
#[derive(Debug, Clone)]
pub struct Allowance(Arc<dyn MemoryLimit>);

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

impl Allowance {
    /// A number of bytes.
    pub fn new(bytes: usize) -> Self {
        Self::of(Arc::new(AtomicUsize::new(bytes)))
    }

    /// What a limit leaves.
    pub fn of(limit: Arc<dyn MemoryLimit>) -> Self {
        Self(limit)
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.0.left()
    }

    /// Takes bytes; `None` are more than can be addressed.
    ///
    /// # Errors
    /// If there are fewer left. Then none are taken.
    pub fn take(&self, bytes: Option<usize>, what: &'static str) -> Result<(), TooLarge> {
        let wanted = bytes.ok_or(TooLarge::beyond_addresses(what))?;
        self.0.take(wanted).map_err(|left| TooLarge::new(what, wanted, left))
    }

    /// As [`Self::take`], without taking them.
    ///
    /// # Errors
    /// If there are fewer left.
    pub fn check(&self, bytes: Option<usize>, what: &'static str) -> Result<(), TooLarge> {
        let wanted = bytes.ok_or(TooLarge::beyond_addresses(what))?;
        let left = self.left();
        if wanted <= left { Ok(()) } else { Err(TooLarge::new(what, wanted, left)) }
    }
}

/// As much as can be addressed.
impl Default for Allowance {
    fn default() -> Self {
        Self::new(isize::MAX.unsigned_abs())
    }
}

impl From<usize> for Allowance {
    fn from(bytes: usize) -> Self {
        Self::new(bytes)
    }
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
    fn clones_take_from_the_same() {
        let allowance = Allowance::new(10);
        let clone = allowance.clone();
        clone.take(Some(7), "tables").unwrap();
        let refused = allowance.take(Some(4), "tables").unwrap_err();
        assert_eq!(refused.to_string(), "4 bytes of tables are wanted, and 3 may be taken");
        assert_eq!(allowance.left(), 3);
        allowance.check(Some(3), "tables").unwrap();
        allowance.take(Some(3), "tables").unwrap();
        let refused = clone.take(None, "tables").unwrap_err();
        assert_eq!(refused.to_string(), "more tables than can be addressed");
    }
}
