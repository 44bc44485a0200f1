//! Valid models of many kinds, for tests that break them.

#![allow(dead_code)] // Each test crate uses what it needs.

use nnhal_hal::{
    ExtensionType, HalVersion, Memory, Model, ModelBuilder, OperandId, OperandSpec, OperandType,
    OperationType, SubgraphBuilder,
};

/// A valid model.
pub struct Sample {
    /// What it is about.
    pub name: &'static str,
    /// The model.
    pub model: Model,
    /// The oldest version for which it is valid.
    pub version: HalVersion,
    /// Operands of the main subgraph, and types that they may have as well, all else unchanged.
    pub alternatives: Vec<(usize, OperandType)>,
}

/// All of them.
pub fn all() -> Vec<Sample> {
    let sample = |name, version, model| Sample { name, model, version, alternatives: Vec::new() };
    vec![
        sample("chain of floats", HalVersion::V1_0, chain()),
        sample("convolution", HalVersion::V1_0, convolution()),
        sample("convolution by channel", HalVersion::V1_2, convolution_by_channel()),
        Sample {
            alternatives: vec![
                (0, OperandType::TensorFloat16),
                (0, OperandType::TensorInt32),
                (0, OperandType::TensorQuant8Asymm),
                (1, OperandType::TensorFloat16),
                (1, OperandType::TensorFloat32),
                (1, OperandType::TensorQuant8Asymm),
            ],
            ..sample("cast", HalVersion::V1_2, cast())
        },
        sample("constants in pools", HalVersion::V1_1, constants_in_pools()),
        sample("unknown shapes", HalVersion::V1_2, unknown_shapes()),
        sample("extension", HalVersion::V1_2, extension()),
        sample("branches", HalVersion::V1_3, branches()),
        sample("loop", HalVersion::V1_3, rounds()),
    ]
}

fn float(dimensions: impl Into<Vec<u32>>) -> OperandSpec {
    OperandSpec::tensor_float32(dimensions)
}

fn truth() -> OperandSpec {
    OperandSpec::tensor_bool8([1])
}

/// `MUL(RELU(x), ADD(x, c))`, with the RELU as second output.
fn chain() -> Model {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", float([2, 3]));
    let constant = graph.constant(float([3]), &[1.0_f32, 2.0, 3.0]);
    let none = graph.scalar_i32(0);
    let relu = graph.operation(OperationType::Relu, [x], float([2, 3]));
    let sum = graph.operation(OperationType::Add, [x, constant, none], float([2, 3]));
    let product = graph.operation(OperationType::Mul, [relu, sum, none], float([2, 3]));
    graph.output(product);
    graph.output(relu);
    graph.into_model().unwrap()
}

fn convolve(filter: OperandSpec, filter_bytes: &[u8], trailing: bool) -> Model {
    let quant = |dimensions: [u32; 4]| OperandSpec::tensor_quant8_asymm(dimensions, 0.5, 128);
    let mut graph = SubgraphBuilder::new();
    let image = graph.input("image", quant([1, 6, 6, 1]));
    let bias_scale = if filter.scale == 0.0 { 0.0 } else { 0.5 * filter.scale };
    let filter = graph.constant_bytes(filter, filter_bytes);
    let bias = graph.constant(OperandSpec::tensor_int32([2]).quantized(bias_scale, 0), &[1_i32, 2]);
    let mut inputs = vec![image, filter, bias];
    inputs.extend([1, 1, 1, 1, 2, 2, 3].map(|value| graph.scalar_i32(value)));
    if trailing {
        inputs.push(graph.scalar_bool(false));
        inputs.extend([1, 1].map(|value| graph.scalar_i32(value)));
    }
    let output = quant([1, 3, 3, 2]).quantized(4.0, 0);
    let y = graph.operation(OperationType::Conv2d, &inputs, output);
    let z = graph.operation(OperationType::Relu6, [y], quant([1, 3, 3, 2]).quantized(4.0, 0));
    graph.output(z);
    graph.into_model().unwrap()
}

fn convolution() -> Model {
    convolve(OperandSpec::tensor_quant8_asymm([2, 3, 3, 1], 0.25, 1), &[3; 18], false)
}

fn convolution_by_channel() -> Model {
    let filter = OperandSpec::tensor_quant8_symm_per_channel([2, 3, 3, 1], &[0.25, 0.5], 0);
    convolve(filter, &[3; 18], true)
}

fn cast() -> Model {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", float([2, 3]));
    let y = graph.operation(OperationType::Cast, [x], OperandSpec::tensor_int32([2, 3]));
    graph.output(y);
    graph.into_model().unwrap()
}

