//! Delegates: those that nnhal makes itself are ignored, others are refused.
//!
//! The library computes with nnhal's devices whatever the program asks for. So the delegates that the
//! stock library carries (XNNPACK, NNAPI) can be made, configured and added, and change nothing but the number of
//! threads. The same holds for delegates of `libnnhal_delegate.so`, which are known by the file that their
//! functions are in. A delegate of somebody else's is a promise that this library cannot keep: interpreters are not
//! made with one, unless the program has allowed to leave it out (`SetEnableDelegateFallback`).

use crate::abi::TfLiteDelegate;
use crate::border::{Failure, export};
use crate::handle::{get, give, take};
use crate::memory;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

nnhal_c_boundary::opaque! {
    /// What several XNNPACK delegates would share.
    TfLiteXNNPackDelegateWeightsCache: WeightsCache, 8;
}

/// How the file names begin of libraries whose delegates are nnhal's.
const OWN_LIBRARY: &[u8] = b"libnnhal_delegate";

/// What is done about a delegate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is nnhal's: there is nothing to do.
    Ignored,
    /// It cannot be used.
    Refused(&'static str),
}

/// What an XNNPACK delegate is made with (`TfLiteXNNPackDelegateOptions` since TensorFlow 2.12; newer fields are
/// behind these, and not looked at).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct TfLiteXNNPackDelegateOptions {
    /// 0 or 1: one.
    pub num_threads: i32,
    /// Not looked at.
    pub runtime_flags: u32,
    /// Not looked at.
    pub flags: u32,
    /// Not looked at.
    pub weights_cache: *const c_void,
    /// Not looked at.
    pub handle_variable_ops: bool,
}

/// What an NNAPI delegate is made with (`TfLiteNnapiDelegateOptions`).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct TfLiteNnapiDelegateOptions {
    /// -1: nothing is preferred.
    pub execution_preference: c_int,
    /// Not looked at.
    pub accelerator_name: *const c_char,
    /// Not looked at.
    pub cache_dir: *const c_char,
    /// Not looked at.
    pub model_token: *const c_char,
    /// Not looked at.
    pub disallow_nnapi_cpu: c_int,
    /// Not looked at.
    pub allow_fp16: c_int,
    /// Not looked at.
    pub max_number_delegated_partitions: c_int,
    /// Not looked at.
    pub nnapi_support_library_handle: *mut c_void,
}

/// What several XNNPACK delegates would share.
#[derive(Debug)]
pub struct WeightsCache;

/// A delegate that this library has made.
struct Made {
    /// What C holds and may read.
    structure: Box<TfLiteDelegate>,
    options: Box<TfLiteXNNPackDelegateOptions>,
    threads: Option<i32>,
}

/// By address. Addresses instead of pointers: what is behind them is only followed here.
struct Delegates(HashMap<usize, Made>);

#[allow(unsafe_code, reason = "a promise about pointers")]
// SAFETY: the pointers in its structures are all null, or the program's own and never followed.
unsafe impl Send for Delegates {}

static DELEGATES: Mutex<Option<Delegates>> = Mutex::new(None);

fn delegates() -> MutexGuard<'static, Option<Delegates>> {
    DELEGATES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is done about a delegate that a program adds.
pub(crate) fn judge(delegate: *const TfLiteDelegate) -> Verdict {
    if delegate.is_null() {
        return Verdict::Refused("the delegate is NULL");
    }
    if delegates().as_ref().is_some_and(|all| all.0.contains_key(&delegate.addr())) {
        return Verdict::Ignored;
    }
    match memory::get(delegate) {
        Some(TfLiteDelegate { functions: [prepare, ..], .. }) if is_own(prepare) => {
            Verdict::Ignored
        }
        _ => Verdict::Refused(
            "the delegate is not nnhal's, and this library calls no other: leave it out, or allow \
             that with TfLiteInterpreterOptionsSetEnableDelegateFallback",
        ),
    }
}

