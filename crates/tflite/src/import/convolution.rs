//! CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, FULLY_CONNECTED, BATCH_MATMUL.

use super::movement::{MOST_RANK, elements};
use super::operand::{Activation, padding_scheme};
use super::tensor::Element;
use super::{BYTES_OF_A_PART, GraphImporter, Imported};
use crate::error::Reason;
use crate::file::Operator;
use crate::schema::{
    ActivationFunctionType, BuiltinOperator, BuiltinOptionsRef, FullyConnectedOptionsWeightsFormat,
    Padding,
};
use nnhal_hal::{ExtraParams, OperandId, OperandSpec, OperandType, OperationType};
use nnhal_ops::extension::ExtensionOperation as E;

/// The options that all sliding windows have.
struct Window {
    padding: Padding,
    stride_width: i32,
    stride_height: i32,
    dilation_width: i32,
    dilation_height: i32,
    activation: Activation,
}

impl Window {
    fn is_dilated(&self) -> bool {
        (self.dilation_width, self.dilation_height) != (1, 1)
    }
}

/// Up to here floats hold every integer.
const EXACT_FLOATS: u32 = 1 << 24;

/// Products of integers whose sum is taken.
const MOST_PRODUCTS: u32 = 1024;

impl GraphImporter<'_, '_> {
    pub(super) fn convolution(
        &mut self,
        builtin: BuiltinOperator,
        operator: &Operator<'_>,
    ) -> Option<Imported> {
        Some(match builtin {
            BuiltinOperator::Conv2d => self.conv_2d(operator),
            BuiltinOperator::DepthwiseConv2d => self.depthwise_conv_2d(operator),
            BuiltinOperator::TransposeConv => self.transpose_conv(operator),
            BuiltinOperator::FullyConnected => self.fully_connected(operator),
            BuiltinOperator::BatchMatmul => self.batch_matmul(operator),
            _ => return None,
        })
    }

    fn conv_2d(&mut self, operator: &Operator<'_>) -> Imported {
        let options = options!(operator, Conv2DOptions);
        let window = Window {
            padding: options.padding()?,
            stride_width: options.stride_w()?,
            stride_height: options.stride_h()?,
            dilation_width: options.dilation_w_factor()?,
            dilation_height: options.dilation_h_factor()?,
            activation: Activation::of(options.fused_activation_function()?)?,
        };
        let input = self.input_tensor(operator, 0)?;
        let filter = self.input_tensor(operator, 1)?;
        let channels = self.shape(filter)?;
        let channels = *channels.first().unwrap_or(&0);
        let is_grouped = match (self.lengths(input).get(3), self.lengths(filter).get(3)) {
            (Some(of_input), Some(of_filter)) => of_input != of_filter && *of_filter != 0,
            _ => false,
        };
        // XNNPACK has no kernel for these, nor for TANH: LiteRT's own rounds as it did before there were others.
        let is_by_magnitude = !is_grouped
            && self.is_dynamic(input, filter, 0)?
            && self.has_one_scale(filter)
            && (self.element(filter)? == Element::Int4 || window.activation == Activation::Tanh);
        if !is_by_magnitude && self.is_dynamic(input, filter, 0)? {
            let mut inputs = self.weighted_dynamically(operator, channels)?;
            let numbers = [
                padding_scheme(window.padding),
                window.stride_height,
                window.stride_width,
                window.dilation_height,
                window.dilation_width,
            ];
            inputs.extend(numbers.map(|number| self.builder.scalar_i32(number)));
            inputs.push(self.activation_operand(window.activation));
            let operation = E::DynamicConv2d.operation_type();
            return self.emit_activated(operator, operation, &inputs, window.activation);
        }
        let mut inputs = match is_by_magnitude {
            true => self.weighted_by_magnitude(operator, None, channels)?,
            false => self.weighted(operator, channels)?,
        };
        if is_grouped && window.is_dilated() {
            return self.dilated_groups(operator, [inputs[0], inputs[1], inputs[2]], &window);
        }
        inputs.push(self.builder.scalar_i32(padding_scheme(window.padding)));
        inputs.push(self.builder.scalar_i32(window.stride_width));
        inputs.push(self.builder.scalar_i32(window.stride_height));
        if is_grouped {
            let groups = self.lengths(input)[3] / self.lengths(filter)[3];
            let groups = i32::try_from(groups).map_err(|_| Reason::new("too many groups"))?;
            inputs.push(self.builder.scalar_i32(groups));
            inputs.push(self.activation_operand(window.activation));
            inputs.push(self.builder.scalar_bool(false));
            let operation = OperationType::GroupedConv2d;
            return self.emit_activated(operator, operation, &inputs, window.activation);
        }
        inputs.push(self.activation_operand(window.activation));
        self.push_dilation(&mut inputs, &window);
        self.emit_activated(operator, OperationType::Conv2d, &inputs, window.activation)
    }

