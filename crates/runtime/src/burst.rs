//! [`Burst`]: executions of one compilation in close succession.

use crate::compilation::Compilation;
use crate::error::{Error, Result};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// Channels to the devices of a compilation, for executions in close succession, one at a time.
pub struct Burst {
    compilation: Compilation,
    /// One for each step; none where the device has no bursts, or the runtime runs the step.
    channels: Vec<Option<Box<dyn nnhal_hal::Burst>>>,
    is_used: AtomicBool,
}

/// A burst while an execution uses it; free again when dropped.
pub(crate) struct HeldBurst<'a>(&'a Burst);

impl Burst {
    /// Opens the channels. Where a device has none, executions go without.
    pub fn new(compilation: &Compilation) -> Self {
        Self {
            compilation: compilation.clone(),
            channels: compilation.plan().open_bursts(),
            is_used: AtomicBool::new(false),
        }
    }

    /// The compilation that it is for.
    pub fn compilation(&self) -> &Compilation {
        &self.compilation
    }

    /// Takes the burst for one execution.
    pub(crate) fn take(&self) -> Result<HeldBurst<'_>> {
        if self.is_used.swap(true, Ordering::Acquire) {
            return Err(Error::bad_state("another execution uses the burst"));
        }
        Ok(HeldBurst(self))
    }
}

impl HeldBurst<'_> {
    /// The channels, by step.
    pub(crate) fn channels(&self) -> &[Option<Box<dyn nnhal_hal::Burst>>] {
        &self.0.channels
    }
}

impl Drop for HeldBurst<'_> {
    fn drop(&mut self) {
        self.0.is_used.store(false, Ordering::Release);
    }
}

impl fmt::Debug for Burst {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self.channels.iter().filter(|channel| channel.is_some()).count();
        write!(formatter, "Burst({open} channels)")
    }
}
