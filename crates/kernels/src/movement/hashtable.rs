//! [`HashtableLookup`]: rows chosen by key.
#![allow(unsafe_code)]

use crate::disjoint::DisjointOutput;
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::sharing::{Cut, for_each_part};
use crate::team::{BLOCK, Team};

/// Bytes that are copied while a key is found.
const OF_SEARCH: usize = 64;

/// Prepared HASHTABLE_LOOKUP of any number of rows. Inputs: lookups, ascending keys, and the row of each
/// key. Outputs: the row of each lookup, zeros where there is no such key, and whether there is one. The
/// first of equal keys counts.
#[derive(Debug, Clone, Copy)]
pub struct HashtableLookup {
    /// Bytes of a row.
    pub row: usize,
}

impl HashtableLookup {
    /// # Errors
    /// Keys are not ascending; nothing is written then.
    ///
    /// # Panics
    /// If there is not a row for each key, or not a row and a hit for each lookup.
    pub fn run(
        &self,
        team: &mut Team,
        lookups: &[i32],
        (keys, rows): (&[i32], &[u8]),
        output: &mut [u8],
        hits: &mut [u8],
    ) -> Result<(), WrongValue> {
        let row = self.row;
        let size = |rows: usize| rows.checked_mul(row);
        assert_eq!(Some(rows.len()), size(keys.len()), "rows of other keys");
        assert_eq!(Some(output.len()), size(lookups.len()), "an output of another size");
        assert_eq!(hits.len(), lookups.len(), "hits of another number");
        let mut pace = team.pace();
        for block in pace.blocks(keys.len(), 1) {
            // With the first one of the next block.
            let keys = &keys[block.start..keys.len().min(block.end + 1)];
            if let Some([one, next]) = keys.array_windows().find(|[one, next]| one > next) {
                return Err(WrongValue {
                    input: 1,
                    what: "order",
                    found: format!("{one} before {next}"),
                    expected: "ascending keys".to_owned(),
                });
            }
        }
        let (output, hits) = (DisjointOutput::new(output), DisjointOutput::new(hits));
        let cut = Cut { each: row.saturating_add(OF_SEARCH), least: 64 << 10, multiple: 1 };
        for_each_part(team, lookups.len(), cut, |part, mut pace| {
            for index in part {
                let first = keys.partition_point(|key| *key < lookups[index]);
                let is_hit = keys.get(first) == Some(&lookups[index]);
                // SAFETY: every lookup has its own hit and row, and every part its own lookups.
                let (hit, output) =
                    unsafe { (hits.slice(index, 1), output.slice(index * row, row)) };
                hit[0] = u8::from(is_hit);
                for start in (0..row).step_by(BLOCK) {
                    let bytes = start..row.min(start + BLOCK);
                    if pace.is_over(bytes.len()) {
                        return;
                    }
                    match is_hit {
                        true => output[bytes.clone()].copy_from_slice(&rows[first * row..][bytes]),
                        false => output[bytes].fill(0),
                    }
                }
            }
        });
        Ok(())
    }
}

impl PreparedKernel for HashtableLookup {
    fn name(&self) -> String {
        "hashtable lookup".to_owned()
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output, hits], _) = operands.split();
        self.run(team, inputs.of(0), (inputs.of(1), inputs.of(2)), output, hits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_keys_is_found_and_others_are_zeros() {
        let (keys, rows) = ([-5, 2, 2, 9], [1, 1, 2, 2, 3, 3, 4, 4]);
        let (mut output, mut hits) = ([7; 8], [7; 4]);
        let kernel = HashtableLookup { row: 2 };
        let run =
            kernel.run(&mut Team::new(2), &[2, 3, -5, 9], (&keys, &rows), &mut output, &mut hits);
        assert_eq!((run, output, hits), (Ok(()), [2, 2, 0, 0, 1, 1, 4, 4], [1, 0, 1, 1]));
    }

    #[test]
    fn keys_out_of_order_are_refused_wherever_they_are() {
        for wrong in [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 9] {
            let mut keys = vec![3; 2 * BLOCK + 10];
            keys[wrong..].fill(2);
            let kernel = HashtableLookup { row: 0 };
            let error = kernel.run(&mut Team::alone(), &[], (&keys, &[]), &mut [], &mut []);
            assert_eq!(error.map_err(|it| it.found), Err("3 before 2".to_owned()), "{wrong}");
        }
    }

    #[test]
    fn long_rows_ask_whether_to_go_on() {
        let (rows, mut output) = (vec![1; 64 * BLOCK], vec![0; 64 * BLOCK]);
        let kernel = HashtableLookup { row: 64 * BLOCK };
        for lookup in [5, 6] {
            let questions = std::sync::atomic::AtomicUsize::new(0);
            let ask = || questions.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 3;
            Team::alone().until(&ask, |team| {
                let result = kernel.run(team, &[lookup], (&[5], &rows), &mut output, &mut [0]);
                assert_eq!(result, Ok(()));
                assert!(team.is_stopped());
            });
        }
    }
}
