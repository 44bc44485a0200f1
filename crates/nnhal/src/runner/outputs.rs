//! What comes out of a [`Runner`].

use super::Runner;
use crate::arena::Arena;
use crate::data_type::DataType;
use crate::error::{Error, Result};
use crate::info::TensorInfo;
use crate::position::{Position, find};
use crate::shape::shape_of;
use crate::tensor::Tensor;

impl Runner {
    /// The shape of an output of the last run; `None` before the first one, and after one that failed.
    ///
    /// # Errors
    /// [`Error::NotFound`]
    pub fn output_shape<'p>(&self, output: impl Into<Position<'p>>) -> Result<Option<&[usize]>> {
        let index = find("output", self.prepared.model.outputs(), &output.into())?;
        Ok(self.has_run.then_some(&*self.output_shapes[index]))
    }

    /// The shape of an output that [`Runner::run_in`] writes into memory that is lent
    /// ([`Loan`](nnhal_hal::memory::Loan)): it is known before a run, and the device is in this process.
    pub fn lent_output_shape(&self, output: usize) -> Option<Vec<usize>> {
        let info = self.prepared.model.outputs().get(output)?;
        let operand = self.prepared.outputs.get(output)?;
        let is_known = operand.has_known_dimensions() && self.prepared.driver().is_ok();
        is_known.then(|| shape_of(info, &operand.dimensions))
    }

    /// An output of the last run, of the type that the model gives.
    ///
    /// # Errors
    /// [`Error::NotFound`], also before the first run and after one that failed.
    pub fn output<'p>(&self, output: impl Into<Position<'p>>) -> Result<Tensor> {
        let mut tensor = Tensor::empty(DataType::Uint8);
        self.read_output(output, &mut tensor)?;
        Ok(tensor)
    }

    /// Copies an output of the last run into a tensor, whatever that was, in its memory if that is
    /// enough.
    ///
    /// # Errors
    /// As [`Runner::output`].
    pub fn read_output<'p>(
        &self,
        output: impl Into<Position<'p>>,
        tensor: &mut Tensor,
    ) -> Result<()> {
        let outputs = self.prepared.model.outputs();
        let index = find("output", outputs, &output.into())?;
        if !self.has_run {
            let (what, name) = ("value yet of output", outputs[index].name.clone());
            return Err(Error::NotFound { what, name, available: Vec::new() });
        }
        read(&self.outputs, index, &outputs[index], &self.output_shapes[index], tensor)
    }

    /// Copies the elements of an output of the last run to where the caller wants them: exactly as
    /// many bytes, as this machine stores them.
    ///
    /// # Errors
    /// As [`Runner::output`]; [`Error::Elements`]: the output has another number of bytes.
    pub fn read_output_bytes<'p>(
        &self,
        output: impl Into<Position<'p>>,
        bytes: &mut [u8],
    ) -> Result<()> {
        let outputs = self.prepared.model.outputs();
        let index = find("output", outputs, &output.into())?;
        let (info, shape) = (&outputs[index], &self.output_shapes[index]);
        let expected = info.data_type.byte_length(shape);
        if !self.has_run || expected != Some(bytes.len()) {
            let (data_type, shape) = (info.data_type, shape.clone());
            return Err(Error::Elements { data_type, shape, found: bytes.len() });
        }
        self.outputs.read(index, bytes)
    }
}

/// Copies a value out of an arena.
pub(super) fn read(
    arena: &Arena,
    slot: usize,
    info: &TensorInfo,
    shape: &[usize],
    tensor: &mut Tensor,
) -> Result<()> {
    tensor.resize(info.data_type, shape, info.quantization())?;
    arena.read(slot, tensor.as_bytes_mut())
}
