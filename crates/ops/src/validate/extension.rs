//! The table of extensions, and prefixes that it must explain (contract: EXT-2, EXT-3).

use nnhal_hal::extension::is_extension_name;
use nnhal_hal::{ExtensionNameAndPrefix, ExtensionType};
use std::collections::HashSet;

/// What is wrong with a row of the table of extensions (contract: EXT-2).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtensionError {
    /// The name breaks DEV-EXT-2.
    #[error("{found:?} is no name of an extension")]
    Name {
        /// The name.
        found: String,
    },
    /// The name is in an earlier row.
    #[error("{name:?} is named before")]
    NameTwice {
        /// The extension's name.
        name: String,
    },
    /// The prefix is in an earlier row.
    #[error("prefix {prefix:#06x} is used before")]
    PrefixTwice {
        /// The prefix of both rows.
        prefix: u16,
    },
    /// The prefix is that of the interface's own types.
    #[error("prefix 0 is the interface's own")]
    PrefixZero,
    /// A number of extensions that leaves no prefix for one of the driver's own (contract: SEC-3).
    #[error("there are {found} extensions, which leave no prefix")]
    TooMany {
        /// Rows of the table.
        found: usize,
    },
}

/// The prefixes that stand for an extension in a model.
#[derive(Debug, Default)]
pub(super) struct Prefixes(HashSet<u16>);

impl Prefixes {
    /// Checks the table. An error comes with its row.
    pub(super) fn read(table: &[ExtensionNameAndPrefix]) -> Result<Self, (usize, ExtensionError)> {
        let (mut names, mut prefixes) = (HashSet::new(), HashSet::new());
        for (row, ExtensionNameAndPrefix { name, prefix }) in table.iter().enumerate() {
            let error = if !is_extension_name(name) {
                ExtensionError::Name { found: name.clone() }
            } else if !names.insert(name) {
                ExtensionError::NameTwice { name: name.clone() }
            } else if *prefix == 0 {
                ExtensionError::PrefixZero
            } else if !prefixes.insert(*prefix) {
                ExtensionError::PrefixTwice { prefix: *prefix }
            } else {
                continue;
            };
            return Err((row, error));
        }
        Ok(Self(prefixes))
    }

    /// The prefix of a type, if it stands for nothing.
    pub(super) fn unmapped(&self, extension: ExtensionType) -> Option<u16> {
        Some(extension.prefix()).filter(|prefix| !self.0.contains(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(table: &[(&str, u16)]) -> Result<Prefixes, (usize, ExtensionError)> {
        let row = |(name, prefix): &(&str, u16)| ExtensionNameAndPrefix {
            name: (*name).to_owned(),
            prefix: *prefix,
        };
        Prefixes::read(&table.iter().map(row).collect::<Vec<_>>())
    }

    fn refusal(table: &[(&str, u16)]) -> (usize, ExtensionError) {
        read(table).unwrap_err()
    }

    #[test]
    fn ext_2_names_and_prefixes_are_unique() {
        assert!(read(&[]).is_ok());
        assert!(read(&[("a.b", 1), ("a.c", 0xFFFF)]).is_ok());
        assert_eq!(
            refusal(&[("a.b", 1), ("a.b", 2)]),
            (1, ExtensionError::NameTwice { name: "a.b".into() })
        );
        assert_eq!(
            refusal(&[("a.b", 7), ("a.c", 7)]),
            (1, ExtensionError::PrefixTwice { prefix: 7 })
        );
    }

    #[test]
    fn ext_2_names_are_of_the_form_that_devices_use() {
        for name in ["", "nodot", "Com.example", "com.ex ample"] {
            assert_eq!(refusal(&[(name, 1)]), (0, ExtensionError::Name { found: name.into() }));
        }
    }

    #[test]
    fn ext_2_prefix_zero_is_refused() {
        assert_eq!(refusal(&[("a.b", 0)]), (0, ExtensionError::PrefixZero));
    }

    #[test]
    fn ext_3_prefixes_without_a_name_are_found() {
        let prefixes = read(&[("a.b", 2)]).unwrap();
        assert_eq!(prefixes.unmapped(ExtensionType::new(2, 9).unwrap()), None);
        assert_eq!(prefixes.unmapped(ExtensionType::new(0xFFFF, 0xFFFF).unwrap()), Some(0xFFFF));
    }
}
