//! Depthwise convolutions of floats as prepared kernels of images. Inputs: the image, and the residual operand
//! if there is one.

use super::DepthwiseConvolution;
use crate::of_images::OfImages;
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::team::Team;

impl PreparedKernel for OfImages<DepthwiseConvolution> {
    fn name(&self) -> String {
        let operation = self.kernel.shape().name(true);
        format!("{operation} {}", self.kernel.kernel())
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], scratch) = operands.split();
        let (residual, scratch) = (self.residual(inputs, 1), bytemuck::cast_slice_mut(scratch));
        self.kernel.run(team, self.input(inputs), residual, self.output(output), scratch);
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.kernel.scratch_bytes()
    }

    fn arithmetic(&self) -> u64 {
        self.kernel.shape().operations()
    }
}
