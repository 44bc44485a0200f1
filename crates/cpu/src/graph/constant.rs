//! [`Constant`]: bytes of a constant, read when they are wanted.

use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use nnhal_driver::{Budget, EngineError, MemoryUse};
use std::borrow::Cow;
use std::sync::OnceLock;

/// The bytes of a constant, little endian and packed.
///
/// Weights are mostly wanted once, to be packed; they are read for that and not kept. Whatever else
/// looks at a constant keeps its bytes, and a program that is saved keeps them too.
#[derive(Debug)]
pub(crate) struct Constant<'source> {
    origin: ConstantOrigin<'source>,
    length: usize,
    /// Asked while bytes are read.
    budget: Option<&'source Budget>,
    /// Set when they are wanted for anything but packing; `None` if the origin has them.
    kept: OnceLock<Option<Vec<u8>>>,
    failure: OnceLock<EngineError>,
}

/// Where the bytes of a constant are.
#[derive(Debug, Clone)]
pub(crate) enum ConstantOrigin<'source> {
    /// In memory that no one else writes.
    Here(Cow<'source, [u8]>),
    /// In a pool that the client may write.
    InPool(&'source nnhal_ops::validate::Constant),
    /// They are the floats of 32 bits that these floats of 16 bits are.
    Widened(Vec<u8>),
    /// Nowhere: they were packed before.
    Packed,
}

impl<'source> Constant<'source> {
    /// Of this many bytes.
    pub(crate) fn new(origin: ConstantOrigin<'source>, length: usize) -> Self {
        let (kept, failure) = (OnceLock::new(), OnceLock::new());
        Self { origin, length, budget: None, kept, failure }
    }

    /// The same, whose bytes are read as long as a budget lasts.
    pub(crate) fn within(self, budget: &'source Budget) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// The same, of which nothing has been read, for a graph within the one that has this.
    pub(super) fn for_another_graph(&self) -> Self {
        Self { budget: self.budget, ..Self::new(self.origin.clone(), self.length) }
    }

    /// Bytes of memory that [`Self::for_another_graph`] takes.
    pub(super) fn bytes_of_its_own(&self) -> usize {
        match &self.origin {
            ConstantOrigin::Here(Cow::Owned(bytes)) | ConstantOrigin::Widened(bytes) => bytes.len(),
            _ => 0,
        }
    }

    /// How many bytes there are.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// The bytes, for anything but packing; `None` if there is no memory for them. What cannot be read is
    /// zero, and [`Self::failure`].
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        if self.kept.get().is_none() {
            let kept = match self.read()? {
                Cow::Borrowed(_) => None,
                Cow::Owned(bytes) => Some(bytes),
            };
            // Whoever was first has read the same.
            let _ = self.kept.set(kept);
        }
        self.kept()
    }

    /// The bytes, to be looked at once, as [`Self::bytes`] has them.
    pub(crate) fn bytes_once(&self) -> Option<Cow<'_, [u8]>> {
        self.kept().map_or_else(|| self.read(), |bytes| Some(Cow::Borrowed(bytes)))
    }

    /// The bytes, if they need not be read.
    pub(super) fn at_hand(&self) -> Option<&[u8]> {
        match &self.origin {
            ConstantOrigin::Here(bytes) => Some(bytes),
            _ => self.kept(),
        }
    }

    /// The bytes, if they were wanted for anything but packing.
    pub(crate) fn kept(&self) -> Option<&[u8]> {
        match (self.kept.get()?, &self.origin) {
            (Some(bytes), _) => Some(bytes),
            (None, ConstantOrigin::Here(bytes)) => Some(bytes),
            (None, _) => None,
        }
    }

    /// The bytes, if they are so few that validation has looked at them. What more bytes decide is
    /// not known before it is seen that they do.
    pub(crate) fn parameter(&self) -> Option<&[u8]> {
        let is_parameter = self.length <= nnhal_ops::validate::PARAMETER_BYTES as usize
            && matches!(self.origin, ConstantOrigin::Here(_));
        is_parameter.then(|| self.bytes()).flatten()
    }

    /// Why bytes that were wanted could not be had.
    pub(crate) fn failure(self) -> Option<EngineError> {
        self.failure.into_inner()
    }

    fn read(&self) -> Option<Cow<'_, [u8]>> {
        if let ConstantOrigin::Here(bytes) = &self.origin {
            return Some(Cow::Borrowed(bytes));
        }
        let Ok(mut bytes) = bytemuck::try_zeroed_vec(self.length) else {
            self.fail_for_memory(self.length);
            return None;
        };
        self.read_to(&mut bytes);
        Some(Cow::Owned(bytes))
    }

    /// Copies the bytes, of which there is room for as many as there are. What cannot be read is left
    /// as it is.
    pub(crate) fn read_to(&self, bytes: &mut [u8]) {
        let copy = |to: &mut [u8], from: &[u8]| {
            self.by_blocks(to, |to, first| {
                to.copy_from_slice(&from[first..][..to.len()]);
                Ok(())
            })
        };
        let result = match (self.kept(), &self.origin) {
            (Some(from), _) => copy(bytes, from),
            (None, ConstantOrigin::Here(from)) => copy(bytes, from),
            (None, ConstantOrigin::InPool(constant)) => match constant.in_pool() {
                None => Ok(()),
                Some(Err(error)) => Err(error.into()),
                Some(Ok((view, offset))) => self.by_blocks(bytes, |to, from_byte| {
                    Ok(view.read(offset + from_byte as u64, to)?)
                }),
            },
            (None, ConstantOrigin::Widened(halves)) => self.by_blocks(bytes, |to, from_byte| {
                let (to, _) = to.as_chunks_mut();
                let halves = &halves[from_byte / 2..][..2 * to.len()];
                for (to, from) in to.iter_mut().zip(widened(halves)) {
                    *to = from.to_le_bytes();
                }
                Ok(())
            }),
            (None, ConstantOrigin::Packed) => {
                Err(nnhal_hal::Error::failure("a constant was not saved that is wanted").into())
            }
        };
        result.unwrap_or_else(|error| self.fail(error));
    }

    /// The floats of 32 bits that its floats of 16 bits are, as many as there are, as long as there is time.
    pub(crate) fn widen_to(&self, halves: &[u8], floats: &mut [f32]) {
        let widened = self.by_blocks(floats, |to, first| {
            widen_to(&halves[2 * first..][..2 * to.len()], to);
            Ok(())
        });
        widened.unwrap_or_else(|error| self.fail(error));
    }

    /// Fills memory block by block, as long as there is time; `fill` is given the index of the first
    /// element.
    fn by_blocks<T>(
        &self,
        all: &mut [T],
        mut fill: impl FnMut(&mut [T], usize) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        for (index, to) in all.chunks_mut(Budget::BLOCK).enumerate() {
            if index > 0 {
                self.check()?;
            }
            fill(to, index * Budget::BLOCK)?;
        }
        Ok(())
    }

    /// Whether there is time left, for loops over its elements.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        Ok(self.budget.map_or(Ok(()), Budget::check_inside)?)
    }

    /// There is no memory for this many bytes of it.
    pub(crate) fn fail_for_memory(&self, bytes: usize) {
        let (user, wanted) = (MemoryUse::Constants, bytes as u64);
        self.fail(EngineError::Allocation { user, wanted });
    }

    /// The first failure is the one to tell.
    fn fail(&self, error: EngineError) {
        let _ = self.failure.set(error);
    }
}

