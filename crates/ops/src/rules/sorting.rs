//! Sorting of any number of items, which can be interrupted.

use crate::call::Call;
use crate::error::Fault;
use std::cmp::Ordering;

/// Items that are sorted in one go: about a millisecond.
const RUN: usize = 1 << 12;

/// Sorts, and leaves equal items in their order.
///
/// # Errors
/// [`Fault::OutOfMemory`], [`Fault::Interrupted`]
pub fn sort<T: Copy>(
    call: &Call<'_>,
    items: &mut Vec<T>,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Result<(), Fault> {
    for run in items.chunks_mut(RUN) {
        call.work(16 * run.len())?;
        run.sort_by(&compare);
    }
    let count = items.len();
    if count <= RUN {
        return Ok(());
    }
    let mut merged = call.room(count)?;
    let mut length = RUN;
    while length < count {
        merged.clear();
        for pair in items.chunks(2 * length) {
            let (left, right) = pair.split_at(length.min(pair.len()));
            let (mut of_left, mut of_right) = (left.iter(), right.iter());
            call.each(pair, |_| {
                let takes_right = match (of_left.as_slice().first(), of_right.as_slice().first()) {
                    (Some(left), Some(right)) => compare(right, left).is_lt(),
                    (left, _) => left.is_none(),
                };
                let next = if takes_right { of_right.next() } else { of_left.next() };
                merged.extend(next.copied());
            })?;
        }
        std::mem::swap(items, &mut merged);
        length *= 2;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Interrupt;
    use nnhal_hal::OperationType;

    /// Numbers with few different keys, and where they stood.
    fn items(count: usize) -> Vec<(u32, usize)> {
        let key = |index: usize| u32::try_from(index).unwrap().wrapping_mul(2_654_435_761) >> 22;
        (0..count).map(|index| (key(index), index)).collect()
    }

    #[test]
    fn any_number_of_items_is_sorted_and_equal_ones_keep_their_order() {
        let call = Call::new(OperationType::TopkV2, [], []);
        for count in [0, 1, 2, RUN - 1, RUN, RUN + 1, 2 * RUN, 3 * RUN + 5, 8 * RUN + 1] {
            let mut sorted = items(count);
            sort(&call, &mut sorted, |a, b| b.0.cmp(&a.0)).unwrap();
            let mut expected = items(count);
            expected.sort_by_key(|pair| std::cmp::Reverse(pair.0));
            assert_eq!(sorted, expected, "{count}");
        }
    }

    #[test]
    fn it_can_be_interrupted() {
        let stop = || true;
        let call = Call::new(OperationType::TopkV2, [], []).with_interrupt(Interrupt(&stop));
        let outcome = sort(&call, &mut items(100 * RUN), |a, b| a.0.cmp(&b.0));
        assert!(matches!(outcome, Err(Fault::Interrupted { .. })));
    }
}
