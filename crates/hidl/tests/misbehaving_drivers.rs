//! Drivers that do what they must not, used as devices: nothing hangs, nothing panics, and what they
//! did is said.

mod common;

use common::add_constant;
use hal::{
    Cancellation, Device, Error, ErrorStatus, ExecutionError, ExecutionOptions, HalVersion,
    PrepareOptions, PreparedModel, Request,
};
use hidl::client::{self, Interface, Misbehaviour, Options};
use hidl::v1_2::{CacheToken, OutputShape, Timing};
use hidl::v1_3::{OptionalTimePoint, OptionalTimeoutDuration};
use hidl::{Handle, HidlMemory, MQDescriptor, Return, TransportError, v1_0, v1_1, v1_2, v1_3};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const NONE: i32 = ErrorStatus::None.code();
const FAILURE: i32 = ErrorStatus::GeneralFailure.code();
const SMALL: i32 = ErrorStatus::OutputInsufficientSize.code();
/// No status of any version.
const STRANGE: i32 = 4711;

type PreparedCallback = Arc<dyn v1_3::IPreparedModelCallback>;
type ExecutionCallback = Arc<dyn v1_3::IExecutionCallback>;

/// A driver that does with callbacks what a test says, and otherwise nothing.
#[derive(Clone)]
struct Driver {
    prepare: Arc<dyn Fn(PreparedCallback) -> Return<i32> + Send + Sync>,
    supported: (i32, Vec<bool>),
    capabilities: v1_3::Capabilities,
    version_string: String,
    device_type: i32,
    extensions: Vec<v1_2::Extension>,
    cache_files: (u32, u32),
    allocated: (i32, bool, u32),
}

impl Driver {
    fn new() -> Self {
        let one = v1_0::PerformanceInfo { exec_time: 1.0, power_usage: 1.0 };
        Self {
            prepare: Arc::new(|callback| {
                callback.notify_1_3(NONE, Some(Arc::new(Model::new()))).map(|()| NONE)
            }),
            supported: (NONE, vec![true]),
            capabilities: v1_3::Capabilities {
                relaxed_float32to_float16_performance_scalar: one,
                relaxed_float32to_float16_performance_tensor: one,
                operand_performance: [3, 5]
                    .map(|operand_type| v1_2::OperandPerformance { operand_type, info: one })
                    .to_vec(),
                if_performance: one,
                while_performance: one,
            },
            version_string: "1".to_owned(),
            device_type: 1,
            extensions: vec![],
            cache_files: (0, 0),
            allocated: (NONE, true, 1),
        }
    }

    fn preparing(
        prepare: impl Fn(PreparedCallback) -> Return<i32> + Send + Sync + 'static,
    ) -> Self {
        Self { prepare: Arc::new(prepare), ..Self::new() }
    }

    fn device_with(self, options: Options) -> Arc<dyn Device> {
        let interface = Interface::V1_3(Arc::new(self));
        Arc::new(client::Device::new("test-driver", interface, options).unwrap())
    }

    fn device(self) -> Arc<dyn Device> {
        self.device_with(Options::default())
    }

    /// Why nothing can be done with what it says of itself.
    fn refused(self) -> String {
        let refused = client::from_v1_3("test-driver", Arc::new(self)).err().unwrap();
        assert_eq!(refused.status(), ErrorStatus::GeneralFailure);
        refused.to_string()
    }
}

impl v1_0::IDevice for Driver {
    fn get_capabilities(&self) -> Return<(i32, v1_0::Capabilities)> {
        Ok((FAILURE, v1_0::Capabilities::default()))
    }
    fn get_supported_operations(&self, _: &v1_0::Model) -> Return<(i32, Vec<bool>)> {
        Ok(self.supported.clone())
    }
    fn prepare_model(
        &self,
        _: &v1_0::Model,
        _: Option<Arc<dyn v1_0::IPreparedModelCallback>>,
    ) -> Return<i32> {
        panic!("on purpose")
    }
    fn get_status(&self) -> Return<i32> {
        Ok(STRANGE)
    }
    fn cast_to_1_3(self: Arc<Self>) -> Option<Arc<dyn v1_3::IDevice>> {
        panic!("on purpose")
    }
}

