//! Where vectors that must fail may fail, and which vectors are for the C library only.
#![allow(clippy::print_stderr)] // What was left out.

use nnhal_conformance::paths::Outcome;
use nnhal_conformance::report::Judgement;
use nnhal_conformance::suite::Audience;
use nnhal_conformance::{Case, Path, Report, Selection, Suite, Vectors};
use nnhal_hal::device::FencedExecutionInfo;
use nnhal_hal::{
    Buffer, BufferDescription, Burst, CacheFilesNeeded, Capabilities, Device, DeviceType, Error,
    Execution, ExecutionError, ExecutionOptions, FencedExecution, HalVersion, Model,
    PerformanceInfo, PrepareOptions, PreparedModel, Request, RequestMemoryPool, Support, SyncFence,
    Timing,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn operand(kind: &str, dimensions: &[u32], lifetime: &str, data: Option<&str>) -> Value {
    json!({
        "name": lifetime, "type": kind, "dimensions": dimensions, "scale": 0.0, "zero_point": 0,
        "lifetime": lifetime, "channel_quant": null, "ignored": false, "data": data,
    })
}

fn case(suite: &str, main: &Value, referenced: &[Value]) -> Case {
    let case = json!({
        "name": "case", "spec": "test/case", "min_hal": "1.3", "ops": ["ADD"], "suites": [suite],
        "is_relaxed": false, "expect_failure": suite == "validation",
        "multinomial_tolerance": null, "tolerances": [null], "main": main,
        "referenced": referenced,
    });
    serde_json::from_value(case).unwrap()
}

/// The sum of two floats with an activation that does not exist, 999.
fn wrong_activation() -> Case {
    let float = |lifetime| operand("TENSOR_FLOAT32", &[1], lifetime, Some("AAAAAA=="));
    let main = json!({
        "operands": [
            float("SUBGRAPH_INPUT"), float("SUBGRAPH_INPUT"),
            operand("INT32", &[], "CONSTANT_COPY", Some("5wMAAA==")), float("SUBGRAPH_OUTPUT"),
        ],
        "operations": [{ "type": "ADD", "inputs": [0, 1, 2], "outputs": [3] }],
        "inputs": [0, 1], "outputs": [3],
    });
    case("validation", &main, &[])
}

/// A WHILE whose variable is declared with this many elements; 0: unknown.
fn some_loop(length: u32) -> Case {
    let number = |lifetime, data| operand("TENSOR_INT32", &[length], lifetime, data);
    let plain = |lifetime, data| operand("TENSOR_INT32", &[1], lifetime, data);
    let condition = json!({
        "operands": [
            number("SUBGRAPH_INPUT", None), plain("CONSTANT_COPY", Some("AgAAAA==")),
            operand("TENSOR_BOOL8", &[1], "SUBGRAPH_OUTPUT", None),
        ],
        "operations": [{ "type": "LESS", "inputs": [0, 1], "outputs": [2] }],
        "inputs": [0], "outputs": [2],
    });
    let body = json!({
        "operands": [
            number("SUBGRAPH_INPUT", None), plain("CONSTANT_COPY", Some("AQAAAA==")),
            operand("INT32", &[], "CONSTANT_COPY", Some("AAAAAA==")),
            number("SUBGRAPH_OUTPUT", None),
        ],
        "operations": [{ "type": "ADD", "inputs": [0, 1, 2], "outputs": [3] }],
        "inputs": [0], "outputs": [3],
    });
    let main = json!({
        "operands": [
            operand("SUBGRAPH", &[], "SUBGRAPH", Some("AAAAAA==")),
            operand("SUBGRAPH", &[], "SUBGRAPH", Some("AQAAAA==")),
            plain("SUBGRAPH_INPUT", Some("AAAAAA==")), plain("SUBGRAPH_OUTPUT", Some("AgAAAA==")),
        ],
        "operations": [{ "type": "WHILE", "inputs": [0, 1, 2], "outputs": [3] }],
        "inputs": [2], "outputs": [3],
    });
    case("generated", &main, &[condition, body])
}

/// A device that answers like this.
struct Answers {
    supported: fn(usize) -> nnhal_hal::Result<Vec<Support>>,
    preparing: fn() -> Error,
}

impl Device for Answers {
    fn name(&self) -> &str {
        "test-answers"
    }

    fn version_string(&self) -> String {
        "1".into()
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Other
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::uniform(PerformanceInfo::AS_CPU)
    }

    fn supported_operations(
        &self,
        model: &Model,
        _: HalVersion,
    ) -> nnhal_hal::Result<Vec<Support>> {
        (self.supported)(model.main.operations.len())
    }

    fn prepare_model(
        &self,
        _: &Model,
        _: HalVersion,
        _: PrepareOptions,
    ) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
        Err((self.preparing)())
    }
}

