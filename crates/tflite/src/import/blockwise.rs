//! Weights with a scale for each block of inputs.

use super::tensor::Element;
use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::Operator;
use nnhal_hal::{OperandId, OperandSpec};
use nnhal_ops::extension::ExtensionOperation as E;

impl GraphImporter<'_, '_> {
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

    /// The weights as floats.
    fn weights_by_block(&mut self, filter: usize, [units, width]: [u32; 2]) -> Imported<OperandId> {
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
        self.file.allow(weights.len().saturating_mul(size_of::<f32>()))?;
        let blocks = weights.chunks_exact(blocks.size as usize).zip(&scales);
        let floats = blocks.flat_map(|(block, scale)| {
            block.iter().map(move |weight| f32::from(weight.cast_signed()) * scale)
        });
        let floats: Vec<f32> = floats.collect();
        Ok(self.builder.constant(OperandSpec::tensor_float32([units, width]), &floats))
    }
}
