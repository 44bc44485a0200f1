//! The functions that LiteRT looks up: up to version 2.3 each of them, from 2.4 on one that gives a table of the others.
//!
//! Source: `litert/vendors/c/litert_compiler_plugin.h` of LiteRT 2.3.0 and `litert_compiler_plugin_api.h` of 2.4.

#![allow(unsafe_code)]

use crate::compile::{Compiled, Plugin};
use crate::context::{Context, Object};
use nnhal_c_boundary::handle::Table;
use nnhal_litert_common::Shared;
use nnhal_litert_common::compiled::{
    API_VERSION, ApiVersion, Failure, Header, Outcome, Status, TABLE_VERSION, answer,
    check_asked_table, options_of_environment,
};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::Arc;

static PLUGINS: Table<Plugin> = Table::new(1);
static COMPILED: Table<Compiled> = Table::new(2);

/// Who makes the processor, in LiteRT's words.
const NAME: &CStr = c"nnhal";

/// `kLiteRtHwAcceleratorNpu`: what LiteRT has plugins for.
const NPU: c_int = 4;

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };

/// Writes an answer.
///
/// # Safety
/// `place` is null, or has room for the value.
unsafe fn put<T>(place: *mut T, value: T) -> Outcome {
    let place = NonNull::new(place).ok_or_else(|| Failure::null("the place for the answer"))?;
    // SAFETY: as the caller says.
    unsafe { place.write(value) };
    Ok(())
}

fn plugin(handle: *const c_void) -> Outcome<Arc<Plugin>> {
    PLUGINS.find(handle.addr()).map_err(|why| Failure::dead("compiler plugin", why))
}

fn compiled(handle: *const c_void) -> Outcome<Arc<Compiled>> {
    COMPILED.find(handle.addr()).map_err(|why| Failure::dead("compiled result", why))
}

fn beyond(what: &str, index: usize, count: usize) -> Failure {
    let sentence = format!("{what} {index}, but there are {count}");
    Failure::new(Status::IndexOutOfBounds, sentence)
}

fn full() -> Failure {
    Failure::new(Status::RuntimeFailure, "there are too many of its kind already")
}

/// The version of LiteRT's C API that this is for.
///
/// # Safety
/// `version` is null, or has room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LiteRtGetCompilerPluginVersion(version: *mut ApiVersion) -> c_int {
    // SAFETY: as the caller says.
    answer("LiteRtGetCompilerPluginVersion", || unsafe { put(version, API_VERSION) })
}

/// Who makes the processor.
#[unsafe(no_mangle)]
pub extern "C" fn LiteRtGetCompilerPluginSocManufacturer() -> *const c_char {
    NAME.as_ptr()
}

/// Makes a plugin, with the options of the environment.
///
/// # Safety
/// `context` is null or LiteRT's table, which is never freed; `plugin` is null or has room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LiteRtCreateCompilerPlugin(
    context: *const c_void,
    plugin: *mut *mut c_void,
    _environment: *const c_void,
    _options: *const c_void,
) -> c_int {
    answer("LiteRtCreateCompilerPlugin", || {
        // SAFETY: as the caller says.
        let context = unsafe { Context::new(context) }?;
        let shared = Shared::of("compiler plugin", options_of_environment()?);
        let made = Arc::new(Plugin::new(context, shared));
        let handle = PLUGINS.insert(made).ok_or_else(full)?;
        // SAFETY: as the caller says.
        let put = unsafe { put(plugin, ptr::without_provenance_mut(handle)) };
        if put.is_err() {
            let _ = PLUGINS.remove(handle);
        }
        put
    })
}

/// Deletes a plugin.
#[unsafe(no_mangle)]
pub extern "C" fn LiteRtDestroyCompilerPlugin(plugin: *mut c_void) {
    answer("LiteRtDestroyCompilerPlugin", || {
        PLUGINS.remove(plugin.addr()).map(drop).map_err(|why| Failure::dead("compiler plugin", why))
    });
}

