//! Extensions: operand types and operations that a vendor adds (1.2 on; contract: DEV-EXT, EXT).

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
}
