use super::*;
use crate::{Deadline, ErrorStatus};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{Mode, OFlags};
use rustix::io::{fcntl_getfd, write};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;

/// A fence over a copy of the descriptor, as a process has it that got it sent.
fn stranger(fence: &SyncFence) -> SyncFence {
    SyncFence::from_fd(fence.as_fd().try_clone_to_owned().unwrap()).unwrap()
}

/// A fence over an event descriptor, and what makes it ready.
fn event() -> (OwnedFd, SyncFence) {
    let fd = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    (fd.try_clone().unwrap(), SyncFence::from_fd(fd).unwrap())
}

fn ring(signaller: &OwnedFd) {
    write(signaller, &1_u64.to_ne_bytes()).unwrap();
}

/// What `poll` says of the descriptor, to someone who knows nothing of sockets.
fn polled(fence: &SyncFence) -> PollFlags {
    wait::poll_until(&[fence], Some(Instant::now())).unwrap()[0]
}

fn failure(error: &FenceWaitError) -> (usize, &Error) {
    match error {
        FenceWaitError::Failed { index, error } => (*index, error),
        other => panic!("{other}"),
    }
}

#[test]
fn fence_8_readable_is_signalled() {
    let (signaller, fence) = event();
    assert_eq!(fence.state().unwrap(), FenceState::Unsignalled);
    assert_eq!(fence.wait(Some(Duration::from_millis(2))).unwrap(), FenceState::Unsignalled);
    assert!(fence.error().is_none());
    ring(&signaller);
    assert_eq!(fence.wait(None).unwrap(), FenceState::Signalled);
    assert_eq!(fence.clone().state().unwrap(), FenceState::Signalled);
    assert!(fence.error().is_none());
}

#[test]
fn fence_8_a_waiter_wakes_when_the_fence_signals() {
    let (signaller, fence) = event();
    let begin = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(20));
            ring(&signaller);
        });
        assert_eq!(fence.wait(Some(Duration::from_secs(60))).unwrap(), FenceState::Signalled);
    });
    assert!((20..30_000).contains(&begin.elapsed().as_millis()));
}

#[test]
fn a_wait_lasts_as_long_as_it_says() {
    let (_signaller, fence) = event();
    let begin = Instant::now();
    let state = fence.wait(Some(Duration::from_millis(20))).unwrap();
    assert_eq!(state, FenceState::Unsignalled);
    assert!(begin.elapsed() >= Duration::from_millis(20));
}

#[test]
fn fence_3_what_cannot_be_polled_is_no_fence() {
    // A descriptor that only names a file polls as invalid.
    let named = rustix::fs::open("/", OFlags::PATH, Mode::empty()).unwrap();
    let refused = SyncFence::from_fd(named).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
}

#[test]
fn fence_3_a_fence_that_has_failed_already_is_distinguished() {
    let (signal, fence) = SyncFence::pair_of_sockets().unwrap();
    drop(signal);
    let fence = stranger(&fence);
    assert_eq!(fence.state().unwrap(), FenceState::Failed);
    let reason = fence.error().unwrap();
    assert_eq!(reason.status(), ErrorStatus::GeneralFailure);
    assert!(matches!(reason.reason(), Some(FenceFailure::Unexplained)), "{reason}");
}

#[test]
fn fence_8_an_error_is_a_failure() {
    // The writing end of a pipe that no one reads polls as an error.
    let (reading, writing) = rustix::pipe::pipe().unwrap();
    let fence = SyncFence::from_fd(writing).unwrap();
    drop(reading);
    assert_eq!(fence.state().unwrap(), FenceState::Failed);
}

#[test]
fn fence_8_a_readable_sync_file_has_failed_if_it_says_so() {
    // What they say is tested in `sync_file`, and below where the kernel makes any.
    let failed = Err(io::Error::from_raw_os_error(5));
    assert_eq!(FenceState::of_readable(Some(&failed)), FenceState::Failed);
    let signalled = Ok(sync_file::Progress::Signalled);
    assert_eq!(FenceState::of_readable(Some(&signalled)), FenceState::Signalled);
    assert_eq!(FenceState::of_readable(None), FenceState::Signalled);
}

