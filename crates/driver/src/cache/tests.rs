//! The key, and what only a holder of the key can write.

use super::*;
use nnhal_hal::{
    ExecutionPreference, HalVersion, OperandSpec, OperationType, Priority, SubgraphBuilder,
};
use std::collections::HashSet;
use std::env;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Barrier, Mutex};
use std::thread;
use tempfile::{TempDir, tempdir};

const TOKEN: [u8; 32] = [5; 32];
const OPTIONS: CompileOptions = CompileOptions {
    preference: ExecutionPreference::LowPower,
    priority: Priority::High,
    hints: nnhal_hal::Hints::NONE,
};

fn cache() -> ModelCache {
    let identity = Identity {
        driver: "a-b".to_owned(),
        version: "1".to_owned(),
        processor: "x86_64 avx".to_owned(),
    };
    ModelCache::new(&CacheKey::new([1; KEY_LENGTH]), identity)
}

fn model() -> ValidModel {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([2]));
    let y = graph.operation(OperationType::Relu, [x], OperandSpec::tensor_float32([2]));
    graph.output(y);
    nnhal_ops::validate(&graph.into_model().unwrap(), HalVersion::V1_3).unwrap()
}

/// Loads a file with a good code over anything.
fn load_sealed(content: &[u8], description: &[u8]) -> Result<Stored, CacheError> {
    let cache = cache();
    let file = tempfile::tempfile().unwrap();
    sealed::write(&file, &cache.keys, &TOKEN, content, description).unwrap();
    let model = [file.into()];
    cache.load(CacheFiles { model: &model, data: &[], token: &TOKEN }, &[])
}

fn describe(identity: &Identity) -> Vec<u8> {
    Description::of_program(&model(), &OPTIONS).unwrap().to_bytes(identity).unwrap()
}

#[test]
fn cache_18_another_driver_version_or_processor_is_a_miss() {
    let ours = cache().identity;
    assert!(load_sealed(b"", &describe(&ours)).is_ok());
    let others = [
        Identity { driver: "a-c".to_owned(), ..ours.clone() },
        Identity { version: "2".to_owned(), ..ours.clone() },
        Identity { processor: "x86_64".to_owned(), ..ours.clone() },
    ];
    for other in others {
        let error = load_sealed(b"", &describe(&other)).unwrap_err();
        let CacheError::Saver { found, expected } = error else { panic!("{error}") };
        assert_eq!((*found, &*expected), (other, &ours));
    }
}

#[test]
fn cache_18_codes_that_stand_for_nothing_are_a_miss() {
    let identity = cache().identity;
    let good = describe(&identity);
    let start = postcard::to_allocvec(&identity).unwrap().len();
    // Preference, priority and version come first, a byte each; 3 is 6 in zigzag.
    for (offset, code) in [(0, 6), (1, 6), (2, 6)] {
        let mut bytes = good.clone();
        bytes[start + offset] = code;
        let error = load_sealed(b"", &bytes).unwrap_err();
        let (expected, found) = match (offset, &error) {
            (0 | 1, CacheError::Code(unknown)) => (3, unknown.found),
            (_, CacheError::Version { found }) => (6, i64::from(*found)),
            _ => panic!("{error}"),
        };
        assert_eq!(found, expected);
    }
}

#[test]
fn cache_15_what_extensions_say_is_saved() {
    let hints = nnhal_hal::Hints {
        values: vec![nnhal_hal::TokenValuePair { token: 0x0001_0007, value: vec![4, 2] }],
        extension_name_to_prefix: vec![nnhal_hal::ExtensionNameAndPrefix {
            name: "com.example".into(),
            prefix: 1,
        }],
    };
    let options = CompileOptions { hints: hints.clone(), ..OPTIONS };
    let program = Description::of_program(&model(), &options).unwrap();
    let loaded = load_sealed(b"", &program.to_bytes(&cache().identity).unwrap()).unwrap();
    assert_eq!(loaded.options.hints, hints);
    let (of_model, constants) = Description::of_model(&model(), &options).unwrap();
    let loaded = load_sealed(&constants, &of_model.to_bytes(&cache().identity).unwrap()).unwrap();
    assert_eq!(loaded.options.hints, hints);
}

