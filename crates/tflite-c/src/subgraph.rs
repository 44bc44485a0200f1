//! [`Subgraph`]: a part of a model with its tensors, prepared for the shapes that they have.

use crate::abi::{TfLiteStatus, TfLiteTensor, allocation};
use crate::border::{Failure, Outcome};
use crate::options::Options;
use crate::tensor::Tensor;
use nnhal::hal::{Cancellation, Device};
use nnhal::{
    Model, ModelFile, RunOptions, Runner, SessionOptions, TensorInfo, TensorView, Variables,
};
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// A subgraph that runs.
pub(crate) struct Subgraph {
    file: Arc<ModelFile>,
    /// Which of the file it is.
    index: usize,
    /// For the shapes of the file's example, if it was imported for these.
    model: Option<Model>,
    infos: Vec<TensorInfo>,
    /// By input and output: indexes of tensors.
    arguments: (Vec<usize>, Vec<usize>),
    /// The next one is tried where one refuses the model.
    devices: Vec<Arc<dyn Device>>,
    /// By index; made when somebody asks.
    tensors: Vec<Option<Arc<Tensor>>>,
    inputs: Vec<Arc<Tensor>>,
    outputs: Vec<Arc<Tensor>>,
    /// Results of operators that only signatures call outputs, and their positions among the outputs of the prepared model.
    further_outputs: Vec<(usize, Arc<Tensor>)>,
    /// Of the whole interpreter.
    variables: Variables,
    /// Whether runs share them, which copies their values each time.
    is_shared: bool,
    prepared: Option<Prepared>,
    /// Whether tensors have memory for the shapes that they have now.
    is_allocated: bool,
    /// Variable tensors that the program has asked for: by state, with their elements.
    shown: Vec<(usize, Arc<Tensor>)>,
}

impl fmt::Debug for Subgraph {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let devices: Vec<_> = self.devices.iter().map(|device| device.name()).collect();
        formatter
            .debug_struct("Subgraph")
            .field("index", &self.index)
            .field("devices", &devices)
            .field("is_allocated", &self.is_allocated)
            .finish_non_exhaustive()
    }
}

/// The model for known shapes.
#[derive(Debug)]
struct Prepared {
    shapes: Vec<Vec<usize>>,
    runner: Runner,
}

impl Prepared {
    fn has_resource_variables(&self) -> bool {
        self.runner.model().states().iter().any(|state| state.name.is_some())
    }

    /// Where a tensor is among those that keep their value, if it does.
    fn state(&self, index: usize) -> Option<usize> {
        let model = self.runner.model();
        (0..model.states().len()).find(|state| model.state_tensor(*state) == Some(index))
    }
}

impl Subgraph {
    pub(crate) fn new(
        file: &Arc<ModelFile>,
        index: usize,
        model: Option<Model>,
        options: &Options,
        variables: &Variables,
    ) -> Outcome<Self> {
        let most = i32::try_from(nnhal_settings::MOST_THREADS).unwrap_or(i32::MAX);
        let threads = match options.threads {
            -1 => 0,
            given if given < -1 => {
                return Err(Failure::new(format!("the number of threads is {given}")));
            }
            given => usize::try_from(given.clamp(1, most)).unwrap_or(1),
        };
        let wanted = nnhal_settings::DEVICES.read().map_err(nnhal::Error::from)?;
        let names = wanted.unwrap_or_else(|| nnhal::devices::DEFAULT.to_owned());
        let devices = nnhal::devices::open_list(&names, NonZeroUsize::new(threads))?;
        if devices.is_empty() {
            return Err(Failure::new(format!(
                "NNHAL_DEVICES is {names}, and there is no such device"
            )));
        }
        let infos = file.tensors(index)?;
        let description = file.subgraph(index)?;
        let mut subgraph = Self {
            file: Arc::clone(file),
            index,
            model,
            tensors: vec![None; infos.len()],
            infos,
            arguments: (description.inputs.clone(), description.outputs.clone()),
            devices,
            inputs: Vec::new(),
            outputs: Vec::new(),
            further_outputs: Vec::new(),
            variables: variables.clone(),
            is_shared: false,
            prepared: None,
            is_allocated: false,
            shown: Vec::new(),
        };
        let (inputs, outputs) = subgraph.arguments.clone();
        subgraph.inputs = inputs.iter().map(|it| subgraph.tensor(*it)).collect::<Outcome<_>>()?;
        subgraph.outputs = outputs.iter().map(|it| subgraph.tensor(*it)).collect::<Outcome<_>>()?;
        Ok(subgraph)
    }

    /// Indexes of inputs among all tensors.
    pub(crate) fn input_indices(&self) -> &[usize] {
        &self.arguments.0
    }

    /// Indexes of outputs among all tensors.
    pub(crate) fn output_indices(&self) -> &[usize] {
        &self.arguments.1
    }

    pub(crate) fn infos(&self) -> &[TensorInfo] {
        &self.infos
    }

    pub(crate) fn inputs(&self) -> &[Arc<Tensor>] {
        &self.inputs
    }

    pub(crate) fn outputs(&self) -> &[Arc<Tensor>] {
        &self.outputs
    }

