//! A device behind each version of the interface, and in front of it again.

use nnhal_aidl::interface::nn::ExecutionConfig::ExecutionConfig;
use nnhal_aidl::interface::nn::IDevice::IDevice;
use nnhal_aidl::interface::nn::Request::Request as WireRequest;
use nnhal_aidl::interface::nn::RequestMemoryPool::RequestMemoryPool as WirePool;
use nnhal_aidl::version::Version;
use nnhal_aidl::{client, convert, serve};
use nnhal_hal::{
    Deadline, Device, ErrorStatus, ExecutionOptions, ExtraParams, FusedActivation, HalVersion,
    Model, OperandSpec, OperationType, PrepareOptions, PreparedModel, Request, RequestBuilder,
    SubgraphBuilder,
};
use std::time::Duration;

fn served(version: Version) -> rsbinder::Strong<dyn IDevice> {
    serve::device(nnhal_reference::device(), version, serve::Guests::one())
}

fn device(version: Version) -> client::Device {
    client::Device::new("test", client::fixed(served(version))).unwrap()
}

fn model() -> Model {
    let mut graph = SubgraphBuilder::new();
    let a = graph.input("a", OperandSpec::tensor_float32([2]));
    let none = graph.scalar_i32(FusedActivation::None.code());
    let sum = graph.operation(OperationType::Add, [a, a, none], OperandSpec::tensor_float32([2]));
    graph.output(sum);
    graph.into_model().unwrap()
}

fn request(room: usize) -> Request {
    let mut request = RequestBuilder::new();
    request.input(&[1.0_f32.to_le_bytes(), 2.0_f32.to_le_bytes()].concat());
    request.output(room);
    request.build().unwrap()
}

fn doubled(request: &Request) -> bool {
    let expected = [2.0_f32.to_le_bytes(), 4.0_f32.to_le_bytes()].concat();
    RequestBuilder::read_output(request, 0).unwrap() == expected
}

fn prepare(device: &dyn Device) -> std::sync::Arc<dyn PreparedModel> {
    device.prepare_model(&model(), HalVersion::V1_3, PrepareOptions::default()).unwrap()
}

#[test]
fn every_version_executes_in_every_way() {
    for version in Version::ALL {
        let device = device(version);
        assert_eq!(device.version(), version.hal());
        let prepared = prepare(&device);
        let options = ExecutionOptions { measure: true, ..ExecutionOptions::default() };
        // Once, again, and from the third time on as a reusable execution.
        let again = request(8);
        for _ in 0..4 {
            let execution = prepared.execute(&again, &options).unwrap();
            assert_eq!(execution.dimensions(0), Some(&[2][..]));
            assert!(execution.timing.time_in_driver.is_some() && doubled(&again));
        }
        let burst = prepared.configure_burst().unwrap();
        let bursting = request(8);
        burst.execute(&bursting, false).unwrap();
        burst.execute(&bursting, false).unwrap();
        assert!(doubled(&bursting));
        let fenced = request(8);
        let launched = prepared.execute_fenced(&fenced, &[], &options, None).unwrap();
        if let Some(fence) = &launched.sync_fence {
            fence.wait(Some(Duration::from_secs(5))).unwrap();
        }
        launched.info.get().unwrap();
        assert!(doubled(&fenced), "{version:?}");
    }
}

/// What the buffer holds matters when it is executed (DBUF-3): what writes it may wait for a fence meanwhile.
#[test]
fn a_reusable_execution_may_be_made_before_its_buffer_holds_anything() {
    use nnhal_hal::{BufferDescription, BufferRole, DataLocation, Memory, RequestMemoryPool};
    let device = device(Version::V4);
    let prepared = prepare(&device);
    let description = BufferDescription {
        prepared_models: vec![prepared.clone()],
        input_roles: vec![BufferRole { model_index: 0, io_index: 0, frequency: 1.0 }],
        ..BufferDescription::default()
    };
    let buffer = device.allocate(&description).unwrap();
    let of = |token| {
        let mut request = request(8);
        request.inputs[0].location = DataLocation { pool_index: 1, offset: 0, length: 0 };
        request.pools.push(RequestMemoryPool::Token(token));
        request
    };
    let request = of(buffer.token());
    // It makes one.
    prepared.check_request(&request).unwrap();
    let options = ExecutionOptions::default();
    let refused = prepared.execute(&request, &options).unwrap_err().error;
    assert_eq!(refused.status(), ErrorStatus::GeneralFailure, "{refused}");
    let value = [1.0_f32.to_le_bytes(), 2.0_f32.to_le_bytes()].concat();
    buffer.copy_from(&Memory::from_bytes(&value).unwrap(), &[]).unwrap();
    prepared.execute(&request, &options).unwrap();
    assert!(doubled(&request));
    let refused = prepared.check_request(&of(buffer.token() + 1)).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::InvalidArgument, "{refused}");
}

