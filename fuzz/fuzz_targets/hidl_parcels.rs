//! Whatever another process puts into a parcel (contract: GEN-8): it is refused or read, a device answers, and what was
//! read can be written and read again.
//!
//! An input is a byte that chooses the method or type, the lengths of data and offsets, and the mapping.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nnhal_hidl::{Handle, HidlMemory, MQDescriptor, v1_0, v1_1, v1_2, v1_3};
use nnhal_hidl_binder::DeviceStub;
use nnhal_hidl_binder::wire::Argument;
use nnhal_hwbinder::simulate::{Delivered, Nothing};
use nnhal_hwbinder::{Caller, Object, ParcelError, Writer};
use std::sync::LazyLock;

static DEVICE: LazyLock<DeviceStub> = LazyLock::new(|| {
    let group = nnhal_hal::client::ClientGroup::new(Default::default());
    DeviceStub::new(nnhal_reference::device(), Default::default(), group, Default::default())
});

/// Reads a value, and what was written of it again.
fn again<T: Argument>(delivered: &Delivered) {
    let Ok(value) = delivered.read(&Nothing, T::read) else { return };
    let written = |value: &T| {
        let mut writer = Writer::default();
        value.write(&mut writer);
        Delivered::of(writer)
    };
    let first = written(&value);
    let value = first.read(&Nothing, T::read).expect("what was written is read");
    assert_eq!(written(&value).mapping.len(), first.mapping.len());
}

const READERS: &[fn(&Delivered)] = &[
    again::<String>,
    again::<Handle>,
    again::<HidlMemory>,
    again::<MQDescriptor>,
    again::<Vec<Handle>>,
    again::<Vec<HidlMemory>>,
    again::<Vec<bool>>,
    again::<Vec<i32>>,
    again::<Vec<v1_2::OutputShape>>,
    again::<Vec<v1_2::Extension>>,
    again::<Vec<v1_3::BufferRole>>,
    again::<v1_0::Capabilities>,
    again::<v1_0::Model>,
    again::<v1_0::Request>,
    again::<v1_1::Model>,
    again::<v1_2::Capabilities>,
    again::<v1_2::Model>,
    again::<v1_2::CacheToken>,
    again::<(i32, Vec<v1_2::OutputShape>, v1_2::Timing)>,
    again::<v1_3::Capabilities>,
    again::<v1_3::Model>,
    again::<v1_3::Request>,
    again::<(v1_3::OptionalTimePoint, v1_3::OptionalTimeoutDuration)>,
    strings,
];

fn strings(delivered: &Delivered) {
    let _ = delivered.read(&Nothing, |reader| reader.strings());
}

/// Methods of a device, before the readers of types.
const METHODS: u8 = 21;

fuzz_target!(|input: &[u8]| {
    let Some((head, mapping)) = input.split_first_chunk::<5>() else { return };
    let length = |at: usize| usize::from(u16::from_le_bytes([head[at], head[at + 1]]));
    let delivered = Delivered { mapping: mapping.to_vec(), data: length(1), offsets: length(3) };
    match head[0].checked_sub(METHODS) {
        None => {
            let caller = Caller { process: 1, user: 0 };
            let _ = delivered.read(&Nothing, |reader| {
                let _ = DEVICE.call(head[0].into(), reader, caller);
                Ok::<_, ParcelError>(())
            });
        }
        Some(reader) => READERS[usize::from(reader) % READERS.len()](&delivered),
    }
});
