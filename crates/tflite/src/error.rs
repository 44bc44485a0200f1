//! [`ImportError`]

use std::fmt;

/// Why a file could not be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file has no bytes, or cannot be shared with a device.
    #[error("{0}")]
    Memory(#[from] nnhal_hal::memory::MemoryError),
    /// The file is no TensorFlow Lite model.
    #[error("not a TensorFlow Lite model: {0}")]
    Format(String),
    /// Something in the file contradicts the format.
    #[error("{place}: {what}")]
    Malformed {
        /// Where in the file.
        place: String,
        /// What is wrong.
        what: String,
    },
    /// The model has operators that the HAL has nothing for.
    #[error("{} operators have no counterpart:{}", operators.len() + others, Listed(operators, *others))]
    Unsupported {
        /// The first 1000 of them.
        operators: Vec<UnsupportedOperator>,
        /// How many there are beyond these.
        others: usize,
    },
    /// The pieces do not make a model.
    #[error("{0}")]
    Build(#[from] nnhal_hal::BuildError),
}

/// An operator that the HAL has nothing for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedOperator {
    /// Index of the subgraph.
    pub subgraph: usize,
    /// Index of the operator in its subgraph.
    pub index: usize,
    /// Its name in the format, or the name of a custom operator.
    pub operator: String,
    /// Its version.
    pub version: i32,
    /// Its first tensors: name, type and shape.
    pub tensors: Vec<String>,
    /// Why there is no counterpart.
    pub reason: String,
}

impl fmt::Display for UnsupportedOperator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subgraph, index, operator, version, tensors, reason } = self;
        write!(formatter, "operator {index} of subgraph {subgraph}, {operator} version {version}")?;
        write!(formatter, " ({}): {reason}", tensors.join(", "))
    }
}

struct Listed<'a>(&'a [UnsupportedOperator], usize);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|operator| write!(formatter, "\n  {operator}"))?;
        match self.1 {
            0 => Ok(()),
            others => write!(formatter, "\n  and {others} more"),
        }
    }
}

/// Bytes of a name that a message repeats.
const NAME_LENGTH: usize = 200;

/// The beginning of a name out of a file, which may be as long as the file.
pub(crate) fn beginning(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_LENGTH)]
}

/// A name out of a file as messages have it: quoted, its beginning only if it is long.
pub(crate) struct Shown<'a>(pub(crate) &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, shown) = (self.0, beginning(self.0));
        write!(formatter, "{shown:?}")?;
        if shown.len() < name.len() {
            write!(formatter, "... ({} bytes)", name.len())?;
        }
        Ok(())
    }
}

/// Why one operator cannot be imported; becomes an [`UnsupportedOperator`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reason(pub(crate) String);

impl Reason {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl From<planus::Error> for Reason {
    fn from(error: planus::Error) -> Self {
        Self(format!("its options cannot be read: {error}"))
    }
}