fn no(count: usize) -> nnhal_hal::Result<Vec<Support>> {
    Ok(vec![Support::No("no".into()); count])
}

fn yes(count: usize) -> nnhal_hal::Result<Vec<Support>> {
    Ok(vec![Support::Yes; count])
}

fn verdict(device: &dyn Device) -> Option<String> {
    Suite::Validation.run(device, &wrong_activation()).remove(0).1
}

#[test]
fn model_29_a_model_that_must_fail_may_not_be_refused_by_a_launch() {
    let failure = || Error::failure("cannot");
    let invalid = || Error::invalid("wrong");
    assert_eq!(verdict(&Answers { supported: no, preparing: failure }), None);
    let refused = |_| Err(Error::invalid("wrong"));
    for (supported, preparing, expected) in [
        (refused as fn(usize) -> _, failure as fn() -> _, "refused by supported_operations"),
        (no, invalid, "refused by the launch of prepare_model"),
        (yes, failure, "all operations are supported"),
        (|_| Ok(Vec::new()), failure, "0 answers for 1 operations"),
    ] {
        let found = verdict(&Answers { supported, preparing }).expect("a failure");
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn prep_5_any_error_may_be_notified_after_the_launch() {
    // Behind the interfaces it shows what was launched: the error is the callback's.
    let device: Arc<dyn Device> = nnhal_reference::device();
    let through = nnhal_hidl::client::through(
        device,
        HalVersion::V1_3,
        nnhal_hidl::client::Options::default(),
    );
    assert_eq!(verdict(&*through.unwrap()), None);
    assert_eq!(verdict(&*nnhal_reference::device()), None);
}

#[test]
fn cf_4_loops_of_unknown_size_are_for_the_c_library_alone() {
    assert_eq!(Suite::audience(&some_loop(0)), Audience::CLibraryOnly);
    assert_eq!(Suite::audience(&some_loop(1)), Audience::All);
    assert_eq!(Suite::audience(&wrong_activation()), Audience::All);
    let mut left_out = some_loop(1);
    left_out.spec = "V1_3_cts_only/case".into();
    assert_eq!(Suite::audience(&left_out), Audience::CLibrary);

    assert_eq!(Suite::is_refused(&*nnhal_reference::device(), &some_loop(0)), Ok(true));
    assert_eq!(Suite::is_refused(&*nnhal_reference::device(), &some_loop(1)), Ok(false));
    let lax = Answers { supported: yes, preparing: || Error::invalid("wrong") };
    assert_eq!(Suite::is_refused(&lax, &some_loop(0)), Ok(false));
    let confused = Answers {
        supported: |_| Err(Error::invalid("wrong")),
        preparing: || Error::failure("cannot"),
    };
    let found = Suite::is_refused(&confused, &some_loop(0)).unwrap_err();
    assert!(found.contains("expected INVALID_ARGUMENT"), "{found}");
}

/// Those that must fail, and those that only the C library takes.
#[test]
fn vectors_that_devices_cannot_run_pass() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance");
    let Ok(vectors) = Vectors::open(&folder) else {
        eprintln!("skipped: no vectors beside the repository");
        return;
    };
    let judge = |device: &dyn Device, filter: &str, suites: &[Suite]| {
        let selection =
            Selection { filter: filter.into(), suites: suites.to_vec(), ..Selection::default() };
        let report = nnhal_conformance::run(device, &vectors, &selection, |_| ()).unwrap();
        let failures: Vec<_> = report.failures().map(|(it, why)| (it.case.clone(), why)).collect();
        assert!(failures.is_empty(), "{failures:#?}");
        report
    };
    let reference = nnhal_reference::device();
    let report = judge(&*reference, "", &[Suite::Validation]);
    let counted = |report: &Report, wanted| {
        report.outcomes.iter().filter(|it| it.judgement == wanted).count()
    };
    assert_eq!(counted(&report, Judgement::ForCLibrary), 4, "a wrong rank");
    assert!(counted(&report, Judgement::Passed) >= 12, "{report}");

    // We take branches of unknown size; whoever refuses them is right as well.
    let report = judge(&*reference, "V1_3_cts_only", &[Suite::Generated]);
    assert_eq!(counted(&report, Judgement::Passed), report.outcomes.len());
    let strict = Answers {
        supported: |_| Err(Error::invalid("an unknown size")),
        preparing: || Error::invalid("an unknown size"),
    };
    let report = judge(&strict, "V1_3_cts_only", &[Suite::Generated, Suite::Validation]);
    assert_eq!(counted(&report, Judgement::ForCLibrary), report.outcomes.len());
    assert!(report.outcomes.len() > 32, "{report}");
}

/// The reference device, which fails by one path.
struct Failing(Path);

struct FailingModel {
    inner: Arc<dyn PreparedModel>,
    path: Path,
    is_loaded: bool,
}

impl FailingModel {
    fn of(inner: Arc<dyn PreparedModel>, path: Path, is_loaded: bool) -> Arc<dyn PreparedModel> {
        Arc::new(Self { inner, path, is_loaded })
    }
}

impl PreparedModel for FailingModel {
    fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Result<Execution, ExecutionError> {
        let in_buffers = request.pools.iter().any(|it| matches!(it, RequestMemoryPool::Token(_)));
        let fails = match self.path {
            Path::Asynchronous => true,
            Path::DeviceMemory => in_buffers,
            Path::Cached => self.is_loaded,
            // It computes, and tells times that no one asked for.
            Path::Synchronous => {
                let mut execution = self.inner.execute(request, options)?;
                execution.timing.time_on_device = Some(Duration::from_micros(1));
                return Ok(execution);
            }
            _ => false,
        };
        if fails {
            return Err(Error::failure("it fails").into());
        }
        self.inner.execute(request, options)
    }

    fn execute_fenced(
        &self,
        request: &Request,
        wait_for: &[SyncFence],
        options: &ExecutionOptions,
        after: Option<Duration>,
    ) -> nnhal_hal::Result<FencedExecution> {
        let is_chained = !wait_for.is_empty();
        if (self.path == Path::Fenced && !is_chained) || (self.path == Path::Chained && is_chained)
        {
            return Err(Error::failure("it fails"));
        }
        self.inner.execute_fenced(request, wait_for, options, after)
    }

    fn configure_burst(&self) -> nnhal_hal::Result<Box<dyn Burst>> {
        match self.path {
            Path::Burst => Err(Error::failure("it fails")),
            _ => self.inner.configure_burst(),
        }
    }
}

impl Device for Failing {
    fn name(&self) -> &str {
        "test-failing"
    }

    fn version_string(&self) -> String {
        "1".into()
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Other
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::uniform(PerformanceInfo::AS_CPU)
    }

    fn cache_files_needed(&self) -> CacheFilesNeeded {
        reference().cache_files_needed()
    }

    fn supported_operations(
        &self,
        model: &Model,
        version: HalVersion,
    ) -> nnhal_hal::Result<Vec<Support>> {
        reference().supported_operations(model, version)
    }

    fn prepare_model(
        &self,
        model: &Model,
        version: HalVersion,
        options: PrepareOptions,
    ) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
        let prepared = reference().prepare_model(model, version, options)?;
        Ok(FailingModel::of(prepared, self.0, false))
    }

    fn prepare_model_from_cache(
        &self,
        options: PrepareOptions,
    ) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
        let loaded = reference().prepare_model_from_cache(options)?;
        Ok(FailingModel::of(loaded, self.0, true))
    }

    fn allocate(&self, description: &BufferDescription) -> nnhal_hal::Result<Arc<dyn Buffer>> {
        let mut description = description.clone();
        for model in &mut description.prepared_models {
            let any: &dyn std::any::Any = &**model;
            let ours = any.downcast_ref::<FailingModel>().expect("a model of this device");
            *model = Arc::clone(&ours.inner);
        }
        reference().allocate(&description)
    }
}

