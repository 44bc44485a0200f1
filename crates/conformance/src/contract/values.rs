//! What an execution makes of values, and what it leaves behind (contract: sections 5, 9, 10, 16 and
//! 17).

use super::models::{addition, bytes, execute, is_supported, pool_bytes, prepare, sum_request};
use super::{Check, Run, Verdict, Violation, demand, demand_refusal};
use nnhal_hal::ErrorStatus::{GeneralFailure, InvalidArgument};
use nnhal_hal::memory::Protection;
use nnhal_hal::{
    CacheFilesNeeded, Deadline, Device, ExecutionOptions, HalVersion, Memory, Model, OperandSpec,
    OperationType, PrepareOptions, RequestBuilder, RequestMemoryPool, SubgraphBuilder,
};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const CHECKS: &[Check] = &[
    Check {
        ids: &["PREP-13"],
        name: "floats are as exact as the model demands",
        run: Run::Device(precision),
    },
    Check {
        ids: &["EXEC-7"],
        name: "a value that is not legal fails the execution, without shapes",
        run: Run::Device(illegal_values),
    },
    Check {
        ids: &["SHAPE-7"],
        name: "a result without elements is a result",
        run: Run::Device(no_elements),
    },
    Check {
        ids: &["REQ-8"],
        name: "outputs may stay unknown from 1.2 on, and not behind fences",
        run: Run::Device(unknown_outputs),
    },
    Check {
        ids: &["REQ-11"],
        name: "an output that overlaps an input is refused or has any values, and harms nothing else",
        run: Run::Device(overlap),
    },
    Check {
        ids: &["QOS-2"],
        name: "deadlines are of the steady clock",
        run: Run::Device(steady_clock),
    },
    Check {
        ids: &["SEC-6"],
        name: "descriptors are closed in the end, and in other programs",
        run: Run::Device(descriptors),
    },
];

fn ours(graph: SubgraphBuilder) -> Model {
    graph.into_model().unwrap_or_else(|error| unreachable!("a model of ours: {error}"))
}

fn precision(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    // Float32 has the sum, float16 only about so.
    let small = f32::powi(2.0, -20);
    for version in HalVersion::ALL.iter().filter(|version| **version <= device.version()) {
        for relaxed in [false, true] {
            if relaxed && *version < HalVersion::V1_1 {
                continue;
            }
            let mut model = addition([2, 2]);
            model.relax_computation_float32_to_float16 = relaxed;
            let prepared = device.prepare_model(&model, *version, PrepareOptions::default())?;
            let mut request = RequestBuilder::new();
            request.input(&bytes(&[1.0, 2.0, 0.5, -1.0])).input(&bytes(&[small; 4])).output(16);
            let request = request.build()?;
            execute(&*prepared, &request)?;
            let found = RequestBuilder::read_output(&request, 0)?;
            let (found, _) = found.as_chunks::<4>();
            for (found, term) in found.iter().zip([1.0, 2.0, 0.5, -1.0_f32]) {
                let (found, exact) = (f32::from_le_bytes(*found), term + small);
                let bound = if relaxed { f32::powi(2.0, -10) } else { f32::powi(2.0, -23) };
                let error = (found - exact).abs();
                let right = error <= bound * exact.abs();
                demand!(right, "{term} + 2^-20 is {found}, relaxed: {relaxed}, by {version}");
            }
        }
    }
    Ok(Verdict::Kept)
}

/// A row of a table, by its number.
fn lookup() -> Model {
    let mut graph = SubgraphBuilder::new();
    let row = graph.input("row", OperandSpec::tensor_int32([1]));
    let table = graph.input("table", OperandSpec::tensor_float32([2, 2]));
    let spec = OperandSpec::tensor_float32([1, 2]);
    let found = graph.operation(OperationType::EmbeddingLookup, [row, table], spec);
    graph.output(found);
    ours(graph)
}

fn illegal_values(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if !is_supported(&**device, &lookup())? {
        return Ok(Verdict::NotOffered("EMBEDDING_LOOKUP".into()));
    }
    let prepared = prepare(&**device, &lookup())?;
    let burst = match device.version() >= HalVersion::V1_2 {
        true => Some(prepared.configure_burst()?),
        false => None,
    };
    for (row, legal) in [(1, true), (2, false), (-1, false), (i32::MIN, false), (0, true)] {
        let mut request = RequestBuilder::new();
        request.input(&i32::to_le_bytes(row)).input(&bytes(&[1.0, 2.0, 3.0, 4.0])).output(8);
        let request = request.build()?;
        let mut results = vec![("executed", execute(&*prepared, &request))];
        if let Some(burst) = &burst {
            results.push(("by a burst", burst.execute(&request, false)));
        }
        for (way, result) in results {
            demand!(result.is_ok() == legal, "row {row} of 2, {way}: {result:?}");
            if let Err(failed) = result {
                let shapes = failed.output_shapes;
                demand!(shapes.is_empty(), "row {row} of 2, {way}, has the shapes {shapes:?}");
            }
        }
    }
    Ok(Verdict::Kept)
}

