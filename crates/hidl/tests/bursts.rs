//! Bursts by the interfaces: served, used, and both.

mod common;

use common::{Notified, Sample, add_constant, samples};
use nnhal_burst::{Connection, QUEUE_CAPACITY};
use nnhal_hal::{
    Burst, Device, Error, ErrorStatus, ExecutionOptions, HalVersion, Memory, PrepareOptions,
    PreparedModel, Request, RequestMemoryPool,
};
use nnhal_hidl::client::{Options, through};
use nnhal_hidl::convert::Convert;
use nnhal_hidl::v1_2::{IBurstCallback, IBurstContext};
use nnhal_hidl::{Handle, HidlMemory, MQDescriptor, Return, serve, v1_0, v1_3};
use std::sync::{Arc, Mutex};
use v1_0::IDevice as _;

const NONE: i32 = ErrorStatus::None.code();
const INVALID: i32 = ErrorStatus::InvalidArgument.code();
const FAILURE: i32 = ErrorStatus::GeneralFailure.code();

fn prepare(device: &dyn Device, sample: &Sample) -> Arc<dyn PreparedModel> {
    device.prepare_model(&sample.model, HalVersion::LATEST, PrepareOptions::default()).unwrap()
}

#[test]
fn burst_17_a_burst_through_the_interface_answers_as_other_executions() {
    for version in [HalVersion::V1_2, HalVersion::V1_3] {
        let device = through(nnhal_reference::device(), version, Options::default()).unwrap();
        for sample in samples().iter().filter(|sample| sample.since <= version) {
            let prepared = prepare(&*device, sample);
            let burst = prepared.configure_burst().unwrap();
            // BURST-16: the burst keeps its prepared model alive.
            let other = Arc::clone(&prepared);
            drop(prepared);
            for room in [sample.output.len(), sample.output.len() - 1, sample.output.len()] {
                let request = sample.request_with_room(room);
                let found = burst.execute(&request, false);
                let expected = other.execute(&request, &ExecutionOptions::default());
                match (found, expected) {
                    (Ok(found), Ok(expected)) => {
                        assert_eq!(found, expected, "{}", sample.name);
                        sample.assert_result(&request);
                    }
                    (Err(found), Err(expected)) => {
                        assert_eq!(found.error.status(), expected.error.status());
                        assert_eq!(found.output_shapes, expected.output_shapes);
                        assert_eq!(found.output_shapes.len(), 1);
                    }
                    differing => panic!("{}: {differing:?}", sample.name),
                }
            }
            // TIME-3
            let timing = burst.execute(&sample.request(), true).unwrap().timing;
            assert!(timing.time_in_driver.is_some());
            assert!(timing.time_on_device <= timing.time_in_driver);
            // BURST-11
            let mut request = sample.request();
            request.inputs.clear();
            let refused = burst.execute(&request, false).unwrap_err();
            assert_eq!(refused.error.status(), ErrorStatus::InvalidArgument);
        }
    }
}

#[test]
fn burst_10_memory_can_be_freed_and_comes_back() {
    let device = through(nnhal_reference::device(), HalVersion::V1_2, Options::default()).unwrap();
    let sample = add_constant();
    let burst = prepare(&*device, &sample).configure_burst().unwrap();
    let request = sample.request();
    let [RequestMemoryPool::Memory(memory)] = &request.pools[..] else { panic!("one pool") };
    for _ in 0..3 {
        burst.execute(&request, false).unwrap();
        sample.assert_result(&request);
        burst.free_memory(memory);
        burst.free_memory(memory);
    }
}

#[test]
fn burst_14_tokens_are_refused_and_bursts_begin_with_1_2() {
    let device = through(nnhal_reference::device(), HalVersion::V1_3, Options::default()).unwrap();
    let sample = add_constant();
    let burst = prepare(&*device, &sample).configure_burst().unwrap();
    let mut request = sample.request();
    request.pools.push(RequestMemoryPool::Token(1));
    let refused = burst.execute(&request, false).unwrap_err();
    assert_eq!(refused.error.status(), ErrorStatus::InvalidArgument);

    let old = through(nnhal_reference::device(), HalVersion::V1_1, Options::default()).unwrap();
    let refused = prepare(&*old, &sample).configure_burst().err().unwrap();
    assert_eq!(refused.status(), ErrorStatus::GeneralFailure);
}

