//! Kernels that move more than they compute, at the sizes of the models. The figure to compare with
//! is what memory of that size gives: the first caches of a current core move 100 GB/s and more, the
//! second ones half of that, main memory a tenth.

use divan::Bencher;
use divan::counter::BytesCount;
use nnhal_kernels::elementwise::quantized::{QuantizedSum, Sign, Table, TableMap};
use nnhal_kernels::elementwise::{
    Binary, Chain, Dequantize, Pairs, Quantize, Step, Unary, f16_to_f32,
};
use nnhal_kernels::movement::StridedCopy;
use nnhal_kernels::pooling::{FloatPooling, QuantizedPooling, Reduction, Shape};
use nnhal_kernels::quantization::Quantization;
use nnhal_kernels::reduction::{Normalization, Reduce, RowNormalization};
use nnhal_kernels::resize::{Element, Place, Resize};
use nnhal_kernels::softmax::{QuantizedSoftmax, Softmax};
use nnhal_kernels::{
    Image, ImageKernel, ImageMut, Images, InstructionSet, OneInput, Preparation, Team,
};

fn main() {
    divan::main();
}

fn sets() -> Vec<InstructionSet> {
    InstructionSet::available().collect()
}

fn floats(count: usize) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(1);
    (0..count).map(|_| random.f32() * 8.0 - 4.0).collect()
}

fn bytes(count: usize) -> Vec<i8> {
    let mut random = fastrand::Rng::with_seed(1);
    (0..count).map(|_| random.i8(..)).collect()
}

/// resnet50's first addition is `[56, 56, 256]`, mobilenet v2's last one `[7, 7, 160]`.
#[divan::bench(args = sets(), consts = [7840, 100_352, 802_816])]
fn quantized_add<const N: usize>(bencher: Bencher<'_, '_>, set: InstructionSet) {
    let of = |scale, zero_point| Quantization { scale, zero_point };
    let (a, b) = (bytes(N), bytes(N));
    let shapes: [&[usize]; 2] = [&[N], &[N]];
    let inputs = [of(0.031, 3), of(0.052, -7)];
    let sum = QuantizedSum::new(set, inputs, of(0.047, -20), Sign::Plus, (-128, 127));
    let sum = Pairs::prepare(set, shapes, sum);
    let (mut output, mut team) = (vec![0; N], Team::alone());
    bencher.counter(BytesCount::new(3 * N)).bench_local(|| sum.run(&mut team, &a, &b, &mut output));
}

#[divan::bench(args = sets())]
fn quantized_add_prepare(bencher: Bencher<'_, '_>, set: InstructionSet) {
    let of = |scale, zero_point| Quantization { scale, zero_point };
    let inputs = [of(0.031, 3), of(0.052, -7)];
    bencher.bench_local(|| {
        QuantizedSum::<i8>::new(set, inputs, of(0.047, -20), Sign::Plus, (-128, 127))
    });
}

#[divan::bench(args = sets(), consts = [100, 100_352])]
fn table<const N: usize>(bencher: Bencher<'_, '_>, set: InstructionSet) {
    let input: Vec<u8> = bytemuck::cast_slice(&bytes(N)).to_vec();
    let map = TableMap::prepare(set, Table::of_u8(|it| it ^ 77));
    let (mut output, mut team) = (vec![0; N], Team::alone());
    bencher.counter(BytesCount::new(2 * N)).bench_local(|| map.run(&mut team, &input, &mut output));
}

fn chain(bencher: Bencher<'_, '_>, set: InstructionSet, shapes: &[&[usize]], steps: &[Step]) {
    let operands: Vec<Vec<f32>> =
        shapes.iter().map(|shape| floats(shape.iter().product())).collect();
    let operands: Vec<&[f32]> = operands.iter().map(Vec::as_slice).collect();
    let chain = Chain::prepare(set, shapes, steps);
    let (mut output, mut team) = (vec![0.0; operands[0].len()], Team::alone());
    let moved = 4 * (output.len() + operands.iter().map(|it| it.len()).sum::<usize>());
    bencher
        .counter(BytesCount::new(moved))
        .bench_local(|| chain.run(&mut team, &operands, &mut output));
}

