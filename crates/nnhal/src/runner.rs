//! [`Runner`]: memory for inputs and outputs, used again by every run.

use crate::arena::Arena;
use crate::data_type::DataType;
use crate::error::{Error, Result};
use crate::info::TensorInfo;
use crate::model::Model;
use crate::options::RunOptions;
use crate::prepared::Prepared;
use crate::session::{Position, find};
use crate::tensor::{Tensor, TensorView, encode_reals, stored};
use crate::variables::{Shared, Value, Variables};
use nnhal_driver::Observer;
use nnhal_hal::{
    DataLocation, ErrorStatus, Execution, ExecutionError, Memory, Operand, Request,
    RequestArgument, RequestMemoryPool, Timing,
};
use nnhal_ops::extension::element_size;
use nnhal_tflite::State;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes first given to an output whose size is not known; the device says what it needs.
const FIRST_GUESS: usize = 4096;

/// A run is tried again so often with more room for outputs whose size is not known. A model with
/// several may learn of them one by one.
const MOST_ATTEMPTS: usize = 16;

/// Pools of a request.
const INPUTS: u32 = 0;
const OUTPUTS: u32 = 1;
const STATES: u32 = 2;

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// Runs a model again and again in memory of its own, which is shared with the device: inputs are
/// written into it, and outputs read from it. What is not written stays as it was; before anything
/// is written inputs of known shape are 0.
///
/// A stateful model's variables are the runner's: each runner of a session is a stream of its own, unless it
/// shares resource variables ([`Runner::share`]).
///
/// ```
/// # let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/digits/digits_int8.tflite");
/// let session = nnhal::Model::load(file)?.session(nnhal::SessionOptions::new())?;
/// let mut runner = session.runner()?;
/// for brightness in [0.0_f32, 0.5, 1.0] {
///     runner.set_input(0, &[brightness; 64])?;
///     runner.run()?;
///     println!("{:?}", runner.output(0)?.top(1));
/// }
/// # Ok::<(), nnhal::Error>(())
/// ```
#[derive(Debug)]
pub struct Runner {
    prepared: Arc<Prepared>,
    inputs: Arena,
    outputs: Arena,
    /// Two slots for each variable: one is read and the other written, in turns.
    states: Arena,
    /// The variables that other runners have too.
    variables: Option<Variables>,
    /// Tells it from other runners.
    id: u64,
    request: Request,
    /// By input: its dimensions as the device takes them; `None` where they are not known yet.
    input_shapes: Vec<Option<Vec<u32>>>,
    /// By output: its shape, empty before the first run.
    output_shapes: Vec<Vec<usize>>,
    has_run: bool,
    timing: Timing,
    /// For values of other types than where they go.
    scratch: Vec<u8>,
    /// By input and output: the caller's memory, during a run in it.
    lent: (Vec<Option<Memory>>, Vec<Option<Memory>>),
    /// By input: whether the caller of a session has given it.
    given: Vec<bool>,
}

impl Runner {
    pub(crate) fn new(prepared: Arc<Prepared>) -> Result<Self> {
        let model = prepared.model.clone();
        let (inputs, outputs) = (model.inputs().len(), model.outputs().len());
        let known = |operand: &Operand| -> Option<Vec<u32>> {
            operand.has_known_dimensions().then(|| operand.dimensions.clone())
        };
        let input_shapes: Vec<_> = prepared.inputs[..inputs].iter().map(known).collect();
        let room = |operand: &Operand| {
            known(operand).and_then(|shape| byte_size(operand, &shape)).unwrap_or(FIRST_GUESS)
        };
        let capacities =
            |operands: &[Operand]| -> Vec<usize> { operands.iter().map(room).collect() };
        let states: Vec<usize> = model
            .states()
            .iter()
            .flat_map(|state| [room(&prepared.inputs[state.input]); 2])
            .collect();
        let arguments = |count: usize| vec![RequestArgument::default(); count];
        let mut runner = Self {
            inputs: Arena::new(&capacities(&prepared.inputs[..inputs]))?,
            outputs: Arena::new(&capacities(&prepared.outputs[..outputs]))?,
            states: Arena::new(&states)?,
            variables: None,
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            request: Request {
                inputs: arguments(prepared.inputs.len()),
                outputs: arguments(prepared.outputs.len()),
                pools: Vec::new(),
            },
            input_shapes,
            output_shapes: vec![Vec::new(); outputs],
            has_run: false,
            timing: Timing::NONE,
            scratch: Vec::new(),
            lent: (Vec::new(), Vec::new()),
            given: vec![false; inputs],
            prepared,
        };
        runner.place_states();
        runner.place_arguments();
        runner.reset()?;
        Ok(runner)
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.prepared.model
    }

