//! [`SessionOptions`]: where and how a model runs. [`RunOptions`]: how one run does.

use nnhal_hal::memory::WeightPool;
use nnhal_hal::time::LOOP_TIMEOUT_MAXIMUM;
use nnhal_hal::{Cancellation, Deadline, Device, ExecutionOptions, ExecutionPreference, Priority};
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Where and how a model runs. Whatever is not said is chosen: the device `nnhal-cpu`, as many threads
/// as the process may use processors.
///
/// ```
/// use nnhal::SessionOptions;
/// use std::time::Duration;
///
/// let options = SessionOptions::new().threads(2).run_timeout(Duration::from_millis(50));
/// ```
#[derive(Clone)]
pub struct SessionOptions {
    pub(crate) device: DeviceChoice,
    pub(crate) threads: Option<NonZeroUsize>,
    pub(crate) priority: Priority,
    pub(crate) preference: ExecutionPreference,
    pub(crate) prepare_timeout: Option<Duration>,
    pub(crate) run_timeout: Option<Duration>,
    pub(crate) loop_timeout: Option<Duration>,
    pub(crate) cache: Option<PathBuf>,
    pub(crate) shares_weights: bool,
    pub(crate) weights: Option<WeightPool>,
}

/// A device, or the name of one of [`devices`](crate::devices).
#[derive(Clone)]
pub(crate) enum DeviceChoice {
    Name(String),
    Own(Arc<dyn Device>),
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            device: DeviceChoice::Name(crate::devices::DEFAULT.to_owned()),
            threads: None,
            priority: Priority::Medium,
            preference: ExecutionPreference::FastSingleAnswer,
            prepare_timeout: None,
            run_timeout: None,
            loop_timeout: None,
            cache: None,
            shares_weights: false,
            weights: None,
        }
    }
}

impl SessionOptions {
    /// Nothing is said.
    pub fn new() -> Self {
        Self::default()
    }

    /// The device of this name, see [`devices::names`](crate::devices::names).
    #[must_use]
    pub fn device(self, name: impl Into<String>) -> Self {
        Self { device: DeviceChoice::Name(name.into()), ..self }
    }

    /// This device, whoever made it. How many threads it uses was settled then.
    #[must_use]
    pub fn on(self, device: Arc<dyn Device>) -> Self {
        Self { device: DeviceChoice::Own(device), ..self }
    }

    /// The most threads that share the work of a run; 0: see
    /// [`devices::default_threads`](crate::devices::default_threads).
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Self { threads: NonZeroUsize::new(threads), ..self }
    }

    /// Rank of the session's runs among all that wait for a device.
    #[must_use]
    pub fn priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }

    /// What is wanted most of a device: speed of one run, of many, or little power.
    #[must_use]
    pub fn preference(self, preference: ExecutionPreference) -> Self {
        Self { preference, ..self }
    }

    /// Preparing is given up after so long, with status `MISSED_DEADLINE_TRANSIENT` or `_PERSISTENT`.
    #[must_use]
    pub fn prepare_timeout(self, timeout: Duration) -> Self {
        Self { prepare_timeout: Some(timeout), ..self }
    }

    /// A run is given up after so long, waiting for its turn included, unless its own
    /// [`RunOptions`] say otherwise.
    #[must_use]
    pub fn run_timeout(self, timeout: Duration) -> Self {
        Self { run_timeout: Some(timeout), ..self }
    }

    /// For how long each WHILE of the model may run: 15 s, the most that devices allow, unless less is said.
    #[must_use]
    pub fn loop_timeout(self, timeout: Duration) -> Self {
        Self { loop_timeout: Some(timeout), ..self }
    }

    /// A folder where prepared models are kept, so that the next session of the same file begins
    /// sooner, in this process or another. It is made if it is not there. A file in it that does not
    /// fit, or was changed, is passed over and written anew. Whether files were changed is seen from their times of change, which no
    /// program can set, where the file system is one of this machine's; otherwise they are read.
    #[must_use]
    pub fn cache_dir(self, folder: impl Into<PathBuf>) -> Self {
        Self { cache: Some(folder.into()), ..self }
    }

    /// Where the session's packed weights are: sessions of this process with the same pool, such as those of one
    /// file for different shapes of its inputs, have equal ones only once, if the device is one of this library.
    /// Preparing takes about half as long again. The weights are then not shared with other processes, whatever
    /// [`Self::share_weights`] says.
    #[must_use]
    pub fn weights_in(self, pool: &WeightPool) -> Self {
        Self { weights: Some(pool.clone()), ..self }
    }

    /// Whether the session uses packed weights where they are in the folder of prepared models, so that it begins at once, and all
    /// sessions and processes of this user with the same file and options have them in memory once. It takes a
    /// [`Self::cache_dir`] and a device of this process that keeps prepared models there; otherwise it says nothing. Where no prepared model is there yet, one
    /// of those that begin at the same time makes it, and the others wait, up to a minute.
    ///
    /// Sessions replace these files, and never write one again. **If another program of this user does** while a session uses
    /// it, the session computes something else, and if it is cut short, the process ends with `SIGBUS`. A file that others may write, or
    /// that was changed before, is never used in this way: it is copied, and authenticated, as without this option.
    ///
    /// Where the system keeps files in small pages, a run may take some percent longer.
    #[must_use]
    pub fn share_weights(self, shares: bool) -> Self {
        Self { shares_weights: shares, ..self }
    }
}

impl fmt::Debug for SessionOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = match &self.device {
            DeviceChoice::Name(name) => name,
            DeviceChoice::Own(device) => device.name(),
        };
        formatter
            .debug_struct("SessionOptions")
            .field("device", &device)
            .field("threads", &self.threads)
            .field("priority", &self.priority)
            .field("preference", &self.preference)
            .field("prepare_timeout", &self.prepare_timeout)
            .field("run_timeout", &self.run_timeout)
            .field("loop_timeout", &self.loop_timeout)
            .field("cache", &self.cache)
            .field("shares_weights", &self.shares_weights)
            .field("weights", &self.weights)
            .finish()
    }
}

/// How one run is made.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Whether the device measures how long it takes ([`nnhal_hal::Timing`]).
    pub measure: bool,
    /// The run is given up after so long; `None`: as [`SessionOptions::run_timeout`] says.
    pub timeout: Option<Duration>,
    /// Gives the run up when it is thrown.
    pub cancellation: Option<Cancellation>,
    /// Rank of this run among all that wait for a device of this library; `None`, and on other devices: the
    /// session's.
    pub priority: Option<Priority>,
}

impl RunOptions {
    pub(crate) fn for_device(&self, session: &SessionOptions) -> ExecutionOptions {
        ExecutionOptions {
            measure: self.measure,
            deadline: self.timeout.or(session.run_timeout).map(Deadline::after),
            loop_timeout: session.loop_timeout.or(Some(LOOP_TIMEOUT_MAXIMUM)),
            cancellation: self.cancellation.clone(),
            ..ExecutionOptions::default()
        }
    }
}