/// One for all: buffers and models of different devices do not go together.
fn reference() -> &'static Arc<dyn Device> {
    static REFERENCE: std::sync::OnceLock<Arc<dyn Device>> = std::sync::OnceLock::new();
    REFERENCE.get_or_init(|| nnhal_reference::device())
}

#[test]
fn a_device_that_fails_by_one_path_is_found_out_by_it_alone() {
    let float = |lifetime| operand("TENSOR_FLOAT32", &[1], lifetime, Some("AAAAAA=="));
    let main = json!({
        "operands": [float("SUBGRAPH_INPUT"), float("SUBGRAPH_OUTPUT")],
        "operations": [{ "type": "RELU", "inputs": [0], "outputs": [1] }],
        "inputs": [0], "outputs": [1],
    });
    let case = case("generated", &main, &[]);
    for fails in Path::ALL {
        for path in Path::ALL {
            let device = Failing(*fails);
            // What fails asynchronously is seen where it is executed so.
            if (*path == Path::Asynchronous) != (*fails == Path::Asynchronous) {
                continue;
            }
            let result = Suite::Generated.run_by(*path, &device, &case);
            // Times that no one asked for are also reported of what was loaded.
            let is_plain = matches!(path, Path::Cached | Path::DeviceMemory);
            let expected = path == fails || (*fails == Path::Synchronous && is_plain);
            assert_eq!(result.is_err(), expected, "{fails} by {path}: {result:?}");
        }
    }
}

