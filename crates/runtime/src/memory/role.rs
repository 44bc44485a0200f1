//! [`Role`]: a use of memory as an argument.

use std::fmt;

/// Whether an argument is given or got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    Input,
    Output,
}

impl fmt::Display for Direction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Input => "input",
            Self::Output => "output",
        })
    }
}

/// A use of memory: as an argument of a compilation's executions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Role {
    /// The compilation's number.
    pub(crate) compilation: u64,
    pub(crate) direction: Direction,
    pub(crate) index: u32,
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} of this compilation", self.direction, self.index)
    }
}
