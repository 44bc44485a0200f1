//! The library as an NNAPI support library: one structure with all functions in it, and the functions
//! that only support libraries have.

use crate::border::{export, inner};
use crate::compilation::*;
use crate::compilation::{ANeuralNetworksCompilation, token};
use crate::device::{ANeuralNetworksDevice, ListedDevice};
use crate::devices::{SupportLibraryLevel, support_library_level};
use crate::diagnostics::*;
use crate::handle;
use crate::outcome::{Outcome, bad_data, null};
use crate::pointer::{Context, In, Out, duplicate};
use crate::{burst::*, device::*, event::*, execution::*, extension::*, memory::*, model::*};
use nnhal_hal::PerformanceInfo;
use nnhal_runtime::CacheFiles;
use std::ffi::c_char;
use std::os::fd::OwnedFd;

/// A function's address, whatever its type.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Function(*const ());

// SAFETY: the address of a function is the same for every thread.
#[allow(unsafe_code, reason = "a promise about the type")]
unsafe impl Sync for Function {}

/// Number of functions in the structure: those of feature level 5, and the two of level 8.
pub const FUNCTIONS: usize = 106;

/// The structure (`NnApiSLDriverImplFL8`, which begins as those of the lower levels).
#[derive(Debug)]
#[repr(C)]
pub struct Driver {
    /// Feature level of the structure (`implFeatureLevel`).
    pub feature_level: i64,
    /// The functions, in the order of the header.
    pub functions: [Function; FUNCTIONS],
}

macro_rules! driver {
    ($($name:ident)*) => {
        /// Names of the functions, in the order of the structure.
        pub const NAMES: [&str; FUNCTIONS] = [$(stringify!($name)),*];

        const fn driver(feature_level: i64) -> Driver {
            Driver { feature_level, functions: [$(Function($name as *const ())),*] }
        }
    };
}

