//! Operators that move blocks of pixels: DEPTH_TO_SPACE, SPACE_TO_DEPTH, BATCH_TO_SPACE_ND and
//! SPACE_TO_BATCH_ND.

use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::Operator;
use crate::schema::BuiltinOptionsRef;
use nnhal_hal::{OperandId, OperandSpec, OperationType as O};

impl GraphImporter<'_, '_> {
    pub(super) fn blocks(&mut self, operator: &Operator<'_>, operation: O) -> Imported {
        let size = match operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::DepthToSpaceOptions(options)) => options.block_size()?,
            Some(BuiltinOptionsRef::SpaceToDepthOptions(options)) => options.block_size()?,
            _ => return Err(Reason::new("it has no options")),
        };
        let inputs = [self.input(operator, 0)?, self.builder.scalar_i32(size)];
        self.emit_for(operator, operation, &inputs)
    }

    pub(super) fn batch_to_space_nd(&mut self, operator: &Operator<'_>) -> Imported {
        let input_tensor = self.input_tensor(operator, 0)?;
        let output = self.output_tensor(operator, 0)?;
        if self.rank(input_tensor) == 3 {
            return self.batch_to_space_of_rows(operator);
        }
        if self.rank(input_tensor) != 4 {
            return Err(Reason::new("the HAL has this for images only"));
        }
        let crops = self.constant_integers(operator, 2)?;
        let inputs = [self.input(operator, 0)?, self.input(operator, 1)?];
        if crops.iter().all(|crop| *crop == 0) {
            return self.emit(O::BatchToSpaceNd, &inputs, output);
        }
        // The HAL crops nothing: cut the border off behind it.
        let [top, bottom, left, right] = *crops else {
            return Err(Reason::new("the HAL has this for images only"));
        };
        let cut = self.shape(output)?;
        let [batch, height, width, depth] = *cut else {
            return Err(Reason::new("the HAL has this for images only"));
        };
        let signed = |length: u32| i32::try_from(length).unwrap_or(i32::MAX);
        let whole = |length: u32, crops: i32| {
            u32::try_from(i64::from(length) + i64::from(crops))
                .map_err(|_| Reason::new("its crops are out of range"))
        };
        let full = vec![
            batch,
            whole(height, top.saturating_add(bottom))?,
            whole(width, left.saturating_add(right))?,
            depth,
        ];
        let spec = self.spec_with(output, full)?;
        let uncut = self.builder.operation(O::BatchToSpaceNd, inputs, spec);
        let begins = self.integer_vector(&[0, top, left, 0]);
        let sizes = self.integer_vector(&cut.iter().map(|it| signed(*it)).collect::<Vec<_>>());
        self.emit(O::Slice, &[uncut, begins, sizes], output)
    }

    pub(super) fn space_to_batch_nd(&mut self, operator: &Operator<'_>) -> Imported {
        let input_tensor = self.input_tensor(operator, 0)?;
        if self.rank(input_tensor) == 3 {
            return self.space_to_batch_of_rows(operator);
        }
        if self.rank(input_tensor) != 4 {
            return Err(Reason::new("the HAL has this for images only"));
        }
        let inputs = [self.input(operator, 0)?, self.input(operator, 1)?, self.input(operator, 2)?];
        self.emit_for(operator, O::SpaceToBatchNd, &inputs)
    }

    /// Rows of `[batch, length, depth]` as images that are one pixel wide, with their block.
    fn rows_as_images(&mut self, operator: &Operator<'_>) -> Imported<(OperandId, OperandId)> {
        let input = self.input_tensor(operator, 0)?;
        let [batch, length, depth] = *self.shape(input)? else {
            return Err(Reason::new("the HAL has this for images only"));
        };
        let spec = self.spec_with(input, vec![batch, length, 1, depth])?;
        let operand = self.flat_operand(input)?;
        let image = self.reshape(operand, spec)?;
        let block = self.constant_integer(operator, 1)?;
        Ok((image, self.integer_vector(&[block, 1])))
    }

    fn space_to_batch_of_rows(&mut self, operator: &Operator<'_>) -> Imported {
        let (image, block) = self.rows_as_images(operator)?;
        let output = self.output_tensor(operator, 0)?;
        let [before, behind] = *self.constant_integers(operator, 2)? else {
            return Err(Reason::new("it has not two paddings"));
        };
        let paddings = [before, behind, 0, 0];
        let paddings = self.builder.constant(OperandSpec::tensor_int32([2, 2]), &paddings);
        let [batch, length, depth] = *self.shape(output)? else {
            return Err(Reason::new("its result is not rows"));
        };
        let spec = self.spec_with(output, vec![batch, length, 1, depth])?;
        let inputs = [image, block, paddings];
        let result = self.builder.operation(O::SpaceToBatchNd, inputs, spec);
        self.reshape_to(result, output)
    }

    fn batch_to_space_of_rows(&mut self, operator: &Operator<'_>) -> Imported {
        let (image, block) = self.rows_as_images(operator)?;
        let output = self.output_tensor(operator, 0)?;
        let [before, behind] = *self.constant_integers(operator, 2)? else {
            return Err(Reason::new("it has not two crops"));
        };
        let [batch, length, depth] = *self.shape(output)? else {
            return Err(Reason::new("its result is not rows"));
        };
        let whole = i64::from(length) + i64::from(before) + i64::from(behind);
        let whole = u32::try_from(whole).map_err(|_| Reason::new("its crops are out of range"))?;
        let spec = self.spec_with(output, vec![batch, whole, 1, depth])?;
        let mut result = self.builder.operation(O::BatchToSpaceNd, [image, block], spec.clone());
        if whole != length {
            let sizes = [batch, length, 1, depth];
            let begins = self.integer_vector(&[0, before, 0, 0]);
            let spec = OperandSpec { dimensions: sizes.to_vec(), ..spec };
            let sizes = self.integer_vector(&sizes.map(u32::cast_signed));
            result = self.builder.operation(O::Slice, [result, begins, sizes], spec);
        }
        self.reshape_to(result, output)
    }
}
