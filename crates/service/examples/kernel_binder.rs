//! Both ends of the interface over kernel binder, as static programs without the fast kernels: for
//! `tests/binder/run`, which has them talk in a virtual machine.
//!
//! `kernel_binder serve` registers the reference device. With the arguments of `nnhal conformance` it judges
//! the device that is registered so.

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        let devices = vec![nnhal_reference::device()];
        let served = nnhal_service::kernel::run(devices, None, Default::default(), |line| {
            let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{line}\n"));
        });
        return if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let names = nnhal_remote::find("aidl:*").expect("a service manager");
    let name = names.first().expect("a device");
    nnhal_conformance::cli(nnhal_remote::open(name).expect("the device"))
}
