//! Layers against their definition, on all instruction sets.

use super::FullyConnected;
use crate::fully_connected::Sizes;
use crate::{Epilogue, InstructionSet, Line, Preparation, SavedWeights, Team};
use bytemuck::Zeroable;
use proptest::prelude::*;

/// By the definition.
#[allow(clippy::cast_possible_truncation)] // To integers of 9 bits, and rounded once.
fn expected(
    Sizes { inputs, units, .. }: Sizes,
    input: &[f32],
    weights: &[u8],
    scales: &[f32],
    bias: &[f32],
    epilogue: Epilogue,
) -> Vec<f32> {
    let mut outputs = Vec::new();
    for row in input.chunks_exact(inputs) {
        let least = row.iter().fold(0.0_f32, |least, x| least.min(*x));
        let greatest = row.iter().fold(0.0_f32, |greatest, x| greatest.max(*x));
        let is_finite = row.iter().all(|x| x.is_finite()) && (greatest - least).is_finite();
        let factor = 255.0 / (greatest - least);
        let factor = if factor.is_finite() { factor } else { 1.0 };
        let (low, high) = (least * factor, greatest * factor);
        let zero = if (-128.0 + low) + (127.0 + high) > 0.0 { -128.0 - low } else { 127.0 - high };
        let zero = zero.clamp(-128.0, 127.0).round_ties_even();
        for unit in 0..units {
            let mut sum = 0_i32;
            for (x, weight) in row.iter().zip(&weights[unit * inputs..]) {
                let q = (x * factor).max(-128.0 - zero).min(127.0 - zero).round_ties_even();
                sum = sum.wrapping_add(q as i32 * i32::from(weight.cast_signed()));
            }
            let scale = scales[if scales.len() == 1 { 0 } else { unit }];
            let real =
                f64::from(sum) / f64::from(factor) * f64::from(scale) + f64::from(bias[unit]);
            outputs.push(epilogue.apply_to(if is_finite { real as f32 } else { f32::NAN }));
        }
    }
    outputs
}

fn assert_close(found: &[f32], expected: &[f32], size: f32, what: &str) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let is_same = found.is_nan() && expected.is_nan()
            || (found - expected).abs() <= 1e-6 * (size + expected.abs());
        assert!(is_same, "{found} and not {expected} {what}");
    }
}

fn run(layer: &FullyConnected, threads: usize, input: &[f32]) -> Vec<f32> {
    let Sizes { rows, units, .. } = layer.sizes();
    let mut output = vec![7.0; rows * units];
    let mut scratch = vec![Line::zeroed(); layer.scratch_bytes() / 64];
    layer.run(&mut Team::new(threads), input, &mut output, &mut scratch);
    output
}

/// Numbers of all sizes, zeros and strange ones, by row.
fn rows_of(random: &mut fastrand::Rng, rows: usize, inputs: usize) -> Vec<f32> {
    let mut all = Vec::new();
    for _ in 0..rows {
        let kind = random.u32(..8);
        let mut row: Vec<f32> = (0..inputs)
            .map(|_| match kind {
                0 => 0.0,
                1 => random.f32() + 0.5,
                2 => -random.f32(),
                3 => random.f32() * 1e-39,
                _ => (random.f32() - 0.3) * 8.0,
            })
            .collect();
        if kind == 4 && inputs > 0 {
            let strange = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY][random.usize(..3)];
            row[random.usize(..inputs)] = strange;
        }
        if kind == 5 && inputs > 1 {
            (row[0], row[inputs - 1]) = (f32::MAX, f32::MIN);
        }
        all.extend(row);
    }
    all
}

