//! [`Windows`]: how much clients may send by HTTP/2 before it is taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that a connection may send before they are taken, of all its requests together. The least is what HTTP/2 begins with, which
/// a server cannot make less.
const LEAST: usize = 65_535;
const MOST: usize = 2 << 20;
/// Bytes of a frame that clients may send: with more, large tensors come in fewer pieces. The least is that of HTTP/2.
const SHORTEST_FRAME: usize = 16 << 10;
const LONGEST_FRAME: usize = 256 << 10;
/// A connection gets no more than this part of what is left.
const SHARE: usize = 16;

/// What clients may send by HTTP/2 before it is taken: of this, what was not taken yet is in memory, whatever the requests are
/// charged with. The first connections get much, so that large tensors come without waiting; when there are many, others get less.
#[derive(Debug)]
pub(crate) struct Windows {
    left: AtomicUsize,
}

/// What one connection may send. It is given back when dropped.
#[derive(Debug)]
pub(crate) struct Window {
    from: Arc<Windows>,
    /// Bytes of all its requests together.
    connection: usize,
}

impl Windows {
    /// For connections that together may send this many bytes; each may send [`LEAST`] in any case.
    pub(crate) fn new(all: usize) -> Arc<Self> {
        Arc::new(Self { left: AtomicUsize::new(all) })
    }

    /// For a new connection.
    pub(crate) fn open(self: &Arc<Self>) -> Window {
        let mut connection = LEAST;
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            connection = window(left / SHARE);
            left.checked_sub(cost(connection))
        });
        if taken.is_err() {
            connection = LEAST;
        }
        Window { from: Arc::clone(self), connection }
    }
}

/// The largest window that costs no more than this, or the least one.
fn window(most: usize) -> usize {
    let all = std::iter::successors(Some(MOST), |size| Some(size / 2));
    all.take_while(|size| *size > 2 * LEAST).find(|size| cost(*size) <= most).unwrap_or(LEAST)
}

/// A frame is read to its end before it counts for the window.
fn frame(connection: usize) -> usize {
    (connection / 8).clamp(SHORTEST_FRAME, LONGEST_FRAME)
}

/// Bytes of a connection beside what each has.
fn cost(connection: usize) -> usize {
    connection + frame(connection) - LEAST - SHORTEST_FRAME
}

fn size(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl Window {
    /// Bytes of all requests of the connection.
    pub(crate) fn connection(&self) -> u32 {
        size(self.connection)
    }

    /// Bytes of one request.
    pub(crate) fn stream(&self) -> u32 {
        size((self.connection / 2).max(LEAST))
    }

    /// Bytes of a frame.
    pub(crate) fn frame(&self) -> u32 {
        size(frame(self.connection))
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.from.left.fetch_add(cost(self.connection), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_connections_get_large_windows() {
        let windows = Windows::new(512 << 20);
        let all: Vec<Window> = (0..100).map(|_| windows.open()).collect();
        for window in &all {
            let sizes = (window.connection(), window.stream(), window.frame());
            assert_eq!(sizes, (2 << 20, 1 << 20, 256 << 10));
        }
    }

    #[test]
    fn sec_many_connections_together_may_send_no_more_than_was_said() {
        for most in [0, 100_000, 1 << 20, 512 << 20] {
            let windows = Windows::new(most);
            let all: Vec<Window> = (0..10_240).map(|_| windows.open()).collect();
            let least = LEAST + SHORTEST_FRAME;
            let sum: usize = all.iter().map(|it| it.connection + frame(it.connection)).sum();
            assert!(sum <= most + all.len() * least, "{most}: {sum}");
            let last = all.last().unwrap();
            assert_eq!((last.connection(), last.stream()), (65_535, 65_535));
            assert_eq!(last.frame(), 16 << 10);
            drop(all);
            assert_eq!(windows.left.load(Ordering::Relaxed), most, "it is given back");
        }
    }
}
