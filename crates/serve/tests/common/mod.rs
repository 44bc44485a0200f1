//! What tests of a server have in common: repositories, and requests by HTTP as it is on the wire.
#![allow(dead_code)] // Each of the tests uses a part.

use nnhal_serve::{Options, Server};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub fn asset(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/digits").join(name)
}

/// A repository with the digits' network, in floats, as `digits`.
pub fn repository(config: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    add(folder.path(), "digits", 1, "digits_float32.tflite", config);
    folder
}

pub fn add(root: &Path, name: &str, version: u64, file: &str, config: &str) {
    let folder = root.join(name).join(version.to_string());
    std::fs::create_dir_all(&folder).unwrap();
    let partial = root.join(format!(".{name}-{version}"));
    std::fs::copy(asset(file), &partial).unwrap();
    std::fs::rename(partial, folder.join("model.tflite")).unwrap();
    std::fs::write(root.join(name).join("config.toml"), config).unwrap();
}

pub fn options(models: &Path) -> Options {
    let here = "127.0.0.1:0".parse().unwrap();
    let mut options = Options::new(models).http(here).grpc(here);
    options.poll = Some(Duration::from_millis(50));
    options
}

pub fn start(options: Options) -> (Server, SocketAddr) {
    let server = Server::start(options).unwrap();
    let address = server.http_address().unwrap();
    (server, address)
}

/// Sends bytes, and reads until the other side ends.
pub fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // What is refused early is not read to its end.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

pub fn request(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut bytes = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

pub fn get(address: SocketAddr, path: &str) -> String {
    exchange(address, &request("GET", path, "", b""))
}

pub fn post(address: SocketAddr, path: &str, body: &str) -> String {
    exchange(address, &request("POST", path, "", body.as_bytes()))
}

pub fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
}

pub const INFER: &str = "/v2/models/digits/infer";

/// A request for rows of an image of one brightness.
pub fn image(rows: usize, brightness: f32) -> String {
    let data = vec![brightness.to_string(); rows * 64].join(",");
    format!(
        r#"{{"id":"{brightness}","inputs":[{{"name":"image","shape":[{rows},8,8,1],"datatype":"FP32","data":[{data}]}}]}}"#
    )
}

/// A repository with a model that negates 32,768 floats.
pub fn negative() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("negative");
    std::fs::create_dir_all(root.join("1")).unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/negative.tflite");
    std::fs::copy(file, root.join("1/model.tflite")).unwrap();
    std::fs::write(root.join("config.toml"), "instances = 2").unwrap();
    folder
}

/// A repository with a model of some hundred milliseconds: forty times `tanh(y) + x` over two million values.
pub fn slow(config: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("slow/1")).unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/slow.tflite");
    std::fs::copy(file, folder.path().join("slow/1/model.tflite")).unwrap();
    std::fs::write(folder.path().join("slow/config.toml"), config).unwrap();
    folder
}

/// A repository with a model of this file, named `name`.
pub fn of_file(file: &Path, name: &str, config: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join(name);
    std::fs::create_dir_all(root.join("1")).unwrap();
    std::fs::copy(file, root.join("1/model.tflite")).unwrap();
    std::fs::write(root.join("config.toml"), config).unwrap();
    folder
}

/// A number of the server's metrics.
pub fn metric(address: SocketAddr, name: &str) -> f64 {
    let metrics = get(address, "/metrics");
    let line = metrics.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok())
        .unwrap_or_else(|| panic!("{metrics}"))
}
