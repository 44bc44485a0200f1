//! Operators that work element by element.

use super::movement::elements;
use super::operand::Activation;
use super::tensor::Element;
use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::Operator;
use crate::schema::{ActivationFunctionType, BuiltinOperator as B, BuiltinOptionsRef};
use nnhal_hal::{
    ExtraParams, FusedActivation, OperandId, OperandSpec, OperandType, OperationType as O,
};
use nnhal_ops::extension::{ExtensionOperation as E, TENSOR_INT64, element_size};

impl GraphImporter<'_, '_> {
    pub(super) fn elementwise(&mut self, builtin: B, operator: &Operator<'_>) -> Option<Imported> {
        Some(match builtin {
            B::Add | B::StablehloAdd => self.arithmetic(operator, O::Add),
            B::Sub => self.arithmetic(operator, O::Sub),
            B::Mul | B::StablehloMultiply => self.arithmetic(operator, O::Mul),
            B::Div => self.arithmetic(operator, O::Div),
            B::AddN => self.add_n(operator),
            B::SquaredDifference => self.squared_difference(operator),
            B::Square => self.square(operator),
            B::Maximum | B::StablehloMaximum => self.extremum(operator, O::Maximum),
            B::Minimum | B::StablehloMinimum => self.extremum(operator, O::Minimum),
            B::Pow => self.pow(operator),
            B::Equal => self.comparison(operator, O::Equal),
            B::NotEqual => self.comparison(operator, O::NotEqual),
            B::Less => self.comparison(operator, O::Less),
            B::LessEqual => self.comparison(operator, O::LessEqual),
            B::Greater => self.comparison(operator, O::Greater),
            B::GreaterEqual => self.comparison(operator, O::GreaterEqual),
            B::LogicalAnd => self.binary(operator, O::LogicalAnd),
            B::LogicalOr => self.binary(operator, O::LogicalOr),
            B::LogicalNot => self.unary(operator, O::LogicalNot),
            B::Relu => self.clamp(operator, O::Relu),
            B::ReluN1To1 => self.clamp(operator, O::Relu1),
            B::Relu6 => self.clamp(operator, O::Relu6),
            B::Relu0To1 => self.relu_0_to_1(operator),
            B::Tanh => self.fixed_scale(operator, O::Tanh),
            B::Logistic => self.fixed_scale(operator, O::Logistic),
            B::HardSwish => self.unary(operator, O::HardSwish),
            B::Elu => self.elu(operator),
            B::Gelu => self.gelu(operator),
            B::LeakyRelu => self.leaky_relu(operator),
            B::Prelu => self.prelu(operator),
            B::Abs => self.in_float(operator, O::Abs, true),
            B::Neg => self.in_float(operator, O::Neg, true),
            B::Exp => self.in_float(operator, O::Exp, false),
            B::Log => self.in_float(operator, O::Log, false),
            B::Sin => self.in_float(operator, O::Sin, false),
            B::Sqrt => self.in_float(operator, O::Sqrt, false),
            B::Rsqrt => self.in_float(operator, O::Rsqrt, false),
            B::Floor => self.in_float(operator, O::Floor, false),
            B::Ceil => self.ceil(operator),
            B::FloorDiv => self.floor_div(operator),
            B::FloorMod => self.extended_binary(operator, E::FloorMod),
            B::Select => self.select(operator, true),
            B::SelectV2 => self.select(operator, false),
            B::ZerosLike => self.zeros_like(operator),
            _ => return None,
        })
    }

    fn unary(&mut self, operator: &Operator<'_>, operation: O) -> Imported {
        let input = self.input(operator, 0)?;
        self.emit_for(operator, operation, &[input])
    }

    pub(super) fn binary(&mut self, operator: &Operator<'_>, operation: O) -> Imported {
        let inputs = [self.input(operator, 0)?, self.input(operator, 1)?];
        self.emit_for(operator, operation, &inputs)
    }

    pub(super) fn extended_binary(&mut self, operator: &Operator<'_>, operation: E) -> Imported {
        let inputs = [self.input(operator, 0)?, self.input(operator, 1)?];
        self.emit_extended(operator, operation, &inputs)
    }

    pub(super) fn extended_unary(&mut self, operator: &Operator<'_>, operation: E) -> Imported {
        let input = self.input(operator, 0)?;
        self.emit_extended(operator, operation, &[input])
    }

