//! [`ExtensionTypes`]: what a device's extensions say of the operand types of one model.
//!
//! The validator knows nothing of an extension's types but their numbers. How many bytes their
//! elements take, and whether they are tensors at all, is what the engine declares of them
//! ([`Engine::extensions`](crate::Engine::extensions)), so it is checked here that models and
//! requests keep to that (contract: EXT-5).

use nnhal_hal::{
    Extension, ExtensionOperandType, ExtensionType, Model, Operand, OperandType, OperationType,
};
use std::collections::{BTreeMap, BTreeSet};

/// What a device's extensions say of the operand types of one model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtensionTypes {
    /// The model's prefixes that stand for an extension of the device.
    prefixes: BTreeSet<u16>,
    types: BTreeMap<ExtensionType, ExtensionOperandType>,
}

/// Why an operation with an extension's words cannot be supported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtensionObstacle {
    /// The operation is of an extension that the device does not have (contract: EXT-6).
    #[error("the device does not offer extension {name:?}")]
    Operation {
        /// The extension.
        name: String,
    },
    /// An operand's type is of an extension that the device does not have, or not a type of it
    /// (contract: EXT-6).
    #[error("operand {operand} is of type {number} of extension {name:?}, which is not offered")]
    Type {
        /// Index of the operand in its subgraph.
        operand: u32,
        /// The extension.
        name: String,
        /// The type's number there.
        number: u16,
    },
    /// A scalar with dimensions (contract: EXT-5).
    #[error("operand {operand} ({operand_type}) is a scalar, but has dimensions {found:?}")]
    ScalarDimensions {
        /// Index of the operand in its subgraph.
        operand: u32,
        /// The extension's type.
        operand_type: OperandType,
        /// Its dimensions.
        found: Vec<u32>,
    },
    /// A constant tensor whose dimensions are not all known (contract: EXT-5, MODEL-7).
    #[error("constant {operand} ({operand_type}) has dimensions {found:?}, which must be known")]
    ConstantDimensions {
        /// Index of the operand in its subgraph.
        operand: u32,
        /// The extension's type.
        operand_type: OperandType,
        /// Its dimensions.
        found: Vec<u32>,
    },
    /// A constant that is longer or shorter than type and dimensions say (contract: EXT-5).
    #[error("constant {operand} ({operand_type}) has {found} bytes, expected {expected}")]
    ConstantLength {
        /// Index of the operand in its subgraph.
        operand: u32,
        /// The extension's type.
        operand_type: OperandType,
        /// Its bytes.
        found: u32,
        /// What its type and dimensions say.
        expected: u32,
    },
    /// More bytes than a location can say (contract: EXT-5, MODEL-17).
    #[error("operand {operand} ({operand_type} {found:?}) exceeds 2^32 - 1 bytes")]
    TooLarge {
        /// Index of the operand in its subgraph.
        operand: u32,
        /// The extension's type.
        operand_type: OperandType,
        /// Its dimensions.
        found: Vec<u32>,
    },
}

impl ExtensionTypes {
    /// What these extensions say of a model whose table of extensions is valid.
    pub fn of(model: &Model, offered: &[Extension]) -> Self {
        let mut known = Self::default();
        for extension in offered {
            let Some(prefixed) = model.extension_named(&extension.name) else { continue };
            known.prefixes.insert(prefixed.prefix());
            known.types.extend(
                extension.operand_types.iter().map(|it| (prefixed.with_number(it.number), *it)),
            );
        }
        known
    }

    /// Bytes that one element takes, as [`OperandType::element_size`], but for the types of the
    /// device's extensions too.
    pub fn element_size(&self, operand_type: OperandType) -> Option<u32> {
        self.find(operand_type).map(|it| it.byte_size).or_else(|| operand_type.element_size())
    }

    /// Whether it is a tensor type, as [`OperandType::is_tensor`], but for the types of the
    /// device's extensions too.
    pub fn is_tensor(&self, operand_type: OperandType) -> Option<bool> {
        self.find(operand_type).map(|it| it.is_tensor).or_else(|| operand_type.is_tensor())
    }

