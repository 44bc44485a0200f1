//! SLICE, STRIDED_SLICE, SPLIT, SPLIT_V, UNPACK.

use super::movement::{elements, non_negative_axis};
use super::tensor::Element;
use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::Operator;
use crate::schema::BuiltinOptionsRef;
use nnhal_hal::{OperandId, OperandSpec, OperationType as O};
use nnhal_ops::extension::TENSOR_INT64;

impl GraphImporter<'_, '_> {
    pub(super) fn slice(&mut self, operator: &Operator<'_>) -> Imported {
        let inputs = [self.input(operator, 0)?, self.input(operator, 1)?, self.input(operator, 2)?];
        self.emit_for(operator, O::Slice, &inputs)
    }

    pub(super) fn strided_slice(&mut self, operator: &Operator<'_>) -> Imported {
        let Some(mut masks) = Masks::of(operator)? else {
            return Err(Reason::new("its ends are relative to its begins"));
        };
        let output = self.output_tensor(operator, 0)?;
        let input_tensor = self.input_tensor(operator, 0)?;
        if let (Some(from), Some(to)) = (&self.shapes[input_tensor], &self.shapes[output])
            && elements(from)? == elements(to)?
            && !self.reverses(operator)?
        {
            // It takes everything, and only names the axes anew.
            let input = self.flat_operand(input_tensor)?;
            return self.reshape_to(input, output);
        }
        let input = self.input(operator, 0)?;
        let rank = self.rank(input_tensor);
        let mut vectors = Vec::with_capacity(3);
        for at in 1..=3 {
            vectors.push(self.integers(self.input_tensor(operator, at)?)?);
        }
        let is_open = vectors.iter().any(Option::is_none);
        // Of the HAL's two slices, the one without strides takes integers.
        let is_of_integers = matches!(self.element(output)?, Element::Int32 | Element::Int64);
        let is_plain = masks.ellipsis == 0 && masks.new_axis == 0 && (is_open || !is_of_integers);
        let given = match &vectors[0] {
            Some(begins) => Some(begins.len()),
            None => match self.shape(self.input_tensor(operator, 1)?).as_deref() {
                Ok([entries]) => usize::try_from(*entries).ok(),
                _ => None,
            },
        };
        let is_whole = given.is_none_or(|given| given == rank) && self.rank(output) > 0;
        if is_plain && is_whole {
            let [begins, ends, strides] = match &vectors[..] {
                [Some(begins), Some(ends), Some(strides)] if masks.shrink != 0 => {
                    let full = masks.spell_out(rank, begins, ends, strides)?;
                    masks = Masks { begin: full.begin_mask, end: full.end_mask, ..masks };
                    [full.begins, full.ends, full.strides].map(|it| self.integer_vector(&it))
                }
                _ => self.entries(operator, &mut masks, given)?,
            };
            let inputs = [
                input,
                begins,
                ends,
                strides,
                self.builder.scalar_i32(masks.begin),
                self.builder.scalar_i32(masks.end),
                self.builder.scalar_i32(masks.shrink),
            ];
            return self.emit(O::StridedSlice, &inputs, output);
        }
        if let (true, true, Some(given @ 1..)) = (is_plain, is_open, given)
            && given <= rank
        {
            return self.completed_slice(operator, masks, given);
        }
        // The HAL has one entry for each axis: write them all out, cut, and name the axes anew.
        let full = masks.spell_out(
            rank,
            &self.constant_integers(operator, 1)?,
            &self.constant_integers(operator, 2)?,
            &self.constant_integers(operator, 3)?,
        )?;
        if rank == 0 {
            // There is nothing to cut off a scalar.
            return self.reshape_to(input, output);
        }
        let shape = self.shape(input_tensor)?;
        let cut = full.cut_shape(&shape)?;
        let spec = self.spec_with(output, cut.clone())?;
        if is_of_integers && full.strides.iter().all(|stride| *stride == 1) {
            let begins = (0..rank).map(|axis| {
                let (begin, _, _) = full.cut(axis, shape[axis])?;
                i32::try_from(begin).map_err(|_| Reason::new("a begin is out of range"))
            });
            let begins = begins.collect::<Imported<Vec<i32>>>()?;
            let sizes: Vec<i32> = cut.iter().map(|length| length.cast_signed()).collect();
            let inputs = [input, self.integer_vector(&begins), self.integer_vector(&sizes)];
            let piece = self.builder.operation(O::Slice, inputs, spec);
            return self.reshape_to(piece, output);
        }
        let inputs = [
            input,
            self.integer_vector(&full.begins),
            self.integer_vector(&full.ends),
            self.integer_vector(&full.strides),
            self.builder.scalar_i32(full.begin_mask),
            self.builder.scalar_i32(full.end_mask),
            self.builder.scalar_i32(0),
        ];
        let piece = self.builder.operation(O::StridedSlice, inputs, spec);
        self.reshape_to(piece, output)
    }

