//! Operations of TensorFlow that become several operations here, or one that the format has no operator for.

use super::{expect_channels_last, is_padded, window};
use crate::error::Reason;
use crate::file::Operator;
use crate::import::array::Array;
use crate::import::movement::{elements, non_negative_axis};
use crate::import::{GraphImporter, Imported};
use crate::node_def::Node;
use nnhal_hal::{OperandId, OperandSpec, OperationType as O};
use nnhal_ops::extension::{ExtensionOperation as E, element_size};
use nnhal_ops::operations::extension::reduce_window::Function;

/// Elements of a patch that is cut out. Each becomes an operation.
const MOST_TAPS: i32 = 1024;

impl GraphImporter<'_, '_> {
    /// `None` for an operation without a counterpart.
    pub(super) fn composed(
        &mut self,
        node: &Node<'_>,
        operator: &Operator<'_>,
    ) -> Option<Imported> {
        Some(match node.operation {
            "Identity"
            | "StopGradient"
            | "PreventGradient"
            | "Snapshot"
            | "EnsureShape"
            | "CheckNumerics"
            | "PlaceholderWithDefault" => self.same_tensor(operator),
            "Size" => self.size(operator),
            "OnesLike" => self.ones_like(operator),
            "Erf" => self.extended_unary(operator, E::Erf),
            "Softplus" => self.softplus(operator),
            "Softsign" => self.softsign(operator),
            "Selu" => self.selu(operator),
            "Inv" | "Reciprocal" => self.reciprocal(operator),
            "Tan" => self.tangent(operator),
            "Atan" => self.arctangent(operator),
            "Cosh" => self.hyperbolic(operator, false),
            "Sinh" => self.hyperbolic(operator, true),
            "IsNan" => self.is_nan(operator),
            "IsInf" => self.compared_with_infinity(operator, O::Equal),
            "IsFinite" => self.compared_with_infinity(operator, O::Less),
            "DivNoNan" => self.without_nan(operator, O::Div),
            "MulNoNan" => self.without_nan(operator, O::Mul),
            "BitwiseAnd" => self.extended_binary(operator, E::BitwiseAnd),
            "BitwiseOr" => self.bitwise_or(operator),
            "Invert" => self.inverted_bits(operator),
            "ClipByValue" => self.clip(operator),
            "Cross" => self.cross(operator),
            "Roll" => self.roll(operator),
            "MatrixBandPart" => self.band(operator),
            "MatrixDiagPart" | "MatrixDiagPartV2" | "MatrixDiagPartV3" => self.diagonal(operator),
            "MaxPool3D" => self.pool_3d(node, operator, true),
            "AvgPool3D" => self.pool_3d(node, operator, false),
            "MaxPoolWithArgmax" => self.max_pool_with_argmax(node, operator),
            "ExtractImagePatches" => self.patches(node, operator),
            "TensorScatterUpdate" => self.scatter(operator, 0, false),
            "TensorScatterAdd" => self.scatter(operator, 1, false),
            "TensorScatterSub" => self.scatter(operator, 1, true),
            "TensorScatterMin" => self.scatter(operator, 3, false),
            "TensorScatterMax" => self.scatter(operator, 4, false),
            _ => return None,
        })
    }

    /// The input itself.
    fn same_tensor(&mut self, operator: &Operator<'_>) -> Imported {
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let known = self.known(input)?;
        self.shapes[output] = known.as_ref().map(|it| it.shape.clone());
        self.lists[output] = self.lists[input];
        if let Some(known) = known.filter(|it| it.values.is_some()) {
            self.folded[output] = Some(known);
            return Ok(());
        }
        let operand = self.operand(input)?;
        self.operands[output] = Some(operand);
        Ok(())
    }

    /// The number of elements of a tensor of known shape.
    fn size(&mut self, operator: &Operator<'_>) -> Imported {
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let count = match self.rank(input) {
            0 => 1,
            _ => elements(&self.shape(input)?)?,
        };
        self.shapes[output] = Some(Vec::new());
        self.folded[output] = Some(Array::scalar(count.into()));
        Ok(())
    }

