//! Layer normalization, as converters write it in operations by element and means, becomes one node.
//!
//! With `m` the means of `x` along its last axis, `d = x - m`, and `f = 1 / sqrt(mean(d * d) + epsilon)`,
//! they write one of
//!
//! - `d * f`, then perhaps times a scale and plus an offset, both with an element for each column;
//! - `d * (f * scale)`, perhaps plus an offset;
//! - `x * (f * scale) + (offset - m * (f * scale))`;
//! - `x * f + (0 - m * f)`, then as the first;
//! - `x * (f * scale) + (-m * (f * scale) + offset)`, as Keras does, perhaps without scale or offset;
//!
//! and `d` once or several times, `f` as RSQRT or as a division by SQRT, and what there is one of for each row as a view.

use super::Readers;
use crate::graph::{Graph, Normalization, ValueId, Work, producers};
use nnhal_hal::FusedActivation;
use nnhal_ops::AnyOperation;
use nnhal_ops::operations::arithmetic::Operator;
use nnhal_ops::operations::elementwise::Elementwise;
use nnhal_ops::operations::reduce::Reduction;

/// Views of views that are looked through.
const MOST_VIEWS: usize = 4;

/// Readers of the means among which the one that negates them is looked for.
const MOST_READERS: usize = 16;

pub(crate) fn run(graph: &mut Graph<'_>) {
    let producers = producers(graph);
    let readers = Readers::of(graph);
    let reads = graph.reads();
    for index in 0..graph.nodes.len() {
        let mut search = Search { graph, producers: &producers, readers: &readers, found: vec![] };
        let Some((normalization, inputs)) = search.containing(index) else { continue };
        let found = search.found;
        // A factor might be one of the pattern's own values.
        let is_inside = |value: &ValueId| producers[*value].is_some_and(|it| found.contains(&it));
        if !is_closed(graph, &found, &reads) || inputs.iter().any(is_inside) {
            continue;
        }
        super::replace(graph, &found, Work::Normalization(normalization), inputs);
    }
    super::remove_absorbed(graph);
}

/// Whether no one else reads what these nodes compute, but for the last one's results.
pub(super) fn is_closed(graph: &Graph<'_>, found: &[usize], reads: &[usize]) -> bool {
    let Some((_, before)) = found.split_last() else { return false };
    let read_here = |value: ValueId| {
        let inputs = found.iter().flat_map(|node| &graph.nodes[*node].inputs);
        inputs.filter(|input| **input == value).count()
    };
    before
        .iter()
        .flat_map(|node| &graph.nodes[*node].outputs)
        .all(|output| reads[*output] == read_here(*output))
}

struct Search<'a, 'source> {
    graph: &'a Graph<'source>,
    producers: &'a [Option<usize>],
    readers: &'a Readers,
    /// Nodes of the pattern; the last one computes the result.
    found: Vec<usize>,
}

