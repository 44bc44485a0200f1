//! Prepared models whose weights processes share.
//!
//! What the folder of prepared models has is put into a memfd that is sealed against writing, which devices
//! map instead of copying. Beside a prepared model `TOKEN.nnhal` there is a folder `TOKEN.shared` with an empty file for
//! each session that has such memory open: its name says where in `/proc` that is. Whoever opens it gets memory
//! that no one can change; that it holds what it should is checked by the device as with any file. So a name that
//! is wrong, of another process by now or made up, is a miss.

use crate::cache;
use crate::error::Result;
use crate::model::Model;
use crate::options::SessionOptions;
use nnhal_hal::memory::{map_sealed, seal};
use nnhal_hal::{CacheToken, Deadline, Device, PrepareOptions, PreparedModel};
use std::fs::{File, TryLockError};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long to wait for another process that prepares the same model.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How often to look whether it is ready.
const LOOK: Duration = Duration::from_millis(2);
/// Most names that are tried; those of processes that were killed are removed.
const MOST_NAMES: usize = 64;
/// When a name of processes that cannot be seen from here, of another container, is removed.
const OLD: Duration = Duration::from_secs(24 * 60 * 60);
/// What the system calls the memory that [`seal`] makes.
const MEMFD: &str = "/memfd:nnhal-sealed";

/// A prepared model that shares its weights.
pub(crate) struct Shared {
    pub(crate) program: Arc<dyn PreparedModel>,
    /// Whether nothing was prepared for it.
    pub(crate) is_from_cache: bool,
    pub(crate) published: Option<Published>,
}

/// Lets others find memory for as long as it exists.
pub(crate) struct Published {
    path: PathBuf,
    process: u32,
    _memory: File,
}