#[divan::bench(args = sets(), consts = [10, 4704, 100_352])]
fn add<const N: usize>(bencher: Bencher<'_, '_>, set: InstructionSet) {
    chain(bencher, set, &[&[N], &[N]], &[Step::Binary(Binary::Add, 1)]);
}

#[divan::bench(args = sets())]
fn squeeze_and_excite(bencher: Bencher<'_, '_>, set: InstructionSet) {
    chain(bencher, set, &[&[1, 28, 28, 120], &[1, 1, 1, 120]], &[Step::Binary(Binary::Mul, 1)]);
}

#[divan::bench(args = sets())]
fn hard_swish(bencher: Bencher<'_, '_>, set: InstructionSet) {
    chain(bencher, set, &[&[14 * 14 * 240]], &[Step::Unary(Unary::HardSwish)]);
}

#[divan::bench(args = sets(), consts = [12, 65_536])]
fn logistic<const N: usize>(bencher: Bencher<'_, '_>, set: InstructionSet) {
    chain(bencher, set, &[&[N]], &[Step::Unary(Unary::Logistic)]);
}

#[divan::bench(args = sets())]
fn gelu(bencher: Bencher<'_, '_>, set: InstructionSet) {
    chain(bencher, set, &[&[65_536]], &[Step::Unary(Unary::GeluTanh)]);
}

fn pool(bencher: Bencher<'_, '_>, set: InstructionSet, shape: Shape, reduction: Reduction) {
    let count = |pixels: [usize; 2]| pixels[0] * pixels[1] * shape.channels;
    let input = floats(count(shape.input));
    let (mut output, mut team) = (vec![0.0; count(shape.output)], Team::alone());
    let range = (f32::NEG_INFINITY, f32::INFINITY);
    let pooling = FloatPooling::prepare(set, shape, reduction, range);
    bencher.counter(BytesCount::new(4 * (input.len() + output.len()))).bench_local(|| {
        let output = ImageMut::contiguous(&mut output, shape.channels);
        let images = Images::new(Image::contiguous(&input, shape.channels), output);
        pooling.run(&mut team, images, &mut []);
    });
}

fn pool_bytes(bencher: Bencher<'_, '_>, set: InstructionSet, shape: Shape, reduction: Reduction) {
    let count = |pixels: [usize; 2]| pixels[0] * pixels[1] * shape.channels;
    let input = bytes(count(shape.input));
    let (mut output, mut team) = (vec![0; count(shape.output)], Team::alone());
    let pooling = QuantizedPooling::prepare(set, shape, reduction, (-128, 127));
    bencher.counter(BytesCount::new(input.len() + output.len())).bench_local(|| {
        let output = ImageMut::contiguous(&mut output, shape.channels);
        let images = Images::new(Image::contiguous(&input, shape.channels), output);
        pooling.run(&mut team, images, &mut []);
    });
}

/// inception v3's average pools, and squeezenet's first maximum.
const THREE: Shape = Shape {
    batch: 1,
    input: [17, 17],
    output: [17, 17],
    channels: 768,
    filter: [3, 3],
    stride: [1, 1],
    padding_before: [1, 1],
};
const HALVE: Shape = Shape {
    input: [113, 113],
    output: [56, 56],
    channels: 64,
    stride: [2, 2],
    padding_before: [0, 0],
    ..THREE
};

#[divan::bench(args = sets())]
fn global_average(bencher: Bencher<'_, '_>, set: InstructionSet) {
    pool(bencher, set, Shape::global(1, [7, 7], 1280), Reduction::Average);
}

#[divan::bench(args = sets())]
fn average_3x3(bencher: Bencher<'_, '_>, set: InstructionSet) {
    pool(bencher, set, THREE, Reduction::Average);
}

#[divan::bench(args = sets())]
fn max_3x3(bencher: Bencher<'_, '_>, set: InstructionSet) {
    pool(bencher, set, HALVE, Reduction::Max);
}

#[divan::bench(args = sets())]
fn quantized_global_average(bencher: Bencher<'_, '_>, set: InstructionSet) {
    pool_bytes(bencher, set, Shape::global(1, [7, 7], 1280), Reduction::Average);
}

