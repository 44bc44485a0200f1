//! The interpreter's side, through the pointers that it gives: everything is copied out of its structures, or
//! lent for as long as a call lasts.
//!
//! The interpreter calls a delegate from one thread at a time for each subgraph, and its structures stay where
//! they are until the call changes the graph. So nothing of what a [`Host`] reads is kept as a pointer,
//! except where constants are: they belong to the model, which outlives every kernel.

#![allow(unsafe_code)]

use crate::abi;
use crate::error::{Error, Result, host};
use crate::profiler::{Profiler, Recognized};
use nnhal::hal::Memory;
use nnhal::hal::memory::{Loan, Protection};
use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Elements that an array may have; the longest in real models are execution plans.
const MOST_ELEMENTS: usize = 1 << 24;

/// Fewer bytes of an output are copied: whether they overlap others' is not worth finding out.
const LEAST_EXCLUSIVE: usize = 64 << 10;

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn free(pointer: *mut c_void);
}

/// An interpreter's subgraph, during one call.
pub(crate) struct Host<'c> {
    context: NonNull<abi::Context>,
    /// Whether constants are copied, and not used where they are.
    copies: Cell<bool>,
    call: PhantomData<&'c mut abi::Context>,
}

/// A tensor of the interpreter, named by its index.
#[derive(Debug, Clone)]
pub(crate) struct TensorFacts {
    pub(crate) kind: c_int,
    pub(crate) name: String,
    pub(crate) shape: Vec<i32>,
    /// The shape with -1 where the model leaves a length open; empty if it does not say.
    pub(crate) signature: Vec<i32>,
    pub(crate) quantization: TensorScale,
    pub(crate) sparsity: Option<Sparse>,
    pub(crate) is_variable: bool,
    pub(crate) is_constant: bool,
    pub(crate) is_dynamic: bool,
    pub(crate) bytes: usize,
}

/// What stored integers stand for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TensorScale {
    None,
    Affine {
        scales: Vec<f32>,
        zero_points: Vec<i32>,
        dimension: i32,
    },
    /// By blocks, or in a way that this program does not know.
    Other(c_int),
}

/// How a sparse constant is stored.
#[derive(Debug, Clone)]
pub(crate) struct Sparse {
    pub(crate) traversal_order: Vec<i32>,
    pub(crate) block_map: Vec<i32>,
    pub(crate) dimensions: Vec<SparseDimension>,
}

#[derive(Debug, Clone)]
pub(crate) struct SparseDimension {
    pub(crate) is_dense: bool,
    pub(crate) dense_size: i32,
    pub(crate) segments: Vec<i32>,
    pub(crate) indices: Vec<i32>,
}

/// A node of the interpreter.
pub(crate) struct NodeFacts<'c> {
    pub(crate) inputs: Vec<i32>,
    pub(crate) outputs: Vec<i32>,
    pub(crate) intermediates: Vec<i32>,
    pub(crate) builtin_code: i32,
    pub(crate) version: i32,
    pub(crate) custom_name: Option<String>,
    pub(crate) custom_options: Vec<u8>,
    pub(crate) is_delegated: bool,
    pub(crate) params: Params<'c>,
}

/// An operator's `builtin_data`.
#[derive(Clone, Copy)]
pub(crate) struct Params<'c> {
    data: *const c_void,
    node: PhantomData<&'c ()>,
}

/// A structure of `builtin_op_data.h`.
///
/// # Safety
/// The type is `repr(C)`, any bytes are a value of it, and every host gives the operators that it is read for
/// at least this number of bytes.
pub(crate) unsafe trait HostStructure: Copy {}

