//! [`Writer`]: makes a parcel.

use super::record::Record;
use crate::error::{exception, status};
use std::any::Any;
use std::os::fd::{AsRawFd, BorrowedFd};

/// A parcel that is being written, with objects of type `B`.
///
/// Buffers are written parent first, then its children in the order of its fields, each with its own children
/// before the next: the kernel wants them so.
pub struct Writer<B> {
    data: Vec<u8>,
    offsets: Vec<u64>,
    /// What buffer records point to. Moving a box does not move what is in it.
    buffers: Vec<Box<[u8]>>,
    buffers_size: u64,
    /// Where in the data objects are, whose numbers are filled in when the parcel is sent.
    binders: Vec<(usize, B)>,
    /// What must live until the parcel is sent.
    kept: Vec<Box<dyn Any + Send>>,
    /// The parcel is a status and nothing else.
    status: bool,
}

/// A buffer of the parcel, as its children name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferId(pub(crate) u64);

/// A pointer's place: a number of bytes into a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The buffer.
    pub buffer: BufferId,
    /// Bytes from its beginning.
    pub offset: u64,
}

impl Place {
    /// A place farther into the same buffer.
    #[must_use]
    pub fn at(self, offset: usize) -> Self {
        Self { offset: self.offset.saturating_add(offset as u64), ..self }
    }

    fn pair(self) -> (u64, u64) {
        (self.buffer.0, self.offset)
    }
}

impl BufferId {
    /// The buffer's beginning.
    pub fn start(self) -> Place {
        Place { buffer: self, offset: 0 }
    }
}

impl<B> Default for Writer<B> {
    /// Nothing yet.
    fn default() -> Self {
        Self {
            data: Vec::new(),
            offsets: Vec::new(),
            buffers: Vec::new(),
            buffers_size: 0,
            binders: Vec::new(),
            kept: Vec::new(),
            status: false,
        }
    }
}

impl<B> Writer<B> {
    /// A call of a method that this interface declares.
    pub fn request(interface: &str) -> Self {
        let mut writer = Self::default();
        writer.c_string(interface);
        writer
    }

    /// A reply without an exception, to which the results are added.
    pub fn reply() -> Self {
        let mut writer = Self::default();
        writer.i32(exception::NONE);
        writer
    }

    /// A reply that is an exception.
    pub fn exception(code: i32, message: &str) -> Self {
        let mut writer = Self::default();
        writer.i32(code);
        let units: Vec<u16> = message.encode_utf16().collect();
        writer.u32(u32::try_from(units.len()).unwrap_or(0));
        writer.data.extend(units.iter().chain(&[0]).flat_map(|unit| unit.to_le_bytes()));
        writer.pad();
        writer
    }

    /// A reply that is a status, see [`status`].
    pub fn status(code: i32) -> Self {
        let mut writer = Self { status: code != status::OK, ..Self::default() };
        writer.i32(code);
        writer
    }

    fn pad(&mut self) {
        self.data.resize(self.data.len().next_multiple_of(4), 0);
    }

    /// A byte, which takes 4.
    pub fn u8(&mut self, value: u8) {
        self.u32(value.into());
    }

    /// A truth value, which takes 4 bytes.
    pub fn bool(&mut self, value: bool) {
        self.u32(value.into());
    }

    /// 4 bytes.
    pub fn u32(&mut self, value: u32) {
        self.data.extend(value.to_le_bytes());
    }

    /// 4 bytes.
    pub fn i32(&mut self, value: i32) {
        self.data.extend(value.to_le_bytes());
    }

    /// 8 bytes, wherever the last value has ended.
    pub fn u64(&mut self, value: u64) {
        self.data.extend(value.to_le_bytes());
    }

    /// A string in the data itself, up to its NUL. One with a NUL within is cut there.
    pub fn c_string(&mut self, value: &str) {
        self.data.extend(value.bytes().take_while(|byte| *byte != 0).chain([0]));
        self.pad();
    }

    /// A buffer with these bytes, in which the pointers are left 0: the kernel fills them in.
    pub fn buffer(&mut self, bytes: Vec<u8>, parent: Option<Place>) -> BufferId {
        let bytes = bytes.into_boxed_slice();
        let (address, length) = (bytes.as_ptr().addr() as u64, bytes.len() as u64);
        self.buffers_size = self.buffers_size.saturating_add(length.next_multiple_of(8));
        self.buffers.push(bytes);
        self.object(Record::Pointer { address, length, parent: parent.map(Place::pair) })
    }

    /// The record of a buffer that is not there: of an empty array. It is no object.
    pub fn no_buffer(&mut self, parent: Place) {
        let parent = Some(parent.pair());
        self.data.extend(Record::Pointer { address: 0, length: 0, parent }.bytes());
    }

    fn object(&mut self, record: Record) -> BufferId {
        let id = BufferId(self.offsets.len() as u64);
        self.offsets.push(self.data.len() as u64);
        self.data.extend(record.bytes());
        id
    }