impl v1_1::IDevice for Driver {
    fn get_capabilities_1_1(&self) -> Return<(i32, v1_1::Capabilities)> {
        Err(TransportError::DeadObject)
    }
    fn get_supported_operations_1_1(&self, _: &v1_1::Model) -> Return<(i32, Vec<bool>)> {
        Err(TransportError::DeadObject)
    }
    fn prepare_model_1_1(
        &self,
        _: &v1_1::Model,
        _: i32,
        _: Option<Arc<dyn v1_0::IPreparedModelCallback>>,
    ) -> Return<i32> {
        Err(TransportError::DeadObject)
    }
}

impl v1_2::IDevice for Driver {
    fn get_version_string(&self) -> Return<(i32, String)> {
        Ok((NONE, self.version_string.clone()))
    }
    fn get_type(&self) -> Return<(i32, i32)> {
        Ok((NONE, self.device_type))
    }
    fn get_capabilities_1_2(&self) -> Return<(i32, v1_2::Capabilities)> {
        Ok((STRANGE, v1_2::Capabilities::default()))
    }
    fn get_supported_extensions(&self) -> Return<(i32, Vec<v1_2::Extension>)> {
        Ok((NONE, self.extensions.clone()))
    }
    fn get_supported_operations_1_2(&self, _: &v1_2::Model) -> Return<(i32, Vec<bool>)> {
        Ok(self.supported.clone())
    }
    fn get_number_of_cache_files_needed(&self) -> Return<(i32, u32, u32)> {
        Ok((NONE, self.cache_files.0, self.cache_files.1))
    }
    fn prepare_model_1_2(
        &self,
        _: &v1_2::Model,
        _: i32,
        _: &[Handle],
        _: &[Handle],
        _: &CacheToken,
        _: Option<Arc<dyn v1_2::IPreparedModelCallback>>,
    ) -> Return<i32> {
        panic!("on purpose")
    }
    fn prepare_model_from_cache(
        &self,
        _: &[Handle],
        _: &[Handle],
        _: &CacheToken,
        _: Option<Arc<dyn v1_2::IPreparedModelCallback>>,
    ) -> Return<i32> {
        panic!("on purpose")
    }
}

impl v1_3::IDevice for Driver {
    fn get_capabilities_1_3(&self) -> Return<(i32, v1_3::Capabilities)> {
        Ok((NONE, self.capabilities.clone()))
    }
    fn get_supported_operations_1_3(&self, _: &v1_3::Model) -> Return<(i32, Vec<bool>)> {
        Ok(self.supported.clone())
    }
    fn prepare_model_1_3(
        &self,
        _: &v1_3::Model,
        _: i32,
        _: i32,
        _: OptionalTimePoint,
        _: &[Handle],
        _: &[Handle],
        _: &CacheToken,
        callback: Option<PreparedCallback>,
    ) -> Return<i32> {
        (self.prepare)(callback.unwrap())
    }
    fn prepare_model_from_cache_1_3(
        &self,
        _: OptionalTimePoint,
        _: &[Handle],
        _: &[Handle],
        _: &CacheToken,
        callback: Option<PreparedCallback>,
    ) -> Return<i32> {
        (self.prepare)(callback.unwrap())
    }
    fn allocate(
        &self,
        _: &v1_3::BufferDesc,
        _: &[Option<Arc<dyn v1_3::IPreparedModel>>],
        _: &[v1_3::BufferRole],
        _: &[v1_3::BufferRole],
    ) -> Return<(i32, Option<Arc<dyn v1_3::IBuffer>>, u32)> {
        let (status, buffer, token) = self.allocated;
        Ok((status, buffer.then(|| Arc::new(Buffer) as _), token))
    }
}

struct Buffer;

impl v1_3::IBuffer for Buffer {
    fn copy_to(&self, _: &HidlMemory) -> Return<i32> {
        Ok(STRANGE)
    }
    fn copy_from(&self, _: &HidlMemory, _: &[u32]) -> Return<i32> {
        panic!("on purpose")
    }
}

/// A prepared model that answers what a test says.
#[derive(Clone)]
struct Model {
    execute: Arc<dyn Fn(ExecutionCallback) -> Return<i32> + Send + Sync>,
    synchronous: (i32, Vec<OutputShape>, Timing),
    fenced: Arc<dyn Fn() -> (i32, Handle, bool) + Send + Sync>,
    burst: bool,
}

