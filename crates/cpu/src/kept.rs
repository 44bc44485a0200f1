//! Plans that are kept for later executions, and [`Planned`]: one with its workspaces.

use crate::lock::lock;
use crate::plan::{Endpoints, Plan, Workspace};
use crate::teams::Teams;
use nnhal_driver::memory::Idle;
use nnhal_driver::{EngineError, RunContext};
use nnhal_kernels::Team;
use std::sync::{Arc, Mutex, Weak};

/// Of what is kept, the most recently used last, one that fits; it is then the most recently used.
pub(crate) fn find<T>(kept: &mut [Arc<T>], fits: impl Fn(&T) -> bool) -> Option<Arc<T>> {
    let at = kept.iter().position(|it| fits(it))?;
    kept[at..].rotate_left(1);
    kept.last().cloned()
}

/// Keeps one more, if need be in the place of the least recently used.
pub(crate) fn keep<T>(kept: &mut Vec<Arc<T>>, most: usize, new: T) -> Arc<T> {
    if kept.len() == most {
        kept.remove(0);
    }
    let new = Arc::new(new);
    kept.push(Arc::clone(&new));
    new
}

/// Does something that takes memory. Where there is not enough, once more after `let_go`, which frees some.
pub(crate) fn with_memory<T>(
    let_go: impl Fn(),
    mut work: impl FnMut() -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    match work() {
        Err(EngineError::MemoryLimit { .. } | EngineError::Allocation { .. }) => {
            let_go();
            work()
        }
        done => done,
    }
}

/// A plan and memory for its executions.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    /// Used by no one at the moment.
    workspaces: Arc<Workspaces>,
}

/// Memory for executions, which is freed where there is no room for something else.
#[derive(Debug, Default)]
struct Workspaces(Mutex<Vec<Workspace>>);

impl Idle for Workspaces {
    fn let_go(&self) {
        let freed = std::mem::take(&mut *lock(&self.0));
        drop(freed);
    }
}

impl Planned {
    pub(crate) fn new(plan: Plan) -> Self {
        let workspaces = Arc::default();
        let idle: Weak<Workspaces> = Arc::downgrade(&workspaces);
        plan.ledger().keep_idle(idle);
        Self { plan, workspaces }
    }

    /// Frees idle workspaces.
    pub(crate) fn let_go(&self) {
        self.workspaces.let_go();
    }

    /// Runs the plan.
    ///
    /// # Errors
    /// There is no memory for the execution, also after `let_go`. What went wrong in it is its result.
    pub(crate) fn run(
        &self,
        endpoints: impl Endpoints,
        context: &RunContext<'_>,
        teams: &Teams,
        let_go: impl Fn(),
    ) -> Result<Result<(), EngineError>, EngineError> {
        let idle = lock(&self.workspaces.0).pop();
        let new = || with_memory(&let_go, || Workspace::new(&self.plan));
        let mut workspace = idle.map_or_else(new, Ok)?;
        with_memory(&let_go, || workspace.begin(&self.plan, &endpoints))?;
        let run = |team: &mut Team| self.plan.run(endpoints, context, &mut workspace, team);
        let result = if self.plan.is_small() { teams.lend_for_small(run) } else { teams.lend(run) };
        workspace.end();
        lock(&self.workspaces.0).push(workspace);
        Ok(result)
    }
}