    /// Writes an input: elements of its own type, or real numbers (of any type of floating point),
    /// which are then rounded or quantized to what the model takes. Where the model leaves lengths
    /// open, the value's shape counts.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Input`], with what is wrong about it. Then it stays as it was.
    pub fn set_input<'a, 'p>(
        &mut self,
        input: impl Into<Position<'p>>,
        value: impl Into<TensorView<'a>>,
    ) -> Result<()> {
        let index = find("input", self.prepared.model.inputs(), &input.into())?;
        self.write(index, &value.into())
    }

    /// No input has been given.
    pub(crate) fn begin_inputs(&mut self) {
        self.given.fill(false);
    }

    /// Writes an input that has not been given yet.
    pub(crate) fn write_once(&mut self, index: usize, value: &TensorView<'_>) -> Result<()> {
        let expected = self.given.len();
        let Some(given) = self.given.get_mut(index) else {
            return Err(Error::InputCount { found: index + 1, expected });
        };
        if std::mem::replace(given, true) {
            let name = self.prepared.model.inputs()[index].name.clone();
            return Err(Error::Twice { name });
        }
        self.write(index, value)
    }

    /// Looks whether every input has been given.
    pub(crate) fn end_inputs(&self) -> Result<()> {
        match self.given.iter().position(|given| !given) {
            Some(missing) => {
                Err(Error::Missing { name: self.prepared.model.inputs()[missing].shown_name() })
            }
            None => Ok(()),
        }
    }

    pub(crate) fn write(&mut self, index: usize, value: &TensorView<'_>) -> Result<()> {
        let prepared = Arc::clone(&self.prepared);
        let mut scratch = std::mem::take(&mut self.scratch);
        let outcome = self.write_unnamed(&prepared, index, value, &mut scratch);
        self.scratch = scratch;
        outcome.map_err(|error| Error::input(&prepared.model.inputs()[index].name)(error))
    }

    fn write_unnamed(
        &mut self,
        prepared: &Prepared,
        index: usize,
        value: &TensorView<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        let info = &prepared.model.inputs()[index];
        let operand = &prepared.inputs[index];
        let size = value.data_type.size().unwrap_or(1);
        // Whether the shape is the one that is there is looked at first: it is, mostly.
        let is_same = match (value.shape(), &self.input_shapes[index]) {
            (None, known) => known.is_some(),
            (Some(shape), Some(known)) => is_shape(info, known, shape),
            (Some(_), None) => false,
        };
        if is_same {
            let dimensions = self.input_shapes[index].as_deref().unwrap_or_default();
            let count = element_count(dimensions);
            if count.and_then(|count| count.checked_mul(size)) != Some(value.bytes.len()) {
                let shape = shape_of(info, dimensions);
                let (data_type, found) = (value.data_type, value.bytes.len());
                return Err(Error::Elements { data_type, shape, found });
            }
        }
        let is_converted = convert(info, operand, value, scratch)?;
        let bytes = if is_converted { &**scratch } else { &*value.bytes };
        if !is_same {
            let Some(shape) = value.shape() else {
                return Err(Error::OpenShape { expected: info.shape.clone() });
            };
            let dimensions = dimensions_of(info, operand, shape)?;
            let length = bytes.len();
            if length > self.inputs.capacity(index) {
                let wanted = |slot| if slot == index { length } else { 0 };
                self.inputs.grow((0..self.input_shapes.len()).map(wanted))?;
            }
            self.inputs.write(index, bytes)?;
            self.input_shapes[index] = Some(dimensions);
            self.place_arguments();
            return Ok(());
        }
        self.inputs.write(index, bytes)
    }

