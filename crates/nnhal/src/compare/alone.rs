//! Which step of a run computes something else, if each is judged alone.

use super::noise;
use super::record::Value;
use super::tolerance::{Depth, Kind, Limits, depths, has_half};
use super::{StepCompared, Subject};
use crate::conversion::as_devices_take;
use crate::devices;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::options::SessionOptions;
use crate::prepared::origin;
use crate::session::Input;
use crate::tensor::{Tensor, TensorView};
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{Model as HalModel, Operand, OperandLifeTime, Operation, Subgraph};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

/// Which step is responsible for a difference.
///
/// Each step of the main subgraph, which may be several operations computed as one, is computed again
/// by the reference device from what the judged device itself had computed before. So a step is not
/// blamed for what it was given. The reference device adds in double precision and rounds the result of
/// each operation once.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant)] // There is one.
pub enum Responsible {
    /// The first step that computes something else from the same values.
    Step {
        /// What it should have computed, and how far that may be off.
        step: StepCompared,
        /// How many operations it computes as one.
        operations: usize,
    },
    /// Each step computes the right values from what it is given: small differences have added up.
    NoStep {
        /// How many steps were judged.
        judged: usize,
        /// How many could not be: of extensions, or with variables.
        not_judged: usize,
        /// The one that uses up the largest share of what it may be off.
        worst: Option<StepCompared>,
    },
    /// The device does not show its results.
    NotShown,
}

/// A part of a model.
struct Part {
    model: HalModel,
    /// By input: the operand of the whole model.
    inputs: Vec<u32>,
    operations: usize,
}

