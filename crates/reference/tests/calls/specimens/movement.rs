//! Operations that move elements.

use crate::calls::dice::Dice;
use crate::calls::specimen::{Given, Quant, Specimen};
use nnhal_hal::OperationType;

const AS_INPUT: Quant = Quant::As(0);

/// A call with a tensor of any shape, and its shape.
fn on_tensor(operation: OperationType, dice: &mut Dice) -> (Specimen, Vec<u32>) {
    let shape = dice.shape(4, 4);
    let numbers = dice.reals(&shape, -50.0, 50.0);
    (Specimen::new(operation).tensor(&shape, numbers), shape)
}

fn on_image(operation: OperationType, shape: &[u32], dice: &mut Dice) -> Specimen {
    let numbers = dice.reals(shape, -50.0, 50.0);
    Specimen::new(operation).image(shape, numbers)
}

fn rank_of(shape: &[u32]) -> u32 {
    u32::try_from(shape.len()).unwrap()
}

fn int(length: u32) -> i32 {
    i32::try_from(length).unwrap()
}

/// An axis, from the front or the end.
fn axis(shape: &[u32], dice: &mut Dice) -> (usize, i32) {
    let rank = int(rank_of(shape));
    let axis = dice.int(0, rank - 1);
    (usize::try_from(axis).unwrap(), if dice.coin() { axis } else { axis - rank })
}

/// An axis from the front.
fn plain_axis(shape: &[u32], dice: &mut Dice) -> usize {
    axis(shape, dice).0
}

fn pairs(shape: &[u32], dice: &mut Dice, mut most: impl FnMut(u32) -> i32) -> Given {
    let numbers: Vec<f64> = shape
        .iter()
        .flat_map(|length| [*length; 2])
        .map(|length| f64::from(dice.int(0, most(length))))
        .collect();
    Given::tensor(&[rank_of(shape), 2], numbers)
}

pub fn batch_to_space(dice: &mut Dice) -> Specimen {
    let block = [dice.length(1, 3), dice.length(1, 2)];
    let batch = block[0] * block[1] * dice.length(1, 2);
    let shape = [batch, dice.length(1, 3), dice.length(1, 3), dice.length(1, 3)];
    on_image(OperationType::BatchToSpaceNd, &shape, dice)
        .integers(&block.map(int))
        .flag()
        .image_output(AS_INPUT)
}

pub fn space_to_batch(dice: &mut Dice) -> Specimen {
    let block = [dice.length(1, 3), dice.length(1, 2)];
    let before = [dice.length(0, 2), dice.length(0, 2)];
    let lengths = [dice.length(1, 4), dice.length(1, 4)];
    let behind = [0, 1].map(|at| {
        (lengths[at] + before[at]).next_multiple_of(block[at]) - lengths[at] - before[at]
    });
    let paddings = [before[0], behind[0], before[1], behind[1]].map(f64::from);
    on_image(
        OperationType::SpaceToBatchNd,
        &[dice.length(1, 2), lengths[0], lengths[1], dice.length(1, 3)],
        dice,
    )
    .integers(&block.map(int))
    .tensor(&[2, 2], paddings.to_vec())
    .flag()
    .image_output(AS_INPUT)
}

pub fn depth_to_space(dice: &mut Dice) -> Specimen {
    let block = dice.length(1, 3);
    let channels = block * block * dice.length(1, 2);
    let shape = [dice.length(1, 2), dice.length(1, 3), dice.length(1, 3), channels];
    on_image(OperationType::DepthToSpace, &shape, dice)
        .ints(&[int(block)])
        .flag()
        .image_output(AS_INPUT)
}

pub fn space_to_depth(dice: &mut Dice) -> Specimen {
    let block = dice.length(1, 3);
    let (height, width) = (block * dice.length(1, 3), block * dice.length(1, 2));
    let shape = [dice.length(1, 2), height, width, dice.length(1, 3)];
    on_image(OperationType::SpaceToDepth, &shape, dice)
        .ints(&[int(block)])
        .flag()
        .image_output(AS_INPUT)
}

pub fn channel_shuffle(dice: &mut Dice) -> Specimen {
    let groups = dice.length(1, 3);
    let mut shape = dice.shape(4, 3);
    let (at, axis) = axis(&shape, dice);
    shape[at] = groups * dice.length(1, 3);
    let numbers = dice.reals(&shape, -50.0, 50.0);
    Specimen::new(OperationType::ChannelShuffle)
        .tensor(&shape, numbers)
        .ints(&[int(groups), axis])
        .output(AS_INPUT)
}

