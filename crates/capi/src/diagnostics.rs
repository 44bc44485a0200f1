//! What a support library reports to observers: each compilation and each execution that has ended.
//!
//! It costs nothing as long as there is no observer. An execution that could not be started because it goes on or
//! has ended before is not reported, one that lacks an argument is. A fenced execution is reported when its event is
//! waited for, or freed.

use crate::border::inner;
use crate::handle;
use crate::outcome::{NO_ERROR, Outcome};
use crate::pointer::Context;
use nnhal_hal::{Model, OperandType, OperationType};
use nnhal_runtime::{
    Compilation, Device, DurationCode, Execution, Model as FinishedModel, Observer, Start,
};
use std::ffi::{CString, c_char};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// What the callbacks are notified of, behind a handle that is valid until they return.
#[derive(Debug)]
pub struct Report {
    model_hash: [u8; 32],
    devices: CString,
    code: i32,
    input_class: i32,
    output_class: i32,
    caching: bool,
    control_flow: bool,
    dynamic: bool,
    mode: i32,
    /// Of the compilation, or of the execution as the caller sees it; `None` of a fenced one, which waits for others.
    elapsed: Option<Duration>,
    in_driver: Option<Duration>,
    on_hardware: Option<Duration>,
}

/// How an execution was started, as C has it (`ANeuralNetworksDiagnosticExecutionMode`).
fn mode(start: Start) -> i32 {
    match start {
        Start::Asynchronous => 1,
        Start::Synchronous => 2,
        Start::Burst => 3,
        Start::Fenced => 4,
    }
}

type CompilationCallback = extern "C" fn(Context, *const ANeuralNetworksDiagnosticCompilationInfo);
type ExecutionCallback = extern "C" fn(Context, *const ANeuralNetworksDiagnosticExecutionInfo);

#[derive(Clone, Copy)]
struct Callbacks {
    compilation: Option<CompilationCallback>,
    execution: Option<ExecutionCallback>,
    context: Context,
}

static CALLBACKS: RwLock<Option<Callbacks>> = RwLock::new(None);
static IS_OBSERVED: AtomicBool = AtomicBool::new(false);

nnhal_c_boundary::opaque! {
    /// What is reported of a compilation.
    ANeuralNetworksDiagnosticCompilationInfo: Report, 9;
    /// What is reported of an execution.
    ANeuralNetworksDiagnosticExecutionInfo: Report, 10;
}

/// The time, if there is an observer; taken when something begins.
pub(crate) fn now() -> Option<Instant> {
    IS_OBSERVED.load(Ordering::Relaxed).then(Instant::now)
}

/// Reports a compilation that has ended.
pub(crate) fn compiled(
    began: Instant,
    model: &FinishedModel,
    devices: &[Device],
    caching: bool,
    finished: Option<&Compilation>,
    result: &Outcome,
) {
    let elapsed = Some(began.elapsed());
    let report = Report { elapsed, caching, ..Report::new(model, devices, finished, result) };
    let Some(Callbacks { compilation: Some(callback), context, .. }) = callbacks() else { return };
    let Ok(info) = handle::give(Arc::new(report)) else { return };
    callback(context, info);
    drop(handle::take(info.cast_const(), "info"));
}

/// Reports the executions of a compilation.
pub(crate) struct Executions {
    /// Whether the compilation's result is kept.
    pub(crate) caching: bool,
}

impl Observer for Executions {
    fn is_interested(&self) -> bool {
        IS_OBSERVED.load(Ordering::Relaxed)
    }

    fn ended(&self, execution: &Execution, start: Start, elapsed: Duration, result: &Outcome) {
        let compilation = execution.compilation();
        let (model, devices) = (compilation.model(), compilation.devices());
        let duration = |code| execution.duration(code).ok().flatten();
        let report = Report {
            elapsed: (start != Start::Fenced).then_some(elapsed),
            caching: self.caching,
            mode: mode(start),
            in_driver: duration(DurationCode::InDriver),
            on_hardware: duration(DurationCode::OnHardware),
            ..Report::new(model, devices, Some(compilation), result)
        };
        let Some(Callbacks { execution: Some(callback), context, .. }) = callbacks() else {
            return;
        };
        let Ok(info) = handle::give(Arc::new(report)) else { return };
        callback(context, info);
        drop(handle::take(info.cast_const(), "info"));
    }
}

