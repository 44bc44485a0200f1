//! [`CompilationBuilder`]

use super::Compilation;
use crate::devices::Device;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::partition::cache::{CacheFiles, Caching};
use crate::partition::{Partitioning, PlanOptions, compile};
use nnhal_hal::{CacheToken, Deadline, ExecutionPreference, Hints, Priority};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A compilation that is being set up.
#[derive(Debug)]
pub struct CompilationBuilder {
    model: Model,
    devices: Vec<Device>,
    /// How many names the client chose the devices by; `None` if it chose none.
    names: Option<usize>,
    preference: ExecutionPreference,
    priority: Priority,
    timeout: Option<Duration>,
    caching: Option<Caching>,
    partitioning: Partitioning,
    attributes: Hints,
    state: State,
}

#[derive(Debug)]
enum State {
    Building,
    /// It could not be finished, and never will be.
    Failed,
    Finished(Compilation),
}

impl CompilationBuilder {
    /// A compilation of a model for all devices that it was built for. Where one fails, the last one
    /// takes over.
    pub fn new(model: &Model) -> Self {
        let devices = model.devices().list().to_vec();
        Self::with(model, devices, None, Partitioning::WithFallback)
    }

    /// A compilation of a model for these devices and no other.
    ///
    /// # Errors
    /// `BAD_DATA` without devices, or if one is named twice, or not among those that the model was
    /// built for.
    pub fn for_devices(model: &Model, devices: &[Device]) -> Result<Self> {
        if devices.is_empty() {
            return Err(Error::bad_data("no device is named"));
        }
        for (index, device) in devices.iter().enumerate() {
            if devices[..index].iter().any(|other| other.is_same(device)) {
                return Err(Error::bad_data(format!("{} is named twice", device.name())));
            }
            if !model.devices().includes(device) {
                let name = device.name();
                return Err(Error::bad_data(format!(
                    "the model is built for other devices than {name}"
                )));
            }
        }
        let names = Some(devices.len());
        Ok(Self::with(model, devices.to_vec(), names, Partitioning::WithoutFallback))
    }

    /// Says that the client chose its devices by more names than there are devices. What is for
    /// compilations for one chosen device is for those for one name then.
    ///
    /// # Errors
    /// `BAD_STATE` after finishing.
    pub fn set_name_count(&mut self, names: usize) -> Result<()> {
        self.expect_building()?;
        self.names = self.names.map(|_| names);
        Ok(())
    }

    fn with(
        model: &Model,
        devices: Vec<Device>,
        names: Option<usize>,
        partitioning: Partitioning,
    ) -> Self {
        Self {
            model: model.clone(),
            devices,
            names,
            preference: ExecutionPreference::FastSingleAnswer,
            priority: Priority::Medium,
            timeout: None,
            caching: None,
            partitioning,
            attributes: Hints::NONE,
            state: State::Building,
        }
    }

    /// What the client would rather have, by its number: 0 low power, 1 a fast single answer, 2
    /// sustained speed.
    ///
    /// # Errors
    /// `BAD_DATA` for another number; `BAD_STATE` after finishing.
    pub fn set_preference(&mut self, code: i32) -> Result<()> {
        self.expect_building()?;
        self.preference = ExecutionPreference::from_code(code)
            .map_err(|error| Error::bad_data(error.to_string()))?;
        Ok(())
    }

    /// Rank among the client's compilations, by its number: 90 low, 100 medium, 110 high.
    ///
    /// # Errors
    /// `BAD_DATA` for another number; `BAD_STATE` after finishing.
    pub fn set_priority(&mut self, code: i32) -> Result<()> {
        self.expect_building()?;
        self.priority = match code {
            90 => Priority::Low,
            100 => Priority::Medium,
            110 => Priority::High,
            other => return Err(Error::bad_data(format!("{other} is no priority"))),
        };
        Ok(())
    }

