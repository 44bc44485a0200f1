//! [`Error`]: why something was not done, as the interpreter's error reporter shows it.

use nnhal_litert_common::Error as Common;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The host lacks something, or answered with an error.
    #[error("the interpreter {what}")]
    Host { what: String },
    /// What the libraries for LiteRT have in common.
    #[error("{0}")]
    Common(#[from] Common),
    /// A node that is left to the interpreter.
    #[error("{0}")]
    Node(String),
    /// What the library says.
    #[error("{0}")]
    Library(#[from] nnhal::Error),
    /// Memory that cannot be lent.
    #[error("{0}")]
    Memory(#[from] nnhal::hal::memory::MemoryError),
    /// A tensor is not what it was when the partition was prepared.
    #[error("tensor {tensor} {what}")]
    Tensor { tensor: i32, what: String },
    /// A delegate or kernel that is not there any more.
    #[error("the {what} has been deleted")]
    Deleted { what: &'static str },
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// The host lacks something, or answered with an error.
pub(crate) fn host(what: impl Into<String>) -> Error {
    Error::Host { what: what.into() }
}

/// An option that there is not, or a value that it does not take.
pub(crate) fn option(what: impl Into<String>) -> Error {
    Common::Option(what.into()).into()
}
