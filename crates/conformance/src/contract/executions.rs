//! Executions: results, shapes, times, deadlines (contract: sections 10, 16, 17).

use super::models::{
    adder, addition, bytes, endless, execute, is_newest, is_supported, memory_bytes, pool_addition,
    pool_bytes, prepare, sum, sum_request, two_sums, two_sums_request,
};
use super::{Check, Run, Verdict, Violation, demand, demand_refusal};
use nnhal_hal::ErrorStatus::{
    GeneralFailure, InvalidArgument, MissedDeadlinePersistent, MissedDeadlineTransient,
    OutputInsufficientSize,
};
use nnhal_hal::memory::Protection;
use nnhal_hal::{
    Deadline, Device, ExecutionOptions, HalVersion, Memory, RequestBuilder, RequestMemoryPool,
    Timing,
};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const CHECKS: &[Check] = &[
    Check {
        ids: &["EXEC-6", "SYNC-1"],
        name: "a good request succeeds",
        run: Run::Device(succeeds),
    },
    Check {
        ids: &["SHAPE-2", "SHAPE-3", "EXEC-8"],
        name: "unknown shapes are reported when they are known",
        run: Run::Device(unknown_shapes),
    },
    Check {
        ids: &["SHAPE-4", "SHAPE-5", "SHAPE-6", "SHAPE-8"],
        name: "the shape is reported where a buffer is too short, and nothing is written behind it",
        run: Run::Device(short_buffers),
    },
    Check {
        ids: &["SHAPE-2", "SHAPE-4"],
        name: "of two outputs both shapes are reported, and those are marked whose buffers are too short",
        run: Run::Device(two_outputs),
    },
    Check {
        ids: &["SHAPE-6"],
        name: "too long a buffer is no mistake",
        run: Run::Device(long_buffers),
    },
    Check {
        ids: &["REQ-13", "MEM-3"],
        name: "arguments may be anywhere",
        run: Run::Device(alignment),
    },
    Check {
        ids: &["GEN-5", "EXEC-9", "FENCE-6"],
        name: "only outputs are written, and nothing after the end",
        run: Run::Device(only_outputs),
    },
    Check {
        ids: &["TIME-1", "TIME-2"],
        name: "times are reported when asked for",
        run: Run::Device(times),
    },
    Check {
        ids: &["QOS-3", "QOS-5", "QOS-10", "SYNC-3"],
        name: "a deadline is kept or missed, and harms no other execution",
        run: Run::Device(deadlines),
    },
    Check {
        ids: &["GEN-4"],
        name: "an execution's arguments are looked at before its deadline",
        run: Run::Device(wrong_and_late),
    },
    Check {
        ids: &["QOS-4"],
        name: "a deadline that is far away is none for executions",
        run: Run::Device(far_deadlines),
    },
    Check { ids: &["QOS-7"], name: "a loop without end is ended", run: Run::Device(loops) },
    Check {
        ids: &["CONC-1", "CONC-2"],
        name: "executions at once do not disturb each other",
        run: Run::Device(at_once),
    },
];

fn succeeds(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let prepared = adder(&**device)?;
    let request = sum_request()?;
    let shapes = execute(&*prepared, &request)?.output_shapes;
    let complete = shapes.is_empty()
        || shapes
            .iter()
            .map(|shape| (&shape.dimensions[..], shape.is_sufficient))
            .eq([(&[2, 2][..], true)]);
    demand!(complete, "SHAPE-2: the shapes are {shapes:?}");
    let found = RequestBuilder::read_output(&request, 0)?;
    demand!(found == sum(), "the sum is {found:?}");
    Ok(Verdict::Kept)
}

fn unknown_shapes(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if device.version() < HalVersion::V1_2 {
        return Ok(Verdict::NotOffered("unknown output shapes, which are of 1.2".into()));
    }
    let prepared = prepare(&**device, &addition([0, 2]))?;
    let mut request = sum_request()?;
    for input in &mut request.inputs {
        input.dimensions = vec![2, 2];
    }
    let shapes = match execute(&*prepared, &request) {
        // Whoever does not know such outputs ends so.
        Err(failed) if failed.error.status() == GeneralFailure => {
            return Ok(Verdict::NotOffered("unknown output shapes".into()));
        }
        result => result?.output_shapes,
    };
    let right = shapes.iter().map(|it| &it.dimensions[..]).eq([&[2, 2][..]]);
    demand!(right && shapes[0].is_sufficient, "the shapes are {shapes:?}, expected [2, 2]");
    let found = RequestBuilder::read_output(&request, 0)?;
    demand!(found == sum(), "the sum is {found:?}");
    Ok(Verdict::Kept)
}

