//! What must hold of each operand by itself (contract: MODEL-5 to MODEL-17, EXT-3 to EXT-5).

use super::extension::Prefixes;
use crate::extension::element_size;
use crate::extension::types::type_row;
use crate::shape::MAX_RANK;
use nnhal_hal::memory::MemoryError;
use nnhal_hal::{
    ChannelQuant, DataLocation, ErrorStatus, ExtraParams, Model, Operand, OperandLifeTime,
    OperandType,
};

/// What is wrong with an operand in itself.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OperandError {
    /// More axes than a tensor can have (contract: SEC-3). With more, all but the first 32 would
    /// have to be of length 1 to keep to MODEL-17.
    #[error("it has {found} axes, expected at most {most}")]
    TooManyAxes {
        /// Number of axes.
        found: usize,
        /// Most that are accepted.
        most: usize,
    },
    /// A scalar with dimensions (contract: MODEL-5).
    #[error("a scalar has dimensions {found:?}, expected none")]
    ScalarDimensions {
        /// The dimensions.
        found: Vec<u32>,
    },
    /// A constant whose size is not known (contract: MODEL-7).
    #[error("a constant has dimensions {found:?}, expected all known and above 0")]
    ConstantDimensions {
        /// The dimensions.
        found: Vec<u32>,
    },
    /// More than 2^32 - 1 bytes (contract: MODEL-17).
    #[error("dimensions {found:?} exceed 2^32 - 1 bytes")]
    TooLarge {
        /// The dimensions.
        found: Vec<u32>,
    },
    /// The scale is not one that the type has (contract: MODEL-8, EXT-4).
    #[error("the scale is {found}, expected {expected}")]
    Scale {
        /// The scale.
        found: f32,
        /// What the type asks for.
        expected: &'static str,
    },
    /// The zero point is not one that the type has (contract: MODEL-9, EXT-4).
    #[error("the zero point is {found}, expected {least} to {greatest}")]
    ZeroPoint {
        /// The zero point.
        found: i32,
        /// The least that the type has.
        least: i32,
        /// The greatest that the type has.
        greatest: i32,
    },
    /// Extra parameters of the wrong kind (contract: MODEL-10, EXT-4).
    #[error("the extra parameters are {found}, expected {expected}")]
    ExtraParams {
        /// Their kind.
        found: &'static str,
        /// What the type asks for.
        expected: &'static str,
    },
    /// The axis of the channels does not exist (contract: MODEL-11).
    #[error("the channels are along axis {found} of {rank}")]
    ChannelDim {
        /// The axis.
        found: u32,
        /// How many axes there are.
        rank: usize,
    },
    /// Another number of channel scales than of channels, or an unknown number of channels
    /// (contract: MODEL-11).
    #[error("there are {found} channel scales, expected {expected}, which must be above 0")]
    ChannelCount {
        /// Number of scales.
        found: usize,
        /// Length of the channels' axis.
        expected: u32,
    },
    /// A channel scale that is none (contract: MODEL-11).
    #[error("the scale of channel {channel} is {found}, expected a number above 0")]
    ChannelScale {
        /// Index along the channels' dimension.
        channel: usize,
        /// Its scale.
        found: f32,
    },
    /// Type `SUBGRAPH` without the lifetime `SUBGRAPH`, or the reverse (contract: MODEL-12).
    #[error("the lifetime is {found}, but type and lifetime SUBGRAPH go together")]
    SubgraphLifeTime {
        /// The lifetime.
        found: OperandLifeTime,
    },
    /// A location where there is nothing to locate (contract: MODEL-13, MODEL-14, MODEL-16).
    #[error("the location of a {lifetime} is {found:?}, expected 0 for {expected_zero}")]
    Location {
        /// As the model declares it.
        lifetime: OperandLifeTime,
        /// The location.
        found: DataLocation,
        /// Which numbers must be 0.
        expected_zero: &'static str,
    },
    /// A pool that does not exist (contract: MODEL-14).
    #[error("the value is in pool {found}, but there are {pools}")]
    NoSuchPool {
        /// Index of the pool.
        found: u32,
        /// The number of the model's pools.
        pools: usize,
    },
    /// A value that reaches beyond its pool, or beyond the model's values (contract: MODEL-14).
    #[error("the value ends at byte {end} of {size}")]
    OutsidePool {
        /// The byte behind its last.
        end: u64,
        /// Bytes that there are.
        size: u64,
    },
    /// Another number of bytes than type and dimensions say (contract: MODEL-15).
    #[error("the value has {found} bytes, expected {expected}")]
    Length {
        /// Bytes.
        found: u32,
        /// Bytes that type and dimensions say.
        expected: u32,
    },
    /// A subgraph that does not exist (contract: MODEL-16).
    #[error("it refers to subgraph {found}, but there are {subgraphs}")]
    NoSuchSubgraph {
        /// Index of the subgraph.
        found: u32,
        /// How many referenced ones there are.
        subgraphs: usize,
    },
    /// An extension's type whose prefix stands for nothing (contract: EXT-3).
    #[error("prefix {prefix:#06x} stands for no extension")]
    UnmappedPrefix {
        /// The upper 16 bits of the type's code.
        prefix: u16,
    },
    /// A value that must be known, in a pool that cannot be read (contract: PREP-12).
    #[error("pool {pool} cannot be read: {error}")]
    Unreadable {
        /// Index of the pool.
        pool: u32,
        /// Why not.
        error: MemoryError,
    },
}

