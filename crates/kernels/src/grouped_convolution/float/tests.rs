//! Grouped convolutions against their definition.

use super::*;
use crate::Epilogue;
use crate::convolution::float::tests::{any_shape, check_kernels};
use proptest::prelude::*;

/// Compares all instruction sets with the definition.
fn check(shape: &Shape, gaps: [usize; 2], with_residual: bool, threads: usize, seed: u64) {
    let prepare = |layer: Layer<'_>, preparation: &mut Preparation| {
        let stride = shape.input_channels + gaps[0];
        GroupedConvolution::prepare(shape, stride, layer, preparation)
    };
    // Sums of these numbers are exact, but where they are transformed first.
    let error = |kernel: &GroupedConvolution| {
        if kernel.kernel().starts_with("winograd") { 5e-7 } else { 0.0 }
    };
    check_kernels((shape, gaps), with_residual, threads, seed, (prepare, error));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 150 }))]

    #[test]
    fn any_shape_is_what_it_says(
        shape in any_shape(), gaps in [0_usize..2, 0_usize..2], with_residual: bool,
        threads in 1_usize..4, seed: u64,
    ) {
        check(&shape, gaps, with_residual, threads, seed);
    }

    #[test]
    fn small_groups_and_large_ones(
        batch in 1_usize..3, input in [1_usize..20, 1_usize..20], output in [1_usize..12, 1_usize..20],
        groups in 2_usize..12, inputs in 1_usize..10, outputs in prop_oneof![1_usize..10, Just(16)],
        filter in [1_usize..5, 1_usize..5], stride in [1_usize..3, 1_usize..3],
        dilation in [1_usize..3, 1_usize..3], padding_before in [0_usize..4, 0_usize..4],
        gaps in [0_usize..2, 0_usize..2], with_residual: bool, threads in 1_usize..4, seed: u64,
    ) {
        let shape = Shape {
            batch, input, output, filter, stride, dilation, padding_before, groups,
            input_channels: groups * inputs, output_channels: groups * outputs,
        };
        check(&shape, gaps, with_residual, threads, seed);
    }

    #[test]
    fn filters_of_very_many_taps(
        batch in 1_usize..3, input in [1_usize..3, 1_usize..90], output in [1_usize..3, 1_usize..40],
        groups in 2_usize..5, inputs in 1_usize..5, outputs in 1_usize..40,
        height in 1_usize..4, width in 65_usize..90, stride in [1_usize..3, 1_usize..3],
        dilation in 1_usize..3, padding_before in [0_usize..3, 0_usize..80],
        gaps in [0_usize..2, 0_usize..2], with_residual: bool, threads in 1_usize..4, seed: u64,
    ) {
        let shape = Shape {
            batch, input, output, filter: [height, width], stride, dilation: [dilation, 1],
            padding_before, groups, input_channels: groups * inputs,
            output_channels: groups * outputs,
        };
        check(&shape, gaps, with_residual, threads, seed);
    }
}

/// How a shape is computed.
fn kernel(shape: &Shape, set: InstructionSet) -> String {
    let (filter, bias) = (vec![0.0; shape.filter_values()], vec![0.0; shape.output_channels]);
    let layer = Layer { filter: &filter, bias: &bias, epilogue: Epilogue::NONE };
    let preparation = &mut Preparation::new(set, 1);
    GroupedConvolution::prepare(shape, shape.input_channels, layer, preparation)
        .expect("it is small")
        .kernel()
}

#[test]
fn shapes_have_the_method_that_is_made_for_them() {
    // ResNeXt's first and third blocks.
    let shape = |side: usize, channels: usize| Shape {
        groups: 32,
        ..Shape::same([side; 2], [channels; 2], [3; 2], 1)
    };
    // Of wav2vec 2.0, the one that says where a sound is.
    let position = Shape {
        input: [1, 49],
        output: [1, 50],
        filter: [1, 128],
        padding_before: [0, 64],
        groups: 16,
        ..shape(49, 96)
    };
    for set in InstructionSet::available() {
        let lanes = crate::vector::Isa::of(set).lanes();
        assert_eq!(kernel(&shape(28, 16 * lanes), set), format!("direct f32 {set}"));
        let wide = kernel(&shape(14, 32 * lanes), set);
        assert!(wide.starts_with("indirect gemm f32"), "{wide}");
        assert_eq!(kernel(&position, set), format!("padded copy gemm f32 {set}"));
    }
}
