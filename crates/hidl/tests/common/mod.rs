//! Models that several tests run, and callbacks that write down what they are notified of.
#![allow(dead_code)] // Not every test uses everything.

use nnhal_hal::{
    FusedActivation, HalVersion, Memory, Model, ModelBuilder, OperandSpec, OperandType,
    OperationType, Request, RequestBuilder, SubgraphBuilder,
};
use nnhal_hidl::v1_2::{OutputShape, Timing};
use nnhal_hidl::{Return, v1_0, v1_2, v1_3};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Longer than anything here takes, on however slow a machine.
pub const LONG: Duration = Duration::from_secs(60);

/// A model with what to feed it and what it must give.
pub struct Sample {
    pub name: &'static str,
    /// The oldest version that has all of it.
    pub since: HalVersion,
    pub model: Model,
    pub inputs: Vec<Vec<u8>>,
    pub output: Vec<u8>,
    pub output_dimensions: Vec<u32>,
}

impl Sample {
    /// A request with `length` bytes for the output.
    pub fn request_with_room(&self, length: usize) -> Request {
        let mut builder = RequestBuilder::new();
        for input in &self.inputs {
            builder.input(input);
        }
        builder.output(length).build().unwrap()
    }

    pub fn request(&self) -> Request {
        self.request_with_room(self.output.len())
    }

    pub fn assert_result(&self, request: &Request) {
        let found = RequestBuilder::read_output(request, 0).unwrap();
        assert_eq!(found[..self.output.len()], self.output, "{}", self.name);
    }
}

pub fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn ints(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// `y = x + c`, where `c` is a constant inside the model.
pub fn add_constant() -> Sample {
    let mut graph = SubgraphBuilder::new();
    let spec = OperandSpec::tensor_float32([1, 2]);
    let x = graph.input("x", spec.clone());
    let c = graph.constant(spec.clone(), &[10.0_f32, -1.0]);
    let none = graph.scalar_i32(FusedActivation::None.code());
    let y = graph.operation(OperationType::Add, [x, c, none], spec);
    graph.output(y);
    Sample {
        name: "add_constant",
        since: HalVersion::V1_0,
        model: graph.into_model().unwrap(),
        inputs: vec![floats(&[1.5, 2.5])],
        output: floats(&[11.5, 1.5]),
        output_dimensions: vec![1, 2],
    }
}

/// `y = x * c` of quantized bytes, where `c` is in a pool.
fn multiply_pool() -> Sample {
    let mut builder = ModelBuilder::new();
    let pool = builder.pool(Memory::from_bytes(&[0, 0, 4, 6]).unwrap());
    let mut graph = SubgraphBuilder::new();
    let spec = OperandSpec::tensor_quant8_asymm([2], 0.5, 0);
    let x = graph.input("x", spec.clone());
    let c = graph.constant_in_pool(spec, pool, 2, 2);
    let none = graph.scalar_i32(FusedActivation::None.code());
    let product = OperandSpec::tensor_quant8_asymm([2], 1.0, 0);
    let y = graph.operation(OperationType::Mul, [x, c, none], product);
    graph.output(y);
    Sample {
        name: "multiply_pool",
        since: HalVersion::V1_0,
        model: builder.build(graph).unwrap(),
        inputs: vec![vec![8, 10]],
        // 4.0 * 2.0 and 5.0 * 3.0, in steps of 1.
        output: vec![8, 15],
        output_dimensions: vec![2],
    }
}

/// `y = x - z`, relaxed.
fn relaxed_subtract() -> Sample {
    let mut graph = SubgraphBuilder::new();
    let spec = OperandSpec::tensor_float32([2]);
    let x = graph.input("x", spec.clone());
    let z = graph.input("z", spec.clone());
    let none = graph.scalar_i32(FusedActivation::None.code());
    let y = graph.operation(OperationType::Sub, [x, z, none], spec);
    graph.output(y);
    Sample {
        name: "relaxed_subtract",
        since: HalVersion::V1_1,
        model: ModelBuilder::new().relaxed(true).build(graph).unwrap(),
        inputs: vec![floats(&[3.0, 4.0]), floats(&[1.0, 8.0])],
        output: floats(&[2.0, -4.0]),
        output_dimensions: vec![2],
    }
}

/// `y = |x|`, where no one says how long `y` is.
pub fn unknown_output() -> Sample {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([3]));
    let y = graph.operation(OperationType::Abs, [x], OperandSpec::tensor_float32([]));
    graph.output(y);
    Sample {
        name: "unknown_output",
        since: HalVersion::V1_2,
        model: graph.into_model().unwrap(),
        inputs: vec![floats(&[-1.0, 2.0, -3.0])],
        output: floats(&[1.0, 2.0, 3.0]),
        output_dimensions: vec![3],
    }
}

