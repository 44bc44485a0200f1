//! NumPy's `.npy` files as tensors, and tensors as such files.

use crate::data_type::{DataType, Element};
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use half::f16;
use npyz::{AutoSerialize, DType, NpyFile, Order, TypeStr, WriterBuilder};
use num_complex::Complex32;
use std::fs::File;
use std::io::{BufReader, BufWriter, Chain, Cursor, Read};
use std::path::Path;

/// The first bytes of every file.
const MAGIC: &[u8] = b"\x93NUMPY";

/// Bytes that a header may have: as many as NumPy itself reads.
const HEADER_LENGTH: usize = 10_000;

/// Brackets within brackets in a header; that of an array of numbers has a tuple in a dictionary.
/// The parser takes time that grows exponentially with them.
const HEADER_DEPTH: usize = 4;

/// Reads a `.npy` file. Its elements must be numbers or truth values; those in Fortran order are put
/// into C order.
///
/// # Errors
/// [`Error::File`]: it cannot be read; [`Error::Content`]: it holds something else;
/// [`Error::TooLarge`]: there is no memory for it.
pub fn load(path: &Path) -> Result<Tensor> {
    Reader::open(path)?.read()
}

/// The header, and what follows it.
type Stream<'a> = Chain<Cursor<Vec<u8>>, Box<dyn Read + 'a>>;

/// A file whose header has been read, and no element yet.
pub struct Reader<'a> {
    path: &'a Path,
    array: NpyFile<Stream<'a>>,
    shape: Vec<usize>,
}

/// Whether a file that begins with these bytes is a `.npy` file.
pub fn is_npy(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

impl<'a> Reader<'a> {
    /// Reads the header.
    ///
    /// # Errors
    /// As [`load`], as far as the header tells.
    pub fn open(path: &'a Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::file(path))?;
        let length = file.metadata().map_err(Error::file(path))?.len();
        Self::of(path, Box::new(BufReader::new(file)), length)
    }

    /// Reads the header of a file that has been read; `path` is for messages.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn of_bytes(path: &'a Path, bytes: &'a [u8]) -> Result<Self> {
        Self::of(path, Box::new(bytes), bytes.len() as u64)
    }

    fn of(path: &'a Path, mut file: Box<dyn Read + 'a>, length: u64) -> Result<Self> {
        let wrong = |what: String| Error::Content { path: path.to_owned(), what };
        let header = read_header(&mut file).map_err(Error::file(path))?;
        let array = NpyFile::new(header.chain(file)).map_err(Error::file(path))?;
        let DType::Plain(element) = array.dtype() else {
            return Err(wrong("elements are records, expected numbers".into()));
        };
        // The header may claim any shape; nothing is allocated for more than the file holds.
        let shape = array.shape();
        let claimed = shape.iter().try_fold(1_u64, |count, length| count.checked_mul(*length));
        let size = element.num_bytes().and_then(|size| u64::try_from(size).ok()).unwrap_or(1);
        if claimed.and_then(|count| count.checked_mul(size)).is_none_or(|bytes| bytes > length) {
            return Err(wrong(format!("the shape {shape:?} needs more than the file has")));
        }
        let shape = shape.iter().map(|length| usize::try_from(*length));
        let shape: Vec<usize> = shape
            .collect::<Result<_, _>>()
            .map_err(|_| wrong("the shape exceeds what this machine addresses".into()))?;
        Ok(Self { path, array, shape })
    }

    /// The shape, empty for a scalar.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Reads the elements.
    ///
    /// # Errors
    /// As [`load`].
    pub fn read(self) -> Result<Tensor> {
        let text = self.array.dtype().descr();
        let code = text.trim_matches(['<', '>', '|', '=', '\'']);
        match code {
            "f4" => self.read_as::<f32>(),
            "f2" => self.read_as::<f16>(),
            "f8" => self.read_as::<f64>(),
            "i1" => self.read_as::<i8>(),
            "i2" => self.read_as::<i16>(),
            "i4" => self.read_as::<i32>(),
            "i8" => self.read_as::<i64>(),
            "u1" => self.read_as::<u8>(),
            "u2" => self.read_as::<u16>(),
            "u4" => self.read_as::<u32>(),
            "u8" => self.read_as::<u64>(),
            "b1" => self.read_as::<bool>(),
            "c8" => self.read_as::<Complex32>(),
            _ => Err(Error::Content {
                path: self.path.to_owned(),
                what: format!("elements are {text}, expected numbers or truth values"),
            }),
        }
    }

    fn read_as<T: Element + npyz::Deserialize>(self) -> Result<Tensor> {
        let Self { path, array, shape } = self;
        let array_order = array.order();
        let too_large = |_| Error::TooLarge { data_type: T::DATA_TYPE, shape: shape.clone() };
        let mut elements = Vec::new();
        elements.try_reserve_exact(shape.iter().product()).map_err(too_large)?;
        let data = array
            .data::<T>()
            .map_err(|error| Error::Content { path: path.to_owned(), what: error.to_string() })?;
        for element in data {
            elements.push(element.map_err(Error::file(path))?);
        }
        if array_order == Order::Fortran && shape.len() > 1 {
            elements = in_c_order(&shape, &elements).map_err(too_large)?;
        }
        Tensor::new(shape.clone(), &elements)
    }
}

