//! IF and WHILE on the reference device (contract: CF, QOS-7 to QOS-9).

mod support;

use nnhal_hal::{
    ErrorStatus, ExecutionOptions, Model, ModelBuilder, OperandSpec, OperationType, SubgraphBuilder,
};
use std::time::{Duration, Instant};
use support::{
    binary, counter, f32s, failure, i32s, prepare, request, run, run_with, truth, vector,
};

/// `condition ? a + b : a - b`, of vectors of a length that is known or not.
fn choice(length: u32) -> Model {
    let mut builder = ModelBuilder::new();
    let spec = vector(length);
    let then = builder.reference(binary(OperationType::Add, &spec, spec.clone()));
    let otherwise = builder.reference(binary(OperationType::Sub, &spec, spec.clone()));
    let mut main = SubgraphBuilder::new();
    let condition = main.input("condition", truth());
    let (a, b) = (main.input("a", spec.clone()), main.input("b", spec.clone()));
    let (then, otherwise) = (main.subgraph(then), main.subgraph(otherwise));
    let result = main.operation(OperationType::If, [condition, then, otherwise, a, b], spec);
    main.output(result);
    builder.build(main).unwrap()
}

#[test]
fn cf_9_if_runs_the_branch_that_its_condition_says() {
    let prepared = prepare(&choice(2));
    let (a, b) = (f32s(&[5.0, 7.0]), f32s(&[1.0, 2.0]));
    let cases = [(0_u8, [4.0, 5.0]), (1, [6.0, 9.0]), (0x80, [6.0, 9.0])];
    for (condition, expected) in cases {
        let request = request(&[(&[], &[condition]), (&[], &a), (&[], &b)], &[8]);
        assert_eq!(run(&*prepared, &request).unwrap(), [(vec![2], f32s(&expected))]);
    }
}

#[test]
fn cf_4_operands_of_an_if_may_have_unknown_sizes() {
    let prepared = prepare(&choice(0));
    let three = f32s(&[1.0, 2.0, 3.0]);
    let good = request(&[(&[], &[1]), (&[3], &three), (&[3], &three)], &[12]);
    assert_eq!(run(&*prepared, &good).unwrap(), [(vec![3], f32s(&[2.0, 4.0, 6.0]))]);
    // What does not go together fails inside, and is named there.
    let bad = request(&[(&[], &[0]), (&[3], &three), (&[2], &three[..8])], &[12]);
    let (status, text) = failure(run(&*prepared, &bad));
    assert_eq!(status, ErrorStatus::GeneralFailure);
    assert!(text.contains("operation 0 (SUB) of referenced subgraph 1"), "{text}");
}

/// Doubles `x` and counts `i` up while `i < limit`; only `x` is a result. `x` is renewed and given
/// out, `i` is state only, `limit` never changes.
fn doubling_loop() -> Model {
    let mut builder = ModelBuilder::new();
    let inputs = |graph: &mut SubgraphBuilder| {
        [("x", vector(1)), ("i", counter()), ("limit", counter())]
            .map(|(name, spec)| graph.input(name, spec))
    };
    let mut condition = SubgraphBuilder::new();
    let [_, i, limit] = inputs(&mut condition);
    let goes_on = condition.operation(OperationType::Less, [i, limit], truth());
    condition.output(goes_on);

    let mut body = SubgraphBuilder::new();
    let [x, i, _] = inputs(&mut body);
    let none = body.scalar_i32(0);
    let one = body.constant(counter(), &[1]);
    let doubled = body.operation(OperationType::Add, [x, x, none], vector(1));
    let next = body.operation(OperationType::Add, [i, one, none], counter());
    body.output(doubled);
    body.output(next);

    let (condition, body) = (builder.reference(condition), builder.reference(body));
    let mut main = SubgraphBuilder::new();
    let (condition, body) = (main.subgraph(condition), main.subgraph(body));
    let [x, i, limit] = inputs(&mut main);
    let result = main.operation(OperationType::While, [condition, body, x, i, limit], vector(1));
    main.output(result);
    builder.build(main).unwrap()
}

fn doubling_request(limit: i32) -> nnhal_hal::Request {
    request(&[(&[], &f32s(&[1.5])), (&[], &i32s(&[0])), (&[], &i32s(&[limit]))], &[4])
}

#[test]
fn cf_9_while_goes_on_as_long_as_its_condition_holds() {
    let prepared = prepare(&doubling_loop());
    for (limit, expected) in [(-1, 1.5), (0, 1.5), (1, 3.0), (10, 1536.0)] {
        let outputs = run(&*prepared, &doubling_request(limit)).unwrap();
        assert_eq!(outputs, [(vec![1], f32s(&[expected]))], "limit {limit}");
    }
}

