//! The program of whoever writes a driver: put your device in the place of this one. Arguments are those
//! of `nnhal conformance`; `--contract` needs no files:
//!
//! ```text
//! cargo run --release -p nnhal-conformance --features cli --example judge_my_device -- --contract
//! ```

fn main() -> std::process::ExitCode {
    nnhal_conformance::cli(nnhal_reference::device())
}