    fn ones_like(&mut self, operator: &Operator<'_>) -> Imported {
        let output = self.output_tensor(operator, 0)?;
        let shape = self.shape(self.input_tensor(operator, 0)?)?;
        let one = self.number_like(output, 1)?;
        let ones = self.broadcast(one, &shape)?;
        self.reshape_to(ones, output)
    }

    /// An integer as an operand of one element, in the type of a tensor.
    fn number_like(&mut self, tensor: usize, number: u8) -> Imported<OperandId> {
        let spec = self.spec_with(tensor, vec![1])?;
        if self.element(tensor)?.is_float() {
            return self.float_like(tensor, number.into());
        }
        if spec.operand_type.quantized_range().is_some() || number > 1 {
            return Err(Reason::new("its type has no such constant"));
        }
        let mut bytes = vec![0; element_size(spec.operand_type).unwrap_or(4) as usize];
        bytes[0] = number;
        match self.element(tensor)? {
            it if it.is_integer() || it == crate::import::tensor::Element::Bool || number == 0 => {
                Ok(self.builder.constant_bytes(spec, &bytes))
            }
            other => Err(Reason::new(format!("there is no constant of {other:?}"))),
        }
    }

    /// A function of one number, and what it is of.
    fn of_one(&mut self, operator: &Operator<'_>) -> Imported<(usize, OperandId, OperandSpec)> {
        let tensor = self.input_tensor(operator, 0)?;
        if !self.element(tensor)?.is_float() {
            return Err(Reason::new("only floats have a counterpart"));
        }
        let operand = self.operand(tensor)?;
        Ok((tensor, operand, self.builder.spec(operand)))
    }

    /// `max(x, 0) + ln(1 + e^-|x|)`, in which nothing overflows.
    fn softplus(&mut self, operator: &Operator<'_>) -> Imported {
        let (tensor, x, spec) = self.of_one(operator)?;
        let none = self.builder.scalar_i32(0);
        let positive = self.of_any_rank(O::Relu, x, spec.clone())?;
        let absolute = self.builder.operation(O::Abs, [x], spec.clone());
        let negative = self.builder.operation(O::Neg, [absolute], spec.clone());
        let power = self.builder.operation(O::Exp, [negative], spec.clone());
        let one = self.float_like(tensor, 1.0)?;
        let sum = self.builder.operation(O::Add, [power, one, none], spec.clone());
        let logarithm = self.builder.operation(O::Log, [sum], spec);
        self.emit_for(operator, O::Add, &[positive, logarithm, none])
    }

    /// `x / (1 + |x|)`.
    fn softsign(&mut self, operator: &Operator<'_>) -> Imported {
        let (tensor, x, spec) = self.of_one(operator)?;
        let none = self.builder.scalar_i32(0);
        let absolute = self.builder.operation(O::Abs, [x], spec.clone());
        let one = self.float_like(tensor, 1.0)?;
        let divisor = self.builder.operation(O::Add, [absolute, one, none], spec);
        self.emit_for(operator, O::Div, &[x, divisor, none])
    }

    /// ELU with a fixed alpha, times a fixed scale.
    fn selu(&mut self, operator: &Operator<'_>) -> Imported {
        const ALPHA: f32 = 1.673_263_2;
        const SCALE: f32 = 1.050_701;
        let (tensor, x, spec) = self.of_one(operator)?;
        let none = self.builder.scalar_i32(0);
        let alpha = match self.element(tensor)? {
            crate::import::tensor::Element::Float32 => self.builder.scalar_f32(ALPHA),
            _ => return Err(Reason::new("its input is not FLOAT32")),
        };
        let elu = self.builder.operation(O::Elu, [x, alpha], spec);
        let scale = self.float_like(tensor, SCALE)?;
        self.emit_for(operator, O::Mul, &[elu, scale, none])
    }

    fn reciprocal(&mut self, operator: &Operator<'_>) -> Imported {
        let (tensor, x, _) = self.of_one(operator)?;
        let one = self.float_like(tensor, 1.0)?;
        let none = self.builder.scalar_i32(0);
        self.emit_for(operator, O::Div, &[one, x, none])
    }

