//! What goes into a [`Runner`].

use super::Runner;
use super::outputs::read;
use crate::arena::Arena;
use crate::data_type::DataType;
use crate::error::{Error, Result};
use crate::info::TensorInfo;
use crate::position::{Position, find};
use crate::prepared::Prepared;
use crate::shape::{
    byte_size, dimensions_of, element_count, is_left_out, is_shape, shape_of, shape_of_input,
};
use crate::tensor::{Tensor, TensorView, encode_reals, stored};
use nnhal_hal::Operand;
use std::sync::Arc;

impl Runner {
    /// Writes an input: elements of its own type, or real numbers (of any type of floating point),
    /// which are then rounded or quantized to what the model takes. Where the model leaves lengths
    /// open, the value's shape counts.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Input`], with what is wrong about it. Then it stays as it was.
    pub fn set_input<'a, 'p>(
        &mut self,
        input: impl Into<Position<'p>>,
        value: impl Into<TensorView<'a>>,
    ) -> Result<()> {
        let index = find("input", self.prepared.model.inputs(), &input.into())?;
        self.write(index, &value.into())
    }

    /// No input has been given.
    pub(crate) fn begin_inputs(&mut self) {
        self.given.fill(false);
    }

    /// Writes an input that has not been given yet.
    pub(crate) fn write_once(&mut self, index: usize, value: &TensorView<'_>) -> Result<()> {
        let expected = self.given.len();
        let Some(given) = self.given.get_mut(index) else {
            return Err(Error::InputCount { found: index + 1, expected });
        };
        if std::mem::replace(given, true) {
            let name = self.prepared.model.inputs()[index].name.clone();
            return Err(Error::Twice { name });
        }
        self.write(index, value)
    }

    /// Looks whether every input has been given.
    pub(crate) fn end_inputs(&self) -> Result<()> {
        match self.given.iter().position(|given| !given) {
            Some(missing) => {
                Err(Error::Missing { name: self.prepared.model.inputs()[missing].shown_name() })
            }
            None => Ok(()),
        }
    }

    pub(crate) fn write(&mut self, index: usize, value: &TensorView<'_>) -> Result<()> {
        let prepared = Arc::clone(&self.prepared);
        let mut scratch = std::mem::take(&mut self.scratch);
        let outcome = self.write_unnamed(&prepared, index, value, &mut scratch);
        self.scratch = scratch;
        outcome.map_err(|error| Error::input(&prepared.model.inputs()[index].name)(error))
    }

    fn write_unnamed(
        &mut self,
        prepared: &Prepared,
        index: usize,
        value: &TensorView<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        let info = &prepared.model.inputs()[index];
        let operand = &prepared.inputs[index];
        let size = value.data_type.size().unwrap_or(1);
        if is_left_out(info, operand) {
            let shape = info.known_shape().unwrap_or_default();
            if let Some(found) = value.shape() {
                dimensions_of(info, operand, found)?;
            }
            return if value.bytes.is_empty() {
                convert(info, operand, value, scratch).map(drop)
            } else {
                let (data_type, found) = (value.data_type, value.bytes.len());
                Err(Error::Elements { data_type, shape, found })
            };
        }
        // Whether the shape is the one that is there is looked at first: it is, mostly.
        let is_same = match (value.shape(), &self.input_shapes[index]) {
            (None, known) => known.is_some(),
            (Some(shape), Some(known)) => is_shape(info, known, shape),
            (Some(_), None) => false,
        };
        if is_same {
            let dimensions = self.input_shapes[index].as_deref().unwrap_or_default();
            let count = element_count(dimensions);
            if count.and_then(|count| count.checked_mul(size)) != Some(value.bytes.len()) {
                let shape = shape_of(info, dimensions);
                let (data_type, found) = (value.data_type, value.bytes.len());
                return Err(Error::Elements { data_type, shape, found });
            }
        }
        let is_converted = convert(info, operand, value, scratch)?;
        let bytes = if is_converted { &**scratch } else { &*value.bytes };
        if !is_same {
            let Some(shape) = value.shape() else {
                return Err(Error::OpenShape { expected: info.shape.clone() });
            };
            let dimensions = dimensions_of(info, operand, shape)?;
            let length = bytes.len();
            if length > self.inputs.capacity(index) {
                let wanted = |slot| if slot == index { length } else { 0 };
                self.inputs.grow((0..self.input_shapes.len()).map(wanted))?;
            }
            self.inputs.write(index, bytes)?;
            self.input_shapes[index] = Some(dimensions);
            self.place_arguments();
            return Ok(());
        }
        self.inputs.write(index, bytes)
    }

    /// Writes an input of the model's own type and of this shape piece by piece, as they come out of
    /// memory that is not contiguous: `give` writes all of its bytes, row by row.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Input`]: the model takes no such shape, or other than all bytes
    /// were written, then the input has the shape and some of them; those of `give`.
    pub fn set_input_with<'p>(
        &mut self,
        input: impl Into<Position<'p>>,
        shape: &[usize],
        give: impl FnOnce(&mut InputWriter<'_>) -> Result<()>,
    ) -> Result<()> {
        let index = find("input", self.prepared.model.inputs(), &input.into())?;
        let data_type = self.prepared.model.inputs()[index].data_type;
        let name = self.prepared.model.inputs()[index].name.clone();
        let wrong = |found| {
            Error::input(&name)(Error::Elements { data_type, shape: shape.to_vec(), found })
        };
        let length = data_type.byte_length(shape).ok_or_else(|| wrong(0))?;
        let is_same = self.input_shapes[index]
            .as_deref()
            .is_some_and(|known| is_shape(&self.prepared.model.inputs()[index], known, shape));
        if !is_same {
            self.resize_input(index, shape)?;
        }
        let mut writer = InputWriter { arena: &self.inputs, slot: index, written: 0, length };
        give(&mut writer)?;
        if writer.written == length { Ok(()) } else { Err(wrong(writer.written)) }
    }

