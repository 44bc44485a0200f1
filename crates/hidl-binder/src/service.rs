//! [`Service`]: devices that are registered with the service manager.

use crate::interfaces::DeviceStub;
use nnhal_hal::client::{ClientGroup, ClientLimits};
use nnhal_hidl::tasks::Limits;
use nnhal_hwbinder::{Error, Manager, Object, Process};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

/// How long after a manager's end the next one is looked for.
const PAUSE: Duration = Duration::from_millis(200);

/// Devices that are registered with the service manager, under names.
pub struct Service {
    process: Arc<Process>,
    group: ClientGroup,
    devices: Vec<(String, Arc<dyn Object>)>,
}

impl Service {
    /// Nothing yet. What all clients hold together is limited by `together`.
    pub fn new(process: &Arc<Process>, together: ClientLimits) -> Self {
        let (process, group) = (Arc::clone(process), ClientGroup::new(together));
        Self { process, group, devices: Vec::new() }
    }

    /// Offers a device under the name of its instance.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        device: Arc<dyn nnhal_hal::Device>,
        limits: ClientLimits,
        tasks: Limits,
    ) {
        let stub = DeviceStub::new(device, limits, self.group.clone(), tasks);
        self.devices.push((name.into(), Arc::new(stub)));
    }

    /// Registers all devices as soon as the manager is there.
    ///
    /// # Errors
    /// What the manager says.
    pub fn register(&self) -> Result<Manager, Error> {
        let manager = Manager::wait(&self.process, None)?;
        for (name, device) in &self.devices {
            manager.add(name, device)?;
            tracing::info!(name, "registered");
        }
        Ok(manager)
    }

    /// Registers all devices, and again whenever the manager has ended and another one has come. `registered` is done each
    /// time.
    ///
    /// # Errors
    /// What the manager says.
    pub fn run(&self, mut registered: impl FnMut()) -> Result<std::convert::Infallible, Error> {
        loop {
            let manager = match self.register() {
                // It ended meanwhile.
                Err(Error::Dead) => continue,
                other => other?,
            };
            registered();
            let (ended, end) = mpsc::channel();
            let link = manager.remote().link_to_death(move || {
                let _ = ended.send(());
            });
            // Without a sender it has ended as well.
            let _ = end.recv();
            tracing::warn!("the service manager has ended");
            drop((link, manager));
            std::thread::sleep(PAUSE);
        }
    }
}
