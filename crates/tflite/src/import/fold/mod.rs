//! What is known before the model runs: shapes, and integers computed from them.
//!
//! A file computes many a size from SHAPE, by slicing, packing and multiplying a few integers. Where
//! the shapes are known so are the results, and the HAL wants some of them as constants.
//!
//! [`GraphImporter::evaluate`] is one table for both: a rule takes what is known of an operator's
//! inputs, and gives the shapes of its outputs, with their elements if those are integers or truth
//! values that follow. Operators that become one HAL operation of the same shape are not in it, unless
//! files compute sizes with them: [`nnhal_ops`] says what shapes those have (see [`super::infer`]).
//!
//! Elements are computed as 64-bit integers. What does not fit the type of the output is not folded.
//! The work and the memory are taken from what the import may make ([`File::allow`]).

mod arithmetic;
mod movement;

use super::array::{Array, MOST_ELEMENTS, count, fits};
use super::tensor::Element;
use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::Operator;
use crate::schema::BuiltinOperator as B;
use std::rc::Rc;

/// What is known of an operator.
struct Rule<'r, 'f, 'a> {
    importer: &'r GraphImporter<'f, 'a>,
    operator: &'r Operator<'r>,
    inputs: Vec<Option<Array>>,
}

/// By output; `None` where nothing is known, or there is no rule.
type Known = Imported<Option<Vec<Array>>>;

impl Rule<'_, '_, '_> {
    fn input(&self, at: usize) -> Option<&Array> {
        self.inputs.get(at)?.as_ref()
    }

    /// The elements of an input that has few.
    fn integers(&self, at: usize) -> Option<&[i64]> {
        self.input(at)?.integers()
    }

    /// The only element of an input.
    fn integer(&self, at: usize) -> Option<i64> {
        match self.integers(at)? {
            [one] => Some(*one),
            _ => None,
        }
    }
}

impl GraphImporter<'_, '_> {
    /// Says what is known of an operator's outputs. True if their elements are: then there is nothing
    /// left to import.
    pub(super) fn evaluate(&mut self, builtin: B, operator: &Operator<'_>) -> Imported<bool> {
        let known = |tensor: &Option<usize>| tensor.map_or(Ok(None), |it| self.known(it));
        let inputs = operator.inputs.iter().map(known).collect::<Imported<Vec<_>>>()?;
        let rule = Rule { importer: self, operator, inputs };
        let stores_integers = |tensor: &usize| {
            matches!(self.element(*tensor), Ok(Element::Int32 | Element::Int64 | Element::Bool))
        };
        // What cannot be folded is left to the HAL's own formulas, where the importer can do without.
        let is_arithmetic = operator.outputs.iter().all(stores_integers)
            || matches!(builtin, B::Select | B::SelectV2 | B::ZerosLike);
        let outputs = match rule.movement(builtin)? {
            None if is_arithmetic => rule.arithmetic(builtin)?,
            outputs => outputs,
        };
        let Some(mut outputs) = outputs else { return Ok(false) };
        if outputs.len() != operator.outputs.len() {
            let (found, expected) = (operator.outputs.len(), outputs.len());
            return Err(Reason::new(format!("it has {found} outputs, expected {expected}")));
        }
        for (array, tensor) in outputs.iter_mut().zip(&operator.outputs) {
            count(&array.shape)?;
            let element = self.element(*tensor);
            let is_stored = stores_integers(tensor);
            let fits = |value: &i64| element.as_ref().is_ok_and(|it| fits(*it, *value));
            if !is_stored || array.integers().is_some_and(|values| !values.iter().all(fits)) {
                array.values = None;
            }
            if let Some(values) = array.integers() {
                self.file.allow(size_of_val(values))?;
            }
        }
        let is_folded = outputs.iter().all(|array| array.values.is_some());
        for (array, tensor) in outputs.into_iter().zip(&operator.outputs) {
            self.shapes[*tensor] = Some(array.shape.clone());
            if is_folded {
                self.folded[*tensor] = Some(array);
            }
        }
        Ok(is_folded)
    }

    /// What is known of a tensor.
    pub(super) fn known(&self, tensor: usize) -> Imported<Option<Array>> {
        if let Some(array) = &self.folded[tensor] {
            return Ok(Some(array.clone()));
        }
        if self.is_constant_without_elements(tensor) {
            let shape = self.tensor(tensor).shape.clone();
            return Ok(Some(Array { shape, values: Some(Rc::from([])) }));
        }
        if !self.is_constant(tensor) {
            return Ok(self.shapes[tensor].clone().map(Array::of_shape));
        }
        let mut array = Array::of_shape(self.tensor(tensor).shape.clone());
        let is_few = count(&array.shape).is_ok_and(|count| count <= MOST_ELEMENTS);
        let is_plain = self.tensor(tensor).sparsity.is_none();
        if is_few && is_plain {
            array.values = self.stored_integers(tensor)?;
        }
        Ok(Some(array))
    }

    /// Whether nothing gives a value to a tensor, which has no elements: the shape of a scalar, for example.
    /// There are no bytes in the file either. So it is with an input for which such a shape is chosen.
    pub(in crate::import) fn is_constant_without_elements(&self, tensor: usize) -> bool {
        let is_given = self.is_input[tensor] && !self.tensor(tensor).is_left_out
            || self.operands[tensor].is_some()
            || self.shapes[tensor].is_some()
            || self.is_constant(tensor)
            || self.tensor(tensor).is_variable;
        !is_given && self.tensor(tensor).shape.contains(&0)
    }

    /// The elements of a constant of integers or truth values.
    fn stored_integers(&self, tensor: usize) -> Imported<Option<Rc<[i64]>>> {
        let element = match self.element(tensor) {
            Ok(element @ (Element::Int32 | Element::Int64 | Element::Bool)) => element,
            _ => return Ok(None),
        };
        let bytes = self.stored_bytes(tensor)?;
        // Operators may share a constant.
        self.file.allow(bytes.len().saturating_mul(8 / element.bytes()))?;
        Ok(Some(match element {
            Element::Int64 => {
                bytes.as_chunks().0.iter().map(|it| i64::from_le_bytes(*it)).collect()
            }
            Element::Int32 => {
                bytes.as_chunks().0.iter().map(|it| i32::from_le_bytes(*it).into()).collect()
            }
            _ => bytes.iter().map(|byte| i64::from(*byte != 0)).collect(),
        }))
    }
}