/// `y = c[0] ? x + x : x * x`
fn if_else() -> Sample {
    let spec = OperandSpec::tensor_float32([2]);
    let branch = |operation| {
        let mut graph = SubgraphBuilder::new();
        let x = graph.input("x", spec.clone());
        let none = graph.scalar_i32(FusedActivation::None.code());
        let y = graph.operation(operation, [x, x, none], spec.clone());
        graph.output(y);
        graph
    };
    let mut builder = ModelBuilder::new();
    let then = builder.reference(branch(OperationType::Add));
    let other = builder.reference(branch(OperationType::Mul));
    let mut graph = SubgraphBuilder::new();
    let c = graph.input("c", OperandSpec::tensor_bool8([1]));
    let x = graph.input("x", spec.clone());
    let (then, other) = (graph.subgraph(then), graph.subgraph(other));
    let y = graph.operation(OperationType::If, [c, then, other, x], spec);
    graph.output(y);
    Sample {
        name: "if_else",
        since: HalVersion::V1_3,
        model: builder.build(graph).unwrap(),
        inputs: vec![vec![0], floats(&[3.0, 4.0])],
        output: floats(&[9.0, 16.0]),
        output_dimensions: vec![2],
    }
}

/// `while i < limit { i = i + step }`
fn counting(limit: i32, step: i32) -> Model {
    let spec = OperandSpec::tensor_int32([1]);
    let mut condition = SubgraphBuilder::new();
    let i = condition.input("i", spec.clone());
    let most = condition.constant(spec.clone(), &[limit]);
    let less = OperandSpec::tensor_bool8([1]);
    let goes_on = condition.operation(OperationType::Less, [i, most], less);
    condition.output(goes_on);
    let mut body = SubgraphBuilder::new();
    let i = body.input("i", spec.clone());
    let one = body.constant(spec.clone(), &[step]);
    let none = body.scalar_i32(FusedActivation::None.code());
    let next = body.operation(OperationType::Add, [i, one, none], spec.clone());
    body.output(next);
    let mut builder = ModelBuilder::new();
    let (condition, body) = (builder.reference(condition), builder.reference(body));
    let mut graph = SubgraphBuilder::new();
    let i = graph.input("i", spec.clone());
    let (condition, body) = (graph.subgraph(condition), graph.subgraph(body));
    let end = graph.operation(OperationType::While, [condition, body, i], spec);
    graph.output(end);
    builder.build(graph).unwrap()
}

fn while_loop() -> Sample {
    Sample {
        name: "while_loop",
        since: HalVersion::V1_3,
        model: counting(7, 2),
        inputs: vec![ints(&[0])],
        output: ints(&[8]),
        output_dimensions: vec![1],
    }
}

/// A WHILE that never ends by itself.
pub fn endless() -> Sample {
    Sample {
        name: "endless",
        since: HalVersion::V1_3,
        model: counting(1, 0),
        inputs: vec![ints(&[0])],
        output: ints(&[0]),
        output_dimensions: vec![1],
    }
}

/// One of every kind.
pub fn samples() -> Vec<Sample> {
    vec![
        add_constant(),
        multiply_pool(),
        relaxed_subtract(),
        unknown_output(),
        if_else(),
        while_loop(),
    ]
}

/// A model that is valid and that no device of ours can run.
pub fn unsupported() -> Model {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([1]));
    let y = graph.operation(OperationType::OemOperation, [x], OperandSpec::tensor_float32([1]));
    graph.output(y);
    graph.into_model().unwrap()
}

/// A model of words that every version has and that none allows: one consumer too many.
pub fn invalid() -> Model {
    let mut model = add_constant().model;
    model.main.operands[0].number_of_consumers += 1;
    model
}

