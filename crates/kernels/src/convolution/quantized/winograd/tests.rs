use super::super::tests::{Case, case_of, same, typical};
use super::super::{Convolution, Kernel};
use super::*;
use crate::quantization::Activations;
use crate::vector::Simd;
use crate::vector::arrays::Arrays;
use crate::{ImageKernel, InstructionSet};
use proptest::prelude::*;

/// The convolution in tiles.
fn prepared(case: &Case, preparation: &mut Preparation) -> Result<Option<Convolution>, TooLarge> {
    let variant = Variant::of_words(preparation.set()).expect("a set with such products");
    let layer = case.layer();
    let winograd = Winograd::of_variant(variant, &case.shape, &layer, preparation)?;
    let kernel = winograd.map(|winograd| Kernel::Winograd(Box::new(winograd)));
    Ok(kernel.map(|kernel| Convolution {
        shape: case.shape,
        signedness: case.activations.signedness,
        kernel,
    }))
}

/// The instruction sets that have such products.
fn sets() -> impl Iterator<Item = InstructionSet> {
    InstructionSet::available().filter(|set| Variant::of_words(*set).is_some())
}

/// Compares tiles with the definition, for each instruction set that is asked for.
fn check_sets(case: &Case, threads: usize, is_asked: impl Fn(InstructionSet) -> bool) {
    let expected = case.output(InstructionSet::Portable, 1);
    for set in sets().filter(|set| is_asked(*set)) {
        let found = case.output_of(set, threads, |preparation| {
            Ok(prepared(case, preparation)?.expect("sums that are exact"))
        });
        assert!(found == expected, "{set} differs: {case:?}");
    }
}

fn check(case: &Case, threads: usize) {
    check_sets(case, threads, |_| true);
}

prop_compose! {
    fn shape()(
        batch in 1_usize..3, input in [1_usize..15, 1_usize..15], padding in [0_usize..4, 0_usize..4],
        output in [1_usize..15, 1_usize..15], is_same: bool, depth in 1_usize..4,
        output_channels in prop_oneof![2 => 1_usize..40, 1 => 40_usize..140],
    ) -> Shape {
        Shape {
            batch,
            input,
            input_channels: WORDS * depth,
            output: if is_same { input } else { output },
            output_channels,
            filter: [3, 3],
            stride: [1, 1],
            dilation: [1, 1],
            padding_before: if is_same { [1, 1] } else { padding },
            groups: 1,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 300 }))]

    #[test]
    fn tiles_are_the_definition(
        case in case_of(shape()), ends in any::<Option<[bool; 4]>>(), threads in 1_usize..4,
    ) {
        let mut case = case;
        if let Some([is_mixed, of_weights, of_inputs, zero]) = ends {
            // Weights and inputs at the ends of their ranges, and so the zero point.
            let pick = |is_last: bool, (first, last): (i32, i32)| if is_last { last } else { first };
            let weights = case.weight_signedness;
            let end = weights.byte(pick(of_weights, weights.range()));
            case.weights.iter_mut().for_each(|it| {
                *it = if is_mixed && *it < 0x80 { !end } else { end };
            });
            let inputs = case.activations.signedness;
            let end = inputs.byte(pick(of_inputs, inputs.range()));
            case.input.iter_mut().for_each(|it| *it = if is_mixed && *it < 0x40 { !end } else { end });
            case.activations.zero_point = pick(zero, inputs.range());
        }
        check(&case, threads);
    }
}

fn far() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 0_usize..8, 1 => 8_usize..1 << 31, 1 => Just((1 << 31) - 1)]
}

prop_compose! {
    /// Images of no or few pixels, padding far beyond them, many channels.
    fn strange_shape()(
        batch in 1_usize..3, input in [0_usize..4, 0_usize..4], padding_before in [far(), far()],
        output in [1_usize..8, 1_usize..8],
        (depth, output_channels) in prop_oneof![
            (1_usize..4, 300_usize..500), (60_usize..130, 1_usize..20), (1_usize..4, 1_usize..20),
        ],
    ) -> Shape {
        Shape { batch, input, input_channels: WORDS * depth, output, output_channels, padding_before, ..same([3, 1, 1, 1, 1]) }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 60 }))]

    #[test]
    fn tiles_of_strange_images_are_the_definition(
        case in case_of(strange_shape()), is_symmetric: bool, threads in 1_usize..4,
    ) {
        let mut case = case;
        if is_symmetric {
            // Sums are smaller, so that more of them are exact.
            (case.weight_signedness, case.weight_zero_point) = (Signedness::Signed, 0);
            case.weights.iter_mut().for_each(|weight| *weight &= 0x1F);
        }
        check_sets(&case, threads, |set| {
            prepared(&case, &mut Preparation::new(set, 1)).unwrap().is_some()
        });
        // As it is chosen.
        case.check();
    }
}

/// All inputs and weights so that a sum is as great as it may be.
fn extreme(depth: usize, weight: u8) -> Case {
    let mut case = typical(same([3, 1, 9, depth, 20]), Signedness::Unsigned, 0);
    case.weight_signedness = Signedness::Signed;
    case.weights.fill(weight);
    case.input.fill(255);
    case.activations.zero_point = 0;
    for multiplier in &mut case.requantization.multipliers {
        *multiplier = crate::Multiplier::from_real(1.0 / 150_000.0);
    }
    case
}

