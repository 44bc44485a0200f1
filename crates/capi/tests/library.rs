//! The library as a file, and as a part of a process whose standard error is of no use.

use neuralnetworks::model::ANeuralNetworksModel_finish;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What cargo has built beside this program.
fn library() -> Vec<u8> {
    let folder = std::env::current_exe().unwrap().parent().map(PathBuf::from).unwrap();
    let path = folder.join("libneuralnetworks.so");
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn number<const LENGTH: usize>(bytes: &[u8], at: usize) -> usize {
    let mut all = [0; 8];
    all[..LENGTH].copy_from_slice(&bytes[at..at + LENGTH]);
    usize::try_from(u64::from_le_bytes(all)).unwrap()
}

/// Tags and values of the dynamic section of a 64-bit ELF file.
fn dynamic_section(file: &[u8]) -> Vec<(usize, usize)> {
    assert_eq!(&file[..6], b"\x7FELF\x02\x01");
    let (headers, size, count) =
        (number::<8>(file, 32), number::<2>(file, 54), number::<2>(file, 56));
    let all = (0..count).map(|index| headers + index * size);
    let dynamic = all.into_iter().find(|at| number::<4>(file, *at) == 2).unwrap();
    let (offset, length) = (number::<8>(file, dynamic + 8), number::<8>(file, dynamic + 32));
    let entries = (offset..offset + length).step_by(16);
    entries.map(|at| (number::<8>(file, at), number::<8>(file, at + 8))).collect()
}

#[test]
fn the_library_stays_when_it_is_closed() {
    const FLAGS_1: usize = 0x6FFF_FFFB;
    const NO_DELETE: usize = 8;
    let flags = dynamic_section(&library()).into_iter().find(|(tag, _)| *tag == FLAGS_1);
    let (_, flags) = flags.expect("flags");
    assert_ne!(flags & NO_DELETE, 0, "threads may run its code: {flags:#x}");
}

/// What the process of the other test does.
#[test]
fn a_failure_is_written_to_standard_error() {
    if std::env::var_os("NNHAL_TEST_FAIL").is_some() {
        for _ in 0..100 {
            assert_ne!(ANeuralNetworksModel_finish(std::ptr::null_mut()), 0);
        }
    }
}

#[test]
fn a_standard_error_that_is_full_or_closed_is_no_matter() {
    let full = || Stdio::from(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    let closed = || Stdio::from(std::io::pipe().unwrap().1);
    for (name, stderr) in [("full", full()), ("closed", closed())] {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "a_failure_is_written_to_standard_error", "--nocapture"]);
        again.env("NNHAL_TEST_FAIL", "1").env("NNHAL_LOG", "1").stderr(stderr);
        let output = again.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{name}: {text}");
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "a_failure_is_written_to_standard_error", "--nocapture"]);
    let output = again.env("NNHAL_TEST_FAIL", "1").env("NNHAL_LOG", "1").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.matches("ANeuralNetworksModel_finish: ").count(), 100, "{text}");
}
