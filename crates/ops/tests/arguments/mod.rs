//! Arguments of operations out of arbitrary bytes, their types by the operation's signature, all
//! else by chance. Used by the tests and by the fuzz targets.

#![allow(dead_code)] // Each user needs a part.

use nnhal_hal::{
    ChannelQuant, DataLocation, ExtraParams, Operand, OperandLifeTime, OperandType, OperationType,
};
use nnhal_ops::extension::{ExtensionOperation, TENSOR_INT64, element_size};
use nnhal_ops::{
    AnyOperation, ArgumentSource, Call, Form, Parameter, ParameterType, Presence, Row, Shape,
    Signature, Value,
};

/// Most elements of an input whose value is made up, and of an output that is computed.
pub const MOST_ELEMENTS: u64 = 1 << 12;

/// Numbers of 31 bits that a small number, or one of the others, makes wrap to a small number: with 3
/// and with 5 just above 2^32, and with 11 just above 2^34.
const WRAPPING: [u32; 3] = [1_431_655_766, 858_993_460, 1_561_806_290];

/// What decides everything about a call, taken from random bytes. Each call has a rank, a length
/// and a temper of its own that most of its arguments follow, so that they often go together.
pub struct Source<'a> {
    bytes: std::slice::Iter<'a, u8>,
    rank: usize,
    length: u32,
    is_tame: bool,
}

impl<'a> Source<'a> {
    /// All of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        let mut source = Self { bytes: bytes.iter(), rank: 4, length: 2, is_tame: false };
        source.rank = source.pick(&[4, 4, 4, 2, 3, 1]);
        source.length = source.pick(&[1, 1, 2, 2, 3, 4]);
        source.is_tame = source.byte() > 50;
        source
    }

    /// 0 once the bytes are used up.
    pub fn byte(&mut self) -> u8 {
        self.bytes.next().copied().unwrap_or(0)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::from(self.byte()) % from.len()]
    }

    fn one_of<T>(&mut self, from: &'static [T]) -> &'static T {
        &from[usize::from(self.byte()) % from.len()]
    }

    fn lengths(&mut self, parameter: &Parameter) -> Vec<u32> {
        let is_list = matches!(
            parameter.name,
            "bias" | "axes" | "output shape" | "size" | "shape" | "lengths"
        );
        let usual = if is_list { 1 } else { self.rank };
        let rank = if self.is_unusual() { self.pick(&[1, 2, 3, 4, 5]) } else { usual };
        (0..rank).map(|_| self.length()).collect()
    }

    fn length(&mut self) -> u32 {
        if self.is_unusual() {
            self.pick(&[0, 1, 2, 3, 4, 6, 17, 70_000, u32::MAX, 65_536, 1 << 31, WRAPPING[0]])
        } else {
            self.length
        }
    }

    fn int32(&mut self) -> i32 {
        if !self.is_unusual() {
            return self.pick(&[1, 1, 1, 1, 0, 0, 2, 2]);
        }
        let [a, b, c] = WRAPPING.map(u32::cast_signed);
        self.pick(&[3, -1, -2, 4, 5, 127, -1000, 65_536, 1 << 30, i32::MAX, i32::MIN, a, b, c])
    }

    fn is_unusual(&mut self) -> bool {
        self.byte() < if self.is_tame { 5 } else { 50 }
    }

    fn float(&mut self) -> f32 {
        self.pick(&[1.0, 0.5, 2.0, 0.0, -1.0, 1e-6, f32::MAX, -0.0, f32::NAN, f32::INFINITY])
    }

    /// A model's scales are finite and above 0, or 0 where the type has none.
    fn scale(&mut self) -> f32 {
        if !self.is_unusual() {
            return 0.5;
        }
        self.pick(&[1.0, 1.0 / 128.0, 1.0 / 256.0, 0.25, 1e-38, 3e38, 1.0 / 32768.0])
    }

    fn element(&mut self, operand_type: OperandType) -> Vec<u8> {
        match operand_type {
            OperandType::Int32 | OperandType::TensorInt32 => self.int32().to_le_bytes().to_vec(),
            OperandType::Float32 | OperandType::TensorFloat32 => {
                self.float().to_le_bytes().to_vec()
            }
            OperandType::Float16 | OperandType::TensorFloat16 => {
                half::f16::from_f32(self.float()).to_le_bytes().to_vec()
            }
            OperandType::Bool | OperandType::TensorBool8 => vec![self.byte() & 1],
            TENSOR_INT64 => i64::from(self.int32()).to_le_bytes().to_vec(),
            _ => (0..element_size(operand_type).unwrap_or(0)).map(|_| self.byte()).collect(),
        }
    }
}