    fn tangent(&mut self, operator: &Operator<'_>) -> Imported {
        let (_, x, spec) = self.of_one(operator)?;
        let sine = self.builder.operation(O::Sin, [x], spec.clone());
        let cosine = self.builder.extended(E::Cos, [x], spec);
        let none = self.builder.scalar_i32(0);
        self.emit_for(operator, O::Div, &[sine, cosine, none])
    }

    /// The angle of the point that is `x` above 1.
    fn arctangent(&mut self, operator: &Operator<'_>) -> Imported {
        let (tensor, x, _) = self.of_one(operator)?;
        let one = self.float_like(tensor, 1.0)?;
        self.emit_extended(operator, E::Atan2, &[x, one])
    }

    /// The hyperbolic cosine, `(e^x + e^-x) / 2`; times the hyperbolic tangent it is the sine, which loses nothing near 0.
    fn hyperbolic(&mut self, operator: &Operator<'_>, is_sine: bool) -> Imported {
        let (tensor, x, spec) = self.of_one(operator)?;
        let none = self.builder.scalar_i32(0);
        let negative = self.builder.operation(O::Neg, [x], spec.clone());
        let powers = [x, negative].map(|it| self.builder.operation(O::Exp, [it], spec.clone()));
        let sum = [powers[0], powers[1], none];
        let sum = self.builder.operation(O::Add, sum, spec.clone());
        let half = self.float_like(tensor, 0.5)?;
        if !is_sine {
            return self.emit_for(operator, O::Mul, &[sum, half, none]);
        }
        let cosine = self.builder.operation(O::Mul, [sum, half, none], spec.clone());
        let tangent = self.of_any_rank(O::Tanh, x, spec)?;
        self.emit_for(operator, O::Mul, &[cosine, tangent, none])
    }

    /// Bits that one has and the other has not, and those that both have.
    fn bitwise_or(&mut self, operator: &Operator<'_>) -> Imported {
        let inputs = [self.input(operator, 0)?, self.input(operator, 1)?];
        let spec = self.spec(self.output_tensor(operator, 0)?)?;
        let [either, both] = [E::BitwiseXor, E::BitwiseAnd]
            .map(|it| self.builder.extended(it, inputs, spec.clone()));
        self.emit_extended(operator, E::BitwiseXor, &[either, both])
    }

    fn inverted_bits(&mut self, operator: &Operator<'_>) -> Imported {
        let tensor = self.input_tensor(operator, 0)?;
        if !self.element(tensor)?.is_integer() {
            return Err(Reason::new("only integers without quantization have a counterpart"));
        }
        let spec = self.spec_with(tensor, vec![1])?;
        let size = element_size(spec.operand_type).unwrap_or(4) as usize;
        let ones = self.builder.constant_bytes(spec, &vec![0xFF; size]);
        let input = self.operand(tensor)?;
        self.emit_extended(operator, E::BitwiseXor, &[input, ones])
    }

    fn is_nan(&mut self, operator: &Operator<'_>) -> Imported {
        let (_, x, _) = self.of_one(operator)?;
        self.emit_for(operator, O::NotEqual, &[x, x])
    }

    fn compared_with_infinity(&mut self, operator: &Operator<'_>, comparison: O) -> Imported {
        let (tensor, x, spec) = self.of_one(operator)?;
        let absolute = self.builder.operation(O::Abs, [x], spec);
        let infinity = self.float_like(tensor, f32::INFINITY)?;
        self.emit_for(operator, comparison, &[absolute, infinity])
    }

    /// A quotient or product that is 0 where the second number is.
    fn without_nan(&mut self, operator: &Operator<'_>, operation: O) -> Imported {
        let (tensor, x, _) = self.of_one(operator)?;
        let (y, output) = (self.input(operator, 1)?, self.output_tensor(operator, 0)?);
        let (of_y, spec) = (self.builder.spec(y), self.spec(output)?);
        let none = self.builder.scalar_i32(0);
        let zero = self.float_like(tensor, 0.0)?;
        let truth = OperandSpec::tensor_bool8(of_y.dimensions);
        let is_zero = self.builder.operation(O::Equal, [y, zero], truth);
        let result = self.builder.operation(operation, [x, y, none], spec);
        self.emit_extended(operator, E::Select, &[is_zero, zero, result])
    }

