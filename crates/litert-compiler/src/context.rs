//! [`Context`]: the functions by which LiteRT shows a model to a plugin, and the model as they show it.
//!
//! Source: `litert/c/internal/litert_compiler_context.h` of LiteRT 2.3.0. Pointers that LiteRT hands out lead to its own
//! objects, and are passed back to it only; they are valid until the call of the plugin returns.

#![allow(unsafe_code)]

use nnhal::hal::memory::{Loan, Protection};
use nnhal_litert_common::compiled::{Failure, Header, Outcome, RankedTensorType, Status};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::NonNull;

/// Things of one kind that a model may have.
const MOST: usize = 1 << 24;

/// Where functions are in the table, in bytes from its beginning; each takes an object and where to put the answer,
/// if nothing else is said.
pub(crate) mod place {
    pub(crate) const NUM_MODEL_SUBGRAPHS: usize = 8;
    /// All functions that have an index before the answer.
    pub(crate) const NUM_SUBGRAPH_OPS: usize = 24;
    pub(crate) const SUBGRAPH_OP: usize = 32;
    pub(crate) const NUM_SUBGRAPH_INPUTS: usize = 40;
    pub(crate) const SUBGRAPH_INPUT: usize = 48;
    pub(crate) const NUM_SUBGRAPH_OUTPUTS: usize = 56;
    pub(crate) const SUBGRAPH_OUTPUT: usize = 64;
    pub(crate) const OP_CODE: usize = 72;
    pub(crate) const CUSTOM_CODE: usize = 80;
    pub(crate) const NUM_OP_INPUTS: usize = 88;
    pub(crate) const OP_INPUT: usize = 96;
    pub(crate) const NUM_OP_OUTPUTS: usize = 104;
    pub(crate) const OP_OUTPUT: usize = 112;
    pub(crate) const TENSOR_NAME: usize = 120;
    pub(crate) const TENSOR_TYPE_ID: usize = 136;
    pub(crate) const RANKED_TENSOR_TYPE: usize = 144;
    pub(crate) const UNRANKED_TENSOR_TYPE: usize = 152;
    pub(crate) const QUANTIZATION_TYPE_ID: usize = 160;
    pub(crate) const PER_TENSOR_QUANTIZATION: usize = 168;
    pub(crate) const PER_CHANNEL_QUANTIZATION: usize = 176;
    pub(crate) const TENSOR_WEIGHTS: usize = 208;
    pub(crate) const WEIGHTS_BYTES: usize = 224;
    pub(crate) const PUSH_OP: usize = 264;
    pub(crate) const CUSTOM_OPTIONS: usize = 1032;
    pub(crate) const SERIALIZE: usize = 1040;
}

/// A pointer of LiteRT to one of its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub(crate) struct Object(*const c_void);

impl Object {
    pub(crate) const fn new(pointer: *const c_void) -> Self {
        Self(pointer)
    }

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }
}

/// What a function of the table answers.
///
/// # Safety
/// Any bytes are a value of the type, and C has it with the same layout.
pub(crate) unsafe trait Answer: Copy {
    /// Before LiteRT has written it.
    const EMPTY: Self;
}

macro_rules! answers {
    ($($Type:ty: $empty:expr),* $(,)?) => {$(
        // SAFETY: integers, floats, pointers, and structures of them in the layout of C.
        unsafe impl Answer for $Type {
            const EMPTY: Self = $empty;
        }
    )*};
}

answers!(
    u8: 0,
    c_int: 0,
    u32: 0,
    usize: 0,
    f32: 0.0,
    Object: Object(std::ptr::null()),
    *const c_char: std::ptr::null(),
    RankedTensorType: RankedTensorType::EMPTY,
    PerTensor: PerTensor { scale: 0.0, zero_point: 0 },
    PerChannel: PerChannel {
        dimension: 0, channels: 0, scales: std::ptr::null(), zero_points: std::ptr::null(),
    },
);

/// One scale for all elements.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct PerTensor {
    pub(crate) scale: f32,
    pub(crate) zero_point: i64,
}

/// A scale for each channel.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct PerChannel {
    pub(crate) dimension: i32,
    channels: u64,
    scales: *const f32,
    zero_points: *const i64,
}

/// How a model is written.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct SerializationOptions {
    bytecode_alignment: usize,
}

const _: () = {
    assert!(size_of::<PerTensor>() == 16);
    assert!(size_of::<PerChannel>() == 32);
};

type Get<T> = unsafe extern "C" fn(Object, *mut T) -> c_int;
type GetAt<T> = unsafe extern "C" fn(Object, usize, *mut T) -> c_int;
type GetArray<T> = unsafe extern "C" fn(Object, *mut *const T, *mut i32) -> c_int;
type GetBytes = unsafe extern "C" fn(Object, *mut *const u8, *mut usize) -> c_int;
type PushOp = unsafe extern "C" fn(Object, Object, usize) -> c_int;
type Serialize = unsafe extern "C" fn(
    Object,
    *mut *mut u8,
    *mut usize,
    *mut usize,
    bool,
    *mut *mut c_char,
    usize,
    SerializationOptions,
) -> c_int;

