//! A service's `IDevice` as a [`nnhal_hal::Device`].
//!
//! - **Nothing is believed.** Numbers that are no code, shapes that contradict the model, descriptions
//!   that no client could work with are `GENERAL_FAILURE` with the fact as the reason.
//! - **A service may die.** What runs then ends with `DEVICE_UNAVAILABLE`, and so does everything that was
//!   prepared before. A [`Device`] connects anew when it is used again.
//! - **Memory is sent once** where a request is executed again: from the second time on it is a reusable
//!   execution of the service (version 4), of which each prepared model keeps the last four.
//! - The interface has no words for a [`nnhal_hal::Cancellation`]: one that is thrown while the service
//!   works has an effect after that only.

mod buffer;
mod buffers;
mod burst;
mod checks;
mod descriptors;
mod device;
mod fenced;
mod link;
mod prepared;
mod reusable;

pub use device::Device;
pub use link::{Connect, Link, fixed};
