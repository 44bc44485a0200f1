//! The interfaces of Android's Neural Networks HAL, version by version, and adapters from and to
//! [`nnhal_hal::Device`]. For services that offer a device to clients of any version, and for whoever
//! tests or uses a driver through the interfaces.
//!
//! A module for each version holds its types and interfaces. Interfaces are traits: `IDevice` of a
//! version extends that of the version before, so whoever implements [`v1_3::IDevice`] answers all
//! methods of all versions (contract: GEN-6). Methods have the files' names in snake case
//! (`getSupportedOperations_1_2` is `get_supported_operations_1_2`), types have the files' names.
//!
//! | module | contents |
//! |---|---|
//! | [`v1_0`], [`v1_1`], [`v1_2`], [`v1_3`] | types and interfaces of the versions |
//! | [`handle`], [`memory`], [`fmq`] | `handle`, `memory` and `fmq_sync` of HIDL: descriptors and integers |
//! | [`cast`] | an object as a newer version of its interface, if it implements that |
//! | [`transport`] | what every call returns: its results, or an error if the other process is gone |
//! | [`convert`] | between each version's types and those of [`nnhal_hal`] |
//! | [`serve`] | offers a [`nnhal_hal::Device`] through the interfaces: [`serve::Device`] |
//! | [`client`] | uses a driver of the interfaces as a [`nnhal_hal::Device`] |
//! | [`tasks`] | [`tasks::Tasks`]: the threads of asynchronous methods |
//!
//! Three decisions:
//!
//! - **Enumerations are plain integers here**, as they are on the wire: a stranger sends any
//!   number. [`convert`] is where numbers become values and unknown ones are refused (contract:
//!   GEN-7). Likewise a safe union has a variant for tags that no one knows.
//! - **What is passed is lent for the call**: models, requests and handles are taken by reference,
//!   and an implementation that wants to keep a descriptor duplicates it.
//! - **There is no wire.** The traits are called within one process; a transport implements them on
//!   one side and calls them on the other.
//!
//! ```
//! use nnhal_hidl::{client, serve, v1_0};
//! use std::sync::Arc;
//! # fn some_device() -> Arc<dyn nnhal_hal::Device> { nnhal_reference::device() }
//!
//! // A driver behind the interfaces, used by a client that knows 1.0 only ...
//! let old: Arc<dyn v1_0::IDevice> = serve::Device::new(some_device());
//! assert_eq!(old.get_status()?, nnhal_hal::DeviceStatus::Available.code());
//! // ... and that client as a device again.
//! let device = client::from_v1_0("example-old", old)?;
//! assert_eq!(device.version(), nnhal_hal::HalVersion::V1_0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod cast;
pub mod checks;
pub mod client;
pub mod convert;
pub mod fmq;
pub mod handle;
pub mod memory;
mod misbehaviour;
pub mod serve;
pub mod tasks;
pub mod transport;
pub mod v1_0;
pub mod v1_1;
pub mod v1_2;
pub mod v1_3;

pub use fmq::MQDescriptor;
pub use handle::{Handle, NativeHandle};
pub use memory::HidlMemory;
pub use transport::{Return, TransportError};
