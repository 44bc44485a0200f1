//! The library as a support library: everything through the one structure.

mod c;

use c::*;
use neuralnetworks::support_library::{Driver, NAMES};
use std::ffi::{c_char, c_void};
use std::os::fd::AsRawFd;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

fn driver() -> &'static Driver {
    #[allow(unsafe_code, reason = "the structure that the library answers")]
    // SAFETY: the library answers its structure, which exists as long as the library.
    unsafe {
        &*ANeuralNetworks_getSLDriverImpl().cast::<Driver>()
    }
}

/// The function of the structure with this name, as a function of this type.
macro_rules! function {
    ($name:ident: $Type:ty) => {{
        let place = NAMES.iter().position(|name| *name == stringify!($name)).unwrap();
        let function = driver().functions[place];
        #[allow(unsafe_code, reason = "functions of C behind addresses")]
        // SAFETY: the type is that of the function of this name in the header.
        unsafe {
            std::mem::transmute::<neuralnetworks::support_library::Function, $Type>(function)
        }
    }};
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Performance {
    time: f32,
    power: f32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct TypePerformance {
    operand: i32,
    performance: Performance,
}

#[test]
fn the_structure_leads_to_the_exported_functions() {
    assert_eq!(driver().feature_level, 1_000_007);
    let get_count = function!(ANeuralNetworks_getDeviceCount: extern "C" fn(*mut u32) -> i32);
    let (mut by_structure, mut by_name) = (0, 0);
    works(get_count(&raw mut by_structure));
    works(ANeuralNetworks_getDeviceCount(&raw mut by_name));
    assert_eq!(by_structure, by_name);
    // A handle of the one is a handle of the other.
    let free = function!(ANeuralNetworksModel_free: extern "C" fn(Handle));
    let model = model();
    free(model);
    assert_eq!(ANeuralNetworksModel_finish(model), BAD_STATE);
}

const CHILD: &str = "NNHAL_TEST_CHILD";

#[test]
fn says_its_level_in_a_process_of_its_own() {
    if std::env::var_os(CHILD).is_some() {
        println!("level: {}", driver().feature_level);
    }
}

/// LiteRT refuses support libraries of other levels than 5 to 7 (`tflite/nnapi/sl/SupportLibrary.cc`).
#[test]
fn the_structure_has_the_level_that_is_asked_for() {
    for (level, expected) in [("", 1_000_007), ("7", 1_000_007), ("8", 1_000_008)] {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "says_its_level_in_a_process_of_its_own", "--nocapture"])
            .env(CHILD, "1")
            .env("NNHAL_SUPPORT_LIBRARY_LEVEL", level)
            .output()
            .unwrap();
        let said = String::from_utf8(child.stdout).unwrap();
        assert!(said.contains(&format!("level: {expected}\n")), "{level}: {said}");
    }
}

