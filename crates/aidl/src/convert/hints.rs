//! What extensions say of a compilation or an execution (version 4), and what their prefixes stand for.

use super::{ConversionError, Result};
use crate::interface::nn;
use nn::ExtensionNameAndPrefix::ExtensionNameAndPrefix as WirePrefix;
use nn::TokenValuePair::TokenValuePair as WirePair;
use nnhal_hal::{ExtensionNameAndPrefix, Hints, TokenValuePair};

/// Names of extensions with the prefixes that stand for them.
pub(crate) fn prefixes_from_wire(prefixes: &[WirePrefix]) -> Vec<ExtensionNameAndPrefix> {
    let row =
        |row: &WirePrefix| ExtensionNameAndPrefix { name: row.name.clone(), prefix: row.prefix };
    prefixes.iter().map(row).collect()
}

/// The same for the wire.
pub(crate) fn prefixes_to_wire(prefixes: &[ExtensionNameAndPrefix]) -> Vec<WirePrefix> {
    let row =
        |row: &ExtensionNameAndPrefix| WirePrefix { name: row.name.clone(), prefix: row.prefix };
    prefixes.iter().map(row).collect()
}

/// What extensions say, from the wire.
///
/// # Errors
/// A token that is there twice.
pub(crate) fn hints_from_wire(pairs: &[WirePair], prefixes: &[WirePrefix]) -> Result<Hints> {
    let pair = |pair: &WirePair| TokenValuePair { token: pair.token, value: pair.value.clone() };
    let hints = Hints {
        values: pairs.iter().map(pair).collect(),
        extension_name_to_prefix: prefixes_from_wire(prefixes),
    };
    match hints.token_given_twice() {
        Some(token) => Err(ConversionError::TokenTwice { token }),
        None => Ok(hints),
    }
}

/// Values of extensions for the wire.
pub(crate) fn tokens_to_wire(hints: &Hints) -> Vec<WirePair> {
    let pair = |pair: &TokenValuePair| WirePair { token: pair.token, value: pair.value.clone() };
    hints.values.iter().map(pair).collect()
}
