//! What the tests share: a model, a device that takes its time, and processes of their own.
#![allow(dead_code, missing_docs, reason = "each test uses a part")]

use nnhal_hal::{
    BufferDescription, CacheFilesNeeded, Capabilities, Device, DeviceType, Execution,
    ExecutionError, ExecutionOptions, FencedExecution, FusedActivation, HalVersion, Memory, Model,
    ModelBuilder, OperandSpec, OperationType, PrepareOptions, PreparedModel, Request,
    RequestBuilder, SubgraphBuilder, Support, SyncFence,
};
use nnhal_service::{Server, Settings, listening::Listening};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The sum of two tensors of two floats.
pub fn model() -> Model {
    let mut graph = SubgraphBuilder::new();
    let a = graph.input("a", OperandSpec::tensor_float32([2]));
    let b = graph.input("b", OperandSpec::tensor_float32([2]));
    let none = graph.scalar_i32(FusedActivation::None.code());
    let sum = graph.operation(OperationType::Add, [a, b, none], OperandSpec::tensor_float32([2]));
    graph.output(sum);
    graph.into_model().expect("a complete model")
}

/// A model that never ends by itself.
pub fn endless_model() -> Model {
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
    builder.build(graph).expect("a complete model")
}

/// This number of operations in a row.
pub fn long_model(operations: usize) -> Model {
    let mut graph = SubgraphBuilder::new();
    let mut last = graph.input("a", OperandSpec::tensor_float32([1]));
    for _ in 0..operations {
        last = graph.operation(OperationType::Relu, [last], OperandSpec::tensor_float32([1]));
    }
    graph.output(last);
    graph.into_model().expect("a complete model")
}

pub fn request() -> Request {
    let mut request = RequestBuilder::new();
    request.input(&[1.0_f32.to_le_bytes(), 2.0_f32.to_le_bytes()].concat());
    request.input(&[3.0_f32.to_le_bytes(), 4.0_f32.to_le_bytes()].concat());
    request.output(8);
    request.build().expect("a request")
}

pub fn prepare(device: &dyn Device) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
    device.prepare_model(&model(), HalVersion::V1_3, PrepareOptions::default())
}

pub fn execute(prepared: &dyn PreparedModel, request: &Request) -> nnhal_hal::Result<Vec<u8>> {
    let options = ExecutionOptions::default();
    prepared.execute(request, &options).map_err(|failed| failed.error)?;
    RequestBuilder::read_output(request, 0)
}

pub fn sum() -> Vec<u8> {
    [4.0_f32.to_le_bytes(), 6.0_f32.to_le_bytes()].concat()
}

/// The reference device, which takes a time for everything that takes time.
pub struct Slow {
    pub device: Arc<dyn Device>,
    pub preparing: Duration,
    pub executing: Duration,
}

struct SlowModel(Arc<dyn PreparedModel>, Duration);

impl Device for Slow {
    fn name(&self) -> &str {
        "test-slow"
    }
    fn version_string(&self) -> String {
        "1".to_owned()
    }
    fn device_type(&self) -> DeviceType {
        DeviceType::Cpu
    }
    fn capabilities(&self) -> Capabilities {
        self.device.capabilities()
    }
    fn cache_files_needed(&self) -> CacheFilesNeeded {
        self.device.cache_files_needed()
    }
    fn supported_operations(
        &self,
        model: &Model,
        version: HalVersion,
    ) -> nnhal_hal::Result<Vec<Support>> {
        std::thread::sleep(self.preparing);
        self.device.supported_operations(model, version)
    }
    fn prepare_model(
        &self,
        model: &Model,
        version: HalVersion,
        options: PrepareOptions,
    ) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
        std::thread::sleep(self.preparing);
        let prepared = self.device.prepare_model(model, version, options)?;
        Ok(Arc::new(SlowModel(prepared, self.executing)))
    }
    fn allocate(
        &self,
        description: &BufferDescription,
    ) -> nnhal_hal::Result<Arc<dyn nnhal_hal::Buffer>> {
        let mut inner = description.clone();
        for model in &mut inner.prepared_models {
            let any: &dyn std::any::Any = &**model;
            let slow = any.downcast_ref::<SlowModel>().expect("one of ours");
            *model = Arc::clone(&slow.0);
        }
        std::thread::sleep(self.executing);
        self.device.allocate(&inner)
    }
}

impl PreparedModel for SlowModel {
    fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Result<Execution, ExecutionError> {
        std::thread::sleep(self.1);
        self.0.execute(request, options)
    }
    fn execute_fenced(
        &self,
        request: &Request,
        wait_for: &[SyncFence],
        options: &ExecutionOptions,
        timeout: Option<Duration>,
    ) -> nnhal_hal::Result<FencedExecution> {
        self.0.execute_fenced(request, wait_for, options, timeout)
    }
    fn client(&self) -> nnhal_hal::Client {
        self.0.client()
    }
    fn configure_burst(&self) -> nnhal_hal::Result<Box<dyn nnhal_hal::Burst>> {
        self.0.configure_burst()
    }
}

pub fn server(path: &Path, settings: Settings) -> Arc<Server> {
    let listening = Listening::at(path, 0o600).expect("a socket");
    Server::start(vec![nnhal_reference::device()], listening, settings).expect("a service")
}

pub fn slow_server(path: &Path, preparing: u64, executing: u64) -> Arc<Server> {
    let device = Slow {
        device: nnhal_reference::device(),
        preparing: Duration::from_millis(preparing),
        executing: Duration::from_millis(executing),
    };
    let listening = Listening::at(path, 0o600).expect("a socket");
    Server::start(vec![Arc::new(device)], listening, Settings::default()).expect("a service")
}

/// Runs another test of this program in a process of its own, with what `what` says, and waits until it
/// says that it is ready.
pub struct Process {
    child: Child,
    pub lines: BufReader<std::process::ChildStdout>,
}

pub const TASK: &str = "NNHAL_TEST_TASK";

impl Process {
    pub fn start(test: &str, what: &str) -> Self {
        let mut process = Self::spawn(test, what);
        process.wait_for("ready");
        process
    }

    /// Without waiting until it is ready.
    pub fn spawn(test: &str, what: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", test, "--nocapture"])
            .env(TASK, what)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let lines = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, lines }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        while self.lines.read_line(&mut line).expect("a line") > 0 {
            if line.contains(word) {
                return;
            }
            line.clear();
        }
        panic!("the process ended before it said {word}");
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("to kill");
        self.child.wait().expect("its end");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The task of a process, where this is one.
pub fn task() -> Option<(String, PathBuf)> {
    let task = std::env::var(TASK).ok()?;
    let (what, path) = task.split_once(' ')?;
    Some((what.to_owned(), PathBuf::from(path)))
}

pub fn say(word: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{word}").and_then(|()| out.flush()).expect("an output");
}

pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("descriptors").count()
}

pub fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("threads").count()
}

/// Waits at most so long until something holds.
pub fn within(time: Duration, holds: impl Fn() -> bool) -> bool {
    let until = Instant::now() + time;
    while Instant::now() < until {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    holds()
}

/// Memory with these bytes that can shrink.
pub fn unsealed(bytes: &[u8]) -> (Memory, std::fs::File) {
    let file = tempfile::tempfile().expect("a file");
    std::io::Write::write_all(&mut &file, bytes).expect("to write");
    let fd = file.try_clone().expect("a descriptor").into();
    let protection = nnhal_hal::memory::Protection::READ_WRITE;
    let memory = Memory::from_file(fd, protection, 0, bytes.len() as u64).expect("memory");
    (memory, file)
}
