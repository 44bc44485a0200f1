//! [`PreparedModel`]: a driver's prepared model as a [`nnhal_hal::PreparedModel`].

use super::answer::{Misbehaviour, answered, ask, expect_none, expect_some, status};
use super::callbacks::{ExecutionAnswer, ExecutionCallback};
use super::fenced::{self, Info};
use super::interface::PreparedInterface;
use super::{Options, burst};
use crate::convert::{ConversionError, Convert};
use crate::{v1_0, v1_2, v1_3};
use nnhal_hal::{
    ErrorStatus, Execution, ExecutionError, ExecutionOptions, FencedExecution, HalVersion,
    MeasureTiming, Model, Operand, OutputShape, Request, RequestArgument, SyncFence, Timing,
};
use std::sync::Arc;
use std::time::Duration;

/// A prepared model of a [`Device`](super::Device).
#[derive(Clone)]
pub struct PreparedModel {
    interface: PreparedInterface,
    /// The device's version.
    version: HalVersion,
    /// A model with the outputs of the one that was prepared, and nothing else. `None` if it came
    /// from a cache.
    outputs: Option<Arc<Model>>,
    options: Options,
    device: Arc<()>,
}

impl PreparedModel {
    pub(super) fn new(
        interface: PreparedInterface,
        version: HalVersion,
        model: Option<&Model>,
        options: Options,
        device: Arc<()>,
    ) -> Self {
        Self {
            interface,
            version,
            outputs: model.and_then(outputs_of).map(Arc::new),
            options,
            device,
        }
    }

    pub(super) fn is_of(&self, device: &Arc<()>) -> bool {
        Arc::ptr_eq(&self.device, device)
    }

    pub(super) fn v1_3(&self) -> Option<&Arc<dyn v1_3::IPreparedModel>> {
        match &self.interface {
            PreparedInterface::V1_3(model) => Some(model),
            PreparedInterface::V1_0(_) | PreparedInterface::V1_2(_) => None,
        }
    }

    /// The version in which requests are put to the driver.
    fn spoken(&self) -> HalVersion {
        match &self.interface {
            PreparedInterface::V1_0(_) => self.version.min(HalVersion::V1_1),
            PreparedInterface::V1_2(_) => HalVersion::V1_2,
            PreparedInterface::V1_3(_) => HalVersion::V1_3,
        }
    }

    fn expect_expressible(&self, request: &Request) -> Result<(), ConversionError> {
        self.expect_expressible_by(request, self.spoken())
    }

    /// Whether a burst can carry a request: in the words of 1.2 (contract: BURST-14).
    pub(super) fn expect_burst(&self, request: &Request) -> nnhal_hal::Result<()> {
        Ok(self.expect_expressible_by(request, HalVersion::V1_2)?)
    }

    fn expect_expressible_by(
        &self,
        request: &Request,
        version: HalVersion,
    ) -> Result<(), ConversionError> {
        let nothing = Model::default();
        let model = self.outputs.as_deref().unwrap_or(&nothing);
        let obstacles = request.stands_in_the_way_of(version, model);
        if obstacles.is_empty() {
            return Ok(());
        }
        Err(ConversionError::Inexpressible { version, obstacles })
    }

