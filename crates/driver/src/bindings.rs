//! [`Bindings`]: the arguments of an execution, checked.
//!
//! Everything about sizes has been looked at: what an engine gets here it may use without a second
//! check. The bytes themselves belong to the client, who may change them at any time; they can
//! only be copied.

use crate::budget::Budget;
use crate::buffers::{ManagedBuffer, Storage};
use crate::delivery_error::DeliveryError;
use crate::error::{EngineError, MemoryUse};
use crate::memory::{Charge, Ledger};
use nnhal_hal::memory::{BorrowedBytes, MemoryError, MemoryView};
use nnhal_hal::{Memory, OperandType, OutputShape};
use nnhal_ops::Shape;
use std::sync::{Arc, OnceLock};

/// The arguments of one execution.
#[derive(Debug)]
pub struct Bindings {
    inputs: Vec<BoundInput>,
    outputs: Vec<BoundOutput>,
    /// Memory with a file behind it that outputs are in.
    written: Vec<MemoryView>,
    /// Counts copies of what is in files.
    charges: Vec<Charge>,
}

/// Bytes in the client's memory, which are within it.
#[derive(Debug, Clone)]
pub struct Region {
    view: MemoryView,
    offset: u64,
    length: u64,
}

/// An input of an execution.
#[derive(Debug, Clone)]
pub struct BoundInput {
    operand_type: OperandType,
    shape: Arc<Shape>,
    value: Option<Region>,
}

/// An output of an execution, which the engine delivers exactly once.
#[derive(Debug)]
pub struct BoundOutput {
    index: usize,
    operand_type: OperandType,
    /// Bytes that an element takes, if that is known.
    element_size: Option<u32>,
    shape: Arc<Shape>,
    place: Place,
    /// The client's memory, where the value is first written elsewhere.
    file: Option<Region>,
    delivered: OnceLock<Delivered>,
}

/// Where an output goes.
#[derive(Debug)]
enum Place {
    /// The client left it out.
    Nowhere,
    /// Into the client's memory.
    Client(Region),
    /// Into a buffer that the driver manages, whose storage is made when the size is known.
    Buffer(Arc<ManagedBuffer>),
}

/// What became of an output.
#[derive(Debug)]
struct Delivered {
    shape: OutputShape,
    /// In bytes.
    size: u64,
    /// The storage of its buffer.
    storage: Option<Storage>,
}

/// Where an output's bytes go.
#[derive(Debug)]
pub enum Destination {
    /// To these bytes, exactly the size of the output.
    Region(Region),
    /// Nowhere: the client's buffer is too short and gets the shape.
    TooShort,
    /// Nowhere: the client left the output out.
    NotWanted,
}

impl Bindings {
    /// `written` is the memory that outputs are in and that has to be [flushed](MemoryView::flush), each once.
    pub(crate) fn new(
        inputs: Vec<BoundInput>,
        outputs: Vec<BoundOutput>,
        written: Vec<MemoryView>,
    ) -> Self {
        Self { inputs, outputs, written, charges: Vec::new() }
    }

    /// The inputs, in the order of the main subgraph's.
    pub fn inputs(&self) -> &[BoundInput] {
        &self.inputs
    }

    /// The outputs, in the order of the main subgraph's.
    pub fn outputs(&self) -> &[BoundOutput] {
        &self.outputs
    }

    /// The memory that an output of `size` bytes goes to, for engines that compute it there instead of copying it; it is delivered
    /// all the same ([`BoundOutput::begin`]), without writing to the region. `None` where others may access that memory
    /// too, and where it has fewer bytes, or an input is there.
    pub fn borrow_output(&self, index: usize, size: u64) -> Option<BorrowedBytes> {
        let output = self.outputs.get(index)?;
        let Place::Client(region) = &output.place else { return None };
        if region.length < size || output.file.is_some() {
            return None;
        }
        // Mostly it cannot be, and inputs, which may be many, are not looked at.
        let bytes = region.view.borrow_mut(region.offset, size)?;
        let is_input = |it: &BoundInput| it.value.as_ref().is_some_and(|it| it.overlaps(region));
        (!self.inputs.iter().any(is_input)).then_some(bytes)
    }

    /// What was delivered, after the program has run: an entry per output, in order.
    ///
    /// # Errors
    /// [`DeliveryError::Missing`]
    pub fn output_shapes(&self) -> Result<Vec<OutputShape>, DeliveryError> {
        self.outputs
            .iter()
            .map(|output| {
                let delivered = output.delivered.get().map(|delivered| delivered.shape.clone());
                delivered.ok_or(DeliveryError::Missing { output: output.index })
            })
            .collect()
    }

