//! Operators that are not the format's own, which their name tells.
//!
//! | name | whose | becomes |
//! |---|---|---|
//! | `TFLite_Detection_PostProcess` | TensorFlow Lite's, of its object detectors | DETECTION_POSTPROCESSING |
//! | `aeq.hadamard_rotation` | LiteRT's, of AI Edge Quantizer's models | FULLY_CONNECTED, TRANSPOSE, MUL |
//! | `AudioSpectrogram`, `Mfcc` | TensorFlow Lite's, of models that take sound | see [`sound`](super::sound) |
//! | `MaxPoolWithArgmax` | LiteRT's, beside the interpreter | STRIDED_SLICE, GREATER, SELECT |
//! | `NumericVerify` | TensorFlow Lite's, of models that compare themselves with a float model | DEQUANTIZE, SUB |
//! | `Convolution2DTransposeBias` | MediaPipe's, of its segmentation models | TRANSPOSE_CONV_2D |
//! | others of MediaPipe's | of its face and hair models | see [`mediapipe`](super::mediapipe) |

use super::movement::elements;
use super::tensor::Element;
use super::{GraphImporter, Imported};
use crate::error::{NO_OPERATION, Reason};
use crate::file::Operator;
use crate::flexbuffer::Map;
use nnhal_hal::{OperandId, OperandSpec, OperationType as O};

/// The longest piece of a row that is rotated.
const MOST_ROTATED: u32 = 1 << 20;

/// Rows of the matrices by which one axis is rotated.
const MOST_OF_A_FACTOR: u32 = 64;

/// How names of operators begin that others alone can run, and whose they are.
const OF_OTHERS: [(&str, &str); 4] = [
    ("edgetpu-custom-op", "it is compiled for an Edge TPU: take the file from which that was done"),
    ("ethos-u", "it is compiled for an Ethos-U: take the file from which that was done"),
    (
        "DISPATCH_OP",
        "it is compiled by LiteRT for another processor: take the file from which that was done",
    ),
    ("Lce", "it is one of Larq Compute Engine, whose interpreter has it"),
];

/// Why there is nothing for an operator, with what is known of its name.
fn with_owner(name: &str, reason: Reason) -> Reason {
    let owner = OF_OTHERS.iter().find(|(beginning, _)| name.starts_with(beginning));
    match owner {
        Some((_, owner)) if reason.0 == NO_OPERATION => {
            Reason::new(format!("{NO_OPERATION}; {owner}"))
        }
        _ => reason,
    }
}

impl GraphImporter<'_, '_> {
    pub(super) fn custom(&mut self, operator: &Operator<'_>, name: &str) -> Imported {
        match name {
            "TFLite_Detection_PostProcess" => self.detection_postprocessing(operator),
            "aeq.hadamard_rotation" => self.hadamard_rotation(operator),
            "AudioSpectrogram" => self.audio_spectrogram(operator),
            "Mfcc" => self.mfcc(operator),
            "MaxPoolWithArgmax" => self.custom_max_pool_with_argmax(operator),
            "NumericVerify" => self.numeric_verify(operator),
            "Convolution2DTransposeBias" => self.transpose_conv_bias(operator),
            _ => self.mediapipe(operator, name).map_err(|reason| with_owner(name, reason)),
        }
    }

