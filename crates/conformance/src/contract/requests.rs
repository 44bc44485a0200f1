//! What a request must keep to (contract: sections 9 and 15).

use super::models::{
    activated_addition, adder, addition, addition_beside, execute, in_buffer, is_newest, memory,
    prepare, sum_request,
};
use super::{Check, Run, Verdict, Violation, demand, demand_refusal};
use nnhal_hal::ErrorStatus::{GeneralFailure, InvalidArgument};
use nnhal_hal::memory::Protection;
use nnhal_hal::{
    BufferDescription, BufferRole, Device, HalVersion, Memory, OperandSpec, Request,
    RequestArgument, RequestBuilder, RequestMemoryPool,
};
use std::fs::File;
use std::sync::Arc;

pub(super) const CHECKS: &[Check] = &[
    Check {
        ids: &["REQ-1", "REQ-2", "REQ-3", "REQ-4", "REQ-6", "REQ-9"],
        name: "a request with one thing wrong is refused",
        run: Run::Device(wrong),
    },
    Check {
        ids: &["REQ-2", "REQ-6"],
        name: "what is left out, and a scalar, have no dimensions",
        run: Run::Device(needless_dimensions),
    },
    Check {
        ids: &["REQ-7"],
        name: "inputs must be known when they come",
        run: Run::Device(unknown_inputs),
    },
    Check {
        ids: &["REQ-10", "DBUF-1"],
        name: "tokens that stand for nothing are refused, used or not",
        run: Run::Device(stray_tokens),
    },
    Check {
        ids: &["REQ-12"],
        name: "outputs in read-only memory are refused",
        run: Run::Device(read_only),
    },
];

