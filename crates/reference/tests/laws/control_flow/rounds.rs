//! WHILE of n rounds equals its body n times: programs of loops in loops and choices in them, once
//! with subgraphs, once written out.

use crate::random::Random;
use crate::run::{ROOM, Tensor, execute};
use nnhal_hal::builder::SubgraphId;
use nnhal_hal::{
    Model, ModelBuilder, OperandId, OperandSpec, OperandType, OperationType, RequestBuilder,
    SubgraphBuilder,
};
use proptest::prelude::*;

/// What is done to a vector `x`. `i` is the counter of the innermost loop around.
#[derive(Debug, Clone)]
enum Step {
    /// `x = operation(x)`
    Unary(OperationType),
    /// `x = operation(x, constant)`
    Binary(OperationType, f32),
    /// `x = x + i`
    AddCounter,
    /// This many rounds of steps.
    Loop(i32, Vec<Step>),
    /// One or the other, by whether `i` is less than this.
    Choice(i32, Vec<Step>, Vec<Step>),
}

fn steps(random: &mut Random, depth: u32) -> Vec<Step> {
    use OperationType as Op;
    (0..random.length(1, 3))
        .map(|_| match random.int(0, if depth == 0 { 2 } else { 5 }) {
            0 => Step::Unary(random.pick(&[Op::Tanh, Op::Abs, Op::Floor, Op::Relu6, Op::Logistic])),
            1 => {
                let constant = f32::from(i16::try_from(random.int(-8, 8)).unwrap()) / 4.0;
                Step::Binary(random.pick(&[Op::Add, Op::Sub, Op::Mul]), constant)
            }
            2 => Step::AddCounter,
            3 => Step::Choice(random.int(0, 3), steps(random, depth - 1), steps(random, depth - 1)),
            _ => Step::Loop(random.int(0, 3), steps(random, depth - 1)),
        })
        .collect()
}

fn counter() -> OperandSpec {
    OperandSpec::tensor_int32([1])
}

/// What is there while steps are written: the vector and the counter.
#[derive(Clone, Copy)]
struct State {
    x: OperandId,
    i: OperandId,
}

/// Writes programs for vectors of a kind.
struct Writer {
    spec: OperandSpec,
    builder: ModelBuilder,
}

impl Writer {
    fn constant(&self, graph: &mut SubgraphBuilder, value: f32) -> OperandId {
        let one = OperandSpec { dimensions: vec![1], ..self.spec.clone() };
        match self.spec.operand_type {
            OperandType::TensorFloat16 => graph.constant(one, &[half::f16::from_f32(value)]),
            _ => graph.constant(one, &[value]),
        }
    }

    fn plain(&self, graph: &mut SubgraphBuilder, step: &Step, state: State) -> OperandId {
        let none = graph.scalar_i32(0);
        match step {
            Step::Unary(operation) => graph.operation(*operation, [state.x], self.spec.clone()),
            Step::Binary(operation, constant) => {
                let constant = self.constant(graph, *constant);
                graph.operation(*operation, [state.x, constant, none], self.spec.clone())
            }
            _ => {
                let one = OperandSpec { dimensions: vec![1], ..self.spec.clone() };
                let count = graph.operation(OperationType::Cast, [state.i], one);
                graph.operation(OperationType::Add, [state.x, count, none], self.spec.clone())
            }
        }
    }

    /// The steps with subgraphs.
    fn nested(&mut self, graph: &mut SubgraphBuilder, steps: &[Step], state: State) -> OperandId {
        steps.iter().fold(state.x, |x, step| {
            let state = State { x, ..state };
            match step {
                Step::Loop(rounds, steps) => {
                    let condition = self.less(*rounds);
                    let body = self.subgraph(steps, true);
                    let zero = graph.constant(counter(), &[0]);
                    let inputs = [graph.subgraph(condition), graph.subgraph(body), x, zero];
                    graph.operation(OperationType::While, inputs, self.spec.clone())
                }
                Step::Choice(limit, then, otherwise) => {
                    let limit = graph.constant(counter(), &[*limit]);
                    let truth = OperandSpec::tensor_bool8([1]);
                    let condition = graph.operation(OperationType::Less, [state.i, limit], truth);
                    let [then, otherwise] =
                        [then, otherwise].map(|steps| self.subgraph(steps, false));
                    let [then, otherwise] = [then, otherwise].map(|it| graph.subgraph(it));
                    let inputs = [condition, then, otherwise, x, state.i];
                    graph.operation(OperationType::If, inputs, self.spec.clone())
                }
                plain => self.plain(graph, plain, state),
            }
        })
    }

