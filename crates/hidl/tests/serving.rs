//! What a served device owes those who call it by the interfaces themselves.

mod common;

use common::{
    Executed, Prepared, Sample, Told, add_constant, endless, invalid, model_of_1_2, unknown_output,
    unsupported,
};
use hal::{
    BufferDescription, CacheFilesNeeded, CacheToken, Capabilities, Deadline, Device, DeviceType,
    Error, ErrorStatus, Execution, ExecutionError, ExecutionOptions, HalVersion, Memory, Model,
    PrepareOptions, PreparedModel, Request, Support,
};
use hidl::convert::Convert;
use hidl::tasks::Limits;
use hidl::v1_2::Timing;
use hidl::v1_3::{IDevice as _, OptionalTimePoint, OptionalTimeoutDuration};
use hidl::{Handle, HidlMemory, Return, serve, v1_0, v1_1, v1_2, v1_3};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use v1_0::IDevice as _;
use v1_1::IDevice as _;
use v1_2::IDevice as _;

const NONE: i32 = ErrorStatus::None.code();
const FAILURE: i32 = ErrorStatus::GeneralFailure.code();
const INVALID: i32 = ErrorStatus::InvalidArgument.code();
const TOKEN: CacheToken = [7; 32];
const FAST: i32 = hal::ExecutionPreference::FastSingleAnswer.code();
const MEDIUM: i32 = hal::Priority::Medium.code();
const NO_DEADLINE: OptionalTimePoint = OptionalTimePoint::None;
const NO_DURATION: OptionalTimeoutDuration = OptionalTimeoutDuration::None;
const NO: i32 = hal::MeasureTiming::No.code();
const YES: i32 = hal::MeasureTiming::Yes.code();

fn served() -> Arc<serve::Device> {
    serve::Device::new(reference::device())
}

fn to<T: Convert>(canonical: &T::Canonical) -> T {
    T::from_canonical(canonical).unwrap()
}

fn is_missed(status: i32) -> bool {
    status == ErrorStatus::MissedDeadlineTransient.code()
        || status == ErrorStatus::MissedDeadlinePersistent.code()
}

/// How to prepare a model by one version's method, with the callback that goes with it.
type Prepare = fn(&serve::Device, &Model, Option<Arc<Told<Prepared>>>) -> i32;

/// The four methods.
const PREPARE: [(HalVersion, Prepare); 4] = [
    (HalVersion::V1_0, |device, model, callback| {
        device.prepare_model(&to(model), callback.map(|callback| callback as _)).unwrap()
    }),
    (HalVersion::V1_1, |device, model, callback| {
        let callback = callback.map(|callback| callback as _);
        device.prepare_model_1_1(&to(model), FAST, callback).unwrap()
    }),
    (HalVersion::V1_2, |device, model, callback| {
        let callback = callback.map(|callback| callback as _);
        device.prepare_model_1_2(&to(model), FAST, &[], &[], &TOKEN, callback).unwrap()
    }),
    (HalVersion::V1_3, |device, model, callback| {
        let callback = callback.map(|callback| callback as _);
        device
            .prepare_model_1_3(&to(model), FAST, MEDIUM, NO_DEADLINE, &[], &[], &TOKEN, callback)
            .unwrap()
    }),
];

/// A prepared model by 1.3.
fn prepared(device: &serve::Device, model: &Model) -> Arc<dyn v1_3::IPreparedModel> {
    let told = Told::<Prepared>::new();
    assert_eq!(PREPARE[3].1(device, model, Some(Arc::clone(&told))), NONE);
    let (status, model) = told.only();
    assert_eq!(status, NONE);
    model.unwrap().newest()
}

/// CB-3
#[test]
fn prep_3_a_valid_model_is_told_once_by_the_method_of_its_version() {
    for (version, prepare) in PREPARE {
        let told = Told::<Prepared>::new();
        let status = prepare(&served(), &add_constant().model, Some(Arc::clone(&told)));
        assert_eq!(status, NONE, "{version}");
        let (status, model) = told.only();
        assert_eq!(status, NONE);
        let by = match model.as_ref().unwrap() {
            common::Model13::V1_0(_) => HalVersion::V1_0,
            common::Model13::V1_2(_) => HalVersion::V1_2,
            common::Model13::V1_3(_) => HalVersion::V1_3,
        };
        assert_eq!(by, if version == HalVersion::V1_1 { HalVersion::V1_0 } else { version });
        // CB-4: it implements 1.3, by whichever method it came.
        let sample = add_constant();
        let request = sample.request();
        let model = model.unwrap().newest();
        let (status, _, _) =
            model.execute_synchronously_1_3(&to(&request), NO, NO_DEADLINE, NO_DURATION).unwrap();
        assert_eq!(status, NONE);
        sample.assert_result(&request);
    }
}

