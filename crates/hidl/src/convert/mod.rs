//! Between the types of each version and the canonical ones of [`nnhal_hal`].
//!
//! Both directions are one trait, [`Convert`]. From a version's type to the canonical one numbers
//! become values, and unknown numbers are refused (contract: GEN-7), as is everything that the
//! version does not have: a 1.2 operation in a 1.0 model, say (contract: GEN-6). Back again it is
//! the same: what the version cannot carry is named by [`nnhal_hal::Obstacle`]s. What goes through, goes
//! through without loss, there and back; except that a shape of [`nnhal_hal::Capabilities`] older than
//! 1.3 says less, see [`capabilities`].
//!
//! Whether a model or request is *valid* is not asked here.
//!
//! ```
//! use nnhal_hidl::convert::Convert;
//! use nnhal_hidl::v1_3::OptionalTimePoint;
//!
//! let point = OptionalTimePoint::NanosecondsSinceEpoch(5);
//! let deadline = point.to_canonical()?.expect("a deadline");
//! assert_eq!(deadline.nanoseconds_since_epoch(), 5);
//! assert!(OptionalTimePoint::Unknown { tag: 2 }.to_canonical().is_err());
//! # Ok::<(), nnhal_hidl::convert::ConversionError>(())
//! ```

pub mod capabilities;
mod codes;
mod error;
mod memory;
mod model;
mod request;
mod results;
#[cfg(test)]
mod tests;

pub use error::ConversionError;
pub(crate) use request::expect_expressible;

/// A type of one version of the interface, and the canonical type that means the same.
pub trait Convert: Sized {
    /// The type of [`nnhal_hal`].
    type Canonical;

    /// What this means.
    ///
    /// # Errors
    /// See [`ConversionError`]; its status is what a method answers that was passed this.
    fn to_canonical(&self) -> Result<Self::Canonical, ConversionError>;

    /// What means the same in this version.
    ///
    /// # Errors
    /// [`ConversionError::Inexpressible`] if nothing does; [`ConversionError::Duplicate`] if the
    /// system has no descriptor left.
    fn from_canonical(canonical: &Self::Canonical) -> Result<Self, ConversionError>;
}

/// All of them, to the canonical type.
fn all_to_canonical<T: Convert>(all: &[T]) -> Result<Vec<T::Canonical>, ConversionError> {
    all.iter().map(T::to_canonical).collect()
}

/// All of them, from the canonical type.
fn all_from_canonical<T: Convert>(all: &[T::Canonical]) -> Result<Vec<T>, ConversionError> {
    all.iter().map(T::from_canonical).collect()
}
