//! TRANSPOSE_CONV_2D: the transpose of CONV_2D as a linear map. Each input element is spread over
//! the output by the filter, in steps of the stride:
//! `output[b, y * stride + i - padding, x * stride + j - padding, d] += input[b, y, x, k] * filter[d, i, j, k]`,
//! then the bias is added and the result clamped.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, height, width, depth_in]`, or NCHW | float32, float16, quantized |
//! | input 1 | filter | `[depth_out, height, width, depth_in]` | as the input, or per channel along axis 0 |
//! | input 2 | bias | `[depth_out]` | as the input; int32 if quantized |
//! | explicit 3, 5 | padding left, top | scalar | INT32, 0 or more |
//! | explicit 4, 6 | padding right, bottom | scalar | INT32; a negative one makes the output longer |
//! | implicit 3 | output shape | `[4]` | TENSOR_INT32, ordered as the layout says |
//! | implicit 4 | padding scheme | scalar | INT32: 0 NONE, 1 SAME, 2 VALID |
//! | next two | stride width, height | scalar | INT32, above 0 |
//! | next | activation | scalar | INT32 |
//! | next | NCHW? | scalar | BOOL |
//! | output 0 | output | `[batch, out height, out width, depth_out]`, or NCHW | as the input |
//!
//! Along each axis all of the filter's copies cover `(length - 1) * stride + taps` elements. Padding
//! is cut off them. An output shape that is an argument says the output's height and width, and they
//! must be some from which CONV_2D with that scheme and stride would make the input's. Its batch and
//! depth are not looked at: the input and the filter say them, so that a constant shape fits any
//! batch. Only the batch may be 0.
//!
//! Source: `types.hal` 1.2, 1.3 (signed); the reference implementation reads height and width alone.

use crate::call::{Argument, Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::activation_range;
use crate::rules::convolution::{self, Connection, Convolution};
use crate::rules::layout::Layout;
use crate::rules::padding::{Padding, Slide, Window};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Signature};
use nnhal_hal::{FusedActivation, HalVersion, OperationType};

/// What is cut off the elements that the filter's copies cover along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trim {
    /// This many elements before and behind.
    Explicit {
        /// Before the first element.
        before: u32,
        /// Behind the last one. Where it is negative, this many elements are added that no copy of
        /// the filter reaches.
        after: i32,
    },
    /// As much as CONV_2D pads when it makes the input out of `length` elements.
    To {
        /// Length of the output; above 0.
        length: u32,
        /// How CONV_2D pads.
        padding: Padding,
    },
}

/// How copies of a filter are over an axis of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Spread {
    /// What is cut off.
    pub trim: Trim,
    /// Elements from one copy to the next; above 0.
    pub stride: u32,
}

/// TRANSPOSE_CONV_2D.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TransposeConv2d {
    /// Along the height.
    pub height: Spread,
    /// Along the width.
    pub width: Spread,
    /// What the result is clamped to.
    pub activation: FusedActivation,
    /// Of input and output.
    pub layout: Layout,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::TransposeConv2d,
    rows: convolution::ROWS,
    forms: &[
        Form::new(
            HalVersion::V1_2,
            &[
                Parameter::column("input", 0),
                Parameter::column("filter", 1),
                Parameter::column("bias", 2),
                Parameter::int32("padding left"),
                Parameter::int32("padding right"),
                Parameter::int32("padding top"),
                Parameter::int32("padding bottom"),
                Parameter::int32("stride width"),
                Parameter::int32("stride height"),
                Parameter::int32("activation"),
                Parameter::bool("NCHW"),
            ],
            &[Parameter::column("output", 0)],
        ),
        Form::new(
            HalVersion::V1_2,
            &[
                Parameter::column("input", 0),
                Parameter::column("filter", 1),
                Parameter::column("bias", 2),
                Parameter::tensor_int32("output shape"),
                Parameter::int32("padding scheme"),
                Parameter::int32("stride width"),
                Parameter::int32("stride height"),
                Parameter::int32("activation"),
                Parameter::bool("NCHW"),
            ],
            &[Parameter::column("output", 0)],
        ),
    ],
};

/// Whether the argument list is the one with explicit padding.
fn is_explicit(call: &Call<'_>) -> bool {
    call.inputs().len() == 11
}

