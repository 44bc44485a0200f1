use super::*;
use crate::Lines;
use crate::convolution::float::tests::numbers;
use crate::preparation::prepared_twice;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 200 }))]

    #[test]
    fn a_layer_is_the_sums_of_products(
        rows in 0_usize..5, inputs in 0_usize..50, units in 0_usize..300,
        half: bool, with_residual: bool, threads in 1_usize..4, seed: u64,
    ) {
        let input = numbers(seed, rows * inputs);
        // Of few bits: float16 holds them.
        let weights = numbers(seed ^ 1, units * inputs);
        let bias = numbers(seed ^ 2, units);
        let residual = numbers(seed ^ 3, rows * units);
        let epilogue = Epilogue { min: -20.0, max: 25.0, hard_swish: false };
        let storage = if half { Storage::Half } else { Storage::Full };
        for set in InstructionSet::available() {
            let sizes = Sizes { rows, inputs, units };
            let layer =
                prepared_twice(set, threads, |preparation| {
                    FullyConnected::prepare(sizes, &weights, &bias, storage, epilogue, preparation)
                });
            let mut output = vec![-77.0; rows * units + 1];
            let mut scratch = Lines::with_bytes(layer.scratch_bytes());
            let mut team = Team::new(threads);
            let residual = with_residual.then_some(&*residual);
            layer.run(&mut team, &input, residual, &mut output, scratch.lines_mut());
            prop_assert_eq!(output.pop(), Some(-77.0));
            for (index, &found) in output.iter().enumerate() {
                let (row, unit) = (index / units, index % units);
                let products = input[row * inputs..][..inputs]
                    .iter()
                    .zip(&weights[unit * inputs..])
                    .map(|(a, b)| a * b);
                let added = residual.map_or(0.0, |residual| residual[index]);
                let expected = epilogue.apply_to(products.sum::<f32>() + bias[unit] + added);
                prop_assert_eq!(found, expected, "{}, row {}, unit {}", layer.kernel(), row, unit);
            }
        }
    }
}
