//! What a worker does: takes batches, runs them, and answers. What is short and need not wait is run without one.

use super::program::Times;
use super::queue::Computed;
use super::queue::{Job, Permit, Taken};
use super::{LONGEST_ON_CALLER, Served};
use crate::error::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Until the queue is closed and empty.
pub(super) fn work(served: &Served) {
    while let Some(taken) = served.queue.take() {
        drop(work_on(served, taken));
    }
}

/// Runs what was taken, and gives the permit back.
fn work_on(served: &Served, Taken { batch, dropped, permit }: Taken) -> Option<Permit> {
    served.metrics.waiting.set(i64::try_from(served.queue.waiting()).unwrap_or(i64::MAX));
    served.give_up(dropped);
    if !batch.is_empty() {
        run(served, batch);
    }
    permit
}

/// Runs a job on the caller's thread, which is one of the runtime's, and has those that came meanwhile run on the same
/// threads, one after the other between other tasks: no worker is woken as long as jobs are short.
pub(super) fn run_here(served: &Arc<Served>, permit: Permit, job: Job) {
    run(served, vec![job]);
    pass_on(served, permit);
}

fn pass_on(served: &Arc<Served>, permit: Permit) {
    if served.queue.waiting() == 0 || !served.queue.is_for_callers(LONGEST_ON_CALLER) {
        return;
    }
    let served = Arc::clone(served);
    tokio::spawn(async move {
        let taken = served.queue.next(permit);
        if let Some(permit) = work_on(&served, taken) {
            pass_on(&served, permit);
        }
    });
}

/// Runs a batch. One that fails is run again request by request, so that none fails for another.
fn run(served: &Served, batch: Vec<Job>) {
    let begun = Instant::now();
    let mut times = Times::default();
    let outcome = {
        let _entered = batch[0].span.enter();
        guarded(served, &batch, &mut times)
    };
    match outcome {
        Ok(computed) => {
            served.queue.took(begun.elapsed(), batch.len());
            succeed(served, batch, computed, begun, &times);
        }
        Err(Error::Timeout(when)) => fail(served, batch, &Error::Timeout(when)),
        Err(_) if batch.len() > 1 => {
            for job in batch {
                run(served, vec![job]);
            }
        }
        Err(error) => fail(served, batch, &error),
    }
}

/// A panic of a run is a failure of its requests alone.
fn guarded(served: &Served, batch: &[Job], times: &mut Times) -> Result<Vec<Computed>> {
    let run = AssertUnwindSafe(|| {
        let mut runners = served.runners().pop().unwrap_or_default();
        let computed = runners.run(&served.programs, batch, times);
        // Not after a panic, whatever it left there.
        served.runners().push(runners);
        computed
    });
    catch_unwind(run).unwrap_or_else(|_| {
        Err(Error::Internal("the run panicked; the server's log says more".into()))
    })
}

fn succeed(
    served: &Served,
    batch: Vec<Job>,
    computed: Vec<Computed>,
    begun: Instant,
    times: &Times,
) {
    let now = Instant::now();
    let jobs: Vec<_> = batch
        .iter()
        .map(|job| (job.rows, now - job.arrived, begun.saturating_duration_since(job.arrived)))
        .collect();
    served.statistics.computed(&jobs, times);
    let mut rows = 0;
    for (of_job, latency, waited) in &jobs {
        served.metrics.computed(*latency, *waited);
        rows += of_job;
    }
    served.metrics.rows.inc_by(rows as u64);
    served.metrics.compute.observe(times.compute.as_secs_f64());
    #[allow(clippy::cast_precision_loss)] // A few.
    served.metrics.batch.observe(rows as f64);
    for (job, computed) in batch.into_iter().zip(computed) {
        job.finish(Ok(computed));
    }
}

fn fail(served: &Served, batch: Vec<Job>, error: &Error) {
    if batch.iter().all(|job| job.cancellation.is_cancelled()) {
        // As often as clients like; it says nothing of the model.
        tracing::debug!(model = served.name, version = served.version, "a run was given up");
    } else {
        if matches!(error, Error::Unavailable(_)) {
            served.is_device_gone.store(true, Ordering::Relaxed);
        }
        tracing::warn!(model = served.name, version = served.version, %error, "a run failed");
    }
    for job in batch {
        served.failed(job.arrived.elapsed());
        // A run that was given up because its client had gone.
        let is_cancelled = job.cancellation.is_cancelled();
        job.finish(Err(if is_cancelled { Error::Cancelled } else { error.clone() }));
    }
}
