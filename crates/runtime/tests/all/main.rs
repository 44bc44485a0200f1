//! The runtime over the reference device, and over devices with limits and faults.

mod loops;
mod partitions;
mod states;
mod support;
mod vectors;
