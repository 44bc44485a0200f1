//! Which operations of a model devices can do.

use super::Model;
use crate::devices::Device;
use crate::error::{Error, Result};
use crate::partition::support::supported;
use std::collections::HashMap;

impl Model {
    /// For each operation, in the order in which they were added, whether any of the devices can do
    /// it, with the runtime's help where that is an IF or WHILE.
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
            for (added_as, able) in
                self.added_as().iter().zip(self.runnable(device, &mut HashMap::new()))
            {
                answer[*added_as] |= able;
            }
        }
        Ok(answer)
    }

    /// For each operation, in running order, whether it can be run with this device alone: an IF or
    /// WHILE also if the device can do all that it runs, and the runtime does the rest. `known` says
    /// of which models, by address, all operations can be run.
    fn runnable(&self, device: &Device, known: &mut HashMap<usize, bool>) -> Vec<bool> {
        let mut able = supported(self, device);
        for (index, able) in able.iter_mut().enumerate() {
            let inner = self.controlled(index);
            if *able || inner.is_empty() {
                continue;
            }
            *able = inner.iter().all(|model| match known.get(&model.address()) {
                Some(able) => *able,
                None => {
                    let able = !model.runnable(device, known).contains(&false);
                    known.insert(model.address(), able);
                    able
                }
            });
        }
        able
    }
}
