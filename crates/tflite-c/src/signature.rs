//! `TfLiteSignatureRunner...`: parts of a model that signatures name.
//!
//! Several signatures of a file may be the same subgraph, then they have the same tensors; resource variables
//! are the interpreter's, so all have the same. Names of inputs and outputs come in alphabetical order.

use crate::abi::TfLiteTensor;
use crate::border::{Failure, Outcome, export, lock};
use crate::handle::{get, give, take};
use crate::interpreter::{Interpreter, TfLiteInterpreter, shape};
use crate::memory;
use crate::subgraph::Subgraph;
use crate::tensor::Tensor;
use std::ffi::{CString, c_char, c_int};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex, Weak};

nnhal_c_boundary::opaque! {
    /// A part of a model that runs, which a signature names.
    TfLiteSignatureRunner: SignatureRunner, 4;
}

/// A part of a model that a signature names.
#[derive(Debug)]
pub struct SignatureRunner {
    /// It may be deleted first, though it should not.
    interpreter: Weak<Interpreter>,
    subgraph: Arc<Mutex<Subgraph>>,
    /// Names and tensors, by name.
    inputs: Vec<(CString, Arc<Tensor>)>,
    outputs: Vec<(CString, Arc<Tensor>)>,
}

/// Names and indexes of tensors, in alphabetical order.
type Names = Vec<(String, usize)>;

impl SignatureRunner {
    /// Of the signature with this name; without one of the first that is of the primary subgraph, or of
    /// the model itself if it has none.
    pub(crate) fn new(interpreter: &Arc<Interpreter>, key: Option<&str>) -> Outcome<Self> {
        let all = &interpreter.file().description().signatures;
        let signature = match key {
            Some(key) => {
                let known = all.iter().map(|it| &*it.name).collect::<Vec<_>>().join(", ");
                let found = all.iter().find(|signature| signature.name == key);
                Some(found.ok_or_else(|| {
                    Failure::new(format!("there is no signature {key:?}; there are: {known}"))
                })?)
            }
            None if all.is_empty() => None,
            None => {
                Some(all.iter().find(|signature| signature.subgraph == 0).ok_or_else(|| {
                    Failure::new("no signature is of the primary subgraph, so it must be named")
                })?)
            }
        };
        let index = signature.map_or(0, |signature| signature.subgraph);
        let subgraph = interpreter.subgraph(index)?;
        let mut held = lock(&subgraph)?;
        let (inputs, outputs) = match signature {
            Some(signature) => (signature.inputs.clone(), signature.outputs.clone()),
            None => {
                let own = |what: &str, all: &[usize]| -> Names {
                    let named = |(at, index): (usize, &usize)| {
                        let name = &held.infos()[*index].name;
                        (if name.is_empty() { format!("{what}{at}") } else { name.clone() }, *index)
                    };
                    all.iter().enumerate().map(named).collect()
                };
                (own("input", held.input_indices()), own("output", held.output_indices()))
            }
        };
        let mut tensors = |mut names: Names| -> Outcome<Vec<(CString, Arc<Tensor>)>> {
            names.sort();
            let tensor = |(name, index): (String, usize)| {
                Ok((CString::new(name).unwrap_or_default(), held.tensor(index)?))
            };
            names.into_iter().map(tensor).collect()
        };
        let (inputs, outputs) = (tensors(inputs)?, tensors(outputs)?);
        drop(held);
        Ok(Self { interpreter: Arc::downgrade(interpreter), subgraph, inputs, outputs })
    }

    fn interpreter(&self) -> Outcome<Arc<Interpreter>> {
        let interpreter = self.interpreter.upgrade();
        interpreter.ok_or_else(|| Failure::new("its TfLiteInterpreter was deleted"))
    }
}

/// Calls with a runner whose interpreter still exists.
fn with<T>(
    runner: *const TfLiteSignatureRunner,
    call: impl FnOnce(&SignatureRunner, &Interpreter) -> Outcome<T>,
) -> Outcome<T> {
    let runner = get(runner)?;
    let interpreter = runner.interpreter()?;
    interpreter.tell(call(&runner, &interpreter))
}

fn named<'a>(
    what: &str,
    all: &'a [(CString, Arc<Tensor>)],
    name: *const c_char,
) -> Outcome<&'a Arc<Tensor>> {
    let name = memory::text(name, "the name")?;
    let found = all.iter().find(|(known, _)| *known == name);
    found.map(|(_, tensor)| tensor).ok_or_else(|| {
        let known: Vec<_> = all.iter().map(|(name, _)| name.to_string_lossy()).collect();
        Failure::new(format!("there is no {what} {name:?}; there are: {}", known.join(", ")))
    })
}

