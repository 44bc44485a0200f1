//! The functions of a support library (`NnApiSLDriverImpl`), found by their place in its structure.
#![allow(unsafe_code)]

use nnhal_hal::{Error, ErrorStatus};
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::fmt;
use std::sync::Arc;

/// An object of the library.
type Object = *mut c_void;

/// `ANeuralNetworksOperandType`.
#[repr(C)]
struct OperandType {
    code: i32,
    dimension_count: u32,
    dimensions: *const u32,
    scale: f32,
    zero_point: i32,
}

/// `ANeuralNetworksSymmPerChannelQuantParams`.
#[repr(C)]
struct ChannelScales {
    channel_dim: u32,
    count: u32,
    scales: *const f32,
}

/// The oldest structure that there is: that of feature level 5.
const OLDEST: i64 = 31;

/// A library that is loaded.
pub(super) struct Library {
    /// The functions, behind the feature level.
    functions: *const *const c_void,
    /// Loaded as long as this exists.
    _library: libloading::Library,
}

// SAFETY: the structure is constant, and functions may be called by any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl fmt::Debug for Library {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Library").finish_non_exhaustive()
    }
}

/// Each function with its place in the structure, as the header has them.
macro_rules! functions {
    ($($name:ident = $place:literal ($($argument:ident: $Type:ty),*) $(-> $Result:ty)?;)*) => {
        impl Library {
            $(
                /// # Safety
                /// Arguments are what the header says of this function.
                unsafe fn $name(&self, $($argument: $Type),*) $(-> $Result)? {
                    type Function = unsafe extern "C" fn($($Type),*) $(-> $Result)?;
                    // SAFETY: the structure has a function of this type there.
                    let function: Function = unsafe {
                        let place: *const *const c_void = self.functions.add($place);
                        std::mem::transmute::<*const c_void, Function>(place.read())
                    };
                    // SAFETY: the caller's promise.
                    unsafe { function($($argument),*) }
                }
            )*
        }
    };
}

functions! {
    compilation_create = 2 (model: Object, devices: *const Object, count: u32, out: *mut Object) -> i32;
    compilation_finish = 3 (compilation: Object) -> i32;
    compilation_free = 4 (compilation: Object);
    device_feature_level = 14 (device: Object, out: *mut i64) -> i32;
    device_name = 15 (device: Object, out: *mut *const c_char) -> i32;
    device_type = 16 (device: Object, out: *mut i32) -> i32;
    device_version = 17 (device: Object, out: *mut *const c_char) -> i32;
    execution_compute = 24 (execution: Object) -> i32;
    execution_create = 25 (compilation: Object, out: *mut Object) -> i32;
    execution_free = 27 (execution: Object);
    output_dimensions = 29 (execution: Object, index: i32, out: *mut u32) -> i32;
    output_rank = 30 (execution: Object, index: i32, out: *mut u32) -> i32;
    set_input = 31 (execution: Object, index: i32, of: *const OperandType, bytes: *const c_void, length: usize) -> i32;
    set_loop_timeout = 33 (execution: Object, nanoseconds: u64) -> i32;
    set_output = 35 (execution: Object, index: i32, of: *const OperandType, bytes: *mut c_void, length: usize) -> i32;
    add_operand = 51 (model: Object, of: *const OperandType) -> i32;
    add_operation = 52 (model: Object, code: i32, inputs: u32, input: *const u32, outputs: u32, output: *const u32) -> i32;
    model_create = 53 (out: *mut Object) -> i32;
    model_finish = 54 (model: Object) -> i32;
    model_free = 55 (model: Object);
    supported_operations = 58 (model: Object, devices: *const Object, count: u32, out: *mut bool) -> i32;
    identify = 59 (model: Object, inputs: u32, input: *const u32, outputs: u32, output: *const u32) -> i32;
    relax = 60 (model: Object, is_relaxed: bool) -> i32;
    set_channel_scales = 62 (model: Object, index: i32, scales: *const ChannelScales) -> i32;
    set_value = 63 (model: Object, index: i32, bytes: *const c_void, length: usize) -> i32;
    set_value_from_model = 65 (model: Object, index: i32, value: Object) -> i32;
    get_device = 67 (index: u32, out: *mut Object) -> i32;
    device_count = 68 (out: *mut u32) -> i32;
}

