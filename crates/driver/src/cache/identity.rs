//! [`Identity`]: for whom a saved compilation is.

use serde::{Deserialize, Serialize};
use std::fmt;

/// For whom a saved compilation is: it loads only where all of this is the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The device's name.
    pub driver: String,
    /// Its version string, which names the build (contract: DEV-INFO-1).
    pub version: String,
    /// The architecture, and what of it the processor can do: engines choose instructions by it.
    pub processor: String,
}

impl Identity {
    /// A driver on this machine.
    pub fn here(driver: &str, version: &str) -> Self {
        Self { driver: driver.to_owned(), version: version.to_owned(), processor: processor() }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} on {}", self.driver, self.version, self.processor)
    }
}

/// The architecture and the features found, in a fixed order.
fn processor() -> String {
    let mut name = std::env::consts::ARCH.to_owned();
    for (feature, found) in features() {
        if found {
            name.push(' ');
            name.push_str(feature);
        }
    }
    name
}

/// Features by the names that Rust has for them. The detecting macros take nothing but literals.
macro_rules! detected {
    ($detect:path: $($feature:tt)*) => {
        vec![$(($feature, { use $detect as detect; detect!($feature) })),*]
    };
}

/// The features that engines may choose instructions by, and whether the processor has them.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn features() -> Vec<(&'static str, bool)> {
    detected!(std::arch::is_x86_feature_detected:
        "sse2" "sse3" "ssse3" "sse4.1" "sse4.2" "popcnt" "lzcnt" "bmi1" "bmi2" "f16c" "fma" "avx"
        "avx2" "avxvnni" "avxvnniint8" "avxifma" "gfni" "vaes" "vpclmulqdq" "avx512f" "avx512bw"
        "avx512cd" "avx512dq" "avx512vl" "avx512ifma" "avx512vbmi" "avx512vbmi2" "avx512vnni"
        "avx512bitalg" "avx512vpopcntdq" "avx512bf16" "avx512fp16")
}

/// The features that engines may choose instructions by, and whether the processor has them.
#[cfg(target_arch = "aarch64")]
fn features() -> Vec<(&'static str, bool)> {
    detected!(std::arch::is_aarch64_feature_detected:
        "neon" "fp16" "fhm" "dotprod" "i8mm" "bf16" "sve" "sve2")
}

/// The architecture alone says enough.
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
fn features() -> Vec<(&'static str, bool)> {
    Vec::new()
}