impl Params<'_> {
    /// Whether the operator has no structure.
    pub(crate) fn is_null(&self) -> bool {
        self.data.is_null()
    }

    /// The structure; `None` if the operator has none.
    pub(crate) fn read<T: HostStructure>(&self) -> Option<T> {
        let data = NonNull::new(self.data.cast_mut())?.cast::<T>();
        // SAFETY: the host's parser allocated the structure of this operator, which `T` is or begins like;
        // it exists as long as the node.
        Some(unsafe { data.read_unaligned() })
    }

    /// Floats behind a pointer of such a structure.
    pub(crate) fn floats(&self, first: *const f32, count: c_int) -> Option<Vec<f32>> {
        let count = usize::try_from(count).ok().filter(|count| *count <= MOST_ELEMENTS)?;
        if first.is_null() {
            return (count == 0).then(Vec::new);
        }
        // SAFETY: the host says that there are `count`, in the model's memory.
        Some((0..count).map(|at| unsafe { first.add(at).read_unaligned() }).collect())
    }
}

/// The elements of an array; none where there is no array.
///
/// # Safety
/// `array` is null, or leads to an array of the host whose elements are `T`.
unsafe fn elements<T: Copy>(array: *const abi::Array) -> Vec<T> {
    let Some(array) = NonNull::new(array.cast_mut()) else { return Vec::new() };
    // SAFETY: it is an array of the host.
    let size = unsafe { (*array.as_ptr()).size };
    let count = usize::try_from(size).unwrap_or(0).min(MOST_ELEMENTS);
    // SAFETY: behind the length there are `count` elements, 4 bytes each and so aligned.
    unsafe {
        let first = array.as_ptr().cast::<u8>().add(size_of::<c_int>()).cast::<T>();
        (0..count).map(|at| first.add(at).read_unaligned()).collect()
    }
}

