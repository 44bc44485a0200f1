//! Weights with a scale for each block of inputs.

use super::tensor::Element;
use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::Operator;
use nnhal_hal::{OperandId, OperandSpec, OperandType, OperationType as O};
use nnhal_ops::extension::ExtensionOperation as E;
use std::borrow::Cow;

impl<'f> GraphImporter<'f, '_> {
    /// Input, weights and bias of FULLY_CONNECTED whose weights have a scale for each block; `None` if they do not.
    ///
    /// TensorFlow Lite rounds each row of the input to 8 bits while it runs, and so does the result. The weights become
    /// floats.
    pub(super) fn weighted_by_block(
        &mut self,
        operator: &Operator<'_>,
        filter: usize,
        [units, width]: [u32; 2],
    ) -> Imported<Option<Vec<OperandId>>> {
        if self.tensor(filter).blocks.is_none() {
            return Ok(None);
        }
        let weights = self.weights_by_block(filter, [units, width])?;
        let input = self.input_tensor(operator, 0)?;
        if self.element(input)? != Element::Float32 {
            return Err(Reason::new(
                "its weights have scales by block, and its input is not float32",
            ));
        }
        let count = super::movement::elements(&self.shape(input)?)? / width.max(1);
        let rows = OperandSpec::tensor_float32([count, width]);
        let operand = self.operand(input)?;
        let mut operand = self.reshape(operand, rows.clone())?;
        if !self.file.dequantizes_weights {
            let operation = E::DynamicRound.operation_type();
            operand = self.builder.operation(operation, [operand], rows);
        }
        let bias = operator.inputs.get(2).copied().flatten();
        Ok(Some(vec![operand, weights, self.bias(operand, weights, bias, units)?]))
    }

    /// Rows of a table whose weights have a scale for each block, each times its scales, of EMBEDDING_LOOKUP.
    pub(super) fn rows_by_block(
        &mut self,
        lookups: OperandId,
        values: usize,
        output: usize,
    ) -> Imported {
        let [count, width] = *self.lengths(values) else {
            let rank = self.lengths(values).len();
            return Err(Reason::new(format!("its table by block has {rank} axes, expected 2")));
        };
        let Blockwise { size, scales, weights } = self.blockwise(values, [count, width])?;
        let blocks = width / size;
        let steps = OperandSpec::new(OperandType::TensorQuant8AsymmSigned, [count, width]);
        let steps = self.builder.constant_bytes(steps.quantized(1.0, 0), &weights);
        let scales = self.builder.constant(OperandSpec::tensor_float32([count, blocks]), &scales);
        let &[found] = &self.builder.spec(lookups).dimensions[..] else {
            return Err(Reason::new("its numbers of rows have not one axis"));
        };
        if found == 0 {
            return Err(Reason::new("how many rows it looks up must be known here"));
        }
        let rows = OperandSpec::new(OperandType::TensorQuant8AsymmSigned, [found, width]);
        let rows = rows.quantized(1.0, 0);
        let rows = self.builder.operation(O::EmbeddingLookup, [lookups, steps], rows);
        let float = OperandSpec::tensor_float32([found, width]);
        let rows = self.builder.operation(O::Dequantize, [rows], float.clone());
        let by_block = OperandSpec::tensor_float32([found, blocks, size]);
        let rows = self.reshape(rows, by_block.clone())?;
        let factors = OperandSpec::tensor_float32([found, blocks]);
        let factors = self.builder.operation(O::EmbeddingLookup, [lookups, scales], factors);
        let factors = self.reshape(factors, OperandSpec::tensor_float32([found, blocks, 1]))?;
        let none = self.builder.scalar_i32(0);
        let scaled = self.builder.operation(O::Mul, [rows, factors, none], by_block);
        let scaled = self.reshape(scaled, float)?;
        self.emit_float32(scaled, output)
    }

    /// The weights as floats.
    fn weights_by_block(&mut self, filter: usize, shape: [u32; 2]) -> Imported<OperandId> {
        let Blockwise { size, scales, weights } = self.blockwise(filter, shape)?;
        self.file.allow(weights.len().saturating_mul(size_of::<f32>()))?;
        let blocks = weights.chunks_exact(size as usize).zip(&scales);
        let floats = blocks.flat_map(|(block, scale)| {
            block.iter().map(move |weight| f32::from(weight.cast_signed()) * scale)
        });
        let floats: Vec<f32> = floats.collect();
        Ok(self.builder.constant(OperandSpec::tensor_float32(shape), &floats))
    }

    /// The scales and the weights of a constant.
    fn blockwise(&self, filter: usize, [units, width]: [u32; 2]) -> Imported<Blockwise<'f>> {
        let tensor = self.tensor(filter);
        let wrong = |what: String| Reason::new(format!("{}: {what}", tensor.shown_name()));
        let element = Element::of(tensor).filter(|it| it.becomes_int8());
        let (Some(blocks), Some(element)) = (tensor.blocks, element) else {
            return Err(wrong("scales by block are of INT2, INT4 or INT8".into()));
        };
        let count = width / blocks.size;
        if count * blocks.size != width || blocks.scales >= self.graph.tensors.len() {
            let size = blocks.size;
            return Err(wrong(format!(
                "blocks of {size} do not fit rows of {width}, or have no scales"
            )));
        }
        let stored = self.constant_bytes(blocks.scales)?;
        let scales: Vec<f32> = match self.element(blocks.scales)? {
            Element::Float16 => {
                let halves = stored.as_chunks().0.iter();
                halves.map(|it| half::f16::from_le_bytes(*it).to_f32()).collect()
            }
            Element::Float32 => {
                stored.as_chunks().0.iter().map(|it| f32::from_le_bytes(*it)).collect()
            }
            other => return Err(wrong(format!("its scales are {other:?}, expected floats"))),
        };
        if scales.len() as u64 != u64::from(units) * u64::from(count) {
            let found = scales.len();
            return Err(wrong(format!("{found} scales, expected {units} times {count}")));
        }
        let weights = self.bytes_of(filter, element)?;
        Ok(Blockwise { size: blocks.size, scales, weights })
    }
}

/// Weights with a scale for each block, row by row.
struct Blockwise<'a> {
    /// Weights of a block, above 0.
    size: u32,
    scales: Vec<f32>,
    /// 8 bits with a sign each.
    weights: Cow<'a, [u8]>,
}
