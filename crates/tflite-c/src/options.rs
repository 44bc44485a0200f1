//! `TfLiteInterpreterOptions...`: how interpreters are made.

use crate::abi::TfLiteDelegate;
use crate::border::{Failure, Outcome, export, lock};
use crate::delegate::{self, Verdict};
use crate::handle::{get, give, take};
use crate::memory;
use crate::operator::TfLiteOperator;
use crate::report::{Callback, Reporter};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard};

nnhal_c_boundary::opaque! {
    /// How interpreters are made.
    TfLiteInterpreterOptions: Mutex<Options>, 2;
}

/// How an interpreter is made.
#[derive(Debug, Clone)]
pub struct Options {
    /// As the program says; -1: as `NNHAL_THREADS` says.
    pub(crate) threads: i32,
    pub(crate) reporter: Reporter,
    pub(crate) is_cancellable: bool,
    /// What was found about the delegates.
    pub(crate) delegates: Vec<Verdict>,
    /// Whether a delegate that fails may be left out.
    pub(crate) has_fallback: bool,
    /// Names of operators that the program has implementations of.
    pub(crate) operators: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: -1,
            reporter: Reporter::NONE,
            is_cancellable: false,
            delegates: Vec::new(),
            has_fallback: false,
            operators: Vec::new(),
        }
    }
}

