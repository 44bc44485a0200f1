//! Both ends of the interface over kernel binder, as static programs without the fast kernels: for
//! `tests/binder/run`, which has them talk in a virtual machine.
//!
//! | arguments | what it does |
//! |---|---|
//! | `serve` | registers the reference device, and offers it on the socket [`SOCKET`] too |
//! | `endless` | executes what never ends, until it is killed |
//! | `overhead` | how long an execution of one operation takes in the process, over the socket, over kernel binder |
//! | those of `nnhal conformance` | judges the device that is registered |

use nnhal_hal::{
    Device, ExecutionOptions, FusedActivation, HalVersion, Model, ModelBuilder, OperandSpec,
    OperationType, PrepareOptions, RequestBuilder, SubgraphBuilder,
};
use nnhal_service::{Server, Settings, listening::Listening};
use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Where the service listens besides.
const SOCKET: &str = "/tmp/kernel_binder.sock";

fn main() -> ExitCode {
    let done = match std::env::args().nth(1).as_deref() {
        Some("serve") => serve(),
        Some("endless") => endless(),
        Some("overhead") => overhead(),
        _ => match registered() {
            Ok(device) => return nnhal_conformance::cli(device),
            Err(error) => Err(error),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn registered() -> Result<Arc<dyn Device>, Box<dyn Error>> {
    let names = nnhal_remote::find("aidl:*")?;
    let name = names.first().ok_or("no device is registered")?;
    Ok(nnhal_remote::open(name)?)
}

fn serve() -> Result<(), Box<dyn Error>> {
    let device = nnhal_reference::device();
    let listening = Listening::at(SOCKET.as_ref(), 0o600)?;
    let _server = Server::start(vec![Arc::clone(&device)], listening, Settings::default())?;
    Ok(nnhal_service::kernel::run(vec![device], None, Settings::default(), say)?)
}

/// A model that counts from its input on, and never ends by itself.
fn endless_model() -> Result<Model, Box<dyn Error>> {
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

fn endless() -> Result<(), Box<dyn Error>> {
    let options = PrepareOptions::default();
    let prepared = registered()?.prepare_model(&endless_model()?, HalVersion::V1_3, options)?;
    let mut request = RequestBuilder::new();
    request.input(&[0; 4]).output(4);
    let loop_timeout = Some(Duration::from_secs(3600));
    let options = ExecutionOptions { loop_timeout, ..ExecutionOptions::default() };
    prepared.execute(&request.build()?, &options).map_err(|failed| failed.error)?;
    Err("it has ended".into())
}

fn overhead() -> Result<(), Box<dyn Error>> {
    let mut graph = SubgraphBuilder::new();
    let input = graph.input("a", OperandSpec::tensor_float32([2]));
    let spec = OperandSpec::tensor_float32([2]);
    let output = graph.operation(OperationType::Relu, [input], spec);
    graph.output(output);
    let model = graph.into_model()?;
    let ways = [
        ("in the process", nnhal_reference::device()),
        ("over the socket", nnhal_remote::open(&format!("unix:{SOCKET}"))?),
        ("over kernel binder", registered()?),
    ];
    let mut found = Vec::new();
    for (way, device) in ways {
        let prepared = device.prepare_model(&model, HalVersion::V1_0, PrepareOptions::default())?;
        let mut request = RequestBuilder::new();
        request.input(&[0; 8]).output(8);
        let request = request.build()?;
        let mut took = Vec::new();
        for _ in 0..2000 {
            let since = Instant::now();
            let executed = prepared.execute(&request, &ExecutionOptions::default());
            executed.map_err(|failed| failed.error)?;
            took.push(since.elapsed());
        }
        took.sort_unstable();
        found.push(format!("{way} {:.1} us", took[took.len() / 2].as_secs_f64() * 1e6));
    }
    // What the caller reads.
    writeln!(std::io::stdout(), "median of an execution: {}", found.join(", "))?;
    Ok(())
}
