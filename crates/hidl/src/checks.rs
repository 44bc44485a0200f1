//! What answers must be to be believed: those of a driver behind the interfaces, which
//! [`client`](crate::client) asks, and those of a device that [`serve`](crate::serve) puts behind them.
//! The same checks serve both, where the answers enter.

use crate::misbehaviour::Misbehaviour;
use nnhal_hal::extension::{ExtensionMistake, check_offered};
use nnhal_hal::{
    CacheFilesNeeded, Capabilities, Error, ErrorStatus, Execution, ExecutionError, Extension,
    HalVersion, Model, Operand, OutputShape, Request, RequestArgument,
};
use std::sync::Arc;

/// What a driver says of itself that no client could work with.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DescriptionError {
    /// Contract: DEV-INFO-1.
    #[error("the version string is empty")]
    NoVersionString,
    /// Contract: DEV-CAP-1 to DEV-CAP-3, DEV-CAP-6.
    #[error("a cost is not above 0")]
    Cost,
    /// Contract: DEV-CAP-4.
    #[error("the costs of operand types are not sorted, or state one twice")]
    Order,
    /// Contract: DEV-CAP-5, DEV-CAP-6.
    #[error("the cost of {0} is stated, which {1} cannot")]
    Type(nnhal_hal::OperandType, HalVersion),
    /// Contract: DEV-EXT-2, DEV-EXT-3.
    #[error(transparent)]
    Extension(#[from] ExtensionMistake),
    /// Contract: DEV-CACHE-1.
    #[error("too many cache files: {0:?}")]
    CacheFiles(CacheFilesNeeded),
}

impl From<DescriptionError> for Error {
    fn from(error: DescriptionError) -> Self {
        Self::failure(error)
    }
}

/// Contract: DEV-INFO-1.
pub fn version_string(version: String) -> Result<String, DescriptionError> {
    if version.is_empty() { Err(DescriptionError::NoVersionString) } else { Ok(version) }
}

/// Contract: DEV-EXT-2, DEV-EXT-3.
pub fn extensions(extensions: Vec<Extension>) -> Result<Vec<Extension>, DescriptionError> {
    check_offered(&extensions)?;
    Ok(extensions)
}

/// Contract: DEV-CACHE-1.
pub fn cache_files_needed(needed: CacheFilesNeeded) -> Result<CacheFilesNeeded, DescriptionError> {
    if needed.is_valid() { Ok(needed) } else { Err(DescriptionError::CacheFiles(needed)) }
}

/// Contract: DEV-CAP.
pub fn capabilities(
    capabilities: Capabilities,
    version: HalVersion,
) -> Result<Capabilities, DescriptionError> {
    let rows = &capabilities.operand_performance;
    for row in rows {
        let operand_type = row.operand_type;
        let strange = matches!(
            operand_type,
            nnhal_hal::OperandType::Subgraph | nnhal_hal::OperandType::Extension(_)
        );
        if strange || operand_type.since() > version {
            return Err(DescriptionError::Type(operand_type, version));
        }
    }
    if !rows.is_sorted_by(|one, next| one.operand_type.code() < next.operand_type.code()) {
        return Err(DescriptionError::Order);
    }
    let single = [
        capabilities.relaxed_float32_to_float16_scalar,
        capabilities.relaxed_float32_to_float16_tensor,
        capabilities.if_performance,
        capabilities.while_performance,
    ];
    if !rows.iter().map(|row| row.info).chain(single).all(nnhal_hal::PerformanceInfo::is_valid) {
        return Err(DescriptionError::Cost);
    }
    Ok(capabilities)
}

/// One answer for each operation (contract: DEV-SUP-2).
pub fn supported<T>(
    method: &'static str,
    operations: usize,
    supported: Vec<T>,
) -> Result<Vec<T>, Misbehaviour> {
    let (found, expected) = (supported.len(), operations);
    if found == expected {
        return Ok(supported);
    }
    Err(Misbehaviour::Count { method, what: "operations", found, expected })
}

