//! Buffers that the driver manages (contract: sections 13 and 14).
//!
//! | module | contents |
//! |---|---|
//! | `tokens` | which token stands for which buffer |
//! | here | the buffer itself and its states |
//!
//! A buffer is uninitialized until something is copied in or an execution that writes it succeeds.
//! Its storage appears when its size is known: at once, or with the first value. A value never
//! changes its storage's size, so an execution that still reads an older value of another shape
//! keeps what it was given (contract: ALLOC-8, CONC-3).

pub(crate) mod tokens;

use crate::error::MemoryUse;
use crate::memory::{Charge, Ledger};
use crate::owner::Owner;
use nnhal_hal::client::{AtLeaving, Held, Holding};
use nnhal_hal::memory::MemoryError;
use nnhal_hal::{Buffer, Client, Error, Memory, Operand, Result};
use nnhal_ops::Shape;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that are copied at a time.
const PORTION: u64 = 1 << 16;

/// A use of a buffer: an argument of a prepared model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Role {
    /// The prepared model's number, which is never used again (contract: ALLOC-9).
    pub model: u64,
    pub direction: Direction,
    /// Index among the inputs or outputs.
    pub index: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Direction {
    Input,
    Output,
}

/// A buffer behind its token.
#[derive(Debug)]
pub(crate) struct ManagedBuffer {
    token: u32,
    owner: Owner,
    client: Client,
    /// An operand of one of its roles; the others are of the same type.
    operand: Operand,
    /// What description and roles say together (contract: ALLOC-7).
    shape: Shape,
    /// Sorted.
    roles: Vec<Role>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// As long as the value, and at least one byte.
    storage: Option<Storage>,
    /// The value's; `None`: uninitialized.
    dimensions: Option<Vec<u32>>,
}

/// Memory for a value, which counts as the client's while anybody uses it.
#[derive(Debug, Clone)]
pub(crate) struct Storage {
    pub memory: Memory,
    _charge: Arc<Charge>,
}

impl Storage {
    fn new(client: &Client, size: u64) -> Result<Self> {
        let size = size.max(1);
        let charge = Ledger::of_client(client).charge(size, MemoryUse::Buffer)?;
        let memory = Memory::allocate(size).map_err(memory_failure)?;
        Ok(Self { memory, _charge: Arc::new(charge) })
    }
}

/// Makes a buffer, whose value has this many bytes if that is known.
pub(crate) fn allocate(
    owner: Owner,
    client: Client,
    operand: Operand,
    shape: Shape,
    roles: BTreeSet<Role>,
    size: Option<u64>,
) -> Result<Arc<dyn Buffer>> {
    let held = client.hold(Holding::Buffers, 1)?;
    // What is not known yet is allocated with the first value (contract: ALLOC-7).
    let storage = size.map(|size| Storage::new(&client, size)).transpose()?;
    let state = Mutex::new(State { storage, dimensions: None });
    let roles = roles.into_iter().collect();
    tokens::register(|token| ManagedBuffer { token, owner, client, operand, shape, roles, state })
        .map(|buffer| Arc::new(BufferHandle::new(buffer, held)) as Arc<dyn Buffer>)
        .ok_or_else(|| Error::failure("no token is free"))
}

/// What a buffer holds.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub storage: Storage,
    pub dimensions: Vec<u32>,
}

impl ManagedBuffer {
    /// Stands for it in requests.
    pub(crate) fn token(&self) -> u32 {
        self.token
    }

    /// Whether it was allocated for this use.
    pub(crate) fn has_role(&self, role: Role) -> bool {
        self.roles.binary_search(&role).is_ok()
    }

    /// The dimensions it was allocated with, as far as they are known.
    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// What it holds; `None` while it is uninitialized.
    pub(crate) fn content(&self) -> Option<Content> {
        let state = self.state();
        let (storage, dimensions) = (state.storage.clone()?, state.dimensions.clone()?);
        Some(Content { storage, dimensions })
    }

    /// Storage for a value of `size` bytes.
    pub(crate) fn storage(&self, size: u64) -> Result<Storage> {
        let mut state = self.state();
        let fits = |storage: &&Storage| storage.memory.size() == size.max(1);
        if let Some(storage) = state.storage.as_ref().filter(fits) {
            return Ok(storage.clone());
        }
        let storage = Storage::new(&self.client, size)?;
        // The old value has lost its place.
        *state = State { storage: Some(storage.clone()), dimensions: None };
        Ok(storage)
    }

