//! [`Profiler`]: the interpreter's own, where it is certain which function of it takes a time.
//!
//! What a context calls its profiler is an object of C++, `tflite::Profiler`, whose table of virtual functions has changed
//! between versions, and which no host offers by another way. So the function that is called is first looked up by
//! its address: a host that exports its symbols (a shared library of TensorFlow or LiteRT does, an executable
//! that was linked statically and a Python wheel do not) gives its name, in which a compiler has written the types of
//! all arguments. A host of another version, or one that does not say, gets no times.
//!
//! Source: `tensorflow/lite/core/api/profiler.h`, and the Itanium C++ ABI for tables and names.

#![allow(unsafe_code)]

use nnhal::{Observer, OperationPlace};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Where `AddEvent` is in the table, behind two destructors, `BeginEvent` and two `EndEvent`. Every version
/// since 2.3 has functions up to here.
const ADD_EVENT: usize = 5;

/// How the name of a table of virtual functions begins, and where behind the symbol an object's pointer leads.
const TABLE: (&[u8], usize) = (b"_ZTV", 2 * size_of::<usize>());

/// How the name ends of a method of a class of `tflite`:
/// `AddEvent(char const*, tflite::Profiler::EventType, unsigned long, long, long)`.
const NAME: &[u8] = b"8AddEventEPKcNS_8Profiler9EventTypeEmll";

/// `DELEGATE_OPERATOR_INVOKE_EVENT`
const OPERATOR_OF_A_DELEGATE: c_int = 4;

type AddEvent = unsafe extern "C" fn(*mut c_void, *const c_char, c_int, u64, i64, i64);

#[repr(C)]
struct SymbolInfo {
    file: *const c_char,
    base: *const c_void,
    name: *const c_char,
    address: *const c_void,
}

unsafe extern "C" {
    fn dladdr(address: *const c_void, info: *mut SymbolInfo) -> c_int;
}

/// A profiler that takes times of operations.
pub(crate) struct Profiler<'c> {
    object: NonNull<c_void>,
    add_event: AddEvent,
    context: PhantomData<&'c ()>,
}

/// What was found out about a table of functions before: looking up a symbol takes long.
#[derive(Debug, Default)]
pub(crate) struct Recognized(Option<(usize, bool)>);

impl Profiler<'_> {
    /// `None`: there is none, or none of a kind that is known.
    ///
    /// # Safety
    /// `object` is null, or an object of C++ with virtual functions, which is there as long as the context.
    pub(crate) unsafe fn new(object: *mut c_void, recognized: &mut Recognized) -> Option<Self> {
        let object = NonNull::new(object)?;
        // SAFETY: such an object begins with the pointer to its table.
        let table = NonNull::new(unsafe { object.cast::<*mut *const c_void>().read() })?;
        let is_known = match recognized.0 {
            Some((known, is_known)) if known == table.as_ptr().addr() => is_known,
            _ => {
                // SAFETY: as the caller says.
                let is_known = unsafe { takes_times(table) };
                recognized.0 = Some((table.as_ptr().addr(), is_known));
                is_known
            }
        };
        if !is_known {
            return None;
        }
        // SAFETY: the name of the function says what it takes; `this` is passed first.
        let add_event =
            unsafe { std::mem::transmute::<*const c_void, AddEvent>(table.add(ADD_EVENT).read()) };
        Some(Self { object, add_event, context: PhantomData })
    }

    /// Shows the times of a run.
    pub(crate) fn add(&self, times: Times) {
        let times = times.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (number, (place, duration)) in times.into_iter().enumerate() {
            let name = kept(place.operation_name());
            let microseconds =
                u64::try_from((duration.as_nanos() + 500) / 1000).unwrap_or(u64::MAX);
            let number = i64::try_from(number).unwrap_or(i64::MAX);
            // SAFETY: it takes what its name says (see `new`); the text is never freed.
            unsafe {
                let object = self.object.as_ptr();
                (self.add_event)(object, name, OPERATOR_OF_A_DELEGATE, microseconds, number, 0);
            }
        }
    }
}

/// Whether a table of virtual functions has the one that is expected.
///
/// # Safety
/// It is the table of an object with virtual functions.
unsafe fn takes_times(table: NonNull<*const c_void>) -> bool {
    let address = table.as_ptr().cast_const().cast::<c_void>();
    let is_table = symbol(address).is_some_and(|(name, at)| {
        name.starts_with(TABLE.0) && at.checked_add(TABLE.1) == Some(address.addr())
    });
    if !is_table {
        return false;
    }
    // SAFETY: it is the table of a profiler, which has this function and those before.
    let function = unsafe { table.add(ADD_EVENT).read() };
    symbol(function).is_some_and(|(name, at)| at == function.addr() && name.ends_with(NAME))
}

/// The symbol at an address or before it, and where it is.
fn symbol(address: *const c_void) -> Option<(Vec<u8>, usize)> {
    let mut info = SymbolInfo {
        file: std::ptr::null(),
        base: std::ptr::null(),
        name: std::ptr::null(),
        address: std::ptr::null(),
    };
    // SAFETY: it takes any address, and writes what it finds.
    let found = unsafe { dladdr(address, &raw mut info) };
    if found == 0 || info.name.is_null() {
        return None;
    }
    // SAFETY: a name of the library that is loaded there, which is code or data of a host that is calling.
    let name = unsafe { CStr::from_ptr(info.name) }.to_bytes().to_vec();
    Some((name, info.address.addr()))
}

/// The name of an operation as a text that is never freed, as profilers want it. There are as many as the
/// library has operations.
fn kept(name: String) -> *const c_char {
    static NAMES: Mutex<BTreeMap<String, &CStr>> = Mutex::new(BTreeMap::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let text = names.entry(name).or_insert_with_key(|name| {
        let text = CString::new(name.as_str()).unwrap_or_default();
        Box::leak(text.into_boxed_c_str())
    });
    text.as_ptr()
}

/// The operations of a run, and how long each took.
#[derive(Default)]
pub(crate) struct Times(Mutex<Vec<(OperationPlace, Duration)>>);

impl Observer for Times {
    fn duration(&self, place: OperationPlace, duration: Duration) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((place, duration));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_without_names_is_not_called() {
        static TABLE: [usize; 8] = [0; 8];
        let mut object = TABLE.as_ptr();
        let mut recognized = Recognized::default();
        // SAFETY: it begins as an object with virtual functions does.
        let found = unsafe { Profiler::new((&raw mut object).cast(), &mut recognized) };
        assert!(found.is_none());
        assert_eq!(recognized.0, Some((TABLE.as_ptr().addr(), false)));
        // SAFETY: there is none.
        assert!(unsafe { Profiler::new(std::ptr::null_mut(), &mut recognized) }.is_none());
    }

    #[test]
    fn names_are_made_once() {
        let first = kept("CONV_2D".into());
        assert_eq!(first, kept("CONV_2D".into()));
        assert_ne!(first, kept("ADD".into()));
    }
}