#[test]
fn prep_1_and_cb_5_an_invalid_model_is_told_and_returned() {
    for (version, prepare) in PREPARE {
        let told = Told::<Prepared>::new();
        let status = prepare(&served(), &invalid(), Some(Arc::clone(&told)));
        // It is told before the method returns.
        assert_eq!((status, told.count()), (INVALID, 1), "{version}");
        let (status, model) = told.only();
        assert!(status == INVALID && model.is_none());
    }
}

#[test]
fn prep_2_a_null_callback_is_invalid() {
    for (version, prepare) in PREPARE {
        assert_eq!(prepare(&served(), &add_constant().model, None), INVALID, "{version}");
    }
    let device = served();
    let status = device.prepare_model_from_cache(&[], &[], &TOKEN, None).unwrap();
    assert_eq!(status, INVALID);
    let status = device.prepare_model_from_cache_1_3(NO_DEADLINE, &[], &[], &TOKEN, None).unwrap();
    assert_eq!(status, INVALID);
}

#[test]
fn prep_5_and_dev_sup_5_a_valid_model_that_cannot_run_is_told_only() {
    let device = served();
    for (version, prepare) in PREPARE {
        let told = Told::<Prepared>::new();
        assert_eq!(prepare(&device, &unsupported(), Some(Arc::clone(&told))), NONE, "{version}");
        let (status, model) = told.only();
        assert!(status != NONE && model.is_none());
    }
    let model = unsupported();
    let no = (NONE, vec![false]);
    assert_eq!(device.get_supported_operations(&to(&model)).unwrap(), no);
    assert_eq!(device.get_supported_operations_1_1(&to(&model)).unwrap(), no);
    assert_eq!(device.get_supported_operations_1_2(&to(&model)).unwrap(), no);
    assert_eq!(device.get_supported_operations_1_3(&to(&model)).unwrap(), no);
}

#[test]
fn dev_sup_1_and_2_an_answer_for_each_operation_or_none() {
    let device = served();
    let model = add_constant().model;
    let yes = (NONE, vec![true]);
    assert_eq!(device.get_supported_operations(&to(&model)).unwrap(), yes);
    assert_eq!(device.get_supported_operations_1_3(&to(&model)).unwrap(), yes);
    let refused = (INVALID, vec![]);
    assert_eq!(device.get_supported_operations(&to(&invalid())).unwrap(), refused);
    assert_eq!(device.get_supported_operations_1_1(&to(&invalid())).unwrap(), refused);
    assert_eq!(device.get_supported_operations_1_2(&to(&invalid())).unwrap(), refused);
    assert_eq!(device.get_supported_operations_1_3(&to(&invalid())).unwrap(), refused);
}

#[test]
fn gen_6_and_7_numbers_of_newer_versions_and_of_none_are_invalid() {
    let device = served();
    let newer = to::<v1_2::Model>(&model_of_1_2());
    let mut old = to::<v1_1::Model>(&add_constant().model);
    old.operands[0].operand_type = newer.operands[0].operand_type;
    let told = Told::<Prepared>::new();
    let status = device.prepare_model_1_1(&old, FAST, Some(told.clone())).unwrap();
    assert_eq!((status, told.count()), (INVALID, 1));
    assert_eq!(device.get_supported_operations_1_1(&old).unwrap(), (INVALID, vec![]));

    let model = add_constant().model;
    for preference in [-1, 3, i32::MAX] {
        let told = Told::<Prepared>::new();
        let status = device.prepare_model_1_1(&to(&model), preference, Some(told.clone())).unwrap();
        assert_eq!((status, told.count(), told.only().0), (INVALID, 1, INVALID));
        let told = Told::<Prepared>::new();
        let model = to(&model);
        let status = device
            .prepare_model_1_2(&model, preference, &[], &[], &TOKEN, Some(told.clone()))
            .unwrap();
        assert_eq!((status, told.only().0), (INVALID, INVALID));
    }
    let unknown = OptionalTimePoint::Unknown { tag: 2 };
    for (preference, priority, deadline) in
        [(3, MEDIUM, NO_DEADLINE), (FAST, 3, NO_DEADLINE), (FAST, MEDIUM, unknown)]
    {
        let told = Told::<Prepared>::new();
        let callback = Some(told.clone() as _);
        let model = to(&model);
        let status = device
            .prepare_model_1_3(&model, preference, priority, deadline, &[], &[], &TOKEN, callback)
            .unwrap();
        assert_eq!((status, told.only().0), (INVALID, INVALID));
    }
}

