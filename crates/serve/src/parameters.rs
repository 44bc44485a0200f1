//! What strangers write, read with care: [`Parameter`]s of requests and of tensors, names, and counts.

use crate::error::{Error, Result};
use std::collections::BTreeMap;

/// Bytes of a name or an identifier.
pub(crate) const MOST_NAME: usize = 4096;

/// A value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    /// `true` or `false`
    Bool(bool),
    /// A whole number.
    Integer(i128),
    /// Another number.
    Float(f64),
    /// A text.
    Text(String),
}

/// Parameters by name. Those that are not known are passed over, as the protocol says.
pub type Parameters = BTreeMap<String, Parameter>;

/// The beginning of a text that a stranger wrote.
pub(crate) fn shortened(text: &str) -> &str {
    let end = (0..=text.len().min(100)).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// A name that is not too long.
pub(crate) fn check_name(what: &'static str, name: &str) -> Result<()> {
    if name.len() > MOST_NAME {
        let found = name.len();
        return Err(Error::invalid(format!("{what} of {found} bytes, at most {MOST_NAME}")));
    }
    Ok(())
}

/// No more of something than there may be.
pub(crate) fn check_count(what: &'static str, found: usize, most: usize) -> Result<()> {
    if found > most {
        return Err(Error::invalid(format!("{found} {what}, at most {most}")));
    }
    Ok(())
}

/// A parameter that is a whole number of at least 0.
pub(crate) fn whole(parameters: &Parameters, name: &'static str) -> Result<Option<u64>> {
    let wrong =
        || Error::invalid(format!("parameter {name} is no whole number from 0 to 2^64 - 1"));
    match parameters.get(name) {
        None => Ok(None),
        Some(Parameter::Integer(value)) => u64::try_from(*value).map(Some).map_err(|_| wrong()),
        Some(_) => Err(wrong()),
    }
}

/// A parameter that is true or false.
pub(crate) fn truth(parameters: &Parameters, name: &'static str) -> Result<Option<bool>> {
    match parameters.get(name) {
        None => Ok(None),
        Some(Parameter::Bool(value)) => Ok(Some(*value)),
        Some(_) => Err(Error::invalid(format!("parameter {name} is neither true nor false"))),
    }
}

/// A parameter that is a text.
pub(crate) fn text<'p>(parameters: &'p Parameters, name: &'static str) -> Result<Option<&'p str>> {
    match parameters.get(name) {
        None => Ok(None),
        Some(Parameter::Text(value)) => Ok(Some(value)),
        Some(_) => Err(Error::invalid(format!("parameter {name} is not a text"))),
    }
}
