//! Bursts.

use super::guarded;
use super::status::{Answer, NONE};
use crate::convert::{ConversionError, Convert};
use crate::fmq::MQDescriptor;
use crate::transport::{Return, TransportError};
use crate::v1_2::{IBurstCallback, IBurstContext};
use nnhal_burst::{BurstContext, BurstServer, MessageQueue};
use nnhal_hal::client::Holding;
use nnhal_hal::{Error, ErrorStatus, Memory};
use std::sync::Arc;

/// Bytes that a datum of a queue can take here: those that it has there, and what is made of it.
const BYTES_OF_DATUM: u64 = 128;

/// Begins a burst (contract: BURST-1). The client says how long its queues are, so that what a packet of that length takes counts
/// as its own.
pub(super) fn configure(
    model: Arc<dyn nnhal_hal::PreparedModel>,
    callback: Option<Arc<dyn IBurstCallback>>,
    requests: &MQDescriptor,
    results: &MQDescriptor,
) -> (i32, Option<Arc<dyn IBurstContext>>) {
    let server = guarded(|| {
        let callback = callback.ok_or_else(|| Error::invalid("the callback is null"))?;
        let duplicated = |queue: &MQDescriptor| {
            queue.to_burst().map_err(|error| ConversionError::duplicate(&error))
        };
        let requests = MessageQueue::open(duplicated(requests)?)?;
        let results = MessageQueue::open(duplicated(results)?)?;
        let data = (requests.capacity() as u64).saturating_add(results.capacity() as u64);
        let bytes = data.saturating_mul(BYTES_OF_DATUM);
        let held = model.client().hold(Holding::Memory, bytes)?;
        let callback = Arc::new(Callback(callback));
        // The burst may go on for a while when the client lets go of it.
        BurstServer::with_end(model, callback, requests, results, move || drop(held))
    });
    match server {
        Ok(server) => (NONE, Some(Arc::new(Context(server)))),
        Err(error) => (Answer::Plain.refuse(&error), None),
    }
}

/// The service's end of a burst.
struct Context(BurstServer);

impl IBurstContext for Context {
    fn free_memory(&self, slot: i32) -> Return<()> {
        self.0.free_memory(slot);
        Ok(())
    }

    fn ping(&self) -> Return<()> {
        if self.0.is_alive() { Ok(()) } else { Err(TransportError::DeadObject) }
    }
}

/// The client's, whose memory comes as HIDL passes it.
struct Callback(Arc<dyn IBurstCallback>);

impl nnhal_burst::BurstCallback for Callback {
    fn get_memories(&self, slots: &[i32]) -> nnhal_hal::Result<Vec<Memory>> {
        let (status, memories) = self.0.get_memories(slots)?;
        match ErrorStatus::from_code(status) {
            Ok(ErrorStatus::None) => {}
            Ok(status) => return Err(Error::new(status, "the client does not give its memory")),
            Err(unknown) => return Err(Error::failure(unknown)),
        }
        // Before anything is made of it (contract: BURST-7).
        if memories.len() != slots.len() {
            let found = memories.len();
            return Err(Error::failure(format!("{found} memories for {} slots", slots.len())));
        }
        memories.iter().map(|memory| Ok(memory.to_canonical()?)).collect()
    }
}