impl Search<'_, '_> {
    /// The normalization that contains this node, if it computes `f`, or `1 / f`.
    fn containing(&mut self, root: usize) -> Option<(Normalization, Vec<ValueId>)> {
        let node = &self.graph.nodes[root];
        let is_reciprocal = match &node.work {
            Work::Operation(AnyOperation::Elementwise(Elementwise::Rsqrt)) => true,
            Work::Operation(AnyOperation::Elementwise(Elementwise::Sqrt)) => false,
            _ => return None,
        };
        self.found.push(root);
        // Backwards, to what is normalized.
        let [a, b] = self.produced_by(node.inputs[0], Operator::Add)?;
        let (variance, epsilon) =
            match [a, b].map(|value| self.graph.values[value].constant_float()) {
                [Some(epsilon), None] => (b, epsilon),
                [None, Some(epsilon)] => (a, epsilon),
                _ => return None,
            };
        let square = self.mean_of(variance)?;
        let [d, other] = self.produced_by(square, Operator::Mul)?;
        let (x, mean) = self.deviation(d)?;
        if other != d && self.deviation(other)? != (x, mean) {
            return None;
        }
        if self.mean_of(mean)? != x {
            return None;
        }
        let mut normalization = Normalization { epsilon, has_scale: false, has_offset: false };
        let mut inputs = vec![x];
        // Forwards, to the result.
        let mut factor = node.outputs[0];
        let mut only_use = self.only_use(factor);
        if let Some((at, read)) = only_use.filter(|_| is_reciprocal)
            && let Some(scale) = self.other_operand(at, Operator::Mul, read, false)
            && self.is_for_columns(scale, x)
            && self.is_for_rows(read, x)
        {
            self.take(at);
            normalization.has_scale = true;
            inputs.push(scale);
            factor = self.graph.nodes[at].outputs[0];
            only_use = self.only_use(factor);
        }
        let mut result = match only_use {
            Some((at, read)) => {
                let operator = if is_reciprocal { Operator::Mul } else { Operator::Div };
                let other = self.other_operand(at, operator, read, !is_reciprocal)?;
                let fits = normalization.has_scale || self.is_for_rows(read, x);
                if !fits || self.deviation(other)? != (x, mean) {
                    return None;
                }
                self.take(at);
                self.graph.nodes[at].outputs[0]
            }
            None => {
                let offset = self.distributed(factor, x, mean)?;
                let last = self.found.last().copied()?;
                let result = self.graph.nodes[last].outputs[0];
                if let Some(offset) = offset {
                    normalization.has_offset = true;
                    inputs.push(offset);
                    return self.is_same_shape(result, x).then_some((normalization, inputs));
                }
                result
            }
        };
        if !self.is_same_shape(result, x) {
            return None;
        }
        if !normalization.has_scale
            && let Some((at, scale)) = self.scaled(result, x)
        {
            self.take(at);
            normalization.has_scale = true;
            inputs.push(scale);
            result = self.graph.nodes[at].outputs[0];
        }
        if let Some(at) = self.readers.only_reader(result)
            && let Some(offset) = self.other_operand(at, Operator::Add, result, false)
            && self.is_for_columns(offset, x)
        {
            self.take(at);
            normalization.has_offset = true;
            inputs.push(offset);
        }
        Some((normalization, inputs))
    }

    fn take(&mut self, node: usize) {
        if !self.found.contains(&node) {
            self.found.push(node);
        }
    }

    fn is_same_shape(&self, a: ValueId, b: ValueId) -> bool {
        self.graph.values[a].dimensions == self.graph.values[b].dimensions
    }

    /// The operands of a plain operation of floats.
    fn operands(&self, node: usize, operator: Operator) -> Option<[ValueId; 2]> {
        let node = &self.graph.nodes[node];
        let Work::Operation(AnyOperation::Arithmetic(arithmetic)) = &node.work else { return None };
        let is_plain = arithmetic.operator == operator
            && arithmetic.activation == FusedActivation::None
            && self.graph.values[*node.outputs.first()?].is_float();
        is_plain.then(|| [node.inputs[0], node.inputs[1]])
    }

    /// The operands of the plain operation that computes a value, which becomes a part.
    fn produced_by(&mut self, value: ValueId, operator: Operator) -> Option<[ValueId; 2]> {
        let node = self.producers[value]?;
        let operands = self.operands(node, operator)?;
        self.take(node);
        Some(operands)
    }

    /// The operand beside `value`, which is the second one if `is_second`.
    fn other_operand(
        &self,
        node: usize,
        operator: Operator,
        value: ValueId,
        is_second: bool,
    ) -> Option<ValueId> {
        match self.operands(node, operator)? {
            [a, b] if b == value && a != value => Some(a),
            [a, b] if a == value && b != value && !is_second => Some(b),
            _ => None,
        }
    }

