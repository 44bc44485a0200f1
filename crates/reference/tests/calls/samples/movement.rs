//! Operations that move elements.

use crate::calls::random::Random;
use crate::calls::sample::{Given, Quant, Sample};
use nnhal_hal::OperationType;

const AS_INPUT: Quant = Quant::As(0);

/// A call with a tensor of any shape, and its shape.
fn on_tensor(operation: OperationType, random: &mut Random) -> (Sample, Vec<u32>) {
    let shape = random.shape(4, 4);
    let numbers = random.reals(&shape, -50.0, 50.0);
    (Sample::new(operation).tensor(&shape, numbers), shape)
}

fn on_image(operation: OperationType, shape: &[u32], random: &mut Random) -> Sample {
    let numbers = random.reals(shape, -50.0, 50.0);
    Sample::new(operation).image(shape, numbers)
}

fn rank_of(shape: &[u32]) -> u32 {
    u32::try_from(shape.len()).unwrap()
}

fn int(length: u32) -> i32 {
    i32::try_from(length).unwrap()
}

/// An axis, from the front or the end.
fn axis(shape: &[u32], random: &mut Random) -> (usize, i32) {
    let rank = int(rank_of(shape));
    let axis = random.int(0, rank - 1);
    (usize::try_from(axis).unwrap(), if random.coin() { axis } else { axis - rank })
}

/// An axis from the front.
fn plain_axis(shape: &[u32], random: &mut Random) -> usize {
    axis(shape, random).0
}

fn pairs(shape: &[u32], random: &mut Random, mut most: impl FnMut(u32) -> i32) -> Given {
    let numbers: Vec<f64> = shape
        .iter()
        .flat_map(|length| [*length; 2])
        .map(|length| f64::from(random.int(0, most(length))))
        .collect();
    Given::tensor(&[rank_of(shape), 2], numbers)
}

pub fn batch_to_space(random: &mut Random) -> Sample {
    let block = [random.length(1, 3), random.length(1, 2)];
    let batch = block[0] * block[1] * random.length(1, 2);
    let shape = [batch, random.length(1, 3), random.length(1, 3), random.length(1, 3)];
    on_image(OperationType::BatchToSpaceNd, &shape, random)
        .integers(&block.map(int))
        .flag()
        .image_output(AS_INPUT)
}

pub fn space_to_batch(random: &mut Random) -> Sample {
    let block = [random.length(1, 3), random.length(1, 2)];
    let before = [random.length(0, 2), random.length(0, 2)];
    let lengths = [random.length(1, 4), random.length(1, 4)];
    let behind = [0, 1].map(|at| {
        (lengths[at] + before[at]).next_multiple_of(block[at]) - lengths[at] - before[at]
    });
    let paddings = [before[0], behind[0], before[1], behind[1]].map(f64::from);
    on_image(
        OperationType::SpaceToBatchNd,
        &[random.length(1, 2), lengths[0], lengths[1], random.length(1, 3)],
        random,
    )
    .integers(&block.map(int))
    .tensor(&[2, 2], paddings.to_vec())
    .flag()
    .image_output(AS_INPUT)
}

pub fn depth_to_space(random: &mut Random) -> Sample {
    let block = random.length(1, 3);
    let channels = block * block * random.length(1, 2);
    let shape = [random.length(1, 2), random.length(1, 3), random.length(1, 3), channels];
    on_image(OperationType::DepthToSpace, &shape, random)
        .ints(&[int(block)])
        .flag()
        .image_output(AS_INPUT)
}

pub fn space_to_depth(random: &mut Random) -> Sample {
    let block = random.length(1, 3);
    let (height, width) = (block * random.length(1, 3), block * random.length(1, 2));
    let shape = [random.length(1, 2), height, width, random.length(1, 3)];
    on_image(OperationType::SpaceToDepth, &shape, random)
        .ints(&[int(block)])
        .flag()
        .image_output(AS_INPUT)
}

pub fn channel_shuffle(random: &mut Random) -> Sample {
    let groups = random.length(1, 3);
    let mut shape = random.shape(4, 3);
    let (at, axis) = axis(&shape, random);
    shape[at] = groups * random.length(1, 3);
    let numbers = random.reals(&shape, -50.0, 50.0);
    Sample::new(OperationType::ChannelShuffle)
        .tensor(&shape, numbers)
        .ints(&[int(groups), axis])
        .output(AS_INPUT)
}

