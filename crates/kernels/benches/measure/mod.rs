//! What the benches share: settings, timing, the peak that times are held against.
#![allow(clippy::print_stdout)] // What it is for.
#![allow(dead_code)] // Each bench uses some of it.
#![allow(clippy::cast_precision_loss)] // Times and counts, for people.

use nnhal_kernels::InstructionSet;
use nnhal_kernels::peak::{Numbers, operations_per_nanosecond};
use std::time::{Duration, Instant};

/// What was asked for on the command line.
pub struct Settings {
    pub set: InstructionSet,
    pub threads: usize,
    filter: Vec<String>,
    /// Whether weights are to come from memory, as they do in a large model.
    cold: bool,
    /// Multiplications and additions in a nanosecond, of all threads, and what a billion in a second is called.
    peak: f64,
    unit: &'static str,
}

/// For how long each kernel is run.
const TIMEOUT: Duration = Duration::from_millis(300);

/// More than the caches hold.
pub const COLD_BYTES: usize = 64 << 20;

impl Settings {
    pub fn from_arguments() -> Self {
        Self::of(Numbers::Float32, |_, _| false)
    }

    /// For kernels of such numbers; `own` is given each argument, and what gives its value, and says whether it is the
    /// bench's own.
    pub fn of(
        numbers: Numbers,
        mut own: impl FnMut(&str, &mut dyn FnMut() -> String) -> bool,
    ) -> Self {
        let (mut set, mut threads) = (InstructionSet::best(), 1);
        let (mut cold, mut filter) = (false, Vec::new());
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().unwrap_or_default();
            match argument.as_str() {
                "--threads" => threads = value().parse().expect("a number of threads"),
                "--set" => set = value().parse().expect("an instruction set"),
                "--cold" => cold = true,
                "--bench" => {}
                other if own(other, &mut value) => {}
                _ => filter.push(argument),
            }
        }
        let peak = operations_per_nanosecond(set, numbers).unwrap_or(f64::NAN) * threads as f64;
        let unit = if matches!(numbers, Numbers::Float32) { "GFLOP/s" } else { "GOP/s" };
        println!("{set}, {threads} threads, peak {peak:.0} {unit}");
        Self { set, threads, filter, cold, peak, unit }
    }

    pub fn wants(&self, name: &str) -> bool {
        self.filter.is_empty() || self.filter.iter().any(|part| name.contains(part))
    }

    /// How many kernels with this many bytes of weights must take turns for them to be cold.
    pub fn copies(&self, bytes: usize) -> usize {
        if self.cold { (COLD_BYTES / bytes.max(1)).clamp(1, 500) } else { 1 }
    }

    /// Prints the least and the median time of many turns.
    pub fn measure(&self, name: &str, kernel: &str, operations: u64, mut turn: impl FnMut()) {
        let begin = Instant::now();
        let mut times = Vec::new();
        // Several at once, for the clock's sake, if they are short.
        let repetitions = if operations < 1_000_000 { 20 } else { 1 };
        while times.len() < 5 || begin.elapsed() < TIMEOUT {
            let start = Instant::now();
            (0..repetitions).for_each(|_| turn());
            times.push(start.elapsed() / repetitions);
        }
        times.sort_unstable();
        let nanoseconds = times[0].as_nanos().max(1) as f64;
        let median = times[times.len() / 2].as_nanos() as f64;
        let rate = operations as f64 / nanoseconds;
        println!(
            "{name:32} {kernel:32} {:10.1} us ({:.1}) {rate:7.1} {} {:5.1} %",
            nanoseconds / 1e3,
            median / 1e3,
            self.unit,
            100.0 * rate / self.peak
        );
    }
}

/// Numbers that are not special in any way.
pub fn values(count: usize) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(7);
    (0..count).map(|_| random.f32() - 0.5).collect()
}
