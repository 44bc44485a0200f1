//! Quantized convolutions in the shapes of well-known networks: the least time of many turns, and its
//! share of the most multiplications and additions of 8-bit numbers that a thread can do. Weights are distributed
//! normally, and the largest of each channel is 127, since how products of bytes are computed depends on them.
//!
//! `cargo bench -p nnhal-kernels --bench quantized -- [--threads N] [--set NAME] [--zero-point N]
//! [--winograd off] [PART OF A NAME]`. With a zero point, weights are unsigned and stand for 0 there.
#![allow(unsafe_code)]
#![allow(clippy::print_stdout)] // What it is for.
#![allow(clippy::cast_precision_loss)] // Times and counts, for people.

mod measure;

use measure::Settings;
use nnhal_kernels::convolution::Shape;
use nnhal_kernels::convolution::quantized::{Convolution, Layer};
use nnhal_kernels::depthwise::quantized::Depthwise;
use nnhal_kernels::peak::Numbers;
use nnhal_kernels::quantization::{Activations, Signedness, Weights};
use nnhal_kernels::{
    Image, ImageKernel, ImageMut, Images, Lines, Multiplier, Preparation, Requantization, Team,
};

/// Name, input size, channels in and out, filter size, stride.
type Row = (&'static str, usize, [usize; 2], usize, usize);

const ROWS: &[Row] = &[
    ("mobilenet_v1 first", 224, [3, 32], 3, 2),
    ("mobilenet_v1 pointwise 1", 112, [32, 64], 1, 1),
    ("mobilenet_v1 pointwise 2", 56, [64, 128], 1, 1),
    ("mobilenet_v1 pointwise 4", 28, [128, 256], 1, 1),
    ("mobilenet_v1 pointwise 6", 14, [256, 512], 1, 1),
    ("mobilenet_v1 pointwise 7", 14, [512, 512], 1, 1),
    ("mobilenet_v1 pointwise 13", 7, [1024, 1024], 1, 1),
    ("mobilenet_v2 project 1", 112, [32, 16], 1, 1),
    ("mobilenet_v2 expand 2", 112, [16, 96], 1, 1),
    ("mobilenet_v2 project 3", 56, [144, 24], 1, 1),
    ("mobilenet_v2 expand 3", 56, [24, 144], 1, 1),
    ("mobilenet_v2 project 5", 28, [192, 32], 1, 1),
    ("mobilenet_v2 project 8", 14, [384, 64], 1, 1),
    ("mobilenet_v2 expand 14", 7, [160, 960], 1, 1),
    ("mobilenet_v2 last", 7, [320, 1280], 1, 1),
    ("mobilenet_v3 project", 28, [120, 40], 1, 1),
    ("efficientnet project", 14, [672, 112], 1, 1),
    ("resnet50 first", 224, [3, 64], 7, 2),
    ("resnet50 2 reduce", 56, [256, 64], 1, 1),
    ("resnet50 2 3x3", 56, [64, 64], 3, 1),
    ("resnet50 2 expand", 56, [64, 256], 1, 1),
    ("resnet50 3 3x3 stride 2", 56, [128, 128], 3, 2),
    ("resnet50 3 3x3", 28, [128, 128], 3, 1),
    ("resnet50 4 reduce", 14, [1024, 256], 1, 1),
    ("resnet50 4 3x3", 14, [256, 256], 3, 1),
    ("resnet50 4 expand", 14, [256, 1024], 1, 1),
    ("resnet50 5 reduce", 7, [2048, 512], 1, 1),
    ("resnet50 5 3x3", 7, [512, 512], 3, 1),
    ("resnet50 5 expand", 7, [512, 2048], 1, 1),
    ("resnet50 5 shortcut", 14, [1024, 2048], 1, 2),
    ("squeezenet expand 2", 55, [16, 64], 3, 1),
    ("squeezenet expand 4", 27, [32, 128], 3, 1),
    ("squeezenet expand 6", 13, [48, 192], 3, 1),
    ("squeezenet expand 8", 13, [64, 256], 3, 1),
    ("inception_v3 second", 149, [32, 32], 3, 1),
    ("inception_v3 third", 147, [32, 64], 3, 1),
    ("inception_v3 fifth", 71, [80, 192], 3, 1),
    ("inception_v3 35x35", 35, [96, 96], 3, 1),
    ("inception_v3 8x8", 8, [448, 384], 3, 1),
    ("inception_v3 17x17 pointwise", 17, [768, 192], 1, 1),
    ("deeplab pointwise", 33, [960, 160], 1, 1),
    ("deeplab last", 33, [256, 21], 1, 1),
    ("ssd class prediction", 19, [576, 273], 1, 1),
    ("kws pointwise", 25, [64, 64], 1, 1),
    ("classes", 1, [1024, 1001], 1, 1),
    ("kws classes", 1, [64, 12], 1, 1),
];

/// Name, input size, channels, filter size, stride.
const DEPTHWISE: &[(&str, usize, usize, usize, usize)] = &[
    ("mobilenet_v1 depthwise 1", 112, 32, 3, 1),
    ("mobilenet_v1 depthwise 2", 112, 64, 3, 2),
    ("mobilenet_v1 depthwise 3", 56, 128, 3, 1),
    ("mobilenet_v1 depthwise 7", 14, 512, 3, 1),
    ("mobilenet_v1 depthwise 13", 7, 1024, 3, 1),
    ("mobilenet_v2 depthwise 2", 112, 96, 3, 2),
    ("mobilenet_v2 depthwise 3", 56, 144, 3, 1),
    ("mobilenet_v2 depthwise 8", 14, 384, 3, 1),
    ("mobilenet_v3 depthwise 5x5", 28, 120, 5, 1),
    ("mobilenet_v3 depthwise last", 7, 960, 5, 1),
    ("efficientnet depthwise 5x5", 14, 672, 5, 1),
    ("kws depthwise", 25, 64, 3, 1),
];

fn same(&(_, size, channels, filter, stride): &Row) -> Shape {
    Shape::same([size; 2], channels, [filter; 2], stride)
}

/// As of an operation with ReLU, where the outputs use all of their range.
fn requantization(taps: usize, channels: usize, signedness: Signedness) -> Requantization {
    let (min, max) = signedness.range();
    let factor = 1.0 / 60.0 / (taps as f64).sqrt();
    Requantization {
        multipliers: (0..channels).map(|_| Multiplier::from_real(factor)).collect(),
        zero_point: min,
        min,
        max,
    }
}

/// This many weights of each channel, less their zero point from -127 to 127.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Rounded; the lower 8 bits.
fn weights(random: &mut fastrand::Rng, channels: usize, each: usize, zero_point: i32) -> Vec<u8> {
    let mut all = Vec::with_capacity(channels * each);
    for _ in 0..channels {
        let normal = |_| {
            let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
            radius * (std::f64::consts::TAU * random.f64()).cos()
        };
        let values: Vec<f64> = (0..each).map(normal).collect();
        let largest = values.iter().fold(f64::MIN_POSITIVE, |most, value| value.abs().max(most));
        let stored = |value: &f64| ((value / largest * 127.0).round() as i32 + zero_point) as u8;
        all.extend(values.iter().map(stored));
    }
    all
}

fn main() {
    let (mut zero_point, mut winograd) = (None, true);
    let settings = Settings::of(Numbers::Bits8, |argument, value| {
        match argument {
            "--zero-point" => zero_point = Some(value().parse().expect("a number")),
            "--winograd" => winograd = value() != "off",
            _ => return false,
        }
        true
    });
    let signedness = if zero_point.is_some() { Signedness::Unsigned } else { Signedness::Signed };
    let activations = Activations { signedness, zero_point: signedness.range().0 + 115 };
    let zero_point = zero_point.unwrap_or(0);
    let mut random = fastrand::Rng::with_seed(7);
    let mut random_weights = fastrand::Rng::with_seed(8);
    let mut bytes = |count: usize| -> Vec<u8> { (0..count).map(|_| random.u8(..)).collect() };
    for row in ROWS {
        let (name, shape) = (row.0, same(row));
        if !settings.wants(name) {
            continue;
        }
        let taps = shape.taps() * shape.input_channels;
        let weights = weights(&mut random_weights, shape.output_channels, taps, zero_point);
        let weights = Weights { values: &weights, signedness, zero_point };
        let mut preparation = Preparation::new(settings.set, settings.threads);
        if !winograd {
            preparation = preparation.without_winograd();
        }
        let layer = Layer {
            weights,
            bias: &vec![100; shape.output_channels],
            activations,
            requantization: requantization(taps, shape.output_channels, signedness),
        };
        let convolution = Convolution::prepare(&shape, layer, &mut preparation).unwrap();
        drop(preparation);
        let kernel = format!("{} {}", convolution.algorithm(), convolution.kernel());
        let input = bytes(shape.input_pixels() * shape.input_channels);
        let input = Lines::from_elements(&input);
        let output_values = shape.output_pixels() * shape.output_channels;
        let mut output = Lines::with_elements::<u8>(output_values);
        let mut scratch = Lines::with_bytes(convolution.scratch_bytes());
        let mut team = Team::new(settings.threads);
        settings.measure(name, &kernel, shape.operations(), || {
            let images = Images::new(
                Image::contiguous(input.elements(), shape.input_channels),
                ImageMut::contiguous(output.elements_mut(), shape.output_channels),
            );
            convolution.run(&mut team, images, scratch.elements_mut());
        });
    }
    for &(name, size, channels, filter, stride) in DEPTHWISE {
        if !settings.wants(name) {
            continue;
        }
        let plain = same(&(name, size, [channels; 2], filter, stride));
        let shape = Shape { groups: channels, ..plain };
        let weights = weights(&mut random_weights, channels, shape.taps(), zero_point);
        let layer = Layer {
            weights: Weights { values: &weights, signedness, zero_point },
            bias: &vec![100; channels],
            activations,
            requantization: requantization(shape.taps(), channels, signedness),
        };
        let mut preparation = Preparation::new(settings.set, settings.threads);
        let depthwise = Depthwise::prepare(&shape, layer, &mut preparation).unwrap();
        drop(preparation);
        let input = Lines::from_elements(&bytes(shape.input_pixels() * channels));
        let mut output = Lines::with_elements::<u8>(shape.output_pixels() * channels);
        let mut team = Team::new(settings.threads);
        settings.measure(name, depthwise.kernel(), shape.operations(), || {
            let images = Images::new(
                Image::contiguous(input.elements(), channels),
                ImageMut::contiguous(output.elements_mut(), channels),
            );
            depthwise.run(&mut team, images, &mut []);
        });
    }
}
