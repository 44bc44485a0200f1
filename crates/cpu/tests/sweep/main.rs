//! Operations with arguments by chance, small and large, on both engines: deadlines are kept, and the
//! fast engine is never much slower than the reference. And with tensors of few and very long rows on the
//! fast engine: deadlines are kept inside of a row.
//!
//! `NNHAL_TEST_CASES` says how often each operation is tried, `NNHAL_TEST_OPERATION` names some, with commas between,
//! `NNHAL_TEST_SEED` begins elsewhere, `NNHAL_TEST_BYTES` is how many bytes tensors with long rows have
//! at most: 1.5 GB are taken for 400,000,000.

#[path = "../../../ops/tests/arguments/mod.rs"]
mod arguments;
#[path = "../../../reference/tests/calls/mod.rs"]
mod calls;
mod long;

use arguments::{Invocation, Made, Source, signatures};
use nnhal_cpu::Settings;
use nnhal_hal::extension::ExtensionNameAndPrefix;
use nnhal_hal::{
    DataLocation, Deadline, Device, ErrorStatus, ExecutionOptions, HalVersion, Model, Operand,
    OperandLifeTime, OperandType, Operation, PrepareOptions, PreparedModel, Request,
    RequestBuilder,
};
use nnhal_ops::Signature;
use nnhal_ops::extension;
use rustix::time::{ClockId, clock_gettime};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Most elements of a tensor, and of an operation's inputs together.
const MOST_ELEMENTS: u64 = 1 << 20;

/// Bytes of room for each output.
const ROOM: usize = 8 << 20;

/// How much later than its deadline a call may return, in seconds: for short deadlines, and as a part
/// of long ones.
const LATENESS: f64 = 0.05;
const PART: f64 = 0.1;

/// The fast engine may be this many times as slow as the reference, and this many seconds more.
const SLOWER: f64 = 3.0;
const FLOOR: f64 = 0.01;

/// Processor time of this thread, in seconds: the engines compute on it, and others may keep the
/// machine busy.
fn now() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Numbers without a pattern.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.next() % from.len() as u64).unwrap()]
    }
}

/// Makes the length that most axes have in common another one, and the values as long.
fn scale(invocation: &mut Invocation, from: u32, to: u32) -> bool {
    let mut sum = 0;
    for made in &mut invocation.inputs {
        let Some(lengths) = made.shape.to_known().filter(|_| !made.is_omitted) else { continue };
        let bytes = made.operand.operand_type.element_size().unwrap_or(1) as usize;
        let lengths: Vec<u32> =
            lengths.iter().map(|length| if *length == from { to } else { *length }).collect();
        let elements =
            lengths.iter().try_fold(1_u64, |product, it| product.checked_mul(u64::from(*it)));
        let Some(elements) = elements.filter(|elements| *elements <= MOST_ELEMENTS) else {
            return false;
        };
        sum += elements;
        made.shape = nnhal_ops::Shape::known(lengths);
        if !made.operand.operand_type.is_scalar()
            && let Some(value) = &mut made.value
            && !value.is_empty()
        {
            let count = usize::try_from(elements).unwrap() * bytes;
            *value = value.iter().copied().cycle().take(count).collect();
        }
    }
    sum <= MOST_ELEMENTS
}

/// A call of the operation whose axes are longer than those of the call that it was made of: one of blind
/// arguments, or one that is valid.
fn drawn(random: &mut Random, signature: &'static Signature) -> Option<Invocation> {
    let longer = [5, 8, 12, 16, 24, 31, 40, 64, 200, 1000];
    if random.next().is_multiple_of(2) {
        let mut invocation = long::sampled(signature, random)?;
        let shapes = invocation.inputs.iter().filter_map(|made| made.shape.to_known());
        let lengths: Vec<u32> = shapes.flatten().filter(|length| *length > 1).collect();
        // Mostly as it is: what else is as long as an axis is not known.
        if !lengths.is_empty() && random.next().is_multiple_of(3) {
            let (from, to) = (random.pick(&lengths), random.pick(&longer));
            scale(&mut invocation, from, to).then_some(())?;
        }
        return Some(invocation);
    }
    let mut bytes: Vec<u8> = (0..400).map(|_| random.next().to_le_bytes()[0]).collect();
    let length = [1, 1, 2, 2, 3, 4][usize::from(bytes[1]) % 6];
    // Mostly tame.
    bytes[2] |= 64;
    let mut invocation = Invocation::of(signature, &mut Source::new(&bytes));
    let to = if random.next().is_multiple_of(11) { length } else { random.pick(&longer) };
    (length > 1 && scale(&mut invocation, length, to)).then_some(invocation)
}

/// Numbers of operations that are products of what a model says.
const EXTREMES: [i32; 10] = [1, 2, 3, 7, 64, 1000, 65_536, 1 << 30, i32::MAX, 2_094_594_559];

