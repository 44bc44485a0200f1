//! NumPy's arrays: their bytes, whatever their strides, and new ones to put results into.
//!
//! All memory of NumPy's is touched here, and only while the thread holds the GIL, but for what is lent to a run: inputs, which
//! are copied, and arrays for outputs.
#![allow(unsafe_code)]

use crate::error::{Failure, Outcome};
use half::f16;
use nnhal::DataType;
use nnhal::hal::Memory;
use nnhal::hal::memory::{Loan, Protection};
use numpy::npyffi::{NPY_ARRAY_OWNDATA, NPY_ARRAY_WRITEABLE, NpyTypes, PY_ARRAY_API, npy_intp};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ffi::c_int;
use std::ptr::NonNull;

/// Shorter runs of bytes are gathered into pieces of [`PIECE`] bytes before they go on.
const LONG_RUN: usize = 256;
const PIECE: usize = 8192;

/// The element type of an array.
///
/// # Errors
/// Tensors have no such elements, or they are of the other byte order.
pub(crate) fn data_type(array: &Bound<'_, PyUntypedArray>) -> Outcome<DataType> {
    let descr = array.dtype();
    let known = match (descr.kind(), descr.itemsize()) {
        _ if descr.is_native_byteorder() == Some(false) => None,
        (b'f', 2) => Some(DataType::Float16),
        (b'f', 4) => Some(DataType::Float32),
        (b'f', 8) => Some(DataType::Float64),
        (b'i', 1) => Some(DataType::Int8),
        (b'i', 2) => Some(DataType::Int16),
        (b'i', 4) => Some(DataType::Int32),
        (b'i', 8) => Some(DataType::Int64),
        (b'u', 1) => Some(DataType::Uint8),
        (b'u', 2) => Some(DataType::Uint16),
        (b'u', 4) => Some(DataType::Uint32),
        (b'u', 8) => Some(DataType::Uint64),
        (b'b', 1) => Some(DataType::Bool),
        (b'c', 8) => Some(DataType::Complex64),
        _ => None,
    };
    known.ok_or_else(|| {
        let what = format!("an array of dtype {descr} cannot be a tensor");
        Failure::Python(PyValueError::new_err(what))
    })
}

/// Calls with the elements of an array, if they are row by row without gaps.
pub(crate) fn with_bytes<T>(
    array: &Bound<'_, PyUntypedArray>,
    call: impl FnOnce(&[u8]) -> T,
) -> Option<T> {
    if !array.is_c_contiguous() {
        return None;
    }
    let length = array.len() * array.dtype().itemsize();
    if length == 0 {
        return Some(call(&[]));
    }
    // SAFETY: a contiguous array has this many bytes at `data`, which stay as long as the array,
    // which is borrowed. The GIL is held until `call` returns, so no Python code runs meanwhile; `call`
    // gets no Python token out of here. Every bit pattern is a `u8`.
    let bytes = unsafe {
        let data = (*array.as_array_ptr()).fields.data.cast::<u8>();
        std::slice::from_raw_parts(data, length)
    };
    Some(call(bytes))
}

/// Calls with the elements of an array that may be written, if they are row by row without gaps.
pub(crate) fn with_bytes_mut<T>(
    array: &Bound<'_, PyUntypedArray>,
    call: impl FnOnce(&mut [u8]) -> T,
) -> Option<T> {
    // SAFETY: the pointer is that of a live array object.
    let flags = unsafe { (*array.as_array_ptr()).fields.flags };
    if !array.is_c_contiguous() || flags & NPY_ARRAY_WRITEABLE == 0 {
        return None;
    }
    let length = array.len() * array.dtype().itemsize();
    if length == 0 {
        return Some(call(&mut []));
    }
    // SAFETY: as in `with_bytes`, also of new arrays: their bytes come from NumPy's allocator, into which the compiler does not see,
    // and so have values. The array is writeable, and no reference into it exists here, since
    // those that this module makes end with the calls that they are made for.
    let bytes = unsafe {
        let data = (*array.as_array_ptr()).fields.data.cast::<u8>();
        std::slice::from_raw_parts_mut(data, length)
    };
    Some(call(bytes))
}

/// The bytes of an array, lent to a run.
#[derive(Debug)]
pub(crate) struct LentArray<'py> {
    // It ends before the array goes.
    loan: Loan,
    memory: Memory,
    array: Bound<'py, PyUntypedArray>,
}

