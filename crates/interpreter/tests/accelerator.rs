//! Who computes operations in the interpreter's place, and what the interpreter makes of the answers.

use nnhal_driver::{
    Budget, CompileOptions, DriverDevice, Engine, EngineError, ObservedOutput, Observer,
    OperationPlace, Prepared, Round, RunContext,
};
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{
    Capabilities, Device, DeviceType, ErrorStatus, ExecutionError, ExecutionOptions, HalVersion,
    Model, ModelBuilder, OperandSpec, OperandType, OperationType, PerformanceInfo, PrepareOptions,
    PreparedModel, RequestBuilder, SubgraphBuilder, Support,
};
use nnhal_interpreter::{Accelerator, Computed, ComputedOutput, InterpretedProgram, Remaining};
use nnhal_ops::ValidModel;
use std::sync::{Arc, Mutex};

type Answer = fn(&Remaining<'_>, &RunContext<'_>) -> Result<Option<Computed>, EngineError>;

/// Answers as a test says, and notes what it was asked.
#[derive(Debug)]
struct Script {
    answer: Answer,
    /// Subgraph and operation, in the order of the questions.
    asked: Mutex<Vec<(SubgraphName, usize)>>,
}

impl Accelerator for Script {
    fn compute(
        &self,
        remaining: &Remaining<'_>,
        context: &RunContext<'_>,
    ) -> Result<Option<Computed>, EngineError> {
        self.asked.lock().unwrap().push((remaining.subgraph, remaining.first));
        (self.answer)(remaining, context)
    }
}

/// An interpreter with such an accelerator.
struct Scripted {
    script: Arc<Script>,
    memory_limit: u64,
}

impl Engine for Scripted {
    type Program = InterpretedProgram;

    fn name(&self) -> &str {
        "test-scripted"
    }

    fn version_string(&self) -> String {
        "1".to_owned()
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Other
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::uniform(PerformanceInfo::AS_CPU)
    }

    fn supports(&self, model: &ValidModel, place: OperationPlace) -> Support {
        nnhal_interpreter::supports(model, place)
    }

    fn compile(
        &self,
        model: &ValidModel,
        _: &CompileOptions,
        budget: &Budget,
    ) -> Result<InterpretedProgram, EngineError> {
        let ledger = budget.memory().model(self.memory_limit);
        let program = InterpretedProgram::new(model, &ledger, budget)?;
        Ok(program.with_accelerator(Arc::clone(&self.script) as _))
    }
}

fn vector() -> OperandSpec {
    OperandSpec::tensor_float32([2])
}

fn counter() -> OperandSpec {
    OperandSpec::tensor_int32([1])
}

/// While `i < limit`: `x` becomes `-(x + x)`, `i` one more. Operands of the body: 0 is `x`, 1 `i`, 2 `limit`.
/// Its operations: the sum of floats, NEG, the sum of integers. What is given out is `x`.
fn model() -> Model {
    let mut builder = ModelBuilder::new();
    let inputs = |graph: &mut SubgraphBuilder| {
        [("x", vector()), ("i", counter()), ("limit", counter())]
            .map(|(name, spec)| graph.input(name, spec))
    };
    let mut condition = SubgraphBuilder::new();
    let [_, i, limit] = inputs(&mut condition);
    let truth = OperandSpec::tensor_bool8([1]);
    let goes_on = condition.operation(OperationType::Less, [i, limit], truth);
    condition.output(goes_on);
    let mut body = SubgraphBuilder::new();
    let [x, i, _] = inputs(&mut body);
    let none = body.scalar_i32(0);
    let one = body.constant(counter(), &[1]);
    let doubled = body.operation(OperationType::Add, [x, x, none], vector());
    let negative = body.operation(OperationType::Neg, [doubled], vector());
    let next = body.operation(OperationType::Add, [i, one, none], counter());
    body.output(negative);
    body.output(next);
    let (condition, body) = (builder.reference(condition), builder.reference(body));
    let mut main = SubgraphBuilder::new();
    let (condition, body) = (main.subgraph(condition), main.subgraph(body));
    let [x, i, limit] = inputs(&mut main);
    let result = main.operation(OperationType::While, [condition, body, x, i, limit], vector());
    main.output(result);
    builder.build(main).unwrap()
}

