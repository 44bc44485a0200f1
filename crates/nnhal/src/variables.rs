//! [`Variables`]: resource variables that several runners of a file share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The resource variables of a file, for runners of its signatures, or of one for several shapes:
/// [`Runner::share`](crate::Runner::share). Their runs wait for each other.
///
/// ```
/// # let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/digits/digits_int8.tflite");
/// # let session = nnhal::Model::load(file)?.session(nnhal::SessionOptions::new())?;
/// let variables = nnhal::Variables::default();
/// let (mut first, mut second) = (session.runner()?, session.runner()?);
/// first.share(&variables)?;
/// second.share(&variables)?;
/// # Ok::<(), nnhal::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Variables(Arc<Mutex<Shared>>);

/// The values after the last run.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// By name; what is not here is what it is at first.
    pub(crate) values: HashMap<String, Value>,
    /// The runner that has them already.
    pub(crate) last: Option<u64>,
}

/// One variable's value.
#[derive(Debug)]
pub(crate) struct Value {
    /// The operand that holds it.
    pub(crate) operand: nnhal_hal::Operand,
    pub(crate) bytes: Vec<u8>,
}

impl Variables {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
