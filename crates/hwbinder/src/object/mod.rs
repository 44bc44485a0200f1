//! [`Object`]: what a process offers to others, [`Remote`], what another one offers, and [`Binder`], either of them.

mod remote;

pub(crate) use remote::{Carrier, Incoming};
pub use remote::{DeathLink, Remote};

use crate::error::{Error, ParcelError, status};
use crate::parcel;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Reads a parcel.
pub type Reader<'p> = parcel::Reader<'p, Binder>;

/// A parcel that is being written.
pub type Writer = parcel::Writer<Binder>;

/// An interface by its name and the hash of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface {
    /// Such as `android.hardware.neuralnetworks@1.0::IDevice`.
    pub name: &'static str,
    /// SHA-256 of the `.hal` file, as released.
    pub hash: [u8; 32],
}

impl Interface {
    /// An interface whose hash is given in hexadecimal digits.
    ///
    /// # Panics
    /// If they are not 64 such digits; in a constant this is seen when compiling.
    pub const fn new(name: &'static str, hash: &str) -> Self {
        let digits = hash.as_bytes();
        assert!(digits.len() == 64, "a hash has 64 digits");
        let mut bytes = [0; 32];
        let mut index = 0;
        while index < bytes.len() {
            bytes[index] = digit(digits[2 * index]) << 4 | digit(digits[2 * index + 1]);
            index += 1;
        }
        Self { name, hash: bytes }
    }
}

const fn digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => panic!("a hash has lower-case hexadecimal digits"),
    }
}

/// Who calls, as the kernel says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The process; 0 if this process cannot see it, or for calls that are one way.
    pub process: i32,
    /// Its effective user.
    pub user: u32,
}

/// An object that other processes may call.
///
/// The methods of `IBase` are answered for it (module [`base`](crate::base)).
pub trait Object: Any + Send + Sync {
    /// Its interfaces, the most derived first, without `IBase`.
    fn chain(&self) -> &'static [Interface];

    /// Whether no one waits for the results of a method.
    fn is_one_way(&self, code: u32) -> bool {
        let _ = code;
        false
    }

    /// Calls a method. The arguments begin with the interface token.
    ///
    /// # Errors
    /// What goes back in place of results.
    fn call(
        &self,
        code: u32,
        arguments: &mut Reader<'_>,
        caller: Caller,
    ) -> Result<Writer, CallError>;

    /// Whether the object still does what it is for, which `ping` says.
    fn is_alive(&self) -> bool {
        true
    }

    /// What `debug` writes.
    fn debug(&self) -> String {
        self.chain().first().map_or_else(String::new, |own| format!("{}\n", own.name))
    }
}

/// What an object answers in place of results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    /// A status, see [`status`].
    Status(i32),
    /// An exception, see [`exception`](crate::error::exception).
    Exception(i32, &'static str),
}

impl CallError {
    /// There is no such method.
    pub const UNKNOWN: Self = Self::Status(status::UNKNOWN_TRANSACTION);
    /// Null where none is allowed.
    pub const NULL: Self = Self::Exception(crate::error::exception::NULL_POINTER, "null");

    /// The reply that says so.
    pub fn reply(&self) -> Writer {
        match self {
            Self::Status(code) => Writer::status(*code),
            Self::Exception(code, message) => Writer::exception(*code, message),
        }
    }
}

impl From<ParcelError> for CallError {
    fn from(error: ParcelError) -> Self {
        tracing::debug!(%error, "a call was refused");
        Self::Status(match error {
            ParcelError::Token { .. } => status::BAD_TYPE,
            ParcelError::Descriptor(_) => status::NO_MEMORY,
            _ => status::BAD_VALUE,
        })
    }
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        match error {
            Error::Parcel(error) => error.into(),
            error => {
                tracing::debug!(%error, "a call has failed");
                Self::Status(status::UNKNOWN_ERROR)
            }
        }
    }
}

/// An object of this process or of another one.
#[derive(Clone)]
pub enum Binder {
    /// Of this process.
    Local(Arc<dyn Object>),
    /// Of another one.
    Remote(Arc<Remote>),
}

impl Binder {
    /// An object of this process.
    pub fn local(object: impl Object) -> Self {
        Self::Local(Arc::new(object))
    }

    /// An object of this process that is of this type.
    pub fn downcast<T: Object>(&self) -> Option<Arc<T>> {
        match self {
            Self::Local(object) => {
                let any: Arc<dyn Any + Send + Sync> = Arc::clone(object) as _;
                any.downcast().ok()
            }
            Self::Remote(_) => None,
        }
    }

    /// An object of another process.
    pub fn remote(&self) -> Option<&Arc<Remote>> {
        match self {
            Self::Local(_) => None,
            Self::Remote(remote) => Some(remote),
        }
    }
}

impl fmt::Debug for Binder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(object) => {
                write!(formatter, "Local({:?})", object.chain().first().map(|own| own.name))
            }
            Self::Remote(remote) => write!(formatter, "{remote:?}"),
        }
    }
}
