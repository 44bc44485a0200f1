//! [`InterpretedProgram`]

use crate::accelerator::Accelerator;
use crate::execution::Execution;
use crate::layout::Layout;
use nnhal_driver::{Bindings, Budget, Constants, EngineError, Ledger, Program, RunContext};
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

impl Program for InterpretedProgram {
    fn run(&self, bindings: &Bindings, context: &RunContext<'_>) -> Result<(), EngineError> {
        let Self { layout, constants, ledger, accelerator } = self;
        let accelerator = accelerator.as_deref();
        Execution::new(layout, constants, ledger, accelerator, bindings, context).run()
    }
}
