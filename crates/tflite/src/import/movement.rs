//! Operators that move elements and change shapes; those that cut are in [`super::slicing`].

use super::array::Array;
use super::tensor::Element;
use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::Operator;
use crate::schema::{BuiltinOperator as B, BuiltinOptionsRef, MirrorPadMode};
use nnhal_hal::{OperandId, OperandSpec, OperandType, OperationType as O};
use nnhal_ops::extension::{ExtensionOperation as E, element_size};

/// The axes that most operations of the HAL take.
pub(super) const MOST_RANK: usize = 4;

impl GraphImporter<'_, '_> {
    pub(super) fn movement(&mut self, builtin: B, operator: &Operator<'_>) -> Option<Imported> {
        Some(match builtin {
            B::Reshape => self.reshape_operator(operator),
            B::Squeeze => self.squeeze(operator),
            B::ExpandDims => self.expand_dims(operator),
            B::Concatenation => self.concatenation(operator),
            B::Pad => self.pad(operator, O::Pad),
            B::Padv2 => self.pad_v2(operator),
            B::MirrorPad => self.mirror_pad(operator),
            B::Transpose => self.transpose(operator),
            B::StridedSlice => self.strided_slice(operator),
            B::Slice => self.slice(operator),
            B::Split => self.split(operator),
            B::SplitV => self.split_v(operator),
            B::Pack => self.pack(operator),
            B::Unpack => self.unpack(operator),
            B::Tile => self.tile(operator),
            B::BroadcastTo => self.broadcast_to(operator),
            B::Gather => self.gather(operator),
            B::ReverseV2 => self.reverse(operator),
            B::DepthToSpace => self.blocks(operator, O::DepthToSpace),
            B::SpaceToDepth => self.blocks(operator, O::SpaceToDepth),
            B::BatchToSpaceNd => self.batch_to_space_nd(operator),
            B::SpaceToBatchNd => self.space_to_batch_nd(operator),
            B::Fill => self.fill(operator),
            B::Rank => self.rank_operator(operator),
            B::Shape => self.shape_operator(operator),
            B::Range => self.range(operator),
            B::Cast => self.cast(operator),
            B::EmbeddingLookup => self.embedding_lookup(operator),
            B::EmbeddingLookupSparse => self.embedding_lookup_sparse(operator),
            B::OneHot => self.one_hot(operator),
            _ => return None,
        })
    }

    /// An operand with other dimensions, of which one may be open.
    pub(super) fn reshape(&mut self, operand: OperandId, spec: OperandSpec) -> Imported<OperandId> {
        if self.builder.spec(operand).dimensions == spec.dimensions {
            return Ok(operand);
        }
        // One length may be open: the HAL computes it.
        let open = spec.dimensions.iter().filter(|length| **length == 0).count();
        if open > 1 || spec.dimensions.is_empty() {
            return Err(Reason::new("a shape must be known here, but for one length"));
        }
        let lengths = spec.dimensions.iter().map(|length| match length {
            0 => Ok(-1),
            length => i32::try_from(*length),
        });
        let lengths = lengths.collect::<Result<Vec<i32>, _>>();
        let lengths = lengths.map_err(|_| Reason::new("a length exceeds 31 bits"))?;
        let shape = self.integer_vector(&lengths);
        Ok(self.builder.operation(O::Reshape, [operand, shape], spec))
    }

    /// An operation of one input. Where the HAL has it for fewer axes and it computes element by element, it is of all elements in
    /// one row.
    pub(super) fn of_any_rank(
        &mut self,
        operation: O,
        input: OperandId,
        spec: OperandSpec,
    ) -> Imported<OperandId> {
        let of_few_axes = [O::Floor, O::Logistic, O::Relu, O::Relu1, O::Relu6, O::Tanh];
        if spec.dimensions.len() <= MOST_RANK || !of_few_axes.contains(&operation) {
            return Ok(self.builder.operation(operation, [input], spec));
        }
        let is_open = spec.dimensions.contains(&0);
        let row = vec![if is_open { 0 } else { elements(&spec.dimensions)? }];
        let of_input = OperandSpec { dimensions: row.clone(), ..self.builder.spec(input) };
        let input = self.reshape(input, of_input)?;
        let of_result = OperandSpec { dimensions: row, ..spec.clone() };
        let result = self.builder.operation(operation, [input], of_result);
        self.reshape(result, spec)
    }

