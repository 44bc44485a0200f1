//! The contract's checks: the reference device keeps to all of them, and each breach is found.

mod broken;
mod buffers;
mod drivers;
mod listed;
mod proxy;

use nnhal_conformance::contract::{self, Checks, Verdict};
use nnhal_conformance::mutation::RULES;
use nnhal_hal::device::FencedExecutionInfo;
use nnhal_hal::{
    Buffer, BufferDescription, Burst, CacheFilesNeeded, Capabilities, Deadline, Device,
    DeviceStatus, DeviceType, ErrorStatus, Execution, ExecutionError, ExecutionOptions,
    FencedExecution, HalVersion, Model, OperandLifeTime, OperandType, OperationType,
    PrepareOptions, PreparedModel, Request, RequestBuilder, RequestMemoryPool, Result, Support,
    SyncFence, Timing,
};
use std::any::Any;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

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
    NoSignedTypes,
    OneInterfaceForAll,
    PanicsWhilePreparing,
    PreparesSlowly,
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
    RefusesOem,
    RefusesValues,
    SwapsBranches,
    LosesState,
    SupportsAllControlFlow,
    LoopsAreLate,
    LoopsFailFences,
    HalfPrecision,
    WritesBeforeOutputs,
    WallClock,
    LeaksDescriptors,
    IgnoresDurations,
    SwapsFencedTimes,
    FencedTimesUnasked,
    AllAreShort,
    OnlyTheFirstShape,
    LateBeforeWrong,
    ExecutionsMissFarDeadlines,
    WholePagesOnly,
    RefusesUnknownRanks,
    FollowsEveryPath,
    AnyScalar,
    AnyOmitted,
    BuffersKnowTheirShapes,
    WritesConstants,
    WritesLater,
    AnswersForInner,
    AnyScaleOfNewTypes,
    AnyNewScalar,
    LooksForBuffersLate,
    RefusesOpenBranches,
    OpenResultsAreHalfRefused,
    OpenResultsFail,
    OpenResultsHaveOneShape,
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
    (Breach::NoSignedTypes, &["DEV-SUP-6"]),
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
    (Breach::AnyModelIsFine, RULES),
    (Breach::AnyModelIsFine, &["EXT-3", "EXT-4", "CF-7"]),
    (Breach::RefusesOem, &["MODEL-28"]),
    (Breach::RefusesValues, &["MODEL-29"]),
    (Breach::SwapsBranches, &["CF-9", "CF-7"]),
    (Breach::LosesState, &["CF-9"]),
    (Breach::SupportsAllControlFlow, &["DEV-SUP-4"]),
    (Breach::LoopsAreLate, &["QOS-9"]),
    (Breach::LoopsFailFences, &["FENCE-15"]),
    (Breach::HalfPrecision, &["PREP-13"]),
    (Breach::AnyRequestIsFine, &["EXEC-7", "REQ-8"]),
    (Breach::ForgetsShapes, &["SHAPE-7"]),
    (Breach::WritesBeforeOutputs, &["REQ-11"]),
    (Breach::WallClock, &["QOS-2"]),
    (Breach::LeaksDescriptors, &["SEC-6"]),
    (Breach::IgnoresDurations, &["FENCE-7", "FENCE-13"]),
    (Breach::SwapsFencedTimes, &["FENCE-12"]),
    (Breach::FencedTimesUnasked, &["FENCE-12", "TIME-1"]),
    (Breach::AllAreShort, &["SHAPE-4"]),
    (Breach::OnlyTheFirstShape, &["SHAPE-2", "SHAPE-4"]),
    (Breach::LateBeforeWrong, &["GEN-4"]),
    (Breach::ExecutionsMissFarDeadlines, &["QOS-4"]),
    (Breach::WholePagesOnly, &["MEM-3"]),
    (Breach::RefusesUnknownRanks, &["MODEL-6"]),
    (Breach::FollowsEveryPath, &["CF-5"]),
    (Breach::AnyScalar, &["REQ-6"]),
    (Breach::AnyOmitted, &["REQ-2"]),
    (Breach::BuffersKnowTheirShapes, &["REQ-7"]),
    (Breach::WritesConstants, &["GEN-5"]),
    (Breach::WritesLater, &["EXEC-9", "FENCE-6"]),
    (Breach::AnswersForInner, &["DEV-SUP-2"]),
    (Breach::AnyScaleOfNewTypes, &["MODEL-8", "MODEL-9"]),
    (Breach::AnyNewScalar, &["MODEL-5"]),
    (Breach::LooksForBuffersLate, &["CONC-3", "ALLOC-8"]),
    (Breach::RefusesOpenBranches, &["CF-4", "MODEL-6"]),
    (Breach::OpenResultsAreHalfRefused, &["CF-4"]),
    (Breach::OpenResultsFail, &["CF-4"]),
    (Breach::OpenResultsHaveOneShape, &["CF-4"]),
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
    /// By input of the model, whether it is a scalar, and its dimensions.
    inputs: Vec<(bool, Vec<u32>)>,
}