driver! {
    ANeuralNetworksBurst_create
    ANeuralNetworksBurst_free
    ANeuralNetworksCompilation_createForDevices
    ANeuralNetworksCompilation_finish
    ANeuralNetworksCompilation_free
    ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput
    ANeuralNetworksCompilation_getPreferredMemoryAlignmentForOutput
    ANeuralNetworksCompilation_getPreferredMemoryPaddingForInput
    ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput
    ANeuralNetworksCompilation_setCaching
    ANeuralNetworksCompilation_setPreference
    ANeuralNetworksCompilation_setPriority
    ANeuralNetworksCompilation_setTimeout
    ANeuralNetworksDevice_getExtensionSupport
    ANeuralNetworksDevice_getFeatureLevel
    ANeuralNetworksDevice_getName
    ANeuralNetworksDevice_getType
    ANeuralNetworksDevice_getVersion
    ANeuralNetworksDevice_wait
    ANeuralNetworksEvent_createFromSyncFenceFd
    ANeuralNetworksEvent_free
    ANeuralNetworksEvent_getSyncFenceFd
    ANeuralNetworksEvent_wait
    ANeuralNetworksExecution_burstCompute
    ANeuralNetworksExecution_compute
    ANeuralNetworksExecution_create
    ANeuralNetworksExecution_enableInputAndOutputPadding
    ANeuralNetworksExecution_free
    ANeuralNetworksExecution_getDuration
    ANeuralNetworksExecution_getOutputOperandDimensions
    ANeuralNetworksExecution_getOutputOperandRank
    ANeuralNetworksExecution_setInput
    ANeuralNetworksExecution_setInputFromMemory
    ANeuralNetworksExecution_setLoopTimeout
    ANeuralNetworksExecution_setMeasureTiming
    ANeuralNetworksExecution_setOutput
    ANeuralNetworksExecution_setOutputFromMemory
    ANeuralNetworksExecution_setReusable
    ANeuralNetworksExecution_setTimeout
    ANeuralNetworksExecution_startComputeWithDependencies
    ANeuralNetworksMemoryDesc_addInputRole
    ANeuralNetworksMemoryDesc_addOutputRole
    ANeuralNetworksMemoryDesc_create
    ANeuralNetworksMemoryDesc_finish
    ANeuralNetworksMemoryDesc_free
    ANeuralNetworksMemoryDesc_setDimensions
    ANeuralNetworksMemory_copy
    ANeuralNetworksMemory_createFromAHardwareBuffer
    ANeuralNetworksMemory_createFromDesc
    ANeuralNetworksMemory_createFromFd
    ANeuralNetworksMemory_free
    ANeuralNetworksModel_addOperand
    ANeuralNetworksModel_addOperation
    ANeuralNetworksModel_create
    ANeuralNetworksModel_finish
    ANeuralNetworksModel_free
    ANeuralNetworksModel_getExtensionOperandType
    ANeuralNetworksModel_getExtensionOperationType
    ANeuralNetworksModel_getSupportedOperationsForDevices
    ANeuralNetworksModel_identifyInputsAndOutputs
    ANeuralNetworksModel_relaxComputationFloat32toFloat16
    ANeuralNetworksModel_setOperandExtensionData
    ANeuralNetworksModel_setOperandSymmPerChannelQuantParams
    ANeuralNetworksModel_setOperandValue
    ANeuralNetworksModel_setOperandValueFromMemory
    ANeuralNetworksModel_setOperandValueFromModel
    ANeuralNetworks_getDefaultLoopTimeout
    ANeuralNetworks_getDevice
    ANeuralNetworks_getDeviceCount
    ANeuralNetworks_getMaximumLoopTimeout
    ANeuralNetworks_getRuntimeFeatureLevel
    SL_ANeuralNetworksCompilation_setCachingFromFds
    SL_ANeuralNetworksDevice_getNumberOfCacheFilesNeeded
    SL_ANeuralNetworksDevice_getPerformanceInfo
    SL_ANeuralNetworksDevice_forEachOperandPerformanceInfo
    SL_ANeuralNetworksDevice_getVendorExtensionCount
    SL_ANeuralNetworksDevice_getVendorExtensionName
    SL_ANeuralNetworksDevice_forEachVendorExtensionOperandTypeInformation
    SL_ANeuralNetworksDiagnosticCompilationInfo_getSessionId
    SL_ANeuralNetworksDiagnosticCompilationInfo_getNnApiVersion
    SL_ANeuralNetworksDiagnosticCompilationInfo_getModelArchHash
    SL_ANeuralNetworksDiagnosticCompilationInfo_getDeviceIds
    SL_ANeuralNetworksDiagnosticCompilationInfo_getErrorCode
    SL_ANeuralNetworksDiagnosticCompilationInfo_getInputDataClass
    SL_ANeuralNetworksDiagnosticCompilationInfo_getOutputDataClass
    SL_ANeuralNetworksDiagnosticCompilationInfo_getCompilationTimeNanos
    SL_ANeuralNetworksDiagnosticCompilationInfo_isCachingEnabled
    SL_ANeuralNetworksDiagnosticCompilationInfo_isControlFlowUsed
    SL_ANeuralNetworksDiagnosticCompilationInfo_areDynamicTensorsUsed
    SL_ANeuralNetworksDiagnosticExecutionInfo_getSessionId
    SL_ANeuralNetworksDiagnosticExecutionInfo_getNnApiVersion
    SL_ANeuralNetworksDiagnosticExecutionInfo_getModelArchHash
    SL_ANeuralNetworksDiagnosticExecutionInfo_getDeviceIds
    SL_ANeuralNetworksDiagnosticExecutionInfo_getExecutionMode
    SL_ANeuralNetworksDiagnosticExecutionInfo_getInputDataClass
    SL_ANeuralNetworksDiagnosticExecutionInfo_getOutputDataClass
    SL_ANeuralNetworksDiagnosticExecutionInfo_getErrorCode
    SL_ANeuralNetworksDiagnosticExecutionInfo_getRuntimeExecutionTimeNanos
    SL_ANeuralNetworksDiagnosticExecutionInfo_getDriverExecutionTimeNanos
    SL_ANeuralNetworksDiagnosticExecutionInfo_getHardwareExecutionTimeNanos
    SL_ANeuralNetworksDiagnosticExecutionInfo_isCachingEnabled
    SL_ANeuralNetworksDiagnosticExecutionInfo_isControlFlowUsed
    SL_ANeuralNetworksDiagnosticExecutionInfo_areDynamicTensorsUsed
    SL_ANeuralNetworksDiagnostic_registerCallbacks
    ANeuralNetworksCompilation_addExtensionAttribute
    ANeuralNetworksExecution_addExtensionAttribute
}

/// Time and power that something costs (`SL_ANeuralNetworksPerformanceInfo`).
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct Performance {
    execution_time: f32,
    power_usage: f32,
}

/// The same for an operand type (`SL_ANeuralNetworksOperandPerformanceInfo`).
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct TypePerformance {
    operand_type: i32,
    performance: Performance,
}

/// An operand type of an extension (`SL_ANeuralNetworksExtensionOperandTypeInformation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct ExtensionType {
    byte_size: u32,
    number: u16,
    is_tensor: bool,
}

impl From<PerformanceInfo> for Performance {
    fn from(info: PerformanceInfo) -> Self {
        Self { execution_time: info.exec_time, power_usage: info.power_usage }
    }
}

export! {
    /// The structure with all functions. Where the environment makes no sense, its functions answer so.
    fn ANeuralNetworks_getSLDriverImpl() -> *const Driver, std::ptr::null(); {
        static LEVEL_7: Driver = driver(SupportLibraryLevel::Seven as i64);
        static LEVEL_8: Driver = driver(SupportLibraryLevel::Eight as i64);
        match support_library_level() {
            Ok(SupportLibraryLevel::Eight) => &raw const LEVEL_8,
            Ok(SupportLibraryLevel::Seven) | Err(_) => &raw const LEVEL_7,
        }
    }
}

