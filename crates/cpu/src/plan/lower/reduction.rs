//! Reductions over any axes.

use crate::graph::Node;
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Operand, Run};
use driver::EngineError;
use hal::OperandType;
use kernels::Team;
use kernels::reduction::{Fold, Reduce, Reduction};
use ops::operations::reduce;

#[derive(Debug)]
struct ReduceKernel(Reduce);

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
    Some(Draft {
        place: node.place,
        kernel: Box::new(ReduceKernel(Reduce::prepare(set, reduction, &lengths, &reduce.axes))),
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
    let lengths: Vec<usize> = input.dimensions.iter().map(|length| *length as usize).collect();
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
        "reduction".to_owned()
    }
}

impl Kernel for ReduceKernel {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        self.0.run(run.team, inputs.floats(0), bytemuck::cast_slice_mut(output));
        Ok(())
    }

    fn name(&self) -> String {
        "reduction".to_owned()
    }
}