    /// Inputs: a tensor, the least and the greatest element.
    fn clip(&mut self, operator: &Operator<'_>) -> Imported {
        let inputs = [self.input(operator, 0)?, self.input(operator, 2)?];
        let least = self.input(operator, 1)?;
        let spec = self.spec(self.output_tensor(operator, 0)?)?;
        let below = self.builder.operation(O::Minimum, inputs, spec);
        self.emit_for(operator, O::Maximum, &[below, least])
    }

    /// Elements along an axis in another order.
    fn picked(&mut self, operand: OperandId, axis: usize, places: &[i32]) -> Imported<OperandId> {
        let mut spec = self.builder.spec(operand);
        let length = u32::try_from(places.len()).unwrap_or(u32::MAX);
        spec.dimensions.get_mut(axis).into_iter().for_each(|it| *it = length);
        self.file.allow(size_of_val(places))?;
        let axis = i32::try_from(axis).map_err(|_| Reason::new("too many axes"))?;
        let inputs = [operand, self.builder.scalar_i32(axis), self.integer_vector(places)];
        Ok(self.builder.operation(O::Gather, inputs, spec))
    }

    /// The product of vectors of three numbers that is at right angles to both.
    fn cross(&mut self, operator: &Operator<'_>) -> Imported {
        let [a, b] = [self.input(operator, 0)?, self.input(operator, 1)?];
        let spec = self.builder.spec(a);
        let Some(last) =
            spec.dimensions.len().checked_sub(1).filter(|at| spec.dimensions[*at] == 3)
        else {
            return Err(Reason::new(format!(
                "its input is {:?}, expected vectors of 3 numbers",
                spec.dimensions
            )));
        };
        let none = self.builder.scalar_i32(0);
        let [next, previous] = [[1, 2, 0], [2, 0, 1]];
        let mut product = |of_a: &[i32], of_b: &[i32]| -> Imported<OperandId> {
            let inputs = [self.picked(a, last, of_a)?, self.picked(b, last, of_b)?, none];
            Ok(self.builder.operation(O::Mul, inputs, spec.clone()))
        };
        let (plus, minus) = (product(&next, &previous)?, product(&previous, &next)?);
        self.emit_for(operator, O::Sub, &[plus, minus, none])
    }

    /// Inputs: a tensor, by how much, along which axes. What leaves at the end comes back at the beginning.
    fn roll(&mut self, operator: &Operator<'_>) -> Imported {
        let input = self.input_tensor(operator, 0)?;
        let shape = self.shape(input)?;
        let (shifts, axes) =
            (self.constant_integers(operator, 1)?, self.constant_integers(operator, 2)?);
        if shifts.len() != axes.len() {
            let (found, expected) = (shifts.len(), axes.len());
            return Err(Reason::new(format!("it has {found} shifts, expected {expected} as axes")));
        }
        let mut rolled = self.operand(input)?;
        for (shift, axis) in shifts.iter().zip(axes) {
            let axis = usize::try_from(non_negative_axis(axis, shape.len())?).unwrap_or(0);
            let length = i32::try_from(shape[axis]);
            let length = length.map_err(|_| Reason::new("a length exceeds 31 bits"))?;
            self.file.allow((shape[axis] as usize).saturating_mul(4))?;
            let shift = shift.rem_euclid(length);
            let places: Vec<i32> = (length - shift..length).chain(0..length - shift).collect();
            rolled = self.picked(rolled, axis, &places)?;
        }
        let output = self.output_tensor(operator, 0)?;
        self.reshape_to(rolled, output)
    }

