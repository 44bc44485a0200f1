//! The contract's checks: the reference device keeps to all of them, and each breach is found.

mod broken;
mod drivers;

use nnhal_conformance::contract::{self, Verdict};
use nnhal_hal::{
    Buffer, BufferDescription, Burst, CacheFilesNeeded, Capabilities, Deadline, Device,
    DeviceStatus, DeviceType, ErrorStatus, Execution, ExecutionError, ExecutionOptions,
    FencedExecution, HalVersion, Model, OperandType, PrepareOptions, PreparedModel, Request,
    Result, Support, SyncFence, Timing,
};
use std::sync::Arc;
use std::time::Duration;

/// One way to break the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Breach {
    Busy,
    OddName,
    NoVersion,
    FreeOfCost,
    Unsorted,
    TooManyCacheFiles,
    AnyModelIsFine,
    OneAnswerMore,
    NoSignedTwin,
    OneInterfaceForAll,
    PanicsWhilePreparing,
    MissesFarDeadlines,
    DeadlinesFirst,
    StumblesOverCacheFiles,
    LoadsAnything,
    AnyRequestIsFine,
    TimesUnasked,
    TimesReversed,
    NoShapesWhenShort,
    ForgetsShapes,
    DoesNotWait,
    NoBursts,
    AllocatesAnything,
    FailsWithInvalid,
}

/// What each breach must be found as.
const BREACHES: &[(Breach, &[&str])] = &[
    (Breach::Busy, &["DEV-STAT-1"]),
    (Breach::OddName, &["DEV-INFO-3"]),
    (Breach::NoVersion, &["DEV-INFO-1"]),
    (Breach::FreeOfCost, &["DEV-CAP-1"]),
    (Breach::Unsorted, &["DEV-CAP-4"]),
    (Breach::TooManyCacheFiles, &["DEV-CACHE-1"]),
    (Breach::AnyModelIsFine, &["DEV-SUP-1"]),
    (Breach::OneAnswerMore, &["DEV-SUP-2"]),
    (Breach::NoSignedTwin, &["DEV-SUP-6"]),
    (Breach::OneInterfaceForAll, &["GEN-6"]),
    (Breach::PanicsWhilePreparing, &["PREP-3", "EXEC-6"]),
    (Breach::MissesFarDeadlines, &["QOS-4"]),
    (Breach::DeadlinesFirst, &["GEN-4"]),
    (Breach::StumblesOverCacheFiles, &["PREP-7", "PREP-8", "CACHE-4"]),
    (Breach::LoadsAnything, &["CACHE-9", "CACHE-10", "CACHE-7", "CACHE-8"]),
    (Breach::AnyRequestIsFine, &["REQ-1", "REQ-3", "REQ-7", "REQ-10", "REQ-12"]),
    (Breach::TimesUnasked, &["TIME-1"]),
    (Breach::TimesReversed, &["TIME-2"]),
    (Breach::NoShapesWhenShort, &["SHAPE-4"]),
    (Breach::ForgetsShapes, &["SHAPE-2", "SHAPE-3"]),
    (Breach::DoesNotWait, &["FENCE-5"]),
    (Breach::NoBursts, &["BURST-1", "BURST-17"]),
    (Breach::AllocatesAnything, &["ALLOC-2", "ALLOC-5"]),
    (Breach::FailsWithInvalid, &["DBUF-3", "BUF-5"]),
];

/// The reference device, but for one breach.
struct Broken {
    device: Arc<dyn Device>,
    breach: Breach,
}

/// Its prepared models, where the breach is theirs.
struct BrokenModel {
    prepared: Arc<dyn PreparedModel>,
    breach: Breach,
}

impl Broken {
    fn wrap(&self, prepared: Arc<dyn PreparedModel>) -> Arc<dyn PreparedModel> {
        match self.breach {
            Breach::AnyRequestIsFine
            | Breach::TimesUnasked
            | Breach::TimesReversed
            | Breach::NoShapesWhenShort
            | Breach::ForgetsShapes
            | Breach::DoesNotWait
            | Breach::NoBursts => Arc::new(BrokenModel { prepared, breach: self.breach }),
            _ => prepared,
        }
    }
}

impl Device for Broken {
    fn name(&self) -> &str {
        if self.breach == Breach::OddName { "nobody" } else { self.device.name() }
    }

