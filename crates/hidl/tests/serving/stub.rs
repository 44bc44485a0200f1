//! What depends on the device: caching, what takes long, what panics.

use super::*;

/// A device whose every answer is set by a test. It prepares nothing of its own.
struct Stub {
    /// Of its cache files: what it was given to save.
    saved: Mutex<Vec<(usize, usize, CacheToken)>>,
    /// How it loads.
    load: fn() -> nnhal_hal::Result<Arc<dyn PreparedModel>>,
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
    ) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
        assert_eq!((model_cache.len(), data_cache.len(), *token), (1, 2, TOKEN));
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
