//! How the computations of neural networks are done fast: matrix products, convolutions, pooling,
//! element by element, for each instruction set, on slices, sizes and strides. Nothing here knows of
//! models.
//!
//! Each operation has a module, most with kernels of float32 in a module `float` and kernels of quantized values in
//! a module `quantized`. [`quantization`] says what quantized values are, and what is computed of them.
//!
//! Most kernels come in two steps. *Preparing* takes the sizes and the constant operands, packs them
//! for an instruction set and cuts the work into tasks; *running* reads and writes slices, allocates
//! nothing, and shares its tasks among the threads of a [`Team`].
//!
//! Every kernel has a counterpart that runs on any processor ([`InstructionSet::Portable`]) and
//! which the others are tested against.
//!
//! ```
//! use nnhal_kernels::fully_connected::{FullyConnected, Sizes, Storage};
//! use nnhal_kernels::{Epilogue, InstructionSet, Lines, Preparation, PreparedKernel, Team};
//!
//! // One row of two values, times a column of two weights, plus a bias.
//! let sizes = Sizes { rows: 1, inputs: 2, units: 1 };
//! let mut preparation = Preparation::new(InstructionSet::best(), 1);
//! let kernel = FullyConnected::prepare(
//!     sizes,
//!     &[2.0, 3.0],
//!     &[1.0],
//!     Storage::Full,
//!     Epilogue::NONE,
//!     &mut preparation,
//! )?;
//! // From here on the packed weights are there to be read.
//! drop(preparation);
//!
//! let mut output = [0.0];
//! let mut scratch = Lines::with_bytes(kernel.scratch_bytes());
//! kernel.run(&mut Team::new(1), &[10.0, 100.0], None, &mut output, scratch.lines_mut());
//! assert_eq!(output, [321.0]);
//! # Ok::<(), nnhal_kernels::TooLarge>(())
//! ```

#![cfg_attr(nnhal_only_avx2, allow(dead_code))] // Of other instruction sets.

mod allowance;
#[cfg(target_arch = "x86_64")]
mod amx;
pub mod attention;
pub mod batch_matmul;
mod broadcast;
mod caches;
pub mod convolution;
#[cfg(all(test, not(loom), not(miri)))]
mod deadline_tests;
pub mod depthwise;
pub mod detection;
mod disjoint;
pub mod dynamic;
pub mod elementwise;
pub mod fourier;
pub mod fully_connected;
mod gemm;
pub mod grouped_convolution;
mod image;
mod image_kernel;
mod instruction_set;
mod lines;
pub mod movement;
mod multiplier;
pub mod peak;
pub mod pooling;
mod preparation;
mod prepared;
pub mod quantization;
pub mod recurrent;
pub mod reduction;
mod requantize;
pub mod resize;
pub mod separable_convolution;
mod sharing;
mod short_rows;
pub mod softmax;
mod team;
pub mod top_k;
pub mod transposed_convolution;
pub mod unpacked_convolution;
mod unrolled;
mod vector;

pub use allowance::{MemoryLimit, TooLarge};
pub use gemm::float::Epilogue;
pub use image::{Image, ImageMut};
pub use image_kernel::{ImageKernel, Images, OfImages, PixelStrides};
pub use instruction_set::InstructionSet;
pub use lines::{LINE_BYTES, Line, Lines, SavedWeights};
pub use multiplier::Multiplier;
pub use preparation::{OtherWeights, Packed, Preparation};
pub use prepared::{
    ElementType, InputBytes, Inputs, MOST_WRITTEN, OneInput, Operands, PreparedKernel, WrongValue,
};
pub use requantize::Requantization;
pub use sharing::for_each_slice;
pub use team::{KeptQuestion, TASK_SPANS, Team};
