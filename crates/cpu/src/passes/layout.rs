//! Operations on NCHW images become the same on NHWC images between two TRANSPOSEs, of which as many
//! disappear as can: what is computed of a result element by element, or along single axes, is
//! computed in NHWC too, and an image is only brought back to NCHW when somebody wants it so. The TRANSPOSEs
//! that a model has itself are treated likewise, if fewer elements are moved then.

use super::channels_last;
use crate::graph::{Constant, Graph, Node, Origin, Value, ValueId, Work, parts};
use nnhal_driver::{Budget, EngineError, MemoryUse, OperationPlace};
use nnhal_hal::Operand;
use nnhal_ops::AnyOperation;
use nnhal_ops::facts::NamedAxes;
use nnhal_ops::operations::Transpose;
use nnhal_ops::rules::layout::Layout;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Where axes of NHWC are in NCHW, and the other way round.
const OF_NHWC: [usize; 4] = [0, 2, 3, 1];
const OF_NCHW: [usize; 4] = [0, 3, 1, 2];

pub(crate) fn run(graph: &mut Graph<'_>, budget: &Budget) -> Result<(), EngineError> {
    let is_nchw = |node: &Node| match &node.work {
        Work::Operation(operation) => image_operation(operation).is_some(),
        _ => false,
    };
    let is_turned = |node: &Node| order(node) == Some(OF_NCHW);
    let [has_nchw, has_turned] = [
        graph.nodes.iter().any(is_nchw),
        graph.nodes.iter().any(is_turned)
            && graph.nodes.iter().any(|it| order(it) == Some(OF_NHWC)),
    ];
    if !has_nchw && !has_turned {
        return Ok(());
    }
    let (nodes, values) = (has_turned.then(|| graph.nodes.clone()), graph.values.len());
    rewrite(graph, budget, false)?;
    if let Some(nodes) = nodes {
        let moved = moved_elements(graph);
        let nodes = std::mem::replace(&mut graph.nodes, nodes);
        let added = graph.values.split_off(values);
        rewrite(graph, budget, true)?;
        if moved_elements(graph) >= moved {
            graph.nodes = nodes;
            graph.values.truncate(values);
            graph.values.extend(added);
        }
    }
    Ok(())
}

/// `turns`: whether the images that a model transposes itself are computed in NHWC too.
fn rewrite(graph: &mut Graph<'_>, budget: &Budget, turns: bool) -> Result<(), EngineError> {
    let nodes = std::mem::take(&mut graph.nodes);
    let (nhwc, pending, same) = (HashMap::new(), HashMap::new(), HashMap::new());
    let given_out = graph.outputs.iter().copied().collect();
    let mut rewriting = Rewriting { graph, nhwc, pending, same, given_out };
    for mut node in nodes {
        budget.check()?;
        for input in &mut node.inputs {
            *input = rewriting.same.get(input).copied().unwrap_or(*input);
        }
        if turns && rewriting.turned(&node) {
            continue;
        }
        match rewriting.rewritten(&node) {
            Some(work) => rewriting.push_in_nhwc(node, work)?,
            None => rewriting.push(node),
        }
    }
    for output in rewriting.graph.outputs.clone() {
        rewriting.bring_back(output);
    }
    Ok(())
}

/// The order of axes of a TRANSPOSE of an image.
fn order(node: &Node) -> Option<[usize; 4]> {
    match &node.work {
        Work::Operation(AnyOperation::Transpose(it)) => it.permutation.as_slice().try_into().ok(),
        _ => None,
    }
}

/// Elements of all TRANSPOSEs together.
fn moved_elements(graph: &Graph<'_>) -> usize {
    let is_moved = |node: &&Node| matches!(node.work, Work::Operation(AnyOperation::Transpose(_)));
    let all = graph.nodes.iter().filter(is_moved);
    all.map(|node| graph.values[node.outputs[0]].elements()).fold(0, usize::saturating_add)
}

/// A graph on its way.
struct Rewriting<'g, 'source> {
    graph: &'g mut Graph<'source>,
    /// By value in NCHW, the same in NHWC.
    nhwc: HashMap<ValueId, ValueId>,
    /// Values that are only there in NHWC so far, with the operation that computes them.
    pending: HashMap<ValueId, OperationPlace>,
    /// Values that are the same as others, which are read instead.
    same: HashMap<ValueId, ValueId>,
    given_out: HashSet<ValueId>,
}

