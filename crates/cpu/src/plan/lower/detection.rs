//! What comes behind a network that detects.

use crate::graph::Node;
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_kernels::detection::{self, Rule};
use nnhal_ops::operations::detection_postprocessing::{DetectionPostprocessing, Suppression};
use nnhal_ops::operations::roi_align::RoiAlign;
use nnhal_ops::rules::layout::Layout;

pub(super) fn postprocessing(
    builder: &Builder<'_, '_>,
    node: &Node,
    it: &DetectionPostprocessing,
) -> Result<Draft, Why> {
    let [scores, boxes] = [0, 1].map(|position| builder.graph.input(node, position));
    let [batch, anchors, classes] = scores.dimensions[..] else {
        return Err(scores.of_other_rank("3"));
    };
    let numbers = *boxes.dimensions.last().ok_or_else(|| boxes.of_other_rank("3"))?;
    // Without images, the other lengths may be anything.
    if batch == 0 {
        return Err(scores.empty());
    }
    let rule = match it.suppression {
        Suppression::Regular { class_limit } => Rule::Regular { class_limit: class_limit as usize },
        Suppression::Fast { classes_of_box } => {
            Rule::Fast { classes_of_box: classes_of_box as usize }
        }
    };
    let kernel = detection::DetectionPostprocessing {
        set: builder.settings.instruction_set,
        sizes: [batch, anchors, classes, numbers].map(|length| length as usize),
        scales: it.scales,
        rule,
        limit: it.limit as usize,
        score_threshold: it.score_threshold,
        overlap_threshold: it.overlap_threshold,
        first_label: i32::from(it.background_has_label),
        threads: builder.settings.threads.get(),
    };
    Ok(Draft::new(node, kernel, node.inputs[..3].iter().copied()))
}

/// Of NHWC images of floats.
pub(super) fn roi_align(
    builder: &Builder<'_, '_>,
    node: &Node,
    it: &RoiAlign,
) -> Result<Draft, Why> {
    let [images, regions] = [0, 1].map(|position| builder.graph.input(node, position));
    let sizes @ [_, height, width, _] = images.image()?;
    if !images.is_float() {
        return Err(images.of_other_type("floats"));
    }
    if it.grid.layout != Layout::Nhwc {
        return Err(Why::ChannelsFirst);
    }
    // Without images or regions, lengths may be anything.
    let weights = u64::from(it.grid.bins[1]) * (width as u64 + 2) + height as u64;
    let most = detection::RoiAlign::MOST_WEIGHTS;
    if weights > most {
        return Err(Why::Limit { what: "weights of cells", found: weights, most });
    }
    // Coordinate and stride were both rounded.
    let epsilon = if regions.is_float16() { half::f16::EPSILON.to_f32() } else { f32::EPSILON };
    let kernel = detection::RoiAlign {
        set: builder.settings.instruction_set,
        sizes,
        bins: it.grid.bins.map(|bins| bins as usize),
        samples: it.samples,
        strides: it.grid.strides,
        rounding: 2.0 * f64::from(epsilon),
        threads: builder.settings.threads.get(),
    };
    Ok(Draft::of_arguments(builder.graph, node, kernel, &[0, 1, 2]))
}
