//! Reductions over any axes.

use super::elementwise::{is_signed, quantization};
use crate::graph::Node;
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Operand, Run, name};
use nnhal_driver::EngineError;
use nnhal_hal::OperandType;
use nnhal_kernels::Team;
use nnhal_kernels::quantized_elementwise::Quantization;
use nnhal_kernels::reduction::{ByteReduction, Fold, Reduce, ReduceBytes, Reduction};
use nnhal_ops::operations::reduce;
use nnhal_ops::rules::requantize::quantize;

#[derive(Debug)]
struct ReduceKernel {
    reduce: Reduce,
    reduction: Reduction,
}

pub(super) fn lower(
    builder: &Builder<'_, '_>,
    node: &Node,
    reduce: &reduce::Reduce,
) -> Option<Draft> {
    let input = &builder.graph.values[node.inputs[0]];
    if !input.is_float() {
        return folded(builder, node, reduce);
    }
    let reduction = match reduce.reduction {
        reduce::Reduction::Mean => Reduction::Mean,
        reduce::Reduction::Sum => Reduction::Sum,
        reduce::Reduction::Max => Reduction::Max,
        reduce::Reduction::Min => Reduction::Min,
        _ => return folded(builder, node, reduce),
    };
    let lengths: Vec<usize> = input.dimensions.iter().map(|length| *length as usize).collect();
    let set = builder.settings.instruction_set;
    let reduce = Reduce::prepare(set, reduction, &lengths, &reduce.axes);
    Some(Draft {
        place: node.place,
        kernel: Box::new(ReduceKernel { reduce, reduction }),
        inputs: vec![Operand::Value(node.inputs[0])],
        outputs: node.outputs.clone(),
    })
}

/// A reduction whose elements are taken one after the other.
#[derive(Debug)]
struct Folded {
    fold: Fold,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Product,
    All,
    Any,
    Byte { is_signed: bool, kind: OfBytes },
}

#[derive(Debug, Clone, Copy)]
enum OfBytes {
    Max,
    Min,
    Mean { zero_point: i32 },
}

fn folded(builder: &Builder<'_, '_>, node: &Node, reduce: &reduce::Reduce) -> Option<Draft> {
    let input = &builder.graph.values[node.inputs[0]];
    let kind = match (reduce.reduction, input.operand_type()) {
        (reduce::Reduction::Prod, _) if input.is_float() => Kind::Product,
        (reduce::Reduction::All, OperandType::TensorBool8) => Kind::All,
        (reduce::Reduction::Any, OperandType::TensorBool8) => Kind::Any,
        (
            reduction,
            stored @ (OperandType::TensorQuant8Asymm | OperandType::TensorQuant8AsymmSigned),
        ) => Kind::Byte {
            is_signed: stored == OperandType::TensorQuant8AsymmSigned,
            kind: match reduction {
                reduce::Reduction::Max => OfBytes::Max,
                reduce::Reduction::Min => OfBytes::Min,
                reduce::Reduction::Mean => OfBytes::Mean { zero_point: input.operand.zero_point },
                _ => return None,
            },
        },
        _ => return None,
    };
    if let Kind::Byte { is_signed, kind } = kind {
        let kind = match kind {
            OfBytes::Max => Epilogue::Extreme(ByteReduction::Max),
            OfBytes::Min => Epilogue::Extreme(ByteReduction::Min),
            OfBytes::Mean { zero_point } => Epilogue::Mean { zero_point },
        };
        if let Some(draft) = bytes(builder, node, &reduce.axes, is_signed, kind) {
            return Some(draft);
        }
    }
    let lengths = super::movement::lengths(input);
    let fold = Fold::prepare(&lengths, &reduce.axes);
    // What becomes of nothing is left to the reference kernel.
    if input.elements() == 0 {
        return None;
    }
    Some(Draft {
        place: node.place,
        kernel: Box::new(Folded { fold, kind }),
        inputs: vec![Operand::Value(node.inputs[0])],
        outputs: node.outputs.clone(),
    })
}