    /// A convolution with groups and dilation, which the HAL has not together: one of each group's channels.
    fn dilated_groups(
        &mut self,
        operator: &Operator<'_>,
        [input, filter, bias]: [OperandId; 3],
        window: &Window,
    ) -> Imported {
        let output = self.output_tensor(operator, 0)?;
        let whole = self.spec(output)?;
        let specs = [input, filter].map(|operand| self.builder.spec(operand));
        let [of_input, of_filter] = &specs;
        let (Some(depth), [channels, .., of_group]) =
            (of_input.dimensions.get(3).copied(), &of_filter.dimensions[..])
        else {
            return Err(Reason::new("its image or its filter has not four axes"));
        };
        let (channels, of_group) = (*channels, (*of_group).max(1));
        let groups = depth / of_group;
        if depth % of_group != 0 || groups == 0 || channels % groups != 0 {
            return Err(Reason::new(format!(
                "{channels} filters over {of_group} channels are no groups of an image with {depth}"
            )));
        }
        self.file.allow((groups as usize).saturating_mul(BYTES_OF_A_PART))?;
        let images = self.equal_parts(input, 3, groups)?;
        let filters = self.rows(filter, self.input_tensor(operator, 1)?, groups)?;
        let tensor_of_bias = operator.inputs.get(2).copied().flatten();
        let biases = match tensor_of_bias {
            Some(tensor) => self.rows(bias, tensor, groups)?,
            None => self.split_constant(bias, None, groups)?,
        };
        let computed = self.computed_as(input, &whole);
        let mut part = computed.clone();
        if let Some(last) = part.dimensions.last_mut() {
            *last = channels / groups;
        }
        let numbers = [padding_scheme(window.padding), window.stride_width, window.stride_height];
        let mut parts = Vec::with_capacity(groups as usize + 1);
        for ((image, filter), bias) in images.into_iter().zip(filters).zip(biases) {
            let mut inputs = vec![image, filter, bias];
            inputs.extend(numbers.map(|number| self.builder.scalar_i32(number)));
            inputs.push(self.activation_operand(window.activation));
            self.push_dilation(&mut inputs, window);
            parts.push(self.builder.operation(OperationType::Conv2d, &inputs, part.clone()));
        }
        parts.push(self.builder.scalar_i32(3));
        let result = self.builder.operation(OperationType::Concatenation, &parts, computed.clone());
        if window.activation == Activation::Tanh {
            if !self.element(output)?.is_float() {
                return Err(Reason::new("the range before a fused TANH is not known"));
            }
            return self.emit(OperationType::Tanh, &[result], output);
        }
        if computed != whole {
            return self.emit_float32(result, output);
        }
        self.set(output, result);
        Ok(())
    }

    /// Equal parts of an operand along an axis.
    fn equal_parts(
        &mut self,
        operand: OperandId,
        axis: usize,
        count: u32,
    ) -> Imported<Vec<OperandId>> {
        let mut spec = self.builder.spec(operand);
        spec.dimensions.get_mut(axis).into_iter().for_each(|length| *length /= count);
        let numbers = [i32::try_from(axis), i32::try_from(count)];
        let [axis, count_scalar] = numbers.map(|it| it.map(|it| self.builder.scalar_i32(it)));
        let too_many = |_| Reason::new("too many groups");
        let inputs = [operand, axis.map_err(too_many)?, count_scalar.map_err(too_many)?];
        let parts: Vec<_> = (0..count).map(|_| self.builder.temporary(spec.clone())).collect();
        self.builder.operation_into(OperationType::Split, inputs, &parts);
        Ok(parts)
    }

    /// Equal parts of a tensor's operand along its first axis; constants stay constants.
    fn rows(&mut self, operand: OperandId, tensor: usize, count: u32) -> Imported<Vec<OperandId>> {
        if self.is_constant(tensor) && self.builder.is_constant(operand) {
            return self.split_constant(operand, Some(tensor), count);
        }
        self.equal_parts(operand, 0, count)
    }

    /// The same of a constant, which is this tensor's unless the builder holds it.
    fn split_constant(
        &mut self,
        operand: OperandId,
        tensor: Option<usize>,
        count: u32,
    ) -> Imported<Vec<OperandId>> {
        let mut spec = self.builder.spec(operand);
        let bytes = match (self.builder.constant_value(operand.index()), tensor) {
            (Some(bytes), _) => bytes.to_vec(),
            (None, Some(tensor)) => self.constant_bytes(tensor)?.into_owned(),
            (None, None) => return Err(Reason::new("its bias is not known")),
        };
        self.file.allow(bytes.len())?;
        let scales = match &spec.extra_params {
            ExtraParams::ChannelQuant(quant) => quant.scales.to_vec(),
            _ => Vec::new(),
        };
        spec.dimensions.first_mut().into_iter().for_each(|length| *length /= count);
        let (size, of_scales) = (bytes.len() / count as usize, scales.len() / count as usize);
        let parts = (0..count as usize).map(|part| {
            let mut spec = spec.clone();
            if let ExtraParams::ChannelQuant(quant) = &mut spec.extra_params {
                quant.scales = scales[part * of_scales..(part + 1) * of_scales].into();
            }
            self.builder.constant_bytes(spec, &bytes[part * size..(part + 1) * size])
        });
        Ok(parts.collect())
    }