#[divan::bench(args = sets())]
fn quantized_average_3x3(bencher: Bencher<'_, '_>, set: InstructionSet) {
    pool_bytes(bencher, set, THREE, Reduction::Average);
}

#[divan::bench(args = sets())]
fn quantized_max_3x3(bencher: Bencher<'_, '_>, set: InstructionSet) {
    pool_bytes(bencher, set, HALVE, Reduction::Max);
}

/// The attentions of swin, bert and vit, and inception's classes.
#[divan::bench(args = sets(), consts = [49, 128, 197, 1001])]
fn softmax<const N: usize>(bencher: Bencher<'_, '_>, set: InstructionSet) {
    let rows = 65_536 / N;
    let input = floats(rows * N);
    let (mut output, mut team) = (vec![0.0; input.len()], Team::alone());
    let softmax = Softmax::prepare(set, [rows, N, 1], 1.0, false);
    bencher
        .counter(BytesCount::new(8 * input.len()))
        .bench_local(|| softmax.run(&mut team, &input, &[], &mut output));
}

#[divan::bench(consts = [12, 1001])]
fn quantized_softmax<const N: usize>(bencher: Bencher<'_, '_>) {
    let input = bytes(N);
    let (mut output, mut team) = (vec![0; N], Team::alone());
    let softmax = QuantizedSoftmax::prepare(InstructionSet::best(), [1, N, 1], 0.1, 1.0);
    bencher
        .counter(BytesCount::new(2 * N))
        .bench_local(|| softmax.run(&mut team, &input, &mut output));
}

/// bert's rows.
#[divan::bench(args = sets())]
fn layer_normalization(bencher: Bencher<'_, '_>, set: InstructionSet) {
    let (input, scale) = (floats(128 * 512), floats(512));
    let (mut output, mut team) = (vec![0.0; input.len()], Team::alone());
    let layer = Normalization::Layer { epsilon: 1e-6 };
    let prepared = RowNormalization::prepare(set, layer, 128, 512);
    bencher.counter(BytesCount::new(8 * input.len())).bench_local(|| {
        prepared.run(&mut team, &input, Some(&scale), Some(&scale), &mut output);
    });
}

#[divan::bench(args = sets(), consts = [1, 2])]
fn mean<const AXIS: usize>(bencher: Bencher<'_, '_>, set: InstructionSet) {
    let input = floats(128 * 512);
    let lengths = [1, 128, 512];
    let (mut output, mut team) = (vec![0.0; lengths[3 - AXIS]], Team::alone());
    let reduce = Reduce::prepare(set, nnhal_kernels::reduction::Reduction::Mean, &lengths, &[AXIS]);
    bencher
        .counter(BytesCount::new(4 * input.len()))
        .bench_local(|| reduce.run(&mut team, &input, &mut output));
}

fn copy<T: bytemuck::NoUninit + Send + Sync>(
    bencher: Bencher<'_, '_>,
    input: &[T],
    copy: &StridedCopy,
    size: usize,
) {
    let (mut output, mut team) = (vec![input[0]; size], Team::alone());
    bencher
        .counter(BytesCount::new(2 * size_of_val(input)))
        .bench_local(|| copy.run(&mut team, input, &mut output));
}

#[divan::bench]
fn transpose_heads(bencher: Bencher<'_, '_>) {
    let prepared = StridedCopy::transpose(&[1, 128, 8, 64], &[0, 2, 1, 3]);
    copy(bencher, &floats(128 * 512), &prepared, 128 * 512);
}

#[divan::bench]
fn transpose_matrix(bencher: Bencher<'_, '_>) {
    let prepared = StridedCopy::transpose(&[128, 512], &[1, 0]);
    copy(bencher, &floats(128 * 512), &prepared, 128 * 512);
}

/// Rows that are far from each other share few sets of a cache.
#[divan::bench]
fn transpose_far_rows(bencher: Bencher<'_, '_>) {
    let prepared = StridedCopy::transpose(&[128, 16384], &[1, 0]);
    copy(bencher, &floats(128 * 16384), &prepared, 128 * 16384);
}

#[divan::bench]
fn transpose_far_columns(bencher: Bencher<'_, '_>) {
    let prepared = StridedCopy::transpose(&[16384, 128], &[1, 0]);
    copy(bencher, &floats(128 * 16384), &prepared, 128 * 16384);
}

