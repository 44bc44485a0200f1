//! A driver with operations and operand types of its own, worked through.
//!
//! Vendors may add to what the interface defines: an *extension* is a name, operand types, and
//! operations (1.2 on). This one is `com.example.fibonacci`:
//!
//! | | number | |
//! |---|---|---|
//! | type TENSOR_UINT64 | 0 | a tensor of unsigned 64-bit integers, 8 bytes each |
//! | type UINT64 | 1 | one such integer |
//! | operation [`FIBONACCI`](operations::Fibonacci) | 0 | the first `count` Fibonacci numbers, or their remainders |
//! | operation [`TO_FLOAT32`](operations::ToFloat32) | 1 | such integers as floats |
//!
//! `cargo run -p fibonacci-extension` builds a model with both and with operations of the
//! interface, and shows how the ratio of neighbours nears the golden one.
//!
//! # What there is to write
//!
//! | file | for whom | what |
//! |---|---|---|
//! | `vocabulary.rs` | application and driver | name, types, operations: the extension's header file |
//! | `operations/` | driver | what the operations mean, a file each |
//! | `engine.rs` | driver | [`Engine`](nnhal_driver::Engine): what is supported, how a model becomes a program |
//! | `program.rs` | driver | [`Program`](nnhal_driver::Program): running it |
//! | `main.rs` | application | writing a model with the extension, and running it |
//! | `tests/contract.rs` | driver | what the contract asks of extensions, by its numbers |
//!
//! # How a model names things
//!
//! A type or operation of an extension is a number with a prefix in its high 16 bits. Which prefix
//! stands for which extension is written in each model (`extensionNameToPrefix`), so a driver
//! never compares with a fixed code: it asks the model for its own extension's prefix first
//! ([`Vocabulary::of`]).
//!
//! ```
//! use fibonacci_extension::{EXTENSION_NAME, FibonacciEngine, Vocabulary};
//! use nnhal_hal::{Device, ExecutionOptions, HalVersion, ModelBuilder, OperandSpec, OperandType};
//! use nnhal_hal::{PrepareOptions, RequestBuilder, SubgraphBuilder};
//!
//! let words = Vocabulary::with_prefix(1).expect("any prefix but 0");
//! let mut graph = SubgraphBuilder::new();
//! let count = graph.input("count", OperandSpec::scalar(OperandType::Int32));
//! // How many there will be is known when the model runs: length 0, unknown.
//! let numbers = OperandSpec::new(words.tensor_uint64(), [0]);
//! let numbers = graph.operation(words.fibonacci(), [count], numbers);
//! graph.output(numbers);
//! let mut model = ModelBuilder::new();
//! model.extension(EXTENSION_NAME, words.prefix());
//! let model = model.build(graph)?;
//!
//! let device = nnhal_driver::DriverDevice::new(FibonacciEngine::default());
//! let prepared = device.prepare_model(&model, HalVersion::V1_2, PrepareOptions::default())?;
//! let mut request = RequestBuilder::new();
//! request.input(&7_i32.to_le_bytes()).output(7 * 8);
//! let request = request.build()?;
//! let execution = prepared.execute(&request, &ExecutionOptions::default())?;
//! assert_eq!(execution.dimensions(0), Some(&[7][..]));
//! assert_eq!(RequestBuilder::read_output(&request, 0)?[48..], 8_u64.to_le_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Who checks what
//!
//! | | is checked by |
//! |---|---|
//! | the table of names and prefixes; that a prefix has a name; that operands of the extension have no scale, zero point or channel quantization; indexes and order | `nnhal_ops::validate`, before the driver's engine is asked anything |
//! | that the device offers the extension; that scalars have no dimensions; lengths of constants; lengths of a request's buffers | the driver, by what [`Engine::extensions`](nnhal_driver::Engine::extensions) says of the types |
//! | argument types, ranks, values: all that only the extension knows | the engine, in [`Engine::supports`](nnhal_driver::Engine::supports) as far as it is known before running, the rest while it runs |
//!
//! What `supports` lets pass must be prepared, so it looks at everything that a model says. What a
//! model does not say, such as a count that comes with the request, is looked at before it is used:
//! here it decides how much memory is taken.
//!
//! # What the engine does with the rest of a model
//!
//! A model without operations of the extension is the reference engine's as a whole. In others the
//! interface's operations are run by the reference kernels in `ops`, one by one. Control flow is
//! supported only in models of the first kind, and no one can watch the operations of the second
//! kind run ([`Observer`](nnhal_driver::Observer)): interpreting subgraphs is more than an example needs.

mod engine;
pub mod operations;
mod program;
mod vocabulary;

pub use engine::FibonacciEngine;
pub use program::{FibonacciProgram, Interpreted};
pub use vocabulary::{EXTENSION_NAME, Vocabulary, extension};
