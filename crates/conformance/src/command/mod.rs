//! The command that judges a device: `nnhal conformance`, and [`cli`] for a driver's own
//! program.

mod error;
mod json;
mod junit;

pub use error::CommandError;

use crate::contract::{self, Checks};
use crate::report::Tally;
use crate::{Path, Selection, Suite, VectorError, Vectors};
use clap::Parser;
use error::{device_error, file_error};
use indicatif::ProgressBar;
use nnhal_hal::{Device, HalVersion};
use nnhal_hidl::client::Options;
use nnhal_hidl::v1_0;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// What a step of the command gives back.
type Result<T, E = CommandError> = std::result::Result<T, E>;

/// What is judged, and how; which device is not said here.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Check the contract's requirements instead of running vectors; --filter takes an id, a section
    /// or a part of a check's name
    #[arg(long, conflicts_with_all = ["folder", "suites"])]
    contract: bool,
    /// With --contract: list the requirements that are checked on any device, with their checks, and
    /// those that cannot be, with the reason; no device is used
    #[arg(long, requires = "contract", conflicts_with = "junit")]
    list: bool,
    /// With --contract: the longest that a check may take; more than that is a violation. For devices
    /// that are known to be slow, in an emulator
    #[arg(
        long,
        requires = "contract",
        value_name = "SECONDS",
        default_value_t = Checks::TIME_LIMIT.as_secs(),
        value_parser = clap::value_parser!(u64).range(1..=86_400)
    )]
    check_seconds: u64,
    /// Folder with the vectors [default: ../shared/conformance, if it is there]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Only vectors whose name or file contains this
    #[arg(long, default_value = "", value_name = "TEXT")]
    filter: String,
    /// Only these suites: generated, dynamic_output_shape, short_output, quantization_coupling,
    /// compliance, validation, timeout, mutation [default: all]
    #[arg(long = "suite", value_name = "NAME", value_delimiter = ',')]
    suites: Vec<String>,
    /// How vectors are executed: synchronous, asynchronous, burst, fenced, chained, device_memory,
    /// cached, or all; each twice, the second time measured. What a vector must do by a path follows
    /// from its suite and its labels; compliance and mutation execute nothing and are run once
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "synchronous",
        conflicts_with = "contract"
    )]
    paths: Vec<String>,
    /// Use the device through the HAL interfaces of this version: 1.0, 1.1, 1.2 or 1.3. Vectors
    /// that need a newer one are skipped and counted, requirements of a newer one are not offered
    /// [default: without the interfaces]
    #[arg(long, value_name = "VERSION", value_parser = interface)]
    through: Option<HalVersion>,
    /// With --through: execute by the methods that answer by a callback, which 1.0 and 1.1 always do
    #[arg(long, requires = "through", conflicts_with = "contract")]
    asynchronous: bool,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// Also write the outcomes there, in JUnit's XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// The arguments of a driver's own program.
#[derive(Debug, Parser)]
#[command(
    about = "Judges a device: test vectors, and checks of the contract's requirements",
    after_help = "\
Exit codes:
  0 nothing is wrong; 1 vectors failed or requirements are violated; 2 wrong usage; 3 bad file;
  4 the device does not describe itself as it must"
)]
struct Own {
    #[command(flatten)]
    arguments: Arguments,
}

/// A program that judges a device, with the arguments of `nnhal conformance`: the `main` of whoever
/// writes a driver.
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     nnhal_conformance::cli(nnhal_reference::device())
/// }
/// ```
pub fn cli(device: Arc<dyn Device>) -> ExitCode {
    let arguments = Own::parse().arguments;
    let outcome = run(&arguments, Some(&device));
    let Err(error) = outcome else { return ExitCode::SUCCESS };
    let _ = writeln!(std::io::stderr(), "{}: {error}", device.name());
    // A negative answer has been printed as one object already.
    if arguments.json && !matches!(error, CommandError::Negative(_)) {
        let (what, code) = (error.to_string(), error.exit_code());
        let _ = print_json(&serde_json::json!({ "error": what, "exit_code": code }));
    }
    ExitCode::from(error.exit_code())
}

impl Arguments {
    /// Whether a device is needed: not where only a list is asked for.
    pub fn needs_device(&self) -> bool {
        !self.list
    }
}

/// Runs vectors, or checks of the contract, and prints what was found.
///
/// # Errors
/// [`CommandError::Negative`]: something is wrong with the device. Otherwise the command could not do
/// what it was asked.
pub fn run(arguments: &Arguments, device: Option<&Arc<dyn Device>>) -> Result<()> {
    judge(arguments, device, Known::Device)
}

/// As [`run`], for a device whose driver is known by its interfaces: the contract's checks of interfaces are then put to the
/// driver, and not to an adapter around the device.
///
/// # Errors
/// As [`run`].
pub fn run_driver(
    arguments: &Arguments,
    device: &Arc<dyn Device>,
    driver: &Arc<dyn v1_0::IDevice>,
) -> Result<()> {
    judge(arguments, Some(device), Known::Driver(driver))
}

