//! [`Execution`]: a compilation's model run with arguments.

mod arguments;
mod bind;
mod device_step;
mod job;
mod observer;
mod ran;
mod run;
mod start;
mod state;
mod values;

use crate::bytes::{ReadBytes, WriteBytes};
use crate::compilation::Compilation;
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::operand::OperandDescription;
use arguments::Arguments;
use nnhal_hal::time::LOOP_TIMEOUT_MAXIMUM;
pub use observer::{Observer, Start};
use state::{Failure, Outcome, Phase, State};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A duration that an execution is asked for, see [`Execution::duration`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DurationCode {
    /// On the processor itself.
    OnHardware,
    /// In the driver, which includes the time on the processor.
    InDriver,
    /// On the processor itself, from when the last dependency had ended.
    FencedOnHardware,
    /// In the driver, from when the last dependency had ended.
    FencedInDriver,
}

impl DurationCode {
    /// # Errors
    /// `BAD_DATA` for a number that is none of a duration.
    pub fn from_code(code: i32) -> Result<Self> {
        Ok(match code {
            0 => Self::OnHardware,
            1 => Self::InDriver,
            2 => Self::FencedOnHardware,
            3 => Self::FencedInDriver,
            other => return Err(Error::bad_data(format!("{other} is no duration"))),
        })
    }
}

/// One execution, or several after another if it is reusable. Clones are the same execution. All
/// methods may be called from any thread.
///
/// Setting arguments and options is possible until the first start; results can be had once it has
/// ended. While it goes on, and at any other wrong time, methods answer `BAD_STATE`.
#[derive(Clone)]
pub struct Execution(Arc<Inner>);

struct Inner {
    compilation: Compilation,
    observer: Option<Arc<dyn Observer>>,
    state: Mutex<State>,
}

impl Execution {
    /// An execution without arguments.
    pub fn new(compilation: &Compilation) -> Self {
        Self::with(compilation, None)
    }

    /// The same with an observer.
    pub fn observed(compilation: &Compilation, observer: Arc<dyn Observer>) -> Self {
        Self::with(compilation, Some(observer))
    }

    fn with(compilation: &Compilation, observer: Option<Arc<dyn Observer>>) -> Self {
        let model = compilation.model();
        let arguments = Arguments::new(model.inputs().len(), model.outputs().len());
        let state = Mutex::new(State::new(arguments));
        Self(Arc::new(Inner { compilation: compilation.clone(), observer, state }))
    }

    /// The compilation that it runs.
    pub fn compilation(&self) -> &Compilation {
        &self.0.compilation
    }

    /// Gives an input bytes of the caller, read when the execution starts. `None` leaves it out.
    ///
    /// # Errors
    /// `BAD_DATA` if there is no such input, the type does not fit the model, or the number of
    /// bytes not the type; `BAD_STATE` if it was given before, or the execution has started.
    pub fn set_input(
        &self,
        index: u32,
        description: Option<&OperandDescription>,
        bytes: Option<Arc<dyn ReadBytes>>,
    ) -> Result<()> {
        self.prepare(|state, compilation| {
            arguments::set_input(state.arguments_mut(), compilation, index, description, bytes)
        })
    }

    /// Gives an input a part of memory; offset and length 0 stand for the whole of memory from a
    /// description.
    ///
    /// # Errors
    /// As [`Execution::set_input`], and `BAD_DATA` if the range is not within the memory, or the
    /// memory is not made for this use.
    pub fn set_input_from_memory(
        &self,
        index: u32,
        description: Option<&OperandDescription>,
        memory: &Memory,
        offset: usize,
        length: usize,
    ) -> Result<()> {
        self.prepare(|state, compilation| {
            let arguments = state.arguments_mut();
            let part = arguments::Part { memory, offset, length };
            arguments::set_input_from_memory(arguments, compilation, index, description, &part)
        })
    }

    /// Gives an output bytes of the caller, written when the execution ends. `None` leaves it out.
    ///
    /// # Errors
    /// As [`Execution::set_input`].
    pub fn set_output(
        &self,
        index: u32,
        description: Option<&OperandDescription>,
        bytes: Option<Arc<dyn WriteBytes>>,
    ) -> Result<()> {
        self.prepare(|state, compilation| {
            arguments::set_output(state.arguments_mut(), compilation, index, description, bytes)
        })
    }

    /// Gives an output a part of memory; offset and length 0 stand for the whole of memory from a
    /// description.
    ///
    /// # Errors
    /// As [`Execution::set_input_from_memory`].
    pub fn set_output_from_memory(
        &self,
        index: u32,
        description: Option<&OperandDescription>,
        memory: &Memory,
        offset: usize,
        length: usize,
    ) -> Result<()> {
        self.prepare(|state, compilation| {
            let arguments = state.arguments_mut();
            let part = arguments::Part { memory, offset, length };
            arguments::set_output_from_memory(arguments, compilation, index, description, &part)
        })
    }

    /// Whether to measure durations.
    ///
    /// # Errors
    /// `BAD_DATA` unless the compilation is for one chosen device; `BAD_STATE` once started.
    pub fn set_measure_timing(&self, measure: bool) -> Result<()> {
        self.expect_one_device("measuring")?;
        self.prepare(|state, _| {
            state.measure = measure;
            Ok(())
        })
    }

    /// How long an execution may take, in nanoseconds; 0: as long as it takes.
    ///
    /// # Errors
    /// `BAD_DATA` unless the compilation is for one chosen device; `BAD_STATE` once started.
    pub fn set_timeout(&self, nanoseconds: u64) -> Result<()> {
        self.expect_one_device("a timeout")?;
        self.prepare(|state, _| {
            state.timeout = (nanoseconds > 0).then(|| Duration::from_nanos(nanoseconds));
            Ok(())
        })
    }

    /// How long each WHILE may run, in nanoseconds: 15 s at most, 2 s unless said otherwise.
    ///
    /// # Errors
    /// `BAD_STATE` once started.
    pub fn set_loop_timeout(&self, nanoseconds: u64) -> Result<()> {
        self.prepare(|state, _| {
            state.loop_timeout = Some(Duration::from_nanos(nanoseconds).min(LOOP_TIMEOUT_MAXIMUM));
            Ok(())
        })
    }

    /// Whether the bytes of arguments may be more than their values.
    ///
    /// # Errors
    /// `BAD_STATE` once an argument is given, or the execution has started.
    pub fn enable_input_and_output_padding(&self, enable: bool) -> Result<()> {
        self.prepare(|state, _| state.arguments_mut().enable_padding(enable))
    }

    /// Whether it may be started again once it has ended.
    ///
    /// # Errors
    /// `BAD_STATE` once started.
    pub fn set_reusable(&self, reusable: bool) -> Result<()> {
        self.prepare(|state, _| {
            state.reusable = reusable;
            Ok(())
        })
    }

    /// An attribute of an extension, for a compilation for one chosen device, which gets it with the request; behind an interface
    /// older than AIDL version 4 it does not.
    ///
    /// # Errors
    /// `BAD_DATA` if an attribute is given twice, or the compilation is for several devices;
    /// `BAD_STATE` once started.
    pub fn add_extension_attribute(&self, extension: &str, number: u16, data: &[u8]) -> Result<()> {
        self.expect_one_device("an attribute")?;
        self.prepare(|state, compilation| {
            let attributes = Arc::make_mut(&mut state.attributes);
            let extensions = compilation.model().devices().extensions();
            extensions.add_attribute(attributes, extension, number, data)
        })
    }

    /// Whether it goes on at this moment.
    pub fn is_computing(&self) -> bool {
        self.lock().phase == Phase::Computation
    }

    /// How long it took; `None` where the device does not say.
    ///
    /// # Errors
    /// `BAD_STATE` if it was not asked to measure, has not ended, or has failed.
    pub fn duration(&self, code: DurationCode) -> Result<Option<Duration>> {
        self.lock().duration(code)
    }

    /// The dimensions of an output. With an output that was too short for its value these are what
    /// the value has, and [`OutputDimensions::is_sufficient`] says so.
    ///
    /// # Errors
    /// `BAD_STATE` if it has not ended, or failed otherwise than by an output's size; `BAD_DATA` if
    /// there is no such output.
    pub fn output_dimensions(&self, index: u32) -> Result<OutputDimensions> {
        self.lock().output_dimensions(index)
    }

    fn observer(&self) -> Option<&dyn Observer> {
        self.0.observer.as_deref()
    }

    /// Ends an execution, and says so to its observer.
    fn finish(&self, outcome: Result<Outcome, Failure>) -> Result<()> {
        let mut state = self.lock();
        let result = state.finish(outcome);
        let observed = state.observed.take();
        drop(state);
        if let (Some(observer), Some(observed)) = (self.observer(), observed) {
            observed.end(observer, self, &result);
        }
        result
    }

    fn expect_one_device(&self, what: &str) -> Result<()> {
        if self.compilation().is_for_one_device() {
            return Ok(());
        }
        Err(Error::bad_data(format!("{what} is for compilations for one chosen device")))
    }

    /// Changes something that can be changed before the first start.
    fn prepare(&self, change: impl FnOnce(&mut State, &Compilation) -> Result<()>) -> Result<()> {
        let mut state = self.lock();
        match state.phase {
            Phase::Preparation => change(&mut state, &self.0.compilation),
            _ => Err(Error::bad_state("the execution has started")),
        }
    }

    /// Nothing is left half done under the lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What became of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputDimensions {
    /// Empty for a scalar.
    pub dimensions: Vec<u32>,
    /// Whether its buffer was long enough. If not, C answers `OUTPUT_INSUFFICIENT_SIZE`.
    pub is_sufficient: bool,
}

impl fmt::Debug for Execution {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Execution")
            .field("phase", &self.lock().phase)
            .finish_non_exhaustive()
    }
}
