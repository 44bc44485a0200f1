//! Loads, prepares and runs models from standard input, as `tests/litert/mutate_models.py` writes them, on both
//! devices or those that are asked for. They are mostly broken: what matters is that each gets an answer in time, and that none of these is
//! a panic.
#![allow(clippy::print_stdout, clippy::print_stderr)] // What it is for.

use clap::Parser;
use nnhal::{Fill, Model, SessionOptions};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Loads, prepares and runs the models of standard input.
#[derive(Debug, Parser)]
#[command(after_help = "\
Example, after `python make_models.py` in tests/litert:
  python mutate_models.py data --count 100000 | cargo run --release -p litert-judge --bin mutants")]
struct Arguments {
    /// Folder for models that are faults; the one at work is there too, for when the process dies
    #[arg(long, default_value = "mutants", value_name = "DIR")]
    keep: PathBuf,
    /// Which devices prepare and run them, both otherwise; may be given again
    #[arg(long, value_name = "NAME", value_parser = nnhal::devices::names())]
    device: Vec<String>,
}

/// What each step may take, and how much later it may end.
const TIMEOUT: Duration = Duration::from_secs(1);
const LATE: Duration = Duration::from_secs(1);

/// More than the files of the corpus have: whoever writes more does not speak this format.
const LONGEST: u32 = 1 << 26;

/// Bytes of inputs, together, with which models are run.
const LARGEST_INPUTS: usize = 1 << 26;

/// How far models came, and what was wrong with some.
#[derive(Debug, Default)]
struct Report {
    counts: BTreeMap<String, u64>,
    faults: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Err(error) = std::fs::create_dir_all(&arguments.keep) {
        eprintln!("{}: {error}", arguments.keep.display());
        return ExitCode::from(3);
    }
    let mut devices: Vec<&str> = nnhal::devices::names().to_vec();
    if !arguments.device.is_empty() {
        devices.retain(|name| arguments.device.iter().any(|asked| asked == name));
    }
    let (input, report) = (Mutex::new(io::stdin()), Mutex::new(Report::default()));
    let threads = std::thread::available_parallelism().map_or(1, Into::into);
    let (from, to, keep, devices) = (&input, &report, &arguments.keep, &devices[..]);
    let outcome: io::Result<()> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| scope.spawn(move || work(worker, devices, from, to, keep)))
            .collect();
        workers.into_iter().try_for_each(|it| it.join().expect("workers catch panics"))
    });
    if let Err(error) = outcome {
        eprintln!("{error}");
        return ExitCode::from(3);
    }
    let report = report.into_inner().expect("no one panics while holding it");
    for (what, count) in &report.counts {
        println!("{count:8} {what}");
    }
    println!("{:8} faults; at most {} MB of memory", report.faults, most_memory());
    if report.faults == 0 && !report.counts.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    }
}

/// Takes models until there are no more.
fn work(
    worker: usize,
    devices: &[&str],
    input: &Mutex<impl Read>,
    report: &Mutex<Report>,
    keep: &Path,
) -> io::Result<()> {
    let at_work = keep.join(format!("at-work-{worker}.tflite"));
    loop {
        let next = next(&mut *input.lock().expect("no one panics while holding it"))?;
        let Some(model) = next else { return std::fs::remove_file(at_work) };
        std::fs::write(&at_work, &model)?;
        let (answers, mut fault) = judged(&model, devices);
        if fault.is_some() {
            // Whatever else keeps the machine busy does not do so twice.
            (_, fault) = judged(&model, devices);
        }
        let mut report = report.lock().expect("no one panics while holding it");
        for answer in answers {
            *report.counts.entry(answer.kind).or_default() += 1;
        }
        if let Some(fault) = fault {
            report.faults += 1;
            let file = keep.join(format!("fault-{}.tflite", report.faults));
            println!("{}: {fault}", file.display());
            std::fs::copy(&at_work, file)?;
        }
    }
}

/// What became of a model, and what was wrong with that.
fn judged(model: &[u8], devices: &[&str]) -> (Vec<Answer>, Option<String>) {
    match catch_unwind(AssertUnwindSafe(|| tried(model, devices))) {
        Err(_) => (Vec::new(), Some("a panic".to_owned())),
        Ok(answers) => {
            let fault = answers.iter().find_map(Answer::fault);
            (answers, fault)
        }
    }
}

/// The next model, if there is one.
fn next(input: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match input.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        outcome => outcome?,
    }
    let length = u32::from_le_bytes(length);
    if length > LONGEST {
        return Err(io::Error::other(format!(
            "a model of {length} bytes is not from mutate_models.py"
        )));
    }
    let mut model = vec![0; length as usize];
    input.read_exact(&mut model)?;
    Ok(Some(model))
}

/// How a step ended.
struct Answer {
    kind: String,
    error: Option<String>,
    took: Duration,
}

impl Answer {
    fn of<T>(step: &str, begin: Instant, result: &nnhal::Result<T>) -> Self {
        let took = begin.elapsed();
        let how = if result.is_ok() { "done" } else { "refused" };
        let error = result.as_ref().err().map(ToString::to_string);
        Self { kind: format!("{step}: {how}"), error, took }
    }

    fn fault(&self) -> Option<String> {
        let Self { kind, error, took } = self;
        match error.as_ref().filter(|error| error.contains("panic")) {
            Some(error) => Some(format!("{kind}: {error}")),
            None => (*took > TIMEOUT + LATE).then(|| format!("{kind}: took {took:.1?}")),
        }
    }
}

/// Goes through all steps, as far as they go.
fn tried(bytes: &[u8], devices: &[&str]) -> Vec<Answer> {
    let begin = Instant::now();
    let description = Model::describe(bytes);
    let mut answers = vec![Answer::of("description", begin, &description)];
    let begin = Instant::now();
    let model = Model::load(bytes);
    answers.push(Answer::of("import", begin, &model));
    let Ok(model) = model else { return answers };
    for device in devices {
        let options = SessionOptions::new()
            .device(*device)
            .threads(1)
            .prepare_timeout(TIMEOUT)
            .run_timeout(TIMEOUT)
            .loop_timeout(TIMEOUT / 10);
        let begin = Instant::now();
        let session = model.session(options);
        answers.push(Answer::of(&format!("{device}, preparing"), begin, &session));
        let Ok(session) = session else { continue };
        if !has_small_inputs(&model) {
            continue;
        }
        let Ok(inputs) = (Fill::Random { seed: 1 }).inputs(&model, &[]) else { continue };
        let begin = Instant::now();
        let outputs = session.run(&inputs);
        answers.push(Answer::of(&format!("{device}, running"), begin, &outputs));
    }
    answers
}

/// Whether the inputs are no more than this program has room for.
fn has_small_inputs(model: &Model) -> bool {
    let bytes = model.inputs().iter().map(|info| info.data_type.byte_length(&info.known_shape()?));
    bytes.sum::<Option<usize>>().is_some_and(|bytes| bytes <= LARGEST_INPUTS)
}

/// Megabytes that the process had at once.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) / 1024
}
