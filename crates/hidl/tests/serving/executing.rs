//! Executions by every method.

use super::*;

fn request_without_input(sample: &Sample) -> Request {
    let mut request = sample.request();
    request.inputs.clear();
    request
}

/// How to execute by one version's asynchronous method.
type Execute = fn(&dyn v1_3::IPreparedModel, &Request, Option<Arc<Notified<Executed>>>) -> i32;

const EXECUTE: [(HalVersion, Execute); 3] = [
    (HalVersion::V1_0, |model, request, callback| {
        model.execute(&to(request), callback.map(|callback| callback as _)).unwrap()
    }),
    (HalVersion::V1_2, |model, request, callback| {
        let callback = callback.map(|callback| callback as _);
        model.execute_1_2(&to(request), YES, callback).unwrap()
    }),
    (HalVersion::V1_3, |model, request, callback| {
        let callback = callback.map(|callback| callback as _);
        model.execute_1_3(&to(request), YES, NO_DEADLINE, NO_DURATION, callback).unwrap()
    }),
];

/// CB-3, EXEC-10
#[test]
fn exec_3_an_execution_is_notified_once_by_the_method_of_its_version() {
    let sample = add_constant();
    let model = prepared(&served(), &sample.model);
    for (version, execute) in EXECUTE {
        let request = sample.request();
        let notified = Notified::<Executed>::new();
        assert_eq!(execute(&*model, &request, Some(notified.clone())), NONE, "{version}");
        let (status, rest) = notified.only();
        assert_eq!(status, NONE);
        sample.assert_result(&request);
        match rest {
            // EXEC-10: status only.
            None => assert_eq!(version, HalVersion::V1_0),
            Some((shapes, timing)) => {
                assert_eq!(
                    shapes[..],
                    [v1_2::OutputShape { dimensions: vec![1, 2], is_sufficient: true }]
                );
                assert!(timing.time_on_device <= timing.time_in_driver);
                assert!(timing.time_in_driver < u64::MAX);
            }
        }
    }
}

#[test]
fn exec_1_and_2_wrong_arguments_are_notified_and_returned() {
    let sample = add_constant();
    let model = prepared(&served(), &sample.model);
    for (version, execute) in EXECUTE {
        let notified = Notified::<Executed>::new();
        let status = execute(&*model, &request_without_input(&sample), Some(notified.clone()));
        assert_eq!((status, notified.count()), (INVALID, 1), "{version}");
        let (status, rest) = notified.only();
        assert_eq!(status, INVALID);
        if let Some((shapes, timing)) = rest {
            assert_eq!((shapes.len(), timing), (0, Timing::NONE));
        }
        assert_eq!(execute(&*model, &sample.request(), None), INVALID, "{version}");
    }
    let request = to::<v1_0::Request>(&sample.request());
    let notified = Notified::<Executed>::new();
    // GEN-7
    assert_eq!(model.execute_1_2(&request, 2, Some(notified.clone())).unwrap(), INVALID);
    assert_eq!(notified.only().0, INVALID);
    let request = to::<v1_3::Request>(&sample.request());
    let (point, duration) =
        (OptionalTimePoint::Unknown { tag: 9 }, OptionalTimeoutDuration::Unknown { tag: 9 });
    for (measure, deadline, timeout) in
        [(-1, NO_DEADLINE, NO_DURATION), (NO, point, NO_DURATION), (NO, NO_DEADLINE, duration)]
    {
        let notified = Notified::<Executed>::new();
        let callback = Some(notified.clone() as _);
        let status = model.execute_1_3(&request, measure, deadline, timeout, callback).unwrap();
        assert_eq!((status, notified.only().0), (INVALID, INVALID));
        let answer = model.execute_synchronously_1_3(&request, measure, deadline, timeout).unwrap();
        assert_eq!(answer, (INVALID, vec![], Timing::NONE));
        let (status, fence, callback) =
            model.execute_fenced(&request, &[], measure, deadline, timeout, NO_DURATION).unwrap();
        assert!(status == INVALID && fence.is_null() && callback.is_none());
    }
    let mut request = request;
    request.pools[0] = v1_3::MemoryPool::Unknown { tag: 2 };
    let answer = model.execute_synchronously_1_3(&request, NO, NO_DEADLINE, NO_DURATION).unwrap();
    assert_eq!(answer.0, INVALID);
}

