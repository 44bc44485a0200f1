//! [`SubgraphBuilder`] and [`ModelBuilder`]: writing a model by hand.
//!
//! The builder counts consumers, places constants, and derives lifetimes, so a model that it
//! returns cannot be wrong in those. Whether operations get the arguments they want is for the
//! validator (`nnhal_ops::validate`) to say.
//!
//! ```
//! use nnhal_hal::{FusedActivation, ModelBuilder, OperandSpec, OperationType, SubgraphBuilder};
//!
//! let mut graph = SubgraphBuilder::new();
//! let image = graph.input("image", OperandSpec::tensor_quant8_asymm([1, 4, 4, 1], 0.5, 128));
//! let probability = graph.operation(
//!     OperationType::Logistic,
//!     [image],
//!     OperandSpec::tensor_quant8_asymm([1, 4, 4, 1], 1.0 / 256.0, 0),
//! );
//! graph.output(probability);
//! let model = ModelBuilder::new().relaxed(true).build(graph)?;
//! # Ok::<(), nnhal_hal::BuildError>(())
//! ```

use crate::codes::OperandLifeTime;
use crate::extension::ExtensionNameAndPrefix;
use crate::memory::Memory;
use crate::model::{
    ChannelQuant, DataLocation, ExtraParams, Model, Operand, Operation, Subgraph, SubgraphName,
};
use crate::operand_type::OperandType;
use crate::operation_type::OperationType;
use half::f16;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

/// Type, shape and quantization of an operand to be.
#[derive(Debug, Clone, PartialEq)]
pub struct OperandSpec {
    /// See [`Operand::operand_type`].
    pub operand_type: OperandType,
    /// See [`Operand::dimensions`].
    pub dimensions: Vec<u32>,
    /// See [`Operand::scale`].
    pub scale: f32,
    /// See [`Operand::zero_point`].
    pub zero_point: i32,
    /// See [`ExtraParams`].
    pub extra_params: ExtraParams,
}

impl OperandSpec {
    /// An operand of any type without quantization. Dimension 0 means unknown.
    pub fn new(operand_type: OperandType, dimensions: impl Into<Vec<u32>>) -> Self {
        Self {
            operand_type,
            dimensions: dimensions.into(),
            scale: 0.0,
            zero_point: 0,
            extra_params: ExtraParams::None,
        }
    }

    /// A scalar of any type.
    pub fn scalar(operand_type: OperandType) -> Self {
        Self::new(operand_type, [])
    }

    /// The same with a scale and a zero point.
    #[must_use]
    pub fn quantized(mut self, scale: f32, zero_point: i32) -> Self {
        self.scale = scale;
        self.zero_point = zero_point;
        self
    }

    /// `TENSOR_FLOAT32`
    pub fn tensor_float32(dimensions: impl Into<Vec<u32>>) -> Self {
        Self::new(OperandType::TensorFloat32, dimensions)
    }

    /// `TENSOR_FLOAT16`
    pub fn tensor_float16(dimensions: impl Into<Vec<u32>>) -> Self {
        Self::new(OperandType::TensorFloat16, dimensions)
    }

    /// `TENSOR_INT32` without a scale.
    pub fn tensor_int32(dimensions: impl Into<Vec<u32>>) -> Self {
        Self::new(OperandType::TensorInt32, dimensions)
    }

    /// `TENSOR_BOOL8`
    pub fn tensor_bool8(dimensions: impl Into<Vec<u32>>) -> Self {
        Self::new(OperandType::TensorBool8, dimensions)
    }

    /// `TENSOR_QUANT8_ASYMM`: unsigned bytes.
    pub fn tensor_quant8_asymm(
        dimensions: impl Into<Vec<u32>>,
        scale: f32,
        zero_point: i32,
    ) -> Self {
        Self::new(OperandType::TensorQuant8Asymm, dimensions).quantized(scale, zero_point)
    }

