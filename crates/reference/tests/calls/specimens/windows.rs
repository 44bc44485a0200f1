//! Operations that slide over images, and those that resize them.

use crate::calls::dice::Dice;
use crate::calls::specimen::{Given, Layout, Quant, Specimen};
use nnhal_hal::OperationType;

fn int(length: u32) -> i32 {
    i32::try_from(length).unwrap()
}

/// Output steps of a convolution: mostly above those of products, sometimes much finer.
fn steps_of_sums(dice: &mut Dice) -> Quant {
    if dice.one_in(5) {
        return Quant::Fit(0.02);
    }
    Quant::FitAbove(dice.pick(&[1.0, 1.2, 0.5]), 0, 1)
}

fn image(dice: &mut Dice, channels: u32) -> [u32; 4] {
    [dice.length(1, 2), dice.length(5, 7), dice.length(5, 6), channels]
}

/// Either four paddings, each less than the filter, or a scheme; and the form that has it.
fn padding(dice: &mut Dice, filter: [u32; 2]) -> (usize, Vec<i32>) {
    if dice.coin() {
        let [height, width] = filter.map(|length| int(length) - 1);
        let explicit = [width, width, height, height].map(|most| dice.int(0, most));
        (0, explicit.to_vec())
    } else {
        (1, vec![dice.int(1, 2)])
    }
}

/// A filter and its bias.
fn weights(specimen: Specimen, filter: [u32; 4], channel_dim: u32, dice: &mut Dice) -> Specimen {
    let depth = filter[channel_dim as usize];
    let numbers = dice.reals(&filter, -2.0, 2.0);
    let bias = dice.reals(&[depth], -2.0, 2.0);
    specimen
        .input(Given { channel_dim, ..Given::tensor(&filter, numbers) })
        .tensor(&[depth], bias)
        .stored(Quant::Product(0, 1))
}

fn dilations(specimen: Specimen, dice: &mut Dice) -> Specimen {
    let specimen = specimen.flag();
    if dice.coin() {
        return specimen;
    }
    specimen.ints(&[dice.int(1, 2), dice.int(1, 2)])
}

pub fn conv_2d(dice: &mut Dice) -> Specimen {
    let depth = dice.length(1, 3);
    let shape = image(dice, depth);
    let filter = [dice.length(1, 3), dice.length(1, 3), dice.length(1, 3), depth];
    let (form, padding) = padding(dice, [filter[1], filter[2]]);
    let numbers = dice.reals(&shape, -3.0, 3.0);
    let specimen = Specimen::new(OperationType::Conv2d).form(form).image(&shape, numbers);
    let specimen = weights(specimen, filter, 0, dice).ints(&padding).ints(&[
        dice.int(1, 2),
        dice.int(1, 2),
        dice.int(0, 3),
    ]);
    dilations(specimen, dice).image_output(steps_of_sums(dice))
}

pub fn depthwise_conv_2d(dice: &mut Dice) -> Specimen {
    let (depth, multiplier) = (dice.length(1, 3), dice.length(1, 2));
    let shape = image(dice, depth);
    let filter = [1, dice.length(1, 3), dice.length(1, 3), depth * multiplier];
    let (form, padding) = padding(dice, [filter[1], filter[2]]);
    let numbers = dice.reals(&shape, -3.0, 3.0);
    let specimen = Specimen::new(OperationType::DepthwiseConv2d).form(form).image(&shape, numbers);
    let specimen = weights(specimen, filter, 3, dice).ints(&padding).ints(&[
        dice.int(1, 2),
        dice.int(1, 2),
        int(multiplier),
        dice.int(0, 3),
    ]);
    dilations(specimen, dice).image_output(steps_of_sums(dice))
}

pub fn grouped_conv_2d(dice: &mut Dice) -> Specimen {
    let (groups, depth) = (dice.length(1, 3), dice.length(1, 2));
    let shape = image(dice, groups * depth);
    let filter = [groups * dice.length(1, 2), dice.length(1, 3), dice.length(1, 3), depth];
    let (form, padding) = padding(dice, [filter[1], filter[2]]);
    let numbers = dice.reals(&shape, -3.0, 3.0);
    let specimen = Specimen::new(OperationType::GroupedConv2d).form(form).image(&shape, numbers);
    weights(specimen, filter, 0, dice)
        .ints(&padding)
        .ints(&[dice.int(1, 2), dice.int(1, 2), int(groups), dice.int(0, 3)])
        .flag()
        .image_output(steps_of_sums(dice))
}

pub fn transpose_conv_2d(dice: &mut Dice) -> Specimen {
    let depth = dice.length(1, 3);
    let shape = [dice.length(1, 2), dice.length(1, 4), dice.length(1, 3), depth];
    let filter = [dice.length(1, 3), dice.length(1, 3), dice.length(1, 3), depth];
    let strides = [dice.length(1, 3), dice.length(1, 2)];
    let numbers = dice.reals(&shape, -3.0, 3.0);
    let specimen = Specimen::new(OperationType::TransposeConv2d).image(&shape, numbers);
    let specimen = weights(specimen, filter, 0, dice);
    let ends = [int(strides[1]), int(strides[0]), dice.int(0, 3)];
    let specimen = if dice.coin() {
        // Paddings less than half the filter leave something.
        let most = [filter[2], filter[2], filter[1], filter[1]].map(|length| (int(length) - 1) / 2);
        specimen.ints(&most.map(|most| dice.int(0, most)))
    } else {
        let scheme = dice.int(1, 2);
        let output = |axis: usize| {
            let (length, stride) = (shape[axis + 1], strides[axis]);
            if scheme == 1 { length * stride } else { (length - 1) * stride + filter[axis + 1] }
        };
        let output = [shape[0], output(0), output(1), filter[0]];
        let lengths = Given::tensor(&[4], output.map(f64::from).to_vec());
        specimen.form(1).input(Given { layout: Layout::ShapeOfImage, ..lengths }).ints(&[scheme])
    };
    specimen.ints(&ends).flag().image_output(steps_of_sums(dice))
}

pub fn pooling(operation: OperationType, dice: &mut Dice) -> Specimen {
    let depth = dice.length(1, 3);
    let shape = image(dice, depth);
    let filter = [dice.length(1, 3), dice.length(1, 3)];
    let (form, padding) = padding(dice, filter);
    let numbers = dice.reals(&shape, -8.0, 8.0);
    Specimen::new(operation)
        .form(form)
        .image(&shape, numbers)
        .ints(&padding)
        .ints(&[dice.int(1, 2), dice.int(1, 2), int(filter[1]), int(filter[0]), dice.int(0, 3)])
        .flag()
        .image_output(Quant::As(0))
}

pub fn resize(operation: OperationType, dice: &mut Dice) -> Specimen {
    let shape = [dice.length(1, 2), dice.length(1, 5), dice.length(1, 4), dice.length(1, 3)];
    let numbers = dice.reals(&shape, -8.0, 8.0);
    let specimen = Specimen::new(operation).image(&shape, numbers);
    let specimen = if dice.coin() {
        // Scales that float16 has too.
        let scales = [1.0, 1.5, 2.0, 2.75];
        specimen.scalars(&[dice.pick(&scales), dice.pick(&scales)])
    } else {
        specimen.form(1).ints(&[dice.int(1, 7), dice.int(1, 7)])
    };
    let specimen = specimen.flag().image_output(Quant::As(0));
    match dice.int(0, 3) {
        0 => specimen,
        1 => specimen.ints(&[1]),
        2 => specimen.ints(&[0, 0]),
        _ => specimen.ints(&[0, 1]),
    }
}
