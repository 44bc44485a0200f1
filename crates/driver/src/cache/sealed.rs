//! The file: a header, two parts, and the keyed code of it all. See the [table](super).

use super::code::CodeKeys;
use super::error::CacheError;
use blake3::Hash;
use bytes::Bytes;
use nnhal_hal::CacheToken;
use nnhal_hal::memory::{map_sealed, zeros_in_huge_pages};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The number of this format. Whatever changes the layout or the description counts it up.
pub const FORMAT: u32 = 4;

/// Most bytes that a cache file may have: 1 GiB, more than the constants of any model that runs on
/// such a device. It bounds what a file with holes can make us read.
pub const LENGTH_LIMIT: u64 = 1 << 30;

const MAGIC: [u8; 8] = *b"nnhalc\r\n";
/// With zeros behind what it says, so that the content begins on a cache line: a file that is mapped
/// is used where it is.
const HEADER_LENGTH: usize = 96;
const CODE_LENGTH: usize = blake3::OUT_LEN;
/// Where the content begins: behind the header and its code.
const CONTENT_AT: u64 = (HEADER_LENGTH + CODE_LENGTH) as u64;
/// What a file has besides its parts.
const FRAME_LENGTH: u64 = CONTENT_AT + CODE_LENGTH as u64;

/// What comes first in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    content_length: u64,
    description_length: u32,
    token: CacheToken,
}

impl Header {
    fn file_length(self) -> Option<u64> {
        let parts = self.content_length.checked_add(u64::from(self.description_length))?;
        parts.checked_add(FRAME_LENGTH)
    }

    fn to_bytes(self, file_length: u64) -> [u8; HEADER_LENGTH] {
        let mut bytes = [0; HEADER_LENGTH];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.description_length.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.content_length.to_le_bytes());
        bytes[24..32].copy_from_slice(&file_length.to_le_bytes());
        bytes[32..64].copy_from_slice(&self.token);
        bytes
    }

    /// What a file of `found` bytes says of itself. Nothing of it is trusted yet.
    fn from_bytes(bytes: &[u8; HEADER_LENGTH], found: u64) -> Result<Self, CacheError> {
        let magic = field(bytes, 0);
        if magic != MAGIC {
            return Err(CacheError::NotACache { found: magic });
        }
        let format = u32::from_le_bytes(field(bytes, 8));
        if format != FORMAT {
            return Err(CacheError::Format { found: format, expected: FORMAT });
        }
        let header = Self {
            description_length: u32::from_le_bytes(field(bytes, 12)),
            content_length: u64::from_le_bytes(field(bytes, 16)),
            token: field(bytes, 32),
        };
        let expected = u64::from_le_bytes(field(bytes, 24));
        if found != expected {
            return Err(CacheError::Length { found, expected });
        }
        let parts = header.file_length().unwrap_or(u64::MAX);
        if found != parts {
            return Err(CacheError::Length { found, expected: parts });
        }
        Ok(header)
    }
}

/// The `N` bytes at `offset` of a header.
fn field<const N: usize>(bytes: &[u8; HEADER_LENGTH], offset: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[offset..offset + N]);
    field
}

/// Replaces what the file holds. If that fails the file is left empty, as far as the system lets it.
pub(super) fn write(
    file: &File,
    keys: &CodeKeys,
    token: &CacheToken,
    content: &[u8],
    description: &[u8],
) -> Result<(), CacheError> {
    let header = Header {
        content_length: content.len() as u64,
        description_length: u32::try_from(description.len()).unwrap_or(u32::MAX),
        token: *token,
    };
    let length = header.file_length().unwrap_or(u64::MAX);
    // Also keeps lengths that were cut off above from passing.
    let found = length.max(description.len() as u64);
    if found > LENGTH_LIMIT {
        return Err(CacheError::TooLong { found, limit: LENGTH_LIMIT });
    }
    let header = header.to_bytes(length);
    let header_code = keys.of_header(&header);
    let code = keys.of_file(&header, &keys.of_chunks(content), description);
    let truncate = || file.set_len(0).map_err(CacheError::system("ftruncate"));
    truncate()?;
    let parts: [&[u8]; 5] =
        [&header, header_code.as_bytes(), content, description, code.as_bytes()];
    let mut position = 0;
    for part in parts {
        if let Err(error) = file.write_all_at(part, position) {
            // The first error is the one to tell.
            let _ = truncate();
            return Err(CacheError::System { call: "pwrite", error });
        }
        position += part.len() as u64;
    }
    Ok(())
}

