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
const UNSUPPORTED: c_int = 5;
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

#[test]
fn litert_2_4_gets_a_table_of_the_functions() {
    let ask = |number, major, place: *mut *const c_void| {
        let version = ApiVersion { major, minor: 0, patch: 0 };
        // SAFETY: null, or a place for a pointer.
        unsafe { LiteRtCompilerPluginQueryInterface(number, version, place) }
    };
    let mut table = ptr::null();
    for (number, major) in [(1, 1), (-1, 1), (0, 0), (0, 2), (0, -1)] {
        assert_eq!((ask(number, major, &raw mut table), table.is_null()), (UNSUPPORTED, true));
    }
    assert_eq!(ask(0, 1, ptr::null_mut()), INVALID_ARGUMENT);
    assert_eq!(ask(0, 1, &raw mut table), OK);
    // SAFETY: a table whose header says that there are 18 functions behind it.
    let (header, functions) = unsafe {
        let header = table.cast::<Header>().read();
        assert_eq!(header, Header { size: 152, major: 1, minor: 0, reserved: 0 });
        (header, table.byte_add(size_of::<Header>()).cast::<[usize; 18]>().read())
    };
    assert_eq!(usize::from(header.size), size_of::<Interface>());
    // In the order of LiteRT's header; the handle of a result is the one that there is not.
    let expected = [
        LiteRtGetCompilerPluginVersion as *const (),
        LiteRtGetCompilerPluginSocManufacturer as *const (),
        LiteRtCreateCompilerPlugin as *const (),
        LiteRtDestroyCompilerPlugin as *const (),
        LiteRtGetCompilerPluginSupportedHardware as *const (),
        LiteRtGetNumCompilerPluginSupportedSocModels as *const (),
        LiteRtGetCompilerPluginSupportedSocModel as *const (),
        LiteRtCompilerPluginPartition as *const (),
        LiteRtCompilerPluginCompile as *const (),
        LiteRtDestroyCompiledResult as *const (),
        LiteRtGetCompiledResultByteCode as *const (),
        LiteRtCompiledResultNumByteCodeModules as *const (),
        LiteRtGetCompiledResultCallInfo as *const (),
        LiteRtGetNumCompiledResultCalls as *const (),
        LiteRtCompilerPluginRegisterAllTransformations as *const (),
        LiteRtGetCompilerPluginSDKVersion as *const (),
        ptr::null(),
        LiteRtCompilerPluginCheckCompilerCompatibility as *const (),
    ];
    assert_eq!(functions, expected.map(<*const ()>::addr));
}