    fn inputs(&self, graph: &mut SubgraphBuilder) -> State {
        State { x: graph.input("x", self.spec.clone()), i: graph.input("i", counter()) }
    }

    /// `i < limit`
    fn less(&mut self, limit: i32) -> SubgraphId {
        let mut graph = SubgraphBuilder::new();
        let State { i, .. } = self.inputs(&mut graph);
        let limit = graph.constant(counter(), &[limit]);
        let truth = OperandSpec::tensor_bool8([1]);
        let goes_on = graph.operation(OperationType::Less, [i, limit], truth);
        graph.output(goes_on);
        self.builder.reference(graph)
    }

    /// The body of a loop, which counts, or a branch.
    fn subgraph(&mut self, steps: &[Step], counts: bool) -> SubgraphId {
        let mut graph = SubgraphBuilder::new();
        let state = self.inputs(&mut graph);
        let x = self.nested(&mut graph, steps, state);
        let x = self.result(&mut graph, x);
        graph.output(x);
        if counts {
            let (one, none) = (graph.constant(counter(), &[1]), graph.scalar_i32(0));
            let next = graph.operation(OperationType::Add, [state.i, one, none], counter());
            graph.output(next);
        }
        self.builder.reference(graph)
    }

    /// The steps written out, by a counter that is known.
    fn written_out(
        &self,
        graph: &mut SubgraphBuilder,
        steps: &[Step],
        x: OperandId,
        i: i32,
    ) -> OperandId {
        steps.iter().fold(x, |x, step| match step {
            Step::Loop(rounds, steps) => {
                (0..*rounds).fold(x, |x, round| self.written_out(graph, steps, x, round))
            }
            Step::Choice(limit, then, otherwise) => {
                let taken = if i < *limit { then } else { otherwise };
                self.written_out(graph, taken, x, i)
            }
            plain => {
                let i = graph.constant(counter(), &[i]);
                self.plain(graph, plain, State { x, i })
            }
        })
    }

    /// A result of its own, also where nothing was done.
    fn result(&self, graph: &mut SubgraphBuilder, x: OperandId) -> OperandId {
        let (one, none) = (self.constant(graph, 1.0), graph.scalar_i32(0));
        graph.operation(OperationType::Mul, [x, one, none], self.spec.clone())
    }
}

/// A program as a model: with subgraphs, or written out.
fn model(spec: &OperandSpec, steps: &[Step], is_nested: bool) -> Model {
    let mut writer = Writer { spec: spec.clone(), builder: ModelBuilder::new() };
    let mut main = SubgraphBuilder::new();
    let x = main.input("x", spec.clone());
    let x = if is_nested {
        let i = main.constant(counter(), &[0]);
        writer.nested(&mut main, steps, State { x, i })
    } else {
        writer.written_out(&mut main, steps, x, 0)
    };
    let x = writer.result(&mut main, x);
    main.output(x);
    writer.builder.build(main).unwrap()
}

fn run(model: &Model, bytes: &[u8]) -> Result<Vec<Tensor>, String> {
    let mut request = RequestBuilder::new();
    request.input(bytes);
    request.output(ROOM);
    execute(model, &request.build().unwrap())
}

proptest! {
    #![proptest_config(crate::config(200))]

    #[test]
    fn cf_9_a_while_is_its_body_as_many_times_as_it_has_rounds(seed: u64, is_half: bool) {
        let random = &mut Random::new(seed);
        let steps = steps(random, 3);
        let length = random.length(1, 3);
        let numbers = random.reals(&[length], -4.0, 4.0);
        let (spec, bytes): (_, Vec<u8>) = if is_half {
            let bytes = numbers.iter().flat_map(|it| half::f16::from_f64(*it).to_le_bytes());
            (OperandSpec::tensor_float16([length]), bytes.collect())
        } else {
            #[allow(clippy::cast_possible_truncation)] // Any number near the drawn one will do.
            let bytes = numbers.iter().flat_map(|it| (*it as f32).to_le_bytes());
            (OperandSpec::tensor_float32([length]), bytes.collect())
        };
        let expected = run(&model(&spec, &steps, false), &bytes).unwrap();
        prop_assert_eq!(run(&model(&spec, &steps, true), &bytes), Ok(expected), "{:?}", steps);
    }
}
