//! [`Session`]: a model prepared on a device, to be run by any number of threads.

use crate::cache::Kept;
use crate::error::{Error, Result};
use crate::info::{Signature, TensorInfo};
use crate::model::Model;
use crate::options::{RunOptions, SessionOptions};
use crate::position::{Position, find};
use crate::prepared::Prepared;
use crate::runner::Runner;
use crate::shape::dimensions_of;
use crate::tensor::{Tensor, TensorView};
use crate::variables::Variables;
use nnhal_driver::Observer;
use nnhal_hal::{Device, Timing};
use std::ops::Index;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Preparations for other shapes that a session keeps.
const MOST_VARIANTS: usize = 8;

/// A value for an input: by position, or `(name, value)`.
#[derive(Debug, Clone)]
pub struct Input<'a> {
    place: Place<'a>,
    value: TensorView<'a>,
}

/// Which input a value is for.
#[derive(Debug, Clone, Copy)]
enum Place<'a> {
    /// The one at the position of the value.
    Position,
    Name(&'a str),
    Index(usize),
}

impl Place<'_> {
    fn index(self, position: usize, by_name: &dyn Fn(&str) -> Result<usize>) -> Result<usize> {
        match self {
            Self::Position => Ok(position),
            Self::Name(name) => by_name(name),
            Self::Index(index) => Ok(index),
        }
    }
}

impl<'a> Input<'a> {
    /// A value for the input with this name, its own or that of a signature.
    pub fn named(name: &'a str, value: impl Into<TensorView<'a>>) -> Self {
        Self { place: Place::Name(name), value: value.into() }
    }
}

macro_rules! inputs {
    ($([$($generics:tt)*] $Type:ty),*) => {$(
        impl<'a, $($generics)*> From<$Type> for Input<'a> {
            fn from(value: $Type) -> Self {
                Self { place: Place::Position, value: value.into() }
            }
        }
    )*};
}

inputs!(
    [] TensorView<'a>,
    [] &'a Tensor,
    [T: crate::Element] &'a [T],
    [T: crate::Element] &'a Vec<T>,
    [T: crate::Element, const N: usize] &'a [T; N]
);

impl<'a, V: Into<TensorView<'a>>> From<(&'a str, V)> for Input<'a> {
    fn from((name, value): (&'a str, V)) -> Self {
        Self::named(name, value)
    }
}

/// What a run gave: a tensor for each output, by position or name.
///
/// ```
/// # let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/digits/digits_int8.tflite");
/// # let session = nnhal::Model::load(file)?.session(nnhal::SessionOptions::new())?;
/// let outputs = session.run([&[0.0_f32; 64]])?;
/// assert_eq!(outputs[0].shape(), [1, 10]);
/// for (name, tensor) in &outputs {
///     println!("{name}: {:?}", tensor.reals());
/// }
/// # Ok::<(), nnhal::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Outputs {
    names: Option<Arc<[String]>>,
    tensors: Vec<Tensor>,
    timing: Timing,
}

impl Outputs {
    /// None yet; [`Session::run_into`] fills it.
    pub fn new() -> Self {
        Self::default()
    }

    /// By output.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Names, by output: the signature's, where it gives one.
    pub fn names(&self) -> &[String] {
        self.names.as_deref().unwrap_or_default()
    }

    /// The tensors by output.
    pub fn into_tensors(self) -> Vec<Tensor> {
        self.tensors
    }

    /// The output with this name.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.names().iter().position(|known| known == name).and_then(|at| self.tensors.get(at))
    }

    /// Names and tensors, by output.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.names().iter().map(String::as_str).zip(&self.tensors)
    }

    /// How long the run took, if it was measured.
    pub fn timing(&self) -> Timing {
        self.timing
    }
}

impl Index<usize> for Outputs {
    type Output = Tensor;

    fn index(&self, index: usize) -> &Tensor {
        &self.tensors[index]
    }
}

/// # Panics
/// There is no such output.
impl Index<&str> for Outputs {
    type Output = Tensor;

    fn index(&self, name: &str) -> &Tensor {
        match self.get(name) {
            Some(tensor) => tensor,
            None => panic!("there is no output {name:?}; there are: {}", self.names().join(", ")),
        }
    }
}