    /// A slice with fewer entries than there are axes, or that leaves none, whose entries only a run knows: the axes behind are
    /// taken whole, of which one more is put there where all others shrink.
    fn completed_slice(
        &mut self,
        operator: &Operator<'_>,
        mut masks: Masks,
        given: usize,
    ) -> Imported {
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let mut operand = self.input(operator, 0)?;
        let mut axes = self.rank(input);
        if self.rank(output) == 0 {
            let mut shape = self.shape(input)?;
            shape.push(1);
            axes += 1;
            let spec = self.spec_with(input, shape)?;
            operand = self.reshape(operand, spec)?;
        }
        if axes > 30 {
            return Err(Reason::new("it has too many axes"));
        }
        let mut inputs = vec![operand];
        let along = self.builder.scalar_i32(0);
        for (given_entries, entry) in
            self.entries(operator, &mut masks, Some(given))?.into_iter().zip([0, 0, 1])
        {
            let entries = [given_entries, self.integer_vector(&vec![entry; axes - given])];
            let spec = OperandSpec::tensor_int32([u32::try_from(axes).unwrap_or(u32::MAX)]);
            let all = [entries[0], entries[1], along];
            inputs.push(self.builder.operation(O::Concatenation, all, spec));
        }
        let whole = (1_i32 << axes) - (1 << given);
        for mask in [masks.begin | whole, masks.end | whole, masks.shrink & !whole] {
            inputs.push(self.builder.scalar_i32(mask));
        }
        self.emit(O::StridedSlice, &inputs, output)
    }

    /// Begins, ends and strides of a slice some of which only a run knows. An axis that shrinks ends one behind its begin,
    /// whatever the file says: `x[-1]` is written with the end 0. So its end is computed, and no mask counts any more.
    fn entries(
        &mut self,
        operator: &Operator<'_>,
        masks: &mut Masks,
        given: Option<usize>,
    ) -> Imported<[OperandId; 3]> {
        let [mut begins, mut ends, strides] =
            [self.input(operator, 1)?, self.input(operator, 2)?, self.input(operator, 3)?];
        let Some(given) = given.filter(|given| masks.shrink != 0 && *given <= 31) else {
            return Ok([begins, ends, strides]);
        };
        let of_mask =
            |mask: i32| -> Vec<u8> { (0..given).map(|it| u8::from(mask >> it & 1 != 0)).collect() };
        let length = u32::try_from(given).unwrap_or(u32::MAX);
        let (spec, truth) =
            (OperandSpec::tensor_int32([length]), OperandSpec::tensor_bool8([length]));
        for vector in [&mut begins, &mut ends] {
            if self.builder.spec(*vector).operand_type == TENSOR_INT64 {
                *vector = self.builder.narrowed(*vector);
            }
        }
        let [zeros, ones, greatest] =
            [0, 1, i32::MAX].map(|entry| self.integer_vector(&vec![entry; given]));
        let from_start = masks.begin & masks.shrink;
        if from_start != 0 {
            let is_at_start = self.builder.constant_bytes(truth.clone(), &of_mask(from_start));
            begins = self.builder.operation(O::Select, [is_at_start, zeros, begins], spec.clone());
        }
        let none = self.builder.scalar_i32(0);
        let next = self.builder.operation(O::Add, [begins, ones, none], spec.clone());
        // Behind the last element there is no 0: an end beyond the axis is the axis's own.
        let is_behind_all = self.builder.operation(O::Equal, [next, zeros], truth.clone());
        let next = self.builder.operation(O::Select, [is_behind_all, greatest, next], spec.clone());
        let is_shrunk = self.builder.constant_bytes(truth, &of_mask(masks.shrink));
        ends = self.builder.operation(O::Select, [is_shrunk, next, ends], spec);
        masks.begin &= !masks.shrink;
        masks.end &= !masks.shrink;
        Ok([begins, ends, strides])
    }

