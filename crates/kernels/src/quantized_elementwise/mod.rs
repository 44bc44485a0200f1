//! Quantized tensors of 8 bits, element by element: sums, products, choices, tables,
//! conversions.
//!
//! Results are equal to the bit to gemmlowp's arithmetic, with which the operations are defined.

mod convert;
mod prelu;
mod product;
mod recoded;
mod sum;
mod table;

pub(crate) use convert::round_to_f16;
pub use convert::{
    Dequantize, DequantizeChannels, Quantize, f16_to_f32, f16_to_f32_in_place, f32_to_f16,
};
pub use prelu::QuantizedPrelu;
pub use product::QuantizedProduct;
pub use recoded::{Choice, RecodedPairs};
pub use sum::QuantizedSum;
pub use table::{Table, TableMap};

/// How a tensor of 8 bits stands for real numbers: `scale * (stored - zero_point)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantization {
    /// What a step stands for.
    pub scale: f32,
    /// The stored number that stands for 0, within the type's range.
    pub zero_point: i32,
}

/// Whether a sum or a difference is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// ADD
    Plus,
    /// SUB
    Minus,
}