    /// How long finishing may take, in nanoseconds; 0: as long as it takes.
    ///
    /// # Errors
    /// `BAD_DATA` unless the compilation is for one chosen device; `BAD_STATE` after finishing.
    pub fn set_timeout(&mut self, nanoseconds: u64) -> Result<()> {
        self.expect_building()?;
        self.expect_one_device("a timeout")?;
        self.timeout = (nanoseconds > 0).then(|| Duration::from_nanos(nanoseconds));
        Ok(())
    }

    /// Where compilations are kept from one process to the next, and what names this one.
    ///
    /// # Errors
    /// `BAD_STATE` after finishing.
    pub fn set_caching(&mut self, directory: &Path, token: &CacheToken) -> Result<()> {
        self.expect_building()?;
        self.caching = Some(Caching::directory(directory, *token));
        Ok(())
    }

    /// The same with files that are open, for a compilation for one device, as many as that device
    /// asks for.
    ///
    /// # Errors
    /// `BAD_STATE` after finishing.
    pub fn set_caching_from_files(&mut self, files: CacheFiles, token: &CacheToken) -> Result<()> {
        self.expect_building()?;
        self.caching = Some(Caching::files(files, *token));
        Ok(())
    }

    /// An attribute of an extension, for a compilation for one chosen device, which gets it with the model; behind an interface
    /// older than AIDL version 4 it does not.
    ///
    /// # Errors
    /// `BAD_DATA` if an attribute is given twice, or the compilation is for several devices;
    /// `BAD_STATE` after finishing.
    pub fn add_extension_attribute(
        &mut self,
        extension: &str,
        number: u16,
        data: &[u8],
    ) -> Result<()> {
        self.expect_building()?;
        self.expect_one_device("an attribute")?;
        let extensions = self.model.devices().extensions();
        extensions.add_attribute(&mut self.attributes, extension, number, data)
    }

    /// How the model is given to devices: for all devices [`Partitioning::WithFallback`], for
    /// chosen ones [`Partitioning::WithoutFallback`] unless said otherwise.
    ///
    /// # Errors
    /// `BAD_STATE` after finishing.
    pub fn set_partitioning(&mut self, partitioning: Partitioning) -> Result<()> {
        self.expect_building()?;
        self.partitioning = partitioning;
        Ok(())
    }

    /// Divides the model among the devices and prepares each part.
    ///
    /// # Errors
    /// `BAD_DATA` if no device can do an operation; what devices answer; `BAD_STATE` the second time.
    pub fn finish(&mut self) -> Result<Compilation> {
        self.expect_building()?;
        // Whatever comes of it, it is not done twice.
        self.state = State::Failed;
        let options = PlanOptions {
            preference: self.preference,
            priority: self.priority,
            deadline: self.timeout.map(Deadline::after),
            caching: self.caching.take(),
            hints: Arc::new(std::mem::take(&mut self.attributes)),
        };
        let plan = compile(&self.model, &self.devices, self.partitioning, &options)?;
        let compilation = Compilation::new(
            self.model.clone(),
            self.devices.clone(),
            self.names,
            self.partitioning,
            self.priority,
            plan,
        );
        self.state = State::Finished(compilation.clone());
        Ok(compilation)
    }

    /// The finished compilation.
    ///
    /// # Errors
    /// `BAD_STATE` if it is not finished, or could not be.
    pub fn compilation(&self) -> Result<&Compilation> {
        match &self.state {
            State::Finished(compilation) => Ok(compilation),
            State::Building => Err(Error::bad_state("the compilation is not finished")),
            State::Failed => Err(Error::bad_state("the compilation could not be finished")),
        }
    }

    fn expect_building(&self) -> Result<()> {
        match self.state {
            State::Building => Ok(()),
            _ => Err(Error::bad_state("the compilation is finished")),
        }
    }

    fn expect_one_device(&self, what: &str) -> Result<()> {
        if self.names == Some(1) {
            return Ok(());
        }
        Err(Error::bad_data(format!("{what} is for compilations for one chosen device")))
    }
}
