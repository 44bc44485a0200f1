//! [`side_by_side`]: work on megabytes, by a few threads that last no longer than it does.

use std::num::NonZero;
use std::sync::Mutex;
use std::thread;

/// Fewer items than this for a thread take less time than starting it.
const ITEMS_OF_THREAD: usize = 4;
/// Memory is no faster with more threads than this.
const MOST_THREADS: usize = 8;

/// What `make` makes of each of the items and its index, in their order. If there are many, threads help: an item should be
/// about a megabyte that is read.
///
/// # Errors
/// What `make` returns for one of the items.
///
/// ```
/// use nnhal_driver::side_by_side::side_by_side;
///
/// let squares = side_by_side(0..100_u32, |_, item| Ok::<_, ()>(item * item));
/// assert_eq!(squares.unwrap()[9], 81);
/// ```
pub fn side_by_side<T, R: Send, E: Send>(
    items: impl ExactSizeIterator<Item = T> + Send,
    make: impl Fn(usize, T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let count = items.len();
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let helpers = (count / ITEMS_OF_THREAD).min(processors).min(MOST_THREADS).saturating_sub(1);
    let items = Mutex::new(items.enumerate());
    let work = || -> Result<Vec<(usize, R)>, E> {
        let mut made = Vec::new();
        loop {
            let next = items.lock().ok().and_then(|mut items| items.next());
            let Some((index, item)) = next else { return Ok(made) };
            made.push((index, make(index, item)?));
        }
    };
    let mut made = thread::scope(|scope| {
        // A thread that the system does not start leaves its work to the others.
        let start = || thread::Builder::new().name("nnhal-read".to_owned());
        let helpers: Vec<_> =
            (0..helpers).filter_map(|_| start().spawn_scoped(scope, work).ok()).collect();
        let mut made = work()?;
        for helper in helpers {
            match helper.join() {
                Ok(its) => made.extend(its?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(made)
    })?;
    made.sort_unstable_by_key(|(index, _)| *index);
    Ok(made.into_iter().map(|(_, made)| made).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_once_and_in_order() {
        for count in [0, 1, 7, 1000] {
            let made = side_by_side((0..count).map(|it| it * 2), |index, item| {
                assert_eq!(index * 2, item);
                Ok::<_, ()>(item)
            });
            assert_eq!(made, Ok((0..count).map(|it| it * 2).collect()));
        }
        let failed = side_by_side(0..1000, |_, item| if item == 500 { Err(item) } else { Ok(()) });
        assert_eq!(failed, Err(500));
    }
}
