//! What MediaPipe's custom operators compute, on the reference device.

use super::custom::numbers;
use super::draft::Draft;
use super::mapping::{import, reasons};
use crate::schema::TensorType as T;
use nnhal_hal::{ExecutionOptions, HalVersion, PrepareOptions, RequestBuilder};

/// A model of one operator. Its inputs are given; none of them is constant.
fn draft(name: &str, version: i32, inputs: &[&[i32]], outputs: &[&[i32]], options: &[u8]) -> Draft {
    let mut draft = Draft::new();
    let inputs: Vec<i32> = inputs.iter().map(|shape| draft.tensor(T::Float32, shape)).collect();
    let outputs: Vec<i32> = outputs.iter().map(|shape| draft.tensor(T::Float32, shape)).collect();
    draft.custom(name, &inputs, &outputs, options);
    let codes = draft.model.operator_codes.as_mut().unwrap();
    codes.last_mut().unwrap().version = version;
    draft.ends(0, &inputs, &outputs);
    draft
}

fn run(draft: &Draft, inputs: &[&[f32]]) -> Vec<Vec<f32>> {
    let import = import(draft);
    let device = nnhal_reference::device();
    let prepared =
        device.prepare_model(&import.model, HalVersion::LATEST, PrepareOptions::default()).unwrap();
    let mut request = RequestBuilder::new();
    for input in inputs {
        let bytes: Vec<u8> = input.iter().flat_map(|value| value.to_le_bytes()).collect();
        request.input(&bytes);
    }
    for output in &import.outputs {
        let lengths = output.shape.iter().map(|length| length.unwrap() as usize);
        request.output(4 * lengths.product::<usize>());
    }
    let request = request.build().unwrap();
    prepared.execute(&request, &ExecutionOptions::default()).unwrap();
    let floats = |bytes: Vec<u8>| {
        let (floats, _) = bytes.as_chunks();
        floats.iter().map(|it| f32::from_le_bytes(*it)).collect()
    };
    (0..import.outputs.len())
        .map(|at| floats(RequestBuilder::read_output(&request, at).unwrap()))
        .collect()
}

fn assert_close(found: &[f32], expected: &[f32]) {
    let close = found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-5);
    assert!(close && found.len() == expected.len(), "{found:?}, expected {expected:?}");
}

/// A matrix of these first two rows.
fn matrix(rows: [[f32; 4]; 2]) -> Vec<f32> {
    [rows.as_flattened(), &[0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]].concat()
}

const SIDES: [(&str, i32); 2] = [("output_height", 2), ("output_width", 3)];

#[test]
fn an_image_is_seen_through_a_matrix() {
    let options = numbers(&SIDES);
    let image: Vec<f32> = (0_u8..12).map(f32::from).collect();
    let tensor = |name, version| {
        let shapes: [&[i32]; 2] = [&[1, 3, 4, 1], &[1, 4, 4]];
        draft(name, version, &shapes, &[&[1, 2, 3, 1]], &options)
    };
    // Half a pixel to the right, one down.
    let moved = matrix([[1.0, 0.0, 0.0, 0.5], [0.0, 1.0, 0.0, 1.0]]);
    let found = run(&tensor("TransformTensor", 1), &[&image, &moved]);
    assert_close(&found[0], &[4.5, 5.5, 6.5, 8.5, 9.5, 10.5]);
    // Every second pixel, first by positions, then by centres of pixels of two by two; the last row is outside.
    let twice = matrix([[2.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]]);
    let found = run(&tensor("TransformTensor", 1), &[&image, &twice]);
    assert_close(&found[0], &[0.0, 2.0, 0.0, 8.0, 10.0, 0.0]);
    let found = run(&tensor("TransformTensorBilinear", 2), &[&image, &twice]);
    assert_close(&found[0], &[2.5, 4.5, 0.0, 0.0, 0.0, 0.0]);
    // A matrix of no numbers leads nowhere.
    let found = run(&tensor("TransformTensor", 1), &[&image, &[f32::NAN; 16]]);
    assert_close(&found[0], &[0.0; 6]);
}

#[test]
fn landmarks_are_moved_and_keep_their_depth() {
    let points = [1.0, 2.0, 9.0, 3.0, 4.0, 8.0];
    let turned = matrix([[0.0, -1.0, 7.0, 10.0], [1.0, 0.0, 7.0, 20.0]]);
    let second = draft("TransformLandmarks", 2, &[&[1, 2, 3], &[1, 4, 4]], &[&[1, 2, 3]], &[]);
    assert_close(&run(&second, &[&points, &turned])[0], &[8.0, 21.0, 9.0, 6.0, 23.0, 8.0]);
    let flat = draft("TransformLandmarks", 2, &[&[1, 3, 2], &[1, 4, 4]], &[&[1, 3, 2]], &[]);
    assert_close(&run(&flat, &[&points, &turned])[0], &[8.0, 21.0, 7.0, 29.0, 2.0, 24.0]);
    // The first version has the coordinates side by side, and scales the shift.
    let options = numbers(&[("dimensions", 3), ("scale", 2)]);
    let shape = [1, 1, 1, 6];
    let first = draft("TransformLandmarks", 1, &[&shape, &[1, 4, 4]], &[&shape], &options);
    assert_close(&run(&first, &[&points, &turned])[0], &[18.0, 41.0, 9.0, 16.0, 43.0, 8.0]);
}

