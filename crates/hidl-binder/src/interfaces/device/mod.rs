//! `IDevice`.

mod proxy;
mod stub;

pub(crate) use proxy::DeviceProxy;
pub use stub::DeviceStub;
