//! `nnhal bench`

use super::{milliseconds, print, print_json, shape};
use crate::devices;
use crate::error::{CliError, Result};
use crate::inputs::{self, InputArguments};
use crate::session::{self, Session};
use crate::tensor::Tensor;
use hal::{ErrorStatus, ExecutionOptions, HalVersion, PrepareOptions};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tflite::Import;

/// The arguments of `nnhal bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  nnhal bench mobilenet.tflite --threads 2 --runs 50 --warmup 5 --fill random --json

A run is one execution on a prepared model, from call to return; inputs are set before and outputs
left in shared memory. The last line of standard output is one JSON object with --json.")]
pub struct Arguments {
    /// The .tflite file
    model: PathBuf,
    #[command(flatten)]
    inputs: InputArguments,
    /// Where to run
    #[arg(long, default_value = devices::DEFAULT, value_name = "NAME")]
    device: String,
    /// Most threads to use (nnhal-reference always uses one)
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,
    /// Measured runs
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Runs before them
    #[arg(long, default_value_t = 3, value_name = "N")]
    warmup: u32,
    /// Also save the prepared model to a temporary file, and measure loading it from there
    #[arg(long)]
    cached: bool,
    /// One JSON object as the last line
    #[arg(long)]
    json: bool,
}

/// The prepared model is loaded so many times.
const LOADS: u32 = 5;

/// What is measured. Microseconds unless the name says otherwise.
#[derive(Debug, Serialize)]
struct Statistics {
    device: String,
    threads: u16,
    runs: u32,
    median_us: f64,
    min_us: f64,
    p90_us: f64,
    mean_us: f64,
    /// From the file's path to a prepared model.
    prepare_us: f64,
    /// From a cache file to a prepared model, the median; if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    load_us: Option<f64>,
    peak_rss_kb: u64,
}

/// Measures a model.
pub fn run(arguments: &Arguments) -> Result<()> {
    let begun = Instant::now();
    let import = session::import(&arguments.model)?;
    let session = Session::new(&import, &arguments.device, arguments.threads.into())?;
    let prepare = begun.elapsed();
    let filled = inputs::fill(&arguments.inputs, &import)?;
    let tensors: Vec<Tensor> = filled.iter().map(|filled| filled.tensor.clone()).collect();
    let times = measure(arguments, &session, &tensors)?;
    let mut statistics = statistics(arguments, &session, times, prepare);
    if arguments.cached {
        drop(session);
        let load = load(arguments, &import)?;
        statistics.load_us = Some(load.as_secs_f64() * 1e6);
    }
    if !arguments.json {
        let mut text = String::new();
        for input in &filled {
            text += &format!("input {} {}: ", input.name, shape(&input.tensor.dimensions));
            text += &format!("{}\n", input.source);
        }
        let show = |microseconds: f64| milliseconds(Duration::from_secs_f64(microseconds / 1e6));
        text += &format!(
            "{}, {} threads, {} runs\nmedian {}\nmin    {}\np90    {}\nmean   {}\n\
             prepared in {}, peak memory {} KiB\n",
            statistics.device,
            statistics.threads,
            statistics.runs,
            show(statistics.median_us),
            show(statistics.min_us),
            show(statistics.p90_us),
            show(statistics.mean_us),
            show(statistics.prepare_us),
            statistics.peak_rss_kb,
        );
        if let Some(load) = statistics.load_us {
            text += &format!("loaded from a cache file in {}\n", show(load));
        }
        return print(&text);
    }
    print_json(&statistics)
}

/// How long it takes to load the model from a file that it was saved to.
fn load(arguments: &Arguments, import: &Import) -> Result<Duration> {
    let device = devices::open(&arguments.device, arguments.threads.into())?;
    let failed = CliError::device(device.name());
    if device.cache_files_needed().model != 1 {
        return Err(failed(hal::Error::failure("it does not keep prepared models in files")));
    }
    let file = tempfile::tempfile().map_err(hal::Error::failure).map_err(&failed)?;
    let files = || -> hal::Result<Vec<OwnedFd>> {
        Ok(vec![file.try_clone().map_err(hal::Error::failure)?.into()])
    };
    let token = [1; 32];
    let options =
        PrepareOptions { model_cache: files().map_err(&failed)?, token, ..Default::default() };
    device.prepare_model(&import.model, HalVersion::LATEST, options).map_err(&failed)?;
    let mut times = Vec::new();
    for _ in 0..LOADS {
        let begun = Instant::now();
        let files = files().map_err(&failed)?;
        let loaded = device.prepare_model_from_cache(None, files, Vec::new(), &token);
        times.push(begun.elapsed());
        drop(loaded.map_err(&failed)?);
    }
    times.sort_unstable();
    Ok(quantile(&times, 1, 2))
}

fn measure(arguments: &Arguments, session: &Session, tensors: &[Tensor]) -> Result<Vec<Duration>> {
    let options = ExecutionOptions::default();
    let request = session.request(tensors)?;
    // On a terminal only: the bar hides itself elsewhere.
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(u64::from(arguments.warmup) + u64::from(arguments.runs));
    bar.set_style(style);
    let mut times = Vec::with_capacity(arguments.runs as usize);
    for round in 0..arguments.warmup.saturating_add(arguments.runs) {
        let begun = Instant::now();
        let outcome = session.execute(&request, &options);
        let time = begun.elapsed();
        match outcome {
            Ok(_) => {}
            // The work is done; only the copy of an output of unknown size is not.
            Err(failed) if failed.error.status() == ErrorStatus::OutputInsufficientSize => {}
            Err(failed) => return Err(CliError::device(&session.device)(failed.error)),
        }
        if round >= arguments.warmup {
            times.push(time);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(times)
}

fn statistics(
    arguments: &Arguments,
    session: &Session,
    mut times: Vec<Duration>,
    prepare: Duration,
) -> Statistics {
    times.sort_unstable();
    let microseconds = |duration: Duration| duration.as_secs_f64() * 1e6;
    Statistics {
        device: session.device.clone(),
        threads: arguments.threads,
        runs: arguments.runs,
        median_us: microseconds(quantile(&times, 1, 2)),
        min_us: microseconds(times[0]),
        p90_us: microseconds(quantile(&times, 9, 10)),
        mean_us: microseconds(times.iter().sum::<Duration>() / arguments.runs),
        prepare_us: microseconds(prepare),
        load_us: None,
        peak_rss_kb: peak_resident_kib(),
    }
}

/// The least time that at least this share of all times does not exceed.
fn quantile(sorted: &[Duration], numerator: usize, denominator: usize) -> Duration {
    let rank = (sorted.len() * numerator).div_ceil(denominator).max(1);
    sorted[rank - 1]
}

/// The most memory that this process ever had resident, in KiB; 0 where the system does not say.
fn peak_resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_by_hand() {
        let times: Vec<_> = (1..=10).map(Duration::from_micros).collect();
        assert_eq!(quantile(&times, 1, 2), Duration::from_micros(5));
        assert_eq!(quantile(&times, 9, 10), Duration::from_micros(9));
        assert_eq!(quantile(&times[..1], 9, 10), Duration::from_micros(1));
    }

    #[test]
    fn peak_memory_is_known_here() {
        assert!(peak_resident_kib() > 100);
    }
}
