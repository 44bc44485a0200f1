//! [`Signature`]: which argument types an operation takes, and since which version, as data.
//!
//! An operation is written as a few *forms* of its argument list (CONV_2D with explicit padding,
//! CONV_2D with a padding scheme) and a few *rows* of tensor types (all float32; quantized input
//! with quantized filter and int32 bias). Forms name a column of the rows where a type varies. A
//! call fits the signature if it fits one form with one row; the version it needs is the latest
//! of the form's, the row's and those of the trailing arguments it uses.
//!
//! The validator, generators of random models and the table of operations all read this data.

use crate::call::Call;
use crate::error::{Fault, OperationError, Subject};
use crate::extension::type_name;
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// Which argument types an operation takes.
#[derive(Debug, Clone, Copy)]
pub struct Signature {
    /// The operation whose arguments these are.
    pub operation: OperationType,
    /// What the columns of [`ParameterType::Column`] may be together.
    pub rows: &'static [Row],
    /// The argument lists.
    pub forms: &'static [Form],
}

/// One combination of types.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// What brought it.
    pub since: HalVersion,
    /// By column.
    pub types: &'static [OperandType],
}

/// The rows of many operations of version 1.1.
pub(crate) const NUMBERS_SINCE_1_1: &[Row] = &[
    Row::new(HalVersion::V1_1, &[OperandType::TensorFloat32]),
    Row::new(HalVersion::V1_1, &[OperandType::TensorQuant8Asymm]),
    Row::new(HalVersion::V1_2, &[OperandType::TensorFloat16]),
    Row::new(HalVersion::V1_3, &[OperandType::TensorQuant8AsymmSigned]),
];

/// The rows of many operations of version 1.2, which take integers too.
pub(crate) const NUMBERS_SINCE_1_2: &[Row] = &[
    Row::new(HalVersion::V1_2, &[OperandType::TensorFloat32]),
    Row::new(HalVersion::V1_2, &[OperandType::TensorFloat16]),
    Row::new(HalVersion::V1_2, &[OperandType::TensorInt32]),
    Row::new(HalVersion::V1_2, &[OperandType::TensorQuant8Asymm]),
    Row::new(HalVersion::V1_3, &[OperandType::TensorQuant8AsymmSigned]),
];

/// One kind of argument list.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// What brought it.
    pub since: HalVersion,
    /// By position.
    pub inputs: &'static [Parameter],
    /// By position.
    pub outputs: &'static [Parameter],
}

/// One place of an argument list.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// The name that the definition gives it.
    pub name: &'static str,
    /// What may stand there.
    pub parameter_type: ParameterType,
    /// Whether something must.
    pub presence: Presence,
    /// What a scalar counts as where the list ends before it: an `INT32`, or a `BOOL` as 0 or 1.
    pub default: Option<i32>,
}

/// What may stand in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterType {
    /// What the chosen row says in this column.
    Column(usize),
    /// Always this.
    Fixed(OperandType),
    /// Whatever the control-flow rules allow.
    Any,
}

/// Whether something must stand in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// A value is needed.
    Required,
    /// The place must be there, the value may be left out (`NO_VALUE`).
    Omittable,
    /// The list may end before this place; a list that goes on needs this version.
    Trailing(HalVersion),
    /// As `Trailing`, and the value may be left out.
    TrailingOmittable(HalVersion),
    /// This place stands for any number of arguments, at least this many.
    Repeated(usize),
}

impl Row {
    /// A combination of types since a version.
    pub const fn new(since: HalVersion, types: &'static [OperandType]) -> Self {
        Self { since, types }
    }
}

impl Form {
    /// An argument list since a version.
    pub const fn new(
        since: HalVersion,
        inputs: &'static [Parameter],
        outputs: &'static [Parameter],
    ) -> Self {
        Self { since, inputs, outputs }
    }
}

impl Parameter {
    const fn new(name: &'static str, parameter_type: ParameterType) -> Self {
        // Every optional flag of the interface is off unless said otherwise.
        let default = match parameter_type {
            ParameterType::Fixed(OperandType::Bool) => Some(0),
            _ => None,
        };
        Self { name, parameter_type, presence: Presence::Required, default }
    }

    /// The type in a column of the row.
    pub const fn column(name: &'static str, column: usize) -> Self {
        Self::new(name, ParameterType::Column(column))
    }

    /// Always the same type.
    pub const fn fixed(name: &'static str, operand_type: OperandType) -> Self {
        Self::new(name, ParameterType::Fixed(operand_type))
    }

    /// An `INT32`.
    pub const fn int32(name: &'static str) -> Self {
        Self::fixed(name, OperandType::Int32)
    }

