//! Memory that is shared with devices, and memory of their own.

use crate::abi::AHardwareBuffer;
use crate::border::export;
use crate::compilation::{ANeuralNetworksCompilation, Held};
use crate::handle;
use crate::outcome::{Outcome, bad_data, lock, null};
use crate::pointer::{In, Out, duplicate};
use nnhal_runtime::{Compilation, Error, Memory, MemoryDescription, ResultCode};
use std::sync::{Arc, Mutex};

nnhal_c_boundary::opaque! {
    /// A memory.
    ANeuralNetworksMemory: Memory, 7;
    /// A description of memory, being set up or finished.
    ANeuralNetworksMemoryDesc: Mutex<MemoryDescription>, 8;
}

export! {
    /// A part of a file as memory.
    fn ANeuralNetworksMemory_createFromFd(
        size: usize,
        protection: i32,
        descriptor: i32,
        offset: usize,
        memory: Out<*mut ANeuralNetworksMemory>,
    ) {
        memory.write(std::ptr::null_mut());
        memory.check("memory")?;
        // It is no fault of the data if there is no such descriptor.
        let descriptor = duplicate(descriptor, "fd")
            .map_err(|error| Error::new(ResultCode::OpFailed, error.reason().to_owned()))?;
        let made = Memory::from_fd(descriptor, protection, offset, size)?;
        memory.write(handle::give(Arc::new(made))?);
        Ok(())
    }

    /// There are no hardware buffers here.
    fn ANeuralNetworksMemory_createFromAHardwareBuffer(
        buffer: In<AHardwareBuffer>,
        memory: Out<*mut ANeuralNetworksMemory>,
    ) {
        memory.write(std::ptr::null_mut());
        if buffer.is_null() {
            return Err(null("ahwb"));
        }
        memory.check("memory")?;
        let reason = "there are no hardware buffers outside of Android; memory that several \
                      processes share is made with ANeuralNetworksMemory_createFromFd";
        Err(Error::new(ResultCode::OpFailed, reason))
    }

    /// Frees it. Executions that use it keep it.
    fn ANeuralNetworksMemory_free(memory: *mut ANeuralNetworksMemory) -> (), (); {
        handle::free(memory, "ANeuralNetworksMemory_free", "memory");
    }

    /// Copies one memory into another.
    fn ANeuralNetworksMemory_copy(
        source: *const ANeuralNetworksMemory,
        destination: *const ANeuralNetworksMemory,
    ) {
        let source = handle::get(source, "src")?;
        Memory::copy(&source, &*handle::get(destination, "dst")?)
    }

    /// A description of memory without any use.
    fn ANeuralNetworksMemoryDesc_create(description: Out<*mut ANeuralNetworksMemoryDesc>) {
        description.check("desc")?;
        description.write(handle::give(Arc::new(Mutex::new(MemoryDescription::new())))?);
        Ok(())
    }

    /// Frees it. Memory made from it stays valid.
    fn ANeuralNetworksMemoryDesc_free(description: *mut ANeuralNetworksMemoryDesc) -> (), (); {
        handle::free(description, "ANeuralNetworksMemoryDesc_free", "desc");
    }

    /// The memory will be an input.
    fn ANeuralNetworksMemoryDesc_addInputRole(
        description: *mut ANeuralNetworksMemoryDesc,
        compilation: *const ANeuralNetworksCompilation,
        index: u32,
        frequency: f32,
    ) {
        let description = handle::get(description, "desc")?;
        let compilation = handle::get(compilation, "compilation")?;
        let mut description = lock(&description)?;
        description.expect_unfinished()?;
        description.add_input_role(&of_role(&compilation)?, index, frequency)
    }

    /// The memory will be an output.
    fn ANeuralNetworksMemoryDesc_addOutputRole(
        description: *mut ANeuralNetworksMemoryDesc,
        compilation: *const ANeuralNetworksCompilation,
        index: u32,
        frequency: f32,
    ) {
        let description = handle::get(description, "desc")?;
        let compilation = handle::get(compilation, "compilation")?;
        let mut description = lock(&description)?;
        description.expect_unfinished()?;
        description.add_output_role(&of_role(&compilation)?, index, frequency)
    }

    /// Its dimensions, where models leave them open.
    fn ANeuralNetworksMemoryDesc_setDimensions(
        description: *mut ANeuralNetworksMemoryDesc,
        rank: u32,
        dimensions: In<u32>,
    ) {
        let description = handle::get(description, "desc")?;
        let dimensions = dimensions.copy(rank as usize, "dimensions")?;
        lock(&description)?.set_dimensions(&dimensions)
    }

    /// Finishes the description.
    fn ANeuralNetworksMemoryDesc_finish(description: *mut ANeuralNetworksMemoryDesc) {
        lock(&*handle::get(description, "desc")?)?.finish()
    }

    /// Memory as described.
    fn ANeuralNetworksMemory_createFromDesc(
        description: *const ANeuralNetworksMemoryDesc,
        memory: Out<*mut ANeuralNetworksMemory>,
    ) {
        memory.write(std::ptr::null_mut());
        let description = handle::get(description, "desc")?;
        memory.check("memory")?;
        let made = lock(&description)?.allocate()?;
        memory.write(handle::give(Arc::new(made))?);
        Ok(())
    }
}

/// The compilation of a role. One that is not finished is a wrong argument here, not a wrong state: the description's is
/// meant by that.
fn of_role(compilation: &Held) -> Outcome<Compilation> {
    compilation.finished().map_err(|error| bad_data(error.reason()))
}
