//! [`Operation`]: the functions that every operation has.

use crate::call::{Call, Output, Since};
use crate::error::Fault;
use crate::shape::Shape;
use crate::signature::Signature;
use nnhal_hal::OperationType;

/// What an operation, or a tight family of them, means.
///
/// A value of the type is the operation's arguments, decoded: strides, axes, flags, with the
/// defaults of trailing arguments settled. Tensors stay in the [`Call`].
///
/// The functions are asked in this order, each relying on the ones before:
///
/// 1. [`signature`](Self::signature) fits the argument types;
/// 2. [`since`](Self::since) and [`validate`](Self::validate) look at ranks and quantization;
/// 3. [`decode`](Self::decode) reads the values that are arguments;
/// 4. [`output_shapes`](Self::output_shapes) relates shapes and values;
/// 5. [`reference`](Self::reference) computes.
///
/// While a model is validated, 3 and 4 may answer [`Fault::NotKnown`]; they are asked again when
/// the operation is about to run.
pub trait Operation: Sized {
    /// The argument types; `operation` is one of the family's.
    fn signature(operation: OperationType) -> &'static Signature;

    /// A need for a newer version than the argument types have, say for a rank that older
    /// versions do not allow. An unknown rank needs nothing.
    fn since(_call: &Call<'_>) -> Since {
        Since::ALWAYS
    }

    /// What types cannot say and values are not needed for: ranks, scales, zero points, equal
    /// lengths. What is not known passes.
    ///
    /// # Errors
    /// [`Fault::Invalid`]
    fn validate(_call: &Call<'_>) -> Result<(), Fault> {
        Ok(())
    }

    /// Reads the arguments. The only place that knows their positions.
    ///
    /// # Errors
    /// [`Fault::Invalid`] for a value that the definition excludes, [`Fault::NotKnown`].
    fn decode(call: &Call<'_>) -> Result<Self, Fault>;

    /// The shapes of the outputs, with every length that can be known by now. A length that only
    /// the values decide while computing is left unknown, even when all inputs are known.
    ///
    /// # Errors
    /// [`Fault::Invalid`] for shapes that do not go together, [`Fault::NotKnown`].
    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault>;

    /// Computes the outputs, in the plainest way. Everything about the inputs is known.
    ///
    /// # Errors
    /// [`Fault::Invalid`] for values that the definition excludes, [`Fault::OutOfMemory`].
    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault>;
}
