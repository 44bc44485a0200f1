//! Buffers that the driver manages: allocation, states, use in requests (contract: sections 13, 14).

mod engine;

use engine::{Scripted, bare_status, execute, relu, vector};
use nnhal_driver::{AllocationError, DriverDevice, EngineError, RequestError};
use nnhal_hal::{
    Buffer, BufferDescription, BufferRole, DataLocation, Deadline, Device, ErrorStatus,
    ExecutionOptions, HalVersion, Memory, OperandSpec, OutputShape, PrepareOptions, PreparedModel,
    Request, RequestArgument, RequestMemoryPool, SyncFence,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Outputs are the inputs; inputs of more than 1000 in the first element are a failure.
fn copying() -> DriverDevice<Scripted> {
    Scripted::running(|bindings, _| {
        let mut values = Vec::new();
        for input in bindings.inputs() {
            let bytes = input.value().expect("a value").read_to_vec()?;
            let dimensions = input.shape().to_known().expect("a known shape");
            values.push((dimensions, bytes));
        }
        for (output, (dimensions, bytes)) in bindings.outputs().iter().zip(&values) {
            if bytes.first() == Some(&0xFF) {
                return Err(EngineError::Other(nnhal_hal::Error::failure("as the input wishes")));
            }
            output.deliver(dimensions, bytes)?;
        }
        Ok(())
    })
    .device()
}

fn prepare(
    device: &DriverDevice<Scripted>,
    input: OperandSpec,
    output: OperandSpec,
) -> Arc<dyn PreparedModel> {
    let model = relu(input, output);
    device.prepare_model(&model, HalVersion::V1_3, PrepareOptions::default()).unwrap()
}

fn role(model_index: u32, io_index: u32) -> BufferRole {
    BufferRole { model_index, io_index, frequency: 1.0 }
}

/// For input 0 and output 0 of one model.
fn both_ways(prepared: &Arc<dyn PreparedModel>) -> BufferDescription {
    BufferDescription {
        prepared_models: vec![Arc::clone(prepared)],
        input_roles: vec![role(0, 0)],
        output_roles: vec![role(0, 0)],
        ..BufferDescription::default()
    }
}

fn output_only(prepared: &Arc<dyn PreparedModel>) -> BufferDescription {
    BufferDescription { input_roles: vec![], ..both_ways(prepared) }
}

/// The place of an argument of a test's request.
#[derive(Clone)]
enum At<'a> {
    Shared(&'a Memory),
    Token(u32),
    Shaped(u32, &'a [u32]),
}

fn request(input: At<'_>, output: At<'_>) -> Request {
    let mut request = Request::default();
    for (index, at) in [input, output].into_iter().enumerate() {
        let mut location =
            DataLocation { pool_index: u32::try_from(index).unwrap(), offset: 0, length: 0 };
        let mut dimensions = Vec::new();
        request.pools.push(match at {
            At::Shared(memory) => {
                location.length = u32::try_from(memory.size()).unwrap();
                RequestMemoryPool::Memory(memory.clone())
            }
            At::Token(token) => RequestMemoryPool::Token(token),
            At::Shaped(token, shape) => {
                dimensions = shape.to_vec();
                RequestMemoryPool::Token(token)
            }
        });
        let argument = RequestArgument { dimensions, ..RequestArgument::at(location) };
        if index == 0 { request.inputs.push(argument) } else { request.outputs.push(argument) }
    }
    request
}

fn memory(floats: &[f32]) -> Memory {
    let bytes: Vec<u8> = floats.iter().flat_map(|float| float.to_le_bytes()).collect();
    Memory::from_bytes(&bytes).unwrap()
}

fn floats(memory: &Memory) -> Vec<f32> {
    let bytes = memory.view().unwrap().read_to_vec(0, memory.size()).unwrap();
    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

fn refusal(device: &DriverDevice<Scripted>, description: &BufferDescription) -> AllocationError {
    let error = device.allocate(description).err().expect("a refusal");
    assert_eq!(error.status(), ErrorStatus::InvalidArgument);
    error.reason::<AllocationError>().expect("the typed reason").clone()
}

#[test]
fn alloc_1_and_8_tokens_are_not_0_and_not_shared() {
    let (one, other) = (copying(), copying());
    let (a, b) = (prepare(&one, vector(2), vector(2)), prepare(&other, vector(2), vector(2)));
    let buffers = [
        one.allocate(&both_ways(&a)).unwrap(),
        one.allocate(&both_ways(&a)).unwrap(),
        other.allocate(&both_ways(&b)).unwrap(),
    ];
    let tokens: std::collections::BTreeSet<u32> = buffers.iter().map(|it| it.token()).collect();
    assert_eq!(tokens.len(), 3);
    assert!(!tokens.contains(&0));
}

#[test]
fn alloc_2_wishes_without_sense_are_refused() {
    let (device, other) = (copying(), copying());
    let ours = prepare(&device, vector(2), vector(2));
    let theirs = prepare(&other, vector(2), vector(2));
    let good = both_ways(&ours);
    device.allocate(&good).unwrap();

    let no_models = BufferDescription { prepared_models: vec![], ..good.clone() };
    assert_eq!(refusal(&device, &no_models), AllocationError::NoPreparedModels);
    let no_roles = BufferDescription { input_roles: vec![], output_roles: vec![], ..good.clone() };
    assert_eq!(refusal(&device, &no_roles), AllocationError::NoRoles);
    let model = BufferDescription { input_roles: vec![role(1, 0)], ..good.clone() };
    assert!(matches!(refusal(&device, &model), AllocationError::NoSuchModel { found: 1, .. }));
    let argument = BufferDescription { output_roles: vec![role(0, 1)], ..good.clone() };
    assert!(matches!(
        refusal(&device, &argument),
        AllocationError::NoSuchArgument { found: 1, .. }
    ));
    let foreign = BufferDescription { prepared_models: vec![ours, theirs], ..good.clone() };
    assert_eq!(refusal(&device, &foreign), AllocationError::ForeignModel { model: 1 });
    for frequency in [0.0, -1.0, 1.001, f32::NAN, f32::INFINITY] {
        let role = BufferRole { frequency, ..role(0, 0) };
        let odd = BufferDescription { input_roles: vec![role], ..good.clone() };
        assert!(matches!(refusal(&device, &odd), AllocationError::Frequency { .. }), "{frequency}");
    }
}

#[test]
fn alloc_3_a_role_stands_once_through_whatever_index() {
    let device = copying();
    let prepared = prepare(&device, vector(2), vector(2));
    let mut twice = both_ways(&prepared);
    twice.input_roles.push(role(0, 0));
    assert!(matches!(refusal(&device, &twice), AllocationError::Twice { .. }));
    let mut aliased = both_ways(&prepared);
    aliased.prepared_models.push(prepared);
    aliased.output_roles.push(role(1, 0));
    assert!(matches!(refusal(&device, &aliased), AllocationError::Twice { .. }));
}

#[test]
fn alloc_4_operands_must_be_alike() {
    let device = copying();
    let spec = |scale, zero| OperandSpec::tensor_quant8_asymm([2], scale, zero);
    let quantized = prepare(&device, spec(0.5, 10), spec(0.5, 10));
    for (other, what) in
        [(vector(2), "type"), (spec(0.25, 10), "scale"), (spec(0.5, 11), "zero point")]
    {
        let other = prepare(&device, other.clone(), other);
        let description = BufferDescription {
            prepared_models: vec![Arc::clone(&quantized), other],
            input_roles: vec![role(0, 0), role(1, 0)],
            ..BufferDescription::default()
        };
        match refusal(&device, &description) {
            AllocationError::Operands { what: found, .. } => assert_eq!(found, what),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn alloc_5_shapes_must_fit_together() {
    let device = copying();
    let matrix = |dimensions: [u32; 2]| {
        let spec = OperandSpec::tensor_float32(dimensions);
        prepare(&device, spec.clone(), spec)
    };
    let with = |model: &Arc<dyn PreparedModel>, dimensions: &[u32]| BufferDescription {
        dimensions: dimensions.to_vec(),
        ..both_ways(model)
    };
    let known = matrix([2, 3]);
    for good in [&[][..], &[0, 3], &[2, 0], &[0, 0], &[2, 3]] {
        device.allocate(&with(&known, good)).unwrap();
    }
    for bad in [&[2][..], &[2, 3, 1], &[3, 3], &[0, 2]] {
        let refused = refusal(&device, &with(&known, bad));
        assert!(matches!(refused, AllocationError::Shapes { .. }), "{bad:?}");
    }
    let mixed = BufferDescription {
        prepared_models: vec![matrix([2, 0]), matrix([0, 4]), matrix([3, 0])],
        input_roles: vec![role(0, 0), role(1, 0)],
        output_roles: vec![role(2, 0)],
        dimensions: vec![],
    };
    assert!(matches!(refusal(&device, &mixed), AllocationError::Shapes { .. }));
}

#[test]
fn buf_5_nothing_can_be_copied_out_before_something_is_in() {
    let device = copying();
    let prepared = prepare(&device, vector(2), vector(2));
    let buffer = device.allocate(&both_ways(&prepared)).unwrap();
    let refused = buffer.copy_to(&memory(&[0.0; 2])).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::GeneralFailure);
    buffer.copy_from(&memory(&[1.0, 2.0]), &[]).unwrap();
    for wrong in [1, 3] {
        let refused = buffer.copy_to(&memory(&vec![0.0; wrong])).unwrap_err();
        assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
    }
    let out = memory(&[0.0; 2]);
    buffer.copy_to(&out).unwrap();
    assert_eq!(floats(&out), [1.0, 2.0]);
}

#[test]
fn buf_3_and_4_a_value_must_be_as_long_as_its_dimensions_say() {
    let device = copying();
    let prepared = prepare(&device, vector(0), vector(0));
    let buffer = device.allocate(&both_ways(&prepared)).unwrap();
    let cases: [(&[u32], usize, bool); 6] = [
        (&[], 2, false),
        (&[2], 2, true),
        (&[2], 3, false),
        (&[2], 1, false),
        (&[0], 2, false),
        (&[1, 2], 2, false),
    ];
    for (dimensions, length, good) in cases {
        let result = buffer.copy_from(&memory(&vec![0.5; length]), dimensions);
        assert_eq!(result.is_ok(), good, "{dimensions:?} {length}");
        if let Err(error) = result {
            assert_eq!(error.status(), ErrorStatus::InvalidArgument);
        }
    }
    // The allocated dimensions count, not those of the value that is in.
    buffer.copy_from(&memory(&[0.5; 2]), &[2]).unwrap();
    buffer.copy_from(&memory(&[0.5; 3]), &[3]).unwrap();
}

#[test]
fn buf_1_a_copy_that_fails_takes_the_old_value() {
    let device = copying();
    let prepared = prepare(&device, vector(2), vector(2));
    let buffer = device.allocate(&both_ways(&prepared)).unwrap();
    buffer.copy_from(&memory(&[1.0, 2.0]), &[]).unwrap();
    buffer.copy_from(&memory(&[1.0]), &[]).unwrap_err();
    assert_eq!(
        buffer.copy_to(&memory(&[0.0; 2])).unwrap_err().status(),
        ErrorStatus::GeneralFailure
    );
}

#[test]
fn buf_6_a_read_only_destination_is_refused() {
    let device = copying();
    let prepared = prepare(&device, vector(2), vector(2));
    let buffer = device.allocate(&both_ways(&prepared)).unwrap();
    buffer.copy_from(&memory(&[1.0, 2.0]), &[]).unwrap();
    let file = tempfile::tempfile().unwrap();
    file.set_len(8).unwrap();
    let read_only =
        Memory::from_file(file.into(), nnhal_hal::memory::Protection::READ, 0, 8).unwrap();
    assert_eq!(buffer.copy_to(&read_only).unwrap_err().status(), ErrorStatus::InvalidArgument);
}

#[test]
fn dbuf_9_values_go_through_buffers_from_one_execution_to_the_next() {
    let device = copying();
    let prepared = prepare(&device, vector(2), vector(2));
    let (between, last) = (
        device.allocate(&both_ways(&prepared)).unwrap(),
        device.allocate(&both_ways(&prepared)).unwrap(),
    );
    let input = memory(&[3.0, 4.0]);
    execute(&*prepared, &request(At::Shared(&input), At::Token(between.token()))).unwrap();
    execute(&*prepared, &request(At::Token(between.token()), At::Token(last.token()))).unwrap();
    let output = memory(&[0.0; 2]);
    execute(&*prepared, &request(At::Token(last.token()), At::Shared(&output))).unwrap();
    assert_eq!(floats(&output), [3.0, 4.0]);
}

/// contract: ALLOC-7
#[test]
fn buf_2_a_buffer_takes_the_shape_of_what_is_in_it() {
    let device = copying();
    let open = prepare(&device, vector(0), vector(0));
    let buffer = device.allocate(&both_ways(&open)).unwrap();
    for values in [&[1.0_f32, 2.0, 3.0][..], &[4.0]] {
        let input = memory(values);
        let mut request = request(At::Shared(&input), At::Token(buffer.token()));
        request.inputs[0].dimensions = vec![u32::try_from(values.len()).unwrap()];
        let execution = execute(&*open, &request).unwrap();
        assert_eq!(execution.dimensions(0).unwrap(), [u32::try_from(values.len()).unwrap()]);
        let out = memory(&vec![0.0; values.len()]);
        buffer.copy_to(&out).unwrap();
        assert_eq!(floats(&out), values);
    }
}

#[test]
fn dbuf_1_tokens_that_stand_for_nothing_are_refused() {
    let device = copying();
    let prepared = prepare(&device, vector(2), vector(2));
    let buffer = device.allocate(&both_ways(&prepared)).unwrap();
    let gone = buffer.token();
    drop(buffer);
    let output = memory(&[0.0; 2]);
    for token in [0, gone, u32::MAX] {
        let result = execute(&*prepared, &request(At::Token(token), At::Shared(&output)));
        assert_eq!(bare_status(result), ErrorStatus::InvalidArgument);
    }
}

/// contract: ALLOC-8
#[test]
fn conc_3_what_was_launched_keeps_its_buffers() {
    let device = copying();
    let prepared = prepare(&device, vector(2), vector(2));
    let input_only = || BufferDescription { output_roles: vec![], ..both_ways(&prepared) };
    let output = memory(&[0.0; 2]);
    let launch = || {
        let buffer = device.allocate(&input_only()).unwrap();
        buffer.copy_from(&memory(&[3.0, 4.0]), &[]).unwrap();
        (request(At::Token(buffer.token()), At::Shared(&output)), buffer)
    };

    let (signal, fence) = SyncFence::pair().unwrap();
    let (reading, buffer) = launch();
    let options = ExecutionOptions::default();
    let fenced = prepared.execute_fenced(&reading, &[fence], &options, None).unwrap();
    drop(buffer);
    assert_eq!(bare_status(execute(&*prepared, &reading)), ErrorStatus::InvalidArgument);
    signal.signal();
    fenced.sync_fence.unwrap().wait(None).unwrap();
    fenced.info.get().unwrap();
    assert_eq!(floats(&output), [3.0, 4.0]);

    let (reading, buffer) = launch();
    let launched = prepared.launch(&reading).unwrap().expect("what keeps buffers");
    output.view().unwrap().write(0, &[0; 8]).unwrap();
    drop(buffer);
    launched.execute(&options).unwrap();
    assert_eq!(floats(&output), [3.0, 4.0]);
    assert_eq!(prepared.launch(&reading).err().unwrap().status(), ErrorStatus::InvalidArgument);

    // Also one that is written, by whoever reads it next.
    let between = device.allocate(&both_ways(&prepared)).unwrap();
    let (signal, fence) = SyncFence::pair().unwrap();
    let writing = request(At::Shared(&memory(&[5.0, 6.0])), At::Token(between.token()));
    let first = prepared.execute_fenced(&writing, &[fence], &options, None).unwrap();
    let reading = request(At::Token(between.token()), At::Shared(&output));
    let behind = [first.sync_fence.clone().unwrap()];
    let second = prepared.execute_fenced(&reading, &behind, &options, None).unwrap();
    drop(between);
    signal.signal();
    second.sync_fence.unwrap().wait(None).unwrap();
    second.info.get().unwrap();
    assert_eq!(floats(&output), [5.0, 6.0]);
}

/// Why a request is refused, and that a check beforehand says the same (contract: EXEC-4).
fn request_refusal(prepared: &dyn PreparedModel, request: &Request) -> (RequestError, ErrorStatus) {
    let error = execute(prepared, request).unwrap_err().error;
    let beforehand = prepared.check_request(request).unwrap_err();
    assert_eq!(beforehand.to_string(), error.to_string());
    (error.reason::<RequestError>().expect("a request's fault").clone(), error.status())
}

#[test]
fn dbuf_2_a_buffer_serves_only_as_what_it_was_allocated_for() {
    let device = copying();
    let (ours, other) =
        (prepare(&device, vector(2), vector(2)), prepare(&device, vector(2), vector(2)));
    let input = memory(&[0.0; 2]);
    let buffer = device.allocate(&output_only(&ours)).unwrap();
    let token = buffer.token();
    let other_model = request(At::Shared(&input), At::Token(token));
    let other_direction = request(At::Token(token), At::Shared(&input));
    for (prepared, request) in [(&other, other_model), (&ours, other_direction)] {
        let (error, status) = request_refusal(&**prepared, &request);
        assert!(matches!(error, RequestError::NoSuchRole { .. }), "{error}");
        assert_eq!(status, ErrorStatus::InvalidArgument);
    }
}

#[test]
fn dbuf_3_reading_an_uninitialized_buffer_is_a_failure() {
    let device = copying();
    let prepared = prepare(&device, vector(2), vector(2));
    let buffer = device.allocate(&both_ways(&prepared)).unwrap();
    let output = memory(&[0.0; 2]);
    let request = request(At::Token(buffer.token()), At::Shared(&output));
    let (_, status) = request_refusal(&*prepared, &request);
    assert_eq!(status, ErrorStatus::GeneralFailure);
    // One that is kept is executed later.
    prepared.check_kept_request(&request).unwrap();
    let unknown = self::request(At::Token(buffer.token() + 1), At::Shared(&output));
    let refused = prepared.check_kept_request(&unknown).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
}

#[test]
fn dbuf_4_and_5_shapes_that_contradict_the_buffer_are_refused() {
    let device = copying();
    let open = prepare(&device, vector(0), vector(0));
    let sized = BufferDescription { dimensions: vec![2], ..both_ways(&open) };
    let (buffer, sink) =
        (device.allocate(&both_ways(&open)).unwrap(), device.allocate(&sized).unwrap());
    buffer.copy_from(&memory(&[1.0, 2.0]), &[2]).unwrap();
    let (token, output) = (buffer.token(), memory(&[0.0; 3]));

    let input = request(At::Shaped(token, &[3]), At::Shared(&output));
    assert!(matches!(request_refusal(&*open, &input).0, RequestError::BufferShape { .. }));
    // A request that is kept is refused for it only while every buffer that it reads holds something: else that is what an
    // execution will say.
    assert!(open.check_kept_request(&input).is_ok(), "{token} may hold another shape by then");
    let output = request(At::Shaped(token, &[2]), At::Shaped(sink.token(), &[3]));
    let refused = open.check_kept_request(&output).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
    let empty = device.allocate(&both_ways(&open)).unwrap();
    let awaited = request(At::Shaped(empty.token(), &[2]), At::Shaped(sink.token(), &[3]));
    open.check_kept_request(&awaited).unwrap();
    let (error, status) = request_refusal(&*open, &awaited);
    assert!(matches!(error, RequestError::Uninitialized { .. }), "{error}");
    assert_eq!(status, ErrorStatus::GeneralFailure);
    let (error, status) = request_refusal(&*open, &output);
    assert!(matches!(error, RequestError::BufferShape { .. }));
    assert_eq!(status, ErrorStatus::InvalidArgument);
    // An input's shape must be said where the model leaves it open, buffer or not (REQ-7).
    let unsaid = request(At::Token(token), At::Token(sink.token()));
    assert!(matches!(request_refusal(&*open, &unsaid).0, RequestError::UnknownDimensions { .. }));
}

#[test]
fn dbuf_6_a_buffer_that_is_written_is_nothing_else() {
    let device = copying();
    let prepared = prepare(&device, vector(2), vector(2));
    let buffer = device.allocate(&both_ways(&prepared)).unwrap();
    buffer.copy_from(&memory(&[1.0, 2.0]), &[]).unwrap();
    // The same token in two pools.
    let request = request(At::Token(buffer.token()), At::Token(buffer.token()));
    let (error, status) = request_refusal(&*prepared, &request);
    assert!(matches!(error, RequestError::Shared { .. }));
    assert_eq!(status, ErrorStatus::InvalidArgument);
    // The refusal has changed nothing (BUF-1).
    buffer.copy_to(&memory(&[0.0; 2])).unwrap();
}

#[test]
fn dbuf_7_a_computed_shape_that_contradicts_the_buffer_is_a_failure() {
    let device = copying();
    let open = prepare(&device, vector(0), vector(0));
    let sized = BufferDescription { dimensions: vec![2], ..output_only(&open) };
    let sink = device.allocate(&sized).unwrap();
    let input = memory(&[1.0, 2.0, 3.0]);
    let mut request = request(At::Shared(&input), At::Token(sink.token()));
    request.inputs[0].dimensions = vec![3];
    assert_eq!(bare_status(execute(&*open, &request)), ErrorStatus::GeneralFailure);
}

#[test]
fn dbuf_8_a_buffer_s_role_is_looked_at_before_its_state_and_that_before_its_shape() {
    let device = copying();
    let open = prepare(&device, vector(0), vector(0));
    let output = memory(&[0.0; 2]);
    let only_written = device.allocate(&output_only(&open)).unwrap();
    let wrong_role = request(At::Shaped(only_written.token(), &[2]), At::Shared(&output));
    assert!(matches!(request_refusal(&*open, &wrong_role).0, RequestError::NoSuchRole { .. }));
    let sized = BufferDescription { dimensions: vec![3], ..both_ways(&open) };
    let empty = device.allocate(&sized).unwrap();
    let wrong_shape = request(At::Shaped(empty.token(), &[2]), At::Shared(&output));
    let (error, status) = request_refusal(&*open, &wrong_shape);
    assert!(matches!(error, RequestError::Uninitialized { .. }));
    assert_eq!(status, ErrorStatus::GeneralFailure);
    // Inputs come before outputs.
    let both = request(At::Shaped(only_written.token(), &[2]), At::Shaped(empty.token(), &[2]));
    assert!(matches!(request_refusal(&*open, &both).0, RequestError::NoSuchRole { .. }));
}

#[test]
fn req_5_a_buffer_is_used_as_a_whole() {
    let device = copying();
    let prepared = prepare(&device, vector(2), vector(2));
    let buffer = device.allocate(&both_ways(&prepared)).unwrap();
    let input = memory(&[0.0; 2]);
    for (offset, length) in [(0, 8), (4, 0)] {
        let mut request = request(At::Shared(&input), At::Token(buffer.token()));
        request.outputs[0].location = DataLocation { pool_index: 1, offset, length };
        let (error, status) = request_refusal(&*prepared, &request);
        assert!(matches!(error, RequestError::PartOfBuffer { .. }));
        assert_eq!(status, ErrorStatus::InvalidArgument);
    }
}

#[test]
fn buf_1_a_failed_execution_takes_the_old_value_and_a_refused_one_does_not() {
    let device = copying();
    let prepared = prepare(&device, vector(2), vector(2));
    let buffer = device.allocate(&both_ways(&prepared)).unwrap();
    buffer.copy_from(&memory(&[1.0, 2.0]), &[]).unwrap();
    let (good, failing) = (memory(&[0.0; 2]), Memory::from_bytes(&[0xFF; 8]).unwrap());

    let mut refused = request(At::Shared(&good), At::Token(buffer.token()));
    refused.inputs[0].location.length = 4;
    assert_eq!(bare_status(execute(&*prepared, &refused)), ErrorStatus::InvalidArgument);
    buffer.copy_to(&good).unwrap();

    let failed = execute(&*prepared, &request(At::Shared(&failing), At::Token(buffer.token())));
    assert_eq!(bare_status(failed), ErrorStatus::GeneralFailure);
    assert_eq!(buffer.copy_to(&good).unwrap_err().status(), ErrorStatus::GeneralFailure);
}

/// A buffer that holds a value, which an execution of this model may write.
fn initialized(
    device: &DriverDevice<Scripted>,
    prepared: &Arc<dyn PreparedModel>,
) -> Arc<dyn Buffer> {
    let buffer = device.allocate(&both_ways(prepared)).unwrap();
    buffer.copy_from(&memory(&[1.0, 2.0]), &[]).unwrap();
    buffer
}

fn expect_uninitialized(buffer: &dyn Buffer) {
    let refused = buffer.copy_to(&memory(&[0.0; 2])).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::GeneralFailure);
}

fn until(deadline: Deadline) -> ExecutionOptions {
    ExecutionOptions { deadline: Some(deadline), ..ExecutionOptions::default() }
}

fn is_missed(status: ErrorStatus) -> bool {
    matches!(status, ErrorStatus::MissedDeadlineTransient | ErrorStatus::MissedDeadlinePersistent)
}

#[test]
fn buf_1_an_execution_whose_deadline_had_passed_takes_the_old_value() {
    let device = copying();
    let prepared = prepare(&device, vector(2), vector(2));
    let input = memory(&[0.0; 2]);
    let passed = until(Deadline::from_nanoseconds_since_epoch(0));

    let buffer = initialized(&device, &prepared);
    let request = request(At::Shared(&input), At::Token(buffer.token()));
    assert!(is_missed(bare_status(prepared.execute(&request, &passed))));
    expect_uninitialized(&*buffer);

    let (_signal, fence) = SyncFence::pair().unwrap();
    for wait_for in [vec![], vec![fence]] {
        buffer.copy_from(&memory(&[1.0, 2.0]), &[]).unwrap();
        let launched = prepared.execute_fenced(&request, &wait_for, &passed, None);
        assert!(is_missed(launched.unwrap_err().status()));
        expect_uninitialized(&*buffer);
    }
}

#[test]
fn buf_1_an_execution_that_missed_its_deadline_in_the_queue_takes_the_old_value() {
    let (entered, leave) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (seen, wait) = (Arc::clone(&entered), Arc::clone(&leave));
    let device = Scripted::running(move |bindings, _| {
        seen.store(true, Ordering::Release);
        while !wait.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let bytes = bindings.inputs()[0].value().unwrap().read_to_vec()?;
        Ok(bindings.outputs()[0].deliver(&[2], &bytes)?)
    })
    .at_once(1)
    .device();
    let prepared = prepare(&device, vector(2), vector(2));
    let (input, output) = (memory(&[0.0; 2]), memory(&[0.0; 2]));
    let (waiting, launched) = (initialized(&device, &prepared), initialized(&device, &prepared));
    let writing = |buffer: &dyn Buffer| request(At::Shared(&input), At::Token(buffer.token()));
    let busy = request(At::Shared(&input), At::Shared(&output));
    std::thread::scope(|scope| {
        scope.spawn(|| execute(&*prepared, &busy).unwrap());
        while !entered.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        let soon = || until(Deadline::after(Duration::from_millis(10)));
        let missed = prepared.execute(&writing(&*waiting), &soon());
        let fenced = prepared.execute_fenced(&writing(&*launched), &[], &soon(), None).unwrap();
        fenced.sync_fence.unwrap().wait(Some(Duration::from_secs(60))).unwrap();
        leave.store(true, Ordering::Release);
        assert!(is_missed(bare_status(missed)));
        assert!(is_missed(fenced.info.get().unwrap_err().status()));
    });
    expect_uninitialized(&*waiting);
    expect_uninitialized(&*launched);
}

/// contract: FENCE-14
#[test]
fn dbuf_4_what_a_buffer_holds_at_launch_is_not_what_a_waiting_execution_reads() {
    let device = copying();
    let open = prepare(&device, vector(0), vector(3));
    let writes = prepare(&device, vector(3), vector(0));
    let description = BufferDescription {
        prepared_models: vec![Arc::clone(&open), Arc::clone(&writes)],
        input_roles: vec![role(0, 0)],
        output_roles: vec![role(1, 0)],
        ..BufferDescription::default()
    };
    let (input, output) = (memory(&[1.0, 2.0, 3.0]), memory(&[0.0; 3]));
    let options = ExecutionOptions::default();
    for held in [&[][..], &[7.0, 8.0]] {
        let buffer = device.allocate(&description).unwrap();
        if !held.is_empty() {
            buffer.copy_from(&memory(held), &[2]).unwrap();
        }
        let token = buffer.token();
        let (signal, fence) = SyncFence::pair().unwrap();
        let first = request(At::Shared(&input), At::Shaped(token, &[3]));
        let first = writes.execute_fenced(&first, &[fence], &options, None).unwrap();
        let wait_for = [first.sync_fence.unwrap()];
        let reads = |length: &[u32]| {
            let request = request(At::Shaped(token, length), At::Shared(&output));
            open.execute_fenced(&request, &wait_for, &options, None)
        };
        let second = reads(&[3]).unwrap();
        // What the buffer will hold is seen when it is read.
        let wrong = reads(&[2]).unwrap();
        signal.signal();
        let end = |execution: &nnhal_hal::FencedExecution| {
            let fence = execution.sync_fence.as_ref().unwrap();
            fence.wait(Some(Duration::from_secs(60))).unwrap();
            execution.info.get().map_err(|error| error.status())
        };
        assert!(end(&second).is_ok(), "{held:?}");
        assert_eq!(floats(&output), [1.0, 2.0, 3.0]);
        assert_eq!(end(&wrong).unwrap_err(), ErrorStatus::GeneralFailure);
    }
    // What contradicts the allocated dimensions is wrong whatever will be in the buffer.
    let buffer =
        device.allocate(&BufferDescription { dimensions: vec![2], ..description }).unwrap();
    let (_signal, fence) = SyncFence::pair().unwrap();
    let wrong = request(At::Shaped(buffer.token(), &[3]), At::Shared(&output));
    let refused = open.execute_fenced(&wrong, &[fence], &options, None).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
}

#[test]
fn alloc_8_an_execution_keeps_the_storage_of_a_buffer_that_is_dropped() {
    let (entered, leave) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (seen, wait) = (Arc::clone(&entered), Arc::clone(&leave));
    let device = Scripted::running(move |bindings, _| {
        seen.store(true, Ordering::Release);
        while !wait.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        let bytes = bindings.inputs()[0].value().unwrap().read_to_vec()?;
        Ok(bindings.outputs()[0].deliver(&[2], &bytes)?)
    })
    .device();
    let prepared = prepare(&device, vector(2), vector(2));
    let buffer = device.allocate(&both_ways(&prepared)).unwrap();
    buffer.copy_from(&memory(&[5.0, 6.0]), &[]).unwrap();
    let output = memory(&[0.0; 2]);
    let request = request(At::Token(buffer.token()), At::Shared(&output));
    std::thread::scope(|scope| {
        let running = scope.spawn(|| execute(&*prepared, &request).unwrap());
        while !entered.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        drop(buffer);
        leave.store(true, Ordering::Release);
        let shapes = running.join().unwrap().output_shapes;
        assert_eq!(shapes, [OutputShape { dimensions: vec![2], is_sufficient: true }]);
    });
    assert_eq!(floats(&output), [5.0, 6.0]);
    assert_eq!(bare_status(execute(&*prepared, &request)), ErrorStatus::InvalidArgument);
}

#[test]
fn alloc_9_a_prepared_model_that_is_gone_leaves_its_roles_to_no_one() {
    let device = copying();
    let first = prepare(&device, vector(2), vector(2));
    let buffer = device.allocate(&both_ways(&first)).unwrap();
    drop(first);
    let input = memory(&[0.0; 2]);
    for _ in 0..8 {
        let next = prepare(&device, vector(2), vector(2));
        let request = request(At::Shared(&input), At::Token(buffer.token()));
        let (error, _) = request_refusal(&*next, &request);
        assert!(matches!(error, RequestError::NoSuchRole { .. }));
    }
}
