//! [`ThroughRuntime`]: the runtime over some devices as one device, so that whatever judges devices
//! judges it.

use nnhal_hal::{
    Capabilities, Device, DeviceType, Error, ErrorStatus, Execution as HalExecution,
    ExecutionError, ExecutionOptions, ExtraParams, HalVersion, Model as HalModel, OperandLifeTime,
    OutputShape, PerformanceInfo, PrepareOptions, PreparedModel, Request, RequestArgument,
    RequestMemoryPool, Result, Subgraph, Support, Timing,
};
use nnhal_runtime::{
    Burst, Compilation, CompilationBuilder, Devices, Execution, Memory, Model, ModelBuilder,
    OperandDescription, OutputBuffer, ResultCode,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A way to execute a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    Synchronous,
    SynchronousInMemory,
    Asynchronous,
    Burst,
    /// Where all outputs' dimensions are known; otherwise asynchronous.
    Fenced,
    FencedInMemory,
    ReusedTwice,
}

impl Path {
    pub const ALL: &'static [Self] = &[
        Self::Synchronous,
        Self::SynchronousInMemory,
        Self::Asynchronous,
        Self::Burst,
        Self::Fenced,
        Self::FencedInMemory,
        Self::ReusedTwice,
    ];

    fn in_memory(self) -> bool {
        matches!(self, Self::SynchronousInMemory | Self::FencedInMemory)
    }
}

/// The runtime over some devices as a device.
pub struct ThroughRuntime {
    devices: Devices,
    paths: &'static [Path],
    next: Arc<AtomicUsize>,
    steps: AtomicUsize,
}

impl ThroughRuntime {
    /// Each request is run in the next of these paths.
    pub fn new(devices: Devices, paths: &'static [Path]) -> Self {
        Self { devices, paths, next: Arc::default(), steps: AtomicUsize::new(0) }
    }

    /// How many steps all models so far were divided into.
    pub fn steps(&self) -> usize {
        self.steps.load(Ordering::Relaxed)
    }

    pub fn compile(&self, model: &HalModel) -> Result<Compilation> {
        let model = rebuild(&self.devices, model).map_err(below)?;
        let compilation = CompilationBuilder::new(&model).finish().map_err(below)?;
        self.steps.fetch_add(compilation.steps().len(), Ordering::Relaxed);
        Ok(compilation)
    }
}

/// An error as devices have them.
pub fn below(error: nnhal_runtime::Error) -> Error {
    let status = ErrorStatus::ALL
        .iter()
        .find(|status| **status != ErrorStatus::None && ResultCode::from(**status) == error.code());
    Error::new(status.copied().unwrap_or(ErrorStatus::GeneralFailure), error)
}

/// Builds a model with the runtime's builder, operand by operand.
pub fn rebuild(devices: &Devices, model: &HalModel) -> nnhal_runtime::Result<Model> {
    let mut built = HashMap::new();
    // Those that refer to none first.
    while built.len() < model.referenced.len() {
        let before = built.len();
        for (index, graph) in model.referenced.iter().enumerate() {
            if !built.contains_key(&index) && references(graph).all(|it| built.contains_key(&it)) {
                let inner = rebuild_graph(devices, model, graph, &built)?;
                built.insert(index, inner);
            }
        }
        if built.len() == before {
            let circle = "subgraphs refer to each other in circles";
            return Err(nnhal_runtime::Error::new(ResultCode::BadData, circle));
        }
    }
    rebuild_graph(devices, model, &model.main, &built)
}

fn references(graph: &Subgraph) -> impl Iterator<Item = usize> {
    let operands = graph.operands.iter();
    operands
        .filter(|operand| operand.lifetime == OperandLifeTime::Subgraph)
        .map(|operand| operand.location.offset as usize)
}

