//! Compilation caching, the files alone (contract: section 6, SEC-5).

use nnhal_driver::CompileOptions;
use nnhal_driver::cache::{
    CacheError, CacheFiles, CacheKey, Content, FileKind, Identity, ModelCache, Stored,
};
use nnhal_hal::memory::Protection;
use nnhal_hal::{
    CacheFilesNeeded, ChannelQuant, DataLocation, ErrorStatus, ExecutionPreference, ExtensionType,
    ExtraParams, HalVersion, Memory, Model, ModelBuilder, Operand, OperandLifeTime, OperandSpec,
    OperandType, OperationType, Priority, SubgraphBuilder,
};
use nnhal_ops::ValidModel;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;
use tempfile::{NamedTempFile, tempfile};

const TOKEN: [u8; 32] = [0xA5; 32];
const OPTIONS: CompileOptions = CompileOptions {
    preference: ExecutionPreference::SustainedSpeed,
    priority: Priority::Low,
    hints: nnhal_hal::Hints::NONE,
};

fn cache() -> ModelCache {
    ModelCache::new(&CacheKey::new([3; 32]), Identity::here("example-device", "7"))
}

/// ADD of a constant, all of whose bytes are `filled`.
fn model(filled: u8, length: u32) -> ValidModel {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([length]));
    let values = vec![f32::from_le_bytes([filled; 4]); length as usize];
    let constant = graph.constant(OperandSpec::tensor_float32([length]), &values);
    let none = graph.scalar_i32(0);
    let sum = graph.operation(
        OperationType::Add,
        [x, constant, none],
        OperandSpec::tensor_float32([length]),
    );
    graph.output(sum);
    nnhal_ops::validate(&graph.into_model().unwrap(), HalVersion::V1_3).unwrap()
}

fn files<'a>(model: &'a [OwnedFd], token: &'a [u8; 32]) -> CacheFiles<'a> {
    CacheFiles { model, data: &[], token }
}

fn save(file: &File, model: &ValidModel) -> Result<(), CacheError> {
    let model_files = [file.try_clone().unwrap().into()];
    cache().save(files(&model_files, &TOKEN), model, &OPTIONS, None)
}

fn load(file: &File) -> Result<ValidModel, CacheError> {
    let model_files = [file.try_clone().unwrap().into()];
    match cache().load(files(&model_files, &TOKEN), &[])?.content {
        Content::Model(model) => Ok(model),
        Content::Program(_) => panic!("a model was saved"),
    }
}

