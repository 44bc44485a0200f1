//! Executions of one prepared model, many at a time.

mod support;

use nnhal_cpu::{CpuProgram, Settings};
use nnhal_driver::{Bindings, EngineError, ObservedOutput, Observer, Program, RunContext};
use nnhal_hal::Device;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;
use support::{AT_ONCE, Around, Numbers, execute, instrumented_device, network, prepare};

/// How long executions wait for each other before they give up: a test that fails must end.
const TIMEOUT: Duration = Duration::from_secs(60);

fn settings(threads: usize) -> Settings {
    let threads = NonZeroUsize::new(threads).expect("a number above 0");
    Settings::default().with_threads(threads)
}

/// A place where executions meet: no one goes on before as many as are expected are there.
#[derive(Default)]
struct Meeting {
    there: Mutex<usize>,
    changed: Condvar,
    /// Who gave up.
    alone: AtomicUsize,
}

impl Meeting {
    fn wait_for(&self, expected: usize) {
        let mut there = self.there.lock().unwrap();
        *there += 1;
        self.changed.notify_all();
        let waited = self.changed.wait_timeout_while(there, TIMEOUT, |it| *it < expected);
        if waited.unwrap().1.timed_out() {
            self.alone.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Stops an execution after its first step until all others have come as far.
struct MeetsOnce<'a> {
    meeting: &'a Meeting,
    steps: AtomicUsize,
}

impl Observer for MeetsOnce<'_> {
    fn output(&self, _: &ObservedOutput<'_>) {
        if self.steps.fetch_add(1, Ordering::Relaxed) == 0 {
            self.meeting.wait_for(AT_ONCE);
        }
    }
}

/// Lets executions meet in the middle of their plan.
struct MeetInside(Arc<Meeting>);

impl Around for MeetInside {
    fn run(
        &self,
        program: &CpuProgram,
        bindings: &Bindings,
        context: &RunContext<'_>,
    ) -> Result<(), EngineError> {
        let watch = MeetsOnce { meeting: &self.0, steps: AtomicUsize::new(0) };
        program.run(bindings, &RunContext { observer: Some(&watch), ..*context })
    }
}

#[test]
fn executions_of_one_prepared_model_do_not_wait_for_each_other() {
    for (threads, is_open) in [(1, false), (2, false), (1, true)] {
        let meeting = Arc::new(Meeting::default());
        let device =
            instrumented_device(settings(threads), Arc::new(MeetInside(Arc::clone(&meeting))));
        let network = network(Numbers::Float32, is_open, 1);
        let prepared = prepare(&*device, &network.model);
        thread::scope(|scope| {
            for seed in 0..AT_ONCE {
                let request = network.request(Numbers::Float32, u32::try_from(seed).unwrap());
                let prepared = &*prepared;
                scope.spawn(move || execute(prepared, &request));
            }
        });
        assert_eq!(*meeting.there.lock().unwrap(), AT_ONCE, "an execution had no steps");
        assert_eq!(meeting.alone.load(Ordering::Relaxed), 0, "executions waited for others' end");
    }
}

/// Runs requests of different dimensions and values from eight threads at once, on one prepared
/// model, in another order in each thread.
fn run_from_eight_threads(device: &dyn Device, kind: Numbers, batches: &[u32]) {
    let reference = nnhal_reference::device();
    let cases: Vec<_> = batches
        .iter()
        .zip(0..)
        .map(|(batch, seed)| {
            let network = network(kind, batches.len() > 1, *batch);
            let request = network.request(kind, seed);
            execute(&*prepare(&*reference, &network.model), &request);
            let expected = network.output(&request);
            (network, seed, expected)
        })
        .collect();
    let prepared = prepare(device, &cases[0].0.model);
    thread::scope(|scope| {
        for thread in 0..8 {
            let (cases, prepared) = (&cases, &*prepared);
            scope.spawn(move || {
                for round in 0..3 * cases.len().max(8) {
                    // Steps that have no factor in common with 12 or 1.
                    let at = (thread + round * (2 * thread + 5)) % cases.len();
                    let (network, seed, expected) = &cases[at];
                    let request = network.request(kind, *seed);
                    execute(prepared, &request);
                    let found = network.output(&request);
                    assert!(
                        network.is_same(expected, &found),
                        "batch {}, thread {thread}, round {round}",
                        network.input[0]
                    );
                }
            });
        }
    });
}

#[test]
fn results_are_right_from_eight_threads() {
    for threads in [1, 2, 3] {
        let device = nnhal_cpu::device(settings(threads));
        for kind in [Numbers::Float32, Numbers::Signed] {
            run_from_eight_threads(&*device, kind, &[1]);
        }
    }
}

#[test]
fn more_shapes_than_plans_are_kept_from_eight_threads() {
    let batches: Vec<u32> = (1..=12).collect();
    for threads in [1, 2] {
        let device = nnhal_cpu::device(settings(threads));
        for kind in [Numbers::Float32, Numbers::Signed] {
            run_from_eight_threads(&*device, kind, &batches);
        }
    }
}
