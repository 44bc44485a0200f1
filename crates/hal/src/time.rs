//! Timings, deadlines and loop timeouts.

use crate::codes::UnknownCode;
use std::time::Duration;

/// How long an execution took (contract: TIME-1, TIME-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timing {
    /// On the processor itself; `None` if not measured.
    pub time_on_device: Option<Duration>,
    /// From request to result; `None` if not measured. Not less than the time on the device.
    pub time_in_driver: Option<Duration>,
}

impl Timing {
    /// Nothing was measured.
    pub const NONE: Self = Self { time_on_device: None, time_in_driver: None };
    /// What the interface says for a time that is not available.
    pub const NOT_AVAILABLE: u64 = u64::MAX;

    /// Time on the device and in the driver in microseconds, as the interface carries them:
    /// both rounded up, so that the order of the two stays, and [`Timing::NOT_AVAILABLE`] where not
    /// measured.
    pub fn to_microseconds(self) -> (u64, u64) {
        (microseconds(self.time_on_device), microseconds(self.time_in_driver))
    }

    /// The timing that the interface carries as these numbers of microseconds.
    pub fn from_microseconds(time_on_device: u64, time_in_driver: u64) -> Self {
        let duration = |time| (time != Self::NOT_AVAILABLE).then(|| Duration::from_micros(time));
        Self { time_on_device: duration(time_on_device), time_in_driver: duration(time_in_driver) }
    }
}

fn microseconds(duration: Option<Duration>) -> u64 {
    let Some(duration) = duration else { return Timing::NOT_AVAILABLE };
    let rounded_up = duration.as_nanos().div_ceil(1000);
    u64::try_from(rounded_up).unwrap_or(Timing::NOT_AVAILABLE).min(Timing::NOT_AVAILABLE - 1)
}

/// A point of the steady clock (`CLOCK_MONOTONIC`) after which a result is not wanted any more
/// (contract: QOS-2). The earlier of two is the smaller: `a.min(b)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline {
    nanoseconds_since_epoch: u64,
}

impl Deadline {
    /// The time that is this number of nanoseconds after the clock's epoch. Times beyond the clock's
    /// range are never reached (contract: QOS-4).
    pub const fn from_nanoseconds_since_epoch(nanoseconds_since_epoch: u64) -> Self {
        Self { nanoseconds_since_epoch }
    }

    /// So long from now; saturates.
    pub fn after(duration: Duration) -> Self {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self { nanoseconds_since_epoch: now().saturating_add(nanoseconds) }
    }

    /// Nanoseconds since the clock's epoch.
    pub const fn nanoseconds_since_epoch(self) -> u64 {
        self.nanoseconds_since_epoch
    }

    /// Whether it is in the past.
    pub fn has_passed(self) -> bool {
        now() >= self.nanoseconds_since_epoch
    }

    /// How long until then; zero if it has passed.
    pub fn remaining(self) -> Duration {
        Duration::from_nanos(self.nanoseconds_since_epoch.saturating_sub(now()))
    }
}

/// Nanoseconds since the epoch of the steady clock.
fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    part(now.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(now.tv_nsec))
}

/// For how long each WHILE may run unless the request says otherwise.
pub const LOOP_TIMEOUT_DEFAULT: Duration = Duration::from_secs(2);
/// The longest that a request can say (contract: QOS-8).
pub const LOOP_TIMEOUT_MAXIMUM: Duration = Duration::from_secs(15);

/// The loop timeout that a request's wish amounts to (contract: QOS-7, QOS-8).
pub fn loop_timeout(wish: Option<Duration>) -> Duration {
    wish.unwrap_or(LOOP_TIMEOUT_DEFAULT).min(LOOP_TIMEOUT_MAXIMUM)
}

/// A point in time as the interface's safe union has it: tag 0 is none, tag 1 has nanoseconds.
///
/// # Errors
/// Any other tag (contract: GEN-7).
pub const fn optional_nanoseconds(tag: u8, value: u64) -> Result<Option<u64>, UnknownCode> {
    match tag {
        0 => Ok(None),
        1 => Ok(Some(value)),
        _ => Err(UnknownCode { enumeration: "OptionalTimePoint", found: tag as i64 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_2_both_times_are_rounded_up() {
        let timing = Timing {
            time_on_device: Some(Duration::from_nanos(1)),
            time_in_driver: Some(Duration::from_nanos(1001)),
        };
        assert_eq!(timing.to_microseconds(), (1, 2));
        let whole = Timing { time_on_device: Some(Duration::from_nanos(1000)), ..Timing::NONE };
        assert_eq!(whole.to_microseconds(), (1, u64::MAX));
        assert_eq!(
            Timing::from_microseconds(1, u64::MAX),
            Timing { time_on_device: Some(Duration::from_micros(1)), time_in_driver: None }
        );
        assert_eq!(Timing::NONE.to_microseconds(), (u64::MAX, u64::MAX));
        assert_eq!(Timing::from_microseconds(u64::MAX, u64::MAX), Timing::NONE);
        let endless = Timing { time_on_device: Some(Duration::MAX), ..Timing::NONE };
        assert_eq!(endless.to_microseconds().0, u64::MAX - 1);
    }

    #[test]
    fn qos_4_far_deadlines_do_not_overflow() {
        assert!(!Deadline::from_nanoseconds_since_epoch(i64::MAX.cast_unsigned()).has_passed());
        assert!(!Deadline::from_nanoseconds_since_epoch(u64::MAX).has_passed());
        assert!(!Deadline::after(Duration::MAX).has_passed());
        assert!(Deadline::from_nanoseconds_since_epoch(0).has_passed());
        assert_eq!(Deadline::from_nanoseconds_since_epoch(0).remaining(), Duration::ZERO);
    }

    #[test]
    fn qos_2_a_deadline_is_a_point_of_the_steady_clock() {
        // `Instant` is the same clock: nothing else here may tell what that is.
        let clock = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let clock = u64::try_from(clock.tv_sec).unwrap() * 1_000_000_000;
        let deadline = Deadline::after(Duration::from_secs(10)).nanoseconds_since_epoch();
        assert!((clock + 10_000_000_000..clock + 15_000_000_000).contains(&deadline));
        let (early, late) = (
            Deadline::from_nanoseconds_since_epoch(1),
            Deadline { nanoseconds_since_epoch: deadline },
        );
        assert_eq!(late.min(early), early);
    }

    #[test]
    fn qos_3_a_deadline_passes() {
        let deadline = Deadline::after(Duration::from_millis(5));
        assert!(deadline.remaining() <= Duration::from_millis(5));
        std::thread::sleep(Duration::from_millis(6));
        assert!(deadline.has_passed());
    }

    #[test]
    fn qos_7_and_8_loop_timeouts_have_a_default_and_a_limit() {
        assert_eq!(loop_timeout(None), Duration::from_secs(2));
        assert_eq!(loop_timeout(Some(Duration::MAX)), Duration::from_secs(15));
        assert_eq!(loop_timeout(Some(Duration::from_millis(1))), Duration::from_millis(1));
    }

    #[test]
    fn gen_7_unknown_tags_are_refused() {
        assert_eq!(optional_nanoseconds(1, 7), Ok(Some(7)));
        assert_eq!(optional_nanoseconds(0, 7), Ok(None));
        assert!(optional_nanoseconds(2, 7).is_err());
    }
}
