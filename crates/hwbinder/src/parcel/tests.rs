//! What is refused of a parcel, and what is read of one that is in order.

use super::record::Record;
use crate::error::ParcelError;
use crate::object::{Reader, Writer};
use crate::simulate::{Delivered, Nothing};
use proptest::prelude::*;
use std::fs::File;
use std::os::fd::AsFd;

/// A parcel of all kinds of objects: a buffer, a string in it, a handle, strings, an object.
fn sample() -> Writer {
    let file = File::open("/dev/null").unwrap();
    let mut writer = Writer::request("com.example@1.0::IExample");
    writer.i32(-7);
    writer.u64(1 << 40);
    let holder = writer.buffer(vec![0; 32], None);
    writer.string_bytes("inside", holder.start().at(16));
    writer.native_handle(Some((&[file.as_fd()], &[3, 4])), None, ());
    writer.native_handle(None, None, ());
    writer.strings(&["one", "", "three"]);
    writer.strings::<&str>(&[]);
    writer.binder(None);
    writer.bool(true);
    writer
}

fn read(reader: &mut Reader<'_>) -> Result<(), ParcelError> {
    reader.expect_interface("com.example@1.0::IExample")?;
    assert_eq!((reader.i32()?, reader.u64()?), (-7, 1 << 40));
    let holder = reader.buffer(32, None)?;
    let structure = super::string_structure("inside");
    assert_eq!(reader.string_bytes(&structure, holder.id.start().at(16))?, "inside");
    let handle = reader.native_handle(None)?.unwrap();
    assert_eq!((handle.fds.len(), handle.integers), (1, vec![3, 4]));
    assert!(reader.native_handle(None)?.is_none());
    assert_eq!(reader.strings()?, ["one", "", "three"]);
    assert!(reader.strings()?.is_empty());
    assert!(reader.binder()?.is_none());
    assert!(reader.bool()?);
    Ok(())
}

#[test]
fn what_is_written_is_read() {
    let delivered = Delivered::of(sample());
    delivered
        .read(&Nothing, |reader| {
            read(reader)?;
            assert_eq!(reader.remaining(), 0);
            assert!(matches!(reader.u32(), Err(ParcelError::Short { .. })));
            Ok(())
        })
        .unwrap();
}

/// A parcel of one record, with another before it in the list if `before` is some.
fn parcel_of(records: &[Record], buffers: &[(u64, &[u8])]) -> Delivered {
    let mut data = Vec::new();
    let mut offsets = Vec::new();
    for record in records {
        offsets.extend((data.len() as u64).to_le_bytes());
        data.extend(record.bytes());
    }
    let lengths = (data.len(), offsets.len());
    data.extend(offsets);
    for (at, content) in buffers {
        let at = usize::try_from(*at).unwrap();
        data.resize(data.len().max(at + content.len()), 0);
        data[at..at + content.len()].copy_from_slice(content);
    }
    Delivered { mapping: data, data: lengths.0, offsets: lengths.1 }
}

const BASE: u64 = 0x7f00_0000_0000;

fn pointer(at: u64, length: u64, parent: Option<(u64, u64)>) -> Record {
    Record::Pointer { address: BASE + at, length, parent }
}