pub fn concatenation(dice: &mut Dice) -> Specimen {
    let mut shape = dice.shape(4, 4);
    let axis = plain_axis(&shape, dice);
    let mut specimen = Specimen::new(OperationType::Concatenation);
    for _ in 0..dice.length(1, 4) {
        shape[axis] = dice.length(1, 3);
        let numbers = dice.reals(&shape, -4.0, 6.0);
        specimen = specimen.tensor(&shape, numbers);
    }
    specimen.ints(&[i32::try_from(axis).unwrap()]).output(super::fit(dice))
}

pub fn embedding_lookup(dice: &mut Dice) -> Specimen {
    // Two axes at least.
    let mut shape = dice.shape(3, 4);
    shape.push(dice.length(1, 3));
    let lookups: Vec<i32> =
        (0..dice.length(1, 5)).map(|_| dice.int(0, int(shape[0]) - 1)).collect();
    let numbers = dice.reals(&shape, -50.0, 50.0);
    Specimen::new(OperationType::EmbeddingLookup)
        .integers(&lookups)
        .tensor(&shape, numbers)
        .output(Quant::As(1))
}

pub fn hashtable_lookup(dice: &mut Dice) -> Specimen {
    let shape = dice.shape(4, 4);
    let keys: Vec<i32> = (0..int(shape[0])).map(|at| 3 * at - 2).collect();
    let lookups: Vec<i32> = (0..dice.length(1, 5)).map(|_| dice.int(-2, 6)).collect();
    let numbers = dice.reals(&shape, 0.0, 100.0);
    // A row that is not there is stored zeros: 0 is so where it is the zero point.
    Specimen::new(OperationType::HashtableLookup)
        .integers(&lookups)
        .integers(&keys)
        .tensor(&shape, numbers)
        .stored(Quant::Fixed(0.5, 0))
        .output(Quant::As(2))
        .output(Quant::Scale(1.0))
}

pub fn expand_dims(dice: &mut Dice) -> Specimen {
    let (specimen, shape) = on_tensor(OperationType::ExpandDims, dice);
    let rank = int(rank_of(&shape));
    specimen.ints(&[dice.int(-rank - 1, rank)]).output(AS_INPUT)
}

pub fn fill(dice: &mut Dice) -> Specimen {
    let shape: Vec<i32> = dice.shape(4, 4).into_iter().map(int).collect();
    let value = dice.real(-9.0, 9.0);
    Specimen::new(OperationType::Fill).integers(&shape).scalars(&[value]).output(Quant::Fit(1.0))
}

pub fn gather(dice: &mut Dice) -> Specimen {
    let (specimen, shape) = on_tensor(OperationType::Gather, dice);
    let (at, axis) = axis(&shape, dice);
    let indexes = dice.shape(2, 3);
    let numbers =
        (0..indexes.iter().product()).map(|_| f64::from(dice.int(0, int(shape[at]) - 1))).collect();
    specimen.ints(&[axis]).tensor(&indexes, numbers).output(AS_INPUT)
}

pub fn mirror_pad(dice: &mut Dice) -> Specimen {
    let (specimen, shape) = on_tensor(OperationType::MirrorPad, dice);
    let mode = dice.int(0, 1);
    let paddings = pairs(&shape, dice, |length| int(length) - 1 + mode);
    specimen.input(paddings).ints(&[mode]).output(AS_INPUT)
}

pub fn pack(dice: &mut Dice) -> Specimen {
    let shape = dice.shape(3, 4);
    let mut specimen =
        Specimen::new(OperationType::Pack).ints(&[dice.int(0, int(rank_of(&shape)))]);
    for index in 0..dice.length(1, 3) {
        let numbers = dice.reals(&shape, -50.0, 50.0);
        specimen = specimen.tensor(&shape, numbers);
        if index > 0 {
            specimen = specimen.stored(Quant::As(1));
        }
    }
    specimen.output(Quant::As(1))
}

pub fn pad(operation: OperationType, dice: &mut Dice) -> Specimen {
    let (specimen, shape) = on_tensor(operation, dice);
    let specimen = specimen.input(pairs(&shape, dice, |_| 2)).output(AS_INPUT);
    if operation == OperationType::PadV2 {
        return specimen.scalars(&[dice.real(-30.0, 30.0)]).stored(Quant::StoredAs(0));
    }
    specimen
}

pub fn rank(dice: &mut Dice) -> Specimen {
    on_tensor(OperationType::Rank, dice).0.output(Quant::Fit(1.0))
}

