//! [`InterpretedProgram`]

use crate::accelerator::Accelerator;
use crate::execution;
use crate::layout::Layout;
use nnhal_driver::memory::default_model_limit;
use nnhal_driver::{
    Bindings, Budget, Constants, EngineError, Interface, Ledger, Program, RunContext,
    execute_in_process,
};
use nnhal_hal::{Execution, ExecutionError, ExecutionOptions, Priority, Request};
use nnhal_ops::ValidModel;
use std::sync::Arc;

/// A model that is run operation by operation.
#[derive(Debug)]
pub struct InterpretedProgram {
    layout: Layout,
    constants: Arc<Constants>,
    ledger: Ledger,
    accelerator: Option<Arc<dyn Accelerator>>,
}

impl InterpretedProgram {
    /// Lays out a model. What it and its executions take is charged to the ledger.
    ///
    /// # Errors
    /// Constants cannot be read, or there is no room for them; the budget is used up.
    pub fn new(model: &ValidModel, ledger: &Ledger, budget: &Budget) -> Result<Self, EngineError> {
        let constants = Arc::new(Constants::read(model, ledger)?);
        let layout = Layout::new(model, budget)?;
        Ok(Self { layout, constants, ledger: ledger.clone(), accelerator: None })
    }

    /// The model's constants.
    pub fn constants(&self) -> &Arc<Constants> {
        &self.constants
    }

    /// The same, that asks an accelerator first whether it computes operations.
    #[must_use]
    pub fn with_accelerator(self, accelerator: Arc<dyn Accelerator>) -> Self {
        Self { accelerator: Some(accelerator), ..self }
    }
}

/// Runs a model once, in the calling thread. A length of 0 that the request gives in an input's dimensions is that of an axis
/// without elements, which requests to devices cannot express.
///
/// # Errors
/// As [`nnhal_hal::PreparedModel::execute`].
pub fn execute_once(
    model: &ValidModel,
    request: &Request,
    options: &ExecutionOptions,
) -> Result<Execution, ExecutionError> {
    let budget = Budget::for_execution(options, Priority::Medium);
    let ledger = budget.memory().model(default_model_limit());
    let program = InterpretedProgram::new(model, &ledger, &budget)?;
    execute_in_process(&program, &Interface::of(model), request, options, &budget)
}

impl Program for InterpretedProgram {
    fn run(&self, bindings: &Bindings, context: &RunContext<'_>) -> Result<(), EngineError> {
        let Self { layout, constants, ledger, accelerator } = self;
        let accelerator = accelerator.as_deref();
        execution::Execution::new(layout, constants, ledger, accelerator, bindings, context).run()
    }
}