    /// A `FLOAT32`.
    pub const fn float32(name: &'static str) -> Self {
        Self::fixed(name, OperandType::Float32)
    }

    /// A `BOOL`.
    pub const fn bool(name: &'static str) -> Self {
        Self::fixed(name, OperandType::Bool)
    }

    /// A `TENSOR_INT32`.
    pub const fn tensor_int32(name: &'static str) -> Self {
        Self::fixed(name, OperandType::TensorInt32)
    }

    /// Whatever the control-flow rules allow.
    pub const fn any(name: &'static str) -> Self {
        Self::new(name, ParameterType::Any)
    }

    /// The same place, but the value may be left out.
    #[must_use]
    pub const fn omittable(self) -> Self {
        let presence = match self.presence {
            Presence::Trailing(since) => Presence::TrailingOmittable(since),
            _ => Presence::Omittable,
        };
        Self { presence, ..self }
    }

    /// The same place, but the list may end before it.
    #[must_use]
    pub const fn trailing(self, since: HalVersion) -> Self {
        let presence = match self.presence {
            Presence::Omittable => Presence::TrailingOmittable(since),
            _ => Presence::Trailing(since),
        };
        Self { presence, ..self }
    }

    /// The same place, with what it counts as where the list ends before it.
    #[must_use]
    pub const fn defaults_to(self, value: i32) -> Self {
        Self { default: Some(value), ..self }
    }

    /// The same place, standing for any number of arguments, at least this many.
    #[must_use]
    pub const fn repeated(self, at_least: usize) -> Self {
        Self { presence: Presence::Repeated(at_least), ..self }
    }

    /// What the place may hold with a given row.
    pub fn type_in(&self, row: &Row) -> Option<OperandType> {
        match self.parameter_type {
            ParameterType::Column(column) => row.types.get(column).copied(),
            ParameterType::Fixed(operand_type) => Some(operand_type),
            ParameterType::Any => None,
        }
    }

    /// Whether the value may be left out.
    pub fn may_be_omitted(&self) -> bool {
        matches!(self.presence, Presence::Omittable | Presence::TrailingOmittable(_))
    }
}

/// How an argument list of some length is over a form's parameters.
struct Alignment {
    /// For each argument the parameter it fills.
    parameters: Vec<&'static Parameter>,
    /// The version that the length asks for.
    since: HalVersion,
}

/// Lays `count` arguments over the parameters; `None` if the form has no lists of that length.
fn align(parameters: &'static [Parameter], count: usize) -> Option<Alignment> {
    let repeated = parameters.iter().position(|it| matches!(it.presence, Presence::Repeated(_)));
    if let Some(at) = repeated {
        let others = parameters.len() - 1;
        let times = count.checked_sub(others)?;
        if matches!(parameters[at].presence, Presence::Repeated(least) if times < least) {
            return None;
        }
        let laid = parameters[..at]
            .iter()
            .chain(std::iter::repeat_n(&parameters[at], times))
            .chain(&parameters[at + 1..]);
        return Some(Alignment { parameters: laid.collect(), since: HalVersion::V1_0 });
    }
    let (used, rest) = parameters.split_at_checked(count)?;
    let may_end_here = match rest.first().map(|parameter| parameter.presence) {
        None | Some(Presence::Trailing(_) | Presence::TrailingOmittable(_)) => true,
        Some(_) => false,
    };
    if !may_end_here {
        return None;
    }
    let since = used.iter().fold(HalVersion::V1_0, |since, parameter| match parameter.presence {
        Presence::Trailing(newer) | Presence::TrailingOmittable(newer) => since.max(newer),
        _ => since,
    });
    Some(Alignment { parameters: used.iter().collect(), since })
}

impl Signature {
    /// The oldest version whose definition has these argument types. An argument without which there is
    /// nothing to compute must not be left out.
    ///
    /// # Errors
    /// [`Fault::Invalid`] with the argument in which the best-fitting form and row differ.
    pub fn since(&self, call: &Call<'_>) -> Result<HalVersion, Fault> {
        self.since_demanding(call, true)
    }

    /// The same by the number of arguments and their types alone: any may be left out.
    ///
    /// # Errors
    /// As [`Signature::since`].
    pub fn since_by_types(&self, call: &Call<'_>) -> Result<HalVersion, Fault> {
        self.since_demanding(call, false)
    }

