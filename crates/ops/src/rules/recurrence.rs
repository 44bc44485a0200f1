//! What the recurrent operations share: optional arguments that go together, lengths that many
//! arguments have in common, sequences in either layout, and sums of products.

use crate::call::{Argument, Call, Value};
use crate::error::Fault;
use crate::rules::real;
use crate::shape::Shape;

/// Whether an optional input has a value; one behind the end of the list has none. `None` if that is
/// not known: an input of the model may be left out by a request.
pub fn is_given(call: &Call<'_>, index: usize) -> Option<bool> {
    match call.inputs().get(index).map(|argument| argument.value) {
        None | Some(Value::Omitted) => Some(false),
        Some(Value::Known(_) | Value::Given) => Some(true),
        Some(Value::NotKnown) => None,
    }
}

/// Demands that optional inputs all have values or all have none, as far as that is known. Says
/// which it is.
///
/// # Errors
/// One has a value and another has none.
pub fn expect_together(call: &Call<'_>, indexes: &[usize]) -> Result<Option<bool>, Fault> {
    let is =
        |wanted: bool| indexes.iter().copied().find(|index| is_given(call, *index) == Some(wanted));
    match (is(true), is(false)) {
        (Some(given), Some(omitted)) => {
            let expected = format!("a value, as input {given} has one");
            Err(call.input(omitted).wrong("value", "left out", expected))
        }
        (given, omitted) => Ok(given.map(|_| true).or(omitted.map(|_| false))),
    }
}

/// A length that arguments of a recurrent operation share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Number of sequences; may be 0.
    Batch,
    /// Number of steps of each sequence; may be 0.
    Time,
    /// Elements of a step of the input.
    Input,
    /// Elements of a step of the auxiliary input.
    Auxiliary,
    /// Elements of the cell's inner state.
    Units,
    /// Elements of a step of the output.
    Output,
}

/// What is known of the lengths that arguments share. Each argument adds what it knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extents([Option<u32>; 6]);

impl Extents {
    /// What is known of a length.
    pub fn get(&self, extent: Extent) -> Option<u32> {
        self.0[extent as usize]
    }

    /// A shape with these extents, by axis.
    pub fn shape<const N: usize>(&self, extents: [Extent; N]) -> Shape {
        Shape::new(extents.map(|extent| self.get(extent)))
    }

    /// The same, with batch and time as another has them: the two directions of a bidirectional
    /// operation share them.
    #[must_use]
    pub fn with_sequences_of(mut self, other: &Self) -> Self {
        for extent in [Extent::Batch, Extent::Time] {
            self.0[extent as usize] = other.get(extent);
        }
        self
    }

    /// Demands that an argument has these lengths, by axis, and learns those it did not know.
    ///
    /// # Errors
    /// The rank is another, a length contradicts an argument before, or one that is neither batch
    /// nor time is 0.
    pub fn learn<const N: usize>(
        &mut self,
        argument: &Argument<'_>,
        extents: [Extent; N],
    ) -> Result<(), Fault> {
        let lengths: [_; N] = argument.known_lengths_of()?;
        for (axis, (extent, length)) in extents.into_iter().zip(lengths).enumerate() {
            argument.expect_length(axis, self.get(extent))?;
            if length == Some(0) && !matches!(extent, Extent::Batch | Extent::Time) {
                let expected = format!("no length of 0 along axis {axis}");
                return Err(argument.wrong("shape", &argument.shape, expected));
            }
            self.0[extent as usize] = self.get(extent).or(length);
        }
        Ok(())
    }
}

/// How the steps of all sequences of a batch are in a tensor of rank 3: its rows are steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sequences {
    /// Number of sequences.
    pub batch: usize,
    /// Number of steps of each.
    pub time: usize,
    /// `[time, batch, size]`; otherwise `[batch, time, size]`.
    pub is_time_major: bool,
}

/// Which end of a sequence comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The first step.
    Forward,
    /// The last step.
    Backward,
}

