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

/// A host with two subgraphs: the main one has a SCATTER, whose function is the only operator of the other.
mod two_subgraphs {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    pub(super) static REPLACED: AtomicUsize = AtomicUsize::new(0);
    static NONE: abi::Array = abi::Array { size: 0 };
    static ONLY: [c_int; 2] = [1, 0];

    /// Both contexts, and what their functions give out.
    #[repr(C)]
    pub(super) struct Interpreter {
        /// First: a context's `implementation` leads here.
        pub(super) contexts: [abi::Context; 2],
        nodes: [abi::Node; 2],
        registrations: [abi::Registration; 2],
        partition: abi::DelegateParams,
        tensors: [abi::Tensor; 3],
        options: [u8; 256],
        ends: [[c_int; 3]; 2],
    }

    unsafe fn of<'i>(context: *mut abi::Context) -> (&'i mut Interpreter, usize) {
        // SAFETY: the test keeps the interpreter while its functions are called, one at a time.
        unsafe {
            let it = (*context).implementation.cast::<Interpreter>();
            (&mut *it, usize::from(context != (&raw mut (*it).contexts[0])))
        }
    }

    unsafe extern "C" fn plan(_: *mut abi::Context, plan: *mut *const abi::Array) -> c_int {
        // SAFETY: the caller gives where to write.
        unsafe { *plan = ONLY.as_ptr().cast() };
        abi::OK
    }

    unsafe extern "C" fn node(
        context: *mut abi::Context,
        _: c_int,
        node: *mut *const abi::Node,
        registration: *mut *const abi::Registration,
    ) -> c_int {
        // SAFETY: as in `of`; the caller gives where to write.
        unsafe {
            let (it, at) = of(context);
            *node = &raw const it.nodes[at];
            *registration = &raw const it.registrations[at];
        }
        abi::OK
    }

    unsafe extern "C" fn acquire(
        context: *mut abi::Context,
        index: c_int,
        shown: *mut *mut abi::Context,
    ) -> c_int {
        // SAFETY: as in `node`.
        unsafe {
            let (it, _) = of(context);
            let Some(found) = usize::try_from(index).ok().filter(|it| *it < 2) else {
                return abi::ERROR;
            };
            *shown = &raw mut it.contexts[found];
        }
        abi::OK
    }

    unsafe extern "C" fn release(_: *mut abi::Context, _: c_int) -> c_int {
        abi::OK
    }

    unsafe extern "C" fn preview(
        context: *mut abi::Context,
        _: *const abi::Array,
        first: *mut *const abi::DelegateParams,
        count: *mut c_int,
    ) -> c_int {
        // SAFETY: as in `node`.
        unsafe {
            *first = &raw const of(context).0.partition;
            *count = 1;
        }
        abi::OK
    }

    unsafe extern "C" fn replace(
        _: *mut abi::Context,
        _: abi::Registration,
        _: *const abi::Array,
        _: *mut abi::Delegate,
    ) -> c_int {
        REPLACED.fetch_add(1, Ordering::Relaxed);
        abi::OK
    }

    pub(super) fn interpreter() -> Box<Interpreter> {
        // SAFETY: integers, and pointers that may be null.
        let mut it: Box<Interpreter> = Box::new(unsafe { std::mem::zeroed() });
        let itself = (&raw mut *it).cast();
        it.ends = [[2, 0, 1], [1, 2, 0]];
        let (two, one) = (it.ends[0].as_ptr().cast(), it.ends[1].as_ptr().cast());
        for tensor in &mut it.tensors {
            (tensor.kind, tensor.dims, tensor.bytes) = (1, &raw const NONE, 4);
            tensor.allocation_type = 2;
        }
        it.registrations[0].builtin_code = 190;
        it.registrations[1].builtin_code = 163;
        // `update_computation_subgraph_index` of `TfLiteStablehloScatterParams`
        it.options[236] = 1;
        it.nodes[0].builtin_data = it.options.as_ptr().cast();
        (it.nodes[1].inputs, it.nodes[1].outputs) = (two, one);
        (it.partition.input_tensors, it.partition.output_tensors) = (two, one);
        it.partition.nodes_to_replace = ONLY.as_ptr().cast();
        let tensors = it.tensors.as_mut_ptr();
        for context in &mut it.contexts {
            context.implementation = itself;
            (context.tensors, context.tensors_size) = (tensors, 3);
            context.get_execution_plan = Some(plan);
            context.get_node_and_registration = Some(node);
            context.preview_partitioning = Some(preview);
            context.replace_node_subsets = Some(replace);
            context.acquire_subgraph_context = Some(acquire);
            context.release_subgraph_context = Some(release);
        }
        it
    }
}

