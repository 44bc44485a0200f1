//! [`Example`]: a call written by hand, for the tests of operations.

use crate::call::{ArgumentSource, Call, Output, Value};
use crate::error::Fault;
use crate::extension::{
    TENSOR_COMPLEX64, TENSOR_FLOAT64, TENSOR_UINT16, TENSOR_UINT32, element_size,
};
use crate::operations::{self, AnyOperation};
use crate::shape::Shape;
use crate::signature::Signature;
use half::f16;
use nnhal_hal::{HalVersion, OperandSpec, OperandType, OperationType};

/// A call with its arguments. Elements are written as `f64`, whatever their type is: the stored
/// number for quantized types and integers, 0 or 1 for truth values.
#[derive(Debug, Clone)]
pub struct Example {
    operation: OperationType,
    inputs: Vec<Given>,
    outputs: Vec<Given>,
}

#[derive(Debug, Clone)]
struct Given {
    operand: nnhal_hal::Operand,
    shape: Shape,
    value: GivenValue,
}

#[derive(Debug, Clone)]
enum GivenValue {
    Omitted,
    NotKnown,
    Known(Vec<u8>),
}

impl Given {
    fn new(spec: OperandSpec, shape: Shape, value: GivenValue) -> Self {
        let operand = nnhal_hal::Operand {
            operand_type: spec.operand_type,
            dimensions: spec.dimensions,
            number_of_consumers: 0,
            scale: spec.scale,
            zero_point: spec.zero_point,
            lifetime: nnhal_hal::OperandLifeTime::TemporaryVariable,
            location: nnhal_hal::DataLocation::default(),
            extra_params: spec.extra_params,
        };
        Self { operand, shape, value }
    }

    fn known(spec: OperandSpec, elements: &[f64]) -> Self {
        let count: u64 = spec.dimensions.iter().map(|length| u64::from(*length)).product();
        assert_eq!(elements.len() as u64, count, "elements of {:?}", spec.dimensions);
        let shape = Shape::known(spec.dimensions.iter().copied());
        let bytes = to_bytes(spec.operand_type, elements);
        Self::new(spec, shape, GivenValue::Known(bytes))
    }

    fn not_known(spec: OperandSpec) -> Self {
        let shape = Shape::of_model(&spec.dimensions);
        Self::new(spec, shape, GivenValue::NotKnown)
    }

    fn source(&self) -> ArgumentSource<'_> {
        let value = match &self.value {
            GivenValue::Omitted => Value::Omitted,
            GivenValue::NotKnown => Value::NotKnown,
            GivenValue::Known(bytes) => Value::Known(bytes),
        };
        ArgumentSource { operand: &self.operand, shape: self.shape.clone(), value }
    }
}

/// A tensor of any type. Quantized ones step by 1/2; the zero points are 128 and 0 where a type has
/// one. Channel scales need [`OperandSpec::tensor_quant8_symm_per_channel`].
pub fn tensor(operand_type: OperandType, dimensions: impl Into<Vec<u32>>) -> OperandSpec {
    let spec = OperandSpec::new(operand_type, dimensions);
    match operand_type {
        OperandType::TensorQuant8Asymm => spec.quantized(0.5, 128),
        _ if operand_type.quantized_range().is_some() => spec.quantized(0.5, 0),
        _ => spec,
    }
}

/// A tensor of float32.
pub fn float(dimensions: impl Into<Vec<u32>>) -> OperandSpec {
    OperandSpec::tensor_float32(dimensions)
}

impl Example {
    /// A call without arguments.
    pub fn new(operation: OperationType) -> Self {
        Self { operation, inputs: Vec::new(), outputs: Vec::new() }
    }

    /// One more input, everything about it known. A dimension of 0 means none.
    pub fn input(mut self, spec: OperandSpec, elements: &[f64]) -> Self {
        self.inputs.push(Given::known(spec, elements));
        self
    }

    /// One more input with the elements 0, 1, 2 and so on.
    pub fn counted(self, spec: OperandSpec) -> Self {
        let count: u32 = spec.dimensions.iter().product();
        let elements: Vec<f64> = (0..count).map(f64::from).collect();
        self.input(spec, &elements)
    }

    /// One more input: a list of `TENSOR_INT32`.
    pub fn list(self, numbers: &[i32]) -> Self {
        let elements: Vec<f64> = numbers.iter().copied().map(f64::from).collect();
        let length = u32::try_from(numbers.len()).expect("a short list");
        self.input(OperandSpec::tensor_int32([length]), &elements)
    }

    /// One more input, known as a model knows it. A dimension of 0 means unknown.
    pub fn input_to_come(mut self, spec: OperandSpec) -> Self {
        self.inputs.push(Given::not_known(spec));
        self
    }

    /// One more input that is left out.
    pub fn omitted(mut self, spec: OperandSpec) -> Self {
        let shape = Shape::of_model(&spec.dimensions);
        self.inputs.push(Given::new(spec, shape, GivenValue::Omitted));
        self
    }

