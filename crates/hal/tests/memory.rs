//! Memory that others change, cut short, or describe wrongly (contract: section 15).

use nnhal_hal::memory::{MemoryError, MemoryKind, Protection};
use nnhal_hal::{ErrorStatus, Memory};
use rustix::fs::{
    MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create, open,
};
use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd, pwrite};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

fn memfd(bytes: &[u8]) -> OwnedFd {
    let fd = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    pwrite(&fd, bytes, 0).unwrap();
    fd
}

fn share(fd: &OwnedFd) -> OwnedFd {
    fd.try_clone().unwrap()
}

/// The same file, opened anew with other flags.
fn reopened(fd: &OwnedFd, flags: OFlags) -> OwnedFd {
    open(format!("/proc/self/fd/{}", fd.as_raw_fd()), flags, Mode::empty()).unwrap()
}

fn length(fd: &OwnedFd) -> u64 {
    u64::try_from(rustix::fs::fstat(fd).unwrap().st_size).unwrap()
}

/// Memory with these bytes that is accessed by position, and some that is mapped.
fn of_both_backings(bytes: &[u8]) -> [Memory; 2] {
    let positioned = Memory::from_ashmem(memfd(bytes), bytes.len() as u64).unwrap();
    let mapped = Memory::from_bytes(bytes).unwrap();
    assert!(!positioned.view().unwrap().is_mapped() && mapped.view().unwrap().is_mapped());
    [positioned, mapped]
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
    assert_eq!(
        view.read_to_vec(8000, 1).unwrap_err(),
        MemoryError::CutShort { expected: 8001, found: 8000 }
    );
    assert_eq!(
        view.read_to_vec(96, 8).unwrap_err(),
        MemoryError::CutShort { expected: 104, found: 100 }
    );
    assert_eq!(view.read_to_vec(0, 100).unwrap(), [7; 100]);
}

#[test]
fn mem_5_memory_of_our_own_cannot_be_cut_short() {
    let memory = Memory::allocate(4096).unwrap();
    assert_eq!(ftruncate(&memory, 0), Err(Errno::PERM));
    assert_eq!(ftruncate(&memory, 8192), Err(Errno::PERM));
    assert_eq!(fcntl_add_seals(&memory, SealFlags::WRITE), Err(Errno::PERM));
}

/// What a mapping would be made of has a seal against shrinking, but shrank before it got that.
#[test]
fn mem_5_a_file_cut_short_and_then_sealed_is_an_error_and_no_signal() {
    let fd = memfd(&[7; 8192]);
    let memory = Memory::from_ashmem(share(&fd), 8192).unwrap();
    ftruncate(&fd, 100).unwrap();
    fcntl_add_seals(&fd, SealFlags::SHRINK).unwrap();
    let refused = memory.view().unwrap_err();
    assert_eq!(refused, MemoryError::Size { declared: 8192, held: 100 });
    assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
    // A refusal is not for ever.
    ftruncate(&fd, 8192).unwrap();
    let view = memory.view().unwrap();
    assert!(view.is_mapped());
    assert_eq!(view.read_to_vec(99, 2).unwrap(), [7, 0]);
}

#[test]
fn mem_5_a_file_cut_short_is_not_made_longer_by_writing() {
    let fd = memfd(&[7; 8192]);
    let view = Memory::from_ashmem(share(&fd), 8192).unwrap().view().unwrap();
    ftruncate(&fd, 100).unwrap();
    assert_eq!(
        view.write(96, &[1; 8]).unwrap_err(),
        MemoryError::CutShort { expected: 104, found: 100 }
    );
    assert_eq!(length(&fd), 100);
    view.write(96, &[1; 4]).unwrap();
}

/// The kernel writes to the end of such a file, whatever the position.
#[test]
fn mem_5_a_descriptor_that_appends_is_not_written() {
    let fd = memfd(&[7; 8]);
    let appending = || reopened(&fd, OFlags::RDWR | OFlags::APPEND);
    assert!(matches!(
        Memory::from_file(appending(), Protection::READ_WRITE, 0, 8).unwrap_err(),
        MemoryError::Access { allowed: Protection::READ, .. }
    ));
    let memory = Memory::from_ashmem(appending(), 8).unwrap();
    assert!(!memory.is_writable());
    assert!(memory.view().unwrap().write(0, &[1]).is_err());
    assert_eq!(length(&fd), 8);
}

