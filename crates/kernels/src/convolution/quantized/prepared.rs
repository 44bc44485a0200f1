//! Convolutions of quantized values as kernels of images. Input: the image.

use super::Convolution;
use crate::lines::Line;
use crate::of_images::{ImageKernel, Images};
use crate::team::Team;

impl ImageKernel for Convolution {
    type Element = u8;

    fn name(&self) -> String {
        let (operation, algorithm) = (self.shape().name(false), self.algorithm());
        format!("{operation} {algorithm} {} {}", self.signedness().name(), self.kernel())
    }

    fn run_on_images(&self, team: &mut Team, images: Images<'_, u8>, scratch: &mut [Line]) {
        let Images { input, output, .. } = images;
        self.run(team, input, output, scratch);
    }

    fn scratch_bytes(&self) -> usize {
        self.scratch_bytes()
    }

    fn arithmetic(&self) -> u64 {
        self.shape().operations()
    }
}
