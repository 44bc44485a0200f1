//! What becomes of single operators.

use super::draft::Draft;
use super::split::run;
use crate::schema::{
    ActivationFunctionType, BatchMatMulOptions, BlockwiseQuantization, BuiltinOperator as B,
    BuiltinOptions, Conv2DOptions, DepthwiseConv2DOptions, DimensionMetadata, DimensionType,
    FullyConnectedOptions, IfOptions, Int32Vector, OneHotOptions, Padding, QuantizationDetails,
    QuantizationParameters, RnnOptions, SequenceRnnOptions, SignatureDef, SparseIndexVector,
    SparsityParameters, TensorMap, TensorType as T, Uint8Vector, UnidirectionalSequenceLstmOptions,
};
use crate::{Import, ImportError, import_bytes};
use nnhal_hal::{HalVersion, OperandLifeTime, OperandType, OperationType as O};
use nnhal_ops::extension::{ExtensionOperation as E, TENSOR_INT64};

/// Imports, and checks that the model is valid.
pub(super) fn import(draft: &Draft) -> Import {
    let import = import_bytes(&draft.bytes()).unwrap();
    nnhal_ops::validate(&import.model, HalVersion::LATEST).unwrap();
    assert_eq!(import.operator_origin.len(), import.model.main.operations.len());
    assert_eq!(import.inputs.len(), import.model.main.inputs.len());
    assert_eq!(import.outputs.len(), import.model.main.outputs.len());
    import
}

pub(super) fn operations(import: &Import) -> Vec<O> {
    import.model.main.operations.iter().map(|operation| operation.operation_type).collect()
}