    /// Writes an input of the model's own type and of this shape piece by piece, as they come out of
    /// memory that is not contiguous: `give` writes all of its bytes, row by row.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Input`]: the model takes no such shape, or other than all bytes
    /// were written, then the input has the shape and some of them; those of `give`.
    pub fn set_input_with<'p>(
        &mut self,
        input: impl Into<Position<'p>>,
        shape: &[usize],
        give: impl FnOnce(&mut InputWriter<'_>) -> Result<()>,
    ) -> Result<()> {
        let index = find("input", self.prepared.model.inputs(), &input.into())?;
        let data_type = self.prepared.model.inputs()[index].data_type;
        let name = self.prepared.model.inputs()[index].name.clone();
        let wrong = |found| {
            Error::input(&name)(Error::Elements { data_type, shape: shape.to_vec(), found })
        };
        let length = data_type.byte_length(shape).ok_or_else(|| wrong(0))?;
        let is_same = self.input_shapes[index]
            .as_deref()
            .is_some_and(|known| is_shape(&self.prepared.model.inputs()[index], known, shape));
        if !is_same {
            self.resize_input(index, shape)?;
        }
        let mut writer = InputWriter { arena: &self.inputs, slot: index, written: 0, length };
        give(&mut writer)?;
        if writer.written == length { Ok(()) } else { Err(wrong(writer.written)) }
    }

