//! [`Observer`]: receives every operation's results as they are computed.
//!
//! The tool behind comparing two devices and behind profiles: whoever runs a program through
//! [`Prepared::execute_observed`](crate::Prepared::execute_observed) is given what each operation
//! computed. An engine that fuses operations reports what it really made: the outputs of the last
//! operation of a fused group, under that operation's place in the model.

use crate::error::OperationPlace;
use nnhal_hal::OperandType;
use std::time::Duration;

/// Is notified of results while a program runs. Calls of one execution come in an order in which
/// the operations could run, but possibly from several threads.
pub trait Observer: Send + Sync {
    /// An operation's output has its value.
    fn output(&self, _output: &ObservedOutput<'_>) {}

    /// An operation, or a fused group under its last operation's place, took so long. The time of
    /// IF and WHILE is that of the operations in their subgraphs, and is not reported again.
    fn duration(&self, _place: OperationPlace, _duration: Duration) {}
}

/// An operation's output.
#[derive(Debug, Clone, Copy)]
pub struct ObservedOutput<'a> {
    /// The operation.
    pub place: OperationPlace,
    /// Index among the operation's outputs.
    pub output: usize,
    /// Index of the operand within the subgraph.
    pub operand: u32,
    /// The control flow that led here, outermost first; empty in the main subgraph. Together with
    /// `place` it names every value of an execution once.
    pub rounds: &'a [Round],
    /// The element type.
    pub operand_type: OperandType,
    /// The exact dimensions.
    pub dimensions: &'a [u32],
    /// The elements, little endian and packed.
    pub bytes: &'a [u8],
}

/// An IF or WHILE that is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Round {
    /// The IF or WHILE.
    pub place: OperationPlace,
    /// Which of its inputs refers to the subgraph that runs: of IF 1 or 2, of WHILE 0 or 1.
    pub subgraph_input: usize,
    /// Of WHILE how often the body ran before; of IF 0.
    pub round: u64,
}

/// Passes on what a part of an execution reports, with the control flow that led to it before its own.
#[derive(Clone, Copy)]
pub struct InRounds<'a> {
    /// Who is notified.
    pub observer: &'a dyn Observer,
    /// What led to the part, outermost first.
    pub rounds: &'a [Round],
}

impl std::fmt::Debug for InRounds<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("InRounds").field("rounds", &self.rounds).finish_non_exhaustive()
    }
}

impl Observer for InRounds<'_> {
    fn output(&self, output: &ObservedOutput<'_>) {
        let both;
        let rounds = match output.rounds {
            [] => self.rounds,
            inner => {
                both = [self.rounds, inner].concat();
                &*both
            }
        };
        self.observer.output(&ObservedOutput { rounds, ..*output });
    }

    fn duration(&self, place: OperationPlace, duration: Duration) {
        self.observer.duration(place, duration);
    }
}
