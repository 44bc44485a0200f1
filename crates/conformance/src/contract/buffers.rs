//! Buffers that the driver manages (contract: sections 13 and 14).

use super::models::{
    adder, bytes, execute, in_buffer, is_newest, memory, memory_bytes, sum, sum_request,
};
use super::{Check, Run, Verdict, Violation, demand, demand_refusal};
use nnhal_hal::ErrorStatus::{GeneralFailure, InvalidArgument};
use nnhal_hal::{
    Buffer, BufferDescription, BufferRole, Device, ExecutionOptions, Memory, PreparedModel,
    Request, RequestArgument, RequestBuilder, SyncFence,
};
use std::sync::Arc;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[
    Check {
        ids: &["ALLOC-1", "ALLOC-8"],
        name: "tokens are above 0 and differ",
        run: Run::Device(tokens),
    },
    Check {
        ids: &["ALLOC-2", "ALLOC-3", "ALLOC-5", "ALLOC-6"],
        name: "a wish without sense is refused",
        run: Run::Device(wishes),
    },
    Check {
        ids: &["BUF-1", "BUF-3", "BUF-4", "BUF-5"],
        name: "what is copied in comes out, if it is as long as it must be",
        run: Run::Device(copies),
    },
    Check {
        ids: &["DBUF-9", "BUF-2"],
        name: "values go through a buffer from one execution to the next",
        run: Run::Device(through),
    },
    Check {
        ids: &["DBUF-2", "DBUF-3", "DBUF-6", "REQ-5"],
        name: "a buffer serves only as what it was allocated for, once it holds something",
        run: Run::Device(misuse),
    },
    Check {
        ids: &["CONC-3", "ALLOC-8"],
        name: "a buffer that is let go of serves the execution behind a fence that was launched with it",
        run: Run::Device(let_go),
    },
];

/// How long a check waits for a fence.
const TIMEOUT: Option<Duration> = Some(Duration::from_secs(30));

type Offered = Option<(Arc<dyn PreparedModel>, Arc<dyn Buffer>)>;

fn role(io_index: u32) -> BufferRole {
    BufferRole { model_index: 0, io_index, frequency: 1.0 }
}

fn description(prepared: &Arc<dyn PreparedModel>) -> BufferDescription {
    BufferDescription {
        prepared_models: vec![Arc::clone(prepared)],
        input_roles: vec![role(0)],
        output_roles: vec![role(0)],
        ..BufferDescription::default()
    }
}

/// A buffer for the first input and the output of an addition; `None` where there are none.
fn offered(device: &Arc<dyn Device>) -> Result<Offered, Violation> {
    if !is_newest(&**device) {
        return Ok(None);
    }
    let prepared = adder(&**device)?;
    match device.allocate(&description(&prepared)) {
        Ok(buffer) => Ok(Some((prepared, buffer))),
        Err(error) => {
            // A driver may refuse them all, but only so.
            demand_refusal::<()>("a buffer", Err(error), &[GeneralFailure])?;
            Ok(None)
        }
    }
}

fn not_offered() -> Verdict {
    Verdict::NotOffered("buffers that the driver manages".into())
}

fn first_input(request: &mut Request) -> &mut RequestArgument {
    &mut request.inputs[0]
}

fn second_input(request: &mut Request) -> &mut RequestArgument {
    &mut request.inputs[1]
}

fn output(request: &mut Request) -> &mut RequestArgument {
    &mut request.outputs[0]
}

fn tokens(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let Some((prepared, first)) = offered(device)? else { return Ok(not_offered()) };
    let second = device.allocate(&description(&prepared))?;
    let tokens = [first.token(), second.token()];
    demand!(tokens[0] != 0 && tokens[1] != 0 && tokens[0] != tokens[1], "tokens {tokens:?}");
    Ok(Verdict::Kept)
}

fn wishes(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let Some((prepared, _)) = offered(device)? else { return Ok(not_offered()) };
    let good = || description(&prepared);
    let odd = |frequency| BufferRole { frequency, ..role(0) };
    let cases = [
        ("no prepared models", BufferDescription { prepared_models: vec![], ..good() }),
        ("no roles", BufferDescription { input_roles: vec![], output_roles: vec![], ..good() }),
        ("an input that is not there", BufferDescription { input_roles: vec![role(2)], ..good() }),
        ("a role twice", BufferDescription { input_roles: vec![role(0); 2], ..good() }),
        ("a frequency of 0", BufferDescription { input_roles: vec![odd(0.0)], ..good() }),
        ("a frequency above 1", BufferDescription { input_roles: vec![odd(1.5)], ..good() }),
        (
            "a frequency that is none",
            BufferDescription { input_roles: vec![odd(f32::NAN)], ..good() },
        ),
        ("another rank", BufferDescription { dimensions: vec![2], ..good() }),
        ("another length", BufferDescription { dimensions: vec![2, 3], ..good() }),
    ];
    for (what, description) in cases {
        let answer = device.allocate(&description);
        demand_refusal(what, answer, &[InvalidArgument, GeneralFailure])?;
    }
    Ok(Verdict::Kept)
}

