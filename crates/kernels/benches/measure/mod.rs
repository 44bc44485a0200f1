//! What the benches of float32 kernels share: settings, timing, the peak that times are held against.
#![allow(unsafe_code, dead_code)] // Each bench uses some of it.
#![allow(clippy::cast_precision_loss)] // Times and counts, for people.

use kernels::InstructionSet;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// What was asked for on the command line.
pub struct Settings {
    pub set: InstructionSet,
    pub threads: usize,
    filter: Vec<String>,
    /// Whether weights are to come from memory, as they do in a large model.
    cold: bool,
    /// Multiplications and additions in a nanosecond, of all threads.
    peak: f64,
}

/// For how long each kernel is run.
const PATIENCE: Duration = Duration::from_millis(300);

/// More than the caches hold.
pub const COLD_BYTES: usize = 64 << 20;

impl Settings {
    pub fn from_arguments() -> Self {
        let mut settings = Self {
            set: InstructionSet::best(),
            threads: 1,
            filter: Vec::new(),
            cold: false,
            peak: 0.0,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().unwrap_or_default();
            match argument.as_str() {
                "--threads" => settings.threads = value().parse().expect("a number of threads"),
                "--set" => settings.set = value().parse().expect("an instruction set"),
                "--cold" => settings.cold = true,
                "--bench" => {}
                _ => settings.filter.push(argument),
            }
        }
        settings.peak = settings.threads as f64 * peak(settings.set);
        println!(
            "{}, {} threads, peak {:.0} GFLOP/s",
            settings.set, settings.threads, settings.peak
        );
        settings
    }

    pub fn wants(&self, name: &str) -> bool {
        self.filter.is_empty() || self.filter.iter().any(|part| name.contains(part))
    }

    /// How many kernels with so many bytes of weights must take turns for them to be cold.
    pub fn copies(&self, bytes: usize) -> usize {
        if self.cold { (COLD_BYTES / bytes.max(1)).clamp(1, 500) } else { 1 }
    }

    /// Prints the least time of many turns.
    pub fn measure(&self, name: &str, kernel: &str, operations: u64, mut turn: impl FnMut()) {
        let begin = Instant::now();
        let mut least = Duration::MAX;
        let mut turns = 0_u32;
        while turns < 5 || begin.elapsed() < PATIENCE {
            let start = Instant::now();
            turn();
            least = least.min(start.elapsed());
            turns += 1;
        }
        let nanoseconds = least.as_nanos().max(1) as f64;
        let rate = operations as f64 / nanoseconds;
        println!(
            "{name:32} {kernel:32} {:10.1} us {rate:7.1} GFLOP/s {:5.1} %",
            nanoseconds / 1e3,
            100.0 * rate / self.peak
        );
    }
}

/// Numbers that are not special in any way.
pub fn values(count: usize) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(7);
    (0..count).map(|_| random.f32() - 0.5).collect()
}

/// Multiplications and additions that a thread does in a nanosecond when nothing has to be loaded.
fn peak(set: InstructionSet) -> f64 {
    const TURNS: u32 = 20_000;
    let mut best = 0.0_f64;
    for _ in 0..100 {
        let start = Instant::now();
        let lanes = match set {
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 | InstructionSet::Avx512Vnni if set.is_available() => {
                // SAFETY: available, as was just seen.
                unsafe { multiply_512(TURNS) };
                16.0
            }
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 if set.is_available() => {
                // SAFETY: available, as was just seen.
                unsafe { multiply_256(TURNS) };
                8.0
            }
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon | InstructionSet::NeonDotprod => {
                multiply_neon(TURNS);
                4.0
            }
            _ => 0.0,
        };
        if lanes == 0.0 {
            return f64::NAN;
        }
        let operations = f64::from(TURNS) * 12.0 * lanes * 2.0;
        best = best.max(operations / start.elapsed().as_nanos() as f64);
    }
    best
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn multiply_512(turns: u32) {
    use std::arch::x86_64::*;
    let factor = black_box(_mm512_set1_ps(0.5));
    let mut sums = black_box([_mm512_set1_ps(1.0); 12]);
    for _ in 0..turns {
        for sum in &mut sums {
            *sum = _mm512_fmadd_ps(*sum, factor, factor);
        }
    }
    black_box(sums);
}

#[cfg(target_arch = "aarch64")]
fn multiply_neon(turns: u32) {
    use std::arch::aarch64::*;
    // SAFETY: every processor of the target has NEON.
    unsafe {
        let factor = black_box(vdupq_n_f32(0.5));
        let mut sums = black_box([vdupq_n_f32(1.0); 12]);
        for _ in 0..turns {
            for sum in &mut sums {
                *sum = vfmaq_f32(factor, *sum, factor);
            }
        }
        black_box(sums);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn multiply_256(turns: u32) {
    use std::arch::x86_64::*;
    let factor = black_box(_mm256_set1_ps(0.5));
    let mut sums = black_box([_mm256_set1_ps(1.0); 12]);
    for _ in 0..turns {
        for sum in &mut sums {
            *sum = _mm256_fmadd_ps(*sum, factor, factor);
        }
    }
    black_box(sums);
}
