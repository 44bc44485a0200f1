//! Executions: arguments, options, and the four ways to compute.

use crate::abi::ANeuralNetworksOperandType;
use crate::border::export;
use crate::burst::ANeuralNetworksBurst;
use crate::compilation::{ANeuralNetworksCompilation, attribute};
use crate::diagnostics;
use crate::event::ANeuralNetworksEvent;
use crate::handle;
use crate::last_error;
use crate::memory::ANeuralNetworksMemory;
use crate::model::description;
use crate::outcome::{Outcome, bad_data, bad_state, index, null};
use crate::pointer::{In, Lent, Out, Room};
use nnhal_hal::time::{LOOP_TIMEOUT_DEFAULT, LOOP_TIMEOUT_MAXIMUM};
use nnhal_runtime::{
    DurationCode, Error, Event, Execution, OperandDescription, OutputDimensions, ReadBytes,
    ResultCode, WriteBytes,
};
use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::time::Duration;

nnhal_c_boundary::opaque! {
    /// An execution.
    ANeuralNetworksExecution: Execution, 4;
}

/// Gives C the event of an execution that was started.
fn give_event(event: Out<*mut ANeuralNetworksEvent>, started: Event) -> Outcome {
    event.write(handle::give(Arc::new(started))?);
    Ok(())
}

/// What stands for a time that was not measured.
const NOT_MEASURED: u64 = u64::MAX;

