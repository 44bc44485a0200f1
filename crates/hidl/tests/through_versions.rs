//! A device behind the interfaces of a version and in front of them again behaves as the device.

mod common;

use common::{Sample, add_constant, endless, invalid, samples, unknown_output, unsupported};
use nnhal_hal::device::FencedExecutionInfo;
use nnhal_hal::fence::FenceState;
use nnhal_hal::{
    BufferDescription, BufferRole, Deadline, Device, ErrorStatus, ExecutionOptions, HalVersion,
    Memory, PrepareOptions, PreparedModel, Priority, Request, RequestArgument, RequestBuilder,
    RequestMemoryPool, SyncFence,
};
use nnhal_hidl::client::{Options, through};
use nnhal_hidl::convert::ConversionError;
use std::sync::Arc;
use std::time::Duration;

const VERSIONS: [HalVersion; 4] =
    [HalVersion::V1_0, HalVersion::V1_1, HalVersion::V1_2, HalVersion::V1_3];

/// The reference device through every version, by both kinds of methods.
fn devices() -> Vec<Arc<dyn Device>> {
    let mut devices = Vec::new();
    for version in VERSIONS {
        for asynchronous in [false, true] {
            let options = Options { asynchronous, ..Options::default() };
            devices.push(through(nnhal_reference::device(), version, options).unwrap());
        }
    }
    devices
}

fn prepare(device: &dyn Device, sample: &Sample) -> Arc<dyn PreparedModel> {
    device.prepare_model(&sample.model, HalVersion::LATEST, PrepareOptions::default()).unwrap()
}

#[test]
fn every_version_runs_what_it_has_words_for_and_refuses_the_rest() {
    let direct = nnhal_reference::device();
    for device in devices() {
        for sample in samples() {
            let (name, version) = (sample.name, device.version());
            let supported = device.supported_operations(&sample.model, HalVersion::LATEST);
            if sample.since > version {
                let refused = supported.unwrap_err();
                assert_eq!(refused.status(), ErrorStatus::InvalidArgument, "{name} by {version}");
                let options = PrepareOptions::default();
                let refused = device.prepare_model(&sample.model, HalVersion::LATEST, options);
                let refused = refused.err().unwrap();
                assert_eq!(refused.status(), ErrorStatus::InvalidArgument, "{name} by {version}");
                continue;
            }
            assert!(
                supported.unwrap().iter().all(nnhal_hal::Support::is_yes),
                "{name} by {version}"
            );
            let prepared = prepare(&*device, &sample);
            let expected = prepare(&*direct, &sample);
            for measure in [false, true] {
                let options = ExecutionOptions { measure, ..ExecutionOptions::default() };
                let request = sample.request();
                let execution = prepared.execute(&request, &options).unwrap();
                sample.assert_result(&request);
                let by_device = expected.execute(&sample.request(), &options).unwrap();
                assert_eq!(execution.output_shapes, by_device.output_shapes, "{name}");
                assert_eq!(execution.dimensions(0), Some(&sample.output_dimensions[..]));
                let timed = measure && version >= HalVersion::V1_2;
                assert_eq!(execution.timing.time_in_driver.is_some(), timed, "{name} {version}");
                assert!(execution.timing.time_on_device <= execution.timing.time_in_driver);
            }
        }
    }
}

#[test]
fn the_reason_of_a_refusal_names_the_obstacle() {
    let device = through(nnhal_reference::device(), HalVersion::V1_2, Options::default()).unwrap();
    let sample = samples().pop().unwrap();
    let refused = device.supported_operations(&sample.model, HalVersion::LATEST).unwrap_err();
    let reason: &ConversionError = refused.reason().unwrap();
    assert!(matches!(reason, ConversionError::Inexpressible { version: HalVersion::V1_2, .. }));
    assert!(refused.to_string().contains("came with 1.3"), "{refused}");
}

#[test]
fn gen_6_an_older_method_of_a_newer_driver_has_the_older_rules() {
    let device = through(nnhal_reference::device(), HalVersion::V1_3, Options::default()).unwrap();
    // Words that 1.0 has, in a form that came with 1.2: SOFTMAX with an axis.
    let mut graph = nnhal_hal::SubgraphBuilder::new();
    let spec = nnhal_hal::OperandSpec::tensor_float32([1, 2]);
    let x = graph.input("x", spec.clone());
    let beta = graph.scalar_f32(1.0);
    let axis = graph.scalar_i32(1);
    let y = graph.operation(nnhal_hal::OperationType::Softmax, [x, beta, axis], spec);
    graph.output(y);
    let model = graph.into_model().unwrap();
    for version in VERSIONS {
        let answer = device.supported_operations(&model, version);
        assert_eq!(answer.is_ok(), version >= HalVersion::V1_2, "{version}: {answer:?}");
    }
}