    fn depthwise_conv_2d(&mut self, operator: &Operator<'_>) -> Imported {
        let options = options!(operator, DepthwiseConv2DOptions);
        let window = Window {
            padding: options.padding()?,
            stride_width: options.stride_w()?,
            stride_height: options.stride_h()?,
            dilation_width: options.dilation_w_factor()?,
            dilation_height: options.dilation_h_factor()?,
            activation: Activation::of(options.fused_activation_function()?)?,
        };
        let input = self.input_tensor(operator, 0)?;
        let filter = self.input_tensor(operator, 1)?;
        let channels = *self.shape(filter)?.get(3).unwrap_or(&0);
        // The file's own multiplier is not always filled in; the shapes have it too.
        let multiplier = match self.lengths(input).get(3) {
            Some(depth) if *depth != 0 && channels % depth == 0 => channels / depth,
            _ => u32::try_from(options.depth_multiplier()?).unwrap_or(0),
        };
        let multiplier = i32::try_from(multiplier).map_err(|_| Reason::new("too many channels"))?;
        let mut inputs = self.weighted(operator, channels)?;
        inputs.push(self.builder.scalar_i32(padding_scheme(window.padding)));
        inputs.push(self.builder.scalar_i32(window.stride_width));
        inputs.push(self.builder.scalar_i32(window.stride_height));
        inputs.push(self.builder.scalar_i32(multiplier));
        inputs.push(self.activation_operand(window.activation));
        self.push_dilation(&mut inputs, &window);
        self.emit_activated(operator, OperationType::DepthwiseConv2d, &inputs, window.activation)
    }

    /// The layout flag and the dilations, where they are not the default.
    fn push_dilation(&mut self, inputs: &mut Vec<OperandId>, window: &Window) {
        if window.is_dilated() {
            inputs.push(self.builder.scalar_bool(false));
            inputs.push(self.builder.scalar_i32(window.dilation_width));
            inputs.push(self.builder.scalar_i32(window.dilation_height));
        }
    }

    /// Input, filter and bias of a convolution with this many output channels.
    fn weighted(&mut self, operator: &Operator<'_>, channels: u32) -> Imported<Vec<OperandId>> {
        let input = self.input_tensor(operator, 0)?;
        let filter = self.input_tensor(operator, 1)?;
        let bias = operator.inputs.get(2).copied().flatten();
        self.weighted_by(input, filter, bias, channels)
    }

    /// Input, weights and bias of a layer that rounds its input while it runs.
    fn weighted_dynamically(
        &mut self,
        operator: &Operator<'_>,
        units: u32,
    ) -> Imported<Vec<OperandId>> {
        let [input, weights] = [0, 1].map(|index| self.input_tensor(operator, index));
        let (input, weights) = (self.operand(input?)?, self.operand(weights?)?);
        let bias = operator.inputs.get(2).copied().flatten();
        Ok(vec![input, weights, self.bias(input, weights, bias, units)?])
    }

    /// Input, weights and bias of a layer of floats whose input is rounded to 8 bits by its greatest magnitude, each part of the
    /// first axis by itself, or each of these rows.
    fn weighted_by_magnitude(
        &mut self,
        operator: &Operator<'_>,
        rows: Option<OperandSpec>,
        units: u32,
    ) -> Imported<Vec<OperandId>> {
        let [input, weights] = [0, 1].map(|index| self.input_tensor(operator, index));
        let mut input = self.operand(input?)?;
        if let Some(rows) = rows {
            input = self.reshape(input, rows)?;
        }
        let inputs = [input, self.builder.scalar_bool(true)];
        let spec = self.builder.spec(input);
        let input = self.builder.extended(E::DynamicRound, inputs, spec);
        let weights = self.as_float32(weights?)?;
        let bias = operator.inputs.get(2).copied().flatten();
        Ok(vec![input, weights, self.bias(input, weights, bias, units)?])
    }

