//! [`Pieces`]: bytes as they came, not in one piece of memory.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::ops::Range;

/// Pieces that are shorter are joined: each takes memory beside its bytes, up to what was read at once.
const SHORTEST: usize = 16 << 10;

/// Bytes as they came, not in one piece of memory: putting a large body together would cost a copy of it.
#[derive(Debug, Clone, Default)]
pub struct Pieces {
    /// None is empty.
    pieces: VecDeque<Bytes>,
    length: usize,
}

impl Pieces {
    /// How many bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The pieces, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().map(|piece| &**piece)
    }

    /// All bytes in one piece.
    pub fn to_bytes(&self) -> Bytes {
        self.front(self.length).unwrap_or_default()
    }

    /// Whether the first `length` bytes are in one piece.
    pub(crate) fn is_joined(&self, length: usize) -> bool {
        self.pieces.front().is_none_or(|first| first.len() >= length)
    }

    /// The first `length` bytes in one piece, which copies them only if they are in several; `None` if there are
    /// fewer.
    pub(crate) fn front(&self, length: usize) -> Option<Bytes> {
        if length > self.length {
            return None;
        }
        match self.pieces.front() {
            Some(first) if first.len() >= length => return Some(first.slice(..length)),
            None => return Some(Bytes::new()),
            Some(_) => {}
        }
        let mut joined = BytesMut::with_capacity(length);
        self.each(0..length, |part| {
            joined.extend_from_slice(part);
            Ok::<_, std::convert::Infallible>(())
        })
        .ok()?;
        Some(joined.freeze())
    }

    /// Takes the first `length` bytes away, or all if there are fewer.
    pub(crate) fn split_to(&mut self, length: usize) -> Self {
        let mut taken = Self::default();
        while taken.length < length
            && let Some(first) = self.pieces.front_mut()
        {
            let part = first.split_to(first.len().min(length - taken.length));
            if first.is_empty() {
                self.pieces.pop_front();
            }
            self.length -= part.len();
            taken.append(part);
        }
        taken
    }

    /// Shows a range of the bytes, piece by piece. What is beyond the end is left out.
    ///
    /// # Errors
    /// Those of `show`, which ends it.
    pub(crate) fn each<E>(
        &self,
        range: Range<usize>,
        mut show: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut begin = 0;
        for piece in &self.pieces {
            let end = begin + piece.len();
            let (from, to) = (range.start.max(begin), range.end.min(end));
            if from < to {
                show(&piece[from - begin..to - begin])?;
            }
            begin = end;
        }
        Ok(())
    }

    fn append(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.length += piece.len();
            self.pieces.push_back(piece);
        }
    }
}

impl IntoIterator for Pieces {
    type Item = Bytes;
    type IntoIter = std::collections::vec_deque::IntoIter<Bytes>;

    fn into_iter(self) -> Self::IntoIter {
        self.pieces.into_iter()
    }
}

impl<B: Into<Bytes>> From<B> for Pieces {
    fn from(bytes: B) -> Self {
        let mut pieces = Self::default();
        pieces.append(bytes.into());
        pieces
    }
}

/// Takes pieces as they come.
#[derive(Debug, Default)]
pub(crate) struct Joining {
    pieces: Pieces,
    /// Short ones that came last.
    short: BytesMut,
}

impl Joining {
    pub(crate) fn push(&mut self, piece: Bytes) {
        if piece.len() < SHORTEST {
            self.short.extend_from_slice(&piece);
            if self.short.len() < SHORTEST {
                return;
            }
        }
        let is_joined = piece.len() < SHORTEST;
        self.pieces.append(self.short.split().freeze());
        if !is_joined {
            self.pieces.append(piece);
        }
    }

    pub(crate) fn end(mut self) -> Pieces {
        self.pieces.append(self.short.freeze());
        self.pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(lengths: &[usize]) -> (Pieces, Vec<u8>) {
        let mut joining = Joining::default();
        let mut all = Vec::new();
        for length in lengths {
            let piece: Vec<u8> =
                (all.len()..all.len() + length).map(|it| u8::try_from(it % 251).unwrap()).collect();
            all.extend(&piece);
            joining.push(piece.into());
        }
        (joining.end(), all)
    }

    #[test]
    fn bytes_are_in_order_and_none_is_lost() {
        for lengths in [&[][..], &[0], &[1, 20_000, 5, 5, 40_000, 3], &[20_000, 20_000], &[7; 5000]]
        {
            let (pieces, all) = joined(lengths);
            assert_eq!(pieces.len(), all.len());
            assert_eq!(pieces.iter().flatten().copied().collect::<Vec<_>>(), all);
            assert_eq!(pieces.to_bytes(), all);
            for at in [0, 1, 6, 20_000, 20_001, all.len()].map(|at| at.min(all.len())) {
                assert_eq!(pieces.front(at).unwrap(), all[..at]);
                let mut rest = pieces.clone();
                assert_eq!(rest.split_to(at).to_bytes(), all[..at]);
                assert_eq!(
                    (rest.to_bytes(), rest.len()),
                    (all[at..].to_vec().into(), all.len() - at)
                );
                let mut found = Vec::new();
                let show = |part: &[u8]| {
                    found.extend_from_slice(part);
                    Ok::<_, ()>(())
                };
                pieces.each(at / 2..at, show).unwrap();
                assert_eq!(found, all[at / 2..at]);
            }
            assert!(pieces.front(all.len() + 1).is_none());
        }
    }

    #[test]
    fn what_is_large_is_not_copied_and_what_is_short_is_joined() {
        let large = Bytes::from(vec![1; SHORTEST]);
        let mut joining = Joining::default();
        joining.push(large.clone());
        assert_eq!(joining.end().pieces[0].as_ptr(), large.as_ptr());
        // A body that comes byte by byte is few pieces.
        assert!(joined(&[1; 100_000]).0.pieces.len() <= 100_000 / SHORTEST + 1);
    }
}
