//! IF, WHILE, STABLEHLO_CASE and STABLEHLO_COMPOSITE.
//!
//! What always runs one subgraph, once, becomes that subgraph's operators (see [`GraphImporter::inline`]): a composite,
//! and a choice whose outcome is known at import.

use super::array::Array;
use super::tensor::Element;
use super::variables::{Passed, is_handle};
use super::{BYTES_OF_A_PART, GraphImporter, Graphs, Imported, Stop};
use crate::error::Reason;
use crate::file::Operator;
use crate::file::known_lengths;
use nnhal_hal::builder::SubgraphId;
use nnhal_hal::{
    ModelBuilder, OperandId, OperandSpec, OperandType, OperationType as O, SubgraphBuilder,
};

impl<'f, 'a> GraphImporter<'f, 'a> {
    pub(super) fn if_operator(
        &mut self,
        operator: &Operator<'_>,
        graphs: &mut Graphs<'f, 'a>,
        depth: usize,
    ) -> Result<(), Stop> {
        let options = options!(operator, IfOptions);
        let branches = [options.then_subgraph_index()?, options.else_subgraph_index()?];
        let tensor = self.input_tensor(operator, 0)?;
        if self.element(tensor)? == Element::Bool
            && let Some(truth) = self.known_integer(tensor)?
        {
            // What the other branch has that the HAL has not does not matter: it never runs.
            let [then, otherwise] = branches.map(|index| self.subgraph_at(index));
            let (then, otherwise) = (then?, otherwise?);
            let taken = if truth == 0 { otherwise } else { then };
            return self.inline(operator, taken, 1, graphs, depth);
        }
        let condition = self.input(operator, 0)?;
        self.run(operator, O::If, Some(condition), branches, 1, graphs, depth)
    }

    /// What the operator's subgraph computes.
    pub(super) fn composite(
        &mut self,
        operator: &Operator<'_>,
        graphs: &mut Graphs<'f, 'a>,
        depth: usize,
    ) -> Result<(), Stop> {
        let options = options!(operator, BuiltinOptions2::StableHloCompositeOptions);
        let subgraph = self.subgraph_at(options.decomposition_subgraph_index()?)?;
        self.inline(operator, subgraph, 0, graphs, depth)
    }

