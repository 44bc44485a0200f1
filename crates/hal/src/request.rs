//! [`Request`]: the arguments of one execution, as a client hands them over, unchecked.

use crate::client::{Client, ClientError};
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::model::DataLocation;

/// Memory that a request's arguments are in.
#[derive(Debug, Clone)]
pub enum RequestMemoryPool {
    /// Shared memory.
    Memory(Memory),
    /// A buffer that the driver manages, by its token (1.3); 0 is no token.
    Token(u32),
}

/// One input or output of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestArgument {
    /// Whether the argument is left out. Then the rest is zero and empty.
    pub has_no_value: bool,
    /// The place of the value. In a token's pool offset and length are 0.
    pub location: DataLocation,
    /// Dimensions that the model left unknown; empty if the request has nothing to add.
    pub dimensions: Vec<u32>,
}

impl RequestArgument {
    /// An argument that is left out.
    pub fn omitted() -> Self {
        Self { has_no_value: true, ..Self::default() }
    }

    /// An argument in a pool.
    pub fn at(location: DataLocation) -> Self {
        Self { has_no_value: false, location, dimensions: Vec::new() }
    }
}

/// The arguments of one execution. Nothing in it has been checked.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// One for each input of the main subgraph, in its order.
    pub inputs: Vec<RequestArgument>,
    /// One for each output of the main subgraph, in its order.
    pub outputs: Vec<RequestArgument>,
    /// What the locations refer to.
    pub pools: Vec<RequestMemoryPool>,
}

impl Request {
    /// Counts the descriptors of its memory as [`Memory::kept_by`] does: for requests that are kept when the call that brought them
    /// has returned.
    ///
    /// # Errors
    /// [`ClientError`]; memory that was counted until then stays so.
    pub fn kept_by(&self, client: &Client) -> Result<(), ClientError> {
        self.pools.iter().try_for_each(|pool| match pool {
            RequestMemoryPool::Memory(memory) => memory.kept_by(client),
            RequestMemoryPool::Token(_) => Ok(()),
        })
    }
}

/// Makes a request out of byte slices, in shared memory of its own, and reads the results.
///
/// ```no_run
/// # fn run(prepared: &dyn nnhal_hal::PreparedModel) -> nnhal_hal::Result<()> {
/// use nnhal_hal::{ExecutionOptions, RequestBuilder};
///
/// let mut request = RequestBuilder::new();
/// request.input(&1.5_f32.to_le_bytes());
/// request.output(4);
/// let request = request.build()?;
/// prepared.execute(&request, &ExecutionOptions::default()).map_err(|failed| failed.error)?;
/// let result: Vec<u8> = RequestBuilder::read_output(&request, 0)?;
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct RequestBuilder {
    request: Request,
    values: Vec<u8>,
}

impl RequestBuilder {
    /// No arguments.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next input, with the shape that the model says.
    pub fn input(&mut self, bytes: &[u8]) -> &mut Self {
        self.input_shaped(bytes, &[])
    }

    /// The next input, with a shape of its own.
    pub fn input_shaped(&mut self, bytes: &[u8], dimensions: &[u32]) -> &mut Self {
        let argument = self.place(bytes.len(), dimensions);
        let at = argument.location.offset as usize;
        self.values[at..at + bytes.len()].copy_from_slice(bytes);
        self.request.inputs.push(argument);
        self
    }

    /// The next input is left out.
    pub fn omitted_input(&mut self) -> &mut Self {
        self.request.inputs.push(RequestArgument::omitted());
        self
    }

    /// The next output, with room for `length` bytes (at least one is given: REQ-4).
    pub fn output(&mut self, length: usize) -> &mut Self {
        self.output_shaped(length, &[])
    }

    /// The next output, with room for `length` bytes and a shape of its own.
    pub fn output_shaped(&mut self, length: usize, dimensions: &[u32]) -> &mut Self {
        let argument = self.place(length.max(1), dimensions);
        self.request.outputs.push(argument);
        self
    }

    /// The request. Inputs and outputs are in one pool.
    ///
    /// # Errors
    /// If all arguments together exceed 2^32 - 1 bytes, or memory cannot be had.
    pub fn build(&mut self) -> Result<Request> {
        if u32::try_from(self.values.len()).is_err() {
            return Err(Error::invalid(format!(
                "the arguments take {} bytes, but a pool is addressed with 32 bits",
                self.values.len()
            )));
        }
        let mut request = std::mem::take(&mut self.request);
        let values = std::mem::take(&mut self.values);
        if !values.is_empty() {
            let memory =
                Memory::from_bytes(&values).map_err(|error| Error::new(error.status(), error))?;
            request.pools.push(RequestMemoryPool::Memory(memory));
        }
        Ok(request)
    }

    /// The bytes of an output's whole buffer, after execution.
    ///
    /// # Errors
    /// If there is no such output, or it is not in shared memory, or is outside of it.
    pub fn read_output(request: &Request, index: usize) -> Result<Vec<u8>> {
        let no_output = || Error::invalid(format!("no output {index} in shared memory"));
        let argument = request.outputs.get(index).ok_or_else(no_output)?;
        match request.pools.get(argument.location.pool_index as usize) {
            Some(RequestMemoryPool::Memory(memory)) if !argument.has_no_value => memory
                .view()
                .and_then(|view| {
                    view.read_to_vec(
                        u64::from(argument.location.offset),
                        u64::from(argument.location.length),
                    )
                })
                .map_err(|error| Error::new(error.status(), error)),
            _ => Err(no_output()),
        }
    }

    /// Room for `length` bytes at a multiple of 64, so that wide loads do not straddle lines.
    /// Numbers above 32 bits are clipped here and refused by `build`, which sees the total.
    fn place(&mut self, length: usize, dimensions: &[u32]) -> RequestArgument {
        let offset = self.values.len().next_multiple_of(64);
        self.values.resize(offset + length, 0);
        RequestArgument {
            has_no_value: false,
            location: DataLocation {
                pool_index: 0,
                offset: u32::try_from(offset).unwrap_or(u32::MAX),
                length: u32::try_from(length).unwrap_or(u32::MAX),
            },
            dimensions: dimensions.to_vec(),
        }
    }
}