/// What the dynamic linker says of an address (`Dl_info`).
#[repr(C)]
struct Place {
    file: *const c_char,
    base: *mut c_void,
    symbol: *const c_char,
    address: *mut c_void,
}

#[allow(unsafe_code, reason = "a function of the C library")]
unsafe extern "C" {
    fn dladdr(address: *const c_void, place: *mut Place) -> c_int;
}

/// Whether a function is in a library of nnhal's delegates. The address is not followed.
fn is_own(function: *const c_void) -> bool {
    let mut place = Place { file: null(), base: null_mut(), symbol: null(), address: null_mut() };
    #[allow(unsafe_code, reason = "the C library is asked")]
    // SAFETY: any address may be asked about; the structure has room for the answer.
    let is_known = unsafe { dladdr(function, &raw mut place) } != 0;
    let path = memory::text(place.file, "file").unwrap_or_default();
    let name = path.as_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    is_known && name.starts_with(OWN_LIBRARY)
}

/// The number of threads that a delegate of ours was made for.
pub(crate) fn threads_of(delegate: *const TfLiteDelegate) -> Option<i32> {
    delegates().as_ref()?.0.get(&delegate.addr())?.threads
}

fn make(options: TfLiteXNNPackDelegateOptions, threads: Option<i32>) -> *mut TfLiteDelegate {
    let mut structure = Box::new(EMPTY);
    let pointer: *mut TfLiteDelegate = &raw mut *structure;
    let made = Made { structure, options: Box::new(options), threads };
    let mut all = delegates();
    all.get_or_insert_with(|| Delegates(HashMap::new())).0.insert(pointer.addr(), made);
    pointer
}

fn delete(delegate: *const TfLiteDelegate) -> Result<(), Failure> {
    if delegate.is_null() {
        return Ok(());
    }
    let removed = delegates().as_mut().and_then(|all| all.0.remove(&delegate.addr()));
    match removed {
        Some(Made { structure, .. }) => {
            drop(structure);
            Ok(())
        }
        None => Err(Failure::new("the delegate was deleted, or is not of this library")),
    }
}

const EMPTY: TfLiteDelegate = TfLiteDelegate {
    data: null_mut(),
    functions: [null(); 4],
    flags: 0,
    opaque_delegate_builder: null(),
};

const XNNPACK: TfLiteXNNPackDelegateOptions = TfLiteXNNPackDelegateOptions {
    num_threads: 0,
    runtime_flags: 0,
    flags: 0,
    weights_cache: null(),
    handle_variable_ops: false,
};

const NNAPI: TfLiteNnapiDelegateOptions = TfLiteNnapiDelegateOptions {
    execution_preference: -1,
    accelerator_name: null(),
    cache_dir: null(),
    model_token: null(),
    disallow_nnapi_cpu: 1,
    allow_fp16: 0,
    max_number_delegated_partitions: 3,
    nnapi_support_library_handle: null_mut(),
};

fn xnnpack(options: *const TfLiteXNNPackDelegateOptions) -> *mut TfLiteDelegate {
    let given = memory::get(options);
    make(given.unwrap_or(XNNPACK), given.map(|options| options.num_threads.max(1)))
}