fn rebuild_graph(
    devices: &Devices,
    model: &HalModel,
    graph: &Subgraph,
    built: &HashMap<usize, Model>,
) -> nnhal_runtime::Result<Model> {
    let mut builder = ModelBuilder::new(devices);
    for operand in &graph.operands {
        let index = builder.add_operand(&OperandDescription {
            code: operand.operand_type.code().cast_signed(),
            dimensions: operand.dimensions.clone(),
            scale: operand.scale,
            zero_point: operand.zero_point,
        })?;
        let (from, length) = (operand.location.offset as usize, operand.location.length as usize);
        match operand.lifetime {
            OperandLifeTime::ConstantCopy => {
                let value = &model.operand_values[from..from + length];
                if length > 128 {
                    builder.set_operand_value_shared(index, Arc::new(value.to_vec()))?;
                } else {
                    builder.set_operand_value(index, value)?;
                }
            }
            OperandLifeTime::ConstantReference => {
                let pool = model.pools[operand.location.pool_index as usize].clone();
                let memory = Memory::from_shared(pool);
                builder.set_operand_value_from_memory(index, &memory, from, length)?;
            }
            OperandLifeTime::NoValue => builder.omit_operand_value(index)?,
            OperandLifeTime::Subgraph => {
                builder.set_operand_value_from_model(index, &built[&from])?;
            }
            _ => {}
        }
        match &operand.extra_params {
            ExtraParams::None => {}
            ExtraParams::ChannelQuant(quant) => {
                builder.set_operand_channel_quant(index, quant.channel_dim, &quant.scales)?;
            }
            ExtraParams::Extension(data) => {
                builder.set_operand_extension_data(index, Some(data))?;
            }
        }
    }
    // Whatever the order is, the runtime finds one in which they can run.
    for operation in graph.operations.iter().rev() {
        let code = operation.operation_type.code().cast_signed();
        builder.add_operation(code, &operation.inputs, &operation.outputs)?;
    }
    builder.identify_inputs_and_outputs(&graph.inputs, &graph.outputs)?;
    builder.relax_computation_float32_to_float16(model.relax_computation_float32_to_float16)?;
    builder.finish()
}

impl Device for ThroughRuntime {
    fn name(&self) -> &str {
        "test-through-runtime"
    }

    fn version_string(&self) -> String {
        "1".to_owned()
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Other
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::uniform(PerformanceInfo::AS_CPU)
    }

    fn supported_operations(&self, model: &HalModel, _: HalVersion) -> Result<Vec<Support>> {
        let model = rebuild(&self.devices, model).map_err(below)?;
        let supported = model.supported_operations(self.devices.list()).map_err(below)?;
        let support = |able| if able { Support::Yes } else { Support::No("none can".into()) };
        // They were added backwards.
        Ok(supported.into_iter().rev().map(support).collect())
    }

    fn prepare_model(
        &self,
        model: &HalModel,
        _: HalVersion,
        _: PrepareOptions,
    ) -> Result<Arc<dyn PreparedModel>> {
        let compilation = self.compile(model)?;
        let burst = Burst::new(&compilation);
        let (paths, next) = (self.paths, Arc::clone(&self.next));
        Ok(Arc::new(Prepared { compilation, burst, paths, next }))
    }
}

struct Prepared {
    compilation: Compilation,
    burst: Burst,
    paths: &'static [Path],
    next: Arc<AtomicUsize>,
}

impl PreparedModel for Prepared {
    fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Result<HalExecution, ExecutionError> {
        let path = self.paths[self.next.fetch_add(1, Ordering::Relaxed) % self.paths.len()];
        let run = Run { compilation: &self.compilation, request, path };
        let execution = run.prepare(options).map_err(below)?;
        let (execution, buffers) = execution;
        let result = run.start(&execution, &self.burst);
        let output_shapes = || -> Vec<OutputShape> {
            let outputs = 0..request.outputs.len();
            let shapes = outputs.map_while(|index| {
                let index = u32::try_from(index).unwrap();
                let found = execution.output_dimensions(index).ok()?;
                let nnhal_runtime::OutputDimensions { dimensions, is_sufficient } = found;
                Some(OutputShape { dimensions, is_sufficient })
            });
            shapes.collect()
        };
        if let Err(error) = result {
            let output_shapes = match error.code() {
                ResultCode::OutputInsufficientSize => output_shapes(),
                _ => Vec::new(),
            };
            return Err(ExecutionError { error: below(error), output_shapes });
        }
        for (argument, buffer) in request.outputs.iter().zip(buffers) {
            if let Some(buffer) = buffer {
                let bytes = buffer.to_vec();
                let view = memory_of(request, argument).view().map_err(Error::from)?;
                view.write(argument.location.offset.into(), &bytes).map_err(Error::from)?;
            }
        }
        Ok(HalExecution { output_shapes: output_shapes(), timing: Timing::NONE })
    }
}

