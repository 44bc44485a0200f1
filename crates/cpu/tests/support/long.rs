//! Models of any number of operations of one kind, to see how preparing grows with it.
#![allow(dead_code)] // Every program uses a part.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // Lengths are small.

use nnhal_hal::{
    Model, ModelBuilder, OperandId, OperandSpec, OperandType, OperationType as O, Request,
    RequestBuilder, SubgraphBuilder,
};

/// A kind of model.
pub struct Kind {
    /// What there is much of.
    pub name: &'static str,
    /// A model of about this many operations.
    pub model: fn(usize) -> Model,
}

/// All kinds.
pub const KINDS: &[Kind] = &[
    Kind { name: "TANHs in a row", model: |n| chain(n, &[O::Tanh]) },
    Kind { name: "RELU and TANH by turns", model: |n| chain(n, &[O::Relu, O::Tanh]) },
    Kind { name: "ADDs in a row", model: adds },
    Kind { name: "ADDs of a value to itself", model: |n| doubled(n, O::Add, O::Add) },
    Kind { name: "LOGISTICs of sums and products", model: |n| doubled(n, O::Mul, O::Logistic) },
    Kind { name: "TRANSPOSEs in a row", model: transposes },
    Kind { name: "TRANSPOSEs of one input", model: transposes_of_one },
    Kind { name: "RESHAPEs in a row", model: reshapes },
    Kind { name: "CONCATENATIONs of one view", model: concatenations_of_views },
    Kind { name: "CONCATENATION of all", model: concatenation },
    Kind { name: "CONCATENATIONs within each other", model: nested_concatenations },
    Kind { name: "SPLIT into all", model: split },
    Kind { name: "SPLIT into all products", model: split_products },
    Kind { name: "inputs", model: inputs },
    Kind { name: "outputs", model: outputs },
    Kind { name: "values that are needed late", model: late },
    Kind { name: "a WHILE in the middle", model: around_while },
    Kind { name: "WHILEs and ADDs by turns", model: whiles },
    Kind { name: "IFs", model: ifs },
    Kind { name: "RESHAPEs by a request and TANHs", model: data_decide },
    Kind { name: "8-bit RELUs in a row", model: quantized_chain },
    Kind { name: "8-bit ADDs in a row", model: quantized_adds },
    Kind { name: "DEQUANTIZE and QUANTIZE by turns", model: requantized },
    Kind { name: "CONV_2Ds", model: |n| convolutions(n, false) },
    Kind { name: "CONV_2Ds of NCHW and SOFTMAXes", model: |n| convolutions(n, true) },
    Kind { name: "FULLY_CONNECTEDs", model: fully_connected },
    Kind { name: "BATCH_MATMULs", model: |n| products(n, 1) },
    Kind { name: "layer normalizations", model: normalizations },
    Kind { name: "constants that are folded", model: folded },
    Kind { name: "constants that share bytes", model: shared_constants },
    Kind { name: "PADs and reductions", model: pads },
];

/// Bytes of 1 for a model's inputs but shapes, and room for its outputs: all have few elements.
pub fn request(model: &Model) -> Request {
    let mut request = RequestBuilder::new();
    let bytes = |operand: &u32| {
        let operand = &model.main.operands[*operand as usize];
        let elements: u32 = operand.dimensions.iter().map(|length| (*length).max(1)).product();
        (elements * operand.operand_type.element_size().unwrap_or(1)) as usize
    };
    for input in &model.main.inputs {
        if model.main.operands[*input as usize].operand_type == OperandType::TensorInt32 {
            request.input(&1_i32.to_le_bytes());
        } else {
            request.input(&vec![1; bytes(input)]);
        }
    }
    for output in &model.main.outputs {
        request.output(bytes(output));
    }
    request.build().expect("sizes are plausible")
}

fn floats(dimensions: &[u32]) -> OperandSpec {
    OperandSpec::tensor_float32(dimensions)
}

fn bytes(dimensions: &[u32]) -> OperandSpec {
    OperandSpec::tensor_quant8_asymm(dimensions, 0.5, 3)
}

