//! `nnhal service`

mod hidl;

use super::print;
use crate::error::{CliError, Result};
use nnhal::devices;
use nnhal_hal::Device;
use nnhal_service::Settings;
use nnhal_service::daemon::{self, DaemonError, Options};
use std::io::Write;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the service listens unless it is said.
const SOCKET: &str = "/run/nnhal/nnhal.sock";

/// The arguments of `nnhal service`.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Example:
  nnhal service --socket /tmp/nnhal.sock
  nnhal run MODEL --input INPUT --device unix:/tmp/nnhal.sock
  nnhal service status --socket /tmp/nnhal.sock

Serves until SIGTERM or SIGINT; at SIGHUP the settings are read again. docs/service.md is about systemd, limits
and metrics."
)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    socket: OnSocket,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Offer devices through kernel binder's service manager, on Android and its relatives
    Aidl(AidlArguments),
    /// Offer devices behind HIDL's hwbinder, as Android's drivers
    Hidl(hidl::Arguments),
    /// Ask a service what it is doing
    Status(StatusArguments),
}

#[derive(Debug, clap::Args)]
struct OnSocket {
    /// Where to listen, unless systemd has opened a socket
    #[arg(long, value_name = "PATH", default_value = SOCKET)]
    socket: PathBuf,
    /// The permissions of the socket, in octal
    #[arg(long, value_name = "MODE", default_value = "660", value_parser = mode)]
    mode: u32,
    /// The devices to offer, separated by commas; the first is what clients get that name none
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_values = devices::names())]
    devices: Vec<String>,
    /// The most threads that share the work of an execution
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// A file of limits and of who may connect
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Offer metrics for Prometheus by HTTP at this address, such as 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
}

#[derive(Debug, clap::Args)]
struct AidlArguments {
    /// The devices to offer, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_values = devices::names())]
    devices: Vec<String>,
    /// The instance name of the first device, unless it is the device's own
    #[arg(long, value_name = "VENDOR-DEVICE", value_parser = instance)]
    instance: Option<String>,
    /// The most threads that share the work of an execution
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// A file of limits
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct StatusArguments {
    /// Where the service listens
    #[arg(long, value_name = "PATH", default_value = SOCKET)]
    socket: PathBuf,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// Whether the answer is to be one JSON object.
    pub fn is_json(&self) -> bool {
        matches!(&self.command, Some(Command::Status(arguments)) if arguments.json)
    }
}

fn mode(text: &str) -> std::result::Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        _ => Err("expected an octal number up to 777".to_owned()),
    }
}

/// A name for a device that Android's NNAPI and its tests take (DEV-INFO-3), of what manifests and service managers allow.
fn instance(text: &str) -> std::result::Result<String, String> {
    let part = |part: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
        !part.is_empty() && part.bytes().all(allowed)
    };
    match text.split_once('-') {
        Some((vendor, device)) if part(vendor) && part(device) => Ok(text.to_owned()),
        _ => Err("expected the vendor and the device joined by one `-`, each of letters, digits, `_` and `.`"
            .to_owned()),
    }
}

/// Serves, or asks a service.
pub fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.command {
        None => serve(&arguments.socket),
        Some(Command::Aidl(arguments)) => aidl(arguments),
        Some(Command::Hidl(arguments)) => hidl::run(arguments),
        Some(Command::Status(arguments)) => status(arguments),
    }
}

fn offered(names: &[String], threads: Option<NonZeroUsize>) -> Result<Vec<Arc<dyn Device>>> {
    let open = |name: &String| Ok(devices::open(name.trim(), threads)?);
    names.iter().map(open).collect()
}

fn serve(arguments: &OnSocket) -> Result<()> {
    let options = Options {
        socket: arguments.socket.clone(),
        mode: arguments.mode,
        settings: arguments.settings.clone(),
        metrics: arguments.metrics,
    };
    let report = |line: &str| {
        let _ = writeln!(std::io::stderr(), "nnhal service: {line}");
    };
    let devices = offered(&arguments.devices, arguments.threads)?;
    daemon::run(devices, &options, report).map_err(|error| match error {
        DaemonError::Service(error) => CliError::Service(error),
        other => CliError::Input(other.to_string()),
    })
}

fn aidl(arguments: &AidlArguments) -> Result<()> {
    let settings = arguments.settings.as_deref().map(Settings::read).transpose();
    let settings = settings.map_err(|error| CliError::Input(error.to_string()))?;
    let devices = offered(&arguments.devices, arguments.threads)?;
    let instance = arguments.instance.as_deref();
    let report = |line: &str| {
        let _ = writeln!(std::io::stderr(), "nnhal service: {line}");
    };
    Ok(nnhal_service::kernel::run(devices, instance, settings.unwrap_or_default(), report)?)
}

fn status(arguments: &StatusArguments) -> Result<()> {
    let json = ask(&arguments.socket)?;
    if arguments.json {
        return super::write(&(json + "\n"));
    }
    let wrong = |error: serde_json::Error| CliError::Input(format!("the status: {error}"));
    let status: serde_json::Value = serde_json::from_str(&json).map_err(wrong)?;
    let number = |of: &serde_json::Value, name: &str| of[name].as_u64().unwrap_or(0);
    let line = |of: &serde_json::Value| {
        let time = |name: &str| of[name].as_u64().map_or("-".into(), |us| format!("{us} us"));
        format!(
            "{} prepared models, {} MiB, {} running, {} executed ({} failed), median at most {}, 99% at most {}\n",
            number(of, "prepared_models"),
            number(of, "memory") >> 20,
            number(of, "running"),
            number(of, "executions"),
            number(of, "failed"),
            time("median_us"),
            time("percentile_99_us"),
        )
    };
    let names = status["devices"].as_array().into_iter().flatten();
    let names: Vec<&str> = names.filter_map(serde_json::Value::as_str).collect();
    let clients = status["clients"].as_array().map_or(&[][..], Vec::as_slice);
    let mut text = format!(
        "{}\n{} clients, {} since {} s, {} connections refused\n{}",
        names.join(", "),
        clients.len(),
        number(&status, "admitted"),
        number(&status, "seconds"),
        number(&status, "refused"),
        line(&status["all"]),
    );
    for client in clients {
        let connections = number(client, "connections");
        let (uid, pid) = (number(client, "uid"), client["pid"].as_i64().unwrap_or(0));
        text +=
            &format!("process {pid} of user {uid}, {connections} connections: {}", line(client));
    }
    print(&text)
}

fn ask(socket: &Path) -> Result<String> {
    let asked = || {
        let lines = nnhal_aidl::socket::Lines::connect(socket)?;
        let service = lines.service()?.ok_or_else(|| {
            nnhal_hal::Error::failure("what listens there is no service of nnhal")
        })?;
        service.getStatus().map_err(nnhal_hal::Error::failure)
    };
    asked().map_err(|error| CliError::Input(format!("{}: {error}", socket.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dev_info_3_an_instance_is_a_vendor_and_a_device() {
        for name in ["nnhal-cpu", "nnapi-sample_all", "acme-npu2.1"] {
            assert_eq!(instance(name).as_deref(), Ok(name));
        }
        for name in
            ["", "-", "npu", "-npu", "acme-", "acme-npu-2", "acme--npu", "acme-n/pu", "acme-n pu"]
        {
            assert!(instance(name).is_err(), "{name}");
        }
    }
}