#[test]
fn fence_8_a_stranger_sees_how_a_sync_file_that_was_made_stands() {
    let (signal, fence) = SyncFence::pair().unwrap();
    if !fence.is_sync_file() {
        println!("not run: the kernel makes no sync files here");
        return;
    }
    let copy = stranger(&fence);
    assert!(copy.is_sync_file());
    assert_eq!(copy.state().unwrap(), FenceState::Unsignalled);
    signal.signal();
    assert_eq!(
        (copy.state().unwrap(), fence.state().unwrap()),
        (FenceState::Signalled, FenceState::Signalled)
    );
    let ends: [fn(FenceSignal); 2] = [drop, |signal| signal.fail(Error::failure("x"))];
    for end in ends {
        let (signal, fence) = SyncFence::pair().unwrap();
        end(signal);
        let copy = stranger(&fence);
        assert_eq!(copy.state().unwrap(), FenceState::Failed);
        let reason = copy.error().unwrap();
        assert!(matches!(reason.reason(), Some(FenceFailure::Kernel(_))), "{reason}");
    }
    // The reason stays in this process.
    let (signal, fence) = SyncFence::pair().unwrap();
    signal.fail(Error::failure("x"));
    assert_eq!(fence.error().unwrap().to_string(), "GENERAL_FAILURE: x");
    println!("run with the kernel's sync files");
}

#[test]
fn fence_8_sockets_are_no_sync_files() {
    let (_signal, fence) = SyncFence::pair_of_sockets().unwrap();
    assert!(!fence.is_sync_file() && !stranger(&fence).is_sync_file());
}

#[test]
fn fence_8_a_stranger_sees_by_poll_alone_how_a_made_fence_stands() {
    let (signal, fence) = SyncFence::pair_of_sockets().unwrap();
    assert_eq!(polled(&fence), PollFlags::empty());
    signal.signal();
    assert!(polled(&fence).contains(PollFlags::IN));
    assert!(!polled(&fence).intersects(PollFlags::ERR | PollFlags::NVAL));

    let ends: [fn(FenceSignal); 2] = [drop, |signal| signal.fail(Error::failure("x"))];
    for end in ends {
        let (signal, fence) = SyncFence::pair_of_sockets().unwrap();
        end(signal);
        // The same to everybody, however often.
        let copies: Vec<_> = (0..20).map(|_| stranger(&fence)).collect();
        for copy in copies.iter().chain(&copies) {
            assert!(polled(copy).contains(PollFlags::ERR));
            assert_eq!(copy.state().unwrap(), FenceState::Failed);
        }
    }
}

#[test]
fn fence_7_all_waiters_wake_when_a_fence_fails() {
    let (signal, fence) = SyncFence::pair().unwrap();
    thread::scope(|scope| {
        let waiters: Vec<_> = (0..8)
            .map(|index| {
                let fence = if index % 2 == 0 { fence.clone() } else { stranger(&fence) };
                scope.spawn(move || fence.wait(Some(Duration::from_secs(60))).unwrap())
            })
            .collect();
        thread::sleep(Duration::from_millis(20));
        signal.fail(Error::failure("the power is gone"));
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), FenceState::Failed);
        }
    });
}

#[test]
fn fence_7_the_reason_is_the_producers_and_all_clones_have_it() {
    let (signal, fence) = SyncFence::pair().unwrap();
    let clone = fence.clone();
    assert!(clone.error().is_none());
    signal.fail(Error::new(ErrorStatus::MissedDeadlineTransient, "too slow"));
    for fence in [&fence, &clone, &fence] {
        let error = fence.error().unwrap();
        assert_eq!(error.to_string(), "MISSED_DEADLINE_TRANSIENT: too slow");
    }
    let (signal, fence) = SyncFence::pair().unwrap();
    drop(signal);
    assert!(matches!(fence.error().unwrap().reason(), Some(FenceFailure::Abandoned)));
    let (signal, fence) = SyncFence::pair().unwrap();
    signal.signal();
    assert!(fence.error().is_none());
}

#[test]
fn fence_7_a_panicking_producer_fails_its_fence() {
    let (signal, fence) = SyncFence::pair().unwrap();
    let copy = stranger(&fence);
    let panicked = thread::spawn(move || {
        let _signal = signal;
        std::panic::resume_unwind(Box::new("no message"));
    });
    panicked.join().unwrap_err();
    assert_eq!(copy.state().unwrap(), FenceState::Failed);
    assert_eq!(fence.state().unwrap(), FenceState::Failed);
}

#[test]
fn fence_8_a_failing_fence_never_looks_signalled() {
    // Whoever polls just when the kernel is closing the producing end may find it hung up and not
    // yet in error. Of bare polls that spin, about one of ten thousand does.
    let (signal, fence) = SyncFence::pair_of_sockets().unwrap();
    drop(signal);
    let seen_too_early = PollFlags::IN | PollFlags::HUP;
    assert_eq!(stranger(&fence).judge(seen_too_early).unwrap(), FenceState::Failed);

    let (hand_over, taken) = std::sync::mpsc::sync_channel(1);
    thread::scope(|scope| {
        scope.spawn(move || taken.iter().for_each(drop::<FenceSignal>));
        for index in 0..5000 {
            // Of sync files too, where there are any.
            let pair = if index % 2 == 0 { SyncFence::pair } else { SyncFence::pair_of_sockets };
            let (signal, fence) = pair().unwrap();
            let copy = stranger(&fence);
            hand_over.send(signal).unwrap();
            let state = loop {
                match copy.state().unwrap() {
                    FenceState::Unsignalled => std::hint::spin_loop(),
                    state => break state,
                }
            };
            assert_eq!(state, FenceState::Failed);
        }
        drop(hand_over);
    });
}

