//! [`KnownFile`]: what this user's programs know of files that they have read before, so that long ones are not read once more just to learn that
//! they are the same: a hash, under the [`Stamp`] that the file had then.
//!
//! Records are in the user's state directory, where no one else writes: `nnhal/known-files`. There is a fixed number of them; a file whose
//! place is taken takes it over. They last until the machine is started anew, since numbers of devices do.

use crate::cache::state_directory;
use crate::stamp::Stamp;
use std::fs;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many records there are at most.
const RECORDS: u64 = 4096;

/// A hash of what is in a file.
pub type Hash = [u8; 32];

/// So few bytes are read about as fast as what is known of a file is found.
const SHORT: u64 = 1 << 18;

/// The hash that `read` makes of `length` bytes of a file from `offset` on. It is not called for a long part of a file on a disk whose hash
/// was made before, by a program of this user, if the file was not changed since. `what` says how the hash is made.
///
/// # Errors
/// Those of `read`.
pub fn hash_of<E>(
    what: &'static str,
    file: impl AsFd,
    offset: u64,
    length: u64,
    read: impl FnOnce() -> Result<Hash, E>,
) -> Result<Hash, E> {
    let known =
        (length >= SHORT).then(|| KnownFile::settled(what, &file, offset, length)).flatten();
    let Some(known) = known.filter(|known| known.stamp.is_on_disk()) else { return read() };
    if let Some(hash) = known.hash() {
        return Ok(hash);
    }
    let hash = read()?;
    if KnownFile::of(what, &file, offset, length) == Some(known) {
        known.remember(&hash);
    }
    Ok(hash)
}

/// A part of a file as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownFile {
    stamp: Stamp,
    /// Where the part begins, and its length.
    part: [u64; 2],
    /// How its hash is made.
    what: &'static str,
}

impl KnownFile {
    /// `length` bytes of a file from `offset` on, with a hash that is made as `what` says. `None`: nothing can be known of it.
    pub fn of(what: &'static str, file: impl AsFd, offset: u64, length: u64) -> Option<Self> {
        Stamp::of(file).map(|stamp| Self { stamp, part: [offset, length], what })
    }

    /// The same, so that any change from now on makes another one, see [`Stamp::settled`].
    pub fn settled(what: &'static str, file: impl AsFd, offset: u64, length: u64) -> Option<Self> {
        Stamp::settled(file).map(|stamp| Self { stamp, part: [offset, length], what })
    }

    /// The hash that was remembered for these bytes.
    pub fn hash(&self) -> Option<Hash> {
        let record = fs::read(self.path()?).ok()?;
        let (found, hash) = record.split_first_chunk::<32>()?;
        if *found != self.name()? {
            return None;
        }
        hash.try_into().ok()
    }

    /// Remembers the hash of these bytes: of one that was settled, after which they were read, and the file is the same. What
    /// cannot be written is not remembered. Whether it is.
    pub fn remember(&self, hash: &Hash) -> bool {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let (Some(path), Some(name)) = (self.path(), self.name()) else { return false };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let partial = path.with_extension(format!("{}-{number}.partial", std::process::id()));
        let written = fs::write(&partial, [name, *hash].concat());
        let outcome = written.and_then(|()| fs::rename(&partial, path));
        if outcome.is_err() {
            let _ = fs::remove_file(partial);
        }
        outcome.is_ok()
    }

    /// The record of this part of the file, whatever is in it.
    fn path(&self) -> Option<PathBuf> {
        static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
        let folder = FOLDER.get_or_init(|| state_directory("known-files").ok()).as_ref()?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.what.as_bytes());
        for number in self.stamp.place().iter().chain(&self.part) {
            hasher.update(&number.to_le_bytes());
        }
        let [a, b, ..] = *hasher.finalize().as_bytes();
        Some(folder.join(format!("{:03x}", u64::from(u16::from_le_bytes([a, b])) % RECORDS)))
    }

    /// What names these bytes.
    fn name(&self) -> Option<Hash> {
        static BOOT: OnceLock<Option<Vec<u8>>> = OnceLock::new();
        let boot =
            BOOT.get_or_init(|| fs::read("/proc/sys/kernel/random/boot_id").ok()).as_ref()?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(boot).update(&self.stamp.to_bytes()).update(self.what.as_bytes());
        for number in self.part {
            hasher.update(&number.to_le_bytes());
        }
        Some(hasher.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_was_remembered_is_known_until_the_file_changes() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[1; 100]).unwrap();
        let of = |offset| KnownFile::settled("a", &file, offset, 50);
        let (Some(known), Some(other)) = (of(0), of(50)) else { return };
        if state_directory("known-files").is_err() {
            return;
        }
        assert_eq!(known.hash(), None);
        assert!(known.remember(&[7; 32]));
        assert_eq!(of(0).unwrap().hash(), Some([7; 32]));
        assert_eq!(other.hash(), None);
        assert_eq!(KnownFile::of("b", &file, 0, 50).unwrap().hash(), None);
        assert!(known.remember(&[8; 32]));
        assert_eq!(known.hash(), Some([8; 32]));
        let before = known.path();
        file.write_all(&[1]).unwrap();
        let after = KnownFile::of("a", &file, 0, 50).unwrap();
        assert_eq!((after.hash(), after.path()), (None, before));
    }

    #[test]
    fn a_long_part_of_a_file_is_read_once() {
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.write_all(&vec![1; 1 << 19]).unwrap();
        let reads = std::cell::Cell::new(0);
        let hash = |length| {
            hash_of("a", &file, 0, length, || {
                reads.set(reads.get() + 1);
                Ok::<_, ()>([9; 32])
            })
        };
        let is_known = KnownFile::of("a", &file, 0, 1).is_some_and(|it| it.stamp.is_on_disk());
        let can_be = is_known && state_directory("known-files").is_ok();
        for _ in 0..3 {
            assert_eq!(hash(1 << 19), Ok([9; 32]));
        }
        assert_eq!(reads.get(), if can_be { 1 } else { 3 });
        for _ in 0..3 {
            assert_eq!(hash(1000), Ok([9; 32]));
        }
        assert_eq!(reads.get(), if can_be { 4 } else { 6 });
        assert_eq!(hash_of("a", &file, 1, 1 << 18, || Err("no")), Err("no"));
    }

    #[test]
    fn a_record_that_was_spoilt_says_nothing() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let Some(known) = KnownFile::of("a", &file, 0, 50) else { return };
        let Some(path) = known.path() else { return };
        assert!(known.remember(&[7; 32]));
        let whole = fs::read(&path).unwrap();
        for spoilt in [&whole[..63], &whole[..31], &[], &[&whole[..], &[0]].concat()] {
            fs::write(&path, spoilt).unwrap();
            assert_eq!(known.hash(), None);
        }
        fs::remove_file(&path).unwrap();
    }
}
