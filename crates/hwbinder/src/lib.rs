//! HIDL's transport on Linux: the protocol of the kernel's hwbinder, parcels, `IBase`, and the service manager.
//!
//! For whoever offers or uses HIDL services without Android's libraries: in a static program, in a container's host, in a
//! test. The interfaces of the Neural Networks HAL over it are the crate `nnhal-hidl-binder`.
//!
//! | module | contents |
//! |---|---|
//! | [`parcel`] | [`Writer`], [`Parcel`](parcel::Parcel) and [`Reader`]: what travels; without the kernel |
//! | [`object`] | [`Object`]: what a process offers; [`Remote`]: an object of another process, and death notices; [`Binder`]: any object |
//! | [`base`] | `IBase`: ping, interfaces, hashes |
//! | [`driver`] | [`Process`]: this process as a binder device sees it, and its threads |
//! | [`simulate`] | what the kernel does to a parcel, for tests |
//! | [`manager`] | [`Manager`]: the service manager |
//!
//! **Nothing received is trusted.** A pointer is followed only where the list of objects has a buffer that the kernel
//! has copied, of the length that its holder says, at the place where it belongs; descriptors are duplicated, since
//! the kernel closes those that arrive; strings end where they say. What is wrong is refused with a status.
//!
//! **Threads.** A call is made on the thread that asks for it, which is called meanwhile if what it has called calls
//! back. Calls of others arrive on threads that the kernel asks for, up to [`Options::threads`](driver::Options).
//!
//! **What was not built**: `IMemory` and passthrough services; freezing of processes.
//!
//! ```no_run
//! use nnhal_hwbinder::{Manager, Process};
//!
//! let process = Process::open("/dev/hwbinder".as_ref(), Default::default())?;
//! for service in Manager::find(&process)?.list()? {
//!     println!("{} {}", service.interface, service.name);
//! }
//! # Ok::<(), nnhal_hwbinder::Error>(())
//! ```
//!
//! A parcel, without a kernel:
//!
//! ```
//! use nnhal_hwbinder::Writer;
//! use nnhal_hwbinder::simulate::{Delivered, Nothing};
//!
//! let mut request = Writer::request("com.example@1.0::IExample");
//! request.string("hello");
//! let delivered = Delivered::of(request);
//! let text = delivered.read(&Nothing, |reader| {
//!     reader.expect_interface("com.example@1.0::IExample")?;
//!     reader.string()
//! })?;
//! assert_eq!(text, "hello");
//! # Ok::<(), nnhal_hwbinder::ParcelError>(())
//! ```

pub mod base;
pub mod driver;
pub mod error;
pub mod manager;
pub mod object;
pub mod parcel;
pub mod simulate;

pub use driver::Process;
pub use error::{Error, ParcelError};
pub use manager::Manager;
pub use object::{Binder, CallError, Caller, DeathLink, Interface, Object, Reader, Remote, Writer};

/// What calls return.
pub type Result<T> = std::result::Result<T, Error>;

/// Where the device is on Android and in most containers.
pub const DEVICE: &str = "/dev/hwbinder";
