//! [`Listening`]: the socket that clients connect to.

use rustix::fs::{Mode, chmodat};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// A socket that listens. One of a path of ours is removed from there when this is dropped.
#[derive(Debug)]
pub struct Listening {
    listener: UnixListener,
    own: Option<PathBuf>,
}

impl Listening {
    /// Listens at a path, which gets these permissions before anybody can connect. A socket that is
    /// there, and on which no one listens any more, is replaced.
    ///
    /// # Errors
    /// Somebody listens there, or there is something else; the system refuses.
    pub fn at(path: &Path, mode: u32) -> io::Result<Self> {
        if let Ok(found) = path.symlink_metadata() {
            let socket = found.file_type().is_socket();
            let refused = UnixStream::connect(path).err().map(|error| error.kind());
            if !socket || refused != Some(io::ErrorKind::ConnectionRefused) {
                let why = if socket { "somebody listens there" } else { "it is no socket" };
                let text = format!("{} exists: {why}", path.display());
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
            }
            std::fs::remove_file(path)?;
        }
        // Made under another name, with no permissions for others, and renamed when all is set.
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        let made = tempfile::Builder::new()
            .prefix(".nnhal")
            .make_in(folder.unwrap_or(Path::new(".")), |it| UnixListener::bind(it))?;
        chmodat(
            rustix::fs::CWD,
            made.path(),
            Mode::from_raw_mode(mode & 0o777),
            rustix::fs::AtFlags::empty(),
        )?;
        let (listener, temporary) = made.into_parts();
        temporary.persist(path).map_err(|error| error.error)?;
        Ok(Self { listener, own: Some(path.to_owned()) })
    }

    /// The socket that systemd has opened for this process; `None` if there is none.
    ///
    /// # Errors
    /// What was passed is no Unix socket that listens.
    pub fn of_systemd() -> io::Result<Option<Self>> {
        let listener = listenfd::ListenFd::from_env().take_unix_listener(0)?;
        Ok(listener.map(|listener| Self { listener, own: None }))
    }

    pub(crate) fn listener(&self) -> &UnixListener {
        &self.listener
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(path) = &self.own {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_socket_has_its_mode_and_replaces_a_dead_one_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listening = Listening::at(&path, 0o620).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o620);
        assert_eq!(Listening::at(&path, 0o600).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        drop(listening);
        assert!(!path.exists());
        drop(UnixListener::bind(&path).unwrap());
        drop(Listening::at(&path, 0o600).unwrap());
        std::fs::write(&path, "x").unwrap();
        Listening::at(&path, 0o600).unwrap_err();
        assert_eq!(std::fs::read(&path).unwrap(), b"x");
    }
}