    fn version_string(&self) -> String {
        match self.breach {
            Breach::NoVersion => String::new(),
            _ => self.device.version_string(),
        }
    }

    fn device_type(&self) -> DeviceType {
        self.device.device_type()
    }

    fn status(&self) -> DeviceStatus {
        if self.breach == Breach::Busy { DeviceStatus::Busy } else { self.device.status() }
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.device.capabilities();
        match self.breach {
            Breach::FreeOfCost => capabilities.if_performance.exec_time = 0.0,
            Breach::Unsorted => capabilities.operand_performance.swap(0, 1),
            _ => {}
        }
        capabilities
    }

    fn cache_files_needed(&self) -> CacheFilesNeeded {
        match self.breach {
            Breach::TooManyCacheFiles => CacheFilesNeeded { model: 33, data: 0 },
            _ => self.device.cache_files_needed(),
        }
    }

    fn supported_operations(&self, model: &Model, version: HalVersion) -> Result<Vec<Support>> {
        let all = || Ok(vec![Support::Yes; model.main.operations.len()]);
        let signed = |model: &Model| {
            let mut operands = model.main.operands.iter();
            operands.any(|it| it.operand_type == OperandType::TensorQuant8AsymmSigned)
        };
        match self.breach {
            Breach::AnyModelIsFine => all(),
            Breach::OneInterfaceForAll => {
                self.device.supported_operations(model, HalVersion::LATEST)
            }
            Breach::NoSignedTwin if signed(model) => {
                let answers = self.device.supported_operations(model, version)?;
                Ok(answers.iter().map(|_| Support::No("signed".to_owned())).collect())
            }
            Breach::OneAnswerMore => {
                let mut answers = self.device.supported_operations(model, version)?;
                answers.push(Support::Yes);
                Ok(answers)
            }
            _ => self.device.supported_operations(model, version),
        }
    }

    fn prepare_model(
        &self,
        model: &Model,
        version: HalVersion,
        options: PrepareOptions,
    ) -> Result<Arc<dyn PreparedModel>> {
        let late = |deadline: &Deadline| {
            let missed = nnhal_hal::Error::new(ErrorStatus::MissedDeadlinePersistent, "too late");
            let deadline = deadline.nanoseconds_since_epoch();
            let far = self.breach == Breach::MissesFarDeadlines && deadline > u64::MAX / 4;
            let first = self.breach == Breach::DeadlinesFirst && deadline == 0;
            if far || first { Err(missed) } else { Ok(()) }
        };
        options.deadline.iter().try_for_each(late)?;
        match self.breach {
            Breach::PanicsWhilePreparing => panic!("by intent"),
            Breach::StumblesOverCacheFiles if !options.model_cache.is_empty() => {
                return Err(nnhal_hal::Error::invalid("these cache files are of no use"));
            }
            _ => {}
        }
        Ok(self.wrap(self.device.prepare_model(model, version, options)?))
    }

    fn prepare_model_from_cache(&self, options: PrepareOptions) -> Result<Arc<dyn PreparedModel>> {
        if self.breach == Breach::LoadsAnything {
            let mut graph = nnhal_hal::SubgraphBuilder::new();
            let spec = nnhal_hal::OperandSpec::tensor_float32([2, 2]);
            let (a, b) = (graph.input("a", spec.clone()), graph.input("b", spec.clone()));
            let none = graph.scalar_i32(0);
            let sum = graph.operation(nnhal_hal::OperationType::Add, [a, b, none], spec);
            graph.output(sum);
            let model = graph.into_model().unwrap();
            let options = PrepareOptions::default();
            return self.device.prepare_model(&model, HalVersion::LATEST, options);
        }
        self.device.prepare_model_from_cache(options)
    }

    fn allocate(&self, description: &BufferDescription) -> Result<Arc<dyn Buffer>> {
        let allocated = self.device.allocate(description);
        match (self.breach, allocated) {
            (Breach::AllocatesAnything, Err(_)) => Ok(Arc::new(Nothing)),
            (Breach::FailsWithInvalid, Ok(buffer)) => Ok(Arc::new(Strict(buffer))),
            (_, allocated) => allocated,
        }
    }
}

/// A buffer that holds nothing.
struct Nothing;