impl OperandError {
    pub(super) fn rule(&self, operand_type: OperandType) -> &'static str {
        let is_extension = matches!(operand_type, OperandType::Extension(_));
        match self {
            Self::TooManyAxes { .. } => "SEC-3",
            Self::ScalarDimensions { .. } => "MODEL-5",
            Self::ConstantDimensions { .. } => "MODEL-7",
            Self::TooLarge { .. } => "MODEL-17",
            Self::Scale { .. } | Self::ZeroPoint { .. } | Self::ExtraParams { .. }
                if is_extension =>
            {
                "EXT-4"
            }
            Self::Scale { .. } => "MODEL-8",
            Self::ZeroPoint { .. } => "MODEL-9",
            Self::ExtraParams { .. } => "MODEL-10",
            Self::ChannelDim { .. } | Self::ChannelCount { .. } | Self::ChannelScale { .. } => {
                "MODEL-11"
            }
            Self::SubgraphLifeTime { .. } => "MODEL-12",
            Self::Location { lifetime, .. } => match lifetime {
                OperandLifeTime::Subgraph => "MODEL-16",
                OperandLifeTime::ConstantCopy => "MODEL-14",
                _ => "MODEL-13",
            },
            Self::NoSuchPool { .. } | Self::OutsidePool { .. } => "MODEL-14",
            Self::Length { .. } => "MODEL-15",
            Self::NoSuchSubgraph { .. } => "MODEL-16",
            Self::UnmappedPrefix { .. } => "EXT-3",
            Self::Unreadable { .. } => "PREP-12",
        }
    }

    /// The status that goes with it.
    pub(super) fn status(&self) -> ErrorStatus {
        match self {
            Self::Unreadable { error, .. } => error.status(),
            _ => ErrorStatus::InvalidArgument,
        }
    }
}

/// Checks an operand.
pub(super) fn check(
    model: &Model,
    prefixes: &Prefixes,
    operand: &Operand,
) -> Result<(), OperandError> {
    if let OperandType::Extension(extension) = operand.operand_type
        && let Some(prefix) = prefixes.unmapped(extension)
    {
        return Err(OperandError::UnmappedPrefix { prefix });
    }
    if (operand.operand_type == OperandType::Subgraph)
        != (operand.lifetime == OperandLifeTime::Subgraph)
    {
        return Err(OperandError::SubgraphLifeTime { found: operand.lifetime });
    }
    check_type(operand)?;
    if !operand.operand_type.is_oem() {
        check_extra_params(operand)?;
    }
    check_location(model, operand)
}

/// Checks what an operand's type, dimensions, scale and zero point say by themselves.
///
/// # Errors
/// The first rule that they break.
pub fn check_type(operand: &Operand) -> Result<(), OperandError> {
    check_dimensions(operand)?;
    if !operand.operand_type.is_oem() {
        check_scale(operand)?;
        check_zero_point(operand)?;
    }
    Ok(())
}

fn check_dimensions(operand: &Operand) -> Result<(), OperandError> {
    let dimensions = &operand.dimensions;
    if dimensions.len() > MAX_RANK {
        return Err(OperandError::TooManyAxes { found: dimensions.len(), most: MAX_RANK });
    }
    let is_tensor = match type_row(operand.operand_type) {
        // All types of our extension are.
        Some(_) => Some(true),
        None => operand.operand_type.is_tensor(),
    };
    match is_tensor {
        Some(false) if !dimensions.is_empty() => {
            Err(OperandError::ScalarDimensions { found: dimensions.clone() })
        }
        Some(true) if operand.lifetime.is_constant() && !operand.has_known_dimensions() => {
            Err(OperandError::ConstantDimensions { found: dimensions.clone() })
        }
        Some(true) if byte_size(operand).is_none() => {
            Err(OperandError::TooLarge { found: dimensions.clone() })
        }
        // Whether an extension's type is a tensor at all, only the extension knows (EXT-5).
        _ => Ok(()),
    }
}

/// Bytes of an operand of the interface's own types, or of our extension's, lengths that are not known taken as 1; `None`
/// if there are more than 2^32 - 1.
fn byte_size(operand: &Operand) -> Option<u32> {
    let element = element_size(operand.operand_type).unwrap_or(1);
    let known = operand.dimensions.iter().filter(|length| **length != 0);
    known.copied().try_fold(element, u32::checked_mul)
}