    /// `TENSOR_QUANT8_ASYMM_SIGNED`: signed bytes.
    pub fn tensor_quant8_asymm_signed(
        dimensions: impl Into<Vec<u32>>,
        scale: f32,
        zero_point: i32,
    ) -> Self {
        Self::new(OperandType::TensorQuant8AsymmSigned, dimensions).quantized(scale, zero_point)
    }

    /// `TENSOR_QUANT8_SYMM_PER_CHANNEL`: signed bytes with a scale for each index of one axis.
    pub fn tensor_quant8_symm_per_channel(
        dimensions: impl Into<Vec<u32>>,
        scales: &[f32],
        channel_dim: u32,
    ) -> Self {
        let mut spec = Self::new(OperandType::TensorQuant8SymmPerChannel, dimensions);
        spec.extra_params =
            ExtraParams::ChannelQuant(ChannelQuant { scales: scales.into(), channel_dim });
        spec
    }

    /// Bytes that a value of this type and shape takes, `None` if that is not known or exceeds
    /// 2^32 - 1.
    fn byte_size(&self) -> Option<u32> {
        let element = self.operand_type.element_size()?;
        self.dimensions
            .iter()
            .try_fold(element, |size, extent| size.checked_mul(*extent))
            .filter(|_| self.operand_type.is_scalar() || !self.dimensions.is_empty())
    }
}

/// A Rust type whose values are stored in operands.
pub trait Element: Copy {
    /// The operand types whose elements it can be.
    const STORED_AS: &'static [OperandType];
    /// Appends the little-endian bytes.
    fn append_to(self, bytes: &mut Vec<u8>);
}

macro_rules! element {
    ($($Type:ty: $($Row:ident)*;)*) => {
        $(impl Element for $Type {
            const STORED_AS: &'static [OperandType] = &[$(OperandType::$Row),*];
            fn append_to(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }
        })*
    };
}

element! {
    f32: Float32 TensorFloat32;
    f16: Float16 TensorFloat16;
    i32: Int32 TensorInt32;
    u32: Uint32;
    u8: TensorQuant8Asymm TensorOemByte;
    i8: TensorQuant8AsymmSigned TensorQuant8Symm TensorQuant8SymmPerChannel;
    i16: TensorQuant16Symm;
    u16: TensorQuant16Asymm;
}

impl Element for bool {
    const STORED_AS: &'static [OperandType] = &[OperandType::Bool, OperandType::TensorBool8];
    fn append_to(self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(self));
    }
}

/// An operand of a [`SubgraphBuilder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OperandId {
    graph: u64,
    index: u32,
}

impl OperandId {
    /// The operand's index in the finished subgraph.
    pub fn index(self) -> u32 {
        self.index
    }
}

/// A referenced subgraph of a [`ModelBuilder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SubgraphId(u32);

/// A memory pool of a [`ModelBuilder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PoolId(u32);

/// Why a model could not be built: the first mistake, and where it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{subgraph}: {mistake}")]
pub struct BuildError {
    /// Where it is.
    pub subgraph: SubgraphName,
    /// The first thing that is wrong there.
    pub mistake: Mistake,
}

/// A mistake in the use of a [`SubgraphBuilder`]. Operands and operations are named by index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mistake {
    /// An operand handle of another builder was used.
    #[error("operand {index} belongs to another builder")]
    ForeignOperand {
        /// Its index in its own builder.
        index: u32,
    },
    /// A constant's bytes are not as many as its type and shape say.
    #[error("constant {index} ({operand_type} {dimensions:?}) has {found} bytes")]
    ConstantSize {
        /// The operand.
        index: u32,
        /// As it was declared.
        operand_type: OperandType,
        /// Its shape.
        dimensions: Vec<u32>,
        /// The bytes given.
        found: usize,
    },
    /// A constant's Rust type cannot be an element of its operand type.
    #[error("elements of constant {index} ({operand_type}) are of another type")]
    ConstantType {
        /// The operand.
        index: u32,
        /// As it was declared.
        operand_type: OperandType,
    },
    /// Something was written that no operation may write, or written twice.
    #[error("operand {index} is written by operation {operation}, but it {why}")]
    Written {
        /// The operand.
        index: u32,
        /// Index, in the order in which operations were added.
        operation: usize,
        /// What forbids it.
        why: &'static str,
    },
    /// An operation reads what nothing before it has written.
    #[error("operation {operation} reads operand {index} before it is written")]
    ReadBeforeWritten {
        /// The operand.
        index: u32,
        /// Index, in the order in which operations were added.
        operation: usize,
    },
    /// What was named as output is no result of an operation, or was named twice.
    #[error("operand {index} cannot be a result: it {why}")]
    Output {
        /// The operand.
        index: u32,
        /// What forbids it.
        why: &'static str,
    },
    /// The system has no memory for the constants.
    #[error("there is no memory for {bytes} bytes of constants")]
    NoMemory {
        /// Bytes that were to be kept.
        bytes: usize,
    },
    /// More than 2^32 - 1 operands or bytes of constants.
    #[error("more {what} than 32 bits can count")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
    },
}

