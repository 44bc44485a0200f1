//! Notices when another process has ended, or the other end of a connection has been closed, while the threads that work
//! for it are busy: a thread that executes reads nothing, and would learn of it only after the execution.
//!
//! One thread of the process waits for all of them. It starts with the first [`Watch`], and stays.
//!
//! ```
//! use nnhal_hal::departure::Watch;
//! use std::os::unix::net::UnixStream;
//! use std::sync::mpsc::channel;
//!
//! let (service, client) = UnixStream::pair()?;
//! let (sender, receiver) = channel();
//! let _watch = Watch::connection(&service, move || sender.send("gone").unwrap())?;
//! drop(client);
//! assert_eq!(receiver.recv()?, "gone");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

/// Events that are taken from the kernel at a time.
const EVENTS: usize = 64;

type Hook = Box<dyn FnOnce() + Send>;

/// Something that is done when a process has ended or a connection was closed, unless this is dropped before.
#[must_use = "what is dropped is not done"]
pub struct Watch {
    watched: OwnedFd,
    name: u64,
    watcher: Arc<Watcher>,
}

/// What the thread waits with.
struct Watcher {
    epoll: OwnedFd,
    hooks: Mutex<Hooks>,
}

#[derive(Default)]
struct Hooks {
    next: u64,
    hooks: HashMap<u64, Hook>,
}

impl Watch {
    /// Does something when a process has ended, on another thread; it must not wait. The number has to be that of a
    /// process that exists, as the kernel says it of a caller that waits for an answer.
    ///
    /// # Errors
    /// There is no such process here, or it is of another namespace; the kernel has no descriptors of processes (before
    /// Linux 5.3); the system gives no more descriptors.
    pub fn process(number: i32, hook: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let process = Pid::from_raw(number).filter(|_| number > 0);
        let process = process.ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("{number} is no process"))
        })?;
        Self::new(pidfd_open(process, PidfdFlags::empty())?, EventFlags::IN, hook)
    }

    /// Does something when the other end of a connected socket was closed, on another thread; it must not wait. An end
    /// that only writes no more is not closed.
    ///
    /// # Errors
    /// The system gives no more descriptors.
    pub fn connection(
        socket: &impl AsFd,
        hook: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        // That it was closed is always reported.
        Self::new(socket.as_fd().try_clone_to_owned()?, EventFlags::empty(), hook)
    }

    fn new(
        watched: OwnedFd,
        ready: EventFlags,
        hook: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let watcher = watcher()?;
        let mut hooks = watcher.lock();
        let name = hooks.next;
        hooks.next += 1;
        // Once is enough: what has gone stays so.
        let events = ready | EventFlags::ONESHOT;
        epoll::add(&watcher.epoll, &watched, EventData::new_u64(name), events)?;
        hooks.hooks.insert(name, Box::new(hook));
        drop(hooks);
        Ok(Self { watched, name, watcher })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Before the descriptor is closed: epoll would keep what others have duplicates of.
        let _ = epoll::delete(&self.watcher.epoll, &self.watched);
        let hook = self.watcher.lock().hooks.remove(&self.name);
        // What it holds may do anything when it is dropped, so not under the lock.
        drop(hook);
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Watch").field("watched", &self.watched).finish_non_exhaustive()
    }
}

/// The process's watcher, whose thread is started when it is first asked for.
fn watcher() -> io::Result<Arc<Watcher>> {
    static WATCHER: OnceLock<Arc<Watcher>> = OnceLock::new();
    static STARTING: Mutex<()> = Mutex::new(());
    if let Some(watcher) = WATCHER.get() {
        return Ok(Arc::clone(watcher));
    }
    let _alone = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(watcher) = WATCHER.get() {
        return Ok(Arc::clone(watcher));
    }
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let watcher = Arc::new(Watcher { epoll, hooks: Mutex::default() });
    let waiting = Arc::clone(&watcher);
    thread::Builder::new().name("nnhal-departure".to_owned()).spawn(move || waiting.wait())?;
    Ok(Arc::clone(WATCHER.get_or_init(|| watcher)))
}

impl Watcher {
    /// Nothing is left half done under the lock.
    fn lock(&self) -> MutexGuard<'_, Hooks> {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self) {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            events.clear();
            let buffer = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, buffer, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                // It is a descriptor of ours that no one closes.
                Err(_) => return,
            }
            for event in &events {
                let hook = self.lock().hooks.remove(&event.data.u64());
                let Some(hook) = hook else { continue };
                // One that panics must not end the others.
                let _ = catch_unwind(AssertUnwindSafe(hook));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::time::Duration;

    const SOON: Duration = Duration::from_secs(10);
    const SHORT: Duration = Duration::from_millis(100);

    #[test]
    fn a_process_that_ends_is_noticed_and_one_that_goes_on_is_not() {
        let mut child =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let (sender, receiver) = channel();
        let number = i32::try_from(child.id()).unwrap();
        let _watch = Watch::process(number, move || sender.send(()).unwrap()).unwrap();
        assert_eq!(receiver.recv_timeout(SHORT), Err(RecvTimeoutError::Timeout));
        child.kill().unwrap();
        assert_eq!(receiver.recv_timeout(SOON), Ok(()));
        child.wait().unwrap();
        for number in [0, -1, number] {
            assert!(Watch::process(number, || ()).is_err(), "{number}");
        }
    }

    #[test]
    fn a_connection_is_closed_when_its_other_end_reads_no_more_either() {
        let (service, client) = UnixStream::pair().unwrap();
        let (sender, receiver) = channel();
        let again = sender.clone();
        let watch = Watch::connection(&service, move || sender.send(1).unwrap()).unwrap();
        let unwatched = Watch::connection(&service, move || again.send(2).unwrap()).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(receiver.recv_timeout(SHORT), Err(RecvTimeoutError::Timeout));
        drop(unwatched);
        drop(client);
        assert_eq!(receiver.recv_timeout(SOON), Ok(1));
        // What was not to be done any more was dropped, and with it its sender.
        drop(watch);
        assert_eq!(receiver.recv_timeout(SHORT), Err(RecvTimeoutError::Disconnected));
    }

    #[test]
    fn a_hook_that_panics_does_not_end_the_others() {
        let (service, client) = UnixStream::pair().unwrap();
        let _bad = Watch::connection(&service, || panic!("as it is tested")).unwrap();
        drop(client);
        let (service, client) = UnixStream::pair().unwrap();
        let (sender, receiver) = channel();
        let _good = Watch::connection(&service, move || sender.send(()).unwrap()).unwrap();
        drop(client);
        assert_eq!(receiver.recv_timeout(SOON), Ok(()));
    }
}
