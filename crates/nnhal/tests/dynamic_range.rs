//! Layers of floats with 8-bit weights, on devices that have the operation for them and on one that has not.

use nnhal::graph::{
    BuiltinOperator, BuiltinOptions, Constant, Graph, Operator, QuantizationParameters, Tensor,
    TensorType,
};
use nnhal::hal::{
    self, Device, HalVersion, OperationType as O, PrepareOptions, PreparedModel, Support,
};
use nnhal::tflite::is_dynamic_range;
use nnhal::{Model, Session, SessionOptions};
use nnhal_driver::{Budget, CompileOptions, DriverDevice, Engine, EngineError, OperationPlace};
use nnhal_ops::ValidModel;
use nnhal_reference::{InterpretedProgram, ReferenceEngine};
use std::sync::Arc;

/// The reference engine without extensions.
struct Plain(ReferenceEngine);

impl Engine for Plain {
    type Program = InterpretedProgram;

    fn name(&self) -> &str {
        "test-plain"
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

    fn supports(&self, model: &ValidModel, place: OperationPlace) -> Support {
        match place.operation_type {
            O::Extension(_) => Support::No("it has no extensions".to_owned()),
            _ => self.0.supports(model, place),
        }
    }

    fn compile(
        &self,
        model: &ValidModel,
        options: &CompileOptions,
        budget: &Budget,
    ) -> Result<InterpretedProgram, EngineError> {
        self.0.compile(model, options, budget)
    }
}

/// The reference device, as an interface from before extensions has it.
struct Old(Arc<dyn Device>);

impl Old {
    fn check(model: &hal::Model) -> hal::Result<()> {
        match model.extension_name_to_prefix.is_empty() {
            true => Ok(()),
            false => Err(hal::Error::invalid("extensions came with 1.2")),
        }
    }
}

impl Device for Old {
    fn name(&self) -> &str {
        "test-old"
    }

    fn version_string(&self) -> String {
        self.0.version_string()
    }

    fn device_type(&self) -> hal::DeviceType {
        self.0.device_type()
    }

    fn capabilities(&self) -> hal::Capabilities {
        self.0.capabilities()
    }

    fn supported_operations(
        &self,
        model: &hal::Model,
        version: HalVersion,
    ) -> hal::Result<Vec<Support>> {
        Self::check(model).and_then(|()| self.0.supported_operations(model, version))
    }

    fn prepare_model(
        &self,
        model: &hal::Model,
        version: HalVersion,
        options: PrepareOptions,
    ) -> hal::Result<Arc<dyn PreparedModel>> {
        Self::check(model).and_then(|()| self.0.prepare_model(model, version, options))
    }
}

fn plain() -> SessionOptions {
    SessionOptions::new().on(Arc::new(DriverDevice::new(Plain(ReferenceEngine::new()))))
}

fn tensor(of_type: TensorType, shape: [i32; 2]) -> Tensor {
    let type_ = of_type as i8;
    Tensor { shape: Some(shape.to_vec()), type_, has_rank: true, ..Tensor::default() }
}

/// Two units of three inputs, whose scales are 0.5 and 0.25; any number of rows.
fn layer() -> Model {
    let mut graph = Graph::new();
    let open = |width| Tensor {
        shape_signature: Some(vec![-1, width]),
        ..tensor(TensorType::Float32, [1, width])
    };
    let (x, y) = (graph.tensor(open(3)), graph.tensor(open(2)));
    let quantization = QuantizationParameters {
        scale: Some(vec![0.5, 0.25]),
        zero_point: Some(vec![0, 0]),
        ..QuantizationParameters::default()
    };
    let weights =
        Tensor { quantization: Some(Box::new(quantization)), ..tensor(TensorType::Int8, [2, 3]) };
    let weights = graph.constant(weights, Constant::Bytes(vec![1, 2, 3, 4, 5, 6]));
    let layer = Operator {
        inputs: Some(vec![x, weights, -1]),
        outputs: Some(vec![y]),
        builtin_options: Some(BuiltinOptions::FullyConnectedOptions(Box::default())),
        ..Operator::default()
    };
    graph.operator(BuiltinOperator::FullyConnected as i32, None, 1, layer);
    graph.ends(vec![x], vec![y]);
    Model::from_graph(graph, None).unwrap()
}

fn is_rounded(session: &Session) -> bool {
    let mut operations = session.model().hal().main.operations.iter();
    operations.any(|it| is_dynamic_range(it.operation_type))
}

fn outputs(session: &Session, rows: &[[f32; 3]]) -> Vec<f32> {
    let input = nnhal::Tensor::new([rows.len(), 3], rows.as_flattened()).unwrap();
    session.run([&input]).unwrap()[0].to_f32()
}

const ROW: [f32; 3] = [0.104, 1.553, -0.997];
/// The row's range is 2.55, so that its elements become 10, 155 and -100 hundredths.
const ROUNDED: [f32; 2] = [0.5 * (0.1 + 3.1 - 3.0), 0.25 * (0.4 + 7.75 - 6.0)];
const EXACT: [f32; 2] = [0.5 * (0.104 + 3.106 - 2.991), 0.25 * (0.416 + 7.765 - 5.982)];

fn assert_near(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-5, "{found} and not {expected}");
    }
}

#[test]
fn inputs_are_rounded_where_the_device_can_and_not_where_it_cannot() {
    let model = layer();
    for device in ["nnhal-cpu", "nnhal-reference"] {
        let session = model.session(SessionOptions::new().device(device)).unwrap();
        assert!(is_rounded(&session), "{device}");
        assert_near(&outputs(&session, &[ROW]), &ROUNDED);
    }
    let old = SessionOptions::new().on(Arc::new(Old(nnhal_reference::device())));
    for options in [plain(), old] {
        let session = model.session(options).unwrap();
        assert!(!is_rounded(&session));
        assert_near(&outputs(&session, &[ROW]), &EXACT);
        // For other shapes too.
        assert_near(&outputs(&session, &[ROW, ROW]), &[EXACT, EXACT].concat());
    }
}

#[test]
fn who_asks_for_dequantized_weights_gets_them_for_all_shapes() {
    let model = layer().with_dequantized_weights().unwrap();
    let session = model.session(SessionOptions::new()).unwrap();
    assert!(!is_rounded(&session));
    assert_near(&outputs(&session, &[ROW]), &EXACT);
    assert_near(&outputs(&session, &[ROW, ROW]), &[EXACT, EXACT].concat());
}

#[test]
fn a_cache_keeps_both() {
    let folder = tempfile::tempdir().unwrap();
    let options = || SessionOptions::new().cache_dir(folder.path());
    let (rounded, exact) = (layer(), layer().with_dequantized_weights().unwrap());
    for is_from_cache in [false, true] {
        for (model, expected) in [(&rounded, ROUNDED), (&exact, EXACT)] {
            let session = model.session(options()).unwrap();
            assert_eq!(session.is_from_cache(), is_from_cache);
            assert_near(&outputs(&session, &[ROW]), &expected);
        }
    }
}
