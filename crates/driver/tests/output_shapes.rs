//! Output shapes, sufficient or not (contract: section 10, SHAPE).

mod engine;

use engine::{Scripted, bare_status, execute, request_with_room, shape, vector};
use nnhal_driver::{DeliveryError, EngineError};
use nnhal_hal::{ErrorStatus, OperandSpec, PreparedModel, Request, RequestBuilder};
use std::sync::Arc;

/// A prepared model whose output turns out to have these dimensions and bytes.
fn delivering(
    declared: OperandSpec,
    dimensions: &'static [u32],
    bytes: &'static [u8],
) -> Arc<dyn PreparedModel> {
    Scripted::running(move |bindings, _| Ok(bindings.outputs()[0].deliver(dimensions, bytes)?))
        .prepared(vector(2), declared)
}

/// The pool's bytes behind the output's last.
fn behind_output(request: &Request) -> Vec<u8> {
    let location = request.outputs[0].location;
    let nnhal_hal::RequestMemoryPool::Memory(memory) = &request.pools[0] else { panic!("memory") };
    let view = memory.view().unwrap();
    view.read_to_vec(location.end(), view.size() - location.end()).unwrap()
}

#[test]
fn shape_2_and_3_success_gives_the_exact_dimensions() {
    let prepared = delivering(vector(0), &[2], &[7; 8]);
    let request = request_with_room(8);
    let execution = execute(&*prepared, &request).unwrap();
    assert_eq!(execution.output_shapes, [shape(&[2], true)]);
    assert_eq!(RequestBuilder::read_output(&request, 0).unwrap(), [7; 8]);
}

#[test]
fn shape_4_and_5_too_short_a_buffer_gives_the_shape_and_is_left_alone() {
    let prepared = delivering(vector(0), &[2], &[7; 8]);
    let request = request_with_room(7);
    let failed = execute(&*prepared, &request).unwrap_err();
    assert_eq!(failed.error.status(), ErrorStatus::OutputInsufficientSize);
    assert_eq!(failed.output_shapes, [shape(&[2], false)]);
    assert_eq!(RequestBuilder::read_output(&request, 0).unwrap(), [0; 7]);
}

#[test]
fn shape_4_only_the_short_ones_are_insufficient() {
    let prepared = Scripted::running(|bindings, _| {
        for output in bindings.outputs() {
            output.deliver(&[2], &[7; 8])?;
        }
        Ok(())
    });
    let mut graph = nnhal_hal::SubgraphBuilder::new();
    let x = graph.input("x", vector(2));
    for _ in 0..3 {
        let y = graph.operation(nnhal_hal::OperationType::Relu, [x], vector(0));
        graph.output(y);
    }
    let device = prepared.device();
    let model = graph.into_model().unwrap();
    let options = nnhal_hal::PrepareOptions::default();
    let prepared =
        nnhal_hal::Device::prepare_model(&device, &model, nnhal_hal::HalVersion::V1_3, options)
            .unwrap();
    let mut request = RequestBuilder::new();
    request.input(&[0; 8]).output(8).output(4).output(9);
    let request = request.build().unwrap();
    let failed = execute(&*prepared, &request).unwrap_err();
    assert_eq!(failed.output_shapes, [shape(&[2], true), shape(&[2], false), shape(&[2], true)]);
    assert!(failed.error.to_string().contains("output 1 of shape [2]"), "{}", failed.error);
}

#[test]
fn shape_6_a_known_output_too_short_is_reported_and_a_longer_one_filled_as_needed() {
    let prepared = delivering(vector(2), &[2], &[7; 8]);
    let failed = execute(&*prepared, &request_with_room(4)).unwrap_err();
    assert_eq!(failed.error.status(), ErrorStatus::OutputInsufficientSize);
    assert_eq!(failed.output_shapes, [shape(&[2], false)]);

    let request = request_with_room(12);
    execute(&*prepared, &request).unwrap();
    let written = RequestBuilder::read_output(&request, 0).unwrap();
    assert_eq!(written, [7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 0]);
}

#[test]
fn shape_7_a_zero_sized_output_succeeds() {
    let prepared = delivering(vector(0), &[0], &[]);
    let request = request_with_room(0);
    let execution = execute(&*prepared, &request).unwrap();
    assert_eq!(execution.output_shapes, [shape(&[0], true)]);
    assert_eq!(RequestBuilder::read_output(&request, 0).unwrap(), [0]);
}

#[test]
fn shape_8_nothing_is_written_past_an_output() {
    for room in [4, 8] {
        let prepared = delivering(vector(0), &[2], &[7; 8]);
        let mut request = RequestBuilder::new();
        request.output(room).input(&[3; 8]);
        let request = request.build().unwrap();
        let before = behind_output(&request);
        let _ = execute(&*prepared, &request);
        assert_eq!(behind_output(&request), before, "room for {room}");
    }
}

#[test]
fn the_shape_of_an_output_that_is_left_out_is_reported() {
    let prepared = delivering(vector(0), &[2], &[7; 8]);
    let mut request = RequestBuilder::new();
    request.input(&[0; 8]);
    let mut request = request.build().unwrap();
    request.outputs.push(nnhal_hal::RequestArgument::omitted());
    let execution = execute(&*prepared, &request).unwrap();
    assert_eq!(execution.output_shapes, [shape(&[2], true)]);
}

#[test]
fn shape_5_a_result_that_contradicts_model_or_request_is_a_failure() {
    let of_model = delivering(vector(2), &[3], &[7; 12]);
    let result = execute(&*of_model, &request_with_room(16));
    assert_eq!(bare_status(result), ErrorStatus::GeneralFailure);

    let prepared = delivering(vector(0), &[3], &[7; 12]);
    let mut request = RequestBuilder::new();
    request.input(&[0; 8]).output_shaped(16, &[2]);
    let result = execute(&*prepared, &request.build().unwrap());
    assert_eq!(bare_status(result), ErrorStatus::GeneralFailure);
}

#[test]
fn an_engine_that_delivers_wrongly_is_caught() {
    let reason = |run: fn(&nnhal_driver::BoundOutput) -> Result<(), EngineError>| {
        let engine = Scripted::running(move |bindings, _| run(&bindings.outputs()[0]));
        let prepared = engine.prepared(vector(2), vector(0));
        let failed = execute(&*prepared, &request_with_room(8)).unwrap_err();
        assert_eq!(failed.error.status(), ErrorStatus::GeneralFailure);
        match failed.error.reason() {
            Some(EngineError::Delivery(error)) => error.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert!(matches!(reason(|_| Ok(())), DeliveryError::Missing { output: 0 }));
    let twice = reason(|output| {
        output.deliver(&[2], &[0; 8])?;
        Ok(output.deliver(&[2], &[0; 8])?)
    });
    assert!(matches!(twice, DeliveryError::Twice { output: 0 }));
    let size = reason(|output| Ok(output.deliver(&[2], &[0; 7])?));
    assert!(matches!(size, DeliveryError::Size { found: 7, .. }));
}
