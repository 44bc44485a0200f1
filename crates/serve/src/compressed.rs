//! [`decompress`]: bodies and messages that clients have compressed. [`compress`]: those that they want to be.

use crate::blocking::blocking;
use crate::charge::SharedCharge;
use crate::error::{Error, Result};
use crate::pieces::{Joining, Pieces};
use bytes::Bytes;
use flate2::Compression;
use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};
use http::HeaderMap;
use http::header::AsHeaderName;
use std::io::{BufReader, Read, Write};
use std::sync::{Arc, PoisonError};
use tokio::sync::Semaphore;

/// Bytes that are decompressed or compressed at a time.
const PIECE: usize = 64 << 10;

/// Fewer bytes are not compressed: they fit into a packet as they are.
pub(crate) const LEAST: usize = 1 << 10;

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

    /// The one that a header of a request prefers for the answer, in the form of `Accept-Encoding` (RFC 9110, 12.5.3), of which
    /// gRPC's is a part; `None`: it asks for none.
    pub(crate) fn accepted(headers: &HeaderMap, name: impl AsHeaderName) -> Option<Self> {
        let mut weights = Weights::default();
        for value in headers.get_all(name) {
            for (coding, weight) in value.to_str().ok()?.split(',').filter_map(weighted) {
                let of_this = match coding.to_ascii_lowercase().as_str() {
                    "gzip" | "x-gzip" => &mut weights.gzip,
                    "deflate" => &mut weights.deflate,
                    "identity" => &mut weights.identity,
                    "*" => &mut weights.others,
                    _ => continue,
                };
                *of_this = Some(weight);
            }
        }
        let others = weights.others.unwrap_or(0.0);
        let gzip = weights.gzip.unwrap_or(others);
        let deflate = weights.deflate.unwrap_or(others);
        let best = gzip.max(deflate);
        if best <= 0.0 || weights.identity.is_some_and(|identity| identity > best) {
            return None;
        }
        Some(if gzip >= deflate { Self::Gzip } else { Self::Deflate })
    }

    /// Its name in headers.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
        }
    }
}

/// How much a client wants each coding, 0 to 1.
#[derive(Default)]
struct Weights {
    gzip: Option<f32>,
    deflate: Option<f32>,
    identity: Option<f32>,
    others: Option<f32>,
}

/// A coding and its weight; `None` if the weight is none.
fn weighted(item: &str) -> Option<(&str, f32)> {
    let Some((coding, parameter)) = item.split_once(';') else { return Some((item.trim(), 1.0)) };
    let weight = parameter.trim().strip_prefix(['q', 'Q'])?.trim_start().strip_prefix('=')?;
    let weight: f32 = weight.trim().parse().ok()?;
    (0.0..=1.0).contains(&weight).then_some((coding.trim(), weight))
}

/// Answers that are compressed at a time: fewer than there are threads for what takes its time, so that others that need one,
/// such as who sends much JSON, do not wait for those.
const MOST_AT_A_TIME: usize = 4;

/// The bytes compressed, quickly rather than well, on a thread of its own; `None` if that does not make them fewer. It ends
/// with whoever waits for it.
pub(crate) async fn compress(encoding: Encoding, bytes: Bytes) -> Option<Bytes> {
    static PLACES: Semaphore = Semaphore::const_new(MOST_AT_A_TIME);
    let _place = PLACES.acquire().await.ok()?;
    let waiting = Arc::new(());
    let is_waited_for = Arc::downgrade(&waiting);
    let work = move || Ok(compressed(encoding, &bytes, || is_waited_for.strong_count() > 0));
    let outcome = blocking(work).await;
    drop(waiting);
    outcome.ok().flatten()
}

