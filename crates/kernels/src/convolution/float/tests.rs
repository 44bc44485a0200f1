use super::winograd::TileSize;
use super::*;
use crate::preparation::prepared_twice;
use crate::{Epilogue, Image, ImageMut, Lines};
use proptest::prelude::*;

/// Small whole numbers and halves, whose sums of products are exact in any order.
pub(crate) fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..count).map(|_| f32::from(random.i8(-8..=8)) / 2.0).collect()
}

/// The columns of a matrix of this many rows and columns, one behind the other: of the filter of a depthwise convolution,
/// `[taps, output channels]`, that of others, and the other way round.
pub(crate) fn turned<T: Copy>(values: &[T], [rows, columns]: [usize; 2]) -> Vec<T> {
    (0..rows * columns).map(|at| values[at % rows * columns + at / rows]).collect()
}

/// The sizes of a depthwise convolution, in which each input channel is seen by this many output channels, or those given if it
/// is none.
pub(crate) fn depthwise(shape: Shape, multiplier: usize) -> Shape {
    match multiplier {
        0 => shape,
        _ => Shape {
            groups: shape.input_channels.max(1),
            output_channels: shape.input_channels * multiplier,
            ..shape
        },
    }
}

/// What a kernel writes into an image of this many pixels at this distance from each other, in which all values are `blank`
/// before. What is left in scratch memory from another run does not count.
pub(crate) fn output_of<K: ImageKernel>(
    kernel: &K,
    threads: usize,
    input: Image<'_, K::Element>,
    residual: Option<Image<'_, K::Element>>,
    blank: K::Element,
    [pixels, pixel_stride]: [usize; 2],
) -> Vec<K::Element> {
    let mut output = vec![blank; pixels * pixel_stride];
    let mut scratch = Lines::with_bytes(kernel.scratch_bytes());
    scratch.elements_mut::<u8>().fill(0xFF);
    let images =
        Images { residual, ..Images::new(input, ImageMut { values: &mut output, pixel_stride }) };
    kernel.run(&mut Team::new(threads), images, scratch.lines_mut());
    output
}

/// Compares an output whose pixels are at a distance from each other, and were -77 before, with what is expected of a channel
/// of a pixel.
pub(crate) fn compare(
    output: &[f32],
    [pixel_stride, channels]: [usize; 2],
    bound: f64,
    what: &str,
    expected: impl Fn(usize, usize) -> f64,
) {
    for (index, &found) in output.iter().enumerate() {
        let (pixel, channel) = (index / pixel_stride, index % pixel_stride);
        if channel >= channels {
            assert_eq!(found, -77.0, "{what}: a value between pixels was written");
            continue;
        }
        let expected = expected(pixel, channel);
        assert!(
            (f64::from(found) - expected).abs() <= bound,
            "{what}: pixel {pixel}, channel {channel}: {found}, expected {expected}"
        );
    }
}

/// By the definition, without the epilogue; the sums and the sums of magnitudes.
pub(crate) fn defined(
    shape: &Shape,
    input: Image<'_, f32>,
    filter: &[f32],
    bias: &[f32],
) -> Vec<(f64, f64)> {
    let [height, width] = shape.output;
    let depth = shape.group_input_channels();
    let mut sums = Vec::new();
    for pixel in 0..shape.output_pixels() {
        let (n, y, x) = (pixel / (height * width), pixel / width % height, pixel % width);
        for out in 0..shape.output_channels {
            let first = out / shape.group_output_channels() * depth;
            let mut sum = (f64::from(bias[out]), f64::from(bias[out].abs()));
            for tap in 0..shape.taps() {
                let (i, j) = (tap / shape.filter[1], tap % shape.filter[1]);
                let position = shape.input_position(0, y, i).zip(shape.input_position(1, x, j));
                let Some((y, x)) = position else { continue };
                let pixel = (n * shape.input[0] + y) * shape.input[1] + x;
                for channel in 0..depth {
                    let value = input.values[pixel * input.pixel_stride + first + channel];
                    let weight = filter[(out * shape.taps() + tap) * depth + channel];
                    let product = f64::from(value) * f64::from(weight);
                    sum = (sum.0 + product, sum.1 + product.abs());
                }
            }
            sums.push(sum);
        }
    }
    sums
}

pub(crate) fn any_shape() -> impl Strategy<Value = Shape> {
    prop_oneof![5 => near_shape(), 1 => far_shape()]
}

