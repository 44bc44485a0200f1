//! [`MemoryDescription`]: what memory is to be used for, so that a device can make it so.

use crate::compilation::Compilation;
use crate::error::{Error, Result};
use crate::memory::{Backing, Direction, Memory, OperandKind, Role, allocate};
use crate::operand::combine_dimensions;
use crate::partition::plan::StepRole;
use nnhal_hal::{BufferDescription, BufferRole, Operand, PreparedModel};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// Says what memory is to be used for. [`MemoryDescription::allocate`] makes as many memories of it
/// as are wanted.
#[derive(Default)]
pub struct MemoryDescription {
    roles: HashSet<Role>,
    operand: Option<OperandKind>,
    dimensions: Vec<u32>,
    /// Uses by the steps of the compilations.
    steps: Vec<(StepRole, f32)>,
    /// Whether any of the compilations is for devices that the client chose.
    any_chosen: bool,
    finished: bool,
}

impl MemoryDescription {
    /// A description without any use.
    pub fn new() -> Self {
        Self::default()
    }

    /// The memory will be this input of executions, this often: above 0, at most 1.
    ///
    /// # Errors
    /// `BAD_DATA` if there is no such input, it is named twice, its type or dimensions do not go with
    /// what was said before, or the frequency is none; `BAD_STATE` after finishing.
    pub fn add_input_role(
        &mut self,
        compilation: &Compilation,
        index: u32,
        frequency: f32,
    ) -> Result<()> {
        self.expect_unfinished()?;
        let operand = compilation.model().input(index)?;
        self.add_role(compilation, operand, Direction::Input, index, frequency)
    }

    /// The memory will be this output of executions, this often: above 0, at most 1.
    ///
    /// # Errors
    /// As [`MemoryDescription::add_input_role`].
    pub fn add_output_role(
        &mut self,
        compilation: &Compilation,
        index: u32,
        frequency: f32,
    ) -> Result<()> {
        self.expect_unfinished()?;
        let operand = compilation.model().output(index)?;
        self.add_role(compilation, operand, Direction::Output, index, frequency)
    }

    fn add_role(
        &mut self,
        compilation: &Compilation,
        operand: &Operand,
        direction: Direction,
        index: u32,
        frequency: f32,
    ) -> Result<()> {
        let role = Role { compilation: compilation.number(), direction, index };
        if self.roles.contains(&role) {
            return Err(Error::bad_data(format!("{role} is named twice")));
        }
        let kind = OperandKind::of(compilation.model().devices(), operand);
        let is_tensor = kind.is_tensor;
        if self.operand.as_ref().is_some_and(|known| *known != kind) {
            return Err(Error::bad_data(format!("{role} is of another type than those before")));
        }
        let combined = combine_dimensions(&self.dimensions, &operand.dimensions)
            .filter(|_| is_tensor || self.dimensions.is_empty());
        let Some(combined) = combined else {
            return Err(Error::bad_data(format!(
                "{role} has dimensions {:?}, but the memory {:?}",
                operand.dimensions, self.dimensions
            )));
        };
        // Written so that NaN is refused.
        if !(frequency > 0.0 && frequency <= 1.0) {
            return Err(Error::bad_data(format!("{role} is used {frequency} of the time")));
        }
        let steps = compilation.step_roles(direction, index);
        self.steps.extend(steps.into_iter().map(|step| (step, frequency)));
        self.any_chosen |= compilation.devices_were_chosen();
        self.roles.insert(role);
        self.operand = Some(kind);
        self.dimensions = combined;
        Ok(())
    }

    /// What is known of the dimensions beyond what the uses say; 0 where unknown.
    ///
    /// # Errors
    /// `BAD_DATA` if they contradict what was said before; `BAD_STATE` after finishing.
    pub fn set_dimensions(&mut self, dimensions: &[u32]) -> Result<()> {
        self.expect_unfinished()?;
        let is_scalar = self.operand.as_ref().is_some_and(|operand| !operand.is_tensor);
        let combined = combine_dimensions(&self.dimensions, dimensions)
            .filter(|_| !is_scalar || dimensions.is_empty());
        let Some(combined) = combined else {
            return Err(Error::bad_data(format!(
                "dimensions {dimensions:?} contradict {:?}",
                self.dimensions
            )));
        };
        self.dimensions = combined;
        Ok(())
    }

    /// Finishes the description.
    ///
    /// # Errors
    /// `BAD_DATA` without any use; `BAD_STATE` the second time.
    pub fn finish(&mut self) -> Result<()> {
        self.expect_unfinished()?;
        if self.operand.is_none() {
            return Err(Error::bad_data("the memory is described without any use"));
        }
        self.finished = true;
        Ok(())
    }

    /// Memory as described. If all uses are by one device it makes the memory; otherwise, or if it
    /// does not, the memory is such that all devices can reach it, unless one of the compilations
    /// is for devices that the client chose.
    ///
    /// # Errors
    /// `BAD_STATE` before finishing; `OP_FAILED`, or what the device answers, if there is no such
    /// memory.
    pub fn allocate(&self) -> Result<Memory> {
        let Some(operand) = self.operand.as_ref().filter(|_| self.finished) else {
            return Err(Error::bad_state("the description is not finished"));
        };
        let memory = |backing| {
            Memory::opaque(backing, self.roles.clone(), operand.clone(), self.dimensions.clone())
        };
        let refused = match self.allocate_on_device() {
            Ok(buffer) => return Ok(memory(Backing::Buffer(buffer))),
            Err(error) => error,
        };
        match operand.byte_size(&self.dimensions) {
            Some(size) if !self.any_chosen => {
                let shared = allocate(u64::from(size))?;
                Ok(memory(Backing::Shared(shared)))
            }
            _ => Err(refused),
        }
    }

    fn allocate_on_device(&self) -> Result<Arc<dyn nnhal_hal::Buffer>> {
        let mut steps = self.steps.iter().map(|(step, _)| &step.device);
        let Some(device) = steps.next() else {
            return Err(Error::failed("no device uses the memory"));
        };
        if !steps.all(|other| other.is_same(device)) {
            return Err(Error::failed("several devices use the memory"));
        }
        let mut description = BufferDescription {
            dimensions: self.dimensions.clone(),
            ..BufferDescription::default()
        };
        for (step, frequency) in &self.steps {
            let models = &mut description.prepared_models;
            let is_same = |known: &Arc<dyn PreparedModel>| Arc::ptr_eq(known, &step.prepared);
            let model = models.iter().position(is_same).unwrap_or_else(|| {
                models.push(Arc::clone(&step.prepared));
                models.len() - 1
            });
            let role = BufferRole {
                model_index: u32::try_from(model).unwrap_or(u32::MAX),
                io_index: step.index,
                frequency: *frequency,
            };
            match step.direction {
                Direction::Input => description.input_roles.push(role),
                Direction::Output => description.output_roles.push(role),
            }
        }
        Ok(device.hal().allocate(&description)?)
    }

    /// Demands that roles and dimensions can still be added.
    ///
    /// # Errors
    /// `BAD_STATE`
    pub fn expect_unfinished(&self) -> Result<()> {
        if self.finished {
            return Err(Error::bad_state("the description is finished"));
        }
        Ok(())
    }
}

impl fmt::Debug for MemoryDescription {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("MemoryDescription")
            .field("roles", &self.roles)
            .field("dimensions", &self.dimensions)
            .field("finished", &self.finished)
            .finish_non_exhaustive()
    }
}