    /// Gives an input whose lengths the model leaves open a shape, before its value is written. Its
    /// elements are not said then.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Input`]: the model takes no such shape.
    pub fn resize_input<'p>(
        &mut self,
        input: impl Into<Position<'p>>,
        shape: &[usize],
    ) -> Result<()> {
        let prepared = Arc::clone(&self.prepared);
        let index = find("input", prepared.model.inputs(), &input.into())?;
        let (info, operand) = (&prepared.model.inputs()[index], &prepared.inputs[index]);
        let mut resize = || {
            let dimensions = dimensions_of(info, operand, shape)?;
            let too_large = || Error::TooLarge { data_type: info.data_type, shape: shape.to_vec() };
            let length = byte_size(operand, &dimensions).ok_or_else(too_large)?;
            if length > self.inputs.capacity(index) {
                let wanted = |slot| if slot == index { length } else { 0 };
                self.inputs.grow((0..self.input_shapes.len()).map(wanted))?;
            }
            self.input_shapes[index] = Some(dimensions);
            self.place_arguments();
            Ok(())
        };
        resize().map_err(Error::input(&info.name))
    }

    /// The shape of an input as it is now; `None` where it is not known yet.
    ///
    /// # Errors
    /// [`Error::NotFound`]
    pub fn input_shape<'p>(&self, input: impl Into<Position<'p>>) -> Result<Option<Vec<usize>>> {
        let inputs = self.prepared.model.inputs();
        let index = find("input", inputs, &input.into())?;
        let dimensions = self.input_shapes[index].as_deref();
        Ok(dimensions.map(|dimensions| shape_of(&inputs[index], dimensions)))
    }

    /// Reads an input back, as the model takes it.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Input`]: its shape is not known yet.
    pub fn input<'p>(&self, input: impl Into<Position<'p>>) -> Result<Tensor> {
        let inputs = self.prepared.model.inputs();
        let index = find("input", inputs, &input.into())?;
        let info = &inputs[index];
        let Some(dimensions) = self.input_shapes[index].as_deref() else {
            let open = Error::OpenShape { expected: info.shape.clone() };
            return Err(Error::input(&info.name)(open));
        };
        let mut tensor = Tensor::empty(info.data_type);
        read(&self.inputs, index, info, &shape_of(info, dimensions), &mut tensor)?;
        Ok(tensor)
    }

    /// Runs the model.
    ///
    /// # Errors
    /// [`Error::Input`]: the shape of an input is not known yet; [`Error::Device`]. Variables are
    /// then what they were.
    pub fn run(&mut self) -> Result<()> {
        self.run_with(&RunOptions::default())
    }

    /// Runs the model.
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub fn run_with(&mut self, options: &RunOptions) -> Result<()> {
        let options = options.for_device(&self.prepared.options);
        let prepared = Arc::clone(&self.prepared);
        self.execute(|request| prepared.program.execute(request, &options))
    }

    /// Runs the model, and shows every operation's results and how long they took.
    ///
    /// # Errors
    /// As [`Runner::run`]; [`Error::Opaque`]: the device does not show them.
    pub fn run_observed(&mut self, options: &RunOptions, observer: &dyn Observer) -> Result<()> {
        let options = options.for_device(&self.prepared.options);
        let prepared = Arc::clone(&self.prepared);
        let program = prepared.driver()?;
        self.execute(|request| program.execute_observed(request, &options, observer))
    }

    /// Runs the model with inputs and outputs in the caller's memory: that of an input holds its value as
    /// the device takes it, and that of an output takes what the run gives, each byte copied once. `None`
    /// stands for this runner's own memory. Values have the shapes that inputs have now
    /// ([`Runner::resize_input`]); with `observer`, every operation's results and times are shown to it.
    ///
    /// # Errors
    /// As [`Runner::run_observed`]; [`Error::Input`]: the memory of an input has another size than the
    /// input; [`Error::Elements`]: that of an output is not as long as what it would take.
    pub fn run_in(
        &mut self,
        options: &RunOptions,
        inputs: &[Option<Memory>],
        outputs: &[Option<Memory>],
        observer: Option<&dyn Observer>,
    ) -> Result<()> {
        let given = [inputs.len(), outputs.len()];
        let infos = [self.prepared.model.inputs(), self.prepared.model.outputs()];
        for (found, expected) in given.into_iter().zip(infos.map(<[TensorInfo]>::len)) {
            if found > expected {
                return Err(Error::InputCount { found, expected });
            }
        }
        self.check_lent(inputs, outputs)?;
        for memory in inputs.iter().chain(outputs).flatten() {
            whole(memory, 0)?;
        }
        self.lent = (inputs.to_vec(), outputs.to_vec());
        self.place_arguments();
        let options = options.for_device(&self.prepared.options);
        let prepared = Arc::clone(&self.prepared);
        let outcome = match observer {
            None => self.execute(|request| prepared.program.execute(request, &options)),
            Some(observer) => prepared.driver().and_then(|program| {
                self.execute(|request| program.execute_observed(request, &options, observer))
            }),
        };
        self.lent = (Vec::new(), Vec::new());
        self.place_arguments();
        outcome
    }

    /// Whether the caller's memory of each input has as many bytes as the input, and that of an output
    /// whose shape is known as many as the output.
    fn check_lent(&self, inputs: &[Option<Memory>], outputs: &[Option<Memory>]) -> Result<()> {
        let infos = self.prepared.model.inputs().iter().zip(&self.prepared.inputs);
        for (index, (memory, (info, operand))) in inputs.iter().zip(infos).enumerate() {
            let Some(memory) = memory else { continue };
            let shape = self.input_shapes[index].as_deref();
            let expected = shape.and_then(|shape| byte_size(operand, shape));
            if expected.map(|size| size as u64) != Some(memory.size()) {
                let found = usize::try_from(memory.size()).unwrap_or(usize::MAX);
                let shape = shape_of(info, shape.unwrap_or_default());
                let wrong = Error::Elements { data_type: info.data_type, shape, found };
                return Err(Error::input(&info.name)(wrong));
            }
        }
        let infos = self.prepared.model.outputs().iter().zip(&self.prepared.outputs);
        for (memory, (info, operand)) in outputs.iter().zip(infos) {
            let Some(memory) = memory else { continue };
            let known = operand.has_known_dimensions();
            let expected = byte_size(operand, &operand.dimensions).filter(|_| known);
            if expected.is_some_and(|size| size as u64 != memory.size()) {
                let found = usize::try_from(memory.size()).unwrap_or(usize::MAX);
                let shape = shape_of(info, &operand.dimensions);
                return Err(Error::Elements { data_type: info.data_type, shape, found });
            }
        }
        Ok(())
    }

    fn execute(
        &mut self,
        execute: impl Fn(&Request) -> Result<Execution, ExecutionError>,
    ) -> Result<()> {
        let Some(variables) = self.variables.clone() else { return self.attempt(execute) };
        let mut shared = variables.lock();
        self.take_shared(&mut shared)?;
        self.attempt(execute)?;
        self.give_shared(&mut shared)
    }

    /// Runs until outputs have room enough.
    fn attempt(
        &mut self,
        execute: impl Fn(&Request) -> Result<Execution, ExecutionError>,
    ) -> Result<()> {
        self.has_run = false;
        let inputs = self.prepared.model.inputs();
        if let Some(open) = self.input_shapes.iter().position(Option::is_none) {
            let expected = inputs[open].shape.clone();
            return Err(Error::input(&inputs[open].name)(Error::OpenShape { expected }));
        }
        for _ in 0..MOST_ATTEMPTS {
            let failed = match execute(&self.request) {
                Ok(execution) => {
                    self.conclude(&execution);
                    return Ok(());
                }
                Err(failed) => failed,
            };
            if failed.error.status() != ErrorStatus::OutputInsufficientSize {
                return Err(self.prepared.error(failed.error));
            }
            let count = self.output_shapes.len();
            let mut wanted = Vec::with_capacity(count);
            let shapes = failed.output_shapes.iter().zip(&self.prepared.outputs).take(count);
            for (shape, operand) in shapes {
                // What the caller lends does not grow.
                if let Some(Some(_)) = self.lent.1.get(wanted.len()) {
                    wanted.push(0);
                    continue;
                }
                let capacity = byte_size(operand, &shape.dimensions);
                wanted.push(capacity.ok_or_else(|| self.prepared.error(failed.error.clone()))?);
            }
            let grows = (0..wanted.len()).any(|slot| wanted[slot] > self.outputs.capacity(slot));
            if !grows {
                return Err(self.prepared.error(failed.error));
            }
            wanted.resize(count, 0);
            self.outputs.grow(wanted.into_iter())?;
            self.place_arguments();
        }
        let why = "outputs needed more room after every attempt";
        Err(self.prepared.error(nnhal_hal::Error::failure(why)))
    }

    fn conclude(&mut self, execution: &Execution) {
        let prepared = Arc::clone(&self.prepared);
        let outputs = prepared.model.outputs().iter().zip(&execution.output_shapes);
        for (known, (info, shape)) in self.output_shapes.iter_mut().zip(outputs) {
            known.clear();
            known.extend(shape_lengths(info, &shape.dimensions));
        }
        for state in prepared.model.states() {
            let read = &mut self.request.inputs[state.input].location;
            std::mem::swap(read, &mut self.request.outputs[state.output].location);
        }
        self.timing = execution.timing;
        self.has_run = true;
    }

    /// How long the last run took, if it was measured.
    pub fn timing(&self) -> Timing {
        self.timing
    }

    /// The shape of an output of the last run; `None` before the first one, and after one that failed.
    ///
    /// # Errors
    /// [`Error::NotFound`]
    pub fn output_shape<'p>(&self, output: impl Into<Position<'p>>) -> Result<Option<&[usize]>> {
        let index = find("output", self.prepared.model.outputs(), &output.into())?;
        Ok(self.has_run.then_some(&*self.output_shapes[index]))
    }

    /// An output of the last run, of the type that the model gives.
    ///
    /// # Errors
    /// [`Error::NotFound`], also before the first run and after one that failed.
    pub fn output<'p>(&self, output: impl Into<Position<'p>>) -> Result<Tensor> {
        let mut tensor = Tensor::empty(DataType::Uint8);
        self.read_output(output, &mut tensor)?;
        Ok(tensor)
    }

    /// Copies an output of the last run into a tensor, whatever that was, in its memory if that is
    /// enough.
    ///
    /// # Errors
    /// As [`Runner::output`].
    pub fn read_output<'p>(
        &self,
        output: impl Into<Position<'p>>,
        tensor: &mut Tensor,
    ) -> Result<()> {
        let outputs = self.prepared.model.outputs();
        let index = find("output", outputs, &output.into())?;
        if !self.has_run {
            let (what, name) = ("value yet of output", outputs[index].name.clone());
            return Err(Error::NotFound { what, name, available: Vec::new() });
        }
        read(&self.outputs, index, &outputs[index], &self.output_shapes[index], tensor)
    }

    /// Copies the elements of an output of the last run to where the caller wants them: exactly as
    /// many bytes, as this machine stores them.
    ///
    /// # Errors
    /// As [`Runner::output`]; [`Error::Elements`]: the output has another number of bytes.
    pub fn read_output_bytes<'p>(
        &self,
        output: impl Into<Position<'p>>,
        bytes: &mut [u8],
    ) -> Result<()> {
        let outputs = self.prepared.model.outputs();
        let index = find("output", outputs, &output.into())?;
        let (info, shape) = (&outputs[index], &self.output_shapes[index]);
        let expected = info.data_type.byte_length(shape);
        if !self.has_run || expected != Some(bytes.len()) {
            let (data_type, shape) = (info.data_type, shape.clone());
            return Err(Error::Elements { data_type, shape, found: bytes.len() });
        }
        self.outputs.read(index, bytes)
    }

    /// Copies the value of one of [`Model::states`](crate::Model::states), as the next run will find it.
    ///
    /// # Errors
    /// [`Error::State`]: there is no such state, or it has another number of bytes. [`Error::Memory`]
    pub fn read_state(&self, state: usize, bytes: &mut [u8]) -> Result<()> {
        let slot = self.checked_state(state, bytes.len())?;
        self.states.read(slot, bytes)
    }

    /// Gives one of [`Model::states`](crate::Model::states) the value that the next run will find.
    ///
    /// # Errors
    /// As [`Runner::read_state`].
    pub fn write_state(&mut self, state: usize, bytes: &[u8]) -> Result<()> {
        let slot = self.checked_state(state, bytes.len())?;
        self.states.write(slot, bytes)
    }

    fn checked_state(&self, state: usize, found: usize) -> Result<usize> {
        let count = self.prepared.model.states().len();
        if state >= count {
            return Err(Error::State(format!("there is no variable {state}, there are {count}")));
        }
        let slot = self.slot_of_state(state);
        let expected = self.states.capacity(slot);
        if found == expected {
            return Ok(slot);
        }
        Err(Error::State(format!("variable {state} has {expected} bytes, not {found}")))
    }

    /// Sets all variables to what they are at first: what the file says, else 0, of a quantized type its
    /// zero point.
    ///
    /// # Errors
    /// [`Error::Memory`]
    pub fn reset(&mut self) -> Result<()> {
        self.place_states();
        self.reset_those(|_| true)?;
        if let Some(variables) = self.variables.clone() {
            let mut shared = variables.lock();
            self.give_shared(&mut shared)?;
            shared.last = Some(self.id);
        }
        Ok(())
    }

    /// Sets the variable tensors to 0, and leaves resource variables as they are, as LiteRT's
    /// `ResetVariableTensors` does.
    ///
    /// # Errors
    /// [`Error::Memory`]
    pub fn reset_variable_tensors(&mut self) -> Result<()> {
        self.reset_those(|state| state.name.is_none())
    }

    fn reset_those(&mut self, is_meant: impl Fn(&State) -> bool) -> Result<()> {
        let prepared = Arc::clone(&self.prepared);
        for (index, state) in prepared.model.states().iter().enumerate() {
            if !is_meant(state) {
                continue;
            }
            let slot = self.slot_of_state(index);
            if let Some(initial) = &state.initial {
                self.states.write(slot, initial)?;
                continue;
            }
            let operand = &prepared.inputs[state.input];
            let length = self.states.capacity(slot);
            let is_quantized = operand.operand_type.quantized_range().is_some();
            let zero = if is_quantized { operand.zero_point } else { 0 }.to_le_bytes();
            let element = element_size(operand.operand_type).unwrap_or(1).clamp(1, 4) as usize;
            let bytes: Vec<u8> = zero[..element].iter().copied().cycle().take(length).collect();
            self.states.write(slot, &bytes)?;
        }
        Ok(())
    }

    /// Shares resource variables with other runners, by their names: with those of other signatures of the file, or
    /// for other shapes. The values are this runner's where no other has brought them.
    ///
    /// # Errors
    /// [`Error::State`]: a variable has another type or shape there. [`Error::Memory`]
    pub fn share(&mut self, variables: &Variables) -> Result<()> {
        let mut shared = variables.lock();
        let prepared = Arc::clone(&self.prepared);
        for (name, operand, slot) in self.resource_variables(&prepared) {
            match shared.values.get(name) {
                Some(value) => fits(name, operand, &value.operand)?,
                None => self.give(&mut shared, name, operand, slot)?,
            }
        }
        drop(shared);
        self.variables = Some(variables.clone());
        Ok(())
    }

    /// By resource variable: its name, its input, and the slot that the next run reads.
    fn resource_variables<'p>(
        &self,
        prepared: &'p Prepared,
    ) -> Vec<(&'p String, &'p Operand, usize)> {
        let states = prepared.model.states().iter().enumerate();
        let described = states.filter_map(|(index, state)| {
            let operand = &prepared.inputs[state.input];
            Some((state.name.as_ref()?, operand, self.slot_of_state(index)))
        });
        described.collect()
    }

    fn give(&self, shared: &mut Shared, name: &str, operand: &Operand, slot: usize) -> Result<()> {
        let length = self.states.capacity(slot);
        match shared.values.get_mut(name) {
            Some(value) => self.states.read(slot, &mut value.bytes),
            None => {
                let mut bytes = vec![0; length];
                self.states.read(slot, &mut bytes)?;
                shared.values.insert(name.to_owned(), Value { operand: operand.clone(), bytes });
                Ok(())
            }
        }
    }

    /// Before a run: takes the values that other runners have left.
    fn take_shared(&mut self, shared: &mut Shared) -> Result<()> {
        if shared.last.replace(self.id) == Some(self.id) {
            return Ok(());
        }
        let prepared = Arc::clone(&self.prepared);
        for (name, operand, slot) in self.resource_variables(&prepared) {
            if let Some(value) = shared.values.get(name) {
                fits(name, operand, &value.operand)?;
                self.states.write(slot, &value.bytes)?;
            }
        }
        Ok(())
    }

    /// After a run: leaves the values for other runners.
    fn give_shared(&self, shared: &mut Shared) -> Result<()> {
        let prepared = Arc::clone(&self.prepared);
        for (name, operand, slot) in self.resource_variables(&prepared) {
            self.give(shared, name, operand, slot)?;
        }
        Ok(())
    }

    /// The slot that holds the value which the next run will read.
    fn slot_of_state(&self, index: usize) -> usize {
        let state = &self.prepared.model.states()[index];
        let offset = self.request.inputs[state.input].location.offset;
        let first = self.states.location(2 * index, 0, STATES).offset;
        // A variable without bytes has both at one place.
        if offset == first { 2 * index } else { 2 * index + 1 }
    }

    fn place_states(&mut self) {
        let prepared = Arc::clone(&self.prepared);
        for (index, state) in prepared.model.states().iter().enumerate() {
            let (read, written) = (2 * index, 2 * index + 1);
            let length = self.states.capacity(read);
            self.request.inputs[state.input] =
                RequestArgument::at(self.states.location(read, length, STATES));
            self.request.outputs[state.output] =
                RequestArgument::at(self.states.location(written, length, STATES));
        }
    }

    /// Says in the request where inputs and outputs are, and the shapes of inputs.
    fn place_arguments(&mut self) {
        self.request.pools = [&self.inputs, &self.outputs, &self.states]
            .map(|arena| RequestMemoryPool::Memory(arena.memory().clone()))
            .into();
        for (index, shape) in self.input_shapes.iter().enumerate() {
            let operand = &self.prepared.inputs[index];
            let argument = &mut self.request.inputs[index];
            let length = shape.as_ref().and_then(|shape| byte_size(operand, shape));
            argument.location = self.inputs.location(index, length.unwrap_or(0), INPUTS);
            argument.dimensions.clear();
            if !operand.has_known_dimensions() {
                argument.dimensions.extend(shape.iter().flatten());
            }
        }
        for (index, argument) in
            self.request.outputs[..self.output_shapes.len()].iter_mut().enumerate()
        {
            argument.location = self.outputs.location(index, self.outputs.capacity(index), OUTPUTS);
        }
        let Request { inputs, outputs, pools } = &mut self.request;
        for (arguments, lent) in [(inputs, &self.lent.0), (outputs, &self.lent.1)] {
            for (argument, memory) in arguments.iter_mut().zip(lent) {
                let Some(memory) = memory else { continue };
                // Whoever lends it has checked that it can be said so.
                let Ok(location) = whole(memory, pools.len()) else { continue };
                argument.location = location;
                pools.push(RequestMemoryPool::Memory(memory.clone()));
            }
        }
    }
}