prop_compose! {
    /// An axis along which numbers may be near the greatest ones: input, output, filter, stride, dilation,
    /// padding. Mostly an output position sees the input through a tap.
    fn far_axis()(
        stride in far(), dilation in far(), padding in far(),
        input in 1_usize..5, output in 1_usize..4, filter in 1_usize..4,
    )(
        at in 0..output, tap in 0..filter, position in 0..input, sees in prop::bool::weighted(0.8),
        sizes in Just([input, output, filter, stride, dilation, padding]),
    ) -> [usize; 6] {
        let [input, output, filter, stride, dilation, padding] = sizes;
        let seen = (at * stride + tap * dilation).checked_sub(position);
        let padding = seen.filter(|seen| sees && *seen < 1 << 31).unwrap_or(padding);
        [input, output, filter, stride, dilation, padding]
    }
}

fn far() -> impl Strategy<Value = usize> {
    prop_oneof![1_usize..4, 100_usize..1 << 16, 1_usize << 16..1 << 31, Just((1 << 31) - 1)]
}

prop_compose! {
    /// Few values, far from each other.
    pub(crate) fn far_shape()(
        axes in [far_axis(), far_axis()], batch in 1_usize..3, groups in 1_usize..3,
        inputs in 1_usize..7, outputs in 1_usize..20,
    ) -> Shape {
        let pair = |index: usize| axes.map(|axis| axis[index]);
        Shape {
            batch,
            input: pair(0),
            input_channels: groups * inputs,
            output: pair(1),
            output_channels: groups * outputs,
            filter: pair(2),
            stride: pair(3),
            dilation: pair(4),
            padding_before: pair(5),
            groups,
        }
    }
}

fn near_shape() -> impl Strategy<Value = Shape> {
    let pair = |least: usize, most: usize| [least..=most, least..=most];
    (
        (0_usize..3, pair(0, 9), pair(0, 8), pair(1, 4)),
        (pair(1, 3), pair(1, 2), pair(0, 5)),
        prop_oneof![(1_usize..2, 0_usize..24, 1_usize..50), (1_usize..4, 0_usize..6, 1_usize..9)],
    )
        .prop_map(
            |((batch, input, output, filter), (stride, dilation, padding_before), channels)| {
                let (groups, inputs, outputs) = channels;
                Shape {
                    batch,
                    input,
                    input_channels: groups * inputs,
                    output,
                    output_channels: groups * outputs,
                    filter,
                    stride,
                    dilation,
                    padding_before,
                    groups,
                }
            },
        )
}

/// Compares all instruction sets with the definition.
fn check(shape: &Shape, gaps: [usize; 2], with_residual: bool, threads: usize, seed: u64) {
    let stride = shape.input_channels + gaps[0];
    let prepare = |layer: Layer<'_>, preparation: &mut Preparation| {
        Convolution::prepare(shape, stride, layer, preparation)
    };
    // Plain sums of these numbers are exact, and so are those that small tiles are transformed into; the others mix
    // neighbours with factors that round, so that their errors are those of the largest sum around.
    let error = |kernel: &Convolution| match kernel.method {
        Method::Winograd(_) if Winograd::tile_size(shape, kernel.set) == Some(TileSize::Four) => {
            5e-7
        }
        _ => 0.0,
    };
    check_kernels((shape, gaps), with_residual, threads, seed, (prepare, error));
}