#[test]
fn costs_are_notified() {
    type Get = extern "C" fn(Handle, i32, *mut Performance) -> i32;
    let get = function!(SL_ANeuralNetworksDevice_getPerformanceInfo: Get);
    for kind in 0..4 {
        let mut performance = Performance { time: 0.0, power: 0.0 };
        works(get(device(), kind, &raw mut performance));
        assert!(performance.time > 0.0 && performance.power > 0.0, "{performance:?}");
    }
    let mut performance = Performance { time: 1.0, power: 1.0 };
    assert_eq!(get(device(), 4, &raw mut performance), BAD_DATA);
    assert_eq!(performance, Performance { time: 0.0, power: 0.0 });
    assert_eq!(get(device(), 0, null_mut()), UNEXPECTED_NULL);

    extern "C" fn count(info: TypePerformance, context: *mut c_void) {
        assert!(info.performance.time > 0.0);
        #[allow(unsafe_code, reason = "the context that the test gave")]
        // SAFETY: the test gave the address of a list that exists until the call returns.
        unsafe { &mut *context.cast::<Vec<i32>>() }.push(info.operand);
    }
    type Each = extern "C" fn(
        Handle,
        *mut c_void,
        Option<extern "C" fn(TypePerformance, *mut c_void)>,
    ) -> i32;
    let each = function!(SL_ANeuralNetworksDevice_forEachOperandPerformanceInfo: Each);
    let mut types: Vec<i32> = Vec::new();
    works(each(device(), (&raw mut types).cast(), Some(count)));
    assert!(types.contains(&TENSOR_FLOAT32), "{types:?}");
    assert!(types.is_sorted());
    assert_eq!(each(device(), null_mut(), Some(count)), UNEXPECTED_NULL);
    assert_eq!(each(device(), (&raw mut types).cast(), None), UNEXPECTED_NULL);
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct ExtensionOperandType {
    byte_size: u32,
    number: u16,
    is_tensor: bool,
}

extern "C" fn collect(operand_type: ExtensionOperandType, context: *mut c_void) {
    #[allow(unsafe_code, reason = "what the test passes")]
    // SAFETY: the vector of the test, which waits for the call meanwhile.
    unsafe { &mut *context.cast::<Vec<ExtensionOperandType>>() }.push(operand_type);
}

#[test]
fn extensions_are_counted_and_named() {
    type Count = extern "C" fn(Handle, *mut u32) -> i32;
    let count = function!(SL_ANeuralNetworksDevice_getVendorExtensionCount: Count);
    let mut extensions = 7;
    works(count(device(), &raw mut extensions));
    assert_eq!(extensions, 1);
    type Name = extern "C" fn(Handle, u32, *mut *const c_char) -> i32;
    let name = function!(SL_ANeuralNetworksDevice_getVendorExtensionName: Name);
    let mut text = null();
    works(name(device(), 0, &raw mut text));
    #[allow(unsafe_code, reason = "as C reads it")]
    // SAFETY: a string that ends, of a device that lasts.
    let found = unsafe { std::ffi::CStr::from_ptr(text) };
    assert_eq!(found, c"org.nnhal.tflite");
    assert_eq!(name(device(), 1, &raw mut text), BAD_DATA);
    assert!(text.is_null());
    type Types = extern "C" fn(
        Handle,
        u32,
        *mut c_void,
        Option<extern "C" fn(ExtensionOperandType, *mut c_void)>,
    ) -> i32;
    let each =
        function!(SL_ANeuralNetworksDevice_forEachVendorExtensionOperandTypeInformation: Types);
    let mut types: Vec<ExtensionOperandType> = Vec::new();
    works(each(device(), 0, (&raw mut types).cast(), Some(collect)));
    // Integers of 64 bits, see docs/extension.md.
    assert!(types.contains(&ExtensionOperandType { byte_size: 8, number: 0, is_tensor: true }));
    assert!(types.iter().all(|it| it.is_tensor && it.byte_size > 0), "{types:?}");
    assert_eq!(each(device(), 1, (&raw mut types).cast(), Some(collect)), BAD_DATA);
    assert_eq!(each(device(), 0, null_mut(), Some(collect)), UNEXPECTED_NULL);
}

#[test]
fn compilations_are_cached_in_open_files() {
    type Needed = extern "C" fn(Handle, *mut u32, *mut u32) -> i32;
    let needed = function!(SL_ANeuralNetworksDevice_getNumberOfCacheFilesNeeded: Needed);
    let (mut models, mut data) = (0, 0);
    works(needed(device(), &raw mut models, &raw mut data));
    assert!(models > 0, "the device caches");
    let files = |count: u32| -> Vec<std::fs::File> {
        (0..count).map(|_| tempfile::tempfile().unwrap()).collect()
    };
    let descriptors =
        |files: &[std::fs::File]| -> Vec<i32> { files.iter().map(AsRawFd::as_raw_fd).collect() };
    let (model_files, data_files) = (files(models), files(data));
    type Set = extern "C" fn(Handle, *const i32, u32, *const i32, u32, *const u8) -> i32;
    let set = function!(SL_ANeuralNetworksCompilation_setCachingFromFds: Set);
    let model = model();
    for _ in 0..2 {
        let compilation = unfinished_compilation(model);
        let (models_fds, data_fds) = (descriptors(&model_files), descriptors(&data_files));
        let token = [3; 32];
        let set = |models_fds: *const i32, token: *const u8| {
            set(compilation, models_fds, models, data_fds.as_ptr(), data, token)
        };
        assert_eq!(set(null(), token.as_ptr()), UNEXPECTED_NULL);
        assert_eq!(set(models_fds.as_ptr(), null()), UNEXPECTED_NULL);
        assert_eq!(set(vec![-1; models as usize].as_ptr(), token.as_ptr()), BAD_DATA);
        works(set(models_fds.as_ptr(), token.as_ptr()));
        works(ANeuralNetworksCompilation_finish(compilation));
        assert!(model_files[0].metadata().unwrap().len() > 0, "something is in the cache");
        let (x, mut y) = ([1.0, 2.0], [0.0; 2]);
        let execution = ready_execution(compilation, &x, &mut y);
        works(ANeuralNetworksExecution_compute(execution));
        assert_eq!(y, [11.0, 22.0]);
        ANeuralNetworksExecution_free(execution);
        ANeuralNetworksCompilation_free(compilation);
    }
    ANeuralNetworksModel_free(model);
}

/// What the callbacks were notified of, one decimal digit a call: modes of executions, followed by their error, 9 for a
/// compilation.
static CALLS: AtomicU64 = AtomicU64::new(0);

extern "C" fn compiled(context: *const c_void, info: *const c_void) {
    let nanoseconds = function!(
        SL_ANeuralNetworksDiagnosticCompilationInfo_getCompilationTimeNanos:
            extern "C" fn(*const c_void) -> u64);
    let code = function!(
        SL_ANeuralNetworksDiagnosticCompilationInfo_getErrorCode:
            extern "C" fn(*const c_void) -> i32);
    let devices = function!(
        SL_ANeuralNetworksDiagnosticCompilationInfo_getDeviceIds:
            extern "C" fn(*const c_void) -> *const c_char);
    let class = function!(
        SL_ANeuralNetworksDiagnosticCompilationInfo_getInputDataClass:
            extern "C" fn(*const c_void) -> i32);
    // Other tests compile too: only what this one observes has its context.
    assert_eq!(context.addr(), 42);
    assert!(nanoseconds(info) > 0 && nanoseconds(info) < u64::MAX);
    assert_eq!(code(info), NO_ERROR);
    let dynamic = function!(
        SL_ANeuralNetworksDiagnosticCompilationInfo_areDynamicTensorsUsed:
            extern "C" fn(*const c_void) -> bool);
    // By name, whatever their order is.
    assert!(text(devices(info)).starts_with("nnhal-cpu="), "{}", text(devices(info)));
    assert!(!dynamic(info), "nothing passes between devices");
    assert_eq!(class(info), 2, "float32");
    assert_eq!(nanoseconds(null()), u64::MAX);
    record(9);
}

extern "C" fn executed(context: *const c_void, info: *const c_void) {
    let mode = function!(
        SL_ANeuralNetworksDiagnosticExecutionInfo_getExecutionMode:
            extern "C" fn(*const c_void) -> i32);
    let code = function!(
        SL_ANeuralNetworksDiagnosticExecutionInfo_getErrorCode:
            extern "C" fn(*const c_void) -> u32);
    let nanoseconds = function!(
        SL_ANeuralNetworksDiagnosticExecutionInfo_getRuntimeExecutionTimeNanos:
            extern "C" fn(*const c_void) -> u64);
    assert_eq!(context.addr(), 42);
    let is_fenced = mode(info) == 4;
    assert_eq!(nanoseconds(info) == u64::MAX, is_fenced, "a fenced one waits for others");
    record(u64::try_from(mode(info)).unwrap());
    if code(info) != 0 {
        record(u64::from(code(info)));
    }
}

fn record(digit: u64) {
    let calls = CALLS.load(Ordering::SeqCst);
    CALLS.store(calls * 10 + digit, Ordering::SeqCst);
}

/// In a process of its own, so that other tests' objects are not observed.
#[test]
fn observers_are_notified() {
    if std::env::var_os("NNHAL_TEST_OBSERVED").is_none() {
        let this = std::env::current_exe().unwrap();
        let mut child = std::process::Command::new(this);
        let child =
            child.args(["--exact", "observers_are_notified"]).env("NNHAL_TEST_OBSERVED", "1");
        let outcome = child.output().unwrap();
        assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stdout));
        return;
    }
    type Callback = extern "C" fn(*const c_void, *const c_void);
    type Register = extern "C" fn(Option<Callback>, Option<Callback>, *const c_void);
    let register = function!(SL_ANeuralNetworksDiagnostic_registerCallbacks: Register);
    let model = model();
    ANeuralNetworksCompilation_free(compilation(model));
    assert_eq!(CALLS.load(Ordering::SeqCst), 0);
    register(Some(compiled), Some(executed), std::ptr::without_provenance(42));
    let compilation = compilation(model);
    let (x, mut y) = ([1.0, 2.0], [0.0; 2]);
    let execution = ready_execution(compilation, &x, &mut y);
    works(ANeuralNetworksExecution_setReusable(execution, true));
    works(ANeuralNetworksExecution_compute(execution));
    let burst = made(|burst| ANeuralNetworksBurst_create(compilation, burst));
    works(ANeuralNetworksExecution_burstCompute(execution, burst));
    let event = made(|event| ANeuralNetworksExecution_startCompute(execution, event));
    // Before anybody waits.
    let started = std::time::Instant::now();
    while CALLS.load(Ordering::SeqCst) != 9231 && started.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(CALLS.load(Ordering::SeqCst), 9231);
    works(ANeuralNetworksEvent_wait(event));
    works(ANeuralNetworksEvent_wait(event));
    ANeuralNetworksEvent_free(event);
    let start = ANeuralNetworksExecution_startComputeWithDependencies;
    let event = made(|event| start(execution, null(), 0, 0, event));
    ANeuralNetworksEvent_free(event);
    assert_eq!(CALLS.load(Ordering::SeqCst), 92_314);
    // What could not be started is not reported, unless an argument is missing.
    let once = ready_execution(compilation, &x, &mut y);
    let event = made(|event| start(once, null(), 0, 0, event));
    assert_eq!(ANeuralNetworksExecution_compute(once), BAD_STATE);
    ANeuralNetworksEvent_free(event);
    assert_eq!(ANeuralNetworksExecution_compute(once), BAD_STATE);
    assert_eq!(CALLS.load(Ordering::SeqCst), 923_144);
    let incomplete = c::execution(compilation);
    let mut event = null_mut();
    let started = ANeuralNetworksExecution_startCompute(incomplete, &raw mut event);
    assert_eq!((started, event), (BAD_DATA, null_mut()));
    assert_eq!(CALLS.load(Ordering::SeqCst), 92_314_414);
    // Lengths that are open, and devices in another order.
    let open = unfinished_model(&[0]);
    works(ANeuralNetworksModel_finish(open));
    let [first, second] = [0, 1].map(|index| made(|it| ANeuralNetworks_getDevice(index, it)));
    let create = ANeuralNetworksCompilation_createForDevices;
    let other = made(|it| create(open, [second, first].as_ptr(), 2, it));
    works(ANeuralNetworksCompilation_finish(other));
    let another = ANeuralNetworksExecution_burstCompute(c::execution(other), burst);
    assert_eq!(another, BAD_DATA, "the burst is for another compilation");
    assert_eq!(CALLS.load(Ordering::SeqCst), 923_144_149);
    register(None, None, null());
    works(ANeuralNetworksExecution_compute(execution));
    assert_eq!(CALLS.load(Ordering::SeqCst), 923_144_149);
}
