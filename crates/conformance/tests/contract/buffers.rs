//! A buffer that keeps the contract but for one [`Breach`].

use crate::broken::{Breach, FAILURE, INVALID, NONE};
use nnhal_hidl::convert::Convert as _;
use nnhal_hidl::v1_3::IBuffer;
use nnhal_hidl::{HidlMemory, Return};
use std::sync::{Arc, Mutex};

/// A buffer, but for one breach.
pub struct BrokenBuffer {
    /// None of a buffer that was never allocated.
    pub inner: Option<Arc<dyn IBuffer>>,
    pub breach: Breach,
    /// What was given first.
    first: Mutex<Option<(u64, Vec<u32>)>>,
}

impl BrokenBuffer {
    pub fn new(inner: Option<Arc<dyn IBuffer>>, breach: Breach) -> Arc<Self> {
        Arc::new(Self { inner, breach, first: Mutex::default() })
    }

    /// Whether this is what was given first, by what counts.
    fn is_as_first(&self, size: u64, dimensions: &[u32]) -> bool {
        let mut first = self.first.lock().unwrap();
        let (first_size, first_dimensions) =
            first.get_or_insert_with(|| (size, dimensions.to_vec()));
        match self.breach {
            Breach::KeepsItsDimensions => *first_dimensions == dimensions,
            Breach::KeepsItsSize => *first_size == size,
            _ => true,
        }
    }
}

impl IBuffer for BrokenBuffer {
    fn copy_to(&self, dst: &HidlMemory) -> Return<i32> {
        let Some(inner) = &self.inner else { return Ok(NONE) };
        if self.breach == Breach::KeepsItsSize && !self.is_as_first(dst.size, &[]) {
            return Ok(INVALID);
        }
        let status = inner.copy_to(dst)?;
        Ok(match self.breach {
            Breach::AnySizeIsFine if status == INVALID => NONE,
            Breach::AnyMemoryIsFine if dst.to_canonical().is_err() => NONE,
            Breach::EmptyIsInvalid if status == FAILURE => INVALID,
            _ => status,
        })
    }

    fn copy_from(&self, src: &HidlMemory, dimensions: &[u32]) -> Return<i32> {
        let Some(inner) = &self.inner else { return Ok(NONE) };
        if self.breach == Breach::KeepsAfterFailures && src.size != 16 {
            return Ok(INVALID);
        }
        let status = inner.copy_from(src, dimensions)?;
        let is_odd = status == NONE && self.breach == Breach::KeepsItsDimensions;
        if is_odd && !self.is_as_first(src.size, dimensions) {
            return Ok(INVALID);
        }
        Ok(match self.breach {
            Breach::AnySizeIsFine if status == INVALID => NONE,
            _ => status,
        })
    }
}