fn memory_of<'a>(request: &'a Request, argument: &RequestArgument) -> &'a nnhal_hal::Memory {
    match &request.pools[argument.location.pool_index as usize] {
        RequestMemoryPool::Memory(memory) => memory,
        RequestMemoryPool::Token(_) => panic!("a buffer"),
    }
}

struct Run<'a> {
    compilation: &'a Compilation,
    request: &'a Request,
    path: Path,
}

impl Run<'_> {
    fn prepare(
        &self,
        options: &ExecutionOptions,
    ) -> nnhal_runtime::Result<(Execution, Vec<Option<OutputBuffer>>)> {
        let Self { compilation, request, path } = *self;
        let execution = Execution::new(compilation);
        execution.enable_input_and_output_padding(true)?;
        execution.set_reusable(path == Path::ReusedTwice)?;
        if let Some(timeout) = options.loop_timeout {
            execution.set_loop_timeout(u64::try_from(timeout.as_nanos()).unwrap())?;
        }
        let described = |operand: &nnhal_hal::Operand, dimensions: &[u32]| {
            (!dimensions.is_empty()).then(|| OperandDescription {
                code: operand.operand_type.code().cast_signed(),
                dimensions: dimensions.to_vec(),
                scale: operand.scale,
                zero_point: operand.zero_point,
            })
        };
        for (index, argument) in request.inputs.iter().enumerate() {
            let index = u32::try_from(index).unwrap();
            let description = described(compilation.model().input(index)?, &argument.dimensions);
            let description = description.as_ref();
            if argument.has_no_value {
                execution.set_input(index, description, None)?;
                continue;
            }
            let memory = memory_of(request, argument);
            let (offset, length) = (argument.location.offset, argument.location.length);
            if path.in_memory() {
                let memory = Memory::from_shared(memory.clone());
                let (offset, length) = (offset as usize, length as usize);
                execution.set_input_from_memory(index, description, &memory, offset, length)?;
            } else {
                let view = memory.view().unwrap();
                let bytes = view.read_to_vec(offset.into(), length.into()).unwrap();
                execution.set_input(index, description, Some(Arc::new(bytes)))?;
            }
        }
        let mut buffers = Vec::new();
        for (index, argument) in request.outputs.iter().enumerate() {
            let index = u32::try_from(index).unwrap();
            let description = described(compilation.model().output(index)?, &argument.dimensions);
            let description = description.as_ref();
            let (offset, length) = (argument.location.offset, argument.location.length);
            if path.in_memory() {
                let memory = Memory::from_shared(memory_of(request, argument).clone());
                let (offset, length) = (offset as usize, length as usize);
                execution.set_output_from_memory(index, description, &memory, offset, length)?;
                buffers.push(None);
            } else {
                let buffer = OutputBuffer::new(length as usize);
                execution.set_output(index, description, Some(Arc::new(buffer.clone())))?;
                buffers.push(Some(buffer));
            }
        }
        Ok((execution, buffers))
    }

    fn start(&self, execution: &Execution, burst: &Burst) -> nnhal_runtime::Result<()> {
        let is_known = |operand: &nnhal_hal::Operand| operand.has_known_dimensions();
        match self.path {
            Path::Synchronous | Path::SynchronousInMemory => execution.compute(),
            Path::Burst => match execution.burst_compute(burst) {
                Err(error) if error.code() == ResultCode::BadState => execution.compute(),
                result => result,
            },
            Path::ReusedTwice => {
                execution.compute()?;
                execution.compute()
            }
            Path::Fenced | Path::FencedInMemory
                if self.compilation.model().outputs().all(is_known) =>
            {
                let event = execution.start_compute_with_dependencies(&[], 0)?;
                event.sync_fence_fd()?;
                event.wait()
            }
            Path::Asynchronous | Path::Fenced | Path::FencedInMemory => {
                execution.start_compute()?.wait()
            }
        }
    }
}