/// A reduction of bytes in vectors.
#[derive(Debug)]
struct Bytes {
    reduce: ReduceBytes,
    is_signed: bool,
    epilogue: Epilogue,
}

/// What becomes of the sum, or which extreme is wanted.
#[derive(Debug, Clone, Copy)]
enum Epilogue {
    Extreme(ByteReduction),
    Mean {
        zero_point: i32,
    },
    /// The mean of what is stored in one way, stored in another.
    RequantizedMean {
        from: Quantization,
        to: Quantization,
        range: (i32, i32),
    },
}

fn bytes(
    builder: &Builder<'_, '_>,
    node: &Node,
    axes: &[usize],
    is_signed: bool,
    epilogue: Epilogue,
) -> Option<Draft> {
    let input = &builder.graph.values[node.inputs[0]];
    let reduction = match epilogue {
        Epilogue::Extreme(which) => which,
        Epilogue::Mean { .. } | Epilogue::RequantizedMean { .. } => ByteReduction::Sum,
    };
    let set = builder.settings.instruction_set;
    let lengths = super::movement::lengths(input);
    let reduce = ReduceBytes::prepare(set, reduction, &lengths, axes)?;
    Some(Draft {
        place: node.place,
        kernel: Box::new(Bytes { reduce, is_signed, epilogue }),
        inputs: vec![Operand::Value(node.inputs[0])],
        outputs: node.outputs.clone(),
    })
}

/// See [`crate::graph::Work::RequantizedMean`].
pub(super) fn requantized_mean(
    builder: &Builder<'_, '_>,
    node: &Node,
    axes: &[usize],
) -> Option<Draft> {
    let values = &builder.graph.values;
    let (input, output) = (&values[node.inputs[0]], &values[node.outputs[0]]);
    let range = output.operand_type().quantized_range()?;
    let (from, to) = (quantization(input), quantization(output));
    let epilogue = Epilogue::RequantizedMean { from, to, range };
    bytes(builder, node, axes, is_signed(input)?, epilogue)
}

impl Kernel for Bytes {
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // Sums of bytes.
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        let (team, reduce) = (&mut *run.team, &self.reduce);
        let count = reduce.count() as f64;
        // What of the sum stands for 0.
        let zeros = |zero_point: i32| f64::from(zero_point) * count;
        /// Of bytes of some type.
        macro_rules! reduced {
            ($Byte:ty) => {{
                let input = bytemuck::cast_slice(inputs.bytes(0));
                let output = bytemuck::cast_slice_mut(output);
                match self.epilogue {
                    Epilogue::Extreme(_) => {
                        reduce.run::<$Byte, $Byte>(team, input, output, Stored::nearest);
                    }
                    Epilogue::Mean { zero_point } => {
                        reduce.run::<$Byte, $Byte>(team, input, output, |sum| {
                            let mean = (f64::from(sum) - zeros(zero_point)) / count;
                            Stored::nearest(zero_point + mean.round() as i32)
                        });
                    }
                    Epilogue::RequantizedMean { from, to, range } => {
                        reduce.run::<$Byte, $Byte>(team, input, output, |sum| {
                            let steps = f64::from(sum) - zeros(from.zero_point);
                            let mean = (steps * f64::from(from.scale) / count) as f32;
                            Stored::nearest(quantize(mean, to.scale, to.zero_point, range))
                        });
                    }
                }
            }};
        }
        if self.is_signed {
            reduced!(i8);
        } else {
            reduced!(u8);
        }
        Ok(())
    }

    fn name(&self) -> String {
        let function = match self.epilogue {
            Epilogue::Extreme(ByteReduction::Max) => "max",
            Epilogue::Extreme(ByteReduction::Min) => "min",
            Epilogue::Extreme(ByteReduction::Sum) => "sum",
            Epilogue::Mean { .. } | Epilogue::RequantizedMean { .. } => "mean",
        };
        format!("reduce {function} {}", name::quantized(self.is_signed))
    }
}

