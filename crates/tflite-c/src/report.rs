//! The program's error reporter: a function that takes a format and a `va_list`.
//!
//! Rust cannot make a `va_list`. The calling conventions say what one is, so one is built here that has one
//! argument, a pointer to text, for the format `"%s"`: it says that all registers for arguments have been
//! read, and that the next argument is on the stack, which is where the pointer is.
//!
//! - x86-64 (System V ABI, AMD64 supplement, 3.5.7): an array of one structure, with offsets into the area of
//!   saved registers (48 and 176 are behind its last ones), the next argument on the stack, and that area;
//! - 64-bit ARM (AAPCS64, the appendix on variable arguments): a structure, passed by reference as it exceeds
//!   16 bytes, with the next argument on the stack, the ends of the areas of saved registers, and offsets into
//!   these, of which 0 means that all have been read;
//! - RISC-V (its calling conventions): a pointer to the next argument.
//!
//! Elsewhere reporters are not called, and sentences go to standard error.

#![allow(unsafe_code, reason = "the program's function is called")]

use std::ffi::{CString, c_char, c_void};

/// What C passes where its header says `va_list`.
#[cfg(target_arch = "aarch64")]
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct VaList {
    stack: *const c_void,
    general_end: *const c_void,
    vector_end: *const c_void,
    general_offset: i32,
    vector_offset: i32,
}

/// What C passes where its header says `va_list`.
#[cfg(not(target_arch = "aarch64"))]
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct VaList(*mut c_void);

/// The structure behind it.
#[cfg(target_arch = "x86_64")]
#[repr(C)]
struct Registers {
    general_offset: u32,
    vector_offset: u32,
    stack: *const c_void,
    saved: *const c_void,
}

/// The program's function.
pub type Callback = unsafe extern "C" fn(*mut c_void, *const c_char, VaList);

/// Whom to tell what went wrong: the program's function, or standard error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reporter {
    callback: Option<Callback>,
    user_data: *mut c_void,
}

// SAFETY: the pointer is only handed back to the program's function, which C says may be called by
// whichever thread uses the interpreter.
unsafe impl Send for Reporter {}
// SAFETY: as above.
unsafe impl Sync for Reporter {}

impl Reporter {
    /// Standard error.
    pub(crate) const NONE: Self = Self { callback: None, user_data: std::ptr::null_mut() };

    pub(crate) fn new(callback: Option<Callback>, user_data: *mut c_void) -> Self {
        Self { callback, user_data }
    }

    /// Tells a sentence.
    pub(crate) fn tell(self, sentence: &str) {
        // A setting that makes no sense is said when an interpreter is made.
        let _ = nnhal_c_boundary::log::begin();
        tracing::error!(target: "tensorflowlite_c", "{sentence}");
        let Some(callback) = self.callback.filter(|_| CAN_CALL) else {
            // As TensorFlow Lite does where there is no reporter.
            nnhal_c_boundary::log::say_line(&format!("ERROR: {sentence}"));
            return;
        };
        let text = CString::new(sentence.replace('\0', " ")).unwrap_or_default();
        let stack: [*const c_char; 1] = [text.as_ptr()];
        self.call(callback, &stack);
    }

    #[cfg(target_arch = "x86_64")]
    fn call(self, callback: Callback, stack: &[*const c_char; 1]) {
        let mut registers = Registers {
            general_offset: 48,
            vector_offset: 176,
            stack: stack.as_ptr().cast(),
            saved: std::ptr::null(),
        };
        // SAFETY: C promises that the function is one that takes these. Its `va_list` says that there
        // is one argument on the stack, a pointer, which "%s" asks for; offsets at the end keep
        // `va_arg` from looking at saved registers. All of it outlives the call.
        unsafe { callback(self.user_data, c"%s".as_ptr(), VaList((&raw mut registers).cast())) }
    }

    #[cfg(target_arch = "aarch64")]
    fn call(self, callback: Callback, stack: &[*const c_char; 1]) {
        let none = std::ptr::null();
        let list = VaList {
            stack: stack.as_ptr().cast(),
            general_end: none,
            vector_end: none,
            general_offset: 0,
            vector_offset: 0,
        };
        // SAFETY: as for x86-64: offsets that are not negative send `va_arg` to the stack.
        unsafe { callback(self.user_data, c"%s".as_ptr(), list) }
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn call(self, callback: Callback, stack: &[*const c_char; 1]) {
        let list = VaList(stack.as_ptr().cast_mut().cast());
        // SAFETY: only where a `va_list` is a pointer to arguments in memory, see `CAN_CALL`.
        unsafe { callback(self.user_data, c"%s".as_ptr(), list) }
    }
}

/// Whether what a `va_list` is here is written down above.
const CAN_CALL: bool = cfg!(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64",
    target_arch = "riscv32"
));