impl<'py> LentArray<'py> {
    /// Those of an input, if they are row by row without gaps. They are read without the GIL: if other threads write them meanwhile, the
    /// run has old or new elements, in any mixture.
    pub(crate) fn input(array: &Bound<'py, PyUntypedArray>) -> Option<Self> {
        let length = array.len() * array.dtype().itemsize();
        if !array.is_c_contiguous() {
            return None;
        }
        // SAFETY: the pointer is that of a live array object.
        let data = unsafe { (*array.as_array_ptr()).fields.data.cast::<u8>() };
        // SAFETY: a contiguous array has this many bytes at `data`, which stay as long as the array, which is kept beyond the
        // loan: it has two references, with which NumPy does not resize it, but for callers of `resize(refcheck=False)`, who
        // vouch for it. What is lent for reading is only copied, in a way that allows others to write, so no reference to it exists.
        let (loan, memory) =
            unsafe { Loan::new(NonNull::new(data)?, length, Protection::READ) }.ok()?;
        Some(Self { loan, memory, array: array.clone() })
    }

    /// Those of a new array, which a run gives values.
    ///
    /// # Errors
    /// There is no memory.
    pub(crate) fn output(py: Python<'py>, data_type: DataType, shape: &[usize]) -> Outcome<Self> {
        let too_large = || nnhal::Error::TooLarge { data_type, shape: shape.to_vec() };
        let array = new(py, data_type, shape)?;
        let length = array.len() * array.dtype().itemsize();
        // SAFETY: the pointer is that of a live array object.
        let data = unsafe { (*array.as_array_ptr()).fields.data.cast::<u8>() };
        let data = NonNull::new(data).ok_or_else(too_large)?;
        // SAFETY: a new array has this many bytes at `data`, which stay as long as the array, which is kept beyond the loan, and which
        // no Python code has before the loan ends. They come from NumPy's allocator, into which the compiler does not see: whatever
        // they are, they have values.
        let (loan, memory) =
            unsafe { Loan::exclusive(data, length) }.map_err(nnhal::Error::from)?;
        Ok(Self { loan, memory, array })
    }

    /// Those of an array that the caller of a run gives for a result, if they are row by row without gaps, and NumPy's own: not
    /// memory that other processes have too, such as that of a file. `others` are lent to the same run; they must have no
    /// byte in common with it.
    pub(crate) fn given<'o>(
        array: &Bound<'py, PyUntypedArray>,
        mut others: impl Iterator<Item = &'o Self>,
    ) -> Option<Self>
    where
        'py: 'o,
    {
        // SAFETY: the pointer is that of a live array object.
        let (flags, data) = unsafe {
            let fields = &(*array.as_array_ptr()).fields;
            (fields.flags, fields.data.cast::<u8>())
        };
        let is_own = flags & NPY_ARRAY_OWNDATA != 0 && flags & NPY_ARRAY_WRITEABLE != 0;
        let length = array.len() * array.dtype().itemsize();
        let first = data.addr();
        let overlaps = |other: &Self| {
            // SAFETY: as above.
            let start = unsafe { (*other.array.as_array_ptr()).fields.data.addr() };
            let end =
                start.saturating_add(usize::try_from(other.memory.size()).unwrap_or(usize::MAX));
            first < end && start < first.saturating_add(length)
        };
        if !is_own || !array.is_c_contiguous() || others.any(overlaps) {
            return None;
        }
        // SAFETY: a contiguous array has this many bytes at `data`, which have values, as Python code could read them, and stay as long
        // as the array, which is kept beyond the loan, see `input`. The caller gives them for results: like those of NumPy's functions,
        // which compute without the GIL too, it is for the caller to keep other threads from them meanwhile. Nothing else here
        // is lent them, as has been checked.
        let (loan, memory) = unsafe { Loan::exclusive(NonNull::new(data)?, length) }.ok()?;
        Some(Self { loan, memory, array: array.clone() })
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The array, once the run is over.
    pub(crate) fn into_array(self) -> Bound<'py, PyUntypedArray> {
        drop(self.loan);
        self.array
    }
}

