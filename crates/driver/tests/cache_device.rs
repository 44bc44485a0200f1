//! Compilation caching of whole devices (contract: section 6, PREP-7 to PREP-9): what is loaded
//! behaves as what was saved, and what goes wrong with the files is the right thing for a client.

use bytes::Bytes;
use nnhal_driver::cache::{CacheError, CacheKey};
use nnhal_driver::{
    Bindings, Budget, CompileOptions, DriverDevice, Engine, EngineError, OperationPlace, Prepared,
    Program, RunContext,
};
use nnhal_hal::{
    CacheFilesNeeded, Capabilities, Deadline, Device, DeviceType, Error, ErrorStatus,
    ExecutionOptions, FenceState, HalVersion, Memory, Model, OperandLifeTime, OperandSpec,
    OperationType, PerformanceInfo, PrepareOptions, PreparedModel, Priority, Request,
    RequestBuilder, SubgraphBuilder, Support,
};
use nnhal_ops::ValidModel;
use nnhal_reference::ReferenceEngine;
use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::{NamedTempFile, tempfile};

const TOKEN: [u8; 32] = [4; 32];
const KEY: [u8; 32] = [8; 32];

/// A device of its own each time, as after a restart.
fn device() -> impl Device {
    DriverDevice::new(ReferenceEngine::new()).with_cache_key(&CacheKey::new(KEY))
}

fn handle(file: &File) -> Vec<OwnedFd> {
    vec![file.try_clone().unwrap().into()]
}

fn saving_to(file: &File) -> PrepareOptions {
    PrepareOptions { model_cache: handle(file), token: TOKEN, ..PrepareOptions::default() }
}

fn load(device: &impl Device, file: &File) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
    device.prepare_model_from_cache(saving_to(file))
}

fn refusal(loaded: nnhal_hal::Result<Arc<dyn PreparedModel>>) -> Error {
    loaded.err().expect("a refusal")
}