    /// Puts a request to the driver and waits for its answer.
    fn run(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> nnhal_hal::Result<(&'static str, ExecutionAnswer)> {
        self.expect_expressible(request)?;
        let measure = measure_code(options.measure);
        let wait_for =
            |method, launch: &dyn Fn(Arc<ExecutionCallback>) -> nnhal_hal::Result<i32>| {
                let (callback, wait) = ExecutionCallback::new();
                expect_none(method, launch(callback)?)?;
                let patience = self.options.patience;
                Ok((method, wait.wait(method, patience, options.cancellation.as_ref())?))
            };
        match &self.interface {
            PreparedInterface::V1_0(model) => {
                let (method, request) = ("execute", v1_0::Request::from_canonical(request)?);
                wait_for(method, &|callback| {
                    ask(method, || model.execute(&request, Some(callback)))
                })
            }
            PreparedInterface::V1_2(model) => {
                let request = v1_0::Request::from_canonical(request)?;
                if self.options.asynchronous {
                    let method = "execute_1_2";
                    return wait_for(method, &|callback| {
                        ask(method, || model.execute_1_2(&request, measure, Some(callback)))
                    });
                }
                let method = "executeSynchronously";
                let (status, output_shapes, timing) =
                    ask(method, || model.execute_synchronously(&request, measure))?;
                Ok((method, ExecutionAnswer { status, output_shapes, timing }))
            }
            PreparedInterface::V1_3(model) => {
                let request = v1_3::Request::from_canonical(request)?;
                let deadline = Convert::from_canonical(&options.deadline)?;
                let timeout = Convert::from_canonical(&options.loop_timeout)?;
                if self.options.asynchronous {
                    let method = "execute_1_3";
                    return wait_for(method, &|callback| {
                        ask(method, || {
                            model.execute_1_3(&request, measure, deadline, timeout, Some(callback))
                        })
                    });
                }
                let method = "executeSynchronously_1_3";
                let (status, output_shapes, timing) = ask(method, || {
                    model.execute_synchronously_1_3(&request, measure, deadline, timeout)
                })?;
                Ok((method, ExecutionAnswer { status, output_shapes, timing }))
            }
        }
    }

    /// What the driver's answer to a request amounts to.
    pub(super) fn judge(
        &self,
        method: &'static str,
        answer: ExecutionAnswer,
        request: &Request,
        measured: bool,
    ) -> Result<Execution, ExecutionError> {
        let status = status(method, answer.status)?;
        let wrong = |what| -> ExecutionError {
            nnhal_hal::Error::from(Misbehaviour::Shapes { method, status, what }).into()
        };
        if !matches!(status, ErrorStatus::None | ErrorStatus::OutputInsufficientSize) {
            // Shapes that come with it mean nothing (contract: GEN-3, CB-7).
            return Err(answered(method, status).into());
        }
        let shapes: Vec<OutputShape> = answer
            .output_shapes
            .iter()
            .map(Convert::to_canonical)
            .collect::<Result<_, _>>()
            .map_err(nnhal_hal::Error::from)?;
        let expected = request.outputs.len();
        if !shapes.is_empty() && shapes.len() != expected {
            let (found, what) = (shapes.len(), "output shapes");
            let misbehaviour = Misbehaviour::Count { method, what, found, expected };
            return Err(nnhal_hal::Error::from(misbehaviour).into());
        }
        if status == ErrorStatus::None {
            if !shapes.iter().all(|shape| shape.is_sufficient) {
                return Err(wrong("one had too short a buffer"));
            }
            let outputs = self.outputs(request).zip(&shapes);
            if let Some(what) = outputs
                .filter_map(|((operand, argument), shape)| contradiction(operand, argument, shape))
                .next()
            {
                return Err(wrong(what));
            }
            let output_shapes =
                if shapes.is_empty() { self.known_shapes(method, request)? } else { shapes };
            let timing = if measured { fenced::timing(answer.timing)? } else { Timing::NONE };
            return Ok(Execution { output_shapes, timing });
        }
        let output_shapes = match &self.interface {
            // 1.0 does not say which (contract: EXEC-10).
            PreparedInterface::V1_0(_) => self.short_of_known(request),
            _ if shapes.is_empty() => return Err(wrong("there are none")),
            _ if shapes.iter().all(|shape| shape.is_sufficient) => {
                return Err(wrong("all had buffers long enough"));
            }
            _ => shapes,
        };
        Err(ExecutionError { error: answered(method, status), output_shapes })
    }

    /// The operands and arguments of all outputs, in order.
    fn outputs<'a>(
        &'a self,
        request: &'a Request,
    ) -> impl Iterator<Item = (Option<&'a Operand>, &'a RequestArgument)> {
        let operands = self.outputs.as_deref().map_or(&[][..], |model| &model.main.operands[..]);
        let operands = operands.iter().map(Some).chain(std::iter::repeat(None));
        operands.zip(&request.outputs)
    }

    /// The shapes that model and request say, where the driver need not say them (contract:
    /// SHAPE-2). A model from a cache does not say any: then there are none.
    fn known_shapes(
        &self,
        method: &'static str,
        request: &Request,
    ) -> nnhal_hal::Result<Vec<OutputShape>> {
        if self.outputs.is_none() {
            return Ok(Vec::new());
        }
        let outputs = self.outputs(request).enumerate();
        outputs
            .map(|(output, (operand, argument))| {
                let dimensions = known_dimensions(operand, argument)
                    .ok_or(Misbehaviour::UnknownShape { method, output })?;
                Ok(OutputShape { dimensions, is_sufficient: true })
            })
            .collect()
    }

    /// The shapes that model and request say, and which of their buffers are too short for them.
    fn short_of_known(&self, request: &Request) -> Vec<OutputShape> {
        self.outputs(request)
            .map(|(operand, argument)| {
                let dimensions = known_dimensions(operand, argument).unwrap_or_default();
                let size = operand.and_then(|operand| byte_size(operand, &dimensions));
                let length = u64::from(argument.location.length);
                OutputShape { is_sufficient: size.is_some_and(|size| size <= length), dimensions }
            })
            .collect()
    }
}

