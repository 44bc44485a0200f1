//! Operations of our extension. Those that follow one of the interface have its samples.

use crate::calls::random::Random;
use crate::calls::sample::{Given, Quant, Sample};
use nnhal_ops::extension::ExtensionOperation as E;

const AS_INPUT: Quant = Quant::As(0);

fn on(operation: E) -> Sample {
    Sample::new(operation.operation_type())
}

fn int(length: u32) -> i32 {
    i32::try_from(length).unwrap()
}

/// Whole numbers.
fn whole(random: &mut Random, shape: &[u32], least: i32, most: i32) -> Vec<f64> {
    (0..shape.iter().product::<u32>()).map(|_| f64::from(random.int(least, most))).collect()
}

/// Two shapes that broadcast.
fn broadcasting(random: &mut Random) -> [Vec<u32>; 2] {
    let shape = random.shape(5, 3);
    let mut other = shape.clone();
    other.iter_mut().for_each(|length| *length = if random.coin() { 1 } else { *length });
    let shorter = other.split_off(usize::try_from(random.int(0, int(1))).unwrap());
    let other = if shorter.is_empty() { other } else { shorter };
    if random.coin() { [shape, other] } else { [other, shape] }
}

pub fn draw(operation: E, random: &mut Random) -> Option<Sample> {
    Some(match operation {
        E::Add
        | E::Sub
        | E::Mul
        | E::Maximum
        | E::Minimum
        | E::Abs
        | E::Neg
        | E::Equal
        | E::NotEqual
        | E::Less
        | E::LessEqual
        | E::Greater
        | E::GreaterEqual
        | E::Mean
        | E::ReduceAll
        | E::ReduceAny
        | E::ReduceMax
        | E::ReduceMin
        | E::ReduceProd
        | E::ReduceSum
        | E::Argmax
        | E::Argmin
        | E::TopkV2
        | E::Reshape
        | E::Transpose
        | E::Concatenation
        | E::Slice
        | E::StridedSlice
        | E::Split
        | E::Pad
        | E::MirrorPad
        | E::Tile
        | E::Pack
        | E::Gather
        | E::Reverse
        | E::ExpandDims
        | E::Squeeze
        | E::DepthToSpace
        | E::SpaceToDepth
        | E::BatchToSpaceNd
        | E::SpaceToBatchNd
        | E::Quantize
        | E::Dequantize => {
            let sample = super::draw(operation.like()?, random)?;
            Sample { operation: operation.operation_type(), ..sample }
        }
        E::Div
        | E::FloorDiv
        | E::FloorMod
        | E::Pow
        | E::BitwiseAnd
        | E::BitwiseXor
        | E::LeftShift
        | E::RightShift => {
            let [x, y] = broadcasting(random);
            let (numbers, others) = (whole(random, &x, 0, 9), whole(random, &y, 0, 4));
            on(operation).tensor(&x, numbers).tensor(&y, others).output(AS_INPUT)
        }
        E::Atan2 => {
            let [x, y] = broadcasting(random);
            let (numbers, others) = (random.reals(&x, -6.0, 6.0), random.reals(&y, -6.0, 6.0));
            on(operation).tensor(&x, numbers).tensor(&y, others).output(AS_INPUT)
        }
        E::Select => {
            let [x, y] = broadcasting(random);
            let condition = if random.coin() { x.clone() } else { y.clone() };
            on(operation)
                .tensor(&condition, random.reals(&condition, 0.0, 1.0))
                .tensor(&x, random.reals(&x, -6.0, 6.0))
                .tensor(&y, random.reals(&y, -6.0, 6.0))
                .stored(Quant::As(1))
                .output(Quant::As(1))
        }
        E::Cast => {
            let shape = random.shape(5, 3);
            let numbers = whole(random, &shape, 0, 100);
            let sample = on(operation).tensor(&shape, numbers).stored(Quant::Scale(1.0));
            let sample = if random.coin() { sample.scalars(&[1.0]) } else { sample };
            sample.output(Quant::Scale(1.0))
        }
        // What shapes it takes depends on the sizes of both types.
        E::Bitcast => return None,
        E::Ceil | E::Cos | E::Erf | E::Gelu | E::Round | E::Sign => {
            let shape = random.shape(5, 3);
            on(operation).tensor(&shape, random.reals(&shape, -6.0, 6.0)).output(AS_INPUT)
        }
        E::PadV2 => {
            let shape = random.shape(4, 4);
            let rank = u32::try_from(shape.len()).unwrap();
            on(operation)
                .tensor(&shape, random.reals(&shape, -9.0, 9.0))
                .tensor(&[rank, 2], whole(random, &[rank, 2], 0, 2))
                .tensor(&[1], random.reals(&[1], -9.0, 9.0))
                .stored(AS_INPUT)
                .output(AS_INPUT)
        }
        E::Fill => {
            let shape: Vec<i32> = random.shape(4, 4).into_iter().map(int).collect();
            on(operation)
                .integers(&shape)
                .tensor(&[1], random.reals(&[1], -9.0, 9.0))
                .output(Quant::As(1))
        }
        E::Cumsum => {
            let shape = random.shape(4, 4);
            let rank = int(u32::try_from(shape.len()).unwrap());
            on(operation)
                .tensor(&shape, random.reals(&shape, -6.0, 6.0))
                .ints(&[random.int(-rank, rank - 1)])
                .scalars(&[f64::from(random.int(0, 1)), f64::from(random.int(0, 1))])
                .output(AS_INPUT)
        }
        E::GatherNd => {
            let shape = random.shape(4, 4);
            let (indexes, of) = indexes(&shape, random);
            on(operation)
                .tensor(&shape, random.reals(&shape, -9.0, 9.0))
                .tensor(&of, indexes)
                .output(AS_INPUT)
        }
        E::ScatterNd => {
            let shape = random.shape(4, 4);
            let (indexes, of) = indexes(&shape, random);
            let depth = *of.last().unwrap() as usize;
            let updates = [&of[..of.len() - 1], &shape[depth..]].concat();
            let lengths: Vec<i32> = shape.into_iter().map(int).collect();
            on(operation)
                .tensor(&of, indexes)
                .tensor(&updates, whole(random, &updates, -3, 9))
                .integers(&lengths)
                .output(Quant::As(1))
        }
        E::GatherSlices | E::ScatterSlices => {
            let shape = random.shape(3, 5);
            let rank = int(u32::try_from(shape.len()).unwrap());
            // Some of the axes, from one of them on.
            let depth = random.int(1, rank);
            let first = random.int(0, rank - 1);
            let axes: Vec<i32> = (0..depth).map(|it| (first + it) % rank).collect();
            let rows = [random.length(1, 3), u32::try_from(depth).unwrap()];
            let block: Vec<u32> = shape.iter().map(|length| random.length(1, *length)).collect();
            let call = on(operation);
            if operation == E::GatherSlices {
                let sizes: Vec<i32> = block.into_iter().map(int).collect();
                return Some(
                    call.tensor(&shape, random.reals(&shape, -9.0, 9.0))
                        .tensor(&rows, whole(random, &rows, -1, 5))
                        .integers(&axes)
                        .integers(&sizes)
                        .output(AS_INPUT),
                );
            }
            let updates = [&rows[..1], &block].concat();
            call.tensor(&shape, whole(random, &shape, 0, 3))
                .tensor(&rows, whole(random, &rows, -1, 5))
                .tensor(&updates, whole(random, &updates, 0, 3))
                .stored(AS_INPUT)
                .integers(&axes)
                .ints(&[random.int(0, 6)])
                .output(AS_INPUT)
        }
        E::SparseToDense => {
            let shape = random.shape(4, 4);
            let rank = u32::try_from(shape.len()).unwrap();
            let count = random.length(1, 5);
            let indexes = (0..count).flat_map(|_| {
                let index = |length: &u32| f64::from(random.int(0, int(*length) - 1));
                shape.iter().map(index).collect::<Vec<_>>()
            });
            let indexes = indexes.collect::<Vec<_>>();
            let values = if random.coin() { 1 } else { count };
            let lengths: Vec<i32> = shape.into_iter().map(int).collect();
            on(operation)
                .tensor(&[count, rank], indexes)
                .integers(&lengths)
                .tensor(&[values], random.reals(&[values], -9.0, 9.0))
                .tensor(&[1], random.reals(&[1], -9.0, 9.0))
                .stored(Quant::As(2))
                .output(Quant::As(2))
        }
        E::ResizeTo => {
            let shape = [random.length(1, 2), random.length(1, 4), random.length(1, 4), 2];
            let alignment = random.int(0, 2);
            on(operation)
                .tensor(&shape, random.reals(&shape, -9.0, 9.0))
                .integers(&[random.int(1, 6), random.int(1, 6)])
                .ints(&[random.int(0, 1)])
                .scalars(&[f64::from(alignment == 1), f64::from(alignment == 2)])
                .output(AS_INPUT)
        }
        E::TopK => {
            let shape = random.shape(4, 6);
            let most = shape.last().copied().unwrap_or(1);
            on(operation)
                .tensor(&shape, random.reals(&shape, -9.0, 9.0))
                .integers(&[random.int(1, int(most))])
                .output(AS_INPUT)
                .output(AS_INPUT)
        }
        E::ReduceWindow => {
            let shape = random.shape(3, 5);
            let mut numbers = |least: i32, most: i32| -> Vec<i32> {
                shape.iter().map(|_| random.int(least, most)).collect()
            };
            let (window, strides, dilations) = (numbers(1, 3), numbers(1, 2), numbers(1, 2));
            on(operation)
                .tensor(&shape, whole(random, &shape, 0, 3))
                .tensor(&[1], whole(random, &[1], 0, 2))
                .stored(AS_INPUT)
                .integers(&window)
                .integers(&strides)
                .integers(&dilations)
                .ints(&[random.int(0, 5)])
                .output(AS_INPUT)
        }
        E::BroadcastArgs => {
            let [a, b] = broadcasting(random);
            let lengths =
                |shape: Vec<u32>| -> Vec<f64> { shape.into_iter().map(f64::from).collect() };
            let rank = |shape: &Vec<u32>| [u32::try_from(shape.len()).unwrap()];
            let ranks = [rank(&a), rank(&b)];
            on(operation)
                .tensor(&ranks[0], lengths(a))
                .tensor(&ranks[1], lengths(b))
                .output(AS_INPUT)
        }
        E::Where => {
            let shape = random.shape(4, 4);
            on(operation).tensor(&shape, whole(random, &shape, 0, 1)).output(Quant::Fit(1.0))
        }
        E::OneHot => {
            let shape = random.shape(3, 4);
            let rank = int(u32::try_from(shape.len()).unwrap());
            on(operation)
                .tensor(&shape, whole(random, &shape, -1, 4))
                .integers(&[random.int(0, 4)])
                .tensor(&[1], random.reals(&[1], -9.0, 9.0))
                .tensor(&[1], random.reals(&[1], -9.0, 9.0))
                .stored(Quant::As(2))
                .ints(&[random.int(-1, rank)])
                .output(Quant::As(2))
        }
        E::ReverseSequence => {
            let shape = [random.length(1, 3), random.length(1, 4), random.length(1, 3)];
            let axes = random.permutation(3);
            let (sequence, batch) = (axes[0], axes[1]);
            let lengths = whole(random, &[shape[batch]], 0, int(shape[sequence]));
            on(operation)
                .tensor(&shape, random.reals(&shape, -9.0, 9.0))
                .tensor(&[shape[batch]], lengths)
                .ints(&[sequence, batch].map(|axis| i32::try_from(axis).unwrap()))
                .output(AS_INPUT)
        }
        E::MatrixDiag => {
            let shape = random.shape(3, 4);
            on(operation).tensor(&shape, random.reals(&shape, -9.0, 9.0)).output(AS_INPUT)
        }
        E::MatrixSetDiag => {
            let shape = [random.length(1, 2), random.length(1, 4), random.length(1, 4)];
            let diagonal = [shape[0], shape[1].min(shape[2])];
            on(operation)
                .tensor(&shape, random.reals(&shape, -9.0, 9.0))
                .tensor(&diagonal, random.reals(&diagonal, -9.0, 9.0))
                .stored(AS_INPUT)
                .output(AS_INPUT)
        }
        E::Unique => {
            let shape = [random.length(1, 9)];
            on(operation)
                .tensor(&shape, whole(random, &shape, 0, 4))
                .output(AS_INPUT)
                .output(Quant::Fit(1.0))
        }
        E::SegmentSum => {
            let shape = [random.length(1, 6), random.length(1, 3)];
            let mut number = 0;
            let mut numbers = vec![0];
            for _ in 1..shape[0] {
                number += random.int(0, 1);
                numbers.push(number);
            }
            on(operation)
                .tensor(&shape, random.reals(&shape, -9.0, 9.0))
                .integers(&numbers)
                .output(AS_INPUT)
        }
        E::UnsortedSegmentMax
        | E::UnsortedSegmentMin
        | E::UnsortedSegmentProd
        | E::UnsortedSegmentSum => {
            let shape = random.shape(3, 4);
            let of =
                shape[..usize::try_from(random.int(1, int(u32::try_from(shape.len()).unwrap())))
                    .unwrap()]
                    .to_vec();
            on(operation)
                .tensor(&shape, random.reals(&shape, -3.0, 3.0))
                .tensor(&of, whole(random, &of, -1, 3))
                .integers(&[random.int(4, 5)])
                .output(AS_INPUT)
        }
        E::Bucketize => {
            let shape = random.shape(4, 4);
            let count = random.length(1, 5);
            let mut boundaries = random.reals(&[count], -6.0, 6.0);
            boundaries.sort_by(f64::total_cmp);
            on(operation)
                .tensor(&shape, random.reals(&shape, -8.0, 8.0))
                .tensor(&[count], boundaries)
                .output(Quant::Fit(1.0))
        }
        E::Rfft2d => {
            let shape = random.shape(2, 3);
            let shape = [&shape[..], &[random.length(1, 9), random.length(1, 9)]].concat();
            let lengths = [0, 1].map(|_| 1 << random.int(0, 4));
            on(operation)
                .tensor(&shape, random.reals(&shape, -3.0, 3.0))
                .integers(&lengths)
                .output(Quant::Fit(1.0))
        }
        E::ComplexAbs | E::Real | E::Imag => {
            let shape = random.shape(4, 4);
            on(operation).tensor(&shape, random.reals(&shape, -9.0, 9.0)).output(Quant::Fit(1.0))
        }
        E::Conv3d | E::Conv3dTranspose => conv_3d(operation, random),
        E::DynamicUpdateSlice => {
            let shape = random.shape(4, 4);
            let part: Vec<u32> = shape.iter().map(|length| random.length(1, *length)).collect();
            let begins: Vec<i32> =
                shape.iter().map(|length| random.int(-1, int(*length))).collect();
            on(operation)
                .tensor(&shape, random.reals(&shape, -9.0, 9.0))
                .tensor(&part, random.reals(&part, -9.0, 9.0))
                .stored(AS_INPUT)
                .integers(&begins)
                .output(AS_INPUT)
        }
        E::NonMaxSuppressionV4 | E::NonMaxSuppressionV5 => {
            let count = random.length(1, 8);
            let sample = on(operation)
                .tensor(&[count, 4], random.reals(&[count, 4], 0.0, 9.0))
                .tensor(&[count], random.reals(&[count], 0.0, 1.0))
                .integers(&[random.int(1, 8)])
                .tensor(&[1], random.reals(&[1], 0.1, 0.9))
                .tensor(&[1], random.reals(&[1], 0.0, 0.4))
                .output(Quant::Fit(1.0))
                .output(Quant::Fit(1.0));
            match operation {
                E::NonMaxSuppressionV4 => sample,
                _ => sample.tensor(&[1], random.reals(&[1], 0.0, 1.0)).output(Quant::Fit(1.0)),
            }
        }
        E::RandomUniform | E::RandomStandardNormal => {
            let lengths: Vec<i32> = random.shape(3, 5).into_iter().map(int).collect();
            on(operation)
                .integers(&lengths)
                .tensor(&[6], whole(random, &[6], -9, 9))
                .output(Quant::Fit(1.0))
                .output(Quant::Fit(1.0))
        }
        E::Multinomial => {
            let shape = [random.length(1, 4), random.length(1, 5)];
            on(operation)
                .tensor(&shape, random.reals(&shape, -3.0, 3.0))
                .integers(&[random.int(1, 9)])
                .tensor(&[6], whole(random, &[6], -9, 9))
                .output(Quant::Fit(1.0))
                .output(Quant::Fit(1.0))
        }
        E::RngBitGenerator => {
            let algorithm = random.int(0, 1);
            let words = [random.length(2, if algorithm == 0 { 3 } else { 2 })];
            let lengths: Vec<i32> = random.shape(3, 5).into_iter().map(int).collect();
            on(operation)
                .tensor(&words, whole(random, &words, 0, 9))
                .integers(&lengths)
                .ints(&[algorithm])
                .output(Quant::Fit(1.0))
                .output(Quant::Fit(1.0))
        }
        E::DynamicFullyConnected => {
            let (batch, inner, units) =
                (random.length(1, 4), random.length(1, 9), random.length(1, 5));
            let input = if random.coin() { vec![batch, inner] } else { vec![1, batch, inner] };
            on(operation)
                .tensor(&input, random.reals(&input, -3.0, 3.0))
                .tensor(&[units, inner], random.reals(&[units, inner], -2.0, 2.0))
                .stored(Quant::Scale(2.0 / 127.0))
                .tensor(&[units], random.reals(&[units], -2.0, 2.0))
                .ints(&[random.int(0, 3)])
                .output(Quant::Fit(1.0))
        }
        E::DynamicConv2d => {
            let (image, filter) = ([2, 5, 6], [random.length(1, 3), random.length(1, 3)]);
            let groups = random.length(1, 3);
            let of_group = random.length(1, 5);
            let channels = [groups * of_group, groups * random.length(1, 5)];
            let input = [image[0], image[1], image[2], channels[0]];
            let filter = [channels[1], filter[0], filter[1], of_group];
            on(operation)
                .tensor(&input, random.reals(&input, -3.0, 3.0))
                .tensor(&filter, random.reals(&filter, -2.0, 2.0))
                .stored(Quant::Scale(2.0 / 127.0))
                .tensor(&channels[1..], random.reals(&channels[1..], -2.0, 2.0))
                .ints(&[random.int(1, 2), random.int(1, 3), random.int(1, 3)])
                .ints(&[random.int(1, 2), random.int(1, 2), random.int(0, 3)])
                .output(Quant::Fit(1.0))
        }
        E::DynamicRound => {
            let shape = random.shape(4, 5);
            let call = on(operation).tensor(&shape, random.reals(&shape, -3.0, 3.0));
            let call = match random.int(0, 2) {
                0 => call,
                is_symmetric => call.scalars(&[f64::from(is_symmetric - 1)]),
            };
            call.output(Quant::Fit(1.0))
        }
        E::Range => {
            let (start, step) = (random.int(-9, 9), random.int(1, 3));
            let limit = start + random.int(1, 9);
            [start, limit, step]
                .into_iter()
                .fold(on(operation), |call, number| call.integers(&[number]))
                .output(AS_INPUT)
        }
        E::Shape => {
            let shape = random.shape(5, 4);
            on(operation).tensor(&shape, random.reals(&shape, 0.0, 1.0)).output(Quant::Fit(1.0))
        }
    })
}

