//! The functions that LiteRT looks up, one up to version 2.3 and another from 2.4 on, and those that it gets from them.
//!
//! Source: `litert/vendors/c/litert_dispatch_api.h` of LiteRT 2.3.0 and 2.4.

#![allow(unsafe_code)]

use crate::partition::{DeviceContext, Partition, Side};
use crate::runtime::{Buffer, MemoryBuffer, Runtime};
use nnhal_c_boundary::handle::Table;
use nnhal_litert_common::Shared;
use nnhal_litert_common::compiled::{
    API_VERSION, ApiVersion, Failure, Header, Outcome, RankedTensorType, Status, TABLE_VERSION,
    answer, check_asked_table, options_of_environment,
};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::Arc;

static DEVICES: Table<DeviceContext> = Table::new(3);
static PARTITIONS: Table<Partition> = Table::new(4);

/// `kLiteRtDispatchExecutableTypeMlModel`
const MODEL: c_int = 2;
/// `kLiteRtDispatchCapabilitiesBasic`
const BASIC: c_int = 1;

const NAME: &CStr = c"nnhal";

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };

/// The most bytes of a partition's name.
const LONGEST_NAME: usize = 32;

/// The functions of a dispatch library, in LiteRT's order.
#[repr(C)]
struct Interface {
    initialize: extern "C" fn(*const c_void, *const c_void, *const c_void) -> c_int,
    get_vendor_id: unsafe extern "C" fn(*mut *const c_char) -> c_int,
    get_build_id: unsafe extern "C" fn(*mut *const c_char) -> c_int,
    get_capabilities: unsafe extern "C" fn(*mut c_int) -> c_int,
    device_context_create:
        unsafe extern "C" fn(*const c_void, *const c_void, *mut *mut c_void) -> c_int,
    device_context_destroy: extern "C" fn(*mut c_void) -> c_int,
    get_input_requirements: unsafe extern "C" fn(
        *mut c_void,
        c_int,
        *const RankedTensorType,
        *mut *mut c_void,
    ) -> c_int,
    get_output_requirements: unsafe extern "C" fn(
        *mut c_void,
        c_int,
        *const RankedTensorType,
        *mut *mut c_void,
    ) -> c_int,
    register_tensor_buffer: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut u64) -> c_int,
    unregister_tensor_buffer: extern "C" fn(*mut c_void, u64) -> c_int,
    invocation_context_create: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        c_int,
        *const MemoryBuffer,
        *const c_char,
        c_int,
        c_int,
        *mut *mut c_void,
    ) -> c_int,
    invocation_context_destroy: extern "C" fn(*mut c_void) -> c_int,
    set_scheduling_info: extern "C" fn(*mut c_void, *const c_void) -> c_int,
    attach_input: extern "C" fn(*mut c_void, c_int, u64) -> c_int,
    attach_output: extern "C" fn(*mut c_void, c_int, u64) -> c_int,
    detach_input: extern "C" fn(*mut c_void, c_int, u64) -> c_int,
    detach_output: extern "C" fn(*mut c_void, c_int, u64) -> c_int,
    invoke: extern "C" fn(*mut c_void) -> c_int,
    start_metrics_collection: extern "C" fn(*mut c_void, c_int) -> c_int,
    stop_metrics_collection: extern "C" fn(*mut c_void, *mut *mut c_void) -> c_int,
    get_num_metrics: extern "C" fn(*mut c_void, *mut c_int) -> c_int,
    get_metric: extern "C" fn(*mut c_void, c_int, *mut c_void) -> c_int,
    destroy_metrics: extern "C" fn(*mut c_void) -> c_int,
    check_runtime_compatibility: extern "C" fn(ApiVersion, *const c_void, *const c_void) -> c_int,
    set_options: extern "C" fn(*mut c_void, *const c_void) -> c_int,
    get_hooks: unsafe extern "C" fn(*mut c_void, *mut *mut c_void, *mut *mut c_void) -> c_int,
}

/// The functions as LiteRT 2.4 has them, behind a header. They end before those for graphs' edges, which are optional.
#[repr(C)]
pub(crate) struct InterfaceV1 {
    pub(crate) header: Header,
    interface: Interface,
}

/// Bytes of [`InterfaceV1`], as its header says: the header and 26 functions.
const TABLE_SIZE: u16 = if usize::BITS == 64 { 216 } else { 112 };
const _: () = assert!(size_of::<InterfaceV1>() == TABLE_SIZE as usize);

