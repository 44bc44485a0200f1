//! `allocate` and `IBuffer` (contract: sections 13 and 14).

use super::super::models::{
    activated_addition, addition, bytes, in_buffer, rectifier, sum, sum_request,
};
use super::super::{Check, Run, Verdict, Violation, demand};
use super::driver::{Allocated, Driver, Wish};
use super::driver_model::{DriverModel, ExecuteWishes};
use super::memory::{file, of_kind, own, pipe, read_only};
use super::notified::{Ended, Notified};
use super::paths::{by_every_path, demand_by_every_path};
use super::{INVALID, MISSED, NONE, demand_status, is_one_of, words};
use nnhal_hal::{ErrorStatus, Memory, OperandSpec, Request, RequestArgument};
use nnhal_hidl::cast::Cast;
use nnhal_hidl::v1_2::{MeasureTiming, OutputShape, Timing};
use nnhal_hidl::v1_3::{self, BufferRole, IBuffer, OptionalTimePoint, OptionalTimeoutDuration};
use nnhal_hidl::{Handle, HidlMemory, MQDescriptor, Return, v1_0, v1_2};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) const CHECKS: &[Check] = &[
    Check {
        ids: &["ALLOC-1", "ALLOC-8"],
        name: "a buffer has a token that is its own as long as it exists",
        run: Run::Driver(tokens),
    },
    Check {
        ids: &["ALLOC-2", "GEN-3", "IPC-6"],
        name: "models and roles that do not go together are refused, with nothing",
        run: Run::Driver(wrong_roles),
    },
    Check {
        ids: &["ALLOC-3"],
        name: "a role twice is refused, by whatever names",
        run: Run::Driver(roles_twice),
    },
    Check {
        ids: &["ALLOC-4"],
        name: "roles of operands that differ are refused",
        run: Run::Driver(other_operands),
    },
    Check {
        ids: &["ALLOC-5"],
        name: "dimensions that cannot be combined are refused",
        run: Run::Driver(other_dimensions),
    },
    Check {
        ids: &["ALLOC-6", "ALLOC-7", "BUF-4"],
        name: "a buffer of unknown dimensions holds values of several, or is not supported",
        run: Run::Driver(unknown_dimensions),
    },
    Check {
        ids: &["BUF-3", "BUF-4", "BUF-5"],
        name: "what is copied has the size and the dimensions that it must have",
        run: Run::Driver(sizes),
    },
    Check {
        ids: &["BUF-1", "BUF-5"],
        name: "a buffer holds something exactly after what gave it something",
        run: Run::Driver(states),
    },
    Check {
        ids: &["BUF-2"],
        name: "the final shape of an output is the buffer's",
        run: Run::Driver(final_shapes),
    },
    Check {
        ids: &["BUF-6", "BUF-1"],
        name: "memory that cannot be used is refused, and spoils what it was to be copied to",
        run: Run::Driver(bad_memory),
    },
    Check {
        ids: &["DBUF-2", "DBUF-3", "DBUF-6", "EXEC-4"],
        name: "by every path a buffer serves only as what it was allocated for",
        run: Run::Driver(wrong_use),
    },
    Check {
        ids: &["DBUF-4", "DBUF-5", "DBUF-8"],
        name: "dimensions of a request that contradict a buffer are refused, in order",
        run: Run::Driver(contradictions),
    },
    Check {
        ids: &["DBUF-7"],
        name: "a result that a buffer does not take fails, without shapes",
        run: Run::Driver(wrong_result),
    },
    Check {
        ids: &["ALLOC-9", "DBUF-2"],
        name: "roles of a model that is gone are no later one's",
        run: Run::Driver(lost_model),
    },
    Check {
        ids: &["CONC-3", "ALLOC-8"],
        name: "a buffer that is let go of serves the executions that were launched with it",
        run: Run::Driver(let_go),
    },
];

const FAILURE: &[ErrorStatus] = &[ErrorStatus::GeneralFailure];
const REFUSED: &[ErrorStatus] = &[ErrorStatus::InvalidArgument, ErrorStatus::GeneralFailure];

type Model = Arc<dyn v1_3::IPreparedModel>;

fn role(model_index: u32, io_index: u32) -> BufferRole {
    BufferRole { model_index, io_index, frequency: 1.0 }
}

/// A buffer for the first input and the output of a model.
fn wish(model: &Model) -> Wish {
    Wish {
        dimensions: Vec::new(),
        models: vec![Some(Arc::clone(model))],
        inputs: vec![role(0, 0)],
        outputs: vec![role(0, 0)],
    }
}

fn newest(model: &DriverModel) -> Result<Model, Violation> {
    let newest = model.v1_3.clone();
    newest.ok_or_else(|| Violation("CB-4: what 1.3 prepares is not one of 1.3".into()))
}

