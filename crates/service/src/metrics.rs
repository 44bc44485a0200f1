//! [`Exposed`]: metrics by HTTP, for Prometheus.

use crate::Server;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Weak;
use std::sync::{Arc, atomic::AtomicBool, atomic::Ordering};
use std::time::{Duration, Instant};

/// The longest question that is read, in bytes.
const QUESTION: usize = 8192;
/// How long somebody may take to ask, and to read the answer.
const IO_TIMEOUT: Duration = Duration::from_secs(2);

/// An address at which metrics are offered as long as this exists. One is served at a time, and every
/// question has the same answer.
#[derive(Debug)]
pub struct Exposed {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
}

impl Exposed {
    /// Offers a server's metrics at an address.
    ///
    /// # Errors
    /// The system refuses the address, or a thread.
    pub fn at(address: SocketAddr, server: &Arc<Server>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let (server, stopping) = (Arc::downgrade(server), Arc::new(AtomicBool::new(false)));
        let stop = Arc::clone(&stopping);
        std::thread::Builder::new().name("nnhal-metrics".to_owned()).spawn(move || {
            for asking in listener.incoming() {
                if stop.load(Ordering::Acquire) {
                    return;
                }
                if let Err(error) = asking.and_then(|asking| answer(asking, &server)) {
                    tracing::debug!(%error, "metrics were not read");
                }
            }
        })?;
        Ok(Self { address, stopping })
    }

    /// The address, with the port that it has.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Exposed {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        // Wakes the thread, which then ends.
        let _ = TcpStream::connect_timeout(&self.address, IO_TIMEOUT);
    }
}

/// Reads a question to the end of its head, without looking at it, and answers.
fn answer(mut asking: TcpStream, server: &Weak<Server>) -> io::Result<()> {
    let until = Instant::now() + IO_TIMEOUT;
    asking.set_write_timeout(Some(IO_TIMEOUT))?;
    let mut question = Vec::new();
    let mut part = [0; 1024];
    while question.len() < QUESTION && !question.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        asking.set_read_timeout(Some(left))?;
        match asking.read(&mut part)? {
            0 => break,
            length => question.extend_from_slice(&part[..length]),
        }
    }
    let Some(server) = server.upgrade() else { return Ok(()) };
    let text = server.metrics();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        text.len()
    );
    asking.write_all(head.as_bytes())?;
    asking.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Settings, listening::Listening};

    #[test]
    fn sec_who_asks_slowly_keeps_others_waiting_for_seconds_only() {
        let folder = tempfile::tempdir().unwrap();
        let listening = Listening::at(&folder.path().join("s"), 0o600).unwrap();
        let devices = vec![nnhal_reference::device()];
        let server = Server::start(devices, listening, Settings::default()).unwrap();
        let exposed = Exposed::at("127.0.0.1:0".parse().unwrap(), &server).unwrap();
        let mut slow = TcpStream::connect(exposed.address()).unwrap();
        let has_ended = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&has_ended);
        let slowly = std::thread::spawn(move || {
            while !stop.load(Ordering::Acquire) && slow.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        let begin = Instant::now();
        let mut other = TcpStream::connect(exposed.address()).unwrap();
        other.set_read_timeout(Some(3 * IO_TIMEOUT)).unwrap();
        other.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        other.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("nnhal_clients 0"), "{answer}");
        assert!(begin.elapsed() < 3 * IO_TIMEOUT, "{:?}", begin.elapsed());
        has_ended.store(true, Ordering::Release);
        slowly.join().unwrap();
    }
}