/// All bytes of a memory, which is the pool of this number.
fn whole(memory: &Memory, pool: usize) -> Result<DataLocation> {
    let too_large = || Error::ArgumentsTooLarge { bytes: memory.size() };
    let length = u32::try_from(memory.size()).map_err(|_| too_large())?;
    let pool_index = u32::try_from(pool).map_err(|_| too_large())?;
    Ok(DataLocation { pool_index, offset: 0, length })
}

/// Whether a shared variable is what a model expects.
fn fits(name: &str, expected: &Operand, found: &Operand) -> Result<()> {
    if expected.quantized_as() == found.quantized_as() && expected.dimensions == found.dimensions {
        return Ok(());
    }
    Err(Error::State(format!(
        "variable {name:?} is {} {:?} here, and {} {:?} in another part of the file",
        expected.operand_type, expected.dimensions, found.operand_type, found.dimensions
    )))
}

/// Takes the bytes of an input piece by piece, see [`Runner::set_input_with`].
#[derive(Debug)]
pub struct InputWriter<'r> {
    arena: &'r Arena,
    slot: usize,
    written: usize,
    length: usize,
}

impl InputWriter<'_> {
    /// The bytes that follow those before.
    ///
    /// # Errors
    /// [`Error::Memory`]. Bytes beyond the input's are only counted.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let end = self.written.saturating_add(bytes.len());
        if end <= self.length {
            self.arena.write_at(self.slot, self.written, bytes)?;
        }
        self.written = end;
        Ok(())
    }
}