fn bytes(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn overwrite(file: &File, bytes: &[u8]) {
    file.set_len(0).unwrap();
    file.write_all_at(bytes, 0).unwrap();
}

/// The same operations on the same values, wherever constants are.
fn assert_same(found: &ValidModel, expected: &ValidModel) {
    assert_eq!(found.version(), expected.version());
    let strip = |operand: &Operand| {
        let mut operand = operand.clone();
        if operand.lifetime == OperandLifeTime::ConstantReference {
            operand.lifetime = OperandLifeTime::ConstantCopy;
        }
        if operand.lifetime == OperandLifeTime::ConstantCopy {
            operand.location.pool_index = 0;
            operand.location.offset = 0;
        }
        operand
    };
    assert_eq!(found.model().subgraph_count(), expected.model().subgraph_count());
    for ((name, of_found), (_, of_expected)) in
        found.model().subgraphs().zip(expected.model().subgraphs())
    {
        assert_eq!(of_found.operations, of_expected.operations);
        assert_eq!(of_found.inputs, of_expected.inputs);
        assert_eq!(of_found.outputs, of_expected.outputs);
        let stripped = |operands: &[Operand]| operands.iter().map(strip).collect::<Vec<_>>();
        assert_eq!(stripped(&of_found.operands), stripped(&of_expected.operands));
        for index in 0..u32::try_from(of_expected.operands.len()).unwrap() {
            let value = |model: &ValidModel| {
                model.constant(name, index).map(|constant| constant.read().unwrap().into_owned())
            };
            assert_eq!(value(found), value(expected), "{name} operand {index}");
        }
    }
    let (found, expected) = (found.model(), expected.model());
    assert_eq!(found.extension_name_to_prefix, expected.extension_name_to_prefix);
    assert_eq!(
        found.relax_computation_float32_to_float16,
        expected.relax_computation_float32_to_float16
    );
}

#[test]
fn cache_15_what_is_loaded_is_what_was_saved() {
    let file = tempfile().unwrap();
    let model = model(9, 3);
    save(&file, &model).unwrap();
    let model_files = [file.into()];
    let stored = cache().load(files(&model_files, &TOKEN), &[]).unwrap();
    assert_eq!(stored.options, OPTIONS);
    assert_eq!(stored.interface.version(), HalVersion::V1_3);
    assert_eq!(stored.interface.inputs(), [model.main().operands[0].clone()]);
    assert_eq!(stored.interface.outputs().len(), 1);
    let Content::Model(loaded) = stored.content else { panic!("a model was saved") };
    assert_same(&loaded, &model);
}

#[test]
fn cache_15_a_program_is_kept_as_the_engine_gave_it() {
    let model_files = [tempfile().unwrap().into()];
    let model = model(9, 3);
    for program in [&[][..], &[1, 2, 3], &[0xFF; 70_000]] {
        cache().save(files(&model_files, &TOKEN), &model, &OPTIONS, Some(program)).unwrap();
        let stored = cache().load(files(&model_files, &TOKEN), &[]).unwrap();
        let main = model.main();
        assert_eq!(stored.interface.inputs(), [main.operands[main.inputs[0] as usize].clone()]);
        assert_eq!(stored.interface.outputs(), [main.operands[main.outputs[0] as usize].clone()]);
        assert_eq!(stored.options, OPTIONS);
        let Content::Program(loaded) = stored.content else { panic!("a program was saved") };
        assert_eq!(loaded, program);
    }
}

/// Constants of every origin: in the model, in two pools, overlapping, the same bytes twice, long
/// and short integers; quantization by channel; relaxed.
fn many_constants() -> Model {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([0, 4]));
    let none = graph.scalar_i32(0);
    let mut value = x;
    for _ in 0..6 {
        let constant = graph.constant(OperandSpec::tensor_float32([4]), &[0.5_f32; 4]);
        value = graph.operation(
            OperationType::Add,
            [value, constant, none],
            OperandSpec::tensor_float32([0, 4]),
        );
    }
    graph.output(value);
    let mut model = graph.into_model().unwrap();
    model.relax_computation_float32_to_float16 = true;
    let numbers: Vec<u8> = (0..=255).collect();
    model.pools = vec![
        Memory::from_bytes(&numbers).unwrap(),
        Memory::from_bytes(&numbers.iter().map(|it| it ^ 0xFF).collect::<Vec<_>>()).unwrap(),
    ];
    // Everything that is not touched below stays where the builder put it.
    let places = [(0, 8), (0, 16), (0, 8), (1, 100), (1, 240)];
    let constants = model.main.operands.iter_mut().filter(|operand| {
        operand.lifetime == OperandLifeTime::ConstantCopy && !operand.dimensions.is_empty()
    });
    for (operand, (pool_index, offset)) in constants.zip(places) {
        operand.lifetime = OperandLifeTime::ConstantReference;
        operand.location = DataLocation { pool_index, offset, length: 16 };
    }
    model
}

#[test]
fn cache_15_constants_of_every_origin_come_along_each_byte_once() {
    let file = tempfile().unwrap();
    let model = nnhal_ops::validate(&many_constants(), HalVersion::V1_3).unwrap();
    save(&file, &model).unwrap();
    let loaded = load(&file).unwrap();
    assert_same(&loaded, &model);
    // One in the model with the scalar, bytes 8 to 32 of the first pool, 2 times 16 of the second.
    assert_eq!(loaded.model().operand_values.len(), 16 + 4 + 24 + 32);
    assert!(loaded.model().pools.is_empty());
}

