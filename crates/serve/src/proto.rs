//! Messages and services of the protocol, out of `proto/`, and their descriptors.
#![allow(missing_docs, unused_qualifications)]
#![allow(clippy::all, clippy::pedantic)]

use prost_reflect::DescriptorPool;
use std::sync::LazyLock;

include!(concat!(env!("OUT_DIR"), "/inference.rs"));

/// What the `.proto` files say, as a `FileDescriptorSet`.
pub(crate) const DESCRIPTOR_SET: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// What the `.proto` files say.
pub(crate) static DESCRIPTORS: LazyLock<DescriptorPool> = LazyLock::new(|| {
    // They were written by the build; without them no configuration can be read.
    DescriptorPool::decode(DESCRIPTOR_SET).unwrap_or_default()
});