impl<'a> IntoIterator for &'a Outputs {
    type Item = (&'a str, &'a Tensor);
    type IntoIter = Box<dyn Iterator<Item = Self::Item> + 'a>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}

/// A model prepared on a device. Any number of threads can run it at once; each run has memory of its
/// own, which is used again by the next.
///
/// The variables of a stateful model are the session's: its runs wait for each other. For several
/// streams make a [`Runner`] for each. Where a run's inputs have other lengths than those of the run before, and the
/// model has to be prepared for them, resource variables stay and variable tensors begin anew.
#[derive(Debug)]
pub struct Session {
    base: Program,
    /// Prepared for shapes that `base` does not take; the most recently used one last.
    variants: Mutex<Vec<Arc<Program>>>,
    /// Of a stateful model: who has the variables.
    stream: Option<Mutex<Runner>>,
    names: Arc<[String]>,
    /// Of signatures of other subgraphs of the file, by subgraph; prepared when they are asked for.
    others: Mutex<Vec<Arc<Session>>>,
    /// The variables that those have in common with this one.
    variables: Variables,
}

/// A prepared model, and memory for runs that no one uses at the moment.
#[derive(Debug)]
struct Program {
    shapes: Vec<Vec<usize>>,
    prepared: Arc<Prepared>,
    idle: Mutex<Vec<Runner>>,
}

impl Program {
    fn new(model: &Model, options: &SessionOptions, shapes: Vec<Vec<usize>>) -> Result<Self> {
        let prepared = Arc::new(Prepared::new(model, options)?);
        Ok(Self { shapes, prepared, idle: Mutex::default() })
    }