/// The text that a pointer leads to.
///
/// # Safety
/// `text` is null, or leads to a string that ends.
unsafe fn text(text: *const c_char) -> Option<String> {
    // SAFETY: as the caller says.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// An array that the host takes over and frees, or that is freed here.
struct OwnArray(NonNull<abi::Array>);

impl OwnArray {
    fn new(elements: &[i32]) -> Result<Self> {
        let size = c_int::try_from(elements.len()).map_err(|_| host("has no room for an array"))?;
        // SAFETY: `malloc` may be asked for any number of bytes. It is the host's own, so that it may free them.
        let array = unsafe { malloc(size_of::<c_int>() * (elements.len() + 1)) };
        let array = NonNull::new(array.cast::<c_int>()).ok_or_else(|| host("is out of memory"))?;
        // SAFETY: there is room for the length and all elements; `malloc` aligns for any type.
        unsafe {
            array.write(size);
            std::ptr::copy_nonoverlapping(elements.as_ptr(), array.as_ptr().add(1), elements.len());
        }
        Ok(Self(array.cast()))
    }

    fn given_away(self) -> *mut abi::Array {
        let array = self.0.as_ptr();
        std::mem::forget(self);
        array
    }
}

impl Drop for OwnArray {
    fn drop(&mut self) {
        // SAFETY: it came from `malloc`, and no one else has it.
        unsafe { free(self.0.as_ptr().cast()) };
    }
}

impl Host<'_> {
    /// # Safety
    /// `context` is null, or the context of a host that is calling, and stays so while the value exists.
    pub(crate) unsafe fn new(context: *mut abi::Context) -> Option<Self> {
        let copies = Cell::new(false);
        Some(Self { context: NonNull::new(context)?, copies, call: PhantomData })
    }

    /// From now on constants are copied where `copies`: for a device in another process.
    pub(crate) fn copy_constants(&self, copies: bool) {
        self.copies.set(copies);
    }

    /// Whether constants are copied.
    pub(crate) fn copies(&self) -> bool {
        self.copies.get()
    }

    fn raw(&self) -> &abi::Context {
        // SAFETY: see `new`; only the host changes it, when it is called.
        unsafe { self.context.as_ref() }
    }

    /// Another subgraph, until what is given goes: hosts count how often they show it, so that one which is shown already
    /// stays so. Only while the host prepares a delegate.
    ///
    /// # Errors
    /// [`Error::Host`]: there is none; [`Error::Node`]: it is this one.
    pub(crate) fn subgraph(&self, index: i32) -> Result<Subgraph<'_>> {
        let (acquire, release) =
            (self.raw().acquire_subgraph_context, self.raw().release_subgraph_context);
        let missing = || host("shows no subgraphs");
        let (acquire, release) = (acquire.ok_or_else(missing)?, release.ok_or_else(missing)?);
        let mut acquired = std::ptr::null_mut();
        // SAFETY: the context's own function; the host checks the index, and writes the pointer.
        let status = unsafe { acquire(self.context.as_ptr(), index, &raw mut acquired) };
        // SAFETY: the host's context of that subgraph, which exists as long as the interpreter.
        let host = unsafe { Self::new(acquired) }.filter(|_| status == abi::OK);
        let host = host.ok_or_else(|| host_error(index, status))?;
        let subgraph = Subgraph { around: self, index, host, release };
        if subgraph.address() == self.address() {
            return Err(Error::Node(format!("subgraph {index} is its own")));
        }
        Ok(subgraph)
    }

    /// Tells this subgraph from others.
    pub(crate) fn address(&self) -> usize {
        self.context.as_ptr().addr()
    }

    /// How many threads the interpreter was made for, if it says.
    pub(crate) fn recommended_threads(&self) -> Option<usize> {
        usize::try_from(self.raw().recommended_num_threads).ok().filter(|threads| *threads > 0)
    }

    /// Whether the program allows floats to be computed with 16 bits.
    pub(crate) fn allows_fp16(&self) -> bool {
        self.raw().allow_fp32_relax_to_fp16 != 0
    }

    /// The interpreter's profiler, if it has one of a kind that is known.
    pub(crate) fn profiler(&self, recognized: &mut Recognized) -> Option<Profiler<'_>> {
        // SAFETY: what the context has there is null or the host's `tflite::Profiler`, for as long as it calls.
        unsafe { Profiler::new(self.raw().profiler, recognized) }
    }

    /// Shows a sentence as the interpreter shows its own errors.
    pub(crate) fn report(&self, sentence: &str) {
        let Some(report) = self.raw().report_error else { return };
        let sentence = CString::new(sentence.replace('\0', " ")).unwrap_or_default();
        // SAFETY: the format takes one string, which ends, and is there until the call returns.
        unsafe { report(self.context.as_ptr(), c"%s".as_ptr(), sentence.as_ptr()) };
    }

    /// The nodes in the order in which they run.
    pub(crate) fn execution_plan(&self) -> Result<Vec<i32>> {
        let get = self.raw().get_execution_plan.ok_or_else(|| host("shows no execution plan"))?;
        let mut plan = std::ptr::null();
        // SAFETY: the context's own function; `plan` is where it puts the array.
        let status = unsafe { get(self.context.as_ptr(), &raw mut plan) };
        if status != abi::OK {
            return Err(host(format!("shows no execution plan: status {status}")));
        }
        // SAFETY: the host's array, which is valid until the graph is changed.
        Ok(unsafe { elements(plan) })
    }

    /// A node of the execution plan.
    pub(crate) fn node(&self, index: i32) -> Result<NodeFacts<'_>> {
        let get = self.raw().get_node_and_registration;
        let get = get.ok_or_else(|| host("shows no nodes"))?;
        let (mut node, mut registration) = (std::ptr::null(), std::ptr::null());
        // SAFETY: the context's own function; the host checks the index, and writes both pointers.
        let status =
            unsafe { get(self.context.as_ptr(), index, &raw mut node, &raw mut registration) };
        if status != abi::OK || node.is_null() || registration.is_null() {
            return Err(host(format!("has no node {index}: status {status}")));
        }
        // SAFETY: the host's structures, valid until the graph is changed. They have the fields that are
        // read here in every version.
        unsafe {
            let (node, registration) = (&*node, &*registration);
            let custom = node.custom_initial_data;
            let length = usize::try_from(node.custom_initial_data_size).unwrap_or(0);
            Ok(NodeFacts {
                inputs: elements(node.inputs),
                outputs: elements(node.outputs),
                intermediates: elements(node.intermediates),
                builtin_code: registration.builtin_code,
                version: registration.version,
                custom_name: text(registration.custom_name),
                custom_options: if custom.is_null() {
                    Vec::new()
                } else {
                    std::slice::from_raw_parts(custom, length).to_vec()
                },
                is_delegated: !node.delegate.is_null(),
                params: Params { data: node.builtin_data, node: PhantomData },
            })
        }
    }

    fn raw_tensor(&self, index: i32) -> Result<NonNull<abi::Tensor>> {
        let count = self.raw().tensors_size;
        let at = usize::try_from(index).ok().filter(|at| *at < count);
        let tensors = NonNull::new(self.raw().tensors);
        match (at, tensors) {
            // SAFETY: the host has `count` tensors behind each other.
            (Some(at), Some(tensors)) => Ok(unsafe { tensors.add(at) }),
            _ => Err(host(format!("has no tensor {index}, only {count}"))),
        }
    }

    /// What a tensor is.
    pub(crate) fn tensor(&self, index: i32) -> Result<TensorFacts> {
        let tensor = self.raw_tensor(index)?;
        // SAFETY: a tensor of the host, which only the host changes, when it is called; its pointers are null or
        // lead to arrays and structures of the kinds that the C API says.
        unsafe {
            let tensor = tensor.as_ref();
            let is_constant = tensor.allocation_type == abi::allocation::READ_ONLY;
            Ok(TensorFacts {
                kind: tensor.kind,
                // Its own is wherever the file says, which no host checks.
                name: format!("tensor {index}"),
                shape: elements(tensor.dims),
                signature: elements(tensor.dims_signature),
                quantization: quantization(tensor),
                sparsity: sparsity(tensor.sparsity),
                is_variable: tensor.is_variable != 0,
                is_constant,
                is_dynamic: tensor.allocation_type == abi::allocation::DYNAMIC,
                bytes: tensor.bytes,
            })
        }
    }

    /// The lengths that a tensor has now.
    pub(crate) fn shape(&self, index: i32) -> Result<Vec<i32>> {
        let tensor = self.raw_tensor(index)?;
        // SAFETY: as in `tensor`.
        Ok(unsafe { elements(tensor.as_ref().dims) })
    }

    /// Lends the bytes of a tensor, until the loan is dropped: at the end of this call, or of a constant when the
    /// last kernel that uses it goes, which is before the model goes. `None` for a tensor without elements.
    pub(crate) fn lend(
        &self,
        index: i32,
        protection: Protection,
    ) -> Result<Option<(Loan, Memory)>> {
        let Some((data, bytes)) = self.bytes(index)? else { return Ok(None) };
        // SAFETY: the tensor has `bytes` bytes there. What is not constant is lent during one call of the host, which
        // leaves its tensors alone meanwhile; a constant is never changed, and stays until the kernels are
        // gone. Only raw pointers to the bytes exist in this library.
        Ok(Some(unsafe { Loan::new(data, bytes, protection) }?))
    }

    /// As [`Self::lend`], of what is written during this call of the host: if it is large, so that it can be written in place, but only if
    /// its bytes are none of the others' that are lent meanwhile: programs may give several tensors one memory.
    pub(crate) fn lend_output(
        &self,
        index: i32,
        mut others: impl Iterator<Item = i32>,
    ) -> Result<Option<(Loan, Memory)>> {
        let Some((data, bytes)) = self.bytes(index)? else { return Ok(None) };
        let first = data.addr().get();
        let overlaps = |other| {
            // What has no memory yet overlaps nothing.
            self.bytes(other).ok().flatten().is_some_and(|(other, length)| {
                let other = other.addr().get();
                first < other.saturating_add(length) && other < first.saturating_add(bytes)
            })
        };
        if bytes < LEAST_EXCLUSIVE || others.any(overlaps) {
            return self.lend(index, Protection::READ_WRITE);
        }
        // SAFETY: the tensor has `bytes` bytes there, which the host has allocated and leaves alone until the call ends, as the loan
        // does. Others are not lent meanwhile, as has been checked, and only raw pointers to them exist in this library.
        Ok(Some(unsafe { Loan::exclusive(data, bytes) }?))
    }

    /// Where the bytes of a tensor are, and how many; `None` if it has no elements.
    fn bytes(&self, index: i32) -> Result<Option<(NonNull<u8>, usize)>> {
        let tensor = self.raw_tensor(index)?;
        // SAFETY: as in `tensor`.
        let (data, bytes) = unsafe { (tensor.as_ref().data, tensor.as_ref().bytes) };
        if bytes == 0 {
            return Ok(None);
        }
        let missing = || Error::Tensor { tensor: index, what: "has no memory".into() };
        Ok(Some((NonNull::new(data).ok_or_else(missing)?, bytes)))
    }

    /// Gives a tensor other lengths.
    pub(crate) fn resize(&self, index: i32, shape: &[i32]) -> Result<()> {
        let tensor = self.raw_tensor(index)?;
        let resize = self.raw().resize_tensor.ok_or_else(|| host("does not resize tensors"))?;
        let array = OwnArray::new(shape)?.given_away();
        // SAFETY: the context's own function and tensor; it takes the array over.
        let status = unsafe { resize(self.context.as_ptr(), tensor.as_ptr(), array) };
        if status != abi::OK {
            return Err(host(format!("does not give tensor {index} shape {shape:?}")));
        }
        Ok(())
    }

    /// Says that a tensor's lengths are known only once it is computed.
    pub(crate) fn make_dynamic(&self, index: i32) -> Result<()> {
        let mut tensor = self.raw_tensor(index)?;
        // SAFETY: a tensor of the host, which is calling and does not look at it meanwhile. Memory that it had is
        // the arena's, so that there is nothing to free.
        let tensor = unsafe { tensor.as_mut() };
        if tensor.allocation_type != abi::allocation::DYNAMIC {
            tensor.data = std::ptr::null_mut();
            tensor.allocation_type = abi::allocation::DYNAMIC;
        }
        Ok(())
    }

    /// Which partitions the host would make of these nodes.
    pub(crate) fn partitions(&self, nodes: &[i32]) -> Result<Vec<Partition>> {
        let preview = self.raw().preview_partitioning;
        let preview = preview.ok_or_else(|| host("does not preview partitions"))?;
        let array = OwnArray::new(nodes)?;
        let (mut first, mut count) = (std::ptr::null(), 0);
        // SAFETY: the context's own function; the array stays ours, and both others are written.
        let status = unsafe {
            preview(self.context.as_ptr(), array.0.as_ptr(), &raw mut first, &raw mut count)
        };
        let count = usize::try_from(count).unwrap_or(0);
        if status != abi::OK || (first.is_null() && count > 0) {
            return Err(host(format!("does not preview partitions: status {status}")));
        }
        // SAFETY: the host's own structures, `count` of them, valid until the next preview.
        Ok((0..count).map(|at| unsafe { Partition::of(first.add(at)) }).collect())
    }

    /// Hands nodes over to a delegate.
    pub(crate) fn replace(
        &self,
        nodes: &[i32],
        registration: abi::Registration,
        delegate: *mut abi::Delegate,
    ) -> Result<()> {
        let replace = self.raw().replace_node_subsets;
        let replace = replace.ok_or_else(|| host("does not replace nodes"))?;
        let array = OwnArray::new(nodes)?;
        // SAFETY: the context's own function, called from `Prepare` with the delegate that the host passed; the
        // host copies the array and the registration.
        let status =
            unsafe { replace(self.context.as_ptr(), registration, array.0.as_ptr(), delegate) };
        if status != abi::OK {
            return Err(host(format!("does not replace the nodes: status {status}")));
        }
        Ok(())
    }
}

