//! The contract's requirements, checked against any device: what a driver's developer runs on their own
//! machine, with `nnhal conformance --contract`.
//!
//! A module for each section of the contract, each with a list of [`Check`]s that name the requirements
//! they look at. A check builds a small model, drives the device through its trait, and says what
//! it found. What the contract leaves to the driver, and the driver leaves out, is
//! [`Verdict::NotOffered`]. A check that panics or does not come to its end is a violation.
//!
//! Most checks see a device as [`nnhal_hal::Device`] shows it. What only the interfaces have, launch
//! statuses and callbacks among it, is in `interfaces`: those checks see a driver as HIDL shows it.
//! [`run`] is for a device, which is served by `nnhal_hidl::serve` for them; [`run_driver`] is for a driver
//! of whoever implements the interfaces, which is used by `nnhal_hidl::client` for the others. Either way
//! all checks are run.
//!
//! ```no_run
//! # fn judge(driver: &std::sync::Arc<dyn nnhal_hidl::v1_0::IDevice>) -> nnhal_hal::Result<()> {
//! let report = nnhal_conformance::contract::run_driver("example-driver", driver, "", |_| ())?;
//! println!("{report}");
//! # Ok(()) }
//! ```

mod buffers;
mod bursts;
mod caching;
mod control_flow;
mod description;
mod executions;
mod fences;
mod interfaces;
mod models;
mod not_checked;
mod preparation;
mod requests;
mod rules;
mod support;
mod values;

pub use not_checked::NOT_CHECKED;

use interfaces::Driver;
use nnhal_hal::{Device, HalVersion};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Which checks are run, and how long each may take. A text selects by itself, see [`Checks::filter`].
#[derive(Debug, Clone, Copy)]
pub struct Checks<'a> {
    /// Only those whose name, section or requirements contain this.
    pub filter: &'a str,
    /// What takes longer is a device that does not answer. More than [`Checks::TIME_LIMIT`] is for devices that are
    /// known to be slow: those in an emulator.
    pub time_limit: Duration,
}

impl Checks<'_> {
    /// The longest that a check may take where nothing else is said.
    pub const TIME_LIMIT: Duration = Duration::from_secs(60);
}

impl<'a> From<&'a str> for Checks<'a> {
    fn from(filter: &'a str) -> Self {
        Self { filter, time_limit: Self::TIME_LIMIT }
    }
}

/// A check of one or several requirements.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// The requirements, as the contract names them.
    pub ids: &'static [&'static str],
    /// What is demanded.
    pub name: &'static str,
    run: Run,
}

/// What a check is shown.
#[derive(Debug, Clone, Copy)]
enum Run {
    /// A device.
    Device(fn(&Arc<dyn Device>) -> Result<Verdict, Violation>),
    /// A device, and models that break this rule of section 8.
    Rule(&'static str),
    /// A device by its interfaces.
    Driver(fn(&Driver) -> Result<Verdict, Violation>),
}

/// What a check found where nothing is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The device keeps to it.
    Kept,
    /// The device does not offer what is to be checked, as it may; with what that is.
    NotOffered(String),
}

/// How a device breaks the contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(pub String);

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// An error where the device should have succeeded.
impl From<nnhal_hal::Error> for Violation {
    fn from(error: nnhal_hal::Error) -> Self {
        Self(format!("the device refuses: {error}"))
    }
}

/// The same of an execution.
impl From<nnhal_hal::ExecutionError> for Violation {
    fn from(failed: nnhal_hal::ExecutionError) -> Self {
        failed.error.into()
    }
}

/// What became of a check.
#[derive(Debug, Clone)]
pub struct CheckOutcome {
    /// The section of the contract, as [`checks`] names it.
    pub section: &'static str,
    /// The check that was run.
    pub check: Check,
    /// What it found.
    pub result: Result<Verdict, Violation>,
}

/// What became of all checks.
#[derive(Debug, Clone, Default)]
pub struct ContractReport {
    /// In the order of the contract.
    pub outcomes: Vec<CheckOutcome>,
}

/// All checks, with the sections they are in.
pub fn checks() -> impl Iterator<Item = (&'static str, Check)> {
    let sections: [(&'static str, &'static [Check]); 21] = [
        ("description", description::CHECKS),
        ("supported operations", support::CHECKS),
        ("preparation", preparation::CHECKS),
        ("caching", caching::CHECKS),
        ("models", rules::CHECKS),
        ("control flow", control_flow::CHECKS),
        ("requests", requests::CHECKS),
        ("executions", executions::CHECKS),
        ("bursts", bursts::CHECKS),
        ("fences", fences::CHECKS),
        ("buffers", buffers::CHECKS),
        ("values", values::CHECKS),
        ("interfaces: description", interfaces::DESCRIBING),
        ("interfaces: preparation", interfaces::PREPARING),
        ("interfaces: caching", interfaces::CACHING),
        ("interfaces: executions", interfaces::EXECUTING),
        ("interfaces: bursts", interfaces::BURSTS),
        ("interfaces: packets", interfaces::PACKETS),
        ("interfaces: fences", interfaces::FENCES),
        ("interfaces: buffers", interfaces::BUFFERS),
        ("interfaces: memory", interfaces::MEMORY),
    ];
    sections.into_iter().flat_map(|(section, checks)| checks.iter().map(move |it| (section, *it)))
}

/// Each requirement that is checked on any device, with the names of its checks.
pub fn checked() -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut checked = BTreeMap::<_, Vec<_>>::new();
    for (_, check) in checks() {
        for id in check.ids {
            checked.entry(*id).or_default().push(check.name);
        }
    }
    checked
}

