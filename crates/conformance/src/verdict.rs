//! [`Suite::run`]: runs a vector in a suite by a [`Path`], and says what came of it.

use crate::compare;
use crate::instance::{Instance, with_signed_quantization};
use crate::mutation;
use crate::paths::{self, Aim, Opened, Path};
use crate::suite::Suite;
use crate::vectors::Case;
use nnhal_hal::{Device, ErrorStatus, ExecutionError, ExecutionOptions, HalVersion, OutputShape};
use nnhal_hidl::client::{Answered, NOTIFY};
use std::time::Duration;

/// What came of a vector in a suite: the rule that was broken, in the mutation suite; and nothing if
/// it passed, else a sentence that says what went wrong.
pub type Verdict = (Option<&'static str>, Option<String>);

impl Suite {
    /// Runs a vector. The mutation suite has a verdict for each rule that can be broken, the others
    /// have one. What the device declines counts as passed here, see [`Suite::run_by`].
    pub fn run(self, device: &dyn Device, case: &Case) -> Vec<Verdict> {
        match self {
            Self::Mutation => mutations(device, case),
            other => vec![(None, other.run_by(Path::Synchronous, device, case).err())],
        }
    }

    /// Runs a vector by a path, in a suite that has one verdict.
    ///
    /// # Errors
    /// What went wrong.
    pub fn run_by(
        self,
        path: Path,
        device: &dyn Device,
        case: &Case,
    ) -> Result<paths::Outcome, String> {
        let instance = |case: &Case| match Instance::new(case) {
            Ok(instance) => Ok(instance.for_version(device.version())),
            Err(error) => Err(error.to_string()),
        };
        let judge = |case: &Case, instance: Instance| match declined(device, &instance)? {
            Some(why) => Ok(paths::Outcome::Declined(why)),
            None => match self {
                Self::ShortOutput => short_output(path, device, case, &instance),
                Self::Timeout => timeout(path, device, case, &instance),
                _ => run_and_compare(path, device, case, &instance),
            },
        };
        match self {
            Self::Generated | Self::Timeout => judge(case, instance(case)?),
            Self::DynamicOutputShape | Self::ShortOutput => {
                judge(case, instance(case)?.with_unknown_output_shapes())
            }
            Self::QuantizationCoupling => {
                let case = with_signed_quantization(case);
                judge(&case, instance(&case)?)
            }
            Self::Compliance => {
                compliance(device, case, &instance(case)?).map(|()| paths::Outcome::Passed)
            }
            Self::Validation => validation(path, device, case, &instance(case)?),
            Self::Mutation => Ok(paths::Outcome::Passed),
        }
    }
}

/// The reason why a device declines a model: it says that it does not support operations of it, and
/// refuses to prepare it. What it prepares all the same is judged.
///
/// # Errors
/// It refuses it as invalid.
fn declined(device: &dyn Device, instance: &Instance) -> Result<Option<String>, String> {
    let Ok(supported) = device.supported_operations(&instance.model, HalVersion::LATEST) else {
        return Ok(None);
    };
    let operations = &instance.model.main.operations;
    let unsupported =
        supported.iter().zip(operations).find_map(|(answer, operation)| match answer {
            nnhal_hal::Support::Yes => None,
            nnhal_hal::Support::No(reason) => {
                Some(format!("{}: {reason}", operation.operation_type))
            }
        });
    let Some(reason) = unsupported else { return Ok(None) };
    match instance.prepare(device) {
        Ok(_) => Ok(None),
        Err(error) if is_of_launch(&error) => {
            Err(format!("said to be valid but not supported ({reason}), and refused with {error}"))
        }
        Err(_) => Ok(Some(reason)),
    }
}

/// A model that is ready to be executed by a path, or what the device does not offer.
fn open<'a>(
    path: Path,
    device: &'a dyn Device,
    case: &'a Case,
    instance: &'a Instance,
) -> Result<Result<Opened<'a>, paths::Outcome>, String> {
    match path.prepare(device, instance)? {
        Ok(prepared) => path.open(device, case, instance, prepared).map(Ok),
        Err(why) => Ok(Err(paths::Outcome::NotOffered(why))),
    }
}

fn run_and_compare(
    path: Path,
    device: &dyn Device,
    case: &Case,
    instance: &Instance,
) -> Result<paths::Outcome, String> {
    let opened = match open(path, device, case, instance)? {
        Ok(opened) => opened,
        Err(outcome) => return Ok(outcome),
    };
    for (round, options) in opened.rounds() {
        let said = |what: String| format!("{round} execution: {what}");
        let request = instance.request(None).map_err(|error| error.to_string())?;
        match opened.execute(&request, &options, Aim::Result).map_err(said)? {
            Err(why) => return Ok(paths::Outcome::NotOffered(why)),
            Ok(Err(failed)) => return Err(format!("{round} execution failed: {failed}")),
            Ok(Ok(execution)) => {
                compare::execution(case, instance, &request, &execution).map_err(said)?
            }
        }
    }
    Ok(paths::Outcome::Passed)
}

