//! What a burst costs over a direct call of the same prepared model: a model of one operation, a
//! sum of four numbers, that computes next to nothing.
//!
//! `direct` is the model alone, `burst` the round trip through both queues in close succession.
//! `burst_after_a_pause` finds the service's thread asleep, as the first request of a burst does.
//! The difference between `burst` and `direct` is to stay below 20 microseconds.
//!
//!     cargo bench -p nnhal-burst

use divan::Bencher;
use nnhal_hal::{
    Burst, DataLocation, Error, Execution, ExecutionError, ExecutionOptions, Memory, OutputShape,
    PreparedModel, Request, RequestArgument, RequestMemoryPool, Timing,
};
use std::sync::Arc;
use std::time::Duration;

fn main() {
    divan::main();
}

const BYTES: u32 = 16;

/// `output = input 0 + input 1`, four floats each.
struct Sum;

impl PreparedModel for Sum {
    fn execute(
        &self,
        request: &Request,
        _options: &ExecutionOptions,
    ) -> Result<Execution, ExecutionError> {
        let RequestMemoryPool::Memory(memory) = &request.pools[0] else {
            return Err(Error::invalid("a token").into());
        };
        let view = memory.view().map_err(Error::from)?;
        let read = |index: usize| -> nnhal_hal::Result<[f32; 4]> {
            let mut bytes = [0; BYTES as usize];
            view.read(request.inputs[index].location.offset.into(), &mut bytes)
                .map_err(Error::from)?;
            let (floats, _) = bytes.as_chunks();
            Ok([0, 1, 2, 3].map(|at| f32::from_le_bytes(floats[at])))
        };
        let (left, right) = (read(0)?, read(1)?);
        let mut output = [0; BYTES as usize];
        for (at, bytes) in output.as_chunks_mut().0.iter_mut().enumerate() {
            *bytes = (left[at] + right[at]).to_le_bytes();
        }
        view.write(request.outputs[0].location.offset.into(), &output).map_err(Error::from)?;
        let output_shapes = vec![OutputShape { dimensions: vec![4], is_sufficient: true }];
        Ok(Execution { output_shapes, timing: Timing::NONE })
    }
}

fn request() -> Request {
    let bytes: Vec<u8> = [1_f32, 2.0, 3.0, 4.0, 10.0, 20.0, 30.0, 40.0, 0.0, 0.0, 0.0, 0.0]
        .into_iter()
        .flat_map(f32::to_le_bytes)
        .collect();
    let memory = Memory::from_bytes(&bytes).expect("memory");
    let at = |index| {
        let location = DataLocation { pool_index: 0, offset: index * BYTES, length: BYTES };
        RequestArgument::at(location)
    };
    Request {
        inputs: vec![at(0), at(1)],
        outputs: vec![at(2)],
        pools: vec![RequestMemoryPool::Memory(memory)],
    }
}

/// A fast wrong answer is none.
fn check(request: &Request) {
    let RequestMemoryPool::Memory(memory) = &request.pools[0] else { unreachable!() };
    let output = memory.view().and_then(|view| view.read_to_vec(32, 16)).expect("output");
    let expected: Vec<u8> =
        [11_f32, 22.0, 33.0, 44.0].into_iter().flat_map(f32::to_le_bytes).collect();
    assert_eq!(output, expected);
}

#[divan::bench]
fn direct(bencher: Bencher) {
    let (prepared, request) = (Sum, request());
    let options = ExecutionOptions::default();
    bencher.bench(|| prepared.execute(&request, &options).expect("an execution"));
    check(&request);
}

#[divan::bench]
fn burst(bencher: Bencher) {
    let (burst, request) = (nnhal_burst::open(Arc::new(Sum)).expect("a burst"), request());
    bencher.bench(|| burst.execute(&request, false).expect("an execution"));
    check(&request);
}

#[divan::bench(sample_count = 200, sample_size = 1)]
fn burst_after_a_pause(bencher: Bencher) {
    let (burst, request) = (nnhal_burst::open(Arc::new(Sum)).expect("a burst"), request());
    let pause = || std::thread::sleep(Duration::from_millis(2));
    bencher.with_inputs(pause).bench_values(|()| {
        burst.execute(&request, false).expect("an execution");
    });
    check(&request);
}

/// Both queues, the thread, and their end.
#[divan::bench(sample_count = 100, sample_size = 1)]
fn open_and_drop() {
    drop(nnhal_burst::open(Arc::new(Sum)).expect("a burst"));
}