/// What a client's callback answers is a test's to say.
struct Callback<F>(F);

impl<F: Fn(&[i32]) -> (i32, Vec<HidlMemory>) + Send + Sync> IBurstCallback for Callback<F> {
    fn get_memories(&self, slots: &[i32]) -> Return<(i32, Vec<HidlMemory>)> {
        Ok((self.0)(slots))
    }
}

fn served(sample: &Sample) -> Arc<dyn v1_3::IPreparedModel> {
    let notified = Notified::<common::Prepared>::new();
    let model = v1_0::Model::from_canonical(&sample.model).unwrap();
    let device = serve::Device::new(nnhal_reference::device());
    assert_eq!(device.prepare_model(&model, Some(notified.clone())).unwrap(), NONE);
    notified.only().1.unwrap().newest()
}

fn descriptors(connection: &Connection) -> (MQDescriptor, MQDescriptor) {
    let requests = connection.requests().descriptor().unwrap();
    (requests.into(), connection.results().descriptor().unwrap().into())
}

/// Runs the sample by a burst whose client answers so.
fn executed(
    callback: impl Fn(&[i32]) -> (i32, Vec<HidlMemory>) + Send + Sync + 'static,
) -> ErrorStatus {
    let sample = add_constant();
    let connection = Connection::new(QUEUE_CAPACITY).unwrap();
    let (requests, results) = descriptors(&connection);
    let callback = Some(Arc::new(Callback(callback)) as _);
    let (status, context) =
        served(&sample).configure_execution_burst(callback, &requests, &results).unwrap();
    assert_eq!(status, NONE);
    let client = connection.connect(Context(context.unwrap()));
    match client.execute(&sample.request(), false) {
        Ok(_) => ErrorStatus::None,
        Err(failed) => failed.error.status(),
    }
}

struct Context(Arc<dyn IBurstContext>);

impl nnhal_burst::BurstContext for Context {
    fn free_memory(&self, slot: i32) {
        self.0.free_memory(slot).unwrap();
    }
    fn is_alive(&self) -> bool {
        self.0.ping().is_ok()
    }
}

#[test]
fn burst_7_what_the_client_answers_is_checked() {
    let memory = || HidlMemory::from_canonical(&Memory::allocate(256).unwrap()).unwrap();
    assert_eq!(executed(move |_| (NONE, vec![memory()])), ErrorStatus::None);
    let failure = ErrorStatus::GeneralFailure;
    assert_eq!(executed(move |_| (NONE, vec![memory(), memory()])), failure);
    assert_eq!(executed(|_| (NONE, vec![])), failure);
    assert_eq!(executed(|_| (4711, vec![])), failure);
    assert_eq!(executed(|_| panic!("on purpose")), failure);
    assert_eq!(executed(|_| (INVALID, vec![])), ErrorStatus::InvalidArgument);
    assert_eq!(executed(move |_| (FAILURE, vec![memory()])), failure);
    let null = move || HidlMemory { handle: Handle::NULL, ..memory() };
    assert_eq!(executed(move |_| (NONE, vec![null()])), ErrorStatus::InvalidArgument);
    let short = || HidlMemory::from_canonical(&Memory::allocate(4).unwrap()).unwrap();
    assert_eq!(executed(move |_| (NONE, vec![short()])), ErrorStatus::InvalidArgument);
}

#[test]
fn burst_1_queues_that_are_none_are_refused() {
    let model = served(&add_constant());
    let connection = Connection::new(QUEUE_CAPACITY).unwrap();
    let callback = || Some(Arc::new(Callback(|_: &[i32]| (FAILURE, vec![]))) as _);
    let (good, results) = descriptors(&connection);
    let refused = |requests: &MQDescriptor, results: &MQDescriptor| {
        let answer = model.configure_execution_burst(callback(), requests, results).unwrap();
        assert_eq!(answer.1.is_none(), answer.0 != NONE);
        answer.0 != NONE
    };
    let (status, context) = model.configure_execution_burst(None, &good, &results).unwrap();
    assert!(status == INVALID && context.is_none());
    assert!(refused(&MQDescriptor::default(), &results));
    assert!(refused(&MQDescriptor { handle: Handle::NULL, ..good.clone() }, &results));
    assert!(refused(&MQDescriptor { quantum: 16, ..good.clone() }, &results));
    assert!(refused(&MQDescriptor { flags: 2, ..good.clone() }, &results));
    let mut without_event_flag = good.clone();
    without_event_flag.grantors.pop();
    assert!(refused(&without_event_flag, &results));
    let mut outside = good.clone();
    outside.grantors[2].extent = 24 << 20;
    assert!(refused(&outside, &results));
    assert!(!refused(&good, &results));
}

