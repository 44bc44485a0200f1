//! `Session`: a prepared model. `Runner`: memory for its runs.

use crate::array::{self, LentArray};
use crate::duration::seconds;
use crate::error::{Failure, Outcome};
use nnhal::hal::model::SubgraphName;
use nnhal::hal::{Operand, OperandLifeTime};
use nnhal::{DataType, ObservedOutput, Observer, RunOptions, TensorView};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyList};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Preparations for other shapes that a session keeps.
const MOST_VARIANTS: usize = 8;

/// A model prepared on a device.
#[pyclass(frozen, module = "nnhal._nnhal")]
#[derive(Debug)]
pub(crate) struct Session {
    base: Arc<Variant>,
    options: nnhal::SessionOptions,
    /// For shapes that the base does not take; the most recently used one last.
    variants: Mutex<Vec<Arc<Variant>>>,
}

/// A prepared model, and memory for runs that nothing uses at the moment.
#[derive(Debug)]
struct Variant {
    shapes: Vec<Vec<usize>>,
    session: nnhal::Session,
    idle: Mutex<Vec<nnhal::Runner>>,
    /// Of a stateful model: what its variables are in.
    stream: Option<Mutex<Option<nnhal::Runner>>>,
}

const NOT_CONTIGUOUS: &str = "the array of a variable is read-only, or not row by row without gaps";

/// Memory for runs of a prepared model.
#[pyclass(frozen, module = "nnhal._nnhal")]
#[derive(Debug)]
pub(crate) struct Runner(Mutex<nnhal::Runner>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks without keeping Python from other threads while it waits.
fn lock_attached<'m, T>(py: Python<'_>, mutex: &'m Mutex<T>) -> MutexGuard<'m, T> {
    mutex.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
}

/// Writes an array into an input: with one copy, whatever its strides.
fn write(
    runner: &mut nnhal::Runner,
    index: usize,
    array: &Bound<'_, PyUntypedArray>,
) -> Outcome<()> {
    let data_type = array::data_type(array)?;
    let shape = array.shape();
    let contiguous = array::with_bytes(array, |bytes| {
        runner.set_input(index, TensorView::new(data_type, shape, bytes)?)
    });
    if let Some(outcome) = contiguous {
        return Ok(outcome?);
    }
    let inputs = runner.model().inputs();
    if inputs.get(index).is_some_and(|info| info.data_type == data_type) {
        let give =
            |writer: &mut nnhal::InputWriter<'_>| array::pieces(array, |piece| writer.write(piece));
        return Ok(runner.set_input_with(index, shape, give)?);
    }
    // It is converted, which needs all of it.
    let mut bytes = Vec::new();
    let whole = array.len() * array.dtype().itemsize();
    let too_large = || nnhal::Error::TooLarge { data_type, shape: shape.to_vec() };
    bytes.try_reserve_exact(whole).map_err(|_| too_large())?;
    array::pieces(array, |piece| {
        bytes.extend_from_slice(piece);
        Ok::<_, Failure>(())
    })?;
    Ok(runner.set_input(index, TensorView::new(data_type, shape, &bytes)?)?)
}

/// Fewer bytes are copied in less than lending them takes.
const LEAST_LENT: usize = 64 << 10;

/// An input's array, lent to a run, if it is large, and what the model takes as it is.
fn lend_input<'py>(
    runner: &mut nnhal::Runner,
    index: usize,
    array: &Bound<'py, PyUntypedArray>,
) -> Outcome<Option<LentArray<'py>>> {
    let is_large = array.len() * array.dtype().itemsize() >= LEAST_LENT;
    let is_right = is_large && runner.takes_lent_input(index) && is_exactly(runner, index, array)?;
    Ok(is_right.then(|| LentArray::input(array)).flatten())
}

