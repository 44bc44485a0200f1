//! What a file says of its tensors, for whoever shows them.

use crate::error::{ImportError, Reason};
use crate::file::{File, Graph, Operator, OperatorKind, Tensor, known_lengths, type_name};
use crate::schema::{DimensionType, SparseIndexVectorRef, SparsityParametersRef, TensorType};
use crate::{Metadata, Signature};
use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;

/// A tensor of the main subgraph as the file describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorDescription {
    /// Its index among the tensors of the main subgraph; 0 for a resource variable, which is none of them.
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
    /// The dimensions that the file gives it, whatever follows from the inputs: an example's too, and often empty or 1 where
    /// only an execution shows them.
    pub declared_shape: Vec<u32>,
    /// Which lengths the file itself says are known (`shape_signature`), if it does; they stay that
    /// when the import chooses others, see [`Import::has_example_shapes`](crate::Import::has_example_shapes).
    pub shape_signature: Option<Vec<Option<u32>>>,
    /// What stored integers stand for; `None` for a tensor that is not quantized.
    pub quantization: Option<TensorQuantization>,
    /// The scales of a tensor that has one for each block of elements; then `quantization` is not what it is for.
    pub blocks: Option<BlockQuantization>,
    /// Whether it keeps its value from one execution to the next.
    pub is_variable: bool,
    /// How a sparse constant is stored.
    pub sparsity: Option<Sparsity>,
    /// Of a constant: where its stored bytes are, which [`Stored::read`](crate::graph::Stored::read) reads.
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
            + size_of_val(&self.declared_shape[..])
            + quantization
            + sparsity
    }
}

/// All that a file says, whether it can be imported or not.
#[derive(Debug, Clone, PartialEq)]
pub struct FileDescription {
    /// The file's own description.
    pub description: String,
    /// Its subgraphs; the first is the main one.
    pub subgraphs: Vec<SubgraphDescription>,
    /// Its signatures.
    pub signatures: Vec<Signature>,
    /// Blocks of bytes that it carries beside the model, by name.
    pub metadata: Vec<Metadata>,
}

/// A subgraph as the file describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct SubgraphDescription {
    /// Its name, empty without one.
    pub name: String,
    /// Indexes of tensors.
    pub inputs: Vec<usize>,
    /// Indexes of tensors.
    pub outputs: Vec<usize>,
    /// All tensors.
    pub tensors: Vec<TensorDescription>,
    /// All operators, in order.
    pub operators: Vec<OperatorDescription>,
}

/// An operator of a subgraph as the file describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorDescription {
    /// As the format calls it: `CONV_2D`; of a custom operator its own name.
    pub name: String,
    /// The version of the operator that the file asks for.
    pub version: i32,
    /// Its options with their values: `padding: Same, stride_w: 2`. Empty without options, and in an
    /// [`Import`](crate::Import).
    pub attributes: String,
    /// Indexes of tensors; `None` for an argument that is left out.
    pub inputs: Vec<Option<usize>>,
    /// Indexes of tensors.
    pub outputs: Vec<usize>,
}

/// The description of a whole file.
pub(crate) fn describe_file(file: &mut File<'_>) -> Result<FileDescription, ImportError> {
    file.renew_allowance();
    let mut subgraphs = Vec::with_capacity(file.graphs.len());
    for index in 0..file.graphs.len() {
        file.main = index;
        let mut operators = operators(file)?;
        let graph = &file.graphs[index];
        for (description, operator) in operators.iter_mut().zip(&graph.operators) {
            description.attributes = attributes(operator);
            file.allow(description.attributes.len())
                .map_err(|Reason(what)| ImportError::Format(what))?;
        }
        subgraphs.push(SubgraphDescription {
            name: graph.name.clone(),
            inputs: graph.inputs.clone(),
            outputs: graph.outputs.clone(),
            tensors: describe(file, &[])?,
            operators,
        });
    }
    file.main = 0;
    let (signatures, metadata) = (signatures(file), metadata(file));
    Ok(FileDescription { description: file.description.clone(), subgraphs, signatures, metadata })
}

pub(crate) fn signatures(file: &File<'_>) -> Vec<Signature> {
    let describe = |signature: &crate::file::Signature| Signature {
        name: signature.name.clone(),
        subgraph: signature.graph,
        inputs: signature.inputs.clone(),
        outputs: signature.outputs.clone(),
    };
    file.signatures.iter().map(describe).collect()
}

pub(crate) fn metadata(file: &File<'_>) -> Vec<Metadata> {
    let describe = |(name, stored): &(String, Range<usize>)| Metadata {
        name: name.clone(),
        stored: stored.clone(),
    };
    file.metadata.iter().map(describe).collect()
}

/// Bytes of an operator's attributes that are shown; some hold long vectors.
const ATTRIBUTES_LENGTH: usize = 400;

/// Text that takes no more than [`ATTRIBUTES_LENGTH`].
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let left = ATTRIBUTES_LENGTH - self.0.len();
        self.0.push_str(&text[..text.floor_char_boundary(left)]);
        if text.len() > left { Err(std::fmt::Error) } else { Ok(()) }
    }
}

/// An operator's options for people.
fn attributes(operator: &Operator<'_>) -> String {
    let mut text = Limited(String::new());
    let outcome = match operator.table.builtin_options() {
        Ok(Some(options)) => write!(text, "{options:?}"),
        Ok(None) => return String::new(),
        Err(error) => return format!("unreadable: {error}"),
    };
    // The name of the table, which follows from the operator, is left out.
    let Some((_, fields)) = text.0.split_once(" { ") else { return String::new() };
    let mut text = without_results(fields.trim_end_matches([' ', '}']));
    if outcome.is_err() {
        text.push_str("...");
    } else if text.ends_with(" }") {
        text.truncate(text.len() - 2);
    }
    text
}