/// Demands that an answer is whole: a buffer and a token exactly with `NONE` (contract: ALLOC-1).
fn whole(what: &str, allocated: &Allocated) -> Result<(), Violation> {
    let success = allocated.status == ErrorStatus::None.code();
    let (buffer, token) = (allocated.buffer.is_some(), allocated.token);
    let status = super::name_of(allocated.status);
    demand!(buffer == success, "{what}: {status}, and that there is a buffer: {buffer}");
    demand!((token != 0) == success, "{what}: {status} with token {token}");
    Ok(())
}

/// A buffer, or nothing where the driver does not support such a one (contract: ALLOC-6).
fn allocate(driver: &Driver, what: &str, wish: &Wish) -> Result<Option<Buffer>, Violation> {
    let allocated = driver.allocate(wish)?;
    whole(what, &allocated)?;
    demand_status(what, allocated.status, &[NONE, FAILURE].concat())?;
    Ok(allocated.buffer.map(|buffer| Buffer { buffer, token: allocated.token }))
}

fn demand_refused(driver: &Driver, what: &str, wish: &Wish) -> Result<(), Violation> {
    let allocated = driver.allocate(wish)?;
    demand_status(what, allocated.status, REFUSED)?;
    whole(what, &allocated)
}

struct Buffer {
    buffer: Arc<dyn IBuffer>,
    token: u32,
}

impl Buffer {
    fn copy_from_words(&self, source: &HidlMemory, dimensions: &[u32]) -> Result<i32, Violation> {
        let answer = self.buffer.copy_from(source, dimensions);
        answer.map_err(|error| Violation(format!("copyFrom: {error}")))
    }

    fn copy_to_words(&self, destination: &HidlMemory) -> Result<i32, Violation> {
        let answer = self.buffer.copy_to(destination);
        answer.map_err(|error| Violation(format!("copyTo: {error}")))
    }

    /// Copies bytes in.
    fn put(&self, value: &[u8], dimensions: &[u32]) -> Result<i32, Violation> {
        let memory = Memory::from_bytes(value).map_err(own)?;
        self.copy_from_words(&words(&memory)?, dimensions)
    }

    /// Copies `length` bytes out.
    fn get(&self, length: usize) -> Result<(i32, Vec<u8>), Violation> {
        let memory = Memory::allocate(length as u64).map_err(own)?;
        let status = self.copy_to_words(&words(&memory)?)?;
        Ok((status, super::super::models::memory_bytes(&memory)?))
    }

    /// Demands that it holds exactly these bytes.
    fn expect(&self, when: &str, value: &[u8]) -> Result<(), Violation> {
        let (status, found) = self.get(value.len())?;
        demand_status(&format!("copyTo {when}"), status, NONE)?;
        demand!(found == value, "{when} the buffer holds {found:?}, expected {value:?}");
        Ok(())
    }

    /// Demands that it holds nothing.
    fn expect_nothing(&self, when: &str) -> Result<(), Violation> {
        let (status, _) = self.get(16)?;
        demand_status(&format!("copyTo {when}"), status, FAILURE)
    }
}

/// A prepared sum and a buffer for it; nothing where the driver has none.
fn offered(driver: &Driver) -> Result<Option<(DriverModel, Buffer)>, Violation> {
    if driver.v1_3.is_none() {
        return Ok(None);
    }
    let model = driver.prepared(&addition([2, 2]))?;
    let buffer = allocate(driver, "a buffer", &wish(&newest(&model)?))?;
    Ok(buffer.map(|buffer| (model, buffer)))
}

fn not_offered() -> Verdict {
    Verdict::NotOffered("buffers that the driver manages".into())
}

fn one() -> Vec<u8> {
    bytes(&[1.0, 2.0, 3.0, 4.0])
}

fn first(request: &mut Request) -> &mut RequestArgument {
    &mut request.inputs[0]
}

fn second(request: &mut Request) -> &mut RequestArgument {
    &mut request.inputs[1]
}

fn output(request: &mut Request) -> &mut RequestArgument {
    &mut request.outputs[0]
}

