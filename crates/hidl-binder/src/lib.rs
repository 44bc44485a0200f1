//! The HIDL interfaces of the Neural Networks HAL, 1.0 to 1.3, over kernel hwbinder: devices as services, and devices of
//! services.
//!
//! | module | contents |
//! |---|---|
//! | [`wire`] | every type of the interfaces as bytes, for writing and reading both |
//! | [`Service`] | devices that are registered with the service manager |
//! | [`client`] | devices of other processes as [`nnhal_hal::Device`] |
//!
//! What is behind the interfaces is [`nnhal_hidl::serve`], what is in front of them [`nnhal_hidl::client`]: here are only
//! stubs that are called and proxies that call.
//!
//! **A client is a process.** What it has given back, or what it had when it ended, is gone at once: the kernel releases
//! its prepared models, buffers and bursts; work of it that waits or runs ends, because it is linked to the death of its callbacks.
//!
//! **A service may end.** Calls that are running end with `DEVICE_UNAVAILABLE`, and so do preparations and executions
//! whose callbacks it held. The next call looks for it again.
//!
//! ```no_run
//! use nnhal_hidl_binder::client;
//! use nnhal_hwbinder::Process;
//!
//! let process = Process::open("/dev/hwbinder".as_ref(), Default::default())?;
//! for (name, version) in client::devices(&process)? {
//!     let device = client::open(&process, &name, Default::default())?;
//!     println!("{name}: {version}, {:?}", device.device_type());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod client;
mod interfaces;
mod names;
mod service;
mod session;
pub mod wire;

pub use interfaces::DeviceStub;
pub use service::Service;