/// An argument to be.
pub struct Made {
    /// Type and quantization.
    pub operand: Operand,
    /// As far as it is known.
    pub shape: Shape,
    /// If it is known.
    pub value: Option<Vec<u8>>,
    /// Whether it is left out.
    pub is_omitted: bool,
}

impl Made {
    /// For a call.
    pub fn source(&self) -> ArgumentSource<'_> {
        let value = match &self.value {
            _ if self.is_omitted => Value::Omitted,
            Some(bytes) => Value::Known(bytes),
            None => Value::NotKnown,
        };
        ArgumentSource { operand: &self.operand, shape: self.shape.clone(), value }
    }
}

fn make(parameter: &Parameter, row: &Row, source: &mut Source<'_>) -> Made {
    let operand_type = parameter.type_in(row).unwrap_or(OperandType::TensorFloat32);
    let lengths: Vec<u32> =
        if operand_type.is_scalar() { Vec::new() } else { source.lengths(parameter) };
    let per_channel = operand_type == OperandType::TensorQuant8SymmPerChannel;
    let has_scale = operand_type.quantized_range().is_some() && !per_channel;
    let zero_point = match operand_type {
        OperandType::TensorQuant8Asymm => source.pick(&[128, 0, 255]),
        OperandType::TensorQuant8AsymmSigned => source.pick(&[0, -128, 127]),
        OperandType::TensorQuant16Asymm => source.pick(&[0, 32768, 65535]),
        _ => 0,
    };
    let operand = Operand {
        operand_type,
        dimensions: Vec::new(),
        number_of_consumers: 1,
        scale: if has_scale {
            source.scale()
        } else if operand_type == OperandType::TensorInt32 {
            source.pick(&[0.25, 0.25, 0.0])
        } else {
            0.0
        },
        zero_point,
        lifetime: OperandLifeTime::TemporaryVariable,
        location: DataLocation::default(),
        extra_params: if per_channel {
            let channel_dim = source.pick(&[0, 3, 1]);
            let count = source.length().min(20);
            let scales = (0..count).map(|_| source.scale()).collect();
            ExtraParams::ChannelQuant(ChannelQuant { scales, channel_dim })
        } else {
            ExtraParams::None
        },
    };
    let known = Shape::known(lengths.iter().copied());
    let is_omitted = parameter.may_be_omitted() && source.byte() < 64;
    let count = known.element_count().filter(|count| *count <= MOST_ELEMENTS);
    let value = count
        .filter(|_| source.byte() > 3)
        .map(|count| (0..count).flat_map(|_| source.element(operand_type)).collect());
    let shape = match (&value, source.byte()) {
        (None, 0..32) => Shape::UNKNOWN,
        (None, 32..128) => Shape::new(
            lengths
                .iter()
                .map(|length| (source.byte() > 50).then_some(*length))
                .collect::<Vec<_>>(),
        ),
        _ => known,
    };
    Made { operand, shape, value, is_omitted }
}

