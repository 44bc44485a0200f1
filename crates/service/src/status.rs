//! What clients hold and how long executions take.

use crate::clients::{Clients, Connected};
use nnhal_aidl::serve::Executions;
use nnhal_hal::client::Holding;
use serde::Serialize;
use std::fmt::Write;
use std::time::Instant;

/// What a service is doing.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// The version of this build.
    pub version: &'static str,
    /// Seconds since it was started.
    pub seconds: u64,
    /// Names of its devices.
    pub devices: Vec<String>,
    /// How many clients there have been.
    pub admitted: u64,
    /// How many connections were refused.
    pub refused: u64,
    /// What all clients hold, and what was executed.
    pub all: Held,
    /// Those that are connected.
    pub clients: Vec<ClientStatus>,
}

/// A client that is connected.
#[derive(Debug, Clone, Serialize)]
pub struct ClientStatus {
    /// Its user's number.
    pub uid: u32,
    /// Its process's number.
    pub pid: i32,
    /// Connections.
    pub connections: usize,
    /// Seconds since it came.
    pub seconds: u64,
    /// What it holds, and what was executed for it.
    #[serde(flatten)]
    pub held: Held,
}

/// What is held, and what was executed.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Held {
    /// Prepared models.
    pub prepared_models: u64,
    /// Reusable executions.
    pub reusable_executions: u64,
    /// Descriptors that are kept.
    pub descriptors: u64,
    /// Fenced executions whose outcome can be asked for.
    pub fenced_outcomes: u64,
    /// Executions that are going on.
    pub running: u64,
    /// Bursts.
    pub bursts: u64,
    /// Buffers.
    pub buffers: u64,
    /// Bytes of models, executions and buffers.
    pub memory: u64,
    /// Executions that have ended.
    pub executions: u64,
    /// Those that failed.
    pub failed: u64,
    /// A time in microseconds that half of them did not exceed, to a factor of two.
    pub median_us: Option<u64>,
    /// The same for 99 of 100.
    pub percentile_99_us: Option<u64>,
}

impl Held {
    fn of(held: impl Fn(Holding) -> u64, executions: &Executions) -> Self {
        let quantile = |part| {
            let found = executions.quantile(part)?;
            u64::try_from(found.as_micros()).ok()
        };
        Self {
            prepared_models: held(Holding::PreparedModels),
            reusable_executions: held(Holding::ReusableExecutions),
            descriptors: held(Holding::Descriptors),
            fenced_outcomes: held(Holding::FencedOutcomes),
            running: held(Holding::Executions) + held(Holding::FencedExecutions),
            bursts: held(Holding::Bursts),
            buffers: held(Holding::Buffers),
            memory: held(Holding::Memory),
            executions: executions.count(),
            failed: executions.failed(),
            median_us: quantile(0.5),
            percentile_99_us: quantile(0.99),
        }
    }

    fn of_client(client: &Connected) -> Self {
        let guest = &client.guest;
        Self::of(|what| guest.client().held(what), guest.executions())
    }
}

impl Status {
    /// The status now.
    pub fn of(devices: &[String], clients: &Clients, started: Instant) -> Self {
        let list: Vec<ClientStatus> = clients
            .list()
            .iter()
            .map(|client| ClientStatus {
                uid: client.peer.uid,
                pid: client.peer.pid,
                connections: client.connections,
                seconds: client.since.elapsed().as_secs(),
                held: Held::of_client(client),
            })
            .collect();
        // With what those hold who have gone, until it is released.
        let all = Held::of(|what| clients.group().held(what), clients.executions());
        Self {
            version: env!("CARGO_PKG_VERSION"),
            seconds: started.elapsed().as_secs(),
            devices: devices.to_vec(),
            admitted: clients.admitted(),
            refused: clients.refused(),
            all,
            clients: list,
        }
    }
}

/// The metrics of a service in the text format of Prometheus.
pub fn metrics(status: &Status, executions: &Executions) -> String {
    let mut text = String::new();
    let mut gauge = |name: &str, kind: &str, help: &str, value: u64| {
        let _ = write!(
            text,
            "# HELP nnhal_{name} {help}\n# TYPE nnhal_{name} {kind}\nnnhal_{name} {value}\n"
        );
    };
    gauge("clients", "gauge", "Clients that are connected.", status.clients.len() as u64);
    gauge("clients_total", "counter", "Clients that there have been.", status.admitted);
    gauge("refused_connections_total", "counter", "Connections refused.", status.refused);
    gauge("prepared_models", "gauge", "Prepared models.", status.all.prepared_models);
    gauge("reusable_executions", "gauge", "Reusable executions.", status.all.reusable_executions);
    gauge("descriptors", "gauge", "Descriptors kept.", status.all.descriptors);
    let help = "Fenced executions whose outcome can be asked for.";
    gauge("fenced_outcomes", "gauge", help, status.all.fenced_outcomes);
    gauge("running_executions", "gauge", "Executions going on.", status.all.running);
    gauge("bursts", "gauge", "Bursts.", status.all.bursts);
    gauge("buffers", "gauge", "Buffers.", status.all.buffers);
    gauge("memory_bytes", "gauge", "Bytes that clients hold.", status.all.memory);
    gauge("failed_executions_total", "counter", "Executions that failed.", status.all.failed);
    let name = "nnhal_execution_seconds";
    let _ = write!(text, "# HELP {name} How long executions took.\n# TYPE {name} histogram\n");
    let (mut below, by_duration) = (0, executions.by_duration());
    for (index, ended) in by_duration.iter().enumerate().take(by_duration.len() - 1) {
        below += ended;
        let limit = std::time::Duration::from_micros(1 << index).as_secs_f64();
        let _ = writeln!(text, "{name}_bucket{{le=\"{limit}\"}} {below}");
    }
    let count: u64 = by_duration.iter().sum();
    let sum = std::time::Duration::from_micros(executions.microseconds()).as_secs_f64();
    let _ = write!(
        text,
        "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}\n"
    );
    text
}
