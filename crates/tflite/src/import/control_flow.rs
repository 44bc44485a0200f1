//! IF, WHILE, STABLEHLO_CASE and STABLEHLO_COMPOSITE.

use super::variables::{Passed, is_handle};
use super::{GraphImporter, Graphs, Stop};
use crate::error::Reason;
use crate::file::Operator;
use crate::file::known_lengths;
use crate::schema::{BuiltinOptions2Ref, BuiltinOptionsRef};
use nnhal_hal::{OperandId, OperandSpec, OperandType, OperationType as O};

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

    /// What the operator's subgraph computes: a choice of which both branches are that one.
    pub(super) fn composite(
        &mut self,
        operator: &Operator<'_>,
        graphs: &mut Graphs<'f, 'a>,
        depth: usize,
    ) -> Result<(), Stop> {
        let Some(BuiltinOptions2Ref::StableHloCompositeOptions(options)) =
            operator.table.builtin_options_2()?
        else {
            return Err(Reason::new("it has no options").into());
        };
        let subgraph = options.decomposition_subgraph_index()?;
        let truth = OperandSpec::new(OperandType::TensorBool8, [1]);
        let condition = self.builder.constant(truth, &[true]);
        self.run(operator, O::If, Some(condition), [subgraph; 2], 0, graphs, depth)
    }

    /// The branch that an index says, the last one for any other index.
    pub(super) fn case(
        &mut self,
        operator: &Operator<'_>,
        graphs: &mut Graphs<'f, 'a>,
        depth: usize,
    ) -> Result<(), Stop> {
        let Some(BuiltinOptions2Ref::StablehloCaseOptions(options)) =
            operator.table.builtin_options_2()?
        else {
            return Err(Reason::new("it has no options").into());
        };
        let branches = options.branch_subgraph_indices()?;
        let branches = match branches.map(|it| (it.len(), it.iter())) {
            Some((1, mut it)) => it.next().map(|only| [only; 2]),
            Some((2, mut it)) => it.next().zip(it.next()).map(|(first, last)| [first, last]),
            Some((count, _)) => {
                return Err(Reason::new(format!("it has {count} branches, expected 1 or 2")).into());
            }
            None => None,
        };
        let branches = branches.ok_or_else(|| Reason::new("it has no branches"))?;
        let index = self.input(operator, 0)?;
        let first = self.builder.constant(OperandSpec::tensor_int32([1]), &[0]);
        let truth = OperandSpec::new(OperandType::TensorBool8, [1]);
        let is_first = self.builder.operation(O::Equal, [index, first], truth);
        self.run(operator, O::If, Some(is_first), branches, 1, graphs, depth)
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
        for at in 0..operator.inputs.len() {
            let tensor = self.input_tensor(operator, at)?;
            if is_handle(self.graph, tensor) {
                continue;
            }
            let is_known = self.known(tensor)?.is_some();
            if !is_known && known_lengths(self.tensor(tensor)).contains(&None) {
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
        let indexes = subgraphs.map(|index| {
            let index = usize::try_from(index).ok().filter(|it| *it < self.file.graphs.len());
            index.ok_or_else(|| Reason::new(format!("there is no subgraph {}", subgraphs[0])))
        });
        let [first, second] = indexes;
        let indexes = [first?, second?];
        let mut arguments = Vec::with_capacity(operator.inputs.len());
        for at in first_argument..operator.inputs.len() {
            let mut argument = self.known(self.input_tensor(operator, at)?)?;
            // Of a loop's variables those keep their value that its body passes on.
            let body = &self.file.graphs[indexes[1]];
            let place = at - first_argument;
            let is_kept =
                body.inputs.get(place).is_some_and(|it| body.outputs.get(place) == Some(it));
            // A handle stands for the same variable in all rounds.
            let is_kept = is_kept || is_handle(self.graph, self.input_tensor(operator, at)?);
            if operation == O::While && !is_kept {
                argument.iter_mut().for_each(|it| it.values = None);
            }
            arguments.push(argument);
        }
        let mut inputs: Vec<OperandId> = condition.into_iter().collect();
        let mut results_of = Vec::new();
        let variables = graphs.used_by(indexes, &arguments)?;
        for (position, index) in indexes.into_iter().enumerate() {
            let is_condition = operation == O::While && position == 0;
            let passed = Passed { variables: variables.clone(), are_given_back: !is_condition };
            let referenced = graphs.reference(index, &arguments, &passed, depth)?;
            inputs.push(self.builder.subgraph(referenced.id));
            results_of.push(referenced.outputs);
        }
        for (place, output) in operator.outputs.iter().enumerate() {
            let [first, second] = [0, 1].map(|at| results_of[at].get(place).cloned().flatten());
            if operation == O::If {
                self.shapes[*output] = first.filter(|it| second.as_ref() == Some(it));
                continue;
            }
            let before = arguments.get(place).and_then(|it| it.as_ref().map(|it| &it.shape));
            if let (Some(before), Some(after)) = (before, &second)
                && before != after
            {
                let what = format!("a round makes {after:?} of variable {place}, {before:?}");
                return Err(Reason::new(format!("the HAL's WHILE keeps sizes: {what}")).into());
            }
            self.shapes[*output] = second;
        }
        for at in first_argument..operator.inputs.len() {
            if !is_handle(self.graph, self.input_tensor(operator, at)?) {
                inputs.push(self.input(operator, at)?);
            }
        }
        for variable in &variables {
            inputs.push(self.variable_now(*variable, &graphs.variables)?);
        }
        let mut results = Vec::with_capacity(operator.outputs.len());
        for (place, output) in operator.outputs.iter().enumerate() {
            if is_handle(self.graph, *output) {
                let argument = arguments.get(place).cloned().flatten();
                self.folded[*output] = argument.filter(|_| operation == O::While);
                continue;
            }
            let spec = self.spec(*output)?;
            let result = self.builder.temporary(spec);
            results.push(result);
            self.set(*output, result);
        }
        results.extend(variables.iter().filter_map(|variable| self.next_value(*variable)));
        self.builder.operation_into(operation, inputs, &results);
        Ok(())
    }
}