/// Runs checks, `""` for all of them.
pub fn run<'a>(
    device: &Arc<dyn Device>,
    chosen: impl Into<Checks<'a>>,
    progress: impl Fn(&CheckOutcome),
) -> ContractReport {
    let served = nnhal_hidl::serve::Device::new(Arc::clone(device));
    let driver = Driver::new(served, device.version());
    run_subject(Subject { device: Arc::clone(device), driver }, chosen.into(), progress)
}

/// Runs the same checks on a device as it is behind the interfaces of a version. What is newer is not
/// offered.
///
/// # Errors
/// If the device does not describe itself as it must; see [`nnhal_hidl::client::through`].
pub fn run_through<'a>(
    device: &Arc<dyn Device>,
    version: HalVersion,
    chosen: impl Into<Checks<'a>>,
    progress: impl Fn(&CheckOutcome),
) -> nnhal_hal::Result<ContractReport> {
    let driver = Driver::new(nnhal_hidl::serve::Device::new(Arc::clone(device)), version);
    let options = nnhal_hidl::client::Options::default();
    let device = nnhal_hidl::client::through(Arc::clone(device), version, options)?;
    Ok(run_subject(Subject { device, driver }, chosen.into(), progress))
}

/// Runs the same checks on a driver that implements the interfaces, by the newest version of them
/// that it can be cast to. `name` is its service instance name.
///
/// # Errors
/// If the driver does not describe itself as it must; see [`nnhal_hidl::client::from_newest`].
pub fn run_driver<'a>(
    name: &str,
    driver: &Arc<dyn nnhal_hidl::v1_0::IDevice>,
    chosen: impl Into<Checks<'a>>,
    progress: impl Fn(&CheckOutcome),
) -> nnhal_hal::Result<ContractReport> {
    let device = nnhal_hidl::client::from_newest(name, Arc::clone(driver))?;
    let driver = Driver::new(Arc::clone(driver), device.version());
    Ok(run_subject(Subject { device, driver }, chosen.into(), progress))
}

/// What is judged, from both sides.
struct Subject {
    device: Arc<dyn Device>,
    driver: Driver,
}

fn run_subject(
    subject: Subject,
    Checks { filter, time_limit }: Checks<'_>,
    progress: impl Fn(&CheckOutcome),
) -> ContractReport {
    let subject = Arc::new(subject);
    let mut report = ContractReport::default();
    let chosen = checks().filter(|(section, check)| {
        let named = check.ids.iter().any(|id| id.contains(filter));
        named || section.contains(filter) || check.name.contains(filter)
    });
    for (section, check) in chosen {
        let result = guarded(&subject, check, time_limit);
        let outcome = CheckOutcome { section, check, result };
        progress(&outcome);
        report.outcomes.push(outcome);
    }
    report
}

/// Runs a check on a thread of its own, which is left behind if it hangs.
fn guarded(
    subject: &Arc<Subject>,
    check: Check,
    time_limit: Duration,
) -> Result<Verdict, Violation> {
    let subject = Arc::clone(subject);
    let (sender, receiver) = mpsc::channel();
    let work = move || {
        let result = catch_unwind(AssertUnwindSafe(|| match check.run {
            Run::Device(run) => run(&subject.device),
            Run::Rule(rule) => rules::rule(&subject.device, rule),
            Run::Driver(run) => run(&subject.driver),
        }));
        // No one may be listening any more.
        drop(sender.send(result.unwrap_or_else(|_| Err(Violation("the device panics".into())))));
    };
    std::thread::spawn(work);
    receiver.recv_timeout(time_limit).unwrap_or_else(|_| {
        Err(Violation(format!("the device does not answer within {time_limit:?}")))
    })
}

impl ContractReport {
    /// The checks that found a violation.
    pub fn violations(&self) -> impl Iterator<Item = (&CheckOutcome, &Violation)> {
        self.outcomes.iter().filter_map(|it| Some((it, it.result.as_ref().err()?)))
    }

    /// For each requirement whether all of its checks are content.
    pub fn by_requirement(&self) -> BTreeMap<&'static str, bool> {
        let mut kept = BTreeMap::new();
        for outcome in &self.outcomes {
            for id in outcome.check.ids {
                *kept.entry(*id).or_insert(true) &= outcome.result.is_ok();
            }
        }
        kept
    }
}

impl fmt::Display for ContractReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut kept, mut left_out) = (0, 0);
        for CheckOutcome { section, check, result } in &self.outcomes {
            let ids = check.ids.join(", ");
            match result {
                Ok(Verdict::Kept) => kept += 1,
                Ok(Verdict::NotOffered(what)) => {
                    left_out += 1;
                    writeln!(formatter, "not offered  {section}: {} ({ids}): {what}", check.name)?;
                }
                Err(violation) => {
                    writeln!(formatter, "VIOLATED     {section}: {} ({ids})", check.name)?;
                    writeln!(formatter, "             {violation}")?;
                }
            }
        }
        let broken = self.outcomes.len() - kept - left_out;
        writeln!(
            formatter,
            "{} checks of {} requirements: {kept} kept, {left_out} not offered, {broken} violated",
            self.outcomes.len(),
            self.by_requirement().len()
        )
    }
}

/// Fails with a message unless a condition holds.
macro_rules! demand {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::contract::Violation(format!($($message)+)));
        }
    };
}
use demand;

/// Demands that an answer is an error of one of these statuses.
fn demand_refusal<T>(
    what: &str,
    result: Result<T, impl Into<nnhal_hal::Error>>,
    allowed: &[nnhal_hal::ErrorStatus],
) -> Result<(), Violation> {
    match result.map_err(Into::into) {
        Ok(_) => Err(Violation(format!("{what} is accepted, expected {allowed:?}"))),
        Err(error) if allowed.contains(&error.status()) => Ok(()),
        Err(error) => Err(Violation(format!("{what}: expected {allowed:?}, found {error}"))),
    }
}
