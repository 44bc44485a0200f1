//! What a run allocates beyond what the device does for a request: nothing, from the second run on.
#![allow(unsafe_code)] // A global allocator cannot be had without.

use nnhal::hal::{
    ExecutionOptions, HalVersion, PrepareOptions, PreparedModel, Request, RequestBuilder,
};
use nnhal::{Model, Outputs, RunOptions, SessionOptions, Tensor};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// Allocations of a call after the second one: the least of five, since another thread may begin or
/// end meanwhile.
fn count(mut call: impl FnMut()) -> usize {
    call();
    call();
    let counted = (0..5).map(|_| {
        let before = ALLOCATIONS.load(Ordering::SeqCst);
        call();
        ALLOCATIONS.load(Ordering::SeqCst) - before
    });
    counted.min().expect("five of them")
}

// One test, because the count is of all threads.
#[test]
fn a_run_allocates_nothing_but_what_the_device_does() {
    for file in ["digits_float32.tflite", "digits_int8.tflite"] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/digits");
        let model = Model::load(format!("{folder}/{file}")).unwrap();
        let device = nnhal::devices::open("nnhal-cpu", std::num::NonZeroUsize::new(1)).unwrap();
        let prepared: Arc<dyn PreparedModel> = device
            .prepare_model(model.hal(), HalVersion::LATEST, PrepareOptions::default())
            .unwrap();
        let bytes = model.inputs()[0].data_type.size().unwrap();
        // Two pools and two arguments, as a session's request has.
        let mut request = RequestBuilder::new();
        request.input(&vec![0; 64 * bytes]).output(10 * bytes);
        let mut request: Request = request.build().unwrap();
        request.pools = vec![request.pools[0].clone(); 3];
        let of_device = count(|| {
            prepared.execute(&request, &ExecutionOptions::default()).unwrap();
        });
        let session = model.session(SessionOptions::new().on(device)).unwrap();
        let pixels = [0.5_f32; 64];
        let mut outputs = Outputs::new();
        let options = RunOptions::default();
        let of_session = count(|| session.run_into(&options, [&pixels], &mut outputs).unwrap());
        assert_eq!(of_session, of_device, "{file}: a session's run");
        let mut runner = session.runner().unwrap();
        let mut output = Tensor::new([1], &[0.0_f32]).unwrap();
        let of_runner = count(|| {
            runner.set_input(0, &pixels).unwrap();
            runner.run().unwrap();
            runner.read_output(0, &mut output).unwrap();
        });
        assert_eq!(of_runner, of_device, "{file}: a runner's run");
    }
}