/// Shortens one output after the other; those of one byte cannot be.
fn short_output(
    path: Path,
    device: &dyn Device,
    case: &Case,
    instance: &Instance,
) -> Result<paths::Outcome, String> {
    let opened = match open(path, device, case, instance)? {
        Ok(opened) => opened,
        Err(outcome) => return Ok(outcome),
    };
    for (shortened, expected) in instance.expected.iter().enumerate() {
        let operand = &case.main.operands[case.main.outputs[shortened] as usize];
        if expected.len() <= 1 || operand.ignored || operand.dimensions.is_empty() {
            continue;
        }
        for (round, options) in opened.rounds() {
            let request = instance.request(Some(shortened)).map_err(|error| error.to_string())?;
            let said =
                |what: String| format!("output {shortened} is too short, {round} time: {what}");
            match opened.execute(&request, &options, Aim::Shortage(shortened)).map_err(said)? {
                Err(why) => return Ok(paths::Outcome::NotOffered(why)),
                Ok(Ok(_)) => return Err(said("that was accepted".into())),
                Ok(Err(failed)) => {
                    demand_shortage(path, case, instance, shortened, &failed).map_err(said)?;
                }
            }
        }
    }
    Ok(paths::Outcome::Passed)
}

/// Demands the status that a path has for an output without room, and the right shapes with
/// `OUTPUT_INSUFFICIENT_SIZE` (contract: SHAPE-4, FENCE-2, DBUF-7).
fn demand_shortage(
    path: Path,
    case: &Case,
    instance: &Instance,
    shortened: usize,
    failed: &ExecutionError,
) -> Result<(), String> {
    let wanted = match path {
        Path::Fenced | Path::Chained => ErrorStatus::InvalidArgument,
        Path::DeviceMemory => ErrorStatus::GeneralFailure,
        _ => ErrorStatus::OutputInsufficientSize,
    };
    if failed.error.status() != wanted {
        return Err(format!("expected {wanted}, found {failed}"));
    }
    if wanted != ErrorStatus::OutputInsufficientSize {
        return demand_no_shapes(failed);
    }
    for (index, shape) in failed.output_shapes.iter().enumerate() {
        let wanted = OutputShape {
            dimensions: instance.dimensions[index].clone(),
            is_sufficient: index != shortened,
        };
        let ignored = case.main.operands[case.main.outputs[index] as usize].ignored;
        if *shape != wanted && !ignored {
            return Err(format!("shape of output {index} is {shape:?}, expected {wanted:?}"));
        }
    }
    if failed.output_shapes.len() != instance.expected.len() {
        return Err("not all shapes were given".into());
    }
    Ok(())
}

fn demand_no_shapes(failed: &ExecutionError) -> Result<(), String> {
    if failed.output_shapes.is_empty() {
        return Ok(());
    }
    Err(format!("failed as it must, but with output shapes: {failed}"))
}

