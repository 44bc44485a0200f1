//! A [`Graph`] as text and as DOT, for people.

use super::{
    ControlFlow, ControlFlowKind, Counted, Elements, Epilogue, Graph, MaskedSoftmax, Node, Origin,
    Value, ValueId, Work,
};
use nnhal_hal::FusedActivation;
use nnhal_ops::extension::type_name;
use std::fmt::Write;

/// Elements of a list that are written out.
const MOST_WRITTEN: usize = 8;

impl Graph<'_> {
    /// A line for each node in the order in which they run: what it computes, and of what.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for node in &self.nodes {
            let list = |values: &[ValueId]| -> Vec<String> {
                values.iter().map(|id| format!("{} {}", self.name(*id), self.shape(*id))).collect()
            };
            let (outputs, inputs) = (list(&node.outputs), list(&node.inputs));
            let (outputs, inputs) = (outputs.join(", "), inputs.join(", "));
            // Writing to a string does not fail.
            let _ =
                writeln!(text, "{outputs} = {}({inputs})  # {}", node.work.text(node), node.place);
        }
        let outputs: Vec<_> = self.outputs.iter().map(|id| self.name(*id)).collect();
        let _ = writeln!(text, "outputs {}", outputs.join(", "));
        for node in &self.nodes {
            let Work::ControlFlow(index) = node.work else { continue };
            let ControlFlow { kind, graphs, counted } = &self.control_flow[index];
            let parts = match (kind, &**graphs) {
                (ControlFlowKind::If, [_]) => ["branch", ""],
                (ControlFlowKind::If, _) => ["then", "else"],
                (ControlFlowKind::While, _) => ["condition", "body"],
            };
            if let Some(Counted { rounds, .. }) = counted {
                let _ = writeln!(text, "{} takes {rounds} rounds", node.place);
            }
            for (part, graph) in parts.iter().zip(graphs) {
                let _ = write!(text, "{part} of {}\n{}", node.place, graph.text());
            }
        }
        text
    }

    /// The same for Graphviz: a box for each node, inputs and outputs of the graph; constants are left out.
    pub(crate) fn dot(&self) -> String {
        let mut text = String::from("digraph {\n  node [shape=box]\n");
        for (id, value) in self.values.iter().enumerate() {
            if let Origin::Input(input) = value.origin {
                let shape = self.shape(id);
                let _ =
                    writeln!(text, "  v{id} [shape=ellipse, label=\"input {input}\\n{shape}\"]");
            }
        }
        for (index, node) in self.nodes.iter().enumerate() {
            let label = format!("{}\\n{}", node.work.text(node), node.place);
            let _ = writeln!(text, "  n{index} [label=\"{}\"]", label.replace('"', "'"));
        }
        let producers = super::producers(self);
        let from = |id: ValueId| match (&self.values[id].origin, producers[id]) {
            (Origin::Input(_), _) => Some(format!("v{id}")),
            (_, Some(node)) => Some(format!("n{node}")),
            _ => None,
        };
        for (index, node) in self.nodes.iter().enumerate() {
            for input in &node.inputs {
                if let Some(from) = from(*input) {
                    let shape = self.shape(*input);
                    let _ = writeln!(text, "  {from} -> n{index} [label=\"{shape}\"]");
                }
            }
        }
        for (index, id) in self.outputs.iter().enumerate() {
            let shape = self.shape(*id);
            let _ =
                writeln!(text, "  o{index} [shape=ellipse, label=\"output {index}\\n{shape}\"]");
            if let Some(from) = from(*id) {
                let _ = writeln!(text, "  {from} -> o{index}");
            }
        }
        text + "}\n"
    }

    /// What a value is called: by its operand, if it has one.
    fn name(&self, id: ValueId) -> String {
        let value = &self.values[id];
        let kind = match value.origin {
            Origin::Omitted => return "-".to_owned(),
            Origin::Constant(_) => "=",
            Origin::Input(_) => "input ",
            Origin::Computed => "",
        };
        match value.index {
            Some(operand) => format!("{kind}%{operand}"),
            // Made by a pass.
            None => format!("{kind}%new{id}"),
        }
    }

    fn shape(&self, id: ValueId) -> String {
        let Value { operand, dimensions, origin, .. } = &self.values[id];
        if matches!(origin, Origin::Omitted) {
            return String::new();
        }
        let lengths: Vec<_> = dimensions.iter().map(u32::to_string).collect();
        let name = type_name(operand.operand_type);
        let name = name.strip_prefix("TENSOR_").unwrap_or(&name).to_lowercase();
        format!("{name}[{}]", lengths.join(","))
    }
}

