//! Convolutions of 8-bit numbers as kernels of images. Inputs: the image; where weights and biases are not known
//! before, those behind it.

use super::convolution::{Convolution, UnpackedConvolution};
use super::depthwise::Depthwise;
use super::transposed_convolution::TransposedConvolution;
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

impl ImageKernel for Depthwise {
    type Element = u8;

    fn name(&self) -> String {
        let operation = self.shape().name(true);
        format!("{operation} direct {} {}", self.signedness().name(), self.kernel())
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

impl ImageKernel for UnpackedConvolution {
    type Element = u8;

    fn name(&self) -> String {
        let operation = self.shape().name(self.is_depthwise());
        format!("{operation} direct with packing {}", self.signedness().name())
    }

    fn run_on_images(&self, team: &mut Team, images: Images<'_, u8>, scratch: &mut [Line]) {
        let Images { input, output, others } = images;
        self.run(team, input, others.of(1), others.of(2), output, scratch);
    }

    fn scratch_bytes(&self) -> usize {
        self.scratch_bytes()
    }

    fn arithmetic(&self) -> u64 {
        self.shape().operations()
    }
}

impl ImageKernel for TransposedConvolution {
    type Element = u8;

    fn name(&self) -> String {
        let (operation, elements) = (self.shape().name(), self.signedness().name());
        format!("{operation} gemm by phases {elements} {}", self.kernel())
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
