//! Loads and runs `.tflite` models, with exact quantized arithmetic, in safe Rust.
//!
//! ```
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/digits/digits_int8.tflite");
//! use nnhal::{Model, SessionOptions};
//!
//! let model = Model::load(path)?;
//! let session = model.session(SessionOptions::new())?;
//! let outputs = session.run([&[0.5_f32; 64]])?;
//! let (class, probability) = outputs[0].top(1)[0];
//! println!("a {class}, by {probability:.3}");
//! # Ok::<(), nnhal::Error>(())
//! ```
//!
//! The model in this example is quantized: it takes and gives bytes. The session took real numbers
//! all the same and quantized them; [`Tensor::top`], [`Tensor::reals`] and [`Tensor::to_f32`] give
//! real numbers back, [`Tensor::as_slice`] the bytes.
//!
//! | what | |
//! |---|---|
//! | [`Model`] | a file: its inputs, outputs, signatures, tensors, metadata |
//! | [`ModelFile`] | the same, to be imported for shapes that are chosen later |
//! | [`SessionOptions`] | device, threads, priority, timeouts, cache |
//! | [`Session`] | a model prepared on a device; any number of threads run it |
//! | [`Runner`] | memory for inputs and outputs, used again by every run; a stream of a stateful model |
//! | [`Tensor`], [`TensorView`], [`Input`], [`Outputs`] | values |
//! | [`Profile`] | the steps of a run with their kernels and times |
//! | [`mod@bench`], [`mod@compare`] | measuring a session, and finding where two devices differ |
//! | [`devices`] | the devices there are |
//! | [`Error`] | what went wrong, and at which operation |
//!
//! Another device than those of [`devices`] is whatever implements [`nnhal_hal::Device`]:
//! [`SessionOptions::on`] takes it.
//!
//! Features: `image` (pictures as inputs), `npy` (NumPy's files), `ndarray` (tensors as its views), `trace`
//! (what happens when, for the viewers of Chrome and Perfetto).

mod arena;
#[cfg(feature = "ndarray")]
mod arrays;
mod associated;
pub mod bench;
mod cache;
pub mod compare;
mod conversion;
mod data_type;
pub mod devices;
mod error;
mod file;
mod fill;
#[cfg(feature = "image")]
pub mod image;
mod info;
mod label_files;
mod loaded_from;
mod model;
#[cfg(feature = "npy")]
pub mod npy;
mod options;
mod packed;
pub mod peak;
mod position;
mod prepared;
mod profile;
mod runner;
mod session;
mod shape;
mod tensor;
#[cfg(feature = "trace")]
pub mod trace;
mod variables;
mod without_elements;

pub use associated::AssociatedFile;
pub use data_type::{DataType, Element};
pub use error::{Error, FailedOperation, Result, UnsupportedOperation};
pub use file::ModelFile;
pub use fill::Fill;
pub use half::{bf16, f16};
pub use info::{
    BlockQuantization, Signature, SparseDimension, Sparsity, TensorInfo, TensorQuantization,
};
pub use model::{FileInfo, Model, Source};
pub use nnhal_driver::{ObservedOutput, Observer, OperationPlace, PlannedStep, PlannedValue};
pub use num_complex::Complex32;
pub use options::{RunOptions, SessionOptions};
pub use position::Position;
pub use profile::{Profile, ProfiledStep};
pub use runner::{InputWriter, Runner};
pub use session::{Input, Outputs, Session, SignatureSession};
pub use tensor::{Quantization, Summary, Tensor, TensorView};
pub use variables::Variables;

/// Models, devices and memory of the Neural Networks HAL, on which this library stands.
pub use nnhal_hal as hal;
/// What of a `.tflite` file becomes a model.
pub use nnhal_tflite as tflite;
/// Graphs that are described, for [`Model::from_graph`].
pub use nnhal_tflite::graph;
