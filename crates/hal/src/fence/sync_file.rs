//! Kernel sync files: what they say of themselves beyond `poll`.
//!
//! A sync file polls as readable when its fences have ended, however they ended. That they failed
//! stands in its information (`SYNC_IOC_FILE_INFO` in the kernel's `linux/sync_file.h`).
//!
//! This is, beside `memory`, the only unsafe place of the crate: one request to the kernel.

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use std::io;
use std::os::fd::BorrowedFd;

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
