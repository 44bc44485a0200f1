//! Convolutions of float32 in the shapes of well-known networks: the least time of many turns, and
//! its share of the most multiplications and additions that a thread can do.
//!
//! `cargo bench -p nnhal-kernels --bench convolution -- [--threads N] [--set NAME] [PART OF A NAME]`

mod measure;

use measure::{COLD_BYTES, Settings, values};
use nnhal_kernels::convolution::Shape;
use nnhal_kernels::convolution::float::{Convolution, Layer};
use nnhal_kernels::grouped_convolution::float::GroupedConvolution;
use nnhal_kernels::{
    Epilogue, Image, ImageKernel, ImageMut, Images, Lines, Preparation, Team, TooLarge,
};

/// Name, input size, channels in and out, filter size, stride.
type Row = (&'static str, [usize; 2], [usize; 2], [usize; 2], usize);

const ROWS: &[Row] = &[
    ("mobilenet_v1 first", [224; 2], [3, 32], [3; 2], 2),
    ("mobilenet_v1 pointwise 1", [112; 2], [32, 64], [1; 2], 1),
    ("mobilenet_v1 pointwise 2", [56; 2], [64, 128], [1; 2], 1),
    ("mobilenet_v1 pointwise 4", [28; 2], [128, 256], [1; 2], 1),
    ("mobilenet_v1 pointwise 6", [14; 2], [256, 512], [1; 2], 1),
    ("mobilenet_v1 pointwise 7", [14; 2], [512, 512], [1; 2], 1),
    ("mobilenet_v1 pointwise 13", [7; 2], [1024, 1024], [1; 2], 1),
    ("mobilenet_v3 first", [224; 2], [3, 16], [3; 2], 2),
    ("kws first", [49, 10], [1, 64], [10, 4], 2),
    ("mobilenet_v2 project 1", [112; 2], [32, 16], [1; 2], 1),
    ("mobilenet_v2 expand 2", [112; 2], [16, 96], [1; 2], 1),
    ("mobilenet_v2 project 3", [56; 2], [144, 24], [1; 2], 1),
    ("mobilenet_v2 expand 3", [56; 2], [24, 144], [1; 2], 1),
    ("mobilenet_v2 project 5", [28; 2], [192, 32], [1; 2], 1),
    ("mobilenet_v2 project 8", [14; 2], [384, 64], [1; 2], 1),
    ("mobilenet_v2 expand 14", [7; 2], [160, 960], [1; 2], 1),
    ("mobilenet_v2 last", [7; 2], [320, 1280], [1; 2], 1),
    ("mobilenet_v3 project", [28; 2], [120, 40], [1; 2], 1),
    ("efficientnet project", [14; 2], [672, 112], [1; 2], 1),
    ("resnet50 first", [224; 2], [3, 64], [7; 2], 2),
    ("resnet50 2 reduce", [56; 2], [256, 64], [1; 2], 1),
    ("resnet50 2 3x3", [56; 2], [64, 64], [3; 2], 1),
    ("resnet50 2 expand", [56; 2], [64, 256], [1; 2], 1),
    ("resnet50 3 3x3 stride 2", [56; 2], [128, 128], [3; 2], 2),
    ("resnet50 3 3x3", [28; 2], [128, 128], [3; 2], 1),
    ("resnet50 4 reduce", [14; 2], [1024, 256], [1; 2], 1),
    ("resnet50 4 3x3", [14; 2], [256, 256], [3; 2], 1),
    ("resnet50 4 expand", [14; 2], [256, 1024], [1; 2], 1),
    ("resnet50 5 reduce", [7; 2], [2048, 512], [1; 2], 1),
    ("resnet50 5 3x3", [7; 2], [512, 512], [3; 2], 1),
    ("resnet50 5 expand", [7; 2], [512, 2048], [1; 2], 1),
    ("resnet50 5 shortcut", [14; 2], [1024, 2048], [1; 2], 2),
    ("inception_v3 second", [149; 2], [32, 32], [3; 2], 1),
    ("inception_v3 third", [147; 2], [32, 64], [3; 2], 1),
    ("inception_v3 35x35", [35; 2], [96, 96], [3; 2], 1),
    ("inception_v3 17x17 pointwise", [17; 2], [768, 192], [1; 2], 1),
    ("squeezenet first", [224; 2], [3, 64], [3; 2], 2),
    ("squeezenet expand", [56; 2], [16, 64], [3; 2], 1),
    ("deeplab pointwise", [33; 2], [960, 160], [1; 2], 1),
    ("deeplab last", [33; 2], [256, 21], [1; 2], 1),
    ("kws pointwise", [25, 5], [64, 64], [1; 2], 1),
];

/// The same, with the number of groups.
const GROUPED: &[(Row, usize)] = &[
    (("grouped resnext 1", [56; 2], [128, 128], [3; 2], 1), 32),
    (("grouped resnext 2 stride 2", [56; 2], [256, 256], [3; 2], 2), 32),
    (("grouped resnext 2", [28; 2], [256, 256], [3; 2], 1), 32),
    (("grouped resnext 3", [14; 2], [512, 512], [3; 2], 1), 32),
    (("grouped regnet_y_400mf 3 stride 2", [28; 2], [208, 208], [3; 2], 2), 26),
    (("grouped wav2vec2", [1, 50], [768, 768], [1, 128], 1), 16),
];

fn main() {
    let settings = Settings::from_arguments();
    for row in ROWS {
        measure(&settings, row, 1, Convolution::prepare);
    }
    for (row, groups) in GROUPED {
        measure(&settings, row, *groups, GroupedConvolution::prepare);
    }
}

fn measure<K: ImageKernel<Element = f32>>(
    settings: &Settings,
    &(name, size, [input_channels, output_channels], filter, stride): &Row,
    groups: usize,
    prepare: impl Fn(&Shape, usize, Layer<'_>, &mut Preparation) -> Result<K, TooLarge>,
) {
    let channels = [input_channels, output_channels];
    let shape = Shape { groups, ..Shape::same(size, channels, filter, stride) };
    if !settings.wants(name) {
        return;
    }
    let copies = settings.copies(size_of::<f32>() * shape.filter_values());
    let (filter, bias) = (values(shape.filter_values()), values(output_channels));
    let mut preparation = Preparation::new(settings.set, settings.threads).with_room(COLD_BYTES);
    let mut prepare = || {
        let layer = Layer { filter: &filter, bias: &bias, epilogue: Epilogue::RELU6 };
        prepare(&shape, input_channels, layer, &mut preparation).unwrap()
    };
    let kernels: Vec<K> = (0..copies).map(|_| prepare()).collect();
    drop(preparation);
    let mut turn = 0;
    let kernel = &kernels[0];
    let input = Lines::from_elements(&values(shape.input_pixels() * input_channels));
    let mut output = Lines::with_elements::<f32>(shape.output_pixels() * output_channels);
    let mut scratch = Lines::with_bytes(kernel.scratch_bytes());
    let mut team = Team::new(settings.threads);
    settings.measure(name, &kernel.name(), shape.operations(), || {
        turn += 1;
        let images = Images::new(
            Image::contiguous(input.elements(), input_channels),
            ImageMut::contiguous(output.elements_mut(), output_channels),
        );
        kernels[turn % copies].run(&mut team, images, scratch.lines_mut());
    });
}
