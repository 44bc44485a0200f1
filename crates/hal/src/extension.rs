//! Extensions: operand types and operations that a vendor adds (1.2 on; contract: DEV-EXT, EXT).

use std::collections::HashSet;
use std::fmt;

/// A type or operation of an extension as a model writes it: in the high 16 bits a prefix that
/// the model maps to the extension's name, in the low 16 bits the number within the extension
/// (`ExtensionTypeEncoding`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtensionType {
    prefix: u16,
    number: u16,
}

impl ExtensionType {
    /// `None` for prefix 0, which is the interface's own.
    pub const fn new(prefix: u16, number: u16) -> Option<Self> {
        if prefix == 0 { None } else { Some(Self { prefix, number }) }
    }

    /// `None` if none of the high 16 bits is set.
    pub const fn from_code(code: u32) -> Option<Self> {
        let [low_0, low_1, high_0, high_1] = code.to_le_bytes();
        Self::new(u16::from_le_bytes([high_0, high_1]), u16::from_le_bytes([low_0, low_1]))
    }

    /// The number that stands for it on the wire.
    pub const fn code(self) -> u32 {
        (self.prefix as u32) << 16 | self.number as u32
    }

    /// What the model maps to the extension's name; never 0.
    pub const fn prefix(self) -> u16 {
        self.prefix
    }

    /// The number within the extension.
    pub const fn number(self) -> u16 {
        self.number
    }

    /// Another type or operation of the same extension.
    #[must_use]
    pub const fn with_number(self, number: u16) -> Self {
        Self { prefix: self.prefix, number }
    }
}

impl fmt::Display for ExtensionType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "EXTENSION({:#06x}, {})", self.prefix, self.number)
    }
}

/// One row of a model's table from extension names to prefixes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ExtensionNameAndPrefix {
    /// The extension's name, see [`is_extension_name`].
    pub name: String,
    /// The prefix that stands for it in this model; not 0.
    pub prefix: u16,
}

/// A value for a device that an extension defines (AIDL version 4; the C library's attributes of extensions).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenValuePair {
    /// Which value of which extension: an [`ExtensionType`]'s code, as a signed number.
    pub token: i32,
    /// Bytes, as the extension defines them.
    pub value: Vec<u8>,
}

/// Values of extensions that a client gives a device with a compilation or with an execution. A device passes over what it
/// does not know.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Hints {
    /// The values; no token is there twice.
    pub values: Vec<TokenValuePair>,
    /// What the prefixes in the tokens stand for.
    pub extension_name_to_prefix: Vec<ExtensionNameAndPrefix>,
}

impl Hints {
    /// None.
    pub const NONE: Self = Self { values: Vec::new(), extension_name_to_prefix: Vec::new() };

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The value of a token of an extension.
    pub fn get(&self, extension: &str, number: u16) -> Option<&[u8]> {
        let mut names = self.extension_name_to_prefix.iter();
        let prefix = names.find(|row| row.name == extension)?.prefix;
        let token = ExtensionType::new(prefix, number)?.code().cast_signed();
        self.values.iter().find(|pair| pair.token == token).map(|pair| &*pair.value)
    }

    /// A token that is there twice, if one is.
    pub fn token_given_twice(&self) -> Option<i32> {
        let mut seen = HashSet::new();
        self.values.iter().map(|pair| pair.token).find(|token| !seen.insert(*token))
    }
}

/// An extension that a device offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// See [`is_extension_name`].
    pub name: String,
    /// The operand types it defines.
    pub operand_types: Vec<ExtensionOperandType>,
}

/// An operand type of an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtensionOperandType {
    /// The number within the extension.
    pub number: u16,
    /// Whether it is a tensor type.
    pub is_tensor: bool,
    /// Bytes that a scalar, or an element of a tensor, takes; not 0.
    pub byte_size: u32,
}

impl Extension {
    /// What it says of the type with this number.
    pub fn operand_type(&self, number: u16) -> Option<&ExtensionOperandType> {
        self.operand_types.iter().find(|operand_type| operand_type.number == number)
    }
}

/// What is wrong with the extensions that a device offers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtensionMistake {
    /// A name that is none (contract: DEV-EXT-2).
    #[error("{name:?} is no name of an extension")]
    Name {
        /// As the device gives it.
        name: String,
    },
    /// Two extensions have the same name (contract: DEV-EXT-2).
    #[error("{name:?} is offered twice")]
    NameTwice {
        /// As the device gives it.
        name: String,
    },
    /// Two types of an extension have the same number (contract: DEV-EXT-3).
    #[error("{name:?} has two operand types {number}")]
    NumberTwice {
        /// The extension.
        name: String,
        /// The operand type's number within the extension.
        number: u16,
    },
    /// A type without size (contract: DEV-EXT-3).
    #[error("operand type {number} of {name:?} takes no bytes")]
    NoBytes {
        /// The extension.
        name: String,
        /// The operand type's number within the extension.
        number: u16,
    },
}