    /// Gives a tensor the elements of an operand.
    pub(super) fn reshape_to(&mut self, operand: OperandId, output: usize) -> Imported {
        let spec = match self.shape(output) {
            Ok(shape) => self.spec_with(output, shape)?,
            Err(_) => self.spec(output)?,
        };
        let reshaped = self.reshape(operand, spec)?;
        let reshaped = if reshaped == operand && !self.builder.is_result(operand) {
            let spec = self.builder.spec(operand);
            self.builder.operation(O::Cast, [operand], spec)
        } else {
            reshaped
        };
        self.set(output, reshaped);
        Ok(())
    }

    /// Gives a tensor the elements of another one. Where there are more axes than most operations of
    /// the HAL take, the operand stays as it is for now: what repeats or reshapes it takes any.
    fn reshape_tensor(&mut self, input: usize, output: usize) -> Imported {
        if self.is_constant_by_channel(input, output)
            && self.shapes[output].as_ref() == Some(&self.tensor(output).shape)
        {
            // The same bytes: it is a constant of the file too, with its own scales, and a layer may have it as its weights.
            self.buffers[output] = self.buffers[input];
            return Ok(());
        }
        let operand = self.flat_operand(input)?;
        if self.rank(output) > MOST_RANK && self.shapes[output].is_some() {
            self.operands[output] = Some(operand);
            self.is_flat[output] = true;
            return Ok(());
        }
        self.reshape_to(operand, output)
    }

    fn reshape_operator(&mut self, operator: &Operator<'_>) -> Imported {
        let output = self.output_tensor(operator, 0)?;
        if self.shape(output).is_ok() {
            return self.reshape_tensor(self.input_tensor(operator, 0)?, output);
        }
        let input = self.input(operator, 0)?;
        // The shape is a tensor if there is one, else an attribute.
        if operator.inputs.get(1).copied().flatten().is_some() {
            let shape = self.input(operator, 1)?;
            return self.emit(O::Reshape, &[input, shape], output);
        }
        let Some(BuiltinOptionsRef::ReshapeOptions(options)) = operator.table.builtin_options()?
        else {
            return Err(Reason::new("its shape is missing"));
        };
        let Some(shape) = options.new_shape()? else {
            return Err(Reason::new("its shape is missing"));
        };
        if shape.len() > 16 {
            return Err(Reason::new("its shape has too many axes"));
        }
        let shape: Vec<i32> = shape.iter().collect();
        let shape = self.integer_vector(&shape);
        self.emit(O::Reshape, &[input, shape], output)
    }

    fn squeeze(&mut self, operator: &Operator<'_>) -> Imported {
        let output = self.output_tensor(operator, 0)?;
        if self.shape(output).is_ok() {
            return self.reshape_tensor(self.input_tensor(operator, 0)?, output);
        }
        let input = self.input(operator, 0)?;
        let mut axes: Vec<i32> = Vec::new();
        if let Some(BuiltinOptionsRef::SqueezeOptions(options)) =
            operator.table.builtin_options()?
            && let Some(given) = options.squeeze_dims()?
        {
            axes.extend(given.iter().take(16));
        }
        let axes = if axes.is_empty() {
            self.builder.omitted(OperandSpec::tensor_int32([1]))
        } else {
            self.integer_vector(&axes)
        };
        self.emit(O::Squeeze, &[input, axes], output)
    }