/// What LiteRT asks for when it wants this plugin.
///
/// # Safety
/// `hardware` is null, or has room for a set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LiteRtGetCompilerPluginSupportedHardware(
    handle: *const c_void,
    hardware: *mut c_int,
) -> c_int {
    answer("LiteRtGetCompilerPluginSupportedHardware", || {
        plugin(handle)?;
        // SAFETY: as the caller says.
        unsafe { put(hardware, NPU) }
    })
}

/// How many processors there are by name.
///
/// # Safety
/// `count` is null, or has room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LiteRtGetNumCompilerPluginSupportedSocModels(
    handle: *const c_void,
    count: *mut usize,
) -> c_int {
    answer("LiteRtGetNumCompilerPluginSupportedSocModels", || {
        plugin(handle)?;
        // SAFETY: as the caller says.
        unsafe { put(count, 1) }
    })
}

/// The name of a processor.
///
/// # Safety
/// `name` is null, or has room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LiteRtGetCompilerPluginSupportedSocModel(
    handle: *const c_void,
    index: usize,
    name: *mut *const c_char,
) -> c_int {
    answer("LiteRtGetCompilerPluginSupportedSocModel", || {
        plugin(handle)?;
        if index > 0 {
            return Err(beyond("processor", index, 1));
        }
        // SAFETY: as the caller says.
        unsafe { put(name, NAME.as_ptr()) }
    })
}

/// The version of nnhal: what LiteRT has compiled and kept is for this version only.
///
/// # Safety
/// `version` is null, or has room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LiteRtGetCompilerPluginSDKVersion(
    handle: *const c_void,
    version: *mut *const c_char,
) -> c_int {
    answer("LiteRtGetCompilerPluginSDKVersion", || {
        plugin(handle)?;
        // SAFETY: as the caller says.
        unsafe { put(version, VERSION.as_ptr()) }
    })
}

/// Chooses operators of a subgraph.
///
/// # Safety
/// `subgraph` and `chosen` are null or of LiteRT, which does not change its model meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LiteRtCompilerPluginPartition(
    handle: *const c_void,
    _soc_model: *const c_char,
    subgraph: *const c_void,
    chosen: *const c_void,
) -> c_int {
    answer("LiteRtCompilerPluginPartition", || {
        if subgraph.is_null() || chosen.is_null() {
            return Err(Failure::null("the subgraph, or the list for its operators,"));
        }
        plugin(handle)?.partition(Object::new(subgraph), Object::new(chosen))
    })
}

/// Makes byte code of partitions.
///
/// # Safety
/// `partitions` is null or a model of LiteRT; `result` is null or has room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LiteRtCompilerPluginCompile(
    handle: *const c_void,
    _soc_model: *const c_char,
    partitions: *const c_void,
    result: *mut *mut c_void,
) -> c_int {
    answer("LiteRtCompilerPluginCompile", || {
        if partitions.is_null() || result.is_null() {
            return Err(Failure::null("the model, or the place for the answer,"));
        }
        let made = Arc::new(plugin(handle)?.compile(Object::new(partitions))?);
        let made = COMPILED.insert(made).ok_or_else(full)?;
        // SAFETY: as the caller says; it is not null.
        unsafe { put(result, ptr::without_provenance_mut(made)) }
    })
}

/// Deletes a compiled result, and its byte code.
#[unsafe(no_mangle)]
pub extern "C" fn LiteRtDestroyCompiledResult(result: *mut c_void) {
    answer("LiteRtDestroyCompiledResult", || {
        COMPILED
            .remove(result.addr())
            .map(drop)
            .map_err(|why| Failure::dead("compiled result", why))
    });
}

