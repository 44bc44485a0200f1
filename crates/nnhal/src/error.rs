//! [`Error`]: everything that can go wrong, in one type.

use crate::data_type::DataType;
use nnhal_driver::{EngineError, OperationPlace};
use nnhal_ops::ValidationError;
use nnhal_tflite::OperatorOrigin;
use std::fmt;
use std::path::{Path, PathBuf};

/// What a call gives back.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {what}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A model cannot be imported.
    #[error("{}{source}", Prefix(path))]
    Import {
        /// The file, if it is one.
        path: Option<PathBuf>,
        /// Why; it names operators that have no counterpart.
        source: nnhal_tflite::ImportError,
    },
    /// A name stands for nothing.
    #[error("there is no {what} {name:?}; there are: {}", List(available))]
    NotFound {
        /// What kind of thing it would be: `device`, `input`, `output`, `signature`.
        what: &'static str,
        /// The name, or the position.
        name: String,
        /// Names that stand for something.
        available: Vec<String>,
    },
    /// A device of another process cannot be used.
    #[cfg(feature = "remote")]
    #[error(transparent)]
    Remote(#[from] nnhal_remote::RemoteError),
    /// A device cannot run operations of the model.
    #[error("{device}: the model has operations it cannot run:{}", Lines(operations))]
    Unsupported {
        /// The device's name.
        device: String,
        /// All of them.
        operations: Vec<UnsupportedOperation>,
        /// What it said when it was to prepare the model.
        source: nnhal_hal::Error,
    },
    /// A device refused or failed.
    #[error("{device}: {source}{}", Origin(operation.as_deref()))]
    Device {
        /// The device's name.
        device: String,
        /// Where in the model, if the trouble is with one operation.
        operation: Option<Box<FailedOperation>>,
        /// Status and reason.
        source: nnhal_hal::Error,
    },
    /// A device does not offer what only those of this library do.
    #[error("{device} does not show its plans and results")]
    Opaque {
        /// The device's name.
        device: String,
    },
    /// An input, or a file for one, is not what the model takes.
    #[error("input {name}: {source}")]
    Input {
        /// The input's name.
        name: String,
        /// What is wrong.
        source: Box<Error>,
    },
    /// Elements are of another type.
    #[error("elements are {found}, expected {expected}")]
    Type {
        /// What they are.
        found: DataType,
        /// What they should be.
        expected: DataType,
    },
    /// A tensor has another shape than where it goes.
    #[error("the shape is {found:?}, expected {}", show_shape(expected))]
    Shape {
        /// The tensor's shape.
        found: Vec<usize>,
        /// What it should be; `None` where any length is right.
        expected: Vec<Option<usize>>,
    },
    /// The shape of an input is not known: the model leaves it open, and no value has been given.
    #[error("the model leaves the shape open ({}): it needs one", show_shape(expected))]
    OpenShape {
        /// What is known.
        expected: Vec<Option<usize>>,
    },
    /// Inputs of which some have no elements, which devices do not take, and for which outputs are not known without a run.
    #[error("inputs have shapes {found:?}, and with no elements nothing runs: {why}")]
    NoElements {
        /// The shapes.
        found: Vec<Vec<usize>>,
        /// Why outputs are not known.
        why: &'static str,
    },
    /// Bytes do not make a tensor of a shape.
    #[error("{found} bytes do not make a tensor of {data_type} and shape {shape:?}")]
    Elements {
        /// The element type.
        data_type: DataType,
        /// The shape that was asked for.
        shape: Vec<usize>,
        /// How many bytes there are.
        found: usize,
    },
    /// There is not as much memory.
    #[error("a tensor of {data_type} and shape {shape:?} is too large")]
    TooLarge {
        /// The element type.
        data_type: DataType,
        /// The shape that was asked for.
        shape: Vec<usize>,
    },
    /// All inputs, or all outputs, of a run together exceed what 32 bits address.
    #[error("the arguments take {bytes} bytes together, more than 32 bits address")]
    ArgumentsTooLarge {
        /// Their sum.
        bytes: u64,
    },
    /// An integer is no value of an input's type.
    #[error("{found} is no value of {expected}")]
    OutOfRange {
        /// The integer.
        found: i128,
        /// The input's type.
        expected: DataType,
    },
    /// Other than one value for each input.
    #[error("{found} inputs are given, the model has {expected}")]
    InputCount {
        /// How many were given.
        found: usize,
        /// The number of the model's inputs.
        expected: usize,
    },
    /// An input has two values.
    #[error("input {name} is given twice")]
    Twice {
        /// The input, as it was named.
        name: String,
    },
    /// An input has no value.
    #[error("input {name} is not given")]
    Missing {
        /// The input's name.
        name: String,
    },
    /// What only a `.tflite` file has was asked of a model that was built.
    #[error("the model is not out of a file")]
    NotAFile,
    /// Inputs and outputs that cannot be variables.
    #[error("variables: {0}")]
    State(String),
    /// The pieces of a model that is built do not fit together.
    #[error(transparent)]
    Build(#[from] nnhal_hal::BuildError),
    /// More threads for one run than can be given.
    #[error("{found} threads are asked for, there can be {}", nnhal_settings::MOST_THREADS)]
    Threads {
        /// The number that was asked for.
        found: usize,
    },
    /// An environment variable makes no sense.
    #[error(transparent)]
    Setting(#[from] nnhal_settings::SettingError),
    /// Memory that is shared with devices cannot be had.
    #[error(transparent)]
    Memory(#[from] nnhal_hal::memory::MemoryError),
}

/// An operation that a device cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedOperation {
    /// Where it is in the model.
    pub place: OperationPlace,
    /// The operator of the file that it comes from.
    pub origin: Option<OperatorOrigin>,
    /// Why not.
    pub reason: String,
}

/// The operation of a model that a failure is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedOperation {
    /// Where it is in the model.
    pub place: OperationPlace,
    /// The operator of the file that it comes from.
    pub origin: Option<OperatorOrigin>,
}

impl Error {
    /// An error of one file.
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }

    /// A tensor of which the file has no value.
    pub(crate) fn no_constant(index: usize) -> Self {
        Self::NotFound { what: "dense constant", name: index.to_string(), available: Vec::new() }
    }

    /// An error about an input.
    pub(crate) fn input(name: &str) -> impl FnOnce(Self) -> Self {
        let name = name.to_owned();
        move |source| Self::Input { name, source: Box::new(source) }
    }

    /// The operation of the model that the trouble is with, if it is with one.
    pub fn operation(&self) -> Option<&FailedOperation> {
        match self {
            Self::Device { operation, .. } => operation.as_deref(),
            _ => None,
        }
    }

    /// The status that a device gave, if it was a device that failed.
    pub fn status(&self) -> Option<nnhal_hal::ErrorStatus> {
        match self {
            Self::Device { source, .. } | Self::Unsupported { source, .. } => Some(source.status()),
            #[cfg(feature = "remote")]
            Self::Remote(nnhal_remote::RemoteError::Device { source, .. }) => Some(source.status()),
            _ => None,
        }
    }
}

