//! A client at its limits does not take the share of another: slots are fair between the processes that are clients.

mod common;

use common::{Process, execute, long_model, say, server, task, within};
use nnhal_hal::client::ClientLimits;
use nnhal_hal::{ErrorStatus, HalVersion, PrepareOptions, RequestBuilder};
use nnhal_service::Settings;
use std::time::Duration;

/// Executions of a client at a time. The greedy one tries more.
const EXECUTIONS: u64 = 8;

/// A client that executes on this number of threads for ever, where this is one.
#[test]
fn client() {
    let Some((threads, path)) = task() else { return };
    let device = nnhal_aidl::socket::open(&path, None).unwrap();
    let model = long_model(2000);
    let options = PrepareOptions::default();
    let prepared = device.prepare_model(&model, HalVersion::V1_3, options).unwrap();
    let mut request = RequestBuilder::new();
    request.input(&[0; 4]).output(4);
    let request = request.build().unwrap();
    execute(&*prepared, &request).unwrap();
    say("ready");
    std::thread::scope(|scope| {
        for _ in 0..threads.parse().unwrap() {
            scope.spawn(|| {
                loop {
                    if let Err(error) = execute(&*prepared, &request) {
                        let status = error.status();
                        assert_eq!(status, ErrorStatus::ResourceExhaustedTransient, "{error}");
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
            });
        }
    });
}

#[test]
fn a_client_at_its_limits_leaves_the_others_their_share() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let limits = Settings::default();
    let client = ClientLimits { executions: EXECUTIONS, ..limits.client };
    let server = server(&path, Settings { client, ..limits });
    let start = |threads: u64| Process::start("client", &format!("{threads} {}", path.display()));
    let greedy = start(EXECUTIONS * 3 / 2);
    let counts = |process: &Process| {
        let status = server.status();
        let of = |client: &&nnhal_service::status::ClientStatus| {
            u32::try_from(client.pid).unwrap() == process.id()
        };
        let found = status.clients.iter().find(of).expect("a client");
        (found.held.executions, found.held.failed)
    };
    // It is refused what is beyond its limit.
    assert!(within(Duration::from_secs(10), || counts(&greedy).1 > 0));
    // As many threads as there are slots, so that it can use its share.
    let slots = std::thread::available_parallelism().unwrap().get() as u64;
    let modest = start(slots);
    let before = (counts(&greedy), counts(&modest));
    std::thread::sleep(Duration::from_secs(3));
    let after = (counts(&greedy), counts(&modest));
    let had = |before: (u64, u64), after: (u64, u64)| (after.0 - after.1) - (before.0 - before.1);
    let (by_greedy, by_modest) = (had(before.0, after.0), had(before.1, after.1));
    say(&format!("{by_greedy} executions of the greedy client, {by_modest} of the other"));
    assert_eq!(after.1.1, 0, "the other is refused nothing");
    assert!(by_greedy > 0 && by_modest > 0);
    // Equal, but for what passes between two executions of one thread.
    assert!(2 * by_modest > by_greedy, "{by_greedy} and {by_modest}");
}
