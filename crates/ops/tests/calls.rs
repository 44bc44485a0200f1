//! Whatever arguments fit an operation's signature, asking and computing never panics, and what is
//! computed has the shape that was foretold.

use nnhal_hal::{
    ChannelQuant, DataLocation, ExtraParams, Operand, OperandLifeTime, OperandType, OperationType,
};
use nnhal_ops::{
    AnyOperation, ArgumentSource, Call, Fault, Form, Parameter, ParameterType, Presence, Row,
    Shape, Signature, Value, operations,
};
use proptest::prelude::*;

/// Elements that an argument has at most if it has a value.
const MOST_ELEMENTS: u64 = 4096;
/// Elements that a result may have; larger ones are only asked for their shape.
const MOST_RESULTS: u64 = 1 << 16;

/// Draws numbers from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Below `count`, which is above 0.
    fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % count as u64).unwrap_or(0)
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())].clone()
    }

    /// A length: small, sometimes 0, rarely so large that products overflow.
    fn length(&mut self) -> u32 {
        if self.one_in(30) {
            return self.pick(&[1 << 16, 1 << 31, u32::MAX]);
        }
        self.pick(&[0, 1, 1, 1, 2, 2, 3, 4, 5])
    }

    /// An integer: mostly of those that mean something as an axis, a size or a flag.
    fn integer(&mut self) -> i32 {
        if self.one_in(12) {
            return self.pick(&[i32::MIN, i32::MAX, 1 << 16, 1 << 30, 255, 256, -128, -4]);
        }
        self.pick(&[-2, -1, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4])
    }

    fn real(&mut self) -> f32 {
        self.pick(&[0.0, 1.0, -1.0, 0.5, 2.0, -3.5, 1e30, f32::INFINITY, f32::NAN])
    }
}

/// An argument that fits a place of a signature.
struct Argument {
    operand: Operand,
    shape: Shape,
    value: Option<Vec<u8>>,
    is_omitted: bool,
}

impl Argument {
    fn source(&self) -> ArgumentSource<'_> {
        let value = match &self.value {
            _ if self.is_omitted => Value::Omitted,
            Some(bytes) => Value::Known(bytes),
            None => Value::NotKnown,
        };
        ArgumentSource { operand: &self.operand, shape: self.shape.clone(), value }
    }
}

/// What the arguments of a call have in common, so that many go together.
struct Habits {
    lengths: Vec<u32>,
    scale: f32,
    zero_point: i32,
    is_all_known: bool,
}

fn dimensions(random: &mut Random, parameter: &Parameter, habits: &Habits) -> Vec<u32> {
    let rank = u32::try_from(habits.lengths.len()).unwrap_or(1);
    if parameter.parameter_type == ParameterType::Fixed(OperandType::TensorInt32) {
        // Numbers for each axis, paddings, or anything.
        return match random.below(5) {
            0 | 1 => vec![rank],
            2 => vec![rank, 2],
            3 => vec![2],
            _ => vec![random.length(), random.length()],
        };
    }
    let mut lengths = habits.lengths.clone();
    if random.one_in(3) {
        let axis = random.below(lengths.len());
        lengths[axis] = random.length();
    }
    if random.one_in(8) {
        lengths = (0..=random.below(5)).map(|_| random.length()).collect();
    }
    lengths
}

fn element(random: &mut Random, operand_type: OperandType) -> Vec<u8> {
    match operand_type {
        OperandType::TensorFloat32 | OperandType::Float32 => random.real().to_le_bytes().to_vec(),
        OperandType::TensorInt32 | OperandType::Int32 | OperandType::Uint32 => {
            random.integer().to_le_bytes().to_vec()
        }
        OperandType::Bool => vec![u8::from(random.one_in(2))],
        _ => {
            let size = operand_type.element_size().unwrap_or(0) as usize;
            random.next().to_le_bytes()[..size].to_vec()
        }
    }
}

