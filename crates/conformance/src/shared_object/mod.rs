//! A driver in a shared object: an NNAPI support library, used as a [`Device`] by its C functions.
//!
//! What the C functions do not show, it does not offer: bursts, fences, caches, buffers of the driver, and
//! the version that a model is judged by. So it is judged by vectors, and not by the contract's checks.

mod functions;

use functions::{Declared, Library, RawCompilation, RawDevice, RawExecution, RawModel};
use nnhal_hal::model::ExtraParams;
use nnhal_hal::{
    Capabilities, Device, DeviceType, Error, Execution, ExecutionError, ExecutionOptions,
    HalVersion, Model, Operand, OperandLifeTime, OutputShape, PerformanceInfo, PrepareOptions,
    PreparedModel, Request, RequestArgument, RequestMemoryPool, Subgraph, Support, Timing,
};
use std::ffi::OsStr;
use std::sync::Arc;

/// A device of a support library.
#[derive(Debug)]
struct SharedObject {
    raw: RawDevice,
    name: String,
    version_string: String,
    device_type: DeviceType,
    version: HalVersion,
}

/// The device of this name in a support library; its first one if none is named. Loading the library
/// runs what it does when it is loaded.
///
/// # Errors
/// A sentence: it cannot be loaded, is no support library, or has no such device.
pub fn open(path: &OsStr, name: Option<&str>) -> Result<Arc<dyn Device>, String> {
    let library = Library::load(path)?;
    let said = |error: Error| error.to_string();
    let mut names = Vec::new();
    for raw in library.devices().map_err(said)? {
        let found = raw.name().map_err(said)?;
        if name.is_none_or(|name| name == found) {
            return Ok(Arc::new(SharedObject::new(raw, found).map_err(said)?));
        }
        names.push(found);
    }
    let name = name.unwrap_or_default();
    Err(format!("it has no device {name:?}; it has: {}", names.join(", ")))
}

impl SharedObject {
    fn new(raw: RawDevice, name: String) -> nnhal_hal::Result<Self> {
        // The device's kind as the C functions number it.
        let device_type = match raw.kind()? {
            2 => DeviceType::Cpu,
            3 => DeviceType::Gpu,
            4 => DeviceType::Accelerator,
            _ => DeviceType::Other,
        };
        let version = match raw.feature_level()? {
            1_000_007.. => HalVersion::FeatureLevel7,
            1_000_006 => HalVersion::FeatureLevel6,
            30.. => HalVersion::V1_3,
            29 => HalVersion::V1_2,
            28 => HalVersion::V1_1,
            _ => HalVersion::V1_0,
        };
        Ok(Self { version_string: raw.version()?, name, device_type, version, raw })
    }

    fn build(&self, model: &Model) -> nnhal_hal::Result<Arc<RawModel>> {
        let mut referenced = vec![None; model.referenced.len()];
        self.build_graph(model, &model.main, &mut referenced, 0)
    }

    /// A subgraph, and first those that it refers to.
    fn build_graph(
        &self,
        model: &Model,
        graph: &Subgraph,
        referenced: &mut Vec<Option<Arc<RawModel>>>,
        level: usize,
    ) -> nnhal_hal::Result<Arc<RawModel>> {
        if level > model.referenced.len() {
            return Err(Error::invalid("subgraphs refer to each other in a circle"));
        }
        let mut raw = RawModel::new(self.raw.library())?;
        for (index, operand) in graph.operands.iter().enumerate() {
            let Operand { dimensions, scale, zero_point, .. } = operand;
            raw.add_operand(code(operand), dimensions, *scale, *zero_point)?;
            if let ExtraParams::ChannelQuant(channels) = &operand.extra_params {
                raw.set_channel_scales(index, channels.channel_dim, &channels.scales)?;
            }
            match operand.lifetime {
                OperandLifeTime::ConstantCopy | OperandLifeTime::ConstantReference => {
                    raw.set_value(index, Some(constant(model, operand)?))?;
                }
                OperandLifeTime::NoValue => raw.set_value(index, None)?,
                OperandLifeTime::Subgraph => {
                    let at = operand.location.offset as usize;
                    let other = match referenced.get(at) {
                        Some(Some(built)) => Arc::clone(built),
                        Some(None) => {
                            let graph = &model.referenced[at];
                            self.build_graph(model, graph, referenced, level + 1)?
                        }
                        None => return Err(Error::invalid("there is no such subgraph")),
                    };
                    referenced[at] = Some(Arc::clone(&other));
                    raw.set_model(index, other)?;
                }
                _ => {}
            }
        }
        for operation in &graph.operations {
            let code = operation.operation_type.code().cast_signed();
            raw.add_operation(code, &operation.inputs, &operation.outputs)?;
        }
        let is_relaxed = model.relax_computation_float32_to_float16;
        raw.finish(&graph.inputs, &graph.outputs, is_relaxed)?;
        Ok(Arc::new(raw))
    }
}

fn code(operand: &Operand) -> i32 {
    operand.operand_type.code().cast_signed()
}

