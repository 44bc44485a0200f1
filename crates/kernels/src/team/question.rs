//! [`KeptQuestion`]: how a caller takes back what it asked for.

// Not the one of `sync`: the caller makes it, who knows nothing of loom.
use std::sync::Arc;

/// Says whether to stop. Asked now and then, by whichever thread.
pub type KeptQuestion = Arc<dyn Fn() -> bool + Send + Sync>;