#[test]
fn a_description_is_whole_and_has_nothing_behind() {
    let good = describe(&cache().identity);
    for length in 0..good.len() {
        let error = load_sealed(b"", &good[..length]).unwrap_err();
        assert!(matches!(error, CacheError::Description(_)), "{length}: {error}");
    }
    let longer = [&*good, &[0]].concat();
    assert!(matches!(load_sealed(b"", &longer), Err(CacheError::Rest { found: 1 })));
}

#[test]
fn a_model_is_validated_again() {
    let (description, content) = Description::of_model(&model(), &OPTIONS).unwrap();
    assert!(content.is_empty());
    let mut bytes = description.to_bytes(&cache().identity).unwrap();
    // The outputs of the main subgraph are the last list but one: [1], made [9]. Behind it come no
    // referenced subgraphs and no relaxation.
    let at = bytes.len() - 3;
    assert_eq!(bytes[at - 1..], [1, 1, 0, 0]);
    bytes[at] = 9;
    assert!(matches!(load_sealed(b"", &bytes), Err(CacheError::Model(_))));
}

#[test]
fn cache_9_lengths_that_do_not_add_up_are_refused_before_anything_is_read() {
    let cache = cache();
    let file = tempfile::tempfile().unwrap();
    let load = |file: &File| {
        let model = [file.try_clone().unwrap().into()];
        cache.load(CacheFiles { model: &model, data: &[], token: &TOKEN }, &[]).unwrap_err()
    };
    // A file with holes costs nothing to make.
    file.set_len(1 << 40).unwrap();
    assert!(matches!(load(&file), CacheError::TooLong { found, .. } if found == 1 << 40));
    sealed::write(&file, &cache.keys, &TOKEN, &[1; 9], &describe(&cache.identity)).unwrap();
    let length = file.metadata().unwrap().len();
    file.write_all_at(&u64::MAX.to_le_bytes(), 16).unwrap();
    let error = load(&file);
    assert!(matches!(error, CacheError::Length { found, .. } if found == length), "{error}");
    file.set_len(159).unwrap();
    assert!(matches!(load(&file), CacheError::TooShort { found: 159, expected: 160 }));
}

#[test]
fn cache_13_every_byte_is_read_once() {
    let (cache, file) = (cache(), tempfile::tempfile().unwrap());
    // Many chunks, so that threads read side by side, and the last one not a whole one.
    let content: Vec<u8> = (0..=250).cycle().take(20 * code::CHUNK + 9).collect();
    let description = describe(&cache.identity);
    sealed::write(&file, &cache.keys, &TOKEN, &content, &description).unwrap();
    let length = file.metadata().unwrap().len();
    let reads = Mutex::new(Vec::new());
    let read_at = |bytes: &mut [u8], position| {
        reads.lock().unwrap().push((position, bytes.len() as u64));
        file.read_exact_at(bytes, position)
    };
    let read = sealed::read_parts(length, read_at, &cache.keys, &TOKEN).unwrap();
    assert_eq!(read, (content.into(), description.into()));
    let mut reads = reads.into_inner().unwrap();
    reads.sort_unstable();
    let end = reads.into_iter().fold(0, |end, (position, length)| {
        assert_eq!(position, end);
        end + length
    });
    assert_eq!(end, length);
}

#[test]
fn of_a_strangers_file_little_is_read() {
    let (cache, file) = (cache(), tempfile::tempfile().unwrap());
    let strangers = CodeKeys::new(&CacheKey::new([9; KEY_LENGTH]));
    sealed::write(&file, &strangers, &TOKEN, &[1; 10_000], &describe(&cache.identity)).unwrap();
    let length = file.metadata().unwrap().len();
    let count = AtomicUsize::new(0);
    let read_at = |bytes: &mut [u8], position| {
        count.fetch_add(bytes.len(), Relaxed);
        file.read_exact_at(bytes, position)
    };
    let read = sealed::read_parts(length, read_at, &cache.keys, &TOKEN);
    assert!(matches!(read, Err(CacheError::Altered)));
    assert_eq!(count.into_inner(), 128, "the header and its code");
}

