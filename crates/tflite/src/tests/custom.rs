//! What becomes of operators that are not the format's own.

use super::draft::Draft;
use super::mapping::{import, operations, reasons};
use super::split::{bytes_of, floats_of};
use super::values::run_all;
use crate::TensorDescription;
use crate::schema::TensorType as T;
use nnhal_hal::OperationType as O;

/// The options of a transposed convolution: padding, stride along the width, stride along the height.
fn transposed(options: [i32; 3], image: [i32; 4], filter: [i32; 4]) -> Draft {
    let mut draft = Draft::new();
    let input = draft.tensor(T::Float32, &image);
    let count = filter.iter().product::<i32>();
    let filter = draft.floats(&filter, &vec![0.5; usize::try_from(count).unwrap()]);
    let bias = draft.floats(&[1], &[1.0]);
    let output = draft.tensor(T::Float32, &[0; 4]);
    let options: Vec<u8> = options.iter().flat_map(|number| number.to_le_bytes()).collect();
    draft.custom("Convolution2DTransposeBias", &[input, filter, bias], &[output], &options);
    draft.ends(0, &[input], &[output]);
    draft
}

/// Paddings and strides of the operation: left, right, top, bottom, across, down.
fn scalars(draft: &Draft) -> Vec<i32> {
    let import = import(draft);
    assert_eq!(operations(&import), [O::TransposeConv2d]);
    let model = &import.model;
    let scalar = |operand: &u32| {
        let start = model.main.operands[*operand as usize].location.offset as usize;
        i32::from_le_bytes(model.operand_values[start..start + 4].try_into().unwrap())
    };
    model.main.operations[0].inputs[3..9].iter().map(scalar).collect()
}

#[test]
fn a_transposed_convolution_with_bias_gets_its_paddings() {
    let images = [[1, 4, 5, 2], [1, 1, 3, 2]];
    // Of SAME, what a filter has beyond the inputs that the last stride begins with, the smaller half first.
    let same = scalars(&transposed([1, 2, 3], images[0], [1, 3, 4, 2]));
    assert_eq!(same, [1, 2, 1, 1, 2, 3]);
    let of_one_row = scalars(&transposed([1, 2, 2], images[1], [1, 2, 2, 2]));
    assert_eq!(of_one_row, [0, 1, 0, 1, 2, 2]);
    let valid = scalars(&transposed([2, 2, 3], images[0], [1, 3, 4, 2]));
    assert_eq!(valid, [0, 0, 0, 0, 2, 3]);
}

#[test]
fn options_of_a_transposed_convolution_that_make_no_sense_are_named() {
    let cases = [
        ([3, 1, 1], "its padding is 3, not 1 or 2"),
        ([1, 0, 1], "a stride of it is not above 0"),
        ([1, 1, -7], "a stride of it is not above 0"),
    ];
    for (options, reason) in cases {
        assert_eq!(reasons(&transposed(options, [1, 4, 4, 2], [1, 2, 2, 2])), [reason]);
    }
    let mut draft = transposed([1, 1, 1], [1, 4, 4, 2], [1, 2, 2, 2]);
    draft.graph(0).operators.as_mut().unwrap()[0].custom_options = Some(vec![1; 11]);
    assert_eq!(reasons(&draft), ["its options have 11 bytes, not 12"]);
}

/// A FlexBuffer of integers by name, with everything 4 bytes wide.
pub(super) fn numbers(entries: &[(&str, i32)]) -> Vec<u8> {
    let mut entries = entries.to_vec();
    entries.sort_unstable();
    let mut bytes = Vec::new();
    let places: Vec<usize> = entries
        .iter()
        .map(|(name, _)| {
            let place = bytes.len();
            bytes.extend(name.bytes().chain([0]));
            place
        })
        .collect();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let word = |number: usize| u32::try_from(number).unwrap().to_le_bytes();
    bytes.extend(word(entries.len()));
    let keys = bytes.len();
    for place in places {
        bytes.extend(word(bytes.len() - place));
    }
    let offset = bytes.len() - keys;
    bytes.extend([word(offset), word(4), word(entries.len())].concat());
    let values = bytes.len();
    bytes.extend(entries.iter().flat_map(|(_, number)| number.to_le_bytes()));
    bytes.extend(entries.iter().map(|_| 1 << 2));
    bytes.push(u8::try_from(bytes.len() - values).unwrap());
    bytes.extend([9 << 2 | 2, 1]);
    bytes
}

const OPTIONS: [(&str, i32); 11] = [
    ("max_detections", 6),
    ("max_classes_per_detection", 1),
    ("num_classes", 3),
    ("use_regular_nms", 0),
    ("detections_per_class", 10),
    ("nms_score_threshold", 0),
    ("nms_iou_threshold", 1),
    ("y_scale", 10),
    ("x_scale", 10),
    ("h_scale", 5),
    ("w_scale", 5),
];

/// A detector with scores for this number of classes, the background among them.
fn detector(classes: i32, options: &[u8]) -> Draft {
    let mut draft = Draft::new();
    let deltas = draft.tensor(T::Float32, &[1, 7, 4]);
    let scores = draft.tensor(T::Float32, &[1, 7, classes]);
    let anchors = draft.floats(&[7, 4], &[0.5; 28]);
    let outputs = [0; 4].map(|_| draft.tensor(T::Float32, &[]));
    draft.custom("TFLite_Detection_PostProcess", &[deltas, scores, anchors], &outputs, options);
    draft.ends(0, &[deltas, scores], &outputs);
    draft
}

/// With an option changed.
fn with(name: &str, number: i32) -> Vec<u8> {
    let mut options = OPTIONS;
    options.iter_mut().filter(|it| it.0 == name).for_each(|it| it.1 = number);
    numbers(&options)
}

