//! What extensions say of a compilation or an execution, from a client through the interface to a device.

use nn::ExecutionPreference::ExecutionPreference;
use nn::IDevice::IDevice;
use nn::PrepareModelConfig::PrepareModelConfig;
use nn::Priority::Priority;
use nn::TokenValuePair::TokenValuePair as WirePair;
use nnhal_aidl::interface::nn;
use nnhal_aidl::serve::{self, Guests};
use nnhal_aidl::version::Version;
use nnhal_aidl::{client, convert};
use nnhal_hal::{
    Capabilities, Device, DeviceType, ErrorStatus, Execution, ExecutionError, ExecutionOptions,
    ExtensionNameAndPrefix, FencedExecution, HalVersion, Hints, Model, OperandSpec, OperationType,
    PrepareOptions, PreparedModel, Request, RequestBuilder, SubgraphBuilder, Support, SyncFence,
    TokenValuePair,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Seen = Arc<Mutex<Vec<Hints>>>;

/// The reference device, which keeps what it is given.
struct Recording {
    device: Arc<dyn Device>,
    seen: Seen,
}

struct RecordingModel {
    model: Arc<dyn PreparedModel>,
    seen: Seen,
}

impl Device for Recording {
    fn name(&self) -> &str {
        "test-recording"
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
        self.seen.lock().unwrap().push(options.hints.clone());
        let model = self.device.prepare_model(model, version, options)?;
        Ok(Arc::new(RecordingModel { model, seen: Arc::clone(&self.seen) }))
    }
}

impl PreparedModel for RecordingModel {
    fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Result<Execution, ExecutionError> {
        self.seen.lock().unwrap().push(options.hints.clone());
        self.model.execute(request, options)
    }
    fn execute_fenced(
        &self,
        request: &Request,
        wait_for: &[SyncFence],
        options: &ExecutionOptions,
        timeout_after_fences: Option<Duration>,
    ) -> nnhal_hal::Result<FencedExecution> {
        self.seen.lock().unwrap().push(options.hints.clone());
        self.model.execute_fenced(request, wait_for, options, timeout_after_fences)
    }
    fn configure_burst(&self) -> nnhal_hal::Result<Box<dyn nnhal_hal::Burst>> {
        self.model.configure_burst()
    }
}

fn served(version: Version, seen: &Seen) -> rsbinder::Strong<dyn IDevice> {
    let device = Recording { device: nnhal_reference::device(), seen: Arc::clone(seen) };
    serve::device(Arc::new(device), version, Guests::one())
}

fn model() -> Model {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([2]));
    let y = graph.operation(OperationType::Relu, [x], OperandSpec::tensor_float32([2]));
    graph.output(y);
    graph.into_model().unwrap()
}

fn hints(value: u8) -> Hints {
    let token = 0x7ffe_0007;
    Hints {
        values: vec![
            TokenValuePair { token, value: vec![value, 0, 255] },
            TokenValuePair { token: token + 1, value: Vec::new() },
        ],
        extension_name_to_prefix: vec![ExtensionNameAndPrefix {
            name: "com.example".into(),
            prefix: 0x7ffe,
        }],
    }
}

#[test]
fn devices_get_them_from_version_4_on() {
    for version in Version::ALL {
        let seen = Seen::default();
        let device = client::Device::new("test", client::fixed(served(version, &seen))).unwrap();
        let options = PrepareOptions { hints: hints(1), ..PrepareOptions::default() };
        let prepared = device.prepare_model(&model(), HalVersion::V1_3, options).unwrap();
        let mut request = RequestBuilder::new();
        request.input(&[0; 8]).output(8);
        let request = request.build().unwrap();
        let with = |value| ExecutionOptions { hints: hints(value), ..ExecutionOptions::default() };
        // Once, again as a reusable execution, with that, and with others, for which it is of no use.
        for value in [2, 2, 2, 3, 2] {
            prepared.execute(&request, &with(value)).unwrap();
        }
        prepared.execute(&request, &ExecutionOptions::default()).unwrap();
        let launched = prepared.execute_fenced(&request, &[], &with(4), None).unwrap();
        if let Some(fence) = launched.sync_fence {
            fence.wait(None).unwrap();
        }
        let sent: Vec<Hints> = [1, 2, 2, 2, 3, 2, 0, 4]
            .map(|value| match value {
                0 => Hints::NONE,
                _ if version < Version::V4 => Hints::NONE,
                value => hints(value),
            })
            .into();
        assert_eq!(*seen.lock().unwrap(), sent, "{version:?}");
    }
}

#[test]
fn a_token_that_is_there_twice_is_refused() {
    use nn::ExecutionConfig::ExecutionConfig;
    use nn::IPreparedModelCallback::{BnPreparedModelCallback, IPreparedModelCallback};

    type Notified =
        Arc<Mutex<Vec<(i32, Option<rsbinder::Strong<dyn nn::IPreparedModel::IPreparedModel>>)>>>;
    struct Callback(Notified);
    impl rsbinder::Interface for Callback {}
    impl IPreparedModelCallback for Callback {
        fn notify(
            &self,
            status: nn::ErrorStatus::ErrorStatus,
            model: Option<&rsbinder::Strong<dyn nn::IPreparedModel::IPreparedModel>>,
        ) -> rsbinder::BinderResult<()> {
            self.0.lock().unwrap().push((status.get(), model.cloned()));
            Ok(())
        }
    }

    let seen = Seen::default();
    let device = served(Version::V4, &seen);
    let wire = convert::model_to_wire(&model()).unwrap();
    let pair = |value| WirePair { token: 5, value: vec![value] };
    let config = |pairs| PrepareModelConfig {
        preference: ExecutionPreference(1),
        priority: Priority(1),
        deadlineNs: -1,
        compilationHints: pairs,
        ..PrepareModelConfig::default()
    };
    let notified = Notified::default();
    let callback = BnPreparedModelCallback::new_binder(Callback(Arc::clone(&notified)));
    let invalid = ErrorStatus::InvalidArgument.code();
    let refused = device.prepareModelWithConfig(&wire, &config(vec![pair(1), pair(2)]), &callback);
    assert_eq!(refused.unwrap_err().service_specific_error(), invalid);
    assert!(matches!(&notified.lock().unwrap()[..], [(code, None)] if *code == invalid));
    assert_eq!(*seen.lock().unwrap(), []);

    device.prepareModelWithConfig(&wire, &config(vec![pair(1)]), &callback).unwrap();
    let prepared = notified.lock().unwrap()[1].1.clone().unwrap();
    let mut request = RequestBuilder::new();
    request.input(&[0; 8]).output(8);
    let request = convert::request_to_wire(&request.build().unwrap()).unwrap();
    let config = ExecutionConfig {
        loopTimeoutDurationNs: -1,
        executionHints: vec![pair(1), pair(2)],
        ..ExecutionConfig::default()
    };
    let refusals = [
        prepared.executeSynchronouslyWithConfig(&request, &config, -1).map(|_| ()),
        prepared.createReusableExecution(&request, &config).map(|_| ()),
        prepared.executeFencedWithConfig(&request, &[], &config, -1, -1).map(|_| ()),
    ];
    for refused in refusals {
        assert_eq!(refused.unwrap_err().service_specific_error(), invalid);
    }
    let burst = prepared.configureExecutionBurst().unwrap();
    let refused = burst.executeSynchronouslyWithConfig(&request, &[-1, -1], &config, -1);
    assert_eq!(refused.unwrap_err().service_specific_error(), invalid);
    assert_eq!(seen.lock().unwrap().len(), 1, "nothing was executed");
}
