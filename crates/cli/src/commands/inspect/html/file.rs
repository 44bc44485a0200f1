//! [`Graph`]: a file's subgraph as the page draws it.

use super::MOST_NODES;
use crate::commands::shortened;
use nnhal::tflite::{FileDescription, SubgraphDescription, TensorDescription, TensorQuantization};
use nnhal::{FileInfo, Model};
use serde::Serialize;

/// What a file says of itself beside its graphs.
#[derive(Serialize)]
pub struct Summary {
    bytes: u64,
    description: String,
    signatures: Vec<Signature>,
    metadata: Vec<Block>,
}

#[derive(Serialize)]
struct Signature {
    name: String,
    subgraph: usize,
    inputs: String,
    outputs: String,
}

/// Metadata, or a file within the file.
#[derive(Serialize)]
struct Block {
    name: String,
    bytes: u64,
}

/// Signatures and blocks that are shown.
const MOST_ROWS: usize = 1000;

impl Summary {
    /// Of a file, refused or not.
    pub fn of(info: &FileInfo) -> Self {
        let file = &info.description;
        let names = |all: &[(String, usize)]| {
            let names =
                all.iter().map(|(name, tensor)| format!("{} (tensor {tensor})", shortened(name)));
            names.collect::<Vec<_>>().join(", ")
        };
        let signatures = file.signatures.iter().take(MOST_ROWS).map(|it| Signature {
            name: shortened(&it.name),
            subgraph: it.subgraph,
            inputs: names(&it.inputs),
            outputs: names(&it.outputs),
        });
        let metadata = file.metadata.iter().map(|it| (&it.name, it.stored.len() as u64));
        let within = info.associated_files.iter().map(|it| (&it.name, it.length));
        let blocks = metadata.chain(within).take(MOST_ROWS);
        Self {
            bytes: info.size,
            description: shortened(&file.description),
            signatures: signatures.collect(),
            metadata: blocks.map(|(name, bytes)| Block { name: shortened(name), bytes }).collect(),
        }
    }
}

/// A graph of the file.
#[derive(Serialize)]
pub struct Graph {
    name: String,
    nodes: Vec<Node>,
    tensors: Vec<Tensor>,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    /// How many operators are left out, because there are too many.
    left_out: usize,
}

/// An operator.
#[derive(Serialize)]
struct Node {
    name: String,
    version: i32,
    attributes: String,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
}

#[derive(Serialize)]
struct Tensor {
    name: String,
    #[serde(rename = "type")]
    type_name: String,
    shape: String,
    quantization: String,
    /// Of a constant.
    bytes: Option<usize>,
    is_variable: bool,
}

/// The subgraphs of a file, that of the model first.
pub fn graphs(file: &FileDescription, model: Option<&Model>) -> Vec<Graph> {
    let main = model.map_or(0, Model::subgraph);
    let mut order: Vec<usize> = (0..file.subgraphs.len()).collect();
    order.sort_by_key(|index| *index != main);
    let graph = |index: usize| graph(index, &file.subgraphs[index]);
    order.into_iter().map(graph).collect()
}

fn graph(index: usize, subgraph: &SubgraphDescription) -> Graph {
    let node = |operator: &nnhal::tflite::OperatorDescription| Node {
        name: shortened(&operator.name),
        version: operator.version,
        attributes: shortened(&operator.attributes),
        inputs: operator.inputs.iter().copied().flatten().collect(),
        outputs: operator.outputs.clone(),
    };
    let name = if subgraph.name.is_empty() {
        format!("subgraph {index}")
    } else {
        format!("subgraph {index}: {}", shortened(&subgraph.name))
    };
    Graph {
        name,
        nodes: subgraph.operators.iter().take(MOST_NODES).map(node).collect(),
        tensors: subgraph.tensors.iter().map(tensor).collect(),
        inputs: subgraph.inputs.clone(),
        outputs: subgraph.outputs.clone(),
        left_out: subgraph.operators.len().saturating_sub(MOST_NODES),
    }
}

fn tensor(tensor: &TensorDescription) -> Tensor {
    let lengths = tensor.shape.iter().map(|it| it.map_or("?".into(), |length| length.to_string()));
    let name = match &tensor.signature_name {
        Some(name) if *name != tensor.name => format!("{name} ({})", tensor.name),
        _ => tensor.name.clone(),
    };
    Tensor {
        name: shortened(&name),
        type_name: shortened(&tensor.type_name),
        shape: lengths.collect::<Vec<String>>().join("×"),
        quantization: tensor.quantization.as_ref().map(quantization).unwrap_or_default(),
        bytes: tensor.stored.as_ref().map(std::ops::Range::len),
        is_variable: tensor.is_variable,
    }
}

/// Scale and zero point, or the range of those of channels.
fn quantization(it: &TensorQuantization) -> String {
    let zero_point = it.zero_points.first().copied().unwrap_or(0);
    match *it.scales {
        [] => String::new(),
        [scale] => format!("scale {scale}, zero point {zero_point}"),
        ref scales => {
            let (least, most) =
                scales.iter().fold((f32::INFINITY, 0.0_f32), |(least, most), it| {
                    (least.min(*it), most.max(*it))
                });
            let (count, axis) = (scales.len(), it.axis);
            format!("{count} scales by index of axis {axis}, {least} to {most}")
        }
    }
}

/// The shapes of the file's example, by input.
pub fn example_shapes(model: &Model) -> Vec<Option<Vec<usize>>> {
    model.inputs().iter().map(|info| Some(info.example_shape.clone())).collect()
}
