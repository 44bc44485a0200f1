//! Operations on elements of the same place.

use super::fit;
use crate::calls::dice::Dice;
use crate::calls::specimen::{Given, Quant, Specimen};
use nnhal_hal::OperationType;

/// Two shapes that broadcast to the first.
fn broadcasting(dice: &mut Dice) -> [Vec<u32>; 2] {
    let whole = dice.shape(4, 4);
    let skipped = dice.length(0, u32::try_from(whole.len() - 1).unwrap()) as usize;
    let mut part = whole[skipped..].to_vec();
    for length in &mut part {
        if dice.one_in(3) {
            *length = 1;
        }
    }
    if dice.coin() { [whole, part] } else { [part, whole] }
}

pub fn arithmetic(operation: OperationType, dice: &mut Dice) -> Specimen {
    let [x, y] = broadcasting(dice);
    let numbers = dice.reals(&x, -6.0, 6.0);
    let mut others = dice.reals(&y, -6.0, 6.0);
    if operation == OperationType::Div {
        // Away from 0, also as integers.
        others.iter_mut().for_each(|it| *it += it.signum() * 1.0);
    }
    Specimen::new(operation)
        .tensor(&x, numbers)
        .tensor(&y, others)
        .ints(&[dice.int(0, 3)])
        .stored(Quant::ZeroWithInt32(0))
        .output(Quant::FitAbove(dice.pick(&[1.0, 1.2, 0.5]), 0, 1))
}

pub fn maximum_minimum(operation: OperationType, dice: &mut Dice) -> Specimen {
    let [x, y] = broadcasting(dice);
    let (numbers, others) = (dice.reals(&x, -6.0, 6.0), dice.reals(&y, -3.0, 6.0));
    Specimen::new(operation).tensor(&x, numbers).tensor(&y, others).output(fit(dice))
}

pub fn comparison(operation: OperationType, dice: &mut Dice) -> Specimen {
    let [x, y] = broadcasting(dice);
    // Whole numbers, of which many are equal.
    let mut whole = |shape: &[u32]| -> Vec<f64> {
        dice.reals(shape, -2.0, 2.0).into_iter().map(f64::round).collect()
    };
    let (numbers, others) = (whole(&x), whole(&y));
    // The same steps, so that what is equal is stored so.
    Specimen::new(operation)
        .tensor(&x, numbers)
        .stored(Quant::Fixed(1.0 / 32.0, 128))
        .tensor(&y, others)
        .stored(dice.pick(&[Quant::Fixed(1.0 / 32.0, 128), Quant::Fixed(1.0 / 64.0, 128)]))
        .output(Quant::Fit(1.0))
}

pub fn logical(operation: OperationType, dice: &mut Dice) -> Specimen {
    let [x, y] = broadcasting(dice);
    let (numbers, others) = (dice.reals(&x, 0.0, 1.0), dice.reals(&y, 0.0, 1.0));
    Specimen::new(operation).tensor(&x, numbers).tensor(&y, others).output(Quant::Fit(1.0))
}

pub fn unary(operation: OperationType, dice: &mut Dice) -> Specimen {
    use OperationType as Op;
    let shape = dice.shape(4, 4);
    let (least, most) = match operation {
        Op::Log | Op::Sqrt | Op::Rsqrt => (0.1, 9.0),
        // Numbers that every type has.
        Op::Cast => (0.0, 100.0),
        Op::Relu1 => (-1.5, 1.5),
        _ => (-8.0, 8.0),
    };
    let mut numbers = dice.reals(&shape, least, most);
    if operation == Op::Cast {
        numbers.iter_mut().for_each(|it| *it = it.round());
    }
    let output = match operation {
        Op::Logistic => Quant::Fixed(1.0 / 256.0, 0),
        Op::Tanh => Quant::Fixed(1.0 / 128.0, 128),
        Op::HardSwish | Op::Rsqrt | Op::Quantize => fit(dice),
        _ => Quant::As(0),
    };
    let specimen = Specimen::new(operation).tensor(&shape, numbers);
    // A cast copies what is stored.
    let quant = if operation == Op::Cast { Quant::Scale(1.0) } else { Quant::Fit(1.0) };
    let mut specimen = specimen.stored(quant).output(output);
    if operation == Op::Quantize {
        specimen.outputs[0].quant = Quant::Scale(0.0625);
    }
    if matches!(operation, Op::Cast) {
        specimen.outputs[0].quant = Quant::Scale(1.0);
    }
    specimen
}

pub fn elu(dice: &mut Dice) -> Specimen {
    let shape = dice.shape(4, 4);
    Specimen::new(OperationType::Elu)
        .tensor(&shape, dice.reals(&shape, -4.0, 4.0))
        .scalars(&[dice.real(0.1, 2.0)])
        .output(fit(dice))
}

pub fn pow(dice: &mut Dice) -> Specimen {
    let [x, y] = broadcasting(dice);
    let (numbers, others) = (dice.reals(&x, 0.2, 3.0), dice.reals(&y, -2.0, 2.0));
    Specimen::new(OperationType::Pow).tensor(&x, numbers).tensor(&y, others).output(fit(dice))
}

pub fn prelu(dice: &mut Dice) -> Specimen {
    let [x, y] = broadcasting(dice);
    let (numbers, others) = (dice.reals(&x, -6.0, 6.0), dice.reals(&y, -2.0, 2.0));
    let output = Quant::FitAbove(dice.pick(&[1.0, 1.2, 0.5]), 0, 1);
    Specimen::new(OperationType::Prelu).tensor(&x, numbers).tensor(&y, others).output(output)
}

pub fn select(dice: &mut Dice) -> Specimen {
    let shape = dice.shape(4, 4);
    Specimen::new(OperationType::Select)
        .tensor(&shape, dice.reals(&shape, 0.0, 1.0))
        .tensor(&shape, dice.reals(&shape, -6.0, 6.0))
        .tensor(&shape, dice.reals(&shape, -2.0, 8.0))
        .output(fit(dice))
}

pub fn softmax(operation: OperationType, dice: &mut Dice) -> Specimen {
    let shape = dice.shape(4, 4);
    let rank = i32::try_from(shape.len()).unwrap();
    let specimen = Specimen::new(operation)
        .tensor(&shape, dice.reals(&shape, -5.0, 5.0))
        .scalars(&[dice.real(0.2, 2.0)])
        .output(Quant::Fixed(1.0 / 256.0, 0));
    if operation == OperationType::LogSoftmax || dice.coin() {
        return specimen.ints(&[dice.int(-rank, rank - 1)]);
    }
    specimen
}

pub fn random_multinomial(dice: &mut Dice) -> Specimen {
    let shape = [dice.length(1, 3), dice.length(1, 4)];
    Specimen::new(OperationType::RandomMultinomial)
        .tensor(&shape, dice.reals(&shape, -2.0, 2.0))
        .ints(&[dice.int(1, 8)])
        .input(Given::tensor(&[2], vec![f64::from(dice.int(0, 99)), 7.0]))
        .output(Quant::Fit(1.0))
}