impl Spread {
    /// Elements cut off before the first one that is left, for `taps` taps.
    pub fn before(&self, taps: u32) -> u64 {
        match self.trim {
            Trim::Explicit { before, .. } => before.into(),
            Trim::To { length, padding } => self.window(padding).padding(length, taps).0,
        }
    }

    /// The length of the output. `None` where nothing would be left or 32 bits do not hold it, or
    /// where no input of this length belongs to the output that was asked for.
    pub fn output_length(&self, length: u32, taps: u32) -> Option<u32> {
        match self.trim {
            Trim::Explicit { before, after } => {
                let copies = u64::from(length).checked_sub(1)?;
                let covered = copies * u64::from(self.stride) + u64::from(taps);
                let left = i64::try_from(covered).ok()? - i64::from(before) - i64::from(after);
                u32::try_from(left).ok().filter(|left| *left > 0)
            }
            Trim::To { length: asked_for, padding } => {
                let places = self.window(padding).places(asked_for, taps)?;
                (places == length).then_some(asked_for)
            }
        }
    }

    /// The length of the output where an argument says it.
    fn asked_for(&self) -> Option<u32> {
        match self.trim {
            Trim::Explicit { .. } => None,
            Trim::To { length, .. } => Some(length),
        }
    }

    /// The window of the CONV_2D that this is the transpose of.
    fn window(&self, padding: Padding) -> Window {
        Window { padding, stride: self.stride, dilation: 1 }
    }
}

impl Slide for Spread {
    fn taps(
        &self,
        place: usize,
        length: usize,
        taps: usize,
    ) -> impl Iterator<Item = (usize, usize)> + Clone {
        let stride = self.stride as usize;
        let before = self.before(u32::try_from(taps).unwrap_or(u32::MAX));
        // Counted from the first element that any copy covers.
        let place = place.saturating_add(usize::try_from(before).unwrap_or(usize::MAX));
        // The copies that reach it are those that begin at it or less than `taps` before it.
        let first = place.saturating_add(1).saturating_sub(taps).div_ceil(stride);
        let end = (place / stride).saturating_add(1).min(length);
        (first..end).map(move |element| (place - element * stride, element))
    }
}

impl Operation for TransposeConv2d {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        if !is_explicit(call) {
            call.input(3).expect_rank(1)?;
            call.input(3).expect_length(0, Some(4))?;
        }
        convolution::validate(call, 0)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let spread = |trim, stride: &Argument<'_>| {
            Ok::<_, Fault>(Spread { trim, stride: stride.positive()? })
        };
        if is_explicit(call) {
            let trim = |first: usize| {
                let (before, after) = (call.input(first), call.input(first + 1));
                Ok::<_, Fault>(Trim::Explicit {
                    before: before.non_negative()?,
                    after: after.i32()?,
                })
            };
            return Ok(Self {
                width: spread(trim(3)?, call.input(7))?,
                height: spread(trim(5)?, call.input(8))?,
                activation: activation_range::decode(call.input(9))?,
                layout: Layout::from_flag(call.input(10).bool()?),
            });
        }
        let layout = Layout::from_flag(call.input(8).bool()?);
        let [height, width] = decode_lengths(call.input(3), layout)?;
        let padding = Padding::decode_scheme(call.input(4))?;
        Ok(Self {
            width: spread(Trim::To { length: width, padding }, call.input(5))?,
            height: spread(Trim::To { length: height, padding }, call.input(6))?,
            activation: activation_range::decode(call.input(7))?,
            layout,
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (input, filter, bias) = (call.input(0), call.input(1), call.input(2));
        let [batch, height, width, depth] = self.layout.image_lengths(input)?;
        let [depth_out, filter_height, filter_width, _] = convolution::filter_lengths(filter)?;
        filter.expect_length(3, depth)?;
        let depth_out = convolution::output_channels(filter, bias, depth_out)?;
        let along = |spread: &Spread, length: Option<u32>, taps: Option<u32>| {
            let (Some(length), Some(taps)) = (length, taps) else {
                return Ok(spread.asked_for());
            };
            let output = spread.output_length(length, taps).ok_or_else(|| match spread.trim {
                Trim::Explicit { before, after } => call.wrong(
                    "padding",
                    format!("{before} and {after}"),
                    format!("something left of {length} copies of {taps} elements"),
                ),
                Trim::To { length: asked_for, .. } => call.wrong(
                    "output length",
                    asked_for,
                    format!("one from which a window of {taps} makes {length}"),
                ),
            })?;
            Ok::<_, Fault>(Some(output))
        };
        let lengths = [
            batch,
            along(&self.height, height, filter_height)?,
            along(&self.width, width, filter_width)?,
            depth_out,
        ];
        Ok(vec![Shape::new(self.layout.from_nhwc(lengths))])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let shape = self.output_shapes(call)?.swap_remove(0);
        let convolution = Convolution {
            window: [self.height, self.width],
            connection: Connection::Grouped { groups: 1 },
            layout: self.layout,
            activation: self.activation,
        };
        Ok(vec![convolution.reference(call, &shape)?])
    }
}

