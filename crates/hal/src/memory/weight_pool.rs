//! [`WeightPool`]: weights that prepared models of one process have in common.

use super::error::MemoryError;
use super::zeros::{Zeros, zeros_in_huge_pages};
use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Bytes that the prepared models of one process, which share it, have in memory only once where they are equal.
/// Whoever gives the same pool to several preparations says that these may know of each other: how long one
/// takes tells whether its weights were there. Cloning shares it. It keeps nothing alive.
#[derive(Clone, Default)]
pub struct WeightPool(Arc<Mutex<HashMap<u64, Vec<Weak<Kept>>>>>);

/// Bytes that begin on a page, as long as anyone uses them.
#[derive(Debug, Clone)]
pub struct KeptWeights(Arc<Kept>);

#[derive(Debug)]
struct Kept {
    pages: Zeros,
    length: usize,
}

impl AsRef<[u8]> for KeptWeights {
    fn as_ref(&self) -> &[u8] {
        &self.0.pages[..self.0.length]
    }
}

/// Pieces that are looked at to find bytes that may be equal.
const SAMPLES: usize = 64;
const SAMPLE_BYTES: usize = 16;

impl WeightPool {
    /// An empty pool.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Vec<Weak<Kept>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These parts, one behind the other: those that are there, or else a copy.
    ///
    /// # Errors
    /// [`MemoryError::NoRoom`]
    pub fn keep(&self, parts: &[&[u8]]) -> Result<KeptWeights, MemoryError> {
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        let key = sampled(parts, length);
        let known = self.lock().get(&key).cloned().unwrap_or_default();
        for kept in known.iter().filter_map(Weak::upgrade) {
            if kept.length == length && is_equal(&kept.pages, parts) {
                return Ok(KeptWeights(kept));
            }
        }
        let mut pages = zeros_in_huge_pages(length as u64)?;
        let mut at = 0;
        for part in parts {
            pages[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        let kept = Arc::new(Kept { pages, length });
        let mut all = self.lock();
        all.retain(|_, kept| {
            kept.retain(|it| it.strong_count() > 0);
            !kept.is_empty()
        });
        all.entry(key).or_default().push(Arc::downgrade(&kept));
        Ok(KeptWeights(kept))
    }

    /// How many bytes there are, each counted once.
    pub fn bytes(&self) -> u64 {
        let all = self.lock();
        let kept = all.values().flatten().filter_map(Weak::upgrade);
        kept.map(|kept| kept.length as u64).sum()
    }

    /// How many bytes there would be besides, if each user had its own.
    pub fn saved_bytes(&self) -> u64 {
        let all = self.lock();
        let saved = |kept: &Weak<Kept>| {
            let length = kept.upgrade().map_or(0, |kept| kept.length);
            (length as u64).saturating_mul(kept.strong_count().saturating_sub(1) as u64)
        };
        all.values().flatten().map(saved).sum()
    }
}

/// Whether the parts are what the bytes begin with.
fn is_equal(mut bytes: &[u8], parts: &[&[u8]]) -> bool {
    parts.iter().all(|part| {
        let Some((first, rest)) = bytes.split_at_checked(part.len()) else { return false };
        bytes = rest;
        first == *part
    })
}

/// What equal bytes have in common, and others hardly, by a few of them.
fn sampled(parts: &[&[u8]], length: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_usize(length);
    let step = (length / SAMPLES).max(SAMPLE_BYTES);
    // Where the first of a piece is in its part; the same however the bytes are divided.
    let (mut begin, mut next) = (0, 0);
    for part in parts {
        let end = begin + part.len();
        while next < end {
            hasher.write_u8(part[next - begin]);
            next += if next % step < SAMPLE_BYTES - 1 { 1 } else { step - (SAMPLE_BYTES - 1) };
        }
        begin = end;
    }
    hasher.finish()
}

impl fmt::Debug for WeightPool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("WeightPool").field("bytes", &self.bytes()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_share_one_entry_and_others_do_not() {
        let pool = WeightPool::new();
        let bytes: Vec<u8> = (0..100_000_u32).map(|it| (it % 251) as u8).collect();
        let one = pool.keep(&[&bytes[..]]).unwrap();
        for at in [1, 64, 99_999] {
            let (head, tail) = bytes.split_at(at);
            let two = pool.keep(&[head, &[], tail]).unwrap();
            assert_eq!(two.as_ref().as_ptr(), one.as_ref().as_ptr());
        }
        assert_eq!(one.as_ref(), bytes);
        let same = pool.clone().keep(&[&bytes[..]]).unwrap();
        assert_eq!(same.as_ref().as_ptr(), one.as_ref().as_ptr());
        assert_eq!(one.as_ref().as_ptr().align_offset(64), 0);
        // Between two pieces that are looked at.
        let mut other = bytes.clone();
        other[20] ^= 1;
        let other_kept = pool.keep(&[&other[..]]).unwrap();
        assert_eq!(other_kept.as_ref(), other);
        assert_eq!(one.as_ref(), bytes);
        let longer = pool.keep(&[&bytes[..], &[0; 64]]).unwrap();
        assert_eq!(longer.as_ref().len(), bytes.len() + 64);
    }

    #[test]
    fn what_no_one_uses_is_gone() {
        let pool = WeightPool::new();
        let one = pool.keep(&[&[1; 5000]]).unwrap();
        assert_eq!(pool.bytes(), 5000);
        let two = pool.keep(&[&[1; 5000]]).unwrap();
        assert_eq!((pool.bytes(), pool.saved_bytes()), (5000, 5000), "counted once");
        drop(one);
        assert_eq!((pool.bytes(), pool.saved_bytes()), (5000, 0));
        drop(two);
        assert_eq!(pool.bytes(), 0);
        let _three = pool.keep(&[&[2; 7000]]).unwrap();
        assert_eq!(pool.lock().len(), 1, "nothing is left of what is gone");
    }
}