/// The byte code, which is there until the result is deleted.
///
/// # Safety
/// `bytes` and `size` are null, or have room for what they are called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LiteRtGetCompiledResultByteCode(
    result: *const c_void,
    index: usize,
    bytes: *mut *const c_void,
    size: *mut usize,
) -> c_int {
    answer("LiteRtGetCompiledResultByteCode", || {
        let compiled = compiled(result)?;
        if index > 0 {
            return Err(beyond("byte code", index, 1));
        }
        // SAFETY: as the caller says.
        unsafe {
            put(bytes, compiled.byte_code.as_ptr().cast())?;
            put(size, compiled.byte_code.len())
        }
    })
}

/// There is one byte code for all partitions.
///
/// # Safety
/// `count` is null, or has room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LiteRtCompiledResultNumByteCodeModules(
    result: *const c_void,
    count: *mut usize,
) -> c_int {
    answer("LiteRtCompiledResultNumByteCodeModules", || {
        // LiteRT compiles nothing where nothing was chosen, and asks all the same. After an error it runs the model as
        // the file has it.
        if result.is_null() {
            return Err(Failure::quiet(Status::NotFound, "no operator of the model is taken"));
        }
        compiled(result)?;
        // SAFETY: as the caller says.
        unsafe { put(count, 1) }
    })
}

/// What the dispatch library knows a partition by, which is there until the result is deleted.
///
/// # Safety
/// The three places are null, or have room for what they are called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LiteRtGetCompiledResultCallInfo(
    result: *const c_void,
    index: usize,
    info: *mut *const c_void,
    size: *mut usize,
    byte_code: *mut usize,
) -> c_int {
    answer("LiteRtGetCompiledResultCallInfo", || {
        let compiled = compiled(result)?;
        let count = compiled.calls.len();
        let call = compiled.calls.get(index).ok_or_else(|| beyond("call", index, count))?;
        // SAFETY: as the caller says.
        unsafe {
            put(info, call.as_ptr().cast())?;
            put(size, call.len())?;
            put(byte_code, 0)
        }
    })
}

/// How many partitions there are.
///
/// # Safety
/// `count` is null, or has room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LiteRtGetNumCompiledResultCalls(
    result: *const c_void,
    count: *mut usize,
) -> c_int {
    answer("LiteRtGetNumCompiledResultCalls", || {
        let calls = compiled(result)?.calls.len();
        // SAFETY: as the caller says.
        unsafe { put(count, calls) }
    })
}

/// There are no transformations.
///
/// # Safety
/// Both places are null, or have room for what they are called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LiteRtCompilerPluginRegisterAllTransformations(
    handle: *const c_void,
    transformations: *mut *const c_void,
    count: *mut usize,
) -> c_int {
    answer("LiteRtCompilerPluginRegisterAllTransformations", || {
        plugin(handle)?;
        // SAFETY: as the caller says.
        unsafe {
            put(transformations, ptr::null())?;
            put(count, 0)
        }
    })
}

/// Whether LiteRT is of the version that this is for.
#[unsafe(no_mangle)]
pub extern "C" fn LiteRtCompilerPluginCheckCompilerCompatibility(
    version: ApiVersion,
    handle: *const c_void,
    _environment: *const c_void,
    _options: *const c_void,
    _soc_model: *const c_char,
) -> c_int {
    answer("LiteRtCompilerPluginCheckCompilerCompatibility", || {
        plugin(handle)?;
        if version == API_VERSION {
            return Ok(());
        }
        let sentence = format!("LiteRT has API version {version:?}, expected {API_VERSION:?}");
        Err(Failure::new(Status::UnsupportedCompilerVersion, sentence))
    })
}

