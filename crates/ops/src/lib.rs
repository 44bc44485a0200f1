//! What every operation of the Neural Networks HAL means.
//!
//! One operation, one file under [`operations`] (or one tight family): its typed arguments, its
//! signature by version, validation, output shapes, reference kernel and tests. Each implements
//! [`Operation`]; the list in [`operations`] enters it into [`AnyOperation`].
//!
//! | module | contents |
//! |---|---|
//! | [`operations`] | the operations |
//! | [`operation`] | the trait they all implement |
//! | [`signature`] | argument types by version, as data |
//! | [`call`] | an operation with its actual arguments, as far as they are known |
//! | [`shape`] | dimensions, as far as they are known |
//! | [`rules`] | rules that several operations share: padding, broadcasting, requantization |
//! | [`simplify`] | leaving out arguments that hold their default |
//! | [`mod@validate`] | [`Model`](nnhal_hal::Model) to [`ValidModel`] |
//! | [`error`] | what is wrong with an operation |
//!
//! Which operand types each operation takes, and since which version, is a table that
//! `cargo run -p nnhal-ops --example operations_table` prints; `docs/operations.md` in the
//! repository is its output.

pub mod call;
pub mod error;
pub mod operation;
pub mod operations;
pub mod rules;
pub mod shape;
pub mod signature;
pub mod simplify;
pub mod validate;

pub use call::{Allowance, Argument, ArgumentSource, Call, Interrupt, Output, Since, Value};
pub use error::{Concern, Fault, OperationError, Subject};
pub use operation::Operation;
pub use operations::AnyOperation;
pub use shape::Shape;
pub use signature::{Form, Parameter, ParameterType, Presence, Row, Signature};
pub use validate::{CheckedModel, Defect, ValidModel, ValidationError, validate};