/// Compares the kernels of all instruction sets with the definition, of which they may differ by a share of the largest sum.
pub(crate) fn check_kernels<K: ImageKernel<Element = f32>>(
    (shape, gaps): (&Shape, [usize; 2]),
    with_residual: bool,
    threads: usize,
    seed: u64,
    (prepare, error): (
        impl Fn(Layer<'_>, &mut Preparation) -> Result<K, TooLarge>,
        impl Fn(&K) -> f64,
    ),
) {
    let stride = shape.input_channels + gaps[0];
    let output_stride = shape.output_channels + gaps[1];
    let values = numbers(seed, shape.input_pixels() * stride);
    let input = Image { values: &values, pixel_stride: stride };
    let filter = numbers(seed ^ 1, shape.filter_values());
    let bias = numbers(seed ^ 2, shape.output_channels);
    let residual = numbers(seed ^ 3, shape.output_pixels() * output_stride);
    let epilogue = Epilogue { min: -30.0, max: 40.0, hard_swish: false };
    let layer = Layer { filter: &filter, bias: &bias, epilogue };
    let expected = defined(shape, input, &filter, &bias);
    for set in InstructionSet::available() {
        let kernel = prepared_twice(set, threads, |preparation| prepare(layer, preparation));
        let bound = error(&kernel) * expected.iter().fold(0.0, |most, sum| sum.1.max(most));
        let image = Image { values: &residual, pixel_stride: output_stride };
        let sizes = [shape.output_pixels(), output_stride];
        let output =
            output_of(&kernel, threads, input, with_residual.then_some(image), -77.0, sizes);
        let channels = shape.output_channels;
        compare(&output, [output_stride, channels], bound, &kernel.name(), |pixel, channel| {
            let added = f64::from(residual[pixel * output_stride + channel]);
            let sum = expected[pixel * channels + channel].0;
            (sum + if with_residual { added } else { 0.0 }).clamp(-30.0, 40.0)
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 150 }))]

    #[test]
    fn a_convolution_is_what_its_shape_says(
        shape in any_shape(), gaps in [0_usize..2, 0_usize..2], with_residual: bool,
        threads in 1_usize..4, seed: u64,
    ) {
        check(&shape, gaps, with_residual, threads, seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 150 }))]

    #[test]
    fn images_of_few_channels(
        batch in 1_usize..3, input in [0_usize..20, 0_usize..40], output in [1_usize..8, 1_usize..36],
        input_channels in 1_usize..5, output_channels in 1_usize..40,
        filter in [1_usize..13, 1_usize..5], stride in [1_usize..4, 1_usize..4],
        padding_before in [0_usize..7, 0_usize..7], with_residual: bool, threads in 1_usize..4,
        seed: u64,
    ) {
        let shape = Shape {
            batch, input, input_channels, output, output_channels, filter, stride,
            dilation: [1, 1], padding_before, groups: 1,
        };
        check(&shape, [0, 0], with_residual, threads, seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 150 }))]

    #[test]
    fn few_output_channels(
        batch in 1_usize..3, input in [1_usize..9, 1_usize..30], output in [1_usize..8, 1_usize..30],
        input_channels in prop_oneof![1_usize..20, 100_usize..140], output_channels in 1_usize..5,
        filter in prop_oneof![Just([1_usize, 1]), [1_usize..5, 1_usize..5]],
        stride in [1_usize..3, 1_usize..3], dilation in [1_usize..3, 1_usize..3],
        padding_before in [0_usize..4, 0_usize..4], gaps in [0_usize..2, 0_usize..2],
        is_plain: bool, with_residual: bool, threads in 1_usize..4, seed: u64,
    ) {
        let shape = Shape {
            batch, input, input_channels, output, output_channels, filter, stride, dilation,
            padding_before, groups: 1,
        };
        let plain = Shape {
            output: input, filter: [1, 1], stride: [1, 1], padding_before: [0, 0], ..shape
        };
        check(if is_plain { &plain } else { &shape }, gaps, with_residual, threads, seed);
    }

    #[test]
    fn numbers_of_columns_that_have_tiles_of_their_own_form(
        input in [1_usize..9, 1_usize..30], input_channels in 1_usize..40,
        output_channels in prop_oneof![1_usize..9, 17_usize..25, 33_usize..41, 65_usize..73],
        gaps in [0_usize..2, 0_usize..2], with_residual: bool, threads in 1_usize..4, seed: u64,
    ) {
        let shape = Shape {
            batch: 1, input, input_channels, output: input, output_channels, filter: [1, 1],
            stride: [1, 1], dilation: [1, 1], padding_before: [0, 0], groups: 1,
        };
        check(&shape, gaps, with_residual, threads, seed);
    }
}

#[test]
fn few_output_channels_are_dot_products_where_the_depth_is_worth_it() {
    let method = |input_channels, output_channels| {
        let shape = Shape { input_channels, output_channels, stride: [1, 1], ..PLAIN };
        let (filter, bias) = (vec![0.0; shape.filter_values()], vec![0.0; output_channels]);
        InstructionSet::available()
            .skip(1)
            .map(|set| {
                let mut preparation = Preparation::new(set, 1).without_winograd();
                let layer = Layer { filter: &filter, bias: &bias, epilogue: Epilogue::NONE };
                let kernel = Convolution::prepare(&shape, input_channels, layer, &mut preparation);
                matches!(
                    kernel.unwrap().method,
                    Method::Product { product: PackedProduct::FewColumns(_), .. }
                )
            })
            .collect::<Vec<_>>()
    };
    let all = |dots: &[bool], expected| dots.iter().all(|dots| *dots == expected);
    assert!(all(&method(8, 1), true) && all(&method(64, 4), true));
    assert!(all(&method(1, 1), false) && all(&method(64, 5), false));
}