    /// Whether any stride is negative, or not known.
    fn reverses(&self, operator: &Operator<'_>) -> Imported<bool> {
        let strides = self.integers(self.input_tensor(operator, 3)?)?;
        Ok(strides.is_none_or(|strides| strides.iter().any(|stride| *stride < 0)))
    }

    pub(super) fn split(&mut self, operator: &Operator<'_>) -> Imported {
        let axis = self.constant_integer(operator, 0)?;
        let input_tensor = self.input_tensor(operator, 1)?;
        let axis = non_negative_axis(axis, self.rank(input_tensor))?;
        let count = i32::try_from(operator.outputs.len()).unwrap_or(0);
        let inputs = [
            self.input(operator, 1)?,
            self.builder.scalar_i32(axis),
            self.builder.scalar_i32(count),
        ];
        let specs = operator.outputs.iter().map(|output| self.spec(*output));
        let specs = specs.collect::<Imported<Vec<_>>>()?;
        let results: Vec<OperandId> =
            specs.into_iter().map(|spec| self.builder.temporary(spec)).collect();
        self.builder.operation_into(O::Split, inputs, &results);
        for (output, result) in operator.outputs.iter().zip(results) {
            self.set(*output, result);
        }
        Ok(())
    }

    pub(super) fn split_v(&mut self, operator: &Operator<'_>) -> Imported {
        let input_tensor = self.input_tensor(operator, 0)?;
        let input = self.input(operator, 0)?;
        let axis = self.constant_integer(operator, 2)?;
        let rank = self.rank(input_tensor);
        let axis = usize::try_from(non_negative_axis(axis, rank)?).unwrap_or(0);
        let mut begin = 0_i32;
        for output in &operator.outputs {
            let shape = self.shape(*output)?;
            let sizes: Vec<i32> =
                shape.iter().map(|length| i32::try_from(*length).unwrap_or(0)).collect();
            let mut begins = vec![0; rank];
            let (Some(at), Some(size)) = (begins.get_mut(axis), sizes.get(axis)) else {
                return Err(Reason::new("its parts have another rank"));
            };
            *at = begin;
            begin = begin.saturating_add(*size);
            let inputs = [input, self.integer_vector(&begins), self.integer_vector(&sizes)];
            self.emit(O::Slice, &inputs, *output)?;
        }
        Ok(())
    }

    pub(super) fn unpack(&mut self, operator: &Operator<'_>) -> Imported {
        let axis = match operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::UnpackOptions(options)) => options.axis()?,
            _ => 0,
        };
        let input_tensor = self.input_tensor(operator, 0)?;
        let input = self.input(operator, 0)?;
        let shape = self.shape(input_tensor)?;
        let axis = usize::try_from(non_negative_axis(axis, shape.len())?).unwrap_or(0);
        let mut cut = shape.clone();
        cut[axis] = 1;
        let sizes: Vec<i32> =
            cut.iter().map(|length| i32::try_from(*length).unwrap_or(0)).collect();
        for (index, output) in operator.outputs.iter().enumerate() {
            let mut begins = vec![0; shape.len()];
            begins[axis] = i32::try_from(index).unwrap_or(i32::MAX);
            let spec = self.spec_with(*output, cut.clone())?;
            let inputs = [input, self.integer_vector(&begins), self.integer_vector(&sizes)];
            let piece = self.builder.operation(O::Slice, inputs, spec);
            self.reshape_to(piece, *output)?;
        }
        Ok(())
    }
}

