//! Sharing a range of elements among the threads of a team.
#![allow(unsafe_code)]

use crate::disjoint::DisjointOutput;
use crate::team::{Pace, Stop, Team, part};
use std::ops::Range;

/// Into how many tasks work is cut that would be worth this many: the same number for each thread, `by_thread`
/// at most.
pub(crate) fn even_tasks(worth: usize, threads: usize, by_thread: usize) -> usize {
    let threads = threads.max(1);
    if threads == 1 || worth < threads {
        return if threads == 1 { 1 } else { worth.max(1) };
    }
    threads * (worth / threads).min(by_thread)
}

/// Tasks for each thread, so that one that is interrupted does not hold up the rest.
pub(crate) const TASKS_BY_THREAD: usize = 4;

/// Into how many tasks to cut work of which `least` is worth a task. Less is shared too, as one task for each thread, but
/// for what takes about half a microsecond, which sharing it takes as well.
pub(crate) fn shared_tasks(work: usize, least: usize, threads: usize) -> usize {
    tasks_worth(work, [least, least / 5], threads)
}

/// Into how many tasks to cut work of which `each` is worth a task, and which is shared from `to_share` on, as one task for each
/// thread at least.
pub(crate) fn tasks_worth(work: usize, [each, to_share]: [usize; 2], threads: usize) -> usize {
    let least = if work < to_share { 1 } else { threads };
    even_tasks((work / each).max(least), threads, TASKS_BY_THREAD)
}

/// Scratch memory that no one minds, in bytes.
const SMALL_SCRATCH: usize = 1 << 20;

/// How many of these tasks have scratch memory, this number of bytes each, that is together not much more than operands of
/// this number; at least one.
pub(crate) fn affordable_tasks(tasks: usize, each: usize, operands: usize) -> usize {
    let most = SMALL_SCRATCH.max(operands.saturating_mul(4));
    tasks.min(most / each.max(1)).max(1)
}

/// Tasks take no longer than this many that are just worth it: then it is asked whether to go on.
const MOST_WORTH: usize = 64;

/// As [`even_tasks`], and more if tasks would take long.
pub(crate) fn short_tasks(worth: usize, threads: usize, by_thread: usize) -> usize {
    even_tasks(worth, threads, by_thread).max(worth / MOST_WORTH)
}

/// How a range is cut into tasks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    /// The work of each index of the range, in any unit.
    pub(crate) each: usize,
    /// The work from which on a second thread is worth waking.
    pub(crate) least: usize,
    /// Tasks begin at multiples of this.
    pub(crate) multiple: usize,
}