/// A node in NHWC.
struct InNhwc {
    work: Work,
    /// How many of the first inputs are images; the rest stays as it is.
    images: usize,
    /// Whether the outputs are images, or the same in either layout.
    are_outputs_images: bool,
}

impl<'source> Rewriting<'_, 'source> {
    /// Whether a node only brings an image to the other layout, which needs nothing to be done, or is done once it must.
    fn turned(&mut self, node: &Node) -> bool {
        let (Some(order), [input, output]) = (order(node), [node.inputs[0], node.outputs[0]])
        else {
            return false;
        };
        match self.nhwc.get(&input).copied() {
            Some(image) if order == OF_NHWC => {
                self.same.insert(output, image);
                if self.given_out.contains(&output) {
                    let (inputs, outputs) = (vec![image], vec![output]);
                    let (place, work) = (node.place, Work::View);
                    self.graph.nodes.push(Node { place, work, inputs, outputs });
                }
                true
            }
            None if order == OF_NCHW => {
                self.nhwc.insert(output, input);
                self.pending.insert(output, node.place);
                true
            }
            _ => false,
        }
    }

    /// What a node does in NHWC, if it shall.
    fn rewritten(&self, node: &Node) -> Option<InNhwc> {
        let Work::Operation(operation) = &node.work else { return None };
        let in_nhwc = |operation, images, are_outputs_images| {
            Some(InNhwc { work: Work::Operation(operation), images, are_outputs_images })
        };
        if let Some(operation) = image_operation(operation) {
            return in_nhwc(operation, 1, true);
        }
        let by_element = operation.by_element();
        let mut operation = operation.clone();
        let (mut images, mut are_outputs_images) = (by_element.unwrap_or(1), true);
        if let AnyOperation::Concatenation(_) = &operation {
            images = parts(self.graph, node).len();
        }
        match operation.named_axes() {
            _ if by_element.is_some() => {}
            NamedAxes::Along(axis) => *axis = *OF_NCHW.get(*axis)?,
            NamedAxes::Borders(borders) if borders.len() == 4 => {
                *borders = OF_NHWC.map(|axis| borders[axis]).to_vec();
            }
            NamedAxes::Reduced { axes, keep_dims } => {
                let stays = |axis| !axes.contains(&axis);
                are_outputs_images = keep_dims;
                // Otherwise the axes that are left would have another order.
                if !keep_dims && stays(1) && (stays(2) || stays(3)) {
                    return None;
                }
                for axis in axes.iter_mut() {
                    *axis = *OF_NCHW.get(*axis)?;
                }
                axes.sort_unstable();
            }
            NamedAxes::Borders(_) | NamedAxes::Others => return None,
        }
        let inputs = node.inputs.get(..images)?;
        let is_wanted = inputs.iter().any(|input| self.nhwc.contains_key(input));
        let is_image = |value: &ValueId| self.graph.values[*value].dimensions.len() == 4;
        let outputs_fit = !are_outputs_images || node.outputs.iter().all(is_image);
        let fits = inputs.iter().all(|input| {
            let value = &self.graph.values[*input];
            is_image(input)
                || is_scalar(value)
                || (by_element.is_some() && value.is_constant() && value.elements() > 0)
        });
        // What becomes wider than elements that are transposed fast is brought back sooner.
        let is_wide = |value: &ValueId| self.graph.values[*value].element_size() > size_of::<f32>();
        let mut known = inputs.iter().filter(|input| self.nhwc.contains_key(input));
        let grows = node.outputs.iter().any(is_wide) && !known.any(is_wide);
        (is_wanted && outputs_fit && fits && !grows).then_some(InNhwc {
            work: Work::Operation(operation),
            images,
            are_outputs_images,
        })
    }

    /// Adds a node that reads values in NCHW.
    fn push(&mut self, node: Node) {
        for input in &node.inputs {
            self.bring_back(*input);
        }
        self.graph.nodes.push(node);
    }

    /// Adds a node that computes in NHWC.
    fn push_in_nhwc(
        &mut self,
        node: Node,
        InNhwc { work, images, are_outputs_images }: InNhwc,
    ) -> Result<(), EngineError> {
        let mut inputs = node.inputs;
        for (position, input) in inputs.iter_mut().enumerate() {
            if position < images {
                *input = self.in_nhwc(*input, node.place)?;
            } else {
                self.bring_back(*input);
            }
        }
        let mut outputs = node.outputs;
        if are_outputs_images {
            for output in &mut outputs {
                let nhwc_value = self.add_nhwc(*output, Origin::Computed);
                self.pending.insert(*output, node.place);
                *output = nhwc_value;
            }
        }
        self.graph.nodes.push(Node { place: node.place, work, inputs, outputs });
        Ok(())
    }

    /// A value in NHWC. `place` is the operation that wants it.
    fn in_nhwc(&mut self, value: ValueId, place: OperationPlace) -> Result<ValueId, EngineError> {
        if let Some(nhwc_value) = self.nhwc.get(&value) {
            return Ok(*nhwc_value);
        }
        if is_scalar(&self.graph.values[value]) {
            return Ok(value);
        }
        if let Some(constant) = self.graph.values[value].as_constant() {
            self.graph.held.grow(constant.length() as u64, MemoryUse::Operation(place))?;
        }
        if let Some(transposed) = transposed_constant(&self.graph.values[value]) {
            return Ok(self.add_nhwc(value, Origin::Constant(transposed)));
        }
        let nhwc_value = self.add_nhwc(value, Origin::Computed);
        self.transpose(value, nhwc_value, OF_NHWC, place);
        Ok(nhwc_value)
    }

    /// Sees to it that a value is there in NCHW.
    fn bring_back(&mut self, value: ValueId) {
        if let Some(place) = self.pending.remove(&value) {
            self.transpose(self.nhwc[&value], value, OF_NCHW, place);
        }
    }

    /// A value that is another one in NHWC.
    fn add_nhwc(&mut self, value: ValueId, origin: Origin<'source>) -> ValueId {
        let values = &mut self.graph.values;
        let of = &values[value];
        let dimensions = permuted(&of.dimensions, OF_NHWC);
        let is_widened = of.is_widened;
        let operand = of.operand.clone().into_owned();
        let operand = Cow::Owned(Operand { dimensions: dimensions.clone(), ..operand });
        let nhwc_value = values.len();
        values.push(Value { operand, dimensions, origin, is_widened, index: None });
        self.nhwc.insert(value, nhwc_value);
        nhwc_value
    }

    fn transpose(&mut self, from: ValueId, to: ValueId, order: [usize; 4], place: OperationPlace) {
        let long = |axis: &usize| self.graph.values[from].dimensions[*axis] != 1;
        let moved: Vec<usize> = order.into_iter().filter(long).collect();
        let work = if moved.is_sorted() {
            Work::View
        } else {
            Work::Operation(AnyOperation::Transpose(Transpose { permutation: order.to_vec() }))
        };
        self.graph.nodes.push(Node { place, work, inputs: vec![from], outputs: vec![to] });
    }
}

