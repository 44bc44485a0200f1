//! Pooling that knows which element it took.

use super::floats::Floats;
use super::{MOST_PIXELS, bounded, small};
use crate::error::Reason;
use crate::file::Operator;
use crate::import::movement::elements;
use crate::import::tensor::Element;
use crate::import::{GraphImporter, Imported};
use nnhal_hal::{OperandId, OperandSpec, OperationType as O};
use nnhal_ops::extension::ExtensionOperation as E;

/// Elements of a window that is pooled. Each becomes some operations.
const MOST_TAPS: u32 = 64;

impl GraphImporter<'_, '_> {
    /// Input: image. Outputs: the greatest of each window, and its place in the window, row by row, as a float
    /// that is 0.1 too large.
    pub(super) fn max_pooling_with_argmax(&mut self, operator: &Operator<'_>) -> Imported {
        let pool = Pool::of(operator)?;
        let image = self.input_tensor(operator, 0)?;
        let [batch, height, width, channels] = *self.shape(image)? else {
            return Err(Reason::new("its image has not four axes"));
        };
        let (rows, top, bottom) = pool.along(0, height)?;
        let (columns, left, right) = pool.along(1, width)?;
        let outputs = [self.output_tensor(operator, 0)?, self.output_tensor(operator, 1)?];
        let image = self.as_float32(image)?;
        let mut floats = Floats::new(&mut self.builder);
        let paddings = [0, 0, top, bottom, left, right, 0, 0];
        let padded = [batch, height + top + bottom, width + left + right, channels];
        let image = if paddings == [0; 8] {
            image
        } else {
            floats.padded(image, &paddings, f32::NEG_INFINITY, &padded)
        };
        let pooled = [batch, rows, columns, channels];
        bounded("output", &pooled)?;
        let mut greatest = floats.filled(&pooled, f32::MIN);
        let mut place = floats.filled(&pooled, 0.1);
        for tap in 0..pool.filter[0] * pool.filter[1] {
            let start = [tap / pool.filter[1], tap % pool.filter[1]];
            let seen = floats.strided(image, start, pool.stride, &pooled)?;
            let is_greater = floats.compared(O::Greater, seen, greatest);
            let this = floats.filled(&pooled, small(tap) + 0.1);
            greatest = floats.selected(is_greater, seen, greatest);
            place = floats.selected(is_greater, this, place);
        }
        self.emit_activated_floats(greatest, pool.activation, outputs[0])?;
        self.emit_float32(place, outputs[1])
    }

    /// Inputs: values, and their places in windows that are side by side; or as LiteRT has the operator, in the output.
    pub(super) fn max_unpooling(&mut self, operator: &Operator<'_>) -> Imported {
        let pool = Pool::of(operator)?;
        if self.element(self.input_tensor(operator, 1)?)? == Element::Int32 {
            return self.max_unpooling_to_places(operator, pool);
        }
        if pool.filter != pool.stride || pool.filter[0] != pool.filter[1] {
            return Err(Reason::new(format!(
                "its windows of {:?} at strides of {:?} are not squares side by side",
                pool.filter, pool.stride
            )));
        }
        let values = self.input_tensor(operator, 0)?;
        let [batch, height, width, channels] = *self.shape(values)? else {
            return Err(Reason::new("its values have not four axes"));
        };
        let shape = [batch, height, width, channels];
        let side = pool.filter[0];
        let lengths = [height, width, channels].map(|it| it.checked_mul(side));
        let ([Some(rows), Some(columns), _], Some(depth)) =
            (lengths, channels.checked_mul(side * side))
        else {
            return Err(Reason::new(format!("its values are {shape:?}, too large")));
        };
        bounded("values", &shape)?;
        let places = self.input_tensor(operator, 1)?;
        if self.shape(places)? != shape {
            return Err(Reason::new("its values and places are of different shapes"));
        }
        let output = self.output_tensor(operator, 0)?;
        let (values, places) = (self.as_float32(values)?, self.as_float32(places)?);
        let mut floats = Floats::new(&mut self.builder);
        // Places are cut to whole numbers.
        let places = floats.builder.operation(O::Cast, [places], OperandSpec::tensor_int32(shape));
        let nothing = floats.filled(&shape, 0.0);
        let mut taps = Vec::new();
        for tap in 0..(side * side).cast_signed() {
            let tap = floats.builder.constant(OperandSpec::tensor_int32([1]), &[tap]);
            let is_here = floats.compared(O::Equal, places, tap);
            taps.push(floats.selected(is_here, values, nothing));
        }
        let all = floats.joined(&taps, 3, &[batch, height, width, depth]);
        let block = floats.builder.scalar_i32(side.cast_signed());
        let spec = OperandSpec::tensor_float32([batch, rows, columns, channels]);
        let result = floats.builder.operation(O::DepthToSpace, [all, block], spec);
        self.emit_float32(result, output)
    }