/// `next` is given the graph, what was computed last, and how many were before it.
fn in_a_row(
    n: usize,
    spec: OperandSpec,
    mut next: impl FnMut(&mut SubgraphBuilder, OperandId, usize) -> OperandId,
) -> Model {
    let mut graph = SubgraphBuilder::new();
    let mut x = graph.input("x", spec);
    for index in 0..n {
        x = next(&mut graph, x, index);
    }
    graph.output(x);
    graph.into_model().unwrap()
}

fn chain(n: usize, operations: &[O]) -> Model {
    in_a_row(n, floats(&[2, 3]), |graph, x, index| {
        graph.operation(operations[index % operations.len()], [x], floats(&[2, 3]))
    })
}

fn adds(n: usize) -> Model {
    let mut none = None;
    in_a_row(n, floats(&[4]), |graph, x, index| {
        let none = *none.get_or_insert_with(|| graph.scalar_i32(0));
        let y = graph.constant(floats(&[1]), &[index as f32]);
        graph.operation(O::Add, [x, y, none], floats(&[4]))
    })
}

/// Each value is read twice by the next one; in every eighth place stands a `gate`.
fn doubled(n: usize, operation: O, gate: O) -> Model {
    let mut none = None;
    in_a_row(n, floats(&[4]), |graph, x, index| {
        let none = *none.get_or_insert_with(|| graph.scalar_i32(0));
        if index % 8 == 7 && gate != operation {
            let opened = graph.operation(gate, [x], floats(&[4]));
            return graph.operation(O::Mul, [opened, x, none], floats(&[4]));
        }
        graph.operation(operation, [x, x, none], floats(&[4]))
    })
}

fn transposes(n: usize) -> Model {
    in_a_row(n, floats(&[3, 3]), |graph, x, _| {
        let order = graph.constant(OperandSpec::tensor_int32([2]), &[1, 0]);
        graph.operation(O::Transpose, [x, order], floats(&[3, 3]))
    })
}

fn transposes_of_one(n: usize) -> Model {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", floats(&[3, 2]));
    let order = graph.constant(OperandSpec::tensor_int32([2]), &[1, 0]);
    for _ in 0..n {
        let y = graph.operation(O::Transpose, [x, order], floats(&[2, 3]));
        graph.output(y);
    }
    graph.into_model().unwrap()
}

fn reshape(graph: &mut SubgraphBuilder, x: OperandId, lengths: &[u32]) -> OperandId {
    let shape: Vec<i32> = lengths.iter().map(|length| *length as i32).collect();
    let shape = graph.constant(OperandSpec::tensor_int32([lengths.len() as u32]), &shape);
    graph.operation(O::Reshape, [x, shape], floats(lengths))
}

fn reshapes(n: usize) -> Model {
    in_a_row(n, floats(&[6]), |graph, x, index| {
        reshape(graph, x, if index % 2 == 0 { &[2, 3] } else { &[6] })
    })
}

/// Half of them are RESHAPEs in a row, whose last one all the others read.
fn concatenations_of_views(n: usize) -> Model {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", floats(&[1, 6]));
    let mut x = graph.operation(O::Relu, [x], floats(&[1, 6]));
    for _ in 0..n / 2 {
        x = reshape(&mut graph, x, &[1, 6]);
    }
    let axis = graph.scalar_i32(0);
    for _ in 0..n / 2 {
        let y = graph.operation(O::Concatenation, [x, x, axis], floats(&[2, 6]));
        graph.output(y);
    }
    graph.into_model().unwrap()
}

fn concatenation(n: usize) -> Model {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", floats(&[1, 2]));
    let mut parts: Vec<OperandId> =
        (0..n).map(|_| graph.operation(O::Tanh, [x], floats(&[1, 2]))).collect();
    parts.push(graph.scalar_i32(0));
    let y = graph.operation(O::Concatenation, parts, floats(&[n as u32, 2]));
    graph.output(y);
    graph.into_model().unwrap()
}

