//! [`Meter`], [`Place`] and [`malformed`]: what reading any part of a file needs.

use crate::error::ImportError;
use std::fmt;

/// Bounds what is made out of a file: vectors of a hostile one may all share the same bytes.
pub(crate) struct Meter {
    left: usize,
}

/// Elements read out for each byte of the file. Real files share a few vectors.
const ELEMENTS_PER_BYTE: usize = 16;
/// Elements that any file may have.
const ELEMENTS_AT_LEAST: usize = 1 << 16;

impl Meter {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { left: bytes.len().saturating_mul(ELEMENTS_PER_BYTE).max(ELEMENTS_AT_LEAST) }
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<(), ImportError> {
        match self.left.checked_sub(count) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(ImportError::Format("its parts are more than the file can hold".into())),
        }
    }
}

/// What is wrong somewhere: an error of the FlatBuffers runtime, or a sentence.
pub(crate) trait Cause {
    fn sentence(self) -> String;
}

impl Cause for planus::Error {
    fn sentence(self) -> String {
        use planus::errors::ErrorKind as K;
        match self.error_kind {
            K::InvalidOffset | K::InvalidLength => format!("{self}; {CUT_OFF}"),
            _ => self.to_string(),
        }
    }
}

impl Cause for String {
    fn sentence(self) -> String {
        self
    }
}

impl Cause for &str {
    fn sentence(self) -> String {
        self.to_owned()
    }
}

/// Why a file refers to what is not in it.
pub(crate) const CUT_OFF: &str =
    "the file is damaged, or was cut off as by a download that did not finish";

/// Adds the place to what is wrong. It is written out once something is.
pub(crate) fn malformed<E: Cause, P: fmt::Display>(place: P) -> impl FnOnce(E) -> ImportError {
    move |error| ImportError::Malformed { place: place.to_string(), what: error.sentence() }
}

/// A part of a file, within another one.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    within: Option<&'a Place<'a>>,
    what: &'a str,
    index: Option<usize>,
}

impl<'a> Place<'a> {
    /// This number of those that are called so.
    pub(crate) fn numbered(what: &'a str, index: usize) -> Self {
        Self { within: None, what, index: Some(index) }
    }

    /// A part of this one, with a number if there are several.
    pub(crate) fn part<'b>(&'b self, what: &'b str, index: Option<usize>) -> Place<'b>
    where
        'a: 'b,
    {
        Place { within: Some(self), what, index }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(within) = self.within {
            write!(formatter, "{within}, ")?;
        }
        formatter.write_str(self.what)?;
        self.index.map_or(Ok(()), |index| write!(formatter, " {index}"))
    }
}