/// The outputs of a prepared model, as far as they are known: of one from a cache they are not.
#[derive(Debug, Clone)]
pub struct Outputs(Option<Arc<Model>>);

impl Outputs {
    /// Those of a model.
    pub fn of(model: Option<&Model>) -> Self {
        Self(model.and_then(outputs_of).map(Arc::new))
    }

    /// A model with these outputs and nothing else.
    pub fn model(&self) -> Option<&Model> {
        self.0.as_deref()
    }

    /// What an execution answered, if its shapes are such as model, request and status allow (contract:
    /// SHAPE-1 to SHAPE-5). With another error they mean nothing, and are left out.
    pub fn check(
        &self,
        method: &'static str,
        request: &Request,
        answer: Result<Execution, ExecutionError>,
    ) -> Result<Execution, ExecutionError> {
        match answer {
            Ok(execution) => {
                let shapes = self.check_success(method, request, execution.output_shapes);
                let output_shapes = shapes.map_err(Error::from)?;
                Ok(Execution { output_shapes, ..execution })
            }
            Err(ExecutionError { error, output_shapes })
                if error.status() == ErrorStatus::OutputInsufficientSize =>
            {
                self.check_too_short(method, request, &output_shapes).map_err(Error::from)?;
                Err(ExecutionError { error, output_shapes })
            }
            Err(failed) => Err(failed.error.into()),
        }
    }

    fn check_count(
        method: &'static str,
        request: &Request,
        shapes: &[OutputShape],
    ) -> Result<(), Misbehaviour> {
        let (found, expected) = (shapes.len(), request.outputs.len());
        if shapes.is_empty() || found == expected {
            return Ok(());
        }
        Err(Misbehaviour::Count { method, what: "output shapes", found, expected })
    }

    /// The shapes of a success. Those that need not be said are those that are known.
    fn check_success(
        &self,
        method: &'static str,
        request: &Request,
        shapes: Vec<OutputShape>,
    ) -> Result<Vec<OutputShape>, Misbehaviour> {
        Self::check_count(method, request, &shapes)?;
        let wrong = |what| Misbehaviour::Shapes { method, status: ErrorStatus::None, what };
        if !shapes.iter().all(|shape| shape.is_sufficient) {
            return Err(wrong("one had too short a buffer"));
        }
        let mut outputs = self.outputs(request).zip(&shapes);
        let contradiction = outputs
            .find_map(|((operand, argument), shape)| contradiction(operand, argument, shape));
        match contradiction {
            Some(what) => Err(wrong(what)),
            None if shapes.is_empty() => self.known_shapes(method, request),
            None => Ok(shapes),
        }
    }

    /// Shapes that say which buffers were too short.
    fn check_too_short(
        &self,
        method: &'static str,
        request: &Request,
        shapes: &[OutputShape],
    ) -> Result<(), Misbehaviour> {
        Self::check_count(method, request, shapes)?;
        let status = ErrorStatus::OutputInsufficientSize;
        let wrong = |what| Err(Misbehaviour::Shapes { method, status, what });
        if shapes.is_empty() {
            wrong("there are none")
        } else if shapes.iter().all(|shape| shape.is_sufficient) {
            wrong("all had buffers long enough")
        } else {
            Ok(())
        }
    }

    /// The operands and arguments of all outputs, in order.
    fn outputs<'a>(
        &'a self,
        request: &'a Request,
    ) -> impl Iterator<Item = (Option<&'a Operand>, &'a RequestArgument)> {
        let operands = self.0.as_deref().map_or(&[][..], |model| &model.main.operands[..]);
        let operands = operands.iter().map(Some).chain(std::iter::repeat(None));
        operands.zip(&request.outputs)
    }

    /// The shapes that model and request say, where the driver need not say them (contract:
    /// SHAPE-2). A model from a cache does not say any: then there are none.
    fn known_shapes(
        &self,
        method: &'static str,
        request: &Request,
    ) -> Result<Vec<OutputShape>, Misbehaviour> {
        if self.0.is_none() {
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
    pub fn short_of_known(&self, request: &Request) -> Vec<OutputShape> {
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
