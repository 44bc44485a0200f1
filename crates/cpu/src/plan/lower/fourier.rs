//! Fourier transforms, and the complex numbers that they give.

use super::movement;
use crate::graph::Node;
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_hal::OperandType;
use nnhal_kernels::fourier::{Magnitudes, RealFourier, Rows};
use nnhal_kernels::movement::StridedCopy;
use nnhal_ops::extension::TENSOR_COMPLEX64;
use nnhal_ops::operations::extension::complex::OfComplex;
use nnhal_ops::operations::extension::fourier;

/// RFFT2D of images of one row.
pub(super) fn transform(
    builder: &Builder<'_, '_>,
    node: &Node,
    it: &fourier::RealFourier,
) -> Result<Draft, Why> {
    let input = builder.graph.input(node, 0);
    let [rows, length] = it.lengths.map(|length| length as usize);
    for (what, found, is_taken, expected) in [
        ("height of the transform", rows, rows == 1, "1"),
        ("width of the transform", length, length > 1, "2 or more"),
    ] {
        if !is_taken {
            return Err(Why::Form { what, found: found.to_string(), expected });
        }
    }
    if length > RealFourier::MOST {
        let (found, most) = (length as u64, RealFourier::MOST as u64);
        return Err(Why::Limit { what: "columns of the transform", found, most });
    }
    // Before lengths are multiplied: beside one of 0 the others may be anything.
    if input.elements() == 0 {
        return Err(input.empty());
    }
    let lengths = input.lengths();
    let [.., height, width] = lengths[..] else { return Err(input.of_other_rank("2 or more")) };
    let count: usize = lengths[..lengths.len() - 2].iter().product();
    let rows = Rows { count, distance: height * width, elements: width.min(length) };
    let settings = builder.settings;
    let (set, threads) = (settings.instruction_set, settings.threads.get());
    Ok(Draft::new(node, RealFourier::prepare(set, rows, length, threads), [node.inputs[0]]))
}

/// Whether a CAST makes real numbers of complex ones.
pub(super) fn is_of_complex(builder: &Builder<'_, '_>, node: &Node) -> bool {
    builder.graph.input(node, 0).operand_type() == TENSOR_COMPLEX64
        && builder.graph.output(node, 0).operand_type() == OperandType::TensorFloat32
}

/// REAL, IMAG and COMPLEX_ABS.
pub(super) fn of_complex(builder: &Builder<'_, '_>, node: &Node, it: OfComplex) -> Draft {
    match it {
        OfComplex::Real => part(builder, node, 0),
        OfComplex::Imag => part(builder, node, 1),
        OfComplex::Abs => {
            let kernel = Magnitudes { set: builder.settings.instruction_set };
            Draft::new(node, kernel, [node.inputs[0]])
        }
    }
}

/// The real (0) or imaginary (1) parts: each second float.
pub(super) fn part(builder: &Builder<'_, '_>, node: &Node, part: usize) -> Draft {
    let count = builder.graph.output(node, 0).elements();
    let copy = StridedCopy::slice(&[count, 2], &[0, part], &[1, 1], &[count, 1]);
    movement::one(node, copy, size_of::<f32>(), Vec::new())
}