fn host_error(index: i32, status: c_int) -> Error {
    host(format!("shows no subgraph {index}: status {status}"))
}

/// A subgraph that is shown to a delegate of another one.
pub(crate) struct Subgraph<'h> {
    around: &'h Host<'h>,
    index: i32,
    host: Host<'h>,
    release: unsafe extern "C" fn(*mut abi::Context, c_int) -> c_int,
}

impl<'h> std::ops::Deref for Subgraph<'h> {
    type Target = Host<'h>;

    fn deref(&self) -> &Host<'h> {
        &self.host
    }
}

impl Drop for Subgraph<'_> {
    fn drop(&mut self) {
        // SAFETY: the function of the context that has shown it.
        unsafe { (self.release)(self.around.context.as_ptr(), self.index) };
    }
}

/// Nodes that are computed together, and the tensors at their borders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Partition {
    pub(crate) nodes: Vec<i32>,
    pub(crate) inputs: Vec<i32>,
    pub(crate) outputs: Vec<i32>,
}

impl Partition {
    /// # Safety
    /// `params` is null or leads to parameters of a delegate that the host has made.
    pub(crate) unsafe fn of(params: *const abi::DelegateParams) -> Self {
        let Some(params) = NonNull::new(params.cast_mut()) else {
            return Self { nodes: Vec::new(), inputs: Vec::new(), outputs: Vec::new() };
        };
        // SAFETY: as the caller says.
        unsafe {
            let params = params.as_ref();
            Self {
                nodes: elements(params.nodes_to_replace),
                inputs: elements(params.input_tensors),
                outputs: elements(params.output_tensors),
            }
        }
    }
}