#[test]
fn sec_3_a_thousand_operands_of_the_same_bytes_are_saved_once() {
    let length = 1 << 18;
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([length]));
    let none = graph.scalar_i32(0);
    let ones = vec![1.0_f32; length as usize];
    let big = graph.constant(OperandSpec::tensor_float32([length]), &ones);
    let mut value =
        graph.operation(OperationType::Add, [x, big, none], OperandSpec::tensor_float32([length]));
    for _ in 0..999 {
        let small = graph.constant(OperandSpec::tensor_float32([1]), &[1.0_f32]);
        value = graph.operation(
            OperationType::Add,
            [value, small, none],
            OperandSpec::tensor_float32([length]),
        );
    }
    graph.output(value);
    let mut model = graph.into_model().unwrap();
    let location = |operand: &Operand| operand.location;
    let big = model.main.operands.iter().map(location).max_by_key(|it| it.length).unwrap();
    for operand in &mut model.main.operands {
        if operand.dimensions == [1] {
            operand.dimensions = vec![length];
            operand.location = big;
        }
    }
    let file = tempfile().unwrap();
    save(&file, &nnhal_ops::validate(&model, HalVersion::V1_3).unwrap()).unwrap();
    assert!(file.metadata().unwrap().len() < u64::from(length) * 4 + 100_000);
}

/// IF between a RELU and an extension's operation, on a constant of an extension's type.
fn branches() -> Model {
    let mut builder = ModelBuilder::new();
    builder.extension("com.example.squares", 9);
    let square = ExtensionType::new(9, 4).unwrap();
    let branch = |operation_type| {
        let mut graph = SubgraphBuilder::new();
        let x = graph.input("x", OperandSpec::tensor_float32([2]));
        let y = graph.operation(operation_type, [x], OperandSpec::tensor_float32([2]));
        graph.output(y);
        graph
    };
    let then = builder.reference(branch(OperationType::Relu));
    let otherwise = builder.reference(branch(OperationType::Extension(square)));
    let mut main = SubgraphBuilder::new();
    let condition = main.input("condition", OperandSpec::tensor_bool8([1]));
    let x = main.input("x", OperandSpec::tensor_float32([2]));
    let (then, otherwise) = (main.subgraph(then), main.subgraph(otherwise));
    let y = main.operation(
        OperationType::If,
        [condition, then, otherwise, x],
        OperandSpec::tensor_float32([2]),
    );
    main.output(y);
    main.constant_bytes(OperandSpec::new(OperandType::Extension(square), [1]), &[1, 2, 3]);
    builder.build(main).unwrap()
}

#[test]
fn cache_15_subgraphs_and_extensions_come_along() {
    let model = nnhal_ops::validate(&branches(), HalVersion::V1_3).unwrap();
    assert_eq!(model.model().subgraph_count(), 3);
    let file = tempfile().unwrap();
    save(&file, &model).unwrap();
    assert_same(&load(&file).unwrap(), &model);
}

#[test]
fn cache_15_quantization_by_channel_comes_along() {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([0; 4]));
    let y = graph.operation(OperationType::Relu, [x], OperandSpec::tensor_float32([0; 4]));
    graph.output(y);
    let mut model = graph.into_model().unwrap();
    // A constant that no one reads may be of any type.
    let mut operand = model.main.operands[0].clone();
    operand.operand_type = OperandType::TensorQuant8SymmPerChannel;
    operand.lifetime = OperandLifeTime::ConstantCopy;
    operand.location.length = 6;
    operand.number_of_consumers = 0;
    operand.dimensions = vec![3, 2];
    operand.extra_params = ExtraParams::ChannelQuant(ChannelQuant {
        scales: [0.1_f32, f32::MIN_POSITIVE / 2.0, f32::MAX].into(),
        channel_dim: 0,
    });
    model.main.operands.push(operand);
    model.operand_values = [1, 2, 3, 4, 5, 6].into();
    let model = nnhal_ops::validate(&model, HalVersion::V1_3).unwrap();
    let file = tempfile().unwrap();
    save(&file, &model).unwrap();
    assert_same(&load(&file).unwrap(), &model);
}

