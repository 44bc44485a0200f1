//! Why steps run reference kernels: a model for each reason, and the sentence that its plan shows.

use nnhal_cpu::{CpuEngine, Settings};
use nnhal_driver::{Budget, CompileOptions, Engine, Program};
use nnhal_hal::{
    ExecutionPreference, HalVersion, Model, ModelBuilder, OperandSpec, OperationType, Priority,
    SubgraphBuilder,
};
use nnhal_ops::extension::{self, ExtensionOperation};

fn floats(dimensions: &[u32]) -> OperandSpec {
    OperandSpec::tensor_float32(dimensions)
}

fn signed(dimensions: &[u32]) -> OperandSpec {
    OperandSpec::tensor_quant8_asymm_signed(dimensions, 0.5, 0)
}

/// The reasons that the plan of a model gives.
fn reasons(settings: Settings, model: &Model) -> Vec<String> {
    let model = nnhal_ops::validate(model, HalVersion::LATEST).unwrap();
    let options = CompileOptions {
        preference: ExecutionPreference::FastSingleAnswer,
        priority: Priority::Medium,
        hints: nnhal_hal::Hints::NONE,
    };
    let engine = CpuEngine::new(settings);
    let program = engine.compile(&model, &options, &Budget::unlimited()).unwrap();
    program.plan().into_iter().filter_map(|step| step.why_reference).collect()
}

/// The reason that a model gives, which is one.
fn reason(build: impl FnOnce(&mut SubgraphBuilder)) -> String {
    let mut graph = SubgraphBuilder::new();
    build(&mut graph);
    let mut model = ModelBuilder::new();
    model.extension(extension::NAME, extension::PREFIX);
    let reasons = reasons(Settings::default(), &model.build(graph).unwrap());
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    reasons.concat()
}

#[test]
fn an_operation_without_kernels_says_so() {
    let why = reason(|graph| {
        let heatmaps = graph.input("heatmaps", floats(&[1, 4, 4, 2]));
        let boxes = graph.input("boxes", floats(&[1, 4]));
        let nhwc = graph.scalar_bool(false);
        let outputs = [floats(&[1, 2]), floats(&[1, 2, 2])];
        let [scores, places] = graph.operation_with_outputs(
            OperationType::HeatmapMaxKeypoint,
            [heatmaps, boxes, nhwc],
            outputs,
        );
        graph.output(scores);
        graph.output(places);
    });
    assert_eq!(why, "no fast kernel for the operation");
}

#[test]
fn an_argument_of_another_type_is_named_with_what_kernels_take() {
    let why = reason(|graph| {
        let [x, y] = ["x", "y"].map(|name| graph.input(name, OperandSpec::tensor_int32([2, 2])));
        let plain = graph.scalar_bool(false);
        let product = graph.operation(
            OperationType::BatchMatmul,
            [x, y, plain, plain],
            OperandSpec::tensor_int32([2, 2]),
        );
        graph.output(product);
    });
    let expected = "type of output 0 (output) is TENSOR_INT32, expected floats or 8-bit integers";
    assert_eq!(why, expected);
}

#[test]
fn weights_from_the_request_are_named() {
    let why = reason(|graph| {
        let image = graph.input("image", floats(&[1, 2, 2, 1]));
        let filter = graph.input("filter", floats(&[1, 2, 2, 1]));
        let bias = graph.constant(floats(&[1]), &[0.0]);
        let lengths = graph.constant(OperandSpec::tensor_int32([4]), &[1, 4, 4, 1]);
        let [same, two, none] = [1, 2, 0].map(|number| graph.scalar_i32(number));
        let nhwc = graph.scalar_bool(false);
        let large = graph.operation(
            OperationType::TransposeConv2d,
            [image, filter, bias, lengths, same, two, two, none, nhwc],
            floats(&[1, 4, 4, 1]),
        );
        graph.output(large);
    });
    assert_eq!(why, "input 1 (filter) is not constant");
}