    /// As operands: input, filter and bias. Beside weights of 8 bits floats are rounded as TensorFlow Lite rounds them,
    /// and the weights dequantized: that gives its result without its sums. Activations of 16 bits are computed as floats, which hold the products
    /// with weights of 8 bits exactly.
    fn weighted_by(
        &mut self,
        input: usize,
        filter: usize,
        bias: Option<usize>,
        channels: u32,
    ) -> Imported<Vec<OperandId>> {
        let of_input = self.element(input)?;
        // Weights with scales by channel that are computed are floats too.
        let is_wide = of_input == Element::Int16
            || of_input.is_quantized() && self.is_stored_by_channel(filter);
        let mut input_operand =
            if is_wide { self.as_float32(input)? } else { self.operand(input)? };
        let axis = self.tensor(filter).quantization.as_ref().map_or(0, |it| it.dimension);
        if self.is_dynamic(input, filter, axis)? {
            let spec = self.builder.spec(input_operand);
            let operation = E::DynamicRound.operation_type();
            input_operand = self.builder.operation(operation, [input_operand], spec);
        }
        let filter_operand = self.weights(input, filter)?;
        let bias_operand = match bias {
            Some(bias) if is_wide => self.wide_bias(input, filter, bias, channels)?,
            bias => self.bias(input_operand, filter_operand, bias, channels)?,
        };
        Ok(vec![input_operand, filter_operand, bias_operand])
    }

    /// Weights in the type that goes with the input: dequantized beside floats and what is computed as floats.
    fn weights(&mut self, input: usize, filter: usize) -> Imported<OperandId> {
        if self.is_stored_by_channel(filter) {
            return self.as_float32(filter);
        }
        match (self.element(input)?, self.element(filter)?) {
            (Element::Float32, Element::Float32)
            | (Element::Float16, Element::Float16)
            | (Element::Uint8, Element::Uint8) => self.operand(filter),
            (Element::Int8, of_filter) if of_filter.becomes_int8() => self.operand(filter),
            (Element::Float32, Element::Float16 | Element::Uint8) => self.as_float32(filter),
            (Element::Float32 | Element::Int16, of_filter) if of_filter.becomes_int8() => {
                self.as_float32(filter)
            }
            // Products of two activations, of which converters make layers too.
            (Element::Int16, Element::Int16) => self.as_float32(filter),
            (of_input, of_filter) => Err(Reason::new(format!(
                "the HAL has no {of_filter:?} weights beside {of_input:?} activations"
            ))),
        }
    }

    /// A bias of integers in units of the input's scale times the weights', as floats.
    pub(super) fn wide_bias(
        &mut self,
        input: usize,
        filter: usize,
        bias: usize,
        channels: u32,
    ) -> Imported<OperandId> {
        let stored: Vec<i64> = match self.element(bias)? {
            Element::Int64 => {
                let bytes = self.constant_bytes(bias)?;
                bytes.as_chunks().0.iter().map(|it| i64::from_le_bytes(*it)).collect()
            }
            Element::Int32 => {
                let bytes = self.constant_bytes(bias)?;
                bytes.as_chunks().0.iter().map(|it| i32::from_le_bytes(*it).into()).collect()
            }
            found => {
                let what = format!("the bias is {found:?}, expected Int64 or Int32 beside Int16");
                return Err(Reason::new(what));
            }
        };
        self.file.allow(stored.len().saturating_mul(16))?;
        let scales = |tensor: usize| -> &[f32] {
            self.tensor(tensor).quantization.as_ref().map_or(&[], |it| &it.scales)
        };
        let ([of_input], of_filter) = (scales(input), scales(filter)) else {
            return Err(Reason::new("its input has no scale, or several"));
        };
        if u32::try_from(stored.len()) != Ok(channels)
            || ![1, stored.len()].contains(&of_filter.len())
        {
            let (found, scales) = (stored.len(), of_filter.len());
            return Err(Reason::new(format!(
                "{found} elements of the bias and {scales} scales of the weights, for {channels} channels"
            )));
        }
        // Rounded once.
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
        let real = |(stored, scale): (&i64, &f32)| {
            (*stored as f64 * f64::from(*of_input) * f64::from(*scale)) as f32
        };
        let reals: Vec<f32> = stored.iter().zip(of_filter.iter().cycle()).map(real).collect();
        Ok(self.builder.constant(OperandSpec::tensor_float32([channels]), &reals))
    }