/// contract: CACHE-1, SEC-5
#[test]
fn cache_9_any_changed_bit_is_refused() {
    let file = tempfile().unwrap();
    save(&file, &model(1, 2)).unwrap();
    let good = bytes(&file);
    for index in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[index] ^= 1 << bit;
            overwrite(&file, &bad);
            assert!(load(&file).is_err(), "byte {index}, bit {bit}");
        }
    }
    overwrite(&file, &good);
    assert!(load(&file).is_ok());
}

#[test]
fn cache_9_any_appended_byte_is_refused() {
    let file = tempfile().unwrap();
    save(&file, &model(1, 2)).unwrap();
    let good = bytes(&file);
    for byte in 0..=255 {
        overwrite(&file, &[&*good, &[byte]].concat());
        let error = load(&file).unwrap_err();
        let (expected, found) = (good.len() as u64, good.len() as u64 + 1);
        assert!(
            matches!(error, CacheError::Length { found: f, expected: e } if (f, e) == (found, expected)),
            "{error}"
        );
    }
    // Twice the same, with the code at the end again.
    overwrite(&file, &[&*good, &*good].concat());
    assert!(load(&file).is_err());
}

#[test]
fn cache_14_what_was_written_half_is_refused() {
    let file = tempfile().unwrap();
    save(&file, &model(1, 2)).unwrap();
    let good = bytes(&file);
    for length in 0..good.len() {
        // The rest is missing, or is there but empty.
        overwrite(&file, &good[..length]);
        assert!(load(&file).is_err(), "the first {length} bytes");
        file.set_len(good.len() as u64).unwrap();
        let complete = bytes(&file) == good;
        assert_eq!(load(&file).is_ok(), complete, "the first {length} bytes, then zeros");
    }
}

#[test]
fn cache_9_what_is_refused_says_why() {
    let file = tempfile().unwrap();
    assert!(matches!(load(&file), Err(CacheError::TooShort { found: 0, expected: 160 })));
    save(&file, &model(1, 2)).unwrap();
    let good = bytes(&file);
    let changed = |index: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[index] = value;
        overwrite(&file, &bytes);
        load(&file).unwrap_err()
    };
    assert!(matches!(changed(0, b'x'), CacheError::NotACache { found: [b'x', ..] }));
    assert!(matches!(changed(8, 1), CacheError::Format { found: 1, expected: 6 }));
    assert!(matches!(changed(16, 0xFF), CacheError::Length { .. }));
    for index in [32, 64, 96, 128, good.len() - 33, good.len() - 1] {
        assert!(matches!(changed(index, good[index] ^ 1), CacheError::Altered), "{index}");
    }
    let error: nnhal_hal::Error = changed(64, good[64] ^ 1).into();
    assert_eq!(error.status(), ErrorStatus::GeneralFailure);
    assert!(matches!(error.reason(), Some(CacheError::Altered)));
}

#[test]
fn cache_17_of_two_models_under_one_token_the_file_has_the_last() {
    let file = tempfile().unwrap();
    let (first, second) = (model(1, 4), model(2, 8));
    save(&file, &first).unwrap();
    save(&file, &second).unwrap();
    assert_same(&load(&file).unwrap(), &second);
}

#[test]
fn cache_10_a_token_that_differs_in_a_bit_is_refused() {
    let file = tempfile().unwrap();
    save(&file, &model(1, 2)).unwrap();
    let model_files = [file.into()];
    for bit in 0..256 {
        let mut token = TOKEN;
        token[bit / 8] ^= 1 << (bit % 8);
        let error = cache().load(files(&model_files, &token), &[]).unwrap_err();
        assert!(matches!(error, CacheError::Token), "{error}");
    }
}

#[test]
fn cache_11_a_file_saved_under_another_token_is_refused_even_relabelled() {
    let model_files = [tempfile().unwrap().into()];
    let other = [1; 32];
    cache().save(files(&model_files, &other), &model(1, 2), &OPTIONS, None).unwrap();
    assert!(cache().load(files(&model_files, &other), &[]).is_ok());
    assert!(matches!(cache().load(files(&model_files, &TOKEN), &[]), Err(CacheError::Token)));
    let file = File::from(model_files.into_iter().next().unwrap());
    file.write_all_at(&TOKEN, 32).unwrap();
    assert!(matches!(load(&file), Err(CacheError::Altered)));
}