/// The functions by which LiteRT shows a model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context(NonNull<u8>);

// SAFETY: a table that LiteRT never changes, as long as it is loaded; it has made the plugin with it.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// # Errors
    /// It is null, or the table of another LiteRT.
    ///
    /// # Safety
    /// `table` is null or leads to a table that begins with a header and is there as long as the library.
    pub(crate) unsafe fn new(table: *const c_void) -> Outcome<Self> {
        let table = NonNull::new(table.cast_mut()).ok_or_else(|| Failure::null("the context"))?;
        // SAFETY: as the caller says.
        let header = unsafe { table.cast::<Header>().read_unaligned() };
        let least = place::SERIALIZE + size_of::<usize>();
        if header.major != 1 || usize::from(header.size) < least {
            return Err(Failure::new(
                Status::UnsupportedRuntimeVersion,
                format!(
                    "LiteRT shows models by a table of version {}.{} with {} bytes, expected version 1 with {least}",
                    header.major, header.minor, header.size
                ),
            ));
        }
        Ok(Self(table.cast()))
    }

    /// The function at a place.
    ///
    /// # Safety
    /// `F` is the type of a pointer to the function that the table has there.
    unsafe fn function<F: Copy>(&self, place: usize) -> Outcome<F> {
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        // SAFETY: the table has at least the functions of `place`, see `new`.
        let pointer =
            unsafe { self.0.add(place).cast::<Option<NonNull<c_void>>>().read_unaligned() };
        let Some(pointer) = pointer else {
            let sentence = format!("LiteRT's table has no function at {place}");
            return Err(Failure::new(Status::UnsupportedRuntimeVersion, sentence));
        };
        // SAFETY: as the caller says; a pointer to a function is no larger than another.
        Ok(unsafe { std::mem::transmute_copy(&pointer) })
    }

    /// Asks about an object. The place is one whose function answers with a `T`.
    pub(crate) fn get<T: Answer>(&self, place: usize, object: Object) -> Outcome<T> {
        let mut answer = T::EMPTY;
        // SAFETY: places are named with the type that their function answers; it gets an object that LiteRT has handed
        // out during this call, and where there is room for the answer.
        let status = unsafe { self.function::<Get<T>>(place)?(object, &raw mut answer) };
        self.checked(place, status)?;
        Ok(answer)
    }

    /// As [`get`](Self::get), with an index.
    pub(crate) fn get_at<T: Answer>(&self, place: usize, object: Object, at: usize) -> Outcome<T> {
        let mut answer = T::EMPTY;
        // SAFETY: as in `get`; LiteRT checks the index.
        let status = unsafe { self.function::<GetAt<T>>(place)?(object, at, &raw mut answer) };
        self.checked(place, status)?;
        Ok(answer)
    }

    /// All objects of a kind that another one has.
    pub(crate) fn all(&self, count: usize, at: usize, object: Object) -> Outcome<Vec<Object>> {
        let count: usize = self.get(count, object)?;
        if count > MOST {
            return Err(Failure::argument(format!("{count} things, expected at most {MOST}")));
        }
        (0..count).map(|index| self.get_at(at, object, index)).collect()
    }

    /// An array of 32-bit integers.
    pub(crate) fn integers(&self, place: usize, object: Object) -> Outcome<Vec<i32>> {
        self.array(place, object)
    }

    fn array<T: Answer>(&self, place: usize, object: Object) -> Outcome<Vec<T>> {
        let (mut first, mut count) = (std::ptr::null(), 0);
        // SAFETY: as in `get`.
        let status =
            unsafe { self.function::<GetArray<T>>(place)?(object, &raw mut first, &raw mut count) };
        self.checked(place, status)?;
        // SAFETY: LiteRT says that there is this number of them.
        Ok(unsafe { elements(first, usize::try_from(count).unwrap_or(0)) })
    }

    /// The name of a custom operator, or of a tensor.
    pub(crate) fn text(&self, place: usize, object: Object) -> Outcome<String> {
        let text: *const c_char = self.get(place, object)?;
        if text.is_null() {
            return Ok(String::new());
        }
        // SAFETY: a string of LiteRT that ends.
        Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }

    /// The options of a custom operator.
    pub(crate) fn custom_options(&self, operator: Object) -> Outcome<Vec<u8>> {
        self.array(place::CUSTOM_OPTIONS, operator)
    }

    /// A scale and a zero point for each channel.
    pub(crate) fn channels(&self, of: &PerChannel) -> (Vec<f32>, Vec<i64>) {
        let count = usize::try_from(of.channels).unwrap_or(0);
        // SAFETY: LiteRT says that each has that number, as long as the tensor is there.
        unsafe { (elements(of.scales, count), elements(of.zero_points, count)) }
    }

    /// Where the value of a constant is, and its bytes; `None` for what is no constant.
    pub(crate) fn weights(&self, tensor: Object) -> Outcome<Option<Weights>> {
        let weights: Object = self.get(place::TENSOR_WEIGHTS, tensor)?;
        let (mut first, mut size) = (std::ptr::null(), 0);
        // SAFETY: as in `get`.
        let status = unsafe {
            let get: GetBytes = self.function(place::WEIGHTS_BYTES)?;
            get(weights, &raw mut first, &raw mut size)
        };
        self.checked(place::WEIGHTS_BYTES, status)?;
        let first = NonNull::new(first.cast_mut()).filter(|_| size > 0);
        Ok(first.map(|first| Weights { first, size }))
    }

    /// Adds an operator to those that are chosen.
    pub(crate) fn push_op(&self, list: Object, operator: Object) -> Outcome {
        // SAFETY: both are of the call that LiteRT makes.
        let status = unsafe { self.function::<PushOp>(place::PUSH_OP)?(list, operator, 0) };
        self.checked(place::PUSH_OP, status)
    }

    /// A model as a `.tflite` file.
    pub(crate) fn serialize(&self, model: Object) -> Outcome<Vec<u8>> {
        let subgraphs: usize = self.get(place::NUM_MODEL_SUBGRAPHS, model)?;
        if subgraphs > MOST {
            return Err(Failure::argument(format!(
                "{subgraphs} subgraphs, expected {MOST} at most"
            )));
        }
        // Subgraphs without signatures: inputs may have no names, or the same ones.
        let mut names = vec![std::ptr::null_mut(); subgraphs];
        let (mut first, mut end, mut offset) = (std::ptr::null_mut(), 0, 0);
        let options = SerializationOptions { bytecode_alignment: 1 };
        // SAFETY: the model of the call that LiteRT makes, which it keeps; as many names as subgraphs, all null, which
        // LiteRT skips; and where there is room for the answers.
        let status = unsafe {
            let serialize: Serialize = self.function(place::SERIALIZE)?;
            serialize(
                model,
                &raw mut first,
                &raw mut end,
                &raw mut offset,
                false,
                names.as_mut_ptr(),
                names.len(),
                options,
            )
        };
        self.checked(place::SERIALIZE, status)?;
        let Some(first) = NonNull::new(first) else {
            return Err(Failure::new(Status::RuntimeFailure, "LiteRT wrote no model"));
        };
        // SAFETY: LiteRT has made `end` bytes with `new[]` and given them away, of which those before `offset` are not
        // used.
        unsafe {
            let all = elements(first.as_ptr().cast_const(), end);
            give_back(first);
            Ok(all.get(offset..).unwrap_or_default().to_vec())
        }
    }

    fn checked(&self, place: usize, status: c_int) -> Outcome {
        if status == 0 {
            return Ok(());
        }
        let sentence = format!("LiteRT's function at {place} of its table answers {status}");
        Err(Failure::new(Status::RuntimeFailure, sentence))
    }
}