#[test]
fn what_a_caller_knows_is_not_authenticated_again() {
    let (cache, file) = (cache(), tempfile::tempfile().unwrap());
    let content: Vec<u8> = (0..=250).cycle().take(9 * code::CHUNK + 9).collect();
    let description = describe(&cache.identity);
    sealed::write(&file, &cache.keys, &TOKEN, &content, &description).unwrap();
    let read = |trust| sealed::read(&file, &cache.keys, &TOKEN, trust);
    let all = [CacheTrust::None, CacheTrust::WhileLoading, CacheTrust::WhileInUse];
    for trust in all {
        let expected = (content.clone().into(), description.clone().into());
        assert_eq!(read(trust).unwrap(), expected, "{trust:?}");
    }
    // A chunk: who says that it is known is believed.
    file.write_all_at(&[251], 128 + 5_000_000).unwrap();
    assert!(matches!(read(CacheTrust::None), Err(CacheError::Altered)));
    for trust in [CacheTrust::WhileLoading, CacheTrust::WhileInUse] {
        assert_eq!(read(trust).unwrap().0[5_000_000], 251);
    }
    // Copied, or where it is.
    let [copy, pages] =
        [CacheTrust::WhileLoading, CacheTrust::WhileInUse].map(|it| read(it).unwrap().0);
    file.write_all_at(&content[5_000_000..][..1], 128 + 5_000_000).unwrap();
    assert_eq!((copy[5_000_000], pages[5_000_000]), (251, content[5_000_000]));
    assert_eq!(pages.as_ptr().align_offset(64), 0);
    // All else is authenticated, whoever says what.
    let length = file.metadata().unwrap().len();
    for at in [20, 40, 70, 100, 128 + content.len() as u64, length - 300, length - 1] {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 1], at).unwrap();
        for trust in all {
            assert!(read(trust).is_err(), "byte {at}, {trust:?}");
        }
        file.write_all_at(&byte, at).unwrap();
    }
}

#[test]
fn what_is_saved_has_a_limit() {
    let file = tempfile::tempfile().unwrap();
    let codes = 32 * 1024;
    let long = usize::try_from(LENGTH_LIMIT).unwrap() - codes - 159;
    // Zeros that no one touches take no memory.
    let content = vec![0; long];
    let error = sealed::write(&file, &cache().keys, &TOKEN, &content, &[]).unwrap_err();
    assert!(matches!(error, CacheError::TooLong { found, limit } if found == limit + 1));
    assert_eq!(file.metadata().unwrap().len(), 0);
}

/// Where a device's key is in a directory for state.
fn key_file(state: &TempDir) -> std::path::PathBuf {
    state.path().join("nnhal/a-b/cache.key")
}

fn key(state: &Path) -> Result<CacheKey, KeyError> {
    key_of(state, "a-b")
}

fn key_of(state: &Path, name: &str) -> Result<CacheKey, KeyError> {
    CacheKey::in_directory(&key::directory_in(state, name)?)
}

#[test]
fn cache_16_a_key_is_made_once_and_is_the_owners_only() {
    let state = tempdir().unwrap();
    let first = key(state.path()).unwrap();
    assert_eq!(first.bytes(), key(state.path()).unwrap().bytes());
    assert_ne!(first.bytes(), key_of(state.path(), "a-c").unwrap().bytes());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let file = key_file(&state);
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    // No drafts stay behind.
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    assert!(!format!("{first:?} {:?}", cache()).contains('['));
}

