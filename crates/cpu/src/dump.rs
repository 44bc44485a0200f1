//! [`dump_passes`]: what each pass makes of a model, for people.

use crate::graph::{Graph, NoGraph, Sources};
use crate::passes;
use crate::settings::Settings;
use nnhal_driver::{Budget, EngineError};
use nnhal_ops::{Shape, ValidModel};

/// A graph as text and as DOT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphDump {
    /// A number in the order of passes, and the name of the pass that left the graph so: `05-gates`. The first
    /// one is `00-model`.
    pub name: String,
    /// A line for each node.
    pub text: String,
    /// For Graphviz.
    pub dot: String,
}

/// The graph of a model, and what each pass that runs makes of it.
///
/// # Errors
/// Lengths are open, or depend on values: then there is no graph of the whole model. And those of
/// [`Engine::compile`](nnhal_driver::Engine::compile).
pub fn dump_passes(model: &ValidModel, settings: &Settings) -> Result<Vec<GraphDump>, EngineError> {
    let budget = Budget::unlimited();
    let ledger = budget.memory().model(settings.memory_limit);
    let no_graph = || {
        let what = "there is no graph of the whole model: lengths are open, or depend on values";
        EngineError::from(nnhal_hal::Error::invalid(what))
    };
    let main = model.main();
    let lengths = |operand: &u32| Shape::declared(&main.operands[*operand as usize]).to_known();
    let inputs: Option<Vec<_>> = main.inputs.iter().map(lengths).collect();
    let sources = Sources::of_model(model, &ledger)?;
    let graph = Graph::build(&sources, &inputs.ok_or_else(no_graph)?, &ledger, &budget);
    let mut graph = graph.map_err(|error| match error {
        NoGraph::NotStatic => no_graph(),
        NoGraph::Error(error) => error,
    })?;
    let dump = |number: usize, name: &str, graph: &Graph<'_>| GraphDump {
        name: format!("{number:02}-{name}"),
        text: graph.text(),
        dot: graph.dot(),
    };
    let mut dumps = vec![dump(0, "model", &graph)];
    let processor = (settings.instruction_set, settings.threads);
    passes::run(&mut graph, settings.passes, processor, &budget, |number, pass, graph| {
        dumps.push(dump(number, pass.name, graph));
    })?;
    Ok(dumps)
}
