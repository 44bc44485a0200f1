//! The operators of another subgraph in the place of the operator that runs it.
//!
//! A subgraph that IF or WHILE runs is one of the model. Where the import knows which subgraph is run, and that it is
//! run once, its operators go straight into the graph around it: only there can an engine fuse them with their
//! neighbours, and a model without IF can be kept compiled. Nothing has to be shared for that: where a subgraph is run
//! from several places, each has its own copy, with the shapes of that place. How much that may become is bounded by
//! the size of the file, as everything that the import makes.

use super::array::Array;
use super::variables::{is_handle, shown};
use super::{GraphImporter, Graphs, Imported, STATE_ELSEWHERE, Stop, infer};
use crate::error::{ImportError, Reason};
use crate::file::{Operator, Tensor};
use nnhal_hal::{OperandId, OperandSpec};
use std::mem;

impl<'f, 'a> GraphImporter<'f, 'a> {
    /// Imports the operators of a subgraph in the place of an operator that runs it. The operator's inputs from
    /// `first` on are the subgraph's, and its outputs the subgraph's.
    ///
    /// The subgraph has an importer of its own, for it has tensors of its own. That one starts with what is known of the
    /// arguments here, and adds to the operations and variables of this one.
    pub(super) fn inline(
        &mut self,
        operator: &Operator<'_>,
        subgraph: usize,
        first: usize,
        graphs: &mut Graphs<'f, 'a>,
        depth: usize,
    ) -> Result<(), Stop> {
        let malformed = |Reason(what)| {
            let place = format!("subgraph {subgraph}");
            Stop::Import(ImportError::Malformed { place, what })
        };
        if graphs.is_running[subgraph] {
            return Err(Reason::new("subgraphs refer to each other").into());
        }
        let mut inner = graphs.importer_of(subgraph, depth + 1).map_err(Stop::Import)?;
        if !inner.state_tensors().is_empty() {
            return Err(malformed(Reason::new(STATE_ELSEWHERE)));
        }
        inner.is_in_main = self.is_in_main;
        let before = self.builder.operation_count();
        self.give_arguments(operator, subgraph, first, &mut inner)?;
        infer::operations(&mut self.builder, before)?;
        let operands = self.operand_count();

        self.exchange(&mut inner);
        graphs.is_running[subgraph] = true;
        let outcome = graphs.translate(&mut inner, subgraph, depth + 1);
        graphs.is_running[subgraph] = false;
        let outcome = outcome.map_err(Stop::Import);
        let outcome = outcome.and_then(|()| inner.compute_outputs().map_err(malformed));
        self.exchange(&mut inner);
        // Each of its operators has been checked, and those that failed are reported.
        self.concluded = self.builder.operation_count();
        outcome?;
        Ok(self.take_results(operator, subgraph, &inner, operands)?)
    }

    fn operand_count(&self) -> usize {
        self.builder.subgraph_so_far().operands.len()
    }

    /// Hands what is being built to another importer, or takes it back.
    fn exchange(&mut self, other: &mut Self) {
        mem::swap(&mut self.builder, &mut other.builder);
        mem::swap(&mut self.followed, &mut other.followed);
        mem::swap(&mut self.kept_variables, &mut other.kept_variables);
    }