#[test]
fn the_greatest_exact_sums_are_exact() {
    // 2^25 / (9 * 127 * 255) = 115.1, and with 128 less than that.
    for weight in [0x7F, 0x80] {
        check(&extreme(112, weight), 1);
    }
}

#[test]
fn weights_with_greater_sums_take_no_tiles() {
    for set in sets() {
        let is_exact =
            |case: &Case| prepared(case, &mut Preparation::new(set, 1)).unwrap().is_some();
        for weight in [0x7F, 0x80] {
            let case = extreme(128, weight);
            assert!(!is_exact(&case));
            // Signed inputs are nearer to 0.
            let activations = Activations { signedness: Signedness::Signed, zero_point: -128 };
            assert!(is_exact(&Case { activations, ..case }));
            assert!(!is_exact(&extreme(2048, weight)));
        }
        // One channel is enough.
        let mut case = extreme(128, 3);
        assert!(is_exact(&case));
        case.weights[9 * 128 * 7..][..9 * 128].fill(0x80);
        assert!(!is_exact(&case));
    }
    // Whatever is chosen, outputs are right, also of restored weights.
    extreme(128, 0x80).check();
}

#[test]
fn it_is_used_where_it_saves_much_and_is_allowed() {
    let algorithm = |shape: Shape, preparation: Preparation| {
        let mut preparation = preparation;
        typical(shape, Signedness::Signed, 0).prepared(&mut preparation).unwrap().algorithm()
    };
    let (wide, shallow) = (same([3, 1, 28, 128, 128]), same([3, 1, 28, 3, 128]));
    for set in sets().filter(|set| *set != InstructionSet::Avx512Vnni) {
        let new = || Preparation::new(set, 1);
        assert_eq!(algorithm(wide, new()), "winograd");
        assert_eq!(algorithm(wide, new().without_winograd()), "gemm");
        for other in [
            shallow,
            same([3, 2, 28, 128, 128]),
            same([1, 1, 28, 128, 128]),
            Shape { dilation: [2, 2], ..wide },
            Shape { groups: 2, ..wide },
        ] {
            assert_eq!(algorithm(other, new()), "gemm", "{other:?}");
        }
    }
    assert_eq!(algorithm(wide, Preparation::new(InstructionSet::Portable, 1)), "gemm");
}

#[test]
fn scratch_memory_is_bounded() {
    let mut sizes = same([3, 1, 400, 64, 64]);
    sizes.batch = 5;
    for set in sets() {
        let case = Case {
            weights: vec![1; 9 * 64 * 64],
            ..typical(same([3, 1, 9, 64, 64]), Signedness::Signed, 0)
        };
        let case = Case { shape: sizes, ..case };
        let convolution = prepared(&case, &mut Preparation::new(set, 4)).unwrap().unwrap();
        let by_task = convolution.scratch_bytes() / convolution.tasks();
        assert!(by_task <= 2 << 20, "{set}: {by_task} bytes for each task");
        assert!(convolution.tasks() <= 16);
    }
}

/// The factors of inputs in each point, of one dimension, from inputs that are 1 one by one.
fn factors() -> Vec<Vec<i32>> {
    let simd = Arrays;
    let column = |at: usize| {
        let ones = std::array::from_fn(|k| [i16::from(k == at); WORDS]);
        transform::to_points(simd, ones).map(|point| i32::from(point[0]))
    };
    let columns: Vec<_> = (0..transform::INPUT).map(column).collect();
    (0..transform::INPUT)
        .map(|point| columns.iter().map(|column| column[point]).collect())
        .collect()
}

#[test]
fn numbers_fit_and_factors_are_undone() {
    let factors = factors();
    let signed_sums =
        |row: &[i32], sign: i32| -> i32 { row.iter().map(|it| (it * sign).max(0)).sum() };
    let mut greatest = [0; 2];
    for row in &factors {
        for column in &factors {
            let both: Vec<i32> =
                row.iter().flat_map(|a| column.iter().map(move |b| a * b)).collect();
            for (greatest, sign) in greatest.iter_mut().zip([1, -1]) {
                *greatest = signed_sums(&both, sign).max(*greatest);
            }
        }
    }
    assert_eq!(greatest, transform::INPUT_FACTORS);
    let filter = |row: &[i16; 3]| row.iter().map(|it| i64::from(*it).abs()).sum::<i64>();
    let filter = transform::FILTER.iter().map(filter).max().unwrap();
    let [weight, input] = [255 * filter * filter, 255 * i64::from(greatest[0].max(greatest[1]))];
    assert!(weight <= i16::MAX.into() && input <= i16::MAX.into());
    assert!(2 * weight * input < 1 << 31);
    // Of each row of outputs: the inverse and the power of two leave 1.
    let rest = |row: usize| {
        let (rows, columns) = (factor(row), factor(0));
        rows.wrapping_mul(columns).wrapping_mul(transform::INVERSE)
    };
    for (row, excess) in (0..).zip(EXCESS) {
        assert_eq!(rest(row), 1 << (excess + EXCESS[0]));
    }
}

/// How many times too large an output row is: from an input that is 1 where the row's first tap is, and a filter
/// of that tap alone.
fn factor(row: usize) -> i32 {
    let inputs = factors();
    let simd = Arrays;
    let products = std::array::from_fn(|point| {
        let input = inputs.get(point).map_or(0, |factors| factors[row]);
        simd.isplat(input * i32::from(transform::FILTER[point][0]))
    });
    transform::from_points(simd, products)[row][0]
}
