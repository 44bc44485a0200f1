//! Rows chosen by number, and elements chosen by their size.

use crate::graph::Node;
use crate::plan::{Builder, Draft, Operand};
use crate::why::Why;
use nnhal_kernels::ElementType;
use nnhal_kernels::movement::{self, Elements, HashtableLookup};
use nnhal_kernels::reduction::{ArgExtreme, ArgReduction};
use nnhal_kernels::top_k::TopK;
use nnhal_ops::operations::arg_min_max::{ArgMinMax, Extreme};
use nnhal_ops::operations::{Gather, TopKV2};

pub(super) fn gathering(builder: &Builder<'_, '_>, node: &Node, it: &Gather) -> Draft {
    chosen(builder, node, [0, 2], it.axis)
}

pub(super) fn embedding_lookup(builder: &Builder<'_, '_>, node: &Node) -> Draft {
    chosen(builder, node, [1, 0], 0)
}

/// Rows of a table, by the arguments that they and their numbers are.
fn chosen(
    builder: &Builder<'_, '_>,
    node: &Node,
    [table, numbers]: [usize; 2],
    axis: usize,
) -> Draft {
    let of_table = builder.graph.input(node, table);
    // Floats of 32 bits would be twice as large.
    let is_narrow = of_table.is_float16() && of_table.is_constant();
    let elements = if is_narrow {
        let chosen = builder.graph.output(node, 0).elements();
        Elements::Halves { chosen, set: builder.settings.instruction_set }
    } else {
        Elements::Plain { size: of_table.element_size() }
    };
    let kernel = movement::Gather { sizes: of_table.around(axis), elements };
    let mut draft = Draft::of_arguments(builder.graph, node, kernel, &[table, numbers]);
    if is_narrow {
        draft.inputs[0] = Operand::Raw(node.inputs[table]);
    }
    draft
}

pub(super) fn gathering_parts(builder: &Builder<'_, '_>, node: &Node) -> Result<Draft, Why> {
    let [input, indexes] = [0, 1].map(|position| builder.graph.input(node, position));
    let depth = *indexes.dimensions.last().ok_or_else(|| indexes.of_other_rank("1 or more"))?;
    let kernel =
        movement::GatherNd::prepare(&input.lengths(), depth as usize, input.element_size());
    Ok(Draft::of_arguments(builder.graph, node, kernel, &[0, 1]))
}

pub(super) fn hashtable_lookup(builder: &Builder<'_, '_>, node: &Node) -> Draft {
    let table = &builder.graph.values[node.inputs[2]];
    let [_, _, row] = table.around(0);
    let kernel = HashtableLookup { row: row * table.element_size() };
    Draft::of_arguments(builder.graph, node, kernel, &[0, 1, 2])
}

pub(super) fn extremes(
    builder: &Builder<'_, '_>,
    node: &Node,
    it: &ArgMinMax,
) -> Result<Draft, Why> {
    let input = builder.graph.input(node, 0);
    let which = match it.extreme {
        Extreme::Max => ArgExtreme::Max,
        Extreme::Min => ArgExtreme::Min,
    };
    let elements = input.element_type().filter(|it| *it != ElementType::Bool);
    let elements = elements.ok_or_else(|| input.of_other_type("real numbers"))?;
    let sizes = input.around(it.axis);
    // Of no elements there is no extreme.
    if sizes[1] == 0 {
        return Err(input.empty());
    }
    let set = builder.settings.instruction_set;
    Ok(Draft::new(node, ArgReduction { set, which, sizes, elements }, [node.inputs[0]]))
}

pub(super) fn greatest(builder: &Builder<'_, '_>, node: &Node, it: &TopKV2) -> Result<Draft, Why> {
    let input = builder.graph.input(node, 0);
    let elements = input.element_type().filter(|it| TopK::takes(*it));
    let elements = elements.ok_or_else(|| input.of_other_type("numbers of up to 32 bits"))?;
    let length = *input.dimensions.last().ok_or_else(|| input.of_other_rank("1 or more"))?;
    let (length, count) = (length as usize, it.k as usize);
    if count == 0 || count > length {
        let expected = "1 or more, as many as a row has at most";
        return Err(Why::Form { what: "number of elements", found: it.k.to_string(), expected });
    }
    let kernel = TopK::prepare(elements, length, count, it.first_before_last);
    Ok(Draft::new(node, kernel, [node.inputs[0]]))
}