impl Drop for Published {
    fn drop(&mut self) {
        // A process that was forked has copies of these, which say nothing of its own.
        if self.process == std::process::id() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The prepared model out of memory that is shared, which is made if there is none; `None`, if there can be none.
///
/// # Errors
/// Preparing the model.
pub(crate) fn prepare(
    folder: &Path,
    model: &Model,
    device: &dyn Device,
    options: &SessionOptions,
    deadline: Option<Deadline>,
    prepare: impl FnOnce(PrepareOptions) -> Result<Arc<dyn PreparedModel>>,
) -> Result<Option<Shared>> {
    let Some((token, file)) = cache::entry(folder, model, device, options)? else {
        return Ok(None);
    };
    let (names, Some(space)) = (file.with_extension("shared"), process_space()) else {
        return Ok(None);
    };
    // Whether that can be is found out where a folder for prepared models is needed anyway.
    if std::fs::create_dir_all(&names).is_err() {
        return Ok(None);
    }
    let load = |memory: &File| load(device, token, memory, deadline);
    // Until the end of this function.
    let _turn = wait_for_turn(&file.with_extension("lock"), deadline);
    if let Some((program, memory)) = find(&names, &space, load) {
        let published = publish(&names, &space, memory);
        return Ok(Some(Shared { program, is_from_cache: true, published }));
    }
    let from_file = || {
        let file = File::open(&file).ok()?;
        let memory = seal(file.metadata().ok()?.len(), file).ok()?;
        Some((load(&memory)?, memory))
    };
    if let Some((program, memory)) = from_file() {
        let published = publish(&names, &space, memory);
        return Ok(Some(Shared { program, is_from_cache: true, published }));
    }
    let own = cache::prepare(folder, model, device, options, prepare)?;
    Ok(Some(match from_file() {
        Some((program, memory)) => {
            let published = publish(&names, &space, memory);
            Shared { program, is_from_cache: false, published }
        }
        None => Shared { program: own, is_from_cache: false, published: None },
    }))
}

fn load(
    device: &dyn Device,
    token: CacheToken,
    memory: &File,
    deadline: Option<Deadline>,
) -> Option<Arc<dyn PreparedModel>> {
    let model_cache = vec![memory.try_clone().ok()?.into()];
    let loaded = device.prepare_model_from_cache(PrepareOptions {
        deadline,
        model_cache,
        token,
        ..PrepareOptions::default()
    });
    loaded.ok()
}

/// What names the processes that can be seen from here: numbers of others are theirs alone.
fn process_space() -> Option<String> {
    let space = std::fs::read_link("/proc/self/ns/pid").ok()?;
    let digits: String = space.to_str()?.chars().filter(char::is_ascii_digit).collect();
    (!digits.is_empty()).then_some(digits)
}

/// Only one process at a time makes such memory. One that cannot wait, or waits too long, makes some of its own;
/// one whose deadline passes learns so from its device.
fn wait_for_turn(path: &Path, deadline: Option<Deadline>) -> Option<File> {
    let file = File::options().write(true).create(true).truncate(false).open(path).ok()?;
    let begun = Instant::now();
    let may_wait = || begun.elapsed() < LONGEST_WAIT && !deadline.is_some_and(Deadline::has_passed);
    loop {
        match file.try_lock() {
            Ok(()) => return Some(file),
            Err(TryLockError::WouldBlock) if may_wait() => {
                std::thread::sleep(LOOK);
            }
            Err(_) => return None,
        }
    }
}

/// The prepared model out of the memory of another session, and that memory.
fn find(
    names: &Path,
    space: &str,
    load: impl Fn(&File) -> Option<Arc<dyn PreparedModel>>,
) -> Option<(Arc<dyn PreparedModel>, File)> {
    for entry in std::fs::read_dir(names).ok()?.flatten().take(MOST_NAMES) {
        let name = entry.file_name();
        let mut parts = name.to_str().unwrap_or_default().split('-');
        if parts.next() != Some(space) {
            let made = entry.metadata().ok().and_then(|it| it.modified().ok());
            if made.and_then(|made| made.elapsed().ok()).is_some_and(|age| age > OLD) {
                let _ = std::fs::remove_file(entry.path());
            }
            continue;
        }
        let mut number = || parts.next()?.parse::<u32>().ok();
        let place = number().zip(number());
        let opened = place.and_then(|(process, descriptor)| open(process, descriptor));
        match opened.and_then(|memory| Some((load(&memory)?, memory))) {
            Some(found) => return Some(found),
            None => {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
    None
}

/// Memory that another process has open, if it is such.
fn open(process: u32, descriptor: u32) -> Option<File> {
    let path = format!("/proc/{process}/fd/{descriptor}");
    // Before it is opened, which does something to files of some kinds.
    if !std::fs::read_link(&path).ok()?.to_str()?.starts_with(MEMFD) {
        return None;
    }
    // The device wants one that is open for both, though this one cannot be written.
    let file = File::options().read(true).write(true).custom_flags(NONBLOCKING).open(path).ok()?;
    map_sealed(&file).map(|_| file)
}

/// `O_NONBLOCK`, so that whatever is opened is opened at once.
const NONBLOCKING: i32 = 0o4000;

/// Lets others find memory. Where that cannot be, it is not shared with those who come later.
fn publish(names: &Path, space: &str, memory: File) -> Option<Published> {
    let process = std::process::id();
    let path = names.join(format!("{space}-{process}-{}", memory.as_raw_fd()));
    File::create(&path).ok()?;
    Some(Published { path, process, _memory: memory })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn false_names_are_misses_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let other = tempfile::NamedTempFile::new().unwrap();
        let space = process_space().unwrap();
        let own = std::process::id();
        let sealed = seal(3, &b"abc"[..]).unwrap();
        for name in [
            format!("{space}-{own}-{}", other.as_raw_fd()),
            format!("{space}-{own}-99999"),
            format!("{space}-4294967295-1"),
            format!("{space}-../../etc-1"),
            space.clone(),
            format!("{space}-{own}-{}", sealed.as_raw_fd()),
        ] {
            let path = folder.path().join(name.replace('/', "_"));
            File::create(&path).unwrap();
            assert!(find(folder.path(), &space, |_| None).is_none());
            assert!(!path.exists(), "{name}");
        }
        let elsewhere = folder.path().join("17-1-1");
        File::create(&elsewhere).unwrap();
        assert!(find(folder.path(), &space, |_| None).is_none());
        assert!(elsewhere.exists(), "of processes that cannot be seen");
    }

    #[test]
    fn what_is_published_is_found_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let space = process_space().unwrap();
        let published = publish(folder.path(), &space, seal(3, &b"abc"[..]).unwrap()).unwrap();
        let name = published.path.file_name().unwrap().to_str().unwrap().to_owned();
        let mut parts = name.split('-').skip(1).map(|it| it.parse().unwrap());
        let mut found = open(parts.next().unwrap(), parts.next().unwrap()).unwrap();
        assert_eq!(map_sealed(&found).unwrap().as_ref(), b"abc");
        assert!(found.write_all(b"x").is_err());
        drop(published);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn one_waits_for_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = wait_for_turn(&path, None).unwrap();
        let begun = Instant::now();
        let second = std::thread::spawn({
            let path = path.clone();
            move || (wait_for_turn(&path, None).is_some(), Instant::now())
        });
        std::thread::sleep(Duration::from_millis(60));
        drop(first);
        let (got, when) = second.join().unwrap();
        assert!(got && when - begun >= Duration::from_millis(50));
    }

    #[test]
    fn no_one_waits_beyond_a_deadline() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let _first = wait_for_turn(&path, None).unwrap();
        let begun = Instant::now();
        let deadline = Deadline::after(Duration::from_millis(30));
        assert!(wait_for_turn(&path, Some(deadline)).is_none());
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
}