    /// Calls with a runner that no one else uses.
    fn with_runner<T>(&self, call: impl FnOnce(&mut Runner) -> Result<T>) -> Result<T> {
        let idle = lock(&self.idle).pop();
        let mut runner = match idle {
            Some(runner) => runner,
            None => Runner::new(Arc::clone(&self.prepared))?,
        };
        let outcome = call(&mut runner);
        lock(&self.idle).push(runner);
        outcome
    }
}

/// Writes every input of a runner.
fn feed<'a>(
    runner: &mut Runner,
    inputs: impl Iterator<Item = Input<'a>>,
    by_name: &dyn Fn(&str) -> Result<usize>,
) -> Result<()> {
    runner.begin_inputs();
    for (position, input) in inputs.enumerate() {
        let index = input.place.index(position, by_name)?;
        runner.write_once(index, &input.value)?;
    }
    runner.end_inputs()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Model {
    /// Prepares the model on a device.
    ///
    /// # Errors
    /// There is no such device, or it refuses the model ([`Error::Unsupported`], [`Error::Device`]).
    pub fn session(&self, options: SessionOptions) -> Result<Session> {
        Session::new(self, &options)
    }
}

impl Session {
    /// Prepares a model, see [`Model::session`].
    ///
    /// # Errors
    /// There is no such device, or it refuses the model.
    pub fn new(model: &Model, options: &SessionOptions) -> Result<Self> {
        let base = Program::new(model, options, Vec::new())?;
        let stream = model.is_stateful().then(|| Runner::new(Arc::clone(&base.prepared)));
        let name = |info: &TensorInfo| info.signature_name.as_ref().unwrap_or(&info.name).clone();
        Ok(Self {
            stream: stream.transpose()?.map(Mutex::new),
            base,
            variants: Mutex::default(),
            others: Mutex::default(),
            variables: Variables::default(),
            names: model.outputs().iter().map(name).collect(),
        })
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.base.prepared.model
    }

    /// The device that it runs on.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.base.prepared.device
    }

    /// How long preparing took.
    pub fn preparing(&self) -> Duration {
        self.base.prepared.preparing
    }

    /// Whether the prepared model came out of the folder of [`SessionOptions::cache_dir`].
    pub fn is_from_cache(&self) -> bool {
        self.base.prepared.kept == Kept::Before
    }

    /// Whether the prepared model is in the folder of [`SessionOptions::cache_dir`], from now on or before. It is not where the
    /// device does not keep prepared models: those of this library do not without a folder for the key that they are
    /// signed with (`$XDG_STATE_HOME`, or `.local/state` in `$HOME`).
    pub fn is_kept(&self) -> bool {
        self.base.prepared.kept != Kept::Not
    }

    pub(crate) fn prepared(&self) -> &Arc<Prepared> {
        &self.base.prepared
    }

    /// Runs the model: a value for each input, in order or with names. Lengths that the model leaves
    /// open are those of the values.
    ///
    /// # Errors
    /// A value does not fit ([`Error::Input`]), there is one too few or too many, or the device failed
    /// ([`Error::Device`]).
    pub fn run<'a, I: Into<Input<'a>>>(
        &self,
        inputs: impl IntoIterator<Item = I>,
    ) -> Result<Outputs> {
        self.run_with(&RunOptions::default(), inputs)
    }

    /// Runs the model.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn run_with<'a, I: Into<Input<'a>>>(
        &self,
        options: &RunOptions,
        inputs: impl IntoIterator<Item = I>,
    ) -> Result<Outputs> {
        let mut outputs = Outputs::new();
        self.run_into(options, inputs, &mut outputs)?;
        Ok(outputs)
    }

    /// Runs the model, and puts what it gives into the memory of earlier outputs: as often as shapes
    /// stay the same, nothing is allocated here.
    ///
    /// # Errors
    /// As [`Session::run`]. What the outputs are then is not said.
    pub fn run_into<'a, I: Into<Input<'a>>>(
        &self,
        options: &RunOptions,
        inputs: impl IntoIterator<Item = I>,
        outputs: &mut Outputs,
    ) -> Result<()> {
        self.with_runner(inputs, &|name| self.input_named(name), |runner| {
            runner.run_with(options)?;
            self.collect(runner, outputs)
        })
    }

    /// Runs the model, and shows every operation's results and how long they took.
    ///
    /// # Errors
    /// As [`Session::run`]; [`Error::Opaque`]: the device does not show them.
    pub fn run_observed<'a, I: Into<Input<'a>>>(
        &self,
        options: &RunOptions,
        inputs: impl IntoIterator<Item = I>,
        observer: &dyn Observer,
    ) -> Result<Outputs> {
        self.with_runner(inputs, &|name| self.input_named(name), |runner| {
            let mut outputs = Outputs::new();
            runner.run_observed(options, observer)?;
            self.collect(runner, &mut outputs)?;
            Ok(outputs)
        })
    }

    /// Calls with a runner that has these inputs.
    pub(crate) fn with_inputs<T>(
        &self,
        inputs: Vec<Input<'_>>,
        call: impl FnOnce(&mut Runner) -> Result<T>,
    ) -> Result<T> {
        self.with_runner(inputs, &|name| self.input_named(name), call)
    }

    fn input_named(&self, name: &str) -> Result<usize> {
        find("input", self.model().inputs(), &Position::Name(name))
    }

    fn with_runner<'a, I: Into<Input<'a>>, T>(
        &self,
        inputs: impl IntoIterator<Item = I>,
        by_name: &dyn Fn(&str) -> Result<usize>,
        call: impl FnOnce(&mut Runner) -> Result<T>,
    ) -> Result<T> {
        let inputs = inputs.into_iter().map(Into::into);
        if let Some(stream) = &self.stream {
            let mut runner = lock(stream);
            if !self.model().has_example_shapes() {
                feed(&mut runner, inputs, by_name)?;
                return call(&mut runner);
            }
            let inputs: Vec<Input<'a>> = inputs.collect();
            let variant = self.variant_for(&inputs, by_name)?;
            self.move_stream(&mut runner, variant.as_deref().unwrap_or(&self.base))?;
            feed(&mut runner, inputs.into_iter(), by_name)?;
            return call(&mut runner);
        }
        if !self.model().has_example_shapes() {
            return self.base.with_runner(|runner| {
                feed(runner, inputs, by_name)?;
                call(runner)
            });
        }
        let inputs: Vec<Input<'a>> = inputs.collect();
        let variant = self.variant_for(&inputs, by_name)?;
        let program = variant.as_deref().unwrap_or(&self.base);
        program.with_runner(|runner| {
            feed(runner, inputs.into_iter(), by_name)?;
            call(runner)
        })
    }

    /// The stream for the model as it is prepared for other shapes. Resource variables stay; variable tensors begin anew,
    /// as LiteRT's do where an input is resized.
    fn move_stream(&self, stream: &mut Runner, program: &Program) -> Result<()> {
        if Arc::ptr_eq(stream.prepared(), &program.prepared) {
            return Ok(());
        }
        let mut moved = Runner::new(Arc::clone(&program.prepared))?;
        stream.share(&self.variables)?;
        moved.share(&self.variables)?;
        *stream = moved;
        Ok(())
    }

    /// Copies what a run gave.
    fn collect(&self, runner: &Runner, outputs: &mut Outputs) -> Result<()> {
        let count = self.names.len();
        outputs.tensors.truncate(count);
        outputs.tensors.resize_with(count, || Tensor::empty(crate::DataType::Uint8));
        for (index, tensor) in outputs.tensors.iter_mut().enumerate() {
            runner.read_output(index, tensor)?;
        }
        outputs.names = Some(Arc::clone(&self.names));
        outputs.timing = runner.timing();
        Ok(())
    }

    /// The model prepared for the shapes of these values; `None` if it takes them as it is. Whatever
    /// else is wrong with the values is found out when they are written.
    fn variant_for(
        &self,
        inputs: &[Input<'_>],
        by_name: &dyn Fn(&str) -> Result<usize>,
    ) -> Result<Option<Arc<Program>>> {
        let base = &self.base.prepared;
        let infos = self.model().inputs();
        let mut shapes: Vec<Vec<usize>> =
            infos.iter().map(|info| info.example_shape.clone()).collect();
        let mut fits = true;
        for (position, input) in inputs.iter().enumerate() {
            let index = input.place.index(position, by_name)?;
            let (Some(info), Some(shape)) = (infos.get(index), input.value.shape()) else {
                continue;
            };
            fits &= dimensions_of(info, &base.inputs[index], shape).is_ok();
            shapes[index] = info.prepared_lengths(shape);
        }
        if fits { Ok(None) } else { self.program_for(shapes).map(Some) }
    }

    fn program_for(&self, shapes: Vec<Vec<usize>>) -> Result<Arc<Program>> {
        let mut variants = lock(&self.variants);
        if let Some(at) = variants.iter().position(|variant| variant.shapes == shapes) {
            let last = variants.len() - 1;
            variants[at..=last].rotate_left(1);
            return Ok(Arc::clone(&variants[last]));
        }
        let wanted: Vec<_> = shapes.iter().cloned().map(Some).collect();
        let model = self.model().with_input_shapes(&wanted, true)?;
        let program = Arc::new(Program::new(&model, &self.base.prepared.options, shapes)?);
        if variants.len() == MOST_VARIANTS {
            variants.remove(0);
        }
        variants.push(Arc::clone(&program));
        Ok(program)
    }

    /// Memory for runs, which belongs to the caller: to set inputs one by one, to use memory again, or
    /// for a stream of its own of a stateful model.
    ///
    /// # Errors
    /// Memory cannot be had.
    pub fn runner(&self) -> Result<Runner> {
        Runner::new(Arc::clone(&self.base.prepared))
    }

    /// A [`Session::runner`] for inputs of these shapes; `None` leaves one as the file's example has it. What
    /// the session is not prepared for is prepared now, and stays for the next time.
    ///
    /// ```
    /// # let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/digits/digits_int8.tflite");
    /// # let session = nnhal::Model::load(file)?.session(nnhal::SessionOptions::new())?;
    /// let runner = session.runner_for(&[Some(vec![1, 8, 8, 1])])?;
    /// assert_eq!(runner.input_shape(0)?, Some(vec![1, 8, 8, 1]));
    /// assert!(session.runner_for(&[Some(vec![2, 8, 8, 1])]).is_err(), "the file says 1");
    /// # Ok::<(), nnhal::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Input`], [`Error::Import`]: the model takes no such shapes; memory cannot be had.
    pub fn runner_for(&self, shapes: &[Option<Vec<usize>>]) -> Result<Runner> {
        let infos = self.model().inputs();
        let expected = infos.len();
        if shapes.len() > expected {
            return Err(Error::InputCount { found: shapes.len(), expected });
        }
        let wanted = |(at, info): (usize, &TensorInfo)| {
            shapes.get(at).cloned().flatten().unwrap_or_else(|| info.example_shape.clone())
        };
        let shapes: Vec<Vec<usize>> = infos.iter().enumerate().map(wanted).collect();
        let fits = shapes.iter().zip(infos).zip(&self.base.prepared.inputs);
        let mut fits = fits.map(|((shape, info), operand)| dimensions_of(info, operand, shape));
        let mut runner = if self.model().has_example_shapes() && fits.any(|it| it.is_err()) {
            let lengths =
                infos.iter().zip(&shapes).map(|(info, shape)| info.prepared_lengths(shape));
            let program = self.program_for(lengths.collect())?;
            Runner::new(Arc::clone(&program.prepared))?
        } else {
            self.runner()?
        };
        for (at, shape) in shapes.iter().enumerate() {
            runner.resize_input(at, shape)?;
        }
        Ok(runner)
    }

    /// Sets the variables of a stateful model to what they are at first.
    ///
    /// # Errors
    /// [`Error::Memory`]
    pub fn reset(&self) -> Result<()> {
        self.stream.as_ref().map_or(Ok(()), |stream| lock(stream).reset())
    }

    /// The model with the names of one of its signatures. If that is of another subgraph of the file,
    /// it is prepared now, on the same device, and stays with this session; resource variables of the same
    /// name are the same.
    ///
    /// # Errors
    /// [`Error::NotFound`]; for another subgraph also those of [`Model::with_signature`] and
    /// [`Session::new`].
    pub fn signature(&self, name: &str) -> Result<SignatureSession<'_>> {
        let own = self.model().signatures().iter().find(|signature| signature.name == name);
        if let Some(signature) = own {
            return Ok(SignatureSession {
                session: Held::This(self),
                signature: signature.clone(),
            });
        }
        let model = self.model().with_signature(name)?;
        let mut others = lock(&self.others);
        let known = others.iter().find(|it| it.model().subgraph() == model.subgraph());
        let session = match known {
            Some(session) => Arc::clone(session),
            None => {
                let session = Arc::new(Self::new(&model, &self.base.prepared.options)?);
                for stream in self.stream.iter().chain(&session.stream) {
                    lock(stream).share(&self.variables)?;
                }
                others.push(Arc::clone(&session));
                session
            }
        };
        let signature = model.signatures().iter().find(|signature| signature.name == name);
        let signature = signature.cloned().ok_or_else(|| Error::NotFound {
            what: "signature",
            name: name.to_owned(),
            available: model.signatures().iter().map(|it| it.name.clone()).collect(),
        })?;
        Ok(SignatureSession { session: Held::Other(session), signature })
    }
}

