//! Compilations.

use crate::border::export;
use crate::device;
use crate::device::ANeuralNetworksDevice;
use crate::diagnostics;
use crate::handle;
use crate::model;
use crate::model::ANeuralNetworksModel;
use crate::outcome::{Outcome, bad_data, lock, null};
use crate::pointer::{In, Out};
use nnhal_hal::{BYTE_SIZE_OF_CACHE_TOKEN, CacheToken};
use nnhal_runtime::{Compilation, CompilationBuilder, Device, Model};
use std::ffi::{OsString, c_char, c_void};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

nnhal_c_boundary::opaque! {
    /// A compilation, being set up or finished.
    ANeuralNetworksCompilation: Held, 3;
}

/// A compilation as C holds it.
#[derive(Debug)]
pub struct Held {
    builder: Mutex<CompilationBuilder>,
    /// What observers are given.
    model: Model,
    devices: Vec<Device>,
    is_cached: AtomicBool,
}

impl Held {
    fn give(
        builder: CompilationBuilder,
        model: Model,
        devices: Vec<Device>,
    ) -> Outcome<*mut ANeuralNetworksCompilation> {
        let builder = Mutex::new(builder);
        handle::give(Arc::new(Self { builder, model, devices, is_cached: AtomicBool::new(false) }))
    }

    /// The compilation, if it is finished.
    pub(crate) fn finished(&self) -> Outcome<Compilation> {
        lock(&self.builder)?.compilation().cloned()
    }

    pub(crate) fn is_cached(&self) -> bool {
        self.is_cached.load(Ordering::Relaxed)
    }

    /// Changes what can be changed before it is finished.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&mut CompilationBuilder) -> Outcome,
    ) -> Outcome {
        change(&mut *lock(&self.builder)?)
    }

    /// Sets where its result is kept.
    pub(crate) fn cache(&self, change: impl FnOnce(&mut CompilationBuilder) -> Outcome) -> Outcome {
        self.change(change)?;
        self.is_cached.store(true, Ordering::Relaxed);
        Ok(())
    }
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
        let model = model::finished(&model)?;
        let builder = CompilationBuilder::new(&model);
        let devices = model.devices().list().to_vec();
        compilation.write(Held::give(builder, model, devices)?);
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
        let model = model::finished(&model)?;
        let mut builder = CompilationBuilder::for_devices(&model, &devices)?;
        builder.set_name_count(count as usize)?;
        compilation.write(Held::give(builder, model, devices)?);
        Ok(())
    }

    /// Frees it. Objects made from it stay valid.
    fn ANeuralNetworksCompilation_free(compilation: *mut ANeuralNetworksCompilation) -> (), (); {
        handle::free(compilation, "ANeuralNetworksCompilation_free", "compilation");
    }

    /// What it is to be good at.
    fn ANeuralNetworksCompilation_setPreference(
        compilation: *mut ANeuralNetworksCompilation,
        preference: i32,
    ) {
        handle::get(compilation, "compilation")?.change(|it| it.set_preference(preference))
    }

    /// Where its result is kept.
    fn ANeuralNetworksCompilation_setCaching(
        compilation: *mut ANeuralNetworksCompilation,
        folder: In<c_char>,
        name: In<u8>,
    ) {
        let compilation = handle::get(compilation, "compilation")?;
        let folder = PathBuf::from(OsString::from_vec(folder.zero_terminated("cacheDir")?));
        let token = token(name)?;
        compilation.cache(|it| it.set_caching(&folder, &token))
    }

    /// Rank of its executions.
    fn ANeuralNetworksCompilation_setPriority(
        compilation: *mut ANeuralNetworksCompilation,
        priority: i32,
    ) {
        handle::get(compilation, "compilation")?.change(|it| it.set_priority(priority))
    }

    /// How long finishing may take.
    fn ANeuralNetworksCompilation_setTimeout(
        compilation: *mut ANeuralNetworksCompilation,
        nanoseconds: u64,
    ) {
        handle::get(compilation, "compilation")?.change(|it| it.set_timeout(nanoseconds))
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
        compilation.change(|it| it.add_extension_attribute(&name, number, &data))
    }

    /// Compiles.
    fn ANeuralNetworksCompilation_finish(compilation: *mut ANeuralNetworksCompilation) {
        let compilation = handle::get(compilation, "compilation")?;
        let began = diagnostics::now();
        let result = compilation.change(|it| it.finish().map(drop));
        if let Some(began) = began {
            let (model, devices) = (&compilation.model, &compilation.devices);
            let (is_cached, finished) = (compilation.is_cached(), compilation.finished().ok());
            diagnostics::compiled(began, model, devices, is_cached, finished.as_ref(), &result);
        }
        result
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
    place.write(preference(&compilation.finished()?, index)?);
    Ok(())
}

/// Name and value of an extension's attribute. A value of 0 bytes needs no place.
pub(crate) fn attribute(
    extension: In<c_char>,
    data: In<c_void>,
    length: usize,
) -> Outcome<(String, Vec<u8>)> {
    let name = extension.text("extensionName")?;
    if data.is_null() && length > 0 {
        return Err(null("data"));
    }
    Ok((name, data.bytes().copy(length, "data")?))
}