/// The operand of the body's output.
fn negative(model: &Model) -> u32 {
    model.referenced[1].outputs[0]
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|it| f32::from_le_bytes(*it)).collect()
}

fn bytes(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|it| it.to_le_bytes()).collect()
}

struct Run {
    script: Arc<Script>,
    prepared: Arc<dyn PreparedModel>,
}

impl Run {
    fn new(answer: Answer) -> Self {
        Self::with_memory_limit(answer, 1 << 20)
    }

    fn with_memory_limit(answer: Answer, memory_limit: u64) -> Self {
        Self::of(&model(), answer, memory_limit)
    }

    fn of(model: &Model, answer: Answer, memory_limit: u64) -> Self {
        let script = Arc::new(Script { answer, asked: Mutex::default() });
        let device = DriverDevice::new(Scripted { script: Arc::clone(&script), memory_limit });
        let options = PrepareOptions::default();
        let prepared = device.prepare_model(model, HalVersion::LATEST, options).unwrap();
        Self { script, prepared }
    }

    /// Runs the loop this often, from 1 and 2.
    fn rounds(&self, rounds: i32, observer: &dyn Observer) -> Result<Vec<f32>, ExecutionError> {
        let mut request = RequestBuilder::new();
        request.input(&bytes(&[1.0, 2.0])).input(&[0; 4]).input(&rounds.to_le_bytes()).output(8);
        let request = request.build()?;
        let options = ExecutionOptions::default();
        let prepared = Prepared::of(&*self.prepared).expect("a driver's");
        prepared.execute_observed(&request, &options, observer)?;
        Ok(floats(&RequestBuilder::read_output(&request, 0)?))
    }

    fn asked(&self) -> Vec<(SubgraphName, usize)> {
        std::mem::take(&mut self.script.asked.lock().unwrap())
    }
}

struct Unobserved;

impl Observer for Unobserved {}

const BODY: SubgraphName = SubgraphName::Referenced(1);

/// The WHILE, which it is asked for as a whole.
const LOOP: (SubgraphName, usize) = (SubgraphName::Main, 0);

/// The sum of floats and NEG behind it, in one.
fn both(remaining: &Remaining<'_>) -> Option<Vec<u8>> {
    let is_sum_of_floats = remaining.subgraph == BODY && remaining.first == 0;
    let (dimensions, x) = is_sum_of_floats.then(|| remaining.value(0)).flatten()?;
    assert_eq!(dimensions, [2]);
    Some(bytes(&floats(x).iter().map(|it| -2.0 * it).collect::<Vec<_>>()))
}

fn computed(operations: usize, dimensions: &[u32], bytes: Vec<u8>) -> Option<Computed> {
    let output =
        ComputedOutput { operand: negative(&model()), dimensions: dimensions.into(), bytes };
    Some(Computed { operations, outputs: vec![output] })
}

#[test]
fn an_accelerator_that_leaves_all_is_asked_for_each_operation_and_changes_nothing() {
    let run = Run::new(|_, _| Ok(None));
    assert_eq!(run.rounds(3, &Unobserved).unwrap(), [-8.0, -16.0]);
    let condition = (SubgraphName::Referenced(0), 0);
    let round = [condition, (BODY, 0), (BODY, 1), (BODY, 2)];
    assert_eq!(run.asked(), [&[LOOP][..], &round, &round, &round, &[condition]].concat());
}

#[test]
fn what_it_computes_is_what_later_operations_and_rounds_read() {
    let run = Run::new(|remaining, _| Ok(both(remaining).and_then(|it| computed(2, &[2], it))));
    assert_eq!(run.rounds(3, &Unobserved).unwrap(), [-8.0, -16.0]);
    let condition = (SubgraphName::Referenced(0), 0);
    // It is not asked for the operation that it computed with another.
    let round = [condition, (BODY, 0), (BODY, 2)];
    assert_eq!(run.asked(), [&[LOOP][..], &round, &round, &round, &[condition]].concat());
}