    /// Inputs: matrices, and how many diagonals below and above the main one are kept; all for a negative number. The others
    /// become 0.
    fn band(&mut self, operator: &Operator<'_>) -> Imported {
        let input = self.input_tensor(operator, 0)?;
        let shape = self.shape(input)?;
        let Some((_, &[rows, columns])) = shape.split_last_chunk::<2>() else {
            return Err(Reason::new("its input is no matrix"));
        };
        let (below, above) =
            (self.constant_integer(operator, 1)?, self.constant_integer(operator, 2)?);
        self.file.allow(elements(&[rows, columns])? as usize)?;
        let is_kept = |row: u32, column: u32| {
            let above_row = i64::from(column) - i64::from(row);
            (below < 0 || -above_row <= below.into()) && (above < 0 || above_row <= above.into())
        };
        let mask: Vec<u8> = (0..rows)
            .flat_map(|row| (0..columns).map(move |column| u8::from(is_kept(row, column))))
            .collect();
        let mask = self.builder.constant_bytes(OperandSpec::tensor_bool8([rows, columns]), &mask);
        let zero = self.number_like(input, 0)?;
        let operand = self.operand(input)?;
        self.emit_extended(operator, E::Select, &[mask, operand, zero])
    }

    /// Inputs: matrices, and in later versions which diagonal, which can be the main one only here.
    fn diagonal(&mut self, operator: &Operator<'_>) -> Imported {
        if operator.inputs.len() > 1 {
            let found = self.constant_integer(operator, 1)?;
            if found != 0 {
                return Err(Reason::new(format!("its diagonal is {found}, expected 0")));
            }
        }
        let input = self.input_tensor(operator, 0)?;
        let shape = self.shape(input)?;
        let Some((others, &[rows, columns])) = shape.split_last_chunk::<2>() else {
            return Err(Reason::new("its input is no matrix"));
        };
        let flat = [others, &[elements(&[rows, columns])?]].concat();
        let operand = self.operand(input)?;
        let flat_spec = self.spec_with(input, flat)?;
        let flat = self.reshape(operand, flat_spec)?;
        let length = rows.min(columns);
        self.file.allow((length as usize).saturating_mul(4))?;
        let place = |at: u32| i32::try_from(u64::from(at) * (u64::from(columns) + 1));
        let places = (0..length).map(place).collect::<Result<Vec<i32>, _>>();
        let places = places.map_err(|_| Reason::new("a place exceeds 31 bits"))?;
        let picked = self.picked(flat, others.len(), &places)?;
        let output = self.output_tensor(operator, 0)?;
        self.reshape_to(picked, output)
    }

