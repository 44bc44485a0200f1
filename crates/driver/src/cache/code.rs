//! The keyed code of a file. The content has a code for each chunk, and those are what the code of the file is made
//! of, so that threads read and check chunks side by side.

use super::key::{CacheKey, KEY_LENGTH};
use crate::side_by_side::side_by_side;
use blake3::{Hash, Hasher};

/// What the key of the code of a file is derived for, in [`blake3::derive_key`].
pub const CODE_CONTEXT: &str = "nnhal 2026-11-21 code of a model cache file";
/// What the key of the codes of its chunks is derived for.
pub const CHUNK_CONTEXT: &str = "nnhal 2026-11-24 code of a chunk of a model cache file";

/// Bytes of the content with a code of their own; the last chunk may have fewer.
pub(super) const CHUNK: usize = 1 << 20;

/// The keys that files are authenticated with: good for nothing else (and nothing else for this).
#[derive(Clone)]
pub(super) struct CodeKeys {
    file: [u8; KEY_LENGTH],
    chunk: [u8; KEY_LENGTH],
}

impl CodeKeys {
    pub(super) fn new(key: &CacheKey) -> Self {
        Self {
            file: blake3::derive_key(CODE_CONTEXT, key.bytes()),
            chunk: blake3::derive_key(CHUNK_CONTEXT, key.bytes()),
        }
    }

    /// The code of a header.
    pub(super) fn of_header(&self, header: &[u8]) -> Hash {
        blake3::keyed_hash(&self.file, header)
    }

    /// The code of a file with this header, which says how long the other parts are.
    pub(super) fn of_file(&self, header: &[u8], chunks: &[Hash], description: &[u8]) -> Hash {
        let mut hasher = Hasher::new_keyed(&self.file);
        hasher.update(header);
        for chunk in chunks {
            hasher.update(chunk.as_bytes());
        }
        hasher.update(description).finalize()
    }

    /// The codes of the chunks of `content`.
    pub(super) fn of_chunks(&self, content: &[u8]) -> Vec<Hash> {
        let code = |_, chunk: &[u8]| Ok::<_, std::convert::Infallible>(self.of_chunk(chunk));
        side_by_side(content.chunks(CHUNK), code).unwrap_or_else(|never| match never {})
    }

    /// The code of a chunk.
    pub(super) fn of_chunk(&self, chunk: &[u8]) -> Hash {
        blake3::keyed_hash(&self.chunk, chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_and_each_place_of_a_chunk_counts() {
        let keys = CodeKeys::new(&CacheKey::new([3; KEY_LENGTH]));
        let of_index = |index| vec![index; if index == 9 { 5 } else { CHUNK }];
        let mut content: Vec<u8> = (0..10).flat_map(of_index).collect();
        let codes = keys.of_chunks(&content);
        assert_eq!(codes.len(), 10);
        let file = |codes: &[Hash]| keys.of_file(b"header", codes, b"description");
        let mut swapped = codes.clone();
        swapped.swap(2, 3);
        assert_ne!(file(&codes), file(&swapped));
        for (place, chunk) in [(0, 0), (CHUNK - 1, 0), (CHUNK, 1), (CHUNK * 9 + 4, 9)] {
            content[place] ^= 1;
            let changed = keys.of_chunks(&content);
            let differ: Vec<_> = (0..10).filter(|at| changed[*at] != codes[*at]).collect();
            assert_eq!(differ, [chunk]);
            content[place] ^= 1;
        }
    }

    #[test]
    fn codes_of_chunks_are_no_codes_of_files() {
        let keys = CodeKeys::new(&CacheKey::new([3; KEY_LENGTH]));
        assert_ne!(keys.of_chunks(b"header")[0], keys.of_header(b"header"));
    }
}