/// Bytes as floats of 32 bits, without a copy where they are aligned as floats are.
pub(super) fn floats(bytes: Cow<'_, [u8]>) -> Cow<'_, [f32]> {
    if cfg!(target_endian = "little")
        && let Cow::Borrowed(bytes) = bytes
        && let Ok(elements) = bytemuck::try_cast_slice(bytes)
    {
        return Cow::Borrowed(elements);
    }
    let (elements, _) = bytes.as_chunks();
    elements.iter().map(|element| f32::from_le_bytes(*element)).collect()
}

/// Floats of 16 bits as floats of 32 bits.
pub(super) fn widened(halves: &[u8]) -> Vec<f32> {
    let mut floats = vec![0.0; halves.len() / size_of::<f16>()];
    widen_to(halves, &mut floats);
    floats
}

/// The same, to where there is room for all.
pub(super) fn widen_to(halves: &[u8], floats: &mut [f32]) {
    if cfg!(target_endian = "little")
        && let Ok(bits) = bytemuck::try_cast_slice::<u8, u16>(halves)
    {
        return bits.reinterpret_cast::<f16>().convert_to_f32_slice(floats);
    }
    let (halves, _) = halves.as_chunks();
    for (to, half) in floats.iter_mut().zip(halves) {
        *to = f16::from_le_bytes(*half).to_f32();
    }
}