/// The reference device, which by one path takes every failure for a success.
struct Lax(Path);

struct LaxModel {
    inner: Arc<dyn PreparedModel>,
    path: Path,
    is_loaded: bool,
}

struct LaxBurst(Box<dyn Burst>);

/// What of an execution that is said to have succeeded.
const FINE: Execution = Execution { output_shapes: Vec::new(), timing: Timing::NONE };

#[derive(Debug)]
struct FineInfo;

impl FencedExecutionInfo for FineInfo {
    fn get(&self) -> nnhal_hal::Result<(Timing, Timing)> {
        Ok((Timing::NONE, Timing::NONE))
    }
}

impl Burst for LaxBurst {
    fn execute(&self, request: &Request, measure: bool) -> Result<Execution, ExecutionError> {
        Ok(self.0.execute(request, measure).unwrap_or(FINE))
    }

    fn free_memory(&self, memory: &nnhal_hal::Memory) {
        self.0.free_memory(memory);
    }
}

impl PreparedModel for LaxModel {
    fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Result<Execution, ExecutionError> {
        let in_buffers = request.pools.iter().any(|it| matches!(it, RequestMemoryPool::Token(_)));
        let is_lax = match self.path {
            Path::Synchronous => !in_buffers && !self.is_loaded,
            Path::DeviceMemory => in_buffers,
            Path::Cached => self.is_loaded,
            _ => false,
        };
        let executed = self.inner.execute(request, options);
        if is_lax { Ok(executed.unwrap_or(FINE)) } else { executed }
    }

