//! [`Array`]: what is known of a tensor before the model runs: its shape, and its elements if they
//! are integers or truth values.

use super::Imported;
use super::tensor::Element;
use crate::error::Reason;
use crate::file::File;
use std::rc::Rc;

/// Elements that are known at most. Larger tensors are computed when the model runs.
pub(super) const MOST_ELEMENTS: usize = 1 << 16;

/// What is known of a tensor before the model runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Array {
    /// All lengths; none for a scalar. A length may be 0.
    pub(super) shape: Vec<u32>,
    /// The elements in order, truth values as 0 and 1; `None` where they are not known.
    pub(super) values: Option<Rc<[i64]>>,
}

impl Array {
    pub(super) fn of_shape(shape: impl Into<Vec<u32>>) -> Self {
        Self { shape: shape.into(), values: None }
    }

    pub(super) fn vector(values: Vec<i64>) -> Self {
        let length = u32::try_from(values.len()).unwrap_or(u32::MAX);
        Self { shape: vec![length], values: Some(values.into()) }
    }

    pub(super) fn scalar(value: i64) -> Self {
        Self { shape: Vec::new(), values: Some([value].into()) }
    }

    /// A number of things, of which there are few.
    pub(super) fn number(value: usize) -> Self {
        Self::scalar(i64::try_from(value).unwrap_or(i64::MAX))
    }

    /// The same elements in another shape.
    pub(super) fn with_shape(&self, shape: Vec<u32>) -> Imported<Self> {
        let (found, expected) = (count(&self.shape)?, count(&shape)?);
        if found != expected {
            let from = &self.shape;
            return Err(Reason::new(format!(
                "its input {from:?} has {found} elements, and the shape {shape:?} has {expected}"
            )));
        }
        Ok(Self { shape, values: self.values.clone() })
    }

    pub(super) fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The elements, if they are known.
    pub(super) fn integers(&self) -> Option<&[i64]> {
        self.values.as_deref()
    }

    /// A tensor whose elements are elements of this one: `place` gives, by the indexes of the result,
    /// the index along each axis here.
    /// Beyond [`MOST_ELEMENTS`] the elements are not computed.
    pub(super) fn pick(
        &self,
        file: &File<'_>,
        shape: Vec<u32>,
        mut place: impl FnMut(&[u32], &mut [u32]),
    ) -> Imported<Self> {
        let Some(values) = &self.values else { return Ok(Self::of_shape(shape)) };
        let count = count(&shape)?;
        if count > MOST_ELEMENTS {
            return Ok(Self::of_shape(shape));
        }
        file.allow(count.saturating_mul(8))?;
        let mut from = vec![0; self.rank()];
        let mut picked = Vec::with_capacity(count);
        each_index(&shape, |index| {
            place(index, &mut from);
            picked.push(offset(&self.shape, &from).and_then(|at| values.get(at).copied()));
        });
        let picked: Option<Rc<[i64]>> = picked.into_iter().collect();
        let values = picked.ok_or_else(|| Reason::new("an index is out of range"))?;
        Ok(Self { shape, values: Some(values) })
    }

    /// The tensor repeated along axes of length 1, and along new ones in front.
    pub(super) fn broadcast(&self, file: &File<'_>, shape: &[u32]) -> Imported<Self> {
        let new = shape.len().checked_sub(self.rank());
        let fits = new.is_some_and(|new| {
            self.shape.iter().zip(&shape[new..]).all(|(from, to)| *from == 1 || from == to)
        });
        let (Some(new), true) = (new, fits) else {
            let found = &self.shape;
            return Err(Reason::new(format!("{found:?} does not broadcast to {shape:?}")));
        };
        self.pick(file, shape.to_vec(), |index, from| {
            for (axis, from) in from.iter_mut().enumerate() {
                *from = if self.shape[axis] == 1 { 0 } else { index[new + axis] };
            }
        })
    }
}

/// The number of elements of a shape.
pub(super) fn count(shape: &[u32]) -> Imported<usize> {
    if shape.contains(&0) {
        return Ok(0);
    }
    let product = shape.iter().try_fold(1_u32, |count, length| count.checked_mul(*length));
    let product = product.filter(|count| i32::try_from(*count).is_ok());
    product
        .map(|count| count as usize)
        .ok_or_else(|| Reason::new(format!("{shape:?} has more elements than 31 bits can count")))
}

/// The shape that two shapes broadcast to.
pub(super) fn common_shape(a: &[u32], b: &[u32]) -> Imported<Vec<u32>> {
    let rank = a.len().max(b.len());
    let length = |shape: &[u32], axis: usize| {
        (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis])
    };
    let common = (0..rank).map(|axis| match (length(a, axis), length(b, axis)) {
        (1, other) | (other, 1) => Ok(other),
        (a, b) if a == b => Ok(a),
        _ => Err(Reason::new(format!("{a:?} and {b:?} do not broadcast"))),
    });
    common.collect()
}

/// Visits all indexes of a shape in order.
fn each_index(shape: &[u32], mut visit: impl FnMut(&[u32])) {
    if shape.contains(&0) {
        return;
    }
    let mut index = vec![0; shape.len()];
    loop {
        visit(&index);
        let Some(axis) = (0..shape.len()).rev().find(|axis| index[*axis] + 1 < shape[*axis]) else {
            return;
        };
        index[axis] += 1;
        index[axis + 1..].fill(0);
    }
}

/// Where an element is; `None` outside.
fn offset(shape: &[u32], index: &[u32]) -> Option<usize> {
    shape.iter().zip(index).try_fold(0_usize, |offset, (length, index)| {
        (index < length).then_some(offset * *length as usize + *index as usize)
    })
}

/// Whether a value is one of a type.
pub(super) fn fits(element: Element, value: i64) -> bool {
    match element {
        Element::Int32 => i32::try_from(value).is_ok(),
        Element::Bool => value == 0 || value == 1,
        _ => true,
    }
}
