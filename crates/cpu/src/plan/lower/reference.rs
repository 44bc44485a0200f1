//! Steps that run the reference kernel of their operation.

use crate::graph::{Node, Value};
use crate::plan::arena::{Parts, StepMemory};
use crate::plan::execution::narrowed_until;
use crate::plan::{Builder, Draft, ELEMENTS_BY_THREAD, Kernel, Operand, Run};
use crate::why::Why;
use half::f16;
use nnhal_driver::EngineError;
use nnhal_interpreter::call_within;
use nnhal_kernels::{InstructionSet, for_each_slice};
use nnhal_ops::{AnyOperation, ArgumentSource, Call, Shape};

/// The reference kernel of an operation.
#[derive(Debug)]
struct ReferenceKernel {
    operation: AnyOperation,
    inputs: Vec<Described>,
    outputs: Vec<Described>,
    /// For the floats of 16 bits of inputs.
    set: InstructionSet,
    /// Why it runs, and no fast kernel.
    why: Why,
}

/// What the reference kernel knows of an operand.
#[derive(Debug)]
struct Described {
    operand: nnhal_hal::Operand,
    shape: Shape,
    is_omitted: bool,
    /// Which operand of the subgraph it is.
    index: u32,
    /// Kept as 32 bits while the plan runs.
    is_float16: bool,
}

impl Described {
    fn new(value: &Value<'_>) -> Self {
        let is_omitted = matches!(value.origin, crate::graph::Origin::Omitted);
        Self {
            operand: value.operand.clone().into_owned(),
            shape: if is_omitted {
                Shape::of_model(&value.operand.dimensions)
            } else {
                Shape::known(value.dimensions.iter().copied())
            },
            is_omitted,
            index: value.index.unwrap_or_default(),
            is_float16: value.is_float16() && !value.is_constant(),
        }
    }

    fn argument<'a>(&'a self, value: nnhal_ops::Value<'a>) -> ArgumentSource<'a> {
        ArgumentSource { operand: &self.operand, shape: self.shape.clone(), value }
    }
}

pub(super) fn lower(
    builder: &Builder<'_, '_>,
    node: &Node,
    operation: &AnyOperation,
    why: Why,
) -> Draft {
    let described = |id: &usize| Described::new(&builder.graph.values[*id]);
    Draft {
        place: node.place,
        kernel: Box::new(ReferenceKernel {
            operation: operation.clone(),
            inputs: node.inputs.iter().map(described).collect(),
            outputs: node.outputs.iter().map(described).collect(),
            set: builder.settings.instruction_set,
            why,
        }),
        inputs: node.inputs.iter().map(|id| Operand::Raw(*id)).collect(),
        outputs: node.outputs.clone(),
    }
}

impl Kernel for ReferenceKernel {
    fn run(&self, memory: StepMemory<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let place = memory.step.place;
        let mut parts = Parts::default();
        memory.split(&mut parts);
        let Parts { inputs, written: outputs } = parts;
        let narrow: Vec<Option<Vec<u8>>> = (self.inputs.iter().enumerate())
            .map(|(index, input)| {
                let narrow = || narrowed_until(self.set, inputs.bytes(index), run.budget);
                input.is_float16.then(narrow).transpose()
            })
            .collect::<Result<_, _>>()?;
        let value = |index: usize, input: &Described| match &narrow[index] {
            _ if input.is_omitted => nnhal_ops::Value::Omitted,
            Some(narrow) => nnhal_ops::Value::Known(narrow),
            None => nnhal_ops::Value::Known(inputs.bytes(index)),
        };
        let call = Call::new(
            place.operation_type,
            self.inputs.iter().enumerate().map(|(index, it)| it.argument(value(index, it))),
            self.outputs.iter().map(|output| output.argument(nnhal_ops::Value::NotKnown)),
        );
        let (ledger, budget) = (run.ledger, run.budget);
        call_within(place, call, ledger, budget, |call, failed| {
            let results = self.operation.reference(call).map_err(failed)?;
            for ((result, described), output) in results.iter().zip(&self.outputs).zip(outputs) {
                // Shapes that values decide need not be those that were declared.
                let found = Shape::known(result.dimensions.iter().copied());
                if found != described.shape {
                    return Err(EngineError::Shape {
                        place,
                        operand: described.index,
                        found,
                        expected: described.shape.clone(),
                    });
                }
                if described.is_float16 {
                    let (to, _) = output.as_chunks_mut::<4>();
                    let (from, _) = result.bytes.as_chunks();
                    for_each_slice(run.team, to, ELEMENTS_BY_THREAD, |start, part| {
                        for (to, from) in part.iter_mut().zip(&from[start..]) {
                            *to = f16::from_le_bytes(*from).to_f32().to_ne_bytes();
                        }
                    });
                } else {
                    run.copy(&result.bytes, output);
                }
            }
            Ok(())
        })
    }

    fn name(&self) -> String {
        "reference".to_owned()
    }

    fn why(&self) -> Option<&Why> {
        Some(&self.why)
    }
}
