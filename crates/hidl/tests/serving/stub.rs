//! What depends on the device: caching, what takes long, what panics.

use super::*;

/// A device whose every answer is set by a test. It prepares nothing of its own.
struct Stub {
    /// Of its cache files: what it was given to save.
    saved: Mutex<Vec<(usize, usize, CacheToken)>>,
    /// How it loads.
    load: fn() -> nnhal_hal::Result<Arc<dyn PreparedModel>>,
    /// What it says of cache files before it loads them.
    check: fn() -> nnhal_hal::Result<()>,
    /// Preparing waits while this is `true`.
    held: Arc<(Mutex<bool>, Condvar)>,
    panics: bool,
    cache_files_needed: CacheFilesNeeded,
    /// When preparations were to have ended.
    deadlines: Mutex<Vec<Option<Deadline>>>,
}

impl Stub {
    fn new() -> Self {
        Self {
            saved: Mutex::default(),
            load: || Ok(Arc::new(StubModel)),
            check: || Ok(()),
            held: Arc::default(),
            panics: false,
            cache_files_needed: CacheFilesNeeded { model: 1, data: 2 },
            deadlines: Mutex::default(),
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
        Capabilities::uniform(nnhal_hal::PerformanceInfo::AS_CPU)
    }
    fn cache_files_needed(&self) -> CacheFilesNeeded {
        self.cache_files_needed
    }
    fn supported_operations(
        &self,
        model: &Model,
        _: HalVersion,
    ) -> nnhal_hal::Result<Vec<Support>> {
        Ok(vec![Support::Yes; model.main.operations.len()])
    }
    fn prepare_model(
        &self,
        _: &Model,
        _: HalVersion,
        options: PrepareOptions,
    ) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
        assert!(!self.panics, "on purpose");
        let (held, changed) = &*self.held;
        drop(changed.wait_while(held.lock().unwrap(), |held| *held).unwrap());
        let PrepareOptions { model_cache, data_cache, token, deadline, .. } = options;
        self.deadlines.lock().unwrap().push(deadline);
        self.saved.lock().unwrap().push((model_cache.len(), data_cache.len(), token));
        Ok(Arc::new(StubModel))
    }
    fn check_cache(&self, options: &PrepareOptions) -> nnhal_hal::Result<()> {
        let PrepareOptions { model_cache, data_cache, token, .. } = options;
        assert_eq!((model_cache.len(), data_cache.len(), *token), (1, 2, TOKEN));
        (self.check)()
    }
    fn prepare_model_from_cache(
        &self,
        options: PrepareOptions,
    ) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
        let PrepareOptions { model_cache, data_cache, token, deadline, .. } = options;
        self.deadlines.lock().unwrap().push(deadline);
        assert_eq!((model_cache.len(), data_cache.len(), token), (1, 2, TOKEN));
        let (held, changed) = &*self.held;
        drop(changed.wait_while(held.lock().unwrap(), |held| *held).unwrap());
        (self.load)()
    }
    fn allocate(&self, _: &BufferDescription) -> nnhal_hal::Result<Arc<dyn nnhal_hal::Buffer>> {
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
        let notified = Notified::<Prepared>::new();
        let callback = Some(notified.clone() as _);
        let status = device
            .prepare_model_1_2(&model, FAST, &model_cache, &data_cache, &TOKEN, callback)
            .unwrap();
        // CACHE-2: the client may close its files as soon as it is notified.
        drop((model_cache, data_cache));
        assert_eq!((status, notified.only().0), (NONE, NONE));
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
        let (model, notified) = (files(handles), Notified::<Prepared>::new());
        let status =
            device.prepare_model_from_cache(&model, &[], &TOKEN, Some(notified.clone())).unwrap();
        assert_eq!((status, notified.count(), notified.only().0), (FAILURE, 1, FAILURE));
    }
}