    /// Rows, or pieces of rows, times a Hadamard matrix of their length, which is a power of 2, divided by its root. The
    /// matrix is a Kronecker product of small ones, by which one axis after the other is multiplied.
    fn hadamard_rotation(&mut self, operator: &Operator<'_>) -> Imported {
        let options = options(operator)?;
        let found = options.number("hadamard_size").unwrap_or(0.0);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is one.
        let size = (found.fract() == 0.0 && (1.0..=f64::from(MOST_ROTATED)).contains(&found))
            .then_some(found as u32);
        let size = size.filter(|size| size.is_power_of_two()).ok_or_else(|| {
            Reason::new(format!(
                "its option \"hadamard_size\" is {found}, expected a power of 2 up to {MOST_ROTATED}"
            ))
        })?;
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        if self.element(input)? != Element::Float32 {
            return Err(Reason::new("its input is not FLOAT32"));
        }
        let shape = self.shape(input)?;
        if !matches!(shape[..], [.., last] if last % size == 0 && [2, 3].contains(&shape.len())) {
            return Err(Reason::new(format!(
                "its input is {shape:?}, expected 2 or 3 axes, the last one in pieces of {size}"
            )));
        }
        let rows = elements(&shape)? / size;
        let mut rotated = self.operand(input)?;
        let mut left = size;
        while left > 1 {
            let factor = left.min(MOST_OF_A_FACTOR);
            left /= factor;
            let matrix: Vec<f32> =
                (0..factor * factor)
                    .map(|at| {
                        if ((at / factor) & (at % factor)).count_ones() % 2 == 0 {
                            1.0
                        } else {
                            -1.0
                        }
                    })
                    .collect();
            let matrix =
                self.builder.constant(OperandSpec::tensor_float32([factor, factor]), &matrix);
            let bias = vec![0.0_f32; factor as usize];
            let bias = self.builder.constant(OperandSpec::tensor_float32([factor]), &bias);
            let none = self.builder.scalar_i32(0);
            let lines = OperandSpec::tensor_float32([rows * (size / factor), factor]);
            let flat = self.reshape(rotated, lines.clone())?;
            rotated = self.builder.operation(O::FullyConnected, [flat, matrix, bias, none], lines);
            if factor < size {
                // The axis goes in front of the others, which come back in their order once all were there.
                let axes = OperandSpec::tensor_float32([rows, size / factor, factor]);
                let turned = OperandSpec::tensor_float32([rows, factor, size / factor]);
                rotated = self.reshape(rotated, axes)?;
                let order = self.integer_vector(&[0, 2, 1]);
                rotated = self.builder.operation(O::Transpose, [rotated, order], turned);
            }
        }
        #[allow(clippy::cast_precision_loss)]
        let scale = 1.0 / (size as f32).sqrt();
        let scale = self.builder.constant(OperandSpec::tensor_float32([1]), &[scale]);
        let none = self.builder.scalar_i32(0);
        let spec = self.builder.spec(rotated);
        let scaled = self.builder.operation(O::Mul, [rotated, scale, none], spec);
        self.reshape_to(scaled, output)
    }

    /// TensorFlow's operation with its attributes in a map.
    fn custom_max_pool_with_argmax(&mut self, operator: &Operator<'_>) -> Imported {
        let options = options(operator)?;
        let window = |name: &str| -> Imported<[i32; 2]> {
            let numbers = options.numbers(name).unwrap_or_default();
            #[allow(clippy::cast_possible_truncation)] // They are whole numbers that it holds.
            match numbers[..] {
                [1.0, down, across, 1.0]
                    if [down, across].iter().all(|it| {
                        it.fract() == 0.0 && (1.0..=f64::from(i32::MAX)).contains(it)
                    }) =>
                {
                    Ok([down as i32, across as i32])
                }
                _ => Err(Reason::new(format!(
                    "its {name} are {numbers:?}, expected 1, 2 numbers above 0, 1"
                ))),
            }
        };
        let is_same = match options.text("padding") {
            Some("SAME") => true,
            Some("VALID") => false,
            _ => return Err(Reason::new("its padding is neither SAME nor VALID")),
        };
        let counts_images =
            options.number("include_batch_in_index").is_some_and(|number| number != 0.0);
        let numbers = [window("ksize")?, window("strides")?];
        self.max_pool_with_places(operator, numbers, is_same, counts_images)
    }

    /// How far quantized numbers are from those of a float model.
    fn numeric_verify(&mut self, operator: &Operator<'_>) -> Imported {
        let options = operator.table.custom_options()?.and_then(Map::root);
        let number = |name| options.as_ref().and_then(|it| it.number(name)).unwrap_or(0.0);
        let (tolerance, fails) = (number("tolerance"), number("log_if_failed") != 0.0);
        if fails && tolerance >= 0.1 {
            return Err(Reason::new(format!(
                "it ends the execution if a difference exceeds {tolerance} steps, as no operation does"
            )));
        }
        let (quantized, expected) =
            (self.input_tensor(operator, 0)?, self.input_tensor(operator, 1)?);
        if !self.element(expected)?.becomes_float32() {
            return Err(Reason::new("what it compares with is not FLOAT32"));
        }
        let real = self.as_float32(quantized)?;
        let expected = self.operand(expected)?;
        let none = self.builder.scalar_i32(0);
        self.emit_for(operator, O::Sub, &[real, expected, none])
    }

