//! Flex operators: operations of TensorFlow itself, which converters write where the format has no operator of its own, or
//! none of that type or rank (`SELECT_TF_OPS`). Their options are the operation with its attributes ([`Node`]).
//!
//! | operations | become |
//! |---|---|
//! | what the format has an operator for too | that operator with the same options, see [`same`] |
//! | `AvgPool3D`, `MaxPool3D`, `Erf`, `Roll`, ... | operations of the HAL and our extension, see [`composed`] |
//! | `TensorListReserve`, `TensorListSetItem`, ... | one tensor for a list, see [`lists`] |

mod composed;
mod lists;
mod same;

use super::{GraphImporter, Imported};
use crate::error::{NO_OPERATION, Reason};
use crate::file::Operator;
use crate::flexbuffer;
use crate::node_def::Node;

/// With what the names of Flex operators begin.
pub(super) const PREFIX: &str = "Flex";

impl GraphImporter<'_, '_> {
    pub(super) fn flex(&mut self, operator: &Operator<'_>) -> Imported {
        let options = operator.table.custom_options()?.unwrap_or_default();
        let node = flexbuffer::texts(options).and_then(|[_, node]| Node::read(node));
        let node = node.ok_or_else(|| Reason::new("its options hold no TensorFlow operation"))?;
        if let Some(same) = self.same(&node, operator)? {
            return same.import(self, operator);
        }
        if let Some(outcome) = self.list_operator(&node, operator) {
            return outcome;
        }
        self.composed(&node, operator).unwrap_or_else(|| Err(Reason::new(NO_OPERATION)))
    }
}

/// Refuses images with channels first.
fn expect_channels_last(node: &Node<'_>) -> Imported {
    match node.text("data_format") {
        None | Some("NHWC" | "NDHWC") => Ok(()),
        Some(other) => {
            let shown = crate::error::beginning(other);
            Err(Reason::new(format!("its data_format is {shown:?}, expected NHWC or NDHWC")))
        }
    }
}

/// Whether the padding is SAME, or else VALID.
fn is_padded(node: &Node<'_>) -> Imported<bool> {
    match node.text("padding") {
        Some("SAME") => Ok(true),
        Some("VALID") => Ok(false),
        other => {
            let shown = other.map(crate::error::beginning);
            Err(Reason::new(format!("its padding is {shown:?}, expected SAME or VALID")))
        }
    }
}

/// The numbers of a window along the axes between batch and channels, which have 1.
fn window<const N: usize>(node: &Node<'_>, name: &str) -> Imported<[i32; N]> {
    let numbers = node.integers(name).unwrap_or_default();
    let wrong =
        || Reason::new(format!("its {name} are {numbers:?}, expected 1, {N} numbers above 0, 1"));
    let [1, inner @ .., 1] = &numbers[..] else { return Err(wrong()) };
    let inner: Result<Vec<i32>, _> = inner.iter().map(|it| i32::try_from(*it)).collect();
    let inner = inner.ok().and_then(|it| <[i32; N]>::try_from(it).ok());
    inner.filter(|it| it.iter().all(|number| *number > 0)).ok_or_else(wrong)
}