impl Model {
    fn new() -> Self {
        Self {
            execute: Arc::new(|callback| {
                callback.notify_1_3(NONE, &[], Timing::NONE).map(|()| NONE)
            }),
            synchronous: (NONE, vec![], Timing::NONE),
            fenced: Arc::new(|| (NONE, Handle::NULL, true)),
            burst: false,
        }
    }

    fn answering(status: i32, shapes: &[(&[u32], bool)], times: (u64, u64)) -> Self {
        let shapes = shapes.iter().map(|(dimensions, is_sufficient)| OutputShape {
            dimensions: dimensions.to_vec(),
            is_sufficient: *is_sufficient,
        });
        let timing = Timing { time_on_device: times.0, time_in_driver: times.1 };
        Self { synchronous: (status, shapes.collect(), timing), ..Self::new() }
    }

    fn executing(
        execute: impl Fn(ExecutionCallback) -> Return<i32> + Send + Sync + 'static,
    ) -> Self {
        Self { execute: Arc::new(execute), ..Self::new() }
    }

    fn prepared_with(self, options: Options) -> Arc<dyn PreparedModel> {
        let driver = Driver::preparing(move |callback| {
            callback.notify_1_3(NONE, Some(Arc::new(self.clone()))).map(|()| NONE)
        });
        prepare(&*driver.device_with(options)).unwrap()
    }

    /// Used synchronously.
    fn prepared(self) -> Arc<dyn PreparedModel> {
        self.prepared_with(Options::default())
    }

    /// Used by callbacks.
    fn prepared_asynchronous(self) -> Arc<dyn PreparedModel> {
        self.prepared_with(Options { asynchronous: true, ..Options::default() })
    }
}

impl v1_0::IPreparedModel for Model {
    fn execute(
        &self,
        _: &v1_0::Request,
        _: Option<Arc<dyn v1_0::IExecutionCallback>>,
    ) -> Return<i32> {
        Ok(STRANGE)
    }
}

impl v1_2::IPreparedModel for Model {
    fn execute_1_2(
        &self,
        _: &v1_0::Request,
        _: i32,
        _: Option<Arc<dyn v1_2::IExecutionCallback>>,
    ) -> Return<i32> {
        Ok(STRANGE)
    }
    fn execute_synchronously(
        &self,
        _: &v1_0::Request,
        _: i32,
    ) -> Return<(i32, Vec<OutputShape>, Timing)> {
        Ok((STRANGE, vec![], Timing::NONE))
    }
    fn configure_execution_burst(
        &self,
        callback: Option<Arc<dyn v1_2::IBurstCallback>>,
        requests: &MQDescriptor,
        results: &MQDescriptor,
    ) -> Return<(i32, Option<Arc<dyn v1_2::IBurstContext>>)> {
        // What it is given works, whatever it makes of it.
        assert!(callback.is_some() && requests.grantors.len() == 4 && results.grantors.len() == 4);
        Ok((NONE, self.burst.then(|| Arc::new(DeadContext) as _)))
    }
}

/// A burst that nobody serves.
struct DeadContext;

impl v1_2::IBurstContext for DeadContext {
    fn free_memory(&self, _: i32) -> Return<()> {
        panic!("on purpose")
    }
    fn ping(&self) -> Return<()> {
        Err(TransportError::DeadObject)
    }
}

impl v1_3::IPreparedModel for Model {
    fn execute_1_3(
        &self,
        _: &v1_3::Request,
        _: i32,
        _: OptionalTimePoint,
        _: OptionalTimeoutDuration,
        callback: Option<ExecutionCallback>,
    ) -> Return<i32> {
        (self.execute)(callback.unwrap())
    }
    fn execute_synchronously_1_3(
        &self,
        _: &v1_3::Request,
        _: i32,
        _: OptionalTimePoint,
        _: OptionalTimeoutDuration,
    ) -> Return<(i32, Vec<OutputShape>, Timing)> {
        Ok(self.synchronous.clone())
    }
    fn execute_fenced(
        &self,
        _: &v1_3::Request,
        _: &[Handle],
        _: i32,
        _: OptionalTimePoint,
        _: OptionalTimeoutDuration,
        _: OptionalTimeoutDuration,
    ) -> Return<(i32, Handle, Option<Arc<dyn v1_3::IFencedExecutionCallback>>)> {
        let (status, fence, callback) = (self.fenced)();
        Ok((status, fence, callback.then(|| Arc::new(Info) as _)))
    }
}

struct Info;