/// A session with the names of a signature, see [`Session::signature`].
#[derive(Debug, Clone)]
pub struct SignatureSession<'s> {
    session: Held<'s>,
    signature: Signature,
}

/// A session of one's own, or of another subgraph.
#[derive(Debug, Clone)]
enum Held<'s> {
    This(&'s Session),
    Other(Arc<Session>),
}

impl SignatureSession<'_> {
    /// The signature.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The model that it runs.
    pub fn model(&self) -> &Model {
        self.session().model()
    }

    fn session(&self) -> &Session {
        match &self.session {
            Held::This(session) => session,
            Held::Other(session) => session,
        }
    }

    /// Memory for runs, and a stream of its own of a stateful model, as [`Session::runner`]: what is not written stays as it
    /// was, 0 at first, so that a run need not be given all inputs anew. [`Runner::set_input`] and [`Runner::output`] take the
    /// signature's names too, where no other signature has another name for the tensor.
    ///
    /// # Errors
    /// Memory cannot be had.
    pub fn runner(&self) -> Result<Runner> {
        self.session().runner()
    }

    /// As [`Session::run`], with the signature's names and its outputs alone. Inputs without a name
    /// are taken in the signature's order. What the signature does not name of the inputs that its subgraph has is 0.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn run<'a, I: Into<Input<'a>>>(
        &self,
        inputs: impl IntoIterator<Item = I>,
    ) -> Result<Outputs> {
        let Signature { inputs: names, outputs, .. } = &self.signature;
        let find = |name: &str| {
            let found = names.iter().find(|(known, _)| known == name);
            found.map(|(_, index)| *index).ok_or_else(|| Error::NotFound {
                what: "input",
                name: name.to_owned(),
                available: names.iter().map(|(name, _)| name.clone()).collect(),
            })
        };
        let mut given = Vec::new();
        for (at, input) in inputs.into_iter().enumerate() {
            let Input { place, value } = input.into();
            let place = match (place, names.get(at)) {
                (Place::Position, Some((name, _))) => Place::Name(name),
                (Place::Position, None) => {
                    return Err(Error::InputCount { found: at + 1, expected: names.len() });
                }
                _ => place,
            };
            given.push(Input { place, value });
        }
        let unnamed = self.unnamed()?;
        let zeros = unnamed
            .iter()
            .map(|(index, zeros)| Input { place: Place::Index(*index), value: zeros.into() });
        self.session().with_runner(given.into_iter().chain(zeros), &find, |runner| {
            runner.run()?;
            let tensors = outputs.iter().map(|(_, index)| runner.output(*index));
            Ok(Outputs {
                tensors: tensors.collect::<Result<_>>()?,
                names: Some(outputs.iter().map(|(name, _)| name.clone()).collect()),
                timing: runner.timing(),
            })
        })
    }

    /// The inputs that the signature does not name, and the 0 for each.
    fn unnamed(&self) -> Result<Vec<(usize, Tensor)>> {
        let is_named = |at: usize| self.signature.inputs.iter().any(|(_, index)| *index == at);
        let inputs = self.model().inputs().iter().enumerate();
        let unnamed = inputs.filter(|(at, _)| !is_named(*at));
        unnamed
            .map(|(at, info)| Ok((at, Tensor::zeros(info.data_type, info.example_shape.clone())?)))
            .collect()
    }
}
