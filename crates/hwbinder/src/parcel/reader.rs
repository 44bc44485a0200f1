//! [`Reader`]: reads a parcel from beginning to end.

use super::check::{Content, Parcel};
use super::record::{BINDER, FLAT_BINDER, POINTER_RECORD, Record, u32_at, u64_at};
use super::writer::{BufferId, HANDLE_HEADER, HANDLE_VERSION, Place};
use crate::error::{ParcelError, exception};
use std::os::fd::OwnedFd;

/// Most descriptors, and most integers, of a native handle.
const HANDLE_LIMIT: i32 = 1024;

/// Reads a parcel with objects of type `B` from beginning to end. What it returns is owned or stays valid as long as the parcel.
pub struct Reader<'p, B> {
    parcel: &'p Parcel<'p, B>,
    position: usize,
    next_object: usize,
}

/// A buffer of a parcel.
#[derive(Debug, Clone, Copy)]
pub struct ReadBuffer<'p> {
    /// What is in it. Pointers in it mean nothing: what they point to is read from the parcel.
    pub bytes: &'p [u8],
    /// As its children name it.
    pub id: BufferId,
}

/// A native handle: descriptors that belong to it, and integers.
#[derive(Debug)]
pub struct NativeHandle {
    /// Duplicates of those that came.
    pub fds: Vec<OwnedFd>,
    /// What they mean is for its receiver to know.
    pub integers: Vec<i32>,
}

impl<'p, B> Reader<'p, B> {
    /// From the beginning.
    pub fn new(parcel: &'p Parcel<'p, B>) -> Self {
        Self { parcel, position: 0, next_object: 0 }
    }

    /// Bytes that have not been read.
    pub fn remaining(&self) -> usize {
        self.parcel.data.len().saturating_sub(self.position)
    }

    /// A record of an object is not data.
    fn take(&mut self, what: &'static str, length: usize) -> Result<&'p [u8], ParcelError> {
        let (position, data) = (self.position, self.parcel.data);
        let short = ParcelError::Short { what, position, length: data.len() };
        let end = position.checked_add(length).ok_or_else(|| short.clone())?;
        let bytes = data.get(position..end).ok_or(short)?;
        if self.parcel.objects.get(self.next_object).is_some_and(|next| next.position < end) {
            return Err(ParcelError::Unexpected { position, expected: what });
        }
        self.position = end;
        Ok(bytes)
    }

    /// 4 bytes.
    ///
    /// # Errors
    /// [`ParcelError::Short`], [`ParcelError::Unexpected`]: as all functions for plain values.
    pub fn u32(&mut self) -> Result<u32, ParcelError> {
        Ok(u32_at(self.take("an integer", 4)?, 0).unwrap_or_default())
    }

    /// 4 bytes.
    ///
    /// # Errors
    /// As [`Reader::u32`].
    pub fn i32(&mut self) -> Result<i32, ParcelError> {
        Ok(self.u32()?.cast_signed())
    }

    /// A byte, which takes 4.
    ///
    /// # Errors
    /// As [`Reader::u32`].
    pub fn u8(&mut self) -> Result<u8, ParcelError> {
        Ok(self.take("a byte", 4)?.first().copied().unwrap_or_default())
    }

    /// A truth value, which takes 4 bytes: whether the first is not 0.
    ///
    /// # Errors
    /// As [`Reader::u32`].
    pub fn bool(&mut self) -> Result<bool, ParcelError> {
        Ok(self.u8()? != 0)
    }

    /// 8 bytes.
    ///
    /// # Errors
    /// As [`Reader::u32`].
    pub fn u64(&mut self) -> Result<u64, ParcelError> {
        Ok(u64_at(self.take("an integer", 8)?, 0).unwrap_or_default())
    }

    /// A string in the data itself, up to its NUL.
    ///
    /// # Errors
    /// [`ParcelError::String`]; as [`Reader::u32`].
    pub fn c_string(&mut self) -> Result<&'p str, ParcelError> {
        let rest = self.parcel.data.get(self.position..).unwrap_or_default();
        let length = rest.iter().position(|byte| *byte == 0).ok_or(ParcelError::String)?;
        let bytes = self.take("a string", (length + 1).next_multiple_of(4))?;
        std::str::from_utf8(&bytes[..length]).map_err(|_| ParcelError::String)
    }

