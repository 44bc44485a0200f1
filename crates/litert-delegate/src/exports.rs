//! The functions that hosts call: two by name, the others through the structures of the C API.
//!
//! The structure of a delegate is never freed: interpreters keep pointers to it, and some look at it after whoever made
//! it has destroyed it. So it is found out that it is gone, at the price of 56 bytes for each delegate that
//! a process makes.

#![allow(unsafe_code)]

use crate::abi;
use crate::delegate::{self, Delegate};
use crate::error::{Error, Result, option};
use crate::host::{Host, Partition};
use nnhal_litert_common::{DELEGATE_KEYS, Options, Shared, guarded, telling};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

/// What the kernel is called in the interpreter's messages and profiles.
const NAME: &CStr = c"NnhalDelegate";

/// The status of a call, whose error the host's reporter shows.
///
/// # Safety
/// `context` is null, or that of the host that is calling.
unsafe fn status(
    context: *mut abi::Context,
    otherwise: c_int,
    call: impl FnOnce(&Host<'_>) -> Result<()>,
) -> c_int {
    // SAFETY: as the caller says; the value does not leave this call.
    let Some(host) = (unsafe { Host::new(context) }) else { return otherwise };
    match guarded(|| call(&host)) {
        Ok(()) => abi::OK,
        Err(error) => {
            telling(|| host.report(&format!("nnhal delegate: {error}")));
            otherwise
        }
    }
}

/// Makes a delegate with these options; null after an error, which `report_error` gets as a sentence. With an unknown
/// key or a value that makes no sense it lists what there is.
///
/// # Safety
/// `keys` and `values` lead to `count` strings each, or are null if there are none; `report_error` is null
/// or a function that takes a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tflite_plugin_create_delegate(
    keys: *const *const c_char,
    values: *const *const c_char,
    count: usize,
    report_error: Option<unsafe extern "C" fn(*const c_char)>,
) -> *mut c_void {
    let made: Result<_> = guarded(|| {
        // SAFETY: as the caller says.
        let pairs = unsafe { pairs(keys, values, count) }?;
        let shared = Shared::new(Options::parse(&pairs, &DELEGATE_KEYS)?);
        let structure = Box::leak(Box::new(abi::Delegate {
            data: ptr::null_mut(),
            prepare: Some(prepare_delegate),
            copy_from_buffer_handle: None,
            copy_to_buffer_handle: None,
            free_buffer_handle: None,
            flags: abi::ALLOW_DYNAMIC_TENSORS,
            opaque_delegate_builder: ptr::null_mut(),
        }));
        let pointer = ptr::from_mut(structure);
        Delegate::register(pointer.addr(), shared);
        Ok(pointer)
    });
    match made {
        Ok(pointer) => pointer.cast(),
        Err(error) => {
            if let Some(report) = report_error {
                let sentence = format!("nnhal delegate: {error}").replace('\0', " ");
                let sentence = CString::new(sentence).unwrap_or_default();
                // SAFETY: a string that ends, and exists until the call returns.
                unsafe { report(sentence.as_ptr()) };
            }
            ptr::null_mut()
        }
    }
}

/// # Safety
/// As [`tflite_plugin_create_delegate`].
unsafe fn pairs(
    keys: *const *const c_char,
    values: *const *const c_char,
    count: usize,
) -> Result<Vec<(String, String)>> {
    // Python's wheels pass the number as an `int`, whose upper half is not said.
    let count = count & 0xFFFF_FFFF;
    // An option is there once at most: more pairs are no options, whatever they are.
    if count > 2 * DELEGATE_KEYS.len() {
        return Err(option(format!("{count} options, there are only {}", DELEGATE_KEYS.len())));
    }
    if count > 0 && (keys.is_null() || values.is_null()) {
        return Err(option(format!("{count} options, but no keys or values")));
    }
    // SAFETY: there are `count` pointers; each is null or leads to a string that ends.
    let text = |all: *const *const c_char, at: usize| unsafe {
        let text = *all.add(at);
        (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    };
    let pair = |at| {
        let missing = || option(format!("key or value {at} is null"));
        Ok((text(keys, at).ok_or_else(missing)?, text(values, at).ok_or_else(missing)?))
    };
    (0..count).map(pair).collect()
}

/// Deletes a delegate. Kernels that interpreters still have go on; another interpreter is refused. What is no
/// delegate, or was deleted before, is left alone.
///
/// # Safety
/// None: the pointer is looked up, not followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tflite_plugin_destroy_delegate(delegate: *mut c_void) {
    let _ = guarded::<_, Error>(|| Ok(Delegate::forget(delegate.addr())));
}

fn registration() -> abi::Registration {
    abi::Registration {
        init: Some(init),
        free: Some(free),
        prepare: Some(prepare),
        invoke: Some(invoke),
        profiling_string: None,
        builtin_code: 0,
        custom_name: NAME.as_ptr(),
        version: 1,
        registration_external: ptr::null_mut(),
        async_kernel: None,
        inplace_operator: 0,
    }
}

extern "C" fn prepare_delegate(context: *mut abi::Context, delegate: *mut abi::Delegate) -> c_int {
    // SAFETY: the interpreter calls with its context.
    unsafe {
        status(context, abi::DELEGATE_ERROR, |host| {
            Delegate::prepare(host, delegate.addr(), registration(), delegate)
        })
    }
}

/// For a delegate's kernel the "buffer" is the partition.
extern "C" fn init(
    context: *mut abi::Context,
    buffer: *const c_char,
    _length: usize,
) -> *mut c_void {
    let mut number = 0;
    let params = buffer.cast::<abi::DelegateParams>();
    if params.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: the interpreter calls with its context, and with the parameters that it has made.
    unsafe {
        let delegate = (*params).delegate.addr();
        let partition = Partition::of(params);
        status(context, abi::ERROR, |host| {
            number = delegate::init(host, delegate, &partition)?;
            Ok(())
        });
    }
    ptr::without_provenance_mut(number)
}

extern "C" fn free(_context: *mut abi::Context, kernel: *mut c_void) {
    let _ = guarded::<_, Error>(|| {
        delegate::free(kernel.addr());
        Ok(())
    });
}

/// The number of a node's kernel.
///
/// # Safety
/// `node` is null, or a node of the host that is calling.
unsafe fn kernel(node: *mut abi::Node) -> usize {
    // SAFETY: as the caller says.
    if node.is_null() { 0 } else { unsafe { (*node).user_data }.addr() }
}

extern "C" fn prepare(context: *mut abi::Context, node: *mut abi::Node) -> c_int {
    // SAFETY: the interpreter calls with its context and its node.
    unsafe {
        let kernel = kernel(node);
        status(context, abi::ERROR, |host| {
            delegate::with_kernel(kernel, |kernel| kernel.prepare(host))
        })
    }
}

extern "C" fn invoke(context: *mut abi::Context, node: *mut abi::Node) -> c_int {
    // SAFETY: as in `prepare`.
    unsafe {
        let kernel = kernel(node);
        status(context, abi::ERROR, |host| {
            delegate::with_kernel(kernel, |kernel| kernel.invoke(host))
        })
    }
}