/// What is known of a device besides.
#[derive(Clone, Copy)]
enum Known<'a> {
    Device,
    CLibrary,
    Driver(&'a Arc<dyn v1_0::IDevice>),
}

/// The suites whose demands C functions can meet.
const OF_C_LIBRARIES: [Suite; 4] =
    [Suite::Generated, Suite::DynamicOutputShape, Suite::ShortOutput, Suite::QuantizationCoupling];

/// As [`run`], for a device that is used by C functions: a support library. It is judged by vectors, in
/// the suites that ask for nothing that C functions do not show.
///
/// # Errors
/// As [`run`]; [`CommandError::Input`]: other suites or the contract's checks were asked for.
pub fn run_c_library(arguments: &Arguments, device: &Arc<dyn Device>) -> Result<()> {
    if arguments.contract || arguments.through.is_some() {
        return Err(CommandError::Input(
            "a shared object is judged by vectors: its C functions do not show what the contract's \
             checks and the interfaces are about"
                .into(),
        ));
    }
    judge(arguments, Some(device), Known::CLibrary)
}

fn judge(arguments: &Arguments, device: Option<&Arc<dyn Device>>, known: Known<'_>) -> Result<()> {
    let Some(device) = device else { return list_contract(arguments) };
    let panics = Arc::new(AtomicUsize::new(0));
    let (counter, report) = (Arc::clone(&panics), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |info| {
        counter.fetch_add(1, Ordering::Relaxed);
        report(info);
    }));
    let outcome = match (arguments.contract, arguments.list) {
        (_, true) => list_contract(arguments),
        (true, false) => check_contract(arguments, device, known),
        (false, false) => run_vectors(arguments, device, matches!(known, Known::CLibrary)),
    };
    // A panic is a defect also where it was caught and the answer is one that the suites accept.
    match panics.load(Ordering::Relaxed) {
        0 => outcome,
        count => {
            outcome.and(Err(CommandError::Negative(format!("{count} panics in this process"))))
        }
    }
}

/// Writes to standard output. A reader that has gone away (`| head`) is not an error.
fn print(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(file_error("standard output".as_ref())(error))
        }
        _ => Ok(()),
    }
}

fn print_json(value: &serde_json::Value) -> Result<()> {
    print(&format!("{value}\n"))
}

/// The requirements and what looks at them.
fn list_contract(arguments: &Arguments) -> Result<()> {
    let matches = |id: &str| id.contains(&arguments.filter);
    let checked: Vec<_> = contract::checked().into_iter().filter(|(id, _)| matches(id)).collect();
    let reasons: Vec<_> = contract::NOT_CHECKED.iter().filter(|(id, _)| matches(id)).collect();
    if arguments.json {
        let object = |pairs: Vec<(&str, serde_json::Value)>| {
            let pairs = pairs.into_iter().map(|(id, it)| (id.to_owned(), it));
            serde_json::Value::Object(pairs.collect())
        };
        let checked = checked.into_iter().map(|(id, names)| (id, names.into())).collect();
        let reasons = reasons.into_iter().map(|(id, why)| (*id, (*why).into())).collect();
        return print_json(&serde_json::json!({
            "checked": object(checked),
            "not_checked": object(reasons),
        }));
    }
    let mut text = String::new();
    let mut line = |line: String| text.extend([line.as_str(), "\n"]);
    for (id, names) in &checked {
        line((*id).to_owned());
        names.iter().for_each(|name| line(format!("    {name}")));
    }
    for (id, why) in &reasons {
        line(format!("not checked: {id}: {why}"));
    }
    line(format!("{} requirements checked on any device, {} not", checked.len(), reasons.len()));
    print(&text)
}

fn check_contract(arguments: &Arguments, device: &Arc<dyn Device>, known: Known<'_>) -> Result<()> {
    let bar = ProgressBar::new(contract::checks().count() as u64);
    let time_limit = Duration::from_secs(arguments.check_seconds);
    let chosen = Checks { filter: &arguments.filter, time_limit };
    let progress = |_: &contract::CheckOutcome| bar.inc(1);
    let report = match (arguments.through, known) {
        (Some(version), _) => contract::run_through(device, version, chosen, progress)
            .map_err(device_error(&**device))?,
        (None, Known::Driver(driver)) => {
            contract::run_driver(device.name(), driver, chosen, progress)
                .map_err(device_error(&**device))?
        }
        (None, _) => contract::run(device, chosen, progress),
    };
    bar.finish_and_clear();
    write_junit(arguments, || junit::of_contract(&report))?;
    if arguments.json {
        print_json(&json::of_contract(&report))?;
    } else {
        print(&report.to_string())?;
    }
    match (report.outcomes.len(), report.violations().count()) {
        (0, _) => Err(CommandError::Negative("no check was selected".into())),
        (_, 0) => Ok(()),
        (_, violated) => Err(CommandError::Negative(format!("{violated} checks found violations"))),
    }
}