impl v1_3::IFencedExecutionCallback for Info {
    fn get_execution_info(&self) -> Return<(i32, Timing, Timing)> {
        // More on the device than in the driver (contract: TIME-2).
        let timing = Timing { time_on_device: 9, time_in_driver: 1 };
        Ok((NONE, timing, Timing { time_on_device: 1, time_in_driver: 2 }))
    }
}

fn prepare(device: &dyn Device) -> hal::Result<Arc<dyn PreparedModel>> {
    device.prepare_model(&add_constant().model, HalVersion::V1_3, PrepareOptions::default())
}

fn misbehaviour(error: &Error) -> &Misbehaviour {
    assert_eq!(error.status(), ErrorStatus::GeneralFailure, "{error}");
    error.reason().unwrap_or_else(|| panic!("{error}"))
}

fn prepared_badly(
    prepare_model: impl Fn(PreparedCallback) -> Return<i32> + Send + Sync + 'static,
) -> Misbehaviour {
    let refused = prepare(&*Driver::preparing(prepare_model).device()).err().unwrap();
    misbehaviour(&refused).clone()
}

const PREPARE: &str = "prepareModel_1_3";

#[test]
fn a_model_that_is_missing_is_noticed() {
    let found = prepared_badly(|callback| callback.notify_1_3(NONE, None).map(|()| NONE));
    assert_eq!(found, Misbehaviour::Nothing { method: PREPARE, what: "prepared model" });
    let found = prepared_badly(|callback| callback.notify(NONE, None).map(|()| NONE));
    assert_eq!(found, Misbehaviour::Nothing { method: PREPARE, what: "prepared model" });
}

#[test]
fn a_model_that_comes_with_an_error_is_ignored() {
    let driver = Driver::preparing(|callback| {
        callback.notify_1_3(FAILURE, Some(Arc::new(Model::new()))).map(|()| NONE)
    });
    let refused = prepare(&*driver.device()).err().unwrap();
    let reason: &client::Answered = refused.reason().unwrap();
    assert_eq!(reason.status, ErrorStatus::GeneralFailure);
}

#[test]
fn ipc_5_a_callback_that_is_let_go_ends_the_wait() {
    let never = Misbehaviour::NeverNotified { method: PREPARE };
    assert_eq!(prepared_badly(|_| Ok(NONE)), never);
    let later = |callback: PreparedCallback| {
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            drop(callback);
        });
        Ok(NONE)
    };
    assert_eq!(prepared_badly(later), never);
}

#[test]
fn a_callback_that_is_kept_for_ever_ends_the_wait_when_patience_does() {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keeps = Arc::clone(&kept);
    let driver = Driver::preparing(move |callback| {
        keeps.lock().unwrap().push(callback);
        Ok(NONE)
    });
    let options = Options { patience: Duration::from_millis(30), ..Options::default() };
    let device = driver.clone().device_with(options);
    let refused = prepare(&*device).err().unwrap();
    assert_eq!(misbehaviour(&refused), &Misbehaviour::NotInTime { method: PREPARE, seconds: 0 });
    // What comes too late harms nobody.
    kept.lock().unwrap().pop().unwrap().notify_1_3(NONE, Some(Arc::new(Model::new()))).unwrap();

    // A client can give up before.
    let device = driver.device();
    let cancellation = Cancellation::new();
    let switch = cancellation.clone();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        switch.cancel();
    });
    let options = PrepareOptions { cancellation: Some(cancellation), ..PrepareOptions::default() };
    let begin = Instant::now();
    assert!(device.prepare_model(&add_constant().model, HalVersion::V1_3, options).is_err());
    assert!(begin.elapsed() < common::LONG);
}

#[test]
fn cb_1_of_several_notifications_the_first_counts() {
    let driver = Driver::preparing(|callback| {
        callback.notify_1_3(NONE, Some(Arc::new(Model::new())))?;
        callback.notify_1_3(FAILURE, None)?;
        callback.notify(STRANGE, None)?;
        Ok(NONE)
    });
    assert!(prepare(&*driver.device()).is_ok());
    let model = Model::executing(|callback| {
        callback.notify_1_3(NONE, &[], Timing::NONE)?;
        callback.notify_1_2(FAILURE, &[], Timing::NONE)?;
        callback.notify(STRANGE)?;
        Ok(NONE)
    });
    let request = add_constant().request();
    assert!(model.prepared_asynchronous().execute(&request, &ExecutionOptions::default()).is_ok());
}