/// Reads height and width out of a shape of rank 4.
fn decode_lengths(argument: &Argument<'_>, layout: Layout) -> Result<[u32; 2], Fault> {
    let lengths = argument.i32s()?;
    let lengths: [i32; 4] = lengths
        .try_into()
        .map_err(|lengths: Vec<_>| argument.wrong("number of elements", lengths.len(), 4))?;
    let [_, height, width, _] = layout.to_nhwc(lengths);
    if height <= 0 || width <= 0 {
        return Err(argument.wrong("value", format!("{lengths:?}"), "height and width above 0"));
    }
    Ok([height, width].map(i32::unsigned_abs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_refused, float, tensor};
    use HalVersion::{V1_2, V1_3};
    use OperandType::{TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned};
    use nnhal_hal::{OperandSpec, OperandType};
    use proptest::prelude::*;

    fn int32s(length: u32, scale: f32) -> OperandSpec {
        OperandSpec::tensor_int32([length]).quantized(scale, 0)
    }

    /// The pixels 1, 2 under a filter of three taps across, 1, 10, 100; bias 1000.
    fn two_pixels() -> Example {
        Example::new(OperationType::TransposeConv2d)
            .input(float([1, 1, 2, 1]), &[1.0, 2.0])
            .input(float([1, 1, 3, 1]), &[1.0, 10.0, 100.0])
            .input(float([1]), &[1000.0])
    }

    fn explicit(padding: [i32; 4]) -> Example {
        two_pixels().int32s(padding).int32s([2, 1, 0]).bool(false).output(float([0; 4]))
    }

    fn implicit(output_shape: [i32; 4], scheme: i32) -> Example {
        two_pixels()
            .input(int32s(4, 0.0), &output_shape.map(f64::from))
            .int32s([scheme, 2, 1, 0])
            .bool(false)
            .output(float([0; 4]))
    }

    /// The width of the result, and its elements without the bias.
    fn across(example: &Example) -> Vec<f64> {
        let (dimensions, elements) = example.result();
        assert_eq!(dimensions.len(), 4);
        assert_eq!(dimensions[2] as usize, elements.len());
        elements.into_iter().map(|element| element - 1000.0).collect()
    }

    #[test]
    fn explicit_padding_is_cut_off() {
        assert_eq!(across(&explicit([0; 4])), [1.0, 10.0, 102.0, 20.0, 200.0]);
        assert_eq!(across(&explicit([1, 0, 0, 0])), [10.0, 102.0, 20.0, 200.0]);
        assert_eq!(across(&explicit([0, 2, 0, 0])), [1.0, 10.0, 102.0]);
        assert_eq!(across(&explicit([4, 0, 0, 0])), [200.0]);
        // Below zero it adds elements that only the bias reaches.
        assert_eq!(across(&explicit([1, -2, 0, 0])), [10.0, 102.0, 20.0, 200.0, 0.0, 0.0]);
    }

    #[test]
    fn the_output_shape_decides_what_is_cut_off() {
        let width = |width, scheme| implicit([1, 1, width, 1], scheme);
        assert_eq!(across(&width(4, 1)), [1.0, 10.0, 102.0, 20.0]);
        assert_eq!(across(&width(3, 1)), [10.0, 102.0, 20.0]);
        assert_eq!(across(&width(5, 2)), [1.0, 10.0, 102.0, 20.0, 200.0]);
        assert_eq!(across(&width(6, 2)), [1.0, 10.0, 102.0, 20.0, 200.0, 0.0]);
        assert_eq!(across(&width(5, 0)), across(&width(5, 2)));
    }

    #[test]
    fn the_output_shape_does_not_decide_batch_and_depth() {
        for [batch, depth] in [[2, 1], [1, 7], [0, 0], [-1, -1]] {
            let (dimensions, elements) = implicit([batch, 1, 4, depth], 1).result();
            assert_eq!(dimensions, [1, 1, 4, 1]);
            assert_eq!(elements, [1001.0, 1010.0, 1102.0, 1020.0]);
        }
    }

    #[test]
    fn a_stride_wider_than_the_filter_leaves_gaps() {
        let gaps = explicit([0; 4]).with_input(1, float([1, 1, 1, 1]), &[5.0]);
        assert_eq!(across(&gaps), [5.0, 0.0, 10.0]);
        let to_the_end = implicit([1, 1, 4, 1], 1).with_input(1, float([1, 1, 1, 1]), &[5.0]);
        assert_eq!(across(&to_the_end), [5.0, 0.0, 10.0, 0.0]);
    }

    #[test]
    fn channels_are_summed_in_both_layouts() {
        // Filters [1, 2] and [3, 4] over the pixels (1, 10), (2, 20), side by side.
        let example = |pixels: [u32; 4], values: &[f64], is_nchw| {
            Example::new(OperationType::TransposeConv2d)
                .input(float(pixels), values)
                .input(float([2, 1, 1, 2]), &[1.0, 2.0, 3.0, 4.0])
                .input(float([2]), &[0.0, 100.0])
                .int32s([0, 0, 0, 0, 1, 1, 1])
                .bool(is_nchw)
                .output(float([0; 4]))
        };
        let nhwc = example([1, 2, 1, 2], &[1.0, 10.0, 2.0, 20.0], false);
        assert_eq!(nhwc.result(), (vec![1, 2, 1, 2], vec![21.0, 143.0, 42.0, 186.0]));
        let nchw = example([1, 2, 2, 1], &[1.0, 2.0, 10.0, 20.0], true);
        assert_eq!(nchw.result(), (vec![1, 2, 2, 1], vec![21.0, 42.0, 143.0, 186.0]));
    }

    #[test]
    fn quantized_values_by_hand() {
        let example = |operand_type, zero: f64, filter, stored: [f64; 2], bias_scale| {
            Example::new(OperationType::TransposeConv2d)
                .input(tensor(operand_type, [1, 1, 2, 1]), &[zero + 2.0, zero + 3.0])
                .input(filter, &stored)
                .input(int32s(1, bias_scale), &[2.0])
                .int32s([0, 0, 0, 0, 1, 1, 0])
                .bool(false)
                .output(tensor(operand_type, [0; 4]))
                .result()
                .1
        };
        // 2*4, 2*-2 + 3*4, 3*-2, each with 2 more: 10, 10, -4 in steps of 1/4, to steps of 1/2.
        let signed = tensor(TensorQuant8AsymmSigned, [1, 1, 2, 1]);
        let unsigned = tensor(TensorQuant8Asymm, [1, 1, 2, 1]);
        let symmetric = OperandSpec::tensor_quant8_symm_per_channel([1, 1, 2, 1], &[0.5], 0);
        let (below, above) = (vec![5.0, 5.0, -2.0], vec![133.0, 133.0, 126.0]);
        let stored = [4.0, -2.0];
        assert_eq!(example(TensorQuant8AsymmSigned, 0.0, signed, stored, 0.25), below);
        assert_eq!(example(TensorQuant8AsymmSigned, 0.0, symmetric.clone(), stored, 0.0), below);
        assert_eq!(example(TensorQuant8Asymm, 128.0, symmetric, stored, 0.0), above);
        assert_eq!(example(TensorQuant8Asymm, 128.0, unsigned, [132.0, 126.0], 0.25), above);
    }

    #[test]
    fn an_empty_batch_gives_an_empty_batch() {
        let empty = explicit([0; 4]).with_input(0, float([0, 1, 2, 1]), &[]);
        assert_eq!(empty.result(), (vec![0, 1, 5, 1], vec![]));
        let empty = implicit([0, 1, 4, 1], 1).with_input(0, float([0, 1, 2, 1]), &[]);
        assert_eq!(empty.result(), (vec![0, 1, 4, 1], vec![]));
    }

    #[test]
    fn what_is_known_of_the_shape_is_inferred() {
        let shape = |example: Example| example.shape();
        let unknown = |example: Example| example.with_input_to_come(0, float([0, 1, 0, 1]));
        assert_eq!(shape(unknown(explicit([0; 4]))), Shape::new([None, Some(1), None, Some(1)]));
        let batch_is_open = Shape::new([None, Some(1), Some(4), Some(1)]);
        assert_eq!(shape(unknown(implicit([1, 1, 4, 1], 1))), batch_is_open);
        let later = implicit([1, 1, 4, 1], 1).with_input_to_come(3, int32s(4, 0.0));
        assert_eq!(shape(later), Shape::UNKNOWN);
    }

    #[test]
    fn each_row_has_its_version() {
        let example = |input, filter: OperandSpec, bias: OperandSpec| {
            Example::new(OperationType::TransposeConv2d)
                .input_to_come(tensor(input, [1; 4]))
                .input_to_come(filter)
                .input_to_come(bias)
                .int32s([0, 0, 0, 0, 1, 1, 0])
                .bool(false)
                .output(tensor(input, [1; 4]))
        };
        let filter = |operand_type| tensor(operand_type, [1; 4]);
        let per_channel = OperandSpec::tensor_quant8_symm_per_channel([1; 4], &[0.5], 0);
        let signed = filter(TensorQuant8AsymmSigned);
        let unsigned = example(TensorQuant8Asymm, filter(TensorQuant8Asymm), int32s(1, 0.25));
        let rows = [
            (example(TensorFloat32, filter(TensorFloat32), float([1])), V1_2),
            (unsigned.clone(), V1_2),
            (example(TensorFloat16, filter(TensorFloat16), tensor(TensorFloat16, [1])), V1_2),
            (example(TensorQuant8Asymm, per_channel.clone(), int32s(1, 0.0)), V1_2),
            (example(TensorQuant8AsymmSigned, signed, int32s(1, 0.25)), V1_3),
            (example(TensorQuant8AsymmSigned, per_channel, int32s(1, 0.0)), V1_3),
            (implicit([1, 1, 4, 1], 1), V1_2),
        ];
        for (example, version) in rows {
            assert_eq!(example.since(), Ok(version));
            example.shapes().unwrap();
        }
    }

    #[test]
    fn what_the_definition_excludes_is_refused() {
        let shape = |shape: [i32; 4]| implicit(shape, 1);
        let table = [
            (explicit([-1, 0, 0, 0]), "value of input 3 (padding left) is -1"),
            (explicit([0, 0, -1, 0]), "value of input 5 (padding top) is -1"),
            (
                explicit([2, 3, 0, 0]),
                "padding of the operation is 2 and 3, expected something left of 2 copies of 3",
            ),
            (explicit([i32::MAX; 4]), "padding of the operation is 2147483647 and 2147483647"),
            (explicit([0; 4]).with_int32(7, 0), "value of input 7 (stride width) is 0"),
            (explicit([0; 4]).with_int32(8, 0), "value of input 8 (stride height) is 0"),
            (explicit([0; 4]).with_int32(9, 4), "value of input 9 (activation) is 4"),
            (implicit([1, 1, 4, 1], 7), "value of input 4 (padding scheme) is 7"),
            (
                shape([1, 1, 5, 1]),
                "output length of the operation is 5, expected one from which a window of 3 makes 2",
            ),
            (implicit([1, 1, 4, 1], 2), "output length of the operation is 4"),
            (implicit([1, 1, 7, 1], 2), "output length of the operation is 7"),
            (shape([1, 1, 0, 1]), "value of input 3 (output shape) is [1, 1, 0, 1]"),
            (shape([1, 1, -4, 1]), "value of input 3 (output shape) is [1, 1, -4, 1]"),
            (
                shape([1, 1, 4, 1]).with_input(3, int32s(3, 0.0), &[1.0, 4.0, 1.0]),
                "shape of input 3 (output shape) is [3], expected length 4 along axis 0",
            ),
            (
                explicit([0; 4]).with_input(0, float([1, 0, 2, 1]), &[]),
                "shape of input 0 (input) is [1, 0, 2, 1]",
            ),
            (
                explicit([0; 4]).with_input(1, float([1, 1, 1, 3]), &[0.0; 3]),
                "shape of input 1 (filter) is [1, 1, 1, 3], expected length 1 along axis 3",
            ),
        ];
        assert_refused(&table);
    }

    #[test]
    fn numbers_near_the_limit_do_not_overflow() {
        let far = explicit([i32::MAX, -1, 0, 0]).with_int32(7, i32::MAX);
        assert_eq!(across(&far), [2.0, 20.0, 200.0, 0.0]);
        let wide = explicit([0, i32::MIN, 0, 0]).with_int32(7, i32::MAX);
        // 2^31 - 1 + 3 elements and 2^31 more are more than 32 bits count.
        assert!(wide.refusal().contains("padding of the operation is 0 and -2147483648"));
    }

    /// Every tap of every place, by trying all pairs.
    fn pairs(spread: Spread, place: usize, length: usize, taps: usize) -> Vec<(usize, usize)> {
        let before = usize::try_from(spread.before(u32::try_from(taps).unwrap())).unwrap();
        let all = (0..length).flat_map(|element| (0..taps).map(move |tap| (tap, element)));
        all.filter(|(tap, element)| element * spread.stride as usize + tap == place + before)
            .collect()
    }

    proptest! {
        #[test]
        fn taps_are_those_that_meet_the_place(
            stride in 1..5_u32, length in 1..6_u32, taps in 1..6_u32, before in 0..6_u32, after in -6..6_i32,
        ) {
            let spread = Spread { trim: Trim::Explicit { before, after }, stride };
            let (length, taps) = (length as usize, taps as usize);
            for place in 0..40 {
                let found: Vec<_> = spread.taps(place, length, taps).collect();
                prop_assert_eq!(found, pairs(spread, place, length, taps));
            }
        }

        /// It is the transpose of CONV_2D: `<conv(x), y> = <x, transposed(y)>` for all x and y.
        #[test]
        fn it_is_the_transpose_of_the_convolution(
            height in 1..6_u32, width in 1..6_u32, taps in [1..4_u32, 1..4_u32],
            stride in [1..4_i32, 1..4_i32], scheme in 1..3_i32, is_nchw: bool, seed: u32,
        ) {
            let layout = Layout::from_flag(is_nchw);
            let noise = |count: u32, seed: u32| -> Vec<f64> {
                (0..count)
                    .map(|index| (seed ^ index).wrapping_mul(2_654_435_761) >> 28)
                    .map(|number| f64::from(number) - 8.0)
                    .collect()
            };
            let (depth, depth_out) = (2, 3);
            let large = [1, height, width, depth];
            let x = noise(large.iter().product(), seed);
            let filter = noise(depth_out * taps[0] * taps[1] * depth, !seed);
            let conv = Example::new(OperationType::Conv2d)
                .input(float(layout.from_nhwc(large)), &x)
                .input(float([depth_out, taps[0], taps[1], depth]), &filter)
                .input(float([depth_out]), &[0.0; 3])
                .int32s([scheme]).int32s(stride).int32s([0]).bool(is_nchw).output(float([0; 4]));
            let Ok(shapes) = conv.shapes() else { return Ok(()) }; // the window does not fit
            let small = shapes[0].to_known().unwrap();
            let y = noise(small.iter().product(), seed.rotate_left(7));
            // The filter's outer axes change places.
            let (out, inner) = (depth_out as usize, depth as usize);
            let window = (taps[0] * taps[1]) as usize;
            let mut transposed_filter = Vec::new();
            for k in 0..inner { for tap in 0..window { for d in 0..out {
                transposed_filter.push(filter[(d * window + tap) * inner + k]);
            }}}
            let transposed = Example::new(OperationType::TransposeConv2d)
                .input(float(small), &y)
                .input(float([depth, taps[0], taps[1], depth_out]), &transposed_filter)
                .input(float([depth]), &[0.0; 2])
                .input(int32s(4, 0.0), &layout.from_nhwc(large).map(f64::from))
                .int32s([scheme]).int32s(stride).int32s([0]).bool(is_nchw).output(float([0; 4]));
            let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
            prop_assert_eq!(dot(&conv.result().1, &y), dot(&x, &transposed.result().1));
        }
    }
}
