//! What a file says of itself, whether a model becomes of it or not.

use super::super::{counted, open_shape, shape};
use crate::inputs::SHAPE_HINT;
use nnhal::FileInfo;
use nnhal::tflite::{Cause, ImportError, SubgraphDescription, TensorDescription};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// A file as JSON has it.
#[derive(Serialize)]
pub struct File {
    description: String,
    bytes: u64,
    subgraphs: Vec<Subgraph>,
    signatures: Vec<Signature>,
    /// Over all subgraphs, the most frequent first.
    operator_counts: Vec<OperatorCount>,
    /// By element type and way of quantization: how many constants there are, and their bytes.
    constants: BTreeMap<String, Constants>,
    metadata: Vec<Block>,
    associated_files: Vec<Block>,
}

#[derive(Serialize)]
struct Subgraph {
    name: String,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    operators: Vec<Operator>,
}

#[derive(Serialize)]
struct Tensor {
    index: usize,
    name: String,
    #[serde(rename = "type")]
    type_name: String,
    /// `null` where it is open.
    shape: Vec<Option<u32>>,
    example_shape: Vec<u32>,
    scales: Vec<f32>,
    zero_points: Vec<i64>,
}

#[derive(Serialize)]
struct Operator {
    index: usize,
    name: String,
    version: i32,
    attributes: String,
    inputs: Vec<Option<usize>>,
    outputs: Vec<usize>,
}

#[derive(Serialize)]
struct Signature {
    name: String,
    subgraph: usize,
    inputs: Vec<Named>,
    outputs: Vec<Named>,
}

#[derive(Serialize)]
struct Named {
    name: String,
    tensor: usize,
}

#[derive(Serialize)]
struct OperatorCount {
    name: String,
    version: i32,
    count: usize,
}

#[derive(Serialize, Default)]
struct Constants {
    count: usize,
    bytes: usize,
}

#[derive(Serialize)]
struct Block {
    name: String,
    bytes: u64,
}

/// Why no model becomes of a file.
#[derive(Serialize)]
pub struct Refused {
    /// All of it.
    reason: String,
    causes: Vec<Group>,
    /// Operators that could not be judged, since they follow refused ones.
    consequences: usize,
    /// What may help.
    hint: Option<&'static str>,
}

#[derive(Serialize)]
struct Group {
    operator: String,
    version: i32,
    reason: String,
    count: usize,
    subgraph: usize,
    /// Of the first one.
    index: usize,
    tensors: Vec<String>,
}

impl Refused {
    /// The causes of an error of a file, whose example has the shapes that were asked for or not.
    pub fn of(error: &ImportError, info: &FileInfo, is_of_example: bool) -> Self {
        let (causes, consequences) = error.causes();
        let group = |Cause { first, count }: &Cause<'_>| Group {
            operator: first.operator.clone(),
            version: first.version,
            reason: first.reason.clone(),
            count: *count,
            subgraph: first.subgraph,
            index: first.index,
            tensors: first.tensors.clone(),
        };
        let leaves_open = |main: &SubgraphDescription| {
            main.inputs.iter().any(|it| main.tensors[*it].shape.contains(&None))
        };
        let may_help = is_of_example
            && !causes.is_empty()
            && info.description.subgraphs.first().is_some_and(leaves_open);
        let causes = causes.iter().map(group).collect();
        let hint = may_help.then_some(SHAPE_HINT);
        Self { reason: error.to_string(), causes, consequences, hint }
    }
}

impl Refused {
    /// All of it, and what may help.
    pub fn reason(&self) -> String {
        match self.hint {
            Some(hint) => format!("{}\n  {hint}", self.reason),
            None => self.reason.clone(),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "\nno model becomes of it: {}", self.reason())
    }
}

/// What a file says.
pub fn report(info: &FileInfo) -> File {
    let file = &info.description;
    let mut counts: BTreeMap<(&str, i32), usize> = BTreeMap::new();
    for operator in file.subgraphs.iter().flat_map(|subgraph| &subgraph.operators) {
        *counts.entry((&operator.name, operator.version)).or_default() += 1;
    }
    let count = |((name, version), count): (&(&str, i32), &usize)| OperatorCount {
        name: (*name).to_owned(),
        version: *version,
        count: *count,
    };
    let mut operator_counts: Vec<_> = counts.iter().map(count).collect();
    operator_counts.sort_by_key(|it| std::cmp::Reverse(it.count));
    let mut constants: BTreeMap<String, Constants> = BTreeMap::new();
    for tensor in file.subgraphs.iter().flat_map(|subgraph| &subgraph.tensors) {
        let Some(stored) = &tensor.stored else { continue };
        let entry = constants.entry(kind(tensor)).or_default();
        entry.count += 1;
        entry.bytes = entry.bytes.saturating_add(stored.len());
    }
    let named = |names: &[(String, usize)]| {
        let named =
            |(name, tensor): &(String, usize)| Named { name: name.clone(), tensor: *tensor };
        names.iter().map(named).collect()
    };
    File {
        description: file.description.clone(),
        bytes: info.size,
        subgraphs: file.subgraphs.iter().map(subgraph).collect(),
        signatures: file
            .signatures
            .iter()
            .map(|signature| Signature {
                name: signature.name.clone(),
                subgraph: signature.subgraph,
                inputs: named(&signature.inputs),
                outputs: named(&signature.outputs),
            })
            .collect(),
        operator_counts,
        constants,
        metadata: file
            .metadata
            .iter()
            .map(|block| Block { name: block.name.clone(), bytes: block.stored.len() as u64 })
            .collect(),
        associated_files: info
            .associated_files
            .iter()
            .map(|file| Block { name: file.name.clone(), bytes: file.length })
            .collect(),
    }
}

