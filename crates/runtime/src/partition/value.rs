//! Values that pass between steps, and their places.

pub(crate) use crate::memory::Backing as Pool;

/// The place of a value. Offset and length are 0 in a device's buffer.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) pool: Pool,
    pub(crate) offset: u32,
    pub(crate) length: u32,
}

/// A value.
#[derive(Clone)]
pub(crate) enum Value {
    /// Left out.
    Omitted,
    At {
        place: Place,
        /// All known.
        dimensions: Vec<u32>,
    },
}

/// Where an output is to go.
#[derive(Clone)]
pub(crate) enum Target {
    /// No one wants it.
    Omitted,
    At {
        place: Place,
        /// As far as they are known; 0 and empty where not.
        dimensions: Vec<u32>,
    },
    /// To wherever there is room.
    Free,
}
