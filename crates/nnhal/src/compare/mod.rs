//! Whether two devices, or two ways of setting one, compute the same, and which step is responsible if
//! they do not.
//!
//! ```
//! # let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/digits/digits_float32.tflite");
//! use nnhal::compare::{self, Limits};
//! use nnhal::{Fill, Input, Model, SessionOptions};
//!
//! let model = Model::load(file)?;
//! let open = |device| model.session(SessionOptions::new().device(device));
//! let (judge, judged) = (open("nnhal-reference")?, open("nnhal-cpu")?);
//! let inputs = Fill::Random { seed: 0 }.inputs(&model, &[])?;
//! let inputs: Vec<Input<'_>> = inputs.iter().map(Input::from).collect();
//! let comparison = compare::run(&judge, &judged, &inputs, &Limits::default())?;
//! assert!(comparison.agree());
//! println!("allowed: {}", comparison.outputs[0].allowed);
//! # Ok::<(), nnhal::Error>(())
//! ```

mod alone;
mod difference;
mod noise;
mod record;
mod tolerance;

pub use alone::Responsible;
pub use difference::{Difference, Distance, Tolerance, difference};
pub use tolerance::{Allowed, CHANGES, Limits, Precision, ROUNDINGS, Reason};

use crate::data_type::DataType;
use crate::devices;
use crate::error::{Error, Result};
use crate::options::RunOptions;
use crate::prepared::origin;
use crate::session::{Input, Session};
use crate::tensor::Tensor;
use nnhal_driver::OperationPlace;
use nnhal_hal::model::SubgraphName;
use nnhal_tflite::OperatorOrigin;
use record::{Key, Recorder, Value};
use std::collections::HashMap;
use std::fmt;
use tolerance::{Depth, Kind};

/// What comparing two devices found.
#[derive(Debug)]
pub struct Comparison {
    /// The model's outputs, in order.
    pub outputs: Vec<Compared>,
    /// Results on the way that both devices have, in the order in which the judged one computes them.
    /// What is within operations that one device computes as one is not among them. Empty if a device
    /// does not show its results.
    pub steps: Vec<StepCompared>,
    limits: Limits,
    /// By input, as the judged device took it.
    inputs: Vec<Tensor>,
    /// What each device computed on the way.
    expected: Vec<Value>,
    found: Vec<Value>,
}

/// An output, or a result on the way, of two devices.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// The output's name; of a step's result the file's tensor, if there is one.
    pub name: String,
    /// Of what type; `None` for an extension's.
    pub data_type: Option<DataType>,
    /// Lengths of its dimensions.
    pub shape: Vec<usize>,
    /// How far the two are from each other; `None` if they have other shapes.
    pub distance: Option<Distance>,
    /// How far they may be.
    pub allowed: Allowed,
    /// In what way they differ beyond that.
    pub differs: Option<Differs>,
}

impl Compared {
    /// Whether it differs in a way that weights which are rounded otherwise may explain.
    fn may_be_noise(&self) -> bool {
        let is_float = matches!(self.allowed.reason, Reason::Floats { .. });
        is_float && matches!(self.differs, Some(Differs::Elements(_)))
    }

    /// The same, where it was measured what those change.
    fn with_noise(self, noise: f64, expected: &[u8], found: &[u8]) -> Self {
        if !self.may_be_noise() {
            return self;
        }
        let allowed = self.allowed.with_noise(noise);
        let stored = self.data_type.unwrap_or(DataType::Uint8);
        let differs = difference(stored, expected, found, allowed.tolerance);
        Self { allowed, differs: differs.map(Differs::Elements), ..self }
    }
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepCompared {
    /// The operation that computes it.
    pub place: OperationPlace,
    /// The operator of the file that the operation comes from.
    pub origin: Option<OperatorOrigin>,
    /// Index among the operation's outputs.
    pub output: usize,
    /// What was found.
    pub compared: Compared,
}

/// In what way a result differs.
#[derive(Debug, Clone, PartialEq)]
pub enum Differs {
    /// Only the judged device computes it: the two took different paths.
    OnlyThere,
    /// In its shape.
    Shape {
        /// The shape that is right.
        expected: Vec<usize>,
    },
    /// In elements.
    Elements(Difference),
}

impl fmt::Display for Differs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnlyThere => formatter.write_str("computed by one only"),
            Self::Shape { expected } => write!(formatter, "another shape, expected {expected:?}"),
            Self::Elements(difference) => difference.fmt(formatter),
        }
    }
}

