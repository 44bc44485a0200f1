//! Operations that slide over images, and those that resize them.

use crate::calls::random::Random;
use crate::calls::sample::{Given, Layout, Quant, Sample};
use nnhal_hal::OperationType;

fn int(length: u32) -> i32 {
    i32::try_from(length).unwrap()
}

/// Output steps of a convolution: mostly above those of products, sometimes much finer.
fn steps_of_sums(random: &mut Random) -> Quant {
    if random.one_in(5) {
        return Quant::Fit(0.02);
    }
    Quant::FitAbove(random.pick(&[1.0, 1.2, 0.5]), 0, 1)
}

fn image(random: &mut Random, channels: u32) -> [u32; 4] {
    [random.length(1, 2), random.length(5, 7), random.length(5, 6), channels]
}

/// Either four paddings, each less than the filter, or a scheme; and the form that has it.
fn padding(random: &mut Random, filter: [u32; 2]) -> (usize, Vec<i32>) {
    if random.coin() {
        let [height, width] = filter.map(|length| int(length) - 1);
        let explicit = [width, width, height, height].map(|most| random.int(0, most));
        (0, explicit.to_vec())
    } else {
        (1, vec![random.int(1, 2)])
    }
}

/// A filter and its bias.
fn weights(sample: Sample, filter: [u32; 4], channel_dim: u32, random: &mut Random) -> Sample {
    let depth = filter[channel_dim as usize];
    let numbers = random.reals(&filter, -2.0, 2.0);
    let bias = random.reals(&[depth], -2.0, 2.0);
    sample
        .input(Given { channel_dim, ..Given::tensor(&filter, numbers) })
        .tensor(&[depth], bias)
        .stored(Quant::Product(0, 1))
}

fn dilations(sample: Sample, random: &mut Random) -> Sample {
    let sample = sample.flag();
    if random.coin() {
        return sample;
    }
    sample.ints(&[random.int(1, 2), random.int(1, 2)])
}

pub fn conv_2d(random: &mut Random) -> Sample {
    let depth = random.length(1, 3);
    let shape = image(random, depth);
    let filter = [random.length(1, 3), random.length(1, 3), random.length(1, 3), depth];
    let (form, padding) = padding(random, [filter[1], filter[2]]);
    let numbers = random.reals(&shape, -3.0, 3.0);
    let sample = Sample::new(OperationType::Conv2d).form(form).image(&shape, numbers);
    let sample = weights(sample, filter, 0, random).ints(&padding).ints(&[
        random.int(1, 2),
        random.int(1, 2),
        random.int(0, 3),
    ]);
    dilations(sample, random).image_output(steps_of_sums(random))
}

pub fn depthwise_conv_2d(random: &mut Random) -> Sample {
    let (depth, multiplier) = (random.length(1, 3), random.length(1, 2));
    let shape = image(random, depth);
    let filter = [1, random.length(1, 3), random.length(1, 3), depth * multiplier];
    let (form, padding) = padding(random, [filter[1], filter[2]]);
    let numbers = random.reals(&shape, -3.0, 3.0);
    let sample = Sample::new(OperationType::DepthwiseConv2d).form(form).image(&shape, numbers);
    let sample = weights(sample, filter, 3, random).ints(&padding).ints(&[
        random.int(1, 2),
        random.int(1, 2),
        int(multiplier),
        random.int(0, 3),
    ]);
    dilations(sample, random).image_output(steps_of_sums(random))
}

pub fn grouped_conv_2d(random: &mut Random) -> Sample {
    let (groups, depth) = (random.length(1, 3), random.length(1, 2));
    let shape = image(random, groups * depth);
    let filter = [groups * random.length(1, 2), random.length(1, 3), random.length(1, 3), depth];
    let (form, padding) = padding(random, [filter[1], filter[2]]);
    let numbers = random.reals(&shape, -3.0, 3.0);
    let sample = Sample::new(OperationType::GroupedConv2d).form(form).image(&shape, numbers);
    weights(sample, filter, 0, random)
        .ints(&padding)
        .ints(&[random.int(1, 2), random.int(1, 2), int(groups), random.int(0, 3)])
        .flag()
        .image_output(steps_of_sums(random))
}

pub fn transpose_conv_2d(random: &mut Random) -> Sample {
    let depth = random.length(1, 3);
    let shape = [random.length(1, 2), random.length(1, 4), random.length(1, 3), depth];
    let filter = [random.length(1, 3), random.length(1, 3), random.length(1, 3), depth];
    let strides = [random.length(1, 3), random.length(1, 2)];
    let numbers = random.reals(&shape, -3.0, 3.0);
    let sample = Sample::new(OperationType::TransposeConv2d).image(&shape, numbers);
    let sample = weights(sample, filter, 0, random);
    let ends = [int(strides[1]), int(strides[0]), random.int(0, 3)];
    let sample = if random.coin() {
        // Paddings less than half the filter leave something.
        let most = [filter[2], filter[2], filter[1], filter[1]].map(|length| (int(length) - 1) / 2);
        sample.ints(&most.map(|most| random.int(0, most)))
    } else {
        let scheme = random.int(1, 2);
        let output = |axis: usize| {
            let (length, stride) = (shape[axis + 1], strides[axis]);
            if scheme == 1 { length * stride } else { (length - 1) * stride + filter[axis + 1] }
        };
        let output = [shape[0], output(0), output(1), filter[0]];
        let lengths = Given::tensor(&[4], output.map(f64::from).to_vec());
        sample.form(1).input(Given { layout: Layout::ShapeOfImage, ..lengths }).ints(&[scheme])
    };
    sample.ints(&ends).flag().image_output(steps_of_sums(random))
}

pub fn pooling(operation: OperationType, random: &mut Random) -> Sample {
    let depth = random.length(1, 3);
    let shape = image(random, depth);
    let filter = [random.length(1, 3), random.length(1, 3)];
    let (form, padding) = padding(random, filter);
    let numbers = random.reals(&shape, -8.0, 8.0);
    Sample::new(operation)
        .form(form)
        .image(&shape, numbers)
        .ints(&padding)
        .ints(&[
            random.int(1, 2),
            random.int(1, 2),
            int(filter[1]),
            int(filter[0]),
            random.int(0, 3),
        ])
        .flag()
        .image_output(Quant::As(0))
}

pub fn resize(operation: OperationType, random: &mut Random) -> Sample {
    let shape =
        [random.length(1, 2), random.length(1, 5), random.length(1, 4), random.length(1, 3)];
    let numbers = random.reals(&shape, -8.0, 8.0);
    let sample = Sample::new(operation).image(&shape, numbers);
    let sample = if random.coin() {
        // Scales that float16 has too.
        let scales = [1.0, 1.5, 2.0, 2.75];
        sample.scalars(&[random.pick(&scales), random.pick(&scales)])
    } else {
        sample.form(1).ints(&[random.int(1, 7), random.int(1, 7)])
    };
    let sample = sample.flag().image_output(Quant::As(0));
    match random.int(0, 3) {
        0 => sample,
        1 => sample.ints(&[1]),
        2 => sample.ints(&[0, 0]),
        _ => sample.ints(&[0, 1]),
    }
}
