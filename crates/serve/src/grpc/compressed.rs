//! [`compressed`]: answers as their clients want them. The library for gRPC would compress every answer for every client that
//! can read it so, which all can, on the threads that others are answered on.

use crate::compressed::{Encoding, LEAST, compress};
use crate::error::Error;
use axum::body::Body;
use axum::response::Response;
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderValue, Request};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full};

/// The method whose answers may be long.
const INFER: &str = "/inference.GRPCInferenceService/ModelInfer";

/// How the answer to a request is compressed; `None`: not. It is as the request is, if the client reads answers so.
pub(crate) fn encoding<B>(request: &Request<B>) -> Option<Encoding> {
    if request.uri().path() != INFER {
        return None;
    }
    let headers = request.headers();
    let of_request = Encoding::of(headers, super::decompressed::ENCODING).ok()??;
    let accepted = headers.get_all(super::ACCEPTED).iter().filter_map(|it| it.to_str().ok());
    let mut accepted = accepted.flat_map(|it| it.split(',')).map(str::trim);
    accepted.any(|it| it.eq_ignore_ascii_case(of_request.name())).then_some(of_request)
}

/// An answer of one message, compressed if it is worth it.
pub(crate) async fn compressed(response: Response, encoding: Encoding) -> Response {
    // An error, all of which is in the headers: a body, even an empty one, would make it another answer.
    if response.body().is_end_stream() || response.headers().contains_key("grpc-status") {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let collected = match body.collect().await {
        Ok(collected) => collected,
        Err(error) => {
            let error = Error::Internal(error.to_string());
            return super::status(&error).into_http::<Body>();
        }
    };
    let trailers = collected.trailers().cloned();
    let plain = collected.to_bytes();
    let message = plain.get(super::decompressed::HEAD..).unwrap_or_default();
    let bytes = match message.len() < LEAST {
        true => None,
        false => compress(encoding, plain.slice_ref(message)).await,
    };
    let bytes = match bytes.and_then(|bytes| framed(&bytes)) {
        Some(bytes) => {
            let name = HeaderValue::from_static(encoding.name());
            head.headers.insert(super::decompressed::ENCODING, name);
            bytes
        }
        None => plain,
    };
    let body = Full::new(bytes).with_trailers(async move { trailers.map(Ok) });
    Response::from_parts(head, Body::new(body))
}

/// A message that is compressed, with its head.
fn framed(bytes: &[u8]) -> Option<Bytes> {
    let length = u32::try_from(bytes.len()).ok()?;
    let mut framed = BytesMut::with_capacity(super::decompressed::HEAD + bytes.len());
    framed.put_u8(1);
    framed.put_u32(length);
    framed.put_slice(bytes);
    Some(framed.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charge::{Charge, Receiving};
    use crate::compressed::decompress;
    use http::HeaderMap;
    use std::sync::{Arc, Mutex};

    #[test]
    fn answers_are_compressed_as_requests_are_if_clients_read_them_so() {
        for (path, encoding_of, accepted, expected) in [
            (INFER, Some("gzip"), Some("identity, deflate, gzip"), Some(Encoding::Gzip)),
            (INFER, Some("deflate"), Some("identity,deflate,gzip"), Some(Encoding::Deflate)),
            (INFER, Some("deflate"), Some("identity,gzip"), None),
            (INFER, Some("gzip"), None, None),
            (INFER, None, Some("identity, deflate, gzip"), None),
            (INFER, Some("identity"), Some("identity, deflate, gzip"), None),
            (INFER, Some("br"), Some("br"), None),
            ("/inference.GRPCInferenceService/ModelConfig", Some("gzip"), Some("gzip"), None),
        ] {
            let mut request = Request::builder().uri(path);
            for (name, value) in
                [("grpc-encoding", encoding_of), ("grpc-accept-encoding", accepted)]
            {
                if let Some(value) = value {
                    request = request.header(name, value);
                }
            }
            assert_eq!(
                encoding(&request.body(()).unwrap()),
                expected,
                "{path} {encoding_of:?} {accepted:?}"
            );
        }
    }

    /// What becomes of a message of this many bytes: headers, body and trailers.
    fn answer(length: u32) -> (HeaderMap, Bytes, HeaderMap) {
        let message: Vec<u8> = (0..length).map(|it| (it % 251) as u8).collect();
        let plain = [&[0][..], &length.to_be_bytes(), &message].concat();
        let trailers = HeaderMap::from_iter([(
            http::HeaderName::from_static("grpc-status"),
            HeaderValue::from_static("0"),
        )]);
        let body = Full::new(Bytes::from(plain)).with_trailers(async { Some(Ok(trailers)) });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let response = compressed(Response::new(Body::new(body)), Encoding::Gzip).await;
            let (head, body) = response.into_parts();
            let collected = body.collect().await.unwrap();
            let trailers = collected.trailers().cloned().unwrap();
            (head.headers, collected.to_bytes(), trailers)
        })
    }

    #[test]
    fn messages_come_back_and_statuses_stay() {
        let (headers, bytes, trailers) = answer(100_000);
        assert_eq!(
            (&headers["grpc-encoding"], &trailers["grpc-status"]),
            (&HeaderValue::from_static("gzip"), &HeaderValue::from_static("0"))
        );
        assert_eq!(bytes[0], 1);
        assert_eq!(bytes[1..5], u32::try_from(bytes.len() - 5).unwrap().to_be_bytes());
        assert!(bytes.len() < 50_000, "{}", bytes.len());
        let charge = Arc::new(Mutex::new(Charge::new(Receiving::new(1 << 20))));
        let message =
            decompress(Encoding::Gzip, &bytes.slice(5..).into(), 1 << 20, &charge).unwrap();
        assert!(
            message
                .to_bytes()
                .iter()
                .zip(0..100_000_u32)
                .all(|(it, at)| u32::from(*it) == at % 251)
        );
        assert_eq!(message.len(), 100_000);

        // Errors are headers alone.
        let error = super::super::status(&Error::Encoding).into_http::<Body>();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let response = runtime.block_on(compressed(error, Encoding::Gzip));
        assert!(response.headers().contains_key("grpc-status"));
        assert!(response.body().is_end_stream());

        // Short ones stay as they are.
        let (headers, bytes, trailers) = answer(500);
        assert!(!headers.contains_key("grpc-encoding"));
        assert_eq!((bytes[0], bytes.len()), (0, 505));
        assert_eq!(trailers["grpc-status"], "0");
    }
}