    /// Says what the inputs of a subgraph are: operands of this one, and what is known of them.
    fn give_arguments(
        &mut self,
        operator: &Operator<'_>,
        subgraph: usize,
        first: usize,
        inner: &mut Self,
    ) -> Imported {
        let graph = inner.graph;
        let found = [operator.inputs.len().saturating_sub(first), operator.outputs.len()];
        let expected = [graph.inputs.len(), graph.outputs.len()];
        if found != expected {
            let ([inputs, outputs], [takes, gives]) = (found, expected);
            return Err(Reason::new(format!(
                "it gives {inputs} arguments and wants {outputs} results, subgraph {subgraph} takes {takes} and gives \
                 {gives}"
            )));
        }
        let mut is_given = vec![false; graph.tensors.len()];
        for (place, input) in graph.inputs.iter().enumerate() {
            let tensor = self.input_tensor(operator, first + place)?;
            if mem::replace(&mut is_given[*input], true) {
                let what = format!("tensor {input} of subgraph {subgraph} is an input twice");
                return Err(Reason::new(what));
            }
            inner.buffers[*input] = 0;
            let known = self.known(tensor)?;
            let shape = known.as_ref().map(|it| &it.shape);
            if shape != Some(&graph.tensors[*input].shape) {
                // What the file says of the subgraph's tensors holds for other arguments.
                inner.is_dynamic = true;
            }
            inner.is_input[*input] = shape.is_some();
            inner.is_assumed[*input] = self.is_assumed[tensor];
            inner.shapes[*input] = shape.cloned();
            inner.lists[*input] = self.lists[tensor];
            let values = known.filter(|it| it.values.is_some());
            if is_handle(self.graph, tensor) && is_handle(graph, *input) {
                inner.folded[*input] = values;
                continue;
            }
            if self.is_constant(tensor)
                && is_stored_alike(self.tensor(tensor), inner.tensor(*input))
            {
                // Some operators want constants, and read them as it suits them.
                inner.buffers[*input] = self.buffers[tensor];
                inner.operands[*input] = self.operands[tensor];
                continue;
            }
            // What was computed at import is made a constant where it is used, if it is.
            let is_folded = values.is_some() && !self.is_constant(tensor);
            let operand = match self.operands[tensor] {
                None if is_folded => None,
                _ => Some(self.flat_operand(tensor)?),
            };
            let found = match operand {
                Some(operand) => self.builder.spec(operand),
                None => self.spec_with(tensor, Vec::new())?,
            };
            let expected = inner.spec_with(*input, found.dimensions.clone())?;
            if found != expected && !self.is_assumed[tensor] {
                let what = format!("argument {place}");
                let of = format!("input {place} of subgraph {subgraph}");
                return Err(differ(&what, &found, &of, &expected));
            }
            inner.folded[*input] = values;
            inner.operands[*input] = operand;
            inner.is_flat[*input] = self.is_flat[tensor];
        }
        Ok(())
    }

    /// Makes the operands of outputs that no operator computes, and finds which values of them are known.
    fn compute_outputs(&mut self) -> Imported {
        let before = self.builder.operation_count();
        for output in &self.graph.outputs {
            let values = self.known(*output)?.filter(|it: &Array| it.values.is_some());
            if self.folded[*output].is_none() && !is_handle(self.graph, *output) {
                self.flat_operand(*output)?;
            }
            self.folded[*output] = values;
        }
        infer::operations(&mut self.builder, before)
    }

    /// The operator's outputs are those of a subgraph. Operands from `operands` on are new in it.
    fn take_results(
        &mut self,
        operator: &Operator<'_>,
        subgraph: usize,
        inner: &Self,
        operands: usize,
    ) -> Imported {
        for (place, (output, result)) in
            operator.outputs.iter().zip(&inner.graph.outputs).enumerate()
        {
            let operand = inner.operands[*result];
            self.lists[*output] = inner.lists[*result];
            if !is_handle(self.graph, *output) || !is_handle(inner.graph, *result) {
                let found = match operand {
                    Some(operand) => self.builder.spec(operand),
                    None => inner.spec_with(*result, Vec::new())?,
                };
                let expected = self.spec_with(*output, found.dimensions.clone())?;
                if found != expected && !inner.is_assumed[*result] {
                    let of = format!("output {place} of subgraph {subgraph}");
                    return Err(differ(&of, &found, &format!("result {place}"), &expected));
                }
            }
            self.shapes[*output].clone_from(&inner.shapes[*result]);
            self.folded[*output].clone_from(&inner.folded[*result]);
            self.is_flat[*output] = inner.is_flat[*result];
            self.is_assumed[*output] |= inner.is_assumed[*result];
            self.operands[*output] = operand;
            // An argument that comes back keeps its name.
            let is_new = |operand: &OperandId| operand.index() as usize >= operands;
            if let Some(operand) = operand.filter(is_new) {
                self.set(*output, operand);
            }
        }
        Ok(())
    }
}

/// Whether the bytes of one constant are the other's.
fn is_stored_alike(a: &Tensor<'_>, b: &Tensor<'_>) -> bool {
    let is_plain = |it: &Tensor<'_>| {
        it.sparsity.is_none()
            && it.blocks.is_none()
            && it.other_quantization.is_none()
            && !it.is_variable
    };
    let is_same = a.type_code == b.type_code && a.shape == b.shape;
    is_same && is_plain(a) && is_plain(b) && a.quantization == b.quantization
}

fn differ(what: &str, found: &OperandSpec, of: &str, expected: &OperandSpec) -> Reason {
    let (found, expected) = (shown(found), shown(expected));
    let how = if found == expected { " with other scales by channel" } else { "" };
    Reason::new(format!("{what} is {found}, {of} is {expected}{how}"))
}