fn tokens(driver: &Driver) -> Result<Verdict, Violation> {
    let Some((model, gone)) = offered(driver)? else { return Ok(not_offered()) };
    let wish = wish(&newest(&model)?);
    let buffers: Vec<Buffer> = (0..8)
        .map(|_| {
            let buffer = allocate(driver, "another buffer", &wish)?;
            buffer.ok_or_else(|| Violation("ALLOC-6: the same is not supported any more".into()))
        })
        .collect::<Result<_, _>>()?;
    let mut tokens: BTreeSet<u32> = buffers.iter().map(|buffer| buffer.token).collect();
    tokens.insert(gone.token);
    demand!(tokens.len() == 9, "9 buffers have the tokens {tokens:?}");
    for (number, buffer) in (0_u8..).zip(&buffers) {
        demand_status("copyFrom", buffer.put(&[number; 16], &[])?, NONE)?;
    }
    for (number, buffer) in (0_u8..).zip(&buffers) {
        buffer.expect("beside others", &[number; 16])?;
    }
    let token = gone.token;
    demand_status("copyFrom", gone.put(&one(), &[])?, NONE)?;
    drop(gone);
    // Whoever gives the number to another buffer does so when there is another one.
    let request = in_buffer(sum_request()?, token, first);
    demand_by_every_path("the token of a buffer that is gone", &model, &request, INVALID)?;
    Ok(Verdict::Kept)
}

/// A prepared model that no device made.
struct Stranger;

impl v1_0::IPreparedModel for Stranger {
    fn execute(
        &self,
        _: &v1_0::Request,
        _: Option<Arc<dyn v1_0::IExecutionCallback>>,
    ) -> Return<i32> {
        Ok(ErrorStatus::GeneralFailure.code())
    }

    fn provide(self: Arc<Self>, cast: &mut Cast<'_>) {
        cast.provide::<dyn v1_2::IPreparedModel>(self.clone());
        cast.provide::<dyn v1_3::IPreparedModel>(self);
    }
}

impl v1_2::IPreparedModel for Stranger {
    fn execute_1_2(
        &self,
        _: &v1_0::Request,
        _: MeasureTiming,
        _: Option<Arc<dyn v1_2::IExecutionCallback>>,
    ) -> Return<i32> {
        Ok(ErrorStatus::GeneralFailure.code())
    }

    fn execute_synchronously(
        &self,
        _: &v1_0::Request,
        _: MeasureTiming,
    ) -> Return<(i32, Vec<OutputShape>, Timing)> {
        Ok((ErrorStatus::GeneralFailure.code(), Vec::new(), Timing::NONE))
    }

    fn configure_execution_burst(
        &self,
        _: Option<Arc<dyn v1_2::IBurstCallback>>,
        _: &MQDescriptor,
        _: &MQDescriptor,
    ) -> Return<(i32, Option<Arc<dyn v1_2::IBurstContext>>)> {
        Ok((ErrorStatus::GeneralFailure.code(), None))
    }
}

impl v1_3::IPreparedModel for Stranger {
    fn execute_1_3(
        &self,
        _: &v1_3::Request,
        _: MeasureTiming,
        _: OptionalTimePoint,
        _: OptionalTimeoutDuration,
        _: Option<Arc<dyn v1_3::IExecutionCallback>>,
    ) -> Return<i32> {
        Ok(ErrorStatus::GeneralFailure.code())
    }

    fn execute_synchronously_1_3(
        &self,
        _: &v1_3::Request,
        _: MeasureTiming,
        _: OptionalTimePoint,
        _: OptionalTimeoutDuration,
    ) -> Return<(i32, Vec<OutputShape>, Timing)> {
        Ok((ErrorStatus::GeneralFailure.code(), Vec::new(), Timing::NONE))
    }

    fn execute_fenced(
        &self,
        _: &v1_3::Request,
        _: &[Handle],
        _: MeasureTiming,
        _: OptionalTimePoint,
        _: OptionalTimeoutDuration,
        _: OptionalTimeoutDuration,
    ) -> Return<(i32, Handle, Option<Arc<dyn v1_3::IFencedExecutionCallback>>)> {
        Ok((ErrorStatus::GeneralFailure.code(), Handle::NULL, None))
    }
}

fn wrong_roles(driver: &Driver) -> Result<Verdict, Violation> {
    let Some((model, _buffer)) = offered(driver)? else { return Ok(not_offered()) };
    let model = newest(&model)?;
    let good = || wish(&model);
    let likely = |frequency| BufferRole { frequency, ..role(0, 0) };
    let stranger: Model = Arc::new(Stranger);
    let mut cases = vec![
        ("no models".to_owned(), Wish { models: vec![], ..good() }),
        ("a null model".to_owned(), Wish { models: vec![None], ..good() }),
        (
            "a model of another driver".to_owned(),
            Wish { models: vec![Some(stranger.clone())], ..good() },
        ),
        (
            "a model of another driver that no role names".to_owned(),
            Wish { models: vec![Some(Arc::clone(&model)), Some(stranger)], ..good() },
        ),
        ("no roles".to_owned(), Wish { inputs: vec![], outputs: vec![], ..good() }),
    ];
    for index in [1, u32::MAX] {
        let inputs = vec![role(index, 0)];
        cases.push((format!("an input of model {index} of 1"), Wish { inputs, ..good() }));
        let outputs = vec![role(index, 0)];
        cases.push((format!("an output of model {index} of 1"), Wish { outputs, ..good() }));
        let outputs = vec![role(0, index)];
        cases.push((format!("output {index} of 1"), Wish { outputs, ..good() }));
        let inputs = vec![role(0, index.max(2))];
        cases.push((format!("input {} of 2", index.max(2)), Wish { inputs, ..good() }));
    }
    for frequency in [0.0, -1.0, 1.5, f32::INFINITY, f32::NAN] {
        let inputs = vec![likely(frequency)];
        cases.push((format!("an input's frequency {frequency}"), Wish { inputs, ..good() }));
        let outputs = vec![likely(frequency)];
        cases.push((format!("an output's frequency {frequency}"), Wish { outputs, ..good() }));
    }
    for (what, wish) in &cases {
        demand_refused(driver, what, wish)?;
    }
    Ok(Verdict::Kept)
}