    /// The interface token of a call.
    ///
    /// # Errors
    /// [`ParcelError::Token`] if it is another one.
    pub fn expect_interface(&mut self, interface: &str) -> Result<(), ParcelError> {
        let found = self.c_string().unwrap_or_default();
        if found == interface {
            return Ok(());
        }
        Err(ParcelError::Token { found: found.to_owned() })
    }

    /// The head of a reply.
    ///
    /// # Errors
    /// The exception.
    pub fn expect_no_exception(&mut self) -> crate::Result<()> {
        let code = self.i32()?;
        if code == exception::NONE {
            return Ok(());
        }
        let message = self.utf16().unwrap_or_default();
        Err(crate::Error::Exception { code, message })
    }

    fn utf16(&mut self) -> Option<String> {
        let length = usize::try_from(self.i32().ok()?).ok()?;
        let bytes = self.take("a string", length.checked_mul(2)?).ok()?;
        let units = bytes.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
        Some(char::decode_utf16(units).map(|unit| unit.unwrap_or('\u{fffd}')).collect())
    }

    /// The next object, if its record is here.
    fn object(&mut self) -> Option<Content<'p>> {
        let next = self.parcel.objects.get(self.next_object)?;
        let size = match next.content {
            Content::Local { .. } | Content::Remote { .. } => FLAT_BINDER,
            Content::Buffer { .. } => POINTER_RECORD,
            Content::Descriptors { .. } => super::record::DESCRIPTORS_RECORD,
        };
        if next.position != self.position {
            return None;
        }
        self.position += size;
        self.next_object += 1;
        Some(next.content)
    }

    /// A buffer of this length that hangs at this place, or at none.
    ///
    /// # Errors
    /// [`ParcelError::Unexpected`], [`ParcelError::Length`] or [`ParcelError::Parent`] if there is another thing here.
    pub fn buffer(
        &mut self,
        length: u64,
        place: Option<Place>,
    ) -> Result<ReadBuffer<'p>, ParcelError> {
        let position = self.position;
        let id = BufferId(self.next_object as u64);
        let Some(Content::Buffer { bytes, parent }) = self.object() else {
            return Err(ParcelError::Unexpected { position, expected: "a buffer" });
        };
        if parent.map(|(index, offset)| (index as u64, offset))
            != place.map(|place| (place.buffer.0, place.offset))
        {
            return Err(ParcelError::Parent { position });
        }
        let found = bytes.len() as u64;
        if found != length {
            return Err(ParcelError::Length { found, expected: length });
        }
        Ok(ReadBuffer { bytes, id })
    }

    /// The record of the buffer of an empty array, which is an object for some who write and none for others.
    ///
    /// # Errors
    /// [`ParcelError::Unexpected`] if there is another thing here.
    pub fn no_buffer(&mut self, place: Place) -> Result<(), ParcelError> {
        let position = self.position;
        let listed = self.parcel.objects.get(self.next_object);
        if listed.is_some_and(|next| next.position == position) {
            return self.buffer(0, Some(place)).map(|_| ());
        }
        let bytes = self.take("the record of an empty array", POINTER_RECORD)?;
        match Record::parse(bytes, self.next_object)? {
            Record::Pointer { length: 0, .. } => Ok(()),
            _ => {
                Err(ParcelError::Unexpected { position, expected: "the record of an empty array" })
            }
        }
    }

    /// The elements of an array whose structure has been read and is at `place`: `count` of `size` bytes each.
    ///
    /// # Errors
    /// As [`Reader::buffer`].
    pub fn elements(
        &mut self,
        count: u32,
        size: usize,
        place: Place,
    ) -> Result<Option<ReadBuffer<'p>>, ParcelError> {
        if count == 0 {
            self.no_buffer(place)?;
            return Ok(None);
        }
        self.buffer(u64::from(count).saturating_mul(size as u64), Some(place)).map(Some)
    }

    /// A native handle that hangs at this place, or at none; `None` is null.
    ///
    /// # Errors
    /// As [`Reader::buffer`]; [`ParcelError::Handle`], [`ParcelError::Descriptor`].
    pub fn native_handle(
        &mut self,
        place: Option<Place>,
    ) -> Result<Option<NativeHandle>, ParcelError> {
        let size = self.u64()?;
        if size == 0 {
            return Ok(None);
        }
        let ReadBuffer { bytes, id } = self.buffer(size, place)?;
        let integer =
            |index: usize| u32_at(bytes, index.saturating_mul(4)).unwrap_or_default().cast_signed();
        let (fds, integers) = (integer(1), integer(2));
        let wrong = || ParcelError::Handle { fds, integers, bytes: bytes.len() };
        let within = |number: i32| {
            usize::try_from(number).ok().filter(|_| number <= HANDLE_LIMIT).ok_or_else(wrong)
        };
        let (fd_count, integer_count) = (within(fds)?, within(integers)?);
        // Both are small.
        let first_integer = 3 + fd_count;
        let end = first_integer + integer_count;
        if integer(0) != HANDLE_VERSION || bytes.len() != 4 * end {
            return Err(wrong());
        }
        let position = self.position;
        let Some(Content::Descriptors { bytes: numbers, parent }) = self.object() else {
            return Err(ParcelError::Unexpected { position, expected: "an array of descriptors" });
        };
        let expected = (usize::try_from(id.0).unwrap_or(usize::MAX), HANDLE_HEADER as u64);
        if parent != expected || numbers.len() != 4 * fd_count {
            return Err(ParcelError::Parent { position });
        }
        let fds = numbers.chunks_exact(4).map(|number| {
            let number = u32_at(number, 0).unwrap_or_default().cast_signed();
            let fd = self.parcel.resolve.descriptor(number);
            fd.map_err(|error| ParcelError::Descriptor(error.to_string()))
        });
        let fds = fds.collect::<Result<_, _>>()?;
        Ok(Some(NativeHandle { fds, integers: (first_integer..end).map(integer).collect() }))
    }

    /// An object, or null.
    ///
    /// # Errors
    /// [`ParcelError::Unknown`] if it is one of this process that is gone; [`ParcelError::Unexpected`].
    pub fn binder(&mut self) -> Result<Option<B>, ParcelError> {
        let position = self.position;
        let binder = match self.object() {
            Some(Content::Local { id: 0 }) => return Ok(None),
            Some(Content::Local { id }) => self.parcel.resolve.local(id),
            Some(Content::Remote { handle }) => self.parcel.resolve.remote(handle),
            Some(_) => return Err(ParcelError::Unexpected { position, expected: "an object" }),
            None => {
                let bytes = self.take("an object", FLAT_BINDER)?;
                let null = u32_at(bytes, 0) == Some(BINDER) && u64_at(bytes, 8) == Some(0);
                if !null {
                    return Err(ParcelError::Unexpected { position, expected: "an object" });
                }
                return Ok(None);
            }
        };
        binder.ok_or(ParcelError::Unknown).map(Some)
    }

    /// A string: its structure and its bytes.
    ///
    /// # Errors
    /// As [`Reader::buffer`]; [`ParcelError::String`].
    pub fn string(&mut self) -> Result<String, ParcelError> {
        let ReadBuffer { bytes, id } = self.buffer(16, None)?;
        self.string_bytes(bytes, id.start())
    }

    /// The bytes of a string whose structure is these and is at `place`.
    ///
    /// # Errors
    /// As [`Reader::string`].
    pub fn string_bytes(&mut self, structure: &[u8], place: Place) -> Result<String, ParcelError> {
        let length = u32_at(structure, 8).unwrap_or_default();
        let ReadBuffer { bytes, .. } = self.buffer(u64::from(length) + 1, Some(place))?;
        match bytes.split_last() {
            Some((0, text)) => {
                let text = std::str::from_utf8(text).map_err(|_| ParcelError::String)?;
                Ok(text.to_owned())
            }
            _ => Err(ParcelError::String),
        }
    }

    /// An array of strings.
    ///
    /// # Errors
    /// As [`Reader::string`].
    pub fn strings(&mut self) -> Result<Vec<String>, ParcelError> {
        let head = self.buffer(16, None)?;
        let count = u32_at(head.bytes, 8).unwrap_or_default();
        let Some(ReadBuffer { bytes, id }) = self.elements(count, 16, head.id.start())? else {
            return Ok(Vec::new());
        };
        let structures = bytes.chunks_exact(16).enumerate();
        structures
            .map(|(index, structure)| self.string_bytes(structure, id.start().at(16 * index)))
            .collect()
    }
}