    /// A native handle, or null. `keep` is what owns the descriptors; it is dropped when the parcel is sent.
    pub fn native_handle(
        &mut self,
        handle: Option<(&[BorrowedFd<'_>], &[i32])>,
        parent: Option<Place>,
        keep: impl Any + Send,
    ) {
        let Some((fds, integers)) = handle else {
            self.u64(0);
            return;
        };
        let counts = [HANDLE_VERSION, count(fds.len()), count(integers.len())];
        let numbers = counts.into_iter();
        let numbers =
            numbers.chain(fds.iter().map(AsRawFd::as_raw_fd)).chain(integers.iter().copied());
        let bytes: Vec<u8> = numbers.flat_map(i32::to_le_bytes).collect();
        self.u64(bytes.len() as u64);
        let handle = self.buffer(bytes, parent);
        let parent = handle.start().at(HANDLE_HEADER).pair();
        self.object(Record::Descriptors { count: fds.len() as u64, parent });
        self.kept.push(Box::new(keep));
    }

    /// An object, or null.
    pub fn binder(&mut self, binder: Option<B>) {
        let Some(binder) = binder else {
            self.data.extend(Record::Binder { id: 0 }.bytes());
            return;
        };
        self.binders.push((self.data.len(), binder));
        // Which number it has is known when it is sent.
        self.object(Record::Binder { id: u64::MAX });
    }

    /// A string: its structure and its bytes.
    pub fn string(&mut self, value: &str) {
        let id = self.buffer(string_structure(value).to_vec(), None);
        self.string_bytes(value, id.start());
    }

    /// The bytes of a string whose structure is at `place`.
    pub fn string_bytes(&mut self, value: &str, place: Place) {
        self.buffer(value.bytes().chain([0]).collect(), Some(place));
    }

    /// An array of strings.
    pub fn strings<S: AsRef<str>>(&mut self, values: &[S]) {
        let structures: Vec<u8> =
            values.iter().flat_map(|value| string_structure(value.as_ref())).collect();
        if let Some(array) = self.array(values.len(), structures) {
            for (index, value) in values.iter().enumerate() {
                self.string_bytes(value.as_ref(), array.start().at(16 * index));
            }
        }
    }

    /// An array whose elements are these bytes and have no children, or whose children are still to come: then
    /// this is their parent, `None` if there is no element.
    pub fn array(&mut self, count: usize, elements: Vec<u8>) -> Option<BufferId> {
        let head = self.buffer(array_structure(count).to_vec(), None);
        if count == 0 {
            self.no_buffer(head.start());
            return None;
        }
        Some(self.buffer(elements, Some(head.start())))
    }

    /// Bytes of data and of all buffers.
    pub fn size(&self) -> u64 {
        self.buffers_size.saturating_add(self.data.len() as u64)
    }

    pub(crate) fn is_status(&self) -> bool {
        self.status
    }

    /// The parcel to be sent, with these numbers for its objects.
    pub(crate) fn finish(self, mut number: impl FnMut(&B) -> Number) -> Outgoing<B> {
        let Self { mut data, offsets, buffers, buffers_size, binders, kept, .. } = self;
        for (position, binder) in &binders {
            let record = match number(binder) {
                Number::Local(id) => Record::Binder { id },
                Number::Remote(handle) => Record::Handle { handle },
            };
            let bytes = record.bytes();
            if let Some(target) =
                data.get_mut(*position..).and_then(|rest| rest.get_mut(..bytes.len()))
            {
                target.copy_from_slice(&bytes);
            }
        }
        let binders = binders.into_iter().map(|(_, binder)| binder).collect();
        Outgoing { data, offsets, buffers_size, _buffers: buffers, _binders: binders, _kept: kept }
    }

    /// The buffer that a record points to, for [`simulate`](crate::simulate).
    pub(crate) fn buffers(&self) -> &[Box<[u8]>] {
        &self.buffers
    }
}

/// What the kernel calls an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    Local(u64),
    Remote(u32),
}

/// A parcel that can be sent, with all that its records point to.
pub(crate) struct Outgoing<B> {
    pub(crate) data: Vec<u8>,
    pub(crate) offsets: Vec<u64>,
    pub(crate) buffers_size: u64,
    _buffers: Vec<Box<[u8]>>,
    _binders: Vec<B>,
    _kept: Vec<Box<dyn Any + Send>>,
}

/// `sizeof(native_handle_t)`, its first member.
pub(super) const HANDLE_VERSION: i32 = 12;
/// Bytes before the descriptors.
pub(super) const HANDLE_HEADER: usize = 12;

fn count(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

/// The 16 bytes of an array, with its pointer left 0. It owns its elements, if it has any.
pub fn array_structure(count: usize) -> [u8; 16] {
    structure(count, count > 0)
}

/// The 16 bytes of a string, with its pointer left 0.
pub fn string_structure(value: &str) -> [u8; 16] {
    structure(value.len(), true)
}

fn structure(count: usize, owns: bool) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[8..12].copy_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
    bytes[12] = owns.into();
    bytes
}