/// Rows of indexes of the first axes of a tensor, and their shape.
fn indexes(shape: &[u32], random: &mut Random) -> (Vec<f64>, Vec<u32>) {
    let rank = u32::try_from(shape.len()).unwrap();
    let depth = random.length(1, rank);
    let rows = random.length(1, 4);
    let indexes = (0..rows * depth).map(|at| {
        let length = shape[(at % depth) as usize];
        f64::from(random.int(0, int(length) - 1))
    });
    (indexes.collect(), vec![rows, depth])
}

fn conv_3d(operation: E, random: &mut Random) -> Sample {
    let taps = [0, 1, 2].map(|_| random.length(1, 3));
    let strides = [0, 1, 2].map(|_| random.length(1, 2));
    let is_same = random.coin();
    let lengths = [0, 1, 2].map(|axis: usize| taps[axis] + random.length(0, 2));
    let places = [0, 1, 2].map(|axis: usize| match is_same {
        true => lengths[axis].div_ceil(strides[axis]),
        false => (lengths[axis] - taps[axis]) / strides[axis] + 1,
    });
    let (batch, inner, outer) = (random.length(1, 2), random.length(1, 3), random.length(1, 3));
    let is_transposed = operation == E::Conv3dTranspose;
    let [d, h, w] = if is_transposed { places } else { lengths };
    let image = [batch, d, h, w, inner];
    let ends = if is_transposed { [outer, inner] } else { [inner, outer] };
    let filter = [&taps[..], &ends[..]].concat();
    let sample = on(operation)
        .tensor(&image, random.reals(&image, -3.0, 3.0))
        .tensor(&filter, random.reals(&filter, -1.0, 1.0))
        .tensor(&[outer], random.reals(&[outer], -1.0, 1.0))
        .ints(&[if is_same { 1 } else { 2 }])
        .ints(&strides.map(int))
        .ints(&[1, 1, 1])
        .ints(&[random.int(0, 3)])
        .output(Quant::Fit(1.0));
    if !is_transposed {
        return sample;
    }
    let [d, h, w] = lengths;
    sample.input(Given::tensor(&[5], [batch, d, h, w, outer].map(f64::from).to_vec()))
}
