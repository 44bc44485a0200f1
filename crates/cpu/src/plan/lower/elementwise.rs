//! What is computed element by element.

use crate::graph::{Node, Value};
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Run, name};
use crate::why::Why;
use nnhal_driver::EngineError;
use nnhal_kernels::elementwise::{Chain, Step};
use nnhal_kernels::quantized_elementwise::{
    Choice, QuantizedPrelu, QuantizedProduct, QuantizedSum, RecodedPairs, Sign, Table, TableMap,
};
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

/// Steps on floats.
#[derive(Debug)]
struct FloatChain {
    chain: Chain,
    operands: usize,
    steps: usize,
}

pub(super) fn chain(builder: &Builder<'_, '_>, node: &Node, steps: &[Step]) -> Draft {
    let values = &builder.graph.values;
    let shapes: Vec<Vec<usize>> = node.inputs.iter().map(|id| values[*id].lengths()).collect();
    let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
    let chain = Chain::prepare(builder.settings.instruction_set, &shapes, steps);
    let kernel = FloatChain { chain, operands: shapes.len(), steps: steps.len() };
    Draft::new(node, kernel, node.inputs.iter().copied())
}

impl Kernel for FloatChain {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        let mut slices = [&[][..]; Chain::MOST_OPERANDS];
        for (index, slice) in slices[..self.operands].iter_mut().enumerate() {
            *slice = inputs.floats(index);
        }
        let output = bytemuck::cast_slice_mut(output);
        self.chain.run(run.team, &slices[..self.operands], output);
        Ok(())
    }

    fn name(&self) -> String {
        match self.steps {
            1 => "elementwise f32".to_owned(),
            steps => format!("elementwise {steps} fused f32"),
        }
    }
}

/// A function of 8 bits.
#[derive(Debug)]
struct TableKernel(TableMap);

pub(super) fn table(builder: &Builder<'_, '_>, node: &Node, table: &[u8; 256]) -> Draft {
    let map = TableMap::prepare(builder.settings.instruction_set, Table(*table));
    Draft::new(node, TableKernel(map), node.inputs.iter().copied())
}

impl Kernel for TableKernel {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        self.0.run(run.team, inputs.bytes(0), output);
        Ok(())
    }

    fn name(&self) -> String {
        "elementwise lookup table 8-bit".to_owned()
    }
}

/// A sum, a difference or a product of 8-bit numbers.
#[derive(Debug)]
enum QuantizedArithmetic {
    UnsignedSum(QuantizedSum<u8>),
    SignedSum(QuantizedSum<i8>),
    UnsignedProduct(QuantizedProduct<u8>),
    SignedProduct(QuantizedProduct<i8>),
}

pub(super) fn arithmetic(
    builder: &Builder<'_, '_>,
    node: &Node,
    arithmetic: &Arithmetic,
) -> Result<Draft, Why> {
    let [a, b] = [0, 1].map(|position| builder.graph.input(node, position));
    let output = builder.graph.output(node, 0);
    let set = builder.settings.instruction_set;
    let shapes = [&*a.lengths(), &*b.lengths()];
    let (inputs, to) = ([a, b].map(|it| it.quantization()), output.quantization());
    let is_signed = output.is_signed(FLOATS_OR_INTEGERS)?;
    let range = output.stored_range(arithmetic.activation, FLOATS_OR_INTEGERS)?;
    let sign = match arithmetic.operator {
        Operator::Sub => Sign::Minus,
        _ => Sign::Plus,
    };
    let kernel = match (arithmetic.operator, is_signed) {
        (Operator::Add | Operator::Sub, false) => QuantizedArithmetic::UnsignedSum(
            QuantizedSum::prepare(set, shapes, inputs, to, sign, range),
        ),
        (Operator::Add | Operator::Sub, true) => QuantizedArithmetic::SignedSum(
            QuantizedSum::prepare(set, shapes, inputs, to, sign, range),
        ),
        (Operator::Mul, false) => QuantizedArithmetic::UnsignedProduct(QuantizedProduct::prepare(
            set, shapes, inputs, to, range,
        )),
        (Operator::Mul, true) => QuantizedArithmetic::SignedProduct(QuantizedProduct::prepare(
            set, shapes, inputs, to, range,
        )),
        (Operator::Div, _) => return Err(output.of_other_type("floats or TENSOR_INT32")),
    };
    Ok(Draft::new(node, kernel, node.inputs[..2].iter().copied()))
}