    /// The bias in the type and scale that the HAL asks for; zeros where there is none.
    pub(super) fn bias(
        &mut self,
        input: OperandId,
        filter: OperandId,
        bias: Option<usize>,
        channels: u32,
    ) -> Imported<OperandId> {
        let (input, filter) = (self.builder.spec(input), self.builder.spec(filter));
        let spec = match input.operand_type {
            OperandType::TensorFloat32 | OperandType::TensorFloat16 => {
                OperandSpec::new(input.operand_type, [channels])
            }
            _ if matches!(filter.extra_params, ExtraParams::ChannelQuant(_)) => {
                OperandSpec::tensor_int32([channels])
            }
            _ => OperandSpec::tensor_int32([channels]).quantized(input.scale * filter.scale, 0),
        };
        let Some(bias) = bias else {
            let element = spec.operand_type.element_size().unwrap_or(4) as usize;
            let count = usize::try_from(channels).unwrap_or(0);
            self.file.allow(element.saturating_mul(count))?;
            return Ok(self.builder.constant_bytes(spec, &vec![0; element * count]));
        };
        match (spec.operand_type, self.element(bias)?) {
            (OperandType::TensorFloat32, Element::Float32)
            | (OperandType::TensorFloat16, Element::Float16) => self.operand(bias),
            (OperandType::TensorFloat32, Element::Float16) => self.as_float32(bias),
            (OperandType::TensorInt32, Element::Int32) if self.is_constant(bias) => {
                self.constant_with(bias, OperandSpec { dimensions: vec![channels], ..spec })
            }
            (wanted, found) => {
                Err(Reason::new(format!("the bias is {found:?}, and the HAL wants {wanted}")))
            }
        }
    }

    fn transpose_conv(&mut self, operator: &Operator<'_>) -> Imported {
        let options = options!(operator, TransposeConvOptions);
        let input = self.input_tensor(operator, 2)?;
        let filter = self.input_tensor(operator, 1)?;
        let channels = *self.shape(filter)?.first().unwrap_or(&0);
        let activation = Activation::of(options.fused_activation_function()?)?;
        let bias = operator.inputs.get(3).copied().flatten();
        let mut inputs = self.weighted_by(input, filter, bias, channels)?;
        inputs.extend([
            self.input(operator, 0)?,
            self.builder.scalar_i32(padding_scheme(options.padding()?)),
            self.builder.scalar_i32(options.stride_w()?),
            self.builder.scalar_i32(options.stride_h()?),
            self.activation_operand(activation),
            self.builder.scalar_bool(false),
        ]);
        self.emit_activated(operator, OperationType::TransposeConv2d, &inputs, activation)
    }

    fn fully_connected(&mut self, operator: &Operator<'_>) -> Imported {
        let (mut activation, mut is_asymmetric) = (ActivationFunctionType::None, false);
        if let Some(BuiltinOptionsRef::FullyConnectedOptions(options)) =
            operator.table.builtin_options()?
        {
            if options.weights_format()? != FullyConnectedOptionsWeightsFormat::Default {
                return Err(Reason::new("its weights are shuffled"));
            }
            activation = options.fused_activation_function()?;
            is_asymmetric = options.asymmetric_quantize_inputs()?;
        }
        let activation = Activation::of(activation)?;
        let filter = self.input_tensor(operator, 1)?;
        let [units, width] = *self.shape(filter)? else {
            return Err(Reason::new("its weights are not a matrix"));
        };
        let output = self.output_tensor(operator, 0)?;
        if activation == Activation::Tanh && !self.element(output)?.is_float() {
            return Err(Reason::new("the range before a fused TANH is not known"));
        }
        let by_block = self.weighted_by_block(operator, filter, [units, width])?;
        let is_dynamic =
            by_block.is_none() && self.is_dynamic(self.input_tensor(operator, 0)?, filter, 0)?;
        let is_by_magnitude =
            is_dynamic && !is_asymmetric && self.is_left_to_magnitudes(filter, [units, width])?;
        let is_dynamic = is_dynamic && !is_by_magnitude;
        let mut inputs = match by_block {
            Some(weighted) => weighted,
            None if is_by_magnitude => {
                let shape = self.shape(self.input_tensor(operator, 0)?);
                let count = shape.map_or(Ok(0), |it| elements(&it).map(|it| it / width.max(1)))?;
                let rows = OperandSpec::tensor_float32([count, width]);
                self.weighted_by_magnitude(operator, Some(rows), units)?
            }
            None if is_dynamic => self.weighted_dynamically(operator, units)?,
            None => self.weighted(operator, units)?,
        };
        let weights = self.builder.spec(inputs[1]);
        if !is_dynamic && matches!(weights.extra_params, ExtraParams::ChannelQuant(_)) {
            return self.fully_connected_by_channel(operator, &inputs, width, activation);
        }
        let operation = if is_dynamic {
            E::DynamicFullyConnected.operation_type()
        } else {
            OperationType::FullyConnected
        };
        inputs.push(self.activation_operand(activation));
        let rows = self.spec(output)?;
        let count = match self.shape(output) {
            Ok(shape) => elements(&shape)? / units.max(1),
            Err(_) => 0,
        };
        let input = self.builder.spec(inputs[0]);
        if input.dimensions.len() == 1 || input.dimensions.len() > MOST_RANK {
            let matrix = OperandSpec { dimensions: vec![count, width], ..input };
            inputs[0] = self.reshape(inputs[0], matrix)?;
        }
        // A matrix that keeps its axes is one already.
        if self.rank(output) == 2 {
            return self.emit_activated(operator, operation, &inputs, activation);
        }
        // The HAL's result is always a matrix; the file's keeps the input's other axes.
        let matrix = OperandSpec { dimensions: vec![count, units], ..rows };
        let computed = self.computed_as(inputs[0], &matrix);
        let mut result = self.builder.operation(operation, &inputs, computed.clone());
        if activation == Activation::Tanh {
            result = self.builder.operation(OperationType::Tanh, [result], computed.clone());
        }
        if computed != matrix {
            result = self.builder.operation(OperationType::Quantize, [result], matrix);
        }
        self.reshape_to(result, output)
    }

