//! [`ImportError`]

use std::collections::HashMap;
use std::fmt;

/// For operators without a counterpart.
pub(crate) const NO_OPERATION: &str = "the HAL has no such operation";
/// For operators that the schema does not have.
pub(crate) const NEWER: &str = "the operator is newer than this program";

/// Whether an operator is refused for this reason whatever its inputs are. More may follow the reason.
pub(crate) fn is_own_reason(reason: &str) -> bool {
    [NO_OPERATION, NEWER].iter().any(|own| reason.starts_with(own))
}

/// Why a file could not be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file has no bytes, or cannot be shared with a device.
    #[error("{0}")]
    Memory(#[from] nnhal_hal::memory::MemoryError),
    /// The file is no TensorFlow Lite model.
    #[error("not a TensorFlow Lite model: {0}")]
    Format(String),
    /// Something in the file contradicts the format.
    #[error("{place}: {what}")]
    Malformed {
        /// Where in the file.
        place: String,
        /// What is wrong.
        what: String,
    },
    /// The model has operators that the HAL has nothing for.
    #[error("{}", Listed(operators, *others))]
    Unsupported {
        /// The first 1000 of them.
        operators: Vec<UnsupportedOperator>,
        /// How many there are beyond these.
        others: usize,
    },
    /// The pieces do not make a model.
    #[error("{0}")]
    Build(#[from] nnhal_hal::BuildError),
}

/// An operator that the HAL has nothing for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedOperator {
    /// Index of the subgraph.
    pub subgraph: usize,
    /// Index of the operator in its subgraph.
    pub index: usize,
    /// Its name in the format, or the name of a custom operator.
    pub operator: String,
    /// Its version.
    pub version: i32,
    /// Its first tensors: name, type and shape.
    pub tensors: Vec<String>,
    /// Why there is no counterpart.
    pub reason: String,
    /// Whether it may only be refused since an operator before it was: what that gives, its shape above
    /// all, is not known.
    pub is_consequence: bool,
}

/// Operators that are refused for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause<'a> {
    /// The first of them.
    pub first: &'a UnsupportedOperator,
    /// How many there are.
    pub count: usize,
}

impl ImportError {
    /// Why operators are refused, the most frequent reason first, and how many are only refused in
    /// consequence. Nothing for other errors.
    pub fn causes(&self) -> (Vec<Cause<'_>>, usize) {
        match self {
            Self::Unsupported { operators, .. } => causes(operators),
            _ => (Vec::new(), 0),
        }
    }
}

fn causes(operators: &[UnsupportedOperator]) -> (Vec<Cause<'_>>, usize) {
    let mut causes: Vec<Cause<'_>> = Vec::new();
    let mut known: HashMap<(&str, &str), usize> = HashMap::new();
    let own = operators.iter().filter(|operator| !operator.is_consequence);
    for operator in own {
        let at = *known.entry((&operator.operator, &operator.reason)).or_insert(causes.len());
        match causes.get_mut(at) {
            Some(cause) => cause.count += 1,
            None => causes.push(Cause { first: operator, count: 1 }),
        }
    }
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.count));
    let consequences = operators.iter().filter(|operator| operator.is_consequence).count();
    (causes, consequences)
}

impl UnsupportedOperator {
    /// Whether there is nothing for the operator whatever its inputs are. Another one may have a
    /// counterpart for inputs of other shapes.
    pub fn is_unknown(&self) -> bool {
        is_own_reason(&self.reason)
    }
}

impl fmt::Display for UnsupportedOperator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subgraph, index, operator, version, tensors, reason, .. } = self;
        write!(formatter, "operator {index} of subgraph {subgraph}, {operator} version {version}")?;
        write!(formatter, " ({}): {reason}", tensors.join(", "))
    }
}

struct Listed<'a>(&'a [UnsupportedOperator], usize);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (causes, consequences) = causes(self.0);
        // Operators beyond those listed have no cause of their own.
        let own = causes.iter().map(|cause| cause.count).sum::<usize>() + self.1;
        let (is, s) = if own == 1 { ("has", "") } else { ("have", "s") };
        write!(formatter, "{own} operator{s} {is} no counterpart:")?;
        for Cause { first, count } in &causes {
            write!(formatter, "\n  {first}")?;
            if *count > 1 {
                write!(formatter, " (and {} like it)", count - 1)?;
            }
        }
        if consequences > 0 {
            write!(formatter, "\n  {consequences} more behind these could not be judged")?;
        }
        match self.1 {
            0 => Ok(()),
            others => write!(formatter, "\n  and {others} more"),
        }
    }
}

/// Bytes of a name that a message repeats.
const NAME_LENGTH: usize = 200;

/// The beginning of a name out of a file, which may be as long as the file.
pub(crate) fn beginning(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_LENGTH)]
}

/// A name out of a file as messages have it: quoted, its beginning only if it is long.
pub(crate) struct Shown<'a>(pub(crate) &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, shown) = (self.0, beginning(self.0));
        write!(formatter, "{shown:?}")?;
        if shown.len() < name.len() {
            write!(formatter, "... ({} bytes)", name.len())?;
        }
        Ok(())
    }
}

/// Why one operator cannot be imported; becomes an [`UnsupportedOperator`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reason(pub(crate) String);

impl Reason {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl From<planus::Error> for Reason {
    fn from(error: planus::Error) -> Self {
        Self(format!("its options cannot be read: {error}"))
    }
}
