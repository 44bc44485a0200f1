//! What C gets to hold of an object: a handle that only looks like a pointer.
//!
//! A pointer that a C program has kept too long leads no one knows where. So the pointers that the
//! library hands out lead nowhere: each carries the kind of its object, a place in a [`Table`] and
//! how often that place has been used before. Whatever a program passes is looked up, never
//! followed; an object that was freed, one of another kind and an invented one are refused, always,
//! from any thread. A place whose count is used up is not used again, so no handle ever comes back.
//!
//! Whoever uses an object shares it until the call ends: another thread may free it meanwhile.
//!
//! With the environment variable `NNHAL_ABORT_ON_MISUSE=1`, a handle that is refused
//! ends the process at once, so that a debugger or a core file shows who passed it.

use crate::last_error;
use crate::outcome::{Outcome, bad_data, bad_state, null, out_of_memory};
use nnhal_runtime::Error;
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

/// Bits that say the kind of object.
const KIND_BITS: u32 = 4;
/// Bits that say the place in the table: 2^28 objects of a kind where pointers have 64 bits.
const PLACE_BITS: u32 = if usize::BITS >= 64 { 28 } else { 16 };
/// Bits that count how often the place has been used before.
const USE_BITS: u32 = usize::BITS - KIND_BITS - PLACE_BITS;
const LAST_USE: usize = (1 << USE_BITS) - 1;
const PLACES: usize = 1 << PLACE_BITS;

/// A setting that makes no sense is said by whoever asks for devices, which comes before handles.
static ABORTS: LazyLock<bool> =
    LazyLock::new(|| matches!(nnhal_settings::ABORT_ON_MISUSE.is_on(), Ok(Some(true))));

/// A type that C knows by pointers to it, and the table that its objects are in.
pub(crate) trait Handle: Sized + 'static {
    /// What is behind the handle.
    type Object: Send + Sync + 'static;
    /// The type's name in C.
    const NAME: &'static str;

    /// The table of all objects of this type.
    fn table() -> &'static Table<Self::Object>;
}

/// All existing objects of one kind.
pub(crate) struct Table<T> {
    kind: usize,
    places: RwLock<Places<T>>,
}

struct Places<T> {
    all: Vec<Place<T>>,
    /// The longest free first, so that a place's uses spread over time.
    free: VecDeque<usize>,
}

struct Place<T> {
    uses: usize,
    object: Option<Arc<T>>,
}

impl<T> Table<T> {
    /// An empty table; each has a `kind` of its own, from 1 to 15.
    pub(crate) const fn new(kind: u8) -> Self {
        assert!(kind > 0 && kind < 1 << KIND_BITS, "a kind of its own, and no handle is null");
        let places = Places { all: Vec::new(), free: VecDeque::new() };
        Self { kind: kind as usize, places: RwLock::new(places) }
    }

    fn handle(&self, place: usize, uses: usize) -> usize {
        uses << (PLACE_BITS + KIND_BITS) | place << KIND_BITS | self.kind
    }

    fn insert(&self, object: Arc<T>) -> Option<usize> {
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

    fn find(&self, handle: usize) -> Result<Arc<T>, Dead> {
        let (index, uses) = self.parts(handle)?;
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        let place = places.all.get(index).ok_or(Dead::Unknown)?;
        match &place.object {
            Some(object) if place.uses == uses => Ok(Arc::clone(object)),
            _ if place.uses > uses => Err(Dead::Freed),
            _ => Err(Dead::Unknown),
        }
    }

    fn remove(&self, handle: usize) -> Result<Arc<T>, Dead> {
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
enum Dead {
    Freed,
    Unknown,
}

/// Lets C hold an object.
pub(crate) fn give<H: Handle>(object: Arc<H::Object>) -> Outcome<*mut H> {
    let handle = H::table().insert(object).ok_or_else(|| {
        out_of_memory(format!("{PLACES} objects of type {} are there already", H::NAME))
    })?;
    Ok(std::ptr::without_provenance_mut(handle))
}

/// The object behind what C passed as `argument`.
pub(crate) fn get<H: Handle>(handle: *const H, argument: &str) -> Outcome<Arc<H::Object>> {
    if handle.is_null() {
        return Err(null(argument));
    }
    H::table().find(handle.addr()).map_err(|dead| refuse::<H>(handle, argument, dead))
}

/// Takes the object from C: the handle is dead after. Null is nothing to free.
pub(crate) fn take<H: Handle>(handle: *const H, argument: &str) -> Outcome<Option<Arc<H::Object>>> {
    if handle.is_null() {
        return Ok(None);
    }
    let object = H::table().remove(handle.addr());
    object.map(Some).map_err(|dead| refuse::<H>(handle, argument, dead))
}

/// The whole of a C function that frees an object.
pub(crate) fn free<H: Handle>(handle: *const H, function: &str, argument: &str) {
    if let Err(error) = take(handle, argument) {
        last_error::keep(function, &error);
    }
}

fn refuse<H: Handle>(handle: *const H, argument: &str, dead: Dead) -> Error {
    let error = match dead {
        Dead::Freed => bad_state(format!("{argument} is an {} that was freed", H::NAME)),
        Dead::Unknown => bad_data(format!("{argument} is {handle:p}, which is no {}", H::NAME)),
    };
    if *ABORTS {
        crate::log::say(&error.to_string());
        std::process::abort();
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnhal_runtime::ResultCode;

    struct Thing;

    static THINGS: Table<String> = Table::new(15);

    impl Handle for Thing {
        type Object = String;
        const NAME: &'static str = "Thing";

        fn table() -> &'static Table<String> {
            &THINGS
        }
    }

    #[test]
    fn a_handle_finds_its_object_until_it_is_freed() {
        let handle = give::<Thing>(Arc::new("one".to_owned())).unwrap();
        assert_eq!(*get(handle.cast_const(), "thing").unwrap(), "one");
        assert_eq!(**take(handle.cast_const(), "thing").unwrap().as_ref().unwrap(), "one");
        for _ in 0..2 {
            let error = get(handle.cast_const(), "thing").unwrap_err();
            assert_eq!(error, bad_state("thing is an Thing that was freed"));
            // The place is in use again; the old handle stays dead.
            give::<Thing>(Arc::new("two".to_owned())).unwrap();
        }
        assert_eq!(take(handle.cast_const(), "x").unwrap_err().code(), ResultCode::BadState);
    }

    #[test]
    fn null_invented_and_foreign_handles_are_distinguished() {
        let null = get::<Thing>(std::ptr::null(), "thing").unwrap_err();
        assert_eq!(null, super::null("thing"));
        assert!(take::<Thing>(std::ptr::null(), "thing").unwrap().is_none());
        for invented in [8, 15 | 7 << KIND_BITS << PLACE_BITS, usize::MAX, usize::MAX - 15] {
            let handle = std::ptr::without_provenance::<Thing>(invented);
            assert_eq!(
                get(handle, "thing").unwrap_err().code(),
                ResultCode::BadData,
                "{invented:x}"
            );
            assert_eq!(take(handle, "thing").unwrap_err().code(), ResultCode::BadData);
        }
    }

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

    #[test]
    fn an_object_outlives_its_handle_while_it_is_used() {
        let handle = give::<Thing>(Arc::new("kept".to_owned())).unwrap();
        let used = get(handle.cast_const(), "thing").unwrap();
        take(handle.cast_const(), "thing").unwrap();
        assert_eq!(*used, "kept");
    }
}
