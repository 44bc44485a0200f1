//! What only the interfaces have: launch statuses and callbacks, numbers that are no codes, methods
//! of several versions, the packets of bursts, handles that are no fences.
//!
//! A [`Driver`] is called as HIDL calls it, by every version that it implements. Whoever serves a
//! [`nnhal_hal::Device`] by `nnhal_hidl::serve` gets this side from there; a driver that implements the
//! interfaces by itself is judged by [`run_driver`](super::run_driver).

mod buffers;
mod bursts;
mod caching;
mod describing;
mod driver;
mod driver_model;
mod executing;
mod fences;
mod memory;
mod notified;
mod packets;
mod paths;
mod preparation;
mod preparing;

pub(super) use driver::Driver;

use super::{Check, Violation, demand};
use nnhal_hal::ErrorStatus;
use nnhal_hidl::convert::Convert;

pub(super) const PREPARING: &[Check] = preparing::CHECKS;
pub(super) const EXECUTING: &[Check] = executing::CHECKS;
pub(super) const BURSTS: &[Check] = bursts::CHECKS;
pub(super) const FENCES: &[Check] = fences::CHECKS;
pub(super) const BUFFERS: &[Check] = buffers::CHECKS;
pub(super) const CACHING: &[Check] = caching::CHECKS;
pub(super) const PACKETS: &[Check] = packets::CHECKS;
pub(super) const DESCRIBING: &[Check] = describing::CHECKS;
pub(super) const MEMORY: &[Check] = memory::CHECKS;

const NONE: &[ErrorStatus] = &[ErrorStatus::None];
const INVALID: &[ErrorStatus] = &[ErrorStatus::InvalidArgument];
const MISSED: &[ErrorStatus] =
    &[ErrorStatus::MissedDeadlinePersistent, ErrorStatus::MissedDeadlineTransient];

/// A value in the words of a version.
fn words<T: Convert>(value: &T::Canonical) -> Result<T, Violation> {
    T::from_canonical(value).map_err(|error| Violation(format!("the check's own words: {error}")))
}

/// A status as people know it.
fn name_of(status: i32) -> String {
    ErrorStatus::from_code(status).map_or_else(|_| status.to_string(), |status| status.to_string())
}

fn is_one_of(status: i32, allowed: &[ErrorStatus]) -> bool {
    allowed.iter().any(|allowed| allowed.code() == status)
}

/// Demands one of some statuses.
fn demand_status(what: &str, status: i32, allowed: &[ErrorStatus]) -> Result<(), Violation> {
    let found = name_of(status);
    demand!(is_one_of(status, allowed), "{what}: expected {allowed:?}, found {found}");
    Ok(())
}
