//! Depthwise convolutions of float32 in the shapes of well-known networks; see `convolution`.

mod measure;

use measure::{Settings, values};
use nnhal_kernels::convolution::Shape;
use nnhal_kernels::convolution::float::Layer;
use nnhal_kernels::depthwise::float::DepthwiseConvolution;
use nnhal_kernels::{Epilogue, Image, ImageKernel, ImageMut, Images, Lines, Preparation, Team};

/// Name, input size, channels, filter size, stride.
type Row = (&'static str, [usize; 2], usize, usize, usize);

const ROWS: &[Row] = &[
    ("mobilenet_v1 1", [112; 2], 32, 3, 1),
    ("mobilenet_v1 2 stride 2", [112; 2], 64, 3, 2),
    ("mobilenet_v1 3", [56; 2], 128, 3, 1),
    ("mobilenet_v1 5", [28; 2], 256, 3, 1),
    ("mobilenet_v1 7", [14; 2], 512, 3, 1),
    ("mobilenet_v1 13", [7; 2], 1024, 3, 1),
    ("mobilenet_v2 2 stride 2", [112; 2], 96, 3, 2),
    ("mobilenet_v2 3", [56; 2], 144, 3, 1),
    ("mobilenet_v2 15", [7; 2], 960, 3, 1),
    ("mobilenet_v3 28x28", [28; 2], 120, 5, 1),
    ("mobilenet_v3 7x7", [7; 2], 960, 5, 1),
    ("efficientnet 14x14", [14; 2], 672, 5, 1),
    ("efficientnet stride 2", [56; 2], 144, 5, 2),
    ("kws", [25, 5], 64, 3, 1),
];

fn main() {
    let settings = Settings::from_arguments();
    for &(name, size, channels, filter, stride) in ROWS {
        let shape =
            Shape { groups: channels, ..Shape::same(size, [channels; 2], [filter; 2], stride) };
        if !settings.wants(name) {
            continue;
        }
        let layer = Layer {
            filter: &values(shape.filter_values()),
            bias: &values(channels),
            epilogue: Epilogue::RELU6,
        };
        let mut preparation = Preparation::new(settings.set, settings.threads);
        let kernel =
            DepthwiseConvolution::prepare(&shape, channels, layer, &mut preparation).unwrap();
        drop(preparation);
        let input = Lines::from_elements(&values(shape.input_pixels() * channels));
        let mut output = Lines::with_elements::<f32>(shape.output_pixels() * channels);
        let mut scratch = Lines::with_bytes(kernel.scratch_bytes());
        let mut team = Team::new(settings.threads);
        settings.measure(name, &kernel.kernel(), shape.operations(), || {
            let images = Images::new(
                Image::contiguous(input.elements(), channels),
                ImageMut::contiguous(output.elements_mut(), channels),
            );
            kernel.run(&mut team, images, scratch.lines_mut());
        });
    }
}