    /// [`Self::output_shapes`], for whoever asks once: the dimensions are not copied.
    pub(crate) fn take_output_shapes(&mut self) -> Result<Vec<OutputShape>, DeliveryError> {
        let shape = |output: &mut BoundOutput| {
            let missing = DeliveryError::Missing { output: output.index };
            let delivered = output.delivered.get_mut().ok_or(missing)?;
            let OutputShape { dimensions, is_sufficient } = &mut delivered.shape;
            let dimensions = match output.place {
                // What it holds is settled afterwards.
                Place::Buffer(_) => dimensions.clone(),
                Place::Nowhere | Place::Client(_) => std::mem::take(dimensions),
            };
            Ok(OutputShape { dimensions, is_sufficient: *is_sufficient })
        };
        self.outputs.iter_mut().map(shape).collect()
    }

    /// Copies inputs that are in files, and allocates memory for outputs that are, so that an engine, which
    /// holds a slot, does not wait for a file system; as long as the budget lasts.
    pub(crate) fn keep_files_out(
        &mut self,
        ledger: &Ledger,
        budget: &Budget,
    ) -> Result<(), EngineError> {
        for input in &mut self.inputs {
            let Some(region) = input.value.as_mut().filter(|region| region.is_slow()) else {
                continue;
            };
            self.charges.push(ledger.charge(region.length, MemoryUse::Inputs)?);
            let copy = Region::allocate(region.length)?;
            let length = region.length;
            let count = usize::try_from(length).map_err(|_| MemoryError::NoRoom { length })?;
            for block in budget.blocks(count) {
                let block = block?;
                let (start, length) = (block.start as u64, block.len() as u64);
                copy.view.copy_from(start, &region.view, region.offset + start, length)?;
            }
            *region = copy;
        }
        for output in &mut self.outputs {
            if !matches!(&output.place, Place::Client(region) if region.is_slow()) {
                continue;
            }
            let size = output.size();
            let Place::Client(region) = &mut output.place else { continue };
            // Of one that may turn out too short the length counts.
            let length = region.length.min(size.unwrap_or(u64::MAX));
            if length > 0 {
                self.charges.push(ledger.charge(length, MemoryUse::Values)?);
                output.file = Some(std::mem::replace(region, Region::allocate(length)?));
            }
        }
        Ok(())
    }

    /// Writes outputs into the files that they belong in.
    pub(crate) fn write_files(&self) -> Result<(), DeliveryError> {
        for output in &self.outputs {
            let (Some(file), Place::Client(region)) = (&output.file, &output.place) else {
                continue;
            };
            if let Some(delivered) = output.delivered.get().filter(|it| it.shape.is_sufficient) {
                file.view
                    .copy_from(file.offset, &region.view, region.offset, delivered.size)
                    .map_err(|error| output.memory_error(error))?;
            }
        }
        Ok(())
    }

    /// Brings what was written to where the client's other mappings see it (contract: MEM-4).
    pub(crate) fn flush(&self) -> Result<(), MemoryError> {
        self.written.iter().try_for_each(MemoryView::flush)
    }

    /// The execution has succeeded: buffers hold what was delivered (contract: BUF-1, BUF-2).
    pub(crate) fn initialize_buffers(&self) {
        for output in &self.outputs {
            if let (Place::Buffer(buffer), Some(delivered)) =
                (&output.place, output.delivered.get())
                && let Some(storage) = &delivered.storage
            {
                buffer.initialize(storage, delivered.shape.dimensions.clone());
            }
        }
    }

    /// The execution has failed: what its buffers held is lost (contract: BUF-1).
    pub(crate) fn uninitialize_buffers(&self) {
        for output in &self.outputs {
            if let Place::Buffer(buffer) = &output.place {
                buffer.uninitialize();
            }
        }
    }
}

impl Region {
    /// The caller has checked that the bytes are within the view.
    pub(crate) fn new(view: MemoryView, offset: u64, length: u64) -> Self {
        Self { view, offset, length }
    }

    /// Memory of our own.
    fn allocate(length: u64) -> Result<Self, MemoryError> {
        Ok(Self::new(Memory::allocate(length)?.view()?, 0, length))
    }

    /// Whether a file system decides how long it takes to read and write.
    fn is_slow(&self) -> bool {
        !self.view.is_mapped() && self.length > 0
    }

