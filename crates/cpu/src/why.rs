//! [`Why`]: why a step runs the reference kernel of its operation.

use nnhal_hal::OperandType;
use nnhal_kernels::TooLarge;
use nnhal_ops::Subject;
use nnhal_ops::extension::type_name;
use std::fmt;

/// Why no fast kernel computes an operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Why {
    /// None does, whatever its arguments are.
    Operation,
    /// None takes an argument of this type.
    Type { subject: Subject, found: OperandType, expected: &'static str },
    /// An argument comes from the request, or is computed.
    NotConstant { subject: Subject },
    /// Its images are NCHW, and the pass that changes that left them so.
    ChannelsFirst,
    /// An argument has another number of axes.
    Rank { subject: Subject, found: usize, expected: &'static str },
    /// A length of an argument is 0.
    Empty { subject: Subject },
    /// There is more of something than a kernel takes.
    Limit { what: &'static str, found: u64, most: u64 },
    /// Arguments have a form or a value that no kernel takes.
    Form { what: &'static str, found: String, expected: &'static str },
    /// A pass makes of the operation what a fast kernel computes, and does not run.
    SwitchedOff { pass: &'static str },
    /// A kernel, or the weights that it packs, would take more memory than there is, or than can be
    /// addressed. Of the former no plan is made.
    Memory(TooLarge),
}

impl From<TooLarge> for Why {
    fn from(refusal: TooLarge) -> Self {
        Self::Memory(refusal)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation => formatter.write_str("no fast kernel for the operation"),
            Self::Type { subject, found, expected } => {
                write!(formatter, "type of {subject} is {}, expected {expected}", type_name(*found))
            }
            Self::NotConstant { subject } => write!(formatter, "{subject} is not constant"),
            Self::ChannelsFirst => formatter.write_str("layout of images is NCHW, expected NHWC"),
            Self::Rank { subject, found, expected } => {
                write!(formatter, "rank of {subject} is {found}, expected {expected}")
            }
            Self::Empty { subject } => write!(formatter, "a length of {subject} is 0"),
            Self::Limit { what, found, most } => {
                write!(formatter, "number of {what} is {found}, expected {most} at most")
            }
            Self::Form { what, found, expected } => {
                write!(formatter, "{what} is {found}, expected {expected}")
            }
            Self::SwitchedOff { pass } => write!(formatter, "pass {pass} is switched off"),
            Self::Memory(refusal) => refusal.fmt(formatter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_a_sentence_with_what_was_found_and_expected() {
        let subject = || Subject::Input(1, "filter");
        let of_type = Why::Type {
            subject: subject(),
            found: OperandType::TensorInt32,
            expected: "floats or 8-bit integers",
        };
        let rank = Why::Rank { subject: subject(), found: 3, expected: "4" };
        let limit = Why::Limit { what: "weights of cells", found: 9, most: 5 };
        let form = Why::Form { what: "scale", found: "2".to_owned(), expected: "1" };
        let refusal = TooLarge { what: "weights", wanted: Some(9), left: Some(5) };
        for (why, text) in [
            (Why::Operation, "no fast kernel for the operation"),
            (
                of_type,
                "type of input 1 (filter) is TENSOR_INT32, expected floats or 8-bit integers",
            ),
            (Why::NotConstant { subject: subject() }, "input 1 (filter) is not constant"),
            (Why::ChannelsFirst, "layout of images is NCHW, expected NHWC"),
            (rank, "rank of input 1 (filter) is 3, expected 4"),
            (Why::Empty { subject: subject() }, "a length of input 1 (filter) is 0"),
            (limit, "number of weights of cells is 9, expected 5 at most"),
            (form, "scale is 2, expected 1"),
            (Why::SwitchedOff { pass: "chains" }, "pass chains is switched off"),
            (Why::Memory(refusal), &refusal.to_string()),
        ] {
            assert_eq!(why.to_string(), text);
        }
    }
}
