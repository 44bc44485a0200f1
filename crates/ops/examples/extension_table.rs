//! Writes `docs/extension.md`: the operand types and operations of our extension, as their tables say it.
//!
//!     cargo run -q -p nnhal-ops --example extension_table > docs/extension.md
#![allow(clippy::print_stdout)] // What it is for.

use nnhal_hal::OperandType;
use nnhal_ops::extension::{ExtensionOperation, NAME, PREFIX, type_name, types::TYPES};
use nnhal_ops::{Form, Parameter, ParameterType, Presence, Row, Signature};
use std::collections::BTreeSet;
use std::fmt::Write;

const INTRODUCTION: &str = "\
# The extension: operations and types that the interface lacks

Written by a program from the tables in `crates/ops/src/extension`. Do not edit; after a change run

    cargo run -q -p nnhal-ops --example extension_table > docs/extension.md

`.tflite` files have operators, and types of elements, that the Neural Networks HAL does not define. The importer
makes them operations and types of an extension, by the interface's own mechanism (contract: DEV-EXT, EXT), which
the devices `nnhal-reference` and `nnhal-cpu` offer. Any device may; what these pages say is all that there is
to it. Numbers and names do not change; new operations get the next number.
";

const OPERATIONS: &str = "
## Operations

An operation that follows one of the interface takes that one's rules over, for the types below and for any number
of axes. A function of one, two or three numbers works element by element, and broadcasts. Quantized values are what
they stand for in operations that follow one of the interface, and the stored integers in all others and in CAST; a
scalar of the file has the shape `[1]`. A value that an operation excludes, such as an index outside of its axis,
makes an execution fail.

In an argument list `name...` is any number of arguments, `name?` may be left out, and the list may end before `[`.
";

#[allow(dead_code)] // Not of the test that compares.
fn main() {
    print!("{}", render());
}

/// The page.
pub fn render() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut line = |text: String| {
        page.push_str(&text);
        page.push('\n');
    };
    line(format!(
        "\nIts name is `{NAME}`. This project's programs write its prefix as {PREFIX:#06x}.\n"
    ));
    line("## Operand types\n".into());
    line("| Number | Name | Bytes | An element is |".into());
    line("|--:|---|--:|---|".into());
    for row in TYPES {
        line(format!("| {} | {} | {} | {} |", row.number, row.name, row.byte_size, row.meaning));
    }
    page.push_str(OPERATIONS);
    for operation in ExtensionOperation::ALL {
        describe(&mut page, *operation);
    }
    page
}

fn describe(page: &mut String, operation: ExtensionOperation) {
    let signature = operation.signature();
    // Writing to a `String` cannot fail.
    let _ = write!(
        page,
        "\n### {} {}\n\n{}.",
        operation.number(),
        operation.name(),
        sentence(operation)
    );
    if let Some(like) = operation.like() {
        let _ = write!(
            page,
            " Follows the interface's [{like}](operations.md#{}).",
            like.to_string().to_lowercase()
        );
    }
    page.push_str("\n\n");
    for form in signature.forms {
        let _ = writeln!(page, "- {} → {}", list(form.inputs), list(form.outputs));
    }
    types(page, signature);
}

/// The meaning, as it begins a line.
fn sentence(operation: ExtensionOperation) -> String {
    let meaning = operation.meaning();
    let mut letters = meaning.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// The types of each column: lists where all that they allow go together, otherwise row by row.
fn types(page: &mut String, signature: &Signature) {
    let columns = signature.rows.iter().map(|row| row.types.len()).max().unwrap_or(0);
    if columns == 0 {
        return;
    }
    let of_column = |column: usize| -> Vec<OperandType> {
        let mut seen = BTreeSet::new();
        let types = signature.rows.iter().filter_map(|row| row.types.get(column).copied());
        types.filter(|it| seen.insert(*it)).collect()
    };
    let all: Vec<Vec<OperandType>> = (0..columns).map(of_column).collect();
    let is_product = all.iter().map(Vec::len).product::<usize>() == signature.rows.len();
    page.push('\n');
    for (column, types) in all.iter().enumerate() {
        let types: Vec<String> = types.iter().map(|it| short(*it)).collect();
        let _ = writeln!(page, "{}: {}  ", names(signature, column), types.join(", "));
    }
    if !is_product {
        let rows = signature.rows.iter().map(pair).collect::<Vec<_>>().join("; ");
        let _ = writeln!(page, "Together: {rows}");
    }
}

fn pair(row: &Row) -> String {
    row.types.iter().map(|it| short(*it)).collect::<Vec<_>>().join(" and ")
}

fn short(operand_type: OperandType) -> String {
    type_name(operand_type).replace("TENSOR_", "")
}

/// The names of the arguments that a column is the type of.
fn names(signature: &Signature, column: usize) -> String {
    let arguments = |form: &'static Form| form.inputs.iter().chain(form.outputs);
    let mut names: Vec<&str> = Vec::new();
    for parameter in signature.forms.iter().flat_map(arguments) {
        if parameter.parameter_type == ParameterType::Column(column)
            && !names.contains(&parameter.name)
        {
            names.push(parameter.name);
        }
    }
    names.join(", ")
}

fn list(parameters: &[Parameter]) -> String {
    let mut list = String::from("(");
    for (position, parameter) in parameters.iter().enumerate() {
        let is_trailing =
            matches!(parameter.presence, Presence::Trailing(_) | Presence::TrailingOmittable(_));
        list.push_str(if is_trailing { " [" } else { "" });
        list.push_str(if position > 0 { ", " } else { "" });
        list.push_str(parameter.name);
        if let ParameterType::Fixed(operand_type) = parameter.parameter_type {
            let _ = write!(list, ": {}", type_name(operand_type));
        }
        match parameter.presence {
            Presence::Repeated(_) => list.push_str("..."),
            _ if parameter.may_be_omitted() => list.push('?'),
            _ => {}
        }
        list.push_str(if is_trailing { "]" } else { "" });
    }
    list + ")"
}
