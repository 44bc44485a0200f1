//! [`Event`]: something that ends, and can be waited for.

use crate::error::{Error, Result};
use nnhal_hal::{FenceState, SyncFence};
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

/// Stands for an execution that was started, or for something else behind a sync fence. Clones are
/// the same event; any thread may wait.
#[derive(Clone)]
pub struct Event(Kind);

#[derive(Clone)]
enum Kind {
    /// An execution of this process.
    Execution(Arc<Completion>),
    /// A fence, and what is to be done once it has signalled.
    Fence(Arc<Fenced>),
}

/// What came of an execution, once it has ended.
#[derive(Default)]
pub(crate) struct Completion {
    result: Mutex<Option<Result<()>>>,
    changed: Condvar,
}

struct Fenced {
    fence: SyncFence,
    /// Until it is done.
    settle: Mutex<Option<Box<Settle>>>,
    result: OnceLock<Result<()>>,
}

/// Settles what came of a fenced execution, given what its fence says.
pub(crate) type Settle = dyn FnOnce(Result<()>) -> Result<()> + Send;

impl Completion {
    /// Says what came of it, to whoever waits.
    pub(crate) fn complete(&self, result: Result<()>) {
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        self.changed.notify_all();
    }

    pub(crate) fn wait(&self) -> Result<()> {
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(result) = &*result {
                return result.clone();
            }
            result = self.changed.wait(result).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Event {
    /// An event out of a sync fence's descriptor.
    ///
    /// # Errors
    /// `BAD_DATA` if the descriptor cannot be polled.
    pub fn from_sync_fence_fd(fd: OwnedFd) -> Result<Self> {
        Ok(Self::of_fence(SyncFence::from_fd(fd)?, None))
    }

    pub(crate) fn of_fence(fence: SyncFence, settle: Option<Box<Settle>>) -> Self {
        let settle = Mutex::new(settle);
        Self(Kind::Fence(Arc::new(Fenced { fence, settle, result: OnceLock::new() })))
    }

    pub(crate) fn of_execution(completion: Arc<Completion>) -> Self {
        Self(Kind::Execution(completion))
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// The execution's own error; `OP_FAILED` for a fence that failed.
    pub fn wait(&self) -> Result<()> {
        match &self.0 {
            Kind::Execution(completion) => completion.wait(),
            Kind::Fence(fenced) => fenced.wait(),
        }
    }

    /// A descriptor that polls as the event goes; it is the caller's.
    ///
    /// # Errors
    /// `BAD_DATA` for an execution that was started without dependencies: it has no fence.
    /// `RESOURCE_EXHAUSTED_TRANSIENT` if there are no descriptors left.
    pub fn sync_fence_fd(&self) -> Result<OwnedFd> {
        let Some(fence) = self.sync_fence() else {
            return Err(Error::bad_data("the execution has no sync fence"));
        };
        fence.as_fd().try_clone_to_owned().map_err(|error| {
            Error::new(crate::ResultCode::ResourceExhaustedTransient, error.to_string())
        })
    }

    /// Its fence, unless it is an execution without.
    pub(crate) fn sync_fence(&self) -> Option<&SyncFence> {
        match &self.0 {
            Kind::Execution(_) => None,
            Kind::Fence(fenced) => Some(&fenced.fence),
        }
    }
}

impl Fenced {
    fn wait(&self) -> Result<()> {
        if let Some(result) = self.result.get() {
            return result.clone();
        }
        let signalled = match self.fence.wait(None) {
            Ok(FenceState::Signalled) => Ok(()),
            Ok(_) => Err(match self.fence.error() {
                Some(error) => error.into(),
                None => Error::failed("the fence failed"),
            }),
            Err(error) => Err(error.into()),
        };
        // Settled once, however many wait.
        self.result
            .get_or_init(|| {
                let settle = self.settle.lock().unwrap_or_else(PoisonError::into_inner).take();
                match settle {
                    Some(settle) => settle(signalled),
                    None => signalled,
                }
            })
            .clone()
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match &self.0 {
            Kind::Execution(_) => "Event(execution)",
            Kind::Fence(_) => "Event(fence)",
        })
    }
}
