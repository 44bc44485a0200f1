//! [`decompressed`]: messages that clients have compressed. The library for gRPC would decompress them without asking whether
//! there is memory for what comes out.

use super::decoding::{Decoding, Messages};
use crate::blocking::blocking;
use crate::charge::{SharedCharge, take};
use crate::compressed::{Encoding, decompress};
use crate::endpoint::MessageCharges;
use crate::error::{Error, Result};
use crate::metrics::Metrics;
use crate::pieces::Pieces;
use axum::body::Body;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::Request;
use http_body_util::BodyExt as _;
use std::sync::{Arc, PoisonError};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

/// How messages of a request are compressed.
pub(super) const ENCODING: &str = "grpc-encoding";
/// In front of each message: whether it is compressed, and its length in four bytes, the highest first.
pub(super) const HEAD: usize = 5;

type BoxedError = Box<dyn std::error::Error + Send + Sync>;
type Sender = mpsc::Sender<std::result::Result<Bytes, BoxedError>>;

/// A request whose messages, each of at most `most` bytes, are not compressed any more. What is wrong with one of them is counted
/// here.
///
/// # Errors
/// [`Error::Encoding`]
pub(super) fn decompressed(
    mut request: Request<Body>,
    most: usize,
    metrics: &Arc<Metrics>,
) -> Result<Request<Body>> {
    let Some(encoding) = Encoding::of(request.headers(), ENCODING)? else { return Ok(request) };
    let charge = request.extensions().get::<SharedCharge>().cloned();
    let charge =
        charge.ok_or_else(|| Error::Internal("a request without a limit of memory".into()))?;
    request.headers_mut().remove(ENCODING);
    let kind = Messages::of(request.uri().path());
    // What a message takes of a stream is another number when it is not compressed any more.
    let received = request.extensions_mut().remove::<MessageCharges>();
    let charges = received.map(|received| (received, MessageCharges::default()));
    if let Some((_, decompressed)) = &charges {
        request.extensions_mut().insert(decompressed.clone());
    }
    let metrics = Arc::clone(metrics);
    Ok(request.map(|body| {
        let (sender, messages) = mpsc::channel(1);
        tokio::spawn(async move {
            let received = BytesMut::new();
            let mut reader =
                Reader { kind, body, received, encoding, most, charge, charges, metrics };
            let outcome = tokio::select! {
                outcome = reader.hand_on(&sender) => outcome,
                () = sender.closed() => return,
            };
            if let Err(error) = outcome {
                // It fails where no one reads the messages any more.
                let _ = sender.send(Err(error)).await;
            }
        });
        Body::from_stream(ReceiverStream::new(messages))
    }))
}

/// Reads a request's messages, one after the other.
struct Reader {
    kind: Messages,
    body: Body,
    received: BytesMut,
    encoding: Encoding,
    most: usize,
    charge: SharedCharge,
    /// Of a stream: what each message takes as it was sent, and as it is handed on.
    charges: Option<(MessageCharges, MessageCharges)>,
    metrics: Arc<Metrics>,
}

