//! [`Origins`]: what a plan was made of.

use crate::graph::{Graph, Origin};
use nnhal_driver::{Charge, EngineError, Ledger, MemoryUse};
use nnhal_kernels::Packed;

/// What a plan was made of, besides the subgraph.
#[derive(Debug)]
pub(crate) struct Origins {
    /// By operand; `None` if it is no constant.
    pub(crate) constants: Vec<Option<KeptConstant>>,
    /// By node of the graph.
    pub(crate) packed: Vec<Vec<Packed>>,
    /// Counts the bytes of `constants`.
    pub(super) _charge: Charge,
}

/// A constant, and the bytes of it that were wanted for anything but packing.
#[derive(Debug)]
pub(crate) struct KeptConstant {
    pub(crate) dimensions: Vec<u32>,
    pub(crate) length: usize,
    pub(crate) bytes: KeptBytes,
}

/// Where the bytes of a constant are kept.
#[derive(Debug)]
pub(crate) enum KeptBytes {
    /// Nowhere: they were packed.
    Packed,
    /// Here.
    Here(Vec<u8>),
    /// In the plan, among its constants.
    InPlan(usize),
}

/// Of the values of a graph of which the first are this many operands. `places` tells where the plan has their constants, as
/// models have them and as plans do. The charge counts the bytes that are kept.
///
/// # Errors
/// If bytes of any constant could not be had, which are zeros in the plan.
pub(super) fn of_constants(
    graph: Graph<'_>,
    operands: usize,
    places: &[[Option<usize>; 2]],
    ledger: &Ledger,
) -> Result<(Vec<Option<KeptConstant>>, Charge), EngineError> {
    let mut charge = ledger.charge(0, MemoryUse::Constants)?;
    let mut values = graph.values;
    for value in values.split_off(operands.min(values.len())) {
        if let Origin::Constant(constant) = value.origin
            && let Some(failure) = constant.failure()
        {
            return Err(failure);
        }
    }
    let mut kept = Vec::with_capacity(operands);
    for (value, [in_plan, _]) in values.into_iter().zip(places) {
        let Origin::Constant(constant) = value.origin else {
            kept.push(None);
            continue;
        };
        let bytes = match (in_plan, constant.kept()) {
            (Some(index), _) => KeptBytes::InPlan(*index),
            (None, Some(bytes)) => {
                charge.grow(bytes.len() as u64, MemoryUse::Constants)?;
                KeptBytes::Here(bytes.to_vec())
            }
            (None, None) => KeptBytes::Packed,
        };
        let length = constant.length();
        if let Some(failure) = constant.failure() {
            return Err(failure);
        }
        kept.push(Some(KeptConstant { dimensions: value.dimensions, length, bytes }));
    }
    Ok((kept, charge))
}