pub(super) fn reasons(draft: &Draft) -> Vec<String> {
    match import_bytes(&draft.bytes()) {
        Err(ImportError::Unsupported { operators, .. }) => {
            operators.into_iter().map(|it| it.reason).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn convolution(padding: Padding) -> Option<BuiltinOptions> {
    Some(BuiltinOptions::Conv2DOptions(Box::new(Conv2DOptions {
        padding,
        stride_w: 1,
        stride_h: 1,
        fused_activation_function: ActivationFunctionType::Relu6,
        ..Conv2DOptions::default()
    })))
}

/// A CONV_2D by int8, with a scale for each of 4 channels and a filter that is kept in the file.
pub(super) fn int8_convolution() -> Draft {
    let mut draft = Draft::new();
    let input = draft.tensor(T::Int8, &[1, 5, 5, 4]);
    draft.quantize(input, &[0.5], -3, 0);
    let filter = draft.constant(T::Int8, &[4, 3, 3, 4], &[1; 144]);
    draft.quantize(filter, &[0.1, 0.2, 0.3, 0.4], 0, 0);
    let bias = draft.integers(&[4], &[1, 2, 3, 4]);
    let output = draft.tensor(T::Int8, &[1, 5, 5, 4]);
    draft.quantize(output, &[0.25], 4, 0);
    let options = convolution(Padding::Same);
    draft.operator(B::Conv2d, &[input, filter, bias], &[output], options);
    draft.ends(0, &[input], &[output]);
    let names = |name: &str, tensor| {
        let tensor_index = u32::try_from(tensor).unwrap();
        Some(vec![TensorMap { name: Some(name.into()), tensor_index }])
    };
    draft.model.signature_defs = Some(vec![SignatureDef {
        inputs: names("image", input),
        outputs: names("features", output),
        signature_key: Some("serving_default".into()),
        subgraph_index: 0,
    }]);
    draft
}

#[test]
fn int8_convolution_keeps_its_filter_in_the_file() {
    let import = import(&int8_convolution());
    assert_eq!(operations(&import), [O::Conv2d]);
    let main = &import.model.main;
    let [_, filter, bias] = main.operations[0].inputs[..3] else { panic!() };
    let filter = &main.operands[filter as usize];
    assert_eq!(filter.operand_type, OperandType::TensorQuant8SymmPerChannel);
    assert_eq!(filter.lifetime, OperandLifeTime::ConstantReference);
    let bias = &main.operands[bias as usize];
    assert_eq!((bias.operand_type, bias.lifetime), {
        (OperandType::TensorInt32, OperandLifeTime::ConstantCopy)
    });
    assert_eq!(import.inputs[0].signature_name.as_deref(), Some("image"));
    assert_eq!(import.signatures[0].name, "serving_default");
    assert_eq!(import.operator_origin[0].to_string(), "CONV_2D 0");
}

#[test]
fn what_only_a_signature_calls_an_output_is_one_behind_those_of_the_graph() {
    let mut draft = Draft::new();
    let [x, y, z, unused] = [0; 4].map(|_| draft.tensor(T::Float32, &[2]));
    let handle = draft.tensor(T::Resource, &[]);
    let constant = draft.floats(&[1], &[1.0]);
    draft.operator(B::Abs, &[x], &[y], None);
    draft.operator(B::Neg, &[y], &[z], None);
    draft.ends(0, &[x], &[z]);
    // Some of these cannot be computed, which was no reason to refuse the file before either.
    let named = [z, y, unused, handle, constant, x, y].map(|tensor| TensorMap {
        name: Some(format!("name {tensor}")),
        tensor_index: u32::try_from(tensor).unwrap(),
    });
    let signature = |subgraph_index| SignatureDef {
        outputs: Some(named.to_vec()),
        signature_key: Some(format!("of subgraph {subgraph_index}")),
        subgraph_index,
        ..SignatureDef::default()
    };
    draft.model.signature_defs = Some(vec![signature(0)]);
    let import = import(&draft);
    assert_eq!(import.own_outputs, 1);
    let outputs: Vec<_> =
        import.outputs.iter().map(|it| i32::try_from(it.index).unwrap()).collect();
    assert_eq!(outputs, [z, y, x]);
    assert_eq!(operations(&import), [O::Abs, O::Neg, O::Cast]);
    // Those of another subgraph are none of this one.
    for _ in 0..7 {
        draft.tensor_in(1, T::Float32, &[2]);
    }
    draft.model.signature_defs = Some(vec![signature(1)]);
    let import = import_bytes(&draft.bytes()).unwrap();
    assert_eq!((import.outputs.len(), import.own_outputs), (1, 1));
}

#[test]
fn scales_by_block_are_described() {
    let mut draft = blockwise_layer(2, &[1.0; 4]);
    let described = |draft: &Draft| {
        let memory = nnhal_hal::Memory::from_bytes(&draft.bytes()).unwrap();
        let file = crate::describe_memory(&memory).unwrap();
        file.subgraphs[0].tensors.iter().find_map(|tensor| tensor.blocks.clone())
    };
    let found = described(&draft).unwrap();
    assert_eq!((found.size, found.axis), (2, 0));
    // Scales that are not there are not named.
    for tensor in draft.graph(0).tensors.iter_mut().flatten() {
        if let Some(QuantizationDetails::BlockwiseQuantization(blocks)) =
            tensor.quantization.as_mut().and_then(|it| it.details.as_mut())
        {
            blocks.scales = 99;
        }
    }
    assert_eq!(described(&draft), None);
}

#[test]
fn a_channel_of_scale_0_is_its_bias() {
    let mut draft = int8_convolution();
    // Of the least scale, as converters write them, and of none at all.
    for scale in [f32::MIN_POSITIVE, 0.0] {
        draft.quantize(1, &[0.1, scale, 0.3, 0.4], 0, 0);
        let found = run(&import(&draft), &[&[9; 100]], 100);
        assert!(found.iter().skip(1).step_by(4).all(|byte| *byte == 4), "{found:?}");
        assert!(found.iter().step_by(4).any(|byte| *byte != 4), "{found:?}");
    }
    draft.quantize(1, &[0.0], 0, 0);
    assert_eq!(run(&import(&draft), &[&[9; 100]], 100), [4; 100]);
}

/// A DEPTHWISE_CONV_2D by int8 over two channels, 3 by 1, whose filter is made of a constant by an operator.
fn moved_filter(builtin: B, shape: &[i32], values: &[i8], integers: &[i32]) -> Draft {
    let mut draft = Draft::new();
    let input = draft.tensor(T::Int8, &[1, 4, 1, 2]);
    draft.quantize(input, &[0.5], -3, 0);
    let values: Vec<u8> = values.iter().map(|it| it.cast_unsigned()).collect();
    let constant = draft.constant(T::Int8, shape, &values);
    let axis = shape.iter().rposition(|length| *length == 2).unwrap();
    draft.quantize(constant, &[0.5, 0.25], 0, i32::try_from(axis).unwrap());
    let count = i32::try_from(integers.len()).unwrap();
    let integers = draft.integers(&[count], integers);
    let filter = draft.tensor(T::Int8, &[1, 3, 1, 2]);
    draft.quantize(filter, &[0.5, 0.25], 0, 3);
    draft.operator(builtin, &[constant, integers], &[filter], None);
    let bias = draft.integers(&[2], &[1, -2]);
    let output = draft.tensor(T::Int8, &[1, 2, 1, 2]);
    draft.quantize(output, &[0.25], 4, 0);
    let options = DepthwiseConv2DOptions {
        padding: Padding::Valid,
        stride_w: 1,
        stride_h: 1,
        depth_multiplier: 1,
        ..DepthwiseConv2DOptions::default()
    };
    let options = Some(BuiltinOptions::DepthwiseConv2DOptions(Box::new(options)));
    draft.operator(B::DepthwiseConv2d, &[input, filter, bias], &[output], options);
    draft.ends(0, &[input], &[output]);
    draft
}

#[test]
fn constants_with_scales_by_channel_are_reshaped_and_transposed() {
    let input = [5, -3, 7, 1, -9, 3, 11, -1_i8].map(i8::cast_unsigned);
    // The distances from -3 are 8 0, 10 4, -6 6, 14 2, and the channels' weights 2 -4 1 and 1 4 6: sums of -29 and 59 of which
    // each is a step of the output, and of 50 and 38 of which two are.
    let expected = [-29 + 4, 25 + 4, 59 + 4, 19 + 4_i8].map(i8::cast_unsigned);
    let reshaped = moved_filter(B::Reshape, &[3, 1, 1, 2], &[2, 1, -4, 4, 1, 6], &[1, 3, 1, 2]);
    let import_of_reshaped = import(&reshaped);
    // It stays the layer's constant, of exact sums.
    assert_eq!(operations(&import_of_reshaped), [O::DepthwiseConv2d]);
    assert_eq!(run(&import_of_reshaped, &[&input], 4), expected);
    let transposed = moved_filter(B::Transpose, &[1, 2, 1, 3], &[2, -4, 1, 1, 4, 6], &[0, 3, 2, 1]);
    assert_eq!(run(&import(&transposed), &[&input], 4), expected);
}

/// A FULLY_CONNECTED with int8 weights beside float32, and no bias.
pub(super) fn dynamic_range_layer() -> Draft {
    let mut draft = Draft::new();
    let input = draft.tensor(T::Float32, &[2, 3]);
    let weights = draft.constant(T::Int8, &[2, 3], &[1, 2, 3, 4, 5, 6]);
    draft.quantize(weights, &[0.5], 0, 0);
    let output = draft.tensor(T::Float32, &[2, 2]);
    let options = Some(BuiltinOptions::FullyConnectedOptions(Box::default()));
    draft.operator(B::FullyConnected, &[input, weights, -1], &[output], options);
    draft.ends(0, &[input], &[output]);
    draft
}

#[test]
fn weights_beside_floats_stay_integers_and_a_missing_bias_is_zero() {
    let layer = E::DynamicFullyConnected.operation_type();
    assert_eq!(operations(&import(&dynamic_range_layer())), [layer]);
    let mut by_channel = dynamic_range_layer();
    by_channel.quantize(1, &[0.5, 0.25], 0, 0);
    assert_eq!(operations(&import(&by_channel)), [layer]);
}

/// A convolution of 2 by 2, over two channels, with int8 weights beside float32.
fn dynamic_range_convolution(of_input: i32) -> Draft {
    let mut draft = Draft::new();
    let input = draft.tensor(T::Float32, &[1, 4, 4, of_input]);
    let filter = draft.constant(T::Int8, &[4, 2, 2, 2], &[1; 32]);
    draft.quantize(filter, &[0.5, 0.25, 0.5, 0.125], 0, 0);
    let bias = draft.floats(&[4], &[0.5; 4]);
    let output = draft.tensor(T::Float32, &[1, 4, 4, 4]);
    let options = Conv2DOptions { stride_w: 1, stride_h: 1, ..Conv2DOptions::default() };
    let options = Some(BuiltinOptions::Conv2DOptions(Box::new(options)));
    draft.operator(B::Conv2d, &[input, filter, bias], &[output], options);
    draft.ends(0, &[input], &[output]);
    draft
}

#[test]
fn convolutions_of_floats_with_weights_of_8_bits_round_their_inputs() {
    // Of one group, and of two.
    for of_input in [2, 4] {
        let convolution = dynamic_range_convolution(of_input);
        assert_eq!(operations(&import(&convolution)), [E::DynamicConv2d.operation_type()]);
    }
}

#[test]
fn inputs_beside_packed_weights_are_rounded_by_magnitude_where_litert_does_so() {
    let by_magnitude = E::DynamicRound.operation_type();
    let with = |mut draft: Draft, element: T, scales: &[f32]| {
        draft.tensor_mut(1).type_ = element as i8;
        draft.quantize(1, scales, 0, 0);
        let buffer = usize::try_from(draft.tensor_mut(1).buffer).unwrap();
        let shape = draft.tensor_mut(1).shape.clone().unwrap();
        let per_byte = if element == T::Int2 { 4 } else { 2 };
        let bytes = usize::try_from(shape.iter().product::<i32>()).unwrap().div_ceil(per_byte);
        draft.model.buffers.as_mut().unwrap()[buffer].data = Some(vec![0x11; bytes]);
        operations(&import(&draft))
    };
    let convolution = || dynamic_range_convolution(2);
    assert_eq!(with(convolution(), T::Int4, &[0.5]), [by_magnitude, O::Dequantize, O::Conv2d]);
    let of_image = E::DynamicConv2d.operation_type();
    assert_eq!(with(convolution(), T::Int4, &[0.5, 0.25, 0.5, 0.125]), [of_image]);
    // Groups are another kernel's.
    assert_eq!(with(dynamic_range_convolution(4), T::Int4, &[0.5]), [of_image]);
    // Rows of three: two packed numbers and a half byte.
    let layer = || dynamic_range_layer();
    for element in [T::Int4, T::Int2] {
        let steps = with(layer(), element, &[0.5, 0.25]);
        assert_eq!(steps, [by_magnitude, O::Dequantize, O::FullyConnected], "{element:?}");
    }
    let mut even = dynamic_range_layer();
    even.tensor_mut(0).shape = Some(vec![2, 4]);
    even.tensor_mut(1).shape = Some(vec![2, 4]);
    let of_rows = E::DynamicFullyConnected.operation_type();
    assert_eq!(with(even.clone(), T::Int4, &[0.5]), [of_rows]);
    assert_eq!(with(even.clone(), T::Int2, &[0.5, 0.25]), [of_rows]);
    let of_two_bits = with(even.clone(), T::Int2, &[0.5]);
    assert_eq!(of_two_bits, [by_magnitude, O::Dequantize, O::FullyConnected]);
    // The operator may ask for the other rounding, which both have.
    let options = FullyConnectedOptions { asymmetric_quantize_inputs: true, ..Default::default() };
    let options = Some(BuiltinOptions::FullyConnectedOptions(Box::new(options)));
    let mut asks = dynamic_range_layer();
    asks.graph(0).operators.as_mut().unwrap()[0].builtin_options = options;
    assert_eq!(with(asks, T::Int4, &[0.5, 0.25]), [of_rows]);
}

#[test]
fn packed_constants_are_moved_as_8_bits_and_computed_by_nothing() {
    let mut draft = Draft::new();
    // 1 2 3 4, -8 7 -1 0.
    let packed = draft.constant(T::Int4, &[2, 4], &[0x21, 0x43, 0x78, 0x0F]);
    let rows = draft.integers(&[1], &[1]);
    let [row, flat] = [[1, 4], [4, 1]].map(|shape| draft.tensor(T::Int4, &shape));
    for tensor in [packed, row, flat] {
        draft.quantize(tensor, &[0.5], 0, 0);
    }
    let x = draft.tensor(T::Float32, &[4, 1]);
    let [floats, sum] = [0; 2].map(|_| draft.tensor(T::Float32, &[4, 1]));
    let options = Some(BuiltinOptions::GatherOptions(Box::default()));
    draft.operator(B::Gather, &[packed, rows], &[row], options);
    let shape = draft.integers(&[2], &[4, 1]);
    draft.operator(B::Reshape, &[row, shape], &[flat], None);
    draft.operator(B::Dequantize, &[flat], &[floats], None);
    draft.operator(B::Add, &[x, floats], &[sum], None);
    draft.ends(0, &[x], &[sum]);
    let found = super::split::floats_of(&run(&import(&draft), &[&[0; 16]], 16));
    assert_eq!(found, [-4.0, 3.5, -0.5, 0.0]);
    draft.ends(0, &[x], &[sum, flat]);
    assert!(reasons(&draft)[0].contains("INT4 is no type of inputs and outputs"));
    let mut draft = Draft::new();
    let (x, y) = (draft.tensor(T::Float32, &[2]), draft.tensor(T::Int4, &[2]));
    let z = draft.tensor(T::Float32, &[2]);
    draft.operator(B::Cast, &[x], &[y], None);
    draft.operator(B::Cast, &[y], &[z], None);
    draft.ends(0, &[x], &[z]);
    assert_eq!(reasons(&draft)[0], "Int4 is computed by nothing here");
}

/// A layer of 2 units whose rows of 4 int4 weights have a scale for each 2: 1/2 and 1/4, then 1 and 2.
fn blockwise_layer(block_size: i32, scales: &[f32]) -> Draft {
    let mut draft = Draft::new();
    let input = draft.tensor(T::Float32, &[3, 4]);
    let length = i32::try_from(scales.len()).unwrap();
    let halves: Vec<u8> =
        scales.iter().flat_map(|it| half::f16::from_f32(*it).to_le_bytes()).collect();
    let of_weights = draft.constant(T::Float16, &[length], &halves);
    // 1 2 3 4, -8 7 -1 0.
    let weights = draft.constant(T::Int4, &[2, 4], &[0x21, 0x43, 0x78, 0x0F]);
    let details = BlockwiseQuantization { scales: of_weights, zero_points: -1, block_size };
    draft.tensor_mut(weights).quantization = Some(Box::new(QuantizationParameters {
        details: Some(QuantizationDetails::BlockwiseQuantization(Box::new(details))),
        ..QuantizationParameters::default()
    }));
    let output = draft.tensor(T::Float32, &[3, 2]);
    let options = Some(BuiltinOptions::FullyConnectedOptions(Box::default()));
    draft.operator(B::FullyConnected, &[input, weights, -1], &[output], options);
    draft.ends(0, &[input], &[output]);
    draft
}

#[test]
fn weights_with_scales_by_block_become_floats_beside_rounded_rows() {
    let import = import(&blockwise_layer(2, &[0.5, 0.25, 1.0, 2.0]));
    let rounded = E::DynamicRound.operation_type();
    assert_eq!(operations(&import), [rounded, O::FullyConnected]);
    let main = &import.model.main;
    let weights = &main.operands[main.operations[1].inputs[1] as usize];
    let bytes = &import.model.operand_values[weights.location.offset as usize..][..32];
    let found: Vec<f32> = bytes.as_chunks().0.iter().map(|it| f32::from_le_bytes(*it)).collect();
    assert_eq!(found, [0.5, 1.0, 0.75, 1.0, -8.0, 7.0, -2.0, 0.0]);
}

#[test]
fn rows_with_scales_by_block_stay_8_bits_until_they_are_looked_up() {
    let mut draft = blockwise_layer(2, &[0.5, 0.25, 1.0, 2.0]);
    let graph = draft.graph(0);
    let operators = graph.operators.take().unwrap();
    let weights = operators[0].inputs.as_ref().unwrap()[1];
    let (rows, found) = (draft.tensor(T::Int32, &[3]), draft.tensor(T::Float32, &[3, 4]));
    draft.operator(B::EmbeddingLookup, &[rows, weights], &[found], None);
    draft.ends(0, &[rows], &[found]);
    let import = import(&draft);
    let wanted = [O::EmbeddingLookup, O::Dequantize, O::Reshape, O::EmbeddingLookup, O::Reshape];
    assert_eq!(operations(&import), [&wanted[..], &[O::Mul, O::Reshape]].concat());
    let main = &import.model.main;
    let table = &main.operands[main.operations[0].inputs[1] as usize];
    assert_eq!(table.operand_type, OperandType::TensorQuant8AsymmSigned);
    let bytes = &import.model.operand_values[table.location.offset as usize..][..8];
    assert_eq!(bytes, [1, 2, 3, 4, 0xF8, 7, 0xFF, 0]);
}

#[test]
fn blocks_that_do_not_fit_their_weights_are_refused() {
    for (size, scales, reason) in [
        (3, 2, "blocks of 3 do not fit rows of 4"),
        (2, 3, "3 scales, expected 2 times 2"),
        (0, 4, "is quantized by BlockwiseQuantization, expected scales"),
    ] {
        let found = reasons(&blockwise_layer(size, &vec![1.0; scales]));
        assert!(found[0].contains(reason), "{found:?}");
    }
}

/// BATCH_MATMUL of `[2, 1, 3]` with a constant of these lengths, whose scales are along this axis.
fn dynamic_range_matmul(of_constant: &[i32], is_adjoint: bool, axis: i32) -> Draft {
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[2, 1, 3]);
    let y = draft.constant(T::Int8, of_constant, &[1, 2, 3, 4, 5, 6]);
    draft.quantize(y, &[0.5, 0.25], 0, axis);
    let output = draft.tensor(T::Float32, &[2, 1, 2]);
    let options = BatchMatMulOptions { adj_y: is_adjoint, ..BatchMatMulOptions::default() };
    let options = Some(BuiltinOptions::BatchMatMulOptions(Box::new(options)));
    draft.operator(B::BatchMatmul, &[x, y], &[output], options);
    draft.ends(0, &[x], &[output]);
    draft
}

#[test]
fn products_of_floats_with_a_constant_matrix_of_8_bits_round_their_rows() {
    let layer = E::DynamicFullyConnected.operation_type();
    for (lengths, is_adjoint, axis, stored) in [
        (&[3, 2][..], false, 1, [1, 3, 5, 2, 4, 6]),
        (&[1, 3, 2], false, 2, [1, 3, 5, 2, 4, 6]),
        (&[2, 3], true, 0, [1, 2, 3, 4, 5, 6]),
    ] {
        let import = import(&dynamic_range_matmul(lengths, is_adjoint, axis));
        assert_eq!(operations(&import), [O::Reshape, layer, O::Reshape]);
        let main = &import.model.main;
        let weights = &main.operands[main.operations[1].inputs[1] as usize];
        assert_eq!(weights.dimensions, [2, 3]);
        let place = weights.location;
        let bytes = &import.model.operand_values[place.offset as usize..][..6];
        assert_eq!(bytes, stored, "{lengths:?}");
    }
    // Scales along the sums.
    let mut along_sums = dynamic_range_matmul(&[2, 3], true, 1);
    along_sums.quantize(1, &[0.5, 0.25, 0.125], 0, 1);
    let other = operations(&import(&along_sums));
    assert!(!other.contains(&layer), "{other:?}");
}

#[test]
fn weights_with_a_zero_point_beside_floats_are_dequantized() {
    let mut shifted = dynamic_range_layer();
    shifted.quantize(1, &[0.5], 3, 0);
    assert_eq!(operations(&import(&shifted)), [O::Dequantize, O::FullyConnected]);
}

#[test]
fn fully_connected_that_keeps_axes_is_reshaped() {
    let mut draft = Draft::new();
    let input = draft.tensor(T::Float32, &[2, 5, 3]);
    let weights = draft.floats(&[2, 3], &[0.5; 6]);
    let output = draft.tensor(T::Float32, &[2, 5, 2]);
    let options = FullyConnectedOptions { keep_num_dims: true, ..Default::default() };
    let options = Some(BuiltinOptions::FullyConnectedOptions(Box::new(options)));
    draft.operator(B::FullyConnected, &[input, weights, -1], &[output], options);
    draft.ends(0, &[input], &[output]);
    assert_eq!(operations(&import(&draft)), [O::FullyConnected, O::Reshape]);
}

/// A FULLY_CONNECTED whose weights are sparse by rows: `[0, 7, 0], [0, 0, 9]`.
pub(super) fn sparse_layer() -> Draft {
    let mut draft = Draft::new();
    let input = draft.tensor(T::Float32, &[1, 3]);
    let weights = draft.floats(&[2, 3], &[7.0, 9.0]);
    draft.tensor_mut(weights).sparsity = Some(Box::new(SparsityParameters {
        traversal_order: Some(vec![0, 1]),
        block_map: None,
        dim_metadata: Some(vec![
            DimensionMetadata { dense_size: 2, ..DimensionMetadata::default() },
            DimensionMetadata {
                format: DimensionType::SparseCsr,
                array_segments: Some(SparseIndexVector::Int32Vector(Box::new(Int32Vector {
                    values: Some(vec![0, 1, 2]),
                }))),
                array_indices: Some(SparseIndexVector::Uint8Vector(Box::new(Uint8Vector {
                    values: Some(vec![1, 2]),
                }))),
                ..DimensionMetadata::default()
            },
        ]),
    }));
    let output = draft.tensor(T::Float32, &[1, 2]);
    draft.operator(B::FullyConnected, &[input, weights, -1], &[output], None);
    draft.ends(0, &[input], &[output]);
    draft
}

#[test]
fn sparse_weights_become_dense() {
    let import = import(&sparse_layer());
    let main = &import.model.main;
    let weights = &main.operands[main.operations[0].inputs[1] as usize].location;
    let (from, length) = (weights.offset as usize, weights.length as usize);
    let bytes = &import.model.operand_values[from..from + length];
    let floats: Vec<f32> = bytes.as_chunks().0.iter().map(|it| f32::from_le_bytes(*it)).collect();
    assert_eq!(floats, [0.0, 7.0, 0.0, 0.0, 0.0, 9.0]);
}

#[test]
fn sparse_blocks_are_placed_whole() {
    let mut draft = sparse_layer();
    // 2 rows of 4, in blocks of 1 by 2: the second block of row 0 and the first of row 1.
    draft.tensor_mut(0).shape = Some(vec![1, 4]);
    draft.tensor_mut(1).shape = Some(vec![2, 4]);
    let values = [1.0_f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).concat();
    draft.model.buffers.as_mut().unwrap()[1].data = Some(values);
    let sparsity = draft.tensor_mut(1).sparsity.as_mut().unwrap();
    sparsity.traversal_order = Some(vec![0, 1, 2]);
    sparsity.block_map = Some(vec![1]);
    let levels = sparsity.dim_metadata.as_mut().unwrap();
    levels[1].array_indices =
        Some(SparseIndexVector::Uint8Vector(Box::new(Uint8Vector { values: Some(vec![1, 0]) })));
    levels.push(DimensionMetadata { dense_size: 2, ..DimensionMetadata::default() });
    let import = import(&draft);
    let main = &import.model.main;
    let weights = &main.operands[main.operations[0].inputs[1] as usize].location;
    let (from, length) = (weights.offset as usize, weights.length as usize);
    let bytes = &import.model.operand_values[from..from + length];
    let floats: Vec<f32> = bytes.as_chunks().0.iter().map(|it| f32::from_le_bytes(*it)).collect();
    assert_eq!(floats, [0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 0.0, 0.0]);
}

/// IF over two subgraphs that add and multiply.
pub(super) fn conditional() -> Draft {
    let mut draft = Draft::new();
    let condition = draft.tensor(T::Bool, &[]);
    let (x, y) = (draft.tensor(T::Float32, &[2]), draft.tensor(T::Float32, &[2]));
    let options = IfOptions { then_subgraph_index: 1, else_subgraph_index: 2 };
    let options = Some(BuiltinOptions::IfOptions(Box::new(options)));
    draft.operator(B::If, &[condition, x], &[y], options);
    draft.ends(0, &[condition, x], &[y]);
    for (graph, builtin) in [(1, B::Add), (2, B::Mul)] {
        let x = draft.tensor_in(graph, T::Float32, &[2]);
        let y = draft.tensor_in(graph, T::Float32, &[2]);
        draft.operator_in(graph, builtin, &[x, x], &[y], None);
        draft.ends(graph, &[x], &[y]);
    }
    draft
}

#[test]
fn if_refers_to_its_branches() {
    let import = import(&conditional());
    assert_eq!(operations(&import), [O::If]);
    assert_eq!(import.model.referenced.len(), 2);
}

/// An RNN over 3 steps whose state is a variable.
pub(super) fn sequence_rnn(activation: ActivationFunctionType) -> Draft {
    let mut draft = Draft::new();
    let input = draft.tensor(T::Float32, &[1, 3, 2]);
    let weights = draft.floats(&[2, 2], &[0.1; 4]);
    let recurrent = draft.floats(&[2, 2], &[0.2; 4]);
    let bias = draft.floats(&[2], &[0.3; 2]);
    let state = draft.tensor(T::Float32, &[1, 2]);
    draft.tensor_mut(state).is_variable = true;
    let output = draft.tensor(T::Float32, &[1, 3, 2]);
    let options =
        SequenceRnnOptions { fused_activation_function: activation, ..Default::default() };
    let options = Some(BuiltinOptions::SequenceRnnOptions(Box::new(options)));
    let inputs = [input, weights, recurrent, bias, state];
    draft.operator(B::UnidirectionalSequenceRnn, &inputs, &[output], options);
    draft.ends(0, &[input], &[output]);
    draft
}

#[test]
fn variables_become_inputs_and_outputs() {
    let import = import(&sequence_rnn(ActivationFunctionType::Relu));
    assert_eq!(operations(&import), [O::UnidirectionalSequenceRnn]);
    assert_eq!((import.states[0].input, import.states[0].output), (1, 1));
}

#[test]
fn an_rnn_with_tanh_stays_one_operation() {
    let import = import(&sequence_rnn(ActivationFunctionType::Tanh));
    assert_eq!(operations(&import), [O::UnidirectionalSequenceRnn]);
    assert_eq!(import.states.len(), 1);
    assert_eq!(
        reasons(&sequence_rnn(ActivationFunctionType::SignBit)),
        ["the HAL has no activation SIGN_BIT"]
    );
}

#[test]
fn an_rnn_of_one_step_with_tanh_gives_state_and_result() {
    let mut draft = Draft::new();
    let input = draft.tensor(T::Float32, &[1, 2]);
    let weights = draft.floats(&[2, 2], &[0.1; 4]);
    let bias = draft.floats(&[2], &[0.3; 2]);
    let state = draft.tensor(T::Float32, &[1, 2]);
    draft.tensor_mut(state).is_variable = true;
    let output = draft.tensor(T::Float32, &[1, 2]);
    let options = RnnOptions {
        fused_activation_function: ActivationFunctionType::Tanh,
        ..RnnOptions::default()
    };
    let options = Some(BuiltinOptions::RnnOptions(Box::new(options)));
    draft.operator(B::Rnn, &[input, weights, weights, bias, state], &[output], options);
    draft.ends(0, &[input], &[output]);
    assert_eq!(import(&draft).states.len(), 1);
}

/// The operator of an LSTM without projection, peepholes or layer normalization, whose gates have the same weights.
fn lstm_of(
    draft: &mut Draft,
    [input, of_input, recurrent, bias]: [i32; 4],
    states: [i32; 2],
    output: i32,
) {
    let mut inputs = vec![input];
    inputs.extend([of_input; 4]);
    inputs.extend([recurrent; 4]);
    inputs.extend([-1; 3]);
    inputs.extend([bias; 4]);
    inputs.extend([-1; 2]);
    inputs.extend(states);
    inputs.extend([-1; 4]);
    let options = UnidirectionalSequenceLstmOptions {
        fused_activation_function: ActivationFunctionType::Tanh,
        ..Default::default()
    };
    let options = Some(BuiltinOptions::UnidirectionalSequenceLstmOptions(Box::new(options)));
    draft.operator(B::UnidirectionalSequenceLstm, &inputs, &[output], options);
}

/// An LSTM over 2 steps.
pub(super) fn sequence_lstm() -> Draft {
    let mut draft = Draft::new();
    let input = draft.tensor(T::Float32, &[1, 2, 3]);
    let of_input = draft.floats(&[4, 3], &[0.1; 12]);
    let recurrent = draft.floats(&[4, 4], &[0.2; 16]);
    let bias = draft.floats(&[4], &[0.3; 4]);
    let states = [(); 2].map(|()| draft.tensor(T::Float32, &[1, 4]));
    for state in states {
        draft.tensor_mut(state).is_variable = true;
    }
    let output = draft.tensor(T::Float32, &[1, 2, 4]);
    lstm_of(&mut draft, [input, of_input, recurrent, bias], states, output);
    draft.ends(0, &[input], &[output]);
    draft
}

/// An LSTM of int8 over a number of steps.
pub(super) fn integer_sequence_lstm(steps: i32) -> Draft {
    let mut draft = Draft::new();
    let input = draft.tensor(T::Int8, &[1, steps, 3]);
    let of_input = draft.constant(T::Int8, &[4, 3], &[1; 12]);
    let recurrent = draft.constant(T::Int8, &[4, 4], &[2; 16]);
    let bias = draft.integers(&[4], &[3; 4]);
    let states = [draft.tensor(T::Int8, &[1, 4]), draft.tensor(T::Int16, &[1, 4])];
    for state in states {
        draft.tensor_mut(state).is_variable = true;
    }
    let output = draft.tensor(T::Int8, &[1, steps, 4]);
    let intermediates = [(); 5].map(|()| draft.tensor(T::Int16, &[]));
    for (tensor, scale) in [(input, 0.1), (of_input, 0.1), (recurrent, 0.1), (output, 0.01)]
        .into_iter()
        .chain([(states[0], 0.01), (states[1], 1.0 / 2048.0)])
    {
        draft.quantize(tensor, &[scale], 0, 0);
    }
    lstm_of(&mut draft, [input, of_input, recurrent, bias], states, output);
    let operators = draft.graph(0).operators.as_mut().unwrap();
    operators.last_mut().unwrap().intermediates = Some(intermediates.to_vec());
    draft.ends(0, &[input], &[output]);
    draft
}

#[test]
fn an_lstm_of_integers_is_unrolled() {
    let import = import(&integer_sequence_lstm(3));
    let count = |wanted| operations(&import).iter().filter(|it| **it == wanted).count();
    assert_eq!((count(O::QuantizedLstm), count(O::Slice), count(O::Concatenation)), (3, 3, 1));
    assert_eq!(import.states.len(), 2);
}

#[test]
fn lstm_has_the_arguments_of_the_hal() {
    let import = import(&sequence_lstm());
    assert_eq!(operations(&import), [O::UnidirectionalSequenceLstm]);
    let operation = &import.model.main.operations[0];
    assert_eq!((operation.inputs.len(), operation.outputs.len()), (28, 3));
    assert_eq!(import.states.len(), 2);
}

#[test]
fn everything_without_counterpart_is_named_at_once() {
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[4]);
    let (y, z, w) = (draft.tensor(T::Float32, &[4]), draft.tensor(T::Float32, &[4]), {
        draft.tensor(T::Float32, &[4])
    });
    draft.operator(B::HashtableFind, &[x], &[y], None);
    draft.operator(B::Relu, &[y], &[z], None);
    draft.operator(B::SkipGram, &[z], &[w], None);
    draft.ends(0, &[x], &[w]);
    assert_eq!(reasons(&draft), ["the HAL has no such operation"; 2]);
    let text = import_bytes(&draft.bytes()).unwrap_err().to_string();
    let first = "operator 0 of subgraph 0, HASHTABLE_FIND version 1 (\"tensor 0\" FLOAT32 [4], \
                 \"tensor 1\" FLOAT32 [4])";
    assert!(text.contains(first), "{text}");
    assert!(text.contains("operator 2 of subgraph 0, SKIP_GRAM"), "{text}");
}

#[test]
fn integers_of_64_bits_keep_all_of_them() {
    let mut draft = Draft::new();
    let x = draft.tensor(T::Int64, &[2]);
    let bytes: Vec<u8> = [5_i64, 1 << 40].iter().flat_map(|it| it.to_le_bytes()).collect();
    let far = draft.constant(T::Int64, &[2], &bytes);
    let y = draft.tensor(T::Int64, &[2]);
    draft.operator(B::Add, &[x, far], &[y], None);
    draft.ends(0, &[x], &[y]);
    let import = import(&draft);
    assert_eq!(operations(&import), [E::Add.operation_type()]);
    let main = &import.model.main;
    let operand = |index: u32| &main.operands[index as usize];
    assert_eq!(operand(main.inputs[0]).operand_type, TENSOR_INT64);
    assert_eq!(operand(main.outputs[0]).operand_type, TENSOR_INT64);
    let constant = operand(main.operations[0].inputs[1]).location;
    assert_eq!(import.model.operand_values[constant.offset as usize..][..16], bytes);
}

#[test]
fn indexes_of_64_bits_become_indexes_of_32() {
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[4]);
    let places = draft.tensor(T::Int64, &[2]);
    let (y, z) = (draft.tensor(T::Float32, &[2]), draft.tensor(T::Float32, &[2]));
    draft.operator(B::Gather, &[x, places], &[y], None);
    draft.operator(B::Gather, &[x, places], &[z], None);
    draft.ends(0, &[x, places], &[y, z]);
    let import = import(&draft);
    assert_eq!(operations(&import), [E::Cast.operation_type(), O::Gather, O::Gather]);
}

