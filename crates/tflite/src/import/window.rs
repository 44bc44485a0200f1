//! Windows and what they see: REDUCE_WINDOW, and elements that are spread: DILATE, STABLEHLO_PAD.

use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::{Operator, OperatorKind};
use crate::schema::{BuiltinOperator as B, BuiltinOptions2Ref, ReduceWindowFunction};
use nnhal_hal::{OperandId, OperandSpec, OperationType as O};
use nnhal_ops::extension::ExtensionOperation as E;
use nnhal_ops::operations::extension::reduce_window::Function;

/// What is added along an axis.
#[derive(Debug, Clone, Copy, Default)]
struct Padding {
    /// Before the first element; a negative number of them is cut off.
    before: i64,
    /// Behind the last element; a negative number of them is cut off.
    after: i64,
    /// Between neighbours.
    between: i64,
}

impl GraphImporter<'_, '_> {
    pub(super) fn window(&mut self, builtin: B, operator: &Operator<'_>) -> Option<Imported> {
        Some(match builtin {
            B::Dilate => self.dilate(operator),
            B::StablehloPad => self.stablehlo_pad(operator),
            B::ReduceWindow => self.reduce_window(operator),
            B::StablehloReduceWindow => self.stablehlo_reduce_window(operator),
            _ => return None,
        })
    }

    fn dilate(&mut self, operator: &Operator<'_>) -> Imported {
        let dilations = self.constant_integers(operator, 1)?;
        let between = dilations.iter().map(|dilation| match dilation {
            1.. => Ok(Padding { between: i64::from(*dilation) - 1, ..Padding::default() }),
            _ => Err(Reason::new(format!("a dilation is {dilation}, expected 1 or more"))),
        });
        let paddings = between.collect::<Imported<Vec<_>>>()?;
        self.emit_spread(operator, 2, &paddings)
    }

    fn stablehlo_pad(&mut self, operator: &Operator<'_>) -> Imported {
        let options = options!(operator, BuiltinOptions2::StablehloPadOptions);
        let low = integers(options.edge_padding_low()?)?;
        let high = integers(options.edge_padding_high()?)?;
        let interior = integers(options.interior_padding()?)?;
        if low.len() != high.len() || low.len() != interior.len() {
            return Err(Reason::new("its paddings are of different numbers of axes"));
        }
        let paddings = low.into_iter().zip(high).zip(interior);
        let paddings = paddings
            .map(|((before, after), between)| Padding { before, after, between })
            .collect::<Vec<_>>();
        self.emit_spread(operator, 1, &paddings)
    }

    fn emit_spread(
        &mut self,
        operator: &Operator<'_>,
        value: usize,
        paddings: &[Padding],
    ) -> Imported {
        let output = self.output_tensor(operator, 0)?;
        let (input, value) = (self.input(operator, 0)?, self.input(operator, value)?);
        let spread = self.spread(input, value, paddings)?;
        self.reshape_to(spread, output)
    }

    fn reduce_window(&mut self, operator: &Operator<'_>) -> Imported {
        let function = match operator.table.builtin_options_2()? {
            Some(BuiltinOptions2Ref::ReduceWindowOptions(options)) => options.reduce_function()?,
            _ => ReduceWindowFunction::Unsupported,
        };
        let function = match function {
            ReduceWindowFunction::Add => Function::Sum,
            ReduceWindowFunction::Mul => Function::Product,
            ReduceWindowFunction::Minimum => Function::Least,
            ReduceWindowFunction::Maximum => Function::Greatest,
            ReduceWindowFunction::All => Function::All,
            ReduceWindowFunction::Any => Function::Any,
            ReduceWindowFunction::Unsupported => {
                return Err(Reason::new("its function is none of the format's"));
            }
        };
        let numbers = [
            self.constant_integers(operator, 2)?,
            self.constant_integers(operator, 3)?,
            self.constant_integers(operator, 4)?,
        ];
        let (input, initial) = (self.input(operator, 0)?, self.input(operator, 1)?);
        self.emit_reduced(operator, input, initial, &numbers, function)
    }