/// The masks of STRIDED_SLICE: a bit an entry.
pub(super) struct Masks {
    begin: i32,
    end: i32,
    ellipsis: i32,
    new_axis: i32,
    shrink: i32,
}

/// What a slice takes out of a tensor of known shape.
pub(super) struct Cut {
    /// By axis of the input: where the piece begins, its stride, and its length.
    pieces: Vec<(i64, i64, u32)>,
    /// By axis of the result: the axis of the input; `None` for a new one.
    axes: Vec<Option<usize>>,
}

impl Cut {
    /// The shape of the result.
    pub(super) fn shape(&self) -> Vec<u32> {
        self.axes.iter().map(|axis| axis.map_or(1, |axis| self.pieces[axis].2)).collect()
    }

    /// Where an element of the result comes from.
    pub(super) fn place(&self, index: &[u32], from: &mut [u32]) {
        let at = |(begin, stride, _): (i64, i64, u32), step: u32| {
            u32::try_from(begin + i64::from(step) * stride).unwrap_or(u32::MAX)
        };
        for (from, piece) in from.iter_mut().zip(&self.pieces) {
            *from = at(*piece, 0);
        }
        for (axis, step) in self.axes.iter().zip(index) {
            if let Some(axis) = *axis {
                from[axis] = at(self.pieces[axis], *step);
            }
        }
    }
}

/// A slice with an entry for each axis of the input.
pub(super) struct FullSlice {
    begins: Vec<i32>,
    ends: Vec<i32>,
    strides: Vec<i32>,
    begin_mask: i32,
    end_mask: i32,
}

impl Masks {
    /// `None` where ends are relative to begins.
    pub(super) fn of(operator: &Operator<'_>) -> Imported<Option<Self>> {
        let Some(BuiltinOptionsRef::StridedSliceOptions(options)) =
            operator.table.builtin_options()?
        else {
            return Ok(Some(Self { begin: 0, end: 0, ellipsis: 0, new_axis: 0, shrink: 0 }));
        };
        let masks = Self {
            begin: options.begin_mask()?,
            end: options.end_mask()?,
            ellipsis: options.ellipsis_mask()?,
            new_axis: options.new_axis_mask()?,
            shrink: options.shrink_axis_mask()?,
        };
        Ok((!options.offset()?).then_some(masks))
    }

    pub(super) fn spell_out(
        &self,
        rank: usize,
        begins: &[i32],
        ends: &[i32],
        strides: &[i32],
    ) -> Imported<FullSlice> {
        let count = begins.len();
        if ends.len() != count || strides.len() != count || count > 31 || rank > 31 {
            return Err(Reason::new("its vectors have different lengths"));
        }
        let has = |mask: i32, entry: usize| mask >> entry & 1 != 0;
        let of_input =
            (0..count).filter(|it| !has(self.new_axis, *it) && !has(self.ellipsis, *it)).count();
        let mut full =
            FullSlice { begins: vec![], ends: vec![], strides: vec![], begin_mask: 0, end_mask: 0 };
        let take_all = |full: &mut FullSlice| {
            full.begin_mask |= 1 << full.begins.len();
            full.end_mask |= 1 << full.begins.len();
            full.begins.push(0);
            full.ends.push(0);
            full.strides.push(1);
        };
        for entry in 0..count {
            if has(self.ellipsis, entry) {
                for _ in of_input..rank {
                    take_all(&mut full);
                }
            } else if !has(self.new_axis, entry) {
                let axis = full.begins.len();
                let is_shrunk = has(self.shrink, entry);
                full.begin_mask |= i32::from(has(self.begin, entry) && !is_shrunk) << axis;
                let begin = match has(self.begin, entry) && is_shrunk {
                    true if strides[entry] < 0 => -1,
                    true => 0,
                    false => begins[entry],
                };
                // The end of a shrunk axis is one behind its begin; -1 has nothing behind it.
                let end = if is_shrunk { begin.wrapping_add(1) } else { ends[entry] };
                let to_the_end = is_shrunk && end == 0 || has(self.end, entry) && !is_shrunk;
                full.end_mask |= i32::from(to_the_end) << axis;
                full.begins.push(begin);
                full.ends.push(end);
                full.strides.push(if is_shrunk { 1 } else { strides[entry] });
            }
        }
        while full.begins.len() < rank {
            take_all(&mut full);
        }
        if full.begins.len() == rank {
            Ok(full)
        } else {
            Err(Reason::new("it has more entries than the input has axes"))
        }
    }
}

