//! [`OpenRequests`]: how many requests of a connection are not answered yet, and of all connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many requests of all connections are not answered yet, and how many there may be.
#[derive(Debug)]
pub(crate) struct AllRequests {
    count: AtomicUsize,
    most: usize,
}

/// How many requests of a connection are not answered yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenRequests {
    of_connection: Arc<AtomicUsize>,
    all: Arc<AllRequests>,
}

impl Default for AllRequests {
    /// Any number.
    fn default() -> Self {
        Self { count: AtomicUsize::new(0), most: usize::MAX }
    }
}

impl AllRequests {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { count: AtomicUsize::new(0), most })
    }

    /// Those of a new connection.
    pub(crate) fn of_connection(self: &Arc<Self>) -> OpenRequests {
        OpenRequests { of_connection: Arc::default(), all: Arc::clone(self) }
    }
}

impl OpenRequests {
    /// One more, until what is given is dropped.
    pub(crate) fn open(&self) -> OpenRequest {
        let others = self.of_connection.fetch_add(1, Ordering::Relaxed);
        let before = self.all.count.fetch_add(1, Ordering::Relaxed);
        // Who has no other one open is answered in any case: connections have their own limit.
        OpenRequest { is_too_many: others > 0 && before >= self.all.most, of: self.clone() }
    }

    /// Whether all are answered.
    pub(crate) fn is_empty(&self) -> bool {
        self.of_connection.load(Ordering::Relaxed) == 0
    }
}

/// A request that is not answered yet.
#[derive(Debug)]
pub(crate) struct OpenRequest {
    of: OpenRequests,
    /// Whether there were as many as there may be.
    pub(crate) is_too_many: bool,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.of.of_connection.fetch_sub(1, Ordering::Relaxed);
        self.of.all.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_beyond_the_limit_each_connection_has_one_request() {
        let all = AllRequests::new(3);
        let [one, other] = [all.of_connection(), all.of_connection()];
        let mut open: Vec<OpenRequest> = (0..4).map(|_| one.open()).collect();
        let are: Vec<bool> = open.iter().map(|it| it.is_too_many).collect();
        assert_eq!(are, [false, false, false, true]);
        let first = other.open();
        assert!(!first.is_too_many && other.open().is_too_many && !other.is_empty());
        drop(first);
        assert!(other.is_empty());
        open.truncate(2);
        assert!(!one.open().is_too_many, "there is room again");
    }
}