/// Values without the `Ok(...)` around each, and without what closes the table.
fn without_results(fields: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(fields.len()), fields);
    let mut is_result = Vec::new();
    while let Some(letter) = rest.chars().next() {
        if let Some(behind) = rest.strip_prefix("Ok(") {
            is_result.push(true);
            rest = behind;
            continue;
        }
        rest = &rest[letter.len_utf8()..];
        match letter {
            '(' => is_result.push(false),
            ')' if is_result.pop() != Some(false) => continue,
            _ => {}
        }
        text.push(letter);
    }
    text.trim_end_matches([' ', '}']).to_owned()
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
        let (version, attributes) = (operator.code.version, String::new());
        Ok(OperatorDescription { name, version, attributes, inputs, outputs })
    };
    file.graphs[file.main].operators.iter().map(describe).collect()
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

/// Where a tensor with a scale for each block of elements along the last axis has its scales.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockQuantization {
    /// The tensor of the scales, by index: `[lengths before the last axis, blocks]`.
    pub scales: usize,
    /// The tensor of the zero points, if there is one. The import takes all of them to be 0.
    pub zero_points: Option<usize>,
    /// Elements of a block, above 0.
    pub size: u32,
    /// The axis that the file names, which does not matter.
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

/// All tensors of the main subgraph; with the shapes that the import found, where it did.
pub(crate) fn describe(
    file: &File<'_>,
    shapes: &[Option<Vec<u32>>],
) -> Result<Vec<TensorDescription>, ImportError> {
    let names = names_in_signatures(file);
    let main = &file.graphs[file.main];
    let describe = |(index, tensor): (usize, &Tensor<'_>)| {
        let stored = file.buffers.get(tensor.buffer).filter(|_| tensor.buffer != 0);
        let sparsity = tensor.sparsity.as_ref().map(|sparsity| {
            read_sparsity(file, sparsity).map_err(|what| ImportError::Malformed {
                place: format!("sparsity of tensor {index}"),
                what,
            })
        });
        let found = shapes.get(index).and_then(Option::as_ref);
        Ok(TensorDescription {
            index,
            name: tensor.name.clone(),
            signature_name: names.get(&index).map(|name| (*name).to_owned()),
            type_code: tensor.type_code,
            type_name: type_name(tensor.type_code),
            shape: match found {
                Some(shape) => shape.iter().copied().map(Some).collect(),
                None => known_lengths(tensor),
            },
            example_shape: found.unwrap_or(&tensor.shape).clone(),
            declared_shape: tensor.shape.clone(),
            shape_signature: tensor.declared.clone(),
            quantization: tensor.quantization.as_ref().map(quantization),
            blocks: blocks(main, tensor),
            is_variable: tensor.is_variable,
            sparsity: sparsity.transpose()?,
            stored: stored.filter(|it| !it.is_empty() && !tensor.is_variable).cloned(),
        })
    };
    main.tensors.iter().enumerate().map(describe).collect()
}

/// A resource variable, whose values look like a tensor of the file.
pub(crate) fn of_variable(tensor: &Tensor<'_>, name: &str, shape: &[u32]) -> TensorDescription {
    TensorDescription {
        index: 0,
        name: name.to_owned(),
        signature_name: None,
        type_code: tensor.type_code,
        type_name: type_name(tensor.type_code),
        shape: shape.iter().copied().map(Some).collect(),
        example_shape: shape.to_vec(),
        declared_shape: shape.to_vec(),
        shape_signature: None,
        quantization: tensor.quantization.as_ref().map(quantization),
        blocks: None,
        is_variable: true,
        sparsity: None,
        stored: None,
    }
}

/// The state of a generator of random numbers.
pub(crate) fn of_generator(name: &str) -> TensorDescription {
    let type_code = TensorType::Int32 as i8;
    let words = nnhal_ops::operations::extension::random::STATE_WORDS;
    TensorDescription {
        index: 0,
        name: name.to_owned(),
        signature_name: None,
        type_code,
        type_name: type_name(type_code),
        shape: vec![Some(words)],
        example_shape: vec![words],
        declared_shape: vec![words],
        shape_signature: None,
        quantization: None,
        blocks: None,
        is_variable: true,
        sparsity: None,
        stored: None,
    }
}

fn quantization(stored: &crate::file::Quantization) -> TensorQuantization {
    TensorQuantization {
        scales: stored.scales.clone(),
        zero_points: stored.zero_points.clone(),
        axis: stored.dimension,
    }
}

/// `None` also if the tensor of the scales is not there.
fn blocks(graph: &Graph<'_>, tensor: &Tensor<'_>) -> Option<BlockQuantization> {
    let stored = tensor.blocks.as_ref()?;
    let is_there = |tensor: &usize| *tensor < graph.tensors.len();
    Some(BlockQuantization {
        scales: Some(stored.scales).filter(is_there)?,
        zero_points: stored.zero_points.filter(is_there),
        size: stored.size,
        axis: stored.dimension,
    })
}

/// By tensor of the main subgraph: the first name that a signature gives it.
fn names_in_signatures<'f>(file: &'f File<'_>) -> HashMap<usize, &'f str> {
    let mut names = HashMap::new();
    for signature in file.signatures.iter().filter(|signature| signature.graph == file.main) {
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
