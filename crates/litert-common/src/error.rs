//! [`Error`]: why something was not done.

use nnhal_c_boundary::calls::ForkedInside;

/// Why something was not done, as a sentence for whoever runs the program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option that there is not, or a value that it does not take.
    #[error("{0}")]
    Option(String),
    /// What the library says.
    #[error("{0}")]
    Library(#[from] nnhal::Error),
    /// Memory that cannot be read or copied.
    #[error("{0}")]
    Memory(#[from] nnhal::hal::memory::MemoryError),
    /// The process was forked after the thing was made.
    #[error(
        "the {what} was made by process {made_in}, and threads of it do not exist in this one, {found}: \
         make it after the fork"
    )]
    Forked {
        /// What was made.
        what: &'static str,
        /// The process that made it.
        made_in: u32,
        /// This process.
        found: u32,
    },
    /// The process was forked while another thread was in a call.
    #[error("{0}")]
    ForkedInside(ForkedInside),
    /// A panic that was stopped at the border.
    #[error("a fault of the library, please report it: {0}")]
    Fault(String),
}

/// What may have failed.
pub type Result<T> = std::result::Result<T, Error>;
