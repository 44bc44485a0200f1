//! CONV_3D, CONV_3D_TRANSPOSE: convolutions over depth, height and width.
//!
//! | operation | operand | name | shape | types |
//! |---|---|---|---|---|
//! | CONV_3D | input 0 | input | `[batch, depth, height, width, in]` | float32, float16 |
//! | | input 1 | filter | `[depth, height, width, in, out]` | as the input |
//! | CONV_3D_TRANSPOSE | input 0 | input | `[batch, depth, height, width, in]` | float32, float16 |
//! | | input 1 | filter | `[depth, height, width, out, in]` | as the input |
//! | both | input 2 | bias | `[out]` | as the input |
//! | | input 3 | padding | scalar: 1 is SAME, 2 is VALID | INT32 |
//! | | input 4 to 6 | strides | scalars along depth, height and width, above 0 | INT32 |
//! | | input 7 to 9 | dilations | scalars along depth, height and width, above 0 | INT32 |
//! | | input 10 | activation | scalar | INT32, see [`nnhal_hal::FusedActivation`] |
//! | CONV_3D_TRANSPOSE | input 11 | output shape | `[5]` | TENSOR_INT32 |
//! | both | output 0 | output | `[batch, depth, height, width, out]` | as the input |
//!
//! CONV_3D_TRANSPOSE is what leads from a result of CONV_3D with the same padding back to the shape of its
//! input. Products are summed in double precision.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::padding::{Padding, Slide, Window};
use crate::rules::{activation_range, real};
use crate::shape::Shape;
use nnhal_hal::FusedActivation;

/// CONV_3D or CONV_3D_TRANSPOSE.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Conv3d {
    /// Along depth, height and width.
    pub windows: [Window; 3],
    /// What the result is clamped to.
    pub activation: FusedActivation,
    /// Of CONV_3D_TRANSPOSE the lengths of the result.
    pub transposed_to: Option<[u32; 5]>,
}

