//! What an execution allocates: of a model whose shapes are known, nothing inside the program.
//!
//! The driver allocates for each request, before and after the program and when an output is
//! delivered: a program that does nothing but deliver tells how much that is. (With one input and
//! one output 8 times when this was last looked at, one of them by delivering.)
#![allow(clippy::print_stdout)] // What was counted.
#![allow(unsafe_code)] // A global allocator cannot be had without.

mod support;

use nnhal_cpu::{CpuProgram, Settings};
use nnhal_driver::{Bindings, EngineError, Prepared, Program, RunContext};
use std::alloc::{GlobalAlloc, Layout, System};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use support::{Around, Numbers, execute, instrumented_device, network, prepare};

/// Allocations of all threads, whoever they belong to.
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counting.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call is passed on to `System` as it is; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps to the contract of this function, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps to the contract of this function, which is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps to the contract of this function, which is the same.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps to the contract of this function, which is the same.
        unsafe { System.dealloc(place, layout) };
    }
}

/// Counts what is allocated while a program runs, or while its outputs are delivered without one.
#[derive(Default)]
struct Count {
    only_delivers: AtomicBool,
    inside: AtomicUsize,
    output: Vec<u32>,
    output_bytes: Vec<u8>,
}

impl Around for Count {
    fn run(
        &self,
        program: &CpuProgram,
        bindings: &Bindings,
        context: &RunContext<'_>,
    ) -> Result<(), EngineError> {
        let before = ALLOCATIONS.load(Ordering::SeqCst);
        let result = if self.only_delivers.load(Ordering::Relaxed) {
            let mut outputs = bindings.outputs().iter();
            outputs.try_for_each(|it| Ok(it.deliver(&self.output, &self.output_bytes)?))
        } else {
            program.run(bindings, context)
        };
        self.inside.store(ALLOCATIONS.load(Ordering::SeqCst) - before, Ordering::SeqCst);
        result
    }
}

/// Allocations of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Allocations {
    /// While the program ran.
    inside: usize,
    /// In all.
    whole: usize,
}

fn measure(kind: Numbers, threads: usize, only_delivers: bool) -> Allocations {
    let network = network(kind, false, 1);
    let count = Arc::new(Count {
        only_delivers: AtomicBool::new(only_delivers),
        output: vec![1, 10],
        output_bytes: vec![0; network.output_bytes],
        ..Count::default()
    });
    let threads = NonZeroUsize::new(threads).expect("a number above 0");
    let settings = Settings::default().with_threads(threads);
    let device = instrumented_device(settings, Arc::<Count>::clone(&count));
    let prepared = prepare(&*device, &network.model);
    let plan = Prepared::of(&*prepared).expect("a driver's prepared model").plan();
    let slow = plan.iter().find(|step| step.kernel == "reference");
    assert!(slow.is_none(), "no fast kernel: {slow:?}");
    let request = network.request(kind, 1);
    // The first ones make the arena and the team.
    for _ in 0..3 {
        execute(&*prepared, &request);
    }
    let measured = (0..5).map(|_| {
        let before = ALLOCATIONS.load(Ordering::SeqCst);
        execute(&*prepared, &request);
        let whole = ALLOCATIONS.load(Ordering::SeqCst) - before;
        Allocations { inside: count.inside.load(Ordering::SeqCst), whole }
    });
    // A thread of the team, or one that prepared, may begin or end meanwhile, once.
    measured.min_by_key(|it| (it.whole, it.inside)).expect("five of them")
}

// One test, because the count is of all threads.
#[test]
fn an_execution_allocates_nothing_but_what_the_driver_does() {
    for kind in [Numbers::Float32, Numbers::Float16, Numbers::Signed] {
        for threads in [1, 2] {
            let delivery = measure(kind, threads, true);
            let execution = measure(kind, threads, false);
            println!(
                "{kind:?}, {threads} threads: {execution:?}, of which the driver's {delivery:?}"
            );
            assert_eq!(execution, delivery, "{kind:?}, {threads} threads");
        }
    }
}