fn argument(random: &mut Random, parameter: &Parameter, row: &Row, habits: &Habits) -> Argument {
    let operand_type = parameter.type_in(row).unwrap_or(OperandType::TensorFloat32);
    let is_scalar = operand_type.is_scalar();
    let dimensions = if is_scalar { vec![] } else { dimensions(random, parameter, habits) };
    let range = operand_type.quantized_range();
    let is_by_channel = operand_type == OperandType::TensorQuant8SymmPerChannel;
    let is_symmetric = is_by_channel
        || matches!(operand_type, OperandType::TensorQuant8Symm | OperandType::TensorQuant16Symm);
    let usual = range.is_some_and(|(least, most)| (least..=most).contains(&habits.zero_point));
    let operand = Operand {
        operand_type,
        number_of_consumers: 0,
        scale: match range {
            Some(_) if !is_by_channel => {
                if random.one_in(8) {
                    random.pick(&[1.0, 1e-30, 1e30])
                } else {
                    habits.scale
                }
            }
            _ => 0.0,
        },
        zero_point: if usual && !is_symmetric { habits.zero_point } else { 0 },
        lifetime: OperandLifeTime::TemporaryVariable,
        location: DataLocation::default(),
        extra_params: match dimensions.first() {
            Some(channels) if is_by_channel => ExtraParams::ChannelQuant(ChannelQuant {
                scales: vec![0.5; (*channels).min(100) as usize].into(),
                channel_dim: 0,
            }),
            _ => ExtraParams::None,
        },
        dimensions: dimensions.clone(),
    };
    let known = Shape::known(dimensions.iter().copied());
    let count = if dimensions.contains(&0) { Some(0) } else { known.element_count() };
    let has_value = habits.is_all_known || !random.one_in(3);
    let value = count
        .filter(|count| *count <= MOST_ELEMENTS && has_value)
        .map(|count| (0..count).flat_map(|_| element(random, operand_type)).collect());
    let shape = if value.is_some() { known } else { Shape::of_model(&dimensions) };
    let is_omitted = parameter.may_be_omitted() && random.one_in(3);
    Argument { operand, shape: if is_scalar { Shape::known([]) } else { shape }, value, is_omitted }
}

/// Parameters as often as they are given.
fn given(random: &mut Random, parameters: &'static [Parameter]) -> Vec<&'static Parameter> {
    let mut given = Vec::new();
    for parameter in parameters {
        match parameter.presence {
            Presence::Repeated(least) => {
                given.extend(std::iter::repeat_n(parameter, least + random.below(3)));
            }
            Presence::Trailing(_) | Presence::TrailingOmittable(_) if random.one_in(4) => break,
            _ => given.push(parameter),
        }
    }
    given
}

fn arguments(random: &mut Random, form: &Form, row: &Row) -> (Vec<Argument>, Vec<Argument>) {
    let rank = random.pick(&[1, 2, 3, 4, 4, 4]);
    let habits = Habits {
        lengths: (0..rank).map(|_| random.length()).collect(),
        scale: random.pick(&[0.5, 1.0, 0.25]),
        zero_point: random.pick(&[0, 0, 1, 127, 128, -128]),
        is_all_known: !random.one_in(4),
    };
    let mut made = |parameters| {
        let parameters = given(random, parameters).into_iter();
        parameters.map(|parameter| argument(random, parameter, row, &habits)).collect::<Vec<_>>()
    };
    let (inputs, mut outputs) = (made(form.inputs), made(form.outputs));
    for output in &mut outputs {
        let is_scalar = output.operand.operand_type.is_scalar();
        (output.shape, output.value, output.is_omitted) =
            (if is_scalar { Shape::known([]) } else { Shape::UNKNOWN }, None, false);
    }
    (inputs, outputs)
}

/// Everything that is asked of an operation, in the order in which it is asked.
fn ask(signature: &Signature, call: &Call<'_>) -> Result<(), Fault> {
    signature.since(call)?;
    operations::since(call);
    operations::validate(call)?;
    let operation = AnyOperation::decode(call)?;
    let shapes = operation.output_shapes(call)?;
    assert_eq!(shapes.len(), call.outputs().len());
    let is_known = call.inputs().iter().all(|input| input.value != Value::NotKnown);
    let is_large = |shape: &Shape| shape.element_count().is_some_and(|count| count > MOST_RESULTS);
    if !is_known || shapes.iter().any(is_large) {
        return Ok(());
    }
    let outputs = operation.reference(call)?;
    assert_eq!(outputs.len(), shapes.len());
    for (shape, output) in shapes.iter().zip(&outputs) {
        let computed = Shape::known(output.dimensions.iter().copied());
        assert_eq!(shape.merge(&computed), Some(computed), "foretold {shape}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn gen_8_arguments_that_fit_a_signature_do_no_harm(seed: u64) {
        for operation in OperationType::FUNDAMENTAL.iter().copied() {
            // Control flow is not computed by an operation of its own.
            if matches!(operation, OperationType::If | OperationType::While) {
                continue;
            }
            let Some(signature) = Signature::of(operation) else { continue };
            let mut random = Random(seed);
            let (form, row) = (random.pick(signature.forms), random.pick(signature.rows));
            let (inputs, outputs) = arguments(&mut random, &form, &row);
            let source = Argument::source;
            let call = Call::new(operation, inputs.iter().map(source), outputs.iter().map(source));
            let shown = || inputs.iter().map(|it| it.shape.to_string()).collect::<Vec<_>>();
            let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                ask(signature, &call)
            }));
            prop_assert!(answer.is_ok(), "{} on {:?}", operation, shown());
        }
    }
}

