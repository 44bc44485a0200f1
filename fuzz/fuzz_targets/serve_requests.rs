//! A request to a server gives an error or a request whose inputs have as many bytes as their shapes say, through
//! both endpoints: JSON with bytes behind it, and the message of gRPC. The same for models' configurations.
//!
//! `cargo +nightly fuzz run --features serve serve_requests`

#![no_main]

use libfuzzer_sys::fuzz_target;
use nnhal_serve::{Data, ModelConfig, parse};

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, body)) = bytes.split_first() else { return };
    let request = match choice % 4 {
        0 => parse::json(body, None),
        1 => parse::json(body, Some(body.len() / 2)),
        2 => parse::message(body),
        _ => {
            if let Ok(text) = std::str::from_utf8(body) {
                let _ = ModelConfig::from_json(text);
                let _ = ModelConfig::from_toml(text);
            }
            return;
        }
    };
    for input in request.into_iter().flat_map(|request| request.inputs) {
        let expected = input.data_type.byte_length(&input.shape);
        if let Data::Bytes(bytes) = &input.data {
            assert_eq!(expected, Some(bytes.len()));
        }
    }
});
