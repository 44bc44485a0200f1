//! The devices of this program.

use crate::error::{CliError, Result};
use cpu::{InstructionSet, Settings};
use hal::Device;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// The device that is used unless another is named.
pub const DEFAULT: &str = cpu::DEVICE_NAME;

/// All devices. They use at most `threads` threads for one execution; the reference device always
/// uses one.
pub fn all(threads: usize) -> Vec<Arc<dyn Device>> {
    let threads = NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN);
    vec![cpu::device(Settings::default().with_threads(threads)), reference::device()]
}

/// The fast device as it is set here, and then with each slower way of computing that this processor
/// has too: other instruction sets, and no Winograd. With what is different about it.
pub fn alternatives(threads: usize) -> Vec<(String, Arc<dyn Device>)> {
    let threads = NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN);
    let settings = Settings::default().with_threads(threads);
    let mut all = vec![(settings.instruction_set.to_string(), cpu::device(settings))];
    if settings.winograd {
        let without = Settings { winograd: false, ..settings };
        all.push(("without winograd".to_owned(), cpu::device(without)));
    }
    let others = InstructionSet::available().filter(|set| *set < settings.instruction_set);
    all.extend(others.map(|instruction_set| {
        let other = Settings { instruction_set, ..settings };
        (instruction_set.to_string(), cpu::device(other))
    }));
    all
}

/// The device with this name, see [`all`].
///
/// # Errors
/// There is none; the message lists those there are.
pub fn open(name: &str, threads: usize) -> Result<Arc<dyn Device>> {
    all(threads).into_iter().find(|device| device.name() == name).ok_or_else(|| {
        let names: Vec<String> =
            all(threads).iter().map(|device| device.name().to_owned()).collect();
        CliError::Input(format!("there is no device {name:?}; there are: {}", names.join(", ")))
    })
}
