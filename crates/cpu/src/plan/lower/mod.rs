//! From nodes to steps: which kernel does what a node asks for.

mod reference;

use super::{Builder, Draft};
use crate::graph::{Node, Work};
use driver::EngineError;

/// The steps of a node. The reference kernel of its operation, where there is no faster one.
pub(crate) fn lower(builder: &mut Builder<'_, '_>, node: &Node) -> Result<Vec<Draft>, EngineError> {
    let fast = match &node.work {
        Work::View => return Ok(Vec::new()),
        Work::Operation(_) | Work::Convolution(_) | Work::FullyConnected(_) => None,
    };
    match fast {
        Some(drafts) => Ok(drafts),
        None => Ok(vec![reference::lower(builder, node)?]),
    }
}
