//! Branches and loops (contract: sections 8 and 16).

use super::models::{bytes, is_newest, is_supported, memory, prepare};
use super::{Check, Run, Verdict, Violation, demand};
use nnhal_hal::ErrorStatus::{MissedDeadlinePersistent, MissedDeadlineTransient};
use nnhal_hal::fence::FenceState;
use nnhal_hal::{
    Device, ExecutionOptions, Model, ModelBuilder, OperandSpec, OperationType, PrepareOptions,
    PreparedModel, RequestBuilder, SubgraphBuilder, Support,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const CHECKS: &[Check] = &[
    Check {
        ids: &["CF-9", "CF-7"],
        name: "IF runs the branch that its byte says, with constants of the whole model",
        run: Run::Device(branches),
    },
    Check {
        ids: &["CF-9"],
        name: "WHILE counts, carries its state and leaves the rest alone",
        run: Run::Device(rounds),
    },
    Check {
        ids: &["CF-7"],
        name: "what is wrong in a subgraph is wrong in the model",
        run: Run::Device(wrong_subgraph),
    },
    Check {
        ids: &["CF-5"],
        name: "subgraphs that share others are looked at once",
        run: Run::Device(shared_subgraphs),
    },
    Check {
        ids: &["CF-4", "MODEL-6"],
        name: "unknown sizes within the branches of an IF are no ground to refuse it",
        run: Run::Device(open_branches),
    },
    Check {
        ids: &["CF-4"],
        name: "an IF whose results have unknown sizes is refused as a whole, or computed",
        run: Run::Device(open_results),
    },
    Check {
        ids: &["DEV-SUP-4"],
        name: "IF and WHILE are supported only with all that they refer to",
        run: Run::Device(inner_support),
    },
    Check {
        ids: &["QOS-9"],
        name: "a loop that ends is never too late",
        run: Run::Device(ends_in_time),
    },
    Check {
        ids: &["FENCE-15", "QOS-7"],
        name: "a loop that takes too long leaves its fence usable",
        run: Run::Device(fence_of_a_loop),
    },
];

fn floats() -> OperandSpec {
    OperandSpec::tensor_float32([2])
}

fn truth() -> OperandSpec {
    OperandSpec::tensor_bool8([1])
}

fn ours(model: Result<Model, nnhal_hal::builder::BuildError>) -> Model {
    model.unwrap_or_else(|error| unreachable!("a model of ours: {error}"))
}

/// `y = c ? x + 10 : x + 20`: the 10 are among the model's values, and the 20 too unless they are
/// given in memory.
pub(super) fn choice(twenty: Option<nnhal_hal::Memory>) -> Model {
    let mut builder = ModelBuilder::new();
    let mut then = SubgraphBuilder::new();
    let x = then.input("x", floats());
    let ten = then.constant(floats(), &[10.0_f32; 2]);
    let none = then.scalar_i32(0);
    let y = then.operation(OperationType::Add, [x, ten, none], floats());
    then.output(y);
    let mut otherwise = SubgraphBuilder::new();
    let x = otherwise.input("x", floats());
    let twenty = match twenty {
        Some(memory) => {
            let pool = builder.pool(memory);
            otherwise.constant_in_pool(floats(), pool, 0, 8)
        }
        None => otherwise.constant(floats(), &[20.0_f32; 2]),
    };
    let none = otherwise.scalar_i32(0);
    let y = otherwise.operation(OperationType::Add, [x, twenty, none], floats());
    otherwise.output(y);
    let (then, otherwise) = (builder.reference(then), builder.reference(otherwise));
    let mut main = SubgraphBuilder::new();
    let (c, x) = (main.input("c", truth()), main.input("x", floats()));
    let (then, otherwise) = (main.subgraph(then), main.subgraph(otherwise));
    let y = main.operation(OperationType::If, [c, then, otherwise, x], floats());
    main.output(y);
    ours(builder.build(main))
}

/// `while i < limit { sum += limit; i += 1 }`: the sum comes out, i is state, limit never changes.
pub(super) fn accumulation() -> Model {
    let number = || OperandSpec::tensor_int32([1]);
    let mut condition = SubgraphBuilder::new();
    let [_, i, limit] = ["sum", "i", "limit"].map(|name| condition.input(name, number()));
    let less = condition.operation(OperationType::Less, [i, limit], truth());
    condition.output(less);
    let mut body = SubgraphBuilder::new();
    let [sum, i, limit] = ["sum", "i", "limit"].map(|name| body.input(name, number()));
    let (one, none) = (body.constant(number(), &[1_i32]), body.scalar_i32(0));
    let more = body.operation(OperationType::Add, [sum, limit, none], number());
    let next = body.operation(OperationType::Add, [i, one, none], number());
    body.output(more);
    body.output(next);
    let mut builder = ModelBuilder::new();
    let (condition, body) = (builder.reference(condition), builder.reference(body));
    let mut main = SubgraphBuilder::new();
    let [sum, i, limit] = ["sum", "i", "limit"].map(|name| main.input(name, number()));
    let (condition, body) = (main.subgraph(condition), main.subgraph(body));
    let inputs = [condition, body, sum, i, limit];
    let result = main.operation(OperationType::While, inputs, number());
    main.output(result);
    ours(builder.build(main))
}

/// An IF whose branches are the same, and so on, this deep: as many paths as 2 to that power.
fn diamonds(depth: usize) -> Model {
    let mut builder = ModelBuilder::new();
    let mut last = SubgraphBuilder::new();
    let x = last.input("x", floats());
    let y = last.operation(OperationType::Relu, [x], floats());
    last.output(y);
    let mut inner = builder.reference(last);
    for _ in 1..depth {
        let mut branch = SubgraphBuilder::new();
        let x = branch.input("x", floats());
        let c = branch.constant(truth(), &[true]);
        let same = [branch.subgraph(inner), branch.subgraph(inner)];
        let y = branch.operation(OperationType::If, [c, same[0], same[1], x], floats());
        branch.output(y);
        inner = builder.reference(branch);
    }
    let mut main = SubgraphBuilder::new();
    let (c, x) = (main.input("c", truth()), main.input("x", floats()));
    let same = [main.subgraph(inner), main.subgraph(inner)];
    let y = main.operation(OperationType::If, [c, same[0], same[1], x], floats());
    main.output(y);
    ours(builder.build(main))
}

fn shared_subgraphs(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if !is_newest(&**device) {
        return Ok(not_offered());
    }
    // The deeper one has 2^30 paths, and three times as many subgraphs.
    let [shallow, deep] = [10, 30].map(|depth| {
        let begin = Instant::now();
        // Whoever cannot run it may say so, soon.
        drop(device.supported_operations(&diamonds(depth), device.version()));
        begin.elapsed()
    });
    let right = deep < 100 * shallow + Duration::from_secs(1);
    demand!(right, "{shallow:?} for 10 subgraphs, {deep:?} for 30");
    Ok(Verdict::Kept)
}

fn not_offered() -> Verdict {
    Verdict::NotOffered("IF or WHILE".into())
}

fn branches(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let in_memory = choice(Some(memory(&bytes(&[20.0; 2]))?));
    if !is_newest(&**device) || !is_supported(&**device, &in_memory)? {
        return Ok(not_offered());
    }
    for model in [choice(None), in_memory] {
        let prepared = prepare(&**device, &model)?;
        for (byte, expected) in [(0, 20.0), (1, 10.0), (2, 10.0), (0x80, 10.0), (0xFF, 10.0)] {
            let mut request = RequestBuilder::new();
            request.input(&[byte]).input(&bytes(&[1.0, 2.0])).output(8);
            let request = request.build()?;
            super::models::execute(&*prepared, &request)?;
            let found = RequestBuilder::read_output(&request, 0)?;
            let expected = bytes(&[1.0 + expected, 2.0 + expected]);
            demand!(found == expected, "a condition of {byte} gives {found:?}, not {expected:?}");
        }
    }
    Ok(Verdict::Kept)
}

/// `y = c ? RELU(x) + 10 : CONCATENATION(x, x)`: what is between and what comes out are declared with these dimensions.
fn open_choice(between: &[u32], result: &[u32]) -> Model {
    let spec = |dimensions: &[u32]| OperandSpec::tensor_float32(dimensions);
    let mut builder = ModelBuilder::new();
    let mut then = SubgraphBuilder::new();
    let x = then.input("x", floats());
    let positive = then.operation(OperationType::Relu, [x], spec(between));
    let (ten, none) = (then.constant(floats(), &[10.0_f32; 2]), then.scalar_i32(0));
    let y = then.operation(OperationType::Add, [positive, ten, none], spec(result));
    then.output(y);
    let mut otherwise = SubgraphBuilder::new();
    let x = otherwise.input("x", floats());
    // Of known results both have the same length.
    let y = if result == [2] {
        otherwise.operation(OperationType::Relu, [x], spec(result))
    } else {
        let axis = otherwise.scalar_i32(0);
        let positive = otherwise.operation(OperationType::Relu, [x], spec(between));
        otherwise.operation(OperationType::Concatenation, [positive, x, axis], spec(result))
    };
    otherwise.output(y);
    let (then, otherwise) = (builder.reference(then), builder.reference(otherwise));
    let mut main = SubgraphBuilder::new();
    let (c, x) = (main.input("c", truth()), main.input("x", floats()));
    let (then, otherwise) = (main.subgraph(then), main.subgraph(otherwise));
    let y = main.operation(OperationType::If, [c, then, otherwise, x], spec(result));
    main.output(y);
    ours(builder.build(main))
}

/// Runs both branches of [`open_choice`], where the second has a result of this.
fn expect_choices(
    what: &str,
    prepared: &dyn PreparedModel,
    otherwise: &[f32],
) -> Result<(), Violation> {
    for (byte, expected) in [(1, &[11.0, 12.0][..]), (0, otherwise)] {
        let mut request = RequestBuilder::new();
        // Of a known length, or as long as the longer one.
        request.input(&[byte]).input(&bytes(&[1.0, 2.0])).output(4 * otherwise.len());
        let request = request.build()?;
        let execution = super::models::execute(prepared, &request)?;
        let length = u32::try_from(expected.len()).unwrap_or(u32::MAX);
        let found = RequestBuilder::read_output(&request, 0)?;
        let right = found[..expected.len() * 4] == bytes(expected)[..];
        demand!(right, "{what}, a condition of {byte}: {found:?}, expected {expected:?}");
        // Where the request leaves nothing open, there may be none (contract: SHAPE-2).
        let shapes = execution.output_shapes;
        let right = shapes.first().is_none_or(|shape| shape.dimensions == [length]);
        demand!(right, "{what}, a condition of {byte}: {shapes:?}, expected [{length}]");
        demand!(
            otherwise.len() == 2 || shapes.len() == 1,
            "{what}, a condition of {byte}: there is no shape"
        );
    }
    Ok(())
}

/// Only what an IF passes on has a size that the interface wants to be known.
fn open_branches(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if !is_newest(&**device) {
        return Ok(not_offered());
    }
    let mut is_offered = false;
    for between in [&[0][..], &[]] {
        let model = open_choice(between, &[2]);
        let what = format!("{between:?} within a branch");
        let refused = |error| Violation(format!("{what} is refused: {error}"));
        let answers = device.supported_operations(&model, device.version()).map_err(refused)?;
        if answers.iter().all(Support::is_yes) {
            is_offered = true;
            expect_choices(&what, &*prepare(&**device, &model)?, &[1.0, 2.0])?;
        }
    }
    Ok(if is_offered { Verdict::Kept } else { not_offered() })
}

/// Either answer is right (decision 40), but there is one only.
fn open_results(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if !is_newest(&**device) {
        return Ok(not_offered());
    }
    for result in [&[0][..], &[]] {
        let model = open_choice(&[2], result);
        let what = format!("an IF with a result of {result:?}");
        let asked = device.supported_operations(&model, device.version());
        let prepared = device.prepare_model(&model, device.version(), PrepareOptions::default());
        let answers = match asked {
            Err(error) => {
                let invalid = [nnhal_hal::ErrorStatus::InvalidArgument];
                let what = format!("{what} is refused ({error}), and its preparation");
                super::demand_refusal(&what, Err::<(), _>(error), &invalid)?;
                super::demand_refusal(&what, prepared, &invalid)?;
                continue;
            }
            Ok(answers) => answers,
        };
        match prepared {
            Ok(prepared) => expect_choices(&what, &*prepared, &[1.0, 2.0, 1.0, 2.0])?,
            Err(error) if answers.iter().all(Support::is_yes) => {
                return Err(Violation(format!("{what} is supported, but not prepared: {error}")));
            }
            Err(_) => {}
        }
    }
    Ok(Verdict::Kept)
}

/// Runs [`accumulation`].
fn accumulate(
    prepared: &dyn PreparedModel,
    [sum, i, limit]: [i32; 3],
    options: &ExecutionOptions,
) -> Result<(), Violation> {
    let mut request = RequestBuilder::new();
    for number in [sum, i, limit] {
        request.input(&number.to_le_bytes());
    }
    request.output(4);
    let request = request.build()?;
    prepared.execute(&request, options)?;
    let expected = sum + limit * (limit - i).max(0);
    let found = RequestBuilder::read_output(&request, 0)?;
    let what = format!("{sum} and {limit} from round {i} on");
    demand!(found == expected.to_le_bytes(), "{what}: {found:?}, expected {expected}");
    for (index, number) in [sum, i, limit].into_iter().enumerate() {
        let at = request.inputs[index].location.offset as usize;
        let kept = super::models::pool_bytes(&request, 0)?[at..][..4] == number.to_le_bytes();
        demand!(kept, "{what}: input {index} was written");
    }
    Ok(())
}

fn rounds(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if !is_newest(&**device) || !is_supported(&**device, &accumulation())? {
        return Ok(not_offered());
    }
    let prepared = prepare(&**device, &accumulation())?;
    for arguments in
        [[7, 5, 5], [7, 0, 0], [-3, 9, 2], [7, 4, 5], [7, 0, 3], [1, -2, 4], [0, 0, 50]]
    {
        accumulate(&*prepared, arguments, &ExecutionOptions::default())?;
    }
    Ok(Verdict::Kept)
}

fn wrong_subgraph(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if !is_newest(&**device) {
        return Ok(not_offered());
    }
    type Spoil = fn(&mut nnhal_hal::Subgraph);
    let ways: [(&str, Spoil); 4] = [
        ("a scale", |it| it.operands[0].scale = 1.0),
        ("a consumer more", |it| it.operands[0].number_of_consumers += 1),
        ("an index behind the end", |it| it.operations[0].inputs[0] = 99),
        ("no writer", |it| it.operations[0].outputs.clear()),
    ];
    for (what, spoil) in ways {
        for index in 0..2 {
            let mut model = choice(None);
            spoil(&mut model.referenced[index]);
            let what = format!("{what} in subgraph {index}");
            let invalid = [nnhal_hal::ErrorStatus::InvalidArgument];
            let asked = device.supported_operations(&model, device.version());
            super::demand_refusal(&what, asked, &invalid)?;
            let options = PrepareOptions::default();
            let prepared = device.prepare_model(&model, device.version(), options);
            super::demand_refusal(&what, prepared, &invalid)?;
        }
    }
    Ok(Verdict::Kept)
}

fn inner_support(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if !is_newest(&**device) {
        return Ok(not_offered());
    }
    let foreign = super::models::foreign();
    if is_supported(&**device, &foreign)? {
        return Ok(Verdict::NotOffered("an operation that it does not support".into()));
    }
    for index in 0..2 {
        let mut branch = choice(None);
        branch.referenced[index].operations[0].operation_type = OperationType::OemOperation;
        let mut inner = accumulation();
        inner.referenced[index].operations[0].operation_type = OperationType::OemOperation;
        for (what, model) in [("IF", branch), ("WHILE", inner)] {
            let answers = device.supported_operations(&model, device.version())?;
            let promised = answers.iter().any(Support::is_yes);
            demand!(!promised, "{what} is supported though its subgraph {index} is not");
        }
    }
    // Through another IF.
    let mut builder = ModelBuilder::new();
    let mut inmost = SubgraphBuilder::new();
    let x = inmost.input("x", floats());
    let y = inmost.operation(OperationType::OemOperation, [x], floats());
    inmost.output(y);
    let inmost = builder.reference(inmost);
    let mut inner = SubgraphBuilder::new();
    let x = inner.input("x", floats());
    let (c, there) = (inner.constant(truth(), &[true]), inner.subgraph(inmost));
    let y = inner.operation(OperationType::If, [c, there, there, x], floats());
    inner.output(y);
    let inner = builder.reference(inner);
    let mut main = SubgraphBuilder::new();
    let (c, x) = (main.input("c", truth()), main.input("x", floats()));
    let there = main.subgraph(inner);
    let y = main.operation(OperationType::If, [c, there, there, x], floats());
    main.output(y);
    let answers = device.supported_operations(&ours(builder.build(main)), device.version())?;
    demand!(!answers.iter().any(Support::is_yes), "IF is supported though one below it is not");
    Ok(Verdict::Kept)
}

fn ends_in_time(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if !is_newest(&**device) || !is_supported(&**device, &accumulation())? {
        return Ok(not_offered());
    }
    let prepared = prepare(&**device, &accumulation())?;
    for nanoseconds in [0, 1] {
        let loop_timeout = Some(Duration::from_nanos(nanoseconds));
        let options = ExecutionOptions { loop_timeout, ..ExecutionOptions::default() };
        accumulate(&*prepared, [7, 5, 5], &options)
            .map_err(|Violation(what)| Violation(format!("within {nanoseconds} ns: {what}")))?;
    }
    Ok(Verdict::Kept)
}

fn fence_of_a_loop(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let endless = super::models::endless();
    if !is_newest(&**device) || !is_supported(&**device, &endless)? {
        return Ok(not_offered());
    }
    let missed = [MissedDeadlinePersistent, MissedDeadlineTransient];
    let prepared = prepare(&**device, &endless)?;
    let mut request = RequestBuilder::new();
    request.input(&[0; 4]).output(4);
    let request = request.build()?;
    let loop_timeout = Some(Duration::from_millis(1));
    let options = ExecutionOptions { loop_timeout, ..ExecutionOptions::default() };
    let first = match prepared.execute_fenced(&request, &[], &options, None) {
        Ok(first) => first,
        late => {
            super::demand_refusal("the launch of a loop without end", late, &missed)?;
            return Ok(Verdict::Kept);
        }
    };
    let after: Vec<_> = first.sync_fence.iter().cloned().collect();
    if let Some(fence) = &first.sync_fence {
        let state = fence.wait(Some(Duration::from_secs(30)))?;
        demand!(state == FenceState::Signalled, "the fence of a loop without end is {state:?}");
    }
    super::demand_refusal("a loop without end", first.info.get(), &missed)?;
    // What comes after it is launched as if nothing had been.
    match prepared.execute_fenced(&request, &after, &options, None) {
        Ok(second) => {
            if let Some(fence) = &second.sync_fence {
                let state = fence.wait(Some(Duration::from_secs(30)))?;
                demand!(state == FenceState::Signalled, "the second fence is {state:?}");
            }
            super::demand_refusal("a second loop without end", second.info.get(), &missed)?;
        }
        late => super::demand_refusal("the second launch", late, &missed)?,
    }
    Ok(Verdict::Kept)
}
