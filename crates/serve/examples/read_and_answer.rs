//! An HTTP server of the same framework, with the same settings, that reads requests and answers without doing anything.
//! `bench/serve.py` measures with it what the connection itself costs.

#![allow(clippy::print_stdout)] // Where it listens.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut body = request.into_body();
    while let Some(Ok(_)) = body.frame().await {}
    Ok(Response::new(Full::from(vec![b' '; 1200])))
}

#[tokio::main(worker_threads = 2)]
async fn main() -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http {}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let connection = hyper::server::conn::http1::Builder::new()
            .max_buf_size(64 << 10)
            .serve_connection(TokioIo::new(stream), hyper::service::service_fn(answer));
        tokio::spawn(connection);
    }
}