/// What LiteRT gets up to version 2.3.
#[repr(C)]
#[derive(Debug)]
pub struct Api {
    header: Header,
    version: ApiVersion,
    interface: *const c_void,
    asynchronous: *const c_void,
    graph: *const c_void,
    buffers: *const c_void,
}

/// Bytes of [`Api`], as its header says.
const API_SIZE: u16 = if usize::BITS == 64 { 56 } else { 40 };

const _: () = {
    assert!(size_of::<Api>() == API_SIZE as usize);
    assert!(size_of::<Interface>() == 26 * size_of::<usize>());
    #[cfg(target_pointer_width = "64")]
    assert!(size_of::<Api>() == 56);
    #[cfg(target_pointer_width = "64")]
    assert!(std::mem::offset_of!(Api, interface) == 24);
};

static TABLE: InterfaceV1 = InterfaceV1 {
    header: Header { size: TABLE_SIZE, major: TABLE_VERSION, minor: 0, reserved: 0 },
    interface: Interface {
        initialize,
        get_vendor_id,
        get_build_id,
        get_capabilities,
        device_context_create,
        device_context_destroy,
        get_input_requirements,
        get_output_requirements,
        register_tensor_buffer,
        unregister_tensor_buffer,
        invocation_context_create,
        invocation_context_destroy,
        set_scheduling_info,
        attach_input,
        attach_output,
        detach_input,
        detach_output,
        invoke,
        start_metrics_collection,
        stop_metrics_collection,
        get_num_metrics,
        get_metric,
        destroy_metrics,
        check_runtime_compatibility,
        set_options,
        get_hooks,
    },
};

/// Fills in LiteRT's structure.
///
/// # Safety
/// `api` is null or a structure that begins with a header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LiteRtDispatchGetApi(api: *mut Api) -> c_int {
    answer("LiteRtDispatchGetApi", || {
        let api =
            NonNull::new(api).ok_or_else(|| Failure::null("the structure for the functions"))?;
        // SAFETY: as the caller says.
        let found = unsafe { api.cast::<Header>().read_unaligned() };
        if found.major != 1 || usize::from(found.size) < size_of::<Api>() {
            let sentence = format!(
                "LiteRT's structure for dispatch libraries is of version {}.{} with {} bytes, expected version 1 with {}",
                found.major,
                found.minor,
                found.size,
                size_of::<Api>()
            );
            return Err(Failure::new(Status::UnsupportedRuntimeVersion, sentence));
        }
        let filled = Api {
            header: Header { size: API_SIZE, major: 1, minor: 0, reserved: 0 },
            version: API_VERSION,
            interface: (&raw const TABLE.interface).cast(),
            asynchronous: ptr::null(),
            graph: ptr::null(),
            buffers: ptr::null(),
        };
        // SAFETY: the structure is at least so large.
        unsafe { api.write_unaligned(filled) };
        Ok(())
    })
}

/// The table of functions with a number, of which there is one: there are no events, graphs or buffers of its own.
///
/// # Safety
/// `table` is null, or has room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LiteRtDispatchQueryInterface(
    number: c_int,
    version: ApiVersion,
    table: *mut *const c_void,
) -> c_int {
    answer("LiteRtDispatchQueryInterface", || {
        check_asked_table(number, version)?;
        // SAFETY: as the caller says.
        unsafe { put(table, (&raw const TABLE).cast()) }
    })
}

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

fn device(handle: *mut c_void) -> Outcome<Arc<DeviceContext>> {
    DEVICES.find(handle.addr()).map_err(|why| Failure::dead("device context", why))
}

fn partition(handle: *mut c_void) -> Outcome<Arc<Partition>> {
    PARTITIONS.find(handle.addr()).map_err(|why| Failure::dead("invocation context", why))
}

fn full() -> Failure {
    Failure::new(Status::RuntimeFailure, "there are too many of its kind already")
}

/// What LiteRT can do without.
fn unsupported() -> c_int {
    Status::Unsupported as c_int
}

extern "C" fn initialize(
    _runtime: *const c_void,
    _environment: *const c_void,
    _options: *const c_void,
) -> c_int {
    Status::Ok as c_int
}

