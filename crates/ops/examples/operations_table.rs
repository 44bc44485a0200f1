//! Writes `docs/operations.md`: which operand types each operation takes, and since which version
//! of the interface, as the signatures say it.
//!
//!     cargo run -q -p nnhal-ops --example operations_table > docs/operations.md
#![allow(clippy::print_stdout)] // What it is for.

use nnhal_hal::{HalVersion, OperandType, OperationType};
use nnhal_ops::{Form, Parameter, ParameterType, Presence, Signature};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The columns of the table, in the order in which people look for them.
const TENSOR_TYPES: [OperandType; 10] = [
    OperandType::TensorFloat32,
    OperandType::TensorFloat16,
    OperandType::TensorQuant8Asymm,
    OperandType::TensorQuant8AsymmSigned,
    OperandType::TensorQuant8SymmPerChannel,
    OperandType::TensorQuant8Symm,
    OperandType::TensorQuant16Symm,
    OperandType::TensorQuant16Asymm,
    OperandType::TensorInt32,
    OperandType::TensorBool8,
];

/// This many names beside the first are not written out.
const MANY_NAMES: usize = 5;

const INTRODUCTION: &str = "\
# Operations and their types

Written by a program from the signatures in `crates/ops/src/operations`. Do not edit; after a change
of a signature run

    cargo run -q -p nnhal-ops --example operations_table > docs/operations.md

Versions are those of the interface: 1.0 to 1.3 are HALs, fl6 and fl7 the feature levels 6 and 7 of
NNAPI, which only the AIDL interface has.

## Types

A cell says since which version the operation takes the type as its *main operand*, which is named
beside the operation: the first one whose type can be chosen, or the first tensor. Where only other
operands have the type, the first of them is in brackets. Types that go together are below,
with all arguments. What a signature cannot say can ask for a newer version too, for example a
rank that older definitions leave out: that stands with the operation, under `Operation::since`.
";

/// The whole page.
pub fn render() -> String {
    let signatures: Vec<&Signature> = OperationType::FUNDAMENTAL
        .iter()
        .filter_map(|operation| Signature::of(*operation))
        .collect();
    let mut page = String::from(INTRODUCTION);
    table(&mut page, &signatures);
    page.push_str(
        "\n## Arguments\n\n\
         A line a form of the argument list. What has a type beside it always has that type; a name \
         alone\nhas a type that the table below allows, together with the others of its row. `name?` \
         may be left out\n(`NO_VALUE`), `name...` is any number of arguments. The list may end before \
         `[`; since which version\nit may go on stands before `]`, and `= n` is what an argument \
         counts as when the list ends before it.\n",
    );
    for signature in signatures {
        operation(&mut page, signature);
    }
    page
}

// Writing to a `String` cannot fail, so what `writeln!` returns is dropped here once.
fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = page.write_fmt(text);
    page.push('\n');
}

fn table(page: &mut String, signatures: &[&Signature]) {
    let short = |operand_type: OperandType| operand_type.to_string().replace("TENSOR_", "");
    let titles = TENSOR_TYPES.map(short).join(" | ");
    line(page, format_args!("\n| No. | Operation | Main operand | Since | {titles} |"));
    line(page, format_args!("|--:|---|---|---|{}", "---|".repeat(TENSOR_TYPES.len())));
    for signature in signatures {
        let uses = uses(signature);
        let cells = TENSOR_TYPES.map(|operand_type| {
            uses.types.get(&operand_type).map_or(String::new(), |(since, role)| match role {
                None => since.to_string(),
                Some(name) => format!("{since} ({name})"),
            })
        });
        line(
            page,
            format_args!(
                "| {} | [{operation}](#{anchor}) | {} | {} | {} |",
                signature.operation.code(),
                uses.main.unwrap_or("any"),
                signature.operation.since(),
                cells.join(" | "),
                operation = signature.operation,
                anchor = signature.operation.to_string().to_lowercase(),
            ),
        );
    }
}

/// Which tensor types an operation takes.
struct Uses {
    /// The operand that the others are seen from.
    main: Option<&'static str>,
    /// By type: since when, and the operand that has it, where that is not the main one.
    types: BTreeMap<OperandType, (HalVersion, Option<&'static str>)>,
}

fn arguments(form: &Form) -> impl Iterator<Item = &'static Parameter> + Clone {
    form.inputs.iter().chain(form.outputs)
}

fn is_tensor(operand_type: Option<OperandType>) -> bool {
    operand_type.and_then(OperandType::is_tensor).unwrap_or(false)
}

/// The version that a list needs which goes on as far as this argument.
fn since(form: &Form, parameter: &Parameter) -> HalVersion {
    let mut since = form.since;
    for earlier in form.inputs {
        if let Presence::Trailing(version) | Presence::TrailingOmittable(version) = earlier.presence
        {
            since = since.max(version);
        }
        if std::ptr::eq(earlier, parameter) {
            return since;
        }
    }
    // An output, whatever the length of the list.
    form.since
}