    fn execute_fenced(
        &self,
        request: &Request,
        wait_for: &[SyncFence],
        options: &ExecutionOptions,
        after: Option<Duration>,
    ) -> nnhal_hal::Result<FencedExecution> {
        let is_chained = !wait_for.is_empty();
        if (self.path == Path::Fenced && !is_chained) || (self.path == Path::Chained && is_chained)
        {
            let (signal, fence) = SyncFence::pair()?;
            signal.signal();
            return Ok(FencedExecution { sync_fence: Some(fence), info: Box::new(FineInfo) });
        }
        self.inner.execute_fenced(request, wait_for, options, after)
    }

    fn configure_burst(&self) -> nnhal_hal::Result<Box<dyn Burst>> {
        let burst = self.inner.configure_burst()?;
        Ok(if self.path == Path::Burst { Box::new(LaxBurst(burst)) } else { burst })
    }
}

impl Device for Lax {
    fn name(&self) -> &str {
        "test-lax"
    }

    fn version_string(&self) -> String {
        "1".into()
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Other
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::uniform(PerformanceInfo::AS_CPU)
    }

    fn cache_files_needed(&self) -> CacheFilesNeeded {
        reference().cache_files_needed()
    }

    fn supported_operations(
        &self,
        model: &Model,
        version: HalVersion,
    ) -> nnhal_hal::Result<Vec<Support>> {
        reference().supported_operations(model, version)
    }

    fn prepare_model(
        &self,
        model: &Model,
        version: HalVersion,
        options: PrepareOptions,
    ) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
        let inner = reference().prepare_model(model, version, options)?;
        Ok(Arc::new(LaxModel { inner, path: self.0, is_loaded: false }))
    }

    fn prepare_model_from_cache(
        &self,
        options: PrepareOptions,
    ) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
        let inner = reference().prepare_model_from_cache(options)?;
        Ok(Arc::new(LaxModel { inner, path: self.0, is_loaded: true }))
    }

    fn allocate(&self, description: &BufferDescription) -> nnhal_hal::Result<Arc<dyn Buffer>> {
        let mut description = description.clone();
        for model in &mut description.prepared_models {
            let any: &dyn std::any::Any = &**model;
            let ours = any.downcast_ref::<LaxModel>().expect("a model of this device");
            *model = Arc::clone(&ours.inner);
        }
        reference().allocate(&description)
    }
}

/// What must fail must fail by every path, and an output without room is seen by each.
#[test]
fn a_device_that_is_lax_by_one_path_is_found_out_by_it_alone() {
    let kind = |kind: &str, dimensions: &[u32], lifetime: &str, data: &str| {
        operand(kind, dimensions, lifetime, Some(data))
    };
    // Row 5 of a table of one.
    let table = json!({
        "operands": [
            kind("TENSOR_INT32", &[1], "SUBGRAPH_INPUT", "BQAAAA=="),
            kind("TENSOR_FLOAT32", &[1, 2], "SUBGRAPH_INPUT", "AAAAAAAAAAA="),
            kind("TENSOR_FLOAT32", &[1, 2], "SUBGRAPH_OUTPUT", "AAAAAAAAAAA="),
        ],
        "operations": [{ "type": "EMBEDDING_LOOKUP", "inputs": [0, 1], "outputs": [2] }],
        "inputs": [0, 1], "outputs": [2],
    });
    let float = |lifetime| operand("TENSOR_FLOAT32", &[1], lifetime, Some("AAAAAA=="));
    let relu = json!({
        "operands": [float("SUBGRAPH_INPUT"), float("SUBGRAPH_OUTPUT")],
        "operations": [{ "type": "RELU", "inputs": [0], "outputs": [1] }],
        "inputs": [0], "outputs": [1],
    });
    let cases = [
        (Suite::Validation, case("validation", &table, &[])),
        (Suite::ShortOutput, case("dynamic_output_shape", &relu, &[])),
    ];
    let paths = || Path::ALL.iter().copied().filter(|it| *it != Path::Asynchronous);
    for (suite, case) in &cases {
        for path in paths() {
            assert_eq!(suite.run_by(path, &**reference(), case), Ok(Outcome::Passed), "{path}");
            for lax in paths() {
                let result = suite.run_by(path, &Lax(lax), case);
                // What is unknown is refused behind no fence, before anything is chained.
                let by_both = *suite == Suite::ShortOutput && path == Path::Chained;
                let expected = path == lax || (by_both && lax == Path::Fenced);
                assert_eq!(result.is_err(), expected, "{suite}: {lax} by {path}: {result:?}");
            }
        }
    }
}

