//! Writes the files and entries of a new operation, with tests that fail until they are filled in.

use crate::files::{self, FileError};
use regex::Regex;
use std::path::{Path, PathBuf};

const TYPES: &str = "crates/hal/src/operation_type.rs";
const LIST: &str = "crates/ops/src/operations/mod.rs";
const OPERATIONS: &str = "crates/ops/src/operations";
const SAMPLES: &str = "crates/reference/tests/calls/samples/mod.rs";

/// The versions that an operation may come with, by their short names.
const VERSIONS: &[(&str, &str)] = &[
    ("1.0", "V1_0"),
    ("1.1", "V1_1"),
    ("1.2", "V1_2"),
    ("1.3", "V1_3"),
    ("fl6", "FeatureLevel6"),
    ("fl7", "FeatureLevel7"),
];

#[derive(Debug, thiserror::Error)]
pub(crate) enum NewOperationError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{0:?} is no name of an operation; write it as the interface does, such as TOPK_V2")]
    Name(String),
    #[error("there is no version {found:?}; there are {}", VERSIONS.map_names())]
    Version { found: String },
    #[error("{0} is defined already")]
    Defined(String),
    #[error("{TYPES} does not have {name}; say its code with --code")]
    NoCode { name: String },
    #[error("code {code} is taken in {TYPES}")]
    CodeTaken { code: u32 },
    #[error("{path} has no line {anchor:?} to write before; add the entry by hand: {entry}")]
    NoAnchor { path: &'static str, anchor: &'static str, entry: String },
}

trait Names {
    fn map_names(&self) -> String;
}

impl Names for [(&str, &str)] {
    fn map_names(&self) -> String {
        self.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }
}

/// What is written.
#[derive(Debug)]
pub(crate) struct NewOperation {
    /// As in the interface: `HARD_SWISH`.
    name: String,
    /// As a module: `hard_swish`.
    module: String,
    /// As a type: `HardSwish`.
    type_name: String,
    /// As a variant of `HalVersion`.
    version: &'static str,
    /// Its number in the interface, for an operation that `hal` does not know yet.
    code: Option<u32>,
}

impl NewOperation {
    pub(crate) fn new(
        name: &str,
        version: &str,
        code: Option<u32>,
    ) -> Result<Self, NewOperationError> {
        let module = name.to_lowercase();
        let is_name = Regex::new(r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$").expect("a valid pattern");
        if !is_name.is_match(&module) {
            return Err(NewOperationError::Name(name.to_owned()));
        }
        let known = VERSIONS.iter().find(|(known, _)| *known == version);
        let Some((_, version)) = known else {
            return Err(NewOperationError::Version { found: version.to_owned() });
        };
        let capitalized = module.split('_').map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_uppercase() + rest
        });
        let type_name = capitalized.collect();
        Ok(Self { name: module.to_uppercase(), module, type_name, version, code })
    }

    /// Writes everything, or nothing. Returns the files that were written.
    pub(crate) fn write(&self, root: &Path) -> Result<Vec<PathBuf>, NewOperationError> {
        let texts = self.texts(|path| files::read(&root.join(path)))?;
        let mut written = Vec::new();
        for (path, text) in texts {
            files::write(&root.join(&path), &text)?;
            written.push(path);
        }
        Ok(written)
    }

    /// The new texts of files, by path.
    fn texts(
        &self,
        read: impl Fn(&str) -> Result<String, FileError>,
    ) -> Result<Vec<(PathBuf, String)>, NewOperationError> {
        let Self { name, module, type_name, version, .. } = self;
        let mut texts = Vec::new();

        let types = read(TYPES)?;
        let row = Regex::new(r#"(?m)^ +(\w+) = (\d+), "(\w+)""#).expect("a valid pattern");
        let rows: Vec<_> = row.captures_iter(&types).collect();
        let variant = rows.iter().find(|row| row[3] == **name).map(|row| row[1].to_owned());
        if variant.is_none() {
            let Some(code) = self.code else {
                return Err(NewOperationError::NoCode { name: name.clone() });
            };
            if rows.iter().any(|row| row[2] == *code.to_string()) {
                return Err(NewOperationError::CodeTaken { code });
            }
            let entry = format!("        {type_name} = {code}, \"{name}\", {version};\n");
            let anchor = "        /// Its meaning only the vendor knows.\n";
            texts.push((TYPES.into(), before(TYPES, &types, anchor, &entry)?));
        }
        let variant = variant.unwrap_or_else(|| type_name.clone());

        let list = read(LIST)?;
        let is_defined =
            Regex::new(&format!(r"=> (?:\w+ )*{variant}(?: \w+)*;")).expect("a valid pattern");
        if is_defined.is_match(&list) {
            return Err(NewOperationError::Defined(name.clone()));
        }
        let entry = format!("        {module}::{type_name} => {variant};\n");
        let list = before(LIST, &list, "    }\n    not implemented {\n", &entry)?;
        texts.push((LIST.into(), list));

        let samples = read(SAMPLES)?;
        let entry = format!(
            "        Op::{variant} => panic!(\"say here how calls of {name} are drawn\"),\n"
        );
        let anchor = "        Op::If | Op::While | Op::OemOperation";
        texts.push((SAMPLES.into(), before(SAMPLES, &samples, anchor, &entry)?));

        let text = TEMPLATE
            .replace("@NAME@", name)
            .replace("@Type@", type_name)
            .replace("@Variant@", &variant)
            .replace("@Version@", version);
        texts.push((Path::new(OPERATIONS).join(format!("{module}.rs")), text));
        Ok(texts)
    }

    /// What remains to be done by hand.
    pub(crate) fn next_steps(&self) -> String {
        format!(
            "Fill in {OPERATIONS}/{0}.rs, and go on with the recipe \"Add an operation\" in CONTRIBUTING.md.\n\
             These fail until it is done: cargo test -p nnhal-ops {0}; cargo test -p nnhal-hal operation_type",
            self.module
        )
    }
}