fn constant(model: &Model, operand: &Operand) -> nnhal_hal::Result<Vec<u8>> {
    let location = operand.location;
    if operand.lifetime == OperandLifeTime::ConstantCopy {
        let start = location.offset as usize;
        let end = start.saturating_add(location.length as usize);
        let bytes = model.operand_values.get(start..end);
        return bytes.map(<[u8]>::to_vec).ok_or_else(|| Error::invalid("a constant is outside"));
    }
    let pool = model.pools.get(location.pool_index as usize);
    let pool = pool.ok_or_else(|| Error::invalid("there is no such pool"))?;
    let (offset, length) = (location.offset.into(), location.length.into());
    let read = pool.view().and_then(|view| view.read_to_vec(offset, length));
    read.map_err(|error| Error::invalid(error.to_string()))
}

impl Device for SharedObject {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> HalVersion {
        self.version
    }

    fn version_string(&self) -> String {
        self.version_string.clone()
    }

    fn device_type(&self) -> DeviceType {
        self.device_type
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::uniform(PerformanceInfo::AS_CPU)
    }

    fn supported_operations(
        &self,
        model: &Model,
        _: HalVersion,
    ) -> nnhal_hal::Result<Vec<Support>> {
        let raw = self.build(model)?;
        let answers = self.raw.supports(&raw, model.main.operations.len())?;
        let answer = |yes| match yes {
            true => Support::Yes,
            false => Support::No("getSupportedOperationsForDevices says so".to_owned()),
        };
        Ok(answers.into_iter().map(answer).collect())
    }

    fn prepare_model(
        &self,
        model: &Model,
        _: HalVersion,
        _: PrepareOptions,
    ) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
        let compilation = self.raw.compile(self.build(model)?)?;
        let operands = |indexes: &[u32]| -> Vec<Operand> {
            indexes.iter().map(|index| model.main.operands[*index as usize].clone()).collect()
        };
        let main = &model.main;
        Ok(Arc::new(Compiled {
            inputs: operands(&main.inputs),
            outputs: operands(&main.outputs),
            compilation,
        }))
    }
}

/// A model that was compiled.
#[derive(Debug)]
struct Compiled {
    compilation: RawCompilation,
    inputs: Vec<Operand>,
    outputs: Vec<Operand>,
}

impl PreparedModel for Compiled {
    fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Result<Execution, ExecutionError> {
        let mut execution = self.compilation.execution()?;
        if let Some(timeout) = options.loop_timeout {
            let nanoseconds = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
            execution.set_loop_timeout(nanoseconds)?;
        }
        for (at, (argument, operand)) in request.inputs.iter().zip(&self.inputs).enumerate() {
            let declared = Declared {
                code: code(operand),
                dimensions: &argument.dimensions,
                scale: operand.scale,
                zero_point: operand.zero_point,
            };
            let declared = (!argument.dimensions.is_empty()).then_some(&declared);
            let bytes = if argument.has_no_value { None } else { Some(read(request, argument)?) };
            execution.set_input(at, declared, bytes)?;
        }
        let mut places = Vec::with_capacity(request.outputs.len());
        for (at, argument) in request.outputs.iter().enumerate() {
            let length = (!argument.has_no_value).then_some(argument.location.length as usize);
            places.push(execution.set_output(at, length)?);
        }
        let computed = execution.compute();
        match computed {
            Ok(()) => {}
            Err(error) if error.status() == nnhal_hal::ErrorStatus::OutputInsufficientSize => {
                let output_shapes = self.shapes(&execution)?;
                return Err(ExecutionError { error, output_shapes });
            }
            Err(error) => return Err(error.into()),
        }
        for (argument, place) in request.outputs.iter().zip(places) {
            write(request, argument, execution.buffer(place))?;
        }
        Ok(Execution { output_shapes: self.shapes(&execution)?, timing: Timing::NONE })
    }
}

impl Compiled {
    fn shapes(&self, execution: &RawExecution<'_>) -> nnhal_hal::Result<Vec<OutputShape>> {
        let shape = |at| {
            let (dimensions, is_sufficient) = execution.output_shape(at)?;
            Ok(OutputShape { dimensions, is_sufficient })
        };
        (0..self.outputs.len()).map(shape).collect()
    }
}

fn pool<'a>(
    request: &'a Request,
    argument: &RequestArgument,
) -> nnhal_hal::Result<&'a nnhal_hal::Memory> {
    match request.pools.get(argument.location.pool_index as usize) {
        Some(RequestMemoryPool::Memory(memory)) => Ok(memory),
        _ => Err(Error::invalid("C functions have no buffers of drivers")),
    }
}

fn read(request: &Request, argument: &RequestArgument) -> nnhal_hal::Result<Vec<u8>> {
    let (offset, length) = (argument.location.offset.into(), argument.location.length.into());
    let view = pool(request, argument)?.view();
    let read = view.and_then(|view| view.read_to_vec(offset, length));
    read.map_err(|error| Error::invalid(error.to_string()))
}

fn write(request: &Request, argument: &RequestArgument, bytes: &[u8]) -> nnhal_hal::Result<()> {
    if argument.has_no_value {
        return Ok(());
    }
    let view = pool(request, argument)?.view();
    let written = view.and_then(|view| view.write(argument.location.offset.into(), bytes));
    written.map_err(|error| Error::invalid(error.to_string()))
}