#[test]
fn a_function_that_the_host_looks_at_is_left_to_it() {
    use std::sync::atomic::Ordering;
    let replaced = || two_subgraphs::REPLACED.load(Ordering::Relaxed);
    let mut interpreter = two_subgraphs::interpreter();
    let [main, function] = &mut interpreter.contexts;
    let (main, function) = (&raw mut *main, &raw mut *function);
    let delegate = create(&[("threads", "1")]).unwrap();
    assert_eq!(prepare(delegate, function), abi::OK);
    assert_eq!(replaced(), 1, "an addition by itself is taken");
    // The SCATTER has no inputs, and stays with the host.
    assert_eq!(prepare(delegate, main), abi::OK);
    assert_eq!(replaced(), 1);
    assert_eq!(prepare(delegate, function), abi::OK);
    assert_eq!(replaced(), 1, "the host looks which operator it is");
    // SAFETY: it is looked up.
    unsafe { tflite_plugin_destroy_delegate(delegate.cast()) };
}

#[test]
fn large_outputs_can_be_borrowed_unless_another_tensor_has_their_memory() {
    const BYTES: usize = 1 << 16;
    let memory = Box::into_raw(vec![0_u8; 4 * BYTES].into_boxed_slice());
    // Where tensors begin, and how many bytes they have. The fourth has no memory yet.
    let places = [(Some(0), BYTES), (Some(BYTES - 1), BYTES), (Some(3 * BYTES), BYTES), (None, 5)];
    let mut tensors: Vec<abi::Tensor> = places
        .iter()
        .map(|(start, bytes)| {
            // SAFETY: integers, and pointers that may be null.
            let mut tensor: abi::Tensor = unsafe { std::mem::zeroed() };
            let first = |start: usize| memory.cast::<u8>().wrapping_add(start);
            tensor.data = start.map_or(ptr::null_mut(), first).cast();
            tensor.bytes = *bytes;
            tensor
        })
        .collect();
    let mut context = poor_host();
    (context.tensors_size, context.tensors) = (tensors.len(), tensors.as_mut_ptr());
    // SAFETY: the context and its tensors are there until the end of this function.
    let host = unsafe { crate::host::Host::new(&raw mut context) }.unwrap();
    for (output, others, is_borrowed) in [
        (0, vec![1, 2, 3], false),
        (1, vec![0], false),
        (0, vec![2, 3], true),
        (1, vec![2], true),
        (2, vec![0, 1, 3], true),
    ] {
        let (loan, lent) = host.lend_output(output, others.iter().copied()).unwrap().unwrap();
        let view = lent.view().unwrap();
        assert!(view.is_writable());
        assert_eq!(view.borrow_mut(0, 8).is_some(), is_borrowed, "{output} beside {others:?}");
        drop(loan);
    }
    assert!(host.lend_output(3, std::iter::empty()).is_err(), "it has no memory");
    tensors[2].bytes = BYTES - 1;
    let (loan, small) = host.lend_output(2, std::iter::empty()).unwrap().unwrap();
    assert!(small.view().unwrap().borrow_mut(0, 8).is_none(), "it is copied in a moment");
    drop(loan);
    // SAFETY: it came from `Box::into_raw`, and nothing is lent any more.
    drop(unsafe { Box::from_raw(memory) });
}
