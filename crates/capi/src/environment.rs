//! What the library takes from the environment; see the crate's documentation for the list.

use std::env;

/// Whether a switch is on: set, not empty, and not `0`.
pub(crate) fn is_on(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| !value.is_empty() && value != "0")
}
