//! [`Shared`]: what a delegate and its kernels have in common, or a compiled model and its partitions.

use crate::error::{Error, Result};
use crate::options::Options;
use nnhal::hal::{Device, Memory};
use nnhal::trace::{TASK_SPANS, Trace};
use nnhal::{Observer, RunOptions, Runner, SessionOptions};
use std::num::NonZeroUsize;
use std::sync::Arc;
use tracing::Dispatch;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::SubscriberExt;

/// What a delegate and its kernels have in common, or a compiled model and its partitions.
pub struct Shared {
    /// What the program has asked for.
    pub options: Options,
    /// What the program calls the thing that has these options.
    what: &'static str,
    made_in: u32,
    trace: Option<Trace>,
    dispatch: Option<Dispatch>,
}

impl Shared {
    /// For a delegate with these options.
    pub fn new(options: Options) -> Self {
        Self::of("delegate", options)
    }

    /// For something else, by the name that is in its errors.
    pub fn of(what: &'static str, options: Options) -> Self {
        let trace = options.profile.is_some().then(Trace::new);
        let dispatch = (trace.is_some() || options.log.is_some()).then(|| {
            // Its complaints would panic where standard error is full or closed.
            let lines = options.log.clone().map(|wanted| {
                tracing_subscriber::fmt::layer()
                    .with_writer(std::io::stderr)
                    .log_internal_errors(false)
                    .with_filter(wanted.with_target(TASK_SPANS, LevelFilter::OFF))
            });
            let layers = tracing_subscriber::registry().with(lines);
            Dispatch::new(layers.with(trace.as_ref().map(Trace::layer)))
        });
        Self { options, what, made_in: std::process::id(), trace, dispatch }
    }

    /// Calls with its log and trace.
    pub fn observed<T>(&self, call: impl FnOnce() -> T) -> T {
        match &self.dispatch {
            Some(dispatch) => tracing::dispatcher::with_default(dispatch, call),
            None => call(),
        }
    }

    /// Writes the trace so far; whoever reads it later finds all kernels that have gone by then.
    pub fn save_trace(&self) {
        if let (Some(trace), Some(path)) = (&self.trace, &self.options.profile)
            && let Err(error) = trace.save(path)
        {
            self.observed(|| tracing::error!("{error}"));
        }
    }

    /// Whether this is the process that it was made in.
    ///
    /// # Errors
    /// [`Error::Forked`]: it is another.
    pub fn check_process(&self) -> Result<()> {
        let (made_in, found) = (self.made_in, std::process::id());
        if made_in == found {
            Ok(())
        } else {
            Err(Error::Forked { what: self.what, made_in, found })
        }
    }

    /// The threads that were asked for: by an option, else by the interpreter.
    pub fn threads(&self, recommended: Option<usize>) -> usize {
        self.options.threads.or(recommended).unwrap_or(0)
    }

    /// How a partition is prepared.
    pub fn session_options(&self, threads: usize) -> SessionOptions {
        let mut options = SessionOptions::new().threads(threads).priority(self.options.priority);
        if let Some(device) = &self.options.device {
            options = options.device(device.as_str());
        }
        if let Some(folder) = &self.options.cache_dir {
            options = options.cache_dir(folder).share_weights(self.options.share_weights);
        }
        options
    }

    /// Whether the device is in another process, which reaches no memory that a program has lent to this one.
    pub fn is_elsewhere(&self) -> bool {
        self.options.device.as_deref().is_some_and(nnhal::devices::is_remote)
    }

    /// Runs with inputs and outputs in the program's memory; for a device in another process in copies of it.
    ///
    /// # Errors
    /// [`Error::Library`]
    pub fn run_in(
        &self,
        runner: &mut Runner,
        inputs: &[Option<Memory>],
        outputs: &[Option<Memory>],
        observer: Option<&dyn Observer>,
    ) -> Result<()> {
        let options = RunOptions::default();
        if !self.is_elsewhere() {
            return Ok(runner.run_in(&options, inputs, outputs, observer)?);
        }
        let given = inputs.iter().map(|it| it.as_ref().map(copy_of).transpose());
        let given = given.collect::<Result<Vec<_>>>()?;
        let taken = outputs.iter().map(|it| {
            let memory = it.as_ref().map(|memory| Memory::allocate(memory.size()));
            memory.transpose().map_err(Error::from)
        });
        let taken = taken.collect::<Result<Vec<_>>>()?;
        runner.run_in(&options, &given, &taken, observer)?;
        for (from, to) in taken.iter().zip(outputs) {
            if let (Some(from), Some(to)) = (from, to) {
                to.view()?.write(0, &from.view()?.read_to_vec(0, from.size())?)?;
            }
        }
        Ok(())
    }

    /// The device that was asked for, with this number of threads.
    ///
    /// # Errors
    /// [`Error::Library`]
    pub fn device(&self, threads: usize) -> Result<Arc<dyn Device>> {
        let name = self.options.device.as_deref().unwrap_or(nnhal::devices::DEFAULT);
        Ok(nnhal::devices::open(name, NonZeroUsize::new(threads))?)
    }
}

/// Memory that another process can be given, with the same bytes.
///
/// # Errors
/// [`Error::Memory`]: what was lent was taken back, or there is no memory.
pub fn copy_of(memory: &Memory) -> Result<Memory> {
    let bytes = memory.view()?.read_to_vec(0, memory.size())?;
    Ok(Memory::from_bytes(&bytes)?)
}
