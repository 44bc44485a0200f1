//! A [`Server`] as a program: signals, systemd, a file of settings, metrics on an address.

use crate::metrics::Exposed;
use crate::more_descriptors;
use crate::settings::{Settings, SettingsError};
use crate::{Server, ServiceError, listening::Listening};
use nnhal_hal::Device;
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What a daemon is given when it is started.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where to listen, unless systemd has opened a socket.
    pub socket: PathBuf,
    /// The permissions of the socket.
    pub mode: u32,
    /// The file of settings; read again at `SIGHUP`.
    pub settings: Option<PathBuf>,
    /// Where metrics are offered.
    pub metrics: Option<SocketAddr>,
}

/// Why a daemon does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// Its settings make no sense.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// It cannot serve.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The system refuses.
    #[error("{what}: {source}")]
    System {
        /// What was to be done.
        what: String,
        /// Why not.
        source: std::io::Error,
    },
}

/// How long executions that go on are waited for at the end.
const FAREWELL: Duration = Duration::from_secs(10);

/// Serves until `SIGTERM` or `SIGINT`. At `SIGHUP` the settings are read again, for clients that come from
/// then on; where they make no sense, the old ones stay and `report` gets the reason. `report` gets a line when the
/// service is ready, too.
///
/// # Errors
/// What keeps it from starting.
pub fn run(
    devices: Vec<Arc<dyn Device>>,
    options: &Options,
    report: impl Fn(&str),
) -> Result<(), DaemonError> {
    let read =
        || options.settings.as_deref().map_or_else(|| Ok(Settings::default()), Settings::read);
    let settings = read()?;
    let system = |what: String| move |source| DaemonError::System { what, source };
    let signals = Signals::new([SIGHUP, SIGINT, SIGTERM]);
    let mut signals = signals.map_err(system("signals".to_owned()))?;
    more_descriptors();
    let inherited = Listening::of_systemd().map_err(system("the socket of systemd".to_owned()))?;
    let (listening, place) = match inherited {
        Some(listening) => (listening, "the socket of systemd".to_owned()),
        None => {
            let place = options.socket.display().to_string();
            let listening = Listening::at(&options.socket, options.mode);
            (listening.map_err(system(place.clone()))?, place)
        }
    };
    let names =
        devices.iter().map(|device| device.name().to_owned()).collect::<Vec<_>>().join(", ");
    let server = Server::start(devices, listening, settings)?;
    let exposed = options.metrics.map(|address| Exposed::at(address, &server));
    let exposed = exposed.transpose().map_err(system("metrics".to_owned()))?;
    report(&format!("offering {names} on {place}"));
    if let Some(exposed) = &exposed {
        report(&format!("metrics on http://{}/metrics", exposed.address()));
    }
    notify(NotifyState::Ready);
    for signal in signals.forever() {
        if signal != SIGHUP {
            break;
        }
        match read() {
            Ok(settings) => {
                server.clients().reload(settings);
                report("settings were read again");
            }
            Err(error) => report(&format!("settings stay as they were: {error}")),
        }
    }
    notify(NotifyState::Stopping);
    server.stop(FAREWELL);
    Ok(())
}

/// Tells systemd, if it listens.
fn notify(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::debug!(%error, "systemd was not notified");
    }
}
