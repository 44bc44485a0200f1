//! An engine whose behaviour each test writes down, and short ways to drive it.
#![allow(dead_code)] // Every test crate uses a part.

use nnhal_driver::{
    Bindings, Budget, CompileOptions, DriverDevice, Engine, EngineError, OperationPlace, Program,
    RunContext,
};
use nnhal_hal::{
    Capabilities, Device, DeviceType, ErrorStatus, Execution, ExecutionError, ExecutionOptions,
    HalVersion, Model, OperandSpec, OperationType, OutputShape, PerformanceInfo, PrepareOptions,
    PreparedModel, Request, RequestBuilder, SubgraphBuilder, Support,
};
use nnhal_ops::ValidModel;
use std::sync::Arc;

type Run = dyn Fn(&Bindings, &RunContext<'_>) -> Result<(), EngineError> + Send + Sync;
type Supports = dyn Fn(&ValidModel, OperationPlace) -> Support + Send + Sync;
type Compile =
    dyn Fn(&ValidModel, &CompileOptions, &Budget) -> Result<(), EngineError> + Send + Sync;

/// Does what it was asked to.
pub struct Scripted {
    run: Arc<Run>,
    supports: Box<Supports>,
    compile: Box<Compile>,
    at_once: usize,
}

pub struct ScriptedProgram(Arc<Run>);

impl Scripted {
    /// Supports everything; programs do this.
    pub fn running(
        run: impl Fn(&Bindings, &RunContext<'_>) -> Result<(), EngineError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            run: Arc::new(run),
            supports: Box::new(|_, _| Support::Yes),
            compile: Box::new(|_, _, _| Ok(())),
            at_once: 2,
        }
    }

    /// Programs deliver nothing.
    pub fn idle() -> Self {
        Self::running(|_, _| Ok(()))
    }

    pub fn supporting(
        mut self,
        supports: impl Fn(&ValidModel, OperationPlace) -> Support + Send + Sync + 'static,
    ) -> Self {
        self.supports = Box::new(supports);
        self
    }

    pub fn compiling(
        mut self,
        compile: impl Fn(&ValidModel, &CompileOptions, &Budget) -> Result<(), EngineError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.compile = Box::new(compile);
        self
    }

    /// With this number of executions at a time; otherwise 2.
    pub fn at_once(self, at_once: usize) -> Self {
        Self { at_once, ..self }
    }

    pub fn device(self) -> DriverDevice<Self> {
        DriverDevice::new(self)
    }

    /// A model of one RELU, prepared by this engine.
    pub fn prepared(self, input: OperandSpec, output: OperandSpec) -> Arc<dyn PreparedModel> {
        self.device()
            .prepare_model(&relu(input, output), HalVersion::V1_3, PrepareOptions::default())
            .unwrap_or_else(|error| panic!("{error}"))
    }
}

impl Engine for Scripted {
    type Program = ScriptedProgram;

    fn name(&self) -> &str {
        "test-scripted"
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

    fn executions_at_once(&self) -> usize {
        self.at_once
    }

    fn supports(&self, model: &ValidModel, place: OperationPlace) -> Support {
        (self.supports)(model, place)
    }

    fn compile(
        &self,
        model: &ValidModel,
        options: &CompileOptions,
        budget: &Budget,
    ) -> Result<ScriptedProgram, EngineError> {
        (self.compile)(model, options, budget)?;
        Ok(ScriptedProgram(Arc::clone(&self.run)))
    }
}

impl Program for ScriptedProgram {
    fn run(&self, bindings: &Bindings, context: &RunContext<'_>) -> Result<(), EngineError> {
        (self.0)(bindings, context)
    }
}

/// A model of one RELU.
pub fn relu(input: OperandSpec, output: OperandSpec) -> Model {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", input);
    let y = graph.operation(OperationType::Relu, [x], output);
    graph.output(y);
    graph.into_model().unwrap()
}

/// A float vector of this length; 0 is unknown.
pub fn vector(length: u32) -> OperandSpec {
    OperandSpec::tensor_float32([length])
}

/// One input of two floats, and `length` bytes for the output.
pub fn request_with_room(length: usize) -> Request {
    let mut request = RequestBuilder::new();
    request.input(&[0; 8]).output(length);
    request.build().unwrap()
}

/// Executes without any wish.
pub fn execute(
    prepared: &dyn PreparedModel,
    request: &Request,
) -> Result<Execution, ExecutionError> {
    prepared.execute(request, &ExecutionOptions::default())
}

pub fn shape(dimensions: &[u32], is_sufficient: bool) -> OutputShape {
    OutputShape { dimensions: dimensions.to_vec(), is_sufficient }
}

/// The status of a failure that comes without shapes, as all but one do (GEN-3).
pub fn bare_status(result: Result<Execution, ExecutionError>) -> ErrorStatus {
    let failed = result.expect_err("a failure");
    assert_eq!(failed.output_shapes, []);
    failed.error.status()
}
