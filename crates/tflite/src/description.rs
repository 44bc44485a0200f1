//! What a file says of its tensors, for whoever shows them.

use crate::error::{ImportError, Reason};
use crate::file::{File, Operator, OperatorKind, Tensor};
use crate::import::{known_lengths, type_name};
use crate::schema::{DimensionType, SparseIndexVectorRef, SparsityParametersRef};
use std::collections::HashMap;
use std::ops::Range;

/// A tensor of the main subgraph as the file describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorDescription {
    /// Its index among the tensors of the main subgraph.
    pub index: usize,
    /// The tensor's name.
    pub name: String,
    /// The name that a signature gives it, if one does.
    pub signature_name: Option<String>,
    /// The code of the element type in the format.
    pub type_code: i8,
    /// The element type as the format calls it: `FLOAT32`.
    pub type_name: String,
    /// The dimensions, `None` where not known; empty for a scalar.
    pub shape: Vec<Option<u32>>,
    /// The dimensions of the example that every file has: 1, mostly, where they are not known.
    pub example_shape: Vec<u32>,
    /// Which lengths the file itself says are known (`shape_signature`), if it does; they stay that
    /// when the import chooses others, see [`Import::has_example_shapes`](crate::Import::has_example_shapes).
    pub shape_signature: Option<Vec<Option<u32>>>,
    /// What stored integers stand for; `None` for a tensor that is not quantized.
    pub quantization: Option<TensorQuantization>,
    /// Whether it keeps its value from one execution to the next.
    pub is_variable: bool,
    /// How a sparse constant is stored.
    pub sparsity: Option<Sparsity>,
    /// Of a constant: where its stored bytes are in the file.
    pub stored: Option<Range<usize>>,
}

impl TensorDescription {
    /// About how much memory it takes.
    pub(crate) fn byte_size(&self) -> usize {
        let names = self.name.len() + self.signature_name.as_ref().map_or(0, String::len);
        let quantization = self
            .quantization
            .as_ref()
            .map_or(0, |it| size_of_val(&it.scales[..]) + size_of_val(&it.zero_points[..]));
        let sparsity = self.sparsity.as_ref().map_or(0, |it| {
            let of_level = |level: &SparseDimension| match level {
                SparseDimension::Dense { .. } => 0,
                SparseDimension::Compressed { segments, indices } => {
                    size_of_val(&segments[..]) + size_of_val(&indices[..])
                }
            };
            size_of_val(&it.traversal_order[..])
                + size_of_val(&it.block_map[..])
                + size_of_val(&it.dimensions[..])
                + it.dimensions.iter().map(of_level).sum::<usize>()
        });
        names
            + size_of_val(&self.shape[..])
            + size_of_val(&self.example_shape[..])
            + quantization
            + sparsity
    }
}

/// An operator of the main subgraph as the file describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorDescription {
    /// As the format calls it: `CONV_2D`; of a custom operator its own name.
    pub name: String,
    /// Indexes of tensors; `None` for an argument that is left out.
    pub inputs: Vec<Option<usize>>,
    /// Indexes of tensors.
    pub outputs: Vec<usize>,
}

/// All operators of the main subgraph.
pub(crate) fn operators(file: &File<'_>) -> Result<Vec<OperatorDescription>, ImportError> {
    let describe = |operator: &Operator<'_>| {
        let name = match &operator.code.kind {
            OperatorKind::Custom(name) => {
                // Many operators can share a long one.
                file.allow(name.len()).map_err(|Reason(what)| ImportError::Format(what))?;
                name.to_string()
            }
            kind => kind.to_string(),
        };
        let (inputs, outputs) = (operator.inputs.clone(), operator.outputs.clone());
        Ok(OperatorDescription { name, inputs, outputs })
    };
    file.graphs[0].operators.iter().map(describe).collect()
}

/// What stored integers stand for: `scale * (stored - zero_point)`.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorQuantization {
    /// One, or one for each index of `axis`.
    pub scales: Vec<f32>,
    /// As many as scales in a sound file.
    pub zero_points: Vec<i64>,
    /// The axis that several scales are for.
    pub axis: u32,
}

/// How a sparse constant is stored, in the format's own terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sparsity {
    /// The order in which axes, and then axes of blocks, are traversed.
    pub traversal_order: Vec<i32>,
    /// Which axis each axis of a block divides.
    pub block_map: Vec<i32>,
    /// By level of the traversal.
    pub dimensions: Vec<SparseDimension>,
}

