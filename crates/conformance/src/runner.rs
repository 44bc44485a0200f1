//! [`run`]: every selected vector, on all processors.

use crate::paths::{self, Path};
use crate::report::{Judgement, Outcome, Report};
use crate::suite::{Audience, Suite};
use crate::vectors::{Case, VectorError, Vectors};
use nnhal_hal::{Device, HalVersion};
use std::fmt;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Which vectors to run, in which suites.
#[derive(Clone)]
pub struct Selection {
    /// Only cases whose name or specification contains this text; empty: all.
    pub filter: String,
    /// In these suites.
    pub suites: Vec<Suite>,
    /// Whether the device stands for the C library, which takes models that the interface of devices
    /// excludes. Others may or must refuse them: [`Judgement::ForCLibrary`].
    pub is_c_library: bool,
    /// By these paths, where a suite and a vector are meant for them.
    pub paths: Vec<Path>,
    /// The device as it is used by the methods that answer through a callback, for
    /// [`Path::Asynchronous`].
    pub asynchronous: Option<Arc<dyn Device>>,
}

impl fmt::Debug for Selection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { filter, suites, is_c_library, paths, asynchronous } = self;
        formatter
            .debug_struct("Selection")
            .field("filter", filter)
            .field("suites", suites)
            .field("is_c_library", is_c_library)
            .field("paths", paths)
            .field("asynchronous", &asynchronous.is_some())
            .finish()
    }
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            filter: String::new(),
            suites: Suite::ALL.to_vec(),
            is_c_library: false,
            paths: vec![Path::Synchronous],
            asynchronous: None,
        }
    }
}

impl Selection {
    /// Whether a case is to be run.
    pub fn includes(&self, case: &Case) -> bool {
        case.name.contains(&self.filter) || case.spec.contains(&self.filter)
    }
}

/// Runs all selected vectors. `progress` hears the number of files done.
///
/// A device that is older than the latest version is judged by what its version has: it is given
/// models without the arguments that say nothing, as Android's runtime does, and what it has no
/// words for is skipped, each with the version that it needs (see [`Suite::needs`]).
///
/// # Errors
/// The first file that cannot be read.
pub fn run(
    device: &dyn Device,
    vectors: &Vectors,
    selection: &Selection,
    progress: impl Fn(usize) + Sync,
) -> Result<Report, VectorError> {
    let files = vectors.files();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results = Mutex::new(Vec::with_capacity(files.len()));
    let workers = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(file) = files.get(index) else { break };
                    let outcomes = vectors.cases(file).and_then(|cases| {
                        let mut outcomes = Vec::new();
                        for case in cases {
                            outcomes.extend(run_case(device, &case?, selection));
                        }
                        Ok(outcomes)
                    });
                    lock(&results).push((index, outcomes));
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1);
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    let mut report = Report::default();
    for (_, outcomes) in results {
        report.outcomes.extend(outcomes?);
    }
    Ok(report)
}

fn run_case(device: &dyn Device, case: &Case, selection: &Selection) -> Vec<Outcome> {
    if !selection.includes(case) {
        return Vec::new();
    }
    let (name, spec) = (Arc::from(&*case.name), Arc::from(&*case.spec));
    let operation = case.ops.first().map_or("(none)", |operation| operation);
    let operation: Arc<str> = Arc::from(operation);
    let outcome = |suite, rule, judgement| Outcome {
        case: Arc::clone(&name),
        spec: Arc::clone(&spec),
        operation: Arc::clone(&operation),
        suite,
        rule,
        path: Path::Synchronous,
        judgement,
    };
    let version = device.version();
    let suites = selection.suites.iter().copied().filter(|suite| suite.includes(case));
    let audience = if selection.is_c_library { Audience::All } else { Suite::audience(case) };
    suites
        .flat_map(|suite| {
            let needed = if version < HalVersion::LATEST { suite.needs(case) } else { version };
            if needed > version {
                return vec![outcome(suite, None, Judgement::Skipped(needed))];
            }
            if audience != Audience::All {
                let judgement = match Suite::is_refused(device, case) {
                    Ok(true) => Some(Judgement::ForCLibrary),
                    Ok(false) if audience == Audience::CLibraryOnly => Some(Judgement::Failed(
                        "accepted, but operands of a WHILE are of unknown size (CF-4)".into(),
                    )),
                    Ok(false) => None,
                    Err(failure) => Some(Judgement::Failed(failure)),
                };
                if let Some(judgement) = judgement {
                    return vec![outcome(suite, None, judgement)];
                }
            }
            let mut judged = Vec::new();
            for path in selection.paths.iter().copied().filter(|it| it.includes(suite, case)) {
                if suite == Suite::Mutation {
                    judged.extend(suite.run(device, case).into_iter().map(|(rule, failure)| {
                        outcome(suite, rule, failure.map_or(Judgement::Passed, Judgement::Failed))
                    }));
                    continue;
                }
                let judgement = by_path(path, suite, device, case, selection);
                judged.push(Outcome { path, ..outcome(suite, None, judgement) });
            }
            judged
        })
        .collect()
}

fn by_path(
    path: Path,
    suite: Suite,
    device: &dyn Device,
    case: &Case,
    selection: &Selection,
) -> Judgement {
    let device = match (path, &selection.asynchronous) {
        (Path::Asynchronous, Some(asynchronous)) => &**asynchronous,
        (Path::Asynchronous, None) => {
            return Judgement::NotOffered("there are no methods with callbacks".into());
        }
        _ => device,
    };
    let version = device.version();
    let needed = if version < HalVersion::LATEST { suite.needs(case) } else { version };
    let needed = needed.max(path.needs());
    if needed > version {
        return Judgement::Skipped(needed);
    }
    match suite.run_by(path, device, case) {
        Ok(paths::Outcome::Passed) => Judgement::Passed,
        Ok(paths::Outcome::NotOffered(what)) => Judgement::NotOffered(what),
        Ok(paths::Outcome::Declined(why)) => Judgement::Declined(why),
        Err(failure) => Judgement::Failed(failure),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