/// What a shape says against what model and request said, or against the buffer that was given: who
/// believed it would read behind the buffer (contract: SHAPE-3, SHAPE-5).
fn contradiction(
    operand: Option<&Operand>,
    argument: &RequestArgument,
    shape: &OutputShape,
) -> Option<&'static str> {
    if argument.has_no_value {
        return None;
    }
    let OutputShape { dimensions: found, .. } = shape;
    let by_model = operand.map_or(&[][..], |operand| &operand.dimensions);
    let known = if argument.dimensions.is_empty() { by_model } else { &argument.dimensions };
    if !known.is_empty() {
        if known.len() != found.len() {
            return Some("one has another rank than was known");
        }
        if known.iter().zip(found).any(|(known, found)| *known != 0 && known != found) {
            return Some("one has other dimensions than were known");
        }
    }
    // In a buffer of the driver an argument has no length.
    let length = Some(argument.location.length).filter(|length| *length > 0)?;
    let size = byte_size(operand?, found);
    (size.is_none_or(|size| size > u64::from(length))).then_some("one is longer than its buffer")
}

/// Bytes of a value of these dimensions; `None` if they cannot be counted.
fn byte_size(operand: &Operand, dimensions: &[u32]) -> Option<u64> {
    let element = u64::from(operand.operand_type.element_size()?);
    // A dimension of none makes it nothing, whatever the others are.
    if dimensions.contains(&0) {
        return Some(0);
    }
    dimensions.iter().map(|extent| u64::from(*extent)).try_fold(element, u64::checked_mul)
}

/// A model with the outputs of another, and nothing else; `None` if its indexes lead nowhere.
fn outputs_of(model: &Model) -> Option<Model> {
    let operands: Option<Vec<Operand>> = model
        .main
        .outputs
        .iter()
        .map(|index| model.main.operands.get(*index as usize).cloned())
        .collect();
    let operands = operands?;
    let mut outputs = Model::default();
    outputs.main.outputs = (0..u32::try_from(operands.len()).ok()?).collect();
    outputs.main.operands = operands;
    Some(outputs)
}

/// The dimensions that model and request say together, if they say all.
fn known_dimensions(operand: Option<&Operand>, argument: &RequestArgument) -> Option<Vec<u32>> {
    if !argument.dimensions.is_empty() {
        return (!argument.dimensions.contains(&0)).then(|| argument.dimensions.clone());
    }
    let operand = operand?;
    (operand.has_known_dimensions() || argument.has_no_value).then(|| operand.dimensions.clone())
}

fn measure_code(measure: bool) -> i32 {
    (if measure { MeasureTiming::Yes } else { MeasureTiming::No }).code()
}

impl nnhal_hal::PreparedModel for PreparedModel {
    /// Before 1.3 there are no words for deadline and loop timeout: they are ignored.
    fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Result<Execution, ExecutionError> {
        let (method, answer) = self.run(request, options)?;
        self.judge(method, answer, request, options.measure)
    }

    /// Only whether the driver can be asked: what it will say of the request is not known before.
    fn check_request(&self, request: &Request) -> nnhal_hal::Result<()> {
        Ok(self.expect_expressible(request)?)
    }

    fn configure_burst(&self) -> nnhal_hal::Result<Box<dyn nnhal_hal::Burst>> {
        let driver: &dyn v1_2::IPreparedModel = match &self.interface {
            PreparedInterface::V1_0(_) => {
                return Err(nnhal_hal::Error::failure("drivers have bursts from 1.2 on"));
            }
            PreparedInterface::V1_2(model) => &**model,
            PreparedInterface::V1_3(model) => &**model,
        };
        Ok(Box::new(burst::configure(driver, self.clone())?))
    }

    fn execute_fenced(
        &self,
        request: &Request,
        wait_for: &[SyncFence],
        options: &ExecutionOptions,
        timeout_after_fences: Option<Duration>,
    ) -> nnhal_hal::Result<FencedExecution> {
        let Some(model) = self.v1_3() else {
            return Err(nnhal_hal::Error::failure(
                "drivers run requests behind fences from 1.3 on",
            ));
        };
        self.expect_expressible(request)?;
        let method = "executeFenced";
        let request = v1_3::Request::from_canonical(request)?;
        let wait_for = fenced::handles(wait_for)?;
        let deadline = Convert::from_canonical(&options.deadline)?;
        let loop_timeout = Convert::from_canonical(&options.loop_timeout)?;
        let duration = Convert::from_canonical(&timeout_after_fences)?;
        let measure = measure_code(options.measure);
        let (status, fence, callback) = ask(method, || {
            model.execute_fenced(&request, &wait_for, measure, deadline, loop_timeout, duration)
        })?;
        expect_none(method, status)?;
        let callback = expect_some(method, "callback", callback)?;
        let sync_fence = fenced::fence_of(method, &fence)?;
        Ok(FencedExecution { sync_fence, info: Box::new(Info(callback)) })
    }
}
