//! Comparisons, truth values, and choices by them.

use super::elementwise::recoding;
use crate::graph::Node;
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_kernels::elementwise::quantized::TableMap;
use nnhal_kernels::elementwise::{self, Compare, Not, Pairs, Select, TruthFunction};
use nnhal_ops::operations::comparison::Comparison;
use nnhal_ops::operations::logical::Logical;

pub(super) fn comparison(
    builder: &Builder<'_, '_>,
    node: &Node,
    comparison: Comparison,
) -> Result<Draft, Why> {
    let comparison = match comparison {
        Comparison::Equal => elementwise::Comparison::Equal,
        Comparison::NotEqual => elementwise::Comparison::NotEqual,
        Comparison::Less => elementwise::Comparison::Less,
        Comparison::LessEqual => elementwise::Comparison::LessEqual,
        Comparison::Greater => elementwise::Comparison::Greater,
        Comparison::GreaterEqual => elementwise::Comparison::GreaterEqual,
    };
    let [a, b] = [0, 1].map(|position| builder.graph.input(node, position));
    let elements = a.element_type().ok_or_else(|| a.of_other_type("real numbers"))?;
    let quantizations = (a.is_quantized() && a.operand.quantized_as() != b.operand.quantized_as())
        .then(|| [a, b].map(|it| it.quantization()));
    let set = builder.settings.instruction_set;
    Ok(Draft::of_pair(builder.graph, node, |shapes| {
        Compare::prepare(set, shapes, comparison, elements, quantizations)
    }))
}

pub(super) fn logical(builder: &Builder<'_, '_>, node: &Node, logical: Logical) -> Draft {
    let set = builder.settings.instruction_set;
    let function = match logical {
        Logical::And => TruthFunction::And,
        Logical::Or => TruthFunction::Or,
        Logical::Not => return Draft::new(node, Not { set }, [node.inputs[0]]),
    };
    Draft::of_pair(builder.graph, node, |shapes| Pairs::prepare(set, shapes, function))
}

/// Choices that are quantized in other ways than the output are brought to its way, if they are to be.
pub(super) fn select(builder: &Builder<'_, '_>, node: &Node, is_recoded: bool) -> Draft {
    let values = &builder.graph.values;
    let output = builder.graph.output(node, 0);
    let element_size = output.element_size();
    let set = builder.settings.instruction_set;
    let table = |id: usize| {
        let table = (is_recoded && element_size == 1).then(|| recoding(&values[id], &output));
        table.flatten().map(|table| TableMap::prepare(set, table))
    };
    let tables = [table(node.inputs[1]), table(node.inputs[2])];
    let shapes = [0, 1, 2].map(|position| builder.graph.input(node, position).lengths());
    let shapes = shapes.each_ref().map(Vec::as_slice);
    let kernel = Select::prepare(set, shapes, element_size, tables);
    Draft::new(node, kernel, node.inputs[..3].iter().copied())
}
