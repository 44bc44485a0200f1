//! What this process calls: interfaces in front of objects of other processes.

mod burst;
mod callbacks;
mod device;
mod prepared;

pub(crate) use callbacks::{ExecutionCallbackProxy, PreparedModelCallbackProxy};
pub(crate) use device::DeviceProxy;
pub(crate) use prepared::PreparedModelProxy;

use crate::session::Session;
use crate::stub::{BurstCallbackStub, BurstContextStub, FencedCallbackStub};
use crate::wire::Argument;
use burst::{BurstCallbackProxy, BurstContextProxy};
use nnhal_hidl::transport::{Return, TransportError};
use nnhal_hidl::{v1_2, v1_3};
use nnhal_hwbinder::{Binder, Error, Interface, ParcelError, Reader, Remote, Writer};
use prepared::{BufferProxy, FencedCallbackProxy};
use std::sync::Arc;

/// What a call says that did not get through.
pub(crate) fn failed(error: Error) -> TransportError {
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

pub(crate) use prepared::read_model;

/// The callback of a preparation, of another process: one that uses its own service does so without a transport.
pub(crate) fn read_prepared_callback(
    reader: &mut Reader<'_>,
    session: &Arc<Session>,
) -> Result<Option<Arc<PreparedModelCallbackProxy>>, ParcelError> {
    let proxy = |remote| Arc::new(PreparedModelCallbackProxy::new(remote, Arc::clone(session)));
    read_object(reader, proxy, |_| None)
}

pub(crate) fn read_execution_callback(
    reader: &mut Reader<'_>,
    session: &Arc<Session>,
) -> Result<Option<Arc<ExecutionCallbackProxy>>, ParcelError> {
    let proxy = |remote| Arc::new(ExecutionCallbackProxy::new(remote, Arc::clone(session)));
    read_object(reader, proxy, |_| None)
}

pub(crate) fn read_burst_callback(
    reader: &mut Reader<'_>,
) -> Result<Option<Arc<dyn v1_2::IBurstCallback>>, ParcelError> {
    read_object::<Arc<dyn v1_2::IBurstCallback>>(
        reader,
        |remote| Arc::new(BurstCallbackProxy(remote)),
        |binder| Some(Arc::clone(&binder.downcast::<BurstCallbackStub>()?.0)),
    )
}

fn read_burst_context(
    reader: &mut Reader<'_>,
) -> Result<Option<Arc<dyn v1_2::IBurstContext>>, ParcelError> {
    read_object::<Arc<dyn v1_2::IBurstContext>>(
        reader,
        |remote| Arc::new(BurstContextProxy(remote)),
        |binder| Some(Arc::clone(&binder.downcast::<BurstContextStub>()?.context)),
    )
}

fn read_buffer(reader: &mut Reader<'_>) -> Result<Option<Arc<dyn v1_3::IBuffer>>, ParcelError> {
    read_object::<Arc<dyn v1_3::IBuffer>>(reader, |remote| Arc::new(BufferProxy(remote)), |_| None)
}

fn read_fenced_callback(
    reader: &mut Reader<'_>,
) -> Result<Option<Arc<dyn v1_3::IFencedExecutionCallback>>, ParcelError> {
    read_object::<Arc<dyn v1_3::IFencedExecutionCallback>>(
        reader,
        |remote| Arc::new(FencedCallbackProxy(remote)),
        |binder| Some(Arc::clone(&binder.downcast::<FencedCallbackStub>()?.callback)),
    )
}
