//! [`Process::open`]: the device is opened and its first thread is started.

use super::process::{Process, locked};
use super::protocol::command;
use super::system::Device;
use super::thread;
use crate::error::Error;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

/// How a device is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Bytes for what arrives and has not been dealt with; the kernel gives 4 MiB at most.
    pub mapping: usize,
    /// Threads that are called, 1 at least. There are fewer until they are needed.
    pub threads: usize,
}

impl Default for Options {
    /// 1 MiB less two pages, as Android's, and 16 threads.
    fn default() -> Self {
        Self { mapping: (1 << 20) - 8192, threads: 16 }
    }
}

impl Process {
    /// Opens a binder device, the first time; later this is the same as before, with the options it had.
    ///
    /// # Errors
    /// If there is no such device, or it speaks another protocol.
    pub fn open(path: &Path, options: Options) -> Result<Arc<Self>, Error> {
        static OPEN: OnceLock<Mutex<HashMap<PathBuf, Arc<Process>>>> = OnceLock::new();
        let mut open = locked(OPEN.get_or_init(Mutex::default));
        if let Some(process) = open.get(path) {
            return Ok(Arc::clone(process));
        }
        let most_threads = options.threads.max(1);
        let device = Device::open(path, options.mapping)?;
        // Besides the first, which was not asked for.
        device.set_max_threads(u32::try_from(most_threads - 1).unwrap_or(u32::MAX))?;
        let process = Arc::new(Self::new(device, most_threads));
        thread::start(&process, command::ENTER_LOOPER)?;
        open.insert(path.to_owned(), Arc::clone(&process));
        Ok(process)
    }
}
