//! What the kernel does between a sender and a receiver, on plain bytes: for tests and fuzzing, where there is no
//! binder device.

use crate::error::ParcelError;
use crate::object::{Binder, Reader, Writer};
use crate::parcel::{Memory, Number, Parcel, Record, Resolve};
use std::io;
use std::os::fd::OwnedFd;

/// Where a receiver's mapping is, as far as anyone can say.
const BASE: u64 = 0x7f00_0000_0000;

/// A parcel as it arrives: data, list of offsets and buffers in one mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// The mapping.
    pub mapping: Vec<u8>,
    /// Bytes of data, from the beginning.
    pub data: usize,
    /// Bytes of offsets, after the data.
    pub offsets: usize,
}

/// A mapping in plain bytes.
struct Plain<'a>(&'a [u8]);

impl<'a> Memory<'a> for Plain<'a> {
    fn bytes(&self, address: u64, length: u64) -> Option<&'a [u8]> {
        let start = usize::try_from(address.checked_sub(BASE)?).ok()?;
        self.0.get(start..start.checked_add(usize::try_from(length).ok()?)?)
    }
}

/// Knows no object; duplicates descriptors as a test passes them, which are its own, or takes any for `/dev/null`.
#[derive(Debug, Default, Clone, Copy)]
pub struct Nothing;

impl Resolve<Binder> for Nothing {
    fn descriptor(&self, _: i32) -> io::Result<OwnedFd> {
        Ok(std::fs::File::open("/dev/null")?.into())
    }

    fn local(&self, _: u64) -> Option<Binder> {
        None
    }

    fn remote(&self, _: u32) -> Option<Binder> {
        None
    }
}

impl Delivered {
    /// What arrives of a parcel.
    pub fn of(writer: Writer) -> Self {
        let contents: Vec<Vec<u8>> = writer.buffers().iter().map(|bytes| bytes.to_vec()).collect();
        // Objects arrive by handle.
        let mut next = 0;
        let outgoing = writer.finish(|_| {
            next += 1;
            Number::Remote(next)
        });
        let (mut data, offsets) = (outgoing.data, outgoing.offsets);
        let mut at = data.len().next_multiple_of(8) + 8 * offsets.len();
        let first = at;
        let mut placed: Vec<(usize, Vec<u8>)> = Vec::new();
        let mut contents = contents.into_iter();
        // The index of an object among the buffers.
        let mut buffers = vec![None; offsets.len()];
        for (index, offset) in offsets.iter().enumerate() {
            let Ok(position) = usize::try_from(*offset) else { continue };
            let record = data.get(position..).and_then(|bytes| Record::parse(bytes, index).ok());
            let Some(Record::Pointer { length, parent, .. }) = record else { continue };
            let Some(content) = contents.next() else { continue };
            let address = BASE + at as u64;
            let record = Record::Pointer { address, length, parent }.bytes();
            data[position..position + record.len()].copy_from_slice(&record);
            if let Some((parent, offset)) = parent {
                let slot = usize::try_from(parent).ok().and_then(|index| *buffers.get(index)?);
                let slot = slot.and_then(|slot: usize| placed.get_mut(slot));
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let slot = slot.and_then(|(_, holder)| holder.get_mut(start..)?.get_mut(..8));
                if let Some(slot) = slot {
                    slot.copy_from_slice(&address.to_le_bytes());
                }
            }
            buffers[index] = Some(placed.len());
            at += content.len().next_multiple_of(8);
            placed.push((at, content));
        }
        let (data_length, offsets_length) = (data.len(), 8 * offsets.len());
        data.resize(data.len().next_multiple_of(8), 0);
        let mut mapping = data;
        mapping.extend(offsets.iter().flat_map(|offset| offset.to_le_bytes()));
        debug_assert_eq!(mapping.len(), first);
        for (end, content) in placed {
            mapping.extend(content);
            mapping.resize(end, 0);
        }
        Self { mapping, data: data_length, offsets: offsets_length }
    }

    /// What is read from it, if its objects are in order.
    ///
    /// # Errors
    /// What is wrong with them, or what reading says.
    pub fn read<T>(
        &self,
        resolve: &dyn Resolve<Binder>,
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, ParcelError>,
    ) -> Result<T, ParcelError> {
        let short =
            || ParcelError::Short { what: "a parcel", position: 0, length: self.mapping.len() };
        let data = self.mapping.get(..self.data).ok_or_else(short)?;
        let start = self.data.checked_next_multiple_of(8).ok_or_else(short)?;
        let offsets = self.mapping.get(start..).and_then(|rest| rest.get(..self.offsets));
        let plain = Plain(&self.mapping);
        let parcel = Parcel::check(data, offsets.ok_or_else(short)?, &plain, resolve)?;
        let mut reader = Reader::new(&parcel);
        read(&mut reader)
    }
}
