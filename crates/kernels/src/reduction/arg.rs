//! [`arg_extreme`]: where the greatest or least element of each slice stands.
#![allow(unsafe_code)]

use crate::disjoint::DisjointOutput;
use crate::parts::{Cut, for_each_part};
use crate::team::Team;

/// Which element is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgExtreme {
    /// ARGMAX
    Max,
    /// ARGMIN
    Min,
}

/// ARGMAX or ARGMIN of `[outer, length, inner]` along its second axis: the first one of equals, as
/// comparisons say; 0 if there is nothing.
///
/// # Panics
/// If the slices are not of these sizes.
pub fn arg_extreme<T: Copy + PartialOrd + Sync>(
    team: &mut Team,
    which: ArgExtreme,
    [outer, length, inner]: [usize; 3],
    input: &[T],
    output: &mut [i32],
) {
    let size = |length: usize| outer.checked_mul(length).and_then(|it| it.checked_mul(inner));
    assert_eq!(Some(input.len()), size(length), "an input of another size");
    assert_eq!(Some(output.len()), size(1), "an output of another size");
    let output = DisjointOutput::new(output);
    let cut = Cut { each: length * inner, least: 8192, multiple: 1 };
    for_each_part(team, outer, cut, |part, mut pace| {
        for index in part {
            let input = &input[index * length * inner..(index + 1) * length * inner];
            // SAFETY: every index has its own elements, and every part its own indexes.
            let output = unsafe { output.slice(index * inner, inner) };
            for (column, output) in output.iter_mut().enumerate() {
                if pace.is_over(1) {
                    return;
                }
                let mut best: Option<(usize, T)> = None;
                for block in pace.blocks(length, 1) {
                    let elements = input[block.start * inner + column..].iter().step_by(inner);
                    for (place, element) in block.zip(elements) {
                        let is_better = best.is_none_or(|(_, best)| match which {
                            ArgExtreme::Max => *element > best,
                            ArgExtreme::Min => *element < best,
                        });
                        if is_better {
                            best = Some((place, *element));
                        }
                    }
                }
                *output = best.map_or(0, |(place, _)| i32::try_from(place).unwrap_or(i32::MAX));
            }
        }
    });
}
