//! A program as bytes, for the cache.
//!
//! What takes long is packing weights, so those are saved, and the steps are made anew of the
//! subgraph, by the same code as the first time. Constants that were looked at for anything but
//! packing are saved as well, the others are not. Bytes that are restored are those that were saved:
//! the cache has seen to that, so what they say is checked no further than lengths.
//!
//! A length of eight bytes, little endian, then a [`Header`] in the format of
//! [postcard](https://docs.rs/postcard), then, each from a cache line on, the constants, and then the
//! packed weights of one node after the other.

use crate::graph::SavedConstant;
use crate::plan::{KeptBytes, Origins, Plan};
use crate::settings::Settings;
use bytes::Bytes;
use nnhal_driver::EngineError;
use nnhal_driver::cache::DescribedSubgraph;
use nnhal_hal::Subgraph;
use nnhal_kernels::{LINE_BYTES, Packed};
use serde::{Deserialize, Serialize};

/// Which build of this crate and of its kernels this is.
const BUILD: &str = env!("NNHAL_CPU_BUILD");

/// What says how the rest is to be read.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    build: String,
    instruction_set: String,
    threads: u32,
    winograd: bool,
    /// Those that do not run.
    passes_off: String,
    subgraph: DescribedSubgraph,
    /// Lengths by input.
    inputs: Vec<Vec<u32>>,
    /// By operand; `None` if it is no constant.
    constants: Vec<Option<HeaderConstant>>,
    /// Bytes by node.
    packed: Vec<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct HeaderConstant {
    dimensions: Vec<u32>,
    length: u64,
    /// Whether the bytes are here.
    is_kept: bool,
}

/// A program that was saved.
#[derive(Debug)]
pub(crate) struct Saved {
    pub(crate) subgraph: Subgraph,
    pub(crate) inputs: Vec<Vec<u32>>,
    pub(crate) constants: Vec<Option<SavedConstant>>,
    /// By node.
    pub(crate) packed: Vec<Bytes>,
}

/// How many threads, as it is written.
fn threads(settings: &Settings) -> u32 {
    u32::try_from(settings.threads.get()).unwrap_or(u32::MAX)
}

/// The bytes of a plan; `None` if there is no room for them.
pub(crate) fn write(
    subgraph: &Subgraph,
    inputs: &[Vec<u32>],
    plan: &Plan,
    origins: &Origins,
    settings: &Settings,
) -> Option<Vec<u8>> {
    let of_node = |packed: &Vec<Packed>| packed.iter().map(|it| it.length() as u64).sum();
    let header = Header {
        build: BUILD.to_owned(),
        instruction_set: settings.instruction_set.to_string(),
        threads: threads(settings),
        winograd: settings.winograd,
        passes_off: settings.passes.to_string(),
        subgraph: DescribedSubgraph::of(subgraph),
        inputs: inputs.to_vec(),
        constants: origins
            .constants
            .iter()
            .map(|constant| {
                constant.as_ref().map(|constant| HeaderConstant {
                    dimensions: constant.dimensions.clone(),
                    length: constant.length as u64,
                    is_kept: !matches!(constant.bytes, KeptBytes::Packed),
                })
            })
            .collect(),
        packed: origins.packed.iter().map(of_node).collect(),
    };
    let header = postcard::to_allocvec(&header).ok()?;
    let constants =
        origins.constants.iter().flatten().filter_map(|constant| match &constant.bytes {
            KeptBytes::Packed => None,
            KeptBytes::Here(bytes) => Some(&bytes[..]),
            KeptBytes::InPlan(index) => {
                Some(&plan.constants[*index].elements::<u8>()[..constant.length])
            }
        });
    let packed = origins.packed.iter().flatten().map(Packed::bytes);
    let length = |bytes: &[u8]| bytes.len().next_multiple_of(LINE_BYTES);
    let total = constants.clone().chain(packed.clone()).map(length).sum::<usize>();
    let mut saved = Vec::new();
    saved.try_reserve_exact(size_of::<u64>() + header.len() + LINE_BYTES + total).ok()?;
    saved.extend_from_slice(&(header.len() as u64).to_le_bytes());
    for bytes in [&header[..]].into_iter().chain(constants).chain(packed) {
        saved.extend_from_slice(bytes);
        saved.resize(saved.len().next_multiple_of(LINE_BYTES), 0);
    }
    Some(saved)
}

/// What [`write`] wrote, for the same settings.
pub(crate) fn read(bytes: &Bytes, settings: &Settings) -> Result<Saved, EngineError> {
    let mut rest = bytes.clone();
    let length = take(&mut rest, size_of::<u64>())?;
    let length = length.first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
    let header = take(&mut rest, size(length)?)?;
    let header: Header = postcard::from_bytes(&header).map_err(nnhal_hal::Error::failure)?;
    let made_for = |build: &str, set: &str, threads: u32, winograd: bool, passes_off: &str| {
        let with = if winograd { "with" } else { "without" };
        let passes = if passes_off.is_empty() { "none" } else { passes_off };
        format!(
            "a program of build {build} for {set}, {threads} threads, {with} Winograd, passes off: {passes}"
        )
    };
    let Header { build, instruction_set: set, winograd, passes_off, .. } = &header;
    let found = made_for(build, set, header.threads, *winograd, passes_off);
    let (set, passes_off) = (settings.instruction_set.to_string(), settings.passes.to_string());
    let expected = made_for(BUILD, &set, threads(settings), settings.winograd, &passes_off);
    if found != expected {
        return Err(nnhal_hal::Error::failure(format!("{found}, not {expected}")).into());
    }
    let mut line = |length: u64| {
        let offset = bytes.len() - rest.len();
        take(&mut rest, offset.next_multiple_of(LINE_BYTES) - offset)?;
        take(&mut rest, size(length)?)
    };
    let mut constants = Vec::with_capacity(header.constants.len());
    for constant in header.constants {
        constants.push(match constant {
            None => None,
            Some(HeaderConstant { dimensions, length, is_kept }) => {
                let bytes = if is_kept { Some(line(length)?) } else { None };
                Some(SavedConstant { dimensions, length: size(length)?, bytes })
            }
        });
    }
    let packed = header.packed.into_iter().map(line).collect::<Result<_, EngineError>>()?;
    let subgraph = header.subgraph.into_subgraph().map_err(nnhal_hal::Error::failure)?;
    Ok(Saved { subgraph, inputs: header.inputs, constants, packed })
}

fn size(length: u64) -> Result<usize, EngineError> {
    usize::try_from(length).map_err(|_| too_short().into())
}

fn take(bytes: &mut Bytes, length: usize) -> Result<Bytes, EngineError> {
    if length > bytes.len() {
        return Err(too_short().into());
    }
    Ok(bytes.split_to(length))
}

fn too_short() -> nnhal_hal::Error {
    nnhal_hal::Error::failure("a saved program is shorter than it says")
}
