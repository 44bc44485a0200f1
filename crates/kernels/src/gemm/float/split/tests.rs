use super::*;
use crate::gemm::float::PlainRows;
use crate::{Image, ImageMut, Lines, Team};
use proptest::prelude::*;

/// Numbers of both signs, of very different sizes, that are the same each time.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(seed.into());
    (0..count).map(|_| (random.f32() - 0.5) * 2.0_f32.powi(random.i32(-4..4))).collect()
}

struct Case<'a> {
    /// Rows, depth and columns.
    sizes: [usize; 3],
    input: &'a [f32],
    weights: &'a [f32],
    bias: &'a [f32],
    residual: Option<&'a [f32]>,
    epilogue: Epilogue,
    threads: usize,
}

impl<'a> Case<'a> {
    /// On one thread, without a residual operand and epilogue.
    fn new(sizes: [usize; 3], [input, weights, bias]: [&'a [f32]; 3]) -> Self {
        let (residual, epilogue, threads) = (None, Epilogue::NONE, 1);
        Self { sizes, input, weights, bias, residual, epilogue, threads }
    }

    /// The product, in an output that has a gap of one between its rows; none if it cannot be tried here.
    fn compute(&self) -> Option<Vec<f32>> {
        if !amx::multiplies_bfloat16() {
            eprintln!("not tried: there is no use of AMX for bfloat16 here");
            return None;
        }
        let [rows, depth, columns] = self.sizes;
        let mut preparation = Preparation::new(InstructionSet::Avx512Amx, self.threads);
        let plan = RowsPlan {
            count: rows,
            line: rows,
            bytes: 4 * rows * depth,
            row_bytes: 0,
            scratch_values: 0,
        };
        let Self { bias, weights: filter, epilogue, .. } = *self;
        let layer = Layer { filter, bias, epilogue };
        let product = SplitProduct::new(plan, depth, layer, &mut preparation).unwrap();
        drop(preparation);
        let stride = columns + 1;
        let mut output = vec![7.5; rows * stride];
        let mut scratch = Lines::with_bytes(product.scratch_bytes());
        let given = PlainRows::new(self.input, [rows, 1, depth], depth);
        let arguments = Arguments {
            rows: &given,
            residual: self.residual.map(|values| Image { values, pixel_stride: columns }),
            output: ImageMut { values: &mut output, pixel_stride: stride },
            scratch: scratch.lines_mut(),
        };
        product.run(&mut Team::new(self.threads), arguments);
        assert!(output.chunks(stride).all(|row| row[columns] == 7.5), "the gap was written");
        Some(output.chunks(stride).flat_map(|row| row[..columns].to_vec()).collect())
    }

    /// Each sum, in double precision, and the sum of the magnitudes that it has.
    fn expected(&self, row: usize, column: usize) -> (f64, f64) {
        let [_, depth, columns] = self.sizes;
        let inputs = &self.input[row * depth..][..depth];
        let weights = &self.weights[column * depth..][..depth];
        let residual = self.residual.map_or(0.0, |it| f64::from(it[row * columns + column]));
        let first = [f64::from(self.bias[column]), residual];
        let products = inputs.iter().zip(weights).map(|(x, w)| f64::from(*x) * f64::from(*w));
        let all = first.into_iter().chain(products);
        all.fold((0.0, 0.0), |(sum, magnitudes), it| (sum + it, magnitudes + it.abs()))
    }
}

#[test]
fn numbers_are_the_sums_of_their_parts() {
    for value in numbers(10_000, 3).into_iter().chain([0.0, -0.0, f32::MAX, f32::MIN_POSITIVE]) {
        assert_eq!(joined(split(value)).to_bits(), value.to_bits(), "{value}");
    }
    for value in [f32::INFINITY, f32::NEG_INFINITY] {
        assert_eq!(joined(split(value)), value);
    }
    // Also one whose upper half alone would be an infinity.
    assert!(joined(split(f32::from_bits(0x7F80_0001))).is_nan());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn products_are_those_of_float32(
        (rows, depth, columns) in (1_usize..150, 1_usize..1300, 1_usize..90),
        has_residual in any::<bool>(),
        is_clamped in any::<bool>(),
        threads in 1_usize..3,
    ) {
        let input = numbers(rows * depth, 1);
        let weights = numbers(columns * depth, 2);
        let bias = numbers(columns, 3);
        let residual = numbers(rows * columns, 4);
        let case = Case {
            residual: has_residual.then_some(&residual[..]),
            epilogue: if is_clamped { Epilogue::RELU6 } else { Epilogue::NONE },
            threads,
            ..Case::new([rows, depth, columns], [&input, &weights, &bias])
        };
        let Some(found) = case.compute() else { return Ok(()) };
        for (index, found) in found.into_iter().enumerate() {
            let (sum, magnitudes) = case.expected(index / columns, index % columns);
            let sum = if is_clamped { sum.clamp(0.0, 6.0) } else { sum };
            // What rounding the products alone may give, and each sum of some hundred to half a unit.
            let most = magnitudes * f64::from(f32::EPSILON) * (depth as f64).sqrt().max(4.0);
            let difference = (f64::from(found) - sum).abs();
            prop_assert!(difference <= most, "{index}: {found}, not {sum}; {difference} > {most}");
        }
    }
}

#[test]
fn a_long_sum_is_as_near_as_one_of_float32() {
    let sizes = [40, 4608, 64];
    let [rows, depth, columns] = sizes;
    let (input, weights) = (numbers(rows * depth, 5), numbers(columns * depth, 6));
    let bias = vec![0.0; columns];
    let case = Case::new(sizes, [&input, &weights, &bias]);
    let Some(found) = case.compute() else { return };
    let mut squares = [0.0; 2];
    for (index, found) in found.into_iter().enumerate() {
        let (row, column) = (index / columns, index % columns);
        let (sum, _) = case.expected(row, column);
        let inputs = &input[row * depth..][..depth];
        let products = inputs.iter().zip(&weights[column * depth..]);
        let in_order = products.fold(0.0_f32, |sum, (x, w)| x.mul_add(*w, sum));
        for (squares, value) in squares.iter_mut().zip([found, in_order]) {
            *squares += (f64::from(value) - sum).powi(2);
        }
    }
    let [found, in_order] = squares.map(f64::sqrt);
    assert!(found <= in_order, "an error of {found}, and {in_order} of float32");
}

#[test]
fn infinities_and_nans_come_out_as_of_float32() {
    let sizes = [70, 600, 40];
    let [rows, depth, columns] = sizes;
    let (mut input, mut weights) = (numbers(rows * depth, 7), numbers(columns * depth, 8));
    let bias = numbers(columns, 9);
    input[33 * depth + 590] = f32::INFINITY;
    input[34 * depth] = f32::NAN;
    for has_special_weight in [false, true] {
        if has_special_weight {
            weights[20 * depth + 5] = f32::NEG_INFINITY;
        }
        let case = Case::new(sizes, [&input, &weights, &bias]);
        let Some(found) = case.compute() else { return };
        for (index, found) in found.into_iter().enumerate() {
            let (sum, magnitudes) = case.expected(index / columns, index % columns);
            if sum.is_finite() {
                let most = magnitudes * 1e-5;
                assert!((f64::from(found) - sum).abs() <= most, "{index}: {found}, not {sum}");
            } else {
                assert_eq!(found.is_nan(), sum.is_nan(), "{index}: {found}, not {sum}");
                assert!(sum.is_nan() || f64::from(found) == sum, "{index}: {found}, not {sum}");
            }
        }
    }
}
