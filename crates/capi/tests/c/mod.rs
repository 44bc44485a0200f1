//! The library as C sees it: names, numbers and pointers, and a small model to try them with.

#![allow(dead_code, reason = "each test uses what it needs")]
#![allow(unsafe_code, reason = "the functions of a C library")]

use neuralnetworks as _;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{null, null_mut};

pub const NO_ERROR: i32 = 0;
pub const UNEXPECTED_NULL: i32 = 3;
pub const BAD_DATA: i32 = 4;
pub const OP_FAILED: i32 = 5;
pub const BAD_STATE: i32 = 6;
pub const OUTPUT_INSUFFICIENT_SIZE: i32 = 8;

pub const FLOAT32: i32 = 0;
pub const INT32: i32 = 1;
pub const TENSOR_FLOAT32: i32 = 3;
pub const TENSOR_INT32: i32 = 4;
pub const TENSOR_QUANT8_SYMM_PER_CHANNEL: i32 = 11;
pub const MODEL: i32 = 15;
pub const ADD: i32 = 0;
pub const RELU: i32 = 19;

/// Any object: to C they are all pointers.
pub type Handle = *mut c_void;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct OperandType {
    pub code: i32,
    pub count: u32,
    pub dimensions: *const u32,
    pub scale: f32,
    pub zero_point: i32,
}

#[repr(C)]
pub struct ChannelQuant {
    pub dimension: u32,
    pub count: u32,
    pub scales: *const f32,
}

macro_rules! functions {
    ($($name:ident($($argument:ident: $Argument:ty),*) $(-> $Value:ty)?;)*) => {
        unsafe extern "C" {
            $(pub safe fn $name($($argument: $Argument),*) $(-> $Value)?;)*
        }
    };
}