#[test]
fn inputs_and_constants_that_are_outputs_are_copied() {
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[4]);
    let one = draft.floats(&[4], &[1.0; 4]);
    draft.ends(0, &[x], &[x, one, x]);
    let import = import(&draft);
    assert_eq!(operations(&import), [O::Cast; 3]);
    assert_eq!(import.operator_origin[0].to_string(), "copy of an output");
}

#[test]
fn open_lengths_stay_open_until_an_operator_needs_them() {
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[1, 4]);
    draft.tensor_mut(x).shape_signature = Some(vec![-1, 4]);
    let y = draft.tensor(T::Float32, &[1, 4]);
    draft.tensor_mut(y).shape_signature = Some(vec![-1, 4]);
    draft.operator(B::Relu, &[x], &[y], None);
    draft.ends(0, &[x], &[y]);
    let open = import(&draft);
    assert_eq!(open.inputs[0].shape, [None, Some(4)]);
    assert!(!open.has_example_shapes);

    let shape = draft.tensor(T::Int32, &[2]);
    draft.operator(B::Shape, &[y], &[shape], None);
    draft.ends(0, &[x], &[y, shape]);
    let fixed = import(&draft);
    assert_eq!(fixed.inputs[0].shape, [Some(1), Some(4)]);
    assert!(fixed.has_example_shapes);
}

