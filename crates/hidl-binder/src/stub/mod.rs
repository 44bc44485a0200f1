//! What other processes call: objects of this process behind the interfaces.

mod buffer;
mod burst;
mod callbacks;
mod device;
mod fenced;
mod prepared;

pub(crate) use buffer::BufferStub;
pub(crate) use burst::{BurstCallbackStub, BurstContextStub};
pub(crate) use callbacks::{Executed, ExecutionCallbackStub, Prepared, PreparedModelCallbackStub};
pub use device::DeviceStub;
pub(crate) use fenced::FencedCallbackStub;
pub(crate) use prepared::{Model, PreparedModelStub};

use crate::wire::Argument;
use nnhal_hidl::transport::{Return, TransportError};
use nnhal_hwbinder::error::status;
use nnhal_hwbinder::{CallError, Writer};

/// Reads the token and the arguments of a method.
macro_rules! take {
    ($arguments:ident, $interface:expr $(, $name:ident: $type:ty)* $(,)?) => {
        $arguments.expect_interface($interface.name)?;
        $(let $name = <$type as $crate::wire::Argument>::read($arguments)?;)*
    };
}

pub(crate) use take;

/// A reply with these results.
pub(crate) fn results<T: Argument>(answer: Return<T>) -> Result<Writer, CallError> {
    let mut reply = Writer::reply();
    arrived(answer)?.write(&mut reply);
    Ok(reply)
}

/// What was answered, if the call got through to the object.
pub(crate) fn arrived<T>(answer: Return<T>) -> Result<T, CallError> {
    answer.map_err(|error| match error {
        TransportError::DeadObject => CallError::Status(status::DEAD_OBJECT),
        TransportError::Failed(_) => CallError::Status(status::UNKNOWN_ERROR),
    })
}