/// Judges every step whose results are known.
pub(super) fn responsible(
    model: &Model,
    inputs: &[Tensor],
    values: &[Value],
    limits: &Limits,
) -> Responsible {
    let main: Vec<&Value> = values
        .iter()
        .filter(|it| it.key.place.subgraph == SubgraphName::Main && it.key.rounds.is_empty())
        .collect();
    let mut known: HashMap<u32, (&[usize], Cow<'_, [u8]>)> = HashMap::new();
    for (operand, tensor) in model.hal().main.inputs.iter().zip(inputs) {
        known.insert(*operand, (tensor.shape(), as_devices_take(tensor)));
    }
    for value in &main {
        known.insert(value.operand, (&value.shape, Cow::Borrowed(&value.bytes)));
    }
    let producers = producers(&model.hal().main);
    let (mut judged, mut not_judged, mut worst) = (0, 0, None::<(f64, StepCompared)>);
    for value in main {
        let recomputed = Part::of(model.hal(), value, &known, &producers)
            .map(|part| part.compute(&part.model, &known).map(|tensor| (part, tensor)));
        // The library has no tensors of the type, or the reference device does not run the operation.
        let Some((part, expected)) = recomputed.and_then(Result::ok) else {
            not_judged += 1;
            continue;
        };
        judged += 1;
        let half = has_half(model.hal());
        let subject = Subject {
            name: value.name(model),
            data_type: value.data_type,
            kind: Kind::of(expected.data_type(), half, value.is_quantized),
            depth: depths(&part.model).into_iter().fold(Depth::default(), Depth::max),
        };
        let right = (expected.shape(), expected.as_bytes());
        let found = (&*value.shape, &*value.bytes);
        let mut compared = subject.compare(limits, right, found);
        if compared.may_be_noise() {
            let compute = |model: &HalModel| part.compute(model, &known);
            let noise = noise::of_result(&part.model, compute, &expected);
            compared = compared.with_noise(noise, right.1, found.1);
        }
        let place = value.key.place;
        let (origin, output) = (origin(model, place), value.key.output);
        let step = StepCompared { place, origin, output, compared };
        if step.compared.differs.is_some() {
            return Responsible::Step { step, operations: part.operations };
        }
        let off = step.compared.distance.map_or(0.0, |distance| distance.largest);
        let share = off / step.compared.allowed.tolerance.absolute;
        if off > 0.0 && worst.as_ref().is_none_or(|(largest, _)| share > *largest) {
            worst = Some((share, step));
        }
    }
    Responsible::NoStep { judged, not_judged, worst: worst.map(|(_, step)| step) }
}

/// By operand: the operation that computes it.
fn producers(graph: &Subgraph) -> HashMap<u32, usize> {
    let outputs = graph.operations.iter().enumerate();
    outputs.flat_map(|(index, it)| it.outputs.iter().map(move |output| (*output, index))).collect()
}

impl Part {
    /// The operations that compute a value from values that are known; `None` if there is something
    /// among them that is not.
    fn of(
        whole: &HalModel,
        value: &Value,
        known: &HashMap<u32, (&[usize], Cow<'_, [u8]>)>,
        producers: &HashMap<u32, usize>,
    ) -> Option<Self> {
        let graph = &whole.main;
        let mut wanted = vec![value.key.place.index];
        let mut operations = BTreeSet::new();
        while let Some(index) = wanted.pop() {
            if !operations.insert(index) {
                continue;
            }
            for input in &graph.operations.get(index)?.inputs {
                let is_value = matches!(
                    graph.operands[*input as usize].lifetime,
                    OperandLifeTime::TemporaryVariable
                        | OperandLifeTime::SubgraphInput
                        | OperandLifeTime::SubgraphOutput
                );
                if is_value && !known.contains_key(input) {
                    wanted.push(*producers.get(input)?);
                }
            }
        }
        let mut part = Subgraph::default();
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        let mut inputs = Vec::new();
        let within: BTreeSet<u32> = operations
            .iter()
            .flat_map(|index| graph.operations[*index].outputs.iter().copied())
            .collect();
        for index in &operations {
            let Operation { operation_type, inputs: read, outputs: written } =
                &graph.operations[*index];
            let mut number = |operand: &u32| -> Option<u32> {
                if let Some(number) = numbers.get(operand) {
                    return Some(*number);
                }
                let mut copy: Operand = graph.operands[*operand as usize].clone();
                let number = u32::try_from(part.operands.len()).ok()?;
                copy.number_of_consumers = 0;
                let is_given = !within.contains(operand)
                    && (copy.lifetime == OperandLifeTime::TemporaryVariable
                        || copy.lifetime == OperandLifeTime::SubgraphInput
                        || copy.lifetime == OperandLifeTime::SubgraphOutput);
                if is_given {
                    copy.lifetime = OperandLifeTime::SubgraphInput;
                    copy.dimensions = narrowed(known.get(operand)?.0)?;
                    part.inputs.push(number);
                    inputs.push(*operand);
                } else if *operand == value.operand {
                    copy.lifetime = OperandLifeTime::SubgraphOutput;
                    part.outputs.push(number);
                } else if within.contains(operand) {
                    copy.lifetime = OperandLifeTime::TemporaryVariable;
                }
                part.operands.push(copy);
                numbers.insert(*operand, number);
                Some(number)
            };
            let read: Vec<u32> = read.iter().map(&mut number).collect::<Option<_>>()?;
            let written: Vec<u32> = written.iter().map(&mut number).collect::<Option<_>>()?;
            for read in &read {
                part.operands[*read as usize].number_of_consumers += 1;
            }
            let operation_type = *operation_type;
            part.operations.push(Operation { operation_type, inputs: read, outputs: written });
        }
        let model = HalModel { main: part, ..whole.clone() };
        Some(Self { model, inputs, operations: operations.len() })
    }

    /// The value, by the reference device.
    fn compute(
        &self,
        model: &HalModel,
        known: &HashMap<u32, (&[usize], Cow<'_, [u8]>)>,
    ) -> Result<Tensor> {
        let model = Model::from_hal(model.clone())?;
        let device = devices::names()[1];
        let session = model.session(SessionOptions::new().device(device))?;
        let mut inputs: Vec<Input<'_>> = Vec::with_capacity(self.inputs.len());
        for (operand, info) in self.inputs.iter().zip(model.inputs()) {
            let (shape, bytes) = &known[operand];
            inputs.push(TensorView::new(info.data_type, shape, bytes)?.into());
        }
        let outputs = session.run(inputs)?;
        outputs.into_tensors().pop().ok_or_else(|| Error::NotFound {
            what: "output",
            name: "0".to_owned(),
            available: Vec::new(),
        })
    }
}

fn narrowed(shape: &[usize]) -> Option<Vec<u32>> {
    shape.iter().map(|length| u32::try_from(*length).ok()).collect()
}
