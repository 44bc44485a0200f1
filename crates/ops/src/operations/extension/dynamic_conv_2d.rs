//! DYNAMIC_CONV_2D: CONV_2D of floats that are multiplied as integers of 8 bits.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, height, width, in]` | TENSOR_FLOAT32 |
//! | input 1 | filter | `[out, height, width, in / groups]`, none 0 | TENSOR_QUANT8_ASYMM_SIGNED with zero point 0, TENSOR_QUANT8_SYMM_PER_CHANNEL with channel dimension 0 |
//! | input 2 | bias | `[out]` | TENSOR_FLOAT32 |
//! | input 3 | padding | scalar: 1 is SAME, 2 is VALID | INT32 |
//! | input 4, 5 | strides | scalars along height and width, above 0 | INT32 |
//! | input 6, 7 | dilations | scalars along height and width, above 0 | INT32 |
//! | input 8 | activation | scalar | INT32, see [`nnhal_hal::FusedActivation`] |
//! | output 0 | output | `[batch, height, width, out]` | TENSOR_FLOAT32 |
//!
//! While it runs, each image of the batch is rounded to integers by the range of its elements and 0
//! ([`dynamic_range::rounded`]); the padding is 0. The output is
//! `activation(sum(q * weight) / factor * scale + bias)`, where the sum has 32 bits and wraps, and the scale is the
//! filter's or that of the channel. Of an image with an element that is infinite or NaN, or whose range is infinite,
//! all outputs are NaN.
//!
//! As in TensorFlow Lite, there are groups of channels where the filter has fewer channels than the input: of both the input
//! and the output, each group has the same number, and an output channel sees the input channels of its group.
//!
//! It is what TensorFlow Lite computes of models with weights of 8 bits and no other quantization.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::convolution::{filter_lengths, output_channels};
use crate::rules::padding::{Padding, Slide, Window};
use crate::rules::{activation_range, dynamic_range, real};
use crate::shape::Shape;
use nnhal_hal::FusedActivation;

/// DYNAMIC_CONV_2D.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DynamicConv2d {
    /// Along height and width.
    pub windows: [Window; 2],
    /// What the result is clamped to.
    pub activation: FusedActivation,
}

impl Operation for DynamicConv2d {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank(4)?;
        call.input(1).expect_rank(4)?;
        call.input(2).expect_rank(1)?;
        dynamic_range::validate_weights(call.input(1))
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let padding = Padding::decode_scheme(call.input(3))?;
        let mut windows = [Window { padding, stride: 1, dilation: 1 }; 2];
        for (axis, window) in windows.iter_mut().enumerate() {
            window.stride = call.input(4 + axis).positive()?;
            window.dilation = call.input(6 + axis).positive()?;
        }
        Ok(Self { windows, activation: activation_range::decode(call.input(8))? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (input, filter) = (call.input(0), call.input(1));
        let of_input: [_; 4] = input.known_lengths_of()?;
        let of_filter: [_; 4] = filter_lengths(filter)?;
        let channels = output_channels(filter, call.input(2), of_filter[0])?;
        if let [Some(depth), Some(of_group)] = [of_input[3], of_filter[3]]
            && !are_groups(depth, of_group, channels)
        {
            let groups = match channels {
                Some(channels) => format!(", and {channels} channels of the output"),
                None => String::new(),
            };
            let expected =
                format!("one that divides the {depth} channels of input 0{groups} into groups");
            return Err(filter.wrong("length of axis 3", of_group, expected));
        }
        let mut lengths = vec![of_input[0]];
        for (axis, window) in (1..).zip(&self.windows) {
            lengths.push(match (of_input[axis], of_filter[axis]) {
                (Some(length), Some(taps)) => {
                    Some(window.places(length, taps).ok_or_else(|| {
                        let expected = format!("{} or more along axis {axis}", window.extent(taps));
                        input.wrong("shape", &input.shape, expected)
                    })?)
                }
                _ => None,
            });
        }
        lengths.push(channels);
        Ok(vec![Shape::new(lengths)])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (filter, output) = (call.input(1), call.output(0));
        let dimensions = self.output_dimensions(call)?;
        let [_, height, width, channels] = call.input(0).lengths_of()?;
        let [_, taps_high, taps_wide, of_group] = filter.lengths_of()?;
        let [_, out_height, out_width, results] = shape_of(&dimensions);
        // Output channels of a group, as was checked with the shapes.
        let of_results = results / (channels / of_group.max(1)).max(1);
        let (input, bias) = (call.input(0).f32s()?, call.input(2).f32s()?);
        let stored = filter.integers()?;
        let range = activation_range::real(self.activation);
        let mut elements = output.allocate(&dimensions)?;
        let of_image = height * width * channels;
        let mut image: Vec<i32> = call.room(of_image)?;
        let [down, across] = &self.windows;
        for batch in 0..dimensions[0] as usize {
            let factor =
                dynamic_range::rounded(call, &input[batch * of_image..][..of_image], &mut image)?;
            for (y, x) in (0..out_height).flat_map(|y| (0..out_width).map(move |x| (y, x))) {
                for (result, bias) in bias.iter().enumerate().take(results) {
                    let mut sum = 0_i32;
                    for (i, in_y) in down.taps(y, height, taps_high) {
                        for (j, in_x) in across.taps(x, width, taps_wide) {
                            let first = (in_y * width + in_x) * channels;
                            let first = first + result / of_results.max(1) * of_group;
                            let pixel = &image[first..][..of_group];
                            let tap = (result * taps_high + i) * taps_wide + j;
                            let weights = &stored[tap * of_group..][..of_group];
                            call.each(pixel.iter().zip(weights), |(q, weight)| {
                                sum = sum.wrapping_add(q.wrapping_mul(*weight));
                            })?;
                        }
                    }
                    // A window on padding only, too, takes time.
                    call.work(1)?;
                    // Rounded once.
                    let scale = f64::from(dynamic_range::scale(filter, result));
                    let product = f64::from(sum) / factor * scale;
                    let sum = real::round(product + f64::from(*bias));
                    elements.push(activation_range::clamp(sum, range));
                }
            }
        }
        Ok(vec![output.with_f32s(dimensions, &elements)?])
    }
}

/// Whether groups of this number of the input's channels divide these channels, and those of the output.
fn are_groups(channels: u32, of_group: u32, results: Option<u32>) -> bool {
    let groups = channels.checked_div(of_group).unwrap_or(0);
    groups > 0
        && channels.is_multiple_of(of_group)
        && results.is_none_or(|results| results.is_multiple_of(groups))
}

/// Lengths of an image, whose number of axes was checked.
fn shape_of(dimensions: &[u32]) -> [usize; 4] {
    std::array::from_fn(|axis| dimensions[axis] as usize)
}