/// ALLOC-8, CONC-3: the service learns of a launched request when it is executed, and the client may have let go of its buffers
/// by then; afterwards nothing holds them.
#[test]
fn a_launched_request_keeps_its_buffers_until_it_is_dropped() {
    use nnhal_hal::{BufferDescription, BufferRole, DataLocation, Memory, RequestMemoryPool};
    for version in Version::ALL {
        let device = device(version);
        let prepared = prepare(&device);
        let role = BufferRole { model_index: 0, io_index: 0, frequency: 1.0 };
        let for_input = BufferDescription {
            prepared_models: vec![prepared.clone()],
            input_roles: vec![role],
            ..BufferDescription::default()
        };
        let for_output = BufferDescription {
            output_roles: for_input.input_roles.clone(),
            input_roles: Vec::new(),
            ..for_input.clone()
        };
        let input = device.allocate(&for_input).unwrap();
        let value = [1.0_f32.to_le_bytes(), 2.0_f32.to_le_bytes()].concat();
        input.copy_from(&Memory::from_bytes(&value).unwrap(), &[]).unwrap();
        let place = |pool_index| DataLocation { pool_index, offset: 0, length: 0 };
        let mut read = request(8);
        read.inputs[0].location = place(1);
        read.pools.push(RequestMemoryPool::Token(input.token()));
        let launched = prepared.launch(&read).unwrap().expect("it keeps its buffer");
        drop(input);
        launched.execute(&ExecutionOptions::default()).unwrap();
        assert!(doubled(&read), "{version:?}");
        drop(launched);
        let refused = prepared.execute(&read, &ExecutionOptions::default()).unwrap_err().error;
        assert_eq!(refused.status(), ErrorStatus::InvalidArgument, "{version:?}: {refused}");

        // What was written is of no use once the launched request has failed.
        let output = device.allocate(&for_output).unwrap();
        let mut write = request(8);
        write.outputs[0].location = place(1);
        write.pools.push(RequestMemoryPool::Token(output.token()));
        let launched = prepared.launch(&write).unwrap().expect("it keeps its buffer");
        launched.execute(&ExecutionOptions::default()).unwrap();
        let copy = Memory::allocate(8).unwrap();
        output.copy_to(&copy).unwrap();
        launched.discard_outputs();
        let refused = output.copy_to(&copy).unwrap_err();
        assert_eq!(refused.status(), ErrorStatus::GeneralFailure, "{version:?}: {refused}");
        assert!(prepared.launch(&request(8)).unwrap().is_none(), "nothing is to be kept");
    }
}

/// SEC-3: what says how a fenced execution ended is there until the client lets go of it.
#[test]
fn conc_5_outcomes_of_fenced_executions_are_the_clients_and_limited() {
    use nnhal_hal::client::{Client, ClientLimits, Holding};
    let limits = ClientLimits { fenced_outcomes: 2, ..ClientLimits::default() };
    let client = Client::new("test", limits);
    let guest = serve::Guest::new(client.clone(), std::sync::Arc::default());
    let guests = serve::Guests::new(move || Ok(guest.clone()));
    let served = serve::device(nnhal_reference::device(), Version::V4, guests);
    let device = client::Device::new("test", client::fixed(served)).unwrap();
    let (prepared, options) = (prepare(&device), ExecutionOptions::default());
    let launch = || {
        let launched = prepared.execute_fenced(&request(8), &[], &options, None)?;
        if let Some(fence) = &launched.sync_fence {
            fence.wait(Some(Duration::from_secs(60)))?;
        }
        launched.info.get()?;
        Ok::<_, nnhal_hal::Error>(launched)
    };
    let kept = [launch().unwrap(), launch().unwrap()];
    let refused = launch().unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::ResourceExhaustedTransient);
    assert!(refused.to_string().contains("2 outcomes of fenced executions"), "{refused}");
    drop(kept);
    assert_eq!(client.held(Holding::FencedOutcomes), 0);
    launch().unwrap();
    // What is refused has none.
    let mut wrong = request(8);
    wrong.inputs.clear();
    prepared.execute_fenced(&wrong, &[], &options, None).unwrap_err();
    assert_eq!(client.held(Holding::FencedOutcomes), 0);
}

