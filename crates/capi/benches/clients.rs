//! Throughput of the C library with several client threads: each runs executions of its own, one after
//! the other, of one compilation of MobileNet v1 (224 x 224, float32, made-up weights).
//!
//! ```text
//! cargo bench -p nnhal-capi --bench clients -- [SECONDS]
//! ```
//!
//! `NNHAL_THREADS` says how many threads an execution uses.
#![allow(clippy::print_stdout)] // What it is for.
#![allow(unsafe_code, reason = "the functions of a C library")]
#![allow(clippy::cast_possible_wrap, reason = "C has signed numbers; these are small")]

#[path = "../tests/c/mod.rs"]
mod c;

use c::*;
use std::ffi::c_void;
use std::ptr::null;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const CONV_2D: i32 = 3;
const DEPTHWISE_CONV_2D: i32 = 4;
const AVERAGE_POOL_2D: i32 = 1;
const SAME: i32 = 1;
const VALID: i32 = 2;
const RELU6: i32 = 3;
const CLASSES: u32 = 1001;

/// A model that grows at its end.
struct Network {
    model: Handle,
    operands: u32,
    /// Height, width and channels of the last operand.
    shape: [u32; 3],
    last: u32,
    /// What the model refers to until it is finished.
    constants: Vec<Vec<f32>>,
}

impl Network {
    fn add(&mut self, kind: &OperandType) -> u32 {
        works(ANeuralNetworksModel_addOperand(self.model, kind));
        self.operands += 1;
        self.operands - 1
    }

    fn number(&mut self, value: i32) -> u32 {
        let index = self.add(&scalar(INT32));
        let bytes: *const c_void = (&raw const value).cast();
        works(ANeuralNetworksModel_setOperandValue(self.model, index as i32, bytes, 4));
        index
    }

    fn weights(&mut self, dimensions: &[u32]) -> u32 {
        let index = self.add(&tensor(TENSOR_FLOAT32, dimensions));
        let count = dimensions.iter().product::<u32>();
        let fan_in = count / dimensions[0].max(1);
        let scale = 1.0 / (fan_in.max(1) as f32).sqrt();
        let value = |at: u32| (at.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 24) as f32 - 0.5;
        let values: Vec<f32> = (0..count).map(|at| value(at) * scale).collect();
        let (bytes, length) = (bytes_of(&values), 4 * values.len());
        works(ANeuralNetworksModel_setOperandValue(self.model, index as i32, bytes, length));
        self.constants.push(values);
        index
    }

    fn operation(&mut self, code: i32, inputs: &[u32], shape: [u32; 3]) {
        let [height, width, channels] = shape;
        let output = self.add(&tensor(TENSOR_FLOAT32, &[1, height, width, channels]));
        let count = u32::try_from(inputs.len()).unwrap();
        let (inputs, outputs) = (inputs.as_ptr(), [output]);
        works(ANeuralNetworksModel_addOperation(
            self.model,
            code,
            count,
            inputs,
            1,
            outputs.as_ptr(),
        ));
        (self.last, self.shape) = (output, shape);
    }

    fn convolution(&mut self, size: u32, stride: u32, channels: u32, activation: i32) {
        let [height, width, before] = self.shape;
        let filter = self.weights(&[channels, size, size, before]);
        let bias = self.weights(&[channels]);
        let numbers = [SAME, stride as i32, stride as i32, activation].map(|it| self.number(it));
        let [padding, across, down, activation] = numbers;
        let inputs = [self.last, filter, bias, padding, across, down, activation];
        let shape = [height.div_ceil(stride), width.div_ceil(stride), channels];
        self.operation(CONV_2D, &inputs, shape);
    }

    fn depthwise(&mut self, stride: u32) {
        let [height, width, channels] = self.shape;
        let filter = self.weights(&[1, 3, 3, channels]);
        let bias = self.weights(&[channels]);
        let numbers = [SAME, stride as i32, stride as i32, 1, RELU6].map(|it| self.number(it));
        let [padding, across, down, multiplier, activation] = numbers;
        let inputs = [self.last, filter, bias, padding, across, down, multiplier, activation];
        let shape = [height.div_ceil(stride), width.div_ceil(stride), channels];
        self.operation(DEPTHWISE_CONV_2D, &inputs, shape);
    }

    fn average(&mut self) {
        let [height, width, channels] = self.shape;
        let sizes = [width as i32, height as i32];
        let numbers = [VALID, 1, 1, sizes[0], sizes[1], 0].map(|it| self.number(it));
        let mut inputs = vec![self.last];
        inputs.extend(numbers);
        self.operation(AVERAGE_POOL_2D, &inputs, [1, 1, channels]);
    }
}

fn mobilenet() -> Handle {
    let model = made(|model| ANeuralNetworksModel_create(model));
    let mut network =
        Network { model, operands: 0, shape: [224, 224, 3], last: 0, constants: Vec::new() };
    network.add(&tensor(TENSOR_FLOAT32, &[1, 224, 224, 3]));
    network.convolution(3, 2, 32, RELU6);
    let blocks = [
        (1, 64),
        (2, 128),
        (1, 128),
        (2, 256),
        (1, 256),
        (2, 512),
        (1, 512),
        (1, 512),
        (1, 512),
        (1, 512),
        (1, 512),
        (2, 1024),
        (1, 1024),
    ];
    for (stride, channels) in blocks {
        network.depthwise(stride);
        network.convolution(1, 1, channels, RELU6);
    }
    network.average();
    network.convolution(1, 1, CLASSES, 0);
    let (input, output) = ([0], [network.last]);
    let (input, output) = (input.as_ptr(), output.as_ptr());
    works(ANeuralNetworksModel_identifyInputsAndOutputs(model, 1, input, 1, output));
    works(ANeuralNetworksModel_finish(model));
    model
}

/// Executions in a second, of `clients` clients together.
fn throughput(compilation: Handle, clients: usize, time: Duration) -> f64 {
    let (runs, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let compilation = compilation.addr();
    let client = || {
        let input = vec![0.5_f32; 224 * 224 * 3];
        let mut output = vec![0.0_f32; CLASSES as usize];
        let length = 4 * output.len();
        let execution = execution(std::ptr::without_provenance_mut(compilation));
        works(ANeuralNetworksExecution_setReusable(execution, true));
        let (from, bytes) = (bytes_of(&input), 4 * input.len());
        works(ANeuralNetworksExecution_setInput(execution, 0, null(), from, bytes));
        let to = room_of(&mut output);
        works(ANeuralNetworksExecution_setOutput(execution, 0, null(), to, length));
        while !is_over.load(Ordering::Relaxed) {
            works(ANeuralNetworksExecution_compute(execution));
            runs.fetch_add(1, Ordering::Relaxed);
        }
        ANeuralNetworksExecution_free(execution);
    };
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(client);
        }
        std::thread::sleep(time / 4);
        let (before, begun) = (runs.load(Ordering::Relaxed), Instant::now());
        std::thread::sleep(time);
        let done = runs.load(Ordering::Relaxed) - before;
        let rate = done as f64 / begun.elapsed().as_secs_f64();
        is_over.store(true, Ordering::Relaxed);
        rate
    })
}

fn main() {
    let seconds = std::env::args().skip(1).find_map(|it| it.parse().ok()).unwrap_or(3.0);
    let time = Duration::from_secs_f64(seconds);
    let compilation = compilation(mobilenet());
    for round in 1..=3 {
        for clients in [1, 2, 4] {
            let rate = throughput(compilation, clients, time);
            println!("round {round}: {clients} clients, {rate:.1} executions a second");
        }
    }
}
