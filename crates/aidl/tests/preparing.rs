//! When `prepareModel` returns, and when its callback is notified.

use nn::ErrorStatus::ErrorStatus as WireStatus;
use nn::ExecutionPreference::ExecutionPreference;
use nn::IDevice::IDevice;
use nn::IPreparedModel::IPreparedModel;
use nn::IPreparedModelCallback::{BnPreparedModelCallback, IPreparedModelCallback};
use nn::Priority::Priority;
use nnhal_aidl::convert::model_to_wire;
use nnhal_aidl::interface::nn;
use nnhal_aidl::serve::{self, Guests};
use nnhal_aidl::version::Version;
use nnhal_hal::{
    Capabilities, Device, DeviceType, ErrorStatus, HalVersion, Model, OperandSpec, OperationType,
    PrepareOptions, PreparedModel, SubgraphBuilder, Support,
};
use rsbinder::{BinderResult, Interface, Strong};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(20);

/// The reference device, which prepares when it is asked to go on; `Err` is what it panics with.
struct Waiting {
    device: Arc<dyn Device>,
    go: Mutex<Receiver<Result<(), &'static str>>>,
}

impl Device for Waiting {
    fn name(&self) -> &str {
        "test-waiting"
    }
    fn version_string(&self) -> String {
        "1".to_owned()
    }
    fn device_type(&self) -> DeviceType {
        DeviceType::Cpu
    }
    fn capabilities(&self) -> Capabilities {
        self.device.capabilities()
    }
    fn supported_operations(
        &self,
        model: &Model,
        version: HalVersion,
    ) -> nnhal_hal::Result<Vec<Support>> {
        self.device.supported_operations(model, version)
    }
    fn prepare_model(
        &self,
        model: &Model,
        version: HalVersion,
        options: PrepareOptions,
    ) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
        let outcome = self.go.lock().unwrap().recv_timeout(LONG).unwrap();
        assert_eq!(outcome, Ok(()));
        self.device.prepare_model(model, version, options)
    }
}

/// Passes on what it is notified of: the status, and whether there is a model.
struct Callback(Sender<(i32, bool)>);

impl Interface for Callback {}

impl IPreparedModelCallback for Callback {
    fn notify(
        &self,
        status: WireStatus,
        model: Option<&Strong<dyn IPreparedModel>>,
    ) -> BinderResult<()> {
        self.0.send((status.get(), model.is_some())).unwrap();
        Ok(())
    }
}

/// Adds nothing: RELU of two floats; without its output it is no model.
fn model(valid: bool) -> Model {
    let mut graph = SubgraphBuilder::new();
    let input = graph.input("a", OperandSpec::tensor_float32([2]));
    let spec = OperandSpec::tensor_float32([2]);
    let output = graph.operation(OperationType::Relu, [input], spec);
    graph.output(output);
    let mut model = graph.into_model().unwrap();
    if !valid {
        model.main.outputs.clear();
    }
    model
}

type Go = Sender<Result<(), &'static str>>;

fn service(guests: Guests) -> (Go, Strong<dyn IDevice>) {
    let (go_on, go) = channel();
    let device = Arc::new(Waiting { device: nnhal_reference::device(), go: Mutex::new(go) });
    (go_on, serve::device(device, Version::V4, guests))
}

fn launch(
    device: &Strong<dyn IDevice>,
    model: &Model,
) -> (BinderResult<()>, Receiver<(i32, bool)>) {
    let (sender, notified) = channel();
    let callback = BnPreparedModelCallback::new_binder(Callback(sender));
    let wire = model_to_wire(model).unwrap();
    let (preference, priority) = (ExecutionPreference::FAST_SINGLE_ANSWER, Priority::MEDIUM);
    let returned =
        device.prepareModel(&wire, preference, priority, -1, &[], &[], &[0; 32], &callback);
    (returned, notified)
}

#[test]
fn over_sockets_the_callback_is_notified_before_the_call_returns() {
    let (go_on, device) = service(Guests::one());
    go_on.send(Ok(())).unwrap();
    let (returned, notified) = launch(&device, &model(true));
    returned.unwrap();
    assert_eq!(notified.try_recv(), Ok((0, true)));
}

#[test]
fn where_callbacks_can_be_called_later_the_call_returns_first() {
    let (go_on, device) = service(Guests::one().notified_later());
    // Many of them, which hold up no one that calls.
    let launched: Vec<_> = (0..20).map(|_| launch(&device, &model(true))).collect();
    device.getType().unwrap();
    for (returned, notified) in &launched {
        returned.as_ref().unwrap();
        assert_eq!(notified.try_recv().ok(), None);
    }
    assert_eq!(launched[0].1.recv_timeout(SHORT), Err(RecvTimeoutError::Timeout));
    for _ in &launched {
        go_on.send(Ok(())).unwrap();
    }
    for (_, notified) in launched {
        assert_eq!(notified.recv_timeout(LONG), Ok((0, true)));
        // Once.
        assert_eq!(notified.recv_timeout(LONG), Err(RecvTimeoutError::Disconnected));
    }
}

#[test]
fn what_is_wrong_with_the_model_is_returned_and_notified() {
    for guests in [Guests::one(), Guests::one().notified_later()] {
        let (go_on, device) = service(guests);
        go_on.send(Ok(())).unwrap();
        let (returned, notified) = launch(&device, &model(false));
        let invalid = ErrorStatus::InvalidArgument.code();
        assert_eq!(returned.unwrap_err().service_specific_error(), invalid);
        assert_eq!(notified.recv_timeout(LONG), Ok((invalid, false)));
    }
}

#[test]
fn a_device_that_panics_is_notified_as_a_failure() {
    let (go_on, device) = service(Guests::one().notified_later());
    let (returned, notified) = launch(&device, &model(true));
    returned.unwrap();
    go_on.send(Err("as it is tested")).unwrap();
    let failure = ErrorStatus::GeneralFailure.code();
    assert_eq!(notified.recv_timeout(LONG), Ok((failure, false)));
}