    /// The value in this storage is whole.
    pub(crate) fn initialize(&self, storage: &Storage, dimensions: Vec<u32>) {
        let mut state = self.state();
        // Who has left holds nothing any more. This is looked at under the lock, which `release` takes
        // after the client has left.
        if !self.client.has_left() {
            *state = State { storage: Some(storage.clone()), dimensions: Some(dimensions) };
        }
    }

    /// Forgets token and value, because the client has left.
    fn release(&self) {
        tokens::forget(self.token);
        *self.state() = State::default();
    }

    /// The value is of no use any more (contract: BUF-1).
    pub(crate) fn uninitialize(&self) {
        self.state().dimensions = None;
    }

    /// Bytes of a value of these dimensions.
    pub(crate) fn byte_size(&self, dimensions: &[u32]) -> Option<u64> {
        let element = self.operand.operand_type.element_size().filter(|size| *size > 0)?;
        Shape::known(dimensions.iter().copied()).element_count()?.checked_mul(u64::from(element))
    }

    /// A state is replaced as a whole, so a panic elsewhere does not spoil it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the dimensions given to `copy_from` amount to (contract: BUF-4).
    fn effective_dimensions(&self, dimensions: &[u32]) -> Result<Vec<u32>> {
        let expected = &self.shape;
        if dimensions.is_empty() {
            return expected.to_known().ok_or_else(|| {
                Error::invalid(format!(
                    "the buffer has shape {expected}: the value's dimensions must be said"
                ))
            });
        }
        let found = Shape::known(dimensions.iter().copied());
        if dimensions.contains(&0) || expected.merge(&found).is_none() {
            return Err(Error::invalid(format!(
                "dimensions {dimensions:?} do not fit the buffer's {expected}"
            )));
        }
        Ok(dimensions.to_vec())
    }

    fn copy_in(&self, source: &Memory, dimensions: &[u32]) -> Result<()> {
        let dimensions = self.effective_dimensions(dimensions)?;
        let size = self.byte_size(&dimensions);
        expect_size("source", source, size.unwrap_or(u64::MAX))?;
        let storage = self.storage(source.size())?;
        copy(source, &storage.memory)?;
        self.initialize(&storage, dimensions);
        Ok(())
    }
}

/// A client's handle; its token is forgotten with it.
#[derive(Debug)]
pub(crate) struct BufferHandle {
    buffer: Arc<ManagedBuffer>,
    _held: Held,
    _at_leaving: AtLeaving,
}

impl BufferHandle {
    /// `held` counts the buffer.
    fn new(buffer: Arc<ManagedBuffer>, held: Held) -> Self {
        let weak = Arc::downgrade(&buffer);
        let _at_leaving = buffer.client.at_leaving(move || {
            if let Some(buffer) = weak.upgrade() {
                buffer.release();
            }
        });
        Self { buffer, _held: held, _at_leaving }
    }
}

impl Buffer for BufferHandle {
    fn token(&self) -> u32 {
        self.buffer.token
    }

    fn copy_to(&self, destination: &Memory) -> Result<()> {
        let Some(content) = self.buffer.content() else {
            return Err(Error::failure("the buffer is uninitialized"));
        };
        let size = self.buffer.byte_size(&content.dimensions);
        expect_size("destination", destination, size.unwrap_or(u64::MAX))?;
        if !destination.is_writable() {
            return Err(Error::invalid("the destination is read-only"));
        }
        copy(&content.storage.memory, destination)
    }

    fn copy_from(&self, source: &Memory, dimensions: &[u32]) -> Result<()> {
        self.buffer.copy_in(source, dimensions).inspect_err(|_| self.buffer.uninitialize())
    }

    fn discard(&self) {
        self.buffer.uninitialize();
    }
}

impl Drop for BufferHandle {
    fn drop(&mut self) {
        tokens::forget(self.buffer.token);
    }
}

fn expect_size(what: &str, memory: &Memory, expected: u64) -> Result<()> {
    let found = memory.size();
    if found == expected {
        return Ok(());
    }
    Err(Error::invalid(format!("the {what} has {found} bytes, the buffer's value {expected}")))
}

fn memory_failure(error: MemoryError) -> Error {
    Error::new(error.status(), error)
}

/// Copies as many bytes as both have; they are equally long.
fn copy(source: &Memory, destination: &Memory) -> Result<()> {
    let (from, to) =
        (source.view().map_err(memory_failure)?, destination.view().map_err(memory_failure)?);
    let size = from.size().min(to.size());
    let mut offset = 0;
    while offset < size {
        let portion =
            from.read_to_vec(offset, PORTION.min(size - offset)).map_err(memory_failure)?;
        to.write(offset, &portion).map_err(memory_failure)?;
        offset += portion.len() as u64;
    }
    to.flush().map_err(memory_failure)
}
