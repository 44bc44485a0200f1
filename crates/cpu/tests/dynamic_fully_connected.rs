//! DYNAMIC_FULLY_CONNECTED by the packed product, beside the reference.

#![allow(clippy::cast_possible_truncation)] // Of small numbers.

mod support;

use bytes::Bytes;
use nnhal_cpu::{CpuEngine, CpuProgram, InstructionSet, Settings};
use nnhal_driver::{Budget, CompileOptions, Engine, Program};
use nnhal_hal::{
    Device, ExecutionPreference, HalVersion, Model, ModelBuilder, OperandSpec, Priority, Request,
    RequestBuilder, SubgraphBuilder,
};
use nnhal_ops::extension::{ExtensionOperation, NAME, PREFIX};
use std::num::NonZeroUsize;

const INPUTS: u32 = 131;

const OPTIONS: CompileOptions = CompileOptions {
    preference: ExecutionPreference::FastSingleAnswer,
    priority: Priority::Medium,
    hints: nnhal_hal::Hints::NONE,
};

/// Numbers that follow no rule that matters, from -1 to 1.
fn numbers(count: u32, seed: u32) -> Vec<f32> {
    let number = |index: u32| {
        let mixed = (index + seed).wrapping_mul(0x9E37_79B9).rotate_left(15).wrapping_mul(0x85EB);
        f32::from((mixed >> 16) as u16) / 32_768.0 - 1.0
    };
    (0..count).map(number).collect()
}

/// A layer of this many rows and units.
fn layer(rows: u32, units: u32, by_unit: bool) -> Model {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([rows, INPUTS]));
    let weights: Vec<u8> = numbers(units * INPUTS, 7)
        .into_iter()
        .map(|number| ((number * 127.0) as i8).cast_unsigned())
        .collect();
    let scales: Vec<f32> = numbers(units, 11).iter().map(|it| 0.01 + it.abs() * 0.01).collect();
    let spec = if by_unit {
        OperandSpec::tensor_quant8_symm_per_channel([units, INPUTS], &scales, 0)
    } else {
        OperandSpec::tensor_quant8_asymm_signed([units, INPUTS], 0.01, 0)
    };
    let weights = graph.constant_bytes(spec, &weights);
    let bias = graph.constant(OperandSpec::tensor_float32([units]), &numbers(units, 13));
    let relu = graph.scalar_i32(1);
    let operation = ExtensionOperation::DynamicFullyConnected.operation_type();
    let output = OperandSpec::tensor_float32([rows, units]);
    let y = graph.operation(operation, [x, weights, bias, relu], output);
    graph.output(y);
    let mut model = ModelBuilder::new();
    model.extension(NAME, PREFIX);
    model.build(graph).unwrap()
}

fn request(rows: u32, units: u32) -> Request {
    let mut numbers = numbers(rows * INPUTS, 17);
    // A row of its own range, one of zeros, and one that is not finite.
    for (row, numbers) in numbers.chunks_exact_mut(INPUTS as usize).enumerate() {
        match row % 5 {
            1 => numbers.iter_mut().for_each(|it| *it = *it * 1000.0 + 900.0),
            3 => numbers.fill(0.0),
            4 => numbers[row] = f32::INFINITY,
            _ => {}
        }
    }
    let bytes: Vec<u8> = numbers.into_iter().flat_map(f32::to_le_bytes).collect();
    let mut request = RequestBuilder::new();
    request.input(&bytes);
    request.output((rows * units) as usize * 4);
    request.build().unwrap()
}

fn outputs(device: &dyn Device, model: &Model, [rows, units]: [u32; 2]) -> Vec<f32> {
    let request = request(rows, units);
    support::execute(&*support::prepare(device, model), &request);
    let bytes = RequestBuilder::read_output(&request, 0).unwrap();
    bytes.as_chunks().0.iter().map(|it| f32::from_le_bytes(*it)).collect()
}

fn settings(instruction_set: InstructionSet, threads: usize) -> Settings {
    let settings = Settings { instruction_set, ..Settings::default() };
    settings.with_threads(NonZeroUsize::new(threads).unwrap())
}

#[test]
fn all_instruction_sets_agree_with_the_reference() {
    for (rows, units) in [(1, 1), (1, 200), (7, 65), (100, 40)] {
        for by_unit in [false, true] {
            let model = layer(rows, units, by_unit);
            let expected = outputs(&*nnhal_reference::device(), &model, [rows, units]);
            for set in InstructionSet::available() {
                for threads in [1, 2] {
                    let device = nnhal_cpu::device(settings(set, threads));
                    let found = outputs(&*device, &model, [rows, units]);
                    assert_eq!(found.len(), expected.len());
                    for (found, expected) in found.iter().zip(&expected) {
                        let is_same = (found - expected).abs() <= 1e-6 * (1.0 + expected.abs());
                        let both_nan = found.is_nan() && expected.is_nan();
                        assert!(is_same || both_nan, "{set}: {found} and not {expected}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_plan_multiplies_bytes_and_its_packed_weights_are_saved() {
    let model = nnhal_ops::validate(&layer(24, 70, true), HalVersion::LATEST).unwrap();
    let engine = CpuEngine::new(settings(InstructionSet::best(), 1));
    let program = engine.compile(&model, &OPTIONS, &Budget::unlimited()).unwrap();
    let kernels = |program: &CpuProgram| -> Vec<String> {
        program.plan().into_iter().map(|step| step.kernel).collect()
    };
    let name = format!("dynamic fully connected gemm i8 {}", InstructionSet::best());
    assert_eq!(kernels(&program), [name]);
    let saved = program.save().expect("all shapes are known");
    let restored =
        engine.restore(Bytes::from(saved.clone()), &OPTIONS, &Budget::unlimited()).unwrap();
    assert_eq!(kernels(&restored), kernels(&program));
    assert!(restored.save() == Some(saved));
}
