//! `nnhal bench`

use super::{microseconds, milliseconds, print, print_json, shape};
use crate::error::Result;
use crate::inputs::{self, InputArguments};
use crate::session::{ModelArguments, SessionArguments};
use indicatif::{ProgressBar, ProgressStyle};
use nnhal::bench;
use serde::Serialize;
use std::time::Instant;

/// The arguments of `nnhal bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  nnhal bench mobilenet.tflite --threads 2 --runs 50 --warmup 5 --fill random --json

A run is one execution on a prepared model, from call to return; inputs are set before and outputs
left in shared memory. The last line of standard output is one JSON object with --json.")]
pub struct Arguments {
    #[command(flatten)]
    model: ModelArguments,
    #[command(flatten)]
    inputs: InputArguments,
    #[command(flatten)]
    session: SessionArguments,
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
    pub json: bool,
}

/// How often the prepared model is loaded.
const LOADS: u32 = 5;

/// What is measured, in microseconds unless the name says otherwise.
#[derive(Debug, Serialize)]
struct Row {
    device: String,
    threads: usize,
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
    let threads = arguments.session.threads.used()?.get();
    let begun = Instant::now();
    let model = arguments.model.load()?;
    let loading = begun.elapsed();
    let (model, filled) = inputs::fill(&arguments.inputs, model)?;
    let begun = Instant::now();
    let session = arguments.session.open(&model)?;
    let prepare = loading + begun.elapsed();
    let plan = bench::Plan { warmup: arguments.warmup, runs: arguments.runs };
    // On a terminal only: the bar hides itself elsewhere.
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(u64::from(plan.warmup) + u64::from(plan.runs)).with_style(style);
    let statistics = bench::run(&session, inputs::values(&filled), plan, || bar.inc(1))?;
    bar.finish_and_clear();
    let peak_rss_kb = bench::peak_resident_kib().unwrap_or(0);
    let load = arguments.cached.then(|| bench::load(&session, LOADS)).transpose()?;
    if arguments.json {
        return print_json(&Row {
            device: arguments.session.device.clone(),
            threads,
            runs: statistics.runs,
            median_us: microseconds(statistics.median),
            min_us: microseconds(statistics.min),
            p90_us: microseconds(statistics.p90),
            mean_us: microseconds(statistics.mean),
            prepare_us: microseconds(prepare),
            load_us: load.map(microseconds),
            peak_rss_kb,
        });
    }
    let mut text = String::new();
    for input in &filled {
        text += &format!("input {} {}: ", input.name, shape(input.tensor.shape()));
        text += &format!("{}\n", input.source);
    }
    text += &format!(
        "{}, {threads} threads, {} runs\nmedian {}\nmin    {}\np90    {}\nmean   {}\n\
         prepared in {}, peak memory {peak_rss_kb} KiB\n",
        arguments.session.device,
        statistics.runs,
        milliseconds(statistics.median),
        milliseconds(statistics.min),
        milliseconds(statistics.p90),
        milliseconds(statistics.mean),
        milliseconds(prepare),
    );
    if let Some(load) = load {
        text += &format!("loaded from a cache file in {}\n", milliseconds(load));
    }
    print(&text)
}