impl Masks {
    /// What it takes out of a tensor of this shape.
    pub(super) fn cut(
        &self,
        shape: &[u32],
        begins: &[i32],
        ends: &[i32],
        strides: &[i32],
    ) -> Imported<Cut> {
        let rank = shape.len();
        let full = self.spell_out(rank, begins, ends, strides)?;
        let pieces = shape.iter().enumerate().map(|(axis, length)| full.cut(axis, *length));
        let pieces = pieces.collect::<Imported<Vec<_>>>()?;
        let has = |mask: i32, entry: usize| mask >> entry & 1 != 0;
        let is_new = |entry: &usize| has(self.new_axis, *entry) || has(self.ellipsis, *entry);
        let of_input = (0..begins.len()).filter(|entry| !is_new(entry)).count();
        let (mut axes, mut axis) = (Vec::new(), 0);
        let mut has_ellipsis = false;
        for (entry, begin) in begins.iter().enumerate() {
            if has(self.ellipsis, entry) {
                // Only the first one stands for axes.
                let count = if has_ellipsis { 0 } else { rank.saturating_sub(of_input) };
                has_ellipsis = true;
                axes.extend((axis..axis + count).map(Some));
                axis += count;
            } else if has(self.new_axis, entry) {
                axes.push(None);
            } else {
                if !has(self.shrink, entry) {
                    axes.push(Some(axis));
                } else if pieces.get(axis).is_none_or(|piece| piece.2 != 1) {
                    let what = format!("index {begin} is outside of axis {axis}");
                    return Err(Reason::new(what));
                }
                axis += 1;
            }
        }
        axes.extend((axis..rank).map(Some));
        if axes.iter().flatten().any(|axis| *axis >= rank) {
            return Err(Reason::new("it has more entries than the input has axes"));
        }
        Ok(Cut { pieces, axes })
    }
}

impl FullSlice {
    /// The shape of the piece that is cut out.
    fn cut_shape(&self, shape: &[u32]) -> Imported<Vec<u32>> {
        let cut = shape.iter().enumerate().map(|(axis, length)| Ok(self.cut(axis, *length)?.2));
        cut.collect()
    }

    /// Of an axis of this length: where the piece begins, its stride, and its length.
    fn cut(&self, axis: usize, length: u32) -> Imported<(i64, i64, u32)> {
        let length = i64::from(length);
        let stride = i64::from(self.strides[axis]);
        if stride == 0 {
            return Err(Reason::new("a stride is 0"));
        }
        let clamped = |position: i32| {
            let position = i64::from(position);
            let position = if position < 0 { position + length } else { position };
            if stride > 0 { position.clamp(0, length) } else { position.clamp(-1, length - 1) }
        };
        let is_masked = |mask: i32| mask >> axis & 1 != 0;
        let begin = match is_masked(self.begin_mask) {
            true if stride > 0 => 0,
            true => length - 1,
            false => clamped(self.begins[axis]),
        };
        let end = match is_masked(self.end_mask) {
            true if stride > 0 => length,
            true => -1,
            false => clamped(self.ends[axis]),
        };
        let distance = if stride > 0 { end - begin } else { begin - end };
        let count = if distance <= 0 { 0 } else { (distance + stride.abs() - 1) / stride.abs() };
        Ok((begin, stride, u32::try_from(count).unwrap_or(0)))
    }
}