/// The array that is given for an output, or a new one, lent to a run, if it is large and its shape is known.
fn lend_output<'py, 'o>(
    py: Python<'py>,
    runner: &nnhal::Runner,
    index: usize,
    given: Option<&Bound<'py, PyUntypedArray>>,
    others: impl Iterator<Item = &'o LentArray<'py>>,
) -> Outcome<Option<LentArray<'py>>>
where
    'py: 'o,
{
    let (Some(info), Some(shape)) =
        (runner.model().outputs().get(index), runner.lent_output_shape(index))
    else {
        return Ok(None);
    };
    let is_large = info.data_type.byte_length(&shape).is_some_and(|bytes| bytes >= LEAST_LENT);
    if !is_large || array::dtype(py, info.data_type).is_none() {
        return Ok(None);
    }
    let Some(array) = given else {
        return LentArray::output(py, info.data_type, &shape).map(Some);
    };
    let is_type = array::data_type(array).is_ok_and(|found| found == info.data_type);
    let fits = is_type && array.shape() == shape;
    Ok(fits.then(|| LentArray::given(array, others)).flatten())
}

/// Whether an array has exactly the dtype and the shape of an input.
fn is_exactly(
    runner: &nnhal::Runner,
    index: usize,
    array: &Bound<'_, PyUntypedArray>,
) -> Outcome<bool> {
    let info = runner.model().inputs().get(index);
    let is_type = match array::data_type(array) {
        Ok(data_type) => info.is_some_and(|info| info.data_type == data_type),
        Err(_) => false,
    };
    Ok(is_type && runner.input_shape(index)?.as_deref() == Some(array.shape()))
}

/// An output of the last run as a new array.
fn output<'py>(
    py: Python<'py>,
    runner: &nnhal::Runner,
    index: usize,
) -> Outcome<Bound<'py, PyUntypedArray>> {
    let info = runner.model().outputs().get(index);
    let (Some(info), Some(shape)) = (info, runner.output_shape(index)?) else {
        let (what, name) = ("value yet of output", index.to_string());
        return Err(nnhal::Error::NotFound { what, name, available: Vec::new() }.into());
    };
    array::filled(py, info.data_type, shape, |bytes| runner.read_output_bytes(index, bytes))
}

/// Copies an output of the last run into an array of the same dtype and shape. False: the array is
/// not contiguous, or read-only.
fn output_into(
    runner: &nnhal::Runner,
    index: usize,
    array: &Bound<'_, PyUntypedArray>,
) -> Outcome<bool> {
    let found = array::data_type(array)?;
    if let (Some(info), Some(shape)) =
        (runner.model().outputs().get(index), runner.output_shape(index)?)
    {
        let wrong = if found != info.data_type {
            Some(nnhal::Error::Type { found, expected: info.data_type })
        } else if shape != array.shape() {
            let expected = shape.iter().copied().map(Some).collect();
            Some(nnhal::Error::Shape { found: array.shape().to_vec(), expected })
        } else {
            None
        };
        if let Some(wrong) = wrong {
            let what = format!("the array for output {}: {wrong}", info.name);
            return Err(PyValueError::new_err(what).into());
        }
    }
    match array::with_bytes_mut(array, |bytes| runner.read_output_bytes(index, bytes)) {
        Some(outcome) => outcome.map(|()| true).map_err(Into::into),
        None => Ok(false),
    }
}

/// A list of arrays, where `None` stands for one that is to be made.
type Arrays<'py> = Vec<Option<Bound<'py, PyUntypedArray>>>;

