//! What settings mean. The environment belongs to the whole process, so each question is asked in a
//! process of its own, which this test is once more.

use std::process::Command;

/// Names the question, in a process that is to answer it.
const QUESTION: &str = "NNHAL_TEST_QUESTION";

fn answer(question: &str) -> String {
    let shown = |answer: Result<String, nnhal_settings::SettingError>| match answer {
        Ok(answer) => answer,
        Err(error) => format!("error: {error}"),
    };
    match question {
        "threads" => shown(nnhal_settings::threads().map(|threads| threads.to_string())),
        "log" => shown(nnhal_settings::log().map(|log| format!("{log:?}"))),
        "winograd" => shown(nnhal_settings::WINOGRAD.is_on().map(|on| format!("{on:?}"))),
        "one processor" => {
            let mut one = rustix::thread::CpuSet::new();
            let all = rustix::thread::sched_getaffinity(None).unwrap();
            let first = (0..rustix::thread::CpuSet::MAX_CPU).find(|it| all.is_set(*it)).unwrap();
            one.set(first);
            rustix::thread::sched_setaffinity(None, &one).unwrap();
            shown(nnhal_settings::threads().map(|threads| threads.to_string()))
        }
        _ => unreachable!("{question}"),
    }
}

#[test]
fn answers_one_question_in_a_process_of_its_own() {
    if let Ok(question) = std::env::var(QUESTION) {
        println!("answer: {}", answer(&question));
    }
}

fn ask(question: &str, variable: &str, value: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "answers_one_question_in_a_process_of_its_own", "--nocapture"])
        .env(QUESTION, question)
        .env(variable, value)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (_, answer) = text.split_once("answer: ").unwrap();
    answer.lines().next().unwrap().to_owned()
}

#[test]
fn threads_are_a_number_within_bounds() {
    assert_eq!(ask("threads", "NNHAL_THREADS", "3"), "3");
    let processors = nnhal_settings::processors().to_string();
    assert_eq!(ask("threads", "NNHAL_THREADS", ""), processors);
    for wrong in ["0", "many", "-1", "1025", "2.5"] {
        let expected = "expected a number from 1 to 1024";
        assert_eq!(
            ask("threads", "NNHAL_THREADS", wrong),
            format!("error: NNHAL_THREADS is {wrong:?}, {expected}")
        );
    }
}

#[test]
fn a_process_bound_to_one_processor_uses_one_thread() {
    assert_eq!(ask("one processor", "NNHAL_THREADS", ""), "1");
}

#[test]
fn switches_are_on_or_off() {
    assert_eq!(ask("winograd", "NNHAL_WINOGRAD", "off"), "Some(false)");
    assert_eq!(ask("winograd", "NNHAL_WINOGRAD", "ON"), "Some(true)");
    assert_eq!(ask("winograd", "NNHAL_WINOGRAD", ""), "None");
    let refused = ask("winograd", "NNHAL_WINOGRAD", "perhaps");
    assert_eq!(refused, "error: NNHAL_WINOGRAD is \"perhaps\", expected `on` or `off`");
}

#[test]
fn levels_are_those_of_tracing() {
    assert_eq!(ask("log", "NNHAL_LOG", "1"), "Some(\"error\")");
    assert_eq!(ask("log", "NNHAL_LOG", "Warn, driver=DEBUG"), "Some(\"warn,driver=debug\")");
    let refused = ask("log", "NNHAL_LOG", "loud");
    assert!(refused.contains("there is no level \"loud\""), "{refused}");
    assert!(refused.contains("`trace`"), "{refused}");
}

#[test]
fn the_documentation_has_this_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(
        text.contains(&nnhal_settings::table()),
        "expected in docs/settings.md:\n{}",
        nnhal_settings::table()
    );
}

#[test]
fn no_other_variable_is_read() {
    // Settings of tests, and what a build script hands to its crate.
    let others = |name: &str| name.starts_with("NNHAL_TEST_") || name == "NNHAL_CPU_BUILD";
    let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let mut folders: Vec<_> = std::fs::read_dir(crates)
        .unwrap()
        .map(|it| it.unwrap().path().join("src"))
        .filter(|it| it.is_dir())
        .collect();
    let mut found = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let marks = text.split("NNHAL_").skip(1);
            for mark in marks {
                let end = mark.find(|it: char| !it.is_ascii_uppercase() && it != '_');
                let name = format!("NNHAL_{}", &mark[..end.unwrap_or(mark.len())]);
                let is_known = nnhal_settings::ALL.iter().any(|setting| setting.name == name);
                assert!(is_known || others(&name), "{}: {name}", path.display());
                found += 1;
            }
        }
    }
    assert!(found >= nnhal_settings::ALL.len());
}