fn roles_twice(driver: &Driver) -> Result<Verdict, Violation> {
    let Some((model, _buffer)) = offered(driver)? else { return Ok(not_offered()) };
    let model = newest(&model)?;
    let two = || Wish { models: vec![Some(Arc::clone(&model)); 2], ..wish(&model) };
    for (what, wish) in [
        ("an input twice", Wish { inputs: vec![role(0, 0); 2], ..wish(&model) }),
        ("an output twice", Wish { outputs: vec![role(0, 0); 2], ..wish(&model) }),
        ("an input by two names", Wish { inputs: vec![role(0, 0), role(1, 0)], ..two() }),
        ("an output by two names", Wish { outputs: vec![role(0, 0), role(1, 0)], ..two() }),
    ] {
        demand_refused(driver, what, &wish)?;
    }
    let inputs = vec![role(0, 0), role(1, 1)];
    let good = Wish { inputs, outputs: vec![role(1, 0)], ..two() };
    let allocated = driver.allocate(&good)?;
    whole("a model by two names", &allocated)?;
    demand_status("a model by two names", allocated.status, &[NONE, FAILURE].concat())?;
    Ok(Verdict::Kept)
}

fn other_operands(driver: &Driver) -> Result<Verdict, Violation> {
    if offered(driver)?.is_none() {
        return Ok(not_offered());
    }
    let quantized = |scale, zero| OperandSpec::tensor_quant8_asymm([2, 2], scale, zero);
    let specs = [
        ("floats", OperandSpec::tensor_float32([2, 2])),
        ("numbers of scale 0.5", quantized(0.5, 128)),
        ("numbers of scale 0.25", quantized(0.25, 128)),
        ("numbers of another zero point", quantized(0.5, 127)),
    ];
    let mut models = Vec::new();
    for (what, spec) in specs {
        let (_, answers) = driver.supported_operations(driver.newest(), &rectifier(&spec))?;
        if answers == [true] {
            models.push((what, newest(&driver.prepared(&rectifier(&spec))?)?));
        }
    }
    for (index, (what, model)) in models.iter().enumerate() {
        for (other_what, other) in &models[..index] {
            let models = vec![Some(Arc::clone(model)), Some(Arc::clone(other))];
            let both = Wish { models, inputs: vec![role(0, 0), role(1, 0)], ..Wish::default() };
            demand_refused(driver, &format!("inputs of {what} and {other_what}"), &both)?;
            let (inputs, outputs) = (vec![role(0, 0)], vec![role(1, 0)]);
            let mixed = Wish { inputs, outputs, ..both };
            demand_refused(
                driver,
                &format!("an input of {what}, an output of {other_what}"),
                &mixed,
            )?;
        }
    }
    if models.len() < 2 {
        return Ok(Verdict::NotOffered("RELU of more than one type".into()));
    }
    Ok(Verdict::Kept)
}

fn other_dimensions(driver: &Driver) -> Result<Verdict, Violation> {
    let Some((model, _buffer)) = offered(driver)? else { return Ok(not_offered()) };
    let model = newest(&model)?;
    for dimensions in [vec![4], vec![2, 2, 1], vec![2, 3], vec![3, 2], vec![0, 3]] {
        let what = format!("dimensions {dimensions:?} for a model of [2, 2]");
        demand_refused(driver, &what, &Wish { dimensions, ..wish(&model) })?;
    }
    let longer = newest(&driver.prepared(&addition([3, 2]))?)?;
    let models = vec![Some(Arc::clone(&model)), Some(longer)];
    let both = Wish { models, inputs: vec![role(0, 0), role(1, 0)], ..Wish::default() };
    demand_refused(driver, "models of [2, 2] and of [3, 2]", &both)?;
    for dimensions in [vec![2, 2], vec![0, 2], vec![0, 0]] {
        let what = format!("dimensions {dimensions:?} for a model of [2, 2]");
        let buffer = allocate(driver, &what, &Wish { dimensions, ..wish(&model) })?;
        // What is combined is what the model says, and so the buffer is as long as before.
        if let Some(buffer) = buffer {
            demand_status(&what, buffer.put(&one(), &[])?, NONE)?;
        }
    }
    let Some(scalar) = activated(driver)? else { return Ok(Verdict::Kept) };
    for dimensions in [vec![1], vec![0]] {
        let what = format!("dimensions {dimensions:?} for a scalar");
        let inputs = vec![role(0, 2)];
        let wish = Wish { dimensions, inputs, outputs: vec![], ..wish(&scalar) };
        demand_refused(driver, &what, &wish)?;
    }
    Ok(Verdict::Kept)
}

