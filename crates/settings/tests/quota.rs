//! The number of threads follows the quota of a control group, as containers have one.
//!
//! Where this process may not make a control group the test says so and tests nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes this program, run again, print how many threads it would use.
const PRINT: &str = "NNHAL_TEST_PRINT_THREADS";

/// A control group that may use one processor, until it is dropped.
struct Group(PathBuf);

impl Group {
    /// By version 1, mounted in one of two usual places, or by version 2.
    fn new() -> Option<Self> {
        let name = format!("nnhal-quota-{}", std::process::id());
        let roots = ["cpu", "cpu,cpuacct", ""].map(|it| Path::new("/sys/fs/cgroup").join(it));
        roots.into_iter().find_map(|root| {
            let group = Self(root.join(&name));
            fs::create_dir(&group.0).ok()?;
            let set = |file: &str, value: &str| fs::write(group.0.join(file), value);
            let limited = set("cpu.max", "100000 100000").or_else(|_| {
                set("cpu.cfs_period_us", "100000")?;
                set("cpu.cfs_quota_us", "100000")
            });
            limited.ok().map(|()| group)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It is empty: the program that was in it has ended.
        let _ = fs::remove_dir(&self.0);
    }
}

/// What the program prints that a shell starts with a command before it.
fn threads_after(command: &str) -> usize {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new("sh")
        .args(["-c", &format!("{command} && exec \"$0\" --exact a_quota_counts --nocapture")])
        .arg(program)
        .env(PRINT, "1")
        .env_remove("NNHAL_THREADS")
        .output()
        .expect("a shell");
    let text = String::from_utf8_lossy(&output.stdout);
    let number = text.lines().find_map(|line| line.split_once("threads: ")?.1.parse().ok());
    number.unwrap_or_else(|| panic!("{output:?}"))
}

#[test]
fn a_quota_counts() {
    if std::env::var_os(PRINT).is_some() {
        println!("\nthreads: {}", nnhal_settings::threads().expect("not set"));
        return;
    }
    let Some(group) = Group::new() else {
        eprintln!("not tested: no control group with a quota can be made here");
        return;
    };
    if threads_after("true") == 1 {
        eprintln!("not tested: there is one processor, with a quota or without");
        return;
    }
    let join = format!("echo $$ > '{}/cgroup.procs'", group.0.display());
    assert_eq!(threads_after(&join), 1, "threads with a quota of one processor");
}