/// One and one, of which one is cut off again.
fn nested_concatenations(n: usize) -> Model {
    let mut axis = None;
    in_a_row(n / 3, floats(&[1, 2]), |graph, x, _| {
        let axis = *axis.get_or_insert_with(|| graph.scalar_i32(0));
        let y = graph.operation(O::Neg, [x], floats(&[1, 2]));
        let both = graph.operation(O::Concatenation, [x, y, axis], floats(&[2, 2]));
        let pair = OperandSpec::tensor_int32([2]);
        let begin = graph.constant(pair.clone(), &[1, 0]);
        let size = graph.constant(pair, &[1, 2]);
        graph.operation(O::Slice, [both, begin, size], floats(&[1, 2]))
    })
}

fn split_into(graph: &mut SubgraphBuilder, n: usize, part: &[u32]) -> Vec<OperandId> {
    let whole = [&[n as u32][..], &part[1..]].concat();
    let x = graph.input("x", floats(&whole));
    let (axis, count) = (graph.scalar_i32(0), graph.scalar_i32(n as i32));
    let parts: Vec<OperandId> = (0..n).map(|_| graph.temporary(floats(part))).collect();
    graph.operation_into(O::Split, [x, axis, count], parts.clone());
    parts
}

fn split(n: usize) -> Model {
    let mut graph = SubgraphBuilder::new();
    for part in split_into(&mut graph, n / 2, &[1, 2]) {
        let y = graph.operation(O::Tanh, [part], floats(&[1, 2]));
        graph.output(y);
    }
    graph.into_model().unwrap()
}

fn split_products(n: usize) -> Model {
    let mut graph = SubgraphBuilder::new();
    let parts = split_into(&mut graph, n / 2, &[1, 2, 2]);
    let no = graph.scalar_bool(false);
    for pair in parts.chunks(2) {
        let inputs = [pair[0], pair[pair.len() - 1], no, no];
        let y = graph.operation(O::BatchMatmul, inputs, floats(&[1, 2, 2]));
        graph.output(y);
    }
    graph.into_model().unwrap()
}

fn inputs(n: usize) -> Model {
    let mut graph = SubgraphBuilder::new();
    let none = graph.scalar_i32(0);
    let inputs: Vec<OperandId> = (0..=n).map(|_| graph.input("", floats(&[2]))).collect();
    let mut x = inputs[0];
    for input in &inputs[1..] {
        x = graph.operation(O::Add, [x, *input, none], floats(&[2]));
    }
    graph.output(x);
    graph.into_model().unwrap()
}

fn outputs(n: usize) -> Model {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", floats(&[2]));
    for _ in 0..n {
        let y = graph.operation(O::Tanh, [x], floats(&[2]));
        graph.output(y);
    }
    graph.into_model().unwrap()
}

/// What is computed first is read last.
fn late(n: usize) -> Model {
    let mut graph = SubgraphBuilder::new();
    let mut x = graph.input("x", floats(&[2]));
    let none = graph.scalar_i32(0);
    let mut values = Vec::new();
    for _ in 0..n / 2 {
        let beta = graph.scalar_f32(1.0);
        x = graph.operation(O::Softmax, [x, beta], floats(&[2]));
        values.push(x);
    }
    for value in values.iter().rev() {
        x = graph.operation(O::Add, [x, *value, none], floats(&[2]));
    }
    graph.output(x);
    graph.into_model().unwrap()
}

/// A condition that is false at once, and a body.
fn never(builder: &mut ModelBuilder) -> [nnhal_hal::builder::SubgraphId; 2] {
    let mut condition = SubgraphBuilder::new();
    condition.input("x", floats(&[2]));
    let i = condition.input("i", OperandSpec::tensor_int32([1]));
    let zero = condition.constant(OperandSpec::tensor_int32([1]), &[0]);
    let is_less = condition.operation(O::Less, [i, zero], OperandSpec::tensor_bool8([1]));
    condition.output(is_less);
    let mut body = SubgraphBuilder::new();
    let x = body.input("x", floats(&[2]));
    body.input("i", OperandSpec::tensor_int32([1]));
    let y = body.operation(O::Tanh, [x], floats(&[2]));
    body.output(y);
    [builder.reference(condition), builder.reference(body)]
}

