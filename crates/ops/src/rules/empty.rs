//! Tensors without elements, whose other lengths could be any numbers: what moves and counts elements forms products of
//! them all the same, before it finds that there is nothing to do.

use crate::call::Argument;
use crate::error::Fault;
use crate::shape::Shape;

/// Checks the shape that an argument has, or is about to get: if a length is 0 the product of the others has 32 bits, as the
/// number of elements of any other tensor. (NumPy refuses such arrays too.)
///
/// # Errors
/// [`Fault::Invalid`], about the argument.
pub(crate) fn check(argument: &Argument<'_>, shape: &Shape) -> Result<(), Fault> {
    let Some(lengths) = shape.lengths().filter(|lengths| lengths.contains(&Some(0))) else {
        return Ok(());
    };
    let others = lengths.iter().flatten().filter(|length| **length != 0);
    match others.copied().try_fold(1, u32::checked_mul) {
        Some(_) => Ok(()),
        None => Err(argument.wrong("shape", shape, "a product of lengths, without 0, below 2^32")),
    }
}