/// x + constant, rectified; the number of rows is open; the constant is in a pool.
fn model() -> Model {
    let spec = || OperandSpec::tensor_float32([0, 2]);
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", spec());
    let constant = graph.constant(OperandSpec::tensor_float32([2]), &[1.5_f32, -2.0]);
    let none = graph.scalar_i32(0);
    let sum = graph.operation(OperationType::Add, [x, constant, none], spec());
    let y = graph.operation(OperationType::Relu, [sum], spec());
    graph.output(y);
    let mut model = graph.into_model().unwrap();
    let operand = &mut model.main.operands[constant.index() as usize];
    let (start, end) = (operand.location.offset as usize, operand.location.end());
    let bytes = &model.operand_values[start..usize::try_from(end).unwrap()];
    model.pools = vec![Memory::from_bytes(bytes).unwrap()];
    operand.lifetime = OperandLifeTime::ConstantReference;
    operand.location.offset = 0;
    model
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn request(rows: u32) -> Request {
    let values: Vec<f32> = (0..u16::try_from(rows).unwrap() * 2).map(f32::from).collect();
    let mut request = RequestBuilder::new();
    request.input_shaped(&floats(&values), &[rows, 2]).output_shaped(values.len() * 4, &[rows, 2]);
    request.build().unwrap()
}

/// The output by each of the paths.
fn run(prepared: &dyn PreparedModel, rows: u32) -> [Vec<u8>; 3] {
    let options = ExecutionOptions::default();
    let output = |request| RequestBuilder::read_output(request, 0).unwrap();
    let plain = request(rows);
    prepared.execute(&plain, &options).unwrap();
    let fenced = request(rows);
    let execution = prepared.execute_fenced(&fenced, &[], &options, None).unwrap();
    if let Some(fence) = execution.sync_fence {
        assert_eq!(fence.wait(None).unwrap(), FenceState::Signalled);
    }
    execution.info.get().unwrap();
    let burst = request(rows);
    prepared.configure_burst().unwrap().execute(&burst, false).unwrap();
    [output(&plain), output(&fenced), output(&burst)]
}

#[test]
fn cache_15_a_loaded_model_computes_what_the_saved_one_does_by_every_path() {
    let file = tempfile().unwrap();
    let saved = device().prepare_model(&model(), HalVersion::V1_3, saving_to(&file)).unwrap();
    let loaded = load(&device(), &file).unwrap();
    let expected = floats(&[1.5, 0.0, 3.5, 1.0, 5.5, 3.0]);
    assert_eq!(run(&*saved, 3), [expected.clone(), expected.clone(), expected.clone()]);
    assert_eq!(run(&*loaded, 3), [expected.clone(), expected.clone(), expected]);
    assert_eq!(run(&*loaded, 1), run(&*saved, 1));
}

#[test]
fn cache_15_a_loaded_model_checks_requests_as_the_saved_one_does() {
    for version in [HalVersion::V1_2, HalVersion::V1_3] {
        let file = tempfile().unwrap();
        let saved = device().prepare_model(&model(), version, saving_to(&file)).unwrap();
        let loaded = load(&device(), &file).unwrap();
        let versions =
            [&saved, &loaded].map(|it| Prepared::of(&**it).unwrap().interface().version());
        assert_eq!(versions, [version, version]);
        let mut short = RequestBuilder::new();
        short.input_shaped(&[0; 16], &[2, 2]).output(8);
        let mut contradicting = RequestBuilder::new();
        contradicting.input_shaped(&[0; 16], &[1, 4]).output(16);
        let mut unknown = RequestBuilder::new();
        unknown.input(&[0; 16]).output(16);
        for mut request in [short, contradicting, unknown] {
            let request = request.build().unwrap();
            let [of_saved, of_loaded] = [&saved, &loaded].map(|prepared| {
                let error = prepared.execute(&request, &ExecutionOptions::default()).unwrap_err();
                (error.error.status(), error.output_shapes)
            });
            assert_eq!(of_saved, of_loaded);
        }
    }
}

#[test]
fn prep_7_wrong_cache_arguments_change_nothing() {
    let named = NamedTempFile::new().unwrap();
    let read_only = || -> OwnedFd { File::open(named.path()).unwrap().into() };
    let write_only =
        || -> OwnedFd { OpenOptions::new().write(true).open(named.path()).unwrap().into() };
    let good = || -> OwnedFd { tempfile().unwrap().into() };
    let pipe = || -> OwnedFd { std::io::pipe().unwrap().0.into() };
    let cases: Vec<(Vec<OwnedFd>, Vec<OwnedFd>)> = vec![
        (vec![good(), good()], vec![]),
        (vec![good()], vec![good()]),
        (vec![], vec![good()]),
        (vec![read_only()], vec![]),
        (vec![write_only()], vec![]),
        (vec![pipe()], vec![]),
    ];
    for (model_cache, data_cache) in cases {
        let options =
            PrepareOptions { model_cache, data_cache, token: TOKEN, ..PrepareOptions::default() };
        let prepared = device().prepare_model(&model(), HalVersion::V1_3, options).unwrap();
        assert_eq!(run(&*prepared, 1)[0], floats(&[1.5, 0.0]));
    }
    assert_eq!(named.as_file().metadata().unwrap().len(), 0);
}

#[test]
fn cache_6_without_a_cache_nothing_is_saved_and_loading_is_a_failure() {
    let without = DriverDevice::new(ReferenceEngine::new()).without_cache();
    assert_eq!(without.cache_files_needed(), CacheFilesNeeded { model: 0, data: 0 });
    let file = tempfile().unwrap();
    without.prepare_model(&model(), HalVersion::V1_3, saving_to(&file)).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 0);
    assert_eq!(refusal(load(&without, &file)).status(), ErrorStatus::GeneralFailure);
    assert_eq!(device().cache_files_needed(), CacheFilesNeeded { model: 1, data: 0 });
}

#[test]
fn cache_5_to_11_what_is_refused_is_a_failure_that_says_why() {
    let named = NamedTempFile::new().unwrap();
    device().prepare_model(&model(), HalVersion::V1_3, saving_to(named.as_file())).unwrap();
    let device = device();
    let expect = |loaded, what: fn(&CacheError) -> bool| {
        let error = refusal(loaded);
        assert_eq!(error.status(), ErrorStatus::GeneralFailure);
        assert!(error.reason().is_some_and(what), "{error}");
    };
    let from = |model, data, token: &[u8; 32]| {
        let (model_cache, data_cache, token) = (model, data, *token);
        let options =
            PrepareOptions { model_cache, data_cache, token, ..PrepareOptions::default() };
        // A check beforehand says the same.
        let checked = device.check_cache(&options).unwrap_err().to_string();
        let loaded = device.prepare_model_from_cache(options);
        assert_eq!(loaded.as_ref().err().unwrap().to_string(), checked);
        loaded
    };
    let file = named.as_file();
    expect(from(vec![], vec![], &TOKEN), |it| matches!(it, CacheError::Count { .. }));
    expect(from(handle(file), handle(file), &TOKEN), |it| matches!(it, CacheError::Count { .. }));
    let read_only = File::open(named.path()).unwrap();
    expect(load(&device, &read_only), |it| matches!(it, CacheError::Access { .. }));
    let write_only = OpenOptions::new().write(true).open(named.path()).unwrap();
    expect(load(&device, &write_only), |it| matches!(it, CacheError::Access { .. }));
    expect(from(handle(file), vec![], &[5; 32]), |it| matches!(it, CacheError::Token));
    let other = DriverDevice::new(ReferenceEngine::new()).with_cache_key(&CacheKey::new([9; 32]));
    expect(load(&other, file), |it| matches!(it, CacheError::Altered));
    assert!(load(&device, file).is_ok());
    file.write_all_at(&[0xFF], 70).unwrap();
    expect(load(&device, file), |it| matches!(it, CacheError::Altered));
}

