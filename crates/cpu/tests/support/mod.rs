//! Networks to run, and an engine that lets a test look into executions.
#![allow(dead_code)] // Every test crate uses a part.

use nnhal_cpu::{CpuEngine, CpuProgram, Settings};
use nnhal_driver::{
    Bindings, Budget, CompileOptions, DriverDevice, Engine, EngineError, OperationPlace,
    PlannedStep, Program, RunContext,
};
use nnhal_hal::{
    Capabilities, Device, DeviceType, ExecutionOptions, ExecutionPreference, HalVersion, Model,
    OperandId, OperandSpec, OperationType, PrepareOptions, PreparedModel, Priority, Request,
    RequestBuilder, SubgraphBuilder, Support,
};
use nnhal_ops::ValidModel;
use std::sync::Arc;

/// What is done where the driver asks for a program to be run.
pub trait Around: Send + Sync + 'static {
    /// Runs the program, or does something else.
    fn run(
        &self,
        program: &CpuProgram,
        bindings: &Bindings,
        context: &RunContext<'_>,
    ) -> Result<(), EngineError>;
}

/// The fast engine with something around its executions, of which it computes many at a time.
struct Wrapped {
    engine: CpuEngine,
    around: Arc<dyn Around>,
}

struct WrappedProgram {
    program: CpuProgram,
    around: Arc<dyn Around>,
}

/// Executions that [`instrumented_device`] computes at a time.
pub const AT_ONCE: usize = 8;

/// A device of the fast engine with something around its executions.
pub fn instrumented_device(settings: Settings, around: Arc<dyn Around>) -> Arc<dyn Device> {
    Arc::new(DriverDevice::new(Wrapped { engine: CpuEngine::new(settings), around }))
}

impl Engine for Wrapped {
    type Program = WrappedProgram;

    fn name(&self) -> &str {
        "nnhal-test"
    }

    fn version_string(&self) -> String {
        self.engine.version_string()
    }

    fn device_type(&self) -> DeviceType {
        self.engine.device_type()
    }

    fn capabilities(&self) -> Capabilities {
        self.engine.capabilities()
    }

    fn executions_at_once(&self) -> usize {
        AT_ONCE
    }

    fn extensions(&self) -> Vec<nnhal_hal::Extension> {
        self.engine.extensions()
    }

    fn supports(&self, model: &ValidModel, place: OperationPlace) -> Support {
        self.engine.supports(model, place)
    }

    fn compile(
        &self,
        model: &ValidModel,
        options: &CompileOptions,
        budget: &Budget,
    ) -> Result<WrappedProgram, EngineError> {
        let program = self.engine.compile(model, options, budget)?;
        Ok(WrappedProgram { program, around: Arc::clone(&self.around) })
    }
}

impl Program for WrappedProgram {
    fn run(&self, bindings: &Bindings, context: &RunContext<'_>) -> Result<(), EngineError> {
        self.around.run(&self.program, bindings, context)
    }

    fn plan(&self) -> Vec<PlannedStep> {
        self.program.plan()
    }
}

/// A model with requests for it.
pub struct Network {
    /// The model.
    pub model: Model,
    /// The true dimensions of its one input.
    pub input: Vec<u32>,
    /// Bytes of its one output.
    pub output_bytes: usize,
    is_float: bool,
}

/// What a network's tensors hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    Float32,
    Float16,
    Signed,
}

impl Numbers {
    /// A tensor; 0 is an unknown length.
    fn spec(self, dimensions: &[u32]) -> OperandSpec {
        match self {
            Self::Float32 => OperandSpec::tensor_float32(dimensions),
            Self::Float16 => OperandSpec::tensor_float16(dimensions),
            Self::Signed => OperandSpec::tensor_quant8_asymm_signed(dimensions, 0.05, 3),
        }
    }

    fn element_size(self) -> usize {
        match self {
            Self::Float32 => 4,
            Self::Float16 => 2,
            Self::Signed => 1,
        }
    }

    /// A constant of small numbers without a pattern.
    fn weights(self, graph: &mut SubgraphBuilder, dimensions: &[u32]) -> OperandId {
        let count = dimensions.iter().product::<u32>();
        let numbers = numbers(count as usize, 7);
        match self {
            Self::Float32 => {
                let numbers: Vec<f32> = numbers.iter().map(|it| f32::from(*it) / 400.0).collect();
                graph.constant(self.spec(dimensions), &numbers)
            }
            Self::Float16 => {
                let numbers = numbers.iter().map(|it| half::f16::from_f32(f32::from(*it) / 400.0));
                let bytes: Vec<u8> = numbers.flat_map(half::f16::to_le_bytes).collect();
                graph.constant_bytes(self.spec(dimensions), &bytes)
            }
            Self::Signed => {
                let spec = OperandSpec::tensor_quant8_asymm_signed(dimensions, 0.0025, 0);
                graph.constant(spec, &numbers)
            }
        }
    }

    /// A bias for weights.
    fn bias(self, graph: &mut SubgraphBuilder, length: u32) -> OperandId {
        if self != Self::Signed {
            return self.weights(graph, &[length]);
        }
        let spec = OperandSpec::tensor_int32([length]).quantized(0.05 * 0.0025, 0);
        graph.constant(spec, &vec![40; length as usize])
    }
}

/// Numbers of -100 to 100 without a pattern.
fn numbers(count: usize, seed: u32) -> Vec<i8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9) | 1;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        i8::try_from((state >> 16) % 201).map_or(100, |it| it)
    };
    std::iter::repeat_with(next).take(count).map(|it| it.wrapping_sub(100).max(-100)).collect()
}

