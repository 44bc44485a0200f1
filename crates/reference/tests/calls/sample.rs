//! [`Sample`]: a call of an operation in real numbers, which any row of its signature can write
//! down in its own types.

use half::f16;
use nnhal_hal::{ChannelQuant, ExtraParams, OperandSpec, OperandType, OperationType};
use nnhal_ops::extension::{TENSOR_COMPLEX64, TENSOR_FLOAT64, TENSOR_INT64, element_size};
use nnhal_ops::{Form, Parameter, Presence, Row, Signature};

/// A call of an operation, in real numbers and with images in NHWC.
#[derive(Debug, Clone)]
pub struct Sample {
    /// What is called.
    pub operation: OperationType,
    /// Which of the signature's argument lists it has.
    pub form: usize,
    /// By position.
    pub inputs: Vec<Given>,
    /// By position.
    pub outputs: Vec<Wanted>,
}

/// An input of a sample.
#[derive(Debug, Clone)]
pub struct Given {
    /// Of a tensor; empty for a scalar.
    pub dimensions: Vec<u32>,
    /// The elements as the reals that they stand for.
    pub numbers: Vec<f64>,
    /// How they are stored, if the type is a quantized one.
    pub quant: Quant,
    /// What the layout changes about it.
    pub layout: Layout,
    /// The axis of channel scales, if the type has those.
    pub channel_dim: u32,
    /// It is left out.
    pub is_omitted: bool,
}

/// An output of a sample.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// How it is stored, if the type is a quantized one.
    pub quant: Quant,
    /// What the layout changes about it.
    pub layout: Layout,
}

/// How reals are stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quant {
    /// In steps so small that all just fit; of an output by a factor, below 1 so that some saturate.
    Fit(f32),
    /// As [`Self::Fit`], in steps greater than the product of those of two inputs.
    FitAbove(f32, usize, usize),
    /// With scale and zero point of an input.
    As(usize),
    /// An int32 in steps that are the product of those of two inputs: a bias.
    Product(usize, usize),
    /// The stored number of an input, in an `INT32`.
    StoredAs(usize),
    /// With this scale, and a zero point that is so far above the least number stored.
    Fixed(f32, i32),
    /// With this scale and the zero point 0.
    Scale(f32),
    /// Not quantized; but 0 where an input is `TENSOR_INT32`, with which nothing else is allowed.
    ZeroWithInt32(usize),
}

/// What the layout flag changes about an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Nothing.
    Same,
    /// It has images, `[batch, height, width, channels]`.
    Image,
    /// It is the shape of images.
    ShapeOfImage,
    /// It is the flag.
    Flag,
}

/// An argument in the types of a row.
#[derive(Debug, Clone)]
pub struct Typed {
    /// Its dimensions are known here.
    pub spec: OperandSpec,
    /// The elements, little endian.
    pub bytes: Vec<u8>,
    /// It is left out.
    pub is_omitted: bool,
}

/// A sample in the types of a row. Outputs have no shape.
#[derive(Debug, Clone)]
pub struct Call {
    /// What is called.
    pub operation: OperationType,
    /// By position.
    pub inputs: Vec<Typed>,
    /// By position.
    pub outputs: Vec<OperandSpec>,
}

impl Sample {
    /// A call without arguments, of the first form.
    pub fn new(operation: OperationType) -> Self {
        Self { operation, form: 0, inputs: Vec::new(), outputs: Vec::new() }
    }

    /// Of another form.
    pub fn form(self, form: usize) -> Self {
        Self { form, ..self }
    }

    /// One more input.
    pub fn input(mut self, given: Given) -> Self {
        self.inputs.push(given);
        self
    }

    /// One more input: a tensor.
    pub fn tensor(self, dimensions: &[u32], numbers: Vec<f64>) -> Self {
        self.input(Given::tensor(dimensions, numbers))
    }

    /// One more input: images.
    pub fn image(self, dimensions: &[u32], numbers: Vec<f64>) -> Self {
        self.input(Given { layout: Layout::Image, ..Given::tensor(dimensions, numbers) })
    }

    /// One more input: integers in a tensor with one axis.
    pub fn integers(self, numbers: &[i32]) -> Self {
        let length = u32::try_from(numbers.len()).unwrap();
        self.tensor(&[length], numbers.iter().copied().map(f64::from).collect())
    }

    /// More inputs: scalars.
    pub fn scalars(self, numbers: &[f64]) -> Self {
        numbers.iter().fold(self, |call, number| call.input(Given::tensor(&[], vec![*number])))
    }