    /// Inputs: deltas, scores, anchors. Outputs: boxes, classes, scores, the number of detections, all
    /// of them floats.
    ///
    /// TensorFlow Lite takes scores from the threshold on, and drops boxes whose overlap is greater than
    /// the threshold; the HAL's operation scores above it, and boxes whose overlap reaches it. So each
    /// threshold becomes the next number in the direction that makes both mean the same. A score of 0 is
    /// no detection.
    fn detection_postprocessing(&mut self, operator: &Operator<'_>) -> Imported {
        let options = options(operator)?;
        let number = |name: &str| number(&options, name);
        let count = |name: &str, number: f64| {
            let is_count = number.fract() == 0.0 && (0.0..=f64::from(i32::MAX)).contains(&number);
            #[allow(clippy::cast_possible_truncation)] // It is one.
            let count = is_count.then_some(number as i32);
            count
                .ok_or_else(|| Reason::new(format!("its option {name:?} is {number}, not a count")))
        };
        let counted = |name: &str| number(name).and_then(|number| count(name, number));
        #[allow(clippy::cast_possible_truncation)] // As it is stored.
        let float = |name: &str| number(name).map(|number| number as f32);
        let limit = counted("max_detections")?;
        let classes_of_box = counted("max_classes_per_detection")?;
        let classes = counted("num_classes")?;
        let is_regular = options.number("use_regular_nms").is_some_and(|number| number != 0.0);
        let per_class = options.number("detections_per_class").unwrap_or(100.0);
        let per_class = count("detections_per_class", per_class)?;
        if is_regular && classes_of_box != 1 {
            return Err(Reason::new(format!(
                "it has max_classes_per_detection {classes_of_box} together with use_regular_nms, and \
                 the HAL's operation 1"
            )));
        }

        let (deltas, scores) = (self.input_tensor(operator, 0)?, self.input_tensor(operator, 1)?);
        let [batch, anchors, columns] = *self.shape(scores)? else {
            return Err(Reason::new("its scores have not three axes"));
        };
        let background = i64::from(columns) - i64::from(classes);
        let of_classes = self.as_float32(scores)?;
        let of_classes = match background {
            1 => of_classes,
            // The HAL's operation takes no notice of the first class.
            0 => {
                let paddings = OperandSpec::tensor_int32([3, 2]);
                let paddings = self.builder.constant(paddings, &[0, 0, 0, 0, 1, 0]);
                let padded =
                    OperandSpec::tensor_float32([batch, anchors, columns.saturating_add(1)]);
                self.builder.operation(O::Pad, [of_classes, paddings], padded)
            }
            _ => {
                return Err(Reason::new(format!(
                    "it has scores for {columns} classes, and num_classes {classes}: at most one is the \
                     background"
                )));
            }
        };
        // A box has no more classes than there are, and the places of the others stay empty.
        let found_of_box = if is_regular { 1 } else { classes_of_box.min(classes).max(1) };
        let mut inputs = vec![of_classes, self.as_float32(deltas)?];
        let anchors = self.input_tensor(operator, 2)?;
        inputs.push(self.as_float32(anchors)?);
        for name in ["y_scale", "x_scale", "h_scale", "w_scale"] {
            inputs.push(self.builder.scalar_f32(float(name)?));
        }
        inputs.push(self.builder.scalar_bool(is_regular));
        for count in [limit, found_of_box, per_class] {
            inputs.push(self.builder.scalar_i32(count));
        }
        let least_score = float("nms_score_threshold")?.next_down().max(0.0);
        inputs.push(self.builder.scalar_f32(least_score));
        inputs.push(self.builder.scalar_f32(float("nms_iou_threshold")?.next_up()));
        inputs.push(self.builder.scalar_bool(false));

        let of_box = if is_regular { 1 } else { classes_of_box };
        let [places, found] = [of_box, found_of_box].map(i32::unsigned_abs);
        let detections = limit.checked_mul(of_box).map(|_| limit.unsigned_abs() * found);
        let detections = detections.ok_or_else(|| {
            Reason::new(format!(
                "it has {limit} max_detections with {of_box} classes each, too many"
            ))
        })?;
        let outputs = self.builder.operation_with_outputs(
            O::DetectionPostprocessing,
            inputs,
            [
                OperandSpec::tensor_float32([batch, detections]),
                OperandSpec::tensor_float32([batch, detections, 4]),
                OperandSpec::tensor_int32([batch, detections]),
                OperandSpec::tensor_int32([batch]),
            ],
        );
        let [scores, boxes, labels, numbers] = outputs;
        let labels_spec = OperandSpec::tensor_float32([batch, detections]);
        let labels = self.builder.operation(O::Cast, [labels], labels_spec);
        let of_batch = OperandSpec::tensor_float32([batch]);
        let mut numbers = self.builder.operation(O::Cast, [numbers], of_batch.clone());
        if found > 1 {
            // The operator counts boxes, the HAL's operation each with each of its classes.
            #[allow(clippy::cast_precision_loss)] // The quotient is an integer.
            let each = self.builder.constant(OperandSpec::tensor_float32([1]), &[found as f32]);
            let none = self.builder.scalar_i32(0);
            numbers = self.builder.operation(O::Div, [numbers, each, none], of_batch);
        }
        let limit = limit.unsigned_abs();
        let [scores, boxes, labels] =
            [(scores, 1), (boxes, 4), (labels, 1)].map(|(values, each)| {
                self.with_places(values, [batch, limit, found * each], (places - found) * each)
            });
        let (scores, boxes, labels) = (scores?, boxes?, labels?);
        let all = limit * places;
        let boxes = self.reshape(boxes, OperandSpec::tensor_float32([batch, all, 4]))?;
        let [scores, labels] =
            [scores, labels].map(|it| self.reshape(it, OperandSpec::tensor_float32([batch, all])));
        let (scores, labels) = (scores?, labels?);
        for (at, operand) in [boxes, labels, scores, numbers].into_iter().enumerate() {
            let tensor = self.output_tensor(operator, at)?;
            if self.element(tensor)? != Element::Float32 {
                return Err(Reason::new(format!("its output {at} is not FLOAT32")));
            }
            self.set(tensor, operand);
        }
        // Older files say that it is a scalar; TensorFlow Lite makes a vector of it.
        let number = self.output_tensor(operator, 3)?;
        self.shapes[number].get_or_insert_with(|| vec![batch]);
        Ok(())
    }

