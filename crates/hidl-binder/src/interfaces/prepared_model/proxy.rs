//! [`PreparedModelProxy`]: a prepared model of another process.

use super::stub::PreparedModelStub;
use crate::interfaces::burst::{BurstCallbackStub, read_burst_context};
use crate::interfaces::execution::{Executed, ExecutionCallbackStub};
use crate::interfaces::fenced::read_fenced_callback;
use crate::interfaces::{call, call_for, read_object};
use crate::names::{MODEL_1_0, MODEL_1_2, MODEL_1_3};
use crate::wire::{Argument, write_slice};
use nnhal_hidl::cast::Cast;
use nnhal_hidl::transport::Return;
use nnhal_hidl::v1_2::{IBurstCallback, IBurstContext, OutputShape, Timing};
use nnhal_hidl::v1_3::{IFencedExecutionCallback, OptionalTimePoint, OptionalTimeoutDuration};
use nnhal_hidl::{Handle, MQDescriptor, v1_0, v1_2, v1_3};
use nnhal_hwbinder::{Binder, Interface, ParcelError, Reader, Remote, Writer};
use std::sync::Arc;

/// A prepared model of another process. It has all methods; which of them the object has is for casts to ask.
pub(crate) struct PreparedModelProxy {
    pub(crate) remote: Arc<Remote>,
}

/// A prepared model of another process, or one of this one that comes back.
pub(crate) fn read_model(
    reader: &mut Reader<'_>,
) -> Result<Option<Arc<dyn v1_3::IPreparedModel>>, ParcelError> {
    read_object::<Arc<dyn v1_3::IPreparedModel>>(
        reader,
        |remote| Arc::new(PreparedModelProxy { remote }),
        |binder| binder.downcast::<PreparedModelStub>()?.model.v1_3().ok().cloned(),
    )
}

impl PreparedModelProxy {
    /// The object that a service calls, which tells the client of the service's end too.
    fn callback(&self, callback: Option<Executed>) -> Option<Binder> {
        let stub = |callback| ExecutionCallbackStub::new(callback, Arc::clone(&self.remote));
        callback.map(|callback| Binder::local(stub(callback)))
    }
}

impl v1_0::IPreparedModel for PreparedModelProxy {
    fn execute(
        &self,
        request: &v1_0::Request,
        callback: Option<Arc<dyn v1_0::IExecutionCallback>>,
    ) -> Return<i32> {
        call(&self.remote, &MODEL_1_0, 1, |writer| {
            request.write(writer);
            writer.binder(self.callback(callback.map(Executed::V1_0)));
        })
    }

    fn provide(self: Arc<Self>, cast: &mut Cast<'_>) {
        let chain = self.remote.interface_chain().unwrap_or_else(|error| {
            tracing::debug!(%error, "a prepared model does not say what it is");
            Vec::new()
        });
        let implements = |interface: Interface| chain.iter().any(|one| one == interface.name);
        if implements(MODEL_1_2) {
            cast.provide::<dyn v1_2::IPreparedModel>(self.clone());
        }
        if implements(MODEL_1_3) {
            cast.provide::<dyn v1_3::IPreparedModel>(self);
        }
    }
}

impl v1_2::IPreparedModel for PreparedModelProxy {
    fn execute_1_2(
        &self,
        request: &v1_0::Request,
        measure: i32,
        callback: Option<Arc<dyn v1_2::IExecutionCallback>>,
    ) -> Return<i32> {
        call(&self.remote, &MODEL_1_2, 2, |writer| {
            request.write(writer);
            writer.i32(measure);
            writer.binder(self.callback(callback.map(Executed::V1_2)));
        })
    }

    fn execute_synchronously(
        &self,
        request: &v1_0::Request,
        measure: i32,
    ) -> Return<(i32, Vec<OutputShape>, Timing)> {
        call(&self.remote, &MODEL_1_2, 3, |writer| {
            request.write(writer);
            writer.i32(measure);
        })
    }

    fn configure_execution_burst(
        &self,
        callback: Option<Arc<dyn IBurstCallback>>,
        request_channel: &MQDescriptor,
        result_channel: &MQDescriptor,
    ) -> Return<(i32, Option<Arc<dyn IBurstContext>>)> {
        let write = |writer: &mut Writer| {
            writer.binder(callback.map(|callback| Binder::local(BurstCallbackStub(callback))));
            request_channel.write(writer);
            result_channel.write(writer);
        };
        call_for(&self.remote, &MODEL_1_2, 4, write, |reply| {
            Ok((i32::read(reply)?, read_burst_context(reply)?))
        })
    }
}

impl v1_3::IPreparedModel for PreparedModelProxy {
    fn execute_1_3(
        &self,
        request: &v1_3::Request,
        measure: i32,
        deadline: OptionalTimePoint,
        loop_timeout_duration: OptionalTimeoutDuration,
        callback: Option<Arc<dyn v1_3::IExecutionCallback>>,
    ) -> Return<i32> {
        call(&self.remote, &MODEL_1_3, 5, |writer| {
            request.write(writer);
            (measure, deadline, loop_timeout_duration).write(writer);
            writer.binder(self.callback(callback.map(Executed::V1_3)));
        })
    }

    fn execute_synchronously_1_3(
        &self,
        request: &v1_3::Request,
        measure: i32,
        deadline: OptionalTimePoint,
        loop_timeout_duration: OptionalTimeoutDuration,
    ) -> Return<(i32, Vec<OutputShape>, Timing)> {
        call(&self.remote, &MODEL_1_3, 6, |writer| {
            request.write(writer);
            (measure, deadline, loop_timeout_duration).write(writer);
        })
    }

    fn execute_fenced(
        &self,
        request: &v1_3::Request,
        wait_for: &[Handle],
        measure: i32,
        deadline: OptionalTimePoint,
        loop_timeout_duration: OptionalTimeoutDuration,
        duration: OptionalTimeoutDuration,
    ) -> Return<(i32, Handle, Option<Arc<dyn IFencedExecutionCallback>>)> {
        let write = |writer: &mut Writer| {
            request.write(writer);
            write_slice(wait_for, writer);
            (measure, deadline, loop_timeout_duration, duration).write(writer);
        };
        call_for(&self.remote, &MODEL_1_3, 7, write, |reply| {
            let (status, fence) = Argument::read(reply)?;
            Ok((status, fence, read_fenced_callback(reply)?))
        })
    }
}