    /// What a window of three axes sees: the greatest, or the mean of what is not padding.
    fn pool_3d(&mut self, node: &Node<'_>, operator: &Operator<'_>, is_greatest: bool) -> Imported {
        expect_channels_last(node)?;
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let [batch, inner @ .., channels] = &self.shape(input)?[..] else {
            return Err(Reason::new("its image has not five axes"));
        };
        let Ok(lengths) = <[u32; 3]>::try_from(inner.to_vec()) else {
            return Err(Reason::new("its image has not five axes"));
        };
        let (windows, strides) = (window::<3>(node, "ksize")?, window::<3>(node, "strides")?);
        let is_same = is_padded(node)?;
        let mut along = Vec::with_capacity(3);
        for ((length, window), stride) in lengths.iter().zip(windows).zip(strides) {
            along.push(Along::of(*length, window, stride, is_same)?);
        }
        let (batch, channels) = (*batch, *channels);
        let mut image = self.as_float32(input)?;
        let filler = if is_greatest { f32::NEG_INFINITY } else { 0.0 };
        let filler = self.builder.constant(OperandSpec::tensor_float32([1]), &[filler]);
        if along.iter().any(|it| it.before + it.after > 0) {
            let mut borders = vec![0, 0];
            borders.extend(along.iter().flat_map(|it| [it.before, it.after]));
            borders.extend([0, 0]);
            let mut padded = vec![batch];
            for (length, along) in lengths.iter().zip(&along) {
                let all = length.checked_add_signed(along.before + along.after);
                padded.push(all.ok_or_else(|| Reason::new("its window is too large"))?);
            }
            padded.push(channels);
            elements(&padded)?;
            let borders = self.builder.constant(OperandSpec::tensor_int32([5, 2]), &borders);
            let padded = OperandSpec::tensor_float32(padded);
            image = self.builder.extended(E::PadV2, [image, borders, filler], padded);
        }
        let function = if is_greatest { Function::Greatest } else { Function::Sum };
        let function = Function::ALL.iter().position(|it| *it == function).unwrap_or_default();
        let of_all = |inner: [i32; 3]| [1, inner[0], inner[1], inner[2], 1];
        let inputs = [
            image,
            filler,
            self.integer_vector(&of_all(windows)),
            self.integer_vector(&of_all(strides)),
            self.integer_vector(&[1; 5]),
            self.builder.scalar_i32(i32::try_from(function).unwrap_or_default()),
        ];
        let mut pooled = vec![batch];
        pooled.extend(along.iter().map(|it| it.output));
        pooled.push(channels);
        let spec = OperandSpec::tensor_float32(pooled.clone());
        let reduced = self.builder.extended(E::ReduceWindow, inputs, spec.clone());
        if is_greatest {
            return self.emit_float32(reduced, output);
        }
        // How many elements of a window there are is a product of those along each axis.
        (pooled[0], pooled[4]) = (1, 1);
        self.file.allow((elements(&pooled)? as usize).saturating_mul(4))?;
        let seen: Vec<Vec<f32>> =
            along.iter().zip(lengths).map(|(along, length)| along.seen(length)).collect();
        let counts: Vec<f32> = seen[0]
            .iter()
            .flat_map(|a| seen[1].iter().map(move |b| a * b))
            .flat_map(|ab| seen[2].iter().map(move |c| ab * c))
            .collect();
        let counts = self.builder.constant(OperandSpec::tensor_float32(pooled), &counts);
        let none = self.builder.scalar_i32(0);
        let mean = self.builder.operation(O::Div, [reduced, counts, none], spec);
        self.emit_float32(mean, output)
    }

    fn max_pool_with_argmax(&mut self, node: &Node<'_>, operator: &Operator<'_>) -> Imported {
        let numbers = [window::<2>(node, "ksize")?, window::<2>(node, "strides")?];
        let counts_images = node.truth("include_batch_in_index");
        self.max_pool_with_places(operator, numbers, is_padded(node)?, counts_images)
    }

    /// What windows see of an image, one element behind the other in place of the channels.
    fn patches(&mut self, node: &Node<'_>, operator: &Operator<'_>) -> Imported {
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let [_, height, width, _] = *self.shape(input)? else {
            return Err(Reason::new("its image has not four axes"));
        };
        let (windows, strides, rates) = (
            window::<2>(node, "ksizes")?,
            window::<2>(node, "strides")?,
            window::<2>(node, "rates")?,
        );
        let is_same = is_padded(node)?;
        let too_large = || Reason::new(format!("its windows of {windows:?} are too large"));
        let mut along = Vec::with_capacity(2);
        for (at, length) in [height, width].into_iter().enumerate() {
            let reach = (windows[at] - 1).checked_mul(rates[at]).and_then(|it| it.checked_add(1));
            along.push(Along::of(length, reach.ok_or_else(too_large)?, strides[at], is_same)?);
        }
        let along = [along[0], along[1]];
        let image = self.operand(input)?;
        let mut parts = self.seen_by_taps(image, &along, windows, rates, None)?;
        parts.push(self.builder.scalar_i32(3));
        self.emit(O::Concatenation, &parts, output)
    }