#[test]
fn sync_1_to_4_synchronous_executions_answer_as_asynchronous_ones() {
    let sample = unknown_output();
    let model = prepared(&served(), &sample.model);
    let requests = [sample.request(), sample.request_with_room(5), request_without_input(&sample)];
    let small = ErrorStatus::OutputInsufficientSize.code();
    for (request, expected) in requests.iter().zip([NONE, small, INVALID]) {
        let by_1_2 = model.execute_synchronously(&to(request), NO).unwrap();
        let by_1_3 =
            model.execute_synchronously_1_3(&to(request), NO, NO_DEADLINE, NO_DURATION).unwrap();
        assert_eq!(by_1_2, by_1_3);
        let notified = Notified::<Executed>::new();
        let callback = Some(notified.clone() as _);
        model.execute_1_2(&to(request), NO, callback).unwrap();
        let (status, rest) = notified.only();
        let (shapes, timing) = rest.unwrap();
        // TIME-1: nothing was measured.
        assert_eq!((status, shapes, timing), by_1_2);
        assert_eq!((by_1_2.0, by_1_2.2), (expected, Timing::NONE));
        assert_eq!(by_1_2.1.len(), usize::from(expected != INVALID));
    }
    // TIME-1 and TIME-3: asked for, and from when the call is seen.
    let (_, _, timing) = model.execute_synchronously(&to(&requests[0]), YES).unwrap();
    assert!(timing.time_on_device <= timing.time_in_driver && timing.time_in_driver < u64::MAX);
}

/// QOS-6: no shapes, no times.
#[test]
fn exec_5_and_sync_3_and_qos_7_missed_deadlines_are_notified_only() {
    let sample = endless();
    let model = prepared(&served(), &sample.model);
    let past = OptionalTimePoint::NanosecondsSinceEpoch(1);
    let soon = Deadline::after(Duration::from_millis(20)).nanoseconds_since_epoch();
    let soon = OptionalTimePoint::NanosecondsSinceEpoch(soon);
    let short = OptionalTimeoutDuration::Nanoseconds(1_000_000);
    for (deadline, timeout) in [(past, NO_DURATION), (soon, NO_DURATION), (NO_DEADLINE, short)] {
        let request = to(&sample.request());
        let notified = Notified::<Executed>::new();
        let callback = Some(notified.clone() as _);
        assert_eq!(model.execute_1_3(&request, YES, deadline, timeout, callback).unwrap(), NONE);
        let (status, rest) = notified.only();
        assert!(is_missed(status));
        assert_eq!(rest, Some((vec![], Timing::NONE)));
        let answer = model.execute_synchronously_1_3(&request, YES, deadline, timeout).unwrap();
        assert!(is_missed(answer.0), "{answer:?}");
    }
    // GEN-2: 1.2 has no words for it. The loop runs into the default limit.
    let answer = model.execute_synchronously(&to(&sample.request()), NO).unwrap();
    assert_eq!(answer, (FAILURE, vec![], Timing::NONE));
}

#[test]
fn mem_1_kinds_of_1_2_are_no_memory_in_1_0() {
    let sample = add_constant();
    let model = prepared(&served(), &sample.model);
    let mut request = to::<v1_0::Request>(&sample.request());
    let file: OwnedFd = tempfile::tempfile().unwrap().into();
    request.pools.push(HidlMemory {
        name: "hardware_buffer_blob".to_owned(),
        handle: Handle::of_fd(file),
        size: 8,
    });
    let notified = Notified::<Executed>::new();
    assert_eq!(model.execute(&request, Some(notified.clone())).unwrap(), INVALID);
    assert_eq!(notified.only().0, INVALID);
    assert_eq!(model.execute_synchronously(&request, NO).unwrap().0, NONE);
    request.pools[1].handle = Handle::NULL;
    assert_eq!(model.execute_synchronously(&request, NO).unwrap().0, INVALID);
}