/// A text with an entry before the first line that starts with the anchor.
fn before(
    path: &'static str,
    text: &str,
    anchor: &'static str,
    entry: &str,
) -> Result<String, NewOperationError> {
    let Some(place) = text.find(anchor) else {
        let entry = entry.trim().to_owned();
        return Err(NewOperationError::NoAnchor { path, anchor: anchor.trim(), entry });
    };
    Ok(format!("{}{entry}{}", &text[..place], &text[place..]))
}

const TEMPLATE: &str = r#"//! @NAME@: the formula.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | float32 |
//! | output 0 | output | as the input | as the input |
//!
//! Source: the interface file and its version.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// @NAME@, with its arguments decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct @Type@;

static SIGNATURE: Signature = Signature {
    operation: OperationType::@Variant@,
    rows: &[Row::new(HalVersion::@Version@, &[OperandType::TensorFloat32])],
    forms: &[Form::new(
        HalVersion::@Version@,
        &[Parameter::column("input", 0)],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for @Type@ {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn decode(_call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        Err(Fault::NotImplemented { operation: call.operation() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, tensor};
    use nnhal_hal::OperandSpec;

    fn example(input: OperandSpec, elements: &[f64]) -> Example {
        let output = OperandSpec { dimensions: vec![], ..input.clone() };
        Example::new(OperationType::@Variant@).input(input, elements).output(output)
    }

    #[test]
    fn model_25_every_row_of_the_signature_is_accepted() {
        for row in SIGNATURE.rows {
            let call = example(tensor(row.types[0], [1]), &[0.0]);
            assert_eq!(call.since(), Ok(row.since), "{}", row.types[0]);
            assert!(call.run().is_ok(), "{}: {:?}", row.types[0], call.run());
        }
    }

    #[test]
    fn refusals_name_the_rule() {
        // A table: what is wrong, and the sentence that says so.
        assert_eq!(example(tensor(OperandType::TensorInt32, [1]), &[0.0]).refusal(), "");
    }

    #[test]
    fn unknown_and_zero_lengths_are_ordinary() {
        let input = tensor(OperandType::TensorFloat32, [2, 0]);
        assert_eq!(example(input, &[]).result(), (vec![2, 0], vec![]));
    }

    #[test]
    fn values_by_hand() {
        // Worked out by hand or from the source that the module names.
        let found = example(tensor(OperandType::TensorFloat32, [2]), &[1.0, -1.0]).result();
        assert_eq!(found, (vec![2], vec![f64::NAN, f64::NAN]));
    }
}
"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(path: &str) -> Result<String, FileError> {
        files::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path))
    }

    #[test]
    fn an_operation_is_entered_where_it_is_read() {
        let new = NewOperation::new("SOFT_SIGN2D", "fl7", Some(777)).unwrap();
        let texts = new.texts(repository).unwrap();
        let text = |end: &str| {
            let found = texts.iter().find(|(path, _)| path.ends_with(end));
            found.map(|(_, text)| text.as_str()).expect(end)
        };
        assert!(
            text(TYPES).contains("SoftSign2d = 777, \"SOFT_SIGN2D\", FeatureLevel7;\n        ///")
        );
        assert!(text(LIST).contains("soft_sign2d::SoftSign2d => SoftSign2d;\n    }\n"));
        assert!(text(SAMPLES).contains("Op::SoftSign2d =>"));
        assert!(text("soft_sign2d.rs").contains("pub struct SoftSign2d;"));
        assert!(!text("soft_sign2d.rs").contains('@'));
    }

    #[test]
    fn what_cannot_be_entered_is_refused() {
        let refusal = |name, version, code| {
            let new = NewOperation::new(name, version, code);
            new.and_then(|new| new.texts(repository)).expect_err("a refusal").to_string()
        };
        assert!(refusal("A-B", "1.3", None).contains("no name"));
        assert!(refusal("NEW", "1.4", None).contains("1.0, 1.1, 1.2, 1.3, fl6, fl7"));
        assert!(refusal("NEW", "fl7", None).contains("--code"));
        assert_eq!(refusal("NEW", "fl7", Some(28)), format!("code 28 is taken in {TYPES}"));
        assert_eq!(refusal("HARD_SWISH", "1.3", None), "HARD_SWISH is defined already");
        assert_eq!(refusal("relu6", "1.0", None), "RELU6 is defined already");
    }
}