/// Gives the elements of an array, whatever its strides, row by row in pieces.
///
/// # Errors
/// Those of `put`.
pub(crate) fn pieces<E>(
    array: &Bound<'_, PyUntypedArray>,
    mut put: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    if array.len() == 0 {
        return Ok(());
    }
    let (shape, strides) = (array.shape(), array.strides());
    // Trailing axes that are together are one run of bytes.
    let mut run = array.dtype().itemsize();
    let mut outer = shape.len();
    while outer > 0 && (shape[outer - 1] == 1 || usize::try_from(strides[outer - 1]) == Ok(run)) {
        outer -= 1;
        run *= shape[outer];
    }
    let (shape, strides) = (&shape[..outer], &strides[..outer]);
    // SAFETY: the pointer is that of a live array object.
    let data = unsafe { (*array.as_array_ptr()).fields.data.cast::<u8>().cast_const() };
    let mut index = vec![0_usize; outer];
    let mut offset = 0_isize;
    let mut piece = Vec::with_capacity(PIECE.max(run.min(LONG_RUN)));
    loop {
        // SAFETY: `offset` is the sum of index times stride over the outer axes, with each index
        // below its length, so `run` bytes from there are elements of the array, which stay
        // as long as the array, which is borrowed; the GIL is held.
        let bytes = unsafe { std::slice::from_raw_parts(data.offset(offset), run) };
        if run >= LONG_RUN {
            put(bytes)?;
        } else {
            piece.extend_from_slice(bytes);
            if piece.len() + run > PIECE {
                put(&piece)?;
                piece.clear();
            }
        }
        let mut axis = outer;
        loop {
            if axis == 0 {
                return if piece.is_empty() { Ok(()) } else { put(&piece) };
            }
            axis -= 1;
            index[axis] += 1;
            offset += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            offset -= strides[axis] * isize::try_from(shape[axis]).unwrap_or(0);
            index[axis] = 0;
        }
    }
}

/// The dtype of elements of a type; `None` where NumPy has none.
pub(crate) fn dtype(py: Python<'_>, data_type: DataType) -> Option<Bound<'_, PyArrayDescr>> {
    Some(match data_type {
        DataType::Float32 => PyArrayDescr::of::<f32>(py),
        DataType::Float16 => PyArrayDescr::of::<f16>(py),
        DataType::Float64 => PyArrayDescr::of::<f64>(py),
        DataType::Int8 => PyArrayDescr::of::<i8>(py),
        DataType::Int16 => PyArrayDescr::of::<i16>(py),
        DataType::Int32 => PyArrayDescr::of::<i32>(py),
        DataType::Int64 => PyArrayDescr::of::<i64>(py),
        DataType::Uint8 => PyArrayDescr::of::<u8>(py),
        DataType::Uint16 => PyArrayDescr::of::<u16>(py),
        DataType::Uint32 => PyArrayDescr::of::<u32>(py),
        DataType::Uint64 => PyArrayDescr::of::<u64>(py),
        DataType::Bool => PyArrayDescr::of::<bool>(py),
        DataType::Complex64 => PyArrayDescr::of::<nnhal::Complex32>(py),
        _ => return None,
    })
}

/// A new array, whose elements are whatever was in memory, truth values false.
///
/// # Errors
/// There is no memory.
fn new<'py>(
    py: Python<'py>,
    data_type: DataType,
    shape: &[usize],
) -> Outcome<Bound<'py, PyUntypedArray>> {
    let too_large = || nnhal::Error::TooLarge { data_type, shape: shape.to_vec() };
    let descr = dtype(py, data_type).ok_or_else(too_large)?;
    let lengths = shape.iter().map(|length| npy_intp::try_from(*length));
    let mut lengths = lengths.collect::<Result<Vec<_>, _>>().map_err(|_| too_large())?;
    let rank = c_int::try_from(lengths.len()).map_err(|_| too_large())?;
    // SAFETY: `lengths` has `rank` elements, and is there until the call returns; the functions take
    // the reference to `descr` over, and give an owned reference, or null with a Python error set.
    // What they give is an array, and its elements are of types without invalid bit patterns, or of
    // `bool`, which is 0 from the start where it is not overwritten.
    unsafe {
        debug_assert!(!numpy::npyffi::get_type_object(py, NpyTypes::PyArray_Type).is_null());
        let (lengths, descr) = (lengths.as_mut_ptr(), descr.into_dtype_ptr());
        let array = match data_type {
            DataType::Bool => PY_ARRAY_API.PyArray_Zeros(py, rank, lengths, descr, 0),
            _ => PY_ARRAY_API.PyArray_Empty(py, rank, lengths, descr, 0),
        };
        Ok(Bound::from_owned_ptr_or_err(py, array)?.cast_into_unchecked::<PyUntypedArray>())
    }
}

/// A new array; `fill` gives all of its bytes their values.
///
/// # Errors
/// There is no memory, or those of `fill`.
pub(crate) fn filled<'py>(
    py: Python<'py>,
    data_type: DataType,
    shape: &[usize],
    fill: impl FnOnce(&mut [u8]) -> nnhal::Result<()>,
) -> Outcome<Bound<'py, PyUntypedArray>> {
    let too_large = || nnhal::Error::TooLarge { data_type, shape: shape.to_vec() };
    let array = new(py, data_type, shape)?;
    match with_bytes_mut(&array, fill) {
        Some(outcome) => outcome?,
        None => return Err(too_large().into()),
    }
    Ok(array)
}
