//! Expressions of floats.

use crate::error::Reason;
use crate::import::Imported;
use crate::import::array::common_shape;
use crate::import::builder::Builder;
use nnhal_hal::{OperandId, OperandSpec, OperationType as O};
use nnhal_ops::extension::ExtensionOperation as E;

/// Expressions of floats.
pub(super) struct Floats<'b> {
    pub(super) builder: &'b mut Builder,
    /// No activation.
    none: OperandId,
}

impl<'b> Floats<'b> {
    pub(super) fn new(builder: &'b mut Builder) -> Self {
        let none = builder.scalar_i32(0);
        Self { builder, none }
    }

    pub(super) fn shape(&self, operand: OperandId) -> Vec<u32> {
        self.builder.spec(operand).dimensions
    }

    pub(super) fn spec_of(&self, operand: OperandId) -> OperandSpec {
        OperandSpec::tensor_float32(self.shape(operand))
    }

    pub(super) fn constant(&mut self, shape: &[u32], values: &[f32]) -> OperandId {
        self.builder.constant(OperandSpec::tensor_float32(shape), values)
    }

    /// One value everywhere. The model does not keep it: shapes come from strangers.
    pub(super) fn filled(&mut self, shape: &[u32], value: f32) -> OperandId {
        let inputs = [self.integers(shape), self.builder.scalar_f32(value)];
        self.builder.operation(O::Fill, inputs, OperandSpec::tensor_float32(shape))
    }

    /// As `[1, 1]`.
    #[allow(clippy::cast_possible_truncation)] // As the definition computes.
    pub(super) fn number(&mut self, value: f64) -> OperandId {
        self.constant(&[1, 1], &[value as f32])
    }

    pub(super) fn unary(&mut self, operation: O, operand: OperandId) -> OperandId {
        let spec = self.spec_of(operand);
        self.builder.operation(operation, [operand], spec)
    }

    /// ADD, SUB or MUL.
    pub(super) fn binary(
        &mut self,
        operation: O,
        a: OperandId,
        b: OperandId,
    ) -> Imported<OperandId> {
        let shape = common_shape(&self.shape(a), &self.shape(b))?;
        let inputs = [a, b, self.none];
        Ok(self.builder.operation(operation, inputs, OperandSpec::tensor_float32(shape)))
    }

    /// MINIMUM or MAXIMUM.
    pub(super) fn pair(&mut self, operation: O, a: OperandId, b: OperandId) -> Imported<OperandId> {
        let shape = common_shape(&self.shape(a), &self.shape(b))?;
        Ok(self.builder.operation(operation, [a, b], OperandSpec::tensor_float32(shape)))
    }

    pub(super) fn scaled(&mut self, operand: OperandId, factor: f64) -> Imported<OperandId> {
        let factor = self.number(factor);
        self.binary(O::Mul, operand, factor)
    }

    pub(super) fn angle(&mut self, y: OperandId, x: OperandId) -> OperandId {
        let spec = self.spec_of(y);
        self.builder.extended(E::Atan2, [y, x], spec)
    }

    /// Of the shape of the first one.
    pub(super) fn compared(&mut self, operation: O, a: OperandId, b: OperandId) -> OperandId {
        let spec = OperandSpec::tensor_bool8(self.shape(a));
        self.builder.operation(operation, [a, b], spec)
    }

    pub(super) fn both(&mut self, a: OperandId, b: OperandId) -> OperandId {
        let spec = OperandSpec::tensor_bool8(self.shape(a));
        self.builder.operation(O::LogicalAnd, [a, b], spec)
    }

    /// All three are of one shape.
    pub(super) fn selected(
        &mut self,
        choice: OperandId,
        yes: OperandId,
        no: OperandId,
    ) -> OperandId {
        let spec = self.spec_of(yes);
        self.builder.operation(O::Select, [choice, yes, no], spec)
    }

    /// `[count, 1]` of truth values, as `[count, channels]`.
    pub(super) fn widened(&mut self, truths: OperandId, channels: u32) -> OperandId {
        let [count, ..] = self.shape(truths)[..] else { return truths };
        let repeats = self.builder.constant(
            OperandSpec::tensor_int32([2]),
            &[1, i32::try_from(channels).unwrap_or(i32::MAX)],
        );
        let spec = OperandSpec::tensor_bool8([count, channels]);
        self.builder.operation(O::Tile, [truths, repeats], spec)
    }

    /// As `[1, 1]`.
    pub(super) fn reduced(&mut self, operation: O, operand: OperandId) -> OperandId {
        let axes = self.builder.constant(OperandSpec::tensor_int32([1]), &[0]);
        let keep = self.builder.scalar_bool(true);
        let spec = OperandSpec::tensor_float32([1, 1]);
        self.builder.operation(operation, [operand, axes, keep], spec)
    }

