//! Operations on regions of images.

use super::fit;
use crate::calls::random::Random;
use crate::calls::sample::{Quant, Sample};
use nnhal_hal::OperationType;

/// How coordinates are stored.
const COORDINATE: Quant = Quant::Scale(0.125);

/// Boxes `[x1, y1, x2, y2]` within a square, at places that their stored type has.
fn boxes(count: u32, size: i32, random: &mut Random) -> Vec<f64> {
    let mut numbers = Vec::new();
    for _ in 0..count {
        let [x, y] = [(); 2].map(|()| random.int(0, size * 4));
        let [width, height] = [(); 2].map(|()| random.int(8, size * 4));
        numbers.extend([x, y, x + width, y + height].map(|eighths| f64::from(eighths) / 8.0));
    }
    numbers
}

/// Batch indexes in order.
fn batch_indexes(count: u32, batches: u32, random: &mut Random) -> Vec<i32> {
    let most = i32::try_from(batches).unwrap() - 1;
    let mut indexes: Vec<i32> = (0..count).map(|_| random.int(0, most)).collect();
    indexes.sort_unstable();
    indexes
}

pub fn axis_aligned_bbox_transform(random: &mut Random) -> Sample {
    let (count, classes, batches) = (random.length(1, 4), random.length(1, 3), random.length(1, 3));
    let deltas = [count, classes * 4];
    let images: Vec<f64> = (0..batches * 2).map(|_| f64::from(random.int(16, 40))).collect();
    Sample::new(OperationType::AxisAlignedBboxTransform)
        .tensor(&[count, 4], boxes(count, 24, random))
        .stored(COORDINATE)
        .tensor(&deltas, random.reals(&deltas, -1.0, 1.0))
        .integers(&batch_indexes(count, batches, random))
        .tensor(&[batches, 2], images)
        .stored(COORDINATE)
        .output(COORDINATE)
}

pub fn box_with_nms_limit(random: &mut Random) -> Sample {
    let (count, classes, batches) = (random.length(1, 5), random.length(2, 3), random.length(1, 2));
    // Scores that differ by more than any type rounds.
    let ranks = random.permutation((count * classes) as usize);
    let scores = ranks.into_iter().map(|rank| f64::from(u32::try_from(rank).unwrap()) / 16.0);
    Sample::new(OperationType::BoxWithNmsLimit)
        .tensor(&[count, classes], scores.collect())
        .stored(Quant::Fixed(1.0 / 64.0, 0))
        .tensor(&[count, classes * 4], boxes(count * classes, 24, random))
        .stored(COORDINATE)
        .integers(&batch_indexes(count, batches, random))
        .scalars(&[0.125])
        .ints(&[random.int(-1, 4), random.int(0, 2)])
        .scalars(&[0.375, 0.5, 0.25])
        .output(Quant::As(0))
        .output(COORDINATE)
        .output(Quant::Fit(1.0))
        .output(Quant::Fit(1.0))
}

pub fn detection_postprocessing(random: &mut Random) -> Sample {
    let (batch, anchors, classes) = (random.length(1, 2), random.length(1, 4), random.length(2, 3));
    let ranks = random.permutation((batch * anchors * classes) as usize);
    let scores = ranks.into_iter().map(|rank| f64::from(u32::try_from(rank).unwrap()) / 32.0);
    let deltas = [batch, anchors, random.length(4, 5)];
    let regular = random.int(0, 1);
    Sample::new(OperationType::DetectionPostprocessing)
        .tensor(&[batch, anchors, classes], scores.collect())
        .tensor(&deltas, random.reals(&deltas, -1.0, 1.0))
        .tensor(&[anchors, 4], random.reals(&[anchors, 4], 0.25, 4.0))
        .scalars(&[10.0, 10.0, 5.0, 5.0])
        .ints(&[regular, random.int(1, 4), random.int(1, 2), random.int(1, 3)])
        .scalars(&[0.0625, 0.375])
        .ints(&[random.int(0, 1)])
        .output(Quant::Fit(1.0))
        .output(Quant::Fit(1.0))
        .output(Quant::Fit(1.0))
        .output(Quant::Fit(1.0))
}