impl Reader {
    /// Hands all messages on, until there are no more or no one reads them.
    async fn hand_on(&mut self, sender: &Sender) -> std::result::Result<(), BoxedError> {
        while let Some(message) = self.message().await? {
            // Lengths are of four bytes, and `most` may be more.
            let length = u32::try_from(message.len());
            let length = length.map_err(|_| self.refuse(&Error::TooLarge { limit: self.most }))?;
            let mut head = BytesMut::with_capacity(HEAD);
            head.put_u8(0);
            head.put_u32(length);
            for piece in std::iter::once(head.freeze()).chain(message) {
                if sender.send(Ok(piece)).await.is_err() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The next message, not compressed; `None`: there is none.
    async fn message(&mut self) -> std::result::Result<Option<Pieces>, BoxedError> {
        self.receive(HEAD).await?;
        if self.received.is_empty() {
            return Ok(None);
        }
        let mut head = self.part(HEAD)?;
        let (is_compressed, length) = (head.get_u8(), head.get_u32() as usize);
        if length > self.most {
            return Err(self.refuse(&Error::TooLarge { limit: self.most }));
        }
        self.receive(length).await?;
        let message = Pieces::from(self.part(length)?);
        let sent = self.charges.as_ref().map_or(HEAD + length, |(sent, _)| sent.pop());
        let outcome = match is_compressed {
            0 => Ok((message, sent)),
            1 => self.decompressed(message, sent).await,
            _ => {
                let what = format!(
                    "a message says {is_compressed} of whether it is compressed: 0 or 1 is expected"
                );
                Err(Error::invalid(what))
            }
        };
        let (message, taken) = outcome.map_err(|error| self.refuse(&error))?;
        if let Some((_, decompressed)) = &self.charges {
            decompressed.push(taken);
        }
        Ok(Some(message))
    }

    /// A message as it was, and what it takes, also when it is decoded. What it was sent as counts no more.
    async fn decompressed(&mut self, message: Pieces, sent: usize) -> Result<(Pieces, usize)> {
        let (encoding, most, charge) = (self.encoding, self.most, Arc::clone(&self.charge));
        let decompressed = blocking(move || decompress(encoding, &message, most, &charge)).await?;
        let length = decompressed.len();
        let mut decoding = Decoding::new(self.kind, length);
        let mut decoded = 0_usize;
        for piece in decompressed.iter() {
            decoded = decoded.saturating_add(decoding.receive(piece)?);
        }
        take(&self.charge, decoded)?;
        self.charge.lock().unwrap_or_else(PoisonError::into_inner).give_back(sent);
        Ok((decompressed, length.saturating_add(decoded)))
    }

    /// Waits for `length` bytes of the body, or for its end.
    async fn receive(&mut self, length: usize) -> std::result::Result<(), BoxedError> {
        while self.received.len() < length
            && let Some(frame) = self.body.frame().await
        {
            if let Ok(data) = frame.map_err(axum::Error::into_inner)?.into_data() {
                self.received.extend_from_slice(&data);
            }
        }
        Ok(())
    }

    /// What was received, up to a length.
    fn part(&mut self, length: usize) -> std::result::Result<Bytes, BoxedError> {
        if self.received.len() < length {
            return Err(self.refuse(&Error::invalid("the request ends within a message")));
        }
        Ok(self.received.split_to(length).freeze())
    }

    /// Counts an error, and gives it as the reader of messages hands it on.
    fn refuse(&self, error: &Error) -> BoxedError {
        self.metrics.failed("grpc", error);
        super::status(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charge::{Charge, Receiving};
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write as _;
    use std::sync::Mutex;

    const MOST: usize = 100_000;

    fn metrics() -> Arc<Metrics> {
        Arc::new(Metrics::new())
    }

    fn message(flag: u8, bytes: &[u8]) -> Vec<u8> {
        let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
        [&[flag][..], &length, bytes].concat()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn request(encoding: &str, body: Vec<u8>, memory: &Arc<Receiving>) -> Request<Body> {
        let charge = Arc::new(Mutex::new(Charge::new(Arc::clone(memory))));
        let request = Request::builder().header(ENCODING, encoding).extension(charge);
        // Pieces of an odd length, so that they end anywhere.
        let pieces: Vec<_> = body.chunks(7).map(Bytes::copy_from_slice).collect();
        let pieces = tokio_stream::iter(pieces.into_iter().map(Ok::<_, BoxedError>));
        request.body(Body::from_stream(pieces)).unwrap()
    }

    /// What the reader of messages gets, or why it gets no more.
    fn read(body: Vec<u8>, memory: &Arc<Receiving>) -> std::result::Result<Vec<u8>, tonic::Status> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let request = decompressed(request("gzip", body, memory), MOST, &metrics()).unwrap();
            assert!(!request.headers().contains_key(ENCODING));
            let collected = request.into_body().collect().await;
            let bytes = collected.map(|it| it.to_bytes().to_vec());
            bytes.map_err(|error| tonic::Status::from_error(error.into()))
        })
    }

    #[test]
    fn messages_come_out_as_they_were() {
        let long: Vec<u8> = (0..90_000_u32).map(|it| (it % 251) as u8).collect();
        // A field that the protocol does not have.
        let long = [&[0xfa, 0x01, 0x90, 0xbf, 0x05][..], &long].concat();
        let sent = [
            message(1, &gzip(&long)),
            message(0, b"plain"),
            message(0, b""),
            message(1, &gzip(b"")),
            message(1, &gzip(&long)),
        ];
        // Memory for one at a time, as the reader gives back what it has read.
        let memory = Receiving::new(1 << 20);
        let expected = [&long[..], b"plain", b"", b"", &long].map(|it| message(0, it)).concat();
        assert!(read(sent.concat(), &memory).unwrap() == expected);
        assert_eq!(read(Vec::new(), &memory).unwrap(), b"");
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn sec_messages_that_are_none_or_too_large_are_refused() {
        let bomb = gzip(&vec![0; MOST + 1]);
        for (body, memory, code, words) in [
            (message(1, &bomb), 1 << 20, tonic::Code::ResourceExhausted, "100000"),
            (message(1, &gzip(&[0; 5000])), 1000, tonic::Code::ResourceExhausted, "1000"),
            (message(1, b"plain"), 1 << 20, tonic::Code::InvalidArgument, "compressed"),
            (message(2, b"plain"), 1 << 20, tonic::Code::InvalidArgument, "0 or 1"),
            (message(0, b"plain")[..9].to_vec(), 1 << 20, tonic::Code::InvalidArgument, "within"),
            (vec![0; 3], 1 << 20, tonic::Code::InvalidArgument, "within"),
            (vec![0, 255, 255, 255, 255], 1 << 20, tonic::Code::ResourceExhausted, "100000"),
        ] {
            let refused = read(body, &Receiving::new(memory)).unwrap_err();
            assert_eq!(refused.code(), code, "{refused:?}");
            assert!(refused.message().contains(words), "{refused:?}");
        }
    }

    #[test]
    fn sec_what_a_message_takes_when_it_is_decoded_is_taken_before() {
        // Settings of nothing: compressed they are few bytes, and decoded many.
        let many = |count: usize| message(1, &gzip(&b"\x0a\x00".repeat(count)));
        let path = "/inference.GRPCInferenceService/LogSettings";
        let read = |body, most: usize| {
            let memory = Receiving::new(most);
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let mut request = request("gzip", body, &memory);
                *request.uri_mut() = path.parse().unwrap();
                let request = decompressed(request, MOST, &metrics()).unwrap();
                let collected = request.into_body().collect().await;
                collected.map(drop).map_err(|error| tonic::Status::from_error(error.into()))
            })
        };
        assert!(read(many(100), 100_000).is_ok());
        let refused = read(many(100), 10_000).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted, "{refused:?}");
        let refused = read(many(257), 1 << 20).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::InvalidArgument, "{refused:?}");
        assert!(refused.message().contains("257 parameters, at most 256"), "{refused:?}");
    }

    #[test]
    fn requests_that_are_not_compressed_are_left_as_they_are() {
        let memory = Receiving::new(0);
        assert!(decompressed(request("identity", Vec::new(), &memory), MOST, &metrics()).is_ok());
        let refused = decompressed(request("br", Vec::new(), &memory), MOST, &metrics());
        assert!(matches!(refused, Err(Error::Encoding)));
    }
}
