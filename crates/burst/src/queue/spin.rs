//! [`Spin`]: looking again and again for a few microseconds before sleeping.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// For how long to look at most. To be woken by the system takes about as long.
const LONGEST: Duration = Duration::from_micros(50);
/// Waits that took longer than this, sleep and all, were not worth looking.
const WORTHWHILE: Duration = Duration::from_micros(150);
/// Looks between two looks at the clock.
const LOOKS: usize = 16;

/// How long one end of a queue looks before it sleeps. It learns: while waits are short it looks
/// for the whole time, after long ones ever shorter, so that a burst that is idle, or whose model
/// computes for long, leaves the processor to others.
#[derive(Debug)]
pub(super) struct Spin {
    window: Duration,
}

impl Spin {
    pub(super) fn new() -> Self {
        Self { window: if is_useful() { LONGEST } else { Duration::ZERO } }
    }

    /// Looks until `is_ready` or the time is over; whether it is ready.
    pub(super) fn look(&self, mut is_ready: impl FnMut() -> bool) -> bool {
        if is_ready() {
            return true;
        }
        if self.window.is_zero() {
            return false;
        }
        let begin = Instant::now();
        loop {
            for _ in 0..LOOKS {
                std::hint::spin_loop();
                if is_ready() {
                    return true;
                }
            }
            if begin.elapsed() >= self.window {
                return false;
            }
        }
    }

    /// Learns from a wait that went on after looking, and how long it took in all.
    pub(super) fn learn(&mut self, slept: Duration) {
        self.window = if slept > WORTHWHILE {
            // Down to nothing: below a microsecond a look at the clock takes longer.
            if self.window < Duration::from_micros(1) { Duration::ZERO } else { self.window / 2 }
        } else if is_useful() {
            LONGEST
        } else {
            Duration::ZERO
        };
    }
}

/// With one processor the other side does nothing while we look; neither does it under loom, which
/// runs one thread at a time.
fn is_useful() -> bool {
    if cfg!(loom) {
        return false;
    }
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from)) > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_waits_end_the_looking_and_short_ones_begin_it_again() {
        let mut spin = Spin::new();
        for _ in 0..8 {
            spin.learn(Duration::from_millis(10));
        }
        assert_eq!(spin.window, Duration::ZERO);
        let mut looks = 0;
        assert!(!spin.look(|| {
            looks += 1;
            false
        }));
        assert_eq!(looks, 1);
        spin.learn(Duration::from_micros(20));
        assert_eq!(spin.window.is_zero(), !is_useful());
    }
}
