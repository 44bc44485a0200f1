//! Rows chosen by number, and elements chosen by their size.

use super::movement::copied_size;
use super::softmax::around;
use crate::graph::{Argument, Node};
use crate::plan::arena::{Inputs, Operands};
use crate::plan::{Builder, Draft, Kernel, Operand, Run};
use crate::why::Why;
use nnhal_driver::{Budget, EngineError, OperationPlace};
use nnhal_hal::OperandType;
use nnhal_kernels::movement::{NoSuchRow, gather};
use nnhal_kernels::quantized_elementwise::f16_to_f32;
use nnhal_kernels::reduction::{ArgExtreme, arg_extreme};
use nnhal_kernels::{InstructionSet, Team};
use nnhal_ops::operations::arg_min_max::{ArgMinMax, Extreme};
use nnhal_ops::operations::{Gather, TopKV2};
use nnhal_ops::{OperationError, Subject};
use std::cmp::Ordering;
use std::ops::Range;

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

/// Bytes that are copied while a key is found.
const OF_SEARCH: usize = 64;

/// HASHTABLE_LOOKUP.
#[derive(Debug)]
struct Keyed {
    place: OperationPlace,
    row_bytes: usize,
}

pub(super) fn hashtable_lookup(builder: &Builder<'_, '_>, node: &Node) -> Draft {
    let table = &builder.graph.values[node.inputs[2]];
    let [_, _, row] = around(table, 0);
    let row_bytes = row * table.element_size();
    let kernel = Keyed { place: node.place, row_bytes };
    Draft::new(node, kernel, node.inputs[..3].iter().copied())
}

impl Kernel for Keyed {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output, hits], _) = operands.split();
        let [lookups, keys] = [0, 1].map(|at| bytemuck::cast_slice::<u8, i32>(inputs.bytes(at)));
        for block in run.budget.blocks(keys.len()) {
            let block = block?;
            // With the first one of the next block.
            let keys = &keys[block.start..keys.len().min(block.end + 1)];
            if let Some([one, next]) = keys.array_windows().find(|[one, next]| one > next) {
                let error = OperationError {
                    operation: self.place.operation_type,
                    subject: Subject::Input(1, "keys"),
                    what: "order",
                    found: format!("{one} before {next}"),
                    expected: "ascending keys".to_owned(),
                };
                return Err(EngineError::operation(self.place, error.into()));
            }
        }
        // Bytes since the last question; a search counts as `OF_SEARCH` of them.
        let mut since = 0;
        for (index, (lookup, hit)) in lookups.iter().zip(hits).enumerate() {
            since += self.row_bytes + OF_SEARCH;
            if since >= Budget::BLOCK {
                run.budget.check_inside()?;
                since = 0;
            }
            // The first of equal keys.
            let first = keys.partition_point(|key| key < lookup);
            *hit = u8::from(keys.get(first) == Some(lookup));
            let row = &mut output[index * self.row_bytes..][..self.row_bytes];
            if *hit == 0 {
                run.fill(0, row);
            } else {
                run.copy(&inputs.bytes(2)[first * self.row_bytes..][..self.row_bytes], row);
            }
        }
        Ok(())
    }

    fn name(&self) -> String {
        "hashtable lookup".to_owned()
    }
}

/// What elements are, where they are compared.
#[derive(Debug, Clone, Copy)]
enum Compared {
    Float,
    Int32,
    Unsigned,
    Signed,
}

impl Compared {
    fn of(argument: Argument<'_>) -> Result<Self, Why> {
        Ok(match argument.operand_type() {
            _ if argument.is_float() => Self::Float,
            OperandType::TensorInt32 => Self::Int32,
            OperandType::TensorQuant8Asymm => Self::Unsigned,
            OperandType::TensorQuant8AsymmSigned => Self::Signed,
            _ => return Err(argument.of_other_type("floats, TENSOR_INT32 or 8-bit integers")),
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Float => "f32",
            Self::Int32 => "i32",
            Self::Unsigned => "u8",
            Self::Signed => "i8",
        }
    }
}

/// ARGMAX or ARGMIN.
#[derive(Debug)]
struct Extremes {
    which: ArgExtreme,
    sizes: [usize; 3],
    elements: Compared,
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
    let (sizes, elements) = (around(&input, it.axis), Compared::of(input)?);
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
            Compared::Float => search::<f32>(run.team, (which, sizes), &inputs, output),
            Compared::Int32 => search::<i32>(run.team, (which, sizes), &inputs, output),
            Compared::Unsigned => search::<u8>(run.team, (which, sizes), &inputs, output),
            Compared::Signed => search::<i8>(run.team, (which, sizes), &inputs, output),
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

/// TOPK_V2.
#[derive(Debug)]
struct Greatest {
    length: usize,
    count: usize,
    elements: Compared,
    /// Whether of equal ones those that stand further in front come first.
    first_before_last: bool,
}

pub(super) fn greatest(builder: &Builder<'_, '_>, node: &Node, it: &TopKV2) -> Result<Draft, Why> {
    let input = builder.graph.input(node, 0);
    let elements = Compared::of(input)?;
    let length = *input.dimensions.last().ok_or_else(|| input.of_other_rank("1 or more"))?;
    let (length, count) = (length as usize, it.k as usize);
    if count == 0 || count > length {
        let expected = "1 or more, as many as a row has at most";
        return Err(Why::Form { what: "number of elements", found: it.k.to_string(), expected });
    }
    let first_before_last = it.first_before_last;
    let kernel = Greatest { length, count, elements, first_before_last };
    Ok(Draft::new(node, kernel, [node.inputs[0]]))
}

impl Greatest {
    /// Of each row the greatest elements in falling order, and where they stand.
    fn choose<T: bytemuck::Pod>(
        &self,
        input: &[u8],
        [values, indexes]: [&mut [u8]; 2],
        order: &mut [u32],
        compare: impl Fn(&T, &T) -> Ordering,
        budget: &Budget,
    ) -> Result<(), EngineError> {
        // Elements since the last question.
        let mut since = 0;
        let rows = bytemuck::cast_slice::<u8, T>(input).chunks_exact(self.length);
        let values = bytemuck::cast_slice_mut::<u8, T>(values).chunks_exact_mut(self.count);
        let indexes = bytemuck::cast_slice_mut::<u8, u32>(indexes).chunks_exact_mut(self.count);
        for ((row, values), indexes) in rows.zip(values).zip(indexes) {
            since += self.length;
            if since >= Budget::BLOCK {
                budget.check_inside()?;
                since = 0;
            }
            let falling = |a: &u32, b: &u32| {
                let by_place = if self.first_before_last { a.cmp(b) } else { b.cmp(a) };
                compare(&row[*b as usize], &row[*a as usize]).then(by_place)
            };
            let chosen = if self.count <= MOST_SELECTED {
                self.select(order, falling, budget)?
            } else {
                sort_in_pieces(order, self.length, falling, budget)?
            };
            let chosen = &chosen[..self.count];
            for block in budget.blocks(self.count) {
                let block = block?;
                indexes[block.clone()].copy_from_slice(&chosen[block.clone()]);
                for (value, index) in values[block.clone()].iter_mut().zip(&chosen[block]) {
                    *value = row[*index as usize];
                }
            }
        }
        Ok(())
    }