#[test]
fn fence_8_a_socket_that_hangs_up_has_signalled() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let fence = SyncFence::from_fd(ours.into()).unwrap();
    assert_eq!(fence.state().unwrap(), FenceState::Unsignalled);
    drop(theirs);
    assert_eq!(fence.state().unwrap(), FenceState::Signalled);
}

#[test]
fn fence_6_signalling_works_when_no_one_waits_any_more() {
    let (signal, fence) = SyncFence::pair().unwrap();
    drop(fence);
    signal.signal();
}

#[test]
fn who_has_the_descriptor_cannot_turn_success_into_failure() {
    let (signal, fence) = SyncFence::pair_of_sockets().unwrap();
    let mut meddler = UnixStream::from(fence.as_fd().try_clone_to_owned().unwrap());
    // More bytes that the producer would leave unread.
    assert!(meddler.write(&[1, 2, 3]).is_err());
    signal.signal();
    assert_eq!(stranger(&fence).state().unwrap(), FenceState::Signalled);
    // It takes the byte away, and it stays ready.
    meddler.read_exact(&mut [0]).unwrap();
    assert_eq!(stranger(&fence).state().unwrap(), FenceState::Signalled);
    assert_eq!(fence.state().unwrap(), FenceState::Signalled);
}

#[test]
fn fence_5_who_has_the_descriptor_cannot_end_the_producers_work_early() {
    let (signal, fence) = SyncFence::pair_of_sockets().unwrap();
    let meddler = UnixStream::from(fence.as_fd().try_clone_to_owned().unwrap());
    meddler.shutdown(std::net::Shutdown::Read).unwrap();
    assert!(polled(&fence).contains(PollFlags::IN));
    assert_eq!(fence.state().unwrap(), FenceState::Failed);
    assert!(matches!(fence.error().unwrap().reason(), Some(FenceFailure::Forged)));
    let found = SyncFence::wait_all(std::slice::from_ref(&fence), None, None).unwrap_err();
    assert_eq!(failure(&found).0, 0);
    drop(signal);
}

#[test]
fn sec_6_descriptors_are_closed_in_other_programs() {
    let fence = SyncFence::from_fd(eventfd(0, EventfdFlags::empty()).unwrap()).unwrap();
    assert_eq!(fcntl_getfd(&fence).unwrap(), FdFlags::CLOEXEC);
    let (signal, fence) = SyncFence::pair().unwrap();
    assert_eq!(fcntl_getfd(&fence).unwrap(), FdFlags::CLOEXEC);
    assert_eq!(fcntl_getfd(signal.end()).unwrap(), FdFlags::CLOEXEC);
}

#[test]
fn sec_6_descriptors_are_closed_on_every_path() {
    let dup_of = |fence: &SyncFence| fence.as_fd().try_clone_to_owned().unwrap();
    // Other tests open and close descriptors meanwhile, so those are followed that are ours: an
    // end is closed when the other end says so.
    let ends: [fn(FenceSignal); 3] =
        [FenceSignal::signal, |signal| signal.fail(Error::failure("x")), drop];
    for end in ends {
        let (signal, fence) = SyncFence::pair_of_sockets().unwrap();
        let other = dup_of(&fence);
        end(signal);
        drop(fence);
        let other = SyncFence::from_fd(other).unwrap();
        assert!(polled(&other).contains(PollFlags::HUP));
    }
    // A refused descriptor is closed too: the other end of this one sees it.
    let (reading, writing) = rustix::pipe::pipe().unwrap();
    let fence = SyncFence::from_fd(reading).unwrap();
    let _waited = SyncFence::wait_all(
        std::slice::from_ref(&fence),
        Some(Deadline::after(Duration::from_millis(1))),
        None,
    );
    drop(fence);
    assert!(polled(&SyncFence::from_fd(writing).unwrap()).contains(PollFlags::ERR));
}

