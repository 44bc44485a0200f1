//! Serves `.tflite` models by the Open Inference Protocol (KServe v2), over HTTP and gRPC.
//!
//! ```no_run
//! use nnhal_serve::{Options, Server};
//!
//! let options = Options::new("models").http("127.0.0.1:8000".parse()?).grpc("127.0.0.1:8001".parse()?);
//! let server = Server::start(options)?;
//! let signals = server.signals()?;
//! println!("http://{}", server.http_address().expect("it was asked for"));
//! server.run_until_signal(signals);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Both endpoints make an [`InferRequest`] of what comes, and one service answers it: [`Options`] says where
//! and how, `MODELS/NAME/config.toml` ([`ModelConfig`]) how each model is served. `docs/serving.md` shows it
//! from the client's side.

#![forbid(unsafe_code)]

mod access;
mod blocking;
mod browser;
mod charge;
mod classes;
mod compressed;
mod config;
mod data_type;
mod endpoint;
mod error;
mod grpc;
mod http;
mod input_memory;
mod listen;
mod metrics;
mod model;
mod options;
mod page;
mod parameters;
pub mod parse;
mod pieces;
mod proto;
mod repository;
mod request;
mod server;
mod service;
mod shared_memory;
mod telemetry;

pub use config::{DynamicBatching, ModelConfig, TensorConfig, Versions};
pub use error::{Error, Result, StartError};
pub use input_memory::InputMemory;
pub use model::{BatchCounts, Counts, Durations, Latencies, Served, TensorMeta};
pub use options::Options;
pub use parameters::{Parameter, Parameters};
pub use pieces::Pieces;
pub use repository::{IndexEntry, Overrides};
pub use request::{
    Data, InferRequest, InferResponse, InputTensor, OutputData, OutputTensor, WantedOutput,
};
pub use server::{Server, Signals};
pub use shared_memory::{RegionStatus, Slice};
pub use telemetry::{LogFormat, Telemetry, start as start_telemetry};