export! {
    /// A delegate of which nothing is said, for programs that fill it in themselves.
    fn TfLiteDelegateCreate() -> TfLiteDelegate, EMPTY; {
        Ok(EMPTY)
    }

    /// The program's delegate in the newer form would have to be called, which this library does not.
    fn TfLiteOpaqueDelegateCreate(_builder: *const c_void) -> *mut TfLiteDelegate, null_mut(); {
        Err(Failure::new("delegates of programs are not called by this library"))
    }

    /// There is none to delete but null.
    fn TfLiteOpaqueDelegateDelete(delegate: *mut TfLiteDelegate) -> (), (); {
        delete(delegate)
    }

    /// There is none that has data.
    fn TfLiteOpaqueDelegateGetData(_delegate: *const TfLiteDelegate) -> *mut c_void, null_mut(); {
        Err(Failure::new("delegates of programs are not called by this library"))
    }

    /// What is chosen unless the program says otherwise.
    fn TfLiteXNNPackDelegateOptionsDefault() -> TfLiteXNNPackDelegateOptions, XNNPACK; {
        Ok(XNNPACK)
    }

    /// A delegate that stands for what nnhal does anyway. Its number of threads counts.
    fn TfLiteXNNPackDelegateCreate(
        options: *const TfLiteXNNPackDelegateOptions,
    ) -> *mut TfLiteDelegate, null_mut(); {
        Ok(xnnpack(options))
    }

    /// As [`TfLiteXNNPackDelegateCreate`].
    fn TfLiteXNNPackDelegateCreateWithThreadpool(
        options: *const TfLiteXNNPackDelegateOptions,
        _context: *mut c_void,
    ) -> *mut TfLiteDelegate, null_mut(); {
        Ok(xnnpack(options))
    }

    /// There is none.
    fn TfLiteXNNPackDelegateGetThreadPool(_delegate: *mut TfLiteDelegate) -> *mut c_void, null_mut(); {
        Ok(null_mut())
    }

    /// What the delegate was made with.
    fn TfLiteXNNPackDelegateGetOptions(
        delegate: *mut TfLiteDelegate,
    ) -> *const TfLiteXNNPackDelegateOptions, null(); {
        let all = delegates();
        let made = all.as_ref().and_then(|all| all.0.get(&delegate.addr()));
        let made = made.ok_or_else(|| Failure::new("the delegate is not of this library"))?;
        Ok(&raw const *made.options)
    }

    /// The flags that the delegate was made with.
    fn TfLiteXNNPackDelegateGetFlags(delegate: *mut TfLiteDelegate) -> c_int, 0; {
        let all = delegates();
        let made = all.as_ref().and_then(|all| all.0.get(&delegate.addr()));
        Ok(made.map_or(0, |made| made.options.flags.cast_signed()))
    }

    /// Deletes the delegate.
    fn TfLiteXNNPackDelegateDelete(delegate: *mut TfLiteDelegate) -> (), (); {
        delete(delegate)
    }

    /// A cache that stays empty: packed weights belong to interpreters.
    fn TfLiteXNNPackDelegateWeightsCacheCreate() -> *mut TfLiteXNNPackDelegateWeightsCache, null_mut(); {
        give(Arc::new(WeightsCache))
    }

    /// As [`TfLiteXNNPackDelegateWeightsCacheCreate`].
    fn TfLiteXNNPackDelegateWeightsCacheCreateWithSize(
        _size: usize,
    ) -> *mut TfLiteXNNPackDelegateWeightsCache, null_mut(); {
        give(Arc::new(WeightsCache))
    }

    /// There is nothing to do.
    fn TfLiteXNNPackDelegateWeightsCacheFinalizeHard(
        cache: *mut TfLiteXNNPackDelegateWeightsCache,
    ) -> bool, false; {
        get(cache).map(|_| true)
    }

    /// There is nothing to do.
    fn TfLiteXNNPackDelegateWeightsCacheFinalizeSoft(
        cache: *mut TfLiteXNNPackDelegateWeightsCache,
    ) -> bool, false; {
        get(cache).map(|_| true)
    }

    /// Deletes the cache.
    fn TfLiteXNNPackDelegateWeightsCacheDelete(
        cache: *mut TfLiteXNNPackDelegateWeightsCache,
    ) -> (), (); {
        take(cache).map(drop)
    }

    /// What is chosen unless the program says otherwise.
    fn TfLiteNnapiDelegateOptionsDefault() -> TfLiteNnapiDelegateOptions, NNAPI; {
        Ok(NNAPI)
    }

    /// A delegate that stands for what nnhal does anyway.
    fn TfLiteNnapiDelegateCreate(
        _options: *const TfLiteNnapiDelegateOptions,
    ) -> *mut TfLiteDelegate, null_mut(); {
        Ok(make(XNNPACK, None))
    }

    /// Deletes the delegate.
    fn TfLiteNnapiDelegateDelete(delegate: *mut TfLiteDelegate) -> (), (); {
        delete(delegate)
    }
}
