//! [`Constant`]: bytes of a constant, read when they are wanted.

use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use nnhal_driver::EngineError;
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
    /// Set when they are wanted for anything but packing; `None` if the origin has them.
    kept: OnceLock<Option<Vec<u8>>>,
    failure: OnceLock<EngineError>,
}

/// Where the bytes of a constant are.
#[derive(Debug)]
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
        Self { origin, length, kept: OnceLock::new(), failure: OnceLock::new() }
    }

    /// How many bytes there are.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// The bytes, for anything but packing. What cannot be read is zero, and [`Self::failure`].
    pub(crate) fn bytes(&self) -> &[u8] {
        self.kept.get_or_init(|| match self.read() {
            Cow::Borrowed(_) => None,
            Cow::Owned(bytes) => Some(bytes),
        });
        self.kept().unwrap_or_default()
    }

    /// The bytes, to be looked at once.
    pub(crate) fn bytes_once(&self) -> Cow<'_, [u8]> {
        self.kept().map_or_else(|| self.read(), Cow::Borrowed)
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
        is_parameter.then(|| self.bytes())
    }

    /// Why bytes that were wanted could not be had.
    pub(crate) fn failure(self) -> Option<EngineError> {
        self.failure.into_inner()
    }

    fn read(&self) -> Cow<'_, [u8]> {
        if let ConstantOrigin::Here(bytes) = &self.origin {
            return Cow::Borrowed(bytes);
        }
        let mut bytes = vec![0; self.length];
        self.read_to(&mut bytes);
        Cow::Owned(bytes)
    }

    /// Copies the bytes, of which there is room for as many as there are. What cannot be read is left
    /// as it is.
    pub(crate) fn read_to(&self, bytes: &mut [u8]) {
        if let Some(kept) = self.kept() {
            return bytes.copy_from_slice(kept);
        }
        let result = match &self.origin {
            ConstantOrigin::Here(from) => {
                bytes.copy_from_slice(from);
                Ok(())
            }
            ConstantOrigin::InPool(constant) => read_pool(constant, bytes),
            ConstantOrigin::Widened(halves) => {
                let (to, _) = bytes.as_chunks_mut();
                for (to, from) in to.iter_mut().zip(widened(halves)) {
                    *to = from.to_le_bytes();
                }
                Ok(())
            }
            ConstantOrigin::Packed => {
                Err(nnhal_hal::Error::failure("a constant was not saved that is wanted").into())
            }
        };
        if let Err(error) = result {
            // The first one is the one to tell.
            let _ = self.failure.set(error);
        }
    }

    /// The floats of 16 bits that it is, if it is kept as those.
    pub(super) fn halves(&self) -> Option<&[u8]> {
        match &self.origin {
            ConstantOrigin::Widened(halves) => Some(halves),
            _ => None,
        }
    }
}

/// Reads a constant that is in a pool.
fn read_pool(
    constant: &nnhal_ops::validate::Constant,
    bytes: &mut [u8],
) -> Result<(), EngineError> {
    if let Some(place) = constant.in_pool() {
        let (view, offset) = place?;
        view.read(offset, bytes)?;
    }
    Ok(())
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