#[pymethods]
impl Session {
    /// Runs the model: an array for each input, in order. Gives an array for each output, or the
    /// one of `out` that it was written into; `None` for one of those that cannot be written as one
    /// piece of memory, whose value is in the second list.
    #[pyo3(signature = (inputs, out=None, timeout=None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        inputs: Vec<Bound<'py, PyUntypedArray>>,
        out: Option<Arrays<'py>>,
        timeout: Option<f64>,
    ) -> Outcome<Vec<Bound<'py, PyUntypedArray>>> {
        let timeout = timeout.map(seconds).transpose()?;
        let options = RunOptions { timeout, ..RunOptions::default() };
        self.with_runner(py, &inputs, |runner| {
            // Where an input has no elements, nothing is run.
            let lends = inputs.iter().all(|array| array.len() > 0);
            let mut lent_inputs = Vec::with_capacity(inputs.len());
            for (index, array) in inputs.iter().enumerate() {
                let lent = lends.then(|| lend_input(runner, index, array)).transpose()?.flatten();
                if lent.is_none() {
                    write(runner, index, array)?;
                }
                lent_inputs.push(lent);
            }
            let count = runner.model().outputs().len();
            let given = |index: usize| out.as_ref().and_then(|out| out.get(index)?.as_ref());
            let mut lent_outputs: Vec<Option<LentArray<'py>>> = Vec::with_capacity(count);
            for index in 0..count {
                let others = lent_inputs.iter().chain(&lent_outputs).flatten();
                let lend = || lend_output(py, runner, index, given(index), others);
                let lent = lends.then(lend).transpose()?.flatten();
                lent_outputs.push(lent);
            }
            let [of_inputs, of_outputs] = [&lent_inputs, &lent_outputs].map(|lent| {
                lent.iter().map(|it| it.as_ref().map(|it| it.memory().clone())).collect::<Vec<_>>()
            });
            if of_inputs.iter().chain(&of_outputs).any(Option::is_some) {
                py.detach(|| runner.run_in(&options, &of_inputs, &of_outputs, None))?;
            } else {
                py.detach(|| runner.run_with(&options))?;
            }
            // All loans end before anything is copied.
            drop(lent_inputs);
            let in_place: Vec<_> =
                lent_outputs.into_iter().map(|lent| lent.map(LentArray::into_array)).collect();
            let mut outputs = Vec::with_capacity(count);
            for (index, in_place) in in_place.into_iter().enumerate() {
                outputs.push(match (in_place, given(index)) {
                    (Some(array), _) => array,
                    (None, Some(array)) => {
                        if !output_into(runner, index, array)? {
                            let value = output(py, runner, index)?;
                            let numpy = py.import("numpy")?;
                            numpy.call_method1("copyto", (array, value))?;
                        }
                        array.clone()
                    }
                    (None, None) => output(py, runner, index)?,
                });
            }
            Ok(outputs)
        })
    }

    /// Memory for runs.
    fn runner(&self) -> Outcome<Runner> {
        Ok(Runner(Mutex::new(self.base.session.runner()?)))
    }

    /// Sets the variables to what they are at first.
    fn reset(&self, py: Python<'_>) -> Outcome {
        if let Some(stream) = &self.base.stream
            && let Some(runner) = &mut *lock_attached(py, stream)
        {
            runner.reset()?;
        }
        Ok(())
    }

    /// The steps of a run with their median times, a dictionary each.
    fn profile<'py>(
        &self,
        py: Python<'py>,
        inputs: Vec<Bound<'py, PyUntypedArray>>,
        warmup: usize,
        runs: usize,
    ) -> Outcome<Bound<'py, PyList>> {
        let tensors = inputs.iter().map(copied).collect::<Outcome<Vec<_>>>()?;
        let profile = py.detach(|| self.base.session.profile(&tensors, warmup, runs))?;
        let total = profile.total().as_secs_f64();
        let list = PyList::empty(py);
        for step in &profile.steps {
            let dict = PyDict::new(py);
            let origin = step.origin.as_ref();
            dict.set_item("step", list.len())?;
            dict.set_item("operation", step.step.place.to_string())?;
            dict.set_item("operator", origin.map(|it| &it.operator))?;
            dict.set_item("operator_index", origin.and_then(|it| it.index))?;
            dict.set_item("kernel", &step.step.kernel)?;
            dict.set_item("shape", &step.step.dimensions)?;
            let time = step.time.map(|time| time.as_secs_f64());
            dict.set_item("time_us", time.map(|time| time * 1e6))?;
            dict.set_item("share", time.map(|time| if total > 0.0 { time / total } else { 0.0 }))?;
            dict.set_item("arithmetic", step.step.arithmetic)?;
            dict.set_item("bytes", step.step.bytes)?;
            list.append(dict)?;
        }
        Ok(list)
    }

    #[getter]
    fn device(&self) -> &str {
        self.base.session.device().name()
    }

    /// Seconds.
    #[getter]
    fn preparing(&self) -> f64 {
        self.base.session.preparing().as_secs_f64()
    }

    #[getter]
    fn is_from_cache(&self) -> bool {
        self.base.session.is_from_cache()
    }
}

