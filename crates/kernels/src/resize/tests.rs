//! Resizing against the mean of four pixels in double precision.

use super::*;
use crate::InstructionSet;
use proptest::prelude::*;
use std::sync::Arc;

fn places(random: &mut fastrand::Rng, input: usize, output: usize, is_dyadic: bool) -> Vec<Place> {
    (0..output)
        .map(|_| {
            let lower = random.usize(..input);
            let weight = if is_dyadic { f32::from(random.u8(0..=8)) / 8.0 } else { random.f32() };
            Place { lower, upper: (lower + 1).min(input - 1), weight }
        })
        .collect()
}

fn prepare<T: Element>(
    set: InstructionSet,
    batch: usize,
    input: [usize; 2],
    channels: usize,
    places: &[Vec<Place>; 2],
) -> Resize<T> {
    let sizes = [input, [places[0].len(), places[1].len()]];
    let place = |axis: usize, index: usize| places[axis][index];
    Resize::prepare(&mut Preparation::new(set, 1), batch, sizes, channels, place).unwrap()
}

#[test]
fn places_count_against_the_limit_and_end_with_the_deadline() {
    let set = InstructionSet::best();
    let place = |_, _| Place { lower: 0, upper: 0, weight: 0.0 };
    let prepare = |preparation: &mut Preparation, output| {
        Resize::<f32>::prepare(preparation, 1, [[1, 1], output], 1, place)
    };
    let mut limited = Preparation::new(set, 1).with_limit(1_000_000);
    assert!(prepare(&mut limited, [1 << 20, 1]).is_err());
    assert!(limited.take_refusal().is_some());
    assert!(prepare(&mut limited, [1, 1 << 20]).is_err());
    assert!(prepare(&mut limited, [100, 100]).is_ok());
    let mut over = Preparation::new(set, 1).until(Arc::new(|| true));
    let [rows, columns] = prepare(&mut over, [1 << 20; 2]).unwrap().places.map(|it| it.len());
    assert!(rows < 1 << 20 && columns < 1 << 20, "{rows} by {columns} places after the deadline");
}

/// Input, output, channels.
type Sizes = ([usize; 2], [usize; 2], usize);

fn check(batch: usize, (input, output, channels): Sizes, is_dyadic: bool, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let places =
        [0, 1].map(|axis: usize| places(&mut random, input[axis], output[axis], is_dyadic));
    let bytes: Vec<i8> =
        (0..batch * input[0] * input[1] * channels).map(|_| random.i8(..)).collect();
    let floats: Vec<f32> = bytes.iter().map(|it| f32::from(*it)).collect();
    let signless: Vec<u8> = bytes.iter().map(|it| it.cast_unsigned() ^ 128).collect();
    let mut expected = Vec::new();
    for image in 0..batch {
        for vertical in &places[0] {
            for horizontal in &places[1] {
                for channel in 0..channels {
                    let at = |y: usize, x: usize| {
                        let pixel = (image * input[0] + y) * input[1] + x;
                        f64::from(floats[pixel * channels + channel])
                    };
                    let mix = |a: f64, b: f64, weight: f32| {
                        a * (1.0 - f64::from(weight)) + b * f64::from(weight)
                    };
                    let row = |y| {
                        mix(at(y, horizontal.lower), at(y, horizontal.upper), horizontal.weight)
                    };
                    expected.push(mix(row(vertical.lower), row(vertical.upper), vertical.weight));
                }
            }
        }
    }
    for set in InstructionSet::available() {
        let size = expected.len();
        let (mut real, mut signed, mut unsigned) = (vec![0.5; size], vec![9; size], vec![9; size]);
        let mut team = Team::new(2);
        prepare(set, batch, input, channels, &places).run(&mut team, &floats, &mut real);
        prepare(set, batch, input, channels, &places).run(&mut team, &bytes, &mut signed);
        prepare(set, batch, input, channels, &places).run(&mut team, &signless, &mut unsigned);
        for (at, expected) in expected.iter().enumerate() {
            assert!((f64::from(real[at]) - expected).abs() < 1e-4, "{set}");
            #[allow(clippy::cast_possible_truncation)]
            let stored = (expected + 0.5).floor() as i8;
            assert_eq!(signed[at], stored, "{set} {expected}");
            assert_eq!(unsigned[at], stored.cast_unsigned() ^ 128, "{set} {expected}");
        }
    }
}

#[test]
fn an_infinity_does_not_pass_a_weight_of_0() {
    let place = |weight| vec![Place { lower: 0, upper: 1, weight }];
    let inputs = [1.0, 2.0, 3.0, f32::INFINITY];
    for set in InstructionSet::available() {
        for (vertical, horizontal, expected) in [(0.0, 0.5, 1.5), (0.5, 0.0, 2.0), (0.0, 0.0, 1.0)]
        {
            let resize = prepare(set, 1, [2, 2], 1, &[place(vertical), place(horizontal)]);
            let mut output = [0.0];
            resize.run(&mut Team::alone(), &inputs, &mut output);
            assert_eq!(output, [expected]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn all_sizes(
        batch in 0..3_usize,
        input in proptest::array::uniform2(1..6_usize),
        output in proptest::array::uniform2(0..8_usize),
        channels in prop_oneof![0..10_usize, 14..40_usize],
        is_dyadic: bool,
        seed: u64,
    ) {
        check(batch, (input, output, channels), is_dyadic, seed);
    }
}