/// Whether a device may offer these extensions.
///
/// # Errors
/// The first mistake.
pub fn check_offered(extensions: &[Extension]) -> Result<(), ExtensionMistake> {
    let mut names = HashSet::new();
    for extension in extensions {
        let name = extension.name.clone();
        if !is_extension_name(&name) {
            return Err(ExtensionMistake::Name { name });
        }
        if !names.insert(name.clone()) {
            return Err(ExtensionMistake::NameTwice { name });
        }
        let mut numbers = HashSet::new();
        for &ExtensionOperandType { number, byte_size, .. } in &extension.operand_types {
            if !numbers.insert(number) {
                return Err(ExtensionMistake::NumberTwice { name, number });
            }
            if byte_size == 0 {
                return Err(ExtensionMistake::NoBytes { name, number });
            }
        }
    }
    Ok(())
}

/// Whether `name` may name an extension: not empty, of `a-z 0-9 _ .` only, with at least one `.`
/// (contract: DEV-EXT-2).
pub fn is_extension_name(name: &str) -> bool {
    name.contains('.')
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dev_ext_2_names() {
        for good in ["com.example.fibonacci", "a.b", "vendor_1.x"] {
            assert!(is_extension_name(good), "{good}");
        }
        for bad in ["", "nodot", "Com.example", "com.example ", "com.ex-ample"] {
            assert!(!is_extension_name(bad), "{bad}");
        }
    }

    #[test]
    fn hints_are_found_by_name_and_number() {
        let pair = |token, value: u8| TokenValuePair { token, value: vec![value] };
        let row = |name: &str, prefix| ExtensionNameAndPrefix { name: name.into(), prefix };
        let mut hints = Hints {
            values: vec![pair(0x7fff_0001, 1), pair(0x0001_0002, 2), pair(-0x7fff_fffe, 3)],
            extension_name_to_prefix: vec![row("a.b", 0x7fff), row("a.c", 1), row("a.d", 0x8000)],
        };
        assert_eq!(hints.get("a.b", 1), Some(&[1][..]));
        assert_eq!(hints.get("a.c", 2), Some(&[2][..]));
        assert_eq!(hints.get("a.d", 2), Some(&[3][..]), "prefixes take all 16 bits");
        assert_eq!((hints.get("a.b", 2), hints.get("a.e", 1)), (None, None));
        assert_eq!(hints.token_given_twice(), None);
        hints.values.push(pair(0x0001_0002, 4));
        assert_eq!(hints.token_given_twice(), Some(0x0001_0002));
    }

    fn offered(name: &str, types: &[(u16, u32)]) -> Extension {
        let operand_types = types
            .iter()
            .map(|(number, byte_size)| ExtensionOperandType {
                number: *number,
                is_tensor: true,
                byte_size: *byte_size,
            })
            .collect();
        Extension { name: name.to_owned(), operand_types }
    }

    #[test]
    fn dev_ext_2_no_name_is_offered_twice() {
        assert_eq!(check_offered(&[offered("a.b", &[]), offered("a.c", &[])]), Ok(()));
        let twice = check_offered(&[offered("a.b", &[]), offered("a.b", &[])]);
        assert_eq!(twice, Err(ExtensionMistake::NameTwice { name: "a.b".into() }));
        let bad = check_offered(&[offered("ab", &[])]);
        assert_eq!(bad, Err(ExtensionMistake::Name { name: "ab".into() }));
    }

    #[test]
    fn dev_ext_3_types_have_different_numbers_and_sizes() {
        let good = offered("a.b", &[(0, 1), (0xFFFF, u32::MAX)]);
        assert_eq!(good.operand_type(0xFFFF).map(|found| found.byte_size), Some(u32::MAX));
        assert_eq!(good.operand_type(1), None);
        assert_eq!(check_offered(&[good]), Ok(()));
        let twice = check_offered(&[offered("a.b", &[(3, 1), (3, 2)])]);
        assert_eq!(twice, Err(ExtensionMistake::NumberTwice { name: "a.b".into(), number: 3 }));
        let empty = check_offered(&[offered("a.b", &[(3, 0)])]);
        assert_eq!(empty, Err(ExtensionMistake::NoBytes { name: "a.b".into(), number: 3 }));
    }

    #[test]
    fn ext_1_prefix_and_number_share_a_code() {
        assert_eq!(ExtensionType::new(0, 5), None);
        let found = ExtensionType::from_code(0x0002_0007).unwrap();
        assert_eq!((found.prefix(), found.number(), found.code()), (2, 7, 0x0002_0007));
        assert_eq!(found.with_number(9).code(), 0x0002_0009);
        assert_eq!(ExtensionType::from_code(0xFFFF), None);
    }
}