/// A level of a sparse constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SparseDimension {
    /// Every index is there.
    Dense {
        /// How many there are.
        length: i32,
    },
    /// Some indexes are there: of each entry of the level above a segment of `indices`.
    Compressed {
        /// Where segments begin, and the end of the last one.
        segments: Vec<i32>,
        /// The indexes.
        indices: Vec<i32>,
    },
}

/// All tensors of the main subgraph.
pub(crate) fn describe(file: &File<'_>) -> Result<Vec<TensorDescription>, ImportError> {
    let names = names_in_signatures(file);
    let main = &file.graphs[0];
    let describe = |(index, tensor): (usize, &Tensor<'_>)| {
        let stored = file.buffers.get(tensor.buffer).filter(|_| tensor.buffer != 0);
        let sparsity = tensor.sparsity.as_ref().map(|sparsity| {
            read_sparsity(file, sparsity).map_err(|what| ImportError::Malformed {
                place: format!("sparsity of tensor {index}"),
                what,
            })
        });
        Ok(TensorDescription {
            index,
            name: tensor.name.clone(),
            signature_name: names.get(&index).map(|name| (*name).to_owned()),
            type_code: tensor.type_code,
            type_name: type_name(tensor.type_code),
            shape: known_lengths(tensor),
            example_shape: tensor.shape.clone(),
            shape_signature: tensor.declared.clone(),
            quantization: tensor.quantization.as_ref().map(|it| TensorQuantization {
                scales: it.scales.clone(),
                zero_points: it.zero_points.clone(),
                axis: it.dimension,
            }),
            is_variable: tensor.is_variable,
            sparsity: sparsity.transpose()?,
            stored: stored.filter(|it| !it.is_empty() && !tensor.is_variable).cloned(),
        })
    };
    main.tensors.iter().enumerate().map(describe).collect()
}

/// By tensor of the main subgraph: the first name that a signature gives it.
fn names_in_signatures<'f>(file: &'f File<'_>) -> HashMap<usize, &'f str> {
    let mut names = HashMap::new();
    for signature in file.signatures.iter().filter(|signature| signature.graph == 0) {
        for (name, tensor) in signature.inputs.iter().chain(&signature.outputs) {
            names.entry(*tensor).or_insert(name.as_str());
        }
    }
    names
}

/// Everything is counted against what may be made of the file: many tensors can share one table.
fn read_sparsity(
    file: &File<'_>,
    sparsity: &SparsityParametersRef<'_>,
) -> Result<Sparsity, String> {
    let shown = |error: planus::Error| error.to_string();
    let allow = |count: usize| {
        file.allow(count.saturating_mul(size_of::<i32>())).map_err(|reason| reason.0)
    };
    let vector = |vector: planus::Result<Option<planus::Vector<'_, i32>>>| {
        let Some(vector) = vector.map_err(shown)? else { return Ok(Vec::new()) };
        allow(vector.len())?;
        Ok::<_, String>(vector.iter().collect())
    };
    let indexes = |vector: planus::Result<Option<SparseIndexVectorRef<'_>>>| {
        let Some(vector) = vector.map_err(shown)? else { return Ok(Vec::new()) };
        Ok::<Vec<i32>, String>(match vector {
            SparseIndexVectorRef::Int32Vector(table) => {
                let Some(values) = table.values().map_err(shown)? else { return Ok(Vec::new()) };
                allow(values.len())?;
                values.iter().collect()
            }
            SparseIndexVectorRef::Uint16Vector(table) => {
                let Some(values) = table.values().map_err(shown)? else { return Ok(Vec::new()) };
                allow(values.len())?;
                values.iter().map(i32::from).collect()
            }
            SparseIndexVectorRef::Uint8Vector(table) => {
                let Some(values) = table.values().map_err(shown)? else { return Ok(Vec::new()) };
                allow(values.len())?;
                values.iter().map(|value| i32::from(*value)).collect()
            }
        })
    };
    let mut dimensions = Vec::new();
    for level in sparsity.dim_metadata().map_err(shown)?.into_iter().flatten() {
        allow(1)?;
        let level = level.map_err(shown)?;
        dimensions.push(match level.format().map_err(shown)? {
            DimensionType::Dense => {
                SparseDimension::Dense { length: level.dense_size().map_err(shown)? }
            }
            DimensionType::SparseCsr => SparseDimension::Compressed {
                segments: indexes(level.array_segments())?,
                indices: indexes(level.array_indices())?,
            },
        });
    }
    Ok(Sparsity {
        traversal_order: vector(sparsity.traversal_order())?,
        block_map: vector(sparsity.block_map())?,
        dimensions,
    })
}