fn short_buffers(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if device.version() < HalVersion::V1_2 {
        return Ok(Verdict::NotOffered("output shapes, which are of 1.2".into()));
    }
    for rows in [0, 2] {
        let prepared = prepare(&**device, &addition([rows, 2]))?;
        for length in [1, 15] {
            let mut request = sum_request()?;
            for input in &mut request.inputs {
                input.dimensions = vec![2, 2];
            }
            request.outputs[0].location.length = length;
            let before = pool_bytes(&request, 0)?;
            let what = format!("a buffer of {length} of 16 bytes, {rows} rows in the model");
            let result = execute(&*prepared, &request);
            if let Err(failed) = &result {
                let shapes = &failed.output_shapes;
                let notified = shapes.iter().map(|it| (&it.dimensions[..], it.is_sufficient));
                demand!(notified.eq([(&[2, 2][..], false)]), "{what}: the shapes are {shapes:?}");
            }
            let result = result.map_err(|failed| failed.error);
            demand_refusal(&what, result, &[OutputInsufficientSize])?;
            let output = request.outputs[0].location;
            let behind = (output.offset + output.length) as usize;
            let after = pool_bytes(&request, 0)?;
            demand!(before[behind..] == after[behind..], "{what}: something is written behind it");
        }
    }
    Ok(Verdict::Kept)
}

fn two_outputs(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if device.version() < HalVersion::V1_2 {
        return Ok(Verdict::NotOffered("output shapes, which are of 1.2".into()));
    }
    for is_open in [false, true] {
        let prepared = prepare(&**device, &two_sums(is_open))?;
        let burst = prepared.configure_burst()?;
        for short in [[false, false], [true, false], [false, true], [true, true]] {
            let mut request = two_sums_request()?;
            for (output, short) in request.outputs.iter_mut().zip(short) {
                output.location.length -= u32::from(short);
            }
            let is_short = short.contains(&true);
            for (way, result) in [
                ("executed", execute(&*prepared, &request)),
                ("by a burst", burst.execute(&request, false)),
            ] {
                let what = format!("open: {is_open}, too short: {short:?}, {way}");
                let shapes = match result {
                    Ok(execution) if !is_short => execution.output_shapes,
                    Err(failed) if is_open && failed.error.status() == GeneralFailure => {
                        return Ok(Verdict::NotOffered("unknown output shapes".into()));
                    }
                    Err(failed) if is_short && failed.error.status() == OutputInsufficientSize => {
                        failed.output_shapes
                    }
                    other => return Err(Violation(format!("{what}: {other:?}"))),
                };
                let expected = [&[2, 2][..], &[3]].into_iter().zip(short);
                let right = shapes.len() == 2
                    && shapes.iter().zip(expected).all(|(found, (dimensions, short))| {
                        found.dimensions == dimensions && found.is_sufficient != short
                    });
                let is_left_out = shapes.is_empty() && !is_short && !is_open;
                demand!(right || is_left_out, "{what}: the shapes are {shapes:?}");
                for (output, expected) in [sum(), bytes(&[10.0, 12.0, 14.0])].iter().enumerate() {
                    if !is_short {
                        let found = RequestBuilder::read_output(&request, output)?;
                        demand!(found == *expected, "{what}: output {output} is {found:?}");
                    }
                }
            }
        }
    }
    Ok(Verdict::Kept)
}

