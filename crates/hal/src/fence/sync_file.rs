//! Kernel sync files: what they say of themselves beyond `poll`, and [`Timeline`], which makes them.
//!
//! A sync file polls as readable when its fences have ended, however they ended. That they failed
//! is in its information (`SYNC_IOC_FILE_INFO` in the kernel's `linux/sync_file.h`).
//!
//! A kernel with `CONFIG_SW_SYNC` makes them for whoever may open a certain file, which is the
//! superuser (the kernel's `drivers/dma-buf/sw_sync.c`). Each time that it is opened it is another
//! timeline, a counter from 0. A fence of a timeline signals when the counter reaches the fence's
//! value, and fails when the timeline is closed before.
//!
//! This is, beside `memory`, the only unsafe place of the crate: requests to the kernel.

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Setter, Updater, ioctl, opcode};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;

/// How the fences of a sync file stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// At least one goes on.
    Active,
    /// All have ended well.
    Signalled,
}

/// `struct sync_file_info`: bytes here, so that what is read out of it can be tested.
///
/// | bytes | field | |
/// |---|---|---|
/// | 0..32 | `name` | |
/// | 32..36 | `status` | below 0: negated error number; 0: active; 1: signalled |
/// | 36..40 | `flags` | must be 0 |
/// | 40..44 | `num_fences` | 0 asks for nothing about the single fences |
/// | 44..48 | `pad` | must be 0 |
/// | 48..56 | `sync_fence_info` | where that would go |
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct SyncFileInfo([u8; 56]);

/// `SYNC_IOC_FILE_INFO`
const FILE_INFO: Opcode = opcode::read_write::<SyncFileInfo>(b'>', 4);

impl SyncFileInfo {
    /// Asks for the status and for nothing else.
    const QUESTION: Self = Self([0; 56]);

    fn status(&self) -> io::Result<Progress> {
        let [.., b0, b1, b2, b3] = *self.0.first_chunk::<36>().unwrap_or(&[0; 36]);
        match i32::from_ne_bytes([b0, b1, b2, b3]) {
            0 => Ok(Progress::Active),
            error @ ..0 => Err(io::Error::from_raw_os_error(error.saturating_neg())),
            1.. => Ok(Progress::Signalled),
        }
    }
}

