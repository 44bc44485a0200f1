//! The AIDL interface of Android's Neural Networks HAL, versions 1 to 4, over `rsbinder`.
//!
//! [`interface`] is what `rsbinder-aidl` makes of the files in `aidl/`, which are the frozen versions of
//! Android's; [`client`] uses a service as a [`nnhal_hal::Device`].

pub mod client;

/// The interface files, compiled.
#[allow(clippy::all, clippy::pedantic, missing_docs, unused_qualifications)]
pub mod interface {
    rsbinder::include_aidl!("interface");
}
