//! [`Programs`]: a model prepared for the batches that it is served with, and [`Runners`], a worker's memory
//! for running them.

use super::queue::{Computed, Job};
use crate::config::ModelConfig;
use crate::error::{Error, Result};
use crate::request::{Data, OutputData};
use bytes::Bytes;
use nnhal::hal::memory::WeightPool;
use nnhal::hal::{Cancellation, Memory, Priority};
use nnhal::{Fill, Model, RunOptions, Runner, Session, SessionOptions, TensorInfo};
use std::path::Path;
use std::time::{Duration, Instant};

/// Memory for runs of other shapes that a worker keeps.
const MOST_RUNNERS: usize = 16;

/// A model prepared for batches of some numbers of rows, or as it is.
#[derive(Debug)]
pub(crate) struct Programs {
    /// By number of rows, ascending; the first is 1. Of a model that is not batched there is one, and its
    /// number says nothing.
    sizes: Vec<(usize, Session)>,
    is_batched: bool,
    /// Where all sizes have their packed weights.
    weights: WeightPool,
    /// Why rows are run one by one, if they are.
    row_by_row: Option<String>,
}

/// How long the parts of a batch took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Times {
    pub(crate) input: Duration,
    pub(crate) compute: Duration,
    pub(crate) output: Duration,
}

impl Programs {
    /// Prepares a model. With `batches`, which are numbers of rows in ascending order, the first axis of all
    /// inputs and outputs is one of rows. Where the file fixes their number, or rows depend on each other, they
    /// are run one by one.
    ///
    /// # Errors
    /// The device refuses it; an input has no rows.
    pub(crate) fn new(
        model: &Model,
        config: &ModelConfig,
        batches: &[usize],
        cache: Option<&Path>,
    ) -> Result<Self> {
        let options = SessionOptions::new()
            .device(&config.device)
            .threads(config.threads_of_a_run())
            .priority(config.priority(0));
        let weights = WeightPool::new();
        if batches.is_empty() {
            let session = prepare(model, &options, cache)?;
            let sizes = vec![(1, session)];
            return Ok(Self { sizes, is_batched: false, weights, row_by_row: None });
        }
        let options = match batches {
            [_] => options,
            _ => options.weights_in(&weights),
        };
        let of_rows = |rows: usize| -> Result<(usize, Session)> {
            let shapes = model.inputs().iter().map(|info| batch_shape(info, rows));
            let shapes: Option<Vec<_>> = shapes.collect();
            let why = "max_batch_size: an input has no axes, or others than the first are open";
            let shapes = shapes.ok_or_else(|| Error::invalid(why))?;
            let fits =
                |(info, shape): (&TensorInfo, &Option<Vec<usize>>)| info.known_shape() == *shape;
            let model = match model.inputs().iter().zip(&shapes).all(fits) {
                true => model.clone(),
                false => model.with_input_shapes(&shapes, false)?,
            };
            Ok((rows, prepare(&model, &options, cache)?))
        };
        let sizes = vec![of_rows(1)?];
        let mut programs =
            Self { sizes, is_batched: true, weights: weights.clone(), row_by_row: None };
        let larger = batches.iter().filter(|rows| **rows > 1).map(|rows| of_rows(*rows));
        let checked = larger.collect::<Result<Vec<_>>>().and_then(|larger| {
            programs.sizes.extend(larger);
            programs.check_rows()
        });
        if let Err(error) = checked {
            // One by one they are right, whatever the model does.
            programs.sizes.truncate(1);
            programs.row_by_row = Some(error.to_string());
        }
        Ok(programs)
    }