#[test]
fn mem_2_descriptors_of_other_things_are_refused() {
    let (reading, writing) = rustix::pipe::pipe().unwrap();
    let directory = File::open("/").unwrap().into();
    let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    for fd in [reading, directory, socket.into()] {
        let refused = Memory::from_file(fd, Protection::READ, 0, 8).unwrap_err();
        assert_eq!(refused, MemoryError::NotMemory);
        assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
    }
    drop(writing);
    let none = Protection { read: false, write: false };
    let named = reopened(&memfd(&[0; 8]), OFlags::PATH);
    assert_eq!(
        Memory::from_file(named, Protection::READ, 0, 8).unwrap_err(),
        MemoryError::Access { asked: Protection::READ, allowed: none }
    );
}

#[test]
fn mem_6_offsets_beyond_32_bits_are_kept_whole() {
    let (fd, offset) = (memfd(&[]), (7_u64 << 32) + (1 << 31) + 5);
    pwrite(&fd, &[1, 2, 3], offset).unwrap();
    let low = i32::MIN + 5;
    let memory = Memory::from_parts("mmap_fd", vec![share(&fd)], &[1, low, 7], 3).unwrap();
    assert_eq!(memory.view().unwrap().read_to_vec(0, 3).unwrap(), [1, 2, 3]);
    assert_eq!(memory.parts().1, [1, low, 7]);
    let memory = Memory::from_file(fd, Protection::READ, offset, 3).unwrap();
    assert_eq!((memory.name(), memory.parts().1), ("mmap_fd", &[1, low, 7][..]));
}

/// A file with holes may say any length. The process must not abort for want of room.
#[test]
fn sec_3_a_copy_for_which_there_is_no_room_is_an_error() {
    let (fd, size) = (memfd(&[]), 1 << 60);
    ftruncate(&fd, size).unwrap();
    let view = Memory::from_ashmem(fd, size).unwrap().view().unwrap();
    let refused = view.read_to_vec(0, size).unwrap_err();
    assert_eq!(refused, MemoryError::NoRoom { length: size });
    assert_eq!(refused.status(), ErrorStatus::ResourceExhaustedTransient);
}

#[test]
fn bytes_are_made_zero_and_nothing_beside_them() {
    for memory in of_both_backings(&[7; 20_000]) {
        let view = memory.view().unwrap();
        view.fill_zero(1, 19_998).unwrap();
        view.fill_zero(0, 0).unwrap();
        let bytes = view.read_to_vec(0, 20_000).unwrap();
        assert_eq!((bytes[0], bytes[19_999]), (7, 7));
        assert!(bytes[1..19_999].iter().all(|byte| *byte == 0));
        assert!(matches!(view.fill_zero(1, 20_000), Err(MemoryError::Range { .. })));
        assert_eq!(view.read_to_vec(0, 1).unwrap(), [7]);
    }
}

#[test]
fn bytes_are_copied_between_memories_of_any_backing() {
    let bytes: Vec<u8> = (0..=250).cycle().take(20_000).collect();
    for source in of_both_backings(&bytes) {
        for target in of_both_backings(&[0xFF; 19_000]) {
            let (source, target) = (source.view().unwrap(), target.view().unwrap());
            target.copy_from(3, &source, 1000, 18_990).unwrap();
            let copied = target.read_to_vec(0, 19_000).unwrap();
            assert_eq!(copied[..3], [0xFF; 3]);
            assert_eq!(copied[3..18_993], bytes[1000..19_990]);
            assert_eq!(copied[18_993..], [0xFF; 7]);
            // Neither range may be outside, and nothing is copied if one does.
            let refused = target.copy_from(0, &source, 19_000, 1001).unwrap_err();
            assert_eq!(refused, MemoryError::Range { offset: 19_000, length: 1001, size: 20_000 });
            let refused = target.copy_from(18_000, &source, 0, 1001).unwrap_err();
            assert_eq!(refused, MemoryError::Range { offset: 18_000, length: 1001, size: 19_000 });
            assert_eq!(target.read_to_vec(0, 19_000).unwrap(), copied);
        }
    }
}

