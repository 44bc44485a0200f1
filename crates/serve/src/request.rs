//! A request and its answer, with types: what both endpoints make of what comes, and what the service takes.

use crate::data_type;
use crate::error::{Error, Result};
use crate::input_memory::InputMemory;
use crate::parameters::{Parameter, Parameters, check_count, shortened, whole};
use crate::pieces::Pieces;
use crate::shared_memory::Slice;
use bytes::Bytes;
use nnhal::DataType;
use std::ops::Range;
use std::time::Duration;

/// Axes that a tensor may have, inputs and outputs that a request may name, and parameters that anything
/// may have.
pub(crate) const MOST_AXES: usize = 32;
pub(crate) const MOST_TENSORS: usize = 1024;
pub(crate) const MOST_PARAMETERS: usize = 256;
/// Bytes that are copied at a time out of memory that others may change.
const PORTION: usize = 64 << 10;

/// A request to run a model.
#[derive(Debug, Clone, Default)]
pub struct InferRequest {
    /// The model's name.
    pub model: String,
    /// Its version; `None`: the greatest that is loaded.
    pub version: Option<u64>,
    /// What the client calls the request; the answer has it too.
    pub id: String,
    /// 0: the model's default; 1 is the highest.
    pub priority: u64,
    /// From arrival to the end of computing, if the model's configuration lets requests say it.
    pub timeout: Option<Duration>,
    /// For how long the client waits for the answer.
    pub client_deadline: Option<Duration>,
    /// In any order.
    pub inputs: Vec<InputTensor>,
    /// What is wanted; all outputs if none is named.
    pub outputs: Vec<WantedOutput>,
}

/// The value of an input.
#[derive(Debug, Clone)]
pub struct InputTensor {
    /// The input's name.
    pub name: String,
    /// The element type.
    pub data_type: DataType,
    /// The length of each axis.
    pub shape: Vec<usize>,
    /// The elements.
    pub data: Data,
}

/// Elements, row by row, in the byte order of little endian.
#[derive(Debug, Clone)]
pub enum Data {
    /// What came with the request.
    Bytes(Pieces),
    /// What came with the request, where the device can read it.
    Memory(InputMemory),
    /// In memory that the client shares.
    Shared(Slice),
}

impl Data {
    /// How many bytes.
    pub fn length(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Memory(memory) => memory.length(),
            Self::Shared(slice) => slice.length(),
        }
    }

    /// Shows a range of the bytes, piece by piece.
    ///
    /// # Errors
    /// Those of `show`, which ends it; shared memory has become shorter.
    pub(crate) fn each<E: From<Error>>(
        &self,
        range: Range<usize>,
        mut show: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let read: &dyn Fn(usize, &mut [u8]) -> Result<()> = match self {
            Self::Bytes(bytes) => return bytes.each(range, show),
            Self::Memory(memory) => &|from, bytes| memory.read(from, bytes),
            Self::Shared(slice) => &|from, bytes| slice.read(from, bytes),
        };
        let mut portion = vec![0; PORTION.min(range.len())];
        for from in range.clone().step_by(PORTION) {
            let portion = &mut portion[..PORTION.min(range.end - from)];
            read(from, portion)?;
            show(portion)?;
        }
        Ok(())
    }
}

/// An output that is wanted.
#[derive(Debug, Clone, Default)]
pub struct WantedOutput {
    /// The output's name.
    pub name: String,
    /// The number of classes, if a classification is wanted instead of the tensor.
    pub classes: Option<usize>,
    /// Where to write it.
    pub shared: Option<Slice>,
    /// Whether it is to be bytes rather than JSON; `None`: as the request says for all.
    pub binary: Option<bool>,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct InferResponse {
    /// The model's name.
    pub model: String,
    /// The version that ran.
    pub version: u64,
    /// The request's identifier.
    pub id: String,
    /// In the order in which they were wanted.
    pub outputs: Vec<OutputTensor>,
}

/// An output's value.
#[derive(Debug, Clone)]
pub struct OutputTensor {
    /// The output's name.
    pub name: String,
    /// The protocol's name of its type.
    pub datatype: &'static str,
    /// The length of each axis.
    pub shape: Vec<usize>,
    /// The elements.
    pub data: OutputData,
}

/// Where an output's elements are.
#[derive(Debug, Clone)]
pub enum OutputData {
    /// Elements of this type.
    Tensor(DataType, Bytes),
    /// Texts.
    Texts(Vec<String>),
    /// Written to shared memory.
    Shared {
        /// Where there was room.
        place: Slice,
        /// Bytes that were written.
        length: usize,
    },
}

impl InputTensor {
    /// An input whose bytes are as many as its shape and type say.
    ///
    /// # Errors
    /// [`Error::Invalid`]: they are not, or there is no such type.
    pub(crate) fn new(name: &str, datatype: &str, shape: &[i64], data: Data) -> Result<Self> {
        let (data_type, shape, length) = Self::size(name, datatype, shape)?;
        let found = data.length();
        if found != length {
            return Err(Error::invalid(format!(
                "input {name:?}: {found} bytes, expected {length} for {datatype} {shape:?}"
            )));
        }
        Ok(Self { name: name.to_owned(), data_type, shape, data })
    }

