//! Reductions over any axes.

use crate::graph::{Node, RequantizedMean};
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Run, name};
use crate::why::Why;
use nnhal_driver::EngineError;
use nnhal_hal::OperandType;
use nnhal_kernels::quantized_elementwise::Quantization;
use nnhal_kernels::reduction::{ByteReduction, Fold, Reduce, ReduceBytes, Reduction};
use nnhal_kernels::{Team, TooLarge};
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
) -> Result<Draft, Why> {
    let input = builder.graph.input(node, 0);
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
    let set = builder.settings.instruction_set;
    let reduce = Reduce::prepare(set, reduction, &input.lengths(), &reduce.axes);
    Ok(Draft::new(node, ReduceKernel { reduce, reduction }, [node.inputs[0]]))
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

fn folded(builder: &Builder<'_, '_>, node: &Node, reduce: &reduce::Reduce) -> Result<Draft, Why> {
    let input = builder.graph.input(node, 0);
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
                _ => return Err(input.of_other_type("floats")),
            },
        },
        (reduce::Reduction::All | reduce::Reduction::Any, _) => {
            return Err(input.of_other_type("TENSOR_BOOL8"));
        }
        (reduce::Reduction::Sum | reduce::Reduction::Prod, _) => {
            return Err(input.of_other_type("floats"));
        }
        _ => return Err(input.of_other_type("floats or 8-bit integers")),
    };
    if let Kind::Byte { is_signed, kind } = kind {
        let kind = match kind {
            OfBytes::Max => Epilogue::Extreme(ByteReduction::Max),
            OfBytes::Min => Epilogue::Extreme(ByteReduction::Min),
            OfBytes::Mean { zero_point } => Epilogue::Mean { zero_point },
        };
        if let Some(draft) = bytes(builder, node, &reduce.axes, is_signed, kind) {
            return Ok(draft);
        }
    }
    // What becomes of nothing is left to the reference kernel.
    if input.elements() == 0 {
        return Err(input.empty());
    }
    let fold = Fold::prepare(&input.lengths(), &reduce.axes);
    Ok(Draft::new(node, Folded { fold, kind }, [node.inputs[0]]))
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

/// `None` if it is of more bytes than the kernel takes, or of none.
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
    let reduce = ReduceBytes::prepare(set, reduction, &input.lengths(), axes)?;
    Some(Draft::new(node, Bytes { reduce, is_signed, epilogue }, [node.inputs[0]]))
}

/// See [`crate::graph::Work::RequantizedMean`].
pub(super) fn requantized_mean(
    builder: &Builder<'_, '_>,
    node: &Node,
    mean: &RequantizedMean,
) -> Result<Draft, TooLarge> {
    let values = &builder.graph.values;
    let RequantizedMean { axes, is_signed, range } = mean;
    let (from, to) =
        (values[node.inputs[0]].quantization(), values[node.outputs[0]].quantization());
    let epilogue = Epilogue::RequantizedMean { from, to, range: *range };
    // The pass has counted them.
    let refusal = TooLarge { what: "a sum of bytes", wanted: None, left: None };
    bytes(builder, node, axes, *is_signed, epilogue).ok_or(refusal)
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
