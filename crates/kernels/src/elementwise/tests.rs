//! Chains against the formulas in double precision.

use super::*;
use proptest::prelude::*;

/// The result of a chain on each instruction set; vectors and what is behind them.
fn results(inputs: &[&[f32]], shapes: &[&[usize]], steps: &[Step]) -> Vec<Vec<f32>> {
    InstructionSet::available()
        .map(|set| {
            let chain = Chain::prepare(set, shapes, steps);
            let mut output = vec![f32::NAN; chain.walk.elements()];
            chain.run(&mut Team::new(2), inputs, &mut output);
            output
        })
        .collect()
}

fn assert_near(found: f32, expected: f64, context: &str) {
    let is_near = (f64::from(found) - expected).abs() <= 1e-6 * expected.abs() + 1e-7;
    let found_wide = f64::from(found);
    assert!(
        is_near || found_wide == expected || (found.is_nan() && expected.is_nan()),
        "{context}: {found} instead of {expected}"
    );
}

#[test]
fn functions_of_one_number() {
    type Function = fn(f64) -> f64;
    let functions: [(Unary, Function); 21] = [
        (
            Unary::Clamp { low: -1.0, high: 1.0 },
            |x| if x.is_nan() { x } else { x.clamp(-1.0, 1.0) },
        ),
        (Unary::Square, |x| x * x),
        (Unary::Cube, |x| x * x * x),
        (Unary::Logistic, |x| 1.0 / (1.0 + (-x).exp())),
        (Unary::Tanh, f64::tanh),
        (Unary::Exp, f64::exp),
        (Unary::Log, f64::ln),
        (Unary::Sqrt, f64::sqrt),
        (Unary::Rsqrt, |x| 1.0 / x.sqrt()),
        (Unary::Abs, f64::abs),
        (Unary::Neg, |x| -x),
        (Unary::Floor, f64::floor),
        (Unary::Round, f64::round_ties_even),
        (Unary::Sign, |x| if x.is_nan() || x == 0.0 { x + 0.0 } else { x.signum() }),
        (Unary::Sin, f64::sin),
        (Unary::Cos, f64::cos),
        (Unary::HardSwish, |x| if x <= -3.0 { 0.0 } else { x * (x + 3.0).min(6.0) / 6.0 }),
        (Unary::Swish, |x| x / (1.0 + (-x).exp())),
        (Unary::Elu { alpha: 0.7 }, |x| if x > 0.0 { x } else { 0.7 * x.exp_m1() }),
        (Unary::Gelu, |x| x / 2.0 * libm::erfc(-x / std::f64::consts::SQRT_2)),
        (Unary::GeluTanh, |x| {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
            x / 2.0 * (1.0 + inner.tanh())
        }),
    ];
    let mut random = fastrand::Rng::with_seed(1);
    let mut inputs: Vec<f32> = (0..4099).map(|_| (random.f32() - 0.5) * 16.0).collect();
    inputs[..4].copy_from_slice(&[f32::NAN, 0.0, 3.0, -3.0]);
    for (unary, function) in functions {
        for steps in
            [&[Step::Unary(unary)][..], &[Step::Binary(Binary::Add, 1), Step::Unary(unary)]]
        {
            for result in results(&[&inputs, &[0.0]], &[&[inputs.len()], &[]], steps) {
                for (x, found) in inputs.iter().zip(result) {
                    assert_near(found, function(f64::from(*x)), &format!("{unary:?} of {x}"));
                }
            }
        }
    }
}

#[test]
fn sines_are_those_of_doubles_wherever_they_are_asked_for() {
    let near_angles = (0..200_u16).flat_map(|it| {
        let angle = f32::from(it) * std::f32::consts::FRAC_PI_2;
        [angle.next_down(), angle, angle.next_up(), -angle]
    });
    let mut inputs: Vec<f32> = near_angles.collect();
    let large = [999_999.0, 1e6, 1e7, 1e30, f32::MAX, f32::MIN_POSITIVE, 1e-40, -0.0, 0.0];
    inputs.extend(large.iter().flat_map(|it| [*it, -*it]));
    inputs.extend((0..3000_u16).map(|it| f32::from(it) * 331.77));
    let mut random = fastrand::Rng::with_seed(3);
    inputs.extend((0..40_000).map(|_| (random.f32() - 0.5) * 10_f32.powi(random.i32(-6..6))));
    for (unary, function) in [(Unary::Sin, f64::sin as fn(f64) -> f64), (Unary::Cos, f64::cos)] {
        for result in results(&[&inputs], &[&[inputs.len()]], &[Step::Unary(unary)]) {
            for (x, found) in inputs.iter().zip(result) {
                let exact = function(f64::from(*x));
                let error = crate::vector::tests::ulps(found, exact);
                assert!(error <= 1.5, "{unary:?} of {x}: {found}, {exact}: {error}");
                #[allow(clippy::cast_possible_truncation)]
                let expected = exact as f32;
                let error = (found - expected).abs();
                assert!(
                    error <= expected.abs() * f32::EPSILON,
                    "{unary:?} of {x}: {found}, {expected}"
                );
                assert_eq!(
                    found.is_sign_negative(),
                    expected.is_sign_negative(),
                    "{unary:?} of {x}"
                );
            }
        }
        for found in results(&[&[f32::INFINITY, f32::NAN]], &[&[2]], &[Step::Unary(unary)]) {
            assert!(found.iter().all(|it| it.is_nan()), "{unary:?}: {found:?}");
        }
    }
}