impl Sequences {
    /// The extents by axis of a tensor with steps of a given size.
    pub fn extents(is_time_major: bool, size: Extent) -> [Extent; 3] {
        if is_time_major {
            [Extent::Time, Extent::Batch, size]
        } else {
            [Extent::Batch, Extent::Time, size]
        }
    }

    /// The layout of a tensor whose first two axes are the sequences'.
    ///
    /// # Errors
    /// [`Fault::NotKnown`], or the rank is not 3.
    pub fn of(input: &Argument<'_>, is_time_major: bool) -> Result<Self, Fault> {
        let [outer, inner, _] = input.lengths_of()?;
        let (time, batch) = if is_time_major { (outer, inner) } else { (inner, outer) };
        Ok(Self { batch, time, is_time_major })
    }

    /// A single step of each sequence, in a tensor of rank 2.
    pub fn single_step(batch: usize) -> Self {
        Self { batch, time: 1, is_time_major: true }
    }

    /// The rows of one sequence in the order of a direction.
    pub fn rows(self, sequence: usize, direction: Direction) -> impl Iterator<Item = usize> {
        let Self { batch, time, is_time_major } = self;
        (0..time).map(move |step| {
            let step = match direction {
                Direction::Forward => step,
                Direction::Backward => time - 1 - step,
            };
            if is_time_major { step * batch + sequence } else { sequence * time + step }
        })
    }
}

/// The dimensions of all outputs, for computing them.
///
/// # Errors
/// [`Fault::NotKnown`]
pub fn dimensions(call: &Call<'_>, shapes: &[Shape]) -> Result<Vec<Vec<u32>>, Fault> {
    let known = shapes.iter().map(Shape::to_known).collect::<Option<_>>();
    known.ok_or_else(|| call.not_known("dimensions"))
}

/// Room for an output, filled with 0.
///
/// # Errors
/// As [`Argument::allocate`].
pub fn zeros(output: &Argument<'_>, dimensions: &[u32]) -> Result<Vec<f32>, Fault> {
    output.collect(dimensions, std::iter::repeat(0.0))
}

/// Where a cell's steps come from.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'call, 'value> {
    /// The steps.
    pub input: &'call Argument<'value>,
    /// The steps of the auxiliary input, if it has weights.
    pub auxiliary: Option<&'call Argument<'value>>,
}

/// The tensor that a layer writes its steps to: each row, or a part of each row.
#[derive(Debug)]
pub struct Rows<'a> {
    /// All elements.
    pub elements: &'a mut [f32],
    /// Elements of a row.
    pub width: usize,
    /// Where in its row a step begins.
    pub offset: usize,
}

impl Rows<'_> {
    /// Stores a step, rounded.
    pub fn write(&mut self, row: usize, step: &[f64]) {
        write_row(&mut self.elements[row * self.width + self.offset..], step);
    }
}

/// Stores numbers, rounded.
pub fn write_row(elements: &mut [f32], numbers: &[f64]) {
    for (element, number) in elements.iter_mut().zip(numbers) {
        *element = real::round(*number);
    }
}

/// Elements in double precision.
///
/// # Errors
/// As [`Call::collect`].
pub fn to_f64(call: &Call<'_>, elements: &[f32]) -> Result<Vec<f64>, Fault> {
    call.collect(elements.len(), elements.iter().copied().map(f64::from))
}

/// `x` within a range; NaN stays.
pub fn clip(x: f64, least: f64, greatest: f64) -> f64 {
    if x < least {
        least
    } else if x > greatest {
        greatest
    } else {
        x
    }
}