    fn find(&self, operand_type: OperandType) -> Option<&ExtensionOperandType> {
        match operand_type {
            OperandType::Extension(extension) => self.types.get(&extension),
            _ => None,
        }
    }

    /// Checks that the device has the extension of an operation, if that is one of an extension.
    pub(crate) fn check_operation(
        &self,
        model: &Model,
        operation_type: OperationType,
    ) -> Result<(), ExtensionObstacle> {
        match operation_type {
            OperationType::Extension(it) if !self.prefixes.contains(&it.prefix()) => {
                Err(ExtensionObstacle::Operation { name: name(model, it) })
            }
            _ => Ok(()),
        }
    }

    /// Checks an operand if it is of an extension's type. `index` is for messages.
    pub(crate) fn check_operand(
        &self,
        model: &Model,
        index: u32,
        operand: &Operand,
    ) -> Result<(), ExtensionObstacle> {
        let operand_type = operand.operand_type;
        let OperandType::Extension(extension) = operand_type else { return Ok(()) };
        let Some(known) = self.types.get(&extension) else {
            let (name, number) = (name(model, extension), extension.number());
            return Err(ExtensionObstacle::Type { operand: index, name, number });
        };
        let found = || operand.dimensions.clone();
        if !known.is_tensor && !operand.dimensions.is_empty() {
            let found = found();
            return Err(ExtensionObstacle::ScalarDimensions {
                operand: index,
                operand_type,
                found,
            });
        }
        let lengths = operand.dimensions.iter().filter(|length| **length != 0);
        let Some(size) = lengths.copied().try_fold(known.byte_size, u32::checked_mul) else {
            return Err(ExtensionObstacle::TooLarge {
                operand: index,
                operand_type,
                found: found(),
            });
        };
        if !operand.lifetime.is_constant() {
            return Ok(());
        }
        if known.is_tensor && !operand.has_known_dimensions() {
            let found = found();
            return Err(ExtensionObstacle::ConstantDimensions {
                operand: index,
                operand_type,
                found,
            });
        }
        if operand.location.length != size {
            return Err(ExtensionObstacle::ConstantLength {
                operand: index,
                operand_type,
                found: operand.location.length,
                expected: size,
            });
        }
        Ok(())
    }
}

