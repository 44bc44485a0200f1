//! [`Settings`]

use kernels::InstructionSet;
use std::num::NonZeroUsize;

/// Overrides the instruction set that [`Settings::default`] chooses, by one of the names of
/// [`InstructionSet`].
const INSTRUCTION_SET_VARIABLE: &str = "NNHAL_INSTRUCTION_SET";

/// `off` forbids what [`Settings::winograd`] allows.
const WINOGRAD_VARIABLE: &str = "NNHAL_WINOGRAD";

/// What an embedder can choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Threads that share the work of one execution.
    pub threads: NonZeroUsize,
    /// Which kernels are used.
    pub instruction_set: InstructionSet,
    /// Whether convolutions of 3x3 pixels may be computed by Winograd's transforms where those are
    /// faster. They round more: by some ten times the error of plain sums of products, which stays
    /// below 1e-6 of the greatest sum of magnitudes around.
    pub winograd: bool,
    /// Bytes that the constants of a model may take, and the values of an execution.
    pub memory_limit: u64,
}

impl Default for Settings {
    /// One thread, the fastest kernels that this processor runs, the memory limit of the reference
    /// engine. The environment variable `NNHAL_INSTRUCTION_SET` names slower kernels to use
    /// instead; a name that is not known, or not available here, is passed over. `NNHAL_WINOGRAD=off`
    /// forbids Winograd's transforms.
    fn default() -> Self {
        let named = std::env::var(INSTRUCTION_SET_VARIABLE)
            .ok()
            .and_then(|name| name.parse::<InstructionSet>().ok())
            .filter(|set| set.is_available());
        Self {
            threads: NonZeroUsize::MIN,
            instruction_set: named.unwrap_or_else(InstructionSet::best),
            winograd: std::env::var(WINOGRAD_VARIABLE).as_deref() != Ok("off"),
            memory_limit: reference::default_memory_limit(),
        }
    }
}

impl Settings {
    /// The same with so many threads.
    #[must_use]
    pub fn with_threads(self, threads: NonZeroUsize) -> Self {
        Self { threads, ..self }
    }
}