#[test]
fn an_example_that_its_own_operators_do_not_take_is_replaced() {
    let draft = |window: i32, batch: i32| {
        let mut draft = Draft::new();
        let x = draft.tensor(T::Float32, &[1, 1, 1, 3]);
        draft.tensor_mut(x).shape_signature = Some(vec![batch, -1, -1, 3]);
        let y = draft.tensor(T::Float32, &[1, 1, 1, 3]);
        let options = crate::schema::Pool2DOptions {
            padding: Padding::Valid,
            filter_width: window,
            filter_height: window,
            stride_w: window,
            stride_h: window,
            ..crate::schema::Pool2DOptions::default()
        };
        let options = BuiltinOptions::Pool2DOptions(Box::new(options));
        draft.operator(B::MaxPool2d, &[x], &[y], Some(options));
        let shape = draft.tensor(T::Int32, &[4]);
        draft.operator(B::Shape, &[y], &[shape], None);
        draft.ends(0, &[x], &[y, shape]);
        draft
    };
    for (window, length) in [(1, 1), (2, 8), (9, 32), (200, 512)] {
        let import = import(&draft(window, -1));
        assert!(import.has_example_shapes);
        let expected = [Some(1), Some(length), Some(length), Some(3)];
        assert_eq!(import.inputs[0].shape, expected, "a window of {window}");
        let declared = Some(vec![None, None, None, Some(3)]);
        assert_eq!(import.inputs[0].shape_signature, declared, "the file's own word stays");
        let out = length / window.unsigned_abs();
        assert_eq!(import.outputs[0].shape, [Some(1), Some(out), Some(out), Some(3)]);
    }
    let reasons = import_bytes(&draft(600, -1).bytes()).unwrap_err().to_string();
    assert!(reasons.contains("600 wide") && reasons.contains("an axis of 1"), "{reasons}");
}

