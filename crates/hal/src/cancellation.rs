//! [`Cancellation`]: a switch that stops work from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A switch that stops work from outside, for instance when the client that wanted it is gone
/// (contract: CONC-5). Clones are the same switch.
#[derive(Debug, Clone, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// A switch that has not been thrown.
    pub fn new() -> Self {
        Self::default()
    }

    /// Throws the switch; the work notices soon, and ends with `GENERAL_FAILURE`.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the switch has been thrown.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
