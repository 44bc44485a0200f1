//! Convolutions of 8-bit numbers as prepared kernels of images. Inputs: the image; where weights and biases are
//! not known before, those behind it.

use super::convolution::{Convolution, UnpackedConvolution};
use super::depthwise::Depthwise;
use super::transposed_convolution::TransposedConvolution;
use crate::of_images::OfImages;
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::team::Team;

impl PreparedKernel for OfImages<Convolution> {
    fn name(&self) -> String {
        let Self { kernel, .. } = self;
        let (operation, algorithm) = (kernel.shape().name(false), kernel.algorithm());
        format!("{operation} {algorithm} {} {}", kernel.signedness().name(), kernel.kernel())
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], scratch) = operands.split();
        let scratch = bytemuck::cast_slice_mut(scratch);
        self.kernel.run(team, self.input(inputs), self.output(output), scratch);
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.kernel.scratch_bytes()
    }

    fn arithmetic(&self) -> u64 {
        self.kernel.shape().operations()
    }

    fn is_8_bit(&self) -> bool {
        true
    }
}

impl PreparedKernel for OfImages<Depthwise> {
    fn name(&self) -> String {
        let Self { kernel, .. } = self;
        let operation = kernel.shape().name(true);
        format!("{operation} direct {} {}", kernel.signedness().name(), kernel.kernel())
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], scratch) = operands.split();
        let scratch = bytemuck::cast_slice_mut(scratch);
        self.kernel.run(team, self.input(inputs), self.output(output), scratch);
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.kernel.scratch_bytes()
    }

    fn arithmetic(&self) -> u64 {
        self.kernel.shape().operations()
    }

    fn is_8_bit(&self) -> bool {
        true
    }
}

impl PreparedKernel for OfImages<UnpackedConvolution> {
    fn name(&self) -> String {
        let Self { kernel, .. } = self;
        let operation = kernel.shape().name(kernel.is_depthwise());
        format!("{operation} direct with packing {}", kernel.signedness().name())
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], scratch) = operands.split();
        let (weights, bias) = (inputs.of(1), inputs.of(2));
        let scratch = bytemuck::cast_slice_mut(scratch);
        self.kernel.run(team, self.input(inputs), weights, bias, self.output(output), scratch);
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.kernel.scratch_bytes()
    }

    fn arithmetic(&self) -> u64 {
        self.kernel.shape().operations()
    }

    fn is_8_bit(&self) -> bool {
        true
    }
}

impl PreparedKernel for OfImages<TransposedConvolution> {
    fn name(&self) -> String {
        let Self { kernel, .. } = self;
        let operation = kernel.shape().name();
        let (elements, set) = (kernel.signedness().name(), kernel.kernel());
        format!("{operation} gemm by phases {elements} {set}")
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], scratch) = operands.split();
        let scratch = bytemuck::cast_slice_mut(scratch);
        self.kernel.run(team, self.input(inputs), self.output(output), scratch);
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.kernel.scratch_bytes()
    }

    fn arithmetic(&self) -> u64 {
        self.kernel.shape().operations()
    }

    fn is_8_bit(&self) -> bool {
        true
    }
}