#[test]
fn a_launch_error_counts_whatever_the_callback_says() {
    let driver = Driver::preparing(|callback| {
        callback.notify_1_3(NONE, Some(Arc::new(Model::new())))?;
        Ok(ErrorStatus::DeviceUnavailable.code())
    });
    let refused = prepare(&*driver.device()).err().unwrap();
    assert_eq!(refused.status(), ErrorStatus::DeviceUnavailable);
    // And nobody waits for a callback after it.
    let kept = Mutex::new(Vec::new());
    let driver = Driver::preparing(move |callback| {
        kept.lock().unwrap().push(callback);
        Ok(FAILURE)
    });
    assert!(prepare(&*driver.device()).is_err());
}

#[test]
fn gen_7_numbers_that_are_no_status_are_noticed() {
    let status = Misbehaviour::Status { method: PREPARE, code: STRANGE };
    assert_eq!(prepared_badly(|_| Ok(STRANGE)), status);
    assert_eq!(prepared_badly(|callback| callback.notify(STRANGE, None).map(|()| NONE)), status);
    let device = Driver::new().device();
    assert_eq!(device.status(), hal::DeviceStatus::Unknown);
}

#[test]
fn drivers_that_panic_or_are_gone_fail_the_call() {
    let panics = Misbehaviour::Panicked { method: PREPARE };
    assert_eq!(prepared_badly(|_| panic!("on purpose")), panics);
    let driver = Driver::preparing(|_| Err(TransportError::DeadObject));
    let refused = prepare(&*driver.device()).err().unwrap();
    assert_eq!(refused.status(), ErrorStatus::DeviceUnavailable);
    assert_eq!(refused.reason(), Some(&TransportError::DeadObject));
    // One that asks to be cast.
    let refused = client::from_newest("test-driver", Arc::new(Driver::new())).err().unwrap();
    assert_eq!(misbehaviour(&refused), &Misbehaviour::Panicked { method: "castFrom" });
    let refused = client::from_v1_1("test-driver", Arc::new(Driver::new())).err().unwrap();
    assert_eq!(refused.status(), ErrorStatus::DeviceUnavailable);
}

#[test]
fn cb_4_a_model_by_an_older_method_serves_as_what_it_is() {
    // It comes by 1.0's method and does not say that it is newer.
    let driver = Driver::preparing(|callback| {
        callback.notify(NONE, Some(Arc::new(Model::new()))).map(|()| NONE)
    });
    let prepared = prepare(&*driver.device()).unwrap();
    let failed = prepared.execute(&add_constant().request(), &ExecutionOptions::default());
    let found = failed.unwrap_err().error;
    let expected = Misbehaviour::Status { method: "execute", code: STRANGE };
    assert_eq!(misbehaviour(&found), &expected);
}

#[test]
fn dev_sup_2_an_answer_of_another_length_is_noticed() {
    for supported in [vec![], vec![true, true]] {
        let found = supported.len();
        let device = Driver { supported: (NONE, supported), ..Driver::new() }.device();
        let refused = device.supported_operations(&add_constant().model, HalVersion::V1_3);
        let expected = Misbehaviour::Count {
            method: "getSupportedOperations_1_3",
            what: "operations",
            found,
            expected: 1,
        };
        assert_eq!(misbehaviour(&refused.unwrap_err()), &expected);
    }
    let device = Driver { supported: (FAILURE, vec![true]), ..Driver::new() }.device();
    assert!(device.supported_operations(&add_constant().model, HalVersion::V1_3).is_err());
}

