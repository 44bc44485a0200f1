//! Names of kernels, as profiles show them.
//!
//! A name is the operation, the filter's height and width if it has one, the algorithm where there are
//! several, the type of the elements, and the instruction set where each has a kernel of its own:
//! `conv2d 3x3 winograd f32 avx512`, `elementwise max i8`, `top k f32`. What only moves elements is
//! named without a type: `copy`, `gather`, `select`.

use nnhal_kernels::convolution::Shape;

/// The operation and the filter of a convolution: `conv2d 3x3`.
pub(super) fn convolution(shape: &Shape, is_depthwise: bool) -> String {
    let [height, width] = shape.filter;
    let is_column = shape.batch == 1 && shape.input[1] == 1 && shape.output == shape.input;
    let operation = match shape.groups {
        _ if is_depthwise => "depthwise conv2d",
        1 if is_column && shape.is_matrix_product() => return "fully connected".to_owned(),
        1 => "conv2d",
        _ => "grouped conv2d",
    };
    format!("{operation} {height}x{width}")
}

/// The operation and the filter of a transposed convolution.
pub(super) fn transposed_convolution([height, width]: [usize; 2]) -> String {
    format!("transposed conv2d {height}x{width}")
}

/// The type of quantized elements.
pub(super) fn quantized(is_signed: bool) -> &'static str {
    if is_signed { "i8" } else { "u8" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(filter: [usize; 2], groups: usize) -> Shape {
        Shape {
            batch: 1,
            input: [8, 8],
            input_channels: 4,
            output: [8, 8],
            output_channels: 4,
            filter,
            stride: [1, 1],
            dilation: [1, 1],
            padding_before: [0, 0],
            groups,
        }
    }

    #[test]
    fn convolutions_are_named_by_operation_and_filter() {
        assert_eq!(convolution(&shape([3, 5], 1), false), "conv2d 3x5");
        assert_eq!(convolution(&shape([1, 1], 1), false), "conv2d 1x1");
        assert_eq!(convolution(&shape([3, 3], 2), false), "grouped conv2d 3x3");
        assert_eq!(convolution(&shape([3, 3], 4), true), "depthwise conv2d 3x3");
        assert_eq!(transposed_convolution([2, 3]), "transposed conv2d 2x3");
        let connected = Shape { input: [8, 1], output: [8, 1], ..shape([1, 1], 1) };
        assert_eq!(convolution(&connected, false), "fully connected");
    }
}
