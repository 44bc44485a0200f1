//! What must hold when processes end and parcels are wrong. Each check starts processes of its own.

use nnhal_hal::{
    BufferDescription, BufferRole, Device, ErrorStatus, ExecutionOptions, FusedActivation,
    HalVersion, Model, ModelBuilder, OperandSpec, OperationType, PrepareOptions, PreparedModel,
    Request, RequestBuilder, SubgraphBuilder,
};
use nnhal_hidl::client::Options;
use nnhal_hidl_binder::client;
use nnhal_hwbinder::error::status;
use nnhal_hwbinder::manager::Notification;
use nnhal_hwbinder::{Binder, Error as BinderError, Manager, Process, Remote, Writer};
use std::error::Error;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

type Outcome = Result<(), Box<dyn Error>>;

/// What is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Fault {
    /// `IBase` is answered.
    Base,
    /// Calls that are none are refused with the right status.
    Calls,
    /// Parcels that are cut or bent are refused, and the service goes on.
    Parcels,
    /// A service that ends is found again; what ran ends with `DEVICE_UNAVAILABLE`.
    Service,
    /// A client that ends leaves nothing behind.
    Client,
    /// A client that ends during a synchronous execution ends that.
    Stopped,
    /// Who asked for notifications gets them until it wants no more.
    Notifications,
    /// A thousand calls at once.
    Many,
}

type Check = fn(&Arc<Process>) -> Outcome;

const ALL: &[(Fault, Check)] = &[
    (Fault::Base, base),
    (Fault::Calls, calls),
    (Fault::Parcels, parcels),
    (Fault::Service, service_ends),
    (Fault::Client, client_ends),
    (Fault::Stopped, execution_is_stopped),
    (Fault::Notifications, notifications),
    (Fault::Many, many),
];

/// Runs all checks, or one.
pub fn run(process: &Arc<Process>, only: Option<Fault>) -> Outcome {
    for (fault, check) in ALL.iter().filter(|(fault, _)| only.is_none_or(|only| only == *fault)) {
        let since = Instant::now();
        check(process).map_err(|error| format!("{fault:?}: {error}"))?;
        println!("{fault:?}: ok, {:.1} s", since.elapsed().as_secs_f32());
    }
    Ok(())
}

fn expect(condition: bool, what: &str) -> Outcome {
    if condition { Ok(()) } else { Err(what.into()) }
}

