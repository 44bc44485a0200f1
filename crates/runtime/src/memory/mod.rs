//! [`Memory`]: memory of the client, and memory that a device keeps for it.

mod backing;
mod copy;
mod held;
mod idle;
mod role;

use crate::devices::Devices;
use crate::error::{Error, Result, ResultCode};
use crate::operand::{byte_size, combine_dimensions, is_fully_specified, is_tensor};
pub(crate) use backing::Backing;
pub(crate) use held::{allocate, copy_of};
pub(crate) use idle::{IdleMemory, LONGEST_KEPT, MOST_KEPT};
use nnhal_hal::memory::{MemoryError, Protection};
use nnhal_hal::{ExtraParams, Operand, OperandType};
pub(crate) use role::{Direction, Role};
use std::collections::HashSet;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Memory for constants, inputs and outputs. Clones are the same memory.
#[derive(Clone)]
pub struct Memory(Arc<Inner>);

struct Inner {
    backing: Backing,
    /// Of memory made from a description.
    opaque: Option<Opaque>,
}

/// What is known of memory whose layout is no one's business: it holds one operand's value.
struct Opaque {
    roles: HashSet<Role>,
    operand: OperandKind,
    /// As it was made; 0 and empty where unknown.
    dimensions: Vec<u32>,
    content: Mutex<Content>,
}

/// Type and quantization of the operand that memory is made for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OperandKind {
    pub(crate) operand_type: OperandType,
    pub(crate) is_tensor: bool,
    /// Bytes of an element; `None` if not known.
    element_size: Option<u32>,
    scale: f32,
    zero_point: i32,
    extra_params: ExtraParams,
}

impl OperandKind {
    pub(crate) fn of(devices: &Devices, operand: &Operand) -> Self {
        Self {
            operand_type: operand.operand_type,
            is_tensor: is_tensor(devices, operand.operand_type),
            element_size: byte_size(devices, operand.operand_type, &[1]),
            scale: operand.scale,
            zero_point: operand.zero_point,
            extra_params: operand.extra_params.clone(),
        }
    }

    /// Bytes of a value of these dimensions; `None` if that is not known.
    pub(crate) fn byte_size(&self, dimensions: &[u32]) -> Option<u32> {
        let element = self.element_size?;
        if !self.is_tensor {
            return Some(element);
        }
        let lengths = Some(dimensions).filter(|lengths| is_fully_specified(lengths))?;
        lengths.iter().copied().try_fold(element, u32::checked_mul)
    }
}

#[derive(Debug, Clone)]
struct Content {
    /// Whether it holds a value.
    initialized: bool,
    /// Of the value.
    dimensions: Vec<u32>,
}

impl Memory {
    /// A part of a file: `size` bytes from `offset` on, which must be there when they are first used. `protection` is
    /// `PROT_READ`, `PROT_WRITE` or both, as bits.
    ///
    /// # Errors
    /// `BAD_DATA` if the descriptor is no memory, or does not allow the protection;
    /// `UNMAPPABLE` if the system refuses; `OUT_OF_MEMORY` if it has holes whose pages would be more
    /// than the runtime may take.
    pub fn from_fd(fd: OwnedFd, protection: i32, offset: usize, size: usize) -> Result<Self> {
        let protection = Protection::from_bits(protection).map_err(memory_error)?;
        // As Android has it: whether the file is as long is found out by whoever uses the memory.
        let (offset, size) = (offset as u64, size as u64);
        let memory = nnhal_hal::Memory::from_file_to_grow(fd, protection, offset, size);
        let memory = memory.map_err(memory_error)?;
        held::count_holes(&memory)?;
        Ok(Self::from_shared(memory))
    }

    /// Memory that devices share.
    pub fn from_shared(memory: nnhal_hal::Memory) -> Self {
        Self(Arc::new(Inner { backing: Backing::Shared(memory), opaque: None }))
    }

    /// The memory that devices share, unless it is a device's own.
    pub fn shared(&self) -> Option<&nnhal_hal::Memory> {
        match &self.0.backing {
            Backing::Shared(memory) => Some(memory),
            Backing::Buffer(_) => None,
        }
    }

    /// Whether the bytes are kept by a device.
    pub fn is_device_memory(&self) -> bool {
        matches!(self.0.backing, Backing::Buffer(_))
    }

    /// Copies the value of one memory into another.
    ///
    /// # Errors
    /// `BAD_DATA` if the one holds no value, or sizes, types or dimensions differ; what devices
    /// answer.
    pub fn copy(source: &Self, destination: &Self) -> Result<()> {
        copy::copy(source, destination)
    }

    pub(crate) fn backing(&self) -> &Backing {
        &self.0.backing
    }

