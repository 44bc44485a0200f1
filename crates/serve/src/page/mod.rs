//! The page for people at `/`: it asks the server itself for what it shows, and nothing else.

use axum::response::{IntoResponse, Response};
use http::header;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

fn file(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}

pub(crate) async fn page() -> Response {
    file("text/html; charset=utf-8", include_str!("page.html"))
}

pub(crate) async fn script() -> Response {
    file("text/javascript; charset=utf-8", include_str!("page.js"))
}

pub(crate) async fn style() -> Response {
    file("text/css; charset=utf-8", include_str!("page.css"))
}
