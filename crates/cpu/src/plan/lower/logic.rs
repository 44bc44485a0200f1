//! Comparisons, truth values, choices by them, and casts.

use super::elementwise::recoding;
use crate::graph::{Argument, Node};
use crate::plan::arena::{Inputs, Operands};
use crate::plan::{Builder, Draft, ELEMENTS_BY_THREAD, Kernel, Run};
use crate::why::Why;
use nnhal_driver::EngineError;
use nnhal_hal::OperandType;
use nnhal_kernels::InstructionSet;
use nnhal_kernels::elementwise::Pairs;
use nnhal_kernels::quantized_elementwise::{Quantization, TableMap, round_to_f16};
use nnhal_kernels::{Team, for_each_slice};
use nnhal_ops::operations::comparison::Comparison;
use nnhal_ops::operations::logical::Logical;

/// What is done with two operands that broadcast.
#[derive(Debug)]
struct Paired {
    pairs: Pairs,
    function: Function,
    elements: Elements,
    /// Of 8-bit numbers that are stored in different ways: they are not in the order of what they
    /// stand for.
    quantizations: Option<[Quantization; 2]>,
}

#[derive(Debug, Clone, Copy)]
enum Function {
    Compare(Comparison),
    And,
    Or,
}

/// What elements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Elements {
    Float,
    Int32,
    Unsigned,
    Signed,
    Bool,
}

impl Elements {
    fn of(argument: Argument<'_>) -> Result<Self, Why> {
        let expected = "floats, TENSOR_INT32, 8-bit integers or TENSOR_BOOL8";
        Ok(match argument.operand_type() {
            _ if argument.is_float() => Self::Float,
            OperandType::TensorInt32 => Self::Int32,
            OperandType::TensorQuant8Asymm => Self::Unsigned,
            OperandType::TensorQuant8AsymmSigned => Self::Signed,
            OperandType::TensorBool8 => Self::Bool,
            _ => return Err(argument.of_other_type(expected)),
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Float => "f32",
            Self::Int32 => "i32",
            Self::Unsigned => "u8",
            Self::Signed => "i8",
            Self::Bool => "bool",
        }
    }
}

pub(super) fn comparison(
    builder: &Builder<'_, '_>,
    node: &Node,
    comparison: Comparison,
) -> Result<Draft, Why> {
    paired(builder, node, Function::Compare(comparison))
}

pub(super) fn logical(
    builder: &Builder<'_, '_>,
    node: &Node,
    logical: Logical,
) -> Result<Draft, Why> {
    match logical {
        Logical::And => paired(builder, node, Function::And),
        Logical::Or => paired(builder, node, Function::Or),
        Logical::Not => Ok(Draft::new(node, Not, [node.inputs[0]])),
    }
}

fn paired(builder: &Builder<'_, '_>, node: &Node, function: Function) -> Result<Draft, Why> {
    let [a, b] = [0, 1].map(|position| builder.graph.input(node, position));
    let elements = Elements::of(a)?;
    let quantizations = (matches!(elements, Elements::Unsigned | Elements::Signed)
        && a.operand.quantized_as() != b.operand.quantized_as())
    .then(|| [a, b].map(|it| it.quantization()));
    let pairs = Pairs::prepare(builder.settings.instruction_set, [&a.lengths(), &b.lengths()]);
    let kernel = Paired { pairs, function, elements, quantizations };
    Ok(Draft::new(node, kernel, node.inputs[..2].iter().copied()))
}

impl Paired {
    fn compare<T: bytemuck::Pod + PartialOrd + Sync>(
        &self,
        team: &mut Team,
        comparison: Comparison,
        inputs: &Inputs<'_>,
        output: &mut [u8],
    ) {
        self.compare_as(team, comparison, inputs, output, |[a, b]: [T; 2]| [a, b]);
    }

    /// Of 8-bit numbers, by what they stand for if they are stored in different ways.
    fn compare_stored<T: bytemuck::Pod + PartialOrd + Sync + Into<i32>>(
        &self,
        team: &mut Team,
        comparison: Comparison,
        inputs: &Inputs<'_>,
        output: &mut [u8],
    ) {
        let Some([of_a, of_b]) = self.quantizations else {
            return self.compare::<T>(team, comparison, inputs, output);
        };
        #[allow(clippy::cast_precision_loss)] // Of 9 bits.
        let real = |stored: T, of: Quantization| (stored.into() - of.zero_point) as f32 * of.scale;
        self.compare_as(team, comparison, inputs, output, |[a, b]: [T; 2]| {
            [real(a, of_a), real(b, of_b)]
        });
    }