pub fn concatenation(random: &mut Random) -> Sample {
    let mut shape = random.shape(4, 4);
    let axis = plain_axis(&shape, random);
    let mut sample = Sample::new(OperationType::Concatenation);
    for _ in 0..random.length(1, 4) {
        shape[axis] = random.length(1, 3);
        let numbers = random.reals(&shape, -4.0, 6.0);
        sample = sample.tensor(&shape, numbers);
    }
    sample.ints(&[i32::try_from(axis).unwrap()]).output(super::fit(random))
}

pub fn embedding_lookup(random: &mut Random) -> Sample {
    // Two axes at least.
    let mut shape = random.shape(3, 4);
    shape.push(random.length(1, 3));
    let lookups: Vec<i32> =
        (0..random.length(1, 5)).map(|_| random.int(0, int(shape[0]) - 1)).collect();
    let numbers = random.reals(&shape, -50.0, 50.0);
    Sample::new(OperationType::EmbeddingLookup)
        .integers(&lookups)
        .tensor(&shape, numbers)
        .output(Quant::As(1))
}

pub fn hashtable_lookup(random: &mut Random) -> Sample {
    let shape = random.shape(4, 4);
    let keys: Vec<i32> = (0..int(shape[0])).map(|at| 3 * at - 2).collect();
    let lookups: Vec<i32> = (0..random.length(1, 5)).map(|_| random.int(-2, 6)).collect();
    let numbers = random.reals(&shape, 0.0, 100.0);
    // A row that is not there is stored zeros: 0 is so where it is the zero point.
    Sample::new(OperationType::HashtableLookup)
        .integers(&lookups)
        .integers(&keys)
        .tensor(&shape, numbers)
        .stored(Quant::Fixed(0.5, 0))
        .output(Quant::As(2))
        .output(Quant::Scale(1.0))
}

pub fn expand_dims(random: &mut Random) -> Sample {
    let (sample, shape) = on_tensor(OperationType::ExpandDims, random);
    let rank = int(rank_of(&shape));
    sample.ints(&[random.int(-rank - 1, rank)]).output(AS_INPUT)
}

pub fn fill(random: &mut Random) -> Sample {
    let shape: Vec<i32> = random.shape(4, 4).into_iter().map(int).collect();
    let value = random.real(-9.0, 9.0);
    Sample::new(OperationType::Fill).integers(&shape).scalars(&[value]).output(Quant::Fit(1.0))
}

pub fn gather(random: &mut Random) -> Sample {
    let (sample, shape) = on_tensor(OperationType::Gather, random);
    let (at, axis) = axis(&shape, random);
    let indexes = random.shape(2, 3);
    let numbers = (0..indexes.iter().product())
        .map(|_| f64::from(random.int(0, int(shape[at]) - 1)))
        .collect();
    sample.ints(&[axis]).tensor(&indexes, numbers).output(AS_INPUT)
}

pub fn mirror_pad(random: &mut Random) -> Sample {
    let (sample, shape) = on_tensor(OperationType::MirrorPad, random);
    let mode = random.int(0, 1);
    let paddings = pairs(&shape, random, |length| int(length) - 1 + mode);
    sample.input(paddings).ints(&[mode]).output(AS_INPUT)
}

pub fn pack(random: &mut Random) -> Sample {
    let shape = random.shape(3, 4);
    let mut sample = Sample::new(OperationType::Pack).ints(&[random.int(0, int(rank_of(&shape)))]);
    for index in 0..random.length(1, 3) {
        let numbers = random.reals(&shape, -50.0, 50.0);
        sample = sample.tensor(&shape, numbers);
        if index > 0 {
            sample = sample.stored(Quant::As(1));
        }
    }
    sample.output(Quant::As(1))
}

pub fn pad(operation: OperationType, random: &mut Random) -> Sample {
    let (sample, shape) = on_tensor(operation, random);
    let sample = sample.input(pairs(&shape, random, |_| 2)).output(AS_INPUT);
    if operation == OperationType::PadV2 {
        return sample.scalars(&[random.real(-30.0, 30.0)]).stored(Quant::StoredAs(0));
    }
    sample
}

pub fn rank(random: &mut Random) -> Sample {
    on_tensor(OperationType::Rank, random).0.output(Quant::Fit(1.0))
}