/// A result code as an error of what was called.
pub(super) fn outcome(code: i32, what: &str) -> Result<(), Error> {
    let status = match code {
        0 => return Ok(()),
        3 | 4 => ErrorStatus::InvalidArgument,
        8 => ErrorStatus::OutputInsufficientSize,
        9 | 14 => ErrorStatus::DeviceUnavailable,
        10 => ErrorStatus::MissedDeadlineTransient,
        11 => ErrorStatus::MissedDeadlinePersistent,
        12 => ErrorStatus::ResourceExhaustedTransient,
        13 => ErrorStatus::ResourceExhaustedPersistent,
        _ => ErrorStatus::GeneralFailure,
    };
    Err(Error::new(status, Refused { code, what: what.to_owned() }))
}

/// What a function of the library answered.
#[derive(Debug, Clone)]
struct Refused {
    code: i32,
    what: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} answered with code {}", self.what, self.code)
    }
}

impl std::error::Error for Refused {}

/// An index as the functions take it.
fn index(of: usize) -> i32 {
    i32::try_from(of).unwrap_or(i32::MAX)
}

fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

/// A type for the functions, as long as `dimensions` are there.
fn operand_type(code: i32, dimensions: &[u32], scale: f32, zero_point: i32) -> OperandType {
    let (dimension_count, pointer) = (count(dimensions.len()), dimensions.as_ptr());
    let dimensions = if dimensions.is_empty() { std::ptr::null() } else { pointer };
    OperandType { code, dimension_count, dimensions, scale, zero_point }
}

