//! Compilations that outlive the process.

use crate::support::scripted::{Faults, Scripted, count};
use crate::support::{bytes, int32, operation, tensor};
use nnhal_driver::DriverDevice;
use nnhal_driver::cache::CacheKey;
use nnhal_hal::OperationType::{Add, Mul};
use nnhal_reference::ReferenceEngine;
use nnhal_runtime::{
    CacheFiles, Compilation, CompilationBuilder, Devices, Execution, ModelBuilder, OutputBuffer,
};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The reference device with a cache of its own, for sums only, and the reference device.
fn devices(key: &CacheKey) -> (Devices, Arc<Faults>) {
    let caching = DriverDevice::new(ReferenceEngine::new()).with_cache_key(key);
    let device =
        Scripted::new("test-adder", |_, operation| operation == Add).over(Arc::new(caching));
    let faults = device.faults();
    let plain = DriverDevice::new(ReferenceEngine::new()).without_cache();
    (Devices::new([Arc::new(device) as Arc<dyn nnhal_hal::Device>, Arc::new(plain)]), faults)
}

/// y = (x + x) * x, or only x + x.
fn compile(
    devices: &Devices,
    set: impl FnOnce(&mut CompilationBuilder),
    with_product: bool,
) -> Compilation {
    let mut builder = ModelBuilder::new(devices);
    let [x, double, product] = [(); 3].map(|()| tensor(&mut builder, &[2]));
    let none = int32(&mut builder, 0);
    operation(&mut builder, Add, &[x, x, none], &[double]).unwrap();
    operation(&mut builder, if with_product { Mul } else { Add }, &[double, x, none], &[product])
        .unwrap();
    builder.identify_inputs_and_outputs(&[x], &[product]).unwrap();
    let mut compilation = CompilationBuilder::new(&builder.finish().unwrap());
    set(&mut compilation);
    compilation.finish().unwrap()
}

fn compute(compilation: &Compilation) -> Vec<f32> {
    let execution = Execution::new(compilation);
    execution.set_input(0, None, Some(bytes(&[1.0, 3.0]))).unwrap();
    let output = OutputBuffer::new(8);
    execution.set_output(0, None, Some(Arc::new(output.clone()))).unwrap();
    execution.compute().unwrap();
    output.to_f32()
}

fn in_directory(directory: &Path, token: u8) -> impl FnOnce(&mut CompilationBuilder) {
    move |builder| builder.set_caching(directory, &[token; 32]).unwrap()
}

#[test]
fn what_was_prepared_is_loaded_the_next_time() {
    let directory = tempfile::tempdir().unwrap();
    let key = CacheKey::random().unwrap();
    for (round, loads) in [(0, 0), (1, 1)] {
        let (devices, faults) = devices(&key);
        let compilation = compile(&devices, in_directory(directory.path(), 7), true);
        assert_eq!(compilation.steps().len(), 2);
        assert_eq!(count(&faults.loads), loads, "round {round}");
        assert_eq!(count(&faults.preparations), 1 - loads, "round {round}");
        assert_eq!(compute(&compilation), [2.0, 18.0]);
    }
}

#[test]
fn another_token_or_priority_or_part_finds_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let key = CacheKey::random().unwrap();
    let (devices, faults) = devices(&key);
    compile(&devices, in_directory(directory.path(), 7), true);
    compile(&devices, in_directory(directory.path(), 8), true);
    let with_priority = |builder: &mut CompilationBuilder| {
        builder.set_priority(110).unwrap();
        builder.set_caching(directory.path(), &[7; 32]).unwrap();
    };
    compile(&devices, with_priority, true);
    compile(&devices, in_directory(directory.path(), 7), false);
    assert_eq!(count(&faults.loads), 0);
    assert_eq!(count(&faults.preparations), 4);
    compile(&devices, in_directory(directory.path(), 7), true);
    assert_eq!(count(&faults.loads), 1);
}

#[test]
fn other_attributes_of_extensions_find_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let key = CacheKey::random().unwrap();
    let (devices, faults) = devices(&key);
    let compile = |attributes: &[(&str, u16, u8)]| {
        let mut builder = ModelBuilder::new(&devices);
        let [x, double] = [(); 2].map(|()| tensor(&mut builder, &[2]));
        let none = int32(&mut builder, 0);
        operation(&mut builder, Add, &[x, x, none], &[double]).unwrap();
        builder.identify_inputs_and_outputs(&[x], &[double]).unwrap();
        let model = builder.finish().unwrap();
        let mut builder = CompilationBuilder::for_devices(&model, &devices.list()[..1]).unwrap();
        builder.set_caching(directory.path(), &[7; 32]).unwrap();
        for (extension, number, value) in attributes {
            builder.add_extension_attribute(extension, *number, &[*value]).unwrap();
        }
        builder.finish().unwrap();
        (count(&faults.loads), count(&faults.preparations))
    };
    let (a, b) = (("com.example.a", 1, 5), ("com.example.b", 1, 5));
    let different: [&[_]; 6] =
        [&[], &[a], &[b], &[a, b], &[("com.example.a", 1, 6)], &[("com.example.a", 2, 5)]];
    for (number, attributes) in (1..).zip(different) {
        assert_eq!(compile(attributes), (0, number), "{attributes:?}");
    }
    for (number, attributes) in (1..).zip(different) {
        assert_eq!(compile(attributes), (number, different.len()), "{attributes:?}");
    }
    // In whatever order they are given.
    assert_eq!(compile(&[b, a]), (different.len() + 1, different.len()));
}

