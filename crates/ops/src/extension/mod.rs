//! Our extension of the interface: operations and operand types that `.tflite` files need and the
//! interface does not define (contract: DEV-EXT, EXT).
//!
//! Its operations are operations like the interface's: they implement [`Operation`](crate::Operation)
//! and are entered in the list of [`operations`](crate::operations). Some take the rules of an operation
//! of the interface over, for more types and more axes; their arguments are decoded into the same Rust
//! type, and [`Call::definition`](crate::Call::definition) names the operation that they follow.
//!
//! A model may map any prefix to the extension's name. Validation replaces it by [`PREFIX`]; so in a
//! [`ValidModel`](crate::ValidModel) the types and operations are the constants of this module.
//!
//! `docs/extension.md` in the repository lists the types and operations, as
//! `cargo run -p nnhal-ops --example extension_table` prints them.

mod counter_based;
mod double;
mod prefix;
mod signatures;
mod table;
pub mod types;
mod wide;

pub mod batch_gather;
pub mod binary;
pub mod bitcast;
pub mod broadcast_args;
pub mod bucketize;
pub mod cast;
pub mod choice;
pub mod complex;
pub mod conv_3d;
pub mod cumulative_sum;
pub mod division;
pub mod dynamic_conv_2d;
pub mod dynamic_fully_connected;
pub mod dynamic_round;
pub mod dynamic_update_slice;
pub mod fourier;
pub mod gather_nd;
pub mod gather_slices;
pub mod matrix_diagonal;
pub mod non_max_suppression;
pub mod nonzero;
pub mod one_hot;
pub mod random;
pub mod range;
pub mod reduce_window;
pub mod reverse_sequence;
pub mod rng_bit_generator;
pub mod scatter_nd;
pub mod scatter_slices;
pub mod segments;
pub mod shape_of;
pub mod sparse_to_dense;
pub mod unary;
pub mod unique;

pub use table::ExtensionOperation;
pub use types::{
    TENSOR_COMPLEX64, TENSOR_FLOAT64, TENSOR_INT64, TENSOR_UINT16, TENSOR_UINT32, TENSOR_UINT64,
    element_size, type_name,
};

pub(crate) use double::{doubles, is_double, with_doubles};
pub(crate) use prefix::resolved;
pub(crate) use wide::{integer_range, is_wide, stored, wide};

use nnhal_hal::{Extension, OperationType};

/// The extension's name.
pub const NAME: &str = "org.nnhal.tflite";

/// The prefix that stands for it in a [`ValidModel`](crate::ValidModel), and in models that this
/// project's programs write.
pub const PREFIX: u16 = 0x6E68;

/// The extension as a device offers it.
pub fn offered() -> Extension {
    Extension { name: NAME.to_owned(), operand_types: types::offered() }
}

/// The name of an operation, as messages show it. Of a [`ValidModel`](crate::ValidModel)'s.
pub fn operation_name(operation: OperationType) -> String {
    ExtensionOperation::of(operation)
        .map_or_else(|| operation.to_string(), |extended| extended.name().to_owned())
}

#[cfg(test)]
mod tests;