pub fn reshape(random: &mut Random) -> Sample {
    let (sample, shape) = on_tensor(OperationType::Reshape, random);
    let mut lengths: Vec<i32> =
        random.permutation(shape.len()).into_iter().map(|axis| int(shape[axis])).collect();
    if lengths.len() < 4 && random.coin() {
        lengths.insert(0, 1);
    }
    if random.coin() {
        let at = random.length(0, u32::try_from(lengths.len() - 1).unwrap());
        lengths[at as usize] = -1;
    }
    sample.integers(&lengths).output(AS_INPUT)
}

pub fn reverse(random: &mut Random) -> Sample {
    let (sample, shape) = on_tensor(OperationType::Reverse, random);
    let axis = plain_axis(&shape, random);
    sample.integers(&[i32::try_from(axis).unwrap()]).output(AS_INPUT)
}

pub fn slice(random: &mut Random) -> Sample {
    let (sample, shape) = on_tensor(OperationType::Slice, random);
    let begins: Vec<i32> = shape.iter().map(|length| random.int(0, int(*length) - 1)).collect();
    let sizes: Vec<i32> = shape
        .iter()
        .zip(&begins)
        .map(|(length, begin)| {
            let most = int(*length) - begin;
            if random.one_in(4) { -1 } else { random.int(1, most) }
        })
        .collect();
    sample.integers(&begins).integers(&sizes).output(AS_INPUT)
}

pub fn split(random: &mut Random) -> Sample {
    let mut shape = random.shape(4, 4);
    let (at, axis) = axis(&shape, random);
    let parts = random.length(1, 3);
    shape[at] = parts * random.length(1, 3);
    let numbers = random.reals(&shape, -50.0, 50.0);
    let sample =
        Sample::new(OperationType::Split).tensor(&shape, numbers).ints(&[axis, int(parts)]);
    (0..parts).fold(sample, |sample, _| sample.output(AS_INPUT))
}

pub fn squeeze(random: &mut Random) -> Sample {
    let mut shape = random.shape(4, 3);
    // Something is left.
    shape[0] = shape[0].max(2);
    let numbers = random.reals(&shape, -50.0, 50.0);
    let axes: Vec<i32> = (0..int(rank_of(&shape)))
        .filter(|axis| shape[usize::try_from(*axis).unwrap()] == 1 && random.coin())
        .collect();
    let sample = Sample::new(OperationType::Squeeze).tensor(&shape, numbers).output(AS_INPUT);
    if axes.is_empty() {
        return sample.input(Given::omitted());
    }
    sample.integers(&axes)
}

pub fn strided_slice(random: &mut Random) -> Sample {
    let (sample, shape) = on_tensor(OperationType::StridedSlice, random);
    let mut shrink = 0;
    let (mut begins, mut ends, mut strides) = (Vec::new(), Vec::new(), Vec::new());
    for (axis, length) in shape.iter().enumerate() {
        let (first, last) = {
            let (x, y) = (random.int(0, int(*length) - 1), random.int(0, int(*length) - 1));
            (x.min(y), x.max(y))
        };
        let stride = random.int(1, 2);
        // One axis is left at least.
        if axis + 1 < shape.len() && random.one_in(4) {
            shrink |= 1 << axis;
            begins.push(first);
            ends.push(first + 1);
            strides.push(1);
        } else if random.one_in(3) {
            // Backwards; the end before the first is -length - 1.
            begins.push(last);
            ends.push(if first == 0 { -int(*length) - 1 } else { first - 1 });
            strides.push(-stride);
        } else {
            begins.push(if random.coin() { first } else { first - int(*length) });
            ends.push(last + 1);
            strides.push(stride);
        }
    }
    // A mask takes from the first on, or backwards from the last on.
    let all = (1 << shape.len()) - 1;
    let masks = [random.int(0, all) & !shrink, random.int(0, all) & !shrink, shrink];
    sample.integers(&begins).integers(&ends).integers(&strides).ints(&masks).output(AS_INPUT)
}

pub fn tile(random: &mut Random) -> Sample {
    let (sample, shape) = on_tensor(OperationType::Tile, random);
    let multiples: Vec<i32> = shape.iter().map(|_| random.int(1, 3)).collect();
    sample.integers(&multiples).output(AS_INPUT)
}

pub fn transpose(random: &mut Random) -> Sample {
    let (sample, shape) = on_tensor(OperationType::Transpose, random);
    if random.one_in(4) {
        return sample.input(Given::omitted()).output(AS_INPUT);
    }
    let axes: Vec<i32> = random
        .permutation(shape.len())
        .into_iter()
        .map(|axis| i32::try_from(axis).unwrap())
        .collect();
    sample.integers(&axes).output(AS_INPUT)
}
