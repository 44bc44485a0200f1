//! Operations that sum up along axes.

use super::fit;
use crate::calls::random::Random;
use crate::calls::sample::{Given, Quant, Sample};
use nnhal_hal::OperationType;

fn int(length: u32) -> i32 {
    i32::try_from(length).unwrap()
}

fn any_axis(shape: &[u32], random: &mut Random) -> i32 {
    let rank = i32::try_from(shape.len()).unwrap();
    random.int(-rank, rank - 1)
}

/// Some axes of a tensor.
fn some_axes(shape: &[u32], random: &mut Random) -> Vec<i32> {
    let rank = i32::try_from(shape.len()).unwrap();
    let axes = random.permutation(shape.len());
    let count = random.length(1, u32::try_from(shape.len()).unwrap()) as usize;
    axes[..count]
        .iter()
        .map(|axis| i32::try_from(*axis).unwrap() - if random.coin() { rank } else { 0 })
        .collect()
}

pub fn arg_min_max(operation: OperationType, random: &mut Random) -> Sample {
    let shape = random.shape(4, 4);
    Sample::new(operation)
        .tensor(&shape, random.reals(&shape, -50.0, 50.0))
        .ints(&[any_axis(&shape, random)])
        .output(Quant::Fit(1.0))
}

pub fn batch_matmul(random: &mut Random) -> Sample {
    let mut batches = random.shape(2, 2);
    batches.truncate(random.length(0, 2) as usize);
    let [rows, inner, columns] = [(); 3].map(|()| random.length(1, 4));
    let [transpose_x, transpose_y] = [(); 2].map(|()| random.coin());
    let shape = |last: [u32; 2], is_transposed: bool| {
        let [a, b] = if is_transposed { [last[1], last[0]] } else { last };
        [batches.clone(), vec![a, b]].concat()
    };
    let (x, y) = (shape([rows, inner], transpose_x), shape([inner, columns], transpose_y));
    let flag = |is_set: bool, random: &mut Random| match is_set {
        // Left out, it is false.
        false if random.coin() => Given::omitted(),
        _ => Given::tensor(&[], vec![f64::from(u8::from(is_set))]),
    };
    Sample::new(OperationType::BatchMatmul)
        .tensor(&x, random.reals(&x, -3.0, 3.0))
        .tensor(&y, random.reals(&y, -3.0, 3.0))
        .input(flag(transpose_x, random))
        .input(flag(transpose_y, random))
        .output(Quant::FitAbove(random.pick(&[1.0, 1.2, 0.5]), 0, 1))
}

pub fn fully_connected(random: &mut Random) -> Sample {
    let (batch, inner, units) = (random.length(1, 4), random.length(1, 5), random.length(1, 4));
    let input = if random.coin() { vec![batch, inner] } else { vec![1, batch, inner] };
    Sample::new(OperationType::FullyConnected)
        .tensor(&input, random.reals(&input, -3.0, 3.0))
        .tensor(&[units, inner], random.reals(&[units, inner], -2.0, 2.0))
        .tensor(&[units], random.reals(&[units], -2.0, 2.0))
        .stored(Quant::Product(0, 1))
        .ints(&[random.int(0, 3)])
        .output(Quant::FitAbove(random.pick(&[1.0, 1.2, 0.5]), 0, 1))
}

pub fn instance_normalization(random: &mut Random) -> Sample {
    let shape =
        [random.length(1, 2), random.length(2, 4), random.length(2, 3), random.length(1, 3)];
    let numbers = random.reals(&shape, -3.0, 3.0);
    let scalars = [random.real(0.5, 2.0), random.real(-1.0, 1.0), 0.01];
    Sample::new(OperationType::InstanceNormalization)
        .image(&shape, numbers)
        .scalars(&scalars)
        .flag()
        .image_output(fit(random))
}

pub fn l2_normalization(random: &mut Random) -> Sample {
    let shape = random.shape(4, 4);
    let sample = Sample::new(OperationType::L2Normalization)
        .tensor(&shape, random.reals(&shape, -3.0, 3.0))
        .output(Quant::Fixed(1.0 / 128.0, 128));
    if random.coin() { sample } else { sample.ints(&[any_axis(&shape, random)]) }
}

pub fn local_response_normalization(random: &mut Random) -> Sample {
    let shape = random.shape(4, 4);
    let sample = Sample::new(OperationType::LocalResponseNormalization)
        .tensor(&shape, random.reals(&shape, -3.0, 3.0))
        .ints(&[random.int(0, 3)])
        .scalars(&[random.real(0.5, 2.0), random.real(0.1, 1.0), random.real(0.2, 1.0)])
        .output(fit(random));
    if shape.len() == 4 && random.coin() {
        return sample;
    }
    sample.ints(&[any_axis(&shape, random)])
}

pub fn lsh_projection(random: &mut Random) -> Sample {
    let (functions, bits) = (random.length(1, 3), random.length(1, 4));
    let items = random.shape(2, 4);
    let weights = if random.coin() {
        Given::omitted()
    } else {
        Given::tensor(&items[..1], random.reals(&items[..1], 0.1, 2.0))
    };
    Sample::new(OperationType::LshProjection)
        .tensor(&[functions, bits], random.reals(&[functions, bits], -1.0, 1.0))
        .tensor(&items, random.reals(&items, -9.0, 9.0))
        .input(weights)
        .ints(&[random.int(1, 3)])
        .output(Quant::Fit(1.0))
}

pub fn mean(random: &mut Random) -> Sample {
    let shape = random.shape(4, 4);
    Sample::new(OperationType::Mean)
        .tensor(&shape, random.reals(&shape, -50.0, 50.0))
        .integers(&some_axes(&shape, random))
        .ints(&[random.int(0, 1)])
        .output(Quant::As(0))
}

pub fn reduce(operation: OperationType, random: &mut Random) -> Sample {
    let shape = random.shape(4, 4);
    Sample::new(operation)
        .tensor(&shape, random.reals(&shape, -1.5, 1.5))
        .integers(&some_axes(&shape, random))
        .ints(&[random.int(0, 1)])
        .output(Quant::As(0))
}

pub fn top_k(random: &mut Random) -> Sample {
    let shape = random.shape(4, 4);
    let k = random.int(1, int(shape[shape.len() - 1]));
    Sample::new(OperationType::TopkV2)
        .tensor(&shape, random.reals(&shape, -50.0, 50.0))
        .ints(&[k])
        .output(Quant::As(0))
        .output(Quant::Fit(1.0))
}