/// A part of [2, 2] floats, whose place and size are inputs.
fn part() -> Model {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([2, 2]));
    let begin = graph.input("begin", OperandSpec::tensor_int32([2]));
    let size = graph.input("size", OperandSpec::tensor_int32([2]));
    let spec = OperandSpec::tensor_float32([0, 0]);
    let y = graph.operation(OperationType::Slice, [x, begin, size], spec);
    graph.output(y);
    ours(graph)
}

fn no_elements(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if device.version() < HalVersion::V1_2 || !is_supported(&**device, &part())? {
        return Ok(Verdict::NotOffered("SLICE, which is of 1.2".into()));
    }
    let prepared = prepare(&**device, &part())?;
    let burst = prepared.configure_burst()?;
    for size in [[0, 2], [2, 0], [0, 0], [2, 2]] {
        let numbers = |pair: [u32; 2]| pair.map(u32::to_le_bytes).concat();
        let mut request = RequestBuilder::new();
        request.input(&bytes(&[1.0; 4])).input(&numbers([0, 0])).input(&numbers(size));
        request.output(16);
        let request = request.build()?;
        for (way, result) in [
            ("executed", execute(&*prepared, &request)),
            ("by a burst", burst.execute(&request, false)),
        ] {
            let shapes = match result {
                Err(failed) if size == [0, 2] && failed.error.status() == GeneralFailure => {
                    return Ok(Verdict::NotOffered("unknown output shapes".into()));
                }
                result => result?.output_shapes,
            };
            let right = shapes.iter().map(|it| (&it.dimensions[..], it.is_sufficient));
            demand!(right.eq([(&size[..], true)]), "{size:?}, {way}, has the shapes {shapes:?}");
        }
    }
    Ok(Verdict::Kept)
}

fn unknown_outputs(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let mut open = sum_request()?;
    for input in &mut open.inputs {
        input.dimensions = vec![2, 2];
    }
    let mut known = open.clone();
    known.outputs[0].dimensions = vec![2, 2];
    for version in HalVersion::ALL.iter().filter(|version| **version <= device.version()) {
        let model = addition([0, 2]);
        let prepared = device.prepare_model(&model, *version, PrepareOptions::default())?;
        execute(&*prepared, &known)?;
        let what = format!("an unknown output of a model of {version}");
        match execute(&*prepared, &open).map_err(|failed| failed.error) {
            Ok(_) if *version >= HalVersion::V1_2 => {}
            // Whoever does not know such outputs ends so (contract: EXEC-8).
            Err(error) if *version >= HalVersion::V1_2 => {
                demand_refusal::<()>(&what, Err(error), &[GeneralFailure])?;
            }
            answer => demand_refusal(&what, answer, &[InvalidArgument])?,
        }
        if device.version() >= HalVersion::V1_3 {
            let options = ExecutionOptions::default();
            let launched = prepared.execute_fenced(&open, &[], &options, None);
            demand_refusal(&format!("{what} behind fences"), launched, &[InvalidArgument])?;
            prepared.execute_fenced(&known, &[], &options, None)?;
        }
    }
    Ok(Verdict::Kept)
}

fn overlap(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let prepared = prepare(&**device, &addition([2, 2]))?;
    for (input, shift) in [(0, 0), (0, 4), (1, 0), (1, 8)] {
        let mut request = sum_request()?;
        let place = request.inputs[input].location.offset + shift;
        request.outputs[0].location.offset = place;
        let before = pool_bytes(&request, 0)?;
        let answer = execute(&*prepared, &request).map_err(|failed| failed.error);
        let what = format!("an output {shift} bytes behind the beginning of input {input}");
        if answer.is_err() {
            demand_refusal(&what, answer, &[InvalidArgument])?;
        }
        let (place, after) = (place as usize, pool_bytes(&request, 0)?);
        let kept = before[..place] == after[..place] && before[place + 16..] == after[place + 16..];
        demand!(kept, "{what}: something else is written");
        let good = sum_request()?;
        execute(&*prepared, &good)?;
        let found = RequestBuilder::read_output(&good, 0)?;
        demand!(found == super::models::sum(), "after {what} the sum is {found:?}");
    }
    Ok(Verdict::Kept)
}

fn steady_clock(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if device.version() < HalVersion::V1_3 {
        return Ok(Verdict::NotOffered("deadlines, which are of 1.3".into()));
    }
    // The steady clock begins when the machine does: by any other clock this is long past.
    let soon = || Some(Deadline::after(Duration::from_secs(60)));
    let options = PrepareOptions { deadline: soon(), ..PrepareOptions::default() };
    let prepared = device.prepare_model(&addition([2, 2]), device.version(), options)?;
    let options = ExecutionOptions { deadline: soon(), ..ExecutionOptions::default() };
    prepared.execute(&sum_request()?, &options)?;
    let launched = prepared.execute_fenced(&sum_request()?, &[], &options, None)?;
    if let Some(fence) = &launched.sync_fence {
        fence.wait(Some(Duration::from_secs(30)))?;
    }
    launched.info.get()?;
    Ok(Verdict::Kept)
}