#[test]
fn prep_6_and_gen_4_a_passed_deadline_is_told_only_and_after_arguments() {
    let device = served();
    let past = OptionalTimePoint::NanosecondsSinceEpoch(1);
    for (model, launched) in [(add_constant().model, NONE), (invalid(), INVALID)] {
        let told = Told::<Prepared>::new();
        let callback = Some(told.clone() as _);
        let status = device
            .prepare_model_1_3(&to(&model), FAST, MEDIUM, past, &[], &[], &TOKEN, callback)
            .unwrap();
        assert_eq!(status, launched);
        let (status, model) = told.only();
        assert!(model.is_none());
        assert!(if launched == NONE { is_missed(status) } else { status == INVALID });
    }
}

fn request_without_input(sample: &Sample) -> Request {
    let mut request = sample.request();
    request.inputs.clear();
    request
}

/// How to execute by one version's asynchronous method.
type Execute = fn(&dyn v1_3::IPreparedModel, &Request, Option<Arc<Told<Executed>>>) -> i32;

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
fn exec_3_an_execution_is_told_once_by_the_method_of_its_version() {
    let sample = add_constant();
    let model = prepared(&served(), &sample.model);
    for (version, execute) in EXECUTE {
        let request = sample.request();
        let told = Told::<Executed>::new();
        assert_eq!(execute(&*model, &request, Some(told.clone())), NONE, "{version}");
        let (status, rest) = told.only();
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
fn exec_1_and_2_wrong_arguments_are_told_and_returned() {
    let sample = add_constant();
    let model = prepared(&served(), &sample.model);
    for (version, execute) in EXECUTE {
        let told = Told::<Executed>::new();
        let status = execute(&*model, &request_without_input(&sample), Some(told.clone()));
        assert_eq!((status, told.count()), (INVALID, 1), "{version}");
        let (status, rest) = told.only();
        assert_eq!(status, INVALID);
        if let Some((shapes, timing)) = rest {
            assert_eq!((shapes.len(), timing), (0, Timing::NONE));
        }
        assert_eq!(execute(&*model, &sample.request(), None), INVALID, "{version}");
    }
    let request = to::<v1_0::Request>(&sample.request());
    let told = Told::<Executed>::new();
    // GEN-7
    assert_eq!(model.execute_1_2(&request, 2, Some(told.clone())).unwrap(), INVALID);
    assert_eq!(told.only().0, INVALID);
    let request = to::<v1_3::Request>(&sample.request());
    let (point, duration) =
        (OptionalTimePoint::Unknown { tag: 9 }, OptionalTimeoutDuration::Unknown { tag: 9 });
    for (measure, deadline, timeout) in
        [(-1, NO_DEADLINE, NO_DURATION), (NO, point, NO_DURATION), (NO, NO_DEADLINE, duration)]
    {
        let told = Told::<Executed>::new();
        let callback = Some(told.clone() as _);
        let status = model.execute_1_3(&request, measure, deadline, timeout, callback).unwrap();
        assert_eq!((status, told.only().0), (INVALID, INVALID));
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
        let told = Told::<Executed>::new();
        let callback = Some(told.clone() as _);
        model.execute_1_2(&to(request), NO, callback).unwrap();
        let (status, rest) = told.only();
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
fn exec_5_and_sync_3_and_qos_7_missed_deadlines_are_told_only() {
    let sample = endless();
    let model = prepared(&served(), &sample.model);
    let past = OptionalTimePoint::NanosecondsSinceEpoch(1);
    let soon = Deadline::after(Duration::from_millis(20)).nanoseconds_since_epoch();
    let soon = OptionalTimePoint::NanosecondsSinceEpoch(soon);
    let short = OptionalTimeoutDuration::Nanoseconds(1_000_000);
    for (deadline, timeout) in [(past, NO_DURATION), (soon, NO_DURATION), (NO_DEADLINE, short)] {
        let request = to(&sample.request());
        let told = Told::<Executed>::new();
        let callback = Some(told.clone() as _);
        assert_eq!(model.execute_1_3(&request, YES, deadline, timeout, callback).unwrap(), NONE);
        let (status, rest) = told.only();
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
    let told = Told::<Executed>::new();
    assert_eq!(model.execute(&request, Some(told.clone())).unwrap(), INVALID);
    assert_eq!(told.only().0, INVALID);
    assert_eq!(model.execute_synchronously(&request, NO).unwrap().0, NONE);
    request.pools[1].handle = Handle::NULL;
    assert_eq!(model.execute_synchronously(&request, NO).unwrap().0, INVALID);
}

#[test]
fn prep_11_the_client_may_close_its_memory_as_soon_as_the_call_returns() {
    let device = served();
    let sample = add_constant();
    let told = Told::<Prepared>::new();
    {
        let model = to::<v1_0::Model>(&sample.model);
        assert_eq!(device.prepare_model(&model, Some(told.clone())).unwrap(), NONE);
    }
    let model = told.only().1.unwrap().newest();
    let canonical = sample.request();
    let told = Told::<Executed>::new();
    {
        let request = to::<v1_0::Request>(&canonical);
        assert_eq!(model.execute(&request, Some(told.clone())).unwrap(), NONE);
    }
    assert_eq!(told.only().0, NONE);
    sample.assert_result(&canonical);
}

#[test]
fn conc_3_the_callback_comes_though_the_client_lets_everything_go() {
    let sample = add_constant();
    for _ in 0..50 {
        let device = served();
        let model = prepared(&device, &sample.model);
        let told = Told::<Executed>::new();
        let status = model.execute(&to(&sample.request()), Some(told.clone())).unwrap();
        assert_eq!(status, NONE);
        drop((device, model));
        assert_eq!(told.only().0, NONE);
    }
}

#[test]
fn prep_14_one_model_is_prepared_by_several_threads_at_once() {
    let device = served();
    let sample = &add_constant();
    let device = &device;
    std::thread::scope(|scope| {
        for (_, prepare) in PREPARE {
            scope.spawn(move || {
                for _ in 0..10 {
                    let told = Told::<Prepared>::new();
                    assert_eq!(prepare(device, &sample.model, Some(told.clone())), NONE);
                    assert_eq!(told.only().0, NONE);
                }
            });
        }
    });
}

#[test]
fn exec_4_wrong_use_of_a_buffer_is_told_and_returned() {
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
        let told = Told::<Executed>::new();
        let callback = Some(told.clone() as _);
        let status = model.execute_1_3(&request, NO, NO_DEADLINE, NO_DURATION, callback).unwrap();
        assert_eq!((status, told.count()), (expected, 1));
        assert_eq!(told.only(), (expected, Some((vec![], Timing::NONE))));
    }
}

#[test]
fn exec_9_nothing_but_the_output_is_written() {
    let sample = add_constant();
    let model = prepared(&served(), &sample.model);
    let request = sample.request();
    let [hal::RequestMemoryPool::Memory(memory)] = &request.pools[..] else { panic!("one pool") };
    let view = memory.view().unwrap();
    let output = request.outputs[0].location;
    let mut expected = view.read_to_vec(0, view.size()).unwrap();
    let range = output.offset as usize..(output.offset + output.length) as usize;
    expected[range].copy_from_slice(&sample.output);
    for (_, execute) in EXECUTE {
        let told = Told::<Executed>::new();
        assert_eq!(execute(&*model, &request, Some(told.clone())), NONE);
        assert_eq!(told.only().0, NONE);
        assert_eq!(view.read_to_vec(0, view.size()).unwrap(), expected);
    }
}

#[test]
fn exec_12_a_client_that_writes_its_inputs_meanwhile_is_survived() {
    let sample = add_constant();
    let model = prepared(&served(), &sample.model);
    let request = sample.request();
    let [hal::RequestMemoryPool::Memory(memory)] = &request.pools[..] else { panic!("one pool") };
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
                let told = Told::<Executed>::new();
                assert_eq!(EXECUTE[2].1(&*model, &request, Some(told.clone())), NONE);
                told.only().0
            })
            .collect();
        // Before anything that may panic: the other thread waits for it.
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(statuses.iter().all(|status| *status == NONE));
    });
}

