//! [`compressed`]: answers as their clients want them.

use crate::compressed::{Encoding, LEAST, compress};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, VARY};
use http::{HeaderValue, Method, Request};
use http_body::Body as _;
use http_body_util::BodyExt as _;

/// How the answer to a request may be compressed; `None`: not. Those that describe models and the server are not, as
/// Triton's are not: its clients for Python read them as they come, whatever they were taken to accept.
pub(crate) fn encoding<B>(request: &Request<B>) -> Option<Encoding> {
    let headers = request.headers();
    if !headers.contains_key(ACCEPT_ENCODING) {
        return None;
    }
    let path = request.uri().path();
    // A model may be called so too.
    let is_run = request.method() == Method::POST && path.ends_with("/infer");
    let is_described = path.starts_with("/v2") && !is_run;
    if is_described { None } else { Encoding::accepted(headers, ACCEPT_ENCODING) }
}

/// An answer, compressed if it is worth it. The length of the JSON in front of bytes
/// (`Inference-Header-Content-Length`) stays the one of JSON that is not compressed, as Triton's does.
pub(crate) async fn compressed(response: Response, encoding: Encoding) -> Response {
    let length = response.body().size_hint().exact().unwrap_or(0);
    if length < LEAST as u64 || !response.status().is_success() {
        return response;
    }
    let (mut head, body) = response.into_parts();
    // It is in memory already.
    let plain = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => {
            let error = crate::error::Error::Internal(error.to_string());
            return super::Refusal(error).into_response();
        }
    };
    head.headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    let Some(bytes) = compress(encoding, Bytes::clone(&plain)).await else {
        return Response::from_parts(head, Body::from(plain));
    };
    head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
    head.headers.insert(CONTENT_LENGTH, bytes.len().into());
    Response::from_parts(head, Body::from(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_describes_models_is_not_compressed_whatever_they_are_called() {
        for (method, path, is_compressed) in [
            (Method::POST, "/v2/models/digits/infer", true),
            (Method::POST, "/v2/models/digits/versions/1/infer", true),
            (Method::GET, "/v2/models/infer", false),
            (Method::GET, "/v2/models/digits/config", false),
            (Method::POST, "/v2/repository/index", false),
            (Method::GET, "/v2", false),
            (Method::GET, "/metrics", true),
            (Method::GET, "/", true),
            (Method::GET, "/nnhal/models", true),
        ] {
            let request = Request::builder().method(method).uri(path);
            let request = request.header(ACCEPT_ENCODING, "gzip").body(()).unwrap();
            let expected = is_compressed.then_some(Encoding::Gzip);
            assert_eq!(encoding(&request), expected, "{path}");
        }
        assert_eq!(encoding(&Request::new(())), None);
    }
}
