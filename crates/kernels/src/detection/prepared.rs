//! What comes behind a network that detects, as prepared kernels.

use super::{DetectionPostprocessing, Detections, NoSuchRegion, RoiAlign};
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::team::Team;

/// Inputs: scores, deltas and anchors. Outputs: scores, boxes, classes and numbers.
impl PreparedKernel for DetectionPostprocessing {
    fn name(&self) -> String {
        "detection postprocessing f32".to_owned()
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [scores, boxes, classes, numbers], scratch) = operands.split();
        let output = Detections {
            scores: bytemuck::cast_slice_mut(scores),
            boxes: bytemuck::cast_slice_mut(boxes),
            classes: bytemuck::cast_slice_mut(classes),
            numbers: bytemuck::cast_slice_mut(numbers),
        };
        let given = [0, 1, 2].map(|index| inputs.of(index));
        self.run(team, given, output, bytemuck::cast_slice_mut(scratch));
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.scratch_words().saturating_mul(size_of::<u64>())
    }
}

/// Inputs: images, regions, and the image of each region.
impl PreparedKernel for RoiAlign {
    fn name(&self) -> String {
        "roi align f32".to_owned()
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], scratch) = operands.split();
        let (edges, images): (&[f32], &[i32]) = (inputs.of(1), inputs.of(2));
        let scratch = bytemuck::cast_slice_mut(scratch);
        let output = bytemuck::cast_slice_mut(output);
        let result = self.run(team, inputs.of(0), (edges, images), output, scratch);
        result.map_err(|NoSuchRegion(number)| WrongValue {
            input: 1,
            what: "value",
            found: format!("{:?} of image {}", &edges[number * 4..][..4], images[number]),
            expected: "a region of an image that there is, with its edges in order".to_owned(),
        })
    }

    fn scratch_bytes(&self) -> usize {
        self.scratch_words().saturating_mul(size_of::<f32>())
    }
}