/// Adds to each sum the product of a row of weights with the input: `sums += weights * input`.
/// Everything in double precision.
///
/// # Errors
/// [`Fault::Interrupted`]
pub fn add_products(
    call: &Call<'_>,
    sums: &mut [f64],
    weights: &[f32],
    input: impl ExactSizeIterator<Item = f64> + Clone,
) -> Result<(), Fault> {
    for (sum, weights) in sums.iter_mut().zip(weights.chunks_exact(input.len().max(1))) {
        let mut products = -0.0;
        call.each(weights.iter().zip(input.clone()), |(w, x)| products += f64::from(*w) * x)?;
        *sum += products;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::Example;
    use nnhal_hal::{OperandSpec, OperationType};

    fn learn<const N: usize>(
        known: &mut Extents,
        dimensions: &[u32],
        extents: [Extent; N],
    ) -> Result<(), String> {
        let example = Example::new(OperationType::Relu)
            .input_to_come(OperandSpec::tensor_float32(dimensions));
        known.learn(example.call().input(0), extents).map_err(|fault| fault.to_string())
    }

    #[test]
    fn lengths_are_learned_from_any_argument() {
        let mut known = Extents::default();
        learn(&mut known, &[0, 3], [Extent::Batch, Extent::Input]).unwrap();
        learn(&mut known, &[4, 3], [Extent::Units, Extent::Input]).unwrap();
        learn(&mut known, &[2, 0], [Extent::Batch, Extent::Units]).unwrap();
        learn(&mut known, &[], [Extent::Time, Extent::Output]).unwrap();
        let extents = [Extent::Batch, Extent::Time, Extent::Input, Extent::Units, Extent::Output];
        let lengths = extents.map(|extent| known.get(extent));
        assert_eq!(lengths, [Some(2), None, Some(3), Some(4), None]);
        let sequences = Extents::default().with_sequences_of(&known);
        assert_eq!(sequences.shape([Extent::Units, Extent::Batch]), Shape::new([None, Some(2)]));
    }

    #[test]
    fn contradictions_are_refused() {
        let mut known = Extents::default();
        learn(&mut known, &[2, 3], [Extent::Batch, Extent::Input]).unwrap();
        assert_eq!(
            learn(&mut known, &[2, 4], [Extent::Batch, Extent::Input]).unwrap_err(),
            "RELU: shape of input 0 (input) is [2, 4], expected length 3 along axis 1"
        );
        assert_eq!(
            learn(&mut known, &[2], [Extent::Batch, Extent::Input]).unwrap_err(),
            "RELU: rank of input 0 (input) is 1, expected 2"
        );
        // The same length twice.
        let mut square = Extents::default();
        assert!(learn(&mut square, &[2, 3], [Extent::Units, Extent::Units]).is_err());
    }

    #[test]
    fn only_batch_and_time_may_be_0() {
        let example =
            Example::new(OperationType::Relu).input(OperandSpec::tensor_float32([0, 0]), &[]);
        let call = example.call();
        let learn = |extents| Extents::default().learn(call.input(0), extents);
        assert!(learn([Extent::Batch, Extent::Time]).is_ok());
        assert!(learn([Extent::Batch, Extent::Input]).is_err());
        assert!(learn([Extent::Units, Extent::Batch]).is_err());
    }

    #[test]
    fn rows_follow_layout_and_direction() {
        let rows = |is_time_major, sequence, direction| {
            let sequences = Sequences { batch: 2, time: 3, is_time_major };
            sequences.rows(sequence, direction).collect::<Vec<_>>()
        };
        assert_eq!(rows(true, 1, Direction::Forward), [1, 3, 5]);
        assert_eq!(rows(true, 0, Direction::Backward), [4, 2, 0]);
        assert_eq!(rows(false, 1, Direction::Forward), [3, 4, 5]);
        assert_eq!(rows(false, 0, Direction::Backward), [2, 1, 0]);
    }

    #[test]
    fn products_are_added_row_by_row() {
        let mut sums = [100.0, 200.0];
        let call = Call::new(OperationType::Relu, [], []);
        add_products(&call, &mut sums, &[1.0, 2.0, 3.0, 4.0], [10.0, 20.0].into_iter()).unwrap();
        assert_eq!(sums, [150.0, 310.0]);
    }
}
