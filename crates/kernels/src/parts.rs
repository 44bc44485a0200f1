//! Sharing a range of elements among the threads of a team.

use crate::team::Team;
use std::ops::Range;

/// Calls `work` with parts of `0..length`, which begin at multiples of `multiple`, on several
/// threads if each has `least` elements at least.
pub(crate) fn for_each_part(
    team: &mut Team,
    length: usize,
    (least, multiple): (usize, usize),
    work: impl Fn(Range<usize>) + Sync,
) {
    let threads = team.threads();
    let tasks = if threads == 1 { 1 } else { (length / least.max(1)).clamp(1, 2 * threads) };
    let part = length.div_ceil(tasks).next_multiple_of(multiple).max(1);
    team.run(length.div_ceil(part), &|task| {
        work(task * part..length.min((task + 1) * part));
    });
}