fn around_while(n: usize) -> Model {
    with_whiles(n, n / 2)
}

fn whiles(n: usize) -> Model {
    with_whiles(n, 1)
}

/// A WHILE after each group of this many operations.
fn with_whiles(n: usize, between: usize) -> Model {
    let mut builder = ModelBuilder::new();
    let [condition, body] = never(&mut builder);
    let mut main = SubgraphBuilder::new();
    let (condition, body) = (main.subgraph(condition), main.subgraph(body));
    let mut x = main.input("x", floats(&[2]));
    let i = main.input("i", OperandSpec::tensor_int32([1]));
    let none = main.scalar_i32(0);
    for index in 0..n {
        x = if index % (between + 1) == between {
            main.operation(O::While, [condition, body, x, i], floats(&[2]))
        } else {
            main.operation(O::Add, [x, x, none], floats(&[2]))
        };
    }
    main.output(x);
    builder.build(main).unwrap()
}

fn ifs(n: usize) -> Model {
    let mut builder = ModelBuilder::new();
    let [then, otherwise] = [O::Tanh, O::Relu].map(|operation| {
        let mut branch = SubgraphBuilder::new();
        let x = branch.input("x", floats(&[2]));
        let y = branch.operation(operation, [x], floats(&[2]));
        branch.output(y);
        builder.reference(branch)
    });
    let mut main = SubgraphBuilder::new();
    let (then, otherwise) = (main.subgraph(then), main.subgraph(otherwise));
    let mut x = main.input("x", floats(&[2]));
    let truth = main.input("truth", OperandSpec::tensor_bool8([1]));
    for _ in 0..n {
        x = main.operation(O::If, [truth, then, otherwise, x], floats(&[2]));
    }
    main.output(x);
    builder.build(main).unwrap()
}

/// Shapes that a request says, between operations of which each could be planned.
fn data_decide(n: usize) -> Model {
    let mut graph = SubgraphBuilder::new();
    let mut x = graph.input("x", floats(&[1]));
    let shape = graph.input("shape", OperandSpec::tensor_int32([1]));
    for _ in 0..n / 2 {
        x = graph.operation(O::Reshape, [x, shape], floats(&[0]));
        x = graph.operation(O::Tanh, [x], floats(&[0]));
    }
    graph.output(x);
    graph.into_model().unwrap()
}

fn quantized_chain(n: usize) -> Model {
    in_a_row(n, bytes(&[4]), |graph, x, _| graph.operation(O::Relu, [x], bytes(&[4])))
}

fn quantized_adds(n: usize) -> Model {
    let mut none = None;
    in_a_row(n, bytes(&[4]), |graph, x, _| {
        let none = *none.get_or_insert_with(|| graph.scalar_i32(0));
        graph.operation(O::Add, [x, x, none], bytes(&[4]))
    })
}

fn requantized(n: usize) -> Model {
    in_a_row(n / 2, bytes(&[4]), |graph, x, _| {
        let x = graph.operation(O::Dequantize, [x], floats(&[4]));
        graph.operation(O::Quantize, [x], bytes(&[4]))
    })
}

fn convolutions(n: usize, is_nchw: bool) -> Model {
    in_a_row(n / 2, floats(&[1, 2, 2, 2]), |graph, x, _| {
        let spec = floats(&[1, 2, 2, 2]);
        let filter = graph.constant(floats(&[2, 1, 1, 2]), &[1.0, 2.0, 3.0, 4.0]);
        let bias = graph.constant(floats(&[2]), &[1.0, 2.0]);
        let (zero, one) = (graph.scalar_i32(0), graph.scalar_i32(1));
        let layout = graph.scalar_bool(is_nchw);
        let inputs = [x, filter, bias, zero, zero, zero, zero, one, one, zero, layout];
        let x = graph.operation(O::Conv2d, inputs, spec.clone());
        let beta = graph.scalar_f32(1.0);
        let last = if is_nchw { O::Softmax } else { O::Relu };
        let inputs = if is_nchw { vec![x, beta] } else { vec![x] };
        graph.operation(last, inputs, spec)
    })
}