/// A prepared sum whose activation is its third input, if the driver has such.
fn activated(driver: &Driver) -> Result<Option<Model>, Violation> {
    let (_, answers) = driver.supported_operations(driver.newest(), &activated_addition())?;
    if answers != [true] {
        return Ok(None);
    }
    newest(&driver.prepared(&activated_addition())?).map(Some)
}

fn unknown_dimensions(driver: &Driver) -> Result<Verdict, Violation> {
    if offered(driver)?.is_none() {
        return Ok(not_offered());
    }
    let model = driver.prepared(&addition([0, 2]))?;
    let wish = wish(&newest(&model)?);
    let Some(buffer) = allocate(driver, "a buffer of unknown dimensions", &wish)? else {
        return Ok(Verdict::NotOffered("buffers of unknown dimensions".into()));
    };
    buffer.expect_nothing("of a new buffer")?;
    for dimensions in [vec![], vec![0, 2], vec![2], vec![2, 3], vec![2, 2, 1]] {
        let status = buffer.put(&one(), &dimensions)?;
        demand_status(&format!("copyFrom as {dimensions:?}"), status, INVALID)?;
    }
    for rows in [2_u8, 3, 1, 2] {
        let value = vec![rows; usize::from(rows) * 8];
        let dimensions = [u32::from(rows), 2];
        let status = buffer.put(&value, &dimensions)?;
        demand_status(&format!("copyFrom as {dimensions:?}"), status, NONE)?;
        buffer.expect(&format!("as {dimensions:?}"), &value)?;
        let (status, _) = buffer.get(value.len() + 8)?;
        demand_status(&format!("copyTo of a row more than {rows}"), status, INVALID)?;
    }
    // It is an input of the shape that it holds.
    let mut request = in_buffer(sum_request()?, buffer.token, first);
    demand_status("copyFrom", buffer.put(&one(), &[2, 2])?, NONE)?;
    request.inputs[0].dimensions = vec![2, 2];
    request.inputs[1].dimensions = vec![2, 2];
    request.outputs[0].dimensions = vec![2, 2];
    demand_by_every_path("a sum of its value", &model, &request, NONE)?;
    Ok(Verdict::Kept)
}

fn sizes(driver: &Driver) -> Result<Verdict, Violation> {
    let Some((_, buffer)) = offered(driver)? else { return Ok(not_offered()) };
    for length in [1, 15, 17, 4096] {
        let status = buffer.put(&vec![1; length], &[])?;
        demand_status(&format!("copyFrom of {length} of 16 bytes"), status, INVALID)?;
    }
    for dimensions in [vec![4], vec![2, 3], vec![3, 2], vec![0, 2], vec![2, 2, 1]] {
        let status = buffer.put(&one(), &dimensions)?;
        demand_status(&format!("copyFrom of [2, 2] as {dimensions:?}"), status, INVALID)?;
    }
    for dimensions in [vec![], vec![2, 2]] {
        demand_status("copyFrom", buffer.put(&one(), &dimensions)?, NONE)?;
        buffer.expect("after copyFrom", &one())?;
    }
    for length in [1, 15, 17, 4096] {
        let (status, _) = buffer.get(length)?;
        demand_status(&format!("copyTo of {length} of 16 bytes"), status, INVALID)?;
        buffer.expect("after a copyTo that failed", &one())?;
    }
    let Some(scalar) = activated(driver)? else { return Ok(Verdict::Kept) };
    let wish = Wish { inputs: vec![role(0, 2)], outputs: vec![], ..wish(&scalar) };
    let Some(buffer) = allocate(driver, "a buffer of a scalar", &wish)? else {
        return Ok(Verdict::Kept);
    };
    demand_status("a scalar as [1]", buffer.put(&[0; 4], &[1])?, INVALID)?;
    demand_status("8 bytes as a scalar", buffer.put(&[0; 8], &[])?, INVALID)?;
    demand_status("a scalar", buffer.put(&[0; 4], &[])?, NONE)?;
    buffer.expect("as a scalar", &[0; 4])?;
    Ok(Verdict::Kept)
}

