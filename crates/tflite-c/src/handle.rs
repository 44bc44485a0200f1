//! What C gets to hold of an object: a handle that only looks like a pointer.
//!
//! It is looked up and never followed, see [`nnhal_c_boundary::handle`].

use crate::border::Failure;
use nnhal_c_boundary::handle::{Dead, Handle, PLACES};
use std::sync::{Arc, LazyLock};

/// With a pointer that is no handle, the process ends, for debuggers.
static ABORTS: LazyLock<bool> =
    LazyLock::new(|| matches!(nnhal_settings::ABORT_ON_MISUSE.is_on(), Ok(Some(true))));

/// Lets C hold an object.
pub(crate) fn give<H: Handle>(object: Arc<H::Object>) -> Result<*mut H, Failure> {
    let handle = H::table().insert(object);
    let handle =
        handle.ok_or_else(|| Failure::new(format!("there are {PLACES} {} already", H::NAME)))?;
    Ok(std::ptr::without_provenance_mut(handle))
}

/// The object behind what C passed.
pub(crate) fn get<H: Handle>(handle: *const H) -> Result<Arc<H::Object>, Failure> {
    H::table().find(handle.addr()).map_err(|dead| refuse(handle, dead))
}

/// Takes the object from C. Null is nothing to delete.
pub(crate) fn take<H: Handle>(handle: *const H) -> Result<Option<Arc<H::Object>>, Failure> {
    if handle.is_null() {
        return Ok(None);
    }
    H::table().remove(handle.addr()).map(Some).map_err(|dead| refuse(handle, dead))
}

fn refuse<H: Handle>(handle: *const H, dead: Dead) -> Failure {
    let name = H::NAME;
    let failure = Failure::new(match dead {
        Dead::Freed => format!("the {name} was deleted"),
        Dead::Unknown if handle.is_null() => format!("the {name} is NULL"),
        Dead::Unknown => format!("{handle:p} is no {name}"),
    });
    if *ABORTS && !handle.is_null() {
        nnhal_c_boundary::log::say(&failure.sentence);
        std::process::abort();
    }
    failure
}
