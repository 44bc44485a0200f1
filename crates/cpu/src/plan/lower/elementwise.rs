//! What is computed element by element.

use super::{integers, of_byte};
use crate::graph::{Node, Value};
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_kernels::elementwise::quantized::{
    Choice, QuantizedPrelu, QuantizedProduct, QuantizedSum, Recoded, Sign, Table, TableMap,
};
use nnhal_kernels::elementwise::{Chain, Pairs, Step};
use nnhal_ops::operations::arithmetic::{Arithmetic, Operator};
use nnhal_ops::operations::maximum_minimum::MaximumMinimum;
use nnhal_ops::rules::requantize::quantize;

/// What the kernels of this module, [`super::integers`] and chains take together.
const FLOATS_OR_INTEGERS: &str = "floats, TENSOR_INT32 or 8-bit integers";

/// By the bits of a stored number of `from` those of the number that stands for the same in `to`; `None`
/// if all stay what they are. Both have 8 bits and are signed alike.
pub(super) fn recoding(from: &Value<'_>, to: &Value<'_>) -> Option<Table> {
    let (least, greatest) = from.operand_type().quantized_range()?;
    let range = to.operand_type().quantized_range()?;
    let (from, to) = (from.quantization(), to.quantization());
    let mut table = Table([0; 256]);
    let mut is_other = false;
    for stored in least..=greatest {
        #[allow(clippy::cast_precision_loss)] // Of 9 bits.
        let real = (stored - from.zero_point) as f32 * from.scale;
        let result = quantize(real, to.scale, to.zero_point, range);
        table.0[usize::from(stored.to_le_bytes()[0])] = result.to_le_bytes()[0];
        is_other |= result != stored;
    }
    is_other.then_some(table)
}

pub(super) fn chain(builder: &Builder<'_, '_>, node: &Node, steps: &[Step]) -> Draft {
    let values = &builder.graph.values;
    let shapes: Vec<Vec<usize>> = node.inputs.iter().map(|id| values[*id].lengths()).collect();
    let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
    let chain = Chain::prepare(builder.settings.instruction_set, &shapes, steps);
    Draft::new(node, chain, node.inputs.iter().copied())
}

pub(super) fn table(builder: &Builder<'_, '_>, node: &Node, table: &[u8; 256]) -> Draft {
    let map = TableMap::prepare(builder.settings.instruction_set, Table(*table));
    Draft::new(node, map, node.inputs.iter().copied())
}

pub(super) fn arithmetic(
    builder: &Builder<'_, '_>,
    node: &Node,
    arithmetic: &Arithmetic,
) -> Result<Draft, Why> {
    let [a, b] = [0, 1].map(|position| builder.graph.input(node, position));
    let output = builder.graph.output(node, 0);
    let set = builder.settings.instruction_set;
    let (inputs, to) = ([a, b].map(|it| it.quantization()), output.quantization());
    let is_signed = output.is_signed(FLOATS_OR_INTEGERS)?;
    let range = output.stored_range(arithmetic.activation, FLOATS_OR_INTEGERS)?;
    let sign = match arithmetic.operator {
        Operator::Add => Sign::Plus,
        Operator::Sub => Sign::Minus,
        Operator::Mul => {
            return Ok(of_byte!(is_signed, T => {
                let product = QuantizedProduct::<T>::new(set, inputs, to, range);
                Draft::of_pair(builder.graph, node, |shapes| Pairs::prepare(set, shapes, product))
            }));
        }
        Operator::Div => return Err(output.of_other_type("floats or TENSOR_INT32")),
    };
    Ok(of_byte!(is_signed, T => {
        let sum = QuantizedSum::<T>::new(set, inputs, to, sign, range);
        Draft::of_pair(builder.graph, node, |shapes| Pairs::prepare(set, shapes, sum))
    }))
}

pub(super) fn extreme(
    builder: &Builder<'_, '_>,
    node: &Node,
    which: MaximumMinimum,
) -> Result<Draft, Why> {
    let [a, b] = [0, 1].map(|position| builder.graph.input(node, position));
    let output = builder.graph.output(node, 0);
    if [a, b].iter().all(|it| it.operand.quantized_as() == output.operand.quantized_as())
        && let Some(function) = integers::function(&which.into())
    {
        return integers::paired(builder, node, function);
    }
    let is_signed = output.is_signed(FLOATS_OR_INTEGERS)?;
    let choice = match which {
        MaximumMinimum::Maximum => Choice::Greater,
        MaximumMinimum::Minimum => Choice::Lesser,
    };
    let set = builder.settings.instruction_set;
    let tables = [a, b].map(|it| recoding(&it, &output).map(|table| TableMap::prepare(set, table)));
    Ok(of_byte!(is_signed, T => {
        let recoded = Recoded::<T>::new(tables, choice);
        Draft::of_pair(builder.graph, node, |shapes| Pairs::prepare(set, shapes, recoded))
    }))
}

pub(super) fn prelu(builder: &Builder<'_, '_>, node: &Node) -> Result<Draft, Why> {
    let [input, alpha] = [0, 1].map(|position| builder.graph.input(node, position));
    let output = builder.graph.output(node, 0);
    let set = builder.settings.instruction_set;
    let (inputs, to) = ([input, alpha].map(|it| it.quantization()), output.quantization());
    let is_signed = output.is_signed("floats or 8-bit integers")?;
    Ok(of_byte!(is_signed, T => {
        let prelu = QuantizedPrelu::<T>::new(set, inputs, to);
        Draft::of_pair(builder.graph, node, |shapes| Pairs::prepare(set, shapes, prelu))
    }))
}