fn states(driver: &Driver) -> Result<Verdict, Violation> {
    let Some((model, buffer)) = offered(driver)? else { return Ok(not_offered()) };
    let fill = || demand_status("copyFrom", buffer.put(&one(), &[])?, NONE);
    buffer.expect_nothing("of a new buffer")?;
    fill()?;
    buffer.expect("after copyFrom", &one())?;
    demand_status("copyFrom that is too short", buffer.put(&[1; 8], &[])?, INVALID)?;
    buffer.expect_nothing("after a copyFrom that failed")?;
    fill()?;
    let (status, _) = buffer.get(8)?;
    demand_status("copyTo that is too short", status, INVALID)?;
    buffer.expect("after a copyTo that failed", &one())?;

    let read = in_buffer(sum_request()?, buffer.token, first);
    demand_by_every_path("a sum of its value", &model, &read, NONE)?;
    buffer.expect("after it was an input", &one())?;
    let mut wrong = in_buffer(sum_request()?, buffer.token, output);
    wrong.inputs.pop();
    demand_by_every_path("an input less", &model, &wrong, INVALID)?;
    buffer.expect("after a launch that was refused", &one())?;

    let write = in_buffer(sum_request()?, buffer.token, output);
    let late = OptionalTimePoint::NanosecondsSinceEpoch(1);
    let wishes = ExecuteWishes { deadline: late, ..ExecuteWishes::default() };
    demand_by_every_path("a sum into it", &model, &write, NONE)?;
    buffer.expect("after it was an output", &sum())?;
    fill()?;
    for (path, status) in by_every_path(&model, &write, wishes)? {
        let what = format!("too late for a sum into it, {path}");
        demand_status(&what, status, &[NONE, MISSED].concat())?;
    }
    // The three paths have one buffer: what the last one left. A driver may also be in time.
    let (status, _) = buffer.get(16)?;
    let synchronous = model.run(nnhal_hal::HalVersion::V1_3, &write, wishes)?.0;
    demand_status("copyTo after a deadline", status, &[NONE, FAILURE].concat())?;
    if is_one_of(synchronous, MISSED) {
        buffer.expect_nothing("after an output that failed")?;
    }
    Ok(Verdict::Kept)
}

fn final_shapes(driver: &Driver) -> Result<Verdict, Violation> {
    if offered(driver)?.is_none() {
        return Ok(not_offered());
    }
    let model = driver.prepared(&addition([0, 2]))?;
    let wish = Wish { inputs: vec![], ..wish(&newest(&model)?) };
    let Some(buffer) = allocate(driver, "a buffer of unknown dimensions", &wish)? else {
        return Ok(Verdict::NotOffered("buffers of unknown dimensions".into()));
    };
    for rows in [3_u32, 1] {
        let mut request = nnhal_hal::RequestBuilder::new();
        let terms = vec![0; rows as usize * 8];
        request.input_shaped(&terms, &[rows, 2]).input_shaped(&terms, &[rows, 2]).output(1);
        let request = in_buffer(request.build()?, buffer.token, output);
        let (status, _, _) =
            model.run(nnhal_hal::HalVersion::V1_3, &request, ExecuteWishes::default())?;
        if is_one_of(status, FAILURE) {
            return Ok(Verdict::NotOffered("unknown output shapes".into()));
        }
        demand_status(&format!("a sum of {rows} rows"), status, NONE)?;
        buffer.expect(&format!("after {rows} rows"), &terms)?;
    }
    Ok(Verdict::Kept)
}

fn bad_memory(driver: &Driver) -> Result<Verdict, Violation> {
    let Some((_, buffer)) = offered(driver)? else { return Ok(not_offered()) };
    let of_file = |name, bytes| Ok::<_, Violation>(of_kind(name, Handle::of_fd(file(bytes)?), 16));
    let wrong = [
        ("null", of_kind("ashmem", Handle::NULL, 16), INVALID),
        ("memory of no kind", of_file("unknown", 4096)?, INVALID),
        ("memory of an empty name", of_file("", 4096)?, INVALID),
        ("memory without descriptors", of_kind("ashmem", Handle::new(vec![], vec![]), 16), INVALID),
        ("memory that is not there", of_file("ashmem", 8)?, REFUSED),
        ("a pipe", of_kind("ashmem", Handle::of_fd(pipe()?), 16), REFUSED),
    ];
    for (what, memory, allowed) in &wrong {
        demand_status("copyFrom", buffer.put(&one(), &[])?, NONE)?;
        demand_status(&format!("copyTo of {what}"), buffer.copy_to_words(memory)?, allowed)?;
        buffer.expect(&format!("after copyTo of {what}"), &one())?;
        let status = buffer.copy_from_words(memory, &[])?;
        demand_status(&format!("copyFrom of {what}"), status, allowed)?;
        buffer.expect_nothing(&format!("after copyFrom of {what}"))?;
    }
    demand_status("copyFrom", buffer.put(&one(), &[])?, NONE)?;
    let status = buffer.copy_to_words(&read_only(16)?)?;
    demand_status("copyTo of read-only memory", status, INVALID)?;
    buffer.expect("after copyTo of read-only memory", &one())?;
    demand_status(
        "copyFrom of read-only memory",
        buffer.copy_from_words(&read_only(16)?, &[])?,
        NONE,
    )?;
    Ok(Verdict::Kept)
}

