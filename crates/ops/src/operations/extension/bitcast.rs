//! BITCAST: the same bytes as elements of another type.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[...]`, or `[..., n]` where an element of the output is as large as n of the input | any |
//! | output 0 | output | `[...]`, or `[..., n]` where an element of the input is as large as n of the output | any |

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::extension::element_size;
use crate::operation::Operation;
use crate::rules::movement;
use crate::shape::Shape;

/// BITCAST.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bitcast;

impl Operation for Bitcast {
    fn decode(_: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let size = |it: &crate::Argument<'_>| element_size(it.operand_type).unwrap_or(1).max(1);
        let (from, to) = (size(input), size(output));
        let Some(lengths) = input.shape.lengths() else { return Ok(vec![Shape::UNKNOWN]) };
        let mut lengths = lengths.to_vec();
        if from > to {
            lengths.push(Some(from / to));
        } else if from < to {
            let last = lengths.pop();
            if !matches!(last, Some(None)) && last != Some(Some(to / from)) {
                let expected = format!("{} along the last axis", to / from);
                return Err(input.wrong("shape", &input.shape, expected));
            }
            if lengths.is_empty() {
                lengths.push(Some(1));
            }
        }
        Ok(vec![Shape::new(lengths)])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let dimensions = self.output_dimensions(call)?;
        Ok(vec![movement::copied(call.input(0).bytes()?, call.output(0), dimensions)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::extension::ExtensionOperation as E;
    use crate::extension::{TENSOR_INT64, TENSOR_UINT16};
    use crate::operations::testing::{Example, tensor};
    use OperandType::{TensorFloat32, TensorInt32, TensorQuant8Asymm};
    use nnhal_hal::OperandType;

    fn cast(from: OperandType, dimensions: &[u32], elements: &[f64], to: OperandType) -> Example {
        Example::new(E::Bitcast.operation_type())
            .input(tensor(from, dimensions), elements)
            .output(tensor(to, []))
    }

    #[test]
    fn an_axis_comes_where_elements_become_smaller_and_goes_where_they_become_larger() {
        let same = cast(TensorFloat32, &[2], &[1.0, -2.0], TensorInt32);
        assert_eq!(same.result(), (vec![2], vec![f64::from(0x3F80_0000), -f64::from(1 << 30)]));
        let smaller = cast(TensorInt32, &[1], &[f64::from(0x0403_0201)], TensorQuant8Asymm);
        assert_eq!(smaller.result(), (vec![1, 4], vec![1.0, 2.0, 3.0, 4.0]));
        let larger = cast(
            TensorQuant8Asymm,
            &[2, 4],
            &[1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0],
            TensorInt32,
        );
        assert_eq!(larger.result(), (vec![2], vec![1.0, 256.0]));
        let one = cast(TensorQuant8Asymm, &[4], &[7.0, 0.0, 0.0, 0.0], TensorInt32);
        assert_eq!(one.result(), (vec![1], vec![7.0]));
    }

    #[test]
    fn other_lengths_are_refused() {
        assert!(cast(TensorQuant8Asymm, &[2], &[0.0; 2], TensorInt32).run().is_err());
        assert!(cast(TENSOR_UINT16, &[2], &[0.0; 2], TENSOR_INT64).run().is_err());
        assert!(cast(TENSOR_UINT16, &[4], &[0.0; 4], TENSOR_INT64).run().is_ok());
    }
}