fn own(error: impl std::fmt::Display) -> Violation {
    Violation(format!("the check's own file: {error}"))
}

/// How many descriptors of this process are of a file, all of which other programs must not get.
fn open_descriptors(file: &File) -> Result<usize, Violation> {
    const CLOSE_ON_EXEC: u32 = 0o2_000_000;
    let wanted = file.metadata().map_err(own)?;
    let mut count = 0;
    for entry in std::fs::read_dir("/proc/self/fd").map_err(own)? {
        let name = entry.map_err(own)?.file_name();
        // Others are opened and closed meanwhile.
        let found = std::fs::metadata(std::path::Path::new("/proc/self/fd").join(&name));
        let is_it = found.is_ok_and(|it| (it.dev(), it.ino()) == (wanted.dev(), wanted.ino()));
        if !is_it {
            continue;
        }
        count += 1;
        let info = std::fs::read_to_string(std::path::Path::new("/proc/self/fdinfo").join(&name));
        let flags = info.unwrap_or_default();
        let flags = flags.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        let closes = flags.is_none_or(|flags| flags & CLOSE_ON_EXEC != 0);
        demand!(closes, "a descriptor stays open in other programs");
    }
    Ok(count)
}

/// Demands that no descriptor of a file is left but the check's own.
fn demand_closed(what: &str, file: &File) -> Result<(), Violation> {
    let begin = Instant::now();
    loop {
        let count = open_descriptors(file)?;
        if count <= 1 {
            return Ok(());
        }
        // Threads of the driver's may take a moment to end.
        let late = begin.elapsed() > Duration::from_secs(5);
        demand!(!late, "{} descriptors of {what} are left", count - 1);
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn descriptors(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let file = tempfile::tempfile().map_err(own)?;
    file.set_len(4096).map_err(own)?;
    let memory = || {
        Memory::from_file(file.try_clone().map_err(own)?.into(), Protection::READ_WRITE, 0, 4096)
            .map_err(own)
    };
    let newest = device.version();
    {
        // As constants, and as arguments, with success and without.
        let mut model = super::models::pool_addition()?;
        model.pools = vec![memory()?];
        let prepared = prepare(&**device, &model)?;
        let mut request = RequestBuilder::new();
        request.input(&bytes(&[1.0; 4])).output(16);
        let mut request = request.build()?;
        request.pools = vec![RequestMemoryPool::Memory(memory()?)];
        execute(&*prepared, &request)?;
        let mut wrong = request.clone();
        wrong.inputs.clear();
        drop(execute(&*prepared, &wrong));
        if newest >= HalVersion::V1_2 {
            let burst = prepared.configure_burst()?;
            burst.execute(&request, false)?;
            drop(burst.execute(&wrong, false));
            open_descriptors(&file)?;
        }
        if newest >= HalVersion::V1_3 {
            let options = ExecutionOptions::default();
            let launched = prepared.execute_fenced(&request, &[], &options, None)?;
            if let Some(fence) = &launched.sync_fence {
                fence.wait(Some(Duration::from_secs(30)))?;
            }
            drop(prepared.execute_fenced(&wrong, &[], &options, None));
        }
        open_descriptors(&file)?;
        model.main.operations[0].outputs.clear();
        let refused = device.prepare_model(&model, newest, PrepareOptions::default());
        demand_refusal("an invalid model", refused, &[InvalidArgument])?;
    }
    demand_closed("memory", &file)?;
    let needed = device.cache_files_needed();
    if newest < HalVersion::V1_2 || needed == CacheFilesNeeded::default() {
        return Ok(Verdict::Kept);
    }
    let count = (needed.model + needed.data) as usize;
    let files =
        (0..count).map(|_| tempfile::tempfile().map_err(own)).collect::<Result<Vec<_>, _>>()?;
    let options = |token: u8, count: usize| {
        let again = |file: &File| file.try_clone().map(OwnedFd::from).map_err(own);
        let mut model_cache =
            files[..count].iter().map(again).collect::<Result<Vec<_>, Violation>>()?;
        let data_cache = model_cache.split_off((needed.model as usize).min(count));
        let token = [token; 32];
        Ok::<_, Violation>(PrepareOptions {
            model_cache,
            data_cache,
            token,
            ..PrepareOptions::default()
        })
    };
    device.prepare_model(&addition([2, 2]), newest, options(1, count)?)?;
    drop(device.prepare_model_from_cache(options(1, count)?));
    let strange = device.prepare_model_from_cache(options(2, count)?);
    let refused = [GeneralFailure, InvalidArgument];
    demand_refusal("another token", strange, &refused)?;
    drop(device.prepare_model_from_cache(options(1, count - 1)?));
    files.iter().try_for_each(|file| demand_closed("a cache", file))?;
    Ok(Verdict::Kept)
}
