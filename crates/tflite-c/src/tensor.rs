//! [`Tensor`]: a tensor of an interpreter, with the structure that C reads.

use crate::abi::{
    TfLiteAffineQuantization, TfLiteQuantization, TfLiteQuantizationParams, TfLiteTensor,
    allocation, tensor_type,
};
use crate::border::{Failure, Outcome, lock};
use crate::memory::{self, Block};
use crate::slot::{self, Slot};
use nnhal::{DataType, TensorInfo, TensorQuantization};
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock, Weak};

/// A tensor of an interpreter. The structure in its slot leads to what its parts own.
#[derive(Debug)]
pub struct Tensor {
    slot: Slot,
    index: usize,
    data_type: DataType,
    parts: Mutex<Parts>,
}

#[derive(Debug)]
struct Parts {
    name: CString,
    dims: Box<[i32]>,
    /// Kept for the structure.
    _signature: Box<[i32]>,
    /// Kept for the structure.
    _quantization: Option<Box<Quantization>>,
    /// Bytes that elements of the shape have.
    bytes: usize,
    block: Option<Block>,
    /// Bytes of the program's memory, if the elements are there.
    custom: Option<usize>,
}

/// What `TfLiteTensor::quantization` leads to.
#[derive(Debug)]
struct Quantization {
    /// Length and elements, as a `TfLiteFloatArray` has them.
    scales: Box<[f32]>,
    zero_points: Box<[i32]>,
    affine: TfLiteAffineQuantization,
}

/// The tensors that there are, by the addresses of their places.
static LIVE: LazyLock<RwLock<HashMap<usize, Weak<Tensor>>>> = LazyLock::new(RwLock::default);

/// What an address is.
pub(crate) enum Found {
    /// A tensor of the library.
    Own(Arc<Tensor>),
    /// Was one.
    Gone,
    /// Never was one.
    Foreign,
}

/// What the address is that C has passed.
pub(crate) fn find(pointer: *const TfLiteTensor) -> Found {
    let live = LIVE.read().unwrap_or_else(PoisonError::into_inner);
    match live.get(&pointer.addr()).and_then(Weak::upgrade) {
        Some(tensor) => Found::Own(tensor),
        None if slot::is_place(pointer) => Found::Gone,
        None => Found::Foreign,
    }
}