/// Calls `work` with parts of `0..length`: on several threads if they are worth it, and in more tasks
/// if those would take long. A part is a single index if that takes long: then `work` asks the pace that
/// it is given, now and then.
pub(crate) fn for_each_part(
    team: &mut Team,
    length: usize,
    Cut { each, least, multiple }: Cut,
    work: impl Fn(Range<usize>, Pace<'_>) + Sync,
) {
    if length > 0 && length.saturating_mul(each) < least {
        // What is found out below, where it takes a sixth of the time of the smallest kernels.
        return team.run_long(1, &|_, stop| work(0..length, Pace::new(stop)));
    }
    let worth = length.saturating_mul(each) / least.max(1);
    let tasks = short_tasks(worth, team.threads(), 2).clamp(1, length.max(1));
    let part = length.div_ceil(tasks).next_multiple_of(multiple).max(1);
    team.run_long(length.div_ceil(part), &|task, stop| {
        work(task * part..length.min((task + 1) * part), Pace::new(stop));
    });
}

/// As [`for_each_part`] of the rows of an output, which have this length: `work` is also given the elements of its rows.
pub(crate) fn for_each_rows<T: Send>(
    team: &mut Team,
    (output, length): (&mut [T], usize),
    cut: Cut,
    work: impl Fn(Range<usize>, &mut [T], Pace<'_>) + Sync,
) {
    let rows = output.len().checked_div(length).unwrap_or(0);
    let output = DisjointOutput::new(output);
    for_each_part(team, rows, cut, |part, pace| {
        // SAFETY: every row has its own elements, and every part its own rows.
        let output = unsafe { output.slice(part.start * length, part.len() * length) };
        work(part, output, pace);
    });
}

/// Calls `work` with parts of `elements` and where each begins: one part for each thread, if they are
/// worth it with at least `least` elements each, and more if those would take long.
pub fn for_each_slice<T: Send>(
    team: &mut Team,
    elements: &mut [T],
    least: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    let length = elements.len();
    let parts = short_tasks(length / least.max(1), team.threads(), 1);
    let elements = DisjointOutput::new(elements);
    team.run(parts, &|index| {
        let range = part(length, parts, index);
        // SAFETY: the parts of a range do not overlap.
        work(range.start, unsafe { elements.slice(range.start, range.len()) });
    });
}

/// Calls `work` once for each task, with as many elements of memory of its own as each is to have.
///
/// # Panics
/// If there are fewer.
pub(crate) fn for_each_task<T: Send>(
    team: &mut Team,
    tasks: usize,
    (memory, each): (&mut [T], usize),
    work: impl Fn(usize, &mut [T], &Stop) + Sync,
) {
    // Before the first task writes anything.
    let is_enough = tasks.checked_mul(each).is_some_and(|needed| needed <= memory.len());
    assert!(is_enough, "too little scratch memory");
    let memory = DisjointOutput::new(memory);
    team.run_long(tasks, &|task, stop| {
        // SAFETY: each task is run once, and these elements are no other one's.
        work(task, unsafe { memory.slice(task * each, each) }, stop);
    });
}

/// Elements from which on a second thread is worth waking: where they are only copied, where each becomes another by a few
/// instructions, and where more is done with each.
pub(crate) const ELEMENTS_OF_COPY: usize = 32 * 1024;
pub(crate) const ELEMENTS_OF_MAP: usize = 16 * 1024;
pub(crate) const ELEMENTS_OF_TASK: usize = 8 * 1024;

/// Copies as many elements as there are.
///
/// # Panics
/// If the input has another number.
pub(crate) fn copy<T: Copy + Send + Sync>(team: &mut Team, input: &[T], output: &mut [T]) {
    assert_eq!(input.len(), output.len(), "an output of another size");
    for_each_slice(team, output, ELEMENTS_OF_COPY, |start, part| {
        part.copy_from_slice(&input[start..start + part.len()]);
    });
}

/// Calls `work` with the elements of input and output from the first of each slice along the middle one of three axes on;
/// those of a slice are at distances of the last axis's size.
///
/// # Panics
/// If input or output have not as many elements as the axes.
pub(crate) fn for_each_slice_along<T: Sync + Send>(
    team: &mut Team,
    [outer, length, inner]: [usize; 3],
    least: usize,
    (input, output): (&[T], &mut [T]),
    work: impl Fn(&[T], &mut [T], &mut Pace<'_>) + Sync,
) {
    let image = length.saturating_mul(inner);
    assert_eq!(input.len(), outer.saturating_mul(image), "an input of another size");
    assert_eq!(output.len(), input.len(), "an output of another size");
    let cut = Cut { each: image, least, multiple: 1 };
    for_each_rows(team, (output, image), cut, |part, output, mut pace| {
        let input = input[part.start * image..].chunks_exact(image);
        for (input, output) in input.zip(output.chunks_exact_mut(image)) {
            for first in 0..inner {
                if pace.is_over(1) {
                    return;
                }
                work(&input[first..], &mut output[first..], &mut pace);
            }
        }
    });
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn threads_get_equal_numbers_of_tasks() {
        let tasks = |worth| even_tasks(worth, 2, 4);
        assert_eq!([0, 1, 2, 3, 5, 7, 8, 100].map(tasks), [1, 1, 2, 2, 4, 6, 8, 8]);
        assert_eq!(even_tasks(100, 1, 4), 1);
        assert_eq!(even_tasks(3, 4, 4), 3);
    }

    #[test]
    fn little_work_is_shared_and_very_little_is_not() {
        let tasks = |work| shared_tasks(work, 100, 2);
        assert_eq!([0, 19, 20, 100, 399, 400, 10_000].map(tasks), [1, 1, 2, 2, 2, 4, 8]);
        assert_eq!(shared_tasks(10_000, 100, 1), 1);
    }

    #[test]
    fn a_few_long_rows_are_one_task_each() {
        let tasks = |length, cut| {
            let count = AtomicUsize::new(0);
            for_each_part(&mut Team::new(2), length, cut, |_, _| {
                count.fetch_add(1, Ordering::Relaxed);
            });
            count.into_inner()
        };
        assert_eq!(tasks(48, Cut { each: 1 << 20, least: 8192, multiple: 1 }), 48);
        assert_eq!(tasks(48, Cut { each: usize::MAX, least: 1, multiple: 1 }), 48);
        assert_eq!(tasks(48, Cut { each: 1000, least: 8192, multiple: 1 }), 4);
        assert_eq!(tasks(48, Cut { each: 1, least: 8192, multiple: 1 }), 1);
        assert_eq!(tasks(0, Cut { each: 1, least: 1, multiple: 1 }), 0);
    }

    #[test]
    fn slices_cover_all_elements_once() {
        for threads in [1, 2, 3] {
            let mut team = Team::new(threads);
            for length in [0, 1, 9, 10, 31, 100] {
                let mut elements: Vec<usize> = (0..length).collect();
                for_each_slice(&mut team, &mut elements, 10, |start, part| {
                    assert!(part.len() >= 10.min(length));
                    for (index, element) in part.iter_mut().enumerate() {
                        assert_eq!(*element, start + index);
                        *element += 1000;
                    }
                });
                assert!(elements.iter().all(|element| *element >= 1000));
            }
        }
    }
}
