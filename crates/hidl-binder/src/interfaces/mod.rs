//! The interfaces, a module for each: its stub, an object of this process that others call, and its proxy, which calls an
//! object of another process.
//!
//! A module uses those of the interfaces whose objects its methods pass: a stub makes proxies of what it is given, a proxy
//! makes stubs of what it hands over. An object that comes back to its own process is what is behind its stub.

mod buffer;
mod burst;
mod callbacks;
mod device;
mod execution;
mod fenced;
mod preparation;
mod prepared_model;

pub(crate) use device::DeviceProxy;
pub use device::DeviceStub;

use crate::wire::Argument;
use nnhal_hidl::transport::{Return, TransportError};
use nnhal_hwbinder::error::status;
use nnhal_hwbinder::{Binder, CallError, Error, Interface, ParcelError, Reader, Remote, Writer};
use std::sync::Arc;

/// Reads the token and the arguments of a method.
macro_rules! take {
    ($arguments:ident, $interface:expr $(, $name:ident: $type:ty)* $(,)?) => {
        $arguments.expect_interface($interface.name)?;
        $(let $name = <$type as $crate::wire::Argument>::read($arguments)?;)*
    };
}

use take;

/// A reply with these results.
fn results<T: Argument>(answer: Return<T>) -> Result<Writer, CallError> {
    let mut reply = Writer::reply();
    arrived(answer)?.write(&mut reply);
    Ok(reply)
}

/// What was answered, if the call got through to the object.
fn arrived<T>(answer: Return<T>) -> Result<T, CallError> {
    answer.map_err(|error| match error {
        TransportError::DeadObject => CallError::Status(status::DEAD_OBJECT),
        TransportError::Failed(_) => CallError::Status(status::UNKNOWN_ERROR),
    })
}

/// What a call says that did not get through.
fn failed(error: Error) -> TransportError {
    match error {
        Error::Dead => TransportError::DeadObject,
        error => TransportError::Failed(error.to_string()),
    }
}

/// Calls a method that returns these results.
fn call<T: Argument>(
    remote: &Remote,
    interface: &Interface,
    code: u32,
    write: impl FnOnce(&mut Writer),
) -> Return<T> {
    call_for(remote, interface, code, write, T::read)
}

/// Calls a method whose results `read` reads.
fn call_for<T>(
    remote: &Remote,
    interface: &Interface,
    code: u32,
    write: impl FnOnce(&mut Writer),
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, ParcelError>,
) -> Return<T> {
    let mut request = Writer::request(interface.name);
    write(&mut request);
    remote.call(code, request, |reply| Ok(read(reply)?)).map_err(failed)
}

/// Calls a method that is one way.
fn call_one_way(
    remote: &Remote,
    interface: &Interface,
    code: u32,
    write: impl FnOnce(&mut Writer),
) -> Return<()> {
    let mut request = Writer::request(interface.name);
    write(&mut request);
    remote.call_one_way(code, request).map_err(failed)
}

/// An object of another process as one of these. One of this process is that which is behind its stub, if the stub is
/// of the right kind.
fn read_object<T>(
    reader: &mut Reader<'_>,
    remote: impl FnOnce(Arc<Remote>) -> T,
    local: impl FnOnce(&Binder) -> Option<T>,
) -> Result<Option<T>, ParcelError> {
    Ok(match reader.binder()? {
        None => None,
        Some(Binder::Remote(object)) => Some(remote(object)),
        Some(binder) => Some(local(&binder).ok_or(ParcelError::Unknown)?),
    })
}