    /// More inputs: integer scalars.
    pub fn ints(self, numbers: &[i32]) -> Self {
        numbers.iter().fold(self, |call, number| call.scalars(&[f64::from(*number)]))
    }

    /// The flag that says how images are.
    pub fn flag(self) -> Self {
        self.input(Given { layout: Layout::Flag, ..Given::tensor(&[], vec![0.0]) })
    }

    /// One more output.
    pub fn output(mut self, quant: Quant) -> Self {
        self.outputs.push(Wanted { quant, layout: Layout::Same });
        self
    }

    /// One more output: images.
    pub fn image_output(mut self, quant: Quant) -> Self {
        self.outputs.push(Wanted { quant, layout: Layout::Image });
        self
    }

    /// How the last input is stored.
    pub fn stored(mut self, quant: Quant) -> Self {
        self.inputs.last_mut().unwrap().quant = quant;
        self
    }

    /// The signature's rows.
    pub fn rows(&self) -> &'static [Row] {
        Signature::of(self.operation).unwrap().rows
    }

    /// The parameters of its form, as often as they are given.
    fn parameters(&self) -> (Vec<&'static Parameter>, Vec<&'static Parameter>) {
        let form: &'static Form = &Signature::of(self.operation).unwrap().forms[self.form];
        let lay = |parameters: &'static [Parameter], count: usize| {
            let times = |parameter: &Parameter| match parameter.presence {
                Presence::Repeated(_) => count + 1 - parameters.len(),
                _ => 1,
            };
            let repeated = parameters.iter().flat_map(|it| std::iter::repeat_n(it, times(it)));
            repeated.take(count).collect()
        };
        (lay(form.inputs, self.inputs.len()), lay(form.outputs, self.outputs.len()))
    }

    /// The call in the types of a row; outputs that are to fit get scale and zero point by what
    /// [`Call::fit`] is given.
    pub fn typed(&self, row: &Row) -> Call {
        let (parameters, results) = self.parameters();
        let mut inputs: Vec<Typed> = Vec::new();
        for (given, parameter) in self.inputs.iter().zip(parameters) {
            let operand_type = parameter.type_in(row).expect("a type");
            inputs.push(given.typed(operand_type, &inputs));
        }
        let outputs = self
            .outputs
            .iter()
            .zip(results)
            .map(|(wanted, parameter)| {
                let operand_type = parameter.type_in(row).expect("a type");
                wanted.quant.spec(operand_type, vec![], &[], &inputs)
            })
            .collect();
        Call { operation: self.operation, inputs, outputs }
    }

    /// The call in the types of another row, with exactly the reals that `call` stores.
    pub fn retyped(&self, call: &Call, row: &Row) -> Call {
        let mut retyped = self.with_stored(call).typed(row);
        for (input, given) in retyped.inputs.iter_mut().zip(&call.inputs) {
            if input.spec.operand_type == given.spec.operand_type {
                *input = given.clone();
            }
        }
        retyped
    }

    fn with_stored(&self, call: &Call) -> Self {
        let mut sample = self.clone();
        for (given, typed) in sample.inputs.iter_mut().zip(&call.inputs) {
            given.numbers = match given.quant {
                Quant::StoredAs(input) if typed.spec.operand_type == OperandType::Int32 => {
                    let like = &call.inputs[input].spec;
                    let stored = integers(typed)[0] - like.zero_point;
                    vec![f64::from(stored) * f64::from(like.scale)]
                }
                // A bias by channel: the scales are those of the filter.
                Quant::Product(x, y) if typed.spec.operand_type == OperandType::TensorInt32 => {
                    let scales = product_scales(&call.inputs[x], &call.inputs[y]);
                    let stored = integers(typed).into_iter().zip(scales.iter().cycle());
                    stored.map(|(stored, scale)| f64::from(stored) * scale).collect()
                }
                _ => reals(&typed.spec, &typed.bytes),
            };
        }
        sample
    }

    /// The same call with images in NCHW; `None` if it has no flag.
    pub fn channels_first(&self) -> Option<Self> {
        let mut sample = self.clone();
        let mut has_flag = false;
        for given in &mut sample.inputs {
            match given.layout {
                Layout::Same => {}
                Layout::Image => {
                    (given.dimensions, given.numbers) =
                        transpose(&given.dimensions, &given.numbers, [0, 3, 1, 2]);
                }
                Layout::ShapeOfImage => {
                    given.numbers = [0, 3, 1, 2].map(|axis: usize| given.numbers[axis]).to_vec();
                }
                Layout::Flag => {
                    given.numbers = vec![1.0];
                    has_flag = true;
                }
            }
        }
        has_flag.then_some(sample)
    }
}