#[test]
fn qos_7_a_loop_without_end_is_given_up_and_harms_nothing() {
    let prepared = prepare(&doubling_loop());
    let options = ExecutionOptions {
        loop_timeout: Some(Duration::from_millis(1)),
        ..ExecutionOptions::default()
    };
    let started = Instant::now();
    let (status, _) = failure(run_with(&*prepared, &doubling_request(i32::MAX), &options));
    assert_eq!(status, ErrorStatus::MissedDeadlineTransient);
    assert!(started.elapsed() < Duration::from_secs(1));
    assert!(run(&*prepared, &doubling_request(3)).is_ok());
}

/// Makes every addition take 5 ms.
struct Slow;

impl nnhal_driver::Observer for Slow {
    fn duration(&self, place: nnhal_driver::OperationPlace, _duration: Duration) {
        if place.operation_type == OperationType::Add {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn qos_9_a_loop_that_ends_is_never_late() {
    let prepared = prepare(&doubling_loop());
    let prepared = nnhal_driver::Prepared::of(&*prepared).expect("a driver's");
    let loop_timeout = Some(Duration::from_millis(4));
    let options = ExecutionOptions { loop_timeout, ..ExecutionOptions::default() };
    // The one round is over after 10 ms, and then the condition is false.
    prepared.execute_observed(&doubling_request(1), &options, &Slow).unwrap();
    // Before the second round the time is over.
    let failed = prepared.execute_observed(&doubling_request(2), &options, &Slow).unwrap_err();
    assert_eq!(failed.error.status(), ErrorStatus::MissedDeadlineTransient);
}

#[test]
fn qos_5_a_deadline_ends_a_loop() {
    let prepared = prepare(&doubling_loop());
    let options = ExecutionOptions {
        deadline: Some(nnhal_hal::Deadline::after(Duration::from_millis(10))),
        loop_timeout: Some(Duration::from_secs(15)),
        ..ExecutionOptions::default()
    };
    let (status, _) = failure(run_with(&*prepared, &doubling_request(i32::MAX), &options));
    assert_eq!(status, ErrorStatus::MissedDeadlineTransient);
}

/// Counts in two nested loops, the inner one under an IF: the product of two limits, or 0.
fn nested_loops() -> Model {
    let mut builder = ModelBuilder::new();
    // Both loops: (count, i, limit) or (count, i, limit, inner limit, enabled).
    let less_of = |inputs: &[OperandSpec]| {
        let mut graph = SubgraphBuilder::new();
        let inputs: Vec<_> = inputs.iter().map(|spec| graph.input("", spec.clone())).collect();
        let goes_on = graph.operation(OperationType::Less, [inputs[1], inputs[2]], truth());
        graph.output(goes_on);
        graph
    };
    let inner_inputs = [counter(), counter(), counter()];
    let outer_inputs = [counter(), counter(), counter(), counter(), truth()];
    let inner_condition = builder.reference(less_of(&inner_inputs));
    let outer_condition = builder.reference(less_of(&outer_inputs));

    let mut body = SubgraphBuilder::new();
    let [count, i, _] = inner_inputs.map(|spec| body.input("", spec));
    let (one, none) = (body.constant(counter(), &[1]), body.scalar_i32(0));
    let count = body.operation(OperationType::Add, [count, one, none], counter());
    let i = body.operation(OperationType::Add, [i, one, none], counter());
    body.output(count);
    body.output(i);
    let inner_body = builder.reference(body);

    // (count, inner limit) -> count
    let mut then = SubgraphBuilder::new();
    let (condition, body) = (then.subgraph(inner_condition), then.subgraph(inner_body));
    let (count, limit) = (then.input("count", counter()), then.input("limit", counter()));
    let zero = then.constant(counter(), &[0]);
    let count =
        then.operation(OperationType::While, [condition, body, count, zero, limit], counter());
    then.output(count);
    let then = builder.reference(then);
    let mut otherwise = SubgraphBuilder::new();
    let (count, _) = (otherwise.input("count", counter()), otherwise.input("limit", counter()));
    let (zero, none) = (otherwise.constant(counter(), &[0]), otherwise.scalar_i32(0));
    let count = otherwise.operation(OperationType::Add, [count, zero, none], counter());
    otherwise.output(count);
    let otherwise = builder.reference(otherwise);

    let mut body = SubgraphBuilder::new();
    let [count, i, _, inner_limit, enabled] = outer_inputs.clone().map(|spec| body.input("", spec));
    let (then, otherwise) = (body.subgraph(then), body.subgraph(otherwise));
    let (one, none) = (body.constant(counter(), &[1]), body.scalar_i32(0));
    let count = body.operation(
        OperationType::If,
        [enabled, then, otherwise, count, inner_limit],
        counter(),
    );
    let i = body.operation(OperationType::Add, [i, one, none], counter());
    body.output(count);
    body.output(i);
    let outer_body = builder.reference(body);

    let mut main = SubgraphBuilder::new();
    let (condition, body) = (main.subgraph(outer_condition), main.subgraph(outer_body));
    let zero = main.constant(counter(), &[0]);
    let limit = main.input("limit", counter());
    let inner_limit = main.input("inner limit", counter());
    let enabled = main.input("enabled", truth());
    let count = main.operation(
        OperationType::While,
        [condition, body, zero, zero, limit, inner_limit, enabled],
        counter(),
    );
    main.output(count);
    builder.build(main).unwrap()
}

#[test]
fn cf_9_loops_and_branches_nest() {
    let prepared = prepare(&nested_loops());
    for (outer, inner, enabled, expected) in
        [(3, 4, 1, 12), (3, 4, 0, 0), (0, 9, 1, 0), (5, 0, 1, 0)]
    {
        let limits = [i32s(&[outer]), i32s(&[inner])];
        let request = request(&[(&[], &limits[0]), (&[], &limits[1]), (&[], &[enabled])], &[4]);
        assert_eq!(run(&*prepared, &request).unwrap(), [(vec![1], i32s(&[expected]))]);
    }
}

#[test]
fn gen_8_subgraphs_nested_deeper_than_any_stack_run() {
    const DEPTH: usize = 20_000;
    let mut builder = ModelBuilder::new();
    let mut inner = builder.reference(binary(OperationType::Add, &vector(1), vector(1)));
    for _ in 0..DEPTH {
        let mut graph = SubgraphBuilder::new();
        let (a, b) = (graph.input("a", vector(1)), graph.input("b", vector(1)));
        let condition = graph.constant(truth(), &[true]);
        let branch = graph.subgraph(inner);
        let result =
            graph.operation(OperationType::If, [condition, branch, branch, a, b], vector(1));
        graph.output(result);
        inner = builder.reference(graph);
    }
    let mut main = SubgraphBuilder::new();
    let (a, b) = (main.input("a", vector(1)), main.input("b", vector(1)));
    let condition = main.constant(truth(), &[true]);
    let branch = main.subgraph(inner);
    let result = main.operation(OperationType::If, [condition, branch, branch, a, b], vector(1));
    main.output(result);
    let model = builder.build(main).unwrap();
    // A stack that would not bear one frame per level.
    std::thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(move || {
            let prepared = prepare(&model);
            let request = request(&[(&[], &f32s(&[1.0])), (&[], &f32s(&[2.0]))], &[4]);
            assert_eq!(run(&*prepared, &request).unwrap(), [(vec![1], f32s(&[3.0]))]);
        })
        .unwrap()
        .join()
        .unwrap();
}

/// Each level runs the next one twice, one after the other. No loop, and 2^levels additions.
fn doubling(levels: usize) -> Model {
    let mut builder = ModelBuilder::new();
    let mut inner = builder.reference(binary(OperationType::Add, &vector(1), vector(1)));
    let level = |inner| {
        let mut graph = SubgraphBuilder::new();
        let (a, b) = (graph.input("a", vector(1)), graph.input("b", vector(1)));
        let condition = graph.constant(truth(), &[true]);
        let branch = graph.subgraph(inner);
        let result = [(); 2].iter().fold(a, |a, ()| {
            let inputs = [condition, branch, branch, a, b];
            graph.operation(OperationType::If, inputs, vector(1))
        });
        graph.output(result);
        graph
    };
    for _ in 1..levels {
        inner = builder.reference(level(inner));
    }
    builder.build(level(inner)).unwrap()
}

#[test]
fn sec_3_branches_that_run_the_next_level_twice_are_refused_at_once() {
    let started = Instant::now();
    let answer = nnhal_reference::device().prepare_model(
        &doubling(30),
        nnhal_hal::HalVersion::LATEST,
        nnhal_hal::PrepareOptions::default(),
    );
    let error = answer.err().expect("a refusal").to_string();
    assert!(error.contains("2147483646 subgraphs, and may run 4336"), "{error}");
    assert!(started.elapsed() < Duration::from_millis(500), "{:?}", started.elapsed());
    let request = request(&[(&[], &f32s(&[1.0])), (&[], &f32s(&[2.0]))], &[4]);
    let few = prepare(&doubling(8));
    assert_eq!(run(&*few, &request).unwrap(), [(vec![1], f32s(&[513.0]))]);
}