unsafe extern "C" fn get_vendor_id(id: *mut *const c_char) -> c_int {
    // SAFETY: LiteRT passes null or a place for a pointer.
    answer("get_vendor_id", || unsafe { put(id, NAME.as_ptr()) })
}

unsafe extern "C" fn get_build_id(id: *mut *const c_char) -> c_int {
    // SAFETY: as above.
    answer("get_build_id", || unsafe { put(id, VERSION.as_ptr()) })
}

unsafe extern "C" fn get_capabilities(capabilities: *mut c_int) -> c_int {
    // SAFETY: LiteRT passes null or a place for a number.
    answer("get_capabilities", || unsafe { put(capabilities, BASIC) })
}

unsafe extern "C" fn device_context_create(
    runtime: *const c_void,
    _options: *const c_void,
    place: *mut *mut c_void,
) -> c_int {
    answer("device_context_create", || {
        // SAFETY: LiteRT passes null or its own table, which it never frees.
        let runtime = unsafe { Runtime::new(runtime) }?;
        let shared = Shared::of("device context", options_of_environment()?);
        let made = Arc::new(DeviceContext::new(runtime, shared));
        let handle = DEVICES.insert(made).ok_or_else(full)?;
        // SAFETY: LiteRT passes null or a place for a pointer.
        let put = unsafe { put(place, ptr::without_provenance_mut(handle)) };
        if put.is_err() {
            let _ = DEVICES.remove(handle);
        }
        put
    })
}

extern "C" fn device_context_destroy(handle: *mut c_void) -> c_int {
    answer("device_context_destroy", || {
        let device = DEVICES.remove(handle.addr());
        let device = device.map_err(|why| Failure::dead("device context", why))?;
        // The parent of a process that was forked writes its own.
        if device.shared.check_process().is_ok() {
            device.shared.save_trace();
        }
        Ok(())
    })
}

/// # Safety
/// `of` is null or a type of LiteRT; `place` is null or has room for a pointer.
unsafe fn requirements(
    handle: *mut c_void,
    side: Side,
    index: c_int,
    of: *const RankedTensorType,
    place: *mut *mut c_void,
) -> Outcome {
    let of = NonNull::new(of.cast_mut()).ok_or_else(|| Failure::null("the tensor's type"))?;
    // SAFETY: as the caller says.
    let of = unsafe { of.read() };
    let made = partition(handle)?.requirements(side, index, &of)?;
    // SAFETY: as the caller says.
    unsafe { put(place, made) }
}

unsafe extern "C" fn get_input_requirements(
    handle: *mut c_void,
    index: c_int,
    of: *const RankedTensorType,
    place: *mut *mut c_void,
) -> c_int {
    // SAFETY: LiteRT passes what `requirements` asks for.
    answer("get_input_requirements", || unsafe {
        requirements(handle, Side::Input, index, of, place)
    })
}

unsafe extern "C" fn get_output_requirements(
    handle: *mut c_void,
    index: c_int,
    of: *const RankedTensorType,
    place: *mut *mut c_void,
) -> c_int {
    // SAFETY: as above.
    answer("get_output_requirements", || unsafe {
        requirements(handle, Side::Output, index, of, place)
    })
}

unsafe extern "C" fn register_tensor_buffer(
    handle: *mut c_void,
    buffer: *mut c_void,
    number: *mut u64,
) -> c_int {
    answer("register_tensor_buffer", || {
        let device = device(handle)?;
        if number.is_null() {
            return Err(Failure::null("the place for the buffer's number"));
        }
        let registered = device.register(Buffer::new(buffer)?);
        // SAFETY: LiteRT passes a place for a number; it is not null.
        unsafe { put(number, registered) }
    })
}

extern "C" fn unregister_tensor_buffer(handle: *mut c_void, number: u64) -> c_int {
    answer("unregister_tensor_buffer", || device(handle)?.unregister(number))
}

