//! The program's number of threads, and environment variables. Each test is a process of its own.

mod c;

use c::{Reported, digits};
use std::process::Command;
use tensorflowlite_c::abi::TfLiteStatus;
use tensorflowlite_c::interpreter::*;
use tensorflowlite_c::options::*;

/// Runs a test of this file again, with these variables; what it prints.
fn again(test: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("NNHAL_TEST_INSIDE", "1");
    for (name, value) in variables {
        command.env(name, value);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn is_inside() -> bool {
    std::env::var_os("NNHAL_TEST_INSIDE").is_some()
}

#[allow(clippy::print_stdout, reason = "the process outside reads it")]
fn print(text: &str) {
    println!("{text}");
}

/// The threads that this process has more with an interpreter than without.
fn threads_of_interpreter() -> usize {
    let count = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let before = count();
    let options = TfLiteInterpreterOptionsCreate();
    if let Ok(threads) = std::env::var("WANTED") {
        TfLiteInterpreterOptionsSetNumThreads(options, threads.parse().unwrap());
    }
    let interpreter = TfLiteInterpreterCreate(digits("digits_int8.tflite"), options);
    assert_eq!(TfLiteInterpreterAllocateTensors(interpreter), TfLiteStatus::Ok);
    // The first small execution of a device starts no threads.
    for _ in 0..2 {
        assert_eq!(TfLiteInterpreterInvoke(interpreter), TfLiteStatus::Ok);
    }
    count() - before
}

#[test]
fn the_programs_number_of_threads_goes_before_the_setting() {
    if is_inside() {
        return print(&format!("threads: {}", threads_of_interpreter()));
    }
    let found = |variables: &[(&str, &str)]| -> usize {
        let text = again("the_programs_number_of_threads_goes_before_the_setting", variables);
        let (_, rest) = text.split_once("threads: ").unwrap();
        rest.lines().next().unwrap().parse().unwrap()
    };
    let one = found(&[("WANTED", "1"), ("NNHAL_THREADS", "4")]);
    let four = found(&[("WANTED", "4"), ("NNHAL_THREADS", "1")]);
    assert_eq!(four, one + 3);
    assert_eq!(found(&[("NNHAL_THREADS", "4")]), four);
    assert_eq!(found(&[("WANTED", "-1"), ("NNHAL_THREADS", "4")]), four);
    assert_eq!(found(&[("WANTED", "0"), ("NNHAL_THREADS", "4")]), one, "0 is 1");
}

#[test]
fn a_setting_that_makes_no_sense_makes_no_interpreter() {
    if is_inside() {
        let reported = Box::new(Reported::default());
        let options = TfLiteInterpreterOptionsCreate();
        TfLiteInterpreterOptionsSetErrorReporter(options, Some(c::tell), reported.pointer());
        let interpreter = TfLiteInterpreterCreate(digits("digits_int8.tflite"), options);
        return print(&format!("{} {}", interpreter.is_null(), reported.last()));
    }
    let test = "a_setting_that_makes_no_sense_makes_no_interpreter";
    for (name, value) in
        [("NNHAL_THREADS", "many"), ("NNHAL_DEVICES", "nnhal-cpu,other"), ("NNHAL_LOG", "loud")]
    {
        let text = again(test, &[(name, value)]);
        assert!(text.contains("true TfLiteInterpreterCreate: "), "{text}");
        assert!(text.contains(value.rsplit(',').next().unwrap()), "{text}");
    }
    let text = again(test, &[("NNHAL_DEVICES", "nnhal-reference, nnhal-cpu")]);
    assert!(text.contains("false "), "{text}");
}