pub fn reshape(dice: &mut Dice) -> Specimen {
    let (specimen, shape) = on_tensor(OperationType::Reshape, dice);
    let mut lengths: Vec<i32> =
        dice.permutation(shape.len()).into_iter().map(|axis| int(shape[axis])).collect();
    if lengths.len() < 4 && dice.coin() {
        lengths.insert(0, 1);
    }
    if dice.coin() {
        let at = dice.length(0, u32::try_from(lengths.len() - 1).unwrap());
        lengths[at as usize] = -1;
    }
    specimen.integers(&lengths).output(AS_INPUT)
}

pub fn reverse(dice: &mut Dice) -> Specimen {
    let (specimen, shape) = on_tensor(OperationType::Reverse, dice);
    let axis = plain_axis(&shape, dice);
    specimen.integers(&[i32::try_from(axis).unwrap()]).output(AS_INPUT)
}

pub fn slice(dice: &mut Dice) -> Specimen {
    let (specimen, shape) = on_tensor(OperationType::Slice, dice);
    let begins: Vec<i32> = shape.iter().map(|length| dice.int(0, int(*length) - 1)).collect();
    let sizes: Vec<i32> = shape
        .iter()
        .zip(&begins)
        .map(|(length, begin)| {
            let most = int(*length) - begin;
            if dice.one_in(4) { -1 } else { dice.int(1, most) }
        })
        .collect();
    specimen.integers(&begins).integers(&sizes).output(AS_INPUT)
}

pub fn split(dice: &mut Dice) -> Specimen {
    let mut shape = dice.shape(4, 4);
    let (at, axis) = axis(&shape, dice);
    let parts = dice.length(1, 3);
    shape[at] = parts * dice.length(1, 3);
    let numbers = dice.reals(&shape, -50.0, 50.0);
    let specimen =
        Specimen::new(OperationType::Split).tensor(&shape, numbers).ints(&[axis, int(parts)]);
    (0..parts).fold(specimen, |specimen, _| specimen.output(AS_INPUT))
}

pub fn squeeze(dice: &mut Dice) -> Specimen {
    let mut shape = dice.shape(4, 3);
    // Something is left.
    shape[0] = shape[0].max(2);
    let numbers = dice.reals(&shape, -50.0, 50.0);
    let axes: Vec<i32> = (0..int(rank_of(&shape)))
        .filter(|axis| shape[usize::try_from(*axis).unwrap()] == 1 && dice.coin())
        .collect();
    let specimen = Specimen::new(OperationType::Squeeze).tensor(&shape, numbers).output(AS_INPUT);
    if axes.is_empty() {
        return specimen.input(Given::omitted());
    }
    specimen.integers(&axes)
}

pub fn strided_slice(dice: &mut Dice) -> Specimen {
    let (specimen, shape) = on_tensor(OperationType::StridedSlice, dice);
    let mut shrink = 0;
    let (mut begins, mut ends, mut strides) = (Vec::new(), Vec::new(), Vec::new());
    for (axis, length) in shape.iter().enumerate() {
        let (first, last) = {
            let (x, y) = (dice.int(0, int(*length) - 1), dice.int(0, int(*length) - 1));
            (x.min(y), x.max(y))
        };
        let stride = dice.int(1, 2);
        // One axis is left at least.
        if axis + 1 < shape.len() && dice.one_in(4) {
            shrink |= 1 << axis;
            begins.push(first);
            ends.push(first + 1);
            strides.push(1);
        } else if dice.one_in(3) {
            // Backwards; the end before the first is -length - 1.
            begins.push(last);
            ends.push(if first == 0 { -int(*length) - 1 } else { first - 1 });
            strides.push(-stride);
        } else {
            begins.push(if dice.coin() { first } else { first - int(*length) });
            ends.push(last + 1);
            strides.push(stride);
        }
    }
    // A mask takes from the first on, or backwards from the last on.
    let all = (1 << shape.len()) - 1;
    let masks = [dice.int(0, all) & !shrink, dice.int(0, all) & !shrink, shrink];
    specimen.integers(&begins).integers(&ends).integers(&strides).ints(&masks).output(AS_INPUT)
}

pub fn tile(dice: &mut Dice) -> Specimen {
    let (specimen, shape) = on_tensor(OperationType::Tile, dice);
    let multiples: Vec<i32> = shape.iter().map(|_| dice.int(1, 3)).collect();
    specimen.integers(&multiples).output(AS_INPUT)
}

pub fn transpose(dice: &mut Dice) -> Specimen {
    let (specimen, shape) = on_tensor(OperationType::Transpose, dice);
    if dice.one_in(4) {
        return specimen.input(Given::omitted()).output(AS_INPUT);
    }
    let axes: Vec<i32> = dice
        .permutation(shape.len())
        .into_iter()
        .map(|axis| i32::try_from(axis).unwrap())
        .collect();
    specimen.integers(&axes).output(AS_INPUT)
}