    fn stablehlo_reduce_window(&mut self, operator: &Operator<'_>) -> Imported {
        let options = options!(operator, BuiltinOptions2::StablehloReduceWindowOptions);
        let (input, initial) = (self.input(operator, 0)?, self.input(operator, 1)?);
        let rank = self.builder.spec(input).dimensions.len();
        let or_ones = |given: Vec<i64>| if given.is_empty() { vec![1; rank] } else { given };
        let numbers = [
            integers(options.window_dimensions()?)?,
            or_ones(integers(options.window_strides()?)?),
            or_ones(integers(options.window_dilations()?)?),
        ];
        let base = or_ones(integers(options.base_dilations()?)?);
        let mut edges = integers(options.padding()?)?;
        if edges.is_empty() {
            edges = vec![0; 2 * rank];
        }
        let (edges, rest) = edges.as_chunks::<2>();
        if edges.len() != rank || base.len() != rank || !rest.is_empty() {
            return Err(Reason::new(format!("its numbers are not of {rank} axes, as the input")));
        }
        let paddings = edges.iter().zip(&base).map(|([before, after], dilation)| match dilation {
            1.. => Ok(Padding { before: *before, after: *after, between: *dilation - 1 }),
            _ => Err(Reason::new(format!("a dilation is {dilation}, expected 1 or more"))),
        });
        let paddings = paddings.collect::<Imported<Vec<_>>>()?;
        let function = self.body_of_reduction(options.body_subgraph_index()?)?;
        let spread = self.spread(input, initial, &paddings)?;
        let narrow = |numbers: Vec<i64>| {
            let numbers = numbers.into_iter().map(i32::try_from);
            numbers.collect::<Result<Vec<_>, _>>()
        };
        let [window, strides, dilations] = numbers.map(narrow);
        let too_large = |_| Reason::new("a number of its window exceeds 31 bits");
        let numbers = [
            window.map_err(too_large)?,
            strides.map_err(too_large)?,
            dilations.map_err(too_large)?,
        ];
        self.emit_reduced(operator, spread, initial, &numbers, function)
    }

    /// What a subgraph of a single operator makes of two elements.
    pub(super) fn body_of_reduction(&self, index: i32) -> Imported<Function> {
        let body = usize::try_from(index).ok().and_then(|index| self.file.graphs.get(index));
        let body = body.ok_or_else(|| Reason::new(format!("there is no subgraph {index}")))?;
        let [only] = &body.operators[..] else {
            let count = body.operators.len();
            return Err(Reason::new(format!("its body has {count} operators, expected one")));
        };
        Ok(match &only.code.kind {
            OperatorKind::Builtin(B::Add | B::StablehloAdd) => Function::Sum,
            OperatorKind::Builtin(B::Mul | B::StablehloMultiply) => Function::Product,
            OperatorKind::Builtin(B::Minimum | B::StablehloMinimum) => Function::Least,
            OperatorKind::Builtin(B::Maximum | B::StablehloMaximum) => Function::Greatest,
            OperatorKind::Builtin(B::LogicalAnd | B::StablehloAnd) => Function::All,
            OperatorKind::Builtin(B::LogicalOr | B::StablehloOr) => Function::Any,
            other => return Err(Reason::new(format!("its body is {other}"))),
        })
    }

    fn emit_reduced(
        &mut self,
        operator: &Operator<'_>,
        input: OperandId,
        initial: OperandId,
        numbers: &[Vec<i32>; 3],
        function: Function,
    ) -> Imported {
        let mut inputs = vec![input, initial];
        inputs.extend(numbers.iter().map(|numbers| self.integer_vector(numbers)));
        let number = Function::ALL.iter().position(|it| *it == function);
        let number = number.and_then(|it| i32::try_from(it).ok()).unwrap_or_default();
        inputs.push(self.builder.scalar_i32(number));
        self.emit_extended(operator, E::ReduceWindow, &inputs)
    }

