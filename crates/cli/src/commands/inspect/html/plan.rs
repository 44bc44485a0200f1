//! [`Device`]: what a device makes of a model, with its times and memory.

use super::super::plan::{RUNS, WARMUP};
use crate::commands::{microseconds, shortened};
use crate::error::Result;
use crate::inputs::{self, Filled};
use nnhal::hal::model::SubgraphName;
use nnhal::{Model, PlannedStep, PlannedValue, ProfiledStep, Session};
use serde::Serialize;
use std::collections::HashMap;

/// A device and its steps.
#[derive(Serialize)]
pub struct Device {
    name: String,
    version: String,
    steps: Vec<Step>,
    /// From one step to another, by index.
    edges: Vec<[usize; 2]>,
    runs: usize,
    prepare_us: f64,
    /// Bytes that values take while the model runs, all plans together.
    memory: u64,
}

/// A step of the plan.
#[derive(Serialize)]
struct Step {
    /// Of the main subgraph, or -1 within control flow.
    operation: i64,
    place: String,
    #[serde(rename = "type")]
    operation_type: String,
    kernel: String,
    why_reference: Option<String>,
    shape: String,
    us: Option<f64>,
    arithmetic: u64,
    bytes: u64,
    weight_bytes: u64,
    /// Operators of the file that it computes, by index.
    covers: Vec<usize>,
    plan: usize,
    reads: Vec<Value>,
    writes: Vec<Value>,
    scratch: [u64; 2],
}

#[derive(Serialize)]
struct Value {
    buffer: usize,
    bytes: [u64; 2],
    /// Index of the file's tensor.
    tensor: Option<usize>,
    is_kept: bool,
}

impl Device {
    /// Runs the model some times.
    pub fn measure(session: &Session, model: &Model, filled: &[Filled]) -> Result<Self> {
        let profile = session.profile(inputs::values(filled), WARMUP, RUNS)?;
        let tensors: HashMap<u32, usize> = (0..model.tensors().len())
            .filter_map(|tensor| Some((model.operand(tensor)?, tensor)))
            .collect();
        let value = |value: &PlannedValue| Value {
            buffer: value.buffer,
            bytes: [value.bytes.start, value.bytes.end],
            tensor: value.operand.and_then(|operand| tensors.get(&operand).copied()),
            is_kept: value.is_kept,
        };
        let plan: Vec<&PlannedStep> = profile.steps.iter().map(|it| &it.step).collect();
        let covers = covers(model, &plan);
        let (edges, memory) = (edges(model, &plan), memory(&plan));
        let step = |(ProfiledStep { step, time, .. }, covers): (&ProfiledStep, Vec<usize>)| Step {
            operation: match step.place.subgraph {
                SubgraphName::Main => i64::try_from(step.place.index).unwrap_or(-1),
                SubgraphName::Referenced(_) => -1,
            },
            place: step.place.to_string(),
            operation_type: step.place.operation_name(),
            kernel: shortened(&step.kernel),
            why_reference: step.why_reference.clone(),
            shape: step.dimensions.iter().map(u32::to_string).collect::<Vec<_>>().join("×"),
            us: time.map(microseconds),
            arithmetic: step.arithmetic,
            bytes: step.bytes,
            weight_bytes: step.weight_bytes,
            covers,
            plan: step.plan,
            reads: step.reads.iter().map(value).collect(),
            writes: step.writes.iter().map(value).collect(),
            scratch: [step.scratch.start, step.scratch.end],
        };
        let device = session.device();
        Ok(Self {
            name: device.name().to_owned(),
            version: device.version_string(),
            steps: profile.steps.iter().zip(covers).map(step).collect(),
            edges,
            runs: RUNS,
            prepare_us: microseconds(session.preparing()),
            memory,
        })
    }
}

/// By step: the file's operators that it computes. An operation without a step of its own belongs to
/// the step that what it computes flows into, or else to the one that it comes from.
fn covers(model: &Model, plan: &[&PlannedStep]) -> Vec<Vec<usize>> {
    let operations = &model.hal().main.operations;
    let mut step_of: Vec<Option<usize>> = vec![None; operations.len()];
    for (index, step) in plan.iter().enumerate() {
        if step.place.subgraph == SubgraphName::Main
            && let Some(of) = step_of.get_mut(step.place.index)
        {
            *of = Some(index);
        }
    }
    let mut reader: HashMap<u32, usize> = HashMap::new();
    for (index, operation) in operations.iter().enumerate().rev() {
        let into = || operation.outputs.iter().find_map(|it| reader.get(it).copied());
        step_of[index] = step_of[index].or_else(into);
        if let Some(step) = step_of[index] {
            reader.extend(operation.inputs.iter().map(|input| (*input, step)));
        }
    }
    let mut writer: HashMap<u32, usize> = HashMap::new();
    for (index, operation) in operations.iter().enumerate() {
        let from = || operation.inputs.iter().find_map(|it| writer.get(it).copied());
        step_of[index] = step_of[index].or_else(from);
        if let Some(step) = step_of[index] {
            writer.extend(operation.outputs.iter().map(|output| (*output, step)));
        }
    }
    let mut covers = vec![Vec::new(); plan.len()];
    for (step, origin) in step_of.iter().zip(model.operator_origins()) {
        if let (Some(step), Some(operator)) = (step, origin.index) {
            covers[*step].push(operator);
        }
    }
    for covers in &mut covers {
        covers.sort_unstable();
        covers.dedup();
    }
    covers
}

/// Which step reads what which other writes: by memory, and of interpreted operations by operand.
fn edges(model: &Model, plan: &[&PlannedStep]) -> Vec<[usize; 2]> {
    let mut writers: HashMap<(usize, usize), Vec<(usize, &PlannedValue)>> = HashMap::new();
    let mut of_operand: HashMap<u32, usize> = HashMap::new();
    let mut edges = Vec::new();
    for (index, step) in plan.iter().enumerate() {
        for read in &step.reads {
            let all = writers.get(&(step.plan, read.buffer)).map_or(&[][..], |it| it);
            let shared = all.iter().filter(|(_, written)| {
                written.bytes.start < read.bytes.end && read.bytes.start < written.bytes.end
            });
            edges.extend(shared.map(|(writer, _)| [*writer, index]));
        }
        let is_main = step.place.subgraph == SubgraphName::Main;
        let operation = model.hal().main.operations.get(step.place.index).filter(|_| is_main);
        if let Some(operation) = operation {
            if step.reads.is_empty() || step.writes.is_empty() {
                let read = operation.inputs.iter().filter_map(|input| of_operand.get(input));
                edges.extend(read.map(|writer| [*writer, index]));
            }
            of_operand.extend(operation.outputs.iter().map(|output| (*output, index)));
        }
        for written in &step.writes {
            writers.entry((step.plan, written.buffer)).or_default().push((index, written));
        }
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// The most that any step's memory reaches to, of all plans together.
fn memory(plan: &[&PlannedStep]) -> u64 {
    let mut ends: HashMap<usize, u64> = HashMap::new();
    for step in plan {
        let values = step.reads.iter().chain(&step.writes).map(|value| value.bytes.end);
        let end = values.chain([step.scratch.end]).max().unwrap_or(0);
        let known = ends.entry(step.plan).or_default();
        *known = (*known).max(end);
    }
    ends.values().sum()
}