    pub(super) fn integers(&mut self, values: &[u32]) -> OperandId {
        let values: Vec<i32> =
            values.iter().map(|it| i32::try_from(*it).unwrap_or(i32::MAX)).collect();
        let count = u32::try_from(values.len()).unwrap_or(u32::MAX);
        self.builder.constant(OperandSpec::tensor_int32([count]), &values)
    }

    pub(super) fn reshaped(&mut self, operand: OperandId, shape: &[u32]) -> Imported<OperandId> {
        let elements = |shape: &[u32]| shape.iter().try_fold(1_u32, |all, it| all.checked_mul(*it));
        let (found, wanted) = (self.shape(operand), elements(shape));
        if found == shape {
            return Ok(operand);
        }
        if elements(&found) != wanted || wanted.is_none() {
            return Err(Reason::new(format!("{found:?} is not as many elements as {shape:?}")));
        }
        let lengths = self.integers(shape);
        let spec = OperandSpec::tensor_float32(shape);
        Ok(self.builder.operation(O::Reshape, [operand, lengths], spec))
    }

    /// Rows of a table.
    pub(super) fn gathered(&mut self, table: OperandId, rows: &[i32]) -> OperandId {
        let count = length(rows);
        let indexes = self.builder.constant(OperandSpec::tensor_int32([count]), rows);
        let axis = self.builder.scalar_i32(0);
        let depth = self.shape(table).last().copied().unwrap_or(1);
        let spec = OperandSpec::tensor_float32([count, depth]);
        self.builder.operation(O::Gather, [table, axis, indexes], spec)
    }

    /// The rows that floats `[count, 1]` say.
    pub(super) fn taken(
        &mut self,
        table: OperandId,
        rows: OperandId,
        count: u32,
        depth: u32,
    ) -> Imported<OperandId> {
        let rows = self.reshaped(rows, &[count])?;
        let rows = self.builder.operation(O::Cast, [rows], OperandSpec::tensor_int32([count]));
        let axis = self.builder.scalar_i32(0);
        let spec = OperandSpec::tensor_float32([count, depth]);
        Ok(self.builder.operation(O::Gather, [table, axis, rows], spec))
    }

    pub(super) fn part(&mut self, operand: OperandId, begin: &[u32], size: &[u32]) -> OperandId {
        let inputs = [operand, self.integers(begin), self.integers(size)];
        self.builder.operation(O::Slice, inputs, OperandSpec::tensor_float32(size))
    }

    pub(super) fn joined(&mut self, operands: &[OperandId], axis: i32, shape: &[u32]) -> OperandId {
        let mut inputs = operands.to_vec();
        inputs.push(self.builder.scalar_i32(axis));
        self.builder.operation(O::Concatenation, inputs, OperandSpec::tensor_float32(shape))
    }

    pub(super) fn padded(
        &mut self,
        operand: OperandId,
        paddings: &[u32],
        value: f32,
        shape: &[u32],
    ) -> OperandId {
        let values: Vec<i32> =
            paddings.iter().map(|it| i32::try_from(*it).unwrap_or(i32::MAX)).collect();
        let axes = length(&values) / 2;
        let paddings = self.builder.constant(OperandSpec::tensor_int32([axes, 2]), &values);
        let value = self.builder.scalar_f32(value);
        self.builder.operation(
            O::PadV2,
            [operand, paddings, value],
            OperandSpec::tensor_float32(shape),
        )
    }

    /// Pixels of an image at strides, as many as `shape` says.
    pub(super) fn strided(
        &mut self,
        image: OperandId,
        [top, left]: [u32; 2],
        [down, across]: [u32; 2],
        shape: &[u32; 4],
    ) -> Imported<OperandId> {
        let [batch, rows, columns, channels] = *shape;
        let end = |start: u32, count: u32, stride: u32| {
            count.checked_sub(1)?.checked_mul(stride)?.checked_add(start + 1)
        };
        let (Some(bottom), Some(right)) = (end(top, rows, down), end(left, columns, across)) else {
            return Err(Reason::new(format!("its output is {shape:?}, too large")));
        };
        let begin = self.integers(&[0, top, left, 0]);
        let end = self.integers(&[batch, bottom, right, channels]);
        let strides = self.integers(&[1, down, across, 1]);
        let masks = [0; 3].map(|mask| self.builder.scalar_i32(mask));
        let inputs = [image, begin, end, strides, masks[0], masks[1], masks[2]];
        Ok(self.builder.operation(O::StridedSlice, inputs, OperandSpec::tensor_float32(*shape)))
    }

    /// The first two rows of a matrix: what x, y and 1 are multiplied with, each as `[1, 1]`.
    pub(super) fn matrix(&mut self, matrix: OperandId) -> Imported<[[OperandId; 3]; 2]> {
        let elements = self.reshaped(matrix, &[1, 16])?;
        Ok([0, 4].map(|row| [0, 1, 3].map(|at| self.part(elements, &[0, row + at], &[1, 1]))))
    }
}

pub(super) fn length(indexes: &[i32]) -> u32 {
    u32::try_from(indexes.len()).unwrap_or(u32::MAX)
}
