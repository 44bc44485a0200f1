//! [`Settings`]

use crate::passes::{NoSuchPass, Passes};
use nnhal_kernels::InstructionSet;
use nnhal_settings::{INSTRUCTION_SET, PASSES_OFF, SettingError, WINOGRAD};
use std::num::NonZeroUsize;

/// What an embedder can choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Threads that share the work of one execution.
    pub threads: NonZeroUsize,
    /// Which kernels are used.
    pub instruction_set: InstructionSet,
    /// Whether convolutions of 3x3 pixels may be computed by Winograd's transforms where those are
    /// faster. Those of floats round more: by some ten times the error of plain sums of products, which
    /// stays below 1e-6 of the greatest sum of magnitudes around. Those of 8-bit numbers are exact.
    pub winograd: bool,
    /// Which rewritings of a model's graph run, before kernels are chosen.
    pub passes: Passes,
    /// Bytes that each model may take, see [`nnhal_driver::Ledger`].
    pub memory_limit: u64,
    /// Outputs of at least this many bytes are computed in the caller's memory, if no one else can access that
    /// ([`nnhal_driver::Bindings::borrow_output`]). Others are copied there.
    pub least_in_place: usize,
}

/// Fewer bytes are copied in less than it takes to find out.
const LEAST_IN_PLACE: usize = 64 << 10;

/// As [`Settings::from_environment`], and where a variable makes no sense as if none were set. Whoever
/// can pass an error on asks for that.
impl Default for Settings {
    fn default() -> Self {
        Self::from_environment().unwrap_or_else(|_| Self {
            threads: nnhal_settings::processors(),
            instruction_set: InstructionSet::best(),
            winograd: true,
            passes: Passes::ALL,
            memory_limit: nnhal_driver::memory::default_model_limit(),
            least_in_place: LEAST_IN_PLACE,
        })
    }
}

impl Settings {
    /// As many threads as the process may use processors, the fastest kernels that this processor
    /// runs, the memory limit of the reference engine; unless environment variables say otherwise:
    /// [`THREADS`](nnhal_settings::THREADS), [`INSTRUCTION_SET`], [`WINOGRAD`] and [`PASSES_OFF`].
    ///
    /// # Errors
    /// A variable makes no sense, or names an instruction set that this processor does not have, or a pass
    /// that there is not.
    pub fn from_environment() -> Result<Self, SettingError> {
        Self::from_environment_with(None)
    }

    /// The same with this many threads, if any number is given.
    ///
    /// # Errors
    /// As [`Self::from_environment`].
    pub fn from_environment_with(threads: Option<NonZeroUsize>) -> Result<Self, SettingError> {
        let instruction_set = INSTRUCTION_SET.parse(|name| {
            let set: InstructionSet = name.parse().map_err(|_| None)?;
            if set.is_available() {
                return Ok(set);
            }
            let all: Vec<_> = InstructionSet::available().map(|it| it.to_string()).collect();
            Err(Some(format!("this processor has {}", all.join(", "))))
        })?;
        let no_such = |unknown: NoSuchPass| Some(unknown.to_string());
        let passes = PASSES_OFF.parse(|names| names.parse().map_err(no_such))?;
        Ok(Self {
            threads: nnhal_settings::threads_unless(threads)?,
            instruction_set: instruction_set.unwrap_or_else(InstructionSet::best),
            winograd: WINOGRAD.is_on()?.unwrap_or(true),
            passes: passes.unwrap_or(Passes::ALL),
            memory_limit: nnhal_driver::memory::default_model_limit(),
            least_in_place: LEAST_IN_PLACE,
        })
    }

    /// The same with this many threads.
    #[must_use]
    pub fn with_threads(self, threads: NonZeroUsize) -> Self {
        Self { threads, ..self }
    }
}
