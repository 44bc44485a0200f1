//! What becomes of products of 16-bit activations with 8-bit weights.

use super::draft::Draft;
use super::mapping::{import, reasons};
use crate::schema::{
    ActivationFunctionType, BuiltinOperator as B, BuiltinOptions, Conv2DOptions, Padding,
    TensorType as T,
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

#[test]
fn a_bias_that_does_not_fit_is_named() {
    let one = 1_i32.to_le_bytes();
    let of_one = convolution(T::Int32, &one, 1);
    let what = "1 elements of the bias and 2 scales of the weights, for 2 channels";
    assert_eq!(reasons(&of_one), [what]);
    let of_floats = convolution(T::Float32, &[0; 8], 2);
    assert_eq!(reasons(&of_floats), ["the bias is Float32, expected Int64 or Int32 beside Int16"]);
}
