//! Preparing models beside executions (contract: CONC-4). A process of its own, because it measures.

mod engine;

use engine::{Scripted, execute, relu, request_with_room, vector};
use nnhal_driver::EngineError;
use nnhal_hal::{Device, HalVersion, PrepareOptions, PreparedModel};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What the contract allows an execution to be late by besides: what the operating system lets a
/// thread compute before it looks at others, and a tick of its clock.
const SLICE: Duration = Duration::from_millis(4);

/// Floats that a preparation packs again and again: more than the caches hold.
const WEIGHTS: usize = 1 << 21;

/// As packing weights does: reads one way and writes another, all of it computed.
fn pack(weights: &[f32], packed: &mut [f32]) {
    let rows = 1 << 10;
    let columns = weights.len() / rows;
    for column in 0..columns {
        for row in 0..rows {
            packed[column * rows + row] = weights[row * columns + column] * 0.5 + 1.0;
        }
    }
}

/// About a millisecond of arithmetic that stays in registers and the first cache.
fn small_execution(value: f32) -> f32 {
    let mut sums = [value; 16];
    for index in 0..60_000_u16 {
        for sum in &mut sums {
            *sum = *sum * 0.999 + f32::from(index);
        }
    }
    sums.iter().sum()
}

/// Compiling packs for about half a second and asks its budget as little as engines do.
fn engine(packed_now: &'static AtomicUsize) -> Scripted {
    Scripted::running(|bindings, context| {
        context.budget.check()?;
        let sum = small_execution(1.0);
        let bytes: Vec<u8> = [sum, sum].iter().flat_map(|it| it.to_le_bytes()).collect();
        Ok(bindings.outputs()[0].deliver(&[2], &bytes)?)
    })
    .compiling(move |_, _, budget| {
        let weights = vec![1.0_f32; WEIGHTS];
        let mut packed = vec![0.0_f32; WEIGHTS];
        for _ in 0..40 {
            budget.check()?;
            pack(&weights, &mut packed);
            packed_now.fetch_add(1, Ordering::Relaxed);
        }
        let sum: f32 = packed.iter().sum();
        if sum.is_nan() { Err(EngineError::Other(nnhal_hal::Error::failure("no"))) } else { Ok(()) }
    })
}

/// The time that 99 of 100 executions stay below; of fewer executions if they take too long.
fn percentile_99(prepared: &dyn PreparedModel) -> Duration {
    let request = request_with_room(8);
    let (begun, mut times) = (Instant::now(), Vec::new());
    while times.len() < 400 && begun.elapsed() < Duration::from_secs(4) {
        let begin = Instant::now();
        execute(prepared, &request).unwrap();
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    times[(times.len() - 1) * 99 / 100]
}

/// Other processes use the same processors while tests run, so one good round of several is enough:
/// were executions to wait for preparations, no round would be good.
#[test]
fn conc_4_executions_go_on_while_large_models_are_prepared_all_the_time() {
    static PACKED: AtomicUsize = AtomicUsize::new(0);
    let device = engine(&PACKED).device();
    let model = relu(vector(2), vector(2));
    let prepare = || device.prepare_model(&model, HalVersion::V1_3, PrepareOptions::default());
    let prepared = prepare().unwrap();
    let mut rounds = Vec::new();
    for _ in 0..8 {
        let quiet = percentile_99(&*prepared);
        let over = AtomicBool::new(false);
        let before = PACKED.load(Ordering::Relaxed);
        let busy = std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        prepare().unwrap();
                    }
                });
            }
            while PACKED.load(Ordering::Relaxed) == before {
                std::thread::yield_now();
            }
            let busy = percentile_99(&*prepared);
            over.store(true, Ordering::Relaxed);
            busy
        });
        assert!(PACKED.load(Ordering::Relaxed) > before + 1, "nothing was prepared meanwhile");
        rounds.push((quiet, busy));
        if busy <= quiet * 2 + SLICE {
            eprintln!("99th percentile, quiet and while preparing: {rounds:?}");
            return;
        }
    }
    panic!("99th percentile, quiet and while preparing: {rounds:?}");
}
