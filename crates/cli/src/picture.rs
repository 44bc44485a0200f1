//! Images as inputs: decoded, resized to the input's height and width, and normalised.

use crate::error::{CliError, Result};
use crate::tensor::Tensor;
use hal::OperandType;
use image::imageops::FilterType;
use image::{DynamicImage, ImageReader, Limits};
use std::path::Path;

/// Most bytes that a decoded image may take; a small file can claim any size.
const DECODED_LIMIT: u64 = 512 << 20;

/// How pixels become elements: `(pixel - mean) / deviation`, pixels from 0 to 255.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normalisation {
    /// Taken from each pixel.
    pub mean: f32,
    /// Divides the rest.
    pub deviation: f32,
}

impl Normalisation {
    /// What is used unless said otherwise: floats get 0 to 1; quantised types the whole range of
    /// what they can store, so that unsigned bytes are the pixels themselves.
    #[allow(clippy::cast_precision_loss)] // Stored values have 16 bits at most.
    pub fn default_for(operand_type: OperandType, scale: f32, zero_point: i32) -> Self {
        match operand_type.quantized_range() {
            Some((least, greatest)) if scale > 0.0 => {
                let from = (least - zero_point) as f32 * scale;
                let to = (greatest - zero_point) as f32 * scale;
                let deviation = 255.0 / (to - from);
                // Not the negative: that would show a zero as -0.
                Self { mean: 0.0 - from * deviation, deviation }
            }
            _ => Self { mean: 0.0, deviation: 255.0 },
        }
    }
}

/// What an input that an image is to fill looks like.
#[derive(Debug, Clone)]
pub struct ImageInput<'a> {
    /// The element type.
    pub operand_type: OperandType,
    /// `[batch, height, width, channels]`, batch 1 and channels 1, 3 or 4; `[height, width,
    /// channels]` as well. A 0 is unknown: the image's own length is taken.
    pub dimensions: &'a [u32],
    /// The step of a quantised type, else 0.
    pub scale: f32,
    /// The stored value that stands for 0.
    pub zero_point: i32,
}

/// Reads an image into a tensor.
///
/// # Errors
/// The file cannot be read or is no PNG or JPEG, or the input is not shaped like an image.
pub fn load(path: &Path, input: &ImageInput<'_>, normalisation: Normalisation) -> Result<Tensor> {
    let not_an_image = || {
        CliError::Input(format!(
            "{}: an image cannot fill an input of shape {:?}; it takes [1, height, width, channels] \
             with 1, 3 or 4 channels",
            path.display(),
            input.dimensions
        ))
    };
    let (height, width, channels) = match *input.dimensions {
        [0 | 1, height, width, channels] | [height, width, channels] => (height, width, channels),
        _ => return Err(not_an_image()),
    };
    let mut reader = ImageReader::open(path)
        .and_then(ImageReader::with_guessed_format)
        .map_err(CliError::file(path))?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(DECODED_LIMIT);
    reader.limits(limits);
    let picture =
        reader.decode().map_err(|error| CliError::Input(format!("{}: {error}", path.display())))?;
    let own = |length: u32, image: u32| if length == 0 { image } else { length };
    let (height, width) = (own(height, picture.height()), own(width, picture.width()));
    let picture = if (picture.width(), picture.height()) == (width, height) {
        picture
    } else {
        picture.resize_exact(width, height, FilterType::Triangle)
    };
    let pixels = match channels {
        1 => picture.to_luma8().into_raw(),
        0 | 3 => picture.to_rgb8().into_raw(),
        4 => DynamicImage::to_rgba8(&picture).into_raw(),
        _ => return Err(not_an_image()),
    };
    let channels = own(channels, 3);
    let dimensions = match input.dimensions.len() {
        4 => vec![1, height, width, channels],
        _ => vec![height, width, channels],
    };
    let reals = pixels
        .into_iter()
        .map(|pixel| (f32::from(pixel) - normalisation.mean) / normalisation.deviation);
    let quantisation = (input.scale, input.zero_point);
    Ok(Tensor::from_reals(input.operand_type, dimensions, quantisation, reals))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(operand_type: OperandType, dimensions: &[u32]) -> ImageInput<'_> {
        ImageInput { operand_type, dimensions, scale: 0.0, zero_point: 0 }
    }

    fn grey_ramp() -> tempfile::NamedTempFile {
        let file = tempfile::Builder::new().suffix(".png").tempfile().unwrap();
        image::GrayImage::from_raw(2, 1, vec![0, 255]).unwrap().save(file.path()).unwrap();
        file
    }

    #[test]
    fn pixels_become_zero_to_one_in_floats() {
        let file = grey_ramp();
        let shape = [1, 1, 2, 3];
        let input = input(OperandType::TensorFloat32, &shape);
        let normalisation = Normalisation::default_for(input.operand_type, 0.0, 0);
        let tensor = load(file.path(), &input, normalisation).unwrap();
        assert_eq!(tensor.reals(), [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn pixels_fill_the_range_of_a_quantised_type() {
        let file = grey_ramp();
        let shape = [1, 1, 2, 1];
        let input = ImageInput {
            scale: 2.0 / 255.0,
            zero_point: -1,
            ..input(OperandType::TensorQuant8AsymmSigned, &shape)
        };
        let normalisation =
            Normalisation::default_for(input.operand_type, input.scale, input.zero_point);
        let tensor = load(file.path(), &input, normalisation).unwrap();
        assert_eq!(tensor.bytes, [0x80, 0x7F]);
    }

    #[test]
    fn unknown_lengths_are_those_of_the_image() {
        let file = grey_ramp();
        let input = input(OperandType::TensorFloat32, &[0, 0, 0, 1]);
        let normalisation = Normalisation { mean: 0.0, deviation: 1.0 };
        let tensor = load(file.path(), &input, normalisation).unwrap();
        assert_eq!(tensor.dimensions, [1, 1, 2, 1]);
    }

    #[test]
    fn an_input_that_is_no_image_is_refused() {
        let file = grey_ramp();
        let input = input(OperandType::TensorFloat32, &[1, 1001]);
        let refused = load(file.path(), &input, Normalisation { mean: 0.0, deviation: 1.0 });
        assert!(refused.unwrap_err().to_string().contains("[1, 1001]"));
    }
}