impl Comparison {
    /// Whether all outputs of the model agree.
    pub fn agree(&self) -> bool {
        self.outputs.iter().all(|output| output.differs.is_none())
    }

    /// Whether results on the way differ by more than rounding explains. Outputs may hide it: those of
    /// a model that is sure of its answer do.
    pub fn steps_differ(&self) -> bool {
        self.steps.iter().any(|step| step.compared.differs.is_some())
    }

    /// The step of the judged session that is responsible for a difference: each is computed again
    /// alone.
    pub fn responsible(&self, judged: &Session) -> Responsible {
        self.responsible_of(judged, &self.found)
    }

    /// As [`Comparison::responsible`], for the session that was taken to be right.
    pub fn responsible_of_judge(&self, judge: &Session) -> Responsible {
        self.responsible_of(judge, &self.expected)
    }

    fn responsible_of(&self, session: &Session, values: &[Value]) -> Responsible {
        if values.is_empty() {
            return Responsible::NotShown;
        }
        alone::responsible(session.model(), &self.inputs, values, &self.limits)
    }
}

/// What one device gave for some inputs.
struct Recorded {
    outputs: Vec<Tensor>,
    inputs: Vec<Tensor>,
    values: Vec<Value>,
}

fn record(session: &Session, inputs: &[Input<'_>]) -> Result<Recorded> {
    let recorder = Recorder::default();
    let (outputs, inputs) = session.with_inputs(inputs.to_vec(), |runner| {
        match runner.run_observed(&RunOptions::default(), &recorder) {
            Err(Error::Opaque { .. }) => runner.run()?,
            done => done?,
        }
        let (given, taken) = (session.model().outputs().len(), session.model().inputs().len());
        let outputs: Vec<_> = (0..given).map(|at| runner.output(at)).collect::<Result<_>>()?;
        Ok((outputs, (0..taken).map(|at| runner.input(at)).collect::<Result<_>>()?))
    })?;
    Ok(Recorded { outputs, inputs, values: recorder.into_values() })
}

/// Runs a model once in two sessions with the same inputs, and compares the outputs, and the results on
/// the way as far as both sessions have them. The first session is right. Quantized results are compared
/// as they are stored.
///
/// # Errors
/// As [`Session::run`].
pub fn run(
    judge: &Session,
    judged: &Session,
    inputs: &[Input<'_>],
    limits: &Limits,
) -> Result<Comparison> {
    let (right, found) = (record(judge, inputs)?, record(judged, inputs)?);
    let model = judged.model();
    let hal = model.hal();
    let (depths, has_half) = (tolerance::depths(hal), tolerance::has_half(hal));
    let mut outputs = Vec::with_capacity(found.outputs.len());
    for (index, (expected, found)) in right.outputs.iter().zip(&found.outputs).enumerate() {
        let info = &model.outputs()[index];
        let operand = hal.main.outputs.get(index).copied().unwrap_or_default() as usize;
        let kind = Kind::of(info.data_type, has_half, info.quantization.is_some());
        let subject = Subject {
            name: info.shown_name(),
            data_type: Some(found.data_type()),
            kind,
            depth: depths.get(operand).copied().unwrap_or_default(),
        };
        let (right, found) =
            ((expected.shape(), expected.as_bytes()), (found.shape(), found.as_bytes()));
        outputs.push(subject.compare(limits, right, found));
    }
    let mut expected: HashMap<&Key, &Value> =
        right.values.iter().map(|value| (&value.key, value)).collect();
    let (mut steps, mut compared_values) = (Vec::new(), Vec::new());
    for value in &found.values {
        let Key { place, output, .. } = value.key;
        let depth = match place.subgraph {
            SubgraphName::Main => depths.get(value.operand as usize).copied().unwrap_or_default(),
            SubgraphName::Referenced(_) => {
                let deepest = depths.iter().copied().fold(Depth::default(), Depth::max);
                Depth::of_all(hal.main.operations.len(), deepest.products)
            }
        };
        let subject = Subject {
            name: value.name(model),
            data_type: value.data_type,
            kind: value.kind(has_half),
            depth,
        };
        let compared = match expected.remove(&value.key) {
            Some(right) => {
                subject.compare(limits, (&right.shape, &right.bytes), (&value.shape, &value.bytes))
            }
            // A device that fuses operations reports fewer results of the main subgraph. Elsewhere
            // a result that only one has means that the two took different paths.
            None if place.subgraph == SubgraphName::Main || right.values.is_empty() => continue,
            None => subject.only_there(limits, &value.shape),
        };
        compared_values.push(value);
        steps.push(StepCompared { origin: origin(model, place), place, output, compared });
    }
    let mut doubtful = outputs.iter().chain(steps.iter().map(|step| &step.compared));
    if doubtful.any(Compared::may_be_noise) {
        let of = |session: &Session| session.device().name() == devices::names()[1];
        let base = match (of(judge), of(judged)) {
            (true, _) => Some(&*right.values),
            (_, true) => Some(&*found.values),
            _ => None,
        };
        let noise = noise::of_values(model, &found.inputs, base);
        let pairs = right.outputs.iter().zip(&found.outputs);
        for ((output, operand), (right, found)) in
            outputs.iter_mut().zip(&hal.main.outputs).zip(pairs)
        {
            let noise = noise.get(operand).copied().unwrap_or(0.0);
            *output = output.clone().with_noise(noise, right.as_bytes(), found.as_bytes());
        }
        let right: HashMap<&Key, &Value> =
            right.values.iter().map(|value| (&value.key, value)).collect();
        for (step, value) in steps.iter_mut().zip(compared_values) {
            let noise = noise.get(&value.operand).copied().unwrap_or(0.0);
            let Some(right) = right.get(&value.key) else { continue };
            step.compared = step.compared.clone().with_noise(noise, &right.bytes, &value.bytes);
        }
    }
    let (expected, inputs) = (right.values, found.inputs);
    Ok(Comparison { outputs, steps, limits: *limits, inputs, expected, found: found.values })
}

/// What is known of a tensor before its values are looked at.
struct Subject {
    name: String,
    data_type: Option<DataType>,
    kind: Kind,
    depth: Depth,
}

impl Subject {
    fn only_there(self, limits: &Limits, shape: &[usize]) -> Compared {
        let allowed = Allowed::of(limits, self.kind, self.depth, 0.0);
        let differs = Some(Differs::OnlyThere);
        let Self { name, data_type, .. } = self;
        Compared { name, data_type, shape: shape.to_vec(), distance: None, allowed, differs }
    }

    /// Compares shapes and bytes.
    fn compare(
        self,
        limits: &Limits,
        expected: (&[usize], &[u8]),
        found: (&[usize], &[u8]),
    ) -> Compared {
        let Self { name, data_type, kind, depth } = self;
        let shape = found.0.to_vec();
        if expected.0 != found.0 || expected.1.len() != found.1.len() {
            let allowed = Allowed::of(limits, kind, depth, 0.0);
            let differs = Some(Differs::Shape { expected: expected.0.to_vec() });
            return Compared { name, data_type, shape, distance: None, allowed, differs };
        }
        let stored = data_type.unwrap_or(DataType::Uint8);
        let distance = Distance::of(stored, expected.1, found.1);
        let allowed = Allowed::of(limits, kind, depth, distance.magnitude);
        let differs = difference(stored, expected.1, found.1, allowed.tolerance);
        let differs = differs.map(Differs::Elements);
        Compared { name, data_type, shape, distance: Some(distance), allowed, differs }
    }
}