#[test]
fn one_hot_compares_and_selects() {
    let mut draft = Draft::new();
    let indices = draft.tensor(T::Int32, &[3]);
    let depth = draft.integers(&[], &[4]);
    let (on, off) = (draft.floats(&[], &[1.0]), draft.floats(&[], &[0.0]));
    let y = draft.tensor(T::Float32, &[3, 4]);
    let options = BuiltinOptions::OneHotOptions(Box::new(OneHotOptions { axis: -1 }));
    draft.operator(B::OneHot, &[indices, depth, on, off], &[y], Some(options));
    draft.ends(0, &[indices], &[y]);
    assert_eq!(operations(&import(&draft)), [O::Reshape, O::Equal, O::Select]);
}

#[test]
fn nibbles_become_bytes() {
    let mut draft = int8_convolution();
    draft.tensor_mut(1).type_ = T::Int4 as i8;
    // 1 in the low half, -2 in the high one.
    draft.model.buffers.as_mut().unwrap()[1].data = Some(vec![0xE1; 72]);
    let import = import(&draft);
    let main = &import.model.main;
    let at = main.operands[main.operations[0].inputs[1] as usize].location.offset as usize;
    assert_eq!(import.model.operand_values[at..at + 4], [1, 0xFE, 1, 0xFE]);
}