    /// Inputs: values, and their numbers among the elements of an image. The others are 0.
    fn max_unpooling_to_places(&mut self, operator: &Operator<'_>, pool: Pool) -> Imported {
        let [values, places] = [0, 1].map(|at| self.input_tensor(operator, at));
        let (values, places) = (values?, places?);
        let [batch, height, width, channels] = *self.shape(values)? else {
            return Err(Reason::new("its values have not four axes"));
        };
        let shape = [batch, height, width, channels];
        if self.shape(places)? != shape {
            return Err(Reason::new("its values and places are of different shapes"));
        }
        let along = |axis: usize, length: u32| {
            let (stride, filter) = (pool.stride[axis], pool.filter[axis]);
            let longer = if pool.is_same {
                length.checked_mul(stride)
            } else {
                (length.max(1) - 1).checked_mul(stride).and_then(|it| it.checked_add(filter))
            };
            longer.ok_or_else(|| Reason::new(format!("its values are {shape:?}, too large")))
        };
        let lengths = [batch, along(0, height)?, along(1, width)?, channels];
        let (count, all) = (elements(&shape)?, elements(&lengths)?);
        let of_image = all / batch.max(1);
        let too_large = |_| Reason::new(format!("its output is {lengths:?}, too large"));
        let all_signed = i32::try_from(all).map_err(too_large)?;
        let (values, mut places) = (self.as_float32(values)?, self.operand(places)?);
        if batch > 1 {
            // Behind the elements of the images before.
            self.file.allow((batch as usize).saturating_mul(4))?;
            let first: Vec<i32> = (0..batch).map(|at| (at * of_image).cast_signed()).collect();
            let first = self.builder.constant(OperandSpec::tensor_int32([batch, 1, 1, 1]), &first);
            let none = self.builder.scalar_i32(0);
            let spec = OperandSpec::tensor_int32(shape);
            places = self.builder.operation(O::Add, [places, first, none], spec);
        }
        let places = self.reshape(places, OperandSpec::tensor_int32([count, 1]))?;
        let values = self.reshape(values, OperandSpec::tensor_float32([count, 1]))?;
        let row = OperandSpec::tensor_float32([all]);
        let zeros = [self.integer_vector(&[all_signed]), self.builder.scalar_f32(0.0)];
        let zeros = self.builder.operation(O::Fill, zeros, row.clone());
        let inputs = [zeros, places, values, self.integer_vector(&[0]), self.builder.scalar_i32(0)];
        let result = self.builder.extended(E::ScatterSlices, inputs, row);
        let result = self.reshape(result, OperandSpec::tensor_float32(lengths))?;
        self.emit_activated_floats(result, pool.activation, self.output_tensor(operator, 0)?)
    }

    /// A result with an activation of the C structures: none, RELU, RELU1 and RELU6 are 0 to 3.
    fn emit_activated_floats(
        &mut self,
        value: OperandId,
        activation: i32,
        output: usize,
    ) -> Imported {
        let operation = match activation {
            0 => return self.emit_float32(value, output),
            1 => O::Relu,
            2 => O::Relu1,
            3 => O::Relu6,
            other => {
                return Err(Reason::new(format!("its activation is {other}, expected 0 to 3")));
            }
        };
        let spec = self.builder.spec(value);
        let activated = self.builder.operation(operation, [value], spec);
        self.emit_float32(activated, output)
    }
}

/// What C has for windows: padding, 1 for SAME and 2 for VALID, stride across and down, filter across and
/// down, activation, each of 32 bits.
#[derive(Debug, Clone, Copy)]
struct Pool {
    is_same: bool,
    /// Down and across.
    stride: [u32; 2],
    filter: [u32; 2],
    activation: i32,
}

impl Pool {
    fn of(operator: &Operator<'_>) -> Imported<Self> {
        let options = operator.table.custom_options()?.unwrap_or_default();
        let (numbers, _) = options.as_chunks();
        let [padding, stride_x, stride_y, filter_x, filter_y, activation, ..] = *numbers else {
            return Err(Reason::new(format!("its options have {} bytes, not 24", options.len())));
        };
        let is_same = match i32::from_le_bytes(padding) {
            1 => true,
            2 => false,
            other => return Err(Reason::new(format!("its padding is {other}, not 1 or 2"))),
        };
        let sides = [stride_y, stride_x, filter_y, filter_x].map(u32::from_le_bytes);
        let [stride_y, stride_x, filter_y, filter_x] = sides;
        let taps = filter_y.checked_mul(filter_x).filter(|taps| (1..=MOST_TAPS).contains(taps));
        let are_strides =
            [stride_y, stride_x].iter().all(|stride| (1..=MOST_PIXELS).contains(stride));
        if taps.is_none() || !are_strides {
            return Err(Reason::new(format!(
                "it has a filter of {filter_y} by {filter_x} with strides {stride_y} and {stride_x}, \
                 expected at most {MOST_TAPS} elements"
            )));
        }
        Ok(Self {
            is_same,
            stride: [stride_y, stride_x],
            filter: [filter_y, filter_x],
            activation: i32::from_le_bytes(activation),
        })
    }

    /// How many windows there are along an axis, and what is padded before and after it.
    fn along(&self, axis: usize, length: u32) -> Imported<(u32, u32, u32)> {
        let (filter, stride) = (self.filter[axis], self.stride[axis]);
        let none = || Reason::new(format!("no window of {filter} fits into {length}"));
        if length == 0 || length > MOST_PIXELS {
            return Err(none());
        }
        if !self.is_same {
            let windows = length.checked_sub(filter).ok_or_else(none)? / stride + 1;
            return Ok((windows, 0, 0));
        }
        let windows = length.div_ceil(stride);
        let all = ((windows - 1) * stride + filter).saturating_sub(length);
        Ok((windows, all / 2, all - all / 2))
    }
}
