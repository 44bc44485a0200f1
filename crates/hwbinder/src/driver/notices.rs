//! [`Notices`]: which notices of deaths the kernel was asked for.

use super::protocol::command;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// Which notices of deaths the kernel was asked for: at most one of a handle at a time, since the kernel refuses a second one without
/// saying so. An object that is let go of can be met again before its request was taken back: then who asks anew takes it
/// back. Commands are sent while this is borrowed, so that the kernel gets them in this order.
pub(super) struct Notices<T> {
    asked: HashMap<u32, (u64, Weak<T>)>,
    next: u32,
}

impl<T> Default for Notices<T> {
    fn default() -> Self {
        Self { asked: HashMap::new(), next: 0 }
    }
}

impl<T> Notices<T> {
    /// Asks for the notice of a handle's object. Returns what the notice will name. `send` takes a command and its content.
    pub(super) fn request(
        &mut self,
        handle: u32,
        object: &Arc<T>,
        mut send: impl FnMut(u32, &[u8]),
    ) -> u64 {
        self.next = self.next.wrapping_add(1);
        // Notices name it, and so the handle.
        let cookie = u64::from(self.next) << 32 | u64::from(handle);
        if let Some((old, _)) = self.asked.insert(handle, (cookie, Arc::downgrade(object))) {
            send(command::CLEAR_DEATH_NOTIFICATION, &handle_cookie(handle, old));
        }
        send(command::REQUEST_DEATH_NOTIFICATION, &handle_cookie(handle, cookie));
        cookie
    }

    /// Takes a request back, unless that was done when another was made.
    pub(super) fn clear(&mut self, handle: u32, cookie: u64, mut send: impl FnMut(u32, &[u8])) {
        if self.asked.get(&handle).is_some_and(|(asked, _)| *asked == cookie) {
            self.asked.remove(&handle);
            send(command::CLEAR_DEATH_NOTIFICATION, &handle_cookie(handle, cookie));
        }
    }

    /// Whose death a notice tells.
    pub(super) fn find(&self, cookie: u64) -> Option<Arc<T>> {
        let handle = u32::try_from(cookie & u64::from(u32::MAX)).ok()?;
        let (asked, object) = self.asked.get(&handle)?;
        if *asked == cookie { object.upgrade() } else { None }
    }
}

/// `struct binder_handle_cookie`, which is packed.
fn handle_cookie(handle: u32, cookie: u64) -> Vec<u8> {
    handle.to_le_bytes().into_iter().chain(cookie.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel keeps: of each handle the request that it has taken.
    #[derive(Default)]
    struct Kernel(HashMap<u32, u64>);

    impl Kernel {
        fn take(&mut self, code: u32, content: &[u8]) {
            let handle = u32::from_le_bytes(content[..4].try_into().unwrap());
            let cookie = u64::from_le_bytes(content[4..].try_into().unwrap());
            match code {
                // A second one is refused, and so is to take back another one.
                command::REQUEST_DEATH_NOTIFICATION => {
                    self.0.entry(handle).or_insert(cookie);
                }
                command::CLEAR_DEATH_NOTIFICATION if self.0.get(&handle) == Some(&cookie) => {
                    self.0.remove(&handle);
                }
                _ => panic!("{code:x} of {handle} {cookie:x}"),
            }
        }
    }

    #[test]
    fn an_object_that_is_met_again_before_it_was_let_go_of_is_observed() {
        let (mut kernel, mut notices) = (Kernel::default(), Notices::default());
        let first = Arc::new(1);
        let old = notices.request(7, &first, |code, content| kernel.take(code, content));
        assert_eq!(notices.find(old).as_deref(), Some(&1));
        drop(first);
        assert_eq!(notices.find(old), None);
        // Another thread is faster than the one that lets go.
        let second = Arc::new(2);
        let new = notices.request(7, &second, |code, content| kernel.take(code, content));
        notices.clear(7, old, |code, content| kernel.take(code, content));
        assert_eq!(kernel.0, HashMap::from([(7, new)]));
        assert_eq!((notices.find(new).as_deref(), notices.find(old)), (Some(&2), None));
        // The other order, and other handles.
        let other = notices.request(8, &second, |code, content| kernel.take(code, content));
        notices.clear(7, new, |code, content| kernel.take(code, content));
        assert_eq!(kernel.0, HashMap::from([(8, other)]));
        let again = notices.request(7, &second, |code, content| kernel.take(code, content));
        assert!(again != new && kernel.0 == HashMap::from([(7, again), (8, other)]));
        notices.clear(7, again, |code, content| kernel.take(code, content));
        notices.clear(8, other, |code, content| kernel.take(code, content));
        assert!(kernel.0.is_empty() && notices.asked.is_empty());
    }
}
