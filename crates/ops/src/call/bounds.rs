//! Time and memory within which an operation computes.

use crate::error::Fault;
use nnhal_hal::OperationType;
use std::fmt;

/// Within what an operation has to compute.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bounds<'a> {
    pub(super) interrupt: Option<Interrupt<'a>>,
    pub(super) allowance: Option<Allowance<'a>>,
}

/// Steps that a kernel takes between two questions whether it is to stop. A step is an element that
/// is read or written, or a product: some nanoseconds, so that this is about a millisecond at most.
pub(super) const WORK_BETWEEN_CHECKS: usize = 1 << 16;

/// Elements that are gone through in one go. Small enough for steps that take long, as exponentials
/// do.
pub(super) const PIECE: usize = 1 << 13;

/// Says whether an operation running is to stop, for instance at a deadline.
#[derive(Clone, Copy)]
pub struct Interrupt<'a>(pub &'a dyn Fn() -> bool);

impl fmt::Debug for Interrupt<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Interrupt")
    }
}

/// Asked before an operation takes memory: says whether it may take this many bytes more. What it has
/// taken counts until it ends, its results included.
#[derive(Clone, Copy)]
pub struct Allowance<'a>(pub &'a dyn Fn(u64) -> bool);

impl fmt::Debug for Allowance<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Allowance")
    }
}

impl Bounds<'_> {
    pub(super) fn check(self, operation: OperationType) -> Result<(), Fault> {
        match self.interrupt {
            Some(Interrupt(stop)) if stop() => Err(Fault::Interrupted { operation }),
            _ => Ok(()),
        }
    }

    /// Room for elements, which counts as taken.
    pub(super) fn room<T>(self, operation: OperationType, count: usize) -> Result<Vec<T>, Fault> {
        let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
        let out_of_memory = || Fault::OutOfMemory { operation, bytes };
        if let Some(Allowance(take)) = self.allowance
            && !take(bytes)
        {
            return Err(out_of_memory());
        }
        let mut elements = Vec::new();
        elements.try_reserve_exact(count).map_err(|_| out_of_memory())?;
        Ok(elements)
    }

    /// The first `count` of these elements.
    pub(super) fn collect<T>(
        self,
        operation: OperationType,
        count: usize,
        elements: impl IntoIterator<Item = T>,
    ) -> Result<Vec<T>, Fault> {
        let mut collected = self.room(operation, count)?;
        let mut elements = elements.into_iter().take(count);
        loop {
            let before = collected.len();
            collected.extend(elements.by_ref().take(PIECE));
            if collected.len() < before + PIECE {
                return Ok(collected);
            }
            self.check(operation)?;
        }
    }
}