proptest! {
    #[test]
    fn all_instruction_sets_compute_the_definition(
        rows in prop_oneof![Just(1_usize), 0_usize..60, 90_usize..110],
        inputs in prop_oneof![1_usize..40, 60_usize..300],
        units in prop_oneof![1_usize..40, 40_usize..300],
        by_unit: bool, clamped: bool, seed: u64,
    ) {
        let random = &mut fastrand::Rng::with_seed(seed);
        let sizes = Sizes { rows, inputs, units };
        let input = rows_of(random, rows, inputs);
        let weights: Vec<u8> = (0..units * inputs).map(|_| random.u8(..)).collect();
        let scales: Vec<f32> =
            (0..if by_unit { units } else { 1 }).map(|_| random.f32() * 0.01 + 0.001).collect();
        let bias: Vec<f32> = (0..units).map(|_| random.f32() - 0.5).collect();
        let epilogue = if clamped { Epilogue::RELU6 } else { Epilogue::NONE };
        let expected = expected(sizes, &input, &weights, &scales, &bias, epilogue);
        for set in InstructionSet::available() {
            for threads in [1, 2] {
                let mut preparation = Preparation::new(set, threads);
                let layer = FullyConnected::prepare(
                    sizes, &weights, &scales, &bias, epilogue, &mut preparation,
                ).unwrap();
                let packed = preparation.take_packed();
                drop(preparation);
                let found = run(&layer, threads, &input);
                assert_close(&found, &expected, 1.0, set.to_string().as_str());
                let saved: Vec<u8> = packed.iter().flat_map(|it| it.bytes().to_vec()).collect();
                let saved = SavedWeights::new(saved.into());
                let mut preparation = Preparation::restore(set, threads, saved);
                let restored = FullyConnected::prepare(
                    sizes, &[], &scales, &bias, epilogue, &mut preparation,
                ).unwrap();
                preparation.finish().unwrap();
                let again = run(&restored, threads, &input);
                prop_assert!(bytemuck::cast_slice::<_, u32>(&again) == bytemuck::cast_slice::<_, u32>(&found));
            }
        }
    }
}

#[test]
fn values_by_hand() {
    // 0 to 255, each a step: q - zero is the input.
    let input: Vec<f32> = vec![0.0, 255.0, 3.0, 1.5];
    let weights = [1, 0xFF, 100, 1, 0, 2, 0, 0x80];
    for set in InstructionSet::available() {
        let mut preparation = Preparation::new(set, 1);
        let sizes = Sizes { rows: 1, inputs: 4, units: 2 };
        let layer = FullyConnected::prepare(
            sizes,
            &weights,
            &[0.5, 0.25],
            &[10.0, -1.0],
            Epilogue::NONE,
            &mut preparation,
        )
        .unwrap();
        drop(preparation);
        // (-255 + 300 + 2) / 2 + 10; (510 - 256) / 4 - 1.
        assert_eq!(run(&layer, 1, &input), [33.5, 62.5], "{set}");
    }
}

#[test]
fn what_is_not_finite_stays_in_its_row() {
    let input = [1.0, f32::INFINITY, 1.0, 1.0, f32::NAN, 0.0, 0.0, 0.0];
    for set in InstructionSet::available() {
        let mut preparation = Preparation::new(set, 1);
        let sizes = Sizes { rows: 4, inputs: 2, units: 1 };
        let layer = FullyConnected::prepare(
            sizes,
            &[1, 1],
            &[1.0],
            &[0.5],
            Epilogue::RELU,
            &mut preparation,
        )
        .unwrap();
        drop(preparation);
        let found = run(&layer, 1, &input);
        assert!(found[0].is_nan() && found[2].is_nan(), "{set}: {found:?}");
        assert_close(&[found[1], found[3]], &[2.5, 0.5], 1.0, set.to_string().as_str());
    }
}

#[test]
fn sizes_beyond_memory_and_beyond_the_limit_are_refused() {
    let refused = |rows, limit: usize| {
        let mut preparation = Preparation::new(InstructionSet::best(), 1).with_limit(limit);
        let sizes = Sizes { rows, inputs: 8, units: 4 };
        let (bias, weights) = ([0.0; 4], [0; 32]);
        let layer = FullyConnected::prepare(
            sizes,
            &weights,
            &[1.0],
            &bias,
            Epilogue::NONE,
            &mut preparation,
        );
        layer.err().map(|it| it.what)
    };
    let most = isize::MAX.unsigned_abs();
    assert_eq!(refused(1, most), None);
    assert_eq!(refused(1, 8), Some("scales of weights"));
    assert_eq!(refused(1 << 20, 1 << 20), Some("scratch memory"));
    assert!(refused(usize::MAX / 2, most).is_some());
}
