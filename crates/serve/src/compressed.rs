//! [`decompress`]: bodies and messages that clients have compressed.

use crate::endpoint::SharedCharge;
use crate::error::{Error, Result};
use crate::pieces::{Joining, Pieces};
use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use http::HeaderMap;
use http::header::AsHeaderName;
use std::io::{BufReader, Read};
use std::sync::PoisonError;

/// Bytes that are decompressed at a time.
const PIECE: usize = 64 << 10;

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Gzip,
    /// Zlib's format, whatever its name says.
    Deflate,
}

impl Encoding {
    /// What a header of a request says; `None` for a request that is not compressed.
    ///
    /// # Errors
    /// [`Error::Encoding`]
    pub(crate) fn of(headers: &HeaderMap, name: impl AsHeaderName) -> Result<Option<Self>> {
        let Some(value) = headers.get(name) else { return Ok(None) };
        match value.as_bytes().to_ascii_lowercase().as_slice() {
            b"identity" => Ok(None),
            b"gzip" | b"x-gzip" => Ok(Some(Self::Gzip)),
            b"deflate" => Ok(Some(Self::Deflate)),
            _ => Err(Error::Encoding),
        }
    }
}

/// The bytes that were compressed, at most `most`, which count as those of the request.
///
/// # Errors
/// [`Error::Invalid`]: they are not compressed so; [`Error::TooLarge`], [`Error::NoMemory`].
pub(crate) fn decompress(
    encoding: Encoding,
    body: &Pieces,
    most: usize,
    charge: &SharedCharge,
) -> Result<Pieces> {
    let compressed = BufReader::new(Reader { body, at: 0 });
    let mut decoder: Box<dyn Read> = match encoding {
        Encoding::Gzip => Box::new(MultiGzDecoder::new(compressed)),
        Encoding::Deflate => Box::new(ZlibDecoder::new(compressed)),
    };
    let (mut all, mut length) = (Joining::default(), 0_usize);
    loop {
        let mut piece = Vec::new();
        let read = decoder.by_ref().take(PIECE as u64).read_to_end(&mut piece);
        read.map_err(|error| {
            Error::invalid(format!("what was sent is not compressed as it says: {error}"))
        })?;
        if piece.is_empty() {
            return Ok(all.end());
        }
        length = length.saturating_add(piece.len());
        if length > most {
            return Err(Error::TooLarge { limit: most });
        }
        charge.lock().unwrap_or_else(PoisonError::into_inner).take(piece.len())?;
        all.push(piece.into());
    }
}

/// Reads pieces one after the other.
struct Reader<'a> {
    body: &'a Pieces,
    at: usize,
}

impl Read for Reader<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let mut count = 0;
        let range = self.at..self.at.saturating_add(to.len());
        self.body.each(range, |part| {
            to[count..count + part.len()].copy_from_slice(part);
            count += part.len();
            std::io::Result::Ok(())
        })?;
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::{Charge, Receiving};
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    fn try_it(encoding: Encoding, bytes: Vec<u8>, most: usize, memory: usize) -> Result<Vec<u8>> {
        let charge = Arc::new(Mutex::new(Charge::new(Receiving::new(memory))));
        decompress(encoding, &bytes.into(), most, &charge).map(|it| it.to_bytes().to_vec())
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn bodies_come_out_as_they_were() {
        let bytes: Vec<u8> = (0..200_000_u32).map(|it| (it % 251) as u8).collect();
        let mut deflate = ZlibEncoder::new(Vec::new(), Compression::fast());
        deflate.write_all(&bytes).unwrap();
        let deflated = deflate.finish().unwrap();
        for (encoding, compressed) in
            [(Encoding::Gzip, gzip(&bytes)), (Encoding::Deflate, deflated)]
        {
            let found = try_it(encoding, compressed, 1 << 20, 1 << 20).unwrap();
            assert!(found == bytes, "{encoding:?}");
        }
        assert_eq!(try_it(Encoding::Gzip, gzip(b""), 1, 1).unwrap(), b"");
    }

    #[test]
    fn sec_little_that_becomes_much_is_refused() {
        let bomb = gzip(&vec![0; 64 << 20]);
        assert!(bomb.len() < 100_000);
        let refused = try_it(Encoding::Gzip, bomb.clone(), 1 << 20, 1 << 30);
        assert_eq!(refused, Err(Error::TooLarge { limit: 1 << 20 }));
        let refused = try_it(Encoding::Gzip, bomb, 1 << 30, 1 << 20);
        assert_eq!(refused, Err(Error::NoMemory { limit: 1 << 20 }));
    }

    #[test]
    fn sec_what_is_not_compressed_is_refused() {
        let cut = gzip(&[7; 1000]);
        for bytes in [b"plain".to_vec(), cut[..cut.len() - 5].to_vec()] {
            for encoding in [Encoding::Gzip, Encoding::Deflate] {
                let refused = try_it(encoding, bytes.clone(), 1 << 20, 1 << 20);
                assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
            }
        }
    }
}