fn long_buffers(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let prepared = adder(&**device)?;
    let mut request = RequestBuilder::new();
    request.input(&[0; 16]).input(&[0; 16]).output(64);
    let request = request.build()?;
    let output = request.outputs[0].location.offset as usize;
    if let RequestMemoryPool::Memory(memory) = &request.pools[0] {
        let write = memory.view().and_then(|view| view.write(output as u64, &[7; 64]));
        write.map_err(|error| Violation(format!("the check's own memory: {error}")))?;
    }
    execute(&*prepared, &request)?;
    let found = pool_bytes(&request, 0)?;
    demand!(found[output..][..16] == [0; 16], "the sum is {:?}", &found[output..][..16]);
    demand!(found[output + 16..].iter().all(|byte| *byte == 7), "more than the sum is written");
    Ok(Verdict::Kept)
}

fn alignment(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let prepared = adder(&**device)?;
    let whole = sum_request()?;
    let pool = pool_bytes(&whole, 0)?;
    for shift in 1..4_u32 {
        let mut shifted = vec![0; shift as usize];
        shifted.extend_from_slice(&pool);
        let mut request = whole.clone();
        request.pools = vec![RequestMemoryPool::Memory(super::models::memory(&shifted)?)];
        for argument in request.inputs.iter_mut().chain(&mut request.outputs) {
            argument.location.offset += shift;
        }
        execute(&*prepared, &request)?;
        let found = RequestBuilder::read_output(&request, 0)?;
        demand!(found == sum(), "{shift} bytes further the sum is {found:?}");
    }
    // A part of a file that begins anywhere.
    let own = |error: &dyn std::fmt::Display| Violation(format!("the check's own file: {error}"));
    for offset in [1, 100, 4095, 4100] {
        let file = tempfile::tempfile().map_err(|error| own(&error))?;
        file.write_all_at(&pool, offset).map_err(|error| own(&error))?;
        let size = pool.len() as u64;
        let memory = Memory::from_file(file.into(), Protection::READ_WRITE, offset, size);
        let mut request = whole.clone();
        let memory = memory.map_err(|error| own(&error))?;
        request.pools = vec![RequestMemoryPool::Memory(memory)];
        execute(&*prepared, &request)?;
        let found = RequestBuilder::read_output(&request, 0)?;
        demand!(found == sum(), "in a file from byte {offset} on the sum is {found:?}");
    }
    Ok(Verdict::Kept)
}

fn only_outputs(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let prepared = adder(&**device)?;
    let request = sum_request()?;
    let output = request.outputs[0].location.offset as usize;
    let before = pool_bytes(&request, 0)?;
    execute(&*prepared, &request)?;
    let after = pool_bytes(&request, 0)?;
    demand!(before[..output] == after[..output], "an input is written");
    // Constants, by the model and by its executions.
    let model = pool_addition()?;
    let before = memory_bytes(&model.pools[0])?;
    let constant = prepare(&**device, &model)?;
    let mut ten_more = RequestBuilder::new();
    let ten_more = ten_more.input(&bytes(&[1.0; 4])).output(16).build()?;
    for _ in 0..2 {
        execute(&*constant, &ten_more)?;
        demand!(memory_bytes(&model.pools[0])? == before, "a constant is written");
    }
    // What is over leaves the client's memory alone.
    let mut ended = vec![("an execution", request)];
    if is_newest(&**device) {
        let request = sum_request()?;
        let options = ExecutionOptions::default();
        let launched = prepared.execute_fenced(&request, &[], &options, None)?;
        if let Some(fence) = &launched.sync_fence {
            fence.wait(Some(Duration::from_secs(30)))?;
        }
        ended.push(("a fenced execution", request));
    }
    for (_, request) in &ended {
        if let RequestMemoryPool::Memory(memory) = &request.pools[0] {
            let write = memory.view().and_then(|view| view.write(output as u64, &[7; 16]));
            write.map_err(|error| Violation(format!("the check's own memory: {error}")))?;
        }
    }
    std::thread::sleep(Duration::from_millis(500));
    for (what, request) in &ended {
        let found = pool_bytes(request, 0)?;
        demand!(found[output..][..16] == [7; 16], "{what} writes after its end");
    }
    Ok(Verdict::Kept)
}

fn times(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let prepared = adder(&**device)?;
    let request = sum_request()?;
    let unasked = execute(&*prepared, &request)?.timing;
    demand!(unasked == Timing::NONE, "{unasked:?} was not asked for");
    let options = ExecutionOptions { measure: true, ..ExecutionOptions::default() };
    let timing = prepared.execute(&request, &options)?.timing;
    if let (Some(on_device), Some(in_driver)) = (timing.time_on_device, timing.time_in_driver) {
        demand!(on_device <= in_driver, "{on_device:?} on the device, {in_driver:?} in the driver");
    }
    Ok(Verdict::Kept)
}