    /// Whether TensorFlow Lite rounds a layer's input to 8 bits while it runs, as XNNPACK and its own kernels do:
    /// floats beside constant weights of 8 or 4 bits with a sign, zero point 0 and a scale for all or for each unit, which
    /// are along this axis.
    fn is_dynamic(&self, input: usize, weights: usize, axis: u32) -> Imported<bool> {
        if self.file.dequantizes_weights
            || self.element(input)? != Element::Float32
            || !self.element(weights)?.becomes_int8()
            || !self.is_constant(weights)
        {
            return Ok(false);
        }
        let quantization = self.tensor(weights).quantization.as_ref();
        Ok(quantization.is_some_and(|it| {
            it.zero_points.iter().all(|zero_point| *zero_point == 0)
                && (it.scales.len() == 1 || it.dimension == axis)
        }))
    }

    /// Whether weights have a scale for all of them.
    fn has_one_scale(&self, weights: usize) -> bool {
        let quantization = self.tensor(weights).quantization.as_ref();
        quantization.is_some_and(|it| it.scales.len() == 1)
    }

    /// Whether XNNPACK has no kernel for a matrix of weights: packed rows that end within a byte, and 2 bits with a scale for
    /// all. LiteRT's own then rounds the input by its magnitude, unless the operator says otherwise.
    fn is_left_to_magnitudes(&self, weights: usize, [units, width]: [u32; 2]) -> Imported<bool> {
        let is_odd = width % 2 != 0;
        Ok(match self.element(weights)? {
            Element::Int4 => is_odd,
            Element::Int2 => is_odd || units > 1 && self.has_one_scale(weights),
            _ => false,
        })
    }

    /// The HAL's FULLY_CONNECTED has one scale; with one each it is a convolution of 1 by 1.
    fn fully_connected_by_channel(
        &mut self,
        operator: &Operator<'_>,
        weighted: &[OperandId],
        width: u32,
        activation: Activation,
    ) -> Imported {
        let output = self.output_tensor(operator, 0)?;
        let input = self.input_tensor(operator, 0)?;
        let filter = self.input_tensor(operator, 1)?;
        let units = self.shape(filter)?[0];
        let count = match self.shape(input) {
            Ok(shape) => elements(&shape)? / width.max(1),
            Err(_) => 0,
        };
        let image =
            OperandSpec { dimensions: vec![count, 1, 1, width], ..self.builder.spec(weighted[0]) };
        let image = self.reshape(weighted[0], image)?;
        let mut taps = self.builder.spec(weighted[1]);
        taps.dimensions = vec![units, 1, 1, width];
        let taps = self.constant_with(filter, taps)?;
        let mut inputs = vec![image, taps, weighted[2]];
        inputs.extend([2, 1, 1].map(|value| self.builder.scalar_i32(value)));
        inputs.push(self.activation_operand(activation));
        let pixels = OperandSpec { dimensions: vec![count, 1, 1, units], ..self.spec(output)? };
        let pixels = self.builder.operation(OperationType::Conv2d, &inputs, pixels);
        self.reshape_to(pixels, output)
    }

