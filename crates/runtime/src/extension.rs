//! [`Extensions`]: what devices offer beyond the interface, and the numbers by which models name it.
//!
//! A type of an extension is a number of 32 bits: the upper 16 are a prefix that stands for the
//! extension, the lower 16 the type's number within it. Prefixes are given out when a client first
//! asks for a type of an extension, and are the same for all models over one
//! [`Devices`](crate::Devices), so that models can refer to one another.

use crate::error::{Error, Result};
use nnhal_hal::{
    Device, Extension, ExtensionNameAndPrefix, ExtensionOperandType, ExtensionType, Hints,
    TokenValuePair,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The extensions of all devices, and the prefixes given out so far.
#[derive(Debug)]
pub(crate) struct Extensions {
    /// By name; those that devices describe differently are left out.
    offered: BTreeMap<String, Extension>,
    /// Names by prefix, less 1.
    prefixes: Mutex<Vec<String>>,
}

/// What is known of an extension's operand type.
pub(crate) type Known = ExtensionOperandType;

impl Extensions {
    /// Those that the devices offer.
    pub(crate) fn of(devices: &[Arc<dyn Device>]) -> Self {
        let mut offered: BTreeMap<String, Extension> = BTreeMap::new();
        let mut contradictory = BTreeSet::new();
        for extension in devices.iter().flat_map(|device| device.supported_extensions()) {
            let mut extension = extension;
            extension.operand_types.sort_by_key(|operand_type| operand_type.number);
            let name = extension.name.clone();
            let known = offered.entry(name.clone()).or_insert_with(|| extension.clone());
            if *known != extension {
                tracing::warn!(%name, "devices describe the extension differently: disabled");
                contradictory.insert(name);
            }
        }
        offered.retain(|name, _| !contradictory.contains(name));
        Self { offered, prefixes: Mutex::default() }
    }

    /// The number that stands for a type or operation of an extension. A name that no device
    /// offers gets one too; operands of such a type are then refused, and models with such an operation.
    ///
    /// # Errors
    /// `BAD_DATA` when all prefixes are taken.
    pub(crate) fn code(&self, name: &str, number: u16) -> Result<i32> {
        let mut prefixes = self.lock();
        let position = match prefixes.iter().position(|known| known == name) {
            Some(position) => position,
            None => {
                // 15 bits, so that codes are positive in C.
                if prefixes.len() >= usize::from(u16::MAX >> 1) {
                    return Err(Error::bad_data("too many extensions are in use"));
                }
                prefixes.push(name.to_owned());
                prefixes.len() - 1
            }
        };
        let prefix = u16::try_from(position + 1).unwrap_or(u16::MAX);
        Ok((u32::from(prefix) << 16 | u32::from(number)).cast_signed())
    }

    /// Adds an attribute to those of a compilation or of an execution.
    ///
    /// # Errors
    /// `BAD_DATA` when it is there, or all prefixes are taken.
    pub(crate) fn add_attribute(
        &self,
        attributes: &mut Hints,
        name: &str,
        number: u16,
        data: &[u8],
    ) -> Result<()> {
        let token = self.code(name, number)?;
        if attributes.get(name, number).is_some() {
            return Err(Error::bad_data(format!("attribute {number} of {name} is given twice")));
        }
        attributes.values.push(TokenValuePair { token, value: data.to_vec() });
        if !attributes.extension_name_to_prefix.iter().any(|row| row.name == name) {
            let [.., high, low] = (token.cast_unsigned() >> 16).to_be_bytes();
            let prefix = u16::from_be_bytes([high, low]);
            attributes
                .extension_name_to_prefix
                .push(ExtensionNameAndPrefix { name: name.to_owned(), prefix });
        }
        Ok(())
    }

    /// Whether the prefix of this type was given out.
    pub(crate) fn knows(&self, extension: ExtensionType) -> bool {
        usize::from(extension.prefix()) <= self.lock().len()
    }

    /// Demands that devices offer the extensions with these prefixes.
    ///
    /// # Errors
    /// `BAD_DATA` for the first that none does, or that they describe differently.
    pub(crate) fn expect_offered(&self, used: &BTreeSet<u16>) -> Result<()> {
        let table = self.table(used);
        match table.iter().find(|row| !self.offered.contains_key(&row.name)) {
            None => Ok(()),
            Some(row) => Err(Error::bad_data(format!("no device offers extension {}", row.name))),
        }
    }

    /// What devices say of an operand type; `None` if none does.
    pub(crate) fn operand_type(&self, extension: ExtensionType) -> Option<Known> {
        let prefixes = self.lock();
        let name = prefixes.get(usize::from(extension.prefix()).checked_sub(1)?)?;
        self.offered.get(name)?.operand_type(extension.number()).copied()
    }

    /// The rows of a model's table for these prefixes.
    pub(crate) fn table(&self, used: &BTreeSet<u16>) -> Vec<ExtensionNameAndPrefix> {
        let prefixes = self.lock();
        let row = |prefix: &u16| {
            let name = prefixes.get(usize::from(*prefix).checked_sub(1)?)?.clone();
            Some(ExtensionNameAndPrefix { name, prefix: *prefix })
        };
        used.iter().filter_map(row).collect()
    }

    /// Nothing is left half done under the lock.
    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.prefixes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_prefix() {
        let extensions = Extensions::of(&[]);
        assert_eq!(extensions.code("a.b", 3), Ok(0x1_0003));
        assert_eq!(extensions.code("c.d", 0), Ok(0x2_0000));
        assert_eq!(extensions.code("a.b", 0xFFFF), Ok(0x1_FFFF));
        let known = |code| extensions.knows(ExtensionType::from_code(code).unwrap());
        assert!(known(0x2_0007) && !known(0x3_0000));
        assert_eq!(extensions.operand_type(ExtensionType::new(1, 3).unwrap()), None);
        let table = extensions.table(&BTreeSet::from([2, 9]));
        assert_eq!(table, [ExtensionNameAndPrefix { name: "c.d".into(), prefix: 2 }]);
    }
}
