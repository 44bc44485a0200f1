//! [`Process`]: this process as a binder device sees it.

use super::locals::Locals;
use super::notices::Notices;
use super::protocol::{Transaction, command};
use super::system::Device;
use crate::error::Error;
use crate::object::{Binder, Incoming, Object, Remote};
use crate::parcel::{Memory, Parcel, Resolve};
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// This process as a binder device sees it: what it offers, what it uses, the threads that are called.
///
/// It exists as long as the process: its threads wait in the kernel, which nothing but the end wakes. `open` starts the first of
/// them, `thread` has what they do, calls among it.
pub struct Process {
    pub(super) device: Device,
    pub(super) locals: Locals,
    remotes: Mutex<HashMap<u32, Weak<Remote>>>,
    notices: Mutex<Notices<Remote>>,
    pub(super) threads: AtomicUsize,
    pub(super) most_threads: usize,
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Process {
    /// With its device opened, and no threads yet.
    pub(super) fn new(device: Device, most_threads: usize) -> Self {
        Self {
            device,
            locals: Locals::default(),
            remotes: Mutex::default(),
            notices: Mutex::default(),
            threads: AtomicUsize::new(0),
            most_threads,
        }
    }

    /// Becomes the context manager of the device: the object that every process can call as number 0.
    ///
    /// # Errors
    /// If there is one, or this process may not.
    pub fn become_context_manager(&self, object: Arc<dyn Object>) -> Result<(), Error> {
        self.locals.set_context_manager(object);
        self.device.become_context_manager()
    }

    /// The context manager. It need not be there: whoever wants to know pings it.
    pub fn context_manager(self: &Arc<Self>) -> Arc<Remote> {
        self.remote_of(0)
    }

    /// Objects of this process that others refer to.
    pub fn offered(&self) -> usize {
        self.locals.len()
    }

    /// Objects of other processes that this one refers to.
    pub fn used(&self) -> usize {
        locked(&self.remotes).values().filter(|remote| remote.strong_count() > 0).count()
    }

    /// Does something that the kernel answers nothing to.
    pub(super) fn command(&self, code: u32, content: &[u8]) {
        let mut command = code.to_le_bytes().to_vec();
        command.extend(content);
        if let Err(error) = self.device.exchange(&command, &mut []) {
            tracing::warn!(%error, code, "a command to binder has failed");
        }
    }

    fn remote_of(self: &Arc<Self>, handle: u32) -> Arc<Remote> {
        let mut remotes = locked(&self.remotes);
        if let Some(remote) = remotes.get(&handle).and_then(Weak::upgrade) {
            return remote;
        }
        self.command(command::ACQUIRE, &handle.to_le_bytes());
        let remote = Arc::new(Remote::new(self.clone(), handle));
        remotes.insert(handle, Arc::downgrade(&remote));
        remote
    }

    /// Lets go of an object of another process: of one `Remote`, each of which has acquired it once.
    pub(super) fn release(&self, remote: &Remote) {
        if let Some(cookie) = remote.cookie() {
            let mut notices = locked(&self.notices);
            notices.clear(remote.handle(), cookie, |code, content| self.command(code, content));
        }
        let mut remotes = locked(&self.remotes);
        // There may be another `Remote` of that number by now.
        if remotes.get(&remote.handle()).is_some_and(|known| known.strong_count() == 0) {
            remotes.remove(&remote.handle());
        }
        drop(remotes);
        self.command(command::RELEASE, &remote.handle().to_le_bytes());
    }

    /// Asks to be notified when an object's process ends. Returns what the notice will name.
    pub(super) fn request_death_notice(&self, remote: &Arc<Remote>) -> u64 {
        let mut notices = locked(&self.notices);
        notices.request(remote.handle(), remote, |code, content| self.command(code, content))
    }

    /// An object's process has ended.
    pub(super) fn died(&self, cookie: u64) {
        let remote = locked(&self.notices).find(cookie);
        if let Some(remote) = remote {
            remote.died();
        }
        self.command(command::DEAD_BINDER_DONE, &cookie.to_le_bytes());
    }
}

/// A buffer that the kernel has returned and that is given back when this is dropped.
pub(super) struct Received {
    process: Arc<Process>,
    pub(super) transaction: Transaction,
}

impl Received {
    pub(super) fn new(process: &Arc<Process>, transaction: Transaction) -> Self {
        Self { process: Arc::clone(process), transaction }
    }
}

impl Incoming for Received {
    fn parcel(&self) -> Result<Parcel<'_, Binder>, Error> {
        let Transaction { data, data_size, offsets, offsets_size, flags, .. } = self.transaction;
        let missing = || Error::system("binder", "a buffer that is not in the mapping");
        let data = self.bytes(data, data_size).ok_or_else(missing)?;
        if flags & super::protocol::STATUS_CODE != 0 {
            let code = data.first_chunk().map_or(0, |code| i32::from_le_bytes(*code));
            return Err(Error::Status(code));
        }
        let offsets = self.bytes(offsets, offsets_size).ok_or_else(missing)?;
        Ok(Parcel::check(data, offsets, &self, self)?)
    }
}

impl<'a> Received {
    #[allow(unsafe_code)]
    fn slice(&'a self, address: u64, length: u64) -> Option<&'a [u8]> {
        // SAFETY: data, offsets and the buffers that objects name belong to a buffer that is given back when `self` is
        // dropped, which outlives the slice.
        unsafe { self.process.device.slice(address, length) }
    }

    fn bytes(&'a self, address: u64, length: u64) -> Option<&'a [u8]> {
        // Of nothing there need not be an address.
        if length == 0 { Some(&[]) } else { self.slice(address, length) }
    }
}

impl<'a> Memory<'a> for &'a Received {
    fn bytes(&self, address: u64, length: u64) -> Option<&'a [u8]> {
        (*self).slice(address, length)
    }
}

impl Resolve<Binder> for Received {
    #[allow(unsafe_code)]
    fn descriptor(&self, number: i32) -> io::Result<OwnedFd> {
        // SAFETY: `Reader` asks for numbers in arrays of descriptors of this buffer, which the kernel has opened for it
        // and closes when it is given back.
        unsafe { Device::duplicate(number) }
    }

    fn local(&self, id: u64) -> Option<Binder> {
        self.process.locals.get(id).map(Binder::Local)
    }

    fn remote(&self, handle: u32) -> Option<Binder> {
        Some(Binder::Remote(self.process.remote_of(handle)))
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        self.process.command(command::FREE_BUFFER, &self.transaction.data.to_le_bytes());
    }
}
