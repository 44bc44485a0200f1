//! Kernels of dynamic ranges as prepared kernels. Input: the floats.

use super::{Convolution, Rounding};
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::team::Team;

impl PreparedKernel for Convolution {
    fn name(&self) -> String {
        let shape = self.shape();
        let layer = if shape.input == [1, 1] && shape.filter == [1, 1] {
            "fully connected".to_owned()
        } else {
            shape.name(false)
        };
        format!("dynamic {layer} gemm i8 {}", self.kernel())
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], scratch) = operands.split();
        let output = bytemuck::cast_slice_mut(output);
        self.run(team, inputs.of(0), output, bytemuck::cast_slice_mut(scratch));
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        Self::scratch_bytes(self)
    }

    fn arithmetic(&self) -> u64 {
        self.operations()
    }

    fn is_8_bit(&self) -> bool {
        true
    }
}

impl PreparedKernel for Rounding {
    fn name(&self) -> String {
        "dynamic round f32".to_owned()
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], scratch) = operands.split();
        let output = bytemuck::cast_slice_mut(output);
        self.run(team, inputs.of(0), output, bytemuck::cast_slice_mut(scratch));
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        Self::scratch_bytes(self)
    }
}