/// The name of a valid model's extension.
fn name(model: &Model, extension: ExtensionType) -> String {
    model.extension_name(extension).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnhal_hal::{DataLocation, ExtensionNameAndPrefix, ExtraParams, OperandLifeTime};

    const SCALAR: ExtensionOperandType =
        ExtensionOperandType { number: 1, is_tensor: false, byte_size: 3 };
    const TENSOR: ExtensionOperandType =
        ExtensionOperandType { number: 2, is_tensor: true, byte_size: 12 };

    fn offered() -> Vec<Extension> {
        vec![Extension { name: "a.b".to_owned(), operand_types: vec![SCALAR, TENSOR] }]
    }

    fn model() -> Model {
        let row = |name: &str, prefix| ExtensionNameAndPrefix { name: name.to_owned(), prefix };
        Model { extension_name_to_prefix: vec![row("c.d", 1), row("a.b", 7)], ..Model::default() }
    }

    fn word(prefix: u16, number: u16) -> ExtensionType {
        ExtensionType::new(prefix, number).unwrap()
    }

    fn check(operand: &Operand) -> Result<(), ExtensionObstacle> {
        ExtensionTypes::of(&model(), &offered()).check_operand(&model(), 4, operand)
    }

    fn operand(number: u16, dimensions: &[u32]) -> Operand {
        Operand {
            operand_type: OperandType::Extension(word(7, number)),
            dimensions: dimensions.to_vec(),
            number_of_consumers: 0,
            scale: 0.0,
            zero_point: 0,
            lifetime: OperandLifeTime::TemporaryVariable,
            location: DataLocation::default(),
            extra_params: ExtraParams::None,
        }
    }

    fn constant(number: u16, dimensions: &[u32], length: u32) -> Operand {
        let mut operand = operand(number, dimensions);
        operand.lifetime = OperandLifeTime::ConstantCopy;
        operand.location.length = length;
        operand
    }

    #[test]
    fn ext_5_a_model_says_which_prefix_stands_for_the_devices_extension() {
        let types = ExtensionTypes::of(&model(), &offered());
        let ours = OperandType::Extension(word(7, 2));
        assert_eq!((types.element_size(ours), types.is_tensor(ours)), (Some(12), Some(true)));
        let scalar = OperandType::Extension(word(7, 1));
        assert_eq!((types.element_size(scalar), types.is_tensor(scalar)), (Some(3), Some(false)));
        // The same number of another extension, and another number of ours.
        for other in [word(1, 2), word(7, 3)].map(OperandType::Extension) {
            assert_eq!((types.element_size(other), types.is_tensor(other)), (None, None));
        }
        let ordinary = OperandType::TensorFloat32;
        assert_eq!(
            (types.element_size(ordinary), types.is_tensor(ordinary)),
            (Some(4), Some(true))
        );
    }

    #[test]
    fn ext_5_what_fits_passes() {
        let good = [
            operand(1, &[]),
            operand(2, &[]),
            operand(2, &[0, 5]),
            constant(1, &[], 3),
            constant(2, &[2, 3], 72),
        ];
        for operand in good {
            assert_eq!(check(&operand), Ok(()), "{operand:?}");
        }
    }

    #[test]
    fn ext_5_what_does_not_fit_is_named() {
        let tensor = OperandType::Extension(word(7, 2));
        let scalar = OperandType::Extension(word(7, 1));
        let cases = [
            (
                operand(1, &[1]),
                ExtensionObstacle::ScalarDimensions {
                    operand: 4,
                    operand_type: scalar,
                    found: vec![1],
                },
            ),
            (
                constant(1, &[], 4),
                ExtensionObstacle::ConstantLength {
                    operand: 4,
                    operand_type: scalar,
                    found: 4,
                    expected: 3,
                },
            ),
            (
                constant(2, &[2], 12),
                ExtensionObstacle::ConstantLength {
                    operand: 4,
                    operand_type: tensor,
                    found: 12,
                    expected: 24,
                },
            ),
            (
                constant(2, &[2, 0], 24),
                ExtensionObstacle::ConstantDimensions {
                    operand: 4,
                    operand_type: tensor,
                    found: vec![2, 0],
                },
            ),
            (
                constant(2, &[], 12),
                ExtensionObstacle::ConstantDimensions {
                    operand: 4,
                    operand_type: tensor,
                    found: vec![],
                },
            ),
            (
                operand(2, &[0x1556_0000, 0]),
                ExtensionObstacle::TooLarge {
                    operand: 4,
                    operand_type: tensor,
                    found: vec![0x1556_0000, 0],
                },
            ),
        ];
        for (operand, expected) in cases {
            assert_eq!(check(&operand), Err(expected));
        }
    }

    #[test]
    fn ext_6_words_that_the_device_lacks_are_named() {
        let types = ExtensionTypes::of(&model(), &offered());
        let operation = |word| types.check_operation(&model(), OperationType::Extension(word));
        assert_eq!(operation(word(7, 99)), Ok(()));
        assert_eq!(
            operation(word(1, 0)).unwrap_err().to_string(),
            "the device does not offer extension \"c.d\""
        );
        let mut foreign = operand(2, &[]);
        foreign.operand_type = OperandType::Extension(word(1, 2));
        assert_eq!(
            check(&foreign).unwrap_err().to_string(),
            "operand 4 is of type 2 of extension \"c.d\", which is not offered"
        );
        assert!(matches!(check(&operand(3, &[])), Err(ExtensionObstacle::Type { number: 3, .. })));
    }
}