/// The system does not map what cannot be read: such memory is written by position.
#[test]
fn a_descriptor_for_writing_only_is_written() {
    let fd = memfd(&[0; 8]);
    fcntl_add_seals(&fd, SealFlags::SHRINK).unwrap();
    let only_write = Protection { read: false, write: true };
    let writing = || reopened(&fd, OFlags::WRONLY);
    let memory = Memory::from_file(writing(), only_write, 0, 8).unwrap();
    memory.view().unwrap().write(2, &[5]).unwrap();
    let other = Memory::from_ashmem(share(&fd), 8).unwrap().view().unwrap();
    assert_eq!(other.read_to_vec(0, 4).unwrap(), [0, 0, 5, 0]);
    // Ashmem is for reading, in the least.
    assert_eq!(
        Memory::from_ashmem(writing(), 8).unwrap_err(),
        MemoryError::Access { asked: Protection::READ, allowed: only_write }
    );
}

#[test]
fn clones_are_the_same_memory_and_others_are_not() {
    let memory = Memory::from_bytes(&[1]).unwrap();
    assert!(memory.is_same(&memory.clone()));
    let other = Memory::from_ashmem(share(&memory.parts().0[0]), 1).unwrap();
    assert!(!memory.is_same(&other));
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
        MemoryError::Access { asked: Protection::READ_WRITE, allowed: Protection::READ }
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
fn mem_5_a_hardware_buffer_of_bytes_is_read_and_written_where_its_descriptor_is_plain() {
    let of = |fds: Vec<OwnedFd>, size| {
        Memory::from_parts("hardware_buffer_blob", fds, &[1, 2], size).unwrap()
    };
    let fd = memfd(&[7; 8]);
    let view = of(vec![share(&fd)], 8).view().unwrap();
    assert_eq!(view.read_to_vec(0, 8).unwrap(), [7; 8]);
    view.write(2, &[9]).unwrap();
    assert_eq!(of(vec![share(&fd)], 4).view().unwrap().read_to_vec(0, 4).unwrap(), [7, 7, 9, 7]);
    // It is kept as it is said to be, and refused where its bytes are wanted.
    let refused = |fds, size| of(fds, size).view().unwrap_err();
    assert_eq!(refused(vec![share(&fd)], 9), MemoryError::Size { declared: 9, held: 8 });
    assert!(matches!(refused(vec![share(&fd)], 0), MemoryError::Empty { .. }));
    let several = refused(vec![share(&fd), share(&fd)], 8);
    assert!(matches!(several, MemoryError::NotMappable { .. }));
    let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    assert_eq!(refused(vec![socket.into()], 8), MemoryError::NotMemory);
    let read_only = File::open(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap();
    assert!(!of(vec![read_only.into()], 8).is_writable());
}

/// Each through a mapping of its own, as processes would.
#[test]
fn sec_1_threads_may_read_and_write_at_once() {
    let memory = Memory::allocate(4096).unwrap();
    let view = || {
        let view = Memory::from_ashmem(share(&memory.parts().0[0]), 4096).unwrap().view().unwrap();
        assert!(view.is_mapped());
        view
    };
    std::thread::scope(|scope| {
        for value in [0x00_u8, 0xFF] {
            let view = view();
            scope.spawn(move || (0..500).for_each(|_| view.write(0, &[value; 4096]).unwrap()));
        }
        let view = view();
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
        assert!(Memory::from_parts("ashmem", vec![share(&fd), share(&fd)], &[], 8).is_err());
        assert!(Memory::from_parts("ion", vec![share(&fd)], &[], 8).is_err());
    }
    assert!(open() < before + 100);
}

#[test]
fn sec_6_descriptors_are_closed_in_other_programs() {
    let inherited = || {
        let fd = memfd(&[0; 8]);
        fcntl_setfd(&fd, FdFlags::empty()).unwrap();
        vec![fd]
    };
    for (name, integers) in [("ashmem", &[][..]), ("mmap_fd", &[1, 0, 0]), ("hardware_buffer", &[])]
    {
        let memory = Memory::from_parts(name, inherited(), integers, 8).unwrap();
        assert_eq!(fcntl_getfd(&memory).unwrap(), FdFlags::CLOEXEC, "{name}");
    }
    assert_eq!(fcntl_getfd(Memory::allocate(8).unwrap()).unwrap(), FdFlags::CLOEXEC);
}

#[test]
fn sec_reading_a_hole_of_a_memfd_does_not_fill_it() {
    // As another process would have sent it.
    let allocated = Memory::allocate(256 << 20).unwrap();
    let memory =
        Memory::from_ashmem(allocated.as_fd().try_clone_to_owned().unwrap(), allocated.size())
            .unwrap();
    let view = memory.view().unwrap();
    assert!(view.is_mapped());
    let blocks = || rustix::fs::fstat(&memory).unwrap().st_blocks;
    let mut bytes = vec![1; 1 << 20];
    for at in 0..256 {
        view.read(at << 20, &mut bytes).unwrap();
        assert!(bytes.iter().all(|byte| *byte == 0));
    }
    assert_eq!(blocks(), 0);
    view.write(5000, &[1]).unwrap();
    assert_eq!(view.read_to_vec(4999, 3).unwrap(), [0, 1, 0]);
    assert!((1..=4096).contains(&blocks()), "one page, which may be a huge one");
}

#[test]
fn sec_3_memory_counts_as_its_clients_while_any_clone_is_there() {
    use nnhal_hal::client::{Client, ClientLimits, Holding};
    let client = Client::new("test", ClientLimits { memory: 100, ..ClientLimits::default() });
    let memory = Memory::allocate_for(&client, 60).unwrap();
    let refused = Memory::allocate_for(&client, 41).unwrap_err();
    assert!(matches!(refused, MemoryError::Limit(_)), "{refused}");
    assert_eq!(refused.status(), ErrorStatus::ResourceExhaustedTransient);
    let other = Memory::allocate(8).unwrap();
    assert!(other.held_by(&client, 41).is_err());
    other.held_by(&client, 40).unwrap();
    // What counts already counts once.
    memory.held_by(&client, 0).unwrap();
    assert_eq!(client.held(Holding::Memory), 100);
    let clone = memory.clone();
    drop((memory, other));
    assert_eq!(client.held(Holding::Memory), 60);
    drop(clone);
    assert_eq!(client.held(Holding::Memory), 0);
}

#[test]
fn sec_3_descriptors_count_until_they_are_closed() {
    use nnhal_hal::client::{Client, ClientError, ClientLimits, Holding};
    let client = Client::new("test", ClientLimits { descriptors: 2, ..ClientLimits::default() });
    let held = || client.held(Holding::Descriptors);
    let [first, second, third] = [(); 3].map(|()| Memory::from_bytes(&[1; 8]).unwrap());
    first.kept_by(&client).unwrap();
    second.kept_by(&client).unwrap();
    // What counts already counts once, also where no more may.
    first.clone().kept_by(&client).unwrap();
    let refused = third.kept_by(&client).unwrap_err();
    assert!(matches!(refused, ClientError::Limit { .. }), "{refused}");
    assert_eq!(held(), 2);
    drop(first);
    assert_eq!(held(), 1);
    third.kept_by(&client).unwrap();
    drop((second, third));
    assert_eq!(held(), 0);

    // A view that reads by position has the descriptor as well.
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, &[7; 8]).unwrap();
    let part = Memory::from_file(file.into(), Protection::READ, 0, 8).unwrap();
    part.kept_by(&client).unwrap();
    let view = part.view().unwrap();
    drop(part);
    assert_eq!((held(), view.read_to_vec(0, 1).unwrap()), (1, vec![7]));
    drop(view);
    assert_eq!(held(), 0);

    // Bytes of this process have none.
    Memory::private(8).unwrap().kept_by(&client).unwrap();
    assert_eq!(held(), 0);
}

#[test]
fn only_memory_has_holes_that_are_filled_by_reading() {
    const LENGTH: u64 = 1 << 20;
    let memory = Memory::allocate(LENGTH).unwrap();
    assert_eq!(memory.bytes_in_holes(), LENGTH);
    memory.view().unwrap().write(0, &[1; 4096]).unwrap();
    let left = memory.bytes_in_holes();
    assert!(left <= LENGTH - 4096, "{left}");
    memory.view().unwrap().write(0, &vec![1; 1 << 20]).unwrap();
    assert_eq!(memory.bytes_in_holes(), 0);
}
