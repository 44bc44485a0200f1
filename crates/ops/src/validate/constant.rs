//! [`Constant`]: the value of a constant operand, and what may be known of it before running.

use crate::call::Value;
use nnhal_hal::memory::{MemoryError, MemoryView};
use nnhal_hal::{Memory, Model, Operand, OperandLifeTime, OperandType};
use std::borrow::Cow;
use std::sync::Arc;

/// Up to this many bytes the value of a constant is looked at while the model is validated; and if
/// it is in a pool and can decide an index, a branch or a shape, it is copied then. Far above
/// what any list of axes or lengths needs, and it bounds copies and work by the size of the model,
/// whatever the pools hold and however many operations read the same constant (contract: SEC-3).
pub const PARAMETER_BYTES: u32 = 4096;

/// The value of an operand of lifetime `CONSTANT_COPY`, `CONSTANT_REFERENCE` or `SUBGRAPH`.
///
/// Cloning is cheap: bytes are shared.
#[derive(Debug, Clone)]
pub struct Constant(Source);

#[derive(Debug, Clone)]
enum Source {
    /// Bytes that no one else can change: those of the model itself, or a copy.
    Private { bytes: Arc<[u8]>, start: usize, end: usize },
    /// Bytes that the client may change at any time.
    Pool { memory: Memory, offset: u32, length: u32 },
}

impl Constant {
    /// The value of `operand`, whose location was checked; `None` if it is no constant. A
    /// parameter in a pool is copied (contract: SEC-1).
    pub(super) fn of(model: &Model, operand: &Operand) -> Result<Option<Self>, MemoryError> {
        let location = operand.location;
        let (offset, length) = (location.offset, location.length);
        let source = match operand.lifetime {
            OperandLifeTime::ConstantCopy => Source::Private {
                bytes: Arc::clone(&model.operand_values),
                start: offset as usize,
                end: offset as usize + length as usize,
            },
            OperandLifeTime::ConstantReference => {
                let Some(memory) = model.pools.get(location.pool_index as usize) else {
                    return Ok(None);
                };
                if is_parameter(operand.operand_type) && length <= PARAMETER_BYTES {
                    let bytes = memory.view()?.read_to_vec(offset.into(), length.into())?;
                    Source::Private { end: bytes.len(), bytes: bytes.into(), start: 0 }
                } else {
                    Source::Pool { memory: memory.clone(), offset, length }
                }
            }
            OperandLifeTime::Subgraph => Source::Private {
                bytes: offset.to_le_bytes().into(),
                start: 0,
                end: size_of_val(&offset),
            },
            _ => return Ok(None),
        };
        Ok(Some(Self(source)))
    }

    /// Number of bytes.
    pub fn length(&self) -> usize {
        match &self.0 {
            Source::Private { start, end, .. } => end - start,
            Source::Pool { length, .. } => *length as usize,
        }
    }

    /// The bytes, if they are private to this process. Always so for scalars, and for integer and
    /// boolean tensors of up to [`PARAMETER_BYTES`]: such a value must be taken from here, because
    /// this is the one that was validated. Longer ones in a pool were not looked at: whoever
    /// decides by them reads them once and checks what was read.
    pub fn known(&self) -> Option<&[u8]> {
        match &self.0 {
            Source::Private { bytes, start, end } => bytes.get(*start..*end),
            Source::Pool { .. } => None,
        }
    }

    /// The pool that still holds the bytes, and the offset there, if they are not private.
    ///
    /// # Errors
    /// The pool cannot be opened.
    pub fn in_pool(&self) -> Option<Result<(MemoryView, u64), MemoryError>> {
        match &self.0 {
            Source::Private { .. } => None,
            Source::Pool { memory, offset, .. } => {
                Some(memory.view().map(|view| (view, u64::from(*offset))))
            }
        }
    }

    /// The bytes as they are now; copied if they are in a pool. Two readings of a pool can differ.
    ///
    /// # Errors
    /// The pool cannot be read.
    pub fn read(&self) -> Result<Cow<'_, [u8]>, MemoryError> {
        match &self.0 {
            Source::Private { bytes, start, end } => Ok(Cow::Borrowed(&bytes[*start..*end])),
            Source::Pool { memory, offset, length } => {
                memory.view()?.read_to_vec(u64::from(*offset), u64::from(*length)).map(Cow::Owned)
            }
        }
    }

    /// What an operation knows of it while the model is validated.
    pub(super) fn value(&self) -> Value<'_> {
        match self.known() {
            Some(bytes) if bytes.len() <= PARAMETER_BYTES as usize => Value::Known(bytes),
            _ => Value::Given,
        }
    }
}

/// Whether values of a type can decide an index, a branch or a shape.
fn is_parameter(operand_type: OperandType) -> bool {
    operand_type.is_scalar()
        || matches!(
            operand_type,
            OperandType::TensorInt32 | OperandType::TensorBool8 | crate::extension::TENSOR_INT64
        )
}