#[test]
fn quarters_of_bytes_become_bytes() {
    let mut draft = int8_convolution();
    draft.tensor_mut(1).type_ = T::Int2 as i8;
    // From the lowest bits: 1, -2, -1, 0.
    draft.model.buffers.as_mut().unwrap()[1].data = Some(vec![0b00_11_10_01; 36]);
    let import = import(&draft);
    let main = &import.model.main;
    let at = main.operands[main.operations[0].inputs[1] as usize].location.offset as usize;
    assert_eq!(import.model.operand_values[at..at + 5], [1, 0xFE, 0xFF, 0, 1]);
}

#[test]
fn upper_halves_of_floats_become_floats() {
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[2]);
    let halves = draft.constant(T::Bfloat16, &[2], &[0x80, 0x3F, 0x00, 0xC0]);
    let (floats, y) = (draft.tensor(T::Float32, &[2]), draft.tensor(T::Float32, &[2]));
    draft.operator(B::Cast, &[halves], &[floats], None);
    draft.operator(B::Maximum, &[x, floats], &[y], None);
    draft.ends(0, &[x], &[y]);
    let found = import(&draft);
    let main = &found.model.main;
    let at = main.operands[main.operations[0].inputs[0] as usize].location.offset as usize;
    let stored = [1.0_f32.to_le_bytes(), (-2.0_f32).to_le_bytes()].concat();
    assert_eq!(found.model.operand_values[at..at + 8], stored);
}

