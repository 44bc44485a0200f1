//! The AIDL interface of Android's Neural Networks HAL, versions 1 to 4, and adapters from and to
//! [`nnhal_hal::Device`]: for services that offer a device to other processes, and for their clients.
//!
//! | module | contents |
//! |---|---|
//! | [`interface`] | the interface files, compiled by `rsbinder-aidl` |
//! | [`convert`] | between their types and those of [`nnhal_hal`] |
//! | [`serve`] | offers a [`nnhal_hal::Device`] as `IDevice`: [`serve::device`] |
//! | [`client`] | uses an `IDevice` as a [`nnhal_hal::Device`] |
//! | [`binder`] | the interface over the kernel's binder |
//! | [`socket`] | the interface over Unix sockets: binder's protocol for sockets, without the kernel's binder |
//! | [`version`] | the interface's versions, with the hashes that they are frozen by |
//!
//! A device behind the interface and in front of it again, in one process:
//!
//! ```
//! use nnhal_aidl::{client, serve, version::Version};
//! # fn some_device() -> std::sync::Arc<dyn nnhal_hal::Device> { nnhal_reference::device() }
//!
//! let service = serve::device(some_device(), Version::V4, serve::Guests::one());
//! let device = client::Device::new("example", client::fixed(service))?;
//! # use nnhal_hal::Device;
//! assert_eq!(device.version(), nnhal_hal::HalVersion::FeatureLevel7);
//! # Ok::<(), nnhal_hal::Error>(())
//! ```

pub mod binder;
pub mod client;
pub mod convert;
mod lines;
mod references;
pub mod serve;
pub mod socket;
mod status;
pub mod version;

/// The interface files, compiled.
#[allow(clippy::all, clippy::pedantic, deprecated, missing_docs, unused_qualifications)]
pub mod interface {
    rsbinder::include_aidl!("interface");

    pub use self::android::hardware::common;
    pub use self::android::hardware::graphics;
    pub use self::android::hardware::neuralnetworks as nn;
    pub use self::org::nnhal;
}

pub use status::RemoteFailure;
