//! The functions as a host calls them that does everything wrong. What a host does right is tried in the
//! interpreters of three wheels: `tests/litert_delegate`.

#![allow(unsafe_code, reason = "C functions are called as C would")]

use crate::abi;
use crate::exports::{tflite_plugin_create_delegate, tflite_plugin_destroy_delegate};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;

thread_local!(static REPORTED: RefCell<String> = const { RefCell::new(String::new()) });

unsafe extern "C" fn report(message: *const c_char) {
    // SAFETY: the library gives a string that ends.
    let text = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
    REPORTED.with(|reported| *reported.borrow_mut() = text);
}

/// A delegate with these options.
fn create(pairs: &[(&str, &str)]) -> Result<*mut abi::Delegate, String> {
    let texts = |of: fn(&(&str, &str)) -> String| -> Vec<CString> {
        pairs.iter().map(|pair| CString::new(of(pair)).unwrap()).collect()
    };
    let (keys, values) = (texts(|pair| pair.0.to_owned()), texts(|pair| pair.1.to_owned()));
    let pointers =
        |all: &[CString]| -> Vec<*const c_char> { all.iter().map(|it| it.as_ptr()).collect() };
    let (keys_of, values_of) = (pointers(&keys), pointers(&values));
    // SAFETY: as many strings as pairs, and a function that takes a string.
    let made = unsafe {
        tflite_plugin_create_delegate(
            keys_of.as_ptr(),
            values_of.as_ptr(),
            pairs.len(),
            Some(report),
        )
    };
    if made.is_null() { Err(REPORTED.with(|it| it.borrow().clone())) } else { Ok(made.cast()) }
}

/// A context of a host that offers nothing.
fn poor_host() -> abi::Context {
    // SAFETY: integers, and pointers that may be null.
    unsafe { std::mem::zeroed() }
}

/// Calls the delegate's `Prepare` with a context.
fn prepare(delegate: *mut abi::Delegate, context: *mut abi::Context) -> c_int {
    // SAFETY: the structure of a delegate is never freed.
    let prepare = unsafe { (*delegate).prepare }.unwrap();
    prepare(context, delegate)
}

#[test]
fn a_delegate_has_the_flags_and_functions_that_hosts_look_at() {
    let delegate = create(&[("threads", "1")]).unwrap();
    // SAFETY: the structure of a delegate is never freed.
    let structure = unsafe { &*delegate };
    assert_eq!(structure.flags, 1);
    assert!(structure.prepare.is_some() && structure.opaque_delegate_builder.is_null());
    // SAFETY: it is looked up.
    unsafe { tflite_plugin_destroy_delegate(delegate.cast()) };
}

#[test]
fn an_unknown_option_is_null_and_a_sentence() {
    let error = create(&[("treads", "1")]).unwrap_err();
    assert!(error.contains("\"treads\"") && error.contains("min_nodes_per_partition"), "{error}");
    // SAFETY: there are no options, or no pointers to them, which is looked at.
    unsafe {
        assert!(tflite_plugin_create_delegate(ptr::null(), ptr::null(), 1, None).is_null());
        assert!(tflite_plugin_create_delegate(ptr::null(), ptr::null(), 1 << 20, None).is_null());
    }
}

#[test]
fn only_the_lower_half_of_the_count_is_meant() {
    // SAFETY: there are no options.
    let made = unsafe { tflite_plugin_create_delegate(ptr::null(), ptr::null(), 7 << 32, None) };
    assert!(!made.is_null());
    // SAFETY: it is looked up.
    unsafe { tflite_plugin_destroy_delegate(made) };
}

#[test]
fn a_host_that_offers_nothing_gets_a_status() {
    let delegate = create(&[("threads", "1")]).unwrap();
    assert_eq!(prepare(delegate, ptr::null_mut()), abi::DELEGATE_ERROR);
    let mut context = poor_host();
    assert_eq!(prepare(delegate, &raw mut context), abi::DELEGATE_ERROR);
    // SAFETY: it is looked up.
    unsafe { tflite_plugin_destroy_delegate(delegate.cast()) };
}

#[test]
fn an_empty_graph_is_no_error_and_a_destroyed_delegate_is_one() {
    unsafe extern "C" fn no_nodes(_: *mut abi::Context, plan: *mut *const abi::Array) -> c_int {
        static NONE: abi::Array = abi::Array { size: 0 };
        // SAFETY: the caller gives where to write.
        unsafe { *plan = &raw const NONE };
        abi::OK
    }
    let mut context = poor_host();
    context.get_execution_plan = Some(no_nodes);
    let delegate = create(&[("threads", "1")]).unwrap();
    assert_eq!(prepare(delegate, &raw mut context), abi::OK);
    // SAFETY: it is looked up, the second time in vain.
    unsafe {
        tflite_plugin_destroy_delegate(delegate.cast());
        tflite_plugin_destroy_delegate(delegate.cast());
    }
    assert_eq!(prepare(delegate, &raw mut context), abi::DELEGATE_ERROR);
}

#[test]
fn nodes_that_are_not_there_are_a_status() {
    unsafe extern "C" fn two(_: *mut abi::Context, plan: *mut *const abi::Array) -> c_int {
        static TWO: [c_int; 3] = [2, 0, 77];
        // SAFETY: the caller gives where to write.
        unsafe { *plan = TWO.as_ptr().cast() };
        abi::OK
    }
    unsafe extern "C" fn none(
        _: *mut abi::Context,
        _: c_int,
        _: *mut *const abi::Node,
        _: *mut *const abi::Registration,
    ) -> c_int {
        abi::OK
    }
    let mut context = poor_host();
    context.get_execution_plan = Some(two);
    let delegate = create(&[("threads", "1")]).unwrap();
    assert_eq!(prepare(delegate, &raw mut context), abi::DELEGATE_ERROR);
    // The host says that it has written the node, and has not.
    context.get_node_and_registration = Some(none);
    assert_eq!(prepare(delegate, &raw mut context), abi::DELEGATE_ERROR);
    // SAFETY: it is looked up.
    unsafe { tflite_plugin_destroy_delegate(delegate.cast()) };
}
