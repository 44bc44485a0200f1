//! The records of objects in a parcel's data.

use crate::error::ParcelError;

/// `sb*`: an object of the process itself.
pub(crate) const BINDER: u32 = 0x7362_2a85;
/// `sh*`: an object of another process.
pub(crate) const HANDLE: u32 = 0x7368_2a85;
/// `pt*`: a buffer.
pub(crate) const POINTER: u32 = 0x7074_2a85;
/// `fda`: an array of descriptors.
pub(crate) const DESCRIPTORS: u32 = 0x6664_6185;

/// Bytes of [`BINDER`] and [`HANDLE`].
pub(crate) const FLAT_BINDER: usize = 24;
/// Bytes of [`POINTER`].
pub(crate) const POINTER_RECORD: usize = 40;
/// Bytes of [`DESCRIPTORS`].
pub(crate) const DESCRIPTORS_RECORD: usize = 32;

/// The buffer hangs at a pointer in another one.
pub(crate) const HAS_PARENT: u32 = 1;
/// The object may be sent descriptors, and its threads inherit the caller's real-time priority.
pub(crate) const BINDER_FLAGS: u32 = 0x100 | 0x800;

/// A record as its bytes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record {
    Binder { id: u64 },
    Handle { handle: u32 },
    Pointer { address: u64, length: u64, parent: Option<(u64, u64)> },
    Descriptors { count: u64, parent: (u64, u64) },
}

impl Record {
    /// Bytes in the data.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Binder { .. } | Self::Handle { .. } => FLAT_BINDER,
            Self::Pointer { .. } => POINTER_RECORD,
            Self::Descriptors { .. } => DESCRIPTORS_RECORD,
        }
    }

    /// The record at the beginning of these bytes.
    pub(crate) fn parse(bytes: &[u8], index: usize) -> Result<Self, ParcelError> {
        let wrong = |what| ParcelError::Object { index, what };
        let kind = u32_at(bytes, 0).ok_or(wrong("the parcel ends in it"))?;
        let size = match kind {
            BINDER | HANDLE => FLAT_BINDER,
            POINTER => POINTER_RECORD,
            DESCRIPTORS => DESCRIPTORS_RECORD,
            _ => return Err(wrong("it is of no kind that HIDL has")),
        };
        if bytes.len() < size {
            return Err(wrong("the parcel ends in it"));
        }
        let word = |position| u64_at(bytes, position).unwrap_or_default();
        Ok(match kind {
            BINDER => Self::Binder { id: word(8) },
            HANDLE => Self::Handle { handle: u32_at(bytes, 8).unwrap_or_default() },
            POINTER => {
                let has_parent = u32_at(bytes, 4).unwrap_or_default() & HAS_PARENT != 0;
                let parent = has_parent.then(|| (word(24), word(32)));
                Self::Pointer { address: word(8), length: word(16), parent }
            }
            _ => Self::Descriptors { count: word(8), parent: (word(16), word(24)) },
        })
    }

    /// The record's bytes. The kind of a null object is that of one of the process itself.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.size());
        let mut words = |kind: u32, flags: u32, words: &[u64]| {
            bytes.extend(kind.to_le_bytes());
            bytes.extend(flags.to_le_bytes());
            bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        };
        match *self {
            Self::Binder { id: 0 } => words(BINDER, 0, &[0, 0]),
            Self::Binder { id } => words(BINDER, BINDER_FLAGS, &[id, id]),
            Self::Handle { handle } => words(HANDLE, BINDER_FLAGS, &[u64::from(handle), 0]),
            Self::Pointer { address, length, parent } => {
                let (parent, offset) = parent.unwrap_or_default();
                let flags = if self.has_parent() { HAS_PARENT } else { 0 };
                words(POINTER, flags, &[address, length, parent, offset]);
            }
            Self::Descriptors { count, parent } => {
                words(DESCRIPTORS, 0, &[count, parent.0, parent.1]);
            }
        }
        bytes
    }

    fn has_parent(&self) -> bool {
        matches!(self, Self::Pointer { parent: Some(_), .. })
    }
}

pub(crate) fn u32_at(bytes: &[u8], position: usize) -> Option<u32> {
    let bytes = bytes.get(position..position.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

pub(crate) fn u64_at(bytes: &[u8], position: usize) -> Option<u64> {
    let bytes = bytes.get(position..position.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}
