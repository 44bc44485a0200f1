//! [`Arena`]: memory for the arguments of runs, kept from one run to the next.

use crate::error::{Error, Result};
use nnhal_hal::memory::MemoryView;
use nnhal_hal::{DataLocation, Memory};

/// Arguments begin at multiples of this, so that wide loads do not straddle cache lines.
const ALIGNMENT: usize = 64;

/// Memory with a slot for each argument.
#[derive(Debug)]
pub(crate) struct Arena {
    memory: Memory,
    view: MemoryView,
    slots: Vec<Slot>,
    sharing: Sharing,
}

/// Whether other processes can have the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// They can: the device may be in one.
    Shared,
    /// The device is in this process, and can write outputs where they are to be.
    Private,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    offset: u32,
    capacity: usize,
}

impl Arena {
    /// With room for this many bytes in each slot, all 0.
    pub(crate) fn new(capacities: &[usize], sharing: Sharing) -> Result<Self> {
        let mut slots = Vec::with_capacity(capacities.len());
        let mut end = 0_u64;
        for capacity in capacities {
            let offset = u32::try_from(end).map_err(|_| Error::ArgumentsTooLarge { bytes: end })?;
            slots.push(Slot { offset, capacity: *capacity });
            let capacity = capacity.checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX);
            end = end.saturating_add(capacity as u64);
        }
        if u32::try_from(end).is_err() {
            return Err(Error::ArgumentsTooLarge { bytes: end });
        }
        let memory = match sharing {
            Sharing::Shared => Memory::allocate(end.max(1))?,
            Sharing::Private => Memory::private(end.max(1))?,
        };
        Ok(Self { view: memory.view()?, memory, slots, sharing })
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// How many bytes fit into a slot.
    pub(crate) fn capacity(&self, slot: usize) -> usize {
        self.slots[slot].capacity
    }

    /// Makes room for more bytes in some slots; what all slots held stays. The memory is another one
    /// then.
    pub(crate) fn grow(&mut self, wanted: impl Iterator<Item = usize>) -> Result<()> {
        let capacities: Vec<usize> =
            self.slots.iter().zip(wanted).map(|(slot, wanted)| slot.capacity.max(wanted)).collect();
        let grown = Self::new(&capacities, self.sharing)?;
        for (old, new) in self.slots.iter().zip(&grown.slots) {
            let bytes = self.view.read_to_vec(old.offset.into(), old.capacity as u64)?;
            grown.view.write(new.offset.into(), &bytes)?;
        }
        *self = grown;
        Ok(())
    }

    /// Where the first `length` bytes of a slot are, for a request whose pool `pool_index` this is.
    pub(crate) fn location(&self, slot: usize, length: usize, pool_index: u32) -> DataLocation {
        // Capacities add up to less than 2^32, see `new`.
        let length = u32::try_from(length.min(self.slots[slot].capacity)).unwrap_or(u32::MAX);
        DataLocation { pool_index, offset: self.slots[slot].offset, length }
    }

    /// Copies bytes to the beginning of a slot that has room for them.
    pub(crate) fn write(&self, slot: usize, bytes: &[u8]) -> Result<()> {
        debug_assert!(bytes.len() <= self.slots[slot].capacity, "slot {slot} is too short");
        Ok(self.view.write(self.slots[slot].offset.into(), bytes)?)
    }

    /// Copies bytes into a slot that has room for them there.
    pub(crate) fn write_at(&self, slot: usize, offset: usize, bytes: &[u8]) -> Result<()> {
        let Slot { offset: begin, capacity } = self.slots[slot];
        debug_assert!(offset + bytes.len() <= capacity, "slot {slot} is too short");
        Ok(self.view.write(u64::from(begin) + offset as u64, bytes)?)
    }

    /// Copies the beginning of a slot.
    pub(crate) fn read(&self, slot: usize, bytes: &mut [u8]) -> Result<()> {
        debug_assert!(bytes.len() <= self.slots[slot].capacity, "slot {slot} is too short");
        Ok(self.view.read(self.slots[slot].offset.into(), bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_keeps_what_slots_hold() {
        for sharing in [Sharing::Shared, Sharing::Private] {
            let mut arena = Arena::new(&[3, 100, 0], sharing).unwrap();
            arena.write(0, &[1, 2, 3]).unwrap();
            arena.write(1, &[7; 100]).unwrap();
            arena.grow([1000, 0, 5].into_iter()).unwrap();
            let (mut first, mut second) = ([0; 3], [0; 100]);
            arena.read(0, &mut first).unwrap();
            arena.read(1, &mut second).unwrap();
            assert_eq!((first, second), ([1, 2, 3], [7; 100]));
            assert_eq!([0, 1, 2].map(|slot| arena.capacity(slot)), [1000, 100, 5]);
            let can_be_borrowed = arena.view.borrow_mut(0, 1).is_some();
            assert_eq!(can_be_borrowed, sharing == Sharing::Private);
        }
    }

    #[test]
    fn more_than_32_bits_address_is_refused() {
        for capacities in [&[1 << 33][..], &[usize::MAX, 1], &[3 << 30, 3 << 30]] {
            assert!(matches!(
                Arena::new(capacities, Sharing::Shared),
                Err(Error::ArgumentsTooLarge { .. })
            ));
        }
    }
}
