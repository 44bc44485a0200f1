//! What the bidirectional operations share: the use of the auxiliary input, and outputs that are
//! merged or not.

use crate::call::Call;
use crate::error::Fault;
use crate::rules::recurrence::{Extent, Extents, Inputs, Rows, Sequences, is_given, zeros};
use crate::shape::Shape;

/// What the two cells do with the auxiliary input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linking {
    /// There is none: both read the input.
    None,
    /// It has no weights: it is the backward cell's input.
    Parallel,
    /// Both read it besides the input, each with weights of its own.
    Cross,
}

impl Linking {
    /// What the presence of the auxiliary input and of auxiliary weights says; `None` if that is not
    /// known.
    ///
    /// # Errors
    /// There are weights and no input for them.
    pub fn of(
        call: &Call<'_>,
        auxiliary_input: usize,
        has_weights: Option<bool>,
    ) -> Result<Option<Self>, Fault> {
        Ok(match (is_given(call, auxiliary_input), has_weights) {
            (Some(false), Some(true)) => {
                let expected = "a value, as there are auxiliary weights";
                return Err(call.input(auxiliary_input).wrong("value", "left out", expected));
            }
            (Some(false), _) => Some(Self::None),
            (_, Some(true)) => Some(Self::Cross),
            (Some(true), Some(false)) => Some(Self::Parallel),
            _ => None,
        })
    }
}

/// What the inputs say of the lengths of the forward and the backward cell's arguments.
///
/// # Errors
/// Input and auxiliary input contradict each other.
pub fn learn_inputs(
    call: &Call<'_>,
    auxiliary_input: usize,
    linking: Option<Linking>,
    is_time_major: bool,
) -> Result<[Extents; 2], Fault> {
    let (input, auxiliary) = (call.input(0), call.input(auxiliary_input));
    let steps = |size| Sequences::extents(is_time_major, size);
    let mut forward = Extents::default();
    forward.learn(input, steps(Extent::Input))?;
    let mut backward = Extents::default().with_sequences_of(&forward);
    match linking {
        Some(Linking::None) => backward.learn(input, steps(Extent::Input))?,
        Some(Linking::Parallel) => backward.learn(auxiliary, steps(Extent::Input))?,
        Some(Linking::Cross) => {
            for extents in [&mut forward, &mut backward] {
                extents.learn(input, steps(Extent::Input))?;
                extents.learn(auxiliary, steps(Extent::Auxiliary))?;
            }
        }
        None => {}
    }
    Ok([forward, backward])
}

/// What the forward and the backward cell read.
pub fn inputs<'call, 'value>(
    call: &'call Call<'value>,
    auxiliary_input: usize,
    linking: Option<Linking>,
) -> [Inputs<'call, 'value>; 2] {
    let input = call.input(0);
    let auxiliary = call.optional(auxiliary_input);
    match linking {
        Some(Linking::Cross) => [Inputs { input, auxiliary }; 2],
        Some(Linking::Parallel) => {
            [input, auxiliary.unwrap_or(input)].map(|input| Inputs { input, auxiliary: None })
        }
        Some(Linking::None) | None => [Inputs { input, auxiliary: None }; 2],
    }
}

/// Demands as many outputs as an argument's value says, with or without the states of both
/// directions, which are `states` outputs more.
///
/// # Errors
/// There are others.
pub fn expect_outputs(call: &Call<'_>, is_merged: bool, states: usize) -> Result<(), Fault> {
    let (least, merged) = if is_merged { (1, "merged") } else { (2, "not merged") };
    let found = call.outputs().len();
    if found == least || found == least + states {
        return Ok(());
    }
    let expected = format!("{least} or {}, as they are {merged}", least + states);
    Err(call.wrong("number of outputs", found, expected))
}

/// The shapes of the outputs, from their first two axes and the lengths of the forward and the
/// backward cell's steps.
///
/// # Errors
/// A row of the merged output is too long.
pub fn output_shapes(
    call: &Call<'_>,
    [outer, inner]: [Option<u32>; 2],
    [forward, backward]: [Option<u32>; 2],
    is_merged: bool,
) -> Result<Vec<Shape>, Fault> {
    if !is_merged {
        return Ok([forward, backward].map(|size| Shape::new([outer, inner, size])).into());
    }
    let merged = match (forward, backward) {
        (Some(forward), Some(backward)) => {
            Some(forward.checked_add(backward).ok_or_else(|| {
                let found = format!("{forward} and {backward}");
                call.wrong("length of the merged steps", found, "below 2^32 together")
            })?)
        }
        _ => None,
    };
    Ok(vec![Shape::new([outer, inner, merged])])
}

