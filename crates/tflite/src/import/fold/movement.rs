//! Operators that move elements and change shapes.

use super::super::array::{Array, MOST_ELEMENTS, count};
use super::super::movement::non_negative_axis;
use super::super::slicing::Masks;
use super::{Known, Rule};
use crate::error::Reason;
use crate::import::Imported;
use crate::schema::{BuiltinOperator as B, BuiltinOptionsRef};
use std::rc::Rc;

impl Rule<'_, '_, '_> {
    pub(super) fn movement(&self, builtin: B) -> Known {
        match builtin {
            B::Reshape => self.reshape(),
            B::Squeeze => self.squeeze(),
            B::ExpandDims => self.expand_dims(),
            B::Concatenation => self.concatenation(),
            B::Pack => self.pack(),
            B::Unpack => self.unpack(),
            B::Split => self.split(),
            B::SplitV => self.split_v(),
            B::Slice => self.slice(),
            B::StridedSlice => self.strided_slice(),
            B::Gather => self.gather(),
            B::Transpose => self.transpose(),
            B::Tile => self.tile(),
            B::BroadcastTo => self.broadcast_to(),
            B::Fill => self.fill(),
            B::Pad | B::Padv2 => self.pad(),
            B::ReverseV2 => self.reverse(),
            B::OneHot => self.one_hot(),
            B::BatchToSpaceNd => self.batch_to_space(),
            B::SpaceToBatchNd => self.space_to_batch(),
            B::FullyConnected => self.fully_connected(),
            B::BatchMatmul => self.batch_matmul(),
            _ => Ok(None),
        }
    }

    /// An axis of an input, counted from the front.
    fn axis(axis: i64, rank: usize) -> Imported<usize> {
        let axis = i32::try_from(axis).unwrap_or(i32::MAX);
        Ok(usize::try_from(non_negative_axis(axis, rank)?).unwrap_or(0))
    }

    /// Whether the elements of a shape may be computed, which then counts as done.
    pub(super) fn has_room(&self, shape: &[u32]) -> Imported<bool> {
        let count = count(shape)?;
        if count > MOST_ELEMENTS {
            return Ok(false);
        }
        self.importer.file.allow(count.saturating_mul(8))?;
        Ok(true)
    }

    /// The same value everywhere.
    pub(super) fn filled(&self, shape: &[u32], value: i64) -> Imported<Array> {
        let values = self.has_room(shape)?.then_some(count(shape)?);
        let values = values.map(|count| vec![value; count].into());
        Ok(Array { shape: shape.to_vec(), values })
    }

    /// The lengths that an input holds, none of them negative.
    pub(super) fn lengths(&self, at: usize) -> Imported<Option<Vec<u32>>> {
        let Some(integers) = self.integers(at) else { return Ok(None) };
        let length = |it: &i64| {
            let length = i32::try_from(*it).ok().and_then(|it| u32::try_from(it).ok());
            length.ok_or_else(|| Reason::new(format!("a length is {it}")))
        };
        integers.iter().map(length).collect::<Imported<Vec<u32>>>().map(Some)
    }

    fn reshape(&self) -> Known {
        let Some(x) = self.input(0) else { return Ok(None) };
        let mut lengths: Vec<i64> = match self.operator.inputs.get(1).copied().flatten() {
            Some(_) => match self.integers(1) {
                Some(lengths) => lengths.to_vec(),
                None => return Ok(None),
            },
            None => match self.operator.table.builtin_options()? {
                Some(BuiltinOptionsRef::ReshapeOptions(options)) => {
                    let shape = options.new_shape()?;
                    shape.into_iter().flat_map(|it| it.iter().take(64)).map(i64::from).collect()
                }
                _ => return Ok(None),
            },
        };
        // An old way to write a scalar.
        if lengths == [0] && count(&x.shape)? == 1 {
            lengths.clear();
        }
        let open: Vec<usize> = (0..lengths.len()).filter(|axis| lengths[*axis] == -1).collect();
        if let [axis] = *open {
            lengths[axis] = 1;
            let (all, others) = (count(&x.shape)?, count(&shape_of(&lengths)?)?);
            if others == 0 || all % others != 0 {
                lengths[axis] = -1;
                let from = &x.shape;
                return Err(Reason::new(format!(
                    "its input {from:?} has {all} elements, which the lengths {lengths:?} do not divide"
                )));
            }
            lengths[axis] = i64::try_from(all / others).unwrap_or(i64::MAX);
        }
        Ok(Some(vec![x.with_shape(shape_of(&lengths)?)?]))
    }

    fn squeeze(&self) -> Known {
        let Some(x) = self.input(0) else { return Ok(None) };
        let mut is_removed = vec![false; x.rank()];
        if let Some(BuiltinOptionsRef::SqueezeOptions(options)) =
            self.operator.table.builtin_options()?
            && let Some(axes) = options.squeeze_dims()?.filter(|axes| !axes.is_empty())
        {
            for axis in axes.iter().take(64) {
                let axis = Self::axis(axis.into(), x.rank())?;
                if x.shape.get(axis) != Some(&1) {
                    return Err(Reason::new(format!("axis {axis} of {:?} is not 1", x.shape)));
                }
                is_removed[axis] = true;
            }
        } else {
            is_removed = x.shape.iter().map(|length| *length == 1).collect();
        }
        let kept = x.shape.iter().zip(is_removed).filter(|(_, removed)| !removed);
        Ok(Some(vec![x.with_shape(kept.map(|(length, _)| *length).collect())?]))
    }

    fn expand_dims(&self) -> Known {
        let (Some(x), Some(axis)) = (self.input(0), self.integer(1)) else { return Ok(None) };
        let mut shape = x.shape.clone();
        shape.insert(Self::axis(axis, x.rank() + 1)?, 1);
        Ok(Some(vec![x.with_shape(shape)?]))
    }

    fn concatenation(&self) -> Known {
        let axis = match self.operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::ConcatenationOptions(options)) => options.axis()?,
            _ => 0,
        };
        let Some(inputs) = self.all_inputs() else { return Ok(None) };
        let Some(first) = inputs.first() else { return Ok(None) };
        let axis = Self::axis(axis.into(), first.rank())?;
        if first.rank() == 0 {
            return Err(Reason::new("scalars have no axis to be joined along"));
        }
        joined(self, &inputs, axis).map(|it| Some(vec![it]))
    }

    fn pack(&self) -> Known {
        let axis = match self.operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::PackOptions(options)) => options.axis()?,
            _ => 0,
        };
        let Some(inputs) = self.all_inputs() else { return Ok(None) };
        let Some(first) = inputs.first() else { return Ok(None) };
        let axis = Self::axis(axis.into(), first.rank() + 1)?;
        let expand = |x: &&Array| {
            let mut shape = x.shape.clone();
            shape.insert(axis.min(shape.len()), 1);
            x.with_shape(shape)
        };
        let expanded = inputs.iter().map(expand).collect::<Imported<Vec<_>>>()?;
        joined(self, &expanded.iter().collect::<Vec<_>>(), axis).map(|it| Some(vec![it]))
    }

    fn all_inputs(&self) -> Option<Vec<&Array>> {
        self.inputs.iter().map(Option::as_ref).collect()
    }

    fn unpack(&self) -> Known {
        let axis = match self.operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::UnpackOptions(options)) => options.axis()?,
            _ => 0,
        };
        let Some(x) = self.input(0) else { return Ok(None) };
        let axis = Self::axis(axis.into(), x.rank())?;
        let pieces = self.pieces(x, axis, &vec![1; self.operator.outputs.len()])?;
        let without = |piece: Array| {
            let mut shape = piece.shape.clone();
            shape.remove(axis);
            piece.with_shape(shape)
        };
        pieces.into_iter().map(without).collect::<Imported<_>>().map(Some)
    }

    fn split(&self) -> Known {
        let (Some(axis), Some(x)) = (self.integer(0), self.input(1)) else { return Ok(None) };
        let axis = Self::axis(axis, x.rank())?;
        let count = u32::try_from(self.operator.outputs.len()).unwrap_or(u32::MAX);
        let length = x.shape.get(axis).copied().unwrap_or(0);
        if count == 0 || length % count != 0 {
            return Err(Reason::new(format!("{length} is not divided into {count} parts")));
        }
        self.pieces(x, axis, &vec![length / count; count as usize]).map(Some)
    }

    fn split_v(&self) -> Known {
        let (Some(x), Some(sizes), Some(axis)) = (self.input(0), self.integers(1), self.integer(2))
        else {
            return Ok(None);
        };
        let axis = Self::axis(axis, x.rank())?;
        let all = i64::from(x.shape.get(axis).copied().unwrap_or(0));
        let mut given = sizes.iter().filter(|size| **size >= 0);
        let given = given.try_fold(0_i64, |sum, size| sum.checked_add(*size)).unwrap_or(i64::MAX);
        let size = |size: &i64| {
            let size = if *size == -1 { all - given } else { *size };
            u32::try_from(size).map_err(|_| Reason::new(format!("a part has length {size}")))
        };
        let sizes = sizes.iter().map(size).collect::<Imported<Vec<u32>>>()?;
        self.pieces(x, axis, &sizes).map(Some)
    }

    /// Cuts an axis into pieces of these sizes.
    fn pieces(&self, x: &Array, axis: usize, sizes: &[u32]) -> Imported<Vec<Array>> {
        let length = x.shape.get(axis).copied().unwrap_or(0);
        let sum = sizes.iter().try_fold(0_u32, |sum, size| sum.checked_add(*size));
        if sum != Some(length) || x.rank() == 0 {
            return Err(Reason::new(format!("parts of {sizes:?} do not make up {length}")));
        }
        let mut begin = 0;
        let piece = |size: &u32| {
            let mut shape = x.shape.clone();
            shape[axis] = *size;
            let piece = x.pick(self.importer.file, shape, |index, from| {
                from.copy_from_slice(index);
                from[axis] += begin;
            });
            begin += size;
            piece
        };
        sizes.iter().map(piece).collect()
    }

    fn slice(&self) -> Known {
        let (Some(x), Some(begins), Some(sizes)) =
            (self.input(0), self.integers(1), self.integers(2))
        else {
            return Ok(None);
        };
        if begins.len() != x.rank() || sizes.len() != x.rank() {
            return Err(Reason::new("it has not a begin and a size for each axis"));
        }
        let mut begin = Vec::with_capacity(x.rank());
        let mut shape = Vec::with_capacity(x.rank());
        for (axis, length) in x.shape.iter().enumerate() {
            let (from, size) = (begins[axis], sizes[axis]);
            let rest = i64::from(*length).checked_sub(from).filter(|it| from >= 0 && *it >= 0);
            let size = if size == -1 { rest } else { Some(size).filter(|_| rest >= Some(size)) };
            let size = size.and_then(|size| u32::try_from(size).ok());
            let (Some(size), Ok(from)) = (size, u32::try_from(from)) else {
                let what = format!("begin {from} and size {} of length {length}", sizes[axis]);
                return Err(Reason::new(what));
            };
            begin.push(from);
            shape.push(size);
        }
        let cut = x.pick(self.importer.file, shape, |index, from| {
            let places = from.iter_mut().zip(index.iter().zip(&begin));
            places.for_each(|(from, (index, begin))| *from = index + begin);
        })?;
        Ok(Some(vec![cut]))
    }

    fn strided_slice(&self) -> Known {
        let Some(masks) = Masks::of(self.operator)? else { return Ok(None) };
        let (Some(x), Some(begins), Some(ends), Some(strides)) =
            (self.input(0), self.integers(1), self.integers(2), self.integers(3))
        else {
            return Ok(None);
        };
        // What is beyond 32 bits is beyond every axis too.
        let narrow = |all: &[i64]| -> Vec<i32> {
            let bound = |it: &i64| (*it).clamp(i32::MIN.into(), i32::MAX.into());
            all.iter().map(|it| i32::try_from(bound(it)).unwrap_or(0)).collect()
        };
        let (begins, ends, strides) = (narrow(begins), narrow(ends), narrow(strides));
        let cut = masks.cut(&x.shape, &begins, &ends, &strides)?;
        let shape = cut.shape();
        let piece = x.pick(self.importer.file, shape, |index, from| cut.place(index, from))?;
        Ok(Some(vec![piece]))
    }

    fn gather(&self) -> Known {
        let (mut axis, mut batch) = (0, 0);
        if let Some(BuiltinOptionsRef::GatherOptions(options)) =
            self.operator.table.builtin_options()?
        {
            (axis, batch) = (options.axis()?, options.batch_dims()?);
        }
        let (Some(x), Some(indices)) = (self.input(0), self.input(1)) else { return Ok(None) };
        let axis = Self::axis(axis.into(), x.rank())?;
        if batch != 0 || x.rank() == 0 {
            return Ok(None);
        }
        let (before, behind) = (&x.shape[..axis], &x.shape[axis + 1..]);
        let shape = [before, &indices.shape, behind].concat();
        let (Some(places), true) = (indices.integers(), x.values.is_some()) else {
            return Ok(Some(vec![Array::of_shape(shape)]));
        };
        let end = axis + indices.rank();
        let gathered = x.pick(self.importer.file, shape, |index, from| {
            let at = index[axis..end].iter().zip(&indices.shape);
            let at = at.fold(0, |at, (index, length)| at * *length as usize + *index as usize);
            let place = places.get(at).and_then(|place| u32::try_from(*place).ok());
            from[..axis].copy_from_slice(&index[..axis]);
            from[axis] = place.unwrap_or(u32::MAX);
            from[axis + 1..].copy_from_slice(&index[end..]);
        })?;
        Ok(Some(vec![gathered]))
    }

    fn transpose(&self) -> Known {
        let (Some(x), Some(axes)) = (self.input(0), self.integers(1)) else { return Ok(None) };
        let axes = axes.iter().map(|axis| Self::axis(*axis, x.rank()));
        let axes = axes.collect::<Imported<Vec<usize>>>()?;
        let mut sorted = axes.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..x.rank()) {
            return Err(Reason::new(format!("{axes:?} are not the axes of {:?}", x.shape)));
        }
        let shape = axes.iter().map(|axis| x.shape[*axis]).collect();
        let turned = x.pick(self.importer.file, shape, |index, from| {
            axes.iter().zip(index).for_each(|(axis, index)| from[*axis] = *index);
        })?;
        Ok(Some(vec![turned]))
    }

    fn tile(&self) -> Known {
        let (Some(x), Some(times)) = (self.input(0), self.lengths(1)?) else { return Ok(None) };
        if times.len() != x.rank() {
            return Err(Reason::new("it has not a number for each axis"));
        }
        let lengths = x.shape.iter().zip(&times).map(|(length, times)| length.checked_mul(*times));
        let shape: Option<Vec<u32>> = lengths.collect();
        let shape = shape.ok_or_else(|| Reason::new("a length exceeds 32 bits"))?;
        let tiled = x.pick(self.importer.file, shape, |index, from| {
            let places = from.iter_mut().zip(index.iter().zip(&x.shape));
            places.for_each(|(from, (index, length))| *from = index % length);
        })?;
        Ok(Some(vec![tiled]))
    }

    fn broadcast_to(&self) -> Known {
        let (Some(x), Some(shape)) = (self.input(0), self.lengths(1)?) else { return Ok(None) };
        x.broadcast(self.importer.file, &shape).map(|it| Some(vec![it]))
    }

    fn fill(&self) -> Known {
        let Some(shape) = self.lengths(0)? else { return Ok(None) };
        Ok(Some(vec![match self.integer(1) {
            Some(value) => self.filled(&shape, value)?,
            None => Array::of_shape(shape),
        }]))
    }

    fn pad(&self) -> Known {
        let (Some(x), Some(paddings)) = (self.input(0), self.lengths(1)?) else { return Ok(None) };
        let (sides, rest) = paddings.as_chunks::<2>();
        if sides.len() != x.rank() || !rest.is_empty() {
            return Err(Reason::new("it has not two paddings for each axis"));
        }
        let wide = |(length, [before, behind]): (&u32, &[u32; 2])| {
            length.checked_add(*before)?.checked_add(*behind)
        };
        let shape: Option<Vec<u32>> = x.shape.iter().zip(sides).map(wide).collect();
        let shape = shape.ok_or_else(|| Reason::new("a length exceeds 32 bits"))?;
        Ok(Some(vec![Array::of_shape(shape)]))
    }

    fn reverse(&self) -> Known {
        let (Some(x), Some(axes)) = (self.input(0), self.integers(1)) else { return Ok(None) };
        let mut is_reversed = vec![false; x.rank()];
        for axis in axes {
            let axis = Self::axis(*axis, x.rank())?;
            is_reversed.get_mut(axis).into_iter().for_each(|it| *it = true);
        }
        let reversed = x.pick(self.importer.file, x.shape.clone(), |index, from| {
            for (axis, from) in from.iter_mut().enumerate() {
                let last = x.shape[axis] - 1;
                *from = if is_reversed[axis] { last - index[axis] } else { index[axis] };
            }
        })?;
        Ok(Some(vec![reversed]))
    }

    fn one_hot(&self) -> Known {
        let axis = match self.operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::OneHotOptions(options)) => options.axis()?,
            _ => 0,
        };
        let (Some(indices), Some(depth)) = (self.input(0), self.lengths(1)?) else {
            return Ok(None);
        };
        let [depth] = *depth else { return Err(Reason::new("its depth is not one number")) };
        let mut shape = indices.shape.clone();
        shape.insert(Self::axis(axis.into(), shape.len() + 1)?, depth);
        Ok(Some(vec![Array::of_shape(shape)]))
    }

    fn batch_to_space(&self) -> Known {
        let (Some(x), Some(blocks), Some(crops)) =
            (self.input(0), self.lengths(1)?, self.lengths(2)?)
        else {
            return Ok(None);
        };
        let (sides, _) = crops.as_chunks::<2>();
        if sides.len() != blocks.len() || x.rank() <= blocks.len() {
            return Err(Reason::new("its blocks and crops do not go with its axes"));
        }
        let mut shape = x.shape.clone();
        for (at, (block, [before, behind])) in blocks.iter().zip(sides).enumerate() {
            let batch = shape[0].checked_div(*block).filter(|_| shape[0].is_multiple_of(*block));
            let wide = shape[at + 1].checked_mul(*block);
            let cut = wide.and_then(|it| it.checked_sub(*before)?.checked_sub(*behind));
            let (Some(batch), Some(cut)) = (batch, cut) else {
                return Err(Reason::new(format!("block {block} and its crops do not fit")));
            };
            (shape[0], shape[at + 1]) = (batch, cut);
        }
        Ok(Some(vec![Array::of_shape(shape)]))
    }

    fn space_to_batch(&self) -> Known {
        let (Some(x), Some(blocks), Some(paddings)) =
            (self.input(0), self.lengths(1)?, self.lengths(2)?)
        else {
            return Ok(None);
        };
        let (sides, _) = paddings.as_chunks::<2>();
        if sides.len() != blocks.len() || x.rank() <= blocks.len() {
            return Err(Reason::new("its blocks and paddings do not go with its axes"));
        }
        let mut shape = x.shape.clone();
        for (at, (block, [before, behind])) in blocks.iter().zip(sides).enumerate() {
            let padded = shape[at + 1].checked_add(*before).and_then(|it| it.checked_add(*behind));
            let padded = padded.filter(|it| *block > 0 && it.is_multiple_of(*block));
            let (Some(padded), Some(batch)) = (padded, shape[0].checked_mul(*block)) else {
                return Err(Reason::new(format!("block {block} and its paddings do not fit")));
            };
            (shape[0], shape[at + 1]) = (batch, padded / block);
        }
        Ok(Some(vec![Array::of_shape(shape)]))
    }

    fn fully_connected(&self) -> Known {
        let keeps_axes = match self.operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::FullyConnectedOptions(options)) => options.keep_num_dims()?,
            _ => false,
        };
        let (Some(x), Some(weights)) = (self.input(0), self.input(1)) else { return Ok(None) };
        let [units, width] = *weights.shape else {
            return Err(Reason::new("its weights are not a matrix"));
        };
        let all = count(&x.shape)?;
        let rows = all.checked_div(width as usize).filter(|rows| rows * width as usize == all);
        let rows = rows.and_then(|rows| u32::try_from(rows).ok());
        let Some(rows) = rows else {
            return Err(Reason::new(format!("{:?} has not rows of {width}", x.shape)));
        };
        Ok(Some(vec![Array::of_shape(match x.shape.split_last() {
            Some((_, before)) if keeps_axes => [before, &[units]].concat(),
            _ => vec![rows, units],
        })]))
    }

    fn batch_matmul(&self) -> Known {
        let (mut adjoint_x, mut adjoint_y) = (false, false);
        if let Some(BuiltinOptionsRef::BatchMatMulOptions(options)) =
            self.operator.table.builtin_options()?
        {
            (adjoint_x, adjoint_y) = (options.adj_x()?, options.adj_y()?);
        }
        let (Some(x), Some(y)) = (self.input(0), self.input(1)) else { return Ok(None) };
        let (Some((of_x, [a, b])), Some((of_y, [c, d]))) =
            (x.shape.split_last_chunk::<2>(), y.shape.split_last_chunk::<2>())
        else {
            return Err(Reason::new("its factors are not matrices"));
        };
        let rows = if adjoint_x { b } else { a };
        let columns = if adjoint_y { c } else { d };
        let batches = super::super::array::common_shape(of_x, of_y)?;
        Ok(Some(vec![Array::of_shape([&batches[..], &[*rows, *columns]].concat())]))
    }
}