/// The reference device, where an execution that reads a buffer waits for no fence, and is over when its
/// launch returns.
struct Hasty;

struct HastyModel(Arc<dyn PreparedModel>);

impl PreparedModel for HastyModel {
    fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Result<Execution, ExecutionError> {
        self.0.execute(request, options)
    }

    fn execute_fenced(
        &self,
        request: &Request,
        wait_for: &[SyncFence],
        options: &ExecutionOptions,
        after: Option<Duration>,
    ) -> nnhal_hal::Result<FencedExecution> {
        let reads_buffer = request.inputs.iter().any(|input| {
            let pool = request.pools.get(input.location.pool_index as usize);
            matches!(pool, Some(RequestMemoryPool::Token(_)))
        });
        if !reads_buffer {
            return self.0.execute_fenced(request, wait_for, options, after);
        }
        let launched = self.0.execute_fenced(request, &[], options, after)?;
        if let Some(fence) = &launched.sync_fence {
            fence.wait(None)?;
        }
        Ok(launched)
    }

    fn configure_burst(&self) -> nnhal_hal::Result<Box<dyn Burst>> {
        self.0.configure_burst()
    }
}

impl Device for Hasty {
    fn name(&self) -> &str {
        "test-hasty"
    }

    fn version_string(&self) -> String {
        "1".into()
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Other
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::uniform(PerformanceInfo::AS_CPU)
    }

    fn supported_operations(
        &self,
        model: &Model,
        version: HalVersion,
    ) -> nnhal_hal::Result<Vec<Support>> {
        reference().supported_operations(model, version)
    }

    fn prepare_model(
        &self,
        model: &Model,
        version: HalVersion,
        options: PrepareOptions,
    ) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
        Ok(Arc::new(HastyModel(reference().prepare_model(model, version, options)?)))
    }

    fn allocate(&self, description: &BufferDescription) -> nnhal_hal::Result<Arc<dyn Buffer>> {
        let mut description = description.clone();
        for model in &mut description.prepared_models {
            let any: &dyn std::any::Any = &**model;
            let ours = any.downcast_ref::<HastyModel>().expect("a model of this device");
            *model = Arc::clone(&ours.0);
        }
        // What is copied in is read before the first execution has written.
        let buffer = reference().allocate(&description)?;
        buffer.copy_from(&nnhal_hal::Memory::allocate(4).unwrap(), &[1])?;
        Ok(buffer)
    }
}

