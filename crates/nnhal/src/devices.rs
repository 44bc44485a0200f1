//! The devices that this library brings: `nnhal-cpu`, which is fast, and `nnhal-reference`, which
//! judges. With the feature `remote` also those of other processes, as `unix:/run/nnhal/nnhal.sock`.

use crate::error::{Error, Result};
pub use nnhal_cpu::GraphDump;
use nnhal_cpu::{InstructionSet, Settings};
use nnhal_hal::{Device, HalVersion};
use nnhal_settings::MOST_THREADS;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The device that is used unless another is named.
pub const DEFAULT: &str = nnhal_cpu::DEVICE_NAME;

/// Names of all devices, the default one first.
pub fn names() -> [&'static str; 2] {
    [nnhal_cpu::DEVICE_NAME, nnhal_reference::DEVICE_NAME]
}

/// All devices. They use at most `threads` threads for a run; the reference device always uses one.
///
/// # Errors
/// As [`open`].
pub fn all(threads: Option<NonZeroUsize>) -> Result<Vec<Arc<dyn Device>>> {
    names().into_iter().map(|name| open(name, threads)).collect()
}

/// The device with this name, which uses at most `threads` threads for a run; `None`: see
/// [`default_threads`]. Sessions with the same number of threads share one device, and with it
/// threads and turns by priority.
///
/// # Errors
/// [`Error::NotFound`]: there is none of that name. `Error::Remote`: one of another process cannot be
/// reached; how many threads it uses is its own to decide. [`Error::Threads`]: those are too many.
/// [`Error::Setting`]: an environment variable makes no sense.
pub fn open(name: &str, threads: Option<NonZeroUsize>) -> Result<Arc<dyn Device>> {
    match name {
        nnhal_cpu::DEVICE_NAME => Ok(shared(settings(threads)?)),
        nnhal_reference::DEVICE_NAME => Ok(nnhal_reference::device()),
        #[cfg(feature = "remote")]
        name if nnhal_remote::is_remote(name) => Ok(nnhal_remote::open(name)?),
        _ => Err(Error::NotFound {
            what: "device",
            name: name.to_owned(),
            available: names().map(str::to_owned).to_vec(),
        }),
    }
}

/// The devices of names that are separated by commas, as in `NNHAL_DEVICES`. `aidl:*` and its like stand for
/// all devices of their kind, which may be none.
///
/// # Errors
/// As [`open`].
pub fn open_list(names: &str, threads: Option<NonZeroUsize>) -> Result<Vec<Arc<dyn Device>>> {
    let mut devices = Vec::new();
    for name in names.split(',').map(str::trim) {
        #[cfg(feature = "remote")]
        if nnhal_remote::is_remote(name) {
            for found in nnhal_remote::find(name)? {
                devices.push(nnhal_remote::open(&found)?);
            }
            continue;
        }
        devices.push(open(name, threads)?);
    }
    Ok(devices)
}

/// Whether a name is of the form of those of other processes' devices; never without the feature `remote`.
pub fn is_remote(name: &str) -> bool {
    #[cfg(feature = "remote")]
    let remote = nnhal_remote::is_remote(name);
    #[cfg(not(feature = "remote"))]
    let (remote, _) = (false, name);
    remote
}

/// How many threads share the work of a run unless another number is asked for: `NNHAL_THREADS`, or as
/// many as the process may use processors.
///
/// # Errors
/// [`Error::Setting`]: the variable makes no sense.
pub fn default_threads() -> Result<NonZeroUsize> {
    Ok(nnhal_settings::threads()?)
}

/// What the environment says of the fast device, with this number of threads.
fn settings(threads: Option<NonZeroUsize>) -> Result<Settings> {
    let settings = Settings::from_environment_with(threads)?;
    match threads {
        Some(found) if found.get() > MOST_THREADS => Err(Error::Threads { found: found.get() }),
        _ => Ok(settings),
    }
}

/// The fast device with these settings, as long as anybody uses it.
fn shared(settings: Settings) -> Arc<dyn Device> {
    static DEVICES: Mutex<Option<HashMap<String, Weak<dyn Device>>>> = Mutex::new(None);
    let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    let devices = devices.get_or_insert_default();
    devices.retain(|_, device| device.strong_count() > 0);
    // Threads of a process do not exist in one that was forked from it.
    let key = format!("{} {settings:?}", std::process::id());
    if let Some(device) = devices.get(&key).and_then(Weak::upgrade) {
        return device;
    }
    let device = nnhal_cpu::device(settings);
    devices.insert(key, Arc::downgrade(&device));
    device
}

/// The fast device as it is set here, but without Winograd's transforms; `None` if it does not use them
/// as it is.
///
/// # Errors
/// As [`open`].
pub fn without_winograd(threads: Option<NonZeroUsize>) -> Result<Option<Arc<dyn Device>>> {
    let settings = settings(threads)?;
    Ok(settings.winograd.then(|| shared(Settings { winograd: false, ..settings })))
}

/// The fast device as it is set here, and then with each slower choice of kernels that this processor
/// has too: other instruction sets, and no Winograd. With what is different about it.
///
/// # Errors
/// As [`open`].
pub fn alternatives(threads: Option<NonZeroUsize>) -> Result<Vec<(String, Arc<dyn Device>)>> {
    let settings = settings(threads)?;
    let mut all = vec![(settings.instruction_set.to_string(), shared(settings))];
    all.extend(without_winograd(threads)?.map(|it| ("without winograd".to_owned(), it)));
    let others = InstructionSet::available().filter(|set| *set < settings.instruction_set);
    all.extend(others.map(|instruction_set| {
        let other = Settings { instruction_set, ..settings };
        (instruction_set.to_string(), shared(other))
    }));
    Ok(all)
}

/// The graph of a model ([`Model::hal`](crate::Model::hal)) as the fast device has it, and what each of its
/// passes makes of it, as text and for Graphviz.
///
/// # Errors
/// As [`open`]; [`Error::Device`]: lengths are open, or depend on values, so that there is no graph of the
/// whole model.
pub fn dump_passes(
    model: &nnhal_hal::Model,
    threads: Option<NonZeroUsize>,
) -> Result<Vec<GraphDump>> {
    let settings = settings(threads)?;
    let refused = |source| Error::Device { device: DEFAULT.to_owned(), operation: None, source };
    let model =
        nnhal_ops::validate(model, HalVersion::LATEST).map_err(|error| refused(error.into()))?;
    nnhal_cpu::dump_passes(&model, &settings).map_err(|error| refused(error.into()))
}
