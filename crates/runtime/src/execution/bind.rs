//! [`Bound`]: an execution's arguments where devices can reach them.
//!
//! Requests refer to shared memory, so bytes of the caller are copied into an arena, once, and out of
//! it, once. Arenas are kept with the compilation: making one costs more than a small model takes.

use super::arguments::{Argument, Arguments};
use super::ran::{Produced, Ran};
use crate::compilation::Compilation;
use crate::error::{Error, Result};
use crate::memory::{Memory, memory_error};
use crate::partition::value::{Place, Pool, Target, Value};

/// Arguments begin at multiples of this many bytes.
const ALIGNMENT: u64 = 64;

/// The arguments of an execution, in memory.
pub(super) struct Bound<'a> {
    arguments: &'a Arguments,
    compilation: &'a Compilation,
    arena: Option<nnhal_hal::Memory>,
    pub(super) inputs: Vec<Value>,
    pub(super) targets: Vec<Target>,
}

impl<'a> Bound<'a> {
    /// Copies inputs to where devices can reach them, and finds room for outputs.
    pub(super) fn new(compilation: &'a Compilation, arguments: &'a Arguments) -> Result<Self> {
        let size = arena_size(arguments);
        let arena = match size {
            0 => None,
            size => Some(compilation.arenas().take(size)?),
        };
        let mut bound =
            Self { arguments, compilation, arena, inputs: Vec::new(), targets: Vec::new() };
        bound.fill()?;
        Ok(bound)
    }

    fn fill(&mut self) -> Result<()> {
        let mut end = 0;
        self.inputs.reserve_exact(self.arguments.inputs.len());
        for argument in &self.arguments.inputs {
            let value = match argument {
                Argument::Unset | Argument::Omitted => Value::Omitted,
                Argument::Bytes { bytes, length, dimensions } => {
                    let place = in_arena(self.arena.as_ref(), &mut end, *length)?;
                    let mut written = Ok(());
                    if let Pool::Shared(memory) = &place.pool {
                        let view = memory.view().map_err(memory_error)?;
                        bytes.lend(&mut |bytes| {
                            let bytes = bytes.get(..*length as usize).unwrap_or(bytes);
                            written = view.write(u64::from(place.offset), bytes);
                        });
                    }
                    written.map_err(memory_error)?;
                    Value::At { place, dimensions: dimensions.clone() }
                }
                Argument::Memory { memory, offset, length, dimensions } => {
                    let place = in_memory(memory, *offset, *length);
                    Value::At { place, dimensions: dimensions.clone() }
                }
            };
            self.inputs.push(value);
        }
        self.targets.reserve_exact(self.arguments.outputs.len());
        for argument in &self.arguments.outputs {
            self.targets.push(match argument {
                Argument::Unset | Argument::Omitted => Target::Omitted,
                Argument::Bytes { length, dimensions, .. } => {
                    let place = in_arena(self.arena.as_ref(), &mut end, *length)?;
                    Target::At { place, dimensions: dimensions.clone() }
                }
                Argument::Memory { memory, offset, length, dimensions } => {
                    let place = in_memory(memory, *offset, *length);
                    Target::At { place, dimensions: dimensions.clone() }
                }
            });
        }
        Ok(())
    }

    /// Copies outputs to the caller's bytes. All of them fit.
    pub(super) fn deliver(&self, ran: &Ran) -> Result<()> {
        for (argument, output) in self.arguments.outputs.iter().zip(&ran.outputs) {
            let Argument::Bytes { bytes, length, .. } = argument else { continue };
            let Produced { value: Value::At { place, dimensions }, .. } = output else { continue };
            if dimensions.contains(&0) {
                continue;
            }
            let Pool::Shared(memory) = &place.pool else {
                return Err(Error::failed("an output for the caller's bytes is in a buffer"));
            };
            let view = memory.view().map_err(memory_error)?;
            let length = place.length.min(*length) as usize;
            let mut read = Ok(());
            bytes.lend(&mut |bytes| {
                let end = length.min(bytes.len());
                read = view.read(u64::from(place.offset), &mut bytes[..end]);
            });
            read.map_err(memory_error)?;
        }
        Ok(())
    }
}

impl Drop for Bound<'_> {
    fn drop(&mut self) {
        if let Some(arena) = self.arena.take() {
            self.compilation.arenas().give_back(arena);
        }
    }
}

/// Bytes that the caller's bytes take in an arena.
fn arena_size(arguments: &Arguments) -> u64 {
    let add = |end: u64, length: u32| end.next_multiple_of(ALIGNMENT) + u64::from(length);
    let mut end = 0;
    for argument in &arguments.inputs {
        if let Argument::Bytes { length, .. } = argument {
            end = add(end, *length);
        }
    }
    for argument in &arguments.outputs {
        if let Argument::Bytes { length, .. } = argument {
            end = add(end, *length);
        }
    }
    end
}

/// The next place in the arena.
fn in_arena(arena: Option<&nnhal_hal::Memory>, end: &mut u64, length: u32) -> Result<Place> {
    let offset = end.next_multiple_of(ALIGNMENT);
    *end = offset + u64::from(length);
    match (arena, u32::try_from(offset)) {
        (Some(arena), Ok(offset)) => {
            Ok(Place { pool: Pool::Shared(arena.clone()), offset, length })
        }
        _ => Err(Error::bad_data("the arguments take more than 2^32 bytes")),
    }
}

fn in_memory(memory: &Memory, offset: u32, length: u32) -> Place {
    Place { pool: memory.backing().clone(), offset, length }
}
