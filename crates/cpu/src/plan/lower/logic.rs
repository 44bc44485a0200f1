//! Comparisons, truth values, choices by them, and casts.

use super::elementwise::recoding;
use crate::graph::Node;
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_hal::OperandType;
use nnhal_kernels::ElementType;
use nnhal_kernels::elementwise::quantized::TableMap;
use nnhal_kernels::elementwise::{self, Compare, Function, Map, Pairs, Select, TruthFunction};
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
    let expected = "floats, TENSOR_INT32, 8-bit integers or TENSOR_BOOL8";
    let elements = a.element_type().ok_or_else(|| a.of_other_type(expected))?;
    let quantizations = (matches!(elements, ElementType::U8 | ElementType::I8)
        && a.operand.quantized_as() != b.operand.quantized_as())
    .then(|| [a, b].map(|it| it.quantization()));
    let (set, shapes) = (builder.settings.instruction_set, [a.lengths(), b.lengths()]);
    let shapes = shapes.each_ref().map(Vec::as_slice);
    let kernel = Compare::prepare(set, shapes, comparison, elements, quantizations);
    Ok(Draft::new(node, kernel, node.inputs[..2].iter().copied()))
}

pub(super) fn logical(builder: &Builder<'_, '_>, node: &Node, logical: Logical) -> Draft {
    let set = builder.settings.instruction_set;
    let function = match logical {
        Logical::And => TruthFunction::And,
        Logical::Or => TruthFunction::Or,
        Logical::Not => {
            return Draft::new(node, Map { set, function: Function::Not }, [node.inputs[0]]);
        }
    };
    let shapes = [0, 1].map(|position| builder.graph.input(node, position).lengths());
    let shapes = shapes.each_ref().map(Vec::as_slice);
    let kernel = Pairs::prepare(set, shapes, function);
    Draft::new(node, kernel, node.inputs[..2].iter().copied())
}

pub(super) fn select(builder: &Builder<'_, '_>, node: &Node) -> Result<Draft, Why> {
    let values = &builder.graph.values;
    let output = builder.graph.output(node, 0);
    let element_size = output.element_size();
    if !matches!(element_size, 1 | 4) {
        return Err(output.of_other_type("elements of 1 or 4 bytes"));
    }
    let set = builder.settings.instruction_set;
    let table = |id: usize| {
        let table = (element_size == 1).then(|| recoding(&values[id], &output)).flatten();
        table.map(|table| TableMap::prepare(set, table))
    };
    let tables = [table(node.inputs[1]), table(node.inputs[2])];
    let kernel = Select::prepare(set, element_size, tables);
    Ok(Draft::new(node, kernel, node.inputs[..3].iter().copied()))
}

/// What is cast to what.
const CAST: &str = "floats, TENSOR_INT32 or TENSOR_QUANT8_ASYMM";

pub(super) fn cast(builder: &Builder<'_, '_>, node: &Node) -> Result<Draft, Why> {
    use OperandType::{TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm};
    let (input, output) = (builder.graph.input(node, 0), builder.graph.output(node, 0));
    let function = match (input.operand_type(), output.operand_type()) {
        (from, to) if from == to => Function::Copy,
        (TensorFloat16, TensorFloat32) => Function::Copy,
        (TensorFloat32, TensorFloat16) => Function::F32ToF16,
        (TensorInt32, TensorFloat16) => Function::I32ToF16,
        (TensorFloat32 | TensorFloat16, TensorInt32) => Function::F32ToI32,
        (TensorFloat32 | TensorFloat16, TensorQuant8Asymm) => Function::F32ToU8,
        (TensorInt32, TensorFloat32) => Function::I32ToF32,
        (TensorInt32, TensorQuant8Asymm) => Function::I32ToU8,
        (TensorQuant8Asymm, TensorFloat32 | TensorFloat16) => Function::U8ToF32,
        (TensorQuant8Asymm, TensorInt32) => Function::U8ToI32,
        (TensorFloat32 | TensorFloat16 | TensorInt32 | TensorQuant8Asymm, _) => {
            return Err(output.of_other_type(CAST));
        }
        _ => return Err(input.of_other_type(CAST)),
    };
    let set = builder.settings.instruction_set;
    Ok(Draft::new(node, Map { set, function }, [node.inputs[0]]))
}
