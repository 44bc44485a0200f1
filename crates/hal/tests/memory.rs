//! Memory that others change, cut short, or describe wrongly (contract: section 15).

use hal::memory::{MemoryError, MemoryKind, Protection};
use hal::{ErrorStatus, Memory};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::pwrite;
use std::fs::File;
use std::os::fd::OwnedFd;

fn memfd(bytes: &[u8]) -> OwnedFd {
    let fd = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    pwrite(&fd, bytes, 0).unwrap();
    fd
}

fn share(fd: &OwnedFd) -> OwnedFd {
    fd.try_clone().unwrap()
}

#[test]
fn what_is_written_is_read_by_everyone() {
    let memory = Memory::from_bytes(&[1, 2, 3, 4]).unwrap();
    let other = Memory::from_ashmem(share(&memory.parts().0[0]), 4).unwrap();
    memory.view().unwrap().write(1, &[9, 8]).unwrap();
    assert_eq!(other.view().unwrap().read_to_vec(0, 4).unwrap(), [1, 9, 8, 4]);
    assert!(memory.view().unwrap().is_mapped());
}

#[test]
fn sec_2_new_memory_is_zero() {
    let memory = Memory::allocate(10_000).unwrap();
    assert!(memory.view().unwrap().read_to_vec(0, 10_000).unwrap().iter().all(|byte| *byte == 0));
}

#[test]
fn mem_1_other_names_are_refused() {
    let refused = Memory::from_parts("ion", vec![memfd(&[0; 8])], &[], 8).unwrap_err();
    assert_eq!(refused, MemoryError::UnknownKind { found: "ion".into() });
    assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
    assert!(Memory::from_parts("hardware_buffer_blob", vec![], &[], 8).is_err());
}

#[test]
fn mem_2_handles_must_hold_what_the_kind_wants() {
    let fd = memfd(&[0; 8]);
    let parts = |name, fds: usize, integers: &[i32], size| {
        Memory::from_parts(name, (0..fds).map(|_| share(&fd)).collect(), integers, size)
    };
    assert!(parts("ashmem", 1, &[], 8).is_ok());
    assert!(parts("ashmem", 0, &[], 8).is_err());
    assert!(parts("ashmem", 2, &[], 8).is_err());
    assert!(parts("ashmem", 1, &[0], 8).is_err());
    assert_eq!(
        parts("ashmem", 1, &[], 0).unwrap_err(),
        MemoryError::Empty { kind: MemoryKind::Ashmem }
    );
    assert!(parts("mmap_fd", 1, &[3, 0, 0], 8).is_ok());
    assert!(parts("mmap_fd", 1, &[3, 0], 8).is_err());
    assert_eq!(
        parts("mmap_fd", 1, &[4, 0, 0], 8).unwrap_err(),
        MemoryError::Protection { found: 4 }
    );
}

#[test]
fn mem_3_offsets_need_no_alignment() {
    let bytes: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    let fd = memfd(&bytes);
    for seals in [SealFlags::empty(), SealFlags::SHRINK] {
        fcntl_add_seals(&fd, seals).unwrap();
        let memory = Memory::from_file(share(&fd), Protection::READ, 4097, 100).unwrap();
        let view = memory.view().unwrap();
        assert_eq!(view.is_mapped(), seals.contains(SealFlags::SHRINK));
        assert_eq!(view.read_to_vec(0, 100).unwrap(), bytes[4097..4197]);
    }
}

#[test]
fn mem_4_what_is_written_to_a_file_is_there() {
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, &[0; 8]).unwrap();
    let fd = OwnedFd::from(file.try_clone().unwrap());
    let memory = Memory::from_file(fd, Protection::READ_WRITE, 2, 4).unwrap();
    let view = memory.view().unwrap();
    view.write(0, &[1, 2, 3, 4]).unwrap();
    view.flush().unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    let mut bytes = [0; 8];
    std::io::Read::read_exact(&mut file, &mut bytes).unwrap();
    assert_eq!(bytes, [0, 0, 1, 2, 3, 4, 0, 0]);
}

#[test]
fn mem_5_a_size_beyond_the_file_is_refused() {
    let fd = memfd(&[0; 8]);
    assert_eq!(
        Memory::from_ashmem(share(&fd), 9).unwrap_err(),
        MemoryError::Size { declared: 9, held: 8 }
    );
    assert!(Memory::from_file(share(&fd), Protection::READ, 4, 5).is_err());
    assert!(Memory::from_file(share(&fd), Protection::READ, u64::MAX, 2).is_err());
    let device = OwnedFd::from(File::open("/dev/zero").unwrap());
    assert!(Memory::from_file(device, Protection::READ, 0, 1).is_err());
}

