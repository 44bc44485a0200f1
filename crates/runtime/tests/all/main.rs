//! The runtime over the reference device, and over devices with limits and faults.

mod caching;
mod events;
mod loops;
mod memories;
mod mutants;
mod partitions;
mod random_models;
mod states;
mod support;
mod vectors;
