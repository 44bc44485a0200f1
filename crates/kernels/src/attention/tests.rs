//! Attentions against their definition.

use super::mask::attended;
use super::*;
use crate::Lines;
use crate::convolution::float::tests::numbers;

/// Compares all instruction sets with the definition in 64 bits. Attentions have one mask or each its own.
fn check([count, rows, keys, depth, width]: [usize; 5], mask: Option<f32>, threads: usize) {
    for masks in if mask.is_some() { vec![1, count] } else { vec![1] } {
        check_masks([count, rows, keys, depth, width], (mask, masks), threads);
    }
}

fn check_masks(
    [count, rows, keys, depth, width]: [usize; 5],
    (mask, masks): (Option<f32>, usize),
    threads: usize,
) {
    let (has_mask, masked) = (mask.is_some(), mask.unwrap_or_default());
    // Heads are beside each other, keys are stored as `[keys, heads, depth]`, and the first two heads share theirs.
    let heads = |row: usize, transposed, is_shared: bool| Layout {
        starts: (0..count)
            .map(|head| if is_shared { head / 2 * row } else { head * row })
            .collect(),
        row_stride: count * row,
        transposed,
    };
    let layouts = [
        heads(depth, false, false),
        heads(depth, true, true),
        heads(width, false, true),
        heads(width, false, false),
    ];
    let small =
        |seed, length| numbers(seed, length).into_iter().map(|it| it / 8.0).collect::<Vec<f32>>();
    let queries = small(1, rows * count * depth);
    let of_keys = small(2, keys * count * depth);
    let values = small(3, keys * count * width);
    let mut mask = if has_mask { small(4, masks * rows * keys) } else { Vec::new() };
    // Each query attends to one more, each attention to more, and the last query of the last one to all.
    for (row, of_row) in mask.chunks_mut(keys).enumerate().take(masks * rows - 1) {
        let of_attention = row / rows * (keys / 3 / masks);
        let first = row % rows + keys / 3 + of_attention;
        of_row.iter_mut().skip(first).for_each(|it| *it = masked);
    }
    let of_attention = if masks > 1 { rows * keys } else { 0 };
    let axes = has_mask.then(|| vec![(count, of_attention), (rows, keys)]);
    for set in InstructionSet::available() {
        let adjustment = Adjustment { factor: 0.5, mask: axes.clone() };
        let kernel = Attention::prepare(
            [rows, keys, depth, width],
            layouts.clone(),
            1.0,
            adjustment,
            set,
            threads,
        );
        let mut found = vec![-77.0; rows * count * width];
        let mut scratch = Lines::with_bytes(kernel.scratch_bytes());
        let inputs = [&queries[..], &of_keys, &values, &mask];
        kernel.run(&mut Team::new(threads), inputs, &mut found, scratch.lines_mut());
        for (head, row) in (0..count).flat_map(|head| (0..rows).map(move |row| (head, row))) {
            let scores: Vec<f64> = (0..keys)
                .map(|key| {
                    let sum: f64 = (0..depth)
                        .map(|at| {
                            let query = queries[layouts[0].starts[head] + row * count * depth + at];
                            let key = of_keys[layouts[1].starts[head] + key * count * depth + at];
                            f64::from(query) * f64::from(key)
                        })
                        .sum();
                    let at = head * of_attention + row * keys + key;
                    sum * 0.5 + mask.get(at).map_or(0.0, |it| f64::from(*it))
                })
                .collect();
            let greatest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let powers: Vec<f64> = scores.iter().map(|it| (it - greatest).exp()).collect();
            let sum: f64 = powers.iter().sum();
            for column in 0..width {
                let value = |key: usize| {
                    f64::from(values[layouts[2].starts[head] + key * count * width + column])
                };
                let expected: f64 =
                    powers.iter().enumerate().map(|(key, power)| power / sum * value(key)).sum();
                let found =
                    f64::from(found[layouts[3].starts[head] + row * count * width + column]);
                assert!(
                    (found - expected).abs() < 1e-4 || found.is_nan() && expected.is_nan(),
                    "{}: {found}, expected {expected}",
                    kernel.name()
                );
            }
        }
    }
}

#[test]
fn an_attention_is_its_definition() {
    for mask in [None, Some(0.5), Some(f32::MIN), Some(f32::NEG_INFINITY)] {
        check([4, 5, 7, 8, 3], mask, 2);
        check([1, 1, 1, 1, 1], mask, 1);
    }
}