    /// By what `both` makes of both elements.
    fn compare_as<T: bytemuck::Pod + Sync, K: PartialOrd>(
        &self,
        team: &mut Team,
        comparison: Comparison,
        inputs: &Inputs<'_>,
        output: &mut [u8],
        both: impl Fn([T; 2]) -> [K; 2] + Sync,
    ) {
        let [a, b] = [0, 1].map(|index| bytemuck::cast_slice::<u8, T>(inputs.bytes(index)));
        let pairs = &self.pairs;
        /// The elements compared.
        macro_rules! compared {
            ($comparison:tt) => {
                pairs.run(team, a, b, output, |a, b| {
                    let [a, b] = both([a, b]);
                    u8::from(a $comparison b)
                })
            };
        }
        match comparison {
            Comparison::Equal => compared!(==),
            Comparison::NotEqual => compared!(!=),
            Comparison::Less => compared!(<),
            Comparison::LessEqual => compared!(<=),
            Comparison::Greater => compared!(>),
            Comparison::GreaterEqual => compared!(>=),
        }
    }

    /// A function of truth values, which are true if they are not 0.
    fn truth(
        &self,
        team: &mut Team,
        inputs: &Inputs<'_>,
        output: &mut [u8],
        function: impl Fn(bool, bool) -> bool + Sync,
    ) {
        let (a, b) = (inputs.bytes(0), inputs.bytes(1));
        self.pairs.run(team, a, b, output, |a, b| u8::from(function(a != 0, b != 0)));
    }
}

impl Kernel for Paired {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        let team = &mut *run.team;
        match (self.function, self.elements) {
            (Function::And, _) => self.truth(team, &inputs, output, |a, b| a && b),
            (Function::Or, _) => self.truth(team, &inputs, output, |a, b| a || b),
            (Function::Compare(it), Elements::Float) => {
                self.compare::<f32>(team, it, &inputs, output);
            }
            (Function::Compare(it), Elements::Int32) => {
                self.compare::<i32>(team, it, &inputs, output);
            }
            (Function::Compare(it), Elements::Unsigned) => {
                self.compare_stored::<u8>(team, it, &inputs, output);
            }
            (Function::Compare(it), Elements::Signed) => {
                self.compare_stored::<i8>(team, it, &inputs, output);
            }
            (Function::Compare(it), Elements::Bool) => match it {
                Comparison::Equal => self.truth(team, &inputs, output, |a, b| a == b),
                Comparison::NotEqual => self.truth(team, &inputs, output, |a, b| a != b),
                Comparison::Less => self.truth(team, &inputs, output, |a, b| !a & b),
                Comparison::LessEqual => self.truth(team, &inputs, output, |a, b| a <= b),
                Comparison::Greater => self.truth(team, &inputs, output, |a, b| a & !b),
                Comparison::GreaterEqual => self.truth(team, &inputs, output, |a, b| a >= b),
            },
        }
        Ok(())
    }

    fn name(&self) -> String {
        match self.function {
            Function::Compare(_) => format!("compare {}", self.elements.name()),
            Function::And => "logical and bool".to_owned(),
            Function::Or => "logical or bool".to_owned(),
        }
    }
}

/// LOGICAL_NOT.
#[derive(Debug)]
struct Not;

impl Kernel for Not {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        run.map(inputs.bytes(0), output, |it| u8::from(it == 0));
        Ok(())
    }

    fn name(&self) -> String {
        "logical not bool".to_owned()
    }
}

/// SELECT.
#[derive(Debug)]
struct Choice {
    element_size: usize,
    /// What brings 8-bit numbers to the output's quantization, where they have another.
    tables: [Option<TableMap>; 2],
    elements: usize,
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
    let elements = output.elements();
    let kernel = Choice { element_size, tables, elements };
    Ok(Draft::new(node, kernel, node.inputs[..3].iter().copied()))
}

impl Kernel for Choice {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        fn choose<T: bytemuck::Pod + Send + Sync>(
            team: &mut Team,
            conditions: &[u8],
            of: [&[u8]; 2],
            output: &mut [u8],
        ) {
            let [then, other] = of.map(bytemuck::cast_slice::<u8, T>);
            let output = bytemuck::cast_slice_mut::<u8, T>(output);
            for_each_slice(team, output, ELEMENTS_BY_THREAD, |start, part| {
                let both = then[start..].iter().zip(&other[start..]);
                for ((output, condition), (then, other)) in
                    part.iter_mut().zip(&conditions[start..]).zip(both)
                {
                    *output = if *condition != 0 { *then } else { *other };
                }
            });
        }
        let (inputs, [output], scratch) = operands.split();
        let conditions = inputs.bytes(0);
        if self.element_size != 1 {
            choose::<u32>(run.team, conditions, [inputs.bytes(1), inputs.bytes(2)], output);
            return Ok(());
        }
        let (room, other_room) = scratch.split_at_mut(scratch.len() / 2);
        let [then, other] = &self.tables;
        let mut recoded = |table: &Option<TableMap>, input, room| match table {
            None => input,
            Some(table) => recoded(run.team, table, input, room),
        };
        let then = recoded(then, inputs.bytes(1), room);
        let other = recoded(other, inputs.bytes(2), other_room);
        choose::<u8>(run.team, conditions, [then, other], output);
        Ok(())
    }

    fn name(&self) -> String {
        "select".to_owned()
    }

    fn scratch_bytes(&self) -> usize {
        if self.tables.iter().any(Option::is_some) { 2 * self.elements } else { 0 }
    }
}

