//! `nnhal bench`

mod summary;

use super::{counted, microseconds, milliseconds, print, print_json, shape, shortened};
use crate::error::Result;
use crate::inputs::{self, Filled, InputArguments};
use crate::session::{ModelArguments, SessionArguments, TraceArguments};
use indicatif::{ProgressBar, ProgressStyle};
use nnhal::bench::{self, Statistics};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};
use summary::Summary;

/// The arguments of `nnhal bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nnhal bench mobilenet.tflite --threads 2 --runs 50 --warmup 5 --fill random --json
  nnhal bench mobilenet.tflite --time 10 --parallel 4 --threads 1
  nnhal bench mobilenet.tflite --summary

A run is one execution on a prepared model, from call to return; inputs are set before and outputs
left in shared memory. With --parallel, several threads request runs at a time, each its next one when it
has got the last; throughput counts the runs of all. The last line of standard output is one JSON
object with --json.")]
pub struct Arguments {
    #[command(flatten)]
    model: ModelArguments,
    #[command(flatten)]
    inputs: InputArguments,
    #[command(flatten)]
    session: SessionArguments,
    /// Measured runs, of all requests together, at least [default: 20; 1 with --time]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Seconds for which runs are measured, at least
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time: Option<Duration>,
    /// Runs before them
    #[arg(long, default_value_t = 3, value_name = "N")]
    warmup: u32,
    /// Runs that are requested at a time
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    parallel: u16,
    /// Also show how much time each type of operation, and each kernel, takes
    #[arg(long)]
    summary: bool,
    /// Also save the prepared model to a temporary file, and measure loading it from there
    #[arg(long)]
    cached: bool,
    /// Comma-separated values: a line of names and a line of numbers; with --summary an empty line
    /// and then a table of types and kernels
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    #[command(flatten)]
    pub trace: TraceArguments,
    /// One JSON object as the last line
    #[arg(long)]
    pub json: bool,
}

/// A time that is measured for.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|error| format!("{error}"))?;
    let time = Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())?;
    if time.is_zero() { Err("it must be more than 0".into()) } else { Ok(time) }
}

/// How often the prepared model is loaded.
const LOADS: u32 = 5;

/// Runs for the summary: a median of them is shown.
const SUMMARY_RUNS: usize = 20;

/// What is measured, in microseconds unless the name says otherwise.
#[derive(Debug, Serialize)]
struct Row {
    device: String,
    /// `None` where another process says how many it uses.
    threads: Option<NonZeroUsize>,
    parallel: u16,
    runs: u32,
    median_us: f64,
    min_us: f64,
    p90_us: f64,
    p95_us: f64,
    p99_us: f64,
    max_us: f64,
    mean_us: f64,
    deviation_us: f64,
    /// From the first measured run to the last.
    elapsed_us: f64,
    runs_per_second: f64,
    /// From the file's path to a prepared model.
    prepare_us: f64,
    /// The first run, before all others: it takes memory for values.
    first_us: f64,
    /// From a cache file to a prepared model, the median; if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    load_us: Option<f64>,
    peak_rss_kb: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Summary>,
}