    /// What a value is the means of, one for each row.
    fn mean_of(&mut self, value: ValueId) -> Option<ValueId> {
        let index = self.producers[self.behind_views(value)]?;
        let node = &self.graph.nodes[index];
        let Work::Operation(AnyOperation::Reduce(reduce)) = &node.work else { return None };
        let input = node.inputs[0];
        let dimensions = &self.graph.values[input].dimensions;
        let last = dimensions.len().checked_sub(1)?;
        let are_rows = reduce.axes.contains(&last)
            && reduce.axes.iter().all(|axis| *axis == last || dimensions[*axis] == 1);
        let is_mean =
            reduce.reduction == Reduction::Mean && are_rows && self.graph.values[input].is_float();
        if !is_mean {
            return None;
        }
        self.take(index);
        Some(input)
    }

    /// The `x` and `m` of `x - m`, `m` without views.
    fn deviation(&mut self, value: ValueId) -> Option<(ValueId, ValueId)> {
        let [x, mean] = self.produced_by(value, Operator::Sub)?;
        let fits = self.is_same_shape(value, x) && self.is_for_rows(mean, x);
        fits.then(|| (x, self.behind_views(mean)))
    }

    /// What a value is a view of; views become parts.
    fn behind_views(&mut self, mut value: ValueId) -> ValueId {
        for _ in 0..MOST_VIEWS {
            let Some(node) = self.producers[value] else { break };
            if !matches!(self.graph.nodes[node].work, Work::View) {
                break;
            }
            self.take(node);
            value = self.graph.nodes[node].inputs[0];
        }
        value
    }

    /// The node that alone reads a value or a view of it, which becomes a part; and what it reads.
    fn only_use(&mut self, mut value: ValueId) -> Option<(usize, ValueId)> {
        for _ in 0..=MOST_VIEWS {
            let reader = self.readers.only_reader(value)?;
            let node = &self.graph.nodes[reader];
            if !matches!(node.work, Work::View) {
                return Some((reader, value));
            }
            value = *node.outputs.first()?;
            self.take(reader);
        }
        None
    }

    /// The node that alone reads a value and multiplies it with a factor for each column.
    fn scaled(&self, value: ValueId, x: ValueId) -> Option<(usize, ValueId)> {
        let at = self.readers.only_reader(value)?;
        let scale = self.other_operand(at, Operator::Mul, value, false)?;
        self.is_for_columns(scale, x).then_some((at, scale))
    }

    /// Whether a value has an element for each column, and is not larger than `x`.
    fn is_for_columns(&self, value: ValueId, x: ValueId) -> bool {
        let (value, x) = (&self.graph.values[value], &self.graph.values[x]);
        let columns = x.dimensions.last();
        value.dimensions.last() == columns
            && columns.is_some_and(|columns| value.elements() == *columns as usize)
            && value.dimensions.len() <= x.dimensions.len()
    }

    /// Whether a value has an element for each row.
    fn is_for_rows(&self, value: ValueId, x: ValueId) -> bool {
        let [value, x] = [value, x].map(|value| &self.graph.values[value].dimensions);
        let (Some((1, rows)), Some((_, of_x))) = (value.split_last(), x.split_last()) else {
            return false;
        };
        rows == of_x
    }

    /// How many rows there are.
    fn rows(&self, x: ValueId) -> usize {
        let outer = self.graph.values[x].dimensions.split_last().map_or(&[][..], |it| it.1);
        outer.iter().fold(1, |rows: usize, length| rows.saturating_mul(*length as usize))
    }

    /// The node that multiplies a value, or a view of it, with another one, and what it reads.
    fn product(&mut self, factor: ValueId, other: ValueId) -> Option<(usize, ValueId)> {
        let readers = self.readers;
        for node in readers.all(factor).iter().copied() {
            let (node, read) = match self.graph.nodes[node].work {
                Work::View => {
                    let view = *self.graph.nodes[node].outputs.first()?;
                    let Some((reader, read)) = self.only_use(view) else { continue };
                    self.take(node);
                    (reader, read)
                }
                _ => (node, factor),
            };
            let beside = self.other_operand(node, Operator::Mul, read, false);
            if beside.is_some_and(|beside| self.is_view_of(beside, other)) {
                return Some((node, read));
            }
        }
        None
    }