const MISSED: &[nnhal_hal::ErrorStatus] = &[MissedDeadlinePersistent, MissedDeadlineTransient];

fn deadlines(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let prepared = adder(&**device)?;
    let request = sum_request()?;
    let soon = Deadline::after(Duration::from_millis(5));
    for deadline in [Deadline::from_nanoseconds_since_epoch(0), soon] {
        let options = ExecutionOptions { deadline: Some(deadline), ..ExecutionOptions::default() };
        match prepared.execute(&request, &options) {
            Ok(_) => {}
            late => demand_refusal("a deadline", late.map_err(|failed| failed.error), MISSED)?,
        }
        execute(&*prepared, &request)?;
    }
    Ok(Verdict::Kept)
}

/// What is both is wrong.
fn wrong_and_late(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let prepared = adder(&**device)?;
    let mut request = sum_request()?;
    request.inputs.pop();
    let deadline = Some(Deadline::from_nanoseconds_since_epoch(1));
    let options = ExecutionOptions { deadline, ..ExecutionOptions::default() };
    let answer = prepared.execute(&request, &options).map_err(|failed| failed.error);
    demand_refusal("an input less, too late", answer, &[InvalidArgument])?;
    if is_newest(&**device) {
        let launched = prepared.execute_fenced(&request, &[], &options, None);
        demand_refusal("an input less behind fences, too late", launched, &[InvalidArgument])?;
    }
    Ok(Verdict::Kept)
}

fn far_deadlines(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if !is_newest(&**device) {
        return Ok(Verdict::NotOffered("deadlines, which are of 1.3".into()));
    }
    let prepared = adder(&**device)?;
    for deadline in [i64::MAX.cast_unsigned(), u64::MAX - 1, u64::MAX] {
        let deadline = Some(Deadline::from_nanoseconds_since_epoch(deadline));
        let options = ExecutionOptions { deadline, ..ExecutionOptions::default() };
        prepared.execute(&sum_request()?, &options)?;
        let far = Some(Duration::from_nanos(u64::MAX));
        let launched = prepared.execute_fenced(&sum_request()?, &[], &options, far)?;
        if let Some(fence) = &launched.sync_fence {
            fence.wait(Some(Duration::from_secs(30)))?;
        }
        launched.info.get()?;
    }
    Ok(Verdict::Kept)
}

fn loops(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if !is_newest(&**device) || !is_supported(&**device, &endless())? {
        return Ok(Verdict::NotOffered("WHILE".into()));
    }
    let prepared = prepare(&**device, &endless())?;
    let mut request = RequestBuilder::new();
    request.input(&[0; 4]).output(4);
    let request = request.build()?;
    let begin = Instant::now();
    let loop_timeout = Some(Duration::from_millis(1));
    let options = ExecutionOptions { loop_timeout, ..ExecutionOptions::default() };
    let result = prepared.execute(&request, &options).map_err(|failed| failed.error);
    demand_refusal("a loop without end", result, MISSED)?;
    demand!(begin.elapsed() < Duration::from_secs(10), "it took {:?}", begin.elapsed());
    Ok(Verdict::Kept)
}

fn at_once(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let prepared = adder(&**device)?;
    std::thread::scope(|scope| {
        let run = |number: u8| {
            let prepared = &prepared;
            move || {
                let value = f32::from(number);
                let mut request = RequestBuilder::new();
                let input = bytes(&[value; 4]);
                request.input(&input).input(&input).output(16);
                let request = request.build()?;
                for _ in 0..50 {
                    execute(&**prepared, &request)?;
                    let found = RequestBuilder::read_output(&request, 0)?;
                    let expected = bytes(&[value + value; 4]);
                    demand!(found == expected, "{value} + {value} is {found:?}");
                }
                Ok(())
            }
        };
        let threads: Vec<_> = (0..8).map(|number| scope.spawn(run(number))).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(Violation("the device panics".into())))
        })
    })?;
    Ok(Verdict::Kept)
}