#[test]
fn mem_5_a_file_cut_short_later_is_an_error_and_no_signal() {
    let fd = memfd(&[7; 8192]);
    let memory = Memory::from_ashmem(share(&fd), 8192).unwrap();
    let view = memory.view().unwrap();
    assert_eq!(view.read_to_vec(8000, 1).unwrap(), [7]);
    ftruncate(&fd, 100).unwrap();
    assert_eq!(view.read_to_vec(8000, 1).unwrap_err(), MemoryError::CutShort);
    assert_eq!(view.read_to_vec(0, 100).unwrap(), [7; 100]);
}

#[test]
fn mem_5_memory_of_our_own_cannot_be_cut_short() {
    let memory = Memory::allocate(4096).unwrap();
    assert!(ftruncate(&memory.parts().0[0], 0).is_err());
}

#[test]
fn mem_6_sizes_beyond_32_bits_are_kept_whole() {
    let fd = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
    let size = (1_u64 << 32) + 8;
    ftruncate(&fd, size).unwrap();
    let memory = Memory::from_ashmem(fd, size).unwrap();
    assert_eq!(memory.size(), size);
    assert!(memory.view().unwrap().read_to_vec(size - 1, 1).is_ok());
}

#[test]
fn ranges_outside_are_refused_before_anything_is_allocated() {
    let memory = Memory::allocate(8).unwrap();
    let view = memory.view().unwrap();
    assert!(matches!(view.read_to_vec(0, u64::MAX), Err(MemoryError::Range { .. })));
    assert!(matches!(view.read_to_vec(u64::MAX, 1), Err(MemoryError::Range { .. })));
    assert!(matches!(view.write(7, &[0; 2]), Err(MemoryError::Range { .. })));
    assert_eq!(view.read_to_vec(8, 0).unwrap(), [0; 0]);
}

#[test]
fn req_12_read_only_memory_is_not_written() {
    let fd = memfd(&[1; 8]);
    let memory = Memory::from_file(share(&fd), Protection::READ, 0, 8).unwrap();
    let view = memory.view().unwrap();
    assert!(!view.is_writable());
    assert_eq!(view.write(0, &[0]).unwrap_err(), MemoryError::Forbidden("written"));
    let write_only = Protection { read: false, write: true };
    let memory = Memory::from_file(share(&fd), write_only, 0, 8).unwrap();
    assert!(memory.view().unwrap().read_to_vec(0, 1).is_err());
    let read_only = OwnedFd::from(File::open("/proc/self/exe").unwrap());
    assert_eq!(
        Memory::from_file(read_only, Protection::READ_WRITE, 0, 8).unwrap_err(),
        MemoryError::Access
    );
    fcntl_add_seals(&fd, SealFlags::WRITE).unwrap();
    assert!(!Memory::from_ashmem(fd, 8).unwrap().view().unwrap().is_writable());
}

#[test]
fn hardware_buffers_are_kept_but_not_read_here() {
    let parts = vec![memfd(&[0; 8])];
    let memory = Memory::from_parts("hardware_buffer", parts, &[1, 2, 3], 0).unwrap();
    assert_eq!(memory.parts().1, [1, 2, 3]);
    let refused = memory.view().unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
    assert!(matches!(refused, MemoryError::NotMappable { .. }));
}

#[test]
fn sec_1_threads_may_read_and_write_at_once() {
    let memory = Memory::allocate(4096).unwrap();
    std::thread::scope(|scope| {
        for value in [0x00_u8, 0xFF] {
            let view = memory.view().unwrap();
            scope.spawn(move || (0..500).for_each(|_| view.write(0, &[value; 4096]).unwrap()));
        }
        let view = memory.view().unwrap();
        scope.spawn(move || {
            for _ in 0..500 {
                let bytes = view.read_to_vec(0, 4096).unwrap();
                assert!(bytes.iter().all(|byte| [0x00, 0xFF].contains(byte)));
            }
        });
    });
}

#[test]
fn sec_6_descriptors_are_closed_with_the_memory() {
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let fd = memfd(&[0; 8]);
    // Other tests of this process open and close descriptors too: only a leak keeps growing.
    let before = open();
    for _ in 0..200 {
        let memory = Memory::from_ashmem(share(&fd), 8).unwrap();
        memory.view().unwrap();
        assert!(Memory::from_ashmem(share(&fd), 9).is_err());
    }
    assert!(open() < before + 100);
}
