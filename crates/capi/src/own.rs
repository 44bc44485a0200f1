//! What the library has beyond Android's functions (`nnhal.h`).

use crate::border::export;
use crate::last_error;
use crate::outcome::result_name;
use std::ffi::{CString, c_char};
use std::sync::LazyLock;

/// Names of all result codes from 0 on, and one for what is none.
static NAMES: LazyLock<Vec<CString>> = LazyLock::new(|| {
    let codes = 0..=nnhal_runtime::ResultCode::ALL.last().map_or(0, |code| code.code()) + 1;
    codes.map(|code| CString::new(result_name(code)).unwrap_or_default()).collect()
});

export! {
    /// Why this thread's last failing call failed.
    fn nnhal_lastError() -> *const c_char, c"".as_ptr(); {
        last_error::pointer()
    }

    /// A result code's name.
    fn nnhal_resultName(code: i32) -> *const c_char, c"".as_ptr(); {
        let known = usize::try_from(code).ok().and_then(|code| NAMES.get(code));
        known.or_else(|| NAMES.last()).map_or(c"".as_ptr(), |name| name.as_ptr())
    }
}