/// FlexBuffer `{left_rotation_idx: 0, output_height: 4, output_width: 2, right_rotation_idx: 1, scale_x: 1,
/// scale_y: 3, subset_idxs: [0, 1, 2], target_rotation_radians: 0}`.
fn rectangle(indexes: [i32; 3]) -> Vec<u8> {
    let mut entries = vec![
        ("left_rotation_idx", 0),
        ("output_height", 4),
        ("output_width", 2),
        ("right_rotation_idx", 1),
        ("scale_x", 1),
        ("scale_y", 3),
        ("subset_idxs", 0),
        ("target_rotation_radians", 0),
    ];
    entries.sort_unstable();
    let mut bytes = numbers(&entries);
    // The vector goes in front, and the value becomes the distance to it.
    let vector: Vec<u8> =
        [3].iter().chain(&indexes).flat_map(|it: &i32| it.to_le_bytes()).collect();
    let values = bytes.len() - 3 - 8 - 32;
    let at = values + 4 * 6;
    let distance = u32::try_from(at + vector.len() - 4).unwrap();
    bytes[at..at + 4].copy_from_slice(&distance.to_le_bytes());
    let kind = values + 32 + 6;
    bytes[kind] = 11 << 2 | 2;
    [vector, bytes].concat()
}

fn rectangle_of(indexes: [i32; 3]) -> Draft {
    let options = rectangle(indexes);
    draft("Landmarks2TransformMatrix", 2, &[&[1, 3, 3]], &[&[1, 4, 4]], &options)
}

