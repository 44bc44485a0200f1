use super::float::{BatchMatmul, Layout};
use crate::convolution::float::tests::numbers;
use crate::{Epilogue, InstructionSet, Lines, PreparedKernel, Team};
use proptest::prelude::*;

fn at(layout: &Layout, product: usize, row: usize, column: usize) -> usize {
    let (row, column) = if layout.transposed { (column, row) } else { (row, column) };
    layout.starts[product] + row * layout.row_stride + column
}

/// Compares all instruction sets with the definition; the numbers are exact.
fn check(sizes: [usize; 3], layouts: &[Layout; 3], threads: usize, seed: u64) {
    let [rows, columns, depth] = sizes;
    let [left, right, output] = layouts;
    let values = |layout: &Layout, [rows, columns]: [usize; 2], seed| {
        let stored = if layout.transposed { [columns, rows] } else { [rows, columns] };
        numbers(seed, layout.values_needed(stored))
    };
    let a = values(left, [rows, depth], seed);
    let b = values(right, [depth, columns], seed ^ 1);
    for set in InstructionSet::available() {
        let epilogue = Epilogue { min: -15.0, ..Epilogue::NONE };
        let kernel = BatchMatmul::prepare(sizes, layouts.clone(), epilogue, set, threads);
        let mut found = vec![-77.0; output.values_needed([rows, columns])];
        let mut expected = found.clone();
        for product in 0..output.starts.len() {
            for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |c| (row, c))) {
                let sum: f32 = (0..depth)
                    .map(|k| a[at(left, product, row, k)] * b[at(right, product, k, column)])
                    .sum();
                expected[at(output, product, row, column)] = sum.max(-15.0);
            }
        }
        let mut scratch = Lines::with_bytes(kernel.scratch_bytes());
        kernel.run(&mut Team::new(threads), &a, &b, &mut found, scratch.lines_mut());
        assert_eq!(found, expected, "{}", kernel.kernel());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 150 }))]

    #[test]
    fn a_product_is_the_sums_of_products(
        rows in 0_usize..40, columns in prop_oneof![4 => 0_usize..70, 1 => Just(1)],
        depth in 0_usize..30, count in 0_usize..4,
        transposed: [bool; 2], share_right: bool, threads in 1_usize..4, seed: u64,
    ) {
        let stored = |transposed, [rows, columns]: [usize; 2]| {
            if transposed { [columns, rows] } else { [rows, columns] }
        };
        let left = Layout::contiguous(count, stored(transposed[0], [rows, depth]), transposed[0]);
        let mut right = Layout::contiguous(count, stored(transposed[1], [depth, columns]), transposed[1]);
        if share_right {
            right.starts.fill(0);
        }
        let left = Layout { transposed: transposed[0], ..left };
        let output = Layout::contiguous(count, [rows, columns], false);
        check([rows, columns, depth], &[left, right, output], threads, seed);
    }
}

#[test]
fn heads_of_an_attention_are_side_by_side() {
    // [sequence, heads, depth], three heads.
    let heads = |columns: usize, transposed| Layout {
        starts: (0..3).map(|head| head * columns).collect(),
        row_stride: 3 * columns,
        transposed,
    };
    check([20, 20, 8], &[heads(8, false), heads(8, true), heads(20, false)], 2, 1);
    check([150, 8, 20], &[heads(20, false), heads(8, false), heads(8, false)], 2, 2);
    // Heads of one value.
    check([150, 1, 20], &[heads(20, false), heads(1, false), heads(1, false)], 2, 3);
}

#[test]
fn queries_share_heads_of_keys() {
    // Six heads of queries, two of keys, which are [sequence, heads, depth].
    let shared = |row_stride: usize, columns: usize, transposed| Layout {
        starts: (0..6).map(|head| head / 3 * columns).collect(),
        row_stride,
        transposed,
    };
    for rows in [1, 2] {
        let queries = Layout::contiguous(6, [rows, 8], false);
        let scores = Layout::contiguous(6, [rows, 20], false);
        check([rows, 20, 8], &[queries, shared(16, 8, true), scores.clone()], 2, 3);
        // Their results are beside each other, but for each query.
        let results = Layout {
            starts: (0..6).map(|head| head * 8).collect(),
            row_stride: 48,
            transposed: false,
        };
        check([rows, 8, 20], &[scores, shared(16, 8, false), results], 2, 4);
    }
    // Results in another order are computed one by one.
    let reversed = Layout {
        starts: (0..6).rev().map(|head| head * 20).collect(),
        row_stride: 20,
        transposed: false,
    };
    check([1, 20, 8], &[Layout::contiguous(6, [1, 8], false), shared(16, 8, true), reversed], 1, 5);
}

#[test]
#[should_panic(expected = "matrices of the output overlap")]
fn outputs_that_overlap_are_refused() {
    let output = Layout { starts: vec![0, 3], row_stride: 8, transposed: false };
    let operand = Layout { starts: vec![0, 0], row_stride: 4, transposed: false };
    let layouts = [operand.clone(), operand, output];
    BatchMatmul::prepare([2, 4, 4], layouts, Epilogue::NONE, InstructionSet::Portable, 1);
}