#[test]
fn cache_16_a_file_written_with_another_key_is_refused() {
    let model_files = [tempfile().unwrap().into()];
    for bit in 0..256 {
        let mut key = [3; 32];
        key[bit / 8] ^= 1 << (bit % 8);
        let forger = ModelCache::new(&CacheKey::new(key), cache().identity().clone());
        forger.save(files(&model_files, &TOKEN), &model(1, 2), &OPTIONS, None).unwrap();
        let error = cache().load(files(&model_files, &TOKEN), &[]).unwrap_err();
        assert!(matches!(error, CacheError::Altered), "{error}");
    }
}

#[test]
fn cache_18_another_version_of_the_driver_misses() {
    let model_files = [tempfile().unwrap().into()];
    let key = CacheKey::new([3; 32]);
    let newer = ModelCache::new(&key, Identity::here("example-device", "8"));
    newer.save(files(&model_files, &TOKEN), &model(1, 2), &OPTIONS, None).unwrap();
    let error = cache().load(files(&model_files, &TOKEN), &[]).unwrap_err();
    let CacheError::Saver { found, expected } = error else { panic!("{error}") };
    assert_eq!((&*found.version, &*expected.version), ("8", "7"));
}

#[test]
fn cache_7_a_wrong_number_of_files_is_refused_and_nothing_is_written() {
    assert_eq!(ModelCache::FILES_NEEDED, CacheFilesNeeded { model: 1, data: 0 });
    let handles =
        |count: usize| -> Vec<OwnedFd> { (0..count).map(|_| tempfile().unwrap().into()).collect() };
    for (models, data) in [(0, 0), (2, 0), (1, 1), (0, 1), (33, 0)] {
        let (model_files, data_files) = (handles(models), handles(data));
        let files = CacheFiles { model: &model_files, data: &data_files, token: &TOKEN };
        let saved = cache().save(files, &model(1, 2), &OPTIONS, None).unwrap_err();
        let loaded = cache().load(files, &[]).unwrap_err();
        for error in [saved, loaded] {
            let CacheError::Count { kind, found, expected } = error else { panic!("{error}") };
            match kind {
                FileKind::Data => assert_eq!((found, expected), (data, 0)),
                FileKind::Model => assert_eq!((found, expected), (models, 1)),
            }
        }
        for file in model_files.into_iter().chain(data_files) {
            assert_eq!(File::from(file).metadata().unwrap().len(), 0);
        }
    }
}

fn opened(path: &Path, read: bool, write: bool) -> File {
    OpenOptions::new().read(read).write(write).open(path).unwrap()
}

#[test]
fn cache_8_and_14_read_only_and_write_only_files_are_refused_and_left_alone() {
    let named = NamedTempFile::new().unwrap();
    save(named.as_file(), &model(1, 2)).unwrap();
    let good = bytes(named.as_file());
    for (read, write) in [(true, false), (false, true)] {
        let file = opened(named.path(), read, write);
        // Older good content is still there, but does not load through this descriptor.
        for error in [save(&file, &model(2, 2)).unwrap_err(), load(&file).unwrap_err()] {
            let CacheError::Access { found } = error else { panic!("{error}") };
            assert_eq!(found, Protection { read, write });
        }
        assert_eq!(bytes(named.as_file()), good);
    }
    assert!(load(&opened(named.path(), true, true)).is_ok());
}

