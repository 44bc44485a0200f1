//! Functions of `common.h`: arrays, and tensors that are structures of the program's own.
//!
//! Programs free with `free` what these make, and the other way round, so the C library's allocator is
//! used. A tensor of an interpreter is refused: its memory is the interpreter's.

#![allow(unsafe_code, reason = "structures of the program's, made with the C library's allocator")]

use crate::abi::{
    TfLiteQuantization, TfLiteQuantizationParams, TfLiteStatus, TfLiteTensor, allocation,
};
use crate::border::{Failure, Outcome, export};
use crate::tensor::{self, Found};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn realloc(pointer: *mut c_void, size: usize) -> *mut c_void;
    fn free(pointer: *mut c_void);
}

/// Bytes of an array with this number of elements of 4 bytes, its length included.
fn array_bytes(length: c_int) -> Outcome<usize> {
    let length = usize::try_from(length)
        .map_err(|_| Failure::new(format!("an array cannot have {length} elements")))?;
    length
        .checked_add(1)
        .and_then(|words| words.checked_mul(4))
        .ok_or_else(|| Failure::new(format!("an array of {length} elements is too large")))
}

fn create(length: c_int) -> Outcome<*mut c_int> {
    let bytes = array_bytes(length)?;
    // SAFETY: any size may be asked for.
    let array: *mut c_int = unsafe { malloc(bytes) }.cast();
    if array.is_null() {
        return Err(Failure::new(format!("there is no memory for {bytes} bytes")));
    }
    // SAFETY: memory for one number at least has just been made.
    unsafe { array.write(length) };
    Ok(array)
}

/// The elements behind the length.
///
/// # Safety
/// C promises an array there, or null.
unsafe fn elements<'a>(array: *const c_int) -> Option<&'a [c_int]> {
    if array.is_null() {
        return None;
    }
    // SAFETY: not null, so there is an array, which begins with its length.
    unsafe {
        let length = usize::try_from(array.read()).ok()?;
        Some(std::slice::from_raw_parts(array.add(1), length))
    }
}

fn are_equal(one: *const c_int, other: *const c_int) -> bool {
    // SAFETY: C promises arrays, or null.
    let (first, second) = unsafe { (elements(one), elements(other)) };
    one == other || first.is_some() && first == second
}

fn has_elements(array: *const c_int, others: &[c_int]) -> bool {
    // SAFETY: C promises an array, or null.
    unsafe { elements(array) == Some(others) }
}

fn copy(array: *const c_int) -> Outcome<*mut c_int> {
    // SAFETY: C promises an array, or null.
    let Some(from) = (unsafe { elements(array) }) else { return Ok(null_mut()) };
    let made = create(c_int::try_from(from.len()).unwrap_or(c_int::MAX))?;
    // SAFETY: the same number of elements was made, elsewhere.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), made.add(1), from.len()) };
    Ok(made)
}

fn release(pointer: *mut c_void) {
    // SAFETY: C promises memory of the C library's allocator, or null.
    unsafe { free(pointer) }
}

/// A structure of the program's.
fn own<'a>(tensor: *mut TfLiteTensor) -> Outcome<&'a mut TfLiteTensor> {
    if !matches!(tensor::find(tensor), Found::Foreign) {
        return Err(Failure::new("the tensor is an interpreter's, and so is its memory"));
    }
    if tensor.is_null() {
        return Err(Failure::new("the tensor is NULL"));
    }
    // SAFETY: not null and none of ours, so it is the program's, which says that it may be written.
    Ok(unsafe { &mut *tensor })
}

fn free_data(tensor: &mut TfLiteTensor) {
    if matches!(tensor.allocation_type, allocation::DYNAMIC) {
        release(tensor.data);
    }
    tensor.data = null_mut();
}

