//! Fast message queues: as libfmq's, and safe from whoever is on the other side.

mod support;

use nnhal_burst::datum::{DATUM_BYTES, FmqResultDatum, ResultDatum};
use nnhal_burst::queue::{Grantor, MAXIMUM_CAPACITY, MessageQueue, MqDescriptor, QueueError};
use nnhal_hal::ErrorStatus;
use nnhal_hal::memory::MemoryError;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};
use support::SOON;

type Queue = MessageQueue<FmqResultDatum>;

/// The places of the parts of a queue of 8 data.
const READ_COUNTER: u64 = 0;
const WRITE_COUNTER: u64 = 8;
const RING: u64 = 16;
const RING_BYTES: u64 = 8 * DATUM_BYTES as u64;
const EVENT_FLAG: u64 = RING + RING_BYTES;
const NOT_FULL: u32 = 1;
const NOT_EMPTY: u32 = 2;

fn datum(value: u32) -> FmqResultDatum {
    ResultDatum::OutputDimension(value).into()
}

fn data(values: std::ops::Range<u32>) -> Vec<FmqResultDatum> {
    values.map(datum).collect()
}

/// A queue of 8 data, and its memory as a file: what a hostile process would have.
fn queue_and_file() -> (Queue, File) {
    let queue = Queue::create(8).unwrap();
    let file = queue.descriptor().unwrap().files.remove(0).into();
    (queue, file)
}

fn number(file: &File, offset: u64) -> u64 {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, offset).unwrap();
    u64::from_ne_bytes(bytes)
}

fn put(file: &File, offset: u64, value: u64) {
    file.write_all_at(&value.to_ne_bytes(), offset).unwrap();
}

fn event_flag(file: &File) -> u32 {
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, EVENT_FLAG).unwrap();
    u32::from_ne_bytes(bytes)
}

#[test]
fn ipc_8_counters_ring_and_event_flag_are_where_libfmq_has_them() {
    let (queue, file) = queue_and_file();
    let (mut writer, mut reader) = (queue.clone().into_writer(), queue.into_reader());
    writer.write(&data(0..3), SOON).unwrap();
    assert_eq!((number(&file, READ_COUNTER), number(&file, WRITE_COUNTER)), (0, 72));
    assert_eq!(event_flag(&file), NOT_EMPTY);
    let mut bytes = [0; DATUM_BYTES];
    file.read_exact_at(&mut bytes, RING + 48).unwrap();
    assert_eq!(bytes, datum(2).to_bytes());

    let mut received = Vec::new();
    reader.read(&mut received, SOON).unwrap();
    assert_eq!(received, data(0..3));
    assert_eq!((number(&file, READ_COUNTER), number(&file, WRITE_COUNTER)), (72, 72));
    assert_eq!(event_flag(&file), NOT_EMPTY | NOT_FULL);
}

#[test]
fn data_that_libfmq_wrote_are_read() {
    let (queue, file) = queue_and_file();
    // Counters count bytes and only grow; the ring goes round.
    let begin = 5 * RING_BYTES + 6 * 24;
    put(&file, READ_COUNTER, begin);
    put(&file, WRITE_COUNTER, begin);
    let mut reader = Queue::open(queue.descriptor().unwrap()).unwrap().into_reader();
    for (index, value) in (10..14).enumerate() {
        let offset = RING + (begin + 24 * index as u64) % RING_BYTES;
        file.write_all_at(&datum(value).to_bytes(), offset).unwrap();
    }
    put(&file, WRITE_COUNTER, begin + 4 * 24);
    let mut received = Vec::new();
    assert!(reader.try_read(&mut received).unwrap());
    assert_eq!(received, data(10..14));
    assert_eq!(number(&file, READ_COUNTER), begin + 4 * 24);
}

#[test]
fn burst_2_a_packet_is_written_as_a_whole_or_not_at_all() {
    let (queue, file) = queue_and_file();
    let (mut writer, mut reader) = (queue.clone().into_writer(), queue.into_reader());
    assert!(writer.try_write(&data(0..5)).unwrap());
    assert!(!writer.try_write(&data(0..4)).unwrap());
    assert_eq!(number(&file, WRITE_COUNTER), 5 * 24);
    assert_eq!(writer.try_write(&data(0..9)), Err(QueueError::TooLong { length: 9, capacity: 8 }));
    assert!(writer.try_write(&data(5..8)).unwrap());
    let mut received = Vec::new();
    assert!(reader.try_read(&mut received).unwrap());
    assert_eq!(received, data(0..8));
    assert!(!reader.try_read(&mut received).unwrap());
}

