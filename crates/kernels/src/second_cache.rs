//! How much the second cache of a core holds, which decides how many rows are kept there while weights pass.

use std::fs;
use std::sync::OnceLock;

/// What is taken for granted where the system does not say: the least of today's desktop and server processors.
const LEAST_BYTES: usize = 512 << 10;

/// More is not counted on: cores share such caches.
const MOST_BYTES: usize = 4 << 20;

/// Bytes of the second cache of the first processor, as Linux tells (`Documentation/ABI/testing/sysfs-devices-system-cpu`).
pub(crate) fn bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        reported().map_or(LEAST_BYTES, |bytes| bytes.clamp(LEAST_BYTES, MOST_BYTES))
    })
}

fn reported() -> Option<usize> {
    let read = |index: u32, what: &str| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{what}");
        fs::read_to_string(path).ok()
    };
    let second = (0..8).find(|index| read(*index, "level").is_some_and(|it| it.trim() == "2"))?;
    parsed(&read(second, "size")?)
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
        assert!((LEAST_BYTES..=MOST_BYTES).contains(&bytes()));
    }
}
