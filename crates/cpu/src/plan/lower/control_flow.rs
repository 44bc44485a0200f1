//! The step of an IF or a WHILE.

use crate::graph::Node;
use crate::plan::{Builder, Draft, Operand};
use std::sync::Arc;

/// The step of the control flow with this index.
pub(super) fn lower(builder: &Builder<'_, '_>, node: &Node, index: usize) -> Draft {
    Draft {
        place: node.place,
        kernel: Box::new(Arc::clone(&builder.control_flow[index])),
        inputs: node.inputs.iter().copied().map(Operand::Value).collect(),
        outputs: node.outputs.clone(),
    }
}
