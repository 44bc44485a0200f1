//! What C gets to hold of an object: a handle that only looks like a pointer.
//!
//! It is looked up and never followed, see [`nnhal_c_boundary::handle`].

use crate::border::Failure;
use nnhal_c_boundary::handle::{Dead, PLACES};
use std::sync::{Arc, LazyLock};

pub(crate) use nnhal_c_boundary::handle::Table;

/// With a pointer that is no handle, the process ends, for debuggers.
static ABORTS: LazyLock<bool> =
    LazyLock::new(|| matches!(nnhal_settings::ABORT_ON_MISUSE.is_on(), Ok(Some(true))));

/// A type that C knows by pointers that lead nowhere.
pub(crate) trait Handle: Sized + 'static {
    /// What is behind the handle.
    type Object: Send + Sync + 'static;
    /// The type's name in C.
    const NAME: &'static str;

    /// The table of all objects of this type.
    fn table() -> &'static Table<Self::Object>;
}

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

/// Declares types that C only knows by pointers, which lead nowhere.
macro_rules! opaque {
    ($($(#[$meta:meta])* $Name:ident: $Object:ty, $kind:literal;)*) => {
        $(
            $(#[$meta])*
            #[derive(Debug)]
            #[repr(C)]
            pub struct $Name {
                nothing: [u8; 0],
            }

            impl crate::handle::Handle for $Name {
                type Object = $Object;
                const NAME: &'static str = stringify!($Name);

                fn table() -> &'static crate::handle::Table<$Object> {
                    static TABLE: crate::handle::Table<$Object> = crate::handle::Table::new($kind);
                    &TABLE
                }
            }
        )*
    };
}

pub(crate) use opaque;
