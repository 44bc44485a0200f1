//! [`nnhal::compare`] with devices of which something is known to be wrong.

use nnhal::compare::{self, Comparison, Limits, Reason, Responsible};
use nnhal::hal::{self, HalVersion, OperandLifeTime, OperandType};
use nnhal::{Fill, Input, Model, Session, SessionOptions};
use nnhal_driver::{Budget, CompileOptions, DriverDevice, Engine, EngineError, OperationPlace};
use nnhal_ops::ValidModel;
use nnhal_reference::{InterpretedProgram, ReferenceEngine};
use std::sync::Arc;

/// The reference engine, but weights of one operation are changed.
struct Broken {
    inner: ReferenceEngine,
    /// Index of the operation.
    operation: usize,
    /// What becomes of each weight.
    factor: f32,
}

impl Broken {
    fn change(&self, model: &hal::Model) -> hal::Model {
        let mut changed = model.clone();
        let weights = model.main.operations[self.operation].inputs[1] as usize;
        let operand = &model.main.operands[weights];
        let location = operand.location;
        let mut bytes = match operand.lifetime {
            OperandLifeTime::ConstantCopy => model.operand_values[location.offset as usize..]
                [..location.length as usize]
                .to_vec(),
            OperandLifeTime::ConstantReference => {
                let view = model.pools[location.pool_index as usize].view().unwrap();
                view.read_to_vec(location.offset.into(), location.length.into()).unwrap()
            }
            other => panic!("weights are {other:?}"),
        };
        if operand.operand_type == OperandType::TensorFloat32 {
            for weight in bytes.as_chunks_mut::<4>().0 {
                *weight = (f32::from_ne_bytes(*weight) * self.factor).to_ne_bytes();
            }
        } else {
            bytes.iter_mut().for_each(|byte| *byte = byte.wrapping_add(64));
        }
        let mut values = changed.operand_values.to_vec();
        values.resize(values.len().next_multiple_of(4), 0);
        let operand = &mut changed.main.operands[weights];
        operand.lifetime = OperandLifeTime::ConstantCopy;
        operand.location.pool_index = 0;
        operand.location.offset = u32::try_from(values.len()).unwrap();
        values.extend(bytes);
        changed.operand_values = values.into();
        changed
    }
}

impl Engine for Broken {
    type Program = InterpretedProgram;

    fn name(&self) -> &str {
        "test-broken"
    }

    fn version_string(&self) -> String {
        "1".to_owned()
    }

    fn device_type(&self) -> hal::DeviceType {
        hal::DeviceType::Other
    }

    fn capabilities(&self) -> hal::Capabilities {
        hal::Capabilities::uniform(hal::PerformanceInfo::AS_CPU)
    }

    fn supports(&self, model: &ValidModel, place: OperationPlace) -> hal::Support {
        self.inner.supports(model, place)
    }

    fn compile(
        &self,
        model: &ValidModel,
        options: &CompileOptions,
        budget: &Budget,
    ) -> Result<InterpretedProgram, EngineError> {
        let changed = self.change(model.model());
        let changed = nnhal_ops::validate::validate(&changed, HalVersion::LATEST).unwrap();
        self.inner.compile(&changed, options, budget)
    }
}

fn digits(name: &str) -> Model {
    let assets = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/digits/");
    Model::load(format!("{assets}{name}")).unwrap()
}

fn compared(judge: &Session, judged: &Session) -> Comparison {
    let inputs = Fill::Random { seed: 3 }.inputs(judge.model(), &[]).unwrap();
    let inputs: Vec<Input<'_>> = inputs.iter().map(Input::from).collect();
    compare::run(judge, judged, &inputs, &Limits::default()).unwrap()
}

