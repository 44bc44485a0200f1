//! The functions as a LiteRT calls them that does everything wrong. What the right one does is tried in the wheel:
//! `tests/litert_dispatch`.

#![allow(unsafe_code, reason = "C functions are called as C would")]

use crate::exports::*;
use nnhal_litert_common::compiled::{API_VERSION, ApiVersion, Header};
use std::ffi::{c_int, c_void};
use std::ptr;

const OK: c_int = 0;
const INVALID_ARGUMENT: c_int = 1;
const RUNTIME_FAILURE: c_int = 3;
const NOT_FOUND: c_int = 6;
const INDEX_OUT_OF_BOUNDS: c_int = 1000;
const UNSUPPORTED_RUNTIME: c_int = 4000;
const UNSUPPORTED_COMPILER: c_int = 4001;

/// What a function of LiteRT says to any question.
unsafe extern "C" fn fails() -> c_int {
    9
}

/// A table of functions that all fail; with `missing`, all are null.
fn context(size: u16, major: u16, missing: bool) -> *const c_void {
    let header = Header { size, major, minor: 0, reserved: 0 };
    let function = if missing { 0 } else { fails as *const () as usize };
    let mut table = Box::new([function; 140]);
    // SAFETY: 8 bytes, of which any are a number.
    table[0] = unsafe { std::mem::transmute::<Header, usize>(header) };
    ptr::from_ref(Box::leak(table)).cast()
}

fn create(context: *const c_void) -> Result<*mut c_void, c_int> {
    let mut plugin = ptr::null_mut();
    // SAFETY: null or a table, and a place for a pointer.
    let status =
        unsafe { LiteRtCreateCompilerPlugin(context, &raw mut plugin, ptr::null(), ptr::null()) };
    if status == OK { Ok(plugin) } else { Err(status) }
}

#[test]
fn a_litert_of_another_age_is_refused() {
    assert_eq!(create(ptr::null()), Err(INVALID_ARGUMENT));
    for (size, major) in [(8, 1), (1040, 1), (1104, 2)] {
        assert_eq!(create(context(size, major, false)), Err(UNSUPPORTED_RUNTIME));
    }
    let plugin = create(context(1048, 1, false)).unwrap();
    let check = |version| {
        LiteRtCompilerPluginCheckCompilerCompatibility(
            version,
            plugin,
            ptr::null(),
            ptr::null(),
            ptr::null(),
        )
    };
    assert_eq!(check(API_VERSION), OK);
    assert_eq!(check(ApiVersion { major: 2, minor: 3, patch: 0 }), UNSUPPORTED_COMPILER);
}

#[test]
fn what_litert_does_not_say_is_a_status() {
    let object = ptr::without_provenance(16);
    for (missing, expected) in [(false, RUNTIME_FAILURE), (true, UNSUPPORTED_RUNTIME)] {
        let plugin = create(context(1048, 1, missing)).unwrap();
        let mut result = ptr::null_mut();
        // SAFETY: the functions of the table do not look at what they get.
        unsafe {
            let status = LiteRtCompilerPluginPartition(plugin, ptr::null(), object, object);
            assert_eq!(status, expected);
            let status = LiteRtCompilerPluginCompile(plugin, ptr::null(), object, &raw mut result);
            assert_eq!((status, result.is_null()), (expected, true));
        }
    }
}

#[test]
fn nothing_and_what_is_gone_are_statuses() {
    let plugin = create(context(1048, 1, false)).unwrap();
    let (mut hardware, mut count, mut text) = (0, 0_usize, ptr::null());
    // SAFETY: handles that are looked up, and places for what is answered, or null.
    unsafe {
        assert_eq!(LiteRtGetCompilerPluginSupportedHardware(plugin, &raw mut hardware), OK);
        assert_eq!(hardware, 4);
        assert_eq!(LiteRtGetNumCompilerPluginSupportedSocModels(plugin, &raw mut count), OK);
        assert_eq!(LiteRtGetCompilerPluginSupportedSocModel(plugin, 0, &raw mut text), OK);
        let beyond = LiteRtGetCompilerPluginSupportedSocModel(plugin, count, &raw mut text);
        assert_eq!(beyond, INDEX_OUT_OF_BOUNDS);
        let null = LiteRtGetCompilerPluginSupportedHardware(plugin, ptr::null_mut());
        assert_eq!(null, INVALID_ARGUMENT);
        let null = LiteRtCompilerPluginPartition(plugin, ptr::null(), ptr::null(), ptr::null());
        assert_eq!(null, INVALID_ARGUMENT);
        LiteRtDestroyCompilerPlugin(plugin);
        LiteRtDestroyCompilerPlugin(plugin);
        LiteRtDestroyCompiledResult(plugin);
        let dead = LiteRtGetCompilerPluginSupportedHardware(plugin, &raw mut hardware);
        assert_eq!(dead, INVALID_ARGUMENT);
        let dead = LiteRtGetNumCompiledResultCalls(plugin, &raw mut count);
        assert_eq!(dead, INVALID_ARGUMENT);
        let none = LiteRtCompiledResultNumByteCodeModules(ptr::null(), &raw mut count);
        assert_eq!(none, NOT_FOUND, "nothing was taken");
    }
}