const PLAIN: Shape = Shape::same([9, 11], [3, 40], [3, 3], 2);

#[test]
fn first_layers_and_their_gaps() {
    check(&PLAIN, [0, 0], false, 2, 1);
    check(&PLAIN, [1, 0], false, 2, 1);
    let seven = Shape { filter: [7, 7], padding_before: [3, 3], ..PLAIN };
    check(&seven, [0, 0], true, 1, 2);
}

#[test]
fn rows_with_a_stride_and_without() {
    // Tiles of pixels in one line, in two lines, and beside padding, with and without gaps between pixels.
    let shape = Shape { input: [6, 31], input_channels: 17, ..PLAIN };
    for (filter, padding_before, stride, output) in [
        ([1, 1], [0, 0], [1, 1], [6, 31]),
        ([1, 1], [0, 0], [2, 2], [3, 16]),
        ([3, 3], [1, 1], [1, 1], [6, 31]),
        ([1, 4], [0, 2], [1, 2], [6, 16]),
        ([2, 1], [1, 0], [1, 1], [6, 31]),
    ] {
        let shape = Shape { filter, padding_before, stride, output, ..shape };
        check(&shape, [0, 0], false, 1, 7);
        check(&shape, [3, 2], true, 2, 8);
    }
}

#[test]
fn filters_of_many_taps_and_no_taps() {
    let many = Shape { filter: [9, 8], input_channels: 20, ..PLAIN };
    check(&many, [0, 0], false, 1, 3);
    check(&Shape { filter: [9, 8], input_channels: 4, groups: 2, ..PLAIN }, [0, 0], false, 1, 4);
    check(&Shape { filter: [0, 3], ..PLAIN }, [0, 0], true, 1, 5);
    check(&Shape { input_channels: 0, ..PLAIN }, [0, 0], true, 1, 6);
}

#[test]
fn a_deep_product_with_weights_beyond_the_cache() {
    let shape = Shape {
        input: [6, 5],
        output: [6, 5],
        filter: [1, 1],
        stride: [1, 1],
        padding_before: [0, 0],
        input_channels: 600,
        output_channels: 300,
        ..PLAIN
    };
    check(&shape, [0, 4], true, 2, 7);
    check(&shape, [0, 0], false, 1, 7);
}

#[test]
#[should_panic(expected = "the input is too small")]
fn a_short_input_is_refused() {
    let filter = vec![0.0; PLAIN.filter_values()];
    let layer = Layer { filter: &filter, bias: &[0.0; 40], epilogue: Epilogue::NONE };
    let mut preparation = Preparation::new(InstructionSet::Portable, 1);
    let kernel = Convolution::prepare(&PLAIN, 3, layer, &mut preparation).unwrap();
    drop(preparation);
    let input = [0.0; 9 * 11 * 3 - 1];
    let sizes = [PLAIN.output_pixels(), 40];
    output_of(&kernel, 1, Image::contiguous(&input, 3), None, 0.0, sizes);
}

#[test]
fn three_by_three_filters_by_winograd() {
    let shape = Shape { batch: 2, ..Shape::same([15, 14], [64, 80], [3, 3], 1) };
    let four = [
        shape,
        Shape { padding_before: [0, 2], ..shape },
        Shape { output: [33, 41], input: [30, 43], output_channels: 48, ..shape },
    ];
    for (index, shape) in four.into_iter().enumerate() {
        check_winograd(&shape, TileSize::Four, index);
    }
}

/// With vectors of any width: few pixels and many channels.
#[test]
#[cfg_attr(miri, ignore = "too many products")]
fn few_pixels_are_cut_into_small_tiles_by_winograd() {
    let shape = Shape::same([10, 10], [256, 256], [3, 3], 1);
    let two = [shape, Shape { input: [9, 12], ..shape }, Shape { padding_before: [2, 0], ..shape }];
    for (index, shape) in two.into_iter().enumerate() {
        check_winograd(&shape, TileSize::Two, index);
    }
    // Fewer, and reading the filter takes longer than multiplying by the plain one.
    for set in InstructionSet::available().skip(1) {
        let size = [5, 5];
        assert!(
            Winograd::tile_size(&Shape { input: size, output: size, ..shape }, set).is_none(),
            "{set}"
        );
    }
}