/// Two mappings, two threads, a ring that is small for what goes through it.
#[test]
fn everything_arrives_in_order() {
    const COUNT: u32 = 20_000;
    let here = Queue::create(8).unwrap();
    let there = Queue::open(here.descriptor().unwrap()).unwrap();
    let sender = std::thread::spawn(move || {
        let mut writer = here.into_writer();
        let (mut next, mut length) = (0, 1);
        while next < COUNT {
            let end = (next + length).min(COUNT);
            writer.write(&data(next..end), SOON).unwrap();
            (next, length) = (end, length % 8 + 1);
        }
    });
    let mut reader = there.into_reader();
    let (mut received, mut next) = (Vec::new(), 0);
    while next < COUNT {
        reader.read(&mut received, SOON).unwrap();
        let count = u32::try_from(received.len()).unwrap();
        assert_eq!(received, data(next..next + count));
        next += count;
    }
    sender.join().unwrap();
}

#[test]
fn who_waits_in_vain_is_notified_in_time() {
    let queue = Queue::create(8).unwrap();
    let (mut writer, mut reader) = (queue.clone().into_writer(), queue.into_reader());
    let timeout = Duration::from_millis(20);
    let begin = Instant::now();
    assert_eq!(reader.read(&mut Vec::new(), Some(timeout)), Err(QueueError::TimedOut));
    assert!(begin.elapsed() >= timeout);
    writer.write(&data(0..8), None).unwrap();
    assert_eq!(writer.write(&data(0..1), Some(timeout)), Err(QueueError::TimedOut));
    assert_eq!(reader.read(&mut Vec::new(), Some(Duration::ZERO)), Ok(()));
}

#[test]
fn ipc_5_an_interrupt_ends_the_waiting() {
    let queue = Queue::create(8).unwrap();
    let mut reader = queue.into_reader();
    let interrupt = reader.interrupt();
    let waiting = std::thread::spawn(move || reader.read(&mut Vec::new(), None));
    std::thread::sleep(Duration::from_millis(20));
    let begin = Instant::now();
    interrupt.throw();
    assert_eq!(waiting.join().unwrap(), Err(QueueError::Interrupted));
    assert!(begin.elapsed() < Duration::from_millis(400), "woken, not run into the longest sleep");
}

/// Even when the other side takes every wake-up away.
#[test]
fn gen_8_an_interrupt_ends_the_waiting_against_a_hostile_event_flag() {
    let (queue, file) = queue_and_file();
    let mut reader = queue.into_reader();
    let interrupt = reader.interrupt();
    let waiting = std::thread::spawn(move || reader.read(&mut Vec::new(), None));
    let begin = Instant::now();
    while !waiting.is_finished() {
        for value in [0_u32, u32::MAX, NOT_EMPTY, NOT_FULL] {
            file.write_all_at(&value.to_ne_bytes(), EVENT_FLAG).unwrap();
        }
        if begin.elapsed() > Duration::from_millis(50) {
            interrupt.throw();
        }
        assert!(begin.elapsed() < SOON.unwrap());
    }
    assert_eq!(waiting.join().unwrap(), Err(QueueError::Interrupted));
}

/// Values that a counter should not have.
fn hostile_counters() -> Vec<u64> {
    let near = [0, 24, RING_BYTES, 1 << 31, 1 << 32, 1 << 63, u64::MAX];
    let steps = [0, 1, 7, 8, 23, 24, 25];
    near.iter()
        .flat_map(|near| {
            steps.iter().flat_map(|step| [near.wrapping_add(*step), near.wrapping_sub(*step)])
        })
        .collect()
}

