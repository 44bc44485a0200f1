//! What becomes of products of quantized numbers that the HAL does not have: activations of 16 bits, and factors with scales by channel.

use super::draft::Draft;
use super::mapping::{import, reasons};
use crate::schema::{
    ActivationFunctionType, BatchMatMulOptions, BuiltinOperator as B, BuiltinOptions,
    Conv2DOptions, FullyConnectedOptions, Padding, TensorType as T,
};
use nnhal_hal::{OperandLifeTime, OperationType as O};
use nnhal_ops::extension::operation_name;

/// A CONV_2D with a bias of this type.
pub(super) fn convolution(bias_type: T, bias: &[u8], length: i32) -> Draft {
    let mut draft = Draft::new();
    let input = draft.tensor(T::Int16, &[1, 2, 2, 1]);
    draft.quantize(input, &[0.5], 0, 0);
    let filter = draft.constant(T::Int8, &[2, 1, 1, 1], &[3, 0xFC]);
    draft.quantize(filter, &[0.25, 0.125], 0, 0);
    let bias = draft.constant(bias_type, &[length], bias);
    let output = draft.tensor(T::Int16, &[1, 2, 2, 2]);
    draft.quantize(output, &[0.01], 0, 0);
    let options = Conv2DOptions {
        padding: Padding::Valid,
        stride_w: 1,
        stride_h: 1,
        fused_activation_function: ActivationFunctionType::Relu,
        ..Conv2DOptions::default()
    };
    let options = Some(BuiltinOptions::Conv2DOptions(Box::new(options)));
    draft.operator(B::Conv2d, &[input, filter, bias], &[output], options);
    draft.ends(0, &[input], &[output]);
    draft
}

#[test]
fn they_are_computed_as_floats_and_a_bias_of_64_bits_is_not_cut() {
    let huge = 1_i64 << 40;
    let bytes: Vec<u8> = [huge, -6].iter().flat_map(|it| it.to_le_bytes()).collect();
    let import = import(&convolution(T::Int64, &bytes, 2));
    let main = &import.model.main;
    let names: Vec<_> =
        main.operations.iter().map(|it| operation_name(it.operation_type)).collect();
    assert_eq!(names, ["DEQUANTIZE", "DEQUANTIZE", "CONV_2D", "QUANTIZE"]);
    let convolution = &main.operations[2];
    assert_eq!(convolution.operation_type, O::Conv2d);
    let bias = &main.operands[convolution.inputs[2] as usize];
    assert_eq!(bias.lifetime, OperandLifeTime::ConstantCopy);
    let start = bias.location.offset as usize;
    let (floats, _) = import.model.operand_values[start..start + 8].as_chunks();
    let floats: Vec<f32> = floats.iter().map(|it| f32::from_le_bytes(*it)).collect();
    assert_eq!(floats, [2_f32.powi(40) * 0.5 * 0.25, -6.0 * 0.5 * 0.125]);
}

fn names(draft: &Draft) -> Vec<String> {
    let import = import(draft);
    let operations = import.model.main.operations.iter();
    operations.map(|it| operation_name(it.operation_type).to_string()).collect()
}

#[test]
fn a_layer_may_have_activations_of_16_bits_for_weights() {
    let mut draft = Draft::new();
    let [x, y] = [[3, 2], [4, 2]].map(|shape| {
        let tensor = draft.tensor(T::Int16, &shape);
        draft.quantize(tensor, &[0.5], 0, 0);
        tensor
    });
    let output = draft.tensor(T::Int16, &[3, 4]);
    draft.quantize(output, &[0.01], 0, 0);
    let options = FullyConnectedOptions::default();
    let options = Some(BuiltinOptions::FullyConnectedOptions(Box::new(options)));
    draft.operator(B::FullyConnected, &[x, y], &[output], options);
    draft.ends(0, &[x, y], &[output]);
    assert_eq!(names(&draft), ["DEQUANTIZE", "DEQUANTIZE", "FULLY_CONNECTED", "QUANTIZE"]);
}

#[test]
fn a_factor_of_8_bits_with_scales_by_channel_is_dequantized() {
    for is_first in [true, false] {
        let mut draft = Draft::new();
        let constant = draft.constant(T::Int8, &[1, 2, 2], &[1, 2, 3, 4]);
        draft.quantize(constant, &[0.5, 0.25], 0, 2);
        let other = draft.tensor(T::Int8, &[1, 2, 2]);
        draft.quantize(other, &[0.125], 7, 0);
        let output = draft.tensor(T::Int8, &[1, 2, 2]);
        draft.quantize(output, &[0.01], -1, 0);
        let factors = if is_first { [constant, other] } else { [other, constant] };
        let options =
            Some(BuiltinOptions::BatchMatMulOptions(Box::<BatchMatMulOptions>::default()));
        draft.operator(B::BatchMatmul, &factors, &[output], options);
        draft.ends(0, &[other], &[output]);
        let expected = ["DEQUANTIZE", "DEQUANTIZE", "BATCH_MATMUL", "QUANTIZE"];
        assert_eq!(names(&draft), expected, "first: {is_first}");
    }
}

#[test]
fn a_bias_that_does_not_fit_is_named() {
    let one = 1_i32.to_le_bytes();
    let of_one = convolution(T::Int32, &one, 1);
    let what = "1 elements of the bias and 2 scales of the weights, for 2 channels";
    assert_eq!(reasons(&of_one), [what]);
    let of_floats = convolution(T::Float32, &[0; 8], 2);
    assert_eq!(reasons(&of_floats), ["the bias is Float32, expected Int64 or Int32 beside Int16"]);
}