/// The elements of an array whose first axis varies fastest, with the last one varying fastest.
fn in_c_order<T: Copy>(
    shape: &[usize],
    elements: &[T],
) -> Result<Vec<T>, std::collections::TryReserveError> {
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = 1;
    for length in shape {
        strides.push(stride);
        stride *= length;
    }
    let mut ordered = Vec::new();
    ordered.try_reserve_exact(elements.len())?;
    let mut index = vec![0; shape.len()];
    let mut at = 0;
    while ordered.len() < elements.len() {
        ordered.push(elements[at]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    Ok(ordered)
}

/// All that comes before the elements, if the parser may have it.
fn read_header(file: &mut impl Read) -> std::io::Result<Cursor<Vec<u8>>> {
    header(file).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            std::io::Error::new(error.kind(), "the .npy file breaks off in its header")
        }
        _ => error,
    })
}

fn header(file: &mut impl Read) -> std::io::Result<Cursor<Vec<u8>>> {
    let wrong = |what: String| std::io::Error::new(std::io::ErrorKind::InvalidData, what);
    let mut bytes = vec![0; 8];
    file.read_exact(&mut bytes)?;
    if !is_npy(&bytes) {
        return Err(wrong("it is no .npy file".into()));
    }
    // Version 1 has a length of 16 bits.
    let mut length = [0; 4];
    let width = if bytes[6] == 1 { 2 } else { 4 };
    file.read_exact(&mut length[..width])?;
    bytes.extend_from_slice(&length[..width]);
    let length = u32::from_le_bytes(length) as usize;
    if length > HEADER_LENGTH {
        let what = format!("its header has {length} bytes, expected {HEADER_LENGTH} at most");
        return Err(wrong(what));
    }
    let start = bytes.len();
    bytes.resize(start + length, 0);
    file.read_exact(&mut bytes[start..])?;
    let mut depth = 0_usize;
    for byte in &bytes[start..] {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > HEADER_DEPTH {
            return Err(wrong("its header has too many brackets within brackets".into()));
        }
    }
    Ok(Cursor::new(bytes))
}

/// Writes a tensor as a `.npy` file; a quantized one as it is stored.
///
/// # Errors
/// [`Error::File`]: it cannot be written.
pub fn save(path: &Path, tensor: &Tensor) -> Result<()> {
    match tensor.data_type() {
        DataType::Float32 => write::<f32>(path, tensor),
        DataType::Float64 => write::<f64>(path, tensor),
        DataType::Int8 => write::<i8>(path, tensor),
        DataType::Int16 => write::<i16>(path, tensor),
        DataType::Int32 => write::<i32>(path, tensor),
        DataType::Int64 => write::<i64>(path, tensor),
        DataType::Uint16 => write::<u16>(path, tensor),
        DataType::Uint32 => write::<u32>(path, tensor),
        DataType::Uint64 => write::<u64>(path, tensor),
        DataType::Complex64 => write::<Complex32>(path, tensor),
        // Any byte but 0 is true; as such it is written.
        DataType::Bool => {
            let truths: Vec<bool> = tensor.as_bytes().iter().map(|byte| *byte != 0).collect();
            write_as(path, tensor.shape(), bool::default_dtype(), &truths)
        }
        DataType::Float16 => {
            let halves: TypeStr = if cfg!(target_endian = "little") { "<f2" } else { ">f2" }
                .parse()
                .map_err(std::io::Error::other)
                .map_err(Error::file(path))?;
            let elements = tensor.as_slice::<f16>()?;
            write_as(path, tensor.shape(), DType::Plain(halves), elements)
        }
        // NumPy has no such type; floats hold the numbers.
        DataType::Bfloat16 => write_as(path, tensor.shape(), f32::default_dtype(), &floats(tensor)),
        DataType::Uint8 | DataType::Int4 | DataType::Other(_) => {
            write_as(path, tensor.shape(), u8::default_dtype(), tensor.as_bytes())
        }
    }
}