/// A client that panics when it is told.
struct Panics;

impl v1_0::IPreparedModelCallback for Panics {
    fn notify(&self, _status: i32, _model: Option<Arc<dyn v1_0::IPreparedModel>>) -> Return<()> {
        panic!("on purpose")
    }
}

impl v1_0::IExecutionCallback for Panics {
    fn notify(&self, _status: i32) -> Return<()> {
        panic!("on purpose")
    }
}

/// A client that is not there any more.
struct Dead;

impl v1_0::IPreparedModelCallback for Dead {
    fn notify(&self, _status: i32, _model: Option<Arc<dyn v1_0::IPreparedModel>>) -> Return<()> {
        Err(hidl::TransportError::DeadObject)
    }
}

#[test]
fn cb_2_clients_that_panic_or_are_gone_harm_nobody() {
    let device = served();
    let sample = add_constant();
    let model = to::<v1_0::Model>(&sample.model);
    for _ in 0..100 {
        assert_eq!(device.prepare_model(&model, Some(Arc::new(Panics))).unwrap(), NONE);
        assert_eq!(device.prepare_model(&model, Some(Arc::new(Dead))).unwrap(), NONE);
        let bad = to::<v1_0::Model>(&invalid());
        assert_eq!(device.prepare_model(&bad, Some(Arc::new(Panics))).unwrap(), INVALID);
    }
    let prepared = prepared(&device, &sample.model);
    for _ in 0..100 {
        let request = to(&sample.request());
        assert_eq!(prepared.execute(&request, Some(Arc::new(Panics))).unwrap(), NONE);
    }
    let request = sample.request();
    let (status, _, _) = prepared.execute_synchronously(&to(&request), NO).unwrap();
    assert_eq!(status, NONE);
    sample.assert_result(&request);
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

#[test]
fn alloc_1_and_2_what_cannot_be_allocated_is_null_and_0() {
    let device = served();
    let sample = add_constant();
    let own = prepared(&device, &sample.model);
    let role = v1_3::BufferRole { model_index: 0, io_index: 0, frequency: 1.0 };
    let allocate = |models: &[Option<Arc<dyn v1_3::IPreparedModel>>]| {
        let desc = v1_3::BufferDesc::default();
        let (status, buffer, token) = device.allocate(&desc, models, &[role], &[]).unwrap();
        assert_eq!(buffer.is_some(), token > 0);
        assert_eq!(buffer.is_some(), status == NONE);
        status
    };
    assert_eq!(allocate(&[Some(Arc::clone(&own))]), NONE);
    assert_eq!(allocate(&[]), INVALID);
    assert_eq!(allocate(&[None]), INVALID);
    assert_eq!(allocate(&[Some(Arc::clone(&own)), None]), INVALID);
    let foreign = prepared(&served(), &sample.model);
    assert_eq!(allocate(&[Some(foreign)]), INVALID);
}

#[test]
fn buf_6_memory_that_is_none_is_invalid() {
    let device = served();
    let sample = add_constant();
    let model = prepared(&device, &sample.model);
    let role = v1_3::BufferRole { model_index: 0, io_index: 0, frequency: 1.0 };
    let (status, buffer, _) =
        device.allocate(&v1_3::BufferDesc::default(), &[Some(model)], &[role], &[]).unwrap();
    assert_eq!(status, NONE);
    let buffer = buffer.unwrap();
    let good = to::<HidlMemory>(&Memory::from_bytes(&[0; 8]).unwrap());
    assert_eq!(buffer.copy_from(&good, &[]).unwrap(), NONE);
    assert_eq!(buffer.copy_to(&good).unwrap(), NONE);
    let null = HidlMemory { handle: Handle::NULL, ..good.clone() };
    let unknown = HidlMemory { name: "unknown".to_owned(), ..good };
    for memory in [null, unknown] {
        assert_eq!(buffer.copy_from(&memory, &[]).unwrap(), INVALID);
        assert_eq!(buffer.copy_to(&memory).unwrap(), INVALID);
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(8).unwrap();
    let reading: OwnedFd = std::fs::File::open(file.path()).unwrap().into();
    let memory = Memory::from_file(reading, hal::memory::Protection::READ, 0, 8).unwrap();
    assert_eq!(buffer.copy_to(&to(&memory)).unwrap(), INVALID);
    assert_eq!(buffer.copy_from(&to(&memory), &[]).unwrap(), NONE);
}

/// A device whose every answer is set by a test. It prepares nothing of its own.
struct Stub {
    /// Of its cache files: what it was given to save.
    saved: Mutex<Vec<(usize, usize, CacheToken)>>,
    /// How it loads.
    load: fn() -> hal::Result<Arc<dyn PreparedModel>>,
    /// Preparing waits while this is `true`.
    held: Arc<(Mutex<bool>, Condvar)>,
    panics: bool,
    cache_files_needed: CacheFilesNeeded,
}

impl Stub {
    fn new() -> Self {
        Self {
            saved: Mutex::default(),
            load: || Ok(Arc::new(StubModel)),
            held: Arc::default(),
            panics: false,
            cache_files_needed: CacheFilesNeeded { model: 1, data: 2 },
        }
    }
}

impl Device for Stub {
    fn name(&self) -> &str {
        "test-stub"
    }
    fn version_string(&self) -> String {
        assert!(!self.panics, "on purpose");
        "1".to_owned()
    }
    fn device_type(&self) -> DeviceType {
        DeviceType::Other
    }
    fn capabilities(&self) -> Capabilities {
        assert!(!self.panics, "on purpose");
        Capabilities::uniform(hal::PerformanceInfo::AS_CPU)
    }
    fn cache_files_needed(&self) -> CacheFilesNeeded {
        self.cache_files_needed
    }
    fn supported_operations(&self, model: &Model, _: HalVersion) -> hal::Result<Vec<Support>> {
        Ok(vec![Support::Yes; model.main.operations.len()])
    }
    fn prepare_model(
        &self,
        _: &Model,
        _: HalVersion,
        options: PrepareOptions,
    ) -> hal::Result<Arc<dyn PreparedModel>> {
        assert!(!self.panics, "on purpose");
        let (held, changed) = &*self.held;
        drop(changed.wait_while(held.lock().unwrap(), |held| *held).unwrap());
        let PrepareOptions { model_cache, data_cache, token, .. } = options;
        self.saved.lock().unwrap().push((model_cache.len(), data_cache.len(), token));
        Ok(Arc::new(StubModel))
    }
    fn prepare_model_from_cache(
        &self,
        _: Option<Deadline>,
        model_cache: Vec<OwnedFd>,
        data_cache: Vec<OwnedFd>,
        token: &CacheToken,
    ) -> hal::Result<Arc<dyn PreparedModel>> {
        assert_eq!((model_cache.len(), data_cache.len(), *token), (1, 2, TOKEN));
        (self.load)()
    }
    fn allocate(&self, _: &BufferDescription) -> hal::Result<Arc<dyn hal::Buffer>> {
        panic!("on purpose")
    }
}

/// Panics when it is executed.
struct StubModel;

impl PreparedModel for StubModel {
    fn execute(&self, _: &Request, _: &ExecutionOptions) -> Result<Execution, ExecutionError> {
        panic!("on purpose")
    }
}

fn files(count: usize) -> Vec<Handle> {
    (0..count).map(|_| Handle::of_fd(tempfile::tempfile().unwrap().into())).collect()
}

/// PREP-9: without files the token says nothing.
#[test]
fn prep_7_wrong_cache_handles_change_nothing() {
    let stub = Arc::new(Stub::new());
    let device = serve::Device::new(Arc::clone(&stub) as _);
    let model = to(&add_constant().model);
    let two = Handle::new(
        vec![tempfile::tempfile().unwrap().into(), tempfile::tempfile().unwrap().into()],
        vec![],
    );
    for (model_cache, data_cache, expected) in [
        (files(1), files(2), (1, 2)),
        (vec![], vec![], (0, 0)),
        (files(2), files(2), (0, 0)),
        (files(1), files(3), (0, 0)),
        (vec![Handle::NULL], files(2), (0, 0)),
        (vec![two], files(2), (0, 0)),
    ] {
        let told = Told::<Prepared>::new();
        let callback = Some(told.clone() as _);
        let status = device
            .prepare_model_1_2(&model, FAST, &model_cache, &data_cache, &TOKEN, callback)
            .unwrap();
        // CACHE-2: the client may close its files as soon as it is told.
        drop((model_cache, data_cache));
        assert_eq!((status, told.only().0), (NONE, NONE));
        let saved = stub.saved.lock().unwrap().pop().unwrap();
        assert_eq!((saved.0, saved.1), expected);
        assert_eq!(saved.2, TOKEN);
    }
}

#[test]
fn cache_6_a_device_that_does_not_cache_fails() {
    let cache_files_needed = CacheFilesNeeded::default();
    let device = serve::Device::new(Arc::new(Stub { cache_files_needed, ..Stub::new() }));
    assert_eq!(device.get_number_of_cache_files_needed().unwrap(), (NONE, 0, 0));
    for handles in [0, 1] {
        let (model, told) = (files(handles), Told::<Prepared>::new());
        let status =
            device.prepare_model_from_cache(&model, &[], &TOKEN, Some(told.clone())).unwrap();
        assert_eq!((status, told.count(), told.only().0), (FAILURE, 1, FAILURE));
    }
}

#[test]
fn cache_2_files_go_through_the_interface() {
    use hidl::client::{Options, through};
    let fds = |count| -> Vec<OwnedFd> {
        (0..count).map(|_| tempfile::tempfile().unwrap().into()).collect()
    };
    for version in [HalVersion::V1_1, HalVersion::V1_2, HalVersion::V1_3] {
        let stub = Arc::new(Stub::new());
        let device = through(Arc::clone(&stub) as _, version, Options::default()).unwrap();
        let options = PrepareOptions {
            model_cache: fds(1),
            data_cache: fds(2),
            token: TOKEN,
            ..PrepareOptions::default()
        };
        device.prepare_model(&add_constant().model, HalVersion::LATEST, options).unwrap();
        let (model, data, token) = stub.saved.lock().unwrap().pop().unwrap();
        let loaded = device.prepare_model_from_cache(None, fds(1), fds(2), &TOKEN);
        if version >= HalVersion::V1_2 {
            assert_eq!((model, data, token), (1, 2, TOKEN));
            assert!(loaded.is_ok());
        } else {
            // 1.1 has no words for it.
            assert_eq!((model, data), (0, 0));
            assert_eq!(loaded.err().unwrap().status(), ErrorStatus::GeneralFailure);
        }
    }
}

#[test]
fn cache_5_and_7_a_load_is_told_and_returned() {
    let served =
        |load| serve::Device::new(Arc::new(Stub { load, ..Stub::new() }) as Arc<dyn Device>);
    let load = |device: &serve::Device, model: &[Handle], data: &[Handle]| {
        let told = Told::<Prepared>::new();
        let status =
            device.prepare_model_from_cache(model, data, &TOKEN, Some(told.clone())).unwrap();
        assert_eq!(told.count(), 1);
        let (told, model) = told.only();
        assert_eq!(model.is_some(), told == NONE);
        (status, told)
    };
    let good = served(|| Ok(Arc::new(StubModel)));
    assert_eq!(load(&good, &files(1), &files(2)), (NONE, NONE));
    assert_eq!(load(&good, &files(1), &files(1)), (INVALID, INVALID));
    assert_eq!(load(&good, &[Handle::NULL], &files(2)), (INVALID, INVALID));
    let corrupt = served(|| Err(Error::failure("corrupt")));
    assert_eq!(load(&corrupt, &files(1), &files(2)), (FAILURE, FAILURE));
    // CACHE-8
    let named = tempfile::NamedTempFile::new().unwrap();
    let reading = Handle::of_fd(std::fs::File::open(named.path()).unwrap().into());
    assert_eq!(load(&good, &[reading], &files(2)), (FAILURE, FAILURE));

    let late = served(|| Err(Error::new(ErrorStatus::MissedDeadlinePersistent, "late")));
    // GEN-2 in 1.2; launched all the same.
    assert_eq!(load(&late, &files(1), &files(2)), (NONE, FAILURE));
    let told = Told::<Prepared>::new();
    let callback = Some(told.clone() as _);
    let status = late
        .prepare_model_from_cache_1_3(NO_DEADLINE, &files(1), &files(2), &TOKEN, callback)
        .unwrap();
    assert_eq!(status, NONE);
    assert!(is_missed(told.only().0));
}

#[test]
fn prep_4_a_task_that_cannot_be_started_is_told_and_returned() {
    let stub = Stub::new();
    let held = Arc::clone(&stub.held);
    *held.0.lock().unwrap() = true;
    let limits = Limits { threads: 1, waiting: 1, ..Limits::default() };
    let device = serve::Device::with_limits(Arc::new(stub), limits);
    let model: v1_0::Model = to(&add_constant().model);
    let all: Vec<_> = (0..10)
        .map(|_| {
            let told = Told::<Prepared>::new();
            (device.prepare_model(&model, Some(told.clone())).unwrap(), told)
        })
        .collect();
    *held.0.lock().unwrap() = false;
    held.1.notify_all();
    let refused = all.iter().filter(|(status, _)| *status == FAILURE).count();
    assert!((8..10).contains(&refused), "{refused}");
    for (status, told) in all {
        assert_eq!(told.only().0, status);
    }
}

#[test]
fn conc_4_preparing_blocks_nobody() {
    let stub = Stub::new();
    let held = Arc::clone(&stub.held);
    let device = serve::Device::new(Arc::new(stub));
    let ready = prepared(&device, &add_constant().model);
    *held.0.lock().unwrap() = true;
    let told = Told::<Prepared>::new();
    let model: v1_0::Model = to(&add_constant().model);
    assert_eq!(device.prepare_model(&model, Some(told.clone())).unwrap(), NONE);
    assert_eq!(device.get_supported_operations(&model).unwrap(), (NONE, vec![true]));
    assert_eq!(device.get_capabilities().unwrap().0, NONE);
    let request = to(&add_constant().request());
    assert_eq!(ready.execute_synchronously(&request, NO).unwrap().0, FAILURE);
    assert_eq!(told.count(), 0);
    *held.0.lock().unwrap() = false;
    held.1.notify_all();
    assert_eq!(told.only().0, NONE);
}

#[test]
fn gen_8_a_device_that_panics_fails_the_call_only() {
    let stub: Arc<dyn Device> = Arc::new(Stub { panics: true, ..Stub::new() });
    let device = serve::Device::new(stub);
    assert_eq!(device.get_version_string().unwrap(), (FAILURE, String::new()));
    assert_eq!(device.get_capabilities().unwrap().0, FAILURE);
    let told = Told::<Prepared>::new();
    let status = device.prepare_model(&to(&add_constant().model), Some(told.clone())).unwrap();
    assert_eq!((status, told.only().0), (NONE, FAILURE));

    let device = serve::Device::new(Arc::new(Stub::new()));
    let model = prepared(&device, &add_constant().model);
    let request = add_constant().request();
    let told = Told::<Executed>::new();
    assert_eq!(model.execute(&to(&request), Some(told.clone())).unwrap(), NONE);
    assert_eq!(told.only().0, FAILURE);
    let answer = model.execute_synchronously(&to(&request), YES).unwrap();
    assert_eq!(answer, (FAILURE, vec![], Timing::NONE));
    let (status, buffer, token) =
        device.allocate(&v1_3::BufferDesc::default(), &[Some(model)], &[], &[]).unwrap();
    assert!(status == FAILURE && buffer.is_none() && token == 0);
}

/// DEV-STAT-1, DEV-INFO-1 to DEV-INFO-3, DEV-CAP-1 to DEV-CAP-6, DEV-CACHE-1
#[test]
fn dev_every_description_comes_with_none() {
    let device = served();
    assert_eq!(device.get_status().unwrap(), hal::DeviceStatus::Available.code());
    let (vendor, name) = device.inner().name().split_once('-').unwrap();
    assert!(!vendor.is_empty() && !name.is_empty() && !name.contains('-'));
    let (status, version) = device.get_version_string().unwrap();
    assert!(status == NONE && !version.is_empty());
    let (status, device_type) = device.get_type().unwrap();
    assert!(status == NONE && (1..=4).contains(&device_type));
    let (status, _) = device.get_supported_extensions().unwrap();
    assert_eq!(status, NONE);
    let (status, model, data) = device.get_number_of_cache_files_needed().unwrap();
    assert!(status == NONE && model <= 32 && data <= 32);

    let positive = |info: v1_0::PerformanceInfo| info.exec_time > 0.0 && info.power_usage > 0.0;
    let (status, oldest) = device.get_capabilities().unwrap();
    assert_eq!(status, NONE);
    assert!(positive(oldest.float32_performance) && positive(oldest.quantized8_performance));
    let (status, older) = device.get_capabilities_1_1().unwrap();
    assert_eq!(status, NONE);
    assert!(positive(older.relaxed_float32to_float16_performance));
    // DEV-CAP-4 to DEV-CAP-6
    for (status, rows, last) in [
        {
            let (status, found) = device.get_capabilities_1_2().unwrap();
            (status, found.operand_performance, 13)
        },
        {
            let (status, found) = device.get_capabilities_1_3().unwrap();
            assert!(positive(found.if_performance) && positive(found.while_performance));
            (status, found.operand_performance, 14)
        },
    ] {
        assert_eq!(status, NONE);
        assert!(rows.is_sorted_by(|one, next| one.operand_type < next.operand_type));
        assert!(rows.iter().all(|row| positive(row.info)));
        assert!(rows.iter().all(|row| row.operand_type <= last || row.operand_type >= 10_000));
    }
}