fn copies(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let Some((_, buffer)) = offered(device)? else { return Ok(not_offered()) };
    let place = memory(&[0; 16])?;
    demand_refusal("copying out of nothing", buffer.copy_to(&place), &[GeneralFailure])?;
    let value = bytes(&[1.0, 2.0, 3.0, 4.0]);
    for length in [15, 17] {
        let answer = buffer.copy_from(&memory(&vec![0; length])?, &[]);
        demand_refusal(&format!("{length} of 16 bytes"), answer, &[InvalidArgument])?;
    }
    buffer.copy_from(&memory(&value)?, &[])?;
    for length in [15, 17] {
        let answer = buffer.copy_to(&memory(&vec![0; length])?);
        demand_refusal(&format!("room for {length} of 16 bytes"), answer, &[InvalidArgument])?;
    }
    buffer.copy_to(&place)?;
    demand!(memory_bytes(&place)? == value, "other bytes come out than went in");
    let answer = buffer.copy_from(&memory(&value)?, &[2, 3]);
    demand_refusal("dimensions that contradict", answer, &[InvalidArgument])?;
    Ok(Verdict::Kept)
}

fn through(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let Some((prepared, buffer)) = offered(device)? else { return Ok(not_offered()) };
    execute(&*prepared, &in_buffer(sum_request()?, buffer.token(), output))?;
    let copied: Memory = memory(&[0; 16])?;
    buffer.copy_to(&copied)?;
    demand!(memory_bytes(&copied)? == sum(), "the buffer does not hold the sum");
    let request = in_buffer(sum_request()?, buffer.token(), first_input);
    execute(&*prepared, &request)?;
    let found = RequestBuilder::read_output(&request, 0)?;
    demand!(found == bytes(&[21.0, 22.0, 23.0, 24.0]), "the sum of the sum is {found:?}");
    Ok(Verdict::Kept)
}

fn let_go(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let Some((prepared, buffer)) = offered(device)? else { return Ok(not_offered()) };
    buffer.copy_from(&memory(&bytes(&[1.0, 2.0, 3.0, 4.0]))?, &[])?;
    let request = in_buffer(sum_request()?, buffer.token(), first_input);
    let (signal, fence) = SyncFence::pair()?;
    let options = ExecutionOptions::default();
    let launched = prepared.execute_fenced(&request, &[fence], &options, None)?;
    drop(buffer);
    signal.signal();
    if let Some(fence) = &launched.sync_fence {
        fence.wait(TIMEOUT)?;
    }
    let info = launched.info.get();
    demand!(info.is_ok(), "the execution that reads it: {info:?}");
    let found = RequestBuilder::read_output(&request, 0)?;
    demand!(found == sum(), "the sum is {found:?}");
    Ok(Verdict::Kept)
}

fn misuse(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let Some((prepared, buffer)) = offered(device)? else { return Ok(not_offered()) };
    let answer =
        |request: &Request| execute(&*prepared, request).map(|_| ()).map_err(|failed| failed.error);
    let token = buffer.token();
    let empty = in_buffer(sum_request()?, token, first_input);
    demand_refusal("an uninitialized input", answer(&empty), &[GeneralFailure])?;
    let other = in_buffer(sum_request()?, token, second_input);
    demand_refusal("another input", answer(&other), &[InvalidArgument])?;
    buffer.copy_from(&memory(&sum())?, &[])?;
    let mut twice = in_buffer(sum_request()?, token, first_input);
    twice.outputs[0].location = twice.inputs[0].location;
    demand_refusal("a buffer that is read and written", answer(&twice), &[InvalidArgument])?;
    let mut part = in_buffer(sum_request()?, token, first_input);
    part.inputs[0].location.length = 16;
    demand_refusal("a part of a buffer", answer(&part), &[InvalidArgument])?;
    let stranger = adder(&**device)?;
    let borrowed = in_buffer(sum_request()?, token, first_input);
    let result = execute(&*stranger, &borrowed).map_err(|failed| failed.error);
    demand_refusal("another prepared model", result, &[InvalidArgument])?;
    Ok(Verdict::Kept)
}
