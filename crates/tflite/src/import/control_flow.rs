//! IF and WHILE.

use super::tensor::known_lengths;
use super::{GraphImporter, Graphs, Stop};
use crate::error::Reason;
use crate::file::Operator;
use crate::schema::BuiltinOptionsRef;
use nnhal_hal::{OperandId, OperationType as O};

impl<'f, 'a> GraphImporter<'f, 'a> {
    pub(super) fn if_operator(
        &mut self,
        operator: &Operator<'_>,
        graphs: &mut Graphs<'f, 'a>,
        depth: usize,
    ) -> Result<(), Stop> {
        let Some(BuiltinOptionsRef::IfOptions(options)) = operator.table.builtin_options()? else {
            return Err(Reason::new("it has no options").into());
        };
        let branches = [options.then_subgraph_index()?, options.else_subgraph_index()?];
        let condition = self.input(operator, 0)?;
        self.run(operator, O::If, Some(condition), branches, 1, graphs, depth)
    }

    pub(super) fn while_operator(
        &mut self,
        operator: &Operator<'_>,
        graphs: &mut Graphs<'f, 'a>,
        depth: usize,
    ) -> Result<(), Stop> {
        let Some(BuiltinOptionsRef::WhileOptions(options)) = operator.table.builtin_options()?
        else {
            return Err(Reason::new("it has no options").into());
        };
        let parts = [options.cond_subgraph_index()?, options.body_subgraph_index()?];
        for graph in parts.iter().filter_map(|index| usize::try_from(*index).ok()) {
            let Some(graph) = self.file.graphs.get(graph) else { continue };
            let mut borders = graph.inputs.iter().chain(&graph.outputs);
            if borders.any(|tensor| known_lengths(&graph.tensors[*tensor]).contains(&None)) {
                return Err(Reason::new("the HAL's WHILE wants every size known").into());
            }
        }
        self.run(operator, O::While, None, parts, 0, graphs, depth)
    }

    #[allow(clippy::too_many_arguments)] // The two callers differ in all of them.
    fn run(
        &mut self,
        operator: &Operator<'_>,
        operation: O,
        condition: Option<OperandId>,
        subgraphs: [i32; 2],
        first_argument: usize,
        graphs: &mut Graphs<'f, 'a>,
        depth: usize,
    ) -> Result<(), Stop> {
        let mut inputs: Vec<OperandId> = condition.into_iter().collect();
        for index in subgraphs {
            let index = usize::try_from(index)
                .map_err(|_| Reason::new(format!("there is no subgraph {index}")))?;
            let id = graphs.reference(index, depth)?;
            inputs.push(self.builder.subgraph(id));
        }
        for at in first_argument..operator.inputs.len() {
            inputs.push(self.input(operator, at)?);
        }
        let mut results = Vec::with_capacity(operator.outputs.len());
        for output in &operator.outputs {
            let spec = self.spec(*output)?;
            results.push(self.builder.temporary(spec));
        }
        self.builder.operation_into(operation, inputs, &results);
        for (output, result) in operator.outputs.iter().zip(results) {
            self.set(*output, result);
        }
        Ok(())
    }
}