fn eventually(what: &str, mut condition: impl FnMut() -> Result<bool, Box<dyn Error>>) -> Outcome {
    let until = Instant::now() + Duration::from_secs(20);
    while !condition()? {
        if Instant::now() > until {
            return Err(format!("not in time: {what}").into());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Waits until a service is there.
pub fn wait_for(process: &Arc<Process>, name: &str) -> Outcome {
    Manager::wait(process, Some(Duration::from_secs(10)))?;
    eventually(name, || Ok(client::devices(process)?.contains_key(name)))
}

/// A process of this program, killed when this is dropped.
struct Running(Child);

impl Running {
    fn start(arguments: &[&str]) -> Result<Self, Box<dyn Error>> {
        let program = std::env::current_exe()?;
        Ok(Self(Command::new(program).args(arguments).stdout(Stdio::null()).spawn()?))
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

fn service(process: &Arc<Process>, name: &str) -> Result<Running, Box<dyn Error>> {
    let service = Running::start(&["service", name])?;
    wait_for(process, name)?;
    Ok(service)
}

const DEVICE: &str = "android.hardware.neuralnetworks@1.3::IDevice";
const DEVICE_1_0: &str = "android.hardware.neuralnetworks@1.0::IDevice";

fn object(process: &Arc<Process>, name: &str) -> Result<Arc<Remote>, Box<dyn Error>> {
    match Manager::find(process)?.get(DEVICE, name)? {
        Some(Binder::Remote(remote)) => Ok(remote),
        other => Err(format!("the manager gave {other:?}").into()),
    }
}

/// A model that adds, and takes as long as its inputs are.
fn model(length: u32) -> Model {
    let mut graph = SubgraphBuilder::new();
    let spec = || OperandSpec::tensor_float32([length]);
    let (one, other) = (graph.input("one", spec()), graph.input("other", spec()));
    let activation = graph.scalar_i32(0);
    let sum = graph.operation(OperationType::Add, [one, other, activation], spec());
    graph.output(sum);
    graph.into_model().expect("a model")
}

fn request(length: u32) -> Result<Request, Box<dyn Error>> {
    let bytes = vec![0; 4 * length as usize];
    let mut request = RequestBuilder::new();
    request.input(&bytes).input(&bytes).output(bytes.len());
    Ok(request.build()?)
}

fn prepare(
    device: &Arc<dyn Device>,
    length: u32,
) -> Result<Arc<dyn PreparedModel>, Box<dyn Error>> {
    Ok(device.prepare_model(&model(length), HalVersion::V1_3, PrepareOptions::default())?)
}

fn base(process: &Arc<Process>) -> Outcome {
    let _service = service(process, "base")?;
    let object = object(process, "base")?;
    object.ping()?;
    let chain = object.interface_chain()?;
    let expected = ["1.3::IDevice", "1.2::IDevice", "1.1::IDevice", "1.0::IDevice"];
    let expected = expected.map(|name| format!("android.hardware.neuralnetworks@{name}"));
    expect(chain[..4] == expected, "the chain")?;
    expect(chain[4..] == ["android.hidl.base@1.0::IBase"], "the end of the chain")?;
    expect(object.interface_descriptor()? == DEVICE, "the descriptor")?;
    let hashes = object.hash_chain()?;
    expect(hashes.len() == 5 && hashes[0][..2] == [0xc3, 0xfe], "the hashes")
}

fn calls(process: &Arc<Process>) -> Outcome {
    let _service = service(process, "calls")?;
    let object = object(process, "calls")?;
    let refused = |code, token: &str| object.call(code, Writer::request(token), |_| Ok(()));
    let unknown = BinderError::Status(status::UNKNOWN_TRANSACTION);
    expect(refused(21, DEVICE) == Err(unknown.clone()), "a method that there is not")?;
    expect(refused(0x0f00_0000, "android.hidl.base@1.0::IBase") == Err(unknown), "of IBase")?;
    let wrong = BinderError::Status(status::BAD_TYPE);
    expect(refused(4, DEVICE) == Err(wrong.clone()), "the token of another version")?;
    expect(refused(4, "") == Err(wrong), "an empty token")?;
    refused(4, DEVICE_1_0)?;
    // One way, and it is not: nothing happens.
    object.call_one_way(4, Writer::request(DEVICE_1_0))?;
    object.ping()?;
    Ok(())
}

fn parcels(process: &Arc<Process>) -> Outcome {
    let _service = service(process, "parcels")?;
    let object = object(process, "parcels")?;
    let mut refused = 0;
    for code in 1..=20 {
        let token = match code {
            ..5 => DEVICE_1_0.to_owned(),
            5..8 => DEVICE_1_0.replace("1.0", "1.1"),
            8..16 => DEVICE_1_0.replace("1.0", "1.2"),
            _ => DEVICE.to_owned(),
        };
        for shape in 0..8 {
            let mut request = Writer::request(&token);
            match shape {
                0 => {}
                1 => request.u64(u64::MAX),
                2 => (0..200).for_each(|_| request.u32(0x7074_2a85)),
                3 => request.strings(&["a", "b"]),
                4 => {
                    request.buffer(vec![0xff; 136], None);
                }
                5 => {
                    let holder = request.buffer(vec![0xff; 48], None);
                    request.buffer(vec![0xff; 16], Some(holder.start()));
                }
                6 => {
                    let mut model = vec![0; 136];
                    model[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
                    let holder = request.buffer(model, None);
                    request.buffer(vec![0; 352], Some(holder.start()));
                }
                _ => {
                    (0..60).for_each(|_| request.binder(Some(Binder::Remote(Arc::clone(&object)))))
                }
            }
            if object.call(code, request, |_| Ok(())).is_err() {
                refused += 1;
            }
        }
    }
    object.ping()?;
    expect(refused > 80, "too few of them were refused")
}

fn service_ends(process: &Arc<Process>) -> Outcome {
    let mut running = service(process, "ends")?;
    let device = client::open(process, "ends", Options::default())?;
    let by_callback =
        client::open(process, "ends", Options { asynchronous: true, ..Options::default() })?;
    let long = 30_000_000;
    let models = [prepare(&device, long)?, prepare(&by_callback, long)?];
    let burst = prepare(&device, 4)?.configure_burst()?;
    burst.execute(&request(4)?, false)?;
    let big = request(long)?;
    let started = Instant::now();
    let (ended, took) = thread::scope(|scope| {
        let calls: Vec<_> = models
            .iter()
            .map(|model| scope.spawn(|| model.execute(&big, &ExecutionOptions::default())))
            .collect();
        thread::sleep(Duration::from_millis(300));
        running.kill();
        let killed = Instant::now();
        let ended: Vec<_> = calls.into_iter().map(|call| call.join().expect("no panic")).collect();
        (ended, killed.elapsed())
    });
    for outcome in ended {
        let Err(failed) = outcome else { return Err("it ended before the service did".into()) };
        let status = failed.error.status();
        expect(status == ErrorStatus::DeviceUnavailable, &format!("what ran: {}", failed.error))?;
    }
    expect(took < Duration::from_secs(1), &format!("what ran took {took:?} to end"))?;
    let _ = started;
    let lost = burst.execute(&request(4)?, false);
    expect(lost.is_err(), "a burst of a service that has ended")?;
    expect(device.status() == nnhal_hal::DeviceStatus::Offline, "the status of no service")?;
    let _again = service(process, "ends")?;
    eventually("the service was not found again", || Ok(prepare(&device, 4).is_ok()))?;
    let model = prepare(&device, 4)?;
    model.execute(&request(4)?, &ExecutionOptions::default())?;
    let old = models[0].execute(&request(4)?, &ExecutionOptions::default());
    expect(old.is_err(), "a model of the old service")
}

fn client_ends(process: &Arc<Process>) -> Outcome {
    let mut running = service(process, "held")?;
    let pid = running.0.id();
    let count = |what: &str| -> Result<usize, Box<dyn Error>> {
        Ok(std::fs::read_dir(format!("/proc/{pid}/{what}"))?.count())
    };
    // Once, so that threads that stay are there.
    let hold = || -> Outcome {
        let mut client = Running::start(&["hold", "held"])?;
        eventually("the client holds nothing", || Ok(state(process)?.ends_with("1 clients\n")))?;
        thread::sleep(Duration::from_millis(1500));
        client.kill();
        eventually("the client is still counted", || Ok(state(process)?.ends_with("0 clients\n")))
    };
    hold()?;
    thread::sleep(Duration::from_secs(1));
    let before = (count("fd")?, count("task")?);
    for _ in 0..3 {
        hold()?;
    }
    let mut after = before;
    let back = eventually("descriptors and threads", || {
        after = (count("fd")?, count("task")?);
        // Threads that are called stay, up to their number.
        Ok(after.0 <= before.0 && after.1 <= before.1 + 16)
    });
    back.map_err(|error| format!("{error}: before {before:?}, after {after:?}"))?;
    println!("descriptors and threads before {before:?}, after three clients {after:?}");
    running.kill();
    Ok(())
}

/// What the service says of itself by `debug`.
fn state(process: &Arc<Process>) -> Result<String, Box<dyn Error>> {
    use std::io::Read;
    use std::os::fd::AsFd;
    const DEBUG: u32 = 0x0f44_4247;
    let object = object(process, "held")?;
    let (mut reading, writing) = std::io::pipe()?;
    let mut request = Writer::request("android.hidl.base@1.0::IBase");
    request.native_handle(Some((&[writing.as_fd()], &[])), None, ());
    request.strings::<&str>(&[]);
    object.call(DEBUG, request, |_| Ok(()))?;
    drop(writing);
    let mut text = String::new();
    reading.read_to_string(&mut text)?;
    Ok(text)
}

/// Holds everything that a service gives, with running work, until it is killed.
pub fn hold(process: &Arc<Process>, name: &str) -> Outcome {
    let device = client::open(process, name, Options { asynchronous: true, ..Options::default() })?;
    let long = 20_000_000;
    let model = prepare(&device, 4)?;
    let big = prepare(&device, long)?;
    let burst = model.configure_burst()?;
    burst.execute(&request(4)?, false)?;
    let role = |index| BufferRole { model_index: 0, io_index: index, frequency: 1.0 };
    let _buffer = device.allocate(&BufferDescription {
        dimensions: vec![4],
        prepared_models: vec![Arc::clone(&model)],
        input_roles: vec![role(0)],
        output_roles: vec![],
    })?;
    let request = request(long)?;
    thread::scope(|scope| {
        // It is killed between a launch and its notification: here of a preparation, below of executions.
        scope.spawn(|| while prepare(&device, 4).is_ok() {});
        for _ in 0..8 {
            scope.spawn(|| while big.execute(&request, &ExecutionOptions::default()).is_ok() {});
        }
    });
    loop {
        thread::park();
    }
}

/// A model that counts from its input on, and never ends by itself.
fn endless() -> Result<Model, Box<dyn Error>> {
    let spec = || OperandSpec::tensor_int32([1]);
    let mut condition = SubgraphBuilder::new();
    let i = condition.input("i", spec());
    let same = condition.operation(OperationType::Equal, [i, i], OperandSpec::tensor_bool8([1]));
    condition.output(same);
    let mut body = SubgraphBuilder::new();
    let i = body.input("i", spec());
    let nothing = body.constant(spec(), &[0]);
    let none = body.scalar_i32(FusedActivation::None.code());
    let next = body.operation(OperationType::Add, [i, nothing, none], spec());
    body.output(next);
    let mut builder = ModelBuilder::new();
    let (condition, body) = (builder.reference(condition), builder.reference(body));
    let mut graph = SubgraphBuilder::new();
    let i = graph.input("i", spec());
    let (condition, body) = (graph.subgraph(condition), graph.subgraph(body));
    let end = graph.operation(OperationType::While, [condition, body, i], spec());
    graph.output(end);
    Ok(builder.build(graph)?)
}

/// Executes what never ends, until it is killed.
pub fn execute_endlessly(process: &Arc<Process>, name: &str) -> Outcome {
    let device = client::open(process, name, Options::default())?;
    let model = device.prepare_model(&endless()?, HalVersion::V1_3, PrepareOptions::default())?;
    let mut request = RequestBuilder::new();
    request.input(&[0; 4]).output(4);
    let loop_timeout = Some(Duration::from_secs(3600));
    let options = ExecutionOptions { loop_timeout, ..ExecutionOptions::default() };
    model.execute(&request.build()?, &options).map_err(|failed| failed.error)?;
    Err("it has ended".into())
}

/// How long a process has computed, in the kernel's ticks.
fn computed(pid: u32) -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, after_name) = text.rsplit_once(')').ok_or("no name")?;
    let times = after_name.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
    Ok(times.sum::<Result<u64, _>>()?)
}

fn execution_is_stopped(process: &Arc<Process>) -> Outcome {
    const MOMENT: Duration = Duration::from_secs(1);
    // Of 100 in a second: a thread that computes has most of them.
    const BUSY: u64 = 30;
    let running = service(process, "stopped")?;
    let pid = running.0.id();
    let in_a_moment = || -> Result<u64, Box<dyn Error>> {
        let before = computed(pid)?;
        thread::sleep(MOMENT);
        Ok(computed(pid)? - before)
    };
    let mut client = Running::start(&["execute-endlessly", "stopped"])?;
    eventually("the service does not compute", || Ok(in_a_moment()? > BUSY))?;
    expect(in_a_moment()? > BUSY, "it computes until it is stopped")?;
    client.kill();
    eventually("the service still computes", || Ok(in_a_moment()? < BUSY / 10))
}

fn notifications(process: &Arc<Process>) -> Outcome {
    let manager = Manager::find(process)?;
    let (sender, seen) = std::sync::mpsc::channel();
    let notification = Notification::new(move |instance| drop(sender.send(instance.name)));
    manager.notify(DEVICE, "notified", Arc::clone(&notification))?;
    let first = service(process, "notified")?;
    expect(seen.recv_timeout(Duration::from_secs(20))? == "notified", "of which service")?;
    drop(first);
    manager.notify_no_more(DEVICE, "notified", &notification)?;
    let _second = service(process, "notified")?;
    let more = seen.recv_timeout(Duration::from_secs(1));
    expect(more.is_err(), "a notification that no one wanted")?;
    let again = manager.notify_no_more(DEVICE, "notified", &notification);
    expect(again.is_err(), "no more than none")
}

fn many(process: &Arc<Process>) -> Outcome {
    let _service = service(process, "many")?;
    let device = client::open(process, "many", Options::default())?;
    let model = prepare(&device, 4)?;
    let failed = thread::scope(|scope| {
        let calls: Vec<_> = (0..1000)
            .map(|index| {
                let (device, model) = (&device, &model);
                scope.spawn(move || -> Result<(), String> {
                    if index % 2 == 0 {
                        let request = request(4).map_err(|error| error.to_string())?;
                        let executed = model.execute(&request, &ExecutionOptions::default());
                        executed.map(drop).map_err(|failed| failed.error.to_string())
                    } else {
                        let prepared = prepare(device, 4 + index % 7);
                        prepared.map(drop).map_err(|error| error.to_string())
                    }
                })
            })
            .collect();
        let outcomes = calls.into_iter().map(|call| call.join().expect("no panic"));
        outcomes.filter_map(Result::err).collect::<Vec<_>>()
    });
    expect(failed.is_empty(), &format!("{} of 1000 failed: {:?}", failed.len(), failed.first()))
}
