//! [`GraphBuilder`]: a graph while it is drawn.

use crate::calls::random::Random;
use crate::calls::sample::{Given, Quant, Typed};
use crate::compare::Tolerance;
use nnhal_hal::{
    Model, OperandId, OperandSpec, OperandType, OperationType, Request, RequestBuilder,
    SubgraphBuilder,
};

/// What the tensors of a graph hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Float32,
    Float16,
    Unsigned,
    Signed,
}

impl Kind {
    /// The type of tensors.
    pub fn tensor(self) -> OperandType {
        match self {
            Self::Float32 => OperandType::TensorFloat32,
            Self::Float16 => OperandType::TensorFloat16,
            Self::Unsigned => OperandType::TensorQuant8Asymm,
            Self::Signed => OperandType::TensorQuant8AsymmSigned,
        }
    }

    /// The type of scalars that stand for real numbers.
    pub fn scalar(self) -> OperandType {
        if self == Self::Float16 { OperandType::Float16 } else { OperandType::Float32 }
    }

    /// Whether it is 8 bits.
    pub fn is_quantized(self) -> bool {
        matches!(self, Self::Unsigned | Self::Signed)
    }
}

/// What the model says of shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// All.
    Everything,
    /// Those of inputs.
    Inputs,
    /// The ranks of inputs.
    Ranks,
}

/// A value of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value(usize);

/// Scale, and how far the zero point is above the least number stored.
pub type Steps = (f32, i32);

/// Of SOFTMAX and LOGISTIC.
pub const UNIT_STEPS: Steps = (1.0 / 256.0, 0);

/// Of TANH.
pub const SIGNED_UNIT_STEPS: Steps = (1.0 / 128.0, 128);

#[derive(Debug, Clone)]
struct Drawn {
    id: OperandId,
    /// With the true dimensions.
    spec: OperandSpec,
    is_computed: bool,
    is_read: bool,
    is_output: bool,
    /// Nothing may read it: its elements may be a step away from the reference's.
    is_last: bool,
}

/// A graph while it is drawn: its values so far, and the request that goes with it.
pub struct GraphBuilder<'random> {
    pub random: &'random mut Random,
    pub kind: Kind,
    said: Said,
    graph: SubgraphBuilder,
    request: RequestBuilder,
    values: Vec<Drawn>,
    /// A line for each operation, for people.
    story: Vec<String>,
}

/// A graph with a request for it.
pub struct Finished {
    pub model: Model,
    pub request: Request,
    /// Of the outputs.
    pub specs: Vec<OperandSpec>,
    /// Of the outputs.
    pub tolerances: Vec<Tolerance>,
    pub story: String,
}

impl<'random> GraphBuilder<'random> {
    pub fn new(random: &'random mut Random, kind: Kind, said: Said) -> Self {
        Self {
            random,
            kind,
            said,
            graph: SubgraphBuilder::new(),
            request: RequestBuilder::new(),
            values: Vec::new(),
            story: Vec::new(),
        }
    }

    /// The true dimensions of a value.
    pub fn dimensions(&self, value: Value) -> Vec<u32> {
        self.values[value.0].spec.dimensions.clone()
    }

    /// How a value is stored, if it is quantized.
    pub fn steps(&self, value: Value) -> Steps {
        let spec = &self.values[value.0].spec;
        let (least, _) = spec.operand_type.quantized_range().unwrap_or_default();
        (spec.scale, spec.zero_point - least)
    }

    /// Any steps that hold numbers of ordinary size; mostly the same ones.
    pub fn any_steps(&mut self) -> Steps {
        self.random.pick(&[
            (0.05, 128),
            (0.05, 128),
            (0.05, 128),
            (0.04, 120),
            (0.031, 90),
            (0.06, 0),
        ])
    }

    /// Which values operations may read.
    pub fn readable(&self) -> Vec<Value> {
        let indexes = 0..self.values.len();
        indexes.filter(|index| !self.values[*index].is_last).map(Value).collect()
    }

    /// A value that there is: mostly one of the newest.
    pub fn any(&mut self) -> Value {
        let mut values = self.readable();
        if self.random.int(0, 9) < 6 {
            values = values.split_off(values.len().saturating_sub(2));
        }
        self.random.pick(&values)
    }

