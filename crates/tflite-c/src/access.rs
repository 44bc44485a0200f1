//! `TfLiteTensor...`, `TfLiteOpaqueTensor...`: what tensors are, and their elements.
//!
//! A tensor of the library is found by its address, so one that is gone is a failure. Any other address is a
//! structure of the program's, as the header says, and followed. Tensors of the newer, opaque form are the
//! same ones.

use crate::abi::{
    TfLiteQuantization, TfLiteQuantizationParams, TfLiteTensor, allocation, tensor_type,
};
use crate::border::{Failure, Outcome, export};
use crate::memory;
use crate::tensor::{self, Found, Tensor};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// What C has passed: a tensor of the library, or a structure of the program's.
enum Passed {
    Own(Arc<Tensor>),
    Foreign(TfLiteTensor),
}

fn passed(pointer: *const TfLiteTensor) -> Outcome<Passed> {
    match tensor::find(pointer) {
        Found::Own(tensor) => Ok(Passed::Own(tensor)),
        Found::Gone => Err(Failure::new("the TfLiteTensor is gone with its TfLiteInterpreter")),
        Found::Foreign => match memory::get(pointer) {
            Some(tensor) => Ok(Passed::Foreign(tensor)),
            None => Err(Failure::new("the TfLiteTensor is NULL")),
        },
    }
}

/// The fields of what C has passed.
pub(crate) fn fields(pointer: *const TfLiteTensor) -> Outcome<TfLiteTensor> {
    Ok(match passed(pointer)? {
        Passed::Own(tensor) => tensor.get(),
        Passed::Foreign(tensor) => tensor,
    })
}

fn axes(pointer: *const TfLiteTensor) -> Outcome<i32> {
    Ok(memory::get(fields(pointer)?.dims).unwrap_or(-1))
}

/// An element of a `TfLiteIntArray`.
fn element(array: *const i32, index: i32) -> Outcome<i32> {
    let count = memory::get(array).unwrap_or(0);
    let position = usize::try_from(index).ok().filter(|_| index < count);
    let found = position.and_then(|position| memory::get(array.wrapping_add(1 + position)));
    found.ok_or_else(|| Failure::new(format!("there is no axis {index}, there are {count}")))
}

fn dim(pointer: *const TfLiteTensor, index: i32) -> Outcome<i32> {
    match passed(pointer)? {
        Passed::Own(tensor) => tensor.dim(index),
        Passed::Foreign(tensor) => element(tensor.dims, index),
    }
}

/// The same between memory that is all the program's.
fn copy_foreign(tensor: &TfLiteTensor, bytes: usize, other: *const c_void) -> Outcome {
    if tensor.bytes != bytes {
        let expected = tensor.bytes;
        let what = format!("{bytes} bytes are to be copied, the tensor has {expected}");
        return Err(Failure::new(what));
    }
    if bytes > 0 && (tensor.data.is_null() || other.is_null()) {
        return Err(Failure::new("there is no memory to copy from or to"));
    }
    Ok(())
}

fn copy_from(pointer: *const TfLiteTensor, from: *const c_void, bytes: usize) -> Outcome {
    match passed(pointer)? {
        Passed::Own(tensor) => tensor.copy_from(from, bytes),
        Passed::Foreign(tensor) => {
            copy_foreign(&tensor, bytes, from)?;
            memory::copy(from, tensor.data, bytes);
            Ok(())
        }
    }
}

fn copy_to(pointer: *const TfLiteTensor, to: *mut c_void, bytes: usize) -> Outcome {
    match passed(pointer)? {
        Passed::Own(tensor) => tensor.copy_to(to, bytes),
        Passed::Foreign(tensor) => {
            copy_foreign(&tensor, bytes, to)?;
            memory::copy(tensor.data, to, bytes);
            Ok(())
        }
    }
}

/// `TfLiteAllocationStrategy`, `TfLiteRunStability` and `TfLiteRunStep`, by number.
mod facts {
    pub(super) const UNKNOWN: c_int = 0;
    /// A strategy: separate memory of the library.
    pub(super) const MALLOC: c_int = 4;
    /// A strategy: a part of the file.
    pub(super) const MAPPED: c_int = 2;
    /// A strategy: there is none.
    pub(super) const NO_STRATEGY: c_int = 1;
    pub(super) const UNSTABLE: c_int = 1;
    pub(super) const SINGLE_RUN: c_int = 2;
    pub(super) const ACROSS_RUNS: c_int = 3;
    pub(super) const STEP_INIT: c_int = 1;
    pub(super) const STEP_PREPARE: c_int = 2;
    pub(super) const STEP_EVALUATE: c_int = 3;
    use std::ffi::c_int;
}