#[test]
fn errors_are_those_of_the_device() {
    for device in devices() {
        let version = device.version();
        let refused = device.supported_operations(&invalid(), version).unwrap_err();
        assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
        let refused = device.prepare_model(&invalid(), version, PrepareOptions::default());
        assert_eq!(refused.err().unwrap().status(), ErrorStatus::InvalidArgument);

        // DEV-SUP-5, PREP-5: valid, but nothing that can be run.
        let supported = device.supported_operations(&unsupported(), version).unwrap();
        assert!(matches!(supported[..], [nnhal_hal::Support::No(_)]));
        let refused = device.prepare_model(&unsupported(), version, PrepareOptions::default());
        assert!(refused.is_err());

        let sample = add_constant();
        let prepared = prepare(&*device, &sample);
        let mut request = sample.request();
        request.inputs.clear();
        let failed = prepared.execute(&request, &ExecutionOptions::default()).unwrap_err();
        assert_eq!(failed.error.status(), ErrorStatus::InvalidArgument);
        assert!(failed.output_shapes.is_empty());

        // SHAPE-4 by every version, even where only model and request say the shapes.
        let request = sample.request_with_room(7);
        let failed = prepared.execute(&request, &ExecutionOptions::default()).unwrap_err();
        assert_eq!(failed.error.status(), ErrorStatus::OutputInsufficientSize, "{version}");
        let shape = nnhal_hal::OutputShape { dimensions: vec![1, 2], is_sufficient: false };
        assert_eq!(failed.output_shapes, [shape], "{version}");
        // The prepared model is none the worse for it.
        let request = sample.request();
        prepared.execute(&request, &ExecutionOptions::default()).unwrap();
        sample.assert_result(&request);
    }
}

#[test]
fn req_8_outputs_of_unknown_shape_are_refused_before_1_2() {
    let mut graph = nnhal_hal::SubgraphBuilder::new();
    let spec = nnhal_hal::OperandSpec::tensor_float32([0]);
    let x = graph.input("x", spec.clone());
    let y = graph.operation(nnhal_hal::OperationType::Relu, [x], spec);
    graph.output(y);
    let model = graph.into_model().unwrap();
    for device in devices() {
        let version = device.version();
        let prepared =
            device.prepare_model(&model, HalVersion::LATEST, PrepareOptions::default()).unwrap();
        let mut request = RequestBuilder::new();
        let request = request.input_shaped(&[0; 8], &[2]).output(8).build().unwrap();
        let result = prepared.execute(&request, &ExecutionOptions::default());
        match result {
            Ok(execution) => {
                assert!(version >= HalVersion::V1_2);
                assert_eq!(execution.dimensions(0), Some(&[2][..]));
            }
            Err(failed) => {
                assert!(version < HalVersion::V1_2);
                assert_eq!(failed.error.status(), ErrorStatus::InvalidArgument);
                assert_eq!(
                    prepared.check_request(&request).unwrap_err().status(),
                    ErrorStatus::InvalidArgument
                );
            }
        }
        // With the shape in the request every version can.
        let mut request = RequestBuilder::new();
        let request = request.input_shaped(&[0; 8], &[2]).output_shaped(8, &[2]).build().unwrap();
        let execution = prepared.execute(&request, &ExecutionOptions::default()).unwrap();
        assert_eq!(execution.dimensions(0), Some(&[2][..]));
    }
}

#[test]
fn shape_5_of_an_unknown_output_the_driver_says_the_shape() {
    for device in devices().iter().filter(|device| device.version() >= HalVersion::V1_2) {
        let sample = unknown_output();
        let prepared = prepare(&**device, &sample);
        let request = sample.request_with_room(4);
        let failed = prepared.execute(&request, &ExecutionOptions::default()).unwrap_err();
        assert_eq!(failed.error.status(), ErrorStatus::OutputInsufficientSize);
        let shape = nnhal_hal::OutputShape { dimensions: vec![3], is_sufficient: false };
        assert_eq!(failed.output_shapes, [shape]);
    }
}

