//! [`HidlMemory`]

use super::{ConversionError, Convert};
use crate::handle::Handle;
use crate::memory::HidlMemory;
use nnhal_hal::Memory;
use std::os::fd::OwnedFd;

impl Convert for HidlMemory {
    type Canonical = Memory;

    /// Memory with descriptors of its own: what is passed is lent for the call (contract: PREP-11).
    /// Kinds of every version are accepted, see [`nnhal_hal::Request::obstacles_in`].
    fn to_canonical(&self) -> Result<Memory, ConversionError> {
        let fds =
            self.handle.duplicate_fds().map_err(|error| ConversionError::duplicate(&error))?;
        Ok(Memory::from_parts(&self.name, fds, self.handle.integers(), self.size)?)
    }

    fn from_canonical(memory: &Memory) -> Result<Self, ConversionError> {
        let (fds, integers) = memory.parts();
        let fds = fds
            .iter()
            .map(OwnedFd::try_clone)
            .collect::<Result<_, _>>()
            .map_err(|error| ConversionError::duplicate(&error))?;
        Ok(Self {
            name: memory.name().to_owned(),
            handle: Handle::new(fds, integers.to_vec()),
            size: memory.size(),
        })
    }
}

pub(super) fn pools_to_canonical(pools: &[HidlMemory]) -> Result<Vec<Memory>, ConversionError> {
    let pools = pools.iter().enumerate();
    pools.map(|(index, pool)| pool.to_canonical().map_err(|error| error.of_pool(index))).collect()
}