#[test]
fn conc_3_the_callback_comes_though_the_client_lets_everything_go() {
    let sample = add_constant();
    for _ in 0..50 {
        let device = served();
        let model = prepared(&device, &sample.model);
        let notified = Notified::<Executed>::new();
        let status = model.execute(&to(&sample.request()), Some(notified.clone())).unwrap();
        assert_eq!(status, NONE);
        drop((device, model));
        assert_eq!(notified.only().0, NONE);
    }
}

#[test]
fn exec_4_wrong_use_of_a_buffer_is_notified_and_returned() {
    let device = served();
    let sample = add_constant();
    let model = prepared(&device, &sample.model);
    let role = v1_3::BufferRole { model_index: 0, io_index: 0, frequency: 1.0 };
    let models = [Some(Arc::clone(&model))];
    let desc = v1_3::BufferDesc::default();
    let (status, buffer, token) = device.allocate(&desc, &models, &[role], &[role]).unwrap();
    assert!(status == NONE && buffer.is_some());
    // DBUF-1: no token at all; DBUF-3: a buffer with nothing in it.
    for (token, expected) in [(0, INVALID), (token, FAILURE)] {
        let mut request = to::<v1_3::Request>(&sample.request());
        request.inputs[0] = v1_0::RequestArgument {
            location: v1_0::DataLocation { pool_index: 1, offset: 0, length: 0 },
            ..v1_0::RequestArgument::default()
        };
        request.pools.push(v1_3::MemoryPool::Token(token));
        let notified = Notified::<Executed>::new();
        let callback = Some(notified.clone() as _);
        let status = model.execute_1_3(&request, NO, NO_DEADLINE, NO_DURATION, callback).unwrap();
        assert_eq!((status, notified.count()), (expected, 1));
        assert_eq!(notified.only(), (expected, Some((vec![], Timing::NONE))));
    }
}

#[test]
fn exec_9_nothing_but_the_output_is_written() {
    let sample = add_constant();
    let model = prepared(&served(), &sample.model);
    let request = sample.request();
    let [nnhal_hal::RequestMemoryPool::Memory(memory)] = &request.pools[..] else {
        panic!("one pool")
    };
    let view = memory.view().unwrap();
    let output = request.outputs[0].location;
    let mut expected = view.read_to_vec(0, view.size()).unwrap();
    let range = output.offset as usize..(output.offset + output.length) as usize;
    expected[range].copy_from_slice(&sample.output);
    for (_, execute) in EXECUTE {
        let notified = Notified::<Executed>::new();
        assert_eq!(execute(&*model, &request, Some(notified.clone())), NONE);
        assert_eq!(notified.only().0, NONE);
        assert_eq!(view.read_to_vec(0, view.size()).unwrap(), expected);
    }
}

#[test]
fn exec_12_a_client_that_writes_its_inputs_meanwhile_is_survived() {
    let sample = add_constant();
    let model = prepared(&served(), &sample.model);
    let request = sample.request();
    let [nnhal_hal::RequestMemoryPool::Memory(memory)] = &request.pools[..] else {
        panic!("one pool")
    };
    let (view, done) = (memory.view().unwrap(), std::sync::atomic::AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for byte in (0..=u8::MAX).cycle() {
                view.write(0, &[byte; 8]).unwrap();
                if done.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
            }
        });
        let statuses: Vec<_> = (0..200)
            .map(|_| {
                let notified = Notified::<Executed>::new();
                assert_eq!(EXECUTE[2].1(&*model, &request, Some(notified.clone())), NONE);
                notified.only().0
            })
            .collect();
        // Before anything that may panic: the other thread waits for it.
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(statuses.iter().all(|status| *status == NONE));
    });
}