    /// What each element of a window sees of an image, one position behind the other. Around the image is 0 of floats, or an
    /// element.
    fn seen_by_taps(
        &mut self,
        image: OperandId,
        along: &[Along; 2],
        windows: [i32; 2],
        rates: [i32; 2],
        around: Option<OperandId>,
    ) -> Imported<Vec<OperandId>> {
        let too_large = || Reason::new(format!("its windows of {windows:?} are too large"));
        let taps = windows[0].checked_mul(windows[1]).filter(|taps| *taps <= MOST_TAPS);
        taps.ok_or_else(too_large)?;
        let spec = self.builder.spec(image);
        let [batch, height, width, channels] = spec.dimensions[..] else {
            return Err(Reason::new("its image has not four axes"));
        };
        let [rows, columns] = along;
        let mut image = image;
        if along.iter().any(|it| it.before + it.after > 0) {
            let borders = [0, 0, rows.before, rows.after, columns.before, columns.after, 0, 0];
            let with_borders = |length: u32, along: &Along| {
                length.checked_add_signed(along.before + along.after).ok_or_else(too_large)
            };
            let padded =
                vec![batch, with_borders(height, rows)?, with_borders(width, columns)?, channels];
            elements(&padded)?;
            let padded = OperandSpec { dimensions: padded, ..spec.clone() };
            let borders = self.builder.constant(OperandSpec::tensor_int32([4, 2]), &borders);
            image = match around {
                None => self.builder.operation(O::Pad, [image, borders], padded),
                Some(around) => self.builder.extended(E::PadV2, [image, borders, around], padded),
            };
        }
        let piece = vec![batch, rows.output, columns.output, channels];
        let piece = OperandSpec { dimensions: piece, ..spec };
        let mut seen = Vec::new();
        for row in 0..windows[0] {
            for column in 0..windows[1] {
                let begins = [0, row * rates[0], column * rates[1], 0];
                let end = |at: usize| -> Imported<i32> {
                    let last = along[at].output.cast_signed() - 1;
                    let end = last.checked_mul(along[at].stride);
                    let end = end.and_then(|it| it.checked_add(begins[at + 1] + 1));
                    end.ok_or_else(too_large)
                };
                let ends = [0, end(0)?, end(1)?, 0];
                let inputs = [
                    image,
                    self.integer_vector(&begins),
                    self.integer_vector(&ends),
                    self.integer_vector(&[1, rows.stride, columns.stride, 1]),
                    self.builder.scalar_i32(0),
                    // All of the first and the last axis.
                    self.builder.scalar_i32(0b1001),
                    self.builder.scalar_i32(0),
                ];
                seen.push(self.builder.operation(O::StridedSlice, inputs, piece.clone()));
            }
        }
        Ok(seen)
    }

    /// `MaxPoolWithArgmax`, whose outputs are the greatest element of each window and its place in the image, or with
    /// `counts_images` among all images.
    pub(in crate::import) fn max_pool_with_places(
        &mut self,
        operator: &Operator<'_>,
        [windows, strides]: [[i32; 2]; 2],
        is_same: bool,
        counts_images: bool,
    ) -> Imported {
        let input = self.input_tensor(operator, 0)?;
        let outputs = [self.output_tensor(operator, 0)?, self.output_tensor(operator, 1)?];
        let [batch, height, width, channels] = *self.shape(input)? else {
            return Err(Reason::new("its image has not four axes"));
        };
        let mut along = [Along::of(height, windows[0], strides[0], is_same)?; 2];
        along[1] = Along::of(width, windows[1], strides[1], is_same)?;
        // Numbers of all elements, as an image.
        let of_image = elements(&[height, width, channels])?;
        let count = if counts_images { elements(&[batch, of_image])? } else { of_image };
        let count = i32::try_from(count).map_err(|_| Reason::new("its image is too large"))?;
        let [from, to, by] = [0, count, 1].map(|it| self.integer_vector(&[it]));
        let places = OperandSpec::tensor_int32([count.cast_unsigned()]);
        let places = self.builder.extended(E::Range, [from, to, by], places);
        let images = if counts_images { batch } else { 1 };
        let places =
            self.reshape(places, OperandSpec::tensor_int32([images, height, width, channels]))?;
        let places = self.broadcast(places, &[batch, height, width, channels])?;
        let least = OperandSpec::tensor_float32([1]);
        let least = self.builder.constant(least, &[f32::NEG_INFINITY]);
        let nowhere = self.integer_vector(&[0]);
        let image = self.as_float32(input)?;
        let values = self.seen_by_taps(image, &along, windows, [1, 1], Some(least))?;
        let places = self.seen_by_taps(places, &along, windows, [1, 1], Some(nowhere))?;
        let mut taps = values.into_iter().zip(places);
        let Some((mut greatest, mut place)) = taps.next() else {
            return Err(Reason::new("its window has no elements"));
        };
        let (of_values, of_places) = (self.builder.spec(greatest), self.builder.spec(place));
        let truth = OperandSpec::tensor_bool8(of_values.dimensions.clone());
        for (value, at) in taps {
            let is_greater = self.builder.operation(O::Greater, [value, greatest], truth.clone());
            let choose = [is_greater, value, greatest];
            greatest = self.builder.operation(O::Select, choose, of_values.clone());
            let choose = [is_greater, at, place];
            place = self.builder.operation(O::Select, choose, of_places.clone());
        }
        self.emit_float32(greatest, outputs[0])?;
        if self.spec(outputs[1])?.operand_type == of_places.operand_type {
            self.set(outputs[1], place);
            return Ok(());
        }
        self.emit(O::Cast, &[place], outputs[1])
    }

