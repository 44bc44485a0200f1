//! How long an execution of one operation takes, beside the same in the process: of use only for a comparison within one
//! machine, since what is emulated has no speed of its own.

use nnhal_hal::{
    Device, ExecutionOptions, HalVersion, OperandSpec, OperationType, PrepareOptions,
    RequestBuilder, SubgraphBuilder,
};
use nnhal_hidl::client::Options;
use nnhal_hidl_binder::client;
use nnhal_hwbinder::Process;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

const EXECUTIONS: usize = 2000;

/// Prints the median of each way.
pub fn run(process: &Arc<Process>, name: &str) -> Result<(), Box<dyn Error>> {
    let mut graph = SubgraphBuilder::new();
    let input = graph.input("a", OperandSpec::tensor_float32([2]));
    let spec = OperandSpec::tensor_float32([2]);
    let output = graph.operation(OperationType::Relu, [input], spec);
    graph.output(output);
    let model = graph.into_model()?;
    let mut request = RequestBuilder::new();
    request.input(&[0; 8]).output(8);
    let request = request.build()?;
    let options = ExecutionOptions::default();
    let ways: [(&str, Arc<dyn Device>); 2] = [
        ("in the process", nnhal_reference::device()),
        ("over hwbinder", client::open(process, name, Options::default())?),
    ];
    let mut found = Vec::new();
    for (way, device) in ways {
        let prepared = device.prepare_model(&model, HalVersion::V1_0, PrepareOptions::default())?;
        let call = || prepared.execute(&request, &options).map(drop).map_err(|failed| failed.error);
        found.push(format!("{way} {:.1} us", median(call)?));
        let burst = prepared.configure_burst()?;
        let call = || burst.execute(&request, false).map(drop).map_err(|failed| failed.error);
        found.push(format!("{way} by a burst {:.1} us", median(call)?));
    }
    println!("median of an execution: {}", found.join(", "));
    Ok(())
}

/// The median of what a call takes, in microseconds.
fn median(call: impl Fn() -> nnhal_hal::Result<()>) -> nnhal_hal::Result<f64> {
    let mut took = Vec::with_capacity(EXECUTIONS);
    for _ in 0..EXECUTIONS {
        let since = Instant::now();
        call()?;
        took.push(since.elapsed());
    }
    took.sort_unstable();
    let median = took.get(EXECUTIONS / 2).copied().unwrap_or(Duration::ZERO);
    Ok(median.as_secs_f64() * 1e6)
}