#[test]
fn a_matrix_leads_from_pixels_to_the_rectangle_around_landmarks() {
    // The line from the first to the second goes straight down: turned back, they are side by side.
    let landmarks = [10.0, 10.0, 0.0, 10.0, 18.0, 0.0, 4.0, 12.0, 0.0];
    let found = run(&rectangle_of([0, 1, 2]), &[&landmarks]).remove(0);
    let at =
        |x: f32, y: f32| [0, 4].map(|row| found[row] * x + found[row + 1] * y + found[row + 3]);
    // The middle of 2 by 4 pixels is that of the rectangle. Its width is 8, its height 3 times 6.
    assert_close(&at(1.0, 2.0), &[7.0, 14.0]);
    assert_close(&at(2.0, 2.0), &[7.0, 18.0]);
    assert_close(&at(1.0, 4.0), &[7.0 - 9.0, 14.0]);
    assert_close(&found[8..], &[0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    // Of two landmarks, the rectangle is flat.
    let found = run(&rectangle_of([0, 1, 1]), &[&landmarks]).remove(0);
    assert_close(&[found[1], found[3]], &[0.0, 10.0]);
    let wrong = "its option \"subset_idxs\" has 3, expected one of 3 landmarks";
    assert_eq!(reasons(&rectangle_of([0, 3, 1])), [wrong]);
}

/// FlexBuffer of the first version: landmarks 0 and 1 are the line, and these are in the rectangle.
fn first_rectangle(indexes: &[i32], [input_hw, output_hw]: [[i32; 2]; 2]) -> Vec<u8> {
    let mut entries = vec![
        ("bbox_size_multiplier", 2),
        ("dimensions", 3),
        ("input_hw", 0),
        ("landmarks_range", 10),
        ("left_rotation_idx", 0),
        ("output_hw", 0),
        ("right_rotation_idx", 1),
        ("subset", 0),
    ];
    entries.sort_unstable();
    let mut bytes = numbers(&entries);
    let values = bytes.len() - 3 - 8 - 32;
    // Vectors go in front, and their values become the distances to them.
    let mut front: Vec<u8> = Vec::new();
    for (name, vector) in
        [("input_hw", &input_hw[..]), ("output_hw", &output_hw), ("subset", indexes)]
    {
        front.extend(i32::try_from(vector.len()).unwrap().to_le_bytes());
        let begin = front.len();
        front.extend(vector.iter().flat_map(|it| it.to_le_bytes()));
        let place = entries.iter().position(|entry| entry.0 == name).unwrap();
        bytes[values + 4 * place..][..4]
            .copy_from_slice(&u32::try_from(begin).unwrap().to_le_bytes());
        bytes[values + 32 + place] = 11 << 2 | 2;
    }
    for name in ["input_hw", "output_hw", "subset"] {
        let place = entries.iter().position(|entry| entry.0 == name).unwrap();
        let at = values + 4 * place;
        let begin = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let distance = u32::try_from(front.len() + at).unwrap() - begin;
        bytes[at..at + 4].copy_from_slice(&distance.to_le_bytes());
    }
    [front, bytes].concat()
}

#[test]
fn the_first_version_counts_from_pixel_to_pixel_and_levels_a_line() {
    let matrix_of = |indexes: &[i32], sides| {
        let options = first_rectangle(indexes, sides);
        draft("Landmarks2TransformMatrix", 1, &[&[1, 1, 1, 9]], &[&[1, 4, 4]], &options)
    };
    let sides = [[11, 21], [3, 5]];
    // Landmarks in units of which 10 are a side of the image of 11 by 21: 1 is a row, or 2 columns.
    let landmarks = [2.0, 4.0, 0.0, 6.0, 4.0, 0.0, 3.0, 8.0, 0.0];
    let found = run(&matrix_of(&[0, 1, 2, 2], sides), &[&landmarks]).remove(0);
    let at =
        |x: f32, y: f32| [0, 4].map(|row| found[row] * x + found[row + 1] * y + found[row + 3]);
    // The middle (4, 6) is at column 8, row 6. Twice 4 by 4 around it is 8 by 8: 16 columns, 8 rows.
    assert_close(&at(2.0, 1.0), &[8.0, 6.0]);
    assert_close(&at(0.0, 0.0), &[0.0, 2.0]);
    assert_close(&at(4.0, 2.0), &[16.0, 10.0]);
    assert_close(&found[8..], &[0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    // A line is the same from its other end.
    let from_the_right = [6.0, 4.0, 0.0, 2.0, 4.0, 0.0, 3.0, 8.0, 0.0];
    let same = run(&matrix_of(&[0, 1, 2, 2], sides), &[&from_the_right]).remove(0);
    assert_close(&same, &found);
    // A line straight down, whichever way it goes, is a quarter of a turn.
    for (first, second) in [(2.0, 6.0), (6.0, 2.0)] {
        let landmarks = [5.0, first, 0.0, 5.0, second, 0.0, 1.0, 4.0, 0.0];
        let found = run(&matrix_of(&[0, 1, 2], [[11, 11], [3, 3]]), &[&landmarks]).remove(0);
        let at =
            |x: f32, y: f32| [0, 4].map(|row| found[row] * x + found[row + 1] * y + found[row + 3]);
        assert_close(&at(1.0, 1.0), &[3.0, 4.0]);
        // Right in the result is down or up in the image.
        let turn = if first < second { 1.0 } else { -1.0 };
        assert_close(&at(2.0, 1.0), &[3.0, 4.0 + 4.0 * turn]);
        assert_close(&at(1.0, 2.0), &[3.0 - 4.0 * turn, 4.0]);
    }
    let wrong = "its option \"subset\" has 3, expected one of 3 landmarks";
    assert_eq!(reasons(&matrix_of(&[0, 3], sides)), [wrong]);
    let single = "its option \"output_hw\" is not two sizes";
    assert_eq!(reasons(&matrix_of(&[0], [[11, 11], [1, 3]])), [single]);
}

fn pool(padding: i32, stride: i32, filter: i32, activation: i32) -> Vec<u8> {
    let numbers = [padding, stride, stride, filter, filter, activation];
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

#[test]
fn what_was_pooled_goes_back_to_its_place() {
    let image = [1.0, 5.0, 2.0, -1.0, 3.0, 4.0, 0.0, -2.0, -9.0, -8.0, 7.0, 7.0];
    let options = pool(2, 2, 2, 0);
    let shapes: [&[i32]; 2] = [&[1, 1, 2, 1], &[1, 1, 2, 1]];
    let pooling = draft("MaxPoolingWithArgmax2D", 1, &[&[1, 3, 4, 1]], &shapes, &options);
    let found = run(&pooling, &[&image]);
    assert_close(&found[0], &[5.0, 2.0]);
    assert_close(&found[1], &[1.1, 0.1]);
    // With padding, places count from the window's corner, which is outside. The first of equals is taken.
    let options = pool(1, 2, 3, 3);
    let shapes: [&[i32]; 2] = [&[1, 2, 2, 1], &[1, 2, 2, 1]];
    let pooling = draft("MaxPoolingWithArgmax2D", 1, &[&[1, 3, 4, 1]], &shapes, &options);
    let found = run(&pooling, &[&image]);
    assert_close(&found[0], &[5.0, 2.0, 6.0, 6.0]);
    // Rows -1 to 1 and 1 to 3; of the columns 0 to 2 and 2 to 4.
    assert_close(&found[1], &[4.1, 3.1, 5.1, 3.1]);

    let options = pool(2, 2, 2, 0);
    let shapes: [&[i32]; 2] = [&[1, 1, 2, 2], &[1, 1, 2, 2]];
    let unpooling = draft("MaxUnpooling2D", 1, &shapes, &[&[1, 2, 4, 2]], &options);
    let found = run(&unpooling, &[&[1.0, 2.0, 3.0, 4.0], &[0.1, 1.1, 3.1, 7.0]]);
    let expected =
        [[1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0]];
    assert_close(&found[0], expected.as_flattened());
}

#[test]
fn options_that_make_no_sense_are_named() {
    let shape: &[i32] = &[1, 2, 2, 1];
    let pooling =
        |options: &[u8]| draft("MaxPoolingWithArgmax2D", 1, &[shape], &[shape, shape], options);
    assert_eq!(reasons(&pooling(&[0; 23])), ["its options have 23 bytes, not 24"]);
    assert_eq!(reasons(&pooling(&pool(3, 1, 1, 0))), ["its padding is 3, not 1 or 2"]);
    assert_eq!(reasons(&pooling(&pool(2, 1, 3, 0))), ["no window of 3 fits into 2"]);
    for wild in [0, -1, i32::MIN, i32::MAX, 1 << 16] {
        assert!(
            reasons(&pooling(&pool(1, 1, wild, 0)))[0].contains("expected at most 64 elements")
        );
        assert_eq!(reasons(&pooling(&pool(1, wild, 2, 9))).len(), 1, "{wild}");
    }
    let unpooling = draft("MaxUnpooling2D", 1, &[shape, shape], &[shape], &pool(1, 1, 2, 0));
    let expected = "its windows of [2, 2] at strides of [1, 1] are not squares side by side";
    assert_eq!(reasons(&unpooling), [expected]);
    let image =
        |options: &[u8]| draft("TransformTensor", 1, &[shape, &[1, 4, 4]], &[shape], options);
    assert_eq!(reasons(&image(b"x")), ["its options are no map of a FlexBuffer"]);
    let without = numbers(&[("output_height", 2)]);
    assert_eq!(reasons(&image(&without)), ["its options have no \"output_width\""]);
    let huge = numbers(&[("output_height", 1 << 24), ("output_width", 1 << 24)]);
    assert!(reasons(&image(&huge))[0].ends_with("are empty or too large"));
    let newer = draft("TransformLandmarks", 3, &[&[1, 2, 3], &[1, 4, 4]], &[&[1, 2, 3]], &[]);
    assert_eq!(reasons(&newer), ["the HAL has no such operation"]);
}

#[test]
fn a_model_keeps_none_of_the_elements_that_its_shapes_promise() {
    // 2^24 elements, and windows of the greatest size: with constants of such shapes, gigabytes.
    let image: &[i32] = &[1, 2048, 2048, 4];
    let kept = |draft: &Draft| import(draft).model.operand_values.len();
    let options = pool(1, 1, 8, 0);
    assert!(
        kept(&draft("MaxPoolingWithArgmax2D", 1, &[image], &[image, image], &options)) < 10_000
    );
    let (options, unpooled) = (pool(2, 4, 4, 0), [1, 8192, 8192, 4]);
    assert!(kept(&draft("MaxUnpooling2D", 1, &[image, image], &[&unpooled], &options)) < 10_000);
    let larger: &[i32] = &[1, 2048, 2049, 4];
    let too_large =
        draft("MaxPoolingWithArgmax2D", 1, &[larger], &[larger, larger], &pool(1, 1, 8, 0));
    let expected =
        "the shape of its output is [1, 2048, 2049, 4], expected at most 16777216 elements";
    assert_eq!(reasons(&too_large), [expected]);

    let transform = |channels: i32| {
        let options = numbers(&[("output_height", 4096), ("output_width", 4096)]);
        let inputs: [&[i32]; 2] = [&[1, 1, 1, channels], &[1, 4, 4]];
        draft("TransformTensor", 1, &inputs, &[&[1, 4096, 4096, channels]], &options)
    };
    assert!(kept(&transform(16)) < 100_000);
    let expected = "its result of 4096 by 4096 pixels with 256 channels is too large";
    assert_eq!(reasons(&transform(256)), [expected]);
    // Positions along one side are kept, and charged.
    let options = numbers(&[("output_height", 1), ("output_width", 1 << 24)]);
    let line: [&[i32]; 2] = [&[1, 1, 1, 1], &[1, 4, 4]];
    let line = draft("TransformTensor", 1, &line, &[&[1, 1, 1 << 24, 1]], &options);
    let expected = "the model would be out of all proportion to the size of its file";
    assert_eq!(reasons(&line), [expected]);
}
