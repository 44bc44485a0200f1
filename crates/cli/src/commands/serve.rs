//! `nnhal serve`: serves models by the Open Inference Protocol.

use super::print;
use crate::error::{CliError, Result};
use nnhal_serve::{LogFormat, Options, Server};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Serve models over HTTP and gRPC by the Open Inference Protocol (KServe v2)
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  mkdir -p models/digits/1 && cp assets/digits/digits_int8.tflite models/digits/1/model.tflite
  nnhal serve --models models --http 127.0.0.1:8000 --grpc 127.0.0.1:8001

docs/serving.md says how models are configured, and what is promised at overload")]
pub struct Arguments {
    /// The model repository: a folder for each model, in it one for each version
    #[arg(long, value_name = "DIR")]
    models: PathBuf,
    /// Where to listen for HTTP, such as 127.0.0.1:8000; not at all without it
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// Where to listen for gRPC, such as 127.0.0.1:8001; not at all without it
    #[arg(long, value_name = "ADDRESS")]
    grpc: Option<SocketAddr>,
    /// A file of bearer tokens, one a line, of 16 bytes or more; a request needs one of them
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Listen at addresses that other machines reach although no token is needed
    #[arg(long)]
    allow_anybody: bool,
    /// The certificate chain of the server, as PEM: encrypts both endpoints
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// The key of the certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// Let clients register POSIX shared memory: they can name any object that this process may open
    #[arg(long)]
    shared_memory: bool,
    /// Do not let clients load and unload models
    #[arg(long)]
    no_control: bool,
    /// How often to look for changes on disk, in seconds; 0: never
    #[arg(long, value_name = "SECONDS", default_value_t = 1)]
    poll: u32,
    /// A folder where prepared models are kept, so that the next start is sooner
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// MiB that one request may have
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=2048))]
    max_request: u32,
    /// MiB that all requests in progress may have together, with their answers until these are sent [default: a sixteenth of
    /// the machine's memory, or of what its control groups allow the process, up to 1024, and at least --max-request]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    max_in_progress: Option<u32>,
    /// MiB that files of models may have together that clients upload with requests to load [default: a sixteenth of the
    /// same memory, and at least --max-request]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    max_uploads: Option<u32>,
    /// Connections at a time through each endpoint, as far as the limit of open files allows it [default: as many as a quarter of
    /// the same memory suffices for, from 64 to 10240]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_connections: Option<u32>,
    /// For how long a client may send or take nothing where it should, and a connection be idle, in
    /// seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    client_timeout: u32,
    /// The longest time from a request's arrival to the end of computing, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    request_timeout: u32,
    /// For how long requests that are in progress are waited for at the end, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    shutdown_timeout: u32,
    /// Lines of the log: text, or a JSON object each
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    log_format: String,
}

impl Arguments {
    fn options(&self) -> Options {
        const MIB: usize = 1 << 20;
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        let bytes = |mib: u32| mib as usize * MIB;
        let mut options = Options::new(&self.models).with_most_request(bytes(self.max_request));
        options.http = self.http;
        options.grpc = self.grpc;
        options.token_file.clone_from(&self.token_file);
        options.allow_anybody = self.allow_anybody;
        options.tls = self.tls_certificate.clone().zip(self.tls_key.clone());
        options.shared_memory = self.shared_memory;
        options.control = !self.no_control;
        options.poll = (self.poll > 0).then(|| seconds(self.poll));
        options.cache.clone_from(&self.cache);
        options.most_receiving = self.max_in_progress.map_or(options.most_receiving, bytes);
        options.most_uploaded = self.max_uploads.map_or(options.most_uploaded, bytes);
        options.most_connections =
            self.max_connections.map_or(options.most_connections, |most| most as usize);
        options.client_timeout = seconds(self.client_timeout);
        options.request_timeout = seconds(self.request_timeout);
        options.shutdown_timeout = seconds(self.shutdown_timeout);
        options
    }
}

/// Serves until the process is asked to end.
///
/// # Errors
/// The server cannot be started.
pub fn run(arguments: &Arguments) -> Result<()> {
    let format = if arguments.log_format == "json" { LogFormat::Json } else { LogFormat::Text };
    let wanted = nnhal_settings::log().map_err(nnhal::Error::from)?;
    let _telemetry =
        nnhal_serve::start_telemetry(wanted.as_deref(), format).map_err(CliError::from)?;
    let server = Server::start(arguments.options()).map_err(CliError::from)?;
    let signals = server.signals().map_err(CliError::from)?;
    for (name, address) in [("http", server.http_address()), ("grpc", server.grpc_address())] {
        if let Some(address) = address {
            print(&format!("{name} {address}\n"))?;
        }
    }
    server.run_until_signal(signals);
    Ok(())
}
