//! What a call costs beyond what the device does: a model of one operation of two numbers, run by the
//! device alone, by a runner, with inputs and outputs copied, and by a session.
//!
//! ```text
//! cargo bench -p nnhal --bench overhead
//! ```
#![allow(clippy::print_stdout)] // What it is for.

use nnhal::hal::{
    ExecutionOptions, HalVersion, OperandSpec, OperationType, PrepareOptions, RequestBuilder,
    SubgraphBuilder,
};
use nnhal::{Model, Outputs, RunOptions, SessionOptions};
use std::num::NonZeroUsize;
use std::time::Instant;

const CALLS: u32 = 20_000;

/// Prints the least time of a call over some rounds.
fn time(what: &str, mut call: impl FnMut()) {
    let mut least = f64::MAX;
    for _ in 0..10 {
        let begun = Instant::now();
        (0..CALLS / 10).for_each(|_| call());
        least = least.min(begun.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS / 10));
    }
    println!("{what:40} {least:8.0} ns");
}

fn main() -> nnhal::Result<()> {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([2]));
    let y = graph.operation(OperationType::Relu, [x], OperandSpec::tensor_float32([2]));
    graph.output(y);
    let model = Model::from_hal(graph.into_model()?)?;
    let device = nnhal::devices::open("nnhal-cpu", NonZeroUsize::new(1))?;
    let options = PrepareOptions::default();
    let prepared =
        device.prepare_model(model.hal(), HalVersion::LATEST, options).expect("a valid model");
    let mut request = RequestBuilder::new();
    request.input(&[0; 8]).output(8);
    let request = request.build().expect("a small request");
    let options = ExecutionOptions::default();
    time("device: execute", || drop(prepared.execute(&request, &options).expect("it runs")));

    let session = model.session(SessionOptions::new().on(device))?;
    let mut runner = session.runner()?;
    time("runner: run", || runner.run().expect("it runs"));
    let (input, mut bytes) = ([1.0_f32, -1.0], [0; 8]);
    time("runner: set_input, run, read_output", || {
        runner.set_input(0, &input).expect("it fits");
        runner.run().expect("it runs");
        runner.read_output_bytes(0, &mut bytes).expect("it fits");
    });
    let (mut outputs, options) = (Outputs::new(), RunOptions::default());
    time("session: run_into", || {
        session.run_into(&options, [&input], &mut outputs).expect("it runs");
    });
    time("session: run", || drop(session.run([&input]).expect("it runs")));
    Ok(())
}
