//! [`Rounding`]: floats as 8 bits can hold them.

use super::images::Images;
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::vector::Isa;
use crate::{LINE_BYTES, Line, Preparation, Team, TooLarge};

/// Rounds parts of a tensor, each by its own range, and cuts the work into tasks.
#[derive(Debug)]
pub struct Rounding(Images);

impl Rounding {
    /// For a number of parts, and the number of elements that each has.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    pub fn prepare(sizes: [usize; 2], preparation: &mut Preparation) -> Result<Self, TooLarge> {
        let [count, elements] = sizes;
        let all = count.checked_mul(elements).and_then(|all| all.checked_mul(size_of::<f32>()));
        if all.is_none() {
            return Err(TooLarge::beyond_addresses("elements"));
        }
        let images = Images::new(Isa::of(preparation.set()), sizes, preparation.threads());
        preparation.check_scratch::<Line>(&[images.meaning_lines()])?;
        Ok(Self(images))
    }

    /// Computes the output.
    ///
    /// # Panics
    /// If the input, the output or the scratch memory is too small.
    pub fn run(&self, team: &mut Team, input: &[f32], output: &mut [f32], scratch: &mut [Line]) {
        self.0.round_to_floats(team, input, output, scratch);
    }
}

/// Input: the floats.
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
        self.0.meaning_lines() * LINE_BYTES
    }
}
