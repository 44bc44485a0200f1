//! Arrays of the corpus.

use npyz::{DType, NpyFile};
use std::path::Path;

/// An array's shape, its elements as little-endian bytes, and its element type in NumPy's letters.
#[derive(Debug, Clone)]
pub struct Array {
    /// Lengths of the axes.
    pub shape: Vec<u32>,
    /// Elements.
    pub bytes: Vec<u8>,
    /// Kind and size: `f4`, `i1`.
    pub element: String,
}

/// Reads an array.
pub fn load(path: &Path) -> Result<Array, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let file = NpyFile::new(&bytes[..]).map_err(|error| error.to_string())?;
    let shape = file.shape().iter().map(|length| u32::try_from(*length).unwrap_or(0)).collect();
    let DType::Plain(plain) = file.dtype() else { return Err("records".into()) };
    let element: String = plain.to_string().chars().filter(char::is_ascii_alphanumeric).collect();
    let count = plain.num_bytes().unwrap_or(1) * usize::try_from(file.len()).unwrap_or(0);
    let elements = &bytes[bytes.len() - count..];
    Ok(Array { shape, bytes: elements.to_vec(), element })
}

/// The elements as numbers, complex ones as two; integers of 64 bits that differ may be rounded to the same.
#[allow(clippy::cast_precision_loss)] // Their bits are compared as well.
pub fn numbers(element: &str, bytes: &[u8]) -> Vec<f64> {
    fn each<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.as_chunks().0.iter().map(|chunk| read(*chunk)).collect()
    }
    match element {
        "f4" | "c8" => each(bytes, |it| f32::from_le_bytes(it).into()),
        "f8" => each(bytes, f64::from_le_bytes),
        "f2" => each(bytes, |it| half::f16::from_le_bytes(it).into()),
        "i8" => each(bytes, |it| i64::from_le_bytes(it) as f64),
        "u8" => each(bytes, |it| u64::from_le_bytes(it) as f64),
        "i4" => each(bytes, |it| i32::from_le_bytes(it).into()),
        "u4" => each(bytes, |it| u32::from_le_bytes(it).into()),
        "u2" => each(bytes, |it| u16::from_le_bytes(it).into()),
        "i2" => each(bytes, |it| i16::from_le_bytes(it).into()),
        "i1" => each(bytes, |it| i8::from_le_bytes(it).into()),
        _ => each(bytes, |[byte]| byte.into()),
    }
}