    /// More inputs: `INT32` scalars.
    pub fn int32s<const N: usize>(self, values: [i32; N]) -> Self {
        values.into_iter().fold(self, |example, value| {
            example.input(OperandSpec::scalar(OperandType::Int32), &[f64::from(value)])
        })
    }

    /// One more input: a `BOOL`.
    pub fn bool(self, value: bool) -> Self {
        self.input(OperandSpec::scalar(OperandType::Bool), &[f64::from(u8::from(value))])
    }

    /// One more output.
    pub fn output(mut self, spec: OperandSpec) -> Self {
        self.outputs.push(Given::not_known(spec));
        self
    }

    /// With another input in place of one.
    pub fn with_input(mut self, index: usize, spec: OperandSpec, elements: &[f64]) -> Self {
        self.inputs[index] = Given::known(spec, elements);
        self
    }

    /// With another input in place of one, of which the value is not known.
    pub fn with_input_to_come(mut self, index: usize, spec: OperandSpec) -> Self {
        self.inputs[index] = Given::not_known(spec);
        self
    }

    /// With an input left out.
    pub fn without_input(mut self, index: usize) -> Self {
        self.inputs[index].value = GivenValue::Omitted;
        self
    }

    /// With another `INT32` in place of an input.
    pub fn with_int32(self, index: usize, value: i32) -> Self {
        self.with_input(index, OperandSpec::scalar(OperandType::Int32), &[f64::from(value)])
    }

    /// With another output in place of the first.
    pub fn with_output(mut self, spec: OperandSpec) -> Self {
        self.outputs[0] = Given::not_known(spec);
        self
    }

    /// The call.
    pub fn call(&self) -> Call<'_> {
        Call::new(
            self.operation,
            self.inputs.iter().map(Given::source),
            self.outputs.iter().map(Given::source),
        )
    }

    /// The oldest version that allows it.
    pub fn since(&self) -> Result<HalVersion, Fault> {
        let call = self.call();
        let signature = Signature::of(self.operation).expect("an operation that is implemented");
        Ok(signature.since(&call)?.max(operations::since(&call).version))
    }

    /// The outputs' shapes after every check that comes before computing. What is not known is
    /// passed over, as for a model.
    pub fn shapes(&self) -> Result<Vec<Shape>, Fault> {
        self.since()?;
        let call = self.call();
        operations::validate(&call)?;
        let shapes = AnyOperation::decode(&call).and_then(|it| it.output_shapes(&call));
        let unknown = || vec![Shape::UNKNOWN; self.outputs.len()];
        Ok(Fault::pass_over_unknown(shapes)?.unwrap_or_else(unknown))
    }

    /// The shape of its first output, as [`shapes`](Self::shapes) says it.
    pub fn shape(&self) -> Shape {
        self.shapes().unwrap_or_else(|fault| panic!("{fault}")).swap_remove(0)
    }

    /// The outputs. The computed shapes must be those that were foretold.
    pub fn run(&self) -> Result<Vec<Output>, Fault> {
        let shapes = self.shapes()?;
        let call = self.call();
        let outputs = AnyOperation::decode(&call)?.reference(&call)?;
        for (shape, output) in shapes.iter().zip(&outputs) {
            let computed = Shape::known(output.dimensions.iter().copied());
            assert_eq!(shape.merge(&computed), Some(computed), "foretold {shape}");
        }
        Ok(outputs)
    }

    /// Dimensions and elements of the first output.
    pub fn result(&self) -> (Vec<u32>, Vec<f64>) {
        let output = self.run().unwrap_or_else(|fault| panic!("{fault}")).swap_remove(0);
        let elements = from_bytes(self.outputs[0].operand.operand_type, &output.bytes);
        (output.dimensions, elements)
    }

    /// Dimensions and elements of all outputs.
    pub fn results(&self) -> Vec<(Vec<u32>, Vec<f64>)> {
        let outputs = self.run().unwrap_or_else(|fault| panic!("{fault}"));
        let pairs = outputs.into_iter().zip(&self.outputs);
        pairs
            .map(|(output, given)| {
                let elements = from_bytes(given.operand.operand_type, &output.bytes);
                (output.dimensions, elements)
            })
            .collect()
    }

    /// Why it is refused.
    pub fn refusal(&self) -> String {
        match self.run() {
            Ok(outputs) => panic!("accepted: {outputs:?}"),
            Err(fault @ Fault::Invalid(_)) => fault.to_string(),
            Err(fault) => panic!("not refused, but {fault}"),
        }
    }
}

/// Since when operations take types that came with 1.1 and take no integers, see [`assert_since`].
pub const SINCE_1_1: [(OperandType, Option<HalVersion>); 5] = [
    (OperandType::TensorFloat32, Some(HalVersion::V1_1)),
    (OperandType::TensorQuant8Asymm, Some(HalVersion::V1_1)),
    (OperandType::TensorFloat16, Some(HalVersion::V1_2)),
    (OperandType::TensorQuant8AsymmSigned, Some(HalVersion::V1_3)),
    (OperandType::TensorInt32, None),
];