/// Puts the bytes of a value as the device takes them into `scratch`; false: they are right as they
/// are.
fn convert(
    info: &TensorInfo,
    operand: &Operand,
    value: &TensorView<'_>,
    scratch: &mut Vec<u8>,
) -> Result<bool> {
    let found = value.data_type;
    let expected = info.data_type;
    let on_device = DataType::of_operand(operand.operand_type).unwrap_or(expected);
    if found == on_device && found == expected {
        return Ok(false);
    }
    scratch.clear();
    match found {
        DataType::Int32 if on_device == DataType::Int64 => {
            for chunk in value.bytes.as_chunks().0 {
                let wide = i64::from(i32::from_ne_bytes(*chunk));
                scratch.extend_from_slice(&wide.to_ne_bytes());
            }
        }
        DataType::Float32 | DataType::Float64 | DataType::Float16 => {
            let reals: Vec<f32>;
            let reals = match bytemuck::try_cast_slice(&value.bytes) {
                Ok(reals) if found == DataType::Float32 => reals,
                _ => {
                    #[allow(clippy::cast_possible_truncation)] // Rounding is what is meant.
                    let round = |real: f64| real as f32;
                    reals = stored(found, &value.bytes).into_iter().map(round).collect();
                    &reals
                }
            };
            encode_reals(reals, on_device, info.quantization(), scratch)?;
        }
        _ => return Err(Error::Type { found, expected }),
    }
    Ok(true)
}

