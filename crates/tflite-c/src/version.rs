//! `TfLiteVersion` and the like.

use crate::abi::tensor_type;
use crate::border::export;
use std::ffi::{c_char, c_int};

/// The version of TensorFlow whose C API this is.
const VERSION: &std::ffi::CStr = c"2.17.1";

export! {
    /// The version of TensorFlow whose C API this is.
    fn TfLiteVersion() -> *const c_char, VERSION.as_ptr(); {
        Ok(VERSION.as_ptr())
    }

    /// The same.
    fn TfLiteExtensionApisVersion() -> *const c_char, VERSION.as_ptr(); {
        Ok(VERSION.as_ptr())
    }

    /// The version of the file format.
    fn TfLiteSchemaVersion() -> c_int, 3; {
        Ok(3)
    }

    /// The name of an element type.
    fn TfLiteTypeGetName(code: c_int) -> *const c_char, c"Unknown type".as_ptr(); {
        let found = usize::try_from(code).ok().and_then(|code| tensor_type::NAMES.get(code));
        Ok(found.copied().unwrap_or(c"Unknown type").as_ptr())
    }
}