    /// Inputs: a tensor, indexes of its first axes, updates.
    fn scatter(&mut self, operator: &Operator<'_>, function: i32, is_negative: bool) -> Imported {
        let tensors = [0, 1, 2].map(|at| self.input_tensor(operator, at));
        let [input, indexes, updates] = tensors;
        let (input, indexes, updates) = (input?, indexes?, updates?);
        let (shape, of_indexes) = (self.shape(input)?, self.shape(indexes)?);
        let [rows @ .., depth] = &of_indexes[..] else {
            return Err(Reason::new("its indexes are no vectors"));
        };
        let depth = *depth as usize;
        let Some(rest) = shape.get(depth..) else {
            return Err(Reason::new(format!(
                "its indexes have {depth} numbers, and its input {} axes",
                shape.len()
            )));
        };
        let blocks = [rows, &vec![1; depth], rest].concat();
        let mut operand = self.operand(updates)?;
        let spec = self.spec_with(updates, blocks)?;
        if is_negative {
            let of_updates = self.builder.spec(operand);
            operand = self.builder.operation(O::Neg, [operand], of_updates);
        }
        let operand = self.reshape(operand, spec)?;
        let axes: Vec<i32> =
            (0..depth).map(|axis| i32::try_from(axis).unwrap_or(i32::MAX)).collect();
        let inputs = [
            self.operand(input)?,
            self.operand(indexes)?,
            operand,
            self.integer_vector(&axes),
            self.builder.scalar_i32(function),
        ];
        self.emit_extended(operator, E::ScatterSlices, &inputs)
    }
}

/// Windows along an axis.
#[derive(Debug, Clone, Copy)]
struct Along {
    window: i32,
    stride: i32,
    /// Positions.
    output: u32,
    /// Padding.
    before: i32,
    after: i32,
}

impl Along {
    fn of(length: u32, window: i32, stride: i32, is_same: bool) -> Imported<Self> {
        let (length, size, step) = (i64::from(length), i64::from(window), i64::from(stride));
        let (output, padding) = if is_same {
            let output = (length + step - 1) / step;
            (output, ((output - 1) * step + size - length).max(0))
        } else {
            ((length - size).div_euclid(step) + 1, 0)
        };
        if output < 1 {
            return Err(Reason::new(format!(
                "a window of {window} does not fit a length of {length}"
            )));
        }
        let too_large = |_| Reason::new("its window is too large");
        Ok(Self {
            window,
            stride,
            output: u32::try_from(output).map_err(too_large)?,
            before: i32::try_from(padding / 2).map_err(too_large)?,
            after: i32::try_from(padding - padding / 2).map_err(too_large)?,
        })
    }

    /// By position: how many elements of the window are no padding.
    #[allow(clippy::cast_precision_loss)] // Windows are small.
    fn seen(self, length: u32) -> Vec<f32> {
        let position = |at: u32| {
            let begin = i64::from(at) * i64::from(self.stride) - i64::from(self.before);
            let end = (begin + i64::from(self.window)).min(length.into());
            (end - begin.max(0)) as f32
        };
        (0..self.output).map(position).collect()
    }
}
