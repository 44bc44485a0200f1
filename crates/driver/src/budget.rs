//! [`Budget`]: what preparing or running may take, asked between operations and inside loops.

use crate::interruption::Interruption;
use crate::memory::Ledger;
use crate::schedule::{Scheduler, Slot};
use nnhal_hal::memory::WeightPool;
use nnhal_hal::time::loop_timeout;
use nnhal_hal::{Cancellation, Client, Deadline, ExecutionOptions, Priority};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What preparing or running may take.
#[derive(Debug, Clone)]
pub struct Budget {
    deadline: Option<Deadline>,
    loop_timeout: Duration,
    cancellation: Option<Cancellation>,
    priority: Priority,
    client: Client,
    weights: Option<WeightPool>,
    is_preparing: bool,
    slot: Option<Arc<Slot>>,
}

impl Default for Budget {
    fn default() -> Self {
        Self::unlimited()
    }
}

impl Budget {
    /// Elements that one thread goes through without a question.
    pub const BLOCK: usize = 1 << 16;

    /// No deadline, the default loop timeout, medium priority.
    pub fn unlimited() -> Self {
        Self::new(None, Priority::Medium)
    }

    /// The default loop timeout, and what is given.
    pub fn new(deadline: Option<Deadline>, priority: Priority) -> Self {
        Self::of_client(Client::in_process(), deadline, priority)
    }

    fn of_client(client: Client, deadline: Option<Deadline>, priority: Priority) -> Self {
        Self {
            deadline,
            loop_timeout: loop_timeout(None),
            cancellation: None,
            priority,
            client,
            weights: None,
            is_preparing: false,
            slot: None,
        }
    }

    /// What an execution may take.
    pub fn for_execution(options: &ExecutionOptions, priority: Priority) -> Self {
        Self::for_execution_of(Client::in_process(), options, priority)
    }

    /// What an execution of this client may take.
    pub(crate) fn for_execution_of(
        client: Client,
        options: &ExecutionOptions,
        priority: Priority,
    ) -> Self {
        let mut budget = Self::of_client(client, options.deadline, priority);
        budget.loop_timeout = loop_timeout(options.loop_timeout);
        budget.cancellation.clone_from(&options.cancellation);
        budget
    }

    /// The same with another time for each WHILE, clamped to what the interface
    /// allows (contract: QOS-8).
    #[must_use]
    pub fn with_loop_timeout(mut self, timeout: Duration) -> Self {
        self.loop_timeout = loop_timeout(Some(timeout));
        self
    }

    /// The same with a switch that stops the work.
    #[must_use]
    pub fn with_cancellation(mut self, cancellation: Cancellation) -> Self {
        self.cancellation = Some(cancellation);
        self
    }

    /// The same for this client; otherwise it is for the process.
    #[must_use]
    pub fn with_client(self, client: Client) -> Self {
        Self { client, ..self }
    }

    /// The same with packed weights in this pool.
    #[must_use]
    pub fn with_weights(self, weights: Option<WeightPool>) -> Self {
        Self { weights, ..self }
    }

    /// Where packed weights are to be, if prepared models share them.
    pub fn weights(&self) -> Option<&WeightPool> {
        self.weights.as_ref()
    }

    /// The same with a deadline that is no later than this one.
    #[must_use]
    pub fn until(mut self, deadline: Option<Deadline>) -> Self {
        self.deadline = self.deadline.into_iter().chain(deadline).min();
        self
    }

    /// When the result is no longer wanted.
    pub fn deadline(&self) -> Option<Deadline> {
        self.deadline
    }

    /// The same for preparing a model.
    pub(crate) fn preparing(self) -> Self {
        Self { is_preparing: true, ..self }
    }

    /// Whether a model is being prepared, on a thread of which the operating system thinks less. So
    /// do the threads that are started from it: an engine keeps none of those for executions.
    pub fn is_preparing(&self) -> bool {
        self.is_preparing
    }

    /// Whose work it is.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Counts the memory of the client whose work it is: what a program takes is charged to a
    /// [`Ledger::model`] of it.
    pub fn memory(&self) -> Ledger {
        Ledger::of_client(&self.client)
    }

    /// Waits for a slot, the right to compute. [`Budget::check`] lets others pass from then
    /// on, see [`Scheduler`].
    ///
    /// # Errors
    /// [`Interruption`] if the deadline passes or the work is cancelled before.
    pub fn take_slot(self, scheduler: &Scheduler) -> Result<Self, Interruption> {
        self.check_before_start()?;
        let cancellation = self.cancellation.as_ref();
        let slot = scheduler.take_slot(&self.client, self.priority, self.deadline, cancellation)?;
        Ok(Self { slot: Some(Arc::new(slot)), ..self })
    }

    /// Rank among the client's prepared models.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// For how long each WHILE may run.
    pub fn loop_timeout(&self) -> Duration {
        self.loop_timeout
    }

    /// To be asked once, before work begins.
    ///
    /// # Errors
    /// [`Interruption::TooLateToStart`], [`Interruption::Cancelled`]
    pub fn check_before_start(&self) -> Result<(), Interruption> {
        self.check_inside().map_err(|interruption| match interruption {
            Interruption::DeadlinePassed => Interruption::TooLateToStart,
            other => other,
        })
    }

    /// To be asked between operations: lets those pass first who are to have the slot now.
    ///
    /// # Errors
    /// [`Interruption::DeadlinePassed`], [`Interruption::Cancelled`]
    pub fn check(&self) -> Result<(), Interruption> {
        if let Some(slot) = &self.slot {
            slot.let_others_pass(self.deadline, self.cancellation.as_ref())?;
        }
        self.check_inside()
    }

    /// To be asked inside long operations, by whichever thread.
    ///
    /// # Errors
    /// As [`Budget::check`].
    pub fn check_inside(&self) -> Result<(), Interruption> {
        let cancelled = self.cancellation.as_ref().is_some_and(Cancellation::is_cancelled);
        if cancelled || self.client.has_left() {
            return Err(Interruption::Cancelled);
        }
        match self.deadline {
            Some(deadline) if deadline.has_passed() => Err(Interruption::DeadlinePassed),
            _ => Ok(()),
        }
    }

    /// `0..length` in parts of at most [`Budget::BLOCK`], with a question between them: for loops over
    /// elements or bytes that take some nanoseconds each.
    ///
    /// # Errors
    /// In place of a part, as [`Budget::check`].
    pub fn blocks(
        &self,
        length: usize,
    ) -> impl Iterator<Item = Result<Range<usize>, Interruption>> + '_ {
        (0..length).step_by(Self::BLOCK).map(move |first| {
            if first > 0 {
                self.check_inside()?;
            }
            Ok(first..length.min(first + Self::BLOCK))
        })
    }

    /// A clock for one run of a WHILE; nested loops have each their own (contract: QOS-8).
    pub fn loop_clock(&self) -> LoopClock {
        LoopClock { started: Instant::now(), limit: self.loop_timeout }
    }
}

/// Measures one run of a WHILE, all rounds together.
#[derive(Debug, Clone, Copy)]
pub struct LoopClock {
    started: Instant,
    limit: Duration,
}

impl LoopClock {
    /// To be asked after the condition has turned out true, so that a loop that ends never times
    /// out afterwards (contract: QOS-9).
    ///
    /// # Errors
    /// [`Interruption::LoopTimeout`]
    pub fn check(&self) -> Result<(), Interruption> {
        if self.started.elapsed() > self.limit {
            return Err(Interruption::LoopTimeout { limit: self.limit });
        }
        Ok(())
    }
}