#[test]
fn fence_1_and_3_handles_that_are_no_fences_are_invalid() {
    let sample = add_constant();
    let model = prepared(&served(), &sample.model);
    let file = || -> OwnedFd { tempfile::tempfile().unwrap().into() };
    let named: OwnedFd = {
        use std::os::unix::fs::OpenOptionsExt;
        let path_only = rustix::fs::OFlags::PATH.bits().cast_signed();
        std::fs::File::options().read(true).custom_flags(path_only).open("/").unwrap().into()
    };
    let bad = [
        Handle::NULL,
        Handle::new(vec![], vec![]),
        Handle::new(vec![file(), file()], vec![]),
        Handle::of_fd(named),
    ];
    for fence in bad {
        let (status, fence, callback) = model
            .execute_fenced(
                &to(&sample.request()),
                &[fence],
                NO,
                NO_DEADLINE,
                NO_DURATION,
                NO_DURATION,
            )
            .unwrap();
        assert!(status == INVALID && fence.is_null() && callback.is_none());
    }
    // FENCE-2
    let request = to(&sample.request_with_room(7));
    let (status, _, callback) =
        model.execute_fenced(&request, &[], NO, NO_DEADLINE, NO_DURATION, NO_DURATION).unwrap();
    assert!(status == INVALID && callback.is_none());
}

/// What does not even arrive as memory has failed to be copied.
#[test]
fn buf_1_a_copy_from_memory_that_is_none_takes_the_old_value() {
    let device = served();
    let sample = add_constant();
    let model = prepared(&device, &sample.model);
    let role = v1_3::BufferRole { model_index: 0, io_index: 0, frequency: 1.0 };
    let desc = v1_3::BufferDesc::default();
    let (status, buffer, _) = device.allocate(&desc, &[Some(model)], &[role], &[]).unwrap();
    let buffer = buffer.unwrap();
    assert_eq!(status, NONE);
    let memory: HidlMemory = to(&Memory::allocate(8).unwrap());
    let strange = HidlMemory { name: "strange".to_owned(), ..memory.clone() };
    let too_long = HidlMemory { size: 1 << 30, ..memory.clone() };
    for wrong in [HidlMemory::default(), strange, too_long] {
        assert_eq!(buffer.copy_from(&memory, &[]).unwrap(), NONE);
        assert_eq!(buffer.copy_to(&memory).unwrap(), NONE);
        assert_eq!(buffer.copy_from(&wrong, &[]).unwrap(), INVALID);
        assert_eq!(buffer.copy_to(&memory).unwrap(), FAILURE, "{wrong:?}");
    }
}

/// A buffer of the device to be read and written by the first arguments of the model.
fn buffer(
    device: &serve::Device,
    model: &Arc<dyn v1_3::IPreparedModel>,
) -> (Arc<dyn v1_3::IBuffer>, u32) {
    let role = [v1_3::BufferRole { model_index: 0, io_index: 0, frequency: 1.0 }];
    let (desc, models) = (v1_3::BufferDesc::default(), [Some(Arc::clone(model))]);
    let (status, buffer, token) = device.allocate(&desc, &models, &role, &role).unwrap();
    assert_eq!(status, NONE);
    (buffer.unwrap(), token)
}

fn in_pool(pool_index: u32) -> v1_0::RequestArgument {
    let location = v1_0::DataLocation { pool_index, offset: 0, length: 0 };
    v1_0::RequestArgument { location, ..v1_0::RequestArgument::default() }
}

/// A client that keeps the thread that tells it.
struct Holding(Arc<(Mutex<bool>, Condvar)>);

impl v1_0::IExecutionCallback for Holding {
    fn notify(&self, _status: i32) -> Return<()> {
        let (is_held, changed) = &*self.0;
        let held = is_held.lock().unwrap();
        drop(changed.wait_timeout_while(held, common::LONG, |held| *held).unwrap());
        Ok(())
    }
}