// Called with pointers that the tests own, or with wrong ones on purpose: those must be refused
// without being followed, which is what makes the declarations safe to call here.
functions! {
    ANeuralNetworks_getDefaultLoopTimeout() -> u64;
    ANeuralNetworks_getMaximumLoopTimeout() -> u64;
    ANeuralNetworks_getRuntimeFeatureLevel() -> i64;
    ANeuralNetworks_getDeviceCount(count: *mut u32) -> i32;
    ANeuralNetworks_getDevice(index: u32, device: *mut Handle) -> i32;
    ANeuralNetworks_getSLDriverImpl() -> *const i64;
    ANeuralNetworksDevice_getName(device: Handle, name: *mut *const c_char) -> i32;
    ANeuralNetworksDevice_getVersion(device: Handle, version: *mut *const c_char) -> i32;
    ANeuralNetworksDevice_getType(device: Handle, kind: *mut i32) -> i32;
    ANeuralNetworksDevice_getFeatureLevel(device: Handle, level: *mut i64) -> i32;
    ANeuralNetworksDevice_wait(device: Handle) -> i32;
    ANeuralNetworksDevice_getExtensionSupport(device: Handle, name: *const c_char, is: *mut bool) -> i32;
    ANeuralNetworksModel_create(model: *mut Handle) -> i32;
    ANeuralNetworksModel_free(model: Handle);
    ANeuralNetworksModel_finish(model: Handle) -> i32;
    ANeuralNetworksModel_addOperand(model: Handle, kind: *const OperandType) -> i32;
    ANeuralNetworksModel_setOperandValue(model: Handle, index: i32, value: *const c_void, length: usize) -> i32;
    ANeuralNetworksModel_setOperandValueFromMemory(model: Handle, index: i32, memory: Handle, offset: usize, length: usize) -> i32;
    ANeuralNetworksModel_setOperandValueFromModel(model: Handle, index: i32, value: Handle) -> i32;
    ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(model: Handle, index: i32, quant: *const ChannelQuant) -> i32;
    ANeuralNetworksModel_setOperandExtensionData(model: Handle, index: i32, data: *const c_void, length: usize) -> i32;
    ANeuralNetworksModel_getExtensionOperandType(model: Handle, name: *const c_char, number: u16, code: *mut i32) -> i32;
    ANeuralNetworksModel_getExtensionOperationType(model: Handle, name: *const c_char, number: u16, code: *mut i32) -> i32;
    ANeuralNetworksModel_addOperation(model: Handle, code: i32, inputs: u32, input: *const u32, outputs: u32, output: *const u32) -> i32;
    ANeuralNetworksModel_identifyInputsAndOutputs(model: Handle, inputs: u32, input: *const u32, outputs: u32, output: *const u32) -> i32;
    ANeuralNetworksModel_relaxComputationFloat32toFloat16(model: Handle, allow: bool) -> i32;
    ANeuralNetworksModel_getSupportedOperationsForDevices(model: Handle, devices: *const Handle, count: u32, supported: *mut bool) -> i32;
    ANeuralNetworksCompilation_create(model: Handle, compilation: *mut Handle) -> i32;
    ANeuralNetworksCompilation_createForDevices(model: Handle, devices: *const Handle, count: u32, compilation: *mut Handle) -> i32;
    ANeuralNetworksCompilation_free(compilation: Handle);
    ANeuralNetworksCompilation_finish(compilation: Handle) -> i32;
    ANeuralNetworksCompilation_setPreference(compilation: Handle, preference: i32) -> i32;
    ANeuralNetworksCompilation_setPriority(compilation: Handle, priority: i32) -> i32;
    ANeuralNetworksCompilation_setTimeout(compilation: Handle, nanoseconds: u64) -> i32;
    ANeuralNetworksCompilation_setCaching(compilation: Handle, folder: *const c_char, token: *const u8) -> i32;
    ANeuralNetworksCompilation_addExtensionAttribute(compilation: Handle, name: *const c_char, number: u16, data: *const c_void, length: usize) -> i32;
    ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput(compilation: Handle, index: u32, answer: *mut u32) -> i32;
    ANeuralNetworksCompilation_getPreferredMemoryPaddingForInput(compilation: Handle, index: u32, answer: *mut u32) -> i32;
    ANeuralNetworksCompilation_getPreferredMemoryAlignmentForOutput(compilation: Handle, index: u32, answer: *mut u32) -> i32;
    ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput(compilation: Handle, index: u32, answer: *mut u32) -> i32;
    ANeuralNetworksExecution_create(compilation: Handle, execution: *mut Handle) -> i32;
    ANeuralNetworksExecution_free(execution: Handle);
    ANeuralNetworksExecution_setInput(execution: Handle, index: i32, kind: *const OperandType, buffer: *const c_void, length: usize) -> i32;
    ANeuralNetworksExecution_setInputFromMemory(execution: Handle, index: i32, kind: *const OperandType, memory: Handle, offset: usize, length: usize) -> i32;
    ANeuralNetworksExecution_setOutput(execution: Handle, index: i32, kind: *const OperandType, buffer: *mut c_void, length: usize) -> i32;
    ANeuralNetworksExecution_setOutputFromMemory(execution: Handle, index: i32, kind: *const OperandType, memory: Handle, offset: usize, length: usize) -> i32;
    ANeuralNetworksExecution_setReusable(execution: Handle, reusable: bool) -> i32;
    ANeuralNetworksExecution_setMeasureTiming(execution: Handle, measure: bool) -> i32;
    ANeuralNetworksExecution_setTimeout(execution: Handle, nanoseconds: u64) -> i32;
    ANeuralNetworksExecution_setLoopTimeout(execution: Handle, nanoseconds: u64) -> i32;
    ANeuralNetworksExecution_enableInputAndOutputPadding(execution: Handle, enable: bool) -> i32;
    ANeuralNetworksExecution_addExtensionAttribute(execution: Handle, name: *const c_char, number: u16, data: *const c_void, length: usize) -> i32;
    ANeuralNetworksExecution_compute(execution: Handle) -> i32;
    ANeuralNetworksExecution_burstCompute(execution: Handle, burst: Handle) -> i32;
    ANeuralNetworksExecution_startCompute(execution: Handle, event: *mut Handle) -> i32;
    ANeuralNetworksExecution_startComputeWithDependencies(execution: Handle, dependencies: *const Handle, count: u32, nanoseconds: u64, event: *mut Handle) -> i32;
    ANeuralNetworksExecution_getOutputOperandRank(execution: Handle, index: i32, rank: *mut u32) -> i32;
    ANeuralNetworksExecution_getOutputOperandDimensions(execution: Handle, index: i32, dimensions: *mut u32) -> i32;
    ANeuralNetworksExecution_getDuration(execution: Handle, code: i32, duration: *mut u64) -> i32;
    ANeuralNetworksBurst_create(compilation: Handle, burst: *mut Handle) -> i32;
    ANeuralNetworksBurst_free(burst: Handle);
    ANeuralNetworksEvent_wait(event: Handle) -> i32;
    ANeuralNetworksEvent_free(event: Handle);
    ANeuralNetworksEvent_createFromSyncFenceFd(fence: i32, event: *mut Handle) -> i32;
    ANeuralNetworksEvent_getSyncFenceFd(event: Handle, fence: *mut i32) -> i32;
    ANeuralNetworksMemory_createFromFd(size: usize, protection: i32, fd: i32, offset: usize, memory: *mut Handle) -> i32;
    ANeuralNetworksMemory_createFromAHardwareBuffer(buffer: Handle, memory: *mut Handle) -> i32;
    ANeuralNetworksMemory_createFromDesc(description: Handle, memory: *mut Handle) -> i32;
    ANeuralNetworksMemory_copy(source: Handle, destination: Handle) -> i32;
    ANeuralNetworksMemory_free(memory: Handle);
    ANeuralNetworksMemoryDesc_create(description: *mut Handle) -> i32;
    ANeuralNetworksMemoryDesc_free(description: Handle);
    ANeuralNetworksMemoryDesc_addInputRole(description: Handle, compilation: Handle, index: u32, frequency: f32) -> i32;
    ANeuralNetworksMemoryDesc_addOutputRole(description: Handle, compilation: Handle, index: u32, frequency: f32) -> i32;
    ANeuralNetworksMemoryDesc_setDimensions(description: Handle, rank: u32, dimensions: *const u32) -> i32;
    ANeuralNetworksMemoryDesc_finish(description: Handle) -> i32;
    nnhal_lastError() -> *const c_char;
    nnhal_resultName(code: i32) -> *const c_char;
}

