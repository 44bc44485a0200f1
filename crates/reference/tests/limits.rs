//! Memory limits, and watching what is computed.

mod support;

use nnhal_driver::{
    DriverDevice, EngineError, MemoryUse, ObservedOutput, Observer, OperationPlace, Prepared,
};
use nnhal_hal::{
    Device, ErrorStatus, ExecutionOptions, HalVersion, Memory, ModelBuilder, OperationType,
    PrepareOptions, SubgraphBuilder,
};
use nnhal_reference::ReferenceEngine;
use std::sync::Mutex;
use std::time::Duration;
use support::{binary, f32s, prepare, request, run, truth, vector};

fn limited(bytes: u64) -> DriverDevice<ReferenceEngine> {
    DriverDevice::new(ReferenceEngine::with_memory_limit(bytes))
}

/// Three RELUs in a row on 4 floats.
fn chain() -> nnhal_hal::Model {
    let mut graph = SubgraphBuilder::new();
    let mut x = graph.input("x", vector(4));
    for _ in 0..3 {
        x = graph.operation(OperationType::Relu, [x], vector(4));
    }
    graph.output(x);
    graph.into_model().unwrap()
}

#[test]
fn sec_3_values_alive_at_once_are_limited() {
    // An operation's input is alive, and what its kernel takes: the input as numbers, the results,
    // and the output made of them. Never those of two operations.
    for (limit, fits) in [(64, true), (63, false)] {
        let options = PrepareOptions::default();
        let prepared = limited(limit).prepare_model(&chain(), HalVersion::V1_3, options).unwrap();
        let result = run(&*prepared, &request(&[(&[], &[0; 16])], &[16]));
        assert_eq!(result.is_ok(), fits, "limit {limit}");
        if let Err(failed) = result {
            assert_eq!(failed.error.status(), ErrorStatus::ResourceExhaustedPersistent);
            let reason = failed.error.reason();
            let Some(EngineError::MemoryLimit { user, wanted: 16, live: 48, .. }) = reason else {
                panic!("{}", failed.error)
            };
            assert!(matches!(user, MemoryUse::Operation(OperationPlace { index: 0, .. })));
        }
    }
}

#[test]
fn sec_3_constants_are_limited_and_overlapping_ones_count_once() {
    let mut builder = ModelBuilder::new();
    let pool = builder.pool(Memory::allocate(1000).unwrap());
    let mut graph = SubgraphBuilder::new();
    let none = graph.scalar_i32(0);
    let mut sum = graph.input("x", vector(10));
    // 100 constants of 40 bytes each, within 436 bytes.
    for nth in 0..100 {
        let constant = graph.constant_in_pool(vector(10), pool, nth * 4, 40);
        sum = graph.operation(OperationType::Add, [sum, constant, none], vector(10));
    }
    graph.output(sum);
    let model = builder.build(graph).unwrap();
    let prepare =
        |limit| limited(limit).prepare_model(&model, HalVersion::V1_3, PrepareOptions::default());
    assert!(prepare(436).is_ok());
    let error = prepare(435).err().expect("too many");
    assert_eq!(error.status(), ErrorStatus::ResourceExhaustedPersistent);
}

/// Where an output belongs, its dimensions and bytes.
type Seen = (String, Vec<u32>, Vec<u8>);

/// Writes down what it is given.
#[derive(Default)]
struct Record {
    outputs: Mutex<Vec<Seen>>,
    durations: Mutex<Vec<OperationPlace>>,
}

impl Observer for Record {
    fn output(&self, output: &ObservedOutput<'_>) {
        let path: String = output
            .rounds
            .iter()
            .map(|round| format!("{}/{} ", round.place.index, round.subgraph_input))
            .collect();
        let name = format!("{path}{} {}", output.place.index, output.place.operation_type);
        let entry = (name, output.dimensions.to_vec(), output.bytes.to_vec());
        self.outputs.lock().unwrap().push(entry);
    }

    fn duration(&self, place: OperationPlace, _duration: Duration) {
        self.durations.lock().unwrap().push(place);
    }
}

#[test]
fn an_observer_is_given_every_result_and_where_it_belongs() {
    let mut builder = ModelBuilder::new();
    let add = builder.reference(binary(OperationType::Add, &vector(1), vector(1)));
    let mul = builder.reference(binary(OperationType::Mul, &vector(1), vector(1)));
    let mut main = SubgraphBuilder::new();
    let x = main.input("x", vector(1));
    let y = main.operation(OperationType::Relu, [x], vector(1));
    let condition = main.constant(truth(), &[false]);
    let (add, mul) = (main.subgraph(add), main.subgraph(mul));
    let z = main.operation(OperationType::If, [condition, add, mul, y, y], vector(1));
    main.output(z);
    let prepared = prepare(&builder.build(main).unwrap());
    let record = Record::default();
    let request = request(&[(&[], &f32s(&[3.0]))], &[4]);
    Prepared::of(&*prepared)
        .expect("a driver's")
        .execute_observed(&request, &ExecutionOptions::default(), &record)
        .unwrap();
    assert_eq!(
        *record.outputs.lock().unwrap(),
        [
            ("0 RELU".to_owned(), vec![1], f32s(&[3.0])),
            ("1/2 0 MUL".to_owned(), vec![1], f32s(&[9.0])),
            ("1 IF".to_owned(), vec![1], f32s(&[9.0])),
        ]
    );
    let durations = record.durations.into_inner().unwrap();
    assert_eq!(durations.iter().map(|place| place.index).collect::<Vec<_>>(), [0, 0]);
}
