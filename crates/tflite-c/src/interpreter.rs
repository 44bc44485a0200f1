//! `TfLiteInterpreter...`: models that run.

use crate::abi::{TfLiteCustomAllocation, TfLiteDelegate, TfLiteStatus, TfLiteTensor};
use crate::border::{Failure, Outcome, export, lock};
use crate::delegate::{self, Verdict};
use crate::handle::{get, give, take};
use crate::memory;
use crate::model::{LoadedModel, TfLiteModel};
use crate::options::{Options, TfLiteInterpreterOptions};
use crate::report::Reporter;
use crate::subgraph::Subgraph;
use nnhal::hal::Cancellation;
use nnhal::{ModelFile, Variables};
use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex, PoisonError};

nnhal_c_boundary::opaque! {
    /// A model that runs.
    TfLiteInterpreter: Interpreter, 3;
}

/// The file's subgraph that an interpreter's own functions are about.
const PRIMARY: usize = 0;

/// Set in the flags of `SetCustomAllocationForTensor`: the memory may begin anywhere.
const SKIP_ALIGNMENT: i64 = 1;

/// A model that runs.
#[derive(Debug)]
pub struct Interpreter {
    reporter: Reporter,
    options: Options,
    file: Arc<ModelFile>,
    /// Those that were asked for, by index.
    subgraphs: Mutex<HashMap<usize, Arc<Mutex<Subgraph>>>>,
    primary: Arc<Mutex<Subgraph>>,
    variables: Variables,
    input_indices: Vec<c_int>,
    output_indices: Vec<c_int>,
    signature_keys: Vec<CString>,
    running: Mutex<Option<Cancellation>>,
}

impl Interpreter {
    fn new(loaded: &LoadedModel, options: Options) -> Outcome<Self> {
        for verdict in &options.delegates {
            match verdict {
                Verdict::Refused(why) if !options.has_fallback => {
                    return Err(Failure::of(TfLiteStatus::DelegateError, *why));
                }
                Verdict::Refused(_) | Verdict::Ignored => {}
            }
        }
        let variables = Variables::default();
        let (file, model) = (&loaded.file, loaded.model.clone());
        let primary = Subgraph::new(file, PRIMARY, model, &options, &variables)?;
        let indices = |all: &[usize]| -> Vec<c_int> {
            all.iter().map(|index| c_int::try_from(*index).unwrap_or(-1)).collect()
        };
        let (input_indices, output_indices) =
            (indices(primary.input_indices()), indices(primary.output_indices()));
        let primary = Arc::new(Mutex::new(primary));
        let keys = file.description().signatures.iter();
        Ok(Self {
            reporter: options.reporter,
            input_indices,
            output_indices,
            signature_keys: keys.map(|it| CString::new(&*it.name).unwrap_or_default()).collect(),
            file: Arc::clone(file),
            subgraphs: Mutex::new(HashMap::from([(PRIMARY, Arc::clone(&primary))])),
            primary,
            variables,
            running: Mutex::new(None),
            options,
        })
    }

    pub(crate) fn file(&self) -> &ModelFile {
        &self.file
    }

    /// A subgraph of the file.
    pub(crate) fn subgraph(&self, index: usize) -> Outcome<Arc<Mutex<Subgraph>>> {
        let mut subgraphs = lock(&self.subgraphs)?;
        if let Some(known) = subgraphs.get(&index) {
            return Ok(Arc::clone(known));
        }
        for other in subgraphs.values() {
            lock(other)?.share()?;
        }
        let mut made = Subgraph::new(&self.file, index, None, &self.options, &self.variables)?;
        made.share()?;
        let made = Arc::new(Mutex::new(made));
        subgraphs.insert(index, Arc::clone(&made));
        Ok(made)
    }

    /// Adds whom to tell to what went wrong.
    pub(crate) fn tell<T>(&self, outcome: Outcome<T>) -> Outcome<T> {
        outcome.map_err(|failure| failure.to(self.reporter))
    }