impl Broken {
    fn wrap(&self, model: &Model, prepared: Arc<dyn PreparedModel>) -> Arc<dyn PreparedModel> {
        let inputs = model.main.inputs.iter().map(|input| {
            let operand = &model.main.operands[*input as usize];
            (operand.operand_type.is_scalar(), operand.dimensions.clone())
        });
        let inputs = inputs.collect();
        match self.breach {
            Breach::IgnoresDurations
            | Breach::SwapsFencedTimes
            | Breach::FencedTimesUnasked
            | Breach::AllAreShort
            | Breach::OnlyTheFirstShape
            | Breach::LateBeforeWrong
            | Breach::ExecutionsMissFarDeadlines
            | Breach::WholePagesOnly
            | Breach::AnyScalar
            | Breach::AnyOmitted
            | Breach::BuffersKnowTheirShapes
            | Breach::WritesLater
            | Breach::AnyRequestIsFine
            | Breach::TimesUnasked
            | Breach::TimesReversed
            | Breach::NoShapesWhenShort
            | Breach::ForgetsShapes
            | Breach::DoesNotWait
            | Breach::NoBursts
            | Breach::LosesState
            | Breach::LoopsAreLate
            | Breach::LoopsFailFences
            | Breach::HalfPrecision
            | Breach::WritesBeforeOutputs
            | Breach::OpenResultsHaveOneShape
            | Breach::LooksForBuffersLate => {
                Arc::new(BrokenModel { prepared, breach: self.breach, inputs })
            }
            _ => prepared,
        }
    }
}

