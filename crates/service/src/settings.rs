//! [`Settings`]: limits, and who may connect.

use nnhal_hal::client::ClientLimits;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How a service treats its clients. All but [`Settings::all`] can change while it runs, for
/// clients that come later.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The most clients at a time.
    pub clients: usize,
    /// The most connections of one client.
    pub connections: usize,
    /// What a client may hold.
    pub client: ClientLimits,
    /// What all clients may hold together.
    pub all: ClientLimits,
    /// The users who may connect, by number; `None`: all whom the socket's file mode lets.
    pub users: Option<BTreeSet<u32>>,
    /// How long a client may take to send what it has begun, or to take what it is sent.
    pub io_timeout: Duration,
}

impl Default for Settings {
    /// 1024 clients of up to 17 connections each, a quarter of the machine's memory for each client,
    /// 64 bursts, 256 executions at a time, 256 prepared models, 1024 reusable executions, 4096 descriptors, 4096 outcomes of fenced
    /// executions, ten minutes for preparing a model; 16 times that for all, but three quarters of the machine's memory.
    fn default() -> Self {
        let quarter = nnhal_hal::memory::machine_memory() / 4;
        let client = ClientLimits {
            executions: 256,
            fenced_executions: 256,
            // Each connection has its thread.
            calls: u64::MAX,
            tasks: 256,
            bursts: 64,
            buffers: 1024,
            memory: quarter,
            prepared_models: 256,
            reusable_executions: 1024,
            descriptors: 4096,
            fenced_outcomes: 4096,
            preparing: Duration::from_secs(600),
        };
        Self {
            clients: 1024,
            connections: nnhal_aidl::socket::MOST_CONNECTIONS + 1,
            client,
            all: ClientLimits {
                executions: client.executions * 16,
                fenced_executions: client.fenced_executions * 16,
                calls: u64::MAX,
                tasks: client.tasks * 16,
                bursts: client.bursts * 16,
                buffers: client.buffers * 16,
                memory: quarter.saturating_mul(3),
                prepared_models: client.prepared_models * 16,
                reusable_executions: client.reusable_executions * 16,
                descriptors: client.descriptors * 16,
                fenced_outcomes: client.fenced_outcomes * 16,
                preparing: client.preparing,
            },
            users: None,
            io_timeout: Duration::from_secs(10),
        }
    }
}

/// Why a file of settings makes no sense.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct SettingsError {
    path: PathBuf,
    what: String,
}

/// A file of settings. What it does not say stays as [`Settings::default`] says.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct File {
    clients: Option<usize>,
    connections: Option<usize>,
    users: Option<BTreeSet<u32>>,
    io_timeout_seconds: Option<u64>,
    client: ForClient,
    all: ForAll,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct ForClient {
    executions: Option<u64>,
    fenced_executions: Option<u64>,
    bursts: Option<u64>,
    buffers: Option<u64>,
    memory_mib: Option<u64>,
    prepared_models: Option<u64>,
    reusable_executions: Option<u64>,
    descriptors: Option<u64>,
    fenced_outcomes: Option<u64>,
    preparing_seconds: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct ForAll {
    executions: Option<u64>,
    fenced_executions: Option<u64>,
    bursts: Option<u64>,
    buffers: Option<u64>,
    memory_mib: Option<u64>,
    prepared_models: Option<u64>,
    reusable_executions: Option<u64>,
    descriptors: Option<u64>,
    fenced_outcomes: Option<u64>,
}

impl Settings {
    /// Reads a file of settings, in TOML.
    ///
    /// # Errors
    /// It cannot be read, or has something that is no setting.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let wrong = |what: String| SettingsError { path: path.to_owned(), what };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let file: File = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        Ok(Self::from_file(file))
    }

    /// The same where this number of threads serve the calls of all clients ([`ClientLimits::beside_threads`]).
    #[must_use]
    pub fn beside_threads(mut self, threads: usize) -> Self {
        [self.client, _] = self.client.beside_threads(threads);
        [_, self.all] = self.all.beside_threads(threads);
        self
    }

    fn from_file(file: File) -> Self {
        fn set<T>(place: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *place = value;
            }
        }
        let mut settings = Self::default();
        set(&mut settings.clients, file.clients);
        set(&mut settings.connections, file.connections);
        set(&mut settings.io_timeout, file.io_timeout_seconds.map(Duration::from_secs));
        settings.users = file.users;
        let client = &mut settings.client;
        set(&mut client.executions, file.client.executions);
        set(&mut client.fenced_executions, file.client.fenced_executions);
        set(&mut client.bursts, file.client.bursts);
        set(&mut client.buffers, file.client.buffers);
        set(&mut client.memory, file.client.memory_mib.map(|mib| mib.saturating_mul(1 << 20)));
        set(&mut client.prepared_models, file.client.prepared_models);
        set(&mut client.reusable_executions, file.client.reusable_executions);
        set(&mut client.descriptors, file.client.descriptors);
        set(&mut client.fenced_outcomes, file.client.fenced_outcomes);
        set(&mut client.preparing, file.client.preparing_seconds.map(Duration::from_secs));
        let all = &mut settings.all;
        set(&mut all.executions, file.all.executions);
        set(&mut all.fenced_executions, file.all.fenced_executions);
        set(&mut all.bursts, file.all.bursts);
        set(&mut all.buffers, file.all.buffers);
        set(&mut all.memory, file.all.memory_mib.map(|mib| mib.saturating_mul(1 << 20)));
        set(&mut all.prepared_models, file.all.prepared_models);
        set(&mut all.reusable_executions, file.all.reusable_executions);
        set(&mut all.descriptors, file.all.descriptors);
        set(&mut all.fenced_outcomes, file.all.fenced_outcomes);
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_change_what_they_say_and_refuse_what_is_no_setting() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.toml");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Settings::read(&path)
        };
        let text = "clients = 3\nusers = [0, 1000]\n[client]\nmemory-mib = 2\nprepared-models = 5\n\
             [all]\nmemory-mib = 7\nexecutions = 8\n";
        let settings = read(text).unwrap();
        assert_eq!((settings.clients, settings.client.memory), (3, 2 << 20));
        assert_eq!(settings.client.prepared_models, 5);
        assert_eq!((settings.all.memory, settings.all.executions), (7 << 20, 8));
        assert_eq!(settings.users, Some([0, 1000].into_iter().collect()));
        assert_eq!(settings.client.bursts, Settings::default().client.bursts);
        let refused = read("clinets = 3").unwrap_err().to_string();
        assert!(refused.contains("clinets"), "{refused}");
        read("[client]\nbursts = -1").unwrap_err();
        Settings::read(&folder.path().join("none")).unwrap_err();
    }
}
