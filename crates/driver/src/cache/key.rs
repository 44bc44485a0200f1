//! [`CacheKey`]: what makes a cache file this device's.

use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, linkat, open, openat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::ffi::OsString;
use std::fmt;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

/// Bytes in a key.
pub const KEY_LENGTH: usize = 32;

/// Name of the key's file in a device's state directory.
const FILE_NAME: &str = "cache.key";

/// The bits that let anybody but the owner do something.
const OF_OTHERS: u32 = 0o077;

/// A secret that only the device has: who does not know it cannot write a cache file that loads
/// (contract: CACHE-16).
#[derive(Clone)]
pub struct CacheKey([u8; KEY_LENGTH]);

/// Why a key could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Neither `XDG_STATE_HOME` nor `HOME` is set to an absolute path.
    #[error("there is no place for state: neither XDG_STATE_HOME nor HOME is an absolute path")]
    NoStateDirectory,
    /// The device's name cannot name a directory.
    #[error("{name:?} cannot be the name of a directory")]
    Name {
        /// The device's name.
        name: String,
    },
    /// A call of the system failed.
    #[error("{call} of {path:?}")]
    System {
        /// Name of the system call.
        call: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// It is a symbolic link, or another kind of thing than it should be.
    #[error("{path:?} is not {expected}")]
    Kind {
        /// The file or directory.
        path: PathBuf,
        /// What it should be.
        expected: &'static str,
    },
    /// It belongs to somebody else.
    #[error("{path:?} belongs to user {found}, expected {expected}")]
    Owner {
        /// The file or directory.
        path: PathBuf,
        /// Its owner.
        found: u32,
        /// Who we are.
        expected: u32,
    },
    /// Others than the owner may use it.
    #[error("{path:?} has permissions {found:03o}, expected none but the owner's")]
    Permissions {
        /// The file or directory.
        path: PathBuf,
        /// Its permissions.
        found: u32,
    },
    /// It does not hold a key.
    #[error("{path:?} has {found} bytes, a key has {KEY_LENGTH}")]
    Length {
        /// The file.
        path: PathBuf,
        /// Bytes in it, but no more than one above a key's.
        found: usize,
    },
    /// The system has no random numbers.
    #[error("random bytes for a key")]
    Random(#[source] getrandom::Error),
}

impl CacheKey {
    /// A key that the embedder keeps. Whoever knows it can make the device load anything.
    pub fn new(bytes: [u8; KEY_LENGTH]) -> Self {
        Self(bytes)
    }

    /// A new key, which no one else has.
    ///
    /// # Errors
    /// [`KeyError::Random`]
    pub fn random() -> Result<Self, KeyError> {
        let mut bytes = [0; KEY_LENGTH];
        getrandom::fill(&mut bytes).map_err(KeyError::Random)?;
        Ok(Self(bytes))
    }

    /// The key of a device of this user on this machine, in `nnhal/NAME` in the directory
    /// `$XDG_STATE_HOME`, or `~/.local/state`. The first call makes it.
    ///
    /// # Errors
    /// As [`CacheKey::in_directory`], and [`KeyError::NoStateDirectory`], [`KeyError::Name`].
    pub fn of_device(name: &str) -> Result<Self, KeyError> {
        Self::in_directory(&state_directory(name)?)
    }

    /// The key in a directory, which is made if it is missing, readable by its owner only. So is
    /// the key; of any number of processes that make it at the same time, all get the same one.
    ///
    /// # Errors
    /// Directory or key are not what they should be: of another owner, open to others, symbolic
    /// links, of another length. Or a call failed.
    pub fn in_directory(path: &Path) -> Result<Self, KeyError> {
        let directory = private_directory(path)?;
        let file = path.join(FILE_NAME);
        if let Some(key) = read(&directory, &file)? {
            return Ok(key);
        }
        create(&directory, &file)?;
        let missing = || system("open", &file)(Errno::NOENT);
        read(&directory, &file)?.ok_or_else(missing)
    }

    /// The secret itself.
    pub(super) fn bytes(&self) -> &[u8; KEY_LENGTH] {
        &self.0
    }
}

/// `nnhal/NAME` in the directory for this user's state on this machine: `$XDG_STATE_HOME`, or `~/.local/state`. It is made if it is
/// missing; what is in it is for its owner only.
///
/// # Errors
/// [`KeyError::NoStateDirectory`], [`KeyError::Name`]; it is not what it should be, or a call failed.
pub fn state_directory(name: &str) -> Result<PathBuf, KeyError> {
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    let state = std::env::var_os("XDG_STATE_HOME").and_then(absolute).or_else(|| {
        std::env::var_os("HOME").and_then(absolute).map(|home| home.join(".local/state"))
    });
    directory_in(&state.ok_or(KeyError::NoStateDirectory)?, name)
}

/// The same in another directory for state.
pub(super) fn directory_in(state: &Path, name: &str) -> Result<PathBuf, KeyError> {
    let mut components = Path::new(name).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(only)), None) if only == name => {}
        _ => return Err(KeyError::Name { name: name.to_owned() }),
    }
    let ours = state.join("nnhal");
    // Whoever may write here could put another directory in the place of the one in it.
    drop(private_directory(&ours)?);
    let path = ours.join(name);
    drop(private_directory(&path)?);
    Ok(path)
}

