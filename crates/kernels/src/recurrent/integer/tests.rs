//! Integer LSTMs: functions against the real ones, instruction sets against each other. That the
//! numbers are the definition's to the bit is seen where the reference is at hand, in crate `cpu`.

use super::fixed_point::{logistic, tanh};
use super::*;
use crate::InstructionSet;
use crate::preparation::prepared_twice;
use crate::team::Team;
use crate::vector::{Isa, Kernel};
use proptest::prelude::*;

/// A function of all numbers of 16 bits.
struct OfAll(u32, bool);

impl Kernel for OfAll {
    type Output = Vec<i32>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Vec<i32> {
        let mut all: Vec<i32> = (-32768..32768).collect();
        let Self(integer_bits, is_tanh) = self;
        for_all(&mut Team::alone().pace(), simd, &mut all, |it| {
            if is_tanh { tanh(simd, it, integer_bits) } else { logistic(simd, it, integer_bits) }
        });
        all
    }
}

#[test]
fn functions_are_near_the_real_ones() {
    for integer_bits in 0..7 {
        for is_tanh in [false, true] {
            let found = Isa::of(InstructionSet::Portable).run(OfAll(integer_bits, is_tanh));
            for (raw, found) in (-32768_i32..).zip(&found) {
                let x = f64::from(raw) * 2_f64.powi(integer_bits.cast_signed() - 15);
                let expected = if is_tanh { x.tanh() } else { 1.0 / (1.0 + (-x).exp()) };
                let error = f64::from(*found) - expected * 32768.0;
                assert!(
                    error.abs() < 12.1,
                    "of {raw} with {integer_bits}: {found}, off by {error}"
                );
            }
            for set in InstructionSet::available() {
                assert_eq!(Isa::of(set).run(OfAll(integer_bits, is_tanh)), found, "{set}");
            }
        }
    }
}

fn bytes(random: &mut fastrand::Rng, count: usize) -> Vec<u8> {
    (0..count).map(|_| random.u8(..)).collect()
}

fn signed(bytes: &[u8]) -> &[i8] {
    bytemuck::cast_slice(bytes)
}

fn shorts(random: &mut fastrand::Rng, count: usize) -> Vec<i16> {
    (0..count).map(|_| random.i16(..)).collect()
}

fn biases(random: &mut fastrand::Rng, count: usize) -> Vec<i32> {
    (0..count).map(|_| random.i32(-100_000..100_000)).collect()
}

/// What comes out must be the same for each instruction set and number of threads.
fn check_all<R: PartialEq + std::fmt::Debug>(run: impl Fn(InstructionSet, usize) -> R) {
    let expected = run(InstructionSet::Portable, 1);
    for set in InstructionSet::available() {
        for threads in [1, 2] {
            assert_eq!(run(set, threads), expected, "{set}, {threads} threads");
        }
    }
}

fn check_16(shape: StepShape, real: f64, seed: u64) {
    let StepShape { batch, input, units, .. } = shape;
    let random = &mut fastrand::Rng::with_seed(seed);
    let weights = [(); 4].map(|()| {
        (bytes(random, units * input), bytes(random, units * units), biases(random, units))
    });
    let gates =
        weights.each_ref().map(|(input, recurrent, bias)| Gate16 { input, recurrent, bias });
    let settings =
        Settings16 { zero_point: random.u8(..), multiplier: Multiplier::from_real(real) };
    let (x, h) = (bytes(random, batch * input), bytes(random, batch * units));
    let c = shorts(random, batch * units);
    check_all(|set, threads| {
        let lstm = prepared_twice(set, threads, |preparation| {
            Lstm16::prepare(shape, gates, settings, preparation)
        });
        let (mut cell, mut output) = (vec![9; c.len()], vec![9; h.len()]);
        let step = Step {
            input: &x,
            output_before: &h,
            cell_before: &c,
            cell: &mut cell,
            output: &mut output,
        };
        let scratch = &mut vec![9; lstm.scratch_elements()];
        lstm.run(&mut Team::new(threads), step, scratch);
        (cell, output)
    });
}

fn check_8(shape: StepShape, parts: u8, seed: u64) {
    let has = |bit: u8| parts >> bit & 1 == 1;
    let StepShape { batch, input, units, output } = shape;
    let random = &mut fastrand::Rng::with_seed(seed);
    let weights = [(); 4].map(|()| {
        let matrices = (bytes(random, units * input), bytes(random, units * output));
        (matrices, shorts(random, units), shorts(random, units), biases(random, units))
    });
    let (projection, bias) = (bytes(random, output * units), biases(random, output));
    let factor = |real: f64| Multiplier::from_real(real);
    let gates = weights.each_ref().map(|((input, recurrent), peephole, norm, bias)| Gate8 {
        input: Term { weights: signed(input), multiplier: factor(0.01) },
        recurrent: Term { weights: signed(recurrent), multiplier: factor(1.5) },
        peephole: has(1).then_some(Term { weights: peephole, multiplier: factor(1e-5) }),
        layer_norm: has(2).then_some(Term { weights: norm, multiplier: factor(3e-5) }),
        bias,
    });
    let weights = Weights8 {
        input: has(0).then_some(gates[0]),
        forget: gates[1],
        cell: Gate8 { peephole: None, ..gates[2] },
        output: gates[3],
        projection: has(3).then_some(Projection8 {
            weights: Term { weights: signed(&projection), multiplier: factor(0.003) },
            bias: has(4).then_some(&bias),
        }),
    };
    let settings = Settings8 {
        input_zero_point: random.i8(..),
        output_zero_point: random.i8(..),
        hidden_zero_point: random.i8(..),
        hidden: factor(2_f64.powi(-22)),
        cell_exponent: random.i32(-15..=-9),
        cell_clip: has(5).then_some(10_000),
        projection_clip: has(5).then_some(90),
    };
    let (x, h) = (bytes(random, batch * input), bytes(random, batch * output));
    let c = shorts(random, batch * units);
    check_all(|set, threads| {
        let lstm = prepared_twice(set, threads, |preparation| {
            Lstm8::prepare(shape, &weights, settings, preparation)
        });
        let (mut cell, mut output) = (vec![9; c.len()], vec![9; h.len()]);
        let step = Step {
            input: signed(&x),
            output_before: signed(&h),
            cell_before: &c,
            cell: &mut cell,
            output: &mut output,
        };
        let scratch = &mut vec![9; lstm.scratch_elements()];
        lstm.run(&mut Team::new(threads), step, scratch);
        (cell, output)
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn multiplying_many_is_multiplying_each(
        numbers: Vec<i32>, real in prop_oneof![0.0..0.999_f64, 1.0..1e9, Just(0.5), Just(0.25)],
    ) {
        let multiplier = Multiplier::from_real(real);
        let mut found = numbers.clone();
        multiply_all(multiplier, &mut found);
        let each: Vec<i32> = numbers.iter().map(|number| multiplier.apply(*number)).collect();
        prop_assert_eq!(found, each);
    }

    #[test]
    fn all_instruction_sets_agree(
        batch in 0..3_usize, input in 1..20_usize,
        units in prop_oneof![1..40_usize, 150..200_usize], output in 1..40_usize,
        parts in 0..64_u8, real in 1e-4..4.0_f64, seed: u64,
    ) {
        check_16(StepShape { batch, input, units, output: units }, real, seed);
        let output = if parts & 8 == 0 { units } else { output };
        check_8(StepShape { batch, input, units, output }, parts, seed);
    }
}
