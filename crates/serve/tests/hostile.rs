//! A server whose clients want too much of it: memory, threads, time. And what the others still get.

mod common;

use bytes::Bytes;
use common::*;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

const STREAM: &str = "/inference.GRPCInferenceService/ModelStreamInfer";
const UNARY: &str = "/inference.GRPCInferenceService/ModelInfer";
const INVALID_ARGUMENT: u32 = 3;
const DEADLINE_EXCEEDED: u32 = 4;
const RESOURCE_EXHAUSTED: u32 = 8;

/// Bytes of the input, and of the output, of the model that negates.
const LARGE: usize = 131_072;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let limited = async { tokio::time::timeout(Duration::from_secs(60), future).await };
    runtime.block_on(limited).expect("in time")
}

/// A connection by HTTP/2 of a client that asks for this many bytes of each answer, and what ends with it.
async fn connect(address: SocketAddr, window: u32) -> (SendRequest<Bytes>, JoinHandle<()>) {
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let mut builder = h2::client::Builder::new();
    let (client, connection) = builder.initial_window_size(window).handshake(stream).await.unwrap();
    (client.ready().await.unwrap(), tokio::spawn(async move { drop(connection.await) }))
}

fn open(
    client: &mut SendRequest<Bytes>,
    path: &str,
    encoding: &str,
) -> (ResponseFuture, SendStream<Bytes>) {
    let request = http::Request::post(format!("http://localhost{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-encoding", encoding);
    client.send_request(request.body(()).unwrap(), false).unwrap()
}

/// Sends all bytes as the server asks for them; what is refused early is not sent to its end.
async fn send(sender: &mut SendStream<Bytes>, bytes: &[u8], is_last: bool) {
    let mut rest = Bytes::copy_from_slice(bytes);
    while !rest.is_empty() {
        sender.reserve_capacity(rest.len());
        let room = std::future::poll_fn(|context| sender.poll_capacity(context)).await;
        let Some(Ok(room)) = room else { return };
        let part = rest.split_to(room.min(rest.len()));
        sender.send_data(part, false).unwrap();
    }
    if is_last {
        sender.send_data(Bytes::new(), true).unwrap();
    }
}

fn status_in(headers: &http::HeaderMap) -> Option<u32> {
    headers.get("grpc-status")?.to_str().unwrap().parse().ok()
}

/// The next bytes of an answer; none at its end.
async fn more(body: &mut RecvStream) -> Bytes {
    let Some(bytes) = body.data().await else { return Bytes::new() };
    let bytes = bytes.unwrap();
    body.flow_control().release_capacity(bytes.len()).unwrap();
    bytes
}

/// How an answer ends, and its bytes.
async fn end(response: ResponseFuture) -> (u32, Vec<u8>) {
    let (head, mut body) = response.await.unwrap().into_parts();
    if let Some(status) = status_in(&head.headers) {
        return (status, Vec::new());
    }
    let mut all = Vec::new();
    loop {
        match more(&mut body).await {
            bytes if bytes.is_empty() => break,
            bytes => all.extend_from_slice(&bytes),
        }
    }
    let trailers = body.trailers().await.unwrap().unwrap();
    (status_in(&trailers).unwrap(), all)
}

async fn ask(client: &mut SendRequest<Bytes>, message: &[u8]) -> (u32, Vec<u8>) {
    let (response, mut sender) = open(client, UNARY, "identity");
    send(&mut sender, &framed(message, 0), true).await;
    end(response).await
}

/// Messages of protobuf: a number, and a field of bytes.
fn number(mut value: usize, out: &mut Vec<u8>) {
    while value > 127 {
        out.push(u8::try_from(value & 127).unwrap() | 128);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap());
}

fn field(at: usize, bytes: &[u8], out: &mut Vec<u8>) {
    number((at << 3) | 2, out);
    number(bytes.len(), out);
    out.extend_from_slice(bytes);
}

/// A request with an input of zeros, for outputs of these names.
fn message(model: &str, input: &str, shape: &[usize], outputs: &[&str]) -> Vec<u8> {
    let (mut tensor, mut lengths, mut all) = (Vec::new(), Vec::new(), Vec::new());
    shape.iter().for_each(|length| number(*length, &mut lengths));
    field(1, input.as_bytes(), &mut tensor);
    field(2, b"FP32", &mut tensor);
    field(3, &lengths, &mut tensor);
    field(1, model.as_bytes(), &mut all);
    field(5, &tensor, &mut all);
    for name in outputs {
        let mut output = Vec::new();
        field(1, name.as_bytes(), &mut output);
        field(6, &output, &mut all);
    }
    field(7, &vec![0; shape.iter().product::<usize>() * 4], &mut all);
    all
}

fn digits() -> Vec<u8> {
    message("digits", "image", &[1, 8, 8, 1], &[])
}

fn framed(message: &[u8], flag: u8) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[flag][..], &length, message].concat()
}