/// A network as those for images are, but small: convolutions, a residual connection, parts that
/// are concatenated, activations, views, a fully connected layer. With `is_open`, the model leaves
/// the batch to the request.
pub fn network(kind: Numbers, is_open: bool, batch: u32) -> Network {
    let mut graph = SubgraphBuilder::new();
    let said = |dimensions: &[u32]| {
        let mut dimensions = dimensions.to_vec();
        if is_open {
            dimensions[0] = 0;
        }
        kind.spec(&dimensions)
    };
    let [same, one, none, relu6] = [1, 1, 0, 3].map(|number| graph.scalar_i32(number));
    let image = graph.input("image", said(&[batch, 12, 10, 3]));
    let convolution = |graph: &mut SubgraphBuilder, input, from, to, taps, activation| {
        let filter = kind.weights(graph, &[to, taps, taps, from]);
        let bias = kind.bias(graph, to);
        let inputs = [input, filter, bias, same, one, one, activation];
        graph.operation(OperationType::Conv2d, inputs, said(&[batch, 12, 10, to]))
    };
    let stem = convolution(&mut graph, image, 3, 16, 3, relu6);
    let wide = convolution(&mut graph, stem, 16, 16, 1, none);
    let sum = graph.operation(OperationType::Add, [stem, wide, none], said(&[batch, 12, 10, 16]));
    let active = graph.operation(OperationType::HardSwish, [sum], said(&[batch, 12, 10, 16]));
    let left = convolution(&mut graph, active, 16, 8, 1, relu6);
    let right = convolution(&mut graph, active, 16, 8, 3, none);
    let last_axis = graph.scalar_i32(3);
    let joined = graph.operation(
        OperationType::Concatenation,
        [left, right, last_axis],
        said(&[batch, 12, 10, 16]),
    );
    let lengths = graph.constant(OperandSpec::tensor_int32([2]), &[-1, 12 * 10 * 16]);
    let flat =
        graph.operation(OperationType::Reshape, [joined, lengths], said(&[batch, 12 * 10 * 16]));
    let weights = kind.weights(&mut graph, &[10, 12 * 10 * 16]);
    let bias = kind.bias(&mut graph, 10);
    let classes = graph.operation(
        OperationType::FullyConnected,
        [flat, weights, bias, none],
        said(&[batch, 10]),
    );
    graph.output(classes);
    Network {
        model: graph.into_model().expect("a model"),
        input: vec![batch, 12, 10, 3],
        output_bytes: batch as usize * 10 * kind.element_size(),
        is_float: kind != Numbers::Signed,
    }
}

impl Network {
    /// A request; each seed has an input of its own.
    pub fn request(&self, kind: Numbers, seed: u32) -> Request {
        let count = self.input.iter().product::<u32>() as usize;
        let numbers = numbers(count, seed);
        let reals = numbers.iter().map(|it| f32::from(*it) / 50.0);
        let bytes: Vec<u8> = match kind {
            Numbers::Float32 => reals.flat_map(f32::to_le_bytes).collect(),
            Numbers::Float16 => {
                reals.flat_map(|it| half::f16::from_f32(it).to_le_bytes()).collect()
            }
            Numbers::Signed => numbers.iter().map(|it| it.cast_unsigned()).collect(),
        };
        let mut request = RequestBuilder::new();
        request.input_shaped(&bytes, &self.input);
        request.output(self.output_bytes);
        request.build().expect("a request")
    }

    /// The output of an execution.
    pub fn output(&self, request: &Request) -> Vec<u8> {
        RequestBuilder::read_output(request, 0).expect("an output")
    }

    /// Whether two outputs are the same, floats to within rounding.
    pub fn is_same(&self, one: &[u8], other: &[u8]) -> bool {
        if !self.is_float {
            return one == other;
        }
        let floats = |bytes: &[u8]| -> Vec<f32> {
            let (elements, _) = bytes.as_chunks();
            elements.iter().map(|element| f32::from_le_bytes(*element)).collect()
        };
        let (one, other) = (floats(one), floats(other));
        one.len() == other.len()
            && one.iter().zip(&other).all(|(a, b)| (a - b).abs() <= 1e-5 * a.abs().max(1.0))
    }
}

/// The steps of a model's plan, compiled for a single answer.
pub fn steps(model: &Model) -> Vec<PlannedStep> {
    let model = nnhal_ops::validate(model, HalVersion::LATEST).unwrap();
    let options = CompileOptions {
        preference: ExecutionPreference::FastSingleAnswer,
        priority: Priority::Medium,
        hints: nnhal_hal::Hints::NONE,
    };
    let engine = CpuEngine::new(Settings::default());
    engine.compile(&model, &options, &Budget::unlimited()).unwrap().plan()
}

/// Their kernels.
pub fn kernels(model: &Model) -> Vec<String> {
    steps(model).into_iter().map(|step| step.kernel).collect()
}

/// The model, prepared by a device.
pub fn prepare(device: &dyn Device, model: &Model) -> Arc<dyn PreparedModel> {
    device
        .prepare_model(model, HalVersion::LATEST, PrepareOptions::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Executes a request.
pub fn execute(prepared: &dyn PreparedModel, request: &Request) {
    if let Err(failed) = prepared.execute(request, &ExecutionOptions::default()) {
        panic!("{}", failed.error);
    }
}