    /// A tensor by its index; a constant with its elements.
    pub(crate) fn tensor(&mut self, index: usize) -> Outcome<Arc<Tensor>> {
        let count = self.tensors.len();
        let Some(known) = self.tensors.get(index) else {
            return Err(Failure::new(format!("there is no tensor {index}, there are {count}")));
        };
        if let Some(tensor) = known {
            return Ok(Arc::clone(tensor));
        }
        let info = &self.infos[index];
        let tensor = Tensor::new(info)?;
        // Sparse ones and those of packed types have no elements as C expects them.
        if info.stored.is_some()
            && let Ok(value) = self.file.constant(info)
        {
            tensor.allocate(allocation::READ_ONLY)?;
            tensor.with_bytes_mut(|bytes| bytes.copy_from_slice(value.as_bytes()))?;
        }
        self.tensors[index] = Some(Arc::clone(&tensor));
        Ok(tensor)
    }

    /// Indexes of the variable tensors.
    pub(crate) fn variable_tensors(&self) -> Vec<usize> {
        let infos = self.infos.iter();
        infos.filter(|info| info.is_variable).map(|info| info.index).collect()
    }

    /// A tensor by its index, with the value that it keeps if it is a variable.
    pub(crate) fn shown_tensor(&mut self, index: usize) -> Outcome<*mut TfLiteTensor> {
        let tensor = self.tensor(index)?;
        if let Some(prepared) = &self.prepared
            && let Some(state) = prepared.state(index)
            && !self.shown.iter().any(|(known, _)| *known == state)
        {
            tensor.allocate(allocation::PERSISTENT)?;
            tensor.with_bytes_mut(|bytes| prepared.runner.read_state(state, bytes))??;
            self.shown.push((state, Arc::clone(&tensor)));
        }
        Ok(tensor.pointer())
    }

    /// Gives an input another shape. Strictly, only lengths that the file leaves open may change.
    pub(crate) fn resize(&mut self, input: usize, shape: &[i32], is_strict: bool) -> Outcome {
        let tensor = &self.inputs[input];
        let info = &self.infos[self.arguments.0[input]];
        let name = || info.shown_name();
        let lengths = shape.iter().map(|length| usize::try_from(*length));
        let shape: Vec<usize> = lengths.collect::<Result<_, _>>().map_err(|_| {
            Failure::new(format!("input {}: the shape {shape:?} has a negative length", name()))
        })?;
        let now = tensor.shape()?;
        if now == shape && !tensor.get().data.is_null() {
            return Ok(());
        }
        if is_strict {
            let may_be = match &info.shape_signature {
                Some(signature) if !signature.is_empty() => signature.clone(),
                _ => now.iter().copied().map(Some).collect(),
            };
            let fits = may_be.len() == shape.len()
                && may_be
                    .iter()
                    .zip(&shape)
                    .all(|(known, length)| known.is_none_or(|it| it == *length));
            if !fits {
                let what = format!("input {}: the shape {shape:?} does not fit {may_be:?}", name());
                return Err(Failure::new(what));
            }
        }
        tensor.reshape(&shape)?;
        self.is_allocated = false;
        Ok(())
    }

    /// From now on resource variables are shared with the interpreter's other subgraphs.
    pub(crate) fn share(&mut self) -> Outcome {
        if !std::mem::replace(&mut self.is_shared, true)
            && let Some(prepared) = &mut self.prepared
        {
            prepared.runner.share(&self.variables)?;
        }
        Ok(())
    }

    /// Memory that the program gives for a tensor. `AllocateTensors` comes after it.
    pub(crate) fn adopt(
        &mut self,
        index: usize,
        (data, bytes): (*mut std::ffi::c_void, usize),
        may_straddle: bool,
    ) -> Outcome {
        let tensor = self.tensor(index)?;
        let is_argument =
            self.inputs.iter().chain(&self.outputs).any(|it| Arc::ptr_eq(it, &tensor));
        if !is_argument {
            let what =
                format!("tensor {index} is no input or output, so its memory cannot be given");
            return Err(Failure::new(what));
        }
        tensor.adopt(data, bytes, may_straddle)?;
        self.is_allocated = false;
        Ok(())
    }

