//! The structures of TensorFlow Lite's C API, as they have stood since `tflite-runtime` 2.14.
//!
//! Their sizes are asserted below for machines with 64-bit pointers (x86-64 and aarch64 agree); where a host
//! of another age has more fields they are behind those that are used here.
//! Source: `tensorflow/lite/core/c/common.h`.

use std::ffi::{c_char, c_int, c_void};

pub(crate) const OK: c_int = 0;
pub(crate) const ERROR: c_int = 1;
pub(crate) const DELEGATE_ERROR: c_int = 2;

/// `kTfLiteOptionalTensor`
pub(crate) const OPTIONAL_TENSOR: c_int = -1;

pub(crate) mod allocation {
    use std::ffi::c_int;
    pub(crate) const READ_ONLY: c_int = 1;
    pub(crate) const DYNAMIC: c_int = 4;
}

/// The interpreter may have tensors whose shapes are known only when they are computed.
pub(crate) const ALLOW_DYNAMIC_TENSORS: i64 = 1;

/// `TfLiteIntArray`, or `TfLiteFloatArray`: a length, and its elements behind it.
#[repr(C)]
pub(crate) struct Array {
    pub(crate) size: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct QuantizationParams {
    pub(crate) scale: f32,
    pub(crate) zero_point: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Quantization {
    pub(crate) kind: c_int,
    pub(crate) params: *const c_void,
}

#[repr(C)]
pub(crate) struct AffineQuantization {
    pub(crate) scale: *const Array,
    pub(crate) zero_point: *const Array,
    pub(crate) quantized_dimension: i32,
}

#[repr(C)]
pub(crate) struct DimensionMetadata {
    pub(crate) format: c_int,
    pub(crate) dense_size: c_int,
    pub(crate) array_segments: *const Array,
    pub(crate) array_indices: *const Array,
}

#[repr(C)]
pub(crate) struct Sparsity {
    pub(crate) traversal_order: *const Array,
    pub(crate) block_map: *const Array,
    pub(crate) dim_metadata: *const DimensionMetadata,
    pub(crate) dim_metadata_size: c_int,
}

#[repr(C)]
pub(crate) struct Tensor {
    pub(crate) kind: c_int,
    pub(crate) data: *mut u8,
    pub(crate) dims: *const Array,
    pub(crate) params: QuantizationParams,
    pub(crate) allocation_type: c_int,
    pub(crate) bytes: usize,
    pub(crate) allocation: *const c_void,
    pub(crate) name: *const c_char,
    pub(crate) delegate: *mut Delegate,
    pub(crate) buffer_handle: c_int,
    pub(crate) data_is_stale: u8,
    pub(crate) is_variable: u8,
    pub(crate) quantization: Quantization,
    pub(crate) sparsity: *const Sparsity,
    pub(crate) dims_signature: *const Array,
}

/// The fields that are used; behind them is one byte, `might_have_side_effect`.
#[repr(C)]
pub(crate) struct Node {
    pub(crate) inputs: *const Array,
    pub(crate) outputs: *const Array,
    pub(crate) intermediates: *const Array,
    pub(crate) temporaries: *const Array,
    pub(crate) user_data: *mut c_void,
    pub(crate) builtin_data: *const c_void,
    pub(crate) custom_initial_data: *const u8,
    pub(crate) custom_initial_data_size: c_int,
    pub(crate) delegate: *mut Delegate,
}

#[repr(C)]
pub(crate) struct Registration {
    pub(crate) init: Option<extern "C" fn(*mut Context, *const c_char, usize) -> *mut c_void>,
    pub(crate) free: Option<extern "C" fn(*mut Context, *mut c_void)>,
    pub(crate) prepare: Option<extern "C" fn(*mut Context, *mut Node) -> c_int>,
    pub(crate) invoke: Option<extern "C" fn(*mut Context, *mut Node) -> c_int>,
    pub(crate) profiling_string:
        Option<extern "C" fn(*const Context, *const Node) -> *const c_char>,
    pub(crate) builtin_code: i32,
    pub(crate) custom_name: *const c_char,
    pub(crate) version: c_int,
    pub(crate) registration_external: *mut c_void,
    pub(crate) async_kernel: Option<extern "C" fn(*mut Context, *mut Node) -> *mut c_void>,
    pub(crate) inplace_operator: u64,
}

#[repr(C)]
pub(crate) struct DelegateParams {
    pub(crate) delegate: *mut Delegate,
    pub(crate) nodes_to_replace: *const Array,
    pub(crate) input_tensors: *const Array,
    pub(crate) output_tensors: *const Array,
}

type ContextFunction = Option<unsafe extern "C" fn()>;

#[repr(C)]
pub(crate) struct Context {
    pub(crate) tensors_size: usize,
    pub(crate) get_execution_plan:
        Option<unsafe extern "C" fn(*mut Context, *mut *const Array) -> c_int>,
    pub(crate) tensors: *mut Tensor,
    pub(crate) implementation: *mut c_void,
    /// Takes the array over.
    pub(crate) resize_tensor:
        Option<unsafe extern "C" fn(*mut Context, *mut Tensor, *mut Array) -> c_int>,
    pub(crate) report_error: Option<unsafe extern "C" fn(*mut Context, *const c_char, ...)>,
    pub(crate) add_tensors: ContextFunction,
    pub(crate) get_node_and_registration: Option<
        unsafe extern "C" fn(
            *mut Context,
            c_int,
            *mut *const Node,
            *mut *const Registration,
        ) -> c_int,
    >,
    pub(crate) replace_node_subsets: Option<
        unsafe extern "C" fn(*mut Context, Registration, *const Array, *mut Delegate) -> c_int,
    >,
    pub(crate) recommended_num_threads: c_int,
    pub(crate) get_external_context: ContextFunction,
    pub(crate) set_external_context: ContextFunction,
    pub(crate) allow_fp32_relax_to_fp16: u8,
    pub(crate) profiler: *mut c_void,
    pub(crate) allocate_persistent_buffer: ContextFunction,
    pub(crate) allocate_buffer_for_eval: ContextFunction,
    pub(crate) request_scratch_buffer: ContextFunction,
    pub(crate) get_scratch_buffer: ContextFunction,
    pub(crate) resize_tensor_explicit: ContextFunction,
    pub(crate) preview_partitioning: Option<
        unsafe extern "C" fn(
            *mut Context,
            *const Array,
            *mut *const DelegateParams,
            *mut c_int,
        ) -> c_int,
    >,
    pub(crate) get_tensor: ContextFunction,
    pub(crate) get_eval_tensor: ContextFunction,
    pub(crate) get_model_metadata: ContextFunction,
    pub(crate) acquire_subgraph_context:
        Option<unsafe extern "C" fn(*mut Context, c_int, *mut *mut Context) -> c_int>,
    pub(crate) release_subgraph_context: Option<unsafe extern "C" fn(*mut Context, c_int) -> c_int>,
}

#[repr(C)]
pub(crate) struct Delegate {
    pub(crate) data: *mut c_void,
    pub(crate) prepare: Option<extern "C" fn(*mut Context, *mut Delegate) -> c_int>,
    pub(crate) copy_from_buffer_handle: ContextFunction,
    pub(crate) copy_to_buffer_handle: ContextFunction,
    pub(crate) free_buffer_handle: ContextFunction,
    pub(crate) flags: i64,
    pub(crate) opaque_delegate_builder: *mut c_void,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<Delegate>() == 56);
    assert!(size_of::<Context>() == 200);
    assert!(size_of::<Tensor>() == 112);
    assert!(size_of::<Registration>() == 88);
    assert!(size_of::<DelegateParams>() == 32);
    assert!(size_of::<Node>() == 72);
    assert!(std::mem::offset_of!(Tensor, is_variable) == 77);
    assert!(std::mem::offset_of!(Tensor, dims_signature) == 104);
    assert!(std::mem::offset_of!(Context, recommended_num_threads) == 72);
    assert!(std::mem::offset_of!(Context, profiler) == 104);
    assert!(std::mem::offset_of!(Context, preview_partitioning) == 152);
    assert!(std::mem::offset_of!(Context, release_subgraph_context) == 192);
    assert!(std::mem::offset_of!(Registration, builtin_code) == 40);
    assert!(std::mem::offset_of!(Registration, inplace_operator) == 80);
};
