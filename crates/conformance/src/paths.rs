//! The [`Path`]s: the ways in which the interfaces execute a request. A vector gives the same by each.

use crate::compare;
use crate::instance::Instance;
use crate::suite::Suite;
use crate::vectors::Case;
use nnhal_hal::{
    Buffer, BufferDescription, BufferRole, Burst, CacheFilesNeeded, DataLocation, Device,
    ErrorStatus, Execution, ExecutionError, ExecutionOptions, FenceState, FencedExecution,
    HalVersion, Memory, OutputShape, PrepareOptions, PreparedModel, Request, RequestBuilder,
    RequestMemoryPool, SyncFence, Timing,
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
    /// The device says that it does not support operations of the model, and refuses to prepare it; with
    /// its reason.
    Declined(String),
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
    /// known size that is not zero, and the vector's own labels say which those are; of a vector that
    /// must fail its outputs do. Two suites execute nothing, so that there is one path for them.
    pub fn includes(self, suite: Suite, case: &Case) -> bool {
        let has_values = |operands: &[u32]| {
            let has_value = |index: &u32| {
                let operand = case.main.operands.get(*index as usize);
                operand.is_some_and(|it| !it.dimensions.contains(&0) && it.data.is_some())
            };
            operands.iter().all(has_value)
        };
        match (self, suite) {
            (Self::Synchronous, _) => true,
            (_, Suite::Compliance | Suite::Mutation) => false,
            (Self::Fenced | Self::Chained, Suite::Validation | Suite::Timeout) => {
                has_values(&case.main.outputs)
            }
            (Self::DeviceMemory, Suite::Validation | Suite::Timeout) => {
                has_values(&case.main.outputs) && has_values(&case.main.inputs)
            }
            (Self::Fenced | Self::Chained, _) => case.is_in_suite("fenced"),
            (Self::DeviceMemory, _) => case.is_in_suite("device_memory"),
            (Self::Asynchronous | Self::Burst | Self::Cached, _) => true,
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

    /// Prepares a vector's model as this path wants it.
    pub(crate) fn prepare(
        self,
        device: &dyn Device,
        instance: &Instance,
    ) -> Result<Result<Arc<dyn PreparedModel>, NotOffered>, String> {
        match self {
            Self::Cached => saved_and_loaded(device, instance),
            _ => instance
                .prepare(device)
                .map(Ok)
                .map_err(|error| format!("preparing failed: {error}")),
        }
    }

    /// Makes ready to execute on a prepared model.
    pub(crate) fn open<'a>(
        self,
        device: &'a dyn Device,
        case: &'a Case,
        instance: &'a Instance,
        prepared: Arc<dyn PreparedModel>,
    ) -> Result<Opened<'a>, String> {
        let burst = match self {
            Self::Burst => {
                Some(prepared.configure_burst().map_err(|it| format!("no burst: {it}"))?)
            }
            _ => None,
        };
        Ok(Opened { path: self, device, case, instance, prepared, burst })
    }
}

/// Why a device does not offer what a path is about.
pub(crate) type NotOffered = String;

/// What became of an execution.
pub(crate) type Executed = Result<Execution, ExecutionError>;

/// A prepared model that is executed by a path.
pub(crate) struct Opened<'a> {
    path: Path,
    device: &'a dyn Device,
    case: &'a Case,
    instance: &'a Instance,
    prepared: Arc<dyn PreparedModel>,
    burst: Option<Box<dyn Burst>>,
}

/// What an execution is to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// What the vector says.
    Result,
    /// What becomes of an output that its buffer has no room for, by its index. A buffer of the
    /// driver's gets other dimensions instead (contract: DBUF-7).
    Shortage(usize),
}

