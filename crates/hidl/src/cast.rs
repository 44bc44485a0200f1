//! [`Cast`]: an object as a newer version of its interface, `castFrom` of the generated C++.

use std::any::Any;
use std::sync::Arc;

/// A version of an interface that an object is asked for. The object provides itself as each newer version that it
/// implements, and the one that was asked for is taken.
///
/// So versions know only older ones: `provide` is a method of the oldest, and its implementations name the newer ones.
pub struct Cast<'a>(&'a mut dyn Any);

impl Cast<'_> {
    /// The object as `I`, if `provide` provides that.
    pub(crate) fn to<I: ?Sized + 'static>(provide: impl FnOnce(&mut Cast<'_>)) -> Option<Arc<I>> {
        let mut taken: Option<Arc<I>> = None;
        provide(&mut Cast(&mut taken));
        taken
    }

    /// Provides the object as `I`, such as `dyn v1_3::IDevice`.
    pub fn provide<I: ?Sized + 'static>(&mut self, object: Arc<I>) {
        if let Some(taken) = self.0.downcast_mut::<Option<Arc<I>>>() {
            *taken = Some(object);
        }
    }
}
