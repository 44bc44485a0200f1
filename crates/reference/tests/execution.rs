//! Models that run on the reference device, through [`nnhal_hal::Device`] alone.

mod support;

use nnhal_hal::{
    DeviceType, ErrorStatus, HalVersion, Memory, ModelBuilder, OperandSpec, OperandType,
    OperationType, PrepareOptions, RequestArgument, SubgraphBuilder, Support,
};
use std::sync::atomic::{AtomicBool, Ordering};
use support::{binary, f32s, failure, prepare, request, run, vector};

#[test]
fn exec_6_an_addition_gives_the_sum() {
    let prepared =
        prepare(&binary(OperationType::Add, &vector(2), vector(2)).into_model().unwrap());
    let request = request(&[(&[], &f32s(&[1.0, 2.0])), (&[], &f32s(&[10.0, -5.0]))], &[8]);
    assert_eq!(run(&*prepared, &request).unwrap(), [(vec![2], f32s(&[11.0, -3.0]))]);
}

/// `relu(x + y)` of which the model knows no shape, not even a rank.
fn shapeless() -> nnhal_hal::Model {
    let unknown = OperandSpec::tensor_float32([]);
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", unknown.clone());
    let y = graph.input("y", unknown.clone());
    let none = graph.scalar_i32(0);
    let sum = graph.operation(OperationType::Add, [x, y, none], unknown.clone());
    let relu = graph.operation(OperationType::Relu, [sum], unknown);
    graph.output(relu);
    graph.into_model().unwrap()
}

#[test]
fn shape_3_and_prep_10_unknown_ranks_are_settled_by_each_request() {
    let prepared = prepare(&shapeless());
    let square = f32s(&[1.0, -2.0, 3.0, -4.0]);
    let first = request(&[(&[2, 2], &square), (&[1], &f32s(&[1.0]))], &[16]);
    assert_eq!(run(&*prepared, &first).unwrap(), [(vec![2, 2], f32s(&[2.0, 0.0, 4.0, 0.0]))]);
    let second = request(&[(&[1, 1, 1], &f32s(&[5.0])), (&[1], &f32s(&[1.0]))], &[16]);
    assert_eq!(run(&*prepared, &second).unwrap(), [(vec![1, 1, 1], f32s(&[6.0]))]);
}

#[test]
fn shape_4_too_short_a_buffer_gives_the_computed_shape() {
    let prepared = prepare(&shapeless());
    let short = request(&[(&[2, 2], &[0; 16]), (&[1], &[0; 4])], &[15]);
    let failed = run(&*prepared, &short).unwrap_err();
    assert_eq!(failed.error.status(), ErrorStatus::OutputInsufficientSize);
    assert_eq!(failed.output_shapes[0].dimensions, [2, 2]);
    assert!(!failed.output_shapes[0].is_sufficient);
}

#[test]
fn exec_7_shapes_that_contradict_each_other_name_the_operation() {
    let prepared = prepare(&shapeless());
    let (status, text) =
        failure(run(&*prepared, &request(&[(&[2], &[0; 8]), (&[3], &[0; 12])], &[12])));
    assert_eq!(status, ErrorStatus::GeneralFailure);
    assert!(text.contains("operation 0 (ADD) of main subgraph"), "{text}");
    assert!(text.contains("[2] and [3]"), "{text}");
}

#[test]
fn exec_7_a_result_that_is_not_as_declared_names_the_operation() {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", vector(0));
    let y = graph.operation(OperationType::Relu, [x], vector(3));
    let z = graph.operation(OperationType::Relu, [y], vector(0));
    graph.output(z);
    let prepared = prepare(&graph.into_model().unwrap());
    assert!(run(&*prepared, &request(&[(&[3], &[0; 12])], &[12])).is_ok());
    let (status, text) = failure(run(&*prepared, &request(&[(&[2], &[0; 8])], &[12])));
    assert_eq!(status, ErrorStatus::GeneralFailure);
    assert!(text.contains("operation 0 (RELU) of main subgraph"), "{text}");
}

#[test]
fn shape_5_a_result_that_is_not_as_requested_is_a_failure() {
    let prepared = prepare(&shapeless());
    let mut request = request(&[(&[2], &[0; 8]), (&[2], &[0; 8])], &[12]);
    request.outputs[0].dimensions = vec![3];
    assert_eq!(failure(run(&*prepared, &request)).0, ErrorStatus::GeneralFailure);
    request.outputs[0].dimensions = vec![2];
    assert!(run(&*prepared, &request).is_ok());
}

