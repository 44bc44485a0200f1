//! Environment variables: each is asked about in a process of its own, which this test is once more.

mod c;

use c::*;
use std::process::Command;

const CHILD: &str = "NNHAL_TEST_CHILD";

/// What a program sees that asks for devices and goes on whatever it is answered.
#[test]
fn asks_for_devices_in_a_process_of_its_own() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let mut count = 77;
    let code = ANeuralNetworks_getDeviceCount(&raw mut count);
    let mut model = std::ptr::null_mut();
    let created = ANeuralNetworksModel_create(&raw mut model);
    let mut names = String::new();
    for index in 0..if code == NO_ERROR { count } else { 0 } {
        let (device, mut name) =
            (made(|it| ANeuralNetworks_getDevice(index, it)), std::ptr::null());
        works(ANeuralNetworksDevice_getName(device, &raw mut name));
        names += &format!(" {}", text(name));
    }
    println!("answer: {code} {count} {created} {}{names}", model.is_null());
    println!("sentence: {}", last_error());
}

fn ask(variable: &str, value: &str) -> (String, String) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "asks_for_devices_in_a_process_of_its_own", "--nocapture"])
        .env(CHILD, "1")
        .env(variable, value)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(child.stdout), text(child.stderr))
}

#[test]
fn a_setting_that_makes_no_sense_is_an_error_that_says_what_is_possible() {
    for (variable, value, possible) in [
        ("NNHAL_DEVICES", "nope", "`nnhal-cpu` and `nnhal-reference`"),
        ("NNHAL_NNAPI_REFERENCE", "nope", "a device that is offered"),
        ("NNHAL_NNAPI_REFERENCE", "nnhal-cpu,twice", "`,renamed`"),
        ("NNHAL_INSTRUCTION_SET", "mmx", "`portable`"),
        ("NNHAL_THREADS", "many", "a number from 1 to 1024"),
        ("NNHAL_WINOGRAD", "maybe", "`on` or `off`"),
        ("NNHAL_PASSES_OFF", "views,vews", "names of passes"),
        ("NNHAL_LOG", "loud", "`trace`"),
        ("NNHAL_ABORT_ON_MISUSE", "perhaps", "`1` or `0`"),
        ("NNHAL_SUPPORT_LIBRARY_LEVEL", "9", "`7` or `8`"),
    ] {
        let (answers, said) = ask(variable, value);
        assert!(answers.contains("answer: 4 77 4 true"), "{variable}: {answers}");
        let sentence = format!("{variable} is {value:?}, expected ");
        assert!(answers.contains(&sentence) && answers.contains(possible), "{answers}");
        assert_eq!(said.matches(&sentence).count(), 1, "{said}");
    }
}

#[test]
fn settings_are_taken() {
    let works = "answer: 0 3 0 false nnhal-cpu nnhal-reference nnapi-reference";
    for (variable, value, answer) in [
        ("NNHAL_DEVICES", "nnhal-reference", "answer: 0 2 0 false nnhal-reference nnapi-reference"),
        ("NNHAL_NNAPI_REFERENCE", "off", "answer: 0 2 0 false nnhal-cpu nnhal-reference\n"),
        ("NNHAL_NNAPI_REFERENCE", "nnhal-reference", works),
        (
            "NNHAL_NNAPI_REFERENCE",
            "nnhal-reference,renamed",
            "answer: 0 2 0 false nnhal-cpu nnapi-reference\n",
        ),
        ("NNHAL_DEVICES", "", works),
        ("NNHAL_INSTRUCTION_SET", "portable", works),
        ("NNHAL_THREADS", "3", works),
        ("NNHAL_WINOGRAD", "off", works),
        ("NNHAL_PASSES_OFF", "views, chains", works),
    ] {
        let (answers, said) = ask(variable, value);
        assert!(answers.contains(answer), "{variable}={value}: {answers}");
        assert_eq!(said, "", "{variable}={value}");
    }
}
