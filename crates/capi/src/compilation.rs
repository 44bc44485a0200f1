//! Compilations.

use crate::abi::{ANeuralNetworksCompilation, ANeuralNetworksDevice, ANeuralNetworksModel};
use crate::border::export;
use crate::device;
use crate::handle;
use crate::model;
use crate::outcome::{Outcome, bad_data, lock, null};
use crate::pointer::{In, Out};
use hal::{BYTE_SIZE_OF_CACHE_TOKEN, CacheToken};
use runtime::{Compilation, CompilationBuilder};
use std::ffi::{OsString, c_char, c_void};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// The compilation, if it is finished.
pub(crate) fn finished(
    compilation: *const ANeuralNetworksCompilation,
    argument: &str,
) -> Outcome<Compilation> {
    lock(&*handle::get(compilation, argument)?)?.compilation().cloned()
}

/// A token that C passes.
pub(crate) fn token(token: In<u8>) -> Outcome<CacheToken> {
    let bytes = token.copy(BYTE_SIZE_OF_CACHE_TOKEN, "token")?;
    bytes.try_into().map_err(|_| bad_data("the token has another length"))
}

export! {
    /// A compilation of a model for all devices.
    fn ANeuralNetworksCompilation_create(
        model: *mut ANeuralNetworksModel,
        compilation: Out<*mut ANeuralNetworksCompilation>,
    ) {
        compilation.write(std::ptr::null_mut());
        let model = handle::get(model, "model")?;
        compilation.check("compilation")?;
        let builder = CompilationBuilder::new(&model::finished(&model)?);
        compilation.write(handle::give(Arc::new(Mutex::new(builder)))?);
        Ok(())
    }

    /// A compilation of a model for the devices of a list.
    fn ANeuralNetworksCompilation_createForDevices(
        model: *mut ANeuralNetworksModel,
        devices: In<*const ANeuralNetworksDevice>,
        count: u32,
        compilation: Out<*mut ANeuralNetworksCompilation>,
    ) {
        compilation.write(std::ptr::null_mut());
        let model = handle::get(model, "model")?;
        compilation.check("compilation")?;
        let devices = device::list(devices, count)?;
        let builder = CompilationBuilder::for_devices(&model::finished(&model)?, &devices)?;
        compilation.write(handle::give(Arc::new(Mutex::new(builder)))?);
        Ok(())
    }

    /// Frees it. What was made of it lives on.
    fn ANeuralNetworksCompilation_free(compilation: *mut ANeuralNetworksCompilation) -> (), (); {
        handle::free(compilation, "ANeuralNetworksCompilation_free", "compilation");
    }

    /// What it is to be good at.
    fn ANeuralNetworksCompilation_setPreference(
        compilation: *mut ANeuralNetworksCompilation,
        preference: i32,
    ) {
        lock(&*handle::get(compilation, "compilation")?)?.set_preference(preference)
    }

    /// Where its result is kept.
    fn ANeuralNetworksCompilation_setCaching(
        compilation: *mut ANeuralNetworksCompilation,
        folder: In<c_char>,
        name: In<u8>,
    ) {
        let compilation = handle::get(compilation, "compilation")?;
        let folder = PathBuf::from(OsString::from_vec(folder.zero_terminated("cacheDir")?));
        lock(&compilation)?.set_caching(&folder, &token(name)?)
    }

    /// Rank of its executions.
    fn ANeuralNetworksCompilation_setPriority(
        compilation: *mut ANeuralNetworksCompilation,
        priority: i32,
    ) {
        lock(&*handle::get(compilation, "compilation")?)?.set_priority(priority)
    }

    /// How long finishing may take.
    fn ANeuralNetworksCompilation_setTimeout(
        compilation: *mut ANeuralNetworksCompilation,
        nanoseconds: u64,
    ) {
        lock(&*handle::get(compilation, "compilation")?)?.set_timeout(nanoseconds)
    }

    /// An attribute of an extension.
    fn ANeuralNetworksCompilation_addExtensionAttribute(
        compilation: *mut ANeuralNetworksCompilation,
        extension: In<c_char>,
        number: u16,
        data: In<c_void>,
        length: usize,
    ) {
        let compilation = handle::get(compilation, "compilation")?;
        let (name, data) = attribute(extension, data, length)?;
        lock(&compilation)?.add_extension_attribute(&name, number, &data)
    }

    /// Compiles.
    fn ANeuralNetworksCompilation_finish(compilation: *mut ANeuralNetworksCompilation) {
        let compilation = handle::get(compilation, "compilation")?;
        lock(&compilation)?.finish().map(drop)
    }

    /// Where an input's memory best begins.
    fn ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput(
        compilation: *const ANeuralNetworksCompilation,
        index: u32,
        alignment: Out<u32>,
    ) {
        prefer(compilation, index, alignment, Compilation::preferred_memory_alignment_for_input)
    }

    /// What an input's memory is best long.
    fn ANeuralNetworksCompilation_getPreferredMemoryPaddingForInput(
        compilation: *const ANeuralNetworksCompilation,
        index: u32,
        padding: Out<u32>,
    ) {
        prefer(compilation, index, padding, Compilation::preferred_memory_padding_for_input)
    }

    /// Where an output's memory best begins.
    fn ANeuralNetworksCompilation_getPreferredMemoryAlignmentForOutput(
        compilation: *const ANeuralNetworksCompilation,
        index: u32,
        alignment: Out<u32>,
    ) {
        prefer(compilation, index, alignment, Compilation::preferred_memory_alignment_for_output)
    }

    /// What an output's memory is best long.
    fn ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput(
        compilation: *const ANeuralNetworksCompilation,
        index: u32,
        padding: Out<u32>,
    ) {
        prefer(compilation, index, padding, Compilation::preferred_memory_padding_for_output)
    }
}

fn prefer(
    compilation: *const ANeuralNetworksCompilation,
    index: u32,
    place: Out<u32>,
    preference: impl Fn(&Compilation, u32) -> Outcome<u32>,
) -> Outcome {
    let compilation = handle::get(compilation, "compilation")?;
    place.check("the place for the answer")?;
    let compilation = lock(&compilation)?.compilation()?.clone();
    place.write(preference(&compilation, index)?);
    Ok(())
}

/// Name and value of an extension's attribute.
pub(crate) fn attribute(
    extension: In<c_char>,
    data: In<c_void>,
    length: usize,
) -> Outcome<(String, Vec<u8>)> {
    let name = extension.text("extensionName")?;
    if data.is_null() {
        return Err(null("data"));
    }
    Ok((name, data.bytes().copy(length, "data")?))
}
