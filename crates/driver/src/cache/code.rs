//! The keyed code of a file. The content has a code for each chunk, and those are what the code of the file is made
//! of, so that threads read and check chunks side by side.

use super::key::{CacheKey, KEY_LENGTH};
use blake3::{Hash, Hasher};
use std::num::NonZero;
use std::sync::Mutex;
use std::thread;

/// What the key of the code of a file is derived for, in [`blake3::derive_key`].
pub const CODE_CONTEXT: &str = "nnhal 2026-11-21 code of a model cache file";
/// What the key of the codes of its chunks is derived for.
pub const CHUNK_CONTEXT: &str = "nnhal 2026-11-24 code of a chunk of a model cache file";

/// Bytes of the content with a code of their own; the last chunk may have fewer.
pub(super) const CHUNK: usize = 1 << 20;
/// Fewer chunks than this for a thread take less time than starting it.
const CHUNKS_OF_THREAD: usize = 4;
/// Memory is no faster with more threads than this.
const MOST_THREADS: usize = 8;

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

    /// The codes of the chunks of `content`, each of which `fill` fills first, given where in the content it begins.
    ///
    /// # Errors
    /// What `fill` returns.
    pub(super) fn of_chunks_to_fill<E: Send>(
        &self,
        content: &mut [u8],
        fill: impl Fn(&mut [u8], usize) -> Result<(), E> + Sync,
    ) -> Result<Vec<Hash>, E> {
        side_by_side(content.chunks_mut(CHUNK), |index, chunk| {
            fill(chunk, index * CHUNK)?;
            Ok(self.of_chunk(chunk))
        })
    }

    fn of_chunk(&self, chunk: &[u8]) -> Hash {
        blake3::keyed_hash(&self.chunk, chunk)
    }
}

/// What `make` makes of each of the items and its index, in their order. If there are many, threads help.
fn side_by_side<T, R: Send, E: Send>(
    items: impl ExactSizeIterator<Item = T> + Send,
    make: impl Fn(usize, T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let count = items.len();
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let helpers = (count / CHUNKS_OF_THREAD).min(processors).min(MOST_THREADS).saturating_sub(1);
    let items = Mutex::new(items.enumerate());
    let work = || -> Result<Vec<(usize, R)>, E> {
        let mut made = Vec::new();
        loop {
            let next = items.lock().ok().and_then(|mut items| items.next());
            let Some((index, item)) = next else { return Ok(made) };
            made.push((index, make(index, item)?));
        }
    };
    let mut made = thread::scope(|scope| {
        // A thread that the system does not start leaves its work to the others.
        let start = || thread::Builder::new().name("nnhal-cache".to_owned());
        let helpers: Vec<_> =
            (0..helpers).filter_map(|_| start().spawn_scoped(scope, work).ok()).collect();
        let mut made = work()?;
        for helper in helpers {
            match helper.join() {
                Ok(its) => made.extend(its?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(made)
    })?;
    made.sort_unstable_by_key(|(index, _)| *index);
    Ok(made.into_iter().map(|(_, made)| made).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_once_and_in_order() {
        for count in [0, 1, 7, 1000] {
            let made = side_by_side((0..count).map(|it| it * 2), |index, item| {
                assert_eq!(index * 2, item);
                Ok::<_, ()>(item)
            });
            assert_eq!(made, Ok((0..count).map(|it| it * 2).collect()));
        }
        let failed = side_by_side(0..1000, |_, item| if item == 500 { Err(item) } else { Ok(()) });
        assert_eq!(failed, Err(500));
    }

    #[test]
    fn each_byte_and_each_place_of_a_chunk_counts() {
        let keys = CodeKeys::new(&CacheKey::new([3; KEY_LENGTH]));
        let of_index = |index| vec![index; if index == 9 { 5 } else { CHUNK }];
        let mut content: Vec<u8> = (0..10).flat_map(of_index).collect();
        let codes = keys.of_chunks(&content);
        assert_eq!(codes.len(), 10);
        let mut copy = vec![0; content.len()];
        let filled = keys.of_chunks_to_fill(&mut copy, |chunk, at| {
            chunk.copy_from_slice(&content[at..at + chunk.len()]);
            Ok::<_, ()>(())
        });
        assert_eq!((filled.as_ref(), &copy), (Ok(&codes), &content));
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
