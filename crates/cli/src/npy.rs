//! NumPy's `.npy` files as inputs and outputs.

use crate::error::{CliError, Result};
use crate::tensor::Tensor;
use hal::OperandType;
use half::f16;
use npyz::{DType, NpyFile, Order, TypeChar, TypeStr, WriterBuilder};
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;

/// Reads a `.npy` file into a tensor of the wanted type.
///
/// The file's elements must be of that type (bytes of a quantised tensor are its stored values),
/// or floats, which are then stored as the type asks for.
///
/// # Errors
/// The file cannot be read, or its elements are of another type.
pub fn load(path: &Path, operand_type: OperandType, quantisation: (f32, i32)) -> Result<Tensor> {
    let wrong = |what: String| CliError::Input(format!("{}: {what}", path.display()));
    let file = File::open(path).map_err(CliError::file(path))?;
    let length = file.metadata().map_err(CliError::file(path))?.len();
    let array = NpyFile::new(BufReader::new(file)).map_err(CliError::file(path))?;
    let DType::Plain(element) = array.dtype() else {
        return Err(wrong("elements are records, expected numbers".into()));
    };
    // The header may claim any shape; nothing is allocated for more than the file holds.
    let claimed = array.shape().iter().try_fold(1_u64, |count, length| count.checked_mul(*length));
    let size = element.num_bytes().and_then(|size| u64::try_from(size).ok()).unwrap_or(1);
    if claimed.and_then(|count| count.checked_mul(size)).is_none_or(|bytes| bytes > length) {
        return Err(wrong(format!("the shape {:?} needs more than the file has", array.shape())));
    }
    if array.order() == Order::Fortran && array.shape().len() > 1 {
        return Err(wrong("elements are in Fortran order, expected C order".into()));
    }
    let dimensions = array
        .shape()
        .iter()
        .map(|length| u32::try_from(*length).map_err(|_| wrong("the shape exceeds 32 bits".into())))
        .collect::<Result<Vec<_>>>()?;
    let (scale, zero_point) = quantisation;
    let io = |error| CliError::file(path)(error);
    let name = element.to_string();
    let wanted = element_type(operand_type);
    let bytes = match (wanted.as_deref(), code(&element).as_str()) {
        (Some("f4"), "f4") => little(array.into_vec::<f32>().map_err(io)?, f32::to_le_bytes),
        (Some("f2"), "f2") => little(array.into_vec::<f16>().map_err(io)?, f16::to_le_bytes),
        (Some("i4"), "i4") => little(array.into_vec::<i32>().map_err(io)?, i32::to_le_bytes),
        (Some("u2"), "u2") => little(array.into_vec::<u16>().map_err(io)?, u16::to_le_bytes),
        (Some("i2"), "i2") => little(array.into_vec::<i16>().map_err(io)?, i16::to_le_bytes),
        (Some("i1"), "i1") => little(array.into_vec::<i8>().map_err(io)?, i8::to_le_bytes),
        (Some("u1"), "u1") => array.into_vec::<u8>().map_err(io)?,
        (Some("b1"), "b1") => {
            array.into_vec::<bool>().map_err(io)?.into_iter().map(u8::from).collect()
        }
        (_, "f4") => {
            let reals = array.into_vec::<f32>().map_err(io)?;
            return Ok(Tensor::from_reals(operand_type, dimensions, quantisation, reals));
        }
        (Some("f4" | "f2"), "f8") => {
            #[allow(clippy::cast_possible_truncation)] // NumPy's default type; the model has less.
            let reals = array.into_vec::<f64>().map_err(io)?.into_iter().map(|real| real as f32);
            return Ok(Tensor::from_reals(operand_type, dimensions, quantisation, reals));
        }
        (Some("i4"), "i8") => {
            let integers = array.into_vec::<i64>().map_err(io)?;
            let narrow = integers
                .into_iter()
                .map(|it| i32::try_from(it).map_err(|_| wrong(format!("{it} exceeds 32 bits"))));
            little(narrow.collect::<Result<Vec<_>>>()?, i32::to_le_bytes)
        }
        _ => return Err(wrong(format!("elements are {name}, expected {operand_type}"))),
    };
    Ok(Tensor { operand_type, dimensions, scale, zero_point, bytes })
}

fn little<T, const N: usize>(elements: Vec<T>, to_bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    elements.into_iter().flat_map(to_bytes).collect()
}

/// Kind and size of an element, without its byte order.
fn code(element: &TypeStr) -> String {
    element.to_string().trim_start_matches(['<', '>', '|', '=', '\'']).trim_end_matches('\'').into()
}