inner! {
    /// The cache files of a compilation, open.
    fn SL_ANeuralNetworksCompilation_setCachingFromFds(
        compilation: *mut ANeuralNetworksCompilation,
        model_files: In<i32>,
        model_count: u32,
        data_files: In<i32>,
        data_count: u32,
        name: In<u8>,
    ) {
        let compilation = handle::get(compilation, "compilation")?;
        let files = |files: In<i32>, count: u32, argument: &str| -> Outcome<Vec<OwnedFd>> {
            let files = files.copy(count as usize, argument)?;
            files.into_iter().map(|file| duplicate(file, argument)).collect()
        };
        let token = token(name)?;
        let files = CacheFiles {
            model: files(model_files, model_count, "modelCacheFds")?,
            data: files(data_files, data_count, "dataCacheFds")?,
        };
        compilation.cache(|it| it.set_caching_from_files(files, &token))
    }

    /// How many cache files a device wants.
    fn SL_ANeuralNetworksDevice_getNumberOfCacheFilesNeeded(
        device: *const ANeuralNetworksDevice,
        model_count: Out<u32>,
        data_count: Out<u32>,
    ) {
        model_count.write(0);
        data_count.write(0);
        let device = handle::get(device, "device")?;
        model_count.check("numModelCacheFiles")?;
        data_count.check("numDataCacheFiles")?;
        let needed = device.device.cache_files_needed();
        model_count.write(needed.model);
        data_count.write(needed.data);
        Ok(())
    }

    /// What something costs that no operand type stands for.
    fn SL_ANeuralNetworksDevice_getPerformanceInfo(
        device: *const ANeuralNetworksDevice,
        kind: i32,
        performance: Out<Performance>,
    ) {
        performance.write(Performance { execution_time: 0.0, power_usage: 0.0 });
        let device = handle::get(device, "device")?;
        performance.check("performanceInfo")?;
        let capabilities = device.device.capabilities();
        performance.write(Performance::from(match kind {
            0 => capabilities.relaxed_float32_to_float16_scalar,
            1 => capabilities.relaxed_float32_to_float16_tensor,
            2 => capabilities.if_performance,
            3 => capabilities.while_performance,
            other => return Err(bad_data(format!("performanceInfoKind {other} is unknown"))),
        }));
        Ok(())
    }

    /// What operations of each operand type cost.
    fn SL_ANeuralNetworksDevice_forEachOperandPerformanceInfo(
        device: *const ANeuralNetworksDevice,
        context: Context,
        callback: Option<extern "C" fn(TypePerformance, Context)>,
    ) {
        let device = handle::get(device, "device")?;
        let callback = callback_of(context, callback)?;
        for operand in &device.device.capabilities().operand_performance {
            callback(TypePerformance {
                operand_type: operand.operand_type.code().cast_signed(),
                performance: operand.info.into(),
            }, context);
        }
        Ok(())
    }

    /// Number of extensions that a device has.
    fn SL_ANeuralNetworksDevice_getVendorExtensionCount(
        device: *const ANeuralNetworksDevice,
        count: Out<u32>,
    ) {
        count.write(0);
        let device = handle::get(device, "device")?;
        count.check("vendorExtensionCount")?;
        count.write(u32::try_from(device.extensions.len()).unwrap_or(u32::MAX));
        Ok(())
    }

    /// Name of an extension that a device has.
    fn SL_ANeuralNetworksDevice_getVendorExtensionName(
        device: *const ANeuralNetworksDevice,
        index: u32,
        name: Out<*const c_char>,
    ) {
        name.write(std::ptr::null());
        let device = handle::get(device, "device")?;
        name.check("extensionName")?;
        let found = device.extensions.get(index as usize);
        name.write(found.ok_or_else(|| no_extension(&device, index))?.as_ptr());
        Ok(())
    }

    /// The operand types of an extension that a device has.
    fn SL_ANeuralNetworksDevice_forEachVendorExtensionOperandTypeInformation(
        device: *const ANeuralNetworksDevice,
        index: u32,
        context: Context,
        callback: Option<extern "C" fn(ExtensionType, Context)>,
    ) {
        let device = handle::get(device, "device")?;
        let callback = callback_of(context, callback)?;
        let found = device.device.extensions().get(index as usize);
        for operand_type in &found.ok_or_else(|| no_extension(&device, index))?.operand_types {
            callback(ExtensionType {
                byte_size: operand_type.byte_size,
                number: operand_type.number,
                is_tensor: operand_type.is_tensor,
            }, context);
        }
        Ok(())
    }
}

fn no_extension(device: &ListedDevice, index: u32) -> nnhal_runtime::Error {
    bad_data(format!("the device has {} extensions, no number {index}", device.extensions.len()))
}

fn callback_of<F>(context: Context, callback: Option<F>) -> Outcome<F> {
    if context.is_null() {
        return Err(null("context"));
    }
    callback.ok_or_else(|| null("callback"))
}
