//! Functions of all pairs of 8-bit numbers against their definitions.

use super::sum::{Exact, Floats};
use super::trial::Variant;
use super::*;
use crate::InstructionSet;
use crate::elementwise::Pairs;
use crate::elementwise::pairs::PairFunction;
use crate::multiplier::Multiplier;
use crate::quantization::Quantization;
use crate::team::Team;
use crate::vector::Byte;
use proptest::prelude::*;

fn quantization(scale: f32, zero_point: i32) -> Quantization {
    Quantization { scale, zero_point }
}

fn all<T: Byte>() -> Vec<T> {
    (T::RANGE.0..=T::RANGE.1).map(T::nearest).collect()
}

/// Of each number with all others.
fn of_all<T: Byte>(function: impl Fn(T, T) -> T) -> Vec<T> {
    let all = all();
    all.iter().flat_map(|x| all.iter().map(|y| function(*x, *y))).collect()
}

/// Checks a function with what it makes of all pairs: the second operand is repeated, the first one is, none is.
fn check<T: Byte, F: PairFunction<Input = T, Output = T> + Clone>(
    set: InstructionSet,
    function: &F,
    expected: &[T],
) {
    let all: Vec<T> = all();
    let results = |shapes: [&[usize]; 2], [a, b]: [&[T]; 2], count: usize| {
        let pairs = Pairs::prepare(set, shapes, function.clone());
        let mut found = vec![T::zeroed(); count];
        pairs.run(&mut Team::new(2), a, b, &mut found);
        found.into_iter().enumerate()
    };
    for (index, found) in results([&[256, 1], &[256]], [&all; 2], 256 * 256) {
        assert_eq!(found, expected[index], "{set} {function:?}");
    }
    for (index, found) in results([&[256], &[256, 1]], [&all; 2], 256 * 256) {
        assert_eq!(found, expected[index % 256 * 256 + index / 256], "{set} {function:?}");
    }
    for (index, found) in results([&[77], &[77]], [&all[90..167], &all[179..]], 77) {
        assert_eq!(found, expected[(90 + index) * 256 + 179 + index], "{set} {function:?}");
    }
}

/// Gives the variants that were chosen.
fn check_sum<T: Byte>(
    inputs: [Quantization; 2],
    output: Quantization,
    sign: Sign,
    range: (i32, i32),
) -> Vec<Variant<Floats>> {
    let exact = Exact::new(inputs, output, sign, range);
    let expected = of_all(|x: T, y| exact.scalar(x, y));
    let check_with = |set| {
        let mut sum = QuantizedSum::<T>::new(set, inputs, output, sign, range);
        let variant = sum.variant;
        check(set, &sum, &expected);
        if variant != Variant::Scalar {
            sum.variant = Variant::Integers;
            check(set, &sum, &expected);
        }
        variant
    };
    InstructionSet::available().map(check_with).collect()
}

/// Gives how many instruction sets compute it in floats.
fn check_product<T: Byte>(
    inputs: [Quantization; 2],
    output: Quantization,
    range: (i32, i32),
) -> usize {
    let check_with = |set| {
        let mut product = QuantizedProduct::<T>::new(set, inputs, output, range);
        let expected = of_all(|x, y| product.scalar(x, y));
        check(set, &product, &expected);
        let variant = product.variant;
        if variant != Variant::Scalar {
            product.variant = Variant::Integers;
            check(set, &product, &expected);
        }
        usize::from(matches!(variant, Variant::Floats(_)))
    };
    InstructionSet::available().map(check_with).sum()
}

