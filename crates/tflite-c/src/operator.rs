//! `TfLiteOperator...`: operators of the program's, as far as it describes them.
//!
//! The functions that it sets are not kept: this library calls none, see
//! [`crate::options::TfLiteInterpreterOptionsAddOperator`].

use crate::border::{Outcome, export, lock};
use crate::handle::{get, give, take};
use crate::memory;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex};

nnhal_c_boundary::opaque! {
    /// An operator of the program's.
    TfLiteOperator: Mutex<Operator>, 5;
}

/// An operator of the program's.
#[derive(Debug)]
pub struct Operator {
    code: c_int,
    custom_name: Option<CString>,
    version: c_int,
    user_data: usize,
}

impl Operator {
    /// What it is called in messages.
    pub(crate) fn name(&self) -> String {
        match &self.custom_name {
            Some(name) => name.to_string_lossy().into_owned(),
            None => format!("builtin operator {}", self.code),
        }
    }
}

/// A function of the program's. None is ever called.
type Function = Option<unsafe extern "C" fn()>;

fn set(operator: *const TfLiteOperator) -> Outcome {
    get(operator).map(drop)
}

export! {
    /// An operator of the program's.
    fn TfLiteOperatorCreate(
        code: c_int,
        custom_name: *const c_char,
        version: c_int,
        user_data: *mut c_void,
    ) -> *mut TfLiteOperator, null_mut(); {
        let named = !custom_name.is_null();
        let custom_name = named.then(|| memory::text(custom_name, "custom_name")).transpose()?;
        let user_data = user_data.expose_provenance();
        give(Arc::new(Mutex::new(Operator { code, custom_name, version, user_data })))
    }

    /// The same, by an older name.
    fn TfLiteOperatorCreateWithData(
        code: c_int,
        custom_name: *const c_char,
        version: c_int,
        user_data: *mut c_void,
    ) -> *mut TfLiteOperator, null_mut(); {
        Ok(TfLiteOperatorCreate(code, custom_name, version, user_data))
    }

    /// Deletes the operator.
    fn TfLiteOperatorDelete(operator: *mut TfLiteOperator) -> (), (); {
        take(operator).map(drop)
    }

    /// The operator's number in the format.
    fn TfLiteOperatorGetBuiltInCode(operator: *const TfLiteOperator) -> c_int, 0; {
        Ok(lock(&*get(operator)?)?.code)
    }

    /// The operator's name, valid as long as it; null if it is one of the format.
    fn TfLiteOperatorGetCustomName(operator: *const TfLiteOperator) -> *const c_char, null(); {
        Ok(lock(&*get(operator)?)?.custom_name.as_ref().map_or(null(), |name| name.as_ptr()))
    }

    /// The operator's version.
    fn TfLiteOperatorGetVersion(operator: *const TfLiteOperator) -> c_int, 0; {
        Ok(lock(&*get(operator)?)?.version)
    }

    /// What the program gave with it.
    fn TfLiteOperatorGetUserData(operator: *const TfLiteOperator) -> *mut c_void, null_mut(); {
        Ok(std::ptr::with_exposed_provenance_mut(lock(&*get(operator)?)?.user_data))
    }

    /// Not kept.
    fn TfLiteOperatorSetInit(operator: *mut TfLiteOperator, _init: Function) -> (), (); {
        set(operator)
    }

    /// Not kept.
    fn TfLiteOperatorSetInitWithData(operator: *mut TfLiteOperator, _init: Function) {
        set(operator)
    }

    /// Not kept.
    fn TfLiteOperatorSetFree(operator: *mut TfLiteOperator, _free: Function) -> (), (); {
        set(operator)
    }

    /// Not kept.
    fn TfLiteOperatorSetFreeWithData(operator: *mut TfLiteOperator, _free: Function) {
        set(operator)
    }

    /// Not kept.
    fn TfLiteOperatorSetPrepare(operator: *mut TfLiteOperator, _prepare: Function) -> (), (); {
        set(operator)
    }

    /// Not kept.
    fn TfLiteOperatorSetPrepareWithData(operator: *mut TfLiteOperator, _prepare: Function) {
        set(operator)
    }

    /// Not kept.
    fn TfLiteOperatorSetInvoke(operator: *mut TfLiteOperator, _invoke: Function) -> (), (); {
        set(operator)
    }

    /// Not kept.
    fn TfLiteOperatorSetInvokeWithData(operator: *mut TfLiteOperator, _invoke: Function) {
        set(operator)
    }

    /// Not kept.
    fn TfLiteOperatorSetAsyncKernel(operator: *mut TfLiteOperator, _kernel: Function) -> (), (); {
        set(operator)
    }

    /// Not kept.
    fn TfLiteOperatorSetAsyncKernelWithData(operator: *mut TfLiteOperator, _kernel: Function) {
        set(operator)
    }

    /// Not kept.
    fn TfLiteOperatorSetInplaceOperator(operator: *mut TfLiteOperator, _inplace: u64) -> (), (); {
        set(operator)
    }
}
