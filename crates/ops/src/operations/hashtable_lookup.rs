//! HASHTABLE_LOOKUP: rows of a table by key, and which keys it has.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | lookups | `[k]` | TENSOR_INT32 |
//! | input 1 | keys | `[n]` | TENSOR_INT32, ascending |
//! | input 2 | values | any; the first length is `n` | float32, int32, quantized |
//! | output 0 | output | the values', with `k` as first length | as the values; same scale, zero point |
//! | output 1 | hits | `[k]` | TENSOR_QUANT8_ASYMM with scale 1 and zero point 0: 1 or 0 |
//!
//! The row of a key that there is not consists of zero bytes, which for quantized values is the
//! stored 0, whatever the zero point. Of equal keys the first counts. Keys that do not ascend are
//! refused: what is found among them would depend on how it is searched.
//!
//! Source: `types.hal` 1.0.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::operations::embedding_lookup::with_first_length;
use crate::rules::movement;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{TensorFloat32, TensorInt32, TensorQuant8Asymm};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// HASHTABLE_LOOKUP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HashtableLookup;

static SIGNATURE: Signature = Signature {
    operation: OperationType::HashtableLookup,
    rows: &[
        Row::new(HalVersion::V1_0, &[TensorFloat32]),
        Row::new(HalVersion::V1_0, &[TensorInt32]),
        Row::new(HalVersion::V1_0, &[TensorQuant8Asymm]),
    ],
    forms: &[Form::new(
        HalVersion::V1_0,
        &[
            Parameter::tensor_int32("lookups"),
            Parameter::tensor_int32("keys"),
            Parameter::column("values", 0),
        ],
        &[Parameter::column("output", 0), Parameter::fixed("hits", TensorQuant8Asymm)],
    )],
};

