//! Operations that change nothing but lengths become views.

use crate::graph::{Graph, Work};
use ops::AnyOperation;

pub(crate) fn run(graph: &mut Graph<'_>) {
    for node in &mut graph.nodes {
        if let Work::Operation(
            AnyOperation::Reshape(_) | AnyOperation::Squeeze(_) | AnyOperation::ExpandDims(_),
        ) = &node.work
        {
            // The other inputs are lengths and axes, which are settled.
            node.work = Work::View;
            node.inputs.truncate(1);
        }
    }
}
