//! Transposed convolutions in the shapes of decoders, of float32 and of 8 bits; see `convolution`. The
//! peak is that of float32.

mod measure;

use measure::{Settings, values};
use nnhal_kernels::convolution::{self, quantized::Layer};
use nnhal_kernels::quantization::{Activations, Signedness, Weights};
use nnhal_kernels::transposed_convolution::{Shape, float, quantized};
use nnhal_kernels::{
    Epilogue, Image, ImageKernel, ImageMut, Images, Lines, Multiplier, Preparation, Requantization,
    Team,
};

/// Name, input length, channels of input and output, filter, stride, padding before and behind.
type Row = (&'static str, usize, [usize; 2], [usize; 2], [usize; 2]);

const ROWS: &[Row] = &[
    ("unet 2x2/2 16x16", 16, [512, 256], [2, 2], [0, 0]),
    ("unet 2x2/2 64x64", 64, [128, 64], [2, 2], [0, 0]),
    ("selfie 2x2/2 128x128", 128, [16, 2], [2, 2], [0, 0]),
    ("decoder 3x3/2 64x64", 64, [64, 32], [3, 2], [0, 1]),
    ("pix2pix 4x4/2 4x4", 4, [512, 512], [4, 2], [1, 1]),
    ("pix2pix 4x4/2 32x32", 32, [256, 128], [4, 2], [1, 1]),
    ("pix2pix 4x4/2 64x64", 64, [128, 64], [4, 2], [1, 1]),
    ("fcn 4x4/2 32x32", 32, [21, 21], [4, 2], [1, 1]),
    ("fcn 16x16/8 64x64", 64, [21, 21], [16, 8], [4, 4]),
];

fn main() {
    let settings = Settings::from_arguments();
    let (set, threads) = (settings.set, settings.threads);
    for &(name, length, [input_channels, output_channels], [filter, stride], padding) in ROWS {
        let output = (length - 1) * stride + filter - padding[0] - padding[1];
        let shape = Shape(convolution::Shape {
            batch: 1,
            input: [length; 2],
            input_channels,
            output: [output; 2],
            output_channels,
            filter: [filter; 2],
            stride: [stride; 2],
            padding_before: [padding[0]; 2],
            dilation: [1, 1],
            groups: 1,
        });
        let mut team = Team::new(threads);
        if settings.wants(name) {
            let mut preparation = Preparation::new(set, threads);
            let layer = convolution::float::Layer {
                filter: &values(shape.filter_values()),
                bias: &values(output_channels),
                epilogue: Epilogue::RELU,
            };
            let strides = [input_channels, output_channels];
            let kernel =
                float::TransposedConvolution::prepare(&shape, strides, layer, &mut preparation)
                    .unwrap();
            drop(preparation);
            let input = values(shape.input_pixels() * input_channels);
            let mut output = vec![0.0; shape.output_pixels() * output_channels];
            let mut scratch = Lines::with_bytes(kernel.scratch_bytes());
            settings.measure(name, &kernel.kernel(), shape.operations(), || {
                let input = Image::contiguous(&input, input_channels);
                let output = ImageMut::contiguous(&mut output, output_channels);
                kernel.run(&mut team, Images::new(input, output), scratch.lines_mut());
            });
        }
        let name = format!("{name} 8-bit");
        if settings.wants(&name) {
            let mut random = fastrand::Rng::with_seed(7);
            let mut bytes =
                |count: usize| -> Vec<u8> { (0..count).map(|_| random.u8(..)).collect() };
            let filter = bytes(shape.filter_values());
            let weights =
                Weights { values: &filter, signedness: Signedness::Signed, zero_point: 0 };
            let requantization = Requantization {
                multipliers: vec![Multiplier::from_real(1e-3)],
                zero_point: 0,
                min: -128,
                max: 127,
            };
            let mut preparation = Preparation::new(set, threads);
            let layer = Layer {
                weights,
                bias: &vec![0; output_channels],
                activations: Activations { signedness: Signedness::Signed, zero_point: 3 },
                requantization,
            };
            let kernel = quantized::TransposedConvolution::prepare(
                &shape,
                output_channels,
                &layer,
                &mut preparation,
            )
            .unwrap();
            drop(preparation);
            let input = bytes(shape.input_pixels() * input_channels);
            let mut output = vec![0; shape.output_pixels() * output_channels];
            let mut scratch = Lines::with_bytes(kernel.scratch_bytes());
            settings.measure(&name, kernel.kernel(), shape.operations(), || {
                let input = Image::contiguous(&input, input_channels);
                let output = ImageMut::contiguous(&mut output, output_channels);
                kernel.run(&mut team, Images::new(input, output), scratch.lines_mut());
            });
        }
    }
}
