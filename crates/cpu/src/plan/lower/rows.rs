//! Rows chosen by number, and elements chosen by their size.

use super::movement::copied_size;
use super::softmax::around;
use crate::graph::{Argument, Node};
use crate::plan::arena::{Inputs, Operands};
use crate::plan::{Builder, Draft, Kernel, Operand, Run};
use crate::why::Why;
use nnhal_driver::{EngineError, OperationPlace};
use nnhal_kernels::movement::{HashtableLookup, NoSuchRow, gather};
use nnhal_kernels::quantized_elementwise::f16_to_f32;
use nnhal_kernels::reduction::{ArgExtreme, arg_extreme};
use nnhal_kernels::top_k::TopK;
use nnhal_kernels::{ElementType, InstructionSet, Team};
use nnhal_ops::operations::arg_min_max::{ArgMinMax, Extreme};
use nnhal_ops::operations::{Gather, TopKV2};
use nnhal_ops::{OperationError, Subject};

/// GATHER or EMBEDDING_LOOKUP.
#[derive(Debug)]
struct Rows {
    place: OperationPlace,
    /// Elements before the axis, along it, and behind it.
    sizes: [usize; 3],
    element_size: usize,
    /// Which argument of the operation the numbers are.
    numbers: (usize, &'static str),
    /// Of a constant table of 16-bit floats, which would be twice as large as floats of 32 bits: how
    /// many elements are chosen, and with which instructions they are widened.
    narrow: Option<(usize, InstructionSet)>,
}

pub(super) fn gathering(builder: &Builder<'_, '_>, node: &Node, it: &Gather) -> Result<Draft, Why> {
    chosen(builder, node, 0, (2, "indices"), it.axis)
}

pub(super) fn embedding_lookup(builder: &Builder<'_, '_>, node: &Node) -> Result<Draft, Why> {
    chosen(builder, node, 1, (0, "lookups"), 0)
}

fn chosen(
    builder: &Builder<'_, '_>,
    node: &Node,
    table: usize,
    numbers: (usize, &'static str),
    axis: usize,
) -> Result<Draft, Why> {
    let of_table = builder.graph.input(node, table);
    let is_narrow = of_table.is_float16() && of_table.is_constant();
    let element_size = if is_narrow { size_of::<u16>() } else { copied_size(of_table)? };
    let chosen = builder.graph.output(node, 0).elements();
    let narrow = is_narrow.then_some((chosen, builder.settings.instruction_set));
    let sizes = around(&of_table, axis);
    let of_table = if is_narrow { Operand::Raw } else { Operand::Value };
    Ok(Draft {
        place: node.place,
        kernel: Box::new(Rows { place: node.place, sizes, element_size, numbers, narrow }),
        inputs: vec![of_table(node.inputs[table]), Operand::Value(node.inputs[numbers.0])],
        outputs: node.outputs.clone(),
    })
}

impl Kernel for Rows {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], scratch) = operands.split();
        let numbers: &[i32] = bytemuck::cast_slice(inputs.bytes(1));
        /// As elements of some type.
        macro_rules! gathered {
            ($Element:ty, $output:expr) => {{
                let table = bytemuck::cast_slice::<u8, $Element>(inputs.bytes(0));
                gather(run.team, self.sizes, table, numbers, $output)
            }};
        }
        let result = match (self.element_size, self.narrow) {
            (_, Some((chosen, set))) => {
                let halves = &mut bytemuck::cast_slice_mut(scratch)[..chosen];
                gathered!(u16, halves).map(|()| {
                    f16_to_f32(set, run.team, halves, bytemuck::cast_slice_mut(output));
                })
            }
            (1, _) => gathered!(u8, output),
            (2, _) => gathered!(u16, bytemuck::cast_slice_mut(output)),
            _ => gathered!(u32, bytemuck::cast_slice_mut(output)),
        };
        result.map_err(|NoSuchRow { number, .. }| {
            let error = OperationError {
                operation: self.place.operation_type,
                subject: Subject::Input(self.numbers.0, self.numbers.1),
                what: "value",
                found: number.to_string(),
                expected: format!("0 or more, below {}", self.sizes[1]),
            };
            EngineError::operation(self.place, error.into())
        })
    }

    fn name(&self) -> String {
        "gather".to_owned()
    }

    fn scratch_bytes(&self) -> usize {
        self.narrow.map_or(0, |(chosen, _)| chosen * size_of::<u16>())
    }
}

pub(super) fn hashtable_lookup(builder: &Builder<'_, '_>, node: &Node) -> Draft {
    let table = &builder.graph.values[node.inputs[2]];
    let [_, _, row] = around(table, 0);
    let kernel = HashtableLookup { row: row * table.element_size() };
    Draft::of_arguments(builder.graph, node, kernel, &[0, 1, 2])
}

/// What elements are, where they are compared.
fn compared(argument: Argument<'_>) -> Result<ElementType, Why> {
    let elements = argument.element_type().filter(|it| *it != ElementType::Bool);
    elements.ok_or_else(|| argument.of_other_type("floats, TENSOR_INT32 or 8-bit integers"))
}

/// ARGMAX or ARGMIN.
#[derive(Debug)]
struct Extremes {
    which: ArgExtreme,
    sizes: [usize; 3],
    elements: ElementType,
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
    let (sizes, elements) = (around(&input, it.axis), compared(input)?);
    // Of no elements there is no extreme.
    if sizes[1] == 0 {
        return Err(input.empty());
    }
    Ok(Draft::new(node, Extremes { which, sizes, elements }, [node.inputs[0]]))
}

impl Kernel for Extremes {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        let Self { which, sizes, elements } = *self;
        let output = bytemuck::cast_slice_mut(output);
        fn search<T: bytemuck::Pod + PartialOrd + Sync>(
            team: &mut Team,
            (which, sizes): (ArgExtreme, [usize; 3]),
            inputs: &Inputs<'_>,
            output: &mut [i32],
        ) {
            let input = bytemuck::cast_slice::<u8, T>(inputs.bytes(0));
            arg_extreme(team, which, sizes, input, output);
        }
        match elements {
            ElementType::F32 => search::<f32>(run.team, (which, sizes), &inputs, output),
            ElementType::I32 => search::<i32>(run.team, (which, sizes), &inputs, output),
            ElementType::U8 | ElementType::Bool => {
                search::<u8>(run.team, (which, sizes), &inputs, output)
            }
            ElementType::I8 => search::<i8>(run.team, (which, sizes), &inputs, output),
        }
        Ok(())
    }

    fn name(&self) -> String {
        let operation = match self.which {
            ArgExtreme::Max => "argmax",
            ArgExtreme::Min => "argmin",
        };
        format!("{operation} {}", self.elements.name())
    }
}

pub(super) fn greatest(builder: &Builder<'_, '_>, node: &Node, it: &TopKV2) -> Result<Draft, Why> {
    let input = builder.graph.input(node, 0);
    let elements = compared(input)?;
    let length = *input.dimensions.last().ok_or_else(|| input.of_other_rank("1 or more"))?;
    let (length, count) = (length as usize, it.k as usize);
    if count == 0 || count > length {
        let expected = "1 or more, as many as a row has at most";
        return Err(Why::Form { what: "number of elements", found: it.k.to_string(), expected });
    }
    let kernel = TopK::prepare(elements, length, count, it.first_before_last);
    Ok(Draft::prepared(node, kernel, [node.inputs[0]]))
}