#[test]
fn what_a_device_says_of_itself_goes_through() {
    let direct = nnhal_reference::device();
    for device in devices() {
        let version = device.version();
        assert_eq!(device.name(), direct.name());
        assert_eq!(device.status(), direct.status());
        if version >= HalVersion::V1_2 {
            assert_eq!(device.version_string(), direct.version_string());
            assert_eq!(device.device_type(), direct.device_type());
            assert_eq!(device.supported_extensions(), direct.supported_extensions());
            assert_eq!(device.cache_files_needed(), direct.cache_files_needed());
            let (found, expected) = (device.capabilities(), direct.capabilities());
            let expected = expected.in_version(version);
            assert_eq!(found.operand_performance, expected.operand_performance);
            if version >= HalVersion::V1_3 {
                assert_eq!(found, expected);
            }
        } else {
            let tensor = nnhal_hal::OperandType::TensorFloat32;
            assert_eq!(device.capabilities().of(tensor), direct.capabilities().of(tensor));
        }
    }
}

#[test]
fn qos_2_and_7_deadlines_and_loop_timeouts_arrive() {
    for asynchronous in [false, true] {
        let options = Options { asynchronous, ..Options::default() };
        let device = through(nnhal_reference::device(), HalVersion::V1_3, options).unwrap();
        let missed = |status| {
            matches!(
                status,
                ErrorStatus::MissedDeadlineTransient | ErrorStatus::MissedDeadlinePersistent
            )
        };
        let past = Some(Deadline::from_nanoseconds_since_epoch(1));
        let sample = endless();
        let options = PrepareOptions { deadline: past, ..PrepareOptions::default() };
        let late = device.prepare_model(&sample.model, HalVersion::V1_3, options).err().unwrap();
        assert!(missed(late.status()), "{late}");
        let options = PrepareOptions { priority: Priority::High, ..PrepareOptions::default() };
        let prepared = device.prepare_model(&sample.model, HalVersion::V1_3, options).unwrap();
        let options = ExecutionOptions { deadline: past, ..ExecutionOptions::default() };
        let late = prepared.execute(&sample.request(), &options).unwrap_err();
        assert!(missed(late.error.status()), "{late}");
        let loop_timeout = Some(Duration::from_millis(1));
        let options = ExecutionOptions { loop_timeout, ..ExecutionOptions::default() };
        let late = prepared.execute(&sample.request(), &options).unwrap_err();
        assert!(missed(late.error.status()), "{late}");
    }
}

#[test]
fn executions_overlap() {
    for device in devices() {
        let sample = add_constant();
        let prepared = prepare(&*device, &sample);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let request = sample.request();
                        prepared.execute(&request, &ExecutionOptions::default()).unwrap();
                        sample.assert_result(&request);
                    }
                });
            }
        });
    }
}

/// The request with the argument of one side in a buffer instead.
fn with_token(mut request: Request, token: u32, input: bool) -> Request {
    let pool_index = u32::try_from(request.pools.len()).unwrap();
    request.pools.push(RequestMemoryPool::Token(token));
    let location = nnhal_hal::DataLocation { pool_index, offset: 0, length: 0 };
    let arguments = if input { &mut request.inputs } else { &mut request.outputs };
    arguments[0] = RequestArgument::at(location);
    request
}

/// SEC-4: a token is of no use with another prepared model.
#[test]
fn dbuf_9_buffers_of_the_driver_go_through() {
    let device = through(nnhal_reference::device(), HalVersion::V1_3, Options::default()).unwrap();
    let sample = add_constant();
    let prepared = prepare(&*device, &sample);
    let role = BufferRole { model_index: 0, io_index: 0, frequency: 1.0 };
    let description = BufferDescription {
        prepared_models: vec![Arc::clone(&prepared)],
        input_roles: vec![role],
        output_roles: vec![role],
        ..BufferDescription::default()
    };
    let buffer = device.allocate(&description).unwrap();
    assert!(buffer.token() > 0);
    let memory = Memory::from_bytes(&sample.inputs[0]).unwrap();
    // BUF-5: nothing is in it yet.
    let failed = buffer.copy_to(&memory).unwrap_err();
    assert_eq!(failed.status(), ErrorStatus::GeneralFailure);
    buffer.copy_from(&memory, &[]).unwrap();
    let request = with_token(sample.request(), buffer.token(), true);
    prepared.execute(&request, &ExecutionOptions::default()).unwrap();
    sample.assert_result(&request);
    let request = with_token(sample.request(), buffer.token(), false);
    prepared.execute(&request, &ExecutionOptions::default()).unwrap();
    buffer.copy_to(&memory).unwrap();
    assert_eq!(memory.view().unwrap().read_to_vec(0, 8).unwrap(), sample.output);
    // BUF-6, BUF-3
    let short = Memory::allocate(7).unwrap();
    for refused in [buffer.copy_to(&short), buffer.copy_from(&short, &[])] {
        assert_eq!(refused.unwrap_err().status(), ErrorStatus::InvalidArgument);
    }

    let request = with_token(sample.request(), buffer.token(), true);
    let another = prepare(&*device, &sample);
    let refused = another.execute(&request, &ExecutionOptions::default()).unwrap_err();
    assert_eq!(refused.error.status(), ErrorStatus::InvalidArgument);

    // ALLOC-2: another device's prepared model, though both are the same device in the end.
    let other = through(nnhal_reference::device(), HalVersion::V1_3, Options::default()).unwrap();
    let refused = other.allocate(&description).err().unwrap();
    assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
    // DBUF-1: the buffer is gone, its token stands for nothing.
    let token = buffer.token();
    drop(buffer);
    let request = with_token(sample.request(), token, true);
    let failed = prepared.execute(&request, &ExecutionOptions::default()).unwrap_err();
    assert_eq!(failed.error.status(), ErrorStatus::InvalidArgument);
    // Older versions have no words for tokens.
    let old = through(nnhal_reference::device(), HalVersion::V1_2, Options::default()).unwrap();
    let failed = prepare(&*old, &sample).execute(&request, &ExecutionOptions::default());
    assert_eq!(failed.unwrap_err().error.status(), ErrorStatus::InvalidArgument);
    assert_eq!(old.allocate(&description).err().unwrap().status(), ErrorStatus::GeneralFailure);
}