#[test]
fn what_no_client_could_work_with_is_refused_at_once() {
    assert!(Driver { version_string: String::new(), ..Driver::new() }.refused().contains("empty"));
    for device_type in [0, 5] {
        let refused = Driver { device_type, ..Driver::new() }.refused();
        assert!(refused.contains("DeviceType"), "{refused}");
    }
    assert!(Driver { cache_files: (33, 0), ..Driver::new() }.refused().contains("33"));
    let extension = v1_2::Extension { name: "nodot".to_owned(), operand_types: vec![] };
    assert!(Driver { extensions: vec![extension], ..Driver::new() }.refused().contains("nodot"));

    let refused = |change: fn(&mut v1_3::Capabilities)| {
        let mut driver = Driver::new();
        change(&mut driver.capabilities);
        driver.refused()
    };
    // DEV-CAP-4
    let refusal = refused(|capabilities| capabilities.operand_performance.swap(0, 1));
    assert!(refusal.contains("sorted"), "{refusal}");
    let refusal = refused(|capabilities| {
        let first = capabilities.operand_performance[0];
        capabilities.operand_performance.insert(0, first);
    });
    assert!(refusal.contains("sorted"), "{refusal}");
    // DEV-CAP-6 and what is no type at all.
    let subgraph = refused(|capabilities| capabilities.operand_performance[1].operand_type = 15);
    assert!(subgraph.contains("SUBGRAPH"), "{subgraph}");
    let none = refused(|capabilities| capabilities.operand_performance[1].operand_type = 16);
    assert!(none.contains("OperandType"), "{none}");
    // DEV-CAP-3
    for cost in [0.0, -1.0, f32::NAN] {
        let mut driver = Driver::new();
        driver.capabilities.if_performance.exec_time = cost;
        assert!(driver.refused().contains("above 0"));
    }
}

fn executed(model: Model, measure: bool) -> Result<hal::Execution, ExecutionError> {
    let options = ExecutionOptions { measure, ..ExecutionOptions::default() };
    model.prepared().execute(&add_constant().request(), &options)
}

const EXECUTE: &str = "executeSynchronously_1_3";
const NOT_TIMED: (u64, u64) = (u64::MAX, u64::MAX);

#[test]
fn cb_7_shapes_that_do_not_go_with_the_status_are_noticed() {
    let shapes = |status, what| Misbehaviour::Shapes { method: EXECUTE, status, what };
    let none = ErrorStatus::None;
    let small = ErrorStatus::OutputInsufficientSize;
    let fine: (&[u32], bool) = (&[1, 2], true);
    let short: (&[u32], bool) = (&[1, 2], false);
    let cases = [
        (Model::answering(NONE, &[short], NOT_TIMED), shapes(none, "one had too short a buffer")),
        (Model::answering(SMALL, &[], NOT_TIMED), shapes(small, "there are none")),
        (Model::answering(SMALL, &[fine], NOT_TIMED), shapes(small, "all had buffers long enough")),
        (
            Model::answering(NONE, &[fine, fine], NOT_TIMED),
            Misbehaviour::Count { method: EXECUTE, what: "output shapes", found: 2, expected: 1 },
        ),
        (
            Model::answering(STRANGE, &[], NOT_TIMED),
            Misbehaviour::Status { method: EXECUTE, code: STRANGE },
        ),
    ];
    for (model, expected) in cases {
        let failed = executed(model, false).unwrap_err();
        assert_eq!(misbehaviour(&failed.error), &expected);
        assert!(failed.output_shapes.is_empty());
    }
    // Shapes that come with an error are let go (contract: SHAPE-1).
    let failed = executed(Model::answering(FAILURE, &[fine], NOT_TIMED), false).unwrap_err();
    assert!(failed.output_shapes.is_empty());
    // With the right form it is an answer.
    let failed = executed(Model::answering(SMALL, &[short], NOT_TIMED), false).unwrap_err();
    assert_eq!((failed.error.status(), failed.output_shapes.len()), (small, 1));
}

#[test]
fn shape_2_shapes_may_be_left_out_where_all_are_known() {
    let execution = executed(Model::new(), false).unwrap();
    assert_eq!(execution.dimensions(0), Some(&[1, 2][..]));
    // And not where one is unknown.
    let sample = common::unknown_output();
    let device = Driver::new().device();
    let options = PrepareOptions::default();
    let prepared = device.prepare_model(&sample.model, HalVersion::V1_3, options).unwrap();
    let failed = prepared.execute(&sample.request(), &ExecutionOptions::default()).unwrap_err();
    let expected = Misbehaviour::UnknownShape { method: EXECUTE, output: 0 };
    assert_eq!(misbehaviour(&failed.error), &expected);
}

#[test]
fn time_1_and_2_times_that_were_not_asked_for_or_contradict_are_let_go() {
    let timing =
        |times, measure| executed(Model::answering(NONE, &[], times), measure).unwrap().timing;
    assert_eq!(timing((1, 2), false), hal::Timing::NONE);
    assert_eq!(timing((3, 2), true), hal::Timing::NONE);
    assert_eq!(timing((1, 2), true), hal::Timing::from_microseconds(1, 2));
    assert_eq!(timing((1, u64::MAX), true), hal::Timing::from_microseconds(1, u64::MAX));
}