/// Content and description of a file that was saved with this key under this token. They are copies, unless no
/// one can change the file: then they are the file's own pages, which other processes may have too.
pub(super) fn read(
    file: &File,
    keys: &CodeKeys,
    token: &CacheToken,
) -> Result<(Bytes, Bytes), CacheError> {
    let length = file.metadata().map_err(CacheError::system("fstat"))?.len();
    match map_sealed(file) {
        Some(memory) if memory.as_ref().len() as u64 == length => {
            read_mapped(&Bytes::from_owner(memory), keys, token)
        }
        _ => {
            let read_at = |bytes: &mut [u8], position| file.read_exact_at(bytes, position);
            read_parts(length, read_at, keys, token)
        }
    }
}

/// The same of memory that no one changes.
fn read_mapped(
    file: &Bytes,
    keys: &CodeKeys,
    token: &CacheToken,
) -> Result<(Bytes, Bytes), CacheError> {
    let range = |position: u64, length: u64| -> Option<_> {
        let start = usize::try_from(position).ok()?;
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        (end <= file.len()).then_some(start..end)
    };
    let read_at = |bytes: &mut [u8], position| -> io::Result<()> {
        let from = range(position, bytes.len() as u64).ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(&file[from]);
        Ok(())
    };
    let content = |position, length| {
        let content = range(position, length).ok_or(CacheError::NoRoom { length })?;
        let content = file.slice(content);
        let codes = keys.of_chunks(&content);
        Ok((content, codes))
    };
    parts(file.len() as u64, read_at, content, keys, token)
}

/// The same of `length` bytes that `read_at` copies to a place from a position on, on several threads if there are
/// many.
///
/// Every byte is read once, and no more memory is taken than there are bytes.
pub(super) fn read_parts(
    length: u64,
    read_at: impl Fn(&mut [u8], u64) -> io::Result<()> + Sync,
    keys: &CodeKeys,
    token: &CacheToken,
) -> Result<(Bytes, Bytes), CacheError> {
    let content = |position, length| {
        let mut pages = zeros_in_huge_pages(length).map_err(|_| CacheError::NoRoom { length })?;
        let wanted = usize::try_from(length).unwrap_or(pages.len());
        let fill = |chunk: &mut [u8], at| read_at(chunk, position + at as u64);
        let codes = keys
            .of_chunks_to_fill(&mut pages[..wanted], fill)
            .map_err(CacheError::system("pread"))?;
        Ok((Bytes::from_owner(pages).slice(..wanted), codes))
    };
    parts(length, &read_at, content, keys, token)
}

/// Content and description of `length` bytes, of which `read_at` copies few, and `content` gives many with the codes
/// of their chunks.
fn parts(
    length: u64,
    read_at: impl Fn(&mut [u8], u64) -> io::Result<()>,
    content: impl Fn(u64, u64) -> Result<(Bytes, Vec<Hash>), CacheError>,
    keys: &CodeKeys,
    token: &CacheToken,
) -> Result<(Bytes, Bytes), CacheError> {
    let read_at =
        |bytes: &mut [u8], position| read_at(bytes, position).map_err(CacheError::system("pread"));
    if length < FRAME_LENGTH {
        return Err(CacheError::TooShort { found: length, expected: FRAME_LENGTH });
    }
    if length > LENGTH_LIMIT {
        return Err(CacheError::TooLong { found: length, limit: LENGTH_LIMIT });
    }
    let mut header_bytes = [0; HEADER_LENGTH];
    read_at(&mut header_bytes, 0)?;
    let header = Header::from_bytes(&header_bytes, length)?;
    // A stranger's header could make us read a file of any length, holes for the most part.
    let mut found = [0; CODE_LENGTH];
    read_at(&mut found, HEADER_LENGTH as u64)?;
    // These comparisons take the same time wherever they differ.
    if keys.of_header(&header_bytes) != found {
        return Err(CacheError::Altered);
    }
    let (content, chunks) = content(CONTENT_AT, header.content_length)?;
    let mut description = zeroed(header.description_length)?;
    read_at(&mut description, CONTENT_AT + header.content_length)?;
    read_at(&mut found, length - CODE_LENGTH as u64)?;
    if keys.of_file(&header_bytes, &chunks, &description) != found {
        return Err(CacheError::Altered);
    }
    if header.token != *token {
        return Err(CacheError::Token);
    }
    Ok((content, description.into()))
}

fn zeroed(length: u32) -> Result<Vec<u8>, CacheError> {
    let no_room = CacheError::NoRoom { length: length.into() };
    let Ok(wanted) = usize::try_from(length) else { return Err(no_room) };
    let mut bytes = Vec::new();
    if bytes.try_reserve_exact(wanted).is_err() {
        return Err(no_room);
    }
    bytes.resize(wanted, 0);
    Ok(bytes)
}
