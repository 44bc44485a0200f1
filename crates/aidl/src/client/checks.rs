//! [`Checks`]: what every way to execute asks of a request and of the service's answer.

use super::fenced::timing;
use super::link::Link;
use crate::convert::{request_to_wire, shapes_from_wire};
use crate::interface::nn;
use nn::ExecutionResult::ExecutionResult;
use nnhal_hal::{
    Error, ErrorStatus, Execution, ExecutionError, HalVersion, Model, Request, Timing,
};
use nnhal_hidl::checks::Outputs;
use std::sync::Arc;

/// A prepared model, as far as requests and answers depend on it.
#[derive(Clone)]
pub(super) struct Checks {
    link: Arc<Link>,
    outputs: Outputs,
    version: HalVersion,
}

impl Checks {
    /// Those of a model that was prepared for a version; of one from a cache the model is not known.
    pub(super) fn new(link: Arc<Link>, model: Option<&Model>, version: HalVersion) -> Self {
        Self { link, outputs: Outputs::of(model), version }
    }

    pub(super) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// A request for the wire, if a call can carry it with this number of descriptors besides.
    pub(super) fn to_wire(
        &self,
        request: &Request,
        besides: usize,
    ) -> nnhal_hal::Result<nn::Request::Request> {
        self.link.expect_descriptors(request.pools.len().saturating_add(besides))?;
        Ok(request_to_wire(request)?)
    }

    /// Outputs of models older than 1.2 have to be known, which the service does not know of this one
    /// (contract: REQ-8).
    pub(super) fn expect_known_outputs(&self, request: &Request) -> nnhal_hal::Result<()> {
        if self.version >= HalVersion::V1_2 {
            return Ok(());
        }
        let operands = self.outputs.model().map_or(&[][..], |model| &model.main.operands[..]);
        for (index, (operand, argument)) in operands.iter().zip(&request.outputs).enumerate() {
            let known = match &argument.dimensions[..] {
                [] => operand.has_known_dimensions(),
                dimensions => !dimensions.contains(&0),
            };
            if !known && !argument.has_no_value {
                return Err(Error::invalid(format!(
                    "the dimensions of output {index} are not known, which {} demands",
                    self.version
                )));
            }
        }
        Ok(())
    }

    /// What a service answered to an execution, if it can be believed.
    pub(super) fn judge(
        &self,
        method: &'static str,
        request: &Request,
        measure: bool,
        result: ExecutionResult,
    ) -> Result<Execution, ExecutionError> {
        let output_shapes = shapes_from_wire(&result.outputShapes).map_err(Error::failure)?;
        let answer = match result.outputSufficientSize {
            true => {
                let timing = if measure { timing(&result.timing)? } else { Timing::NONE };
                Ok(Execution { output_shapes, timing })
            }
            false => {
                let status = ErrorStatus::OutputInsufficientSize;
                let error = Error::new(status, format!("{method}: a buffer is too short"));
                Err(ExecutionError { error, output_shapes })
            }
        };
        self.outputs.check(method, request, answer)
    }
}