fn compressed(encoding: Encoding, bytes: &[u8], is_waited_for: impl Fn() -> bool) -> Option<Bytes> {
    let fewer = Fewer { bytes: Vec::new(), than: bytes.len() };
    let mut encoder = match encoding {
        Encoding::Gzip => Encoder::Gzip(GzEncoder::new(fewer, Compression::fast())),
        Encoding::Deflate => Encoder::Deflate(ZlibEncoder::new(fewer, Compression::fast())),
    };
    for piece in bytes.chunks(PIECE) {
        if !is_waited_for() {
            return None;
        }
        match &mut encoder {
            Encoder::Gzip(encoder) => encoder.write_all(piece),
            Encoder::Deflate(encoder) => encoder.write_all(piece),
        }
        .ok()?;
    }
    let fewer = match encoder {
        Encoder::Gzip(encoder) => encoder.finish(),
        Encoder::Deflate(encoder) => encoder.finish(),
    };
    Some(fewer.ok()?.bytes.into())
}

enum Encoder {
    Gzip(GzEncoder<Fewer>),
    Deflate(ZlibEncoder<Fewer>),
}

/// Takes fewer bytes than a number.
struct Fewer {
    bytes: Vec<u8>,
    than: usize,
}

impl Write for Fewer {
    fn write(&mut self, more: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len().saturating_add(more.len()) >= self.than {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.bytes.try_reserve(more.len())?;
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
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
    use crate::charge::{Charge, Receiving};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

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
    fn what_is_compressed_comes_back_and_is_fewer_bytes() {
        let bytes: Vec<u8> = (0..200_000_u32).map(|it| (it % 251) as u8).collect();
        for encoding in [Encoding::Gzip, Encoding::Deflate] {
            let fewer = compressed(encoding, &bytes, || true).unwrap();
            assert!(fewer.len() < bytes.len() / 2, "{encoding:?}: {}", fewer.len());
            let found = try_it(encoding, fewer.to_vec(), 1 << 20, 1 << 20).unwrap();
            assert!(found == bytes, "{encoding:?}");
            // What looks random does not become less, and is not kept.
            let mut seed = 1_u32;
            let random = std::iter::repeat_with(|| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 24) as u8
            });
            let random: Vec<u8> = random.take(100_000).collect();
            assert!(compressed(encoding, &random, || true).is_none(), "{encoding:?}");
            assert!(compressed(encoding, b"", || true).is_none(), "{encoding:?}");
            // Whoever waited is gone.
            let asked = AtomicUsize::new(0);
            let is_waited_for = || asked.fetch_add(1, Ordering::Relaxed) < 2;
            assert!(compressed(encoding, &bytes, is_waited_for).is_none(), "{encoding:?}");
            assert_eq!(asked.into_inner(), 3);
        }
    }

    #[test]
    fn what_a_client_wants_is_read_by_its_weights() {
        use Encoding::{Deflate, Gzip};
        for (lines, expected) in [
            (&[][..], None),
            (&[""], None),
            (&["gzip"], Some(Gzip)),
            (&["X-GZip"], Some(Gzip)),
            (&["deflate"], Some(Deflate)),
            (&["gzip, deflate, br, zstd"], Some(Gzip)),
            (&["identity,deflate,gzip"], Some(Gzip)),
            (&["identity", "deflate"], Some(Deflate)),
            (&["gzip;q=0.5, deflate; q=0.8"], Some(Deflate)),
            (&["gzip;q=0"], None),
            (&["gzip;q=0, *"], Some(Deflate)),
            (&["*;q=0"], None),
            (&["br, identity"], None),
            (&["identity;q=1, gzip;q=0.5"], None),
            (&["identity;q=0.5, gzip;q=0.5"], Some(Gzip)),
            (&["gzip;q=2", "deflate;q=x", "gzip;"], None),
            (&["gzip;q=nan"], None),
            (&[",;,=;q"], None),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("accept-encoding", line.parse().unwrap());
            }
            assert_eq!(Encoding::accepted(&headers, "accept-encoding"), expected, "{lines:?}");
        }
        let mut headers = HeaderMap::new();
        let other = http::HeaderValue::from_bytes(b"gzip, \xff").unwrap();
        headers.insert("accept-encoding", other);
        assert_eq!(Encoding::accepted(&headers, "accept-encoding"), None);
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