#[test]
fn a_service_says_its_version_and_has_nothing_newer() {
    for version in Version::ALL {
        let device = served(version);
        assert_eq!(device.getInterfaceVersion().unwrap(), version.number());
        assert_eq!(device.getInterfaceHash().unwrap(), version.hash());
        let lines = client::Device::new("test", client::fixed(device.clone())).unwrap();
        let newer = HalVersion::ALL.iter().find(|hal| **hal > version.hal());
        if let Some(newer) = newer {
            assert!(lines.version() < *newer);
        }
    }
}

#[test]
fn errors_have_status_and_reason() {
    let device = device(Version::V4);
    let prepared = prepare(&device);
    let past = Some(Deadline::from_nanoseconds_since_epoch(1));
    let late = ExecutionOptions { deadline: past, ..ExecutionOptions::default() };
    let error = prepared.execute(&request(8), &late).unwrap_err().error;
    assert_eq!(error.status(), ErrorStatus::MissedDeadlinePersistent, "{error}");

    let mut wrong = request(8);
    wrong.inputs.clear();
    let error = prepared.execute(&wrong, &ExecutionOptions::default()).unwrap_err().error;
    assert_eq!(error.status(), ErrorStatus::InvalidArgument);
    assert!(error.to_string().contains("input"), "{error}");
    prepared.check_request(&wrong).unwrap_err();
    prepared.check_request(&request(8)).unwrap();
}

#[test]
fn too_short_a_buffer_comes_with_shapes() {
    let mut graph = SubgraphBuilder::new();
    let a = graph.input("a", OperandSpec::tensor_float32([2]));
    let sum = graph.operation(OperationType::Relu, [a], OperandSpec::tensor_float32([0]));
    graph.output(sum);
    let device = device(Version::V4);
    let model = graph.into_model().unwrap();
    let options = PrepareOptions::default();
    let prepared = device.prepare_model(&model, HalVersion::V1_3, options).unwrap();
    let failed = prepared.execute(&request(4), &ExecutionOptions::default()).unwrap_err();
    assert_eq!(failed.error.status(), ErrorStatus::OutputInsufficientSize);
    assert_eq!(failed.output_shapes[0].dimensions, [2]);
    assert!(!failed.output_shapes[0].is_sufficient);
}

#[test]
fn models_come_back_as_they_were_sent() {
    let mut model = model();
    model.main.operands[0].extra_params = ExtraParams::Extension([1, 2, 3][..].into());
    let back = convert::model_from_wire(&convert::model_to_wire(&model).unwrap()).unwrap();
    assert_eq!(back.main, model.main);
    assert_eq!(back.operand_values, model.operand_values);
    model.main.operands[0].number_of_consumers += 1;
    let refused = convert::model_to_wire(&model).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
}

