//! [`Runner`]: memory for inputs and outputs, used again by every run.

mod inputs;
mod outputs;
mod states;

pub use inputs::InputWriter;

use crate::arena::{Arena, Sharing};
use crate::error::{Error, Result};
use crate::info::TensorInfo;
use crate::model::Model;
use crate::options::RunOptions;
use crate::prepared::Prepared;
use crate::shape::{byte_size, shape_lengths, shape_of};
use crate::variables::Variables;
use nnhal_driver::Observer;
use nnhal_hal::{
    DataLocation, ErrorStatus, Execution, ExecutionError, Memory, Operand, Request,
    RequestArgument, RequestMemoryPool, Timing,
};
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

/// Runs a model again and again in memory of its own, which the device uses too: inputs are
/// written into it, and outputs read from it. What is not written stays as it was; before anything
/// is written inputs of known shape are 0.
///
/// Where an input has no elements, such as a batch of no rows, and outputs have none either, nothing is computed, see
/// [`Model::outputs_without_elements`]. Where outputs have elements all the same, the model is prepared once more for such
/// inputs.
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
    /// For the last shapes of inputs of which some had no elements.
    without_elements: Option<WithoutElements>,
}

/// What a model gives for inputs of which some have no elements.
#[derive(Debug)]
struct WithoutElements {
    inputs: Vec<Vec<usize>>,
    outputs: OutputsOfThem,
}

