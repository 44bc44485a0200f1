//! The types of TensorFlow Lite's C API, as they cross the border and as programs read them; what C only knows by handles
//! is declared beside its functions.
//!
//! Programs include `common.h` and read the fields of `TfLiteTensor` themselves. So its layout is that
//! of the classic API, as it has stood since TensorFlow 2.3: compile-time checks hold it.

use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};

/// `TfLiteStatus`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum TfLiteStatus {
    /// It worked.
    Ok = 0,
    /// It did not.
    Error = 1,
    /// A delegate failed.
    DelegateError = 2,
    /// The program has used the library wrongly.
    ApplicationError = 3,
    /// An operator has no implementation here.
    UnresolvedOps = 7,
    /// The program has cancelled it.
    Cancelled = 8,
}

/// `TfLiteType`, by number.
pub mod tensor_type {
    /// Not known.
    pub const NONE: i32 = 0;
    /// `char` sequences, which tensors of this library cannot hold.
    pub const STRING: i32 = 5;
    /// By code in the file format, which begins with another one.
    pub const OF_FORMAT: [i32; 19] =
        [1, 10, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19];
    /// What `TfLiteTypeGetName` says.
    pub const NAMES: [&std::ffi::CStr; 20] = [
        c"NOTYPE",
        c"FLOAT32",
        c"INT32",
        c"UINT8",
        c"INT64",
        c"STRING",
        c"BOOL",
        c"INT16",
        c"COMPLEX64",
        c"INT8",
        c"FLOAT16",
        c"FLOAT64",
        c"COMPLEX128",
        c"UINT64",
        c"RESOURCE",
        c"VARIANT",
        c"UINT32",
        c"UINT16",
        c"INT4",
        c"BFLOAT16",
    ];
}

/// `TfLiteAllocationType`, by number.
pub mod allocation {
    /// There is none.
    pub const NONE: i32 = 0;
    /// A constant of the file.
    pub const READ_ONLY: i32 = 1;
    /// Memory from `AllocateTensors` on.
    pub const ARENA: i32 = 2;
    /// The same, for values that stay from one run to the next.
    pub const PERSISTENT: i32 = 3;
    /// Memory from the first run on, since only that says how much.
    pub const DYNAMIC: i32 = 4;
    /// The program's memory.
    pub const CUSTOM: i32 = 6;
}

/// What stored integers stand for, if they have one scale (`TfLiteQuantizationParams`).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C)]
pub struct TfLiteQuantizationParams {
    /// The step; 0: none.
    pub scale: f32,
    /// The stored value that stands for 0.
    pub zero_point: i32,
}

/// `TfLiteQuantization`
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct TfLiteQuantization {
    /// 0: none; 1: affine.
    pub r#type: i32,
    /// Leads to a [`TfLiteAffineQuantization`].
    pub params: *const c_void,
}

/// `TfLiteAffineQuantization`
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct TfLiteAffineQuantization {
    /// `TfLiteFloatArray`
    pub scale: *const f32,
    /// `TfLiteIntArray`
    pub zero_point: *const i32,
    /// The axis that the scales are of.
    pub quantized_dimension: i32,
}

/// A tensor (`TfLiteTensor`). Arrays (`TfLiteIntArray`) begin with their length.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct TfLiteTensor {
    /// See [`tensor_type`].
    pub r#type: i32,
    /// The elements; null where there are none.
    pub data: *mut c_void,
    /// `TfLiteIntArray`: the length of each axis.
    pub dims: *const i32,
    /// The one scale and zero point.
    pub params: TfLiteQuantizationParams,
    /// See [`allocation`].
    pub allocation_type: i32,
    /// Bytes of the elements.
    pub bytes: usize,
    /// The mapping that a constant is in.
    pub allocation: *const c_void,
    /// Ends with a zero.
    pub name: *const c_char,
    /// The delegate that has the elements.
    pub delegate: *const c_void,
    /// What the delegate calls them.
    pub buffer_handle: i32,
    /// Whether the elements are a delegate's only.
    pub data_is_stale: bool,
    /// Whether the value stays from one run to the next.
    pub is_variable: bool,
    /// All scales and zero points.
    pub quantization: TfLiteQuantization,
    /// How a sparse constant is stored.
    pub sparsity: *const c_void,
    /// `TfLiteIntArray`: the length of each axis, -1 where the file leaves it open.
    pub dims_signature: *const i32,
}

impl TfLiteTensor {
    /// No tensor.
    pub const EMPTY: Self = Self {
        r#type: tensor_type::NONE,
        data: null_mut(),
        dims: null(),
        params: TfLiteQuantizationParams { scale: 0.0, zero_point: 0 },
        allocation_type: allocation::NONE,
        bytes: 0,
        allocation: null(),
        name: null(),
        delegate: null(),
        buffer_handle: -1,
        data_is_stale: false,
        is_variable: false,
        quantization: TfLiteQuantization { r#type: 0, params: null() },
        sparsity: null(),
        dims_signature: null(),
    };
}

/// `TfLiteCustomAllocation`
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct TfLiteCustomAllocation {
    /// The memory.
    pub data: *mut c_void,
    /// Its size.
    pub bytes: usize,
}

/// `TfLiteDelegate`
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct TfLiteDelegate {
    /// Its own.
    pub data: *mut c_void,
    /// Functions; this library calls none of them.
    pub functions: [*const c_void; 4],
    /// `TfLiteDelegateFlags`
    pub flags: i64,
    /// Where it comes from the newer API.
    pub opaque_delegate_builder: *const c_void,
}

// The layouts of C, on every 64-bit machine.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<TfLiteTensor>() == 112);
    assert!(offset_of!(TfLiteTensor, data) == 8);
    assert!(offset_of!(TfLiteTensor, dims) == 16);
    assert!(offset_of!(TfLiteTensor, params) == 24);
    assert!(offset_of!(TfLiteTensor, allocation_type) == 32);
    assert!(offset_of!(TfLiteTensor, bytes) == 40);
    assert!(offset_of!(TfLiteTensor, allocation) == 48);
    assert!(offset_of!(TfLiteTensor, name) == 56);
    assert!(offset_of!(TfLiteTensor, delegate) == 64);
    assert!(offset_of!(TfLiteTensor, buffer_handle) == 72);
    assert!(offset_of!(TfLiteTensor, data_is_stale) == 76);
    assert!(offset_of!(TfLiteTensor, is_variable) == 77);
    assert!(offset_of!(TfLiteTensor, quantization) == 80);
    assert!(offset_of!(TfLiteTensor, sparsity) == 96);
    assert!(offset_of!(TfLiteTensor, dims_signature) == 104);
    assert!(size_of::<TfLiteDelegate>() == 56);
    assert!(size_of::<TfLiteAffineQuantization>() == 24);
};
