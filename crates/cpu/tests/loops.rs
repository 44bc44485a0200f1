//! WHILE loops whose variables keep their lengths run within the plan, and give what the reference device gives, to
//! outputs and to observers.

use nnhal_cpu::Settings;
use nnhal_driver::{ObservedOutput, Observer, Prepared, Round};
use nnhal_hal::{
    Device, ExecutionOptions, HalVersion, Model, ModelBuilder, OperandId, OperandSpec,
    OperationType as O, PrepareOptions, PreparedModel, Request, RequestBuilder, SubgraphBuilder,
    SubgraphId,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn integers(length: u32) -> OperandSpec {
    OperandSpec::tensor_int32([length])
}

/// How a body or main subgraph adds two tensors of integers.
fn add(graph: &mut SubgraphBuilder, a: OperandId, b: OperandId, length: u32) -> OperandId {
    let none = graph.scalar_i32(0);
    graph.operation(O::Add, [a, b, none], integers(length))
}

/// The condition that variable `left` is less than variable `right`, of variables of these lengths.
fn less(builder: &mut ModelBuilder, lengths: &[u32], left: usize, right: usize) -> SubgraphId {
    let mut condition = SubgraphBuilder::new();
    let variables: Vec<_> = lengths.iter().map(|it| condition.input("", integers(*it))).collect();
    let operands = [variables[left], variables[right]];
    let is_less = condition.operation(O::Less, operands, OperandSpec::tensor_bool8([1]));
    condition.output(is_less);
    builder.reference(condition)
}

/// A main subgraph that gives out the first variables of a loop, of which the last `inputs` are its own inputs, and the
/// others begin with 1.
fn around(
    builder: ModelBuilder,
    [condition, body]: [SubgraphId; 2],
    lengths: &[u32],
    inputs: usize,
    outputs: usize,
) -> Model {
    let mut main = SubgraphBuilder::new();
    let mut arguments = vec![main.subgraph(condition), main.subgraph(body)];
    for (index, length) in lengths.iter().enumerate() {
        arguments.push(if index + inputs < lengths.len() {
            main.constant(integers(*length), &vec![1; *length as usize])
        } else {
            main.input("", integers(*length))
        });
    }
    let results = lengths[..outputs].iter().map(|length| main.temporary(integers(*length)));
    let results: Vec<_> = results.collect();
    main.operation_into(O::While, arguments, &results);
    for result in results {
        main.output(result);
    }
    builder.build(main).unwrap()
}

/// `while i < limit`, whose body makes of variables of these lengths, of which the last two are `i` and `limit`, what
/// `renew` says; it gives them all out but `limit`.
fn counting(
    lengths: &[u32],
    outputs: usize,
    renew: impl FnOnce(&mut ModelBuilder, &mut SubgraphBuilder, &[OperandId]) -> Vec<OperandId>,
) -> Model {
    let mut builder = ModelBuilder::new();
    let (i, limit) = (lengths.len() - 2, lengths.len() - 1);
    let condition = less(&mut builder, lengths, i, limit);
    let mut body = SubgraphBuilder::new();
    let variables: Vec<_> = lengths.iter().map(|it| body.input("", integers(*it))).collect();
    let renewed = renew(&mut builder, &mut body, &variables);
    let one = body.constant(integers(1), &[1]);
    let next = add(&mut body, variables[i], one, 1);
    for output in renewed.into_iter().chain([next]) {
        body.output(output);
    }
    let body = builder.reference(body);
    around(builder, [condition, body], lengths, 2, outputs)
}

/// CAST of a value to its own type: what a body gives out that it does not change.
fn same(graph: &mut SubgraphBuilder, value: OperandId, length: u32) -> OperandId {
    graph.operation(O::Cast, [value], integers(length))
}

/// Models with loops, how many outputs each has, and their length.
fn models() -> Vec<(&'static str, Model, usize, usize)> {
    let fibonacci = counting(&[3, 3, 1, 1], 2, |_, body, variables| {
        let sum = add(body, variables[0], variables[1], 3);
        vec![same(body, variables[1], 3), sum]
    });
    let turned = counting(&[3, 3, 3, 1, 1], 3, |_, body, variables| {
        let tripled = add(body, variables[1], variables[1], 3);
        vec![same(body, variables[2], 3), tripled, same(body, variables[0], 3)]
    });
    let constant = counting(&[3, 3, 1, 1], 2, |_, body, variables| {
        let sum = add(body, variables[0], variables[1], 3);
        let given = body.constant(integers(3), &[2, 3, 4]);
        vec![sum, same(body, given, 3)]
    });
    let kept = counting(&[3, 3, 1, 1], 2, |_, body, variables| {
        let sum = add(body, variables[0], variables[1], 3);
        vec![sum, same(body, variables[1], 3)]
    });
    let many =
        counting(&[3; 12].into_iter().chain([1, 1]).collect::<Vec<_>>(), 12, |_, body, all| {
            let mut renewed = vec![add(body, all[0], all[11], 3)];
            for index in 1..12 {
                let before = renewed[index - 1];
                renewed.push(add(body, all[index], before, 3));
            }
            renewed
        });
    let nested = counting(&[3, 1, 1], 1, |builder, body, variables| {
        let lengths = [3, 1, 1];
        let condition = less(builder, &lengths, 1, 2);
        let mut inner = SubgraphBuilder::new();
        let [x, j, _] = lengths.map(|length| inner.input("", integers(length)));
        let x = add(&mut inner, x, x, 3);
        let one = inner.constant(integers(1), &[1]);
        let j = add(&mut inner, j, one, 1);
        inner.output(x);
        inner.output(j);
        let arguments = [body.subgraph(condition), body.subgraph(builder.reference(inner))];
        let zero = body.constant(integers(1), &[0]);
        let arguments = [arguments[0], arguments[1], variables[0], zero, variables[1]];
        vec![body.operation(O::While, arguments, integers(3))]
    });
    vec![
        ("fibonacci", fibonacci, 2, 3),
        ("turned", turned, 3, 3),
        ("constant", constant, 2, 3),
        ("kept", kept, 2, 3),
        ("many", many, 12, 3),
        ("nested", nested, 1, 3),
    ]
}

fn prepare(device: &dyn Device, model: &Model) -> Arc<dyn PreparedModel> {
    device.prepare_model(model, HalVersion::LATEST, PrepareOptions::default()).unwrap()
}

fn request(limit: i32, outputs: usize, length: usize) -> Request {
    let mut request = RequestBuilder::new();
    request.input(&0_i32.to_le_bytes()).input(&limit.to_le_bytes());
    for _ in 0..outputs {
        request.output(4 * length);
    }
    request.build().unwrap()
}

fn outputs(prepared: &dyn PreparedModel, limit: i32, count: usize, length: usize) -> Vec<Vec<u8>> {
    let request = request(limit, count, length);
    prepared.execute(&request, &ExecutionOptions::default()).unwrap();
    (0..count).map(|output| RequestBuilder::read_output(&request, output).unwrap()).collect()
}

#[test]
fn every_variable_is_what_the_reference_device_makes_of_it() {
    for (name, model, count, length) in models() {
        let (fast, reference) = (nnhal_cpu::device(Settings::default()), nnhal_reference::device());
        let (fast, reference) = (prepare(&*fast, &model), prepare(&*reference, &model));
        for limit in [0, 1, 2, 5, 1] {
            let expected = outputs(&*reference, limit, count, length);
            assert_eq!(outputs(&*fast, limit, count, length), expected, "{name}, {limit} rounds");
        }
        // There is a plan before the first execution, and the loop is in it.
        let plan = Prepared::of(&*fast).unwrap().plan();
        let loops = plan.iter().filter(|step| step.kernel == "while").count();
        assert_eq!(loops, if name == "nested" { 2 } else { 1 }, "{name}");
        let steps: std::collections::BTreeSet<_> = plan.iter().map(|step| step.plan).collect();
        assert_eq!(steps.len(), 1 + 2 * loops, "{name}: each condition and body has its memory");
    }
}

/// The rounds that led to an output, its operand, and its bytes.
type Observed = (Vec<Round>, u32, Vec<u8>);

#[derive(Debug, Default)]
struct Seen(Mutex<Vec<Observed>>);

impl Observer for Seen {
    fn output(&self, output: &ObservedOutput<'_>) {
        let seen = (output.rounds.to_vec(), output.operand, output.bytes.to_vec());
        self.0.lock().unwrap().push(seen);
    }
}

#[test]
fn observers_are_notified_of_every_round() {
    for (name, model, count, length) in models() {
        let seen =
            [nnhal_cpu::device(Settings::default()), nnhal_reference::device()].map(|device| {
                let prepared = prepare(&*device, &model);
                let seen = Arc::new(Seen::default());
                let observed = Prepared::of(&*prepared).unwrap();
                let request = request(3, count, length);
                observed.execute_observed(&request, &ExecutionOptions::default(), &*seen).unwrap();
                seen.0.lock().unwrap().clone()
            });
        let [fast, reference] = &seen;
        // Casts to the same type are no steps.
        assert!(fast.len() >= 8, "{name}: {}", fast.len());
        assert!(fast.iter().all(|it| reference.contains(it)), "{name}");
        let rounds = |seen: &[Observed]| {
            seen.iter().filter_map(|(rounds, ..)| Some(rounds.last()?.round)).max()
        };
        assert_eq!(rounds(fast), rounds(reference), "{name}");
        assert_eq!(rounds(fast), Some(3), "{name}");
    }
}

#[test]
fn a_loop_ends_with_its_time() {
    let endless = counting(&[3, 1, 1], 1, |_, body, variables| vec![same(body, variables[0], 3)]);
    let device = nnhal_cpu::device(Settings::default());
    let prepared = prepare(&*device, &endless);
    let request = request(i32::MAX, 1, 3);
    let options = ExecutionOptions {
        loop_timeout: Some(Duration::from_millis(50)),
        ..ExecutionOptions::default()
    };
    let started = std::time::Instant::now();
    let failed = prepared.execute(&request, &options).unwrap_err();
    assert!(failed.error.to_string().contains("WHILE"), "{}", failed.error);
    assert!(started.elapsed() < Duration::from_secs(10));
}

/// Floats of 16 bits would be floats of 32 bits from round to round, and a variable that grows has no place.
#[test]
fn other_loops_are_interpreted() {
    let mut builder = ModelBuilder::new();
    let halves = || OperandSpec::tensor_float16([3]);
    let variables = |graph: &mut SubgraphBuilder| {
        let x = graph.input("", halves());
        (x, graph.input("", integers(1)), graph.input("", integers(1)))
    };
    let mut condition = SubgraphBuilder::new();
    let (_, i, limit) = variables(&mut condition);
    let is_less = condition.operation(O::Less, [i, limit], OperandSpec::tensor_bool8([1]));
    condition.output(is_less);
    let condition = builder.reference(condition);
    let mut body = SubgraphBuilder::new();
    let (x, i, _) = variables(&mut body);
    let none = body.scalar_i32(0);
    let x = body.operation(O::Add, [x, x, none], halves());
    let one = body.constant(integers(1), &[1]);
    let i = add(&mut body, i, one, 1);
    body.output(x);
    body.output(i);
    let body = builder.reference(body);
    let mut main = SubgraphBuilder::new();
    let (condition, body) = (main.subgraph(condition), main.subgraph(body));
    let x = main.input("x", halves());
    let (i, limit) = (main.input("i", integers(1)), main.input("limit", integers(1)));
    let x = main.operation(O::While, [condition, body, x, i, limit], halves());
    main.output(x);
    let model = builder.build(main).unwrap();
    let prepared = prepare(&*nnhal_cpu::device(Settings::default()), &model);
    assert!(Prepared::of(&*prepared).unwrap().plan().is_empty());
    let mut request = RequestBuilder::new();
    // 1, -2 and 0.5.
    let halves: Vec<u8> =
        [0x3C00_u16, 0xC000, 0x3800].iter().flat_map(|it| it.to_le_bytes()).collect();
    request.input(&halves).input(&0_i32.to_le_bytes()).input(&3_i32.to_le_bytes()).output(6);
    let request = request.build().unwrap();
    prepared.execute(&request, &ExecutionOptions::default()).unwrap();
    let expected: Vec<u8> =
        [0x4800_u16, 0xCC00, 0x4400].iter().flat_map(|it| it.to_le_bytes()).collect();
    assert_eq!(RequestBuilder::read_output(&request, 0).unwrap(), expected);
}