/// The same of operations that came with 1.2 and take integers, but no truth values.
pub const SINCE_1_2: [(OperandType, Option<HalVersion>); 6] = [
    (OperandType::TensorFloat32, Some(HalVersion::V1_2)),
    (OperandType::TensorFloat16, Some(HalVersion::V1_2)),
    (OperandType::TensorInt32, Some(HalVersion::V1_2)),
    (OperandType::TensorQuant8Asymm, Some(HalVersion::V1_2)),
    (OperandType::TensorQuant8AsymmSigned, Some(HalVersion::V1_3)),
    (OperandType::TensorBool8, None),
];

/// Asserts since which version an operation takes types, or that it never does, and that it runs then.
#[track_caller]
pub fn assert_since<const N: usize>(
    expected: [(OperandType, Option<HalVersion>); N],
    example: impl Fn(OperandType) -> Example,
) {
    for (operand_type, since) in expected {
        let call = example(operand_type);
        assert_eq!(call.since().ok(), since, "{operand_type}");
        assert_eq!(call.run().is_ok(), since.is_some(), "{operand_type}");
    }
}

/// Asserts that each example is refused in words that contain its own.
#[track_caller]
pub fn assert_refused(table: &[(Example, &str)]) {
    for (example, reason) in table {
        let refusal = example.refusal();
        assert!(refusal.contains(reason), "{refusal}\nnot: {reason}");
    }
}

/// Asserts that numbers are equal to within `tolerance`, absolute and relative.
#[track_caller]
pub fn assert_close(found: &[f64], expected: &[f64], tolerance: f64) {
    let close = found.len() == expected.len()
        && found.iter().zip(expected).all(|(x, y)| (x - y).abs() <= tolerance * y.abs().max(1.0));
    assert!(close, "found {found:?}\nexpected {expected:?}");
}

/// The elements as they are stored.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Tests write what fits.
fn to_bytes(operand_type: OperandType, elements: &[f64]) -> Vec<u8> {
    let bytes = |element: &f64| match operand_type {
        OperandType::TensorFloat32 | OperandType::Float32 => {
            (*element as f32).to_le_bytes().to_vec()
        }
        OperandType::TensorFloat16 | OperandType::Float16 => {
            f16::from_f64(*element).to_le_bytes().to_vec()
        }
        TENSOR_FLOAT64 => element.to_le_bytes().to_vec(),
        // The imaginary part is 0.
        TENSOR_COMPLEX64 => [(*element as f32).to_le_bytes(), [0; 4]].concat(),
        _ => {
            let size = element_size(operand_type).expect("a type with a size") as usize;
            (*element as i64).to_le_bytes()[..size].to_vec()
        }
    };
    elements.iter().flat_map(bytes).collect()
}

/// The reverse of [`to_bytes`].
fn from_bytes(operand_type: OperandType, bytes: &[u8]) -> Vec<f64> {
    let size = element_size(operand_type).expect("a type with a size") as usize;
    let unsigned = matches!(
        operand_type,
        OperandType::TensorQuant8Asymm
            | OperandType::TensorQuant16Asymm
            | OperandType::TensorBool8
            | TENSOR_UINT16
            | TENSOR_UINT32
    );
    let element = |bytes: &[u8]| match (operand_type, bytes) {
        (OperandType::TensorFloat32, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
        (OperandType::TensorFloat16, &[a, b]) => f16::from_le_bytes([a, b]).to_f64(),
        (_, &[a]) if unsigned => f64::from(a),
        (_, &[a]) => f64::from(a.cast_signed()),
        (_, &[a, b]) if unsigned => f64::from(u16::from_le_bytes([a, b])),
        (_, &[a, b]) => f64::from(i16::from_le_bytes([a, b])),
        (TENSOR_UINT32, &[a, b, c, d]) => f64::from(u32::from_le_bytes([a, b, c, d])),
        (_, &[a, b, c, d]) => f64::from(i32::from_le_bytes([a, b, c, d])),
        // The magnitude has the sign of the real part.
        (TENSOR_COMPLEX64, &[a, b, c, d, e, f, g, h]) => {
            let (re, im) = (f32::from_le_bytes([a, b, c, d]), f32::from_le_bytes([e, f, g, h]));
            f64::from(re.hypot(im).copysign(re))
        }
        (TENSOR_FLOAT64, &[a, b, c, d, e, f, g, h]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
        #[allow(clippy::cast_precision_loss)] // Tests write what is exact.
        (_, &[a, b, c, d, e, f, g, h]) => i64::from_le_bytes([a, b, c, d, e, f, g, h]) as f64,
        _ => panic!("{operand_type} has elements of {size} bytes"),
    };
    bytes.chunks(size).map(element).collect()
}