#[derive(Debug)]
enum OutputsOfThem {
    /// None of them has elements.
    Known(Vec<Vec<usize>>),
    /// The model without those inputs computes them.
    Computed(Box<Runner>),
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
        let sharing = if prepared.driver().is_ok() { Sharing::Private } else { Sharing::Shared };
        let mut runner = Self {
            inputs: Arena::new(&capacities(&prepared.inputs[..inputs]), sharing)?,
            outputs: Arena::new(&capacities(&prepared.outputs[..outputs]), sharing)?,
            states: Arena::new(&states, sharing)?,
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
            without_elements: None,
            prepared,
        };
        runner.place_states();
        runner.place_arguments();
        runner.reset()?;
        Ok(runner)
    }

    pub(crate) fn prepared(&self) -> &Arc<Prepared> {
        &self.prepared
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.prepared.model
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
        self.compute(options, None)
    }

    /// Runs the model, and shows every operation's results and how long they took.
    ///
    /// # Errors
    /// As [`Runner::run`]; [`Error::Opaque`]: the device does not show them.
    pub fn run_observed(&mut self, options: &RunOptions, observer: &dyn Observer) -> Result<()> {
        self.compute(options, Some(observer))
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
        let outcome = self.compute(options, observer);
        self.lent = (Vec::new(), Vec::new());
        self.place_arguments();
        outcome
    }

    fn compute(&mut self, options: &RunOptions, observer: Option<&dyn Observer>) -> Result<()> {
        self.has_run = false;
        let inputs = self.prepared.model.inputs();
        if let Some(open) = self.input_shapes.iter().position(Option::is_none) {
            let expected = inputs[open].shape.clone();
            return Err(Error::input(&inputs[open].name)(Error::OpenShape { expected }));
        }
        if self.input_shapes.iter().flatten().any(|shape| shape.contains(&0)) {
            return self.run_without_elements(options, observer);
        }
        let prepared = Arc::clone(&self.prepared);
        let of_device = options.for_device(&prepared.options);
        if let Some(observer) = observer {
            let program = prepared.driver()?;
            return self.execute(|request| program.execute_observed(request, &of_device, observer));
        }
        match (options.priority, prepared.driver()) {
            (Some(priority), Ok(driver)) => {
                self.execute(|request| driver.execute_at(request, &of_device, priority))
            }
            _ => self.execute(|request| prepared.program.execute(request, &of_device)),
        }
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

    /// A run in which inputs have no elements.
    fn run_without_elements(
        &mut self,
        options: &RunOptions,
        observer: Option<&dyn Observer>,
    ) -> Result<()> {
        let shapes = (0..self.input_shapes.len()).map(|it| self.shape_of_input(it));
        let shapes: Vec<Vec<usize>> = shapes.map(Option::unwrap_or_default).collect();
        let known = self.without_elements.take().filter(|it| it.inputs == shapes);
        let mut known = match known {
            Some(known) => known,
            None => {
                let outputs = self.outputs_of_them(&shapes)?;
                WithoutElements { inputs: shapes, outputs }
            }
        };
        let outcome = match &mut known.outputs {
            OutputsOfThem::Known(shapes) => self.give_nothing(shapes),
            OutputsOfThem::Computed(runner) => self.compute_by(runner, options, observer),
        };
        self.without_elements = Some(known);
        outcome
    }

    fn outputs_of_them(&self, shapes: &[Vec<usize>]) -> Result<OutputsOfThem> {
        let prepared = &self.prepared;
        let refused = match prepared.model.outputs_without_elements(shapes) {
            Ok(outputs) => return Ok(OutputsOfThem::Known(outputs)),
            Err(error) if prepared.model.is_stateful() => return Err(error),
            Err(error) => error,
        };
        let wanted: Vec<_> = shapes.iter().cloned().map(Some).collect();
        let model = match prepared.model.with_input_shapes(&wanted, false) {
            Err(Error::NotAFile) => return Err(refused),
            other => other?,
        };
        let is_relaxed = prepared.model.hal().relax_computation_float32_to_float16;
        let model = if is_relaxed { model.relaxed() } else { model };
        let runner = Self::new(Arc::new(Prepared::new(&model, &prepared.options)?))?;
        Ok(OutputsOfThem::Computed(Box::new(runner)))
    }

    /// Gives outputs these shapes, of which each has a length of 0.
    fn give_nothing(&mut self, outputs: &[Vec<usize>]) -> Result<()> {
        let infos = self.prepared.model.outputs();
        for (memory, (info, shape)) in self.lent.1.iter().zip(infos.iter().zip(outputs)) {
            let Some(memory) = memory else { continue };
            let found = usize::try_from(memory.size()).unwrap_or(usize::MAX);
            let (data_type, shape) = (info.data_type, shape.clone());
            return Err(Error::Elements { data_type, shape, found });
        }
        outputs.clone_into(&mut self.output_shapes);
        self.timing = Timing::NONE;
        self.has_run = true;
        Ok(())
    }

    /// Runs another runner of the model with the inputs that this one has, and takes its outputs.
    fn compute_by(
        &mut self,
        other: &mut Self,
        options: &RunOptions,
        observer: Option<&dyn Observer>,
    ) -> Result<()> {
        let mut bytes = Vec::new();
        for index in 0..self.input_shapes.len() {
            let is_lent = matches!(self.lent.0.get(index), Some(Some(_)));
            let operand = &self.prepared.inputs[index];
            let size = self.input_shapes[index].as_deref().and_then(|it| byte_size(operand, it));
            let Some(size) = size.filter(|size| *size > 0 && !is_lent) else { continue };
            bytes.resize(size, 0);
            self.inputs.read(index, &mut bytes)?;
            other.inputs.write(index, &bytes)?;
        }
        other.run_in(options, &self.lent.0, &self.lent.1, observer)?;
        let sizes: Vec<usize> = (0..self.output_shapes.len())
            .map(|index| match self.lent.1.get(index) {
                Some(Some(_)) => 0,
                _ => other.output_size(index),
            })
            .collect();
        if sizes.iter().enumerate().any(|(index, size)| *size > self.outputs.capacity(index)) {
            self.outputs.grow(sizes.iter().copied())?;
            self.place_arguments();
        }
        for (index, size) in sizes.into_iter().enumerate() {
            bytes.resize(size, 0);
            other.outputs.read(index, &mut bytes)?;
            self.outputs.write(index, &bytes)?;
        }
        self.output_shapes.clone_from(&other.output_shapes);
        self.timing = other.timing;
        self.has_run = true;
        Ok(())
    }

    /// Bytes of an output of the last run.
    fn output_size(&self, index: usize) -> usize {
        let data_type = self.prepared.model.outputs()[index].data_type;
        data_type.byte_length(&self.output_shapes[index]).unwrap_or(0)
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