    fn batch_matmul(&mut self, operator: &Operator<'_>) -> Imported {
        let (mut adjoint_x, mut adjoint_y) = (false, false);
        if let Some(BuiltinOptionsRef::BatchMatMulOptions(options)) =
            operator.table.builtin_options()?
        {
            (adjoint_x, adjoint_y) = (options.adj_x()?, options.adj_y()?);
        }
        let (x, y) = (self.input_tensor(operator, 0)?, self.input_tensor(operator, 1)?);
        let output = self.output_tensor(operator, 0)?;
        if !adjoint_x && self.dynamic_batch_matmul(x, y, adjoint_y, output)? {
            return Ok(());
        }
        let of_output = self.element(output)?;
        let has_channels = |tensor: usize| {
            let quantization = self.tensor(tensor).quantization.as_ref();
            quantization.is_some_and(|it| it.scales.len() > 1)
        };
        // The HAL has no 16 bits here, and no scales by channel.
        let is_wide = of_output == Element::Int16
            || of_output.is_quantized() && (has_channels(x) || has_channels(y));
        let is_hybrid = is_wide || self.element(x)? != self.element(y)?;
        let is_counted = of_output == Element::Int32;
        let mut greatest = 1;
        let (mut x_operand, mut y_operand) = if is_counted {
            let [(x, of_x), (y, of_y)] = [self.counted(x)?, self.counted(y)?];
            greatest = of_x.saturating_mul(of_y);
            (x, y)
        } else if is_hybrid {
            (self.as_float32(x)?, self.as_float32(y)?)
        } else {
            (self.operand(x)?, self.operand(y)?)
        };
        let batches = |tensor: usize| {
            let shape = self.lengths(tensor);
            shape.split_last_chunk::<2>().map(|(batches, _)| batches)
        };
        if batches(x) != batches(y) {
            // The HAL does not broadcast the batches, and TILE can.
            let target = self.shape(output)?;
            let (batches, _) = target
                .split_last_chunk::<2>()
                .ok_or_else(|| Reason::new("its result is not a matrix"))?;
            for operand in [&mut x_operand, &mut y_operand] {
                let spec = self.builder.spec(*operand);
                let (_, matrix) = spec
                    .dimensions
                    .split_last_chunk::<2>()
                    .ok_or_else(|| Reason::new("its factors are not matrices"))?;
                let target = [batches, matrix].concat();
                *operand = self.broadcast(*operand, &target)?;
            }
        }
        let rank = self.rank(output);
        if rank > 4 {
            // The HAL has two axes of batches at most; all of them become one.
            for operand in [&mut x_operand, &mut y_operand] {
                let spec = self.builder.spec(*operand);
                *operand = self.reshape(*operand, flat_batches(spec)?)?;
            }
        }
        let inputs = [
            x_operand,
            y_operand,
            self.builder.scalar_bool(adjoint_x),
            self.builder.scalar_bool(adjoint_y),
        ];
        if rank <= 4 && !is_wide && !is_counted {
            return self.emit(OperationType::BatchMatmul, &inputs, output);
        }
        let mut spec = self.spec(output)?;
        if is_wide {
            spec = OperandSpec::tensor_float32(spec.dimensions);
        }
        let whole = spec.clone();
        let spec = if rank > 4 { flat_batches(spec)? } else { spec };
        let result = if is_counted {
            let most = (EXACT_FLOATS / greatest).max(1);
            self.integer_product(inputs, [adjoint_x, adjoint_y], most, spec)?
        } else {
            self.builder.operation(OperationType::BatchMatmul, inputs, spec)
        };
        let result = if rank > 4 { self.reshape(result, whole)? } else { result };
        if is_wide {
            return self.emit_float32(result, output);
        }
        self.set(output, result);
        Ok(())
    }
}

impl GraphImporter<'_, '_> {
    /// How many steps of its scale an 8-bit tensor is from its zero point, as floats, and the most that it can be.
    fn counted(&mut self, tensor: usize) -> Imported<(OperandId, u32)> {
        let spec = self.spec(tensor)?;
        let (OperandType::TensorQuant8Asymm | OperandType::TensorQuant8AsymmSigned) =
            spec.operand_type
        else {
            let found = spec.operand_type;
            return Err(Reason::new(format!("of a factor {found} it has no sums of integers")));
        };
        let (least, most) = spec.operand_type.quantized_range().unwrap_or_default();
        let zero = spec.zero_point;
        let greatest = least.abs_diff(zero).max(most.abs_diff(zero));
        let floats = OperandSpec::tensor_float32(spec.dimensions);
        let operand = self.operand(tensor)?;
        let operand = self.of_any_rank(OperationType::Cast, operand, floats.clone())?;
        if zero == 0 {
            return Ok((operand, greatest));
        }
        #[allow(clippy::cast_precision_loss)] // 8 bits.
        let zero = self.builder.constant(OperandSpec::tensor_float32([1]), &[zero as f32]);
        let none = self.builder.scalar_i32(0);
        let inputs = [operand, zero, none];
        Ok((self.builder.operation(OperationType::Sub, inputs, floats), greatest))
    }