/// What one execution puts into a buffer the next one must find there.
#[test]
fn a_device_that_does_not_wait_is_found_out_by_a_value_that_goes_through_a_buffer() {
    // The root of 16 is 4, that of 4 is 2, and that of what was there before is 0.
    let main = json!({
        "operands": [
            operand("TENSOR_FLOAT32", &[1], "SUBGRAPH_INPUT", Some("AACAQQ==")),
            operand("TENSOR_FLOAT32", &[1], "SUBGRAPH_OUTPUT", Some("AACAQA==")),
        ],
        "operations": [{ "type": "SQRT", "inputs": [0], "outputs": [1] }],
        "inputs": [0], "outputs": [1],
    });
    let mut case = case("generated", &main, &[]);
    case.tolerances = vec![Some(nnhal_conformance::vectors::Tolerance { atol: 1e-5, rtol: 0.0 })];
    let result = Suite::Generated.run_by(Path::Chained, &**reference(), &case);
    assert_eq!(result, Ok(Outcome::Passed));
    let found = Suite::Generated.run_by(Path::Chained, &Hasty, &case).expect_err("a wrong value");
    assert!(found.contains("through a buffer: output 0"), "{found}");
}

/// What a path is not for is not run by it.
#[test]
fn two_suites_execute_nothing_and_labels_say_what_fences_and_buffers_are_for() {
    let mut labelled = some_loop(1);
    for path in Path::ALL {
        assert!(path.includes(Suite::Compliance, &labelled) == (*path == Path::Synchronous));
        assert!(path.includes(Suite::Mutation, &labelled) == (*path == Path::Synchronous));
        let needs_label = matches!(path, Path::Fenced | Path::Chained | Path::DeviceMemory);
        for suite in [
            Suite::Generated,
            Suite::DynamicOutputShape,
            Suite::ShortOutput,
            Suite::QuantizationCoupling,
        ] {
            assert_eq!(path.includes(suite, &labelled), !needs_label, "{suite} by {path}");
        }
        // What must fail has no such label; its outputs are known.
        assert!(path.includes(Suite::Validation, &labelled), "{path}");
    }
    labelled.suites.extend(["fenced".to_owned(), "device_memory".to_owned()]);
    for path in Path::ALL {
        assert!(path.includes(Suite::ShortOutput, &labelled), "{path}");
    }
    labelled.main.operands[3].dimensions = vec![0];
    for path in [Path::Fenced, Path::Chained, Path::DeviceMemory] {
        assert!(!path.includes(Suite::Timeout, &labelled), "{path}");
    }
}

/// Some of each kind, by every path, on a device that offers them all and on one that does not.
#[test]
fn vectors_pass_by_every_path() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance");
    let Ok(vectors) = Vectors::open(&folder) else {
        eprintln!("skipped: no vectors beside the repository");
        return;
    };
    let options = nnhal_hidl::client::Options { asynchronous: true, ..Default::default() };
    let through = |options| {
        nnhal_hidl::client::through(nnhal_reference::device(), HalVersion::V1_3, options).unwrap()
    };
    let interfaces = through(nnhal_hidl::client::Options::default());
    for device in [nnhal_reference::device() as Arc<dyn Device>, interfaces] {
        for filter in ["add_v1_2", "split_float", "if_", "while_", "lstm_float", "conv2d_v1_2"] {
            let selection = Selection {
                filter: filter.into(),
                suites: vec![
                    Suite::Generated,
                    Suite::DynamicOutputShape,
                    Suite::ShortOutput,
                    Suite::QuantizationCoupling,
                    Suite::Validation,
                ],
                paths: Path::ALL.to_vec(),
                asynchronous: Some(through(options)),
                ..Selection::default()
            };
            let report = nnhal_conformance::run(&*device, &vectors, &selection, |_| ()).unwrap();
            let failures: Vec<_> =
                report.failures().map(|(it, why)| (it.case.clone(), it.path, why)).collect();
            assert!(failures.is_empty(), "{failures:#?}");
            for (path, tally) in report.by_path() {
                assert!(tally.passed > 0, "{filter} {path}: {report}");
                // Our devices offer all of it.
                assert_eq!(tally.not_offered, 0, "{filter} {path}: {report}");
            }
            assert_eq!(report.by_path().len(), Path::ALL.len(), "{filter}: {report}");
        }
    }
}