    /// Whether the rows of the largest batch give what each gives alone.
    fn check_rows(&self) -> Result<()> {
        let (Some((_, one)), Some((rows, all))) = (self.sizes.first(), self.sizes.last()) else {
            return Ok(());
        };
        if *rows == 1 {
            return Ok(());
        }
        let refuse = |why: String| Error::invalid(format!("the batch cannot be {rows}: {why}"));
        let values = Fill::Random { seed: 19 }.inputs(all.model(), &[])?;
        let together = all.run(&values)?;
        // The first row and the last: each run takes time.
        for row in [0, rows - 1] {
            let part = |tensor: &nnhal::Tensor| -> nnhal::Result<nnhal::Tensor> {
                let each = tensor.as_bytes().len() / rows;
                let mut shape = tensor.shape().to_vec();
                shape[0] = 1;
                let bytes = &tensor.as_bytes()[row * each..(row + 1) * each];
                nnhal::Tensor::from_bytes(tensor.data_type(), shape, bytes)
            };
            let inputs: Vec<_> = values.iter().map(part).collect::<nnhal::Result<_>>()?;
            let alone = one.run(&inputs)?;
            for ((name, whole), (_, single)) in together.iter().zip(&alone) {
                let shape = whole.shape();
                if shape.first() != Some(rows) || single.shape().first() != Some(&1) {
                    let found = single.shape();
                    return Err(refuse(format!(
                        "output {name:?} is {shape:?}, and {found:?} for one row"
                    )));
                }
                let expected = single.clone().with_quantization(None).reals();
                let found = part(whole)?.reals();
                let largest = expected.iter().fold(1.0_f64, |most, it| most.max(it.abs()));
                let is_float = whole.data_type().is_float();
                // Kernels may add in another order; quantized values may round to the next step.
                let bound = if is_float { largest * 5e-3 } else { 1.0 };
                let differs = |(a, b): (&f64, &f64)| (a - b).abs() > bound;
                if found.iter().zip(&expected).any(differs) {
                    return Err(refuse(format!(
                        "row {row} of output {name:?} is not what it is alone: rows depend on each other"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Why rows are run one by one, if they are.
    pub(crate) fn row_by_row(&self) -> Option<&str> {
        self.row_by_row.as_deref()
    }

    /// The session for one row, or for whatever comes.
    pub(crate) fn session(&self) -> &Session {
        &self.sizes[0].1
    }

    /// Bytes of packed weights and of memory that runs work in, as far as the device says it; each
    /// instance works in its own.
    pub(crate) fn memory(&self, instances: usize) -> u64 {
        let of_session = |session: &Session| {
            let plan = session.plan().unwrap_or_default();
            let weights: u64 = plan.iter().map(|step| step.weight_bytes).sum();
            let ends = plan.iter().flat_map(|step| {
                let values = step.writes.iter().map(|value| value.bytes.end);
                values.chain([step.scratch.end])
            });
            weights.saturating_add(ends.max().unwrap_or(0).saturating_mul(instances as u64))
        };
        let all: u64 = self.sizes.iter().map(|(_, session)| of_session(session)).sum();
        all.saturating_sub(self.weights.saved_bytes())
    }

    /// Bytes of the only input, if a run can read them where they came: the model is not batched, has one input of
    /// known lengths, and runs in this process.
    pub(crate) fn readable_input(&self) -> Option<usize> {
        let session = self.session();
        let [input] = session.model().inputs() else { return None };
        let is_here = !self.is_batched && session.plan().is_ok();
        input.known_shape().filter(|_| is_here).and_then(|it| input.data_type.byte_length(&it))
    }

    /// Whether runs take about the same time, whatever is in the tensors: the model is not batched, all shapes are
    /// known, there are no loops, and a device of this process runs it in steps.
    pub(crate) fn is_steady(&self) -> bool {
        let session = self.session();
        let is_known = session.model().inputs().iter().all(|it| it.known_shape().is_some());
        let has_loops = !session.model().hal().referenced.is_empty();
        !self.is_batched
            && is_known
            && !has_loops
            && session.plan().is_ok_and(|plan| !plan.is_empty())
    }

    /// How many rows to run at once of those that are left.
    fn rows_of(&self, left: usize) -> (usize, &Session) {
        let fits = self.sizes.iter().rev().find(|(rows, _)| *rows <= left);
        let (rows, session) = fits.unwrap_or(&self.sizes[0]);
        (*rows, session)
    }
}

/// Prepares a model, out of the folder of prepared ones if there is one. Without room there it is served all
/// the same.
fn prepare(
    model: &Model,
    options: &SessionOptions,
    cache: Option<&Path>,
) -> nnhal::Result<Session> {
    let Some(cache) = cache else { return model.session(options.clone()) };
    match model.session(options.clone().cache_dir(cache)) {
        Err(error @ nnhal::Error::File { .. }) => {
            tracing::warn!(%error, "the prepared model is not kept");
            model.session(options.clone())
        }
        prepared => prepared,
    }
}

/// The shape of an input of a number of rows; `None` if there is none.
fn batch_shape(info: &TensorInfo, rows: usize) -> Option<Option<Vec<usize>>> {
    let (_, rest) = info.shape.split_first()?;
    let rest: Option<Vec<usize>> = rest.iter().copied().collect();
    let shape = [rows].into_iter().chain(rest?).collect();
    Some(Some(shape))
}

/// Memory for runs, of which one is on at a time.
#[derive(Debug, Default)]
pub(crate) struct Runners(Vec<(Vec<Vec<usize>>, Runner)>);

/// Rows of a job that a run takes.
struct Part {
    job: usize,
    from: usize,
    rows: usize,
}

impl Runners {
    fn runner(&mut self, session: &Session, shapes: Vec<Vec<usize>>) -> Result<&mut Runner> {
        if let Some(at) = self.0.iter().position(|(known, _)| *known == shapes) {
            let last = self.0.len() - 1;
            self.0[at..=last].rotate_left(1);
        } else {
            let wanted: Vec<_> = shapes.iter().cloned().map(Some).collect();
            let runner = session.runner_for(&wanted)?;
            if self.0.len() == MOST_RUNNERS {
                self.0.remove(0);
            }
            self.0.push((shapes, runner));
        }
        match self.0.last_mut() {
            Some((_, runner)) => Ok(runner),
            None => Err(Error::Internal("no memory for runs".into())),
        }
    }

    /// Runs jobs of the same shapes together, and gives what each gave.
    ///
    /// # Errors
    /// The run failed; for all of them.
    pub(crate) fn run(
        &mut self,
        programs: &Programs,
        jobs: &[Job],
        times: &mut Times,
    ) -> Result<Vec<Computed>> {
        if !programs.is_batched {
            let rows = jobs.len();
            if rows != 1 {
                return Err(Error::Internal(format!("{rows} jobs of a model without batches")));
            }
        }
        let total: usize = jobs.iter().map(|job| job.rows).sum();
        let mut gathered: Vec<Gathered> = jobs.iter().map(|_| Gathered::default()).collect();
        let mut done = 0;
        while done < total {
            let (rows, session) = programs.rows_of(total - done);
            let parts = parts(jobs, done, rows);
            self.run_once(programs, session, jobs, &parts, &mut gathered, times)?;
            done += rows;
        }
        Ok(gathered.into_iter().map(Gathered::into_computed).collect())
    }

    fn run_once(
        &mut self,
        programs: &Programs,
        session: &Session,
        jobs: &[Job],
        parts: &[Part],
        gathered: &mut [Gathered],
        times: &mut Times,
    ) -> Result<()> {
        let begun = Instant::now();
        let rows: usize = parts.iter().map(|part| part.rows).sum();
        let first = &jobs[parts.first().map_or(0, |part| part.job)];
        let shapes: Vec<Vec<usize>> = first
            .inputs
            .iter()
            .map(|at| {
                let mut shape = first.request.inputs[*at].shape.clone();
                if let (true, Some(length)) = (programs.is_batched, shape.first_mut()) {
                    *length = rows;
                }
                shape
            })
            .collect();
        let runner = self.runner(session, shapes.clone())?;
        let mut lent: Vec<Option<Memory>> = vec![None; shapes.len()];
        for (index, shape) in shapes.iter().enumerate() {
            if let (false, Data::Memory(memory)) = (programs.is_batched, first.data(index)) {
                lent[index] = Some(memory.memory().clone());
                continue;
            }
            let mut failed = None;
            let outcome = runner.set_input_with(index, shape, |writer| {
                for part in parts {
                    let job = &jobs[part.job];
                    let data = job.data(index);
                    // All of it for a model that is not batched.
                    let each = data.length() / job.rows.max(1);
                    let range = part.from * each..(part.from + part.rows) * each;
                    let copied = data.each(range, |bytes| Ok(writer.write(bytes)?));
                    if let Err(error) = copied {
                        failed = Some(error);
                        break;
                    }
                }
                Ok(())
            });
            if let Some(error) = failed {
                return Err(error);
            }
            outcome?;
        }
        let fed = Instant::now();
        times.input += fed - begun;
        let options = RunOptions {
            measure: false,
            timeout: timeout(jobs, fed)?,
            cancellation: cancellation(jobs),
            priority: Some(jobs.first().map_or(Priority::Medium, |job| job.priority)),
        };
        match lent.iter().any(Option::is_some) {
            true => runner.run_in(&options, &lent, &[], None)?,
            false => runner.run_with(&options)?,
        }
        let computed = Instant::now();
        times.compute += computed - fed;
        collect(runner, session, programs.is_batched, rows, parts, gathered)?;
        times.output += computed.elapsed();
        Ok(())
    }
}

/// Copies what a run gave once, and gives each job its rows.
fn collect(
    runner: &Runner,
    session: &Session,
    is_batched: bool,
    rows: usize,
    parts: &[Part],
    gathered: &mut [Gathered],
) -> Result<()> {
    for (index, info) in session.model().outputs().iter().enumerate() {
        let shape = runner.output_shape(index)?.unwrap_or_default().to_vec();
        let too_large = || Error::Internal(format!("output {:?} is too large", info.name));
        let length = info.data_type.byte_length(&shape).ok_or_else(too_large)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| too_large())?;
        bytes.resize(length, 0);
        runner.read_output_bytes(index, &mut bytes)?;
        let bytes = Bytes::from(bytes);
        let mut row = 0;
        for part in parts {
            let job = &mut gathered[part.job];
            if !is_batched {
                job.outputs.push((shape.clone(), info.data_type, vec![bytes.clone()]));
                continue;
            }
            if shape.first() != Some(&rows) {
                let why = format!("output {:?} is {shape:?} for {rows} rows", info.name);
                return Err(Error::Internal(why));
            }
            let each = length / rows;
            let own = bytes.slice(row * each..(row + part.rows) * each);
            row += part.rows;
            match job.outputs.get_mut(index) {
                None => {
                    let mut shape = shape.clone();
                    shape[0] = part.rows;
                    job.outputs.push((shape, info.data_type, vec![own]));
                }
                Some((shape, _, parts)) => {
                    shape[0] += part.rows;
                    parts.push(own);
                }
            }
        }
    }
    Ok(())
}

/// What a job has got so far, by output.
#[derive(Default)]
struct Gathered {
    outputs: Vec<(Vec<usize>, nnhal::DataType, Vec<Bytes>)>,
}

impl Gathered {
    fn into_computed(self) -> Computed {
        let whole = |(shape, data_type, mut parts): (_, _, Vec<Bytes>)| {
            let bytes = match parts.len() {
                1 => parts.remove(0),
                _ => Bytes::from(parts.concat()),
            };
            (shape, OutputData::Tensor(data_type, bytes))
        };
        Computed { outputs: self.outputs.into_iter().map(whole).collect() }
    }
}

/// The rows from `done` on, by job.
fn parts(jobs: &[Job], done: usize, rows: usize) -> Vec<Part> {
    let (mut parts, mut before) = (Vec::new(), 0);
    let (start, end) = (done, done + rows);
    for (job, of_job) in jobs.iter().map(|job| job.rows).enumerate() {
        let (from, to) = (before.max(start), (before + of_job).min(end));
        if from < to {
            parts.push(Part { job, from: from - before, rows: to - from });
        }
        before += of_job;
    }
    parts
}

/// Until when a run makes sense for at least one of the jobs.
fn timeout(jobs: &[Job], now: Instant) -> Result<Option<Duration>> {
    let deadlines: Option<Vec<Instant>> = jobs.iter().map(|job| job.deadline).collect();
    let Some(last) = deadlines.and_then(|deadlines| deadlines.into_iter().max()) else {
        return Ok(None);
    };
    match last.checked_duration_since(now) {
        Some(left) if !left.is_zero() => Ok(Some(left)),
        _ => Err(Error::Timeout("before it was computed")),
    }
}

/// What gives a run up; a run for several is not given up for one of them.
fn cancellation(jobs: &[Job]) -> Option<Cancellation> {
    match jobs {
        [job] => Some(job.cancellation.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::InferRequest;

    fn job(rows: usize) -> Job {
        Job {
            request: InferRequest::default(),
            inputs: Vec::new(),
            rows,
            priority: Priority::Medium,
            arrived: Instant::now(),
            deadline: None,
            cancellation: Cancellation::new(),
            answer: tokio::sync::oneshot::channel().0,
            span: tracing::Span::none(),
        }
    }

    #[test]
    fn rows_are_divided_among_runs_without_gap() {
        let jobs = [job(1), job(3), job(2)];
        let of = |done, rows| -> Vec<_> {
            let parts = parts(&jobs, done, rows);
            parts.iter().map(|part| (part.job, part.from, part.rows)).collect()
        };
        assert_eq!(of(0, 4), [(0, 0, 1), (1, 0, 3)]);
        assert_eq!(of(4, 2), [(2, 0, 2)]);
        assert_eq!(of(0, 2), [(0, 0, 1), (1, 0, 1)]);
        assert_eq!(of(2, 4), [(1, 1, 2), (2, 0, 2)]);
    }
}
