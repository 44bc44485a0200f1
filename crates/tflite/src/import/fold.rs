//! Integers that are known before the model runs.
//!
//! A file computes many a size from SHAPE, by slicing, packing and multiplying a few integers. Where
//! the shapes are known so are the results, and the HAL wants some of them as constants.

use super::movement::non_negative_axis;
use super::slicing::Masks;
use super::tensor::Element;
use super::{GraphImporter, Imported};
use crate::file::Operator;
use crate::schema::{BuiltinOperator as B, BuiltinOptionsRef};

/// The longest vector that is computed here. Shapes are shorter.
const MOST_INTEGERS: usize = 64;

impl GraphImporter<'_, '_> {
    /// The result of an operator on known integers, if it is one of those that files compute sizes
    /// with.
    pub(super) fn fold(&self, builtin: B, operator: &Operator<'_>) -> Imported<Option<Vec<i32>>> {
        let [output] = *operator.outputs else { return Ok(None) };
        let is_one_of_these = matches!(
            builtin,
            B::StridedSlice
                | B::Slice
                | B::Pack
                | B::Concatenation
                | B::Gather
                | B::Add
                | B::Sub
                | B::Mul
                | B::FloorDiv
                | B::Maximum
                | B::Minimum
                | B::Cast
                | B::Reshape
                | B::Squeeze
                | B::ExpandDims
                | B::ReduceProd
        );
        let is_integer =
            |tensor| matches!(self.element(tensor), Ok(Element::Int32 | Element::Int64));
        if !is_one_of_these || self.rank(output) > 1 || !is_integer(output) {
            return Ok(None);
        }
        let mut known = Vec::new();
        for tensor in &operator.inputs {
            let Some(tensor) = *tensor else { return Ok(None) };
            // Only vectors, and none that came from the file alone: those stay as they are.
            if self.rank(tensor) > 1 || !is_integer(tensor) {
                return Ok(None);
            }
            match self.integers(tensor) {
                Ok(Some(integers)) if integers.len() <= MOST_INTEGERS => known.push(integers),
                _ => return Ok(None),
            }
        }
        let was_computed =
            |tensor: &Option<usize>| tensor.is_some_and(|tensor| self.folded[tensor].is_some());
        if known.is_empty() || !operator.inputs.iter().any(was_computed) {
            return Ok(None);
        }
        let result = self.folded_value(builtin, operator, &known)?;
        let fits = |result: &Vec<i32>| {
            let shape = &self.tensor(output).shape;
            let count = shape.first().map_or(1, |length| *length as usize);
            result.len() == count && count <= MOST_INTEGERS
        };
        Ok(result.filter(fits))
    }

    fn folded_value(
        &self,
        builtin: B,
        operator: &Operator<'_>,
        known: &[Vec<i32>],
    ) -> Imported<Option<Vec<i32>>> {
        Ok(match (builtin, known) {
            (B::Cast, [values])
            | (B::Reshape, [values] | [values, _])
            | (B::Squeeze, [values])
            | (B::ExpandDims, [values, _]) => Some(values.clone()),
            (B::Pack | B::Concatenation, all) => Some(all.concat()),
            (B::Gather, [values, places]) => places
                .iter()
                .map(|place| values.get(usize::try_from(*place).ok()?).copied())
                .collect(),
            (B::Slice, [values, begin, size]) => {
                let (&[begin], &[size]) = (&**begin, &**size) else { return Ok(None) };
                let rest = usize::try_from(begin).ok().and_then(|begin| values.get(begin..));
                match usize::try_from(size) {
                    Ok(size) => rest.and_then(|rest| rest.get(..size)).map(<[i32]>::to_vec),
                    Err(_) => rest.map(<[i32]>::to_vec),
                }
            }
            (B::StridedSlice, [values, begins, ends, strides]) => {
                let Some(BuiltinOptionsRef::StridedSliceOptions(options)) =
                    operator.table.builtin_options()?
                else {
                    return Ok(None);
                };
                if options.offset()? {
                    return Ok(None);
                }
                let full = Masks::of(&options)?.spell_out(1, begins, ends, strides)?;
                full.cut_vector(values)
            }
            (B::ReduceProd, [values, axes]) if !axes.is_empty() => {
                for axis in axes {
                    non_negative_axis(*axis, 1)?;
                }
                let product = values.iter().try_fold(1_i32, |product, it| product.checked_mul(*it));
                product.map(|product| vec![product])
            }
            (B::Add, [a, b]) => each(a, b, i32::checked_add),
            (B::Sub, [a, b]) => each(a, b, i32::checked_sub),
            (B::Mul, [a, b]) => each(a, b, i32::checked_mul),
            (B::Maximum, [a, b]) => each(a, b, |a, b| Some(a.max(b))),
            (B::Minimum, [a, b]) => each(a, b, |a, b| Some(a.min(b))),
            (B::FloorDiv, [a, b]) => each(a, b, |a, b| {
                let quotient = a.checked_div(b)?;
                let is_below = a % b != 0 && (a < 0) != (b < 0);
                quotient.checked_sub(i32::from(is_below))
            }),
            _ => None,
        })
    }
}

/// Element by element; a single one goes with all of the other side.
fn each(a: &[i32], b: &[i32], of: impl Fn(i32, i32) -> Option<i32>) -> Option<Vec<i32>> {
    match (a, b) {
        (&[a], b) => b.iter().map(|b| of(a, *b)).collect(),
        (a, &[b]) => a.iter().map(|a| of(*a, b)).collect(),
        (a, b) if a.len() == b.len() => a.iter().zip(b).map(|(a, b)| of(*a, *b)).collect(),
        _ => None,
    }
}
