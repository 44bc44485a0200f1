//! The file format: `tflite.fbs` beside this file, and `generated.rs`, which `cargo xtask schema` makes of it.
//!
//! Reading is checked at every step: an offset, length or string that the file does not hold gives
//! an error where it is followed. There are writers as well, of which tests and graphs that are described make files.

use std::sync::LazyLock;

#[allow(
    unsafe_code,
    missing_docs,
    dead_code,
    unused_qualifications,
    unreachable_pub,
    rustdoc::private_intra_doc_links,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc,
    clippy::ptr_as_ptr,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]
mod generated {
    include!("generated.rs");
}

mod versions;

pub use generated::tflite::*;
pub(crate) use versions::greatest_version;

/// Codes and names of the builtin operators, in the schema's order.
pub(crate) fn operator_names() -> impl Iterator<Item = (i32, &'static str)> {
    let operators = include_str!("tflite.fbs").split_once("enum BuiltinOperator");
    let lines = operators.map_or("", |(_, rest)| rest).lines();
    lines.take_while(|line| *line != "}").filter_map(|line| {
        let (name, number) = line.trim_start().split_once(' ')?;
        let number = number.strip_prefix("= ")?.trim_end_matches(',');
        Some((number.parse().ok()?, name))
    })
}

/// The name of a builtin operator's code in the schema.
pub(crate) fn operator_name(code: i32) -> &'static str {
    static NAMES: LazyLock<Vec<(i32, &str)>> = LazyLock::new(|| operator_names().collect());
    let known = NAMES.iter().find(|(known, _)| *known == code);
    known.map_or("?", |(_, name)| *name)
}
