//! Outputs that are computed in the caller's memory.

use nnhal_driver::Ledger;
use nnhal_hal::{
    DataLocation, Deadline, ErrorStatus, ExecutionOptions, HalVersion, Memory, Model, OperandSpec,
    OperationType as O, PrepareOptions, PreparedModel, Request, RequestArgument, RequestMemoryPool,
    SubgraphBuilder,
};
use std::sync::Arc;
use std::time::Duration;

const LENGTH: u32 = 10 << 20;
const BYTES: u32 = 4 * LENGTH;

/// Gives `-x`, and `-x` again, which was read in between, and for TANH of that, `rounds` times over, the last of them.
fn model(length: u32, rounds: usize) -> Model {
    let floats = || OperandSpec::tensor_float32([length]);
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", floats());
    let y = graph.operation(O::Neg, [x], floats());
    let mut z = y;
    for _ in 0..rounds {
        z = graph.operation(O::Tanh, [z], floats());
    }
    graph.output(y);
    graph.output(z);
    graph.into_model().unwrap()
}

fn prepare(model: &Model) -> Arc<dyn PreparedModel> {
    let device = nnhal_cpu::device(nnhal_cpu::Settings::default());
    device.prepare_model(model, HalVersion::LATEST, PrepareOptions::default()).unwrap()
}

/// A request whose arguments are at these bytes of these memories.
fn request(memories: &[&Memory], input: (u32, u32, u32), outputs: &[(u32, u32, u32)]) -> Request {
    let argument = |(pool_index, offset, length): (u32, u32, u32)| RequestArgument {
        location: DataLocation { pool_index, offset, length },
        ..RequestArgument::default()
    };
    Request {
        inputs: vec![argument(input)],
        outputs: outputs.iter().copied().map(argument).collect(),
        pools: memories.iter().map(|it| RequestMemoryPool::Memory((*it).clone())).collect(),
    }
}

fn floats(memory: &Memory, offset: u64, count: usize) -> Vec<f32> {
    let bytes = memory.view().unwrap().read_to_vec(offset, 4 * count as u64).unwrap();
    bytes.as_chunks().0.iter().map(|it| f32::from_ne_bytes(*it)).collect()
}

fn fill(memory: &Memory, value: f32, count: u32) {
    let bytes: Vec<u8> = (0..count).flat_map(|_| value.to_ne_bytes()).collect();
    memory.view().unwrap().write(0, &bytes).unwrap();
}

#[test]
fn outputs_that_no_one_else_can_access_take_no_other_memory() {
    let prepared = prepare(&model(LENGTH, 1));
    let input = Memory::private(BYTES.into()).unwrap();
    fill(&input, 0.5, LENGTH);
    let before = Ledger::process().live();
    let mut held = Vec::new();
    for outputs in [Memory::private(2 * u64::from(BYTES)), Memory::allocate(2 * u64::from(BYTES))] {
        let outputs = outputs.unwrap();
        let places = [(1, 0, BYTES), (1, BYTES, BYTES)];
        let request = request(&[&input, &outputs], (0, 0, BYTES), &places);
        prepared.execute(&request, &ExecutionOptions::default()).unwrap();
        assert_eq!(floats(&outputs, 0, 3), [-0.5; 3]);
        let last = floats(&outputs, u64::from(2 * BYTES) - 8, 2);
        assert!(last.iter().all(|it| (it + 0.5_f32.tanh()).abs() < 1e-6), "{last:?}");
        held.push(Ledger::process().live() - before);
    }
    // The input, and then the outputs too.
    let mb = |bytes: u64| bytes >> 20;
    assert!((40..60).contains(&mb(held[0])), "{held:?}");
    assert!((120..140).contains(&mb(held[1])), "{held:?}");
}

#[test]
fn an_input_that_an_output_takes_the_place_of_is_read_before() {
    let count = 50_000;
    let bytes = 4 * count;
    let prepared = prepare(&model(count, 1));
    let memory = Memory::private(2 * u64::from(bytes)).unwrap();
    fill(&memory, 0.25, count);
    let places = [(0, 0, bytes), (0, bytes, bytes)];
    let request = request(&[&memory], (0, 0, bytes), &places);
    prepared.execute(&request, &ExecutionOptions::default()).unwrap();
    assert_eq!(floats(&memory, 0, count as usize), vec![-0.25; count as usize]);
    let last = floats(&memory, bytes.into(), count as usize);
    assert!(last.iter().all(|it| (it + 0.25_f32.tanh()).abs() < 1e-6));
}

#[test]
fn an_output_that_is_too_short_is_said_so_and_nothing_is_written_there() {
    let count = 50_000;
    let bytes = 4 * count;
    let prepared = prepare(&model(count, 1));
    let (input, output) = (Memory::private(bytes.into()), Memory::private(2 * u64::from(bytes)));
    let (input, output) = (input.unwrap(), output.unwrap());
    fill(&input, 0.25, count);
    fill(&output, 7.0, 2 * count);
    let places = [(1, 0, bytes - 4), (1, bytes, bytes)];
    let request = request(&[&input, &output], (0, 0, bytes), &places);
    let failed = prepared.execute(&request, &ExecutionOptions::default()).unwrap_err();
    assert_eq!(failed.error.status(), ErrorStatus::OutputInsufficientSize);
    let sufficient: Vec<bool> = failed.output_shapes.iter().map(|it| it.is_sufficient).collect();
    assert_eq!(sufficient, [false, true]);
    assert_eq!(floats(&output, 0, count as usize), vec![7.0; count as usize]);
}

#[test]
fn memory_is_the_callers_again_after_an_execution_that_fails() {
    let count = 1 << 20;
    let bytes = 4 * count;
    let prepared = prepare(&model(count, 2000));
    let (input, output) = (Memory::private(bytes.into()), Memory::private(2 * u64::from(bytes)));
    let (input, output) = (input.unwrap(), output.unwrap());
    let places = [(1, 0, bytes), (1, bytes, bytes)];
    let request = request(&[&input, &output], (0, 0, bytes), &places);
    let deadline = Some(Deadline::after(Duration::from_millis(30)));
    let options = ExecutionOptions { deadline, ..ExecutionOptions::default() };
    prepared.execute(&request, &options).unwrap_err();
    let view = output.view().unwrap();
    assert!(view.borrow_mut(0, view.size()).is_some(), "it is still borrowed");
}