    /// A new input of the graph.
    pub fn input(&mut self, dimensions: &[u32]) -> Value {
        let steps = self.any_steps();
        let typed = self.typed(dimensions, 3.0, Quant::Fixed(steps.0, steps.1));
        self.request.input_shaped(&typed.bytes, dimensions);
        let mut said = typed.spec.clone();
        if self.said == Said::Ranks {
            said.dimensions.fill(0);
        }
        let id = self.graph.input("", said);
        self.story.push(format!("v{} = input {dimensions:?} {steps:?}", self.values.len()));
        self.push(id, typed.spec, false)
    }

    /// A constant of the graph's kind.
    pub fn constant(&mut self, dimensions: &[u32]) -> Value {
        let steps = self.any_steps();
        let typed = self.typed(dimensions, 2.0, Quant::Fixed(steps.0, steps.1));
        let id = self.graph.constant_bytes(typed.spec.clone(), &typed.bytes);
        self.story.push(format!("v{} = constant {dimensions:?} {steps:?}", self.values.len()));
        self.push(id, typed.spec, false)
    }

    /// A constant with these elements, whatever they are stored as.
    pub fn constant_of(&mut self, dimensions: &[u32], numbers: Vec<f64>) -> Value {
        let typed = Given::tensor(dimensions, numbers.clone()).typed(self.kind.tensor(), &[]);
        let id = self.graph.constant_bytes(typed.spec.clone(), &typed.bytes);
        self.story.push(format!("v{} = {numbers:?} {dimensions:?}", self.values.len()));
        self.push(id, typed.spec, false)
    }

    fn typed(&mut self, dimensions: &[u32], most: f64, quant: Quant) -> Typed {
        let numbers = self.random.reals(dimensions, -most, most);
        Given { quant, ..Given::tensor(dimensions, numbers) }.typed(self.kind.tensor(), &[])
    }

    fn push(&mut self, id: OperandId, spec: OperandSpec, is_computed: bool) -> Value {
        // An output in the middle of the graph.
        let is_output = is_computed && self.random.one_in(8);
        let (is_read, is_last) = (false, false);
        self.values.push(Drawn { id, spec, is_computed, is_read, is_output, is_last });
        Value(self.values.len() - 1)
    }

    /// The operand of a value that an operation reads.
    pub fn read(&mut self, value: Value) -> OperandId {
        let drawn = &mut self.values[value.0];
        drawn.is_read = true;
        drawn.id
    }

    /// What an operation makes of these operands: a value of these dimensions.
    pub fn operation(
        &mut self,
        operation: OperationType,
        inputs: &[OperandId],
        dimensions: &[u32],
        steps: Steps,
    ) -> Value {
        self.operation_with(operation, inputs, &[dimensions.to_vec()], steps)[0]
    }

    /// What an operation makes of these operands: values of these dimensions.
    pub fn operation_with(
        &mut self,
        operation: OperationType,
        inputs: &[OperandId],
        dimensions: &[Vec<u32>],
        steps: Steps,
    ) -> Vec<Value> {
        let operand_type = self.kind.tensor();
        let name = |id: &OperandId| {
            let value = self.values.iter().position(|value| value.id == *id);
            value.map_or_else(|| "_".to_owned(), |value| format!("v{value}"))
        };
        let inputs_named = inputs.iter().map(name).collect::<Vec<_>>().join(", ");
        let first = self.values.len();
        let mut outputs = Vec::new();
        let mut values = Vec::new();
        for dimensions in dimensions {
            let mut spec = OperandSpec::new(operand_type, dimensions.clone());
            if let Some((least, _)) = operand_type.quantized_range() {
                spec = spec.quantized(steps.0, least + steps.1);
            }
            let mut said = spec.clone();
            if self.said != Said::Everything {
                said.dimensions.clear();
            }
            let id = self.graph.temporary(said);
            outputs.push(id);
            values.push(self.push(id, spec, true));
        }
        self.graph.operation_into(operation, inputs, &outputs);
        self.story.push(format!("v{first} = {operation}({inputs_named}) {dimensions:?} {steps:?}"));
        values
    }