#[test]
fn a_variable_that_every_run_sets_anew_is_no_state() {
    let mut draft = sequence_rnn(ActivationFunctionType::Relu);
    let zeros = draft.constant(T::Float16, &[1, 2], &[0; 4]);
    draft.operator(B::Dequantize, &[zeros], &[4], None);
    let operators = draft.graph(0).operators.as_mut().unwrap();
    operators.swap(0, 1);
    assert!(import(&draft).states.is_empty());
}

#[test]
fn tensors_without_shape_have_no_rank() {
    let mut draft = Draft::new();
    let (x, y, z) = (draft.tensor(T::Float32, &[2, 3]), draft.tensor(T::Float32, &[]), {
        draft.tensor(T::Float32, &[2, 3])
    });
    draft.tensor_mut(y).shape = None;
    draft.tensor_mut(y).has_rank = false;
    draft.operator(B::Relu, &[x], &[y], None);
    draft.operator(B::Softmax, &[y], &[z], None);
    draft.ends(0, &[x], &[z]);
    import(&draft);
}

#[test]
fn sizes_that_follow_from_shapes_are_known() {
    let mut draft = Draft::new();
    let image = draft.tensor(T::Float32, &[1, 3, 5, 2]);
    let shape = draft.tensor(T::Int32, &[4]);
    draft.operator(B::Shape, &[image], &[shape], None);
    let (from, to, step) =
        (draft.integers(&[1], &[1]), draft.integers(&[1], &[3]), draft.integers(&[1], &[1]));
    let size = draft.tensor(T::Int32, &[2]);
    let options = Some(BuiltinOptions::StridedSliceOptions(Box::default()));
    draft.operator(B::StridedSlice, &[shape, from, to, step], &[size], options);
    let two = draft.integers(&[], &[2]);
    let double = draft.tensor(T::Int32, &[2]);
    draft.operator(B::Mul, &[size, two], &[double], None);
    let resized = draft.tensor(T::Float32, &[1, 6, 10, 2]);
    draft.operator(B::ResizeBilinear, &[image, double], &[resized], None);
    draft.ends(0, &[image], &[resized]);
    assert_eq!(operations(&import(&draft)), [O::ResizeBilinear]);
}

