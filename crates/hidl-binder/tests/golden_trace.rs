//! What genuine C++ ends said to each other, `golden_trace.txt`: each transaction is decoded, encoded again, and compared
//! byte by byte. Only the numbers of descriptors may differ, which the kernel gives.

use nnhal_hidl::v1_3::{BufferDesc, BufferRole, ExtraParams, Model, OptionalTimePoint};
use nnhal_hidl::{Handle, v1_2, v1_3};
use nnhal_hidl_binder::wire::Argument;
use nnhal_hwbinder::error::ParcelError;
use nnhal_hwbinder::simulate::{Delivered, Nothing};
use nnhal_hwbinder::{Reader, Writer};

const TRACE: &str = include_str!("golden_trace.txt");

const BASE: u64 = 0x7f00_0000_0000;

/// A transaction of the trace.
struct Transaction {
    code: u32,
    flags: u32,
    parcel: Delivered,
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits = hexadecimal.as_bytes().chunks_exact(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// The number after a word.
fn number<'a>(words: &[&'a str], word: &str) -> &'a str {
    words[words.iter().position(|one| *one == word).unwrap() + 1]
}

/// Lays a transaction out as the kernel does: data, offsets, buffers.
fn transaction(lines: &[&str]) -> Transaction {
    let head: Vec<&str> = lines[0].split_whitespace().collect();
    let length: usize = number(&head, "data").parse().unwrap();
    let count: usize = number(&head, "bytes,").parse().unwrap();
    let mut data = Vec::new();
    let mut offsets = Vec::new();
    let mut buffers: Vec<(usize, Vec<u8>)> = Vec::new();
    let mut buffer_of = Vec::new();
    let mut at = length.next_multiple_of(8) + 8 * count;
    for line in &lines[1..] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let position = usize::from_str_radix(words[0].trim_start_matches("+0x"), 16).unwrap();
        assert_eq!(position, data.len(), "{line}");
        if words[1] == "raw" {
            data.extend(bytes(words[4]));
            continue;
        }
        offsets.extend((position as u64).to_le_bytes());
        let mut record = |kind: u32, flags: u32, words: &[u64]| {
            data.extend(kind.to_le_bytes());
            data.extend(flags.to_le_bytes());
            data.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        };
        match words[2] {
            "PTR" => {
                let flags: u32 = number(&words, "flags").parse().unwrap();
                let parent: usize = number(&words, "parent").parse().unwrap_or(0);
                let offset: usize = number(&words, "off").parse().unwrap();
                let contents = words.iter().position(|word| *word == "off").unwrap() + 2;
                let content: Vec<u8> = words[contents..]
                    .iter()
                    .flat_map(|word| if *word == "[ptr]" { vec![0; 8] } else { bytes(word) })
                    .collect();
                let length: usize = number(&words, "len").parse().unwrap();
                assert_eq!(content.len(), length, "{line}");
                let address = BASE + at as u64;
                record(0x7074_2a85, flags, &[address, length as u64, parent as u64, offset as u64]);
                if flags == 1 {
                    let holder: usize = buffer_of[parent];
                    buffers[holder].1[offset..offset + 8].copy_from_slice(&address.to_le_bytes());
                }
                buffer_of.push(buffers.len());
                at += length.next_multiple_of(8);
                buffers.push((at, content));
            }
            "FDA" => {
                let count = number(&words, "num_fds").parse().unwrap();
                let parent = number(&words, "parent").parse().unwrap();
                record(0x6664_6185, 0, &[count, parent, number(&words, "off").parse().unwrap()]);
                buffer_of.push(usize::MAX);
            }
            "type" => {
                let number = |word| {
                    let digits = number(&words, word).trim_start_matches("0x");
                    u64::from_str_radix(digits, 16).unwrap()
                };
                assert_eq!(words[3], "sh*");
                record(
                    0x7368_2a85,
                    u32::try_from(number("flags")).unwrap(),
                    &[number("binder/handle"), number("cookie")],
                );
                buffer_of.push(usize::MAX);
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!((data.len(), offsets.len()), (length, 8 * count));
    let mut mapping = data;
    mapping.resize(length.next_multiple_of(8), 0);
    mapping.extend(&offsets);
    for (end, content) in buffers {
        mapping.extend(content);
        mapping.resize(end, 0);
    }
    let code = number(&head, "code").parse().unwrap();
    let flags = u32::from_str_radix(number(&head, "flags").trim_start_matches("0x"), 16).unwrap();
    Transaction { code, flags, parcel: Delivered { mapping, data: length, offsets: 8 * count } }
}

fn transactions() -> Vec<Transaction> {
    let lines: Vec<&str> = TRACE.lines().collect();
    let starts = lines.iter().enumerate().filter(|(_, line)| line.starts_with("## tx"));
    let starts: Vec<usize> = starts.map(|(index, _)| index).chain([lines.len()]).collect();
    starts.windows(2).map(|range| transaction(&lines[range[0]..range[1]])).collect()
}

/// The parcel with the numbers of descriptors taken out: they are where buffers begin that are native handles.
fn without_descriptors(mut parcel: Delivered, handles: usize) -> Delivered {
    let header = [12i32.to_le_bytes(), 1i32.to_le_bytes(), 0i32.to_le_bytes()].concat();
    let mut found = 0;
    for at in (0..parcel.mapping.len().saturating_sub(15)).step_by(8) {
        if parcel.mapping[at..].starts_with(&header) {
            parcel.mapping[at + 12..at + 16].fill(0);
            found += 1;
        }
    }
    assert_eq!(found, handles);
    parcel
}

/// Decodes a transaction by `read`, encodes it by `write`, and compares.
#[track_caller]
fn replay<T>(
    transaction: &Transaction,
    handles: usize,
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, ParcelError>,
    write: impl FnOnce(&T, &mut Writer),
    begin: impl FnOnce() -> Writer,
) -> T {
    let value = transaction.parcel.read(&Nothing, |reader| {
        let value = read(reader)?;
        assert_eq!(reader.remaining(), 0);
        Ok(value)
    });
    let value = value.unwrap();
    let mut writer = begin();
    write(&value, &mut writer);
    let again = without_descriptors(Delivered::of(writer), handles);
    let original = without_descriptors(transaction.parcel.clone(), handles);
    assert_eq!(again, original);
    value
}

const DEVICE_1_3: &str = "android.hardware.neuralnetworks@1.3::IDevice";

#[test]
fn calls_without_arguments() {
    let names = ["@1.0::IDevice", "@1.2::IDevice", "@1.2::IDevice", "@1.3::IDevice"];
    let names = names.map(|name| format!("android.hardware.neuralnetworks{name}"));
    let codes = [4, 8, 11, 16];
    let mut found = 0;
    for transaction in transactions() {
        let interface = match codes.iter().position(|code| *code == transaction.code) {
            Some(index) => names[index].as_str(),
            None if transaction.code >> 24 == 0x0f => "android.hidl.base@1.0::IBase",
            None => continue,
        };
        assert_eq!(transaction.flags, 0x10);
        let read = |reader: &mut Reader<'_>| reader.expect_interface(interface);
        replay(&transaction, 0, read, |(), _| {}, || Writer::request(interface));
        found += 1;
    }
    assert!(found > 20);
}

#[test]
fn supported_operations_1_3() {
    let transactions = transactions();
    let transaction = transactions.iter().find(|one| one.code == 17).unwrap();
    let read = |reader: &mut Reader<'_>| {
        reader.expect_interface(DEVICE_1_3)?;
        Model::read(reader)
    };
    let model = replay(transaction, 1, read, Model::write, || Writer::request(DEVICE_1_3));
    assert_eq!(model.main.operands.len(), 4);
    assert_eq!(model.main.operands[0].dimensions, [1, 4]);
    let ExtraParams::ChannelQuant(params) = &model.main.operands[1].extra_params else { panic!() };
    assert_eq!((params.scales.as_slice(), params.channel_dim), (&[0.5, 0.25][..], 1));
    assert_eq!(model.main.operations[0].inputs, [0, 1, 2]);
    assert_eq!(&*model.operand_values, [0, 0, 0, 0]);
    assert_eq!((model.pools[0].name.as_str(), model.pools[0].size), ("ashmem", 4096));
    assert_eq!(model.extension_name_to_prefix[0].name, "com.lab");
}

#[test]
fn prepare_model_1_3() {
    let transactions = transactions();
    let transaction = transactions.iter().find(|one| one.code == 18).unwrap();
    type Arguments =
        ((Model, i32, i32, OptionalTimePoint), (Vec<Handle>, Vec<Handle>, v1_2::CacheToken));
    let read = |reader: &mut Reader<'_>| {
        reader.expect_interface(DEVICE_1_3)?;
        let arguments = Arguments::read(reader)?;
        // The callback, of which nothing is known here.
        assert_eq!(reader.remaining(), 24);
        Ok(arguments)
    };
    let value = transaction.parcel.read(&Nothing, read).unwrap();
    let ((_, preference, priority, deadline), (model_cache, data_cache, token)) = &value;
    assert_eq!((*preference, *priority), (2, 2));
    assert_eq!(*deadline, OptionalTimePoint::NanosecondsSinceEpoch(123_456_789));
    assert_eq!((model_cache.len(), data_cache.len()), (1, 0));
    assert_eq!(token.to_vec(), (1..=32).collect::<Vec<u8>>());
    let mut writer = Writer::request(DEVICE_1_3);
    value.write(&mut writer);
    writer.binder(Some(nnhal_hwbinder::Binder::local(Callback)));
    let again = without_descriptors(Delivered::of(writer), 2);
    assert_eq!(again, without_descriptors(transaction.parcel.clone(), 2));
}