#[test]
fn one_attention_begins_where_its_operands_do() {
    let mut layouts = [[1, 1], [1, 3], [3, 1], [1, 1]].map(|it| Layout::contiguous(1, it, false));
    for (start, layout) in [1, 2, 1, 1].into_iter().zip(&mut layouts) {
        layout.starts = vec![start];
    }
    let (queries, keys) = ([f32::NAN, 0.0], [f32::NAN, f32::NAN, 1.0, 2.0, 3.0]);
    let values = [f32::NAN, 3.0, 6.0, 9.0];
    for set in InstructionSet::available() {
        let adjustment = Adjustment { factor: 1.0, mask: None };
        let kernel = Attention::prepare([1, 3, 1, 1], layouts.clone(), 1.0, adjustment, set, 1);
        let (mut found, mut scratch) = ([7.0; 2], Lines::with_bytes(kernel.scratch_bytes()));
        let inputs = [&queries[..], &keys, &values, &[]];
        kernel.run(&mut Team::new(1), inputs, &mut found, scratch.lines_mut());
        assert!(found[0] == 7.0 && (found[1] - 6.0).abs() < 1e-5, "{found:?} with {set}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "too long")]
fn many_queries_are_cut_into_blocks_and_many_keys_into_parts() {
    for (sizes, threads, cut) in [
        // Two attentions have one set of keys.
        ([6, 1, 900, 64, 65], 2, [1, 2]),
        ([6, 1, 900, 64, 65], 1, [1, 1]),
        ([2, 3, 1700, 40, 3], 3, [1, 3]),
        ([4, 200, 300, 40, 33], 3, [3, 1]),
        ([1, 90, 1100, 40, 40], 2, [2, 1]),
    ] {
        let layouts = [[1, 1]; 4].map(|it| Layout::contiguous(sizes[0], it, false));
        let [_, rows, keys, depth, width] = sizes;
        let starts = |of: usize| (0..sizes[0]).map(|it| it / 2 * of).collect();
        let [queries, of_keys, values, results] = layouts;
        let layouts = [
            Layout { row_stride: depth, ..queries },
            Layout { starts: starts(depth * keys), ..of_keys },
            Layout { starts: starts(width * keys), ..values },
            Layout {
                starts: (0..sizes[0]).map(|it| it * rows * width).collect(),
                row_stride: width,
                ..results
            },
        ];
        let adjustment = Adjustment { factor: 1.0, mask: None };
        let set = InstructionSet::Portable;
        let kernel =
            Attention::prepare([rows, keys, depth, width], layouts, 1.0, adjustment, set, threads);
        assert_eq!([kernel.blocks, kernel.key_parts], cut, "{sizes:?}");
        for masked in [None, Some(0.5), Some(f32::NEG_INFINITY)] {
            check(sizes, masked, threads);
        }
    }
}

#[test]
fn without_queries_nothing_is_looked_at() {
    for (count, queries) in [(0, 5), (3, 0)] {
        let layouts = [[queries, 2], [2, 200], [200, 2], [queries, 2]]
            .map(|it| Layout::contiguous(count, it, false));
        let adjustment = Adjustment { factor: 1.0, mask: Some(vec![(count, 0), (queries, 200)]) };
        let set = InstructionSet::best();
        let kernel = Attention::prepare([queries, 200, 2, 2], layouts, 1.0, adjustment, set, 2);
        let mut scratch = Lines::with_bytes(kernel.scratch_bytes());
        kernel.run(&mut Team::new(2), [&[]; 4], &mut [], scratch.lines_mut());
    }
}

#[test]
fn what_is_not_finite_is_so_in_whatever_part_of_the_keys_it_is() {
    let keys = 2 * LEAST_KEYS;
    let infinity = f32::INFINITY;
    for set in InstructionSet::available() {
        let layouts =
            [[1, 1], [1, keys], [keys, 1], [1, 1]].map(|it| Layout::contiguous(1, it, false));
        let adjustment = Adjustment { factor: 1.0, mask: Some(vec![(1, keys)]) };
        let mut kernel = Attention::prepare([1, keys, 1, 1], layouts, 1.0, adjustment, set, 1);
        for key_parts in [1, 2] {
            kernel.key_parts = key_parts;
            let result = |mask: &[f32], keys: &[f32]| {
                let (mut found, values) = ([7.0], vec![3.0; keys.len()]);
                let mut scratch = Lines::with_bytes(kernel.scratch_bytes());
                let inputs = [&[1.0][..], keys, &values, mask];
                kernel.run(&mut Team::new(1), inputs, &mut found, scratch.lines_mut());
                found[0]
            };
            let (ones, none) = (vec![1.0; keys], vec![0.0; keys]);
            let mut half = none.clone();
            half[..LEAST_KEYS].fill(-infinity);
            assert!((result(&half, &ones) - 3.0).abs() < 1e-6, "{set}: the first half is masked");
            half.reverse();
            assert!((result(&half, &ones) - 3.0).abs() < 1e-6, "{set}: the last half is masked");
            assert!(result(&vec![-infinity; keys], &ones).is_nan(), "{set}: all are masked");
            for (index, value) in [(0, f32::NAN), (keys - 1, f32::NAN), (0, infinity)] {
                let mut scores = ones.clone();
                scores[index] = value;
                assert!(result(&none, &scores).is_nan(), "{set}: {value} at {index}");
                let mut added = vec![-infinity; keys];
                added[index] = value;
                added[keys / 2 - 1] = 0.0;
                assert!(result(&added, &ones).is_nan(), "{set}: {value} of the mask at {index}");
            }
        }
    }
}

#[test]
fn keys_that_are_masked_for_all_queries_are_not_looked_at() {
    let masked = f32::NEG_INFINITY;
    let of_rows = |mask: &[f32], keys: usize| attended(mask.chunks(keys), keys);
    assert_eq!(of_rows(&[0.0, masked, masked, 0.0, 0.0, f32::MIN], 3), 2);
    assert_eq!(of_rows(&[0.0, f32::NAN, masked], 3), 2);
    assert_eq!(of_rows(&[0.0, -1e9, masked], 3), 2, "a score may be lower than that");
    assert_eq!(of_rows(&[0.0, masked, masked, masked], 2), 2, "one attends to none");
    // What is behind them is not even read.
    let layouts = [[1, 2], [2, 256], [256, 2], [1, 2]].map(|it| Layout::contiguous(1, it, false));
    let mut mask = [0.0; 256];
    mask[3..].fill(masked);
    let mut keys = [1.0; 512];
    let mut values = [f32::NAN; 512];
    keys[256 - 100..256].fill(f32::NAN);
    values[..128].fill(7.0);
    for set in InstructionSet::available() {
        let adjustment = Adjustment { factor: 1.0, mask: Some(vec![(1, 256)]) };
        let kernel = Attention::prepare([1, 256, 2, 2], layouts.clone(), 1.0, adjustment, set, 1);
        let (mut found, mut scratch) = ([0.0; 2], Lines::with_bytes(kernel.scratch_bytes()));
        let inputs = [&[1.0, 2.0][..], &keys, &values, &mask];
        kernel.run(&mut Team::new(1), inputs, &mut found, scratch.lines_mut());
        assert!(found.iter().all(|it| (it - 7.0).abs() < 1e-5), "{found:?} with {set}");
    }
}

#[test]
fn a_beta_with_which_masked_keys_count_has_them_looked_at() {
    // The first half of 256 keys is not masked, of the others the exponentials are e^-1.
    let mut mask = [0.0; 256];
    mask[128..].fill(-1e30);
    let mut values = [1.0; 256];
    values[128..].fill(2.0);
    let layouts = [[1, 1], [1, 256], [256, 1], [1, 1]].map(|it| Layout::contiguous(1, it, false));
    let expected = (1.0 + 2.0 * (-1.0_f32).exp()) / (1.0 + (-1.0_f32).exp());
    for set in InstructionSet::available() {
        let adjustment = Adjustment { factor: 1.0, mask: Some(vec![(1, 256)]) };
        let kernel = Attention::prepare([1, 256, 1, 1], layouts.clone(), 1e-30, adjustment, set, 1);
        let (mut found, mut scratch) = ([0.0], Lines::with_bytes(kernel.scratch_bytes()));
        let inputs = [&[0.0][..], &[0.0; 256], &values, &mask];
        kernel.run(&mut Team::new(1), inputs, &mut found, scratch.lines_mut());
        assert!((found[0] - expected).abs() < 1e-5, "{found:?}, expected {expected} with {set}");
    }
}

#[test]
#[should_panic(expected = "the mask has other rows")]
fn a_mask_of_other_rows_is_refused() {
    let layouts = [(); 4].map(|()| Layout::contiguous(1, [2, 2], false));
    let adjustment = Adjustment { factor: 1.0, mask: Some(vec![(3, 2)]) };
    Attention::prepare([2; 4], layouts, 1.0, adjustment, InstructionSet::Portable, 1);
}