impl Opened<'_> {
    /// The options of the first execution, which is not measured, and of the second, which is if the
    /// device's version has it.
    pub(crate) fn rounds(&self) -> [(&'static str, ExecutionOptions); 2] {
        let measure = self.device.version() >= HalVersion::V1_2;
        let options = |measure| ExecutionOptions { measure, ..ExecutionOptions::default() };
        [("first", options(false)), ("second", options(measure))]
    }

    /// Executes a request. What the path itself demands of the device is looked at here.
    pub(crate) fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        aim: Aim,
    ) -> Result<Result<Executed, NotOffered>, String> {
        let executed = match (self.path, &self.burst) {
            (Path::Fenced | Path::Chained, _) => self.behind_fences(request, options)?,
            (Path::DeviceMemory, _) => match self.in_buffers(request, options, aim)? {
                Ok(executed) => executed,
                Err(why) => return Ok(Err(why)),
            },
            (_, Some(burst)) => burst.execute(request, options.measure),
            _ => self.prepared.execute(request, options),
        };
        if let Ok(execution) = &executed {
            check_timing(execution.timing, options.measure)?;
        }
        Ok(Ok(executed))
    }

    /// Executes behind fences, with outputs that are known: those which the model does not know, the
    /// request tells. Without them it must be refused (contract: FENCE-2, REQ-8).
    fn behind_fences(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Result<Executed, String> {
        let main = &self.instance.model.main;
        let mut known = request.clone();
        let mut was_unknown = false;
        for (index, argument) in known.outputs.iter_mut().enumerate() {
            let operand = &main.operands[main.outputs[index] as usize];
            let is_tensor = operand.operand_type.is_tensor() != Some(false);
            if is_tensor && (operand.dimensions.is_empty() || operand.dimensions.contains(&0)) {
                argument.dimensions.clone_from(&self.instance.dimensions[index]);
                was_unknown = true;
            }
        }
        if was_unknown {
            match self.prepared.execute_fenced(request, &[], options, None) {
                Ok(_) => return Err("outputs of unknown shape are accepted behind fences".into()),
                Err(error) if error.status() == ErrorStatus::InvalidArgument => {}
                Err(error) => return Err(format!("outputs of unknown shape: {error}")),
            }
        }
        if self.path == Path::Chained {
            return self.chained(&known, options);
        }
        match self.prepared.execute_fenced(&known, &[], options, None) {
            Ok(launched) => ended(&launched, self.instance),
            Err(error) => Ok(Err(error.into())),
        }
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
        return Err(format!("{timing:?}, which was not asked for"));
    }
    let (on_device, in_driver) = timing.to_microseconds();
    let both_are_known = timing.time_on_device.is_some() && timing.time_in_driver.is_some();
    if both_are_known && on_device > in_driver {
        return Err(format!("{on_device} us on the device, but {in_driver} us in the driver"));
    }
    Ok(())
}

/// Waits for the end of a fenced execution. Its outputs are of known size, so it tells no shapes.
fn ended(launched: &FencedExecution, instance: &Instance) -> Result<Executed, String> {
    let state = match &launched.sync_fence {
        Some(fence) => fence.wait(Some(TIMEOUT)).map_err(|error| format!("the fence: {error}"))?,
        None => FenceState::Signalled,
    };
    let (since_launch, since_fences) = match (state, launched.info.get()) {
        (FenceState::Signalled, Ok(times)) => times,
        (FenceState::Signalled | FenceState::Failed, Err(error)) => {
            let late = matches!(
                error.status(),
                ErrorStatus::MissedDeadlineTransient | ErrorStatus::MissedDeadlinePersistent
            );
            // A loop that takes too long leaves the fence as it is (contract: FENCE-15).
            if state == FenceState::Signalled && !late {
                return Err(format!("the fence signals, but getExecutionInfo: {error}"));
            }
            if error.status() == ErrorStatus::InvalidArgument {
                return Err(format!("FENCE-11: getExecutionInfo: {error}"));
            }
            return Ok(Err(error.into()));
        }
        (state, info) => return Err(format!("the fence is {state:?} ({:?})", info.err())),
    };
    check_timing(since_fences, since_launch != Timing::NONE)?;
    let shape =
        |dimensions: &Vec<u32>| OutputShape { dimensions: dimensions.clone(), is_sufficient: true };
    let output_shapes = instance.dimensions.iter().map(shape).collect();
    Ok(Ok(Execution { output_shapes, timing: since_launch }))
}

