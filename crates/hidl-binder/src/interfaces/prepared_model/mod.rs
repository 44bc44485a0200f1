//! `IPreparedModel`.

mod proxy;
mod stub;

pub(super) use proxy::{PreparedModelProxy, read_model};
pub(super) use stub::{Model, PreparedModelStub};