#[test]
fn req_2_leaving_out_what_an_operation_needs_fails_when_it_runs() {
    let prepared =
        prepare(&binary(OperationType::Add, &vector(2), vector(2)).into_model().unwrap());
    let mut request = request(&[(&[], &[0; 8]), (&[], &[0; 8])], &[8]);
    request.inputs[1] = RequestArgument::omitted();
    let (status, text) = failure(run(&*prepared, &request));
    assert_eq!(status, ErrorStatus::GeneralFailure);
    assert!(text.contains("ADD: value of input 1 (input1) is left out"), "{text}");
}

#[test]
fn req_2_an_argument_that_must_not_be_left_out_gets_no_default() {
    // The list may end before the axis, but if it goes on there must be a value.
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", vector(2));
    let beta = graph.scalar_f32(1.0);
    let axis = graph.input("axis", OperandSpec::scalar(OperandType::Int32));
    let y = graph.operation(OperationType::Softmax, [x, beta, axis], vector(2));
    graph.output(y);
    let prepared = prepare(&graph.into_model().unwrap());
    let mut request = request(&[(&[], &[0; 8]), (&[], &[0; 4])], &[8]);
    assert!(run(&*prepared, &request).is_ok());
    request.inputs[1] = RequestArgument::omitted();
    let (status, text) = failure(run(&*prepared, &request));
    assert_eq!(status, ErrorStatus::GeneralFailure);
    assert!(text.contains("SOFTMAX: value of input 2 (axis) is left out"), "{text}");
}

#[test]
fn prep_11_constants_in_pools_are_read_while_preparing_and_may_overlap() {
    let pool = Memory::from_bytes(&f32s(&[0.0, 1.0, 2.0, 3.0])).unwrap();
    let mut builder = ModelBuilder::new();
    let id = builder.pool(pool.clone());
    let mut graph = SubgraphBuilder::new();
    let a = graph.constant_in_pool(vector(2), id, 4, 8);
    let b = graph.constant_in_pool(vector(2), id, 8, 8);
    let other = graph.constant_in_pool(vector(1), id, 0, 4);
    let none = graph.scalar_i32(0);
    let sum = graph.operation(OperationType::Add, [a, b, none], vector(2));
    let sum = graph.operation(OperationType::Add, [sum, other, none], vector(2));
    graph.output(sum);
    let prepared = prepare(&builder.build(graph).unwrap());
    // The client's memory is its own again.
    pool.view().unwrap().write(0, &f32s(&[9.0; 4])).unwrap();
    let outputs = run(&*prepared, &request(&[], &[8])).unwrap();
    assert_eq!(outputs, [(vec![2], f32s(&[3.0, 5.0]))]);
}

#[test]
fn gen_5_inputs_stay_as_they_are_and_values_are_freed_only_after_their_last_use() {
    // x is read first and last; the first sum is used twice more, and is an output too.
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", vector(1));
    let none = graph.scalar_i32(0);
    let two = graph.operation(OperationType::Add, [x, x, none], vector(1));
    let four = graph.operation(OperationType::Add, [two, two, none], vector(1));
    let unused = graph.operation(OperationType::Mul, [four, four, none], vector(1));
    let _ = unused;
    let seven = graph.operation(OperationType::Add, [four, two, none], vector(1));
    let seven = graph.operation(OperationType::Add, [seven, x, none], vector(1));
    graph.output(two);
    graph.output(seven);
    let prepared = prepare(&graph.into_model().unwrap());
    let request = request(&[(&[], &f32s(&[1.5]))], &[4, 4]);
    let outputs = run(&*prepared, &request).unwrap();
    assert_eq!(outputs, [(vec![1], f32s(&[3.0])), (vec![1], f32s(&[10.5]))]);
    let nnhal_hal::RequestMemoryPool::Memory(memory) = &request.pools[0] else { panic!("memory") };
    assert_eq!(memory.view().unwrap().read_to_vec(0, 4).unwrap(), f32s(&[1.5]));
}

