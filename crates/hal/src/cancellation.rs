//! [`Cancellation`]: a switch that stops work from outside.

use crate::error::Result;
use crate::fence::{FenceSignal, SyncFence};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A switch that stops work from outside, for instance when the client that wanted it is gone
/// (contract: CONC-5). Clones are the same switch.
#[derive(Debug, Clone, Default)]
pub struct Cancellation(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    cancelled: AtomicBool,
    /// Made when somebody first asks for it, since work that only computes needs none.
    fence: Mutex<Option<Fence>>,
}

#[derive(Debug)]
struct Fence {
    fence: SyncFence,
    /// Until the switch is thrown.
    signal: Option<FenceSignal>,
}

impl Cancellation {
    /// A switch that has not been thrown.
    pub fn new() -> Self {
        Self::default()
    }

    /// Throws the switch; the work notices soon, and ends with `GENERAL_FAILURE`.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
        if let Some(signal) = self.lock().as_mut().and_then(|fence| fence.signal.take()) {
            signal.signal();
        }
    }

    /// Whether the switch has been thrown.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }

    /// A fence that signals when the switch is thrown, for work that waits for descriptors, see
    /// [`SyncFence::wait_all`]. It fails when the last clone of the switch is gone, so whoever waits
    /// with it should hold one.
    ///
    /// # Errors
    /// As [`SyncFence::pair`].
    pub fn fence(&self) -> Result<SyncFence> {
        let mut slot = self.lock();
        if let Some(fence) = &*slot {
            return Ok(fence.fence.clone());
        }
        let (signal, fence) = SyncFence::pair()?;
        // Whoever throws the switch after this look finds the signal: that takes the lock too.
        let signal = if self.is_cancelled() {
            signal.signal();
            None
        } else {
            Some(signal)
        };
        *slot = Some(Fence { fence: fence.clone(), signal });
        Ok(fence)
    }

    /// Nothing is left half done under the lock, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, Option<Fence>> {
        self.0.fence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fence::FenceState;
    use std::thread;

    #[test]
    fn conc_5_the_fence_signals_when_the_switch_is_thrown() {
        let switch = Cancellation::new();
        let fence = switch.clone().fence().unwrap();
        assert_eq!(fence.state().unwrap(), FenceState::Unsignalled);
        switch.cancel();
        assert_eq!(fence.state().unwrap(), FenceState::Signalled);
        assert_eq!(switch.fence().unwrap().state().unwrap(), FenceState::Signalled);
        switch.cancel();
        assert!(switch.is_cancelled());
    }

    #[test]
    fn conc_5_a_switch_that_was_thrown_before_has_a_fence_that_has_signalled() {
        let switch = Cancellation::new();
        switch.cancel();
        assert_eq!(switch.fence().unwrap().state().unwrap(), FenceState::Signalled);
    }

    #[test]
    fn conc_5_no_throw_is_missed_however_close_to_the_asking() {
        for _ in 0..500 {
            let switch = Cancellation::new();
            thread::scope(|scope| {
                scope.spawn(|| switch.cancel());
                assert_eq!(switch.fence().unwrap().wait(None).unwrap(), FenceState::Signalled);
            });
        }
    }
}
