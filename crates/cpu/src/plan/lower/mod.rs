//! From nodes to steps: which kernel does what a node asks for.

mod convolution;
mod reference;

use super::{Builder, Draft};
use crate::graph::{Node, Work};
use driver::EngineError;

/// The steps of a node. The reference kernel of its operation, where there is no faster one.
pub(crate) fn lower(builder: &mut Builder<'_, '_>, node: &Node) -> Result<Vec<Draft>, EngineError> {
    let fast = match &node.work {
        Work::View => return Ok(Vec::new()),
        Work::Convolution(convolution) => convolution::lower(builder, node, convolution),
        Work::Operation(_) | Work::FullyConnected(_) => None,
    };
    match fast {
        Some(draft) => Ok(vec![draft]),
        None => Ok(vec![reference::lower(builder, node)?]),
    }
}
