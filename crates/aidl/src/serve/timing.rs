//! Times of executions as a client may see them.

use nnhal_hal::Timing;
use std::time::Instant;

/// Times as the client sees them: the driver's ends now (contract: TIME-3). None unless asked for
/// (TIME-1), nor if they contradict each other (TIME-2).
pub(super) fn timing(timing: Timing, wanted: bool, since: Instant) -> Timing {
    if !wanted {
        return Timing::NONE;
    }
    let time_in_driver = timing.time_in_driver.map(|_| since.elapsed());
    consistent(Timing { time_in_driver, ..timing })
}

/// Times; none if the device's exceeds the driver's (contract: TIME-2).
pub(super) fn consistent(timing: Timing) -> Timing {
    match (timing.time_on_device, timing.time_in_driver) {
        (Some(device), Some(driver)) if device > driver => Timing::NONE,
        _ => timing,
    }
}