#[test]
fn fence_5_all_of_many_fences_are_waited_for() {
    let pairs: Vec<_> = (0..300).map(|_| SyncFence::pair().unwrap()).collect();
    let (signals, fences): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    // Some as others see them.
    let fences: Vec<_> = fences
        .iter()
        .enumerate()
        .map(|(index, fence)| if index % 3 == 0 { stranger(fence) } else { fence.clone() })
        .collect();
    let soon = Some(Deadline::after(Duration::from_millis(2)));
    let waited = SyncFence::wait_all(&fences, soon, None).unwrap_err();
    assert!(matches!(waited, FenceWaitError::DeadlinePassed { pending: 300 }), "{waited}");
    let begin = Instant::now();
    thread::scope(|scope| {
        scope.spawn(move || {
            let (mut early, mut late): (Vec<_>, Vec<_>) = (Vec::new(), Vec::new());
            for (index, signal) in signals.into_iter().enumerate() {
                if index % 7 == 0 { late.push(signal) } else { early.push(signal) }
            }
            early.into_iter().for_each(FenceSignal::signal);
            thread::sleep(Duration::from_millis(20));
            late.into_iter().for_each(FenceSignal::signal);
        });
        let last = SyncFence::wait_all(&fences, None, None).unwrap();
        assert!(last.duration_since(begin) >= Duration::from_millis(20));
    });
    // Now that all have signalled, the moment is that of asking.
    let asked = Instant::now();
    assert!(SyncFence::wait_all(&fences, None, None).unwrap() >= asked);
}

#[test]
fn fence_12_without_fences_the_moment_is_now() {
    let begin = Instant::now();
    assert!(SyncFence::wait_all(&[], None, None).unwrap() >= begin);
    let passed = Some(Deadline::from_nanoseconds_since_epoch(0));
    assert!(SyncFence::wait_all(&[], passed, None).is_ok());
}

#[test]
fn fence_7_one_failure_ends_the_wait_and_is_named() {
    let (_first, unsignalled) = SyncFence::pair().unwrap();
    let (second, failing) = SyncFence::pair().unwrap();
    let fences = [unsignalled, failing];
    thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(Duration::from_millis(10));
            second.fail(Error::new(ErrorStatus::MissedDeadlineTransient, "too slow"));
        });
        let error = SyncFence::wait_all(&fences, None, None).unwrap_err();
        let (index, reason) = failure(&error);
        assert_eq!((index, reason.to_string()), (1, "MISSED_DEADLINE_TRANSIENT: too slow".into()));
        // Not a missed deadline of whoever waited.
        assert_eq!(Error::from(error).status(), ErrorStatus::GeneralFailure);
    });
}

#[test]
fn qos_5_the_deadline_ends_a_wait() {
    let (_signal, fence) = SyncFence::pair().unwrap();
    let begin = Instant::now();
    let deadline = Some(Deadline::after(Duration::from_millis(15)));
    let error = SyncFence::wait_all(&[fence], deadline, None).unwrap_err();
    assert!(begin.elapsed() >= Duration::from_millis(15));
    assert_eq!(Error::from(error).status(), ErrorStatus::MissedDeadlineTransient);
    // A fence that has signalled is not missed, however late one looks.
    let (signal, fence) = SyncFence::pair().unwrap();
    signal.signal();
    let passed = Some(Deadline::from_nanoseconds_since_epoch(0));
    assert!(SyncFence::wait_all(&[stranger(&fence), fence], passed, None).is_ok());
}

#[test]
fn conc_5_a_wait_can_be_stopped_from_elsewhere() {
    let (_signal, fence) = SyncFence::pair().unwrap();
    let (stop, stopped) = SyncFence::pair().unwrap();
    thread::scope(|scope| {
        let waiter = scope
            .spawn(|| SyncFence::wait_all(&[fence.clone(), fence.clone()], None, Some(&stopped)));
        thread::sleep(Duration::from_millis(10));
        drop(stop);
        let error = waiter.join().unwrap().unwrap_err();
        assert!(matches!(error, FenceWaitError::Stopped { pending: 1 }), "{error}");
        assert_eq!(Error::from(error).status(), ErrorStatus::GeneralFailure);
    });
    // What has ended has ended, also for someone who was asked to stop.
    let (signal, fence) = SyncFence::pair().unwrap();
    signal.signal();
    assert!(SyncFence::wait_all(&[stranger(&fence)], None, Some(&stopped)).is_ok());
}

#[test]
fn sec_3_one_fence_many_times_is_one_descriptor_to_the_kernel() {
    // More than a process may have descriptors, which `poll` would refuse.
    let (signal, fence) = SyncFence::pair().unwrap();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap();
    let many = usize::try_from(limit).unwrap().min(2_000_000) + 1;
    let fences = vec![fence.clone(); many];
    let soon = Some(Deadline::after(Duration::from_millis(1)));
    let error = SyncFence::wait_all(&fences, soon, None).unwrap_err();
    assert!(matches!(error, FenceWaitError::DeadlinePassed { pending: 1 }), "{error}");
    signal.signal();
    assert!(SyncFence::wait_all(&fences, None, None).is_ok());
}
