//! Operators that only our extension has operations for.

use super::tensor::Element;
use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::Operator;
use crate::schema::{BuiltinOperator as B, BuiltinOptionsRef};
use nnhal_hal::{OperandId, OperandSpec, OperationType};
use nnhal_ops::extension::ExtensionOperation as E;

impl GraphImporter<'_, '_> {
    pub(super) fn extended(&mut self, builtin: B, operator: &Operator<'_>) -> Option<Imported> {
        Some(match builtin {
            B::Cos => self.through_float_extended(operator, E::Cos),
            B::Round => self.through_float_extended(operator, E::Round),
            B::Sign => self.extended_unary(operator, E::Sign),
            B::Atan2 => self.extended_binary(operator, E::Atan2),
            B::BitwiseXor => self.extended_binary(operator, E::BitwiseXor),
            B::RightShift => self.extended_binary(operator, E::RightShift),
            B::StablehloShiftLeft => self.extended_binary(operator, E::LeftShift),
            B::StablehloAnd => self.stablehlo_and(operator),
            B::StablehloGather => self.stablehlo_gather(operator),
            B::StablehloScatter => self.stablehlo_scatter(operator),
            B::Cumsum => self.cumulative_sum(operator),
            B::GatherNd => self.extended_binary(operator, E::GatherNd),
            B::ScatterNd => self.all_inputs(operator, E::ScatterNd, 3),
            B::Where => self.extended_unary(operator, E::Where),
            B::SparseToDense => self.sparse_to_dense(operator),
            B::BroadcastArgs => self.extended_binary(operator, E::BroadcastArgs),
            B::ReverseSequence => self.reverse_sequence(operator),
            B::MatrixDiag => self.extended_unary(operator, E::MatrixDiag),
            B::MatrixSetDiag => self.extended_binary(operator, E::MatrixSetDiag),
            B::Unique => self.all_outputs(operator, E::Unique, 1, 2),
            B::SegmentSum => self.extended_binary(operator, E::SegmentSum),
            B::UnsortedSegmentMax => self.all_inputs(operator, E::UnsortedSegmentMax, 3),
            B::UnsortedSegmentMin => self.all_inputs(operator, E::UnsortedSegmentMin, 3),
            B::UnsortedSegmentProd => self.all_inputs(operator, E::UnsortedSegmentProd, 3),
            B::UnsortedSegmentSum => self.all_inputs(operator, E::UnsortedSegmentSum, 3),
            B::Bucketize => self.bucketize(operator),
            B::Bitcast => self.extended_unary(operator, E::Bitcast),
            B::Rfft2d => self.extended_binary(operator, E::Rfft2d),
            B::ComplexAbs => self.extended_unary(operator, E::ComplexAbs),
            B::Real => self.extended_unary(operator, E::Real),
            B::Imag => self.extended_unary(operator, E::Imag),
            B::Conv3d => self.conv_3d(operator, E::Conv3d),
            B::Conv3dTranspose => self.conv_3d(operator, E::Conv3dTranspose),
            B::DynamicUpdateSlice => self.all_inputs(operator, E::DynamicUpdateSlice, 3),
            B::NonMaxSuppressionV4 => self.all_outputs(operator, E::NonMaxSuppressionV4, 5, 2),
            B::NonMaxSuppressionV5 => self.all_outputs(operator, E::NonMaxSuppressionV5, 6, 3),
            _ => return None,
        })
    }

    /// Of truth values or of bits.
    fn stablehlo_and(&mut self, operator: &Operator<'_>) -> Imported {
        match self.element(self.input_tensor(operator, 0)?)? {
            Element::Bool => self.binary(operator, OperationType::LogicalAnd),
            _ => self.extended_binary(operator, E::BitwiseAnd),
        }
    }

    /// An operation that takes the operator's inputs as they are.
    fn all_inputs(&mut self, operator: &Operator<'_>, operation: E, count: usize) -> Imported {
        let inputs = self.first_inputs(operator, count)?;
        self.emit_extended(operator, operation, &inputs)
    }

    fn first_inputs(&mut self, operator: &Operator<'_>, count: usize) -> Imported<Vec<OperandId>> {
        (0..count).map(|at| self.input(operator, at)).collect()
    }

    /// The same with several outputs.
    fn all_outputs(
        &mut self,
        operator: &Operator<'_>,
        operation: E,
        inputs: usize,
        outputs: usize,
    ) -> Imported {
        let inputs = self.first_inputs(operator, inputs)?;
        let tensors = (0..outputs).map(|at| self.output_tensor(operator, at));
        let tensors = tensors.collect::<Imported<Vec<_>>>()?;
        let mut results = Vec::with_capacity(outputs);
        for tensor in &tensors {
            let spec = self.spec(*tensor)?;
            results.push(self.builder.temporary(spec));
        }
        self.builder.operation_into(operation.operation_type(), inputs, &results);
        for (tensor, result) in tensors.into_iter().zip(results) {
            self.set(tensor, result);
        }
        Ok(())
    }

