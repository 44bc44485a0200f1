//! A server as strangers meet it: right and wrong requests, by HTTP as it is on the wire.

mod common;

use common::*;
use nnhal_serve::{Server, StartError};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[test]
fn health_metadata_and_a_run_by_json() {
    let folder = repository("");
    let (server, address) = start(options(folder.path()));
    assert_eq!(status(&get(address, "/v2/health/live")), 200);
    assert_eq!(status(&get(address, "/v2/health/ready")), 200);
    assert!(get(address, "/v2").contains(r#""name":"nnhal""#));
    let metadata = get(address, "/v2/models/digits");
    assert!(metadata.contains(r#""shape":[1,8,8,1]"#), "{metadata}");
    assert_eq!(status(&get(address, "/v2/models/digits/versions/1/ready")), 200);
    assert_eq!(status(&get(address, "/v2/models/digits/versions/2/ready")), 404);
    assert_eq!(status(&get(address, "/v2/models/none/ready")), 404);
    let answer = post(address, INFER, &image(1, 0.5));
    assert_eq!(status(&answer), 200, "{answer}");
    assert!(answer.contains(r#""id":"0.5""#) && answer.contains(r#""shape":[1,10]"#), "{answer}");
    server.end();
}

/// A request to add rows of four numbers to each other, of which all are `value`.
fn sum(rows: usize, value: usize) -> String {
    let data = vec![value.to_string(); rows * 4].join(",");
    let input = |name: &str| {
        format!(r#"{{"name":"{name}","shape":[{rows},4],"datatype":"FP32","data":[{data}]}}"#)
    };
    format!(r#"{{"inputs":[{},{}]}}"#, input("a"), input("b"))
}

#[test]
fn requests_are_put_together_and_each_gets_its_own_rows() {
    let folder = repository("");
    let root = folder.path().join("add");
    std::fs::create_dir_all(root.join("1")).unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/add.tflite");
    std::fs::copy(file, root.join("1/model.tflite")).unwrap();
    let config = "max_batch_size = 8\n[dynamic_batching]\nmax_queue_delay_microseconds = 200000\n\
                  preferred_batch_sizes = [6]";
    std::fs::write(root.join("config.toml"), config).unwrap();
    let (server, address) = start(options(folder.path()));
    std::thread::scope(|scope| {
        for rows in 1..=3 {
            scope.spawn(move || {
                let answer = post(address, "/v2/models/add/infer", &sum(rows, rows * 10));
                let expected = vec![format!("{}.0", rows * 20); rows * 4].join(",");
                assert!(answer.contains(&format!("\"data\":[{expected}]")), "{answer}");
            });
        }
    });
    let stats = get(address, "/v2/models/add/stats");
    assert!(stats.contains(r#""inference_count":6"#), "{stats}");
    assert!(
        stats.contains(r#""execution_count":1"#) && stats.contains(r#""batch_size":6"#),
        "{stats}"
    );
    assert!(!get(address, "/nnhal/models").contains("row_by_row\":\""), "it is run as a batch");
    server.end();
}

#[test]
fn rows_that_a_file_cannot_take_together_are_run_one_by_one() {
    let folder = repository("");
    add(
        folder.path(),
        "many",
        1,
        "digits_float32.tflite",
        "max_batch_size = 8\n[dynamic_batching]",
    );
    let (server, address) = start(options(folder.path()));
    let data = |answer: &str| -> Vec<f32> {
        let (_, data) = answer.split_once(r#""data":["#).unwrap_or_else(|| panic!("{answer}"));
        data.split(']').next().unwrap().split(',').map(|it| it.parse().unwrap()).collect()
    };
    let one = data(&post(address, INFER, &image(1, 0.25)));
    let seven = data(&post(address, "/v2/models/many/infer", &image(7, 0.25)));
    assert_eq!(seven.len(), 70);
    for row in seven.chunks(10) {
        assert!(row.iter().zip(&one).all(|(a, b)| (a - b).abs() < 1e-5), "{row:?} {one:?}");
    }
    assert_eq!(status(&post(address, "/v2/models/many/infer", &image(9, 0.5))), 400);
    server.end();
}

#[test]
fn sec_requests_that_are_wrong_are_refused_and_harm_no_one() {
    let folder = repository("");
    let mut options = options(folder.path());
    options.most_request = 1 << 20;
    let (server, address) = start(options);
    let input = |rest: &str| format!(r#"{{"inputs":[{{"name":"image",{rest}}}]}}"#);
    for body in [
        String::new(),
        "{".into(),
        "[]".into(),
        r#"["1",{},[["image",[1,8,8,1],"FP32",{},[1]]],[]]"#.into(),
        r#"{"inputs":[["image",[1,8,8,1],"FP32",{},[1]]]}"#.into(),
        r#"{"inputs":[]}"#.into(),
        r#"{"inputs":7}"#.into(),
        input(r#""shape":[1,8,8,1],"datatype":"FP32","data":[1]"#),
        input(r#""shape":[1,8,8,1],"datatype":"FP64","data":[1]"#),
        input(r#""shape":[1,8,8,1],"datatype":"FP32""#),
        input(r#""shape":[-1],"datatype":"FP32","data":[]"#),
        input(r#""shape":[9223372036854775807,9223372036854775807],"datatype":"FP32","data":[]"#),
        input(r#""shape":[4611686018427387904],"datatype":"UINT8","data":[]"#),
        input(r#""shape":[1,8,8,1],"datatype":"FP32","data":["x"]"#),
        input(r#""shape":[0],"datatype":"FP32","data":[]"#),
        input(r#""shape":[1,8,8,1],"datatype":"FP32","parameters":{"binary_data_size":256}"#),
        input(&format!(r#""shape":[1],"datatype":"FP32","data":{}"#, "[".repeat(100_000))),
        input(&format!(r#""shape":[1],"datatype":"FP32","x":{}"#, "[".repeat(100_000))),
        image(1, 0.5).replace("\"image\"", "\"other\""),
        image(2, 0.5),
    ] {
        let answer = post(address, INFER, &body);
        assert_eq!(status(&answer), 400, "{} {answer}", &body[..body.len().min(100)]);
        assert!(answer.contains("\"error\""));
    }
    let whole = format!("+{}", image(1, 0.5).len());
    for header in ["x", "-1", "99999999999999999999", "400", &whole] {
        let header = format!("inference-header-content-length: {header}\r\n");
        let bytes = request("POST", INFER, &header, image(1, 0.5).as_bytes());
        assert_eq!(status(&exchange(address, &bytes)), 400, "{header}");
    }
    let large = vec![b' '; (1 << 20) + 1];
    assert_eq!(status(&exchange(address, &request("POST", INFER, "", &large))), 413);
    // What is too long by its own word is not waited for, and a body that is broken off is no fault of the server.
    for (rest, code) in [
        ("content-length: 99999999999\r\nexpect: 100-continue\r\n\r\n", 413),
        ("transfer-encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n", 400),
        ("content-length: 100\r\n\r\n{}", 400),
    ] {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        write!(stream, "POST {INFER} HTTP/1.1\r\nhost: localhost\r\n{rest}").unwrap();
        if code == 400 {
            stream.shutdown(std::net::Shutdown::Write).unwrap();
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(status(&answer), code, "{rest:?}: {answer}");
    }
    for hosts in ["", "host: localhost\r\nhost: localhost\r\n"] {
        let answer = exchange(
            address,
            format!("GET /v2 HTTP/1.1\r\nconnection: close\r\n{hosts}\r\n").as_bytes(),
        );
        assert!(answer.contains("Host") && status(&answer) == 400, "{answer}");
    }
    assert_eq!(
        status(&exchange(address, b"GET /v2 HTTP/1.0\r\n\r\n")),
        200,
        "no host was asked for then"
    );
    let many: String = (0..200).map(|at| format!("x-{at}: 1\r\n")).collect();
    assert_eq!(status(&exchange(address, &request("GET", "/v2", &many, b""))), 431);
    for garbage in
        [&b"\0\xff\x80garbage\r\n\r\n"[..], b"GET", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0"]
    {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(garbage).unwrap();
        let mut stream = TcpStream::connect(server.grpc_address().unwrap()).unwrap();
        stream.write_all(garbage).unwrap();
    }
    let file = r#"{"parameters":{"config":"{}","file:1/m":"AAAA"}}"#;
    for name in ["%00", "a%00b", "..%2fx", ".x", &"x".repeat(300)] {
        let path = format!("/v2/repository/models/{name}/load");
        assert_eq!(status(&post(address, &path, file)), 404, "{name}");
    }
    assert_eq!(status(&post(address, "/v2/repository/models/new/load", file)), 400);
    assert_eq!(status(&get(address, "/v2/models/..%2f..%2fetc/ready")), 404);
    for (method, path) in [
        ("GET", "/v2/models/%ff"),
        ("GET", "/v2/models/digits/versions/%ff"),
        ("POST", "/nnhal/models/%ff/profile"),
    ] {
        let answer = exchange(address, &request(method, path, "", b""));
        assert!(answer.contains("{\"error\":") && status(&answer) == 400, "{answer}");
    }
    for version in ["01", "+1", "-1", "1.0"] {
        let answer = get(address, &format!("/v2/models/digits/versions/{version}"));
        assert_eq!(status(&answer), 404, "{answer}");
    }
    assert_eq!(status(&post(address, "/v2/repository/index", "[true]")), 400);
    let config =
        post(address, "/v2/repository/models/digits/load", r#"{"parameters":{"config":{}}}"#);
    assert!(config.contains("is not a text"), "{config}");
    assert_eq!(status(&post(address, "/v2/repository/models/..%2fdigits/load", "")), 404);
    assert_eq!(status(&post(address, INFER, &image(1, 0.5))), 200, "all others are still served");
    server.end();
}

#[test]
fn sec_a_client_that_is_too_slow_is_cut_off() {
    let folder = repository("");
    let mut options = options(folder.path());
    options.client_timeout = Duration::from_millis(300);
    let (server, address) = start(options);
    let begun = Instant::now();
    let head = format!("POST {INFER} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{{");
    assert_eq!(status(&exchange(address, head.as_bytes())), 408);
    for silent in
        ["", "GET /v2 HTTP/1.1\r\nhos", "GET /v2/health/live HTTP/1.1\r\nhost: localhost\r\n\r\n"]
    {
        exchange(address, silent.as_bytes());
        exchange(server.grpc_address().unwrap(), silent.as_bytes());
    }
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    server.end();
}

#[test]
fn a_full_queue_and_a_timeout_are_reported() {
    let folder = repository("max_queue_size = 1\nthreads = 1");
    let (server, address) = start(options(folder.path()));
    let late = image(1, 0.5).replacen('{', r#"{"parameters":{"timeout":1},"#, 1);
    assert_eq!(status(&post(address, INFER, &late)), 504);
    let body = image(1, 0.5);
    let answers: Vec<String> = std::thread::scope(|scope| {
        let ask = || (0..40).map(|_| post(address, INFER, &body)).collect::<Vec<_>>();
        let tasks: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
        tasks.into_iter().flat_map(|task| task.join().unwrap()).collect()
    });
    let count = |code| answers.iter().filter(|answer| status(answer) == code).count();
    assert_eq!(count(200) + count(429), answers.len());
    assert!(count(200) > 0);
    for full in answers.iter().filter(|answer| status(answer) == 429) {
        assert!(full.contains("retry-after: 1"), "{full}");
    }
    server.end();
}

/// A request of bytes behind JSON, for a model that negates 32,768 floats, and what it is answered with.
fn negated(address: SocketAddr, values: &[f32], piece: usize) -> Vec<f32> {
    let length = values.len() * 4;
    let json = format!(
        r#"{{"inputs":[{{"name":"x","shape":[1,{}],"datatype":"FP32","parameters":{{"binary_data_size":{length}}}}}],
        "parameters":{{"binary_data_output":true}}}}"#,
        values.len()
    );
    let header = format!("inference-header-content-length: {}\r\n", json.len());
    let mut body = json.into_bytes();
    body.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    let bytes = request("POST", "/v2/models/negative/infer", &header, &body);
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    for piece in bytes.chunks(piece) {
        stream.write_all(piece).unwrap();
    }
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer[..400]));
    let (floats, _) = answer[answer.len() - length..].as_chunks();
    floats.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

#[test]
fn large_inputs_are_those_of_their_own_request() {
    let folder = negative();
    let (server, address) = start(options(folder.path()));
    std::thread::scope(|scope| {
        for client in 0..4_u16 {
            // The beginning of the bytes comes with the JSON, with the head, or alone.
            let piece = [1 << 20, 1000, 50_021, 7000][usize::from(client)];
            scope.spawn(move || {
                for round in 0..10_u16 {
                    let value = |at: u16| f32::from(at) + f32::from(client * 10 + round) / 64.0;
                    let values: Vec<f32> = (0..32_768).map(value).collect();
                    let expected: Vec<f32> = values.iter().map(|value| -value).collect();
                    assert!(negated(address, &values, piece) == expected, "{client} {round}");
                }
            });
        }
    });
    // What ends too early is not answered, and its memory is used again.
    for _ in 0..100 {
        let header = "inference-header-content-length: 0\r\n";
        let whole = request("POST", "/v2/models/negative/infer", header, &[1; 131_072]);
        TcpStream::connect(address).unwrap().write_all(&whole[..100_000]).unwrap();
    }
    let values = vec![2.0; 32_768];
    assert_eq!(negated(address, &values, 1 << 20), vec![-2.0; 32_768]);
    let stats = get(address, "/v2/models/negative/stats");
    assert!(stats.contains(r#""inference_count":41"#), "{stats}");
    server.end();
}

/// Removes an object of shared memory at the end.
struct Object(PathBuf);

impl Drop for Object {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn inputs_and_outputs_in_shared_memory() {
    const COUNT: u16 = 32_768;
    const BEFORE: usize = 12;
    let folder = negative();
    let mut options = options(folder.path());
    options.shared_memory = true;
    let (server, address) = start(options);
    let key = format!("nnhal-server-test-{}", std::process::id());
    let object = Object(Path::new("/dev/shm").join(&key));
    let length = usize::from(COUNT) * 4;
    let write = |first: f32| {
        let floats = (0..COUNT).flat_map(|at| (f32::from(at) + first).to_le_bytes());
        let bytes: Vec<u8> = [9; BEFORE].into_iter().chain(floats).chain(vec![7; length]).collect();
        std::fs::write(&object.0, bytes).unwrap();
    };
    write(0.0);
    let region = format!(r#"{{"key":"/{key}","offset":{BEFORE},"byte_size":{}}}"#, 2 * length);
    let registered = post(address, "/v2/systemsharedmemory/region/r/register", &region);
    assert_eq!(status(&registered), 200, "{registered}");
    let place = |offset: usize| {
        format!(
            r#""parameters":{{"shared_memory_region":"r","shared_memory_byte_size":{length},"shared_memory_offset":{offset}}}"#
        )
    };
    let body = format!(
        r#"{{"inputs":[{{"name":"x","shape":[1,{COUNT}],"datatype":"FP32",{}}}],"outputs":[{{"name":"OUTPUT",{}}}]}}"#,
        place(0),
        place(length)
    );
    let metadata = get(address, "/v2/models/negative");
    let metadata: serde_json::Value =
        serde_json::from_str(metadata.split_once("\r\n\r\n").unwrap().1).unwrap();
    let body = body.replace("OUTPUT", metadata["outputs"][0]["name"].as_str().unwrap());
    // What is there when a request comes counts, not what was there when the region was registered.
    for first in [0.0, 1.0, -70.5] {
        write(first);
        let answer = post(address, "/v2/models/negative/infer", &body);
        assert_eq!(status(&answer), 200, "{answer}");
        let bytes = std::fs::read(&object.0).unwrap();
        let (floats, _) = bytes[BEFORE + length..].as_chunks();
        let expected = (0..COUNT).map(|at| -(f32::from(at) + first));
        assert!(floats.iter().map(|it| f32::from_le_bytes(*it)).eq(expected), "{first}");
    }
    // Shortened, it is the client's fault, and the server goes on.
    std::fs::write(&object.0, vec![0; BEFORE + length - 1]).unwrap();
    let answer = post(address, "/v2/models/negative/infer", &body);
    assert_eq!(status(&answer), 400, "{answer}");
    assert!(answer.contains("shared-memory region"), "{answer}");
    let values = vec![2.0; usize::from(COUNT)];
    assert_eq!(negated(address, &values, 1 << 20), vec![-2.0; usize::from(COUNT)]);
    server.end();
}

/// A request for the slow model, with these parameters.
fn ask_slow(address: SocketAddr, parameters: &str) -> String {
    let body = format!(
        r#"{{"parameters":{{{parameters}}},"inputs":[{{"name":"x","shape":[1,1],"datatype":"FP32","data":[0.5]}}]}}"#
    );
    post(address, "/v2/models/slow/infer", &body)
}

#[test]
fn a_run_that_takes_too_long_is_given_up() {
    let folder = slow("instances = 1\nthreads = 1");
    let (server, address) = start(options(folder.path()));
    assert_eq!(status(&ask_slow(address, "")), 200);
    for _ in 0..5 {
        let answer = ask_slow(address, r#""timeout":1500"#);
        assert_eq!(status(&answer), 504, "{answer}");
    }
    let metrics = get(address, "/metrics");
    assert!(metrics.contains(r#"kind="timeout""#), "{metrics}");
    assert_eq!(status(&ask_slow(address, r#""timeout":20000000"#)), 200, "the next one is run");
    server.end();
}

/// How many requests wait for the slow model.
fn waiting(address: SocketAddr) -> usize {
    let metrics = get(address, "/metrics");
    let line = metrics.lines().find(|line| line.starts_with("nnhal_queue_length{model=\"slow\""));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn a_request_of_a_high_priority_overtakes_those_that_wait() {
    const LOW: usize = 8;
    let folder = slow("instances = 1\nthreads = 1");
    let (server, address) = start(options(folder.path()));
    let (ended, order) = std::sync::mpsc::channel();
    let behind = |last: u32| -> usize {
        std::thread::scope(|scope| {
            let ask = |priority: u32, name: &'static str| {
                let ended = ended.clone();
                scope.spawn(move || {
                    let answer = ask_slow(address, &format!("\"priority\":{priority}"));
                    assert_eq!(status(&answer), 200, "{answer}");
                    ended.send(name).unwrap();
                });
            };
            for _ in 0..LOW {
                ask(3, "low");
            }
            let begun = Instant::now();
            while waiting(address) < LOW - 1 {
                assert!(begun.elapsed() < Duration::from_secs(20), "they do not wait");
            }
            ask(last, "last");
            let rest: Vec<&str> = (0..=LOW).map(|_| order.recv().unwrap()).collect();
            rest.len() - 1 - rest.iter().position(|name| *name == "last").unwrap()
        })
    };
    let (high, low) = (behind(1), behind(3));
    assert!(high >= 3, "{high} low requests were answered after one of a high priority");
    assert!(low <= 1, "{low} low requests were answered after one that came later");
    server.end();
}

#[test]
fn a_batched_model_has_its_weights_once() {
    let memory = |sizes: &str| -> f64 {
        let folder = repository("");
        let root = folder.path().join("wide");
        std::fs::create_dir_all(root.join("1")).unwrap();
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/wide.tflite");
        std::fs::copy(file, root.join("1/model.tflite")).unwrap();
        std::fs::write(root.join("config.toml"), format!("instances = 1\n{sizes}")).unwrap();
        let (server, address) = start(options(folder.path()));
        assert!(!get(address, "/nnhal/models").contains("row_by_row\":\""), "it is run as a batch");
        let metrics = get(address, "/metrics");
        let line =
            metrics.lines().find(|it| it.starts_with("nnhal_model_memory_bytes{model=\"wide\""));
        let value =
            line.and_then(|it| it.rsplit(' ').next()).unwrap_or_else(|| panic!("{metrics}"));
        server.end();
        value.parse().unwrap()
    };
    let one = memory("max_batch_size = 1");
    let many =
        memory("max_batch_size = 16\n[dynamic_batching]\npreferred_batch_sizes = [3, 6, 12]");
    assert!(one > 1e5, "{one}");
    // One row takes them as they are in the file, of 16 bits, the others of 32 bits.
    assert!(many < 5.0 * one, "{many} bytes for eight sizes, {one} for one");
}

#[test]
fn a_model_is_replaced_while_it_is_used_and_every_request_is_answered_once() {
    let folder = repository("");
    let (server, address) = start(options(folder.path()));
    let is_over = AtomicBool::new(false);
    let answers: Vec<String> = std::thread::scope(|scope| {
        let ask = || {
            let mut answers = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                answers.push(post(address, INFER, &image(1, 0.5)));
            }
            answers
        };
        let tasks: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        for version in 2..=6 {
            add(folder.path(), "digits", version, "digits_float32.tflite", "");
            let path = format!("/v2/models/digits/versions/{version}/ready");
            let begun = Instant::now();
            while status(&get(address, &path)) != 200 {
                assert!(begun.elapsed() < Duration::from_secs(30), "version {version}");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        is_over.store(true, Ordering::Relaxed);
        tasks.into_iter().flat_map(|task| task.join().unwrap()).collect()
    });
    assert!(
        answers.iter().all(|answer| status(answer) == 200 && answer.matches("\"id\"").count() == 1)
    );
    assert!(post(address, INFER, &image(1, 0.5)).contains(r#""model_version":"6""#));
    assert_eq!(status(&get(address, "/v2/models/digits/versions/1/ready")), 404);
    server.end();
}

#[test]
fn a_model_that_cannot_be_loaded_leaves_the_old_one() {
    let folder = repository("");
    let (server, address) = start(options(folder.path()));
    let file = folder.path().join("digits/1/model.tflite");
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, "no model").unwrap();
    for _ in 0..3 {
        let answer = post(address, "/v2/repository/models/digits/load", "");
        assert_eq!(status(&answer), 400, "{answer}");
    }
    assert_eq!(status(&post(address, INFER, &image(1, 0.5))), 200);
    let index = post(address, "/v2/repository/index", "");
    assert!(index.contains(r#""state":"READY""#) && !index.contains(r#""reason":"""#), "{index}");
    assert_eq!(status(&post(address, "/v2/repository/models/digits/unload", "")), 200);
    assert_eq!(status(&post(address, INFER, &image(1, 0.5))), 503);
    server.end();
}

#[test]
fn a_configuration_that_does_not_fit_is_refused_with_the_reason() {
    let said = "the configuration says [8, 8], the file [8, 8, 1]";
    for (config, why) in [
        ("max_batch_size = 4\n[[inputs]]\nname = 'none'", "there is no input"),
        ("max_batch_size = 4\n[[inputs]]\nname = 'image'\ndims = [8, 8]", said),
        ("[[inputs]]\nname = 'image'\ndims = [1, 8, 8]", "says [1, 8, 8], the file [1, 8, 8, 1]"),
    ] {
        let folder = repository(config);
        let (server, address) = start(options(folder.path()));
        let index = post(address, "/v2/repository/index", "");
        assert!(index.contains("UNAVAILABLE") && index.contains(why), "{index}");
        assert_eq!(status(&get(address, "/v2/health/ready")), 503);
        server.end();
    }
}

#[test]
fn a_file_that_is_named_is_the_only_one() {
    let folder = repository("filename = 'other.tflite'");
    let (server, address) = start(options(folder.path()));
    let index = post(address, "/v2/repository/index", "");
    assert!(index.contains("has no other.tflite"), "{index}");
    assert_eq!(status(&post(address, INFER, &image(1, 0.5))), 503);
    server.end();
}

#[test]
fn timeouts_of_requests_are_what_the_configuration_lets_them_be() {
    let late = image(1, 0.5).replacen('{', r#"{"parameters":{"timeout":1},"#, 1);
    let long = image(1, 0.5).replacen('{', r#"{"parameters":{"timeout":60000000},"#, 1);
    for (config, of_late, of_long) in [
        ("", 504, 200),
        ("allow_timeout_override = false", 200, 200),
        ("default_timeout_microseconds = 1", 504, 504),
        ("default_timeout_microseconds = 60000000\nallow_timeout_override = false", 200, 200),
    ] {
        let folder = repository(config);
        let (server, address) = start(options(folder.path()));
        for (body, code) in [(&late, of_late), (&long, of_long)] {
            let answer = post(address, INFER, body);
            assert_eq!(status(&answer), code, "{config:?}: {answer}");
        }
        server.end();
    }
}

#[test]
fn metrics_are_in_the_format_that_is_asked_for() {
    let folder = repository("");
    let (server, address) = start(options(folder.path()));
    assert_eq!(status(&post(address, INFER, &image(1, 0.5))), 200);
    for (accept, is_newer) in [
        ("", false),
        ("accept: */*\r\n", false),
        ("accept: text/plain;version=0.0.4\r\n", false),
        ("accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n", true),
    ] {
        let answer = exchange(address, &request("GET", "/metrics", accept, b""));
        assert_eq!(answer.contains("content-type: application/openmetrics-text"), is_newer);
        assert_eq!(answer.contains("content-type: text/plain; version=0.0.4"), !is_newer);
        assert_eq!(answer.contains("# EOF"), is_newer, "{answer}");
        let counter = if is_newer { "nnhal_requests" } else { "nnhal_requests_total" };
        assert!(answer.contains(&format!("# TYPE {counter} counter\n")), "{answer}");
        assert!(answer.contains(&format!("# HELP {counter} ")), "{answer}");
        assert!(
            answer.contains("\nnnhal_requests_total{model=\"digits\",version=\"1\"} 1\n"),
            "{answer}"
        );
        assert!(answer.contains("# TYPE nnhal_request_duration_seconds histogram"), "{answer}");
    }
    server.end();
}

#[test]
fn sec_pages_of_other_sites_may_not_use_a_server_of_this_machine() {
    let folder = repository("");
    let (server, address) = start(options(folder.path()));
    let unload = "/v2/repository/models/digits/unload";
    let origin = "origin: http://evil.example\r\ncontent-type: text/plain\r\n";
    let answer = exchange(address, &request("POST", unload, origin, b""));
    assert_eq!(status(&answer), 403, "{answer}");
    let mut rebound = request("POST", unload, "", b"");
    let at = rebound.windows(9).position(|it| it == b"localhost").unwrap();
    rebound.splice(at..at + 9, *b"evil.example");
    assert_eq!(status(&exchange(address, &rebound)), 403);
    let own = "origin: http://localhost\r\n";
    assert_eq!(
        status(&exchange(address, &request("POST", INFER, own, image(1, 0.5).as_bytes()))),
        200
    );
    server.end();
}

#[test]
fn sec_other_machines_need_a_token_or_a_word() {
    let folder = repository("");
    let mut open = options(folder.path()).http("0.0.0.0:0".parse().unwrap());
    assert!(matches!(Server::start(open.clone()), Err(StartError::Open { .. })));
    open.allow_anybody = true;
    Server::start(open).unwrap().end();
    let mut closed = options(folder.path()).http("0.0.0.0:0".parse().unwrap());
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, "0123456789abcdef\n").unwrap();
    closed.token_file = Some(tokens);
    let (server, address) = start(closed);
    let address = SocketAddr::from(([127, 0, 0, 1], address.port()));
    assert_eq!(status(&get(address, "/v2")), 401);
    assert_eq!(status(&get(address, "/metrics")), 401);
    assert_eq!(status(&get(address, "/v2/health/live")), 200);
    let with = request("GET", "/v2", "authorization: Bearer 0123456789abcdef\r\n", b"");
    assert_eq!(status(&exchange(address, &with)), 200);
    server.end();
}

/// Head and body of an answer.
fn parts(address: SocketAddr, request: &[u8]) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap().to_lowercase();
    (head, answer.split_off(end + 4))
}

fn uncompressed(encoding: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    match encoding {
        "gzip" => flate2::read::GzDecoder::new(body).read_to_end(&mut bytes).unwrap(),
        _ => flate2::read::ZlibDecoder::new(body).read_to_end(&mut bytes).unwrap(),
    };
    bytes
}

#[test]
fn answers_are_compressed_for_those_who_ask() {
    let folder = repository("");
    let root = folder.path().join("add");
    std::fs::create_dir_all(root.join("1")).unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/add.tflite");
    std::fs::copy(file, root.join("1/model.tflite")).unwrap();
    std::fs::write(root.join("config.toml"), "max_batch_size = 512").unwrap();
    let (server, address) = start(options(folder.path()));
    let infer = "/v2/models/add/infer";
    let json = sum(512, 7);
    let binary = json.replacen('{', r#"{"parameters":{"binary_data_output":true},"#, 1);
    let is_encoded = |head: &str| head.contains("content-encoding");
    let header = |head: &str, name: &str| -> Option<usize> {
        let line = head.lines().find_map(|it| it.strip_prefix(&format!("{name}: ")))?;
        Some(line.parse().unwrap())
    };
    for encoding in ["gzip", "deflate"] {
        let accept = format!("accept-encoding: {encoding}\r\n");
        for (method, path, body) in [
            ("POST", infer, &*json),
            ("POST", infer, &*binary),
            ("GET", "/page.css", ""),
            ("GET", "/page.js", ""),
            ("GET", "/metrics", ""),
        ] {
            let body = body.as_bytes();
            let (head, plain) = parts(address, &request(method, path, "", body));
            assert!(head.starts_with("http/1.1 200") && !is_encoded(&head), "{head}");
            let (head, compressed) = parts(address, &request(method, path, &accept, body));
            assert!(head.contains(&format!("content-encoding: {encoding}")), "{path}: {head}");
            assert!(head.contains("vary: accept-encoding"), "{head}");
            assert!(!head.contains("transfer-encoding"), "{head}");
            assert_eq!(header(&head, "content-length"), Some(compressed.len()), "{head}");
            assert!(compressed.len() < plain.len(), "{path}");
            let found = uncompressed(encoding, &compressed);
            match path {
                // It counts what is asked of it.
                "/metrics" => assert!(found.starts_with(b"# HELP"), "{path}"),
                _ => assert!(found == plain, "{path}"),
            }
            if body == binary.as_bytes() {
                // The JSON in front of the bytes, as it is when it is not compressed any more.
                let length = header(&head, "inference-header-content-length").unwrap();
                assert_eq!(found.len(), length + 512 * 4 * 4);
                assert!(found[..length].ends_with(b"}"), "{head}");
            }
        }
    }
    // Short answers, errors, and what describes models come as they are, and so does what is asked for in no other way.
    let accept = "accept-encoding: gzip\r\n";
    for (method, path, accept, body) in [
        ("POST", INFER, accept, image(1, 0.5)),
        ("POST", infer, accept, sum(513, 1)),
        ("GET", "/v2/models/add/config", accept, String::new()),
        ("GET", "/v2/models/stats", accept, String::new()),
        ("GET", "/v2/health/live", accept, String::new()),
        ("HEAD", "/page.js", accept, String::new()),
        ("POST", infer, "accept-encoding: gzip;q=0\r\n", json.clone()),
        ("POST", infer, "accept-encoding: br\r\n", json.clone()),
    ] {
        let (head, _) = parts(address, &request(method, path, accept, body.as_bytes()));
        assert!(!is_encoded(&head), "{path}: {head}");
    }
    // Requests and answers, each in its own way.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(json.as_bytes()).unwrap();
    let headers = "content-encoding: gzip\r\naccept-encoding: deflate\r\n";
    let (head, body) = parts(address, &request("POST", infer, headers, &encoder.finish().unwrap()));
    assert!(head.contains("content-encoding: deflate"), "{head}");
    assert!(uncompressed("deflate", &body).ends_with(b"14.0]}]}"));
    server.end();
}

/// A browser, if the machine has one.
fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("NNHAL_TEST_BROWSER") {
        return Some(named.into());
    }
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    let mut all = names.iter().flat_map(|name| folders.iter().map(move |it| it.join(name)));
    all.find(|path| path.is_file())
}

#[test]
#[allow(clippy::print_stderr)] // What was not tried is said.
fn the_page_shows_models_and_why_others_are_not_there() {
    let Some(browser) = browser() else {
        eprintln!("there is no Chromium (Debian: apt install chromium): the page was not opened");
        return;
    };
    let folder = repository("");
    add(folder.path(), "<b>wrong", 1, "digits_float32.tflite", "instances = 0");
    let (server, address) = start(options(folder.path()));
    assert_eq!(status(&post(address, INFER, &image(1, 0.5))), 200);
    // Somebody asks while the page is open, so that it has latencies to show.
    let is_open = Arc::new(AtomicBool::new(true));
    let asking = std::thread::spawn({
        let is_open = Arc::clone(&is_open);
        move || {
            while is_open.load(Ordering::Relaxed) {
                assert_eq!(status(&post(address, INFER, &image(1, 0.5))), 200);
            }
        }
    });
    let profile = tempfile::tempdir().unwrap();
    let output = std::process::Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--dump-dom",
            "--virtual-time-budget=10000",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("http://{address}/#profile=digits"))
        .output()
        .unwrap();
    is_open.store(false, Ordering::Relaxed);
    asking.join().unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    assert!(dom.contains("digits 1") && dom.contains("READY"), "{dom}");
    assert!(dom.contains("image FP32 [1, 8, 8, 1]") && dom.contains("<polyline"), "{dom}");
    assert!(
        dom.contains("One run takes") && dom.contains("<rect"),
        "a profile as a picture: {dom}"
    );
    for figure in ["rows a second", "latency", "waiting"] {
        assert!(dom.contains(&format!("aria-label=\"{figure}\"")), "{figure}: {dom}");
    }
    let milliseconds = |before: &str| -> f64 {
        let found = dom.split_once(before).and_then(|(_, rest)| rest.split_once(" ms"));
        found.and_then(|(time, _)| time.parse().ok()).unwrap_or_else(|| panic!("{before}: {dom}"))
    };
    // Of all requests, and of those between the last two looks.
    for before in ["<th>latency p%</th><td>", "<span class=\"p%\">p% "] {
        let times = ["50", "90", "99"].map(|part| milliseconds(&before.replace('%', part)));
        assert!(times[0] > 0.0 && times[0] <= times[1] && times[1] <= times[2], "{times:?}");
    }
    let mean = milliseconds("<th>mean latency</th><td>");
    let (median, most) =
        (milliseconds("<th>latency p50</th><td>"), milliseconds("<th>latency p99</th><td>"));
    assert!(median < mean * 1.5 && mean < most * 1.5, "{median} {mean} {most}");
    for part in ["p50", "p90", "p99"] {
        assert!(dom.contains(&format!("class=\"curve {part}\"")), "{part}: {dom}");
    }
    assert!(dom.contains("&lt;b&gt;wrong") && dom.contains("instances is 0"), "{dom}");
    assert!(!dom.contains("<b>wrong"), "a name is never markup");
    server.end();
}
