//! The variables of a [`Runner`]'s model, from one run to the next.

use super::{Runner, STATES};
use crate::error::{Error, Result};
use crate::prepared::Prepared;
use crate::variables::{Shared, Value, Variables};
use nnhal_hal::{Operand, RequestArgument};
use nnhal_ops::extension::element_size;
use nnhal_tflite::State;
use std::sync::Arc;

impl Runner {
    /// Copies the value of one of [`Model::states`](crate::Model::states), as the next run will find it.
    ///
    /// # Errors
    /// [`Error::State`]: there is no such state, or it has another number of bytes. [`Error::Memory`]
    pub fn read_state(&self, state: usize, bytes: &mut [u8]) -> Result<()> {
        let slot = self.checked_state(state, bytes.len())?;
        self.states.read(slot, bytes)
    }

    /// Gives one of [`Model::states`](crate::Model::states) the value that the next run will find.
    ///
    /// # Errors
    /// As [`Runner::read_state`].
    pub fn write_state(&mut self, state: usize, bytes: &[u8]) -> Result<()> {
        let slot = self.checked_state(state, bytes.len())?;
        self.states.write(slot, bytes)
    }

    fn checked_state(&self, state: usize, found: usize) -> Result<usize> {
        let count = self.prepared.model.states().len();
        if state >= count {
            return Err(Error::State(format!("there is no variable {state}, there are {count}")));
        }
        let slot = self.slot_of_state(state);
        let expected = self.states.capacity(slot);
        if found == expected {
            return Ok(slot);
        }
        Err(Error::State(format!("variable {state} has {expected} bytes, not {found}")))
    }

    /// Sets all variables to what they are at first: what the file says, else 0, of a quantized type its
    /// zero point.
    ///
    /// # Errors
    /// [`Error::Memory`]
    pub fn reset(&mut self) -> Result<()> {
        self.place_states();
        self.reset_those(|_| true)?;
        if let Some(variables) = self.variables.clone() {
            let mut shared = variables.lock();
            self.give_shared(&mut shared)?;
            shared.last = Some(self.id);
        }
        Ok(())
    }

    /// Sets the variable tensors to 0, and leaves resource variables as they are, as LiteRT's
    /// `ResetVariableTensors` does.
    ///
    /// # Errors
    /// [`Error::Memory`]
    pub fn reset_variable_tensors(&mut self) -> Result<()> {
        self.reset_those(|state| state.name.is_none())
    }

    fn reset_those(&mut self, is_meant: impl Fn(&State) -> bool) -> Result<()> {
        let prepared = Arc::clone(&self.prepared);
        for (index, state) in prepared.model.states().iter().enumerate() {
            if !is_meant(state) {
                continue;
            }
            let slot = self.slot_of_state(index);
            if let Some(initial) = &state.initial {
                self.states.write(slot, initial)?;
                continue;
            }
            let operand = &prepared.inputs[state.input];
            let length = self.states.capacity(slot);
            let is_quantized = operand.operand_type.quantized_range().is_some();
            let zero = if is_quantized { operand.zero_point } else { 0 }.to_le_bytes();
            let element = element_size(operand.operand_type).unwrap_or(1).clamp(1, 4) as usize;
            let bytes: Vec<u8> = zero[..element].iter().copied().cycle().take(length).collect();
            self.states.write(slot, &bytes)?;
        }
        Ok(())
    }

    /// Shares resource variables with other runners, by their names: with those of other signatures of the file, or
    /// for other shapes. The values are this runner's where no other has brought them.
    ///
    /// # Errors
    /// [`Error::State`]: a variable has another type or shape there. [`Error::Memory`]
    pub fn share(&mut self, variables: &Variables) -> Result<()> {
        let mut shared = variables.lock();
        let prepared = Arc::clone(&self.prepared);
        for (name, operand, slot) in self.resource_variables(&prepared) {
            match shared.values.get(name) {
                Some(value) => fits(name, operand, &value.operand)?,
                None => self.give(&mut shared, name, operand, slot)?,
            }
        }
        drop(shared);
        self.variables = Some(variables.clone());
        Ok(())
    }

    /// By resource variable: its name, its input, and the slot that the next run reads.
    fn resource_variables<'p>(
        &self,
        prepared: &'p Prepared,
    ) -> Vec<(&'p String, &'p Operand, usize)> {
        let states = prepared.model.states().iter().enumerate();
        let described = states.filter_map(|(index, state)| {
            let operand = &prepared.inputs[state.input];
            Some((state.name.as_ref()?, operand, self.slot_of_state(index)))
        });
        described.collect()
    }

    fn give(&self, shared: &mut Shared, name: &str, operand: &Operand, slot: usize) -> Result<()> {
        let length = self.states.capacity(slot);
        match shared.values.get_mut(name) {
            Some(value) => self.states.read(slot, &mut value.bytes),
            None => {
                let mut bytes = vec![0; length];
                self.states.read(slot, &mut bytes)?;
                shared.values.insert(name.to_owned(), Value { operand: operand.clone(), bytes });
                Ok(())
            }
        }
    }

    /// Before a run: takes the values that other runners have left.
    pub(super) fn take_shared(&mut self, shared: &mut Shared) -> Result<()> {
        if shared.last.replace(self.id) == Some(self.id) {
            return Ok(());
        }
        let prepared = Arc::clone(&self.prepared);
        for (name, operand, slot) in self.resource_variables(&prepared) {
            if let Some(value) = shared.values.get(name) {
                fits(name, operand, &value.operand)?;
                self.states.write(slot, &value.bytes)?;
            }
        }
        Ok(())
    }

    /// After a run: leaves the values for other runners.
    pub(super) fn give_shared(&self, shared: &mut Shared) -> Result<()> {
        let prepared = Arc::clone(&self.prepared);
        for (name, operand, slot) in self.resource_variables(&prepared) {
            self.give(shared, name, operand, slot)?;
        }
        Ok(())
    }

    /// The slot that holds the value which the next run will read.
    pub(super) fn slot_of_state(&self, index: usize) -> usize {
        let state = &self.prepared.model.states()[index];
        let offset = self.request.inputs[state.input].location.offset;
        let first = self.states.location(2 * index, 0, STATES).offset;
        // A variable without bytes has both at one place.
        if offset == first { 2 * index } else { 2 * index + 1 }
    }

    pub(super) fn place_states(&mut self) {
        let prepared = Arc::clone(&self.prepared);
        for (index, state) in prepared.model.states().iter().enumerate() {
            let (read, written) = (2 * index, 2 * index + 1);
            let length = self.states.capacity(read);
            self.request.inputs[state.input] =
                RequestArgument::at(self.states.location(read, length, STATES));
            self.request.outputs[state.output] =
                RequestArgument::at(self.states.location(written, length, STATES));
        }
    }
}

/// Whether a shared variable is what a model expects.
fn fits(name: &str, expected: &Operand, found: &Operand) -> Result<()> {
    if expected.quantized_as() == found.quantized_as() && expected.dimensions == found.dimensions {
        return Ok(());
    }
    Err(Error::State(format!(
        "variable {name:?} is {} {:?} here, and {} {:?} in another part of the file",
        expected.operand_type, expected.dimensions, found.operand_type, found.dimensions
    )))
}
