//! How much memory an execution may take, and how much it takes.

use driver::{EngineError, MemoryUse};
use std::cell::Cell;
use std::fs;
use std::rc::Rc;

/// A quarter of what the machine has, or of what its control group is granted; 2 GiB if neither
/// can be learned. A quarter, because kernels need a multiple of an operation's results for
/// themselves.
pub fn default_memory_limit() -> u64 {
    const OTHERWISE: u64 = 8 << 30;
    let of_machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_memory(&text));
    let of_group = fs::read_to_string("/sys/fs/cgroup/memory.max")
        .ok()
        .and_then(|text| text.trim().parse().ok());
    of_machine.into_iter().chain(of_group).min().unwrap_or(OTHERWISE) / 4
}

/// Bytes of memory, by the text of `/proc/meminfo`, which says kibibytes.
fn total_memory(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Counts the bytes of values that are alive during one execution.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    live: Rc<Cell<u64>>,
    limit: u64,
}

/// Bytes that count until this is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    live: Rc<Cell<u64>>,
    bytes: u64,
}

impl Ledger {
    pub(crate) fn new(limit: u64) -> Self {
        Self { live: Rc::default(), limit }
    }

    /// Refuses what would exceed the limit.
    pub(crate) fn expect_room(&self, wanted: u64, user: MemoryUse) -> Result<(), EngineError> {
        let (live, limit) = (self.live.get(), self.limit);
        if live.saturating_add(wanted) > limit {
            return Err(EngineError::MemoryLimit { user, wanted, live, limit });
        }
        Ok(())
    }

    /// Counts bytes that are there.
    pub(crate) fn charge(&self, bytes: u64, user: MemoryUse) -> Result<Charge, EngineError> {
        self.expect_room(bytes, user)?;
        self.live.set(self.live.get() + bytes);
        Ok(Charge { live: Rc::clone(&self.live), bytes })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.live.set(self.live.get() - self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_does_not_count_any_more() {
        let ledger = Ledger::new(10);
        let charge = ledger.charge(6, MemoryUse::Inputs).unwrap();
        let error = ledger.charge(5, MemoryUse::Inputs).unwrap_err();
        assert!(matches!(error, EngineError::MemoryLimit { wanted: 5, live: 6, limit: 10, .. }));
        assert_eq!(error.status(), hal::ErrorStatus::ResourceExhaustedPersistent);
        drop(charge);
        ledger.charge(10, MemoryUse::Inputs).unwrap();
    }

    #[test]
    fn the_machine_says_kibibytes() {
        assert_eq!(total_memory("MemTotal:       16384 kB\nMemFree: 1 kB\n"), Some(16384 * 1024));
        assert_eq!(total_memory("MemFree: 1 kB\n"), None);
        assert!(default_memory_limit() > 0);
    }
}