/// Nothing, of which there would be neither tiles nor blocks.
#[test]
fn images_without_pixels_or_of_no_batch() {
    let shape = Shape::same([15, 14], [64, 64], [3, 3], 1);
    check(&Shape { batch: 0, ..shape }, [0, 0], false, 2, 21);
    check(&Shape { input: [0, 14], output: [0, 14], ..shape }, [0, 0], false, 1, 22);
}

/// Checks a shape that each instruction set cuts into these tiles.
fn check_winograd(shape: &Shape, size: TileSize, index: usize) {
    for set in InstructionSet::available().skip(1) {
        assert_eq!(Winograd::tile_size(shape, set), Some(size), "{set}: {shape:?}");
    }
    let gaps = [[0, 0], [3, 5], [0, 0]][index];
    check(shape, gaps, index != 1, [2, 1, 3][index], 11 + index as u64);
}

/// What [`Winograd`] rounds away, of numbers that are not whole, in the greatest magnitude of its outputs.
#[test]
#[cfg_attr(miri, ignore = "too many products")]
fn winograd_rounds_little_more_than_a_plain_sum() {
    let shape = Shape::same([38, 37], [64, 32], [3, 3], 1);
    let mut random = fastrand::Rng::with_seed(5);
    let mut reals = |count| (0..count).map(|_| random.f32() * 2.0 - 1.0).collect::<Vec<_>>();
    let (values, filter) = (reals(38 * 37 * 64), reals(shape.filter_values()));
    let bias = [0.0; 32];
    let input = Image { values: &values, pixel_stride: 64 };
    let expected = defined(&shape, input, &filter, &bias);
    let greatest = expected.iter().fold(0.0, |most, sum| sum.0.abs().max(most));
    let error = |mut preparation: Preparation| {
        let layer = Layer { filter: &filter, bias: &bias, epilogue: Epilogue::NONE };
        let kernel = Convolution::prepare(&shape, 64, layer, &mut preparation).unwrap();
        drop(preparation);
        let output = output_of(&kernel, 1, input, None, 0.0, [expected.len() / 32, 32]);
        let distance = |(found, sum): (&f32, &(f64, f64))| (f64::from(*found) - sum.0).abs();
        (output.iter().zip(&expected).map(distance).fold(0.0, f64::max) / greatest, kernel.kernel())
    };
    for set in InstructionSet::available().skip(1) {
        let (plain, _) = error(Preparation::new(set, 1).without_winograd());
        let (transformed, name) = error(Preparation::new(set, 1));
        assert!(name.contains("winograd"), "{name}");
        assert!(plain < 1.5e-6, "{set}: {plain:e}");
        assert!(transformed < 2.5e-6, "{set}: {transformed:e}");
    }
}

#[test]
fn channels_that_do_not_fill_vectors_are_not_transformed() {
    let shape = Shape::same([20, 20], [33, 33], [3, 3], 1);
    let (filter, bias) = (vec![0.0; shape.filter_values()], [0.0; 33]);
    let mut preparation = Preparation::new(InstructionSet::best(), 1);
    let layer = Layer { filter: &filter, bias: &bias, epilogue: Epilogue::NONE };
    assert!(Winograd::new(&shape, layer, &mut preparation).unwrap().is_none());
}

fn named(filter: [usize; 2], groups: usize) -> Shape {
    Shape { groups, ..Shape::same([8, 8], [4, 4], filter, 1) }
}

#[test]
fn convolutions_are_named_by_operation_and_filter() {
    assert_eq!(named([3, 5], 1).name(false), "conv2d 3x5");
    assert_eq!(named([1, 1], 1).name(false), "conv2d 1x1");
    assert_eq!(named([3, 3], 2).name(false), "grouped conv2d 3x3");
    assert_eq!(named([3, 3], 4).name(true), "depthwise conv2d 3x3");
    let connected = Shape { input: [8, 1], output: [8, 1], ..named([1, 1], 1) };
    assert_eq!(connected.name(false), "fully connected");
}
