//! [`Constant`]: the value of a constant operand, and what may be known of it before running.

use crate::call::Value;
use hal::memory::{MemoryError, MemoryView};
use hal::{Memory, Model, Operand, OperandLifeTime, OperandType};
use std::borrow::Cow;
use std::sync::Arc;

/// Up to so many bytes, a constant in a pool that can decide an index, a branch or a shape is
/// copied while the model is validated. It is far above what any list of axes or lengths needs,
/// and bounds the copies by the size of the model, whatever the pools hold (contract: SEC-3).
pub const PARAMETER_BYTES: u32 = 4096;

/// The value of an operand of lifetime `CONSTANT_COPY` or `CONSTANT_REFERENCE`.
///
/// Cloning is cheap: bytes are shared.
#[derive(Debug, Clone)]
pub struct Constant(Source);

#[derive(Debug, Clone)]
enum Source {
    /// Bytes that nobody else can change: those of the model itself, or a copy.
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
    /// boolean tensors of up to [`PARAMETER_BYTES`]: whoever needs such a value must take it from
    /// here, because it is the one that was validated.
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

    /// The bytes as they are now; copied if they lie in a pool. Two readings of a pool can differ.
    ///
    /// # Errors
    /// The pool cannot be read.
    pub fn read(&self) -> Result<Cow<'_, [u8]>, MemoryError> {
        match &self.0 {
            Source::Private { bytes, start, end } => Ok(Cow::Borrowed(&bytes[*start..*end])),
            Source::Pool { memory, offset, length } => memory
                .view()?
                .read_to_vec(u64::from(*offset), u64::from(*length))
                .map(Cow::Owned),
        }
    }

    /// What an operation may know of it before running.
    pub fn value(&self) -> Value<'_> {
        self.known().map_or(Value::NotKnown, Value::Known)
    }
}

/// Whether values of a type can decide an index, a branch or a shape.
fn is_parameter(operand_type: OperandType) -> bool {
    operand_type.is_scalar()
        || matches!(operand_type, OperandType::TensorInt32 | OperandType::TensorBool8)
}