/// The outputs while they are computed.
#[derive(Debug)]
pub struct Steps {
    first: Vec<f32>,
    second: Option<Vec<f32>>,
    forward: usize,
    backward: usize,
}

impl Steps {
    /// Room for the steps of both cells, whose lengths are given.
    ///
    /// # Errors
    /// Memory cannot be had.
    pub fn new(
        call: &Call<'_>,
        dimensions: &[Vec<u32>],
        [forward, backward]: [usize; 2],
        is_merged: bool,
    ) -> Result<Self, Fault> {
        let first = zeros(call.output(0), &dimensions[0])?;
        let second = if is_merged { None } else { Some(zeros(call.output(1), &dimensions[1])?) };
        Ok(Self { first, second, forward, backward })
    }

    /// Where the forward cell writes.
    pub fn forward(&mut self) -> Rows<'_> {
        let behind = if self.second.is_some() { 0 } else { self.backward };
        Rows { elements: &mut self.first, width: self.forward + behind, offset: 0 }
    }

    /// Where the backward cell writes.
    pub fn backward(&mut self) -> Rows<'_> {
        match &mut self.second {
            Some(elements) => Rows { elements, width: self.backward, offset: 0 },
            None => Rows {
                elements: &mut self.first,
                width: self.forward + self.backward,
                offset: self.forward,
            },
        }
    }

    /// The elements of one output or two.
    pub fn into_elements(self) -> impl Iterator<Item = Vec<f32>> {
        std::iter::once(self.first).chain(self.second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::Example;
    use nnhal_hal::{OperandSpec, OperationType};

    #[test]
    fn presence_decides_the_linking() {
        let tensor = || OperandSpec::tensor_float32([2]);
        let empty = Example::new(OperationType::Relu);
        let omitted = empty.clone().omitted(tensor());
        let given = empty.clone().input(tensor(), &[1.0, 2.0]);
        let to_come = empty.input_to_come(tensor());
        let linking = |example: &Example, weights| Linking::of(&example.call(), 0, weights);
        assert_eq!(linking(&omitted, Some(false)), Ok(Some(Linking::None)));
        assert_eq!(linking(&omitted, None), Ok(Some(Linking::None)));
        assert_eq!(linking(&given, Some(false)), Ok(Some(Linking::Parallel)));
        assert_eq!(linking(&given, Some(true)), Ok(Some(Linking::Cross)));
        assert_eq!(linking(&given, None), Ok(None));
        assert_eq!(linking(&to_come, Some(true)), Ok(Some(Linking::Cross)));
        assert_eq!(linking(&to_come, Some(false)), Ok(None));
        assert!(linking(&omitted, Some(true)).is_err());
    }

    #[test]
    fn merged_rows_are_side_by_side() {
        let output = || OperandSpec::tensor_float32([]);
        let example = Example::new(OperationType::Relu).output(output()).output(output());
        let run = |dimensions: &[Vec<u32>], is_merged| {
            let mut steps = Steps::new(&example.call(), dimensions, [1, 2], is_merged).unwrap();
            steps.forward().write(1, &[1.0]);
            steps.backward().write(0, &[2.0, 3.0]);
            steps.into_elements().collect::<Vec<_>>()
        };
        let merged = run(&[vec![2, 1, 3]], true);
        assert_eq!(merged, [[0.0, 2.0, 3.0, 1.0, 0.0, 0.0]]);
        let separate = run(&[vec![2, 1, 1], vec![2, 1, 2]], false);
        assert_eq!(separate, [vec![0.0, 1.0], vec![2.0, 3.0, 0.0, 0.0]]);
    }

    #[test]
    fn a_merged_row_may_be_too_long() {
        let example = Example::new(OperationType::Relu);
        let shapes = |backward, is_merged| {
            let sizes = [Some(u32::MAX), backward];
            output_shapes(&example.call(), [None, Some(2)], sizes, is_merged)
        };
        assert!(shapes(Some(1), true).is_err());
        assert_eq!(shapes(None, true), Ok(vec![Shape::new([None, Some(2), None])]));
        assert_eq!(shapes(Some(1), false).map(|shapes| shapes.len()), Ok(2));
    }
}
