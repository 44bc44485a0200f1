//! C's side of the tests: memory, callbacks and structures as a C program has them.

#![allow(unsafe_code, reason = "pointers are followed as C follows them")]
#![allow(dead_code, reason = "each test program uses a part")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::Mutex;
use tensorflowlite_c::abi::{TfLiteStatus, TfLiteTensor};
use tensorflowlite_c::access::*;
use tensorflowlite_c::interpreter::*;
use tensorflowlite_c::model::*;
use tensorflowlite_c::report::VaList;

unsafe extern "C" {
    fn vsnprintf(text: *mut c_char, size: usize, format: *const c_char, list: VaList) -> i32;
}

/// Sentences, in the order in which they came.
#[derive(Debug, Default)]
pub struct Reported(Mutex<Vec<String>>);

impl Reported {
    pub fn pointer(&self) -> *mut c_void {
        (&raw const *self).cast_mut().cast()
    }

    pub fn last(&self) -> String {
        self.0.lock().unwrap().last().cloned().unwrap_or_default()
    }

    pub fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// An error reporter that formats as C programs do.
pub unsafe extern "C" fn tell(reported: *mut c_void, format: *const c_char, list: VaList) {
    let mut text = [0; 2000];
    // SAFETY: room for 2000 bytes; the format and its arguments are the library's.
    let text = unsafe {
        vsnprintf(text.as_mut_ptr(), text.len(), format, list);
        CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
    };
    // SAFETY: what `Reported::pointer` gave; it outlives the interpreters of its test.
    unsafe { &*reported.cast::<Reported>() }.0.lock().unwrap().push(text);
}

/// A model of the repository's assets.
pub fn digits(file: &str) -> *mut TfLiteModel {
    let path = format!("{}/../../assets/digits/{file}", env!("CARGO_MANIFEST_DIR"));
    let model = TfLiteModelCreateFromFile(CString::new(path).unwrap().as_ptr());
    assert!(!model.is_null());
    model
}

pub fn text(pointer: *const c_char) -> String {
    assert!(!pointer.is_null());
    // SAFETY: text of the library, which ends with a zero.
    unsafe { CStr::from_ptr(pointer) }.to_str().unwrap().to_owned()
}

/// The structure, as programs read it.
pub fn fields(tensor: *const TfLiteTensor) -> TfLiteTensor {
    // SAFETY: structures of the library exist for ever.
    unsafe { tensor.read() }
}

/// The elements of an array with its length before them.
pub fn array(array: *const i32) -> Vec<i32> {
    // SAFETY: an array of the library.
    unsafe {
        let count = usize::try_from(array.read()).unwrap();
        std::slice::from_raw_parts(array.add(1), count).to_vec()
    }
}

/// What `TfLiteTensor::quantization` leads to: scales, zero points, axis.
pub fn quantization(tensor: *const TfLiteTensor) -> (Vec<f32>, Vec<i32>, i32) {
    let fields = fields(tensor);
    assert_eq!(fields.quantization.r#type, 1);
    // SAFETY: of this type it leads to the structure and its arrays.
    let affine = unsafe {
        fields.quantization.params.cast::<tensorflowlite_c::abi::TfLiteAffineQuantization>().read()
    };
    let scales =
        array(affine.scale.cast()).into_iter().map(|it| f32::from_bits(it.cast_unsigned()));
    (scales.collect(), array(affine.zero_point), affine.quantized_dimension)
}

/// Writes elements where the tensor says that they are.
pub fn write(tensor: *mut TfLiteTensor, bytes: &[u8]) {
    assert_eq!(fields(tensor).bytes, bytes.len());
    // SAFETY: the tensor has memory for that number of bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), fields(tensor).data.cast(), bytes.len())
    }
}

/// Reads elements from where the tensor says that they are.
pub fn read(tensor: *const TfLiteTensor) -> Vec<u8> {
    let fields = fields(tensor);
    // SAFETY: the tensor has that number of bytes.
    unsafe { std::slice::from_raw_parts(fields.data.cast::<u8>(), fields.bytes) }.to_vec()
}

/// Elements by the functions for copying.
pub fn copied(tensor: *const TfLiteTensor) -> Vec<u8> {
    let mut bytes = vec![0; TfLiteTensorByteSize(tensor)];
    let status = TfLiteTensorCopyToBuffer(tensor, bytes.as_mut_ptr().cast(), bytes.len());
    assert_eq!(status, TfLiteStatus::Ok);
    bytes
}

/// An interpreter that is ready to run.
pub fn ready(model: *const TfLiteModel) -> *mut TfLiteInterpreter {
    let interpreter = TfLiteInterpreterCreate(model, std::ptr::null());
    assert!(!interpreter.is_null());
    assert_eq!(TfLiteInterpreterAllocateTensors(interpreter), TfLiteStatus::Ok);
    interpreter
}

/// Runs a model whose first input takes these bytes, and copies its first output.
pub fn run(interpreter: *mut TfLiteInterpreter, bytes: &[u8]) -> Vec<u8> {
    let input = TfLiteInterpreterGetInputTensor(interpreter, 0);
    let status = TfLiteTensorCopyFromBuffer(input, bytes.as_ptr().cast(), bytes.len());
    assert_eq!(status, TfLiteStatus::Ok);
    assert_eq!(TfLiteInterpreterInvoke(interpreter), TfLiteStatus::Ok);
    copied(TfLiteInterpreterGetOutputTensor(interpreter, 0))
}

/// Writes the elements of an array behind its length.
pub fn write_ints(array: *mut i32, elements: &[i32]) {
    // SAFETY: an array of the library with that number of elements.
    unsafe { std::ptr::copy_nonoverlapping(elements.as_ptr(), array.add(1), elements.len()) }
}

/// The first element where C says that there are some.
pub fn first(elements: *const i32) -> i32 {
    // SAFETY: indexes of the library, of which there is one at least.
    unsafe { elements.read() }
}
