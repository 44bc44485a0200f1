//! WHILE loops whose variables keep their lengths, and IFs whose branches give results of the same lengths, run within the plan,
//! and give what the reference device gives, to outputs and to observers.

use nnhal_cpu::Settings;
use nnhal_driver::{ObservedOutput, Observer, Prepared, Round};
use nnhal_hal::memory::{Memory, Protection};
use nnhal_hal::{
    Deadline, Device, ErrorStatus, ExecutionOptions, HalVersion, Model, ModelBuilder, OperandId,
    OperandSpec, OperationType as O, PrepareOptions, PreparedModel, Request, RequestBuilder,
    SubgraphBuilder, SubgraphId,
};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

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
    let started = Instant::now();
    let failed = prepared.execute(&request, &options).unwrap_err();
    assert!(failed.error.to_string().contains("WHILE"), "{}", failed.error);
    assert!(started.elapsed() < Duration::from_secs(10));
}

/// How a loop counts: what its counter begins with, what each round adds, and until when.
struct Counts {
    first: i32,
    step: i32,
    comparison: O,
    limit: i32,
    /// Rounds, if they are counted when the model is prepared.
    rounds: Option<i32>,
}

impl Counts {
    /// A loop with two counters, of which the second goes down by 2, and an input to which each round adds both, what the first
    /// becomes if `reads_next`, and which is less than 900 if `asks` says so. All are given out.
    fn model(&self, reads_next: bool, asks: bool) -> Model {
        let mut builder = ModelBuilder::new();
        let variables =
            |graph: &mut SubgraphBuilder| [1, 1, 3].map(|length| graph.input("", integers(length)));
        let truth = || OperandSpec::tensor_bool8([1]);
        let mut condition = SubgraphBuilder::new();
        let [i, _, x] = variables(&mut condition);
        let limit = condition.constant(integers(1), &[self.limit]);
        let mut decision = condition.operation(self.comparison, [i, limit], truth());
        if asks {
            let [begin, size] = [0, 1].map(|it| condition.constant(integers(1), &[it]));
            let first = condition.operation(O::Slice, [x, begin, size], integers(1));
            let most = condition.constant(integers(1), &[900]);
            let is_less = condition.operation(O::Less, [first, most], truth());
            decision = condition.operation(O::LogicalAnd, [is_less, decision], truth());
        }
        condition.output(decision);
        let condition = builder.reference(condition);
        let mut body = SubgraphBuilder::new();
        let [i, down, x] = variables(&mut body);
        let [step, two] = [self.step, 2].map(|it| body.constant(integers(1), &[it]));
        let none = body.scalar_i32(0);
        let next = add(&mut body, step, i, 1);
        let lower = body.operation(O::Sub, [down, two, none], integers(1));
        let mut sum = add(&mut body, x, i, 3);
        sum = add(&mut body, sum, down, 3);
        if reads_next {
            sum = add(&mut body, sum, next, 3);
        }
        for output in [next, lower, sum] {
            body.output(output);
        }
        let body = builder.reference(body);
        let mut main = SubgraphBuilder::new();
        let [condition, body] = [condition, body].map(|it| main.subgraph(it));
        let [first, seven] = [self.first, 7].map(|it| main.constant(integers(1), &[it]));
        let x = main.input("x", integers(3));
        let results = [1, 1, 3].map(|length| main.temporary(integers(length)));
        main.operation_into(O::While, [condition, body, first, seven, x], results);
        for result in results {
            main.output(result);
        }
        builder.build(main).unwrap()
    }
}

