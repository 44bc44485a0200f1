//! Fences between processes: the producer is another process, of which the consumer knows nothing
//! but a descriptor that it was sent.
//!
//! The other process is this test program, run for the one test that is ignored otherwise:
//! [`producer`]. It makes a fence, sends its descriptor over its standard input, which is a socket,
//! and does what it reads from there.

use nnhal_hal::fence::{FenceFailure, FenceState, FenceWaitError, SyncFence};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{IoSlice, IoSliceMut, Read, Write, stdin};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What a producer is asked to do, as the byte that says so.
const SIGNAL: u8 = b's';
const FAIL: u8 = b'f';
const EXIT: u8 = b'e';
const RUN_ANOTHER_PROGRAM: u8 = b'r';

struct Producer {
    process: Child,
    orders: UnixStream,
    fence: SyncFence,
}

impl Producer {
    fn start() -> Self {
        let (orders, theirs) = UnixStream::pair().unwrap();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "producer", "--ignored", "--test-threads=1"])
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let Some(descriptor) = receive_descriptor(&orders) else {
            process.kill().unwrap();
            panic!("the producer sent no descriptor: {:?}", process.wait());
        };
        Self { process, orders, fence: SyncFence::from_fd(descriptor).unwrap() }
    }

    fn order(&mut self, order: u8) {
        self.orders.write_all(&[order]).unwrap();
    }

    fn ends(&mut self) -> FenceState {
        self.fence.wait(Some(Duration::from_secs(60))).unwrap()
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn receive_descriptor(from: &UnixStream) -> Option<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, flags).unwrap();
    ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    })
}

fn send_descriptor(to: &UnixStream, fence: &SyncFence) {
    let descriptors = [fence.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)));
    sendmsg(to, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::empty()).unwrap();
}

#[test]
#[ignore = "it is the other process of the other tests, and takes orders from its standard input"]
fn producer() {
    let mut orders = UnixStream::from(stdin().as_fd().try_clone_to_owned().unwrap());
    let (signal, fence) = SyncFence::pair().unwrap();
    send_descriptor(&orders, &fence);
    let mut order = [0];
    orders.read_exact(&mut order).unwrap();
    match order[0] {
        SIGNAL => {
            signal.signal();
            // The fence must signal now, not when this process ends.
            let _ = orders.read_exact(&mut order);
        }
        FAIL => {
            signal.fail(nnhal_hal::Error::failure("a reason that stays here"));
            let _ = orders.read_exact(&mut order);
        }
        RUN_ANOTHER_PROGRAM => {
            // Becomes another program in the middle of its work, so nothing of it is dropped.
            use std::os::unix::process::CommandExt;
            panic!("{}", Command::new("sleep").arg("1000").stdin(Stdio::inherit()).exec());
        }
        _ => std::process::exit(0),
    }
}

#[test]
fn fence_8_another_process_signals() {
    let mut producer = Producer::start();
    assert_eq!(producer.fence.state().unwrap(), FenceState::Unsignalled);
    producer.order(SIGNAL);
    assert_eq!(producer.ends(), FenceState::Signalled);
    assert!(producer.process.try_wait().unwrap().is_none());
    // That the producer is gone afterwards changes nothing.
    producer.process.kill().unwrap();
    producer.process.wait().unwrap();
    assert_eq!(producer.fence.state().unwrap(), FenceState::Signalled);
    assert!(producer.fence.error().is_none());
}

#[test]
fn fence_7_another_process_fails() {
    let mut producer = Producer::start();
    producer.order(FAIL);
    assert_eq!(producer.ends(), FenceState::Failed);
    let error = producer.fence.error().unwrap();
    match error.reason() {
        Some(FenceFailure::Kernel(_)) => assert!(producer.fence.is_sync_file()),
        Some(FenceFailure::Unexplained) => assert!(!producer.fence.is_sync_file()),
        _ => panic!("{error}"),
    }
    assert!(producer.process.try_wait().unwrap().is_none());
}

#[test]
fn fence_7_a_producer_that_is_killed_fails_its_fence() {
    let mut producer = Producer::start();
    let copy = producer.fence.as_fd().try_clone_to_owned().unwrap();
    producer.process.kill().unwrap();
    assert_eq!(producer.ends(), FenceState::Failed);
    producer.process.wait().unwrap();
    // For ever, and for whoever got the descriptor later.
    let copy = SyncFence::from_fd(copy).unwrap();
    for fence in [&producer.fence, &copy, &producer.fence] {
        assert_eq!(fence.state().unwrap(), FenceState::Failed);
    }
}

#[test]
fn fence_7_a_producer_that_ends_without_a_word_fails_its_fence() {
    let mut producer = Producer::start();
    producer.order(EXIT);
    assert_eq!(producer.ends(), FenceState::Failed);
}

#[test]
fn sec_6_a_producer_that_becomes_another_program_fails_its_fence() {
    let mut producer = Producer::start();
    producer.order(RUN_ANOTHER_PROGRAM);
    assert_eq!(producer.ends(), FenceState::Failed);
    assert!(producer.process.try_wait().unwrap().is_none());
}

#[test]
fn fence_7_one_of_several_processes_dies() {
    let mut producers: Vec<_> = (0..3).map(|_| Producer::start()).collect();
    let fences: Vec<_> = producers.iter().map(|producer| producer.fence.clone()).collect();
    producers[0].order(SIGNAL);
    producers[2].process.kill().unwrap();
    match SyncFence::wait_all(&fences, None, None) {
        Err(FenceWaitError::Failed { index: 2, .. }) => {}
        other => panic!("{other:?}"),
    }
    producers[1].order(SIGNAL);
    SyncFence::wait_all(&fences[..2], None, None).unwrap();
}