fn shape_of(lengths: &[i64]) -> Imported<Vec<u32>> {
    let length = |it: &i64| {
        let length = i32::try_from(*it).ok().and_then(|it| u32::try_from(it).ok());
        length.ok_or_else(|| Reason::new(format!("a length is {it}")))
    };
    lengths.iter().map(length).collect()
}

/// Tensors behind each other along an axis.
fn joined(rule: &Rule<'_, '_, '_>, inputs: &[&Array], axis: usize) -> Imported<Array> {
    let mut shape = inputs[0].shape.clone();
    shape[axis] = 0;
    for x in inputs {
        let same = |at: usize| at == axis || x.shape.get(at) == shape.get(at);
        if x.rank() != shape.len() || !(0..shape.len()).all(same) {
            let (a, b) = (&inputs[0].shape, &x.shape);
            return Err(Reason::new(format!("{a:?} and {b:?} differ beside axis {axis}")));
        }
        let length = shape[axis].checked_add(x.shape[axis]);
        shape[axis] = length.ok_or_else(|| Reason::new("a length exceeds 32 bits"))?;
    }
    let values: Option<Vec<&Rc<[i64]>>> = inputs.iter().map(|x| x.values.as_ref()).collect();
    let Some(values) = values.filter(|_| rule.has_room(&shape).unwrap_or(false)) else {
        return Ok(Array::of_shape(shape));
    };
    // By the indexes in front of the axis, a run of each input.
    let runs = count(&shape[..axis])?;
    let mut all = Vec::with_capacity(count(&shape)?);
    for run in 0..runs {
        for values in &values {
            let length = values.len() / runs;
            all.extend_from_slice(&values[run * length..(run + 1) * length]);
        }
    }
    Ok(Array { shape, values: Some(all.into()) })
}
