//! The devices that are compared.

use cpu::Settings;
use hal::Device;
use kernels::InstructionSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock};

/// The fast engine with certain settings.
pub struct Candidate {
    /// Its settings, for people.
    pub name: String,
    /// It.
    pub device: Arc<dyn Device>,
}

/// The fast engine with every instruction set that there is here, on one thread and on two.
pub fn candidates() -> &'static [Candidate] {
    static CANDIDATES: LazyLock<Vec<Candidate>> = LazyLock::new(|| {
        let sets = InstructionSet::available();
        sets.flat_map(|instruction_set| {
            [1, 2].map(|threads| {
                let threads = NonZeroUsize::new(threads).expect("a number above 0");
                let settings =
                    Settings { instruction_set, ..Settings::default() }.with_threads(threads);
                let name = format!("{instruction_set}, {threads} threads");
                Candidate { name, device: cpu::device(settings) }
            })
        })
        .collect()
    });
    &CANDIDATES
}

/// What they are compared with.
pub fn reference() -> &'static dyn Device {
    static REFERENCE: LazyLock<Arc<dyn Device>> = LazyLock::new(reference::device);
    &**REFERENCE
}
