//! [`poll_again`]: polls a future again at once that has woken itself while it was polled.

use atomic_waker::AtomicWaker;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// How often, before others have their turn: for pieces of a body of 64 KiB each, a megabyte.
const MOST: usize = 16;

/// Polls a future again at once that has woken itself while it was polled.
///
/// The two ends of a body are one task in hyper, which wakes itself for each piece. The runtime takes such a task for
/// one that gives way to others: it wakes another thread, which takes the task over, and the piece's bytes are in the
/// caches of another processor.
pub(super) fn poll_again<F: Future>(future: F) -> impl Future<Output = F::Output> {
    // In a box: a task of a connection would have room for it twice, before and after it is moved here.
    let mut future = Box::pin(future);
    let state = Arc::new(State::default());
    let waker = Waker::from(Arc::clone(&state));
    poll_fn(move |context| {
        state.task.register(context.waker());
        for _ in 0..MOST {
            state.is_polled.store(true, Ordering::SeqCst);
            // What woke it until now the poll will see.
            state.is_woken.store(false, Ordering::SeqCst);
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
            state.is_polled.store(false, Ordering::SeqCst);
            if polled.is_ready() || !state.is_woken.swap(false, Ordering::SeqCst) {
                return polled;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

/// What a future and those that wake it share.
#[derive(Default)]
struct State {
    task: AtomicWaker,
    is_polled: AtomicBool,
    is_woken: AtomicBool,
}

impl Wake for State {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // In this order, and the other way around where it is polled: one of the two sees the other.
        self.is_woken.store(true, Ordering::SeqCst);
        if !self.is_polled.load(Ordering::SeqCst) {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;

    /// Counts how often a task was woken.
    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Polls once; how often the future itself was polled for it, and how often the task was woken.
    fn polled(ready_at: usize, wakes: bool) -> (Poll<()>, usize, usize) {
        let counter = Arc::new(Counter::default());
        let mut times = 0;
        let polled = {
            let future = poll_again(poll_fn(|context| {
                times += 1;
                if wakes {
                    context.waker().wake_by_ref();
                }
                if times < ready_at { Poll::Pending } else { Poll::Ready(()) }
            }));
            let waker = Waker::from(Arc::clone(&counter));
            pin!(future).poll(&mut Context::from_waker(&waker))
        };
        (polled, times, counter.0.load(Ordering::SeqCst))
    }

    #[test]
    fn what_wakes_itself_is_polled_again_without_waking_its_task() {
        assert_eq!(polled(5, true), (Poll::Ready(()), 5, 0));
    }

    #[test]
    fn what_waits_is_polled_once() {
        assert_eq!(polled(5, false), (Poll::Pending, 1, 0));
    }

    #[test]
    fn what_wakes_itself_for_ever_gives_way_to_others() {
        assert_eq!(polled(usize::MAX, true), (Poll::Pending, MOST, 1));
    }

    #[test]
    fn a_wake_of_another_thread_is_not_lost() {
        const MESSAGES: usize = 20_000;
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let (ended, end) = mpsc::channel();
        let other = std::thread::spawn(move || {
            for index in 0..MESSAGES {
                sender.blocking_send(index).unwrap();
            }
        });
        let reader = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let mut receiver = receiver;
            let all = runtime.block_on(poll_again(async move {
                let mut count = 0;
                while let Some(index) = receiver.recv().await {
                    assert_eq!(index, count);
                    count += 1;
                }
                count
            }));
            ended.send(all).unwrap();
        });
        assert_eq!(end.recv_timeout(std::time::Duration::from_secs(60)), Ok(MESSAGES));
        other.join().unwrap();
        reader.join().unwrap();
    }
}