/// SEC-3: how long a packet can be that is copied is the client's to say, and counts as its memory.
#[test]
fn conc_5_what_long_queues_take_is_the_clients_and_limited() {
    use nnhal_burst::queue::MAXIMUM_CAPACITY;
    use nnhal_hal::client::{Client, ClientLimits, Holding};
    let client = Client::new("test", ClientLimits { memory: 4 << 20, ..ClientLimits::default() });
    let device = nnhal_reference::device();
    let device = serve::Device::for_client(device, client.clone(), Default::default());
    let notified = Notified::<common::Prepared>::new();
    let model = v1_0::Model::from_canonical(&add_constant().model).unwrap();
    assert_eq!(device.prepare_model(&model, Some(notified.clone())).unwrap(), NONE);
    let model = notified.only().1.unwrap().newest();
    let before = client.held(Holding::Memory);
    let configure = |capacity| {
        let (requests, results) = descriptors(&Connection::new(capacity).unwrap());
        let callback = Some(Arc::new(Callback(|_: &[i32]| (FAILURE, vec![]))) as _);
        model.configure_execution_burst(callback, &requests, &results).unwrap()
    };
    let (status, context) = configure(MAXIMUM_CAPACITY);
    assert!(status == FAILURE && context.is_none());
    assert_eq!(client.held(Holding::Memory), before);
    let (status, context) = configure(QUEUE_CAPACITY);
    assert!(status == NONE && client.held(Holding::Memory) > before);
    drop(context);
    let begin = std::time::Instant::now();
    while client.held(Holding::Memory) > before {
        assert!(begin.elapsed() < std::time::Duration::from_secs(20), "it is not given back");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn burst_14_a_burst_has_no_deadline_and_no_loop_timeout() {
    /// Writes down with which options it is executed.
    #[derive(Default)]
    struct Writes(Mutex<Vec<ExecutionOptions>>);
    impl PreparedModel for Writes {
        fn execute(
            &self,
            _: &Request,
            options: &ExecutionOptions,
        ) -> Result<nnhal_hal::Execution, nnhal_hal::ExecutionError> {
            self.0.lock().unwrap().push(options.clone());
            Err(Error::failure("on purpose").into())
        }
    }
    struct Prepares(Arc<Writes>);
    impl Device for Prepares {
        fn name(&self) -> &str {
            "test-writes"
        }
        fn version_string(&self) -> String {
            "1".to_owned()
        }
        fn device_type(&self) -> nnhal_hal::DeviceType {
            nnhal_hal::DeviceType::Other
        }
        fn capabilities(&self) -> nnhal_hal::Capabilities {
            nnhal_hal::Capabilities::uniform(nnhal_hal::PerformanceInfo::AS_CPU)
        }
        fn supported_operations(
            &self,
            _: &nnhal_hal::Model,
            _: HalVersion,
        ) -> nnhal_hal::Result<Vec<nnhal_hal::Support>> {
            Ok(vec![])
        }
        fn prepare_model(
            &self,
            _: &nnhal_hal::Model,
            _: HalVersion,
            _: PrepareOptions,
        ) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
            Ok(Arc::clone(&self.0) as _)
        }
    }
    let writes = Arc::new(Writes::default());
    let device: Arc<dyn Device> = Arc::new(Prepares(Arc::clone(&writes)));
    let device = through(device, HalVersion::V1_3, Options::default()).unwrap();
    let sample = add_constant();
    let burst = prepare(&*device, &sample).configure_burst().unwrap();
    assert!(burst.execute(&sample.request(), true).is_err());
    let options = writes.0.lock().unwrap().pop().unwrap();
    assert!(options.measure && options.deadline.is_none() && options.loop_timeout.is_none());
}
