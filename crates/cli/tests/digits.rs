//! The networks of `assets/digits` on the pictures that did not train them, against LiteRT.

use nnhal_hal::{ExecutionOptions, HalVersion, PrepareOptions, RequestBuilder};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Bytes of a picture, and classes.
const PIXELS: usize = 64;
const CLASSES: usize = 10;
/// What `assets/digits/README.md` states for both models.
const RIGHT: usize = 446;

fn asset(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/digits").join(name)
}

fn array<T: npyz::Deserialize>(name: &str) -> Vec<T> {
    npyz::NpyFile::new(File::open(asset(name)).unwrap()).unwrap().into_vec().unwrap()
}

/// The outputs for all held-out pictures, as bytes.
fn classify(model: &str, to_input: impl Fn(u8) -> Vec<u8>, output_bytes: usize) -> Vec<Vec<u8>> {
    let import = nnhal_tflite::import_file(&asset(model)).unwrap();
    let prepared = nnhal_reference::device()
        .prepare_model(&import.model, HalVersion::V1_3, PrepareOptions::default())
        .unwrap();
    let pictures: Vec<u8> = array("held_out_images.npy");
    let (pictures, _) = pictures.as_chunks::<PIXELS>();
    pictures
        .iter()
        .map(|picture| {
            let input: Vec<u8> = picture.iter().flat_map(|pixel| to_input(*pixel)).collect();
            let mut request = RequestBuilder::new();
            request.input(&input).output(output_bytes);
            let request = request.build().unwrap();
            prepared.execute(&request, &ExecutionOptions::default()).unwrap();
            RequestBuilder::read_output(&request, 0).unwrap()
        })
        .collect()
}

fn count_right<T: PartialOrd + Copy>(outputs: &[Vec<T>]) -> usize {
    let labels: Vec<u8> = array("held_out_labels.npy");
    let best = |scores: &Vec<T>| {
        (0..CLASSES).reduce(|best, next| if scores[next] > scores[best] { next } else { best })
    };
    outputs
        .iter()
        .zip(labels)
        .filter(|(scores, label)| best(scores) == Some(usize::from(*label)))
        .count()
}

#[test]
fn the_float32_network_is_as_accurate_as_stated_and_agrees_with_litert() {
    let normalized = |pixel: u8| (f32::from(pixel) / 255.0).to_le_bytes().to_vec();
    let outputs: Vec<Vec<f32>> = classify("digits_float32.tflite", normalized, CLASSES * 4)
        .iter()
        .map(|bytes| bytes.as_chunks().0.iter().map(|it| f32::from_le_bytes(*it)).collect())
        .collect();
    assert_eq!(count_right(&outputs), RIGHT);
    let expected: Vec<f32> = array("expected_float32.npy");
    for (found, expected) in outputs.iter().flatten().zip(expected) {
        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    }
}

#[test]
fn the_int8_network_is_as_accurate_as_stated_and_agrees_with_litert() {
    let shifted = |pixel: u8| vec![pixel ^ 0x80];
    let outputs: Vec<Vec<i8>> = classify("digits_int8.tflite", shifted, CLASSES)
        .iter()
        .map(|bytes| bytes.iter().map(|byte| byte.cast_signed()).collect())
        .collect();
    assert_eq!(count_right(&outputs), RIGHT);
    let expected: Vec<i8> = array("expected_int8.npy");
    for (found, expected) in outputs.iter().flatten().zip(expected) {
        assert!(found.abs_diff(expected) <= 1, "{found} {expected}");
    }
}