#[test]
fn rounds_between_constants_are_counted_before() {
    let counts = |first, step, comparison, limit, rounds| {
        let rounds = Some(rounds).filter(|it| *it >= 0);
        Counts { first, step, comparison, limit, rounds }
    };
    let cases = [
        counts(0, 1, O::Less, 100, 100),
        counts(3, 4, O::LessEqual, 11, 3),
        counts(10, -3, O::Greater, 0, 4),
        counts(10, -5, O::GreaterEqual, 0, 3),
        counts(0, 2, O::NotEqual, 6, 3),
        counts(5, 1, O::Equal, 5, 1),
        counts(5, 1, O::Less, 5, 0),
        counts(i32::MAX - 3, 1, O::Less, i32::MAX, 3),
        counts(0, 1, O::Less, 16_384, 16_384),
        // Too many to be counted one by one.
        counts(0, 1, O::Less, 16_385, -1),
        // Behind the greatest number comes the least.
        counts(i32::MAX - 3, 1, O::GreaterEqual, 0, -1),
    ];
    for Counts { first, step, comparison, limit, rounds } in &cases {
        for (reads_next, asks) in [(false, false), (true, false), (false, true)] {
            if *limit > 1000 && *limit < i32::MAX && (reads_next || asks) {
                // These take the reference device a second each.
                continue;
            }
            let is_counted = rounds.is_some() && !asks;
            let what = format!("{first} + {step} {comparison:?} {limit}, {reads_next} {asks}");
            let counts = counts(*first, *step, *comparison, *limit, 0);
            let model = counts.model(reads_next, asks);
            let found =
                [nnhal_cpu::device(Settings::default()), nnhal_reference::device()].map(|device| {
                    let prepared = prepare(&*device, &model);
                    let mut request = RequestBuilder::new();
                    request.input(&[5, -2, 7].map(i32::to_le_bytes).concat());
                    let request = request.output(4).output(4).output(12).build().unwrap();
                    let loop_timeout = Some(Duration::from_secs(15));
                    let options = ExecutionOptions { loop_timeout, ..ExecutionOptions::default() };
                    prepared.execute(&request, &options).unwrap();
                    let output = |index| RequestBuilder::read_output(&request, index).unwrap();
                    (prepared, [0, 1, 2].map(output))
                });
            let [(fast, found), (_, expected)] = found;
            assert_eq!(found, expected, "{what}");
            let plan = Prepared::of(&*fast).unwrap().plan();
            let has_condition = plan.iter().any(|step| step.kernel.contains("compare"));
            assert_eq!(has_condition, !is_counted, "{what}");
            let name = match rounds {
                Some(rounds) if is_counted => format!("while, {rounds} rounds"),
                _ => "while".to_owned(),
            };
            assert_eq!(plan[0].kernel, name, "{what}");
        }
    }
}