#[test]
fn a_loop_that_it_computes_is_not_run_by_the_interpreter() {
    let run = Run::new(|remaining, _| {
        assert_eq!((remaining.subgraph, remaining.first), LOOP);
        let operand = model().main.outputs[0];
        let (dimensions, bytes) = (vec![2], bytes(&[5.0, 6.0]));
        let outputs = vec![ComputedOutput { operand, dimensions, bytes }];
        Ok(Some(Computed { operations: 1, outputs }))
    });
    assert_eq!(run.rounds(3, &Unobserved).unwrap(), [5.0, 6.0]);
    assert_eq!(run.asked(), [LOOP]);
}

/// `condition ? x + x : -x`: of floats, of which the branches have one operation each.
fn choice() -> Model {
    let mut builder = ModelBuilder::new();
    let mut branches = Vec::new();
    for operation in [OperationType::Add, OperationType::Neg] {
        let mut graph = SubgraphBuilder::new();
        let x = graph.input("x", vector());
        let none = graph.scalar_i32(0);
        let inputs = if operation == OperationType::Add { vec![x, x, none] } else { vec![x] };
        let result = graph.operation(operation, inputs, vector());
        graph.output(result);
        branches.push(builder.reference(graph));
    }
    let mut main = SubgraphBuilder::new();
    let condition = main.input("condition", OperandSpec::tensor_bool8([1]));
    let x = main.input("x", vector());
    let (then, otherwise) = (main.subgraph(branches[0]), main.subgraph(branches[1]));
    let result = main.operation(OperationType::If, [condition, then, otherwise, x], vector());
    main.output(result);
    builder.build(main).unwrap()
}

#[test]
fn an_if_that_it_leaves_runs_one_branch_and_one_that_it_computes_runs_none() {
    let leaves: Answer = |_, _| Ok(None);
    let computes: Answer = |_, _| {
        let (operand, dimensions) = (choice().main.outputs[0], vec![2]);
        let outputs = vec![ComputedOutput { operand, dimensions, bytes: bytes(&[5.0, 6.0]) }];
        Ok(Some(Computed { operations: 1, outputs }))
    };
    let branch = |index| (SubgraphName::Referenced(index), 0);
    let whole = (SubgraphName::Main, 0);
    let cases = [
        (leaves, 1, [2.0, 4.0], vec![whole, branch(0)]),
        (leaves, 0, [-1.0, -2.0], vec![whole, branch(1)]),
        (computes, 1, [5.0, 6.0], vec![whole]),
    ];
    for (answer, condition, expected, asked) in cases {
        let run = Run::of(&choice(), answer, 1 << 20);
        let mut request = RequestBuilder::new();
        request.input(&[condition]).input(&bytes(&[1.0, 2.0])).output(8);
        let request = request.build().unwrap();
        run.prepared.execute(&request, &ExecutionOptions::default()).unwrap();
        let found = RequestBuilder::read_output(&request, 0).unwrap();
        assert_eq!((floats(&found), run.asked()), (expected.to_vec(), asked));
    }
}

#[test]
fn it_sees_inputs_and_results_and_nothing_else() {
    let run = Run::new(|remaining, _| {
        if remaining.subgraph == BODY {
            let model = model();
            let operations = &model.referenced[1].operations;
            let doubled = operations[0].outputs[0];
            assert_eq!(remaining.value(doubled).is_some(), remaining.first == 1);
            // A constant, and what is no operand.
            assert!(remaining.value(operations[2].inputs[1]).is_none());
            assert!(remaining.value(u32::MAX).is_none());
            assert_eq!(remaining.value(2).unwrap(), (&[1][..], &1_i32.to_le_bytes()[..]));
        }
        Ok(None)
    });
    assert_eq!(run.rounds(1, &Unobserved).unwrap(), [-2.0, -4.0]);
    assert_eq!(run.asked().len(), 6);
}

fn failure(result: Result<Vec<f32>, ExecutionError>) -> (ErrorStatus, String) {
    let failed = result.expect_err("a failure");
    (failed.error.status(), failed.error.to_string())
}