fn strategy(tensor: &TfLiteTensor) -> c_int {
    match tensor.allocation_type {
        allocation::NONE => facts::NO_STRATEGY,
        allocation::READ_ONLY => facts::MAPPED,
        allocation::CUSTOM => facts::UNKNOWN,
        _ => facts::MALLOC,
    }
}

fn address_stability(tensor: &TfLiteTensor) -> c_int {
    match tensor.allocation_type {
        allocation::READ_ONLY | allocation::PERSISTENT | allocation::ARENA => facts::ACROSS_RUNS,
        allocation::DYNAMIC => facts::SINGLE_RUN,
        allocation::CUSTOM => facts::UNKNOWN,
        _ => facts::UNSTABLE,
    }
}

fn data_stability(tensor: &TfLiteTensor) -> c_int {
    match tensor.allocation_type {
        allocation::READ_ONLY => facts::ACROSS_RUNS,
        allocation::CUSTOM => facts::UNKNOWN,
        _ => facts::SINGLE_RUN,
    }
}

fn data_known(tensor: &TfLiteTensor) -> c_int {
    match tensor.allocation_type {
        allocation::READ_ONLY => facts::STEP_INIT,
        _ => facts::STEP_EVALUATE,
    }
}

fn shape_known(tensor: &TfLiteTensor) -> c_int {
    match tensor.allocation_type {
        allocation::READ_ONLY => facts::STEP_INIT,
        allocation::DYNAMIC => facts::STEP_EVALUATE,
        _ => facts::STEP_PREPARE,
    }
}