    /// Type, shape and bytes of what a request says.
    pub(crate) fn size(
        name: &str,
        datatype: &str,
        shape: &[i64],
    ) -> Result<(DataType, Vec<usize>, usize)> {
        let data_type = data_type::from_name(datatype).ok_or_else(|| {
            let why = match datatype == data_type::TEXT {
                true => format!("no model takes texts ({datatype})"),
                false => format!("there is no type {:?}", shortened(datatype)),
            };
            Error::invalid(format!("input {name:?}: {why}"))
        })?;
        if shape.len() > MOST_AXES {
            let why = format!("input {name:?}: {} axes, at most {MOST_AXES}", shape.len());
            return Err(Error::invalid(why));
        }
        let lengths: Option<Vec<usize>> =
            shape.iter().map(|length| usize::try_from(*length).ok()).collect();
        let lengths = lengths.ok_or_else(|| {
            Error::invalid(format!("input {name:?}: the shape {shape:?} has a negative length"))
        })?;
        let length = data_type.byte_length(&lengths).ok_or_else(|| {
            Error::invalid(format!("input {name:?}: the shape {shape:?} is too large"))
        })?;
        Ok((data_type, lengths, length))
    }
}

/// A version as requests write it; empty: none is said.
pub(crate) fn version(text: &str) -> Result<Option<u64>> {
    if text.is_empty() {
        return Ok(None);
    }
    let not_found = || Error::NotFound { what: "version", name: shortened(text).to_owned() };
    // As a folder is called: `01` and `+1` are none.
    let number = text.parse().ok().filter(|number: &u64| number.to_string() == text);
    number.map(Some).ok_or_else(not_found)
}

impl InferRequest {
    /// What a request's own parameters say.
    ///
    /// # Errors
    /// [`Error::Invalid`]: one is of another type; [`Error::Unsupported`]: sequences.
    pub(crate) fn apply(&mut self, parameters: &Parameters) -> Result<()> {
        check_count("parameters", parameters.len(), MOST_PARAMETERS)?;
        self.priority = whole(parameters, "priority")?.unwrap_or(0);
        let timeout = whole(parameters, "timeout")?.filter(|timeout| *timeout > 0);
        self.timeout = timeout.map(Duration::from_micros);
        let is_sequence = match parameters.get("sequence_id") {
            None | Some(Parameter::Integer(0)) => false,
            Some(Parameter::Text(text)) => !text.is_empty(),
            Some(_) => true,
        };
        if is_sequence { Err(Error::Unsupported("requests in sequences")) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input_memory::MemoryPool;
    use std::sync::Arc;

    fn input(datatype: &str, shape: &[i64], bytes: usize) -> Result<InputTensor> {
        InputTensor::new("x", datatype, shape, Data::Bytes(vec![0; bytes].into()))
    }

    #[test]
    fn an_input_has_as_many_bytes_as_its_shape_says() {
        assert!(input("FP32", &[2, 3], 24).is_ok());
        assert!(input("FP32", &[], 4).is_ok());
        assert!(input("INT8", &[0, 5], 0).is_ok());
        let found = input("FP32", &[2, 3], 23).unwrap_err().to_string();
        assert_eq!(found, "input \"x\": 23 bytes, expected 24 for FP32 [2, 3]");
    }

    #[test]
    fn bytes_are_shown_in_order_wherever_they_are() {
        let bytes: Vec<u8> =
            (0..PORTION * 2 + 9).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let pool = Arc::new(MemoryPool::default());
        let memory = pool.take(bytes.len()).unwrap();
        memory.write(0, &bytes).unwrap();
        for data in [Data::Bytes(bytes.clone().into()), Data::Memory(memory)] {
            assert_eq!(data.length(), bytes.len());
            for range in
                [0..0, 0..bytes.len(), 7..PORTION, 7..PORTION + 8, PORTION..PORTION * 2 + 1]
            {
                let mut found = Vec::new();
                let shown = data.each(range.clone(), |part| {
                    found.extend_from_slice(part);
                    Ok::<_, Error>(())
                });
                shown.unwrap();
                assert!(found == bytes[range.clone()], "{range:?}");
            }
        }
    }

    #[test]
    fn sec_shapes_that_overflow_are_refused() {
        for shape in [&[i64::MAX, i64::MAX][..], &[-1], &[1 << 62, 4], &[1; 33]] {
            assert!(matches!(input("FP64", shape, 8), Err(Error::Invalid(_))), "{shape:?}");
        }
        assert!(matches!(input("BYTES", &[1], 8), Err(Error::Invalid(_))));
        assert!(matches!(input("fp32", &[1], 4), Err(Error::Invalid(_))));
    }

    #[test]
    fn sequences_are_refused_and_unknown_parameters_are_not() {
        let apply =
            |name: &str, value| InferRequest::default().apply(&[(name.to_owned(), value)].into());
        assert!(apply("of_mine", Parameter::Float(1.5)).is_ok());
        assert!(apply("sequence_id", Parameter::Integer(0)).is_ok());
        let sequence = apply("sequence_id", Parameter::Integer(7));
        assert!(matches!(sequence, Err(Error::Unsupported(_))));
        assert!(matches!(apply("timeout", Parameter::Integer(-1)), Err(Error::Invalid(_))));
        assert!(matches!(apply("priority", Parameter::Bool(true)), Err(Error::Invalid(_))));
    }
}
