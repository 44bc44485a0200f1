//! Files within a `.tflite` file: a ZIP archive behind the model, as TensorFlow Lite's metadata has it.

use crate::error::{Error, Result};
use nnhal_hal::Memory;
use std::ops::Range;

/// A file that a `.tflite` file carries, such as the names of its classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssociatedFile {
    /// Its name: `labels.txt`.
    pub name: String,
    /// Bytes that it has.
    pub length: u64,
    /// Where it is in the `.tflite` file; `None` if it is compressed, which the format does not allow.
    pub stored: Option<Range<u64>>,
}

/// Bytes of the record at the end of an archive, without its comment.
const END_LENGTH: usize = 22;
/// Bytes of an entry of the archive's directory, without names.
const ENTRY_LENGTH: usize = 46;
/// Bytes in front of a file, without names.
const HEADER_LENGTH: u64 = 30;
/// Files and bytes of the directory that are looked at.
const MOST_FILES: usize = 1000;
const MOST_DIRECTORY: u64 = 1 << 20;

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn short(bytes: &[u8], at: usize) -> Option<u64> {
    number(bytes, at).map(|it| u16::from_le_bytes(it).into())
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    number(bytes, at).map(|it| u32::from_le_bytes(it).into())
}

/// The files of the archive at the end of a file; none if there is no archive, or it is broken.
pub(crate) fn files(memory: &Memory) -> Result<Vec<AssociatedFile>> {
    let view = memory.view()?;
    let size = memory.size();
    let tail = size.min(END_LENGTH as u64 + u64::from(u16::MAX));
    let read = |start: u64, length: u64| -> Result<Vec<u8>, Error> {
        Ok(view.read_to_vec(start, length)?)
    };
    // The end first: most files have no archive, and then little is read.
    let end = read(size - size.min(END_LENGTH as u64), size.min(END_LENGTH as u64))?;
    let (bytes, at) = if end.starts_with(b"PK\x05\x06") {
        (end, 0)
    } else {
        let bytes = read(size - tail, tail)?;
        let is_end = |window: &[u8]| window == b"PK\x05\x06";
        match bytes.windows(4).rposition(is_end) {
            Some(at) => (bytes, at),
            None => return Ok(Vec::new()),
        }
    };
    let end_at = size - bytes.len() as u64 + at as u64;
    let (Some(length), Some(offset)) = (long(&bytes, at + 12), long(&bytes, at + 16)) else {
        return Ok(Vec::new());
    };
    // Places are those in the archive, which begins wherever the model ends, or in the whole file.
    let Some(start) = end_at.checked_sub(length).filter(|start| *start >= offset) else {
        return Ok(Vec::new());
    };
    let before = start - offset;
    let directory = read(start, length.min(MOST_DIRECTORY))?;
    let mut files = Vec::new();
    let mut at = 0;
    while files.len() < MOST_FILES
        && let Some((file, next)) = entry(&directory, at, before)
    {
        at = next;
        let Some((name, method, stored_length, length, header)) = file else { continue };
        let stored = if method == 0 && header.saturating_add(HEADER_LENGTH) <= size {
            let header_bytes = read(header, HEADER_LENGTH)?;
            let names = short(&header_bytes, 26).zip(short(&header_bytes, 28));
            let start = names.map(|(name, extra)| header + HEADER_LENGTH + name + extra);
            let range = start.map(|start| start..start.saturating_add(stored_length));
            range.filter(|it| it.end <= size && header_bytes.starts_with(b"PK\x03\x04"))
        } else {
            None
        };
        files.push(AssociatedFile { name, length, stored });
    }
    Ok(files)
}

/// Name, method, bytes as stored, bytes, and place of the header.
type Entry = (String, u64, u64, u64, u64);

/// An entry of the directory, and where the next one is. Folders are left out.
fn entry(directory: &[u8], at: usize, before: u64) -> Option<(Option<Entry>, usize)> {
    let entry = directory.get(at..)?;
    if !entry.starts_with(b"PK\x01\x02") {
        return None;
    }
    let length = |at| Some(usize::from(u16::from_le_bytes(number(entry, at)?)));
    let (name, extra, comment) = (length(28)?, length(30)?, length(32)?);
    let text = entry.get(ENTRY_LENGTH..ENTRY_LENGTH + name)?;
    let text = String::from_utf8_lossy(text).into_owned();
    let found = (text, short(entry, 10)?, long(entry, 20)?, long(entry, 24)?);
    let header = before.checked_add(long(entry, 42)?)?;
    let next = at + ENTRY_LENGTH + name + extra + comment;
    let (text, method, stored, length) = found;
    let is_file = !text.ends_with('/');
    Some((is_file.then_some((text, method, stored, length, header)), next))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive of one stored file, as a program would append it.
    fn archive(before: &[u8], name: &str, content: &[u8]) -> Vec<u8> {
        let mut file = before.to_vec();
        let header = u32::try_from(file.len()).unwrap().to_le_bytes();
        let length = u32::try_from(content.len()).unwrap().to_le_bytes();
        let name_length = u16::try_from(name.len()).unwrap().to_le_bytes();
        file.extend(b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0");
        file.extend([length, length].concat());
        file.extend([name_length, [0, 0]].concat());
        file.extend([name.as_bytes(), content].concat());
        let directory = u32::try_from(file.len()).unwrap();
        file.extend(b"PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0\0\0\0\0");
        file.extend([length, length].concat());
        file.extend([name_length, [0; 2], [0; 2], [0; 2], [0; 2], [0; 2], [0; 2]].concat());
        file.extend(header);
        file.extend(name.as_bytes());
        let length = u32::try_from(file.len()).unwrap() - directory;
        file.extend(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
        file.extend([length.to_le_bytes(), directory.to_le_bytes()].concat());
        file.extend([0, 0]);
        file
    }

    #[test]
    fn a_file_behind_the_model_is_found() {
        let bytes = archive(&[7; 100], "labels.txt", b"cat\ndog\n");
        let found = files(&Memory::from_bytes(&bytes).unwrap()).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((&*found[0].name, found[0].length), ("labels.txt", 8));
        let stored = found[0].stored.clone().unwrap();
        let range = usize::try_from(stored.start).unwrap()..usize::try_from(stored.end).unwrap();
        assert_eq!(&bytes[range], b"cat\ndog\n");
    }

    #[test]
    fn sec_broken_archives_are_survived() {
        let bytes = archive(&[7; 10], "labels.txt", b"cat\ndog\n");
        for length in 1..bytes.len() {
            let _ = files(&Memory::from_bytes(&bytes[..length]).unwrap());
        }
        for at in 10..bytes.len() {
            for value in [0, 1, 0x7F, 0x80, 0xFF] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                let _ = files(&Memory::from_bytes(&bytes).unwrap());
            }
        }
    }
}
