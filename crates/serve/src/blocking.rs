//! [`blocking`]: work that would keep the threads which serve connections.

use crate::error::{Error, Result};

/// Something that takes its time, on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let failed = |error: tokio::task::JoinError| Error::Internal(error.to_string());
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}