/// The functions above, in LiteRT's order.
#[repr(C)]
pub(crate) struct Interface {
    pub(crate) header: Header,
    version: unsafe extern "C" fn(*mut ApiVersion) -> c_int,
    soc_manufacturer: extern "C" fn() -> *const c_char,
    create: unsafe extern "C" fn(
        *const c_void,
        *mut *mut c_void,
        *const c_void,
        *const c_void,
    ) -> c_int,
    destroy: extern "C" fn(*mut c_void),
    supported_hardware: unsafe extern "C" fn(*const c_void, *mut c_int) -> c_int,
    num_supported_soc_models: unsafe extern "C" fn(*const c_void, *mut usize) -> c_int,
    supported_soc_model: unsafe extern "C" fn(*const c_void, usize, *mut *const c_char) -> c_int,
    partition:
        unsafe extern "C" fn(*const c_void, *const c_char, *const c_void, *const c_void) -> c_int,
    compile: unsafe extern "C" fn(
        *const c_void,
        *const c_char,
        *const c_void,
        *mut *mut c_void,
    ) -> c_int,
    destroy_result: extern "C" fn(*mut c_void),
    byte_code: unsafe extern "C" fn(*const c_void, usize, *mut *const c_void, *mut usize) -> c_int,
    num_byte_codes: unsafe extern "C" fn(*const c_void, *mut usize) -> c_int,
    call_info: unsafe extern "C" fn(
        *const c_void,
        usize,
        *mut *const c_void,
        *mut usize,
        *mut usize,
    ) -> c_int,
    num_calls: unsafe extern "C" fn(*const c_void, *mut usize) -> c_int,
    register_transformations:
        unsafe extern "C" fn(*const c_void, *mut *const c_void, *mut usize) -> c_int,
    sdk_version: unsafe extern "C" fn(*const c_void, *mut *const c_char) -> c_int,
    /// `get_compiled_result_handle`, which is optional.
    result_handle: Option<extern "C" fn()>,
    check_compatibility: extern "C" fn(
        ApiVersion,
        *const c_void,
        *const c_void,
        *const c_void,
        *const c_char,
    ) -> c_int,
}

/// Bytes of [`Interface`], as its header says: the header and 18 functions.
const INTERFACE_SIZE: u16 = if usize::BITS == 64 { 152 } else { 80 };
const _: () = assert!(size_of::<Interface>() == INTERFACE_SIZE as usize);

static INTERFACE: Interface = Interface {
    header: Header { size: INTERFACE_SIZE, major: TABLE_VERSION, minor: 0, reserved: 0 },
    version: LiteRtGetCompilerPluginVersion,
    soc_manufacturer: LiteRtGetCompilerPluginSocManufacturer,
    create: LiteRtCreateCompilerPlugin,
    destroy: LiteRtDestroyCompilerPlugin,
    supported_hardware: LiteRtGetCompilerPluginSupportedHardware,
    num_supported_soc_models: LiteRtGetNumCompilerPluginSupportedSocModels,
    supported_soc_model: LiteRtGetCompilerPluginSupportedSocModel,
    partition: LiteRtCompilerPluginPartition,
    compile: LiteRtCompilerPluginCompile,
    destroy_result: LiteRtDestroyCompiledResult,
    byte_code: LiteRtGetCompiledResultByteCode,
    num_byte_codes: LiteRtCompiledResultNumByteCodeModules,
    call_info: LiteRtGetCompiledResultCallInfo,
    num_calls: LiteRtGetNumCompiledResultCalls,
    register_transformations: LiteRtCompilerPluginRegisterAllTransformations,
    sdk_version: LiteRtGetCompilerPluginSDKVersion,
    result_handle: None,
    check_compatibility: LiteRtCompilerPluginCheckCompilerCompatibility,
};

/// The table of functions with a number, of which there is one.
///
/// # Safety
/// `table` is null, or has room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LiteRtCompilerPluginQueryInterface(
    number: c_int,
    version: ApiVersion,
    table: *mut *const c_void,
) -> c_int {
    answer("LiteRtCompilerPluginQueryInterface", || {
        check_asked_table(number, version)?;
        // SAFETY: as the caller says.
        unsafe { put(table, (&raw const INTERFACE).cast()) }
    })
}