    /// Runs a subgraph, so that it can be cancelled if the program has asked for that.
    pub(crate) fn invoke(&self, subgraph: &Mutex<Subgraph>) -> Outcome {
        if !self.options.is_cancellable {
            return lock(subgraph)?.invoke(None);
        }
        let mut subgraph = lock(subgraph)?;
        let cancellation = Cancellation::new();
        let running = |now| *self.running.lock().unwrap_or_else(PoisonError::into_inner) = now;
        running(Some(cancellation.clone()));
        let outcome = subgraph.invoke(Some(cancellation));
        running(None);
        outcome
    }

    pub(crate) fn cancel(&self) -> Outcome {
        if !self.options.is_cancellable {
            return Err(Failure::new(
                "TfLiteInterpreterOptionsEnableCancellation was not called for the interpreter",
            ));
        }
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cancellation) = &*running {
            cancellation.cancel();
        }
        Ok(())
    }
}

/// Calls with an interpreter and its primary subgraph.
fn with<T>(
    interpreter: *const TfLiteInterpreter,
    call: impl FnOnce(&Interpreter, &mut Subgraph) -> Outcome<T>,
) -> Outcome<T> {
    let interpreter = get(interpreter)?;
    let outcome = lock(&interpreter.primary).and_then(|mut it| call(&interpreter, &mut it));
    interpreter.tell(outcome)
}

/// Calls with what does not change and needs no lock: another thread may run the model meanwhile.
fn at<T>(
    interpreter: *const TfLiteInterpreter,
    call: impl FnOnce(&Interpreter) -> Outcome<T>,
) -> Outcome<T> {
    let interpreter = get(interpreter)?;
    interpreter.tell(call(&interpreter))
}

fn count(of: usize) -> i32 {
    i32::try_from(of).unwrap_or(i32::MAX)
}

/// What is at a position that C says.
fn pick<'a, T>(what: &str, all: &'a [T], index: i32) -> Outcome<&'a T> {
    let found = usize::try_from(index).ok().and_then(|index| all.get(index));
    found.ok_or_else(|| {
        Failure::new(format!("there is no {what} {index}, the model has {}", all.len()))
    })
}

/// Lengths that C says.
pub(crate) fn shape(dims: *const c_int, count: i32) -> Outcome<Vec<i32>> {
    memory::numbers(dims, count, "input_dims")
}

fn create(
    model: *const TfLiteModel,
    options: *const TfLiteInterpreterOptions,
) -> Outcome<*mut TfLiteInterpreter> {
    let options = if options.is_null() {
        Options::default()
    } else {
        let options = get(options)?;
        lock(&options)?.clone()
    };
    let reporter = options.reporter;
    let make = || -> Outcome<Interpreter> {
        nnhal_c_boundary::log::begin().map_err(nnhal::Error::from)?;
        let operators = options.operators.clone();
        let loaded = get(model)?;
        loaded.check().map_err(|failure| match &*operators {
            [] => failure,
            registered => {
                let names = registered.join(", ");
                let added = "operators of the program are not called by this library";
                let sentence = format!("{} ({added}: {names})", failure.sentence);
                Failure { sentence, ..failure }
            }
        })?;
        Interpreter::new(&loaded, options)
    };
    let interpreter = make().map_err(|failure| failure.to(reporter))?;
    give(Arc::new(interpreter))
}