fn check_scale(operand: &Operand) -> Result<(), OperandError> {
    let found = operand.scale;
    // Written so that NaN is refused. Infinite ones are no ground to refuse a model, but nothing is computed with them.
    let (holds, expected) = match operand.operand_type {
        OperandType::TensorInt32 => (found >= 0.0, "a number, 0 or more"),
        OperandType::TensorQuant8SymmPerChannel => (found == 0.0, "0"),
        quantized if quantized.quantized_range().is_some() => (found > 0.0, "a number above 0"),
        _ => (found == 0.0, "0"),
    };
    if holds { Ok(()) } else { Err(OperandError::Scale { found, expected }) }
}

fn check_zero_point(operand: &Operand) -> Result<(), OperandError> {
    let found = operand.zero_point;
    let (least, greatest) = match operand.operand_type {
        OperandType::TensorQuant8Asymm
        | OperandType::TensorQuant16Asymm
        | OperandType::TensorQuant8AsymmSigned => {
            operand.operand_type.quantized_range().unwrap_or_default()
        }
        _ => (0, 0),
    };
    if (least..=greatest).contains(&found) {
        return Ok(());
    }
    Err(OperandError::ZeroPoint { found, least, greatest })
}

fn check_extra_params(operand: &Operand) -> Result<(), OperandError> {
    const NOTHING: &str = "none";
    const CHANNEL_QUANT: &str = "channelQuant";
    const EXTENSION: &str = "extension";
    let expected = match operand.operand_type {
        OperandType::TensorQuant8SymmPerChannel => CHANNEL_QUANT,
        OperandType::Extension(_) => "none or extension",
        _ => NOTHING,
    };
    let found = match (&operand.extra_params, operand.operand_type) {
        (ExtraParams::ChannelQuant(quant), OperandType::TensorQuant8SymmPerChannel) => {
            return check_channel_quant(operand, quant);
        }
        (ExtraParams::Extension(_), OperandType::Extension(_)) => return Ok(()),
        (ExtraParams::None, _) if expected != CHANNEL_QUANT => return Ok(()),
        (ExtraParams::None, _) => NOTHING,
        (ExtraParams::ChannelQuant(_), _) => CHANNEL_QUANT,
        (ExtraParams::Extension(_), _) => EXTENSION,
    };
    Err(OperandError::ExtraParams { found, expected })
}

/// Checks scales by channel against the operand's dimensions.
///
/// # Errors
/// The first rule that they break.
pub fn check_channel_quant(operand: &Operand, quant: &ChannelQuant) -> Result<(), OperandError> {
    let rank = operand.dimensions.len();
    let Some(channels) = operand.dimensions.get(quant.channel_dim as usize).copied() else {
        return Err(OperandError::ChannelDim { found: quant.channel_dim, rank });
    };
    let found = quant.scales.len();
    if channels == 0 || u32::try_from(found) != Ok(channels) {
        return Err(OperandError::ChannelCount { found, expected: channels });
    }
    let is_scale = |scale: f32| scale > 0.0;
    match quant.scales.iter().position(|scale| !is_scale(*scale)) {
        Some(channel) => Err(OperandError::ChannelScale { channel, found: quant.scales[channel] }),
        None => Ok(()),
    }
}

fn check_location(model: &Model, operand: &Operand) -> Result<(), OperandError> {
    let found = operand.location;
    let lifetime = operand.lifetime;
    let wrong = |expected_zero| Err(OperandError::Location { lifetime, found, expected_zero });
    let size = match lifetime {
        OperandLifeTime::ConstantCopy if found.pool_index != 0 => return wrong("the pool"),
        OperandLifeTime::ConstantCopy => model.operand_values.len() as u64,
        OperandLifeTime::ConstantReference => match model.pools.get(found.pool_index as usize) {
            Some(pool) => pool.size(),
            None => {
                let pools = model.pools.len();
                return Err(OperandError::NoSuchPool { found: found.pool_index, pools });
            }
        },
        OperandLifeTime::Subgraph if found.pool_index != 0 || found.length != 0 => {
            return wrong("pool and length");
        }
        OperandLifeTime::Subgraph if found.offset as usize >= model.referenced.len() => {
            let subgraphs = model.referenced.len();
            return Err(OperandError::NoSuchSubgraph { found: found.offset, subgraphs });
        }
        OperandLifeTime::Subgraph => return Ok(()),
        _ if found == DataLocation::default() => return Ok(()),
        _ => return wrong("pool, offset and length"),
    };
    if found.end() > size {
        return Err(OperandError::OutsidePool { end: found.end(), size });
    }
    // The values of the other types only a vendor can measure.
    let is_measured =
        element_size(operand.operand_type).is_some() && !operand.operand_type.is_oem();
    match byte_size(operand) {
        Some(expected) if is_measured && expected != found.length => {
            Err(OperandError::Length { found: found.length, expected })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