#[divan::bench]
fn transpose_bytes(bencher: Bencher<'_, '_>) {
    let prepared = StridedCopy::transpose(&[1, 28, 28, 128], &[0, 3, 1, 2]);
    copy(bencher, &bytes(28 * 28 * 128), &prepared, 28 * 28 * 128);
}

/// A picture that comes by planes.
#[divan::bench]
fn transpose_planes(bencher: Bencher<'_, '_>) {
    let prepared = StridedCopy::transpose(&[1, 3, 224, 224], &[0, 2, 3, 1]);
    copy(bencher, &floats(3 * 224 * 224), &prepared, 3 * 224 * 224);
}

#[divan::bench]
fn transpose_planes_of_bytes(bencher: Bencher<'_, '_>) {
    let prepared = StridedCopy::transpose(&[1, 3, 224, 224], &[0, 2, 3, 1]);
    copy(bencher, &bytes(3 * 224 * 224), &prepared, 3 * 224 * 224);
}

/// An inception module's piece.
#[divan::bench]
fn concatenate_bytes(bencher: Bencher<'_, '_>) {
    let prepared = StridedCopy::piece(&[17, 17, 192], &[17, 17, 768], &[0, 0, 192]);
    copy(bencher, &bytes(17 * 17 * 192), &prepared, 17 * 17 * 768);
}

/// deeplab's last step.
fn deeplab<T: Element>(set: InstructionSet) -> Resize<T> {
    let place = |_axis: usize, index: usize| {
        let (lower, steps) = (index / 8, [0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875]);
        Place { lower, upper: (lower + 1).min(32), weight: steps[index % 8] }
    };
    let preparation = &mut Preparation::new(set, 1);
    Resize::prepare(preparation, 1, [[33; 2], [257; 2]], 21, place).expect("it is small")
}

#[divan::bench(args = sets())]
fn resize(bencher: Bencher<'_, '_>, set: InstructionSet) {
    let (resize, input) = (deeplab(set), floats(33 * 33 * 21));
    let (mut output, mut team) = (vec![0.0; 257 * 257 * 21], Team::alone());
    bencher.counter(BytesCount::new(4 * output.len())).bench_local(|| {
        resize.run(&mut team, &input, &mut output);
    });
}

#[divan::bench(args = sets())]
fn resize_bytes(bencher: Bencher<'_, '_>, set: InstructionSet) {
    let (resize, input) = (deeplab(set), bytes(33 * 33 * 21));
    let (mut output, mut team) = (vec![0; 257 * 257 * 21], Team::alone());
    bencher.counter(BytesCount::new(output.len())).bench_local(|| {
        resize.run(&mut team, &input, &mut output);
    });
}

/// A model's image.
#[divan::bench(args = sets())]
fn quantize_image(bencher: Bencher<'_, '_>, set: InstructionSet) {
    let input = floats(224 * 224 * 3);
    let (mut output, mut team) = (vec![0_i8; input.len()], Team::alone());
    let quantization = Quantization { scale: 0.007, zero_point: -1 };
    let kernel = Quantize::prepare(set, quantization);
    bencher
        .counter(BytesCount::new(5 * input.len()))
        .bench_local(|| kernel.run(&mut team, &input, &mut output));
}

#[divan::bench(args = sets())]
fn dequantize_image(bencher: Bencher<'_, '_>, set: InstructionSet) {
    let input = bytes(224 * 224 * 3);
    let (mut output, mut team) = (vec![0.0; input.len()], Team::alone());
    let quantization = Quantization { scale: 0.007, zero_point: -1 };
    let kernel = Dequantize::prepare(set, quantization);
    bencher
        .counter(BytesCount::new(5 * input.len()))
        .bench_local(|| kernel.run(&mut team, &input, &mut output));
}

#[divan::bench(args = sets())]
fn widen_halves(bencher: Bencher<'_, '_>, set: InstructionSet) {
    let input = vec![0x3C00; 100_352];
    let (mut output, mut team) = (vec![0.0; input.len()], Team::alone());
    bencher
        .counter(BytesCount::new(6 * input.len()))
        .bench_local(|| f16_to_f32(set, &mut team, &input, &mut output));
}
