//! What C gets to hold of an object: a handle that only looks like a pointer.
//!
//! It is looked up and never followed, see [`nnhal_c_boundary::handle`].
//!
//! With the environment variable `NNHAL_ABORT_ON_MISUSE=1`, a handle that is refused
//! ends the process at once, so that a debugger or a core file shows who passed it.

use crate::last_error;
use crate::outcome::{Outcome, bad_data, bad_state, null, out_of_memory};
use nnhal_c_boundary::handle::{Dead, Handle, PLACES};
use nnhal_runtime::Error;
use std::sync::{Arc, LazyLock};

/// A setting that makes no sense is said by whoever asks for devices, which comes before handles.
static ABORTS: LazyLock<bool> =
    LazyLock::new(|| matches!(nnhal_settings::ABORT_ON_MISUSE.is_on(), Ok(Some(true))));

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
        nnhal_c_boundary::log::say(&error.to_string());
        std::process::abort();
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnhal_c_boundary::handle::Table;
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
        for invented in [8, 15 | 7 << 32, usize::MAX, usize::MAX - 15] {
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
    fn an_object_outlives_its_handle_while_it_is_used() {
        let handle = give::<Thing>(Arc::new("kept".to_owned())).unwrap();
        let used = get(handle.cast_const(), "thing").unwrap();
        take(handle.cast_const(), "thing").unwrap();
        assert_eq!(*used, "kept");
    }
}
