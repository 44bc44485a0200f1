//! Shapes of a file as a device takes them.

use crate::error::{Error, Result};
use crate::info::TensorInfo;
use nnhal_hal::Operand;
use nnhal_ops::extension::element_size;

pub(crate) fn element_count(dimensions: &[u32]) -> Option<usize> {
    dimensions.iter().try_fold(1_usize, |count, length| count.checked_mul(*length as usize))
}

/// Bytes of a value with these dimensions on a device.
pub(crate) fn byte_size(operand: &Operand, dimensions: &[u32]) -> Option<usize> {
    let element = element_size(operand.operand_type)?;
    element_count(dimensions)?.checked_mul(element as usize)
}

/// The lengths of a shape that a device sees as these dimensions: a scalar of the file has one
/// element of rank 1 there.
pub(crate) fn shape_lengths<'a>(
    info: &TensorInfo,
    dimensions: &'a [u32],
) -> impl Iterator<Item = usize> + 'a {
    let is_scalar = is_scalar(info) && *dimensions == [1];
    dimensions.iter().take(if is_scalar { 0 } else { usize::MAX }).map(|length| *length as usize)
}

pub(crate) fn shape_of(info: &TensorInfo, dimensions: &[u32]) -> Vec<usize> {
    shape_lengths(info, dimensions).collect()
}

/// Whether the file says that it is a scalar.
pub(crate) fn is_scalar(info: &TensorInfo) -> bool {
    info.shape.is_empty() && !info.is_rank_open
}

/// Whether the model was made for an input without elements: the device takes one of one element that nothing reads.
pub(crate) fn is_left_out(info: &TensorInfo, operand: &Operand) -> bool {
    info.shape.contains(&Some(0)) && operand.has_known_dimensions()
}

/// The shape of an input that the device takes with these dimensions.
pub(crate) fn shape_of_input(
    info: &TensorInfo,
    operand: &Operand,
    dimensions: &[u32],
) -> Vec<usize> {
    match info.known_shape() {
        Some(shape) if is_left_out(info, operand) => shape,
        _ => shape_of(info, dimensions),
    }
}

pub(crate) fn is_shape(info: &TensorInfo, dimensions: &[u32], shape: &[usize]) -> bool {
    if shape.is_empty() && is_scalar(info) {
        return true;
    }
    dimensions.len() == shape.len()
        && dimensions.iter().zip(shape).all(|(known, length)| *known as usize == *length)
}

/// The dimensions as the device takes them; with a length of 0 it does not, see [`Runner`](crate::Runner).
pub(crate) fn dimensions_of(
    info: &TensorInfo,
    operand: &Operand,
    shape: &[usize],
) -> Result<Vec<u32>> {
    let wrong = || {
        let open = |length: &u32| (*length != 0).then_some(*length as usize);
        let of_device = || operand.dimensions.iter().map(open).collect();
        let expected = if is_scalar(info) { Vec::new() } else { of_device() };
        Error::Shape { found: shape.to_vec(), expected }
    };
    if is_left_out(info, operand) {
        let fits = info.known_shape().is_some_and(|known| known == shape);
        let expected = info.shape.clone();
        return if fits {
            Ok(operand.dimensions.clone())
        } else {
            Err(Error::Shape { found: shape.to_vec(), expected })
        };
    }
    if is_scalar(info) && shape.is_empty() {
        let is_scalar = operand.operand_type.is_scalar();
        return Ok(if is_scalar { Vec::new() } else { vec![1] });
    }
    let dimensions: Option<Vec<u32>> = shape.iter().map(|it| u32::try_from(*it).ok()).collect();
    let dimensions = dimensions.ok_or_else(wrong)?;
    let may_be = |(known, length): (&u32, &u32)| *known == 0 || known == length;
    let is_rank_open = operand.dimensions.is_empty() && !operand.operand_type.is_scalar();
    if shape.contains(&0) {
        // No device gets it, so that what counts is what the file leaves open.
        let fits = dimensions.len() == operand.dimensions.len()
            && dimensions.iter().enumerate().all(|(axis, length)| {
                let signature = info.shape_signature.as_ref();
                let is_open = signature.is_some_and(|it| it.get(axis) == Some(&None));
                is_open || may_be((&operand.dimensions[axis], length))
            });
        return if fits { Ok(dimensions) } else { Err(wrong()) };
    }
    let fits = is_rank_open && !dimensions.is_empty()
        || operand.dimensions.len() == dimensions.len()
            && operand.dimensions.iter().zip(&dimensions).all(may_be);
    if fits { Ok(dimensions) } else { Err(wrong()) }
}
