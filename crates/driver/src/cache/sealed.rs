//! The file: a header, three parts, and the keyed code of it all. See the [table](super).

use super::code::{CHUNK, CodeKeys};
use super::error::CacheError;
use crate::side_by_side::side_by_side;
use blake3::Hash;
use bytes::Bytes;
use nnhal_hal::memory::{map_own_file, zeros_in_huge_pages};
use nnhal_hal::{CacheToken, CacheTrust};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The number of this format. Whatever changes the layout or the description counts it up.
pub const FORMAT: u32 = 6;

/// Most bytes that a cache file may have: 1 GiB, more than the constants of any model that runs on
/// such a device. It bounds what a file with holes can make us read.
pub const LENGTH_LIMIT: u64 = 1 << 30;

const MAGIC: [u8; 8] = *b"nnhalc\r\n";
/// With zeros behind what it says, so that the content begins on a cache line: a file that is mapped
/// is used where it is.
const HEADER_LENGTH: usize = 96;
const CODE_LENGTH: usize = blake3::OUT_LEN;
/// Where the content begins: behind the header and its code.
const CONTENT_AT: u64 = CONTENT_START as u64;
/// The same in memory.
const CONTENT_START: usize = HEADER_LENGTH + CODE_LENGTH;
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
        parts.checked_add(self.codes_length())?.checked_add(FRAME_LENGTH)
    }

    /// Bytes of the codes of the content's chunks.
    fn codes_length(self) -> u64 {
        self.content_length.div_ceil(CHUNK as u64) * CODE_LENGTH as u64
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
    let codes = keys.of_chunks(content);
    let code = keys.of_file(&header, &codes, description);
    let codes: Vec<u8> = codes.iter().flat_map(|code| *code.as_bytes()).collect();
    let truncate = || file.set_len(0).map_err(CacheError::system("ftruncate"));
    truncate()?;
    let parts: [&[u8]; 6] =
        [&header, header_code.as_bytes(), content, description, &codes, code.as_bytes()];
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

/// Content and description of a file that was saved with this key under this token. The content is authenticated unless the
/// caller knows better, all else always. They are copies, unless the file is used where it is.
pub(super) fn read(
    file: &File,
    keys: &CodeKeys,
    token: &CacheToken,
    trust: CacheTrust,
) -> Result<(Bytes, Bytes), CacheError> {
    let length = file.metadata().map_err(CacheError::system("fstat"))?.len();
    let read_at = |bytes: &mut [u8], position| file.read_exact_at(bytes, position);
    let mapped = if trust == CacheTrust::WhileInUse { map_own_file(file) } else { None };
    match (mapped, trust) {
        (Some(memory), _) => {
            let memory = Bytes::from_owner(memory);
            let content = |length, _: &[Hash]| {
                let (found, expected) = (memory.len() as u64, CONTENT_AT.saturating_add(length));
                // It was cut short after its length was asked.
                if found < expected {
                    return Err(CacheError::Length { found, expected });
                }
                Ok(memory.slice(CONTENT_START..CONTENT_START + length_of(length)?))
            };
            parts(length, read_at, content, keys, token)
        }
        (None, CacheTrust::None) => read_parts(length, read_at, keys, token),
        (None, CacheTrust::WhileLoading | CacheTrust::WhileInUse) => {
            let content = |length, _: &[Hash]| copied(length, read_at, |_, _| true);
            parts(length, read_at, content, keys, token)
        }
    }
}

/// The same of `length` bytes that `read_at` copies to a place from a position on, on several threads if there are
/// many. All are authenticated.
///
/// Every byte is read once, and no more memory is taken than there are bytes.
pub(super) fn read_parts(
    length: u64,
    read_at: impl Fn(&mut [u8], u64) -> io::Result<()> + Sync,
    keys: &CodeKeys,
    token: &CacheToken,
) -> Result<(Bytes, Bytes), CacheError> {
    let content = |length, codes: &[Hash]| {
        copied(length, &read_at, |index, chunk| Some(&keys.of_chunk(chunk)) == codes.get(index))
    };
    parts(length, &read_at, content, keys, token)
}

/// A copy of the content, of which each chunk is `right`.
fn copied(
    length: u64,
    read_at: impl Fn(&mut [u8], u64) -> io::Result<()> + Sync,
    right: impl Fn(usize, &[u8]) -> bool + Sync,
) -> Result<Bytes, CacheError> {
    let wanted = length_of(length)?;
    let mut pages = zeros_in_huge_pages(length).map_err(|_| CacheError::NoRoom { length })?;
    side_by_side(pages[..wanted].chunks_mut(CHUNK), |index, chunk| {
        let position = CONTENT_AT + (index * CHUNK) as u64;
        read_at(chunk, position).map_err(CacheError::system("pread"))?;
        if right(index, chunk) { Ok(()) } else { Err(CacheError::Altered) }
    })?;
    Ok(Bytes::from_owner(pages).slice(..wanted))
}

/// Content and description of `length` bytes, of which `read_at` copies few, and `content` gives many, given how many and the codes
/// of their chunks.
fn parts(
    length: u64,
    read_at: impl Fn(&mut [u8], u64) -> io::Result<()>,
    content: impl Fn(u64, &[Hash]) -> Result<Bytes, CacheError>,
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
    let mut description = zeroed(header.description_length.into())?;
    read_at(&mut description, CONTENT_AT + header.content_length)?;
    let mut codes = zeroed(header.codes_length())?;
    read_at(&mut codes, length - CODE_LENGTH as u64 - header.codes_length())?;
    let (codes, _) = codes.as_chunks::<CODE_LENGTH>();
    let codes: Vec<Hash> = codes.iter().map(|code| Hash::from_bytes(*code)).collect();
    read_at(&mut found, length - CODE_LENGTH as u64)?;
    if keys.of_file(&header_bytes, &codes, &description) != found {
        return Err(CacheError::Altered);
    }
    if header.token != *token {
        return Err(CacheError::Token);
    }
    Ok((content(header.content_length, &codes)?, description.into()))
}

fn length_of(length: u64) -> Result<usize, CacheError> {
    usize::try_from(length).map_err(|_| CacheError::NoRoom { length })
}

fn zeroed(length: u64) -> Result<Vec<u8>, CacheError> {
    let no_room = CacheError::NoRoom { length };
    let wanted = length_of(length)?;
    let mut bytes = Vec::new();
    if bytes.try_reserve_exact(wanted).is_err() {
        return Err(no_room);
    }
    bytes.resize(wanted, 0);
    Ok(bytes)
}