fn wrong_use(driver: &Driver) -> Result<Verdict, Violation> {
    let Some((model, buffer)) = offered(driver)? else { return Ok(not_offered()) };
    let token = buffer.token;
    let demand_that = |what: &str, model: &DriverModel, request: &Request, allowed| {
        demand_by_every_path(what, model, request, allowed)
    };
    let read = || Ok::<_, Violation>(in_buffer(sum_request()?, token, first));
    demand_that("an input that holds nothing", &model, &read()?, FAILURE)?;
    demand_that("another input", &model, &in_buffer(sum_request()?, token, second), INVALID)?;
    demand_status("copyFrom", buffer.put(&one(), &[])?, NONE)?;
    demand_that("another input", &model, &in_buffer(sum_request()?, token, second), INVALID)?;
    let mut both = read()?;
    both.outputs[0].location = both.inputs[0].location;
    demand_that("an input and an output", &model, &both, INVALID)?;
    // The same buffer as two pools.
    let two_pools = in_buffer(read()?, token, output);
    demand_that("an input and an output by two pools", &model, &two_pools, INVALID)?;
    let other = driver.prepared(&addition([2, 2]))?;
    demand_that("another prepared model", &other, &read()?, INVALID)?;
    demand_that("a good use", &model, &read()?, NONE)?;

    let for_input = Wish { outputs: vec![], ..wish(&newest(&model)?) };
    if let Some(buffer) = allocate(driver, "a buffer for an input", &for_input)? {
        let write = in_buffer(sum_request()?, buffer.token, output);
        demand_that("an input's buffer as an output", &model, &write, INVALID)?;
    }
    let twice = Wish { inputs: vec![role(0, 0), role(0, 1)], ..wish(&newest(&model)?) };
    if let Some(buffer) = allocate(driver, "a buffer for both inputs", &twice)? {
        demand_status("copyFrom", buffer.put(&one(), &[])?, NONE)?;
        let mut request = in_buffer(sum_request()?, buffer.token, first);
        request.inputs[1].location = request.inputs[0].location;
        demand_that("one buffer as both inputs", &model, &request, NONE)?;
        let found = nnhal_hal::RequestBuilder::read_output(&request, 0)?;
        demand!(found == bytes(&[2.0, 4.0, 6.0, 8.0]), "the sum of a buffer and itself: {found:?}");
    }
    Ok(Verdict::Kept)
}

fn contradictions(driver: &Driver) -> Result<Verdict, Violation> {
    if offered(driver)?.is_none() {
        return Ok(not_offered());
    }
    let model = driver.prepared(&addition([0, 2]))?;
    let of_two = |inputs, outputs| Wish {
        dimensions: vec![2, 2],
        models: vec![model.v1_3.clone()],
        inputs,
        outputs,
    };
    let input = allocate(driver, "a buffer", &of_two(vec![role(0, 0)], vec![]))?;
    let result = allocate(driver, "a buffer", &of_two(vec![], vec![role(0, 0)]))?;
    let (Some(input), Some(result)) = (input, result) else {
        return Ok(Verdict::NotOffered("buffers of what a model does not know".into()));
    };
    let shaped = |rows: u32| {
        let mut request = nnhal_hal::RequestBuilder::new();
        let terms = vec![0; rows as usize * 8];
        request.input_shaped(&terms, &[rows, 2]).input_shaped(&terms, &[rows, 2]);
        request.output_shaped(terms.len(), &[rows, 2]);
        request.build()
    };
    let three_in = in_buffer(shaped(3)?, input.token, first);
    let two_in = in_buffer(shaped(2)?, input.token, first);
    let three_out = in_buffer(shaped(3)?, result.token, output);
    let two_out = in_buffer(shaped(2)?, result.token, output);
    // Of an input that holds nothing this is what is said, whatever its dimensions.
    demand_by_every_path("an empty input with other dimensions", &model, &three_in, FAILURE)?;
    demand_by_every_path("an empty input", &model, &two_in, FAILURE)?;
    // An input that holds nothing comes before an output that contradicts.
    let mut both = in_buffer(two_in.clone(), result.token, output);
    both.outputs[0].dimensions = vec![3, 2];
    demand_by_every_path("an empty input and a wrong output", &model, &both, FAILURE)?;
    // A role that is missing comes before there being nothing.
    let strange = in_buffer(shaped(2)?, result.token, first);
    demand_by_every_path("an output's buffer as an input", &model, &strange, INVALID)?;
    demand_status("copyFrom", input.put(&one(), &[2, 2])?, NONE)?;
    demand_by_every_path("an input with other dimensions", &model, &three_in, INVALID)?;
    demand_by_every_path("an input", &model, &two_in, NONE)?;
    demand_by_every_path("an output with other dimensions", &model, &three_out, INVALID)?;
    demand_by_every_path("an output", &model, &two_out, NONE)?;
    Ok(Verdict::Kept)
}

