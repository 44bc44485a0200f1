//! Operations on elements of the same place.

use super::fit;
use crate::calls::random::Random;
use crate::calls::sample::{Given, Quant, Sample};
use nnhal_hal::OperationType;

/// Two shapes that broadcast to the first.
fn broadcasting(random: &mut Random) -> [Vec<u32>; 2] {
    let whole = random.shape(4, 4);
    let skipped = random.length(0, u32::try_from(whole.len() - 1).unwrap()) as usize;
    let mut part = whole[skipped..].to_vec();
    for length in &mut part {
        if random.one_in(3) {
            *length = 1;
        }
    }
    if random.coin() { [whole, part] } else { [part, whole] }
}

pub fn arithmetic(operation: OperationType, random: &mut Random) -> Sample {
    let [x, y] = broadcasting(random);
    let numbers = random.reals(&x, -6.0, 6.0);
    let mut others = random.reals(&y, -6.0, 6.0);
    if operation == OperationType::Div {
        // Away from 0, also as integers.
        others.iter_mut().for_each(|it| *it += it.signum() * 1.0);
    }
    Sample::new(operation)
        .tensor(&x, numbers)
        .tensor(&y, others)
        .ints(&[random.int(0, 3)])
        .stored(Quant::ZeroWithInt32(0))
        .output(Quant::FitAbove(random.pick(&[1.0, 1.2, 0.5]), 0, 1))
}

pub fn maximum_minimum(operation: OperationType, random: &mut Random) -> Sample {
    let [x, y] = broadcasting(random);
    let (numbers, others) = (random.reals(&x, -6.0, 6.0), random.reals(&y, -3.0, 6.0));
    Sample::new(operation).tensor(&x, numbers).tensor(&y, others).output(fit(random))
}

pub fn comparison(operation: OperationType, random: &mut Random) -> Sample {
    let [x, y] = broadcasting(random);
    // Whole numbers, of which many are equal.
    let mut whole = |shape: &[u32]| -> Vec<f64> {
        random.reals(shape, -2.0, 2.0).into_iter().map(f64::round).collect()
    };
    let (numbers, others) = (whole(&x), whole(&y));
    // The same steps, so that what is equal is stored so.
    Sample::new(operation)
        .tensor(&x, numbers)
        .stored(Quant::Fixed(1.0 / 32.0, 128))
        .tensor(&y, others)
        .stored(random.pick(&[Quant::Fixed(1.0 / 32.0, 128), Quant::Fixed(1.0 / 64.0, 128)]))
        .output(Quant::Fit(1.0))
}

pub fn logical(operation: OperationType, random: &mut Random) -> Sample {
    let [x, y] = broadcasting(random);
    let (numbers, others) = (random.reals(&x, 0.0, 1.0), random.reals(&y, 0.0, 1.0));
    Sample::new(operation).tensor(&x, numbers).tensor(&y, others).output(Quant::Fit(1.0))
}

pub fn unary(operation: OperationType, random: &mut Random) -> Sample {
    use OperationType as Op;
    let shape = random.shape(4, 4);
    let (least, most) = match operation {
        Op::Log | Op::Sqrt | Op::Rsqrt => (0.1, 9.0),
        // Numbers that every type has.
        Op::Cast => (0.0, 100.0),
        Op::Relu1 => (-1.5, 1.5),
        _ => (-8.0, 8.0),
    };
    let mut numbers = random.reals(&shape, least, most);
    if operation == Op::Cast {
        numbers.iter_mut().for_each(|it| *it = it.round());
    }
    let output = match operation {
        Op::Logistic => Quant::Fixed(1.0 / 256.0, 0),
        Op::Tanh => Quant::Fixed(1.0 / 128.0, 128),
        Op::HardSwish | Op::Rsqrt | Op::Quantize => fit(random),
        _ => Quant::As(0),
    };
    let sample = Sample::new(operation).tensor(&shape, numbers);
    // A cast copies what is stored.
    let quant = if operation == Op::Cast { Quant::Scale(1.0) } else { Quant::Fit(1.0) };
    let mut sample = sample.stored(quant).output(output);
    if operation == Op::Quantize {
        sample.outputs[0].quant = Quant::Scale(0.0625);
    }
    if matches!(operation, Op::Cast) {
        sample.outputs[0].quant = Quant::Scale(1.0);
    }
    sample
}

pub fn elu(random: &mut Random) -> Sample {
    let shape = random.shape(4, 4);
    Sample::new(OperationType::Elu)
        .tensor(&shape, random.reals(&shape, -4.0, 4.0))
        .scalars(&[random.real(0.1, 2.0)])
        .output(fit(random))
}

pub fn pow(random: &mut Random) -> Sample {
    let [x, y] = broadcasting(random);
    let (numbers, others) = (random.reals(&x, 0.2, 3.0), random.reals(&y, -2.0, 2.0));
    Sample::new(OperationType::Pow).tensor(&x, numbers).tensor(&y, others).output(fit(random))
}

pub fn prelu(random: &mut Random) -> Sample {
    let [x, y] = broadcasting(random);
    let (numbers, others) = (random.reals(&x, -6.0, 6.0), random.reals(&y, -2.0, 2.0));
    let output = Quant::FitAbove(random.pick(&[1.0, 1.2, 0.5]), 0, 1);
    Sample::new(OperationType::Prelu).tensor(&x, numbers).tensor(&y, others).output(output)
}

pub fn select(random: &mut Random) -> Sample {
    let shape = random.shape(4, 4);
    Sample::new(OperationType::Select)
        .tensor(&shape, random.reals(&shape, 0.0, 1.0))
        .tensor(&shape, random.reals(&shape, -6.0, 6.0))
        .tensor(&shape, random.reals(&shape, -2.0, 8.0))
        .output(fit(random))
}

pub fn softmax(operation: OperationType, random: &mut Random) -> Sample {
    let shape = random.shape(4, 4);
    let rank = i32::try_from(shape.len()).unwrap();
    let sample = Sample::new(operation)
        .tensor(&shape, random.reals(&shape, -5.0, 5.0))
        .scalars(&[random.real(0.2, 2.0)])
        .output(Quant::Fixed(1.0 / 256.0, 0));
    if operation == OperationType::LogSoftmax || random.coin() {
        return sample.ints(&[random.int(-rank, rank - 1)]);
    }
    sample
}

pub fn random_multinomial(random: &mut Random) -> Sample {
    let shape = [random.length(1, 3), random.length(1, 4)];
    Sample::new(OperationType::RandomMultinomial)
        .tensor(&shape, random.reals(&shape, -2.0, 2.0))
        .ints(&[random.int(1, 8)])
        .input(Given::tensor(&[2], vec![f64::from(random.int(0, 99)), 7.0]))
        .output(Quant::Fit(1.0))
}