#[track_caller]
fn refused(parcel: &Delivered) -> (usize, &'static str) {
    match parcel.read(&Nothing, |_| Ok(())) {
        Err(ParcelError::Object { index, what }) => (index, what),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_buffer_outside_of_the_mapping_is_refused() {
    let outside = "its buffer is outside";
    assert_eq!(refused(&parcel_of(&[pointer(200, 8, None)], &[(192, &[0; 8])])), (0, outside));
    assert_eq!(refused(&parcel_of(&[pointer(0, u64::MAX, None)], &[])), (0, outside));
    let before = Record::Pointer { address: BASE - 8, length: 8, parent: None };
    assert_eq!(refused(&parcel_of(&[before], &[])), (0, outside));
    let null = Record::Pointer { address: 0, length: 1, parent: None };
    assert_eq!(refused(&parcel_of(&[null], &[])), (0, outside));
}

#[test]
fn a_buffer_hangs_where_its_parent_points_to_it() {
    let child = (BASE + 208).to_le_bytes();
    let two = |parent| [pointer(200, 8, None), pointer(208, 8, Some(parent))];
    let parcel = |parent, slot: &[u8]| parcel_of(&two(parent), &[(200, slot), (208, &[0; 8])]);
    assert!(parcel((0, 0), &child).read(&Nothing, |_| Ok(())).is_ok());
    let elsewhere = "its parent points elsewhere";
    assert_eq!(refused(&parcel((0, 0), &[0; 8])), (1, elsewhere));
    let outside = "its place is outside of its parent";
    assert_eq!(refused(&parcel((0, 1), &child)), (1, outside));
    assert_eq!(refused(&parcel((0, u64::MAX), &child)), (1, outside));
    assert_eq!(refused(&parcel((1, 0), &child)), (1, "its parent is none"));
    assert_eq!(refused(&parcel((u64::MAX, 0), &child)), (1, "its parent is none"));
}

#[test]
fn buffers_do_not_overlap() {
    let records = [pointer(200, 16, None), pointer(208, 8, None)];
    let (index, what) = refused(&parcel_of(&records, &[(200, &[0; 16])]));
    assert_eq!((index, what), (1, "its buffer is before that of an earlier one"));
}

#[test]
fn descriptors_are_in_a_buffer() {
    let with = |count, at| {
        let descriptors = Record::Descriptors { count, parent: (0, at) };
        parcel_of(&[pointer(200, 16, None), descriptors], &[(200, &[0; 16])])
    };
    assert!(with(1, 12).read(&Nothing, |_| Ok(())).is_ok());
    let outside = "it is outside of its parent";
    for (count, at) in [(2, 12), (1, 16), (1, 2), (u64::MAX, 0), (1 << 62, 4)] {
        assert_eq!(refused(&with(count, at)), (1, outside));
    }
}

#[test]
fn the_list_of_offsets_ascends_within_the_data() {
    let mut parcel = parcel_of(&[Record::Binder { id: 0 }, Record::Handle { handle: 1 }], &[]);
    let list = parcel.data;
    let order = "its offset is out of order";
    for (offset, expected) in
        [(0u64, order), (20, order), (26, order), (1 << 40, "its offset is outside")]
    {
        parcel.mapping[list + 8..list + 16].copy_from_slice(&offset.to_le_bytes());
        assert_eq!(refused(&parcel), (1, expected));
    }
    parcel.offsets -= 1;
    assert_eq!(refused(&parcel).1, "half an offset");
    parcel.mapping[0] = 0;
    assert_eq!(refused(&parcel).1, "it is of no kind that HIDL has");
}

#[test]
fn a_record_is_not_read_as_data() {
    let mut writer = Writer::default();
    writer.string("text");
    let read = Delivered::of(writer).read(&Nothing, |reader| reader.u32());
    assert!(matches!(read, Err(ParcelError::Unexpected { .. })), "{read:?}");
}

#[test]
fn an_empty_array_may_or_may_not_be_an_object() {
    // As libgbinder writes it: listed, so that the kernel gives it an address.
    let head = pointer(200, 16, None);
    let mut structure = [0; 16];
    structure[..8].copy_from_slice(&(BASE + 216).to_le_bytes());
    let listed = parcel_of(&[head, pointer(216, 0, Some((0, 0)))], &[(200, &structure)]);
    assert!(listed.read(&Nothing, |reader| reader.strings()).unwrap().is_empty());
    let mut writer = Writer::default();
    writer.strings::<&str>(&[]);
    assert!(Delivered::of(writer).read(&Nothing, |reader| reader.strings()).unwrap().is_empty());
}

#[test]
fn a_string_ends_with_its_nul() {
    let head = pointer(200, 16, None);
    let string = |bytes: &[u8]| {
        let mut structure = super::string_structure("abc");
        structure[..8].copy_from_slice(&(BASE + 216).to_le_bytes());
        let child = pointer(216, bytes.len() as u64, Some((0, 0)));
        parcel_of(&[head, child], &[(200, &structure), (216, bytes)])
            .read(&Nothing, |reader| reader.string())
    };
    assert_eq!(string(b"abc\0").unwrap(), "abc");
    assert_eq!(string(b"abcd"), Err(ParcelError::String));
    assert_eq!(string(b"a\xffc\0"), Err(ParcelError::String));
    assert_eq!(string(b"ab\0"), Err(ParcelError::Length { found: 3, expected: 4 }));
}

#[test]
fn exceptions_carry_their_message() {
    let delivered = Delivered::of(Writer::exception(-4, "null"));
    let mut said = None;
    delivered
        .read(&Nothing, |reader| {
            said = reader.expect_no_exception().err();
            Ok(())
        })
        .unwrap();
    let expected = crate::Error::Exception { code: -4, message: "null".to_owned() };
    assert_eq!(said, Some(expected));
}

proptest! {
    /// Whatever is bent or cut, something is refused or other values are read, and nothing panics.
    #[test]
    fn bent_parcels_do_no_harm(
        changes in prop::collection::vec((0usize..2000, any::<u8>()), 0..6),
        cut in 0usize..200,
    ) {
        let mut delivered = Delivered::of(sample());
        let length = delivered.mapping.len();
        for (at, value) in changes {
            delivered.mapping[at % length] = value;
        }
        if cut < 40 {
            delivered.mapping.truncate(length - cut);
        }
        let _ = delivered.read(&Nothing, |reader| {
            let _ = reader.c_string();
            let _ = reader.i32();
            let _ = reader.u64();
            let _ = reader.string();
            let _ = reader.native_handle(None);
            let _ = reader.native_handle(None);
            let _ = reader.strings();
            let _ = reader.strings();
            let _ = reader.binder();
            Ok(())
        });
    }
}