    /// A tensor with elements of one value around and between its own.
    fn spread(
        &mut self,
        operand: OperandId,
        value: OperandId,
        paddings: &[Padding],
    ) -> Imported<OperandId> {
        let spec = self.builder.spec(operand);
        let mut lengths = spec.dimensions.clone();
        if lengths.len() != paddings.len() || lengths.is_empty() {
            let what = format!("{} paddings for {} axes", paddings.len(), lengths.len());
            return Err(Reason::new(what));
        }
        if lengths.contains(&0) {
            return Err(Reason::new("the shape of its input must be known here"));
        }
        let with = |dimensions: Vec<u32>| OperandSpec { dimensions, ..spec.clone() };
        let mut spread = operand;
        for (axis, padding) in paddings.iter().enumerate() {
            let count = |lengths: &[u32]| -> Imported<u32> {
                let count = lengths.iter().try_fold(1_u32, |all, length| all.checked_mul(*length));
                count.ok_or_else(|| Reason::new("its result is too large"))
            };
            if padding.between < 0 {
                let what = format!("{} elements between neighbours", padding.between);
                return Err(Reason::new(what));
            }
            if padding.between == 0 || lengths[axis] == 1 {
                continue;
            }
            // Each element becomes a row of its own, and the padding follows it.
            let [outer, inner] = [count(&lengths[..axis])?, count(&lengths[axis + 1..])?];
            let length = lengths[axis];
            let rows = self.reshape(spread, with(vec![outer, length, 1, inner]))?;
            let step = length_of(padding.between.saturating_add(1))?;
            let between = i32::try_from(padding.between).unwrap_or(i32::MAX);
            let borders = [0, 0, 0, 0, 0, between, 0, 0];
            let borders = self.builder.constant(OperandSpec::tensor_int32([4, 2]), &borders);
            let padded = with(vec![outer, length, step, inner]);
            count(&padded.dimensions)?;
            let padded = self.builder.extended(E::PadV2, [rows, borders, value], padded);
            lengths[axis] = count(&[length, step])?;
            let joined = self.reshape(padded, with(lengths.clone()))?;
            // Behind the last element there are none.
            lengths[axis] -= step - 1;
            spread = self.block(joined, &vec![0; lengths.len()], with(lengths.clone()));
        }
        let kept_of = |(padding, length): (&Padding, &u32)| {
            let kept = i64::from(*length).saturating_add(padding.before.min(0));
            kept.saturating_add(padding.after.min(0))
        };
        if paddings.iter().zip(&lengths).map(kept_of).any(|kept| kept <= 0) {
            // Nothing of the tensor is left: all is what is laid around it.
            let result = paddings.iter().zip(&lengths).map(|(padding, length)| {
                let length = i64::from(*length).saturating_add(padding.before);
                length_of(length.saturating_add(padding.after))
            });
            return self.broadcast(value, &result.collect::<Imported<Vec<u32>>>()?);
        }
        let begins: Vec<i32> =
            paddings.iter().map(|it| narrow(it.before.min(0).saturating_neg())).collect();
        let cut = paddings.iter().zip(&lengths).map(|it| length_of(kept_of(it)));
        let cut = cut.collect::<Imported<Vec<u32>>>()?;
        if cut != lengths {
            lengths = cut;
            spread = self.block(spread, &begins, with(lengths.clone()));
        }
        let edges = |it: &Padding| [it.before.max(0), it.after.max(0)];
        if paddings.iter().flat_map(edges).any(|it| it > 0) {
            for (length, padding) in lengths.iter_mut().zip(paddings) {
                let [before, after] = edges(padding);
                *length =
                    length_of(i64::from(*length).saturating_add(before).saturating_add(after))?;
            }
            let edges: Vec<i32> = paddings.iter().flat_map(edges).map(narrow).collect();
            let rank = u32::try_from(lengths.len()).unwrap_or(u32::MAX);
            let edges = self.builder.constant(OperandSpec::tensor_int32([rank, 2]), &edges);
            spread = self.builder.extended(E::PadV2, [spread, edges, value], with(lengths));
        }
        Ok(spread)
    }

    /// A block of a tensor.
    fn block(&mut self, operand: OperandId, begins: &[i32], spec: OperandSpec) -> OperandId {
        let sizes: Vec<i32> = spec.dimensions.iter().map(|it| narrow((*it).into())).collect();
        let (begins, sizes) = (self.integer_vector(begins), self.integer_vector(&sizes));
        self.builder.operation(O::Slice, [operand, begins, sizes], spec)
    }
}

/// A length that a tensor can have here.
fn length_of(length: i64) -> Imported<u32> {
    match i32::try_from(length) {
        Ok(1..) => Ok(u32::try_from(length).unwrap_or_default()),
        _ => Err(Reason::new(format!("an axis of its result has length {length}"))),
    }
}

/// A number that was compared with a length before.
fn narrow(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The integers of an attribute; none if it is missing.
pub(super) fn integers(vector: Option<planus::Vector<'_, i64>>) -> Imported<Vec<i64>> {
    let Some(vector) = vector else { return Ok(Vec::new()) };
    if vector.len() > 2 * nnhal_ops::shape::MAX_RANK {
        return Err(Reason::new(format!("an attribute has {} numbers", vector.len())));
    }
    Ok(vector.iter().collect())
}