struct Callback;

impl nnhal_hwbinder::Object for Callback {
    fn chain(&self) -> &'static [nnhal_hwbinder::Interface] {
        &[]
    }

    fn call(
        &self,
        _: u32,
        _: &mut Reader<'_>,
        _: nnhal_hwbinder::Caller,
    ) -> Result<Writer, nnhal_hwbinder::CallError> {
        Err(nnhal_hwbinder::CallError::UNKNOWN)
    }
}

#[test]
fn allocate() {
    let transactions = transactions();
    let transaction = transactions.iter().find(|one| one.code == 20).unwrap();
    let read = |reader: &mut Reader<'_>| {
        reader.expect_interface(DEVICE_1_3)?;
        let desc = BufferDesc::read(reader)?;
        assert_eq!(reader.u64()?, 0);
        Ok((desc, <(Vec<BufferRole>, Vec<BufferRole>)>::read(reader)?))
    };
    let write = |(desc, roles): &(BufferDesc, _), writer: &mut Writer| {
        desc.write(writer);
        writer.u64(0);
        <(Vec<BufferRole>, Vec<BufferRole>)>::write(roles, writer);
    };
    let (desc, (inputs, _)) = replay(transaction, 0, read, write, || Writer::request(DEVICE_1_3));
    assert_eq!((desc.dimensions.as_slice(), inputs[0].frequency), (&[1, 4][..], 1.0));
}