fn wrong_result(driver: &Driver) -> Result<Verdict, Violation> {
    if offered(driver)?.is_none() {
        return Ok(not_offered());
    }
    let model = driver.prepared(&addition([0, 2]))?;
    let models = vec![model.v1_3.clone()];
    let (dimensions, outputs) = (vec![2, 2], vec![role(0, 0)]);
    let wish = Wish { dimensions, models, inputs: vec![], outputs };
    let Some(buffer) = allocate(driver, "a buffer", &wish)? else {
        return Ok(Verdict::NotOffered("buffers of what a model does not know".into()));
    };
    let terms = vec![0; 24];
    let mut request = nnhal_hal::RequestBuilder::new();
    request.input_shaped(&terms, &[3, 2]).input_shaped(&terms, &[3, 2]).output(1);
    let request = in_buffer(request.build()?, buffer.token, output);
    let version = nnhal_hal::HalVersion::V1_3;
    let (status, shapes, _) = model.run(version, &request, ExecuteWishes::default())?;
    demand_status("3 rows for a buffer of 2, synchronously", status, FAILURE)?;
    demand!(shapes.is_empty(), "3 rows for a buffer of 2: {shapes:?}");
    let (_, ended) = model.execute(version, &request, ExecuteWishes::default())?;
    demand_status("3 rows for a buffer of 2, asynchronously", ended.status, FAILURE)?;
    let shapes = ended.details.map(|(shapes, _)| shapes).unwrap_or_default();
    demand!(shapes.is_empty(), "3 rows for a buffer of 2: {shapes:?}");
    buffer.expect_nothing("after an output that failed")?;
    Ok(Verdict::Kept)
}

/// More executions than a driver runs at once, each with a buffer of its own.
fn let_go(driver: &Driver) -> Result<Verdict, Violation> {
    let Some((model, _buffer)) = offered(driver)? else { return Ok(not_offered()) };
    let wish = wish(&newest(&model)?);
    let mut launched = Vec::new();
    for _ in 0..16 {
        let Some(buffer) = allocate(driver, "another buffer", &wish)? else {
            return Ok(not_offered());
        };
        demand_status("copyFrom", buffer.put(&one(), &[])?, NONE)?;
        let request = in_buffer(sum_request()?, buffer.token, first);
        let ended = Notified::new();
        let callback = Some(Arc::clone(&ended));
        let status = model.launch(driver.newest(), &request, ExecuteWishes::default(), callback)?;
        drop(buffer);
        demand_status("execute", status, NONE)?;
        launched.push((request, ended));
    }
    for (request, ended) in launched {
        let Ended { status, .. } = ended.only()?;
        demand_status("an execution whose buffer was let go of", status, NONE)?;
        let found = nnhal_hal::RequestBuilder::read_output(&request, 0)?;
        demand!(found == sum(), "the sum is {found:?}");
    }
    Ok(Verdict::Kept)
}

fn lost_model(driver: &Driver) -> Result<Verdict, Violation> {
    for _ in 0..20 {
        let Some((model, buffer)) = offered(driver)? else { return Ok(not_offered()) };
        demand_status("copyFrom", buffer.put(&one(), &[])?, NONE)?;
        drop(model);
        // Memory that is given back is soon given out again.
        let later = driver.prepared(&addition([2, 2]))?;
        let request = in_buffer(sum_request()?, buffer.token, first);
        let (status, _, _) =
            later.run(nnhal_hal::HalVersion::V1_3, &request, ExecuteWishes::default())?;
        demand_status("a later model with a lost one's buffer", status, INVALID)?;
        buffer.expect("after its model is gone", &one())?;
    }
    Ok(Verdict::Kept)
}
