use super::super::tests::{Case, case_of, same, typical};
use super::super::{Convolution, Kernel};
use super::*;
use crate::quantization::Activations;
use crate::vector::Simd;
use crate::vector::arrays::Arrays;
use crate::{ImageKernel, InstructionSet};
use proptest::prelude::*;

/// The convolution with tiles of this size.
fn prepared(
    case: &Case,
    size: TileSize,
    preparation: &mut Preparation,
) -> Result<Option<Convolution>, TooLarge> {
    let variant = Variant::of_words(preparation.set()).expect("a set with such products");
    let layer = case.layer();
    let winograd = Winograd::of_sizes(&[size], variant, &case.shape, &layer, preparation)?;
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

/// Compares tiles of all sizes with the definition.
fn check(case: &Case, threads: usize) {
    check_sizes(case, threads, |_, _| true);
}

/// Compares tiles of the sizes that are asked for.
fn check_sizes(case: &Case, threads: usize, is_asked: impl Fn(InstructionSet, TileSize) -> bool) {
    let expected = case.output(InstructionSet::Portable, 1);
    for set in sets() {
        for size in TileSize::ALL.into_iter().filter(|size| is_asked(set, *size)) {
            let found = case.output_of(set, threads, |preparation| {
                Ok(prepared(case, size, preparation)?.expect("sums that are exact"))
            });
            assert!(found == expected, "{set} differs with {size:?}: {case:?}");
        }
    }
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
        check_sizes(&case, threads, |set, size| {
            prepared(&case, size, &mut Preparation::new(set, 1)).unwrap().is_some()
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
fn weights_with_greater_sums_take_smaller_tiles_or_none() {
    for set in sets() {
        let is_exact = |case: &Case, size| {
            prepared(case, size, &mut Preparation::new(set, 1)).unwrap().is_some()
        };
        for weight in [0x7F, 0x80] {
            let case = extreme(128, weight);
            assert_eq!(TileSize::ALL.map(|size| is_exact(&case, size)), [false, true]);
            // Signed inputs are nearer to 0.
            let activations = Activations { signedness: Signedness::Signed, zero_point: -128 };
            assert!(is_exact(&Case { activations, ..case }, TileSize::Four));
            let case = extreme(2048, weight);
            assert_eq!(TileSize::ALL.map(|size| is_exact(&case, size)), [false, false]);
        }
        // One channel is enough.
        let mut case = extreme(128, 3);
        assert!(is_exact(&case, TileSize::Four));
        case.weights[9 * 128 * 7..][..9 * 128].fill(0x80);
        assert!(!is_exact(&case, TileSize::Four));
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
        for size in TileSize::ALL {
            let convolution =
                prepared(&case, size, &mut Preparation::new(set, 4)).unwrap().unwrap();
            let by_task = convolution.scratch_bytes() / convolution.tasks();
            assert!(by_task <= 2 << 20, "{set} {size:?}: {by_task} bytes for each task");
            assert!(convolution.tasks() <= 16);
        }
    }
}

/// The factors of inputs in each point, of one dimension, from inputs that are 1 one by one.
fn factors<T: Transforms>() -> Vec<Vec<i32>> {
    let simd = Arrays;
    let column = |at: usize| {
        let ones = std::array::from_fn(|k| [i16::from(k == at); WORDS]);
        T::forward(simd, ones).map(|point| i32::from(point[0]))
    };
    let columns: Vec<_> = (0..T::INPUT).map(column).collect();
    (0..T::INPUT).map(|point| columns.iter().map(|column| column[point]).collect()).collect()
}

fn check_transforms<T: Transforms>() {
    let factors = factors::<T>();
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
    assert_eq!(greatest, T::INPUT_FACTORS);
    let filter = |row: &[i16; 3]| row.iter().map(|it| i64::from(*it).abs()).sum::<i64>();
    let filter = T::FILTER.iter().map(filter).max().unwrap();
    let [weight, input] = [255 * filter * filter, 255 * i64::from(greatest[0].max(greatest[1]))];
    assert!(weight <= i16::MAX.into() && input <= i16::MAX.into());
    assert!(2 * weight * input < 1 << 31);
    // Of each row of outputs: the inverse and the power of two leave 1.
    let rest = |excess: u32| {
        let (rows, columns) = (factor::<T>(excess), factor::<T>(0));
        rows.wrapping_mul(columns).wrapping_mul(T::INVERSE)
    };
    for row in 0..T::OUTPUT {
        assert_eq!(rest(u32::try_from(row).unwrap()), 1 << (T::EXCESS[row] + T::EXCESS[0]));
    }
}

/// How many times too large an output row is: from an input that is 1 where the row's first tap is, and a filter
/// of that tap alone.
fn factor<T: Transforms>(row: u32) -> i32 {
    let row = usize::try_from(row).unwrap();
    let inputs = factors::<T>();
    let simd = Arrays;
    let products = std::array::from_fn(|point| {
        let input = inputs.get(point).map_or(0, |factors| factors[row]);
        simd.isplat(input * i32::from(T::FILTER[point][0]))
    });
    T::backward(simd, products)[row][0]
}

#[test]
fn numbers_fit_and_factors_are_undone() {
    check_transforms::<Two>();
    check_transforms::<Four>();
}