/// Changes options.
fn change(
    options: *const TfLiteInterpreterOptions,
    change: impl FnOnce(&mut MutexGuard<'_, Options>) -> Outcome,
) -> Outcome {
    let options = get(options)?;
    let mut options = lock(&options)?;
    let reporter = options.reporter;
    change(&mut options).map_err(|failure| failure.to(reporter))
}

/// Functions that find operators are the program's; none is ever asked.
type Find = Option<unsafe extern "C" fn()>;

/// A function of the program's that finds operators cannot be asked which it has, so they are only noted.
fn resolver(options: *const TfLiteInterpreterOptions, functions: &[Find]) -> Outcome {
    change(options, |options| {
        if functions.iter().any(Option::is_some) {
            options.operators.push("those that its functions find".to_owned());
        }
        Ok(())
    })
}

export! {
    /// Options of which nothing is said.
    fn TfLiteInterpreterOptionsCreate() -> *mut TfLiteInterpreterOptions, null_mut(); {
        give(Arc::new(Mutex::new(Options::default())))
    }

    /// The same options once more.
    fn TfLiteInterpreterOptionsCopy(
        from: *const TfLiteInterpreterOptions,
    ) -> *mut TfLiteInterpreterOptions, null_mut(); {
        let copy = lock(&*get(from)?)?.clone();
        give(Arc::new(Mutex::new(copy)))
    }

    /// Deletes options. Interpreters that were made with them stay.
    fn TfLiteInterpreterOptionsDelete(options: *mut TfLiteInterpreterOptions) -> (), (); {
        take(options).map(drop)
    }

    /// The most threads of a run; 0 is 1, and -1 leaves it to `NNHAL_THREADS`.
    fn TfLiteInterpreterOptionsSetNumThreads(
        options: *mut TfLiteInterpreterOptions,
        threads: i32,
    ) -> (), (); {
        change(options, |options| {
            options.threads = threads;
            Ok(())
        })
    }

    /// Delegates that are made by nnhal are ignored, as their work is done anyway. With others no
    /// interpreter is made.
    fn TfLiteInterpreterOptionsAddDelegate(
        options: *mut TfLiteInterpreterOptions,
        delegate: *mut TfLiteDelegate,
    ) -> (), (); {
        change(options, |options| {
            if let Some(threads) = delegate::threads_of(delegate).filter(|_| options.threads == -1) {
                options.threads = threads;
            }
            options.delegates.push(delegate::judge(delegate));
            Ok(())
        })
    }

    /// Whom interpreters tell what went wrong.
    fn TfLiteInterpreterOptionsSetErrorReporter(
        options: *mut TfLiteInterpreterOptions,
        callback: Option<Callback>,
        user_data: *mut c_void,
    ) -> (), (); {
        change(options, |options| {
            options.reporter = Reporter::new(callback, user_data);
            Ok(())
        })
    }

    /// Whether interpreters can be cancelled.
    fn TfLiteInterpreterOptionsEnableCancellation(
        options: *mut TfLiteInterpreterOptions,
        enable: bool,
    ) {
        change(options, |options| {
            options.is_cancellable = enable;
            Ok(())
        })
    }

    /// Notes an operator of the program's. It is not called: where a model needs it, no interpreter is
    /// made.
    fn TfLiteInterpreterOptionsAddOperator(
        options: *mut TfLiteInterpreterOptions,
        operator: *mut TfLiteOperator,
    ) -> (), (); {
        let name = lock(&*get(operator)?)?.name();
        change(options, |options| {
            options.operators.push(name);
            Ok(())
        })
    }

    /// As [`TfLiteInterpreterOptionsAddOperator`]: an operator of the format has our implementation.
    fn TfLiteInterpreterOptionsAddBuiltinOp(
        options: *mut TfLiteInterpreterOptions,
        operator: c_int,
        _registration: *const c_void,
        _first_version: i32,
        _last_version: i32,
    ) -> (), (); {
        change(options, |options| {
            options.operators.push(format!("builtin operator {operator}"));
            Ok(())
        })
    }

    /// As [`TfLiteInterpreterOptionsAddOperator`].
    fn TfLiteInterpreterOptionsAddCustomOp(
        options: *mut TfLiteInterpreterOptions,
        name: *const c_char,
        _registration: *const c_void,
        _first_version: i32,
        _last_version: i32,
    ) -> (), (); {
        let name = memory::text(name, "name")?.to_string_lossy().into_owned();
        change(options, |options| {
            options.operators.push(name);
            Ok(())
        })
    }

    /// As [`TfLiteInterpreterOptionsAddOperator`], for all that the functions find.
    fn TfLiteInterpreterOptionsSetOpResolver(
        options: *mut TfLiteInterpreterOptions,
        builtin: Find,
        custom: Find,
        _user_data: *mut c_void,
    ) -> (), (); {
        resolver(options, &[builtin, custom])
    }

    /// As [`TfLiteInterpreterOptionsSetOpResolver`].
    fn TfLiteInterpreterOptionsSetOpResolverV1(
        options: *mut TfLiteInterpreterOptions,
        builtin: Find,
        custom: Find,
        _user_data: *mut c_void,
    ) -> (), (); {
        resolver(options, &[builtin, custom])
    }

    /// As [`TfLiteInterpreterOptionsSetOpResolver`].
    fn TfLiteInterpreterOptionsSetOpResolverV2(
        options: *mut TfLiteInterpreterOptions,
        builtin: Find,
        custom: Find,
        _user_data: *mut c_void,
    ) -> (), (); {
        resolver(options, &[builtin, custom])
    }

    /// As [`TfLiteInterpreterOptionsSetOpResolver`].
    fn TfLiteInterpreterOptionsSetOpResolverV3(
        options: *mut TfLiteInterpreterOptions,
        builtin: Find,
        custom: Find,
        _user_data: *mut c_void,
    ) -> (), (); {
        resolver(options, &[builtin, custom])
    }

    /// As [`TfLiteInterpreterOptionsSetOpResolver`].
    fn TfLiteInterpreterOptionsSetOpResolverExternal(
        options: *mut TfLiteInterpreterOptions,
        builtin: Find,
        custom: Find,
        _user_data: *mut c_void,
    ) -> (), (); {
        resolver(options, &[builtin, custom])
    }

    /// As [`TfLiteInterpreterOptionsSetOpResolver`].
    fn TfLiteInterpreterOptionsSetOpResolverExternalWithFallback(
        options: *mut TfLiteInterpreterOptions,
        builtin_external: Find,
        custom_external: Find,
        builtin: Find,
        custom: Find,
        _user_data: *mut c_void,
    ) -> (), (); {
        resolver(options, &[builtin_external, custom_external, builtin, custom])
    }

    /// NNAPI is where nnhal computes anyway.
    fn TfLiteInterpreterOptionsSetUseNNAPI(
        options: *mut TfLiteInterpreterOptions,
        _enable: bool,
    ) -> (), (); {
        change(options, |_| Ok(()))
    }

    /// Whether an interpreter is made without a delegate that it cannot have.
    fn TfLiteInterpreterOptionsSetEnableDelegateFallback(
        options: *mut TfLiteInterpreterOptions,
        enable: bool,
    ) -> (), (); {
        change(options, |options| {
            options.has_fallback = enable;
            Ok(())
        })
    }

    /// No profiler is ever called.
    fn TfLiteInterpreterOptionsSetTelemetryProfiler(
        options: *mut TfLiteInterpreterOptions,
        profiler: *mut c_void,
    ) -> (), (); {
        change(options, |_| {
            if profiler.is_null() {
                return Ok(());
            }
            Err(Failure::new("telemetry profilers are not called; NNHAL_LOG=debug writes times"))
        })
    }
}
