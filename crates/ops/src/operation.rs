//! [`Operation`]: the functions that every operation has.

use crate::call::{Call, Output, Since};
use crate::error::Fault;
use crate::shape::Shape;
use crate::signature::Signature;

/// What an operation, or a tight family of them, means.
///
/// A value of the type is the operation's arguments, decoded: strides, axes, flags, with the
/// defaults of trailing arguments settled. Tensors stay in the [`Call`].
///
/// The functions are asked in this order, each relying on the ones before:
///
/// 1. [`SIGNATURES`](Self::SIGNATURES) fit the argument types;
/// 2. [`since`](Self::since) and [`validate`](Self::validate) look at ranks and quantization;
/// 3. [`decode`](Self::decode) reads the values that are arguments;
/// 4. [`output_shapes`](Self::output_shapes) relates shapes and values;
/// 5. [`reference`](Self::reference) computes.
///
/// While a model is validated, 3 and 4 may answer [`Fault::NotKnown`]; they are asked again when
/// the operation is about to run.
pub trait Operation: Sized {
    /// The argument types of each operation of the interface that it stands for. Those of the extension's operations
    /// are in a table of their own, [`ExtensionOperation::signature`](crate::extension::ExtensionOperation::signature).
    const SIGNATURES: &'static [&'static Signature] = &[];

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

    /// The dimensions of the first output, once everything about the inputs is known.
    ///
    /// # Errors
    /// As [`output_shapes`](Self::output_shapes); [`Fault::NotKnown`] if values decide a length.
    fn output_dimensions(&self, call: &Call<'_>) -> Result<Vec<u32>, Fault> {
        let shape = self.output_shapes(call)?.swap_remove(0);
        shape.to_known().ok_or_else(|| call.not_known("dimensions"))
    }

    /// Computes the outputs, in the plainest way. Everything about the inputs is known.
    ///
    /// # Errors
    /// [`Fault::Invalid`] for values that the definition excludes, [`Fault::OutOfMemory`].
    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault>;
}
