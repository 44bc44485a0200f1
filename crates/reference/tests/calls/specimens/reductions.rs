//! Operations that sum up along axes.

use super::fit;
use crate::calls::dice::Dice;
use crate::calls::specimen::{Given, Quant, Specimen};
use nnhal_hal::OperationType;

fn int(length: u32) -> i32 {
    i32::try_from(length).unwrap()
}

fn any_axis(shape: &[u32], dice: &mut Dice) -> i32 {
    let rank = i32::try_from(shape.len()).unwrap();
    dice.int(-rank, rank - 1)
}

/// Some axes of a tensor.
fn some_axes(shape: &[u32], dice: &mut Dice) -> Vec<i32> {
    let rank = i32::try_from(shape.len()).unwrap();
    let axes = dice.permutation(shape.len());
    let count = dice.length(1, u32::try_from(shape.len()).unwrap()) as usize;
    axes[..count]
        .iter()
        .map(|axis| i32::try_from(*axis).unwrap() - if dice.coin() { rank } else { 0 })
        .collect()
}

pub fn arg_min_max(operation: OperationType, dice: &mut Dice) -> Specimen {
    let shape = dice.shape(4, 4);
    Specimen::new(operation)
        .tensor(&shape, dice.reals(&shape, -50.0, 50.0))
        .ints(&[any_axis(&shape, dice)])
        .output(Quant::Fit(1.0))
}

pub fn batch_matmul(dice: &mut Dice) -> Specimen {
    let mut batches = dice.shape(2, 2);
    batches.truncate(dice.length(0, 2) as usize);
    let [rows, inner, columns] = [(); 3].map(|()| dice.length(1, 4));
    let [transpose_x, transpose_y] = [(); 2].map(|()| dice.coin());
    let shape = |last: [u32; 2], is_transposed: bool| {
        let [a, b] = if is_transposed { [last[1], last[0]] } else { last };
        [batches.clone(), vec![a, b]].concat()
    };
    let (x, y) = (shape([rows, inner], transpose_x), shape([inner, columns], transpose_y));
    let flag = |is_set: bool, dice: &mut Dice| match is_set {
        // Left out, it is false.
        false if dice.coin() => Given::omitted(),
        _ => Given::tensor(&[], vec![f64::from(u8::from(is_set))]),
    };
    Specimen::new(OperationType::BatchMatmul)
        .tensor(&x, dice.reals(&x, -3.0, 3.0))
        .tensor(&y, dice.reals(&y, -3.0, 3.0))
        .input(flag(transpose_x, dice))
        .input(flag(transpose_y, dice))
        .output(Quant::FitAbove(dice.pick(&[1.0, 1.2, 0.5]), 0, 1))
}

pub fn fully_connected(dice: &mut Dice) -> Specimen {
    let (batch, inner, units) = (dice.length(1, 4), dice.length(1, 5), dice.length(1, 4));
    let input = if dice.coin() { vec![batch, inner] } else { vec![1, batch, inner] };
    Specimen::new(OperationType::FullyConnected)
        .tensor(&input, dice.reals(&input, -3.0, 3.0))
        .tensor(&[units, inner], dice.reals(&[units, inner], -2.0, 2.0))
        .tensor(&[units], dice.reals(&[units], -2.0, 2.0))
        .stored(Quant::Product(0, 1))
        .ints(&[dice.int(0, 3)])
        .output(Quant::FitAbove(dice.pick(&[1.0, 1.2, 0.5]), 0, 1))
}

pub fn instance_normalization(dice: &mut Dice) -> Specimen {
    let shape = [dice.length(1, 2), dice.length(2, 4), dice.length(2, 3), dice.length(1, 3)];
    let numbers = dice.reals(&shape, -3.0, 3.0);
    let scalars = [dice.real(0.5, 2.0), dice.real(-1.0, 1.0), 0.01];
    Specimen::new(OperationType::InstanceNormalization)
        .image(&shape, numbers)
        .scalars(&scalars)
        .flag()
        .image_output(fit(dice))
}

pub fn l2_normalization(dice: &mut Dice) -> Specimen {
    let shape = dice.shape(4, 4);
    let specimen = Specimen::new(OperationType::L2Normalization)
        .tensor(&shape, dice.reals(&shape, -3.0, 3.0))
        .output(Quant::Fixed(1.0 / 128.0, 128));
    if dice.coin() { specimen } else { specimen.ints(&[any_axis(&shape, dice)]) }
}

pub fn local_response_normalization(dice: &mut Dice) -> Specimen {
    let shape = dice.shape(4, 4);
    let specimen = Specimen::new(OperationType::LocalResponseNormalization)
        .tensor(&shape, dice.reals(&shape, -3.0, 3.0))
        .ints(&[dice.int(0, 3)])
        .scalars(&[dice.real(0.5, 2.0), dice.real(0.1, 1.0), dice.real(0.2, 1.0)])
        .output(fit(dice));
    if shape.len() == 4 && dice.coin() {
        return specimen;
    }
    specimen.ints(&[any_axis(&shape, dice)])
}

pub fn lsh_projection(dice: &mut Dice) -> Specimen {
    let (functions, bits) = (dice.length(1, 3), dice.length(1, 4));
    let items = dice.shape(2, 4);
    let weights = if dice.coin() {
        Given::omitted()
    } else {
        Given::tensor(&items[..1], dice.reals(&items[..1], 0.1, 2.0))
    };
    Specimen::new(OperationType::LshProjection)
        .tensor(&[functions, bits], dice.reals(&[functions, bits], -1.0, 1.0))
        .tensor(&items, dice.reals(&items, -9.0, 9.0))
        .input(weights)
        .ints(&[dice.int(1, 3)])
        .output(Quant::Fit(1.0))
}

pub fn mean(dice: &mut Dice) -> Specimen {
    let shape = dice.shape(4, 4);
    Specimen::new(OperationType::Mean)
        .tensor(&shape, dice.reals(&shape, -50.0, 50.0))
        .integers(&some_axes(&shape, dice))
        .ints(&[dice.int(0, 1)])
        .output(Quant::As(0))
}

pub fn reduce(operation: OperationType, dice: &mut Dice) -> Specimen {
    let shape = dice.shape(4, 4);
    Specimen::new(operation)
        .tensor(&shape, dice.reals(&shape, -1.5, 1.5))
        .integers(&some_axes(&shape, dice))
        .ints(&[dice.int(0, 1)])
        .output(Quant::As(0))
}

pub fn top_k(dice: &mut Dice) -> Specimen {
    let shape = dice.shape(4, 4);
    let k = dice.int(1, int(shape[shape.len() - 1]));
    Specimen::new(OperationType::TopkV2)
        .tensor(&shape, dice.reals(&shape, -50.0, 50.0))
        .ints(&[k])
        .output(Quant::As(0))
        .output(Quant::Fit(1.0))
}
