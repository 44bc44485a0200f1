//! [`Stamp`]: whether a file is as it was, by what the system writes down of each change.

use rustix::fs::{FileType, fstat, fstatfs};
use rustix::time::{ClockId, clock_gettime};
use std::os::fd::{AsFd, BorrowedFd};
use std::thread::sleep;
use std::time::Duration;

/// File systems whose times are those of this machine's clock, by the first 32 bits of what `statfs` calls their type.
const DISKS: [u32; 5] = [
    0x0000_EF53, // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683E, // Btrfs
    0xF2F5_2010, // F2FS
    0x794C_7630, // overlayfs, the root of most containers
];
const TMPFS: u32 = 0x0102_1994;

/// Nanoseconds between times of a file system that does not keep units smaller than seconds.
const COARSEST: i128 = 2_000_000_000;
/// How long [`Stamp::settled`] waits at most: more than the system's clock takes for a step.
const LONGEST_WAIT: Duration = Duration::from_millis(40);

/// Which file it is, how long, and when the system last saw a change. No program can set that time of change (`st_ctime`) without setting
/// the machine's clock. Two equal stamps are of one file with the same bytes, if the first was a [settled](Self::settled) one.
///
/// The system does not see each write through a mapping: on disks it sees the first one after the page was last
/// written back, on tmpfs none.
///
/// ```
/// use nnhal_driver::stamp::Stamp;
/// use std::io::Write;
///
/// let mut file = tempfile::tempfile()?;
/// file.write_all(b"abc")?;
/// if let Some(before) = Stamp::settled(&file) {
///     assert_eq!(Stamp::of(&file), Some(before));
///     file.write_all(b"d")?;
///     assert_ne!(Stamp::of(&file), Some(before));
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    /// Seconds and nanoseconds of `st_mtime`.
    modified: [i64; 2],
    /// Of `st_ctime`.
    changed: [i64; 2],
    is_on_disk: bool,
}

impl Stamp {
    /// The stamp of an open file. `None`: it is not a regular file, or its file system is not one of this machine's disks or its
    /// memory; others take their times from elsewhere.
    pub fn of(file: impl AsFd) -> Option<Self> {
        Self::taken(file.as_fd()).map(|(stamp, _)| stamp)
    }

    /// The same, and any change from now on leaves another one: the clock from which the system takes times has moved on since
    /// the last change. That may have to be waited for, some milliseconds. `None` also if the last change was seconds ahead of the clock, or
    /// too near where times are seconds.
    pub fn settled(file: impl AsFd) -> Option<Self> {
        let step = Duration::from_millis(1);
        let mut waited = Duration::ZERO;
        loop {
            match Self::taken(file.as_fd())? {
                (stamp, 0) => return Some(stamp),
                (_, left) if left > LONGEST_WAIT.as_nanos() || waited >= LONGEST_WAIT => {
                    return None;
                }
                _ => sleep(step),
            }
            waited += step;
        }
    }

    /// The stamp, and about how many nanoseconds it takes until it is settled.
    #[allow(clippy::useless_conversion, clippy::unnecessary_fallible_conversions)] // The widths of these fields differ between machines.
    fn taken(file: BorrowedFd<'_>) -> Option<(Self, u128)> {
        // First: what changes after the stamp is taken gets a time that is no earlier.
        let now = clock_gettime(ClockId::RealtimeCoarse);
        let [a, b, c, d, ..] = fstatfs(file).ok()?.f_type.to_le_bytes();
        let file_system = u32::from_le_bytes([a, b, c, d]);
        let is_on_disk = DISKS.contains(&file_system);
        let stat = fstat(file).ok()?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !is_file || !(is_on_disk || file_system == TMPFS) {
            return None;
        }
        let stamp = Self {
            device: u64::try_from(stat.st_dev).ok()?,
            inode: u64::try_from(stat.st_ino).ok()?,
            length: u64::try_from(stat.st_size).ok()?,
            modified: [stat.st_mtime.into(), i64::try_from(stat.st_mtime_nsec).ok()?],
            changed: [stat.st_ctime.into(), i64::try_from(stat.st_ctime_nsec).ok()?],
            is_on_disk,
        };
        let now = in_nanoseconds(i64::from(now.tv_sec), i64::from(now.tv_nsec));
        Some((stamp, stamp.left_at(now)))
    }

    /// Nanoseconds until it is settled, at a time.
    fn left_at(&self, now: i128) -> u128 {
        let [seconds, nanoseconds] = self.changed;
        let granule = if nanoseconds == 0 { COARSEST } else { 1 };
        let settled = in_nanoseconds(seconds, nanoseconds) + granule;
        u128::try_from(settled - now).unwrap_or(0)
    }

    /// Whether the file is on a disk, and not in memory.
    pub fn is_on_disk(&self) -> bool {
        self.is_on_disk
    }

    /// Which file it is: its file system and its number there.
    pub fn place(&self) -> [u64; 2] {
        [self.device, self.inode]
    }

    /// All of it, the same for equal stamps only.
    pub fn to_bytes(&self) -> [u8; 56] {
        let numbers = [
            self.device.to_le_bytes(),
            self.inode.to_le_bytes(),
            self.length.to_le_bytes(),
            self.modified[0].to_le_bytes(),
            self.modified[1].to_le_bytes(),
            self.changed[0].to_le_bytes(),
            self.changed[1].to_le_bytes(),
        ];
        let mut bytes = [0; 56];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number);
        }
        bytes
    }
}

fn in_nanoseconds(seconds: i64, nanoseconds: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, FileTimes};
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_change_is_seen_whatever_is_done_about_it() {
        let file = tempfile::tempfile().unwrap();
        for round in 0..20 {
            file.write_all_at(&[1; 100], 0).unwrap();
            let Some(before) = Stamp::settled(&file) else { return };
            assert_eq!(Stamp::of(&file), Some(before));
            let modified = file.metadata().unwrap().modified().unwrap();
            // At once, the same number of bytes, and the time of the last one set back.
            file.write_all_at(&[2; 100], 0).unwrap();
            file.set_times(FileTimes::new().set_modified(modified)).unwrap();
            let after = Stamp::of(&file).unwrap();
            assert_eq!((after.modified, after.length), (before.modified, before.length));
            assert_ne!(after, before, "round {round}");
            assert_ne!(after.to_bytes(), before.to_bytes());
        }
    }

    #[test]
    fn a_stamp_settles_when_the_clock_moves_on() {
        let file = tempfile::tempfile().unwrap();
        let Some(stamp) = Stamp::of(&file) else { return };
        let at = |nanoseconds| Stamp { changed: [5, nanoseconds], ..stamp };
        let left = |nanoseconds, now| at(nanoseconds).left_at(now);
        assert_eq!(left(7, 5_000_000_007), 1);
        assert_eq!(left(7, 5_000_000_008), 0);
        assert_eq!(left(7, 9_000_000_000), 0);
        // A file system that may count in seconds.
        assert_eq!(left(0, 6_999_999_999), 1);
        assert_eq!(left(0, 7_000_000_000), 0);
    }

    #[test]
    fn files_of_others_clocks_have_none() {
        assert_eq!(Stamp::of(File::open("/proc/version").unwrap()), None);
        assert_eq!(Stamp::of(File::open("/dev/null").unwrap()), None);
        assert_eq!(Stamp::of(File::open("/").unwrap()), None);
    }
}