/// Element type, and how it is quantized and stored.
fn kind(tensor: &TensorDescription) -> String {
    let quantized = match tensor.quantization.as_ref().map(|it| it.scales.len()) {
        None | Some(0) => "",
        Some(1) => ", one scale",
        Some(_) => ", scales by channel",
    };
    let sparse = if tensor.sparsity.is_some() { ", sparse" } else { "" };
    format!("{}{quantized}{sparse}", tensor.type_name)
}

fn subgraph(subgraph: &SubgraphDescription) -> Subgraph {
    let describe = |index: &usize| -> Tensor {
        let tensor = &subgraph.tensors[*index];
        let quantization = tensor.quantization.as_ref();
        Tensor {
            index: *index,
            name: tensor.name.clone(),
            type_name: tensor.type_name.clone(),
            shape: tensor.shape.clone(),
            example_shape: tensor.example_shape.clone(),
            scales: quantization.map_or(Vec::new(), |it| it.scales.clone()),
            zero_points: quantization.map_or(Vec::new(), |it| it.zero_points.clone()),
        }
    };
    let operators = subgraph.operators.iter().enumerate();
    Subgraph {
        name: subgraph.name.clone(),
        inputs: subgraph.inputs.iter().map(describe).collect(),
        outputs: subgraph.outputs.iter().map(describe).collect(),
        operators: operators
            .map(|(index, operator)| Operator {
                index,
                name: operator.name.clone(),
                version: operator.version,
                attributes: operator.attributes.clone(),
                inputs: operator.inputs.clone(),
                outputs: operator.outputs.clone(),
            })
            .collect(),
    }
}

/// A file for people; `alone`: there is no model to show its inputs, outputs and operations.
pub fn text(file: &File, alone: bool) -> String {
    let subgraphs = counted(file.subgraphs.len(), "subgraph");
    let mut text = format!("file of {} bytes, {subgraphs}", file.bytes);
    if !file.description.is_empty() {
        text += &format!(", {:?}", file.description);
    }
    text += "\n";
    if alone && let Some(main) = file.subgraphs.first() {
        for (what, tensors) in [("input ", &main.inputs), ("output", &main.outputs)] {
            for tensor in tensors {
                text += &format!("{what} {}: {}", tensor.name, described(tensor));
            }
        }
    }
    for signature in &file.signatures {
        let names =
            |all: &[Named]| all.iter().map(|it| it.name.as_str()).collect::<Vec<_>>().join(", ");
        let (inputs, outputs) = (names(&signature.inputs), names(&signature.outputs));
        let (name, subgraph) = (&signature.name, signature.subgraph);
        text += &format!("signature {name}, subgraph {subgraph}: {inputs} -> {outputs}\n");
    }
    text += "operators:";
    for OperatorCount { name, version, count } in &file.operator_counts {
        text += &format!(" {count} {name} v{version}");
    }
    text += "\n";
    for (kind, Constants { count, bytes }) in &file.constants {
        text += &format!("constants {kind}: {count}, {bytes} bytes\n");
    }
    for (what, blocks) in [("metadata", &file.metadata), ("file within", &file.associated_files)] {
        for Block { name, bytes } in blocks {
            text += &format!("{what} {name}: {bytes} bytes\n");
        }
    }
    for (number, subgraph) in file.subgraphs.iter().enumerate() {
        let name = if subgraph.name.is_empty() { "" } else { &format!(" {:?}", subgraph.name) };
        let operators = counted(subgraph.operators.len(), "operator");
        text += &format!("\nsubgraph {number}{name}: {operators}\n");
        for Operator { index, name, attributes, inputs, outputs, .. } in &subgraph.operators {
            let tensors = |all: &mut dyn Iterator<Item = Option<usize>>| {
                all.map(|it| it.map_or("-".to_owned(), |it| it.to_string()))
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            let inputs = tensors(&mut inputs.iter().copied());
            let outputs = tensors(&mut outputs.iter().copied().map(Some));
            text += &format!("{index:4} {name:24} {inputs} -> {outputs}");
            if !attributes.is_empty() {
                text += &format!("   {attributes}");
            }
            text += "\n";
        }
    }
    text
}

/// Type, shape and quantization of a tensor, as a line.
fn described(tensor: &Tensor) -> String {
    let lengths: Vec<_> = tensor.shape.iter().map(|it| it.map(|it| it as usize)).collect();
    let mut text = format!("{} {}", tensor.type_name, open_shape(&lengths));
    if lengths.contains(&None) {
        let example: Vec<_> = tensor.example_shape.iter().map(|it| *it as usize).collect();
        text += &format!(", example {}", shape(&example));
    }
    if let ([scale], Some(zero_point)) = (&*tensor.scales, tensor.zero_points.first()) {
        text += &format!(", scale {scale}, zero point {zero_point}");
    }
    text + "\n"
}
