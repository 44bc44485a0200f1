//! How the time and memory of preparing grow with the number of operations: linear, or n log n.
//!
//! ```sh
//! cargo bench -p nnhal-cpu --bench growth -- [part of a name] [operations...]
//! ```
//!
//! Prints for each kind of model, and 1,000, 10,000 and 100,000 operations, seconds and peak MB (of
//! which the process had some before): validating, preparing for `nnhal-cpu`, and the first execution there, then
//! preparing and executing on `nnhal-reference`.
#![allow(clippy::print_stdout)] // What it is for.

#[path = "../tests/support/long.rs"]
mod long;

use nnhal_cpu::Settings;
use nnhal_hal::{Device, ExecutionOptions, HalVersion, PrepareOptions};
use std::sync::Arc;
use std::time::Instant;

/// Peak of the process's memory since it was asked last, in MB. Linux only.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    // Begins anew.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    kib.unwrap_or(f64::NAN) * 1024.0 / 1e6
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let numbers: Vec<usize> = arguments.iter().filter_map(|it| it.parse().ok()).collect();
    let numbers = if numbers.is_empty() { vec![1_000, 10_000, 100_000] } else { numbers };
    let name = arguments.iter().find(|it| it.parse::<usize>().is_err());
    let devices = [nnhal_cpu::device(Settings::default()), nnhal_reference::device()];
    println!(
        "{:36} {:>8} {:>9} | {:>9} {:>9} {:>7} | {:>9} {:>9} {:>7}",
        "seconds, peak MB",
        "number",
        "validate",
        "prepare",
        "execute",
        "MB",
        "prepare",
        "execute",
        "MB"
    );
    for kind in long::KINDS.iter().filter(|kind| name.is_none_or(|name| kind.name.contains(name))) {
        for &number in &numbers {
            measure(kind, number, &devices);
        }
    }
}

fn measure(kind: &long::Kind, number: usize, devices: &[Arc<dyn Device>]) {
    let model = (kind.model)(number);
    let request = long::request(&model);
    let started = Instant::now();
    let valid = nnhal_ops::validate(&model, HalVersion::LATEST).map(drop);
    print!("{:36} {number:8} {:9.3}", kind.name, started.elapsed().as_secs_f64());
    if let Err(error) = valid {
        println!(" {error}");
        return;
    }
    for device in devices {
        peak();
        let started = Instant::now();
        match device.prepare_model(&model, HalVersion::LATEST, PrepareOptions::default()) {
            Ok(prepared) => {
                print!(" | {:9.3}", started.elapsed().as_secs_f64());
                let started = Instant::now();
                let executed = prepared.execute(&request, &ExecutionOptions::default());
                print!(" {:9.3} {:7.0}", started.elapsed().as_secs_f64(), peak());
                if let Err(failed) = executed {
                    print!(" {}", failed.error);
                }
            }
            Err(error) => print!(" | {:9.3} {error}", started.elapsed().as_secs_f64()),
        }
    }
    println!();
}
