//! [`SessionArguments`]: where a model runs.

use crate::error::Result;
use nnhal::{Model, Session, SessionOptions};
use std::num::NonZeroUsize;

/// Where a model runs.
#[derive(Debug, clap::Args)]
pub struct SessionArguments {
    /// Where to run
    #[arg(long, default_value = nnhal::devices::DEFAULT, value_name = "NAME")]
    pub device: String,
    #[command(flatten)]
    pub threads: Threads,
}

/// How many threads share the work.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Threads {
    /// Most threads to use [default: NNHAL_THREADS, or as many as this process may use processors;
    /// nnhal-reference always uses one]
    #[arg(long = "threads", value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    wanted: Option<u16>,
}

impl Threads {
    /// The number that was asked for.
    pub fn wanted(self) -> Option<NonZeroUsize> {
        self.wanted.and_then(|threads| NonZeroUsize::new(threads.into()))
    }

    /// The number that is used.
    pub fn used(self) -> Result<NonZeroUsize> {
        Ok(match self.wanted() {
            Some(threads) => threads,
            None => nnhal::devices::default_threads()?,
        })
    }

    /// Options for a session on a device.
    pub fn options(self, device: &str) -> SessionOptions {
        let threads = self.wanted().map_or(0, NonZeroUsize::get);
        SessionOptions::new().device(device).threads(threads)
    }
}

impl SessionArguments {
    /// Prepares a model.
    ///
    /// # Errors
    /// There is no such device, or it refuses the model.
    pub fn open(&self, model: &Model) -> Result<Session> {
        Ok(model.session(self.threads.options(&self.device))?)
    }
}
