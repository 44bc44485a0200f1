//! The [`Path`]s: the ways in which the interfaces execute a request. A vector gives the same by each.

use crate::instance::Instance;
use crate::suites::{Suite, judge, prepare};
use crate::vectors::Case;
use nnhal_hal::{
    Buffer, BufferDescription, BufferRole, CacheFilesNeeded, DataLocation, Device, Execution,
    ExecutionOptions, FenceState, FencedExecution, HalVersion, Memory, OutputShape, PrepareOptions,
    PreparedModel, Request, RequestBuilder, RequestMemoryPool, SyncFence, Timing,
};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// A way to execute a request. By each a vector is executed twice, the second time measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Path {
    /// The caller waits.
    Synchronous,
    /// A callback is notified: [`Selection::asynchronous`](crate::Selection::asynchronous).
    Asynchronous,
    /// Through a burst.
    Burst,
    /// Behind no fence, with a fence that is waited for.
    Fenced,
    /// Two executions of which the second waits for the first, and the first for the client.
    Chained,
    /// With inputs and outputs in buffers that the driver allocates.
    DeviceMemory,
    /// Synchronously, on a model that was saved and loaded.
    Cached,
}

/// What became of a vector by a path that the device may leave out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It passed.
    Passed,
    /// The device does not offer what the path is about, as it may.
    NotOffered(String),
}

/// The longest that a fence may take to signal.
const TIMEOUT: Duration = Duration::from_secs(60);