impl Kernel for QuantizedArithmetic {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        let (a, b) = (inputs.bytes(0), inputs.bytes(1));
        let signed = bytemuck::cast_slice;
        match self {
            Self::UnsignedSum(sum) => sum.run(run.team, a, b, output),
            Self::UnsignedProduct(product) => product.run(run.team, a, b, output),
            Self::SignedSum(sum) => {
                sum.run(run.team, signed(a), signed(b), bytemuck::cast_slice_mut(output));
            }
            Self::SignedProduct(product) => {
                product.run(run.team, signed(a), signed(b), bytemuck::cast_slice_mut(output));
            }
        }
        Ok(())
    }

    fn name(&self) -> String {
        match self {
            Self::UnsignedSum(_) => "elementwise sum u8".to_owned(),
            Self::SignedSum(_) => "elementwise sum i8".to_owned(),
            Self::UnsignedProduct(_) => "elementwise product u8".to_owned(),
            Self::SignedProduct(_) => "elementwise product i8".to_owned(),
        }
    }
}

/// MAXIMUM or MINIMUM of 8-bit numbers, each of which may first have to be stored as the output is.
#[derive(Debug)]
struct Extreme {
    pairs: RecodedPairs,
    which: MaximumMinimum,
    is_signed: bool,
}

pub(super) fn extreme(
    builder: &Builder<'_, '_>,
    node: &Node,
    which: MaximumMinimum,
) -> Result<Draft, Why> {
    let [a, b] = [0, 1].map(|position| builder.graph.input(node, position));
    let output = builder.graph.output(node, 0);
    let is_signed = output.is_signed(FLOATS_OR_INTEGERS)?;
    let choice = match which {
        MaximumMinimum::Maximum => Choice::Greater,
        MaximumMinimum::Minimum => Choice::Lesser,
    };
    let set = builder.settings.instruction_set;
    let tables = [a, b].map(|it| recoding(&it, &output).map(|table| TableMap::prepare(set, table)));
    let pairs = RecodedPairs::prepare(set, [&a.lengths(), &b.lengths()], tables, choice);
    let kernel = Extreme { pairs, which, is_signed };
    Ok(Draft::new(node, kernel, node.inputs[..2].iter().copied()))
}

impl Kernel for Extreme {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        let (a, b) = (inputs.bytes(0), inputs.bytes(1));
        if self.is_signed {
            let (a, b) = (bytemuck::cast_slice(a), bytemuck::cast_slice(b));
            self.pairs.run::<i8>(run.team, a, b, bytemuck::cast_slice_mut(output));
        } else {
            self.pairs.run::<u8>(run.team, a, b, output);
        }
        Ok(())
    }

    fn name(&self) -> String {
        let function = match self.which {
            MaximumMinimum::Maximum => "max",
            MaximumMinimum::Minimum => "min",
        };
        format!("elementwise {function} {}", name::quantized(self.is_signed))
    }
}

/// PRELU of 8-bit numbers.
#[derive(Debug)]
enum Prelu {
    Unsigned(QuantizedPrelu<u8>),
    Signed(QuantizedPrelu<i8>),
}

pub(super) fn prelu(builder: &Builder<'_, '_>, node: &Node) -> Result<Draft, Why> {
    let [input, alpha] = [0, 1].map(|position| builder.graph.input(node, position));
    let output = builder.graph.output(node, 0);
    let set = builder.settings.instruction_set;
    let shapes = [&*input.lengths(), &*alpha.lengths()];
    let (inputs, to) = ([input, alpha].map(|it| it.quantization()), output.quantization());
    let kernel = if output.is_signed("floats or 8-bit integers")? {
        Prelu::Signed(QuantizedPrelu::prepare(set, shapes, inputs, to))
    } else {
        Prelu::Unsigned(QuantizedPrelu::prepare(set, shapes, inputs, to))
    };
    Ok(Draft::new(node, kernel, node.inputs[..2].iter().copied()))
}

impl Kernel for Prelu {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        let (input, alpha) = (inputs.bytes(0), inputs.bytes(1));
        match self {
            Self::Unsigned(prelu) => prelu.run(run.team, input, alpha, output),
            Self::Signed(prelu) => {
                let (input, alpha) = (bytemuck::cast_slice(input), bytemuck::cast_slice(alpha));
                prelu.run(run.team, input, alpha, bytemuck::cast_slice_mut(output));
            }
        }
        Ok(())
    }

    fn name(&self) -> String {
        match self {
            Self::Unsigned(_) => "prelu u8".to_owned(),
            Self::Signed(_) => "prelu i8".to_owned(),
        }
    }
}