    fn expand_dims(&mut self, operator: &Operator<'_>) -> Imported {
        let output = self.output_tensor(operator, 0)?;
        if self.shape(output).is_ok() {
            return self.reshape_tensor(self.input_tensor(operator, 0)?, output);
        }
        let input = self.input(operator, 0)?;
        let axis = self.constant_integer(operator, 1)?;
        let axis = self.builder.scalar_i32(axis);
        self.emit(O::ExpandDims, &[input, axis], output)
    }

    fn concatenation(&mut self, operator: &Operator<'_>) -> Imported {
        let (mut axis, mut function) = (0, crate::schema::ActivationFunctionType::None);
        if let Some(BuiltinOptionsRef::ConcatenationOptions(options)) =
            operator.table.builtin_options()?
        {
            (axis, function) = (options.axis()?, options.fused_activation_function()?);
        }
        let activation = super::operand::Activation::of(function)?;
        let output = self.output_tensor(operator, 0)?;
        let axis = non_negative_axis(axis, self.rank(output))?;
        let mut inputs = Vec::with_capacity(operator.inputs.len() + 1);
        for at in 0..operator.inputs.len() {
            inputs.push(self.input(operator, at)?);
        }
        inputs.push(self.builder.scalar_i32(axis));
        let following = match activation.fused() {
            nnhal_hal::FusedActivation::None => None,
            nnhal_hal::FusedActivation::Relu => Some(O::Relu),
            nnhal_hal::FusedActivation::Relu1 => Some(O::Relu1),
            nnhal_hal::FusedActivation::Relu6 => Some(O::Relu6),
        };
        match following {
            None => self.emit(O::Concatenation, &inputs, output),
            Some(following) => {
                let spec = self.spec(output)?;
                let all = self.builder.operation(O::Concatenation, &inputs, spec);
                self.emit(following, &[all], output)
            }
        }
    }

    fn pad(&mut self, operator: &Operator<'_>, operation: O) -> Imported {
        let inputs = [self.input(operator, 0)?, self.input(operator, 1)?];
        self.emit_for(operator, operation, &inputs)
    }

    fn pad_v2(&mut self, operator: &Operator<'_>) -> Imported {
        let (input, value) = (self.input_tensor(operator, 0)?, self.input_tensor(operator, 2)?);
        let is_constant = self.is_constant(value);
        let scalar = match self.element(input)? {
            Element::Float32 if is_constant => {
                let value = self.constant_floats(value)?;
                self.builder.scalar_f32(value.first().copied().unwrap_or(0.0))
            }
            Element::Uint8 | Element::Int8 if is_constant => {
                let bytes = self.constant_bytes(value)?;
                let stored = match (self.element(value)?, bytes.first()) {
                    (Element::Int8, Some(byte)) => i32::from(byte.cast_signed()),
                    (_, Some(byte)) => i32::from(*byte),
                    (_, None) => return Err(Reason::new("the padding value is empty")),
                };
                self.builder.scalar_i32(stored)
            }
            _ => {
                let value = self.operand(value)?;
                let inputs = [self.input(operator, 0)?, self.input(operator, 1)?, value];
                return self.emit_extended(operator, E::PadV2, &inputs);
            }
        };
        let inputs = [self.input(operator, 0)?, self.input(operator, 1)?, scalar];
        self.emit_for(operator, O::PadV2, &inputs)
    }