fn uses(signature: &Signature) -> Uses {
    let all = || signature.forms.iter().flat_map(arguments);
    let has_choice = |parameter: &&Parameter| {
        matches!(parameter.parameter_type, ParameterType::Column(_))
            && signature.rows.iter().all(|row| is_tensor(parameter.type_in(row)))
    };
    let is_any_tensor =
        |parameter: &&Parameter| signature.rows.iter().any(|row| is_tensor(parameter.type_in(row)));
    let main = all().find(has_choice).or_else(|| all().find(is_any_tensor)).map(|it| it.name);
    let mut types: BTreeMap<_, (HalVersion, Option<&'static str>)> = BTreeMap::new();
    for form in signature.forms {
        for (parameter, row) in
            arguments(form).flat_map(|it| signature.rows.iter().map(move |row| (it, row)))
        {
            let Some(operand_type) = parameter.type_in(row).filter(|it| is_tensor(Some(*it)))
            else {
                continue;
            };
            let role = (main != Some(parameter.name)).then_some(parameter.name);
            let since = signature.operation.since().max(row.since).max(since(form, parameter));
            types
                .entry(operand_type)
                .and_modify(|known| {
                    // The main operand before others; then the oldest version.
                    if (role.is_some(), since) < (known.1.is_some(), known.0) {
                        *known = (since, role);
                    }
                })
                .or_insert((since, role));
        }
    }
    Uses { main, types }
}

fn operation(page: &mut String, signature: &Signature) {
    line(page, format_args!("\n### {}\n", signature.operation));
    line(
        page,
        format_args!(
            "Number {}, since {}.\n",
            signature.operation.code(),
            signature.operation.since()
        ),
    );
    for form in signature.forms {
        let since = if form.since > signature.operation.since() {
            format!(" (since {})", form.since)
        } else {
            String::new()
        };
        line(page, format_args!("- {} → {}{since}", list(form.inputs), list(form.outputs)));
    }
    let columns = signature.rows.iter().map(|row| row.types.len()).max().unwrap_or(0);
    if columns > 0 {
        rows(page, signature, columns);
    }
}

/// The types that go together.
fn rows(page: &mut String, signature: &Signature, columns: usize) {
    let titles: Vec<String> = (0..columns).map(|column| names(signature, column)).collect();
    line(page, format_args!("\n| Since | {} |", titles.join(" | ")));
    line(page, format_args!("|---|{}", "---|".repeat(columns)));
    for row in signature.rows {
        let types: Vec<_> = row.types.iter().map(OperandType::to_string).collect();
        let since = signature.operation.since().max(row.since);
        line(page, format_args!("| {since} | {} |", types.join(" | ")));
    }
}

/// The arguments whose type is in a column of the rows.
fn names(signature: &Signature, column: usize) -> String {
    let mut names: Vec<&str> = Vec::new();
    for parameter in signature.forms.iter().flat_map(arguments) {
        if parameter.parameter_type == ParameterType::Column(column)
            && !names.contains(&parameter.name)
        {
            names.push(parameter.name);
        }
    }
    match names.as_slice() {
        [first, rest @ ..] if rest.len() >= MANY_NAMES => {
            format!("{first} and {} others", rest.len())
        }
        _ => names.join(", "),
    }
}

/// An argument list. The list may end before an argument that is trailing; those that follow go
/// with it.
fn list(parameters: &[Parameter]) -> String {
    let mut text = String::new();
    let mut open: Option<HalVersion> = None;
    let close = |open: Option<HalVersion>| match open {
        Some(since) => format!(" since {since}]"),
        None => String::new(),
    };
    for (index, parameter) in parameters.iter().enumerate() {
        let starts = match parameter.presence {
            Presence::Trailing(since) | Presence::TrailingOmittable(since) => Some(since),
            _ => None,
        };
        if starts.is_some() {
            text.push_str(&close(open));
        }
        if index > 0 {
            text.push_str(", ");
        }
        if starts.is_some() {
            text.push('[');
            open = starts;
        }
        text.push_str(&argument(parameter, open.is_some()));
    }
    text.push_str(&close(open));
    text
}

fn argument(parameter: &Parameter, may_be_missing: bool) -> String {
    let mut text = parameter.name.to_owned();
    if parameter.may_be_omitted() {
        text.push('?');
    }
    if matches!(parameter.presence, Presence::Repeated(_)) {
        text.push_str("...");
    }
    match parameter.parameter_type {
        ParameterType::Fixed(operand_type) => text = format!("{text} `{operand_type}`"),
        ParameterType::Any => text.push_str(" of any type"),
        ParameterType::Column(_) => {}
    }
    if let Presence::Repeated(least @ 1..) = parameter.presence {
        text = format!("{text} ({least} or more)");
    }
    match (parameter.default, parameter.parameter_type) {
        (Some(value), ParameterType::Fixed(OperandType::Bool)) if may_be_missing => {
            format!("{text} = {}", value != 0)
        }
        (Some(value), _) if may_be_missing => format!("{text} = {value}"),
        _ => text,
    }
}

#[allow(dead_code)] // The test that compares the page reads this file as a module.
fn main() {
    print!("{}", render());
}