/// The sentence of the last failure.
pub fn last_error() -> String {
    // SAFETY: the library answers a string that ends.
    unsafe { CStr::from_ptr(nnhal_lastError()) }.to_string_lossy().into_owned()
}

/// A string that the library answered.
pub fn text(pointer: *const c_char) -> String {
    // SAFETY: the library answers a string that ends.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// A string for the library.
pub fn name(text: &str) -> CString {
    CString::new(text).unwrap()
}

/// Demands that a call works.
#[track_caller]
pub fn works(code: i32) {
    assert_eq!(code, NO_ERROR, "{}", last_error());
}

/// What a creating function makes.
#[track_caller]
pub fn made(create: impl FnOnce(*mut Handle) -> i32) -> Handle {
    let mut handle = null_mut();
    works(create(&raw mut handle));
    assert!(!handle.is_null());
    handle
}

/// A tensor type; the dimensions must outlive it.
pub fn tensor(code: i32, dimensions: &[u32]) -> OperandType {
    let count = u32::try_from(dimensions.len()).unwrap();
    let dimensions = if dimensions.is_empty() { null() } else { dimensions.as_ptr() };
    OperandType { code, count, dimensions, scale: 0.0, zero_point: 0 }
}

pub fn scalar(code: i32) -> OperandType {
    tensor(code, &[])
}

pub fn bytes_of(values: &[f32]) -> *const c_void {
    values.as_ptr().cast()
}

pub fn room_of(values: &mut [f32]) -> *mut c_void {
    values.as_mut_ptr().cast()
}

/// y = x + c for two numbers each: operand 0 is x, 1 is c, 2 the activation, 3 is y.
pub fn unfinished_model(dimensions: &[u32]) -> Handle {
    let model = made(|model| ANeuralNetworksModel_create(model));
    for kind in [
        tensor(TENSOR_FLOAT32, dimensions),
        tensor(TENSOR_FLOAT32, &[2]),
        scalar(INT32),
        tensor(TENSOR_FLOAT32, dimensions),
    ] {
        works(ANeuralNetworksModel_addOperand(model, &raw const kind));
    }
    works(ANeuralNetworksModel_setOperandValue(model, 1, bytes_of(&[10.0, 20.0]), 8));
    works(ANeuralNetworksModel_setOperandValue(model, 2, [0_i32].as_ptr().cast(), 4));
    works(ANeuralNetworksModel_addOperation(model, ADD, 3, [0, 1, 2].as_ptr(), 1, [3].as_ptr()));
    works(ANeuralNetworksModel_identifyInputsAndOutputs(model, 1, [0].as_ptr(), 1, [3].as_ptr()));
    model
}

pub fn model() -> Handle {
    let model = unfinished_model(&[2]);
    works(ANeuralNetworksModel_finish(model));
    model
}

/// Compiled for the first device.
pub fn compilation(model: Handle) -> Handle {
    let compilation = unfinished_compilation(model);
    works(ANeuralNetworksCompilation_finish(compilation));
    compilation
}

pub fn unfinished_compilation(model: Handle) -> Handle {
    made(|it| ANeuralNetworksCompilation_createForDevices(model, [device()].as_ptr(), 1, it))
}

pub fn device() -> Handle {
    made(|device| ANeuralNetworks_getDevice(0, device))
}

pub fn execution(compilation: Handle) -> Handle {
    made(|execution| ANeuralNetworksExecution_create(compilation, execution))
}

/// With its arguments.
pub fn ready_execution(compilation: Handle, x: &[f32; 2], y: &mut [f32; 2]) -> Handle {
    let execution = execution(compilation);
    works(ANeuralNetworksExecution_setInput(execution, 0, null(), bytes_of(x), 8));
    works(ANeuralNetworksExecution_setOutput(execution, 0, null(), room_of(y), 8));
    execution
}
