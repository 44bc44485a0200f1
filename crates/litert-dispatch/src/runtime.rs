//! [`Runtime`]: the functions of LiteRT that a dispatch library calls.
//!
//! Source: `litert/c/internal/litert_runtime_context.h` and `litert/vendors/c/litert_dispatch.h` of LiteRT 2.3.0.

#![allow(unsafe_code)]

use nnhal::hal::Memory;
use nnhal::hal::memory::{Loan, Protection};
use nnhal_litert_common::compiled::{Failure, Header, Outcome, Status};
use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};

/// Where functions are in the table, in bytes from its beginning.
mod place {
    pub(super) const CREATE_REQUIREMENTS: usize = 8;
    pub(super) const BUFFER_TYPE: usize = 184;
    pub(super) const BUFFER_SIZE: usize = 200;
    /// Bytes of the tensor that the buffer is for.
    pub(super) const PACKED_SIZE: usize = 208;
    pub(super) const BUFFER_OFFSET: usize = 216;
    pub(super) const LOCK: usize = 224;
    pub(super) const UNLOCK: usize = 232;
    pub(super) const HOST_MEMORY: usize = 240;
}

/// `kLiteRtTensorBufferTypeHostMemory`
const HOST_MEMORY: c_int = 1;

type CreateRequirements =
    unsafe extern "C" fn(c_int, *const c_int, usize, c_int, *const u32, *mut *mut c_void) -> c_int;
type GetSize = unsafe extern "C" fn(*mut c_void, *mut usize) -> c_int;
type Lock = unsafe extern "C" fn(*mut c_void, *mut *mut c_void, c_int) -> c_int;
type GetType = unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int;
type GetMemory = unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> c_int;
type Unlock = unsafe extern "C" fn(*mut c_void) -> c_int;

/// Byte code as LiteRT passes it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryBuffer {
    pub(crate) descriptor: c_int,
    pub(crate) base: *const c_void,
    pub(crate) offset: usize,
    pub(crate) size: usize,
    pub(crate) file_offset: usize,
}

const _: () = assert!(size_of::<MemoryBuffer>() == 40);

impl MemoryBuffer {
    /// The bytes as memory, until the loan ends.
    ///
    /// # Safety
    /// From `base` on there are at least `offset + size` bytes, which stay and do not change until the loan ends.
    pub(crate) unsafe fn lend(&self) -> Outcome<(Loan, Memory)> {
        let base = NonNull::new(self.base.cast_mut().cast::<u8>());
        let base = base.ok_or_else(|| Failure::null("the byte code"))?;
        let end = self.offset.checked_add(self.size).filter(|end| isize::try_from(*end).is_ok());
        if end.is_none() {
            let Self { offset, size, .. } = self;
            return Err(Failure::argument(format!(
                "byte code of {size} bytes from {offset} on is beyond all addresses"
            )));
        }
        // SAFETY: as the caller says.
        Ok(unsafe { Loan::new(base.add(self.offset), self.size, Protection::READ) }?)
    }
}

/// The functions of LiteRT.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Runtime(NonNull<u8>);

// SAFETY: a table that LiteRT never changes, as long as it is loaded; its functions take any thread.
unsafe impl Send for Runtime {}
// SAFETY: as above.
unsafe impl Sync for Runtime {}

/// A tensor buffer of LiteRT, which has registered it, and has said when it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Buffer(NonNull<c_void>);

// SAFETY: only passed back to LiteRT, by the thread that LiteRT is calling from.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    pub(crate) fn new(pointer: *mut c_void) -> Outcome<Self> {
        NonNull::new(pointer).map(Self).ok_or_else(|| Failure::null("the tensor buffer"))
    }
}

/// What a buffer is locked for, in LiteRT's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Access {
    Read = 0,
    Write = 1,
}

