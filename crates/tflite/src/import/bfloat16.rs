//! Floats of 16 bits that are the upper half of those of 32 bits: operands hold them as float32.

use super::GraphImporter;
use nnhal_hal::{OperandId, OperandSpec, OperationType as O};
use nnhal_ops::extension::{ExtensionOperation as E, TENSOR_UINT16};

impl GraphImporter<'_, '_> {
    /// The nearest numbers that the upper halves of floats hold, of two the one with an even last bit.
    pub(super) fn rounded_to_bfloat16(&mut self, operand: OperandId) -> OperandId {
        let floats = self.builder.spec(operand);
        let whole = OperandSpec::tensor_int32(floats.dimensions.clone());
        let [half, one, below, upper] =
            [16, 1, 0x7FFF, -0x1_0000].map(|it| self.integer_vector(&[it]));
        let none = self.builder.scalar_i32(0);
        let build = &mut self.builder;
        let bits = build.extended(E::Bitcast, [operand], whole.clone());
        let shifted = build.extended(E::RightShift, [bits, half], whole.clone());
        let odd = build.extended(E::BitwiseAnd, [shifted, one], whole.clone());
        let raised = build.operation(O::Add, [bits, below, none], whole.clone());
        let raised = build.operation(O::Add, [raised, odd, none], whole.clone());
        let cut = build.extended(E::BitwiseAnd, [raised, upper], whole);
        let rounded = build.extended(E::Bitcast, [cut], floats.clone());
        // What is no number could become another one.
        let truth = OperandSpec::tensor_bool8(floats.dimensions.clone());
        let is_number = build.operation(O::Equal, [operand, operand], truth);
        build.operation(O::Select, [is_number, rounded, operand], floats)
    }

    /// Floats of the numbers whose bits a caller gives as integers.
    pub(super) fn of_bfloat16(&mut self, bits: OperandId) -> OperandId {
        let dimensions = self.builder.spec(bits).dimensions;
        let half = self.integer_vector(&[16]);
        let whole = OperandSpec::tensor_int32(dimensions.clone());
        let build = &mut self.builder;
        let wide = build.extended(E::Cast, [bits], whole.clone());
        let upper = build.extended(E::LeftShift, [wide, half], whole);
        build.extended(E::Bitcast, [upper], OperandSpec::tensor_float32(dimensions))
    }

    /// The bits of floats that are such numbers, as integers.
    pub(super) fn bits_of_bfloat16(&mut self, floats: OperandId) -> OperandId {
        let dimensions = self.builder.spec(floats).dimensions;
        let half = self.integer_vector(&[16]);
        let whole = OperandSpec::tensor_int32(dimensions.clone());
        let build = &mut self.builder;
        let bits = build.extended(E::Bitcast, [floats], whole.clone());
        let upper = build.extended(E::RightShift, [bits, half], whole);
        // Modulo the size of the type.
        build.extended(E::Cast, [upper], OperandSpec::new(TENSOR_UINT16, dimensions))
    }
}
