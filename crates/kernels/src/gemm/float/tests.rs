use super::*;
use crate::convolution::float::tests::numbers;
use crate::{Lines, Preparation};
use proptest::prelude::*;

/// Rows of one line, of this depth.
fn rows_of(count: usize, depth: usize) -> RowsPlan {
    RowsPlan {
        count,
        line: count,
        bytes: 4 * count * depth,
        row_bytes: 4 * depth,
        scratch_values: 0,
    }
}

/// A product with columns of these weights and biases.
fn product_of(
    (set, threads): (InstructionSet, usize),
    rows: RowsPlan,
    (depth, columns): (usize, [usize; 2]),
    bias: impl Fn(usize) -> f32,
    weight: impl Fn(usize, usize) -> f32,
    epilogue: Epilogue,
) -> Gemm {
    let mut preparation = Preparation::new(set, threads);
    let blocking = Blocking::of(set);
    let panels = Panels::pack(&mut preparation, blocking, depth, columns, bias, weight).unwrap();
    Gemm::new(set, threads, rows, panels, epilogue)
}

/// Of a product without a residual operand.
fn arguments<'a>(
    rows: &'a PlainRows<'_>,
    output: ImageMut<'a, f32>,
    scratch: &'a mut [Line],
) -> Arguments<'a> {
    Arguments { rows, residual: None, output, scratch }
}

/// Tiles below each other and beside each other, of which each is summed in parts; with panels that stay in no second cache.
#[test]
fn deep_products() {
    let (rows, depth, columns) = (if cfg!(miri) { 3 } else { 100 }, 2051, 67);
    let (left, right) = (numbers(1, rows * depth), numbers(2, columns * depth));
    for (set, threads) in InstructionSet::available().flat_map(|set| [(set, 1), (set, 2)]) {
        let weight = |column: usize, k: usize| right[column * depth + k];
        let (plan, sizes) = (rows_of(rows, depth), (depth, [1, columns]));
        let gemm = product_of((set, threads), plan, sizes, |_| 0.5, weight, Epilogue::NONE);
        let mut output = vec![-77.0; rows * columns];
        let mut scratch = Lines::with_bytes(gemm.scratch_bytes());
        let plain = PlainRows::new(&left, [rows, 1, depth], depth);
        let to = ImageMut::contiguous(&mut output, columns);
        gemm.run(&mut Team::new(threads), arguments(&plain, to, scratch.lines_mut()));
        for (index, &found) in output.iter().enumerate() {
            let (row, column) = (index / columns, index % columns);
            let of_row = left[row * depth..].iter();
            let products = of_row.zip(&right[column * depth..][..depth]).map(|(a, b)| a * b);
            // Multiples of a sixteenth: exact in any order.
            let expected = products.sum::<f32>() + 0.5;
            assert!(found == expected, "{set}: row {row}, column {column}: {found}, {expected}");
        }
    }
}