fn compliance(device: &dyn Device, case: &Case, instance: &Instance) -> Result<(), String> {
    let claimed = case.min_hal.ok_or("the vector claims no version")?;
    // As the runtime does before it asks a device: the claim is about what remains.
    let model = nnhal_ops::simplify::without_defaults(&instance.model);
    let newest = claimed.min(device.version());
    for version in HalVersion::ALL.iter().filter(|version| **version <= newest) {
        let answer = device.supported_operations(&model, *version);
        match answer {
            Ok(_) if *version < claimed => {
                return Err(format!("valid for {version}, but needs {claimed}"));
            }
            Err(error) if *version == claimed => {
                return Err(format!("not valid for {claimed}: {error}"));
            }
            Err(error) if error.status() != ErrorStatus::InvalidArgument => {
                return Err(format!("refused for {version} with {error}"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Where a model that must fail did.
#[derive(Debug)]
enum Refusal {
    /// When it was handed over: ranks and types are looked at then.
    Launching(nnhal_hal::Error),
    /// While it was prepared, after the launch.
    Preparing(nnhal_hal::Error),
    /// While it was executed.
    Executing(nnhal_hal::Error),
    /// Nowhere, because the device does not offer what the path is about.
    NotOffered(String),
}

/// Demands that a model which breaks a definition fails, and where it may. Where only values and
/// lengths are wrong, the question what is supported and the launch of its preparation answer `NONE`
/// (contract: MODEL-29), and preparing may only fail if an operation is said to be unsupported
/// (contract: DEV-SUP-3). Where a rank is wrong, both may answer `INVALID_ARGUMENT`.
fn must_fail(
    path: Path,
    device: &dyn Device,
    case: &Case,
    instance: &Instance,
) -> Result<Refusal, String> {
    let version = HalVersion::LATEST;
    let may_be_refused = nnhal_ops::validate::check(&instance.model, version).is_err();
    let supported = match device.supported_operations(&instance.model, version) {
        Ok(supported) => supported,
        Err(error) if may_be_refused && error.status() == ErrorStatus::InvalidArgument => {
            return match instance.prepare(device) {
                Err(error) if error.status() == ErrorStatus::InvalidArgument => {
                    Ok(Refusal::Launching(error))
                }
                Err(error) => Err(format!("refused, but prepare_model answered {error}")),
                Ok(_) => Err("refused by supported_operations, but prepared".into()),
            };
        }
        Err(error) => return Err(format!("refused by supported_operations: {error}")),
    };
    let (answers, operations) = (supported.len(), instance.model.main.operations.len());
    if answers != operations {
        return Err(format!("{answers} answers for {operations} operations"));
    }
    let prepared = match instance.prepare(device) {
        Ok(prepared) => prepared,
        Err(error) if is_of_launch(&error) => {
            return Err(format!("refused by the launch of prepare_model: {error}"));
        }
        Err(error) if supported.iter().all(nnhal_hal::Support::is_yes) => {
            return Err(format!("all operations are supported, but preparing failed: {error}"));
        }
        Err(error) => return Ok(Refusal::Preparing(error)),
    };
    let prepared = match path {
        Path::Cached => match path.prepare(device, instance)? {
            Ok(loaded) => loaded,
            Err(why) => return Ok(Refusal::NotOffered(why)),
        },
        _ => prepared,
    };
    let opened = path.open(device, case, instance, prepared)?;
    let mut refusal = None;
    for (round, options) in opened.rounds() {
        let request = instance.request(None).map_err(|error| error.to_string())?;
        // Loops of these vectors end after few rounds or never: the default limit would only be
        // waited for.
        let loop_timeout = Some(Duration::from_millis(1));
        let options = ExecutionOptions { loop_timeout, ..options };
        let said = |what: String| format!("{round} execution: {what}");
        match opened.execute(&request, &options, Aim::Result).map_err(said)? {
            Err(why) => return Ok(Refusal::NotOffered(why)),
            Ok(Ok(_)) => return Err(said("accepted and executed, but must fail".into())),
            Ok(Err(failed)) => {
                demand_no_shapes(&failed).map_err(said)?;
                refusal = Some(failed.error);
            }
        }
    }
    refusal.map(Refusal::Executing).ok_or_else(|| "it was never executed".into())
}

/// Whether an error of preparing came before the background task began. A driver behind the
/// interfaces shows it; of a device in this process it is what speaks of the arguments (contract:
/// PREP-1).
fn is_of_launch(error: &nnhal_hal::Error) -> bool {
    match error.reason::<Answered>() {
        Some(answered) => answered.method != NOTIFY,
        None => error.status() == ErrorStatus::InvalidArgument,
    }
}

fn validation(
    path: Path,
    device: &dyn Device,
    case: &Case,
    instance: &Instance,
) -> Result<paths::Outcome, String> {
    Ok(match must_fail(path, device, case, instance)? {
        Refusal::NotOffered(why) => paths::Outcome::NotOffered(why),
        Refusal::Launching(_) | Refusal::Preparing(_) | Refusal::Executing(_) => {
            paths::Outcome::Passed
        }
    })
}

fn timeout(
    path: Path,
    device: &dyn Device,
    case: &Case,
    instance: &Instance,
) -> Result<paths::Outcome, String> {
    let error = match must_fail(path, device, case, instance)? {
        Refusal::Executing(error) => error,
        Refusal::NotOffered(why) => return Ok(paths::Outcome::NotOffered(why)),
        Refusal::Launching(error) | Refusal::Preparing(error) => {
            return Err(format!("preparing failed: {error}, expected a missed deadline"));
        }
    };
    match error.status() {
        ErrorStatus::MissedDeadlineTransient | ErrorStatus::MissedDeadlinePersistent => {}
        // Results of bursts have no words for it (contract: GEN-2).
        ErrorStatus::GeneralFailure if path == Path::Burst => {}
        _ => return Err(format!("broken off with {error}, expected a missed deadline")),
    }
    Ok(paths::Outcome::Passed)
}

fn mutations(device: &dyn Device, case: &Case) -> Vec<Verdict> {
    let instance = match Instance::new(case) {
        Ok(instance) => instance,
        Err(error) => return vec![(None, Some(error.to_string()))],
    };
    // The same places for the same name, other ones for most others.
    let seed = case.name.bytes().map(usize::from).sum();
    let verdicts = mutation::judge(device, &instance.model, case.min_hal, seed);
    let count = |verdict: &mutation::Verdict| format!("{} of {}", verdict.failed, verdict.mutants);
    verdicts
        .into_iter()
        .map(|(rule, verdict)| {
            let failure = verdict.failure.as_ref();
            (Some(rule), failure.map(|what| format!("{what} ({} mutants)", count(&verdict))))
        })
        .collect()
}