fn constants_in_pools() -> Model {
    let mut builder = ModelBuilder::new();
    let weights = builder.pool(Memory::from_bytes(&[0; 32]).unwrap());
    let parameters = builder.pool(Memory::from_bytes(&[0; 7]).unwrap());
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", float([2, 4]));
    let weight = graph.constant_in_pool(float([2, 4]), weights, 0, 32);
    let row = graph.constant_in_pool(float([4]), weights, 5, 16);
    let none = graph.constant_in_pool(OperandSpec::scalar(OperandType::Int32), parameters, 3, 4);
    let difference = graph.operation(OperationType::Sub, [x, weight, none], float([2, 4]));
    let quotient = graph.operation(OperationType::Div, [difference, row, none], float([2, 4]));
    graph.output(quotient);
    builder.relaxed(true).build(graph).unwrap()
}

fn unknown_shapes() -> Model {
    let half = |dimensions: &[u32]| OperandSpec::tensor_float16(dimensions);
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", half(&[0, 3]));
    let y = graph.input("y", half(&[]));
    let activation = graph.input("activation", OperandSpec::scalar(OperandType::Int32));
    let sum = graph.operation(OperationType::Add, [x, y, activation], half(&[]));
    let relu = graph.operation(OperationType::Relu1, [sum], half(&[0, 0]));
    graph.output(relu);
    graph.into_model().unwrap()
}

/// Operations of two extensions and one of the interface's, with an argument left out.
fn extension() -> Model {
    let operand_type = |number| OperandType::Extension(ExtensionType::new(0x10, number).unwrap());
    let operation = |prefix| OperationType::Extension(ExtensionType::new(prefix, 1).unwrap());
    let mut builder = ModelBuilder::new();
    builder.extension("com.example.first", 0x10);
    builder.extension("com.example.second", 0x11);
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::new(operand_type(1), [2, 2]));
    let parameter = graph.constant_bytes(OperandSpec::new(operand_type(2), []), &[1, 2, 3]);
    let nothing = graph.omitted(float([2]));
    let y = graph.operation(operation(0x10), [x, parameter, nothing], float([2, 2]));
    let z = graph.operation(OperationType::Tanh, [y], float([2, 2]));
    let result = graph.operation(operation(0x11), [z], OperandSpec::new(operand_type(1), []));
    graph.output(result);
    builder.build(graph).unwrap()
}

fn branch(operation: OperationType) -> SubgraphBuilder {
    let mut graph = SubgraphBuilder::new();
    let a = graph.input("a", float([2]));
    let b = graph.input("b", float([2]));
    let none = graph.scalar_i32(0);
    let y = graph.operation(operation, [a, b, none], float([2]));
    let z = graph.operation(OperationType::Relu, [y], float([2]));
    graph.output(z);
    graph.output(y);
    graph
}

fn branches() -> Model {
    let mut builder = ModelBuilder::new();
    let then = builder.reference(branch(OperationType::Add));
    let otherwise = builder.reference(branch(OperationType::Sub));
    let mut main = SubgraphBuilder::new();
    let condition = main.input("condition", truth());
    let a = main.input("a", float([2]));
    let b = main.constant(float([2]), &[1.0_f32, 2.0]);
    let (then, otherwise) = (main.subgraph(then), main.subgraph(otherwise));
    let [y, z] = main.operation_with_outputs(
        OperationType::If,
        [condition, then, otherwise, a, b],
        [float([2]), float([2])],
    );
    let none = main.scalar_i32(0);
    let product = main.operation(OperationType::Mul, [y, z, none], float([2]));
    main.output(product);
    builder.build(main).unwrap()
}

/// One value that comes out, one that only goes on from round to round, one that never changes.
fn rounds() -> Model {
    let arguments = |graph: &mut SubgraphBuilder| -> Vec<OperandId> {
        (0..3).map(|_| graph.input("x", float([2]))).collect()
    };
    let mut condition = SubgraphBuilder::new();
    let inputs = arguments(&mut condition);
    let none = condition.scalar_i32(0);
    condition.operation(OperationType::Add, [inputs[0], inputs[1], none], float([2]));
    let decides = condition.constant(truth(), &[false]);
    // Whatever gives a truth value: the decision is copied by an IF.
    let mut copy = SubgraphBuilder::new();
    let value = copy.input("x", truth());
    let constant = copy.constant(truth(), &[true]);
    let result = copy.operation(OperationType::LogicalAnd, [value, constant], truth());
    copy.output(result);

    let mut builder = ModelBuilder::new();
    let copy = builder.reference(copy);
    let copy = condition.subgraph(copy);
    let again = condition.operation(OperationType::If, [decides, copy, copy, decides], truth());
    condition.output(again);

    let mut body = SubgraphBuilder::new();
    let inputs = arguments(&mut body);
    let none = body.scalar_i32(0);
    let sum = body.operation(OperationType::Add, [inputs[0], inputs[2], none], float([2]));
    let difference = body.operation(OperationType::Sub, [inputs[1], inputs[2], none], float([2]));
    body.output(sum);
    body.output(difference);

    let (condition, body) = (builder.reference(condition), builder.reference(body));
    let mut main = SubgraphBuilder::new();
    let mut inputs = vec![main.subgraph(condition), main.subgraph(body)];
    inputs.extend(arguments(&mut main));
    let y = main.operation(OperationType::While, &inputs, float([2]));
    main.output(y);
    builder.build(main).unwrap()
}