/// Copies a value out of an arena.
fn read(
    arena: &Arena,
    slot: usize,
    info: &TensorInfo,
    shape: &[usize],
    tensor: &mut Tensor,
) -> Result<()> {
    tensor.resize(info.data_type, shape, info.quantization())?;
    arena.read(slot, tensor.as_bytes_mut())
}

fn element_count(dimensions: &[u32]) -> Option<usize> {
    dimensions.iter().try_fold(1_usize, |count, length| count.checked_mul(*length as usize))
}

/// Bytes of a value with these dimensions on a device.
pub(crate) fn byte_size(operand: &Operand, dimensions: &[u32]) -> Option<usize> {
    let element = element_size(operand.operand_type)?;
    element_count(dimensions)?.checked_mul(element as usize)
}

/// The lengths of a shape that a device sees as these dimensions: a scalar of the file has one
/// element of rank 1 there.
fn shape_lengths<'a>(info: &TensorInfo, dimensions: &'a [u32]) -> impl Iterator<Item = usize> + 'a {
    let is_scalar = is_scalar(info) && *dimensions == [1];
    dimensions.iter().take(if is_scalar { 0 } else { usize::MAX }).map(|length| *length as usize)
}

fn shape_of(info: &TensorInfo, dimensions: &[u32]) -> Vec<usize> {
    shape_lengths(info, dimensions).collect()
}