/// Where in a model a device's error happened.
pub(crate) fn place_of(error: &nnhal_hal::Error) -> Option<OperationPlace> {
    if let Some(ValidationError::Operation { subgraph, operation, operation_type, .. }) =
        error.reason()
    {
        let (subgraph, operation_type) = (*subgraph, *operation_type);
        return Some(OperationPlace { subgraph, index: *operation, operation_type });
    }
    match error.reason()? {
        EngineError::Operation { place, .. } | EngineError::Shape { place, .. } => Some(*place),
        _ => None,
    }
}

impl fmt::Display for UnsupportedOperation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, origin, reason } = self;
        write!(formatter, "{place}")?;
        if let Some(origin) = origin {
            write!(formatter, ", from {origin}")?;
        }
        write!(formatter, ": {reason}")
    }
}

struct Prefix<'a>(&'a Option<PathBuf>);

impl fmt::Display for Prefix<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |path| write!(formatter, "{}: ", path.display()))
    }
}

struct List<'a>(&'a [String]);

impl fmt::Display for List<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => formatter.write_str("none"),
            names => formatter.write_str(&names.join(", ")),
        }
    }
}

struct Lines<'a>(&'a [UnsupportedOperation]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|operation| write!(formatter, "\n  {operation}"))
    }
}

struct Origin<'a>(Option<&'a FailedOperation>);

impl fmt::Display for Origin<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.and_then(|operation| operation.origin.as_ref()) {
            Some(origin) => write!(formatter, " (from {origin})"),
            None => Ok(()),
        }
    }
}

/// A shape for messages: `[1, ?, 3]`.
pub(crate) fn show_shape(shape: &[Option<usize>]) -> String {
    let lengths = shape.iter().map(|it| it.map_or("?".to_owned(), |length| length.to_string()));
    format!("[{}]", lengths.collect::<Vec<_>>().join(", "))
}