#[test]
fn old_drafts_are_removed_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let key = CacheKey::random().unwrap();
    let (devices, _) = devices(&key);
    let token = "AP".repeat(32);
    let draft = |token: &str, number: &str| format!("{token}{number}.0123456789abcdef");
    let hours_ago = SystemTime::now() - Duration::from_secs(2 * 3600);
    let make = |name: &str, modified: SystemTime| {
        let file = std::fs::File::create(directory.path().join(name)).unwrap();
        file.set_modified(modified).unwrap();
    };
    let old = [draft(&token, "10"), draft(&token, "211")];
    let others = [
        draft(&"AQ".repeat(32), "10"),
        draft("AP", "10"),
        draft(&token, "1x"),
        format!("{token}10"),
        format!("{token}10.0123456789abcdefg"),
        "notes.txt".to_owned(),
    ];
    old.iter().chain(&others).for_each(|name| make(name, hours_ago));
    let young = draft(&token, "11");
    make(&young, SystemTime::now());
    compile(&devices, in_directory(directory.path(), 7), true);
    let is_there = |name: &String| directory.path().join(name).exists();
    assert!(!old.iter().any(is_there), "{:?}", names(directory.path()));
    assert!(others.iter().all(is_there) && is_there(&young), "{:?}", names(directory.path()));
}

#[test]
fn what_was_spoilt_is_prepared_anew() {
    let directory = tempfile::tempdir().unwrap();
    let key = CacheKey::random().unwrap();
    let (devices, faults) = devices(&key);
    compile(&devices, in_directory(directory.path(), 7), true);
    let mut files = 0;
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        std::fs::write(entry.unwrap().path(), b"spoilt").unwrap();
        files += 1;
    }
    assert!(files > 0);
    let compilation = compile(&devices, in_directory(directory.path(), 7), true);
    assert_eq!((count(&faults.loads), count(&faults.preparations)), (0, 2));
    assert_eq!(compute(&compilation), [2.0, 18.0]);
    compile(&devices, in_directory(directory.path(), 7), true);
    assert_eq!(count(&faults.loads), 1, "and saved anew");
}

/// The names in a folder.
fn names(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn sec_a_link_in_the_place_of_a_file_is_neither_followed_nor_cut_short() {
    let directory = tempfile::tempdir().unwrap();
    let precious = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(precious.path(), b"precious").unwrap();
    let key = CacheKey::random().unwrap();
    let (devices, faults) = devices(&key);
    compile(&devices, in_directory(directory.path(), 7), true);
    let files = names(directory.path());
    for file in &files {
        std::fs::remove_file(file).unwrap();
        std::os::unix::fs::symlink(precious.path(), file).unwrap();
    }
    compile(&devices, in_directory(directory.path(), 7), true);
    assert_eq!(count(&faults.loads), 0);
    assert_eq!(std::fs::read(precious.path()).unwrap(), b"precious");
    // The links gave way to files, which are the owner's alone, and nothing else is left.
    assert_eq!(names(directory.path()).len(), files.len());
    for file in &files {
        let file = file.symlink_metadata().unwrap();
        assert!(file.is_file() && file.len() > 0);
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
    }
    compile(&devices, in_directory(directory.path(), 7), true);
    assert_eq!(count(&faults.loads), 1);
}

#[test]
fn sec_a_pipe_in_the_place_of_a_file_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let key = CacheKey::random().unwrap();
    let (devices, faults) = devices(&key);
    compile(&devices, in_directory(directory.path(), 7), true);
    for file in names(directory.path()) {
        std::fs::remove_file(&file).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }
    let compilation = compile(&devices, in_directory(directory.path(), 7), true);
    assert_eq!((count(&faults.loads), count(&faults.preparations)), (0, 2));
    assert_eq!(compute(&compilation), [2.0, 18.0]);
}

#[test]
fn a_directory_that_is_not_there_is_no_error() {
    let key = CacheKey::random().unwrap();
    let (devices, faults) = devices(&key);
    let compilation = compile(&devices, in_directory(Path::new("/nowhere/at/all"), 7), true);
    assert_eq!(count(&faults.preparations), 1);
    assert_eq!(compute(&compilation), [2.0, 18.0]);
}

#[test]
fn open_files_serve_as_well() {
    let directory = tempfile::tempdir().unwrap();
    let key = CacheKey::random().unwrap();
    let path = directory.path().join("model");
    for loads in [0, 1] {
        let (devices, faults) = devices(&key);
        let needed = devices.list()[0].cache_files_needed();
        let open = |number: u32| {
            let path = path.with_extension(number.to_string());
            let mut options = std::fs::OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).open(path).unwrap().into()
        };
        let files = CacheFiles {
            model: (0..needed.model).map(open).collect(),
            data: (100..100 + needed.data).map(open).collect(),
        };
        let compilation = compile(
            &devices,
            |builder| builder.set_caching_from_files(files, &[7; 32]).unwrap(),
            false,
        );
        assert_eq!(compilation.steps().len(), 1);
        assert_eq!(count(&faults.loads), loads);
        assert_eq!(compute(&compilation), [3.0, 9.0]);
    }
}
