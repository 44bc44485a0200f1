//! Whether a run costs the same after a million of them: the time of runs, what the process keeps in memory, its threads
//! and its open files, after each tenth.
//!
//! ```text
//! cargo bench -p nnhal --bench million_runs -- [MODEL.tflite] [THREADS] [RUNS]
//! ```
//!
//! Without a model it is `assets/digits/digits_int8.tflite`, with one thread, a million times.
#![allow(clippy::print_stdout)] // What it is for.

use nnhal::{Model, SessionOptions};
use std::error::Error;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};
use std::{env, fs};

const DIGITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/digits/digits_int8.tflite");

/// The resident memory of this process, in KiB.
fn resident() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// How many entries a folder has.
fn count(folder: &str) -> Result<usize, Box<dyn Error>> {
    Ok(fs::read_dir(folder)?.count())
}

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo adds an option of its own.
    let mut arguments = env::args().skip(1).filter(|argument| argument != "--bench");
    let model = arguments.next().unwrap_or_else(|| DIGITS.into());
    let threads: NonZeroUsize = arguments.next().as_deref().unwrap_or("1").parse()?;
    let runs: usize = arguments.next().as_deref().unwrap_or("1000000").parse()?;
    let device = nnhal::devices::open("nnhal-cpu", Some(threads))?;
    let session = Model::load(model.as_str())?.session(SessionOptions::new().on(device))?;
    let mut runner = session.runner()?;
    println!("{model}, {threads} of threads\n");
    println!(
        "| runs | median, us | mean, us | longest, us | resident, KiB | threads | open files |"
    );
    println!("| --: | --: | --: | --: | --: | --: | --: |");
    let by_tenth = (runs / 10).max(1);
    let mut times = vec![Duration::ZERO; by_tenth];
    for tenth in 1..=10 {
        for time in &mut times {
            let begun = Instant::now();
            runner.run()?;
            *time = begun.elapsed();
        }
        let mean = times.iter().sum::<Duration>().as_secs_f64() * 1e6 / by_tenth as f64;
        times.sort_unstable();
        let microseconds = |time: Duration| time.as_secs_f64() * 1e6;
        println!(
            "| {} | {:.2} | {mean:.2} | {:.0} | {} | {} | {} |",
            tenth * by_tenth,
            microseconds(times[by_tenth / 2]),
            microseconds(times[by_tenth - 1]),
            resident()?,
            count("/proc/self/task")?,
            count("/proc/self/fd")?,
        );
    }
    Ok(())
}