/// All columns of tiles and the last ones, which are finished otherwise.
#[test]
fn hard_swish_of_infinities_and_nan() {
    let bias = |column: usize| [f32::NEG_INFINITY, f32::INFINITY, f32::NAN, -4.0, 6.0][column % 5];
    for set in InstructionSet::available() {
        let (rows, columns) = (20, 37);
        let (plan, sizes) = (rows_of(rows, 1), (1, [1, columns]));
        let gemm = product_of((set, 1), plan, sizes, bias, |_, _| 0.0, Epilogue::HARD_SWISH);
        let mut output = vec![-77.0; rows * columns];
        let mut scratch = Lines::with_bytes(gemm.scratch_bytes());
        let (ones, to) = (vec![1.0; rows], ImageMut::contiguous(&mut output, columns));
        let rows = PlainRows::new(&ones, [rows, 1, 1], 1);
        gemm.run(&mut Team::new(1), arguments(&rows, to, scratch.lines_mut()));
        for (index, &found) in output.iter().enumerate() {
            let column = index % columns;
            let is_right = match column % 5 {
                0 | 2 => found.is_nan(),
                1 => found == f32::INFINITY,
                3 => found == 0.0,
                _ => (found - 6.0).abs() < 1e-5,
            };
            assert!(is_right, "{set}: {found} of {}", bias(column));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 200 }))]

    #[test]
    fn a_product_is_the_sums_of_products(
        rows in 0_usize..60, depth in 0_usize..40, groups in 1_usize..3, columns in 1_usize..80,
        (row_gap, output_gap, threads) in (0_usize..3, 0_usize..3, 1_usize..4),
        (with_residual, hard_swish) in any::<(bool, bool)>(), seed: u64,
    ) {
        let stride = groups * depth + row_gap;
        let left = numbers(seed, rows * stride);
        let right = numbers(seed ^ 1, groups * depth * columns);
        let bias = numbers(seed ^ 2, groups * columns);
        let output_stride = groups * columns + output_gap;
        let residual = numbers(seed ^ 3, rows * output_stride);
        let epilogue = Epilogue { min: -20.0, max: 30.0, hard_swish };
        for set in InstructionSet::available() {
            let gemm = product_of(
                (set, threads), rows_of(rows, stride), (depth, [groups, columns]),
                |column| bias[column], |column, k| right[column * depth + k], epilogue,
            );
            let mut output = vec![-77.0; rows * output_stride];
            let mut scratch = Lines::with_bytes(gemm.scratch_bytes());
            let arguments = Arguments {
                rows: &PlainRows::new(&left, [rows, groups, depth], stride),
                residual: with_residual.then_some(Image { values: &residual, pixel_stride: output_stride }),
                output: ImageMut { values: &mut output, pixel_stride: output_stride },
                scratch: scratch.lines_mut(),
            };
            gemm.run(&mut Team::new(threads), arguments);
            for (index, &found) in output.iter().enumerate() {
                let (row, column) = (index / output_stride, index % output_stride);
                if column >= groups * columns {
                    prop_assert_eq!(found, -77.0);
                    continue;
                }
                let start = row * stride + column / columns * depth;
                let left = &left[start..start + depth];
                let products = left.iter().zip(&right[column * depth..]).map(|(a, b)| a * b);
                let added = if with_residual { residual[index] } else { 0.0 };
                let expected = epilogue.apply_to(products.sum::<f32>() + bias[column] + added);
                prop_assert!((found - expected).abs() <= 1e-6 * expected.abs(),
                    "{set}: row {row}, column {column}: {found}, expected {expected}");
            }
        }
    }

    #[test]
    fn parts_are_even_and_cover_all(length in 0_usize..1000, parts in 1_usize..50) {
        let mut end = 0;
        for index in 0..parts {
            let part = part(length, parts, index);
            prop_assert_eq!(part.start, end);
            prop_assert!(part.len() == length / parts || part.len() == length.div_ceil(parts));
            end = part.end;
        }
        prop_assert_eq!(end, length);
    }
}

#[test]
fn nan_stays_nan() {
    for set in InstructionSet::available() {
        let (plan, sizes) = (rows_of(1, 1), (1, [1, 1]));
        let gemm = product_of((set, 1), plan, sizes, |_| 0.0, |_, _| f32::NAN, Epilogue::RELU6);
        let mut output = [0.0];
        let rows = PlainRows::new(&[1.0], [1, 1, 1], 1);
        gemm.run(
            &mut Team::alone(),
            arguments(&rows, ImageMut::contiguous(&mut output, 1), &mut []),
        );
        assert!(output[0].is_nan(), "{set}");
    }
}

#[test]
#[should_panic(expected = "the output is too small")]
fn a_short_output_is_refused() {
    let gemm = of_ones([2, 2], [1, 2]);
    let rows = PlainRows::new(&[1.0; 2], [2, 1, 1], 1);
    let mut output = [0.0; 3];
    let output = ImageMut::contiguous(&mut output, 2);
    gemm.run(&mut Team::alone(), arguments(&rows, output, &mut []));
}

/// Sums of one sign round to one side too, so that a single running sum of this many would be off by
/// twenty times as much.
#[test]
#[cfg_attr(miri, ignore = "too many products")]
fn deep_products_are_summed_in_parts() {
    for (rows, depth, columns) in [(1, 65_537, 1), (5, 40_000, 20), (14, 4099, 33), (3, 1024, 8)] {
        let left: Vec<f32> = (0..rows * depth).map(|at| 0.1 + (at % 7) as f32 * 0.01).collect();
        for set in InstructionSet::available() {
            let gemm = product_of(
                (set, 1),
                rows_of(rows, depth),
                (depth, [1, columns]),
                |column| column as f32,
                |column, _| 1.0 + column as f32,
                Epilogue::NONE,
            );
            let mut output = vec![0.0; rows * columns];
            let (rows, to) = (
                PlainRows::new(&left, [rows, 1, depth], depth),
                ImageMut::contiguous(&mut output, columns),
            );
            let mut scratch = Lines::with_bytes(gemm.scratch_bytes());
            gemm.run(&mut Team::alone(), arguments(&rows, to, scratch.lines_mut()));
            for (index, &found) in output.iter().enumerate() {
                let (row, column) = (index / columns, (index % columns) as f64);
                let sum: f64 = left[row * depth..][..depth].iter().copied().map(f64::from).sum();
                let expected = sum * (1.0 + column) + column;
                let error = (f64::from(found) / expected - 1.0).abs();
                assert!(error < 5e-6, "{set}: depth {depth}, column {column}: {error:e}");
            }
        }
    }
}