export! {
    /// For how long a WHILE may run unless something else is said.
    fn ANeuralNetworks_getDefaultLoopTimeout() -> u64, 0; {
        nanoseconds(LOOP_TIMEOUT_DEFAULT)
    }

    /// For how long a WHILE may run at most.
    fn ANeuralNetworks_getMaximumLoopTimeout() -> u64, 0; {
        nanoseconds(LOOP_TIMEOUT_MAXIMUM)
    }

    /// An execution without arguments.
    fn ANeuralNetworksExecution_create(
        compilation: *mut ANeuralNetworksCompilation,
        execution: Out<*mut ANeuralNetworksExecution>,
    ) {
        execution.write(std::ptr::null_mut());
        let compilation = handle::get(compilation, "compilation")?;
        execution.check("execution")?;
        let observer = Arc::new(diagnostics::Executions { caching: compilation.is_cached() });
        let made = Execution::observed(&compilation.finished()?, observer);
        execution.write(handle::give(Arc::new(made))?);
        Ok(())
    }

    /// Frees it, unless it is computing.
    fn ANeuralNetworksExecution_free(execution: *mut ANeuralNetworksExecution) -> (), (); {
        let function = "ANeuralNetworksExecution_free";
        match handle::get(execution, "execution") {
            Ok(inside) if inside.is_computing() => {
                last_error::keep(function, &bad_state("the execution is computing"));
            }
            _ => handle::free(execution, function, "execution"),
        }
    }

    /// Sets an input.
    fn ANeuralNetworksExecution_setInput(
        execution: *mut ANeuralNetworksExecution,
        input: i32,
        type_: In<ANeuralNetworksOperandType>,
        buffer: In<c_void>,
        length: usize,
    ) {
        let execution = handle::get(execution, "execution")?;
        if buffer.is_null() && length != 0 {
            return Err(null("buffer"));
        }
        let bytes: Option<Arc<dyn ReadBytes>> = if buffer.is_null() {
            None
        } else {
            Some(Arc::new(Lent::new(buffer, length, "buffer")?))
        };
        execution.set_input(index(input), description_if_any(type_)?.as_ref(), bytes)
    }

    /// Sets an input to a part of a memory.
    fn ANeuralNetworksExecution_setInputFromMemory(
        execution: *mut ANeuralNetworksExecution,
        input: i32,
        type_: In<ANeuralNetworksOperandType>,
        memory: *const ANeuralNetworksMemory,
        offset: usize,
        length: usize,
    ) {
        let execution = handle::get(execution, "execution")?;
        let memory = handle::get(memory, "memory")?;
        let type_ = description_if_any(type_)?;
        execution.set_input_from_memory(index(input), type_.as_ref(), &memory, offset, length)
    }

    /// Sets the place for an output.
    fn ANeuralNetworksExecution_setOutput(
        execution: *mut ANeuralNetworksExecution,
        output: i32,
        type_: In<ANeuralNetworksOperandType>,
        buffer: Out<c_void>,
        length: usize,
    ) {
        let execution = handle::get(execution, "execution")?;
        if buffer.is_null() && length != 0 {
            return Err(null("buffer"));
        }
        let room: Option<Arc<dyn WriteBytes>> = if buffer.is_null() {
            None
        } else {
            Some(Arc::new(Room::new(buffer, length, "buffer")?))
        };
        execution.set_output(index(output), description_if_any(type_)?.as_ref(), room)
    }

    /// Sets the place for an output within a memory.
    fn ANeuralNetworksExecution_setOutputFromMemory(
        execution: *mut ANeuralNetworksExecution,
        output: i32,
        type_: In<ANeuralNetworksOperandType>,
        memory: *const ANeuralNetworksMemory,
        offset: usize,
        length: usize,
    ) {
        let execution = handle::get(execution, "execution")?;
        let memory = handle::get(memory, "memory")?;
        let type_ = description_if_any(type_)?;
        execution.set_output_from_memory(index(output), type_.as_ref(), &memory, offset, length)
    }

    /// Whether buffers may be longer than their values.
    fn ANeuralNetworksExecution_enableInputAndOutputPadding(
        execution: *mut ANeuralNetworksExecution,
        enable: u8,
    ) {
        handle::get(execution, "execution")?.enable_input_and_output_padding(enable != 0)
    }

    /// Whether it may compute more than once.
    fn ANeuralNetworksExecution_setReusable(
        execution: *mut ANeuralNetworksExecution,
        reusable: u8,
    ) {
        handle::get(execution, "execution")?.set_reusable(reusable != 0)
    }

    /// Whether to measure times.
    fn ANeuralNetworksExecution_setMeasureTiming(
        execution: *mut ANeuralNetworksExecution,
        measure: u8,
    ) {
        handle::get(execution, "execution")?.set_measure_timing(measure != 0)
    }

    /// How long a computation may take.
    fn ANeuralNetworksExecution_setTimeout(
        execution: *mut ANeuralNetworksExecution,
        nanoseconds: u64,
    ) {
        handle::get(execution, "execution")?.set_timeout(nanoseconds)
    }

    /// How long each WHILE may take.
    fn ANeuralNetworksExecution_setLoopTimeout(
        execution: *mut ANeuralNetworksExecution,
        nanoseconds: u64,
    ) {
        handle::get(execution, "execution")?.set_loop_timeout(nanoseconds)
    }

    /// An attribute of an extension.
    fn ANeuralNetworksExecution_addExtensionAttribute(
        execution: *mut ANeuralNetworksExecution,
        extension: In<c_char>,
        number: u16,
        data: In<c_void>,
        length: usize,
    ) {
        let execution = handle::get(execution, "execution")?;
        let (name, data) = attribute(extension, data, length)?;
        execution.add_extension_attribute(&name, number, &data)
    }

    /// Computes.
    fn ANeuralNetworksExecution_compute(execution: *mut ANeuralNetworksExecution) {
        handle::get(execution, "execution")?.compute()
    }

    /// Computes through a burst.
    fn ANeuralNetworksExecution_burstCompute(
        execution: *mut ANeuralNetworksExecution,
        burst: *mut ANeuralNetworksBurst,
    ) {
        let execution = handle::get(execution, "execution")?;
        let burst = handle::get(burst, "burst")?;
        execution.burst_compute(&burst)
    }

    /// Begins to compute.
    fn ANeuralNetworksExecution_startCompute(
        execution: *mut ANeuralNetworksExecution,
        event: Out<*mut ANeuralNetworksEvent>,
    ) {
        event.write(std::ptr::null_mut());
        event.check("event")?;
        let execution = handle::get(execution, "execution")?;
        give_event(event, execution.start_compute()?)
    }

    /// Begins to compute once all dependencies are met.
    fn ANeuralNetworksExecution_startComputeWithDependencies(
        execution: *mut ANeuralNetworksExecution,
        dependencies: In<*const ANeuralNetworksEvent>,
        count: u32,
        nanoseconds: u64,
        event: Out<*mut ANeuralNetworksEvent>,
    ) {
        event.write(std::ptr::null_mut());
        event.check("event")?;
        let execution = handle::get(execution, "execution")?;
        let events = dependencies.copy(count as usize, "dependencies")?;
        let dependency = |(index, event): (usize, &*const ANeuralNetworksEvent)| {
            let event = handle::get(*event, &format!("dependencies[{index}]"))?;
            Ok(Event::clone(&event))
        };
        let events = events.iter().enumerate().map(dependency).collect::<Outcome<Vec<_>>>()?;
        give_event(event, execution.start_compute_with_dependencies(&events, nanoseconds)?)
    }

    /// An output's rank, after the computation.
    fn ANeuralNetworksExecution_getOutputOperandRank(
        execution: *mut ANeuralNetworksExecution,
        output: i32,
        rank: Out<u32>,
    ) {
        let execution = handle::get(execution, "execution")?;
        rank.check("rank")?;
        let found = execution.output_dimensions(index(output))?;
        rank.write(u32::try_from(found.dimensions.len()).unwrap_or(u32::MAX));
        sufficient(output, &found)
    }

    /// An output's dimensions, after the computation.
    fn ANeuralNetworksExecution_getOutputOperandDimensions(
        execution: *mut ANeuralNetworksExecution,
        output: i32,
        dimensions: Out<u32>,
    ) {
        let execution = handle::get(execution, "execution")?;
        dimensions.check("dimensions")?;
        let found = execution.output_dimensions(index(output))?;
        if found.dimensions.is_empty() {
            return Err(bad_data(format!("output {output} is a scalar, which has no dimensions")));
        }
        dimensions.write_all(&found.dimensions);
        sufficient(output, &found)
    }

    /// A time, after the computation.
    fn ANeuralNetworksExecution_getDuration(
        execution: *const ANeuralNetworksExecution,
        code: i32,
        duration: Out<u64>,
    ) {
        let execution = handle::get(execution, "execution")?;
        duration.check("duration")?;
        let code = DurationCode::from_code(code)?;
        duration.write(NOT_MEASURED);
        if let Some(found) = execution.duration(code)? {
            duration.write(nanoseconds(found).min(NOT_MEASURED - 1));
        }
        Ok(())
    }
}

fn description_if_any(
    type_: In<ANeuralNetworksOperandType>,
) -> Outcome<Option<OperandDescription>> {
    type_.read_if_any().map(description).transpose()
}

fn sufficient(output: i32, found: &OutputDimensions) -> Outcome {
    if found.is_sufficient {
        return Ok(());
    }
    let reason = format!("output {output} needs room for dimensions {:?}", found.dimensions);
    Err(Error::new(ResultCode::OutputInsufficientSize, reason))
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