impl Work {
    /// What a node does, in a few words.
    fn text(&self, node: &Node) -> String {
        match self {
            Self::Operation(_) | Self::ControlFlow(_) => node.place.operation_name(),
            Self::View => "view".to_owned(),
            Self::RowUpdate => "row update".to_owned(),
            Self::Part(first) => format!("part from {first}"),
            Self::Copy(it) => {
                let axes = it.axes.iter().map(|(length, stride)| format!("{length}*{stride}"));
                format!("copy from {} [{}]", it.offset, axes.collect::<Vec<_>>().join(", "))
            }
            Self::Convolution(it) => {
                let [height, width] = it.shape.filter;
                let kind = if it.is_depthwise { "depthwise convolution" } else { "convolution" };
                let residual = match it.elements {
                    Elements::Floats { has_residual: true, .. } => " + residual",
                    _ => "",
                };
                format!("{kind} {height}x{width}{residual}{}", it.elements.text())
            }
            Self::SeparableConvolution(it) => {
                let [height, width] = it.shapes.depthwise.filter;
                let kinds = ["convolution 1x1", "depthwise convolution", "convolution 1x1"];
                let parts = kinds.iter().zip(&it.epilogues).filter_map(|(kind, epilogue)| {
                    Some(format!("{kind}{}", epilogue.as_ref()?.text()))
                });
                let parts: Vec<_> = parts.collect();
                format!("separable convolution {height}x{width} [{}]", parts.join(", "))
            }
            Self::TransposedConvolution(it) => {
                let [height, width] = it.shape.filter;
                format!("transposed convolution {height}x{width}{}", it.elements.text())
            }
            Self::Chain(steps) => {
                let written: Vec<_> =
                    steps.iter().take(MOST_WRITTEN).map(|step| format!("{step:?}")).collect();
                let rest = if steps.len() > MOST_WRITTEN { ", ..." } else { "" };
                format!("chain [{}{rest}]", written.join(", "))
            }
            Self::Normalization(it) => {
                let scale = if it.has_scale { ", scale" } else { "" };
                let offset = if it.has_offset { ", offset" } else { "" };
                format!("normalization [epsilon {}{scale}{offset}]", it.epsilon)
            }
            Self::Matmul(it) => {
                let [rows, columns, depth] = it.sizes;
                let count = it.left.starts.len();
                let epilogue = it.epilogue.text();
                format!("matmul [{count} of {rows}x{depth} by {depth}x{columns}]{epilogue}")
            }
            Self::Softmax(it) => format!("softmax [beta {}, factor {}]", it.beta, it.factor),
            Self::Attention(it) => {
                let ([rows, keys, depth], [_, width, _]) = (it.scores.sizes, it.results.sizes);
                let (count, MaskedSoftmax { beta, factor }) =
                    (it.scores.left.starts.len(), it.softmax);
                let sizes = format!("{count} of {rows}x{depth} by {keys} of {depth} and {width}");
                format!("attention [{sizes}, beta {beta}, factor {factor}]")
            }
            Self::RequantizedMean { axes } => format!("requantized mean [axes {axes:?}]"),
            Self::Table(_) => "table".to_owned(),
        }
    }
}

impl Elements {
    fn text(&self) -> String {
        match self {
            Self::Floats { epilogue, .. } => epilogue.text(),
            Self::Bytes(bytes) => format!(" clamped to {:?}", bytes.range),
        }
    }
}

impl Epilogue {
    fn text(self) -> String {
        match self {
            Self::Clamp(FusedActivation::None) => String::new(),
            Self::Clamp(activation) => format!(" {activation:?}"),
            Self::HardSwish => " HardSwish".to_owned(),
        }
    }
}
