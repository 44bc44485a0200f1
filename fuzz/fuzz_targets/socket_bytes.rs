//! Whatever a client sends to a service on its socket: the service answers or hangs up, in time, serves others all the
//! while, and has nothing left of it afterwards.
//!
//! An input is a byte that says how the connection begins, and messages: a byte (command, how true its lengths are, how many
//! descriptors go with it), a length of two bytes, and the body as it is on the wire. Run it with `-detect_leaks=0`: the service's
//! threads allocate meanwhile, which libFuzzer takes for leaks and looks for, for longer than all else takes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nnhal_service::listening::Listening;
use nnhal_service::{Server, Settings};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Within which the service answers and hangs up. libFuzzer's own limit is the same.
const SOON: Duration = Duration::from_secs(10);
/// Inputs between two looks at what the service holds.
const BETWEEN_LOOKS: u64 = 512;

struct Served {
    path: PathBuf,
    server: Arc<Server>,
    _folder: tempfile::TempDir,
}

static SERVED: LazyLock<Served> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let listening = Listening::at(&path, 0o600).expect("a socket");
    // All are one process here, and so one client.
    let settings = Settings { connections: 256, ..Settings::default() };
    let server = Server::start(vec![nnhal_reference::device()], listening, settings);
    Served { path, server: server.expect("a service"), _folder: folder }
});

/// What is sent along: memory that can shrink, and what is no memory.
static FILES: LazyLock<[File; 2]> = LazyLock::new(|| {
    let memory = tempfile::tempfile().expect("a file");
    memory.set_len(4096).expect("a length");
    [memory, File::open("/dev/null").expect("a device")]
});

static INPUTS: AtomicU64 = AtomicU64::new(0);

fuzz_target!(|input: &[u8]| {
    let Some((&begin, messages)) = input.split_first() else { return };
    let mut socket = UnixStream::connect(&SERVED.path).expect("someone listens");
    socket.set_read_timeout(Some(SOON)).expect("a socket");
    socket.set_write_timeout(Some(SOON)).expect("a socket");
    if begin & 3 != 0 {
        // Version 2 (or an older one, or a newer), no session of before, descriptors on this socket.
        let mut greeting = [0_u8; 24];
        greeting[0] = if begin & 3 == 3 { begin >> 4 } else { 2 };
        greeting[5] = 1;
        greeting[16..20].copy_from_slice(b"cci\0");
        let _ = socket.write_all(&greeting);
    }
    // Who has hung up reads no more.
    let _ = send(&socket, messages);
    let _ = socket.shutdown(Shutdown::Write);
    let began = Instant::now();
    let mut answers = [0; 4096];
    while let Ok(1..) = socket.read(&mut answers) {}
    assert!(began.elapsed() < SOON, "the service has not hung up");
    drop(socket);
    if INPUTS.fetch_add(1, Ordering::Relaxed) % BETWEEN_LOOKS == BETWEEN_LOOKS - 1 {
        look();
    }
});

fn send(socket: &UnixStream, mut messages: &[u8]) -> Option<()> {
    while let [kind, low, high, rest @ ..] = messages {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (body, after) = rest.split_at(length);
        messages = after;
        let mut message = vec![kind & 3, 0, 0, 0];
        let mut body = body.to_vec();
        match kind >> 2 & 3 {
            // As it should be: what a call carries is as long as its body, but for whole words behind it.
            0 | 1 => {
                if let Some(carried) = length.checked_sub(40) {
                    let said = u32::from_le_bytes(body[24..28].try_into().expect("4 bytes"));
                    let table = carried.checked_sub(said as usize);
                    if table.is_none_or(|table| !table.is_multiple_of(4)) {
                        body[24..28].copy_from_slice(&(carried as u32).to_le_bytes());
                    }
                }
                message.extend((length as u32).to_le_bytes());
            }
            2 => message.extend((length as u32).to_le_bytes()),
            _ => message.extend(body.get(..4).unwrap_or(&[0xff; 4])),
        }
        message.extend([0; 8]);
        message.extend(body);
        let files: Vec<BorrowedFd<'_>> =
            FILES.iter().cycle().take(usize::from(kind >> 4 & 7)).map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(7))];
        let mut along = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            along.push(SendAncillaryMessage::ScmRights(&files));
        }
        let mut sent =
            sendmsg(socket, &[IoSlice::new(&message)], &mut along, SendFlags::NOSIGNAL).ok()?;
        while sent < message.len() {
            sent += (&*socket).write(&message[sent..]).ok()?;
        }
    }
    Some(())
}

/// Another client is served, and nothing is left of those before.
fn look() {
    let device = nnhal_aidl::socket::open(&SERVED.path, None).expect("the service");
    assert_eq!(device.name(), "nnhal-reference");
    drop(device);
    let began = Instant::now();
    loop {
        let status = SERVED.server.status();
        let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
        let files = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        if SERVED.server.clients().list().is_empty() && threads < 16 && files < 64 {
            assert_eq!(status.all.prepared_models, 0);
            assert_eq!(status.all.memory, 0);
            return;
        }
        assert!(began.elapsed() < SOON, "{threads} threads and {files} descriptors are left");
        sleep(Duration::from_millis(1));
    }
}
