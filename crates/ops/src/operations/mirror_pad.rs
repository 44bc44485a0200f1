//! MIRROR_PAD: a tensor with a border that mirrors it.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | float32, float16, quantized, int32 |
//! | input 1 | paddings | `[rank of the input, 2]` | TENSOR_INT32: elements before, elements behind, of each axis |
//! | input 2 | mode | scalar | INT32: 0 REFLECT, 1 SYMMETRIC |
//! | output 0 | output | `before + length + behind` along each axis | as the input; same scale, zero point |
//!
//! REFLECT does not repeat the outermost element, and a border is shorter than its axis; SYMMETRIC
//! does, and a border is as long as its axis at most.
//!
//! Source: `OperationType.aidl`, feature level 7.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::border::{self, Border};
use crate::rules::movement;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// Where the mirror stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// In the outermost element, which is not repeated.
    Reflect,
    /// Behind the outermost element, which is repeated.
    Symmetric,
}

/// MIRROR_PAD.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MirrorPad {
    /// What is laid around each axis.
    pub borders: Vec<Border>,
    /// Where the mirror stands.
    pub mode: Mode,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::MirrorPad,
    rows: &[
        Row::new(HalVersion::FeatureLevel7, &[TensorFloat32]),
        Row::new(HalVersion::FeatureLevel7, &[TensorFloat16]),
        Row::new(HalVersion::FeatureLevel7, &[TensorInt32]),
        Row::new(HalVersion::FeatureLevel7, &[TensorQuant8Asymm]),
        Row::new(HalVersion::FeatureLevel7, &[TensorQuant8AsymmSigned]),
    ],
    forms: &[Form::new(
        HalVersion::FeatureLevel7,
        &[
            Parameter::column("input", 0),
            Parameter::tensor_int32("paddings"),
            Parameter::int32("mode"),
        ],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for MirrorPad {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let input = call.input(0);
        input.expect_rank_in(1..=usize::MAX)?;
        call.output(0).expect_quantized_as(input)?;
        if let Some(rank) = input.shape.rank() {
            call.output(0).expect_rank(rank)?;
        }
        border::validate(call.input(1), input.shape.rank())
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let mode = match call.input(2).i32()? {
            0 => Mode::Reflect,
            1 => Mode::Symmetric,
            other => {
                return Err(call.input(2).wrong("value", other, "0 (REFLECT) or 1 (SYMMETRIC)"));
            }
        };
        Ok(Self { borders: border::decode(call.input(1))?, mode })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (input, paddings) = (call.input(0), call.input(1));
        let shape = border::shape(input, paddings, &self.borders)?;
        for (axis, border) in self.borders.iter().enumerate() {
            let Some(length) = input.shape.length(axis) else { continue };
            let longest = border.before.max(border.after);
            let (fits, relation) = match self.mode {
                Mode::Reflect => (longest < length, "below"),
                Mode::Symmetric => (longest <= length, "at most"),
            };
            if !fits {
                let expected = format!("{relation} the {length} of axis {axis}");
                return Err(paddings.wrong("value", longest, expected));
            }
        }
        Ok(vec![shape])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let dimensions = self.output_dimensions(call)?;
        let lengths = input.lengths()?;
        let strides = movement::strides(&lengths);
        let offset = |axis: usize, index| {
            self.mirrored(index, self.borders[axis].before as usize, lengths[axis]) * strides[axis]
        };
        Ok(vec![movement::moved(input.bytes()?, output, dimensions, offset)?])
    }
}

impl MirrorPad {
    /// The index on an axis of `length` elements of what is seen at `index` of the axis with its
    /// border; the border is not longer than the mode allows.
    fn mirrored(&self, index: usize, before: usize, length: usize) -> usize {
        let skipped = match self.mode {
            Mode::Reflect => 1,
            Mode::Symmetric => 0,
        };
        match index.checked_sub(before) {
            None => before - index - 1 + skipped,
            Some(inside) if inside < length => inside,
            Some(inside) => (2 * length - 1 - skipped) - inside,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, tensor};
    use proptest::prelude::*;

    const REFLECT: i32 = 0;
    const SYMMETRIC: i32 = 1;

    /// A call on elements 1, 2, 3 and so on.
    fn example(
        operand_type: OperandType,
        dimensions: &[u32],
        paddings: &[[i32; 2]],
        mode: i32,
    ) -> Example {
        let count: u32 = dimensions.iter().product();
        let elements: Vec<f64> = (1..=count).map(f64::from).collect();
        let values: Vec<f64> = paddings.iter().flatten().copied().map(f64::from).collect();
        Example::new(OperationType::MirrorPad)
            .input(tensor(operand_type, dimensions), &elements)
            .input(tensor(TensorInt32, [u32::try_from(paddings.len()).unwrap(), 2]), &values)
            .int32s([mode])
            .output(tensor(operand_type, []))
    }

    #[test]
    fn model_25_every_type_came_with_feature_level_7() {
        for operand_type in
            [TensorFloat32, TensorFloat16, TensorInt32, TensorQuant8Asymm, TensorQuant8AsymmSigned]
        {
            let since = example(operand_type, &[1], &[[0, 0]], REFLECT).since();
            assert_eq!(since, Ok(HalVersion::FeatureLevel7), "{operand_type}");
        }
        let other = example(OperandType::TensorBool8, &[1], &[[0, 0]], REFLECT);
        assert!(other.since().is_err());
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let refusal = |dimensions: &[u32], paddings: &[[i32; 2]], mode| {
            example(TensorFloat32, dimensions, paddings, mode).refusal()
        };
        assert_eq!(
            refusal(&[3], &[[0, 0]], 2),
            "MIRROR_PAD: value of input 2 (mode) is 2, expected 0 (REFLECT) or 1 (SYMMETRIC)"
        );
        assert_eq!(
            refusal(&[3], &[[3, 0]], REFLECT),
            "MIRROR_PAD: value of input 1 (paddings) is 3, expected below the 3 of axis 0"
        );
        assert_eq!(
            refusal(&[1, 3], &[[0, 0], [0, 4]], SYMMETRIC),
            "MIRROR_PAD: value of input 1 (paddings) is 4, expected at most the 3 of axis 1"
        );
        assert!(refusal(&[3], &[[-1, 0]], SYMMETRIC).contains("expected 0 or more"));
        assert!(refusal(&[3], &[[0, 0], [0, 0]], SYMMETRIC).contains("shape of input 1"));
        assert!(refusal(&[0], &[[0, 0]], REFLECT).contains("below the 0"));
        let output = tensor(TensorQuant8Asymm, []).quantized(0.25, 128);
        let other = example(TensorQuant8Asymm, &[1], &[[0, 0]], REFLECT).with_output(output);
        assert!(other.refusal().contains("scale of output 0"));
    }

    #[test]
    fn mirrors_by_hand() {
        for operand_type in [TensorFloat32, TensorFloat16, TensorInt32, TensorQuant8Asymm] {
            let result = |paddings, mode| example(operand_type, &[3], &[paddings], mode).result().1;
            assert_eq!(result([2, 2], REFLECT), [3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0]);
            assert_eq!(result([0, 1], REFLECT), [1.0, 2.0, 3.0, 2.0]);
            let whole = [3.0, 2.0, 1.0, 1.0, 2.0, 3.0, 3.0, 2.0, 1.0];
            assert_eq!(result([3, 3], SYMMETRIC), whole);
            assert_eq!(result([1, 0], SYMMETRIC), [1.0, 1.0, 2.0, 3.0]);
        }
        let both = example(TensorFloat32, &[2, 2], &[[1, 0], [0, 1]], REFLECT).result();
        assert_eq!(both, (vec![3, 3], vec![3.0, 4.0, 3.0, 1.0, 2.0, 1.0, 3.0, 4.0, 3.0]));
        assert_eq!(example(TensorFloat32, &[0], &[[0, 0]], SYMMETRIC).result(), (vec![0], vec![]));
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let shape = |dimensions: &[u32]| {
            example(TensorFloat32, &[9, 9], &[[1, 2], [3, 4]], REFLECT)
                .with_input_to_come(0, tensor(TensorFloat32, dimensions))
                .shapes()
                .map(|mut shapes| shapes.swap_remove(0))
        };
        assert_eq!(shape(&[5, 0]), Ok(Shape::new([Some(8), None])));
        assert_eq!(shape(&[]), Ok(Shape::of_rank(2)));
        assert!(shape(&[2, 0]).is_err());
    }

    proptest! {
        /// Neighbours of a mirror image are neighbours, or the same where the mirror stands between.
        #[test]
        fn a_mirror_keeps_neighbours(length in 2..9_u32, before in 0..9_i32, after in 0..9_i32) {
            let longest = i32::try_from(length).unwrap() - 1;
            let paddings = [[before.min(longest), after.min(longest)]];
            for mode in [REFLECT, SYMMETRIC] {
                let elements = example(TensorFloat32, &[length], &paddings, mode).result().1;
                for pair in elements.windows(2) {
                    let distance = (pair[0] - pair[1]).abs();
                    prop_assert!(distance == 1.0 || (mode == SYMMETRIC && distance == 0.0));
                }
            }
        }
    }
}