/// A copy, so that callbacks may register others.
fn callbacks() -> Option<Callbacks> {
    *CALLBACKS.read().unwrap_or_else(PoisonError::into_inner)
}

impl Report {
    fn new(
        model: &FinishedModel,
        devices: &[Device],
        compilation: Option<&Compilation>,
        result: &Outcome,
    ) -> Self {
        let named = |device: &Device| format!("{}={}", device.name(), device.version_string());
        let mut devices: Vec<String> = devices.iter().map(named).collect();
        devices.sort_unstable();
        let devices = devices.join(",").replace('\0', " ");
        Self {
            model_hash: architecture_hash(model.hal()),
            devices: CString::new(devices).unwrap_or_default(),
            code: result.as_ref().map_or_else(|error| error.code().code(), |()| NO_ERROR),
            input_class: class(model.inputs().map(|operand| operand.operand_type)),
            output_class: class(model.outputs().map(|operand| operand.operand_type)),
            caching: false,
            control_flow: has_control_flow(model.hal()),
            dynamic: compilation.is_some_and(Compilation::has_dynamic_temporaries),
            mode: 0,
            elapsed: None,
            in_driver: None,
            on_hardware: None,
        }
    }
}

/// The kind of values (`ANeuralNetworksDiagnosticDataClass`): that of the tensors of real numbers
/// among them, if it is one.
fn class(types: impl Iterator<Item = OperandType>) -> i32 {
    const OTHER: i32 = 1;
    const MIXED: i32 = 5;
    let mut classes = types.filter_map(|operand_type| match operand_type {
        OperandType::TensorFloat32 => Some(2),
        OperandType::TensorFloat16 => Some(3),
        OperandType::TensorQuant8Asymm
        | OperandType::TensorQuant8AsymmSigned
        | OperandType::TensorQuant8Symm
        | OperandType::TensorQuant8SymmPerChannel
        | OperandType::TensorQuant16Asymm
        | OperandType::TensorQuant16Symm => Some(4),
        _ => None,
    });
    let Some(first) = classes.next() else { return OTHER };
    if classes.all(|class| class == first) { first } else { MIXED }
}

fn has_control_flow(model: &Model) -> bool {
    model.main.operations.iter().any(|operation| {
        matches!(operation.operation_type, OperationType::If | OperationType::While)
    })
}

/// Names the shape of a model, whatever its constants hold.
fn architecture_hash(model: &Model) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    let mut number = |number: u32| {
        hasher.update(&number.to_le_bytes());
    };
    for (_, graph) in model.subgraphs() {
        for operand in &graph.operands {
            number(operand.operand_type.code());
            number(operand.lifetime.code().cast_unsigned());
            number(u32::try_from(operand.dimensions.len()).unwrap_or(u32::MAX));
            operand.dimensions.iter().copied().for_each(&mut number);
        }
        for operation in &graph.operations {
            number(operation.operation_type.code());
            operation.inputs.iter().chain(&operation.outputs).copied().for_each(&mut number);
        }
        graph.inputs.iter().chain(&graph.outputs).copied().for_each(&mut number);
    }
    hasher.finalize().into()
}

/// The same for all that this process reports.
static SESSION: LazyLock<i32> = LazyLock::new(|| std::process::id().cast_signed());

/// Functions that answer a part of a report; something that says nothing once it is gone.
macro_rules! parts {
    ($($Info:ident { $($name:ident -> $Part:ty, $otherwise:expr, $read:expr;)* })*) => {
        $($(
            inner! {
                /// A part of what is reported.
                fn $name(info: *const $Info) -> $Part, $otherwise; {
                    let read: fn(&Report) -> $Part = $read;
                    handle::get(info, "info").map_or($otherwise, |report| read(&report))
                }
            }
        )*)*
    };
}

fn nanoseconds(duration: Option<Duration>) -> u64 {
    duration.map_or(u64::MAX, |it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX))
}

