//! What it costs to share work: rounds of tasks that do nothing, and steps that read what the step before has written,
//! on one thread and on two. The aim is less than a microsecond for a step.
//!
//!     cargo bench -p nnhal-kernels --bench team
#![allow(clippy::print_stdout)] // What it is for.
#![allow(clippy::cast_precision_loss)] // Times, for people.

use nnhal_kernels::{Team, for_each_slice};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Rounds between two looks at the clock; a plan has some tens of steps.
const ROUNDS: u32 = 64;

/// The least and the median time of a round, in nanoseconds.
fn time(mut round: impl FnMut()) -> (f64, f64) {
    let begun = Instant::now();
    let mut times = Vec::new();
    while begun.elapsed() < Duration::from_millis(500) {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            round();
        }
        times.push(start.elapsed().as_nanos() as f64 / f64::from(ROUNDS));
    }
    times.sort_by(f64::total_cmp);
    (times[0], times[times.len() / 2])
}

fn main() {
    println!("{:40} {:>8} {:>10} {:>10}", "a step", "threads", "least ns", "median ns");
    for threads in [1, 2] {
        let mut team = Team::new(threads);
        let show = |name: String, (least, median): (f64, f64)| {
            println!("{name:40} {threads:8} {least:10.0} {median:10.0}");
        };
        for tasks in [2, 8, 32] {
            let timed = time(|| {
                team.run(tasks, &|task| {
                    black_box(task);
                });
            });
            show(format!("{tasks} tasks of nothing"), timed);
        }
        for kib in [4, 32, 128] {
            let mut values = vec![1.0_f32; kib << 8];
            let timed = time(|| {
                for_each_slice(&mut team, &mut values, 256, |_, part| {
                    for value in part {
                        *value *= 1.000_001;
                    }
                });
            });
            show(format!("{kib} KiB read and written"), timed);
        }
    }
}