impl Folded {
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // Sums of bytes.
    fn fold_bytes<T: Stored>(&self, team: &mut Team, kind: OfBytes, input: &[T], output: &mut [T]) {
        let fold = &self.fold;
        match kind {
            OfBytes::Max => fold.run(team, input, output, T::LEAST, T::max, |it| it),
            OfBytes::Min => fold.run(team, input, output, T::GREATEST, T::min, |it| it),
            OfBytes::Mean { zero_point } => {
                let count = fold.count() as f64;
                let add = |sum: i64, element: T| sum + (element.into() - i64::from(zero_point));
                fold.run(team, input, output, 0, add, |sum| {
                    T::nearest(zero_point + (sum as f64 / count).round() as i32)
                });
            }
        }
    }
}

/// A byte with or without a sign.
trait Stored: bytemuck::Pod + Ord + Into<i64> + Send + Sync {
    const LEAST: Self;
    const GREATEST: Self;

    fn nearest(number: i32) -> Self;
}

impl Stored for u8 {
    const LEAST: Self = Self::MIN;
    const GREATEST: Self = Self::MAX;

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Clamped.
    fn nearest(number: i32) -> Self {
        number.clamp(0, 255) as Self
    }
}

impl Stored for i8 {
    const LEAST: Self = Self::MIN;
    const GREATEST: Self = Self::MAX;

    #[allow(clippy::cast_possible_truncation)] // Clamped.
    fn nearest(number: i32) -> Self {
        number.clamp(-128, 127) as Self
    }
}

impl Kernel for Folded {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        let (team, bytes) = (&mut *run.team, inputs.bytes(0));
        match self.kind {
            Kind::Product => {
                // Nothing makes a product with a zero in it anything else.
                let step = |product: f64, element: f32| {
                    if product == 0.0 || element == 0.0 {
                        0.0
                    } else {
                        product * f64::from(element)
                    }
                };
                let output = bytemuck::cast_slice_mut(output);
                #[allow(clippy::cast_possible_truncation)] // Rounded once.
                self.fold.run(team, inputs.floats(0), output, 1.0, step, |it| it as f32);
            }
            Kind::All => {
                let step = |all: bool, element: u8| all && element != 0;
                self.fold.run(team, bytes, output, true, step, u8::from);
            }
            Kind::Any => {
                let step = |any: bool, element: u8| any || element != 0;
                self.fold.run(team, bytes, output, false, step, u8::from);
            }
            Kind::Byte { is_signed: false, kind } => {
                self.fold_bytes::<u8>(team, kind, bytes, output);
            }
            Kind::Byte { is_signed: true, kind } => {
                let output = bytemuck::cast_slice_mut(output);
                self.fold_bytes::<i8>(team, kind, bytemuck::cast_slice(bytes), output);
            }
        }
        Ok(())
    }

    fn name(&self) -> String {
        match self.kind {
            Kind::Product => "reduce product f32".to_owned(),
            Kind::All => "reduce all bool".to_owned(),
            Kind::Any => "reduce any bool".to_owned(),
            Kind::Byte { is_signed, kind } => {
                let function = match kind {
                    OfBytes::Max => "max",
                    OfBytes::Min => "min",
                    OfBytes::Mean { .. } => "mean",
                };
                format!("reduce {function} {}", name::quantized(is_signed))
            }
        }
    }
}

impl Kernel for ReduceKernel {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        self.reduce.run(run.team, inputs.floats(0), bytemuck::cast_slice_mut(output));
        Ok(())
    }

    fn name(&self) -> String {
        let function = match self.reduction {
            Reduction::Mean => "mean",
            Reduction::Sum => "sum",
            Reduction::Max => "max",
            Reduction::Min => "min",
        };
        format!("reduce {function} f32")
    }
}