/// Whether the file says that it is a scalar.
fn is_scalar(info: &TensorInfo) -> bool {
    info.shape.is_empty() && !info.is_rank_open
}

fn is_shape(info: &TensorInfo, dimensions: &[u32], shape: &[usize]) -> bool {
    if shape.is_empty() && is_scalar(info) {
        return true;
    }
    dimensions.len() == shape.len()
        && dimensions.iter().zip(shape).all(|(known, length)| *known as usize == *length)
}

/// The dimensions as the device takes them.
pub(crate) fn dimensions_of(
    info: &TensorInfo,
    operand: &Operand,
    shape: &[usize],
) -> Result<Vec<u32>> {
    if shape.contains(&0) {
        return Err(Error::NoElements { found: shape.to_vec() });
    }
    let wrong = || {
        let open = |length: &u32| (*length != 0).then_some(*length as usize);
        let of_device = || operand.dimensions.iter().map(open).collect();
        let expected = if is_scalar(info) { Vec::new() } else { of_device() };
        Error::Shape { found: shape.to_vec(), expected }
    };
    if is_scalar(info) && shape.is_empty() {
        let is_scalar = operand.operand_type.is_scalar();
        return Ok(if is_scalar { Vec::new() } else { vec![1] });
    }
    let dimensions: Option<Vec<u32>> = shape.iter().map(|it| u32::try_from(*it).ok()).collect();
    let dimensions = dimensions.ok_or_else(wrong)?;
    let may_be = |(known, length): (&u32, &u32)| *known == 0 || known == length;
    let is_rank_open = operand.dimensions.is_empty() && !operand.operand_type.is_scalar();
    let fits = is_rank_open && !dimensions.is_empty()
        || operand.dimensions.len() == dimensions.len()
            && operand.dimensions.iter().zip(&dimensions).all(may_be);
    if fits { Ok(dimensions) } else { Err(wrong()) }
}
