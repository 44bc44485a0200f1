//! [`Plugin`] chooses operators; [`Compiled`] is what partitions became.

use crate::context::{Context, Object};
use crate::subgraph::Subgraph;
use nnhal::ModelFile;
use nnhal::hal::{HalVersion, Support};
use nnhal_litert_common::compiled::{Failure, Outcome, Status};
use nnhal_litert_common::{Shared, select};

/// A plugin that LiteRT has made.
pub(crate) struct Plugin {
    context: Context,
    shared: Shared,
}

/// Partitions of a model as byte code: a `.tflite` file with a subgraph for each.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) byte_code: Vec<u8>,
    /// By partition: what the dispatch library knows it by, the number of its subgraph.
    pub(crate) calls: Vec<String>,
}

impl Plugin {
    pub(crate) fn new(context: Context, shared: Shared) -> Self {
        Self { context, shared }
    }

    /// Adds the operators of a subgraph that are taken to a list.
    pub(crate) fn partition(&self, subgraph: Object, chosen: Object) -> Outcome {
        self.shared.check_process()?;
        self.shared.observed(|| {
            let mut subgraph = Subgraph::read(&self.context, subgraph)?;
            subgraph.copies = self.shared.is_elsewhere();
            subgraph.check_compilable().inspect_err(|why| {
                tracing::info!("the model is left to LiteRT: {why}");
            })?;
            let plan = subgraph.plan();
            let device = self.shared.device(self.shared.threads(None))?;
            let (taken, refused) = select(&subgraph, &plan, &*device)?;
            let (taken, unreadable) = subgraph.readable(taken)?;
            for (node, why) in &refused {
                tracing::info!("operator {node} is left to LiteRT: {why}");
            }
            for node in unreadable {
                tracing::info!(
                    "operator {node} is left to LiteRT: it reads a result that LiteRT has computed before all runs"
                );
            }
            tracing::info!("{} of {} operators are taken", taken.len(), plan.len());
            for node in taken {
                self.context.push_op(chosen, subgraph.object(node)?)?;
            }
            Ok(())
        })
    }

    /// Makes byte code of the subgraphs that LiteRT has cut out, each of which is a partition.
    pub(crate) fn compile(&self, model: Object) -> Outcome<Compiled> {
        self.shared.check_process()?;
        self.shared.observed(|| {
            let byte_code = self.context.serialize(model)?;
            let compilation =
                |error: nnhal::Error| Failure::new(Status::Compilation, error.to_string());
            let file = ModelFile::open(&byte_code).map_err(compilation)?;
            let device = self.shared.device(self.shared.threads(None))?;
            let partitions = file.description().subgraphs.len();
            for partition in 0..partitions {
                let refused = |why: String| {
                    Failure::new(Status::Compilation, format!("partition {partition}: {why}"))
                };
                let model =
                    file.model(partition, &[], true).map_err(|it| refused(it.to_string()))?;
                let answers = device.supported_operations(model.hal(), HalVersion::LATEST);
                let answers = answers.map_err(|error| refused(error.to_string()))?;
                for (answer, origin) in answers.iter().zip(model.operator_origins()) {
                    if let Support::No(reason) = answer {
                        return Err(refused(format!("{origin}: {reason}")));
                    }
                }
                let mut ends = model.inputs().iter().chain(model.outputs());
                if let Some(open) = ends.find(|tensor| tensor.known_shape().is_none()) {
                    return Err(refused(format!(
                        "tensor {:?} has a shape that is known only when it is computed",
                        open.name
                    )));
                }
            }
            tracing::info!("{partitions} partitions are {} bytes", byte_code.len());
            let calls = (0..partitions).map(|partition| partition.to_string()).collect();
            Ok(Compiled { byte_code, calls })
        })
    }
}