fn name_at(all: &[(CString, Arc<Tensor>)], index: i32) -> Outcome<*const c_char> {
    let found = usize::try_from(index).ok().and_then(|index| all.get(index));
    // As in TensorFlow Lite, that is how programs find the end.
    Ok(found.map_or(null(), |(name, _)| name.as_ptr()))
}

export! {
    /// The part of the model that a signature names. Null stands for the model's only or first one.
    fn TfLiteInterpreterGetSignatureRunner(
        interpreter: *const TfLiteInterpreter,
        key: *const c_char,
    ) -> *mut TfLiteSignatureRunner, null_mut(); {
        let interpreter = get(interpreter)?;
        let make = || -> Outcome<*mut TfLiteSignatureRunner> {
            let key = match key.is_null() {
                true => None,
                false => Some(memory::text(key, "signature_key")?.to_string_lossy().into_owned()),
            };
            give(Arc::new(SignatureRunner::new(&interpreter, key.as_deref())?))
        };
        interpreter.tell(make())
    }

    /// How many inputs the signature has.
    fn TfLiteSignatureRunnerGetInputCount(runner: *const TfLiteSignatureRunner) -> usize, 0; {
        with(runner, |it, _| Ok(it.inputs.len()))
    }

    /// The name of an input, valid as long as the runner; null if there is none.
    fn TfLiteSignatureRunnerGetInputName(
        runner: *const TfLiteSignatureRunner,
        index: i32,
    ) -> *const c_char, null(); {
        with(runner, |it, _| name_at(&it.inputs, index))
    }

    /// Gives an input another shape, where the file leaves lengths open.
    fn TfLiteSignatureRunnerResizeInputTensor(
        runner: *mut TfLiteSignatureRunner,
        name: *const c_char,
        dims: *const c_int,
        length: i32,
    ) {
        with(runner, |it, _| {
            let tensor = named("input", &it.inputs, name)?;
            let shape = shape(dims, length)?;
            let mut subgraph = lock(&it.subgraph)?;
            let position = subgraph.inputs().iter().position(|known| Arc::ptr_eq(known, tensor));
            let position = position
                .ok_or_else(|| Failure::new("the signature's input is none of its subgraph"))?;
            subgraph.resize(position, &shape, true)
        })
    }

    /// As `TfLiteInterpreterAllocateTensors`.
    fn TfLiteSignatureRunnerAllocateTensors(runner: *mut TfLiteSignatureRunner) {
        with(runner, |it, _| lock(&it.subgraph)?.allocate())
    }

    /// An input.
    fn TfLiteSignatureRunnerGetInputTensor(
        runner: *mut TfLiteSignatureRunner,
        name: *const c_char,
    ) -> *mut TfLiteTensor, null_mut(); {
        with(runner, |it, _| Ok(named("input", &it.inputs, name)?.pointer()))
    }

    /// Runs the signature's part of the model.
    fn TfLiteSignatureRunnerInvoke(runner: *mut TfLiteSignatureRunner) {
        with(runner, |it, interpreter| interpreter.invoke(&it.subgraph))
    }

    /// How many outputs the signature has.
    fn TfLiteSignatureRunnerGetOutputCount(runner: *const TfLiteSignatureRunner) -> usize, 0; {
        with(runner, |it, _| Ok(it.outputs.len()))
    }

    /// The name of an output, valid as long as the runner; null if there is none.
    fn TfLiteSignatureRunnerGetOutputName(
        runner: *const TfLiteSignatureRunner,
        index: i32,
    ) -> *const c_char, null(); {
        with(runner, |it, _| name_at(&it.outputs, index))
    }

    /// An output.
    fn TfLiteSignatureRunnerGetOutputTensor(
        runner: *const TfLiteSignatureRunner,
        name: *const c_char,
    ) -> *const TfLiteTensor, null(); {
        with(runner, |it, _| Ok(named("output", &it.outputs, name)?.pointer().cast_const()))
    }

    /// As `TfLiteInterpreterCancel`.
    fn TfLiteSignatureRunnerCancel(runner: *mut TfLiteSignatureRunner) {
        with(runner, |_, interpreter| interpreter.cancel())
    }

    /// Deletes the runner; tensors stay with the interpreter.
    fn TfLiteSignatureRunnerDelete(runner: *mut TfLiteSignatureRunner) -> (), (); {
        take(runner).map(drop)
    }
}