/// What NumPy calls the elements that an operand type stores.
fn element_type(operand_type: OperandType) -> Option<String> {
    let (kind, size) = match operand_type {
        OperandType::TensorFloat32
        | OperandType::Float32
        | OperandType::TensorFloat16
        | OperandType::Float16 => (TypeChar::Float, operand_type.element_size()?),
        OperandType::TensorInt32
        | OperandType::Int32
        | OperandType::TensorQuant16Symm
        | OperandType::TensorQuant8AsymmSigned
        | OperandType::TensorQuant8Symm
        | OperandType::TensorQuant8SymmPerChannel => (TypeChar::Int, operand_type.element_size()?),
        OperandType::TensorBool8 | OperandType::Bool => (TypeChar::Bool, 1),
        _ => (TypeChar::Uint, operand_type.element_size()?),
    };
    let letter = match kind {
        TypeChar::Float => 'f',
        TypeChar::Int => 'i',
        TypeChar::Bool => 'b',
        _ => 'u',
    };
    Some(format!("{letter}{size}"))
}

/// Writes a tensor as a `.npy` file; quantised tensors as their stored values.
///
/// # Errors
/// The file cannot be written.
pub fn save(path: &Path, tensor: &Tensor) -> Result<()> {
    let write = || -> std::io::Result<()> {
        let shape: Vec<u64> = tensor.dimensions.iter().map(|length| u64::from(*length)).collect();
        let name = element_type(tensor.operand_type).unwrap_or_else(|| "u1".into());
        let order = if name.ends_with('1') { '|' } else { '<' };
        let element: TypeStr = format!("{order}{name}").parse().map_err(std::io::Error::other)?;
        let file = BufWriter::new(File::create(path)?);
        let bytes = &tensor.bytes;
        macro_rules! write_as {
            ($Type:ty, $from:expr) => {{
                let mut writer = npyz::WriteOptions::<$Type>::new()
                    .dtype(DType::Plain(element))
                    .shape(&shape)
                    .writer(file)
                    .begin_nd()?;
                writer.extend(bytes.as_chunks().0.iter().map(|chunk| $from(*chunk)))?;
                writer.finish()
            }};
        }
        match name.as_str() {
            "f4" => write_as!(f32, f32::from_le_bytes),
            "f2" => write_as!(f16, f16::from_le_bytes),
            "i4" => write_as!(i32, i32::from_le_bytes),
            "u4" => write_as!(u32, u32::from_le_bytes),
            "i2" => write_as!(i16, i16::from_le_bytes),
            "u2" => write_as!(u16, u16::from_le_bytes),
            "i1" => write_as!(i8, i8::from_le_bytes),
            "b1" => write_as!(bool, |[byte]: [u8; 1]| byte != 0),
            _ => write_as!(u8, u8::from_le_bytes),
        }
    };
    write().map_err(CliError::file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_go_there_and_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tensor.npy");
        for (operand_type, bytes) in [
            (
                OperandType::TensorFloat32,
                [1.5_f32.to_le_bytes(), (-2.0_f32).to_le_bytes()].concat(),
            ),
            (OperandType::TensorFloat16, vec![0, 0x3C, 0, 0xC0]),
            (OperandType::TensorInt32, vec![1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]),
            (OperandType::TensorQuant8Asymm, vec![7, 255]),
            (OperandType::TensorQuant8AsymmSigned, vec![7, 255]),
            (OperandType::TensorQuant16Symm, vec![1, 0, 2, 0x80]),
            (OperandType::TensorQuant16Asymm, vec![1, 0, 2, 0x80]),
            (OperandType::TensorBool8, vec![0, 1]),
        ] {
            let tensor =
                Tensor { operand_type, dimensions: vec![1, 2], scale: 0.5, zero_point: 3, bytes };
            save(&path, &tensor).unwrap();
            assert_eq!(load(&path, operand_type, (0.5, 3)).unwrap(), tensor);
        }
    }

    #[test]
    fn floats_are_stored_as_the_input_asks_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tensor.npy");
        let floats = Tensor::from_reals(OperandType::TensorFloat32, vec![2], (0.0, 0), [0.5, 1.0]);
        save(&path, &floats).unwrap();
        let stored = load(&path, OperandType::TensorQuant8Asymm, (0.5, 10)).unwrap();
        assert_eq!(stored.bytes, [11, 12]);
        let refused = load(&path, OperandType::TensorFloat32, (0.0, 0)).map(|it| it.dimensions);
        assert_eq!(refused.unwrap(), [2]);
    }

    #[test]
    fn a_header_that_claims_more_than_the_file_has_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tensor.npy");
        let tensor = Tensor::from_reals(OperandType::TensorFloat32, vec![2], (0.0, 0), [0.5, 1.0]);
        save(&path, &tensor).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let start = bytes.iter().position(|byte| *byte == b'(').unwrap();
        let end = bytes.iter().position(|byte| *byte == b')').unwrap() + 1;
        let claim = *b"(9999999999999,)";
        bytes.splice(start..end, claim);
        // The header's length stays what it was: the padding behind gives way.
        let grown = claim.len() - (end - start);
        let padding = bytes.iter().rposition(|byte| *byte == b'\n').unwrap();
        bytes.drain(padding - grown..padding);
        std::fs::write(&path, bytes).unwrap();
        let refused = load(&path, OperandType::TensorFloat32, (0.0, 0)).unwrap_err();
        assert!(refused.to_string().contains("needs more than the file has"), "{refused}");
    }
}