impl Runtime {
    /// # Errors
    /// It is null, or the table of another LiteRT.
    ///
    /// # Safety
    /// `table` is null or leads to a table that begins with a header and is there as long as the library.
    pub(crate) unsafe fn new(table: *const c_void) -> Outcome<Self> {
        let table = NonNull::new(table.cast_mut());
        let table = table.ok_or_else(|| Failure::null("the runtime context"))?;
        // SAFETY: as the caller says.
        let header = unsafe { table.cast::<Header>().read_unaligned() };
        let least = place::HOST_MEMORY + size_of::<usize>();
        if header.major != 1 || usize::from(header.size) < least {
            return Err(Failure::new(
                Status::UnsupportedRuntimeVersion,
                format!(
                    "LiteRT has a table of version {}.{} with {} bytes, expected version 1 with {least}",
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

    /// Asks LiteRT for host memory of this size for a tensor.
    pub(crate) fn requirements(&self, size: usize) -> Outcome<*mut c_void> {
        let mut made = ptr::null_mut();
        // SAFETY: one type, no strides, and where there is room for the answer.
        let status = unsafe {
            let create: CreateRequirements = self.function(place::CREATE_REQUIREMENTS)?;
            create(1, &HOST_MEMORY, size, 0, ptr::null(), &raw mut made)
        };
        checked("make requirements of a buffer", status)?;
        Ok(made)
    }

    /// Something about a buffer, in bytes.
    fn size(&self, place: usize, buffer: Buffer) -> Outcome<usize> {
        let mut size = 0;
        // SAFETY: a buffer of LiteRT, and where there is room for the answer.
        let status = unsafe {
            let get: GetSize = self.function(place)?;
            get(buffer.0.as_ptr(), &raw mut size)
        };
        checked("say how large a buffer is", status)?;
        Ok(size)
    }

    /// Locks a buffer, which must be for a tensor of `size` bytes.
    pub(crate) fn lock(&self, buffer: Buffer, size: usize, access: Access) -> Outcome<Locked> {
        // After an input was given another shape, buffers are for other tensors than those of the partition.
        let packed = self.size(place::PACKED_SIZE, buffer)?;
        if packed != size {
            return Err(Failure::argument(format!(
                "a buffer is for a tensor of {packed} bytes, the model was compiled for {size}"
            )));
        }
        let offset = self.size(place::BUFFER_OFFSET, buffer)?;
        let found = self.size(place::BUFFER_SIZE, buffer)?.saturating_sub(offset);
        if found < size {
            let sentence = format!("a buffer has {found} bytes, expected {size}");
            return Err(Failure::argument(sentence));
        }
        let (mut kind, mut address) = (0, ptr::null_mut());
        // SAFETY: a buffer of LiteRT, and where there is room for the answer.
        let status = unsafe {
            let get: GetType = self.function(place::BUFFER_TYPE)?;
            get(buffer.0.as_ptr(), &raw mut kind)
        };
        checked("say of which type a buffer is", status)?;
        // Host memory is not locked: LiteRT itself holds the lock of a buffer that its own operators use too, and its
        // kernel has waited for events before it calls.
        let is_host_memory = kind == HOST_MEMORY;
        // SAFETY: as above.
        let status = unsafe {
            if is_host_memory {
                let get: GetMemory = self.function(place::HOST_MEMORY)?;
                get(buffer.0.as_ptr(), &raw mut address)
            } else {
                let lock: Lock = self.function(place::LOCK)?;
                lock(buffer.0.as_ptr(), &raw mut address, access as c_int)
            }
        };
        checked("give the memory of a buffer", status)?;
        let to_unlock = (!is_host_memory).then_some((*self, buffer));
        let mut locked = Locked { to_unlock, lent: None };
        let first = NonNull::new(address.cast::<u8>());
        let first = first.ok_or_else(|| Failure::null("the memory of a locked buffer"))?;
        let protection = match access {
            Access::Read => Protection::READ,
            Access::Write => Protection::READ_WRITE,
        };
        if size > 0 {
            // SAFETY: the buffer has at least `size` bytes, which LiteRT leaves to this call while it invokes.
            locked.lent = Some(unsafe { Loan::new(first, size, protection) }?);
        }
        Ok(locked)
    }
}

/// A buffer whose memory is in use; if it is locked for that, it is unlocked when this goes.
pub(crate) struct Locked {
    /// What has been locked.
    to_unlock: Option<(Runtime, Buffer)>,
    lent: Option<(Loan, Memory)>,
}

impl Locked {
    /// `None`: it has no bytes.
    pub(crate) fn memory(&self) -> Option<&Memory> {
        self.lent.as_ref().map(|(_, memory)| memory)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // It is not read or written any more.
        self.lent = None;
        let Some((runtime, buffer)) = self.to_unlock else { return };
        // SAFETY: a buffer that was locked.
        unsafe {
            if let Ok(unlock) = runtime.function::<Unlock>(place::UNLOCK) {
                unlock(buffer.0.as_ptr());
            }
        }
    }
}

fn checked(what: &str, status: c_int) -> Outcome {
    if status == 0 {
        return Ok(());
    }
    Err(Failure::new(Status::RuntimeFailure, format!("LiteRT does not {what}: status {status}")))
}