/// Not the secret.
impl fmt::Debug for CacheKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CacheKey(..)")
    }
}

fn system<E: Into<io::Error>>(call: &'static str, path: &Path) -> impl FnOnce(E) -> KeyError {
    move |error| KeyError::System { call, path: path.to_owned(), error: error.into() }
}

/// Opens a directory that is the owner's alone; makes it if it is missing.
fn private_directory(path: &Path) -> Result<OwnedFd, KeyError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(path).map_err(system("mkdir", path))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = open(path, flags, Mode::empty()).map_err(|error| match error {
        Errno::LOOP | Errno::NOTDIR => {
            KeyError::Kind { path: path.to_owned(), expected: "a directory" }
        }
        error => system("open", path)(error),
    })?;
    check_private(&fstat(&directory).map_err(system("fstat", path))?, path)?;
    Ok(directory)
}

fn check_private(stat: &Stat, path: &Path) -> Result<(), KeyError> {
    let (path, found, expected) = (path.to_owned(), stat.st_uid, geteuid().as_raw());
    if found != expected {
        return Err(KeyError::Owner { path, found, expected });
    }
    let found = stat.st_mode & 0o777;
    if found & OF_OTHERS != 0 {
        return Err(KeyError::Permissions { path, found });
    }
    Ok(())
}

/// The key that is there, if there is one.
fn read(directory: &OwnedFd, path: &Path) -> Result<Option<CacheKey>, KeyError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let not_a_file = || KeyError::Kind { path: path.to_owned(), expected: "a regular file" };
    let file = match openat(directory, FILE_NAME, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(not_a_file()),
        Err(error) => return Err(system("open", path)(error)),
    };
    if !file.metadata().map_err(system("fstat", path))?.is_file() {
        return Err(not_a_file());
    }
    check_private(&fstat(&file).map_err(system("fstat", path))?, path)?;
    let mut bytes = Vec::with_capacity(KEY_LENGTH + 1);
    file.take(KEY_LENGTH as u64 + 1).read_to_end(&mut bytes).map_err(system("read", path))?;
    let key = <[u8; KEY_LENGTH]>::try_from(bytes.as_slice());
    key.map(CacheKey::new)
        .map(Some)
        .map_err(|_| KeyError::Length { path: path.to_owned(), found: bytes.len() })
}

/// Makes a key, unless somebody else just did. It is written under another name and gets its own
/// when it is whole, which only the first can do.
fn create(directory: &OwnedFd, path: &Path) -> Result<(), KeyError> {
    let key = CacheKey::random()?;
    let mut suffix = [0; 8];
    getrandom::fill(&mut suffix).map_err(KeyError::Random)?;
    let draft = format!("{FILE_NAME}.{:016x}", u64::from_le_bytes(suffix));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = openat(directory, &*draft, flags, Mode::RUSR | Mode::WUSR)
        .map_err(system("create", path))?;
    let mut file = File::from(fd);
    let written = file.write_all(key.bytes()).and_then(|()| file.sync_all());
    let named = written.map_err(system("write", path)).and_then(|()| {
        match linkat(directory, &*draft, directory, FILE_NAME, AtFlags::empty()) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(system("link", path)(error)),
        }
    });
    // A draft that stays behind is no key, and hurts no one.
    let _ = unlinkat(directory, &*draft, AtFlags::empty());
    named
}