    fn mirror_pad(&mut self, operator: &Operator<'_>) -> Imported {
        let mode = match operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::MirrorPadOptions(options)) => options.mode()?,
            _ => MirrorPadMode::Reflect,
        };
        let mode = match mode {
            MirrorPadMode::Reflect => 0,
            MirrorPadMode::Symmetric => 1,
        };
        let inputs =
            [self.input(operator, 0)?, self.input(operator, 1)?, self.builder.scalar_i32(mode)];
        self.emit_for(operator, O::MirrorPad, &inputs)
    }

    /// An operation whose second input is a vector of integers in both worlds.
    fn with_integers(&mut self, operator: &Operator<'_>, operation: O) -> Imported {
        let inputs = [self.input(operator, 0)?, self.input(operator, 1)?];
        self.emit_for(operator, operation, &inputs)
    }

    fn transpose(&mut self, operator: &Operator<'_>) -> Imported {
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        if self.rank(input) == 0 && self.shape(input).is_ok() {
            // A scalar has no axes to order.
            let operand = self.operand(input)?;
            return self.reshape_to(operand, output);
        }
        if self.is_constant_by_channel(input, output) && self.is_stored_by_channel(output) {
            let spec = self.spec_with(output, self.dimensions(input, false))?;
            let constant = self.constant_with(input, spec)?;
            let axes = self.input(operator, 1)?;
            return self.emit(O::Transpose, &[constant, axes], output);
        }
        self.with_integers(operator, O::Transpose)
    }

    fn pack(&mut self, operator: &Operator<'_>) -> Imported {
        let axis = match operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::PackOptions(options)) => options.axis()?,
            _ => 0,
        };
        let output = self.output_tensor(operator, 0)?;
        let axis = non_negative_axis(axis, self.rank(output))?;
        let is_scalars = operator.inputs.iter().flatten().all(|input| self.rank(*input) == 0);
        let mut inputs = Vec::with_capacity(operator.inputs.len() + 1);
        for at in 0..operator.inputs.len() {
            inputs.push(self.input(operator, at)?);
        }
        let axis = self.builder.scalar_i32(axis);
        if is_scalars {
            // Scalars are vectors of one here already.
            let count = u32::try_from(inputs.len()).unwrap_or(u32::MAX);
            inputs.insert(0, axis);
            let spec = self.spec_with(output, vec![count, 1])?;
            let column = self.builder.operation(O::Pack, inputs, spec);
            return self.reshape_to(column, output);
        }
        inputs.insert(0, axis);
        self.emit(O::Pack, &inputs, output)
    }

    fn tile(&mut self, operator: &Operator<'_>) -> Imported {
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        if self.rank(output) > MOST_RANK
            && let (Ok(from), Ok(to)) = (self.shape(input), self.shape(output))
        {
            return self.repeat_flat(input, output, &from, &to);
        }
        self.with_integers(operator, O::Tile)
    }

    /// Repeats a tensor of many axes. Axes beside each other that are not repeated become one.
    fn repeat_flat(&mut self, input: usize, output: usize, from: &[u32], to: &[u32]) -> Imported {
        elements(to)?;
        let new = to.len().saturating_sub(from.len());
        let from = [&vec![1; new][..], from].concat();
        let mut merged: Vec<(u32, u32)> = Vec::new();
        for (from, to) in from.iter().zip(to) {
            let times = to.checked_div(*from).filter(|times| times * from == *to);
            let times = times.ok_or_else(|| Reason::new("shapes do not repeat"))?;
            match merged.last_mut() {
                Some((length, 1)) if times == 1 => *length = elements(&[*length, *from])?,
                _ => merged.push((*from, times)),
            }
        }
        let (lengths, times): (Vec<u32>, Vec<u32>) = merged.into_iter().unzip();
        let operand = self.flat_operand(input)?;
        let spec = OperandSpec { dimensions: lengths.clone(), ..self.builder.spec(operand) };
        let operand = self.reshape(operand, spec.clone())?;
        let dimensions: Vec<u32> = lengths.iter().zip(&times).map(|(a, b)| a * b).collect();
        let times = times.iter().map(|times| i32::try_from(*times));
        let times = times.collect::<Result<Vec<_>, _>>();
        let times = times.map_err(|_| Reason::new("a length exceeds 31 bits"))?;
        let times = self.integer_vector(&times);
        let result =
            self.builder.operation(O::Tile, [operand, times], OperandSpec { dimensions, ..spec });
        self.operands[output] = Some(result);
        self.is_flat[output] = true;
        Ok(())
    }

    fn broadcast_to(&mut self, operator: &Operator<'_>) -> Imported {
        let output = self.output_tensor(operator, 0)?;
        let target = self.shape(output)?;
        let input_tensor = self.input_tensor(operator, 0)?;
        if target.len() > MOST_RANK
            && let Ok(from) = self.shape(input_tensor)
        {
            return self.repeat_flat(input_tensor, output, &from, &target);
        }
        let input = self.input(operator, 0)?;
        let result = self.broadcast(input, &target)?;
        if result == input {
            return self.emit(O::Cast, &[input], output);
        }
        self.set(output, result);
        Ok(())
    }

    fn gather(&mut self, operator: &Operator<'_>) -> Imported {
        let (mut axis, mut batch) = (0, 0);
        if let Some(BuiltinOptionsRef::GatherOptions(options)) = operator.table.builtin_options()? {
            (axis, batch) = (options.axis()?, options.batch_dims()?);
        }
        let (input, indices) = (self.input_tensor(operator, 0)?, self.input_tensor(operator, 1)?);
        let output = self.output_tensor(operator, 0)?;
        let axis = non_negative_axis(axis, self.rank(input))?;
        let is_scalar = self.rank(indices) == 0;
        let axis_operand = self.builder.scalar_i32(axis);
        let inputs = [self.operand(input)?, axis_operand, self.operand(indices)?];
        if batch != 0 {
            let rank = i32::try_from(self.rank(indices)).unwrap_or(i32::MAX);
            let batch = if batch < 0 { batch.saturating_add(rank) } else { batch };
            let [input, axis, indices] = inputs;
            let inputs = [input, axis, indices, self.builder.scalar_i32(batch)];
            return self.emit_extended(operator, E::Gather, &inputs);
        }
        if !is_scalar {
            return self.emit(O::Gather, &inputs, output);
        }
        let mut kept = self.shape(input)?;
        if let Some(length) = kept.get_mut(usize::try_from(axis).unwrap_or(0)) {
            *length = 1;
        }
        let spec = self.spec_with(output, kept)?;
        let piece = self.builder.operation(O::Gather, inputs, spec);
        self.reshape_to(piece, output)
    }

    fn reverse(&mut self, operator: &Operator<'_>) -> Imported {
        let input_tensor = self.input_tensor(operator, 0)?;
        let rank = self.rank(input_tensor);
        let output = self.output_tensor(operator, 0)?;
        let axes = self.constant_integers(operator, 1)?;
        let mut operand = self.input(operator, 0)?;
        let spec = self.spec(output)?;
        if axes.is_empty() {
            return self.emit(O::Cast, &[operand], output);
        }
        for axis in axes {
            let axis = non_negative_axis(axis, rank)?;
            let axis = self.integer_vector(&[axis]);
            operand = self.builder.operation(O::Reverse, [operand, axis], spec.clone());
        }
        self.set(output, operand);
        Ok(())
    }

    fn fill(&mut self, operator: &Operator<'_>) -> Imported {
        let value = self.input_tensor(operator, 1)?;
        let output = self.output_tensor(operator, 0)?;
        if self.shapes[output].as_ref().is_some_and(Vec::is_empty) {
            // No lengths: the value itself.
            let value = self.operand(value)?;
            return self.reshape_to(value, output);
        }
        let is_constant = self.is_constant(value) || self.folded[value].is_some();
        let scalar = match self.element(value)? {
            Element::Float32 if is_constant => {
                let value = self.constant_floats(value)?;
                self.builder.scalar_f32(value.first().copied().unwrap_or(0.0))
            }
            Element::Int32 if is_constant => {
                let value = self.constant_integer(operator, 1)?;
                self.builder.scalar_i32(value)
            }
            _ => {
                // The HAL fills with known floats and integers only, and TILE takes any value.
                let value = self.operand(value)?;
                let Ok(target) = self.shape(output) else {
                    self.expect_fixed_lengths()?;
                    let inputs = [self.input(operator, 0)?, value];
                    return self.emit_extended(operator, E::Fill, &inputs);
                };
                let filled = self.broadcast(value, &target)?;
                return self.reshape_to(filled, output);
            }
        };
        let inputs = [self.input(operator, 0)?, scalar];
        self.emit_for(operator, O::Fill, &inputs)
    }

    /// Lengths that only a run knows. While those of inputs are left open, it is better to fix them:
    /// then most others follow, and nothing depends on values.
    fn expect_fixed_lengths(&self) -> Imported {
        if self.file.leaves_lengths_open() {
            return Err(Reason::new("the shape of its input must be known here"));
        }
        Ok(())
    }

    fn shape_operator(&mut self, operator: &Operator<'_>) -> Imported {
        self.expect_fixed_lengths()?;
        self.extended_unary(operator, E::Shape)
    }

    fn range(&mut self, operator: &Operator<'_>) -> Imported {
        self.expect_fixed_lengths()?;
        let inputs = [self.input(operator, 0)?, self.input(operator, 1)?, self.input(operator, 2)?];
        self.emit_extended(operator, E::Range, &inputs)
    }

    /// The rank of a tensor whose shape is not known.
    fn rank_operator(&mut self, operator: &Operator<'_>) -> Imported {
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        self.folded[output] = Some(Array::number(self.rank(input)));
        Ok(())
    }

    fn cast(&mut self, operator: &Operator<'_>) -> Imported {
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let is_bool = |this: &Self, tensor| Ok::<_, Reason>(this.element(tensor)? == Element::Bool);
        if is_bool(self, output)? && !is_bool(self, input)? {
            // The HAL does not cast to truth values, but compares.
            let operand = self.input(operator, 0)?;
            let zero = match self.element(input)? {
                Element::Int32 => Some(self.integer_vector(&[0])),
                Element::Float32 | Element::Float16 => Some(self.float_like(input, 0.0)?),
                _ => None,
            };
            if let Some(zero) = zero {
                return self.emit(O::NotEqual, &[operand, zero], output);
            }
        }
        let (from, to) = (self.spec(input)?, self.spec(output)?);
        // The HAL saturates where the format wraps.
        let is_narrowed = from.operand_type == OperandType::TensorInt32
            && to.operand_type == OperandType::TensorQuant8Asymm;
        if is_narrowed {
            return self.extended_unary(operator, E::Cast);
        }
        let inputs = [self.input(operator, 0)?];
        self.emit(O::Cast, &inputs, output)
    }

    /// Compares the indices with `0, 1, ...` along a new axis, and selects.
    fn one_hot(&mut self, operator: &Operator<'_>) -> Imported {
        let axis = match operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::OneHotOptions(options)) => options.axis()?,
            _ => 0,
        };
        let indices = self.input_tensor(operator, 0)?;
        let output = self.output_tensor(operator, 0)?;
        let is_known =
            |at: usize| Ok::<_, Reason>(self.is_constant(self.input_tensor(operator, at)?));
        if self.shape(output).is_err() || !is_known(2)? || !is_known(3)? {
            if self.shape(output).is_err() {
                self.expect_fixed_lengths()?;
            }
            let axis = self.builder.scalar_i32(axis);
            let mut inputs = Vec::with_capacity(5);
            for at in 0..4 {
                inputs.push(self.input(operator, at)?);
            }
            inputs.push(axis);
            return self.emit_extended(operator, E::OneHot, &inputs);
        }
        let shape = self.shape(output)?;
        let rank = shape.len();
        let axis = usize::try_from(non_negative_axis(axis, rank)?).unwrap_or(0);
        let mut column = vec![1; rank];
        column[axis] = shape[axis];
        let mut others = shape.clone();
        others[axis] = 1;
        let spec = self.spec_with(output, shape.clone())?;
        let size = element_size(spec.operand_type).unwrap_or(4) as usize;
        let count = elements(&shape)? as usize;
        self.file.allow(count.saturating_mul(2 * size).saturating_add(shape[axis] as usize * 4))?;
        let places: Vec<i32> = (0..shape[axis]).map(u32::cast_signed).collect();
        let places = self.builder.constant(OperandSpec::tensor_int32(column), &places);
        let mut operand = self.operand(indices)?;
        if self.element(indices)? == Element::Int64 {
            operand = self.builder.narrowed(operand);
        }
        let operand = self.reshape(operand, OperandSpec::tensor_int32(others))?;
        if self.element(output)? == Element::Bool {
            // The comparison is the result; values that are equal to each other no one asks for.
            let truth = |at: usize| -> Imported<bool> {
                let bytes = self.constant_bytes(self.input_tensor(operator, at)?)?;
                Ok(bytes.first().is_some_and(|byte| *byte != 0))
            };
            return match (truth(2)?, truth(3)?) {
                (true, false) => self.emit(O::Equal, &[operand, places], output),
                (false, true) => self.emit(O::NotEqual, &[operand, places], output),
                _ => Err(Reason::new("its values do not differ")),
            };
        }
        let is_there = OperandSpec::tensor_bool8(shape);
        let mut values = Vec::new();
        for at in [2, 3] {
            let value = self.input_tensor(operator, at)?;
            let bytes = self.constant_bytes(value)?;
            if bytes.len() != size {
                return Err(Reason::new(format!("input {at} is not one value of its result")));
            }
            values.push(self.builder.constant_bytes(spec.clone(), &bytes.repeat(count)));
        }
        let is_there = self.builder.operation(O::Equal, [operand, places], is_there);
        self.emit(O::Select, &[is_there, values[0], values[1]], output)
    }

    fn embedding_lookup(&mut self, operator: &Operator<'_>) -> Imported {
        let (lookups, values) = (self.input_tensor(operator, 0)?, self.input_tensor(operator, 1)?);
        let output = self.output_tensor(operator, 0)?;
        if self.tensor(values).blocks.is_some() {
            let lookups = self.operand(lookups)?;
            return self.rows_by_block(lookups, values, output);
        }
        let values = if self.element(output)? == Element::Float32 {
            self.as_float32(values)?
        } else {
            self.operand(values)?
        };
        let lookups = self.operand(lookups)?;
        let of_rows = self.element(output)?;
        let is_of_hal = of_rows.is_float()
            || matches!(of_rows, Element::Int32 | Element::Uint8 | Element::Int8 | Element::Int4);
        if !is_of_hal {
            // The HAL has no such rows; they are gathered.
            let axis = self.builder.scalar_i32(0);
            return self.emit(O::Gather, &[values, axis, lookups], output);
        }
        self.emit(O::EmbeddingLookup, &[lookups, values], output)
    }
}

/// The number of elements of a known shape.
pub(super) fn elements(dimensions: &[u32]) -> Imported<u32> {
    dimensions
        .iter()
        .try_fold(1_u32, |count, length| count.checked_mul(*length))
        .ok_or_else(|| Reason::new("it has more elements than 32 bits can count"))
}

/// An axis counted from the front.
pub(super) fn non_negative_axis(axis: i32, rank: usize) -> Imported<i32> {
    let signed = i32::try_from(rank.max(1)).unwrap_or(i32::MAX);
    let axis = if axis < 0 { axis.saturating_add(signed) } else { axis };
    if (0..signed).contains(&axis) {
        Ok(axis)
    } else {
        Err(Reason::new(format!("there is no axis {axis} in rank {rank}")))
    }
}