fn run_vectors(arguments: &Arguments, device: &Arc<dyn Device>, is_c_library: bool) -> Result<()> {
    let suites = arguments
        .suites
        .iter()
        .map(|name| {
            Suite::from_name(name)
                .ok_or_else(|| CommandError::Input(format!("there is no suite {name:?}")))
        })
        .collect::<Result<Vec<_>>>()?;
    if let Some(other) = suites.iter().find(|it| is_c_library && !OF_C_LIBRARIES.contains(it)) {
        return Err(CommandError::Input(format!("C functions do not show what {other} is about")));
    }
    let all = if is_c_library { &OF_C_LIBRARIES[..] } else { Suite::ALL };
    let selection = Selection {
        is_c_library,
        filter: arguments.filter.clone(),
        suites: if suites.is_empty() { all.to_vec() } else { suites },
        paths: paths(&arguments.paths)?,
        ..Selection::default()
    };
    let plain = Arc::clone(device);
    let device = open_device(arguments, device)?;
    let asynchronous = match selection.paths.contains(&Path::Asynchronous) {
        true => Some(open_asynchronous(arguments, &plain)?),
        false => None,
    };
    let selection = Selection { asynchronous, ..selection };
    let bad_vectors = |error: VectorError| CommandError::Input(error.to_string());
    let vectors = Vectors::open(&folder(arguments)?).map_err(bad_vectors)?;
    let bar = ProgressBar::new(vectors.files().len() as u64);
    let report = crate::run(&*device, &vectors, &selection, |done| {
        bar.set_position(done as u64);
    })
    .map_err(bad_vectors)?;
    bar.finish_and_clear();
    write_junit(arguments, || junit::of_vectors(&report))?;
    if arguments.json {
        print_json(&json::of_vectors(&report))?;
    } else {
        print(&report.to_string())?;
    }
    let Tally { passed, failed, skipped, for_c_library, not_offered, declined } = report.total();
    match (failed, passed + for_c_library + not_offered) {
        (0, 0) if skipped + declined == 0 => {
            Err(CommandError::Negative("no vector was selected".into()))
        }
        (0, 0) if declined == 0 => Err(CommandError::Negative(format!(
            "all that was selected was skipped: {skipped} vectors"
        ))),
        (0, 0) => Err(CommandError::Negative(format!(
            "the device declined all that was selected: {declined} vectors"
        ))),
        (0, _) => Ok(()),
        (failed, _) => Err(CommandError::Negative(format!("{failed} vectors failed"))),
    }
}

fn paths(names: &[String]) -> Result<Vec<Path>> {
    if names == ["all"] {
        return Ok(Path::ALL.to_vec());
    }
    let path = |name: &String| {
        Path::from_name(name)
            .ok_or_else(|| CommandError::Input(format!("there is no path {name:?}")))
    };
    names.iter().map(path).collect()
}

/// The device by the methods with callbacks, which only the interfaces have.
fn open_asynchronous(arguments: &Arguments, device: &Arc<dyn Device>) -> Result<Arc<dyn Device>> {
    let newest = device.version().min(HalVersion::V1_3);
    let version = arguments.through.unwrap_or(newest);
    let options = Options { asynchronous: true, ..Options::default() };
    nnhal_hidl::client::through(Arc::clone(device), version, options)
        .map_err(device_error(&**device))
}

/// The device, through the interfaces if that is wished.
fn open_device(arguments: &Arguments, device: &Arc<dyn Device>) -> Result<Arc<dyn Device>> {
    let Some(version) = arguments.through else { return Ok(Arc::clone(device)) };
    let options = Options { asynchronous: arguments.asynchronous, ..Options::default() };
    nnhal_hidl::client::through(Arc::clone(device), version, options)
        .map_err(device_error(&**device))
}

/// A version that the interface files have.
fn interface(name: &str) -> std::result::Result<HalVersion, String> {
    let version = HalVersion::from_name(name).filter(|version| *version <= HalVersion::V1_3);
    version.ok_or_else(|| "the interfaces have the versions 1.0, 1.1, 1.2 and 1.3".into())
}

/// Where vectors are looked for if no one says where they are: beside the repository.
const USUAL_FOLDER: &str = "../shared/conformance";

fn folder(arguments: &Arguments) -> Result<PathBuf> {
    if let Some(folder) = &arguments.folder {
        return Ok(folder.clone());
    }
    let usual = PathBuf::from(USUAL_FOLDER);
    if usual.join("manifest.json").is_file() {
        return Ok(usual);
    }
    Err(CommandError::Input(format!(
        "there are no vectors in {USUAL_FOLDER}; say where they are: nnhal conformance DIR"
    )))
}

fn write_junit(arguments: &Arguments, report: impl FnOnce() -> quick_junit::Report) -> Result<()> {
    let Some(path) = &arguments.junit else { return Ok(()) };
    let xml = report().to_string().map_err(|error| CommandError::Input(error.to_string()))?;
    std::fs::write(path, xml).map_err(file_error(path))
}