/// # Safety
/// A tensor of a host.
unsafe fn quantization(tensor: &abi::Tensor) -> TensorScale {
    match tensor.quantization.kind {
        0 if tensor.params.scale != 0.0 => TensorScale::Affine {
            scales: vec![tensor.params.scale],
            zero_points: vec![tensor.params.zero_point],
            dimension: 0,
        },
        0 => TensorScale::None,
        1 => {
            let params = tensor.quantization.params.cast::<abi::AffineQuantization>();
            let Some(params) = NonNull::new(params.cast_mut()) else { return TensorScale::None };
            // SAFETY: of this kind the host's parameters are such a structure.
            unsafe {
                let params = params.as_ref();
                TensorScale::Affine {
                    scales: elements(params.scale),
                    zero_points: elements(params.zero_point),
                    dimension: params.quantized_dimension,
                }
            }
        }
        other => TensorScale::Other(other),
    }
}

/// # Safety
/// Null, or of a tensor of a host.
unsafe fn sparsity(sparsity: *const abi::Sparsity) -> Option<Sparse> {
    let sparsity = NonNull::new(sparsity.cast_mut())?;
    // SAFETY: the host's structure, with `count` dimensions.
    unsafe {
        let sparsity = sparsity.as_ref();
        let count = usize::try_from(sparsity.dim_metadata_size).unwrap_or(0);
        let count = if sparsity.dim_metadata.is_null() { 0 } else { count };
        let dimension = |at: usize| {
            let metadata = &*sparsity.dim_metadata.add(at);
            SparseDimension {
                is_dense: metadata.format == 0,
                dense_size: metadata.dense_size,
                segments: elements(metadata.array_segments),
                indices: elements(metadata.array_indices),
            }
        };
        Some(Sparse {
            traversal_order: elements(sparsity.traversal_order),
            block_map: elements(sparsity.block_map),
            dimensions: (0..count).map(dimension).collect(),
        })
    }
}