    /// A function of real numbers: quantized ones are dequantized before and quantized behind it.
    fn through_float_extended(&mut self, operator: &Operator<'_>, operation: E) -> Imported {
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        if !self.element(input)?.is_quantized() {
            return self.extended_unary(operator, operation);
        }
        let float = self.as_float32(input)?;
        let spec = OperandSpec::tensor_float32(self.spec(output)?.dimensions);
        let result = self.builder.extended(operation, [float], spec);
        self.emit_float32(result, output)
    }

    fn cumulative_sum(&mut self, operator: &Operator<'_>) -> Imported {
        let (exclusive, reverse) = match operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::CumsumOptions(options)) => {
                (options.exclusive()?, options.reverse()?)
            }
            _ => (false, false),
        };
        let axis = self.constant_integer(operator, 1)?;
        let inputs = [
            self.input(operator, 0)?,
            self.builder.scalar_i32(axis),
            self.builder.scalar_bool(exclusive),
            self.builder.scalar_bool(reverse),
        ];
        self.emit_extended(operator, E::Cumsum, &inputs)
    }

    fn sparse_to_dense(&mut self, operator: &Operator<'_>) -> Imported {
        let mut inputs = self.first_inputs(operator, 4)?;
        let indexes = self.input_tensor(operator, 0)?;
        let mut spec = self.builder.spec(inputs[0]);
        // A row for each index, which the file may leave out for a single axis.
        if self.rank(indexes) < 2 {
            spec.dimensions = vec![spec.dimensions.first().copied().unwrap_or(1), 1];
            inputs[0] = self.reshape(inputs[0], spec)?;
        }
        self.emit_extended(operator, E::SparseToDense, &inputs)
    }

    fn reverse_sequence(&mut self, operator: &Operator<'_>) -> Imported {
        let (sequence, batch) = match operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::ReverseSequenceOptions(options)) => {
                (options.seq_dim()?, options.batch_dim()?)
            }
            _ => (0, 0),
        };
        let inputs = [
            self.input(operator, 0)?,
            self.input(operator, 1)?,
            self.builder.scalar_i32(sequence),
            self.builder.scalar_i32(batch),
        ];
        self.emit_extended(operator, E::ReverseSequence, &inputs)
    }

    fn bucketize(&mut self, operator: &Operator<'_>) -> Imported {
        let boundaries = match operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::BucketizeOptions(options)) => options.boundaries()?,
            _ => None,
        };
        let boundaries: Vec<f32> = boundaries.into_iter().flatten().collect();
        let count = u32::try_from(boundaries.len()).unwrap_or(0);
        if count == 0 {
            return Err(Reason::new("it has no boundaries"));
        }
        self.file.allow(size_of_val(&boundaries[..]))?;
        let boundaries = self.builder.constant(OperandSpec::tensor_float32([count]), &boundaries);
        let inputs = [self.input(operator, 0)?, boundaries];
        self.emit_extended(operator, E::Bucketize, &inputs)
    }

    /// Inputs: image, filter, bias; transposed: the shape of the result, filter, image, bias.
    fn conv_3d(&mut self, operator: &Operator<'_>, operation: E) -> Imported {
        let options = options!(operator, Conv3DOptions);
        let is_transposed = operation == E::Conv3dTranspose;
        let (image, bias_at) = if is_transposed { (2, 3) } else { (0, 2) };
        let filter = self.input_tensor(operator, 1)?;
        let [_, _, _, inner, outer] = *self.shape(filter)? else {
            return Err(Reason::new("its filter has not five axes"));
        };
        let results = if is_transposed { inner } else { outer };
        let activation = super::operand::Activation::of(options.fused_activation_function()?)?;
        let mut inputs = vec![self.input(operator, image)?, self.as_float32(filter)?];
        inputs.push(match operator.inputs.get(bias_at).copied().flatten() {
            Some(bias) => self.operand(bias)?,
            None => {
                self.file.allow(results as usize * 4)?;
                let spec = OperandSpec::tensor_float32([results]);
                self.builder.constant(spec, &vec![0.0_f32; results as usize])
            }
        });
        let padding = super::operand::padding_scheme(options.padding()?);
        let numbers = [
            padding,
            options.stride_d()?,
            options.stride_h()?,
            options.stride_w()?,
            options.dilation_d_factor()?,
            options.dilation_h_factor()?,
            options.dilation_w_factor()?,
        ];
        for number in numbers {
            inputs.push(self.builder.scalar_i32(number));
        }
        inputs.push(self.activation_operand(activation));
        if is_transposed {
            inputs.push(self.input(operator, 0)?);
        }
        self.emit_activated(operator, operation.operation_type(), &inputs, activation)
    }
}