/// Accepted when it was launched, and wrong by the time that it is run.
#[test]
fn buf_1_an_asynchronous_request_that_turns_wrong_takes_the_old_value_of_its_output() {
    let limits = Limits { threads: 1, ..Limits::default() };
    let device = serve::Device::with_limits(nnhal_reference::device(), limits);
    let sample = add_constant();
    let model = prepared(&device, &sample.model);
    let ((input, in_token), (output, out_token)) =
        (buffer(&device, &model), buffer(&device, &model));
    let memory: HidlMemory = to(&Memory::allocate(8).unwrap());
    for buffer in [&input, &output] {
        assert_eq!(buffer.copy_from(&memory, &[]).unwrap(), NONE);
    }
    let hold = Arc::new((Mutex::new(true), Condvar::new()));
    let holding = Some(Arc::new(Holding(Arc::clone(&hold))) as _);
    assert_eq!(model.execute(&to(&sample.request()), holding).unwrap(), NONE);
    let request = v1_3::Request {
        inputs: vec![in_pool(0)],
        outputs: vec![in_pool(1)],
        pools: vec![v1_3::MemoryPool::Token(in_token), v1_3::MemoryPool::Token(out_token)],
    };
    let notified = Notified::<Executed>::new();
    let callback = Some(notified.clone() as _);
    let status = model.execute_1_3(&request, NO, NO_DEADLINE, NO_DURATION, callback).unwrap();
    assert_eq!(status, NONE);
    // The input loses its value before the execution begins.
    assert_eq!(input.copy_from(&HidlMemory::default(), &[]).unwrap(), INVALID);
    assert_eq!(output.copy_to(&memory).unwrap(), NONE);
    *hold.0.lock().unwrap() = false;
    hold.1.notify_all();
    assert_eq!(notified.only().0, FAILURE);
    assert_eq!(output.copy_to(&memory).unwrap(), FAILURE, "it is uninitialized");
    // One that is refused when it is launched takes nothing.
    assert_eq!(output.copy_from(&memory, &[]).unwrap(), NONE);
    let notified = Notified::<Executed>::new();
    let callback = Some(notified.clone() as _);
    let status = model.execute_1_3(&request, NO, NO_DEADLINE, NO_DURATION, callback).unwrap();
    assert_eq!((status, notified.only().0), (FAILURE, FAILURE));
    assert_eq!(output.copy_to(&memory).unwrap(), NONE);
}

/// Two interfaces over one device, for one client.
#[test]
fn sec_4_a_token_is_of_use_only_with_the_device_that_gave_it() {
    let device = nnhal_reference::device();
    let [ours, other] = [(); 2].map(|()| serve::Device::new(Arc::clone(&device)));
    let sample = add_constant();
    let [model, other_model] = [&ours, &other].map(|device| prepared(device, &sample.model));
    let (kept, token) = buffer(&ours, &model);
    // A pool that no argument uses.
    let mut request = to::<v1_3::Request>(&sample.request());
    request.pools.push(v1_3::MemoryPool::Token(token));
    let run = |model: &Arc<dyn v1_3::IPreparedModel>| {
        let notified = Notified::<Executed>::new();
        let callback = Some(notified.clone() as _);
        let launched = model.execute_1_3(&request, NO, NO_DEADLINE, NO_DURATION, callback).unwrap();
        let (run, ..) =
            model.execute_synchronously_1_3(&request, NO, NO_DEADLINE, NO_DURATION).unwrap();
        let (fenced, ..) =
            model.execute_fenced(&request, &[], NO, NO_DEADLINE, NO_DURATION, NO_DURATION).unwrap();
        [launched, notified.only().0, run, fenced]
    };
    assert_eq!(run(&model), [NONE; 4]);
    assert_eq!(run(&other_model), [INVALID; 4]);
    drop(kept);
    assert_eq!(run(&model), [INVALID; 4]);
}