/// Times, once the fence says that it is over.
fn info(fence: Option<&SyncFence>, info: &dyn FencedExecutionInfo) -> nnhal_hal::Result<()> {
    if let Some(fence) = fence {
        fence.wait(Some(common::LONG))?;
    }
    info.get().map(drop)
}

#[test]
fn fence_14_executions_behind_fences_go_through_and_chain() {
    let device = through(nnhal_reference::device(), HalVersion::V1_3, Options::default()).unwrap();
    let sample = add_constant();
    let prepared = prepare(&*device, &sample);
    let options = ExecutionOptions { measure: true, ..ExecutionOptions::default() };
    let (signal, first) = SyncFence::pair().unwrap();
    let request = sample.request();
    let launched = prepared.execute_fenced(&request, &[first], &options, None).unwrap();
    let fence = launched.sync_fence.clone().expect("it cannot be over yet");
    assert_eq!(fence.state().unwrap(), FenceState::Unsignalled);
    let early = launched.info.get().unwrap_err();
    assert_eq!(early.status(), ErrorStatus::GeneralFailure);
    let second =
        prepared.execute_fenced(&sample.request(), &[fence], &options, Some(common::LONG)).unwrap();
    signal.signal();
    info(launched.sync_fence.as_ref(), &*launched.info).unwrap();
    info(second.sync_fence.as_ref(), &*second.info).unwrap();
    sample.assert_result(&request);

    // A fence that has failed already (contract: FENCE-3).
    let (signal, failed) = SyncFence::pair().unwrap();
    signal.fail(nnhal_hal::Error::failure("on purpose"));
    let refused = prepared.execute_fenced(&request, &[failed], &options, None).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
    // One that fails later (contract: FENCE-7).
    let (signal, fails) = SyncFence::pair().unwrap();
    let launched = prepared.execute_fenced(&request, &[fails], &options, None).unwrap();
    signal.fail(nnhal_hal::Error::failure("on purpose"));
    let fence = launched.sync_fence.unwrap();
    assert_eq!(fence.wait(Some(common::LONG)).unwrap(), FenceState::Failed);
    assert!(launched.info.get().is_err());
}

#[test]
fn fenced_executions_are_refused_before_1_3() {
    for device in devices().iter().filter(|device| device.version() < HalVersion::V1_3) {
        let sample = add_constant();
        let prepared = prepare(&**device, &sample);
        let options = ExecutionOptions::default();
        let refused = prepared.execute_fenced(&sample.request(), &[], &options, None).unwrap_err();
        assert_eq!(refused.status(), ErrorStatus::GeneralFailure);
    }
}

#[test]
fn a_device_goes_through_twice() {
    // A device in front of the interfaces can be put behind them again.
    let mut device = nnhal_reference::device();
    for version in [HalVersion::V1_3, HalVersion::V1_2, HalVersion::V1_3, HalVersion::V1_1] {
        device = through(device, version, Options::default()).unwrap();
    }
    let sample = add_constant();
    let prepared = prepare(&*device, &sample);
    let request = sample.request();
    prepared.execute(&request, &ExecutionOptions::default()).unwrap();
    sample.assert_result(&request);
}
