//! The types of elements.

use nnhal::graph::TensorType;

/// The code that the format's schema has for a type of the C API, which is also that of compiled models; `None` for one that is newer than this program.
pub fn type_code(code: i32) -> Option<i8> {
    let known = match code {
        1 => TensorType::Float32,
        2 => TensorType::Int32,
        3 => TensorType::Uint8,
        4 => TensorType::Int64,
        5 => TensorType::String,
        6 => TensorType::Bool,
        7 => TensorType::Int16,
        8 => TensorType::Complex64,
        9 => TensorType::Int8,
        10 => TensorType::Float16,
        11 => TensorType::Float64,
        12 => TensorType::Complex128,
        13 => TensorType::Uint64,
        14 => TensorType::Resource,
        15 => TensorType::Variant,
        16 => TensorType::Uint32,
        17 => TensorType::Uint16,
        18 => TensorType::Int4,
        19 => TensorType::Bfloat16,
        20 => TensorType::Int2,
        21 => TensorType::Uint4,
        22 => TensorType::Float8E4m3fn,
        23 => TensorType::Float8E5m2,
        _ => return None,
    };
    Some(known as i8)
}
