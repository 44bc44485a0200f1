//! A daemon that offers devices to other processes on a Unix socket.
//!
//! [`Server::start`] takes devices and [`Settings`], and serves until [`Server::stop`]:
//!
//! | module | contents |
//! |---|---|
//! | [`settings`] | limits, and who may connect |
//! | [`clients`] | who is connected: a process is one client, however many connections it has |
//! | [`kernel`] | the same devices behind kernel binder's service manager |
//! | [`listening`] | the socket: a path of ours with its mode, or one that systemd has opened |
//! | [`daemon`] | all of it as a program: signals, systemd, a file of settings |
//! | [`metrics`] | metrics by HTTP, for Prometheus |
//! | [`status`] | what clients hold and how long executions take, as JSON and for Prometheus |
//!
//! A client that disconnects, or dies, is gone with all that it had: its executions are ended, its
//! prepared models, buffers and memory are released.
//!
//! ```
//! use nnhal_service::{Server, Settings, listening::Listening};
//! # fn device() -> std::sync::Arc<dyn nnhal_hal::Device> { nnhal_reference::device() }
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("nnhal.sock");
//! let server = Server::start(vec![device()], Listening::at(&path, 0o600)?, Settings::default())?;
//!
//! let device = nnhal_aidl::socket::open(&path, None)?;
//! assert_eq!(device.name(), "nnhal-reference");
//! drop(device);
//! server.stop(std::time::Duration::from_secs(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod clients;
pub mod daemon;
pub mod kernel;
pub mod listening;
pub mod metrics;
mod server;
pub mod settings;
pub mod status;
mod transport;

pub use server::{Server, ServiceError};
pub use settings::Settings;

/// Lets the process have as many descriptors as it may: each connection is one, and so is each pool of memory.
pub fn more_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%error, "no more descriptors");
    }
}