/// As many parameters as an argument list has, which may end early or repeat one of them.
fn choose(parameters: &'static [Parameter], source: &mut Source<'_>) -> Vec<&'static Parameter> {
    let mut chosen = Vec::new();
    for parameter in parameters {
        let times = match parameter.presence {
            Presence::Trailing(_) | Presence::TrailingOmittable(_) if source.byte() < 64 => break,
            Presence::Repeated(least) => least + usize::from(source.byte() % 3),
            _ => 1,
        };
        chosen.extend(std::iter::repeat_n(parameter, times));
    }
    chosen
}

/// An operation with arguments.
pub struct Invocation {
    /// Which.
    pub signature: &'static Signature,
    /// In order.
    pub inputs: Vec<Made>,
    /// In order; nothing is known of their shapes.
    pub outputs: Vec<Made>,
}

impl Invocation {
    /// Arguments of the right types, by a form and a row of the signature.
    pub fn of(signature: &'static Signature, source: &mut Source<'_>) -> Self {
        let form: &Form = source.one_of(signature.forms);
        let row: &Row = source.one_of(signature.rows);
        let mut made = |parameters| -> Vec<Made> {
            let chosen = choose(parameters, source);
            chosen.into_iter().map(|parameter| make(parameter, row, source)).collect()
        };
        let (inputs, mut outputs) = (made(form.inputs), made(form.outputs));
        for output in &mut outputs {
            output.value = None;
            output.is_omitted = false;
            // What an operation computes is known only when it has.
            output.shape = Shape::UNKNOWN;
        }
        Self { signature, inputs, outputs }
    }

    /// The same as a call.
    pub fn call(&self) -> Call<'_> {
        let inputs = self.inputs.iter().map(Made::source);
        Call::new(self.signature.operation, inputs, self.outputs.iter().map(Made::source))
    }

    /// Whether each input has a value or is left out.
    pub fn is_known(&self) -> bool {
        self.inputs.iter().all(|input| input.is_omitted || input.value.is_some())
    }

    /// Asks the operation everything, in the order in which it may be asked. Tells whether it got
    /// as far as computing something.
    ///
    /// # Errors
    /// Answers that do not go together.
    pub fn compute(&self) -> Result<bool, String> {
        let call = self.call();
        if self.signature.since(&call).is_err() {
            return Ok(false); // the list ended where it must not
        }
        nnhal_ops::operations::since(&call);
        if nnhal_ops::operations::validate(&call).is_err() {
            return Ok(false);
        }
        let Ok(operation) = AnyOperation::decode(&call) else { return Ok(false) };
        let Ok(shapes) = operation.output_shapes(&call) else { return Ok(false) };
        if shapes.len() != self.outputs.len() {
            return Err(format!("{} shapes of {} outputs", shapes.len(), self.outputs.len()));
        }
        let is_small = |shape: &Shape| {
            shape.to_known().is_none()
                || shape.element_count().is_some_and(|count| count <= MOST_ELEMENTS)
        };
        if !self.is_known() || !shapes.iter().all(is_small) {
            return Ok(false);
        }
        let Ok(results) = operation.reference(&call) else { return Ok(false) };
        if results.len() != self.outputs.len() {
            return Err(format!("{} results for {} outputs", results.len(), self.outputs.len()));
        }
        for (foretold, result) in shapes.iter().zip(results) {
            let computed = Shape::known(result.dimensions.iter().copied());
            if foretold.merge(&computed).as_ref() != Some(&computed) {
                return Err(format!("shape {computed}, foretold {foretold}"));
            }
        }
        Ok(true)
    }
}

/// Every operation that is defined and looks at more than its argument types.
pub fn signatures() -> impl Iterator<Item = &'static Signature> {
    let is_plain = |signature: &&Signature| {
        let parameters =
            signature.forms.iter().flat_map(|form| form.inputs.iter().chain(form.outputs));
        parameters.clone().count() > 0
            && parameters.into_iter().all(|it| it.parameter_type != ParameterType::Any)
    };
    let extended = ExtensionOperation::ALL.iter().map(|it| it.operation_type());
    let all = OperationType::FUNDAMENTAL.iter().copied().chain(extended);
    all.filter_map(Signature::of).filter(is_plain)
}