impl Operation for HashtableLookup {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let (keys, values) = (call.input(1), call.input(2));
        call.input(0).expect_rank(1)?;
        keys.expect_rank(1)?;
        values.expect_rank_in(1..=usize::MAX)?;
        keys.expect_length(0, values.shape.length(0))?;
        call.output(0).expect_quantized_as(values)?;
        call.output(1).expect_quantization(1.0, 0)
    }

    fn decode(_call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let lookups = call.input(0).shape.length(0);
        Ok(vec![with_first_length(&call.input(2).shape, lookups), Shape::new([lookups])])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (keys, values) = (call.input(1), call.input(2));
        let (output, hits) = (call.output(0), call.output(1));
        let dimensions = self.output_dimensions(call)?;
        let table = keys.i32s()?;
        let mut unordered = None;
        call.each(table.windows(2).filter(|pair| pair[0] > pair[1]), |pair| {
            unordered = unordered.or(Some(pair));
        })?;
        if let Some([one, next]) = unordered {
            let found = format!("{one} before {next}");
            return Err(keys.wrong("order", found, "ascending keys"));
        }
        let find = |lookup: i32| {
            let first = table.partition_point(|key| *key < lookup);
            (table.get(first) == Some(&lookup)).then_some(first)
        };
        let wanted = call.input(0).i32s()?;
        let rows: Vec<_> = call.collect(wanted.len(), wanted.into_iter().map(find))?;
        let found: Vec<bool> = call.collect(rows.len(), rows.iter().map(Option::is_some))?;
        let source = (values.bytes()?, &values.lengths()?[..]);
        Ok(vec![
            movement::picked(source, 0, &rows, output, dimensions)?,
            hits.with_bools(call.input(0).dimensions()?, &found)?,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, tensor};
    use nnhal_hal::OperandSpec;

    fn hits() -> OperandSpec {
        OperandSpec::tensor_quant8_asymm([], 1.0, 0)
    }

    /// A call on values 1, 2, 3 and so on.
    fn example(
        operand_type: OperandType,
        lookups: &[f64],
        keys: &[f64],
        dimensions: &[u32],
    ) -> Example {
        let count: u32 = dimensions.iter().product();
        let elements: Vec<f64> = (1..=count).map(f64::from).collect();
        let vector =
            |elements: &[f64]| tensor(TensorInt32, [u32::try_from(elements.len()).unwrap()]);
        Example::new(OperationType::HashtableLookup)
            .input(vector(lookups), lookups)
            .input(vector(keys), keys)
            .input(tensor(operand_type, dimensions), &elements)
            .output(tensor(operand_type, []))
            .output(hits())
    }

    #[test]
    fn model_25_all_types_came_with_1_0() {
        for operand_type in [TensorFloat32, TensorInt32, TensorQuant8Asymm] {
            let since = example(operand_type, &[0.0], &[0.0], &[1, 1]).since();
            assert_eq!(since, Ok(HalVersion::V1_0), "{operand_type}");
        }
        let other = example(OperandType::TensorFloat16, &[0.0], &[0.0], &[1, 1]);
        assert!(other.since().is_err());
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let good = example(TensorFloat32, &[0.0], &[0.0, 1.0], &[2, 1]);
        let square = tensor(TensorInt32, [1, 1]);
        assert_eq!(
            good.clone().with_input(0, square.clone(), &[0.0]).refusal(),
            "HASHTABLE_LOOKUP: rank of input 0 (lookups) is 2, expected 1"
        );
        assert_eq!(
            good.with_input(1, square, &[0.0]).refusal(),
            "HASHTABLE_LOOKUP: rank of input 1 (keys) is 2, expected 1"
        );
        assert_eq!(
            example(TensorFloat32, &[0.0], &[0.0, 1.0], &[3, 1]).refusal(),
            "HASHTABLE_LOOKUP: shape of input 1 (keys) is [2], expected length 3 along axis 0"
        );
        assert_eq!(
            example(TensorFloat32, &[0.0], &[1.0, 2.0, 0.0], &[3, 1]).refusal(),
            "HASHTABLE_LOOKUP: order of input 1 (keys) is 2 before 0, expected ascending keys"
        );
        let quantized = example(TensorQuant8Asymm, &[0.0], &[0.0], &[1, 1]);
        let output = tensor(TensorQuant8Asymm, []).quantized(0.25, 128);
        assert!(quantized.with_output(output).refusal().contains("scale of output 0"));
        let base = Example::new(OperationType::HashtableLookup)
            .input(tensor(TensorInt32, [1]), &[0.0])
            .input(tensor(TensorInt32, [1]), &[0.0])
            .input(tensor(TensorFloat32, [1, 1]), &[0.0])
            .output(tensor(TensorFloat32, []));
        for (scale, zero_point, wrong) in [(0.5, 0, "scale"), (1.0, 1, "zero point")] {
            let call = base.clone().output(hits().quantized(scale, zero_point));
            assert!(call.refusal().contains(&format!("{wrong} of output 1 (hits)")));
        }
    }

    #[test]
    fn rows_by_hand() {
        for operand_type in [TensorFloat32, TensorInt32, TensorQuant8Asymm] {
            let call = example(operand_type, &[9.0, 0.0, -5.0], &[-5.0, 3.0, 9.0], &[3, 2]);
            assert_eq!(call.result(), (vec![3, 2], vec![5.0, 6.0, 0.0, 0.0, 1.0, 2.0]));
            let hits = call.run().unwrap().swap_remove(1);
            assert_eq!(hits, Output { dimensions: vec![3], bytes: vec![1, 0, 1] });
        }
    }

    #[test]
    fn of_equal_keys_the_first_counts() {
        let call = example(TensorFloat32, &[2.0], &[1.0, 2.0, 2.0, 2.0], &[4, 1]);
        assert_eq!(call.result().1, [2.0]);
    }

    #[test]
    fn an_empty_table_has_no_hits() {
        let call = example(TensorFloat32, &[7.0], &[], &[0, 2]);
        assert_eq!(call.result(), (vec![1, 2], vec![0.0, 0.0]));
        let call = example(TensorFloat32, &[], &[7.0], &[1, 2]);
        assert_eq!(call.result(), (vec![0, 2], vec![]));
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let shapes = |lookups: &[u32], values: &[u32]| {
            example(TensorFloat32, &[], &[], &[0, 1])
                .with_input_to_come(0, tensor(TensorInt32, lookups))
                .with_input_to_come(1, tensor(TensorInt32, []))
                .with_input_to_come(2, tensor(TensorFloat32, values))
                .shapes()
                .unwrap()
        };
        assert_eq!(shapes(&[5], &[7, 0]), [Shape::new([Some(5), None]), Shape::known([5])]);
        assert_eq!(shapes(&[], &[7, 2]), [Shape::new([None, Some(2)]), Shape::new([None])]);
        assert_eq!(shapes(&[5], &[]), [Shape::UNKNOWN, Shape::known([5])]);
    }
}