/// Builds one subgraph. Operands are made by the methods and live until [`ModelBuilder::build`].
///
/// Methods do not fail; the first mistake is reported by `build`.
#[derive(Debug)]
pub struct SubgraphBuilder {
    id: u64,
    subgraph: Subgraph,
    names: Vec<Option<String>>,
    values: Vec<u8>,
    mistakes: Vec<Mistake>,
}

impl Default for SubgraphBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl SubgraphBuilder {
    /// An empty subgraph.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            subgraph: Subgraph::default(),
            names: Vec::new(),
            values: Vec::new(),
            mistakes: Vec::new(),
        }
    }

    /// The next argument that the caller gives.
    pub fn input(&mut self, name: impl Into<String>, spec: OperandSpec) -> OperandId {
        let operand = self.operand(Some(name.into()), spec, OperandLifeTime::SubgraphInput);
        self.subgraph.inputs.push(operand.index);
        operand
    }

    /// A result of an operation that [`Self::operation_into`] will be given.
    pub fn temporary(&mut self, spec: OperandSpec) -> OperandId {
        self.operand(None, spec, OperandLifeTime::TemporaryVariable)
    }

    /// A constant kept inside the model.
    pub fn constant<E: Element>(&mut self, spec: OperandSpec, elements: &[E]) -> OperandId {
        let operand_type = spec.operand_type;
        let known = E::STORED_AS.contains(&operand_type);
        let mut bytes = Vec::with_capacity(size_of_val(elements));
        for element in elements {
            element.append_to(&mut bytes);
        }
        let operand = self.constant_bytes(spec, &bytes);
        if !known {
            let index = operand.index;
            self.mistakes.push(Mistake::ConstantType { index, operand_type });
        }
        operand
    }

    /// A constant kept inside the model, given as little-endian bytes.
    pub fn constant_bytes(&mut self, spec: OperandSpec, bytes: &[u8]) -> OperandId {
        // As the runtime does: values of 4 bytes and more start at multiples of 4 (MODEL-18).
        let alignment = match bytes.len() {
            0 | 1 => 1,
            2 | 3 => 2,
            _ => 4,
        };
        let offset = self.values.len().next_multiple_of(alignment);
        // The bytes may be a stranger's, and as many as they like.
        match self.values.try_reserve(alignment + bytes.len()) {
            Ok(()) => {
                self.values.resize(offset, 0);
                self.values.extend_from_slice(bytes);
            }
            Err(_) => self.mistakes.push(Mistake::NoMemory { bytes: offset + bytes.len() }),
        }
        let sized = spec.byte_size().is_none_or(|size| size as usize == bytes.len())
            && (spec.operand_type.element_size().is_none() || spec.byte_size().is_some());
        let (operand_type, dimensions) = (spec.operand_type, spec.dimensions.clone());
        let operand = self.operand(None, spec, OperandLifeTime::ConstantCopy);
        let (index, found) = (operand.index, bytes.len());
        if !sized && !operand_type.is_oem() {
            self.mistakes.push(Mistake::ConstantSize { index, operand_type, dimensions, found });
        }
        match (u32::try_from(offset), u32::try_from(found)) {
            (Ok(offset), Ok(length)) => {
                self.operand_mut(operand).location = DataLocation { pool_index: 0, offset, length };
            }
            _ => self.too_large("bytes of constants"),
        }
        operand
    }

    /// A constant that is in a pool of the model.
    pub fn constant_in_pool(
        &mut self,
        spec: OperandSpec,
        pool: PoolId,
        offset: u32,
        length: u32,
    ) -> OperandId {
        let operand = self.operand(None, spec, OperandLifeTime::ConstantReference);
        self.operand_mut(operand).location = DataLocation { pool_index: pool.0, offset, length };
        operand
    }

    /// A constant `INT32`.
    pub fn scalar_i32(&mut self, value: i32) -> OperandId {
        self.constant(OperandSpec::scalar(OperandType::Int32), &[value])
    }

    /// A constant `FLOAT32`.
    pub fn scalar_f32(&mut self, value: f32) -> OperandId {
        self.constant(OperandSpec::scalar(OperandType::Float32), &[value])
    }

    /// A constant `BOOL`.
    pub fn scalar_bool(&mut self, value: bool) -> OperandId {
        self.constant(OperandSpec::scalar(OperandType::Bool), &[value])
    }

    /// An optional argument that is left out.
    pub fn omitted(&mut self, spec: OperandSpec) -> OperandId {
        self.operand(None, spec, OperandLifeTime::NoValue)
    }

    /// A reference to another subgraph, for IF and WHILE.
    pub fn subgraph(&mut self, subgraph: SubgraphId) -> OperandId {
        let spec = OperandSpec::scalar(OperandType::Subgraph);
        let operand = self.operand(None, spec, OperandLifeTime::Subgraph);
        self.operand_mut(operand).location.offset = subgraph.0;
        operand
    }

    /// Says what the dimensions of an operation's result are, where they were not known when it was
    /// added. Operands of other kinds stay as they are.
    pub fn resolve(&mut self, index: u32, dimensions: impl Into<Vec<u32>>) {
        let operand = self.subgraph.operands.get_mut(index as usize);
        if let Some(operand) =
            operand.filter(|it| it.lifetime == OperandLifeTime::TemporaryVariable)
        {
            operand.dimensions = dimensions.into();
        }
    }

    /// The bytes of a constant that is kept inside the model; `None` for every other operand.
    pub fn constant_value(&self, index: u32) -> Option<&[u8]> {
        let operand = self.subgraph.operands.get(index as usize)?;
        if operand.lifetime != OperandLifeTime::ConstantCopy {
            return None;
        }
        let start = operand.location.offset as usize;
        self.values.get(start..start.checked_add(operand.location.length as usize)?)
    }

    /// An operation with one result, which is returned.
    pub fn operation(
        &mut self,
        operation_type: OperationType,
        inputs: impl AsRef<[OperandId]>,
        output: OperandSpec,
    ) -> OperandId {
        let output = self.temporary(output);
        self.operation_into(operation_type, inputs, [output]);
        output
    }

    /// An operation with any number of results, which are returned.
    pub fn operation_with_outputs<const N: usize>(
        &mut self,
        operation_type: OperationType,
        inputs: impl AsRef<[OperandId]>,
        outputs: [OperandSpec; N],
    ) -> [OperandId; N] {
        let outputs = outputs.map(|output| self.temporary(output));
        self.operation_into(operation_type, inputs, outputs);
        outputs
    }

    /// An operation whose results are operands made by [`Self::temporary`].
    pub fn operation_into(
        &mut self,
        operation_type: OperationType,
        inputs: impl AsRef<[OperandId]>,
        outputs: impl AsRef<[OperandId]>,
    ) {
        let inputs = self.own_indexes(inputs.as_ref());
        let outputs = self.own_indexes(outputs.as_ref());
        for index in &inputs {
            if let Some(operand) = self.subgraph.operands.get_mut(*index as usize) {
                operand.number_of_consumers += 1;
            }
        }
        self.subgraph.operations.push(Operation { operation_type, inputs, outputs });
    }

    /// The next result that the caller gets: a result of an operation.
    pub fn output(&mut self, operand: OperandId) {
        let indexes = self.own_indexes(&[operand]);
        for index in indexes {
            let operand = &mut self.subgraph.operands[index as usize];
            if operand.lifetime == OperandLifeTime::TemporaryVariable {
                operand.lifetime = OperandLifeTime::SubgraphOutput;
                self.subgraph.outputs.push(index);
            } else {
                let why = match operand.lifetime {
                    OperandLifeTime::SubgraphOutput => "is one already",
                    _ => "is no result of an operation",
                };
                self.mistakes.push(Mistake::Output { index, why });
            }
        }
    }

    /// Gives an operand a name, for messages of whoever keeps [`Self::names`].
    pub fn name(&mut self, operand: OperandId, name: impl Into<String>) {
        if operand.graph == self.id {
            self.names[operand.index as usize] = Some(name.into());
        }
    }

    /// The names given so far, by operand index.
    pub fn names(&self) -> &[Option<String>] {
        &self.names
    }

    /// Type, shape and quantization of an operand of this builder.
    ///
    /// # Panics
    /// If the operand belongs to another builder.
    pub fn spec(&self, operand: OperandId) -> OperandSpec {
        assert_eq!(operand.graph, self.id, "the operand belongs to another builder");
        let operand = &self.subgraph.operands[operand.index as usize];
        OperandSpec {
            operand_type: operand.operand_type,
            dimensions: operand.dimensions.clone(),
            scale: operand.scale,
            zero_point: operand.zero_point,
            extra_params: operand.extra_params.clone(),
        }
    }

    /// Whether an operand of this builder is the result of an operation, and not an output yet.
    ///
    /// # Panics
    /// If the operand belongs to another builder.
    pub fn is_result(&self, operand: OperandId) -> bool {
        assert_eq!(operand.graph, self.id, "the operand belongs to another builder");
        let lifetime = self.subgraph.operands[operand.index as usize].lifetime;
        lifetime == OperandLifeTime::TemporaryVariable
    }

    /// The subgraph as it stands: operands, operations and inputs so far.
    pub fn subgraph_so_far(&self) -> &Subgraph {
        &self.subgraph
    }

    /// Number of operations so far.
    pub fn operation_count(&self) -> usize {
        self.subgraph.operations.len()
    }

    /// A model of this subgraph alone.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn into_model(self) -> Result<Model, BuildError> {
        ModelBuilder::new().build(self)
    }

    fn operand(
        &mut self,
        name: Option<String>,
        spec: OperandSpec,
        lifetime: OperandLifeTime,
    ) -> OperandId {
        let index = u32::try_from(self.subgraph.operands.len()).unwrap_or_else(|_| {
            self.too_large("operands");
            u32::MAX
        });
        self.subgraph.operands.push(Operand {
            operand_type: spec.operand_type,
            dimensions: spec.dimensions,
            number_of_consumers: 0,
            scale: spec.scale,
            zero_point: spec.zero_point,
            lifetime,
            location: DataLocation::default(),
            extra_params: spec.extra_params,
        });
        self.names.push(name);
        OperandId { graph: self.id, index }
    }

    fn operand_mut(&mut self, operand: OperandId) -> &mut Operand {
        &mut self.subgraph.operands[operand.index as usize]
    }

    fn too_large(&mut self, what: &'static str) {
        self.mistakes.push(Mistake::TooLarge { what });
    }

    /// The indexes of handles that are this builder's; the others are reported.
    fn own_indexes(&mut self, operands: &[OperandId]) -> Vec<u32> {
        for operand in operands.iter().filter(|operand| operand.graph != self.id) {
            let index = operand.index;
            self.mistakes.push(Mistake::ForeignOperand { index });
        }
        operands
            .iter()
            .filter(|operand| operand.graph == self.id)
            .map(|operand| operand.index)
            .collect()
    }

    /// Everything that can only be said once all operations are there.
    fn check_order(&self) -> Result<(), Mistake> {
        let mut written = HashSet::new();
        let is_result = |index: u32| {
            matches!(
                self.subgraph.operands[index as usize].lifetime,
                OperandLifeTime::TemporaryVariable | OperandLifeTime::SubgraphOutput
            )
        };
        for (operation, step) in self.subgraph.operations.iter().enumerate() {
            for &index in step.inputs.iter().filter(|index| is_result(**index)) {
                if !written.contains(&index) {
                    return Err(Mistake::ReadBeforeWritten { index, operation });
                }
            }
            for &index in &step.outputs {
                let why = if !is_result(index) {
                    "is an input or a constant"
                } else if !written.insert(index) {
                    "is written before"
                } else {
                    continue;
                };
                return Err(Mistake::Written { index, operation, why });
            }
        }
        match (0..self.subgraph.operands.len() as u64)
            .filter_map(|index| u32::try_from(index).ok())
            .find(|index| is_result(*index) && !written.contains(index))
        {
            Some(index) => Err(Mistake::Output { index, why: "is written by no operation" }),
            None => Ok(()),
        }
    }
}