#[test]
fn executions_whose_callback_is_lost_end() {
    let request: Request = add_constant().request();
    let execute = |model: Model| {
        let options = ExecutionOptions::default();
        model.prepared_asynchronous().execute(&request, &options).unwrap_err().error
    };
    let method = "execute_1_3";
    let lost = execute(Model::executing(|_| Ok(NONE)));
    assert_eq!(misbehaviour(&lost), &Misbehaviour::NeverNotified { method });
    let panicked = execute(Model::executing(|_| panic!("on purpose")));
    assert_eq!(misbehaviour(&panicked), &Misbehaviour::Panicked { method });
    // 1.0's method carries no shapes, without which nobody can use what it says.
    let small = execute(Model::executing(|callback| callback.notify(SMALL).map(|()| NONE)));
    let status = ErrorStatus::OutputInsufficientSize;
    let expected = Misbehaviour::Shapes { method, status, what: "there are none" };
    assert_eq!(misbehaviour(&small), &expected);
}

#[test]
fn fence_4_fences_and_callbacks_that_are_none_are_noticed() {
    let launch = |fenced: fn() -> (i32, Handle, bool)| {
        let model = Model { fenced: Arc::new(fenced), ..Model::new() };
        let request = add_constant().request();
        model.prepared().execute_fenced(&request, &[], &ExecutionOptions::default(), None)
    };
    let method = "executeFenced";
    let refused = launch(|| (NONE, Handle::NULL, false)).unwrap_err();
    assert_eq!(misbehaviour(&refused), &Misbehaviour::Nothing { method, what: "callback" });
    let refused = launch(|| (NONE, Handle::new(vec![], vec![]), true)).unwrap_err();
    assert_eq!(misbehaviour(&refused), &Misbehaviour::Fence { method, descriptors: 0 });
    let refused = launch(|| (STRANGE, Handle::NULL, true)).unwrap_err();
    assert_eq!(misbehaviour(&refused), &Misbehaviour::Status { method, code: STRANGE });
    // Over already; the times of the one contradict each other (contract: TIME-2).
    let launched = launch(|| (NONE, Handle::NULL, true)).unwrap();
    assert!(launched.sync_fence.is_none());
    let (whole, fenced) = launched.info.get().unwrap();
    assert_eq!((whole, fenced), (hal::Timing::NONE, hal::Timing::from_microseconds(1, 2)));
}

#[test]
fn alloc_1_buffers_and_tokens_that_are_none_are_noticed() {
    let allocate = |allocated| {
        let device = Driver { allocated, ..Driver::new() }.device();
        device.allocate(&hal::BufferDescription::default())
    };
    for (allocated, what) in [((NONE, false, 1), "buffer"), ((NONE, true, 0), "token")] {
        let refused = allocate(allocated).err().unwrap();
        let expected = Misbehaviour::Nothing { method: "allocate", what };
        assert_eq!(misbehaviour(&refused), &expected);
    }
    let buffer = allocate((NONE, true, 1)).unwrap();
    let memory = hal::Memory::allocate(4).unwrap();
    let refused = buffer.copy_to(&memory).unwrap_err();
    let expected = Misbehaviour::Status { method: "copyTo", code: STRANGE };
    assert_eq!(misbehaviour(&refused), &expected);
    let refused = buffer.copy_from(&memory, &[]).unwrap_err();
    assert_eq!(misbehaviour(&refused), &Misbehaviour::Panicked { method: "copyFrom" });
}

#[test]
fn ipc_5_bursts_that_are_none_or_that_nobody_serves_end() {
    let refused = Model::new().prepared().configure_burst().err().unwrap();
    let method = "configureExecutionBurst";
    assert_eq!(misbehaviour(&refused), &Misbehaviour::Nothing { method, what: "burst context" });

    let model = Model { burst: true, ..Model::new() };
    let burst = model.prepared().configure_burst().unwrap();
    let request = add_constant().request();
    let failed = burst.execute(&request, false).unwrap_err();
    assert_eq!(failed.error.status(), ErrorStatus::DeviceUnavailable);
    let Some(hal::RequestMemoryPool::Memory(memory)) = request.pools.first() else { panic!() };
    burst.free_memory(memory);
}