/// An array as a tensor of its own.
pub(crate) fn copied(array: &Bound<'_, PyUntypedArray>) -> Outcome<nnhal::Tensor> {
    let data_type = array::data_type(array)?;
    let mut tensor = nnhal::Tensor::zeros(data_type, array.shape())?;
    let bytes = tensor.as_bytes_mut();
    let mut end = 0;
    array::pieces(array, |piece| {
        bytes[end..end + piece.len()].copy_from_slice(piece);
        end += piece.len();
        Ok::<_, Failure>(())
    })?;
    Ok(tensor)
}

impl Session {
    pub(crate) fn new(session: nnhal::Session, options: nnhal::SessionOptions) -> Self {
        let base = Arc::new(Variant::new(session, Vec::new()));
        Self { base, options, variants: Mutex::default() }
    }

    pub(crate) fn library(&self) -> &nnhal::Session {
        &self.base.session
    }

    /// Calls with a runner for inputs of these shapes.
    fn with_runner<'py, T>(
        &self,
        py: Python<'py>,
        inputs: &[Bound<'py, PyUntypedArray>],
        call: impl FnOnce(&mut nnhal::Runner) -> Outcome<T>,
    ) -> Outcome<T> {
        let model = self.base.session.model();
        let expected = model.inputs().len();
        if inputs.len() != expected {
            return Err(nnhal::Error::InputCount { found: inputs.len(), expected }.into());
        }
        let variant = if model.has_example_shapes() { self.variant(py, inputs)? } else { None };
        let variant = variant.as_ref().unwrap_or(&self.base);
        if let Some(stream) = &variant.stream {
            let mut stream = lock_attached(py, stream);
            let runner = match &mut *stream {
                Some(runner) => runner,
                none => none.insert(variant.session.runner()?),
            };
            return call(runner);
        }
        let idle = lock(&variant.idle).pop();
        let mut runner = match idle {
            Some(runner) => runner,
            None => variant.session.runner()?,
        };
        let outcome = call(&mut runner);
        lock(&variant.idle).push(runner);
        outcome
    }

