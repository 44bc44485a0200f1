//! SELECT: `condition ? input1 : input2`, element by element, with broadcasting.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | condition | any three that broadcast | bool8 |
//! | input 1 | chosen where true | | any |
//! | input 2 | chosen where false | | as input 1 |
//! | output 0 | output | the common shape | as input 1 |
//!
//! Elements are chosen as they are stored.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::broadcast::{self, positions};
use crate::rules::movement::Elements;
use crate::shape::Shape;

/// SELECT, with broadcasting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Choice;

impl Operation for Choice {
    fn decode(_: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let values = broadcast::shape(call, call.input(1), call.input(2))?;
        let condition = call.input(0);
        let mut both = call.input(1).clone();
        both.shape = values;
        Ok(vec![broadcast::shape(call, condition, &both)?])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let output = call.output(0);
        let dimensions = self.output_dimensions(call)?;
        let common: Vec<usize> = dimensions.iter().map(|length| *length as usize).collect();
        let of = |index: usize| Ok::<_, Fault>(positions(&call.input(index).lengths()?, &common));
        let conditions = call.input(0).bools()?;
        let [then, otherwise] = [call.input(1).bytes()?, call.input(2).bytes()?];
        let mut elements = Elements::to(output, &dimensions)?;
        for (condition, (a, b)) in of(0)?.zip(of(1)?.zip(of(2)?)) {
            let (source, at) = if conditions[condition] { (then, a) } else { (otherwise, b) };
            elements.append(source, at)?;
        }
        Ok(vec![elements.finish(dimensions)])
    }
}