/// Where the value of a constant is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weights {
    first: NonNull<u8>,
    pub(crate) size: usize,
}

impl Weights {
    /// The bytes as memory, while LiteRT's call lasts: the loan must not outlive it.
    pub(crate) fn lend(&self) -> Outcome<(Loan, nnhal::hal::Memory)> {
        // SAFETY: LiteRT says that it has this number of bytes, and does not change its model while it is calling.
        Ok(unsafe { Loan::new(self.first, self.size, Protection::READ) }?)
    }
}

/// Copies what C has behind a pointer.
///
/// # Safety
/// `first` is null or leads to `count` elements.
unsafe fn elements<T: Copy>(first: *const T, count: usize) -> Vec<T> {
    if first.is_null() {
        return Vec::new();
    }
    // SAFETY: as the caller says.
    (0..count).map(|at| unsafe { first.add(at).read_unaligned() }).collect()
}

// Bytes are elements too.
answers!(i64: 0);

/// Frees what LiteRT has made with `new[]`, by the function of the library for C++ that it has. Where that is not found the
/// bytes stay: to free them by another library would be worse.
///
/// # Safety
/// No one else has the bytes.
unsafe fn give_back(first: NonNull<u8>) {
    use libloading::os::unix::{Library, RTLD_LAZY};
    /// Only if it is loaded; the same on all architectures of Linux but MIPS.
    const NOLOAD: c_int = 4;
    // SAFETY: a library that is loaded already is not initialized again.
    let Ok(library) = (unsafe { Library::open(Some("libstdc++.so.6"), RTLD_LAZY | NOLOAD) }) else {
        tracing::debug!("there is no libstdc++.so.6: the bytes of a model are not freed");
        return;
    };
    // SAFETY: `operator delete[](void*)`, of this type, for what `operator new[]` of the same library has made.
    unsafe {
        if let Ok(delete) = library.get::<unsafe extern "C" fn(*mut c_void)>(b"_ZdaPv\0") {
            delete(first.as_ptr().cast());
        }
    }
}