/// Puts subgraphs, memory pools and flags together to a [`Model`].
#[derive(Debug, Default)]
pub struct ModelBuilder {
    referenced: Vec<SubgraphBuilder>,
    pools: Vec<Memory>,
    relaxed: bool,
    extensions: Vec<ExtensionNameAndPrefix>,
}

impl ModelBuilder {
    /// No referenced subgraphs, no pools, float32 computed as such.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether float32 may be computed with the range and precision of float16.
    #[must_use]
    pub fn relaxed(mut self, relaxed: bool) -> Self {
        self.relaxed = relaxed;
        self
    }

    /// Adds memory for constants.
    pub fn pool(&mut self, memory: Memory) -> PoolId {
        self.pools.push(memory);
        PoolId(u32::try_from(self.pools.len() - 1).unwrap_or(u32::MAX))
    }

    /// Adds a subgraph that operands of other subgraphs can refer to.
    pub fn reference(&mut self, subgraph: SubgraphBuilder) -> SubgraphId {
        self.referenced.push(subgraph);
        SubgraphId(u32::try_from(self.referenced.len() - 1).unwrap_or(u32::MAX))
    }

    /// Says which extension a prefix stands for.
    pub fn extension(&mut self, name: impl Into<String>, prefix: u16) {
        self.extensions.push(ExtensionNameAndPrefix { name: name.into(), prefix });
    }

