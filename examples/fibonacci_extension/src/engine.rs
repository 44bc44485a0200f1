//! [`FibonacciEngine`]: which operations it can do, and what it makes of a model.

use crate::operations::ExtensionOperation;
use crate::program::{FibonacciProgram, Interpreted};
use crate::vocabulary::{EXTENSION_NAME, Vocabulary, extension};
use nnhal_driver::{Budget, CompileOptions, Engine, EngineError, OperationPlace};
use nnhal_hal::{Capabilities, DeviceType, Extension, OperationType, Support};
use nnhal_ops::ValidModel;
use nnhal_reference::ReferenceEngine;

/// Bytes of constants that a model may have, and bytes of values that an execution may make.
const MEMORY_LIMIT: u64 = 256 << 20;

/// An engine with the extension's operations, and those of the reference engine beside them.
#[derive(Debug, Clone)]
pub struct FibonacciEngine {
    ordinary: ReferenceEngine,
}

impl Default for FibonacciEngine {
    fn default() -> Self {
        Self { ordinary: ReferenceEngine::with_memory_limit(MEMORY_LIMIT) }
    }
}

impl Engine for FibonacciEngine {
    type Program = FibonacciProgram;

    fn name(&self) -> &str {
        "example-fibonacci"
    }

    fn version_string(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Cpu
    }

    /// Those of the reference engine, which does the work. Types of an extension have no place in
    /// them (contract: DEV-CAP-5).
    fn capabilities(&self) -> Capabilities {
        self.ordinary.capabilities()
    }

    fn extensions(&self) -> Vec<Extension> {
        vec![extension()]
    }

    /// The driver asks only about operations of extensions that [`Self::extensions`] names, and
    /// whose operands of an extension's type have a size that fits.
    fn supports(&self, model: &ValidModel, place: OperationPlace) -> Support {
        match place.operation_type {
            OperationType::Extension(_) => {
                let Some(vocabulary) = Vocabulary::of(model.model()) else {
                    return Support::No(format!("it is not of {EXTENSION_NAME}"));
                };
                let call = model.call(place.subgraph, place.index);
                match ExtensionOperation::validate(&call, vocabulary) {
                    Ok(()) => Support::Yes,
                    Err(fault) => Support::No(fault.to_string()),
                }
            }
            OperationType::If | OperationType::While if has_extension_operations(model) => {
                let reason = "control flow is for models without operations of an extension";
                Support::No(reason.to_owned())
            }
            // The reference engine declines operands of types that it does not know.
            _ => self.ordinary.supports(model, place),
        }
    }

    fn compile(
        &self,
        model: &ValidModel,
        options: &CompileOptions,
        budget: &Budget,
    ) -> Result<FibonacciProgram, EngineError> {
        if !has_extension_operations(model) {
            let program = self.ordinary.compile(model, options, budget)?;
            return Ok(FibonacciProgram::Delegated(program));
        }
        Ok(FibonacciProgram::Interpreted(Interpreted::new(model, MEMORY_LIMIT)?))
    }
}

fn has_extension_operations(model: &ValidModel) -> bool {
    let mut operations = model.model().subgraphs().flat_map(|(_, graph)| &graph.operations);
    operations.any(|operation| matches!(operation.operation_type, OperationType::Extension(_)))
}