#[test]
fn a_value_of_a_shape_that_the_model_excludes_ends_the_execution() {
    let run = Run::new(|remaining, _| {
        Ok(both(remaining).and_then(|it| computed(2, &[1], it[..4].to_vec())))
    });
    let (status, text) = failure(run.rounds(1, &Unobserved));
    assert_eq!(status, ErrorStatus::GeneralFailure);
    assert!(text.contains("operation 1 (NEG) of referenced subgraph 1"), "{text}");
    assert!(text.contains("[1]") && text.contains("[2]"), "{text}");
    // The condition alone is as good as before.
    assert_eq!(run.rounds(0, &Unobserved).unwrap(), [1.0, 2.0]);
}

#[test]
fn what_is_missing_of_its_results_is_noticed_where_it_is_read() {
    let run = Run::new(|remaining, _| {
        Ok(both(remaining).map(|_| Computed { operations: 2, outputs: Vec::new() }))
    });
    let (status, text) = failure(run.rounds(1, &Unobserved));
    assert_eq!(status, ErrorStatus::GeneralFailure);
    assert!(text.contains("left out"), "{text}");
}

#[test]
fn its_error_ends_the_execution() {
    let run = Run::new(|remaining, _| match both(remaining) {
        Some(_) => {
            Err(nnhal_hal::Error::new(ErrorStatus::ResourceExhaustedTransient, "no room today")
                .into())
        }
        None => Ok(None),
    });
    let (status, text) = failure(run.rounds(1, &Unobserved));
    assert_eq!(status, ErrorStatus::ResourceExhaustedTransient);
    assert!(text.contains("no room today"), "{text}");
}

#[test]
fn its_values_count_for_the_models_memory_and_are_given_back() {
    // Also the sum, and the input anew: more than the input takes that is not wanted any more.
    let answer: Answer = |remaining, _| {
        let Some(bytes) = both(remaining) else { return Ok(None) };
        let sum = model().referenced[1].operations[0].outputs[0];
        let outputs = [0, sum, negative(&model())].map(|operand| {
            let (dimensions, bytes) = (vec![2], bytes.clone());
            ComputedOutput { operand, dimensions, bytes }
        });
        Ok(Some(Computed { operations: 2, outputs: outputs.into() }))
    };
    Run::with_memory_limit(answer, 48).rounds(1000, &Unobserved).unwrap();
    // 8 bytes of other inputs and these 24.
    let (status, text) = failure(Run::with_memory_limit(answer, 31).rounds(1, &Unobserved));
    assert_eq!(status, ErrorStatus::ResourceExhaustedPersistent);
    assert!(text.contains("operation 1 (NEG) of referenced subgraph 1"), "{text}");
}

/// The operation's index, the rounds around it, the elements of its output.
type Notification = (usize, Vec<Round>, Vec<f32>);

/// What it is notified of.
#[derive(Default)]
struct Record(Mutex<Vec<Notification>>);

impl Observer for Record {
    fn output(&self, output: &ObservedOutput<'_>) {
        if output.operand_type == OperandType::TensorFloat32 {
            let seen = (output.place.index, output.rounds.to_vec(), floats(output.bytes));
            self.0.lock().unwrap().push(seen);
        }
    }
}

#[test]
fn what_it_reports_is_passed_on_with_the_rounds_that_led_there() {
    let run = Run::new(|remaining, context| {
        let Some(result) = both(remaining) else { return Ok(None) };
        let place =
            |index, operation_type| OperationPlace { subgraph: BODY, index, operation_type };
        context.observer.expect("one").output(&ObservedOutput {
            place: place(1, OperationType::Neg),
            output: 0,
            operand: negative(&model()),
            rounds: &[],
            operand_type: OperandType::TensorFloat32,
            dimensions: &[2],
            bytes: &result,
        });
        Ok(computed(2, &[2], result))
    });
    let record = Record::default();
    run.rounds(2, &record).unwrap();
    let place = OperationPlace {
        subgraph: SubgraphName::Main,
        index: 0,
        operation_type: OperationType::While,
    };
    let in_round = |round| vec![Round { place, subgraph_input: 1, round }];
    let expected = [
        (1, in_round(0), vec![-2.0, -4.0]),
        (1, in_round(1), vec![4.0, 8.0]),
        (0, vec![], vec![4.0, 8.0]),
    ];
    assert_eq!(*record.0.lock().unwrap(), expected);
}
