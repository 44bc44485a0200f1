//! Deadlines and durations as the interface carries them: nanoseconds, -1 for none, deadlines of
//! `CLOCK_BOOTTIME`, which goes on while the machine sleeps.

use super::ConversionError;
use nnhal_hal::Deadline;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// What stands for no deadline, no duration and no time measured.
pub(crate) const NONE: i64 = -1;

fn boottime() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    part(now.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(now.tv_nsec))
}

/// A deadline from the wire.
pub(crate) fn deadline(nanoseconds: i64) -> Result<Option<Deadline>, ConversionError> {
    if nanoseconds == NONE {
        return Ok(None);
    }
    let point = u64::try_from(nanoseconds)
        .map_err(|_| ConversionError::Negative { what: "a deadline", found: nanoseconds })?;
    Ok(Some(Deadline::after(Duration::from_nanos(point.saturating_sub(boottime())))))
}

/// A deadline for the wire.
pub(crate) fn deadline_on_wire(deadline: Option<Deadline>) -> i64 {
    let Some(deadline) = deadline else { return NONE };
    let remaining = u64::try_from(deadline.remaining().as_nanos()).unwrap_or(u64::MAX);
    i64::try_from(boottime().saturating_add(remaining)).unwrap_or(i64::MAX)
}

/// A duration from the wire.
pub(crate) fn duration(nanoseconds: i64) -> Result<Option<Duration>, ConversionError> {
    if nanoseconds == NONE {
        return Ok(None);
    }
    let found = u64::try_from(nanoseconds)
        .map_err(|_| ConversionError::Negative { what: "a duration", found: nanoseconds })?;
    Ok(Some(Duration::from_nanos(found)))
}

/// A duration for the wire; what 63 bits cannot count is the longest that they can, 292 years.
pub(crate) fn duration_on_wire(duration: Option<Duration>) -> i64 {
    duration.map_or(NONE, |duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qos_2_deadlines_are_points_of_the_boot_clock() {
        let wire = deadline_on_wire(Some(Deadline::after(Duration::from_secs(10))));
        let now = i64::try_from(boottime()).unwrap();
        assert!((now..=now + 10_000_000_000).contains(&wire), "{wire} {now}");
        let back = deadline(wire).unwrap().unwrap().remaining();
        assert!((Duration::from_secs(9)..=Duration::from_secs(10)).contains(&back));
        assert!(deadline(0).unwrap().unwrap().has_passed());
        assert!(!deadline(i64::MAX).unwrap().unwrap().has_passed());
        assert_eq!((deadline(-1).unwrap(), deadline_on_wire(None)), (None, -1));
        assert!(deadline(-2).is_err() && duration(-2).is_err());
        assert_eq!(duration_on_wire(Some(Duration::MAX)), i64::MAX);
        assert_eq!(duration(5).unwrap(), Some(Duration::from_nanos(5)));
    }
}