/// Zeros, infinities, integers and fractions, as bases and as exponents, each with each; and numbers of every size.
#[test]
fn powers_are_those_of_doubles() {
    let special = [
        0.0,
        1e-45,
        1e-39,
        1e-20,
        0.3,
        0.5,
        1.0,
        1.0 + f32::EPSILON,
        1.5,
        2.0,
        3.0,
        10.0,
        127.0,
        128.0,
        149.0,
        1e9,
        16_777_215.0,
        16_777_216.0,
        2_147_483_648.0,
        4e9,
        1e38,
        f32::MAX,
    ];
    let finite: Vec<f32> = special.iter().flat_map(|it| [*it, -*it]).collect();
    let all = [&finite[..], &[f32::INFINITY, f32::NEG_INFINITY, f32::NAN]].concat();
    let mut random = fastrand::Rng::with_seed(4);
    let mut any = |size: f32| (random.f32() - 0.5) * size.powf(random.f32() * 2.0 - 1.0);
    let of_any_size: Vec<[f32; 2]> =
        (0..20_000).map(|number| [any(1e38), any([300.0, 3.0][number % 2])]).collect();
    // Infinities are computed in another way, as are those beside them.
    for pairs in [
        finite.iter().flat_map(|x| finite.iter().map(|y| [*x, *y])).collect(),
        all.iter().flat_map(|x| all.iter().map(|y| [*x, *y])).collect(),
        of_any_size.iter().flat_map(|[x, y]| [[*x, *y], [x.abs(), *y]]).collect::<Vec<_>>(),
    ] {
        let [bases, exponents] = [0, 1].map(|at| pairs.iter().map(|it| it[at]).collect::<Vec<_>>());
        let shapes: [&[usize]; 2] = [&[pairs.len()], &[pairs.len()]];
        for (inputs, step) in
            [([&bases, &exponents], Binary::Pow), ([&exponents, &bases], Binary::PowFrom)]
        {
            let inputs = inputs.map(Vec::as_slice);
            for result in results(&inputs, &shapes, &[Step::Binary(step, 1)]) {
                for ([x, y], found) in pairs.iter().zip(result) {
                    let exact = f64::from(*x).powf(f64::from(*y));
                    let error = crate::vector::tests::ulps(found, exact);
                    assert!(error <= 0.51, "{x} to the power of {y}: {found}: {error}");
                    let is_same = found.is_sign_negative() == exact.is_sign_negative();
                    assert!(is_same || found.is_nan(), "{x} to the power of {y}: {found}");
                }
            }
        }
    }
}

#[test]
fn halves_are_rounded_to_even_numbers_and_signs_kept() {
    let inputs =
        [0.5, 1.5, 2.5, -0.5, -1.5, 8_388_607.5, 8_388_608.0, 1e30, -0.2, -0.0, f32::NEG_INFINITY];
    for found in results(&[&inputs], &[&[inputs.len()]], &[Step::Unary(Unary::Round)]) {
        let expected = inputs.map(f32::round_ties_even).map(f32::to_bits);
        assert_eq!(found.iter().map(|it| it.to_bits()).collect::<Vec<_>>(), expected);
    }
    let (inputs, expected) = ([-0.0, 0.0, f32::INFINITY, -1e-40], [0.0_f32, 0.0, 1.0, -1.0]);
    for found in results(&[&inputs], &[&[4]], &[Step::Unary(Unary::Sign)]) {
        let bits = |it: &f32| it.to_bits();
        assert_eq!(found.iter().map(bits).collect::<Vec<_>>(), expected.map(f32::to_bits));
    }
}

