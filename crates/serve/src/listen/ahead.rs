//! [`ReadAhead`]: reads more at once than it is asked for.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that are read at once.
const LENGTH: usize = 64 << 10;

/// Reads more at once than it is asked for, when there is more: HTTP/2 asks for a frame at a time, which are small.
/// While nothing comes it has no memory.
pub(crate) struct ReadAhead<S> {
    inner: S,
    /// Those from `begin` on have been read, and not been asked for yet.
    bytes: Vec<u8>,
    begin: usize,
    /// Whether the last read gave all that it was asked for, so that there may be more.
    is_more: bool,
}

impl<S> ReadAhead<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner, bytes: Vec::new(), begin: 0, is_more: false }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReadAhead<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { inner, bytes, begin, is_more } = &mut *self;
        if *begin == bytes.len() {
            if !*is_more || buffer.remaining() >= LENGTH {
                let before = buffer.filled().len();
                let polled = Pin::new(inner).poll_read(context, buffer);
                *is_more =
                    polled.is_ready() && buffer.filled().len() > before && buffer.remaining() == 0;
                if polled.is_pending() {
                    (*bytes, *begin) = (Vec::new(), 0);
                }
                return polled;
            }
            bytes.resize(LENGTH, 0);
            let mut ahead = ReadBuf::new(bytes);
            let polled = Pin::new(inner).poll_read(context, &mut ahead);
            let length = ahead.filled().len();
            *is_more = length == LENGTH;
            bytes.truncate(length);
            *begin = 0;
            if polled.is_pending() {
                *bytes = Vec::new();
            }
            ready!(polled)?;
        }
        let length = buffer.remaining().min(bytes.len() - *begin);
        buffer.put_slice(&bytes[*begin..*begin + length]);
        *begin += length;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ReadAhead<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        all: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, all)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    /// Gives `left` bytes that count up, `at_once` at a time at most, and counts how often it was asked.
    struct Source {
        left: usize,
        next: u8,
        at_once: usize,
        asked: usize,
    }

    impl AsyncRead for Source {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            self.asked += 1;
            for _ in 0..buffer.remaining().min(self.at_once).min(self.left) {
                buffer.put_slice(&[self.next]);
                self.next = self.next.wrapping_add(1);
                self.left -= 1;
            }
            Poll::Ready(Ok(()))
        }
    }

    /// Reads all in portions of this length, and gives how often the source was asked.
    fn asked(length: usize, at_once: usize, portion: usize) -> usize {
        let source = Source { left: length, next: 0, at_once, asked: 0 };
        let mut ahead = ReadAhead::new(source);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (mut buffer, mut found) = (vec![0; portion], Vec::new());
            loop {
                match ahead.read(&mut buffer).await.unwrap() {
                    0 => break,
                    count => found.extend_from_slice(&buffer[..count]),
                }
            }
            assert_eq!(found.len(), length);
            let expected = |at: usize| u8::try_from(at % 256).unwrap();
            assert!(found.iter().enumerate().all(|(at, byte)| *byte == expected(at)));
        });
        ahead.inner.asked
    }

    #[test]
    fn bytes_are_in_order_however_they_come_and_are_asked_for() {
        for (length, at_once, portion) in [
            (0, 1, 1),
            (1, 9, 1),
            (200_000, 1000, 7),
            (200_000, 1 << 20, 8192),
            (65_536, 65_536, 4096),
        ] {
            asked(length, at_once, portion);
        }
    }

    #[test]
    fn small_portions_of_much_are_read_at_once() {
        // The first portion, nine of 64 KiB, and the end.
        assert_eq!(asked(602_112, 1 << 20, 16_384), 11);
        // Large portions go past it.
        assert_eq!(asked(1 << 20, 1 << 20, 1 << 19), 3);
    }
}