#[test]
fn images_with_channels_first_that_no_pass_turns_are_named() {
    let why = reason(|graph| {
        let images = graph.input("images", floats(&[1, 2, 8, 8]));
        let regions = graph.input("regions", floats(&[1, 4]));
        let batch = graph.input("batch", OperandSpec::tensor_int32([1]));
        let [two, samples] = [2, 0].map(|number| graph.scalar_i32(number));
        let one = graph.scalar_f32(1.0);
        let nchw = graph.scalar_bool(true);
        let aligned = graph.operation(
            OperationType::RoiAlign,
            [images, regions, batch, two, two, one, one, samples, samples, nchw],
            floats(&[1, 2, 2, 2]),
        );
        graph.output(aligned);
    });
    assert_eq!(why, "layout of images is NCHW, expected NHWC");
}

#[test]
fn an_argument_without_elements_is_named() {
    let why = reason(|graph| {
        let x = graph.input("x", signed(&[2, 3]));
        let [from, to, by] = [[0, 1], [2, 1], [1, 1]]
            .map(|numbers| graph.constant(OperandSpec::tensor_int32([2]), &numbers));
        let none = graph.scalar_i32(0);
        let inputs = [x, from, to, by, none, none, none];
        let empty = graph.operation(OperationType::StridedSlice, inputs, signed(&[2, 0]));
        let last = graph.constant(OperandSpec::tensor_int32([1]), &[1]);
        let kept = graph.scalar_bool(true);
        let greatest =
            graph.operation(OperationType::ReduceMax, [empty, last, kept], signed(&[2, 1]));
        graph.output(greatest);
    });
    assert_eq!(why, "a length of input 0 (input) is 0");
}

#[test]
fn a_limit_is_given_with_what_there_is() {
    let why = reason(|graph| {
        // Of an image with a border: one that consists of blocks is a single copy.
        let image = graph.input("image", floats(&[1, 16, 17, 1]));
        let size = graph.constant(OperandSpec::tensor_int32([2]), &[17, 17]);
        let borders = graph.constant(OperandSpec::tensor_int32([2, 2]), &[1, 0, 0, 0]);
        let cut = graph.operation(
            OperationType::SpaceToBatchNd,
            [image, size, borders],
            floats(&[17 * 17, 1, 1, 1]),
        );
        graph.output(cut);
    });
    assert_eq!(why, "number of elements of a block is 289, expected 256 at most");
}

#[test]
fn a_form_is_given_with_what_kernels_take() {
    let why = reason(|graph| {
        let image = graph.input("image", floats(&[1, 1, 1, 1]));
        let filter = graph.constant(floats(&[1, 64, 64, 1]), &[0.5; 64 * 64]);
        let bias = graph.constant(floats(&[1]), &[0.0]);
        let [same, one, none] = [1, 1, 0].map(|number| graph.scalar_i32(number));
        let inputs = [image, filter, bias, same, one, one, none];
        let sum = graph.operation(OperationType::Conv2d, inputs, floats(&[1, 1, 1, 1]));
        graph.output(sum);
    });
    assert_eq!(why, "the filter is mostly over padding, expected mostly over images");
}

#[test]
fn an_integer_operation_that_only_tables_compute_says_what_is_missing() {
    let why = reason(|graph| {
        let [x, y] = ["x", "y"].map(|name| graph.input(name, signed(&[2, 2])));
        let power =
            graph.operation(ExtensionOperation::Pow.operation_type(), [x, y], signed(&[2, 2]));
        graph.output(power);
    });
    assert_eq!(
        why,
        "one of the operands is not a constant of one element, expected such a constant"
    );
}

#[test]
fn a_pass_that_is_switched_off_is_named() {
    let mut graph = SubgraphBuilder::new();
    let mut x = graph.input("x", floats(&[2, 3]));
    let lengths = graph.constant(OperandSpec::tensor_int32([2]), &[3, 2]);
    x = graph.operation(OperationType::Reshape, [x, lengths], floats(&[3, 2]));
    x = graph.operation(OperationType::Tanh, [x], floats(&[3, 2]));
    graph.output(x);
    let model = graph.into_model().unwrap();
    let reasons_without = |off: &str| {
        reasons(Settings { passes: off.parse().unwrap(), ..Settings::default() }, &model)
    };
    assert!(reasons_without("").is_empty());
    assert_eq!(reasons_without("views"), ["pass views is switched off"]);
    assert_eq!(reasons_without("chains"), ["pass chains is switched off"]);
    assert_eq!(reasons_without("views,chains").len(), 2);
}