impl Operation for Conv3d {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank(5)?;
        call.input(1).expect_rank(5)?;
        call.input(2).expect_rank(1)?;
        call.inputs().get(11).map_or(Ok(()), |shape| shape.expect_rank(1))
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let padding = Padding::decode_scheme(call.input(3))?;
        let mut windows = [Window { padding, stride: 1, dilation: 1 }; 3];
        for (axis, window) in windows.iter_mut().enumerate() {
            window.stride = call.input(4 + axis).positive()?;
            window.dilation = call.input(7 + axis).positive()?;
        }
        let transposed_to = match call.inputs().get(11) {
            None => None,
            Some(given) => {
                let length = |length: i32| {
                    u32::try_from(length).map_err(|_| given.wrong("value", length, "0 or more"))
                };
                let lengths = given.i32s()?.into_iter().map(length);
                let lengths = lengths.collect::<Result<Vec<_>, _>>()?;
                let lengths: Result<[u32; 5], _> = lengths.try_into();
                Some(lengths.map_err(|_| given.wrong("shape", &given.shape, "[5]"))?)
            }
        };
        let activation = activation_range::decode(call.input(10))?;
        Ok(Self { windows, activation, transposed_to })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (input, filter, bias) = (call.input(0), call.input(1), call.input(2));
        let of_input: [_; 5] = input.known_lengths_of()?;
        let of_filter: [_; 5] = filter.known_lengths_of()?;
        let is_transposed = self.transposed_to.is_some();
        let (inner, outer) = if is_transposed { (4, 3) } else { (3, 4) };
        filter.expect_length(inner, of_input[4])?;
        bias.expect_length(0, of_filter[outer])?;
        if of_filter[..3].contains(&Some(0)) {
            return Err(filter.wrong("shape", &filter.shape, "lengths above 0"));
        }
        if let Some(lengths) = self.transposed_to {
            let given = call.input(11);
            let wrong = |expected: String| {
                let found = Shape::known(lengths);
                Err(given.wrong("value", found, expected))
            };
            if of_input[0].is_some_and(|batch| batch != lengths[0]) {
                return wrong(format!("the batch of {}", input.shape));
            }
            if of_filter[3].is_some_and(|depth| depth != lengths[4]) {
                return wrong(format!("the depth of filter {}", filter.shape));
            }
            for (axis, window) in self.windows.iter().enumerate() {
                let (Some(places), Some(taps)) = (of_input[axis + 1], of_filter[axis]) else {
                    continue;
                };
                if window.places(lengths[axis + 1], taps) != Some(places) {
                    let expected = format!("what a window takes to {places} along axis {axis}");
                    return wrong(expected);
                }
            }
            return Ok(vec![Shape::known(lengths)]);
        }
        let mut lengths = vec![of_input[0]];
        for (axis, window) in self.windows.iter().enumerate() {
            lengths.push(match (of_input[axis + 1], of_filter[axis]) {
                (Some(length), Some(taps)) => {
                    Some(window.places(length, taps).ok_or_else(|| {
                        let expected =
                            format!("{} or more along axis {}", window.extent(taps), axis + 1);
                        input.wrong("shape", &input.shape, expected)
                    })?)
                }
                _ => None,
            });
        }
        lengths.push(of_filter[4]);
        Ok(vec![Shape::new(lengths)])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let output = call.output(0);
        let dimensions = self.output_dimensions(call)?;
        let [batch, depth, height, width, channels] = call.input(0).lengths_of::<5>()?;
        let [taps_down, taps_high, taps_wide, ..] = call.input(1).lengths_of::<5>()?;
        let of_output: Vec<usize> = dimensions.iter().map(|length| *length as usize).collect();
        let results = of_output[4];
        let (input, filter) = (call.input(0).f32s()?, call.input(1).f32s()?);
        let bias = call.input(2).f32s()?;
        let initial = bias.iter().copied().map(f64::from).cycle();
        let mut sums: Vec<f64> = output.collect(&dimensions, initial)?;
        // The places of the window are on the output, or of a transposed one on the input.
        let is_transposed = self.transposed_to.is_some();
        let wide = [of_output[1], of_output[2], of_output[3]];
        let narrow = [depth, height, width];
        let (places, lengths) = if is_transposed { (narrow, wide) } else { (wide, narrow) };
        let [along_depth, along_height, along_width] = &self.windows;
        for (at, place) in indexes([batch, places[0], places[1], places[2]]) {
            for (d, in_depth) in along_depth.taps(place[1], lengths[0], taps_down) {
                for (h, in_height) in along_height.taps(place[2], lengths[1], taps_high) {
                    for (w, in_width) in along_width.taps(place[3], lengths[2], taps_wide) {
                        call.work(channels.saturating_mul(results))?;
                        let tap = (d * taps_high + h) * taps_wide + w;
                        let met = ((place[0] * lengths[0] + in_depth) * lengths[1] + in_height)
                            * lengths[2]
                            + in_width;
                        let (from, to) = if is_transposed { (at, met) } else { (met, at) };
                        let pixel = &input[from * channels..(from + 1) * channels];
                        let sums = &mut sums[to * results..(to + 1) * results];
                        let weights = &filter[tap * channels * results..];
                        for (channel, value) in pixel.iter().enumerate() {
                            for (result, sum) in sums.iter_mut().enumerate() {
                                let weight = if is_transposed {
                                    weights[result * channels + channel]
                                } else {
                                    weights[channel * results + result]
                                };
                                *sum += f64::from(*value) * f64::from(weight);
                            }
                        }
                    }
                }
            }
        }
        let range = activation_range::real(self.activation);
        let clamped = sums.into_iter().map(|sum| activation_range::clamp(real::round(sum), range));
        let elements = output.collect(&dimensions, clamped)?;
        Ok(vec![output.with_f32s(dimensions, &elements)?])
    }
}

/// All indexes of a tensor of these lengths in order, each with its position.
fn indexes(lengths: [usize; 4]) -> impl Iterator<Item = (usize, [usize; 4])> {
    let [a, b, c, d] = if lengths.contains(&0) { [0; 4] } else { lengths };
    (0..a * b * c * d).map(move |at| (at, [at / (b * c * d), at / (c * d) % b, at / d % c, at % d]))
}