pub fn generate_proposals(random: &mut Random) -> Sample {
    let (batch, anchors) = (random.length(1, 2), random.length(1, 2));
    let (height, width) = (random.length(1, 3), random.length(1, 3));
    let ranks = random.permutation((batch * height * width * anchors) as usize);
    let scores = ranks.into_iter().map(|rank| f64::from(u32::try_from(rank).unwrap()) / 64.0);
    let deltas = [batch, height, width, anchors * 4];
    let mut shapes = boxes(anchors, 16, random);
    // Around the origin.
    shapes.iter_mut().for_each(|it| *it -= 8.0);
    let images: Vec<f64> = (0..batch * 2).map(|_| f64::from(random.int(32, 64))).collect();
    Sample::new(OperationType::GenerateProposals)
        .image(&[batch, height, width, anchors], scores.collect())
        .stored(Quant::Fixed(1.0 / 64.0, 0))
        .image(&deltas, random.reals(&deltas, -0.5, 0.5))
        .tensor(&[anchors, 4], shapes)
        .stored(COORDINATE)
        .tensor(&[batch, 2], images)
        .stored(COORDINATE)
        .scalars(&[8.0, 8.0])
        .ints(&[random.int(-1, 8), random.int(-1, 8)])
        .scalars(&[0.5, random.pick(&[0.0, 2.0])])
        .flag()
        .output(Quant::As(0))
        .output(COORDINATE)
        .output(Quant::Fit(1.0))
}

pub fn heatmap_max_keypoint(random: &mut Random) -> Sample {
    let (count, size, keypoints) = (random.length(1, 3), random.length(2, 5), random.length(1, 3));
    let heatmaps = [count, size, size, keypoints];
    Sample::new(OperationType::HeatmapMaxKeypoint)
        .image(&heatmaps, random.reals(&heatmaps, -4.0, 4.0))
        .tensor(&[count, 4], boxes(count, 24, random))
        .stored(COORDINATE)
        .flag()
        .output(fit(random))
        .output(COORDINATE)
}

/// The arguments that the two operations on regions begin with.
fn on_regions(operation: OperationType, random: &mut Random) -> Sample {
    let shape =
        [random.length(1, 3), random.length(3, 6), random.length(3, 5), random.length(1, 3)];
    let strides = [random.pick(&[2, 4]), random.pick(&[2, 4])];
    let count = random.length(1, 4);
    // Eighths of the image's length along an axis.
    let eighths = |axis: usize| 8 * strides[axis] * i32::try_from(shape[axis + 1]).unwrap();
    let mut regions = Vec::new();
    for _ in 0..count {
        let [y1, x1] = [eighths(0), eighths(1)].map(|most| random.int(0, most - 1));
        let (y2, x2) = (random.int(y1, eighths(0)), random.int(x1, eighths(1)));
        regions.extend([x1, y1, x2, y2].map(|eighths| f64::from(eighths) / 8.0));
    }
    Sample::new(operation)
        .image(&shape, random.reals(&shape, -8.0, 8.0))
        .tensor(&[count, 4], regions)
        .stored(COORDINATE)
        .integers(&batch_indexes(count, shape[0], random))
        .ints(&[random.int(1, 3), random.int(1, 3)])
        .scalars(&strides.map(f64::from))
}

pub fn roi_align(random: &mut Random) -> Sample {
    on_regions(OperationType::RoiAlign, random)
        .ints(&[random.int(0, 3), random.int(0, 3)])
        .flag()
        .image_output(fit(random))
}

pub fn roi_pooling(random: &mut Random) -> Sample {
    on_regions(OperationType::RoiPooling, random).flag().image_output(Quant::As(0))
}