impl Buffer for Nothing {
    fn token(&self) -> u32 {
        1
    }

    fn copy_to(&self, _destination: &nnhal_hal::Memory) -> Result<()> {
        Ok(())
    }

    fn copy_from(&self, _source: &nnhal_hal::Memory, _dimensions: &[u32]) -> Result<()> {
        Ok(())
    }

    fn discard(&self) {}
}

/// A buffer whose every failure is the client's fault, and whose token is another's.
struct Strict(Arc<dyn Buffer>);

impl Buffer for Strict {
    fn token(&self) -> u32 {
        self.0.token() + 1_000_000
    }

    fn copy_to(&self, destination: &nnhal_hal::Memory) -> Result<()> {
        self.0.copy_to(destination).map_err(nnhal_hal::Error::invalid)
    }

    fn copy_from(&self, source: &nnhal_hal::Memory, dimensions: &[u32]) -> Result<()> {
        self.0.copy_from(source, dimensions).map_err(nnhal_hal::Error::invalid)
    }

    fn discard(&self) {
        self.0.discard();
    }
}

impl PreparedModel for BrokenModel {
    fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Result<Execution, ExecutionError> {
        let day = Some(Duration::from_secs(86_400));
        let result = self.prepared.execute(request, options);
        match (self.breach, result) {
            (Breach::AnyRequestIsFine, Err(_)) => {
                Ok(Execution { output_shapes: vec![], timing: Timing::NONE })
            }
            (Breach::TimesUnasked, Ok(execution)) => {
                let timing = Timing { time_in_driver: day, ..execution.timing };
                Ok(Execution { timing, ..execution })
            }
            (Breach::TimesReversed, Ok(execution)) if options.measure => {
                let timing = Timing { time_on_device: day, ..execution.timing };
                Ok(Execution { timing, ..execution })
            }
            (Breach::ForgetsShapes, Ok(execution)) => Ok(Execution {
                output_shapes: vec![nnhal_hal::OutputShape {
                    dimensions: vec![],
                    is_sufficient: true,
                }],
                ..execution
            }),
            (Breach::NoShapesWhenShort, Err(failed)) => Err(failed.error.into()),
            (_, result) => result,
        }
    }

    fn execute_fenced(
        &self,
        request: &Request,
        wait_for: &[SyncFence],
        options: &ExecutionOptions,
        timeout_after_fences: Option<Duration>,
    ) -> Result<FencedExecution> {
        let wait_for = if self.breach == Breach::DoesNotWait { &[] } else { wait_for };
        self.prepared.execute_fenced(request, wait_for, options, timeout_after_fences)
    }

    fn configure_burst(&self) -> Result<Box<dyn Burst>> {
        match self.breach {
            Breach::NoBursts => Err(nnhal_hal::Error::failure("no bursts")),
            _ => self.prepared.configure_burst(),
        }
    }
}

#[test]
fn the_reference_device_keeps_the_contract() {
    let report = contract::run(&nnhal_reference::device(), "", |_| ());
    assert_eq!(report.violations().count(), 0, "{report}");
    assert_eq!(report.outcomes.len(), contract::checks().count());
    let left_out: Vec<String> = report
        .outcomes
        .iter()
        .filter_map(|outcome| match &outcome.result {
            Ok(Verdict::NotOffered(what)) => Some(what.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(left_out, ["extensions", "data cache files"], "{report}");
}

#[test]
fn every_breach_is_found() {
    for (breach, expected) in BREACHES {
        let device: Arc<dyn Device> =
            Arc::new(Broken { device: nnhal_reference::device(), breach: *breach });
        for id in *expected {
            let report = contract::run(&device, id, |_| ());
            let kept = report.by_requirement().get(id).copied();
            assert_eq!(kept, Some(false), "{breach:?} is not found as {id}\n{report}");
        }
    }
}

#[test]
fn a_device_that_hangs_or_panics_is_reported() {
    let device: Arc<dyn Device> = Arc::new(Broken {
        device: nnhal_reference::device(),
        breach: Breach::PanicsWhilePreparing,
    });
    let report = contract::run(&device, "EXEC-6", |_| ());
    let (_, violation) = report.violations().next().unwrap();
    assert_eq!(violation.0, "the device panics");
}