    /// Rows of floats with this number of zeros behind each.
    fn with_places(
        &mut self,
        values: OperandId,
        [batch, rows, columns]: [u32; 3],
        behind: u32,
    ) -> Imported<OperandId> {
        if behind == 0 {
            return Ok(values);
        }
        let values = self.reshape(values, OperandSpec::tensor_float32([batch, rows, columns]))?;
        let padding = OperandSpec::tensor_int32([3, 2]);
        let behind = [0, 0, 0, 0, 0, behind.cast_signed()];
        let padding = self.builder.constant(padding, &behind);
        let all = columns.saturating_add(behind[5].unsigned_abs());
        let padded = OperandSpec::tensor_float32([batch, rows, all]);
        Ok(self.builder.operation(O::Pad, [values, padding], padded))
    }

    /// Inputs: image, filter `[out, height, width, in]`, bias. Its options are TensorFlow Lite's structure
    /// for TRANSPOSE_CONV, as C lays it out: the padding, 1 for SAME and 2 for VALID, the stride along the
    /// width and the one along the height, each of 32 bits.
    fn transpose_conv_bias(&mut self, operator: &Operator<'_>) -> Imported {
        let options = operator.table.custom_options()?.unwrap_or_default();
        let (numbers, _) = options.as_chunks();
        let [padding, across, down, ..] = *numbers else {
            return Err(Reason::new(format!("its options have {} bytes, not 12", options.len())));
        };
        let [padding, across, down] = [padding, across, down].map(i32::from_le_bytes);
        let (image, filter) = (self.input_tensor(operator, 0)?, self.input_tensor(operator, 1)?);
        let [_, height, width, _] = *self.shape(image)? else {
            return Err(Reason::new("its image has not four axes"));
        };
        let [channels, filter_height, filter_width, _] = *self.shape(filter)? else {
            return Err(Reason::new("its filter has not four axes"));
        };
        let is_same = match padding {
            1 => true,
            2 => false,
            other => return Err(Reason::new(format!("its padding is {other}, not 1 or 2"))),
        };
        let cut = |filter: u32, length: u32, stride: i32| -> Imported<[i32; 2]> {
            let stride = u32::try_from(stride).ok().filter(|stride| *stride > 0);
            let stride = stride.ok_or_else(|| Reason::new("a stride of it is not above 0"))?;
            let seen = length.saturating_sub(1) % stride + 1;
            let all = if is_same { filter.saturating_sub(seen) } else { 0 };
            let all = i32::try_from(all).map_err(|_| Reason::new("its filter is too large"))?;
            Ok([all / 2, all - all / 2])
        };
        let [left, right] = cut(filter_width, width, across)?;
        let [top, bottom] = cut(filter_height, height, down)?;
        let bias = operator.inputs.get(2).copied().flatten();
        let image = self.operand(image)?;
        let filter = self.as_float32(filter)?;
        let bias = self.bias(image, filter, bias, channels)?;
        let mut inputs = vec![image, filter, bias];
        // No activation.
        for number in [left, right, top, bottom, across, down, 0] {
            inputs.push(self.builder.scalar_i32(number));
        }
        inputs.push(self.builder.scalar_bool(false));
        self.emit_for(operator, O::TransposeConv2d, &inputs)
    }
}

/// The options of a custom operator, which are most often a map.
pub(super) fn options<'a>(operator: &Operator<'a>) -> Imported<Map<'a>> {
    let options = operator.table.custom_options()?.and_then(Map::root);
    options.ok_or_else(|| Reason::new("its options are no map of a FlexBuffer"))
}

/// One of the options that is a number.
pub(super) fn number(options: &Map<'_>, name: &str) -> Imported<f64> {
    options.number(name).ok_or_else(|| missing(name))
}

/// That there is no such option.
pub(super) fn missing(name: &str) -> Reason {
    Reason::new(format!("its options have no {name:?}"))
}