    pub(crate) fn opaque(
        backing: Backing,
        roles: HashSet<Role>,
        operand: OperandKind,
        dimensions: Vec<u32>,
    ) -> Self {
        let content = Content { initialized: false, dimensions: dimensions.clone() };
        let content = Mutex::new(content);
        let opaque = Some(Opaque { roles, operand, dimensions, content });
        Self(Arc::new(Inner { backing, opaque }))
    }

    /// Checks that a constant may be there.
    pub(crate) fn expect_constant(
        &self,
        offset: usize,
        length: usize,
    ) -> Result<&nnhal_hal::Memory> {
        match (&self.0.backing, &self.0.opaque) {
            (Backing::Shared(memory), None) => {
                expect_range(memory, offset, length)?;
                Ok(memory)
            }
            _ => Err(Error::bad_data("memory from a description cannot hold constants")),
        }
    }

    /// Checks that an argument may be there, whose type the execution says to have these
    /// dimensions, and returns its length; none for the whole buffer of a device.
    pub(crate) fn expect_argument(
        &self,
        role: Role,
        dimensions: Option<&[u32]>,
        offset: usize,
        length: usize,
    ) -> Result<Option<usize>> {
        let Some(opaque) = &self.0.opaque else {
            if let Backing::Shared(memory) = &self.0.backing {
                expect_range(memory, offset, length)?;
            }
            return Ok(Some(length));
        };
        if !opaque.roles.contains(&role) {
            return Err(Error::bad_data(format!("the memory was not made for {role}")));
        }
        if (offset, length) != (0, 0) {
            return Err(Error::bad_data(format!(
                "memory from a description is used as a whole, not {length} bytes at {offset}"
            )));
        }
        if let Some(dimensions) = dimensions {
            let fits = opaque.operand.is_tensor || dimensions.is_empty();
            if !fits || combine_dimensions(dimensions, &opaque.dimensions).is_none() {
                return Err(Error::bad_data(format!(
                    "dimensions {dimensions:?} are not those of the memory, {:?}",
                    opaque.dimensions
                )));
            }
        }
        match &self.0.backing {
            Backing::Shared(memory) => {
                Ok(Some(usize::try_from(memory.size()).unwrap_or(usize::MAX)))
            }
            Backing::Buffer(_) => Ok(None),
        }
    }

    /// Checks that the memory holds a value of these dimensions, if it is made from a description.
    pub(crate) fn expect_value(&self, dimensions: &[u32]) -> Result<()> {
        let Some(opaque) = &self.0.opaque else { return Ok(()) };
        let content = opaque.lock();
        if !content.initialized {
            return Err(Error::failed("memory is used as input, but holds no value"));
        }
        if content.dimensions == dimensions {
            return Ok(());
        }
        Err(Error::failed(format!(
            "memory holds a value of dimensions {:?}, but is used with {dimensions:?}",
            content.dimensions
        )))
    }

    /// Settles what the memory holds after an execution, or an attempt at one. `None`: nothing.
    ///
    /// # Errors
    /// `OP_FAILED` for dimensions that it cannot have.
    pub(crate) fn settle(&self, dimensions: Option<&[u32]>) -> Result<()> {
        let Some(opaque) = &self.0.opaque else { return Ok(()) };
        let mut content = opaque.lock();
        content.initialized = false;
        if let Some(dimensions) = dimensions {
            let Some(combined) = combine_dimensions(dimensions, &opaque.dimensions) else {
                return Err(Error::failed(format!(
                    "an output has dimensions {dimensions:?}, its memory {:?}",
                    opaque.dimensions
                )));
            };
            content.dimensions = combined;
            content.initialized = true;
        }
        Ok(())
    }
}

impl Opaque {
    /// Nothing is left half done under the lock.
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part of the client's memory must be named, and are within it.
fn expect_range(memory: &nnhal_hal::Memory, offset: usize, length: usize) -> Result<()> {
    let size = memory.size();
    if (offset, length) == (0, 0) {
        return Err(Error::bad_data("a part of memory of 0 bytes at 0"));
    }
    match (offset as u64).checked_add(length as u64) {
        Some(end) if end <= size => Ok(()),
        _ => Err(Error::bad_data(format!("{length} bytes at {offset} of {size}"))),
    }
}

pub(crate) fn memory_error(error: MemoryError) -> Error {
    let code = match &error {
        MemoryError::System { exhausted: true, .. }
        | MemoryError::NoRoom { .. }
        | MemoryError::Limit(_) => ResultCode::OutOfMemory,
        MemoryError::System { .. } | MemoryError::NotMappable { .. } => ResultCode::Unmappable,
        error => error.status().into(),
    };
    Error::new(code, error.to_string())
}

impl fmt::Debug for Memory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.backing {
            Backing::Shared(memory) => write!(formatter, "Memory({} bytes)", memory.size()),
            Backing::Buffer(buffer) => write!(formatter, "Memory(buffer {})", buffer.token()),
        }
    }
}