fn free_quantization(quantization: &mut TfLiteQuantization) {
    if quantization.r#type == 1 && !quantization.params.is_null() {
        let params: *const crate::abi::TfLiteAffineQuantization = quantization.params.cast();
        // SAFETY: of this type it leads to two arrays, which are its own.
        let inner = unsafe { params.read() };
        release(inner.scale.cast_mut().cast());
        release(inner.zero_point.cast_mut().cast());
    }
    release(quantization.params.cast_mut());
    *quantization = TfLiteTensor::EMPTY.quantization;
}

fn resize(bytes: usize, tensor: *mut TfLiteTensor, keep: bool) -> Outcome {
    let tensor = own(tensor)?;
    if tensor.allocation_type != allocation::DYNAMIC {
        return Ok(());
    }
    if bytes == 0 {
        free_data(tensor);
        tensor.bytes = 0;
        return Ok(());
    }
    if !keep && bytes > tensor.bytes {
        free_data(tensor);
    }
    if tensor.data.is_null() || bytes > tensor.bytes {
        // SAFETY: the tensor's own memory, or null.
        let grown = unsafe { realloc(tensor.data, bytes) };
        if grown.is_null() {
            return Err(Failure::new(format!("there is no memory for {bytes} bytes")));
        }
        tensor.data = grown;
    }
    tensor.bytes = bytes;
    Ok(())
}