impl Path {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Synchronous,
        Self::Asynchronous,
        Self::Burst,
        Self::Fenced,
        Self::Chained,
        Self::DeviceMemory,
        Self::Cached,
    ];

    /// The path's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Synchronous => "synchronous",
            Self::Asynchronous => "asynchronous",
            Self::Burst => "burst",
            Self::Fenced => "fenced",
            Self::Chained => "chained",
            Self::DeviceMemory => "device_memory",
            Self::Cached => "cached",
        }
    }

    /// The path with this name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|path| path.name() == name)
    }

    /// Whether a vector is executed by this path in this suite. Fences and buffers need outputs of
    /// known size, and the vector's own labels say which those are.
    pub fn includes(self, suite: Suite, case: &Case) -> bool {
        match (self, suite) {
            (Self::Synchronous, _) => true,
            (_, Suite::Generated) => match self {
                Self::Fenced | Self::Chained => case.is_in_suite("fenced"),
                Self::DeviceMemory => case.is_in_suite("device_memory"),
                _ => true,
            },
            (Self::Asynchronous | Self::Burst | Self::Cached, Suite::DynamicOutputShape) => true,
            _ => false,
        }
    }

    /// The oldest version of the interfaces that has it.
    pub fn needs(self) -> HalVersion {
        match self {
            Self::Synchronous | Self::Asynchronous => HalVersion::V1_0,
            Self::Burst | Self::Cached => HalVersion::V1_2,
            Self::Fenced | Self::Chained | Self::DeviceMemory => HalVersion::V1_3,
        }
    }

    /// Executes a vector twice and compares.
    pub(crate) fn run(
        self,
        device: &dyn Device,
        case: &Case,
        instance: &Instance,
    ) -> Result<Outcome, String> {
        let prepared =
            prepare(device, instance).map_err(|error| format!("preparing failed: {error}"))?;
        let prepared = match self {
            Self::Cached => match saved_and_loaded(device, instance)? {
                Ok(loaded) => loaded,
                Err(why) => return Ok(Outcome::NotOffered(why)),
            },
            _ => prepared,
        };
        let burst = match self {
            Self::Burst => {
                Some(prepared.configure_burst().map_err(|it| format!("no burst: {it}"))?)
            }
            _ => None,
        };
        for (round, measure) in [("first", false), ("second", true)] {
            let said = |what: String| format!("{round} execution: {what}");
            let measure = measure && device.version() >= HalVersion::V1_2;
            let options = ExecutionOptions { measure, ..ExecutionOptions::default() };
            let request = instance.request(None).map_err(|error| error.to_string())?;
            let failed = |what: nnhal_hal::Error| format!("{round} execution failed: {what}");
            let execution = match (self, &burst) {
                (Self::Fenced, _) => {
                    let launched = prepared.execute_fenced(&request, &[], &options, None);
                    ended(&launched.map_err(failed)?, instance).map_err(said)?
                }
                (Self::Chained, _) => {
                    chained(&*prepared, case, instance, &request, &options).map_err(said)?
                }
                (Self::DeviceMemory, _) => {
                    match in_buffers(device, &prepared, case, instance, &request, &options)
                        .map_err(said)?
                    {
                        Ok(execution) => execution,
                        Err(why) => return Ok(Outcome::NotOffered(why)),
                    }
                }
                (_, Some(burst)) => {
                    burst.execute(&request, measure).map_err(|it| failed(it.error))?
                }
                _ => prepared.execute(&request, &options).map_err(|it| failed(it.error))?,
            };
            check_timing(execution.timing, measure).map_err(said)?;
            judge(case, instance, &request, &execution).map_err(said)?;
        }
        Ok(Outcome::Passed)
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Demands times only where they were asked for, and then that they fit (contract: TIME).
fn check_timing(timing: Timing, measure: bool) -> Result<(), String> {
    if !measure && timing != Timing::NONE {
        return Err(format!("{timing:?}, which nobody asked for"));
    }
    let (on_device, in_driver) = timing.to_microseconds();
    let both_are_known = timing.time_on_device.is_some() && timing.time_in_driver.is_some();
    if both_are_known && on_device > in_driver {
        return Err(format!("{on_device} us on the device, but {in_driver} us in the driver"));
    }
    Ok(())
}

/// Waits for the end of a fenced execution. Its outputs are of known size, so it tells no shapes.
fn ended(launched: &FencedExecution, instance: &Instance) -> Result<Execution, String> {
    if let Some(fence) = &launched.sync_fence {
        match fence.wait(Some(TIMEOUT)) {
            Ok(FenceState::Signalled) => {}
            Ok(state) => {
                let info = launched.info.get().err();
                return Err(format!("the fence is {state:?} ({info:?})"));
            }
            Err(error) => return Err(format!("the fence: {error}")),
        }
    }
    let (since_launch, since_fences) =
        launched.info.get().map_err(|error| format!("getExecutionInfo: {error}"))?;
    check_timing(since_fences, since_launch != Timing::NONE)?;
    let shape =
        |dimensions: &Vec<u32>| OutputShape { dimensions: dimensions.clone(), is_sufficient: true };
    let output_shapes = instance.dimensions.iter().map(shape).collect();
    Ok(Execution { output_shapes, timing: since_launch })
}

/// Two executions, one behind the other, which the client lets begin. The first is judged here.
fn chained(
    prepared: &dyn PreparedModel,
    case: &Case,
    instance: &Instance,
    request: &Request,
    options: &ExecutionOptions,
) -> Result<Execution, String> {
    let text = |error: nnhal_hal::Error| error.to_string();
    let (signal, start) = SyncFence::pair().map_err(|error| error.to_string())?;
    let first = instance.request(None).map_err(text)?;
    let one = prepared.execute_fenced(&first, &[start], options, None).map_err(text)?;
    let Some(fence) = one.sync_fence.clone() else {
        return Err("it is said to have ended, but cannot have begun".into());
    };
    let two = prepared.execute_fenced(request, &[fence], options, None).map_err(text)?;
    signal.signal();
    let execution = ended(&two, instance)?;
    judge(case, instance, &first, &ended(&one, instance)?)
        .map_err(|what| format!("the one that was waited for: {what}"))?;
    Ok(execution)
}

/// A model that was saved and loaded; or why the device has none.
fn saved_and_loaded(
    device: &dyn Device,
    instance: &Instance,
) -> Result<Result<Arc<dyn PreparedModel>, String>, String> {
    const TOKEN: nnhal_hal::CacheToken = [0x3C; 32];
    let needed = device.cache_files_needed();
    if needed == CacheFilesNeeded::default() {
        return Ok(Err("it does not cache".into()));
    }
    let own = |error: std::io::Error| format!("a file of the suite: {error}");
    let files =
        |count: u32| (0..count).map(|_| tempfile::tempfile()).collect::<Result<Vec<_>, _>>();
    let (model, data) = (files(needed.model).map_err(own)?, files(needed.data).map_err(own)?);
    let open = |files: &[std::fs::File]| {
        let again = |file: &std::fs::File| file.try_clone().map(OwnedFd::from);
        files.iter().map(again).collect::<Result<Vec<_>, _>>().map_err(own)
    };
    let options = || -> Result<_, String> {
        let (model_cache, data_cache) = (open(&model)?, open(&data)?);
        Ok(PrepareOptions { model_cache, data_cache, token: TOKEN, ..PrepareOptions::default() })
    };
    device
        .prepare_model(&instance.model, HalVersion::LATEST, options()?)
        .map_err(|error| format!("saving failed: {error}"))?;
    let is_empty = |file: &std::fs::File| file.metadata().is_ok_and(|it| it.len() == 0);
    // Nothing need be saved (contract: PREP-8).
    if model.iter().chain(&data).all(is_empty) {
        return Ok(Err("it did not save the model".into()));
    }
    let loaded = device.prepare_model_from_cache(options()?);
    loaded.map(Ok).map_err(|error| format!("what was saved does not load: {error}"))
}

/// Executes with all arguments in buffers of the driver's, and copies the outputs to where the
/// request has them; or says why there are no buffers.
fn in_buffers(
    device: &dyn Device,
    prepared: &Arc<dyn PreparedModel>,
    case: &Case,
    instance: &Instance,
    request: &Request,
    options: &ExecutionOptions,
) -> Result<Result<Execution, String>, String> {
    let text = |error: nnhal_hal::Error| error.to_string();
    let memory = |result: Result<Memory, nnhal_hal::memory::MemoryError>| {
        result.map_err(|error| format!("memory of the suite: {error}"))
    };
    let dimensions = |operand: u32| case.main.operands[operand as usize].dimensions.clone();
    let allocate = |is_input: bool, index: usize, operand: u32| {
        let io_index = u32::try_from(index).unwrap_or(u32::MAX);
        let role = vec![BufferRole { model_index: 0, io_index, frequency: 1.0 }];
        let (input_roles, output_roles) =
            if is_input { (role, Vec::new()) } else { (Vec::new(), role) };
        device.allocate(&BufferDescription {
            dimensions: dimensions(operand),
            prepared_models: vec![Arc::clone(prepared)],
            input_roles,
            output_roles,
        })
    };
    let refused = |error: nnhal_hal::Error| match error.status() {
        nnhal_hal::ErrorStatus::GeneralFailure => Ok(Err(format!("no buffers: {error}"))),
        _ => Err(format!("allocate: {error}")),
    };
    let mut wish = Request { pools: Vec::new(), ..request.clone() };
    let mut buffers: Vec<Arc<dyn Buffer>> = Vec::new();
    let mut place = |buffer: Arc<dyn Buffer>| {
        let pool_index = u32::try_from(buffers.len()).unwrap_or(u32::MAX);
        wish.pools.push(RequestMemoryPool::Token(buffer.token()));
        buffers.push(buffer);
        DataLocation { pool_index, offset: 0, length: 0 }
    };
    for (index, (bytes, operand)) in instance.inputs().zip(&case.main.inputs).enumerate() {
        let Some(bytes) = bytes else { continue };
        let buffer = match allocate(true, index, *operand) {
            Ok(buffer) => buffer,
            Err(error) => return refused(error),
        };
        let source = memory(Memory::from_bytes(bytes))?;
        buffer.copy_from(&source, &dimensions(*operand)).map_err(text)?;
        wish.inputs[index].location = place(buffer);
    }
    let mut outputs = Vec::new();
    for (index, operand) in case.main.outputs.iter().enumerate() {
        let buffer = match allocate(false, index, *operand) {
            Ok(buffer) => buffer,
            Err(error) => return refused(error),
        };
        outputs.push(Arc::clone(&buffer));
        wish.outputs[index].location = place(buffer);
    }
    let execution =
        prepared.execute(&wish, options).map_err(|failed| format!("failed: {}", failed.error))?;
    for (index, (buffer, expected)) in outputs.iter().zip(&instance.expected).enumerate() {
        let copy = memory(Memory::allocate(expected.len() as u64))?;
        buffer.copy_to(&copy).map_err(|error| format!("copying output {index}: {error}"))?;
        let moved = copy.view().and_then(|view| view.read_to_vec(0, view.size()));
        let bytes = moved.map_err(|error| error.to_string())?;
        write_output(request, index, &bytes)?;
    }
    Ok(Ok(execution))
}

/// Puts bytes where a request has an output.
fn write_output(request: &Request, index: usize, bytes: &[u8]) -> Result<(), String> {
    let location = request.outputs[index].location;
    let RequestMemoryPool::Memory(memory) = &request.pools[location.pool_index as usize] else {
        return Err("an output of the suite is no memory".into());
    };
    let written = memory.view().and_then(|view| view.write(u64::from(location.offset), bytes));
    written.map_err(|error| error.to_string())?;
    debug_assert!(RequestBuilder::read_output(request, index).is_ok_and(|it| it == bytes));
    Ok(())
}
