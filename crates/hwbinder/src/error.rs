//! [`Error`], [`ParcelError`] and the status codes that replies carry.

/// Codes of a reply that carries only a status (`status_t`).
pub mod status {
    /// All is well.
    pub const OK: i32 = 0;
    /// What the other side did not foresee; also a method that was called one way and is not, or the reverse.
    pub const UNKNOWN_ERROR: i32 = i32::MIN;
    /// The interface token is not that of the method.
    pub const BAD_TYPE: i32 = i32::MIN + 1;
    /// The parcel is not what the method takes (`-EINVAL`).
    pub const BAD_VALUE: i32 = -22;
    /// There is no such method (`-EBADMSG`).
    pub const UNKNOWN_TRANSACTION: i32 = -74;
    /// The object is gone (`-EPIPE`).
    pub const DEAD_OBJECT: i32 = -32;
    /// Resources are exhausted (`-ENOMEM`).
    pub const NO_MEMORY: i32 = -12;
}

/// Codes at the head of a reply (`Status::Exception`).
pub mod exception {
    /// All is well; the results follow.
    pub const NONE: i32 = 0;
    /// Null where none is allowed.
    pub const NULL_POINTER: i32 = -4;
}

/// Why a call through the driver has failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The process of the object has ended, or there is no service manager.
    #[error("the other process is gone")]
    Dead,
    /// The kernel refused the transaction: most often it is longer than the receiver's mapping has free.
    #[error("the kernel refused the transaction of {bytes} bytes")]
    Refused {
        /// Data and all buffers.
        bytes: u64,
    },
    /// The reply is a status, see [`status`].
    #[error("the other side answered with status {0}")]
    Status(i32),
    /// The reply is an exception, see [`exception`].
    #[error("the other side answered with exception {code}: {message}")]
    Exception {
        /// The code.
        code: i32,
        /// What it says.
        message: String,
    },
    /// The reply, or what was received otherwise, is not what it must be.
    #[error(transparent)]
    Parcel(#[from] ParcelError),
    /// A system call has failed.
    #[error("{call}: {why}")]
    System {
        /// Which.
        call: &'static str,
        /// What the system says.
        why: String,
    },
    /// The driver speaks another protocol.
    #[error("the driver's protocol is version {found}, expected {expected}")]
    Version {
        /// What it speaks.
        found: i32,
        /// What this crate speaks.
        expected: i32,
    },
}

impl Error {
    pub(crate) fn system(call: &'static str, why: impl ToString) -> Self {
        Self::System { call, why: why.to_string() }
    }
}

/// What is wrong with a parcel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParcelError {
    /// It ends before a value does.
    #[error("{what} at {position} of {length} bytes: the parcel ends")]
    Short {
        /// What was read.
        what: &'static str,
        /// Where.
        position: usize,
        /// Bytes of the parcel.
        length: usize,
    },
    /// The list of objects is wrong.
    #[error("object {index}: {what}")]
    Object {
        /// Index in the list of offsets.
        index: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// There is another thing than the method has here.
    #[error("at {position}: expected {expected}")]
    Unexpected {
        /// Where.
        position: usize,
        /// What ought to be there.
        expected: &'static str,
    },
    /// A buffer has another length than what it holds.
    #[error("a buffer of {found} bytes, expected {expected}")]
    Length {
        /// Its length.
        found: u64,
        /// What its holder says.
        expected: u64,
    },
    /// A buffer hangs at another place than where it belongs.
    #[error("at {position}: a buffer that belongs elsewhere")]
    Parent {
        /// Where its record is.
        position: usize,
    },
    /// A string that is no UTF-8, or does not end with its NUL.
    #[error("a string that is none")]
    String,
    /// A native handle that contradicts itself.
    #[error("a handle with {fds} descriptors and {integers} integers in {bytes} bytes")]
    Handle {
        /// Descriptors, as it says.
        fds: i32,
        /// Integers, as it says.
        integers: i32,
        /// Its length.
        bytes: usize,
    },
    /// A descriptor that cannot be duplicated.
    #[error("a descriptor cannot be duplicated: {0}")]
    Descriptor(String),
    /// An object of this process that there is not (any more), or one of a kind that the method
    /// does not take.
    #[error("an object that is none of this process, or of another kind")]
    Unknown,
    /// The interface token is not that of the method.
    #[error("the interface token is {found:?}")]
    Token {
        /// What was found.
        found: String,
    },
}
