//! How operands and operations of a subgraph fit together (contract: MODEL-19 to MODEL-24).

use nnhal_hal::{OperandLifeTime, Subgraph};
use std::fmt;

/// One of the two lists of indexes of an operation or a subgraph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// Its inputs.
    Input,
    /// Its outputs.
    Output,
}

impl fmt::Display for Side {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Input => "input",
            Self::Output => "output",
        })
    }
}

/// How operands and operations do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// An argument of the subgraph that is no operand (contract: MODEL-19).
    #[error("{side} {position} is operand {found}, but there are {operands}")]
    NoSuchArgument {
        /// Which list.
        side: Side,
        /// Place in the list.
        position: usize,
        /// The index there.
        found: u32,
        /// Number of operands.
        operands: usize,
    },
    /// An argument of the subgraph whose lifetime says otherwise (contract: MODEL-19).
    #[error("{side} {position}, operand {operand}, has lifetime {found}, expected {expected}")]
    ArgumentLifeTime {
        /// Which list.
        side: Side,
        /// Place in the list.
        position: usize,
        /// Index among the subgraph's operands.
        operand: u32,
        /// Its lifetime.
        found: OperandLifeTime,
        /// The lifetime of all operands in that list.
        expected: OperandLifeTime,
    },
    /// An argument of the subgraph that is listed twice (contract: MODEL-19).
    #[error("{side} {position}, operand {operand}, is listed before")]
    ArgumentTwice {
        /// Which list.
        side: Side,
        /// Place in the list.
        position: usize,
        /// Index among the subgraph's operands.
        operand: u32,
    },
    /// An operand whose lifetime says that it is an argument, but that is not listed (contract:
    /// MODEL-19).
    #[error("operand {operand} has lifetime {lifetime}, but is not among the {side}s")]
    ArgumentNotListed {
        /// Which list.
        side: Side,
        /// Index among the subgraph's operands.
        operand: usize,
        /// As the model declares it.
        lifetime: OperandLifeTime,
    },
    /// An argument of an operation that is no operand (contract: MODEL-20).
    #[error("{side} {position} of operation {operation} is operand {found} of {operands}")]
    NoSuchOperand {
        /// Index among the subgraph's operations.
        operation: usize,
        /// Which list.
        side: Side,
        /// Place in the list.
        position: usize,
        /// The index there.
        found: u32,
        /// Number of operands.
        operands: usize,
    },
    /// An operation writes what nothing may write (contract: MODEL-21).
    #[error(
        "operation {operation} writes operand {operand} of lifetime {found}, expected \
         TEMPORARY_VARIABLE or SUBGRAPH_OUTPUT"
    )]
    Written {
        /// Index among the subgraph's operations.
        operation: usize,
        /// Index among the subgraph's operands.
        operand: u32,
        /// Its lifetime.
        found: OperandLifeTime,
    },
    /// An operand that no operation writes, or several do (contract: MODEL-22).
    #[error("operand {operand} is written {found} times, expected once")]
    Writers {
        /// Index among the subgraph's operands.
        operand: usize,
        /// How many operations' outputs it is.
        found: u32,
    },
    /// An operation reads what an operation after it writes, or it itself (contract: MODEL-23).
    #[error("operation {operation} reads operand {operand} before it is written")]
    ReadBeforeWritten {
        /// Index among the subgraph's operations.
        operation: usize,
        /// Index among the subgraph's operands.
        operand: u32,
    },
    /// The number of consumers is wrong (contract: MODEL-24).
    #[error("operand {operand} says it has {found} consumers, but has {expected}")]
    Consumers {
        /// Index among the subgraph's operands.
        operand: usize,
        /// The number it says.
        found: u32,
        /// How often operations read it.
        expected: u32,
    },
}

impl GraphError {
    pub(super) fn rule(&self) -> &'static str {
        match self {
            Self::NoSuchArgument { .. }
            | Self::ArgumentLifeTime { .. }
            | Self::ArgumentTwice { .. }
            | Self::ArgumentNotListed { .. } => "MODEL-19",
            Self::NoSuchOperand { .. } => "MODEL-20",
            Self::Written { .. } => "MODEL-21",
            Self::Writers { .. } => "MODEL-22",
            Self::ReadBeforeWritten { .. } => "MODEL-23",
            Self::Consumers { .. } => "MODEL-24",
        }
    }
}