    /// Whether both have some bytes of one memory.
    fn overlaps(&self, other: &Self) -> bool {
        let ends = [self, other].map(|it| it.offset.saturating_add(it.length));
        self.view.is_same(&other.view) && self.offset < ends[1] && other.offset < ends[0]
    }

    /// The memory that the bytes are in.
    pub fn view(&self) -> &MemoryView {
        &self.view
    }

    /// Bytes from the view's beginning to the first of these; a multiple of nothing (REQ-13).
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Number of bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Copies the bytes out, each of them once.
    ///
    /// # Errors
    /// [`MemoryError`], for instance where the client took the memory away.
    pub fn read_to_vec(&self) -> Result<Vec<u8>, MemoryError> {
        self.view.read_to_vec(self.offset, self.length)
    }

    /// [`Region::read_to_vec`], as long as the budget lasts.
    ///
    /// # Errors
    /// [`EngineError::Interrupted`]; [`EngineError::Memory`] with what [`Region::read_to_vec`] gives.
    pub fn read_within(&self, budget: &Budget) -> Result<Vec<u8>, EngineError> {
        let length = self.length;
        let mut bytes = Vec::new();
        let count = usize::try_from(length).map_err(|_| MemoryError::NoRoom { length })?;
        bytes.try_reserve_exact(count).map_err(|_| MemoryError::NoRoom { length })?;
        for block in budget.blocks(count) {
            let block = block?;
            bytes.resize(block.end, 0);
            self.read_part(block.start as u64, &mut bytes[block])?;
        }
        Ok(bytes)
    }

    /// Copies the bytes into `destination`, which is as long.
    ///
    /// # Errors
    /// As [`Region::read_to_vec`].
    ///
    /// # Panics
    /// If `destination` is longer or shorter.
    pub fn read(&self, destination: &mut [u8]) -> Result<(), MemoryError> {
        assert_eq!(destination.len() as u64, self.length, "length of a bound argument");
        self.view.read(self.offset, destination)
    }

    /// Copies out as many bytes as `destination` has, from `offset` bytes behind the first on.
    ///
    /// # Errors
    /// As [`Region::read_to_vec`].
    ///
    /// # Panics
    /// If that reaches beyond the last byte.
    pub fn read_part(&self, offset: u64, destination: &mut [u8]) -> Result<(), MemoryError> {
        let end = offset.checked_add(destination.len() as u64);
        assert!(end.is_some_and(|end| end <= self.length), "read beyond a bound argument");
        self.view.read(self.offset + offset, destination)
    }

    /// Copies `source` to `offset` bytes from the first of these.
    ///
    /// # Errors
    /// As [`Region::read_to_vec`].
    ///
    /// # Panics
    /// If that reaches beyond the last byte.
    pub fn write(&self, offset: u64, source: &[u8]) -> Result<(), MemoryError> {
        let end = offset.checked_add(source.len() as u64);
        assert!(end.is_some_and(|end| end <= self.length), "write beyond a bound argument");
        self.view.write(self.offset + offset, source)
    }

    /// The first bytes.
    pub(crate) fn first(&self, length: u64) -> Self {
        Self { view: self.view.clone(), offset: self.offset, length: length.min(self.length) }
    }
}

impl BoundInput {
    pub(crate) fn new(operand_type: OperandType, shape: Arc<Shape>, region: Region) -> Self {
        Self { operand_type, shape, value: Some(region) }
    }

    pub(crate) fn omitted(operand_type: OperandType, shape: Arc<Shape>) -> Self {
        Self { operand_type, shape, value: None }
    }

    /// The element type.
    pub fn operand_type(&self) -> OperandType {
        self.operand_type
    }

    /// The shape; fully known where there is a value.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The place of the value, with the number of bytes that type and shape give; `None` if it is left out.
    pub fn value(&self) -> Option<&Region> {
        self.value.as_ref()
    }
}

/// Whether what is known of a shape allows these dimensions.
fn may_be(shape: &Shape, dimensions: &[u32]) -> bool {
    shape.lengths().is_none_or(|lengths| {
        let mut pairs = lengths.iter().zip(dimensions);
        lengths.len() == dimensions.len()
            && pairs.all(|(known, found)| known.is_none_or(|known| known == *found))
    })
}

