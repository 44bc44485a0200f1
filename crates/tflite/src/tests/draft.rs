//! [`Draft`]: a file on its way.

use crate::schema::{
    Buffer, BuiltinOperator, BuiltinOptions, Model, Operator, OperatorCode, QuantizationParameters,
    SubGraph, Tensor, TensorType,
};
use planus::Builder;

pub(super) use crate::graph::identified;

/// A file whose parts can be changed before it is written.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    pub(super) model: Model,
}

impl Draft {
    /// One empty subgraph, and the empty buffer that the format wants first.
    pub(super) fn new() -> Self {
        let model = Model {
            version: 3,
            operator_codes: Some(Vec::new()),
            subgraphs: Some(vec![SubGraph::default()]),
            buffers: Some(vec![Buffer::default()]),
            description: Some("a draft".into()),
            ..Model::default()
        };
        Self { model }
    }

    pub(super) fn graph(&mut self, index: usize) -> &mut SubGraph {
        let graphs = self.model.subgraphs.get_or_insert_default();
        if graphs.len() <= index {
            graphs.resize_with(index + 1, SubGraph::default);
        }
        &mut graphs[index]
    }

    /// A tensor of subgraph 0 that is computed or given.
    pub(super) fn tensor(&mut self, element: TensorType, shape: &[i32]) -> i32 {
        self.tensor_in(0, element, shape)
    }

    pub(super) fn tensor_in(&mut self, graph: usize, element: TensorType, shape: &[i32]) -> i32 {
        let tensors = self.graph(graph).tensors.get_or_insert_default();
        let index = tensors.len();
        tensors.push(Tensor {
            shape: Some(shape.to_vec()),
            type_: element as i8,
            name: Some(format!("tensor {index}")),
            has_rank: true,
            ..Tensor::default()
        });
        i32::try_from(index).unwrap()
    }

    /// A tensor of subgraph 0 with these bytes.
    pub(super) fn constant(&mut self, element: TensorType, shape: &[i32], bytes: &[u8]) -> i32 {
        let buffers = self.model.buffers.get_or_insert_default();
        buffers.push(Buffer { data: Some(bytes.to_vec()), ..Buffer::default() });
        let buffer = u32::try_from(buffers.len() - 1).unwrap();
        let index = self.tensor(element, shape);
        self.tensor_mut(index).buffer = buffer;
        index
    }

    pub(super) fn floats(&mut self, shape: &[i32], values: &[f32]) -> i32 {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(TensorType::Float32, shape, &bytes)
    }

    pub(super) fn integers(&mut self, shape: &[i32], values: &[i32]) -> i32 {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(TensorType::Int32, shape, &bytes)
    }

    pub(super) fn tensor_mut(&mut self, index: i32) -> &mut Tensor {
        let tensors = self.graph(0).tensors.get_or_insert_default();
        &mut tensors[usize::try_from(index).unwrap()]
    }

    pub(super) fn quantize(&mut self, index: i32, scales: &[f32], zero_point: i64, axis: i32) {
        self.tensor_mut(index).quantization = Some(Box::new(QuantizationParameters {
            scale: Some(scales.to_vec()),
            zero_point: Some(vec![zero_point; scales.len()]),
            quantized_dimension: axis,
            ..QuantizationParameters::default()
        }));
    }

    pub(super) fn operator(
        &mut self,
        builtin: BuiltinOperator,
        inputs: &[i32],
        outputs: &[i32],
        options: Option<BuiltinOptions>,
    ) {
        self.operator_in(0, builtin, inputs, outputs, options);
    }

    pub(super) fn operator_in(
        &mut self,
        graph: usize,
        builtin: BuiltinOperator,
        inputs: &[i32],
        outputs: &[i32],
        options: Option<BuiltinOptions>,
    ) {
        let codes = self.model.operator_codes.get_or_insert_default();
        codes.push(OperatorCode {
            deprecated_builtin_code: i8::try_from((builtin as i32).min(127)).unwrap(),
            builtin_code: builtin as i32,
            version: 1,
            ..OperatorCode::default()
        });
        let opcode_index = u32::try_from(codes.len() - 1).unwrap();
        let operators = self.graph(graph).operators.get_or_insert_default();
        operators.push(Operator {
            opcode_index,
            inputs: Some(inputs.to_vec()),
            outputs: Some(outputs.to_vec()),
            builtin_options: options,
            ..Operator::default()
        });
    }

    /// An operator of subgraph 0 that is not the format's own.
    pub(super) fn custom(&mut self, name: &str, inputs: &[i32], outputs: &[i32], options: &[u8]) {
        self.custom_in(0, name, inputs, outputs, options);
    }

    pub(super) fn custom_in(
        &mut self,
        graph: usize,
        name: &str,
        inputs: &[i32],
        outputs: &[i32],
        options: &[u8],
    ) {
        self.operator_in(graph, BuiltinOperator::Custom, inputs, outputs, None);
        if let Some(code) = self.model.operator_codes.as_mut().and_then(|codes| codes.last_mut()) {
            code.custom_code = Some(name.into());
        }
        let operators = self.graph(graph).operators.as_mut();
        if let Some(operator) = operators.and_then(|all| all.last_mut()) {
            operator.custom_options = Some(options.to_vec());
        }
    }

    pub(super) fn ends(&mut self, graph: usize, inputs: &[i32], outputs: &[i32]) {
        self.graph(graph).inputs = Some(inputs.to_vec());
        self.graph(graph).outputs = Some(outputs.to_vec());
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        identified(Builder::new().finish(&self.model, None))
    }
}