/// Elements in another order of axes.
pub fn transpose<T: Clone>(
    dimensions: &[u32],
    elements: &[T],
    axes: [usize; 4],
) -> (Vec<u32>, Vec<T>) {
    assert_eq!(dimensions.len(), 4);
    let strides = [
        dimensions[1] * dimensions[2] * dimensions[3],
        dimensions[2] * dimensions[3],
        dimensions[3],
        1,
    ];
    let (lengths, strides) = (axes.map(|axis| dimensions[axis]), axes.map(|axis| strides[axis]));
    let mut moved = Vec::with_capacity(elements.len());
    for a in 0..lengths[0] {
        for b in 0..lengths[1] {
            for c in 0..lengths[2] {
                for d in 0..lengths[3] {
                    let at = a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3];
                    moved.push(elements[at as usize].clone());
                }
            }
        }
    }
    (lengths.to_vec(), moved)
}

impl Given {
    /// A tensor.
    pub fn tensor(dimensions: &[u32], numbers: Vec<f64>) -> Self {
        assert_eq!(dimensions.iter().product::<u32>() as usize, numbers.len());
        Self {
            dimensions: dimensions.to_vec(),
            numbers,
            quant: Quant::Fit(1.0),
            layout: Layout::Same,
            channel_dim: 0,
            is_omitted: false,
        }
    }

    /// A tensor that is left out.
    pub fn omitted() -> Self {
        Self { is_omitted: true, ..Self::tensor(&[0], vec![]) }
    }

    /// As an argument of this type, after others that it may depend on.
    pub fn typed(&self, operand_type: OperandType, before: &[Typed]) -> Typed {
        if self.is_omitted {
            let dimensions = if operand_type.is_scalar() { vec![] } else { vec![0] };
            let mut spec = OperandSpec::new(operand_type, dimensions);
            if operand_type.quantized_range().is_some() {
                spec = spec.quantized(1.0, 0);
            }
            return Typed { spec, bytes: vec![], is_omitted: true };
        }
        let mut spec =
            self.quant.spec(operand_type, self.dimensions.clone(), &self.numbers, before);
        if operand_type == OperandType::TensorQuant8SymmPerChannel {
            spec.scale = 0.0;
            spec.extra_params = ExtraParams::ChannelQuant(self.channel_quant());
        }
        let bytes = self.bytes(&spec, before);
        Typed { spec, bytes, is_omitted: false }
    }

    /// For each element the index along the axis of channel scales.
    fn channels(&self) -> impl Iterator<Item = usize> {
        let inner: u32 = self.dimensions[self.channel_dim as usize + 1..].iter().product();
        let count = self.dimensions[self.channel_dim as usize];
        (0..self.dimensions.iter().product::<u32>()).map(move |at| (at / inner % count) as usize)
    }