impl BoundOutput {
    pub(crate) fn new(
        index: usize,
        operand_type: OperandType,
        element_size: Option<u32>,
        shape: Arc<Shape>,
        region: Region,
    ) -> Self {
        Self {
            index,
            operand_type,
            element_size,
            shape,
            place: Place::Client(region),
            file: None,
            delivered: OnceLock::new(),
        }
    }

    pub(crate) fn in_buffer(
        index: usize,
        operand_type: OperandType,
        shape: Arc<Shape>,
        buffer: Arc<ManagedBuffer>,
    ) -> Self {
        Self {
            index,
            operand_type,
            element_size: operand_type.element_size(),
            shape,
            place: Place::Buffer(buffer),
            file: None,
            delivered: OnceLock::new(),
        }
    }

    pub(crate) fn omitted(index: usize, operand_type: OperandType, shape: Arc<Shape>) -> Self {
        Self {
            index,
            operand_type,
            element_size: operand_type.element_size(),
            shape,
            place: Place::Nowhere,
            file: None,
            delivered: OnceLock::new(),
        }
    }

    /// The element type.
    pub fn operand_type(&self) -> OperandType {
        self.operand_type
    }

    /// What model and request say of the shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Bytes of the value, if they are known before it is.
    fn size(&self) -> Option<u64> {
        self.shape.element_count()?.checked_mul(u64::from(self.element_size?))
    }

    /// Delivers the value.
    ///
    /// # Errors
    /// [`DeliveryError`], see there. Too short a buffer is no error here.
    pub fn deliver(&self, dimensions: &[u32], bytes: &[u8]) -> Result<(), DeliveryError> {
        if let Destination::Region(region) = self.begin(dimensions, bytes.len() as u64)? {
            region.write(0, bytes).map_err(|error| self.memory_error(error))?;
        }
        Ok(())
    }

    /// [`BoundOutput::deliver`], as long as the budget lasts. Where it does not, part of the value may have
    /// been written.
    ///
    /// # Errors
    /// [`EngineError::Interrupted`]; [`EngineError::Delivery`]
    pub fn deliver_within(
        &self,
        dimensions: &[u32],
        bytes: &[u8],
        budget: &Budget,
    ) -> Result<(), EngineError> {
        if let Destination::Region(region) = self.begin(dimensions, bytes.len() as u64)? {
            for block in budget.blocks(bytes.len()) {
                let block = block?;
                let written = region.write(block.start as u64, &bytes[block]);
                written.map_err(|error| self.memory_error(error))?;
            }
        }
        Ok(())
    }

    /// Says the final shape, in exchange for the place to write the value to: for engines that do
    /// not have it in one piece. `size` is in bytes.
    ///
    /// # Errors
    /// [`DeliveryError`], see there. Too short a buffer is no error here.
    pub fn begin(&self, dimensions: &[u32], size: u64) -> Result<Destination, DeliveryError> {
        let output = self.index;
        let found = || Shape::known(dimensions.iter().copied());
        if !may_be(&self.shape, dimensions) {
            let expected = Shape::clone(&self.shape);
            return Err(DeliveryError::Shape { output, found: found(), expected });
        }
        let mut lengths = dimensions.iter().map(|length| u64::from(*length));
        let elements = lengths.try_fold(1, u64::checked_mul);
        let expected_size = self
            .element_size
            .and_then(|element| elements.map(|count| count.saturating_mul(u64::from(element))));
        if expected_size.is_some_and(|expected| expected != size) {
            let operand_type = self.operand_type;
            return Err(DeliveryError::Size { output, operand_type, shape: found(), found: size });
        }
        let (destination, storage) = match &self.place {
            Place::Nowhere => (Destination::NotWanted, None),
            Place::Client(region) if region.length < size => (Destination::TooShort, None),
            Place::Client(region) => (Destination::Region(region.first(size)), None),
            Place::Buffer(buffer) => {
                let storage = buffer
                    .storage(size)
                    .map_err(|error| DeliveryError::Buffer { output, error })?;
                let view = storage.memory.view().map_err(|error| self.memory_error(error))?;
                (Destination::Region(Region::new(view, 0, size)), Some(storage))
            }
        };
        let shape = OutputShape {
            dimensions: dimensions.to_vec(),
            is_sufficient: !matches!(destination, Destination::TooShort),
        };
        self.delivered
            .set(Delivered { shape, size, storage })
            .map_err(|_| DeliveryError::Twice { output })?;
        Ok(destination)
    }

    fn memory_error(&self, error: MemoryError) -> DeliveryError {
        DeliveryError::Memory { output: self.index, error }
    }
}