#[test]
fn cache_5_a_deadline_that_has_passed_is_missed_but_after_the_file_was_checked() {
    let file = tempfile().unwrap();
    device().prepare_model(&model(), HalVersion::V1_3, saving_to(&file)).unwrap();
    let passed = Some(Deadline::from_nanoseconds_since_epoch(0));
    let late = || PrepareOptions { deadline: passed, ..saving_to(&file) };
    let load = || refusal(device().prepare_model_from_cache(late()));
    assert_eq!(load().status(), ErrorStatus::MissedDeadlinePersistent);
    assert!(device().check_cache(&late()).is_ok());
    file.write_all_at(&[0xFF], 70).unwrap();
    assert_eq!(load().status(), ErrorStatus::GeneralFailure);
    assert_eq!(device().check_cache(&late()).unwrap_err().status(), ErrorStatus::GeneralFailure);
}

/// Stores programs in a form of its own: the byte that its outputs are filled with.
struct Filler {
    compiled: Arc<AtomicUsize>,
    byte: u8,
}

struct Filled(u8);

impl Engine for Filler {
    type Program = Filled;

    fn name(&self) -> &str {
        "test-filler"
    }

    fn version_string(&self) -> String {
        "1".to_owned()
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Other
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::uniform(PerformanceInfo::AS_CPU)
    }

    fn supports(&self, _: &ValidModel, _: OperationPlace) -> Support {
        Support::Yes
    }

    fn compile(
        &self,
        _: &ValidModel,
        _: &CompileOptions,
        _: &Budget,
    ) -> Result<Filled, EngineError> {
        self.compiled.fetch_add(1, Ordering::Relaxed);
        Ok(Filled(self.byte))
    }

    fn restore(
        &self,
        saved: Bytes,
        options: &CompileOptions,
        _: &Budget,
    ) -> Result<Filled, EngineError> {
        assert_eq!(options.priority, Priority::High, "as it was saved");
        match saved[..] {
            [0] => Err(Error::failure("a program of nothing").into()),
            [1] => panic!("a defect of the engine"),
            [byte] => Ok(Filled(byte)),
            _ => panic!("{saved:?} was not saved here"),
        }
    }
}

impl Program for Filled {
    fn run(&self, bindings: &Bindings, _: &RunContext<'_>) -> Result<(), EngineError> {
        let dimensions = bindings.inputs()[0].shape().to_known().unwrap_or_default();
        let count: u32 = dimensions.iter().product();
        Ok(bindings.outputs()[0].deliver(&dimensions, &vec![self.0; count as usize * 4])?)
    }

    fn save(&self) -> Option<Vec<u8>> {
        Some(vec![self.0])
    }
}

#[test]
fn cache_15_and_18_an_engines_own_form_is_restored_without_compiling() {
    let compiled = Arc::new(AtomicUsize::new(0));
    let filler = |byte| {
        let engine = Filler { compiled: Arc::clone(&compiled), byte };
        DriverDevice::new(engine).with_cache_key(&CacheKey::new(KEY))
    };
    let prepare = |byte, file: &File| {
        let options = PrepareOptions { priority: Priority::High, ..saving_to(file) };
        filler(byte).prepare_model(&model(), HalVersion::V1_3, options).unwrap()
    };
    let file = tempfile().unwrap();
    let saved = prepare(7, &file);
    // Another byte: what is loaded is what was saved.
    let loaded = load(&filler(9), &file).unwrap();
    assert_eq!(compiled.load(Ordering::Relaxed), 1);
    assert_eq!(run(&*loaded, 2), run(&*saved, 2));
    assert_eq!(run(&*loaded, 2)[0], [7; 16]);
    // What the engine makes no program of, or panics at, is a failure.
    for byte in [0, 1] {
        prepare(byte, &file);
        assert_eq!(refusal(load(&filler(9), &file)).status(), ErrorStatus::GeneralFailure);
    }
    // Nor does it load on another device.
    let error = refusal(load(&device(), &file));
    assert!(matches!(error.reason(), Some(CacheError::Saver { .. })), "{error}");
}