#[test]
fn infinities_through_activations() {
    let inputs = [f32::INFINITY, f32::NEG_INFINITY, f32::MAX];
    let table = [
        (Unary::Logistic, [1.0, 0.0, 1.0]),
        (Unary::Tanh, [1.0, -1.0, 1.0]),
        (Unary::Elu { alpha: 1.0 }, [f32::INFINITY, -1.0, f32::MAX]),
        (Unary::Gelu, [f32::INFINITY, 0.0, f32::MAX]),
        (Unary::Clamp { low: 0.0, high: f32::INFINITY }, [f32::INFINITY, 0.0, f32::MAX]),
    ];
    for (unary, expected) in table {
        for found in results(&[&inputs], &[&[3]], &[Step::Unary(unary)]) {
            assert_eq!(found, expected, "{unary:?}");
        }
    }
    // Its gate is 0 there, and times infinity no number.
    for found in results(&[&inputs], &[&[3]], &[Step::Unary(Unary::HardSwish)]) {
        assert!(found[1].is_nan(), "{found:?}");
        assert_eq!([found[0], found[2]], [f32::INFINITY, f32::MAX]);
    }
}

#[test]
fn functions_of_two_numbers() {
    type Function = fn(f64, f64) -> f64;
    let functions: [(Binary, Function); 11] = [
        (Binary::Add, |x, y| x + y),
        (Binary::Sub, |x, y| x - y),
        (Binary::SubFrom, |x, y| y - x),
        (Binary::Mul, |x, y| x * y),
        (Binary::Div, |x, y| x / y),
        (Binary::DivFrom, |x, y| y / x),
        (Binary::Maximum, |x, y| if x.is_nan() || y.is_nan() { f64::NAN } else { x.max(y) }),
        (Binary::Minimum, |x, y| if x.is_nan() || y.is_nan() { f64::NAN } else { x.min(y) }),
        (Binary::Prelu, |x, y| if x < 0.0 { x * y } else { x }),
        (Binary::Pow, f64::powf),
        (Binary::PowFrom, |x, y| y.powf(x)),
    ];
    let mut random = fastrand::Rng::with_seed(2);
    let mut any = |length: usize| (0..length).map(|_| random.f32() * 8.0 - 4.0).collect::<Vec<_>>();
    let (mut x, mut y) = (any(3 * 700), any(700));
    (x[5], y[9]) = (f32::NAN, f32::NAN);
    for (binary, function) in functions {
        let step = Step::Binary(binary, 1);
        let twice = [Step::Unary(Unary::Neg), Step::Unary(Unary::Neg), step];
        for steps in [&[step][..], &twice] {
            for result in results(&[&x, &y], &[&[3, 700], &[700]], steps) {
                for (index, found) in result.into_iter().enumerate() {
                    let (x, y) = (f64::from(x[index]), f64::from(y[index % 700]));
                    // What comes out of float32 may be infinite before that of float64 is.
                    assert_near(found, function(x, y), &format!("{binary:?} of {x} and {y}"));
                }
            }
            for result in results(&[&x, &y[..1]], &[&[3, 700], &[1]], steps) {
                for (x, found) in x.iter().zip(result) {
                    assert_near(found, function((*x).into(), y[0].into()), &format!("{binary:?}"));
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn chains_are_their_steps(
        rows in 0..5_usize,
        columns in 0..40_usize,
        seed: u64,
    ) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut any = |length: usize| (0..length).map(|_| random.f32()).collect::<Vec<_>>();
        let (x, row, scalars) = (any(rows * columns), any(columns), any(rows));
        let steps = [
            Step::Binary(Binary::Add, 1),
            Step::Unary(Unary::Square),
            Step::Binary(Binary::Mul, 2),
            Step::Binary(Binary::Sub, 0),
        ];
        let shapes: [&[usize]; 3] = [&[rows, columns], &[columns], &[rows, 1]];
        for result in results(&[&x, &row, &scalars], &shapes, &steps) {
            prop_assert_eq!(result.len(), rows * columns);
            for (index, found) in result.into_iter().enumerate() {
                let (x, row) = (f64::from(x[index]), f64::from(row[index % columns]));
                let expected = (x + row).powi(2) * f64::from(scalars[index / columns]) - x;
                prop_assert!((f64::from(found) - expected).abs() < 1e-5);
            }
        }
    }
}

#[test]
fn comparisons_broadcast() {
    let pairs = pairs::Broadcast::prepare(InstructionSet::best(), [&[2, 3], &[3]]);
    let mut output = [false; 6];
    let inputs: [&[i32]; 2] = [&[1, 2, 3, 4, 5, 6], &[2, 2, 5]];
    pairs.by_element(&mut Team::alone(), inputs, &mut output, |a, b| a < b);
    assert_eq!(output, [true, false, true, false, false, false]);
}
