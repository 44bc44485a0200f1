//! Devices behind kernel binder's service manager.

use crate::clients::Clients;
use crate::server::offer;
use crate::settings::Settings;
use crate::{ServiceError, more_descriptors, server};
use nnhal_aidl::binder;
use nnhal_aidl::interface::nn::IDevice::IDevice;
use nnhal_aidl::serve::{Guest, Guests};
use nnhal_hal::Device;
use rsbinder::{DeathRecipient, SIBinder, Strong, WIBinder};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// The number that the kernel gives for a process of another namespace of process numbers.
const UNSEEN: i32 = 0;

/// How long is waited before the service manager is looked for again.
const AGAIN: Duration = Duration::from_millis(500);

/// Registers devices and serves until the process ends. The first has the name `instance` if one is given,
/// otherwise each has its own. Where there is no service manager yet, it is waited for.
///
/// # Errors
/// There is no device, or one is too old for the interface; the kernel has no binder; the service manager
/// refuses a name.
pub fn run(
    devices: Vec<Arc<dyn Device>>,
    instance: Option<&str>,
    settings: Settings,
    report: impl Fn(&str),
) -> Result<(), ServiceError> {
    more_descriptors();
    let guests = guests(Clients::new(settings.beside_threads(binder::THREADS as usize)));
    let offered: Vec<(String, Strong<dyn IDevice>)> =
        devices.into_iter().map(|device| offer(device, &guests)).collect::<Result<_, _>>()?;
    let (first, _) = offered.first().ok_or(ServiceError::NoDevice)?;
    let refused = |name: &str| {
        let name = name.to_owned();
        move |source| ServiceError::Registration { name, source }
    };
    binder::start().map_err(refused(first))?;
    let has_manager = || binder::has_manager().unwrap_or(false);
    if !has_manager() {
        report("waiting for the service manager");
        while !has_manager() {
            std::thread::sleep(AGAIN);
        }
    }
    let mut instance = instance;
    for (name, device) in &offered {
        let name = instance.take().unwrap_or(name);
        binder::register(name, device).map_err(refused(name))?;
        report(&format!("offering {}/{name}", binder::INTERFACE));
    }
    server::notify_ready();
    binder::serve().map_err(refused(first))
}

/// Clients by their process, which are gone when an object of theirs has died.
fn guests(clients: Arc<Clients>) -> Guests {
    let watched = Arc::new(Watched::default());
    let found = Arc::clone(&clients);
    let guests = Guests::new(move || found.calling_or_new()).with_objects(move |guest, object| {
        Watched::watch(&watched, &clients, guest, object);
    });
    // Callbacks are called at any time here, and threads for calls are few.
    guests.notified_later()
}

/// The objects that are observed, one of each guest.
#[derive(Default)]
struct Watched(Mutex<HashMap<u64, (SIBinder, Arc<Death>)>>);

/// What is done when a guest's object has died.
struct Death {
    watched: Weak<Watched>,
    clients: Arc<Clients>,
    guest: Arc<Guest>,
}

impl Watched {
    fn watch(watched: &Arc<Self>, clients: &Arc<Clients>, guest: &Arc<Guest>, object: &SIBinder) {
        if rsbinder::get_calling_pid() == UNSEEN {
            // One of several processes, and the others go on when it dies.
            return;
        }
        let id = guest.client().id();
        let mut all = watched.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.contains_key(&id) {
            return;
        }
        let death = Arc::new(Death {
            watched: Arc::downgrade(watched),
            clients: Arc::clone(clients),
            guest: Arc::clone(guest),
        });
        match object.link_to_death_arc(&death) {
            Ok(()) => {
                all.insert(id, (object.clone(), death));
            }
            // It has died already, or is of this process.
            Err(error) => tracing::debug!(%error, "a client's object cannot be observed"),
        }
    }
}

impl DeathRecipient for Death {
    fn binder_died(&self, _who: &WIBinder) {
        self.clients.gone(&self.guest);
        tracing::debug!(client = %self.guest.client(), "a client has died");
        let Some(watched) = self.watched.upgrade() else { return };
        let mut all = watched.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = all.remove(&self.guest.client().id());
        drop(all);
        drop(gone);
    }
}
