//! Operators that compute: element by element, reductions, and those that ask for a shape.

use super::super::array::{Array, common_shape};
use super::super::movement::non_negative_axis;
use super::{Known, Rule};
use crate::error::Reason;
use crate::schema::{BuiltinOperator as B, BuiltinOptionsRef};

impl Rule<'_, '_, '_> {
    pub(super) fn arithmetic(&self, builtin: B) -> Known {
        match builtin {
            B::Shape => self.shape(),
            B::Rank => Ok(self.input(0).map(|x| vec![Array::number(x.rank())])),
            B::ZerosLike => self.unary(|_| Some(0), true),
            B::Cast => self.unary(Some, false),
            B::Abs => self.unary(i64::checked_abs, false),
            B::Neg => self.unary(i64::checked_neg, false),
            B::Sign => self.unary(|a| Some(a.signum()), false),
            B::Square => self.unary(|a| a.checked_mul(a), false),
            B::LogicalNot => self.unary(|a| Some(i64::from(a == 0)), false),
            B::Add => self.binary(i64::checked_add),
            B::Sub => self.binary(i64::checked_sub),
            B::Mul => self.binary(i64::checked_mul),
            // Towards zero, as C divides.
            B::Div => self.binary(i64::checked_div),
            B::FloorDiv => self.binary(floor_div),
            B::FloorMod => self.binary(floor_mod),
            B::Maximum => self.binary(|a, b| Some(a.max(b))),
            B::Minimum => self.binary(|a, b| Some(a.min(b))),
            B::Pow => self.binary(|a, b| a.checked_pow(u32::try_from(b).ok()?)),
            B::SquaredDifference => self.binary(|a, b| {
                let difference = a.checked_sub(b)?;
                difference.checked_mul(difference)
            }),
            B::Equal => self.compare(|a, b| a == b),
            B::NotEqual => self.compare(|a, b| a != b),
            B::Less => self.compare(|a, b| a < b),
            B::LessEqual => self.compare(|a, b| a <= b),
            B::Greater => self.compare(|a, b| a > b),
            B::GreaterEqual => self.compare(|a, b| a >= b),
            B::LogicalAnd => self.compare(|a, b| a != 0 && b != 0),
            B::LogicalOr => self.compare(|a, b| a != 0 || b != 0),
            B::Select => self.select(true),
            B::SelectV2 => self.select(false),
            B::Sum => self.reduce(Some(0), i64::checked_add),
            B::ReduceProd => self.reduce(Some(1), i64::checked_mul),
            B::ReduceMax => self.reduce(None, |a, b| Some(a.max(b))),
            B::ReduceMin => self.reduce(None, |a, b| Some(a.min(b))),
            B::ReduceAny => self.reduce(Some(0), |a, b| Some(a | b)),
            B::ReduceAll => self.reduce(Some(1), |a, b| Some(a & b)),
            B::SegmentSum => self.segments(0, i64::checked_add),
            B::UnsortedSegmentSum => self.segments(0, i64::checked_add),
            B::UnsortedSegmentProd => self.segments(1, i64::checked_mul),
            B::Range => self.range(),
            B::BroadcastArgs => self.broadcast_args(),
            _ => Ok(None),
        }
    }

    fn shape(&self) -> Known {
        let lengths = |x: &Array| x.shape.iter().map(|length| i64::from(*length)).collect();
        Ok(self.input(0).map(|x| vec![Array::vector(lengths(x))]))
    }

    /// Element by element; `of_any`: the elements need not be known.
    fn unary(&self, of: impl Fn(i64) -> Option<i64>, of_any: bool) -> Known {
        let Some(x) = self.input(0) else { return Ok(None) };
        let values = match &x.values {
            Some(values) => values.iter().map(|a| of(*a)).collect(),
            None if of_any => self.filled(&x.shape, 0)?.values,
            None => None,
        };
        Ok(Some(vec![Array { shape: x.shape.clone(), values }]))
    }

    fn binary(&self, of: impl Fn(i64, i64) -> Option<i64>) -> Known {
        let (Some(a), Some(b)) = (self.input(0), self.input(1)) else { return Ok(None) };
        let shape = common_shape(&a.shape, &b.shape)?;
        if a.values.is_none() || b.values.is_none() {
            return Ok(Some(vec![Array::of_shape(shape)]));
        }
        let file = self.importer.file;
        let (a, b) = (a.broadcast(file, &shape)?, b.broadcast(file, &shape)?);
        let values = a.values.zip(b.values);
        let values = values.and_then(|(a, b)| a.iter().zip(&*b).map(|(a, b)| of(*a, *b)).collect());
        Ok(Some(vec![Array { shape, values }]))
    }

    fn compare(&self, of: impl Fn(i64, i64) -> bool) -> Known {
        self.binary(|a, b| Some(i64::from(of(a, b))))
    }

    /// With `by_row`, a vector of conditions may choose along the first axis.
    fn select(&self, by_row: bool) -> Known {
        let (Some(condition), Some(a), Some(b)) = (self.input(0), self.input(1), self.input(2))
        else {
            return Ok(None);
        };
        let shape = common_shape(&a.shape, &b.shape)?;
        let is_vector = condition.rank() == 1 && shape.len() > 1 && by_row;
        let (condition, shape) = if is_vector {
            let mut column = vec![1; shape.len()];
            column[0] = condition.shape[0];
            (condition.with_shape(column)?, shape)
        } else {
            (condition.clone(), common_shape(&shape, &condition.shape)?)
        };
        let file = self.importer.file;
        let spread = |array: &Array| Ok::<_, Reason>(array.broadcast(file, &shape)?.values);
        let all_known = [&condition, a, b].iter().all(|it| it.values.is_some());
        let values = if all_known {
            match (spread(&condition)?, spread(a)?, spread(b)?) {
                (Some(condition), Some(a), Some(b)) => {
                    let pairs = condition.iter().zip(a.iter().zip(&*b));
                    Some(pairs.map(|(which, (a, b))| if *which != 0 { *a } else { *b }).collect())
                }
                _ => None,
            }
        } else {
            None
        };
        Ok(Some(vec![Array { shape, values }]))
    }

    fn reduce(&self, first: Option<i64>, of: impl Fn(i64, i64) -> Option<i64>) -> Known {
        let keep = match self.operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::ReducerOptions(options)) => options.keep_dims()?,
            _ => false,
        };
        let (Some(x), Some(axes)) = (self.input(0), self.integers(1)) else { return Ok(None) };
        let mut is_reduced = vec![false; x.rank()];
        for axis in axes {
            let axis = i32::try_from(*axis).unwrap_or(i32::MAX);
            let axis = usize::try_from(non_negative_axis(axis, x.rank())?).unwrap_or(0);
            if let Some(is_reduced) = is_reduced.get_mut(axis) {
                *is_reduced = true;
            }
        }
        // The kept axes come first, then the reduced ones: a row of those for each result.
        let (kept, reduced): (Vec<usize>, Vec<usize>) =
            (0..x.rank()).partition(|axis| !is_reduced[*axis]);
        let lengths = |axes: &[usize]| axes.iter().map(|axis| x.shape[*axis]).collect::<Vec<u32>>();
        let mut shape = lengths(&kept);
        if keep {
            shape.clone_from(&x.shape);
            reduced.iter().for_each(|axis| shape[*axis] = 1);
        }
        let order = [&kept[..], &reduced[..]].concat();
        let sorted = x.pick(self.importer.file, lengths(&order), |index, from| {
            order.iter().zip(index).for_each(|(axis, index)| from[*axis] = *index);
        })?;
        let Some(values) = sorted.values else { return Ok(Some(vec![Array::of_shape(shape)])) };
        let row = super::count(&lengths(&reduced))?;
        let results = super::count(&lengths(&kept))?;
        let result = |at: usize| {
            let mut row = values.get(at * row..(at + 1) * row)?.iter().copied();
            let first = first.or_else(|| row.next())?;
            row.try_fold(first, &of)
        };
        let values = (0..results).map(result).collect();
        Ok(Some(vec![Array { shape, values }]))
    }

    /// Elements of a vector combined by the number of a segment that each has.
    fn segments(&self, first: i64, of: impl Fn(i64, i64) -> Option<i64>) -> Known {
        let (Some(x), Some(segments)) = (self.input(0), self.integers(1)) else { return Ok(None) };
        let count = match self.operator.inputs.get(2) {
            Some(_) => self.integer(2),
            None => Some(segments.last().map_or(0, |last| last.saturating_add(1))),
        };
        let (Some(values), Some(count), 1) = (x.integers(), count, x.rank()) else {
            return Ok(None);
        };
        let shape = vec![u32::try_from(count).map_err(|_| Reason::new("no number of segments"))?];
        if values.len() != segments.len() || !self.has_room(&shape)? {
            return Ok(None);
        }
        let mut results = vec![Some(first); shape[0] as usize];
        for (value, segment) in values.iter().zip(segments) {
            let result = usize::try_from(*segment).ok().and_then(|at| results.get_mut(at));
            // Those with a negative number are left out.
            let Some(result) = result else { continue };
            *result = result.and_then(|result| of(result, *value));
        }
        Ok(Some(vec![Array { shape, values: results.into_iter().collect() }]))
    }

    fn range(&self) -> Known {
        let (Some(start), Some(limit), Some(step)) =
            (self.integer(0), self.integer(1), self.integer(2))
        else {
            return Ok(None);
        };
        let distance = i128::from(limit) - i128::from(start);
        if step == 0 || distance != 0 && (distance > 0) != (step > 0) {
            return Err(Reason::new(format!("from {start}, {limit} is not reached by {step}")));
        }
        let count = distance.unsigned_abs().div_ceil(i128::from(step).unsigned_abs());
        let length = u32::try_from(count).map_err(|_| Reason::new("it has too many elements"))?;
        let shape = vec![length];
        if !self.has_room(&shape)? {
            return Ok(Some(vec![Array::of_shape(shape)]));
        }
        let value = |index: i64| index.checked_mul(step)?.checked_add(start);
        let values = (0..i64::from(length)).map(value).collect();
        Ok(Some(vec![Array { shape, values }]))
    }

    /// The shape that two shapes broadcast to, as integers.
    fn broadcast_args(&self) -> Known {
        let (Some(a), Some(b)) = (self.lengths(0)?, self.lengths(1)?) else { return Ok(None) };
        let common = common_shape(&a, &b)?;
        Ok(Some(vec![Array::vector(common.into_iter().map(i64::from).collect())]))
    }
}

fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    quotient.checked_sub(i64::from(a % b != 0 && (a < 0) != (b < 0)))
}

fn floor_mod(a: i64, b: i64) -> Option<i64> {
    let rest = a.checked_rem(b)?;
    Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
}
