use super::{Magnitudes, RealFourier, Rows};
use crate::InstructionSet;
use crate::prepared::tests::outputs;
use std::f64::consts::PI;

/// By the definition.
fn expected(row: &[f32], length: usize) -> Vec<[f64; 2]> {
    let of = |v: usize| {
        row.iter().enumerate().fold([0.0, 0.0], |[re, im], (x, value)| {
            let (sin, cos) = (-2.0 * PI * ((v * x) % length) as f64 / length as f64).sin_cos();
            [re + f64::from(*value) * cos, im + f64::from(*value) * sin]
        })
    };
    (0..=length / 2).map(of).collect()
}

fn transformed(kernel: &RealFourier, input: &[f32], rows: usize, length: usize) -> Vec<f32> {
    let bytes = rows * (length + 2) * size_of::<f32>();
    let [output] = outputs(kernel, &[bytemuck::cast_slice(input)], [bytes]);
    bytemuck::pod_collect_to_vec(&output)
}

#[test]
fn rows_are_transformed_by_the_definition() {
    for set in InstructionSet::available() {
        for (length, elements, distance, count) in [
            (2, 2, 2, 1),
            (4, 3, 5, 9),
            (8, 8, 8, 8),
            (64, 64, 100, 17),
            (256, 200, 200, 3),
            (1024, 1024, 1024, 9),
        ] {
            let rows = Rows { count, distance, elements };
            let input: Vec<f32> = (0..count * distance)
                .map(|at| ((at * 7919 % 1013) as f32 - 506.0) / 97.0)
                .collect();
            let kernel = RealFourier::prepare(set, rows, length, 3);
            let output = transformed(&kernel, &input, count, length);
            for (row, output) in output.chunks_exact(length + 2).enumerate() {
                let row = &input[row * distance..row * distance + elements];
                let largest = row.iter().map(|it| f64::from(it.abs())).sum::<f64>();
                for (found, expected) in output.as_chunks::<2>().0.iter().zip(expected(row, length))
                {
                    for (found, expected) in found.iter().zip(expected) {
                        let off = (f64::from(*found) - expected).abs();
                        let allowed = expected.abs() * 6e-8 + largest * 1e-14;
                        assert!(off <= allowed, "{set} {length}: {found} and not {expected}");
                    }
                }
            }
        }
    }
}

/// What is not a number stays within its row.
#[test]
fn rows_have_nothing_to_do_with_each_other() {
    let rows = Rows { count: 8, distance: 16, elements: 16 };
    let mut input = vec![0.0_f32; 8 * 16];
    input[3 * 16 + 5] = f32::NAN;
    input[4 * 16] = 1e30;
    let kernel = RealFourier::prepare(InstructionSet::best(), rows, 16, 1);
    let output = transformed(&kernel, &input, 8, 16);
    for (row, output) in output.chunks_exact(18).enumerate() {
        match row {
            3 => assert!(output.iter().all(|it| it.is_nan())),
            4 => assert!(output.as_chunks::<2>().0.iter().all(|it| *it == [1e30, 0.0])),
            _ => assert!(output.iter().all(|it| *it == 0.0), "row {row}: {output:?}"),
        }
    }
}

#[test]
fn magnitudes_are_rounded_once() {
    // Its square is beyond single precision.
    let large = 2.0_f32.powi(100);
    let numbers = [
        [3.0, -4.0],
        [0.0, -0.0],
        [3.0 * large, 4.0 * large],
        [1e-30, 0.0],
        [f32::NAN, 1.0],
        [f32::NAN, f32::NEG_INFINITY],
    ];
    let many: Vec<[f32; 2]> = numbers.into_iter().cycle().take(6 * 5).collect();
    for set in InstructionSet::available() {
        let [output] =
            outputs(&Magnitudes { set }, &[bytemuck::cast_slice(&many)], [4 * many.len()]);
        let output: Vec<f32> = bytemuck::pod_collect_to_vec(&output);
        for found in output.chunks_exact(6) {
            assert_eq!(found[..4], [5.0, 0.0, 5.0 * large, 1e-30]);
            assert!(found[4].is_nan() && found[5] == f32::INFINITY, "{found:?}");
        }
    }
}
