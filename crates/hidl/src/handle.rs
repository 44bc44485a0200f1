//! [`Handle`]: descriptors and integers that travel together.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Descriptors and integers that travel together (`native_handle_t`).
#[derive(Debug, Default)]
pub struct NativeHandle {
    /// Descriptors; closed with the handle.
    pub fds: Vec<OwnedFd>,
    /// Integers, whose meaning the kind of the memory defines.
    pub integers: Vec<i32>,
}

/// A `handle` of HIDL: a [`NativeHandle`] or null. Cloning shares it.
///
/// A handle that is passed to a method is lent for the call: whoever wants to keep a descriptor
/// duplicates it ([`Handle::duplicate_fds`]).
#[derive(Debug, Clone, Default)]
pub struct Handle(Option<Arc<NativeHandle>>);

impl Handle {
    /// No handle at all, which is not the same as a handle without descriptors.
    pub const NULL: Self = Self(None);

    /// A handle of descriptors and integers.
    pub fn new(fds: Vec<OwnedFd>, integers: Vec<i32>) -> Self {
        Self(Some(Arc::new(NativeHandle { fds, integers })))
    }

    /// A handle of one descriptor.
    pub fn of_fd(fd: OwnedFd) -> Self {
        Self::new(vec![fd], Vec::new())
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        self.0.is_none()
    }

    /// Its descriptors; of null none.
    pub fn fds(&self) -> &[OwnedFd] {
        self.0.as_ref().map_or(&[], |handle| &handle.fds)
    }

    /// Its integers; of null none.
    pub fn integers(&self) -> &[i32] {
        self.0.as_ref().map_or(&[], |handle| &handle.integers)
    }

    /// Duplicates of its descriptors, closed when the process becomes another program (contract:
    /// SEC-6).
    ///
    /// # Errors
    /// What the system says, most likely that there are too many descriptors; then none is left
    /// open.
    pub fn duplicate_fds(&self) -> io::Result<Vec<OwnedFd>> {
        self.fds().iter().map(OwnedFd::try_clone).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn null_has_nothing_and_is_not_an_empty_handle() {
        assert!(Handle::NULL.is_null());
        assert!(Handle::NULL.fds().is_empty() && Handle::NULL.integers().is_empty());
        assert!(!Handle::new(vec![], vec![]).is_null());
    }

    #[test]
    fn sec_6_duplicates_are_other_descriptors_and_closed_in_other_programs() {
        let handle = Handle::of_fd(tempfile::tempfile().unwrap().into());
        let duplicates = handle.duplicate_fds().unwrap();
        assert_ne!(duplicates[0].as_raw_fd(), handle.fds()[0].as_raw_fd());
        assert_eq!(rustix::io::fcntl_getfd(&duplicates[0]).unwrap(), rustix::io::FdFlags::CLOEXEC);
    }
}