#[test]
fn dev_sup_3_and_ext_6_what_it_cannot_run_is_said_with_a_reason() {
    let mut builder = ModelBuilder::new();
    builder.extension("com.example.test", 1);
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", vector(2));
    let extension = nnhal_hal::ExtensionType::new(1, 7).unwrap();
    let y = graph.operation(OperationType::Extension(extension), [x], vector(2));
    let z = graph.operation(OperationType::Relu, [y], vector(2));
    graph.output(z);
    let model = builder.build(graph).unwrap();
    let device = nnhal_reference::device();
    let support = device.supported_operations(&model, HalVersion::V1_3).unwrap();
    let reason = "the device does not offer extension \"com.example.test\"";
    assert_eq!(support, [Support::No(reason.to_owned()), Support::Yes]);
    let prepared = device.prepare_model(&model, HalVersion::V1_3, PrepareOptions::default());
    assert_eq!(prepared.err().unwrap().status(), ErrorStatus::GeneralFailure);
}

#[test]
fn dev_info_and_dev_cap_the_device_describes_itself() {
    let device = nnhal_reference::device();
    assert_eq!(device.name(), "nnhal-reference");
    assert!(!device.version_string().is_empty());
    assert_eq!(device.device_type(), DeviceType::Cpu);
    let capabilities = device.capabilities();
    assert!(capabilities.operand_performance.iter().all(|row| row.info.is_valid()));
    assert!(capabilities.of(OperandType::TensorFloat32).exec_time > 1.0);
}

#[test]
fn sec_1_inputs_that_change_while_they_are_read_give_wrong_values_at_worst() {
    // The axis decides a shape: out of range it must be refused, whenever it changed.
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([2, 3]));
    let axes = graph.input("axes", OperandSpec::tensor_int32([1]));
    let keep = graph.scalar_i32(0);
    let mean = graph.operation(OperationType::Mean, [x, axes, keep], vector(0));
    graph.output(mean);
    let prepared = prepare(&graph.into_model().unwrap());
    let request = request(&[(&[], &[0; 24]), (&[], &[0; 4])], &[12]);
    let nnhal_hal::RequestMemoryPool::Memory(memory) = &request.pools[0] else { panic!("memory") };
    let view = memory.view().unwrap();
    let offset = u64::from(request.inputs[1].location.offset);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let axes = [0, 1, i32::MAX, i32::MIN, -1].into_iter().cycle();
            for axis in axes.take_while(|_| !stop.load(Ordering::Relaxed)) {
                view.write(offset, &axis.to_le_bytes()).unwrap();
            }
        });
        let results: Vec<_> = (0..2000).map(|_| run(&*prepared, &request)).collect();
        stop.store(true, Ordering::Relaxed);
        for result in results {
            match result {
                Ok(outputs) => assert!(matches!(outputs[0].0[..], [2 | 3])),
                Err(failed) => assert_eq!(failed.error.status(), ErrorStatus::GeneralFailure),
            }
        }
    });
}

mod laws {
    use super::*;
    use proptest::prelude::*;

    /// `relu(x + y) * x`, with shapes as given.
    fn model(x: &[u32], y: &[u32], rest: &[u32]) -> nnhal_hal::Model {
        let mut graph = SubgraphBuilder::new();
        let rest = OperandSpec::tensor_float32(rest);
        let x = graph.input("x", OperandSpec::tensor_float32(x));
        let y = graph.input("y", OperandSpec::tensor_float32(y));
        let none = graph.scalar_i32(0);
        let sum = graph.operation(OperationType::Add, [x, y, none], rest.clone());
        let relu = graph.operation(OperationType::Relu, [sum], rest.clone());
        let product = graph.operation(OperationType::Mul, [relu, x, none], rest);
        graph.output(product);
        graph.into_model().unwrap()
    }

    proptest! {
        /// Whenever shapes become known, the results are the same.
        #[test]
        fn prep_10_unknown_shapes_give_what_known_shapes_give(
            rows in 1..4_u32,
            columns in 1..4_u32,
            unknown_rank: bool,
            seed in prop::collection::vec(-2.0..2.0_f32, 12),
        ) {
            let (whole, row) = ([rows, columns], [columns]);
            let x = f32s(&seed[..(rows * columns) as usize]);
            let y = f32s(&seed[..columns as usize]);
            let known = prepare(&model(&whole, &row, &whole));
            let unknown = if unknown_rank { model(&[], &[], &[]) } else { model(&[0, 0], &[0], &[0, 0]) };
            let unknown = prepare(&unknown);
            let request = request(&[(&whole, &x), (&row, &y)], &[x.len()]);
            let expected = run(&*known, &request).unwrap();
            prop_assert_eq!(run(&*unknown, &request).unwrap(), expected);
        }
    }
}
