//! Types and services of the protocol, out of its `.proto` files; no `protoc` is needed.

use prost::Message;
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let files = ["proto/grpc_service.proto", "proto/model_config.proto"];
    for file in files {
        println!("cargo::rerun-if-changed={file}");
    }
    let descriptors = protox::compile(files, ["proto"])?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("there is no OUT_DIR")?);
    // Configurations are read as text and JSON by what the descriptors say.
    std::fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        .build_transport(false)
        .build_client(false)
        .bytes(".inference.ModelInferRequest.raw_input_contents")
        .bytes(".inference.ModelInferResponse.raw_output_contents")
        .compile_fds(descriptors)?;
    Ok(())
}