parts! {
    ANeuralNetworksDiagnosticCompilationInfo {
        SL_ANeuralNetworksDiagnosticCompilationInfo_getSessionId -> i32, 0, |_| *SESSION;
        SL_ANeuralNetworksDiagnosticCompilationInfo_getNnApiVersion -> i64, 0,
            |_| nnhal_runtime::RUNTIME_FEATURE_LEVEL;
        SL_ANeuralNetworksDiagnosticCompilationInfo_getModelArchHash -> *const u8,
            std::ptr::null(), |report| report.model_hash.as_ptr();
        SL_ANeuralNetworksDiagnosticCompilationInfo_getDeviceIds -> *const c_char,
            std::ptr::null(), |report| report.devices.as_ptr();
        SL_ANeuralNetworksDiagnosticCompilationInfo_getErrorCode -> i32, 0, |report| report.code;
        SL_ANeuralNetworksDiagnosticCompilationInfo_getInputDataClass -> i32, 0,
            |report| report.input_class;
        SL_ANeuralNetworksDiagnosticCompilationInfo_getOutputDataClass -> i32, 0,
            |report| report.output_class;
        SL_ANeuralNetworksDiagnosticCompilationInfo_getCompilationTimeNanos -> u64, u64::MAX,
            |report| nanoseconds(report.elapsed);
        SL_ANeuralNetworksDiagnosticCompilationInfo_isCachingEnabled -> bool, false,
            |report| report.caching;
        SL_ANeuralNetworksDiagnosticCompilationInfo_isControlFlowUsed -> bool, false,
            |report| report.control_flow;
        SL_ANeuralNetworksDiagnosticCompilationInfo_areDynamicTensorsUsed -> bool, false,
            |report| report.dynamic;
    }
    ANeuralNetworksDiagnosticExecutionInfo {
        SL_ANeuralNetworksDiagnosticExecutionInfo_getSessionId -> i32, 0, |_| *SESSION;
        SL_ANeuralNetworksDiagnosticExecutionInfo_getNnApiVersion -> i64, 0,
            |_| nnhal_runtime::RUNTIME_FEATURE_LEVEL;
        SL_ANeuralNetworksDiagnosticExecutionInfo_getModelArchHash -> *const u8,
            std::ptr::null(), |report| report.model_hash.as_ptr();
        SL_ANeuralNetworksDiagnosticExecutionInfo_getDeviceIds -> *const c_char,
            std::ptr::null(), |report| report.devices.as_ptr();
        SL_ANeuralNetworksDiagnosticExecutionInfo_getExecutionMode -> i32, 0, |report| report.mode;
        SL_ANeuralNetworksDiagnosticExecutionInfo_getInputDataClass -> i32, 0,
            |report| report.input_class;
        SL_ANeuralNetworksDiagnosticExecutionInfo_getOutputDataClass -> i32, 0,
            |report| report.output_class;
        SL_ANeuralNetworksDiagnosticExecutionInfo_getErrorCode -> u32, 0,
            |report| report.code.cast_unsigned();
        SL_ANeuralNetworksDiagnosticExecutionInfo_getRuntimeExecutionTimeNanos -> u64, u64::MAX,
            |report| nanoseconds(report.elapsed);
        SL_ANeuralNetworksDiagnosticExecutionInfo_getDriverExecutionTimeNanos -> u64, u64::MAX,
            |report| nanoseconds(report.in_driver);
        SL_ANeuralNetworksDiagnosticExecutionInfo_getHardwareExecutionTimeNanos -> u64, u64::MAX,
            |report| nanoseconds(report.on_hardware);
        SL_ANeuralNetworksDiagnosticExecutionInfo_isCachingEnabled -> bool, false,
            |report| report.caching;
        SL_ANeuralNetworksDiagnosticExecutionInfo_isControlFlowUsed -> bool, false,
            |report| report.control_flow;
        SL_ANeuralNetworksDiagnosticExecutionInfo_areDynamicTensorsUsed -> bool, false,
            |report| report.dynamic;
    }
}

inner! {
    /// Registers the callbacks that are called from now on; null: none.
    fn SL_ANeuralNetworksDiagnostic_registerCallbacks(
        compilation: Option<CompilationCallback>,
        execution: Option<ExecutionCallback>,
        context: Context,
    ) -> (), (); {
        let callbacks = Callbacks { compilation, execution, context };
        let is_observed = compilation.is_some() || execution.is_some();
        *CALLBACKS.write().unwrap_or_else(PoisonError::into_inner) = Some(callbacks);
        IS_OBSERVED.store(is_observed, Ordering::Relaxed);
    }
}
