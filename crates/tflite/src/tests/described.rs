//! Graphs that are described, with constants outside of the tables.

use super::draft::identified;
use crate::graph::{
    BuiltinOperator, BuiltinOptions2, Constant, Graph, Operator, StableHloCompositeOptions, Stored,
    Tensor, TensorType,
};
use crate::schema;
use crate::{Import, ImportError, ImportOptions, import_stored};
use nnhal_hal::{Memory, OperandLifeTime};
use planus::{Builder, ReadAsRoot};

fn vector(length: i32) -> Tensor {
    Tensor {
        shape: Some(vec![length]),
        type_: TensorType::Float32 as i8,
        has_rank: true,
        ..Tensor::default()
    }
}

/// x + constant.
fn sum(length: i32, constant: Constant) -> Stored {
    let mut graph = Graph::new();
    let (x, y) = (graph.tensor(vector(length)), graph.tensor(vector(length)));
    let constant = graph.constant(vector(length), constant);
    let add =
        Operator { inputs: Some(vec![x, constant]), outputs: Some(vec![y]), ..Operator::default() };
    graph.operator(BuiltinOperator::Add as i32, None, 1, add);
    graph.ends(vec![x], vec![y]);
    graph.store().unwrap()
}

fn import(stored: &Stored) -> Result<Import, ImportError> {
    import_stored(stored, &ImportOptions::default())
}

fn ramp(length: u8) -> Vec<u8> {
    (0..length).flat_map(|it| f32::from(it).to_le_bytes()).collect()
}

#[test]
fn a_large_constant_stays_where_it_is() {
    let memory = Memory::from_bytes(&ramp(64)).unwrap();
    let import = import(&sum(64, Constant::Outside(memory.clone()))).unwrap();
    let main = &import.model.main;
    let constant = main
        .operands
        .iter()
        .find(|it| it.lifetime == OperandLifeTime::ConstantReference)
        .expect("a constant in a pool");
    let pool = &import.model.pools[constant.location.pool_index as usize];
    assert!(pool.is_same(&memory));
    assert_eq!((constant.location.offset, constant.location.length), (0, 256));
}

#[test]
fn a_small_constant_becomes_part_of_the_model() {
    let memory = Memory::from_bytes(&ramp(4)).unwrap();
    let outside = import(&sum(4, Constant::Outside(memory))).unwrap();
    let within = import(&sum(4, Constant::Bytes(ramp(4)))).unwrap();
    assert_eq!(outside.model.main, within.model.main);
    assert!(!outside.model.operand_values.is_empty());
    assert_eq!(outside.model.operand_values, within.model.operand_values);
}

#[test]
fn a_constant_of_another_size_than_its_shape_is_refused() {
    let memory = Memory::from_bytes(&ramp(63)).unwrap();
    let error = import(&sum(64, Constant::Outside(memory))).unwrap_err().to_string();
    assert!(error.contains("252 bytes"), "{error}");
}

/// The tables with the place of the only constant changed.
fn moved(stored: &Stored, change: impl FnOnce(&mut schema::Buffer)) -> Stored {
    let tables = stored.tables.view().unwrap().read_to_vec(0, stored.tables.size()).unwrap();
    let model = schema::ModelRef::read_as_root(&tables).unwrap();
    let mut model = schema::Model::try_from(model).unwrap();
    change(&mut model.buffers.as_mut().unwrap()[1]);
    let bytes = identified(Builder::new().finish(&model, None));
    Stored { tables: Memory::from_bytes(&bytes).unwrap(), outside: stored.outside.clone() }
}

#[test]
fn what_is_neither_within_nor_outside_is_refused() {
    let memory = Memory::from_bytes(&ramp(64)).unwrap();
    let stored = sum(64, Constant::Outside(memory));
    assert!(import(&moved(&stored, |_| {})).is_ok());
    let first = crate::graph::OUTSIDE;
    for (offset, size) in [
        (first + 4, 256),
        (first, 257),
        (first, u64::MAX),
        (first - 1, 256),
        (2 * first, 256),
        (u64::MAX - 255, 256),
        (u64::MAX, 256),
    ] {
        let changed = moved(&stored, |buffer| (buffer.offset, buffer.size) = (offset, size));
        assert!(import(&changed).is_err(), "{size} bytes at {offset}");
    }
    // A file that says so has nothing outside.
    let file = Stored { outside: Vec::new(), ..stored };
    assert!(matches!(import(&file), Err(ImportError::Malformed { .. })));
}

#[test]
fn an_operator_names_a_subgraph_that_is_described_too() {
    let mut graph = Graph::new();
    let (x, y) = (graph.tensor(vector(4)), graph.tensor(vector(4)));
    let unary = |of: i32, to: i32| Operator {
        inputs: Some(vec![of]),
        outputs: Some(vec![to]),
        ..Operator::default()
    };
    let body = graph.begin_subgraph();
    let (a, b) = (graph.tensor(vector(4)), graph.tensor(vector(4)));
    graph.operator(BuiltinOperator::Relu as i32, None, 1, unary(a, b));
    graph.ends(vec![a], vec![b]);
    graph.end_subgraph();
    // The main one is never ended.
    graph.end_subgraph();
    let options =
        StableHloCompositeOptions { decomposition_subgraph_index: body, ..Default::default() };
    let composite = Operator {
        builtin_options_2: Some(BuiltinOptions2::StableHloCompositeOptions(Box::new(options))),
        ..unary(x, y)
    };
    graph.operator(BuiltinOperator::StablehloComposite as i32, None, 1, composite);
    graph.ends(vec![x], vec![y]);
    let import = import(&graph.store().unwrap()).unwrap();
    assert_eq!(import.model.main.inputs.len(), 1);
    let operations = &import.model.main.operations;
    assert_eq!(operations[0].operation_type, nnhal_hal::OperationType::Relu);
}
