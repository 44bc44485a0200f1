//! Which operations are supported, and what happens to models with others (DEV-SUP, PREP-5).

mod engine;

use engine::{Scripted, relu, vector};
use nnhal_driver::UnsupportedOperations;
use nnhal_hal::memory::Protection;
use nnhal_hal::{
    Device, ErrorStatus, HalVersion, Memory, Model, ModelBuilder, OperandSpec, OperationType,
    PrepareOptions, SubgraphBuilder, Support,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn no_tanh() -> Scripted {
    Scripted::idle().supporting(|_, place| match place.operation_type {
        OperationType::Tanh => Support::No("no hyperbolic functions".to_owned()),
        _ => Support::Yes,
    })
}

/// A subgraph of one operation on a vector.
fn unary(operation: OperationType) -> SubgraphBuilder {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", vector(2));
    let y = graph.operation(operation, [x], vector(2));
    graph.output(y);
    graph
}

/// Appends IF between two subgraphs.
fn choose(
    graph: &mut SubgraphBuilder,
    then: nnhal_hal::builder::SubgraphId,
    otherwise: nnhal_hal::builder::SubgraphId,
) {
    let condition = graph.constant(OperandSpec::tensor_bool8([1]), &[true]);
    let (then, otherwise) = (graph.subgraph(then), graph.subgraph(otherwise));
    let x = graph.input("x", vector(2));
    let y = graph.operation(OperationType::If, [condition, then, otherwise, x], vector(2));
    graph.output(y);
}

fn support(engine: Scripted, model: &Model) -> Vec<Support> {
    engine.device().supported_operations(model, HalVersion::V1_3).unwrap()
}

#[test]
fn dev_sup_2_and_5_one_answer_per_operation_with_a_reason() {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", vector(2));
    let y = graph.operation(OperationType::Relu, [x], vector(2));
    let z = graph.operation(OperationType::Tanh, [y], vector(2));
    graph.output(z);
    assert_eq!(
        support(no_tanh(), &graph.into_model().unwrap()),
        [Support::Yes, Support::No("no hyperbolic functions".to_owned())]
    );
}

#[test]
fn dev_sup_1_an_invalid_model_is_refused() {
    let newer = relu(
        OperandSpec::tensor_quant8_asymm_signed([1], 1.0, 0),
        OperandSpec::tensor_quant8_asymm_signed([1], 1.0, 0),
    );
    let error =
        Scripted::idle().device().supported_operations(&newer, HalVersion::V1_2).unwrap_err();
    assert_eq!(error.status(), ErrorStatus::InvalidArgument);
}

#[test]
fn dev_sup_4_control_flow_is_supported_only_with_all_that_is_inside() {
    let mut builder = ModelBuilder::new();
    let good = builder.reference(unary(OperationType::Relu));
    let bad = builder.reference(unary(OperationType::Tanh));
    let mut middle = SubgraphBuilder::new();
    choose(&mut middle, good, bad);
    let middle = builder.reference(middle);
    let mut main = SubgraphBuilder::new();
    choose(&mut main, good, middle);
    let model = builder.build(main).unwrap();
    let reason = "operation 0 (TANH) of referenced subgraph 1: no hyperbolic functions";
    assert_eq!(support(no_tanh(), &model), [Support::No(reason.to_owned())]);
    assert_eq!(support(Scripted::idle(), &model), [Support::Yes]);

    let no_if = Scripted::idle().supporting(|_, place| match place.operation_type {
        OperationType::If => Support::No("no branches".to_owned()),
        _ => Support::Yes,
    });
    assert_eq!(support(no_if, &model), [Support::No("no branches".to_owned())]);
}

#[test]
fn cf_5_and_sec_3_a_deep_lattice_of_subgraphs_is_asked_about_once() {
    const DEPTH: usize = 20_000;
    let mut builder = ModelBuilder::new();
    let mut inner = builder.reference(unary(OperationType::Relu));
    for _ in 0..DEPTH {
        let mut graph = SubgraphBuilder::new();
        // Both branches are the same subgraph: 2^DEPTH ways through.
        choose(&mut graph, inner, inner);
        inner = builder.reference(graph);
    }
    let mut main = SubgraphBuilder::new();
    choose(&mut main, inner, inner);
    let model = builder.build(main).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let engine = Scripted::idle().supporting(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        Support::Yes
    });
    assert_eq!(support(engine, &model), [Support::Yes]);
    assert_eq!(asked.load(Ordering::Relaxed), DEPTH + 2);
}

#[test]
fn prep_5_a_model_with_unsupported_operations_is_not_prepared() {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", vector(2));
    let y = graph.operation(OperationType::Tanh, [x], vector(2));
    graph.output(y);
    let device = no_tanh().device();
    let model = graph.into_model().unwrap();
    let error = device
        .prepare_model(&model, HalVersion::V1_3, PrepareOptions::default())
        .err()
        .expect("a refusal");
    assert_eq!(error.status(), ErrorStatus::GeneralFailure);
    let unsupported: &UnsupportedOperations = error.reason().unwrap();
    assert_eq!(unsupported.operations.len(), 1);
    assert_eq!(unsupported.operations[0].0.to_string(), "operation 0 (TANH) of main subgraph");
}