    /// The branch that an index says, the last one for any other index.
    pub(super) fn case(
        &mut self,
        operator: &Operator<'_>,
        graphs: &mut Graphs<'f, 'a>,
        depth: usize,
    ) -> Result<(), Stop> {
        let options = options!(operator, BuiltinOptions2::StablehloCaseOptions);
        let branches = options.branch_subgraph_indices()?;
        let count = branches.map_or(0, |it| it.len());
        self.file.allow(count.saturating_mul(BYTES_OF_A_PART))?;
        let branches: Vec<i32> = branches.into_iter().flatten().collect();
        let Some(last) = branches.len().checked_sub(1) else {
            return Err(Reason::new("it has no branches").into());
        };
        let known = self.known_integer(self.input_tensor(operator, 0)?)?;
        if last == 0 || known.is_some() {
            let subgraphs = branches.iter().map(|index| self.subgraph_at(*index));
            let subgraphs = subgraphs.collect::<Imported<Vec<_>>>()?;
            let known = known.and_then(|index| usize::try_from(index).ok());
            let taken = known.and_then(|index| subgraphs.get(index)).unwrap_or(&subgraphs[last]);
            return self.inline(operator, *taken, 1, graphs, depth);
        }
        let index = self.input(operator, 0)?;
        let branches = match branches[..] {
            [first, last] => [first, last],
            _ => return self.choose(operator, index, &branches, graphs, depth),
        };
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
        let options = options!(operator, WhileOptions);
        let parts = [options.cond_subgraph_index()?, options.body_subgraph_index()?];
        let body = self.subgraph_at(parts[1])?;
        self.settle_lists(operator, body, graphs, depth)?;
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

    /// Chooses among any number of branches by halving them: each half is a subgraph that takes the index too.
    fn choose(
        &mut self,
        operator: &Operator<'_>,
        index: OperandId,
        branches: &[i32],
        graphs: &mut Graphs<'f, 'a>,
        depth: usize,
    ) -> Result<(), Stop> {
        let indexes = branches.iter().map(|index| self.subgraph_at(*index));
        let indexes = indexes.collect::<Imported<Vec<_>>>()?;
        let mut arguments = Vec::with_capacity(operator.inputs.len());
        for at in 1..operator.inputs.len() {
            arguments.push(self.known(self.input_tensor(operator, at)?)?);
        }
        let variables = graphs.used_by(&indexes, &arguments)?;
        let of_index = OperandSpec::tensor_int32([1]);
        let index = self.reshape(index, of_index.clone())?;
        let passed = Passed {
            variables: variables.clone(),
            are_given_back: true,
            are_indexed: true,
            lengths: Vec::new(),
            lists: self.lists_of(operator, 1),
        };
        let mut referenced = Vec::with_capacity(indexes.len());
        for subgraph in indexes {
            referenced.push(graphs.reference(subgraph, &arguments, &passed, depth)?);
        }
        let mut dimensions = Vec::with_capacity(operator.outputs.len());
        for (place, output) in operator.outputs.iter().enumerate() {
            let shapes: Vec<_> =
                referenced.iter().map(|of| of.outputs.get(place).cloned().flatten()).collect();
            let is_common = shapes.iter().all(|shape| *shape == shapes[0]);
            dimensions.push(in_common(&shapes));
            self.shapes[*output] = shapes[0].clone().filter(|_| is_common);
            self.lists[*output] = referenced[0].lists.get(place).copied().flatten();
        }
        // An index that no branch has is the last one's.
        let last =
            i32::try_from(branches.len() - 1).map_err(|_| Reason::new("too many branches"))?;
        let truth = OperandSpec::tensor_bool8([1]);
        let [zero, last] = [0, last].map(|it| self.integer_vector(&[it]));
        let is_negative = self.builder.operation(O::Less, [index, zero], truth);
        let index = self.builder.operation(O::Select, [is_negative, last, index], of_index);

        let mut inputs = vec![index];
        inputs.extend(self.arguments_of(operator, 1, &variables, graphs)?);
        let results = self.results_of(operator, O::If, &arguments, &variables, &dimensions)?;
        let levels = Levels {
            inputs: inputs.iter().map(|it| self.builder.spec(*it)).collect(),
            outputs: results.iter().map(|it| self.builder.spec(*it)).collect(),
            branches: referenced.iter().map(|it| it.id).collect(),
        };
        let middle = levels.branches.len() / 2;
        let halves = [(0, middle), (middle, levels.branches.len())];
        let halves = halves.map(|(from, to)| levels.chosen(from, to, &mut graphs.model));
        let truth = OperandSpec::tensor_bool8([1]);
        let limit = self.integer_vector(&[bound(middle)]);
        let is_below = self.builder.operation(O::Less, [inputs[0], limit], truth);
        let mut all = vec![is_below];
        all.extend(halves.map(|half| self.builder.subgraph(half)));
        all.extend(inputs);
        self.builder.operation_into(O::If, all, &results);
        Ok(())
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
        let [first, second] = subgraphs.map(|index| self.subgraph_at(index));
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
        let variables = graphs.used_by(&indexes, &arguments)?;
        for (position, index) in indexes.into_iter().enumerate() {
            let is_condition = operation == O::While && position == 0;
            let are_given_back = !is_condition;
            let is_body = operation == O::While && position == 1;
            let lengths = arguments.iter().filter(|_| is_body);
            let lengths = lengths.map(|it| Some(it.as_ref()?.shape.clone())).collect();
            let variables = variables.clone();
            let lists = self.lists_of(operator, first_argument);
            let passed = Passed { variables, are_given_back, are_indexed: false, lengths, lists };
            let referenced = graphs.reference(index, &arguments, &passed, depth)?;
            inputs.push(self.builder.subgraph(referenced.id));
            results_of.push(referenced.outputs);
            for (output, list) in operator.outputs.iter().zip(referenced.lists) {
                self.lists[*output] = list.filter(|_| !is_condition);
            }
        }
        let mut dimensions = Vec::with_capacity(operator.outputs.len());
        for (place, output) in operator.outputs.iter().enumerate() {
            let [first, second] = [0, 1].map(|at| results_of[at].get(place).cloned().flatten());
            if operation == O::If {
                dimensions.push(in_common(&[first.clone(), second.clone()]));
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
            // Where the body's is not known it is checked by each run.
            self.shapes[*output] = second.or_else(|| before.cloned());
        }
        inputs.extend(self.arguments_of(operator, first_argument, &variables, graphs)?);
        let results = self.results_of(operator, operation, &arguments, &variables, &dimensions)?;
        self.builder.operation_into(operation, inputs, &results);
        Ok(())
    }

    /// The subgraph of an index in the file.
    fn subgraph_at(&self, index: i32) -> Imported<usize> {
        let found = usize::try_from(index).ok().filter(|it| *it < self.file.graphs.len());
        found.ok_or_else(|| Reason::new(format!("there is no subgraph {index}")))
    }

    /// The only element of a tensor, if it is known before the model runs.
    fn known_integer(&self, tensor: usize) -> Imported<Option<i64>> {
        Ok(match self.known(tensor)?.as_ref().and_then(Array::integers) {
            Some([one]) => Some(*one),
            _ => None,
        })
    }

    /// The operands that a subgraph takes: the operator's inputs that are no handles, and the variables.
    fn arguments_of(
        &mut self,
        operator: &Operator<'_>,
        first: usize,
        variables: &[usize],
        graphs: &Graphs<'f, 'a>,
    ) -> Imported<Vec<OperandId>> {
        let mut inputs = Vec::with_capacity(operator.inputs.len() + variables.len());
        for at in first..operator.inputs.len() {
            if !is_handle(self.graph, self.input_tensor(operator, at)?) {
                inputs.push(self.input(operator, at)?);
            }
        }
        for variable in variables {
            inputs.push(self.variable_now(*variable, &graphs.variables)?);
        }
        Ok(inputs)
    }

    /// New operands for what a subgraph gives: the operator's outputs that are no handles, and the variables. An output has
    /// these dimensions where there are any, and else those that the file says.
    fn results_of(
        &mut self,
        operator: &Operator<'_>,
        operation: O,
        arguments: &[Option<Array>],
        variables: &[usize],
        dimensions: &[Option<Vec<u32>>],
    ) -> Imported<Vec<OperandId>> {
        let mut results = Vec::with_capacity(operator.outputs.len() + variables.len());
        for (place, output) in operator.outputs.iter().enumerate() {
            if is_handle(self.graph, *output) {
                let argument = arguments.get(place).cloned().flatten();
                self.folded[*output] = argument.filter(|_| operation == O::While);
                continue;
            }
            let mut spec = self.spec(*output)?;
            if let Some(Some(dimensions)) = dimensions.get(place) {
                spec.dimensions.clone_from(dimensions);
            }
            let result = self.builder.temporary(spec);
            results.push(result);
            self.set(*output, result);
        }
        results.extend(variables.iter().filter_map(|variable| self.next_value(*variable)));
        Ok(results)
    }
}

/// The dimensions that results of branches have in common: a length is not known where theirs differ, and none is where
/// their ranks do. `None` if their shapes are not all known, or all the same.
fn in_common(shapes: &[Option<Vec<u32>>]) -> Option<Vec<u32>> {
    let shapes: Vec<&Vec<u32>> = shapes.iter().map(Option::as_ref).collect::<Option<_>>()?;
    let (first, others) = shapes.split_first()?;
    if others.iter().all(|shape| shape == first) {
        return None;
    }
    if others.iter().any(|shape| shape.len() != first.len()) {
        return Some(Vec::new());
    }
    let is_common = |axis: usize| others.iter().all(|shape| shape[axis] == first[axis]);
    Some(
        first
            .iter()
            .enumerate()
            .map(|(at, length)| if is_common(at) { *length } else { 0 })
            .collect(),
    )
}

/// The subgraphs of a choice among many branches.
struct Levels {
    /// Of each subgraph, the index first.
    inputs: Vec<OperandSpec>,
    outputs: Vec<OperandSpec>,
    branches: Vec<SubgraphId>,
}

impl Levels {
    /// A subgraph that runs one of the branches of a range: that of the index, which is not below the range.
    fn chosen(&self, from: usize, to: usize, model: &mut ModelBuilder) -> SubgraphId {
        if to - from == 1 {
            return self.branches[from];
        }
        let middle = from.midpoint(to);
        let halves = [(from, middle), (middle, to)];
        let halves = halves.map(|(from, to)| self.chosen(from, to, model));
        let mut level = SubgraphBuilder::new();
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for (at, spec) in self.inputs.iter().enumerate() {
            inputs.push(level.input(format!("argument {at}"), spec.clone()));
        }
        let limit = level.constant(OperandSpec::tensor_int32([1]), &[bound(middle)]);
        let truth = OperandSpec::tensor_bool8([1]);
        let is_below = level.operation(O::Less, [inputs[0], limit], truth);
        let mut all = vec![is_below];
        all.extend(halves.map(|half| level.subgraph(half)));
        all.extend(inputs);
        let results: Vec<OperandId> =
            self.outputs.iter().map(|spec| level.temporary(spec.clone())).collect();
        level.operation_into(O::If, all, &results);
        results.into_iter().for_each(|result| level.output(result));
        model.reference(level)
    }
}

/// The first index of a later half. There are fewer branches than 31 bits count.
fn bound(middle: usize) -> i32 {
    i32::try_from(middle).unwrap_or(i32::MAX)
}