    fn arithmetic(&mut self, operator: &Operator<'_>, operation: O) -> Imported {
        let function = match operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::AddOptions(it)) => it.fused_activation_function()?,
            Some(BuiltinOptionsRef::SubOptions(it)) => it.fused_activation_function()?,
            Some(BuiltinOptionsRef::MulOptions(it)) => it.fused_activation_function()?,
            Some(BuiltinOptionsRef::DivOptions(it)) => it.fused_activation_function()?,
            _ => ActivationFunctionType::None,
        };
        let activation = Activation::of(function)?;
        let (a, b) = (self.input_tensor(operator, 0)?, self.input_tensor(operator, 1)?);
        let output = self.output_tensor(operator, 0)?;
        match self.element(output)? {
            // LiteRT computes with 0 and 1, and keeps whether the result is 0.
            Element::Bool if operation == O::Add => return self.binary(operator, O::LogicalOr),
            Element::Bool if operation == O::Mul => return self.binary(operator, O::LogicalAnd),
            Element::Complex64
                if operation == O::Mul && function == ActivationFunctionType::None =>
            {
                return self.complex_product(operator);
            }
            _ => {}
        }
        let activation_operand = self.activation_operand(activation);
        let is_quantized = self.element(output)?.is_quantized();
        if is_quantized && !self.suits_quantized(operation, a, b, output)? {
            if activation == Activation::Tanh {
                return Err(Reason::new("the range before a fused TANH is not known"));
            }
            let inputs = [self.as_float32(a)?, self.as_float32(b)?, activation_operand];
            let spec = OperandSpec::tensor_float32(self.spec(output)?.dimensions);
            let float = self.builder.operation(operation, inputs, spec);
            return self.emit_float32(float, output);
        }
        let inputs = [self.operand(a)?, self.operand(b)?];
        if self.element(output)?.is_integer()
            && let Activation::Fused(fused) = activation
            && fused != FusedActivation::None
        {
            return self.clamped_integers(operation, inputs, fused, output);
        }
        if self.element(output)?.is_integer() && operation == O::Div {
            // The HAL divides integers downwards, the format towards zero.
            return self.emit_extended(operator, E::Div, &inputs);
        }
        let inputs = [inputs[0], inputs[1], activation_operand];
        self.emit_activated(operator, operation, &inputs, activation)
    }

    /// Arithmetic of integers and the clamp behind it, which the HAL fuses with floats and quantized numbers only.
    fn clamped_integers(
        &mut self,
        operation: O,
        [a, b]: [OperandId; 2],
        activation: FusedActivation,
        output: usize,
    ) -> Imported {
        let (spec, element) = (self.spec(output)?, self.element(output)?);
        let (least, greatest): (i64, _) = match activation {
            FusedActivation::Relu1 => (-1, Some(1)),
            FusedActivation::Relu6 => (0, Some(6)),
            _ => (0, None),
        };
        let none = self.builder.scalar_i32(0);
        let mut result = if operation == O::Div {
            self.builder.extended(E::Div, [a, b], spec.clone())
        } else {
            self.builder.operation(operation, [a, b, none], spec.clone())
        };
        let limits = [(O::Maximum, Some(least)), (O::Minimum, greatest)];
        for (operation, limit) in limits {
            let Some(limit) = limit else { continue };
            let limit = &limit.to_le_bytes()[..element.bytes()];
            let of_limit = OperandSpec::new(spec.operand_type, [1]);
            let limit = self.builder.constant_bytes(of_limit, limit);
            result = self.builder.operation(operation, [result, limit], spec.clone());
        }
        self.set(output, result);
        Ok(())
    }

    /// Whether the HAL does this operation on these quantized tensors as they are.
    fn suits_quantized(&self, operation: O, a: usize, b: usize, output: usize) -> Imported<bool> {
        let element = self.element(output)?;
        let (a, b, output) = (self.spec(a)?, self.spec(b)?, self.spec(output)?);
        Ok(element != Element::Int16
            && a.operand_type == output.operand_type
            && b.operand_type == output.operand_type
            && operation != O::Div
            && (operation != O::Mul || output.scale > a.scale * b.scale))
    }

    fn add_n(&mut self, operator: &Operator<'_>) -> Imported {
        let output = self.output_tensor(operator, 0)?;
        let spec = self.spec(output)?;
        let none = self.builder.scalar_i32(0);
        let mut sum = self.input(operator, 0)?;
        for at in 1..operator.inputs.len() {
            let next = self.input(operator, at)?;
            sum = self.builder.operation(O::Add, [sum, next, none], spec.clone());
        }
        if operator.inputs.len() == 1 {
            return self.emit(O::Cast, &[sum], output);
        }
        self.set(output, sum);
        Ok(())
    }

    fn squared_difference(&mut self, operator: &Operator<'_>) -> Imported {
        let (a, b) = (self.input_tensor(operator, 0)?, self.input_tensor(operator, 1)?);
        let output = self.output_tensor(operator, 0)?;
        let none = self.builder.scalar_i32(0);
        if self.element(output)?.is_quantized() {
            let inputs = [self.as_float32(a)?, self.as_float32(b)?, none];
            let spec = OperandSpec::tensor_float32(self.spec(output)?.dimensions);
            let difference = self.builder.operation(O::Sub, inputs, spec.clone());
            let square = self.builder.operation(O::Mul, [difference, difference, none], spec);
            return self.emit_float32(square, output);
        }
        let inputs = [self.operand(a)?, self.operand(b)?, none];
        let spec = self.spec(output)?;
        let difference = self.builder.operation(O::Sub, inputs, spec);
        self.emit(O::Mul, &[difference, difference, none], output)
    }

    fn square(&mut self, operator: &Operator<'_>) -> Imported {
        let input = self.input(operator, 0)?;
        let none = self.builder.scalar_i32(0);
        self.emit_for(operator, O::Mul, &[input, input, none])
    }

    fn pow(&mut self, operator: &Operator<'_>) -> Imported {
        let output = self.output_tensor(operator, 0)?;
        if !self.element(output)?.is_integer() {
            return self.binary(operator, O::Pow);
        }
        let inputs = [self.input(operator, 0)?, self.input(operator, 1)?];
        self.emit_extended(operator, E::Pow, &inputs)
    }

    fn extremum(&mut self, operator: &Operator<'_>, operation: O) -> Imported {
        let inputs = [self.input(operator, 0)?, self.input(operator, 1)?];
        let output = self.output_tensor(operator, 0)?;
        match self.element(output)? {
            Element::Bool if operation == O::Maximum => self.emit(O::LogicalOr, &inputs, output),
            Element::Bool => self.emit(O::LogicalAnd, &inputs, output),
            Element::Uint64 => self.extremum_of_uint64(operation, inputs, output),
            _ => self.emit(operation, &inputs, output),
        }
    }

    /// With half of the range taken away, integers with a sign have the same order.
    fn extremum_of_uint64(
        &mut self,
        operation: O,
        inputs: [OperandId; 2],
        output: usize,
    ) -> Imported {
        let spec = OperandSpec::new(TENSOR_INT64, [1]);
        let half = self.builder.constant_bytes(spec, &i64::MIN.to_le_bytes());
        let none = self.builder.scalar_i32(0);
        let shifted = |this: &mut Self, operand: OperandId| {
            let spec = OperandSpec::new(TENSOR_INT64, this.builder.spec(operand).dimensions);
            let signed = this.builder.extended(E::Bitcast, [operand], spec.clone());
            this.builder.operation(O::Add, [signed, half, none], spec)
        };
        let [a, b] = inputs.map(|operand| shifted(self, operand));
        let spec = OperandSpec::new(TENSOR_INT64, self.spec(output)?.dimensions);
        let chosen = self.builder.operation(operation, [a, b], spec.clone());
        let back = self.builder.operation(O::Add, [chosen, half, none], spec);
        self.emit(E::Bitcast.operation_type(), &[back], output)
    }

    /// `(a + bi)(c + di) = (ac - bd) + (ad + bc)i`, written one behind the other as its parts.
    fn complex_product(&mut self, operator: &Operator<'_>) -> Imported {
        let output = self.output_tensor(operator, 0)?;
        let dimensions = self.shape(output)?;
        let inputs = [self.input(operator, 0)?, self.input(operator, 1)?];
        let none = self.builder.scalar_i32(0);
        let part = |this: &mut Self, operation: E, operand: OperandId| {
            let spec = OperandSpec::tensor_float32(this.builder.spec(operand).dimensions);
            this.builder.extended(operation, [operand], spec)
        };
        let [a, c] = inputs.map(|operand| part(self, E::Real, operand));
        let [b, d] = inputs.map(|operand| part(self, E::Imag, operand));
        let spec = OperandSpec::tensor_float32(dimensions.clone());
        let build = |this: &mut Self, operation: O, a: OperandId, b: OperandId| {
            this.builder.operation(operation, [a, b, none], spec.clone())
        };
        let (ac, bd) = (build(self, O::Mul, a, c), build(self, O::Mul, b, d));
        let (ad, bc) = (build(self, O::Mul, a, d), build(self, O::Mul, b, c));
        let (real, imaginary) = (build(self, O::Sub, ac, bd), build(self, O::Add, ad, bc));
        let axis = i32::try_from(dimensions.len()).map_err(|_| Reason::new("too many axes"))?;
        let axis = self.builder.scalar_i32(axis);
        let pairs = OperandSpec::tensor_float32([&dimensions[..], &[2]].concat());
        let pairs = self.builder.operation(O::Pack, [axis, real, imaginary], pairs);
        self.emit(E::Bitcast.operation_type(), &[pairs], output)
    }

    fn comparison(&mut self, operator: &Operator<'_>, operation: O) -> Imported {
        let (a, b) = (self.input_tensor(operator, 0)?, self.input_tensor(operator, 1)?);
        let inputs = if self.element(a)? == Element::Int16 {
            [self.as_float32(a)?, self.as_float32(b)?]
        } else {
            [self.operand(a)?, self.operand(b)?]
        };
        self.emit_for(operator, operation, &inputs)
    }

    /// A clamp. The HAL's keeps scale and zero point; where the file changes them, the clamp is
    /// done on floats.
    fn clamp(&mut self, operator: &Operator<'_>, operation: O) -> Imported {
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let (of_input, of_output) = (self.spec(input)?, self.spec(output)?);
        #[allow(clippy::float_cmp)] // Either the file repeats the number or it does not.
        let is_same = of_input.scale == of_output.scale
            && of_input.zero_point == of_output.zero_point
            && self.element(output)? != Element::Int16;
        if is_same {
            return self.unary(operator, operation);
        }
        self.through_float(operator, operation)
    }

    /// Dequantizes, computes, quantizes.
    fn through_float(&mut self, operator: &Operator<'_>, operation: O) -> Imported {
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let float = self.as_float32(input)?;
        let spec = OperandSpec::tensor_float32(self.spec(output)?.dimensions);
        let result = self.of_any_rank(operation, float, spec)?;
        self.emit_float32(result, output)
    }

    fn relu_0_to_1(&mut self, operator: &Operator<'_>) -> Imported {
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let float = self.as_float32(input)?;
        let spec = OperandSpec::tensor_float32(self.spec(output)?.dimensions);
        let above = self.of_any_rank(O::Relu, float, spec.clone())?;
        let one = self.builder.constant(OperandSpec::tensor_float32([1]), &[1.0_f32]);
        let result = self.builder.operation(O::Minimum, [above, one], spec);
        self.emit_float32(result, output)
    }

    /// TANH and LOGISTIC, whose quantized output the HAL gives one scale only.
    fn fixed_scale(&mut self, operator: &Operator<'_>, operation: O) -> Imported {
        let output = self.output_tensor(operator, 0)?;
        let spec = self.spec(output)?;
        let fixed = match (operation, spec.operand_type) {
            (O::Tanh, OperandType::TensorQuant8Asymm) => Some((1.0 / 128.0, 128)),
            (O::Tanh, OperandType::TensorQuant8AsymmSigned) => Some((1.0 / 128.0, 0)),
            (_, OperandType::TensorQuant8Asymm) => Some((1.0 / 256.0, 0)),
            (_, OperandType::TensorQuant8AsymmSigned) => Some((1.0 / 256.0, -128)),
            _ => None,
        };
        match fixed {
            Some(fixed) if fixed != (spec.scale, spec.zero_point) => {
                self.through_float(operator, operation)
            }
            None if spec.operand_type == OperandType::TensorQuant16Symm => {
                self.through_float(operator, operation)
            }
            _ => self.unary(operator, operation),
        }
    }

    fn elu(&mut self, operator: &Operator<'_>) -> Imported {
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let alpha = self.builder.scalar_f32(1.0);
        let float = self.as_float32(input)?;
        let spec = OperandSpec::tensor_float32(self.spec(output)?.dimensions);
        let result = self.builder.operation(O::Elu, [float, alpha], spec);
        self.emit_float32(result, output)
    }

    /// The form with TANH: `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))`. The one with
    /// the error function is our extension's.
    fn gelu(&mut self, operator: &Operator<'_>) -> Imported {
        let approximate = match operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::GeluOptions(options)) => options.approximate()?,
            _ => false,
        };
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let x = self.as_float32(input)?;
        if !approximate {
            let spec = OperandSpec::tensor_float32(self.spec(output)?.dimensions);
            let result = self.builder.extended(E::Gelu, [x], spec);
            return self.emit_float32(result, output);
        }
        let spec = OperandSpec::tensor_float32(self.spec(output)?.dimensions);
        let none = self.builder.scalar_i32(0);
        let constant = |this: &mut Self, value: f32| {
            this.builder.constant(OperandSpec::tensor_float32([1]), &[value])
        };
        let binary = |this: &mut Self, operation, a: OperandId, b: OperandId| {
            this.builder.operation(operation, [a, b, none], spec.clone())
        };
        let (cubic, factor) = (constant(self, 0.044_715), constant(self, 0.797_884_6));
        let (one, half) = (constant(self, 1.0), constant(self, 0.5));
        let square = binary(self, O::Mul, x, x);
        let scaled = binary(self, O::Mul, square, cubic);
        let bracket = binary(self, O::Add, scaled, one);
        let inner = binary(self, O::Mul, bracket, x);
        let argument = binary(self, O::Mul, inner, factor);
        let tanh = self.of_any_rank(O::Tanh, argument, spec.clone())?;
        let sum = binary(self, O::Add, tanh, one);
        let halved = binary(self, O::Mul, x, half);
        let result = binary(self, O::Mul, halved, sum);
        self.emit_float32(result, output)
    }

    fn leaky_relu(&mut self, operator: &Operator<'_>) -> Imported {
        let alpha = match operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::LeakyReluOptions(options)) => options.alpha()?,
            _ => 0.0,
        };
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        if self.element(output)?.is_quantized() {
            let float = self.as_float32(input)?;
            let slope = self.builder.constant(OperandSpec::tensor_float32([1]), &[alpha]);
            let spec = OperandSpec::tensor_float32(self.spec(output)?.dimensions);
            let result = self.builder.operation(O::Prelu, [float, slope], spec);
            return self.emit_float32(result, output);
        }
        let slope = self.float_like(input, alpha)?;
        let inputs = [self.operand(input)?, slope];
        self.emit(O::Prelu, &inputs, output)
    }

    fn prelu(&mut self, operator: &Operator<'_>) -> Imported {
        let (input, slope) = (self.input_tensor(operator, 0)?, self.input_tensor(operator, 1)?);
        let output = self.output_tensor(operator, 0)?;
        let has_float_slope = self.element(slope)?.is_float();
        if self.element(input)? == Element::Float32 && has_float_slope {
            let inputs = [self.operand(input)?, self.as_float32(slope)?];
            return self.emit(O::Prelu, &inputs, output);
        }
        let (of_slope, of_output) = (self.spec(slope)?, self.spec(output)?);
        // The HAL has it for integers of 8 bits.
        let is_plain = of_slope.operand_type == of_output.operand_type
            && self.element(input)? != Element::Int16
            && of_slope.extra_params == ExtraParams::None;
        if is_plain {
            return self.binary(operator, O::Prelu);
        }
        let inputs = [self.as_float32(input)?, self.as_float32(slope)?];
        let spec = OperandSpec::tensor_float32(of_output.dimensions);
        let result = self.builder.operation(O::Prelu, inputs, spec);
        self.emit_float32(result, output)
    }

    /// An operation that the HAL has for floats, and for integers if `integers`.
    fn in_float(&mut self, operator: &Operator<'_>, operation: O, integers: bool) -> Imported {
        let input = self.input_tensor(operator, 0)?;
        match self.element(input)? {
            Element::Float32 | Element::Float16 | Element::Bfloat16 => {
                self.unary(operator, operation)
            }
            element if element.is_integer() && integers => self.unary(operator, operation),
            element if element.is_quantized() => self.through_float(operator, operation),
            other => Err(Reason::new(format!("the HAL has no form for {other:?}"))),
        }
    }

    /// `-floor(-x)`, where the HAL's FLOOR takes it.
    fn ceil(&mut self, operator: &Operator<'_>) -> Imported {
        let output = self.output_tensor(operator, 0)?;
        let spec = self.spec(output)?;
        let input = self.input(operator, 0)?;
        if self.rank(output) > 4 {
            return self.emit_extended(operator, E::Ceil, &[input]);
        }
        let negative = self.builder.operation(O::Neg, [input], spec.clone());
        let floor = self.builder.operation(O::Floor, [negative], spec);
        self.emit(O::Neg, &[floor], output)
    }

    fn floor_div(&mut self, operator: &Operator<'_>) -> Imported {
        let output = self.output_tensor(operator, 0)?;
        let inputs = [self.input(operator, 0)?, self.input(operator, 1)?];
        let none = self.builder.scalar_i32(0);
        let [a, b] = inputs;
        match self.element(output)? {
            Element::Int32 if self.rank(output) <= 4 => self.emit(O::Div, &[a, b, none], output),
            Element::Float32 if self.rank(output) <= 4 => {
                let spec = self.spec(output)?;
                let quotient = self.builder.operation(O::Div, [a, b, none], spec);
                self.emit(O::Floor, &[quotient], output)
            }
            _ => self.emit_extended(operator, E::FloorDiv, &inputs),
        }
    }

    /// A selection; with `by_row`, a vector of conditions chooses along the first axis.
    fn select(&mut self, operator: &Operator<'_>, by_row: bool) -> Imported {
        let shapes = [0, 1, 2]
            .map(|at| self.input_tensor(operator, at).map(|tensor| self.lengths(tensor).to_vec()));
        let [condition, a, b] = shapes;
        let (condition, a, b) = (condition?, a?, b?);
        let output = self.output_tensor(operator, 0)?;
        let inputs = [self.input(operator, 0)?, self.input(operator, 1)?, self.input(operator, 2)?];
        let is_standard = matches!(
            self.element(output)?,
            Element::Float32 | Element::Float16 | Element::Int32 | Element::Uint8 | Element::Int8
        );
        if condition == a && a == b && is_standard {
            return self.emit(O::Select, &inputs, output);
        }
        let [mut condition, mut a, mut b] = inputs;
        // A scalar is a vector of one for the HAL, and chooses for all rows.
        if by_row && self.rank(self.input_tensor(operator, 0)?) == 1 {
            let values = self.builder.spec(a).dimensions.len();
            let rank = if values == 0 { self.rank(output) } else { values };
            let lengths = self.builder.spec(condition).dimensions;
            let mut column = vec![1; rank.max(1)];
            column[0] = lengths.first().copied().unwrap_or(0);
            condition = self.reshape(condition, OperandSpec::tensor_bool8(column))?;
        }
        let target = match self.shape(output) {
            Ok(target) if is_standard => target,
            _ => return self.emit_extended(operator, E::Select, &[condition, a, b]),
        };
        for operand in [&mut condition, &mut a, &mut b] {
            *operand = self.broadcast(*operand, &target)?;
        }
        self.emit(O::Select, &[condition, a, b], output)
    }

    /// Repeats an operand along axes of length 1 until it has the target's shape.
    pub(super) fn broadcast(&mut self, operand: OperandId, target: &[u32]) -> Imported<OperandId> {
        let spec = self.builder.spec(operand);
        if spec.dimensions == target {
            return Ok(operand);
        }
        if spec.dimensions.len() > target.len() || spec.dimensions.contains(&0) {
            return Err(Reason::new("shapes that broadcast must be known"));
        }
        let mut padded = vec![1; target.len() - spec.dimensions.len()];
        padded.extend_from_slice(&spec.dimensions);
        let mut repeats = Vec::with_capacity(target.len());
        for (from, to) in padded.iter().zip(target) {
            match (from, to) {
                (1, to) => repeats
                    .push(i32::try_from(*to).map_err(|_| Reason::new("a length exceeds 31 bits"))?),
                (from, to) if from == to => repeats.push(1),
                _ => return Err(Reason::new("shapes do not broadcast")),
            }
        }
        let ranked = OperandSpec { dimensions: padded, ..spec.clone() };
        let operand = self.reshape(operand, ranked)?;
        let repeats = self.integer_vector(&repeats);
        let tiled = OperandSpec { dimensions: target.to_vec(), ..spec };
        Ok(self.builder.operation(O::Tile, [operand, repeats], tiled))
    }

    fn zeros_like(&mut self, operator: &Operator<'_>) -> Imported {
        let output = self.output_tensor(operator, 0)?;
        let shape = self.shape(output)?;
        let spec = self.spec_with(output, shape)?;
        if spec.operand_type.quantized_range().is_some() {
            return Err(Reason::new("the stored zero of a quantized tensor is not its zero point"));
        }
        let element = element_size(spec.operand_type).unwrap_or(4) as usize;
        let size = (elements(&spec.dimensions)? as usize).saturating_mul(element);
        self.file.allow(size)?;
        let operand = self.builder.constant_bytes(spec, &vec![0; size]);
        self.set(output, operand);
        Ok(())
    }
}