#[test]
fn tiles_are_as_wide_as_the_vectors_that_there_are() {
    struct Lanes;
    impl crate::vector::Kernel for Lanes {
        type Output = usize;
        #[inline(always)]
        fn run<S: crate::vector::Simd>(self, _: S) -> usize {
            S::LANES
        }
    }
    // Those that this processor does not have among them.
    for set in InstructionSet::ALL {
        assert_eq!(Blocking::of(set).lanes, Isa::of(set).run(Lanes), "{set}");
    }
}

#[test]
fn threads_get_equal_shares_of_tiles_if_they_stay_high() {
    assert_eq!(even_tiles(169, 14, 1), 13);
    assert_eq!(even_tiles(169, 14, 2), 14);
    assert_eq!(even_tiles(14, 14, 2), 1, "two tiles of 7 rows are too low");
    assert_eq!(even_tiles(20, 14, 4), 2);
    assert_eq!(even_tiles(169, 6, 2), 30);
    assert_eq!(even_tiles(0, 14, 2), 1);
}

#[test]
fn threads_share_the_columns_of_large_weights_and_the_rows_of_small_ones() {
    let cut = |rows: usize, depth: usize, columns: usize| {
        let (plan, sizes) = (rows_of(rows, depth), (depth, [1, columns]));
        let on = (InstructionSet::best(), 2);
        let gemm = product_of(on, plan, sizes, |_| 0.0, |_, _| 0.0, Epilogue::NONE);
        let least = rows.div_ceil(gemm.panels.blocking().rows);
        (gemm.tile_parts > 1, gemm.panel_parts > 1, gemm.tiles, least)
    };
    // Inception's 8x8 images: five tiles of AVX-512 stay five, though there are two threads.
    let (by_rows, by_columns, tiles, least) = cut(64, 1152, 384);
    assert_eq!((by_rows, by_columns, tiles), (false, true, least));
    // Weights of 64 KiB stay in any second cache; those of almost 4 MiB in none that is counted on, and are read for a few parts of the
    // rows only, unless the third gives them as they are needed.
    let (by_rows, by_columns, tiles, _) = cut(3136, 128, 128);
    assert_eq!((by_rows, by_columns, tiles % 2), (true, false, 0));
    let are_near = streamed_bytes(InstructionSet::best()) >= 4 << 20;
    let (by_rows, by_columns, tiles, _) = cut(196, 1280, 768);
    assert_eq!((by_rows, by_columns, tiles % 2), (true, !are_near, 0));
}

/// A product of a depth of 1, all of whose weights are 1.
fn of_ones(rows: [usize; 2], columns: [usize; 2]) -> Gemm {
    let plan =
        RowsPlan { count: rows[0], line: rows[1], bytes: 4, row_bytes: 4, scratch_values: 0 };
    let on = (InstructionSet::best(), 1);
    product_of(on, plan, (1, columns), |_| 0.0, |_, _| 1.0, Epilogue::NONE)
}

#[test]
#[should_panic(expected = "more groups than the rows have")]
fn panels_of_more_groups_than_the_rows_have_are_refused() {
    let gemm = of_ones([1, 1], [2, 1]);
    let rows = PlainRows::new(&[1.0], [1, 1, 1], 1);
    let mut output = [0.0; 2];
    let output = ImageMut::contiguous(&mut output, 2);
    gemm.run(&mut Team::alone(), arguments(&rows, output, &mut []));
}

#[test]
#[should_panic(expected = "panels for vectors of other lanes")]
fn panels_for_other_vectors_are_refused() {
    let set = InstructionSet::Portable;
    let blocking = Blocking::of(set);
    let blocking = Blocking { lanes: 2 * blocking.lanes, ..blocking };
    let panels = Panels::at_run_time(blocking, 1, [1, 1]).unwrap();
    let plan = RowsPlan { count: 1, line: 1, bytes: 4, row_bytes: 4, scratch_values: 0 };
    let _ = Gemm::new(set, 1, plan, panels, Epilogue::NONE);
}

#[test]
#[should_panic(expected = "rows of no image")]
fn rows_beyond_the_last_whole_image_are_refused() {
    // Three rows, where each image has two, and an output for one image.
    let gemm = of_ones([3, 1], [1, 1]);
    let placement = crate::image::Placement {
        size: [2, 1],
        first: 0,
        pixel_stride: 1,
        row_stride: 1,
        image_stride: 2,
    };
    let rows = PlainRows::new(&[1.0; 3], [3, 1, 1], 1);
    let mut values = [0.0; 2];
    let output = DisjointOutput::new(&mut values);
    let panels = gemm.panels().all_values();
    // SAFETY: no one else has the output.
    let _ = unsafe { gemm.product(&rows, panels, None, &output, Places::Lines(placement)) };
}