    fn since_demanding(&self, call: &Call<'_>, values: bool) -> Result<HalVersion, Fault> {
        let mut best: Option<HalVersion> = None;
        // By whether only an argument is left out, and by how many fit.
        let mut closest: Option<((bool, usize), Mismatch)> = None;
        for form in self.forms {
            let (Some(inputs), Some(outputs)) = (
                align(form.inputs, call.inputs().len()),
                align(form.outputs, call.outputs().len()),
            ) else {
                continue;
            };
            for row in self.rows {
                let Some((position, wrong)) = mismatch(call, &inputs, &outputs, row, values) else {
                    let since = [form.since, row.since, inputs.since, outputs.since]
                        .into_iter()
                        .fold(self.operation.since(), HalVersion::max);
                    best = Some(best.map_or(since, |best| best.min(since)));
                    continue;
                };
                // What fits another row needs no sentence about what is wrong.
                if best.is_some() {
                    continue;
                }
                let is_left_out =
                    wrong.is_left_out() && mismatch(call, &inputs, &outputs, row, false).is_none();
                let nearness = (is_left_out, position);
                if closest.as_ref().is_none_or(|(nearest, _)| nearness > *nearest) {
                    closest = Some((nearness, wrong));
                }
            }
        }
        match (best, closest) {
            (Some(since), _) => Ok(since),
            (None, Some((_, wrong))) => Err(wrong.error(call).into()),
            (None, None) => Err(self.wrong_count(call)),
        }
    }

    /// How many of `count` inputs the list can do without: those at the end of which `is_default`,
    /// asked with position and default, says that they hold it. The list stays one that a form has.
    pub(crate) fn removable_inputs(
        &self,
        input_types: &[OperandType],
        is_default: impl Fn(usize, i32) -> bool,
    ) -> usize {
        let count = input_types.len();
        let fits = |form: &&Form| {
            align(form.inputs, count).is_some_and(|laid| {
                laid.parameters.iter().zip(input_types).all(|(parameter, operand_type)| {
                    match parameter.parameter_type {
                        ParameterType::Fixed(fixed) => fixed == *operand_type,
                        _ => true,
                    }
                })
            })
        };
        let Some(form) = self.forms.iter().find(fits) else { return 0 };
        let at_most = (0..count)
            .rev()
            .take_while(|index| {
                let default = form.inputs.get(*index).and_then(|parameter| parameter.default);
                default.is_some_and(|default| is_default(*index, default))
            })
            .count();
        (0..=at_most)
            .rev()
            .find(|removed| align(form.inputs, count - removed).is_some())
            .unwrap_or(0)
    }

    fn wrong_count(&self, call: &Call<'_>) -> Fault {
        let counts = |parameters: fn(&Form) -> &'static [Parameter]| {
            let mut counts: Vec<String> = self
                .forms
                .iter()
                .map(|form| {
                    let parameters = parameters(form);
                    match parameters.iter().find_map(|it| match it.presence {
                        Presence::Repeated(least) => Some(least),
                        _ => None,
                    }) {
                        Some(least) => format!("{} or more", parameters.len() - 1 + least),
                        None => {
                            let lengths = (0..=parameters.len())
                                .filter(|count| align(parameters, *count).is_some())
                                .map(|count| count.to_string());
                            lengths.collect::<Vec<_>>().join(" or ")
                        }
                    }
                })
                .collect();
            counts.dedup();
            counts.join(" or ")
        };
        call.wrong(
            "number of arguments",
            format!("{} inputs and {} outputs", call.inputs().len(), call.outputs().len()),
            format!(
                "{} inputs and {} outputs",
                counts(|form| form.inputs),
                counts(|form| form.outputs)
            ),
        )
    }

    /// Names the arguments of a call after the parameters of the form that fits best.
    pub(crate) fn name_arguments(&self, call: &mut Call<'_>) {
        let mut chosen: Option<(usize, Alignment)> = None;
        for form in self.forms {
            let Some(inputs) = align(form.inputs, call.inputs().len()) else { continue };
            let fits = inputs
                .parameters
                .iter()
                .zip(call.inputs())
                .filter(|(parameter, argument)| match parameter.parameter_type {
                    ParameterType::Fixed(operand_type) => operand_type == argument.operand_type,
                    _ => false,
                })
                .count();
            if chosen.as_ref().is_none_or(|(most, _)| fits > *most) {
                chosen = Some((fits, inputs));
            }
        }
        if let Some((_, inputs)) = chosen {
            for (index, parameter) in inputs.parameters.iter().enumerate() {
                call.name_input(index, parameter.name);
            }
        }
        let outputs = self.forms.iter().find_map(|form| align(form.outputs, call.outputs().len()));
        for (index, parameter) in
            outputs.into_iter().flat_map(|outputs| outputs.parameters).enumerate()
        {
            call.name_output(index, parameter.name);
        }
    }
}