/// The replies with results, in the order of the trace.
fn reply<T: Argument>(index: usize) -> T {
    let transactions = transactions();
    let mut replies = transactions.iter().filter(|one| one.code == 0 && one.flags == 0);
    let read = |reader: &mut Reader<'_>| {
        reader.expect_no_exception().unwrap();
        T::read(reader)
    };
    replay(replies.nth(index).unwrap(), 0, read, T::write, Writer::reply)
}

#[test]
fn replies() {
    assert_eq!(reply::<i32>(0), 0);
    assert_eq!(reply::<(i32, String)>(1).1, "cxx-1.3");
    assert_eq!(reply::<(i32, u32, u32)>(2), (0, 1, 2));
    let (status, capabilities) = reply::<(i32, v1_3::Capabilities)>(3);
    assert_eq!((status, capabilities.operand_performance.len()), (0, 2));
    assert_eq!(capabilities.while_performance.exec_time, 4.0);
    let (_, extensions) = reply::<(i32, Vec<v1_2::Extension>)>(4);
    assert_eq!(extensions[0].operand_types[0].byte_size, 4);
}

#[test]
fn statuses() {
    let transactions = transactions();
    let statuses = transactions.iter().filter(|one| one.flags == 8);
    let statuses: Vec<&Delivered> = statuses.map(|one| &one.parcel).collect();
    let expected = [i32::MIN + 1, -74].map(|code| Delivered::of(Writer::status(code)));
    assert_eq!(statuses, expected.iter().collect::<Vec<_>>());
}
