//! Parts of the names of kernels: see [`crate::PreparedKernel::name`].

use crate::convolution::Shape;

/// The operation and the filter of a convolution: `conv2d 3x3`.
pub(crate) fn convolution(shape: &Shape, is_depthwise: bool) -> String {
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
pub(crate) fn transposed_convolution([height, width]: [usize; 2]) -> String {
    format!("transposed conv2d {height}x{width}")
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
