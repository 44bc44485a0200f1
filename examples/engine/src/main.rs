//! An engine of one's own, and how it is judged:
//!
//! ```text
//! cargo run --release -p engine
//! ```
//!
//! The engine clamps: it runs models that are chains of RELU, RELU1 and RELU6 of float32, each as one
//! pair of limits. That is all it has to say; the driver around it validates models, checks requests,
//! keeps deadlines and reports shapes. Its results are compared with those of `nnhal-reference`, on
//! values of which some are not numbers. `nnhal conformance` has the vectors and contract checks that
//! judge whole drivers.
#![allow(clippy::print_stdout, clippy::print_stderr)] // What it is for.

use nnhal::compare::{Tolerance, difference};
use nnhal::{DataType, Model, SessionOptions, Tensor};
use nnhal_driver::{
    Bindings, Budget, CompileOptions, DriverDevice, Engine, EngineError, OperationPlace, Program,
    RunContext,
};
use nnhal_hal::{
    Capabilities, DeviceType, OperandSpec, OperandType, OperationType, PerformanceInfo,
    SubgraphBuilder, Support,
};
use nnhal_ops::ValidModel;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

/// The engine.
struct Clamping;

/// What it makes of a model.
struct Clamp {
    least: f32,
    greatest: f32,
}

/// The limits of an operation, if it is one of those.
fn limits(operation: OperationType) -> Option<(f32, f32)> {
    match operation {
        OperationType::Relu => Some((0.0, f32::INFINITY)),
        OperationType::Relu1 => Some((-1.0, 1.0)),
        OperationType::Relu6 => Some((0.0, 6.0)),
        _ => None,
    }
}

impl Engine for Clamping {
    type Program = Clamp;

    fn name(&self) -> &str {
        "example-clamping"
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

    /// An operation of a chain takes what the one before gives; the first one takes the only input.
    fn supports(&self, model: &ValidModel, place: OperationPlace) -> Support {
        let main = model.main();
        let operation = &main.operations[place.index];
        if limits(operation.operation_type).is_none() {
            return Support::No(format!("{} does not clamp", operation.operation_type));
        }
        let input = operation.inputs[0];
        if main.operands[input as usize].operand_type != OperandType::TensorFloat32 {
            return Support::No("only float32 is clamped".to_owned());
        }
        let before = match place.index.checked_sub(1) {
            Some(before) => &main.operations[before].outputs,
            None => &main.inputs,
        };
        let is_chain = main.inputs.len() == 1 && before == &[input] && main.outputs.len() == 1;
        if is_chain { Support::Yes } else { Support::No("the model is no chain".to_owned()) }
    }

    fn compile(
        &self,
        model: &ValidModel,
        _: &CompileOptions,
        _: &Budget,
    ) -> Result<Clamp, EngineError> {
        let chain = model.main().operations.iter();
        let all = chain.filter_map(|operation| limits(operation.operation_type));
        let start = Clamp { least: f32::NEG_INFINITY, greatest: f32::INFINITY };
        // To clamp twice is to clamp once, to what the second one makes of the first one's limits.
        Ok(all.fold(start, |before, (least, greatest)| Clamp {
            least: before.least.clamp(least, greatest),
            greatest: before.greatest.clamp(least, greatest),
        }))
    }
}

impl Program for Clamp {
    fn run(&self, bindings: &Bindings, context: &RunContext<'_>) -> Result<(), EngineError> {
        context.budget.check()?;
        let input = &bindings.inputs()[0];
        let Some(value) = input.value() else {
            return Err(nnhal_hal::Error::invalid("the input is left out").into());
        };
        let mut bytes = value.read_to_vec()?;
        for element in bytes.as_chunks_mut().0 {
            let clamped = f32::from_le_bytes(*element).clamp(self.least, self.greatest);
            *element = clamped.to_le_bytes();
        }
        let dimensions = input.shape().to_known().unwrap_or_default();
        Ok(bindings.outputs()[0].deliver(&dimensions, &bytes)?)
    }
}

/// A chain of operations on vectors of any length.
fn chain(operations: &[OperationType]) -> nnhal::Result<Model> {
    let mut graph = SubgraphBuilder::new();
    let mut last = graph.input("x", OperandSpec::tensor_float32([0]));
    for operation in operations {
        last = graph.operation(*operation, [last], OperandSpec::tensor_float32([0]));
    }
    graph.output(last);
    Model::from_hal(graph.into_model()?)
}

/// What is wrong with the engine's results for a model, if anything is.
fn judge(model: &Model) -> nnhal::Result<Option<String>> {
    let device: Arc<dyn nnhal_hal::Device> = Arc::new(DriverDevice::new(Clamping));
    let judged = model.session(SessionOptions::new().on(device))?;
    let right = model.session(SessionOptions::new().device("nnhal-reference"))?;
    let values = [-7.0, -1.0, -0.5, -0.0, 0.5, 1.0, 5.9, 6.0, 7.0, f32::INFINITY, f32::NAN];
    let values = Tensor::new([values.len()], &values)?;
    let (expected, found) = (right.run([&values])?, judged.run([&values])?);
    if expected[0].shape() != found[0].shape() {
        return Ok(Some(format!("shape {:?}", found[0].shape())));
    }
    let exact = Tolerance { absolute: 0.0, relative: 0.0 };
    let [expected, found] = [&expected[0], &found[0]].map(Tensor::as_bytes);
    let differs = difference(DataType::Float32, expected, found, exact);
    Ok(differs.map(|difference| difference.to_string()))
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    use OperationType::{Relu, Relu1, Relu6, Tanh};
    for operations in
        [&[Relu][..], &[Relu1], &[Relu6], &[Relu6, Relu1], &[Relu1, Relu6, Relu], &[Relu, Relu]]
    {
        let verdict = judge(&chain(operations)?)?;
        println!("{operations:?}: {}", verdict.as_deref().unwrap_or("as the reference"));
        if let Some(wrong) = verdict {
            return Err(wrong.into());
        }
    }
    let refused = judge(&chain(&[Relu, Tanh])?).err().ok_or("TANH was taken")?;
    println!("{refused}");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_engine_agrees_with_the_reference_and_refuses_the_rest() {
        super::run().unwrap();
    }
}