#[test]
fn gen_8_no_counter_makes_a_reader_read_what_is_not_there() {
    for value in hostile_counters() {
        let (queue, file) = queue_and_file();
        let mut reader = queue.into_reader();
        let mut received = Vec::new();
        // Its own counter means nothing to it.
        put(&file, READ_COUNTER, value);
        assert_eq!(reader.try_read(&mut received), Ok(false));
        put(&file, WRITE_COUNTER, value);
        match reader.try_read(&mut received) {
            Ok(true) => {
                assert!(value <= RING_BYTES && value.is_multiple_of(24), "{value}");
                assert_eq!(received.len() as u64 * 24, value);
            }
            Ok(false) => assert_eq!(value, 0),
            Err(QueueError::Counters { passed_over, .. }) => {
                assert!(value > RING_BYTES || !value.is_multiple_of(24), "{value}");
                assert_eq!(passed_over, value.is_multiple_of(24));
                assert!(received.is_empty());
                // What was lost is lost, and the queue works on if it can.
                if passed_over {
                    put(&file, WRITE_COUNTER, value.wrapping_add(24));
                    if value.wrapping_add(24).is_multiple_of(24) {
                        assert_eq!(reader.try_read(&mut received), Ok(true), "{value}");
                        assert_eq!(received.len(), 1);
                    }
                }
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn gen_8_no_counter_makes_a_writer_write_where_there_is_no_room() {
    for value in hostile_counters() {
        let (queue, file) = queue_and_file();
        let mut writer = queue.into_writer();
        writer.try_write(&data(0..4)).unwrap();
        // Its own counter means nothing to it.
        put(&file, WRITE_COUNTER, value);
        put(&file, READ_COUNTER, value);
        let used = 96_u64.wrapping_sub(value);
        match writer.try_write(&data(0..5)) {
            Ok(written) => {
                assert!(used <= RING_BYTES && used.is_multiple_of(24), "{value}");
                assert_eq!(written, used <= 3 * 24);
            }
            Err(QueueError::Counters { .. }) => {
                assert!(used > RING_BYTES || !used.is_multiple_of(24), "{value}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// A queue's file of this many bytes with these seals.
fn file(bytes: u64, seals: SealFlags) -> OwnedFd {
    let file = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&file, bytes).unwrap();
    fcntl_add_seals(&file, seals).unwrap();
    file
}

fn open_in(file: OwnedFd) -> Result<Queue, QueueError> {
    let MqDescriptor { grantors, quantum, flags, .. } =
        Queue::create(8).unwrap().descriptor().unwrap();
    Queue::open(MqDescriptor { files: vec![file], grantors, quantum, flags })
}

#[test]
fn burst_1_memory_that_is_not_what_a_queue_needs_is_refused() {
    let refused = |file| open_in(file).unwrap_err();
    assert!(open_in(file(4096, SealFlags::SHRINK)).is_ok());
    // A process that touches what is gone is killed by a signal (MEM-5).
    assert_eq!(refused(file(4096, SealFlags::GROW)), QueueError::CanShrink);
    let read_only = SealFlags::SHRINK | SealFlags::FUTURE_WRITE;
    assert_eq!(refused(file(4096, read_only)), QueueError::ReadOnly);
    let short = refused(file(EVENT_FLAG + 3, SealFlags::SHRINK));
    let size = MemoryError::Size { declared: EVENT_FLAG + 4, held: EVENT_FLAG + 3 };
    assert_eq!(short, QueueError::Memory(size));
    let directory = File::open("/").unwrap().into();
    assert_eq!(refused(directory), QueueError::Memory(MemoryError::NotMemory));
    let (pipe, _other_end) = rustix::pipe::pipe().unwrap();
    assert!(matches!(refused(pipe), QueueError::Memory(_)));
}

#[test]
fn burst_1_descriptors_of_other_queues_are_refused() {
    let refused = |change: fn(&mut MqDescriptor)| {
        let mut descriptor = Queue::create(8).unwrap().descriptor().unwrap();
        change(&mut descriptor);
        let error = Queue::open(descriptor).unwrap_err();
        assert_eq!(error.status(), ErrorStatus::InvalidArgument);
        error
    };
    assert_eq!(refused(|queue| queue.flags = 2), QueueError::Flavor { found: 2 });
    let quantum = QueueError::Quantum { found: 16, expected: 24 };
    assert_eq!(refused(|queue| queue.quantum = 16), quantum);
    let no_file = QueueError::File { part: "read counter", index: 0, count: 0 };
    assert_eq!(refused(|queue| queue.files.clear()), no_file);
    assert_eq!(refused(|queue| queue.grantors.clear()), QueueError::Grantors { found: 0 });
    let short = refused(|queue| queue.grantors[2].extent *= 4096);
    assert!(matches!(
        short,
        QueueError::Memory(MemoryError::Size { .. }) | QueueError::Overlap { .. }
    ));
    assert!(Queue::create(0).is_err());
    assert!(Queue::create(MAXIMUM_CAPACITY + 1).is_err());
}

/// Parts may be in several files, behind the first page, and in any order.
#[test]
fn parts_may_be_anywhere() {
    let files = vec![file(8192, SealFlags::SHRINK), file(4096, SealFlags::SHRINK)];
    let copies = |files: &[OwnedFd]| files.iter().map(|file| file.try_clone().unwrap()).collect();
    let part = |file, offset, extent| Grantor { flags: 0, file, offset, extent };
    let grantors = vec![part(1, 8, 8), part(0, 8184, 8), part(0, 4104, 8 * 24), part(1, 4088, 4)];
    let open = || {
        let (files, grantors) = (copies(&files), grantors.clone());
        Queue::open(MqDescriptor { files, grantors, quantum: 24, flags: 1 }).unwrap()
    };
    let (mut writer, mut reader) = (open().into_writer(), open().into_reader());
    for round in 0..5 {
        writer.write(&data(round..round + 5), SOON).unwrap();
        let mut received = Vec::new();
        reader.read(&mut received, SOON).unwrap();
        assert_eq!(received, data(round..round + 5));
    }
}

#[test]
fn without_an_event_flag_no_one_waits() {
    let mut descriptor = Queue::create(8).unwrap().descriptor().unwrap();
    descriptor.grantors.truncate(3);
    let queue = Queue::open(descriptor).unwrap();
    assert!(!queue.has_event_flag());
    let (mut writer, mut reader) = (queue.clone().into_writer(), queue.into_reader());
    assert_eq!(reader.read(&mut Vec::new(), SOON), Err(QueueError::NoEventFlag));
    assert!(writer.try_write(&data(0..1)).unwrap());
    assert!(reader.try_read(&mut Vec::new()).unwrap());
}
