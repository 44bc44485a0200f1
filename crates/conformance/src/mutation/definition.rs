//! Whether a definition allows a list of arguments: by nothing but the rows and forms of its
//! signature, so that validators can be judged by it.

use nnhal_hal::{HalVersion, Operand, OperandLifeTime, OperandType, Operation, Subgraph};
use nnhal_ops::{Form, Parameter, Presence, Row, Signature};

/// An argument, as far as signatures look at it.
#[derive(Clone, Copy)]
struct Argument {
    operand_type: OperandType,
    is_omitted: bool,
}

impl Argument {
    fn of(operand: &Operand) -> Self {
        let is_omitted = operand.lifetime == OperandLifeTime::NoValue;
        Self { operand_type: operand.operand_type, is_omitted }
    }
}

/// Whether the definition, as of a version, has such arguments. True where it is not known, or where
/// other rules decide (IF and WHILE).
pub(super) fn allows(graph: &Subgraph, operation: &Operation, version: HalVersion) -> bool {
    let Some(signature) = Signature::of(operation.operation_type) else { return true };
    let arguments = |indexes: &[u32]| -> Vec<Argument> {
        indexes.iter().map(|index| Argument::of(&graph.operands[*index as usize])).collect()
    };
    let (inputs, outputs) = (arguments(&operation.inputs), arguments(&operation.outputs));
    let forms = signature.forms.iter().filter(|form: &&Form| form.since <= version);
    forms.into_iter().any(|form| {
        signature.rows.iter().filter(|row: &&Row| row.since <= version).any(|row| {
            fits(form.inputs, row, &inputs, version) && fits(form.outputs, row, &outputs, version)
        })
    })
}

fn fits(parameters: &[Parameter], row: &Row, arguments: &[Argument], version: HalVersion) -> bool {
    let Some((parameter, later)) = parameters.split_first() else { return arguments.is_empty() };
    let may_be = |argument: &Argument| {
        parameter.type_in(row).is_none_or(|it| it == argument.operand_type)
            && (!argument.is_omitted || parameter.may_be_omitted())
    };
    let one = |since: HalVersion| {
        arguments.split_first().is_some_and(|(argument, rest)| {
            since <= version && may_be(argument) && fits(later, row, rest, version)
        })
    };
    match parameter.presence {
        Presence::Required | Presence::Omittable => one(HalVersion::V1_0),
        // The list may end here.
        Presence::Trailing(since) | Presence::TrailingOmittable(since) => {
            arguments.is_empty() || one(since)
        }
        // All but what is needed for those that follow.
        Presence::Repeated(least) => {
            let Some(times) = arguments.len().checked_sub(later.len()) else { return false };
            let (these, rest) = arguments.split_at(times);
            times >= least && these.iter().all(may_be) && fits(later, row, rest, version)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnhal_hal::{OperandSpec, OperationType, SubgraphBuilder};

    /// Whether the only operation of a graph is allowed, by version.
    fn versions(
        operation_type: OperationType,
        inputs: impl IntoIterator<Item = OperandSpec>,
        omits_last: bool,
        output: OperandSpec,
    ) -> Vec<HalVersion> {
        let mut graph = SubgraphBuilder::new();
        let mut ids: Vec<_> = inputs.into_iter().map(|spec| graph.input("x", spec)).collect();
        if omits_last && let Some(last) = ids.pop() {
            let spec = graph.spec(last);
            ids.push(graph.omitted(spec));
        }
        graph.operation(operation_type, &ids, output);
        let graph = graph.subgraph_so_far();
        let is_allowed = |version: &HalVersion| allows(graph, &graph.operations[0], *version);
        HalVersion::ALL.iter().copied().filter(is_allowed).collect()
    }

    fn float() -> OperandSpec {
        OperandSpec::tensor_float32([1, 2, 2, 1])
    }

    fn scalar(operand_type: OperandType) -> OperandSpec {
        OperandSpec::scalar(operand_type)
    }

    #[test]
    fn rows_forms_and_trailing_arguments_have_versions() {
        let (int, flag) = (scalar(OperandType::Int32), scalar(OperandType::Bool));
        let resize = |last: &[&OperandSpec]| {
            let inputs = [float(), int.clone(), int.clone()].into_iter();
            let inputs = inputs.chain(last.iter().map(|spec| (*spec).clone()));
            versions(OperationType::ResizeBilinear, inputs, false, float())
        };
        assert_eq!(resize(&[])[0], HalVersion::V1_0);
        assert_eq!(resize(&[&flag])[0], HalVersion::V1_2);
        assert_eq!(resize(&[&flag, &flag, &flag])[0], HalVersion::V1_3);
        assert!(resize(&[&int]).is_empty());
        assert!(resize(&[&flag, &flag, &flag, &flag]).is_empty());
        let half = || OperandSpec::tensor_float16([1, 2, 2, 1]);
        let floor = |input, output| versions(OperationType::Floor, [input], false, output);
        assert_eq!(floor(half(), half())[0], HalVersion::V1_2);
        assert!(floor(half(), float()).is_empty());
    }

    #[test]
    fn any_number_of_inputs_where_they_repeat() {
        let concatenate = |count| {
            let inputs = std::iter::repeat_n(float(), count);
            let inputs = inputs.chain([scalar(OperandType::Int32)]);
            versions(OperationType::Concatenation, inputs, false, float())
        };
        assert!(concatenate(0).is_empty());
        assert_eq!(concatenate(1).len(), HalVersion::ALL.len());
        assert_eq!(concatenate(9).len(), HalVersion::ALL.len());
    }

    #[test]
    fn only_optional_arguments_may_be_left_out() {
        let add = |omits_last| {
            let inputs = [float(), float(), scalar(OperandType::Int32)];
            versions(OperationType::Add, inputs, omits_last, float())
        };
        assert_eq!(add(false).len(), HalVersion::ALL.len());
        assert!(add(true).is_empty());
    }
}