/// Checks the lists of indexes of a subgraph. Time and memory are linear in its size.
pub(super) fn check(graph: &Subgraph) -> Result<(), GraphError> {
    check_arguments(graph, Side::Input)?;
    check_arguments(graph, Side::Output)?;
    let consumers = count_uses(graph, Side::Input)?;
    let writers = count_uses(graph, Side::Output)?;
    for (operation, step) in graph.operations.iter().enumerate() {
        for &operand in &step.outputs {
            let found = graph.operands[operand as usize].lifetime;
            if !is_result(found) {
                return Err(GraphError::Written { operation, operand, found });
            }
        }
    }
    for (operand, found) in writers.into_iter().enumerate() {
        if found != 1 && is_result(graph.operands[operand].lifetime) {
            return Err(GraphError::Writers { operand, found });
        }
    }
    check_order(graph)?;
    for (operand, expected) in consumers.into_iter().enumerate() {
        let found = graph.operands[operand].number_of_consumers;
        if found != expected {
            return Err(GraphError::Consumers { operand, found, expected });
        }
    }
    Ok(())
}

/// Whether operations write operands of this lifetime.
fn is_result(lifetime: OperandLifeTime) -> bool {
    matches!(lifetime, OperandLifeTime::TemporaryVariable | OperandLifeTime::SubgraphOutput)
}

/// Checks the inputs or the outputs of the subgraph itself.
fn check_arguments(graph: &Subgraph, side: Side) -> Result<(), GraphError> {
    let operands = graph.operands.len();
    let (indexes, expected) = match side {
        Side::Input => (&graph.inputs, OperandLifeTime::SubgraphInput),
        Side::Output => (&graph.outputs, OperandLifeTime::SubgraphOutput),
    };
    let mut is_listed = vec![false; operands];
    for (position, &index) in indexes.iter().enumerate() {
        let Some(operand) = graph.operands.get(index as usize) else {
            return Err(GraphError::NoSuchArgument { side, position, found: index, operands });
        };
        let found = operand.lifetime;
        if found != expected {
            let operand = index;
            return Err(GraphError::ArgumentLifeTime { side, position, operand, found, expected });
        }
        if std::mem::replace(&mut is_listed[index as usize], true) {
            return Err(GraphError::ArgumentTwice { side, position, operand: index });
        }
    }
    let forgotten = graph
        .operands
        .iter()
        .zip(is_listed)
        .position(|(operand, is_listed)| operand.lifetime == expected && !is_listed);
    match forgotten {
        Some(operand) => Err(GraphError::ArgumentNotListed { side, operand, lifetime: expected }),
        None => Ok(()),
    }
}

/// How often each operand stands among the inputs, or the outputs, of operations.
fn count_uses(graph: &Subgraph, side: Side) -> Result<Vec<u32>, GraphError> {
    let operands = graph.operands.len();
    let mut uses = vec![0_u32; operands];
    for (operation, step) in graph.operations.iter().enumerate() {
        let indexes = match side {
            Side::Input => &step.inputs,
            Side::Output => &step.outputs,
        };
        for (position, &found) in indexes.iter().enumerate() {
            let Some(uses) = uses.get_mut(found as usize) else {
                return Err(GraphError::NoSuchOperand {
                    operation,
                    side,
                    position,
                    found,
                    operands,
                });
            };
            *uses = uses.saturating_add(1);
        }
    }
    Ok(uses)
}

/// Nothing is read before it is written. All indexes are in range by now.
fn check_order(graph: &Subgraph) -> Result<(), GraphError> {
    let mut is_there: Vec<bool> =
        graph.operands.iter().map(|operand| !is_result(operand.lifetime)).collect();
    for (operation, step) in graph.operations.iter().enumerate() {
        if let Some(&operand) = step.inputs.iter().find(|index| !is_there[**index as usize]) {
            return Err(GraphError::ReadBeforeWritten { operation, operand });
        }
        for &index in &step.outputs {
            is_there[index as usize] = true;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