export! {
    /// An interpreter of a model; null if there is something in it that cannot run. Options may be null.
    fn TfLiteInterpreterCreate(
        model: *const TfLiteModel,
        options: *const TfLiteInterpreterOptions,
    ) -> *mut TfLiteInterpreter, null_mut(); {
        create(model, options)
    }

    /// The same: operators of the format are all here, whichever the program has selected.
    fn TfLiteInterpreterCreateWithSelectedOps(
        model: *const TfLiteModel,
        options: *const TfLiteInterpreterOptions,
    ) -> *mut TfLiteInterpreter, null_mut(); {
        create(model, options)
    }

    /// Deletes the interpreter and its tensors.
    fn TfLiteInterpreterDelete(interpreter: *mut TfLiteInterpreter) -> (), (); {
        take(interpreter).map(drop)
    }

    /// How many inputs there are.
    fn TfLiteInterpreterGetInputTensorCount(interpreter: *const TfLiteInterpreter) -> i32, 0; {
        at(interpreter, |it| Ok(count(it.input_indices.len())))
    }

    /// Indexes of the inputs among all tensors; valid as long as the interpreter.
    fn TfLiteInterpreterInputTensorIndices(
        interpreter: *const TfLiteInterpreter,
    ) -> *const c_int, null(); {
        at(interpreter, |it| Ok(it.input_indices.as_ptr()))
    }

    /// An input.
    fn TfLiteInterpreterGetInputTensor(
        interpreter: *const TfLiteInterpreter,
        index: i32,
    ) -> *mut TfLiteTensor, null_mut(); {
        with(interpreter, |_, it| Ok(pick("input", it.inputs(), index)?.pointer()))
    }

    /// Gives an input another shape. `TfLiteInterpreterAllocateTensors` comes before the next run.
    fn TfLiteInterpreterResizeInputTensor(
        interpreter: *mut TfLiteInterpreter,
        index: i32,
        dims: *const c_int,
        length: i32,
    ) {
        with(interpreter, |_, it| {
            pick("input", it.inputs(), index)?;
            let shape = shape(dims, length)?;
            it.resize(usize::try_from(index).unwrap_or(0), &shape, false)
        })
    }

    /// Prepares the model for the shapes of its inputs, and gives inputs and outputs memory.
    fn TfLiteInterpreterAllocateTensors(interpreter: *mut TfLiteInterpreter) {
        with(interpreter, |_, it| it.allocate())
    }

    /// Runs the model.
    fn TfLiteInterpreterInvoke(interpreter: *mut TfLiteInterpreter) {
        let interpreter = get(interpreter)?;
        interpreter.tell(interpreter.invoke(&interpreter.primary))
    }

    /// How many outputs there are.
    fn TfLiteInterpreterGetOutputTensorCount(interpreter: *const TfLiteInterpreter) -> i32, 0; {
        at(interpreter, |it| Ok(count(it.output_indices.len())))
    }

    /// Indexes of the outputs among all tensors; valid as long as the interpreter.
    fn TfLiteInterpreterOutputTensorIndices(
        interpreter: *const TfLiteInterpreter,
    ) -> *const c_int, null(); {
        at(interpreter, |it| Ok(it.output_indices.as_ptr()))
    }

    /// An output.
    fn TfLiteInterpreterGetOutputTensor(
        interpreter: *const TfLiteInterpreter,
        index: i32,
    ) -> *const TfLiteTensor, null(); {
        with(interpreter, |_, it| Ok(pick("output", it.outputs(), index)?.pointer().cast_const()))
    }

    /// A tensor by its index. Those between operators have no elements.
    fn TfLiteInterpreterGetTensor(
        interpreter: *const TfLiteInterpreter,
        index: c_int,
    ) -> *mut TfLiteTensor, null_mut(); {
        with(interpreter, |_, it| it.shown_tensor(usize::try_from(index).unwrap_or(usize::MAX)))
    }

    /// Index of an input among all tensors.
    fn TfLiteInterpreterGetInputTensorIndex(
        interpreter: *const TfLiteInterpreter,
        index: i32,
    ) -> i32, -1; {
        at(interpreter, |it| pick("input", &it.input_indices, index).copied())
    }

    /// Index of an output among all tensors.
    fn TfLiteInterpreterGetOutputTensorIndex(
        interpreter: *const TfLiteInterpreter,
        index: i32,
    ) -> i32, -1; {
        at(interpreter, |it| pick("output", &it.output_indices, index).copied())
    }

    /// Ends the run that another thread has begun. Without one there is nothing to end.
    fn TfLiteInterpreterCancel(interpreter: *const TfLiteInterpreter) {
        at(interpreter, Interpreter::cancel)
    }

    /// Sets variable tensors to 0.
    fn TfLiteInterpreterResetVariableTensors(interpreter: *mut TfLiteInterpreter) {
        with(interpreter, |_, it| it.reset_variables())
    }

    /// How many tensors keep their value.
    fn TfLiteInterpreterGetVariableTensorCount(interpreter: *const TfLiteInterpreter) -> i32, 0; {
        with(interpreter, |_, it| Ok(count(it.variable_tensors().len())))
    }

    /// One of the tensors that keep their value.
    fn TfLiteInterpreterGetVariableTensor(
        interpreter: *const TfLiteInterpreter,
        index: i32,
    ) -> *mut TfLiteTensor, null_mut(); {
        with(interpreter, |_, it| {
            let index = *pick("variable", &it.variable_tensors(), index)?;
            it.shown_tensor(index)
        })
    }

    /// Memory of the program for an input or output: elements are read and written there.
    /// `TfLiteInterpreterAllocateTensors` comes before the next run.
    fn TfLiteInterpreterSetCustomAllocationForTensor(
        interpreter: *mut TfLiteInterpreter,
        index: c_int,
        allocation: *const TfLiteCustomAllocation,
        flags: i64,
    ) {
        with(interpreter, |_, it| {
            let allocation = memory::get(allocation);
            let TfLiteCustomAllocation { data, bytes } =
                allocation.ok_or_else(|| Failure::new("the allocation is NULL"))?;
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            it.adopt(index, (data, bytes), flags & SKIP_ALIGNMENT != 0)
        })
    }

    /// Elements are always where the tensor says.
    fn TfLiteInterpreterEnsureTensorDataIsReadable(
        interpreter: *mut TfLiteInterpreter,
        index: c_int,
    ) {
        with(interpreter, |_, it| {
            it.shown_tensor(usize::try_from(index).unwrap_or(usize::MAX)).map(drop)
        })
    }

    /// Delegates of nnhal are ignored, others refused.
    fn TfLiteInterpreterModifyGraphWithDelegate(
        interpreter: *const TfLiteInterpreter,
        delegate: *mut TfLiteDelegate,
    ) {
        with(interpreter, |_, _| match delegate::judge(delegate) {
            Verdict::Ignored => Ok(()),
            Verdict::Refused(why) => Err(Failure::of(TfLiteStatus::DelegateError, why)),
        })
    }

    /// There are no buffers of delegates.
    fn TfLiteInterpreterSetBufferHandle(
        interpreter: *mut TfLiteInterpreter,
        _tensor: *mut TfLiteTensor,
        _handle: c_int,
        _delegate: *mut TfLiteDelegate,
    ) {
        with(interpreter, |_, _| Err(Failure::new("there are no buffers of delegates here")))
    }

    /// There are no buffers of delegates.
    fn TfLiteInterpreterGetBufferHandle(
        interpreter: *mut TfLiteInterpreter,
        _index: c_int,
        _handle: *mut c_int,
        _delegate: *mut *mut TfLiteDelegate,
    ) {
        with(interpreter, |_, _| Err(Failure::new("there are no buffers of delegates here")))
    }

    /// There are no buffers of delegates: nothing changes.
    fn TfLiteSetAllowBufferHandleOutput(
        interpreter: *const TfLiteInterpreter,
        _allow: bool,
    ) -> (), (); {
        at(interpreter, |_| Ok(()))
    }

    /// How many signatures the model has.
    fn TfLiteInterpreterGetSignatureCount(interpreter: *const TfLiteInterpreter) -> i32, 0; {
        at(interpreter, |it| Ok(count(it.signature_keys.len())))
    }

    /// The name of a signature, valid as long as the interpreter; null if there is none.
    fn TfLiteInterpreterGetSignatureKey(
        interpreter: *const TfLiteInterpreter,
        index: i32,
    ) -> *const c_char, null(); {
        at(interpreter, |it| Ok(pick("signature", &it.signature_keys, index)?.as_ptr()))
    }
}