    /// The model prepared for the shapes of these arrays; `None` if they are those that it is prepared
    /// for already.
    fn variant(
        &self,
        py: Python<'_>,
        inputs: &[Bound<'_, PyUntypedArray>],
    ) -> Outcome<Option<Arc<Variant>>> {
        let model = self.base.session.model();
        let given = model.inputs().iter().zip(inputs);
        let shapes: Vec<_> = given.map(|(info, it)| info.prepared_lengths(it.shape())).collect();
        if model.inputs().iter().zip(&shapes).all(|(info, shape)| info.example_shape == *shape) {
            return Ok(None);
        }
        let mut variants = lock_attached(py, &self.variants);
        if let Some(at) = variants.iter().position(|variant| variant.shapes == shapes) {
            variants[at..].rotate_left(1);
            return Ok(variants.last().cloned());
        }
        let wanted: Vec<_> = shapes.iter().cloned().map(Some).collect();
        let options = self.options.clone();
        let session = model.with_input_shapes(&wanted, true)?.session(options)?;
        let variant = Arc::new(Variant::new(session, shapes));
        if variants.len() == MOST_VARIANTS {
            variants.remove(0);
        }
        variants.push(Arc::clone(&variant));
        Ok(Some(variant))
    }
}

impl Variant {
    fn new(session: nnhal::Session, shapes: Vec<Vec<usize>>) -> Self {
        let stream = session.model().is_stateful().then(Mutex::default);
        Self { shapes, session, idle: Mutex::default(), stream }
    }
}

/// What each operand of the main subgraph held.
#[derive(Default)]
struct Recorder(Mutex<HashMap<u32, Recorded>>);

struct Recorded {
    data_type: DataType,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Recorded {
    /// 0 for each element of an operand whose shape is known.
    fn zeros(operand: &Operand) -> Option<Self> {
        let data_type = DataType::of_operand(operand.operand_type)?;
        let shape: Vec<usize> = operand.dimensions.iter().map(|it| *it as usize).collect();
        let length = data_type.byte_length(&shape).filter(|_| operand.has_known_dimensions())?;
        Some(Self { data_type, shape, bytes: vec![0; length] })
    }
}

impl Observer for Recorder {
    fn output(&self, output: &ObservedOutput<'_>) {
        let data_type = DataType::of_operand(output.operand_type);
        if let (SubgraphName::Main, Some(data_type)) = (output.place.subgraph, data_type) {
            let shape = output.dimensions.iter().map(|length| *length as usize).collect();
            let recorded = Recorded { data_type, shape, bytes: output.bytes.to_vec() };
            lock(&self.0).insert(output.operand, recorded);
        }
    }
}

/// The variables of a model as operands of its main subgraph.
fn states(runner: &nnhal::Runner) -> Outcome<HashMap<u32, Recorded>> {
    let model = runner.model();
    let main = &model.hal().main;
    let mut all = HashMap::new();
    for (at, state) in model.states().iter().enumerate() {
        let Some(index) = main.inputs.get(state.input).copied() else { continue };
        let Some(mut recorded) = Recorded::zeros(&main.operands[index as usize]) else { continue };
        runner.read_state(at, &mut recorded.bytes)?;
        all.insert(index, recorded);
    }
    Ok(all)
}

/// The value of an operand that no operation gives: an input's, or what the import has computed.
fn known_before(runner: &nnhal::Runner, operand: u32) -> Outcome<Option<Recorded>> {
    let model = runner.model().hal();
    let main = &model.main;
    if let Some(at) = main.inputs.iter().position(|input| *input == operand) {
        if at >= runner.model().inputs().len() {
            return Ok(None);
        }
        let tensor = runner.input(at)?;
        let (data_type, shape) = (tensor.data_type(), tensor.shape().to_vec());
        return Ok(Some(Recorded { data_type, shape, bytes: tensor.as_bytes().to_vec() }));
    }
    let operand = &main.operands[operand as usize];
    let Some(mut recorded) = Recorded::zeros(operand) else { return Ok(None) };
    let offset = operand.location.offset as usize;
    match operand.lifetime {
        OperandLifeTime::ConstantCopy => {
            let all = offset..offset.saturating_add(recorded.bytes.len());
            let Some(bytes) = model.operand_values.get(all) else { return Ok(None) };
            recorded.bytes.copy_from_slice(bytes);
        }
        OperandLifeTime::ConstantReference => {
            let Some(pool) = model.pools.get(operand.location.pool_index as usize) else {
                return Ok(None);
            };
            let view = pool.view().map_err(nnhal::Error::from)?;
            view.read(offset as u64, &mut recorded.bytes).map_err(nnhal::Error::from)?;
        }
        _ => return Ok(None),
    }
    Ok(Some(recorded))
}

#[pymethods]
impl Runner {
    /// Writes an input. Real numbers are rounded or quantized to what the model takes.
    fn set_input(
        &self,
        py: Python<'_>,
        index: usize,
        array: &Bound<'_, PyUntypedArray>,
    ) -> Outcome {
        write(&mut lock_attached(py, &self.0), index, array)
    }

    /// Writes an input if the array has exactly its dtype and shape; false if not.
    fn set_input_exactly(
        &self,
        py: Python<'_>,
        index: usize,
        array: &Bound<'_, PyUntypedArray>,
    ) -> Outcome<bool> {
        let mut runner = lock_attached(py, &self.0);
        if !is_exactly(&runner, index, array)? {
            return Ok(false);
        }
        write(&mut runner, index, array).map(|()| true)
    }

    /// Gives an input a shape.
    fn resize_input(&self, py: Python<'_>, index: usize, shape: Vec<usize>) -> Outcome {
        Ok(lock_attached(py, &self.0).resize_input(index, &shape)?)
    }

    fn input_shape(&self, py: Python<'_>, index: usize) -> Outcome<Option<Vec<usize>>> {
        Ok(lock_attached(py, &self.0).input_shape(index)?)
    }

    fn output_shape(&self, py: Python<'_>, index: usize) -> Outcome<Option<Vec<usize>>> {
        Ok(lock_attached(py, &self.0).output_shape(index)?.map(<[usize]>::to_vec))
    }

    /// Runs the model.
    fn run(&self, py: Python<'_>) -> Outcome {
        Ok(py.detach(|| lock(&self.0).run())?)
    }

