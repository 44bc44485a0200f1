//! What becomes of the custom operators that make features of sound.

use super::custom::numbers;
use super::draft::Draft;
use super::mapping::{import, operations, reasons};
use crate::schema::TensorType as T;
use nnhal_hal::OperationType as O;
use nnhal_ops::extension::ExtensionOperation as E;

const SPECTROGRAM: [(&str, i32); 3] =
    [("window_size", 100), ("stride", 40), ("magnitude_squared", 1)];

const COEFFICIENTS: [(&str, i32); 4] = [
    ("lower_frequency_limit", 20),
    ("upper_frequency_limit", 4000),
    ("filterbank_channel_count", 40),
    ("dct_coefficient_count", 13),
];

/// Options, one of which is another number.
fn with(options: &[(&'static str, i32)], name: &str, number: i32) -> Vec<u8> {
    let mut options = options.to_vec();
    options.iter_mut().filter(|it| it.0 == name).for_each(|it| it.1 = number);
    numbers(&options)
}

fn spectrogram(shape: &[i32], options: &[u8]) -> Draft {
    let mut draft = Draft::new();
    let input = draft.tensor(T::Float32, shape);
    let output = draft.tensor(T::Float32, &[0; 3]);
    draft.custom("AudioSpectrogram", &[input], &[output], options);
    draft.ends(0, &[input], &[output]);
    draft
}

fn coefficients(rate: i32, options: &[u8]) -> Draft {
    let mut draft = Draft::new();
    let input = draft.tensor(T::Float32, &[2, 5, 65]);
    let rate = draft.constant(T::Int32, &[1], &rate.to_le_bytes());
    let output = draft.tensor(T::Float32, &[0; 3]);
    draft.custom("Mfcc", &[input, rate], &[output], options);
    draft.ends(0, &[input], &[output]);
    draft
}

#[test]
fn a_spectrogram_has_a_row_for_each_window_of_each_channel() {
    let import = import(&spectrogram(&[200, 2], &numbers(&SPECTROGRAM)));
    let [transform, absolute] = [E::Rfft2d, E::ComplexAbs].map(E::operation_type);
    let wanted =
        [O::Transpose, O::Gather, O::Reshape, O::Mul, transform, absolute, O::Mul, O::Reshape];
    assert_eq!(operations(&import), wanted);
    // Windows begin at 0, 40 and 80; 100 samples are filled up to 128.
    assert_eq!(import.outputs[0].shape, [2, 3, 65].map(Some));
}

#[test]
fn fewer_samples_than_a_window_are_no_rows() {
    let import = import(&spectrogram(&[99, 2], &numbers(&SPECTROGRAM)));
    assert_eq!(operations(&import), [E::Fill.operation_type()]);
}

#[test]
fn magnitudes_are_not_squared_where_they_are_not_wanted() {
    let options = with(&SPECTROGRAM, "magnitude_squared", 0);
    let import = import(&spectrogram(&[200, 1], &options));
    assert_eq!(operations(&import).iter().filter(|it| **it == O::Mul).count(), 1);
}

#[test]
fn coefficients_are_two_products_with_a_logarithm_between_them() {
    let import = import(&coefficients(16_000, &numbers(&COEFFICIENTS)));
    let (product, between) = (O::FullyConnected, [O::Maximum, O::Log]);
    let wanted = [O::Reshape, O::Sqrt, product, between[0], between[1], product, O::Reshape];
    assert_eq!(operations(&import), wanted);
    assert_eq!(import.outputs[0].shape, [2, 5, 13].map(Some));
}

#[test]
fn options_that_make_no_sense_are_named() {
    let of_spectrogram = [
        ("window_size", 1, "its option \"window_size\" is 1, expected 2 to 1048576"),
        ("stride", 0, "its option \"stride\" is 0, expected 1 to 4294967295"),
    ];
    for (name, number, reason) in of_spectrogram {
        let options = with(&SPECTROGRAM, name, number);
        assert_eq!(reasons(&spectrogram(&[200, 1], &options)), [reason]);
    }
    let missing = "its options have no \"window_size\"";
    assert_eq!(reasons(&spectrogram(&[200, 1], &numbers(&SPECTROGRAM[1..]))), [missing]);
    let flat = "its input is not samples of channels";
    assert_eq!(reasons(&spectrogram(&[200], &numbers(&SPECTROGRAM))), [flat]);

    let of_coefficients = [
        (
            "upper_frequency_limit",
            20,
            "its frequencies reach from 20 to 20, expected 0 or more, and then more than that",
        ),
        (
            "dct_coefficient_count",
            41,
            "its option \"dct_coefficient_count\" is 41, expected 1 to 40",
        ),
        (
            "filterbank_channel_count",
            0,
            "its option \"filterbank_channel_count\" is 0, expected 1 to 4294967295",
        ),
    ];
    for (name, number, reason) in of_coefficients {
        let options = with(&COEFFICIENTS, name, number);
        assert_eq!(reasons(&coefficients(8000, &options)), [reason]);
    }
    let rate = "its sample rate is 0, expected above 0";
    assert_eq!(reasons(&coefficients(0, &numbers(&COEFFICIENTS))), [rate]);
}

#[test]
fn counts_do_not_take_memory_that_the_file_does_not_account_for() {
    let huge = with(&COEFFICIENTS, "filterbank_channel_count", i32::MAX);
    let reasons = reasons(&coefficients(8000, &huge));
    assert!(reasons[0].contains("elements") || reasons[0].contains("bytes"), "{reasons:?}");
    let window = [("window_size", 1 << 20), ("stride", 1), ("magnitude_squared", 1)];
    let long = spectrogram(&[i32::MAX, 1], &numbers(&window));
    assert_eq!(super::mapping::reasons(&long), ["it has more elements than 32 bits can count"]);
}

/// A NumericVerify of integers, whose output the file gives this type.
fn verified(tolerance: i32, fails: i32, of_output: T) -> Draft {
    let mut draft = Draft::new();
    let input = draft.tensor(T::Int8, &[3]);
    draft.quantize(input, &[0.5], 3, 0);
    let expected = draft.tensor(T::Float32, &[3]);
    let output = draft.tensor(of_output, &[3]);
    draft.quantize(output, &[0.5], 3, 0);
    let options = numbers(&[("tolerance", tolerance), ("log_if_failed", fails)]);
    draft.custom("NumericVerify", &[input, expected], &[output], &options);
    draft.ends(0, &[input, expected], &[output]);
    draft
}

#[test]
fn a_verification_gives_differences_and_does_not_end_an_execution() {
    for (tolerance, fails) in [(5, 0), (0, 1)] {
        // As TensorFlow's converter writes it, and as the results are.
        for of_output in [T::Int8, T::Float32] {
            let import = import(&verified(tolerance, fails, of_output));
            assert_eq!(operations(&import), [O::Dequantize, O::Sub]);
            assert_eq!(import.outputs[0].type_code, T::Float32 as i8);
        }
    }
    let ends = "it ends the execution if a difference exceeds 5 steps, as no operation does";
    assert_eq!(reasons(&verified(5, 1, T::Float32)), [ends]);
}