/// Bytes looked up, in a room that is large enough.
fn recoded<'a>(team: &mut Team, table: &TableMap, input: &[u8], room: &'a mut [u8]) -> &'a [u8] {
    let room = &mut room[..input.len()];
    table.run(team, input, room);
    room
}

/// CAST.
#[derive(Debug)]
enum Cast {
    Copy,
    FloatToHalf(InstructionSet),
    FloatToInt32,
    FloatToByte,
    Int32ToFloat,
    Int32ToHalf(InstructionSet),
    Int32ToByte,
    ByteToFloat,
    ByteToInt32,
}

/// What is cast to what.
const CAST: &str = "floats, TENSOR_INT32 or TENSOR_QUANT8_ASYMM";

pub(super) fn cast(builder: &Builder<'_, '_>, node: &Node) -> Result<Draft, Why> {
    use OperandType::{TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm};
    let (input, output) = (builder.graph.input(node, 0), builder.graph.output(node, 0));
    let set = builder.settings.instruction_set;
    let kernel = match (input.operand_type(), output.operand_type()) {
        (from, to) if from == to => Cast::Copy,
        (TensorFloat16, TensorFloat32) => Cast::Copy,
        (TensorFloat32, TensorFloat16) => Cast::FloatToHalf(set),
        (TensorInt32, TensorFloat16) => Cast::Int32ToHalf(set),
        (TensorFloat32 | TensorFloat16, TensorInt32) => Cast::FloatToInt32,
        (TensorFloat32 | TensorFloat16, TensorQuant8Asymm) => Cast::FloatToByte,
        (TensorInt32, TensorFloat32) => Cast::Int32ToFloat,
        (TensorInt32, TensorQuant8Asymm) => Cast::Int32ToByte,
        (TensorQuant8Asymm, TensorFloat32 | TensorFloat16) => Cast::ByteToFloat,
        (TensorQuant8Asymm, TensorInt32) => Cast::ByteToInt32,
        (TensorFloat32 | TensorFloat16 | TensorInt32 | TensorQuant8Asymm, _) => {
            return Err(output.of_other_type(CAST));
        }
        _ => return Err(input.of_other_type(CAST)),
    };
    Ok(Draft::new(node, kernel, [node.inputs[0]]))
}

impl Kernel for Cast {
    // Floats lose what stands behind the point, and saturate; integers are rounded to floats.
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        fn map<T: bytemuck::Pod + Sync, U: bytemuck::Pod + Send>(
            run: &mut Run<'_>,
            inputs: &Inputs<'_>,
            output: &mut [u8],
            function: impl Fn(T) -> U + Sync,
        ) {
            let input = bytemuck::cast_slice::<u8, T>(inputs.bytes(0));
            run.map(input, bytemuck::cast_slice_mut::<u8, U>(output), function);
        }
        let (inputs, [output], _) = operands.split();
        match self {
            Self::Copy => run.copy(inputs.bytes(0), output),
            Self::FloatToHalf(set) => {
                run.copy(inputs.bytes(0), output);
                round_to_f16(*set, run.team, bytemuck::cast_slice_mut(output));
            }
            Self::FloatToInt32 => map::<f32, i32>(run, &inputs, output, |it| it as i32),
            Self::FloatToByte => map::<f32, u8>(run, &inputs, output, |it| it as u8),
            Self::Int32ToFloat => map::<i32, f32>(run, &inputs, output, |it| it as f32),
            Self::Int32ToHalf(set) => {
                map::<i32, f32>(run, &inputs, output, |it| it as f32);
                round_to_f16(*set, run.team, bytemuck::cast_slice_mut(output));
            }
            Self::Int32ToByte => map::<i32, u8>(run, &inputs, output, |it| it.clamp(0, 255) as u8),
            Self::ByteToFloat => map::<u8, f32>(run, &inputs, output, f32::from),
            Self::ByteToInt32 => map::<u8, i32>(run, &inputs, output, i32::from),
        }
        Ok(())
    }

    fn name(&self) -> String {
        match self {
            Self::Copy => "cast by copy".to_owned(),
            Self::FloatToHalf(_) => "cast f32 to f16".to_owned(),
            Self::FloatToInt32 => "cast f32 to i32".to_owned(),
            Self::FloatToByte => "cast f32 to u8".to_owned(),
            Self::Int32ToFloat => "cast i32 to f32".to_owned(),
            Self::Int32ToHalf(_) => "cast i32 to f16".to_owned(),
            Self::Int32ToByte => "cast i32 to u8".to_owned(),
            Self::ByteToFloat => "cast u8 to f32".to_owned(),
            Self::ByteToInt32 => "cast u8 to i32".to_owned(),
        }
    }
}
