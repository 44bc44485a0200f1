//! [`Position`]: which input or output is meant.

use crate::error::{Error, Result};
use crate::info::TensorInfo;

/// Which input or output: by position, or by name, its own or that of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position<'a> {
    /// Among the model's inputs or outputs.
    Index(usize),
    /// Its name.
    Name(&'a str),
}

impl From<usize> for Position<'_> {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

impl<'a> From<&'a str> for Position<'a> {
    fn from(name: &'a str) -> Self {
        Self::Name(name)
    }
}

impl<'a> From<&'a String> for Position<'a> {
    fn from(name: &'a String) -> Self {
        Self::Name(name)
    }
}

/// The position of what is meant.
pub(crate) fn find(
    what: &'static str,
    all: &[TensorInfo],
    position: &Position<'_>,
) -> Result<usize> {
    let found = match position {
        Position::Index(index) => Some(*index).filter(|index| *index < all.len()),
        // Signatures' names first: they are made for callers, and may be other tensors' own names.
        Position::Name(name) => all
            .iter()
            .position(|info| info.signature_name.as_deref() == Some(name))
            .or_else(|| all.iter().position(|info| info.name == *name)),
    };
    found.ok_or_else(|| Error::NotFound {
        what,
        name: match position {
            Position::Index(index) => index.to_string(),
            Position::Name(name) => (*name).to_owned(),
        },
        available: all.iter().map(TensorInfo::shown_name).collect(),
    })
}