impl Broken {
    /// Refuses what should not be refused, or takes its time.
    fn look_at(&self, model: &Model) -> Result<()> {
        let is_unknown = |operand: &nnhal_hal::Operand| {
            operand.operand_type.is_tensor() == Some(true) && operand.dimensions.is_empty()
        };
        match self.breach {
            Breach::RefusesUnknownRanks if model.main.operands.iter().any(is_unknown) => {
                Err(nnhal_hal::Error::invalid("a rank is not known"))
            }
            Breach::RefusesOpenBranches
                if model.referenced.iter().any(|graph| {
                    graph.operands.iter().any(|it| is_open(it, OperandLifeTime::TemporaryVariable))
                }) =>
            {
                Err(nnhal_hal::Error::invalid("a size within a branch is not known"))
            }
            Breach::OpenResultsFail if has_open_results(model) => {
                Err(nnhal_hal::Error::failure("a result's size is not known"))
            }
            Breach::FollowsEveryPath => {
                assert!(paths(model, &model.main, 40) > 0);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Without the mistakes that it does not see.
    fn mended(&self, model: &Model) -> Model {
        use OperandType as T;
        let mut model = model.clone();
        for operand in &mut model.main.operands {
            match (self.breach, operand.operand_type) {
                (
                    Breach::AnyScaleOfNewTypes,
                    T::TensorQuant8AsymmSigned
                    | T::TensorQuant16Asymm
                    | T::TensorQuant16Symm
                    | T::TensorQuant8Symm,
                ) => (operand.scale, operand.zero_point) = (1.0, 0),
                (Breach::AnyNewScalar, T::Float32 | T::Uint32 | T::Bool | T::Float16 | T::Oem) => {
                    operand.dimensions.clear()
                }
                _ => {}
            }
        }
        model
    }
}

/// Whether an operand of this lifetime has a size that is not known.
fn is_open(operand: &nnhal_hal::Operand, lifetime: OperandLifeTime) -> bool {
    operand.lifetime == lifetime
        && operand.operand_type.is_tensor() == Some(true)
        && (operand.dimensions.is_empty() || operand.dimensions.contains(&0))
}

/// Whether a subgraph gives out what has a size that is not known.
fn has_open_results(model: &Model) -> bool {
    model
        .referenced
        .iter()
        .any(|graph| graph.operands.iter().any(|it| is_open(it, OperandLifeTime::SubgraphOutput)))
}

/// How many ways lead through the subgraphs of a model, whose references may be a circle.
fn paths(model: &Model, graph: &nnhal_hal::Subgraph, depth: u32) -> u64 {
    let is_reference = |it: &&nnhal_hal::Operand| it.lifetime == OperandLifeTime::Subgraph;
    let referred = graph.operands.iter().filter(is_reference).filter(|_| depth > 0);
    let referred = referred.filter_map(|it| model.referenced.get(it.location.offset as usize));
    referred.map(|graph| paths(model, graph, depth - 1)).sum::<u64>().max(1)
}

impl Device for Broken {
    fn name(&self) -> &str {
        if self.breach == Breach::OddName { "odd" } else { self.device.name() }
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
        self.look_at(model)?;
        let model = &self.mended(model);
        let all = || Ok(vec![Support::Yes; model.main.operations.len()]);
        let signed = |model: &Model| {
            let mut operands = model.main.operands.iter();
            operands.any(|it| it.operand_type == OperandType::TensorQuant8AsymmSigned)
        };
        let is = |wanted: fn(OperationType) -> bool| {
            model.main.operations.iter().any(|operation| wanted(operation.operation_type))
        };
        match self.breach {
            Breach::AnyModelIsFine => all(),
            Breach::RefusesOem if is(|it| it == OperationType::OemOperation) => {
                Err(nnhal_hal::Error::invalid("this is unknown"))
            }
            Breach::RefusesValues if has_number(model, 999) => {
                Err(nnhal_hal::Error::invalid("there is no such activation"))
            }
            Breach::SupportsAllControlFlow
                if is(|it| matches!(it, OperationType::If | OperationType::While)) =>
            {
                all()
            }
            Breach::OpenResultsAreHalfRefused if has_open_results(model) => {
                Err(nnhal_hal::Error::invalid("a result's size is not known"))
            }
            Breach::OneInterfaceForAll => {
                self.device.supported_operations(model, HalVersion::LATEST)
            }
            Breach::NoSignedTypes if signed(model) => {
                let answers = self.device.supported_operations(model, version)?;
                Ok(answers.iter().map(|_| Support::No("signed".to_owned())).collect())
            }
            Breach::OneAnswerMore => {
                let mut answers = self.device.supported_operations(model, version)?;
                answers.push(Support::Yes);
                Ok(answers)
            }
            Breach::AnswersForInner => {
                let mut answers = self.device.supported_operations(model, version)?;
                let inner = model.referenced.iter().flat_map(|graph| &graph.operations);
                answers.extend(inner.map(|_| Support::Yes));
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
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
            let passed = self.breach == Breach::WallClock && u128::from(deadline) < now.as_nanos();
            if far || first || passed { Err(missed) } else { Ok(()) }
        };
        options.deadline.iter().try_for_each(late)?;
        match self.breach {
            Breach::PanicsWhilePreparing => panic!("by intent"),
            Breach::PreparesSlowly => std::thread::sleep(Duration::from_secs(1)),
            Breach::LeaksDescriptors => {
                for fd in model.pools.iter().flat_map(|pool| pool.parts().0) {
                    std::mem::forget(fd.try_clone());
                }
            }
            Breach::SwapsBranches
                if model.main.operations[0].operation_type == OperationType::If =>
            {
                let mut model = model.clone();
                model.referenced.swap(0, 1);
                return self.device.prepare_model(&model, version, options);
            }
            Breach::StumblesOverCacheFiles if !options.model_cache.is_empty() => {
                return Err(nnhal_hal::Error::invalid("these cache files are of no use"));
            }
            _ => {}
        }
        self.look_at(model)?;
        let model = &self.mended(model);
        let prepared = self.device.prepare_model(model, version, options)?;
        if self.breach == Breach::WritesConstants {
            for pool in &model.pools {
                pool.view()?.fill_zero(0, 4)?;
            }
        }
        Ok(self.wrap(model, prepared))
    }

    fn prepare_model_from_cache(&self, options: PrepareOptions) -> Result<Arc<dyn PreparedModel>> {
        if self.breach == Breach::LoadsAnything {
            let mut graph = nnhal_hal::SubgraphBuilder::new();
            let spec = nnhal_hal::OperandSpec::tensor_float32([2, 2]);
            let (a, b) = (graph.input("a", spec.clone()), graph.input("b", spec.clone()));
            let none = graph.scalar_i32(0);
            let sum = graph.operation(OperationType::Add, [a, b, none], spec);
            graph.output(sum);
            let model = graph.into_model().unwrap();
            let options = PrepareOptions::default();
            return self.device.prepare_model(&model, HalVersion::LATEST, options);
        }
        self.device.prepare_model_from_cache(options)
    }

    fn allocate(&self, description: &BufferDescription) -> Result<Arc<dyn Buffer>> {
        // The device knows its own again.
        let own = |model: &Arc<dyn PreparedModel>| {
            let any: &dyn Any = &**model;
            let broken = any.downcast_ref::<BrokenModel>();
            broken.map_or_else(|| Arc::clone(model), |it| Arc::clone(&it.prepared))
        };
        let prepared_models = description.prepared_models.iter().map(own).collect();
        let description = BufferDescription { prepared_models, ..description.clone() };
        let allocated = self.device.allocate(&description);
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

impl BrokenModel {
    /// A request without the mistakes that it does not see, unless it refuses what should not be refused.
    fn taken(&self, request: &Request, options: &ExecutionOptions) -> Result<Request> {
        let mut request = request.clone();
        let deadline = options.deadline.map(Deadline::nanoseconds_since_epoch);
        let late = nnhal_hal::Error::new(ErrorStatus::MissedDeadlinePersistent, "too late");
        let is_token = |request: &Request, argument: &nnhal_hal::RequestArgument| {
            let pool = request.pools.get(argument.location.pool_index as usize);
            matches!(pool, Some(RequestMemoryPool::Token(_)))
        };
        match self.breach {
            Breach::LateBeforeWrong if deadline == Some(1) => return Err(late),
            Breach::ExecutionsMissFarDeadlines if deadline > Some(u64::MAX / 4) => {
                return Err(late);
            }
            Breach::WholePagesOnly => {
                for pool in &request.pools {
                    let RequestMemoryPool::Memory(memory) = pool else { continue };
                    if memory.file_part().is_some_and(|(_, offset)| offset % 4096 != 0) {
                        return Err(nnhal_hal::Error::invalid("it begins within a page"));
                    }
                }
            }
            Breach::AnyScalar => {
                for (argument, (is_scalar, _)) in request.inputs.iter_mut().zip(&self.inputs) {
                    if *is_scalar {
                        argument.dimensions.clear();
                    }
                }
            }
            Breach::AnyOmitted => {
                for argument in request.inputs.iter_mut().filter(|it| it.has_no_value) {
                    argument.dimensions.clear();
                }
            }
            Breach::BuffersKnowTheirShapes => {
                let tokens: Vec<_> =
                    request.inputs.iter().map(|it| is_token(&request, it)).collect();
                for ((argument, is_token), (_, dimensions)) in
                    request.inputs.iter_mut().zip(tokens).zip(&self.inputs)
                {
                    if is_token && argument.dimensions.is_empty() && dimensions.contains(&0) {
                        argument.dimensions = vec![2, 2];
                    }
                }
            }
            _ => {}
        }
        Ok(request)
    }

    /// Outputs become 0 when the client does not expect it any more.
    fn write_later(&self, request: &Request) {
        if self.breach != Breach::WritesLater {
            return;
        }
        let request = request.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            for output in &request.outputs {
                write(&request, output.location.offset, &[0]);
            }
        });
    }
}

/// The times from the call and from the fences, exchanged.
#[derive(Debug)]
struct SwappedTimes(Box<dyn FencedExecutionInfo>);

impl FencedExecutionInfo for SwappedTimes {
    fn get(&self) -> Result<(Timing, Timing)> {
        self.0.get().map(|(launched, fenced)| (fenced, launched))
    }
}

impl PreparedModel for BrokenModel {
    fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Result<Execution, ExecutionError> {
        let request = &self.taken(request, options)?;
        let day = Some(Duration::from_secs(86_400));
        let soon = options.loop_timeout.is_some_and(|it| it <= Duration::from_nanos(1));
        if self.breach == Breach::LoopsAreLate && soon {
            return Err(nnhal_hal::Error::new(ErrorStatus::MissedDeadlineTransient, "late").into());
        }
        let result = self.prepared.execute(request, options);
        let output = request.outputs.first().map(|it| it.location).unwrap_or_default();
        match (self.breach, result) {
            (Breach::LosesState, Ok(execution)) => {
                if request.inputs.len() == 3 {
                    write(request, output.offset, &[0; 4]);
                }
                Ok(execution)
            }
            (Breach::HalfPrecision, Ok(execution)) => {
                let value = RequestBuilder::read_output(request, 0).unwrap();
                let (floats, _) = value.as_chunks::<4>();
                // Ten bits of the fraction, as float16 has.
                let half = |bytes: &[u8; 4]| (u32::from_le_bytes(*bytes) & !0x1FFF).to_le_bytes();
                write(request, output.offset, &floats.iter().flat_map(half).collect::<Vec<_>>());
                Ok(execution)
            }
            (Breach::WritesBeforeOutputs, Ok(execution)) => {
                if output.offset > 0 {
                    write(request, output.offset - 1, &[0xEE]);
                }
                Ok(execution)
            }
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
            (Breach::AllAreShort, Err(mut failed)) => {
                failed.output_shapes.iter_mut().for_each(|it| it.is_sufficient = false);
                Err(failed)
            }
            (Breach::OnlyTheFirstShape, Err(mut failed)) => {
                failed.output_shapes.truncate(1);
                Err(failed)
            }
            (Breach::OpenResultsHaveOneShape, Ok(mut execution)) => {
                execution.output_shapes.iter_mut().for_each(|shape| shape.dimensions = vec![2]);
                Ok(execution)
            }
            (Breach::OnlyTheFirstShape, Ok(mut execution)) => {
                execution.output_shapes.truncate(1);
                Ok(execution)
            }
            (Breach::WritesLater, result) => {
                self.write_later(request);
                result
            }
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
        if self.breach == Breach::LooksForBuffersLate {
            let (signal, fence) = SyncFence::pair()?;
            let outcome = Arc::new(Outcome::default());
            let (prepared, reported) = (Arc::clone(&self.prepared), Arc::clone(&outcome));
            let (request, wait_for) = (request.clone(), wait_for.to_vec());
            std::thread::spawn(move || {
                for fence in &wait_for {
                    fence.wait(None).unwrap();
                }
                let result = prepared.execute(&request, &ExecutionOptions::default());
                let ended = result.map(|_| ()).map_err(|failed| failed.error);
                *reported.0.lock().unwrap() = Some(ended);
                signal.signal();
            });
            return Ok(FencedExecution {
                sync_fence: Some(fence),
                info: Box::new(Reported(outcome)),
            });
        }
        let wait_for = if self.breach == Breach::DoesNotWait { &[] } else { wait_for };
        let request = &self.taken(request, options)?;
        let measured = ExecutionOptions { measure: true, ..options.clone() };
        let options = if self.breach == Breach::FencedTimesUnasked { &measured } else { options };
        let timeout_after_fences =
            timeout_after_fences.filter(|_| self.breach != Breach::IgnoresDurations);
        let mut launched =
            self.prepared.execute_fenced(request, wait_for, options, timeout_after_fences)?;
        if self.breach == Breach::SwapsFencedTimes {
            launched.info = Box::new(SwappedTimes(launched.info));
        }
        self.write_later(request);
        if self.breach == Breach::LoopsFailFences && options.loop_timeout.is_some() {
            if let Some(fence) = &launched.sync_fence {
                fence.wait(None)?;
            }
            let (signal, fence) = SyncFence::pair()?;
            signal.fail(nnhal_hal::Error::failure("too late"));
            launched.sync_fence = Some(fence);
        }
        Ok(launched)
    }

    fn configure_burst(&self) -> Result<Box<dyn Burst>> {
        match self.breach {
            Breach::NoBursts => Err(nnhal_hal::Error::failure("no bursts")),
            _ => self.prepared.configure_burst(),
        }
    }
}

/// What became of an execution.
#[derive(Debug, Default)]
struct Outcome(Mutex<Option<Result<()>>>);

#[derive(Debug)]
struct Reported(Arc<Outcome>);

impl FencedExecutionInfo for Reported {
    fn get(&self) -> Result<(Timing, Timing)> {
        let ended = self.0.0.lock().unwrap().clone();
        ended.unwrap().map(|()| (Timing::NONE, Timing::NONE))
    }
}

/// Whether a model has this number among its values.
fn has_number(model: &Model, number: u32) -> bool {
    model.operand_values.windows(4).any(|bytes| bytes == number.to_le_bytes())
}

/// Puts bytes into the first pool of a request.
fn write(request: &Request, offset: u32, bytes: &[u8]) {
    let RequestMemoryPool::Memory(memory) = &request.pools[0] else { return };
    memory.view().unwrap().write(u64::from(offset), bytes).unwrap();
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
    assert_eq!(left_out, ["data cache files"], "{report}");
}

/// Threads that look for breaches: checks mostly wait.
const THREADS: usize = 3;

#[test]
fn every_breach_is_found() {
    let breaches = Mutex::new(BREACHES.iter());
    let work = || {
        let mut of_use = BTreeSet::new();
        loop {
            let next = breaches.lock().unwrap().next();
            let Some((breach, expected)) = next else { return of_use };
            let device: Arc<dyn Device> =
                Arc::new(Broken { device: nnhal_reference::device(), breach: *breach });
            for id in *expected {
                // A rule's id begins others: MODEL-1 and MODEL-10.
                let report = contract::run(&device, *id, |_| ());
                let kept = report.by_requirement().get(id).copied();
                assert_eq!(kept, Some(false), "{breach:?} is not found as {id}\n{report}");
                let found =
                    report.violations().filter(|(outcome, _)| outcome.check.ids.contains(id));
                of_use.extend(found.map(|(outcome, _)| outcome.check.name));
            }
        }
    };
    let of_use: BTreeSet<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    // Of these sections every check finds one.
    let sections = ["models", "control flow", "values"];
    let checks = contract::checks().filter(|(section, _)| sections.contains(section));
    let of_no_use: Vec<_> =
        checks.map(|(_, check)| check.name).filter(|name| !of_use.contains(name)).collect();
    assert!(of_no_use.is_empty(), "no breach is found by {of_no_use:?}");
}

#[test]
fn a_device_that_hangs_or_panics_is_reported() {
    let broken = |breach| -> Arc<dyn Device> {
        Arc::new(Broken { device: nnhal_reference::device(), breach })
    };
    let report = contract::run(&broken(Breach::PanicsWhilePreparing), "EXEC-6", |_| ());
    let (_, violation) = report.violations().next().unwrap();
    assert_eq!(violation.0, "the device panics");

    // Who is slow is given more time, if that is asked for.
    let slow = broken(Breach::PreparesSlowly);
    let checks = Checks { filter: "EXEC-6", time_limit: Duration::from_millis(100) };
    let report = contract::run(&slow, checks, |_| ());
    let (_, violation) = report.violations().next().unwrap();
    assert_eq!(violation.0, "the device does not answer within 100ms");
    let checks = Checks { time_limit: Duration::from_secs(60), ..checks };
    assert_eq!(contract::run(&slow, checks, |_| ()).violations().count(), 0);
}