    /// The product of matrices of integers that floats hold. Floats add up as many products as `most` exactly; with more
    /// columns there are several products, and their sum.
    fn integer_product(
        &mut self,
        inputs: [OperandId; 4],
        is_adjoint: [bool; 2],
        most: u32,
        output: OperandSpec,
    ) -> Imported<OperandId> {
        let floats = OperandSpec::tensor_float32(output.dimensions.clone());
        let specs = [inputs[0], inputs[1]].map(|it| self.builder.spec(it));
        // The axis that they have in common, from behind.
        let behind = [1 + usize::from(is_adjoint[0]), 2 - usize::from(is_adjoint[1])];
        let mut length = 0;
        for (spec, behind) in specs.iter().zip(behind) {
            let Some(axis) = spec.dimensions.len().checked_sub(behind) else {
                return Err(Reason::new("its factors are not matrices"));
            };
            length = length.max(spec.dimensions[axis]);
        }
        if length == 0 {
            return Err(Reason::new("the number of its columns must be known here"));
        }
        if length.div_ceil(most) > MOST_PRODUCTS {
            return Err(Reason::new(format!("it has {length} columns, which are too many")));
        }
        let mut sum = None;
        for begin in (0..length).step_by(most as usize) {
            let count = most.min(length - begin);
            let mut pieces = inputs;
            if length > most {
                for ((piece, spec), behind) in pieces.iter_mut().zip(&specs).zip(behind) {
                    *piece = self.columns(*piece, spec, behind, begin, count);
                }
            }
            let product =
                self.builder.operation(OperationType::BatchMatmul, pieces, floats.clone());
            let product = self.of_any_rank(OperationType::Cast, product, output.clone())?;
            sum = Some(match sum {
                None => product,
                Some(sum) => {
                    let none = self.builder.scalar_i32(0);
                    self.builder.operation(OperationType::Add, [sum, product, none], output.clone())
                }
            });
        }
        sum.ok_or_else(|| Reason::new("it has no columns"))
    }

    /// A part of a tensor along an axis that is counted from behind.
    fn columns(
        &mut self,
        operand: OperandId,
        spec: &OperandSpec,
        behind: usize,
        begin: u32,
        count: u32,
    ) -> OperandId {
        let rank = spec.dimensions.len();
        let (mut begins, mut sizes) = (vec![0; rank], vec![-1; rank]);
        begins[rank - behind] = begin.cast_signed();
        sizes[rank - behind] = count.cast_signed();
        let mut cut = spec.clone();
        cut.dimensions[rank - behind] = count;
        let inputs = [operand, self.integer_vector(&begins), self.integer_vector(&sizes)];
        self.builder.operation(OperationType::Slice, inputs, cut)
    }

    /// BATCH_MATMUL of floats with a constant matrix of 8 bits, whose rows are rounded while it runs: a layer without a
    /// bias. False if it is something else.
    fn dynamic_batch_matmul(
        &mut self,
        x: usize,
        y: usize,
        is_adjoint: bool,
        output: usize,
    ) -> Imported<bool> {
        let of_y = self.lengths(y).to_vec();
        let Some((batches, &[first, second])) = of_y.split_last_chunk::<2>() else {
            return Ok(false);
        };
        let (units, width) = if is_adjoint { (first, second) } else { (second, first) };
        let axis = batches.len() + usize::from(!is_adjoint);
        let axis = u32::try_from(axis).unwrap_or(u32::MAX);
        let Ok(shape) = self.shape(x) else { return Ok(false) };
        let (shape, is_matrix) = (shape.to_vec(), batches.iter().all(|length| *length == 1));
        if !is_matrix || [units, width].contains(&0) || !self.is_dynamic(x, y, axis)? {
            return Ok(false);
        }
        let stored = self.constant_bytes(y)?;
        self.file.allow(stored.len())?;
        let [rows, columns] = [first, second].map(|length| length as usize);
        let transposed: Vec<u8> = if is_adjoint {
            stored.to_vec()
        } else {
            let places = (0..columns).flat_map(|column| (0..rows).map(move |row| (row, column)));
            places.map(|(row, column)| stored[row * columns + column]).collect()
        };
        let mut spec = self.spec(y)?;
        spec.dimensions = vec![units, width];
        if let ExtraParams::ChannelQuant(quant) = &mut spec.extra_params {
            quant.channel_dim = 0;
        }
        let weights = self.builder.constant_bytes(spec, &transposed);
        let count = elements(&shape)? / width;
        let operand = self.operand(x)?;
        let matrix = OperandSpec::tensor_float32([count, width]);
        let operand = self.reshape(operand, matrix)?;
        let bias = self.bias(operand, weights, None, units)?;
        let none = self.builder.scalar_i32(0);
        let operation = E::DynamicFullyConnected.operation_type();
        let product = OperandSpec::tensor_float32([count, units]);
        let product = self.builder.operation(operation, [operand, weights, bias, none], product);
        self.reshape_to(product, output)?;
        Ok(true)
    }
}

/// Matrices with a single axis of batches.
fn flat_batches(spec: OperandSpec) -> Imported<OperandSpec> {
    let Some((batches, matrix)) = spec.dimensions.split_last_chunk::<2>() else {
        return Err(Reason::new("its factors are not matrices"));
    };
    let mut dimensions = vec![elements(batches)?];
    dimensions.extend(matrix);
    Ok(OperandSpec { dimensions, ..spec })
}