    fn channel_quant(&self) -> ChannelQuant {
        let mut greatest = vec![0.1_f64; self.dimensions[self.channel_dim as usize] as usize];
        for (number, channel) in self.numbers.iter().zip(self.channels()) {
            greatest[channel] = greatest[channel].max(number.abs());
        }
        #[allow(clippy::cast_possible_truncation)]
        let scales: Vec<f32> = greatest.iter().map(|it| (it / 127.0) as f32).collect();
        ChannelQuant { scales: scales.into(), channel_dim: self.channel_dim }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Clamped, or so meant.
    fn bytes(&self, spec: &OperandSpec, before: &[Typed]) -> Vec<u8> {
        let numbers = self.numbers.iter();
        let to_steps = |number: &f64, scale: f64, zero_point: i32, range: (i32, i32)| {
            let stored = (number / scale).round() + f64::from(zero_point);
            stored.clamp(f64::from(range.0), f64::from(range.1)) as i32
        };
        match spec.operand_type {
            OperandType::TensorFloat32 | OperandType::Float32 => {
                numbers.flat_map(|number| (*number as f32).to_le_bytes()).collect()
            }
            OperandType::TensorFloat16 | OperandType::Float16 => {
                numbers.flat_map(|number| f16::from_f64(*number).to_le_bytes()).collect()
            }
            OperandType::TensorInt32 | OperandType::Int32 => match self.quant {
                Quant::Product(x, y) => {
                    let scales = product_scales(&before[x], &before[y]);
                    let range = (i32::MIN / 4, i32::MAX / 4);
                    let stored = numbers.zip(scales.iter().cycle());
                    stored
                        .flat_map(|(it, scale)| to_steps(it, *scale, 0, range).to_le_bytes())
                        .collect()
                }
                Quant::StoredAs(input) => {
                    let like = &before[input].spec;
                    let range = like.operand_type.quantized_range().unwrap();
                    let scale = f64::from(like.scale);
                    numbers
                        .flat_map(|it| to_steps(it, scale, like.zero_point, range).to_le_bytes())
                        .collect()
                }
                Quant::ZeroWithInt32(input)
                    if before[input].spec.operand_type == OperandType::TensorInt32
                        || matches!(before[input].spec.operand_type, OperandType::Extension(_)) =>
                {
                    0_i32.to_le_bytes().to_vec()
                }
                _ => numbers.flat_map(|number| (number.round() as i32).to_le_bytes()).collect(),
            },
            OperandType::TensorBool8 | OperandType::Bool => {
                numbers.map(|number| u8::from(number.abs() >= 0.5)).collect()
            }
            TENSOR_COMPLEX64 => {
                let both = |number: &f64| [*number as f32, -0.5 * *number as f32];
                numbers.flat_map(both).flat_map(f32::to_le_bytes).collect()
            }
            TENSOR_FLOAT64 => numbers.flat_map(|number| number.to_le_bytes()).collect(),
            OperandType::Extension(_) => {
                let is_signed = spec.operand_type == TENSOR_INT64;
                let least = if is_signed { f64::MIN } else { 0.0 };
                let size = element_size(spec.operand_type).unwrap() as usize;
                numbers
                    .flat_map(|number| {
                        (number.round().max(least) as i64).to_le_bytes()[..size].to_vec()
                    })
                    .collect()
            }
            operand_type => {
                let range = operand_type.quantized_range().expect("a quantized type");
                let size = operand_type.element_size().unwrap() as usize;
                let scales: Vec<f64> = match &spec.extra_params {
                    ExtraParams::ChannelQuant(quant) => {
                        self.channels().map(|channel| f64::from(quant.scales[channel])).collect()
                    }
                    _ => vec![f64::from(spec.scale)],
                };
                numbers
                    .zip(scales.iter().cycle())
                    .flat_map(|(number, scale)| {
                        let stored = to_steps(number, *scale, spec.zero_point, range);
                        stored.to_le_bytes()[..size].to_vec()
                    })
                    .collect()
            }
        }
    }
}

/// The steps of products of two inputs, by channel if one of them has channels.
fn product_scales(x: &Typed, y: &Typed) -> Vec<f64> {
    let scales = |typed: &Typed| match &typed.spec.extra_params {
        ExtraParams::ChannelQuant(quant) => quant.scales.to_vec(),
        _ => vec![typed.spec.scale],
    };
    let x = f64::from(scales(x)[0]);
    scales(y).into_iter().map(|y| x * f64::from(y)).collect()
}

/// The stored numbers of an integer type.
fn integers(typed: &Typed) -> Vec<i32> {
    let (elements, _) = typed.bytes.as_chunks();
    elements.iter().map(|element| i32::from_le_bytes(*element)).collect()
}

/// The reals that stored elements stand for.
pub fn reals(spec: &OperandSpec, bytes: &[u8]) -> Vec<f64> {
    let size = element_size(spec.operand_type).unwrap() as usize;
    let scales: Vec<f64> = match &spec.extra_params {
        ExtraParams::ChannelQuant(quant) => {
            let given = Given {
                channel_dim: quant.channel_dim,
                ..Given::tensor(&spec.dimensions, vec![0.0; bytes.len()])
            };
            given.channels().map(|channel| f64::from(quant.scales[channel])).collect()
        }
        _ => vec![f64::from(spec.scale)],
    };
    let elements = bytes.chunks(size).zip(scales.iter().cycle());
    elements
        .map(|(bytes, scale)| match (spec.operand_type, bytes) {
            (OperandType::TensorFloat32 | OperandType::Float32, &[a, b, c, d]) => {
                f64::from(f32::from_le_bytes([a, b, c, d]))
            }
            (OperandType::TensorFloat16 | OperandType::Float16, &[a, b]) => {
                f16::from_le_bytes([a, b]).to_f64()
            }
            (TENSOR_FLOAT64, &[a, b, c, d, e, f, g, h]) => {
                f64::from_le_bytes([a, b, c, d, e, f, g, h])
            }
            (TENSOR_COMPLEX64, &[a, b, c, d, ..]) => f64::from(f32::from_le_bytes([a, b, c, d])),
            #[allow(clippy::cast_precision_loss)] // Samples have small numbers.
            (OperandType::Extension(_), bytes) => {
                let mut wide = [0; 8];
                wide[..size].copy_from_slice(bytes);
                i64::from_le_bytes(wide) as f64
            }
            (operand_type, bytes) if operand_type.quantized_range().is_some() => {
                f64::from(stored(operand_type, bytes) - spec.zero_point) * scale
            }
            (operand_type, bytes) => f64::from(stored(operand_type, bytes)),
        })
        .collect()
}

/// The stored number of one element.
pub fn stored(operand_type: OperandType, bytes: &[u8]) -> i32 {
    let is_signed = operand_type.quantized_range().is_some_and(|(least, _)| least < 0);
    match *bytes {
        [a] if is_signed => i32::from(a.cast_signed()),
        [a] => i32::from(a),
        [a, b] if is_signed => i32::from(i16::from_le_bytes([a, b])),
        [a, b] => i32::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => i32::from_le_bytes([a, b, c, d]),
        _ => panic!("{operand_type} has elements of {} bytes", bytes.len()),
    }
}

impl Quant {
    /// An operand that stores these numbers.
    fn spec(
        self,
        operand_type: OperandType,
        dimensions: Vec<u32>,
        numbers: &[f64],
        before: &[Typed],
    ) -> OperandSpec {
        let spec = OperandSpec::new(operand_type, dimensions);
        let Some((least, most)) = operand_type.quantized_range() else {
            return match self {
                // The scale of a bias stands with it, unless it differs by channel.
                Self::Product(x, y) if operand_type == OperandType::TensorInt32 => {
                    let (x, y) = (&before[x].spec, &before[y].spec);
                    spec.quantized(x.scale * y.scale, 0)
                }
                _ => spec,
            };
        };
        let is_symmetric = matches!(
            operand_type,
            OperandType::TensorQuant8SymmPerChannel
                | OperandType::TensorQuant8Symm
                | OperandType::TensorQuant16Symm
        );
        match self {
            Self::Scale(scale) => spec.quantized(scale, 0),
            Self::Fixed(scale, _) if is_symmetric => spec.quantized(scale, 0),
            Self::Fixed(scale, above) => spec.quantized(scale, least + above),
            Self::As(input) => {
                let like = &before[input].spec;
                spec.quantized(like.scale, like.zero_point)
            }
            Self::Fit(_)
            | Self::FitAbove(..)
            | Self::Product(..)
            | Self::StoredAs(_)
            | Self::ZeroWithInt32(_) => {
                let (factor, above) = match self {
                    Self::Fit(factor) => (factor, 0.0),
                    Self::FitAbove(factor, x, y) => {
                        (factor, before[x].spec.scale * before[y].spec.scale * 1.01)
                    }
                    _ => (1.0, 0.0),
                };
                let low = numbers.iter().copied().fold(0.0, f64::min);
                let high = numbers.iter().copied().fold(0.0, f64::max);
                let steps = f64::from(most) - f64::from(least);
                #[allow(clippy::cast_possible_truncation)] // Any scale near the wanted one will do.
                let scale = |range: f64| ((range / steps).max(1e-4) as f32 * factor).max(above);
                if is_symmetric {
                    return spec.quantized(scale(2.0 * high.max(-low)), 0);
                }
                let scale = scale(high - low);
                #[allow(clippy::cast_possible_truncation)]
                let zero_point = (f64::from(least) - low / f64::from(scale)).round() as i32;
                spec.quantized(scale, zero_point.clamp(least, most))
            }
        }
    }
}

impl Call {
    /// Gives outputs that are to fit a scale and a zero point for these results.
    pub fn fit(&mut self, sample: &Sample, results: &[Vec<f64>]) {
        for ((wanted, output), numbers) in sample.outputs.iter().zip(&mut self.outputs).zip(results)
        {
            if matches!(wanted.quant, Quant::Fit(_) | Quant::FitAbove(..)) {
                let operand_type = output.operand_type;
                *output = wanted.quant.spec(operand_type, vec![], numbers, &self.inputs);
            }
        }
    }
}