    /// The finished model.
    ///
    /// # Errors
    /// The first mistake, see [`BuildError`].
    pub fn build(self, main: SubgraphBuilder) -> Result<Model, BuildError> {
        let mut values = Vec::new();
        let main = finish(main, SubgraphName::Main, &mut values)?;
        let referenced = self
            .referenced
            .into_iter()
            .enumerate()
            .map(|(index, graph)| finish(graph, SubgraphName::Referenced(index), &mut values))
            .collect::<Result<_, _>>()?;
        // Shared bytes are another allocation of the same size, which cannot fail by itself.
        let bytes = values.len();
        Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| BuildError {
            subgraph: SubgraphName::Main,
            mistake: Mistake::NoMemory { bytes },
        })?;
        Ok(Model {
            main,
            referenced,
            operand_values: values.into(),
            pools: self.pools,
            relax_computation_float32_to_float16: self.relaxed,
            extension_name_to_prefix: self.extensions,
        })
    }
}

/// Checks one subgraph and appends its constants to those of the model.
fn finish(
    mut graph: SubgraphBuilder,
    name: SubgraphName,
    values: &mut Vec<u8>,
) -> Result<Subgraph, BuildError> {
    let in_subgraph = |mistake| BuildError { subgraph: name, mistake };
    if let Some(mistake) = graph.mistakes.first() {
        return Err(in_subgraph(mistake.clone()));
    }
    graph.check_order().map_err(in_subgraph)?;
    let too_large = || in_subgraph(Mistake::TooLarge { what: "bytes of constants" });
    let base = values.len().next_multiple_of(4);
    if base == 0 {
        *values = std::mem::take(&mut graph.values);
    } else {
        let no_memory = |_| in_subgraph(Mistake::NoMemory { bytes: graph.values.len() });
        values.try_reserve(4 + graph.values.len()).map_err(no_memory)?;
        values.resize(base, 0);
        values.extend_from_slice(&graph.values);
    }
    let base = u32::try_from(base).map_err(|_| too_large())?;
    for operand in &mut graph.subgraph.operands {
        if operand.lifetime == OperandLifeTime::ConstantCopy {
            operand.location.offset =
                operand.location.offset.checked_add(base).ok_or_else(too_large)?;
        }
    }
    Ok(graph.subgraph)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(graph: SubgraphBuilder) -> Mistake {
        graph.into_model().unwrap_err().mistake
    }

    fn vector() -> OperandSpec {
        OperandSpec::tensor_float32([2])
    }

    #[test]
    fn model_24_consumers_are_counted_with_repetitions() {
        let mut graph = SubgraphBuilder::new();
        let x = graph.input("x", vector());
        let none = graph.scalar_i32(0);
        let twice = graph.operation(OperationType::Add, [x, x, none], vector());
        graph.output(twice);
        let model = graph.into_model().unwrap();
        assert_eq!(model.main.operands[x.index() as usize].number_of_consumers, 2);
        assert_eq!(model.main.operands[none.index() as usize].number_of_consumers, 1);
        assert_eq!(model.main.operands[twice.index() as usize].number_of_consumers, 0);
    }

    #[test]
    fn constants_of_all_subgraphs_share_one_block() {
        let mut branch = SubgraphBuilder::new();
        let x = branch.input("x", vector());
        let act = branch.scalar_i32(2);
        let y = branch.operation(OperationType::Add, [x, x, act], vector());
        branch.output(y);
        let mut builder = ModelBuilder::new();
        let branch = builder.reference(branch);
        let mut main = SubgraphBuilder::new();
        let condition = main.constant(OperandSpec::tensor_bool8([1]), &[true]);
        let (then, otherwise) = (main.subgraph(branch), main.subgraph(branch));
        let x = main.input("x", vector());
        let y = main.operation(OperationType::If, [condition, then, otherwise, x], vector());
        main.output(y);
        let model = builder.build(main).unwrap();
        let act = &model.referenced[0].operands[act.index() as usize];
        let at = act.location.offset as usize;
        assert_eq!(model.operand_values[at..at + 4], 2_i32.to_le_bytes());
        assert_eq!(at % 4, 0);
    }

    #[test]
    fn mistakes_are_named() {
        let mut graph = SubgraphBuilder::new();
        let constant = graph.constant(vector(), &[1.0_f32]);
        graph.output(constant);
        assert_eq!(
            graph.into_model().unwrap_err().to_string(),
            "main subgraph: constant 0 (TENSOR_FLOAT32 [2]) has 4 bytes"
        );

        let mut graph = SubgraphBuilder::new();
        graph.constant(vector(), &[1_i32, 2]);
        assert!(matches!(mistake(graph), Mistake::ConstantType { index: 0, .. }));

        let mut other = SubgraphBuilder::new();
        let foreign = other.input("x", vector());
        let mut graph = SubgraphBuilder::new();
        graph.operation(OperationType::Relu, [foreign], vector());
        assert!(matches!(mistake(graph), Mistake::ForeignOperand { .. }));

        let mut graph = SubgraphBuilder::new();
        let x = graph.input("x", vector());
        graph.operation_into(OperationType::Relu, [x], [x]);
        assert!(matches!(mistake(graph), Mistake::Written { .. }));

        let mut graph = SubgraphBuilder::new();
        let (a, b) = (graph.temporary(vector()), graph.temporary(vector()));
        graph.operation_into(OperationType::Relu, [a], [b]);
        assert!(matches!(mistake(graph), Mistake::ReadBeforeWritten { .. }));

        let mut graph = SubgraphBuilder::new();
        let lonely = graph.temporary(vector());
        graph.output(lonely);
        assert!(matches!(mistake(graph), Mistake::Output { .. }));
    }
}