/// What the loader says: its own sentence names the file, or what the file needs and does not find.
fn why(error: &libloading::Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

impl Library {
    /// Loads a library, and with it whatever it does when it is loaded.
    ///
    /// # Errors
    /// A sentence that says why it cannot be used.
    pub(super) fn load(path: &OsStr) -> Result<Arc<Self>, String> {
        const ENTRY: &[u8] = b"ANeuralNetworks_getSLDriverImpl\0";
        // SAFETY: that its initializers do no harm is what whoever names the file says.
        let library = unsafe { libloading::Library::new(path) }.map_err(|error| why(&error))?;
        // SAFETY: the function of that name has this type.
        let entry = unsafe { library.get::<unsafe extern "C" fn() -> *const i64>(ENTRY) };
        let entry = entry.map_err(|error| {
            format!("it is no support library: it has no ANeuralNetworks_getSLDriverImpl ({error})")
        })?;
        // SAFETY: it takes nothing, and gives a structure that begins with its feature level.
        let structure = unsafe { entry() };
        if structure.is_null() {
            return Err("ANeuralNetworks_getSLDriverImpl gives nothing".to_owned());
        }
        // SAFETY: as above; it is there as long as the library is.
        let level = unsafe { structure.read() };
        if level < OLDEST {
            return Err(format!("it is of feature level {level}, expected 5 or newer"));
        }
        // SAFETY: functions follow.
        let functions = unsafe { structure.add(1) }.cast();
        Ok(Arc::new(Self { functions, _library: library }))
    }

    /// All devices.
    pub(super) fn devices(self: &Arc<Self>) -> Result<Vec<RawDevice>, Error> {
        let mut number = 0;
        // SAFETY: the place is there.
        outcome(unsafe { self.device_count(&raw mut number) }, "getDeviceCount")?;
        let device = |index| {
            let mut object = std::ptr::null_mut();
            // SAFETY: as above.
            outcome(unsafe { self.get_device(index, &raw mut object) }, "getDevice")?;
            Ok(RawDevice { library: Arc::clone(self), object })
        };
        (0..number).map(device).collect()
    }
}

/// A device of a library, which exists as long as that does.
#[derive(Debug, Clone)]
pub(super) struct RawDevice {
    library: Arc<Library>,
    object: Object,
}

// SAFETY: devices are constant.
unsafe impl Send for RawDevice {}
// SAFETY: as above.
unsafe impl Sync for RawDevice {}

impl RawDevice {
    pub(super) fn library(&self) -> &Arc<Library> {
        &self.library
    }

    pub(super) fn name(&self) -> Result<String, Error> {
        // SAFETY: the device is one of the library.
        self.text("getName", |out| unsafe { self.library.device_name(self.object, out) })
    }

    pub(super) fn version(&self) -> Result<String, Error> {
        // SAFETY: as above.
        self.text("getVersion", |out| unsafe { self.library.device_version(self.object, out) })
    }

    fn text(
        &self,
        what: &str,
        get: impl FnOnce(*mut *const c_char) -> i32,
    ) -> Result<String, Error> {
        let mut text = std::ptr::null();
        outcome(get(&raw mut text), what)?;
        if text.is_null() {
            return Err(Error::failure(format!("{what} gives nothing")));
        }
        // SAFETY: the header says that it is a text that ends with 0 and exists as long as the library.
        Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }

    pub(super) fn kind(&self) -> Result<i32, Error> {
        let mut kind = 0;
        // SAFETY: the device is one of the library.
        outcome(unsafe { self.library.device_type(self.object, &raw mut kind) }, "getType")?;
        Ok(kind)
    }

    pub(super) fn feature_level(&self) -> Result<i64, Error> {
        let mut level = 0;
        // SAFETY: as above.
        let code = unsafe { self.library.device_feature_level(self.object, &raw mut level) };
        outcome(code, "getFeatureLevel")?;
        Ok(level)
    }

    /// By operation of a finished model.
    pub(super) fn supports(&self, model: &RawModel, operations: usize) -> Result<Vec<bool>, Error> {
        let mut supported = vec![false; operations];
        let (devices, out) = ([self.object], supported.as_mut_ptr());
        // SAFETY: the model has this number of operations.
        let code =
            unsafe { self.library.supported_operations(model.object, devices.as_ptr(), 1, out) };
        outcome(code, "getSupportedOperationsForDevices")?;
        Ok(supported)
    }

    pub(super) fn compile(&self, model: Arc<RawModel>) -> Result<RawCompilation, Error> {
        let mut object = std::ptr::null_mut();
        let devices = [self.object];
        // SAFETY: the model is finished.
        let code = unsafe {
            self.library.compilation_create(model.object, devices.as_ptr(), 1, &raw mut object)
        };
        outcome(code, "createForDevices")?;
        let compilation =
            RawCompilation { object, library: Arc::clone(&self.library), _model: model };
        // SAFETY: it was just created.
        outcome(unsafe { self.library.compilation_finish(object) }, "Compilation_finish")?;
        Ok(compilation)
    }
}

/// A model, and the values that it refers to.
#[derive(Debug)]
pub(super) struct RawModel {
    object: Object,
    library: Arc<Library>,
    values: Vec<Vec<u8>>,
    referenced: Vec<Arc<RawModel>>,
}

// SAFETY: it is changed by who has it exclusively, and constant when it is finished.
unsafe impl Send for RawModel {}
// SAFETY: as above.
unsafe impl Sync for RawModel {}

impl Drop for RawModel {
    fn drop(&mut self) {
        // SAFETY: nothing refers to it: compilations and other models keep it.
        unsafe { self.library.model_free(self.object) }
    }
}

impl RawModel {
    pub(super) fn new(library: &Arc<Library>) -> Result<Self, Error> {
        let mut object = std::ptr::null_mut();
        // SAFETY: the place is there.
        outcome(unsafe { library.model_create(&raw mut object) }, "Model_create")?;
        let (values, referenced) = (Vec::new(), Vec::new());
        Ok(Self { object, library: Arc::clone(library), values, referenced })
    }

    pub(super) fn add_operand(
        &mut self,
        code: i32,
        dimensions: &[u32],
        scale: f32,
        zero_point: i32,
    ) -> Result<(), Error> {
        let of = operand_type(code, dimensions, scale, zero_point);
        // SAFETY: the type is read in the call.
        outcome(unsafe { self.library.add_operand(self.object, &raw const of) }, "addOperand")
    }

    pub(super) fn set_channel_scales(
        &mut self,
        operand: usize,
        channel_dim: u32,
        scales: &[f32],
    ) -> Result<(), Error> {
        let of = ChannelScales { channel_dim, count: count(scales.len()), scales: scales.as_ptr() };
        // SAFETY: the scales are copied in the call.
        let code =
            unsafe { self.library.set_channel_scales(self.object, index(operand), &raw const of) };
        outcome(code, "setOperandSymmPerChannelQuantParams")
    }

    /// The value of an operand; `None`: it is left out.
    pub(super) fn set_value(
        &mut self,
        operand: usize,
        bytes: Option<Vec<u8>>,
    ) -> Result<(), Error> {
        let (pointer, length) = match &bytes {
            Some(bytes) => (bytes.as_ptr().cast(), bytes.len()),
            None => (std::ptr::null(), 0),
        };
        // The library may refer to it as long as the model exists.
        self.values.extend(bytes);
        // SAFETY: moving a vector does not move its bytes, which live as long as the model.
        let code = unsafe { self.library.set_value(self.object, index(operand), pointer, length) };
        outcome(code, "setOperandValue")
    }

    pub(super) fn set_model(&mut self, operand: usize, value: Arc<Self>) -> Result<(), Error> {
        // SAFETY: the other model is finished, and kept.
        let code =
            unsafe { self.library.set_value_from_model(self.object, index(operand), value.object) };
        self.referenced.push(value);
        outcome(code, "setOperandValueFromModel")
    }

    pub(super) fn add_operation(
        &mut self,
        code: i32,
        inputs: &[u32],
        outputs: &[u32],
    ) -> Result<(), Error> {
        let (ins, outs) = (count(inputs.len()), count(outputs.len()));
        // SAFETY: the numbers are copied in the call.
        let code = unsafe {
            let (inputs, outputs) = (inputs.as_ptr(), outputs.as_ptr());
            self.library.add_operation(self.object, code, ins, inputs, outs, outputs)
        };
        outcome(code, "addOperation")
    }

    pub(super) fn finish(
        &mut self,
        inputs: &[u32],
        outputs: &[u32],
        is_relaxed: bool,
    ) -> Result<(), Error> {
        let (ins, outs) = (count(inputs.len()), count(outputs.len()));
        // SAFETY: the numbers are copied in the call.
        let code = unsafe {
            self.library.identify(self.object, ins, inputs.as_ptr(), outs, outputs.as_ptr())
        };
        outcome(code, "identifyInputsAndOutputs")?;
        if is_relaxed {
            // SAFETY: the model is not finished.
            let code = unsafe { self.library.relax(self.object, true) };
            outcome(code, "relaxComputationFloat32toFloat16")?;
        }
        // SAFETY: as above.
        outcome(unsafe { self.library.model_finish(self.object) }, "Model_finish")
    }
}

/// A compilation that is finished.
#[derive(Debug)]
pub(super) struct RawCompilation {
    object: Object,
    library: Arc<Library>,
    _model: Arc<RawModel>,
}

// SAFETY: it is constant, and the header allows executions by several threads.
unsafe impl Send for RawCompilation {}
// SAFETY: as above.
unsafe impl Sync for RawCompilation {}

impl Drop for RawCompilation {
    fn drop(&mut self) {
        // SAFETY: executions borrow it.
        unsafe { self.library.compilation_free(self.object) }
    }
}

/// An execution, once.
pub(super) struct RawExecution<'a> {
    object: Object,
    library: &'a Library,
    /// Inputs, and room for outputs.
    buffers: Vec<Vec<u8>>,
}