/// A loop whose rounds are known ends with its time as others do, and has ended when its last round has (contract: QOS-9).
#[test]
fn a_loop_whose_rounds_are_known_ends_with_its_time() {
    let counts = Counts { first: 0, step: 1, comparison: O::Less, limit: 16_384, rounds: None };
    let prepared = prepare(&*nnhal_cpu::device(Settings::default()), &counts.model(true, false));
    let execute = |timeout| {
        let mut request = RequestBuilder::new();
        let request = request.input(&[0; 12]).output(4).output(4).output(12).build().unwrap();
        let options =
            ExecutionOptions { loop_timeout: Some(timeout), ..ExecutionOptions::default() };
        prepared.execute(&request, &options)
    };
    let failed = execute(Duration::from_micros(50)).unwrap_err();
    assert!(failed.error.to_string().contains("WHILE"), "{}", failed.error);
    execute(Duration::from_secs(15)).unwrap();
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

fn truth() -> OperandSpec {
    OperandSpec::tensor_bool8([1])
}

/// A branch that takes tensors of these lengths, and gives out what it makes of them.
fn branch(
    builder: &mut ModelBuilder,
    lengths: &[u32],
    results: impl FnOnce(&mut ModelBuilder, &mut SubgraphBuilder, &[OperandId]) -> Vec<OperandId>,
) -> SubgraphId {
    let mut graph = SubgraphBuilder::new();
    let inputs: Vec<_> = lengths.iter().map(|it| graph.input("", integers(*it))).collect();
    for output in results(builder, &mut graph, &inputs) {
        graph.output(output);
    }
    builder.reference(graph)
}

/// IF with results of these lengths.
fn choose(
    graph: &mut SubgraphBuilder,
    condition: OperandId,
    [then, otherwise]: [SubgraphId; 2],
    arguments: &[OperandId],
    lengths: &[u32],
) -> Vec<OperandId> {
    let mut inputs = vec![condition, graph.subgraph(then), graph.subgraph(otherwise)];
    inputs.extend(arguments);
    let outputs: Vec<_> = lengths.iter().map(|it| graph.temporary(integers(*it))).collect();
    graph.operation_into(O::If, inputs, &outputs);
    outputs
}

/// The main subgraph takes a truth value and two tensors of three integers, and gives out what `build` makes of them.
fn choosing(
    build: impl FnOnce(&mut ModelBuilder, &mut SubgraphBuilder, [OperandId; 3]) -> Vec<OperandId>,
) -> Model {
    let mut builder = ModelBuilder::new();
    let mut main = SubgraphBuilder::new();
    let condition = main.input("condition", truth());
    let (a, b) = (main.input("a", integers(3)), main.input("b", integers(3)));
    for output in build(&mut builder, &mut main, [condition, a, b]) {
        main.output(output);
    }
    builder.build(main).unwrap()
}

/// The branches `a + a + b` and `a + constant`, both of two tensors.
fn sums(builder: &mut ModelBuilder) -> [SubgraphId; 2] {
    let then = branch(builder, &[3, 3], |_, graph, inputs| {
        let twice = add(graph, inputs[0], inputs[0], 3);
        vec![add(graph, twice, inputs[1], 3)]
    });
    let otherwise = branch(builder, &[3, 3], |_, graph, inputs| {
        let constant = graph.constant(integers(3), &[100, 200, 300]);
        vec![add(graph, inputs[0], constant, 3)]
    });
    [then, otherwise]
}

/// Models with IFs, how many outputs of three integers each has, how many IFs plans have, and how many plans there are
/// with theirs.
fn choices() -> Vec<(&'static str, Model, usize, usize, usize)> {
    let plain = choosing(|builder, main, [condition, a, b]| {
        let branches = sums(builder);
        choose(main, condition, branches, &[a, b], &[3])
    });
    // The results of one branch are what is given to it and a constant, in the other order than those of the other.
    let moved = choosing(|builder, main, [condition, a, b]| {
        let then = branch(builder, &[3, 3], |_, graph, inputs| {
            vec![same(graph, inputs[1], 3), same(graph, inputs[0], 3)]
        });
        let otherwise = branch(builder, &[3, 3], |_, graph, inputs| {
            let given = graph.constant(integers(3), &[4, 5, 6]);
            vec![same(graph, given, 3), same(graph, inputs[0], 3)]
        });
        let mut outputs = choose(main, condition, [then, otherwise], &[a, b], &[3, 3]);
        outputs.push(add(main, outputs[0], outputs[1], 3));
        outputs
    });
    // A constant goes in, the condition is computed, and read by others too.
    let computed = choosing(|builder, main, [condition, a, b]| {
        let branches = sums(builder);
        let constant = main.constant(integers(3), &[7, 8, 9]);
        let inverse = main.operation(O::LogicalNot, [condition], truth());
        let mut outputs = choose(main, inverse, branches, &[constant, b], &[3]);
        outputs.extend(choose(main, condition, branches, &[outputs[0], a], &[3]));
        let [one, two] = [1, 2].map(|it| main.constant(integers(1), &[it]));
        let shown = main.operation(O::Select, [inverse, one, two], integers(1));
        outputs.push(add(main, shown, a, 3));
        outputs
    });
    // Of constant conditions one branch is left, which is both if they are the same.
    let constant = choosing(|builder, main, [condition, a, b]| {
        let branches = sums(builder);
        let [yes, no] = [2_u8, 0].map(|it| main.constant_bytes(truth(), &[it]));
        let mut outputs = choose(main, yes, branches, &[a, b], &[3]);
        outputs.extend(choose(main, no, branches, &[a, b], &[3]));
        outputs.extend(choose(main, condition, [branches[0]; 2], &[a, b], &[3]));
        outputs
    });
    let nested = choosing(|builder, main, [condition, a, b]| {
        let inner = sums(builder);
        let then = branch(builder, &[3, 3], |_, graph, inputs| {
            let first = |graph: &mut SubgraphBuilder, value| {
                let (begin, size) =
                    (graph.constant(integers(1), &[0]), graph.constant(integers(1), &[1]));
                graph.operation(O::Slice, [value, begin, size], integers(1))
            };
            let (a, b) = (first(graph, inputs[0]), first(graph, inputs[1]));
            let is_less = graph.operation(O::Less, [a, b], truth());
            choose(graph, is_less, inner, inputs, &[3])
        });
        let otherwise =
            branch(builder, &[3, 3], |_, graph, inputs| vec![add(graph, inputs[1], inputs[1], 3)]);
        choose(main, condition, [then, otherwise], &[a, b], &[3])
    });
    // A WHILE in one of the branches: a + 5 * b.
    let looping = choosing(|builder, main, [condition, a, b]| {
        let lengths = [3, 1, 1, 3];
        let goes_on = less(builder, &lengths, 1, 2);
        let body = branch(builder, &lengths, |_, graph, variables| {
            let sum = add(graph, variables[0], variables[3], 3);
            let one = graph.constant(integers(1), &[1]);
            vec![sum, add(graph, variables[1], one, 1)]
        });
        let then = branch(builder, &[3, 3], |_, graph, inputs| {
            let (goes_on, body) = (graph.subgraph(goes_on), graph.subgraph(body));
            let (zero, five) =
                (graph.constant(integers(1), &[0]), graph.constant(integers(1), &[5]));
            let arguments = [goes_on, body, inputs[0], zero, five, inputs[1]];
            vec![graph.operation(O::While, arguments, integers(3))]
        });
        let [_, otherwise] = sums(builder);
        choose(main, condition, [then, otherwise], &[a, b], &[3])
    });
    vec![
        ("plain", plain, 1, 1, 3),
        ("moved", moved, 3, 1, 3),
        ("computed", computed, 3, 2, 5),
        ("constant", constant, 3, 3, 4),
        ("nested", nested, 1, 2, 5),
        ("looping", looping, 1, 1, 5),
    ]
}

fn chosen(condition: u8, outputs: usize, a: [i32; 3]) -> Request {
    let bytes = |numbers: [i32; 3]| numbers.map(i32::to_le_bytes).concat();
    let mut request = RequestBuilder::new();
    request.input(&[condition]).input(&bytes(a)).input(&bytes([10, 20, 30]));
    for _ in 0..outputs {
        request.output(12);
    }
    request.build().unwrap()
}

#[test]
fn the_branch_runs_that_the_reference_device_runs() {
    for (name, model, count, ifs, plans) in choices() {
        let (fast, reference) = (nnhal_cpu::device(Settings::default()), nnhal_reference::device());
        let (fast, reference) = (prepare(&*fast, &model), prepare(&*reference, &model));
        let run = |prepared: &dyn PreparedModel, condition, a| -> Vec<Vec<u8>> {
            let request = chosen(condition, count, a);
            prepared.execute(&request, &ExecutionOptions::default()).unwrap();
            (0..count).map(|it| RequestBuilder::read_output(&request, it).unwrap()).collect()
        };
        for a in [[1, 2, 3], [40, 50, 60]] {
            // Only 0 is false.
            for condition in [1, 0, 2, 0x80, 0, 0xFF] {
                let expected = run(&*reference, condition, a);
                assert_eq!(run(&*fast, condition, a), expected, "{name}, {condition}, {a:?}");
            }
            if name != "constant" {
                assert_ne!(run(&*reference, 0, a), run(&*reference, 1, a), "{name}: alike");
            }
        }
        let plan = Prepared::of(&*fast).unwrap().plan();
        assert_eq!(plan.iter().filter(|step| step.kernel == "if").count(), ifs, "{name}");
        let numbers = plan.iter().map(|step| step.plan).max().unwrap();
        assert!(numbers < plans, "{name}: plan {numbers}");
    }
}

#[test]
fn observers_are_notified_of_the_branch_that_runs() {
    for (name, model, count, ..) in choices() {
        for condition in [0, 1] {
            let devices = [nnhal_cpu::device(Settings::default()), nnhal_reference::device()];
            let [fast, reference] = devices.map(|device| {
                let prepared = prepare(&*device, &model);
                let seen = Arc::new(Seen::default());
                let observed = Prepared::of(&*prepared).unwrap();
                let request = chosen(condition, count, [1, 2, 3]);
                observed.execute_observed(&request, &ExecutionOptions::default(), &*seen).unwrap();
                seen.0.lock().unwrap().clone()
            });
            assert!(fast.iter().all(|it| reference.contains(it)), "{name}, {condition}");
            let branches = |seen: &[Observed]| -> std::collections::BTreeSet<Vec<usize>> {
                let path = |rounds: &[Round]| rounds.iter().map(|it| it.subgraph_input).collect();
                seen.iter().map(|(rounds, ..)| path(rounds)).collect()
            };
            // Casts to the same type, and sums of constants, are no steps.
            if name != "moved" && name != "computed" {
                let mut expected = branches(&reference);
                if name == "looping" {
                    // Its rounds are counted before, and no condition is computed.
                    assert!(condition == 0 || expected.remove(&vec![1, 0]), "{condition}");
                }
                assert_eq!(branches(&fast), expected, "{name}, {condition}");
            }
        }
    }
}

/// In each round of a loop the other branch: `x + x` if it is less than 100, otherwise `x - 90`.
#[test]
fn a_loop_chooses_anew_in_each_round() {
    let model = counting(&[1, 1, 1], 1, |builder, body, variables| {
        let then =
            branch(builder, &[1], |_, graph, inputs| vec![add(graph, inputs[0], inputs[0], 1)]);
        let otherwise = branch(builder, &[1], |_, graph, inputs| {
            let ninety = graph.constant(integers(1), &[-90]);
            vec![add(graph, inputs[0], ninety, 1)]
        });
        let limit = body.constant(integers(1), &[100]);
        let is_less = body.operation(O::Less, [variables[0], limit], truth());
        choose(body, is_less, [then, otherwise], &variables[..1], &[1])
    });
    let fast = prepare(&*nnhal_cpu::device(Settings::default()), &model);
    let mut x: i32 = 1;
    for rounds in 0..50 {
        let found = outputs(&*fast, rounds, 1, 1);
        assert_eq!(found, [x.to_le_bytes()], "{rounds} rounds");
        x = if x < 100 { x + x } else { x - 90 };
    }
    let plan = Prepared::of(&*fast).unwrap().plan();
    assert_eq!(plan.iter().filter(|step| step.kernel == "if").count(), 1);
}

#[test]
fn branches_share_their_memory() {
    // Each has a hundred thousand integers besides its result.
    let large = |builder: &mut ModelBuilder, begin: i32| {
        branch(builder, &[1], |_, graph, inputs| {
            let times = graph.constant(integers(1), &[100_000]);
            let many = graph.operation(O::Tile, [inputs[0], times], integers(100_000));
            let twice = add(graph, many, many, 100_000);
            let begin = graph.constant(integers(1), &[begin]);
            let size = graph.constant(integers(1), &[1]);
            vec![graph.operation(O::Slice, [twice, begin, size], integers(1))]
        })
    };
    let mut builder = ModelBuilder::new();
    let branches = [large(&mut builder, 5), large(&mut builder, 7)];
    let mut main = SubgraphBuilder::new();
    let (condition, x) = (main.input("condition", truth()), main.input("x", integers(1)));
    let outputs = choose(&mut main, condition, branches, &[x], &[1]);
    main.output(outputs[0]);
    let model = builder.build(main).unwrap();
    let prepared = prepare(&*nnhal_cpu::device(Settings::default()), &model);
    let plan = Prepared::of(&*prepared).unwrap().plan();
    let step = plan.iter().find(|step| step.kernel == "if").unwrap();
    let bytes = step.scratch.end - step.scratch.start;
    assert!((800_000..900_000).contains(&bytes), "{bytes}");
}

#[test]
fn a_branch_that_is_too_slow_is_given_up() {
    let model = choosing(|builder, main, [condition, a, b]| {
        let lengths = [3, 3];
        let goes_on = branch(builder, &lengths, |_, graph, _| {
            let yes = graph.constant_bytes(truth(), &[0]);
            vec![graph.operation(O::LogicalNot, [yes], truth())]
        });
        let body =
            branch(builder, &lengths, |_, graph, inputs| vec![add(graph, inputs[0], inputs[1], 3)]);
        let then = branch(builder, &lengths, |_, graph, inputs| {
            let arguments = [graph.subgraph(goes_on), graph.subgraph(body), inputs[0], inputs[1]];
            vec![graph.operation(O::While, arguments, integers(3))]
        });
        let [_, otherwise] = sums(builder);
        choose(main, condition, [then, otherwise], &[a, b], &[3])
    });
    let prepared = prepare(&*nnhal_cpu::device(Settings::default()), &model);
    let started = Instant::now();
    let options = ExecutionOptions {
        deadline: Some(Deadline::after(Duration::from_millis(50))),
        ..ExecutionOptions::default()
    };
    let request = chosen(1, 1, [1, 2, 3]);
    let failed = prepared.execute(&request, &options).unwrap_err();
    assert_eq!(failed.error.status(), ErrorStatus::MissedDeadlineTransient);
    assert!(started.elapsed() < Duration::from_secs(1));
    // The other branch is as good as before.
    let request = chosen(0, 1, [1, 2, 3]);
    prepared.execute(&request, &ExecutionOptions::default()).unwrap();
    let expected = [101, 202, 303].map(i32::to_le_bytes).concat();
    assert_eq!(RequestBuilder::read_output(&request, 0).unwrap(), expected);
}

/// What only the other branch reads may be left out.
#[test]
fn arguments_may_be_left_out_that_are_not_read() {
    let model = choosing(|builder, main, [condition, a, b]| {
        let of = |builder: &mut ModelBuilder, which: usize| {
            branch(builder, &[3, 3], |_, graph, inputs| {
                vec![add(graph, inputs[which], inputs[which], 3)]
            })
        };
        let branches = [of(builder, 0), of(builder, 1)];
        choose(main, condition, branches, &[a, b], &[3])
    });
    for device in [nnhal_cpu::device(Settings::default()), nnhal_reference::device()] {
        let prepared = prepare(&*device, &model);
        let bytes = [1, 2, 3].map(i32::to_le_bytes).concat();
        for (condition, is_there) in [(1, true), (0, false)] {
            let mut request = RequestBuilder::new();
            request.input(&[condition]).input(&bytes).omitted_input().output(12);
            let request = request.build().unwrap();
            let result = prepared.execute(&request, &ExecutionOptions::default());
            assert_eq!(result.is_ok(), is_there, "{}", device.name());
            if is_there {
                let expected = [2, 4, 6].map(i32::to_le_bytes).concat();
                assert_eq!(RequestBuilder::read_output(&request, 0).unwrap(), expected);
            }
        }
    }
}

/// Floats of 16 bits go in and out as floats of 32 bits.
#[test]
fn branches_take_and_give_floats_of_16_bits() {
    let halves = || OperandSpec::tensor_float16([3]);
    let mut builder = ModelBuilder::new();
    let mut branches = Vec::new();
    for operation in [O::Add, O::Sub] {
        let mut graph = SubgraphBuilder::new();
        let x = graph.input("", halves());
        let (one, none) =
            (graph.constant_bytes(halves(), &[0, 0x3C, 0, 0x3C, 0, 0x3C]), graph.scalar_i32(0));
        let y = graph.operation(operation, [x, one, none], halves());
        graph.output(y);
        branches.push(builder.reference(graph));
    }
    let mut main = SubgraphBuilder::new();
    let condition = main.input("", truth());
    let x = main.input("", halves());
    let (then, otherwise) = (main.subgraph(branches[0]), main.subgraph(branches[1]));
    let y = main.operation(O::If, [condition, then, otherwise, x], halves());
    main.output(y);
    let model = builder.build(main).unwrap();
    let prepared = prepare(&*nnhal_cpu::device(Settings::default()), &model);
    assert!(Prepared::of(&*prepared).unwrap().plan().iter().any(|step| step.kernel == "if"));
    // 1, -2 and 0.5, one more and one less.
    for (condition, expected) in [(1, [0x4000_u16, 0xBC00, 0x3E00]), (0, [0, 0xC200, 0xB800])] {
        let bytes = |halves: [u16; 3]| halves.map(u16::to_le_bytes).concat();
        let mut request = RequestBuilder::new();
        request.input(&[condition]).input(&bytes([0x3C00, 0xC000, 0x3800])).output(6);
        let request = request.build().unwrap();
        prepared.execute(&request, &ExecutionOptions::default()).unwrap();
        assert_eq!(RequestBuilder::read_output(&request, 0).unwrap(), bytes(expected));
    }
}

/// Branches whose results have other lengths are the interpreter's, which runs the rest by plans.
#[test]
fn other_choices_are_interpreted() {
    let mut builder = ModelBuilder::new();
    let open = || OperandSpec::tensor_int32([0]);
    let mut branches = Vec::new();
    for times in [2, 3] {
        let mut graph = SubgraphBuilder::new();
        let x = graph.input("", integers(3));
        let times = graph.constant(integers(1), &[times]);
        let y = graph.operation(O::Tile, [x, times], open());
        graph.output(y);
        branches.push(builder.reference(graph));
    }
    let mut main = SubgraphBuilder::new();
    let condition = main.input("", truth());
    let x = main.input("", integers(3));
    let (then, otherwise) = (main.subgraph(branches[0]), main.subgraph(branches[1]));
    let y = main.operation(O::If, [condition, then, otherwise, x], open());
    main.output(y);
    let model = builder.build(main).unwrap();
    let prepared = prepare(&*nnhal_cpu::device(Settings::default()), &model);
    for (condition, times, length) in [(1, 2, 6), (0, 3, 9)] {
        let bytes = [1, 2, 3].map(i32::to_le_bytes).concat();
        let mut request = RequestBuilder::new();
        request.input(&[condition]).input(&bytes).output(12 * times);
        let request = request.build().unwrap();
        let execution = prepared.execute(&request, &ExecutionOptions::default()).unwrap();
        assert_eq!(execution.dimensions(0), Some(&[length][..]));
        assert_eq!(RequestBuilder::read_output(&request, 0).unwrap(), bytes.repeat(times));
    }
    let plan = Prepared::of(&*prepared).unwrap().plan();
    assert!(!plan.is_empty() && plan.iter().all(|step| step.kernel != "if"));
}

fn floats(dimensions: &[u32]) -> OperandSpec {
    OperandSpec::tensor_float32(dimensions)
}

const UNITS: u32 = 24;

fn weights(unlike: f32) -> Vec<f32> {
    (0..UNITS * UNITS).map(|index| ((index * 37 % 64) as f32 - unlike) / 64.0).collect()
}

/// FULLY_CONNECTED of a row with weights.
fn fully_connected(graph: &mut SubgraphBuilder, x: OperandId, weights: OperandId) -> OperandId {
    let bias = graph.constant(floats(&[UNITS]), &[0.5; UNITS as usize]);
    let none = graph.scalar_i32(0);
    graph.operation(O::FullyConnected, [x, weights, bias, none], floats(&[1, UNITS]))
}

/// An IF whose branches have one layer each, of weights that are an argument: both of the same two.
fn layers_of_branches() -> Model {
    let mut builder = ModelBuilder::new();
    let branches = [0, 1].map(|own| {
        let mut graph = SubgraphBuilder::new();
        let inputs = [[UNITS, UNITS], [1, UNITS], [UNITS, UNITS]];
        let inputs = inputs.map(|lengths| graph.input("", floats(&lengths)));
        let y = fully_connected(&mut graph, inputs[1], inputs[2 * own]);
        graph.output(y);
        builder.reference(graph)
    });
    let mut main = SubgraphBuilder::new();
    let condition = main.input("", truth());
    let x = main.input("", floats(&[1, UNITS]));
    let [first, last] =
        [20.0, 40.0].map(|unlike| main.constant(floats(&[UNITS, UNITS]), &weights(unlike)));
    let [then, otherwise] = branches.map(|branch| main.subgraph(branch));
    let inputs = [condition, then, otherwise, first, x, last];
    let y = main.operation(O::If, inputs, floats(&[1, UNITS]));
    main.output(y);
    builder.build(main).unwrap()
}

/// `for 3 rounds { x = layer(x, weights) }`, whose weights and number of rounds are variables that never change. It may give out
/// the weights too, or change them.
fn layer_of_rounds(gives_out: bool, changes: bool) -> Model {
    let mut builder = ModelBuilder::new();
    let types = || [floats(&[1, UNITS]), floats(&[UNITS, UNITS]), integers(1), integers(1)];
    let mut condition = SubgraphBuilder::new();
    let variables = types().map(|spec| condition.input("", spec));
    let operands = [variables[2], variables[3]];
    let is_less = condition.operation(O::Less, operands, truth());
    condition.output(is_less);
    let condition = builder.reference(condition);
    let mut body = SubgraphBuilder::new();
    let [x, weights_before, i, limit] = types().map(|spec| body.input("", spec));
    let y = fully_connected(&mut body, x, weights_before);
    let change = if changes { O::Abs } else { O::Cast };
    let weights_after = body.operation(change, [weights_before], floats(&[UNITS, UNITS]));
    let one = body.constant(integers(1), &[1]);
    let next = add(&mut body, i, one, 1);
    let limit = same(&mut body, limit, 1);
    for output in [y, weights_after, next, limit] {
        body.output(output);
    }
    let body = builder.reference(body);
    let mut main = SubgraphBuilder::new();
    let condition_input = main.input("", truth());
    let x = main.input("", floats(&[1, UNITS]));
    let arguments = [
        main.subgraph(condition),
        main.subgraph(body),
        x,
        main.constant(floats(&[UNITS, UNITS]), &weights(32.0)),
        main.constant(integers(1), &[0]),
        main.constant(integers(1), &[3]),
    ];
    let results = types().map(|spec| main.temporary(spec));
    main.operation_into(O::While, arguments, results);
    let given_out = results[..if gives_out { 2 } else { 1 }].to_vec();
    // Read, so that the request is that of the other model.
    let chosen = main.operation(O::LogicalNot, [condition_input], truth());
    for output in given_out.into_iter().chain([chosen]) {
        main.output(output);
    }
    builder.build(main).unwrap()
}

/// Weights that are arguments of an IF, or variables that a loop never changes, are packed once, as a subgraph's own are.
#[test]
fn constants_outside_are_constants_inside() {
    let x: Vec<u8> =
        (0..UNITS).flat_map(|index| (index as f32 / 8.0 - 1.0).to_le_bytes()).collect();
    let row = 4 * UNITS as usize;
    let square = row * UNITS as usize;
    for (name, model, outputs, is_packed) in [
        ("branches", layers_of_branches(), vec![row], true),
        ("rounds", layer_of_rounds(false, false), vec![row, 1], true),
        ("rounds that give them out", layer_of_rounds(true, false), vec![row, square, 1], false),
        ("rounds that change them", layer_of_rounds(false, true), vec![row, 1], false),
        ("rounds that do both", layer_of_rounds(true, true), vec![row, square, 1], false),
    ] {
        let devices = [nnhal_cpu::device(Settings::default()), nnhal_reference::device()];
        let prepared = devices.map(|device| prepare(&*device, &model));
        for condition in [0, 1] {
            let [fast, reference] = prepared.each_ref().map(|prepared| {
                let mut request = RequestBuilder::new();
                request.input(&[condition]).input(&x);
                for length in &outputs {
                    request.output(*length);
                }
                let request = request.build().unwrap();
                let seen = Arc::new(Seen::default());
                let observed = Prepared::of(&**prepared).unwrap();
                observed.execute_observed(&request, &ExecutionOptions::default(), &*seen).unwrap();
                let results = 0..outputs.len();
                let results = results.map(|it| RequestBuilder::read_output(&request, it).unwrap());
                let seen = seen.0.lock().unwrap().clone();
                (results.collect::<Vec<_>>(), seen)
            });
            let is_near = |one: &[u8], other: &[u8]| {
                let numbers = |bytes: &[u8]| -> Vec<f32> {
                    let (numbers, _) = bytes.as_chunks();
                    numbers.iter().copied().map(f32::from_le_bytes).collect()
                };
                let pairs = numbers(one).into_iter().zip(numbers(other));
                one.len() == other.len()
                    && (one == other
                        || pairs.fold(0.0, |all, (a, b)| (a - b).abs().max(all)) < 1e-4)
            };
            for (fast, reference) in fast.0.iter().zip(&reference.0) {
                assert!(is_near(fast, reference), "{name}, {condition}");
            }
            for (rounds, operand, bytes) in &fast.1 {
                let is_alike = |(of, at, expected): &Observed| {
                    of == rounds && at == operand && is_near(bytes, expected)
                };
                assert!(reference.1.iter().any(is_alike), "{name}: operand {operand}, {rounds:?}");
            }
        }
        let plan = Prepared::of(&*prepared[0]).unwrap().plan();
        let layers: Vec<_> =
            plan.iter().filter(|step| step.plan != 0 && step.weight_bytes > 0).collect();
        let expected = if name == "branches" { 2 } else { 1 };
        assert_eq!(layers.len(), if is_packed { expected } else { 0 }, "{name}: {plan:?}");
    }
}

/// Zeros would be a wrong answer.
#[test]
fn a_branch_with_a_constant_that_cannot_be_read_is_not_prepared() {
    let many = 4096;
    for is_inside in [true, false] {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4 * u64::from(many)).unwrap();
        let fd = file.try_clone().unwrap().into();
        let memory = Memory::from_file(fd, Protection::READ, 0, 4 * u64::from(many)).unwrap();
        let mut builder = ModelBuilder::new();
        let pool = builder.pool(memory);
        let mut branches = Vec::new();
        for operation in [O::Add, O::Sub] {
            let mut graph = SubgraphBuilder::new();
            let x = graph.input("", integers(many));
            let outside = graph.input("", integers(many));
            let added = if is_inside {
                graph.constant_in_pool(integers(many), pool, 0, 4 * many)
            } else {
                outside
            };
            let none = graph.scalar_i32(0);
            let y = graph.operation(operation, [x, added, none], integers(many));
            graph.output(y);
            branches.push(builder.reference(graph));
        }
        let mut main = SubgraphBuilder::new();
        let (condition, x) = (main.input("", truth()), main.input("", integers(many)));
        // What goes to an IF directly may be left out by requests, which are interpreted; that would read constants.
        let condition = main.operation(O::LogicalNot, [condition], truth());
        let x = add(&mut main, x, x, many);
        let outside =
            if is_inside { x } else { main.constant_in_pool(integers(many), pool, 0, 4 * many) };
        let (then, otherwise) = (main.subgraph(branches[0]), main.subgraph(branches[1]));
        let y = main.operation(O::If, [condition, then, otherwise, x, outside], integers(many));
        main.output(y);
        let model = builder.build(main).unwrap();
        let device = nnhal_cpu::device(Settings::default());
        let prepare =
            || device.prepare_model(&model, HalVersion::LATEST, PrepareOptions::default());
        prepare().unwrap();
        file.set_len(4).unwrap();
        let refused = prepare().err().expect("it is read");
        assert!(refused.to_string().contains("cut short"), "{refused}");
    }
}
