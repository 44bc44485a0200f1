//! Depthwise convolutions of float32 in the shapes of well-known networks; see `convolution`.

mod measure;

use measure::{Settings, values};
use nnhal_kernels::convolution::Shape;
use nnhal_kernels::depthwise::float::DepthwiseConvolution;
use nnhal_kernels::{Epilogue, Image, ImageMut, Lines, Preparation, Team};

/// Name, input size, channels, filter size, stride.
type Row = (&'static str, usize, usize, usize, usize);

const ROWS: &[Row] = &[
    ("mobilenet_v1 1", 112, 32, 3, 1),
    ("mobilenet_v1 2 stride 2", 112, 64, 3, 2),
    ("mobilenet_v1 3", 56, 128, 3, 1),
    ("mobilenet_v1 5", 28, 256, 3, 1),
    ("mobilenet_v1 7", 14, 512, 3, 1),
    ("mobilenet_v1 13", 7, 1024, 3, 1),
    ("mobilenet_v2 2 stride 2", 112, 96, 3, 2),
    ("mobilenet_v2 3", 56, 144, 3, 1),
    ("mobilenet_v2 15", 7, 960, 3, 1),
    ("mobilenet_v3 28x28", 28, 120, 5, 1),
    ("mobilenet_v3 7x7", 7, 960, 5, 1),
    ("efficientnet 14x14", 14, 672, 5, 1),
    ("efficientnet stride 2", 56, 144, 5, 2),
    ("kws", 25, 64, 3, 1),
];

fn main() {
    let settings = Settings::from_arguments();
    for &(name, size, channels, filter, stride) in ROWS {
        let output = size.div_ceil(stride);
        let padding = ((output - 1) * stride + filter).saturating_sub(size) / 2;
        let shape = Shape {
            batch: 1,
            input: [size; 2],
            input_channels: channels,
            output: [output; 2],
            output_channels: channels,
            filter: [filter; 2],
            stride: [stride; 2],
            dilation: [1; 2],
            padding_before: [padding; 2],
            groups: channels,
        };
        if !settings.wants(name) {
            continue;
        }
        let kernel = DepthwiseConvolution::prepare(
            &shape,
            channels,
            &values(shape.filter_values()),
            &values(channels),
            Epilogue::RELU6,
            &mut Preparation::new(settings.set, settings.threads),
        )
        .unwrap();
        let input = Lines::from_elements(&values(shape.input_pixels() * channels));
        let mut output = Lines::with_elements::<f32>(shape.output_pixels() * channels);
        let mut scratch = Lines::with_bytes(kernel.scratch_bytes());
        let mut team = Team::new(settings.threads);
        settings.measure(name, &kernel.kernel(), shape.operations(), || {
            kernel.run(
                &mut team,
                Image::contiguous(input.elements(), channels),
                None,
                ImageMut::contiguous(output.elements_mut(), channels),
                scratch.lines_mut(),
            );
        });
    }
}
