//! [`open`]: both ends of a burst in one process.

use crate::QUEUE_CAPACITY;
use crate::client::{BurstClient, Connection};
use crate::server::BurstServer;
use nnhal_hal::PreparedModel;
use std::sync::Arc;

/// A burst on a prepared model of this process: what a driver's
/// [`PreparedModel::configure_burst`] returns. It goes through queues and a thread as any other, so
/// that it behaves as any other (contract: BURST-17).
///
/// # Errors
/// If queues or a thread cannot be had.
pub fn open(prepared: Arc<dyn PreparedModel>) -> nnhal_hal::Result<BurstClient> {
    open_with_capacity(prepared, QUEUE_CAPACITY)
}

/// As [`open`], with queues that hold `capacity` data.
///
/// # Errors
/// As [`open`]; also if `capacity` is none that a queue may have, or less than 2.
pub fn open_with_capacity(
    prepared: Arc<dyn PreparedModel>,
    capacity: usize,
) -> nnhal_hal::Result<BurstClient> {
    let connection = Connection::new(capacity)?;
    let (requests, results) = (connection.requests().clone(), connection.results().clone());
    let death = connection.death();
    let at_the_end = move || death.announce();
    let server =
        BurstServer::with_end(prepared, connection.callback(), requests, results, at_the_end)?;
    Ok(connection.connect(server))
}