fn check_prelu<T: Byte>(inputs: [Quantization; 2], output: Quantization) {
    let [of_x, of_alpha] = inputs;
    let expected = of_all(|x: T, alpha| {
        let (x, alpha) = (x.wide() - of_x.zero_point, alpha.wide() - of_alpha.zero_point);
        let product = f64::from(of_x.scale * of_alpha.scale) / f64::from(output.scale);
        let scaled = if x >= 0 {
            Multiplier::from_real(f64::from(of_x.scale / output.scale)).apply(x)
        } else {
            Multiplier::from_real(product).apply(x * alpha)
        };
        T::nearest(scaled.saturating_add(output.zero_point))
    });
    for set in InstructionSet::available() {
        check(set, &QuantizedPrelu::<T>::new(set, inputs, output), &expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 12 }))]

    #[test]
    fn all_pairs_of_operands(
        scales in proptest::array::uniform3(prop_oneof![0.001..1.0_f32, Just(0.5), Just(0.25)]),
        zeros in proptest::array::uniform3(0..256),
        minus: bool,
    ) {
        let sign = if minus { Sign::Minus } else { Sign::Plus };
        let of = |offset| [0, 1, 2].map(|at: usize| quantization(scales[at], zeros[at] - offset));
        let ([a, b, output], unsigned) = (of(0), (3, 250));
        check_sum::<u8>([a, b], output, sign, unsigned);
        check_product::<u8>([a, b], output, unsigned);
        check_prelu::<u8>([a, b], output);
        let ([a, b, output], signed) = (of(128), (-128, 127));
        check_sum::<i8>([a, b], output, sign, signed);
        check_product::<i8>([a, b], output, signed);
        check_prelu::<i8>([a, b], output);
    }
}

#[test]
fn floats_serve_most_models() {
    let mut random = fastrand::Rng::with_seed(3);
    let (mut floats, mut of_products) = (0, 0);
    for _ in 0..20 {
        let mut any = || quantization(0.02 + 0.1 * random.f32(), random.i32(-128..20));
        let variants = check_sum::<i8>([any(), any()], any(), Sign::Plus, (-128, 127));
        floats += usize::from(matches!(variants.last(), Some(Variant::Floats(_))));
        let (a, b, mut output) = (any(), any(), any());
        // As much of the range is used as models use.
        output.scale = a.scale * b.scale * (40.0 + 160.0 * random.f32());
        of_products += check_product::<i8>([a, b], output, (-128, 127));
    }
    let all = 20 * InstructionSet::available().count();
    println!("{floats} sums of 20, {of_products} products of {all}");
    assert!(floats >= 10 && of_products >= all / 2, "{floats} of 20, {of_products} of {all}");
}

#[test]
fn hopeless_scales_do_no_harm() {
    let one = quantization(1.0, 0);
    for scale in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e-38, 1e38] {
        check_sum::<i8>([one, quantization(scale, 5)], one, Sign::Plus, (-128, 127));
        check_sum::<u8>([one, one], quantization(scale, 128), Sign::Minus, (0, 255));
    }
    check_sum::<u8>([one, quantization(1.0, i32::MIN)], one, Sign::Plus, (-1000, 1000));
}

#[test]
fn sums_of_all_lengths() {
    let (a, b) = (quantization(0.03, 3), quantization(0.05, -7));
    for length in 0..70 {
        #[allow(clippy::cast_possible_truncation)]
        let numbers =
            |factor: i32, first| (0..length).map(|it| (it * factor + first) as i8).collect();
        let (x, y): (Vec<i8>, Vec<i8>) = (numbers(37, 0), numbers(11, 5));
        let exact = Exact::new([a, b], a, Sign::Plus, (-128, 127));
        let expected: Vec<i8> = x.iter().zip(&y).map(|(x, y)| exact.scalar(*x, *y)).collect();
        for set in InstructionSet::available() {
            let shape = [x.len()];
            let sum = QuantizedSum::new(set, [a, b], a, Sign::Plus, (-128, 127));
            let sum = Pairs::prepare(set, [&shape, &shape], sum);
            let mut found = vec![0_i8; x.len()];
            sum.run(&mut Team::alone(), &x, &y, &mut found);
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn products_by_hand() {
    let shape = [&[4][..], &[1][..]];
    for set in InstructionSet::available() {
        let inputs = [quantization(0.5, 10), quantization(0.25, 0)];
        let product = QuantizedProduct::<u8>::new(set, inputs, quantization(1.0, 3), (0, 200));
        let product = Pairs::prepare(set, shape, product);
        let mut output = [0; 4];
        product.run(&mut Team::alone(), &[10, 18, 0, 255], &[40], &mut output);
        // 0; 4 * 10; -5 * 10; 122.5 * 10.
        assert_eq!(output, [3, 43, 0, 200]);
    }
}
