//! `android.hidl.base@1.0::IBase`: what every object answers, and what may be asked of every object.

use crate::error::{Error, status};
use crate::object::{CallError, Caller, Interface, Object, Reader, Remote, Writer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::OwnedFd;

/// The interface that all extend.
pub const BASE: Interface = Interface::new(
    "android.hidl.base@1.0::IBase",
    "ec7fd79ed02dfa85bc499426adae3ebe23ef0524f3cd6957139324b83b18ca4c",
);

const PING: u32 = code(*b"PNG");
const INTERFACE_CHAIN: u32 = code(*b"CHN");
const INTERFACE_DESCRIPTOR: u32 = code(*b"DSC");
const HASH_CHAIN: u32 = code(*b"HSH");
const DEBUG: u32 = code(*b"DBG");
const DEBUG_INFO: u32 = code(*b"REF");
const SET_INSTRUMENTATION: u32 = code(*b"INT");
const NOTIFY_SYSPROPS_CHANGED: u32 = code(*b"SYS");

/// The code that is made of a method's three letters.
const fn code(letters: [u8; 3]) -> u32 {
    u32::from_be_bytes([0x0f, letters[0], letters[1], letters[2]])
}

/// Whether a method of `IBase` is one way.
fn is_one_way(code: u32) -> bool {
    matches!(code, SET_INSTRUMENTATION | NOTIFY_SYSPROPS_CHANGED)
}

/// Whether the code is among those that `IBase` has for itself.
fn is_base(code: u32) -> bool {
    code >> 24 == 0x0f
}

/// Answers a call of an object, of whichever method.
pub(crate) fn answer(
    object: &dyn Object,
    code: u32,
    arguments: &mut Reader<'_>,
    caller: Caller,
    called_one_way: bool,
) -> Result<Writer, CallError> {
    let one_way = if is_base(code) { is_one_way(code) } else { object.is_one_way(code) };
    if one_way != called_one_way {
        return Err(CallError::Status(status::UNKNOWN_ERROR));
    }
    if !is_base(code) {
        return object.call(code, arguments, caller);
    }
    arguments.expect_interface(BASE.name)?;
    let chain = || object.chain().iter().chain([&BASE]);
    let mut reply = Writer::reply();
    match code {
        PING if object.is_alive() => {}
        PING => return Err(CallError::Status(status::DEAD_OBJECT)),
        INTERFACE_CHAIN => reply.strings(&chain().map(|one| one.name).collect::<Vec<_>>()),
        INTERFACE_DESCRIPTOR => reply.string(chain().next().map_or(BASE.name, |one| one.name)),
        HASH_CHAIN => {
            let hashes: Vec<u8> = chain().flat_map(|one| one.hash).collect();
            reply.array(chain().count(), hashes);
        }
        DEBUG => {
            let handle = arguments.native_handle(None)?;
            let _options = arguments.strings()?;
            if let Some(fd) = handle.and_then(|handle| handle.fds.into_iter().next()) {
                write_text(&fd, &object.debug());
            }
        }
        DEBUG_INFO => {
            // Process, no address, unknown architecture: as for those who do not ask from the manager.
            let mut info = [0; 24];
            let process = std::process::id().to_le_bytes();
            info[..4].copy_from_slice(&process);
            let architecture: i32 = if cfg!(target_pointer_width = "64") { 1 } else { 2 };
            info[16..20].copy_from_slice(&architecture.to_le_bytes());
            reply.buffer(info.to_vec(), None);
        }
        // There is neither instrumentation nor are there properties.
        SET_INSTRUMENTATION | NOTIFY_SYSPROPS_CHANGED => {}
        _ => return Err(CallError::UNKNOWN),
    }
    Ok(reply)
}

/// Writes as much as a pipe that someone reads can take; who does not read gets nothing.
fn write_text(fd: &OwnedFd, text: &str) {
    const PIPE_TAKES: usize = 4096;
    let timeout = Timespec { tv_sec: 1, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(fd, PollFlags::OUT)], Some(&timeout));
    if ready.is_ok_and(|ready| ready > 0) {
        let text = text.as_bytes();
        let written = rustix::io::write(fd, &text[..text.len().min(PIPE_TAKES)]);
        tracing::debug!(?written, "debug");
    }
}

impl Remote {
    /// Whether the object is there.
    ///
    /// # Errors
    /// [`Error::Dead`] if it is not; what a call may say.
    pub fn ping(&self) -> crate::Result<()> {
        self.call(PING, Writer::request(BASE.name), |_| Ok(()))
    }

    /// The names of its interfaces, the most derived first, `IBase` last.
    ///
    /// # Errors
    /// What a call may say.
    pub fn interface_chain(&self) -> crate::Result<Vec<String>> {
        self.call(INTERFACE_CHAIN, Writer::request(BASE.name), |reply| Ok(reply.strings()?))
    }

    /// The name of its most derived interface.
    ///
    /// # Errors
    /// What a call may say.
    pub fn interface_descriptor(&self) -> crate::Result<String> {
        self.call(INTERFACE_DESCRIPTOR, Writer::request(BASE.name), |reply| Ok(reply.string()?))
    }

    /// The hashes of the files of its interfaces, in the order of [`Remote::interface_chain`].
    ///
    /// # Errors
    /// What a call may say.
    pub fn hash_chain(&self) -> crate::Result<Vec<[u8; 32]>> {
        self.call(HASH_CHAIN, Writer::request(BASE.name), |reply| {
            let head = reply.buffer(16, None)?;
            let count = head.bytes.get(8..12).and_then(|bytes| bytes.try_into().ok());
            let count = count.map_or(0, u32::from_le_bytes);
            let hashes = reply.elements(count, 32, head.id.start())?;
            let bytes = hashes.map_or(&[][..], |hashes| hashes.bytes);
            Ok(bytes.as_chunks().0.to_vec())
        })
    }

    /// Whether an object of another process has this interface.
    ///
    /// # Errors
    /// What a call may say.
    pub fn implements(&self, interface: &str) -> Result<bool, Error> {
        Ok(self.interface_chain()?.iter().any(|one| one == interface))
    }
}