#[test]
fn cache_14_a_save_that_fails_midway_leaves_nothing_that_loads() {
    let file =
        File::from(memfd_create("cache", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap());
    save(&file, &model(1, 2)).unwrap();
    assert!(load(&file).is_ok());
    // From now on the file may become shorter but not longer.
    fcntl_add_seals(&file, SealFlags::GROW).unwrap();
    let error = save(&file, &model(2, 2)).unwrap_err();
    assert!(matches!(error, CacheError::System { call: "pwrite", .. }), "{error}");
    assert!(matches!(load(&file), Err(CacheError::TooShort { found: 0, .. })));
}

#[test]
fn cache_2_descriptors_may_stand_anywhere_and_stay_there() {
    let mut file = tempfile().unwrap();
    for position in [0, 1, 50, 1 << 20] {
        file.seek(SeekFrom::Start(position)).unwrap();
        save(&file, &model(1, 2)).unwrap();
        assert!(load(&file).is_ok());
        assert_eq!(file.stream_position().unwrap(), position);
    }
}

#[test]
fn cache_3_files_with_content_are_made_empty_first() {
    let file = tempfile().unwrap();
    save(&file, &model(1, 2)).unwrap();
    let expected = bytes(&file);
    overwrite(&file, &vec![0xEE; 1 << 16]);
    save(&file, &model(1, 2)).unwrap();
    assert_eq!(bytes(&file), expected);
}

#[test]
fn cache_7_what_is_no_file_is_refused() {
    let (read, _write) = std::io::pipe().unwrap();
    assert!(matches!(load(&File::from(OwnedFd::from(read))), Err(CacheError::Access { .. })));
    for path in ["/dev/null", "/dev/zero"] {
        let device = opened(Path::new(path), true, true);
        assert!(matches!(load(&device), Err(CacheError::NotAFile)));
        assert!(matches!(save(&device, &model(1, 2)), Err(CacheError::NotAFile)));
    }
}

#[test]
fn cache_13_rewriting_during_loading_gives_what_was_saved_or_nothing() {
    // Of the same length, and each with a priority that tells whose description it is.
    let saved = [(1, Priority::Low), (2, Priority::High)].map(|(filled, priority)| {
        let model_files = [tempfile().unwrap().into()];
        let (model, options) = (model(filled, 400_000), CompileOptions { priority, ..OPTIONS });
        cache().save(files(&model_files, &TOKEN), &model, &options, None).unwrap();
        let [file] = model_files;
        (bytes(&File::from(file)), priority, model.model().operand_values.clone())
    });
    assert_eq!(saved[0].0.len(), saved[1].0.len());
    let file = tempfile().unwrap();
    overwrite(&file, &saved[0].0);
    let model_files = [file.try_clone().unwrap().into()];
    let time = |_| {
        let begun = Instant::now();
        cache().load(files(&model_files, &TOKEN), &[]).unwrap();
        begun.elapsed()
    };
    let load_time = (0..5).map(time).min().unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // In place, so that the length stays right, and at any point of a load.
            for (round, (bytes, ..)) in (0..).zip(saved.iter().cycle()) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                file.write_all_at(bytes, 0).unwrap();
                thread::sleep(load_time.mul_f64(f64::from(round * 37 % 100) / 50.0));
            }
        });
        let (mut hits, mut misses) = (0, 0);
        for _ in 0..500 {
            match cache().load(files(&model_files, &TOKEN), &[]) {
                Ok(Stored { content: Content::Model(loaded), options, .. }) => {
                    let (_, _, values) = saved
                        .iter()
                        .find(|(_, priority, _)| *priority == options.priority)
                        .unwrap();
                    assert!(loaded.model().operand_values == *values, "a mixture was loaded");
                    hits += 1;
                }
                Ok(_) => panic!("a model was saved"),
                Err(error) => {
                    assert!(matches!(error, CacheError::Altered), "{error}");
                    misses += 1;
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        println!("{hits} hits, {misses} misses");
        assert!(hits > 0, "the writer left no time");
    });
}

#[test]
fn cache_13_saving_and_cutting_at_the_same_time_never_mixes() {
    let models = [model(1, 500), model(2, 900)];
    let file = tempfile().unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for model in &models {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    // Another one may be cutting what this one writes.
                    let _ = save(&file, model);
                }
            });
        }
        for _ in 0..3000 {
            if let Ok(loaded) = load(&file) {
                let shape = &loaded.main().operands[0].dimensions;
                let saved = models.iter().find(|it| it.main().operands[0].dimensions == *shape);
                assert_same(&loaded, saved.expect("one of the two"));
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}