fn fully_connected(n: usize) -> Model {
    in_a_row(n, floats(&[1, 2]), |graph, x, _| {
        let filter = graph.constant(floats(&[2, 2]), &[1.0, 2.0, 3.0, 4.0]);
        let bias = graph.constant(floats(&[2]), &[1.0, 2.0]);
        let none = graph.scalar_i32(0);
        graph.operation(O::FullyConnected, [x, filter, bias, none], floats(&[1, 2]))
    })
}

/// Products of activations, this many each.
pub fn products(n: usize, batch: u32) -> Model {
    let mut no = None;
    in_a_row(n, floats(&[batch, 1, 1]), |graph, x, _| {
        let no = *no.get_or_insert_with(|| graph.scalar_bool(false));
        graph.operation(O::BatchMatmul, [x, x, no, no], floats(&[batch, 1, 1]))
    })
}

/// In the form in which the factor is read twice.
fn normalizations(n: usize) -> Model {
    in_a_row(n / 10, floats(&[2, 3]), |graph, x, _| {
        let (rows, columns) = (floats(&[2, 1]), floats(&[2, 3]));
        let none = graph.scalar_i32(0);
        let last = graph.constant(OperandSpec::tensor_int32([1]), &[-1]);
        let keep = graph.scalar_i32(1);
        let mean = graph.operation(O::Mean, [x, last, keep], rows.clone());
        let d = graph.operation(O::Sub, [x, mean, none], columns.clone());
        let square = graph.operation(O::Mul, [d, d, none], columns.clone());
        let variance = graph.operation(O::Mean, [square, last, keep], rows.clone());
        let epsilon = graph.constant(floats(&[1]), &[0.001]);
        let sum = graph.operation(O::Add, [variance, epsilon, none], rows.clone());
        let factor = graph.operation(O::Rsqrt, [sum], rows.clone());
        let of_x = graph.operation(O::Mul, [x, factor, none], columns.clone());
        let of_mean = graph.operation(O::Mul, [mean, factor, none], rows.clone());
        let offset = graph.constant(floats(&[1, 3]), &[1.0, 2.0, 3.0]);
        let difference = graph.operation(O::Sub, [offset, of_mean, none], columns.clone());
        graph.operation(O::Add, [of_x, difference, none], columns)
    })
}

fn folded(n: usize) -> Model {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", floats(&[2]));
    let none = graph.scalar_i32(0);
    let mut folded = graph.constant(floats(&[2]), &[1.0, 2.0]);
    for _ in 0..n {
        folded = graph.operation(O::Tanh, [folded], floats(&[2]));
    }
    let y = graph.operation(O::Add, [x, folded, none], floats(&[2]));
    graph.output(y);
    graph.into_model().unwrap()
}

fn shared_constants(n: usize) -> Model {
    let mut builder = ModelBuilder::new();
    let pool = builder.pool(nnhal_hal::Memory::allocate(4096).unwrap());
    let mut graph = SubgraphBuilder::new();
    let mut x = graph.input("x", floats(&[1, 16]));
    let none = graph.scalar_i32(0);
    for index in 0..n {
        let offset = (index % 32 * 16) as u32;
        let filter = graph.constant_in_pool(floats(&[16, 16]), pool, offset, 1024);
        let bias = graph.constant_in_pool(floats(&[16]), pool, offset, 64);
        x = graph.operation(O::FullyConnected, [x, filter, bias, none], floats(&[1, 16]));
    }
    graph.output(x);
    builder.build(graph).unwrap()
}

fn pads(n: usize) -> Model {
    in_a_row(n / 2, floats(&[2, 2]), |graph, x, _| {
        let borders = graph.constant(OperandSpec::tensor_int32([2, 2]), &[0, 0, 1, 0]);
        let padded = graph.operation(O::Pad, [x, borders], floats(&[2, 3]));
        let begin = graph.constant(OperandSpec::tensor_int32([2]), &[0, 1]);
        let size = graph.constant(OperandSpec::tensor_int32([2]), &[2, 2]);
        graph.operation(O::Slice, [padded, begin, size], floats(&[2, 2]))
    })
}