#[test]
fn cache_2_files_go_through_the_interface() {
    use nnhal_hidl::client::{Options, through};
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
        let loaded = device.prepare_model_from_cache(PrepareOptions {
            model_cache: fds(1),
            data_cache: fds(2),
            token: TOKEN,
            ..PrepareOptions::default()
        });
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
fn cache_5_and_7_what_is_wrong_with_the_files_is_notified_and_returned() {
    let load = |device: &serve::Device, model: &[Handle], data: &[Handle]| {
        let notified = Notified::<Prepared>::new();
        let status =
            device.prepare_model_from_cache(model, data, &TOKEN, Some(notified.clone())).unwrap();
        let (notified, model) = notified.only();
        assert_eq!(model.is_some(), notified == NONE);
        (status, notified)
    };
    let good = serve::Device::new(Arc::new(Stub::new()));
    assert_eq!(load(&good, &files(1), &files(2)), (NONE, NONE));
    assert_eq!(load(&good, &files(1), &files(1)), (INVALID, INVALID));
    assert_eq!(load(&good, &[Handle::NULL], &files(2)), (INVALID, INVALID));
    let corrupt = Stub { check: || Err(Error::failure("corrupt")), ..Stub::new() };
    assert_eq!(
        load(&serve::Device::new(Arc::new(corrupt)), &files(1), &files(2)),
        (FAILURE, FAILURE)
    );
    // CACHE-8
    let named = tempfile::NamedTempFile::new().unwrap();
    let reading = Handle::of_fd(std::fs::File::open(named.path()).unwrap().into());
    assert_eq!(load(&good, &[reading], &files(2)), (FAILURE, FAILURE));
}

#[test]
fn cache_5_what_goes_wrong_while_loading_is_notified_only() {
    let served =
        |load| serve::Device::new(Arc::new(Stub { load, ..Stub::new() }) as Arc<dyn Device>);
    let fails = served(|| Err(Error::failure("not to be restored")));
    let notified = Notified::<Prepared>::new();
    let status = fails
        .prepare_model_from_cache(&files(1), &files(2), &TOKEN, Some(notified.clone() as _))
        .unwrap();
    assert_eq!((status, notified.only().0), (NONE, FAILURE));
    let late = served(|| Err(Error::new(ErrorStatus::MissedDeadlinePersistent, "late")));
    let notified = Notified::<Prepared>::new();
    let callback = Some(notified.clone() as _);
    let status = late.prepare_model_from_cache(&files(1), &files(2), &TOKEN, callback).unwrap();
    // GEN-2: 1.2 has no words for it.
    assert_eq!((status, notified.only().0), (NONE, FAILURE));
    let notified = Notified::<Prepared>::new();
    let callback = Some(notified.clone() as _);
    let status = late
        .prepare_model_from_cache_1_3(NO_DEADLINE, &files(1), &files(2), &TOKEN, callback)
        .unwrap();
    assert_eq!(status, NONE);
    assert!(is_missed(notified.only().0));
}

/// A device that takes its time with what is in the files keeps no client waiting in the call.
#[test]
fn cache_5_loading_is_a_task() {
    let stub = Stub::new();
    let held = Arc::clone(&stub.held);
    *held.0.lock().unwrap() = true;
    let device = serve::Device::new(Arc::new(stub));
    let (notified, notified_1_3) = (Notified::<Prepared>::new(), Notified::<Prepared>::new());
    let (model, data) = (files(1), files(2));
    let status =
        device.prepare_model_from_cache(&model, &data, &TOKEN, Some(notified.clone())).unwrap();
    let callback = Some(notified_1_3.clone() as _);
    let status_1_3 =
        device.prepare_model_from_cache_1_3(NO_DEADLINE, &model, &data, &TOKEN, callback).unwrap();
    assert_eq!((status, status_1_3), (NONE, NONE));
    assert_eq!((notified.count(), notified_1_3.count()), (0, 0));
    *held.0.lock().unwrap() = false;
    held.1.notify_all();
    for notified in [notified, notified_1_3] {
        let (status, model) = notified.only();
        assert!(status == NONE && model.is_some());
    }
}

/// CONC-4: as many preparations as there may be threads, and executions go on.
#[test]
fn conc_4_a_crowd_that_prepares_keeps_no_execution_waiting_for_a_thread() {
    let stub = Stub::new();
    let held = Arc::clone(&stub.held);
    let limits = Limits { threads: 2, ..Limits::default() };
    let device = serve::Device::with_limits(Arc::new(stub), limits);
    let ready = prepared(&device, &add_constant().model);
    *held.0.lock().unwrap() = true;
    let model: v1_0::Model = to(&add_constant().model);
    let crowd: Vec<_> = (0..5)
        .map(|_| {
            let notified = Notified::<Prepared>::new();
            assert_eq!(device.prepare_model(&model, Some(notified.clone())).unwrap(), NONE);
            notified
        })
        .collect();
    let notified = Notified::<Executed>::new();
    let request = to(&add_constant().request());
    assert_eq!(ready.execute(&request, Some(notified.clone())).unwrap(), NONE);
    assert_eq!(notified.only().0, FAILURE, "the stub's model panics");
    *held.0.lock().unwrap() = false;
    held.1.notify_all();
    for notified in crowd {
        assert_eq!(notified.only().0, NONE);
    }
}

/// A client by itself, which leaves: its tasks are counted, refused beyond a limit, and end.
#[test]
fn conc_5_tasks_are_the_clients_and_end_when_it_leaves() {
    use nnhal_hal::client::{Client, ClientLimits, Holding};
    let client = Client::new("test", ClientLimits { tasks: 2, ..ClientLimits::default() });
    let device =
        serve::Device::for_client(nnhal_reference::device(), client.clone(), Limits::default());
    let model = prepared(&device, &endless().model);
    let request: v1_3::Request = to(&endless().request());
    let fifteen = OptionalTimeoutDuration::Nanoseconds(15_000_000_000);
    let execute = || {
        let notified = Notified::<Executed>::new();
        let callback = Some(notified.clone() as _);
        (model.execute_1_3(&request, NO, NO_DEADLINE, fifteen, callback).unwrap(), notified)
    };
    let mut begun = Vec::new();
    for expected in [NONE, NONE, FAILURE] {
        let (status, notified) = execute();
        assert_eq!(status, expected);
        begun.push(notified);
    }
    assert_eq!(client.held(Holding::Tasks), 2);
    let begin = std::time::Instant::now();
    client.leave();
    for notified in begun {
        assert_eq!(notified.only().0, FAILURE);
    }
    assert!(begin.elapsed() < Duration::from_secs(10));
    let (status, notified) = execute();
    assert_eq!((status, notified.only().0), (FAILURE, FAILURE));
}

/// SEC-3: a model counts from when its preparation is launched until it is gone, and as long as a burst has it.
#[test]
fn conc_5_prepared_models_are_the_clients_and_limited_with_those_being_prepared() {
    use nnhal_hal::client::{Client, ClientLimits, Holding};
    let client =
        Client::new("test", ClientLimits { prepared_models: 3, ..ClientLimits::default() });
    let stub = Stub::new();
    let held = Arc::clone(&stub.held);
    let device = serve::Device::for_client(Arc::new(stub), client.clone(), Limits::default());
    let ready = prepared(&device, &add_constant().model);
    let of_two = [ready.clone()];
    *held.0.lock().unwrap() = true;
    let preparing = Notified::<Prepared>::new();
    let status = PREPARE[0].1(&device, &add_constant().model, Some(Arc::clone(&preparing)));
    assert_eq!(status, NONE);
    let loading = Notified::<Prepared>::new();
    let callback = Some(loading.clone() as _);
    let status = device.prepare_model_from_cache(&files(1), &files(2), &TOKEN, callback).unwrap();
    assert_eq!((status, client.held(Holding::PreparedModels)), (NONE, 3));
    // GEN-2: only 1.3 has words for it.
    for (version, prepare) in PREPARE {
        let expected = if version == HalVersion::V1_3 { EXHAUSTED } else { FAILURE };
        let notified = Notified::<Prepared>::new();
        let status = prepare(&device, &add_constant().model, Some(Arc::clone(&notified)));
        assert_eq!((status, notified.only().0), (expected, expected), "{version}");
    }
    let notified = Notified::<Prepared>::new();
    let callback = Some(notified.clone() as _);
    let status = device
        .prepare_model_from_cache_1_3(NO_DEADLINE, &files(1), &files(2), &TOKEN, callback)
        .unwrap();
    assert_eq!((status, notified.only().0), (EXHAUSTED, EXHAUSTED));
    *held.0.lock().unwrap() = false;
    held.1.notify_all();
    let models = [preparing, loading].map(|notified| notified.only().1.unwrap());
    assert_eq!(client.held(Holding::PreparedModels), 3);
    drop(models);
    assert_eq!(client.held(Holding::PreparedModels), 1);
    drop((ready, of_two));
    assert_eq!(client.held(Holding::PreparedModels), 0);
    // What could not be prepared does not count.
    let fails = Stub { load: || Err(Error::failure("on purpose")), ..Stub::new() };
    let device = serve::Device::for_client(Arc::new(fails), client.clone(), Limits::default());
    let notified = Notified::<Prepared>::new();
    let callback = Some(notified.clone() as _);
    let status = device.prepare_model_from_cache(&files(1), &files(2), &TOKEN, callback).unwrap();
    assert_eq!((status, notified.only().0), (NONE, FAILURE));
    wait_until(|| client.held(Holding::PreparedModels) == 0);
}

/// A client whose process ends between the launch and the notification: over a transport its callback answers that it is
/// dead, and with it goes what was prepared for it.
#[test]
fn conc_5_a_client_that_dies_between_launch_and_callback_leaves_nothing() {
    use nnhal_hal::client::{Client, Holding};
    struct Dead;
    impl v1_0::IPreparedModelCallback for Dead {
        fn notify(&self, _: i32, _: Option<Arc<dyn v1_0::IPreparedModel>>) -> Return<()> {
            Err(nnhal_hidl::TransportError::DeadObject)
        }
    }
    impl v1_0::IExecutionCallback for Dead {
        fn notify(&self, _: i32) -> Return<()> {
            Err(nnhal_hidl::TransportError::DeadObject)
        }
    }
    let client = Client::new("test", nnhal_hal::ClientLimits::default());
    let stub = Stub::new();
    let held = Arc::clone(&stub.held);
    let device = serve::Device::for_client(Arc::new(stub), client.clone(), Limits::default());
    *held.0.lock().unwrap() = true;
    let mut model = add_constant().model;
    model.pools = vec![Memory::from_bytes(&[0; 8]).unwrap()];
    let callback = Arc::new(Dead);
    assert_eq!(device.prepare_model(&to(&model), Some(callback.clone())).unwrap(), NONE);
    client.leave();
    // Whoever has left launches nothing, and is answered all the same.
    let refused = Notified::<Prepared>::new();
    let status = PREPARE[3].1(&device, &model, Some(Arc::clone(&refused)));
    assert_eq!((status, refused.only().0), (FAILURE, FAILURE));
    *held.0.lock().unwrap() = false;
    held.1.notify_all();
    let is_free = |what: &Holding| client.held(*what) == 0;
    wait_until(|| Holding::ALL.iter().all(is_free) && Arc::strong_count(&callback) == 1);

    // The same in the middle of an execution.
    let client = Client::new("test", nnhal_hal::ClientLimits::default());
    let reference = nnhal_reference::device();
    let device = serve::Device::for_client(reference, client.clone(), Limits::default());
    let endless = endless();
    let prepared = prepared(&device, &endless.model);
    let request = to(&endless.request());
    assert_eq!(prepared.execute(&request, Some(callback.clone())).unwrap(), NONE);
    wait_until(|| client.held(Holding::Executions) == 1);
    let begin = std::time::Instant::now();
    client.leave();
    drop(prepared);
    wait_until(|| Holding::ALL.iter().all(|what| client.held(*what) == 0));
    wait_until(|| Arc::strong_count(&callback) == 1);
    // Sooner than its loop would have timed out.
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
}

/// SEC-3: the pools of a model are descriptors of the service for as long as the device may read them.
#[test]
fn conc_5_descriptors_of_a_models_pools_are_the_clients_and_limited() {
    use nnhal_hal::client::{Client, ClientLimits, Holding};
    let client = Client::new("test", ClientLimits { descriptors: 3, ..ClientLimits::default() });
    let device = nnhal_reference::device();
    let device = serve::Device::for_client(device, client.clone(), Limits::default());
    let model = |pools: usize| {
        let mut model = add_constant().model;
        model.pools = (0..pools).map(|_| Memory::from_bytes(&[0; 8]).unwrap()).collect();
        model
    };
    let refused = Notified::<Prepared>::new();
    let status = PREPARE[3].1(&device, &model(4), Some(Arc::clone(&refused)));
    assert_eq!((status, refused.only().0), (EXHAUSTED, EXHAUSTED));
    assert_eq!((client.held(Holding::Descriptors), client.held(Holding::PreparedModels)), (0, 0));
    let kept = prepared(&device, &model(3));
    assert!(client.held(Holding::Descriptors) <= 3);
    drop(kept);
    wait_until(|| client.held(Holding::Descriptors) == 0);
    // As often as one likes.
    for _ in 0..5 {
        drop(prepared(&device, &model(3)));
        wait_until(|| client.held(Holding::Descriptors) == 0);
    }
    // GEN-4: what is wrong with a model is said first.
    let (limits, device) = (ClientLimits::default(), nnhal_reference::device());
    let none = Client::new("none", ClientLimits { prepared_models: 0, descriptors: 0, ..limits });
    let none = serve::Device::for_client(device, none, Limits::default());
    let notified = Notified::<Prepared>::new();
    let status = PREPARE[3].1(&none, &invalid(), Some(Arc::clone(&notified)));
    assert_eq!((status, notified.only().0), (INVALID, INVALID));
}

/// Also where the device knows nothing of clients, as one of another process does.
#[test]
fn conc_5_bursts_are_the_clients_and_end_when_it_leaves_whatever_the_device() {
    use nnhal_burst::{Connection, QUEUE_CAPACITY};
    use nnhal_hal::client::{Client, ClientLimits, Holding};
    struct Gives;
    impl v1_2::IBurstCallback for Gives {
        fn get_memories(&self, _: &[i32]) -> Return<(i32, Vec<HidlMemory>)> {
            Ok((FAILURE, vec![]))
        }
    }
    let client = Client::new("test", ClientLimits { bursts: 1, ..ClientLimits::default() });
    let device = Arc::new(Stub::new());
    let device = serve::Device::for_client(device, client.clone(), Limits::default());
    let model = prepared(&device, &add_constant().model);
    let connection = Connection::new(QUEUE_CAPACITY).unwrap();
    let requests = connection.requests().descriptor().unwrap().into();
    let results = connection.results().descriptor().unwrap().into();
    let configure =
        || model.configure_execution_burst(Some(Arc::new(Gives)), &requests, &results).unwrap();
    let (status, context) = configure();
    assert_eq!((status, client.held(Holding::Bursts)), (NONE, 1));
    let (refused, none) = configure();
    assert!(refused == FAILURE && none.is_none());
    client.leave();
    let context = context.unwrap();
    wait_until(|| context.ping().is_err() && client.held(Holding::Bursts) == 0);
}

/// SEC-3: so are those of executions that wait or run when their call has returned.
#[test]
fn conc_5_descriptors_of_asynchronous_executions_are_the_clients_and_limited() {
    use nnhal_hal::client::{Client, ClientLimits, Holding};
    let client = Client::new("test", ClientLimits { descriptors: 2, ..ClientLimits::default() });
    let device = nnhal_reference::device();
    let device = serve::Device::for_client(device, client.clone(), Limits::default());
    let model = prepared(&device, &endless().model);
    let request: v1_3::Request = to(&endless().request());
    let fifteen = OptionalTimeoutDuration::Nanoseconds(15_000_000_000);
    let mut begun = Vec::new();
    for expected in [NONE, NONE, EXHAUSTED] {
        let notified = Notified::<Executed>::new();
        let callback = Some(notified.clone() as _);
        let status = model.execute_1_3(&request, NO, NO_DEADLINE, fifteen, callback).unwrap();
        assert_eq!(status, expected);
        begun.push(notified);
    }
    let refused = begun.pop().unwrap();
    assert_eq!(refused.only(), (EXHAUSTED, Some((vec![], Timing::NONE))));
    assert_eq!((client.held(Holding::Descriptors), client.held(Holding::Tasks)), (2, 2));
    client.leave();
    for notified in begun {
        assert_eq!(notified.only().0, FAILURE);
    }
    wait_until(|| client.held(Holding::Descriptors) == 0);
}

/// SEC-3: what says how a fenced execution ended is there until the client lets go of it.
#[test]
fn conc_5_outcomes_of_fenced_executions_are_the_clients_and_limited() {
    use nnhal_hal::client::{Client, ClientLimits, Holding};
    let limits = ClientLimits { fenced_outcomes: 2, ..ClientLimits::default() };
    let client = Client::new("test", limits);
    let device = nnhal_reference::device();
    let device = serve::Device::for_client(device, client.clone(), Limits::default());
    let sample = add_constant();
    let model = prepared(&device, &sample.model);
    let launch = |room: usize| {
        let request = to(&sample.request_with_room(room));
        model.execute_fenced(&request, &[], NO, NO_DEADLINE, NO_DURATION, NO_DURATION).unwrap()
    };
    let kept = [launch(8), launch(8)].map(|(status, _, callback)| {
        assert_eq!(status, NONE);
        callback.unwrap()
    });
    wait_until(|| kept.iter().all(|callback| callback.get_execution_info().unwrap().0 == NONE));
    assert_eq!(client.held(Holding::FencedExecutions), 0);
    let (status, fence, callback) = launch(8);
    assert!(status == EXHAUSTED && fence.is_null() && callback.is_none());
    drop(kept);
    // What is refused has none.
    assert_eq!((launch(7).0, client.held(Holding::FencedOutcomes)), (INVALID, 0));
    assert_eq!(launch(8).0, NONE);
}

/// The service's limit to the time of a preparation holds for each method, also where none is asked for.
#[test]
fn qos_2_a_preparation_ends_at_the_earlier_of_what_it_asks_and_what_its_client_may() {
    use nnhal_hal::client::{Client, ClientLimits};
    let stub = Arc::new(Stub::new());
    let preparing = Duration::from_secs(50);
    let client = Client::new("test", ClientLimits { preparing, ..ClientLimits::default() });
    let device = serve::Device::for_client(Arc::clone(&stub) as _, client, Limits::default());
    let begin = Deadline::after(preparing);
    let deadline = || stub.deadlines.lock().unwrap().pop().expect("a preparation");
    for (version, prepare) in PREPARE {
        let notified = Notified::<Prepared>::new();
        let status = prepare(&device, &add_constant().model, Some(Arc::clone(&notified)));
        assert_eq!((status, notified.only().0), (NONE, NONE));
        let found = deadline().expect("the service's");
        assert!(begin <= found && found <= Deadline::after(preparing), "{version}: {found:?}");
    }
    let nanoseconds = |deadline: Deadline| {
        OptionalTimePoint::NanosecondsSinceEpoch(deadline.nanoseconds_since_epoch())
    };
    let soon = Deadline::after(Duration::from_secs(5));
    let late = Deadline::after(Duration::from_secs(500));
    for wanted in [NO_DEADLINE, nanoseconds(late), nanoseconds(soon)] {
        let model: v1_3::Model = to(&add_constant().model);
        let (prepared, loaded) = (Notified::<Prepared>::new(), Notified::<Prepared>::new());
        let callback = Some(prepared.clone() as _);
        device.prepare_model_1_3(&model, FAST, MEDIUM, wanted, &[], &[], &TOKEN, callback).unwrap();
        assert_eq!(prepared.only().0, NONE);
        let of_model = deadline().expect("the service's");
        let callback = Some(loaded.clone() as _);
        device
            .prepare_model_from_cache_1_3(wanted, &files(1), &files(2), &TOKEN, callback)
            .unwrap();
        assert_eq!(loaded.only().0, NONE);
        let of_cache = deadline().expect("the service's");
        for found in [of_model, of_cache] {
            match wanted == nanoseconds(soon) {
                true => assert_eq!(found, soon),
                false => assert!(found < late, "{found:?}"),
            }
        }
    }
}

fn wait_until(mut is_true: impl FnMut() -> bool) {
    let begin = std::time::Instant::now();
    while !is_true() {
        assert!(begin.elapsed() < Duration::from_secs(20), "it did not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A synchronous execution keeps a thread of the service, of which a client gets some only. What does not keep one goes on.
#[test]
fn qos_1_synchronous_executions_of_one_client_are_limited() {
    use nnhal_hal::client::{Client, ClientLimits};
    for (calls, expected) in [(0, [FAILURE, EXHAUSTED]), (1, [NONE, NONE])] {
        let client = Client::new("test", ClientLimits { calls, ..ClientLimits::default() });
        let device = nnhal_reference::device();
        let device = serve::Device::for_client(device, client, Limits::default());
        let model = prepared(&device, &add_constant().model);
        // One after the other.
        for _ in 0..2 {
            let request: v1_0::Request = to(&add_constant().request());
            let (old, ..) = model.execute_synchronously(&request, NO).unwrap();
            let request: v1_3::Request = to(&add_constant().request());
            let no_limit = OptionalTimeoutDuration::None;
            let (new, shapes, _) =
                model.execute_synchronously_1_3(&request, NO, NO_DEADLINE, no_limit).unwrap();
            assert_eq!([old, new], expected);
            assert!(new == NONE || shapes.is_empty(), "{shapes:?}");
        }
        let notified = Notified::<Executed>::new();
        let request = to(&add_constant().request());
        assert_eq!(model.execute(&request, Some(notified.clone())).unwrap(), NONE);
        assert_eq!(notified.only().0, NONE);
    }
}

#[test]
fn prep_4_a_task_that_cannot_be_started_is_notified_and_returned() {
    let stub = Stub::new();
    let held = Arc::clone(&stub.held);
    *held.0.lock().unwrap() = true;
    let limits = Limits { threads: 1, waiting: 1, ..Limits::default() };
    let device = serve::Device::with_limits(Arc::new(stub), limits);
    let model: v1_0::Model = to(&add_constant().model);
    let all: Vec<_> = (0..10)
        .map(|_| {
            let notified = Notified::<Prepared>::new();
            (device.prepare_model(&model, Some(notified.clone())).unwrap(), notified)
        })
        .collect();
    *held.0.lock().unwrap() = false;
    held.1.notify_all();
    let refused = all.iter().filter(|(status, _)| *status == FAILURE).count();
    assert!((8..10).contains(&refused), "{refused}");
    for (status, notified) in all {
        assert_eq!(notified.only().0, status);
    }
}

/// Also what still waits for a thread then.
#[test]
fn qos_3_what_waits_is_given_up_at_its_deadline() {
    let stub = Stub::new();
    let held = Arc::clone(&stub.held);
    *held.0.lock().unwrap() = true;
    let limits = Limits { threads: 1, ..Limits::default() };
    let soon = || {
        let soon = Deadline::after(Duration::from_millis(50));
        OptionalTimePoint::NanosecondsSinceEpoch(soon.nanoseconds_since_epoch())
    };
    let device = serve::Device::with_limits(Arc::new(stub), limits);
    let model: v1_3::Model = to(&add_constant().model);
    let prepare = |deadline| {
        let notified = Notified::<Prepared>::new();
        let callback = Some(notified.clone() as _);
        let status = device
            .prepare_model_1_3(&model, FAST, MEDIUM, deadline, &[], &[], &TOKEN, callback)
            .unwrap();
        assert_eq!(status, NONE);
        notified
    };
    let first = prepare(NO_DEADLINE);
    assert!(is_missed(prepare(soon()).only().0));
    let loaded = Notified::<Prepared>::new();
    let callback = Some(loaded.clone() as _);
    let status = device
        .prepare_model_from_cache_1_3(soon(), &files(1), &files(2), &TOKEN, callback)
        .unwrap();
    assert!(status == NONE && is_missed(loaded.only().0));
    assert_eq!(first.count(), 0);
    *held.0.lock().unwrap() = false;
    held.1.notify_all();
    assert_eq!(first.only().0, NONE);

    let device = serve::Device::with_limits(nnhal_reference::device(), limits);
    let model = prepared(&device, &endless().model);
    let request: v1_3::Request = to(&endless().request());
    let execute = |deadline, seconds: u64| {
        let timeout = OptionalTimeoutDuration::Nanoseconds(seconds * 1_000_000_000);
        let notified = Notified::<Executed>::new();
        let callback = Some(notified.clone() as _);
        let status = model.execute_1_3(&request, NO, deadline, timeout, callback).unwrap();
        assert_eq!(status, NONE);
        notified
    };
    let first = execute(NO_DEADLINE, 5);
    let (status, answer) = execute(soon(), 15).only();
    assert!(is_missed(status) && answer == Some((vec![], Timing::NONE)));
    assert_eq!(first.count(), 0, "it goes on");
    assert!(is_missed(first.only().0));
}

#[test]
fn conc_4_preparing_blocks_no_one() {
    let stub = Stub::new();
    let held = Arc::clone(&stub.held);
    let device = serve::Device::new(Arc::new(stub));
    let ready = prepared(&device, &add_constant().model);
    *held.0.lock().unwrap() = true;
    let notified = Notified::<Prepared>::new();
    let model: v1_0::Model = to(&add_constant().model);
    assert_eq!(device.prepare_model(&model, Some(notified.clone())).unwrap(), NONE);
    assert_eq!(device.get_supported_operations(&model).unwrap(), (NONE, vec![true]));
    assert_eq!(device.get_capabilities().unwrap().0, NONE);
    let request = to(&add_constant().request());
    assert_eq!(ready.execute_synchronously(&request, NO).unwrap().0, FAILURE);
    assert_eq!(notified.count(), 0);
    *held.0.lock().unwrap() = false;
    held.1.notify_all();
    assert_eq!(notified.only().0, NONE);
}

#[test]
fn gen_8_a_device_that_panics_fails_the_call_only() {
    let stub: Arc<dyn Device> = Arc::new(Stub { panics: true, ..Stub::new() });
    let device = serve::Device::new(stub);
    assert_eq!(device.get_version_string().unwrap(), (FAILURE, String::new()));
    assert_eq!(device.get_capabilities().unwrap().0, FAILURE);
    let notified = Notified::<Prepared>::new();
    let status = device.prepare_model(&to(&add_constant().model), Some(notified.clone())).unwrap();
    assert_eq!((status, notified.only().0), (NONE, FAILURE));

    let device = serve::Device::new(Arc::new(Stub::new()));
    let model = prepared(&device, &add_constant().model);
    let request = add_constant().request();
    let notified = Notified::<Executed>::new();
    assert_eq!(model.execute(&to(&request), Some(notified.clone())).unwrap(), NONE);
    assert_eq!(notified.only().0, FAILURE);
    let answer = model.execute_synchronously(&to(&request), YES).unwrap();
    assert_eq!(answer, (FAILURE, vec![], Timing::NONE));
    let (status, buffer, token) =
        device.allocate(&v1_3::BufferDesc::default(), &[Some(model)], &[], &[]).unwrap();
    assert!(status == FAILURE && buffer.is_none() && token == 0);
}