/// The same for a picture that the model is not sure about.
fn compared_in_doubt(judge: &Session, judged: &Session) -> Comparison {
    let inputs: [Input<'_>; 1] = [Input::from(&[0.1_f32; 64])];
    compare::run(judge, judged, &inputs, &Limits::default()).unwrap()
}

fn open(model: &Model, device: &str) -> Session {
    model.session(SessionOptions::new().device(device)).unwrap()
}

#[test]
fn a_step_with_wrong_weights_is_found_and_no_other() {
    for name in ["digits_float32.tflite", "digits_int8.tflite"] {
        let model = digits(name);
        for operation in [1, 3, 7, 10] {
            let broken = Broken { inner: ReferenceEngine::new(), operation, factor: 1.003 };
            let broken = SessionOptions::new().on(Arc::new(DriverDevice::new(broken)));
            let broken = model.session(broken).unwrap();
            for judge in ["nnhal-reference", "nnhal-cpu"] {
                let judge = open(&model, judge);
                let found = compared_in_doubt(&judge, &broken);
                assert!(!found.agree(), "{name} {operation}: {:?}", found.outputs);
                let responsible = found.responsible(&broken);
                assert!(
                    matches!(&responsible, Responsible::Step { step, operations: 1 }
                        if step.place.index == operation),
                    "{name} {operation}: {responsible:?}"
                );
                let other = found.responsible_of_judge(&judge);
                assert!(matches!(other, Responsible::NoStep { judged: 8.., .. }), "{other:?}");
            }
        }
    }
}

#[test]
fn a_wrong_step_is_found_where_outputs_hide_it() {
    // The model is so sure of these pictures that other weights do not change what it says.
    let model = digits("digits_float32.tflite");
    let broken = Broken { inner: ReferenceEngine::new(), operation: 3, factor: 1.003 };
    let broken = SessionOptions::new().on(Arc::new(DriverDevice::new(broken)));
    let broken = model.session(broken).unwrap();
    let found = compared(&open(&model, "nnhal-reference"), &broken);
    assert!(found.agree(), "{:?}", found.outputs);
    assert!(found.steps_differ());
    assert!(matches!(
        found.responsible(&broken),
        Responsible::Step { step, .. } if step.place.index == 3
    ));
    let right = compared(&open(&model, "nnhal-reference"), &open(&model, "nnhal-cpu"));
    assert!(!right.steps_differ());
}

#[test]
fn weights_that_are_rounded_otherwise_are_no_difference() {
    let model = digits("digits_float32.tflite");
    let broken = Broken { inner: ReferenceEngine::new(), operation: 1, factor: 1.0 + f32::EPSILON };
    let other = SessionOptions::new().on(Arc::new(DriverDevice::new(broken)));
    let found = compared(&open(&model, "nnhal-reference"), &model.session(other).unwrap());
    assert!(found.agree());
    assert!(found.outputs[0].distance.unwrap().largest > 0.0, "they are not the same");
    assert!(matches!(found.outputs[0].allowed.reason, Reason::Floats { depth: 10, .. }));
}

/// Two large products whose sum is small.
fn cancelling() -> Model {
    use hal::{OperandSpec, OperationType, SubgraphBuilder};
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([1, 512]));
    let weights: Vec<f32> = (0_u16..512)
        .map(|index| {
            let size = 1e3 + f32::from(index % 256) * 0.37;
            if index < 256 { size } else { -size }
        })
        .collect();
    let w = graph.constant(OperandSpec::tensor_float32([1, 512]), &weights);
    let b = graph.constant(OperandSpec::tensor_float32([1]), &[0.25_f32]);
    let none = graph.scalar_i32(0);
    let y = graph.operation(
        OperationType::FullyConnected,
        [x, w, b, none],
        OperandSpec::tensor_float32([1, 1]),
    );
    graph.output(y);
    Model::from_hal(graph.into_model().unwrap()).unwrap()
}

#[test]
fn what_cancels_may_be_off_by_what_roundings_of_weights_change() {
    let model = cancelling();
    let (judge, judged) = (open(&model, "nnhal-reference"), open(&model, "nnhal-cpu"));
    let ones: Vec<f32> = (0_u16..512).map(|it| 1.0 + f32::from(it % 256) * 1e-3).collect();
    let inputs: [Input<'_>; 1] = [Input::from(&ones)];
    let found = compare::run(&judge, &judged, &inputs, &Limits::default()).unwrap();
    assert!(found.agree(), "{found:?}");
    let off = found.outputs[0].distance.unwrap();
    assert!(off.of_magnitude() > 1e-6, "more than roundings of the result: {off:?}");
    assert!(matches!(found.outputs[0].allowed.reason, Reason::Floats { noise: Some(_), .. }));
}

/// A layer of one unit over ones.
fn layer(width: u16) -> Model {
    use hal::{OperandSpec, OperationType, SubgraphBuilder};
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([1, width.into()]));
    let weights = vec![1.0_f32; width.into()];
    let w = graph.constant(OperandSpec::tensor_float32([1, width.into()]), &weights);
    let b = graph.constant(OperandSpec::tensor_float32([1]), &[0.0_f32]);
    let none = graph.scalar_i32(0);
    let spec = OperandSpec::tensor_float32([1, 1]);
    let y = graph.operation(OperationType::FullyConnected, [x, w, b, none], spec);
    graph.output(y);
    Model::from_hal(graph.into_model().unwrap()).unwrap()
}

#[test]
fn sums_of_many_products_may_round_more_often() {
    let allowed = |width: u16| {
        let model = layer(width);
        let ones = vec![1.0_f32; width.into()];
        let (judge, judged) = (open(&model, "nnhal-reference"), open(&model, "nnhal-cpu"));
        let found = compare::run(&judge, &judged, &[Input::from(&ones)], &Limits::default());
        found.unwrap().outputs.remove(0).allowed
    };
    for (width, expected) in [(16, 16.0), (64, 16.0), (256, 32.0), (4096, 128.0)] {
        let allowed = allowed(width);
        let of_magnitude = allowed.tolerance.absolute / f64::from(width) * 2_f64.powi(24);
        assert!((of_magnitude - expected).abs() < 1e-9, "{width}: {allowed}");
        let products = usize::from(width);
        assert!(
            matches!(allowed.reason, Reason::Floats { products: found, .. } if found == products)
        );
        assert!(allowed.to_string().contains(&format!("{expected:.0} roundings")), "{allowed}");
    }
}

#[test]
fn tolerances_say_where_they_come_from() {
    let float = compared(
        &open(&digits("digits_float32.tflite"), "nnhal-reference"),
        &open(&digits("digits_float32.tflite"), "nnhal-cpu"),
    );
    let said = float.outputs[0].allowed.to_string();
    assert!(said.contains("float32, 10 operations deep"), "{said}");
    let quantized = compared(
        &open(&digits("digits_int8.tflite"), "nnhal-reference"),
        &open(&digits("digits_int8.tflite"), "nnhal-cpu"),
    );
    assert_eq!(quantized.outputs[0].allowed.to_string(), "3 steps: quantized, 10 operations deep");
}
