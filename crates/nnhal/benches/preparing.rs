//! What it takes until a model can be run: reading the file, preparing, the first run, and dropping all of it; and, for comparison,
//! the shortest of the runs behind it that take a tenth of a second. Processor time of the process and wall time, least and
//! median, in microseconds.
//!
//! ```text
//! cargo bench -p nnhal --bench preparing -- [--threads N] [--rounds N] [--cold] MODEL...
//! ```
//!
//! With `--cold` each round is a new process.
#![allow(clippy::print_stdout)] // What it is for.

use nnhal::{Model, SessionOptions};
use rustix::time::{ClockId, clock_gettime};
use std::num::NonZeroUsize;
use std::process::Command;
use std::time::{Duration, Instant};

/// Processor time and wall time, in microseconds.
type Times = [f64; 2];

const PARTS: [&str; 5] = ["import", "prepare", "first run", "later run", "drop"];

/// For how long later runs are repeated.
const REPEATED: Duration = Duration::from_millis(100);

struct Clock {
    processor: f64,
    begun: Instant,
}

impl Clock {
    fn start() -> Self {
        Self { processor: processor_time(), begun: Instant::now() }
    }

    /// Since the start, or the last time.
    fn lap(&mut self) -> Times {
        let now = Self::start();
        let wall = now.begun.duration_since(self.begun).as_secs_f64() * 1e6;
        let times = [now.processor - self.processor, wall];
        *self = now;
        times
    }
}

fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    #[allow(clippy::cast_precision_loss)] // Nanoseconds of some hours.
    let nanoseconds = (time.tv_sec * 1_000_000_000 + time.tv_nsec) as f64;
    nanoseconds / 1e3
}

fn once(path: &str, threads: NonZeroUsize) -> nnhal::Result<[Times; PARTS.len()]> {
    let mut clock = Clock::start();
    let model = Model::load(path)?;
    let imported = clock.lap();
    let session = model.session(SessionOptions::new().threads(threads.get()))?;
    let prepared = clock.lap();
    let mut runner = session.runner()?;
    let first = if runner.run().is_ok() { clock.lap() } else { [f64::NAN; 2] };
    let (begun, mut later) = (Instant::now(), [f64::INFINITY; 2]);
    while begun.elapsed() < REPEATED && runner.run().is_ok() {
        let times = clock.lap();
        later = std::array::from_fn(|it| later[it].min(times[it]));
    }
    clock.lap();
    drop((runner, session, model));
    Ok([imported, prepared, first, later, clock.lap()])
}

/// The same in a process of its own.
fn in_new_process(path: &str, threads: NonZeroUsize) -> nnhal::Result<[Times; PARTS.len()]> {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program)
        .args(["--one", "--threads", &threads.to_string(), path])
        .output()
        .expect("it can be started");
    let text = String::from_utf8(output.stdout).expect("numbers");
    let mut numbers = text.split_whitespace().map(|it| it.parse().unwrap_or(f64::NAN));
    Ok(std::array::from_fn(|_| std::array::from_fn(|_| numbers.next().unwrap_or(f64::NAN))))
}

fn least_and_median(mut times: Vec<f64>) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    (times[0], times[times.len() / 2])
}

fn main() -> nnhal::Result<()> {
    let (mut threads, mut rounds) = (NonZeroUsize::MIN, 9);
    let (mut is_cold, mut is_one, mut paths) = (false, false, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|it| it.parse().ok()).expect("a number");
        match &*argument {
            "--threads" => threads = NonZeroUsize::new(number()).expect("at least one"),
            "--rounds" => rounds = number().max(1),
            "--cold" => is_cold = true,
            "--one" => is_one = true,
            "--bench" => {}
            _ => paths.push(argument),
        }
    }
    if is_one {
        for number in once(&paths[0], threads)?.as_flattened() {
            println!("{number}");
        }
        return Ok(());
    }
    println!("{:32} {:>25} {:>25}", "", "processor: least, median", "wall: least, median");
    for path in paths {
        let name = path.rsplit('/').next().unwrap_or_default();
        let call = if is_cold { in_new_process } else { once };
        if let Err(error) = call(&path, threads) {
            println!("{name}: {error}");
            continue;
        }
        let all = (0..rounds).map(|_| call(&path, threads)).collect::<Result<Vec<_>, _>>()?;
        let row = |what: &str, of: &dyn Fn(&[Times; PARTS.len()], usize) -> f64| {
            let [processor, wall] = [0, 1]
                .map(|clock| least_and_median(all.iter().map(|times| of(times, clock)).collect()));
            println!(
                "{what:32} {:12.0} {:12.0} {:12.0} {:12.0}",
                processor.0, processor.1, wall.0, wall.1
            );
        };
        row(name, &|times, clock| times[0][clock] + times[1][clock]);
        for (part, what) in PARTS.iter().enumerate() {
            row(&format!("  {what}"), &|times, clock| times[part][clock]);
        }
    }
    Ok(())
}