    /// Gives an input whose lengths the model leaves open a shape, before its value is written. Its
    /// elements are not said then.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Input`]: the model takes no such shape.
    pub fn resize_input<'p>(
        &mut self,
        input: impl Into<Position<'p>>,
        shape: &[usize],
    ) -> Result<()> {
        let prepared = Arc::clone(&self.prepared);
        let index = find("input", prepared.model.inputs(), &input.into())?;
        let (info, operand) = (&prepared.model.inputs()[index], &prepared.inputs[index]);
        let mut resize = || {
            let dimensions = dimensions_of(info, operand, shape)?;
            let too_large = || Error::TooLarge { data_type: info.data_type, shape: shape.to_vec() };
            let length = byte_size(operand, &dimensions).ok_or_else(too_large)?;
            if length > self.inputs.capacity(index) {
                let wanted = |slot| if slot == index { length } else { 0 };
                self.inputs.grow((0..self.input_shapes.len()).map(wanted))?;
            }
            self.input_shapes[index] = Some(dimensions);
            self.place_arguments();
            Ok(())
        };
        resize().map_err(Error::input(&info.name))
    }

    /// Whether [`Runner::run_in`] takes the bytes of an input's values as they are in memory that is lent
    /// ([`Loan`](nnhal_hal::memory::Loan)): the device is in this process, and has the model's type.
    pub fn takes_lent_input(&self, input: usize) -> bool {
        let operand = self.prepared.inputs.get(input);
        let inputs = self.prepared.model.inputs().get(input).zip(operand);
        let is_as_it_is =
            inputs.is_some_and(|(info, operand)| on_device(info, operand) == info.data_type);
        is_as_it_is && self.prepared.driver().is_ok()
    }

    /// The shape of an input as it is now; `None` where it is not known yet.
    ///
    /// # Errors
    /// [`Error::NotFound`]
    pub fn input_shape<'p>(&self, input: impl Into<Position<'p>>) -> Result<Option<Vec<usize>>> {
        let inputs = self.prepared.model.inputs();
        let index = find("input", inputs, &input.into())?;
        Ok(self.shape_of_input(index))
    }

    /// Reads an input back, as the model takes it.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Input`]: its shape is not known yet.
    pub fn input<'p>(&self, input: impl Into<Position<'p>>) -> Result<Tensor> {
        let inputs = self.prepared.model.inputs();
        let index = find("input", inputs, &input.into())?;
        let info = &inputs[index];
        let Some(shape) = self.shape_of_input(index) else {
            let open = Error::OpenShape { expected: info.shape.clone() };
            return Err(Error::input(&info.name)(open));
        };
        let mut tensor = Tensor::empty(info.data_type);
        read(&self.inputs, index, info, &shape, &mut tensor)?;
        Ok(tensor)
    }

    /// The shape of an input as it is now; `None` where it is not known yet.
    pub(super) fn shape_of_input(&self, index: usize) -> Option<Vec<usize>> {
        let (info, operand) = (&self.prepared.model.inputs()[index], &self.prepared.inputs[index]);
        let dimensions = self.input_shapes[index].as_deref()?;
        Some(shape_of_input(info, operand, dimensions))
    }
}

/// Takes the bytes of an input piece by piece, see [`Runner::set_input_with`].
#[derive(Debug)]
pub struct InputWriter<'r> {
    arena: &'r Arena,
    slot: usize,
    written: usize,
    length: usize,
}

impl InputWriter<'_> {
    /// The bytes that follow those before.
    ///
    /// # Errors
    /// [`Error::Memory`]. Bytes beyond the input's are only counted.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let end = self.written.saturating_add(bytes.len());
        if end <= self.length {
            self.arena.write_at(self.slot, self.written, bytes)?;
        }
        self.written = end;
        Ok(())
    }
}

/// The type in which the device takes an input.
fn on_device(info: &TensorInfo, operand: &Operand) -> DataType {
    match info.data_type {
        // A device takes its bits.
        DataType::Bfloat16 => DataType::Bfloat16,
        expected => DataType::of_operand(operand.operand_type).unwrap_or(expected),
    }
}

/// Puts the bytes of a value as the device takes them into `scratch`; false: they are right as they
/// are.
fn convert(
    info: &TensorInfo,
    operand: &Operand,
    value: &TensorView<'_>,
    scratch: &mut Vec<u8>,
) -> Result<bool> {
    let found = value.data_type;
    let expected = info.data_type;
    let on_device = on_device(info, operand);
    if found == on_device && found == expected {
        return Ok(false);
    }
    scratch.clear();
    match found {
        DataType::Int32 if on_device == DataType::Int64 => {
            for chunk in value.bytes.as_chunks().0 {
                let wide = i64::from(i32::from_ne_bytes(*chunk));
                scratch.extend_from_slice(&wide.to_ne_bytes());
            }
        }
        DataType::Float32 | DataType::Float64 | DataType::Float16 | DataType::Bfloat16 => {
            let reals: Vec<f32>;
            let reals = match bytemuck::try_cast_slice(&value.bytes) {
                Ok(reals) if found == DataType::Float32 => reals,
                _ => {
                    #[allow(clippy::cast_possible_truncation)] // Rounding is what is meant.
                    let round = |real: f64| real as f32;
                    reals = stored(found, &value.bytes).into_iter().map(round).collect();
                    &reals
                }
            };
            encode_reals(reals, on_device, info.quantization(), scratch)?;
        }
        _ => return Err(Error::Type { found, expected }),
    }
    Ok(true)
}