/// Makes some numbers extreme.
fn exaggerate(random: &mut Random, invocation: &mut Invocation) {
    if random.next().is_multiple_of(2) {
        for made in &mut invocation.inputs {
            let is_number = made.operand.operand_type == OperandType::Int32;
            if is_number && random.next().is_multiple_of(3) {
                made.value = Some(random.pick(&EXTREMES).to_le_bytes().to_vec());
            }
        }
    }
}

/// A model of one operation, and a request, if all inputs have values.
fn model_of(
    random: &mut Random,
    invocation: &Invocation,
    may_be_fed: impl Fn(&Made) -> bool,
    room: impl Fn(usize) -> usize,
) -> Option<(Model, Request)> {
    if !invocation.is_known() {
        return None;
    }
    let mut model = Model::default();
    let (name, prefix) = (extension::NAME.to_owned(), extension::PREFIX);
    model.extension_name_to_prefix.push(ExtensionNameAndPrefix { name, prefix });
    let mut values: Vec<u8> = Vec::new();
    let mut request = RequestBuilder::new();
    let mut step = Operation {
        operation_type: invocation.signature.operation,
        inputs: Vec::new(),
        outputs: Vec::new(),
    };
    let declared =
        |made: &Made| Operand { dimensions: made.shape.to_model(), ..made.operand.clone() };
    // All constant, or as it comes.
    let is_folded = random.next().is_multiple_of(8);
    for made in &invocation.inputs {
        let mut operand = Operand { number_of_consumers: 1, ..declared(made) };
        let index = u32::try_from(model.main.operands.len()).ok()?;
        let is_fed = !is_folded
            && !operand.operand_type.is_scalar()
            && may_be_fed(made)
            && (step.inputs.is_empty() || random.next().is_multiple_of(3));
        match &made.value {
            Some(bytes) if is_fed && !made.is_omitted => {
                operand.lifetime = OperandLifeTime::SubgraphInput;
                model.main.inputs.push(index);
                request.input_shaped(bytes, &operand.dimensions);
            }
            Some(bytes) if !made.is_omitted => {
                operand.lifetime = OperandLifeTime::ConstantCopy;
                let (offset, length) =
                    (values.len().try_into().ok()?, bytes.len().try_into().ok()?);
                operand.location = DataLocation { pool_index: 0, offset, length };
                values.extend_from_slice(bytes);
            }
            _ => operand.lifetime = OperandLifeTime::NoValue,
        }
        step.inputs.push(index);
        model.main.operands.push(operand);
    }
    for (output, made) in invocation.outputs.iter().enumerate() {
        let index = u32::try_from(model.main.operands.len()).ok()?;
        step.outputs.push(index);
        model.main.outputs.push(index);
        let lifetime = OperandLifeTime::SubgraphOutput;
        model.main.operands.push(Operand { number_of_consumers: 0, lifetime, ..declared(made) });
        request.output(room(output));
    }
    model.main.operations.push(step);
    model.operand_values = values.into();
    Some((model, request.build().ok()?))
}

/// How it went on a device.
#[derive(Debug, Clone, Copy)]
struct Took {
    prepare: f64,
    execute: f64,
    /// Executing once more. The first time takes memory that the next ones use again, and how long a machine
    /// needs to hand out a page says nothing of an engine.
    again: f64,
    /// The status it ended with, `None` for success.
    status: Option<ErrorStatus>,
}

impl Took {
    fn lateness(self, deadline: f64) -> f64 {
        self.prepare.max(self.execute).max(self.again) - deadline
    }
}

fn after(seconds: Option<f64>) -> Option<Deadline> {
    seconds.map(|seconds| Deadline::after(Duration::from_secs_f64(seconds)))
}

/// A prepared model, or why there is none; and how long it took.
fn prepare(
    device: &dyn Device,
    model: &Model,
    deadline: Option<f64>,
) -> (Result<Arc<dyn PreparedModel>, ErrorStatus>, f64) {
    let options = PrepareOptions { deadline: after(deadline), ..PrepareOptions::default() };
    let started = now();
    let prepared = device.prepare_model(model, HalVersion::LATEST, options);
    let took = now() - started;
    let prepared = prepared.map_err(|error| {
        assert!(!error.to_string().contains("panicked"), "{error}: {:?}", model.main);
        error.status()
    });
    (prepared, took)
}

/// The status, `None` for success, and how long it took.
fn execute(
    prepared: &dyn PreparedModel,
    request: &Request,
    deadline: Option<f64>,
) -> (Option<ErrorStatus>, f64) {
    let options = ExecutionOptions { deadline: after(deadline), ..ExecutionOptions::default() };
    let started = now();
    let executed = prepared.execute(request, &options);
    let took = now() - started;
    let status = executed.err().map(|failed| {
        assert!(!failed.error.to_string().contains("panicked"), "{}", failed.error);
        failed.error.status()
    });
    (status, took)
}