/// The numbers of a tensor, which floats of 32 bits hold.
#[allow(clippy::cast_possible_truncation)]
fn floats(tensor: &Tensor) -> Vec<f32> {
    tensor.reals().into_iter().map(|real| real as f32).collect()
}

fn write<T: Element + AutoSerialize>(path: &Path, tensor: &Tensor) -> Result<()> {
    write_as(path, tensor.shape(), T::default_dtype(), tensor.as_slice::<T>()?)
}

fn write_as<T: npyz::Serialize + Copy>(
    path: &Path,
    shape: &[usize],
    dtype: DType,
    elements: &[T],
) -> Result<()> {
    let shape: Vec<u64> = shape.iter().map(|length| *length as u64).collect();
    let write = || -> std::io::Result<()> {
        let file = BufWriter::new(File::create(path)?);
        let options = npyz::WriteOptions::<T>::new().dtype(dtype).shape(&shape);
        let mut writer = options.writer(file).begin_nd()?;
        writer.extend(elements.iter().copied())?;
        writer.finish()
    };
    write().map_err(Error::file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_go_there_and_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tensor.npy");
        for tensor in [
            Tensor::new([1, 2], &[1.5_f32, -2.0]),
            Tensor::new([2], &[f16::from_f32(1.5), f16::from_f32(-2.0)]),
            Tensor::new([2], &[1.5_f64, -2.0]),
            Tensor::new([], &[-7_i32]),
            Tensor::new([2], &[i64::MIN, 1]),
            Tensor::new([2], &[7_u8, 255]),
            Tensor::new([2, 1], &[7_i8, -1]),
            Tensor::new([2], &[1_i16, -2]),
            Tensor::new([2], &[1_u16, 0x8002]),
            Tensor::new([2], &[false, true]),
            Tensor::new([0, 3], &[0_u32; 0]),
            Tensor::new([2], &[Complex32::new(1.5, -2.0), Complex32::new(0.0, 1.0)]),
        ] {
            let tensor = tensor.unwrap();
            save(&path, &tensor).unwrap();
            assert_eq!(load(&path).unwrap(), tensor);
        }
    }

    fn npy(header: &str) -> Vec<u8> {
        let length = u16::try_from(header.len()).unwrap().to_le_bytes();
        [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes()].concat()
    }

    #[test]
    fn a_header_that_takes_long_to_parse_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for header in [
            format!("{}{}", "(".repeat(22), ")".repeat(22)),
            "[".repeat(9000),
            format!("{{'descr': {}1{}", "[(".repeat(30), ")]".repeat(30)),
            "{'descr': ".repeat(900),
            "(".repeat(4) + &"((),".repeat(1000),
            "((((1,".to_owned() + &"1,".repeat(3000),
            "{'a':".to_owned() + &"'\\".repeat(3000),
            " ".repeat(60_000),
        ] {
            std::fs::write(file.path(), npy(&header)).unwrap();
            let begun = std::time::Instant::now();
            let loaded = load(file.path());
            let begin: String = header.chars().take(20).collect();
            assert!(loaded.is_err(), "{begin}");
            assert!(begun.elapsed().as_secs() < 2, "{begin}: {:?}", begun.elapsed());
        }
    }

    #[test]
    fn the_shape_is_known_before_elements_are_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1073741824, 16), }";
        std::fs::write(file.path(), npy(header)).unwrap();
        file.as_file().set_len(1 << 40).unwrap();
        assert_eq!(Reader::open(file.path()).unwrap().shape(), [1 << 30, 16]);
    }

    #[test]
    fn a_header_that_claims_more_than_the_file_has_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tensor.npy");
        save(&path, &Tensor::new([2], &[0.5_f32, 1.0]).unwrap()).unwrap();
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
        let refused = load(&path).unwrap_err();
        assert!(refused.to_string().contains("needs more than the file has"), "{refused}");
    }
}
