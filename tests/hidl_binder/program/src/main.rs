//! What the tests of HIDL services need in the virtual machine: `hidl-binder-test manager`, a minimal service manager;
//! `service NAME`, the reference device; `conformance NAME ...`, vectors and checks on a service; `faults`, what must hold
//! when processes end and parcels are wrong.

#![allow(clippy::print_stdout)]

mod faults;
mod manager;
mod overhead;

use clap::Parser;
use nnhal_conformance::command;
use nnhal_hidl_binder::{Service, client};
use nnhal_hwbinder::{DEVICE, Manager, Process};
use std::error::Error;
use std::time::Duration;

/// Tests of HIDL services.
#[derive(Parser)]
enum Command {
    /// Is the service manager.
    Manager,
    /// Offers the reference device.
    Service {
        /// Under this name.
        name: String,
        /// With this many times the name, each with a number behind it.
        #[arg(long, default_value_t = 1)]
        count: usize,
    },
    /// Lists what the manager knows.
    List,
    /// Vectors and checks.
    Conformance {
        /// The service.
        name: String,
        /// By the asynchronous methods.
        #[arg(long)]
        by_callback: bool,
        /// As for `nnhal conformance`.
        #[command(flatten)]
        judging: command::Arguments,
    },
    /// What must hold when something goes wrong.
    Faults {
        /// Which; all of them without one.
        #[arg(value_enum)]
        only: Option<faults::Fault>,
    },
    /// How long an execution of one operation takes in the process, and by the service.
    Overhead {
        /// The service.
        name: String,
    },
    /// A client that executes what never ends, until it is killed.
    #[command(hide = true)]
    ExecuteEndlessly {
        /// The service.
        name: String,
    },
    /// A client that holds what a service gives, until it is killed.
    #[command(hide = true)]
    Hold {
        /// The service.
        name: String,
    },
}

fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let process = || Process::open(DEVICE.as_ref(), nnhal_hwbinder::driver::Options::default());
    match Command::parse() {
        Command::Manager => manager::run(&process()?)?,
        Command::Service { name, count } => {
            let mut service = Service::new(&process()?, Default::default());
            for index in 0..count {
                let name = if index == 0 { name.clone() } else { format!("{name}-{index}") };
                let device = nnhal_reference::device();
                service.add(name, device, Default::default(), Default::default());
            }
            service.run(|| println!("registered"))?;
        }
        Command::List => {
            let process = process()?;
            for service in Manager::wait(&process, Some(Duration::from_secs(10)))?.list()? {
                println!("{}/{}", service.interface, service.name);
            }
            println!("{}", nnhal_remote::find("hidl:*")?.join(", "));
        }
        Command::Conformance { name, by_callback, judging } => {
            let process = process()?;
            faults::wait_for(&process, &name)?;
            let options =
                nnhal_hidl::client::Options { asynchronous: by_callback, ..Default::default() };
            let device = match by_callback {
                true => client::open(&process, &name, options)?,
                // As the program `nnhal` does.
                false => nnhal_remote::open(&format!("hidl:{name}"))?,
            };
            command::run_driver(&judging, &device, &client::driver(&process, &name)?)?;
        }
        Command::Faults { only } => faults::run(&process()?, only)?,
        Command::Overhead { name } => overhead::run(&process()?, &name)?,
        Command::ExecuteEndlessly { name } => faults::execute_endlessly(&process()?, &name)?,
        Command::Hold { name } => faults::hold(&process()?, &name)?,
    }
    Ok(())
}