fn run(device: &dyn Device, model: &Model, request: &Request, deadline: f64) -> Took {
    let (prepared, took) = prepare(device, model, Some(deadline));
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(status) => {
            return Took { prepare: took, execute: 0.0, again: 0.0, status: Some(status) };
        }
    };
    let (status, first) = execute(&*prepared, request, Some(deadline));
    let again = match status {
        None => execute(&*prepared, request, Some(deadline)).1,
        Some(_) => first,
    };
    Took { prepare: took, execute: first, again, status }
}

fn is_late(status: Option<ErrorStatus>) -> bool {
    matches!(
        status,
        Some(ErrorStatus::MissedDeadlineTransient | ErrorStatus::MissedDeadlinePersistent)
    )
}

/// What is wrong with how it went.
fn complaint(deadline: f64, reference: Took, fast: Took) -> Option<String> {
    let allowed = LATENESS.max(PART * deadline);
    for (name, took) in [("reference", reference), ("fast", fast)] {
        if took.lateness(deadline) > allowed {
            return Some(format!("{name} is late"));
        }
    }
    let [slow, quick] = [fast, reference].map(|took| took.prepare + took.execute.min(took.again));
    let is_slow = slow > SLOWER * quick + FLOOR && !is_late(reference.status);
    is_slow.then(|| "the fast engine is slow".to_owned())
}

/// A number that the environment sets.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|it| it.parse().ok())
}

/// Held by the test that runs: the other one would take its processors and its memory.
static MACHINE: Mutex<()> = Mutex::new(());

/// The operands of a model's one operation, for people.
fn described(model: &Model) -> String {
    let operands = model.main.operands.iter().map(|it| {
        let start = it.location.offset as usize;
        let at = start..start + it.location.length as usize;
        let value = match it.lifetime {
            OperandLifeTime::ConstantCopy if at.len() <= 16 => {
                format!(" = {:?}", &model.operand_values[at])
            }
            lifetime => format!(" {lifetime:?}"),
        };
        format!("{}{:?}{value}", it.operand_type, it.dimensions)
    });
    operands.collect::<Vec<_>>().join(", ")
}

#[test]
fn deadlines_are_kept_and_the_fast_engine_is_not_slow() {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let cases = number("NNHAL_TEST_CASES").unwrap_or(2);
    let only = std::env::var("NNHAL_TEST_OPERATION").ok();
    let mut random = Random(number("NNHAL_TEST_SEED").unwrap_or(0x9E37_79B9_7F4A_7C15).max(1));
    let fast = nnhal_cpu::device(Settings { memory_limit: 1 << 30, ..Settings::default() });
    let reference: Arc<dyn Device> = Arc::new(
        nnhal_driver::DriverDevice::new(nnhal_reference::ReferenceEngine::with_memory_limit(
            1 << 30,
        ))
        .without_cache(),
    );
    let (mut complaints, mut without) = (Vec::new(), Vec::new());
    let (mut computed, mut tried) = (0, 0);
    for signature in signatures() {
        let name = extension::operation_name(signature.operation);
        if only.as_ref().is_some_and(|only| only.split(',').all(|only| only != name)) {
            continue;
        }
        let mut done = 0;
        // Most arguments do not go together.
        for _ in 0..cases * 600 {
            if done == cases {
                break;
            }
            let Some(mut invocation) = drawn(&mut random, signature) else { continue };
            exaggerate(&mut random, &mut invocation);
            let made = model_of(&mut random, &invocation, |_| true, |_| ROOM);
            let Some((model, request)) = made else { continue };
            if nnhal_ops::validate(&model, HalVersion::LATEST).is_err() {
                continue;
            }
            (done, tried) = (done + 1, tried + 1);
            let deadline = random.pick(&[0.05, 0.05, 0.1, 0.2, 0.5]);
            let attempt = || {
                let expected = run(&*reference, &model, &request, deadline);
                (expected, run(&*fast, &model, &request, deadline))
            };
            let (expected, found) = attempt();
            computed += u64::from(expected.status.is_none());
            let Some(mut wrong) = complaint(deadline, expected, found) else { continue };
            // Whatever else kept the machine busy does not do so three times.
            let mut took = (expected, found);
            let is_confirmed = (0..2).all(|_| {
                took = attempt();
                let again = complaint(deadline, took.0, took.1);
                again.inspect(|again| wrong.clone_from(again)).is_some()
            });
            if is_confirmed {
                complaints.push(format!(
                    "{name}: {wrong} with a deadline of {deadline}: {took:?}\n    {}",
                    described(&model)
                ));
                eprintln!("{}", complaints.last().unwrap());
            }
        }
        if done == 0 {
            without.push(name);
        }
    }
    assert!(without.is_empty(), "no arguments of {} go together", without.join(", "));
    assert!(complaints.is_empty(), "{} of {tried}:\n{}", complaints.len(), complaints.join("\n"));
    // Otherwise the arguments have become so wild that nothing is tested.
    assert!(only.is_some() || computed > tried / 4, "{computed} of {tried} were computed");
}