#[test]
fn a_size_that_is_given_with_the_image_becomes_our_extensions_operation() {
    for (builtin, method) in [(B::ResizeBilinear, 0), (B::ResizeNearestNeighbor, 1)] {
        let mut draft = Draft::new();
        let image = draft.tensor(T::Float32, &[1, 3, 5, 2]);
        let size = draft.tensor(T::Int32, &[2]);
        let resized = draft.tensor(T::Float32, &[1, 1, 1, 2]);
        draft.operator(builtin, &[image, size], &[resized], None);
        draft.ends(0, &[image, size], &[resized]);
        let import = import(&draft);
        assert_eq!(operations(&import), [E::ResizeTo.operation_type()]);
        let operand =
            &import.model.main.operands[import.model.main.operations[0].inputs[2] as usize];
        let start = operand.location.offset as usize;
        assert_eq!(import.model.operand_values[start..start + 4], i32::to_le_bytes(method));
    }
    let mut draft = Draft::new();
    let image = draft.tensor(T::Int32, &[1, 3, 5, 2]);
    let size = draft.tensor(T::Int32, &[2]);
    let resized = draft.tensor(T::Int32, &[1, 1, 1, 2]);
    draft.operator(B::ResizeNearestNeighbor, &[image, size], &[resized], None);
    draft.ends(0, &[image, size], &[resized]);
    assert_eq!(reasons(&draft), ["INT32 is not resized to a size that is computed"]);
}

#[test]
fn a_count_that_is_computed_becomes_our_extensions_top_k() {
    for (element, steps) in [
        (T::Int32, vec![E::TopK.operation_type()]),
        (T::Int16, vec![E::Cast.operation_type(), E::TopK.operation_type()]),
    ] {
        let mut draft = Draft::new();
        let x = draft.tensor(T::Float32, &[2, 5]);
        let count = draft.tensor(element, &[]);
        let values = draft.tensor(T::Float32, &[1, 1]);
        let indices = draft.tensor(T::Int32, &[1, 1]);
        for output in [values, indices] {
            draft.tensor_mut(output).shape_signature = Some(vec![-1, -1]);
        }
        draft.operator(B::TopkV2, &[x, count], &[values, indices], None);
        draft.ends(0, &[x, count], &[values, indices]);
        let import = import(&draft);
        assert_eq!(operations(&import), steps);
        for output in &import.model.main.outputs {
            let dimensions = &import.model.main.operands[*output as usize].dimensions;
            assert_eq!(*dimensions, [2, 0], "the rows are known");
        }
    }
    // None at all is a count that the HAL's operation does not take.
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[2, 5]);
    let count = draft.integers(&[], &[0]);
    let values = draft.tensor(T::Float32, &[2, 0]);
    let indices = draft.tensor(T::Int16, &[2, 0]);
    draft.operator(B::TopkV2, &[x, count], &[values, indices], None);
    draft.ends(0, &[x], &[values, indices]);
    let steps = operations(&import(&draft));
    assert_eq!(steps, [E::TopK.operation_type(), E::Cast.operation_type()]);
}

#[test]
fn what_has_no_elements_is_computed_as_the_hal_has_no_constants_of_it() {
    // The shape of a scalar, as an output.
    let mut draft = Draft::new();
    let scalar = draft.tensor(T::Float32, &[]);
    let shape = draft.tensor(T::Int32, &[0]);
    draft.operator(B::Shape, &[scalar], &[shape], None);
    draft.ends(0, &[scalar], &[shape]);
    assert_eq!(operations(&import(&draft)), [E::Fill.operation_type()]);
    // A part that is empty, which another operator takes.
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[4, 5]);
    let (from, to, step) = (
        draft.integers(&[2], &[3, 0]),
        draft.integers(&[2], &[3, 5]),
        draft.integers(&[2], &[1, 1]),
    );
    let [part, negative] = [0; 2].map(|_| draft.tensor(T::Float32, &[0, 5]));
    let options = Some(BuiltinOptions::StridedSliceOptions(Box::default()));
    draft.operator(B::StridedSlice, &[x, from, to, step], &[part], options);
    draft.operator(B::Neg, &[part], &[negative], None);
    draft.ends(0, &[x], &[negative]);
    assert_eq!(operations(&import(&draft)), [O::StridedSlice, O::Neg]);
}

#[test]
fn an_input_without_elements_is_computed_where_it_is_read() {
    let mut draft = Draft::new();
    let [past, like] = [&[1, 1 << 20][..], &[0]].map(|it| draft.tensor(T::Float32, it));
    draft.tensor_mut(past).shape_signature = Some(vec![-1, 1 << 20]);
    let x = draft.tensor(T::Float32, &[2, 1 << 20]);
    let y = draft.tensor(T::Float32, &[1, 1 << 20]);
    draft.tensor_mut(y).shape_signature = Some(vec![-1, 1 << 20]);
    let options = Some(BuiltinOptions::ConcatenationOptions(Box::default()));
    draft.operator(B::Concatenation, &[past, x], &[y], options);
    draft.ends(0, &[past, x, like], &[y]);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), draft.bytes()).unwrap();
    let shapes = [Some(vec![0, 1 << 20]), None, Some(vec![0])];
    let import = crate::import_file_with_shapes(file.path(), &shapes).unwrap();
    assert_eq!(operations(&import), [E::Fill.operation_type(), O::Concatenation]);
    assert_eq!(import.inputs[0].shape, [Some(0), Some(1 << 20)]);
    let main = &import.model.main;
    let lengths = main.inputs.iter().map(|it| &*main.operands[*it as usize].dimensions);
    let expected: [&[u32]; 3] = [&[1, 1], &[2, 1 << 20], &[1]];
    assert_eq!(lengths.collect::<Vec<_>>(), expected);
    assert_eq!(import.outputs[0].shape, [Some(2), Some(1 << 20)]);
}

#[test]
fn open_lengths_can_be_chosen() {
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[1, 4]);
    draft.tensor_mut(x).shape_signature = Some(vec![-1, 4]);
    let shape = draft.tensor(T::Int32, &[2]);
    draft.operator(B::Shape, &[x], &[shape], None);
    draft.ends(0, &[x], &[shape]);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), draft.bytes()).unwrap();
    let with = |shape: &[u32]| crate::import_file_with_shapes(file.path(), &[Some(shape.to_vec())]);
    let import = with(&[7, 4]).unwrap();
    assert_eq!(import.inputs[0].shape, [Some(7), Some(4)]);
    assert!(!import.has_example_shapes);
    let text = with(&[7, 5]).unwrap_err().to_string();
    assert_eq!(text, "input 0: the shape [7, 5] does not fit [?, 4]");
}