fn in_progress(address: SocketAddr) -> f64 {
    metric(address, "nnhal_requests_in_progress_bytes")
}

/// Waits until it is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn sec_an_output_is_wanted_once() {
    let folder = repository("");
    let (server, address) = start(options(folder.path()));
    let name = r#"{"name":"probabilities"}"#;
    for (outputs, code) in [(name.to_owned(), 200), (format!("{name},{name}"), 400)] {
        let body = image(1, 0.5).replacen('{', &format!(r#"{{"outputs":[{outputs}],"#), 1);
        let answer = post(address, INFER, &body);
        assert_eq!(status(&answer), code, "{answer}");
        assert_eq!(answer.contains("probabilities\\\" is wanted twice"), code == 400, "{answer}");
    }
    let grpc = server.grpc_address().unwrap();
    block_on(async {
        let (mut client, _) = connect(grpc, 65_535).await;
        for (names, code) in
            [(vec!["probabilities"], 0), (vec!["probabilities"; 900], INVALID_ARGUMENT)]
        {
            let message = message("digits", "image", &[1, 8, 8, 1], &names);
            assert_eq!(ask(&mut client, &message).await.0, code);
        }
    });
    server.end();
}

#[test]
fn sec_answers_that_no_one_takes_count_and_end_with_their_connection() {
    let folder = negative();
    let mut options = options(folder.path());
    options.client_timeout = Duration::from_millis(500);
    options.most_receiving = 10 * LARGE;
    let (server, address) = start(options);
    let grpc = server.grpc_address().unwrap();
    let message = message("negative", "x", &[1, LARGE / 4], &[]);
    block_on(async {
        // Of each answer a little is taken, or nothing.
        let (mut client, ended) = connect(grpc, 0).await;
        let (mut other, other_ended) = connect(grpc, 1000).await;
        let mut kept = Vec::new();
        for client in [&mut client, &mut other] {
            for _ in 0..4 {
                let (response, mut sender) = open(client, UNARY, "identity");
                send(&mut sender, &framed(&message, 0), true).await;
                let response = response.await.unwrap();
                assert_eq!(status_in(response.headers()), None);
                kept.push(response);
            }
        }
        let all = in_progress(address) / f64::from(u32::try_from(LARGE).unwrap());
        assert!((8.0..10.0).contains(&all), "{all}");
        // Someone else gets nothing, and hears why.
        let (mut third, _) = connect(grpc, 65_535).await;
        let mut codes = Vec::new();
        for _ in 0..3 {
            codes.push(ask(&mut third, &message).await.0);
        }
        assert!(codes.contains(&RESOURCE_EXHAUSTED), "{codes:?}");
        assert_eq!(status(&get(address, "/v2/health/ready")), 200, "there is always room for this");
        ended.await.unwrap();
        other_ended.await.unwrap();
        until("memory is given back", || in_progress(address) == 0.0);
        let (code, answer) = ask(&mut third, &message).await;
        assert!(code == 0 && answer.len() > LARGE, "{code}");
        drop(kept);
    });
    server.end();
}

#[test]
fn a_client_that_takes_a_large_answer_slowly_gets_all_of_it() {
    let folder = negative();
    let mut options = options(folder.path());
    options.client_timeout = Duration::from_millis(300);
    let (server, address) = start(options);
    let message = message("negative", "x", &[1, LARGE / 4], &[]);
    block_on(async {
        let (mut client, _) = connect(server.grpc_address().unwrap(), 16_384).await;
        let (response, mut sender) = open(&mut client, UNARY, "identity");
        send(&mut sender, &framed(&message, 0), true).await;
        let mut body = response.await.unwrap().into_body();
        let mut length = 0;
        loop {
            // In all about four times the timeout.
            tokio::time::sleep(Duration::from_millis(150)).await;
            match more(&mut body).await {
                bytes if bytes.is_empty() => break,
                bytes => length += bytes.len(),
            }
        }
        assert!(length > LARGE, "{length}");
        assert_eq!(status_in(&body.trailers().await.unwrap().unwrap()), Some(0));
    });
    until("all is sent", || in_progress(address) == 0.0);
    server.end();
}

#[test]
fn sec_a_message_of_a_stream_comes_in_time_and_between_two_there_is_any_time() {
    let folder = repository("");
    let mut options = options(folder.path());
    options.client_timeout = Duration::from_millis(400);
    let (server, address) = start(options);
    let grpc = server.grpc_address().unwrap();
    block_on(async {
        let (mut client, _) = connect(grpc, 65_535).await;
        for rest in [100_000, 1] {
            let (response, mut sender) = open(&mut client, STREAM, "identity");
            send(&mut sender, &framed(&digits(), 0), false).await;
            let mut body = response.await.unwrap().into_body();
            assert!(more(&mut body).await.len() > 40);
            // Longer than the timeout.
            tokio::time::sleep(Duration::from_millis(1200)).await;
            let second = framed(&digits(), 0);
            send(&mut sender, &second[..7], false).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            send(&mut sender, &second[7..], false).await;
            assert!(more(&mut body).await.len() > 40);
            assert_eq!(in_progress(address), 0.0, "a stream that is idle takes nothing");
            let mut broken = framed(&vec![0; 1 << 20], 0);
            broken.truncate(rest);
            send(&mut sender, &broken, false).await;
            let begun = Instant::now();
            assert!(more(&mut body).await.is_empty());
            let trailers = body.trailers().await.unwrap().unwrap();
            assert_eq!(status_in(&trailers), Some(DEADLINE_EXCEEDED), "{trailers:?}");
            // 16 KiB a second have another 6 s.
            assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
        }
    });
    until("memory is given back", || in_progress(address) == 0.0);
    server.end();
}

#[test]
fn sec_a_stream_gives_back_all_that_its_messages_took() {
    let folder = repository("");
    let mut options = options(folder.path());
    options.most_receiving = 1 << 20;
    let (server, address) = start(options);
    let grpc = server.grpc_address().unwrap();
    // A field that the protocol does not have, which the reader leaves out.
    let mut large = digits();
    field(1000, &vec![7; 100_000], &mut large);
    block_on(async {
        for (encoding, flag) in [("identity", 0), ("gzip", 1), ("gzip", 0)] {
            let sent = match flag {
                0 => large.clone(),
                _ => {
                    let level = flate2::Compression::none();
                    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                    encoder.write_all(&large).unwrap();
                    encoder.finish().unwrap()
                }
            };
            let (mut client, _) = connect(grpc, 65_535).await;
            let (response, mut sender) = open(&mut client, STREAM, encoding);
            send(&mut sender, &framed(&sent, flag), false).await;
            let mut body = response.await.unwrap().into_body();
            assert!(more(&mut body).await.len() > 40);
            for count in 1..40 {
                send(&mut sender, &framed(&sent, flag), false).await;
                assert!(more(&mut body).await.len() > 40, "{count} messages, {encoding}");
            }
            until("all is given back", || in_progress(address) == 0.0);
            sender.send_data(Bytes::new(), true).unwrap();
            assert!(more(&mut body).await.is_empty());
            assert_eq!(status_in(&body.trailers().await.unwrap().unwrap()), Some(0));
        }
    });
    server.end();
}

#[test]
fn sec_a_message_of_too_many_parts_is_refused_before_all_of_it_is_there() {
    let folder = repository("");
    let (server, address) = start(options(folder.path()));
    block_on(async {
        let (mut client, _) = connect(server.grpc_address().unwrap(), 65_535).await;
        // Inputs, outputs, raw contents and parameters of nothing, in a message that does not come to its end.
        for part in [b"\x2a\x00", b"\x32\x00", b"\x3a\x00", b"\x22\x00"] {
            for path in [UNARY, STREAM] {
                let mut begun = framed(&vec![0; 1 << 20], 0);
                begun.truncate(5);
                begun.extend(part.repeat(2000));
                let (response, mut sender) = open(&mut client, path, "identity");
                send(&mut sender, &begun, false).await;
                assert_eq!(end(response).await.0, INVALID_ARGUMENT, "{path} {part:?}");
            }
        }
        let (code, _) = ask(&mut client, &digits()).await;
        assert_eq!(code, 0, "others are answered");
    });
    until("memory is given back", || in_progress(address) == 0.0);
    server.end();
}

#[test]
fn a_message_that_is_none_is_the_fault_of_its_client() {
    let folder = repository("");
    let (server, _) = start(options(folder.path()));
    let mut no_text = Vec::new();
    field(1, b"\xff", &mut no_text);
    block_on(async {
        let (mut client, _) = connect(server.grpc_address().unwrap(), 65_535).await;
        for message in [&no_text[..], b"\x0a\x05a", b"\x0b", b"\x2a\x02\x08\x01"] {
            for path in [UNARY, STREAM] {
                let (response, mut sender) = open(&mut client, path, "identity");
                send(&mut sender, &framed(message, 0), true).await;
                assert_eq!(end(response).await.0, INVALID_ARGUMENT, "{path} {message:?}");
            }
        }
    });
    server.end();
}

/// What the metrics count of one kind of error by gRPC.
fn errors(address: SocketAddr, kind: &str) -> f64 {
    let metrics = get(address, "/metrics");
    let name = format!("nnhal_errors_total{{endpoint=\"grpc\",kind=\"{kind}\"");
    let line = metrics.lines().find(|line| line.starts_with(&name));
    line.map_or(0.0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

#[test]
fn what_is_refused_while_it_comes_is_counted_once() {
    const LIMIT: usize = 1 << 16;
    let folder = repository("");
    let mut options = options(folder.path());
    options.most_request = LIMIT;
    options.most_receiving = 1 << 20;
    options.client_timeout = Duration::from_secs(1);
    let (server, address) = start(options);
    let (mut no_text, mut numbers, mut input, mut many) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    field(1, b"\xff", &mut no_text);
    field(3, &vec![1; LIMIT - 100], &mut numbers);
    field(5, &numbers, &mut input);
    field(5, &input, &mut many);
    let whole = digits();
    // What is sent, whether all of it, and what it is called.
    let cases: [(&[u8], bool, &str, u32); 6] = [
        (&vec![0; 2 * LIMIT], true, "too_large", RESOURCE_EXHAUSTED),
        (b"\x0b", true, "invalid", INVALID_ARGUMENT),
        (&no_text, true, "invalid", INVALID_ARGUMENT),
        (&whole, false, "invalid", INVALID_ARGUMENT),
        (&many, true, "no_memory", RESOURCE_EXHAUSTED),
        (&whole, false, "slow_client", DEADLINE_EXCEEDED),
    ];
    block_on(async {
        let (mut client, _) = connect(server.grpc_address().unwrap(), 65_535).await;
        for path in [UNARY, STREAM] {
            for (encoding, flag) in [("identity", 0), ("gzip", 1)] {
                for (message, is_whole, kind, code) in cases {
                    let message = match flag {
                        0 => message.to_vec(),
                        _ => {
                            let level = flate2::Compression::fast();
                            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                            encoder.write_all(message).unwrap();
                            encoder.finish().unwrap()
                        }
                    };
                    let framed = framed(&message, flag);
                    let length = if is_whole { framed.len() } else { 20 };
                    let before = errors(address, kind);
                    let (response, mut sender) = open(&mut client, path, encoding);
                    send(&mut sender, &framed[..length], kind != "slow_client").await;
                    let what = format!("{path} {encoding} {kind}");
                    assert_eq!(end(response).await.0, code, "{what}");
                    assert_eq!(errors(address, kind), before + 1.0, "{what}");
                }
            }
        }
        // What no one says how to decompress, and a method that there is not.
        let (response, mut sender) = open(&mut client, UNARY, "identity");
        let before = errors(address, "invalid");
        send(&mut sender, &framed(&whole, 1), true).await;
        assert_eq!((end(response).await.0, errors(address, "invalid")), (13, before + 1.0));
        let (response, mut sender) = open(&mut client, &format!("{UNARY}Quickly"), "identity");
        send(&mut sender, &framed(&whole, 0), true).await;
        assert_eq!((end(response).await.0, errors(address, "unsupported")), (12, 1.0));
        assert_eq!(ask(&mut client, &whole).await.0, 0);
    });
    server.end();
}

#[test]
fn sec_what_a_message_becomes_when_it_is_decoded_counts() {
    let folder = repository("");
    let mut options = options(folder.path());
    options.most_receiving = 8 << 20;
    let (server, address) = start(options);
    // A million numbers of a byte each, which are eight in memory, or empty texts, which are more.
    let with = |at: usize, contents: &[u8]| {
        let (mut inner, mut input, mut all) = (Vec::new(), Vec::new(), Vec::new());
        field(at, contents, &mut inner);
        field(5, &inner, &mut input);
        field(1, b"digits", &mut all);
        field(5, &input, &mut all);
        all
    };
    let mut texts = with(8, b"");
    texts.extend(with(8, b"").repeat(2000));
    block_on(async {
        let (mut client, _) = connect(server.grpc_address().unwrap(), 65_535).await;
        for path in [UNARY, STREAM] {
            for (encoding, flag) in [("identity", 0), ("gzip", 1)] {
                let message = with(3, &vec![1; 1 << 20]);
                let message = match flag {
                    0 => message,
                    _ => {
                        let level = flate2::Compression::fast();
                        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                        encoder.write_all(&message).unwrap();
                        encoder.finish().unwrap()
                    }
                };
                let (response, mut sender) = open(&mut client, path, encoding);
                send(&mut sender, &framed(&message, flag), false).await;
                assert_eq!(end(response).await.0, RESOURCE_EXHAUSTED, "{path} {encoding}");
            }
        }
        assert_eq!(ask(&mut client, &texts).await.0, INVALID_ARGUMENT);
        assert_eq!(ask(&mut client, &digits()).await.0, 0, "others are answered");
    });
    until("memory is given back", || in_progress(address) == 0.0);
    server.end();
}

#[test]
fn sec_a_request_to_load_has_few_parameters_and_a_short_configuration() {
    let folder = repository("");
    let (server, address) = start(options(folder.path()));
    let load = "/v2/repository/models/digits/load";
    let many: Vec<String> = (0..300).map(|at| format!(r#""{at}":[0,[]]"#)).collect();
    let answer = post(address, load, &format!(r#"{{"parameters":{{{}}}}}"#, many.join(",")));
    assert!(status(&answer) == 400 && answer.contains("more than 256 members"), "{answer}");
    let config = format!("{{{}}}", " ".repeat(300_000));
    let answer = post(address, load, &format!(r#"{{"parameters":{{"config":"{config}"}}}}"#));
    assert!(status(&answer) == 400 && answer.contains("at most 262144"), "{answer}");
    assert_eq!(status(&post(address, load, r#"{"parameters":{"config":"{}"}}"#)), 200);
    server.end();
}

#[test]
fn sec_files_of_models_that_clients_upload_are_bounded_together() {
    use base64::Engine as _;
    let file = std::fs::read(asset("digits_float32.tflite")).unwrap();
    let folder = repository("");
    let mut options = options(folder.path());
    options.most_uploaded = file.len() * 2;
    let (server, address) = start(options);
    let file = base64::engine::general_purpose::STANDARD.encode(file);
    let body = format!(r#"{{"parameters":{{"config":"{{}}","file:1/model.tflite":"{file}"}}}}"#);
    let load = |name: &str| post(address, &format!("/v2/repository/models/{name}/load"), &body);
    for name in ["a", "b"] {
        assert_eq!(status(&load(name)), 200);
    }
    let refused = load("c");
    assert!(status(&refused) == 429 && refused.contains("files of models"), "{refused}");
    // What is on disk has its file there.
    assert_eq!(status(&post(address, "/v2/repository/models/digits/load", "")), 200);
    assert_eq!(status(&post(address, "/v2/models/a/infer", &image(1, 0.5))), 200);
    assert_eq!(status(&post(address, "/v2/repository/models/a/unload", "")), 200);
    until("the place of one is another's", || status(&load("c")) == 200);
    // One that is no model takes nothing.
    let broken = body.replace(&file, "AAAA");
    assert_eq!(status(&post(address, "/v2/repository/models/b/unload", "")), 200);
    let refused = || post(address, "/v2/repository/models/d/load", &broken);
    until("the place of the one that was unloaded is free", || status(&refused()) == 400);
    for _ in 0..3 {
        let answer = refused();
        assert_eq!(status(&answer), 400, "{answer}");
    }
    until("its place is still free", || status(&load("b")) == 200);
    server.end();
}

#[test]
fn sec_names_and_versions_that_no_model_has_leave_nothing_behind() {
    const LOAD: &str = "/inference.GRPCInferenceService/RepositoryModelLoad";
    let folder = repository("");
    let (server, address) = start(options(folder.path()));
    let broken =
        |version: u32| format!(r#"{{"parameters":{{"config":"{{}}","file:{version}/m":"AAAA"}}}}"#);
    let load = |name: &str, body: &str| {
        status(&post(address, &format!("/v2/repository/models/{name}/load"), body))
    };
    let index = || {
        let answer = post(address, "/v2/repository/index", "");
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    };
    let before = index();
    for at in 0..20 {
        assert_eq!(load(&format!("name{at}"), &broken(1)), 400);
        assert_eq!(load(&format!("name{at}"), r#"{"parameters":{"config":"{}"}}"#), 404);
    }
    block_on(async {
        let (mut client, _connection) = connect(server.grpc_address().unwrap(), 1 << 20).await;
        for at in 0..20 {
            let mut request = Vec::new();
            field(2, format!("other{at}").as_bytes(), &mut request);
            for (name, number, value) in [("config", 3, &b"{}"[..]), ("file:1/m", 4, b"no model")] {
                let (mut parameter, mut choice) = (Vec::new(), Vec::new());
                field(number, value, &mut choice);
                field(1, name.as_bytes(), &mut parameter);
                field(2, &choice, &mut parameter);
                field(3, &parameter, &mut request);
            }
            let (response, mut sender) = open(&mut client, LOAD, "identity");
            send(&mut sender, &framed(&request, 0), true).await;
            assert_eq!(end(response).await.0, INVALID_ARGUMENT);
        }
    });
    assert_eq!(index(), before);
    assert_eq!(status(&get(address, "/v2/models/name1")), 404);
    assert_eq!(status(&get(address, "/v2/health/ready")), 200);
    // Of a model that there is, what is wrong with the versions that were asked for last.
    for version in 2..20 {
        assert_eq!(load("digits", &broken(version)), 400);
    }
    let after = index();
    let versions = after.matches(r#""name":"digits""#).count();
    assert!(versions == 2 && after.contains(r#""version":"19""#), "{after}");
    assert_eq!(status(&post(address, INFER, &image(1, 0.5))), 200);
    // One that serves is there until it is unloaded.
    let file = std::fs::read(asset("digits_float32.tflite")).unwrap();
    let file = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, file);
    assert_eq!(load("name1", &broken(1).replace("AAAA", &file)), 200);
    assert_eq!(load("name1", &broken(1)), 400);
    assert_eq!(status(&get(address, "/v2/models/name1")), 200);
    assert_eq!(status(&post(address, "/v2/repository/models/name1/unload", "")), 200);
    assert_eq!(status(&get(address, "/v2/models/name1")), 404);
    assert_eq!(index(), after);
    let metrics = get(address, "/metrics");
    assert!(metrics.contains(r#"model="digits""#), "{metrics}");
    assert!(
        !metrics.contains(r#"model="name"#) && !metrics.contains(r#"version="3""#),
        "{metrics}"
    );
    server.end();
}

/// Sends a message again and again, for as long as the server takes what is sent, or has room for it; how many bytes.
async fn send_what_there_is_room_for(sender: &mut SendStream<Bytes>, message: &[u8]) -> usize {
    const PAUSE: Duration = Duration::from_secs(1);
    let mut sent = 0;
    loop {
        sender.reserve_capacity(1 << 20);
        let room = std::future::poll_fn(|context| sender.poll_capacity(context));
        match tokio::time::timeout(PAUSE, room).await {
            Ok(Some(Ok(room))) => {
                let from = sent % message.len();
                let again = message.repeat(room / message.len() + 2);
                sender.send_data(Bytes::from(again).slice(from..from + room), false).unwrap();
                sent += room;
            }
            _ => return sent,
        }
    }
}

#[test]
fn sec_what_many_connections_send_and_no_one_reads_is_bounded() {
    const CONNECTIONS: usize = 64;
    const MEMORY: usize = 16 << 20;
    let folder = repository("");
    let mut options = options(folder.path());
    options.most_receiving = MEMORY;
    let (server, address) = start(options);
    let grpc = server.grpc_address().unwrap();
    let sent = block_on(async {
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                tokio::spawn(async move {
                    // No answer is taken, so that after some requests the next ones are not read.
                    let (mut client, _) = connect(grpc, 0).await;
                    let (mut sent, mut kept) = (0, Vec::new());
                    for _ in 0..3 {
                        let (response, mut sender) = open(&mut client, STREAM, "identity");
                        let message = framed(&digits(), 0);
                        sent += send_what_there_is_room_for(&mut sender, &message).await;
                        kept.push((response, sender));
                    }
                    (sent, client, kept)
                })
            })
            .collect();
        let (mut sent, mut kept) = (0, Vec::new());
        for client in clients {
            let (of_one, client, streams) = client.await.unwrap();
            sent += of_one;
            kept.push((client, streams));
        }
        let (mut other, _) = connect(grpc, 65_535).await;
        assert_eq!(ask(&mut other, &digits()).await.0, 0, "others are answered");
        drop(kept);
        sent
    });
    // What is read counts in any case; what is not is half as much, and what a connection by HTTP/2 may send at least.
    let most = MEMORY + MEMORY / 2 + CONNECTIONS * 65_535;
    assert!(sent > CONNECTIONS * 65_535 / 2, "{sent}");
    assert!(sent <= most, "{sent} bytes were sent, at most {most} are expected");
    until("memory is given back", || in_progress(address) == 0.0);
    server.end();
}

#[test]
fn sec_requests_at_a_time_and_their_headers_are_bounded() {
    let folder = repository("");
    let mut options = options(folder.path());
    options.most_receiving = 1 << 20;
    let (server, address) = start(options);
    let grpc = server.grpc_address().unwrap();
    let refused = |streams: Vec<(ResponseFuture, SendStream<Bytes>)>| async {
        let (mut count, mut kept) = (0, Vec::new());
        for (response, sender) in streams {
            let response = response.await.unwrap();
            match status_in(response.headers()) {
                None => kept.push((response, sender)),
                Some(code) => {
                    assert_eq!(code, RESOURCE_EXHAUSTED);
                    count += 1;
                }
            }
        }
        (count, kept)
    };
    block_on(async {
        // One for each 16 KiB of a megabyte.
        let (mut client, _) = connect(grpc, 65_535).await;
        let streams = (0..100).map(|_| open(&mut client, STREAM, "identity")).collect();
        let (count, kept) = refused(streams).await;
        assert_eq!(count, 36);
        // Who has no other one open is answered.
        let (mut other, _) = connect(grpc, 65_535).await;
        assert_eq!(ask(&mut other, &digits()).await.0, 0);
        assert_eq!(status(&get(address, "/v2/health/ready")), 200);
        drop((client, kept));
        until("requests end with their connection", || {
            metric(address, "nnhal_connections{endpoint=\"grpc\"") < 2.0
        });
        // Headers of 28 KB each, of which 4 KiB are always there.
        let (mut client, _) = connect(grpc, 65_535).await;
        let long = "x".repeat(28 << 10);
        let with_long = |client: &mut SendRequest<Bytes>| {
            let request = http::Request::post(format!("http://localhost{STREAM}"))
                .header("content-type", "application/grpc")
                .header("te", "trailers")
                .header("x-long", &long);
            client.send_request(request.body(()).unwrap(), false).unwrap()
        };
        let mut streams = Vec::new();
        for _ in 0..60 {
            client = client.ready().await.unwrap();
            streams.push(with_long(&mut client));
        }
        let (count, kept) = refused(streams).await;
        assert!((15..25).contains(&count), "{count}");
        let taken = in_progress(address);
        assert!((900_000.0..=1_048_576.0).contains(&taken), "{taken}");
        drop((client, kept));
    });
    until("memory is given back", || in_progress(address) == 0.0);
    server.end();
}

#[test]
fn sec_one_model_is_profiled_at_a_time_and_for_no_page_of_another_site() {
    let folder = slow("instances = 1\nthreads = 1");
    let (server, address) = start(options(folder.path()));
    let profile = |headers: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
        let path = "/nnhal/models/slow/profile";
        stream.write_all(&request("POST", path, headers, b"")).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let codes: Vec<u16> = std::thread::scope(|scope| {
        let tasks: Vec<_> = (0..6).map(|_| scope.spawn(|| status(&profile("")))).collect();
        tasks.into_iter().map(|task| task.join().unwrap()).collect()
    });
    let count = |code| codes.iter().filter(|it| **it == code).count();
    assert_eq!((count(200), count(429)), (1, 5), "{codes:?}");
    assert_eq!(status(&profile("origin: http://evil.example\r\n")), 403);
    // What a page shows as a picture is asked for without an origin.
    assert_eq!(status(&get(address, "/nnhal/models/slow/profile")), 405);
    assert_eq!(status(&profile("")), 200, "the next one");
    server.end();
}

#[test]
fn sec_those_who_load_models_take_no_threads_from_others() {
    const LOADS: usize = 24;
    let folder = repository("max_batch_size = 256");
    let mut options = options(folder.path());
    options.poll = None;
    let (server, address) = start(options);
    let loaded = AtomicUsize::new(0);
    // Much JSON is read on a thread of its own.
    let json = image(1, 0.5) + &" ".repeat(200_000);
    let config = r#"{"parameters":{"config":"{\"max_batch_size\":256}"}}"#;
    let before = std::thread::scope(|scope| {
        for _ in 0..LOADS {
            scope.spawn(|| {
                let answer = post(address, "/v2/repository/models/digits/load", config);
                assert_eq!(status(&answer), 200, "{answer}");
                loaded.fetch_add(1, Ordering::Relaxed);
            });
        }
        until("one is loaded", || loaded.load(Ordering::Relaxed) > 0);
        let before = loaded.load(Ordering::Relaxed);
        assert_eq!(status(&post(address, INFER, &json)), 200);
        loaded.load(Ordering::Relaxed) - before
    });
    assert!(before < LOADS / 3, "{before} of {LOADS} models were loaded before a request was read");
    server.end();
}

#[test]
fn the_end_takes_no_longer_than_it_may() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/add.tflite");
    let config = "max_batch_size = 8\n[dynamic_batching]\nmax_queue_delay_microseconds = 9000000";
    let folder = of_file(&file, "add", config);
    let mut options = options(folder.path());
    options.shutdown_timeout = Duration::from_secs(2);
    let (server, address) = start(options);
    let input = |name: &str| {
        format!(r#"{{"name":"{name}","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]}}"#)
    };
    let body = format!(r#"{{"inputs":[{},{}]}}"#, input("a"), input("b"));
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&request("POST", "/v2/models/add/infer", "", body.as_bytes())).unwrap();
    until("it waits", || metric(address, "nnhal_queue_length{model=\"add\"") == 1.0);
    let begun = Instant::now();
    server.end();
    let took = begun.elapsed();
    assert!((2000..2900).contains(&took.as_millis()), "{took:?}");
}

#[test]
fn streams_that_are_idle_do_not_hold_up_the_end() {
    let folder = repository("");
    let mut options = options(folder.path());
    options.shutdown_timeout = Duration::from_secs(20);
    let (server, _) = start(options);
    let grpc = server.grpc_address().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (mut ends, kept) = runtime.block_on(async {
        let (mut client, _) = connect(grpc, 65_535).await;
        let (mut ends, mut kept) = (Vec::new(), Vec::new());
        let (response, mut sender) = open(&mut client, STREAM, "identity");
        send(&mut sender, &framed(&digits(), 0), false).await;
        let mut body = response.await.unwrap().into_body();
        assert!(more(&mut body).await.len() > 40);
        ends.push(body);
        kept.push(sender);
        for version in ["v1", "v1alpha"] {
            let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
            let (response, mut sender) = open(&mut client, &path, "identity");
            let mut wanted = Vec::new();
            field(7, b"", &mut wanted);
            send(&mut sender, &framed(&wanted, 0), false).await;
            let mut body = response.await.unwrap().into_body();
            assert!(more(&mut body).await.len() > 40);
            ends.push(body);
            kept.push(sender);
        }
        (ends, kept)
    });
    let begun = Instant::now();
    server.end();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    // They end in order.
    runtime.block_on(async {
        for body in &mut ends {
            assert!(more(body).await.is_empty());
            assert_eq!(status_in(&body.trailers().await.unwrap().unwrap()), Some(0));
        }
    });
    drop(kept);
}

#[test]
fn a_refusal_reaches_a_client_that_looks_at_it_when_it_has_sent_all() {
    let folder = repository("");
    let mut options = options(folder.path());
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, "0123456789abcdef\n").unwrap();
    options.token_file = Some(tokens);
    options.most_receiving = 4 << 20;
    options.most_request = 24 << 20;
    let (server, address) = start(options);
    let token = "authorization: Bearer 0123456789abcdef\r\n";
    let with = |more: &str| format!("{token}{more}");
    for (method, path, headers, code) in [
        ("POST", INFER, String::new(), 401),
        ("POST", INFER, with("content-encoding: br\r\n"), 415),
        ("POST", INFER, with("inference-header-content-length: x\r\n"), 400),
        ("POST", "/v2/models/digits/versions/x/infer", with(""), 404),
        ("POST", "/v2/nothing", with(""), 404),
        ("POST", "/v2/models/digits/ready", with(""), 405),
        ("GET", "/v2/models/digits/ready", with(""), 200),
        ("POST", INFER, with("host: twice\r\n"), 400),
        ("POST", INFER, with(""), 429),
    ] {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let sent = stream.write_all(&request(method, path, &headers, &vec![b' '; 20 << 20]));
        assert!(sent.is_ok(), "{path} {code}: {sent:?}");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(status(&answer), code, "{path}: {answer}");
    }
    // Who waits to be asked for a body is not asked for one that no one reads.
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /v2/nothing HTTP/1.1\r\nhost: localhost\r\n{token}expect: 100-continue\r\ncontent-length: 100\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(status(&answer) == 404 && !answer.contains("100 Continue"), "{answer}");
    server.end();
}

#[test]
fn a_configuration_has_what_has_its_default_and_the_format_of_inputs() {
    let config = "[[inputs]]\nname = 'image'\nformat = 'FORMAT_NHWC'\n";
    let mut folder = repository(config);
    for (is_own, format) in [(true, "FORMAT_NHWC"), (false, "FORMAT_NONE")] {
        let (server, address) = start(options(folder.path()));
        let answer = get(address, "/v2/models/digits/config");
        let json = answer.split_once("\r\n\r\n").unwrap().1;
        let found: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(found["max_batch_size"], 0, "{answer}");
        assert_eq!(found["platform"], "", "{answer}");
        assert_eq!(found["input"][0]["format"], format, "{is_own}: {answer}");
        assert_eq!(found["input"][0]["optional"], false, "{answer}");
        assert_eq!(found["output"][0]["label_filename"], "", "{answer}");
        assert!(found.get("dynamic_batching").is_none(), "{answer}");
        server.end();
        folder = repository("");
    }
}

#[test]
fn labels_are_those_of_their_output_and_are_read_again_when_they_change() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = file.join("../tflite-c/tests/data/unique.float32.tflite");
    let folder = of_file(&file, "unique", "");
    let root = folder.path().join("unique");
    std::fs::write(root.join("a.txt"), "ant\nape\nass\n").unwrap();
    std::fs::write(root.join("b.txt"), "bat\nbee\nboa\n").unwrap();
    std::fs::remove_file(root.join("config.toml")).unwrap();
    std::fs::write(
        root.join("config.pbtxt"),
        "output { name: 'output0' label_filename: 'a.txt' } output { name: 'output1' label_filename: 'b.txt' }",
    )
    .unwrap();
    let (server, address) = start(options(folder.path()));
    let output = |name: &str| format!(r#"{{"name":"{name}","parameters":{{"classification":3}}}}"#);
    let data = "1,2,3,".repeat(4);
    let body = format!(
        r#"{{"inputs":[{{"name":"input0","shape":[12],"datatype":"FP32","data":[{}]}}],"outputs":[{},{}]}}"#,
        data.trim_end_matches(','),
        output("output0"),
        output("output1")
    );
    let infer = "/v2/models/unique/infer";
    let answer = post(address, infer, &body);
    assert!(answer.contains(r#"["3.000000:2:ass","2.000000:1:ape","1.000000:0:ant"]"#), "{answer}");
    assert!(answer.contains(r#"["2:2:boa","2:5","2:8"]"#), "{answer}");
    let config = get(address, "/v2/models/unique/config");
    assert!(config.contains("a.txt") && config.contains("b.txt"), "{config}");
    std::fs::write(root.join("b.txt"), "bat\nbee\nbison\n").unwrap();
    until("the new labels are read", || post(address, infer, &body).contains("2:2:bison"));
    server.end();
}