#[test]
fn what_is_negative_or_padded_too_far_is_refused() {
    let wire = || convert::request_to_wire(&request(8)).unwrap();
    let from = |wire: &WireRequest| {
        convert::request_from_wire(wire, |_, memory| convert::memory_from_wire(memory))
    };
    from(&wire()).unwrap();
    for change in [
        (|wire| wire.inputs[0].location.poolIndex = -1) as fn(&mut WireRequest),
        |wire| wire.inputs[0].location.offset = -1,
        |wire| wire.inputs[0].location.length = 1 << 32,
        |wire| wire.inputs[0].location.padding = -1,
        |wire| wire.inputs[0].location.padding = 1 << 20,
        |wire| wire.inputs[0].dimensions = vec![-2],
        // Only what is in memory can be padded.
        |wire| {
            wire.inputs[0].hasNoValue = true;
            wire.inputs[0].location.padding = 1;
        },
        |wire| {
            wire.pools[0] = WirePool::Token(1);
            wire.inputs[0].location.padding = 1;
        },
    ] {
        let mut wire = wire();
        change(&mut wire);
        assert_eq!(from(&wire).unwrap_err().status(), ErrorStatus::InvalidArgument);
    }
    let mut padded = convert::model_to_wire(&model()).unwrap();
    padded.main.operands[0].location.padding = 1;
    let refused = convert::model_from_wire(&padded).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::InvalidArgument, "{refused}");
}

/// What version 4 brought is not there before, and hints that no one knows are ignored.
#[test]
fn methods_of_version_4_belong_to_it() {
    use nnhal_aidl::interface::nn::ErrorStatus::ErrorStatus as WireStatus;
    use nnhal_aidl::interface::nn::IPreparedModel::IPreparedModel;
    use nnhal_aidl::interface::nn::IPreparedModelCallback::{
        BnPreparedModelCallback, IPreparedModelCallback,
    };
    use nnhal_aidl::interface::nn::PrepareModelConfig::PrepareModelConfig;
    use nnhal_aidl::interface::nn::TokenValuePair::TokenValuePair;
    use std::sync::{Arc, Mutex};

    type Notified = Vec<(i32, Option<rsbinder::Strong<dyn IPreparedModel>>)>;
    struct Callback(Arc<Mutex<Notified>>);
    impl rsbinder::Interface for Callback {}
    impl IPreparedModelCallback for Callback {
        fn notify(
            &self,
            status: WireStatus,
            model: Option<&rsbinder::Strong<dyn IPreparedModel>>,
        ) -> rsbinder::BinderResult<()> {
            self.0.lock().unwrap().push((status.get(), model.cloned()));
            Ok(())
        }
    }
    let hint = || vec![TokenValuePair { token: 0x7fff_0001, value: vec![1, 2, 3] }];
    let config = PrepareModelConfig {
        preference: nnhal_aidl::interface::nn::ExecutionPreference::ExecutionPreference(1),
        priority: nnhal_aidl::interface::nn::Priority::Priority(1),
        deadlineNs: -1,
        compilationHints: hint(),
        ..PrepareModelConfig::default()
    };
    let wire = convert::model_to_wire(&model()).unwrap();
    for version in Version::ALL {
        let notified = Arc::default();
        let callback = BnPreparedModelCallback::new_binder(Callback(Arc::clone(&notified)));
        let answer = served(version).prepareModelWithConfig(&wire, &config, &callback);
        if version < Version::V4 {
            let unknown = answer.unwrap_err().transaction_error();
            assert_eq!(unknown, rsbinder::StatusCode::UnknownTransaction);
            continue;
        }
        answer.unwrap();
        let notified = notified.lock().unwrap();
        let (0, Some(prepared)) = &notified[0] else { panic!("not prepared") };
        let config = ExecutionConfig {
            loopTimeoutDurationNs: -1,
            executionHints: hint(),
            ..ExecutionConfig::default()
        };
        let request = request(8);
        let wire = convert::request_to_wire(&request).unwrap();
        let execution = prepared.createReusableExecution(&wire, &config).unwrap();
        assert!(execution.executeSynchronously(-1).unwrap().outputSufficientSize);
        assert!(doubled(&request));
    }
    // A model that is wrong: null and the same status, once.
    let notified = Arc::default();
    let callback = BnPreparedModelCallback::new_binder(Callback(Arc::clone(&notified)));
    let mut wrong = wire;
    wrong.main.outputIndexes = vec![99];
    let refused = served(Version::V4).prepareModelWithConfig(&wrong, &config, &callback);
    let invalid = ErrorStatus::InvalidArgument.code();
    assert_eq!(refused.unwrap_err().service_specific_error(), invalid);
    let notified = notified.lock().unwrap();
    assert!(matches!(&notified[..], [(code, None)] if *code == invalid));
}