/// What a sync file says of itself, with the error number of one that failed; `None` if the
/// descriptor is something else.
pub(super) fn status(fd: BorrowedFd<'_>) -> Option<io::Result<Progress>> {
    // A sync file is no file with a name. To anything that has one, a device above all, the number
    // of the request may mean something else, so it is not even asked.
    if FileType::from_raw_mode(fstat(fd).ok()?.st_mode) != FileType::Unknown {
        return None;
    }
    let mut info = SyncFileInfo::QUESTION;
    loop {
        // SAFETY: the number is that of SYNC_IOC_FILE_INFO, with which the kernel reads and writes
        // a `struct sync_file_info`: 56 bytes, aligned to 8, as `SyncFileInfo` is, any bytes being
        // a valid one. It follows the pointer inside only if `num_fences` is not 0, and that is 0.
        // Descriptors that are no sync file refuse the number; the other files without a name that
        // Linux has do not use it.
        match unsafe { ioctl(fd, Updater::<FILE_INFO, _>::new(&mut info)) } {
            Ok(()) => return Some(info.status()),
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Where kernels have the file that makes timelines: older ones of Android, and all others.
const PLACES: [&str; 2] = ["/dev/sw_sync", "/sys/kernel/debug/sync/sw_sync"];

/// A timeline of the kernel with one fence, which is signalled by [`signal`](Self::signal), and fails
/// when this is dropped before, or the process ends.
#[derive(Debug)]
pub(super) struct Timeline(OwnedFd);

/// `struct sw_sync_create_fence_data`
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct CreateFence {
    /// What the timeline's counter must reach.
    value: u32,
    /// For people; ends with a 0.
    name: [u8; 32],
    /// Answer: the sync file's descriptor.
    fence: i32,
}

/// `SW_SYNC_IOC_CREATE_FENCE`
const CREATE_FENCE: Opcode = opcode::read_write::<CreateFence>(b'W', 0);
/// `SW_SYNC_IOC_INC`
const INCREMENT: Opcode = opcode::write::<u32>(b'W', 1);

impl Timeline {
    /// A timeline and its fence, if the kernel makes any for this process; `None` otherwise, which is
    /// found out once.
    pub(super) fn create() -> Option<Result<(Self, OwnedFd), Errno>> {
        static PLACE: OnceLock<Option<&str>> = OnceLock::new();
        let place = PLACE.get_or_init(|| PLACES.into_iter().find(|place| works(place)));
        place.map(Self::create_at)
    }

    fn create_at(place: &str) -> Result<(Self, OwnedFd), Errno> {
        let timeline = open(place, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let mut created = CreateFence { value: 1, name: [0; 32], fence: -1 };
        created.name[..5].copy_from_slice(b"nnhal");
        // SAFETY: the number is that of SW_SYNC_IOC_CREATE_FENCE, with which the kernel reads and
        // writes a `struct sw_sync_create_fence_data`: 40 bytes, aligned to 4, as `CreateFence` is,
        // any bytes being a valid one. Both places are names that only the superuser can give, and
        // that the kernel gives to this.
        unsafe { ioctl(&timeline, Updater::<CREATE_FENCE, _>::new(&mut created))? };
        if created.fence < 0 {
            return Err(Errno::BADF);
        }
        // SAFETY: the kernel has just made this descriptor, for us, and no one else knows it.
        let fence = unsafe { OwnedFd::from_raw_fd(created.fence) };
        Ok((Self(timeline), fence))
    }

    /// The fence has signalled after this.
    pub(super) fn signal(&self) -> Result<(), Errno> {
        // SAFETY: the number is that of SW_SYNC_IOC_INC, with which the kernel reads a `u32`. The
        // descriptor is a timeline: it has made a fence.
        unsafe { ioctl(&self.0, Setter::<INCREMENT, u32>::new(1)) }
    }
}

#[cfg(test)]
impl AsFd for Timeline {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether sync files are made here that signal, and that fail when they are given up, which they do
/// not in kernels before 4.14.
fn works(place: &str) -> bool {
    let is_active = |fence: &OwnedFd| matches!(status(fence.as_fd()), Some(Ok(Progress::Active)));
    let (Ok((first, signalled)), Ok((second, given_up))) =
        (Timeline::create_at(place), Timeline::create_at(place))
    else {
        return false;
    };
    let were_active = is_active(&signalled) && is_active(&given_up);
    let has_signalled = first.signal().is_ok()
        && matches!(status(signalled.as_fd()), Some(Ok(Progress::Signalled)));
    drop(second);
    were_active && has_signalled && matches!(status(given_up.as_fd()), Some(Err(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    /// An answer as the kernel writes it.
    fn answer(status: i32) -> SyncFileInfo {
        let mut bytes = [0xA5; 56];
        bytes[..32].copy_from_slice(b"a timeline and its point\0\0\0\0\0\0\0\0");
        bytes[32..36].copy_from_slice(&status.to_ne_bytes());
        bytes[40..44].copy_from_slice(&3_u32.to_ne_bytes());
        SyncFileInfo(bytes)
    }

    #[test]
    fn fence_8_the_status_of_a_sync_file_is_read_from_its_information() {
        assert_eq!(answer(0).status().unwrap(), Progress::Active);
        assert_eq!(answer(1).status().unwrap(), Progress::Signalled);
        for errno in [Errno::TIMEDOUT, Errno::IO, Errno::CANCELED] {
            let error = answer(-errno.raw_os_error()).status().unwrap_err();
            assert_eq!(error.raw_os_error(), Some(errno.raw_os_error()));
        }
        // No error number, but no reason to panic either.
        assert!(answer(i32::MIN).status().is_err());
    }

    #[test]
    fn fence_8_the_question_is_the_kernels() {
        // `_IOWR('>', 4, struct sync_file_info)`: direction 3, 56 bytes, group 0x3e, number 4.
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        assert_eq!(FILE_INFO, 0xC038_3E04);
        assert_eq!((size_of::<SyncFileInfo>(), align_of::<SyncFileInfo>()), (56, 8));
        assert_eq!(SyncFileInfo::QUESTION.0, [0; 56]);
    }

    #[test]
    fn fence_8_what_makes_fences_is_the_kernels() {
        // `_IOWR('W', 0, struct sw_sync_create_fence_data)`, `_IOW('W', 1, __u32)`.
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        assert_eq!((CREATE_FENCE, INCREMENT), (0xC028_5700, 0x4004_5701));
        assert_eq!((size_of::<CreateFence>(), align_of::<CreateFence>()), (40, 4));
        let offsets =
            (std::mem::offset_of!(CreateFence, name), std::mem::offset_of!(CreateFence, fence));
        assert_eq!(offsets, (4, 36));
    }

    #[test]
    fn fence_7_a_timeline_signals_its_fence_or_fails_it() {
        let Some(created) = Timeline::create() else {
            // The kernel has none, or not for us.
            println!("not run: no {PLACES:?}");
            assert!(!PLACES.into_iter().any(works));
            return;
        };
        let (timeline, fence) = created.unwrap();
        assert_eq!(status(fence.as_fd()).unwrap().unwrap(), Progress::Active);
        timeline.signal().unwrap();
        drop(timeline);
        assert_eq!(status(fence.as_fd()).unwrap().unwrap(), Progress::Signalled);
        let (timeline, fence) = Timeline::create().unwrap().unwrap();
        drop(timeline);
        let error = status(fence.as_fd()).unwrap().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::NOENT.raw_os_error()));
        println!("run with the kernel's sync files");
    }

    #[test]
    fn what_makes_no_sync_files_is_not_chosen() {
        assert!(!works("/nothing/here") && !works("/dev/null") && !works("/dev"));
    }

    #[test]
    fn fence_8_other_descriptors_are_not_taken_for_sync_files() {
        let event = eventfd(1, EventfdFlags::CLOEXEC).unwrap();
        let (socket, _other) = UnixStream::pair().unwrap();
        let (reading, writing) = rustix::pipe::pipe().unwrap();
        let file = tempfile::tempfile().unwrap();
        let device = std::fs::File::open("/dev/null").unwrap();
        let others =
            [event.as_fd(), socket.as_fd(), reading.as_fd(), writing.as_fd(), file.as_fd()];
        for other in others.into_iter().chain([device.as_fd()]) {
            assert!(status(other).is_none(), "{other:?}");
        }
    }
}
