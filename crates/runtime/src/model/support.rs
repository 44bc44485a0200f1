//! Which operations of a model devices can do.

use super::Model;
use crate::devices::Device;
use crate::error::{Error, Result};
use crate::partition::support::supported;

impl Model {
    /// For each operation, in the order in which they were added, whether any of the devices can do
    /// it.
    ///
    /// # Errors
    /// `BAD_DATA` without devices, or with the same one twice.
    pub fn supported_operations(&self, devices: &[Device]) -> Result<Vec<bool>> {
        if devices.is_empty() {
            return Err(Error::bad_data("no device is named"));
        }
        let mut answer = vec![false; self.operation_count()];
        for (index, device) in devices.iter().enumerate() {
            if devices[..index].iter().any(|other| other.is_same(device)) {
                return Err(Error::bad_data(format!("{} is named twice", device.name())));
            }
            let by_device = supported(self, device);
            for (added_as, supported) in self.added_as().iter().zip(by_device) {
                answer[*added_as] |= supported;
            }
        }
        Ok(answer)
    }
}
