//! What comes behind a network that detects.

use crate::graph::Node;
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Operand, Run};
use nnhal_driver::{EngineError, OperationPlace};
use nnhal_kernels::detection::{self, Decoding, Detections, NoSuchRegion, Rule};
use nnhal_ops::operations::detection_postprocessing::{DetectionPostprocessing, Suppression};
use nnhal_ops::operations::roi_align::RoiAlign;
use nnhal_ops::rules::layout::Layout;
use nnhal_ops::{OperationError, Subject};

/// Comparisons of boxes at most: a fraction of a second.
const MOST_COMPARISONS: u64 = 1 << 27;

/// `DETECTION_POSTPROCESSING`.
#[derive(Debug)]
struct Postprocessing(detection::DetectionPostprocessing);

pub(super) fn postprocessing(
    builder: &Builder<'_, '_>,
    node: &Node,
    it: &DetectionPostprocessing,
) -> Option<Draft> {
    let values = &builder.graph.values;
    let [batch, anchors, classes] = values[node.inputs[0]].dimensions[..] else { return None };
    let numbers = *values[node.inputs[1]].dimensions.last()?;
    // Comparisons of boxes, which nothing interrupts.
    let (suppressions, kept) = match it.suppression {
        Suppression::Regular { class_limit } => (classes, class_limit),
        Suppression::Fast { .. } => (1, it.limit),
    };
    let of_a_suppression = u64::from(anchors) * u64::from(kept.min(anchors));
    let suppressions = u64::from(suppressions) * u64::from(batch);
    let comparisons = of_a_suppression.saturating_mul(suppressions);
    // Without images, the other lengths may be anything.
    if batch == 0 || comparisons > MOST_COMPARISONS {
        return None;
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
        decoding: Decoding { scales: it.scales },
        rule,
        limit: it.limit as usize,
        score_threshold: it.score_threshold,
        overlap_threshold: it.overlap_threshold,
        first_label: i32::from(it.background_has_label),
        threads: builder.settings.threads.get(),
    };
    Some(Draft {
        place: node.place,
        kernel: Box::new(Postprocessing(kernel)),
        inputs: node.inputs[..3].iter().map(|id| Operand::Value(*id)).collect(),
        outputs: node.outputs.clone(),
    })
}

impl Kernel for Postprocessing {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [scores, boxes, classes, numbers], scratch) = operands.split();
        let output = Detections {
            scores: bytemuck::cast_slice_mut(scores),
            boxes: bytemuck::cast_slice_mut(boxes),
            classes: bytemuck::cast_slice_mut(classes),
            numbers: bytemuck::cast_slice_mut(numbers),
        };
        let given = [0, 1, 2].map(|index| inputs.floats(index));
        self.0.run(run.team, given, output, bytemuck::cast_slice_mut(scratch));
        Ok(())
    }

    fn name(&self) -> String {
        "detection postprocessing f32".to_owned()
    }

    fn scratch_bytes(&self) -> usize {
        self.0.scratch_words().saturating_mul(size_of::<u64>())
    }
}

/// Weights of cells that a thread keeps at most.
const MOST_WEIGHTS: u64 = 1 << 20;

/// ROI_ALIGN.
#[derive(Debug)]
struct Alignment {
    place: OperationPlace,
    kernel: detection::RoiAlign,
}

/// Of NHWC images of floats.
pub(super) fn roi_align(builder: &Builder<'_, '_>, node: &Node, it: &RoiAlign) -> Option<Draft> {
    let values = &builder.graph.values;
    let images = &values[node.inputs[0]];
    let [batch, height, width, channels] = images.dimensions[..] else { return None };
    if !images.is_float() || it.grid.layout != Layout::Nhwc {
        return None;
    }
    // Without images or regions, lengths may be anything.
    let weights = u64::from(it.grid.bins[1]) * (u64::from(width) + 2);
    if weights + u64::from(height) > MOST_WEIGHTS {
        return None;
    }
    // Coordinate and stride were both rounded.
    let epsilon = if values[node.inputs[1]].is_float16() {
        half::f16::EPSILON.to_f32()
    } else {
        f32::EPSILON
    };
    let kernel = detection::RoiAlign {
        set: builder.settings.instruction_set,
        sizes: [batch, height, width, channels].map(|length| length as usize),
        bins: it.grid.bins.map(|bins| bins as usize),
        samples: it.samples,
        strides: it.grid.strides,
        rounding: 2.0 * f64::from(epsilon),
        threads: builder.settings.threads.get(),
    };
    Some(Draft {
        place: node.place,
        kernel: Box::new(Alignment { place: node.place, kernel }),
        inputs: node.inputs[..3].iter().map(|id| Operand::Value(*id)).collect(),
        outputs: node.outputs.clone(),
    })
}

impl Kernel for Alignment {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], scratch) = operands.split();
        let regions = (inputs.floats(1), bytemuck::cast_slice::<u8, i32>(inputs.bytes(2)));
        let scratch = bytemuck::cast_slice_mut(scratch);
        let output = bytemuck::cast_slice_mut(output);
        let result = self.kernel.run(run.team, inputs.floats(0), regions, output, scratch);
        result.map_err(|NoSuchRegion(number)| {
            let edges = &inputs.floats(1)[number * 4..][..4];
            let error = OperationError {
                operation: self.place.operation_type,
                subject: Subject::Input(1, "regions"),
                what: "value",
                found: format!("{edges:?} of image {}", regions.1[number]),
                expected: "a region of an image that there is, with its edges in order".to_owned(),
            };
            EngineError::operation(self.place, error.into())
        })
    }

    fn name(&self) -> String {
        "roi align f32".to_owned()
    }

    fn scratch_bytes(&self) -> usize {
        self.kernel.scratch_words().saturating_mul(size_of::<f32>())
    }
}