export! {
    /// Bytes of an array of integers.
    fn TfLiteIntArrayGetSizeInBytes(length: c_int) -> usize, 0; {
        array_bytes(length)
    }

    /// An array of integers.
    fn TfLiteIntArrayCreate(length: c_int) -> *mut c_int, null_mut(); {
        create(length)
    }

    /// The array once more.
    fn TfLiteIntArrayCopy(array: *const c_int) -> *mut c_int, null_mut(); {
        copy(array)
    }

    /// Frees the array.
    fn TfLiteIntArrayFree(array: *mut c_int) -> (), (); {
        release(array.cast());
        Ok(())
    }

    /// Whether both have the same elements.
    fn TfLiteIntArrayEqual(one: *const c_int, other: *const c_int) -> c_int, 0; {
        Ok(are_equal(one, other).into())
    }

    /// Whether the array has these elements.
    fn TfLiteIntArrayEqualsArray(
        array: *const c_int,
        length: c_int,
        others: *const c_int,
    ) -> c_int, 0; {
        let others = crate::memory::numbers(others, length, "the array")?;
        Ok(has_elements(array, &others).into())
    }

    /// Bytes of an array of floats.
    fn TfLiteFloatArrayGetSizeInBytes(length: c_int) -> c_int, 0; {
        Ok(c_int::try_from(array_bytes(length)?).unwrap_or(c_int::MAX))
    }

    /// An array of floats.
    fn TfLiteFloatArrayCreate(length: c_int) -> *mut f32, null_mut(); {
        create(length).map(|array| array.cast())
    }

    /// The array once more.
    fn TfLiteFloatArrayCopy(array: *const f32) -> *mut f32, null_mut(); {
        copy(array.cast()).map(|array| array.cast())
    }

    /// Frees the array.
    fn TfLiteFloatArrayFree(array: *mut f32) -> (), (); {
        release(array.cast());
        Ok(())
    }

    /// Fills a structure of the program's.
    fn TfLiteTensorReset(
        element_type: c_int,
        name: *const c_char,
        dims: *mut c_int,
        params: TfLiteQuantizationParams,
        buffer: *mut c_char,
        size: usize,
        allocation_type: c_int,
        mapping: *const c_void,
        is_variable: bool,
        tensor: *mut TfLiteTensor,
    ) -> (), (); {
        let tensor = own(tensor)?;
        free_tensor(tensor);
        *tensor = TfLiteTensor {
            r#type: element_type,
            name,
            dims,
            params,
            data: buffer.cast(),
            bytes: size,
            allocation_type,
            allocation: mapping,
            is_variable,
            ..TfLiteTensor::EMPTY
        };
        Ok(())
    }

    /// Frees what a structure of the program's owns.
    fn TfLiteTensorFree(tensor: *mut TfLiteTensor) -> (), (); {
        own(tensor).map(free_tensor)
    }

    /// Frees the elements of a structure of the program's.
    fn TfLiteTensorDataFree(tensor: *mut TfLiteTensor) -> (), (); {
        own(tensor).map(free_data)
    }

    /// Gives a structure of the program's room for other elements.
    fn TfLiteTensorRealloc(bytes: usize, tensor: *mut TfLiteTensor) {
        resize(bytes, tensor, true)
    }

    /// The same; the elements stay if `keep` says so.
    fn TfLiteTensorResizeMaybeCopy(bytes: usize, tensor: *mut TfLiteTensor, keep: bool) {
        resize(bytes, tensor, keep)
    }

    /// Copies shape, elements and state to a structure of the program's of the same size.
    fn TfLiteTensorCopy(from: *const TfLiteTensor, to: *mut TfLiteTensor) {
        if from.is_null() || to.is_null() {
            return Ok(());
        }
        let from_fields = crate::access::fields(from)?;
        let to = own(to)?;
        if from_fields.bytes != to.bytes {
            let (found, expected) = (from_fields.bytes, to.bytes);
            let what = format!("{found} bytes are to be copied, the tensor has {expected}");
            return Err(Failure::of(TfLiteStatus::Error, what));
        }
        if from_fields.bytes > 0 && (from_fields.data.is_null() || to.data.is_null()) {
            return Err(Failure::new("there is no memory to copy from or to"));
        }
        let dims = copy(from_fields.dims)?;
        release(to.dims.cast_mut().cast());
        (to.dims, to.r#type) = (dims, from_fields.r#type);
        crate::memory::copy(from_fields.data, to.data, to.bytes);
        (to.buffer_handle, to.data_is_stale) = (from_fields.buffer_handle, from_fields.data_is_stale);
        Ok(())
    }

    /// Frees what quantization parameters of the program's own.
    fn TfLiteQuantizationFree(quantization: *mut TfLiteQuantization) -> (), (); {
        if let Some(mut found) = crate::memory::get(quantization) {
            free_quantization(&mut found);
            crate::memory::put(quantization, found);
        }
        Ok(())
    }

    /// Frees how a sparse tensor of the program's is stored.
    fn TfLiteSparsityFree(sparsity: *mut Sparsity) -> (), (); {
        free_sparsity(sparsity);
        Ok(())
    }
}

/// `TfLiteSparsity`
#[derive(Debug)]
#[repr(C)]
pub struct Sparsity {
    traversal_order: *mut c_void,
    block_map: *mut c_void,
    dimensions: *mut SparseDimension,
    dimension_count: c_int,
}

/// `TfLiteDimensionMetadata`
#[derive(Debug)]
#[repr(C)]
struct SparseDimension {
    format: c_int,
    dense_size: c_int,
    segments: *mut c_void,
    indices: *mut c_void,
}

fn free_sparsity(sparsity: *mut Sparsity) {
    if sparsity.is_null() {
        return;
    }
    // SAFETY: not null, so it is the program's, with as many dimensions as it says.
    unsafe {
        let Sparsity { traversal_order, block_map, dimensions, dimension_count } = sparsity.read();
        for at in 0..usize::try_from(dimension_count).unwrap_or(0) {
            let dimension = dimensions.add(at).read();
            // 1: a sparse one, which has arrays.
            if dimension.format == 1 {
                release(dimension.segments);
                release(dimension.indices);
            }
        }
        release(traversal_order);
        release(block_map);
        release(dimensions.cast());
    }
    release(sparsity.cast());
}

fn free_tensor(tensor: &mut TfLiteTensor) {
    free_data(tensor);
    release(tensor.dims.cast_mut().cast());
    release(tensor.dims_signature.cast_mut().cast());
    tensor.dims = std::ptr::null();
    tensor.dims_signature = std::ptr::null();
    free_quantization(&mut tensor.quantization);
    free_sparsity(tensor.sparsity.cast_mut().cast());
    tensor.sparsity = std::ptr::null();
}
