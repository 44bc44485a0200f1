//! The [`Suite`]s: the forms in which a vector is run.

use crate::compare::{self, elements};
use crate::instance::{Instance, with_signed_quantization};
use crate::mutation;
use crate::paths::{self, Aim, Opened, Path};
use crate::vectors::Case;
use nnhal_hal::{
    Device, ErrorStatus, Execution, ExecutionError, ExecutionOptions, HalVersion, OutputShape,
    PrepareOptions, PreparedModel, Request, RequestBuilder,
};
use nnhal_hidl::client::{Answered, NOTIFY};
use std::sync::Arc;
use std::time::Duration;

/// A form in which vectors are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Suite {
    /// As the vector stands, twice on one prepared model.
    Generated,
    /// The same with every dimension of the outputs unknown to the model.
    DynamicOutputShape,
    /// Unknown output dimensions, and a buffer one byte too short: it must be said which, with the
    /// right shape.
    ShortOutput,
    /// The same with unsigned quantized tensors made signed.
    QuantizationCoupling,
    /// The model validates for the version it claims, and for nothing older.
    Compliance,
    /// The model is valid, but an operation is not supported, or its execution fails.
    Validation,
    /// A loop that never ends is broken off.
    Timeout,
    /// Each way to break the model gives one that is refused: see [`mutation`].
    Mutation,
}

/// For whom a vector is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// For any device.
    All,
    /// For the C library; a device may refuse the model, as the text of the interface would have it
    /// (contract: CF-4).
    CLibrary,
    /// For the C library alone: a device must refuse the model, in which a WHILE has operands of
    /// unknown size (contract: CF-4).
    CLibraryOnly,
}

/// What came of a vector in a suite: the rule that was broken, in the mutation suite; and nothing if
/// it passed, else a sentence that says what went wrong.
pub type Verdict = (Option<&'static str>, Option<String>);

impl Suite {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Generated,
        Self::DynamicOutputShape,
        Self::ShortOutput,
        Self::QuantizationCoupling,
        Self::Compliance,
        Self::Validation,
        Self::Timeout,
        Self::Mutation,
    ];

    /// The suite's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Generated => "generated",
            Self::DynamicOutputShape => "dynamic_output_shape",
            Self::ShortOutput => "short_output",
            Self::QuantizationCoupling => "quantization_coupling",
            Self::Compliance => "compliance",
            Self::Validation => "validation",
            Self::Timeout => "timeout",
            Self::Mutation => "mutation",
        }
    }

    /// The suite with this name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|suite| suite.name() == name)
    }

    /// Whether a vector is run in this form.
    pub fn includes(self, case: &Case) -> bool {
        match self {
            Self::Mutation => true,
            Self::ShortOutput => case.is_in_suite(Self::DynamicOutputShape.name()),
            other => case.is_in_suite(other.name()),
        }
    }

    /// The oldest version of the interfaces in which a vector can be run in this form. What the
    /// vector claims counts; of a vector without a claim, and of its signed counterpart, what the `ops`
    /// crate knows. Any version can be asked whether it has what a model needs.
    pub fn needs(self, case: &Case) -> HalVersion {
        let oldest = |case: &Case| {
            Instance::new(case).map_or(HalVersion::V1_0, |instance| instance.oldest_version())
        };
        let plain = || case.min_hal.unwrap_or_else(|| oldest(case));
        match self {
            Self::Compliance => HalVersion::V1_0,
            Self::Generated | Self::Validation | Self::Timeout | Self::Mutation => plain(),
            Self::DynamicOutputShape | Self::ShortOutput => plain().max(HalVersion::V1_2),
            Self::QuantizationCoupling => oldest(&with_signed_quantization(case)),
        }
    }

    /// What a device that is not the C library may do with a vector's model.
    pub fn audience(case: &Case) -> Audience {
        let is_open_loop = || {
            let Ok(Instance { model, .. }) = Instance::new(case) else { return false };
            let refused = nnhal_ops::validate::check(&model, HalVersion::LATEST);
            refused.is_err_and(|error| error.rule() == "CF-4")
        };
        if !case.referenced.is_empty() && is_open_loop() {
            return Audience::CLibraryOnly;
        }
        // The vendor suite leaves these out.
        if case.spec.starts_with("V1_3_cts_only/") { Audience::CLibrary } else { Audience::All }
    }

    /// Whether a device refuses a vector's model wherever it is asked.
    ///
    /// # Errors
    /// It refuses it, but not each time, or not with `INVALID_ARGUMENT`.
    pub fn is_refused(device: &dyn Device, case: &Case) -> Result<bool, String> {
        let instance = Instance::new(case).map_err(|error| error.to_string())?;
        let version = HalVersion::LATEST;
        let Err(error) = device.supported_operations(&instance.model, version) else {
            return Ok(false);
        };
        let Err(other) = prepare(device, &instance) else {
            return Err(format!("supported_operations answered {error}, but it was prepared"));
        };
        for error in [error, other] {
            if error.status() != ErrorStatus::InvalidArgument {
                return Err(format!("refused with {error}, expected INVALID_ARGUMENT"));
            }
        }
        Ok(true)
    }

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

impl std::fmt::Display for Suite {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
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
    match prepare(device, instance) {
        Ok(_) => Ok(None),
        Err(error) if is_of_launch(&error) => {
            Err(format!("said to be valid but not supported ({reason}), and refused with {error}"))
        }
        Err(_) => Ok(Some(reason)),
    }
}

pub(crate) fn prepare(
    device: &dyn Device,
    instance: &Instance,
) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
    device.prepare_model(&instance.model, HalVersion::LATEST, PrepareOptions::default())
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
            Ok(Ok(execution)) => judge(case, instance, &request, &execution).map_err(said)?,
        }
    }
    Ok(paths::Outcome::Passed)
}

pub(crate) fn judge(
    case: &Case,
    instance: &Instance,
    request: &Request,
    execution: &Execution,
) -> Result<(), String> {
    if execution.output_shapes.len() != instance.expected.len() {
        return Err(format!(
            "{} output shapes, expected {}",
            execution.output_shapes.len(),
            instance.expected.len()
        ));
    }
    for (index, shape) in execution.output_shapes.iter().enumerate() {
        let operand = &case.main.operands[case.main.outputs[index] as usize];
        let found = RequestBuilder::read_output(request, index).map_err(|it| it.to_string())?;
        if let Some(tolerance) = case.multinomial_tolerance {
            let logits = &case.main.operands[case.main.inputs[0] as usize];
            let logits = elements(logits.operand_type, logits.data.as_deref().unwrap_or_default());
            compare::distribution(&logits, &elements(operand.operand_type, &found), tolerance)?;
            continue;
        }
        if operand.ignored {
            continue;
        }
        let said = |what: String| format!("output {index} ({}): {what}", operand.name);
        if !shape.is_sufficient {
            return Err(said("the buffer is called too short".into()));
        }
        if shape.dimensions != instance.dimensions[index] {
            let (found, expected) = (&shape.dimensions, &instance.dimensions[index]);
            return Err(said(format!("shape {found:?}, expected {expected:?}")));
        }
        let Some(tolerance) = case.tolerances.get(index).copied().flatten() else { continue };
        let expected = &instance.expected[index];
        let found = &found[..expected.len()];
        if let Some(difference) =
            compare::difference(operand.operand_type, expected, found, tolerance)
        {
            return Err(said(difference.to_string()));
        }
    }
    Ok(())
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
            return match prepare(device, instance) {
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
    let prepared = match prepare(device, instance) {
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