/// An operation on NCHW images that has a fast kernel for NHWC ones, as that. Its first input and its
/// outputs are the images.
fn image_operation(operation: &AnyOperation) -> Option<AnyOperation> {
    let mut operation = operation.clone();
    let layout = match &mut operation {
        AnyOperation::Conv2d(it) => &mut it.layout,
        AnyOperation::DepthwiseConv2d(it) => &mut it.layout,
        AnyOperation::GroupedConv2d(it) => &mut it.layout,
        AnyOperation::TransposeConv2d(it) => &mut it.layout,
        AnyOperation::Pooling(it) => &mut it.layout,
        AnyOperation::Resize(it) => &mut it.layout,
        AnyOperation::DepthSpace(it) => &mut it.blocks.layout,
        AnyOperation::BatchSpace(it) => &mut it.blocks.layout,
        AnyOperation::InstanceNormalization(it) => &mut it.layout,
        _ => return None,
    };
    let is_nchw = *layout == Layout::Nchw;
    *layout = Layout::Nhwc;
    is_nchw.then_some(operation)
}

/// Whether a value is the same in either layout, whatever it is combined with.
fn is_scalar(value: &Value<'_>) -> bool {
    value.dimensions.iter().all(|length| *length == 1)
}

/// Lengths of rank 4 or less, in another order of axes. Axes that are not there are in front.
fn permuted(lengths: &[u32], order: [usize; 4]) -> Vec<u32> {
    let missing = 4 - lengths.len();
    order.map(|axis| axis.checked_sub(missing).map_or(1, |axis| lengths[axis])).to_vec()
}

/// A constant in NHWC.
fn transposed_constant<'source>(value: &Value<'_>) -> Option<Constant<'source>> {
    let [_, channels, height, width] = permuted(&value.dimensions, [0, 1, 2, 3])[..] else {
        return None;
    };
    channels_last(value, [channels as usize, height as usize * width as usize])
}