    /// Prepares the model for the shapes of its inputs, and gives tensors memory.
    pub(crate) fn allocate(&mut self) -> Outcome {
        if self.is_allocated {
            return Ok(());
        }
        for index in self.arguments.0.iter().chain(&self.arguments.1) {
            let info = &self.infos[*index];
            if info.data_type.size().is_none() {
                let (name, found) = (info.shown_name(), info.data_type);
                let what =
                    format!("tensor {index} ({name}) is of type {found}, which is not supported");
                return Err(Failure::new(what));
            }
        }
        let shapes: Vec<Vec<usize>> =
            self.inputs.iter().map(|tensor| tensor.shape()).collect::<Outcome<_>>()?;
        if self.prepared.as_ref().is_none_or(|prepared| prepared.shapes != shapes) {
            // What was prepared before is not needed meanwhile; its resource variables stay.
            if self.prepared.as_ref().is_some_and(|prepared| prepared.has_resource_variables()) {
                self.share()?;
            }
            self.prepared = None;
            self.shown.clear();
            self.prepared = Some(self.prepare(shapes)?);
        }
        let Some(prepared) = &self.prepared else { return Ok(()) };
        let model = prepared.runner.model().clone();
        for tensor in &self.inputs {
            tensor.allocate(allocation::ARENA)?;
        }
        self.further_outputs.clear();
        for (position, info) in model.outputs().iter().enumerate().skip(model.own_outputs()) {
            if !self.arguments.0.contains(&info.index) {
                let tensor = self.tensor(info.index)?;
                self.further_outputs.push((position, tensor));
            }
        }
        for (position, tensor) in self.all_outputs() {
            let Some(info) = model.outputs().get(position) else { continue };
            match info.known_shape() {
                Some(shape) => {
                    tensor.reshape(&shape)?;
                    tensor.allocate(allocation::ARENA)?;
                }
                None => tensor.make_dynamic()?,
            }
        }
        self.is_allocated = true;
        Ok(())
    }

    fn prepare(&self, shapes: Vec<Vec<usize>>) -> Outcome<Prepared> {
        let fits = |model: &Model| {
            let mut inputs = model.inputs().iter().zip(&shapes);
            inputs.all(|(info, shape)| info.known_shape().as_ref() == Some(shape))
        };
        // Shapes of results follow from those of inputs, if these are all known.
        let model = match self.model.as_ref().filter(|model| fits(model)) {
            Some(model) => model.clone(),
            None => {
                let wanted: Vec<_> = shapes.iter().cloned().map(Some).collect();
                self.file.model(self.index, &wanted, false)?
            }
        };
        let mut runner = self.runner(&model)?;
        for (input, shape) in shapes.iter().enumerate() {
            if runner.input_shape(input)?.as_ref() != Some(shape) {
                runner.resize_input(input, shape)?;
            }
        }
        if self.is_shared {
            runner.share(&self.variables)?;
        }
        Ok(Prepared { shapes, runner })
    }

    /// On the first device that takes the model.
    fn runner(&self, model: &Model) -> Outcome<Runner> {
        let mut refusals = Vec::new();
        for device in &self.devices {
            let options = SessionOptions::new().on(Arc::clone(device));
            let runner = model.session(options).and_then(|session| session.runner());
            match runner {
                Ok(runner) => return Ok(runner),
                Err(error) => refusals.push(error.to_string()),
            }
        }
        Err(Failure::new(refusals.join("; ")))
    }

    /// All tensors that a run gives values, with their positions among the outputs of the prepared model.
    fn all_outputs(&self) -> impl Iterator<Item = (usize, &Arc<Tensor>)> {
        let further = self.further_outputs.iter().map(|(position, tensor)| (*position, tensor));
        self.outputs.iter().enumerate().chain(further)
    }

    /// Runs the model with what inputs hold, and leaves the results in the outputs.
    pub(crate) fn invoke(&mut self, cancellation: Option<Cancellation>) -> Outcome {
        let prepared = self.prepared.as_mut().filter(|_| self.is_allocated);
        let Some(Prepared { runner, shapes }) = prepared else {
            return Err(Failure::new(
                "AllocateTensors comes first, also after inputs were given other shapes",
            ));
        };
        for (input, (tensor, shape)) in self.inputs.iter().zip(shapes).enumerate() {
            tensor.with_bytes(|bytes| {
                runner.set_input(input, TensorView::new(tensor.data_type(), shape, bytes)?)
            })??;
        }
        for (state, tensor) in &self.shown {
            tensor.with_bytes(|bytes| runner.write_state(*state, bytes))??;
        }
        let options = RunOptions { cancellation: cancellation.clone(), ..RunOptions::default() };
        if let Err(error) = runner.run_with(&options) {
            let is_cancelled = cancellation.is_some_and(|it| it.is_cancelled());
            return Err(if is_cancelled {
                Failure::of(TfLiteStatus::Cancelled, "the run was cancelled")
            } else {
                error.into()
            });
        }
        for (output, tensor) in self
            .outputs
            .iter()
            .enumerate()
            .chain(self.further_outputs.iter().map(|(at, it)| (*at, it)))
        {
            if tensor.get().allocation_type == allocation::DYNAMIC
                && let Some(shape) = runner.output_shape(output)?
            {
                tensor.reshape(shape)?;
                tensor.allocate(allocation::DYNAMIC)?;
            }
            tensor.with_bytes_mut(|bytes| runner.read_output_bytes(output, bytes))??;
        }
        self.show_states()
    }

    /// Copies variables to where the program sees them.
    fn show_states(&self) -> Outcome {
        let Some(prepared) = &self.prepared else { return Ok(()) };
        for (state, tensor) in &self.shown {
            tensor.with_bytes_mut(|bytes| prepared.runner.read_state(*state, bytes))??;
        }
        Ok(())
    }

    /// Sets variable tensors to 0.
    pub(crate) fn reset_variables(&mut self) -> Outcome {
        if let Some(prepared) = &mut self.prepared {
            prepared.runner.reset_variable_tensors()?;
        }
        self.show_states()
    }
}