/// An argument that does not fit.
struct Mismatch {
    subject: Subject,
    kind: MismatchKind,
}

enum MismatchKind {
    Type { found: OperandType, expected: OperandType },
    LeftOut,
}

impl Mismatch {
    fn is_left_out(&self) -> bool {
        matches!(self.kind, MismatchKind::LeftOut)
    }

    fn error(self, call: &Call<'_>) -> OperationError {
        let (what, found, expected) = match self.kind {
            MismatchKind::Type { found, expected } => {
                ("type", type_name(found), type_name(expected))
            }
            MismatchKind::LeftOut => ("value", "left out".into(), "a value".into()),
        };
        let operation = call.operation();
        OperationError { operation, subject: self.subject, what, found, expected }
    }
}

/// The first argument that does not fit, and how many did before it.
fn mismatch(
    call: &Call<'_>,
    inputs: &Alignment,
    outputs: &Alignment,
    row: &Row,
    demands_values: bool,
) -> Option<(usize, Mismatch)> {
    let ins = call.inputs().iter().zip(&inputs.parameters).map(|it| (true, it));
    let outs = call.outputs().iter().zip(&outputs.parameters).map(|it| (false, it));
    for (position, (is_input, (argument, parameter))) in ins.chain(outs).enumerate() {
        let kind = match parameter.type_in(row) {
            Some(expected) if expected != argument.operand_type => {
                MismatchKind::Type { found: argument.operand_type, expected }
            }
            _ if demands_values && argument.is_omitted() && !parameter.may_be_omitted() => {
                MismatchKind::LeftOut
            }
            _ => continue,
        };
        let subject = if is_input {
            Subject::Input(position, parameter.name)
        } else {
            Subject::Output(position - call.inputs().len(), parameter.name)
        };
        return Some((position, Mismatch { subject, kind }));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{ArgumentSource, Value};
    use crate::shape::Shape;
    use OperandType::{Bool, Int32, TensorFloat32, TensorQuant8Asymm};

    static EXAMPLE: Signature = Signature {
        operation: OperationType::Relu,
        rows: &[
            Row::new(HalVersion::V1_0, &[TensorFloat32]),
            Row::new(HalVersion::V1_1, &[TensorQuant8Asymm]),
        ],
        forms: &[Form::new(
            HalVersion::V1_0,
            &[
                Parameter::column("input", 0),
                Parameter::int32("stride"),
                Parameter::bool("layout").trailing(HalVersion::V1_2),
            ],
            &[Parameter::column("output", 0)],
        )],
    };

    fn since(inputs: &[OperandType], output: OperandType) -> Result<HalVersion, Fault> {
        let operand = |operand_type| nnhal_hal::Operand {
            operand_type,
            dimensions: vec![],
            number_of_consumers: 0,
            scale: 0.0,
            zero_point: 0,
            lifetime: nnhal_hal::OperandLifeTime::TemporaryVariable,
            location: nnhal_hal::DataLocation::default(),
            extra_params: nnhal_hal::ExtraParams::None,
        };
        let inputs: Vec<_> = inputs.iter().copied().map(operand).collect();
        let output = operand(output);
        let source =
            |operand| ArgumentSource { operand, shape: Shape::UNKNOWN, value: Value::NotKnown };
        let call = Call::new(OperationType::Relu, inputs.iter().map(source), [source(&output)]);
        EXAMPLE.since(&call)
    }

    #[test]
    fn model_25_rows_and_trailing_arguments_decide_the_version() {
        assert_eq!(since(&[TensorFloat32, Int32], TensorFloat32), Ok(HalVersion::V1_0));
        assert_eq!(since(&[TensorQuant8Asymm, Int32], TensorQuant8Asymm), Ok(HalVersion::V1_1));
        assert_eq!(since(&[TensorFloat32, Int32, Bool], TensorFloat32), Ok(HalVersion::V1_2));
    }

    #[test]
    fn model_25_a_mismatch_names_the_argument() {
        let message =
            |inputs: &[OperandType], output| since(inputs, output).unwrap_err().to_string();
        assert_eq!(
            message(&[TensorFloat32, Bool], TensorFloat32),
            "RELU: type of input 1 (stride) is BOOL, expected INT32"
        );
        assert_eq!(
            message(&[TensorFloat32, Int32], TensorQuant8Asymm),
            "RELU: type of output 0 (output) is TENSOR_QUANT8_ASYMM, expected TENSOR_FLOAT32"
        );
        assert_eq!(
            message(&[TensorFloat32], TensorFloat32),
            "RELU: number of arguments of the operation is 1 inputs and 1 outputs, \
             expected 2 or 3 inputs and 1 outputs"
        );
    }
}