/// A model of 1.2 in its operand types.
pub fn model_of_1_2() -> Model {
    let mut graph = SubgraphBuilder::new();
    let spec = OperandSpec::new(OperandType::TensorFloat16, [2]);
    let x = graph.input("x", spec.clone());
    let y = graph.operation(OperationType::Relu, [x], spec);
    graph.output(y);
    graph.into_model().unwrap()
}

/// Writes down what it is notified of.
pub struct Notified<T> {
    notified: Mutex<Vec<T>>,
    changed: Condvar,
}

impl<T> Default for Notified<T> {
    fn default() -> Self {
        Self { notified: Mutex::default(), changed: Condvar::new() }
    }
}

impl<T> Notified<T> {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    fn put(&self, what: T) -> Return<()> {
        self.notified.lock().unwrap().push(what);
        self.changed.notify_all();
        Ok(())
    }

    /// How often it was notified by now.
    pub fn count(&self) -> usize {
        self.notified.lock().unwrap().len()
    }

    /// The only notification. Whatever came second would be seen only for a moment, so no one
    /// else may hold it any more: then nothing can come.
    pub fn only(self: Arc<Self>) -> T {
        let notified = self.notified.lock().unwrap();
        let (notified, timeout) = self
            .changed
            .wait_timeout_while(notified, LONG, |notified| notified.is_empty())
            .unwrap();
        assert!(!timeout.timed_out(), "never notified");
        drop(notified);
        let begin = std::time::Instant::now();
        while Arc::strong_count(&self) > 1 {
            assert!(begin.elapsed() < LONG, "the callback is kept");
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut notified = self.notified.lock().unwrap();
        assert_eq!(notified.len(), 1, "notified more than once");
        notified.pop().unwrap()
    }
}

/// A prepared model by the version of the method that reported it.
pub enum Model13 {
    V1_0(Arc<dyn v1_0::IPreparedModel>),
    V1_2(Arc<dyn v1_2::IPreparedModel>),
    V1_3(Arc<dyn v1_3::IPreparedModel>),
}

impl Model13 {
    /// As the newest version, by casting (contract: CB-4).
    pub fn newest(self) -> Arc<dyn v1_3::IPreparedModel> {
        match self {
            Self::V1_0(model) => model.cast().unwrap(),
            Self::V1_2(model) => (model as Arc<dyn v1_0::IPreparedModel>).cast().unwrap(),
            Self::V1_3(model) => model,
        }
    }
}

/// Status and prepared model.
pub type Prepared = (i32, Option<Model13>);

impl v1_0::IPreparedModelCallback for Notified<Prepared> {
    fn notify(&self, status: i32, model: Option<Arc<dyn v1_0::IPreparedModel>>) -> Return<()> {
        self.put((status, model.map(Model13::V1_0)))
    }
}

impl v1_2::IPreparedModelCallback for Notified<Prepared> {
    fn notify_1_2(&self, status: i32, model: Option<Arc<dyn v1_2::IPreparedModel>>) -> Return<()> {
        self.put((status, model.map(Model13::V1_2)))
    }
}

impl v1_3::IPreparedModelCallback for Notified<Prepared> {
    fn notify_1_3(&self, status: i32, model: Option<Arc<dyn v1_3::IPreparedModel>>) -> Return<()> {
        self.put((status, model.map(Model13::V1_3)))
    }
}

/// Status, and shapes and times unless reported by 1.0's method.
pub type Executed = (i32, Option<(Vec<OutputShape>, Timing)>);

impl v1_0::IExecutionCallback for Notified<Executed> {
    fn notify(&self, status: i32) -> Return<()> {
        self.put((status, None))
    }
}

impl v1_2::IExecutionCallback for Notified<Executed> {
    fn notify_1_2(&self, status: i32, shapes: &[OutputShape], timing: Timing) -> Return<()> {
        self.put((status, Some((shapes.to_vec(), timing))))
    }
}

impl v1_3::IExecutionCallback for Notified<Executed> {
    fn notify_1_3(&self, status: i32, shapes: &[OutputShape], timing: Timing) -> Return<()> {
        self.put((status, Some((shapes.to_vec(), timing))))
    }
}