impl Opened<'_> {
    /// Two executions, one behind the other, which the client lets begin. The first is judged here.
    fn chained(&self, request: &Request, options: &ExecutionOptions) -> Result<Executed, String> {
        let (signal, start) = SyncFence::pair().map_err(|error| error.to_string())?;
        let mut first = self.instance.request(None).map_err(|error| error.to_string())?;
        for (argument, wanted) in first.outputs.iter_mut().zip(&request.outputs) {
            argument.dimensions.clone_from(&wanted.dimensions);
            argument.location.length = wanted.location.length;
        }
        let one = match self.prepared.execute_fenced(&first, &[start], options, None) {
            Ok(one) => one,
            Err(error) => return Ok(Err(error.into())),
        };
        let Some(fence) = one.sync_fence.clone() else {
            return Err("it is said to have ended, but cannot have begun".into());
        };
        let two = self.prepared.execute_fenced(request, &[fence], options, None);
        let two = two.map_err(|error| format!("the second launch: {error}"))?;
        signal.signal();
        let second = ended(&two, self.instance)?;
        match (ended(&one, self.instance)?, second) {
            (Ok(execution), second) => {
                compare::execution(self.case, self.instance, &first, &execution)
                    .map_err(|what| format!("the one that was waited for: {what}"))?;
                if second.is_ok() {
                    self.through_a_buffer(&first, options)
                        .map_err(|what| format!("through a buffer: {what}"))?;
                }
                Ok(second)
            }
            (Err(_), Ok(_)) => Err("what waited for a failed execution succeeds".into()),
            (failed, Err(_)) => Ok(failed),
        }
    }

    /// An output and an input that can be the same value, if the vector has them.
    fn output_that_is_an_input(&self) -> Option<(usize, usize)> {
        let main = &self.case.main;
        let kind = |index: u32| {
            let it = &main.operands[index as usize];
            (it.operand_type, &it.dimensions, it.scale.to_bits(), it.zero_point)
        };
        let compared = |index: &u32| !main.operands[*index as usize].ignored;
        let outputs = main.outputs.iter().enumerate().filter(|(_, index)| compared(index));
        let has_value = |input: usize| self.instance.inputs().nth(input).flatten().is_some();
        outputs
            .filter_map(|(output, written)| {
                let mut inputs = main.inputs.iter().enumerate();
                let input = inputs
                    .find(|(input, read)| kind(**read) == kind(*written) && has_value(*input));
                input.map(|(input, _)| (output, input))
            })
            .next()
    }

    /// Two executions in a chain of which the second reads what the first writes, in a buffer of the
    /// driver's. They give what two executions give of which the client carries the value.
    fn through_a_buffer(&self, good: &Request, options: &ExecutionOptions) -> Result<(), String> {
        let Some((output, input)) = self.output_that_is_an_input() else { return Ok(()) };
        let text = |error: nnhal_hal::Error| error.to_string();
        let request = || {
            let mut request = self.instance.request(None)?;
            for (argument, wanted) in request.outputs.iter_mut().zip(&good.outputs) {
                argument.dimensions.clone_from(&wanted.dimensions);
            }
            Ok(request)
        };
        let carried = RequestBuilder::read_output(good, output).map_err(text)?;
        let expected = request().map_err(text)?;
        write(&expected, expected.inputs[input].location, &carried)?;
        let expects = self.prepared.execute(&expected, options);

        let io_index = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        let role = |index| BufferRole { model_index: 0, io_index: io_index(index), frequency: 1.0 };
        let operand = self.case.main.outputs[output] as usize;
        let description = BufferDescription {
            dimensions: self.case.main.operands[operand].dimensions.clone(),
            prepared_models: vec![Arc::clone(&self.prepared)],
            input_roles: vec![role(input)],
            output_roles: vec![role(output)],
        };
        // A device need not have buffers, and then there is no more to it than the fences.
        let Ok(buffer) = self.device.allocate(&description) else { return Ok(()) };
        let mut two = [request().map_err(text)?, request().map_err(text)?];
        let pool_index = io_index(two[0].pools.len());
        for request in &mut two {
            request.pools.push(RequestMemoryPool::Token(buffer.token()));
        }
        let location = DataLocation { pool_index, offset: 0, length: 0 };
        two[0].outputs[output].location = location;
        two[1].inputs[input].location = location;
        let (signal, start) = SyncFence::pair().map_err(|error| error.to_string())?;
        let writes = self.prepared.execute_fenced(&two[0], &[start], options, None);
        let writes = writes.map_err(|error| format!("the launch of what writes: {error}"))?;
        let fences: Vec<_> = writes.sync_fence.clone().into_iter().collect();
        let reads = self.prepared.execute_fenced(&two[1], &fences, options, None);
        let reads = reads.map_err(|error| format!("the launch of what reads: {error}"))?;
        signal.signal();
        match (ended(&reads, self.instance)?, expects) {
            (Ok(_), Ok(_)) => self.demand_same_outputs(&two[1], &expected),
            (Err(_), Err(_)) => Ok(()),
            (found, expects) => Err(format!(
                "{:?}, but {:?} if the client carries the value",
                found.map(|_| "success").map_err(|failed| failed.error),
                expects.map(|_| "success").map_err(|failed| failed.error)
            )),
        }
    }

    /// Demands that all outputs that count are the same, within the vector's tolerance.
    fn demand_same_outputs(&self, found: &Request, expected: &Request) -> Result<(), String> {
        for (index, operand) in self.case.main.outputs.iter().enumerate() {
            let operand = &self.case.main.operands[*operand as usize];
            let bytes = |request| RequestBuilder::read_output(request, index);
            let [found, expected] = [bytes(found), bytes(expected)].map(Result::unwrap_or_default);
            let tolerance = self.case.tolerances.get(index).copied().flatten();
            let (false, Some(tolerance)) = (operand.ignored || found == expected, tolerance) else {
                continue;
            };
            if let Some(difference) =
                compare::difference(operand.operand_type, &expected, &found, tolerance)
            {
                return Err(format!("output {index}: {difference}"));
            }
        }
        Ok(())
    }

    /// A buffer of the driver's for an argument, if it has one.
    fn allocate(
        &self,
        index: usize,
        role: fn(BufferRole, &mut BufferDescription),
        dimensions: Vec<u32>,
    ) -> Result<Result<Arc<dyn Buffer>, NotOffered>, String> {
        let io_index = u32::try_from(index).unwrap_or(u32::MAX);
        let mut description = BufferDescription {
            dimensions,
            prepared_models: vec![Arc::clone(&self.prepared)],
            ..BufferDescription::default()
        };
        role(BufferRole { model_index: 0, io_index, frequency: 1.0 }, &mut description);
        match self.device.allocate(&description) {
            Ok(buffer) => Ok(Ok(buffer)),
            Err(error) if error.status() == ErrorStatus::GeneralFailure => {
                Ok(Err(format!("no buffers: {error}")))
            }
            Err(error) => Err(format!("allocate: {error}")),
        }
    }

    /// Executes with all arguments in buffers of the driver's, and copies the outputs to where the
    /// request has them. After a failure they hold nothing (contract: BUF-1).
    fn in_buffers(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        aim: Aim,
    ) -> Result<Result<Executed, NotOffered>, String> {
        let memory = |result: Result<Memory, nnhal_hal::memory::MemoryError>| {
            result.map_err(|error| format!("memory of the suite: {error}"))
        };
        let main = &self.case.main;
        let dimensions = |operand: u32| main.operands[operand as usize].dimensions.clone();
        let mut wish = Request { pools: Vec::new(), ..request.clone() };
        let mut buffers: Vec<Arc<dyn Buffer>> = Vec::new();
        let mut place = |buffer: Arc<dyn Buffer>| {
            let pool_index = u32::try_from(buffers.len()).unwrap_or(u32::MAX);
            wish.pools.push(RequestMemoryPool::Token(buffer.token()));
            buffers.push(buffer);
            DataLocation { pool_index, offset: 0, length: 0 }
        };
        for (index, (bytes, operand)) in self.instance.inputs().zip(&main.inputs).enumerate() {
            let Some(bytes) = bytes else { continue };
            let as_input = |role, it: &mut BufferDescription| it.input_roles.push(role);
            let buffer = match self.allocate(index, as_input, dimensions(*operand))? {
                Ok(buffer) => buffer,
                Err(why) => return Ok(Err(why)),
            };
            let source = memory(Memory::from_bytes(bytes))?;
            let copied = buffer.copy_from(&source, &dimensions(*operand));
            copied.map_err(|error| format!("copying input {index}: {error}"))?;
            wish.inputs[index].location = place(buffer);
        }
        let mut outputs = Vec::new();
        for (index, operand) in main.outputs.iter().enumerate() {
            let as_output = |role, it: &mut BufferDescription| it.output_roles.push(role);
            let mut dimensions = dimensions(*operand);
            if aim == Aim::Shortage(index) {
                dimensions[0] += 1;
            }
            let buffer = match self.allocate(index, as_output, dimensions)? {
                Ok(buffer) => buffer,
                Err(why) => return Ok(Err(why)),
            };
            outputs.push(Arc::clone(&buffer));
            wish.outputs[index].location = place(buffer);
        }
        let executed = self.prepared.execute(&wish, options);
        for (index, (buffer, expected)) in outputs.iter().zip(&self.instance.expected).enumerate() {
            let copy = memory(Memory::allocate(expected.len() as u64))?;
            let copied = buffer.copy_to(&copy);
            match (&executed, copied) {
                (Ok(_), copied) => {
                    copied.map_err(|error| format!("copying output {index}: {error}"))?;
                    let moved = copy.view().and_then(|view| view.read_to_vec(0, view.size()));
                    let bytes = moved.map_err(|error| error.to_string())?;
                    write(request, request.outputs[index].location, &bytes)?;
                }
                (Err(_), Err(error)) if error.status() == ErrorStatus::GeneralFailure => {}
                (Err(failed), copied) => {
                    return Err(format!(
                        "BUF-1: it failed ({failed}), but copying output {index}: {copied:?}"
                    ));
                }
            }
        }
        Ok(Ok(executed))
    }
}

/// A model that was saved and loaded; or why the device has none.
fn saved_and_loaded(
    device: &dyn Device,
    instance: &Instance,
) -> Result<Result<Arc<dyn PreparedModel>, NotOffered>, String> {
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

/// Puts bytes where a request has an argument.
fn write(request: &Request, location: DataLocation, bytes: &[u8]) -> Result<(), String> {
    let RequestMemoryPool::Memory(memory) = &request.pools[location.pool_index as usize] else {
        return Err("an argument of the suite is no memory".into());
    };
    let written = memory.view().and_then(|view| view.write(u64::from(location.offset), bytes));
    written.map_err(|error| error.to_string())
}