impl Drop for RawExecution<'_> {
    fn drop(&mut self) {
        // SAFETY: it does not compute.
        unsafe { self.library.execution_free(self.object) }
    }
}

impl RawCompilation {
    pub(super) fn execution(&self) -> Result<RawExecution<'_>, Error> {
        let mut object = std::ptr::null_mut();
        // SAFETY: the compilation is finished.
        let code = unsafe { self.library.execution_create(self.object, &raw mut object) };
        outcome(code, "Execution_create")?;
        Ok(RawExecution { object, library: &self.library, buffers: Vec::new() })
    }
}

/// What a request adds to the type of an argument.
pub(super) struct Declared<'a> {
    pub(super) code: i32,
    pub(super) dimensions: &'a [u32],
    pub(super) scale: f32,
    pub(super) zero_point: i32,
}

impl RawExecution<'_> {
    pub(super) fn set_loop_timeout(&mut self, nanoseconds: u64) -> Result<(), Error> {
        // SAFETY: it does not compute yet.
        let code = unsafe { self.library.set_loop_timeout(self.object, nanoseconds) };
        outcome(code, "setLoopTimeout")
    }

    /// An input; `None`: it is left out.
    pub(super) fn set_input(
        &mut self,
        at: usize,
        declared: Option<&Declared<'_>>,
        bytes: Option<Vec<u8>>,
    ) -> Result<(), Error> {
        let of = declared.map(|it| operand_type(it.code, it.dimensions, it.scale, it.zero_point));
        let of = of.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let (pointer, length) = match &bytes {
            Some(bytes) => (bytes.as_ptr().cast(), bytes.len()),
            None => (std::ptr::null(), 0),
        };
        self.buffers.extend(bytes);
        // SAFETY: the type is read in the call; the bytes live as long as the execution.
        let code = unsafe { self.library.set_input(self.object, index(at), of, pointer, length) };
        outcome(code, "setInput")
    }

    /// Room for an output; gives its place among the buffers.
    pub(super) fn set_output(&mut self, at: usize, length: Option<usize>) -> Result<usize, Error> {
        let mut buffer = vec![0; length.unwrap_or(0)];
        let pointer = length.map_or(std::ptr::null_mut(), |_| buffer.as_mut_ptr().cast());
        self.buffers.push(buffer);
        // SAFETY: moving a vector does not move its bytes, which live as long as the execution.
        let code = unsafe {
            let none = std::ptr::null();
            self.library.set_output(self.object, index(at), none, pointer, length.unwrap_or(0))
        };
        outcome(code, "setOutput")?;
        Ok(self.buffers.len() - 1)
    }

    pub(super) fn compute(&mut self) -> Result<(), Error> {
        // SAFETY: all buffers are there, and no one else reads or writes them.
        outcome(unsafe { self.library.execution_compute(self.object) }, "compute")
    }

    pub(super) fn buffer(&self, place: usize) -> &[u8] {
        &self.buffers[place]
    }

    /// The dimensions of an output, and whether its buffer was long enough.
    pub(super) fn output_shape(&self, at: usize) -> Result<(Vec<u32>, bool), Error> {
        let mut rank = 0;
        // SAFETY: the execution has been computed.
        let code = unsafe { self.library.output_rank(self.object, index(at), &raw mut rank) };
        let is_sufficient = code != 8;
        if is_sufficient {
            outcome(code, "getOutputOperandRank")?;
        }
        // No model has more: what a broken library says is not allocated.
        let mut dimensions = vec![0_u32; rank.min(1 << 10) as usize];
        if !dimensions.is_empty() {
            let out = dimensions.as_mut_ptr();
            // SAFETY: there are as many places as dimensions.
            let code = unsafe { self.library.output_dimensions(self.object, index(at), out) };
            if code != 8 {
                outcome(code, "getOutputOperandDimensions")?;
            }
        }
        Ok((dimensions, is_sufficient))
    }
}
