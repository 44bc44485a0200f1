//! [`WhenWanted`]

use crate::error::Result;
use std::sync::{Mutex, OnceLock, PoisonError};

/// A value that is made when it is first wanted. What could not be made is tried again the next time.
#[derive(Debug)]
pub(super) struct WhenWanted<T> {
    made: OnceLock<T>,
    /// Held by the one that makes it.
    making: Mutex<()>,
}

impl<T> Default for WhenWanted<T> {
    fn default() -> Self {
        Self { made: OnceLock::new(), making: Mutex::default() }
    }
}

impl<T> WhenWanted<T> {
    /// The value, made now if there is none yet.
    ///
    /// # Errors
    /// What making it answers.
    pub(super) fn get_or_make(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let _alone = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let made = make()?;
        Ok(self.made.get_or_init(|| made))
    }
}
