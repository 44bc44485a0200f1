//! What C gets to hold of an object: a handle that only looks like a pointer.
//!
//! A pointer that a C program has kept too long leads no one knows where. So the pointers that the
//! libraries hand out lead nowhere: each carries the kind of its object, a place in a [`Table`] and
//! how often that place has been used before. Whatever a program passes is looked up, never
//! followed; an object that was freed, one of another kind and an invented one are refused, always,
//! from any thread. A place whose count is used up is not used again, so no handle ever comes back.
//!
//! Whoever uses an object shares it until the call ends: another thread may free it meanwhile.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

/// Bits that say the kind of object.
const KIND_BITS: u32 = 4;
/// Bits that say the place in the table: 2^28 objects of a kind where pointers have 64 bits.
const PLACE_BITS: u32 = if usize::BITS >= 64 { 28 } else { 16 };
/// Bits that count how often the place has been used before.
const USE_BITS: u32 = usize::BITS - KIND_BITS - PLACE_BITS;
const LAST_USE: usize = (1 << USE_BITS) - 1;
/// The most objects of a kind.
pub const PLACES: usize = 1 << PLACE_BITS;

/// A type that C knows by pointers to it, and the table that its objects are in. [`opaque!`](crate::opaque) declares such
/// types.
pub trait Handle: Sized + 'static {
    /// What is behind the handle.
    type Object: Send + Sync + 'static;
    /// The type's name in C.
    const NAME: &'static str;

    /// The table of all objects of this type.
    fn table() -> &'static Table<Self::Object>;
}

/// Declares types that C only knows by pointers, which lead nowhere (see [`handle`](crate::handle)): the name in C, what is
/// behind it, and the number of its [`Table`].
///
/// ```
/// nnhal_c_boundary::opaque! {
///     /// A text that C holds.
///     Text: String, 3;
/// }
///
/// use nnhal_c_boundary::handle::Handle;
/// use std::sync::Arc;
///
/// let handle = Text::table().insert(Arc::new("held".to_owned())).expect("there is room");
/// assert_eq!(*Text::table().find(handle).expect("it is there"), "held");
/// assert!(Text::table().find(handle + 1).is_err());
/// ```
#[macro_export]
macro_rules! opaque {
    ($($(#[$meta:meta])* $Name:ident: $Object:ty, $kind:literal;)*) => {
        $(
            $(#[$meta])*
            #[derive(Debug)]
            #[repr(C)]
            pub struct $Name {
                nothing: [u8; 0],
            }

            impl $crate::handle::Handle for $Name {
                type Object = $Object;
                const NAME: &'static str = stringify!($Name);

                fn table() -> &'static $crate::handle::Table<$Object> {
                    static TABLE: $crate::handle::Table<$Object> = $crate::handle::Table::new($kind);
                    &TABLE
                }
            }
        )*
    };
}

/// All existing objects of one kind.
#[derive(Debug)]
pub struct Table<T> {
    kind: usize,
    places: RwLock<Places<T>>,
}

#[derive(Debug)]
struct Places<T> {
    all: Vec<Place<T>>,
    /// The longest free first, so that a place's uses spread over time.
    free: VecDeque<usize>,
}

#[derive(Debug)]
struct Place<T> {
    uses: usize,
    object: Option<Arc<T>>,
}

impl<T> Table<T> {
    /// An empty table; each has a `kind` of its own, from 1 to 15.
    pub const fn new(kind: u8) -> Self {
        assert!(kind > 0 && kind < 1 << KIND_BITS, "a kind of its own, and no handle is null");
        let places = Places { all: Vec::new(), free: VecDeque::new() };
        Self { kind: kind as usize, places: RwLock::new(places) }
    }

    fn handle(&self, place: usize, uses: usize) -> usize {
        uses << (PLACE_BITS + KIND_BITS) | place << KIND_BITS | self.kind
    }

    /// The handle of an object that is kept from now on; `None`: there are [`PLACES`] already.
    pub fn insert(&self, object: Arc<T>) -> Option<usize> {
        let mut places = self.places.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = places.free.pop_front() {
            let place = places.all.get_mut(index)?;
            place.object = Some(object);
            return Some(self.handle(index, place.uses));
        }
        let index = places.all.len();
        if index >= PLACES {
            return None;
        }
        places.all.push(Place { uses: 0, object: Some(object) });
        Some(self.handle(index, 0))
    }

    /// The object behind a handle.
    ///
    /// # Errors
    /// There is none.
    pub fn find(&self, handle: usize) -> Result<Arc<T>, Dead> {
        let (index, uses) = self.parts(handle)?;
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        let place = places.all.get(index).ok_or(Dead::Unknown)?;
        match &place.object {
            Some(object) if place.uses == uses => Ok(Arc::clone(object)),
            _ if place.uses > uses => Err(Dead::Freed),
            _ => Err(Dead::Unknown),
        }
    }

    /// Takes the object out: the handle is dead after.
    ///
    /// # Errors
    /// There is none.
    pub fn remove(&self, handle: usize) -> Result<Arc<T>, Dead> {
        let (index, uses) = self.parts(handle)?;
        let mut places = self.places.write().unwrap_or_else(PoisonError::into_inner);
        let place = places.all.get_mut(index).ok_or(Dead::Unknown)?;
        if place.uses > uses {
            return Err(Dead::Freed);
        }
        if place.uses < uses {
            return Err(Dead::Unknown);
        }
        let object = place.object.take().ok_or(Dead::Unknown)?;
        place.uses += 1;
        if place.uses <= LAST_USE {
            places.free.push_back(index);
        }
        Ok(object)
    }

    fn parts(&self, handle: usize) -> Result<(usize, usize), Dead> {
        if handle & ((1 << KIND_BITS) - 1) != self.kind {
            return Err(Dead::Unknown);
        }
        Ok((handle >> KIND_BITS & (PLACES - 1), handle >> (PLACE_BITS + KIND_BITS)))
    }
}

/// Why a handle is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dead {
    /// Its object was freed.
    Freed,
    /// It never was one of this kind.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_whose_uses_are_counted_out_is_left_alone() {
        static FEW: Table<u8> = Table::new(3);
        let handle = FEW.insert(Arc::new(1)).unwrap();
        FEW.places.write().unwrap().all[0].uses = LAST_USE;
        let last = FEW.handle(0, LAST_USE);
        assert_eq!(*FEW.find(last).unwrap(), 1);
        assert_eq!(FEW.find(handle).unwrap_err(), Dead::Freed);
        assert!(FEW.remove(last).is_ok());
        assert_eq!(FEW.find(last).unwrap_err(), Dead::Freed);
        let next = FEW.insert(Arc::new(2)).unwrap();
        assert_eq!(next, FEW.handle(1, 0), "another place");
    }
}