impl Tensor {
    /// A tensor without elements, of the shape of the file's example.
    pub(crate) fn new(info: &TensorInfo) -> Outcome<Arc<Self>> {
        let data_type = info.data_type;
        let dims = array(&lengths(&info.example_shape)?);
        let open = |length: &Option<usize>| length.map_or(Ok(-1), narrow);
        let signature: Vec<i32> =
            info.shape_signature.iter().flatten().map(open).collect::<Outcome<_>>()?;
        let signature = array(&signature);
        let name = CString::new(info.name.replace('\0', " ")).unwrap_or_default();
        let mut quantization = info.quantization.as_ref().and_then(Quantization::new);
        let bytes = data_type.byte_length(&info.example_shape).unwrap_or(0);
        let slot = Slot::new();
        slot.set(TfLiteTensor {
            r#type: type_code(data_type),
            dims: dims.as_ptr(),
            params: quantization.as_ref().map_or_else(Default::default, |it| it.params()),
            allocation_type: if info.stored.is_some() {
                allocation::READ_ONLY
            } else if info.is_variable {
                allocation::PERSISTENT
            } else {
                allocation::ARENA
            },
            bytes,
            name: name.as_ptr(),
            is_variable: info.is_variable,
            quantization: match &mut quantization {
                Some(it) => TfLiteQuantization { r#type: 1, params: (&raw const it.affine).cast() },
                None => TfLiteTensor::EMPTY.quantization,
            },
            dims_signature: signature.as_ptr(),
            ..TfLiteTensor::EMPTY
        });
        let parts = Parts {
            name,
            dims,
            _signature: signature,
            _quantization: quantization,
            bytes,
            block: None,
            custom: None,
        };
        let tensor =
            Arc::new(Self { slot, index: info.index, data_type, parts: Mutex::new(parts) });
        let mut live = LIVE.write().unwrap_or_else(PoisonError::into_inner);
        live.insert(tensor.pointer().addr(), Arc::downgrade(&tensor));
        drop(live);
        Ok(tensor)
    }

    /// What C holds.
    pub(crate) fn pointer(&self) -> *mut TfLiteTensor {
        self.slot.pointer()
    }

    /// The structure, C's changes included.
    pub(crate) fn get(&self) -> TfLiteTensor {
        self.slot.get()
    }

    pub(crate) fn data_type(&self) -> DataType {
        self.data_type
    }

    /// The length of each axis.
    pub(crate) fn shape(&self) -> Outcome<Vec<usize>> {
        let parts = lock(&self.parts)?;
        Ok(parts.dims[1..].iter().map(|length| usize::try_from(*length).unwrap_or(0)).collect())
    }

    /// The length of an axis.
    pub(crate) fn dim(&self, axis: i32) -> Outcome<i32> {
        let parts = lock(&self.parts)?;
        let length = usize::try_from(axis).ok().and_then(|axis| parts.dims[1..].get(axis));
        length.copied().ok_or_else(|| {
            let axes = parts.dims.len() - 1;
            Failure::new(format!("there is no axis {axis}, the tensor has {axes}"))
        })
    }

    /// Gives it another shape; its elements are gone if it differs, unless they are the program's own.
    pub(crate) fn reshape(&self, shape: &[usize]) -> Outcome {
        let mut parts = lock(&self.parts)?;
        let dims = array(&lengths(shape)?);
        let bytes = self.data_type.byte_length(shape).ok_or_else(|| {
            Failure::new(format!("a tensor of {} and shape {shape:?} is too large", self.data_type))
        })?;
        if parts.dims == dims {
            return Ok(());
        }
        let mut tensor = self.slot.get();
        tensor.dims = dims.as_ptr();
        tensor.bytes = bytes;
        if parts.custom.is_none() && tensor.allocation_type != allocation::DYNAMIC {
            tensor.data = std::ptr::null_mut();
        }
        self.slot.set(tensor);
        (parts.dims, parts.bytes) = (dims, bytes);
        Ok(())
    }

    /// Memory for the elements of its shape. What it has stays if that is enough.
    pub(crate) fn allocate(&self, allocation_type: i32) -> Outcome {
        let mut parts = lock(&self.parts)?;
        let mut tensor = self.slot.get();
        let bytes = parts.bytes;
        if let Some(found) = parts.custom {
            if found >= bytes {
                return Ok(());
            }
            let what = format!("the program's memory has {found} bytes, it needs {bytes}");
            return Err(self.about(&parts, &what));
        }
        if parts.block.as_ref().is_none_or(|block| block.capacity() < bytes) {
            let block = Block::new(bytes)?;
            tensor.data = block.pointer();
            self.slot.set(tensor);
            parts.block = Some(block);
        }
        if let Some(block) = parts.block.as_ref().filter(|_| tensor.data.is_null()) {
            tensor.data = block.pointer();
        }
        tensor.allocation_type = allocation_type;
        self.slot.set(tensor);
        Ok(())
    }

    /// Its shape will be known when the model has run: until then it has no elements.
    pub(crate) fn make_dynamic(&self) -> Outcome {
        let mut parts = lock(&self.parts)?;
        let mut tensor = self.slot.get();
        if parts.custom.is_some() {
            let what =
                "its size is known when the model has run, so its memory cannot be the program's";
            return Err(self.about(&parts, what));
        }
        tensor.allocation_type = allocation::DYNAMIC;
        tensor.data = std::ptr::null_mut();
        self.slot.set(tensor);
        parts.block = None;
        Ok(())
    }

    /// Elements in the program's memory.
    pub(crate) fn adopt(&self, data: *mut c_void, bytes: usize, may_straddle: bool) -> Outcome {
        let mut parts = lock(&self.parts)?;
        let mut tensor = self.slot.get();
        if data.is_null() {
            return Err(self.about(&parts, "the program's memory is NULL"));
        }
        if !may_straddle && !data.addr().is_multiple_of(memory::ALIGNMENT) {
            let what = format!("the memory does not begin at a multiple of {}", memory::ALIGNMENT);
            return Err(self.about(&parts, &what));
        }
        if !matches!(
            tensor.allocation_type,
            allocation::ARENA | allocation::PERSISTENT | allocation::CUSTOM
        ) {
            return Err(self.about(&parts, "the program can give no memory for it"));
        }
        (tensor.data, tensor.allocation_type) = (data, allocation::CUSTOM);
        self.slot.set(tensor);
        (parts.block, parts.custom) = (None, Some(bytes));
        Ok(())
    }

    /// Elements that are where the structure says.
    pub(crate) fn with_bytes<T>(&self, with: impl FnOnce(&[u8]) -> T) -> Outcome<T> {
        let parts = lock(&self.parts)?;
        let data = self.data(&parts)?;
        Ok(memory::read(data, parts.bytes, with))
    }

    /// Elements that are where the structure says, to be written.
    pub(crate) fn with_bytes_mut<T>(&self, with: impl FnOnce(&mut [u8]) -> T) -> Outcome<T> {
        let parts = lock(&self.parts)?;
        let data = self.data(&parts)?;
        Ok(memory::write(data, parts.bytes, with))
    }

    fn about(&self, parts: &Parts, what: &str) -> Failure {
        let name = parts.name.to_string_lossy();
        Failure::new(format!("tensor {} ({name}): {what}", self.index))
    }

    fn data(&self, parts: &Parts) -> Outcome<*mut c_void> {
        let data = self.slot.get().data;
        if data.is_null() && parts.bytes > 0 {
            return Err(self.about(parts, "it has no memory"));
        }
        Ok(data)
    }

    /// Copies elements out of the program's memory.
    pub(crate) fn copy_from(&self, from: *const c_void, bytes: usize) -> Outcome {
        let parts = lock(&self.parts)?;
        let tensor = self.slot.get();
        if tensor.allocation_type == allocation::READ_ONLY {
            return Err(self.about(&parts, "it is a constant of the file"));
        }
        let data = self.checked(&parts, &tensor, from, bytes)?;
        memory::copy(from, data, bytes);
        Ok(())
    }

    /// Copies elements into the program's memory.
    pub(crate) fn copy_to(&self, to: *mut c_void, bytes: usize) -> Outcome {
        let parts = lock(&self.parts)?;
        let tensor = self.slot.get();
        let data = self.checked(&parts, &tensor, to, bytes)?;
        memory::copy(data, to, bytes);
        Ok(())
    }

    fn checked(
        &self,
        parts: &Parts,
        tensor: &TfLiteTensor,
        other: *const c_void,
        bytes: usize,
    ) -> Outcome<*mut c_void> {
        if tensor.bytes != bytes {
            let expected = tensor.bytes;
            let what = format!("{bytes} bytes are to be copied, it has {expected}");
            return Err(self.about(parts, &what));
        }
        if bytes > 0 && tensor.data.is_null() {
            let what = "it has no elements: AllocateTensors or Invoke comes first, and tensors \
                        between operators have none";
            return Err(self.about(parts, what));
        }
        if bytes > 0 && other.is_null() {
            return Err(self.about(parts, "the program's memory is NULL"));
        }
        Ok(tensor.data)
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // Before the place is free: the next tensor there is found by the same address.
        LIVE.write().unwrap_or_else(PoisonError::into_inner).remove(&self.pointer().addr());
    }
}

impl Quantization {
    fn new(quantization: &TensorQuantization) -> Option<Box<Self>> {
        let TensorQuantization { scales, zero_points, axis } = quantization;
        if scales.is_empty() {
            return None;
        }
        let count = i32::try_from(scales.len()).ok()?;
        // The length's bits are in a place for a float, as C's structure has both one after the other.
        let length = f32::from_bits(count.cast_unsigned());
        let zero = |at: usize| {
            let only = if zero_points.len() == 1 { 0 } else { at };
            zero_points.get(only).copied().and_then(|it| i32::try_from(it).ok()).unwrap_or(0)
        };
        let mut all = Box::new(Self {
            scales: std::iter::once(length).chain(scales.iter().copied()).collect(),
            zero_points: std::iter::once(count).chain((0..scales.len()).map(zero)).collect(),
            affine: TfLiteAffineQuantization {
                scale: std::ptr::null(),
                zero_point: std::ptr::null(),
                quantized_dimension: i32::try_from(*axis).unwrap_or(0),
            },
        });
        (all.affine.scale, all.affine.zero_point) = (all.scales.as_ptr(), all.zero_points.as_ptr());
        Some(all)
    }

    /// What the older fields say: nothing where there are several scales.
    fn params(&self) -> TfLiteQuantizationParams {
        match (&*self.scales, &*self.zero_points) {
            ([_, scale], [_, zero_point]) => {
                TfLiteQuantizationParams { scale: *scale, zero_point: *zero_point }
            }
            _ => TfLiteQuantizationParams::default(),
        }
    }
}

/// The type's number in C.
pub(crate) fn type_code(data_type: DataType) -> i32 {
    let code = usize::try_from(data_type.tflite_code());
    let known = code.ok().and_then(|code| tensor_type::OF_FORMAT.get(code));
    known.copied().unwrap_or(tensor_type::NONE)
}

/// Numbers with their count before them, as `TfLiteIntArray` has them.
fn array(numbers: &[i32]) -> Box<[i32]> {
    let count = i32::try_from(numbers.len()).unwrap_or(0);
    std::iter::once(count).chain(numbers.iter().copied()).collect()
}

fn lengths(shape: &[usize]) -> Outcome<Vec<i32>> {
    shape.iter().copied().map(narrow).collect()
}

fn narrow(length: usize) -> Outcome<i32> {
    i32::try_from(length).map_err(|_| Failure::new(format!("an axis has {length} elements")))
}