/// Signatures name their inputs: what is called weights or a filter is weights, but for factors of a normalization
/// and of hashes.
#[test]
fn positions_of_weights_are_those_that_signatures_name_so() {
    let is_weights = |name: &str| {
        (name.ends_with("weights") || name == "filter") && !name.ends_with("norm weights")
    };
    let mut with_weights = 0;
    for operation in OperationType::FUNDAMENTAL.iter().copied() {
        let Some(signature) = Signature::of(operation) else { continue };
        let longest = signature.forms.iter().max_by_key(|form| form.inputs.len()).unwrap();
        let mut named: Vec<usize> =
            (0..longest.inputs.len()).filter(|at| is_weights(longest.inputs[*at].name)).collect();
        if operation == OperationType::LshProjection {
            named.clear();
        }
        // Until arguments come that mean something.
        let decoded = (0..30_000).find_map(|seed| {
            let mut random = Random(seed);
            let (form, row) = (random.pick(signature.forms), random.pick(signature.rows));
            let (inputs, outputs) = arguments(&mut random, &form, &row);
            let source = Argument::source;
            let call = Call::new(operation, inputs.iter().map(source), outputs.iter().map(source));
            AnyOperation::decode(&call).ok()
        });
        match decoded {
            Some(decoded) => {
                assert_eq!(decoded.weights().collect::<Vec<_>>(), named, "{operation}");
                with_weights += usize::from(!named.is_empty());
            }
            None => assert!(named.is_empty(), "{operation} was never decoded"),
        }
    }
    assert_eq!(with_weights, 14);
}

#[test]
fn many_calls_are_accepted() {
    // The law above would hold if everything was refused.
    let mut accepted = 0;
    for seed in 0..200 {
        let signature = Signature::of(OperationType::Concatenation).expect("an operation");
        let mut random = Random(seed);
        let (form, row) = (random.pick(signature.forms), random.pick(signature.rows));
        let (inputs, outputs) = arguments(&mut random, &form, &row);
        let source = Argument::source;
        let call = Call::new(
            OperationType::Concatenation,
            inputs.iter().map(source),
            outputs.iter().map(source),
        );
        accepted += u32::from(ask(signature, &call).is_ok());
    }
    assert!(accepted > 20, "{accepted} of 200");
}