/// Two operations that declare lengths which do not follow, one of them in a branch; two others.
fn with_defects() -> Model {
    let mut builder = ModelBuilder::new();
    let good = builder.reference(unary(OperationType::Relu));
    let mut broken = SubgraphBuilder::new();
    let x = broken.input("x", vector(2));
    let y = broken.operation(OperationType::Relu, [x], vector(2));
    broken.operation(OperationType::Relu, [y], vector(3));
    broken.output(y);
    let broken = builder.reference(broken);
    let mut main = SubgraphBuilder::new();
    let x = main.input("x", vector(2));
    let y = main.operation(OperationType::Relu, [x], vector(7));
    let z = main.operation(OperationType::Tanh, [y], vector(7));
    main.output(z);
    choose(&mut main, good, broken);
    choose(&mut main, good, good);
    builder.build(main).unwrap()
}

#[test]
fn model_29_operations_with_a_defect_are_not_supported_and_no_engine_sees_them() {
    let model = with_defects();
    for version in [HalVersion::V1_3, HalVersion::LATEST] {
        let seen = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&seen);
        let engine = Scripted::idle().supporting(move |model, place| {
            count.fetch_add(1, Ordering::Relaxed);
            nnhal_ops::validate(model.model(), model.version()).expect("no defects");
            let operation = &model.subgraph(place.subgraph).operations[place.index];
            assert_eq!(operation.operation_type, place.operation_type);
            Support::Yes
        });
        let answers = engine.device().supported_operations(&model, version).unwrap();
        let [Support::No(own), Support::Yes, Support::No(inner), Support::Yes] = &answers[..]
        else {
            panic!("{answers:?}")
        };
        assert!(own.contains("output 0 has shape [7], expected [2]"), "{own}");
        assert!(inner.contains("operation 1 of the referenced subgraph 1"), "{inner}");
        // TANH, IF, and the operation of its branch.
        assert_eq!(seen.load(Ordering::Relaxed), 3);
    }
    let engine = Scripted::idle().compiling(|_, _, _| panic!("an engine sees it"));
    let prepared =
        engine.device().prepare_model(&model, HalVersion::V1_3, PrepareOptions::default());
    let error = prepared.err().expect("a refusal");
    assert_eq!(error.status(), ErrorStatus::GeneralFailure);
    let unsupported: &UnsupportedOperations = error.reason().unwrap();
    let places: Vec<_> = unsupported.operations.iter().map(|(it, _)| it.to_string()).collect();
    let expected =
        ["operation 0 (RELU) of main subgraph", "operation 1 (RELU) of referenced subgraph 1"];
    assert_eq!(places, expected);
}

/// Adds a constant in a pool to a vector.
fn adding_from(pool: Memory) -> Model {
    let mut builder = ModelBuilder::new();
    let pool = builder.pool(pool);
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", vector(2));
    let constant = graph.constant_in_pool(vector(2), pool, 0, 8);
    let none = graph.scalar_i32(0);
    let y = graph.operation(OperationType::Relu, [x], vector(2));
    let z = graph.operation(OperationType::Add, [y, constant, none], vector(2));
    graph.output(z);
    builder.build(graph).unwrap()
}

#[test]
fn dev_sup_3_constants_that_cannot_be_read_are_not_supported_and_not_prepared() {
    let fd = || Memory::allocate(8).unwrap().parts().0[0].try_clone().unwrap();
    let blob = |fds, size| Memory::from_parts("hardware_buffer_blob", fds, &[], size).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(8).unwrap();
    let file = std::fs::File::options().write(true).open(file.path()).unwrap();
    let only_written = Protection { read: false, write: true };
    for (pool, readable) in [
        (blob(vec![fd()], 8), true),
        (blob(vec![fd(), fd()], 8), false),
        (blob(vec![fd()], 9), false),
        (blob(vec![std::fs::File::open("/dev/null").unwrap().into()], 8), false),
        (Memory::from_parts("hardware_buffer", vec![fd()], &[], 8).unwrap(), false),
        (Memory::from_file(file.into(), only_written, 0, 8).unwrap(), false),
    ] {
        let model = adding_from(pool);
        // An engine that computes, so that constants are wanted.
        let device = nnhal_driver::DriverDevice::new(nnhal_reference::ReferenceEngine::new());
        let support = device.supported_operations(&model, HalVersion::V1_3).unwrap();
        assert_eq!(support[0], Support::Yes);
        let prepared = device.prepare_model(&model, HalVersion::V1_3, PrepareOptions::default());
        match (&support[1], prepared) {
            (Support::Yes, Ok(_)) => assert!(readable),
            (Support::No(reason), Err(error)) => {
                assert!(!readable && reason.contains("pool 0"), "{reason}");
                assert_eq!(error.status(), ErrorStatus::GeneralFailure);
                assert!(error.reason::<UnsupportedOperations>().is_some());
            }
            (support, prepared) => panic!("{support:?}, prepared: {}", prepared.is_ok()),
        }
    }
}

#[test]
fn dev_info_1_the_version_string_names_the_engine_and_the_build() {
    let version = Scripted::idle().device().version_string();
    let (engine, build) = version.split_once(" build ").expect("a build");
    assert_eq!(engine, "1");
    assert!(build.len() == 16 && build.chars().all(|digit| digit.is_ascii_hexdigit()), "{build}");
}
