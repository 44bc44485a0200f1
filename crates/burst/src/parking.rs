//! [`park`]: bursts that have had nothing to do for a while share a thread.
//!
//! A burst that is used has a thread of its own, which sleeps in the futex of its queue and is quick.
//! When nothing comes, it is parked: its thread ends, and one thread sleeps in the futexes of up to 127
//! parked bursts (`futex_waitv`, Linux 5.16). A burst for which something comes gets a thread again. On
//! older systems each burst keeps its thread.

use crate::queue::any::{Armed, Bell, MOST, can_wait_any, wait_any};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// Until it is tried again to start a thread.
const PAUSE: Duration = Duration::from_millis(10);

/// What can be parked.
pub(crate) trait Park: Sized + Send + 'static {
    /// Whether it has nothing left to do but to be dropped.
    fn is_over(&self) -> bool;

    /// Prepares to sleep: a value for [`Self::armed`]; none if there is something to do.
    fn arm(&self) -> Option<u32>;

    /// What to sleep on; none if there is nothing that could wake it.
    fn armed(&self, value: u32) -> Option<Armed<'_>>;

    /// Goes on, on a thread of its own.
    ///
    /// # Errors
    /// Itself, if there is no thread.
    fn resume(self) -> Result<(), Self>;
}

/// All that is parked of one kind.
pub(crate) struct Parking<P> {
    places: Mutex<Vec<Arc<Place<P>>>>,
    /// Sleeping has failed, or cannot be done.
    is_unusable: AtomicBool,
    is_possible: OnceLock<bool>,
}

/// A thread that sleeps for several.
struct Place<P> {
    bell: Bell,
    arrivals: Mutex<Arrivals<P>>,
}

struct Arrivals<P> {
    new: Vec<P>,
    /// With those that the thread has.
    count: usize,
}

/// Something that is parked.
struct Parked<P> {
    item: P,
    /// When it was looked at last.
    value: Option<u32>,
}

impl<P: Park> Parking<P> {
    pub(crate) const fn new() -> Self {
        Self {
            places: Mutex::new(Vec::new()),
            is_unusable: AtomicBool::new(false),
            is_possible: OnceLock::new(),
        }
    }

    /// Whether anything can be parked on this system.
    pub(crate) fn is_usable(&self) -> bool {
        !self.is_unusable.load(Ordering::Relaxed) && *self.is_possible.get_or_init(can_wait_any)
    }

    /// Parks something that has nothing to do.
    ///
    /// # Errors
    /// Itself, if there is no thread for it.
    pub(crate) fn park(&'static self, item: P) -> Result<(), P> {
        if !self.is_usable() {
            return Err(item);
        }
        let mut places = lock(&self.places);
        for place in &*places {
            let mut arrivals = lock(&place.arrivals);
            // One word is the bell's.
            if arrivals.count < MOST - 1 {
                arrivals.count += 1;
                arrivals.new.push(item);
                drop(arrivals);
                place.bell.ring();
                return Ok(());
            }
        }
        let arrivals = Mutex::new(Arrivals { new: vec![item], count: 1 });
        let place = Arc::new(Place { bell: Bell::default(), arrivals });
        let of_thread = Arc::clone(&place);
        let spawned = thread::Builder::new()
            .name("nnhal-parked".to_owned())
            .spawn(move || self.watch(&of_thread));
        if spawned.is_err() {
            let item = lock(&place.arrivals).new.pop();
            return item.map_or(Ok(()), Err);
        }
        places.push(place);
        Ok(())
    }

    /// What a thread does that sleeps for others.
    fn watch(&self, place: &Arc<Place<P>>) {
        let mut parked: Vec<Parked<P>> = Vec::new();
        loop {
            // First, so that who comes after it is not overlooked.
            let bell = place.bell.arm();
            let new = std::mem::take(&mut lock(&place.arrivals).new);
            parked.extend(new.into_iter().map(|item| Parked { item, value: None }));
            let before = parked.len();
            let mut is_short_of_threads = false;
            let mut kept = Vec::with_capacity(before);
            for Parked { item, value } in parked.drain(..) {
                if item.is_over() {
                    let _ = catch_unwind(AssertUnwindSafe(|| drop(item)));
                    continue;
                }
                let now = item.arm();
                // A word that changes and brings nothing is its own burst's problem.
                let is_quiet = now.is_some() && (value.is_none() || value == now);
                if is_quiet && self.is_usable() {
                    kept.push(Parked { item, value: now });
                } else if let Err(item) = item.resume() {
                    is_short_of_threads = true;
                    kept.push(Parked { item, value: None });
                }
            }
            parked = kept;
            lock(&place.arrivals).count -= before - parked.len();
            if is_short_of_threads {
                thread::sleep(PAUSE);
                continue;
            }
            let armed = parked.iter().filter_map(|it| it.item.armed(it.value?));
            let Some(bell) = bell else { continue };
            let words: Vec<_> = armed.chain([bell]).collect();
            if wait_any(&words, Duration::MAX).is_err() {
                self.is_unusable.store(true, Ordering::Relaxed);
            }
            if parked.is_empty() && self.forget(place) {
                return;
            }
        }
    }

    /// Takes a place away that nothing is in.
    fn forget(&self, place: &Arc<Place<P>>) -> bool {
        let mut places = lock(&self.places);
        let is_empty = lock(&place.arrivals).count == 0;
        if is_empty {
            places.retain(|it| !Arc::ptr_eq(it, place));
        }
        is_empty
    }
}

/// Nothing is left half done under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
