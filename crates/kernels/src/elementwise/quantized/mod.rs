//! Quantized tensors of 8 bits, element by element: sums, products, choices, tables.
//!
//! Results are equal to the bit to gemmlowp's arithmetic, with which the operations are defined.

mod prelu;
mod product;
mod recoded;
mod sum;
mod table;
#[cfg(test)]
mod tests;
mod trial;

pub use prelu::QuantizedPrelu;
pub use product::QuantizedProduct;
pub use recoded::{Choice, Recoded};
pub use sum::QuantizedSum;
pub(super) use table::recoded;
pub use table::{Table, TableMap};

/// Whether a sum or a difference is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// ADD
    Plus,
    /// SUB
    Minus,
}
