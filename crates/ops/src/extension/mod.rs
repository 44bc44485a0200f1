//! Our extension of the interface: operations and operand types that `.tflite` files need and the
//! interface does not define (contract: DEV-EXT, EXT).
//!
//! Here is what it is called and what belongs to it. Its operations are operations like the interface's: they
//! implement [`Operation`](crate::Operation) and are entered in the list of [`operations`](crate::operations), which
//! has a folder for those that only the extension has. Some take the rules of an operation
//! of the interface over, for more types and more axes; their arguments are decoded into the same Rust
//! type, and [`Call::definition`](crate::Call::definition) names the operation that they follow.
//!
//! A model may map any prefix to the extension's name. Validation replaces it by [`PREFIX`]; so in a
//! [`ValidModel`](crate::ValidModel) the types and operations are the constants of this module.
//!
//! `docs/extension.md` in the repository lists the types and operations, as
//! `cargo run -p nnhal-ops --example extension_table` prints them.

mod prefix;
mod table;
pub mod types;

pub use table::ExtensionOperation;
pub use types::{
    TENSOR_COMPLEX64, TENSOR_FLOAT64, TENSOR_INT64, TENSOR_UINT16, TENSOR_UINT32, TENSOR_UINT64,
    element_size, type_name,
};

pub(crate) use prefix::resolved;

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