    /// Nothing will read this value, which becomes an output: its elements may be a step away.
    pub fn ends_with(&mut self, value: Value) {
        self.values[value.0].is_last = true;
    }

    /// Integers in a constant tensor of one axis, or of these lengths.
    pub fn integers(&mut self, dimensions: &[u32], numbers: &[i32]) -> OperandId {
        self.graph.constant(OperandSpec::tensor_int32(dimensions), numbers)
    }

    /// An `INT32`.
    pub fn int(&mut self, number: i32) -> OperandId {
        self.graph.scalar_i32(number)
    }

    /// `INT32`s.
    pub fn ints(&mut self, numbers: &[i32]) -> Vec<OperandId> {
        numbers.iter().map(|number| self.int(*number)).collect()
    }

    /// A `BOOL`.
    pub fn bool(&mut self, value: bool) -> OperandId {
        self.graph.scalar_bool(value)
    }

    /// A scalar that stands for a real number.
    pub fn real(&mut self, number: f64) -> OperandId {
        let typed = Given::tensor(&[], vec![number]).typed(self.kind.scalar(), &[]);
        self.graph.constant_bytes(typed.spec.clone(), &typed.bytes)
    }

    /// Weights and bias for an input. Sums of products are about as large as the input's elements.
    /// Sometimes they come with the request.
    pub fn weights(
        &mut self,
        input: Value,
        dimensions: &[u32],
        channel_dim: u32,
        summed: u32,
        may_have_channels: bool,
    ) -> [OperandId; 2] {
        let most = 1.7 / f64::from(summed).sqrt();
        let numbers = self.random.reals(dimensions, -most, most);
        let depth = dimensions[channel_dim as usize];
        let bias = self.random.reals(&[depth], -0.5, 0.5);
        let has_channels = self.kind.is_quantized() && may_have_channels && self.random.coin();
        let weights_type = match self.kind {
            _ if has_channels => OperandType::TensorQuant8SymmPerChannel,
            kind => kind.tensor(),
        };
        let bias_type = match self.kind {
            kind if kind.is_quantized() => OperandType::TensorInt32,
            kind => kind.tensor(),
        };
        let spec = self.values[input.0].spec.clone();
        let read = Typed { spec, bytes: vec![], is_omitted: false };
        let weights = Given { channel_dim, ..Given::tensor(dimensions, numbers) };
        let weights = weights.typed(weights_type, &[]);
        let both = [read, weights];
        let bias = Given { quant: Quant::Product(0, 1), ..Given::tensor(&[depth], bias) };
        let bias = bias.typed(bias_type, &both);
        let [_, weights] = both;
        let are_constant = !self.random.one_in(12);
        [weights, bias].map(|typed| {
            if are_constant {
                return self.graph.constant_bytes(typed.spec.clone(), &typed.bytes);
            }
            self.request.input_shaped(&typed.bytes, &typed.spec.dimensions);
            self.graph.input("", typed.spec)
        })
    }

    /// Whether there is an operation.
    pub fn computes(&self) -> bool {
        self.values.iter().any(|value| value.is_computed)
    }

    /// The graph, whose outputs are the values that nothing reads and some of the others.
    pub fn finish(self) -> Result<Finished, String> {
        let Self { mut graph, mut request, values, story, .. } = self;
        let (mut specs, mut tolerances) = (Vec::new(), Vec::new());
        let mut outputs = Vec::new();
        for (index, value) in values.into_iter().enumerate() {
            if value.is_computed && (value.is_output || !value.is_read) {
                graph.output(value.id);
                let elements: u32 = value.spec.dimensions.iter().product();
                let size = value.spec.operand_type.element_size().ok_or("an element size")?;
                request.output((elements * size) as usize);
                specs.push(value.spec);
                let steps = u32::from(value.is_last);
                tolerances.push(Tolerance { steps, ..Tolerance::OF_GRAPHS });
                outputs.push(format!("v{index}"));
            }
        }
        let model = graph.into_model().map_err(|error| error.to_string())?;
        let request = request.build().map_err(|error| error.to_string())?;
        let story = format!("{}\noutputs {}", story.join("\n"), outputs.join(", "));
        Ok(Finished { model, request, specs, tolerances, story })
    }
}