/// Measures a model.
pub fn run(arguments: &Arguments) -> Result<()> {
    arguments.session.check()?;
    let threads = arguments.session.threads.used(&arguments.session.device)?;
    let begun = Instant::now();
    let loaded = arguments.model.load();
    let loading = begun.elapsed();
    let (model, filled) = inputs::fill(&arguments.inputs, &arguments.model, loaded)?;
    let begun = Instant::now();
    let hinted = arguments.inputs.hinted(&model);
    let session = arguments.session.open(&model).map_err(&hinted)?;
    let prepare = loading + begun.elapsed();
    let plan = bench::Plan {
        warmup: arguments.warmup,
        runs: arguments.runs.unwrap_or(if arguments.time.is_some() { 1 } else { 20 }),
        time: arguments.time.unwrap_or_default(),
        parallel: NonZeroUsize::new(arguments.parallel.into()).unwrap_or(NonZeroUsize::MIN),
    };
    let once = bench::Plan { warmup: 0, runs: 1, ..bench::Plan::default() };
    let first = bench::run(&session, inputs::values(&filled), once, || ()).map_err(&hinted)?.median;
    let bar = progress(plan);
    let statistics = bench::run(&session, inputs::values(&filled), plan, || bar.inc(1))?;
    bar.finish_and_clear();
    let peak_rss_kb = bench::peak_resident_kib().unwrap_or(0);
    let load = arguments.cached.then(|| bench::load(&session, LOADS)).transpose()?;
    let profile = || session.profile(inputs::values(&filled), 1, SUMMARY_RUNS);
    let summary = arguments.summary.then(profile).transpose()?;
    let row = Row {
        device: arguments.session.device.clone(),
        threads,
        parallel: arguments.parallel,
        runs: statistics.runs,
        median_us: microseconds(statistics.median),
        min_us: microseconds(statistics.min),
        p90_us: microseconds(statistics.p90),
        p95_us: microseconds(statistics.p95),
        p99_us: microseconds(statistics.p99),
        max_us: microseconds(statistics.max),
        mean_us: microseconds(statistics.mean),
        deviation_us: microseconds(statistics.deviation),
        elapsed_us: microseconds(statistics.elapsed),
        runs_per_second: statistics.throughput(),
        prepare_us: microseconds(prepare),
        first_us: microseconds(first),
        load_us: load.map(microseconds),
        peak_rss_kb,
        summary: summary.map(|profile| Summary::of(&profile)),
    };
    if arguments.json {
        print_json(&row)
    } else if arguments.csv {
        print(&row.csv(&arguments.model.model.to_string_lossy())?)
    } else {
        print(&row.text(&filled, &statistics))
    }
}

/// On a terminal only: the bar hides itself elsewhere.
fn progress(plan: bench::Plan) -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let runs = u64::from(plan.warmup) * plan.parallel.get() as u64 + u64::from(plan.runs);
    if plan.time.is_zero() {
        return ProgressBar::new(runs).with_style(style);
    }
    // How many there will be is not known.
    ProgressBar::new_spinner()
}

impl Row {
    /// A line of names and one of numbers, as in JSON.
    fn csv(&self, model: &str) -> Result<String> {
        let json = serde_json::to_value(self)
            .map_err(|error| crate::error::CliError::Input(error.to_string()))?;
        let mut fields = vec![("model".to_owned(), summary::quoted(model))];
        for (name, value) in json.as_object().into_iter().flatten() {
            match value {
                serde_json::Value::Object(_) => {}
                serde_json::Value::Null => fields.push((name.clone(), String::new())),
                serde_json::Value::String(text) => {
                    fields.push((name.clone(), summary::quoted(text)));
                }
                number => fields.push((name.clone(), number.to_string())),
            }
        }
        let (names, values): (Vec<String>, Vec<String>) = fields.into_iter().unzip();
        let mut text = format!("{}\n{}\n", names.join(","), values.join(","));
        if let Some(summary) = &self.summary {
            text += &format!("\n{}", summary.csv());
        }
        Ok(text)
    }

    fn text(&self, filled: &[Filled], statistics: &Statistics) -> String {
        let mut text = String::new();
        for input in filled {
            text += &format!("input {} {}: ", shortened(&input.name), shape(input.tensor.shape()));
            text += &format!("{}\n", input.source);
        }
        let Self { device, threads, parallel, runs, .. } = self;
        text += &format!("{device}, ");
        if let Some(threads) = threads {
            text += &format!("{}, ", counted(threads.get(), "thread"));
        }
        text += &format!("{runs} runs");
        if *parallel > 1 {
            text += &format!(", {parallel} at a time");
        }
        text += "\n";
        for (name, time) in [
            ("median", statistics.median),
            ("min", statistics.min),
            ("p90", statistics.p90),
            ("p95", statistics.p95),
            ("p99", statistics.p99),
            ("max", statistics.max),
            ("mean", statistics.mean),
        ] {
            text += &format!("{name:6} {}\n", milliseconds(time));
        }
        text += &format!(
            "deviation {}, {:.1} runs in a second\nprepared in {}, first run {}, peak memory {} KiB\n",
            milliseconds(statistics.deviation),
            self.runs_per_second,
            milliseconds(Duration::from_secs_f64(self.prepare_us / 1e6)),
            milliseconds(Duration::from_secs_f64(self.first_us / 1e6)),
            self.peak_rss_kb,
        );
        if let Some(load) = self.load_us {
            let load = Duration::from_secs_f64(load / 1e6);
            text += &format!("loaded from a cache file in {}\n", milliseconds(load));
        }
        if let Some(summary) = &self.summary {
            text += &summary.text();
        }
        text
    }
}
