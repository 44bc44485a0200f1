//! What the caches of a core are like: how many rows are kept in the second one while weights pass, and how many of them the first one
//! has places for.

use std::fs;
use std::sync::OnceLock;

/// What is taken for granted of the second cache where the system does not say: the least of today's desktop and server processors.
const LEAST_BYTES: usize = 512 << 10;

/// More is not counted on: cores share such caches.
const MOST_BYTES: usize = 4 << 20;

/// Bytes of the second cache of the first processor, as Linux tells (`Documentation/ABI/testing/sysfs-devices-system-cpu`).
pub(crate) fn second_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let reported = read(2, "Unified", ["size"]).and_then(|[size]| parsed(&size));
        reported.map_or(LEAST_BYTES, |bytes| bytes.clamp(LEAST_BYTES, MOST_BYTES))
    })
}

/// Bytes of the third cache, if it gives a core all that a product needs of its right side as it goes, as that of AMD's processors does
/// (measured on Zen 3); 0 for others, with which that has not been measured.
pub(crate) fn streamed_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let reported = || read(3, "Unified", ["size"]).and_then(|[size]| parsed(&size));
        if is_of_amd() { reported().unwrap_or(0) } else { 0 }
    })
}

/// Whether the processor is AMD's.
fn is_of_amd() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let vendor = std::arch::x86_64::__cpuid(0);
        let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
        name.as_flattened() == b"AuthenticAMD"
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    {
        false
    }
}

/// The first cache: addresses equal modulo `span` share one set of `ways` lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct First {
    pub(crate) span: usize,
    pub(crate) ways: usize,
}

/// The first cache of the first processor, or that of most processors where the system does not say.
pub(crate) fn first() -> First {
    static FIRST: OnceLock<First> = OnceLock::new();
    *FIRST.get_or_init(|| {
        let reported = || {
            let [ways, size] = read(1, "Data", ["ways_of_associativity", "size"])?;
            let ways = ways.trim().parse().ok()?;
            let span = parsed(&size)?.checked_div(ways)?;
            (span >= 1024).then_some(First { span, ways })
        };
        reported().unwrap_or(First { span: 4096, ways: 8 })
    })
}

/// Bytes of a line.
const LINE: usize = 64;

impl First {
    /// How many lines at equal distances in bytes stay there.
    pub(crate) fn lines(self, distance: usize) -> usize {
        let aligned = 1 << distance.trailing_zeros().min(usize::BITS - 1);
        (self.span / aligned.max(LINE)).max(1).saturating_mul(self.ways)
    }

    /// Of this many rows that are read side by side, at equal distances in bytes, how many to take at most, so that lines of all of them
    /// stay there, and one that passes.
    pub(crate) fn rows(self, row_bytes: usize, most: usize) -> usize {
        if row_bytes == 0 {
            return most;
        }
        // The distance has as many factors of 2 as its lowest bit says; after this many rows they meet in one set again.
        let aligned = 1 << row_bytes.trailing_zeros().min(usize::BITS - 1);
        let until_then = (self.span / aligned).max(1);
        most.min(until_then.saturating_mul(self.ways.saturating_sub(1))).max(most / 2)
    }
}

/// The places that caches have in the system's list, the usual ones of the first and the second cache of data in front: each file
/// that is read takes some microseconds.
const PLACES: [u32; 8] = [0, 2, 1, 3, 4, 5, 6, 7];

/// What the system says of a cache.
fn read<const COUNT: usize>(
    level: u32,
    kind: &str,
    whats: [&str; COUNT],
) -> Option<[String; COUNT]> {
    let read = |place: u32, what: &str| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{place}/{what}");
        fs::read_to_string(path).ok()
    };
    let is = |place: u32, what: &str, expected: &str| {
        read(place, what).is_some_and(|found| found.trim() == expected)
    };
    let level = level.to_string();
    let mut places = PLACES.into_iter();
    let place = places.find(|place| is(*place, "level", &level) && is(*place, "type", kind))?;
    let found: Vec<String> = whats.iter().filter_map(|what| read(place, what)).collect();
    found.try_into().ok()
}

/// A size as `2048K`.
fn parsed(size: &str) -> Option<usize> {
    let size = size.trim();
    let (number, unit) = match size.strip_suffix('K') {
        Some(number) => (number, 1 << 10),
        None => (size.strip_suffix('M')?, 1 << 20),
    };
    number.parse::<usize>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_linux_writes_them() {
        assert_eq!(parsed("2048K\n"), Some(2 << 20));
        assert_eq!(parsed("1M"), Some(1 << 20));
        for other in ["", "K", "512", "-1K", "99999999999999999999K", "18446744073709551615K"] {
            assert_eq!(parsed(other), None, "{other}");
        }
    }

    #[test]
    fn it_is_within_bounds() {
        assert!((LEAST_BYTES..=MOST_BYTES).contains(&second_bytes()));
        assert!(first().span >= 1024 && first().ways > 0);
    }

    #[test]
    fn lines_that_meet_in_one_set_are_few() {
        let first = First { span: 4096, ways: 8 };
        for (distance, lines) in
            [(4, 512), (64, 512), (96, 512), (128, 256), (576, 512), (2048, 16), (4096, 8), (0, 8)]
        {
            assert_eq!(first.lines(distance), lines, "{distance}");
        }
    }

    #[test]
    fn rows_that_meet_in_one_set_are_fewer_than_its_ways() {
        let first = First { span: 4096, ways: 8 };
        for (row_bytes, rows) in
            [(0, 14), (64, 14), (100, 14), (2048, 14), (6144, 14), (4096, 7), (8192, 7), (12288, 7)]
        {
            assert_eq!(first.rows(row_bytes, 14), rows, "{row_bytes}");
        }
        assert_eq!(first.rows(4096, 6), 6);
        assert_eq!(First { span: 4096, ways: 12 }.rows(1 << 20, 14), 11);
        // Not fewer than half, for which weights would be read too often.
        assert_eq!(First { span: 4096, ways: 2 }.rows(4096, 14), 7);
    }
}
