//! [`Parcel`]: a parcel that was received and whose objects have been checked.

use super::record::{Record, u64_at};
use crate::error::ParcelError;
use std::io;
use std::os::fd::OwnedFd;

/// The memory into which the kernel copies what is received.
pub trait Memory<'a> {
    /// The bytes from this address on; `None` if they are not all in it.
    fn bytes(&self, address: u64, length: u64) -> Option<&'a [u8]>;
}

/// Who knows what numbers in a parcel stand for, and has objects of type `B`.
pub trait Resolve<B> {
    /// A duplicate of a descriptor that came in an array of descriptors.
    ///
    /// # Errors
    /// What the system says.
    fn descriptor(&self, number: i32) -> io::Result<OwnedFd>;

    /// An object of this process.
    fn local(&self, id: u64) -> Option<B>;

    /// An object of another process.
    fn remote(&self, handle: u32) -> Option<B>;
}

/// A parcel that was received. Its objects are what they claim: buffers are in memory, hang at earlier ones, and
/// their parents point to them; what they hold is not checked.
pub struct Parcel<'a, B> {
    pub(super) data: &'a [u8],
    pub(super) objects: Vec<Object<'a>>,
    pub(super) resolve: &'a dyn Resolve<B>,
}

/// An object that was checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Object<'a> {
    /// Where its record is in the data.
    pub(super) position: usize,
    pub(super) content: Content<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Content<'a> {
    Local { id: u64 },
    Remote { handle: u32 },
    Buffer { bytes: &'a [u8], parent: Option<(usize, u64)> },
    Descriptors { bytes: &'a [u8], parent: (usize, u64) },
}

impl<'a, B> Parcel<'a, B> {
    /// Checks the objects of a parcel with these data and this list of offsets.
    ///
    /// # Errors
    /// [`ParcelError::Object`]
    pub fn check(
        data: &'a [u8],
        offsets: &[u8],
        memory: &dyn Memory<'a>,
        resolve: &'a dyn Resolve<B>,
    ) -> Result<Self, ParcelError> {
        let mut objects: Vec<Object<'a>> = Vec::with_capacity(offsets.len() / 8);
        let (mut data_end, mut buffers_end) = (0, 0);
        for (index, offset) in offsets.chunks(8).enumerate() {
            let wrong = |what| ParcelError::Object { index, what };
            let offset = u64_at(offset, 0).ok_or(wrong("half an offset"))?;
            let position = usize::try_from(offset).map_err(|_| wrong("its offset is outside"))?;
            if position % 4 != 0 || position < data_end {
                return Err(wrong("its offset is out of order"));
            }
            let bytes = data.get(position..).ok_or(wrong("its offset is outside"))?;
            let record = Record::parse(bytes, index)?;
            // Cannot overflow: the record is in the data.
            data_end = position + record.size();
            let content = match record {
                Record::Binder { id } => Content::Local { id },
                Record::Handle { handle } => Content::Remote { handle },
                Record::Pointer { address, length, parent } => {
                    let end = address.checked_add(length).ok_or(wrong("its buffer is outside"))?;
                    if address < buffers_end {
                        return Err(wrong("its buffer is before that of an earlier one"));
                    }
                    buffers_end = end;
                    let bytes =
                        memory.bytes(address, length).ok_or(wrong("its buffer is outside"))?;
                    let parent = match parent {
                        None => None,
                        Some((parent, at)) => {
                            let holder =
                                buffer(&objects, parent).ok_or(wrong("its parent is none"))?;
                            let slot = usize::try_from(at).ok().and_then(|at| u64_at(holder, at));
                            if slot.ok_or(wrong("its place is outside of its parent"))? != address {
                                return Err(wrong("its parent points elsewhere"));
                            }
                            Some((index_of(parent), at))
                        }
                    };
                    Content::Buffer { bytes, parent }
                }
                Record::Descriptors { count, parent: (parent, at) } => {
                    let holder = buffer(&objects, parent).ok_or(wrong("its parent is none"))?;
                    let bytes =
                        part(holder, at, count).ok_or(wrong("it is outside of its parent"))?;
                    Content::Descriptors { bytes, parent: (index_of(parent), at) }
                }
            };
            objects.push(Object { position, content });
        }
        Ok(Self { data, objects, resolve })
    }
}

/// The bytes of an earlier object that is a buffer.
fn buffer<'a>(objects: &[Object<'a>], index: u64) -> Option<&'a [u8]> {
    match objects.get(usize::try_from(index).ok()?)?.content {
        Content::Buffer { bytes, .. } => Some(bytes),
        _ => None,
    }
}

/// `count` integers, in a buffer.
fn part(bytes: &[u8], offset: u64, count: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok().filter(|start| start % 4 == 0)?;
    let length = usize::try_from(count.checked_mul(4)?).ok()?;
    bytes.get(start..start.checked_add(length)?)
}

/// An index that was used already.
fn index_of(index: u64) -> usize {
    usize::try_from(index).unwrap_or(usize::MAX)
}
