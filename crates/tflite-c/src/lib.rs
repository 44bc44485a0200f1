//! `libtensorflowlite_c.so`: the C functions of TensorFlow Lite, on nnhal's devices.
//!
//! Programs that use `tensorflow/lite/c/c_api.h` run with this library in the place of the stock one, whose file
//! name, soname and symbol versions it has. The headers are in `include/tensorflow/lite/c`; `cargo xtask install`
//! puts both where compilers find them. `examples/c/tflite.c` is a complete program.
//!
//! | module | functions |
//! |---|---|
//! | [`model`] | `TfLiteModel...` |
//! | [`options`] | `TfLiteInterpreterOptions...` |
//! | [`interpreter`] | `TfLiteInterpreter...` |
//! | [`signature`] | `TfLiteSignatureRunner...` |
//! | [`access`] | `TfLiteTensor...` and `TfLiteOpaqueTensor...`: shapes, elements, quantization |
//! | [`own_structures`] | `TfLiteIntArray...`, `TfLiteFloatArray...`, tensors that the program makes itself |
//! | [`delegate`] | `TfLiteXNNPackDelegate...`, `TfLiteNnapiDelegate...`, `TfLiteOpaqueDelegate...` |
//! | [`operator`], [`asynchronous`] | `TfLiteOperator...`; `TfLiteBackendBuffer...`, `TfLiteSynchronization...` |
//! | [`kernels_of_programs`] | `TfLiteOpaqueContext...`, `TfLiteOpaqueNode...`, `TfLiteTelemetry...`: failures only |
//! | [`version`] | `TfLiteVersion`, `TfLiteSchemaVersion`, `TfLiteTypeGetName` |
//!
//! # What is as in the stock library
//!
//! Ownership, statuses and threads: a model may be deleted once its interpreters are made; options at any time;
//! tensors belong to their interpreter, and `TfLiteTensor` has the classic layout, which programs read
//! themselves. Elements begin at multiples of 64 bytes and stay where they are until `AllocateTensors`. An
//! interpreter is used by one thread at a time, except for `TfLiteInterpreterCancel`. Sentences about failures
//! go to the error reporter of the options, else to standard error.
//!
//! # What is different
//!
//! - An operator of the program's own (`AddCustomOp`, `AddOperator`) is not called: a model that needs it gets
//!   no interpreter. A delegate that is not nnhal's is refused, unless delegate fallback is enabled.
//! - Tensors of strings are refused. Tensors between operators have no elements.
//! - The number of threads that a program leaves open is that of `NNHAL_THREADS`, or of all processors. The other
//!   environment variables of `docs/settings.md` hold too, `NNHAL_DEVICES` and `NNHAL_LOG` among them.
//! - What the program passes is looked up and not followed, so a model, options, an interpreter or a runner that
//!   was deleted is a failure and no crash, and so is a tensor whose interpreter is gone, in every function here.

pub mod abi;
pub mod access;
pub mod asynchronous;
pub mod delegate;
pub mod interpreter;
pub mod kernels_of_programs;
pub mod model;
pub mod operator;
pub mod options;
pub mod own_structures;
pub mod report;
pub mod signature;
pub mod tensor;
pub mod version;

mod border;
mod exports;
mod handle;
mod memory;
mod slot;
mod subgraph;
