//! Convolutions of floats as kernels of images. Inputs: the image, and the residual operand if there is one.

use super::packed::Convolution;
use crate::lines::Line;
use crate::of_images::{ImageKernel, Images};
use crate::team::Team;

impl ImageKernel for Convolution {
    type Element = f32;

    fn name(&self) -> String {
        format!("{} {}", self.shape().name(false), self.kernel())
    }

    fn run_on_images(&self, team: &mut Team, images: Images<'_, f32>, scratch: &mut [Line]) {
        let Images { input, output, others } = images;
        self.run(team, input, others.residual(1), output, scratch);
    }

    fn scratch_bytes(&self) -> usize {
        self.scratch_bytes()
    }

    fn arithmetic(&self) -> u64 {
        self.shape().operations()
    }
}
