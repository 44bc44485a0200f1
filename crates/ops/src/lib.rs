//! What every operation of the Neural Networks HAL means: its arguments, rules, output shapes and
//! results.
//!
//! Drivers and engines use this crate to turn an untrusted [`Model`](nnhal_hal::Model) into a
//! [`ValidModel`], and to compute an operation by its definition. Each operation has a file under
//! [`operations`] with its typed arguments, its signature by version, validation, output shapes, reference
//! kernel and tests. It implements [`Operation`], and the list in [`operations`] makes it a variant of
//! [`AnyOperation`].
//!
//! | module | contents |
//! |---|---|
//! | [`operations`] | the operations |
//! | [`operation`] | [`Operation`], the trait that all of them implement |
//! | [`extension`] | operations and operand types that the interface lacks |
//! | [`signature`] | [`Signature`]: argument types by version, as data |
//! | [`call`] | [`Call`]: an operation with its actual arguments, as far as they are known |
//! | [`shape`] | [`Shape`]: dimensions, as far as they are known |
//! | [`rules`] | rules that several operations share: padding, broadcasting, requantization |
//! | [`simplify`] | leaving out arguments that hold their default |
//! | [`mod@validate`] | [`Model`](nnhal_hal::Model) to [`ValidModel`] |
//! | [`error`] | [`OperationError`]: what is wrong with an operation |
//! | [`facts`] | what is true of an operation whatever it computes: [`AnyOperation::by_element`] and others |
//!
//! ```
//! use nnhal_hal::{HalVersion, OperandSpec, OperationType, SubgraphBuilder};
//!
//! let relu_of = |spec: OperandSpec| {
//!     let mut graph = SubgraphBuilder::new();
//!     let x = graph.input("x", spec.clone());
//!     let y = graph.operation(OperationType::Relu, [x], spec);
//!     graph.output(y);
//!     graph.into_model()
//! };
//!
//! let valid = nnhal_ops::validate(&relu_of(OperandSpec::tensor_float32([2, 3]))?, HalVersion::LATEST)?;
//! assert_eq!(valid.oldest_version(), HalVersion::V1_0);
//!
//! // RELU does not take integers. The error names the operation, the argument and what was expected.
//! let error = nnhal_ops::validate(&relu_of(OperandSpec::tensor_int32([2]))?, HalVersion::LATEST).unwrap_err();
//! assert!(error.to_string().contains("RELU"), "{error}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Which operand types each operation takes, and since which version, is a table that
//! `cargo run -p nnhal-ops --example operations_table` prints; `docs/operations.md` in the
//! repository is its output.

pub mod call;
pub mod error;
pub mod extension;
pub mod facts;
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