unsafe extern "C" fn invocation_context_create(
    _runtime: *const c_void,
    device_context: *mut c_void,
    kind: c_int,
    byte_code: *const MemoryBuffer,
    name: *const c_char,
    inputs: c_int,
    outputs: c_int,
    place: *mut *mut c_void,
) -> c_int {
    answer("invocation_context_create", || {
        let device = device(device_context)?;
        if kind != MODEL {
            return Err(Failure::new(
                Status::Unsupported,
                format!("byte code is of kind {kind}, expected {MODEL}, a model"),
            ));
        }
        if byte_code.is_null() || name.is_null() || place.is_null() {
            return Err(Failure::null("the byte code, its name or the place for the answer"));
        }
        // SAFETY: LiteRT passes a structure, and keeps what it leads to until the context is destroyed; of a file it has
        // checked that the bytes are within.
        let lent = unsafe { byte_code.read().lend() }?;
        // SAFETY: LiteRT passes a string that ends.
        let name = unsafe { CStr::from_ptr(name) };
        let name = name.to_str().ok().filter(|name| name.len() <= LONGEST_NAME);
        let name = name.ok_or_else(|| Failure::argument("a partition has a name that is none"))?;
        let count = |of: c_int| {
            usize::try_from(of).map_err(|_| Failure::argument(format!("{of} inputs or outputs")))
        };
        let made = Partition::new(device, lent, name, [count(inputs)?, count(outputs)?])?;
        let handle = PARTITIONS.insert(Arc::new(made)).ok_or_else(full)?;
        // SAFETY: LiteRT passes a place for a pointer; it is not null.
        unsafe { put(place, ptr::without_provenance_mut(handle)) }
    })
}

extern "C" fn invocation_context_destroy(handle: *mut c_void) -> c_int {
    answer("invocation_context_destroy", || {
        let partition = PARTITIONS.remove(handle.addr());
        let partition = partition.map_err(|why| Failure::dead("invocation context", why))?;
        if partition.device.shared.check_process().is_err() {
            // In a process that was forked there are no threads to be waited for, which is what dropping it does.
            std::mem::forget(partition);
        }
        Ok(())
    })
}

extern "C" fn set_scheduling_info(_partition: *mut c_void, _info: *const c_void) -> c_int {
    unsupported()
}

extern "C" fn attach_input(handle: *mut c_void, index: c_int, number: u64) -> c_int {
    answer("attach_input", || partition(handle)?.attach(Side::Input, index, number))
}

extern "C" fn attach_output(handle: *mut c_void, index: c_int, number: u64) -> c_int {
    answer("attach_output", || partition(handle)?.attach(Side::Output, index, number))
}

extern "C" fn detach_input(handle: *mut c_void, index: c_int, number: u64) -> c_int {
    answer("detach_input", || partition(handle)?.detach(Side::Input, index, number))
}

extern "C" fn detach_output(handle: *mut c_void, index: c_int, number: u64) -> c_int {
    answer("detach_output", || partition(handle)?.detach(Side::Output, index, number))
}

extern "C" fn invoke(handle: *mut c_void) -> c_int {
    answer("invoke", || partition(handle)?.invoke())
}

extern "C" fn start_metrics_collection(_partition: *mut c_void, _level: c_int) -> c_int {
    unsupported()
}

extern "C" fn stop_metrics_collection(_partition: *mut c_void, _to: *mut *mut c_void) -> c_int {
    unsupported()
}

extern "C" fn get_num_metrics(_metrics: *mut c_void, _count: *mut c_int) -> c_int {
    unsupported()
}

extern "C" fn get_metric(_metrics: *mut c_void, _index: c_int, _metric: *mut c_void) -> c_int {
    unsupported()
}

extern "C" fn destroy_metrics(_metrics: *mut c_void) -> c_int {
    unsupported()
}

extern "C" fn check_runtime_compatibility(
    version: ApiVersion,
    _environment: *const c_void,
    _options: *const c_void,
) -> c_int {
    answer("check_runtime_compatibility", || {
        if version == API_VERSION {
            return Ok(());
        }
        let sentence = format!("LiteRT has API version {version:?}, expected {API_VERSION:?}");
        Err(Failure::new(Status::UnsupportedRuntimeVersion, sentence))
    })
}

/// There is nothing to set for a run.
extern "C" fn set_options(_partition: *mut c_void, _options: *const c_void) -> c_int {
    unsupported()
}

/// There are none.
unsafe extern "C" fn get_hooks(
    _device: *mut c_void,
    hook: *mut *mut c_void,
    data: *mut *mut c_void,
) -> c_int {
    answer("get_hooks", || {
        // SAFETY: LiteRT passes null or places for pointers.
        unsafe {
            put(hook, ptr::null_mut())?;
            put(data, ptr::null_mut())
        }
    })
}