#[test]
fn a_detector_becomes_the_hal_s_operation_and_floats() {
    let with_background = import(&detector(4, &numbers(&OPTIONS)));
    assert_eq!(operations(&with_background), [O::DetectionPostprocessing, O::Cast, O::Cast]);
    // The file says that all results are scalars.
    let shape = |output: &TensorDescription| output.shape.iter().map(|it| it.unwrap()).collect();
    let shapes: Vec<Vec<u32>> = with_background.outputs.iter().map(shape).collect();
    assert_eq!(shapes, [vec![1, 6, 4], vec![1, 6], vec![1, 6], vec![1]]);
    // Without scores for the background, some are put before the others.
    let without = import(&detector(3, &numbers(&OPTIONS)));
    assert_eq!(operations(&without), [O::Pad, O::DetectionPostprocessing, O::Cast, O::Cast]);
}

/// Boxes, classes, scores and the number of what a detector with two boxes apart from each other, 3 classes and this number
/// of classes for each box detects.
fn detected(classes_of_box: i32) -> [Vec<f32>; 4] {
    let mut options = OPTIONS;
    options[0].1 = 2;
    options[1].1 = classes_of_box;
    let mut draft = Draft::new();
    let deltas = draft.tensor(T::Float32, &[1, 2, 4]);
    let scores = draft.tensor(T::Float32, &[1, 2, 4]);
    let anchors = draft.floats(&[2, 4], &[1.0, 1.0, 2.0, 2.0, 9.0, 9.0, 2.0, 2.0]);
    let outputs = [0; 4].map(|_| draft.tensor(T::Float32, &[]));
    let inputs = [deltas, scores, anchors];
    draft.custom("TFLite_Detection_PostProcess", &inputs, &outputs, &numbers(&options));
    draft.ends(0, &[deltas, scores], &outputs);
    let scores = [0.9, 0.1, 0.5, 0.25, 0.9, 0.75, 0.125, 0.375];
    let inputs = [bytes_of(&[0.0; 8]), bytes_of(&scores)];
    let inputs = [&inputs[0][..], &inputs[1]];
    let import = import(&draft);
    [0, 1, 2, 3].map(|output| floats_of(&run_all(&import, &inputs)[output]))
}

#[test]
fn a_detector_with_several_classes_of_a_box_counts_boxes() {
    let [boxes, classes, scores, number] = detected(2);
    assert_eq!(scores, [0.75, 0.375, 0.5, 0.25]);
    assert_eq!(classes, [0.0, 2.0, 1.0, 2.0]);
    assert_eq!(boxes[..8], [8.0, 8.0, 10.0, 10.0, 8.0, 8.0, 10.0, 10.0]);
    assert_eq!(number, [2.0]);
    // Places for more classes than there are stay empty.
    let [boxes, classes, scores, number] = detected(5);
    assert_eq!(scores, [0.75, 0.375, 0.125, 0.0, 0.0, 0.5, 0.25, 0.1, 0.0, 0.0]);
    assert_eq!(classes, [0.0, 2.0, 1.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 0.0]);
    assert_eq!(boxes.len(), 40);
    assert_eq!(boxes[12..20], [0.0; 8]);
    assert_eq!(boxes[20..24], [0.0, 0.0, 2.0, 2.0]);
    assert_eq!(number, [2.0]);
}

#[test]
fn options_of_a_detector_that_make_no_sense_are_named() {
    let text = "it has scores for 5 classes, and num_classes 3: at most one is the background";
    assert_eq!(reasons(&detector(5, &numbers(&OPTIONS))), [text]);
    let no_map = "its options are no map of a FlexBuffer";
    assert_eq!(reasons(&detector(4, &[1, 2, 3])), [no_map]);
    assert_eq!(reasons(&detector(4, &[])), [no_map]);
    let missing = "its options have no \"max_detections\"";
    assert_eq!(reasons(&detector(4, &numbers(&OPTIONS[1..]))), [missing]);
    let negative = "its option \"num_classes\" is -1, not a count";
    assert_eq!(reasons(&detector(4, &with("num_classes", -1))), [negative]);
    let mut regular = OPTIONS;
    regular[3].1 = 1;
    regular[1].1 = 2;
    let several = "it has max_classes_per_detection 2 together with use_regular_nms, and the HAL's \
                   operation 1";
    assert_eq!(reasons(&detector(4, &numbers(&regular))), [several]);
}

#[test]
fn more_detections_than_can_be_are_refused() {
    let mut options = OPTIONS;
    options[0].1 = i32::MAX;
    options[1].1 = i32::MAX;
    let too_many = "it has 2147483647 max_detections with 2147483647 classes each, too many";
    assert_eq!(reasons(&detector(4, &numbers(&options))), [too_many]);
}

#[test]
fn what_others_alone_run_says_whose_it_is() {
    let refusal = |name: &str| {
        let mut draft = Draft::new();
        let [x, y] = [0; 2].map(|_| draft.tensor(T::Float32, &[2]));
        draft.custom(name, &[x], &[y], &[]);
        draft.ends(0, &[x], &[y]);
        let error = crate::import_bytes(&draft.bytes()).unwrap_err();
        let (causes, _) = error.causes();
        assert!(causes[0].first.is_unknown(), "{error}");
        reasons(&draft).remove(0)
    };
    let unknown = "the HAL has no such operation";
    assert_eq!(refusal("MyOwn"), unknown);
    for (name, whose) in
        [("edgetpu-custom-op", "an Edge TPU"), ("LceBconv2d", "of Larq Compute Engine")]
    {
        let found = refusal(name);
        assert!(found.starts_with(unknown) && found.contains(whose), "{found}");
    }
}