    /// Whether a value is another one, or a view of it.
    fn is_view_of(&self, value: ValueId, of: ValueId) -> bool {
        let shown = |value: &ValueId| {
            let node = &self.graph.nodes[self.producers[*value]?];
            matches!(node.work, Work::View).then(|| node.inputs[0])
        };
        std::iter::successors(Some(value), shown).take(1 + MOST_VIEWS).any(|it| it == of)
    }

    /// The offset in `x * factor + (offset - m * factor)`, of which all nodes become parts; none where that is the number 0.
    fn distributed(
        &mut self,
        factor: ValueId,
        x: ValueId,
        mean: ValueId,
    ) -> Option<Option<ValueId>> {
        let (of_x, read) = self.product(factor, x)?;
        let Some((of_mean, _)) = self.product(factor, mean) else {
            return self.distributed_negated(factor, x, (of_x, mean));
        };
        let [of_x_value, of_mean_value] =
            [of_x, of_mean].map(|node| self.graph.nodes[node].outputs[0]);
        let (difference, of_mean_read) = self.only_use(of_mean_value)?;
        let offset = self.other_operand(difference, Operator::Sub, of_mean_read, true)?;
        let (sum, of_x_read) = self.only_use(of_x_value)?;
        let (also_sum, difference_read) = self.only_use(self.graph.nodes[difference].outputs[0])?;
        let other = self.other_operand(sum, Operator::Add, of_x_read, false)?;
        let is_zero = self.graph.values[offset].constant_float() == Some(0.0);
        let fits = if is_zero {
            let of_rows = [of_mean, difference].map(|node| self.graph.nodes[node].outputs[0]);
            let rows = self.rows(x);
            of_rows.iter().all(|value| self.graph.values[*value].elements() == rows)
                && self.is_for_rows(read, x)
                && self.is_for_rows(difference_read, x)
        } else {
            self.is_for_columns(offset, x)
        };
        if also_sum != sum || other != difference_read || of_x_read != of_x_value || !fits {
            return None;
        }
        for node in [of_x, of_mean, difference, sum] {
            self.take(node);
        }
        Some((!is_zero).then_some(offset))
    }

    /// The same in `x * factor + (-m * factor + offset)`, where `of_x` computes the first product; none where there is no offset.
    fn distributed_negated(
        &mut self,
        factor: ValueId,
        x: ValueId,
        (of_x, mean): (usize, ValueId),
    ) -> Option<Option<ValueId>> {
        let readers = self.readers;
        let negation = readers.all(mean).iter().copied().take(MOST_READERS).find(|node| {
            let work = &self.graph.nodes[*node].work;
            matches!(work, Work::Operation(AnyOperation::Elementwise(Elementwise::Neg)))
        })?;
        let (of_mean, _) = self.product(factor, self.graph.nodes[negation].outputs[0])?;
        let of_x_value = self.graph.nodes[of_x].outputs[0];
        let (mut sum, mut read) = self.only_use(self.graph.nodes[of_mean].outputs[0])?;
        let mut offset = None;
        let mut beside = self.other_operand(sum, Operator::Add, read, false)?;
        if beside != of_x_value && self.is_for_columns(beside, x) {
            offset = Some(beside);
            self.take(sum);
            (sum, read) = self.only_use(self.graph.nodes[sum].outputs[0])?;
            beside = self.other_operand(sum, Operator::Add, read, false)?;
        }
        if beside != of_x_value {
            return None;
        }
        for node in [of_x, negation, of_mean, sum] {
            self.take(node);
        }
        Some(offset)
    }
}