#[test]
fn cache_16_threads_that_make_a_key_at_once_get_the_same() {
    for _ in 0..20 {
        let state = tempdir().unwrap();
        let start = Barrier::new(8);
        let keys: HashSet<[u8; KEY_LENGTH]> = thread::scope(|scope| {
            let one = || {
                start.wait();
                *key(state.path()).unwrap().bytes()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(keys.len(), 1);
        assert_eq!(fs::read_dir(key_file(&state).parent().unwrap()).unwrap().count(), 1);
    }
}

const CHILD: &str = "NNHAL_TEST_CHILD";

/// Not a test by itself: the body of the processes below.
#[test]
fn child_prints_its_key() {
    if env::var_os(CHILD).is_some() {
        match CacheKey::of_device("a-b") {
            Ok(key) => println!("<{:?}>", key.bytes()),
            Err(error) => println!("<{error}>"),
        }
        assert_eq!(ModelCache::of_device("a-b", "1").is_some(), CacheKey::of_device("a-b").is_ok());
    }
}

/// A process whose variables are these.
fn child(variables: &[(&str, &Path)]) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "cache::tests::child_prints_its_key", "--nocapture"])
        .env_remove("XDG_STATE_HOME")
        .env_remove("HOME")
        .env(CHILD, "")
        .envs(variables.iter().copied())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn printed(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    text.split(['<', '>']).nth(1).expect("a key").to_owned()
}

#[test]
fn cache_16_processes_that_make_a_key_at_once_get_the_same() {
    let state = tempdir().unwrap();
    let children: Vec<_> = (0..6).map(|_| child(&[("XDG_STATE_HOME", state.path())])).collect();
    let keys: HashSet<String> = children.into_iter().map(printed).collect();
    assert_eq!(keys, [format!("{:?}", key(state.path()).unwrap().bytes())].into());
}

#[test]
fn cache_16_a_key_is_in_the_users_directory_for_state() {
    let (state, home) = (tempdir().unwrap(), tempdir().unwrap());
    let in_home = home.path().join(".local/state");
    let of = |state: &Path| format!("{:?}", key(state).unwrap().bytes());
    let (xdg, elsewhere) = (("XDG_STATE_HOME", state.path()), ("HOME", home.path()));
    assert_eq!(printed(child(&[xdg, elsewhere])), of(state.path()));
    assert!(!in_home.exists());
    assert_eq!(printed(child(&[elsewhere])), of(&in_home));
    // A path that is not absolute counts as none.
    let relative = ("XDG_STATE_HOME", Path::new("relative"));
    assert_eq!(printed(child(&[relative, elsewhere])), of(&in_home));
    assert_eq!(printed(child(&[relative])), KeyError::NoStateDirectory.to_string());
}

#[test]
fn cache_16_a_key_that_others_could_know_is_refused() {
    let state = tempdir().unwrap();
    key(state.path()).unwrap();
    let file = key_file(&state);
    let allow =
        |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    for bit in (0..6).map(|bit| 1 << bit) {
        allow(&file, 0o600 | bit);
        let error = key(state.path()).unwrap_err();
        assert!(
            matches!(&error, KeyError::Permissions { path, found } if *path == file && found & bit != 0),
            "{error}"
        );
    }
    allow(&file, 0o600);
    let directories = [file.parent().unwrap(), file.parent().unwrap().parent().unwrap()];
    for directory in directories {
        for bit in (0..6).map(|bit| 1 << bit) {
            allow(directory, 0o700 | bit);
            let error = key(state.path()).unwrap_err();
            assert!(matches!(&error, KeyError::Permissions { path, .. } if path == directory));
        }
        allow(directory, 0o700);
    }
    assert!(key(state.path()).is_ok());
}

#[test]
fn cache_16_a_key_of_somebody_else_is_refused() {
    let state = tempdir().unwrap();
    key(state.path()).unwrap();
    if std::os::unix::fs::chown(key_file(&state), Some(12345), None).is_err() {
        println!("not run: only root can give files away");
        return;
    }
    let error = key(state.path()).unwrap_err();
    assert!(matches!(error, KeyError::Owner { found: 12345, .. }), "{error}");
}

#[test]
fn cache_16_symbolic_links_and_other_things_are_no_keys() {
    let state = tempdir().unwrap();
    key(state.path()).unwrap();
    let file = key_file(&state);
    let elsewhere = state.path().join("elsewhere");
    fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    assert!(matches!(key(state.path()), Err(KeyError::Kind { .. })));
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(matches!(key(state.path()), Err(KeyError::Kind { .. })));
    fs::remove_dir(&file).unwrap();
    for length in [0, KEY_LENGTH - 1, KEY_LENGTH + 1] {
        fs::write(&file, vec![7; length]).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let error = key(state.path()).unwrap_err();
        assert!(matches!(error, KeyError::Length { found, .. } if found == length), "{error}");
    }
    // The directory itself.
    let directory = file.parent().unwrap();
    fs::rename(directory, elsewhere.with_extension("d")).unwrap();
    symlink(elsewhere.with_extension("d"), directory).unwrap();
    let error = key(state.path()).unwrap_err();
    assert!(matches!(&error, KeyError::Kind { path, .. } if path == directory), "{error}");
}

#[test]
fn names_that_lead_elsewhere_name_no_directory() {
    let state = tempdir().unwrap();
    for name in ["", ".", "..", "a/b", "/a", "a/", "../a", "./a"] {
        let error = key_of(state.path(), name).unwrap_err();
        assert!(matches!(&error, KeyError::Name { name: found } if found == name), "{error}");
    }
    assert_eq!(fs::read_dir(state.path()).unwrap().count(), 0);
}