/// What is wrong, and how it comes about.
pub(super) type Mistake = (&'static str, fn(&mut Request));

/// Ways to spoil a request for an addition.
pub(super) const MISTAKES: &[Mistake] = &[
    ("REQ-1: an input less", |it| drop(it.inputs.pop())),
    ("REQ-1: an output more", |it| it.outputs.push(it.outputs[0].clone())),
    ("REQ-1: no arguments", |it| *it = Request::default()),
    ("REQ-2: an omitted input with a location", |it| it.inputs[0].has_no_value = true),
    ("REQ-3: a pool that is not there", |it| it.inputs[1].location.pool_index = 1),
    ("REQ-3: an offset behind the end", |it| it.inputs[0].location.offset = 1 << 20),
    ("REQ-3: an end beyond 32 bits", |it| it.outputs[0].location.offset = u32::MAX),
    ("REQ-4: an input of no bytes", |it| it.inputs[0].location.length = 0),
    ("REQ-6: another rank", |it| it.inputs[0].dimensions = vec![2, 2, 1]),
    ("REQ-6: another length", |it| it.outputs[0].dimensions = vec![2, 3]),
    ("REQ-9: an input that is too short", |it| it.inputs[0].location.length = 12),
    ("REQ-9: an input that is too long", |it| it.inputs[0].location.length = 17),
];

fn wrong(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let prepared = adder(&**device)?;
    for (what, spoil) in MISTAKES {
        let mut request = sum_request()?;
        spoil(&mut request);
        demand_refusal_of(&*prepared, what, &request)?;
    }
    Ok(Verdict::Kept)
}

fn demand_refusal_of(
    prepared: &dyn nnhal_hal::PreparedModel,
    what: &str,
    request: &Request,
) -> Result<(), Violation> {
    let result = execute(prepared, request);
    if let Err(failed) = &result {
        demand!(failed.output_shapes.is_empty(), "GEN-3, SHAPE-1: {what} is refused with shapes");
    }
    demand_refusal(what, result.map_err(|failed| failed.error), &[InvalidArgument])
}

fn needless_dimensions(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let prepared = prepare(&**device, &activated_addition())?;
    let mut request = RequestBuilder::new();
    request.input(&[0; 16]).input(&[0; 16]).input(&[0; 4]).output(16);
    let good = request.build()?;
    execute(&*prepared, &good)?;
    for dimensions in [vec![1], vec![0], vec![1, 1]] {
        let mut request = good.clone();
        request.inputs[2].dimensions.clone_from(&dimensions);
        demand_refusal_of(&*prepared, &format!("a scalar with {dimensions:?}"), &request)?;
    }
    let prepared = prepare(&**device, &addition_beside(OperandSpec::tensor_float32([2])))?;
    let mut request = RequestBuilder::new();
    request.input(&[0; 16]).input(&[0; 16]).omitted_input().output(16);
    let mut request = request.build()?;
    // It may be left out, or not.
    if let Err(failed) = execute(&*prepared, &request) {
        demand_refusal::<()>("an input that is left out", Err(failed.error), &[GeneralFailure])?;
    }
    request.inputs[2].dimensions = vec![2];
    demand_refusal_of(&*prepared, "an input that is left out, with dimensions", &request)?;
    Ok(Verdict::Kept)
}

fn unknown_inputs(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let prepared = prepare(&**device, &addition([0, 2]))?;
    let mut request = sum_request()?;
    demand_refusal_of(&*prepared, "an input of unknown shape", &request)?;
    for input in &mut request.inputs {
        input.dimensions = vec![0, 2];
    }
    demand_refusal_of(&*prepared, "an input of a length of 0", &request)?;
    // A buffer does not say it in the request's place.
    let description = BufferDescription {
        dimensions: vec![2, 2],
        prepared_models: vec![Arc::clone(&prepared)],
        input_roles: vec![BufferRole { model_index: 0, io_index: 0, frequency: 1.0 }],
        ..BufferDescription::default()
    };
    let buffer = match is_newest(&**device) {
        true => device.allocate(&description).ok(),
        false => None,
    };
    if let Some(buffer) = buffer {
        buffer.copy_from(&memory(&[0; 16])?, &[])?;
        let mut request = sum_request()?;
        request.inputs[1].dimensions = vec![2, 2];
        let mut request = in_buffer(request, buffer.token(), |it| &mut it.inputs[0]);
        demand_refusal_of(&*prepared, "a buffer as an input of unknown shape", &request)?;
        request.inputs[0].dimensions = vec![2, 2];
        execute(&*prepared, &request)?;
    }
    Ok(Verdict::Kept)
}

fn stray_tokens(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if device.version() < HalVersion::V1_3 {
        return Ok(Verdict::NotOffered("tokens, which are of 1.3".into()));
    }
    let prepared = adder(&**device)?;
    for token in [0, u32::MAX] {
        let mut request = sum_request()?;
        request.pools.push(RequestMemoryPool::Token(token));
        demand_refusal_of(&*prepared, &format!("token {token} beside the pools"), &request)?;
        request.inputs[0] = RequestArgument::default();
        request.inputs[0].location.pool_index = 1;
        demand_refusal_of(&*prepared, &format!("an input in token {token}"), &request)?;
    }
    Ok(Verdict::Kept)
}

fn read_only(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let prepared = adder(&**device)?;
    let own = |error: &dyn std::fmt::Display| Violation(format!("the check's own file: {error}"));
    let program = std::env::current_exe().map_err(|error| own(&error))?;
    let file = File::open(program).map_err(|error| own(&error))?;
    let memory = Memory::from_file(file.into(), Protection::READ, 0, 4096);
    let mut request = sum_request()?;
    let pool = memory.map_err(|error| own(&error))?;
    request.pools.push(RequestMemoryPool::Memory(pool));
    request.outputs[0].location.pool_index = 1;
    demand_refusal_of(&*prepared, "an output in read-only memory", &request)?;
    // It serves as an input.
    let mut reading = RequestBuilder::new();
    reading.input(&[0; 16]).input(&[0; 16]).output(16);
    let mut reading = reading.build()?;
    reading.pools.push(request.pools.swap_remove(1));
    reading.inputs[0].location = nnhal_hal::DataLocation { pool_index: 1, offset: 0, length: 16 };
    execute(&*prepared, &reading)?;
    Ok(Verdict::Kept)
}