    /// Runs the model, and gives what tensors held, by their index in the file.
    fn run_recorded<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyDict>> {
        let recorder = Recorder::default();
        let before = states(&lock_attached(py, &self.0))?;
        py.detach(|| lock(&self.0).run_observed(&RunOptions::default(), &recorder))?;
        let mut values = recorder.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        values.extend(before);
        let runner = lock_attached(py, &self.0);
        let model = runner.model();
        let dict = PyDict::new(py);
        for info in model.tensors().iter().filter(|info| info.stored.is_none()) {
            let Some(operand) = model.operand(info.index) else { continue };
            if !values.contains_key(&operand)
                && let Some(known) = known_before(&runner, operand)?
            {
                values.insert(operand, known);
            }
            let Some(Recorded { data_type, shape, bytes }) = values.get(&operand) else { continue };
            let is_scalar = info.shape.is_empty() && **shape == [1];
            let shape = if is_scalar { &[][..] } else { shape };
            let array = array::filled(py, *data_type, shape, |all| {
                all.copy_from_slice(bytes);
                Ok(())
            })?;
            let array = match array::dtype(py, info.data_type) {
                Some(dtype) if info.data_type != *data_type => {
                    array.call_method1("astype", (dtype,))?
                }
                _ => array.into_any(),
            };
            dict.set_item(info.index, array)?;
        }
        Ok(dict)
    }

    /// An output of the last run.
    fn output<'py>(&self, py: Python<'py>, index: usize) -> Outcome<Bound<'py, PyUntypedArray>> {
        output(py, &lock_attached(py, &self.0), index)
    }

    /// Copies an output of the last run into an array.
    fn output_into(
        &self,
        py: Python<'_>,
        index: usize,
        array: &Bound<'_, PyUntypedArray>,
    ) -> Outcome<bool> {
        output_into(&lock_attached(py, &self.0), index, array)
    }

    /// An input as it is now.
    fn input<'py>(&self, py: Python<'py>, index: usize) -> Outcome<Bound<'py, PyUntypedArray>> {
        let tensor = lock_attached(py, &self.0).input(index)?;
        array::filled(py, tensor.data_type(), tensor.shape(), |bytes| {
            bytes.copy_from_slice(tensor.as_bytes());
            Ok(())
        })
    }

    /// Copies a variable into an array of its size.
    fn read_state(
        &self,
        py: Python<'_>,
        state: usize,
        array: &Bound<'_, PyUntypedArray>,
    ) -> Outcome {
        let runner = lock_attached(py, &self.0);
        let read = array::with_bytes_mut(array, |bytes| runner.read_state(state, bytes));
        Ok(read.ok_or_else(|| PyValueError::new_err(NOT_CONTIGUOUS))??)
    }

    /// Gives a variable the value of an array of its size.
    fn write_state(
        &self,
        py: Python<'_>,
        state: usize,
        array: &Bound<'_, PyUntypedArray>,
    ) -> Outcome {
        let mut runner = lock_attached(py, &self.0);
        let written = array::with_bytes(array, |bytes| runner.write_state(state, bytes));
        Ok(written.ok_or_else(|| PyValueError::new_err(NOT_CONTIGUOUS))??)
    }

    /// Sets the variables to what they are at first.
    fn reset(&self, py: Python<'_>) -> Outcome {
        Ok(lock_attached(py, &self.0).reset()?)
    }

    /// Sets the variable tensors to 0, not resource variables.
    fn reset_variable_tensors(&self, py: Python<'_>) -> Outcome {
        Ok(lock_attached(py, &self.0).reset_variable_tensors()?)
    }

    /// Shares resource variables with other runners of the file.
    fn share(&self, py: Python<'_>, variables: &Variables) -> Outcome {
        Ok(lock_attached(py, &self.0).share(&variables.0)?)
    }
}

/// Resource variables that runners share.
#[pyclass(frozen, module = "nnhal._nnhal")]
#[derive(Default)]
pub(crate) struct Variables(nnhal::Variables);

#[pymethods]
impl Variables {
    #[new]
    fn new() -> Self {
        Self::default()
    }
}