/// Both names of a function: that of the classic form and that of the opaque one.
macro_rules! both {
    ($(
        $(#[$meta:meta])*
        fn $name:ident, $opaque:ident($tensor:ident $(, $argument:ident: $Argument:ty)*)
            -> $Value:ty, $otherwise:expr; $body:block
    )*) => {
        export! { $(
            $(#[$meta])*
            fn $name($tensor: *const TfLiteTensor $(, $argument: $Argument)*) -> $Value, $otherwise; $body

            $(#[$meta])*
            fn $opaque($tensor: *const TfLiteTensor $(, $argument: $Argument)*) -> $Value, $otherwise; $body
        )* }
    };
}

both! {
    /// The element type.
    fn TfLiteTensorType, TfLiteOpaqueTensorType(tensor) -> c_int, tensor_type::NONE; {
        Ok(fields(tensor)?.r#type)
    }

    /// The number of axes; -1 if the tensor has no shape.
    fn TfLiteTensorNumDims, TfLiteOpaqueTensorNumDims(tensor) -> i32, -1; {
        axes(tensor)
    }

    /// The length of an axis.
    fn TfLiteTensorDim, TfLiteOpaqueTensorDim(tensor, index: i32) -> i32, 0; {
        dim(tensor, index)
    }

    /// Bytes of all elements.
    fn TfLiteTensorByteSize, TfLiteOpaqueTensorByteSize(tensor) -> usize, 0; {
        Ok(fields(tensor)?.bytes)
    }

    /// The elements; null before `AllocateTensors`, and between operators.
    fn TfLiteTensorData, TfLiteOpaqueTensorData(tensor) -> *mut c_void, null_mut(); {
        Ok(fields(tensor)?.data)
    }

    /// The tensor's name.
    fn TfLiteTensorName, TfLiteOpaqueTensorName(tensor) -> *const c_char, null(); {
        Ok(fields(tensor)?.name)
    }

    /// The one scale and zero point; 0 and 0 if there are others or none.
    fn TfLiteTensorQuantizationParams, TfLiteOpaqueTensorGetQuantizationParams(
        tensor
    ) -> TfLiteQuantizationParams, TfLiteQuantizationParams::default(); {
        Ok(fields(tensor)?.params)
    }

    /// How elements come by memory.
    fn TfLiteTensorGetAllocationStrategy, TfLiteOpaqueTensorGetAllocationStrategy(
        tensor
    ) -> c_int, facts::UNKNOWN; {
        Ok(strategy(&fields(tensor)?))
    }

    /// How long elements are where they are.
    fn TfLiteTensorGetBufferAddressStability, TfLiteOpaqueTensorGetBufferAddressStability(
        tensor
    ) -> c_int, facts::UNKNOWN; {
        Ok(address_stability(&fields(tensor)?))
    }

    /// How long elements are what they are.
    fn TfLiteTensorGetDataStability, TfLiteOpaqueTensorGetDataStability(
        tensor
    ) -> c_int, facts::UNKNOWN; {
        Ok(data_stability(&fields(tensor)?))
    }

    /// When elements are known.
    fn TfLiteTensorGetDataKnownStep, TfLiteOpaqueTensorGetDataKnownStep(
        tensor
    ) -> c_int, facts::UNKNOWN; {
        Ok(data_known(&fields(tensor)?))
    }

    /// When the shape is known.
    fn TfLiteTensorGetShapeKnownStep, TfLiteOpaqueTensorGetShapeKnownStep(
        tensor
    ) -> c_int, facts::UNKNOWN; {
        Ok(shape_known(&fields(tensor)?))
    }
}

export! {
    /// Copies all elements of an input from the program's memory.
    fn TfLiteTensorCopyFromBuffer(tensor: *mut TfLiteTensor, data: *const c_void, size: usize) {
        copy_from(tensor, data, size)
    }

    /// As [`TfLiteTensorCopyFromBuffer`].
    fn TfLiteOpaqueTensorCopyFromBuffer(
        tensor: *mut TfLiteTensor,
        data: *const c_void,
        size: usize,
    ) {
        copy_from(tensor, data, size)
    }

    /// Copies all elements of an output to the program's memory.
    fn TfLiteTensorCopyToBuffer(tensor: *const TfLiteTensor, data: *mut c_void, size: usize) {
        copy_to(tensor, data, size)
    }

    /// As [`TfLiteTensorCopyToBuffer`].
    fn TfLiteOpaqueTensorCopyToBuffer(tensor: *const TfLiteTensor, data: *mut c_void, size: usize) {
        copy_to(tensor, data, size)
    }

    /// The number of axes that the file says may have any length, with the others.
    fn TfLiteOpaqueTensorGetNumDimsSignature(tensor: *const TfLiteTensor, count: *mut i32) {
        memory::put(count, memory::get(fields(tensor)?.dims_signature).unwrap_or(-1));
        Ok(())
    }

    /// The length of an axis as the file says it, -1 where it leaves that open.
    fn TfLiteOpaqueTensorGetDimSignature(
        tensor: *const TfLiteTensor,
        index: i32,
        length: *mut i32,
    ) {
        memory::put(length, element(fields(tensor)?.dims_signature, index)?);
        Ok(())
    }

    /// The shape as the file says it, -1 where it leaves a length open; the shape itself where it leaves
    /// none.
    fn TfLiteTensorGetDimsSignature(tensor: *const TfLiteTensor) -> *const i32, null(); {
        let TfLiteTensor { dims, dims_signature, .. } = fields(tensor)?;
        let is_said = memory::get(dims_signature).is_some_and(|count| count > 0);
        Ok(if is_said { dims_signature } else { dims })
    }

    /// Whether the value stays from one run to the next.
    fn TfLiteOpaqueTensorIsVariable(tensor: *const TfLiteTensor) -> c_int, 0; {
        Ok(fields(tensor)?.is_variable.into())
    }

    /// How elements come by memory, in the older words.
    fn TfLiteOpaqueTensorGetAllocationType(tensor: *const TfLiteTensor) -> c_int, 0; {
        Ok(fields(tensor)?.allocation_type)
    }

    /// All scales and zero points.
    fn TfLiteOpaqueTensorGetQuantization(
        tensor: *const TfLiteTensor,
    ) -> TfLiteQuantization, TfLiteTensor::EMPTY.quantization; {
        Ok(fields(tensor)?.quantization)
    }

    /// There are no strings in tensors here.
    fn TfLiteOpaqueTensorGetStringCount(tensor: *const TfLiteTensor) -> c_int, -1; {
        fields(tensor)?;
        Err(Failure::new("tensors of strings are not supported"))
    }

    /// There are no strings in tensors here.
    fn TfLiteOpaqueTensorGetString(
        tensor: *const TfLiteTensor,
        _index: c_int,
        _text: *mut *const c_char,
        _length: *mut c_int,
    ) {
        fields(tensor)?;
        Err(Failure::new("tensors of strings are not supported"))
    }

    /// There are no strings in tensors here.
    fn TfLiteOpaqueTensorWriteString(
        tensor: *mut TfLiteTensor,
        _text: *const c_char,
        _length: c_int,
    ) {
        fields(tensor)?;
        Err(Failure::new("tensors of strings are not supported"))
    }

    /// There are no strings in tensors here.
    fn TfLiteOpaqueTensorWriteStrings(
        tensor: *mut TfLiteTensor,
        _texts: *const *const c_char,
        _count: c_int,
        _lengths: *const c_int,
    ) {
        fields(tensor)?;
        Err(Failure::new("tensors of strings are not supported"))
    }

    /// Memory of tensors is the library's own decision.
    fn TfLiteOpaqueTensorSetAllocationTypeToDynamic(tensor: *mut TfLiteTensor) -> (), (); {
        fields(tensor)?;
        Err(Failure::new("only an operator of the program could say that, and none is called"))
    }

    /// Memory of tensors is the library's own decision.
    fn TfLiteOpaqueTensorSetNonCpuAllocation(tensor: *mut TfLiteTensor) -> (), (); {
        fields(tensor)?;
        Err(Failure::new("only an operator of the program could say that, and none is called"))
    }
}
