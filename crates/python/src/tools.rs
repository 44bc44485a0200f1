//! Devices, and what is measured and compared.

use crate::error::Outcome;
use crate::session::{Session, copied};
use nnhal::compare::{Limits, Responsible};
use nnhal::{Input, bench};
use numpy::PyUntypedArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// A dictionary for each device.
#[pyfunction]
pub(crate) fn devices(py: Python<'_>) -> Outcome<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for device in nnhal::devices::all(None)? {
        let dict = PyDict::new(py);
        dict.set_item("name", device.name())?;
        dict.set_item("version", device.version_string())?;
        dict.set_item("is_default", device.name() == nnhal::devices::DEFAULT)?;
        list.append(dict)?;
    }
    Ok(list)
}

/// How many threads a run uses if nothing else is asked for.
#[pyfunction]
pub(crate) fn default_threads() -> Outcome<usize> {
    Ok(nnhal::devices::default_threads()?.get())
}

/// How long runs take, in seconds: their number, the median, the shortest, the 90th percentile, the mean.
#[pyfunction]
pub(crate) fn bench_session(
    py: Python<'_>,
    session: &Bound<'_, Session>,
    inputs: Vec<Bound<'_, PyUntypedArray>>,
    warmup: u32,
    runs: u32,
) -> Outcome<(u32, f64, f64, f64, f64)> {
    let tensors = inputs.iter().map(copied).collect::<Outcome<Vec<_>>>()?;
    let session = session.get().library();
    let plan = bench::Plan { warmup, runs, ..bench::Plan::default() };
    let found = py.detach(|| bench::run(session, &tensors, plan, || ()))?;
    let [median, min, p90, mean] =
        [found.median, found.min, found.p90, found.mean].map(|time| time.as_secs_f64());
    Ok((found.runs, median, min, p90, mean))
}

/// Runs two sessions with the same inputs: how many results agree if all do, otherwise a dictionary about
/// the first one that does not.
#[pyfunction]
pub(crate) fn compare_sessions<'py>(
    py: Python<'py>,
    judge: &Bound<'py, Session>,
    judged: &Bound<'py, Session>,
    inputs: Vec<Bound<'py, PyUntypedArray>>,
    absolute: Option<f64>,
    relative: Option<f64>,
    steps: Option<u32>,
) -> Outcome<(usize, Option<Bound<'py, PyDict>>)> {
    let tensors = inputs.iter().map(copied).collect::<Outcome<Vec<_>>>()?;
    let (judge, judged) = (judge.get().library(), judged.get().library());
    let limits = Limits { absolute, relative, steps };
    let (comparison, responsible) = py.detach(|| {
        let inputs: Vec<Input<'_>> = tensors.iter().map(Into::into).collect();
        let comparison = nnhal::compare::run(judge, judged, &inputs, &limits)?;
        let responsible = (!comparison.agree()).then(|| comparison.responsible(judged));
        Ok::<_, nnhal::Error>((comparison, responsible))
    })?;
    let compared = comparison.outputs.len() + comparison.steps.len();
    let differing = comparison.outputs.iter().enumerate().find(|(_, it)| it.differs.is_some());
    let Some((index, output)) = differing else { return Ok((compared, None)) };
    let dict = PyDict::new(py);
    dict.set_item("output", index)?;
    dict.set_item("name", &output.name)?;
    dict.set_item("shape", &output.shape)?;
    dict.set_item("what", output.differs.as_ref().map(ToString::to_string))?;
    dict.set_item("allowed", output.allowed.to_string())?;
    let step = match responsible {
        Some(Responsible::Step { step, .. }) => Some(step),
        _ => None,
    };
    dict.set_item("operation", step.as_ref().map(|step| step.place.to_string()))?;
    let origin = step.as_ref().and_then(|step| step.origin.as_ref());
    dict.set_item("operator", origin.map(ToString::to_string))?;
    Ok((0, Some(dict)))
}