    /// The first of all in this order, which are few.
    fn select<'a>(
        &self,
        order: &'a mut [u32],
        falling: impl Fn(&u32, &u32) -> Ordering + Copy,
        budget: &Budget,
    ) -> Result<&'a [u32], EngineError> {
        // Those that come first so far, and behind them the next ones.
        let mut kept = 0;
        for block in budget.blocks(self.length) {
            let block = block?;
            let end = kept + block.len();
            for (place, index) in order[kept..end].iter_mut().zip(numbers(block)) {
                *place = index;
            }
            if end > self.count {
                order[..end].select_nth_unstable_by(self.count - 1, falling);
            }
            kept = end.min(self.count);
        }
        order[..kept].sort_unstable_by(falling);
        Ok(&order[..kept])
    }

    /// Places for the numbers of elements.
    fn places(&self) -> usize {
        if self.count <= MOST_SELECTED {
            self.length.min(self.count + Budget::BLOCK)
        } else {
            2 * self.length
        }
    }
}

/// The most elements that are selected; of more, all are sorted.
const MOST_SELECTED: usize = Budget::BLOCK;

/// Elements' numbers, which fit: lengths do.
#[allow(clippy::cast_possible_truncation)]
fn numbers(range: Range<usize>) -> impl Iterator<Item = u32> {
    range.map(|index| index as u32)
}

/// The numbers below `length` in this order. Merged from sorted pieces, between which the budget is asked.
fn sort_in_pieces<'a>(
    places: &'a mut [u32],
    length: usize,
    order: impl Fn(&u32, &u32) -> Ordering + Copy,
    budget: &Budget,
) -> Result<&'a [u32], EngineError> {
    let (from, to) = places.split_at_mut(length);
    let (mut from, mut to) = (from, &mut to[..length]);
    for piece in budget.blocks(length) {
        let piece = piece?;
        for (place, index) in from[piece.clone()].iter_mut().zip(numbers(piece.clone())) {
            *place = index;
        }
        from[piece].sort_unstable_by(order);
    }
    let mut sorted = Budget::BLOCK;
    while sorted < length {
        for start in (0..length).step_by(2 * sorted) {
            let (middle, end) = (length.min(start + sorted), length.min(start + 2 * sorted));
            let (mut left, mut right) = (start, middle);
            for block in budget.blocks(end - start) {
                for place in block? {
                    let is_left = left < middle
                        && (right == end || order(&from[left], &from[right]) != Ordering::Greater);
                    let next = if is_left { &mut left } else { &mut right };
                    to[start + place] = from[*next];
                    *next += 1;
                }
            }
        }
        (from, to) = (to, from);
        sorted *= 2;
    }
    Ok(from)
}

impl Kernel for Greatest {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, outputs, scratch) = operands.split();
        let input = inputs.bytes(0);
        let order = &mut bytemuck::cast_slice_mut(scratch)[..self.places()];
        let budget = run.budget;
        match self.elements {
            // A NaN is greater than anything.
            Compared::Float => {
                let compare = |a: &f32, b: &f32| {
                    a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
                };
                self.choose(input, outputs, order, compare, budget)
            }
            Compared::Int32 => self.choose::<i32>(input, outputs, order, Ord::cmp, budget),
            Compared::Unsigned => self.choose::<u8>(input, outputs, order, Ord::cmp, budget),
            Compared::Signed => self.choose::<i8>(input, outputs, order, Ord::cmp, budget),
        }
    }

    fn name(&self) -> String {
        format!("top k {}", self.elements.name())
    }

    fn scratch_bytes(&self) -> usize {
        self.places() * size_of::<u32>()
    }
}
